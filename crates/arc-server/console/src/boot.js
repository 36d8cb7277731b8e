// Runs in the page, before its first paint and before the rest of the script is there: the colours that were picked, and the
// links and panes that this browser saw the last time. `Shell` begins with the same.

import { recall } from "./kept.js";
import { currentPage, isDark, knownPages } from "./session.js";

document.documentElement.dataset.theme = isDark(recall("theme", ""), matchMedia("(prefers-color-scheme: dark)").matches) ? "dark" : "light";
const pages = knownPages();
const current = currentPage(pages);
for (const link of document.querySelectorAll(".side a")) {
  const name = link.hash.slice(2);
  link.hidden = !pages.includes(name);
  if (name === current) link.ariaCurrent = "page";
}
document.getElementById("main").className = `page ${current || "unknown"}`;
