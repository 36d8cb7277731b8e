// Values as text: what the grid shows, what is copied, and how types are called.

import { NS, formatDuration, formatTime } from "./time.js";

const NUMBERS = new Set(["int", "float", "decimal"]);

export function isNumber({ kind }) {
  return NUMBERS.has(kind);
}

export function isTime({ kind }) {
  return kind === "timestamp" || kind === "date";
}

export function isText({ kind }) {
  return kind === "utf8" || kind === "large_utf8";
}

/** Names a type as SQL people know it. */
export function typeName(type) {
  switch (type.kind) {
    case "int":
      return `${type.signed ? "int" : "uint"}${type.bits}`;
    case "float":
      return `float${type.bits}`;
    case "decimal":
      return `decimal(${type.precision}, ${type.scale})`;
    case "utf8":
    case "large_utf8":
      return "text";
    case "timestamp":
      return type.unit === "ns" ? "timestamp" : `timestamp(${type.unit})`;
    case "fixed_list":
    case "large_list":
      return "list";
    case "large_binary":
    case "fixed_binary":
      return "binary";
    default:
      return type.kind;
  }
}

/** Returns a time of any unit in nanoseconds. */
export function toNs(value, type) {
  if (type.kind === "date") return type.unit === "day" ? BigInt(value) * 86_400n * NS.s : BigInt(value) * NS.ms;
  return BigInt(value) * NS[type.unit];
}

/** Shows a value; null is `null`. Never loses a digit. */
export function display(value, field, options = {}) {
  if (value === null || value === undefined) return "null";
  const { type } = field;
  switch (type.kind) {
    case "timestamp":
      return formatTime(toNs(value, type), options);
    case "date":
      return formatTime(toNs(value, type), { dates: options.dates }).slice(0, -9);
    case "time":
      return formatTime(BigInt(value) * NS[type.unit]).slice(11);
    case "duration":
      return formatDuration(BigInt(value) * NS[type.unit]);
    case "interval":
      return intervalText(value);
    case "float":
      return floatText(value);
    default:
      return typeof value === "object" ? nested(value, options) : String(value);
  }
}

function floatText(value) {
  if (Number.isNaN(value)) return "NaN";
  if (Object.is(value, -0)) return "-0";
  return String(value).replace("Infinity", "∞");
}

function intervalText({ months, days, ns }) {
  const parts = [months && `${months} months`, days && `${days} days`, ns && formatDuration(ns)].filter(Boolean);
  return parts.join(" ") || "0s";
}

function nested(value, options) {
  if (value instanceof Uint8Array) return hex(value);
  const inner = (item, field) => {
    const text = display(item, field, options);
    return item !== null && (isText(field.type) || isTime(field.type)) ? JSON.stringify(text) : text;
  };
  if (value.list) return `[${value.list.map((item) => inner(item, value.child)).join(", ")}]`;
  if (value.struct) return `{${value.struct.map(([field, item]) => `${JSON.stringify(field.name)}: ${inner(item, field)}`).join(", ")}}`;
  if (value.map) {
    return `{${value.map.map(([[keyField, key], [field, item]]) => `${inner(key, keyField)}: ${inner(item, field)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Writes cells as tab-separated values that spreadsheets read back: what has tabs, quotes or line ends is quoted, null is nothing. */
export function toTsv(lines) {
  return lines.map((line) => line.map(tsvCell).join("\t")).join("\n");
}

function tsvCell(text) {
  if (text === null) return "";
  // A spreadsheet would run what begins like this.
  const safe = /^[=+@]/.test(text) ? `'${text}` : text;
  return /["\t\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Shows bytes as people say them. */
export function bytes(number) {
  if (number === null || number === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = number;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

/** Shows a number in a few characters: `1.2k`, `3.45M`. */
export function short(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-3 || size >= 1e15)) return number.toExponential(2);
  for (const [limit, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= limit) return `${trimmed(number / (name === "k" ? 1e3 : limit))}${name}`;
  }
  return trimmed(number);
}

function trimmed(number) {
  return Number.isInteger(number) ? String(number) : String(Number(number.toPrecision(4)));
}

/** Shows milliseconds as people say them. */
export function milliseconds(ms) {
  if (ms > 0 && ms < 0.1) return `${(ms * 1000).toFixed(1)} µs`;
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s` : `${Math.round(ms / 60_000)} min`;
}
