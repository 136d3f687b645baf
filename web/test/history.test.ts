// The address of the history: what it says comes back, and what the server is asked has no more than the view needs.
import { describe, expect, it } from "vitest";

import type { Course } from "../src/history-data";
import { allTo, fromQuery, isFiltered, MOST_OF_A_SIDE, sideText, toggled, toQuery, toRequest } from "../src/history-state";
import { trendAxis, trendEnds } from "../src/history-trend";
import { courseText, coursePoints } from "../src/sparkline";

describe("how a rate went", () => {
  const course = (ops_per_s: number[], of: string | null = null): Course => ({ of, seconds: 30, ops_per_s });

  it("is told in words", () => {
    expect(courseText(course([410, 120, 1395]))).toBe("Rate over 30.0 s: from 410 to 1,395 op/s, lowest 120 op/s, highest 1,395 op/s");
    expect(courseText(course([0.5, 0, 2], "get 4 KiB, 16 in flight"))).toBe("Rate over 30.0 s of get 4 KiB, 16 in flight: from 0.500 to 2.00 op/s, lowest 0 op/s, highest 2.00 op/s");
  });

  it("is drawn from zero up, inside its place", () => {
    expect(coursePoints([100, 50, 0])).toEqual([[3, 3], [55, 12], [107, 21]]);
    expect(coursePoints([0, 0])).toEqual([[3, 21], [107, 21]]);
  });
});

describe("the address of the history", () => {
  it("comes back as it was written, whatever labels are called", () => {
    const s = { ...fromQuery(""), view: "pivot" as const, labels: ["tier=a&b=c", "x=ä +%"], op: "get", since: "2026-11-01", figure: "p99_ns" as const, rows: "label:tier", a: ["r1", "r2"], b: ["r3"] };
    expect(fromQuery(toQuery(s))).toEqual(s);
    expect(toQuery(fromQuery(""))).toBe("");
    expect(toQuery(fromQuery("?view=nonsense&figure=x&skip=-4"))).toBe("");
  });

  it("asks for what the view needs", () => {
    const s = fromQuery("?label=tier%3Dgold&skip=100&a=r1&b=r2&figure=p50_ns&rows=op");
    expect(toRequest(s)).toBe("/api/runs?label=tier%3Dgold&skip=100");
    expect(toRequest({ ...s, view: "compare" })).toBe("/api/compare?a=r1&b=r2");
    expect(toRequest({ ...s, view: "pivot" })).toBe("/api/pivot?label=tier%3Dgold&figure=p50_ns&rows=op&columns=op");
    expect(toRequest({ ...s, view: "trend" })).toBe("/api/trend?label=tier%3Dgold&figure=p50_ns");
    expect([isFiltered(s), isFiltered(fromQuery("?skip=100"))]).toEqual([true, false]);
  });

  it("has a run on one side at most", () => {
    let s = fromQuery("");
    for (const [side, id] of [["a", "r1"], ["a", "r2"], ["b", "r1"], ["b", "r3"], ["b", "r3"]] as const) s = { ...s, ...toggled(s, side, id) };
    expect([s.a, s.b]).toEqual([["r2"], ["r1"]]);
  });

  it("takes all that is shown to a side, no more than the server takes, and loses none of the other side's for nothing", () => {
    const s = { ...fromQuery(""), a: ["r1", "r2"], b: ["r3", "r4"] };
    expect(allTo(s, "a", ["r2", "r3", "r5"])).toEqual({ a: ["r1", "r2", "r3", "r5"], b: ["r4"] });
    const many = Array.from({ length: 60 }, (_, i) => `m${i}`);
    const full = allTo({ ...s, b: ["r3", "m38", "m39"] }, "a", many);
    expect(full.a).toHaveLength(MOST_OF_A_SIDE);
    expect([full.a[0], full.a.at(-1), full.b]).toEqual(["r1", "m37", ["r3", "m38", "m39"]]);
  });

  it("tells runs that are void apart from those that are compared", () => {
    const s = { ...fromQuery(""), a: ["r1", "r2", "r3", "r4"], b: ["r5"] };
    expect([sideText(s, "a", new Set(["r2", "r9"])), sideText(s, "b", new Set(["r2"]))]).toEqual(["4 in A (1 void)", "1 in B"]);
  });
});

describe("the axis of a trend", () => {
  const of = (figure: Parameters<typeof trendAxis>[0], ...ends: number[]) => { const a = trendAxis(figure, ends); return [a.unit, ...a.ticks.map((t) => t.text)]; };
  it("has round numbers, and their unit", () => {
    expect(of("ops_per_s", 500, 968)).toEqual(["op/s", "0", "250", "500", "750", "1,000"]);
    expect(of("ops_per_s", -2000, 6100)).toEqual(["op/s", "0", "2,000", "4,000", "6,000", "8,000"]);
    expect(of("ops_per_s", 1001, 1002.2)).toEqual(["op/s", "1,000.5", "1,001.0", "1,001.5", "1,002.0", "1,002.5"]);
    expect(of("p99_ns", 3e6, 31e6)).toEqual(["ms", "0", "10", "20", "30", "40"]);
    expect(of("p99_ns", 200e3, 700e3)).toEqual(["µs", "0", "200", "400", "600", "800"]);
    expect(of("bytes_per_s", 0.1 * 1048576, 0.4 * 1048576)).toEqual(["MiB/s", "0.0", "0.1", "0.2", "0.3", "0.4"]);
    expect(of("ops_per_s", 0, 0)).toEqual(["op/s", "0.00", "0.25", "0.50", "0.75", "1.00"]);
    for (const [figure, ends] of [["ops_per_s", [798, 806]], ["p50_ns", [1e9, 4e9]], ["ops_per_s", [0.0003, 0.0009]]] as const) {
      const a = trendAxis(figure, [...ends]);
      expect(a.from).toBeLessThanOrEqual(ends[0]);
      expect(a.to).toBeGreaterThanOrEqual(ends[1]);
      expect(a.ticks.length).toBeGreaterThan(2);
    }
  });
  it("has days at its ends, or times where all are of one day", () => {
    expect(trendEnds("2026-11-01T08:00:00Z", "2026-11-24T08:00:00Z")).toEqual(["2026-11-01", "2026-11-24"]);
    expect(trendEnds("2026-11-28T03:34:01Z", "2026-11-28T07:05:03Z")).toEqual(["2026-11-28, 03:34", "07:05"]);
    expect(trendEnds("2026-11-28T03:34:01Z", "2026-11-28T03:34:54Z")).toEqual(["2026-11-28, 03:34:01", "03:34:54"]);
  });
});
