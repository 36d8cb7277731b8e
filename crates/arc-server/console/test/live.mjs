// What follows by itself: charts and tables as rows come, and the nodes of a cluster. Called by features.mjs.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { accessible, call, cell, fromFolder, picture, step, until, watch } from "./support.mjs";

const line = (rpm, seconds) => `live,id=a rpm=${rpm}i ${seconds}`;

export async function followed(page, base, admin, server) {
  step("a chart and the newest rows follow as rows come, also after the server was started again");
  const now = Math.floor(Date.now() / 1000);
  const write = (text) => call(base, admin, "POST", "write?db=default&precision=s", text);
  await write(line(1, now - 60));
  // The page learns of new tables when it is loaded.
  await page.goto(`${base}#/draw?table=live&y=rpm&agg=max&last=15m&live=rows`);
  await page.reload();
  const shown = (text) => page.waitForFunction((wanted) => document.querySelector(".legend b")?.textContent === wanted, text);
  await shown("1");
  await write(line(20, now - 30));
  await shown("20");
  await page.getByRole("button", { name: "SQL", exact: true }).click();
  await page.waitForFunction(() => location.hash.includes("sql="));
  await write(line(300, now - 10));
  await shown("300");
  await accessible(page, "a chart that follows");
  const port = Number(new URL(base).port);
  await server.stop("SIGKILL");
  await page.getByText("Rows that come are not followed").waitFor();
  await server.start(port, ["--delete-enabled"]);
  await page.getByText("Rows that come are not followed").waitFor({ state: "detached" });
  await write(line(301, now - 1));
  await shown("301");
  await page.goto(`${base}#/draw?sql=${encodeURIComponent('SELECT now() AS "time", 1 AS one')}&last=15m&live=rows`);
  await page.getByText("names no table").waitFor();

  await page.goto(`${base}#/tables?table=live`);
  await page.locator("#cell-0-0").waitFor();
  const rows = () => page.locator(".grid").first().getAttribute("aria-rowcount");
  const before = Number(await rows());
  await page.getByLabel("Follow").check();
  await write(line(5, now));
  await until("the new row is there", async () => Number(await rows()) === before + 1);
  await accessible(page, "rows that follow");
  // What is not followed any more ends soon.
  await page.getByLabel("Follow").uncheck();
  await until("no tail is left", async () => (await call(base, admin, "GET", "api/v1/queries")).queries.every(({ statement }) => !statement.startsWith("TAIL")));
}

/** Starts a cluster by its script. Returns `null` where the S3 server of that is not installed. */
async function startCluster(program, folder) {
  const script = fileURLToPath(new URL("../../../../scripts/cluster", import.meta.url));
  const child = spawn(process.env.PYTHON ?? "python3", [script, "--nodes", "2", "--dir", folder], { env: { ...process.env, TESTED_SERVER: program }, stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let log = "";
  child.stdout.setEncoding("utf8").on("data", (text) => { out += text; });
  child.stderr.setEncoding("utf8").on("data", (text) => { log += text; });
  const ended = new Promise((resolve) => { child.on("exit", resolve); });
  await until("the cluster is there", () => out.includes("\n") || child.exitCode !== null);
  if (child.exitCode !== null) {
    if (!log.includes("moto")) throw new Error(`the cluster ended: ${log}`);
    return null;
  }
  return { nodes: JSON.parse(out.split("\n")[0]), stop: () => { child.kill("SIGTERM"); return ended; } };
}

export async function cluster(browser, program, folder) {
  step("the nodes of a cluster are listed with what they do; one that is gone is told");
  const cluster = await startCluster(program, join(folder, "cluster"));
  if (!cluster) {
    console.log("  skipped: pip install 'moto[server]', in the Python that PYTHON names, for an S3 server");
    return;
  }
  try {
    const [owner, query] = cluster.nodes;
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    await fromFolder(context);
    const page = await context.newPage();
    const base = `${query.http}/`;
    watch(page, base);
    await call(base, "", "POST", "write?db=default", "pump,id=7 rpm=1450i");
    await page.goto(`${base}#/server`);
    await page.getByRole("tab", { name: "Cluster" }).click();
    const row = (name) => page.getByRole("row").filter({ hasText: name });
    await row("owner").getByText("ingest, takes the writes").waitFor();
    await row("query1 (this one)").getByText("ready", { exact: true }).waitFor();
    await accessible(page, "cluster");
    await picture(page, "cluster");
    await page.goto(`${base}#/ask?q=${encodeURIComponent("SELECT rpm FROM pump")}`);
    await page.locator(".cm-content").waitFor();
    await page.getByRole("button", { name: /^Run/ }).first().click();
    assert.equal(await cell(page, 0, 0), "1450");
    await page.goto(`${base}#/server?tab=cluster`);
    process.kill(owner.pid, "SIGKILL");
    await row("owner").getByText("does not answer").waitFor();
    await page.getByText("No node takes writes now").waitFor();
    await context.close();
  } finally {
    await cluster.stop();
  }
}
