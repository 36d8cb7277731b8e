// Files that come in, faults of all kinds, odd names and ends of tokens, keyboards and phones, history, readers, newcomers; called by features.mjs.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { TestServer, accessible, ask, call, cell, fromFolder, picture, ran, step, until, visit, watch, write } from "./support.mjs";

const TABLE = 'we"ird <b>😀\'s';

export async function files(page, base, folder) {
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
  await rooms.getByRole("button", { name: "Check", exact: true }).click();
  await rooms.getByText("2 rows would be stored").waitFor();
  await rooms.getByText("room tag, value float").waitFor();
  await rooms.getByRole("button", { name: "Import", exact: true }).click();
  await rooms.getByText("2 rows are stored").waitFor();
  const dropped = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["time,v\n1,2\n"], "dropped.csv"));
    return transfer;
  });
  await page.locator(".drop").dispatchEvent("drop", { dataTransfer: dropped });
  await of("dropped.csv").getByRole("columnheader", { name: "v integer" }).waitFor();
  await page.getByRole("tab", { name: "Other programs" }).click();
  for (const name of ["Telegraf", "Grafana", "Go", "Java: JDBC"]) {
    await page.getByLabel("Program").selectOption(name);
    assert.ok((await page.locator(".snippet pre").textContent()).includes(name === "Telegraf" ? base.slice(0, -1) : new URL(base).host));
  }
}

export async function faults(page, base, admin, browser) {
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
  await until("the query has ended", async () => (await call(base, admin, "GET", "api/v1/queries")).count === 0);

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

  step("a German browser has German dates and counts, with all digits");
  const context = await browser.newContext({ locale: "de-DE", viewport: { width: 1280, height: 800 } });
  await fromFolder(context);
  const short = await context.newPage();
  watch(short, base);
  await short.addInitScript((text) => sessionStorage.setItem("arc.token", text), admin);
  await short.goto(`${base}#/ask`);
  await short.locator(".cm-content").waitFor();
  await write(short, "SELECT arrow_cast(1769860800123456789, 'Timestamp(ns, \"UTC\")') AS t, value FROM generate_series(1, 12345)");
  await ran(short, () => short.keyboard.press("Control+Enter"));
  assert.equal(await cell(short, 0, 0), "31.01.2026 12:00:00,123456789");
  await short.locator(".status").getByText("12.345 rows").waitFor();
  await short.getByLabel("Times are shown in").selectOption("utc iso");
  await short.waitForFunction(() => document.querySelector("#cell-0-0").textContent === "2026-01-31 12:00:00.123456789");

  step("a token that ends by itself leads to the log-in, and what was written is still there");
  const { token } = await call(base, admin, "POST", "api/v1/auth/tokens", JSON.stringify({ name: "short", permissions: ["read"], expires_in: "5s" }));
  await short.evaluate((text) => sessionStorage.setItem("arc.token", text), token);
  await until("the token has ended", async () => (await fetch(`${base}api/v1/databases`, { headers: { authorization: `Bearer ${token}` } })).status === 401);
  await short.evaluate(() => (location.hash = "#/tables"));
  await short.getByText("Your token has expired or was revoked").waitFor();
  await short.evaluate(() => (location.hash = "#/ask"));
  await short.getByLabel("Token").fill(admin);
  await short.getByRole("button", { name: "Log in" }).click();
  await short.locator(".cm-content").getByText("1769860800123456789").waitFor();
  await context.close();
}

/** Goes on by Tab until something that `matches` has the focus; fails if that is never so. */
async function tabTo(page, name, matches) {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(matches)) return;
  }
  assert.fail(`${name} is not reached by Tab`);
}

export async function narrowAndByKeyboard(page, base) {
  step("by the keyboard alone: to a page, into the editor and out of it, into the answer");
  await page.goto(`${base}#/tables`);
  await page.getByRole("link", { name: "cpu", exact: true }).waitFor();
  await page.reload();
  await page.getByRole("link", { name: "cpu", exact: true }).waitFor();
  await tabTo(page, "the page Ask", () => document.activeElement.textContent === "Ask");
  await page.keyboard.press("Enter");
  await page.locator(".cm-content").waitFor();
  await tabTo(page, "the editor", () => document.activeElement.classList.contains("editor-host"));
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText("SELECT value AS n FROM generate_series(7, 9) ORDER BY n");
  await page.keyboard.press("Control+Enter");
  await page.locator("#cell-2-0").waitFor();
  await page.keyboard.press("Escape");
  await tabTo(page, "the tabs of the answer", () => document.activeElement.role === "tab");
  await tabTo(page, "the grid", () => document.activeElement.classList.contains("grid"));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Control+c");
  await until("the cell is copied", async () => (await page.evaluate(() => navigator.clipboard.readText())) === "8");

  step("no page is wider than a phone");
  await page.setViewportSize({ width: 390, height: 780 });
  const addresses = ["tables?table=cpu", "notebooks", "ask", ...["now", "queries", "continuous", "snapshots", "retention", "tokens", "backups", "log"].map((tab) => `server?tab=${tab}`)];
  for (const address of addresses) {
    await visit(page, base, address);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${address} is wider than a phone`);
  }
  await accessible(page, "server, on a phone");
  await page.setViewportSize({ width: 1280, height: 800 });
}

export async function history(page, base, admin, browser) {
  step("statements that were run are kept in the server, for the other browser too, until they are forgotten");
  await page.goto(`${base}#/ask`);
  await page.locator(".cm-content").waitFor();
  await ask(page, "SELECT 'found again' AS x");
  // The page keeps it a moment later.
  await until("the history is kept", () => page.evaluate(async ([address, token]) => {
    const headers = { authorization: `Bearer ${token}` };
    const { documents } = await (await fetch(`${address}?kind=history`, { headers })).json();
    // That of a token which has ended is there, too.
    const bodies = await Promise.all(documents.map(async ({ id }) => (await fetch(`${address}/${id}`, { headers })).text()));
    return bodies.some((body) => body.includes("found again"));
  }, [`${base}api/v1/console/documents`, admin]));
  const context = await browser.newContext();
  await fromFolder(context);
  const other = await context.newPage();
  watch(other, base);
  await other.addInitScript((token) => sessionStorage.setItem("arc.token", token), admin);
  await other.goto(`${base}#/ask`);
  await other.locator(".cm-content").waitFor();
  await other.getByRole("button", { name: "History", exact: true }).click();
  await other.locator("dialog").getByText("found again").waitFor();
  await accessible(other, "history");
  await other.getByRole("button", { name: "Forget all" }).click();
  await other.getByText("Nothing yet").waitFor();
  await context.close();
  await page.getByRole("button", { name: "History", exact: true }).click();
  await page.getByText("Nothing yet").waitFor();
  await page.keyboard.press("Escape");
}

/** A page keeps the history two seconds after a statement; this is more. */
const KEPT_AFTER_MS = 2_500;

export async function reader(browser, program, folder, admin) {
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
    const asked = performance.now();
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
      await visit(page, base, `server?tab=${tab}`);
      assert.equal(await page.locator(".pane").getByRole("button", { name: /New|Revoke|Rotate|Delete|Drop|Back up|Run now|Pause/ }).count(), 0, tab);
    }
    await until("the history would have been sent", () => performance.now() > asked + KEPT_AFTER_MS);
    assert.deepEqual(refused, []);
    await context.close();
  } finally {
    await follows.stop("SIGTERM");
  }
}

/** Most seconds that somebody may need who has never seen it, with time to look around. */
const NEWCOMER_SECONDS = 120;

export async function quickstart(browser, program, folder) {
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
