// Chart of grouped runs: a dot per line of each run, the mean with its interval, a row per group.
import * as Plot from "@observablehq/plot";

import { base, chart, logAxis, mark, spaced, type ChartElement, type Key } from "./chart";
import type { Estimate, Group, Page } from "./feed";
import { high, low, estimate, logTicks, significant, tick } from "./format";

interface Row { name: string; last: string; mean: Estimate; each: number[] }

/** The last key sets colour and symbol, the others make the row. */
export function groupChart(page: Page): ChartElement | null {
  const rows: Row[] = page.groups.flatMap((g: Group) => (g.ops_per_s && g.ops_per_s.value > 0 ? [{
    name: g.keys.slice(0, -1).join(" ") || g.keys[0]!, last: g.keys[g.keys.length - 1]!, mean: g.ops_per_s, each: g.each_ops_per_s,
  }] : []));
  if (rows.length < 2) return null;
  const names = [...new Set(rows.map((r) => r.name))];
  const kinds = [...new Set(rows.map((r) => r.last))].slice(0, 7);
  const dots = rows.flatMap((r) => r.each.map((v) => ({ ...r, v })));
  const ends = rows.flatMap((r) => [Math.max(low(r.mean), r.mean.value / 100), high(r.mean), ...r.each]).filter((v) => v > 0);
  // One kind needs no colour, and no key that says so.
  const single = page.by.length < 2 || kinds.length < 2;
  // Kinds of one row beside each other: intervals on top of each other cannot be read.
  const offset = (i: number) => (i - (kinds.length - 1) / 2) * 9;
  const keys: Key[] = single ? [] : kinds.map((label, i) => ({ label, mark: mark(i), line: false, symbol: true }));
  return chart({
    title: "Rate by group",
    note: "Logarithmic. Bars: 95 % intervals; small dots: each run.",
    text: rows.map((r) => `${r.name} ${single ? "" : r.last}: ${estimate(r.mean)} per second`).join("; "),
    keys,
    draw: (width) => Plot.plot({
      ...base(width, 50 + names.length * (21 + 9 * kinds.length)), marginLeft: Math.min(width * 0.34, 20 + 7 * Math.max(...names.map((n) => n.length))), marginRight: 24,
      x: { type: "log", domain: [Math.min(...ends) * 0.85, Math.max(...ends) * 1.15] },
      y: { domain: names, label: null, padding: 0.4 },
      marks: [
        ...logAxis("x", spaced(logTicks(ends), width * 0.6, 46), "op/s →", tick),
        ...kinds.flatMap((k, i) => [
          Plot.link(rows.filter((r) => r.last === k), { x1: (r: Row) => Math.max(low(r.mean), r.mean.value / 100), x2: (r: Row) => high(r.mean), y1: "name", y2: "name", dy: offset(i), stroke: "var(--muted)", strokeWidth: 2 }),
          Plot.dot(rows.filter((r) => r.last === k), { x: (r: Row) => r.mean.value, y: "name", dy: offset(i), r: 5, symbol: mark(i).symbol, fill: mark(i).colour }),
          Plot.dot(dots.filter((r) => r.last === k), { x: "v", y: "name", dy: offset(i), r: 2, fill: "var(--bg)", stroke: "var(--ink)" }),
        ]),
        Plot.tip(rows, Plot.pointer({ x: (r: Row) => r.mean.value, y: "name", title: (r: Row) => `${r.name} ${r.last}\n${estimate(r.mean)} op/s\n${r.each.map((x) => significant(x, 4)).join(", ")}`, fill: "var(--panel)", stroke: "var(--line)" } as Plot.TipOptions)),
      ],
    }),
  });
}
