// The pure parts: numbers as the Rust side writes them, tables as they are copied, what the feed refuses.
import { describe, expect, it } from "vitest";

import { agentTable, ofAgents } from "../src/agents";
import { FeedError, helloOf, parse, type Run } from "../src/feed";
import { bytes, clock, counted, estimate, latency, latencyTick, logTicks, percent, plain, reach, seconds, significant, size, sizeEstimate, sizesLike, sumOutcomes, isFailure, isThrottled, tick } from "../src/format";
import { searchTable } from "../src/searches";
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

  it("counts one of a thing as one", () => {
    expect([counted(1, "run"), counted(0, "run"), counted(1234, "run")]).toEqual(["1 run", "0 runs", "1,234 runs"]);
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
    expect([percent(0.994), percent(0.9985), percent(0.99999), percent(1)]).toEqual(["99 %", "99.85 %", ">99.99 %", "100 %"]);
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

describe("agents", () => {
  const agent = { agent: "lg-1", host: "node1", ops_per_s: 1000, bytes_per_s: 1000 * 2 ** 20, share: 0.4, busy_fraction: 0.11, p50_ns: 5.5e6, p99_ns: 14e6 };
  const near = { ...agent, agent: "lg-2", host: "node2", p99_ns: null, clock_offset_ns: -1_234_567, clock_bound_ns: 310_000 };
  const far = { ...agent, agent: "lg-3", host: "node3", ops_per_s: 500, share: 0.2, clock_offset_ns: 90_061_250_000_000, clock_bound_ns: 960_000 };
  const straggler = { code: "Q14", name: "straggler", level: "qualified", text: "agent lg-3: It did less.", agent: "lg-3" };
  const run = (agents?: unknown[], answered = true) => ({ block: false, summary: { agents, answered, findings: agents ? [straggler] : [] } }) as unknown as Run;
  it("has a row for each, with its clock", () => {
    const t = agentTable(run([agent, near, far]))!;
    expect(t.heads.map((x) => x.text)).toEqual(["agent", "host", "op/s", "share", "MiB/s", "busy", "p50", "p99", "clock"]);
    expect(t.rows[0]).toEqual(["lg-1", "node1", "1,000", "40 %", "1,000", "11 %", "5.50 ms", "14.0 ms", ""]);
    expect(t.rows[1]!.slice(-2)).toEqual(["n/a", "-1.23 ms ± 310 µs"]);
    expect(t.rows[2]!.at(-1)).toBe("+90,061.3 s ± 960 µs");
  });
  it("has its machine, and when it began and ended", () => {
    const t = agentTable(run([{ ...agent, cpu_fraction: 0.05, nic_fraction: 0.97, start_skew_ns: -120_000, first_op_s: 0.1, last_op_s: 3600.04 }]))!;
    expect(t.heads.map((x) => x.text)).toEqual(["agent", "host", "op/s", "share", "MiB/s", "busy", "CPU", "NIC", "p50", "p99", "start", "first op", "last op"]);
    expect(t.rows[0]!.slice(6)).toEqual(["5.0 %", "97 %", "5.50 ms", "14.0 ms", "-120 µs", "0.1 s", "3,600.0 s"]);
  });
  it("leaves out what nobody knows", () => {
    const { bytes_per_s: _, ...bare } = agent;
    expect(agentTable(run([bare]))!.heads.map((x) => x.text)).toEqual(["agent", "host", "op/s", "share", "busy", "p50", "p99"]);
  });
  it("names stragglers in its title, and no share of what is void", () => {
    expect(ofAgents(run([agent, near, far]))).toBe("3 agents, 20 % to 40 % each, lg-3 did less than the others, clocks within 960 µs");
    expect(ofAgents(run([agent, near, far], false))).toBe("3 agents, lg-3 did less than the others, clocks within 960 µs");
  });
  it("names who was lost in its title", () => {
    const s = run([agent, near, far]);
    s.summary.findings.push({ ...straggler, code: "V24", name: "agent_lost", agent: "lg-2" } as Run["summary"]["findings"][number]);
    expect(ofAgents(s)).toBe("3 agents, 20 % to 40 % each, lg-2 lost, lg-3 did less than the others, clocks within 960 µs");
  });
  it("is not there where a run has one", () => expect([agentTable(run()), ofAgents(run())]).toEqual([null, null]));
});

describe("searches", () => {
  const at = (value: number) => ({ value, low: value, high: value, n_eff: 3 });
  const points = [4, 32].map((concurrency) => ({ concurrency, ops_per_s: at(1200), p50_ns: 8e6, p99_ns: null }));
  const put = { op_class: "put", size_bytes: 1048576, verdict: "saturated", c95: at(32), plateau_per_s: at(1200), points };
  it("has a line for each of several ops", () => {
    const t = searchTable([put, { ...put, op_class: "get", c95: null, verdict: "the budget ended before the rate did", budget_needed_s: 180 }]);
    expect(t.rows.map((r) => r[0])).toEqual(["PUT", "GET"]);
    expect(t.rows[0]).toContain("32");
    expect(t.rows[1]!.at(-1)).toBe("undetermined: the budget ended before the rate did");
    expect(t.rows[1]).not.toContain("32");
  });
  it("shows no figure of one that is void, and no table of one alone", () => {
    const t = searchTable([put, { ...put, op_class: "get", invalid: ["V19"] }]);
    expect(t.rows[1]!.at(-1)).toBe("[INVALID V19]");
    expect(t.rows[1]).not.toContain("32");
    expect(searchTable([put]).rows).toEqual([]);
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
