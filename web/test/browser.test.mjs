// Opens reports of synthetic runs in Chromium and checks what a reader would: that everything is there, that
// nothing asks the network, that keyboard, phone, dark and paper work. The reports are made here, by the program's own
// code, from the page in dist/ (npm run build first). Needs cargo and a Chromium (CHROMIUM, else /usr/bin/chromium).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

import { example } from "./examples.mjs";
import { unreadable } from "./made.mjs";

const root = join(import.meta.dirname, "../..");
const fixtures = join(root, "target/web-fixture");
const shots = join(fixtures, "shots");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

let browser;
before(async () => {
  assert.ok(existsSync(join(import.meta.dirname, "../dist/report.html")), "build the page first: npm run build");
  execFileSync(example("fixture"), [fixtures], { cwd: root, stdio: "inherit" });
  mkdirSync(shots, { recursive: true });
  browser = await chromium.launch({ executablePath, args });
});
after(() => browser?.close());

/** Opens a report; afterwards there must have been no error and no request but for the file itself. */
async function withReport(name, options, check, drawn = true) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) trouble.push(m.text()); });
  page.on("pageerror", (e) => trouble.push(String(e)));
  const url = pathToFileURL(join(fixtures, `${name}.html`)).href;
  page.on("request", (r) => { if (r.url().split("#")[0] !== url && !r.url().startsWith("data:")) trouble.push(`request ${r.url()}`); });
  await page.goto(url);
  await page.waitForSelector(drawn ? ".drawing svg" : "main .verdict");
  await check(page);
  assert.deepEqual(trouble, []);
  await context.close();
}

/** Everything that is folded away, made and drawn. */
async function openAll(page) {
  await page.getByRole("button", { name: "Open all" }).first().click();
  await page.waitForFunction(() => [...document.querySelectorAll("details.fold[open]")].every((d) => d.children.length > 1) && [...document.querySelectorAll(".drawing")].every((d) => d.firstElementChild));
}

const titles = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));

describe("a report of a limit", () => {
  it("holds every chart and table, each with a text of its own", () => withReport("limited", {}, async (page) => {
    await openAll(page);
    const charts = await titles(page, "figure.chart figcaption > h3");
    for (const title of ["Operations over time", "Throughput over time", "Latency over time", "Refused and failed over time", "Latency by percentile", "Latency distribution",
      "How big is the bucket: put ops", "How long to rest until the burst is back: put ops", "Which cap binds at which size: put", "How many in flight: put 4 KiB", "Latency at fractions of the limit",
      "Does it scale: get 4 MiB", "Is one better: put 64 KiB", "Ratio replica 3 / EC 2+2"]) assert.ok(charts.includes(title), `${title} is missing among ${charts}`);
    const figures = await page.$$("figure.chart");
    for (const f of figures) {
      const title = await f.$eval("h3, h4", (e) => e.textContent);
      assert.ok(await f.$(".drawing svg"), `${title} was not drawn`);
      assert.ok((await f.$eval(".drawing", (e) => e.getAttribute("aria-label"))).length > 20, `${title} has no text`);
    }
    for (const text of await titles(page, ".drawing")) assert.ok(!/NaN|undefined|Infinity/.test(text), text);
    const captions = await titles(page, "table caption");
    for (const c of ["Limits", "Validity checks", "Environment", "By endpoint", "What could be the bottleneck"]) assert.ok(captions.includes(c), `${c} is missing among ${captions}`);
    assert.equal(await page.$$eval("table th:not([scope])", (all) => all.length), 0, "every head has a scope");
    assert.match(await page.textContent("main"), /1,004 ± 6/);
    assert.doesNotMatch(await page.textContent("main"), /NaN|undefined|\[object/);
  }));

  it("draws what was measured", () => withReport("limited", {}, async (page) => {
    await openAll(page);
    const chart = page.locator("figure.chart", { hasText: "Operations over time" }).first();
    await chart.locator("summary").click();
    await chart.locator("tbody tr").first().waitFor();
    const rows = await chart.locator("tbody tr").evaluateAll((all) => all.map((r) => [...r.children].map((c) => c.textContent)));
    const at = (s) => Number(rows.filter((r) => Number(r[1]) <= s).at(-1)[2].replaceAll(",", ""));
    assert.ok(Math.abs(at(20) / 2970 - 1) < 0.03, `${at(20)}`);
    assert.ok(Math.abs(at(60) / 1000 - 1) < 0.03, `${at(60)}`);
    assert.ok(await chart.locator("svg text", { hasText: "falls at 30.5 s" }).count());
    assert.ok(await chart.locator("svg text", { hasText: "seen to here" }).count());
  }));

  it("says how exactly each percentile is known, as the terminal does", () => withReport("limited", {}, async (page) => {
    await openAll(page);
    const tables = await page.$$eval("table", (all) => all.filter((t) => t.caption?.textContent.startsWith("Latency (")).map((t) =>
      [...t.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent))));
    const at = tables[0].findIndex((r) => r[0].endsWith("95 % interval"));
    assert.ok(at > 0, JSON.stringify(tables[0]));
    assert.deepEqual(tables[0][at], ["response, 95 % interval", "", "-1.2/+1.5 %", "-2.0/+2.5 %", "-5.0/+12 %", "-20/+? %", "", ""]);
    const text = readFileSync(join(fixtures, "limited.txt"), "utf8");
    for (const cell of tables[0][at].filter((c) => c.includes("/"))) assert.ok(text.includes(cell), `${cell} is not in the terminal's table`);
  }));

  it("answers on the first screen, also of a phone; the title is what was measured, and the id is small", async () => {
    for (const viewport of [{ width: 1280, height: 800 }, { width: 390, height: 844 }]) {
      await withReport("limited", { viewport }, async (page) => {
        assert.equal(await page.textContent("h1"), "fixture", "the name that it was given");
        assert.equal(await page.textContent(".top .id"), "limited", "the name of its directory");
        for (const selector of [".verdict .badge", ".verdict .lead", ".verdict .glance dd"]) {
          const box = await page.locator(selector).first().boundingBox();
          assert.ok(box && box.y + box.height <= viewport.height, `${selector} ends at ${box?.y + box?.height} of ${viewport.height}`);
        }
        assert.equal(await page.locator(".verdict details[open]").count(), 0);
        await page.locator(".verdict summary").click();
        assert.match(await page.locator(".verdict .whole").textContent(), /token bucket of 60,000/);
      });
    }
  });

  it("has one main, one h1, and no level of heading skipped", () => withReport("limited", {}, async (page) => {
    await openAll(page);
    assert.equal(await page.locator("main").count(), 1);
    const levels = await page.$$eval("h1, h2, h3, h4", (all) => all.map((e) => Number(e.tagName[1])));
    assert.equal(levels.filter((l) => l === 1).length, 1);
    for (let i = 1; i < levels.length; i++) assert.ok(levels[i] - levels[i - 1] <= 1, `h${levels[i - 1]} is followed by h${levels[i]}`);
  }));

  it("is used by keyboard: skip link, folds, tables, folded data, colours", () => withReport("limited", {}, async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "The whole verdict");
    const fold = page.locator("#limits > summary");
    await fold.focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("#limits[open] table");
    await page.keyboard.press("Tab");
    assert.ok(await page.evaluate(() => document.activeElement.closest("#limits")), "what was opened comes next");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.equal(outline, "solid", "the focus shows");
    const summary = page.locator("figure.chart summary").first();
    await summary.focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("figure.chart details[open] table");
    await page.locator("input[value=auto]").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  }));

  for (const scheme of ["light", "dark"]) {
    it(`has enough contrast in ${scheme}`, () => withReport("limited", { colorScheme: scheme }, async (page) => {
      await page.screenshot({ path: join(shots, `limited-${scheme}.png`), fullPage: true });
      const ratios = await page.evaluate(() => {
        const probe = document.createElement("canvas").getContext("2d");
        const rgb = (c) => { probe.fillStyle = c; const n = parseInt(probe.fillStyle.slice(1), 16); return [n >> 16, (n >> 8) & 255, n & 255]; };
        const light = (c) => rgb(c).map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
        const style = getComputedStyle(document.documentElement);
        const of = (name) => light(style.getPropertyValue(name).trim());
        const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        return {
          text: ["--ink", "--muted", "--accent", "--bad", "--fair", "--good"].map((n) => [n, ratio(of(n), of("--bg"))]),
          lines: ["--s1", "--s2", "--s3", "--s4", "--s5", "--s6"].map((n) => [n, ratio(of(n), of("--bg"))]),
        };
      });
      for (const [n, r] of ratios.text) assert.ok(r >= 4.5, `${n} ${r}`);
      for (const [n, r] of ratios.lines) assert.ok(r >= 3, `${n} ${r}`);
    }));
  }

  it("does not scroll sideways on a phone", () => withReport("limited", { viewport: { width: 360, height: 740 } }, async (page) => {
    await page.evaluate(() => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    const wide = await page.$$eval(".drawing svg", (all) => all.filter((s) => s.getBoundingClientRect().right > innerWidth + 1).length);
    assert.equal(wide, 0);
    await page.screenshot({ path: join(shots, "limited-phone.png"), fullPage: true });
  }));

  it("prints in black on white without controls", () => withReport("limited", { colorScheme: "dark" }, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    for (const hidden of [".theme", ".tools"]) assert.equal(await page.locator(hidden).first().isVisible(), false, hidden);
    await page.setViewportSize({ width: 700, height: 1000 });
    const pdf = await page.pdf({ path: join(shots, "limited.pdf"), format: "A4" });
    assert.ok(pdf.length > 20_000);
  }));
});

describe("a report of a sweep", () => {
  it("has the table of sizes and ops, and copies it", () => withReport("sweep", { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    const first = page.locator("#results .table").first();
    const heads = await first.locator("thead th").allTextContents();
    assert.deepEqual(heads.slice(0, 4), ["Operation", "Object size", "Objects/s", "Throughput (MiB/s)"]);
    assert.equal(await first.locator("tbody tr").count(), 10);
    await first.getByRole("button", { name: "Copy as CSV" }).click();
    await page.waitForFunction(() => document.querySelector("#results [role=status]").textContent !== "");
    assert.equal(await first.getByRole("status").textContent(), "CSV: copied");
    const csv = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(csv, /^Operation,Object size,Objects\/s/);
    assert.match(csv, /PUT,512 KB,"1,974 ± 12"/);
    await first.getByRole("button", { name: "Copy as Markdown" }).click();
    await page.waitForFunction(() => document.querySelector("#results [role=status]").textContent.startsWith("Markdown"));
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /\| PUT \| 4 KB \|/);
  }));

  it("changes the operation shown", () => withReport("sweep", {}, async (page) => {
    await openAll(page);
    const chart = page.locator("figure.chart", { hasText: "Latency by percentile" });
    const before = await chart.locator(".drawing").getAttribute("aria-label");
    await chart.getByLabel("Operation").selectOption("get");
    assert.notEqual(await chart.locator(".drawing").getAttribute("aria-label"), before);
    assert.match(await chart.locator(".legend").textContent(), /get 4 KB/);
  }));
});

describe("other reports", () => {
  it("sets several runs side by side and opens each", () => withReport("several", {}, async (page) => {
    assert.equal(await page.textContent("h1"), "performance and standard: GET and PUT at 5 sizes");
    assert.match(await page.textContent(".verdict .lead"), /^performance does the most at 10 of 10/);
    assert.deepEqual((await titles(page, "#groups thead th")).slice(0, 4), ["Operation", "Size", "performance, op/s", "standard, op/s"]);
    await page.locator("#groups summary", { hasText: "All figures" }).click();
    await page.waitForFunction(() => document.querySelectorAll("#groups table").length === 2);
    assert.deepEqual((await titles(page, "#groups details thead th")).slice(0, 3), ["Operation", "Size", "tier"]);
    assert.equal(await page.locator("details.run").count(), 3);
    await page.locator("details.run > summary").first().click();
    await page.waitForSelector("details.run .drawing svg");
    const ids = await page.$$eval("[id]", (all) => all.map((e) => e.id));
    assert.equal(new Set(ids).size, ids.length, "ids are unique");
    await page.screenshot({ path: join(shots, "several.png"), fullPage: true });
  }));

  it("says in the first line that a result is invalid", () => withReport("invalid", {}, async (page) => {
    const badge = page.locator("main .badge").first();
    assert.match(await badge.textContent(), /INVALID V04 V07/);
    await openAll(page);
    assert.match(await page.locator(".findings li").first().textContent(), /Invalid V07/);
  }));

  it("marks the lines that are invalid, and no others", async () => {
    for (const [name, caption, line] of [["invalid", "Rate and throughput by operation and size", /PUT/], ["in-part", "Results", /put/i]]) {
      await withReport(name, {}, async (page) => {
        await openAll(page);
        const rows = page.locator("#results table", { has: page.locator("caption", { hasText: caption }) }).locator("tbody tr");
        const marked = rows.filter({ hasText: "[INVALID V04]" });
        assert.equal(await marked.count(), name === "invalid" ? 0 : 1, name);
        // What is wrong with the run is wrong with each of its lines.
        const all = rows.filter({ hasText: "[INVALID" });
        assert.equal(await all.count(), name === "invalid" ? await rows.count() : 1, name);
        assert.match(await all.first().textContent(), line);
        if (name === "in-part") assert.deepEqual(await titles(page, "section.workload .badge"), ["✕ INVALID V04"]);
      }, false);
    }
  });

  for (const name of ["mixed", "refused", "nothing"]) {
    it(`shows a run with little in it: ${name}`, () => withReport(name, {}, async (page) => {
      await openAll(page);
      const text = await page.textContent("#app");
      assert.doesNotMatch(text, /NaN|undefined|Infinity|\[object/);
      if (name === "refused") assert.match(text, /http_403 9,311/);
      if (name === "mixed") assert.ok((await titles(page, "table caption")).includes("Results"));
      await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
    }, false));
  }

  it("says what is wrong when its data is damaged", async () => {
    const page = await browser.newPage();
    const html = readFileSync(join(fixtures, "limited.html"), "utf8").replace('"schema":"plimsoll.page/1"', '"schema":"plimsoll.page/7"');
    await page.setContent(html);
    assert.match(await page.getByRole("alert").textContent(), /Make the report again/);
    await page.close();
  });
});

/** One report of each kind of run: what its first screen draws, and a word of its title. */
const KINDS = {
  object: "Operations over time", sweep: "Rate by size", limits: "Which cap binds at which size: put", watch: "Operations over time",
  cycles: /^Rate over 12 cycles: it falls from cycle 6, .* after the start$/, search: "How many in flight: put 4 KiB", block: "Rate by size", file: "Throughput of each line",
  drive: "Throughput of each line", compare: "How much better replica 3 is than EC 2+2", scale: "Rate over nodes: get 4 MiB", several: "Rate by tier", pivot: "Rate by provider",
};
const JOINT = ["several", "pivot"];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe("each kind of run", () => {
  for (const [name, title] of Object.entries(KINDS)) {
    it(`${name}: the answer fits the first screen, then one picture, a table, and folds that say what they hold`, async () => {
      for (const viewport of [{ width: 1280, height: 900 }, { width: 390, height: 844 }]) await withReport(name, { viewport }, async (page) => {
        const screen = `${viewport.width}`;
        for (const selector of ["h1", ".verdict .badge", ".verdict .lead", ".verdict .glance dd"]) for (const part of await page.locator(selector).all()) {
          if (!await part.isVisible()) continue;
          const box = await part.boundingBox();
          assert.ok(box.y + box.height <= viewport.height && box.x >= 0 && box.x + box.width <= viewport.width, `${selector} at ${JSON.stringify(box)} on ${screen}`);
        }
        assert.doesNotMatch(await page.textContent("h1"), /^20\d{6}-/, "an id is no title");
        const charts = await page.$$eval("main > section figure.chart figcaption > h3", (all) => all.map((e) => e.textContent));
        assert.equal(charts.length, 1, `${charts}`);
        if (typeof title === "string") assert.equal(charts[0], title);
        else assert.match(charts[0], title);
        assert.ok(!charts.join().includes("2026"), "no id in a title");
        const order = await page.$$eval("main > *", (all) => all.map((e) => e.id || e.className));
        assert.ok(order.indexOf("picture") < order.indexOf(JOINT.includes(name) ? "groups" : "results"), `${order}`);
        const at = (await page.locator("#picture .drawing").boundingBox()).y;
        if (viewport.width === 1280) assert.ok(at < 620, `the picture begins at ${at}`);
        if (!JOINT.includes(name)) for (const fold of await page.locator("main > details.fold").all()) {
          assert.equal(await fold.getAttribute("open"), null);
          const says = await fold.locator("> summary .says").textContent();
          assert.ok(says.length > 3 && !/NaN|undefined|Infinity|n\/a/.test(says), says);
        }
      });
    });

    for (const [device, width] of [["desk", 1200], ["phone", 390]]) {
      it(`${name}, ${device}: no label is cut off or under another, nothing is wider than the screen`, () => withReport(name, { viewport: { width, height: 844 } }, async (page) => {
        if (!JOINT.includes(name)) await openAll(page);
        else for (const d of await page.locator("details.run > summary").all()) await d.click();
        // Charts below the fold are drawn with the rest; a frame lets the observer do it.
        await page.waitForTimeout(300);
        await page.screenshot({ path: join(shots, `${name}-${device}.png`), fullPage: true });
        assert.deepEqual(await page.evaluate(unreadable), []);
      }));
    }

    for (const colorScheme of ["light", "dark"]) it(`${name}, ${colorScheme}: axe finds no violation`, () => withReport(name, { colorScheme }, async (page) => {
      if (!JOINT.includes(name)) await openAll(page);
      else await page.locator("details.run > summary").first().click();
      await page.waitForTimeout(200);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 120)} ${n.failureSummary}`).join(" | ")}`), []);
    }));

    it(`${name}: prints on white what is open, and of the rest the titles; no drawing breaks over pages`, () => withReport(name, { colorScheme: "dark" }, async (page) => {
      await page.emulateMedia({ media: "print" });
      assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
      // What is drawn row by row breaks between its rows.
      // In one go: paper has another width, and what is drawn for it takes the place of what was found a moment before.
      const breaks = await page.evaluate(() => [...document.querySelectorAll("figure.chart:not(:has(.pieces)), .pieces svg")].map((e) => getComputedStyle(e).breakInside));
      assert.ok(breaks.length && breaks.every((b) => b === "avoid"), `${breaks}`);
      for (const fold of await page.locator("main > details.fold > summary").all()) assert.ok(await fold.isVisible());
      assert.ok((await page.pdf({ path: join(shots, `${name}.pdf`), format: "A4" })).length > 20_000);
    }));
  }

  it("folds answer while they are closed", async () => {
    const said = {};
    for (const name of ["object", "limits", "block", "watch", "invalid"]) await withReport(name, {}, async (page) => {
      said[name] = Object.fromEntries(await page.$$eval("main > details.fold", (all) => all.map((d) => [d.id, d.querySelector(".says").textContent])));
    }, name !== "invalid");
    assert.match(said.object.validity, /^3 of 4 checks passed, 1 noted \(Q02\), 1 without data to test$/);
    assert.match(said.object.resources, /^workers [\d.]+ % busy at most, not the limit; this machine's CPU \d+ % at most$/);
    assert.match(said.object.latency, /^p50 [\d.]+ ms, p99 [\d.]+ ms$/);
    assert.match(said.object.provenance, /^plimsoll 0\.1\.0 \(0123456789ab\), sealed \(\d+ raw files, .*\), xxh3 [0-9a-f]{12}…$/);
    assert.match(said.object.time, /^steady to 60\.0 s$/);
    assert.match(said.watch.time, /^falls at 30\.5 s, from 2,970 to 1,004 per second/);
    assert.match(said.limits.limits, /^put 1,004 ± 6 op\/s, put 210 ± 4 MB\/s$/);
    assert.match(said.block.lines, /^20 lines, 16 in flight/);
    // Of what is void no figure is said.
    assert.ok(Object.entries(said.invalid).every(([id, t]) => ["provenance", "validity", "lines"].includes(id) || /invalid/.test(t)), JSON.stringify(said.invalid));
  });

  it("names the phases of a probe, and the cells of a sweep", async () => {
    await withReport("limits", {}, async (page) => {
      await openAll(page);
      const chart = page.locator("figure.chart", { hasText: "Operations over time" });
      assert.match(await chart.locator(".note").textContent(), /A: pilot; B: looking for a limit on ops; C: waiting while the ops bucket refills/);
      assert.ok(await chart.locator("svg text", { hasText: /^looking for a limit on ops$/ }).count());
    });
    await withReport("sweep", {}, async (page) => {
      await openAll(page);
      const chart = page.locator("figure.chart", { hasText: "Does each cell hold its rate?" });
      assert.deepEqual((await chart.locator("svg text").allTextContents()).filter((t) => /^(put|get)/.test(t)).length, 10);
    });
  });

  it("draws what is void hollow and with its code, at its size; and each size has its tick", () => withReport("block", { viewport: { width: 390, height: 844 } }, async (page) => {
    const texts = await page.locator("#picture svg text").allTextContents();
    assert.ok(texts.includes("V04"), `${texts}`);
    for (const size of ["4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB", "128 KiB", "256 KiB", "512 KiB", "1 MiB", "4 MiB"]) assert.ok(texts.includes(size), `${size} has no tick`);
  }));

  it("sets two labels against each other, numbers in their order", () => withReport("pivot", {}, async (page) => {
    assert.deepEqual(await page.$$eval("#groups table:first-of-type thead th", (all) => all.slice(0, 4).map((e) => e.textContent)), ["GiB", "AWS, op/s", "Azure, op/s", "Google, op/s"]);
    assert.deepEqual(await page.$$eval("#groups tbody th", (all) => all.map((e) => e.textContent)), ["20", "100"]);
    assert.match(await page.textContent(".lead"), /^Google does the most at 1 of 2 \(GiB\), 11 % above the next; at 1 the best intervals overlap\.$/);
  }));
});
