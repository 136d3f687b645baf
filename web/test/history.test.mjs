// The history in Chromium, served by the program's own server over runs that its example makes: list, filters, pivot, comparison, trend; by
// keyboard, on a phone, in the dark, with hostile labels.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, it } from "node:test";

import { chromium } from "playwright-core";

import { example } from "./examples.mjs";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const EVIL = "<img src=x onerror=\"window.hit=1\"></script><script>window.hit=2</script>";
const dir = mkdtempSync(join(tmpdir(), "plimsoll-history-"));
const PATIENT = { timeout: 60_000 };

let browser, server, url;
before(async () => {
  server = spawn(example("history"), [dir],
    { cwd: join(import.meta.dirname, "../.."), stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, XDG_CACHE_HOME: join(dir, "cache") } });
  url = await new Promise((done, fail) => {
    let said = "";
    server.stdout.on("data", (d) => { said += d; if (said.includes("\n")) done(said.trim()); });
    server.on("exit", () => fail(new Error(`no server: ${said}`)));
  });
  browser = await chromium.launch({ executablePath, args });
});
after(async () => {
  await browser?.close();
  if (server && server.exitCode === null) {
    const ended = new Promise((done) => server.on("exit", done));
    server.stdin.end();
    await ended;
  }
  rmSync(dir, { recursive: true, force: true });
});

/** There must be no trouble but what is expected. */
async function withPage(path, check, options = {}, expected = null) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) trouble.push(m.text()); });
  page.on("pageerror", (e) => trouble.push(String(e)));
  await page.goto(new URL(path, url).href);
  await page.waitForSelector("#view :is(table, p)", PATIENT);
  await check(page);
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.locator("main img").count(), 0);
  assert.deepEqual(trouble.filter((t) => !expected?.test(t)), []);
  await context.close();
}

const found = (page, text) => page.waitForFunction((t) => document.getElementById("found").textContent.includes(t), text, PATIENT);
const seen = (page, selector, text) => page.waitForFunction(([s, t]) => [...document.querySelectorAll(s)].some((e) => e.textContent.includes(t)), [selector, text], PATIENT);
async function clean(page) {
  await page.addScriptTag({ content: axe }).catch(() => page.evaluate(axe));
  const { violations } = await page.evaluate(() => window.axe.run());
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes[0].html}`), []);
}

it("lists runs, filters them, and keeps what was asked for in the address", () => withPage("/", async (page) => {
  await found(page, "28 of 28 runs");
  assert.ok((await page.textContent("#view")).includes(`tier=${EVIL}`), "a label is text");
  await page.selectOption("#f-label", "tier=gold");
  await found(page, "24 of 28 runs");
  await page.selectOption("#f-label", `tier=${EVIL}`);
  await found(page, "1 of 28 runs");
  await page.selectOption("#f-label", "tier=tin");
  await found(page, "3 of 28 runs");
  await page.selectOption("#f-validity", "invalid");
  await found(page, "1 of 28 runs");
  assert.match(await page.textContent("#view tbody"), /INVALID V07/);
  assert.match(page.url(), /label=tier%3Dtin&validity=invalid$/);
  await page.reload();
  await found(page, "1 of 28 runs");
  assert.equal(await page.inputValue("#f-validity"), "invalid");
  await page.goBack();
  await found(page, "3 of 28 runs");
  assert.equal(await page.inputValue("#f-validity"), "");
  await page.click("text=Clear the filter");
  await found(page, "28 of 28 runs");
  await page.fill("#f-since", "2026-11-27");
  await page.keyboard.press("Tab");
  await found(page, "2 of 28 runs");
  await page.click("text=Clear the filter");
  await page.fill("#f-target", "no such target");
  await page.keyboard.press("Enter");
  await found(page, "0 of 28 runs");
  // A link is to the run's own report.
  await page.click("text=Clear the filter");
  await found(page, "28 of 28 runs");
  const run = await page.textContent("#view tbody th a");
  await page.click("#view tbody th a");
  await page.waitForURL(`**/runs/${run}`, PATIENT);
}));

it("draws how the rate of each run went, and says it in words", () => withPage("/", async (page) => {
  await found(page, "28 of 28 runs");
  // They come to the list once it is there; a void run without a rate has none.
  await page.waitForFunction(() => document.querySelectorAll("#view tbody svg.spark").length === 27, null, PATIENT);
  const gold = page.locator("#view tbody tr", { hasText: "20261124-080000-0017" }).getByRole("img");
  assert.equal(await gold.getAttribute("aria-label"), "Rate over 8.0 s: from 800 to 800 op/s, lowest 400 op/s, highest 800 op/s");
  const heads = await page.$$eval("#view thead th", (list) => list.map((e) => e.textContent));
  assert.deepEqual(heads.slice(2, 5), ["What", "Rate over time", "Result"]);
  // Nothing is drawn anew while the list stays as it is.
  await page.evaluate(() => { window.line = document.querySelector("#view tbody svg.spark path.rate"); });
  await page.selectOption("#f-op", "put");
  await found(page, "4 of 28 runs");
  assert.equal(await page.locator("#view tbody svg.spark").count(), 3);
  assert.ok(await page.evaluate(() => window.line.isConnected));
  // On paper it is ink, whatever the screen was.
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  assert.equal(await page.evaluate(() => getComputedStyle(window.line).stroke), "rgb(0, 0, 0)");
}));

it("keeps focus and elements of what stays when the list is filtered", () => withPage("/?label=tier%3Dgold", async (page) => {
  await found(page, "24 of 28 runs");
  await page.locator("#view tbody tr").nth(3).locator("th a").focus();
  const id = await page.evaluate(() => { window.row = document.activeElement.closest("tr"); return document.activeElement.textContent; });
  await page.evaluate(() => { const s = document.getElementById("f-op"); s.value = "get"; s.dispatchEvent(new Event("change")); });
  await page.waitForURL(/op=get/, PATIENT);
  await page.waitForFunction(() => document.querySelectorAll("#view tbody tr").length === 24, null, PATIENT);
  assert.ok(await page.evaluate((id) => document.activeElement.textContent === id && document.activeElement.closest("tr") === window.row, id));
}));

it("pivots by any two keys, each figure with its interval and a link to its run", () => withPage("/?view=pivot&rows=label%3Atier", async (page) => {
  await seen(page, "#view caption", "tier by Operation");
  const gold = page.locator("#view tbody tr", { hasText: "gold" });
  assert.match(await gold.textContent(), /± .*op\/s95 % over 24 lines/);
  assert.match(await page.locator("#view tbody tr", { hasText: "tin" }).textContent(), /over 2 lines; 1 void left out/);
  assert.match(await gold.locator("td a").first().getAttribute("href"), /^\/runs\/20261124-/);
  await page.selectOption("#figure", "p99_ns");
  await seen(page, "#view caption", "Response, p99");
  await page.selectOption("#pivot-columns", "size");
  await seen(page, "#view thead", "4 KiB");
  assert.match(page.url(), /figure=p99_ns/);
  await page.goBack();
  await seen(page, "#view thead", "get");
  assert.equal(await page.inputValue("#pivot-columns"), "op");
}));

it("compares the runs that were chosen, and claims nothing of two", () => withPage("/?label=tier%3Dgold", async (page) => {
  const pick = (row, side) => page.locator("#view tbody tr").nth(row).getByRole("button", { name: `${side}: compare` }).click();
  await pick(0, "A");
  await pick(12, "B");
  await seen(page, "main", "Chosen: 1 in A, 1 in B");
  await page.click("text=Compare them");
  await seen(page, "#view caption", "1 in A against 1 in B");
  assert.match(await page.textContent("#view tbody tr"), /undetermined.*make at least 3 runs of each/);
  await page.goBack();
  await seen(page, "#view caption", "Runs");
  for (const [row, side] of [[1, "A"], [2, "A"], [13, "B"], [14, "B"]]) await pick(row, side);
  await page.click("text=Compare them");
  await seen(page, "#view caption", "3 in A against 3 in B");
  const rate = await page.textContent("#view tbody tr");
  assert.match(rate, /A is less.*95 % interval/);
  assert.equal(await page.locator("#view tbody tr").first().locator("td a[href^='/runs/']").count(), 6);
  assert.match(await page.textContent("#view ul.findings"), /F41 Both plans are the same: the difference is not in them\./);
  await page.reload();
  await seen(page, "#view caption", "3 in A against 3 in B");
}));

it("takes all that is shown to a side, and compares them in a table that can be read", () => withPage("/?label=tier%3Dtin", async (page) => {
  await found(page, "3 of 28 runs");
  await page.getByRole("button", { name: "All shown to A" }).click();
  await seen(page, "main", "Chosen: 3 in A (1 void), 0 in B");
  await page.click("text=Clear the filter");
  await page.selectOption("#f-label", "tier=gold");
  await found(page, "24 of 28 runs");
  await page.getByRole("button", { name: "All shown to B" }).click();
  await seen(page, "main", "Chosen: 3 in A (1 void), 24 in B");
  await page.click("text=Compare them");
  await seen(page, "#view caption", "3 in A (1 void) against 24 in B");
  for (const [width, least] of [[1280, 250], [390, 200]]) {
    await page.setViewportSize({ width, height: 900 });
    const cells = await page.$$eval("#view tbody td.said-of", (all) => all.map((e) => [e.clientWidth, e.clientHeight]));
    for (const [w, h] of cells) assert.ok(w >= least && h < 220, `${w} by ${h} at ${width}`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width);
    // The last of 27 is reached by scrolling the table, and nothing of it is cut off then.
    const [right, edge] = await page.evaluate(() => { const s = document.querySelector("#view .scroll"); s.scrollLeft = s.scrollWidth; return [s.querySelector("thead th:last-child").getBoundingClientRect().right, s.getBoundingClientRect().right]; });
    assert.ok(right <= edge + 1, `${right} of ${edge}`);
  }
}, { viewport: { width: 1280, height: 900 } }));

it("shows a trend and where its level changed", () => withPage("/?view=trend&label=tier%3Dgold", async (page) => {
  await seen(page, "#view", "The level changed once over 24 runs");
  assert.match(await page.textContent("#view"), /From 20261113-080000-000c on: × 0\.799 ± /);
  assert.equal(await page.locator("svg.trend circle").count(), 24);
  assert.equal(await page.locator("svg.trend line.step").count(), 1);
  const words = (name) => page.$$eval(`svg.trend text.${name}`, (all) => all.map((e) => e.textContent));
  assert.deepEqual(await words("unit"), ["↑ op/s"]);
  for (const t of await words("tick")) assert.match(t, /^[\d,]*[05]$/);
  assert.deepEqual((await words("when")).map((t) => t.replace(/\d/g, "0")), ["0000-00-00", "0000-00-00 (UTC) →"]);
  assert.equal(await page.locator("#view tbody tr").count(), 24);
  await page.selectOption("#figure", "p99_ns");
  await seen(page, "#view", "No change of the level is proved");
  await page.waitForFunction(() => /^↑ (µs|ms|s)$/.test(document.querySelector("svg.trend text.unit").textContent), null, PATIENT);
}));

it("is used by keyboard alone", () => withPage("/", async (page) => {
  await found(page, "28 of 28 runs");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  const to = async (test, what) => {
    for (let i = 0; i < 60; i++) {
      if (await page.evaluate(test)) return;
      await page.keyboard.press("Tab");
    }
    assert.fail(`the focus never came to ${what}`);
  };
  await to(() => document.activeElement.id === "f-op", "the filter");
  await page.keyboard.press("p");
  await found(page, "4 of 28 runs");
  await to(() => document.activeElement.getAttribute("aria-label")?.startsWith("A: compare"), "a side");
  await page.keyboard.press("Enter");
  await seen(page, "main", "Chosen: 1 in A, 0 in B");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-pressed")), "true");
}));

for (const [name, options] of [["wide", {}], ["on a phone", { viewport: { width: 360, height: 740 } }], ["in the dark", { colorScheme: "dark" }]]) {
  it(`has no violation of axe-core and nothing beyond the edge, ${name}`, async () => {
    for (const path of ["/", "/?label=tier%3Dtin", "/?view=pivot&rows=label%3Atier", "/?view=compare&a=20261101-080000-0000&b=20261102-080000-0001", "/?view=compare", "/?view=trend"]) {
      await withPage(path, async (page) => {
        await clean(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${path}: ${wide} pixels beyond the edge`);
      }, { ...options, bypassCSP: true });
    }
  });
}

it("says what is wrong with an address", () => withPage("/?view=trend", async (page) => {
  await seen(page, "#view", "The level changed");
  await page.goto(new URL("/?view=compare&a=no-such-run", url).href);
  await seen(page, "[role=alert]", "There is no run no-such-run here");
}, {}, /status of 400/));
