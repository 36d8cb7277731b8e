// Retention: how long points are kept, of a database or of a table, and all of it in a list.

import { useState } from "preact/hooks";

import { change, get, path } from "../api.js";
import { count, moment } from "../lib/locale.js";
import { href } from "../route.js";
import { Button, Confirm, Empty, Field, Notice, useApp, useLoad } from "../ui.jsx";

function retentionPath(database, table) {
  return table ? path`api/v1/retention/${database}/${table}` : path`api/v1/retention/${database}`;
}

/** How long points are kept; changed where the server and the token allow it. */
export function Retention({ database, table, enabled }) {
  const { may, reader } = useApp();
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
      {enabled && may("admin") && !reader ? (
        <form class="row" onSubmit={(event) => { event.preventDefault(); setAsks(true); }}>
          <Field label="Days" hint="empty: no setting of its own"><input type="number" min="0.01" step="any" value={days} onInput={(event) => setDays(event.currentTarget.value)} /></Field>
          <button type="submit" class="button">Change</button>
        </form>
      ) : (
        <p class="hint">{enabled === false && !reader ? "The server was started without --delete-enabled, so this cannot be changed." : ""}</p>
      )}
      {asks && (
        <Confirm title="How long points are kept" name={days === "" ? undefined : (table ?? database)} verb="Change" onClose={() => setAsks(false)} onConfirm={put}>
          {days === "" ? "No point goes because of its age any more." : <>Points of <b>{table ?? database}</b> that are older than {days} days go for good, from now on.</>}
        </Confirm>
      )}
    </section>
  );
}


/** What is kept how long, of all databases. */
export function RetentionList() {
  const { times, setDatabase, reader } = useApp();
  const all = useLoad(() => get("api/v1/retention"), []);
  const deletes = useLoad(() => get("api/v1/delete/config"), []);
  const [asks, setAsks] = useState(null);
  const [told, setTold] = useState("");
  const policies = (all.value ?? []).filter(({ id }) => id !== undefined);
  const settings = (all.value ?? []).filter(({ id }) => id === undefined);
  const offered = deletes.value?.enabled && !reader;
  const run = async ({ id, name }) => {
    const answer = await change("POST", path`api/v1/retention/${id}/execute`, { confirm: true });
    setTold(`${name} took away ${count(answer.deleted_count)} points.`);
    all.reload();
  };
  return (
    <>
      {all.error && <Notice>{all.error}</Notice>}
      {told && <Notice kind="good">{told}</Notice>}
      {all.value && policies.length + settings.length === 0 && <Empty title="All points are kept for ever"><p>Under Tables a database, or one of its tables, gets a number of days.</p></Empty>}
      {settings.length > 0 && (
        <table>
          <caption class="unseen">Settings</caption>
          <thead><tr><th scope="col">Database</th><th scope="col">Table</th><th scope="col">Points are kept</th></tr></thead>
          <tbody>
            {settings.map(({ database, measurement, retention_days: days }) => (
              <tr key={`${database}/${measurement}`}>
                <td>{database}</td>
                <td>{measurement ? <a href={href("tables", { table: measurement })} onClick={() => setDatabase(database)}>{measurement}</a> : "all others"}</td>
                <td>{days === null ? "for ever" : `${days} days`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {policies.length > 0 && (
        <>
          <h2>Policies</h2>
          <table>
            <thead><tr><th scope="col">Name</th><th scope="col">Database</th><th scope="col">Table</th><th scope="col" class="number">Days</th><th scope="col">State</th><th scope="col">Last run</th><th scope="col"><span class="unseen">Run</span></th></tr></thead>
            <tbody>
              {policies.map((policy) => (
                <tr key={policy.id}>
                  <td><b>{policy.name}</b></td>
                  <td>{policy.database}</td>
                  <td>{policy.measurement ?? "all"}</td>
                  <td class="number">{count(policy.retention_days + (policy.buffer_days ?? 0))}</td>
                  <td>{policy.is_active ? "in force" : "not in force"}</td>
                  <td>{policy.last_execution_time ? `${moment(policy.last_execution_time, times)}: ${policy.last_execution_status}, ${count(policy.last_deleted_count ?? 0)} points` : "–"}</td>
                  <td>{offered && <Button kind="danger" onClick={() => setAsks(policy)}>Run now</Button>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      {asks && (
        <Confirm title="Run the policy" name={asks.name} verb="Delete old points" onClose={() => setAsks(null)} onConfirm={() => run(asks)}>
          Points of <b>{asks.database}{asks.measurement ? ` / ${asks.measurement}` : ""}</b> that are older than {asks.retention_days + (asks.buffer_days ?? 0)} days go for good, now.
        </Confirm>
      )}
    </>
  );
}
