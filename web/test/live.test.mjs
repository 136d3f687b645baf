// Feeds a page in Chromium as a live run would, and looks at what a reader has in hands: focus, scrolling, what was opened,
// chosen and pointed at; what was touched at all; and that the page is, in the end, what a new one would be.
// Uses the reports that browser.test.mjs makes; runs after it.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const fixtures = join(import.meta.dirname, "../../target/web-fixture");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

let browser;
before(async () => {
  assert.ok(existsSync(join(fixtures, "limited.html")), "browser.test.mjs makes the reports: run it first");
  browser = await chromium.launch({ executablePath, args });
});
after(() => browser?.close());

const dataOf = (name) => JSON.parse(readFileSync(join(fixtures, `${name}.html`), "utf8").match(/id="plimsoll-data">([\s\S]*?)<\/script>/)[1]);

/** What the page is given to talk to the feed, and to look at itself. */
function tools() {
  window.asked = [];
  document.addEventListener("plimsoll:resync", (e) => window.asked.push(e.detail));
  window.send = (m) => document.dispatchEvent(new CustomEvent("plimsoll:message", { detail: JSON.stringify(m) }));
  /** Until the page shows the last of these, and charts that are new have their width. */
  window.tell = (...list) => new Promise((done) => {
    const { seq } = list.at(-1);
    const frames = (n) => (n > 0 ? requestAnimationFrame(() => frames(n - 1)) : done());
    document.addEventListener("plimsoll:shown", function shown(e) {
      if (e.detail.seq !== seq) return;
      document.removeEventListener("plimsoll:shown", shown);
      frames(3);
    });
    list.forEach(send);
  });
  /** Until nothing has changed for a while. */
  window.settled = (ms = 250) => new Promise((done) => {
    let timer = setTimeout(end, ms);
    const seen = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(end, ms); });
    function end() { seen.disconnect(); done(); }
    seen.observe(document.documentElement, { subtree: true, childList: true, attributes: true, characterData: true });
  });
  /** The page as text; ids that only tie elements together have other numbers in each page. */
  /** Everything that is folded away is made, and stays so. */
  window.openAll = () => { for (const d of document.querySelectorAll("main > details.fold")) d.open = true; return settled(); };
  window.asText = () => document.getElementById("app").outerHTML.replace(/(table|chart|choice)-\d+/g, "$1-#");
  /** Which parts of the page were touched, by their ids, until it is asked. */
  window.watchParts = () => {
    const parts = new Set();
    const part = (n) => (n instanceof Element ? n : n.parentElement)?.closest("section[id], details.fold[id], .verdict, .contents, header, footer, #main");
    const note = (records) => records.forEach((r) => { const p = part(r.target); if (p) parts.add(p.id || p.className || p.localName); });
    const seen = new MutationObserver(note);
    seen.observe(document.documentElement, { subtree: true, childList: true, attributes: true, characterData: true });
    return () => { note(seen.takeRecords()); seen.disconnect(); return [...parts].sort(); };
  };
}

/** Opens a report, which is the first hello of a feed; there must be no error but those that are expected. */
async function withPage(name, check, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) trouble.push(m.text()); });
  page.on("pageerror", (e) => trouble.push(String(e)));
  await page.addInitScript(tools);
  await page.goto(pathToFileURL(join(fixtures, `${name}.html`)).href);
  await page.waitForSelector("main .verdict, details.run");
  await page.evaluate(() => settled());
  // What is folded away is made when it is opened: a reader at work has it open.
  await page.evaluate(() => openAll());
  await check(page, dataOf(name));
  assert.deepEqual(trouble, []);
  await context.close();
}

/** The first `n` points of a run, as it is while it goes on. */
function begun(data, n) {
  const page = structuredClone(data);
  const run = page.runs[0];
  const columns = ["ops_per_s", "bytes_per_s", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns", "ttfb_p50_ns"];
  for (const s of run.series) {
    for (const c of columns) s[c] = s[c].slice(0, n);
    for (const o of Object.keys(s.outcomes_per_s)) s.outcomes_per_s[o] = s.outcomes_per_s[o].slice(0, n);
  }
  for (const r of run.resources) for (const c of ["t", "v"]) r[c] = r[c].slice(0, n);
  return { ...page, runs: [{ ...run, live: true, end: null }, ...page.runs.slice(1)] };
}

const point = (s, i) => ({
  ...s, at: i, ops_per_s: [5000 + i], bytes_per_s: s.bytes_per_s.length ? [4096 * (5000 + i)] : [], p50_ns: [1e6 + i], p90_ns: [2e6 + i], p99_ns: [3e6 + i], p999_ns: [4e6 + i], max_ns: [5e6 + i], ttfb_p50_ns: [],
  outcomes_per_s: {},
});
const sample = (r, i) => ({ ...r, at: r.t.length + i, t: [(r.t.at(-1) ?? 0) + i + 1], v: [(i * 7) % 50] });

describe("a live page", () => {
  it("leaves to the reader what is the reader's, through a hello and 200 appends at 20 a second", () => withPage("limited", async (page, data) => {
    const start = begun(data, 60);
    const run = start.runs[0];
    const id = run.summary.id;
    await page.evaluate((m) => tell(m), { kind: "hello", feed: "live", seq: 1000, page: start });
    assert.match(await page.textContent(".verdict"), /The run goes on/);

    // A reader at work: dark, plan opened, a chart's table opened, focus in the middle of a section that changes, half way down.
    await page.locator("input[value=dark]").check();
    await page.locator("#provenance details.data > summary", { hasText: "Plan" }).click();
    const chart = page.locator("#time figure.chart", { hasText: "Latency over time" });
    await chart.locator("summary").click();
    await chart.locator("tbody tr").first().waitFor();
    await chart.locator("summary").focus();
    await page.evaluate(() => document.activeElement.scrollIntoView({ block: "center", behavior: "instant" }));
    await page.evaluate(() => settled());

    const messages = [];
    for (let i = 0; i < 200; i++) {
      const seq = 1001 + i;
      if (i % 25 === 24) messages.push({ kind: "said", seq, run: id, events: [{ at_s: i / 2, text: `event ${i}`, planned: false }] });
      else if (i % 40 === 10) messages.push({ kind: "weather", seq, of: "a newer Plimsoll" });
      else messages.push({ kind: "points", seq, run: id, series: [] });
    }
    let [n, k] = [60, 0];
    for (const m of messages) if (m.kind === "points") {
      m.series = [point(run.series[0], n++)];
      if (m.seq % 3 === 0) m.resources = [sample(run.resources[0], k++)];
    }

    const before = await page.evaluate(() => {
      const q = (s) => document.querySelector(s);
      const chart = [...document.querySelectorAll("#time figure.chart")].find((f) => f.textContent.includes("Latency over time"));
      window.kept = { limits: q("#limits"), limitsTable: q("#limits table"), provenance: q("#provenance"), time: q("#time"), figure: chart, row: chart.querySelector("tbody tr"), focus: document.activeElement, svg: q("#limits .drawing svg"), moved: q("#time .drawing svg") };
      window.parts = watchParts();
      return { scroll: scrollY, top: document.activeElement.getBoundingClientRect().top };
    });
    assert.ok(before.scroll > 500, `${before.scroll}`);

    const client = await page.context().newCDPSession(page);
    const nodes = async () => {
      await client.send("HeapProfiler.collectGarbage");
      const { nodes, jsEventListeners } = await client.send("Memory.getDOMCounters");
      return { nodes, jsEventListeners };
    };
    const feed = (list) => page.evaluate((list) => new Promise((done) => {
      const timer = setInterval(() => {
        const m = list.shift();
        if (m) {
          send(m);
          if (m.seq % 10 === 0) send(m);
        } else {
          clearInterval(timer);
          done(settled(1500));
        }
      }, 50);
    }), list);
    await feed(messages.slice(0, 100));
    const half = await nodes();
    await feed(messages.slice(100));
    const full = await nodes();

    const now = await page.evaluate(() => ({
      same: Object.entries(kept).filter(([, e]) => e.isConnected).map(([n]) => n).sort(),
      focus: document.activeElement === kept.focus,
      top: document.activeElement.getBoundingClientRect().top,
      open: [...document.querySelectorAll("details[open]:not(.fold) > summary")].map((s) => s.textContent),
      rows: kept.figure.querySelectorAll("tbody tr").length,
      theme: document.documentElement.dataset.theme, picked: document.querySelector("input[name=theme]:checked").value,
      scroll: scrollY, parts: parts(), asked: asked.length, alert: document.querySelector("[role=alert]")?.textContent,
    }));
    // All but the drawing of what was measured meanwhile.
    assert.deepEqual(now.same, ["figure", "focus", "limits", "limitsTable", "provenance", "row", "svg", "time"]);
    assert.ok(now.focus, "the focus stayed");
    assert.ok(Math.abs(now.top - before.top) < 30, `what the reader looks at stayed in its place: ${before.top}, ${now.top}`);
    assert.deepEqual(now.open.sort(), ["Plan", "Show as table"]);
    assert.deepEqual([now.theme, now.picked], ["dark", "dark"]);
    assert.match(now.alert, /^5 messages were of a kind/);
    assert.equal(now.asked, 0);
    // Nothing but what the messages were about; the note on unknown messages stands in main itself.
    assert.deepEqual(now.parts, ["main", "resources", "time"]);
    // And what they were about is there.
    const shown = await page.evaluate(() => [...document.querySelectorAll("#time figure.chart")].map((f) => f.querySelector(".drawing").getAttribute("aria-label")).join());
    assert.match(shown, new RegExp(`to ${(5000 + n - 1).toLocaleString("en")} per second`));
    assert.ok(await page.locator("#time svg text", { hasText: "event 199" }).count());
    assert.ok(full.nodes - half.nodes < 0.02 * half.nodes, `nodes grow: ${half.nodes}, ${full.nodes}`);
    assert.ok(full.jsEventListeners - half.jsEventListeners < 0.02 * half.jsEventListeners, `listeners grow: ${half.jsEventListeners}, ${full.jsEventListeners}`);
  }));

  it("touches nothing when it is told what it knows", () => withPage("limited", async (page, data) => {
    const run = data.runs[0];
    const parts = await page.evaluate(async (messages) => {
      const parts = watchParts();
      await tell(...messages);
      return parts();
    }, [{ kind: "hello", feed: "x", seq: 7, page: data }, { kind: "summary", seq: 8, run: run.summary.id, set: { summary: run.summary, analysis: run.analysis, spectra: run.spectra } },
      { kind: "points", seq: 9, run: run.summary.id, series: [{ ...run.series[0], at: 0 }] }, { kind: "run", seq: 10, run }]);
    assert.deepEqual(parts, []);
  }));

  it("is what a new page would be, whatever of a run has changed", () => withPage("limited", async (page, data) => {
    const other = dataOf("sweep").runs[0];
    const run = data.runs[0];
    const steps = [];
    const id = run.summary.id;
    const set = (what, patch) => steps.push([what, patch]);
    for (const f of ["status", "glance", "labels", "stages", "spectra"]) set(f, { [f]: other[f] });
    set("spoiled", { spoiled: ["[INVALID V13]"] });
    set("plan", { plan: "version = 2" });
    set("gaps", { gaps: ["one is missing"] });
    for (const f of ["block", "sweep"]) set(f, { [f]: !run[f] });
    for (const f of ["findings", "workloads", "limits"]) set(f, { summary: { [f]: other.summary[f] } });
    set("answered", { summary: { answered: false } });
    set("labels of the run", { summary: { labels: { tier: "other" } } });
    set("rerun", { summary: { rerun: "plimsoll again" } });
    set("environment", { summary: { environment: { ...run.summary.environment, host: "elsewhere" } } });
    set("expectations", { summary: { expectations: [{ text: "more", met: false, measured: 3, reason: "less" }] } });
    for (const f of ["holds", "buckets", "size_models", "saturations", "scalings", "comparisons", "load_points", "bottlenecks", "checks", "advice"]) set(f, { analysis: { [f]: other.analysis[f] } });
    set("outages", { analysis: { outages: [{ at: "all", from_s: 3, to_s: 9, seen_until_s: 9 }] } });
    set("remarks", { analysis: { remarks: [{ at_s: 5, text: "noted", planned: true }] } });
    set("summary of before", { summary: run.summary, analysis: run.analysis });
    const { wrong, unseen } = await page.evaluate(async ([data, steps, id]) => {
      const [wrong, unseen] = [[], []];
      let run = data.runs[0];
      let seq = 0;
      for (const [what, patch] of steps) {
        run = { ...run, ...patch, summary: { ...run.summary, ...patch.summary }, analysis: { ...run.analysis, ...patch.analysis } };
        const was = asText();
        await tell({ kind: "summary", seq: ++seq, run: id, set: Object.fromEntries(Object.keys(patch).map((k) => [k, run[k]])) });
        await openAll();
        const changed = asText();
        // As a new page: everything goes, and is made again.
        await tell({ kind: "hello", feed: `none before ${what}`, seq: 0, page: { ...data, runs: [] } });
        await tell({ kind: "hello", feed: what, seq, page: { ...data, runs: [run] } });
        await openAll();
        const fresh = asText();
        let i = 0;
        while (i < fresh.length && fresh[i] === changed[i]) i++;
        if (fresh !== changed) wrong.push(`${what}: '${changed.slice(i - 60, i + 60)}' and not '${fresh.slice(i - 60, i + 60)}'`);
        if (was === changed) unseen.push(what);
      }
      return { wrong, unseen };
    }, [data, steps, id]);
    assert.deepEqual(wrong, []);
    assert.deepEqual(unseen, []);
  }));

  it("says what is wrong, asks for all of it again, and is right after that", () => withPage("limited", async (page, data) => {
    const run = data.runs[0];
    const id = run.summary.id;
    const n = run.series[0].ops_per_s.length;
    const alert = page.getByRole("alert");
    const send = (...list) => page.evaluate((list) => { list.forEach(window.send); return settled(1000); }, list);
    await send({ kind: "said", seq: 1, run: "ghost", findings: [] });
    assert.match(await alert.textContent(), /Message 1 \(said\) was left out: the page holds no run ghost/);
    await page.evaluate(() => { document.dispatchEvent(new CustomEvent("plimsoll:message", { detail: "{" })); return settled(1000); });
    assert.match(await alert.textContent(), /damaged/);
    // Number 2 is missing.
    await send({ kind: "points", seq: 3, run: id, series: [point(run.series[0], n)] }, { kind: "points", seq: 4, run: id, series: [point(run.series[0], n + 1)] });
    assert.match(await alert.textContent(), /did not arrive and was asked for again/);
    assert.deepEqual(await page.evaluate(() => asked), [{ feed: "", seq: 1 }], "asked once");
    await send({ kind: "hello", seq: 4, feed: "", page: { ...data, runs: [{ ...run, glance: { ...run.glance, sentence: "All is here." } }] } }, { kind: "end", seq: 5, run: id, end: "interrupted" });
    assert.equal(await alert.textContent(), "2 messages could not be used.");
    assert.match(await page.textContent(".verdict"), /All is here\..*The run ended early: interrupted/);
    await send({ kind: "end", seq: 6, run: null, end: "the server stopped" });
    // The run has ended: that is no error.
    assert.match(await page.textContent("main [role=status].done"), /^Nothing more will come: the server stopped\. To see it again: plimsoll serve /);
    assert.equal(await alert.textContent(), "2 messages could not be used.");
  }));

  it("keeps the operation that was picked, and shows what is pointed at", () => withPage("sweep", async (page, data) => {
    const run = data.runs[0];
    const chart = page.locator("#time figure.chart", { hasText: "Latency over time" });
    await chart.getByLabel("Cell").selectOption("get 64 KB");
    const picked = await chart.locator(".drawing").getAttribute("aria-label");
    assert.match(picked, /percentiles of get 64 KB/);
    const rate = page.locator("#time figure.chart", { hasText: "Does each cell hold its rate?" });
    await rate.scrollIntoViewIfNeeded();
    const box = await rate.locator(".drawing").boundingBox();
    // In the first panel, where its line runs.
    await page.mouse.move(box.x + box.width * 0.12, box.y + 46);
    await page.waitForFunction(() => document.querySelector("#time [aria-label=tip] text"));
    const drawing = await page.evaluateHandle(() => document.querySelector("#time .drawing svg"));
    const put = run.series.find((s) => Object.keys(s.outcomes_per_s).length > 0);
    await page.evaluate((m) => tell(m), { kind: "points", seq: 1, run: run.summary.id, series: [point(put, put.ops_per_s.length)] });
    assert.equal(await drawing.evaluate((e) => e.isConnected), false, "it was drawn again");
    assert.ok(await page.locator("#time [aria-label=tip] text").count(), "the tip is there");
    assert.equal(await chart.locator("select").inputValue(), "get 64 KB");
    assert.equal(await chart.locator(".drawing").getAttribute("aria-label"), picked);
    await chart.getByLabel("Cell").selectOption("put 4 KB");
    assert.match(await chart.locator(".drawing").getAttribute("aria-label"), /percentiles of put 4 KB/);
  }));

  it("does what a button says with what is shown now", () => withPage("sweep", async (page, data) => {
    const run = data.runs[0];
    const workloads = structuredClone(run.summary.workloads);
    workloads[0].ops_per_s = { value: 7777, low: 7770, high: 7784, n_eff: 9 };
    const button = page.locator("#results .table").first().getByRole("button", { name: "Copy as CSV" });
    await button.focus();
    await page.evaluate((m) => tell(m), { kind: "summary", seq: 1, run: run.summary.id, set: { summary: { ...run.summary, workloads } } });
    assert.ok(await button.evaluate((e) => e === document.activeElement), "the focus stayed");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("#results [role=status]").textContent === "CSV: copied");
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /"7,777 ± 7"/);
    const parts = await page.evaluate((m) => { const parts = watchParts(); return tell(m).then(parts); },
      { kind: "summary", seq: 2, run: run.summary.id, set: { summary: { ...run.summary, workloads: run.summary.workloads } } });
    assert.deepEqual(parts, ["latency", "lines", "picture", "results", "time"]);
    assert.equal(await page.textContent("#results [role=status]"), "CSV: copied");
  }, { permissions: ["clipboard-read", "clipboard-write"] }));

  it("brings what is opened up to date, and leaves it open", () => withPage("sweep", async (page, data) => {
    const run = data.runs[0];
    await page.locator("#provenance details.data > summary", { hasText: "Plan" }).click();
    await page.waitForSelector("#lines section.workload");
    const cell = page.locator("#lines section.workload").nth(1);
    const kept = await page.evaluateHandle(() => [...document.querySelectorAll("#provenance details, #lines, #lines details, #lines section.workload, #results tr")]);
    const summary = structuredClone(run.summary);
    summary.environment.kernel = "9.9.9";
    summary.workloads[1].ops_per_s = { value: 7777, low: 7770, high: 7784, n_eff: 9 };
    await page.evaluate((m) => tell(m), { kind: "summary", seq: 1, run: run.summary.id, set: { summary, plan: "version = 2" } });
    assert.equal(await kept.evaluate((all) => all.length > 20 && all.every((e) => e.isConnected)), true);
    assert.deepEqual(await page.$$eval("#lines, #provenance > details.data", (all) => all.map((d) => [d.querySelector("h2")?.textContent ?? d.firstElementChild.textContent, d.open])), [["Each line in full", true], ["Plan", true]]);
    assert.match(await cell.textContent(), /7,777 ± 7/);
    assert.match(await page.textContent("#provenance"), /9\.9\.9/);
    assert.equal(await page.textContent("#provenance details.data pre"), "version = 2");
    // What was folded away meanwhile is made anew when it is opened.
    await page.locator("#lines > summary").click();
    summary.workloads[1].ops_per_s = { value: 8888, low: 8880, high: 8896, n_eff: 9 };
    await page.evaluate((m) => tell(m), { kind: "summary", seq: 2, run: run.summary.id, set: { summary } });
    assert.equal(await cell.count(), 0);
    await page.locator("#lines > summary").click();
    await page.waitForFunction(() => document.querySelectorAll("#lines section.workload")[1]?.textContent.includes("8,888"));
  }));

  it("keeps open runs open among several, makes no others, and adds a new one", () => withPage("several", async (page, data) => {
    const [one, two] = data.runs;
    await page.locator("details.run > summary").nth(1).click();
    await page.waitForSelector("details.run[open] .drawing svg");
    await page.evaluate(() => { window.kept = [...document.querySelectorAll("details.run, #groups, details.run[open] section")]; window.parts = watchParts(); return settled(); });
    const fresh = { ...structuredClone(one), live: true };
    fresh.summary.id = "20260214-0930-new";
    await page.evaluate((list) => tell(...list), [
      { kind: "summary", seq: 1, run: one.summary.id, set: { glance: { ...one.glance, sentence: "One is other." } } }, { kind: "summary", seq: 2, run: two.summary.id, set: { glance: { ...two.glance, sentence: "Two is other." } } }, { kind: "run", seq: 3, run: fresh, together: { ...data.together, title: "4 runs of two tiers" } }]);
    assert.equal(await page.evaluate(() => kept.every((e) => e.isConnected)), true);
    assert.deepEqual(await page.$$eval("details.run", (all) => all.map((d) => [d.open, d.children.length > 1])), [[false, false], [true, true], [false, false], [false, false]]);
    assert.match(await page.textContent("details.run[open]"), /Two is other\./);
    assert.deepEqual(await page.evaluate(() => parts()), ["picture", "runs", "top", "verdict"]);
    assert.equal(await page.textContent("h1"), "4 runs of two tiers");
    await page.locator("details.run > summary").first().click();
    await page.waitForFunction(() => document.querySelector("details.run").textContent.includes("One is other."));
    const ids = await page.$$eval("[id]", (all) => all.map((e) => e.id));
    assert.equal(new Set(ids).size, ids.length, "ids are unique");
  }));
});
