// The token of this tab, and what was known of it before anybody has asked the server: the frame of the page is drawn from that.
//
// The token is in sessionStorage alone. Imports nothing heavy, for the first paint waits for it.

import { keep, recall } from "./kept.js";
import { parseRoute } from "./lib/address.js";

const TOKEN = "arc.token";

/** The pages, in their order: the first is where one begins. */
export const PAGE_NAMES = ["ask", "draw", "notebooks", "load", "tables", "server"];

export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

export function setToken(text) {
  if (text) sessionStorage.setItem(TOKEN, text);
  else sessionStorage.removeItem(TOKEN);
}

/** Keeps which pages there were, and whether that was without a token. */
export function keepFrame(pages, open) {
  keep("frame", { pages, open });
}

/** Returns the pages that there were the last time, or none where nobody was or somebody has to log in first. */
export function knownPages() {
  const { pages, open } = recall("frame", null) ?? {};
  if (!Array.isArray(pages) || !(open === true || token())) return [];
  return PAGE_NAMES.filter((name) => pages.includes(name));
}

/** Returns which of some pages the address asks for, or `""` where there are none. */
export function currentPage(pages, page = parseRoute(location.hash).page) {
  return pages.includes(page) ? page : (pages[0] ?? "");
}

/** Returns whether the colours are dark: as picked, else as the system's. */
export function isDark(picked, system) {
  return picked === "" ? system : picked === "dark";
}
