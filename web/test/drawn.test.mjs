// Opens pages of hand-made data in Chromium: what is drawn of what a person found drawn wrongly. Needs the built page
// (npm run build) and a Chromium, and no cargo.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

import { about, COST, COURSES, hold, html, now, page as pageOf, run, SCALING, series, SERVERS, sideBySide, soFar, stage, UNDETERMINED, unreadable, workload } from "./made.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const [DESK, PHONE] = [{ width: 1280, height: 900 }, { width: 390, height: 844 }];
let browser, place;
before(async () => {
  place = mkdtempSync(join(tmpdir(), "drawn-"));
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu"] });
});
after(async () => {
  await browser?.close();
  rmSync(place, { recursive: true, force: true });
});

/** Opens the page at both widths; nothing may be wrong with it. */
async function drawn(data, check, viewports = [DESK, PHONE]) {
  const file = join(place, "page.html");
  writeFileSync(file, html(data));
  for (const viewport of viewports) {
    const context = await browser.newContext({ viewport });
    const page = await context.newPage();
    const trouble = [];
    page.on("console", (m) => { if (["error", "warning"].includes(m.type())) trouble.push(m.text()); });
    page.on("pageerror", (e) => trouble.push(String(e)));
    await page.goto(pathToFileURL(file).href);
    await page.waitForSelector(".drawing svg");
    await check(page, viewport);
    assert.deepEqual(await page.evaluate(unreadable), []);
    assert.deepEqual(trouble, []);
    await context.close();
  }
}

const texts = (page) => page.$$eval("#picture svg text", (all) => all.map((e) => e.textContent));
/** Boxes of what a selector finds in the picture. */
const boxes = (page, selector) => page.$$eval(`#picture svg ${selector}`, (all) => all.map((e) => { const { x, y, width, height } = e.getBoundingClientRect(); return { x, y, width, height, text: e.textContent }; }));
const meet = (a, b) => Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x) > 1 && Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 1;

describe("a comparison that found nothing out", () => {
  const data = pageOf([run("before against after", [], { analysis: { comparisons: UNDETERMINED } })]);
  it("does not begin with a tick", () => drawn(data, async (page) => {
    const badge = page.locator(".verdict .badge");
    assert.equal(await badge.textContent(), "! VALID, difference undetermined");
    assert.match(await badge.getAttribute("class"), /fair/);
  }));
  it("draws what goes beyond the axis with an arrow, cuts no label, and has no line through one", () => drawn(data, async (page) => {
    const all = await texts(page);
    assert.equal(all.filter((t) => t === "▶").length, 2, `${all}`);
    assert.equal(all.filter((t) => t === "◀").length, 2, `${all}`);
    assert.equal(all.filter((t) => t.includes("not proved")).length, 3, `${all}`);
    assert.ok(!all.some((t) => t.includes("…")), `${all}`);
    const zero = await boxes(page, "g[aria-label=tick] line");
    assert.equal(zero.length, 3);
    for (const z of zero) for (const t of (await boxes(page, "text")).filter((x) => x.text.includes("proved"))) assert.ok(!meet({ ...z, x: z.x - 2, width: 4 }, t), `${t.text} at ${JSON.stringify([z, t])}`);
    for (const t of await boxes(page, "text")) assert.ok(t.x >= 0 && t.x + t.width <= await page.evaluate(() => innerWidth), t.text);
  }));
});

describe("a run with prices", () => {
  const priced = (cost) => { const r = run("disk", [workload("w", "write", 4096, 1100), workload("r", "read", 4096, 80)], { block: true }); Object.assign(r.summary, { cost, labels: { suite: "drive" } }); return pageOf([r]); };
  it("has a fold whose title is the result, and all of it when opened", () => drawn(priced(COST), async (page) => {
    const fold = page.locator("details#cost");
    assert.match(await fold.locator("summary").first().textContent(), /^Cost: at most 155\.52 USD\/month at the rate of w\/write/);
    await fold.locator("summary").first().click();
    // What is in a fold is drawn once it has opened.
    await fold.getByText("Worst case a month").first().waitFor();
    const text = await fold.textContent();
    for (const part of ["142.56 (129.60 to 155.52)", "1100 op/s x 2592000 s", "Worst case a month", "2018-07-01, southeastasia", "SHA-256 0123456789abcdef"]) assert.ok(text.includes(part), part);
    assert.ok(text.includes("An <b>article</b>, section 4.1"));
    assert.equal(await fold.locator("b").count(), 0);
  }));
  it("has none without them", () => drawn(priced(undefined), async (page) => assert.equal(await page.locator("#cost").count(), 0), [DESK]));
});

describe("rate over nodes", () => {
  it("begins at zero, without marks in its words", () => drawn(pageOf([run("scale", [], { analysis: { scalings: [SCALING] } })]), async (page) => {
    assert.match(await page.textContent("#picture .note"), / 75 % of linear/);
    assert.doesNotMatch(await page.textContent("main"), /\*\*/);
    const all = await texts(page);
    assert.ok(!all.some((t) => /^[-−]/.test(t)), `${all}`);
    assert.ok(all.includes("▲"), `${all}`);
  }));
});

describe("runs side by side", () => {
  it("have a bar each that can be seen, of one op and three labels as of many ops", async () => {
    for (const keys of [["1", "2", "4"].map((c) => ["put", c]), ...[2, 9].map((n) => Array.from({ length: n * 3 }, (_, i) => [`op${Math.floor(i / 3)}`, `${i % 3}`]))]) {
      await drawn(sideBySide(["Operation", "clients"], keys, [...new Set(keys.map((k) => k[1]))]), async (page) => {
        const bars = await boxes(page, "g[aria-label=rect] rect");
        assert.equal(bars.length, keys.length);
        for (const b of bars) assert.ok(b.height >= 8 && b.width >= 1, JSON.stringify(b));
        assert.equal((await texts(page)).filter((t) => t === "op/s →").length, keys.length > 18 ? 2 : 1);
      });
    }
  });
  it("leave no page of paper empty: the picture breaks between its rows", () => drawn(sideBySide(["Operation", "clients"], Array.from({ length: 60 }, (_, i) => [`op${i}`, "1"]), ["1"]), async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector("figure.chart")).breakInside), "auto");
    assert.deepEqual(await page.evaluate(() => [...new Set([...document.querySelectorAll("#picture svg")].map((e) => getComputedStyle(e).breakInside))]), ["avoid"]);
    assert.equal(await page.locator("#picture svg").count(), 60);
  }, [DESK]));
});

describe("what is void", () => {
  const sweep = (above) => {
    const lines = [workload("put", "put", 4096, above), workload("put", "put", 1048576, 50), workload("get", "get", 4096, 300, { valid: false }), workload("get", "get", 1048576, 100)];
    return pageOf([run("sweep", lines.map((w, i) => ({ ...w, name: `${w.name} ${i}` })), { sweep: true })]);
  };
  it("has its code where it hides no point of another series", async () => {
    for (const above of [340, 380, 430, 480, 540]) await drawn(sweep(above), async (page) => {
      const label = (await boxes(page, "text")).find((t) => t.text === "V04");
      assert.ok(label);
      for (const dot of await boxes(page, "g[aria-label=dot] path, g[aria-label=dot] circle")) assert.ok(!meet(label, dot), JSON.stringify([above, label, dot]));
    }, [DESK]);
  });
  it("is struck in the table, and has its code in sight", () => drawn(sweep(400), async (page, viewport) => {
    const row = page.locator("#results tbody tr").nth(2);
    assert.equal(await row.getAttribute("class"), "void");
    assert.match(await row.locator("td.number").first().evaluate((e) => getComputedStyle(e).textDecorationLine), /line-through/);
    assert.equal(await page.locator("#results tbody tr").first().locator("td.number").first().evaluate((e) => getComputedStyle(e).textDecorationLine), "none");
    const seen = viewport.width === 390 ? await row.locator("th").first().evaluate((e) => getComputedStyle(e, "::after").content) : await row.locator("td.code").textContent();
    assert.match(seen, /V04/);
  }));
  it("has its code in the picture of lines, whole on a phone, and its interval takes no room from the others", () => {
    const lines = [workload("read 1 MiB (randread 1MiB, eight in flight)", "read", 1048576, 800, { valid: false, ops_per_s: about(800, 1e6), bytes_per_s: about(800e6, 1e12) }), workload("write 4 KiB", "write", 4096, 170e3), workload("write 64 KiB", "write", 65536, 9e3)];
    const r = run("drive", lines, { block: true });
    r.summary.labels = { suite: "drive" };
    return drawn(pageOf([r]), async (page) => {
      const all = await texts(page);
      assert.ok(all.some((t) => t.includes("[INVALID V04]")), `${all}`);
      assert.ok(!all.some((t) => t.includes("…")), `${all}`);
      const bars = await boxes(page, "g[aria-label=rect] rect");
      assert.equal(bars.length, 3);
      assert.ok(Math.max(...bars.map((b) => b.width)) > 0.3 * await page.evaluate(() => innerWidth), JSON.stringify(bars));
    });
  });
  it("is void alone in a table of two sides", () => {
    const p = sideBySide(["Operation", "tier"], [["put", "a"], ["put", "b"]], ["a", "b"]);
    p.groups[1] = { ...p.groups[1], lines: 0, left_out: 1, ops_per_s: null, each_ops_per_s: [] };
    p.groups.push({ ...p.groups[0], keys: ["get", "a"] });
    p.runs[1].summary.workloads[0].valid = false;
    p.runs[1].spoiled = ["[INVALID V07]"];
    return drawn(p, async (page) => {
      const row = page.locator("#groups tbody tr", { hasText: "V07" }).first();
      assert.equal(await row.getAttribute("class"), null);
      assert.equal(await row.locator("td.code").textContent(), "[INVALID V07]");
    });
  });
});

describe("a benchmark that was repeated", () => {
  it("has a mark of its own for each row", () => {
    const each = Array.from({ length: 6 }, (_, i) => about(100 + i));
    const lines = ["write", "read", "iops"].map((n) => workload(n, n === "write" ? "write" : "read", 65536, 100, { each_ops_per_s: each, repeats: 6 }));
    const r = run("watch", lines);
    r.summary.labels = { suite: "file" };
    return drawn(pageOf([r]), async (page) => {
      const marks = await page.$$eval("#picture g[aria-label=dot]", (all) => all.map((g) => g.querySelector("path, circle")).map((e) => [getComputedStyle(e).stroke, e.getAttribute("d") ?? "circle"]));
      for (const of of [0, 1]) assert.equal(new Set(marks.map((m) => m[of])).size, 3, `${marks}`);
    });
  });
});

describe("searches of two ops in one picture", () => {
  const search = (op_class, rates, best) => ({ op_class, size_bytes: 65536, verdict: best ? "saturated" : "the budget ended", c95: best ? about(best, 0) : null, plateau_per_s: null, budget_needed_s: best ? null : 70, invalid: [],
    points: rates.map((v, i) => ({ concurrency: 2 << i, ops_per_s: about(v), p50_ns: 1e6, p99_ns: null })) });
  const of = (...saturations) => pageOf([run("search", [workload("put/c2", "put", 65536, 90)], { analysis: { saturations } })]);
  it("ring what is enough, with a label that hides no point and is not cut off", () => drawn(of(search("put", [80, 90, 92, 92], 16), search("get", [80, 95, 96, 101], 16)), async (page, viewport) => {
    const labels = (await boxes(page, "text")).filter((t) => /^(put|get): 16$/.test(t.text));
    assert.equal(labels.length, 2);
    assert.ok(!meet(labels[0], labels[1]));
    for (const l of labels) assert.ok(l.x + l.width <= viewport.width, JSON.stringify(l));
  }));
  it("show a search of one step, and are not pressed flat by a step without answers", () => drawn(of(search("put", [1e-12, 1200, 1300], 4), search("get", [30], 0)), async (page) => {
    assert.match(await page.textContent("#picture h3"), /put 64 KiB, get 64 KiB/);
    const ticks = (await texts(page)).filter((t) => /^\d+(\.\d+)?k?$/.test(t));
    assert.ok(ticks.every((t) => !/^0\.0/.test(t)), `${ticks}`);
    assert.match(await page.textContent("#picture .note"), /in the table only/);
  }));
});

describe("advice", () => {
  const ADVICE = [
    "To stay below the limit with one client: warp --rps-limit 98, rclone --tpslimit 98.",
    "Load generators: vegeta -rate=98/1s, wrk2 -R98, k6 rate: 98, timeUnit: '1s'.\nA second line, with <b>markup</b> & signs.",
  ];
  const SET = { name: "stay below", text: "warp --rps-limit 98, rclone --tpslimit 98" };
  const of = (more = {}, summary = {}) => {
    const made = run("advised", [workload("put", "put", 4096, 98)], { stages: [stage(0, 20)], series: [series(0, "put", 0, Array(40).fill(98))], analysis: { advice: ADVICE }, ...more });
    Object.assign(made.summary, summary);
    return pageOf([made]);
  };
  it("stands on the first screen, as text, each line a line of its own", () => drawn(of(), async (page, viewport) => {
    const items = page.locator(".verdict .advice li");
    assert.deepEqual(await items.allTextContents(), ADVICE);
    assert.deepEqual((await items.nth(1).innerText()).split("\n").length, 2);
    assert.equal(await page.locator(".advice b").count(), 0);
    assert.equal(await page.locator(".advice").count(), 1, "and nowhere else");
    const { y, height, x, width } = await page.locator(".verdict .advice").boundingBox();
    assert.ok(y + height <= viewport.height && x + width <= viewport.width, JSON.stringify({ y, height, x, width }));
  }));
  it("is not said twice where a fact says it, too, and is folded from the fourth sentence on", () => {
    const data = of({ analysis: { advice: [...ADVICE, "A third.", "A fourth.", "A fifth."] } });
    data.runs[0].glance.facts = [{ name: "ops", text: "98 op/s" }, SET];
    return drawn(data, async (page) => {
      assert.deepEqual(await page.locator(".verdict .glance dt").allTextContents(), ["ops"]);
      assert.equal(await page.locator(".verdict .advice > div > ul li").count(), 3);
      await page.locator(".verdict .advice summary", { hasText: "2 more" }).click();
      await page.waitForSelector(".verdict .advice details li");
      assert.deepEqual(await page.locator(".verdict .advice details li").allTextContents(), ["A fourth.", "A fifth."]);
    });
  });
  it("is folded away with the limits where the run says nothing", () => {
    const data = of({ status: "[INVALID V04]" }, { answered: false });
    data.runs[0].glance.facts = [SET];
    return drawn(data, async (page) => {
      assert.equal(await page.locator(".verdict .advice").count(), 0);
      await page.locator("#limits > summary").click();
      await page.waitForSelector("#limits .advice");
      assert.deepEqual(await page.locator(".verdict .glance dt").allTextContents(), ["stay below"], "which advice does not stand beside");
      assert.equal(await page.locator("#limits .advice li").count(), ADVICE.length);
    });
  });
});

describe("a run whose servers were observed", () => {
  const stage = { index: 0, name: "put", start_s: 0, end_s: 20, window: [2, 19], repeat: 0, void: null };
  const line = { line: 0, label: "put", op: "put", stage: 0, start_s: 0, step_s: 5, offered_per_s: null, ops_per_s: [9, 9, 9, 9], bytes_per_s: [], bytes_of_ok: false, p50_ns: [], p90_ns: [], p99_ns: [], p999_ns: [], max_ns: [], ttfb_p50_ns: [], outcomes_per_s: {} };
  const of = (servers, more = {}) => {
    const made = run("observed", [workload("put", "put", 67108864, 0.75)], { stages: [stage], series: [line], servers: COURSES, ...more });
    made.summary.servers = servers;
    return pageOf([made]);
  };
  it("says where the bytes go, with what redundancy makes of them", () => drawn(of(SERVERS), async (page) => {
    const all = await page.$$eval("#picture figure:last-of-type svg text", (list) => list.map((e) => e.textContent));
    for (const part of ["Clients", "Servers", "Drives", "written 50.0 MB/s", "between servers 50.0 MB/s", "written 66.7 MB/s", "1.33 a byte, 1.33 expected"]) assert.ok(all.includes(part), `${part}: ${all}`);
    const thick = await page.$$eval("#picture figure:last-of-type svg rect[fill-opacity]", (list) => list.map((e) => [e.getAttribute("fill"), Number(e.getAttribute("height"))]));
    assert.equal(thick.length, 3);
    // The network binds: what goes through it is marked, and the drives' band is a third thicker than the clients'.
    assert.equal(thick.filter(([c]) => c === "var(--s2)").length, 2);
    const [drives] = thick.filter(([c]) => c === "var(--s1)");
    assert.ok(Math.abs(drives[1] / thick.find(([c]) => c === "var(--s2)")[1] - 1.334) < 0.01, `${thick}`);
    // What servers say to each other goes both ways: four heads on three bands, and none lies on its band.
    const places = (selector) => page.$$eval(`#picture figure:last-of-type svg ${selector}`, (list) => list.map((e) => { const b = e.getBBox(); return { from: b.x, to: b.x + b.width, y: b.y + b.height / 2 }; }));
    const [heads, bands] = [await places("path.head"), await places("rect[fill-opacity]")];
    const near = (a, b) => Math.abs(a - b) < 0.01;
    const ends = bands.map((b) => heads.filter((h) => near(h.y, b.y) && (near(h.to, b.from) || near(h.from, b.to))).length);
    assert.deepEqual([heads.length, ...ends.toSorted()], [4, 1, 1, 2], JSON.stringify([heads, bands]));
  }));
  it("draws what nobody told of as that", () => drawn(of({ ...SERVERS, windows: [{ ...SERVERS.windows[0], traffic: SERVERS.windows[0].traffic.slice(0, 1) }] }), async (page) => {
    const all = await page.$$eval("#picture figure:last-of-type svg text", (list) => list.map((e) => e.textContent));
    assert.ok(all.includes("between servers") && all.includes("not observed"), `${all}`);
    assert.equal(await page.locator("#picture figure:last-of-type svg line[stroke-dasharray]").count(), 1);
  }));
  it("has its resources in order of percent, with those that were not observed named", () => drawn(of(SERVERS), async (page) => {
    assert.match(await page.locator("#servers > summary").textContent(), /4 of 6 at their ceilings, network in of s1 at 96 %, work in the background/);
    await page.locator("#servers > summary").click();
    // What a fold holds is made after it opened.
    await page.waitForSelector("#servers table tbody tr");
    const rows = await page.$$eval("#servers table:first-of-type tbody tr", (all) => all.map((r) => [...r.children].map((c) => c.textContent)));
    assert.deepEqual(rows[0].slice(0, 6), ["network in", "s1", "eth0", "0.192 Gbit/s", "0.200 Gbit/s", "96 %"]);
    assert.ok(rows.some((r) => r[0] === "the servers' drives" && r[7] === "not observed"), JSON.stringify(rows));
    assert.ok(rows.some((r) => r[0] === "network out" && r[7] === "ceiling not known"));
    const pools = await page.$$eval("#servers table", (all) => all.map((t) => [...t.querySelectorAll("tbody tr")].map((r) => [...r.children].map((c) => c.textContent))).find((r) => r[0]?.[0] === "data"));
    assert.deepEqual(pools?.map((r) => r.slice(0, 6)), [["data", "ec:2+2", "1.00", "2.20", "2.20", "2.00"], [".mgr", "replica:3", "0.000186", "0.00168", "n/a", "3.00"]]);
  }));
  it("draws each host over the run's time, with the window and the healing in it", () => drawn(of(SERVERS), async (page) => {
    await page.locator("#servers > summary").click();
    await page.waitForSelector("#servers .strip svg");
    assert.equal(await page.locator("#servers .strip").count(), 8);
    assert.match(await page.locator("#servers .strip .drawing").first().getAttribute("aria-label"), /network in, eth0 of s1: mean 82 %, highest 97 % of 200Mbit\/s/);
    assert.equal(await page.locator("#servers .strip svg g[aria-description=background] rect").count(), 8);
    // From 8 s to 13 s of 20.
    const [bar, plot] = await page.$$eval("#servers .strip:first-of-type svg g[aria-description=background] rect, #servers .strip:first-of-type svg", (all) => [all.find((e) => e.tagName === "rect"), all.find((e) => e.tagName === "svg")].map((e) => e.getBoundingClientRect()).map((b) => [b.x, b.width]));
    const inner = plot[1] - 8;
    assert.ok(Math.abs((bar[0] - plot[0] - 4) / inner - 0.4) < 0.02 && Math.abs(bar[1] / inner - 0.25) < 0.02, `${bar} in ${plot}`);
  }));
  it("says nothing of servers that nobody observed", () => drawn(of(undefined, { servers: undefined }), async (page) => {
    assert.equal(await page.locator("#servers").count(), 0);
    assert.equal(await page.locator("#picture figure").count(), 1);
  }));
});

describe("operations over time", () => {
  const rates = (of, n = 44) => Array.from({ length: n }, (_, i) => of * (1 + 0.2 * Math.sin(i)));
  const one = (half) => pageOf([run("late", [workload("put", "put", 65536, 2100)], { stages: [stage(2.2, 24.2)], series: [series(0, "put", 2.2, rates(2100))], analysis: { holds: [hold(0, 2.2, 24.2, 2100, half)] } })]);
  const mix = () => {
    const lines = [["put", 1100], ["get", 3500], ["stat", 2300], ["delete", 760]];
    return pageOf([run("mix", lines.map(([op, v]) => workload(op, op, 65536, v)), {
      stages: [stage(2.2, 24.2)], series: lines.map(([op, v], i) => series(i, op, 2.2, rates(v))), analysis: { holds: lines.map(([, v], i) => hold(i, 2.2, 24.2, v, v * 1.3, { cliffs: [{ at_s: 17.1 + i / 10, from_per_s: v, to_per_s: v / 2, verdict: "throttle likely", evidence: [] }] })) },
    })]);
  };
  const values = async (page) => (await texts(page)).filter((t) => /^[-−\u2212]?\d+(\.\d+)?k?$/.test(t));
  it("is seen to where it was seen, though load began late", () => drawn(one(40), async (page) => {
    const [mark] = await boxes(page, "g[stroke-width='2.5'] line");
    const path = await page.$eval("#picture svg g[aria-label=line] path", (e) => { const { x, width } = e.getBoundingClientRect(); return x + width; });
    // The last point stands in the middle of its half second.
    assert.ok(Math.abs(mark.x - path) < 20 && mark.x >= path, `${JSON.stringify(mark)} of ${path}`);
  }));
  it("begins at no rate, however wide an interval is", () => drawn(one(4000), async (page) => {
    const all = await values(page);
    assert.ok(all.includes("0") && !all.some((t) => /^[-−\u2212]/.test(t)), `${all}`);
    const [band] = await boxes(page, "g[aria-description=level] rect");
    const [zero] = (await boxes(page, "g[aria-label='rule'] line")).filter((l) => l.width > 100).sort((a, b) => b.y - a.y);
    assert.ok(band.y + band.height <= zero.y + 1, JSON.stringify([band, zero]));
  }));
  it("names the warm-up, and says at which time its axis begins", () => drawn(one(40), async (page) => {
    const all = await texts(page);
    assert.ok(all.includes("warm-up"), `${all}`);
    assert.match(await page.textContent("#picture .note"), /Grey before it: the warm-up/);
    const [from] = await boxes(page, "g[aria-description=warm-up] rect");
    const first = (await boxes(page, "text")).find((t) => t.text === "2.2");
    if (first) assert.ok(Math.abs(first.x + first.width / 2 - from.x) < 2, JSON.stringify([first, from]));
  }));
  it("draws intervals of no line where several ran at once, and says one fall once", () => drawn(mix(), async (page) => {
    assert.equal((await boxes(page, "g[aria-description=level] rect")).length, 0);
    const all = await texts(page);
    assert.ok(!all.some((t) => t.includes("±")), `${all}`);
    assert.equal(all.filter((t) => t.startsWith("falls at")).length, 1, `${all}`);
    assert.equal(all.filter((t) => t === "seen to here").length, 1, `${all}`);
    assert.match(await page.textContent("#picture .note"), /not drawn: they would lie on each other/);
  }));
});

/** A run that goes on for `n` steps: first nothing, then warm-up, then what would be void or valid by turns. */
function* going(n) {
  const id = "20261128-032959-29d6";
  let seq = 0;
  for (let s = 1; s <= n; s++) {
    yield { kind: "now", seq: ++seq, run: id, now: now(s, s % 4 === 3 ? { missing: ["2 workers are late: what they did last is not in these figures yet."] } : {}) };
    yield { kind: "points", seq: ++seq, run: id, series: [{ ...series(0, "put", 2.2, [2000 + 90 * s, 2100 - 50 * s]), at: 2 * (s - 1) }], resources: [{ host: "h", role: "client", group: "cpu", name: "CPU", unit: "%", threshold: null, at: s - 1, t: [s], v: [99] }] };
    const { workloads, answered, findings, ...said } = s > 2 ? soFar(s % 3 === 0 ? "void" : "valid", s) : { workloads: [], answered: true, findings: [] };
    const summary = { ...run(id, workloads, { named: { tier: "first" } }).summary, answered, findings };
    yield { kind: "summary", seq: ++seq, run: id, set: { ...said, summary, stages: [stage(2.2, 2.2 + s, s > 2 ? 2 : null)], analysis: { ...run(id, []).analysis, holds: s > 2 ? [hold(0, 2.2, 2.2 + s, 2000, 300)] : [] } } };
  }
}
/** As a server first has it: nothing is measured. */
const begun = () => pageOf([run("20261128-032959-29d6", [], {
  live: true, now: now(0, { phase: "setting up", stage_number: 0, ops_per_s: null, bytes_per_s: null, in_flight: null, busy_fraction: null, p50_ns: null, p99_ns: null }), named: { tier: "first" },
  status: "NOT YET", verdict: "NOT YET. Nothing is measured yet.", glance: { title: "Run 20261128-032959-29d6", mark: "NOT YET", sentence: "Nothing is measured yet", facts: [], reservations: [], more_reservations: 0 },
})]);

describe("a run that goes on", () => {
  const shifts = () => {
    window.shifts = [];
    new PerformanceObserver((list) => { for (const e of list.getEntries()) window.shifts.push([Number(e.value.toFixed(4)), Math.round(e.startTime), ...e.sources.map((s) => (s.node?.nodeType === 1 ? s.node : s.node?.parentElement)).map((x) => `${x?.localName}.${x?.className}#${x?.id}`)]); }).observe({ type: "layout-shift", buffered: true });
  };
  /** Told step by step; what is looked at after each. */
  async function told(viewport, check, { colorScheme = "light", steps = 15 } = {}) {
    const file = join(place, "live.html");
    writeFileSync(file, html(begun()));
    const context = await browser.newContext({ viewport, colorScheme });
    const page = await context.newPage();
    const trouble = [];
    page.on("pageerror", (e) => trouble.push(String(e)));
    await page.addInitScript(shifts);
    await page.goto(pathToFileURL(file).href);
    await page.waitForSelector("#now");
    const tell = (m) => page.evaluate((m) => new Promise((done) => {
      document.addEventListener("plimsoll:shown", function shown(e) {
        if (e.detail.seq < m.seq) return;
        document.removeEventListener("plimsoll:shown", shown);
        requestAnimationFrame(() => requestAnimationFrame(done));
      });
      document.dispatchEvent(new CustomEvent("plimsoll:message", { detail: JSON.stringify(m) }));
    }), m);
    let last = 0;
    for (const m of going(steps)) {
      await tell(m);
      last = m.seq;
      if (m.kind === "summary") await check(page, m);
    }
    assert.deepEqual(trouble, []);
    return { page, tell, last, context };
  }
  for (const [name, viewport] of [["a desk", DESK], ["a phone", PHONE]]) {
    it(`does not jump on ${name}`, async () => {
      const { page, context } = await told(viewport, () => {});
      const all = await page.evaluate(() => window.shifts);
      const sum = all.reduce((a, [v]) => a + v, 0);
      assert.ok(sum < 0.1, `${sum}: ${JSON.stringify(all)}`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= viewport.width);
      await context.close();
    });
  }
  it("is neither good nor bad before its end, and says what cannot be used yet", async () => {
    const colours = new Set();
    const { page, tell, last, context } = await told(DESK, async (p, m) => {
      const badge = p.locator(".verdict .badge");
      assert.equal(await badge.textContent(), "● So far");
      colours.add(await badge.evaluate((e) => getComputedStyle(e).color + getComputedStyle(e).backgroundColor));
      const text = await p.locator(".verdict").innerText();
      assert.match(text, /The run goes on/);
      const { status, summary } = m.set;
      if (summary.workloads.length === 0) assert.match(text, /not usable yet\n/);
      else if (summary.answered) assert.match(text, /if it ended now: VALID \(2 notes\)[\s\S]*2,000 ± 500 op\/s of 64KiB PUT/);
      else {
        assert.match(text, /not usable yet: interval ±76 %/);
        assert.doesNotMatch(text, /Run longer/);
        assert.equal(status, "[INVALID V04]");
      }
      // Nothing in the colour of what is void.
      const bad = await p.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--bad").trim());
      assert.notEqual(await p.evaluate(() => getComputedStyle(document.querySelector("#results td.code") ?? document.querySelector(".verdict")).getPropertyValue("--bad").trim()), bad);
    });
    assert.equal(colours.size, 1);
    // What it does now stands above what is said of it, and its chart is on the first screen.
    const y = async (s) => { const b = await page.locator(s).first().boundingBox(); return [b.y, b.y + b.height]; };
    const [rate, verdict, chart] = [await y("#now .figure .value"), await y(".verdict"), await y("#picture .drawing svg")];
    assert.ok(rate[1] <= verdict[0] && verdict[1] <= chart[0] && chart[1] <= DESK.height, JSON.stringify([rate, verdict, chart]));
    // All of it is there for whoever opens it.
    await page.locator(".verdict summary").click();
    await page.waitForFunction(() => document.querySelector(".verdict details").textContent.includes("limited by"));
    await tell({ kind: "end", seq: last + 1, run: "20261128-032959-29d6", end: "done" });
    assert.equal(await page.locator("#now").count(), 0);
    assert.equal(await page.locator(".verdict .badge").textContent(), "✕ INVALID V04");
    assert.match(await page.locator(".verdict .lead").textContent(), /Run longer/);
    await context.close();
  });
  for (const colorScheme of ["light", "dark"]) {
    it(`has no violation of axe-core, ${colorScheme}`, async () => {
      for (const steps of [1, 6, 7]) {
        const { page, context } = await told(DESK, () => {}, { colorScheme, steps });
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run());
        assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes[0].html}`), []);
        await context.close();
      }
    });
  }
  it("ends as no error, and says how it is seen again", async () => {
    const { page, tell, last, context } = await told(DESK, () => {}, { steps: 4 });
    await tell({ kind: "end", seq: last + 1, run: "20261128-032959-29d6", end: "done" });
    await tell({ kind: "end", seq: last + 2, run: null, end: "the run has ended, and this is its result" });
    assert.equal(await page.locator("main [role=alert], main .warning").count(), 0);
    assert.equal(await page.locator("main .done[role=status]").innerText(), "Nothing more will come: the run has ended, and this is its result. To see it again: plimsoll serve for the history, plimsoll report 20261128-032959-29d6 -o 20261128-032959-29d6.html for a file.");
    await context.close();
  });
  it("whose server gives up is told as that", async () => {
    const { page, tell, last, context } = await told(DESK, () => {}, { steps: 4 });
    await tell({ kind: "end", seq: last + 1, run: null, end: "nobody has looked for a while: reload the page" });
    assert.match(await page.getByRole("alert").textContent(), /Nothing more will come: nobody has looked/);
    await context.close();
  });
});
