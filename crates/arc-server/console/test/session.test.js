import assert from "node:assert/strict";
import { test } from "node:test";

import { href, parseRoute } from "../src/lib/address.js";
import { grantsOf, rightsText } from "../src/lib/rights.js";
import { branchCommand } from "../src/lib/clients.js";
import { PAGE_NAMES, currentPage, isDark, keepFrame, knownPages, setToken, token } from "../src/session.js";

/** Storage as a browser has it. */
function storage() {
  const kept = new Map();
  return { getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => kept.set(name, String(text)), removeItem: (name) => kept.delete(name) };
}

function browser() {
  globalThis.document = { baseURI: "http://example.org/arc/" };
  globalThis.localStorage = storage();
  globalThis.sessionStorage = storage();
}

test("what is painted first is what was there the last time, if nobody has to log in", () => {
  browser();
  assert.deepEqual(knownPages(), []);
  keepFrame(["server", "ask"], true);
  assert.deepEqual(knownPages(), ["ask", "server"]);
  keepFrame(["ask", "tables"], false);
  assert.deepEqual(knownPages(), []);
  setToken("arc_1_00");
  assert.deepEqual(knownPages(), ["ask", "tables"]);
  setToken("");
  assert.deepEqual([token(), knownPages()], ["", []]);
  for (const odd of ["null", "5", "{}", '{"pages":"ask","open":true}', '{"pages":["nothing"],"open":true}', "{"]) {
    localStorage.setItem("arc.console:/arc/:frame", odd);
    assert.deepEqual(knownPages(), [], odd);
  }
});

test("the token is kept in the session alone", () => {
  browser();
  setToken("arc_1_secret");
  keepFrame(PAGE_NAMES, false);
  assert.ok(!localStorage.getItem("arc.console:/arc/:frame").includes("secret"));
  assert.equal(sessionStorage.getItem("arc.token"), "arc_1_secret");
});

test("the page is the one of the address, else the first there is", () => {
  assert.equal(currentPage(PAGE_NAMES, "tables"), "tables");
  assert.equal(currentPage(["ask", "tables"], "load"), "ask");
  assert.equal(currentPage([], "ask"), "");
  assert.deepEqual([isDark("", true), isDark("", false), isDark("light", true), isDark("dark", false)], [true, false, false, true]);
});

test("an address says what it was made of, whatever that is", () => {
  const sql = "SELECT '#?&%😀' AS \"a/b\"\n";
  const { page, params } = parseRoute(href("ask", { q: sql, db: "a&b", asof: "@it's", none: "", nothing: null }));
  assert.deepEqual([page, Object.fromEntries(params)], ["ask", { q: sql, db: "a&b", asof: "@it's" }]);
  assert.deepEqual([parseRoute("").page, parseRoute("#/").page, parseRoute("#/%").page, href("draw")], ["ask", "ask", "%", "#/draw"]);
});

test("rights are said in one line", () => {
  for (const [token, expected] of [
    [{ permissions: ["read", "write"] }, "read, write"],
    [{ permissions: ["admin"], databases: ["*"], tables: [] }, "admin"],
    [{ grants: [{ rights: ["read"], databases: ["plant*", "b"], tables: ["pump"] }, { rights: ["write"] }] }, "read in plant*, b for pump; write"],
    [{}, ""],
  ]) assert.equal(rightsText(grantsOf(token)), expected);
});

test("the command of a branch names its state, in the spelling of a shell", () => {
  const begin = "arc-server branch --data-dir ./arc-data --to ./arc-branch";
  for (const [state, end] of [["", ""], ["@nightly", " --snapshot nightly"], ["@it's; rm -r /", " --snapshot 'it'\\''s; rm -r /'"], ["2026-01-31T12:00:00Z", " --at 2026-01-31T12:00:00Z"]]) assert.equal(branchCommand(state), begin + end);
});
