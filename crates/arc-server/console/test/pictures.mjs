// Draws the pictures of docs/console.md anew, from the sample data: `node pictures.mjs SERVER FOLDER`.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { sampleLines } from "../src/lib/sample.js";
import { TestServer, ask, findChromium, fromFolder, launch } from "./support.mjs";

const [program, folder] = process.argv.slice(2);
const SIZE = { width: 1180, height: 720 };
const SQL = `SELECT station, date_trunc('hour', time) AS hour,
  avg(temperature) AS temperature, max(wind) AS gusts
FROM weather
GROUP BY 1, 2
ORDER BY hour DESC, station`;

const NOTEBOOK = {
  database: "sample",
  range: { last: "6h" },
  live: "0",
  asof: "",
  variables: [],
  cells: [
    { id: 1, kind: "text", text: "# The hall and the weather\n\nWhat the machines of hall **A** take, and how warm it is outside." },
    { id: 2, kind: "sql", view: "line", unit: "°C", width: "whole", text: "SELECT date_bin($interval, time) AS time, station, avg(temperature) AS temperature FROM weather WHERE time >= $from AND time < $to GROUP BY 1, 2 ORDER BY 1" },
    { id: 3, kind: "sql", view: "tiles", unit: "none", text: "SELECT date_bin($interval, time) AS time, id, avg(rpm) AS rpm FROM machine WHERE time >= $from AND time < $to GROUP BY 1, 2 ORDER BY 1" },
    { id: 4, kind: "sql", view: "heat", unit: "none", text: "SELECT date_bin($interval, time) AS time, station, avg(wind) AS wind FROM weather WHERE time >= $from AND time < $to GROUP BY 1, 2 ORDER BY 1" },
  ],
};

async function post(base, path, body) {
  const answer = await fetch(new URL(path, base), { method: "POST", body });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
}

async function draw(page, base) {
  const picture = async (name) => {
    // Charts are drawn once their library is here; a cursor over them is no part of a picture.
    await page.mouse.move(2, 400);
    await page.waitForTimeout(600);
    await page.screenshot({ path: join(folder, `${name}.png`) });
  };
  await page.goto(`${base}#/ask`);
  await page.locator(".cm-content").waitFor();
  await page.getByLabel("Database", { exact: true }).selectOption("sample");
  await ask(page, SQL);
  await page.locator("#cell-0-0").waitFor();
  await picture("ask");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.locator(".plan").waitFor();
  await picture("plan");
  await page.goto(`${base}#/draw?db=sample&table=weather&y=temperature&by=station&last=6h&unit=${encodeURIComponent("°C")}`);
  await page.locator(".uplot").waitFor();
  await picture("draw");
  const { id } = await post(base, "api/v1/console/documents", JSON.stringify({ kind: "notebook", name: "Hall A", body: NOTEBOOK }));
  await page.goto(`${base}#/notebooks?id=${id}&view=grid`);
  await page.locator(".tiles .spark").first().waitFor();
  await page.locator(".heat canvas").waitFor();
  await picture("dashboard");
  await page.goto(`${base}#/load`);
  await page.locator("textarea").fill(`${sampleLines(Math.floor(Date.now() / 1000)).split("\n").slice(0, 9).join("\n")}\nweather,station=north temperature=warm`);
  await picture("load");
  await page.goto(`${base}#/tables?table=weather`);
  await page.getByRole("tab", { name: /Last of each series/ }).click();
  await page.locator("#cell-0-0").waitFor();
  await picture("table");
}

const executablePath = findChromium();
if (!executablePath || !existsSync(folder)) throw new Error("usage: pictures.mjs SERVER FOLDER, where there is Chromium");
const data = mkdtempSync(join(tmpdir(), "arc-pictures-"));
const server = new TestServer(program, data);
const browser = await launch(executablePath);
try {
  const base = await server.start(0, ["--no-auth"]);
  await post(base, "api/v1/write/line-protocol?db=sample&precision=s", sampleLines(Math.floor(Date.now() / 1000)));
  await post(base, "api/v1/write/line-protocol/flush", "");
  const context = await browser.newContext({ viewport: SIZE, colorScheme: "light" });
  await fromFolder(context);
  await draw(await context.newPage(), base);
} finally {
  await browser.close();
  await server.stop("SIGKILL");
  rmSync(data, { recursive: true, force: true });
}
