// The address of the history: what it says comes back, and what the server is asked has no more than the view needs.
import { describe, expect, it } from "vitest";

import type { Course } from "../src/history-data";
import { fromQuery, isFiltered, toggled, toQuery, toRequest } from "../src/history-state";
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
});
