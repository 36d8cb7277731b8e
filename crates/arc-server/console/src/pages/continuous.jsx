// Continuous queries: statements whose rows the server writes to another table, window by window. Made, run, paused, changed, deleted.

import { useState } from "preact/hooks";

import { change, get, path } from "../api.js";
import { count, moment } from "../lib/locale.js";
import { parseTime } from "../lib/time.js";
import { Button, Confirm, Dialog, Empty, Field, Notice, useApp, useEvery, useLoad } from "../ui.jsx";

const ALL = "api/v1/continuous_queries";
const REFRESH_MS = 5_000;
const SAMPLE = `SELECT date_bin(INTERVAL '1 minute', time) AS time, host, avg(usage) AS usage
FROM cpu
WHERE time >= {start_time} AND time < {end_time}
GROUP BY 1, 2`;

export function Continuous() {
  const { times, reader } = useApp();
  const [list, setList] = useState(null);
  const [error, setError] = useState("");
  // What a button was answered stays until the next one, however often the list is read anew.
  const [told, setTold] = useState(null);
  const [dialog, setDialog] = useState(null);
  const load = () => get(ALL).then((found) => { setList(found); setError(""); }, (failed) => setError(failed.message));
  useEvery(load, REFRESH_MS);
  const act = async (work) => {
    setTold(null);
    try {
      const text = await work();
      if (text) setTold({ kind: "good", text });
    } catch (failed) {
      setTold({ kind: "bad", text: failed.message });
    }
    load();
  };
  const run = ({ id, name }) => act(async () => `${name} wrote ${count((await change("POST", path`api/v1/continuous_queries/${id}/execute`, {})).records_written)} rows.`);
  const pause = ({ id, is_active: active }) => act(() => change("PUT", path`api/v1/continuous_queries/${id}`, { is_active: !active }).then(() => ""));
  return (
    <>
      {!reader && <div class="toolbar"><Button kind="primary" icon="plus" onClick={() => setDialog({ what: "edit", query: null })}>New continuous query</Button></div>}
      {error && <Notice>{error}</Notice>}
      {told && <Notice kind={told.kind}>{told.text}</Notice>}
      {list?.length === 0 && <Empty title="No continuous queries"><p>One writes what it answers to another table, at the end of each interval: averages of a minute that are kept for years, say.</p></Empty>}
      {list?.length > 0 && (
        <table>
          <thead><tr><th scope="col">Name</th><th scope="col">From, to</th><th scope="col">Every</th><th scope="col">Written up to</th><th scope="col">Last run</th><th scope="col"><span class="unseen">Change</span></th></tr></thead>
          <tbody>
            {list.map((query) => (
              <tr key={query.id}>
                <td><b>{query.name}</b>{query.description && <small> {query.description}</small>}</td>
                <td>{query.database} / {query.source_measurement} → {query.destination_measurement}</td>
                <td>{query.is_active ? query.interval : <>{query.interval} <small>(paused)</small></>}</td>
                <td>{query.last_processed_time ? moment(query.last_processed_time, times) : "–"}</td>
                <td>{query.last_execution_time ? `${moment(query.last_execution_time, times)}: ${query.last_execution_status}, ${count(query.last_records_written ?? 0)} rows` : "–"}</td>
                <td class="actions">
                  <Button onClick={() => setDialog({ what: "runs", query })}>Runs</Button>
                  {!reader && (
                    <>
                      <Button onClick={() => run(query)}>Run now</Button>
                      <Button onClick={() => pause(query)}>{query.is_active ? "Pause" : "Go on"}</Button>
                      <Button onClick={() => setDialog({ what: "edit", query })}>Edit</Button>
                      <Button kind="danger" icon="trash" label={`Delete ${query.name}`} onClick={() => setDialog({ what: "delete", query })} />
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {dialog?.what === "edit" && <EditQuery query={dialog.query} onClose={() => setDialog(null)} onDone={load} />}
      {dialog?.what === "runs" && <Runs query={dialog.query} onClose={() => setDialog(null)} />}
      {dialog?.what === "delete" && (
        <Confirm title="Delete the continuous query" name={dialog.query.name} verb="Delete" onClose={() => setDialog(null)} onConfirm={async () => { await change("DELETE", path`api/v1/continuous_queries/${dialog.query.id}`); load(); }}>
          <b>{dialog.query.name}</b> writes nothing any more. What it has written stays.
        </Confirm>
      )}
    </>
  );
}

function EditQuery({ query, onClose, onDone }) {
  const { database, schema } = useApp();
  const tables = Object.keys(schema[database] ?? {});
  const [want, setWant] = useState(query ?? { name: "", description: "", database, source_measurement: tables[0] ?? "", destination_measurement: "", query: SAMPLE, interval: "1m", tag_columns: null, is_active: true });
  const [days, setDays] = useState(String(query?.retention_days ?? ""));
  const [error, setError] = useState("");
  const set = (key) => (event) => setWant({ ...want, [key]: event.currentTarget.value });
  const put = async (event) => {
    event.preventDefault();
    const { name, source_measurement, destination_measurement, interval, is_active } = want;
    const body = { name, database: want.database, source_measurement, destination_measurement, query: want.query, interval, is_active, description: want.description || null, retention_days: days === "" ? null : Number(days) };
    try {
      await (query ? change("PUT", path`api/v1/continuous_queries/${query.id}`, body) : change("POST", ALL, body));
      onDone();
      onClose();
    } catch (failed) {
      setError(failed.message);
    }
  };
  return (
    <Dialog title={query ? `Change ${query.name}` : "New continuous query"} onClose={onClose} wide>
      <form onSubmit={put}>
        <div class="row">
          <Field label="Name"><input type="text" required value={want.name} onInput={set("name")} /></Field>
          <Field label="Database"><input type="text" required value={want.database} onInput={set("database")} /></Field>
          <Field label="Every" hint="10s, 1m, 1h, 1d"><input type="text" required value={want.interval} onInput={set("interval")} /></Field>
        </div>
        <div class="row">
          <Field label="Reads the table"><input type="text" required list="continuous-tables" value={want.source_measurement} onInput={set("source_measurement")} /></Field>
          <Field label="Writes the table"><input type="text" required value={want.destination_measurement} onInput={set("destination_measurement")} /></Field>
          <Field label="Kept for days" hint="empty: as it is"><input type="number" min="1" step="1" value={days} onInput={(event) => setDays(event.currentTarget.value)} /></Field>
          <datalist id="continuous-tables">{tables.slice(0, 500).map((name) => <option key={name} value={name} />)}</datalist>
        </div>
        <Field label="SQL" hint="{start_time} and {end_time} are the ends of the window; its rows have a column time" wide>
          <textarea class="code" rows={7} required spellcheck={false} value={want.query} onInput={set("query")} />
        </Field>
        <Field label="What it is for" wide><input type="text" value={want.description ?? ""} onInput={set("description")} /></Field>
        {error && <Notice>{error}</Notice>}
        <footer><button type="submit" class="button primary">{query ? "Save" : "Make"}</button></footer>
      </form>
    </Dialog>
  );
}

/** The last runs of a query; and another one, over times that came late. */
function Runs({ query, onClose }) {
  const { times, reader } = useApp();
  const found = useLoad(() => get(path`api/v1/continuous_queries/${query.id}/executions` + "?limit=50"), [query.id]);
  const [range, setRange] = useState({ from: "", to: "" });
  const [answer, setAnswer] = useState(null);
  const ready = parseTime(range.from) !== null && parseTime(range.to) !== null;
  const again = async (event) => {
    event.preventDefault();
    try {
      const done = await change("POST", path`api/v1/continuous_queries/${query.id}/execute`, { start_time: range.from, end_time: range.to });
      setAnswer({ kind: "good", text: `${count(done.records_written)} rows were written.` });
    } catch (failed) {
      setAnswer({ kind: "bad", text: failed.message });
    }
    found.reload();
  };
  return (
    <Dialog title={`Runs of ${query.name}`} onClose={onClose} wide>
      {found.error && <Notice>{found.error}</Notice>}
      {!reader && (
        <form class="row" onSubmit={again}>
          <Field label="Once more from (UTC)"><input type="text" placeholder="2026-01-31T12:00:00Z" value={range.from} onInput={(event) => setRange({ ...range, from: event.currentTarget.value })} /></Field>
          <Field label="to (UTC)"><input type="text" placeholder="2026-01-31T13:00:00Z" value={range.to} onInput={(event) => setRange({ ...range, to: event.currentTarget.value })} /></Field>
          <button type="submit" class="button" disabled={!ready}>Run</button>
        </form>
      )}
      {answer && <Notice kind={answer.kind}>{answer.text}</Notice>}
      {found.value?.executions.length === 0 && <p class="hint">It has not run yet.</p>}
      <ul class="list">
        {found.value?.executions.map((run) => (
          <li key={run.id}>
            <div class="text">
              {moment(run.execution_time, times)}: <b class={run.status === "failed" ? "bad" : ""}>{run.status}</b>, {count(run.records_written ?? 0)} rows from {moment(run.start_time, times)} to {moment(run.end_time, times)}
              {run.error_message && <Notice>{run.error_message}</Notice>}
            </div>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
