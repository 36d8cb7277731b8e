import assert from "node:assert/strict";
import { test } from "node:test";

import { asOfClause, fixedState, inState, readAsOf, stateName } from "../src/lib/asof.js";
import { tokens } from "../src/lib/sql.js";

const NOW = 1_769_860_800_000_000_000n;

test("a state of the past is a time, a while ago, or a snapshot", () => {
  for (const [state, clause] of [
    ["", ""],
    ["2026-01-31T12:00:00.5Z", "FOR SYSTEM_TIME AS OF '2026-01-31T12:00:00.5Z'"],
    ["31.01.2026 13:00", "FOR SYSTEM_TIME AS OF '2026-01-31T13:00:00Z'"],
    ["-10m", "FOR SYSTEM_TIME AS OF '2026-01-31T11:50:00Z'"],
    ["@it's", "AT (SNAPSHOT => 'it''s')"],
    ["@", null],
    ["-", null],
    ["tomorrow'; DROP TABLE a", null],
  ]) assert.equal(asOfClause(state, NOW), clause, state);
});

test("each table that is read gets the clause, and nothing else does", () => {
  for (const [text, expected] of [
    ["SELECT * FROM pump", "SELECT * FROM pump @"],
    ["SELECT * FROM pump AS p WHERE x = 'FROM cpu'", "SELECT * FROM pump @ AS p WHERE x = 'FROM cpu'"],
    ['select a from "we ird"."ta""ble" t, b join c on a.x = c.x, d where y', 'select a from "we ird"."ta""ble" @ t, b @ join c @ on a.x = c.x, d @ where y'],
    ["WITH w AS (SELECT * FROM pump), v(a) AS (SELECT 1) SELECT * FROM w JOIN v ON true JOIN cpu USING (time)", "WITH w AS (SELECT * FROM pump @), v(a) AS (SELECT 1) SELECT * FROM w JOIN v ON true JOIN cpu @ USING (time)"],
    ["SELECT extract(hour FROM time), trim(both 'x' FROM y), a IS DISTINCT FROM b FROM pump", "SELECT extract(hour FROM time), trim(both 'x' FROM y), a IS DISTINCT FROM b FROM pump @"],
    ["SELECT * FROM generate_series(1, 3) AS g, pump", "SELECT * FROM generate_series(1, 3) AS g, pump @"],
    ["SELECT * FROM (a JOIN b ON a.x = b.x) WHERE x IN (SELECT y FROM c)", "SELECT * FROM (a @ JOIN b @ ON a.x = b.x) WHERE x IN (SELECT y FROM c @)"],
    ["SELECT * FROM (SELECT * FROM pump) AS s, LATERAL (SELECT 1) l", "SELECT * FROM (SELECT * FROM pump @) AS s, LATERAL (SELECT 1) l"],
    ["SELECT * FROM pump FOR SYSTEM_TIME AS OF '2026-01-01' AS p JOIN cpu AT (SNAPSHOT => 's') ON true", "SELECT * FROM pump FOR SYSTEM_TIME AS OF '2026-01-01' AS p JOIN cpu AT (SNAPSHOT => 's') ON true"],
    ["SELECT * FROM information_schema.tables", "SELECT * FROM information_schema.tables"],
    ["SELECT a FROM pump ORDER BY 1, 2 LIMIT 3", "SELECT a FROM pump @ ORDER BY 1, 2 LIMIT 3"],
    ["SELECT a FROM x UNION ALL SELECT b FROM y -- FROM z", "SELECT a FROM x @ UNION ALL SELECT b FROM y @ -- FROM z"],
    ["SHOW COLUMNS FROM pump", "SHOW COLUMNS FROM pump"],
    ["SELECT (", "SELECT ("],
    [")) FROM", ")) FROM"],
  ]) assert.equal(readAsOf(text, "@"), expected);
  assert.equal(readAsOf("SELECT * FROM pump", ""), "SELECT * FROM pump");
});

test("a state is put into what reads, refused for what changes, and nothing is changed as of now", () => {
  for (const [text, state, expected] of [
    ["DROP TABLE pump", "", "DROP TABLE pump"],
    ["SELECT * FROM pump", "", "SELECT * FROM pump"],
    ["SELECT * FROM pump", "@a", "SELECT * FROM pump AT (SNAPSHOT => 'a')"],
    ["EXPLAIN ANALYZE SELECT * FROM pump", "-10m", "EXPLAIN ANALYZE SELECT * FROM pump FOR SYSTEM_TIME AS OF '2026-01-31T11:50:00Z'"],
    ["SHOW TABLES", "@a", "SHOW TABLES"],
  ]) assert.equal(inState(text, state, NOW), expected);
  for (const text of ["DROP TABLE pump", "INSERT INTO a SELECT * FROM b", "EXPLAIN ANALYZE DELETE FROM a", "CREATE TABLE a AS SELECT 1"]) assert.throws(() => inState(text, "@a", NOW), /does not only read/);
  for (const state of ["@", "yesterday", "-"]) assert.throws(() => inState("SELECT 1", state, NOW), /no time and no snapshot/);
});

test("a while ago becomes a time, what stays is left, and each has a name", () => {
  for (const [state, fixed, name] of [
    ["", "", ""],
    ["-10m", "2026-01-31T11:50:00Z", "10m ago"],
    ["@before 😀", "@before 😀", "snapshot before 😀"],
    ["2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.5Z", "2026-01-31 12:00:00"],
  ]) assert.deepEqual([fixedState(state, NOW), stateName(state)], [fixed, name]);
});

test("any text keeps all it has, and the walk ends", () => {
  let state = 3;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  const pieces = ["SELECT", "FROM", "JOIN", "WITH", "AS", "a", '"b"', ".", ",", "(", ")", "WHERE", "LATERAL", "DISTINCT", "'t'", "--x\n", "AT", "FOR", "SYSTEM_TIME", "$from", "😀"];
  for (let round = 0; round < 5000; round++) {
    const text = Array.from({ length: random(25) }, () => pieces[random(pieces.length)]).join(" ");
    const out = readAsOf(text, "@");
    assert.equal(out.replaceAll(" @", ""), text);
    assert.ok(tokens(out).length <= 2 * tokens(text).length + 1);
  }
});
