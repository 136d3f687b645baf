// Where the page's data comes from. The static report reads the JSON that is embedded in it; a live
// dashboard will push the same shapes again and again. Nothing else in this page knows which it is.
// The types mirror crates/report/src/page.rs (plimsoll.page/1) and the model's summary and analysis.

/** Null: an end that is not bounded, or an exact value. */
export interface Estimate { value: number; low: number | null; high: number | null; n_eff: number | null }

export type Level = "info" | "qualified" | "invalid";

export interface Finding {
  code: string; name: string; level: Level; text: string;
  measured?: number; threshold?: number; workload?: string; evidence?: [string, string][];
}

export interface LatencySummary {
  count: number; mean: number; min: number; max: number;
  p50: number | null; p90: number | null; p99: number | null; p999: number | null; p9999: number | null;
  /** 95 % intervals, nanoseconds; absent or null where the data carries none. */
  intervals?: { p50: Estimate | null; p90: Estimate | null; p99: Estimate | null; p999: Estimate | null };
}

export interface Workload {
  /** `together`: the line is the sum of so many workloads, which have lines of their own. */
  name: string; op: string; valid: boolean; together?: number; size_bytes: number; concurrency: number; offered_per_s?: number | null;
  window_s: number; horizon_s: number; warmup_s: number; tail_s: number; repeats: number;
  ops_per_s: Estimate | null; bytes_per_s: Estimate | null; attempts_per_s: number;
  latency_ns: {
    response: LatencySummary | null; service: LatencySummary | null;
    ttfb: LatencySummary | null; submission: LatencySummary | null;
  };
  outcomes: Record<string, number>;
  littles_law: { in_flight: number; rate_times_time: number; error: number } | null;
  client: {
    busy_fraction: number; cpu_s: number; cpu_s_per_gib: number | null; rss_bytes: number;
    system_cpu: number; steal: number; reconnects: number; late_ops: number;
  };
  per_endpoint: {
    endpoint: string; ops_per_s: number; bytes_per_s: number; mean_response_ns: number;
    max_response_ns: number; ok: number; throttled: number; failed: number;
  }[];
  notes: string[];
}

export interface BucketSummary { sustained: Estimate | null; burst: Estimate | null; capacity: Estimate | null; refill: Estimate | null; proved: boolean; full_again_s?: Estimate | null }

export interface Limit {
  target: string; op_class: string; scope: string; binding: string;
  ops_per_s: BucketSummary | null; bytes_per_s: BucketSummary | null; knee_bytes: Estimate | null;
  evidence: [string, string][];
}

export interface Environment {
  plimsoll_version: string; commit: string; kernel: string; host: string; cpu_model: string; cpu_count: number;
  memory_bytes: number; nics: Record<string, number | null>; boot_id: string; started_at: string;
  ring: string; seed: number; servers: Record<string, string>; notes: Record<string, string>;
  ceiling: Record<string, number>; devices: Record<string, Record<string, string>>;
}

/** One statement; `text` is its sentence in the verdict. */
export interface Claim { claim: string; subject?: string; text: string }

export interface Summary {
  schema: string; id: string; valid: boolean; status: "valid" | "partly" | "none"; answered: boolean; verdict: string; claims: Claim[]; findings: Finding[]; workloads: Workload[];
  limits: Limit[]; expectations: { text: string; met: boolean | null; measured: number | null; reason: string }[];
  labels: Record<string, string>; rerun: string; environment: Environment;
}

export interface Hold {
  line: number; unit: string; verdict: string; reason: string;
  levels: { start_s: number; end_s: number; per_s: Estimate }[];
  cliffs: {
    at_s: number; from_per_s: number; to_per_s: number; verdict: string;
    evidence: { code: string; text: string; holds: boolean | null; weight: string }[];
  }[];
  events: [number, number][]; horizon_s: number;
}

/** A span in which storage that was being asked answered next to nothing. */
export interface Outage { at: string; from_s: number; to_s: number | null; seen_until_s: number }

/** An event that a person put on the time axis. */
export interface Remark { at_s: number; text: string; planned: boolean }

export interface BucketFit {
  target: string; op_class: string; unit: string; status: string;
  sustained_per_s: Estimate | null; burst_per_s: Estimate | null; capacity: Estimate | null;
  refill_per_s: Estimate | null; full_again_s: Estimate | null;
  drains: { start_s: number; work: [number, number][]; cliff_s: number | null }[];
  recoveries: { idle_s: number; tokens: Estimate; saturated: boolean }[];
  frontier: [number, number][];
}

export interface SizeModel {
  target: string; op_class: string; reading: string;
  ops_per_s: Estimate | null; ops_at_least: number | null; bytes_per_s: Estimate | null; bytes_at_least: number | null;
  knee_bytes: Estimate | null; base_ns: Estimate | null; stream_bytes_per_s: Estimate | null; p: number | null;
  cells: { size_bytes: number; concurrency: number; ops_per_s: Estimate; predicted: number | null; binding: string; room: number | null }[];
}

export interface Saturation {
  op_class: string; size_bytes: number; verdict: string; c95: Estimate | null; plateau_per_s: Estimate | null;
  points: { concurrency: number; ops_per_s: Estimate; p50_ns: number | null; p99_ns: number | null }[];
}

export interface Scaling {
  name: string; unit: string; verdict: string;
  points: { nodes: number; per_s: Estimate; efficiency: Estimate | null }[];
  predictions: { nodes: number; per_s: Estimate; efficiency: Estimate | null; speculative: boolean }[];
}

export interface Comparison {
  name: string; unit: string; measure: string; op: string; size_bytes: number; concurrency: number; outcome: string; a_name: string; b_name: string; a: number[]; b: number[]; paired: boolean;
  ratio: Estimate | null; detectable: number | null; verdict: string;
}

export interface LoadPoint {
  op_class: string; fraction: number; offered_per_s: number; achieved_per_s: Estimate | null; sustainable: boolean;
  response: LatencySummary | null; service: LatencySummary | null;
  response_spectrum: [number, number][]; service_spectrum: [number, number][];
}

export interface Analysis {
  holds: Hold[]; outages?: Outage[]; remarks?: Remark[]; buckets: BucketFit[]; size_models: SizeModel[]; saturations: Saturation[]; scalings: Scaling[];
  comparisons: Comparison[]; load_points: LoadPoint[];
  bottlenecks: { candidate: string; measured: string; threshold: string; time_fraction: number | null; verdict: string; next: string }[];
  checks: { code: string; name: string; result: string; measured: string; threshold: string; remedy: string }[];
  advice: string[];
}

export interface Stage {
  index: number; name: string; start_s: number; end_s: number; window: [number, number] | null; repeat: number; void: string | null;
}

type Column = (number | null)[];

export interface Series {
  line: number | null; label: string; op: string; stage: number; start_s: number; step_s: number; offered_per_s: number | null;
  ops_per_s: Column; bytes_per_s: Column; bytes_of_ok: boolean;
  p50_ns: Column; p90_ns: Column; p99_ns: Column; p999_ns: Column; max_ns: Column; ttfb_p50_ns: Column;
  outcomes_per_s: Record<string, Column>;
}

export interface Spectrum {
  line: number; kind: string; count: number; quantiles: [number, number][]; sure_to: number; density: [number, number][]; max_ns: number;
}

export interface Resource {
  host: string; role: "client" | "server"; group: string; name: string; unit: string; threshold: number | null; t: number[]; v: (number | null)[];
}

export interface Run {
  summary: Summary; status: string; verdict: string; labels: string[]; spoiled: string[]; sweep: boolean; block: boolean; plan: string;
  analysis: Analysis; stages: Stage[]; series: Series[]; spectra: Spectrum[]; resources: Resource[]; gaps: string[]; end: string | null;
}

export interface Group {
  keys: string[]; lines: number; left_out: number; ops_per_s: Estimate | null; bytes_per_s: Estimate | null;
  each_ops_per_s: number[]; p50_ns: number | null; p99_ns: number | null;
}

export interface Page { schema: string; made_by: string; runs: Run[]; by: string[]; groups: Group[] }

export const SCHEMA = "plimsoll.page/1";

export class FeedError extends Error {}

/** Checks what any feed brings before the page trusts it. */
export function parse(text: string): Page {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (e) {
    throw new FeedError(`The data of this report is damaged: ${String(e)}`);
  }
  const page = value as Partial<Page> | null;
  if (page?.schema !== SCHEMA || !Array.isArray(page.runs)) {
    throw new FeedError(`This page reads ${SCHEMA}, and found ${String(page?.schema)}. Make the report again with one version of Plimsoll.`);
  }
  return page as Page;
}

/** A feed calls back with each state of the data; the static one does so once. */
export type Feed = (show: (page: Page) => void) => void;

export const embedded: Feed = (show) => {
  const element = document.getElementById("plimsoll-data");
  if (!element?.textContent) throw new FeedError("This report holds no data. Make it with: plimsoll report RUN -o report.html");
  show(parse(element.textContent));
};
