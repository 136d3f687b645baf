// The page's sections, in the order in which a verdict is read: validity, figures, evidence, provenance.
import { agentTable, ofAgents } from "./agents";
import type { ChartElement } from "./chart";
import { arithmetic, assumptions, costTable, ofCost } from "./cost";
import { h } from "./dom";
import { cycleTable } from "./cycles";
import type { Finding, GlanceFact, Page, Run, SideBySide, Workload } from "./feed";
import { ofLatency, ofLimits, ofLines, ofLoad, ofProvenance, ofResources, ofTime, ofValidity } from "./folds";
import { bytes, count, estimate, isFailure, isThrottled, latency, MIB, MISSING, percent, plain, reach, seconds, significant, SIGNS, sizeEstimate, sumOutcomes } from "./format";
import { groupChart, leftOut, pivotTable } from "./groups";
import { keyed, unfold } from "./keyed";
import { loadCurves, loadTable, spectrumCharts } from "./latency";
import { kindOf } from "./kinds";
import { answering, bucketCharts, comparisonCharts, comparisonTables, openAnswers, saturationCharts, saturationTable, scalingCharts, scalingTable } from "./limits";
import { picture, pictured } from "./picture";
import { searchTable } from "./searches";
import { backgroundTable, ceilings, flow, ofServers, panels as serverPanels, poolTable, trafficTable } from "./servers";
import { modelCharts, movesBytes, overSizes, sizeTable, spoiled, sweepCharts } from "./size";
import { picked, table, tableElement, type Table } from "./table";
import { errorsOverTime, latencyOverTime, rateCharts, resourceStrips } from "./time";

/**
 * Its body is made again when one of its inputs is another object than before: all that the body reads is among them.
 * With `says` it is folded away, and that is what its title says of what is inside; null: there is nothing inside.
 */
export interface Section { id: string; title: string; inputs: readonly unknown[]; body: () => (Node | null)[]; says?: () => string | null; quiet?: boolean }


/** Status as a sign, a word and a colour, in this order of importance. */
export function badge(run: Run): HTMLElement {
  // What is said of a run that goes on is another a second later: its sign and colour come with its end.
  if (run.live) return badgeOf("so-far", "So far");
  // Sound runs that tell no difference are no answer: a tick alone would say more than is known.
  const open = kindOf(run) === "compare" ? openAnswers(run.analysis.comparisons) : "";
  const kind = !run.summary.answered ? "bad" : run.status === "VALID" && !open ? "good" : "fair";
  return badgeOf(kind, open ? `${run.status}, ${open}` : run.status);
}

function badgeOf(kind: "bad" | "good" | "fair" | "so-far", status: string): HTMLElement {
  const sign = { bad: "✕", good: "✓", fair: "!", "so-far": "●" }[kind];
  return h("p", { class: `badge ${kind}` }, h("span", { "aria-hidden": "true" }, sign), " ", status.replace(/^\[(.*)\]$/, "$1"));
}

/** `**` stands around what matters most. */
const emphasised = (text: string): Node[] => text.split("**").map((part, i) => (i % 2 === 1 ? h("strong", {}, part) : document.createTextNode(part)));

/** A fact of more characters has a row to itself. */
const WIDE = 60;

/** Figures of the first screen, the one of each fact that is asked for first in large; none is broken in two. */
const LARGE: Record<string, RegExp> = { rate: /^/, throughput: /^/, response: /^p99 / };
function figures(f: GlanceFact): (Node | string)[] {
  const text = f.text.replace(/(\d) us\b/g, "$1 µs");
  const parts = text.split(/ {2,}/);
  if (parts.length === 1 && !LARGE[f.name]) return [text];
  const large = parts.findIndex((p) => LARGE[f.name]?.test(p));
  return parts.flatMap((p, i) => [...(i ? ["   "] : []), h("span", { class: i === large ? "whole large" : p.length < 32 ? "whole" : null }, p)]);
}

const factList = (all: GlanceFact[], kind: string): HTMLElement | null =>
  (all.length ? h("dl", { class: kind }, ...all.map((f) => h("div", { class: f.text.length > WIDE ? "wide" : "" }, h("dt", {}, f.name), h("dd", {}, ...figures(f))))) : null);

export const verdictInputs = (run: Run): readonly unknown[] => [run.status, run.verdict, run.glance, run.end, run.live, run.summary.answered, run.summary.labels, run.summary.findings, run.summary.workloads, run.analysis.comparisons, run.analysis.advice];

const runLabels = (run: Run): HTMLElement[] => Object.entries(run.summary.labels).map(([k, v]) => h("span", { class: "label" }, `${k}=${v}`));

/** The widest interval of lines that have no rate because of it, a part of the value; null: it is something else that is missing. */
function tooWide(run: Run): number | null {
  const { findings, workloads } = run.summary;
  if (!findings.some((f) => f.code === "V04" && f.level === "invalid" && f.name === "no_rate")) return null;
  const half = workloads.flatMap((w) => (w.valid || !w.ops_per_s || w.ops_per_s.low === null || w.ops_per_s.high === null ? [] : [(w.ops_per_s.high - w.ops_per_s.low) / 2 / w.ops_per_s.value]));
  const widest = Math.max(...half);
  return half.length > 0 && Number.isFinite(widest) ? widest : null;
}

/** What of a run that goes on cannot be used yet, or what it would be if it ended now. */
export function soFar(run: Run): string {
  const status = run.status.replace(/^\[(.*)\]$/, "$1");
  if (run.summary.workloads.length === 0) return "The run goes on; not usable yet";
  if (run.summary.answered) return `The run goes on; if it ended now: ${status}`;
  const wide = tooWide(run);
  return `The run goes on; not usable yet: ${wide === null ? `${status} if it ended now` : `interval ±${percent(wide)}`}`;
}

/**
 * Of a run that goes on: in a few lines that are as high whatever they say, the rest folded away, so that nothing below it jumps. Advice to
 * run longer is none while it does.
 */
function verdictSoFar(run: Run, text: string): HTMLElement {
  const [g, labels] = [run.glance, runLabels(run)];
  const said = run.summary.answered || run.summary.workloads.length === 0 ? g.sentence : "";
  return h("div", { class: "verdict going" },
    h("div", { class: "state" }, badge(run), h("p", { class: "note" }, soFar(run)), labels.length ? h("p", { class: "labels" }, ...labels) : null),
    h("p", { class: "lead" }, said),
    unfold("All that can be said so far", () => [said ? null : h("p", {}, g.sentence), factList(g.facts, "glance"), factList(g.reservations, "glance reservations"), h("p", { class: "whole" }, ...emphasised(text))]));
}

/** So many sentences of advice are open, the most useful first: below them the picture is on the first screen, too. */
const OPEN_ADVICE = 3;

/** What follows for those who use the storage: text, whatever is in it, whose lines stay lines. */
function adviceList(all: string[]): HTMLElement | null {
  const list = (some: string[]) => h("ul", {}, ...some.map((t) => h("li", {}, t)));
  const rest = all.slice(OPEN_ADVICE);
  if (all.length === 0) return null;
  return h("div", { class: "advice" }, h("p", {}, h("strong", {}, "Advice")),
    h("div", {}, list(all.slice(0, OPEN_ADVICE)), rest.length ? unfold(`${rest.length} more`, () => [list(rest)]) : null));
}

/** On the first screen stands what follows from a run that is over and says something; else it is with the limits. */
const advisesFirst = (run: Run): boolean => !run.live && run.summary.answered;

export function verdict(run: Run): HTMLElement {
  // The badge has said the status; the text need not say it twice.
  const text = run.verdict.replace(/^((PARTLY )?VALID( \(\d+ notes?\))?|\[INVALID[^\]]*\])[.:]?\s+/, "");
  if (run.live) return verdictSoFar(run, text);
  const labels = runLabels(run);
  const g = run.glance;
  const advice = advisesFirst(run) ? run.analysis.advice : [];
  // What advice says in full is no fact beside it.
  const facts = g.facts.filter((f) => !advice.some((a) => a.includes(f.text)));
  return h("div", { class: "verdict" }, badge(run), h("p", { class: "lead" }, g.sentence), factList(facts, "glance"),
    factList(g.reservations, "glance reservations"), adviceList(advice),
    unfold(g.more_reservations ? `The whole verdict, and ${g.more_reservations} more note${g.more_reservations > 1 ? "s" : ""}` : "The whole verdict", () => [h("p", { class: "whole" }, ...emphasised(text))]),
    run.end !== null && run.end !== "done" ? h("p", { class: "warning" }, `The run ended early: ${run.end}.`) : null,
    labels.length ? h("p", { class: "labels" }, ...labels) : null);
}

function findings(run: Run): HTMLElement | null {
  const rank = { invalid: 0, qualified: 1, info: 2 };
  // One check on many lines is one item: the worst first, the others folded away.
  const distance = (f: Finding) => (f.measured === undefined || f.threshold === undefined ? 0 : Math.abs(f.measured - f.threshold));
  const groups = new Map<string, Finding[]>();
  run.summary.findings.forEach((f, i) => {
    const key = f.workload ? `${f.level} ${f.code} ${f.name}` : `${f.level} ${i}`;
    groups.set(key, [...(groups.get(key) ?? []), f]);
  });
  const all = [...groups.values()].map((g) => g.sort((a, b) => distance(b) - distance(a))).sort((a, b) => rank[a[0]!.level] - rank[b[0]!.level]);
  const items = all.map((g) => {
    const f = g[0]!;
    const others = g.slice(1);
    const [sign, word] = SIGNS[f.level];
    const measured = f.measured === undefined ? "" : `measured ${plain(f.measured)}${f.threshold === undefined ? "" : `, threshold ${plain(f.threshold)}`}`;
    return keyed(`${f.level} ${f.code} ${f.name}`, h("li", { class: f.level },
      h("p", {}, h("span", { class: "sign", "aria-hidden": "true" }, sign), h("strong", {}, `${word} ${f.code}`), ` ${f.name.replaceAll("_", " ")}${f.workload ? ` (${f.workload})` : ""}`),
      h("p", {}, f.text),
      measured || f.evidence?.length ? h("p", { class: "note" }, [measured, ...(f.evidence ?? []).map(([k, v]) => `${k} ${v}`)].filter(Boolean).join("; ")) : null,
      others.length ? unfold(`The same on ${others.length} more`, () => [h("ul", {}, ...others.map((o) => h("li", { class: "more" }, `${o.workload}: ${o.text}`)))]) : null));
  });
  items.push(...run.gaps.map((g) => h("li", { class: "qualified" }, h("p", {}, h("span", { class: "sign", "aria-hidden": "true" }, "!"), h("strong", {}, "Missing")), h("p", {}, g))));
  return items.length ? h("ul", { class: "findings" }, ...items) : null;
}

function headline(run: Run, w: Workload, label: string, folded = false): HTMLElement {
  const rate = run.block ? "IOPS" : "op/s";
  const figure = (value: string, unit: string, what: string) => h("div", { class: "figure" }, h("dt", {}, what), h("dd", {}, h("span", { class: "value" }, value), " ", h("span", { class: "unit" }, unit)));
  const response = w.latency_ns.response;
  const split = (ns: number | null | undefined): [string, string] => {
    const [v, u] = latency(ns).split(" ");
    return [v ?? MISSING, u ?? ""];
  };
  return keyed(label, h("section", { class: w.valid ? "workload" : "workload void" }, h("h3", {}, label), spoiled(run, w) ? badgeOf("bad", spoiled(run, w)) : null,
    h("dl", { class: "headline" },
      figure(estimate(w.ops_per_s), rate, "Rate, 95 % interval"),
      movesBytes(w) ? figure(estimate(w.bytes_per_s, 1 / MIB), "MiB/s", `Throughput (${estimate(w.bytes_per_s, 1e-6)} MB/s)`) : null,
      figure(...split(response?.p50), "Median response"), figure(...split(response?.p99), "p99 response")),
    response ? tableElement(latencies(w)) : null, folded ? unfold("How it was measured", () => [tableElement(conditions(w), { caption: false })]) : tableElement(conditions(w)),
    w.per_endpoint.length > 1 ? tableElement(endpoints(w), { copy: true }) : null));
}

function latencies(w: Workload): Table {
  const l = w.latency_ns;
  // In a closed loop both clocks are one.
  const open = l.service !== null && JSON.stringify(l.service) !== JSON.stringify(l.response);
  const rows = ([[open ? "response" : "service", l.response], ["service", open ? l.service : null], ["first byte", l.ttfb], ["submission", l.submission]] as const)
    .flatMap(([name, x]) => {
      if (!x) return [];
      const row = [name, latency(x.mean), ...[x.p50, x.p90, x.p99, x.p999, x.p9999].map((p) => latency(p)), latency(x.max)];
      const bounds = x.intervals ? [x.intervals.p50, x.intervals.p90, x.intervals.p99, x.intervals.p999].map(reach) : [];
      return bounds.some((b) => b) ? [row, [`${name}, 95 % interval`, "", ...bounds, "", ""]] : [row];
    });
  const note = open ? "response from the intended start, service from submission" : "closed loop: response time is service time";
  return table(`Latency (${note})`, 1, ["clock", ">mean", ">p50", ">p90", ">p99", ">p99.9", ">p99.99", ">max"], rows);
}

function outcomes(w: Workload): string {
  const part = (name: string, pick: (n: string) => boolean) => {
    const each = Object.entries(w.outcomes).filter(([n, k]) => pick(n) && k > 0).map(([n, k]) => `${n} ${count(k)}`);
    const sum = sumOutcomes(w.outcomes, pick);
    return `${name} ${count(sum)}${each.length ? ` (${each.join(", ")})` : ""}`;
  };
  const cancelled = w.outcomes["cancelled"] ? `; unfinished at the end ${count(w.outcomes["cancelled"])}` : "";
  return `ok ${count(w.outcomes["ok"] ?? 0)}; ${part("throttled", isThrottled)}; ${part("failed", isFailure)}${cancelled}`;
}

function conditions(w: Workload): Table {
  const c = w.client;
  const l = w.littles_law;
  const known = c.busy_fraction > 0 || c.cpu_s > 0 || c.rss_bytes > 0;
  const client = !known ? ["not recorded"] : [`workers busy ${percent(c.busy_fraction)}`, `CPU ${c.cpu_s.toFixed(1)} s${c.cpu_s_per_gib === null ? "" : ` (${c.cpu_s_per_gib.toFixed(2)} s/GiB)`}`, `machine's CPU ${percent(c.system_cpu)}`,
    c.steal > 0.001 ? `stolen ${percent(c.steal)}` : "", c.rss_bytes ? `memory ${bytes(c.rss_bytes)}` : "", c.reconnects ? `${count(c.reconnects)} reconnects` : "", c.late_ops ? `${count(c.late_ops)} ops sent late` : ""];
  return table("How it was measured", 1, ["what", "value"], [
    ["Load", `${w.offered_per_s ? `${significant(w.offered_per_s, 4)} op/s offered, at most ` : ""}${w.concurrency} in flight${w.repeats > 1 ? `, ${w.repeats} repeats` : ""}`],
    ["Measured window", `${seconds(w.window_s)}; left out: warm-up ${seconds(w.warmup_s)}, tail ${seconds(w.tail_s)}`],
    ["Horizon", `seen for ${seconds(w.horizon_s)}: what would come later is not known`],
    ["Operations", outcomes(w)],
    ...(w.attempts_per_s && w.ops_per_s && w.attempts_per_s > w.ops_per_s.value * 1.001 ? [["Attempts", `${significant(w.attempts_per_s, 4)} per second, throttled and failed ones included`]] : []),
    ...(l ? [["Little's law", `${significant(l.in_flight, 4)} in flight, rate × time gives ${significant(l.rate_times_time, 4)} (off by ${percent(Math.abs(l.error))})`]] : []),
    ["Client", client.filter(Boolean).join(", ")],
    ...w.notes.map((n) => ["Note", n]),
  ]);
}

function endpoints(w: Workload): Table {
  return table("By endpoint", 1, ["endpoint", ">op/s", ">MiB/s", ">mean", ">max", ">ok", ">throttled", ">failed"], w.per_endpoint.map((e) => [
    e.endpoint, significant(e.ops_per_s, 4), significant(e.bytes_per_s / MIB, 4), latency(e.mean_response_ns), latency(e.max_response_ns), count(e.ok), count(e.throttled), count(e.failed)]));
}

/** One row per line, for runs that are no sweep. */
function overview(run: Run): Table {
  return table("Results", 1, ["what", run.block ? ">IOPS" : ">op/s", ">MiB/s", ">p50", ">p99", ">p99.9", ">refused", ">failed", "validity"], run.summary.workloads.map((w, i) => {
    const l = w.latency_ns.response;
    const shown = (n: number) => (n > 0 ? count(n) : "");
    return [run.labels[i] ?? w.name, estimate(w.ops_per_s), movesBytes(w) ? estimate(w.bytes_per_s, 1 / MIB) : "", latency(l?.p50), latency(l?.p99), latency(l?.p999),
      shown(sumOutcomes(w.outcomes, isThrottled)), shown(sumOutcomes(w.outcomes, isFailure)), spoiled(run, w)];
  }));
}

/** The one table of the first screen, by the kind of run. */
function answerTables(run: Run): (Table | null)[] {
  const a = run.analysis;
  switch (kindOf(run)) {
    case "compare": return comparisonTables(a.comparisons).slice(0, 1);
    case "scale": return a.scalings.map(scalingTable);
    case "limits": return [limitTable(run) ?? overview(run)];
    case "search": return a.saturations.length > 1 ? [searchTable(a.saturations)] : a.saturations.map(saturationTable);
    case "cycles": return [cycleTable(run)];
    case "sweep": return [sizeTable(run)];
    default: return run.summary.workloads.length > 0 ? [overview(run)] : [];
  }
}

function results(run: Run): Section {
  const s = run.summary;
  const a = run.analysis;
  const kind = kindOf(run);
  return {
    id: "results", title: "Results", inputs: [s.answered, s.workloads, run.labels, run.spoiled, run.sweep, run.block, s.limits, s.labels, s.findings, a.saturations, a.comparisons, a.scalings, a.buckets, run.live, kind, ...(kind === "cycles" ? [run.series, run.stages] : [])],
    body: () => {
      const shown = answerTables(run).flatMap((t) => (t ? [tableElement(t, { copy: true, void: !s.answered })] : []));
      return [...shown, shown.length === 0 ? h("p", {}, run.live ? "Nothing is measured yet." : "Nothing was measured; the findings say why.") : null];
    },
  };
}

/** Each line in full: latencies by clock, what was sent and refused, how it was measured. */
function lines(run: Run): Section {
  const s = run.summary;
  const kind = kindOf(run);
  const notes = [...new Set(s.workloads.flatMap((w) => w.notes))];
  const stepsApart = kind === "limits" || kind === "search" || kind === "cycles";
  return {
    id: "lines", title: s.workloads.length > 1 ? (kind === "limits" || kind === "search" ? "Steps" : "Each line in full") : "In full",
    inputs: [s.workloads, run.labels, run.spoiled, run.sweep, run.block, s.limits, s.labels, kind],
    says: () => (s.workloads.length ? `${s.workloads.length > 1 ? `${s.workloads.length} lines, ` : ""}${ofLines(run)}` : null),
    body: () => [
      ...(stepsApart && s.workloads.length > 1 ? [tableElement(run.sweep ? sizeTable(run) : overview(run), { copy: true })] : []),
      kind === "sweep" ? grid(sweepCharts(run).slice(1)) : null,
      run.sweep && notes.length ? h("p", { class: "note" }, `Notes: ${notes.join("; ")}.`) : null,
      ...s.workloads.map((w, i) => headline(run, w, run.labels[i] ?? w.name, s.workloads.length > 1))],
  };
}

/** In the place of a chart that is to come: what stands below it does not move when it does. */
const toCome = (): HTMLElement => h("p", { class: "note to-come" }, "The chart begins with the first figures on record.");

/** The chart that tells this kind of run. */
function firstPicture(run: Run): Section {
  const { summary: s, analysis: a } = run;
  const of = pictured(run);
  return {
    id: "picture", title: "In one picture", quiet: true,
    inputs: [of, s.servers, s.workloads, s.limits, s.labels, s.findings, run.labels, run.spoiled, run.sweep, run.block, a.size_models, a.buckets, a.saturations, a.comparisons, a.scalings, ...(of === "rate" || of === "cycles" ? [run.series, a.outages, a.throttled, a.remarks, ...axis(run)] : []), run.live],
    body: () => [grid([picture(run)]) ?? (run.live ? toCome() : null), grid([flow(run)])],
  };
}

/** What they could give and what of it was used, what became of the clients' bytes, and all of it over time. */
function servers(run: Run): Section {
  const s = run.summary;
  return { id: "servers", title: "Servers", inputs: [s.servers, run.servers, s.answered, run.status, ...axis(run)], says: () => ofServers(run), body: () => [...tables([...ceilings(s.servers), ...trafficTable(s.servers)]), serverPanels(run), ...tables([poolTable(s.servers), backgroundTable(s.servers)])] };
}

const grid = (charts: (ChartElement | null)[]): HTMLElement | null => {
  const some = charts.filter((c) => c !== null);
  return some.length ? h("div", { class: some.length > 1 ? "grid" : "grid one" }, ...some) : null;
};

/** One under the other, so that their time axes line up. */
const column = (charts: ChartElement[]): HTMLElement | null => (charts.length ? h("div", { class: "grid one" }, ...charts) : null);

/** Rate first, what was refused right below it, then what moved and how long it took. */
function overTime(run: Run): ChartElement[] {
  const [rate, ...rest] = rateCharts(run);
  return rate ? [...(pictured(run) === "rate" ? [] : [rate]), ...errorsOverTime(run), ...rest, ...latencyOverTime(run)] : [];
}

/** Limits, with the evidence that carries them. */
function limits(run: Run): Section {
  const { summary: s, analysis: a } = run;
  const there = s.limits.length + a.buckets.length + a.size_models.length + (advisesFirst(run) ? 0 : a.advice.length) + a.holds.reduce((n, x) => n + x.cliffs.length, 0) > 0;
  return { id: "limits", title: "Limits", inputs: [s.limits, s.answered, run.status, a.buckets, a.holds, a.advice, a.size_models, run.live, kindOf(run), pictured(run)], says: () => (there ? ofLimits(run) : null), body: () => limitsBody(run) };
}

function limitTable(run: Run): Table | null {
  const { summary: s, analysis: a } = run;
  const show = (e: Parameters<typeof estimate>[0], unit: string, factor: number) => (e ? `${estimate(e, factor)} ${unit}` : "undetermined");
  const rows = s.limits.flatMap((l) => ([["ops", l.ops_per_s], ["bytes", l.bytes_per_s]] as const).flatMap(([unit, b]) => {
    if (!b) return [];
    const [factor, rate, tokens] = unit === "bytes" ? [1e-6, "MB/s", "MB"] as const : [1, "op/s", "ops"] as const;
    const fit = a.buckets.find((f) => f.unit === unit && f.op_class === l.op_class);
    // From a capacity and a refill that were measured: of a bound it does not follow.
    const full = (b.full_again_s ?? (fit?.status === "measured" ? fit.full_again_s : null))?.value ?? null;
    // What no limiter was proved to hold is a speed; what no burst was seen to come before may be that of a longer one.
    const seen = !b.sustained || (b.proved && b.capacity) ? "" : b.proved ? "held " : "seen ";
    return [[`${l.op_class} ${unit}`, `${seen}${show(b.sustained, rate, factor)}`, show(b.burst, rate, factor), show(b.capacity, tokens, factor), show(b.refill, rate, factor), full === null ? "" : seconds(full), l.scope, l.binding, fit?.status ?? ""]];
  }));
  return rows.length ? table("Limits", 1, ["limit", ">sustained", ">burst", ">capacity", ">refill", ">full again", "scope", "binds", "status"], rows) : null;
}

function limitsBody(run: Run): (Node | null)[] {
  const { summary: s, analysis: a } = run;
  const limitsOf = limitTable(run);
  const shown = pictured(run);
  const drawn = shown === "model" ? a.size_models.find(overSizes) : null;
  const knees = s.limits.filter((l) => l.knee_bytes).map((l) => h("p", {}, `${l.op_class}: below ${sizeEstimate(l.knee_bytes!)} limited by operations, above by bytes.`));
  const cliffs = a.holds.flatMap((x) => x.cliffs).map((c) => tableElement(table(
    `Fall at ${seconds(c.at_s)}: ${significant(c.from_per_s, 4)} to ${significant(c.to_per_s, 4)} per second; ${c.verdict}`, 1, ["evidence", "seen", "weight", "what"],
    c.evidence.map((e) => [e.code, e.holds === null ? "not tested" : e.holds ? "yes" : "no", e.weight, e.text]))));
  const advice = advisesFirst(run) ? null : adviceList(a.advice);
  return [
    limitsOf && kindOf(run) !== "limits" ? tableElement(limitsOf, { copy: true }) : null,
    ...knees, advice, grid(bucketCharts(a.buckets).slice(shown === "bucket" ? 1 : 0)), grid(modelCharts(a.size_models.filter((m) => m !== drawn))), ...cliffs,
  ];
}

const tables = (all: (Table | null)[]): HTMLElement[] => all.flatMap((t) => (t ? [tableElement(t, { copy: true })] : []));

/** Rates are drawn; of a long table the rest is drawn when asked for. */
function comparisons(a: Run["analysis"]): (HTMLElement | null)[] {
  const most = 4;
  const first = answering(a.comparisons).slice(0, most);
  const rest = a.comparisons.filter((c) => !first.includes(c));
  const drawn = grid(comparisonCharts(first));
  return [drawn, rest.length > 0 ? unfold(`${rest.length} more comparisons drawn`, () => [grid(comparisonCharts(rest)) ?? h("p", {}, "Nothing to draw.")]) : null];
}

function loadAndScale(run: Run): Section {
  const a = run.analysis;
  const there = a.saturations.length + a.load_points.length + a.scalings.length + a.comparisons.length > 0;
  const kind = kindOf(run);
  const title = kind === "compare" ? "Each comparison" : kind === "scale" ? "Efficiency" : "Load, scale, comparison";
  return { id: "load", title, inputs: [a.saturations, a.load_points, a.scalings, a.comparisons, run.status, run.summary.answered, kind], says: () => (there ? ofLoad(run) : null), body: () => [
    grid(saturationCharts(a.saturations).slice(kind === "search" && a.saturations.filter((s) => s.points.length > 0).length === 1 ? 1 : 0)), grid(loadCurves(a.load_points)), ...tables([loadTable(a.load_points)]),
    grid(scalingCharts(a.scalings)), ...(kind === "scale" ? [] : tables(a.scalings.map(scalingTable))), ...tables(comparisonTables(a.comparisons).slice(kind === "compare" ? 1 : 0)), ...comparisons(a)] };
}

function validity(run: Run): Section {
  const { summary: s, analysis: a } = run;
  return { id: "validity", title: "Validity", inputs: [s.findings, run.gaps, s.expectations, a.bottlenecks, a.checks], says: () => ofValidity(run), body: () => validityBody(run) };
}

function validityBody(run: Run): (Node | null)[] {
  const { summary: s, analysis: a } = run;
  const met = (m: boolean | null) => (m === null ? "undetermined" : m ? "✓\u00a0yes" : "✕\u00a0NO");
  const [tested, untested] = [a.checks.filter((c) => c.result !== "not tested"), a.checks.filter((c) => c.result === "not tested")];
  const sign: Record<string, string> = { pass: "✓\u00a0pass", fail: "✕\u00a0fail", note: "!\u00a0note" };
  const none = s.findings.length + run.gaps.length + s.expectations.length + a.bottlenecks.length + a.checks.length === 0;
  return [
    none ? h("p", {}, "Nothing was found that stands against the result. Its checks were not recorded.") : null,
    findings(run),
    s.expectations.length ? tableElement(table("Expectations", 1, ["expected", "met", ">measured", "reason"], s.expectations.map((e) => [e.text, met(e.met), e.measured === null ? MISSING : plain(e.measured), e.reason]))) : null,
    a.bottlenecks.length ? tableElement(table("What could be the bottleneck", 1, ["candidate", ">measured", ">threshold", ">time above", "verdict", "next experiment"],
      a.bottlenecks.map((b) => [b.candidate, b.measured, b.threshold, b.time_fraction === null ? "" : percent(b.time_fraction), b.verdict, b.next]))) : null,
    tested.length ? tableElement(table("Validity checks", 1, ["check", "name", "result", ">measured", "threshold", "remedy"], tested.map((c) => [c.code, c.name, sign[c.result] ?? c.result, c.measured, c.threshold, c.remedy]))) : null,
    untested.length ? unfold(`${untested.length} checks that this run could not make`, () => [tableElement(table("Checks that were not made", 1, ["check", "name", "threshold", "why"], untested.map((c) => [c.code, c.name, c.threshold, c.remedy])))]) : null,
  ];
}

/** Figures of each line, then what they are made of, then what they take as given. */
function costBody(run: Run): (Node | null)[] {
  const c = run.summary.cost;
  if (!c) return [];
  const lines = costTable(c);
  return [...(lines.rows.length ? tables([lines]) : []), ...(c.figures.length ? tables([arithmetic(c)]) : []), tableElement(table("What it rests on", 1, ["what", "as given"], assumptions(run, c)))];
}

function provenance(run: Run): Section {
  const s = run.summary;
  return { id: "provenance", title: "Provenance", inputs: [s.id, s.environment, s.rerun, run.plan, run.seal, run.live], says: () => (s.environment.plimsoll_version || s.rerun ? ofProvenance(run) : null), body: () => provenanceBody(run) };
}

function provenanceBody(run: Run): (Node | null)[] {
  const e = run.summary.environment;
  const facts: [string, string][] = [
    ["Run", run.summary.id], ["Started", e.started_at], ["Plimsoll", `${e.plimsoll_version} (${e.commit})`], ["Host", e.host], ["Kernel", e.kernel],
    ["CPU", `${e.cpu_count} × ${e.cpu_model}`], ["Memory", e.memory_bytes ? bytes(e.memory_bytes) : ""],
    ["Network", Object.entries(e.nics).map(([n, mbit]) => (mbit === null ? n : `${n} ${mbit >= 1000 ? `${mbit / 1000} Gbit/s` : `${mbit} Mbit/s`}`)).join(", ")],
    ["Ring", e.ring], ["Seed", String(e.seed)], ["Boot", e.boot_id],
    ["Seal", run.seal ? `${run.seal.files} raw files, ${bytes(run.seal.bytes)}; XXH3-128 of the series ${run.seal.xxh3}` : "none: the run did not end in order"],
    ...Object.entries(e.identity ?? {}).map(([k, v]): [string, string] => [`Machine: ${k.replaceAll("_", " ")}`, v]),
    ...Object.entries(e.servers).map(([k, v]): [string, string] => [`Server ${k}`, v]),
    ...Object.entries(e.notes).map(([k, v]): [string, string] => [k, v]),
    ...Object.entries(e.ceiling).map(([k, v]): [string, string] => [`Ceiling ${k}`, significant(v, 4)]),
    ...Object.entries(e.devices).flatMap(([d, facts]) => Object.entries(facts).map(([k, v]): [string, string] => [`${d} ${k}`, v])),
  ];
  const rerun = run.summary.rerun;
  return [
    // What several runs say together has no environment of its own.
    e.plimsoll_version ? tableElement(table("Environment", 1, ["what", "value"], facts.filter(([, v]) => v !== ""))) : null,
    rerun ? h("div", { class: "again" }, h("h3", {}, "To repeat this run"), h("pre", { tabindex: 0 }, h("code", {}, rerun))) : null,
    run.plan ? h("details", { class: "data" }, h("summary", {}, "Plan"), h("pre", { tabindex: 0 }, h("code", {}, run.plan))) : null,
  ];
}

/** What the time axis and all that is drawn on it are made of. */
const axis = (run: Run): readonly unknown[] => [run.stages, run.analysis.holds];

/** First the picture and the table; all else is folded away, and each fold's title says what is in it. */
export function runSections(run: Run): Section[] {
  const { summary: s, analysis: a } = run;
  return [
    firstPicture(run), results(run),
    servers(run), limits(run), loadAndScale(run), validity(run),
    { id: "time", title: "Over time", inputs: [run.series, run.sweep, run.block, run.labels, s.answered, run.status, s.workloads, kindOf(run), pictured(run), ...axis(run), a.outages, a.throttled, a.remarks, run.live], says: () => (run.series.length ? ofTime(run) : null), body: () => [column(overTime(run))] },
    { id: "latency", title: "Latency", inputs: [run.spectra, run.labels, s.workloads, s.answered, run.status], says: () => (run.spectra.length ? ofLatency(run) : null), body: () => [grid(spectrumCharts(run))] },
    lines(run),
    { id: "agents", title: "Agents", inputs: [s.agents, s.findings, s.answered, run.block], says: () => ofAgents(run), body: () => tables([agentTable(run)]) },
    { id: "cost", title: "Cost", inputs: [s.cost, run.plan], says: () => ofCost(run), body: () => costBody(run) },
    { id: "resources", title: run.resources.some((r) => r.role === "server") ? "Client and servers" : "Client", inputs: [run.resources, a.checks, a.bottlenecks, s.findings, ...axis(run)], says: () => (run.resources.length ? ofResources(run) : null), body: () => [resourceStrips(run)] },
    provenance(run),
  ];
}

/** What several runs say together: the same parts as the first screen of one run. */
export function togetherVerdict(t: SideBySide): HTMLElement {
  const kind = t.mark === "VALID" ? "good" : t.mark.startsWith("PARTLY") ? "fair" : "bad";
  return h("div", { class: "verdict" }, badgeOf(kind, t.mark), h("p", { class: "lead" }, t.sentence), factList(t.facts, "glance"));
}

/** Several runs side by side: bars first, then the rates by what is compared. */
export function groupSections(page: Page): Section[] {
  return [
    { id: "picture", title: "In one picture", quiet: true, inputs: [page.groups, page.by, page.runs, page.together], body: () => [grid([groupChart(page)])] },
    { id: "groups", title: "Side by side", inputs: [page.groups, page.by, page.columns, page.together], body: () => groupBody(page) },
  ];
}

function groupBody(page: Page): (Node | null)[] {
  // Where each row is one line, its number says nothing.
  const several = page.groups.some((g) => g.lines > 1);
  const rows = page.groups.map((g) => [...g.keys, estimate(g.ops_per_s), estimate(g.bytes_per_s, 1 / MIB), latency(g.p50_ns), latency(g.p99_ns), several ? String(g.lines) : "", g.left_out ? (g.ops_per_s ? `${g.left_out} invalid${leftOut(page, g) && ` (${leftOut(page, g)})`}` : `[INVALID${leftOut(page, g) && ` ${leftOut(page, g)}`}]`) : ""]);
  const full = tableElement(picked(table("Runs side by side", page.by.length, [...page.by, ">op/s", ">MiB/s", ">p50", ">p99", ">Lines", "Left out"], rows), page.columns), { copy: true });
  const pivot = page.columns.length === 0 ? pivotTable(page) : null;
  return [
    ...(pivot ? [tableElement(pivot, { copy: true }), unfold(`All figures: ${page.groups.length} rows`, () => [full])] : [full]),
    h("p", { class: "note" }, "Of several lines: the geometric mean with Student's 95 % interval over lines. Invalid runs are in no mean.")];
}
