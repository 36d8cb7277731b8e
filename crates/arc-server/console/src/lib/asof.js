// States of the past: a statement whose tables are read as they were at a time, or in a snapshot. Never sends anything.
//
// A state is written in a few letters, for addresses and notebooks: nothing is now, `-10m` ten minutes ago, `2026-01-31T12:00:00Z` a
// time, `@name` a snapshot.

import { isRead, quoteText, tokens } from "./sql.js";
import { isoTime, parseDuration, parseTime } from "./time.js";

/** Returns what SQL has after a table for a state, `""` for now, or `null` if it is none. */
export function asOfClause(state, nowNs) {
  if (!state) return "";
  if (state.startsWith("@")) return state.length > 1 ? `AT (SNAPSHOT => ${quoteText(state.slice(1))})` : null;
  const back = state.startsWith("-") ? parseDuration(state.slice(1)) : null;
  const time = back === null ? parseTime(state) : nowNs - back;
  return time === null ? null : `FOR SYSTEM_TIME AS OF '${isoTime(time)}'`;
}

/** Returns a state that stays what it is: a while ago becomes the time that this is at `nowNs`. */
export function fixedState(state, nowNs) {
  const back = state.startsWith("-") ? parseDuration(state.slice(1)) : null;
  return back === null ? state : isoTime(nowNs - back);
}

/** Names a state for people. */
export function stateName(state) {
  if (state.startsWith("@")) return `snapshot ${state.slice(1)}`;
  return state.startsWith("-") ? `${state.slice(1)} ago` : state.slice(0, 19).replace("T", " ");
}

/** Writes a statement so that it reads a state. Throws where the state is none, and for what changes something: it has no past. */
export function inState(text, state, nowNs) {
  const clause = asOfClause(state, nowNs);
  if (clause === null) throw new Error(`As of ${state}: this is no time and no snapshot.`);
  if (clause && !isRead(text)) throw new Error("This statement does not only read, and the past stays what it was. Pick “As of now” to run it.");
  return readAsOf(text, clause);
}

const ENDS_LIST = new Set(["where", "group", "order", "having", "limit", "offset", "union", "except", "intersect", "window", "qualify", "fetch"]);
const QUERY = new Set(["select", "with", "values"]);

/** Puts a clause after each table that a statement reads and that has none of its own; common table expressions and functions have none. */
export function readAsOf(text, clause) {
  if (!clause) return text;
  const all = tokens(text).filter(({ kind }) => kind !== "comment");
  const word = (at) => (all[at]?.kind === "word" ? all[at].text.toLowerCase() : "");
  const symbol = (at, wanted) => all[at]?.kind === "symbol" && all[at].text === wanted;
  const named = commonTables(all, word, symbol);
  let frames = [{ query: false, list: false }];
  let expects = false;
  let out = "";
  let copied = 0;
  for (let at = 0; at < all.length; at++) {
    const frame = frames.at(-1);
    const is = word(at);
    if (symbol(at, "(")) {
      // Within FROM there may be a query, or tables that are joined.
      const joined = expects && !QUERY.has(word(at + 1));
      frames.push({ query: joined, list: joined });
      expects = joined;
    } else if (symbol(at, ")")) {
      frames = frames.length > 1 ? frames.slice(0, -1) : frames;
      expects = false;
    } else if (expects && (all[at].kind === "name" || (is && is !== "lateral"))) {
      const end = chainEnd(all, at, symbol);
      if (isTable(all, at, end, named, word, symbol)) {
        out += `${text.slice(copied, all[end].to)} ${clause}`;
        copied = all[end].to;
      }
      expects = false;
      at = end;
    } else if (is === "select") {
      frame.query = true;
      frame.list = false;
    } else if (is === "from" && frame.query && word(at - 1) !== "distinct") {
      frame.list = true;
      expects = true;
    } else if (is === "join" && frame.query) expects = true;
    else if (symbol(at, ",") && frame.list) expects = true;
    else if (ENDS_LIST.has(is)) frame.list = false;
  }
  return out + text.slice(copied);
}

const plain = ({ kind, text }) => (kind === "name" ? text.slice(1, -1).replaceAll('""', '"') : text.toLowerCase());

/** Returns the names that stand before `AS (`, or before their columns and that. */
function commonTables(all, word, symbol) {
  const found = new Set();
  for (let at = 1; at < all.length; at++) {
    if (word(at) !== "as" || !symbol(at + 1, "(")) continue;
    let name = at - 1;
    if (symbol(name, ")")) while (name > 0 && !symbol(name, "(")) name--;
    if (symbol(name, "(")) name--;
    if (all[name] && ["word", "name"].includes(all[name].kind)) found.add(plain(all[name]));
  }
  return found;
}

/** Returns the last part of a name such as `plant.pump`. */
function chainEnd(all, at, symbol) {
  let end = at;
  while (symbol(end + 1, ".") && ["word", "name"].includes(all[end + 2]?.kind)) end += 2;
  return end;
}

function isTable(all, at, end, named, word, symbol) {
  if (symbol(end + 1, "(")) return false;
  if (at === end && named.has(plain(all[at]))) return false;
  if (plain(all[at]) === "information_schema" || (end > at && plain(all[end - 2] ?? all[at]) === "information_schema")) return false;
  return !(word(end + 1) === "for" && word(end + 2) === "system_time") && !(word(end + 1) === "at" && symbol(end + 2, "("));
}
