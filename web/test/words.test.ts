// What pictures and tables say, where no browser is needed to see it.
import { beforeAll, describe, expect, it, vi } from "vitest";

import type { Comparison, Page, Run, Saturation } from "../src/feed";
import { ofLimits, ofResources } from "../src/folds";
import { settle } from "../src/labels";
import { searchTable } from "../src/searches";
// @ts-expect-error made for the browser's tests, too, which know no types
import * as made from "./made.mjs";

// The charts watch their place as soon as they are loaded.
vi.stubGlobal("ResizeObserver", class { observe() {} unobserve() {} });
vi.stubGlobal("addEventListener", () => {});
let limits: typeof import("../src/limits");
let joint: typeof import("../src/joint");
let groups: typeof import("../src/groups");
let time: typeof import("../src/time");
let sections: typeof import("../src/sections");
beforeAll(async () => { [limits, joint, groups, time, sections] = await Promise.all([import("../src/limits"), import("../src/joint"), import("../src/groups"), import("../src/time"), import("../src/sections")]); });

const undetermined = made.UNDETERMINED as Comparison[];

describe("a comparison", () => {
  it("sets every difference that is not proved in brackets", () => {
    const cells = (outcome: string) => limits.comparisonTables(undetermined.map((c) => ({ ...c, outcome })))[0]!.rows[0]!.slice(2);
    expect(cells("undetermined")).toEqual(["(+43.5 %)", "(+30.3 %)", "(+12.4 %)"]);
    expect(cells("none seen")).toEqual(["(+43.5 %)", "(+30.3 %)", "(+12.4 %)"]);
    expect(cells("faster")).toEqual(["+43.5 %", "+30.3 %", "+12.4 %"]);
  });
  it("says what is open of its answer, which is the rates", () => {
    const first = undetermined[0]!;
    expect(limits.openAnswers(undetermined)).toBe("difference undetermined");
    expect(limits.openAnswers([{ ...first, outcome: "faster" }, ...undetermined.slice(1)])).toBe("");
    expect(limits.openAnswers([first, { ...first, outcome: "none seen" }])).toBe("1 of 2 differences undetermined");
    expect(limits.openAnswers(undetermined.slice(1))).toBe("difference undetermined");
  });
  it("has the verdict's signs beside how much better A is", () => {
    const rows = joint.differenceTable(undetermined).rows;
    expect(rows[0]!.slice(1, 5)).toEqual(["+43.5 %", "+43.5 %", "-64.9 %", "+487.3 %"]);
    expect(rows[1]!.slice(1, 5)).toEqual(["+30.3 %", "-30.3 %", "-83.1 %", "+187.0 %"]);
  });
});

describe("several runs", () => {
  const side = (runs: Run[], each: number[], keys = ["put", "a"]): Page => made.page(runs, { by: ["Operation", "cfg"], groups: [{ keys, lines: each.length, left_out: 1, ops_per_s: null, bytes_per_s: null, each_ops_per_s: each, p50_ns: null, p99_ns: null }] });
  it("call a dot what it is", () => {
    expect(groups.dotsAre(side([made.run("a", [made.workload("put", "put", 4096, 10)]), made.run("b", [made.workload("put", "put", 4096, 12)])], [10, 12]))).toBe("each run");
    const steps = made.run("a", [made.workload("put/c8", "put", 4096, 10), made.workload("put/c8 again", "put", 4096, 12)]);
    expect(groups.dotsAre(side([steps], [10, 12]))).toBe("each step of a run");
    const lines = made.run("a", [made.workload("put 4", "put", 4096, 10), made.workload("put 8", "put", 8192, 12)]);
    expect(groups.dotsAre(side([lines], [10, 12]))).toBe("each line of a run");
  });
  it("name the codes of what is left out", () => {
    const runs = [made.run("a", [made.workload("put", "put", 4096, 10, { valid: false }), made.workload("get", "get", 4096, 12)])];
    const of = (op: string) => { const p = side(runs, [], [op, "a"]); return groups.leftOut(p, p.groups[0]!); };
    expect(of("put")).toBe("V04");
    expect(of("get")).toBe("");
  });
});

describe("a fold of limits", () => {
  const of = (analysis: object, limits: object[] = []) => ofLimits({ ...made.run("a", [], { analysis }), summary: { ...made.run("a", []).summary, limits } } as Run);
  const model = { target: "t", op_class: "put", reading: "", ops_per_s: null, ops_at_least: 5, bytes_per_s: null, bytes_at_least: null, knee_bytes: null, cells: [] };
  it("names no model where none was found", () => {
    expect(of({ size_models: [model] })).toBe("undetermined");
    expect(of({ size_models: [{ ...model, ops_per_s: made.about(9) }] })).toBe("the model of sizes");
    expect(of({}, [{ op_class: "put", binding: "undetermined", ops_per_s: null, bytes_per_s: null }])).toBe("undetermined");
    expect(of({}, [{ op_class: "put", binding: "none", ops_per_s: null, bytes_per_s: null }])).toBe("none found");
  });
});

describe("a fold of the client", () => {
  const resource = (name: string, v: number, more = {}) => ({ host: "h", role: "client", group: "cpu", name, unit: "%", threshold: null, t: [1], v: [v], ...more });
  const shared = (verdict: string) => ({ candidate: "this machine's processor (client, storage and everything else that ran)", measured: "99.3 %", threshold: "85.0 %", time_fraction: 1, verdict, next: "" });
  const check = (result: string) => ({ code: "V07", name: "client", result, measured: "", threshold: "", remedy: "" });
  const of = (result: string, bottlenecks: object[], resources: object[] = [resource("CPU", 100), resource("Workers busy", 5.8)]) => ofResources(made.run("a", [], { resources, analysis: { checks: [check(result)], bottlenecks } }) as Run);
  it("says apart what the client's workers did and what its machine did", () => {
    expect(of("pass", [shared("consistent with")])).toBe("workers 5.8 % busy at most, not the limit; this machine's CPU 100 % at most, possibly the limit");
    expect(of("pass", [shared("clear")])).toBe("workers 5.8 % busy at most, not the limit; this machine's CPU 100 % at most");
    expect(of("pass", [{ ...shared("consistent with"), candidate: "client processor (worker threads)" }])).not.toMatch(/possibly/);
    expect(of("fail", [])).toBe("it was the limit (V07), workers 5.8 % busy at most; this machine's CPU 100 % at most");
    expect(of("not tested", [])).toMatch(/^workers 5.8 % busy at most, whether it was the limit was not tested; /);
  });
  it("suspects nothing where something is proved, or all that was offered came", () => {
    for (const verdict of ["proved", "likely", "the offered rate was met"]) expect(of("pass", [{ ...shared(verdict), candidate: "limiter (on ops)" }, shared("consistent with")])).not.toMatch(/possibly/);
  });
  it("names one machine of several as one of them, and those of the servers", () => {
    expect(of("pass", [], [resource("CPU", 40), resource("CPU", 60, { host: "i" }), resource("CPU", 70, { role: "server" })])).toBe("not the limit; busiest machine's CPU 60 % at most; servers' CPU 70 % at most");
  });
});

describe("a run that goes on", () => {
  const so = (kind: string, more = {}) => { const { workloads, answered, findings, ...said } = made.soFar(kind, 9); const r = made.run("a", workloads, { live: true, ...said }); return sections.soFar({ ...r, summary: { ...r.summary, answered, findings, ...more } } as Run); };
  it("says what it would be, and what cannot be used yet", () => {
    expect(so("valid")).toBe("The run goes on; if it ended now: VALID (2 notes)");
    expect(so("void")).toBe("The run goes on; not usable yet: interval ±76 %");
    expect(so("void", { findings: [] })).toBe("The run goes on; not usable yet: INVALID V04 if it ended now");
    expect(so("void", { workloads: [] })).toBe("The run goes on; not usable yet");
  });
});

describe("what a hold has seen", () => {
  const late = (levels: object[], stages: object[] = [made.stage(2.2, 24.2)]) => time.seenTo(made.run("a", [], { stages }) as Run, { ...made.hold(0, 2.2, 24.2, 9, 1), levels } as Run["analysis"]["holds"][0]);
  it("ends so long after the start of its stage", () => {
    expect(late([{ start_s: 2.2, end_s: 24.2, per_s: made.about(9) }])).toBeCloseTo(24.2);
    expect(late([{ start_s: 5, end_s: 24.2, per_s: made.about(9) }])).toBeCloseTo(24.2);
    expect(late([])).toBeCloseTo(24.2);
    expect(late([{ start_s: 40, end_s: 62, per_s: made.about(9) }], [made.stage(2.2, 40), made.stage(40, 62, 2, { index: 1 })])).toBeCloseTo(62);
    expect(late([], [made.stage(0, 10), made.stage(10, 32, 2, { index: 1 }), made.stage(32, 34, 2, { index: 2 })])).toBeCloseTo(32);
  });
});

describe("a table of searches", () => {
  const points = [{ concurrency: 4, ops_per_s: made.about(9), p50_ns: 1e6, p99_ns: null }];
  const put = { op_class: "put", size_bytes: 4096, verdict: "saturated", c95: made.about(4, 0), plateau_per_s: null, points } as Saturation;
  it("has one word for what is not known", () => {
    const t = searchTable([put, { ...put, op_class: "get", c95: null, verdict: "undetermined" }]);
    expect(t.rows.flat()).not.toContain("");
    expect(t.rows[0]![t.heads.findIndex((x) => x.text === "p50")]).toBe("1.00 ms");
  });
  it("have their part of what the cluster lets through, where that is known", () => {
    const known = { ...put, ceilings: [{ resource: "network in", per_s: 4 * put.points[0]!.ops_per_s.value * put.size_bytes }] };
    const heads = (t: ReturnType<typeof searchTable>) => t.heads.map((x) => x.text);
    expect(heads(searchTable([put, put]))).not.toContain("of network");
    const t = searchTable([known, { ...known, c95: null }]);
    expect(heads(t)).toContain("of network");
    expect(heads(t)).not.toContain("of drives");
    expect(limits.saturationTable(known).rows[0]![2]).toBe("25 %");
  });
});

describe("labels of points", () => {
  const room = { left: 0, right: 400, top: 0, bottom: 300 };
  const label = (x: number, y: number) => ({ x, y, w: 30, h: 13 });
  it("stand above, else where there is room", () => {
    expect(settle([label(100, 100)], [], room)).toEqual([{ x: 100, y: 84 }]);
    expect(settle([label(100, 100)], [{ x: 104, y: 82, w: 11, h: 11 }], room)).toEqual([{ x: 100, y: 117 }]);
    expect(settle([label(100, 4)], [], room)[0]!.y).toBeGreaterThan(4);
  });
  it("do not lie on each other, nor reach out", () => {
    const at = settle([label(100, 100), label(102, 101), label(398, 50)], [], room);
    expect(Math.abs(at[0]!.y - at[1]!.y)).toBeGreaterThanOrEqual(13);
    expect(at[2]!.x).toBe(385);
  });
});
