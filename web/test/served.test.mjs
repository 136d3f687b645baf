// A run in Chromium while it goes on, served by the program itself (PLIMSOLL_BIN, runs below PLIMSOLL_RUNS): from the start to the
// verdict, in two tabs, late, cut off, on a phone, in the dark, by keyboard. tests/e2e/test_serve.py runs it.
import assert from "node:assert/strict";
import { spawn, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const bin = process.env.PLIMSOLL_BIN;
const runs = process.env.PLIMSOLL_RUNS;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const EVIL = "<img src=x onerror=\"window.hit=1\"></script><script>window.hit=2</script>";

let browser;
const started = [], wires = [];
before(async () => { browser = await chromium.launch({ executablePath, args }); });
// Whatever a test that failed has left: else nothing ends, and nobody reads why.
after(async () => {
  for (const p of started) if (p.exitCode === null) p.kill("SIGKILL");
  await Promise.all(wires.map((w) => w.close()));
  await browser?.close();
});

/** A run, and where its page is. */
function run(duration) {
  const p = spawn(bin, ["object", "put", "--endpoint", "embedded", "--size", "4KiB", "--concurrency", "4", "--warmup", "1s", "--duration", duration, "--label", `evil=${EVIL}`, "--live"], { stdio: ["ignore", "ignore", "pipe"] });
  started.push(p);
  let said = "";
  const address = new Promise((done, fail) => {
    p.stderr.on("data", (d) => { said += d; const m = said.match(/live at (http\S+)/); if (m) done(m[1]); });
    p.on("exit", () => fail(new Error(said)));
  });
  const ended = new Promise((done) => p.on("exit", (code) => done({ code, said })));
  return { address, ended, end: () => p.kill("SIGINT") };
}

/** A wire to the server that can be cut: a browser that takes it for the way to `localhost`. */
async function wire(port) {
  const open = new Set();
  let whole = true;
  const server = createServer((near) => {
    if (!whole) return near.destroy();
    const far = connect(port, "127.0.0.1");
    for (const s of [near, far]) { open.add(s); s.on("error", () => {}); s.on("close", () => { open.delete(s); near.destroy(); far.destroy(); }); }
    near.pipe(far).pipe(near);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const through = await chromium.launch({ executablePath, args: [...args, `--host-resolver-rules=MAP localhost 127.0.0.1:${server.address().port}`] });
  const self = {
    browser: through, cut() { whole = false; open.forEach((s) => s.destroy()); }, mend() { whole = true; },
    async close() { await through.close(); open.forEach((s) => s.destroy()); server.close(); },
  };
  wires.push(self);
  return self;
}

async function tab(url, options = {}, at = browser) {
  const context = await at.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) trouble.push(m.text()); });
  page.on("pageerror", (e) => trouble.push(String(e)));
  await page.addInitScript(() => {
    window.numbers = [];
    window.kinds = [];
    document.addEventListener("plimsoll:message", (e) => { const m = JSON.parse(e.detail); window.numbers.push(m.seq); window.kinds.push(m.kind); });
  });
  await page.goto(url);
  await page.waitForSelector("#now .headline", { timeout: 30_000 });
  return { context, page, trouble };
}

const rate = (page) => page.textContent("#now .headline .figure:first-child .value");
const changes = (page, f, arg) => page.waitForFunction(f, arg, { timeout: 30_000 });
const asText = (page) => page.evaluate(async () => {
  for (const d of document.querySelectorAll("main > details.fold")) d.open = true;
  await new Promise((done) => setTimeout(done, 1000));
  // What is above and below the run says where the page came from.
  return document.getElementById("main").innerText;
});

/** The text of the report of a run that has ended. */
async function reportOf(url) {
  const id = new URL(url).pathname.split("/").at(-1);
  const file = join(runs, `${id}.html`);
  execFileSync(bin, ["report", id, "-o", file], { stdio: ["ignore", "ignore", "inherit"] });
  const report = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  await report.goto(pathToFileURL(file).href);
  await report.waitForSelector("main .verdict");
  return asText(report);
}

/** What a page shows when its run has ended; and nothing went wrong in it. */
async function shown({ page, context, trouble }) {
  await changes(page, () => document.getElementById("now") === null);
  const text = (await asText(page)).replace(/Nothing more will come: [^\n]*\n+/, "");
  assert.deepEqual(trouble, []);
  await context.close();
  return text;
}

it("shows a run from its start to its verdict, to whoever looks, whenever", async () => {
  // It ends when all has been looked at, however long that takes on a machine that is busy.
  const { address, ended, end } = run("15m");
  const url = await address;
  const first = await tab(url);
  await first.page.waitForSelector("#now .headline .value");
  await changes(first.page, () => document.querySelectorAll("#now .headline .value").length >= 6);

  // A reader's own: what has the focus, what is open, and where the page was scrolled to stay as they are.
  await first.page.locator("details.fold > summary").last().click();
  await first.page.locator("#stop").focus();
  await first.page.evaluate(() => { window.button = document.getElementById("stop"); window.scrollTo(0, 120); });
  const before = await rate(first.page);
  await changes(first.page, (was) => document.querySelector("#now .headline .value").textContent !== was, before);
  await first.page.waitForTimeout(3000);
  assert.ok(await first.page.evaluate(() => document.activeElement === window.button && document.getElementById("stop") === window.button));
  // A browser moves it by the little by which lines above have grown, so that what is read stays where it is.
  const scrolled = await first.page.evaluate(() => window.scrollY);
  assert.ok(Math.abs(scrolled - 120) < 60, String(scrolled));
  assert.ok(await first.page.locator("details.fold").last().evaluate((d) => d.open));

  // What somebody called the run is text.
  assert.equal(await first.page.evaluate(() => window.hit), undefined);
  assert.equal(await first.page.locator("main img").count(), 0);
  assert.ok((await first.page.textContent(".labels")).includes(EVIL));

  // Late, beside the first, and after a reload: all that was before is there.
  const way = await wire(Number(new URL(url).port));
  const second = await tab(url.replace("127.0.0.1", "localhost"), { colorScheme: "dark" }, way.browser);
  const points = (page) => page.evaluate(() => JSON.parse(document.getElementById("plimsoll-data").textContent).runs[0].series[0].ops_per_s.length);
  assert.ok(await points(second.page) >= 5);
  await second.page.evaluate(axe);
  const violations = await second.page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa"] }).then((r) => r.violations.map((v) => `${v.id}: ${v.nodes[0].html}`)));
  assert.deepEqual(violations, []);
  await first.page.reload();
  await first.page.waitForSelector("#now .headline .value");

  // On a phone nothing is wider than the screen.
  const phone = await tab(url, { viewport: { width: 390, height: 800 } });
  assert.ok(await phone.page.evaluate(() => document.documentElement.scrollWidth) <= 390);
  await phone.context.close();

  // Cut off: it is said, and what came meanwhile is there afterwards, once.
  await changes(second.page, () => window.numbers.length > 2);
  way.cut();
  await changes(second.page, () => document.querySelector(".connection").textContent.includes("connection is cut"));
  await second.page.waitForTimeout(6000);
  way.mend();
  await changes(second.page, () => document.querySelector(".connection").textContent === "");
  await second.page.waitForTimeout(2500);
  const { numbers, kinds } = await second.page.evaluate(() => ({ numbers: window.numbers, kinds: window.kinds }));
  assert.equal(kinds.filter((k) => k === "hello").length, 1, "what was missed was sent, and not all anew");
  numbers.forEach((n, i) => assert.equal(n, numbers[0] + i));
  second.trouble.splice(0, second.trouble.length, ...second.trouble.filter((t) => !/net::ERR_/.test(t)));

  // After the verdict both show what the report shows.
  end();
  const { code, said } = await ended;
  assert.equal(code, 130, said);
  const whole = await reportOf(url);
  for (const t of [first, second]) assert.equal(await shown(t), whole);
});

it("ends with a run that comes to its end, and shows what its report shows", async () => {
  const { address, ended } = run("25s");
  const url = await address;
  const looking = await tab(url);
  const { code, said } = await ended;
  assert.ok([0, 3, 5].includes(code), said);
  assert.equal(await shown(looking), await reportOf(url));
});

it("is stopped by keyboard alone, and the result is written", async () => {
  const { address, ended } = run("120s");
  const { context, page, trouble } = await tab(await address);
  await changes(page, () => document.querySelectorAll("#now .headline .value").length >= 6);
  // Not confirmed, it goes on.
  page.once("dialog", (d) => d.dismiss());
  await page.locator("body").press("Tab");
  for (let i = 0; i < 60 && await page.evaluate(() => document.activeElement.id !== "stop"); i += 1) await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "stop");
  await page.keyboard.press("Enter");
  assert.equal(await page.textContent("#stop-said"), "");
  page.once("dialog", (d) => d.accept());
  await page.keyboard.press("Enter");
  await changes(page, () => document.getElementById("now") === null);
  assert.match(await page.textContent("main"), /ended early: interrupted/);
  assert.equal((await ended).code, 130);
  assert.deepEqual(trouble, []);
  await context.close();
});
