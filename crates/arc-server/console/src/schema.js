// Which tables and columns there are, for completion and lists. Bounded: a database may have very many.

import { queryRows } from "./api.js";
import { quoteText } from "./lib/sql.js";

const MOST_COLUMNS = 50_000;

/** Returns `{ database: { table: [{ name, type }] } }` for one database. */
export async function loadSchema(database) {
  const rows = await queryRows(
    `SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = ${quoteText(database)} LIMIT ${MOST_COLUMNS}`,
    { database },
  );
  const tables = {};
  for (const [table, name, type] of rows) {
    tables[table] ??= [];
    tables[table].push({ name, type: shortType(type) });
  }
  return { [database]: tables };
}

/** Names an Arrow type in a few letters. */
export function shortType(type) {
  if (type.startsWith("Timestamp")) return "time";
  if (type.startsWith("Dictionary")) return "tag";
  if (type.startsWith("Utf8") || type.startsWith("LargeUtf8")) return "text";
  if (type === "Boolean") return "bool";
  return type.toLowerCase();
}

export const isNumberType = (type) => /^(u?int|float|decimal)/.test(type);
