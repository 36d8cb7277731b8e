import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { clients } from "../src/lib/clients.js";
import { MOST_ENTRIES, merged, same, withEntry } from "../src/lib/history.js";
import { browserDates } from "../src/lib/locale.js";
import { samplesOf } from "../src/lib/rates.js";
import { formatTime, parseTime } from "../src/lib/time.js";

const entry = (sql, at) => ({ sql, at, database: "a", rows: 1, ms: 1 });

test("a history has each statement once, newest first, and is bounded", () => {
  let history = { entries: [], cleared: 0 };
  for (let at = 1; at <= MOST_ENTRIES + 20; at++) history = withEntry(history, entry(`SELECT ${at}`, at));
  assert.equal(history.entries.length, MOST_ENTRIES);
  assert.equal(history.entries[0].sql, `SELECT ${MOST_ENTRIES + 20}`);
  history = withEntry(history, entry("SELECT 100", 1000));
  assert.deepEqual([history.entries.length, history.entries[0].at], [MOST_ENTRIES, 1000]);
  const long = Array.from({ length: 60 }, (_, at) => entry(`${at}${"😀".repeat(9000)}`, at + 1));
  assert.ok(JSON.stringify(merged({ entries: long }, { entries: [] })).length < 250_000);
});

test("two browsers have the same history in the end, and what was forgotten stays so", () => {
  const one = { entries: [entry("a", 5), entry("b", 2)], cleared: 0 };
  const other = { entries: [entry("a", 3), entry("c", 4)], cleared: 0 };
  assert.deepEqual(merged(one, other).entries.map(({ sql, at }) => [sql, at]), [["a", 5], ["c", 4], ["b", 2]]);
  assert.ok(same(merged(one, other), merged(other, one)));
  assert.deepEqual(merged(one, { entries: [], cleared: 4 }).entries.map(({ sql }) => sql), ["a"]);
  for (const odd of [null, { entries: "x" }, { entries: [null, { sql: 5 }, { sql: "x" }] }]) assert.deepEqual(merged(odd ?? {}, { entries: [] }).entries, []);
});

test("lines for other programs spell any name of a database right", () => {
  const database = `it's "x" $HOME \`id\` \\ 😀`;
  const all = Object.fromEntries(clients({ url: "https://arc.example:8443/arc", database, open: false }).map(({ name, text }) => [name, text]));
  // What a shell makes of the line is what the server is asked.
  const args = execFileSync("sh", ["-c", all.curl.replace("curl", "printf '%s\\n'").split("\n")[0]], { env: { PATH: process.env.PATH, ARC_TOKEN: "t" }, encoding: "utf8" }).split("\n");
  assert.equal(args[1], "Authorization: Bearer t");
  assert.equal(new URL(args[2]).searchParams.get("db"), database);
  const text = /databases?=("(?:[^"\\]|\\.)*")/.exec(all["Python: influxdb3-python"])[1];
  assert.equal(JSON.parse(text), database);
  assert.ok(all.Telegraf.includes('$$HOME'));
  assert.ok(all["Python: ADBC (Arrow Flight)"].includes("grpc+tls://arc.example:8443"));
  assert.ok(all["Java: JDBC"].includes("useEncryption=true"));
  for (const { text: open } of clients({ url: "http://127.0.0.1:8000", database: "a", open: true })) assert.ok(!open.includes("ARC_TOKEN"), open);
});

test("dates are written as the browser's people do, with all digits", () => {
  assert.deepEqual(["de", "de-AT", "en-US", "den"].map((language) => browserDates(language)), ["de", "de", "iso", "iso"]);
  for (const ns of [1_700_000_000_123_456_789n, -(2n ** 63n), 2n ** 63n - 1n, 0n]) {
    const text = formatTime(ns, { dates: "de" });
    assert.match(text, /^\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d(,\d+)?$/);
    assert.equal(parseTime(text), ns);
  }
});

test("what the server remembers becomes samples, those of one minute together", () => {
  const parts = [[{ timestamp: "2026-01-31T12:00:00Z", values: { a: 1 } }, { timestamp: "2026-01-31T12:01:00Z", values: { a: 2 } }], [{ timestamp: "2026-01-31T12:00:00Z", values: { b: 3 } }]];
  assert.deepEqual(samplesOf(parts).map(({ values }) => values), [{ a: 1, b: 3 }, { a: 2 }]);
});
