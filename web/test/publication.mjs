// Opens a publication (PLIMSOLL_SITE, a folder that `plimsoll publish` wrote) from the disk, as a reader does: the answer on the first
// screen, also of a phone; charts that can be saved; keyboard, paper, dark; nothing asked of the network. tests/e2e/test_publish.py runs it.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const site = process.env.PLIMSOLL_SITE;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;
before(async () => { browser = await chromium.launch({ executablePath, args }); });
after(() => browser?.close());

async function open(name, options, check) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) trouble.push(m.text()); });
  page.on("pageerror", (e) => trouble.push(String(e)));
  page.on("request", (r) => { if (!/^(data|blob):/.test(r.url()) && !r.url().startsWith(pathToFileURL(site).href)) trouble.push(`request ${r.url()}`); });
  await page.goto(pathToFileURL(join(site, name)).href);
  if (name === "index.html") await page.waitForSelector(".drawing svg");
  await check(page);
  assert.deepEqual(trouble, []);
  await context.close();
}

it("answers first, draws its charts, and has every figure as a link to its runs", () => open("index.html", {}, async (page) => {
  assert.equal(await page.locator("h1").count(), 1);
  assert.match(await page.textContent(".verdict .lead"), /fastest in all 2 workloads/);
  const charts = await page.$$eval("figure.chart figcaption > h3", (all) => all.map((e) => e.textContent));
  for (const title of ["Rates, and what is promised", "Rate over size"]) assert.ok(charts.includes(title), `${title} is missing among ${charts}`);
  for (const f of await page.$$("figure.chart")) assert.ok((await f.$eval(".drawing", (e) => e.getAttribute("aria-label"))).length > 20);
  assert.doesNotMatch(await page.textContent("main"), /NaN|undefined|\[object|Infinity/);
  await page.locator("h2#results ~ .scroll td.number a").first().click();
  await page.waitForURL(/runs-1\.html#row-0/);
  assert.match(await page.textContent("#row-0"), /fast, put 4KiB/);
  assert.match(await page.locator(".hash").first().textContent(), /^[0-9a-f]{64}$/);
}));

it("shows the answer on the first screen of a phone, and is not wider than it", () => open("index.html", { viewport: { width: 390, height: 844 } }, async (page) => {
  const box = await page.locator(".verdict .lead").boundingBox();
  assert.ok(box && box.y + box.height <= 844, `the answer ends at ${box?.y + box?.height}`);
  await page.evaluate(() => document.querySelectorAll("select").forEach((s) => s.add(new Option("a run with a name that goes on ".repeat(4)))));
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways");
}));

it("saves a drawing as a file that needs no page", () => open("index.html", { acceptDownloads: true }, async (page) => {
  const chart = page.locator("figure.chart").first();
  for (const [label, begins] of [["SVG", "<?xml"], ["PNG", "\x89PNG"]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), chart.getByRole("button", { name: `Save as ${label}` }).click()]);
    const content = readFileSync(await download.path(), "latin1");
    assert.ok(content.startsWith(begins), `${label}: ${content.slice(0, 20)}`);
    assert.ok(content.length > 2000, `${label} has ${content.length} bytes`);
    assert.match(download.suggestedFilename(), /^rates\.(svg|png)$/);
  }
}));

it("is used by keyboard: every control can be reached, and a choice changes the drawing", () => open("index.html", {}, async (page) => {
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  const chart = page.locator("figure.chart").first();
  const before = await chart.locator(".drawing").getAttribute("aria-label");
  await chart.locator("select").focus();
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await chart.locator(".drawing").getAttribute("aria-label"), before);
}));

it("says on paper what is drawn", () => open("index.html", {}, async (page) => {
  await page.emulateMedia({ media: "print" });
  assert.ok(await page.locator("#charts .choice select").first().isVisible(), "the chart has no name");
}));

it("fits on paper", () => open("index.html", {}, async (page) => {
  // In the order of a browser; sizes of the new style are told to observers with the next frames.
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  assert.equal(await page.locator(".save:visible").count(), 0);
  assert.ok(await page.locator(".verdict .lead").isVisible());
  const widths = await page.$$eval(".drawing svg", (all) => all.map((e) => e.getBoundingClientRect().width));
  assert.ok(widths.length > 0 && widths.every((w) => w <= 700), String(widths));
}));

for (const colorScheme of ["light", "dark"]) it(`has nothing that axe remarks upon (${colorScheme})`, async () => {
  for (const name of readdirSync(site).filter((n) => n.endsWith(".html"))) await open(name, { colorScheme }, async (page) => {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`), []);
  });
});
