import assert from "node:assert/strict";
import { test } from "node:test";

import { errorPlace, isRead, quoteName, statementAt, statements, substitute, tokens, usesRange } from "../src/lib/sql.js";

test("statements are split at semicolons that are no text", () => {
  const text = `SELECT ';' -- ; no\n; /* ; */ SELECT "a;b" ;;\n-- nothing\n`;
  assert.deepEqual(statements(text).map((one) => one.text), [`SELECT ';' -- ; no`, `/* ; */ SELECT "a;b"`]);
  for (const one of statements(text)) assert.equal(text.slice(one.from, one.to), one.text);
  assert.deepEqual(statements(" ;; -- x"), []);
  assert.equal(statements("SELECT 'never closed; ").length, 1);
});

test("the statement at a cursor is the one it is in or after", () => {
  const text = "SELECT 1;\n\nSELECT 2;\n";
  assert.equal(statementAt(text, 3).text, "SELECT 1");
  assert.equal(statementAt(text, 10).text, "SELECT 1");
  assert.equal(statementAt(text, 13).text, "SELECT 2");
  assert.equal(statementAt(text, text.length).text, "SELECT 2");
  assert.equal(statementAt("", 0), null);
});

test("names are quoted where SQL would read them otherwise", () => {
  for (const [name, quoted] of [["cpu", "cpu"], ["time", "time"], ["user", '"user"'], ["Cpu", '"Cpu"'], ['a"b', '"a""b"'], ["a b", '"a b"'], ["😀", '"😀"'], ["order", '"order"']]) {
    assert.equal(quoteName(name), quoted);
  }
});

test("variables are put in, but not into texts, names and comments", () => {
  const range = { from: 0n, to: 3_600_000_000_000n, points: 60 };
  assert.equal(
    substitute(`SELECT '$from', "$to" /* $from */ FROM t WHERE time >= $from AND time<$to AND x = $other AND d = $interval AND h = $host`, range, { host: "it's" }),
    `SELECT '$from', "$to" /* $from */ FROM t WHERE time >= TIMESTAMP '1970-01-01T00:00:00Z' AND time<TIMESTAMP '1970-01-01T01:00:00Z' AND x = $other AND d = INTERVAL '60 seconds' AND h = 'it''s'`,
  );
  assert.ok(usesRange("a > $from"));
  assert.ok(!usesRange("'$from' $fromage"));
  assert.ok(!usesRange("$constructor") && substitute("$constructor", range) === "$constructor");
});

test("errors are found at their place", () => {
  for (const [message, statement, found] of [
    ["sql parser error: Expected: an SQL statement, found: SELEC at Line: 1, Column: 1", "SELEC 1", "SELEC"],
    ["Expected: end of statement, found: c at Line: 2, Column: 4", "SELECT a\nb, c FROM x", "c"],
    ["No field named nope. Did you mean 'cpu.zone'?\nValid fields are cpu.time.", "SELECT a, nope FROM cpu", "nope"],
    ["No field named cpu.nope.", "SELECT cpu.nope FROM cpu", "nope"],
    ['table "cpux" does not exist in database "default"', "SELECT * FROM cpux", "cpux"],
    ["Invalid function 'foo'.\nDid you mean 'log'?", "SELECT foo(1)", "foo"],
    ["sql parser error: Expected: identifier, found: EOF", "SELECT 1 FROM", "M"],
    ["a at Line: 1, Column: 11", "SELECT '😀', b", ","],
  ]) {
    const place = errorPlace(message, statement);
    assert.equal(statement.slice(place.from, place.to), found, message);
  }
  assert.equal(errorPlace("busy", "SELECT 1"), null);
  assert.deepEqual(errorPlace("x at Line: 9, Column: 99", "a"), { from: 1, to: 1 });
});

test("only what reads counts as reading", () => {
  for (const text of ["select 1", "-- x\nWITH a AS (SELECT 1) SELECT * FROM a", "(SELECT 1)", "SHOW TABLES", "EXPLAIN ANALYZE SELECT 1", "explain verbose with a as (select 1) select 1"]) assert.ok(isRead(text), text);
  for (const text of ["DROP TABLE a", "insert into a values (1)", "", "DELETE FROM a", "EXPLAIN ANALYZE INSERT INTO a VALUES (1)", "EXPLAIN", "explain -- x\n delete from a"]) assert.ok(!isRead(text), text);
});

test("any text is split into tokens that are in it, in order, and ends", () => {
  let state = 1;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  const pieces = ["'", '"', "--", "/*", "*/", "$", "$from", ";", "\n", " ", "a", "é", "😀", "1", "SELECT", "\u0000", "\\", "''"];
  for (let round = 0; round < 3000; round++) {
    const text = Array.from({ length: random(20) }, () => pieces[random(pieces.length)]).join("");
    let at = 0;
    for (const token of tokens(text)) {
      assert.ok(token.from >= at && token.to > token.from, JSON.stringify(text));
      assert.equal(text.slice(token.from, token.to), token.text);
      assert.equal(text.slice(at, token.from).trim(), "", JSON.stringify(text));
      at = token.to;
    }
    assert.equal(text.slice(at).trim(), "");
    for (const one of statements(text)) assert.equal(text.slice(one.from, one.to), one.text);
  }
});
