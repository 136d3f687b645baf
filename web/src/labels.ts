// Where labels of points stand, so that none lies on a point or on another label, and none is cut off.
import type * as Plot from "@observablehq/plot";

/** The middle of what is drawn and its size, pixels. */
export interface Box { x: number; y: number; w: number; h: number }

/** Above and below, near first. */
const STEPS = [-16, 17, -28, 29, -40, 41, -52, 53];

const overlap = (a: Box, b: Box): number =>
  Math.max(0, (a.w + b.w) / 2 - Math.abs(a.x - b.x)) * Math.max(0, (a.h + b.h) / 2 - Math.abs(a.y - b.y));

/** Each label as near to its point as there is room. Where there is none, where it hides least. */
export function settle(labels: readonly Box[], taken: readonly Box[], room: { left: number; right: number; top: number; bottom: number }): { x: number; y: number }[] {
  const placed: Box[] = [];
  for (const l of labels) {
    const x = Math.max(room.left + l.w / 2, Math.min(room.right - l.w / 2, l.x));
    const tried = STEPS.map((dy) => ({ ...l, x, y: l.y + dy })).filter((b) => b.y - b.h / 2 >= room.top && b.y + b.h / 2 <= room.bottom);
    const hides = (b: Box) => [...taken, ...placed].reduce((sum, t) => sum + overlap(b, t), 0);
    const best = tried.reduce<{ box: Box; cost: number } | null>((least, box) => {
      const cost = hides(box);
      return least && least.cost <= cost ? least : { box, cost };
    }, null);
    placed.push(best?.box ?? { ...l, x, y: l.y + STEPS[0]! });
  }
  return placed.map(({ x, y }) => ({ x, y }));
}

/** A point that a label must not lie on, in the chart's values; moved aside by `dx` pixels. */
export interface Spot { x: number; y: number; dx?: number }

/** How a text mark is drawn whose labels settle round the points of all series. `own`: each label's text, and how far its point is moved aside. */
export const settled = (own: { text: string; dx?: number }[], spots: readonly Spot[], bold = false): Plot.RenderFunction => (index, scales, values, dimensions, context, next) => {
  const [sx, sy] = [scales.x as unknown as (v: number) => number, scales.y as unknown as (v: number) => number];
  const [vx, vy] = [values.x as unknown as number[], values.y as unknown as number[]];
  const taken = spots.map((s) => ({ x: sx(s.x) + (s.dx ?? 0), y: sy(s.y), w: 11, h: 11 }));
  const labels = Array.from(index, (i) => ({ x: vx[i]! + (own[i]!.dx ?? 0), y: vy[i]!, w: own[i]!.text.length * (bold ? 7.4 : 6.8) + 4, h: 13 }));
  const { width, height, marginBottom, marginLeft } = dimensions;
  const at = settle(labels, taken, { left: marginLeft - 6, right: width - 2, top: 0, bottom: height - marginBottom });
  const [x, y] = [[...vx], [...vy]];
  index.forEach((i, k) => { [x[i], y[i]] = [at[k]!.x, at[k]!.y]; });
  return next!(index, scales, { ...values, x, y } as unknown as Plot.ChannelValues, dimensions, context);
};
