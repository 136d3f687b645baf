// The rate of a run over its measured time, a word wide. From zero up, so that a dip is as deep as it was; the lowest point has a mark. The
// figures are in the words for those who do not see it, and beside it in the table.
import { svg } from "./dom";
import { seconds, significant } from "./format";
import type { Course } from "./history-data";

const [WIDTH, HEIGHT, ROOM] = [110, 24, 3];

export function courseText(c: Course): string {
  const rates = c.ops_per_s;
  const [first, last, least, most] = [rates[0]!, rates.at(-1)!, Math.min(...rates), Math.max(...rates)].map((v) => significant(v));
  return `Rate over ${seconds(c.seconds)}${c.of ? ` of ${c.of}` : ""}: from ${first} to ${last} op/s, lowest ${least} op/s, highest ${most} op/s`;
}

/** Places of the points. */
export function coursePoints(rates: number[]): [number, number][] {
  const most = Math.max(...rates);
  const wide = (WIDTH - 2 * ROOM) / Math.max(1, rates.length - 1);
  const high = HEIGHT - 2 * ROOM;
  const short = (v: number) => Number(v.toFixed(1));
  return rates.map((v, i) => [short(ROOM + i * wide), short(HEIGHT - ROOM - (most > 0 ? (v / most) * high : 0))]);
}

export function sparkline(c: Course): SVGSVGElement {
  const points = coursePoints(c.ops_per_s);
  const [x, y] = points[c.ops_per_s.indexOf(Math.min(...c.ops_per_s))]!;
  return svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": courseText(c) },
    svg("path", { class: "zero", d: `M0,${HEIGHT - ROOM}H${WIDTH}` }),
    svg("path", { class: "rate", d: `M${points.map((p) => p.join()).join("L")}` }),
    svg("circle", { class: "lowest", cx: x, cy: y, r: 2.2 }));
}
