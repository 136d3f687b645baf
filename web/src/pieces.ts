// Runs of many stages over time: the phases of a probe are named above its chart, the cells of a sweep are a panel each.
import * as Plot from "@observablehq/plot";

import { base, chart, mark, type ChartElement } from "./chart";
import type { Run, Series } from "./feed";
import { seconds, significant } from "./format";
import { sorted } from "./size";
import { table } from "./table";

const MOST_PHASES = 12;

interface Phase { name: string; from: number; to: number; letter: string }

/** Stages one after the other with one purpose are one phase; what comes after a colon tells its steps apart. `of`: these stages only. */
export function phases(run: Run, of?: Set<number>): Phase[] {
  const out: Phase[] = [];
  const letters = new Map<string, string>();
  for (const s of run.stages.filter((x) => !of || of.has(x.index)).sort((a, b) => a.start_s - b.start_s)) {
    const name = s.name.split(":")[0]!.trim();
    if (!letters.has(name)) letters.set(name, String.fromCharCode(65 + (letters.size % 26)));
    const last = out[out.length - 1];
    if (last?.name === name) last.to = Math.max(last.to, s.end_s);
    else out.push({ name, from: s.start_s, to: s.end_s, letter: letters.get(name)! });
  }
  // More names than anybody reads beside a chart.
  return run.stages.length > 1 && out.length > (of ? 0 : 1) && letters.size <= MOST_PHASES ? out : [];
}

/** Pixels above the drawing that the lane needs. */
export const LANE = 20;

/** A lane above the drawing: the name where it fits, else its letter, which the note explains. */
export function phaseLane(run: Run, domain: [number, number], width: number, of?: Set<number>): Plot.Markish[] {
  const all = phases(run, of);
  const perSecond = (width - 72) / (domain[1] - domain[0] || 1);
  const text = (p: Phase) => ((p.to - p.from) * perSecond > p.name.length * 6.6 + 6 ? p.name : (p.to - p.from) * perSecond > 11 ? p.letter : "");
  const high = { frameAnchor: "top" as const, dy: -24 };
  return [
    Plot.ruleX(all.slice(1), { x: "from", stroke: "var(--line)" }),
    Plot.text(all, { ...high, x: (p: Phase) => (p.from + p.to) / 2, text, fill: "var(--ink)", fontWeight: 600, fontSize: 11 }),
  ];
}

/** What the letters stand for. */
export function phaseNote(run: Run, of?: Set<number>): string {
  const names = new Map(phases(run, of).map((p) => [p.letter, p.name]));
  return names.size ? ` Above: the phases. ${[...names].map(([l, n]) => `${l}: ${n}`).join("; ")}.` : "";
}

interface Panel { key: string; name: string; series: Series[]; mean: number | null }
interface Point { t: number; y: number; fx: number; fy: number; z: string }

/** A panel a cell, on one axis each: flat at 100 % is steady. Repeats lie on each other. */
export function panels(run: Run): ChartElement | null {
  const all: Panel[] = sorted(run).flatMap((w) => {
    const i = run.summary.workloads.indexOf(w);
    const series = run.series.filter((s) => s.line === i);
    return series.length ? [{ key: String(i), name: run.labels[i] ?? w.name, series, mean: w.ops_per_s?.value ?? null }] : [];
  });
  if (all.length < 2) return null;
  const own = (p: Panel) => {
    const known = p.series.flatMap((s) => s.ops_per_s.filter((v) => v !== null));
    return p.mean ?? known.reduce((a, b) => a + b, 0) / (known.length || 1);
  };
  const begin = (s: Series) => run.stages.find((x) => x.index === s.stage)?.start_s ?? s.start_s;
  const longest = Math.max(...all.flatMap((p) => p.series.map((s) => s.start_s - begin(s) + s.step_s * s.ops_per_s.length)));
  return chart({
    title: "Does each cell hold its rate?",
    note: "A panel is a cell: its rate over its own time, in percent of its mean. Flat at 100 % is steady. Repeats lie on each other.",
    text: all.map((p) => {
      const known = p.series.flatMap((s) => s.ops_per_s.filter((v) => v !== null));
      return `${p.name}: from ${significant((100 * Math.min(...known)) / own(p))} % to ${significant((100 * Math.max(...known)) / own(p))} % of ${significant(own(p))} per second`;
    }).join("; "),
    data: () => table("Rate of each cell over its own time", 2, ["cell", ">after, s", ">op/s"], all.flatMap((p) => p.series.flatMap((s) => {
      const every = Math.max(1, Math.ceil(s.ops_per_s.length / 20));
      return s.ops_per_s.flatMap((v, i) => (v === null || i % every !== 0 ? [] : [[p.name, (s.start_s - begin(s) + i * s.step_s).toFixed(1), significant(v, 4)]]));
    }))),
    draw: (width) => {
      const columns = Math.max(2, Math.min(all.length, Math.floor(width / 200)));
      const rows = Math.ceil(all.length / columns);
      const place = (i: number) => ({ fx: i % columns, fy: Math.floor(i / columns) });
      const points: Point[] = all.flatMap((p, i) => p.series.flatMap((s) => s.ops_per_s.flatMap((v, j) =>
        (v === null ? [] : [{ ...place(i), t: s.start_s - begin(s) + (j + 0.5) * s.step_s, y: Math.min(160, (100 * v) / (own(p) || 1)), z: `${i} ${s.stage}` }]))));
      const heads = all.map((p, i) => ({ ...place(i), name: `${p.name}: ${significant(own(p))}/s` }));
      return Plot.plot({
        ...base(width, 40 + rows * 104), marginLeft: 52, marginTop: 8,
        x: { domain: [0, longest], label: "time since the cell began, s →", ticks: 3 },
        y: { domain: [0, 165], label: null, ticks: [0, 50, 100], tickFormat: (v: number) => `${v} %` },
        fx: { domain: Array.from({ length: columns }, (_, i) => i), axis: null, padding: 0.1 },
        fy: { domain: Array.from({ length: rows }, (_, i) => i), axis: null, padding: 0.12 },
        marks: [
          Plot.frame({ stroke: "var(--line)" }),
          Plot.ruleY(heads, { fx: "fx", fy: "fy", y: () => 100, stroke: "var(--muted)", strokeDasharray: "2 3" }),
          Plot.line(points, { fx: "fx", fy: "fy", x: "t", y: "y", z: "z", stroke: mark(0).colour, strokeWidth: 1.3, strokeLinejoin: "round" }),
          Plot.tip(points, Plot.pointer({ fx: "fx", fy: "fy", x: "t", y: "y", fill: "var(--panel)", stroke: "var(--line)",
            title: (p: Point) => `${all[p.fx + p.fy * columns]?.name ?? ""}\n${seconds(p.t)}: ${significant(p.y, 3)} % of its mean` } as Plot.TipOptions)),
          Plot.text(heads, { fx: "fx", fy: "fy", frameAnchor: "top-left", dx: 5, dy: 4, lineAnchor: "top", textAnchor: "start", text: "name", fontWeight: 600, fontSize: 11, lineWidth: (width - 60) / columns / 13, textOverflow: "ellipsis-end", fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 3 }),
        ],
      });
    },
  });
}
