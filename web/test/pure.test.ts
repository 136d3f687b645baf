// The pure parts: numbers as the Rust side writes them, tables as they are copied, what the feed refuses.
import { describe, expect, it } from "vitest";

import { FeedError, helloOf, parse } from "../src/feed";
import { bytes, clock, estimate, latency, latencyTick, logTicks, percent, plain, reach, seconds, significant, size, sizeEstimate, sizesLike, sumOutcomes, isFailure, isThrottled, tick } from "../src/format";
import { table, toCsv, toMarkdown } from "../src/table";

const e = (value: number, half: number) => ({ value, low: value - half, high: value + half, n_eff: 9 });

describe("numbers", () => {
  it("takes its digits from the interval, as the terminal does", () => {
    expect(estimate(e(1004.4, 6.2))).toBe("1,004 ± 7");
    expect(estimate(e(60_123, 1_040))).toBe("60,100 ± 1,100");
    expect(estimate(e(0.012345, 0.0004))).toBe("0.0123 ± 0.0004");
    expect(estimate(e(99.96, 0.14))).toBe("99.96 ± 0.14");
    expect(estimate({ value: 205, low: 190, high: 240, n_eff: 9 })).toBe("205 (190 to 240)");
    expect(estimate(e(-0.2, 3))).toBe("-0.20 ± 3");
    expect(estimate(e(35_793, 35_600))).toBe("36,000 ± 40,000");
    expect(estimate({ value: 90.2e6, low: 90.2e6, high: Number.MAX_VALUE, n_eff: 1 }, 1e-6)).toBe("at least 90.2");
    expect(estimate(null)).toBe("n/a");
    expect(estimate({ value: 5, low: NaN, high: 1, n_eff: null })).toBe("5.00 (interval unknown)");
    expect(estimate({ value: 8, low: 1e-117, high: 1e118, n_eff: 2 })).toBe("8.00 (interval unknown)");
  });

  it("writes sizes as their neighbours are written", () => {
    expect(size(4096)).toBe("4 KiB");
    expect(size(4000)).toBe("4 KB");
    expect(sizesLike([4000, 512_000])(512_000)).toBe("512 KB");
    expect(sizesLike([4096, 512_000])(512_000)).toBe("512 KB");
    expect(sizeEstimate({ value: 209_900, low: 194_600, high: 240_000, n_eff: 8 })).toBe("210 KB (195 to 240)");
    expect(bytes(1.5 * 2 ** 30)).toBe("1.50 GiB");
  });

  it("keeps units and never shows more than is known", () => {
    expect(latency(1_234_567)).toBe("1.23 ms");
    expect(latency(null)).toBe("n/a");
    expect(latencyTick(1e7)).toBe("10 ms");
    expect(reach({ value: 1000, low: 988, high: 1015, n_eff: 90 })).toBe("-1.2/+1.5 %");
    expect(reach({ value: 1000, low: 600, high: null, n_eff: 9 })).toBe("-40/+? %");
    expect(reach(null)).toBe("");
    expect(seconds(1200)).toBe("20.0 min");
    expect(percent(0.00001)).toBe("<0.01 %");
    expect(significant(1234567, 4)).toBe("1,234,567");
    expect(plain(3600)).toBe("3,600");
    expect(plain(0.97)).toBe("0.97");
    expect(tick(2500)).toBe("2.5k");
    expect(clock([0, 600], 900).tick(75)).toBe("1:15");
    expect(clock([0, 30_000], 900).tick(3_900)).toBe("1:05");
    expect(clock([0, 600], 400).ticks).toEqual([0, 120, 240, 360, 480, 600]);
    expect(clock([3, 9], 900).ticks).toEqual([3, 4, 5, 6, 7, 8, 9]);
  });

  it("chooses ticks that a person would", () => {
    expect(logTicks([90, 2900])).toEqual([100, 200, 500, 1000, 2000]);
    expect(logTicks([1, 1e6])).toEqual([1, 10, 100, 1000, 1e4, 1e5, 1e6]);
    expect(logTicks([])).toEqual([1, 10]);
  });

  it("tells throttled from failed", () => {
    const o = { ok: 5, http_429: 2, http_503: 1, http_5xx: 4, cancelled: 9 };
    expect(sumOutcomes(o, isThrottled)).toBe(3);
    expect(sumOutcomes(o, isFailure)).toBe(4);
  });
});

describe("tables", () => {
  const t = table("T", 1, ["name", ">rate", ">empty"], [["a|b", "1,004 ± 6", ""], ["c\"d", "9", ""]]);
  it("drops columns that say nothing", () => expect(t.heads.map((x) => x.text)).toEqual(["name", "rate"]));
  it("escapes for Markdown and CSV", () => {
    expect(toMarkdown(t)).toBe("| name | rate |\n|---|---:|\n| a\\|b | 1,004 ± 6 |\n| c\"d | 9 |\n");
    expect(toCsv(t)).toBe('name,rate\r\na|b,"1,004 ± 6"\r\n"c""d",9\r\n');
  });
});

describe("feed", () => {
  it("refuses what it does not know, with a remedy", () => {
    for (const read of [helloOf, parse]) expect(() => read("{")).toThrow(FeedError);
    expect(() => helloOf('{"schema":"plimsoll.page/9","runs":[]}')).toThrow(/Make the report again/);
    expect(helloOf('{"schema":"plimsoll.page/1","runs":[]}').page.runs).toEqual([]);
    for (const odd of ["null", "[]", '{"kind":"end"}', '{"kind":7,"seq":1}', '{"kind":"end","seq":-1}', '{"kind":"end","seq":1.5}']) expect(() => parse(odd)).toThrow(/without kind or number/);
  });
});
