// A benchmark that was repeated in one run: rate over its cycles, a row a line, with the fall where there is one.
import * as Plot from "@observablehq/plot";

import { base, chart, mark, type ChartElement } from "./chart";
import type { Estimate, Run, Workload } from "./feed";
import { estimate, high, low, MIB, seconds, significant } from "./format";
import { cycling } from "./kinds";
import { spoiled } from "./size";
import { table, type Table } from "./table";

/** Where an interval is cut, above the highest cycle. */
const TOP = 1.12;

/** Blocks this large are read as throughput, smaller ones as operations. */
const LARGE_BYTES = 16_384;

export interface Course {
  label: string; unit: string; factor: number; each: Estimate[];
  /** Why its figures must not be quoted; empty: they may be. */
  void: string;
  /** When each cycle began, seconds since the run's start; empty: not known. */
  at_s: number[];
  /** The first cycle after the fall, from 1, with geometric means on either side; null: none was told. */
  fall: { cycle: number; before: number; after: number } | null;
}

/** A level over cycles is no more exact than three digits. */
const level = (x: number): string => significant(Number(x.toPrecision(3)), 3);

const geometric = (list: number[]): number => Math.exp(list.reduce((sum, x) => sum + Math.log(x), 0) / list.length);

function courseOf(run: Run, w: Workload): Course {
  const index = run.summary.workloads.indexOf(w);
  const each = w.each_ops_per_s ?? [];
  const large = w.size_bytes >= LARGE_BYTES;
  const stages = [...new Set(run.series.filter((s) => s.line === index).map((s) => s.stage))];
  const at_s = stages.flatMap((n) => run.stages.filter((s) => s.index === n).map((s) => s.start_s)).sort((a, b) => a - b);
  const label = run.labels[index] ?? w.name;
  // A finding names its line as `name/op`.
  const found = run.summary.findings.find((f) => f.code === "F30" && (f.workload === `${w.name}/${w.op}` || f.workload === w.name) && f.evidence?.some(([n]) => n === "cycle"));
  const cycle = Number(found?.evidence?.find(([n]) => n === "cycle")?.[1]);
  const factor = large ? w.size_bytes / MIB : 1;
  const mean = (part: Estimate[]) => geometric(part.map((e) => e.value)) * factor;
  return {
    label, void: w.valid ? "" : spoiled(run, w) || "[INVALID]", unit: large ? "MiB/s" : run.block ? "IOPS" : "op/s", factor, each, at_s: at_s.length === each.length ? at_s : [],
    fall: cycle > 1 && cycle <= each.length ? { cycle, before: mean(each.slice(0, cycle - 1)), after: mean(each.slice(cycle - 1)) } : null,
  };
}

export const courses = (run: Run): Course[] => cycling(run).map((w) => courseOf(run, w));

/** A level before the fall and one after it; where there was none, the one level. */
export function cycleTable(run: Run): Table {
  return table("Before and after", 1, ["what", ">cycles", ">before", ">after", "unit", ">first cycle after", ">that was at", "validity"], courses(run).map((c) => {
    const all = level(geometric(c.each.map((e) => e.value)) * c.factor);
    return [c.label, String(c.each.length), c.fall ? level(c.fall.before) : all, c.fall ? level(c.fall.after) : "no fall", c.unit,
      c.fall ? String(c.fall.cycle) : "", c.fall && c.at_s.length ? seconds(c.at_s[c.fall.cycle - 1]!) : "", c.void];
  }));
}

/** The code goes first, so that where the line is cut it is still there. */
const named = (c: Course): string => (c.void ? `${c.label} ${c.void}` : c.label);

const said = (c: Course): string => (c.fall
  ? `${named(c)}: ${level(c.fall.before)} ${c.unit}, then ${level(c.fall.after)} from cycle ${c.fall.cycle}`
  : `${named(c)}: about ${level(geometric(c.each.map((e) => e.value)) * c.factor)} ${c.unit}${c.void ? "" : ", no fall"}`);

export function cycleChart(run: Run): ChartElement | null {
  const all = courses(run).slice(0, 6);
  if (all.length === 0) return null;
  const n = Math.max(...all.map((c) => c.each.length));
  const first = all.map((c) => c.fall).filter((f) => f !== null).sort((a, b) => a.cycle - b.cycle)[0];
  const at = all.find((c) => c.fall === first && c.at_s.length)?.at_s[(first?.cycle ?? 1) - 1];
  interface P { line: number; row: string; cycle: number; y: number; low: number; high: number; void: boolean; text: string }
  const cut = all.some((c) => c.each.some((e) => high(e) / Math.max(...c.each.map((x) => x.value)) > TOP));
  const points: P[] = all.flatMap((c, line) => {
    const top = Math.max(...c.each.map((e) => e.value));
    return c.each.map((e, i) => ({ line, row: c.label, cycle: i + 1, y: e.value / top, low: Math.max(0, low(e) / top), high: Math.min(TOP, high(e) / top), void: c.void !== "",
      text: `${c.label}, cycle ${i + 1}${c.at_s[i] === undefined ? "" : `, ${seconds(c.at_s[i]!)} after the start`}\n${estimate(e, c.factor)} ${c.unit}` }));
  });
  const levels = all.flatMap((c) => {
    if (!c.fall) return [];
    const top = Math.max(...c.each.map((e) => e.value)) * c.factor;
    return [{ row: c.label, x1: 0.6, x2: c.fall.cycle - 0.5, y: c.fall.before / top }, { row: c.label, x1: c.fall.cycle - 0.5, x2: c.each.length + 0.4, y: c.fall.after / top }];
  });
  const falls = all.flatMap((c) => (c.fall ? [{ row: c.label, x: c.fall.cycle - 0.5 }] : []));
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((s) => n / s <= 14) ?? 2000;
  const ticks = Array.from({ length: Math.floor(n / step) }, (_, i) => (i + 1) * step);
  return chart({
    title: first ? `Rate over ${n} cycles: it falls from cycle ${first.cycle}${at === undefined ? "" : `, ${seconds(at)} after the start`}` : `Rate over ${n} cycles: no fall`,
    note: `Each row from zero to its own highest; a dot is one cycle, with its 95 % interval. Dashed: the fall; level lines: means before and after it.${all.some((c) => c.void) ? " Hollow, with its code: invalid." : ""}${cut ? " An interval that ends in an arrow goes on." : ""}`,
    text: `Rate over ${n} cycles. ${all.map(said).join("; ")}.`,
    data: () => table("Rate by cycle", 1, [">cycle", ...all.map((c) => `>${c.label}, ${c.unit}`)], Array.from({ length: n }, (_, i) => [String(i + 1), ...all.map((c) => (c.each[i] ? estimate(c.each[i], c.factor) : ""))])),
    draw: (width) => Plot.plot({
      ...base(width, 60 + all.length * 96), marginLeft: 16,
      x: { domain: [0.5, n + 0.5] },
      y: { domain: [0, 1.55], axis: null },
      fy: { domain: all.map((c) => c.label), axis: null, padding: 0.08 },
      marks: [
        Plot.axisX(ticks, { label: "cycle →", anchor: "bottom", text: String }),
        Plot.ruleY(all, { fy: "label", y: () => 0, stroke: "var(--line)" }),
        Plot.ruleX(falls, { fy: "row", x: "x", y1: 0, y2: 1.15, stroke: "var(--bad)", strokeDasharray: "5 3", strokeWidth: 1.6 }),
        Plot.link(levels, { fy: "row", x1: "x1", x2: "x2", y1: "y", y2: "y", stroke: "var(--ink)", strokeWidth: 1.4, strokeOpacity: 0.55 }),
        ...all.flatMap((_, i) => {
          const [m, own] = [mark(i), points.filter((p) => p.line === i)];
          return [
            Plot.link(own, { fy: "row", x1: "cycle", x2: "cycle", y1: "low", y2: "high", stroke: m.colour }),
            Plot.dot(own, { fy: "row", x: "cycle", y: "y", symbol: m.symbol, r: n > 60 ? 2 : 3.5, fill: (p: P) => (p.void ? "var(--bg)" : m.colour), stroke: m.colour }),
            Plot.text(own.filter((p) => p.high >= TOP), { fy: "row", x: "cycle", y: "high", text: () => "↑", dy: -4, fill: m.colour, stroke: "var(--bg)", strokeWidth: 3 }),
          ];
        }),
        Plot.text(all, { fy: "label", frameAnchor: "top-left", text: said, textAnchor: "start", lineAnchor: "top", dy: 2, fontWeight: 600, lineWidth: (width - 30) / 14, textOverflow: "ellipsis-end", fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 4 }),
        Plot.tip(points, Plot.pointer({ fy: "row", x: "cycle", y: "y", title: "text", fill: "var(--panel)", stroke: "var(--line)" } as Plot.TipOptions)),
      ],
    }),
  });
}
