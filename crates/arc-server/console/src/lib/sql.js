// SQL as text: where statements begin and end, names in quotes, and variables of a range.

import { interval, isoTime, sqlInterval } from "./time.js";

/** Splits text at semicolons that are not in quotes or comments. Returns `{ from, to, text }` of each statement that says something. */
export function statements(text) {
  const found = [];
  let start = 0;
  const add = (to) => {
    const piece = text.slice(start, to);
    if (!isBlank(piece)) {
      const from = start + (piece.length - piece.trimStart().length);
      found.push({ from, to: start + piece.trimEnd().length, text: piece.trim() });
    }
    start = to + 1;
  };
  for (const token of tokens(text)) if (token.kind === "symbol" && text[token.from] === ";") add(token.from);
  add(text.length);
  return found;
}

/** Returns whether there is nothing but space and comments. */
export function isBlank(text) {
  return tokens(text).every(({ kind }) => kind === "comment");
}

/** Splits SQL into words, texts, quoted names, numbers, comments and symbols, leaving out space. */
export function tokens(text) {
  const found = [];
  const patterns = [
    ["comment", /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y],
    ["text", /'(?:[^']|'')*(?:'|$)/y],
    ["name", /"(?:[^"]|"")*(?:"|$)/y],
    ["variable", /\$[A-Za-z_]\w*/y],
    ["word", /[\p{L}_][\p{L}\p{N}_$]*/uy],
    ["number", /\d[\w.]*/y],
    ["symbol", /\S/uy],
  ];
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text[at])) {
      at++;
      continue;
    }
    for (const [kind, pattern] of patterns) {
      pattern.lastIndex = at;
      const match = pattern.exec(text);
      if (match) {
        found.push({ kind, from: at, to: at + match[0].length, text: match[0] });
        at += match[0].length;
        break;
      }
    }
  }
  return found;
}

/** Returns the statement that a cursor is in or after. */
export function statementAt(text, cursor) {
  const all = statements(text);
  return all.find(({ from, to }) => cursor >= from && cursor <= to + 1) ?? all.filter(({ to }) => to < cursor).at(-1) ?? all[0] ?? null;
}

/** Writes a name so that SQL reads it as it is. */
export function quoteName(name) {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !RESERVED.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

const RESERVED = new Set(
  "all and any as asc at between by case cast create cross database date delete desc distinct drop else end escape except exists explain false first from full group having in inner insert interval into is join last left like limit natural not null offset on or order outer over partition right rows select set show some table then time timestamp to true union unnest update user using values when where window with".split(" "),
);
RESERVED.delete("time");

/** Writes a text so that SQL reads it as it is. */
export function quoteText(text) {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The first word of a statement, in lower case. */
export function firstWord(text) {
  return tokens(text).find(({ kind }) => kind === "word")?.text.toLowerCase() ?? "";
}

const READS = new Set(["select", "with", "show", "describe", "values"]);
const BEFORE = new Set(["explain", "analyze", "verbose"]);

/** Returns whether a statement changes nothing, as far as its first word tells; a plan is made of what is behind `EXPLAIN`. */
export function isRead(text) {
  const first = tokens(text).find(({ kind, text: word }) => kind !== "comment" && !BEFORE.has(word.toLowerCase()));
  return first !== undefined && (READS.has(first.text.toLowerCase()) || first.text === "(");
}

/** Puts in the range for `$from`, `$to` and `$interval`, and texts for variables of a page. Quotes and comments stay as they are. */
export function substitute(text, { from, to, points = 400 }, variables = {}) {
  const values = { $from: `TIMESTAMP '${isoTime(from)}'`, $to: `TIMESTAMP '${isoTime(to)}'`, $interval: sqlInterval(interval(from, to, points)) };
  for (const [name, value] of Object.entries(variables)) values[`$${name}`] = quoteText(value);
  let out = "";
  let at = 0;
  for (const token of tokens(text)) {
    if (token.kind !== "variable" || !Object.hasOwn(values, token.text)) continue;
    out += text.slice(at, token.from) + values[token.text];
    at = token.to;
  }
  return out + text.slice(at);
}

/** Returns whether a text uses the range. */
export function usesRange(text) {
  return tokens(text).some(({ kind, text: word }) => kind === "variable" && ["$from", "$to", "$interval"].includes(word));
}

/** Finds the place of an error in the statement that failed: `{ from, to }`, or `null` where the message names none. */
export function errorPlace(message, statement) {
  const at = / at Line: (\d+), Column: (\d+)/.exec(message);
  if (at) {
    const lines = statement.split("\n");
    const before = lines.slice(0, +at[1] - 1).reduce((sum, line) => sum + line.length + 1, 0);
    // Columns count characters, which for emoji are two units of a text here.
    const from = Math.min(statement.length, before + [...(lines[+at[1] - 1] ?? "")].slice(0, +at[2] - 1).join("").length);
    const word = tokens(statement.slice(from))[0];
    return { from, to: Math.min(statement.length, from + Math.max(1, word?.text.length ?? 1)) };
  }
  if (/found: EOF/.test(message)) return { from: Math.max(0, statement.length - 1), to: statement.length };
  const name = /No field named (.+?)\.(?:\s|$)|[Ii]nvalid function '(.+?)'|table "(.+?)" does not exist|database "(.+?)" does not exist/.exec(message);
  if (!name) return null;
  const wanted = plainName((name[1] ?? name[2] ?? name[3] ?? name[4]).split(".").at(-1));
  const token = tokens(statement).find(({ kind, text }) => (kind === "word" || kind === "name") && plainName(text) === wanted);
  return token ? { from: token.from, to: token.to } : null;
}

function plainName(text) {
  return text.replace(/^"|"$/g, "").replaceAll('""', '"').toLowerCase();
}
