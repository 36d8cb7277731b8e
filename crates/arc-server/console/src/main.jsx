// The page: who is there, which database, which page is shown.

import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { get, whenUnauthorized } from "./api.js";
import { Frame, Opening, TITLES } from "./frame.jsx";
import { belongsTo, keep, recall } from "./kept.js";
import { DATES, browserDates } from "./lib/locale.js";
import { grantsOf } from "./lib/rights.js";
import { Ask } from "./pages/ask.jsx";
import { Draw } from "./pages/draw.jsx";
import { Load } from "./pages/load.jsx";
import { Notebooks } from "./pages/notebooks.jsx";
import { Server } from "./pages/server.jsx";
import { Tables } from "./pages/tables.jsx";
import { useRoute } from "./route.js";
import { loadSchema } from "./schema.js";
import { PAGE_NAMES, currentPage, isDark, keepFrame, knownPages, setToken, token } from "./session.js";
import { App, Button, Notice, Select } from "./ui.jsx";

const PAGES = { ask: Ask, draw: Draw, notebooks: Notebooks, load: Load, tables: Tables, server: Server };

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
  const grants = grantsOf(info, permissions);
  const everywhere = (names) => !names || names.length === 0 || names.includes("*");
  const admin = grants.some((grant) => (grant.rights ?? grant.permissions ?? []).includes("admin") && everywhere(grant.databases) && everywhere(grant.tables));
  const rights = new Set(permissions);
  if (rights.has("admin")) for (const right of ["read", "write", "delete"]) rights.add(right);
  return { open: false, admin, id: String(info.id ?? info.name ?? ""), name: info.name ?? "", grants, rights: [...rights] };
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
    <main class="login" id="main" tabIndex={-1}>
      <form onSubmit={go}>
        <h1>Log in</h1>
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

function useTheme() {
  const [theme, setTheme] = useState(() => recall("theme", ""));
  const media = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [systemDark, setSystemDark] = useState(media.matches);
  useEffect(() => {
    const changed = () => setSystemDark(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, []);
  const dark = isDark(theme, systemDark);
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
  // What was painted before the script was there; it stays until the server has said who this is.
  const known = useMemo(knownPages, []);

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

  const may = (right) => who?.rights.includes(right) ?? false;
  const pages = who === undefined ? known : PAGE_NAMES.filter((page) => (page === "load" ? may("write") : ["ask", "draw", "notebooks"].includes(page) ? may("read") || may("write") : who !== null));
  useEffect(() => {
    if (who) keepFrame(pages, who.open);
  }, [who]);
  const current = currentPage(pages, route.page);
  const app = { who, may, reader: who?.reader, dark, times, databases, database, setDatabase, refresh: () => Promise.all([refresh(), refreshSchema()]).catch(() => {}), schema };
  document.title = who ? `${TITLES[current]} – Arc` : "Arc";
  const top = who && (
    <>
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
    </>
  );
  return (
    <App.Provider value={app}>
      <Frame pages={pages} current={current} top={top}>
        {who ? (
          <Shown page={current} route={route} key={current} />
        ) : who === null ? (
          <Login reason={trouble} onDone={(found) => { setTrouble(""); setWho(found); }} />
        ) : trouble ? (
          <main class="login" id="main" tabIndex={-1}><Notice action={<Button onClick={enter}>Try again</Button>}>{trouble}</Notice></main>
        ) : (
          <Opening page={current} />
        )}
      </Frame>
    </App.Provider>
  );
}

function Shown({ page, route }) {
  const Page = PAGES[page];
  return (
    <main id="main" tabIndex={-1} class={`page ${page}`}>
      <h1 class="unseen">{TITLES[page]}</h1>
      <Page route={route} />
    </main>
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
