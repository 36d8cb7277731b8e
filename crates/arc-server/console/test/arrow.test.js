import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { StreamReader, decimalText } from "../src/lib/arrow.js";
import { display, toTsv, typeName } from "../src/lib/display.js";
import { Rows, rowsOf } from "../src/lib/rows.js";

// Made by `arc-server`: the statement is in types.sql, beside it.
const stream = readFileSync(new URL("./types.arrow", import.meta.url));

function read(pieces) {
  const reader = new StreamReader();
  const rows = new Rows();
  for (const piece of pieces) {
    for (const batch of reader.push(piece)) {
      rows.fields = reader.fields;
      rows.add(batch);
    }
  }
  return { rows, reader };
}

const shown = (rows) => Object.fromEntries(rows.fields.map((field, column) => [field.name, display(rows.get(0, column), field)]));

test("every type is shown as it is", () => {
  const { rows, reader } = read([stream]);
  assert.ok(reader.ended);
  assert.equal(rows.length, 2);
  assert.deepEqual(shown(rows), {
    big: "9007199254740993",
    least: "-9223372036854775808",
    most: "18446744073709551615",
    small: "-7",
    nan: "NaN",
    infinite: "-∞",
    float: "0.1",
    single: "1.5",
    decimal: "-12345678901234567890.50",
    yes: "true",
    text: `<img src=x onerror=alert(1)> "q" 😀`,
    empty: "",
    bytes: "00ff",
    day: "2024-02-29",
    time: "2262-04-11 23:47:16.854775807",
    early: "1677-09-21 00:12:43.145224194",
    clock: "12:00:01.5",
    span: "1 days 2h",
    list: "[1, null, 3]",
    texts: '["a", "b\\"c"]',
    struct: '{"x": 1, "y": "two"}',
    map: '{"k": 1}',
    nothing: "null",
    maybe: "null",
  });
  assert.equal(display(rows.get(1, rows.index("maybe")), rows.fields[rows.index("maybe")]), "7");
  assert.equal(typeName(rows.fields[0].type), "int64");
});

test("a stream may come in pieces of any size", () => {
  const whole = shown(read([stream]).rows);
  for (const size of [1, 7, 64, 1000]) {
    const pieces = [];
    for (let at = 0; at < stream.length; at += size) pieces.push(new Uint8Array(stream.subarray(at, at + size)));
    const { rows, reader } = read(pieces);
    assert.ok(reader.ended);
    assert.deepEqual(shown(rows), whole, `pieces of ${size}`);
  }
});

test("a stream that breaks off has no end, and bytes that are none are refused", () => {
  assert.ok(!read([stream.subarray(0, stream.length - 8)]).reader.ended);
  assert.throws(() => read([new TextEncoder().encode('{"success": true}')]), /no[t] an Arrow stream/);
});

test("decimals keep all digits", () => {
  for (const [value, scale, text] of [[150n, 2, "1.50"], [-5n, 2, "-0.05"], [0n, 0, "0"], [12n, -3, "12000"], [0n, 3, "0.000"]]) assert.equal(decimalText(value, scale), text);
});

test("copied cells are read back by spreadsheets, and run nothing there", () => {
  assert.equal(toTsv([["a", null, "b\tc"], ['say "x"', "two\nlines", "=1+1"]]), 'a\t\t"b\tc"\n"say ""x"""\t"two\nlines"\t\'=1+1');
});

test("rows are found in any batch", () => {
  const rows = rowsOf([{ name: "a", type: { kind: "int", bits: 64, signed: true } }], [[1n], [2n]]);
  rows.add({ length: 0, columns: [{ get: () => assert.fail() }] });
  rows.add({ length: 1, columns: [{ get: () => 3n }] });
  assert.deepEqual([0, 1, 2].map((row) => rows.get(row, 0)), [1n, 2n, 3n]);
});
