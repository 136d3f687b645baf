// Several runs side by side: bars with intervals, a row for what is common, a colour for what is compared; and the same as a table.
import * as Plot from "@observablehq/plot";

import { base, chart, mark, spaced, type ChartElement, type Key } from "./chart";
import { h } from "./dom";
import type { Estimate, Group, Page, Workload } from "./feed";
import { estimate, high, latency, low, logTicks, MIB, significant, size, sizesLike, tick } from "./format";
import { hasSteps } from "./size";
import { table, type Table } from "./table";

interface Row { name: string; kind: string; mean: Estimate; each: number[] }

/** Runs are compared by what they are called where that tells them apart; an id is no name. */
function naming(page: Page): (value: string) => string {
  const t = page.together;
  if (!t || page.by[t.compared] !== "Run") return (v) => v;
  const titles = page.runs.map((r) => r.glance.title);
  const telling = new Set(titles).size === titles.length;
  return (id) => {
    const at = page.runs.findIndex((r) => r.summary.id === id);
    return at < 0 ? id : telling ? titles[at]! : `run ${at + 1}`;
  };
}

const restOf = (g: Group, compared: number): string[] => g.keys.filter((_, i) => i !== compared);

/** What is common to a row, as one name; a bare number says of what it is: `GiB 20`. */
const rowName = (page: Page, g: Group, compared: number): string =>
  g.keys.flatMap((k, i) => (i === compared ? [] : [!/^[\d.,]+$/.test(k) ? k : page.by[i] === "In flight" ? `${k} in flight` : `${page.by[i]} ${k}`])).join(" ");

/** With more rows than these an axis stands above them, too. */
const MOST_BELOW = 6;

/** As many as colours can tell apart. */
const MOST_KINDS = 7;

/** What a small dot is: where a mean is over lines of one run, these are its steps, or its lines, and no runs. */
export function dotsAre(page: Page): string {
  const within = page.groups.filter((g) => g.each_ops_per_s.length > 1).flatMap((g) => {
    const rates = new Set(g.each_ops_per_s);
    return page.runs.filter((r) => r.summary.workloads.filter((w) => w.ops_per_s && rates.has(w.ops_per_s.value)).length > 1);
  });
  return within.length === 0 ? "each run" : within.every(hasSteps) ? "each step of a run" : "each line of a run";
}

/** Pixels: of a bar, of the name above its bars, and below them. */
const [BAR, HEAD, GAP] = [15, 20, 8];

/** Rows of what is common, and beside each other in it what is compared. Each row is a drawing, so that paper can break between two. */
export function groupChart(page: Page): ChartElement | null {
  const compared = page.together?.compared ?? page.by.length - 1;
  const called = naming(page);
  const all: Row[] = page.groups.flatMap((g) => (g.ops_per_s && g.ops_per_s.value > 0 ? [{ name: rowName(page, g, compared), kind: called(g.keys[compared]!), mean: g.ops_per_s, each: g.each_ops_per_s }] : []));
  const order = (page.together?.values ?? page.groups.map((g) => g.keys[compared]!)).map(called);
  const kinds = [...new Set(order)].filter((k) => all.some((r) => r.kind === k)).slice(0, MOST_KINDS);
  const rows = all.filter((r) => kinds.includes(r.kind));
  if (rows.length < 2) return null;
  const names = [...new Set(rows.map((r) => r.name))];
  const ends = rows.flatMap((r) => [Math.max(low(r.mean), r.mean.value / 100), high(r.mean), ...r.each]).filter((v) => v > 0);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  // Within a decade bars from zero show the share; over more of them only a logarithm shows all.
  const logarithmic = most > 12 * least;
  const keys: Key[] = kinds.map((label, i) => ({ label, mark: mark(i), line: false, symbol: true }));
  const domain: [number, number] = logarithmic ? [least * 0.85, most * 1.15] : [0, most * 1.08];
  const dotted = rows.some((r) => r.each.length > 1);
  const row = (width: number, name: string, axis: "top" | "bottom" | "both" | null): SVGSVGElement | HTMLElement => {
    const here = kinds.flatMap((k, i) => rows.filter((r) => r.kind === k && r.name === name).map((r) => ({ ...r, m: mark(i) }))).map((r, i) => ({ ...r, y: (name === "" ? 4 : HEAD) + BAR * (i + 0.5) }));
    const height = (name === "" ? 4 : HEAD) + BAR * here.length + GAP;
    const [above, below] = [axis === "top" || axis === "both" ? 38 : 0, axis === "bottom" || axis === "both" ? 36 : 0];
    const ticks = logarithmic ? spaced(logTicks(ends), width - 60, 46) : undefined;
    const scale = (anchor: "top" | "bottom") => Plot.axisX({ anchor, label: "op/s →", ...(ticks ? { ticks, tickFormat: tick } : { ticks: 5, tickFormat: tick }) });
    type R = (typeof here)[0];
    return Plot.plot({
      ...base(width, height + above + below), marginLeft: 8, marginRight: 28, marginTop: above, marginBottom: below,
      x: { type: logarithmic ? "log" : "linear", domain, axis: null },
      y: { domain: [0, height], range: [above, above + height], axis: null },
      marks: [
        Plot.gridX(ticks ? { ticks } : { ticks: 5 }), ...(above ? [scale("top")] : []), ...(below ? [scale("bottom")] : []),
        Plot.text([name], { x: () => domain[0], y: () => 9, dx: 2, textAnchor: "start", text: (n: string) => n, fontWeight: 600, lineWidth: (width - 40) / 12.5, textOverflow: "ellipsis-end", fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 3 }),
        ...here.map((r) => Plot.rect([r], { x1: () => domain[0], x2: (d: R) => d.mean.value, y1: (d: R) => d.y - BAR / 2 + 2, y2: (d: R) => d.y + BAR / 2 - 2, fill: r.m.colour, fillOpacity: 0.3 })),
        ...here.flatMap((r) => [
          Plot.link([r], { x1: (d: R) => Math.max(low(d.mean), domain[0]), x2: (d: R) => high(d.mean), y1: "y", y2: "y", stroke: r.m.colour, strokeWidth: 2 }),
          Plot.dot([r], { x: (d: R) => d.mean.value, y: "y", r: 4.5, symbol: r.m.symbol, fill: r.m.colour }),
          Plot.dot(r.each.length > 1 ? r.each : [], { x: (v: number) => v, y: () => r.y, r: 2, fill: "var(--bg)", stroke: "var(--ink)" }),
        ]),
        Plot.tip(here, Plot.pointer({ x: (d: R) => d.mean.value, y: "y", title: (d: R) => `${d.name} ${d.kind}\n${estimate(d.mean)} op/s\n${d.each.map((x) => significant(x, 4)).join(", ")}`, fill: "var(--panel)", stroke: "var(--line)" } as Plot.TipOptions)),
      ],
    });
  };
  return chart({
    title: `Rate by ${page.by[compared] ?? "run"}`.replace("Run", "run"),
    note: `Bars end at the rate; lines are 95 % intervals${dotted ? `, small dots ${dotsAre(page)}` : ""}.${logarithmic ? " The axis is logarithmic and does not begin at zero." : ""}`,
    text: rows.map((r) => `${r.name} ${r.kind}: ${estimate(r.mean)} per second`).join("; "),
    keys: kinds.length > 1 ? keys : [],
    draw: (width) => h("div", { class: "pieces" }, ...names.map((name, i) => {
      const [first, last] = [i === 0 && names.length > MOST_BELOW, i === names.length - 1];
      return row(width, name, first && last ? "both" : first ? "top" : last ? "bottom" : null);
    })),
  });
}

/** What makes the lines void that a group leaves out: the codes of such lines of its op and size, where these are among its keys. */
export function leftOut(page: Page, g: Group): string {
  const key = (name: string) => { const i = page.by.indexOf(name); return i < 0 ? null : g.keys[i]!; };
  const [op, of] = [key("Operation"), key("Size")];
  const isOf = (w: Workload) => !w.valid && (op === null || op === w.op || op.startsWith(`${w.op} (`)) && (of === null || of === size(w.size_bytes) || of === sizesLike([1000])(w.size_bytes));
  const codes = page.runs.flatMap((r) => r.summary.workloads.flatMap((w, i) => (isOf(w) ? (r.spoiled[i] || r.status).match(/\b[A-Z]\d\d\b/g) ?? [] : [])));
  return [...new Set(codes)].sort().join(" ");
}

/** Rows of what is common, a column for each value of what is compared; null: that would be no table of two sides. */
export function pivotTable(page: Page): Table | null {
  const t = page.together;
  if (!t || page.by.length < 2 || t.values.length < 2 || t.values.length > 12) return null;
  const rest = page.by.filter((_, i) => i !== t.compared);
  const rows = new Map<string, string[]>();
  for (const g of page.groups) rows.set(restOf(g, t.compared).join("\n"), restOf(g, t.compared));
  const cell = (row: string, value: string): Group | undefined => page.groups.find((g) => g.keys[t.compared] === value && restOf(g, t.compared).join("\n") === row);
  const called = naming(page);
  const shown = (g: Group | undefined) => (!g ? "-" : g.ops_per_s ? estimate(g.ops_per_s) : `[INVALID${leftOut(page, g) && ` ${leftOut(page, g)}`}]`);
  // What the sizes move is asked for where all of them move something.
  const bytes = page.groups.every((g) => g.bytes_per_s || !g.ops_per_s) && page.by.includes("Size") && t.values.length <= 4;
  return table("Rates side by side", rest.length, [...rest, ...t.values.map((v) => `>${called(v)}, op/s`), ...(bytes ? t.values.map((v) => `>>${called(v)}, MiB/s`) : []), ...(t.values.length <= 3 ? t.values.map((v) => `>>${called(v)}, p99`) : [])],
    [...rows].map(([row, keys]) => [...keys, ...t.values.map((v) => shown(cell(row, v))),
      ...(bytes ? t.values.map((v) => (cell(row, v)?.bytes_per_s ? estimate(cell(row, v)!.bytes_per_s, 1 / MIB) : "-")) : []),
      ...(t.values.length <= 3 ? t.values.map((v) => (cell(row, v)?.ops_per_s ? latency(cell(row, v)!.p99_ns) : "-")) : [])]));
}
