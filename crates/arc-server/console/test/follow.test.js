import assert from "node:assert/strict";
import { test } from "node:test";

import { follow, tablesIn } from "../src/lib/follow.js";

const failed = (status, message = `status ${status}`) => Object.assign(new Error(message), { status });

/** Follows by a list of what each tail does; ends after the last. Returns what was done in which order. */
async function done(tails) {
  const told = [];
  const controller = new AbortController();
  const open = async (signal) => {
    assert.ok(!signal.aborted);
    const next = tails.shift();
    if (!next) {
      controller.abort();
      throw Object.assign(new Error("aborted"), { name: "AbortError" });
    }
    told.push("open");
    return next();
  };
  const read = async () => told.push("read");
  const pause = async (ms) => {
    if (ms > 1000) told.push("wait");
  };
  const ended = await follow({ open, read, pause, onTrouble: (text) => told.push(`trouble ${text}`), signal: controller.signal });
  return { told, ended };
}

const rows = () => async () => {};
const broken = (status) => () => async () => { throw failed(status); };

test("the tail is there before the rows are read, each time", async () => {
  assert.deepEqual(await done([rows, rows]), { told: ["open", "read", "open", "read"], ended: "" });
});

test("what waiting mends is tried again, and told once", async () => {
  for (const status of [0, 429, 503]) {
    const refused = () => Promise.reject(failed(status));
    const { told, ended } = await done([refused, refused, broken(status), rows]);
    assert.deepEqual(told, ["open", `trouble status ${status}`, "wait", "open", "wait", "open", "trouble ", "read", `trouble status ${status}`, "wait", "open", "trouble ", "read"]);
    assert.equal(ended, "");
  }
});

test("what waiting does not mend ends it", async () => {
  for (const status of [400, 401, 403, 404, 501]) {
    assert.deepEqual(await done([() => Promise.reject(failed(status)), rows]), { told: ["open"], ended: `status ${status}` });
    assert.equal((await done([broken(status), rows])).ended, `status ${status}`);
  }
});

test("tables are found by their names, as SQL reads them", () => {
  const tables = ["cpu", "mem", 'odd "name"', "Pump", "d", "e", "f"];
  assert.deepEqual(tablesIn("SELECT * FROM CPU JOIN mem -- d\n", tables), ["cpu", "mem"]);
  assert.deepEqual(tablesIn('SELECT \'e\' FROM "odd ""name"""', tables), ['odd "name"']);
  assert.deepEqual(tablesIn('SELECT 1 FROM Pump, "Pump"', tables), ["Pump"]);
  assert.deepEqual(tablesIn("SELECT 1", tables), []);
  assert.equal(tablesIn("SELECT cpu FROM mem, d, e, f", tables).length, 4);
});
