// The whole latency distribution: percentile spectrum and density, both on a logarithmic axis.
import * as Plot from "@observablehq/plot";

import { base, chart, line, logAxis, mark, spaced, type ChartElement, type Key } from "./chart";
import type { LoadPoint, Run, Spectrum } from "./feed";
import { estimate, latency, latencyTick, logTicks, percent, significant } from "./format";
import { table, type Table } from "./table";

const CLOCKS: Record<string, string> = { response: "response", service: "service", ttfb: "first byte", submission: "submission" };

interface Curve { label: string; points: { beyond: number; ns: number; q: number }[]; index: number; dashed: boolean; sure: number }

const beyondTicks = (max: number): number[] => [2, 10, 100, 1000, 10_000, 100_000].filter((t) => t <= max);
const beyondLabel = (x: number): string => `${Number((100 * (1 - 1 / x)).toPrecision(7))} %`;

function spectrumPlot(curves: Curve[], width: number): SVGSVGElement | HTMLElement {
  const max = Math.max(10, ...curves.flatMap((c) => c.points.map((p) => p.beyond)));
  const all = curves.flatMap((c) => c.points.map((p) => ({ ...p, label: c.label })));
  return Plot.plot({
    ...base(width, width < 520 ? 280 : 340), marginRight: 24,
    x: { type: "log", domain: [1, max] },
    y: { type: "log" },
    marks: [
      ...logAxis("x", beyondTicks(max), "percentile →", beyondLabel, false),
      ...logAxis("y", logTicks(all.map((p) => p.ns)), "↑ latency", latencyTick),
      ...curves.flatMap((c) => {
        const m = mark(c.index);
        return line(c.points, c.dashed ? { ...m, dash: "1 3" } : m, (p) => p.beyond, (p) => p.ns, { width: c.dashed ? 1.6 : 2 });
      }),
      // Symbols at the percentiles that people name, so that curves are told apart without colour.
      ...curves.filter((c) => !c.dashed).map((c) => Plot.dot(c.points.filter((p) => [0.5, 0.9, 0.99, 0.999, 0.9999].includes(p.q)), {
        x: "beyond", y: "ns", symbol: mark(c.index).symbol, r: 4, stroke: mark(c.index).colour,
        fill: (p: Curve["points"][0]) => (p.q <= c.sure ? mark(c.index).colour : "var(--bg)"),
      })),
      Plot.tip(all, Plot.pointer({ x: "beyond", y: "ns", fill: "var(--panel)", stroke: "var(--line)",
        title: (p: (typeof all)[0]) => `${p.label}\n${Number((p.q * 100).toPrecision(7))} %: ${latency(p.ns)}` } as Plot.TipOptions)),
    ],
  });
}

const toCurve = (s: Spectrum, label: string, index: number): Curve => ({
  label, index, dashed: s.kind === "service", sure: s.sure_to,
  points: s.quantiles.map(([q, ns]) => ({ q, ns, beyond: 1 / (1 - q) })),
});

/** More curves than colours and dashes can tell apart are not drawn, and that is said. */
const MOST = 7;
const many = (run: Run): string => {
  const lines = new Set(run.spectra.map((s) => s.line)).size;
  return lines > MOST ? ` At most ${MOST} of ${lines} lines are drawn at a time.` : "";
};

/** Spectra of one op at a time when a run has many lines. */
export function spectrumCharts(run: Run): ChartElement[] {
  if (run.spectra.length === 0) return [];
  const ops = [...new Set(run.spectra.map((s) => run.summary.workloads[s.line]?.op ?? ""))];
  const split = run.summary.workloads.length > 4 && ops.length > 1;
  const curves = (op: string): Curve[] => {
    const lines = [...new Set(run.spectra.filter((s) => !split || run.summary.workloads[s.line]?.op === op).map((s) => s.line))].slice(0, MOST);
    const kinds = lines.length > 3 ? ["response"] : ["response", "service", "ttfb"];
    return lines.flatMap((l) => kinds.flatMap((kind) => {
      const s = run.spectra.find((x) => x.line === l && x.kind === kind);
      if (!s) return [];
      const name = run.labels[l] ?? "";
      return [toCurve(s, kinds.length > 1 ? `${name}, ${CLOCKS[kind]}` : name, 0)];
    })).map((c, i) => ({ ...c, index: i }));
  };
  const text = (op: string) => `Latency by percentile. ${curves(op).map((c) => {
    const at = (q: number) => c.points.find((p) => p.q === q);
    return `${c.label}: median ${latency(at(0.5)?.ns)}, p99 ${latency(at(0.99)?.ns)}${at(0.9999) ? `, p99.99 ${latency(at(0.9999)!.ns)}` : ""}`;
  }).join("; ")}.`;
  const keys = (op: string): Key[] => curves(op).map((c) => ({ label: c.label, mark: c.dashed ? { ...mark(c.index), dash: "1 3" } : mark(c.index), symbol: !c.dashed }));
  const figure = chart({
    title: "Latency by percentile",
    note: `Hollow symbols: fewer than ten operations lie beyond, so that the value may be chance.${many(run)}`,
    text,
    keys,
    ...(split ? { views: { label: "Operation", names: ops } } : {}),
    data: (op) => {
      const qs = [0.5, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999];
      const head = (q: number) => `>p${Number((q * 100).toPrecision(6))}`;
      return table("Latency by percentile", 1, ["line", ...qs.map(head)], curves(op).map((c) => [c.label, ...qs.map((q) => {
        const p = c.points.find((x) => x.q === q);
        return p ? latency(p.ns) : "";
      })]));
    },
    draw: (width, op) => spectrumPlot(curves(op), width),
  });
  return [figure, density(run)];
}

function density(run: Run): ChartElement {
  const all = run.spectra.filter((s) => s.kind === "response" && s.density.length > 1);
  const rows = all.flatMap((s) => {
    const top = Math.max(...s.density.map((d) => d[1]));
    return s.density.map(([ns, share]) => ({ row: run.labels[s.line] ?? "", ns, share, height: share / top }));
  });
  const order = all.map((s) => run.labels[s.line] ?? "");
  const marks = all.flatMap((s) => [0.5, 0.99].flatMap((q) => {
    const found = s.quantiles.find((x) => x[0] === q);
    return found ? [{ row: run.labels[s.line] ?? "", ns: found[1], name: q === 0.5 ? "p50" : "p99" }] : [];
  }));
  return chart({
    title: "Latency distribution",
    note: "Share of operations by response time, logarithmic; each row to its own height. Lines: p50 and p99. Two humps are two kinds of operation.",
    text: `Distribution of response times. ${all.map((s) => {
      const peak = s.density.reduce((a, b) => (b[1] > a[1] ? b : a));
      return `${run.labels[s.line]}: most common near ${latency(peak[0])}, highest ${latency(s.max_ns)}`;
    }).join("; ")}.`,
    data: () => table("Share of operations by response time", 2, ["line", ">from", ">share"], rows.filter((r) => r.share > 0).map((r) => [r.row, latency(r.ns), percent(r.share)])),
    draw: (width) => {
      const ticks = spaced(logTicks(rows.map((r) => r.ns)), width - 80, 56);
      return Plot.plot({
        ...base(width, 60 + order.length * (order.length > 3 ? 54 : 100)),
        marginLeft: 30, marginRight: 30,
        x: { type: "log" },
        // Above each row there is room for its name: beside the rows a long one would not fit on a phone.
        y: { domain: [0, order.length > 3 ? 1.9 : 1.5], axis: null },
        fy: { domain: order, label: null, padding: 0.1, axis: null },
        marks: [
          Plot.gridX(ticks),
          Plot.axisX(ticks, { label: "response time →", text: latencyTick, anchor: "bottom" }),
          Plot.areaY(rows, { fy: "row", x: "ns", y: "height", curve: "step-after", fill: "var(--s1)", fillOpacity: 0.35 }),
          Plot.lineY(rows, { fy: "row", x: "ns", y: "height", curve: "step-after", stroke: "var(--s1)", strokeWidth: 1.2 }),
          Plot.ruleY(order, { fy: (d: string) => d, y: () => 0, stroke: "var(--line)" }),
          Plot.ruleX(marks.filter((m) => m.name === "p50"), { fy: "row", x: "ns", y1: 0, y2: 1.1, stroke: "var(--ink)" }),
          Plot.ruleX(marks.filter((m) => m.name === "p99"), { fy: "row", x: "ns", y1: 0, y2: 1.1, stroke: "var(--ink)", strokeDasharray: "3 2" }),
          // To the left of one line and to the right of the other, so that near ones do not run into each other.
          Plot.text(marks.filter((m) => m.name === "p50"), { fy: "row", x: "ns", y: 1, text: "name", dx: -4, textAnchor: "end", fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 3, fontSize: 10 }),
          Plot.text(marks.filter((m) => m.name === "p99"), { fy: "row", x: "ns", y: 1, text: "name", dx: 4, textAnchor: "start", fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 3, fontSize: 10 }),
          Plot.text(order, { fy: (d: string) => d, frameAnchor: "top-left", text: (d: string) => d, dx: -28, dy: 1, textAnchor: "start", lineAnchor: "top", lineWidth: (width - 24) / 12, textOverflow: "ellipsis-end", fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 3 }),
        ],
      });
    },
  });
}

/** The same in figures, one row per load. */
export function loadTable(points: LoadPoint[]): Table | null {
  if (points.length === 0) return null;
  return table("Latency at fractions of the sustained limit", 1, ["load", ">offered/s", ">achieved/s", ">response p50", ">p99", ">p99.9", ">service p50", ">service p99", ">service p99.9", "held"], points.map((p) => [
    percent(p.fraction), significant(p.offered_per_s, 4), estimate(p.achieved_per_s), latency(p.response?.p50), latency(p.response?.p99), latency(p.response?.p999),
    latency(p.service?.p50), latency(p.service?.p99), latency(p.service?.p999), p.sustainable ? "✓\u00a0yes" : "✕\u00a0NO"]));
}

/** Latency at fractions of the sustained limit: response solid, service dashed. */
export function loadCurves(points: LoadPoint[]): ChartElement[] {
  const usable = points.filter((p) => p.response_spectrum.length > 1);
  if (usable.length === 0) return [];
  const curves: Curve[] = usable.flatMap((p, i) => ([["response", p.response_spectrum], ["service", p.service_spectrum]] as const).map(([kind, list]) => ({
    label: `${percent(p.fraction)} load, ${kind}`, index: i, dashed: kind === "service", sure: 1,
    points: list.map(([q, ns]) => ({ q, ns, beyond: 1 / (1 - q) })),
  }))).filter((c) => c.points.length > 1);
  return [chart({
    title: "Latency at fractions of the limit",
    note: "Open loop, from the intended start. Dotted, without symbols: service time, which hides the wait.",
    text: `Latency by percentile at ${usable.length} loads. ${usable.map((p) => `${percent(p.fraction)}: p99 ${latency(p.response?.p99)}`).join("; ")}.`,
    keys: usable.map((p, i) => ({ label: `${percent(p.fraction)}${p.sustainable ? "" : " (not sustained)"}`, mark: mark(i), symbol: true })),
    draw: (width) => spectrumPlot(curves, width),
  })];
}
