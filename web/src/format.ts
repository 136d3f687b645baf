// Numbers as people should read them. The same rules as crates/report/src/number.rs: digits come from the interval.
import type { Estimate, Level } from "./feed";

export const MIB = 1_048_576;
export const MISSING = "n/a";

/** `**` stands around what matters most: where that cannot be shown, it must not be seen. */
export const withoutMarks = (text: string): string => text.replaceAll("**", "");

const group = (text: string): string => {
  const [int = "", frac] = text.split(".");
  const grouped = int.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  const out = frac === undefined ? grouped : `${grouped}.${frac}`;
  return /^-[0.,]*$/.test(out) ? out.slice(1) : out;
};

function at(x: number, decimals: number): string {
  if (decimals >= 0) return group(x.toFixed(Math.min(decimals, 9)));
  const scale = 10 ** -decimals;
  return group((Math.round(x / scale) * scale).toFixed(0));
}

function decimalsFor(half: number): number {
  const exponent = Math.floor(Math.log10(half));
  return (half / 10 ** exponent < 3 ? 2 : 1) - 1 - exponent;
}

/** `digits` significant digits, thousands separated. */
export function significant(x: number, digits = 3): string {
  if (!Number.isFinite(x)) return MISSING;
  if (x === 0) return "0";
  return at(x, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(x)))));
}

export function estimate(e: Estimate | null | undefined, factor = 1): string {
  if (!e || !Number.isFinite(e.value)) return MISSING;
  // A lower bound has the largest of all numbers as its upper end.
  if ((e.high ?? 0) >= Number.MAX_VALUE) return `at least ${significant(e.value * factor)}`;
  // An interval without an end is written as null.
  const [value, low, high] = [e.value * factor, (e.low ?? -Infinity) * factor, (e.high ?? Infinity) * factor];
  const half = (high - low) / 2;
  // One that reaches a thousand times beyond the value says nothing.
  const boundless = value !== 0 && Math.max(high - value, value - low) > 1e3 * Math.abs(value);
  if (!Number.isFinite(half) || half < 0 || boundless) return `${significant(value)} (interval unknown)`;
  // One that is but the rounding of its arithmetic is none.
  if (half <= 1e-9 * Math.abs(value)) return significant(value, 4);
  const [below, above] = [value - low, high - value];
  // A lopsided interval is as sharp as its shorter side, and the value always keeps two digits: with one it is another rate in each unit.
  const lopsided = Math.max(below, above) > 1.5 * Math.min(below, above);
  const sharp = lopsided && Math.min(below, above) > 0 ? Math.min(below, above) : half;
  const d = Math.max(decimalsFor(sharp), value === 0 ? -Infinity : 1 - Math.floor(Math.log10(Math.abs(value))));
  if (lopsided) return `${at(value, d)} (${at(low, d)} to ${at(high, d)})`;
  // Rounded up: an interval is never made narrower than it is.
  const h = decimalsFor(half);
  return `${at(value, d)} ± ${at(Math.ceil(half * 10 ** h - 1e-9) / 10 ** h, h)}`;
}

export function latency(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return MISSING;
  for (const [unit, f] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]] as const) if (ns >= f) return `${significant(ns / f)} ${unit}`;
  return `${ns.toFixed(0)} ns`;
}

/** How far an interval reaches below and above its value: -1.2/+1.5 %. An end beyond all that was seen is none. */
export function reach(e: Estimate | null | undefined): string {
  if (!e || !(e.value > 0) || e.low === null) return "";
  const part = (end: number) => {
    const by = 100 * Math.abs(end / e.value - 1);
    return by >= 9.95 ? by.toFixed(0) : by.toFixed(1);
  };
  return `-${part(e.low)}/+${e.high !== null && Number.isFinite(e.high) ? part(e.high) : "?"} %`;
}

const UNITS: [string, number][] = [
  ["TiB", 2 ** 40], ["TB", 1e12], ["GiB", 2 ** 30], ["GB", 1e9], ["MiB", 2 ** 20], ["MB", 1e6], ["KiB", 1024], ["KB", 1000],
];

/** The shortest exact form: 4 KiB, 64 KB, 512 KB; binary of two that are as long, bytes where neither divides. */
export function size(bytes: number): string {
  const within = (binary: boolean) => UNITS.filter(([name]) => name.includes("i") === binary).find(([, f]) => bytes > 0 && bytes % f === 0);
  const forms = [within(true), within(false)].flatMap((u) => (u ? [`${bytes / u[1]} ${u[0]}`] : [])).sort((a, b) => a.length - b.length);
  const [number, unit] = (forms[0] ?? `${Math.round(bytes)} B`).split(" ") as [string, string];
  return `${group(number)} ${unit}`;
}

/** Writes sizes in one family: in powers of 1000 as soon as one of them has no binary form. */
export function sizesLike(all: number[]): (bytes: number) => string {
  const decimal = all.some((b) => b >= 1000 && b % 1000 === 0 && b % 1024 !== 0);
  return (b) => {
    const unit = decimal && b > 0 ? UNITS.find(([name, f]) => !name.includes("i") && b % f === 0) : undefined;
    return unit ? `${group(String(b / unit[1]))} ${unit[0]}` : size(b);
  };
}

/** A measured number of bytes, three digits, binary unit. */
export function bytes(x: number): string {
  for (const [unit, f] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", MIB], ["KiB", 1024]] as const) if (x >= f) return `${significant(x / f)} ${unit}`;
  return `${significant(x)} B`;
}

export function sizeEstimate(e: Estimate): string {
  // Decimal, as the verdict's sentences have it.
  const [unit, f] = e.value >= 1e9 ? ["GB", 1e9] as const : e.value >= 1e6 ? ["MB", 1e6] as const : e.value >= 1000 ? ["KB", 1000] as const : ["B", 1] as const;
  const text = estimate(e, 1 / f);
  const bracket = text.indexOf(" (");
  return bracket < 0 ? `${text} ${unit}` : `${text.slice(0, bracket)} ${unit}${text.slice(bracket)}`;
}

export const percent = (fraction: number): string => {
  const p = fraction * 100;
  if (!Number.isFinite(p)) return MISSING;
  if (p === 0) return "0 %";
  if (Math.abs(p) < 0.01) return "<0.01 %";
  // What is not all is not rounded to it.
  if (p > 99.99 && p < 100) return ">99.99 %";
  if (p >= 99.5 && p < 100) return `${p.toFixed(2)} %`;
  return `${Math.abs(p) < 10 ? significant(p, 2) : p.toFixed(0)} %`;
};

export const count = (n: number): string => group(String(Math.round(n)));

/** `1 run`, `3 runs`. */
export const counted = (n: number, one: string): string => `${count(n)} ${one}${n === 1 ? "" : "s"}`;

export function seconds(s: number): string {
  if (!Number.isFinite(s)) return MISSING;
  if (s >= 5400) return `${significant(s / 3600)} h`;
  if (s >= 300) return `${significant(s / 60)} min`;
  return s === 0 ? "0 s" : s >= 0.1 ? `${s.toFixed(1)} s` : `${significant(s, 2)} s`;
}

/** As many digits as it has, up to `digits`: 1, 3,600, 0.97. */
export function plain(x: number, digits = 4): string {
  if (!Number.isFinite(x)) return MISSING;
  return group(String(Math.abs(x) >= 10 ** digits ? Math.round(x) : Number(x.toPrecision(digits))));
}

/** A latency on an axis: 10 ms, not 10.0 ms. */
export function latencyTick(ns: number): string {
  for (const [unit, f] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]] as const) if (ns >= f) return `${Number((ns / f).toPrecision(3))} ${unit}`;
  return `${Number(ns.toPrecision(3))} ns`;
}

/** Ticks of a logarithmic axis: 1, 2 and 5 of each power of ten where the range is short, else the powers. */
export function logTicks(values: number[]): number[] {
  const known = values.filter((v) => v > 0 && Number.isFinite(v));
  if (known.length === 0) return [1, 10];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const decades = Math.log10(high / low);
  const steps = decades < 2.2 ? [1, 2, 5] : decades < 4 ? [1, 3] : [1];
  const out: number[] = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) for (const s of steps) {
    const v = Number(`${s}e${e}`);
    if (v >= low * 0.999 && v <= high * 1.001) out.push(v);
  }
  // A range within one step of 1, 2, 5 needs finer ones: an axis with one label says nothing.
  return out.length >= 3 ? out : finer(low, high);
}

/** Round numbers evenly spaced between two that are near each other. */
function finer(low: number, high: number): number[] {
  if (high <= low * 1.0001) return [low];
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((s) => s * power >= rough) ?? 10) * power;
  const out: number[] = [];
  for (let i = Math.ceil(low / step); i * step <= high * 1.0001; i++) out.push(Number((i * step).toPrecision(6)));
  return out.length > 0 ? out : [low];
}

/** Ticks: 1.2k, 3M; short enough for an axis on a phone. */
export function tick(x: number): string {
  const a = Math.abs(x);
  for (const [unit, f] of [["G", 1e9], ["M", 1e6], ["k", 1e3]] as const) if (a >= f) return `${Number((x / f).toPrecision(3))}${unit}`;
  return String(Number(x.toPrecision(3)));
}

/** Time on an axis: seconds up to five minutes, then m:ss, then h:mm; ticks at whole seconds, minutes or hours. */
export function clock([from, to]: [number, number], width: number): { label: string; tick: (s: number) => string; ticks: number[] } {
  const span = to - from;
  const two = (n: number) => String(Math.floor(n)).padStart(2, "0");
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400];
  const step = steps.find((x) => span / x <= Math.max(3, width / 80)) ?? 86_400;
  const ticks: number[] = [];
  for (let t = Math.ceil(from / step); t * step <= to * 1.0001; t++) ticks.push(Number((t * step).toFixed(6)));
  if (span <= 300) return { label: "time since start, s →", ticks, tick: (s) => String(s) };
  if (span <= 7200) return { label: "time since start, min:s →", ticks, tick: (s) => `${Math.floor(s / 60)}:${two(s % 60)}` };
  return { label: "time since start, h:min →", ticks, tick: (s) => `${Math.floor(s / 3600)}:${two((s % 3600) / 60)}` };
}

const THROTTLED = new Set(["http_429", "http_503"]);
export const isThrottled = (outcome: string): boolean => THROTTLED.has(outcome);
export const isFailure = (outcome: string): boolean => outcome !== "ok" && outcome !== "cancelled" && !THROTTLED.has(outcome);

export function sumOutcomes(outcomes: Record<string, number>, pick: (name: string) => boolean): number {
  return Object.entries(outcomes).reduce((sum, [name, n]) => sum + (pick(name) ? n : 0), 0);
}

/** Ends of an interval as they can be drawn: one that is not bounded has no length. */
export const low = (e: Estimate): number => e.low ?? e.value;
export const high = (e: Estimate): number => e.high ?? e.value;

const OUTCOMES: Record<string, string> = {
  http_429: "refused (429 too many requests)", http_503: "refused (503 slow down)", http_403: "denied (403)", http_404: "not found (404)", timeout: "timed out", reset: "connection reset",
};
/** What an attempt came to, in plain words. */
export const outcomeName = (name: string): string => OUTCOMES[name] ?? name.replace(/^http_(\d+)$/, "answered $1").replaceAll("_", " ");

/** Before a finding: its sign, and its word. */
export const SIGNS: Record<Level, [string, string]> = { invalid: ["✕", "Invalid"], qualified: ["!", "Note"], info: ["i", "Info"] };
