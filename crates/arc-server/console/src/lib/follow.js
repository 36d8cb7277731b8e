// Following a table: what is shown is read again once rows of it were acknowledged. The rows themselves are not taken from the tail.

import { tokens } from "./sql.js";

/** Least time from one reading to the next. */
const LEAST_MS = 500;
/** After a tail that broke off. */
const RETRY_MS = 2_000;
const MOST_TABLES = 4;

/** Returns the tables of a database that a statement has the names of. */
export function tablesIn(statement, tables) {
  const named = new Set(tokens(statement).flatMap(({ kind, text }) => (kind === "word" ? [text.toLowerCase()] : kind === "name" ? [text.slice(1, -1).replaceAll('""', '"')] : [])));
  return tables.filter((table) => named.has(table)).slice(0, MOST_TABLES);
}

/**
 * Reads again whenever rows have come, until `signal` ends it or an error does that waiting does not mend, which is returned.
 *
 * `open(signal)` is kept once the server has a tail, by a function that waits until rows come; `read()` shows what there is now;
 * `pause(ms)` waits so long and until somebody looks; `onTrouble(text)` is told of what is tried again, and of its end.
 */
export async function follow({ open, read, pause, onTrouble, signal }) {
  let trouble = "";
  const tell = (text) => {
    if (text !== trouble) onTrouble(text);
    trouble = text;
  };
  while (!signal.aborted) {
    const turn = new AbortController();
    const end = () => turn.abort();
    signal.addEventListener("abort", end);
    try {
      // First the tail, then the rows: none comes between the two.
      const come = await open(turn.signal);
      tell("");
      await Promise.all([read(), pause(LEAST_MS)]);
      await come();
    } catch (error) {
      if (signal.aborted) return "";
      if (error.status !== 0 && error.status !== 429 && error.status !== 503) return error.message;
      tell(error.message);
      await pause(RETRY_MS);
    } finally {
      signal.removeEventListener("abort", end);
      end();
    }
  }
  return "";
}
