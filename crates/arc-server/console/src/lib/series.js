// Finds what a chart of an answer shows: a time column, series by tags, values. Never draws.

import { isNumber, isText, isTime, toNs } from "./display.js";
import { isoTime } from "./time.js";

/** Most series of one chart; more are left out, and the chart says so. */
export const MAX_SERIES = 100;

/** Returns the columns that a chart of these fields would show, or why there is none. */
export function roles(fields) {
  const time = fields.findIndex(({ type }) => isTime(type));
  const values = indexes(fields, ({ type }, index) => isNumber(type) && index !== time);
  const tags = indexes(fields, ({ type }) => isText(type) || type.kind === "bool");
  if (time < 0) return { error: "A chart needs a time column; this answer has none." };
  if (values.length === 0) return { error: "A chart needs a column of numbers; this answer has none." };
  return { time, values, tags };
}

function indexes(items, matches) {
  return items.flatMap((item, index) => (matches(item, index) ? [index] : []));
}

/** Puts an answer into series over one list of times, in seconds. A missing value is null, NaN is a gap as well. */
export function toSeries(rows, { time, values, tags }) {
  const found = new Map();
  const times = new Map();
  let left = 0;
  for (let row = 0; row < rows.length; row++) {
    const at = rows.get(row, time);
    if (at === null) continue;
    const ns = toNs(at, rows.fields[time].type);
    times.set(ns, 0);
    const name = tags.map((tag) => tagText(rows.get(row, tag))).join(" · ");
    for (const column of values) {
      const key = values.length === 1 && name ? name : [name, rows.fields[column].name].filter(Boolean).join(" · ");
      let series = found.get(key);
      if (!series) {
        if (found.size >= MAX_SERIES) {
          left++;
          continue;
        }
        found.set(key, (series = { name: key, points: new Map() }));
      }
      const value = rows.get(row, column);
      series.points.set(ns, value === null ? null : finite(Number(value)));
    }
  }
  const sorted = [...times.keys()].sort((one, other) => (one < other ? -1 : one > other ? 1 : 0));
  const series = [...found.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  return {
    ns: sorted,
    times: sorted.map((ns) => Number(ns / 1000n) / 1e6),
    series: series.map(({ name, points }) => ({ name, values: sorted.map((ns) => (points.has(ns) ? points.get(ns) : undefined)) })),
    leftOut: left,
  };
}

const tagText = (value) => (value === null ? "(none)" : String(value));
const finite = (value) => (Number.isFinite(value) ? value : null);

/** Writes the series as CSV: times in UTC, then one column each. */
export function seriesCsv({ ns, series }) {
  const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = [["time", ...series.map(({ name }) => quote(name))]];
  ns.forEach((time, index) => {
    lines.push([isoTime(time), ...series.map(({ values }) => values[index] ?? "")]);
  });
  return lines.map((line) => line.join(",")).join("\n") + "\n";
}

const COLOURS = ["#3b82d6", "#e0782f", "#2f9e6e", "#c2487b", "#8b6bd1", "#b8912a", "#2aa5b5", "#d05a4e", "#6d8b3a", "#7a7f8a"];
/** Degrees between the hues of two series, after which none comes near another for long. */
const GOLDEN = 137.508;

/** Returns the colour of a series; no two of a chart have the same. */
export function colourOf(index) {
  if (index < COLOURS.length) return COLOURS[index];
  const [hue, light] = [(index * GOLDEN) % 360, index % 2 === 0 ? 0.58 : 0.42];
  const part = (from) => {
    const at = (from + hue / 30) % 12;
    const value = light - 0.55 * Math.min(light, 1 - light) * Math.max(-1, Math.min(at - 3, 9 - at, 1));
    return Math.round(255 * value).toString(16).padStart(2, "0");
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}
