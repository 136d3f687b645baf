// Charts of the limit methods: cumulative work, recovery, concurrency, scaling, comparison.
import * as Plot from "@observablehq/plot";

import { base, chart, line, logAxis, mark, spaced, type ChartElement } from "./chart";
import type { BucketFit, Comparison, Estimate, Saturation, Scaling } from "./feed";
import { counted, high, low, estimate, latency, latencyTick, logTicks, MIB, MISSING, percent, plain, seconds, significant, size, sizesLike, tick } from "./format";
import { settled } from "./labels";
import { partOf, searchResult } from "./searches";
import { table, type Table } from "./table";

const label = { fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 4, fontWeight: 600 } as const;
const tip = { fill: "var(--panel)", stroke: "var(--line)" };

const tokens = (f: BucketFit): { unit: string; factor: number } => (f.unit === "bytes" ? { unit: "MB", factor: 1e-6 } : { unit: f.unit === "ops" ? "ops" : "tokens", factor: 1 });

/** A(t) of each drain against B + r t: where the curve meets the line, the bucket is empty. */
function cumulative(f: BucketFit): ChartElement[] {
  if (f.drains.length === 0) return [];
  const { unit, factor } = tokens(f);
  const r = f.sustained_per_s?.value;
  const B = f.capacity?.value;
  // What comes long after the bucket is empty is one straight line: the chart ends where the bend can still be seen.
  const emptied = (d: BucketFit["drains"][0]): number => {
    const above = d.work.map(([t, a]) => a - (r ?? 0) * t);
    const most = Math.max(...above);
    return d.work[above.findIndex((x) => x >= 0.95 * most)]?.[0] ?? 0;
  };
  // Of who lets nothing through there is no curve.
  const all = f.drains.slice(0, 7).filter((d) => d.work.some(([, a]) => a > 0));
  if (all.length === 0) return [];
  const last = Math.max(...all.flatMap((d) => d.work.map(([t]) => t)));
  const end = r ? Math.min(last, Math.max(10, 4 * Math.max(...all.map(emptied)))) : last;
  const drains = all.map((d) => ({ ...d, work: d.work.filter(([t]) => t <= end) }));
  const text = `Cumulative work of ${drains.length} drains.${B && r ? ` After the bucket of ${estimate(f.capacity, factor)} ${unit} is empty, work follows ${significant(r * factor)} ${unit} per second.` : ""}`;
  return [chart({
    title: `How big is the bucket: ${named(f)}`,
    note: B && r
      ? `Read it so: a line is one load that goes on. It is steep while there is a burst to spend, ${estimate(f.capacity, factor)} ${unit}; where it bends (red), the burst is spent, and from there on ${significant(r * factor)} ${unit} pass per second (dashed: the most that this allows).`
      : "Each line is one load that goes on: work done since it began. Steep is the burst; where a line bends the burst is spent.",
    text,
    keys: drains.map((d, i) => ({ label: `load from ${seconds(d.start_s)} on`, mark: mark(i) })),
    data: () => table("Cumulative work", 2, ["drain at", ">after, s", `>${unit}`], drains.flatMap((d) => d.work.filter((_, i) => i % Math.ceil(d.work.length / 40) === 0).map(([t, a]) => [seconds(d.start_s), t.toFixed(1), significant(a * factor, 4)]))),
    draw: (width) => Plot.plot({
      ...base(width, width < 520 ? 240 : 300),
      x: { label: "time since the load began, s →", domain: [0, end] },
      y: { label: `↑ ${unit} done`, grid: true, tickFormat: tick, zero: true },
      marks: [
        Plot.ruleY([0], { stroke: "var(--line)" }),
        ...(B && r ? [
          Plot.link([0], { x1: 0, x2: end, y1: B * factor, y2: (B + r * end) * factor, stroke: "var(--ink)", strokeDasharray: "7 4", strokeWidth: 1.4 }),
          Plot.dot([0], { x: 0, y: B * factor, r: 4, fill: "var(--ink)" }),
          Plot.text([0], { frameAnchor: "top-left", text: [`full bucket: ${estimate(f.capacity, factor)} ${unit}`], dx: 8, dy: 6, ...label }),
        ] : []),
        ...drains.flatMap((d, i) => line(d.work, mark(i), ([t]) => t, ([, a]) => a * factor, { width: 2 })),
        ...drains.flatMap((d) => (d.cliff_s === null ? [] : [Plot.ruleX([d.cliff_s], { stroke: "var(--bad)", strokeDasharray: "5 3" })])),
        Plot.tip(drains.flatMap((d) => d.work), Plot.pointer({ x: "0", y: (d: [number, number]) => d[1] * factor, title: (d: [number, number]) => `${seconds(d[0])}: ${significant(d[1] * factor, 4)} ${unit}`, ...tip } as Plot.TipOptions)),
      ],
    }),
  })];
}

/** An op and what is limited of it, where that is known. */
const named = (f: BucketFit): string => (f.unit === "undetermined" ? f.op_class : `${f.op_class} ${f.unit}`);

/** Tokens that came back over idle time, with min(B, refill x idle). */
function recovery(f: BucketFit): ChartElement[] {
  if (f.recoveries.length === 0) return [];
  const { unit, factor } = tokens(f);
  const B = f.capacity?.value;
  const refill = f.refill_per_s?.value ?? f.sustained_per_s?.value;
  const end = Math.max(...f.recoveries.map((x) => x.idle_s)) * 1.05;
  type R = BucketFit["recoveries"][0];
  const corner = B && refill ? Math.min(end, B / refill) : end;
  return [chart({
    title: `How long to rest until the burst is back: ${named(f)}`,
    note: `Read it so: after a rest of so long (across), so much of the burst was there again (up).${refill ? ` ${significant(refill * factor)} ${unit} come back per second of rest` : ""}${refill && B ? `; after ${seconds(B / refill)} it is full again, and more rest brings no more` : ""}. Hollow: full again.`,
    text: `Tokens recovered by idle time. ${f.recoveries.map((x) => `${seconds(x.idle_s)} idle: ${estimate(x.tokens, factor)} ${unit}${x.saturated ? ", full" : ""}`).join("; ")}.`,
    data: () => table("Tokens recovered by idle time", 1, [">idle, s", `>${unit}`, "full"], f.recoveries.map((x) => [x.idle_s.toFixed(1), estimate(x.tokens, factor), x.saturated ? "yes" : "no"])),
    draw: (width) => Plot.plot({
      ...base(width, width < 520 ? 220 : 260),
      x: { label: "rest before the load, s →", domain: [0, end] },
      y: { label: `↑ burst that is back, ${unit}`, grid: true, zero: true, tickFormat: tick },
      marks: [
        Plot.ruleY([0], { stroke: "var(--line)" }),
        ...(B ? [Plot.text([0], { x: end, y: B * factor, dy: -10, textAnchor: "end", text: [`full: ${significant(B * factor)} ${unit}`], ...label })] : []),
        ...(refill ? [Plot.line([[0, 0], [corner, Math.min(B ?? Infinity, refill * corner) * factor], ...(B ? [[end, B * factor]] : [])] as [number, number][], { stroke: "var(--ink)", strokeDasharray: "7 4" })] : []),
        Plot.link(f.recoveries, { x1: "idle_s", x2: "idle_s", y1: (x: R) => low(x.tokens) * factor, y2: (x: R) => high(x.tokens) * factor, stroke: "var(--s1)" }),
        Plot.dot(f.recoveries, { x: "idle_s", y: (x: R) => x.tokens.value * factor, r: 5, stroke: "var(--s1)", strokeWidth: 2, fill: (x: R) => (x.saturated ? "var(--bg)" : "var(--s1)") }),
        Plot.tip(f.recoveries, Plot.pointer({ x: "idle_s", y: (x: R) => x.tokens.value * factor, title: (x: R) => `${seconds(x.idle_s)} idle\n${estimate(x.tokens, factor)} ${unit}`, ...tip } as Plot.TipOptions)),
      ],
    }),
  })];
}

export const bucketCharts = (fits: BucketFit[]): ChartElement[] => fits.flatMap((f) => [...cumulative(f), ...recovery(f)]);

export const saturationTable = (s: Saturation): Table =>
  table(`Rate by operations in flight: ${s.op_class} ${size(s.size_bytes)}`, 1, [">in flight", ">op/s", ">of network", ">of drives", ">p50", ">p99"], s.points.map((p) => [String(p.concurrency), estimate(p.ops_per_s), partOf(s, "network", p.ops_per_s.value), partOf(s, "drive", p.ops_per_s.value), latency(p.p50_ns), latency(p.p99_ns)]));

/** Shares of the axis beyond which a linear one presses the lower curve flat. */
const FLAT = 8;

/** Several searches in one picture: a curve an op, what is enough for each marked on it. */
export function searchesChart(all: Saturation[]): ChartElement | null {
  const seen = all.filter((s) => s.points.length > 0).slice(0, 7);
  if (seen.length < 2) return saturationCharts(seen)[0] ?? null;
  const ticks = [...new Set(seen.flatMap((s) => s.points.map((p) => p.concurrency)))].sort((a, b) => a - b);
  const tops = seen.map((s) => Math.max(...s.points.map((p) => p.ops_per_s.value)));
  const logarithmic = Math.max(...tops) / Math.min(...tops) > FLAT;
  // A step in which next to nothing was answered has no place on a logarithmic axis.
  const floor = logarithmic ? Math.min(...tops) / 100 : 0;
  const drawn = (s: Saturation) => s.points.filter((p) => !logarithmic || p.ops_per_s.value >= floor);
  const rates = seen.flatMap((s) => drawn(s).flatMap((p) => [Math.max(low(p.ops_per_s), p.ops_per_s.value / 10), p.ops_per_s.value, high(p.ops_per_s)]));
  const hidden = seen.some((s) => drawn(s).length < s.points.length);
  const spots = seen.flatMap((s) => drawn(s).map((p) => ({ x: p.concurrency, y: p.ops_per_s.value })));
  const unusable = (s: Saturation) => !!s.invalid?.length;
  const enough = seen.flatMap((s, i) => {
    const at = unusable(s) ? undefined : drawn(s).find((p) => p.concurrency === s.c95?.value);
    return at ? [{ x: at.concurrency, y: at.ops_per_s.value, text: `${s.op_class}: ${at.concurrency}`, i }] : [];
  });
  const told = (s: Saturation) => `${s.op_class}: ${unusable(s) || !s.c95 ? searchResult(s) : `${plain(s.c95.value, 3)} in flight`}`;
  return chart({
    title: `How many in flight: ${seen.map((s) => `${s.op_class} ${size(s.size_bytes)}`).join(", ")}`,
    note: `${seen.some(unusable) ? "Hollow: invalid, and no answer. " : ""}${enough.length ? "Ringed: the least that reaches 95 % of the plateau. " : ""}${logarithmic ? "Both axes logarithmic. " : ""}${hidden ? "Steps with next to no answers are in the table only. " : ""}${seen.map(told).join("; ")}.`,
    text: `Rate by operations in flight. ${seen.map((s) => `${s.op_class}: ${s.points.map((p) => `${p.concurrency} in flight ${significant(p.ops_per_s.value)} per second`).join(", ")}`).join("; ")}.`,
    keys: seen.map((s, i) => ({ label: `${s.op_class} ${size(s.size_bytes)}${unusable(s) ? " (invalid)" : ""}`, mark: mark(i), symbol: true })),
    data: () => table("Rate by operations in flight", 1, [">in flight", ...seen.map((s) => `>${s.op_class}, op/s`)], ticks.map((c) => [String(c), ...seen.map((s) => {
      const p = s.points.find((x) => x.concurrency === c);
      return p ? estimate(p.ops_per_s) : "";
    })])),
    draw: (width) => Plot.plot({
      ...base(width, 280), x: { type: "log" },
      y: logarithmic ? { type: "log" } : { label: "↑ op/s", grid: true, zero: true, tickFormat: tick },
      marks: [
        ...logAxis("x", spaced(ticks, width - 70, 34), "operations in flight →", String, false),
        ...(logarithmic ? logAxis("y", logTicks(rates), "↑ op/s", tick) : [Plot.ruleY([0], { stroke: "var(--line)" })]),
        ...seen.flatMap((s, i) => {
          type P = Saturation["points"][0];
          const points = drawn(s);
          return [
            Plot.link(points, { x1: "concurrency", x2: "concurrency", y1: (p: P) => (logarithmic ? Math.max(low(p.ops_per_s), p.ops_per_s.value / 10) : low(p.ops_per_s)), y2: (p: P) => high(p.ops_per_s), stroke: mark(i).colour }),
            ...line(points, mark(i), (p) => p.concurrency, (p) => p.ops_per_s.value, { symbols: true }),
            ...(unusable(s) ? [Plot.dot(points, { x: "concurrency", y: (p: P) => p.ops_per_s.value, symbol: mark(i).symbol, r: 4.5, fill: "var(--bg)", stroke: mark(i).colour, strokeDasharray: "2 1.5" })] : []),
            Plot.tip(points, Plot.pointer({ x: "concurrency", y: (p: P) => p.ops_per_s.value, title: (p: P) => `${s.op_class}, ${p.concurrency} in flight\n${estimate(p.ops_per_s)} op/s`, ...tip } as Plot.TipOptions)),
          ];
        }),
        Plot.dot(enough, { x: "x", y: "y", r: 8, fill: "none", stroke: "var(--ink)", strokeWidth: 1.4 }),
        Plot.text(enough, { x: "x", y: "y", text: "text", ...label, render: settled(enough, spots, true) }),
      ],
    }),
  });
}

/** Rate over concurrency with the band of c95; latency on a panel of its own, not on a second axis. */
export function saturationCharts(all: Saturation[]): ChartElement[] {
  return all.filter((s) => s.points.length > 1).flatMap((s) => {
    type P = Saturation["points"][0];
    const ticks = s.points.map((p) => p.concurrency);
    const x = { type: "log" as const };
    const axis = (width: number) => logAxis("x", spaced(ticks, width - 70, 34), "operations in flight →", String, false);
    // Of what is void no point is told, and its own are hollow.
    const unusable = !!s.invalid?.length;
    const band = s.c95 && !unusable ? [Plot.rect([s.c95], { x1: "low", x2: "high", fill: "var(--event)" }), Plot.ruleX([s.c95.value], { stroke: "var(--muted)", strokeDasharray: "2 3" })] : [];
    const data = () => saturationTable(s);
    const words = s.points.map((p) => `${p.concurrency} in flight: ${significant(p.ops_per_s.value)} per second`).join("; ");
    const rate = chart({
      title: `How many in flight: ${s.op_class} ${size(s.size_bytes)}`,
      note: `${unusable ? "Hollow: invalid, and no answer. " : ""}${searchResult(s)}${s.c95 && !unusable ? `; 95 % of the plateau from ${plain(s.c95.value, 3)}${low(s.c95) < high(s.c95) ? ` (${plain(low(s.c95), 3)} to ${plain(high(s.c95), 3)})` : ""} in flight` : ""}.`,
      text: `Rate by operations in flight. ${words}.`,
      data,
      draw: (width) => Plot.plot({
        ...base(width, 260), x, y: { label: "↑ op/s", grid: true, zero: true, tickFormat: tick },
        marks: [
          ...axis(width), ...band, Plot.ruleY([0], { stroke: "var(--line)" }),
          ...(s.plateau_per_s && !unusable ? [Plot.ruleY([s.plateau_per_s.value], { stroke: "var(--muted)", strokeDasharray: "8 3" })] : []),
          Plot.link(s.points, { x1: "concurrency", x2: "concurrency", y1: (p: P) => low(p.ops_per_s), y2: (p: P) => high(p.ops_per_s), stroke: mark(0).colour }),
          ...line(s.points, mark(0), (p) => p.concurrency, (p) => p.ops_per_s.value, { symbols: true }),
          ...(unusable ? [Plot.dot(s.points, { x: "concurrency", y: (p: P) => p.ops_per_s.value, r: 4.5, fill: "var(--bg)", stroke: mark(0).colour, strokeDasharray: "2 1.5" })] : []),
          ...(s.c95 && !unusable ? [Plot.text([s.c95.value], { x: (v: number) => v, frameAnchor: "bottom", dy: -6, text: () => "95 % here", ...label })] : []),
          Plot.tip(s.points, Plot.pointer({ x: "concurrency", y: (p: P) => p.ops_per_s.value, title: (p: P) => `${p.concurrency} in flight\n${estimate(p.ops_per_s)} op/s`, ...tip } as Plot.TipOptions)),
        ],
      }),
    });
    const timed = s.points.filter((p) => p.p99_ns);
    const median = s.points.filter((p) => p.p50_ns);
    if (timed.length < 2 && median.length < 2) return [rate];
    return [rate, chart({
      title: `What that costs in latency: ${s.op_class}`,
      text: `Latency by operations in flight. ${s.points.map((p) => `${p.concurrency}: p50 ${latency(p.p50_ns)}, p99 ${latency(p.p99_ns)}`).join("; ")}.`,
      keys: [...(median.length ? [{ label: "p50", mark: mark(0), symbol: true }] : []), ...(timed.length ? [{ label: "p99", mark: mark(1), symbol: true }] : [])],
      data,
      draw: (width) => Plot.plot({
        ...base(width, 260), x, y: { type: "log" },
        marks: [...axis(width), ...logAxis("y", logTicks([...median.map((p) => p.p50_ns!), ...timed.map((p) => p.p99_ns!)]), "↑ latency", latencyTick), ...band, ...line(median, mark(0), (p) => p.concurrency, (p) => p.p50_ns, { symbols: true }), ...line(timed, mark(1), (p) => p.concurrency, (p) => p.p99_ns, { symbols: true })],
      }),
    })];
  });
}

export function scalingTable(s: Scaling): Table {
  const [unit, factor] = s.unit === "bytes/s" ? ["MiB/s", 1 / MIB] as const : [s.unit, 1] as const;
  return table(`Scaling: ${s.name}`, 1, [">nodes", `>${unit}`, ">efficiency", "status"], [
    ...s.points.map((p) => [String(p.nodes), estimate(p.per_s, factor), estimate(p.efficiency), "measured"]),
    ...s.predictions.map((p) => [String(p.nodes), estimate(p.per_s, factor), estimate(p.efficiency), p.speculative ? "predicted, speculative" : "predicted"]),
  ]);
}

/** Efficiency with its fan; nothing is drawn past 1.5 times what was measured but what is marked speculative. */
export function scalingCharts(all: Scaling[]): ChartElement[] {
  return all.filter((s) => s.points.some((p) => p.efficiency)).map((s) => {
    interface E { nodes: number; e: Estimate; predicted: boolean; speculative: boolean }
    const measured: E[] = s.points.flatMap((p) => (p.efficiency ? [{ nodes: p.nodes, e: p.efficiency, predicted: false, speculative: false }] : []));
    const predicted: E[] = s.predictions.flatMap((p) => (p.efficiency ? [{ nodes: p.nodes, e: p.efficiency, predicted: true, speculative: p.speculative }] : []));
    const fan = [...measured.slice(-1), ...predicted];
    const both = [...measured, ...predicted];
    // One wide interval must not squeeze the points to nothing.
    const top = 1.5 * Math.max(1, ...both.map((p) => p.e.value));
    const [from, to] = [(p: E) => Math.max(0, low(p.e)), (p: E) => Math.min(top, high(p.e))];
    const over = both.filter((p) => high(p.e) > top);
    return chart({
      title: `Does it scale: ${s.name}`,
      note: "Rate per node against the fewest nodes; 1 is linear." + (predicted.length ? " Hollow and shaded: predicted." : "") + (over.length ? " An interval that ends in an arrow goes on." : ""),
      text: `Efficiency by nodes. ${both.map((p) => `${counted(p.nodes, "node")}: ${estimate(p.e)}${p.predicted ? ", predicted" : ""}`).join("; ")}.`,
      draw: (width) => Plot.plot({
        ...base(width, 260),
        x: { label: "nodes →", ticks: both.map((p) => p.nodes), tickFormat: String },
        y: { label: "↑ efficiency", grid: true, domain: [Math.min(...both.map(from)) < 0.2 ? 0 : Math.min(0.6, ...both.map(from)), Math.max(1.1, ...both.map(to))] },
        marks: [
          Plot.ruleY([1], { stroke: "var(--muted)", strokeDasharray: "8 3" }),
          Plot.areaY(fan, { x: "nodes", y1: from, y2: to, fill: "var(--s1)", fillOpacity: 0.15 }),
          Plot.line(fan, { x: "nodes", y: (p: E) => p.e.value, stroke: "var(--s1)", strokeDasharray: "4 4" }),
          Plot.line(measured, { x: "nodes", y: (p: E) => p.e.value, stroke: "var(--s1)", strokeWidth: 2 }),
          Plot.link(both, { x1: "nodes", x2: "nodes", y1: from, y2: to, stroke: "var(--s1)" }),
          Plot.text(over, { x: "nodes", y: () => top, dy: -3, text: () => "▲", fill: "var(--s1)", fontSize: 11 }),
          Plot.dot(both, { x: "nodes", y: (p: E) => p.e.value, r: 5, stroke: "var(--s1)", strokeWidth: 2, fill: (p: E) => (p.predicted ? "var(--bg)" : "var(--s1)") }),
          Plot.text(predicted.filter((p) => p.speculative), { x: "nodes", y: to, dy: -8, textAnchor: "end", text: () => "speculative", ...label, fontWeight: 400 }),
        ],
      }),
    });
  });
}

/** Latencies are kept in nanoseconds; nobody reads 12,340,000 ns. */
function inMilliseconds(c: Comparison): Comparison {
  if (c.unit !== "ns") return c;
  const ms = (list: number[]) => list.map((x) => x / 1e6);
  return { ...c, unit: "ms", a: ms(c.a), b: ms(c.b) };
}

/** It is proved which side is better; what is not stands in brackets, and is drawn hollow. */
export const isProved = (c: Comparison): boolean => c.outcome !== "none seen" && c.outcome !== "undetermined";

/** Those that answer: the rates, else whatever was compared. */
export function answering(all: Comparison[]): Comparison[] {
  const rates = all.filter((c) => c.measure === "rate" || c.measure === "");
  return rates.length > 0 ? rates : all;
}

/** Of how many of the answers a difference is neither proved nor excluded, in words; empty: of none. */
export function openAnswers(all: Comparison[]): string {
  const asked = answering(all);
  const open = asked.filter((c) => c.outcome === "undetermined").length;
  if (open === 0) return "";
  return asked.length === open ? "difference undetermined" : `${open} of ${asked.length} differences undetermined`;
}

const geometric = (list: number[]): number => Math.exp(list.reduce((sum, x) => sum + Math.log(x), 0) / list.length);
const signed = (gain: number): string => `${gain > 0 ? "+" : ""}${(100 * gain).toFixed(1)} %`;

/** How much better A is, a row per size and a column per op and measure; below it each comparison in full. */
export function comparisonTables(all: Comparison[]): Table[] {
  const first = all[0];
  if (!first) return [];
  const column = (c: Comparison) => `${c.op.toUpperCase()} ${c.measure.replace("response", "time")}`;
  const row = (c: Comparison) => `${c.size_bytes} ${c.concurrency}`;
  const order = ["rate", "mean response", "p99 response"];
  const columns = [...new Set([...all].sort((a, b) => order.indexOf(a.measure) - order.indexOf(b.measure)).map(column))];
  const rows = [...new Map([...all].sort((a, b) => a.size_bytes - b.size_bytes || a.concurrency - b.concurrency).map((c) => [row(c), c])).values()];
  const better = (c: Comparison | undefined): string => {
    if (!c) return "";
    if (!c.ratio) return MISSING;
    const text = signed(c.unit === "ns" ? 1 - c.ratio.value : c.ratio.value - 1);
    return isProved(c) ? text : `(${text})`;
  };
  const name = sizesLike(all.map((c) => c.size_bytes));
  const mean = (list: number[], unit: string) => (list.length === 0 ? MISSING : unit === "ns" ? latency(geometric(list)) : `${significant(geometric(list), 4)} ${unit}`);
  return [
    ...(first.op ? [table(`How much better ${first.a_name} is than ${first.b_name} (in brackets: not proved)`, 2, [">size", ">in flight", ...columns.map((x) => `>${x}`)],
      rows.map((r) => [name(r.size_bytes), String(r.concurrency), ...columns.map((x) => better(all.find((c) => column(c) === x && row(c) === row(r))))]))] : []),
    table("Each comparison", 1, ["what", `>${first.a_name}`, `>${first.b_name}`, ">ratio", ">could see", "verdict"],
      all.map((c) => [c.name, mean(c.a, c.unit), mean(c.b, c.unit), estimate(c.ratio), c.detectable === null ? "" : percent(c.detectable), c.verdict])),
  ];
}

/** Run dots, paired runs joined, and below them the ratio with the smallest difference that could be seen. */
export function comparisonCharts(all: Comparison[]): ChartElement[] {
  return all.filter((c) => c.a.length > 0 && c.b.length > 0).map(inMilliseconds).flatMap((c) => {
    interface Dot { side: string; y: number; i: number }
    const dots: Dot[] = [...c.a.map((y, i) => ({ side: c.a_name, y, i })), ...c.b.map((y, i) => ({ side: c.b_name, y, i }))];
    const pairs = c.paired ? c.a.flatMap((a, i) => (c.b[i] === undefined ? [] : [{ a, b: c.b[i]! }])) : [];
    const runs = chart({
      title: `Is one better: ${c.name}`,
      note: `${c.verdict}${c.ratio ? `; the ratio is ${estimate(c.ratio)}` : ""}. A dot is a run${c.paired ? ", a line joins runs made in turn" : ""}.`,
      text: `${c.a_name}: ${c.a.map((x) => significant(x)).join(", ")} ${c.unit}; ${c.b_name}: ${c.b.map((x) => significant(x)).join(", ")} ${c.unit}. ${c.verdict}.`,
      keys: [{ label: c.a_name, mark: mark(0), line: false, symbol: true }, { label: c.b_name, mark: mark(1), line: false, symbol: true }],
      data: () => table(`Runs of ${c.name}`, 1, [">run", `>${c.a_name}`, `>${c.b_name}`], Array.from({ length: Math.max(c.a.length, c.b.length) }, (_, i) => [String(i + 1), ...[c.a[i], c.b[i]].map((x) => (x === undefined ? "" : significant(x, 4)))])),
      draw: (width) => Plot.plot({
        ...base(width, 240), marginLeft: 60,
        x: { type: "point", domain: [c.a_name, c.b_name], label: null, padding: 0.6 },
        y: { label: `↑ ${c.unit}`, grid: true, tickFormat: tick, nice: true },
        marks: [
          Plot.link(pairs, { x1: () => c.a_name, x2: () => c.b_name, y1: "a", y2: "b", stroke: "var(--muted)" }),
          Plot.dot(dots.filter((d) => d.side === c.a_name), { x: "side", y: "y", r: 5, stroke: mark(0).colour, strokeWidth: 2, symbol: mark(0).symbol }),
          Plot.dot(dots.filter((d) => d.side === c.b_name), { x: "side", y: "y", r: 5, stroke: mark(1).colour, strokeWidth: 2, symbol: mark(1).symbol }),
        ],
      }),
    });
    if (!c.ratio) return [runs];
    const { ratio } = c;
    const domain = [Math.min(0.95, low(ratio) * 0.98), Math.max(1.05, high(ratio) * 1.02)] as const;
    const band = c.detectable === null ? [] : [{ low: Math.max(1 / (1 + c.detectable), domain[0]), high: Math.min(1 + c.detectable, domain[1]) }];
    return [runs, chart({
      title: `Ratio ${c.a_name} / ${c.b_name}`,
      note: c.detectable === null ? "With its 95 % interval." : `With its 95 % interval. Shaded: differences below ${percent(c.detectable)}, which these runs could not have seen.`,
      text: `${c.a_name} divided by ${c.b_name}: ${estimate(ratio)}. One would mean no difference.`,
      draw: (width) => Plot.plot({
        ...base(width, 100),
        x: { label: "ratio →", grid: true, domain },
        y: { axis: null, domain: [0, 1] },
        marks: [
          Plot.rect(band, { x1: "low", x2: "high", fill: "var(--event)" }),
          // Below the words.
          Plot.ruleX([1], { y1: 0, y2: 0.7, stroke: "var(--ink)" }),
          Plot.link([ratio], { x1: "low", x2: "high", y1: 0.5, y2: 0.5, stroke: "var(--s1)", strokeWidth: 5 }),
          Plot.dot([ratio], { x: "value", y: 0.5, r: 6, fill: "var(--s1)", stroke: "var(--bg)" }),
          Plot.text([ratio], { x: "value", y: 0.5, dy: -16, text: () => estimate(ratio), ...label }),
        ],
      }),
    })];
  });
}
