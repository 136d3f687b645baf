// The drawing of a trend: each run at its place in the order of time, with its interval; levels, and where they change. Runs are evenly
// apart: between two of them may be an hour or a month, and the table below says when each was.
import { h, svg as part } from "./dom";
import { high, latencyTick, low, MIB, tick } from "./format";
import type { TrendAnswer } from "./history-data";

const HEIGHT = 280;
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 12, 14, 30];

export function trendDrawing(a: TrendAnswer, width: number, text: string): HTMLElement {
  const ends = a.points.flatMap((p) => [low(p.figure), high(p.figure)]).filter((v) => Number.isFinite(v) && v < 1e300);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  // From zero where that does not press all into one line.
  const from = least < (most - least) * 3 ? Math.min(0, least) : least - (most - least) * 0.2;
  const to = most > from ? most : from + 1;
  const x = (i: number) => LEFT + (i + 0.5) * ((width - LEFT - RIGHT) / a.points.length);
  const y = (v: number) => TOP + (1 - (Math.min(v, to) - from) / (to - from)) * (HEIGHT - TOP - BOTTOM);
  const label = (v: number) => (a.figure === "ops_per_s" ? tick(v) : a.figure === "bytes_per_s" ? tick(v / MIB) : latencyTick(v));
  const svg = part("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, class: "trend", role: "img", "aria-label": text });
  for (let k = 0; k <= 4; k++) {
    const v = from + ((to - from) * k) / 4;
    svg.append(part("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(v), y2: y(v) }), part("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, label(v)));
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
  const day = (at: string) => at.slice(0, 10);
  svg.append(part("text", { x: LEFT, y: HEIGHT - 8 }, day(a.points[0]!.started_at)), part("text", { x: width - RIGHT, y: HEIGHT - 8, "text-anchor": "end" }, day(a.points.at(-1)!.started_at)));
  const figure = h("figure", { class: "chart" }, svg as unknown as Node);
  // Drawn anew as a whole: nothing in it has the focus or is open.
  (figure as HTMLElement & { renew?: (newer: HTMLElement) => void }).renew = (newer) => figure.replaceChildren(...newer.childNodes);
  return figure;
}
