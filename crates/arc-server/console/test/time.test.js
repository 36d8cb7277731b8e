import assert from "node:assert/strict";
import { test } from "node:test";

import { firstRange, formatDuration, formatTime, interval, isoTime, parseDuration, parseTime, rangeEnds, sqlInterval } from "../src/lib/time.js";

test("times keep their nanoseconds, from 1677 to 2262", () => {
  for (const [ns, text] of [
    [0n, "1970-01-01 00:00:00"],
    [1n, "1970-01-01 00:00:00.000000001"],
    [-1n, "1969-12-31 23:59:59.999999999"],
    [1_700_000_000_123_456_789n, "2023-11-14 22:13:20.123456789"],
    [500_000_000n, "1970-01-01 00:00:00.5"],
    [-(2n ** 63n), "1677-09-21 00:12:43.145224192"],
    [2n ** 63n - 1n, "2262-04-11 23:47:16.854775807"],
  ]) {
    assert.equal(formatTime(ns), text);
    assert.equal(parseTime(text), ns, text);
    assert.equal(parseTime(isoTime(ns)), ns, text);
  }
});

test("times beyond four digits of a year are shown with their sign", () => {
  assert.equal(formatTime(400_000_000_000_000_000_000n), "+014645-06-30 15:06:40");
  assert.equal(formatTime(10n ** 30n), `${10n ** 30n} ns`);
});

test("what is no time is null", () => {
  for (const text of ["", "yesterday", "2023-13-01", "2023-02-30", "2023-01-01 24:00", "2023-01-01 00:60", "1700000000", "2023-01-01 00:00:00.1234567890"]) {
    assert.equal(parseTime(text), null, text);
  }
  assert.equal(parseTime("2023-01-01T02:00:00+02:00"), parseTime("2023-01-01"));
  assert.equal(parseTime("2023-01-01T00:00Z"), parseTime("2023-01-01"));
});

test("ranges have ends", () => {
  assert.deepEqual(rangeEnds({ last: "1h" }, 3_600_000_000_000n), { from: 0n, to: 3_600_000_000_000n });
  assert.equal(rangeEnds({ from: "2023-01-02", to: "2023-01-01" }, 0n), null);
  assert.equal(rangeEnds({ last: "x" }, 0n), null);
  assert.equal(parseDuration("0m"), null);
});

test("a part of a range is round and there are no more than asked for", () => {
  const hour = 3_600_000_000_000n;
  assert.equal(sqlInterval(interval(0n, hour, 300)), "INTERVAL '15 seconds'");
  assert.equal(sqlInterval(interval(0n, 1000n, 300)), "INTERVAL '5 nanoseconds'");
  for (const length of [1n, 999n, 10n ** 6n, 10n ** 9n, hour, 24n * hour, 10_000n * hour, 2n ** 63n]) {
    assert.ok(length / interval(0n, length, 300) <= 300n, String(length));
  }
});

test("lengths of time are said in units", () => {
  assert.equal(formatDuration(90_061_001_000_001n), "1d 1h 1m 1s 1ms 1ns");
  assert.equal(formatDuration(-1_500_000n), "-1ms 500µs");
  assert.equal(formatDuration(0n), "0s");
});

test("the first range has something in it", () => {
  const [now, minute, day] = [1_769_860_800_000_000_000n, 60_000_000_000n, 86_400_000_000_000n];
  for (const [oldest, newest, found] of [
    [now - minute, now, { last: "5m" }],
    [now - 10n * minute, now, { last: "15m" }],
    [now - 59n * minute, now, { last: "1h" }],
    [now - 900n * day, now, { last: "1h" }],
    [now - 3n * day, now - 2n * day, { last: "7d" }],
    [now - 900n * day, now - 2n * 60n * minute, { last: "365d" }],
    [0n, day, { from: "1970-01-01T00:00:00Z", to: "1970-01-02T00:00:00.000000001Z" }],
    [now, now + day, { from: "2026-01-31T12:00:00Z", to: "2026-02-01T12:00:00.000000001Z" }],
  ]) assert.deepEqual(firstRange(oldest, newest, now), found);
});
