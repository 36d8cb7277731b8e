// What is on the page before its script: the same frame that is there later. Called by browser.mjs.

import assert from "node:assert/strict";

import { fromFolder, until } from "./support.mjs";

/** Where the parts of the frame are, how dark they are, and which links are seen. */
const look = (page) => page.evaluate(() => {
  const box = (selector) => {
    const { x, y, width, height } = document.querySelector(selector).getBoundingClientRect();
    return [x, y, width, height].map(Math.round);
  };
  return {
    theme: document.documentElement.dataset.theme,
    background: getComputedStyle(document.body).backgroundColor,
    boxes: Object.fromEntries([".side", ".side a", ".top", "main", ".tree", ".files", ".editor"].map((selector) => [selector, box(selector)])),
    links: [...document.querySelectorAll(".side a")].filter((link) => link.getClientRects().length > 0).map((link) => link.textContent),
    current: document.querySelector(".side a[aria-current]")?.textContent ?? "",
  };
});

/** Compares the page without its script with the page that has it, on an open server; `script` is the address of the script. */
export async function firstPaint(browser, base, script) {
  for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]]) {
    const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
    await fromFolder(context);
    const page = await context.newPage();
    let held = null;
    await page.route(script, (route) => {
      held = route;
    });
    const first = async (address) => {
      // An address that differs after # alone would load nothing.
      await page.goto("about:blank");
      held = null;
      await page.goto(address, { waitUntil: "commit" });
      await until("the script is asked for", () => held);
      await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
      return look(page);
    };
    const go = async () => {
      await held.fallback();
      await page.locator("main:not([aria-busy])").waitFor();
    };
    await page.bringToFront();
    // Of the first visit of a browser nothing is known but the colours of its system.
    const unknown = await first(base);
    assert.deepEqual([unknown.theme, unknown.links, unknown.current], [colorScheme, [], ""]);
    assert.equal(await page.locator("main").innerText(), "Opening…");
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector(".side")).display), "flex", "the policy refused the style");
    await go();
    // Later ones begin with what was there.
    const again = await first(`${base}#/ask`);
    await go();
    await page.locator(".cm-content").waitFor();
    assert.deepEqual(again, await look(page));
    assert.equal(again.links.length, 6);
    await page.getByRole("button", { name: /colours/ }).click();
    const toggled = await look(page);
    assert.notEqual(toggled.theme, colorScheme);
    assert.deepEqual(await first(`${base}#/ask`), toggled);
    await held.fallback();
    await context.close();
  }
}
