import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readFooter, readParquet } from "../src/lib/parquet.js";
import { csvPreview, csvRows, narrowest, separatorOf } from "../src/lib/preview.js";

test("CSV is split as the import splits it", () => {
  assert.deepEqual(csvRows('a,"b ""x"", y"\r\n1,"two\nlines"\n\n,', ","), [["a", 'b "x", y'], ["1", "two\nlines"], ["", ""]]);
  assert.deepEqual(csvRows("a,b\n1,2\n3", ",", { goesOn: true }), [["a", "b"], ["1", "2"]]);
  assert.deepEqual(csvRows('a\n"never closed', ","), [["a"], ["never closed"]]);
  assert.deepEqual(csvRows("", ","), []);
});

test("separators, types and the column of times are found", () => {
  for (const [text, separator] of [["a;b\n1,5;2", ";"], ["a\tb\n1\t2", "\t"], ["a|b\n1|2", "|"], ["a,b\n1,2", ","], ["one\n1", ","]]) assert.equal(separatorOf(text), separator, text);
  for (const [values, type] of [
    [["1", "-2", ""], "integer"],
    [["9223372036854775808"], "unsigned"],
    [["1", "2.5"], "float"],
    [["NaN", "1"], "float"],
    [["007"], "text"],
    [["true", "False"], "boolean"],
    [["2026-01-31T12:00:00Z"], "time as text"],
    [["", ""], "empty"],
    [["x", "1"], "text"],
    [["18446744073709551616"], "float"],
  ]) assert.equal(narrowest(values), type, values.join());
  const found = csvPreview("\uFEFFhost,at,v\na,2026-01-31 12:00:00,1\nb,2026-01-31 12:00:01,2\n");
  assert.deepEqual([found.separator, found.time, found.columns], [",", "at", [{ name: "host", type: "text" }, { name: "at", type: "time as text" }, { name: "v", type: "integer" }]]);
  assert.equal(csvPreview("v,time\n1,5\n").time, "time");
});

test("any text is a preview", () => {
  let state = 5;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  const pieces = [",", ";", '"', "\n", "\r", "a", "1", "1e5", "-", "😀", "\u0000", "\t"];
  for (let round = 0; round < 3000; round++) {
    const text = Array.from({ length: random(30) }, () => pieces[random(pieces.length)]).join("");
    const { columns, rows } = csvPreview(text, { goesOn: random(2) === 1 });
    assert.ok(Array.isArray(columns) && rows.length <= 8);
  }
});

// Made by the server, as docs/http.md says: `SELECT … &format=parquet` of types.sql.
const parquet = readFileSync(new URL("./types.parquet", import.meta.url));

test("the end of a Parquet file has its columns and rows", async () => {
  const { columns, rows } = await readParquet(new Blob([parquet]));
  assert.equal(rows, 2n);
  const types = Object.fromEntries(columns.map(({ name, type }) => [name, type]));
  assert.deepEqual([types.big, types.most, types.small, types.nan, types.single, types.yes], ["int64", "uint64", "int8", "float64", "float32", "boolean"]);
  assert.deepEqual([types.text, types.day, types.time, types.decimal, types.bytes], ["text", "date", "timestamp(ns)", "decimal(38, 2)", "binary"]);
  assert.deepEqual([types.list, types.struct, types.map], ["list", "structure", "map"]);
});

test("what is no Parquet file, or a damaged one, is told and nothing more", async () => {
  await assert.rejects(readParquet(new Blob(["time,a\n1,2\n1,2\n"])), /no Parquet file/);
  await assert.rejects(readParquet(new Blob(["PAR1"])), /too short/);
  let state = 9;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  const length = new DataView(parquet.buffer, parquet.byteOffset).getUint32(parquet.length - 8, true);
  const footer = parquet.subarray(parquet.length - 8 - length, parquet.length - 8);
  for (let round = 0; round < 2000; round++) {
    const bytes = Uint8Array.from(footer.subarray(0, random(2) ? footer.length : random(footer.length)));
    for (let change = 0; change < 3 && bytes.length > 0; change++) bytes[random(bytes.length)] = random(256);
    try {
      assert.ok(Array.isArray(readFooter(bytes).columns));
    } catch (error) {
      assert.ok(error instanceof Error && !(error instanceof RangeError) && !(error instanceof TypeError), error.stack);
    }
  }
});
