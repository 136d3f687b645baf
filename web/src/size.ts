// Rate and throughput over size, with the caps' asymptotes and the knee; and the size-by-op table.
import * as Plot from "@observablehq/plot";

import { aside, base, chart, line, logAxis, mark, sizeAxis, type ChartElement, type Key } from "./chart";
import type { Estimate, Run, SizeModel, Workload } from "./feed";
import { high, low, estimate, isFailure, isThrottled, latency, MIB, MISSING, count, sizeEstimate, sizesLike, logTicks, significant, sumOutcomes, tick } from "./format";
import { settled } from "./labels";
import { table, type Table } from "./table";

/** `void`: what makes the figure invalid; drawn hollow, on no line. */
interface Cell { size: number; rate: Estimate; group: string; binding?: string; void?: string }

const NO_BYTES = new Set(["stat", "list", "delete", "delete-batch", "fsync", "trim", "null"]);
export const movesBytes = (w: Workload): boolean => !NO_BYTES.has(w.op);

export const ORDER = ["put", "get", "get-range", "stat", "list", "delete", "delete-batch", "copy", "multipart", "upload-part", "read", "write", "fsync", "trim", "null"];

/** Lines that only their names tell apart: the steps of a search, which are read in their own order. */
export const hasSteps = (run: Run): boolean => {
  const all = run.summary.workloads;
  return new Set(all.map((w) => `${w.op} ${w.size_bytes} ${w.concurrency}`)).size < all.length;
};

export function sorted(run: Run): Workload[] {
  if (hasSteps(run)) return run.summary.workloads;
  return [...run.summary.workloads].sort((a, b) => ORDER.indexOf(a.op) - ORDER.indexOf(b.op) || a.size_bytes - b.size_bytes || a.concurrency - b.concurrency);
}

/** What makes this line invalid beside the others, as a mark. */
export const spoiled = (run: Run, w: Workload): string => run.spoiled[run.summary.workloads.indexOf(w)] ?? "";

/** Operation, object size, objects/s, MiB/s: as published tables have it, and what they leave out. */
export function sizeTable(run: Run): Table {
  const all = sorted(run);
  const show = sizesLike(all.map((w) => w.size_bytes));
  const varied = new Set(all.filter((w) => !w.together).map((w) => w.concurrency)).size > 1;
  const heads = run.block ? ["IO type", "Block size", ">In flight", ">IOPS"] : ["Operation", "Object size", ">In flight", ">Objects/s"];
  return table("Rate and throughput by operation and size", 2, [...heads, ">Throughput (MiB/s)", ...(run.block ? [">>Mean"] : []), ">>p50", ">p99", ">Throttled", ">Failed", "Step", "Validity"], all.map((w) => {
    const response = w.latency_ns.response;
    const throttled = sumOutcomes(w.outcomes, isThrottled);
    const failed = sumOutcomes(w.outcomes, isFailure);
    return [
      w.op.toUpperCase(), movesBytes(w) ? show(w.size_bytes) : "-", varied ? String(w.concurrency) : "", estimate(w.ops_per_s),
      movesBytes(w) ? estimate(w.bytes_per_s, 1 / MIB) : "-", ...(run.block ? [response ? latency(response.mean) : MISSING] : []), response ? latency(response.p50) : MISSING, response ? latency(response.p99) : MISSING,
      throttled ? count(throttled) : "", failed ? count(failed) : "", hasSteps(run) ? (w.together ? w.name.replace(/together$/, `all ${w.together} together`) : w.name) : "", spoiled(run, w),
    ];
  }));
}

function plot(width: number, groups: [string, Cell[]][], options: { unit: string; factor: (c: Cell) => number; extra: Plot.Markish[]; top?: number; labels: (b: number) => string }): SVGSVGElement | HTMLElement {
  const sizes = [...new Set(groups.flatMap(([, cells]) => cells.map((c) => c.size)))].sort((a, b) => a - b);
  const y = (c: Cell) => c.rate.value * options.factor(c);
  const all = groups.flatMap(([, cells]) => cells);
  const axis = sizeAxis(sizes, width - 80, "size →", options.labels);
  const n = groups.length;
  const spots = groups.flatMap(([, cells], i) => cells.map((c) => ({ x: c.size, y: y(c), dx: aside(i, n) })));
  const voids = groups.flatMap(([, cells], i) => cells.filter((c) => c.void).map((c) => ({ size: c.size, y: y(c), dx: aside(i, n), text: c.void!.replace(/[[\]]/g, "").replace(/^INVALID,? ?/, "") || "invalid" })));
  const least = (c: Cell) => Math.max(low(c.rate), c.rate.value * 0.01) * options.factor(c);
  return Plot.plot({
    ...base(width, (width < 520 ? 260 : 320) + (axis.rows - 1) * 14), marginRight: 34, marginTop: all.some((c) => c.void) ? 40 : 22, marginBottom: 36 + (axis.rows - 1) * 14,
    x: { type: "log" },
    y: { type: "log" },
    marks: [
      ...axis.marks,
      ...logAxis("y", logTicks([...all.flatMap((c) => [y(c), least(c), high(c.rate) * options.factor(c)]), ...(options.top ? [options.top] : [])]), `↑ ${options.unit}`, tick),
      ...options.extra,
      ...groups.flatMap(([, cells], i) => {
        const [m, dx] = [mark(i), aside(i, n)];
        const bar = { x1: "size", x2: "size", y1: least, y2: (c: Cell) => high(c.rate) * options.factor(c), stroke: m.colour, strokeWidth: 1.4, dx };
        const [valid, spoilt] = [cells.filter((c) => !c.void), cells.filter((c) => c.void)];
        return [
          Plot.link(valid, bar), Plot.link(spoilt, { ...bar, strokeDasharray: "2 2" }),
          ...line(valid, m, (c) => c.size, y, { symbols: true, dx }),
          Plot.dot(spoilt, { x: "size", y, symbol: m.symbol, stroke: m.colour, fill: "var(--bg)", strokeDasharray: "2 1", r: 4.5, dx }),
        ];
      }),
      Plot.text(voids, { x: "size", y: "y", text: "text", fontStyle: "italic", fill: "var(--muted)", stroke: "var(--bg)", strokeWidth: 3, render: settled(voids, spots) }),
      Plot.tip(all, Plot.pointer({ x: "size", y, fill: "var(--panel)", stroke: "var(--line)",
        title: (c: Cell) => `${c.group}, ${options.labels(c.size)}\n${estimate(c.rate, options.factor(c))} ${options.unit}${c.binding ? `\nlimited by ${c.binding}` : ""}${c.void ? `\n${c.void}` : ""}` } as Plot.TipOptions)),
    ],
  });
}

function grouped(cells: Cell[]): [string, Cell[]][] {
  const out = new Map<string, Cell[]>();
  for (const c of cells) out.set(c.group, [...(out.get(c.group) ?? []), c]);
  return [...out].map(([g, list]) => [g, list.sort((a, b) => a.size - b.size)]);
}

const legendOf = (groups: [string, Cell[]][]): Key[] => groups.map(([label], i) => ({ label, mark: mark(i), symbol: true }));

function words(groups: [string, Cell[]][], unit: string, factor: (c: Cell) => number, labels: (b: number) => string): string {
  return groups.map(([g, cells]) => `${g}: ${cells.map((c) => `${significant(c.rate.value * factor(c))} ${unit} at ${labels(c.size)}${c.void ? ` ${c.void}` : ""}`).join(", ")}`).join("; ");
}

const overSize = (run: Run): Workload[] => sorted(run).filter((w) => movesBytes(w) && w.ops_per_s !== null && w.ops_per_s.value > 0);

/** There are rates at several sizes. */
export const hasSizes = (run: Run): boolean => !hasSteps(run) && new Set(overSize(run).map((w) => w.size_bytes)).size > 1;

export const overSizes = (m: SizeModel): boolean => new Set(m.cells.map((c) => c.size_bytes)).size > 1;

export function sweepCharts(run: Run): ChartElement[] {
  if (!hasSizes(run)) return [];
  const lines = overSize(run);
  const varied = new Set(lines.map((w) => w.concurrency)).size > 1;
  const groups = grouped(lines.map((w) => ({ size: w.size_bytes, rate: w.ops_per_s!, group: varied ? `${w.op}, ${w.concurrency} in flight` : w.op, ...(w.valid ? {} : { void: spoiled(run, w) || "[INVALID]" }) })));
  const hollow = lines.some((w) => !w.valid) ? " Hollow, with its code: invalid, and on no line." : "";
  const labels = sizesLike(lines.map((w) => w.size_bytes));
  const make = (title: string, unit: string, factor: (c: Cell) => number) => chart({
    title, text: `${title}. ${words(groups, unit, factor, labels)}.`, keys: legendOf(groups), note: `Both axes logarithmic; bars are 95 % intervals.${hollow}`,
    data: () => sizeTable(run),
    draw: (width) => plot(width, groups, { unit, factor, extra: [], labels }),
  });
  return [make("Rate by size", run.block ? "IOPS" : "objects/s", () => 1), make("Throughput by size", "MiB/s", (c) => c.size / MIB)];
}

/** The limit model: measured cells, the ops cap (flat), the bytes cap (falling), and the knee between them. */
export function modelCharts(models: SizeModel[]): ChartElement[] {
  return models.filter((m) => m.cells.length > 0).map((m) => {
    const cells = m.cells.map((c) => ({ size: c.size_bytes, rate: c.ops_per_s, group: `${c.concurrency} in flight`, binding: c.binding }));
    const groups = grouped(cells);
    const labels = sizesLike(m.cells.map((c) => c.size_bytes));
    const [low, high] = [Math.min(...cells.map((c) => c.size)), Math.max(...cells.map((c) => c.size))];
    const O = m.ops_per_s?.value ?? m.ops_at_least;
    const W = m.bytes_per_s?.value ?? m.bytes_at_least;
    const knee = m.knee_bytes;
    // The bytes cap is drawn only where it is in reach, else it would stretch the axis.
    const from = O && W ? Math.max(low, W / (3 * O)) : low;
    const label = (text: string) => ({ text: [text], fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 4, fontWeight: 600 });
    const extra: Plot.Markish[] = [
      ...(knee ? [Plot.rect([knee], { x1: "low", x2: "high", fill: "var(--event)" }), Plot.ruleX([knee.value], { stroke: "var(--muted)", strokeDasharray: "2 3" }),
        Plot.text([knee.value], { x: (x: number) => x, frameAnchor: "bottom", ...label(`knee ${sizeEstimate(knee)}`), dy: -6 })] : []),
      ...(O ? [Plot.link([0], { x1: low, x2: high, y1: O, y2: O, stroke: "var(--muted)", strokeDasharray: "8 3", strokeWidth: 1.6 }),
        Plot.text([0], { x: low, y: O, dy: -9, textAnchor: "start", ...label(`${m.ops_per_s ? "ops cap" : "ops cap at least"} ${significant(O)}/s`) })] : []),
      ...(W ? [Plot.link([0], { x1: from, x2: high, y1: W / from, y2: W / high, stroke: "var(--muted)", strokeDasharray: "2 3", strokeWidth: 1.6 }),
        Plot.text([0], { x: from, y: W / from, dx: 8, dy: 6, textAnchor: "start", ...label(`${m.bytes_per_s ? "bytes cap" : "bytes cap at least"} ${significant(W / 1e6)} MB/s`) })] : []),
    ];
    return chart({
      title: `Which cap binds at which size: ${m.op_class}`,
      note: `${knee ? `Left of the knee, ${sizeEstimate(knee)}, the cap on operations holds; right of it the cap on bytes.` : "Where the points lie along a dashed line, that cap holds."} Model reading: ${m.reading || "open"}.`,
      text: `Rate by size, logarithmic. ${words(groups, "per second", () => 1, labels)}.${knee ? ` The knee is at ${sizeEstimate(knee)}.` : ""}`,
      keys: legendOf(groups),
      data: () => table(`${m.op_class}: rate by size and concurrency, and what limits it`, 2, ["size", ">in flight", ">op/s", ">model", "limited by", ">room to next"], m.cells.map((c) => [
        labels(c.size_bytes), String(c.concurrency), estimate(c.ops_per_s), c.predicted === null ? "" : significant(c.predicted), c.binding, c.room === null ? "" : `${((c.room - 1) * 100).toFixed(0)} %`])),
      draw: (width) => plot(width, groups, { unit: "op/s", factor: () => 1, extra, ...(O && W ? { top: 3 * O } : {}), labels }),
    });
  });
}

