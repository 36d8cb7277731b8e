// The nodes of a cluster: what each does, and how far it is after the owner.

import { useState } from "preact/hooks";

import { get } from "../api.js";
import { count } from "../lib/locale.js";
import { Empty, Notice, useEvery } from "../ui.jsx";

const EVERY_MS = 2_000;

const STATES = { ready: "ready", not_ready: "not ready", unreachable: "does not answer", unknown: "not asked yet" };

export function Cluster() {
  const [cluster, setCluster] = useState(null);
  const [error, setError] = useState("");
  useEvery(() => get("api/v1/cluster").then((found) => { setCluster(found); setError(""); }, (failed) => setError(failed.message)), EVERY_MS);
  const behind = (number) => (number === undefined || number === null ? "–" : count(number));
  return (
    <>
      {error && <Notice>{error}</Notice>}
      {cluster && !cluster.owner && <Notice>No node takes writes now. One that stands by takes over, if there is one.</Notice>}
      {cluster?.nodes.length === 0 && <Empty title="This server is in no cluster" />}
      {cluster?.nodes.length > 0 && (
        <table>
          <thead><tr><th scope="col">Node</th><th scope="col">Role</th><th scope="col">State</th><th scope="col">Version</th><th scope="col" class="number">Commits behind</th><th scope="col" class="number">Writes behind</th><th scope="col">Address</th></tr></thead>
          <tbody>
            {cluster.nodes.map((node) => (
              <tr key={node.name}>
                <td>{node.name}{node.name === cluster.node ? " (this one)" : ""}</td>
                <td>{node.role ?? "–"}{node.owner ? ", takes the writes" : ""}</td>
                <td>
                  <span class={`level ${node.status === "ready" ? "" : "error"}`}>{STATES[node.status] ?? node.status}</span>
                  {node.error && <small class="hint"> {node.silent_seconds > 0 ? `since ${count(node.silent_seconds)} s: ` : ""}{node.error}</small>}
                </td>
                <td>{node.version ?? "–"}</td>
                <td class="number">{behind(node.commits_behind)}</td>
                <td class="number">{behind(node.frames_behind)}</td>
                <td>{node.url ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="hint">A node that answers queries looks for what is new when it is asked: what it is behind here is in no answer of it.</p>
    </>
  );
}
