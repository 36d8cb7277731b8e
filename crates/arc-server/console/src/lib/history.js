// The history of statements as a list: newest first, each text once, bounded. Where it is kept is not known here.

export const MOST_ENTRIES = 200;
const MOST_SQL = 20_000;
/** The server takes documents of 256 KiB. */
const MOST_BYTES = 200_000;

/** Puts an entry `{ sql, at, database, rows, ms, error }` in front of a history `{ entries, cleared }`. */
export function withEntry(history, entry) {
  const sql = entry.sql.length > MOST_SQL ? `${entry.sql.slice(0, MOST_SQL)}…` : entry.sql;
  return merged(history, { entries: [{ ...entry, sql }], cleared: 0 });
}

/** Puts two histories together; what was run before one of them was cleared is gone from both. */
export function merged(one, other) {
  const cleared = Math.max(one.cleared ?? 0, other.cleared ?? 0);
  const newest = new Map();
  for (const entry of [...read(one), ...read(other)]) {
    if (entry.at > cleared && !(newest.get(entry.sql)?.at >= entry.at)) newest.set(entry.sql, entry);
  }
  const entries = [...newest.values()].sort((a, b) => b.at - a.at).slice(0, MOST_ENTRIES);
  while (bytesOf(entries) > MOST_BYTES) entries.length = Math.floor(entries.length * 0.8);
  return { entries, cleared };
}

const bytesOf = (entries) => new TextEncoder().encode(JSON.stringify(entries)).length;

/** Takes what is an entry from what may be anything. */
function read(history) {
  const entries = Array.isArray(history?.entries) ? history.entries : [];
  return entries.filter((entry) => typeof entry?.sql === "string" && Number.isFinite(entry.at));
}

export const same = (one, other) => JSON.stringify(merged(one, { entries: [] })) === JSON.stringify(merged(other, { entries: [] }));
