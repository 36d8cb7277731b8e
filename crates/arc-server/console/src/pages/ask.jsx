// Ask: SQL in tabs, and answers as rows, charts, summaries and plans.

import { useEffect, useRef, useState } from "preact/hooks";

import { get, path, query } from "../api.js";
import { exchange, forgetAll, localHistory, remember } from "../history.js";
import { keep, recall } from "../kept.js";
import { fixedState, inState, stateName } from "../lib/asof.js";
import { bytes, milliseconds } from "../lib/display.js";
import { MOST_ENTRIES } from "../lib/history.js";
import { count, moment } from "../lib/locale.js";
import { errorPlace, firstWord, quoteName, statementAt, statements, substitute } from "../lib/sql.js";
import { readPlan } from "../lib/plan.js";
import { AsOfPicker } from "../parts/asof.jsx";
import { Editor } from "../parts/editor.jsx";
import { Result } from "../parts/result.jsx";
import { SaveDocument, openDocuments } from "../parts/documents.jsx";
import { go, href, replace } from "../route.js";
import { Button, Dialog, Notice, copyText, useApp } from "../ui.jsx";

const FIRST = "-- Ctrl+Enter runs the statement at the cursor, or what is selected.\nSHOW TABLES;\n";
const HOUR = 3_600_000_000_000n;

let answers = {};

export function Ask({ route }) {
  const app = useApp();
  const [tabs, setTabs] = useState(() => recall("tabs", [{ id: 1, name: "Query 1", text: FIRST }]));
  const [current, setCurrent] = useState(() => recall("tab", 1));
  const [runs, setRuns] = useState(answers);
  const [shown, setShown] = useState("rows");
  const [dialog, setDialog] = useState("");
  const editor = useRef(null);
  const tab = tabs.find(({ id }) => id === current) ?? tabs[0];
  const run = runs[tab.id];

  const keepTabs = (next) => {
    keep("tabs", next);
    setTabs(next);
  };
  const pick = (id) => {
    keep("tab", id);
    setCurrent(id);
  };
  const asof = tab.asof ?? "";
  const open = (name, text, { document = null, asof = "" } = {}) => {
    const id = Math.max(0, ...tabs.map((other) => other.id)) + 1;
    keepTabs([...tabs, { id, name, text, document, asof }]);
    pick(id);
  };
  const close = (id) => {
    runs[id]?.controller?.abort();
    const left = tabs.filter((other) => other.id !== id);
    keepTabs(left.length > 0 ? left : [{ id: id + 1, name: "Query 1", text: "" }]);
    if (id === tab.id) pick(left.at(-1)?.id ?? id + 1);
  };
  const edit = (patch) => keepTabs(tabs.map((other) => (other.id === tab.id ? { ...other, ...patch } : other)));
  // A link may bring a statement; it is shown, never run by itself.
  useEffect(() => {
    const text = route.params.get("q");
    if (text === null) return;
    const state = route.params.get("asof") ?? "";
    if (tab.text !== text || asof !== state) open("From a link", text, { asof: state });
    const db = route.params.get("db");
    if (db) app.setDatabase(db);
    replace("ask");
  }, [route]);

  const put = (id, patch) => {
    answers = { ...answers, [id]: patch === null ? undefined : { ...answers[id], ...patch } };
    setRuns(answers);
  };
  const execute = async (list, offset = 0) => {
    if (list.length === 0 || runs[tab.id]?.controller) return;
    const id = tab.id;
    const controller = new AbortController();
    const now = BigInt(Date.now()) * 1_000_000n;
    editor.current?.setErrors([]);
    put(id, { controller, started: performance.now(), error: null, outcome: null, done: [], version: 0, at: 0, sql: "" });
    const done = [];
    for (const statement of list) {
      const plain = substitute(statement.text, { from: now - HOUR, to: now });
      let sql = plain;
      put(id, { sql, plain, asof: "", at: done.length, of: list.length });
      try {
        sql = inState(plain, asof, now);
        // What has no table of a database in it is the same at any time.
        put(id, { sql, asof: sql === plain ? "" : fixedState(asof, now) });
        const outcome = await query(sql, {
          database: app.database,
          signal: controller.signal,
          onProgress: (outcome) => put(id, { outcome, version: performance.now() }),
        });
        done.push({ sql, rows: outcome.rows.length, ms: outcome.ms });
        remember({ sql: statement.text, database: app.database, asof, rows: outcome.rows.length, ms: outcome.ms, at: Date.now() }, app.who);
        put(id, { outcome, version: performance.now(), done: [...done], ranIn: app.database });
        setShown((before) => (readPlan(outcome.rows) ? "plan" : before === "plan" ? "rows" : before));
        if (["create", "drop", "insert", "delete", "alter"].includes(firstWord(sql))) app.refresh();
      } catch (failed) {
        const stopped = failed.name === "AbortError";
        const message = stopped ? "Cancelled." : failed.message;
        remember({ sql: statement.text, database: app.database, asof, error: message, at: Date.now() }, app.who);
        put(id, { error: message, stopped, outcome: failed.partial ?? null, version: performance.now(), failedAt: done.length });
        // A line and a column are those of what was sent, a name is found in what was written as well.
        const place = stopped || (sql !== statement.text && / at Line: /.test(message)) ? null : errorPlace(message, statement.text);
        if (place) {
          editor.current?.setErrors([{ from: offset + statement.from + place.from, to: offset + statement.from + place.to, message }]);
        }
        break;
      }
    }
    put(id, { controller: null, ms: performance.now() - answers[id].started });
  };
  const wanted = () => {
    const text = editor.current?.text() ?? tab.text;
    const { from, to, head } = editor.current?.selection() ?? { from: 0, to: 0, head: 0 };
    if (from !== to) return [statements(text.slice(from, to)), from];
    const one = statementAt(text, head);
    return [one ? [one] : [], 0];
  };
  const runOne = () => execute(...wanted());
  const runAll = () => execute(statements(editor.current?.text() ?? tab.text));
  const explain = () => {
    const [list, offset] = wanted();
    const [one] = list;
    if (one) execute([{ ...one, text: /^\s*explain/i.test(one.text) ? one.text : `EXPLAIN ANALYZE ${one.text}` }], offset - 16);
  };
  // A while ago is another time tomorrow.
  const link = () => {
    const state = fixedState(asof, BigInt(Date.now()) * 1_000_000n);
    return new URL(href("ask", { q: editor.current?.text() ?? tab.text, db: app.database, asof: state }), location.href).href;
  };
  const cancel = () => {
    const { controller } = answers[tab.id] ?? {};
    controller?.abort();
  };
  const handlers = useRef({});
  handlers.current = { run: runOne, runAll, save: () => !app.reader && setDialog("save"), change: (text) => edit({ text }) };

  return (
    <>
      <SchemaTree onName={(name) => editor.current?.insert(name)} onTable={(table) => open(table, `SELECT *\nFROM ${quoteName(table)}\nORDER BY time DESC\nLIMIT 100;\n`)} />
      <section class="work" aria-label="Query" aria-busy={Boolean(run?.controller)} data-run={run?.started}>
        <div class="files">
          <div class="file-tabs" role="group" aria-label="Open queries">
            {tabs.map((other) => (
              <span class={`file ${other.id === tab.id ? "current" : ""}`} key={other.id}>
                <button type="button" aria-pressed={other.id === tab.id} onClick={() => pick(other.id)} onDblClick={() => setDialog("rename")}>
                  {other.name}
                  {runs[other.id]?.controller && <i class="busy" aria-label="runs" />}
                </button>
                <button type="button" class="shut" aria-label={`Close ${other.name}`} onClick={() => close(other.id)}>
                  ×
                </button>
              </span>
            ))}
          </div>
          <Button icon="plus" kind="ghost" label="New query" onClick={() => open(`Query ${Math.max(0, ...tabs.map(({ id }) => id)) + 1}`, "")} />
        </div>
        <Editor key={tab.id} text={tab.text} handle={editor} handlers={handlers} schema={app.schema} database={app.database} label="SQL" />
        <div class="toolbar">
          {run?.controller ? (
            <Button kind="danger" icon="stop" onClick={cancel}>Cancel</Button>
          ) : (
            <Button kind="primary" icon="run" onClick={runOne} title="Ctrl+Enter">Run</Button>
          )}
          <Button onClick={runAll} disabled={Boolean(run?.controller)} title="Ctrl+Shift+Enter">Run all</Button>
          <Button onClick={explain} disabled={Boolean(run?.controller)}>Explain</Button>
          {!app.reader && <Button icon="save" onClick={() => setDialog("save")} title="Ctrl+S">Save</Button>}
          <Button onClick={() => setDialog("open")}>Open…</Button>
          <Button onClick={() => setDialog("history")}>History</Button>
          <Button icon="copy" onClick={() => copyText(link())} title="Copies an address that shows this statement; it runs nothing">Link</Button>
          <AsOfPicker state={asof} onPick={(state) => edit({ asof: state })} />
          <div class="spacer" />
          {run && <Progress run={run} database={app.database} />}
        </div>
        {run?.error && <Notice kind={run.stopped ? "info" : "bad"}>{run.of > 1 ? `Statement ${run.failedAt + 1} of ${run.of}: ` : ""}{run.error}</Notice>}
        {run?.outcome?.truncated && (
          <Notice kind="info">These are the first {count(run.outcome.rows.length)} rows, as many as a page holds. A download has all of them.</Notice>
        )}
        {run?.outcome ? (
          <Result outcome={run.outcome} version={run.version} sql={run.sql} database={run.ranIn ?? app.database} shown={shown} onShow={setShown} onDraw={() => go("draw", { db: app.database, sql: run.plain, asof: run.asof })} />
        ) : (
          !run?.error && !run?.controller && <Hint />
        )}
      </section>
      {dialog === "save" && (
        <SaveDocument kind="query" name={tab.document?.name ?? tab.name} document={tab.document} body={{ sql: editor.current?.text() ?? tab.text, database: app.database, asof }} onClose={() => setDialog("")} onSaved={(document) => edit({ name: document.name, document })} />
      )}
      {dialog === "open" && <OpenQuery onClose={() => setDialog("")} onOpen={({ body, id, version, name, shared }) => { open(name, body.sql ?? "", { document: { id, version, name, shared }, asof: String(body.asof ?? "") }); if (body.database) app.setDatabase(body.database); }} />}
      {dialog === "history" && <History onClose={() => setDialog("")} onOpen={(text, state) => open("From history", text, { asof: state })} />}
      {dialog === "rename" && <Rename name={tab.name} onClose={() => setDialog("")} onDone={(name) => edit({ name })} />}
    </>
  );
}

function Hint() {
  return (
    <div class="empty">
      <p class="title">Ask something</p>
      <p>
        <kbd>Ctrl</kbd> <kbd>Enter</kbd> runs the statement at the cursor or what is selected, <kbd>Ctrl</kbd> <kbd>Shift</kbd> <kbd>Enter</kbd> all of them.
      </p>
      <p>Click a table on the left for its newest rows. <code>$from</code>, <code>$to</code> and <code>$interval</code> stand for the last hour here, and for the picked range in Draw.</p>
    </div>
  );
}

function Progress({ run, database }) {
  const [, tick] = useState(0);
  const [about, setAbout] = useState(null);
  useEffect(() => {
    if (!run.controller) return undefined;
    setAbout(null);
    const timer = setInterval(() => tick((before) => before + 1), 100);
    // What the server says of it, once it takes a while.
    const look = setInterval(async () => {
      const { queries = [] } = await get("api/v1/queries").catch(() => ({}));
      setAbout(queries.find((one) => one.database === database && run.sql.trim().startsWith(one.statement.slice(0, 190).trim())) ?? null);
    }, 1000);
    return () => {
      clearInterval(timer);
      clearInterval(look);
    };
  }, [run.controller, run.sql]);
  const rows = run.outcome?.rows.length ?? 0;
  if (run.controller) {
    const ms = performance.now() - run.started;
    const rate = rows > 0 ? `, ${count(Math.round((rows / ms) * 1000))} rows/s` : "";
    const files = about ? `, ${about.files_read} files read, ${about.files_left_out} left out` : "";
    return <span class="status" role="status">{milliseconds(ms)} · {count(rows)} rows · {bytes(run.outcome?.bytes ?? 0)}{rate}{files}</span>;
  }
  if (!run.outcome) return null;
  return (
    <span class="status" role="status">
      {count(rows)} {rows === 1 ? "row" : "rows"} · {milliseconds(run.outcome.ms ?? run.ms)} · {bytes(run.outcome.bytes)}
      {rows >= 1000 && ` · ${count(Math.round((rows / (run.outcome.ms ?? run.ms)) * 1000))} rows/s`}
      {run.of > 1 && ` · ${run.done.length} of ${run.of} statements`}
      {run.asof && ` · as of ${stateName(run.asof)}`}
    </span>
  );
}

function SchemaTree({ onName, onTable }) {
  const { schema, database, refresh } = useApp();
  const [open, setOpen] = useState({});
  const [filter, setFilter] = useState("");
  const tables = Object.entries(schema[database] ?? {}).filter(([name]) => name.toLowerCase().includes(filter.toLowerCase()));
  return (
    <aside class="tree" aria-label="Tables">
      <div class="tree-head">
        <input type="search" placeholder="Find a table" aria-label="Find a table" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <Button icon="refresh" kind="ghost" label="Refresh tables" onClick={refresh} />
      </div>
      <ul>
        {tables.slice(0, 500).map(([table, columns]) => (
          <li key={table}>
            <div class="tree-row">
              <button type="button" class="fold" aria-expanded={Boolean(open[table])} aria-label={`Columns of ${table}`} onClick={() => setOpen({ ...open, [table]: !open[table] })}>
                <svg class="icon" width="12" height="12" viewBox="0 0 24 24" aria-hidden="true"><path d="M9 6l6 6-6 6" /></svg>
              </button>
              <button type="button" class="name" onClick={() => onTable(table)} title={`Newest rows of ${table}`}>
                {table}
              </button>
              <span class="note">{columns.length}</span>
            </div>
            {open[table] && (
              <ul>
                {columns.slice(0, 1000).map(({ name, type }) => (
                  <li key={name}>
                    <button type="button" class="column" onClick={() => onName(quoteName(name))}>
                      <span>{name}</span>
                      <small>{type}</small>
                    </button>
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
        {tables.length === 0 && <li class="none">{filter ? "No table has this name." : "No tables here yet."}</li>}
      </ul>
    </aside>
  );
}

/** How a statement of the history ended, in a few words. */
function ended(entry) {
  return entry.error ?? `${count(entry.rows ?? 0)} rows in ${milliseconds(entry.ms ?? 0)}`;
}

function History({ onClose, onOpen }) {
  const { who, times } = useApp();
  const [filter, setFilter] = useState("");
  const [error, setError] = useState("");
  const [history, setHistory] = useState(localHistory);
  const trouble = (failed) => setError(`The history of your other browsers is not here: ${failed.message}`);
  useEffect(() => {
    exchange(who).then(setHistory, trouble);
  }, []);
  const forget = () => forgetAll(who).then(setHistory, trouble);
  const entries = history.entries.filter(({ sql }) => sql.toLowerCase().includes(filter.toLowerCase()));
  return (
    <Dialog title="History" onClose={onClose} wide>
      <input type="search" placeholder="Find" aria-label="Find in history" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
      {error && <Notice kind="info">{error}</Notice>}
      <ul class="list">
        {entries.map((entry) => (
          <li key={entry.at}>
            <button type="button" onClick={() => { onOpen(entry.sql, String(entry.asof ?? "")); onClose(); }}>
              <code>{entry.sql.slice(0, 300)}</code>
              <small class={entry.error ? "bad" : ""}>
                {[moment(entry.at, times), entry.database, entry.asof && `as of ${stateName(String(entry.asof))}`, ended(entry)].filter(Boolean).join(" · ")}
              </small>
            </button>
          </li>
        ))}
        {entries.length === 0 && <li class="none">{filter ? "Nothing has this in it." : `Nothing yet. The server keeps your last ${MOST_ENTRIES} statements.`}</li>}
      </ul>
      {history.entries.length > 0 && !who.reader && <footer><Button icon="trash" onClick={forget}>Forget all</Button></footer>}
    </Dialog>
  );
}

function OpenQuery({ onClose, onOpen }) {
  const { times, reader } = useApp();
  const { list, error, remove } = openDocuments("query");
  const pick = async ({ id }) => {
    onOpen(await get(path`api/v1/console/documents/${id}`));
    onClose();
  };
  return (
    <Dialog title="Saved queries" onClose={onClose} wide>
      {error && <Notice>{error}</Notice>}
      <ul class="list">
        {list?.map((document) => (
          <li key={document.id}>
            <button type="button" onClick={() => pick(document)}>
              <b>{document.name}</b>
              <small>{[document.owner, document.shared && "shared", moment(document.updated_at, times)].filter(Boolean).join(" · ")}</small>
            </button>
            {document.editable && !reader && <Button icon="trash" kind="ghost" label={`Delete ${document.name}`} onClick={() => remove(document)} />}
          </li>
        ))}
        {list?.length === 0 && <li class="none">None yet. Save keeps a query in the server, for you or for all.</li>}
      </ul>
    </Dialog>
  );
}

function Rename({ name, onClose, onDone }) {
  const [text, setText] = useState(name);
  const done = (event) => {
    event.preventDefault();
    if (text.trim()) onDone(text.trim());
    onClose();
  };
  return (
    <Dialog title="Rename" onClose={onClose}>
      <form onSubmit={done}>
        <label class="field wide">
          <span>Name</span>
          <input type="text" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <footer>
          <button type="submit" class="button primary">Rename</button>
        </footer>
      </form>
    </Dialog>
  );
}
