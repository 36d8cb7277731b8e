// Tables: databases and what is in them; a table's columns, files, retention and newest values; dropping.

import { useMemo, useState } from "preact/hooks";

import { change, get, path, query, queryRows } from "../api.js";
import { bytes, count, display } from "../lib/display.js";
import { quoteName, quoteText } from "../lib/sql.js";
import { Grid } from "../parts/grid.jsx";
import { go, href } from "../route.js";
import { Button, Confirm, Dialog, Empty, Field, Notice, useApp, useLoad } from "../ui.jsx";

const MIB = 1024 * 1024;

export function Tables({ route }) {
  const app = useApp();
  const { database } = app;
  const tables = useLoad(() => get(`api/v1/measurements?database=${encodeURIComponent(database)}`), [database, app.databases]);
  const deletes = useLoad(() => get("api/v1/delete/config"), []);
  const [filter, setFilter] = useState("");
  const [dialog, setDialog] = useState(null);
  const chosen = route.params.get("table");
  const list = useMemo(() => (tables.value?.measurements ?? []).filter(({ measurement }) => measurement.toLowerCase().includes(filter.toLowerCase())), [tables.value, filter]);
  const mayDrop = deletes.value?.enabled && app.may("delete");
  const total = (key) => list.reduce((sum, table) => sum + table[key], 0);
  const reload = () => {
    tables.reload();
    app.refresh();
  };
  if (chosen !== null && chosen !== undefined && route.params.has("table")) {
    return <TableDetails key={chosen} table={chosen} about={(tables.value?.measurements ?? []).find(({ measurement }) => measurement === chosen)} mayDrop={mayDrop} deletes={deletes.value?.enabled} onGone={() => { reload(); go("tables"); }} />;
  }
  return (
    <section class="work scroll" aria-label="Tables">
      <div class="toolbar">
        <h2>{database}</h2>
        <input type="search" placeholder="Find a table" aria-label="Find a table" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <div class="spacer" />
        <Button icon="refresh" label="Refresh" onClick={reload} />
        {app.may("write") && <Button icon="plus" onClick={() => setDialog("create")}>Database</Button>}
        {mayDrop && <Button kind="danger" icon="trash" onClick={() => setDialog("drop")}>Drop database</Button>}
      </div>
      {tables.error && <Notice>{tables.error}</Notice>}
      <div class="pane">
        {list.length === 0 && tables.value ? (
          <Empty title="No tables here yet"><p><a href="#/load">Bring some data in</a>, or pick another database.</p></Empty>
        ) : (
          <table>
            <caption class="unseen">Tables of {database}</caption>
            <thead>
              <tr><th scope="col">Table</th><th scope="col" class="number">Rows</th><th scope="col" class="number">On disk</th><th scope="col" class="number">Files</th><th scope="col" class="number">Columns</th></tr>
            </thead>
            <tbody>
              {list.slice(0, 2000).map((table) => (
                <tr key={table.measurement}>
                  <td><a href={href("tables", { table: table.measurement })}>{table.measurement}</a></td>
                  <td class="number">{count(table.row_count)}</td>
                  <td class="number">{bytes(Math.round(table.total_size_mb * MIB))}</td>
                  <td class="number">{count(table.file_count)}</td>
                  <td class="number">{app.schema[database]?.[table.measurement]?.length ?? ""}</td>
                </tr>
              ))}
            </tbody>
            <tfoot>
              <tr><th scope="row">{count(list.length)} tables</th><td class="number">{count(total("row_count"))}</td><td class="number">{bytes(Math.round(total("total_size_mb") * MIB))}</td><td class="number">{count(total("file_count"))}</td><td /></tr>
            </tfoot>
          </table>
        )}
        <Retention database={database} enabled={deletes.value?.enabled} />
      </div>
      {dialog === "create" && <CreateDatabase onClose={() => setDialog(null)} onDone={(name) => { app.refresh(); app.setDatabase(name); }} />}
      {dialog === "drop" && (
        <Confirm title="Drop the database" name={database} verb="Drop" onClose={() => setDialog(null)} onConfirm={async () => { await change("DELETE", path`api/v1/databases/${database}` + "?confirm=true"); reload(); }}>
          All tables of <b>{database}</b> and all of their points are gone for good.
        </Confirm>
      )}
    </section>
  );
}

function CreateDatabase({ onClose, onDone }) {
  const [name, setName] = useState("");
  const [error, setError] = useState("");
  const make = async (event) => {
    event.preventDefault();
    try {
      await change("POST", "api/v1/databases", { name });
      onDone(name);
      onClose();
    } catch (failed) {
      setError(failed.message);
    }
  };
  return (
    <Dialog title="New database" onClose={onClose}>
      <form onSubmit={make}>
        <Field label="Name" wide><input type="text" required value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>
        {error && <Notice>{error}</Notice>}
        <footer><button type="submit" class="button primary">Create</button></footer>
      </form>
    </Dialog>
  );
}

function retentionPath(database, table) {
  return table ? path`api/v1/retention/${database}/${table}` : path`api/v1/retention/${database}`;
}

/** How long points are kept; changed where the server and the token allow it. */
function Retention({ database, table, enabled }) {
  const { may } = useApp();
  const found = useLoad(() => get(retentionPath(database, table)).catch((error) => (error.status === 404 ? { retention_days: undefined } : Promise.reject(error))), [database, table]);
  const [days, setDays] = useState("");
  const [asks, setAsks] = useState(false);
  const value = found.value?.retention_days;
  const text = value === undefined ? (table ? "as its database says" : "for ever") : value === null ? "for ever" : `${value} days`;
  const put = async () => {
    if (days === "") await change("DELETE", retentionPath(database, table));
    else await change("PUT", retentionPath(database, table), { retention_days: Number(days) });
    found.reload();
  };
  return (
    <section class="card slim" aria-label="Retention">
      <h2>Points are kept {text}</h2>
      {found.error && <Notice>{found.error}</Notice>}
      {enabled && may("admin") ? (
        <form class="row" onSubmit={(event) => { event.preventDefault(); setAsks(true); }}>
          <Field label="Days" hint="empty: no setting of its own"><input type="number" min="0.01" step="any" value={days} onInput={(event) => setDays(event.currentTarget.value)} /></Field>
          <button type="submit" class="button">Change</button>
        </form>
      ) : (
        <p class="hint">{enabled === false ? "The server was started without --delete-enabled, so this cannot be changed." : ""}</p>
      )}
      {asks && (
        <Confirm title="How long points are kept" name={days === "" ? undefined : (table ?? database)} verb="Change" onClose={() => setAsks(false)} onConfirm={put}>
          {days === "" ? "No point goes because of its age any more." : <>Points of <b>{table ?? database}</b> that are older than {days} days go for good, from now on.</>}
        </Confirm>
      )}
    </section>
  );
}

function TableDetails({ table, about, mayDrop, deletes, onGone }) {
  const app = useApp();
  const { database } = app;
  const [asks, setAsks] = useState(false);
  const columns = useLoad(() => get(path`api/v1/databases/${database}/measurements/${table}`), [database, table]);
  const newest = useLoad(() => query(`SELECT * FROM ${quoteName(table)} ORDER BY time DESC LIMIT 50`, { database }), [database, table]);
  const ends = useLoad(async () => (await queryRows(`SELECT min(time), max(time) FROM ${quoteName(table)}`, { database }))[0], [database, table]);
  const files = useLoad(() => queryRows(`SELECT * FROM information_schema.tables WHERE table_schema = ${quoteText(database)} AND table_name = ${quoteText(table)}`, { database }), [database, table]);
  const time = (value) => (value === null || value === undefined ? "–" : display(value, { type: { kind: "timestamp", unit: "ns" } }, { local: app.local }));
  return (
    <section class="work scroll" aria-label={`Table ${table}`}>
      <div class="toolbar">
        <h2><a href="#/tables">{database}</a> / {table}</h2>
        <div class="spacer" />
        <a class="button" href={href("ask", { q: `SELECT *\nFROM ${quoteName(table)}\nORDER BY time DESC\nLIMIT 100;\n`, db: database })}>Ask</a>
        <a class="button" href={href("draw", { table, db: database })}>Draw</a>
        {mayDrop && <Button kind="danger" icon="trash" onClick={() => setAsks(true)}>Drop table</Button>}
      </div>
      {[columns, newest, files].map(({ error }) => error && <Notice key={error}>{error}</Notice>)}
      <div class="pane">
        <dl class="facts">
          <div><dt>Rows</dt><dd>{about ? count(about.row_count) : "–"}</dd></div>
          <div><dt>On disk</dt><dd>{about ? bytes(Math.round(about.total_size_mb * MIB)) : "–"}</dd></div>
          <div><dt>Files</dt><dd>{about ? count(about.file_count) : "–"}</dd></div>
          <div><dt>Oldest point</dt><dd>{time(ends.value?.[0])}</dd></div>
          <div><dt>Newest point</dt><dd>{time(ends.value?.[1])}</dd></div>
        </dl>
        <div class="columns">
          <section>
            <h2>Columns</h2>
            <table>
              <thead><tr><th scope="col">Name</th><th scope="col">Type</th></tr></thead>
              <tbody>{columns.value?.columns.slice(0, 2000).map((column) => <tr key={column.name}><td>{column.name}</td><td>{column.type}</td></tr>)}</tbody>
            </table>
          </section>
          <Retention database={database} table={table} enabled={deletes} />
        </div>
        <h2>Newest rows</h2>
        {newest.value && <div class="grid-box"><Grid rows={newest.value.rows} version={1} label={`Newest rows of ${table}`} /></div>}
      </div>
      {asks && (
        <Confirm title="Drop the table" name={table} verb="Drop" onClose={() => setAsks(false)} onConfirm={async () => { await query(`DROP TABLE ${quoteName(table)}`, { database }); onGone(); }}>
          All points of <b>{table}</b> are gone for good.
        </Confirm>
      )}
    </section>
  );
}
