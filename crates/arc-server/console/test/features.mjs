// The rest of what the console can, each feature as it is used; called by browser.mjs.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { TestServer, accessible, ask, cell, fromFolder, picture, problems, step, watch, write } from "./support.mjs";

const TABLE = 'we"ird <b>😀\'s';
const SEED_MINUTES = 120;

/** Sends a request as a program does. */
async function call(base, token, method, path, body) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await fetch(new URL(path, base), { method, headers, body });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

const sql = (base, token, statement, db = "default") => call(base, token, "POST", `api/v1/query?db=${db}`, JSON.stringify({ sql: statement }));

/** Picks `2026-01-31T12:00:00` style texts of a download. */
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

async function files(page, base, folder) {
  step("files are looked into before they go: CSV, small by gzip, Parquet, lines, and what is none of them");
  mkdirSync(join(folder, "files"), { recursive: true });
  const at = (name, content) => {
    writeFileSync(join(folder, "files", name), content);
    return join(folder, "files", name);
  };
  const csv = "when;room;value\n2026-01-31 12:00:00;<b>hall</b>;1.5\n2026-01-31 12:00:01;lab;2\n";
  const parquet = readFileSync(new URL("./types.parquet", import.meta.url));
  await page.goto(`${base}#/load`);
  await page.getByRole("tab", { name: "Files" }).click();
  await page.locator("input[type=file]").setInputFiles([at("rooms.csv.gz", gzipSync(csv)), at("types.parquet", parquet), at("some.lp", "pump,id=7 rpm=1i\nwrong\n"), at("broken.parquet", parquet.subarray(0, 100))]);
  const of = (name) => page.getByRole("region", { name, exact: true });
  const rooms = of("rooms.csv.gz");
  await rooms.getByRole("columnheader", { name: "when time" }).waitFor();
  await rooms.getByRole("columnheader", { name: "value float" }).waitFor();
  await rooms.getByRole("cell", { name: "<b>hall</b>" }).waitFor();
  await rooms.getByLabel("Tags").fill("room");
  await rooms.getByRole("columnheader", { name: "room tag" }).waitFor();
  await of("types.parquet").getByText("2 rows.").waitFor();
  await of("types.parquet").getByRole("columnheader", { name: "most uint64" }).waitFor();
  await of("some.lp").getByText("line 2").waitFor();
  await of("broken.parquet").getByText("no Parquet file").waitFor();
  await accessible(page, "previews");
  await picture(page, "files");
  await rooms.getByRole("button", { name: "Import", exact: true }).click();
  await rooms.getByText("2 rows are stored").waitFor();
  await page.getByRole("tab", { name: "Other programs" }).click();
  for (const name of ["Telegraf", "Grafana", "Go", "Java: JDBC"]) {
    await page.getByLabel("Program").selectOption(name);
    assert.ok((await page.locator(".snippet pre").textContent()).includes(name === "Telegraf" ? base.slice(0, -1) : new URL(base).host));
  }
}

async function faults(page, base, admin, browser) {
  step("a query and a download that fail half-way are told, and nothing is saved");
  await page.goto(`${base}#/ask`);
  await page.locator(".cm-content").waitFor();
  const breaks = "SELECT value * 7919 % 1000003 AS m, value, 1 / (800000 - value) AS x FROM generate_series(1, 3000000)";
  await ask(page, breaks);
  await page.locator(".work > .notice").getByText(/broke off|divide/i).waitFor();
  await page.getByRole("tab", { name: /Rows/ }).waitFor();
  let saves = 0;
  page.on("download", () => saves++);
  await page.getByLabel("Download all rows as").selectOption("csv");
  await page.getByText("nothing was saved").waitFor();
  assert.equal(saves, 0);

  step("an answer that is larger than a page ends where the page is full, and so does the query");
  await ask(page, "SELECT value AS a, value * 2 AS b, 'a text to fill it' AS c FROM generate_series(1, 400000000)");
  await page.getByText("These are the first").waitFor();
  await page.waitForFunction(async ([address, token]) => (await (await fetch(address, { headers: { authorization: `Bearer ${token}` } })).json()).count === 0, [`${base}api/v1/queries`, admin], { polling: 500 });

  step("names with quotes, markup and emoji are what they are on every page");
  const escaped = TABLE.replaceAll(" ", "\\ ");
  await call(base, admin, "POST", `write?db=${encodeURIComponent(TABLE)}`, `${escaped},${escaped}-tag=${escaped} ${escaped}=1,v=2i`);
  await page.reload();
  await page.getByLabel("Database", { exact: true }).selectOption(TABLE);
  await page.getByRole("button", { name: TABLE, exact: true }).waitFor();
  await page.getByRole("button", { name: `Columns of ${TABLE}` }).click();
  await ask(page, `SELECT * FROM "${TABLE.replaceAll('"', '""')}"`);
  assert.ok((await page.locator(".grid-cell").allTextContents()).includes(TABLE));
  await accessible(page, "ask, odd names");
  await page.getByRole("link", { name: "Draw" }).click();
  await page.locator(".uplot").waitFor();
  await page.locator(".legend").getByText(TABLE).first().waitFor();
  await page.getByRole("link", { name: "Tables" }).click();
  await page.getByRole("link", { name: TABLE }).click();
  await page.locator("#cell-0-0").waitFor();
  await page.getByRole("tab", { name: /Last of each series/ }).click();
  await page.getByText("1 series.").waitFor();
  await accessible(page, "table, odd names");
  assert.equal(await page.locator("main b b, .grid b b, h2 b").count(), 0);
  await page.getByLabel("Database", { exact: true }).selectOption("default");

  step("a token that ends by itself leads to the log-in, and what was written is still there");
  const { token } = await call(base, admin, "POST", "api/v1/auth/tokens", JSON.stringify({ name: "short", permissions: ["read"], expires_in: "20s" }));
  const made = Date.now();
  const context = await browser.newContext({ locale: "de-DE", viewport: { width: 1280, height: 800 } });
  await fromFolder(context);
  const short = await context.newPage();
  watch(short, base);
  await short.addInitScript((text) => sessionStorage.setItem("arc.token", text), token);
  await short.goto(`${base}#/ask`);
  await short.locator(".cm-content").waitFor();
  await write(short, "SELECT arrow_cast(1769860800123456789, 'Timestamp(ns, \"UTC\")') AS t, value FROM generate_series(1, 12345)");
  await short.keyboard.press("Control+Enter");

  step("a German browser has German dates and counts, with all digits");
  await short.locator("#cell-0-0").waitFor();
  assert.equal(await cell(short, 0, 0), "31.01.2026 12:00:00,123456789");
  await short.locator(".status").getByText("12.345 rows").waitFor();
  await short.getByLabel("Times are shown in").selectOption("utc iso");
  await short.waitForFunction(() => document.querySelector("#cell-0-0").textContent === "2026-01-31 12:00:00.123456789");
  await short.waitForTimeout(Math.max(0, made + 20_500 - Date.now()));
  await short.evaluate(() => (location.hash = "#/tables"));
  await short.getByText("Your token has expired or was revoked").waitFor();
  await short.evaluate(() => (location.hash = "#/ask"));
  await short.getByLabel("Token").fill(admin);
  await short.getByRole("button", { name: "Log in" }).click();
  await short.locator(".cm-content").getByText("1769860800123456789").waitFor();
  await context.close();
}

async function history(page, base, admin, browser) {
  step("statements that were run are kept in the server, for the other browser too, until they are forgotten");
  await page.goto(`${base}#/ask`);
  await page.locator(".cm-content").waitFor();
  await ask(page, "SELECT 'found again' AS x");
  await page.waitForFunction(async ([address, token]) => {
    const headers = { authorization: `Bearer ${token}` };
    const { documents } = await (await fetch(`${address}?kind=history`, { headers })).json();
    return documents.length === 1 && JSON.stringify(await (await fetch(`${address}/${documents[0].id}`, { headers })).json()).includes("found again");
  }, [`${base}api/v1/console/documents`, admin], { polling: 500 });
  const context = await browser.newContext();
  await fromFolder(context);
  const other = await context.newPage();
  watch(other, base);
  await other.addInitScript((token) => sessionStorage.setItem("arc.token", token), admin);
  await other.goto(`${base}#/ask`);
  await other.locator(".cm-content").waitFor();
  await other.getByRole("button", { name: "History" }).click();
  await other.locator("dialog").getByText("found again").waitFor();
  await accessible(other, "history");
  await other.getByRole("button", { name: "Forget all" }).click();
  await other.getByText("Nothing yet").waitFor();
  await context.close();
  await page.getByRole("button", { name: "History" }).click();
  await page.getByText("Nothing yet").waitFor();
  await page.keyboard.press("Escape");
}

async function reader(browser, program, folder, admin) {
  step("a server that only reads offers nothing that changes something");
  const follows = new TestServer(program, folder);
  const base = await follows.start(0, ["--reader"]);
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    await fromFolder(context);
    const page = await context.newPage();
    watch(page, base);
    await page.addInitScript((token) => sessionStorage.setItem("arc.token", token), admin);
    const refused = [];
    page.on("response", (response) => response.status() === 405 && refused.push(response.url()));
    await page.goto(`${base}#/ask`);
    await page.locator(".cm-content").waitFor();
    await page.getByText("Reader", { exact: true }).waitFor();
    await ask(page, "SELECT count(*) > 0 AS some FROM cpu");
    assert.equal(await cell(page, 0, 0), "true");
    assert.equal(await page.getByRole("link", { name: "Load" }).count(), 0);
    assert.equal(await page.getByRole("button", { name: "Save" }).count(), 0);
    await page.goto(`${base}#/tables?table=cpu`);
    await page.locator("#cell-0-0").waitFor();
    assert.equal(await page.getByRole("button", { name: /Drop|Restore|Change/ }).count(), 0);
    await page.goto(`${base}#/notebooks`);
    await page.getByRole("button", { name: "As dashboard" }).first().waitFor();
    assert.equal(await page.getByRole("button", { name: /New|Delete/ }).count(), 0);
    for (const tab of ["now", "queries", "continuous", "snapshots", "retention", "tokens", "backups", "log"]) {
      await page.goto(`${base}#/server?tab=${tab}`);
      await page.waitForTimeout(300);
      assert.equal(await page.locator(".pane").getByRole("button", { name: /New|Revoke|Rotate|Delete|Drop|Back up|Run now|Pause/ }).count(), 0, tab);
    }
    await page.waitForTimeout(2_500);
    assert.deepEqual(refused, []);
    await context.close();
  } finally {
    await follows.stop("SIGTERM");
  }
}

/** Most seconds that somebody may need who has never seen it, with time to look around. */
const NEWCOMER_SECONDS = 120;

async function quickstart(browser, program, folder) {
  step("who has never seen it draws the CPU of this machine after quickstart, by two clicks");
  const began = performance.now();
  const tour = new TestServer(program, join(folder, "tour"), "quickstart");
  mkdirSync(tour.folder);
  const base = await tour.start();
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    await fromFolder(context);
    const page = await context.newPage();
    watch(page, base);
    await page.goto(base);
    await page.getByRole("button", { name: "cpu", exact: true }).waitFor();
    await page.getByRole("link", { name: "Draw" }).click();
    await page.locator(".uplot").waitFor();
    await page.waitForFunction(() => /table=cpu/.test(location.hash) && /last=(5|15)m/.test(location.hash));
    await page.getByLabel("Refresh", { exact: true }).selectOption("2");
    await page.waitForFunction(() => /(\d+) times/.exec(document.querySelector(".status")?.textContent ?? "")?.[1] >= 3);
    const seconds = (performance.now() - began) / 1000;
    console.log(`  ${seconds.toFixed(0)} seconds from the first start to a live chart`);
    assert.ok(seconds < NEWCOMER_SECONDS);
    await context.close();
  } finally {
    await tour.stop("SIGKILL");
  }
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
    await history(page, base, admin, browser);
    await reader(browser, program, own, admin);
    await quickstart(browser, program, own);
    await context.close();
    assert.deepEqual(problems, []);
  } finally {
    await server.stop("SIGKILL");
  }
}
