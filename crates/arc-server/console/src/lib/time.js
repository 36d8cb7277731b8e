// Times: nanoseconds since 1970 as BigInt, shown without losing a digit, and the ranges that people pick.

export const NS = { s: 1_000_000_000n, ms: 1_000_000n, us: 1_000n, ns: 1n };
const SECOND = 1_000_000_000n;

/** Divides and rounds down, also below zero. */
function floorDivide(value, by) {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}

const two = (number) => String(number).padStart(2, "0");

/**
 * Shows a time as `2026-01-31 12:00:00.5`, or with `dates: "de"` as `31.01.2026 12:00:00,5`; in UTC unless `local`.
 * Digits after the second are kept, zeros at their end are not.
 */
export function formatTime(ns, { local = false, dates = "iso" } = {}) {
  const seconds = floorDivide(ns, SECOND);
  const rest = ns - seconds * SECOND;
  const date = new Date(Number(seconds) * 1000);
  if (Number.isNaN(date.getTime())) return `${ns} ns`;
  const at = local ? new Date(date.getTime() - date.getTimezoneOffset() * 60_000) : date;
  const year = at.getUTCFullYear();
  const shownYear = year < 0 || year > 9999 ? (year < 0 ? "-" : "+") + String(Math.abs(year)).padStart(6, "0") : String(year).padStart(4, "0");
  const [month, dayOfMonth] = [two(at.getUTCMonth() + 1), two(at.getUTCDate())];
  const german = dates === "de";
  const day = german ? `${dayOfMonth}.${month}.${shownYear}` : `${shownYear}-${month}-${dayOfMonth}`;
  const clock = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
  return `${day} ${clock}${fraction(rest, german ? "," : ".")}`;
}

function fraction(rest, mark) {
  return rest === 0n ? "" : `${mark}${rest.toString().padStart(9, "0").replace(/0+$/, "")}`;
}

/** Writes a time as RFC 3339 in UTC, for SQL and requests. */
export function isoTime(ns) {
  return `${formatTime(ns).replace(" ", "T")}Z`;
}

/** Reads RFC 3339, `2026-01-31 12:00[:00.123456789]` or `31.01.2026 12:00[:00,5]`, UTC unless it says otherwise; `null` if it is none. */
export function parseTime(text) {
  const german = /^\s*(\d\d)\.(\d\d)\.(\d{4})(.*)$/.exec(text);
  if (german) return parseTime(`${german[3]}-${german[2]}-${german[1]}${german[4].replace(",", ".")}`);
  const match = /^\s*(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?\s*(Z|[+-]\d\d:?\d\d)?\s*$/i.exec(text);
  if (!match) return null;
  const [, year, month, day, hour = "0", minute = "0", second = "0", fraction = "", zone = "Z"] = match;
  const date = new Date(0);
  date.setUTCFullYear(+year, +month - 1, +day);
  date.setUTCHours(+hour, +minute, +second);
  if (date.getUTCMonth() !== +month - 1 || date.getUTCDate() !== +day || +hour > 23 || +minute > 59 || +second > 59) return null;
  const offset = zone.toUpperCase() === "Z" ? 0 : (zone[0] === "-" ? -1 : 1) * (+zone.slice(1, 3) * 60 + +zone.slice(-2));
  return BigInt(date.getTime() - offset * 60_000) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/** Shows a length of time as people say it. */
export function formatDuration(ns) {
  const negative = ns < 0n ? "-" : "";
  const size = ns < 0n ? -ns : ns;
  const units = [["d", 86_400n * SECOND], ["h", 3_600n * SECOND], ["m", 60n * SECOND], ["s", SECOND], ["ms", 1_000_000n], ["µs", 1_000n], ["ns", 1n]];
  const parts = [];
  let left = size;
  for (const [name, length] of units) {
    const count = left / length;
    if (count > 0n) parts.push(`${count}${name}`);
    left -= count * length;
  }
  return parts.length === 0 ? "0s" : negative + parts.join(" ");
}

const WORDS = { s: SECOND, m: 60n * SECOND, h: 3_600n * SECOND, d: 86_400n * SECOND, w: 604_800n * SECOND };

/** Reads `15m`, `6h`, `7d`; `null` if it is none. */
export function parseDuration(text) {
  const match = /^\s*(\d{1,9})\s*([smhdw])\s*$/.exec(text);
  return match && match[1] !== "0" ? BigInt(match[1]) * WORDS[match[2]] : null;
}

/** Reads a range: `{ last: "1h" }`, or `{ from, to }` as texts. Returns its ends in nanoseconds, or `null`. */
export function rangeEnds(range, nowNs) {
  if (range.last) {
    const length = parseDuration(range.last);
    return length && { from: nowNs - length, to: nowNs };
  }
  const from = parseTime(range.from ?? "");
  const to = parseTime(range.to ?? "");
  return from !== null && to !== null && from < to ? { from, to } : null;
}

const STEPS = [1n, 2n, 5n, 10n, 15n, 30n, 60n, 120n, 300n, 600n, 900n, 1800n, 3600n, 7200n, 10800n, 21600n, 43200n, 86400n, 604800n, 2592000n];

/** Returns a round length that splits a range into at most `points` parts, in nanoseconds. */
export function interval(from, to, points) {
  const wanted = (to - from) / BigInt(Math.max(1, points));
  if (wanted < SECOND / 2n) {
    for (let step = 1n; ; step *= 10n) {
      for (const factor of [1n, 2n, 5n]) if (step * factor >= wanted) return step * factor;
    }
  }
  return (STEPS.find((step) => step * SECOND >= wanted) ?? (wanted / (86_400n * SECOND) + 1n) * 86_400n) * SECOND;
}

/** Writes a length as SQL has it. */
export function sqlInterval(ns) {
  return ns % SECOND === 0n ? `INTERVAL '${ns / SECOND} seconds'` : `INTERVAL '${ns} nanoseconds'`;
}

/** The lengths up to now that are offered. */
export const LASTS = [["5m", "Last 5 minutes"], ["15m", "Last 15 minutes"], ["1h", "Last hour"], ["6h", "Last 6 hours"], ["24h", "Last 24 hours"], ["7d", "Last 7 days"], ["30d", "Last 30 days"], ["365d", "Last year"]];
const USUAL = "1h";
const MAX_NS = 2n ** 63n - 1n;

/** The times of points, their newest included. */
export const wholeRange = (oldest, newest) => ({ from: isoTime(oldest), to: isoTime(newest < MAX_NS ? newest + 1n : newest) });

/**
 * Picks a range that shows something of points from `oldest` to `newest`: the last hour, less if all of them are younger, more if all
 * are older, and their own times where none of the lengths that are offered reaches them or they are yet to come.
 */
export function firstRange(oldest, newest, nowNs) {
  const reaches = (last, ns) => nowNs - parseDuration(last) <= ns;
  if (newest > nowNs + parseDuration(USUAL)) return wholeRange(oldest, newest);
  const short = LASTS.find(([last]) => reaches(last, oldest))?.[0];
  if (short && parseDuration(short) < parseDuration(USUAL)) return { last: short };
  if (reaches(USUAL, newest)) return { last: USUAL };
  const long = LASTS.find(([last]) => reaches(last, newest - (newest - oldest) / 10n))?.[0];
  return long ? { last: long } : wholeRange(oldest, newest);
}
