// What a fold's title says, so that it answers while it is closed. Of what is void no figure is in a title.
import type { Run } from "./feed";
import { bytes, estimate, latency, percent, plain, seconds, significant } from "./format";

const counted = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;

/** What makes the answer void, in the place of its figures. */
const unusable = (run: Run): string => `of an ${run.status.replace(/^\[|\]$/g, "").replace("INVALID", "invalid run").replace(/ ([A-Z]\d)/, ", $1")}`;

export function ofValidity(run: Run): string {
  const all = run.analysis.checks;
  const named = (result: string) => all.filter((c) => c.result === result);
  const codes = (list: typeof all) => (list.length > 0 && list.length <= 4 ? ` (${list.map((c) => c.code).join(", ")})` : "");
  const part = (result: string, word: string) => (named(result).length ? [`${named(result).length} ${word}${result === "not tested" ? "" : codes(named(result))}`] : []);
  const promises = run.summary.expectations;
  const met = promises.length ? [`${promises.filter((e) => e.met === true).length} of ${counted(promises.length, "promise")} met`] : [];
  if (all.length > 0) return [`${named("pass").length} of ${counted(all.length - named("not tested").length, "check")} passed`, ...part("fail", "failed"), ...part("note", "noted"), ...part("not tested", "without data to test"), ...met].join(", ");
  const level = (l: string) => new Set(run.summary.findings.filter((f) => f.level === l).map((f) => f.code)).size;
  const found = [...(level("invalid") ? [`${level("invalid")} against it`] : []), ...(level("qualified") ? [counted(level("qualified"), "note")] : [])];
  return [...(found.length ? found : ["nothing against it"]), ...met].join(", ");
}

/** What is consistent with the rate where nothing is proved to set it, as the fact `limited by` has it. */
function suspected(run: Run, candidate: RegExp): boolean {
  const all = run.analysis.bottlenecks;
  const decided = all.some((b) => ["proved", "likely", "the offered rate was met"].includes(b.verdict));
  return !decided && all.some((b) => b.verdict === "consistent with" && candidate.test(b.candidate));
}

/** Cores as a whole; the client's own workers are another candidate. */
const CORES = /^(this machine's processor|client processor \((?!worker threads))/;

/**
 * The check of the client looks at its workers; that other work, or the storage itself, takes the cores of its machine is no fault of the
 * client's, and may be the limit all the same. Each is said apart.
 */
export function ofResources(run: Run): string {
  const highest = (role: string, name: string) => {
    const values = run.resources.filter((r) => r.role === role && r.name === name).flatMap((r) => r.v.filter((v) => v !== null));
    return values.length ? Math.max(...values) : null;
  };
  const [cpu, server, busy] = [highest("client", "CPU"), highest("server", "CPU"), highest("client", "Workers busy")];
  const check = run.analysis.checks.find((c) => c.code === "V07")?.result;
  const voided = run.summary.findings.some((f) => f.code === "V07" && f.level === "invalid");
  const lost = voided || check === "fail";
  const judged = lost ? "it was the limit (V07)" : check === "pass" ? "not the limit" : "whether it was the limit was not tested";
  // V07 may have found another part of the client than its workers.
  const workers = busy === null ? judged : lost ? `${judged}, workers ${significant(busy, 2)} % busy at most` : `workers ${significant(busy, 2)} % busy at most, ${judged}`;
  const machine = new Set(run.resources.filter((r) => r.role === "client").map((r) => r.host)).size > 1 ? "busiest machine's CPU" : "this machine's CPU";
  return [workers,
    ...(cpu === null ? [] : [`${machine} ${significant(cpu, 2)} % at most${suspected(run, CORES) ? ", possibly the limit" : ""}`]),
    ...(server === null ? [] : [`servers' CPU ${significant(server, 2)} % at most`])].join("; ");
}

export function ofLatency(run: Run): string {
  if (!run.summary.answered) return unusable(run);
  const all = run.summary.workloads.flatMap((w, i) => (w.valid && w.latency_ns.response?.p99 ? [{ name: run.labels[i] ?? w.name, p50: w.latency_ns.response.p50, p99: w.latency_ns.response.p99 }] : []));
  const sorted = [...all].sort((a, b) => a.p99 - b.p99);
  const [first, last] = [sorted[0], sorted[sorted.length - 1]];
  if (!first || !last) return "no percentile is known";
  return first === last ? `p50 ${latency(first.p50)}, p99 ${latency(first.p99)}` : `p99 ${latency(first.p99)} (${first.name}) to ${latency(last.p99)} (${last.name})`;
}

export function ofTime(run: Run): string {
  if (!run.summary.answered) return unusable(run);
  const outages = run.analysis.outages ?? [];
  const gone = outages.length ? `; no answers for ${seconds(outages.reduce((s, o) => s + ((o.to_s ?? o.seen_until_s) - o.from_s), 0))}` : "";
  const holds = run.analysis.holds.filter((x) => x.unit !== "bytes" && run.summary.workloads[x.line]?.valid !== false);
  const fall = holds.flatMap((x) => x.cliffs).sort((a, b) => a.at_s - b.at_s)[0];
  if (fall && holds.length === 1) return `falls at ${seconds(fall.at_s)}, from ${significant(fall.from_per_s)} to ${significant(fall.to_per_s)} per second${gone}`;
  if (holds.length === 0) return `${counted(run.stages.length, "stage")}, ${seconds(Math.max(0, ...run.stages.map((s) => s.end_s)))}${gone}`;
  if (holds.length === 1) return `${holds[0]!.verdict} to ${seconds(holds[0]!.horizon_s)}${gone}`;
  const steady = holds.filter((x) => x.verdict === "steady").length;
  return `steady in ${steady} of ${holds.length}${gone}`;
}

export function ofLimits(run: Run): string {
  if (!run.summary.answered) return unusable(run);
  const { limits } = run.summary;
  const parts = limits.flatMap((l) => [
    ...(l.ops_per_s?.sustained ? [`${l.op_class} ${estimate(l.ops_per_s.sustained)} op/s${l.ops_per_s.proved ? "" : " seen, not proved"}`] : []),
    ...(l.bytes_per_s?.sustained ? [`${l.op_class} ${estimate(l.bytes_per_s.sustained, 1e-6)} MB/s${l.bytes_per_s.proved ? "" : " seen, not proved"}`] : []),
  ]);
  if (parts.length > 3) return `${counted(parts.length, "limit")} of ${counted(limits.length, "kind")} of operation`;
  if (parts.length > 0) return parts.join(", ");
  const models = run.analysis.size_models;
  if (models.some((m) => m.ops_per_s ?? m.bytes_per_s)) return "the model of sizes";
  const drains = run.analysis.buckets.reduce((n, b) => n + b.drains.length, 0);
  if (models.length > 0 || limits.some((l) => l.binding === "undetermined")) return "undetermined";
  return drains ? counted(drains, "drain") : "none found";
}

export function ofLoad(run: Run): string {
  if (!run.summary.answered) return unusable(run);
  const a = run.analysis;
  const held = a.load_points.filter((p) => p.sustainable).map((p) => p.fraction);
  const parts = [
    ...a.saturations.slice(0, 2).map((s) => (s.c95 ? `${s.op_class} needs ${plain(s.c95.value, 3)} in flight` : `${s.op_class}: ${s.verdict}`)),
    ...(held.length ? [`held up to ${percent(Math.max(...held))} of the limit`] : []),
    ...(a.comparisons.length ? [counted(a.comparisons.length, "comparison")] : []), ...(a.scalings.length ? [counted(a.scalings.length, "series of nodes", "series of nodes")] : []),
  ];
  return parts.join(", ");
}

/** Shares of attempts; what was refused is no failure. */
export function ofLines(run: Run): string {
  const all = run.summary.workloads;
  const repeats = Math.max(...all.map((w) => w.repeats));
  const windows = all.map((w) => w.window_s).filter((w) => w > 0);
  const [short, long] = [Math.min(...windows), Math.max(...windows)];
  const flights = [...new Set(all.map((w) => w.concurrency))].sort((a, b) => a - b);
  return [flights.length > 1 ? `${flights[0]} to ${flights[flights.length - 1]} in flight` : `${flights[0]} in flight`,
    windows.length === 0 ? "no window" : short === long ? `window ${seconds(short)}` : `windows ${seconds(short)} to ${seconds(long)}`,
    repeats > 1 ? counted(repeats, "repeat") : "one run"].join(", ");
}

export function ofProvenance(run: Run): string {
  const e = run.summary.environment;
  if (!e.plimsoll_version) return "how to make it again";
  const seal = run.seal ? `sealed (${counted(run.seal.files, "raw file")}, ${bytes(run.seal.bytes)}), xxh3 ${run.seal.xxh3.slice(0, 12)}…` : run.live ? "not sealed yet" : "not sealed: the run did not end in order";
  return `plimsoll ${e.plimsoll_version}${e.commit ? ` (${e.commit.slice(0, 12)})` : ""}, ${seal}`;
}
