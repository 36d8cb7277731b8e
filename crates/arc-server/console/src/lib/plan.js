// Reads what EXPLAIN ANALYZE answers into operators with their numbers.

/** Returns `{ operators: [{ depth, name, details, metrics, rows, ms, bytes }], files: [text] }`, or `null` for another answer. */
export function readPlan(rows) {
  if (rows.index("plan_type") !== 0 || rows.index("plan") !== 1) return null;
  const plan = { operators: [], files: [], others: [] };
  for (let row = 0; row < rows.length; row++) {
    const [kind, text] = [rows.get(row, 0), rows.get(row, 1)];
    if (kind === "Plan with Metrics" || kind === "physical_plan") plan.operators.push(...text.split("\n").filter(Boolean).map(readOperator));
    else if (kind === "data_files") plan.files.push(...text.split("\n").filter(Boolean));
    else plan.others.push({ kind, text });
  }
  const slowest = Math.max(0, ...plan.operators.map(({ ms }) => ms ?? 0));
  for (const operator of plan.operators) operator.share = slowest > 0 ? (operator.ms ?? 0) / slowest : 0;
  return plan;
}

/** Reads one line: its depth, name, what it is about, and its metrics. */
export function readOperator(line) {
  const depth = Math.floor((line.length - line.trimStart().length) / 2);
  const at = line.lastIndexOf(", metrics=[");
  const metrics = at < 0 ? {} : readMetrics(line.slice(at + 11, line.lastIndexOf("]")));
  const head = (at < 0 ? line : line.slice(0, at)).trim();
  const colon = head.indexOf(": ");
  const name = (colon < 0 ? head : head.slice(0, colon)).replace(/Exec$/, "");
  return {
    depth,
    name,
    details: colon < 0 ? "" : head.slice(colon + 2),
    metrics,
    rows: metrics.output_rows ?? null,
    ms: metrics.elapsed_compute ? toMs(metrics.elapsed_compute) : null,
    bytes: metrics.output_bytes ?? metrics.bytes_scanned ?? null,
  };
}

function readMetrics(text) {
  const found = {};
  for (const part of text.split(/, (?=[a-z_0-9]+=)/)) {
    const equals = part.indexOf("=");
    if (equals > 0) found[part.slice(0, equals)] = part.slice(equals + 1);
  }
  return found;
}

/** Reads `95.37µs`, `1.2ms`, `3.4s`, `690ns` as milliseconds. */
export function toMs(text) {
  const match = /^([\d.]+)\s*(ns|µs|us|ms|s)/.exec(text);
  return match ? Number(match[1]) * { ns: 1e-6, µs: 1e-3, us: 1e-3, ms: 1, s: 1e3 }[match[2]] : null;
}
