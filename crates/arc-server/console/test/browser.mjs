// Uses the console as a person does, in Chromium against a real server: `node browser.mjs SERVER FOLDER`.
//
// Prints `skipped: …` and ends with 0 where there is no Chromium. Pictures of the pages go to FOLDER.
// CONSOLE_DIST names a folder of built files to use instead of those in the program, which spares building it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as http } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { features } from "./features.mjs";
import { firstPaint } from "./first-paint.mjs";
import { TestServer, accessible, ask, cell, findChromium, fromFolder, launch, picture, problems, ran, step, until, visit, watch, write } from "./support.mjs";

const [server, pictures] = process.argv.slice(2);
const executablePath = findChromium();
if (!executablePath) {
  console.log("skipped: there is no Chromium (Debian: chromium; or name one in CHROMIUM)");
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), "arc-console-"));
const running = new TestServer(server, folder);
const flags = ["--delete-enabled", "--backup-dir", join(folder, "backups")];
const start = (port, more = []) => running.start(port, [...flags, ...more]);
const stop = (signal) => running.stop(signal);

async function steps(browser) {
  let base = await start();
  const admin = readFileSync(join(folder, "data", "admin.token"), "utf8").trim();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true });
  // A machine may be busy with more than this.
  context.setDefaultTimeout(120_000);
  await fromFolder(context);
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: base });
  const page = await context.newPage();
  watch(page, base);

  step("the page is light and paints soon");
  // Of a first visit: later ones ask whether there is anything newer.
  const sizes = new Map();
  page.on("response", async (response) => {
    const url = response.url();
    if (!url.includes("/console/") && url !== base) return;
    const length = Number((await response.allHeaders())["content-length"] ?? 0);
    sizes.set(url, Math.max(length, sizes.get(url) ?? 0));
  });
  await page.goto(base);
  await page.getByLabel("Token").waitFor();
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  await accessible(page, "log in");

  step("a wrong token is refused, the right one lets in, and stays in this tab only");
  await page.getByLabel("Token").fill("arc_1_00");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("does not let in").waitFor();
  await page.getByLabel("Token").fill(admin);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".cm-content").waitFor();
  assert.ok(!(await page.evaluate(() => JSON.stringify({ ...localStorage }))).includes("arc_"), "the token is in localStorage");
  assert.equal(await page.evaluate(() => document.cookie), "");

  step("lines are checked before they are sent, written, and drawn");
  await page.goto(`${base}#/load`);
  const now = Math.floor(Date.now() / 1000);
  const lines = Array.from({ length: 600 }, (_, index) => `cpu,host=${index % 2 ? "web-1" : 'w\\ "<b>x</b>\\,😀"'} usage=${(50 + 30 * Math.sin(index / 40 + (index % 2))).toFixed(2)} ${now - 600 + index}`);
  await page.locator("textarea").fill(`${lines.join("\n")}\nbad line=`);
  await page.getByText("1 lines are wrong").waitFor();
  await page.getByText("Line 601", { exact: true }).waitFor();
  await page.getByLabel("Times are in").selectOption("s");
  await accessible(page, "lines");
  await picture(page, "load");
  await page.getByRole("button", { name: "Write" }).click();
  await page.getByText("600 stored").first().waitFor();
  await page.locator("textarea").fill(lines.slice(0, 1).join("\n"));
  await page.getByRole("button", { name: "Write" }).click();
  await page.getByText("1 points are stored").waitFor();
  await page.getByRole("link", { name: "Draw cpu" }).click();
  await page.locator(".uplot").waitFor();
  await page.getByText('w "<b>x</b>,😀"').waitFor();

  step("a drag zooms, and the address gives the same picture");
  const box = await page.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.86, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.95, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction(() => location.hash.includes("from=20"));
  const zoomed = page.url();
  await page.getByRole("button", { name: "Wider" }).waitFor();
  await accessible(page, "draw");
  await page.getByLabel("Range").selectOption("15m");
  await page.waitForFunction(() => location.hash.includes("last=15m"));
  await picture(page, "draw");
  await page.goto("about:blank");
  await page.goto(zoomed);
  await page.locator(".uplot").waitFor();
  assert.ok(page.url().includes("from=20"));

  step("answers are exact, whatever they are");
  await page.goto(`${base}#/ask`);
  await page.locator(".cm-content").waitFor();
  await ask(page, `SELECT 9007199254740993 AS big, 'NaN'::double AS nan, NULL AS nothing, '<img src=x onerror=alert(1)>' AS "<b>name</b>", make_array(1, NULL) AS list, arrow_cast(9223372036854775807, 'Timestamp(ns, "UTC")') AS late`);
  assert.deepEqual([await cell(page, 0, 0), await cell(page, 0, 1), await cell(page, 0, 2), await cell(page, 0, 3)], ["9007199254740993", "NaN", "null", "<img src=x onerror=alert(1)>"]);
  assert.equal(await cell(page, 0, 5), "2262-04-11 23:47:16.854775807");
  assert.equal(await page.locator(".grid img, .grid-name b b").count(), 0);

  step("a million rows scroll, sort and copy");
  await ask(page, "SELECT value AS n, value * 0.5 AS half FROM generate_series(1, 1000000) ORDER BY n");
  await page.locator(".status").getByText("1,000,000 rows").waitFor();
  assert.equal(await page.getByText("These are the first").count(), 0);
  await page.locator(".grid").focus();
  await page.keyboard.press("Control+End");
  await page.locator("#cell-999999-0").waitFor();
  assert.equal(await cell(page, 999_999, 0), "1000000");
  await page.keyboard.press("Control+c");
  await until("the cell is copied", async () => (await page.evaluate(() => navigator.clipboard.readText())) === "500000");
  assert.ok((await page.locator(".grid-cell").count()) < 200);
  await accessible(page, "ask");

  await ask(page, "SELECT value AS n, CASE WHEN value % 3 = 0 THEN NULL ELSE value * 7 % 11 END AS k FROM generate_series(1, 100)");
  await page.locator("#cell-0-1").click();
  await page.keyboard.press("s");
  await page.waitForFunction(() => document.querySelector("#cell-0-1").textContent === "0");
  await page.keyboard.press("s");
  await page.waitForFunction(() => document.querySelector("#cell-0-1").textContent === "10");
  await page.keyboard.press("Control+End");
  assert.equal(await cell(page, 99, 1), "null");

  step("4,000 columns scroll, and any way through the grid shows what is there");
  await ask(page, `SELECT ${Array.from({ length: 4000 }, (_, column) => `${column} AS c${column}`).join(", ")}`);
  await page.locator(".grid").focus();
  await page.keyboard.press("Control+End");
  assert.equal(await cell(page, 0, 3999), "3999");
  assert.ok((await page.locator(".grid-cell").count()) < 100);
  await ask(page, "SELECT value AS a, value + 1 AS b, value + 2 AS c FROM generate_series(0, 4999)");
  await page.locator(".grid").focus();
  let seed = 11;
  const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
  const keys = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "PageDown", "PageUp", "Home", "End", "Control+Home", "Control+End", "Shift+ArrowDown"];
  for (let round = 0; round < 60; round++) {
    await page.keyboard.press(keys[random(keys.length)]);
    if (round % 7 === 0) await page.locator(".grid").evaluate((grid, top) => (grid.scrollTop = top), random(130_000));
    const wrong = await page.evaluate(() => [...document.querySelectorAll(".grid-cell")].filter((cell) => {
      const [, row, column] = cell.id.split("-").map(Number);
      return cell.textContent !== String(row + column);
    }).length);
    assert.equal(wrong, 0);
  }

  step("errors are underlined where they are");
  await ask(page, "SELECT usage,\n  nope\nFROM cpu");
  await page.getByText("No field named nope").first().waitFor();
  assert.equal(await page.locator(".cm-lintRange-error").textContent(), "nope");

  step("columns are offered while a statement is written");
  await write(page, "SELECT usa");
  await write(page, "SELECT  FROM cpu");
  await page.keyboard.press("Home");
  for (let index = 0; index < 7; index++) await page.keyboard.press("ArrowRight");
  await page.keyboard.type("usa", { delay: 30 });
  await page.locator(".cm-tooltip-autocomplete").getByText("usage", { exact: true }).waitFor();
  await page.keyboard.press("Escape");

  step("plans, columns, charts, and a download");
  await ask(page, "SELECT * FROM cpu ORDER BY time");
  await page.getByRole("tab", { name: /Columns/ }).click();
  await page.getByText("Distinct").first().waitFor();
  await accessible(page, "columns");
  await page.getByRole("tab", { name: "Chart" }).click();
  await page.locator(".uplot").waitFor();
  const download = page.waitForEvent("download");
  await page.getByLabel("Download all rows as").selectOption("csv");
  assert.match(readFileSync(await (await download).path(), "utf8"), /^time,host,usage\n/);
  await page.getByRole("button", { name: "Explain" }).click();
  await page.locator(".plan").waitFor();
  await accessible(page, "plan");
  await picture(page, "plan");
  await ask(page, "SELECT *\nFROM cpu\nWHERE usage > 70\nORDER BY time DESC");
  await page.getByRole("tab", { name: /Rows/ }).click();
  await picture(page, "ask");

  step("a saved query and a notebook are kept in the server; the later save of two is told");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+s");
  await page.locator("dialog").getByLabel("Name").fill("Hot 😀");
  await page.locator("dialog button[type=submit]").click();
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Open…" }).click();
  await page.locator("dialog").getByText("Hot 😀").waitFor();
  await page.keyboard.press("Escape");
  await page.goto(`${base}#/notebooks`);
  await page.getByRole("button", { name: "New notebook" }).click();
  await page.locator(".cell.sql .cm-content").waitFor();
  const other = await context.newPage();
  watch(other, base);
  await other.addInitScript((token) => sessionStorage.setItem("arc.token", token), admin);
  await other.goto(page.url());
  await other.getByLabel("Name", { exact: true }).fill("Theirs");
  await other.getByRole("button", { name: "Save" }).click();
  await other.getByText("Saved", { exact: true }).waitFor();
  await page.locator(".cell.sql .cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText("SELECT date_bin($interval, time) AS time, host, avg(usage) AS usage FROM cpu WHERE time >= $from AND time < $to GROUP BY 1, 2 ORDER BY 1");
  await page.getByLabel("Shown as").selectOption("line");
  await page.getByRole("button", { name: "Run all" }).click();
  await page.locator(".uplot").waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Somebody saved this notebook").waitFor();
  await page.getByRole("button", { name: "Save as a copy" }).click();
  await page.locator("dialog button[type=submit]").click();
  await page.waitForFunction(() => document.querySelector(".title-input")?.value.endsWith("(copy)"));
  // A notebook that is opened has run nothing yet.
  assert.equal(await page.locator(".uplot").count(), 0);
  await page.getByRole("button", { name: "Run all" }).click();
  await page.locator(".uplot").waitFor();
  await accessible(page, "notebook");
  await picture(page, "notebook");
  await page.getByRole("button", { name: "Dashboard" }).click();
  await page.locator(".board .uplot").waitFor();
  await accessible(page, "dashboard");

  step("a query that runs is ended from the list");
  await page.goto(`${base}#/ask`);
  await page.locator(".cm-content").waitFor();
  await write(page, "SELECT count(*) FROM generate_series(1, 1000000) AS a(x) CROSS JOIN generate_series(1, 1000000) AS b(y) WHERE x * y % 7 = 3");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("button", { name: "Cancel" }).waitFor();
  await other.goto(`${base}#/server`);
  await other.getByRole("tab", { name: "Queries", exact: true }).click();
  await other.getByRole("button", { name: /End the query/ }).first().click();
  await other.locator("dialog").getByText("CROSS JOIN").waitFor();
  await accessible(other, "ending a query");
  await other.locator("dialog").getByRole("button", { name: "End" }).click();
  await other.locator("dialog").waitFor({ state: "detached" });
  await page.locator(".work > .notice").getByText(/cancel/i).waitFor();

  step("a file is imported by picking it");
  writeFileSync(join(folder, "pump.csv"), `time,site,rpm\n${Array.from({ length: 50 }, (_, index) => `${now - index},north,${1400 + index}`).join("\n")}\n`);
  await page.goto(`${base}#/load`);
  await page.getByRole("tab", { name: "Files" }).click();
  await page.locator("input[type=file]").setInputFiles(join(folder, "pump.csv"));
  await page.getByLabel("Tags").fill("site");
  await accessible(page, "files");
  await page.getByRole("button", { name: "Import", exact: true }).click();
  await page.getByText("50 rows are stored").waitFor();
  await page.getByRole("tab", { name: "Sample data" }).click();
  await page.getByRole("button", { name: "Write sample data" }).click();
  await page.getByText("points are in the database sample").waitFor();
  await page.getByRole("tab", { name: "Other programs" }).click();
  await accessible(page, "clients");

  step("tables, the server, tokens, backups, the log");
  await page.getByLabel("Database", { exact: true }).first().selectOption("default");
  await page.goto(`${base}#/tables`);
  await page.getByRole("link", { name: "pump" }).click();
  await page.locator("#cell-0-0").waitFor();
  await accessible(page, "table");
  await picture(page, "table");
  await page.getByRole("button", { name: "Drop table" }).click();
  assert.ok(await page.locator("dialog").getByRole("button", { name: "Drop" }).isDisabled());
  await page.locator("dialog input").fill("pump");
  await page.locator("dialog").getByRole("button", { name: "Drop" }).click();
  await page.getByRole("link", { name: "cpu" }).waitFor();
  await page.waitForFunction(() => ![...document.querySelectorAll("td a")].some((link) => link.textContent === "pump"));
  await accessible(page, "tables");
  let samples = 0;
  page.on("response", (response) => response.url().endsWith("/metrics") && samples++);
  await page.goto(`${base}#/server`);
  await page.locator(".uplot").first().waitFor();
  await page.getByText("The token admin may").waitFor();
  await until("the charts have some points", () => samples >= 3);
  await accessible(page, "server");
  await picture(page, "server");
  await page.getByRole("tab", { name: "Tokens" }).click();
  await page.getByRole("button", { name: "New token" }).click();
  await page.getByLabel("Name", { exact: true }).fill("reader");
  await page.locator("dialog").getByLabel("May").selectOption("read");
  await page.locator("dialog button[type=submit]").click();
  const reader = (await page.locator("dialog .snippet pre").textContent()).trim();
  await accessible(page, "token");
  await page.getByRole("button", { name: "Close" }).click();
  await accessible(page, "tokens");
  await page.getByRole("tab", { name: "Backups" }).click();
  await page.getByRole("button", { name: "Back up now" }).click();
  await page.getByText("completed").first().waitFor();
  await page.getByRole("tab", { name: "Log" }).click();
  await page.locator(".log tr").first().waitFor();
  await accessible(page, "log");

  step("who may only read is offered nothing else");
  const little = await context.newPage();
  watch(little, base);
  await little.addInitScript((token) => sessionStorage.setItem("arc.token", token), reader);
  await little.goto(base);
  await little.locator(".cm-content").waitFor();
  assert.equal(await little.getByRole("link", { name: "Load" }).count(), 0);
  const mayDelete = little.waitForResponse(/delete\/config/);
  await little.goto(`${base}#/tables`);
  await little.getByRole("link", { name: "cpu" }).waitFor();
  await (await mayDelete).finished();
  assert.equal(await little.getByRole("button", { name: /Drop|Database$/ }).count(), 0);
  await visit(little, base, "server");
  await little.getByText("The token reader may").waitFor();
  assert.equal(await little.locator(".facts dd").last().textContent(), "read");
  assert.equal(await little.getByRole("tab", { name: /Tokens|Backups|Log/ }).count(), 0);
  await little.close();

  step("the server is killed and comes back; nothing that was written in the page is lost");
  await page.goto(`${base}#/ask`);
  await page.locator(".cm-content").waitFor();
  await write(page, "SELECT count(*) AS points FROM cpu");
  await stop("SIGKILL");
  await page.keyboard.press("Control+Enter");
  await page.getByText("The server does not answer").waitFor();
  base = await start(running.port);
  await ran(page, () => page.getByRole("button", { name: "Run", exact: true }).click());
  assert.equal(await cell(page, 0, 0), "600");

  step("a token that is revoked leads to the log-in");
  const list = await (await fetch(`${base}api/v1/auth/tokens`, { headers: { authorization: `Bearer ${admin}` } })).json();
  assert.ok(list.tokens.length >= 2);
  await page.evaluate(() => sessionStorage.setItem("arc.token", "arc_9_00"));
  // What the page asks by itself may have met it already.
  await page.getByRole("button", { name: "Run", exact: true }).click({ timeout: 5_000 }).catch(() => {});
  await page.getByText("Your token has expired or was revoked").waitFor();
  await page.getByLabel("Token").fill(admin);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".cm-content").getByText("SELECT count(*)").waitFor();

  step("dark, and on a phone");
  await page.getByRole("button", { name: "Dark colours" }).click();
  await page.goto(`${base}#/draw?last=15m&table=cpu`);
  await page.locator(".uplot").waitFor();
  await accessible(page, "draw, dark");
  await picture(page, "draw-dark");
  await page.goto(`${base}#/ask`);
  await page.locator(".cm-content").waitFor();
  await accessible(page, "ask, dark");
  await page.setViewportSize({ width: 390, height: 780 });
  for (const name of ["ask", "draw", "notebooks", "load", "tables", "server"]) {
    await visit(page, base, name);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is wider than a phone`);
    await picture(page, `phone-${name}`);
  }
  await stop("SIGTERM");

  step("without tokens it opens at once, and a statement of a link is shown, not run");
  base = await start(0, ["--no-auth"]);
  const open = await context.newPage();
  watch(open, base);
  const sent = [];
  open.on("request", (request) => sent.push(request.postData() ?? ""));
  await open.goto(`${base}#/ask?q=${encodeURIComponent("DROP TABLE cpu")}`);
  await open.locator(".cm-content").getByText("DROP TABLE cpu").waitFor();
  await open.getByRole("button", { name: "cpu", exact: true }).waitFor();
  assert.ok(sent.length > 3 && !sent.some((body) => body.includes("DROP")), sent.join("\n"));
  const left = await fetch(`${base}api/v1/query`, { method: "POST", body: JSON.stringify({ sql: "SELECT count(*) FROM cpu" }) });
  assert.equal((await left.json()).data[0][0], 600);
  // A chart of a link can only read.
  await open.goto(`${base}#/draw?sql=${encodeURIComponent("DROP TABLE cpu")}`);
  await open.locator(".notice").waitFor();
  const still = await fetch(`${base}api/v1/query`, { method: "POST", body: JSON.stringify({ sql: "SELECT count(*) FROM cpu" }) });
  assert.equal(still.status, 200);

  step("the frame is painted before the script is there, in the colours and the width that it has later");
  await firstPaint(browser, base, `${base}console/console.js`);

  step("behind a prefix it works as well");
  const proxy = createServer((request, response) => {
    if (!request.url.startsWith("/arc/")) return response.writeHead(404).end();
    // The name that the browser used goes on, as proxies are set up to do.
    const forward = { host: "127.0.0.1", port: running.port, path: request.url.slice(4), method: request.method, headers: request.headers };
    return request.pipe(http(forward, (answer) => answer.pipe(response.writeHead(answer.statusCode, answer.headers))));
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const prefixed = `http://127.0.0.1:${proxy.address().port}/arc/`;
  const behind = await context.newPage();
  watch(behind, prefixed);
  // The style of the page is allowed there as well.
  await firstPaint(browser, prefixed, `${prefixed}console/console.js`);
  await behind.goto(prefixed);
  await behind.locator(".cm-content").waitFor();
  await ask(behind, "SELECT count(*) AS points FROM cpu");
  assert.equal(await cell(behind, 0, 0), "600");
  await behind.close();
  proxy.close();
  proxy.closeAllConnections();
  await stop("SIGTERM");

  step("over TLS, with a token");
  execFileSync(server, ["cert", "--name", "localhost", "--to", join(folder, "tls")]);
  await start(0, ["--tls-cert", join(folder, "tls", "cert.pem"), "--tls-key", join(folder, "tls", "key.pem")]);
  const secure = await browser.newContext({ ignoreHTTPSErrors: true });
  await fromFolder(secure);
  const sealed = await secure.newPage();
  base = `https://localhost:${running.port}/`;
  watch(sealed, base);
  await sealed.goto(base);
  await sealed.getByLabel("Token").fill(admin);
  await sealed.getByRole("button", { name: "Log in" }).click();
  await sealed.locator(".cm-content").waitFor();
  await ask(sealed, "SELECT count(*) AS points FROM cpu");
  assert.equal(await cell(sealed, 0, 0), "600");
  await secure.close();
  await stop("SIGTERM");
  const bytes = [...sizes.values()].reduce((sum, length) => sum + length, 0);
  console.log(`${bytes} bytes transferred, first paint after ${Math.round(paint)} ms`);
  if (!process.env.CONSOLE_DIST) assert.ok(bytes > 50_000 && bytes <= 300_000, `${bytes} bytes`);
}

const browser = await launch(executablePath);
let failed = null;
try {
  if (!process.env.ONLY || process.env.ONLY === "steps") await steps(browser);
  if (!process.env.ONLY || process.env.ONLY === "features") await features(browser, server, folder);
} catch (error) {
  failed = error;
  const pages = browser.contexts().flatMap((context) => context.pages());
  for (const [index, page] of pages.entries()) if (pictures) await page.screenshot({ path: join(pictures, `failed-${index}.png`) }).catch(() => {});
} finally {
  await browser.close();
  running.child?.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}
if (failed) console.error(failed);
for (const problem of problems) console.error(`problem: ${problem}`);
if (failed || problems.length > 0) process.exit(1);
console.log("the console works");
