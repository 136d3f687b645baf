// Charts over the cells of a campaign: bars with intervals, rate over size with caps and knee, latency against rate, rates that fell,
// cost against rate.
import * as Plot from "@observablehq/plot";

import { aside, base, chart, line, logAxis, mark, sizeAxis, type ChartElement, type Key } from "./chart";
import type { Estimate } from "./feed";
import { clock, estimate, high, latency, latencyTick, logTicks, low, seconds, significant, sizesLike, tick } from "./format";
import type { BarChart, ChartData, CliffChart, CurveChart, LoadChart } from "./published-data";
import { table } from "./table";

/** One of several by its name; of one there is nothing to choose. */
const views = (label: string, names: string[]): { views?: { label: string; names: string[] } } => (names.length > 1 ? { views: { label, names } } : {});
const byName = <T extends { name: string }>(all: T[]) => (name: string): T => all.find((c) => c.name === name) ?? all[0]!;
const short = (text: string, room: number): string => (text.length <= room ? text : `${text.slice(0, Math.max(1, room - 1))}…`);

export function barCharts(data: ChartData): ChartElement | null {
  if (data.bars.length === 0) return null;
  const pick = byName(data.bars);
  const groups = (c: BarChart) => [...new Set(c.bars.map((b) => b.group))];
  return chart({
    title: "Rates, and what is promised",
    note: "Bars with 95 % intervals; an upright tick is what is promised. Dashed and named: no valid figure.",
    ...views("Workload", data.bars.map((c) => c.name)),
    text: (name) => pick(name).bars.map((b) => `${b.subject}: ${b.rate ? `${estimate(b.rate)} ${pick(name).unit}` : (b.void ?? "no figure")}${b.promised ? `, promised ${significant(b.promised)}` : ""}`).join("; "),
    keys: (name): Key[] => (pick(name).by ? groups(pick(name)).map((g, i) => ({ label: `${pick(name).by} ${g}`, mark: mark(i), symbol: true, line: false })) : []),
    data: (name) => table(`${pick(name).name}, ${pick(name).unit}`, 1, ["subject", pick(name).by, ">rate", ">promised"], pick(name).bars.map((b) => [b.subject, b.group, b.rate ? estimate(b.rate) : (b.void ?? ""), b.promised ? significant(b.promised) : ""])),
    draw: (width, name) => {
      const c = pick(name);
      const rows = c.bars.map((b, i) => ({ ...b, i, y: String(i), colour: mark(groups(c).indexOf(b.group)).colour }));
      const most = Math.max(1e-9, ...rows.flatMap((b) => [b.rate ? high(b.rate) : 0, b.promised ?? 0]));
      const room = Math.min(170, width * 0.34);
      const known = rows.filter((b) => b.rate);
      const rate = (b: { rate: Estimate | null }) => b.rate?.value ?? 0;
      return Plot.plot({
        ...base(width, 58 + rows.length * 34), marginLeft: room, marginRight: width < 520 ? 16 : 120,
        x: { domain: [0, most * 1.04], label: `${c.unit} →`, ticks: width < 520 ? 3 : 6, tickFormat: tick, grid: true },
        y: { domain: rows.map((b) => b.y), label: null, tickFormat: (y: string) => short(rows[Number(y)]!.subject, Math.floor(room / 7)), tickSize: 0, padding: 0.35 },
        marks: [
          Plot.barX(known, { x: rate, y: "y", fill: "colour", fillOpacity: 0.75 }),
          Plot.ruleY(known, { y: "y", x1: (b) => low(b.rate!), x2: (b) => high(b.rate!), stroke: "var(--ink)", strokeWidth: 1.6 }),
          Plot.tickX(rows.filter((b) => b.promised), { x: "promised", y: "y", stroke: "var(--ink)", strokeWidth: 2.6 }),
          Plot.barX(rows.filter((b) => !b.rate), { x: () => most * 0.25, y: "y", fill: "none", stroke: "var(--muted)", strokeDasharray: "4 3" }),
          Plot.text(rows.filter((b) => !b.rate), { x: 0, y: "y", dx: 6, textAnchor: "start", text: (b) => b.void ?? "no figure", fill: "var(--muted)", fontStyle: "italic" }),
          ...(width < 520 ? [] : [Plot.text(known, { x: (b) => Math.max(high(b.rate!), b.promised ?? 0), y: "y", dx: 8, textAnchor: "start", text: (b) => estimate(b.rate), fill: "var(--ink)" })]),
          Plot.ruleX([0], { stroke: "var(--line)" }),
        ],
      });
    },
  });
}

export function curveCharts(data: ChartData): ChartElement | null {
  if (data.curves.length === 0) return null;
  const pick = byName(data.curves);
  const sizes = (c: CurveChart) => [...new Set(c.lines.flatMap((l) => [...l.points.map((p) => p[0]), ...l.void.map((p) => p[0])]))].sort((a, b) => a - b);
  const isProved = data.curves.some((c) => c.lines.some((l) => l.ops_cap !== null || l.bytes_cap !== null));
  const cap = (l: CurveChart["lines"][number], size: number) => Math.min(l.ops_cap ?? Infinity, (l.bytes_cap ?? Infinity) / size);
  return chart({
    title: "Rate over size",
    note: isProved ? "Dashed: the limits that runs proved, ops a second (level) and throughput (falling); where both are proved, they meet at the knee." : "No run proved a limit: none is drawn.",
    ...views("Op", data.curves.map((c) => c.name)),
    text: (name) => pick(name).lines.map((l) => `${l.subject}: ${l.points.map(([n, e]) => `${sizesLike(sizes(pick(name)))(n)} ${estimate(e)} op/s`).join(", ")}${l.knee_bytes ? `, knee at ${significant(l.knee_bytes)} bytes` : ""}`).join("; "),
    keys: (name): Key[] => pick(name).lines.map((l, i) => ({ label: l.subject, mark: mark(i), symbol: true })),
    data: (name) => table(`Rate over size, ${pick(name).name}`, 2, ["subject", "size", ">op/s", ">limit of op/s", ">limit of MiB/s"], pick(name).lines.flatMap((l) => l.points.map(([n, e]) => [l.subject, sizesLike(sizes(pick(name)))(n), estimate(e), l.ops_cap ? significant(l.ops_cap, 4) : "", l.bytes_cap ? significant(l.bytes_cap / 1_048_576, 4) : ""]))),
    draw: (width, name) => {
      const c = pick(name);
      const all = sizes(c);
      const axis = sizeAxis(all, width - 80, "size →", sizesLike(all));
      const n = c.lines.length;
      const values = c.lines.flatMap((l) => l.points.flatMap(([, e]) => [e.value, Math.max(low(e), e.value * 0.01)]));
      const [first, last] = [all[0] ?? 1, all[all.length - 1] ?? 1];
      const along = Array.from({ length: 60 }, (_, i) => first * (last / first) ** (i / 59));
      const knees = c.lines.flatMap((l, i) => (l.knee_bytes && l.ops_cap && l.knee_bytes >= first && l.knee_bytes <= last ? [{ x: l.knee_bytes, y: l.ops_cap, i }] : []));
      return Plot.plot({
        ...base(width, (width < 520 ? 280 : 340) + (axis.rows - 1) * 14), marginBottom: 36 + (axis.rows - 1) * 14,
        x: { type: "log", domain: [first, last * (first === last ? 2 : 1)] }, y: { type: "log" },
        marks: [
          ...axis.marks, ...logAxis("y", logTicks(values), "↑ op/s", tick),
          ...c.lines.flatMap((l, i) => (cap(l, first) < Infinity ? [Plot.line(along.map((x) => ({ x, y: cap(l, x) })).filter((p) => p.y < Infinity), { x: "x", y: "y", stroke: mark(i).colour, strokeDasharray: "5 4", strokeOpacity: 0.8 })] : [])),
          Plot.dot(knees, { x: "x", y: "y", symbol: "diamond", r: 6, fill: "none", stroke: (k: { i: number }) => mark(k.i).colour, strokeWidth: 2 }),
          Plot.text(knees, { x: "x", y: "y", dy: -12, text: () => "knee", fill: "var(--ink)" }),
          ...c.lines.flatMap((l, i) => [
            ...line(l.points, mark(i), (p) => p[0], (p) => p[1].value, { symbols: true, dx: aside(i, n) }),
            Plot.ruleX(l.points, { x: (p) => p[0], y1: (p) => Math.max(low(p[1]), p[1].value * 0.01), y2: (p) => high(p[1]), stroke: mark(i).colour, dx: aside(i, n) }),
          ]),
        ],
      });
    },
  });
}

export function loadCharts(data: ChartData): ChartElement | null {
  if (data.knees.length === 0) return null;
  const pick = byName(data.knees);
  const subjects = (c: LoadChart) => [...new Set(c.points.map((p) => p.subject))];
  return chart({
    title: "Latency against rate",
    note: "99th percentile of the response time (where there is none, the median), by rate: where it rises steeply, more load gives no more.",
    ...views("Op and size", data.knees.map((c) => c.name)),
    text: (name) => pick(name).points.map((p) => `${p.subject}, ${p.workload}: ${estimate(p.rate)} op/s at ${latency(p.p99_ns ?? p.p50_ns)}`).join("; "),
    keys: (name): Key[] => subjects(pick(name)).map((s, i) => ({ label: s, mark: mark(i), symbol: true })),
    data: (name) => table(`Latency against rate, ${pick(name).name}`, 2, ["subject", "workload", ">op/s", ">p50", ">p99"], pick(name).points.map((p) => [p.subject, p.workload, estimate(p.rate), latency(p.p50_ns), latency(p.p99_ns)])),
    draw: (width, name) => {
      const c = pick(name);
      const y = (p: LoadChart["points"][number]) => p.p99_ns ?? p.p50_ns ?? 0;
      return Plot.plot({
        ...base(width, width < 520 ? 280 : 340), marginLeft: 66,
        x: { domain: [0, Math.max(...c.points.map((p) => high(p.rate))) * 1.04], label: "op/s →", tickFormat: tick, grid: true }, y: { type: "log" },
        marks: [
          ...logAxis("y", logTicks(c.points.map(y)), "↑ response", latencyTick),
          ...subjects(c).flatMap((s, i) => line(c.points.filter((p) => p.subject === s).sort((a, b) => a.rate.value - b.rate.value), mark(i), (p) => p.rate.value, y, { symbols: true })),
        ],
      });
    },
  });
}

export function cliffCharts(data: ChartData): ChartElement | null {
  if (data.cliffs.length === 0) return null;
  const pick = byName(data.cliffs);
  const known = (c: CliffChart) => c.ops_per_s.flatMap((v, i) => (v === null ? [] : [{ t: c.start_s + (i + 0.5) * c.step_s, y: v }]));
  return chart({
    title: "Where a rate fell",
    note: "Runs in which a burst ended, or the rate was not one rate.",
    ...views("Run", data.cliffs.map((c) => c.name)),
    text: (name) => {
      const [all, c] = [known(pick(name)), pick(name)];
      const values = all.map((p) => p.y);
      return `${c.name}: from ${significant(Math.max(...values))} to ${significant(Math.min(...values))} op/s over ${seconds(c.step_s * c.ops_per_s.length)}`;
    },
    data: (name) => table(`${pick(name).name}, over time`, 1, [">after, s", ">op/s"], known(pick(name)).filter((_, i, all) => i % Math.max(1, Math.ceil(all.length / 60)) === 0).map((p) => [p.t.toFixed(1), significant(p.y, 4)])),
    draw: (width, name) => {
      const points = known(pick(name));
      const domain: [number, number] = [points[0]?.t ?? 0, points[points.length - 1]?.t ?? 1];
      const time = clock(domain, width);
      return Plot.plot({
        ...base(width, width < 520 ? 240 : 300),
        x: { domain, label: time.label, ticks: time.ticks, tickFormat: time.tick },
        y: { domain: [0, Math.max(1, ...points.map((p) => p.y)) * 1.05], label: "↑ op/s", tickFormat: tick, grid: true },
        marks: [Plot.ruleY([0], { stroke: "var(--line)" }), Plot.line(points, { x: "t", y: "y", stroke: mark(0).colour, strokeWidth: 1.5 })],
      });
    },
  });
}

export function costChart(data: ChartData): ChartElement | null {
  const all = data.costs;
  if (all.length === 0) return null;
  const subjects = [...new Set(all.map((p) => p.subject))];
  return chart({
    title: "Cost against rate",
    note: `By the price file that the runs were given. Further right and lower is more for less.`,
    text: all.map((p) => `${p.subject}, ${p.workload}: ${estimate(p.rate)} op/s for ${significant(p.cost)} ${data.cost_unit}`).join("; "),
    keys: subjects.map((s, i) => ({ label: s, mark: mark(i), symbol: true, line: false })),
    data: () => table("Cost against rate", 2, ["subject", "workload", ">op/s", `>${data.cost_unit}`], all.map((p) => [p.subject, p.workload, estimate(p.rate), significant(p.cost, 4)])),
    draw: (width) => Plot.plot({
      ...base(width, width < 520 ? 260 : 320), marginLeft: 66,
      x: { domain: [0, Math.max(...all.map((p) => high(p.rate))) * 1.05], label: "op/s →", tickFormat: tick, grid: true },
      y: { domain: [0, Math.max(1e-9, ...all.map((p) => p.cost)) * 1.1], label: `↑ ${data.cost_unit}`, grid: true },
      marks: subjects.flatMap((s, i) => [
        Plot.dot(all.filter((p) => p.subject === s), { x: (p) => p.rate.value, y: "cost", symbol: mark(i).symbol, fill: mark(i).colour, r: 5 }),
        Plot.ruleY(all.filter((p) => p.subject === s), { y: "cost", x1: (p) => low(p.rate), x2: (p) => high(p.rate), stroke: mark(i).colour }),
      ]),
    }),
  });
}
