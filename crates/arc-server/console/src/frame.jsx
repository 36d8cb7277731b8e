// The frame of the page: the logo, the links to the pages, the top, and where a page is.
//
// `build.js` draws it into index.html, so that it is there before the script; the script draws the same again and goes on from it.

import { href } from "./lib/address.js";
import { PAGE_NAMES } from "./session.js";
import { Icon } from "./ui.jsx";

const ICON_OF = { notebooks: "notebook" };
export const TITLES = { ask: "Ask", draw: "Draw", notebooks: "Notebooks", load: "Load", tables: "Tables", server: "Server" };

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <path d="M4 26A14 14 0 0 1 28 26" />
      <path d="M10 26a7 7 0 0 1 12 0" />
      <circle cx="16" cy="26" r="2" />
    </svg>
  );
}

const skip = (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
};

/** Links that are not among `pages` are there, unseen, so that what was drawn before stays what it is. */
export function Frame({ pages, current, top, children }) {
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>Skip to the page</a>
      <nav class="side" aria-label="Pages">
        <div class="brand">
          <Logo /> <span>Arc</span>
        </div>
        {PAGE_NAMES.map((page) => (
          <a key={page} href={href(page)} hidden={!pages.includes(page)} aria-current={page === current ? "page" : undefined} title={TITLES[page]}>
            <Icon name={ICON_OF[page] ?? page} size={18} />
            <span>{TITLES[page]}</span>
          </a>
        ))}
      </nav>
      <header class="top">{top}</header>
      {children}
    </>
  );
}

/** What is where a page will be: its panes if it is `ask`, a word where not even the page is known. */
export function Opening({ page }) {
  return (
    <main id="main" tabIndex={-1} class={`page ${page || "unknown"}`} aria-busy="true">
      <div class="tree" />
      <div class="work">
        <div class="files blank" />
        <div class="editor" />
        <div class="toolbar blank" />
      </div>
      <p class="empty">Opening…</p>
    </main>
  );
}

/** The frame of somebody of whom nothing is known; `boot.js` makes it that of who was here before. */
export function FirstFrame() {
  return (
    <Frame pages={[]} current="" top={null}>
      <Opening page="" />
    </Frame>
  );
}
