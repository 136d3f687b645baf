// The drawing of a trend: each run at its place in the order of time, with its interval; levels, and where they change. Runs are evenly
// apart: between two of them may be an hour or a month, and the table below says when each was.
import { h, svg as part } from "./dom";
import { high, low, MIB } from "./format";
import type { TrendAnswer } from "./history-data";

const HEIGHT = 296;
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 12, 30, 30];

export interface TrendAxis { from: number; to: number; ticks: { at: number; text: string }[]; unit: string }

/** Nanoseconds are read in the unit of the highest of them: on one axis there is one. */
function unitOf(figure: TrendAnswer["figure"], most: number): [string, number] {
  if (figure === "ops_per_s") return ["op/s", 1];
  if (figure === "bytes_per_s") return ["MiB/s", MIB];
  return most >= 1e9 ? ["s", 1e9] : most >= 1e6 ? ["ms", 1e6] : most >= 1e3 ? ["µs", 1e3] : ["ns", 1];
}

/** From a round number to a round number, with round numbers between them. */
export function trendAxis(figure: TrendAnswer["figure"], ends: number[]): TrendAxis {
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const [unit, one] = unitOf(figure, most);
  // From zero where that does not press all into one line. No figure is less than nothing.
  const bottom = least < (most - least) * 3 ? 0 : least - (most - least) * 0.2;
  const top = most > bottom ? most : bottom + one;
  const rough = (top - bottom) / one / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((s) => s * power >= rough * 0.999) ?? 10) * power;
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9) + (Math.abs(step / power - 2.5) < 1e-9 ? 1 : 0));
  const [first, last] = [Math.floor(bottom / one / step + 1e-9), Math.ceil(top / one / step - 1e-9)];
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  return { from: first * step * one, to: last * step * one, unit, ticks: ticks.map((v) => ({ at: v * one, text: v.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }) })) };
}

/** When the first and the last run was: their days, or of one day the times, to the second where minutes are the same. */
export function trendEnds(first: string, last: string): [string, string] {
  const day = (at: string) => at.slice(0, 10);
  if (day(first) !== day(last)) return [day(first), day(last)];
  const digits = first.slice(0, 16) === last.slice(0, 16) ? 19 : 16;
  return [`${day(first)}, ${first.slice(11, digits)}`, last.slice(11, digits)];
}

export function trendDrawing(a: TrendAnswer, width: number, text: string): HTMLElement {
  const ends = a.points.flatMap((p) => [low(p.figure), high(p.figure)]).filter((v) => Number.isFinite(v) && v < 1e300);
  const { from, to, ticks, unit } = trendAxis(a.figure, ends);
  const x = (i: number) => LEFT + (i + 0.5) * ((width - LEFT - RIGHT) / a.points.length);
  const y = (v: number) => TOP + (1 - (Math.max(from, Math.min(v, to)) - from) / (to - from)) * (HEIGHT - TOP - BOTTOM);
  const svg = part("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, class: "trend", role: "img", "aria-label": text });
  svg.append(part("text", { class: "unit", x: LEFT - 6, y: 12, "text-anchor": "end" }, `↑ ${unit}`));
  for (const t of ticks) {
    svg.append(part("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(t.at), y2: y(t.at) }), part("text", { class: "tick", x: LEFT - 6, y: y(t.at) + 4, "text-anchor": "end" }, t.text));
  }
  for (const s of a.steps) svg.append(part("line", { class: "step", x1: (x(s.at) + x(s.at - 1)) / 2, x2: (x(s.at) + x(s.at - 1)) / 2, y1: TOP, y2: HEIGHT - BOTTOM }));
  for (const l of a.levels) svg.append(part("line", { class: "level", x1: x(l.from), x2: x(l.to - 1), y1: y(l.median), y2: y(l.median) }));
  a.points.forEach((p, i) => {
    svg.append(part("line", { class: "reach", x1: x(i), x2: x(i), y1: y(low(p.figure)), y2: y(high(p.figure)) }));
    const dot = part("circle", { class: "run", cx: x(i), cy: y(p.figure.value), r: a.points.length > 120 ? 2.2 : 4 });
    dot.append(part("title", {}, `${p.started_at.slice(0, 16).replace("T", " ")} ${p.run}`));
    // By keyboard, the table below has the same links.
    dot.addEventListener("click", () => { location.href = `/runs/${encodeURIComponent(p.run)}`; });
    svg.append(dot);
  });
  const [begin, end] = trendEnds(a.points[0]!.started_at, a.points.at(-1)!.started_at);
  svg.append(part("text", { class: "when", x: LEFT, y: HEIGHT - 8 }, begin), part("text", { class: "when", x: width - RIGHT, y: HEIGHT - 8, "text-anchor": "end" }, `${end} (UTC) →`));
  const figure = h("figure", { class: "chart" }, svg as unknown as Node);
  // Drawn anew as a whole: nothing in it has the focus or is open.
  (figure as HTMLElement & { renew?: (newer: HTMLElement) => void }).renew = (newer) => figure.replaceChildren(...newer.childNodes);
  return figure;
}
