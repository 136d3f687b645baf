
import { chromium } from "playwright-core";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [url, executablePath] = process.argv.slice(2);
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"];

// The way to `localhost` in this browser is through here.
const open = new Set();
let whole = true;
const relay = createServer((near) => {
  if (!whole) return near.destroy();
  const far = connect(Number(new URL(url).port), "127.0.0.1");
  for (const s of [near, far]) { open.add(s); s.on("error", () => {}); s.on("close", () => { open.delete(s); near.destroy(); far.destroy(); }); }
  near.pipe(far).pipe(near);
});
await new Promise((done) => relay.listen(0, "127.0.0.1", done));
const browser = await chromium.launch({ executablePath, args: [...args, `--host-resolver-rules=MAP localhost 127.0.0.1:${relay.address().port}`] });
const processes = await browser.newBrowserCDPSession();

/** Kept in the page: counts only, so that watching it adds nothing to its memory. */
function watch() {
  const seen = window.seen = { hellos: 0, missing: 0, last: null, shown: 0, points: {} };
  const note = (s, at) => { seen.points[JSON.stringify([s.stage, s.label, s.op])] = { n: at + s.ops_per_s.length, step: s.step_s, start: s.start_s }; };
  document.addEventListener("plimsoll:message", (e) => {
    const m = JSON.parse(e.detail);
    if (m.kind === "hello") {
      seen.hellos += 1;
      m.page.runs[0]?.series.forEach((s) => note(s, 0));
    } else if (m.seq > seen.last + 1) seen.missing += m.seq - seen.last - 1;
    if (m.kind === "run") m.run.series.forEach((s) => note(s, 0));
    if (m.kind === "points") m.series?.forEach((s) => note(s, s.at));
    seen.last = m.seq;
  });
  document.addEventListener("plimsoll:shown", (e) => { seen.shown = e.detail.seq; });
}

async function tab(address) {
  const page = await (await browser.newContext({ viewport: { width: 1200, height: 900 } })).newPage();
  const trouble = [];
  page.on("pageerror", (e) => trouble.push(String(e)));
  await page.addInitScript(watch);
  await page.goto(address);
  await page.waitForSelector("#now .headline", { timeout: 60000 });
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  return { page, session, trouble };
}

const covers = (points) => Object.fromEntries(Object.entries(points).map(([k, s]) => [k, s.start + s.n * s.step]));
/** Seconds of the run that the server has for each line, by a page that is made anew. */
async function truth() {
  const html = await (await fetch(url)).text();
  const run = JSON.parse(html.match(/id="plimsoll-data">([\s\S]*?)<\/script>/)[1]).runs[0];
  return covers(Object.fromEntries(run.series.map((s) => [JSON.stringify([s.stage, s.label, s.op]), { n: s.ops_per_s.length, step: s.step_s, start: s.start_s }])));
}
/** Until the page has, and shows, all that the server has now; how long that took. */
async function complete({ page }, limit_s = 30) {
  const [want, begun] = [await truth(), performance.now()];
  for (;;) {
    const seen = await page.evaluate(() => window.seen);
    const has = covers(seen.points);
    const lacks = Object.entries(want).filter(([k, s]) => !(has[k] >= s - 0.001));
    const after = (performance.now() - begun) / 1000;
    if ((lacks.length === 0 && seen.shown === seen.last) || after >= limit_s) {
      const most = (o) => Math.max(0, ...Object.values(o));
      return { lacks: lacks.length, shows_s: most(has), has_s: most(want), after_s: after, hellos: seen.hellos, missing: seen.missing };
    }
    await page.waitForTimeout(100);
  }
}

async function sample({ page, session }) {
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const of = (name) => metrics.find((m) => m.name === name).value;
  const { processInfo } = await processes.send("SystemInfo.getProcessInfo");
  const share = (pid) => { try { return Number(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8").match(/^Pss:\s+(\d+)/m)[1]); } catch { return 0; } };
  return {
    heap: of("JSHeapUsedSize"), nodes: of("Nodes"), listeners: of("JSEventListeners"), messages: await page.evaluate(() => window.seen.last),
    browser: processInfo.reduce((sum, p) => sum + share(p.id), 0) * 1024, browser_cpu: processInfo.reduce((sum, p) => sum + p.cpuTime, 0),
  };
}

const asText = (page) => page.evaluate(async () => {
  for (const d of document.querySelectorAll("main > details.fold")) d.open = true;
  await new Promise((done) => setTimeout(done, 1500));
  return document.getElementById("main").innerText.replace(/Nothing more will come: [^\n]*\n+/, "");
});

let first, late;
const todo = {
  open: async () => { first = await tab(url.replace("127.0.0.1", "localhost")); return complete(first); },
  sample: () => sample(first),
  cut: async () => {
    whole = false;
    open.forEach((s) => s.destroy());
    await first.page.waitForFunction(() => document.querySelector(".connection").textContent.includes("connection is cut"), null, { timeout: 30000 });
    return {};
  },
  mend: async () => {
    const { has_s, shows_s } = await complete(first, 0);
    whole = true;
    await first.page.waitForFunction(() => document.querySelector(".connection").textContent === "", null, { timeout: 30000 });
    return { ...await complete(first), behind_s: has_s - shows_s };
  },
  late: async () => { late = await tab(url); return complete(late); },
  end: async (report) => {
    const texts = [];
    for (const t of [first, late]) {
      await t.page.waitForFunction(() => document.getElementById("now") === null, null, { timeout: 60000 });
      texts.push(await asText(t.page));
    }
    const page = await (await browser.newContext({ viewport: { width: 1200, height: 900 } })).newPage();
    await page.goto(pathToFileURL(report).href);
    await page.waitForSelector("main .verdict");
    const whole = await asText(page);
    return { as_the_report: texts.map((t) => t === whole), trouble: [...first.trouble, ...late.trouble] };
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...more] = line.split(" ");
  let answer;
  try { answer = await todo[name](...more); } catch (e) { answer = { error: String(e) }; }
  console.log(JSON.stringify(answer));
}
await browser.close();
relay.close();
process.exit(0);
