// Charts over time: rate, throughput, latency, errors, resources. All share the run's own time axis.
import * as Plot from "@observablehq/plot";

import { base, chart, line, logAxis, mark, type ChartElement, type Key, type Mark } from "./chart";
import type { Hold, Outage, Resource, Run, Series, Stage } from "./feed";
import { high, low, bytes, clock, estimate, latency, latencyTick, logTicks, MIB, MISSING, outcomeName, plain, seconds, significant, tick } from "./format";
import { h } from "./dom";
import { keyed, unfold } from "./keyed";
import { kindOf } from "./kinds";
import { LANE, panels, phaseLane, phaseNote } from "./pieces";
import { ORDER } from "./size";
import { table, tableElement, type Table } from "./table";

interface Point { t: number; y: number; z: string; label: string; group: string }

/** One drawn line: several series (the repeats of a sweep) may share it. */
export interface Track { label: string; mark: Mark; series: Series[] }

/** In a sweep one cell runs at a time, so its lines are told apart by op; else each line of the summary has its own. */
export function tracks(run: Run): Track[] {
  const out = new Map<string, Series[]>();
  for (const s of run.series) {
    const key = run.sweep ? s.op : s.label;
    out.set(key, [...(out.get(key) ?? []), s]);
  }
  // In the order of the tables.
  const rank = (s: Series[]) => ORDER.indexOf(s[0]!.op);
  return [...out].sort(([, a], [, b]) => rank(a) - rank(b)).map(([label, series], i) => ({ label, mark: mark(i), series }));
}

type Column = (s: Series) => (number | null)[];

function points(track: Track, column: Column, factor = 1): Point[] {
  return track.series.flatMap((s) => column(s).flatMap((y, i) => (y === null ? [] : [{
    t: s.start_s + (i + 0.5) * s.step_s, y: y * factor, z: `${s.stage}`, label: s.label, group: track.label,
  }])));
}

/** Stages and levels are rounded each on its own. */
const EDGE = 1e-6;

/** Labels of an axis that are nearer to each other run together, pixels. */
const LEAST_APART = 36;

/** The end of what a hold has seen, in the run's time: its horizon is counted from the start of the stage that it is of. */
export function seenTo(run: Run, hold: Hold): number {
  const from = hold.levels[0]?.start_s;
  const mine = run.stages.filter((s) => from === undefined || (s.start_s - EDGE <= from && from < s.end_s - EDGE));
  // Without a level its length tells which one that is; of several as long the last was judged.
  const off = (s: Stage) => Math.abs(s.end_s - s.start_s - hold.horizon_s);
  const of = [...mine].sort((a, b) => off(b) - off(a) || a.start_s - b.start_s).at(-1);
  return (of?.start_s ?? from ?? 0) + hold.horizon_s;
}

export function span(run: Run): [number, number] {
  const ends = run.stages.flatMap((s) => [s.start_s, s.end_s]);
  const horizon = run.analysis.holds.map((x) => seenTo(run, x));
  return ends.length === 0 ? [0, 1] : [Math.min(...ends), Math.max(...ends, ...horizon)];
}

export function timeAxis(domain: [number, number], width: number): Plot.ScaleOptions {
  const { label, tick: tickFormat, ticks } = clock(domain, width);
  // What was made ready took its time: an axis that does not begin at a round number says where it begins.
  const apart = ((ticks[0] ?? domain[1]) - domain[0]) * ((width - 72) / (domain[1] - domain[0] || 1));
  return apart < LEAST_APART ? { domain, label, tickFormat, ticks } : { domain, label, tickFormat: (s: number) => tickFormat(Number(s.toFixed(1))), ticks: [domain[0], ...ticks] };
}

/** The shaded measured windows, with their edges as lines so that they show in print. */
export function windows(run: Run): Plot.Markish[] {
  const all = run.stages.flatMap((s) => (s.window ? [{ x1: s.window[0], x2: s.window[1] }] : []));
  const edges = all.length > 6 ? [] : all.flatMap((w) => [w.x1, w.x2]);
  return [
    Plot.rect(all, { x1: "x1", x2: "x2", fill: "var(--window)" }),
    Plot.ruleX(edges, { stroke: "var(--window-edge)", strokeDasharray: "1 3" }),
  ];
}

/** What came before the measured windows. Before the first figure of a run that goes on, all there is. */
function warmUps(run: Run): { x1: number; x2: number }[] {
  const yet = run.live && run.summary.workloads.length === 0;
  return run.stages.flatMap((s) => {
    const to = s.window?.[0] ?? (yet ? s.end_s : s.start_s);
    return to - s.start_s > EDGE ? [{ x1: s.start_s, x2: to }] : [];
  });
}

/** The name of the warm-up where it has room: upright where it is too short for it. */
function warmUp(run: Run, perSecond: number): Plot.Markish[] {
  const all = warmUps(run);
  const wide = (w: { x1: number; x2: number }) => (w.x2 - w.x1) * perSecond;
  const text = { x: (w: { x1: number; x2: number }) => (w.x1 + w.x2) / 2, frameAnchor: "bottom" as const, text: () => "warm-up", fill: "var(--muted)", stroke: "var(--bg)", strokeWidth: 4 };
  return [
    Plot.text(all.filter((w) => wide(w) >= 54), { ...text, dy: -5 }),
    // Of many stages it stands in the note alone.
    Plot.text(all.length > 6 ? [] : all.filter((w) => wide(w) < 54 && wide(w) >= 15), { ...text, dy: -6, rotate: -90, textAnchor: "start" }),
  ];
}

function tips(all: Point[], unit: (y: number) => string, at: (t: number) => string): Plot.Markish[] {
  const title = (p: Point) => `${p.label}\n${at(p.t)}: ${unit(p.y)}`;
  return [
    Plot.ruleX(all, Plot.pointerX({ x: "t", stroke: "var(--muted)", strokeOpacity: 0.5 })),
    Plot.dot(all, Plot.pointer({ x: "t", y: "y", r: 3, fill: "var(--ink)" })),
    Plot.tip(all, Plot.pointer({ x: "t", y: "y", title, fill: "var(--panel)", stroke: "var(--line)" } as Plot.TipOptions)),
  ];
}

function sampleTable(title: string, list: Track[], columns: [string, Column, (y: number) => string][]): Table {
  const rows: string[][] = [];
  // A column without any value is left out; in one with some, what is not known is said.
  const missing = columns.map(([, c]) => (list.some((t) => t.series.some((s) => c(s).some((y) => y !== null))) ? MISSING : ""));
  for (const track of list) {
    for (const s of track.series) {
      const n = Math.max(...columns.map(([, c]) => c(s).length));
      // At most some sixty rows a series: the page is read, the raw data is in the run directory.
      const every = Math.max(1, Math.ceil(n / 60));
      for (let i = 0; i < n; i += every) {
        rows.push([s.label, String(Number((s.start_s + i * s.step_s).toFixed(2))), ...columns.map(([, c, f], k) => {
          const y = c(s)[i];
          return y === null || y === undefined ? missing[k]! : f(y);
        })]);
      }
    }
  }
  return table(title, 2, ["series", ">from, s", ...columns.map(([name]) => `>${name}`)], rows);
}

/** Where levels of two lines are of one time, their intervals lie on each other, and so do the figures beside them. */
const atOnce = (holds: Hold[]): boolean => holds.some((x, i) => holds.slice(i + 1).some((y) => x.levels.some((a) => y.levels.some((b) => a.start_s < b.end_s && b.start_s < a.end_s))));

/** Of falls of several lines at one time one has the words; `room`: seconds that these take. */
function apart(cliffs: Hold["cliffs"], room: number): Hold["cliffs"] {
  const out: Hold["cliffs"] = [];
  for (const c of [...cliffs].sort((a, b) => a.at_s - b.at_s)) if (out.length === 0 || c.at_s - out.at(-1)!.at_s > room) out.push(c);
  return out;
}

/** Levels, cliffs, events and horizon of the steady-state analysis. `perSecond`: pixels. */
function held(run: Run, holds: Hold[], factor: number, perSecond: number): Plot.Markish[] {
  const levels = atOnce(holds) ? [] : holds.flatMap((x) => x.levels);
  const cliffs = holds.flatMap((x) => x.cliffs);
  const horizon = [...new Set(holds.map((x) => Number(seenTo(run, x).toFixed(3))))];
  const text = (l: Hold["levels"][0]) => estimate(l.per_s, factor);
  // The figure of a level stands beside the name of the warm-up, where it has room there.
  const from = (l: Hold["levels"][0]) => {
    const measured = run.stages.find((s) => s.window && s.start_s - EDGE <= l.start_s && l.start_s < s.window[0])?.window?.[0];
    return measured !== undefined && (l.end_s - measured) * perSecond > text(l).length * 7.5 + 12 ? measured : l.start_s;
  };
  return [
    Plot.rect(holds.flatMap((x) => x.events), { x1: (e: [number, number]) => e[0], x2: (e: [number, number]) => e[1], fill: "var(--event)" }),
    Plot.rect(levels, { x1: "start_s", x2: "end_s",
      // No rate is less than none.
      y1: (l: Hold["levels"][0]) => Math.max(0, low(l.per_s)) * factor, y2: (l: Hold["levels"][0]) => Math.max(0, high(l.per_s)) * factor, fill: "var(--ink)", fillOpacity: 0.18, ariaDescription: "level" }),
    Plot.link(levels, { x1: "start_s", x2: "end_s", y1: (l: Hold["levels"][0]) => l.per_s.value * factor, y2: (l: Hold["levels"][0]) => l.per_s.value * factor, stroke: "var(--ink)", strokeWidth: 1.6 }),
    Plot.text(levels, { x: from, y: (l: Hold["levels"][0]) => l.per_s.value * factor, text, dy: -9, dx: 6, textAnchor: "start", fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 4, fontWeight: 600 }),
    Plot.ruleX(cliffs, { x: "at_s", stroke: "var(--bad)", strokeWidth: 1.6, strokeDasharray: "5 3" }),
    Plot.text(apart(cliffs, 90 / perSecond), { x: "at_s", frameAnchor: "top", text: (c: Hold["cliffs"][0]) => `falls at ${seconds(c.at_s)}`, dx: 6, dy: -9, textAnchor: "start", fill: "var(--bad)", stroke: "var(--bg)", strokeWidth: 4 }),
    Plot.ruleX(horizon, { stroke: "var(--ink)", strokeWidth: 2.5, ariaDescription: "seen to here" }),
    Plot.text(horizon.slice(-1), { x: (x: number) => x, frameAnchor: "bottom", text: () => "seen to here", dx: -5, dy: -5, textAnchor: "end", fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 4 }),
  ];
}

/** Outages, times in which everything was refused, and what persons noted. */
function happened(run: Run): Plot.Markish[] {
  const outages = run.analysis.outages ?? [];
  const throttled = run.analysis.throttled ?? [];
  const remarks = run.analysis.remarks ?? [];
  return [
    Plot.rect(outages, { x1: "from_s", x2: (o: Outage) => o.to_s ?? o.seen_until_s, fill: "var(--bad)", fillOpacity: 0.15 }),
    Plot.text(outages, { x: "from_s", frameAnchor: "bottom", text: (o: Outage) => `no answers, ${seconds((o.to_s ?? o.seen_until_s) - o.from_s)}`, dx: 4, dy: -18, textAnchor: "start", fill: "var(--bad)", stroke: "var(--bg)", strokeWidth: 4 }),
    Plot.rect(throttled, { x1: "from_s", x2: (o: Outage) => o.to_s ?? o.seen_until_s, fill: "var(--ink)", fillOpacity: 0.07 }),
    // Of a rhythm the first is named for all.
    Plot.text(throttled.slice(0, 1), { x: "from_s", frameAnchor: "bottom", text: (o: Outage) => `all refused, ${seconds((o.to_s ?? o.seen_until_s) - o.from_s)}${throttled.length > 1 ? `, ${throttled.length} times` : ""}`, dx: 4, dy: -34, textAnchor: "start", fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 4 }),
    Plot.ruleX(remarks, { x: "at_s", stroke: "var(--ink)", strokeDasharray: "2 3" }),
    Plot.text(remarks, { x: "at_s", frameAnchor: "top", text: "text", dx: 4, dy: 8, textAnchor: "start", fill: "var(--ink)", stroke: "var(--bg)", strokeWidth: 4 }),
  ];
}

function summaryOf(list: Track[], column: Column, unit: (y: number) => string): string {
  return list.map((t) => {
    const ys = points(t, column).map((p) => p.y);
    return ys.length === 0 ? "" : `${t.label}: from ${unit(Math.min(...ys))} to ${unit(Math.max(...ys))}`;
  }).filter(Boolean).join("; ");
}

const keys = (list: Track[]): Key[] => (list.length > 1 ? list.map((t) => ({ label: t.label, mark: t.mark })) : []);

function overTime(run: Run, list: Track[], title: string, column: Column, factor: number, unit: string, show: (y: number) => string, holds: Hold[], note?: string): ChartElement {
  const domain = span(run);
  const offered = [...new Set(list.flatMap((t) => t.series).map((s) => s.offered_per_s))].filter((x) => x !== null);
  return chart({
    title,
    text: `${title} from ${seconds(domain[0])} to ${seconds(domain[1])} of the run. ${summaryOf(list, column, show)}. The measured windows are shaded.`,
    note: `${note ?? ""}${warmUps(run).length ? " Grey before it: the warm-up." : ""}${atOnce(holds) ? " Levels of lines that ran at once are not drawn: they would lie on each other." : ""}${phaseNote(run)}`.trim(),
    keys: keys(list),
    data: () => sampleTable(title, list, [[unit, column, (y) => significant(y * factor, 4)]]),
    draw: (width) => {
      const all = list.flatMap((t) => points(t, column, factor));
      const named = phaseLane(run, domain, width);
      const lane = phaseNote(run) ? LANE : 0;
      const perSecond = (width - 72) / (domain[1] - domain[0] || 1);
      return Plot.plot({
        ...base(width, (width < 520 ? 220 : 280) + lane), marginTop: 22 + lane,
        x: timeAxis(domain, width),
        y: { label: `↑ ${unit}`, grid: true, tickFormat: tick, ...(all.every((p) => p.y === 0) ? { domain: [0, 1] } : { zero: true, nice: true }), ticks: 5 },
        marks: [
          ...windows(run),
          Plot.rect(warmUps(run), { x1: "x1", x2: "x2", fill: "var(--muted)", fillOpacity: 0.1, ariaDescription: "warm-up" }),
          Plot.ruleY([0], { stroke: "var(--line)" }),
          ...(unit === "op/s" && offered.length === 1 ? [Plot.ruleY(offered, { stroke: "var(--muted)", strokeDasharray: "2 2" })] : []),
          ...list.flatMap((t) => line(points(t, column, factor), t.mark, (p) => p.t, (p) => p.y, { z: (p) => p.z, width: 1.5 })),
          ...(lane ? named : []),
          ...warmUp(run, perSecond),
          ...happened(run),
          ...held(run, holds, factor, perSecond),
          ...tips(all, (y) => `${significant(y, 4)} ${unit}`, (t) => seconds(t)),
        ],
      });
    },
  });
}

/** Of a sweep a panel a cell: on one axis they would be pieces that nobody can name. */
export function rateCharts(run: Run): ChartElement[] {
  const list = tracks(run);
  if (list.length === 0) return [];
  const cells = kindOf(run) === "sweep" ? panels(run) : null;
  if (cells) return [cells];
  const opsHolds = run.analysis.holds.filter((x) => x.unit !== "bytes");
  const byteHolds = run.analysis.holds.filter((x) => x.unit === "bytes");
  const out = [overTime(run, list, "Operations over time", (s) => s.ops_per_s, 1, run.block ? "IOPS" : "op/s", (y) => `${significant(y)} per second`, opsHolds,
    "Only operations that ended well. Shaded: the measured window.")];
  const moving = list.map((t) => ({ ...t, series: t.series.filter((s) => s.bytes_per_s.some((b) => b !== null && b > 0)) })).filter((t) => t.series.length > 0);
  if (moving.length > 0) {
    const ok = moving.some((t) => t.series.some((s) => s.bytes_of_ok));
    out.push(overTime(run, moving, "Throughput over time", (s) => s.bytes_per_s, 1 / MIB, "MiB/s", (y) => `${bytes(y)} per second`, byteHolds,
      ok ? "Payload of operations that ended well, counted when they end." : "Payload as it moved."));
  }
  return out;
}

const PERCENTILES: [string, Column][] = [
  ["p50", (s) => s.p50_ns], ["p90", (s) => s.p90_ns], ["p99", (s) => s.p99_ns], ["p99.9", (s) => s.p999_ns], ["max", (s) => s.max_ns],
];

export function latencyOverTime(run: Run): ChartElement[] {
  const sweep = kindOf(run) === "sweep";
  const cells = (): Track[] => run.labels.flatMap((label, i) => {
    const series = run.series.filter((s) => s.line === i);
    return series.length ? [{ label, mark: mark(0), series }] : [];
  });
  const all = (sweep ? cells() : tracks(run)).filter((t) => points(t, (s) => s.p50_ns).length > 0);
  if (all.length === 0) return [];
  const whole = span(run);
  // Of a cell its own time, its repeats included.
  const own = (t: Track): [number, number] => {
    const mine = run.stages.filter((x) => t.series.some((s) => s.stage === x.index));
    return sweep && mine.length ? [Math.min(...mine.map((x) => x.start_s)), Math.max(...mine.map((x) => x.end_s))] : whole;
  };
  const of = (view: string): Track => all.find((t) => t.label === view) ?? all[0]!;
  const text = (view: string) => `Latency percentiles of ${of(view).label} over time, logarithmic. ${PERCENTILES.map(([name, c]) => {
    const ys = points(of(view), c).map((p) => p.y).sort((a, b) => a - b);
    return ys.length ? `${name} is mostly ${latency(ys[Math.floor(ys.length / 2)])}` : "";
  }).filter(Boolean).join(", ")}.`;
  return [chart({
    title: "Latency over time",
    note: "Response time of operations that ended well; in a closed loop this is the service time.",
    text,
    keys: PERCENTILES.map(([label], i) => ({ label, mark: mark(i) })),
    ...(all.length > 1 ? { views: { label: sweep ? "Cell" : "Operation", names: all.map((t) => t.label) } } : {}),
    data: (view) => sampleTable("Latency over time", [of(view)], PERCENTILES.map(([name, c]) => [name, c, latency])),
    draw: (width, view) => Plot.plot({
      ...base(width, width < 520 ? 240 : 300),
      x: timeAxis(own(of(view)), width),
      y: { type: "log" },
      marks: [
        ...logAxis("y", logTicks(PERCENTILES.flatMap(([, c]) => points(of(view), c).map((p) => p.y))), "↑ latency", latencyTick),
        ...windows(run),
        ...PERCENTILES.flatMap(([, c], i) => line(points(of(view), c), mark(i), (p) => p.t, (p) => p.y, { z: (p) => p.z, width: 1.4 })),
        ...tips(PERCENTILES.flatMap(([name, c]) => points(of(view), c).map((p) => ({ ...p, label: `${p.label} ${name}` }))), latency, (t) => seconds(t)),
      ],
    }),
  })];
}

export function errorsOverTime(run: Run): ChartElement[] {
  const names = [...new Set(run.series.flatMap((s) => Object.keys(s.outcomes_per_s)))].sort();
  if (names.length === 0) return [];
  const list: Track[] = names.map((name, i) => ({ label: outcomeName(name), mark: mark(i + 1), series: run.series.filter((s) => s.outcomes_per_s[name]) }));
  const column = (name: string): Column => (s) => s.outcomes_per_s[names.find((n) => outcomeName(n) === name) ?? name] ?? [];
  const domain = span(run);
  // Of a sweep the cells in which there were any.
  const where = kindOf(run) === "sweep" ? new Set(run.series.filter((s) => Object.values(s.outcomes_per_s).some((c) => c.some((v) => v))).map((s) => s.stage)) : undefined;
  const note = phaseNote(run, where);
  const lane = note ? LANE : 0;
  return [chart({
    title: "Refused and failed over time",
    note: `Attempts per second. What the storage refused because of its limit (429, 503 SlowDown) is no failure.${note}`,
    text: `Attempts that did not end well, per second. ${list.map((t) => summaryOf([t], column(t.label), (y) => significant(y))).join("; ")}.`,
    keys: list.map((t) => ({ label: t.label, mark: t.mark })),
    data: () => ({ ...sampleTable("Attempts per second that did not end well", [{ label: "", mark: mark(0), series: run.series.filter((s) => Object.keys(s.outcomes_per_s).length > 0) }],
      names.map((n) => [outcomeName(n), column(n), (y) => significant(y)])) }),
    draw: (width) => Plot.plot({
      ...base(width, 200 + lane), marginTop: 22 + lane,
      x: timeAxis(domain, width),
      y: { label: "↑ per second", grid: true, tickFormat: tick, zero: true, nice: true, ticks: 4 },
      marks: [
        ...windows(run),
        ...(lane ? phaseLane(run, domain, width, where) : []),
        Plot.ruleY([0], { stroke: "var(--line)" }),
        ...list.flatMap((t) => line(points(t, column(t.label)), t.mark, (p) => p.t, (p) => p.y, { z: (p) => p.z })),
        ...tips(list.flatMap((t) => points(t, column(t.label)).map((p) => ({ ...p, label: `${p.label} ${t.label}` }))), (y) => `${significant(y)} per second`, (t) => seconds(t)),
      ],
    }),
  })];
}

const showResource = (r: Resource, v: number): string =>
  r.unit === "B" ? bytes(v) : r.unit === "B/s" ? `${bytes(v)}/s` : `${plain(v, 3)}${r.unit ? ` ${r.unit}` : ""}`;

/** Small strips under one another, aligned with the charts over time. */
export function resourceStrips(run: Run): HTMLElement | null {
  const known = (r: Resource): number[] => r.v.filter((v) => v !== null);
  // Of one that was only begun there is nothing to show yet.
  const all = run.resources.filter((r) => known(r).length > 0);
  if (all.length === 0) return null;
  const domain = span(run);
  const mean = (v: number[]) => v.reduce((a, b) => a + b, 0) / v.length;
  const strip = (r: Resource): HTMLElement => {
    const data = r.t.map((t, i) => ({ t, v: r.v[i] ?? null }));
    const values = known(r);
    const highest = Math.max(...values);
    // Shares that come near to all are shown against all of it; small ones against their threshold.
    const whole = r.unit === "%" && (highest > 20 || (r.threshold ?? 0) > 20);
    const top = whole ? 100 : Math.max(highest * 1.05, (r.threshold ?? 0) * 1.2);
    const over = r.threshold !== null && values.filter((v) => v >= r.threshold!).length / values.length;
    const text = `${r.name}: mean ${showResource(r, mean(values))}, highest ${showResource(r, highest)}`;
    const place = chart({
      title: r.name,
      heading: "h4",
      text,
      figures: h("p", { class: "figures" }, `mean ${showResource(r, mean(values))}, highest ${showResource(r, highest)}`,
        over ? h("strong", {}, ` above ${showResource(r, r.threshold!)} for ${(100 * over).toFixed(0)} % of the time`) : null),
      draw: (width) => Plot.plot({
        ...base(width, 54), marginTop: 4, marginBottom: 4, marginLeft: 4, marginRight: 4,
        x: { domain, axis: null },
        y: { domain: [0, top || 1], axis: null },
        marks: [
          ...windows(run),
          Plot.areaY(data, { x: "t", y1: 0, y2: "v", fill: "var(--s1)", fillOpacity: 0.25 }),
          Plot.lineY(data, { x: "t", y: "v", stroke: "var(--s1)", strokeWidth: 1.3 }),
          ...(r.threshold !== null && r.threshold <= top ? [Plot.ruleY([r.threshold], { stroke: "var(--bad)", strokeDasharray: "4 3" })] : []),
          Plot.ruleY([0], { stroke: "var(--line)" }),
          Plot.tip(data.filter((d) => d.v !== null), Plot.pointerX({ x: "t", y: "v", title: (d: { t: number; v: number | null }) => `${seconds(d.t)}: ${showResource(r, d.v ?? 0)}`, fill: "var(--panel)", stroke: "var(--line)" } as Plot.TipOptions)),
        ],
      }),
    });
    place.classList.add("strip");
    return place;
  };
  const hosts = [...new Set(all.map((r) => `${r.host} (${r.role})`))];
  const rows = all.map((r) => [r.host, r.name, r.unit, showResource(r, mean(known(r))), showResource(r, Math.max(...known(r))), r.threshold === null ? "" : showResource(r, r.threshold)]);
  return h("div", {}, ...hosts.map((host) => keyed(host, h("div", {}, h("h3", {}, host),
    h("div", { class: "strips" }, ...all.filter((r) => `${r.host} (${r.role})` === host).map(strip))))),
    unfold("Show as table", () => [tableElement(table("Resources", 2, ["host", "resource", "unit", ">mean", ">highest", ">threshold"], rows), { copy: true })]));
}
