import { chromium } from "playwright-core";
const [url, out, w="1280", h="800", theme="light", ...steps] = process.argv.slice(2);
const b = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const p = await b.newPage({ viewport: { width: +w, height: +h }, colorScheme: theme });
p.on("console", m => ["error","warning"].includes(m.type()) && console.log("console:", m.text()));
p.on("pageerror", e => console.log("pageerror:", e.message));
await p.goto(url); await p.waitForTimeout(900);
for (const s of steps) { await eval(`(async()=>{${s}})()`); }
await p.screenshot({ path: out }); await b.close();
