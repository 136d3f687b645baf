// Lines that are no sizes of one thing (parts of a benchmark, drives, jobs): a row each, with its interval.
import * as Plot from "@observablehq/plot";

import { base, chart, headLines, mark, type ChartElement } from "./chart";
import { h } from "./dom";
import type { Estimate, Run, Workload } from "./feed";
import { estimate, high, low, MIB, tick } from "./format";
import { movesBytes, spoiled } from "./size";
import { table } from "./table";

/** With more rows than these an axis stands above them, too. */
const MOST_BELOW = 6;

interface Row { name: string; rate: Estimate; text: string; void: string }

/** In bytes where all of them move bytes in blocks that are read as throughput; else in operations. */
export function linesChart(run: Run): ChartElement | null {
  const all = run.summary.workloads.map((w, i) => [w, run.labels[i] ?? w.name] as const).filter(([w]) => w.op !== "fsync" && w.ops_per_s !== null);
  if (all.length < 2) return null;
  const inBytes = all.every(([w]) => movesBytes(w) && w.bytes_per_s !== null) && new Set(all.map(([w]) => w.size_bytes)).size > 1;
  const [unit, factor, of] = inBytes
    ? ["MiB/s", 1 / MIB, (w: Workload) => w.bytes_per_s!] as const
    : [run.block ? "IOPS" : "op/s", 1, (w: Workload) => w.ops_per_s!] as const;
  const many = all.length > 24;
  const rows: Row[] = all.slice(0, 24).map(([w, name]) => ({ name, rate: of(w), text: `${estimate(of(w), factor)} ${unit}`, void: w.valid ? "" : spoiled(run, w) || "[INVALID]" }));
  // What one wide interval takes, all others lose.
  const top = 1.06 * Math.min(Math.max(...rows.map((r) => high(r.rate))), 2 * Math.max(...rows.map((r) => r.rate.value))) * factor || 1;
  const over = (r: Row) => high(r.rate) * factor > top;
  const row = (r: Row, i: number, width: number) => {
    const head = headLines(width, r.name, `${r.void ? `${r.void} ` : ""}${r.text}`);
    const [first, last] = [i === 0 && rows.length > MOST_BELOW, i === rows.length - 1];
    const [above, below] = [first ? 38 : 0, last ? 36 : 0];
    const from = 6 + 15 * head.length;
    const y = from + 6;
    const height = from + 18;
    const ticks = Math.max(3, Math.floor(width / 110));
    const scale = (anchor: "top" | "bottom") => Plot.axisX({ anchor, ticks, tickFormat: tick, label: `${unit} →` });
    const bar = { x1: () => 0, x2: (d: Row) => d.rate.value * factor, y1: () => from, y2: () => from + 12 };
    return Plot.plot({
      ...base(width, height + above + below), marginLeft: 8, marginRight: 24, marginTop: above, marginBottom: below,
      x: { domain: [0, top], axis: null },
      y: { domain: [0, height], range: [above, above + height], axis: null },
      marks: [
        Plot.gridX({ ticks }), ...(first ? [scale("top")] : []), ...(last ? [scale("bottom")] : []),
        Plot.ruleX([0], { stroke: "var(--line)" }),
        // The name stands above its bar: beside it a long one would not fit on a phone.
        Plot.text([r], { x: () => 0, y: () => 4, dx: 2, textAnchor: "start", lineAnchor: "top", lineHeight: 1.2, text: () => head.join("\n"), fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 3 }),
        Plot.rect([r], { ...bar, ...(r.void ? { fill: "none", stroke: "var(--muted)", strokeDasharray: "3 2" } : { fill: mark(0).colour, fillOpacity: 0.35 }) }),
        Plot.link([r], { x1: (d: Row) => low(d.rate) * factor, x2: (d: Row) => Math.min(top, high(d.rate) * factor), y1: () => y, y2: () => y, stroke: mark(0).colour, strokeWidth: 2, ...(r.void ? { strokeDasharray: "2 2" } : {}) }),
        Plot.text(over(r) ? [r] : [], { x: () => top, y: () => y, dx: 3, text: () => "▶", fill: mark(0).colour, fontSize: 11 }),
        Plot.dot([r], { x: (d: Row) => d.rate.value * factor, y: () => y, r: 3.5, stroke: mark(0).colour, fill: r.void ? "var(--bg)" : mark(0).colour }),
      ],
    });
  };
  return chart({
    title: inBytes ? "Throughput of each line" : "Rate of each line",
    note: `With 95 % intervals.${rows.some((r) => r.void) ? " Hollow: invalid." : ""}${rows.some(over) ? " An interval that ends in an arrow goes on." : ""}${many ? ` The first 24 of ${all.length}; all are in the table.` : ""}`,
    text: rows.map((r) => `${r.name}: ${r.text}${r.void ? ` ${r.void}` : ""}`).join("; "),
    data: () => table("Rate of each line", 1, ["line", `>${unit}`, "validity"], rows.map((r) => [r.name, estimate(r.rate, factor), r.void])),
    draw: (width) => h("div", { class: "pieces" }, ...rows.map((r, i) => row(r, i, width))),
  });
}
