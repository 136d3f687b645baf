// First pictures of what several runs say together: every difference of a comparison in one chart, and rate over nodes.
import * as Plot from "@observablehq/plot";

import { base, chart, headLines, mark, type ChartElement } from "./chart";
import type { Comparison, Estimate, Scaling } from "./feed";
import { counted, estimate, high, low, MIB, plain, tick, withoutMarks } from "./format";
import { answering, isProved } from "./limits";
import { table, type Table } from "./table";

interface Row { key: string; name: string; change: Estimate; verdict: string; seen: boolean }

/** How much better A is, percent: of times, less is better. */
function change(c: Comparison): Estimate {
  const r = c.ratio!;
  const [a, b] = [100 * (low(r) - 1), 100 * (high(r) - 1)];
  return c.unit === "ns" ? { ...r, value: 100 * (1 - r.value), low: -b, high: -a } : { ...r, value: 100 * (r.value - 1), low: a, high: b };
}

const MOST_ROWS = 16;

const signed = (v: number, text = plain(v, 3)): string => `${v > 0 ? "+" : ""}${text}`;

/** Beside how much better A is, what the verdict's words are of: its figure against B's. Of times the two have opposite signs. */
export function differenceTable(all: Comparison[]): Table {
  const percents = (x: number) => signed(x - 1, `${(100 * (x - 1)).toFixed(1)} %`);
  return table(`Differences${all.some((c) => c.unit === "ns") ? " (less time is better)" : ""}`, 1,
    ["what", ">better by", `>${all[0]?.a_name ?? "A"} against ${all[0]?.b_name ?? "B"}`, ">from", ">to", "verdict"],
    all.map((c) => [c.name, signed(change(c).value, `${change(c).value.toFixed(1)} %`), ...[c.ratio!.value, low(c.ratio!), high(c.ratio!)].map(percents), c.verdict]));
}

/** A row each, with its interval; rates before times where they are too many. */
export function differences(all: Comparison[]): ChartElement | null {
  const usable = all.filter((c) => c.ratio);
  const chosen = (usable.length > MOST_ROWS ? answering(usable) : usable).slice(0, MOST_ROWS);
  const first = chosen[0];
  if (!first) return null;
  const rows: Row[] = chosen.map((c, i) => ({ key: String(i), name: c.name, change: change(c), verdict: c.verdict, seen: isProved(c) }));
  // One wide interval must not squeeze the others to nothing.
  const reach = Math.max(5, ...rows.map((r) => Math.abs(r.change.value))) * 2;
  const clip = (x: number) => Math.max(-reach, Math.min(reach, x));
  const ends = rows.flatMap((r) => [clip(low(r.change)), clip(high(r.change)), r.change.value, 0]);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const pad = Math.max(2, (most - least) * 0.06);
  const [under, over] = [rows.filter((r) => low(r.change) < -reach), rows.filter((r) => high(r.change) > reach)];
  const cut = under.length + over.length > 0;
  const words = (r: Row) => `${signed(r.change.value)} %${r.seen ? "" : ", not proved"}`;
  const sign = (v: number) => `${signed(v, String(v))} %`;
  return chart({
    title: `How much better ${first.a_name} is than ${first.b_name}`,
    note: `Right of zero: ${first.a_name} is better (more operations, or less time). With 95 % intervals; hollow: no difference was proved.${cut ? " An interval that ends in an arrow goes on." : ""}${usable.length > chosen.length ? ` ${chosen.length} of ${usable.length} measures; the others are below.` : ""}`,
    text: rows.map((r) => `${r.name}: ${words(r)}`).join("; "),
    data: () => differenceTable(chosen),
    draw: (width) => {
      // What was found stands behind the name where both fit on one line, else below it.
      const heads = rows.map((r) => headLines(width, r.name, words(r)));
      const head = 4 + 15 * Math.max(...heads.map((x) => x.length));
      const height = head + 20;
      const dy = height / 2 - 9;
      const arrow = { y: "key", dy, fill: mark(0).colour, fontSize: 11, fontWeight: 700 } as const;
      return Plot.plot({
        ...base(width, 44 + rows.length * height), marginTop: 8, marginLeft: 8, marginRight: 24,
        x: { label: "better by →", domain: [least - pad, most + pad], tickFormat: sign, ticks: Math.max(3, Math.floor(width / 100)) },
        y: { type: "band", domain: rows.map((r) => r.key), axis: null, padding: 0 },
        marks: [
          Plot.gridX({ ticks: Math.max(3, Math.floor(width / 100)) }),
          // Not through the words.
          Plot.tickX(rows, { x: () => 0, y: "key", insetTop: head - 1, stroke: "var(--ink)" }),
          Plot.text(rows, { y: "key", frameAnchor: "left", dx: 2, dy: -height / 2 + 3, textAnchor: "start", lineAnchor: "top", lineHeight: 1.2, text: (_: Row, i: number) => heads[i]!.join("\n"), fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 4 }),
          Plot.link(rows, { x1: (r: Row) => clip(low(r.change)), x2: (r: Row) => clip(high(r.change)), y1: "key", y2: "key", dy, stroke: mark(0).colour, strokeWidth: 2.5 }),
          Plot.text(under, { ...arrow, x: () => -reach, dx: -3, text: () => "◀" }),
          Plot.text(over, { ...arrow, x: () => reach, dx: 3, text: () => "▶" }),
          Plot.dot(rows, { x: (r: Row) => r.change.value, y: "key", dy, r: 5, stroke: mark(0).colour, strokeWidth: 2, fill: (r: Row) => (r.seen ? mark(0).colour : "var(--bg)") }),
        ],
      });
    },
  });
}

interface At { nodes: number; per_s: Estimate; predicted: boolean }

/** Rate over nodes beside what it would be if each node brought as much as those of the smallest number. */
export function scaleChart(s: Scaling): ChartElement | null {
  if (s.points.length < 2) return null;
  const [unit, factor] = s.unit === "bytes/s" ? ["MiB/s", 1 / MIB] as const : ["op/s", 1] as const;
  const all: At[] = [...s.points.map((p) => ({ nodes: p.nodes, per_s: p.per_s, predicted: false })), ...s.predictions.map((p) => ({ nodes: p.nodes, per_s: p.per_s, predicted: true }))];
  const first = s.points[0]!;
  const each = (first.per_s.value / first.nodes) * factor;
  const last = Math.max(...all.map((p) => p.nodes));
  const measured = all.filter((p) => !p.predicted);
  // A rate is not below zero, and one wide interval must not squeeze the points to nothing.
  const top = 2 * Math.max(each * last, ...all.map((p) => p.per_s.value * factor));
  const [from, to] = [(p: At) => Math.max(0, low(p.per_s) * factor), (p: At) => Math.min(top, high(p.per_s) * factor)];
  const over = all.filter((p) => high(p.per_s) * factor > top);
  const words = (p: At) => `${counted(p.nodes, "node")}: ${estimate(p.per_s, factor)} ${unit}${p.predicted ? ", predicted" : ""}`;
  return chart({
    title: `Rate over nodes: ${s.name}`,
    note: `Dashed: if each node brought as much as with ${first.nodes}.${all.some((p) => p.predicted) ? " Hollow: predicted, not measured." : ""}${over.length ? " An interval that ends in an arrow goes on." : ""}${s.verdict ? ` Found: ${withoutMarks(s.verdict).replace(/\.$/, "")}.` : ""}`,
    text: `${s.name}. ${all.map(words).join("; ")}.`,
    data: () => table(`Rate over nodes: ${s.name}`, 1, [">nodes", `>${unit}`, "status"], all.map((p) => [String(p.nodes), estimate(p.per_s, factor), p.predicted ? "predicted" : "measured"])),
    draw: (width) => Plot.plot({
      ...base(width, width < 520 ? 240 : 280),
      x: { label: "nodes →", domain: [0, last * 1.04], ticks: [...new Set(all.map((p) => p.nodes))], tickFormat: String },
      y: { label: `↑ ${unit}`, grid: true, zero: true, tickFormat: tick },
      marks: [
        Plot.ruleY([0], { stroke: "var(--line)" }),
        Plot.line([[0, 0], [last, each * last]] as [number, number][], { stroke: "var(--muted)", strokeDasharray: "7 4" }),
        Plot.line(measured, { x: "nodes", y: (p: At) => p.per_s.value * factor, stroke: mark(0).colour, strokeWidth: 2 }),
        Plot.link(all, { x1: "nodes", x2: "nodes", y1: from, y2: to, stroke: mark(0).colour }),
        Plot.text(over, { x: "nodes", y: () => top, dy: -3, text: () => "▲", fill: mark(0).colour, fontSize: 11 }),
        Plot.dot(all, { x: "nodes", y: (p: At) => p.per_s.value * factor, r: 4.5, stroke: mark(0).colour, strokeWidth: 2, fill: (p: At) => (p.predicted ? "var(--bg)" : mark(0).colour) }),
        Plot.tip(all, Plot.pointer({ x: "nodes", y: (p: At) => p.per_s.value * factor, title: words, fill: "var(--panel)", stroke: "var(--line)" } as Plot.TipOptions)),
      ],
    }),
  });
}
