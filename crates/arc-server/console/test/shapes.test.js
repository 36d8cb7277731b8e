import assert from "node:assert/strict";
import { test } from "node:test";

import { blocks } from "../src/lib/markdown.js";
import { readOperator, toMs } from "../src/lib/plan.js";
import { rate } from "../src/lib/rates.js";
import { rowsOf } from "../src/lib/rows.js";
import { MAX_SERIES, colourOf, roles, seriesCsv, toSeries } from "../src/lib/series.js";
import { histogram, summarize } from "../src/lib/summary.js";

const TIME = { name: "time", type: { kind: "timestamp", unit: "ns" } };
const HOST = { name: "host", type: { kind: "utf8" } };
const FLOAT = { name: "v", type: { kind: "float", bits: 64 } };
const INT = { name: "i", type: { kind: "int", bits: 64, signed: true } };

test("a time column, tags and values are found by themselves", () => {
  assert.deepEqual(roles([HOST, TIME, FLOAT, INT]), { time: 1, values: [2, 3], tags: [0] });
  assert.match(roles([HOST, FLOAT]).error, /time column/);
  assert.match(roles([HOST, TIME]).error, /column of numbers/);
});

test("rows become series over one list of times; NaN and null are gaps", () => {
  const rows = rowsOf([TIME, HOST, FLOAT], [[2_000_000_000n, "b", 1], [1_000_000_001n, "a", 2], [2_000_000_000n, "a", NaN], [3_000_000_000n, null, 4], [null, "a", 5]]);
  const data = toSeries(rows, roles(rows.fields));
  assert.deepEqual(data.times, [1, 2, 3]);
  assert.deepEqual(data.series.map(({ name }) => name), ["(none)", "a", "b"]);
  assert.deepEqual(data.series[1].values, [2, null, undefined]);
  assert.equal(seriesCsv(data), "time,(none),a,b\n1970-01-01T00:00:01.000000001Z,,2,\n1970-01-01T00:00:02Z,,,1\n1970-01-01T00:00:03Z,4,,\n");
});

test("more series than a chart can show are counted", () => {
  const rows = rowsOf([TIME, HOST, FLOAT], Array.from({ length: MAX_SERIES + 5 }, (_, index) => [1n, `h${index}`, index]));
  const data = toSeries(rows, roles(rows.fields));
  assert.deepEqual([data.series.length, data.leftOut], [MAX_SERIES, 5]);
});

test("columns are summarized exactly", () => {
  const rows = rowsOf([INT, FLOAT, HOST], [[9007199254740993n, NaN, "x"], [-5n, 1, "x"], [null, 2, "<b>"]]);
  const big = summarize(rows, 0);
  assert.deepEqual([big.low, big.high, big.nulls, big.distinct], ["-5", "9007199254740993", 1, 2]);
  const float = summarize(rows, 1);
  assert.deepEqual([float.nan, float.mean, float.low, float.high], [1, 1.5, "1", "2"]);
  assert.deepEqual(summarize(rows, 2).most, [{ text: "x", times: 2 }, { text: "<b>", times: 1 }]);
  assert.deepEqual(histogram([]), null);
  assert.deepEqual(histogram([3, 3]), [2]);
  assert.equal(histogram([-Number.MAX_VALUE, 0, Number.MAX_VALUE]).reduce((sum, bin) => sum + bin), 3);
});

test("a plan's line has its depth, rows and time", () => {
  const found = readOperator("    DataSourceExec: file_groups={1 group: [[a.parquet]]}, projection=[x], metrics=[output_rows=2.16 K, elapsed_compute=95.37µs, output_bytes=10.1 KB, files_ranges_pruned_statistics=3 total → 1 matched]");
  assert.deepEqual([found.depth, found.name, found.rows, found.bytes], [2, "DataSource", "2.16 K", "10.1 KB"]);
  assert.equal(found.metrics.files_ranges_pruned_statistics, "3 total → 1 matched");
  assert.equal(found.details, "file_groups={1 group: [[a.parquet]]}, projection=[x]");
  for (const [text, ms] of [["1.5ms", 1.5], ["2s", 2000], ["500µs", 0.5], ["1000ns", 0.001], ["x", null]]) assert.equal(toMs(text), ms);
});

test("counters grow by the second, and start again with their server", () => {
  const samples = [{ at: 0, values: { n: 10 } }, { at: 2, values: { n: 30 } }, { at: 4, values: { n: 5 } }, { at: 6, values: {} }];
  assert.deepEqual(rate(samples, [["n/s", "n", true], ["n", "n", false]]).series.map(({ values }) => values), [[10, null, null], [30, 5, null]]);
});

test("markdown is values, never markup; links lead to web pages alone", () => {
  const found = blocks("# A **b**\n\n- one\n- `two`\n\ntext [x](https://a.example) [y](javascript:alert(1)) <b>\n\n```\ncode\n```");
  assert.deepEqual(found.map(({ tag }) => tag), ["heading", "list", "paragraph", "code"]);
  const { parts } = found[2];
  assert.deepEqual(parts.filter(({ href }) => href), [{ text: "x", href: "https://a.example" }]);
  assert.ok(parts.some(({ text }) => text.includes("javascript:") && text.includes("<b>")));
});

test("a gap is no value of a series", () => {
  const rows = rowsOf([TIME, FLOAT], [[1n, Infinity], [2n, -0.5]]);
  assert.deepEqual(toSeries(rows, roles(rows.fields)).series, [{ name: "v", values: [null, -0.5] }]);
});

test("no two series of a chart have one colour, and none is near black or white", () => {
  const colours = Array.from({ length: MAX_SERIES }, (_, index) => colourOf(index));
  assert.equal(new Set(colours).size, MAX_SERIES);
  for (const colour of colours) {
    assert.match(colour, /^#[0-9a-f]{6}$/);
    const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
    assert.ok(Math.max(...parts) > 90 && Math.min(...parts) < 200, colour);
  }
});
