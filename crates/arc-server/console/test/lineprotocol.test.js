import assert from "node:assert/strict";
import { test } from "node:test";

import { check, readLine } from "../src/lib/lineprotocol.js";
import { sampleLines } from "../src/lib/sample.js";

test("good lines are read with their types", () => {
  const point = readLine(`we\\ ather,st\\,a=no\\=rth,b=c i=-3i,u=7u,f=1.5e-3,t=T,s="a \\"b\\", c" -17`);
  assert.equal(point.measurement, "we ather");
  assert.deepEqual(point.tags, [["st,a", "no=rth"], ["b", "c"]]);
  assert.deepEqual(point.fields.map(([key, , type]) => [key, type]), [["i", "integer"], ["u", "unsigned"], ["f", "float"], ["t", "boolean"], ["s", "text"]]);
  assert.equal(point.time, "-17");
  for (const line of ["m v=1", "m v=1i 9223372036854775807", "m v=-9223372036854775808i", "m v=.5", "m v=5.", "  m v=false  12 "]) assert.equal(readLine(line).error, undefined, line);
});

test("bad lines have the column of what is wrong", () => {
  for (const [line, column, reason] of [
    ["bad", 4, "fields"],
    [",a=b v=1", 1, "measurement"],
    ["m,=b v=1", 3, "key of a tag"],
    ["m,a v=1", 4, "expected ="],
    ["m,a= v=1", 5, "no value"],
    ["m,a=b=c v=1", 6, "second ="],
    ["m v", 4, "expected ="],
    ["m v=", 5, "missing"],
    ["m v=abc", 5, "no number"],
    ['m v="abc', 5, "closing quote"],
    ['m v="abc"d', 10, "comma"],
    ["m v=9223372036854775808i", 5, "beyond 64 bits"],
    ["m v=1 1.5", 7, "whole number"],
    ["m v=1 9223372036854775808", 7, "beyond 64 bits"],
    ["m v=1,", 7, "key of a field"],
  ]) {
    const found = readLine(line);
    assert.ok(found.error?.includes(reason), `${line}: ${found.error}`);
    assert.equal(found.column, column, line);
  }
});

test("a text is checked line by line; comments and texts with line ends count", () => {
  const found = check('# a comment\n\nm v="two\nlines"\nbad\r\nm,h=a v=1i 5\r\nm v="x"');
  assert.equal(found.points, 3);
  assert.deepEqual(found.errors.map(({ line }) => line), [5]);
  assert.deepEqual([...found.measurements.get("m").tags], ["h"]);
  assert.equal(found.measurements.get("m").fields.get("v"), "mixed");
  const many = check("bad\n".repeat(500), 10);
  assert.deepEqual([many.errorCount, many.errors.length], [500, 10]);
});

test("any text is checked to its end", () => {
  let state = 7;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  const pieces = ["m", ",", "=", " ", '"', "\\", "\n", "1i", "1", "t", "#", "😀", "\r", "-", "\u0000"];
  for (let round = 0; round < 5000; round++) {
    const text = Array.from({ length: random(25) }, () => pieces[random(pieces.length)]).join("");
    const found = check(text);
    assert.ok(found.points + found.errorCount <= found.lines + 1, JSON.stringify(text));
  }
});

test("the sample is good line protocol, the same each time", () => {
  const lines = sampleLines(1_700_000_000);
  const found = check(lines);
  assert.equal(found.errorCount, 0);
  assert.ok(found.points > 3000);
  assert.deepEqual([...found.measurements.keys()], ["weather", "machine"]);
  assert.equal(lines, sampleLines(1_700_000_000));
});
