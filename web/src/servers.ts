// What the servers did: where the bytes went and what each part could carry, the ceilings in order of percent, and hosts over the run's
// own time.
import * as Plot from "@observablehq/plot";

import { base, chart, type ChartElement } from "./chart";
import { h } from "./dom";
import type { BackgroundSpan, ResourceUse, Run, ServerCourse, ServersSummary, ServersWindow, TrafficUse } from "./feed";
import { MISSING, percent, seconds, significant } from "./format";
import { keyed, unfold } from "./keyed";
import { table, tableElement, type Table } from "./table";
import { span, timeAxis, windows } from "./time";

const AT = "at its ceiling";
/** Hosts that are drawn at once; those of a rack are looked at one by one. */
const MOST_HOSTS = 8;

const mb = (v: number): string => `${significant(v / 1e6)} MB/s`;

/** As the tables of the terminal have it. */
function amount(r: ResourceUse, v: number): string {
  if (r.unit === "busy") return percent(v);
  if (r.unit !== "B/s") return `${significant(v)} ${r.unit}`;
  return r.resource === "drive" ? mb(v) : `${significant((v * 8) / 1e9)} Gbit/s`;
}

const ofStage = (s: ServersSummary, w: ServersWindow): string => (s.windows.length > 1 ? ` of stage ${w.stage + 1}` : "");

/** In order of percent, as they come; what nobody looked at is named as that, and stands below. */
export function ceilings(s: ServersSummary | undefined): Table[] {
  return (s?.windows ?? []).map((w) => {
    const seen = w.resources.map((r) => [r.resource, r.host, r.device, amount(r, r.reached), r.ceiling === null ? MISSING : amount(r, r.ceiling), r.share === null ? MISSING : percent(r.share), r.time_above === null ? MISSING : percent(r.time_above), r.verdict, r.ceiling_of ?? ""]);
    const unseen = s!.not_observed.filter((n) => !n.includes(" (")).map((n) => [n, "", "", MISSING, MISSING, MISSING, MISSING, "not observed", ""]);
    return table(`Resources in order of percent${ofStage(s!, w)}`, 3, ["resource", "host", "device or daemon", ">>reached", ">>ceiling", ">percent", ">>time above", "verdict", "ceiling by"], [...seen, ...unseen]);
  });
}

function expectation(t: TrafficUse): string {
  if (t.expected === null) return MISSING;
  return t.expected_least !== null && t.expected_least < t.expected ? `${significant(t.expected_least)} to ${significant(t.expected)}` : significant(t.expected);
}

export function trafficTable(s: ServersSummary | undefined): Table[] {
  return (s?.windows ?? []).filter((w) => w.traffic?.length).map((w) => table(`Traffic beside the clients\u2019${ofStage(s!, w)}`, 1, ["bytes", ">rate", ">for each of the clients\u2019", ">expected", "counted by"],
    w.traffic!.map((t) => [t.what, mb(t.per_s), t.per_byte === null ? MISSING : significant(t.per_byte), expectation(t), t.counted_by])));
}

/** What all that lies in a pool takes of the drives. */
export function poolTable(s: ServersSummary | undefined): Table | null {
  if (!s?.pools?.length) return null;
  const [gib, ratio] = [(v: number) => significant(v / 2 ** 30), (v: number | null) => (v === null ? MISSING : significant(v))];
  return table("Pools", 2, ["pool", "kept as", ">stored GiB", ">on drives GiB", ">for each byte", ">expected"], s.pools.map((p) => [p.name, p.redundancy, gib(p.stored_bytes), gib(p.used_bytes), ratio(p.per_byte), ratio(p.expected)]));
}

export function backgroundTable(s: ServersSummary | undefined): Table | null {
  return s?.background?.length ? table("Work in the background", 1, ["what", ">from", ">to", "in a measured window"], s.background.map((b) => [b.what, seconds(b.start_s), seconds(b.end_s), b.in_window ? "yes" : "no"])) : null;
}

/** What the closed fold says. */
export function ofServers(run: Run): string | null {
  const s = run.summary.servers;
  if (!s) return null;
  const said = s.windows.length === 0 ? "too few readings" : s.windows.length > 1 ? `${s.windows.length} windows` : windowSays(s.windows[0]!);
  const worked = s.background?.some((b) => b.in_window) ? ", work in the background" : "";
  return said + worked;
}

function windowSays(w: ServersWindow): string {
  const first = w.resources.find((r) => r.share !== null);
  if (!first) return "no ceiling is known";
  const full = w.resources.filter((r) => r.verdict === AT);
  const name = (r: ResourceUse) => `${r.resource} of ${r.host} at ${percent(r.share ?? 0)}`;
  if (full.length === 0) return `none at its ceiling, ${name(first)}`;
  return `${full.length} of ${w.resources.length} at their ceilings, ${name(full[0]!)}`;
}

/** A stream of bytes between two places; `null`: nobody told of it. */
interface Stream { text: string; more: string; rate: number | null; shares: boolean }

const ratio = (t: TrafficUse | undefined): string => (t?.per_byte == null ? "" : `${significant(t.per_byte)} a byte${t.expected === null ? "" : `, ${expectation(t)} expected`}`);

/** Whether this part of the way is the one at its ceiling. */
const binds = (w: ServersWindow, kinds: string[]): boolean => w.limit?.verdict === "one" && kinds.includes(w.limit.resource);

const BETWEEN = "between servers";

interface Flow { hosts: number; streams: [Stream[], Stream[], Stream[]] }

/** From the clients to the drives: with clients, between servers, on drives. */
function flowOf(w: ServersWindow): Flow {
  const of = (what: string) => w.traffic?.find((t) => t.what === what);
  const stream = (text: string, t: TrafficUse | undefined, shares: boolean): Stream => ({ text, more: t ? ratio(t) : "not observed", rate: t?.per_s ?? null, shares });
  const network = binds(w, ["network in", "network out"]);
  const clients = ([["written", w.clients_wrote_per_s], ["read", w.clients_read_per_s]] as const).filter(([, rate]) => rate > 0).map(([text, rate]) => ({ text, more: "payload", rate, shares: network }));
  const drives = [...(w.clients_wrote_per_s > 0 ? [stream("written", of("written to drives"), binds(w, ["drive"]))] : []), ...(w.clients_read_per_s > 0 ? [stream("read", of("read from drives"), binds(w, ["drive"]))] : [])];
  return { hosts: new Set(w.resources.map((r) => r.host)).size, streams: [clients, [stream(BETWEEN, of(BETWEEN), network)], drives] };
}

const BAND = 46;
const HEAD = 7;
const SVG = "http://www.w3.org/2000/svg";
type Shape = [string, Record<string, string | number>, string?];

function shape([name, attributes, text]: Shape): SVGElement {
  const e = document.createElementNS(SVG, name) as SVGElement;
  for (const [n, v] of Object.entries(attributes)) e.setAttribute(n, String(v));
  if (text !== undefined) e.textContent = text;
  return e;
}

function svgOf(width: number, height: number, shapes: Shape[]): SVGSVGElement {
  const svg = shape(["svg", { viewBox: `0 0 ${width} ${height}`, width, height, "font-size": 12, style: "overflow: visible" }]) as SVGSVGElement;
  svg.append(...shapes.map(shape));
  return svg;
}

/** The way that bytes go: from the left to the right, back, or both between places of one kind. */
const headsOf = (s: Stream): ("left" | "right")[] => (s.text === BETWEEN ? ["left", "right"] : s.text === "read" ? ["left"] : ["right"]);

/** One band: as thick as its bytes, dashed where nobody told of them, with a head at each end that bytes come to. */
function band(s: Stream, most: number, x: number, y: number, length: number): Shape[] {
  const thick = s.rate === null ? 2 : Math.max(1.5, (s.rate / most) * BAND);
  const colour = s.shares ? "var(--s2)" : "var(--s1)";
  const middle = y + 34 + BAND / 2;
  const heads = headsOf(s);
  const head = (end: "left" | "right"): Shape => {
    const [tip, out] = end === "left" ? [x, HEAD] : [x + length, -HEAD];
    return ["path", { d: `M${tip},${middle} l${out},${-(thick / 2 + 4)} v${thick + 8} z`, fill: colour, class: "head" }];
  };
  return [
    ["text", { x: x + length / 2, y: y + 12, "text-anchor": "middle", fill: "var(--ink)", "font-weight": 600 }, `${s.text}${s.rate === null ? "" : ` ${mb(s.rate)}`}`],
    ["text", { x: x + length / 2, y: y + 27, "text-anchor": "middle", fill: "var(--muted)" }, s.more],
    s.rate === null
      ? ["line", { x1: x, x2: x + length, y1: middle, y2: middle, stroke: "var(--muted)", "stroke-width": 1.5, "stroke-dasharray": "4 4" }]
      : ["rect", { x: heads.includes("left") ? x + HEAD : x, y: middle - thick / 2, width: length - HEAD * heads.length, height: thick, fill: colour, "fill-opacity": 0.55 }],
    ...(s.rate === null ? [] : heads.map(head)),
  ];
}

const STREAM = 34 + BAND + 10;

const boxShapes = (x: number, y: number, wide: number, high: number, name: string, more: string): Shape[] => [
  ["rect", { x, y, width: wide, height: high, rx: 4, fill: "var(--panel)", stroke: "var(--line)" }],
  ["text", { x: x + wide / 2, y: y + high / 2 - (more ? 3 : -4), "text-anchor": "middle", fill: "var(--ink)", "font-weight": 600 }, name],
  ...(more ? [["text", { x: x + wide / 2, y: y + high / 2 + 13, "text-anchor": "middle", fill: "var(--muted)" }, more] as Shape] : []),
];

/** Wide: clients, servers and drives side by side, and what servers say to each other below them. */
function across(f: Flow, width: number, most: number): SVGSVGElement {
  const [clients, between, drives] = f.streams;
  const rows = Math.max(clients.length, drives.length, 1);
  const high = rows * STREAM;
  const box = Math.min(130, width * 0.14);
  const way = (width - 3 * box) / 2 - 12;
  const [servers, end] = [box + way + 12, width - box];
  const lane = (streams: Stream[], x: number) => streams.flatMap((s, i) => band(s, most, x, i * STREAM + (high - streams.length * STREAM) / 2, way));
  return svgOf(width, high + STREAM + 34, [
    ...boxShapes(0, 0, box, high, "Clients", ""), ...lane(clients, box + 6),
    ...boxShapes(servers, 0, box, high, "Servers", f.hosts ? `${f.hosts} observed` : ""), ...lane(drives, servers + box + 6),
    ...boxShapes(end, 0, box, high, "Drives", ""),
    // It leaves a server and comes to another one.
    ["path", { d: `M${servers + 8},${high} v14 M${servers + box - 8},${high} v14`, stroke: "var(--line)", "stroke-width": 1.5, fill: "none" }],
    ...between.flatMap((s) => band(s, most, servers - way / 4, high + 18, box + way / 2)),
  ]);
}

/** Narrow: from the top down, each way a band with its text above. */
function down(f: Flow, width: number, most: number): SVGSVGElement {
  const shapes: Shape[] = [];
  let y = 0;
  const box = (name: string, more: string) => { shapes.push(...boxShapes(0, y, width, 40, name, more)); y += 46; };
  const lane = (streams: Stream[]) => { for (const s of streams) { shapes.push(...band(s, most, 24, y, width - 48)); y += STREAM; } };
  const [clients, between, drives] = f.streams;
  box("Clients", "");
  lane(clients);
  box("Servers", f.hosts ? `${f.hosts} observed` : "");
  lane([...between, ...drives]);
  box("Drives", "");
  return svgOf(width, y, shapes);
}

/** Where the bytes go, of a run with one window: widths are bytes a second, all on one scale. */
export function flow(run: Run): ChartElement | null {
  const s = run.summary.servers;
  const w = s?.windows.length === 1 ? s.windows[0]! : null;
  // Without a count of the servers' own there is nothing beside the clients' bytes.
  if (!w?.traffic?.length || w.clients_read_per_s + w.clients_wrote_per_s <= 0) return null;
  const f = flowOf(w);
  const all = f.streams.flat();
  const most = Math.max(...all.map((x) => x.rate ?? 0));
  const limit = w.limit?.verdict === "one" ? " Orange: what goes through what was at its ceiling." : "";
  const places = ["clients and servers", "servers", "servers and drives"];
  const said = (x: Stream, place: string) => `${x.text === BETWEEN ? x.text : `${x.text}, between ${place}`}: ${x.rate === null ? "not observed" : mb(x.rate)}${x.rate !== null && x.more ? ` (${x.more})` : ""}`;
  return chart({
    title: "Where the bytes go",
    note: `Thickness is bytes a second, of ${seconds(w.end_s - w.start_s)} within the measured window.${limit}`,
    text: `Bytes from the clients to the drives. ${f.streams.flatMap((list, i) => list.map((x) => said(x, places[i]!))).join("; ")}.`,
    data: () => table("Where the bytes go", 2, ["between", "what", ">rate", "of the clients\u2019"], f.streams.flatMap((list, i) => list.map((x) => [places[i]!, x.text, x.rate === null ? MISSING : mb(x.rate), x.more]))),
    draw: (width) => (width < 640 ? down(f, width, most) : across(f, width, most)),
  });
}

let hatches = 0;

/** Spans in which the servers worked of their own accord: hatched, so that no measured window is taken for one. */
function bands(all: BackgroundSpan[]): Plot.Markish[] {
  if (all.length === 0) return [];
  const id = `hatch-${++hatches}`;
  const defs = () => {
    const [outer, pattern] = [shape(["defs", {}]), shape(["pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }])];
    pattern.append(shape(["line", { x1: 0, y1: 0, x2: 0, y2: 6, stroke: "var(--muted)", "stroke-width": 1.6 }]));
    outer.append(pattern);
    return outer;
  };
  return [defs as unknown as Plot.Markish, Plot.rect(all, { x1: "start_s", x2: "end_s", fill: `url(#${id})`, fillOpacity: 0.55, ariaDescription: "background" })];
}

const name = (c: ServerCourse): string => (c.device ? `${c.resource}, ${c.device}` : c.resource);

function panel(run: Run, c: ServerCourse, domain: [number, number], background: BackgroundSpan[]): HTMLElement {
  const data = c.t.map((t, i) => ({ t, v: c.percent[i] ?? null }));
  const values = c.percent.filter((v) => v !== null);
  const highest = Math.max(0, ...values);
  const mean = values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
  const of = c.ceiling ? ` of ${c.ceiling}` : " of the time";
  const cliffs = run.analysis.holds.flatMap((x) => x.cliffs);
  const place = chart({
    title: name(c),
    heading: "h4",
    text: `${name(c)} of ${c.host}: mean ${mean.toFixed(0)} %, highest ${highest.toFixed(0)} %${of}`,
    figures: h("p", { class: "figures" }, `mean ${mean.toFixed(0)} %, highest ${highest.toFixed(0)} %${of}`),
    draw: (width) => Plot.plot({
      ...base(width, 78), marginTop: 4, marginBottom: 22, marginLeft: 4, marginRight: 4,
      x: { ...timeAxis(domain, width), label: null, ticks: [] },
      // A ceiling that was passed is wrong: that has to show.
      y: { domain: [0, Math.max(100, highest)], axis: null },
      marks: [
        ...windows(run),
        ...bands(background),
        Plot.areaY(data, { x: "t", y1: 0, y2: "v", fill: "var(--s1)", fillOpacity: 0.25 }),
        Plot.lineY(data, { x: "t", y: "v", stroke: "var(--s1)", strokeWidth: 1.3 }),
        Plot.ruleY([100], { stroke: "var(--ink)", strokeWidth: 1.4 }),
        Plot.ruleX(cliffs, { x: "at_s", stroke: "var(--bad)", strokeWidth: 1.4, strokeDasharray: "5 3" }),
        Plot.ruleY([0], { stroke: "var(--line)" }),
        Plot.text([domain[0]], { x: (t: number) => t, frameAnchor: "bottom", dy: 16, textAnchor: "start", text: (t: number) => seconds(t), fill: "var(--muted)" }),
        Plot.text([domain[1]], { x: (t: number) => t, frameAnchor: "bottom", dy: 16, textAnchor: "end", text: (t: number) => seconds(t), fill: "var(--muted)" }),
        Plot.tip(data.filter((d) => d.v !== null), Plot.pointerX({ x: "t", y: "v", title: (d: { t: number; v: number | null }) => `${seconds(d.t)}: ${(d.v ?? 0).toFixed(0)} %${of}`, fill: "var(--panel)", stroke: "var(--line)" } as Plot.TipOptions)),
      ],
    }),
  });
  place.classList.add("strip");
  return place;
}

/** Each host a row of small charts: percent of the ceiling (upper line) on the run's own time axis. */
export function panels(run: Run): HTMLElement | null {
  const all = run.servers ?? [];
  if (all.length === 0) return null;
  const domain = span(run);
  const background = run.summary.servers?.background ?? [];
  const hosts = [...new Set(all.map((c) => c.host))];
  const row = (host: string) => keyed(host, h("div", {}, h("h4", {}, host), h("div", { class: "strips" }, ...all.filter((c) => c.host === host).map((c) => panel(run, c, domain, background)))));
  const rest = hosts.slice(MOST_HOSTS);
  const said = background.length ? ` Hatched: ${[...new Set(background.map((b) => b.what))].slice(0, 4).join(", ")}.` : "";
  const figures = all.map((c) => {
    const values = c.percent.filter((v) => v !== null);
    const mean = values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
    return [c.host, name(c), c.ceiling || "its time", values.length ? mean.toFixed(1) : MISSING, values.length ? Math.max(...values).toFixed(1) : MISSING];
  });
  return h("div", { class: "servers" }, h("h3", {}, "Servers over the run"),
    h("p", { class: "note" }, `Percent of the ceiling (upper line) from ${seconds(domain[0])} to ${seconds(domain[1])}, between each two readings. Shaded: the measured window. Dashed: a fall of the rate.${said}`),
    ...hosts.slice(0, MOST_HOSTS).map(row),
    rest.length ? unfold(`${rest.length} more hosts`, () => rest.map(row)) : null,
    unfold("Show as table", () => [tableElement(table("Servers over the whole run, percent of the ceiling", 2, ["host", "resource", "ceiling", ">mean", ">highest"], figures), { copy: true })]));
}
