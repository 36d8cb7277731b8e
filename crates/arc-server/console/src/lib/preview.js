// What the beginning of a file tells: separators, names, the narrowest types, the column that has the time. The server has the last word.

import { parseTime } from "./time.js";

const SEPARATORS = [",", ";", "\t", "|"];
const MAX_I64 = 2n ** 63n - 1n;
const MAX_U64 = 2n ** 64n - 1n;

/** Splits CSV into cells; a quoted cell may have separators and line ends. The last line is left out if the text may go on. */
export function csvRows(text, separator, { most = 200, goesOn = false } = {}) {
  const rows = [];
  let row = [];
  let at = 0;
  while (at <= text.length && rows.length < most) {
    const [cell, end] = csvCell(text, at, separator);
    row.push(cell);
    if (text[end] === separator) {
      at = end + 1;
      continue;
    }
    const ended = end < text.length;
    if ((ended || !goesOn) && !(row.length === 1 && row[0] === "")) rows.push(row);
    row = [];
    if (!ended) break;
    at = text[end] === "\r" && text[end + 1] === "\n" ? end + 2 : end + 1;
  }
  return rows;
}

function csvCell(text, from, separator) {
  let at = from;
  let cell = "";
  if (text[at] === '"') {
    at++;
    while (at < text.length) {
      if (text[at] === '"' && text[at + 1] !== '"') break;
      if (text[at] === '"') at++;
      cell += text[at++];
    }
    at++;
  }
  while (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") cell += text[at++];
  return [cell, Math.min(at, text.length)];
}

/** Returns the separator that splits the first lines into the same number of cells, at least two. */
export function separatorOf(text) {
  const first = text.split(/\r?\n/, 20).filter(Boolean).join("\n");
  let best = [",", 1];
  for (const separator of SEPARATORS) {
    const widths = csvRows(first, separator).map((row) => row.length);
    const even = widths.every((width) => width === widths[0]);
    if (even && widths[0] > best[1]) best = [separator, widths[0]];
  }
  return best[0];
}

/** Names the narrowest type that all values fit, as the import of the server has them. */
export function narrowest(values) {
  const there = values.filter((value) => value !== "");
  if (there.length === 0) return "empty";
  if (there.every((value) => /^[+-]?(?:0|[1-9]\d*)$/.test(value))) {
    const numbers = there.map((value) => BigInt(value));
    if (numbers.every((number) => number <= MAX_I64 && number >= -MAX_I64 - 1n)) return "integer";
    if (numbers.every((number) => number >= 0n && number <= MAX_U64)) return "unsigned";
  }
  if (there.every((value) => /^[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(value) || /^[+-]?(?:nan|inf|infinity)$/i.test(value))) return "float";
  if (there.every((value) => /^(?:true|false)$/i.test(value))) return "boolean";
  return there.every((value) => parseTime(value) !== null) ? "time as text" : "text";
}

/** Reads the beginning of CSV: `{ separator, columns: [{ name, type }], rows, time }`. */
export function csvPreview(text, { separator = separatorOf(text), goesOn = false } = {}) {
  const [names = [], ...rows] = csvRows(text.replace(/^\uFEFF/, ""), separator, { goesOn });
  const columns = names.map((name, column) => ({ name, type: narrowest(rows.map((row) => row[column] ?? "")) }));
  const called = columns.find(({ name }) => /^_?(time|timestamp|ts|date|datetime)$/i.test(name));
  const looks = columns.find(({ type }) => type === "time as text");
  return { separator, columns, rows: rows.slice(0, 8), time: (called ?? looks)?.name ?? "" };
}
