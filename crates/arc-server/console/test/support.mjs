// What the browser tests have in common: a server of their own, a watched page, accessibility, pictures.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** All that went wrong and did not end the test. */
export const problems = [];
export const step = (name) => console.log(`- ${name}`);

/**
 * Asks again until `found` returns something true, which is returned; fails with what was waited for. In place of the browser's
 * `waitForFunction` wherever a promise has to be asked: that one takes the promise itself for an answer, which is always true.
 */
export async function until(what, found, seconds = 120) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await found();
    if (value) return value;
    assert.ok(Date.now() < end, `waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Returns the browser of this machine, if it has one. */
export function findChromium() {
  return [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"].find((path) => path && existsSync(path));
}

export const launch = (executablePath) => chromium.launch({ executablePath, args: ["--no-sandbox"] });

/** A server program on a data directory. */
export class TestServer {
  constructor(program, folder, command = "serve") {
    this.program = program;
    this.command = command;
    this.folder = folder;
    this.child = null;
    this.port = 0;
  }

  /** Starts it; the same port again after the first time, if it is named. Returns the address. */
  async start(port = 0, flags = []) {
    const child = spawn(this.program, [this.command, "--data-dir", join(this.folder, "data"), "--http", `127.0.0.1:${port}`, ...flags], { stdio: ["ignore", "pipe", "pipe"] });
    let log = "";
    this.child = child;
    this.port = await new Promise((resolve, reject) => {
      const read = (text) => {
        log += text;
        const address = /(?:serving HTTP address=|in a browser: http:\/\/)127\.0\.0\.1:(\d+)/.exec(log);
        if (address) resolve(Number(address[1]));
      };
      child.stdout.setEncoding("utf8").on("data", read);
      child.stderr.setEncoding("utf8").on("data", read);
      child.on("exit", () => reject(new Error(`the server ended: ${log}`)));
    });
    return `http://127.0.0.1:${this.port}/`;
  }

  stop(signal) {
    return new Promise((resolve) => {
      this.child.removeAllListeners("exit");
      this.child.on("exit", resolve);
      this.child.kill(signal);
    });
  }
}

const TYPES = { js: "text/javascript", svg: "image/svg+xml", txt: "text/plain" };

/** Has pages take built files from a folder, if one is named. */
export async function fromFolder(context) {
  const folder = process.env.CONSOLE_DIST;
  if (!folder) return;
  const built = (name) => gunzipSync(readFileSync(join(folder, `${name}.gz`)));
  await context.route(/\/console\/\w+\.\w+$/, (route) => {
    const name = new URL(route.request().url()).pathname.split("/").at(-1);
    return route.fulfill({ body: built(name), contentType: TYPES[name.split(".").at(-1)] });
  });
  await context.route((url) => ["/", "/arc/"].includes(url.pathname), async (route) => {
    const response = await route.fetch();
    const body = built("index.html").toString();
    const hash = (name) => createHash("sha256").update(new RegExp(`<${name}>([^]*?)</${name}>`).exec(body)[1]).digest("base64");
    const policy = response.headers()["content-security-policy"].replace(/script-src [^;]+/, `script-src 'self' 'sha256-${hash("script")}'`).replace(/style-src [^;]+/, `style-src 'sha256-${hash("style")}'`);
    return route.fulfill({ response, body, headers: { ...response.headers(), "content-security-policy": policy } });
  });
}

export function watch(page, origin) {
  page.on("dialog", (dialog) => {
    if (dialog.type() !== "beforeunload") problems.push(`a dialog: ${dialog.message()}`);
    dialog.accept();
  });
  page.on("pageerror", (error) => problems.push(`an error of the page: ${error.stack}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !/^(data|blob):/.test(request.url())) problems.push(`a request to another host: ${request.url()}`);
  });
  page.on("console", (message) => {
    // A browser's own editing tries inline styles, which the policy refuses, as it should; failed requests are what is tested.
    if (message.type() === "error" && !/Failed to load resource|Applying inline style/.test(message.text())) problems.push(`on the console: ${message.text()}`);
  });
}

export async function accessible(page, name) {
  // In the page's own way in, for the policy of the page forbids what is not from the server.
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
  for (const { id, nodes } of found.violations) problems.push(`axe, ${name}: ${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(" | ")}`);
}

const folderOfPictures = process.argv[3];

export async function picture(page, name, pictures = folderOfPictures) {
  if (!pictures) return;
  // A page that is not in front draws nothing.
  await page.bringToFront();
  // What was changed is drawn in the frame after the next.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}

export async function write(page, text) {
  await page.locator(".cm-content").first().click();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(text);
}

/** Does what runs statements of Ask, and waits until they have ended: not those that ran before. */
export async function ran(page, act) {
  const of = (name) => page.locator(".work[data-run], .work").first().getAttribute(name);
  const before = await of("data-run");
  await act();
  await until("the statement has ended", async () => (await of("data-run")) !== before && (await of("aria-busy")) === "false");
}

export async function ask(page, sql) {
  await write(page, sql);
  await ran(page, () => page.keyboard.press("Control+Enter"));
}

/** Goes to an address of the page and waits until that page shows something, and not the one that was there before. */
export async function visit(page, base, address) {
  await page.goto(`${base}#/${address}`);
  const [, name, tab] = /^(\w+)(?:.*[?&]tab=(\w+))?/.exec(address);
  const main = `main.${name}:not([aria-busy])`;
  if (tab) await page.locator(`${main} [data-tab="${tab}"][aria-selected="true"]`).waitFor();
  await page.locator(main).locator(tab ? ".pane" : "xpath=.").locator(":is(.cm-content, .empty, .uplot, .list li, .notice, table, textarea, .grid-cell)").first().waitFor();
}

export const cell = (page, row, column) => page.locator(`#cell-${row}-${column}`).first().textContent();

/** Sends a request as a program does. */
export async function call(base, token, method, path, body) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await fetch(new URL(path, base), { method, headers, body });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
}
