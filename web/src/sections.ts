// The page's sections, in the order in which a verdict is read: validity, figures, evidence, provenance.
import type { ChartElement } from "./chart";
import { h } from "./dom";
import type { Finding, Page, Run, Workload } from "./feed";
import { bytes, count, estimate, isFailure, isThrottled, latency, MIB, MISSING, percent, plain, reach, seconds, significant, sizeEstimate, sumOutcomes } from "./format";
import { groupChart } from "./groups";
import { keyed, unfold } from "./keyed";
import { loadCurves, loadTable, spectrumCharts } from "./latency";
import { bucketCharts, comparisonCharts, comparisonTables, saturationCharts, scalingCharts, scalingTable } from "./limits";
import { modelCharts, movesBytes, sizeTable, spoiled, sweepCharts } from "./size";
import { table, tableElement, type Table } from "./table";
import { errorsOverTime, latencyOverTime, rateCharts, resourceStrips } from "./time";

/** Its body is made again when one of its inputs is another object than before: all that the body reads is among them. */
export interface Section { id: string; title: string; inputs: readonly unknown[]; body: () => (Node | null)[] }

const SIGNS: Record<Finding["level"], [string, string]> = { invalid: ["✕", "Invalid"], qualified: ["!", "Note"], info: ["i", "Info"] };

/** Status as a sign, a word and a colour, in this order of importance. */
export function badge(run: Run): HTMLElement {
  const kind = !run.summary.answered ? "bad" : run.status === "VALID" ? "good" : "fair";
  return badgeOf(kind, run.status);
}

function badgeOf(kind: "bad" | "good" | "fair", status: string): HTMLElement {
  const sign = { bad: "✕", good: "✓", fair: "!" }[kind];
  return h("p", { class: `badge ${kind}` }, h("span", { "aria-hidden": "true" }, sign), " ", status.replace(/^\[|\]$/g, ""));
}

/** `**` stands around what matters most. */
const emphasised = (text: string): Node[] => text.split("**").map((part, i) => (i % 2 === 1 ? h("strong", {}, part) : document.createTextNode(part)));

export const verdictInputs = (run: Run): readonly unknown[] => [run.status, run.verdict, run.end, run.live, run.summary.answered, run.summary.labels];

export function verdict(run: Run): HTMLElement {
  // The badge has said the status; the text need not say it twice.
  const text = run.verdict.replace(/^((PARTLY )?VALID( \(\d+ notes?\))?|\[INVALID[^\]]*\])[.:]?\s+/, "");
  const labels = Object.entries(run.summary.labels);
  return h("div", { class: "verdict" }, badge(run), h("p", { class: "lead" }, ...emphasised(text)),
    run.live ? h("p", { class: "note" }, "The run goes on: this is what can be said so far.") : null,
    run.end !== null && run.end !== "done" ? h("p", { class: "warning" }, `The run ended early: ${run.end}.`) : null,
    labels.length ? h("p", { class: "labels" }, ...labels.map(([k, v]) => h("span", { class: "label" }, `${k}=${v}`))) : null);
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
  const client = [`workers busy ${percent(c.busy_fraction)}`, `CPU ${c.cpu_s.toFixed(1)} s${c.cpu_s_per_gib === null ? "" : ` (${c.cpu_s_per_gib.toFixed(2)} s/GiB)`}`, `machine's CPU ${percent(c.system_cpu)}`,
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
  return table("Results at a glance", 1, ["workload", run.block ? ">IOPS" : ">op/s", ">MiB/s", ">p50", ">p99", ">p99.9", ">throttled", ">failed", "validity"], run.summary.workloads.map((w, i) => {
    const l = w.latency_ns.response;
    const shown = (n: number) => (n > 0 ? count(n) : "");
    return [run.labels[i] ?? w.name, estimate(w.ops_per_s), movesBytes(w) ? estimate(w.bytes_per_s, 1 / MIB) : "", latency(l?.p50), latency(l?.p99), latency(l?.p999),
      shown(sumOutcomes(w.outcomes, isThrottled)), shown(sumOutcomes(w.outcomes, isFailure)), spoiled(run, w)];
  }));
}

function results(run: Run): Section {
  const s = run.summary;
  const head = { id: "results", title: "Results", inputs: [s.workloads, run.labels, run.spoiled, run.sweep, run.block] };
  if (!run.sweep) return { ...head, body: () => [
    s.workloads.length > 1 ? tableElement(overview(run), { copy: true }) : null,
    s.workloads.length === 0 ? h("p", {}, "Nothing was measured; the findings say why.") : null,
    ...s.workloads.map((w, i) => headline(run, w, run.labels[i] ?? w.name, s.workloads.length > 1))] };
  const notes = [...new Set(s.workloads.flatMap((w) => w.notes))];
  return { ...head, body: () => [
    tableElement(sizeTable(run), { copy: true }), notes.length ? h("p", { class: "note" }, `Notes: ${notes.join("; ")}.`) : null, grid(sweepCharts(run)),
    unfold("Each cell in full", () => s.workloads.map((w, i) => headline(run, w, run.labels[i] ?? w.name)))] };
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
  return rate ? [rate, ...errorsOverTime(run), ...rest, ...latencyOverTime(run)] : [];
}

/** Limits, with the evidence that carries them. */
function limits(run: Run): Section {
  const { summary: s, analysis: a } = run;
  return { id: "limits", title: "Limits", inputs: [s.limits, a.buckets, a.holds, a.advice, a.size_models], body: () => limitsBody(run) };
}

function limitsBody(run: Run): (Node | null)[] {
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
  const knees = s.limits.filter((l) => l.knee_bytes).map((l) => h("p", {}, `${l.op_class}: below ${sizeEstimate(l.knee_bytes!)} operations bind, above it bytes.`));
  const cliffs = a.holds.flatMap((x) => x.cliffs).map((c) => tableElement(table(
    `Fall at ${seconds(c.at_s)}: ${significant(c.from_per_s, 4)} to ${significant(c.to_per_s, 4)} per second; ${c.verdict}`, 1, ["evidence", "seen", "weight", "what"],
    c.evidence.map((e) => [e.code, e.holds === null ? "not tested" : e.holds ? "yes" : "no", e.weight, e.text]))));
  const advice = a.advice.length ? h("ul", { class: "advice" }, ...a.advice.map((t) => h("li", {}, t))) : null;
  return [
    rows.length ? tableElement(table("Limits", 1, ["limit", ">sustained", ">burst", ">capacity", ">refill", ">full again", "scope", "binds", "status"], rows), { copy: true }) : null,
    ...knees, advice, grid(bucketCharts(a.buckets)), grid(modelCharts(a.size_models)), ...cliffs,
  ];
}

const tables = (all: (Table | null)[]): HTMLElement[] => all.flatMap((t) => (t ? [tableElement(t, { copy: true })] : []));

/** Rates are drawn; of a long table the rest is drawn when asked for. */
function comparisons(a: Run["analysis"]): (HTMLElement | null)[] {
  const most = 4;
  const rates = a.comparisons.filter((c) => c.measure === "rate" || c.measure === "");
  const first = (rates.length > 0 ? rates : a.comparisons).slice(0, most);
  const rest = a.comparisons.filter((c) => !first.includes(c));
  const drawn = grid(comparisonCharts(first));
  return [drawn, rest.length > 0 ? unfold(`${rest.length} more comparisons drawn`, () => [grid(comparisonCharts(rest)) ?? h("p", {}, "Nothing to draw.")]) : null];
}

function loadAndScale(run: Run): Section {
  const a = run.analysis;
  return { id: "load", title: "Load, scale, comparison", inputs: [a.saturations, a.load_points, a.scalings, a.comparisons], body: () => [
    grid(saturationCharts(a.saturations)), grid(loadCurves(a.load_points)), ...tables([loadTable(a.load_points)]),
    grid(scalingCharts(a.scalings)), ...tables(a.scalings.map(scalingTable)), ...tables(comparisonTables(a.comparisons)), ...comparisons(a)] };
}

function validity(run: Run): Section {
  const { summary: s, analysis: a } = run;
  return { id: "validity", title: "Findings and validity", inputs: [s.findings, run.gaps, s.expectations, a.bottlenecks, a.checks], body: () => validityBody(run) };
}

function validityBody(run: Run): (Node | null)[] {
  const { summary: s, analysis: a } = run;
  const met = (m: boolean | null) => (m === null ? "undetermined" : m ? "✓\u00a0yes" : "✕\u00a0NO");
  const [tested, untested] = [a.checks.filter((c) => c.result !== "not tested"), a.checks.filter((c) => c.result === "not tested")];
  const sign: Record<string, string> = { pass: "✓\u00a0pass", fail: "✕\u00a0fail", note: "!\u00a0note" };
  return [
    findings(run),
    s.expectations.length ? tableElement(table("Expectations", 1, ["expected", "met", ">measured", "reason"], s.expectations.map((e) => [e.text, met(e.met), e.measured === null ? MISSING : plain(e.measured), e.reason]))) : null,
    a.bottlenecks.length ? tableElement(table("What could be the bottleneck", 1, ["candidate", ">measured", ">threshold", ">time above", "verdict", "next experiment"],
      a.bottlenecks.map((b) => [b.candidate, b.measured, b.threshold, b.time_fraction === null ? "" : percent(b.time_fraction), b.verdict, b.next]))) : null,
    tested.length ? tableElement(table("Validity checks", 1, ["check", "name", "result", ">measured", "threshold", "remedy"], tested.map((c) => [c.code, c.name, sign[c.result] ?? c.result, c.measured, c.threshold, c.remedy]))) : null,
    untested.length ? unfold(`${untested.length} checks that this run could not make`, () => [tableElement(table("Checks that were not made", 1, ["check", "name", "threshold", "why"], untested.map((c) => [c.code, c.name, c.threshold, c.remedy])))]) : null,
  ];
}

function provenance(run: Run): Section {
  const s = run.summary;
  return { id: "provenance", title: "Environment and provenance", inputs: [s.id, s.environment, s.rerun, run.plan], body: () => provenanceBody(run) };
}

function provenanceBody(run: Run): (Node | null)[] {
  const e = run.summary.environment;
  const facts: [string, string][] = [
    ["Run", run.summary.id], ["Started", e.started_at], ["Plimsoll", `${e.plimsoll_version} (${e.commit})`], ["Host", e.host], ["Kernel", e.kernel],
    ["CPU", `${e.cpu_count} × ${e.cpu_model}`], ["Memory", e.memory_bytes ? bytes(e.memory_bytes) : ""],
    ["Network", Object.entries(e.nics).map(([n, mbit]) => (mbit === null ? n : `${n} ${mbit >= 1000 ? `${mbit / 1000} Gbit/s` : `${mbit} Mbit/s`}`)).join(", ")],
    ["Ring", e.ring], ["Seed", String(e.seed)], ["Boot", e.boot_id],
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

export function runSections(run: Run): Section[] {
  // What several runs say together has no lines of its own.
  const together = run.summary.workloads.length === 0 && run.analysis.comparisons.length + run.analysis.scalings.length > 0;
  const loadFirst = together || run.analysis.saturations.length > 0;
  return [
    // A search is read for what it found; its steps are the evidence and come after.
    ...(loadFirst ? [loadAndScale(run)] : []),
    ...(together ? [validity(run)] : run.summary.limits.length > 0 ? [limits(run), results(run), validity(run)] : [results(run), validity(run), limits(run)]),
    { id: "time", title: "Over time", inputs: [run.series, run.sweep, run.block, ...axis(run), run.analysis.outages, run.analysis.remarks], body: () => [column(overTime(run))] },
    { id: "latency", title: "Latency distribution", inputs: [run.spectra, run.labels, run.summary.workloads], body: () => [grid(spectrumCharts(run))] },
    ...(loadFirst ? [] : [loadAndScale(run)]),
    { id: "resources", title: "Client and system resources", inputs: [run.resources, ...axis(run)], body: () => [resourceStrips(run)] },
    provenance(run),
  ];
}

/** Several runs side by side. */
export function groupSection(page: Page): Section {
  return { id: "groups", title: "Side by side", inputs: [page.groups, page.by], body: () => groupBody(page) };
}

function groupBody(page: Page): (Node | null)[] {
  // Where each row is one line, its number says nothing.
  const several = page.groups.some((g) => g.lines > 1);
  const rows = page.groups.map((g) => [...g.keys, estimate(g.ops_per_s), estimate(g.bytes_per_s, 1 / MIB), latency(g.p50_ns), latency(g.p99_ns), several ? String(g.lines) : "", g.left_out ? `${g.left_out} invalid` : ""]);
  const figure = groupChart(page);
  return [
    tableElement(table("Runs side by side", page.by.length, [...page.by, ">op/s", ">MiB/s", ">p50", ">p99", ">Lines", "Left out"], rows), { copy: true }),
    figure ? h("div", { class: "grid one" }, figure) : null,
    h("p", { class: "note" }, "Of several lines: the geometric mean with Student's 95 % interval over lines. Invalid runs are in no mean.")];
}
