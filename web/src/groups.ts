// Chart of grouped runs: a dot per line of each run, the mean with its interval, a row per group.
import * as Plot from "@observablehq/plot";

import { base, chart, logAxis, mark, spaced, type ChartElement, type Key } from "./chart";
import type { Estimate, Group, Page } from "./feed";
import { estimate, logTicks, significant, tick } from "./format";

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
  const ends = rows.flatMap((r) => [Math.max(r.mean.low, r.mean.value / 100), r.mean.high, ...r.each]).filter((v) => v > 0);
  const single = page.by.length < 2;
  const keys: Key[] = single ? [] : kinds.map((label, i) => ({ label, mark: mark(i), line: false, symbol: true }));
  return chart({
    title: "Rate by group",
    note: "Logarithmic. Bars: 95 % intervals; small dots: each run.",
    text: rows.map((r) => `${r.name} ${single ? "" : r.last}: ${estimate(r.mean)} per second`).join("; "),
    keys,
    draw: (width) => Plot.plot({
      ...base(width, 50 + names.length * 30), marginLeft: Math.min(width * 0.34, 20 + 7 * Math.max(...names.map((n) => n.length))), marginRight: 24,
      x: { type: "log", domain: [Math.min(...ends) * 0.85, Math.max(...ends) * 1.15] },
      y: { domain: names, label: null, padding: 0.4 },
      marks: [
        ...logAxis("x", spaced(logTicks(ends), width * 0.6, 46), "op/s →", tick),
        Plot.link(rows, { x1: (r: Row) => Math.max(r.mean.low, r.mean.value / 100), x2: (r: Row) => r.mean.high, y1: "name", y2: "name", stroke: "var(--muted)", strokeWidth: 2 }),
        ...kinds.map((k, i) => Plot.dot(rows.filter((r) => r.last === k), { x: (r: Row) => r.mean.value, y: "name", r: 5, symbol: mark(single ? 0 : i).symbol, fill: mark(single ? 0 : i).colour })),
        Plot.dot(dots, { x: "v", y: "name", r: 2, fill: "var(--bg)", stroke: "var(--ink)" }),
        Plot.tip(rows, Plot.pointer({ x: (r: Row) => r.mean.value, y: "name", title: (r: Row) => `${r.name} ${r.last}\n${estimate(r.mean)} op/s\n${r.each.map((x) => significant(x, 4)).join(", ")}`, fill: "var(--panel)", stroke: "var(--line)" } as Plot.TipOptions)),
      ],
    }),
  });
}
