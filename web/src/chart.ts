// What every chart shares: a figure with a title, a legend that works without colour, a text alternative, and a
// drawing that follows the width of its place.
import * as Plot from "@observablehq/plot";

import { h, uniqueId } from "./dom";
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

export function legend(keys: Key[]): HTMLElement | null {
  if (keys.length === 0) return null;
  return h("ul", { class: "legend" }, ...keys.map((k) => h("li", {}, swatch(k) as unknown as Node, k.label)));
}

export interface Chart {
  title: string;
  /** What it shows, in a sentence: read out instead of the drawing. */
  text: string;
  keys?: Key[];
  /** A remark under the title. */
  note?: string;
  draw: (width: number) => SVGSVGElement | HTMLElement;
  /** The same as a table, made when asked for. */
  data?: () => Table;
  controls?: Node;
  heading?: "h3" | "h4";
}

export interface ChartElement extends HTMLElement { redraw: (keys?: Key[], text?: string) => void }

const observer = new ResizeObserver((entries) => {
  for (const e of entries) (e.target as HTMLElement & { follow?: (w: number) => void }).follow?.(Math.floor(e.contentRect.width));
});

export function chart(spec: Chart): ChartElement {
  const heading = uniqueId("chart");
  const place = h("div", { class: "drawing", role: "img", "aria-label": spec.text }) as HTMLDivElement & { follow?: (w: number) => void };
  const keys = h("div", {}, legend(spec.keys ?? []));
  let width = 0;
  const draw = () => {
    if (width < 40) return;
    const svg = spec.draw(width);
    svg.setAttribute("aria-hidden", "true");
    place.replaceChildren(svg);
  };
  place.dataset["follow"] = "";
  place.follow = (w) => {
    if (Math.abs(w - width) < 2) return;
    width = w;
    draw();
  };
  observer.observe(place);
  const details = spec.data && h("details", { class: "data" }, h("summary", {}, "Show as table"));
  details?.addEventListener("toggle", () => {
    while (details.children.length > 1) details.lastElementChild!.remove();
    if (details.open) details.append(tableElement(spec.data!(), { copy: true }));
  });
  const figure = h("figure", { class: "chart", "aria-labelledby": heading },
    h("figcaption", {}, h(spec.heading ?? "h3", { id: heading }, spec.title), spec.note ? h("p", { class: "note" }, spec.note) : null),
    spec.controls, keys, place, details) as unknown as ChartElement;
  figure.redraw = (newKeys, text) => {
    if (newKeys) keys.replaceChildren(...[legend(newKeys)].filter((x) => x !== null));
    if (text) place.setAttribute("aria-label", text);
    if (details) details.open = false;
    draw();
  };
  return figure;
}

/** Paper has a width of its own: drawings made for a wide screen would be shrunk until nobody can read them. */
const PAPER = 680;
addEventListener("beforeprint", () => {
  for (const e of document.querySelectorAll<HTMLElement & { follow?: (w: number) => void }>("[data-follow]")) e.follow?.(Math.min(PAPER, e.closest(".strips") ? PAPER / 2 - 20 : PAPER));
});
addEventListener("afterprint", () => {
  for (const e of document.querySelectorAll<HTMLElement & { follow?: (w: number) => void }>("[data-follow]")) e.follow?.(Math.floor(e.getBoundingClientRect().width));
});

/** A labelled drop-down. */
export function choice(label: string, options: string[], pick: (index: number) => void): HTMLElement {
  const id = uniqueId("choice");
  const select = h("select", { id, change: (e) => pick((e.target as HTMLSelectElement).selectedIndex) }, ...options.map((o) => h("option", {}, o)));
  return h("p", { class: "choice" }, h("label", { for: id }, label), " ", select);
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

/** A line with its dash; symbols mark it where there are few enough points. */
export function line<T>(data: T[], m: Mark, x: (d: T) => number, y: (d: T) => number | null, options: { z?: (d: T) => unknown; symbols?: boolean; width?: number } = {}): Plot.Markish[] {
  const marks: Plot.Markish[] = [
    Plot.line(data, {
      x, y, stroke: m.colour, strokeWidth: options.width ?? 1.8, strokeDasharray: m.dash === "none" ? undefined : m.dash,
      strokeLinejoin: "round", ...(options.z ? { z: options.z } : {}),
    } as Plot.LineOptions),
  ];
  if (options.symbols) marks.push(Plot.dot(data, { x, y, symbol: m.symbol, fill: m.colour, r: 4 } as Plot.DotOptions));
  return marks;
}
