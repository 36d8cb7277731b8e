// The statements that a person has run: at once in this browser, a little later in the server, where their other browsers find them.

import { change, get, path } from "./api.js";
import { keep, own, recall } from "./kept.js";
import { merged, same, withEntry } from "./lib/history.js";

const ALL = "api/v1/console/documents";
const SOON_MS = 2_000;
const TRIES = 3;

let timer = null;

export function localHistory() {
  const kept = recall(own("history"), { entries: [], cleared: 0 });
  return Array.isArray(kept) ? { entries: kept, cleared: 0 } : kept;
}

/** Adds what was run; the server gets it with what comes soon after it. */
export function remember(entry, who) {
  const history = withEntry(localHistory(), entry);
  keep(own("history"), history);
  later(who);
}

export function forgetAll(who) {
  keep(own("history"), { entries: [], cleared: Date.now() });
  return exchange(who);
}

function later(who) {
  if (timer !== null || who.reader) return;
  timer = setTimeout(() => {
    timer = null;
    exchange(who).catch(() => {});
  }, SOON_MS);
}

/** Puts what this browser and the server have together, in both. */
export async function exchange(who) {
  for (let turn = 0; turn < TRIES; turn++) {
    const name = `History ${who.id || "of all"}`;
    const { documents } = await get(`${ALL}?kind=history`);
    const found = documents.filter((one) => one.name === name && one.editable).sort((one, other) => one.id - other.id)[0];
    const document = found && (await get(path`api/v1/console/documents/${found.id}`));
    const theirs = document?.body ?? { entries: [], cleared: 0 };
    const both = merged(localHistory(), theirs);
    keep(own("history"), both);
    if (who.reader || same(both, theirs)) return both;
    try {
      if (document) await change("PUT", path`api/v1/console/documents/${document.id}`, { version: document.version, body: both });
      else await change("POST", ALL, { kind: "history", name, body: both });
      return both;
    } catch (error) {
      // Another tab was faster; its entries are put together with ours.
      if (error.status !== 409) throw error;
    }
  }
  return localHistory();
}
