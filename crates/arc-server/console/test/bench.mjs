// Measures what a first visit costs: bytes, first paint, and when the editor is there. `node bench.mjs SERVER [ADDRESS…]`.
//
// Each visit is one of a browser that has never been there. Further addresses are consoles of others that run on this machine;
// QuestDB's package in Maven Central has none in it, so that one has to be started by hand.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { TestServer, findChromium, launch } from "./support.mjs";

const VISITS = 15;
const QUIET_MS = 1_000;

const [program, ...others] = process.argv.slice(2);

/** `ready` is what is on the page once it can be used. */
async function visit(browser, address, ready) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  const network = await context.newCDPSession(page);
  let bytes = 0;
  let requests = 0;
  await network.send("Network.enable");
  // What came over the wire, with the heads of answers.
  network.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
    requests++;
  });
  await page.goto(address);
  await page.bringToFront();
  await page.waitForLoadState("networkidle");
  if (ready) await page.locator(ready).first().waitFor();
  await page.waitForTimeout(QUIET_MS);
  const times = await page.evaluate(() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
    files: performance.getEntriesByType("resource").filter(({ name }) => /\.(js|css|woff2?|svg|png)$/.test(new URL(name).pathname)).reduce((last, { responseEnd }) => Math.max(last, responseEnd), 0),
  }));
  await context.close();
  return { bytes, requests, ...times };
}

const median = (values) => values.filter((value) => value !== null).toSorted((one, other) => one - other)[Math.floor(values.length / 2)];

async function measure(browser, name, address, ready) {
  const visits = [];
  for (let turn = 0; turn < VISITS; turn++) visits.push(await visit(browser, address, ready));
  const of = (key) => median(visits.map((one) => one[key]));
  console.log(`| ${name} | ${of("bytes").toLocaleString("en-US")} | ${of("requests")} | ${of("paint") === undefined ? "–" : Math.round(of("paint"))} | ${Math.round(of("files"))} |`);
  return of("bytes");
}

const executablePath = findChromium();
if (!executablePath) {
  console.log("skipped: there is no Chromium (Debian: chromium; or name one in CHROMIUM)");
  process.exit(0);
}
const data = mkdtempSync(join(tmpdir(), "arc-bench-"));
const server = new TestServer(program, data);
const browser = await launch(executablePath);
try {
  const base = await server.start(0, ["--no-auth"]);
  console.log(`Median of ${VISITS} first visits, ${browser.version()}\n`);
  console.log("| console | bytes | requests | first paint, ms | all files, ms |\n| --- | ---: | ---: | ---: | ---: |");
  const bytes = await measure(browser, "Arc", base, ".cm-content");
  for (const address of others) await measure(browser, address, address);
  if (bytes > 300_000) throw new Error(`a first visit is ${bytes} bytes; 300,000 are meant to be enough`);
} finally {
  await browser.close();
  await server.stop("SIGKILL");
  rmSync(data, { recursive: true, force: true });
}
