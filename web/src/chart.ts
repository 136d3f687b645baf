// What every chart shares: a figure with a title, a legend that works without colour, a text alternative, and a
// drawing that follows the width of its place.
import * as Plot from "@observablehq/plot";

import { h, uniqueId } from "./dom";
import { keyed, morphChildren, unfold, type Living } from "./keyed";
import { tableElement, type Table } from "./table";

/** Okabe-Ito colours (as CSS variables, so that they follow dark and light), each with a dash and a symbol of its own. */
export interface Mark { colour: string; dash: string; symbol: "circle" | "square" | "triangle" | "diamond" | "star" | "cross" | "wye" }

const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross", "wye"] as const;
const DASHES = ["none", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 4"];

export const mark = (i: number): Mark => ({
  colour: `var(--s${(i % 7) + 1})`,
  dash: DASHES[i % 7]!,
  symbol: SYMBOLS[i % 7]!,
});

export interface Key { label: string; mark: Mark; line?: boolean; symbol?: boolean }

const SVG = "http://www.w3.org/2000/svg";

function swatch(k: Key): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("width", "34");
  svg.setAttribute("height", "12");
  svg.setAttribute("aria-hidden", "true");
  if (k.line !== false) {
    const line = document.createElementNS(SVG, "line");
    for (const [n, v] of Object.entries({ x1: 1, x2: 33, y1: 6, y2: 6, stroke: k.mark.colour, "stroke-width": 2.2 })) line.setAttribute(n, String(v));
    if (k.mark.dash !== "none") line.setAttribute("stroke-dasharray", k.mark.dash);
    svg.append(line);
  }
  if (k.symbol) {
    const dot = Plot.plot({ width: 34, height: 12, margin: 0, axis: null, x: { domain: [0, 1] }, y: { domain: [0, 1] }, marks: [
      Plot.dot([[0.5, 0.5]], { symbol: k.mark.symbol, fill: k.mark.colour, r: 4 }),
    ] });
    svg.append(...dot.querySelectorAll("g[aria-label=dot]"));
  }
  return svg;
}

function legend(keys: Key[]): HTMLElement | null {
  if (keys.length === 0) return null;
  return h("ul", { class: "legend" }, ...keys.map((k) => h("li", {}, swatch(k) as unknown as Node, k.label)));
}

/** Of charts that show one of several things at a time, what depends on the one that was picked. */
type Viewed<T> = T | ((view: string) => T);

export interface Chart {
  title: string;
  /** What it shows, in a sentence: read out instead of the drawing. */
  text: Viewed<string>;
  keys?: Viewed<Key[]>;
  /** A remark under the title, and figures beside it. */
  note?: string;
  figures?: Node;
  /** What to choose from, by name; the first is shown first. */
  views?: { label: string; names: string[] };
  draw: (width: number, view: string) => SVGSVGElement | HTMLElement;
  /** The same as a table, made when asked for. */
  data?: (view: string) => Table;
  heading?: "h3" | "h4";
}

/** A figure that draws a chart, and later a newer one in its place. */
export interface ChartElement extends Living { chart: Chart }

type Place = HTMLElement & { follow?: (width: number) => void };

/** Paper's style makes places as wide as the screen: what that tells is not followed until the screen is back. */
let onPaper = false;

const observer = new ResizeObserver((entries) => {
  if (onPaper) return;
  for (const e of entries) (e.target as Place).follow?.(Math.floor(e.contentRect.width));
});

function caption(c: Chart, id: string): Node[] {
  return [h(c.heading ?? "h3", { id }, c.title), c.note ? h("p", { class: "note" }, c.note) : null, c.figures ?? null].filter((x) => x !== null);
}

/** What a reader points at: drawn again, it is pointed at again. */
function pointedAt(place: Place): () => void {
  let last: PointerEvent | null = null;
  place.addEventListener("pointermove", (e) => { if (e.isTrusted) last = e; });
  place.addEventListener("pointerleave", (e) => { if (e.isTrusted) last = null; });
  return () => {
    const under = (e: SVGSVGElement, at: PointerEvent) => { const b = e.getBoundingClientRect(); return at.clientY >= b.top && at.clientY <= b.bottom; };
    const svg = last && [...place.querySelectorAll("svg")].find((e) => under(e, last!));
    if (last && svg) svg.dispatchEvent(new PointerEvent("pointermove", { clientX: last.clientX, clientY: last.clientY, pointerType: last.pointerType, pointerId: last.pointerId }));
  };
}

export function chart(first: Chart): ChartElement {
  let spec = first;
  let view = spec.views?.names[0] ?? "";
  let width = 0;
  const of = <T>(v: Viewed<T>): T => (typeof v === "function" ? (v as (view: string) => T)(view) : v);
  const title = uniqueId("chart");
  const place: Place = h("div", { class: "drawing", role: "img", "aria-label": "" });
  const again = pointedAt(place);
  const keys = h("div", {});
  let shownKeys = "";
  const describe = () => {
    const [text, list] = [of(spec.text), of(spec.keys ?? [])];
    if (place.getAttribute("aria-label") !== text) place.setAttribute("aria-label", text);
    if (JSON.stringify(list) === shownKeys) return;
    shownKeys = JSON.stringify(list);
    keys.replaceChildren(...[legend(list)].filter((x) => x !== null));
  };
  const draw = () => {
    if (width < 40) return;
    const svg = spec.draw(width, view);
    svg.setAttribute("aria-hidden", "true");
    place.replaceChildren(svg);
    again();
  };
  place.dataset["follow"] = "";
  place.follow = (w) => {
    if (Math.abs(w - width) < 2) return;
    width = w;
    draw();
  };
  describe();
  observer.observe(place);
  const make = () => [tableElement(spec.data!(view), { copy: true })];
  const details = spec.data && unfold("Show as table", make);
  const picker = spec.views && choice(spec.views, (name) => {
    view = name;
    if (details) {
      details.open = false;
      details.renew(unfold("Show as table", make));
    }
    describe();
    draw();
  });
  const figcaption = h("figcaption", {}, ...caption(spec, title));
  const figure = h("figure", { class: "chart", "aria-labelledby": title }, figcaption, picker, keys, place, details) as unknown as ChartElement;
  figure.chart = spec;
  // What it can do besides drawing is part of what it is.
  figure.key = [spec.title, spec.views ? "views" : "", spec.data ? "data" : ""].join("|");
  figure.renew = (newer) => {
    spec = figure.chart = (newer as ChartElement).chart;
    morphChildren(figcaption, caption(spec, title));
    if (picker && spec.views) view = picker.offer(spec.views.names);
    details?.renew(unfold("Show as table", make));
    describe();
    draw();
  };
  figure.leave = () => observer.unobserve(place);
  return figure;
}

/** Paper has a width of its own: drawings made for a wide screen would be shrunk until nobody can read them. */
const PAPER = 680;
addEventListener("beforeprint", () => {
  onPaper = true;
  for (const e of document.querySelectorAll<Place>("[data-follow]")) e.follow?.(Math.min(PAPER, e.closest(".strips") ? PAPER / 2 - 20 : PAPER));
});
addEventListener("afterprint", () => {
  onPaper = false;
  for (const e of document.querySelectorAll<Place>("[data-follow]")) e.follow?.(Math.floor(e.getBoundingClientRect().width));
});

/** A labelled drop-down. Offered other names, it stays with the one that was picked while that is among them. */
function choice(views: { label: string; names: string[] }, pick: (name: string) => void): HTMLElement & { offer: (names: string[]) => string } {
  const id = uniqueId("choice");
  const select = h("select", { id, change: () => pick(select.value) }, ...views.names.map((o) => keyed(o, h("option", {}, o))));
  const element = h("p", { class: "choice" }, h("label", { for: id }, views.label), " ", select) as HTMLParagraphElement & { offer: (names: string[]) => string };
  element.offer = (names) => {
    const picked = names.includes(select.value) ? select.value : (names[0] ?? "");
    morphChildren(select, names.map((o) => keyed(o, h("option", {}, o))));
    if (select.value !== picked) select.value = picked;
    return picked;
  };
  return element;
}

/** Margins and style that all drawings share. */
export function base(width: number, height: number): Plot.PlotOptions {
  return {
    width, height, marginLeft: 56, marginRight: 16, marginBottom: 36, marginTop: 22,
    style: { background: "none", fontFamily: "inherit", fontSize: "12px", color: "var(--ink)", overflow: "visible" },
  };
}

/** Axis and grid of a logarithmic scale with exactly these ticks: Plot's own would leave labels out as it sees fit. */
export function logAxis(dimension: "x" | "y", ticks: number[], label: string, format: (v: number) => string, grid = true): Plot.Markish[] {
  if (dimension === "y") return [...(grid ? [Plot.gridY(ticks)] : []), Plot.axisY(ticks, { label, text: format })];
  return [...(grid ? [Plot.gridX(ticks)] : []), Plot.axisX(ticks, { label, text: format })];
}

/** Of ticks on a logarithmic axis, those whose labels do not run into one another; the ends are kept. */
export function spaced(ticks: number[], width: number, apart: number): number[] {
  const sorted = [...ticks].sort((a, b) => a - b);
  const [first, last] = [sorted[0], sorted[sorted.length - 1]];
  if (first === undefined || last === undefined || first === last) return sorted;
  const at = (v: number) => (Math.log(v / first) / Math.log(last / first)) * width;
  const kept = [first];
  for (const v of sorted.slice(1, -1)) if (at(v) - at(kept[kept.length - 1]!) >= apart && width - at(v) >= apart) kept.push(v);
  return [...kept, last];
}

/** Axis of the sizes that were measured, each of them: labels that would touch are set on rows of their own. */
export function sizeAxis(sizes: number[], width: number, label: string, format: (v: number) => string): { marks: Plot.Markish[]; rows: number } {
  const [first, last] = [sizes[0] ?? 1, sizes[sizes.length - 1] ?? 1];
  const at = (v: number) => (first === last ? 0 : (Math.log(v / first) / Math.log(last / first)) * width);
  const rows: { ticks: number[]; end: number }[] = [];
  for (const v of sizes) {
    const half = format(v).length * 3.6 + 4;
    const row = rows.find((r) => at(v) - half >= r.end) ?? rows[rows.push({ ticks: [], end: -Infinity }) - 1]!;
    row.ticks.push(v);
    row.end = at(v) + half;
  }
  return {
    rows: rows.length,
    marks: rows.map((r, i) => Plot.axisX(r.ticks, { label: i === rows.length - 1 ? label : null, text: format, tickSize: 6 + i * 14, tickPadding: 3, ...(i > 0 ? { stroke: "var(--muted)", strokeOpacity: 0.5, fill: "var(--ink)" } : {}) } as Plot.AxisXOptions)),
  };
}

/** A name and what is said of it: on one line where both fit, else one below the other. */
export function headLines(width: number, name: string, said: string): string[] {
  const room = Math.floor((width - 32) / 6.4);
  return name.length + 3 + said.length <= room ? [`${name}   ${said}`] : [name.length <= room ? name : `${name.slice(0, room - 1)}…`, said];
}

/** How far the i-th of n series is moved aside, pixels, so that no interval lies on another. */
export const aside = (i: number, n: number): number => (n > 1 ? (i - (n - 1) / 2) * Math.min(6, 18 / (n - 1)) : 0);

/** A line with its dash; symbols mark it where there are few enough points. */
export function line<T>(data: T[], m: Mark, x: (d: T) => number, y: (d: T) => number | null, options: { z?: (d: T) => unknown; symbols?: boolean; width?: number; dx?: number } = {}): Plot.Markish[] {
  const marks: Plot.Markish[] = [
    Plot.line(data, {
      x, y, stroke: m.colour, strokeWidth: options.width ?? 1.8, strokeDasharray: m.dash === "none" ? undefined : m.dash,
      strokeLinejoin: "round", dx: options.dx ?? 0, ...(options.z ? { z: options.z } : {}),
    } as Plot.LineOptions),
  ];
  if (options.symbols) marks.push(Plot.dot(data, { x, y, symbol: m.symbol, fill: m.colour, r: 4, dx: options.dx ?? 0 } as Plot.DotOptions));
  return marks;
}
