// The rest of what the console can, each feature as it is used; called by browser.mjs.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { faults, files, history, narrowAndByKeyboard, quickstart, reader } from "./faults.mjs";
import { cluster, followed } from "./live.mjs";
import { TestServer, accessible, ask, call, cell, fromFolder, picture, problems, step, until, watch } from "./support.mjs";

const SEED_MINUTES = 120;

const sql = (base, token, statement, db = "default") => call(base, token, "POST", `api/v1/query?db=${db}`, JSON.stringify({ sql: statement }));

/** Returns what the browser saves when something is done. */
async function saved(page, act) {
  const download = page.waitForEvent("download");
  await act();
  return readFileSync(await (await download).path());
}

async function pastAndPictures(page, base, admin, context) {
  step("charts as pictures of all kinds, a series alone, and an address that stays");
  const now = Math.floor(Date.now() / 1000);
  const lines = Array.from({ length: SEED_MINUTES }, (_, index) => ["a", "b", "c"].map((host, at) => `cpu,host=${host} usage=${(50 + 30 * Math.sin(index / 9 + at)).toFixed(2)},bytes=${1024 * (index + 1)}i ${now - 60 * (SEED_MINUTES - index)}`).join("\n")).join("\n");
  await call(base, admin, "POST", "write?db=default&precision=s", lines);
  await page.goto(`${base}#/draw?table=cpu&last=6h`);
  await page.locator(".uplot").waitFor();
  for (const kind of ["line", "heat", "tiles", "bars"]) {
    await page.locator(".builder").getByLabel("Chart").selectOption(kind);
    await page.locator({ heat: ".heat canvas", tiles: ".tiles .spark" }[kind] ?? ".uplot").first().waitFor();
    const png = await saved(page, () => page.getByRole("button", { name: "PNG" }).click());
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    assert.ok(png.length > 3_000, `${kind}: ${png.length} bytes`);
    await accessible(page, `draw, ${kind}`);
  }
  await page.locator(".builder").getByLabel("Chart").selectOption("line");
  assert.match((await saved(page, () => page.getByRole("button", { name: "CSV" }).click())).toString(), /^time,a,b,c\n20/);
  await page.locator(".legend button").first().click();
  await page.waitForFunction(() => location.hash.includes("only=a"));
  await page.getByRole("button", { name: "Link" }).click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(link, /from=20.*&to=20|to=20.*&from=20/);
  const again = await context.newPage();
  watch(again, base);
  await again.addInitScript((token) => sessionStorage.setItem("arc.token", token), admin);
  await again.goto(link);
  await again.locator('.legend button[aria-pressed="true"]').getByText("a").waitFor();
  await again.close();
  await page.getByRole("button", { name: "Earlier" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("from=20"));
  await page.getByRole("button", { name: "Closer" }).click();
  // Half of six hours before: there is nothing then, and a way to where there is.
  await page.getByRole("button", { name: "Show where there are" }).click();
  await page.locator(".uplot").waitFor();
  await page.getByRole("button", { name: "Wider" }).click();
  await page.getByLabel("Unit").selectOption("bytes");
  await page.getByLabel("Logarithmic").check();
  await page.locator(".uplot").waitFor();

  step("tables as they were: charts, notebooks, a snapshot, a restored table");
  await page.goto(`${base}#/server?tab=snapshots`);
  await page.getByText("No snapshots").waitFor();
  await page.getByRole("button", { name: "New snapshot" }).click();
  await page.locator("dialog").getByLabel("Name").fill("before 😀");
  await page.locator("dialog button[type=submit]").click();
  await page.getByRole("cell", { name: "before 😀", exact: true }).waitFor();
  await accessible(page, "snapshots");
  await page.getByRole("button", { name: "Branch of before 😀" }).click();
  await page.locator("dialog .snippet").getByText("--snapshot 'before 😀'").waitFor();
  await accessible(page, "branch");
  await page.locator("dialog").getByLabel("State").selectOption("");
  await page.waitForFunction(() => document.querySelector("dialog .snippet pre").textContent.endsWith("--to ./arc-branch"));
  await page.keyboard.press("Escape");
  await sql(base, admin, "CREATE TABLE IF NOT EXISTS other (time TIMESTAMP, v DOUBLE)");
  await call(base, admin, "POST", "api/v1/delete", JSON.stringify({ database: "default", measurement: "cpu", where: "host = 'c'", confirm: true }));
  await page.goto(`${base}#/draw?table=cpu&last=6h&by=host`);
  await page.locator(".legend button").getByText("b", { exact: false }).first().waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".legend button").length === 2);
  await page.getByLabel("State").selectOption("@before 😀");
  await page.waitForFunction(() => document.querySelectorAll(".legend button").length === 3 && location.hash.includes("asof=%40before"));
  await page.getByLabel("State").selectOption("pick");
  await page.locator("dialog input").fill("2001-01-01 00:00:00");
  await page.locator("dialog button[type=submit]").click();
  await page.locator(".work > .notice").waitFor();
  await page.getByLabel("State").selectOption("");
  await asOfInAsk(page, base);
  await page.goto(`${base}#/notebooks`);
  await page.getByRole("button", { name: "New notebook" }).click();
  await page.locator(".cell.sql .cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText("WITH hosts AS (SELECT DISTINCT host FROM cpu WHERE host <> $but) SELECT count(*) AS n FROM hosts");
  await page.getByRole("button", { name: "Variable" }).click();
  await page.locator("dialog").getByLabel("Name").fill("but");
  await page.locator("dialog textarea").fill("SELECT 'a' UNION ALL SELECT 'b' ORDER BY 1");
  await page.locator("dialog button[type=submit]").click();
  await page.getByRole("button", { name: "Run all" }).click();
  await page.waitForFunction(() => document.querySelector("#cell-0-0")?.textContent === "1");
  await page.getByLabel("State").selectOption("@before 😀");
  await page.waitForFunction(() => document.querySelector("#cell-0-0")?.textContent === "2");
  await page.getByLabel("Width on the dashboard").selectOption("whole");
  await page.getByLabel("Shared").check();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved", { exact: true }).waitFor();
  await accessible(page, "notebook as of");
  const exported = JSON.parse((await saved(page, () => page.getByRole("button", { name: "Export" }).click())).toString());
  assert.deepEqual([exported.body.asof, exported.body.variables[0].name, exported.body.cells[1].width], ["@before 😀", "but", "whole"]);
  const notebook = join(process.env.TMPDIR ?? "/tmp", `arc-notebook-${process.pid}.json`);
  writeFileSync(notebook, JSON.stringify({ ...exported, name: "Brought" }));
  await page.goto(`${base}#/notebooks`);
  await page.locator("input[type=file]").setInputFiles(notebook);
  await page.waitForFunction(() => document.querySelector(".title-input")?.value === "Brought");
  await page.getByRole("button", { name: "Dashboard" }).click();
  await page.waitForFunction(() => document.querySelector(".board .whole #cell-0-0")?.textContent === "2");
  await page.goto(`${base}#/tables?table=cpu`);
  await page.getByRole("button", { name: "Restore…" }).click();
  await page.locator("dialog").getByLabel("Snapshot").selectOption("@before 😀");
  await page.getByRole("button", { name: "Go on" }).click();
  assert.ok(await page.locator("dialog").getByRole("button", { name: "Restore" }).isDisabled());
  await page.locator("dialog input").fill("cpu");
  await page.locator("dialog").getByRole("button", { name: "Restore" }).click();
  await page.locator("dialog").waitFor({ state: "detached" });
  assert.equal((await sql(base, admin, "SELECT count(DISTINCT host) FROM cpu")).data[0][0], 3);
  await page.goto(`${base}#/server?tab=snapshots`);
  await page.getByRole("button", { name: "Drop before 😀" }).click();
  await page.locator("dialog input").fill("before 😀");
  await page.locator("dialog").getByRole("button", { name: "Drop" }).click();
  await page.getByText("No snapshots").waitFor();
}

/** `cpu` has three hosts in the snapshot and two now. */
async function asOfInAsk(page, base) {
  const hosts = async (expected) => {
    await ask(page, "SELECT count(DISTINCT host) AS hosts FROM cpu");
    assert.equal(await cell(page, 0, 0), expected);
  };
  await page.goto(`${base}#/ask`);
  await page.locator(".cm-content").waitFor();
  await hosts("2");
  await page.getByLabel("State").selectOption("@before 😀");
  await hosts("3");
  await page.locator(".status").getByText("as of snapshot before 😀").waitFor();
  await accessible(page, "ask as of");
  await ask(page, "EXPLAIN ANALYZE SELECT * FROM cpu");
  await page.locator(".plan").waitFor();
  await ask(page, "DELETE FROM cpu WHERE usage > 0");
  await page.locator(".work > .notice").getByText("the past stays what it was").waitFor();
  await ask(page, "SELECT nope FROM cpu");
  assert.equal(await page.locator(".cm-lintRange-error").textContent(), "nope");
  await page.getByRole("button", { name: "Link" }).click();
  const link = await until("the link is copied", async () => /^.*#\/ask\?.*nope.*$/.exec(await page.evaluate(() => navigator.clipboard.readText()))?.[0]);
  assert.match(link, /asof=%40before/);
  // A statement that was run as of then comes back so.
  await page.getByLabel("State").selectOption("");
  await page.getByRole("button", { name: "History", exact: true }).click();
  await page.locator("dialog li").filter({ hasText: "as of snapshot before 😀" }).filter({ hasText: "count(DISTINCT" }).getByRole("button").click();
  await page.waitForFunction(() => document.querySelector('.toolbar select[aria-label="State"]').value === "@before 😀");
  await page.getByLabel("State").selectOption("-45m");
  await ask(page, "SELECT 1 AS one");
  assert.equal(await page.locator(".status").getByText("as of").count(), 0);
  await page.getByLabel("State").selectOption("");

  // One row with all of its columns, also those that a cell cuts off.
  await ask(page, "SELECT value AS n, repeat('long ', 200) AS t, NULL AS nothing FROM generate_series(1, 3) ORDER BY 1");
  await page.locator("#cell-1-1").dblclick();
  await page.locator("dialog").getByText("Row 2 of 3").waitFor();
  await accessible(page, "row");
  assert.equal((await page.locator("dialog td").nth(1).textContent()).length, 1000);
  await page.getByRole("button", { name: "Next row" }).click();
  await page.locator("dialog").getByText("Row 3 of 3").waitFor();
  await page.locator("dialog").getByRole("button", { name: "Copy" }).click();
  await until("the row is copied", async () => (await page.evaluate(() => navigator.clipboard.readText())).startsWith("n\t3\nt\tlong "));
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.locator("dialog").getByText("Row 2 of 3").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  assert.ok(await page.locator(".grid").evaluate((grid) => grid === document.activeElement));
}

async function run(page, base, admin) {
  step("a table's files by day, late rows, columns and series");
  await call(base, admin, "POST", "write?db=default", "cpu,host=late usage=1 1700000000000000000\ncpu,host=late usage=2 1700090000000000000");
  await call(base, admin, "POST", "api/v1/write/line-protocol/flush", "");
  await call(base, admin, "POST", "write?db=default", "cpu,host=late usage=3 1700000000000000000");
  await call(base, admin, "POST", "api/v1/write/line-protocol/flush", "");
  await page.goto(`${base}#/tables?table=cpu`);
  await page.getByText("Late, to be merged").waitFor();
  await page.locator(".facts").getByText(/^[01] rows$/).first().waitFor();
  await page.getByRole("tab", { name: /Files by day/ }).click();
  await page.getByRole("cell", { name: "2023-11-14" }).waitFor();
  await page.getByRole("cell", { name: "2023-11-15" }).waitFor();
  await accessible(page, "files by day");
  await picture(page, "table");
  await page.getByRole("tab", { name: /Last of each series/ }).click();
  await page.getByText("4 series.").waitFor();
  await page.locator(".grid-cell").getByText("late", { exact: true }).waitFor();
  await page.getByRole("tab", { name: /^Columns/ }).click();
  await page.getByRole("cell", { name: "tag", exact: true }).waitFor();
  await accessible(page, "columns of a table");

  step("continuous queries are made, run, paused, looked at and deleted; retention is listed");
  await page.goto(`${base}#/server?tab=continuous`);
  await page.getByText("No continuous queries").waitFor();
  await page.getByRole("button", { name: "New continuous query" }).click();
  await accessible(page, "a new continuous query");
  await page.locator("dialog").getByLabel("Name", { exact: true }).fill("by the hour");
  await page.locator("dialog").getByLabel("Reads the table").fill("cpu");
  await page.locator("dialog").getByLabel("Writes the table").fill("cpu_1h");
  await page.locator("dialog").getByLabel("Every").fill("1h");
  await page.locator("dialog textarea").fill("SELECT nonsense FROM");
  await page.locator("dialog button[type=submit]").click();
  await page.locator("dialog .notice").waitFor();
  await page.locator("dialog textarea").fill("SELECT date_bin(INTERVAL '1 hour', time) AS time, host, avg(usage) AS usage FROM cpu WHERE time >= {start_time} AND time < {end_time} GROUP BY 1, 2");
  await page.locator("dialog button[type=submit]").click();
  await page.getByRole("cell", { name: "by the hour", exact: true }).waitFor();
  // It has run by itself before that, over the last whole hour.
  await page.getByText(/completed, \d+ rows/).waitFor();
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByText(/wrote \d+ rows/).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("(paused)").waitFor();
  await accessible(page, "continuous queries");
  await picture(page, "continuous");
  await page.getByRole("button", { name: "Runs" }).click();
  await page.locator("dialog").getByText("completed").first().waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Delete by the hour" }).click();
  await page.locator("dialog input").fill("by the hour");
  await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No continuous queries").waitFor();
  await call(base, admin, "PUT", "api/v1/retention/default/cpu", JSON.stringify({ retention_days: 4000 }));
  await page.goto(`${base}#/server?tab=retention`);
  await page.getByText("4000 days").waitFor();
  await accessible(page, "retention");
  await page.getByRole("tab", { name: "Log" }).click();
  await page.getByLabel("Follow").waitFor();
  await page.locator(".log tr").first().waitFor();
  await page.getByLabel("Find in the log").fill("no line has this");
  await page.getByText("No line has this in it").waitFor();
  await page.getByRole("tab", { name: "Now" }).click();
  await page.getByText("writer", { exact: true }).waitFor();
  await page.getByLabel("Charts of").selectOption("60");
  await page.getByText("Once a minute").waitFor();
}

/** Uses the rest of the console on a server of its own. */
export async function features(browser, program, folder) {
  const own = join(folder, "features");
  mkdirSync(own);
  const server = new TestServer(program, own);
  const base = await server.start(0, ["--delete-enabled"]);
  try {
    const admin = readFileSync(join(own, "data", "admin.token"), "utf8").trim();
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true });
    await fromFolder(context);
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: base });
    const page = await context.newPage();
    watch(page, base);
    await page.addInitScript((token) => sessionStorage.setItem("arc.token", token), admin);
    await pastAndPictures(page, base, admin, context);
    await run(page, base, admin);
    await files(page, base, own);
    await faults(page, base, admin, browser);
    await narrowAndByKeyboard(page, base);
    await followed(page, base, admin, server);
    await history(page, base, admin, browser);
    await reader(browser, program, own, admin);
    await cluster(browser, program, own);
    await quickstart(browser, program, own);
    await context.close();
    assert.deepEqual(problems, []);
  } finally {
    await server.stop("SIGKILL");
  }
}
