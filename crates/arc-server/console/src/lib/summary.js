// What a column of an answer looks like: counts, ends, distinct values, a histogram.

import { display, isNumber, isTime, toNs } from "./display.js";

const MAX_DISTINCT = 10_000;
const BINS = 24;

/** Summarizes one column of the rows that have come. */
export function summarize(rows, column) {
  const field = rows.fields[column];
  const numeric = isNumber(field.type);
  const timed = isTime(field.type);
  const counts = new Map();
  const numbers = [];
  let nulls = 0;
  let nan = 0;
  let low = null;
  let high = null;
  for (let row = 0; row < rows.length; row++) {
    const value = rows.get(row, column);
    if (value === null) {
      nulls++;
      continue;
    }
    if (typeof value === "number" && Number.isNaN(value)) {
      nan++;
      continue;
    }
    const comparable = field.type.kind === "decimal" ? Number(value) : value;
    if (typeof value !== "object") {
      if (low === null || comparable < low.comparable) low = { comparable, value };
      if (high === null || comparable > high.comparable) high = { comparable, value };
    }
    if (numeric) numbers.push(Number(value));
    if (timed) numbers.push(Number(toNs(value, field.type)));
    if (counts.size <= MAX_DISTINCT) {
      const key = typeof value === "object" ? display(value, field) : value;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  const finite = numbers.filter(Number.isFinite);
  const mean = numeric && finite.length > 0 ? finite.reduce((sum, number) => sum + number, 0) / finite.length : null;
  const text = (end) => (end === null ? null : display(end.value, field));
  const most = counts.size <= MAX_DISTINCT ? [...counts].sort((one, other) => other[1] - one[1]).slice(0, 5) : [];
  return {
    name: field.name,
    nulls,
    nan,
    low: text(low),
    high: text(high),
    mean,
    distinct: counts.size > MAX_DISTINCT ? null : counts.size,
    most: numeric || timed ? [] : most.map(([value, times]) => ({ text: typeof value === "string" ? value : display(value, field), times })),
    histogram: numeric || timed ? histogram(finite) : null,
  };
}

/** Counts numbers in bins of one width. */
export function histogram(numbers) {
  if (numbers.length === 0) return null;
  let low = Infinity;
  let high = -Infinity;
  for (const number of numbers) {
    if (number < low) low = number;
    if (number > high) high = number;
  }
  const bins = new Array(low === high ? 1 : BINS).fill(0);
  // Halves, for the whole width may be beyond a float.
  const width = high / 2 - low / 2;
  for (const number of numbers) {
    const part = width === 0 ? 0 : (number / 2 - low / 2) / width;
    bins[Math.min(bins.length - 1, Math.floor(part * bins.length))]++;
  }
  return bins;
}
