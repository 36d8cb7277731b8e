// Builds the console: bundles, compresses, and lists licences. `node build.js OUT`; scripts/console calls it.
//
// The same sources and package-lock.json give the same files, byte by byte before compression.

import { readFileSync, readdirSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "dist");
/** What a first visit may transfer, all files together. */
const MOST_BYTES = 300_000;

const result = await build({
  absWorkingDir: here,
  entryPoints: { console: "src/main.jsx", editor: "src/editor.js", chart: "src/chart.js" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  external: ["./editor.js", "./chart.js"],
  legalComments: "none",
  charset: "utf8",
  metafile: true,
  write: false,
  outdir: "dist",
});

const read = (path) => readFileSync(join(here, path), "utf8");
const files = new Map(result.outputFiles.map(({ path, text }) => [path.split("/").at(-1), text]));
files.set("index.html", await page());
files.set("icon.svg", read("icon.svg"));
files.set("licences.txt", licences(Object.keys(result.metafile.inputs)));

mkdirSync(out, { recursive: true });
for (const name of readdirSync(out)) rmSync(join(out, name));
let total = 0;
for (const [name, text] of [...files].sort()) {
  const packed = gzipSync(text, { level: 9 });
  // The system that compressed it is no part of the file.
  packed[9] = 255;
  writeFileSync(join(out, `${name}.gz`), packed);
  if (name !== "licences.txt") total += packed.length;
  console.log(`${String(packed.length).padStart(8)}  ${name}`);
}
console.log(`${String(total).padStart(8)}  transferred at most`);
if (total > MOST_BYTES) {
  console.error(`more than ${MOST_BYTES} bytes`);
  process.exit(1);
}

/** Returns the page with all that its first paint takes: style, frame, and the script that makes the frame that of its user. */
async function page() {
  const styles = ["src/console.css", "node_modules/uplot/dist/uPlot.min.css"].map(read);
  const style = await one({ stdin: { contents: styles.join("\n"), loader: "css" } });
  const boot = await one({ entryPoints: ["src/boot.js"], bundle: true, format: "iife", target: ["es2022"] });
  const drawn = `import { renderToString } from "preact-render-to-string";
    import { FirstFrame } from "./src/frame.jsx";
    export const frame = renderToString(<FirstFrame />);`;
  const code = await one({ stdin: { contents: drawn, loader: "jsx", resolveDir: here }, bundle: true, format: "esm", platform: "node", jsx: "automatic", jsxImportSource: "preact" });
  const { frame } = await import(`data:text/javascript;base64,${Buffer.from(code).toString("base64")}`);
  const parts = { style, frame, boot };
  return read("index.html").replace(/\{\{(\w+)\}\}/g, (_, name) => {
    // The policy of the page names what is between these marks by its hash.
    if (/<\/?(style|script)|<!--/i.test(parts[name])) throw new Error(`${name} has a mark in it that ends it`);
    return parts[name];
  });
}

/** Builds the one file of something small. */
async function one(what) {
  const { outputFiles } = await build({ absWorkingDir: here, minify: true, legalComments: "none", charset: "utf8", write: false, ...what });
  return outputFiles[0].text.trim();
}

/** Returns the licences of all packages that something of was bundled. */
function licences(inputs) {
  const packages = new Set(inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));
  packages.add("uplot");
  const parts = [...packages].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no file with its licence`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return `The console of Arc has parts of these packages.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`;
}
