/** Searches for the best concurrency in words and as a table: no DOM, so that tests can read it. */
import type { Saturation } from "./feed";
import { estimate, latency, MIB, MISSING, percent, size } from "./format";
import { table, type Table } from "./table";

/** How a search ended, in words. */
export function searchResult(s: Saturation): string {
  if (s.invalid?.length) return `[INVALID ${s.invalid.join(" ")}]`;
  return s.budget_needed_s ? `undetermined: ${s.verdict}` : s.verdict;
}

/** What part of the cluster's ceilings its payload comes to; empty where none is known. */
export function partOf(s: Saturation, resource: string, opsPerS: number): string {
  const own = s.ceilings?.find((c) => c.resource.startsWith(resource) && c.per_s > 0);
  return own ? percent((opsPerS * s.size_bytes) / own.per_s) : "";
}

/** Of several searches the answer of each, a line an op; of one alone its chart says it. */
export function searchTable(all: Saturation[]): Table {
  const bestOf = (s: Saturation) => (s.invalid?.length ? undefined : s.points.find((p) => p.concurrency === s.c95?.value));
  // Where none has an answer, the columns of one are left out.
  const missing = all.some(bestOf) ? MISSING : "";
  const rows = all.length < 2 ? [] : all.map((s) => {
    const best = bestOf(s);
    return [s.op_class.toUpperCase(), size(s.size_bytes), best ? String(best.concurrency) : missing, best ? estimate(best.ops_per_s) : MISSING,
      best ? estimate(best.ops_per_s, s.size_bytes / MIB) : missing, best ? partOf(s, "network", best.ops_per_s.value) : "", best ? partOf(s, "drive", best.ops_per_s.value) : "", best ? latency(best.p50_ns) : missing, best ? latency(best.p99_ns) : missing, searchResult(s)];
  });
  return table("Best concurrency", 2, ["op", "size", ">in flight", ">op/s", ">MiB/s", ">of network", ">of drives", ">p50", ">p99", "result"], rows);
}
