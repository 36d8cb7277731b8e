// Backups, made from here where the server has a folder for them; and snapshots, which are states of all databases with a name.

import { useState } from "preact/hooks";

import { change, get, query } from "../api.js";
import { fixedState } from "../lib/asof.js";
import { branchCommand } from "../lib/clients.js";
import { bytes, display } from "../lib/display.js";
import { count } from "../lib/locale.js";
import { quoteName } from "../lib/sql.js";
import { AsOfPicker } from "../parts/asof.jsx";
import { Button, Confirm, Dialog, Empty, Field, Notice, Snippet, useApp, useEvery, useLoad } from "../ui.jsx";

const SECOND = 1000;

export function Backups() {
  const { reader } = useApp();
  const [state, setState] = useState({ list: null, status: null, error: "", absent: false });
  const load = async () => {
    try {
      const [{ backups }, status] = await Promise.all([get("api/v1/backup"), get("api/v1/backup/status")]);
      setState({ list: backups, status, error: "", absent: false });
    } catch (error) {
      setState((before) => ({ ...before, absent: error.status === 404, error: error.message }));
    }
  };
  useEvery(load, state.absent ? 0 : 2 * SECOND);
  const [refused, setRefused] = useState("");
  const start = () => change("POST", "api/v1/backup", {}).then(() => { setRefused(""); load(); }, (error) => setRefused(error.message));
  if (state.absent) return <Empty title="No backups here"><p>Start the server with <code>--backup-dir FOLDER</code> to make them from here.</p></Empty>;
  const { status } = state;
  const running = status?.status === "running";
  return (
    <>
      {!reader && <div class="toolbar"><Button kind="primary" onClick={start} disabled={running}>{running ? "Running…" : "Back up now"}</Button></div>}
      {(refused || state.error) && <Notice>{refused || state.error}</Notice>}
      {status?.error && <Notice>{status.error}</Notice>}
      {running && <progress max={Math.max(1, status.total_files)} value={status.processed_files} aria-label="Backup" />}
      {status && status.status !== "idle" && <p>The last backup {status.backup_id}: {status.status}, {count(status.processed_files)} of {count(status.total_files)} files, {bytes(status.processed_bytes)} copied.</p>}
      {state.list?.length === 0 && <Empty title="No backups yet" />}
      {state.list?.length > 0 && (
        <table>
          <thead><tr><th scope="col">Backup</th><th scope="col">State</th></tr></thead>
          <tbody>{state.list.map((backup) => <tr key={backup.id}><td>{backup.id}</td><td>{backup.status}</td></tr>)}</tbody>
        </table>
      )}
    </>
  );
}

/** States of all databases that are kept under a name until they are dropped. */
export function Snapshots() {
  const { may, reader, times, who } = useApp();
  const [dialog, setDialog] = useState(null);
  const found = useLoad(() => query("SHOW SNAPSHOTS"), []);
  const rows = found.value?.rows;
  const at = (row, name) => (rows.index(name) < 0 ? null : rows.get(row, rows.index(name)));
  const list = rows ? Array.from({ length: rows.length }, (_, row) => ({ name: String(at(row, "name")), created: display(at(row, "created_at"), rows.fields[Math.max(0, rows.index("created_at"))], times), files: Number(at(row, "retired_files") ?? 0), bytes: Number(at(row, "retired_bytes") ?? 0) })) : [];
  const mayDrop = !reader && may("delete");
  return (
    <>
      <div class="toolbar">
        {!reader && may("write") && <Button kind="primary" icon="plus" onClick={() => setDialog({ what: "new" })}>New snapshot</Button>}
        {who.admin && <Button onClick={() => setDialog({ what: "branch", state: "" })}>Branch…</Button>}
      </div>
      {found.error && <Notice>{found.error}</Notice>}
      {rows && list.length === 0 && (
        <Empty title="No snapshots">
          <p>A snapshot keeps the state of all databases under a name, and copies nothing. Statements, notebooks and charts can be asked as of it, and a table restored.</p>
        </Empty>
      )}
      {list.length > 0 && (
        <table>
          <thead><tr><th scope="col">Name</th><th scope="col">Made</th><th scope="col" class="number">Files kept for it</th><th scope="col" class="number">On disk</th><th scope="col"><span class="unseen">Drop</span></th></tr></thead>
          <tbody>
            {list.map((one) => (
              <tr key={one.name}>
                <td><b>{one.name}</b></td>
                <td>{one.created}</td>
                <td class="number">{count(one.files)}</td>
                <td class="number">{bytes(one.bytes)}</td>
                <td class="actions">{who.admin && <Button label={`Branch of ${one.name}`} onClick={() => setDialog({ what: "branch", state: `@${one.name}` })}>Branch…</Button>}{mayDrop && <Button kind="danger" icon="trash" label={`Drop ${one.name}`} onClick={() => setDialog({ what: "drop", name: one.name })} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {dialog?.what === "new" && <NewSnapshot onClose={() => setDialog(null)} onDone={found.reload} />}
      {dialog?.what === "branch" && <Branch state={dialog.state} onPick={(state) => setDialog({ what: "branch", state })} onClose={() => setDialog(null)} />}
      {dialog?.what === "drop" && (
        <Confirm title="Drop the snapshot" name={dialog.name} verb="Drop" onClose={() => setDialog(null)} onConfirm={async () => { await query(`DROP SNAPSHOT ${quoteName(dialog.name)}`); found.reload(); }}>
          What only the snapshot <b>{dialog.name}</b> still has is gone for good.
        </Confirm>
      )}
    </>
  );
}

/** The command for a directory that begins as a state of this one; it needs the files of the server, so that a page cannot run it. */
function Branch({ state, onPick, onClose }) {
  const command = branchCommand(fixedState(state, BigInt(Date.now()) * 1_000_000n));
  return (
    <Dialog title="Branch" onClose={onClose} wide>
      <p class="hint">
        A branch is a data directory that begins as a state of this one and goes its own way, to try something on all of the data: its files are links, so that it takes seconds and no room. Run this where the server's
        data directory is, which may stay open, with its name for <code>./arc-data</code>; then <code>arc-server serve --data-dir ./arc-branch --http 127.0.0.1:8001</code>.
      </p>
      <AsOfPicker state={state} onPick={onPick} />
      <Snippet text={command} label="Command" />
    </Dialog>
  );
}

function NewSnapshot({ onClose, onDone }) {
  const [name, setName] = useState("");
  const [error, setError] = useState("");
  const make = async (event) => {
    event.preventDefault();
    try {
      await query(`CREATE SNAPSHOT ${quoteName(name)}`);
      onDone();
      onClose();
    } catch (failed) {
      setError(failed.message);
    }
  };
  return (
    <Dialog title="New snapshot" onClose={onClose}>
      <form onSubmit={make}>
        <Field label="Name" wide><input type="text" required value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>
        {error && <Notice>{error}</Notice>}
        <footer><button type="submit" class="button primary">Make</button></footer>
      </form>
    </Dialog>
  );
}
