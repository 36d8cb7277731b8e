import assert from "node:assert/strict";
import { test } from "node:test";

import { CompletionContext } from "@codemirror/autocomplete";
import { EditorState } from "@codemirror/state";

import { support } from "../src/editor.js";

/** Milliseconds of the processor that this process has taken, whatever else the machine does. */
function busyMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Everything that is offered at a place of a text. */
async function offered(extensions, text, at, explicit = true) {
  const state = EditorState.create({ doc: text, extensions });
  const context = new CompletionContext(state, at, explicit);
  const found = [];
  for (const source of state.languageDataAt("autocomplete", at)) {
    const answer = typeof source === "function" ? await source(context) : null;
    if (!answer) continue;
    assert.ok(answer.from >= 0 && answer.from <= at, `${JSON.stringify(text)} at ${at}`);
    found.push(...answer.options);
  }
  return found;
}

const column = (name, type = "float64") => ({ name, type });
const schema = {
  plant: {
    cpu: [column("time", "time"), column("host", "tag"), column("usage")],
    'we "ird" 😀.x': [column("a b"), column("<b>")],
    order: [column("select")],
  },
};

test("columns of the named tables are offered, quoted where they need it", async () => {
  const extensions = support(schema, "plant");
  const labels = async (text, at = text.length) => (await offered(extensions, text, at)).map(({ label }) => label);
  assert.ok((await labels("SELECT us FROM cpu", 9)).includes("usage"));
  assert.ok(!(await labels("SELECT us FROM nothing", 9)).includes("usage"));
  assert.ok((await labels("SELECT * FROM cp")).includes("cpu"));
  const odd = (await offered(extensions, 'SELECT a FROM "we ""ird"" 😀.x"', 8)).find(({ label }) => label === "a b");
  assert.equal(odd.apply, '"a b"');
  assert.ok((await labels("SELECT $fr FROM cpu", 10)).includes("$from"));
});

test("any text at any place is answered, soon, of a large schema as well", async () => {
  const tables = Object.fromEntries(Array.from({ length: 2_000 }, (_, table) => [`table_${table}`, Array.from({ length: 10 }, (_, index) => column(`column_${index}`))]));
  tables.wide = Array.from({ length: 4_000 }, (_, index) => column(`c${index}`));
  const extensions = support({ plant: { ...schema.plant, ...tables } }, "plant");
  let seed = 17;
  const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
  const pieces = ["SELECT ", "FROM ", "WITH x AS (", ") ", "cpu", "wide", "table_7", ".", ",", " ", '"', "'", "--", "/*", "$", "(", "*", "\n", "😀", ";", "é", "c1", "\\", "JOIN ", "a.b.c."];
  const took = [];
  for (let round = 0; round < 1_000; round++) {
    const text = Array.from({ length: random(30) }, () => pieces[random(pieces.length)]).join("");
    const began = busyMs();
    await offered(extensions, text, random(text.length + 1), random(2) === 1);
    took.push(busyMs() - began);
  }
  // Most keys are answered within a frame, none holds the page up.
  took.sort((one, other) => one - other);
  assert.ok(took[Math.floor(took.length * 0.9)] < 50, `${took[Math.floor(took.length * 0.9)]} ms`);
  assert.ok(took.at(-1) < 1_000, `${took.at(-1)} ms`);
});

test("common table expressions in one another, and a text as long as a statement may be, are answered", async () => {
  const extensions = support(schema, "plant");
  let nested = "SELECT usage FROM cpu";
  for (let level = 0; level < 60; level++) nested = `WITH l${level} AS (${nested}) SELECT * FROM l${level}`;
  await offered(extensions, nested, nested.length);
  const long = `SELECT ${"usage + ".repeat(100_000)}u FROM cpu`;
  const began = busyMs();
  await offered(extensions, long, long.length - 9);
  assert.ok(busyMs() - began < 3_000);
});
