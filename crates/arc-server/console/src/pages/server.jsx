// Server: rates as live charts, queries that run, the log; tabs lead to the rest. What the token may not do is not offered.

import { useEffect, useRef, useState } from "preact/hooks";

import { change, get, path } from "../api.js";
import { bytes, milliseconds } from "../lib/display.js";
import { count } from "../lib/locale.js";
import { rate, samplesOf } from "../lib/rates.js";
import { rightsText } from "../lib/rights.js";
import { formatTime, parseTime } from "../lib/time.js";
import { Chart } from "../parts/chart.jsx";
import { replace } from "../route.js";
import { Button, Confirm, Empty, Notice, Select, Tabs, useApp, useEvery, useLoad } from "../ui.jsx";
import { Backups, Snapshots } from "./backups.jsx";
import { Cluster } from "./cluster.jsx";
import { Continuous } from "./continuous.jsx";
import { RetentionList } from "./retention.jsx";
import { Tokens } from "./tokens.jsx";

const SECOND = 1000;

const PANES = { now: Now, queries: Queries, cluster: Cluster, continuous: Continuous, snapshots: Snapshots, retention: RetentionList, tokens: Tokens, backups: Backups, log: Log };

export function Server({ route }) {
  const { who, may } = useApp();
  const cluster = useLoad(() => get("api/v1/cluster"), []);
  const tabs = [["now", "Now"], ["queries", "Queries"]];
  if (cluster.value?.nodes.length > 0) tabs.push(["cluster", "Cluster"]);
  if (may("admin")) tabs.push(["continuous", "Continuous queries"]);
  if (may("read")) tabs.push(["snapshots", "Snapshots"], ["retention", "Retention"]);
  if (who.admin && !who.open) tabs.push(["tokens", "Tokens"]);
  if (who.admin) tabs.push(["backups", "Backups"], ["log", "Log"]);
  const asked = route.params.get("tab");
  const [picked, setTab] = useState(asked ?? "now");
  useEffect(() => {
    if (asked) setTab(asked);
  }, [route]);
  const tab = tabs.some(([name]) => name === picked) ? picked : "now";
  const Pane = PANES[tab];
  return (
    <section class="work scroll" aria-label="Server">
      <Tabs tabs={tabs} current={tab} onPick={(name) => { setTab(name); replace("server", { tab: name }); }} label="About the server" />
      <div class="pane"><Pane /></div>
    </section>
  );
}

const CHARTS = [
  { title: "Points written", unit: "", series: [["points/s", "arc_ingest_records_total", true], ["refused/s", "arc_ingest_errors_total", true]] },
  { title: "Queries", unit: "", series: [["queries/s", "arc_query_requests_total", true], ["failed/s", "arc_query_errors_total", true]] },
  { title: "Rows answered", unit: "", series: [["rows/s", "arc_query_rows_total", true]] },
  { title: "Requests", unit: "", series: [["requests/s", "arc_http_requests_total", true], ["failed/s", "arc_http_requests_error_total", true]] },
  { title: "Memory", unit: "bytes", series: [["process", "process_resident_memory_bytes", false], ["budget in use", "arc_memory_bytes", false]] },
  { title: "Write-ahead log", unit: "bytes", series: [["on disk", "arc_wal_dir_bytes", false], ["kept for history", "arc_history_log_bytes", false]] },
  { title: "Data files", unit: "bytes", series: [["in tables", "arc_storage_file_bytes", false], ["kept for history and snapshots", "arc_storage_file_bytes_retired", false]] },
];
const KEPT = 300;

const SPANS = [["live", "Live"], ["60", "Last hour"], ["1440", "Last day"]];

function Now() {
  const { who } = useApp();
  const [span, setSpan] = useState("live");
  const [samples, setSamples] = useState([]);
  const [past, setPast] = useState([]);
  const [error, setError] = useState("");
  const health = useLoad(() => get("health"), []);
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
  // The server remembers what it was, once a minute.
  useEvery(async () => {
    try {
      const parts = await Promise.all(["system", "api", "application"].map((type) => get(`api/v1/metrics/timeseries/${type}?duration_minutes=${span}`)));
      setPast(samplesOf(parts.map(({ data }) => data)));
    } catch (failed) {
      setError(failed.message);
    }
  }, span === "live" ? 0 : 60 * SECOND, [span]);
  const last = samples.at(-1)?.values;
  const drawn = span === "live" ? samples : past;
  const end = (drawn.at(-1) ?? samples.at(-1))?.at ?? 0;
  const range = [span === "live" ? Math.min(samples[0]?.at ?? 0, end - 60) : end - 60 * Number(span), end];
  const facts = last && [
    ["Role", health.value?.role === "reader" ? "reader: follows a writer" : (health.value?.role ?? "–")],
    ["Version", health.value?.version ?? "–"],
    ["Up for", milliseconds(last.arc_uptime_seconds * 1000)],
    ["Databases", count(last.arc_databases)],
    ["Tables", count(last.arc_tables)],
    ["Series", count(last.arc_series)],
    ["Points written", count(last.arc_ingest_records_total)],
    ["Data files", `${count(last.arc_storage_files)}, ${bytes(last.arc_storage_file_bytes)}`],
    ["Points in buffers", count(last.arc_buffer_records_buffered)],
    ["Slow queries", count(last.arc_slow_queries_total)],
  ];
  if (facts && !who.open) facts.push([`The token ${who.name} may`, rightsText(who.grants)]);
  return (
    <>
      {error && <Notice>{error}</Notice>}
      {facts && <dl class="facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>}
      <div class="toolbar"><Select label="Charts of" value={span} options={SPANS} onPick={setSpan} /></div>
      <div class="charts">
        {CHARTS.map(({ title, unit, series }) => (
          <section class="card" key={title} aria-label={title}>
            <h2>{title}</h2>
            <Chart data={rate(drawn, series)} kind="area" unit={unit} height={150} range={range} />
          </section>
        ))}
      </div>
      <p class="hint">{span === "live" ? "Every two seconds while you look." : "Once a minute, since the server started."} <code>/metrics</code> has the same for Prometheus.</p>
    </>
  );
}

function Queries() {
  const { may, who } = useApp();
  const [list, setList] = useState(null);
  const [error, setError] = useState("");
  const load = () => get("api/v1/queries").then(({ queries }) => { setList(queries); setError(""); }, (failed) => setError(failed.message));
  useEvery(load, SECOND);
  const [asks, setAsks] = useState(null);
  const kill = async ({ id }) => {
    await change("DELETE", path`api/v1/queries/${id}`).catch((failed) => {
      // One that has ended meanwhile is what was wanted.
      if (failed.status !== 404) throw failed;
    });
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
                <td>{(may("read") || may("write")) && <Button kind="danger" label={`End the query ${query.statement.slice(0, 40)}`} onClick={() => setAsks(query)}>End</Button>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {asks && (
        // The list moves once a second: what is ended is what was read here.
        <Confirm title="End the query" verb="End" onClose={() => setAsks(null)} onConfirm={() => kill(asks)}>
          Who asked is told that it was cancelled. In the database <b>{asks.database}</b>: <code class="statement">{asks.statement}</code>
        </Confirm>
      )}
      {who.admin && <SlowQueries />}
    </>
  );
}

/** Queries that took long, out of the log, which administrators may read. */
function SlowQueries() {
  const { times } = useApp();
  const log = useLoad(() => get("api/v1/logs?limit=1000&since_minutes=1440"), []);
  const slow = (log.value?.logs ?? []).filter(({ message }) => message.startsWith("slow query"));
  if (slow.length === 0) return <p class="hint">No query of the last day took as long as the server's setting slow_query.</p>;
  return (
    <>
      <h2>Slow queries of the last day</h2>
      <table class="log">
        <tbody>{slow.slice(0, 100).map((line, index) => <tr key={index}><td class="nowrap">{logTime(line.timestamp, times)}</td><td>{line.message.slice("slow query".length)}</td></tr>)}</tbody>
      </table>
    </>
  );
}

const LEVELS = ["error", "warn", "info", "debug"];

/** The last lines of the log, which follow by themselves. */
function Log() {
  const { times } = useApp();
  const [level, setLevel] = useState("info");
  const [filter, setFilter] = useState("");
  const [follows, setFollows] = useState(true);
  const [state, setState] = useState({ lines: null, error: "" });
  const load = () => get(`api/v1/logs?limit=300&since_minutes=1440&level=${level}`).then(
    ({ logs }) => setState({ lines: logs, error: "" }),
    (failed) => setState((before) => ({ ...before, error: failed.message })),
  );
  useEvery(load, follows ? 2 * SECOND : 0, [level]);
  const lines = (state.lines ?? []).filter(({ message }) => message.toLowerCase().includes(filter.toLowerCase()));
  return (
    <>
      <div class="toolbar">
        <Select label="Level" value={level} options={LEVELS.map((name) => [name, `${name} and worse`])} onPick={setLevel} />
        <input type="search" placeholder="Find" aria-label="Find in the log" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <label class="check"><input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} /> Follow</label>
      </div>
      {state.error && <Notice>{state.error}</Notice>}
      {state.lines && lines.length === 0 && <Empty title={filter ? "No line has this in it" : "Nothing was logged"} />}
      <table class="log">
        <tbody>{lines.map((line, index) => <tr key={index}><td class="nowrap">{logTime(line.timestamp, times)}</td><td class={`level ${line.level}`}>{line.level}</td><td>{line.message}</td></tr>)}</tbody>
      </table>
    </>
  );
}

/** Milliseconds are enough for a log. */
function logTime(text, times) {
  const ns = parseTime(text);
  return ns === null ? text : formatTime(ns - (((ns % 1_000_000n) + 1_000_000n) % 1_000_000n), times);
}
