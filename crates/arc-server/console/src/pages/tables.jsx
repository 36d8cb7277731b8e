// Tables: databases and what is in them; making and dropping them.

import { useMemo, useState } from "preact/hooks";

import { change, get, path } from "../api.js";
import { bytes } from "../lib/display.js";
import { count } from "../lib/locale.js";
import { go, href } from "../route.js";
import { Button, Confirm, Dialog, Empty, Field, Notice, useApp, useLoad } from "../ui.jsx";
import { Retention } from "./retention.jsx";
import { TableDetails } from "./table.jsx";

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
  const mayDrop = deletes.value?.enabled && app.may("delete") && !app.reader;
  const total = (key) => list.reduce((sum, table) => sum + table[key], 0);
  const reload = () => {
    tables.reload();
    app.refresh();
  };
  if (chosen !== null && chosen !== undefined && route.params.has("table")) {
    return <TableDetails key={chosen} table={chosen} about={(tables.value?.measurements ?? []).find(({ measurement }) => measurement === chosen)} mayDrop={mayDrop} deletes={deletes.value?.enabled} onChanged={reload} onGone={() => { reload(); go("tables"); }} />;
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
