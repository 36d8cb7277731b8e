// A table: its columns, files day by day, late rows, series and their last values, retention, its state of earlier; dropping it.

import { useState } from "preact/hooks";

import { get, path, query, queryRows } from "../api.js";
import { asOfClause } from "../lib/asof.js";
import { bytes, display } from "../lib/display.js";
import { count } from "../lib/locale.js";
import { quoteName } from "../lib/sql.js";
import { snapshotNames } from "../parts/asof.jsx";
import { useFollow } from "../parts/follow.js";
import { Grid } from "../parts/grid.jsx";
import { href } from "../route.js";
import { Button, Confirm, Dialog, Field, Notice, Select, Tabs, useApp, useLoad } from "../ui.jsx";
import { Retention } from "./retention.jsx";

const MOST_SERIES = 200;
const MOST_TAGS = 20;

export function TableDetails({ table, about, mayDrop, deletes, onGone, onChanged }) {
  const app = useApp();
  const { database } = app;
  const [asks, setAsks] = useState("");
  const [tab, setTab] = useState("newest");
  const columns = useLoad(() => get(path`api/v1/databases/${database}/measurements/${table}`), [database, table]);
  const files = useLoad(() => get(path`api/v1/databases/${database}/measurements/${table}/files`), [database, table]);
  const ends = useLoad(async () => (await queryRows(`SELECT min(time), max(time) FROM ${quoteName(table)}`, { database }))[0], [database, table]);
  const kinds = app.schema[database]?.[table] ?? [];
  const tags = kinds.filter(({ type }) => type === "tag").map(({ name }) => name);
  const kindOf = (name) => kinds.find((column) => column.name === name)?.type ?? "";
  const time = (value) => (value === null || value === undefined ? "–" : display(value, { type: { kind: "timestamp", unit: "ns" } }, app.times));
  const kept = files.value;
  const facts = [
    ["Rows", about ? count(about.row_count) : "–"],
    ["On disk", kept ? bytes(kept.bytes) : "–"],
    ["Files", kept ? count(kept.files) : "–"],
    ["Not in files yet", kept ? `${count(kept.buffered_rows)} rows` : "–"],
    ["Late, to be merged", kept ? `${count(kept.late_rows)} rows` : "–"],
    ["Oldest point", time(ends.value?.[0])],
    ["Newest point", time(ends.value?.[1])],
  ];
  const tabs = [["newest", "Newest rows"], ["columns", "Columns", columns.value ? count(columns.value.columns.length) : null], ["files", "Files by day", kept ? count(kept.days.length) : null]];
  if (tags.length > 0) tabs.splice(1, 0, ["series", "Last of each series"]);
  return (
    <section class="work scroll" aria-label={`Table ${table}`}>
      <div class="toolbar">
        <h2><a href="#/tables">{database}</a> / {table}</h2>
        <div class="spacer" />
        <a class="button" href={href("ask", { q: `SELECT *\nFROM ${quoteName(table)}\nORDER BY time DESC\nLIMIT 100;\n`, db: database })}>Ask</a>
        <a class="button" href={href("draw", { table, db: database })}>Draw</a>
        {mayDrop && <Button onClick={() => setAsks("restore")}>Restore…</Button>}
        {mayDrop && <Button kind="danger" icon="trash" onClick={() => setAsks("drop")}>Drop table</Button>}
      </div>
      {[columns, files].map(({ error }) => error && <Notice key={error}>{error}</Notice>)}
      <div class="pane">
        <dl class="facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
        <Tabs tabs={tabs} current={tab} onPick={setTab} label="About the table" />
        {tab === "newest" && <Newest key={table} table={table} />}
        {tab === "series" && <Series table={table} tags={tags.slice(0, MOST_TAGS)} />}
        {tab === "columns" && (
          <table>
            <thead><tr><th scope="col">Name</th><th scope="col">Is</th><th scope="col">Type</th></tr></thead>
            <tbody>{columns.value?.columns.slice(0, 2000).map((column) => <tr key={column.name}><td>{column.name}</td><td>{kindOf(column.name) === "tag" ? "tag" : column.name === "time" ? "time" : "field"}</td><td>{column.type}</td></tr>)}</tbody>
          </table>
        )}
        {tab === "files" && kept && <Days files={kept} />}
        <Retention database={database} table={table} enabled={deletes} />
      </div>
      {asks === "drop" && (
        <Confirm title="Drop the table" name={table} verb="Drop" onClose={() => setAsks("")} onConfirm={async () => { await query(`DROP TABLE ${quoteName(table)}`, { database }); onGone(); }}>
          All points of <b>{table}</b> are gone, but for what <code>history</code> and snapshots still have.
        </Confirm>
      )}
      {asks === "restore" && <Restore table={table} onClose={() => setAsks("")} onDone={() => { files.reload(); ends.reload(); onChanged(); }} />}
    </section>
  );
}

/** The newest rows of a table; they follow if that is wanted. */
function Newest({ table }) {
  const { database } = useApp();
  const [follows, setFollows] = useState(false);
  const [turn, setTurn] = useState(0);
  const trouble = useFollow(() => setTurn((before) => before + 1), database, follows ? [table] : []);
  return (
    <>
      <label class="check"><input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} /> Follow</label>
      {trouble && <Notice>Rows that come are not followed: {trouble}</Notice>}
      <Rows label={`Newest rows of ${table}`} sql={`SELECT * FROM ${quoteName(table)} ORDER BY time DESC LIMIT 50`} turn={turn} />
    </>
  );
}

/** The rows that a statement answers, in a box; asked again with each `turn`. */
function Rows({ sql, label, turn = 0 }) {
  const { database } = useApp();
  const found = useLoad(() => query(sql, { database }), [sql, database, turn]);
  if (found.error) return <Notice>{found.error}</Notice>;
  return <div class="grid-box">{found.value && <Grid rows={found.value.rows} version={1} label={label} />}</div>;
}

/** Each series, which is a set of tags, with the newest row that it has. */
function Series({ table, tags }) {
  const { database } = useApp();
  const names = tags.map(quoteName).join(", ");
  const number = useLoad(async () => (await queryRows(`SELECT count(*) FROM (SELECT DISTINCT ${names} FROM ${quoteName(table)}) AS series`, { database }))[0][0], [database, table]);
  return (
    <>
      <p class="hint" role="status">{number.error || (number.value === null ? "Counting…" : `${count(number.value)} series${number.value > MOST_SERIES ? `, of which ${MOST_SERIES} are here` : ""}.`)}</p>
      <Rows label={`Last row of each series of ${table}`} sql={`SELECT DISTINCT ON (${names}) * FROM ${quoteName(table)} ORDER BY ${names}, time DESC LIMIT ${MOST_SERIES}`} />
    </>
  );
}

const MOST_DAYS = 1000;

function Days({ files }) {
  const most = Math.max(1, ...files.days.map((day) => day.bytes));
  if (files.days.length === 0) return <p class="hint">All rows are still in memory and in the log; a flush puts them into files, day by day.</p>;
  return (
    <table>
      <caption class="unseen">Files by day</caption>
      <thead><tr><th scope="col">Day (UTC)</th><th scope="col" class="number">Rows</th><th scope="col" class="number">Late rows</th><th scope="col" class="number">Files</th><th scope="col" class="number">On disk</th></tr></thead>
      <tbody>
        {files.days.slice(0, MOST_DAYS).map((day) => (
          <tr key={day.day}>
            <td>{day.day}</td>
            <td class="number">{count(day.rows)}</td>
            <td class="number">{day.late_rows > 0 ? count(day.late_rows) : "–"}</td>
            <td class="number">{count(day.files)}</td>
            <td class="number time"><i style={{ width: `${(100 * day.bytes) / most}%` }} /><span>{bytes(day.bytes)}</span></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Makes a table again what it was. */
function Restore({ table, onClose, onDone }) {
  const { database } = useApp();
  const snapshots = useLoad(snapshotNames, []);
  const [state, setState] = useState("");
  const [asks, setAsks] = useState(false);
  const clause = asOfClause(state, BigInt(Date.now()) * 1_000_000n);
  const wanted = state.startsWith("@") ? `SNAPSHOT ${quoteName(state.slice(1))}` : (/'.*'/.exec(clause ?? "")?.[0] ?? "");
  if (asks) {
    return (
      <Confirm title="Restore the table" name={table} verb="Restore" onClose={onClose} onConfirm={async () => { await query(`RESTORE TABLE ${quoteName(table)} AS OF ${wanted}`, { database }); onDone(); }}>
        <b>{table}</b> becomes what it was as of {state.startsWith("@") ? `the snapshot ${state.slice(1)}` : wanted}. Points that came since are gone from it.
      </Confirm>
    );
  }
  return (
    <Dialog title="Restore the table" onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); if (clause) setAsks(true); }}>
        <p class="hint">Undoes a bad write or delete: the table becomes what it was. The server knows earlier states for as long as its setting <code>history</code> says, and snapshots until they are dropped.</p>
        {snapshots.value?.length > 0 && (
          <Field label="Snapshot" wide><Select value={state.startsWith("@") ? state : ""} options={[["", "–"], ...snapshots.value.map((name) => [`@${name}`, name])]} onPick={setState} /></Field>
        )}
        <Field label="Or as of (UTC)" hint="2026-01-31 12:00:00, or -10m" wide><input type="text" value={state.startsWith("@") ? "" : state} onInput={(event) => setState(event.currentTarget.value.trim())} /></Field>
        <footer><button type="submit" class="button primary" disabled={!clause}>Go on</button></footer>
      </form>
    </Dialog>
  );
}
