// The page: who is there, which database, which page is shown.

import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { get, setToken, token, whenUnauthorized } from "./api.js";
import { belongsTo, keep, recall } from "./kept.js";
import { DATES, browserDates } from "./lib/locale.js";
import { Ask } from "./pages/ask.jsx";
import { Draw } from "./pages/draw.jsx";
import { Load } from "./pages/load.jsx";
import { Notebooks } from "./pages/notebooks.jsx";
import { Server } from "./pages/server.jsx";
import { Tables } from "./pages/tables.jsx";
import { href, useRoute } from "./route.js";
import { loadSchema } from "./schema.js";
import { App, Button, Icon, Notice, Select } from "./ui.jsx";

const PAGES = {
  ask: ["Ask", Ask],
  draw: ["Draw", Draw],
  notebooks: ["Notebooks", Notebooks],
  load: ["Load", Load],
  tables: ["Tables", Tables],
  server: ["Server", Server],
};
const ICON_OF = { notebooks: "notebook" };

/** Asks who the page's user is: `{ open, admin, id, name, rights, reader }`, or `null` where a token is needed. */
async function whoAmI() {
  const [found, reader] = await Promise.all([askRights(), isReader()]);
  if (!found) return null;
  belongsTo(found.id);
  // A server that only reads refuses every change, whatever a token may do.
  return { ...found, reader, rights: reader ? found.rights.filter((right) => right === "read" || right === "admin") : found.rights };
}

/** Asks whether the server only reads what another process writes. */
async function isReader() {
  const answer = await fetch(new URL("health", document.baseURI), { credentials: "omit", cache: "no-store" });
  return (await answer.json().catch(() => ({}))).role === "reader";
}

async function askRights() {
  const headers = token() ? { authorization: `Bearer ${token()}` } : {};
  if (!token()) {
    const answer = await fetch(new URL("api/v1/databases", document.baseURI), { credentials: "omit", cache: "no-store" });
    if (answer.status === 401) return null;
    if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `the server answered ${answer.status}`);
    return { open: true, admin: true, id: "", name: "", rights: ["read", "write", "delete", "admin"] };
  }
  const answer = await fetch(new URL("api/v1/auth/verify", document.baseURI), { headers, credentials: "omit", cache: "no-store" });
  if (!answer.ok) return null;
  const { token_info: info, permissions } = await answer.json();
  const grants = info.grants ?? [{ rights: permissions, databases: info.databases, tables: info.tables }];
  const everywhere = (names) => !names || names.length === 0 || names.includes("*");
  const admin = grants.some((grant) => (grant.rights ?? grant.permissions ?? []).includes("admin") && everywhere(grant.databases) && everywhere(grant.tables));
  const rights = new Set(permissions);
  if (rights.has("admin")) for (const right of ["read", "write", "delete"]) rights.add(right);
  return { open: false, admin, id: String(info.id ?? info.name ?? ""), name: info.name ?? "", rights: [...rights] };
}

/** A browser says of a server that is away no more than that a request failed. */
const reasonOf = (error) => (error instanceof TypeError ? "The server does not answer. It may be restarting; try again." : error.message);

function Login({ onDone, reason }) {
  const [text, setText] = useState("");
  const [error, setError] = useState(reason);
  const [busy, setBusy] = useState(false);
  const go = async (event) => {
    event.preventDefault();
    setBusy(true);
    setToken(text.trim());
    const who = await whoAmI().catch((failed) => ({ failed }));
    setBusy(false);
    if (who?.failed) setError(reasonOf(who.failed));
    else if (who) onDone(who);
    else {
      setToken("");
      setError("This token does not let in: it is wrong, has expired or was revoked.");
    }
  };
  return (
    <main class="login">
      <form onSubmit={go}>
        <div class="brand">
          <Logo /> <h1>Arc</h1>
        </div>
        <label class="field wide">
          <span>Token</span>
          <input type="password" name="token" autocomplete="current-password" required value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        {error && <Notice>{error}</Notice>}
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? "Checking…" : "Log in"}
        </button>
        <p class="hint">
          The first start of the server wrote a token that may do everything to <code>admin.token</code> in its data directory. It is kept in this tab only, until
          you close it.
        </p>
      </form>
    </main>
  );
}

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <path d="M4 26A14 14 0 0 1 28 26" />
      <path d="M10 26a7 7 0 0 1 12 0" />
      <circle cx="16" cy="26" r="2" />
    </svg>
  );
}

function useTheme() {
  const [theme, setTheme] = useState(() => recall("theme", ""));
  const media = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [systemDark, setSystemDark] = useState(media.matches);
  useEffect(() => {
    const changed = () => setSystemDark(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, []);
  const dark = theme === "" ? systemDark : theme === "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const toggle = () => {
    const next = dark ? "light" : "dark";
    keep("theme", next);
    setTheme(next);
  };
  return { dark, toggle };
}

function Shell() {
  const { dark, toggle } = useTheme();
  const [who, setWho] = useState(undefined);
  const [trouble, setTrouble] = useState("");
  const [databases, setDatabases] = useState([]);
  const [database, setDatabaseState] = useState(() => recall("database", "default"));
  const [schema, setSchema] = useState({});
  const [times, setTimes] = useState(() => ({ local: recall("local", false), dates: recall("dates", browserDates()) }));
  const route = useRoute();

  const enter = () => whoAmI().then((found) => { setTrouble(""); setWho(found); }, (error) => setTrouble(reasonOf(error)));
  useEffect(() => {
    enter();
    whenUnauthorized(() => {
      setToken("");
      setTrouble("Your token has expired or was revoked. Log in again; what you wrote is still there.");
      setWho(null);
    });
  }, []);
  const setDatabase = (name) => {
    keep("database", name);
    setDatabaseState(name);
  };
  const refresh = async () => {
    const { databases: list } = await get("api/v1/databases");
    const names = list.map(({ name }) => name);
    setDatabases(list);
    if (names.length > 0 && !names.includes(database)) setDatabase(names.includes("default") ? "default" : names[0]);
  };
  useEffect(() => {
    if (who) refresh().catch(() => {});
  }, [who]);
  // Of two that are under way the later counts, whichever is answered first: they may be about two databases.
  const asked = useRef(0);
  const refreshSchema = async () => {
    const turn = ++asked.current;
    const found = await loadSchema(database).catch(() => null);
    if (turn === asked.current) setSchema((before) => found ?? (before[database] ? before : {}));
  };
  useEffect(() => {
    if (who?.rights.includes("read")) refreshSchema();
  }, [who, database]);

  if (who === undefined) return trouble ? <main class="login"><Notice action={<Button onClick={enter}>Try again</Button>}>{trouble}</Notice></main> : null;
  if (who === null) return <Login reason={trouble} onDone={(found) => { setTrouble(""); setWho(found); }} />;

  const may = (right) => who.rights.includes(right);
  const app = { who, may, reader: who.reader, dark, times, databases, database, setDatabase, refresh: () => Promise.all([refresh(), refreshSchema()]).catch(() => {}), schema };
  const pages = Object.keys(PAGES).filter((page) => (page === "load" ? may("write") : page === "ask" || page === "draw" || page === "notebooks" ? may("read") || may("write") : true));
  const current = pages.includes(route.page) ? route.page : pages[0];
  const [title, Page] = PAGES[current];
  document.title = `${title} – Arc`;
  return (
    <App.Provider value={app}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>
        Skip to the page
      </a>
      <nav class="side" aria-label="Pages">
        <div class="brand">
          <Logo /> <span>Arc</span>
        </div>
        {pages.map((page) => (
          <a key={page} href={href(page)} aria-current={page === current ? "page" : undefined} title={PAGES[page][0]}>
            <Icon name={ICON_OF[page] ?? page} size={18} />
            <span>{PAGES[page][0]}</span>
          </a>
        ))}
      </nav>
      <header class="top">
        <label class="inline">
          <span>Database</span>
          <Select label="Database" value={database} options={databases.length > 0 ? databases.map(({ name }) => name) : [database]} onPick={setDatabase} />
        </label>
        <div class="spacer" />
        {who.reader && <span class="badge" title="This server only reads what another process writes; changes are made at that one.">Reader</span>}
        <TimesSelect times={times} onPick={setTimes} />
        <Button kind="ghost" icon={dark ? "sun" : "moon"} label={dark ? "Light colours" : "Dark colours"} onClick={toggle} />
        {!who.open && (
          <Button kind="ghost" icon="out" label={`Log out ${who.name}`} onClick={() => { setToken(""); setTrouble(""); setWho(null); }}>
            {who.name}
          </Button>
        )}
      </header>
      <main id="main" tabIndex={-1} class={`page ${current}`}>
        <h1 class="unseen">{title}</h1>
        <Page route={route} key={current} />
      </main>
    </App.Provider>
  );
}

/** Zone and order of dates, in one list, for a phone is narrow. */
function TimesSelect({ times, onPick }) {
  const options = [["utc", "UTC"], ["local", "Local"]].flatMap(([zone, text]) => DATES.map(([dates, sample]) => [`${zone} ${dates}`, `${text} · ${sample}`]));
  const pick = (value) => {
    const [zone, dates] = value.split(" ");
    keep("local", zone === "local");
    keep("dates", dates);
    onPick({ local: zone === "local", dates });
  };
  return <Select label="Times are shown in" value={`${times.local ? "local" : "utc"} ${times.dates}`} options={options} onPick={pick} />;
}

render(<Shell />, document.getElementById("app"));
