// Checks line protocol before it is sent: errors by line, and what the lines are about.
//
// Follows crates/arc-lp; the server has the last word, this only says early what it would say. Never alters a line.

const INTEGER = /^[+-]?\d+i$/;
const UNSIGNED = /^\+?\d+u$/;
const FLOAT = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const BOOLEAN = /^(?:t|T|true|True|TRUE|f|F|false|False|FALSE)$/;
const TIME = /^-?\d+$/;
const MAX_I64 = 2n ** 63n - 1n;

/** Checks a text. Returns `{ lines, points, errors: [{ line, column, reason }], measurements: Map(name -> { points, tags, fields }) }`. */
export function check(text, mostErrors = 100) {
  const result = { lines: 0, points: 0, errors: [], errorCount: 0, measurements: new Map() };
  for (const { line, number } of linesOf(text)) {
    result.lines = number;
    if (/^\s*(#|$)/.test(line)) continue;
    const point = readLine(line);
    if (point.error) {
      result.errorCount++;
      if (result.errors.length < mostErrors) result.errors.push({ line: number, column: point.column, reason: point.error });
    } else {
      result.points++;
      note(result.measurements, point);
    }
  }
  return result;
}

/** Splits into lines; a quoted text may have line ends. */
function* linesOf(text) {
  let from = 0;
  let number = 1;
  let startedAt = 1;
  let quoted = false;
  let inFields = false;
  for (let at = 0; at <= text.length; at++) {
    const char = text[at];
    if (char === "\\" && at + 1 < text.length && text[at + 1] !== "\n") at++;
    else if (char === " " && !quoted) inFields = true;
    else if (char === '"' && inFields && !isComment(text, from)) quoted = !quoted;
    if (char === "\n") number++;
    if (char === undefined || (char === "\n" && !quoted)) {
      yield { line: text.slice(from, at).replace(/\r$/, ""), number: startedAt };
      from = at + 1;
      startedAt = number;
      quoted = false;
      inFields = false;
    }
  }
}

function isComment(text, from) {
  return /^\s*#/.test(text.slice(from, from + 100));
}

function note(measurements, { measurement, tags, fields }) {
  let about = measurements.get(measurement);
  if (!about) measurements.set(measurement, (about = { points: 0, tags: new Set(), fields: new Map() }));
  about.points++;
  for (const [key] of tags) about.tags.add(key);
  for (const [key, , type] of fields) about.fields.set(key, about.fields.has(key) && about.fields.get(key) !== type ? "mixed" : type);
}

/** Reads one line; an error has the column of the byte that is wrong, from 1. */
export function readLine(line) {
  const fail = (at, error) => ({ error, column: at + 1 });
  const start = line.length - line.trimStart().length;
  const [measurement, afterName] = read(line, start, ", ");
  if (measurement === "") return fail(start, "the name of the measurement is missing");
  const tags = [];
  let at = afterName;
  while (line[at] === ",") {
    const [key, afterKey] = read(line, at + 1, ",= ");
    if (key === "") return fail(at + 1, "the key of a tag is missing");
    if (line[afterKey] !== "=") return fail(afterKey, `expected = after the tag ${key}`);
    const [value, afterValue] = read(line, afterKey + 1, ", =");
    if (line[afterValue] === "=") return fail(afterValue, `the tag ${key} has a second =; write \\=`);
    if (value === "") return fail(afterKey + 1, `the tag ${key} has no value`);
    tags.push([key, value]);
    at = afterValue;
  }
  while (line[at] === " ") at++;
  if (at >= line.length) return fail(at, "expected a space and fields after the tags");
  const fields = [];
  for (;;) {
    const [key, afterKey] = read(line, at, ",= ");
    if (key === "") return fail(at, "the key of a field is missing");
    if (line[afterKey] !== "=") return fail(afterKey, `expected = after the field ${key}`);
    const value = fieldValue(line, afterKey + 1);
    if (value.error) return fail(value.at, `the field ${key}: ${value.error}`);
    fields.push([key, value.text, value.type]);
    at = value.end;
    if (line[at] !== ",") break;
    at++;
  }
  const time = line.slice(at).trim();
  const timeAt = at + (line.slice(at).length - line.slice(at).trimStart().length);
  if (time !== "" && !TIME.test(time)) return fail(timeAt, "the time is no whole number");
  if (time !== "" && outside(BigInt(time))) return fail(timeAt, "the time is beyond 64 bits");
  return { measurement, tags, fields, time };
}

const outside = (number) => number > MAX_I64 || number < -MAX_I64 - 1n;

/** Reads up to one of `ends`; a backslash takes the next character as it is. */
function read(line, from, ends) {
  let text = "";
  let at = from;
  while (at < line.length && !ends.includes(line[at])) {
    if (line[at] === "\\" && ", =\"\\".includes(line[at + 1] ?? "x")) at++;
    text += line[at];
    at++;
  }
  return [text, at];
}

function fieldValue(line, from) {
  if (line[from] === '"') {
    let at = from + 1;
    while (at < line.length && line[at] !== '"') at += line[at] === "\\" ? 2 : 1;
    if (at >= line.length) return { at: from, error: "the text has no closing quote" };
    if (at + 1 < line.length && !", ".includes(line[at + 1])) return { at: at + 1, error: "expected a comma or a space after the text" };
    return { text: line.slice(from + 1, at), type: "text", end: at + 1 };
  }
  let end = from;
  while (end < line.length && !", ".includes(line[end])) end++;
  const text = line.slice(from, end);
  const type = typeOf(text);
  if (!type) return { at: from, error: text === "" ? "the value is missing" : "the value is no number, truth or text in quotes" };
  if (type === "integer" && outside(BigInt(text.slice(0, -1).replace("+", "")))) return { at: from, error: "the integer is beyond 64 bits" };
  return { text, type, end };
}

function typeOf(text) {
  if (INTEGER.test(text)) return "integer";
  if (UNSIGNED.test(text)) return "unsigned";
  if (FLOAT.test(text)) return "float";
  return BOOLEAN.test(text) ? "boolean" : null;
}
