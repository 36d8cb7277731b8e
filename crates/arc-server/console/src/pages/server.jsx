// Server: rates as live charts, queries that run, tokens, backups, the log. What the token may not do is not offered.

import { useRef, useState } from "preact/hooks";

import { change, get, path } from "../api.js";
import { bytes, count, milliseconds } from "../lib/display.js";
import { rate } from "../lib/rates.js";
import { Chart } from "../parts/chart.jsx";
import { Button, Confirm, Dialog, Empty, Field, Notice, Select, Snippet, Tabs, useApp, useEvery, useLoad } from "../ui.jsx";

const SECOND = 1000;

export function Server() {
  const { who } = useApp();
  const [tab, setTab] = useState("now");
  const tabs = [["now", "Now"], ["queries", "Queries"]];
  if (who.admin && !who.open) tabs.push(["tokens", "Tokens"]);
  if (who.admin) tabs.push(["backups", "Backups"], ["log", "Log"]);
  return (
    <section class="work scroll" aria-label="Server">
      <Tabs tabs={tabs} current={tab} onPick={setTab} label="About the server" />
      <div class="pane">
        {tab === "now" && <Now />}
        {tab === "queries" && <Queries />}
        {tab === "tokens" && <Tokens />}
        {tab === "backups" && <Backups />}
        {tab === "log" && <Log />}
      </div>
    </section>
  );
}

const CHARTS = [
  { title: "Points written", unit: "", series: [["points/s", "arc_ingest_records_total", true], ["refused/s", "arc_ingest_errors_total", true]] },
  { title: "Queries", unit: "", series: [["queries/s", "arc_query_requests_total", true], ["failed/s", "arc_query_errors_total", true]] },
  { title: "Rows answered", unit: "", series: [["rows/s", "arc_query_rows_total", true]] },
  { title: "Requests", unit: "", series: [["requests/s", "arc_http_requests_total", true], ["failed/s", "arc_http_requests_error_total", true]] },
  { title: "Memory", unit: "bytes", series: [["process", "process_resident_memory_bytes", false], ["budget in use", "arc_memory_bytes", false]] },
  { title: "Storage", unit: "bytes", series: [["data files", "arc_storage_file_bytes", false], ["write-ahead log", "arc_wal_dir_bytes", false]] },
];
const KEPT = 300;

function Now() {
  const [samples, setSamples] = useState([]);
  const [error, setError] = useState("");
  const busy = useRef(false);
  useEvery(async () => {
    if (busy.current) return;
    busy.current = true;
    try {
      const values = await get("api/v1/metrics");
      setSamples((before) => [...before.slice(-KEPT), { at: Date.now() / 1000, values }]);
      setError("");
    } catch (failed) {
      setError(failed.message);
    }
    busy.current = false;
  }, 2 * SECOND);
  const last = samples.at(-1)?.values;
  const end = samples.at(-1)?.at ?? 0;
  const range = [Math.min(samples[0]?.at ?? 0, end - 60), end];
  const facts = last && [
    ["Up for", milliseconds(last.arc_uptime_seconds * 1000)],
    ["Databases", count(last.arc_databases)],
    ["Tables", count(last.arc_tables)],
    ["Series", count(last.arc_series)],
    ["Points written", count(last.arc_ingest_records_total)],
    ["Data files", `${count(last.arc_storage_files)}, ${bytes(last.arc_storage_file_bytes)}`],
    ["In buffers", `${count(last.arc_buffer_records_buffered)} points`],
    ["Slow queries", count(last.arc_slow_queries_total)],
  ];
  return (
    <>
      {error && <Notice>{error}</Notice>}
      {facts && <dl class="facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>}
      <div class="charts">
        {CHARTS.map(({ title, unit, series }) => (
          <section class="card" key={title} aria-label={title}>
            <h2>{title}</h2>
            <Chart data={rate(samples, series)} kind="area" unit={unit} height={150} range={range} />
          </section>
        ))}
      </div>
      <p class="hint">Every two seconds while you look. <code>/metrics</code> has the same for Prometheus.</p>
    </>
  );
}

function Queries() {
  const { may, who } = useApp();
  const [list, setList] = useState(null);
  const [error, setError] = useState("");
  const load = () => get("api/v1/queries").then(({ queries }) => { setList(queries); setError(""); }, (failed) => setError(failed.message));
  useEvery(load, SECOND);
  const kill = async (id) => {
    try {
      await change("DELETE", path`api/v1/queries/${id}`);
    } catch (failed) {
      if (failed.status !== 404) setError(failed.message);
    }
    load();
  };
  return (
    <>
      {error && <Notice>{error}</Notice>}
      {list?.length === 0 && <Empty title="Nothing runs"><p>Queries that wait or run are listed here, with a button that ends them.</p></Empty>}
      {list?.length > 0 && (
        <table>
          <thead><tr><th scope="col">Statement</th><th scope="col">Database</th><th scope="col" class="number">Time</th><th scope="col" class="number">Rows</th><th scope="col" class="number">Files read</th><th scope="col" class="number">Left out</th><th scope="col">State</th><th scope="col"><span class="unseen">End</span></th></tr></thead>
          <tbody>
            {list.map((query) => (
              <tr key={query.id}>
                <td><code class="statement">{query.statement}</code></td>
                <td>{query.database}</td>
                <td class="number">{milliseconds(query.duration_ms)}</td>
                <td class="number">{count(query.rows)}</td>
                <td class="number">{count(query.files_read)}</td>
                <td class="number">{count(query.files_left_out)}</td>
                <td>{query.state}</td>
                <td>{(may("read") || may("write")) && <Button kind="danger" label={`End the query ${query.statement.slice(0, 40)}`} onClick={() => kill(query.id)}>End</Button>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {who.admin && <SlowQueries />}
    </>
  );
}

/** Queries that took long, out of the log, which administrators may read. */
function SlowQueries() {
  const log = useLoad(() => get("api/v1/logs?limit=1000&since_minutes=1440"), []);
  const slow = (log.value?.logs ?? []).filter(({ message }) => message.startsWith("slow query"));
  if (slow.length === 0) return <p class="hint">No query of the last day took as long as the server's setting slow_query.</p>;
  return (
    <>
      <h2>Slow queries of the last day</h2>
      <table class="log">
        <tbody>{slow.slice(0, 100).map((line, index) => <tr key={index}><td class="nowrap">{line.timestamp.slice(0, 19).replace("T", " ")}</td><td>{line.message.slice("slow query".length)}</td></tr>)}</tbody>
      </table>
    </>
  );
}

function Tokens() {
  const { who } = useApp();
  const tokens = useLoad(() => get("api/v1/auth/tokens"), []);
  const [dialog, setDialog] = useState(null);
  const [secret, setSecret] = useState("");
  const act = async (method, address, value) => {
    const answer = await change(method, address, value);
    if (answer?.new_token) setSecret(answer.new_token);
    tokens.reload();
  };
  const when = (text) => (text ? new Date(text).toLocaleString() : "–");
  return (
    <>
      <div class="toolbar">
        <Button kind="primary" icon="plus" onClick={() => setDialog({ what: "new" })}>New token</Button>
      </div>
      {tokens.error && <Notice>{tokens.error}</Notice>}
      <table>
        <thead><tr><th scope="col">Name</th><th scope="col">May</th><th scope="col">Made</th><th scope="col">Last used</th><th scope="col">Ends</th><th scope="col">State</th><th scope="col"><span class="unseen">Change</span></th></tr></thead>
        <tbody>
          {tokens.value?.tokens.map((token) => (
            <tr key={token.id}>
              <td><b>{token.name}</b>{token.description && <small> {token.description}</small>}</td>
              <td>{rightsText(token)}</td>
              <td>{when(token.created_at)}</td>
              <td>{when(token.last_used_at)}</td>
              <td>{token.expires_at ? when(token.expires_at) : "never"}</td>
              <td>{token.enabled === false ? "revoked" : "in force"}</td>
              <td class="actions">
                {token.enabled === false ? (
                  <Button onClick={() => act("PATCH", path`api/v1/auth/tokens/${token.id}`, { enabled: true })}>Enable</Button>
                ) : (
                  <Button onClick={() => setDialog({ what: "revoke", token })}>Revoke</Button>
                )}
                <Button onClick={() => setDialog({ what: "rotate", token })}>Rotate</Button>
                <Button kind="danger" icon="trash" label={`Delete ${token.name}`} onClick={() => setDialog({ what: "delete", token })} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {dialog?.what === "new" && <NewToken onClose={() => setDialog(null)} onMade={(text) => { setSecret(text); tokens.reload(); }} />}
      {dialog?.what === "revoke" && <Confirm title="Revoke" verb="Revoke" onClose={() => setDialog(null)} onConfirm={() => act("POST", path`api/v1/auth/tokens/${dialog.token.id}/revoke`)}>The token <b>{dialog.token.name}</b> lets nobody in any more{dialog.token.name === who.name && ", you neither"}.</Confirm>}
      {dialog?.what === "rotate" && <Confirm title="Rotate" verb="Rotate" onClose={() => setDialog(null)} onConfirm={() => act("POST", path`api/v1/auth/tokens/${dialog.token.id}/rotate`)}>The token <b>{dialog.token.name}</b> gets another text; who has the old one is out at once.</Confirm>}
      {dialog?.what === "delete" && <Confirm title="Delete the token" name={dialog.token.name} verb="Delete" onClose={() => setDialog(null)} onConfirm={() => act("DELETE", path`api/v1/auth/tokens/${dialog.token.id}`)}>Who uses <b>{dialog.token.name}</b> is out at once, for good.</Confirm>}
      {secret && (
        <Dialog title="The token" onClose={() => setSecret("")}>
          <p>It is shown this once, and nobody can look it up later.</p>
          <Snippet text={secret} label="Token" />
        </Dialog>
      )}
    </>
  );
}

function rightsText(token) {
  const grants = token.grants ?? [token];
  return grants
    .map((grant) => {
      const rights = (grant.rights ?? grant.permissions ?? []).join(", ");
      const all = (names) => !names || names.length === 0 || (names.length === 1 && names[0] === "*");
      const where = [all(grant.databases) ? "" : ` in ${grant.databases.join(", ")}`, all(grant.tables) ? "" : ` for ${grant.tables.join(", ")}`].join("");
      return rights + where;
    })
    .join("; ");
}

function NewToken({ onClose, onMade }) {
  const [want, setWant] = useState({ name: "", right: "read,write", databases: "", tables: "", expires_in: "" });
  const [error, setError] = useState("");
  const set = (key) => (event) => setWant({ ...want, [key]: event.currentTarget.value });
  const names = (text) => text.split(",").map((name) => name.trim()).filter(Boolean);
  const make = async (event) => {
    event.preventDefault();
    const body = { name: want.name, permissions: want.right.split(",") };
    if (names(want.databases).length > 0) body.databases = names(want.databases);
    if (names(want.tables).length > 0) body.tables = names(want.tables);
    if (want.expires_in) body.expires_in = want.expires_in;
    try {
      const { token } = await change("POST", "api/v1/auth/tokens", body);
      onMade(token);
      onClose();
    } catch (failed) {
      setError(failed.message);
    }
  };
  return (
    <Dialog title="New token" onClose={onClose}>
      <form onSubmit={make}>
        <Field label="Name" wide><input type="text" required value={want.name} onInput={set("name")} /></Field>
        <Field label="May" wide>
          <Select value={want.right} options={[["read", "read"], ["write", "write"], ["read,write", "read and write"], ["read,write,delete", "read, write and delete"], ["admin", "everything (admin)"]]} onPick={(right) => setWant({ ...want, right })} />
        </Field>
        <Field label="Databases" hint="names or patterns such as plant*, with commas; empty: all" wide><input type="text" value={want.databases} onInput={set("databases")} /></Field>
        <Field label="Tables" hint="likewise" wide><input type="text" value={want.tables} onInput={set("tables")} /></Field>
        <Field label="Ends after" hint="24h, 30d; empty: never" wide><input type="text" value={want.expires_in} onInput={set("expires_in")} /></Field>
        {error && <Notice>{error}</Notice>}
        <footer><button type="submit" class="button primary">Make</button></footer>
      </form>
    </Dialog>
  );
}

function Backups() {
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
  const start = () => change("POST", "api/v1/backup", {}).then(load, (error) => setState((before) => ({ ...before, error: error.message })));
  if (state.absent) return <Empty title="No backups here"><p>Start the server with <code>--backup-dir FOLDER</code> to make them from here.</p></Empty>;
  const { status } = state;
  const running = status?.status === "running";
  return (
    <>
      <div class="toolbar"><Button kind="primary" onClick={start} disabled={running}>{running ? "Running…" : "Back up now"}</Button></div>
      {state.error && <Notice>{state.error}</Notice>}
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

function Log() {
  const [level, setLevel] = useState("info");
  const log = useLoad(() => get(`api/v1/logs?limit=300&since_minutes=1440&level=${level}`), [level]);
  return (
    <>
      <div class="toolbar">
        <Select label="Level" value={level} options={["error", "warn", "info", "debug"].map((name) => [name, `${name} and worse`])} onPick={setLevel} />
        <Button icon="refresh" label="Refresh" onClick={log.reload} />
      </div>
      {log.error && <Notice>{log.error}</Notice>}
      {log.value?.logs.length === 0 && <Empty title="Nothing was logged" />}
      <table class="log">
        <tbody>{log.value?.logs.map((line, index) => <tr key={index}><td class="nowrap">{line.timestamp.slice(0, 23).replace("T", " ")}</td><td class={`level ${line.level}`}>{line.level}</td><td>{line.message}</td></tr>)}</tbody>
      </table>
    </>
  );
}
