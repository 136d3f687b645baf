// What the page is fed: messages. A hello brings the whole state as a page, appends bring what came since. A static
// report is one hello, read from the JSON inside it; a live page gets the same and goes on. state.ts makes the state
// out of them, and nothing else in this page knows which it is.
// The types of the page mirror crates/report/src/page.rs (plimsoll.page/1) and the model's summary and analysis.

/** Null: an end that is not bounded, or an exact value. */
export interface Estimate { value: number; low: number | null; high: number | null; n_eff: number | null }

export type Level = "info" | "qualified" | "invalid";

export interface Finding {
  code: string; name: string; level: Level; text: string;
  measured?: number; threshold?: number; workload?: string; agent?: string; evidence?: [string, string][];
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
  /** Of each repeat, in the order in which they ran; absent in files of older versions. */
  each_ops_per_s?: Estimate[];
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

/** Of a run with several: what one of them did. Absent clock: it is the conductor's, or not known. */
export interface AgentSummary {
  agent: string; host: string; ops_per_s: number; bytes_per_s?: number; share: number; busy_fraction: number;
  p50_ns: number | null; p99_ns: number | null; clock_offset_ns?: number; clock_bound_ns?: number;
  cpu_fraction?: number; nic_fraction?: number; start_skew_ns?: number; first_op_s?: number; last_op_s?: number;
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
  identity?: Record<string, string>; ceiling: Record<string, number>; devices: Record<string, Record<string, string>>;
}

/** One statement; `text` is its sentence in the verdict. */
export interface Claim { claim: string; subject?: string; text: string }

/** An exact amount is its own ends; an upper end that is not bounded is null. */
export interface CostFigure { name: string; workload?: string; unit: string; amount: Estimate; formula: string }

export interface CostSummary {
  currency: string; subject: string; date: string; region: string; source: string; sha256: string; month_s: number;
  /** Which ops each class of requests counts; absent: requests have no price. */
  counted?: string[];
  /** `open`: what cannot be said, and why; absent: nothing. */
  figures: CostFigure[]; open?: string[];
}

export interface Summary {
  schema: string; id: string; valid: boolean; status: "valid" | "partly" | "none"; answered: boolean; verdict: string; claims: Claim[]; findings: Finding[]; workloads: Workload[];
  /** Absent: there is one agent. */
  agents?: AgentSummary[];
  limits: Limit[]; expectations: { text: string; met: boolean | null; measured: number | null; reason: string }[];
  labels: Record<string, string>; rerun: string; environment: Environment;
  /** Absent: the run was told no prices. */
  cost?: CostSummary;
  /** Absent: no servers were observed. */
  servers?: ServersSummary;
}

export interface ResourceUse {
  resource: string; host: string; device: string; reached: number; ceiling: number | null; unit: string; ceiling_of?: string;
  share: number | null; time_above: number | null; threshold: number; waited_for: boolean | null; verdict: string;
}

export interface TrafficUse { what: string; per_s: number; per_byte: number | null; expected: number | null; expected_least: number | null; counted_by: string }

export interface ServersWindow {
  stage: number; start_s: number; end_s: number; resources: ResourceUse[]; traffic?: TrafficUse[];
  clients_read_per_s: number; clients_wrote_per_s: number; others_per_s?: number;
  limit?: { verdict: string; at_ceiling: string[]; resource: string; share: number; of: number; ceiling: number; unit: string; text: string };
}

/** What the servers did of their own accord, for as long as sources told of it. */
export interface BackgroundSpan { what: string; start_s: number; end_s: number; in_window: boolean }

/** What lies in a pool, and what that takes of the drives. */
export interface PoolUse { name: string; redundancy: string; stored_bytes: number; used_bytes: number; per_byte: number | null; expected: number | null }

export interface ServersSummary { windows: ServersWindow[]; not_observed: string[]; background?: BackgroundSpan[]; pools?: PoolUse[] }

/** A resource of a server in percent of its ceiling, over time. */
export interface ServerCourse { resource: string; host: string; device: string; ceiling: string; t: number[]; percent: (number | null)[] }

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
  /** Of one that its budget cut off; absent in older runs. */
  budget_needed_s?: number | null;
  /** Codes of what makes it void, where it is one of several. */
  invalid?: string[];
  /** What the servers let through by what is known of them, the least first. */
  ceilings?: { resource: string; per_s: number }[];
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
  holds: Hold[]; outages?: Outage[]; throttled?: Outage[]; remarks?: Remark[]; buckets: BucketFit[]; size_models: SizeModel[]; saturations: Saturation[]; scalings: Scaling[];
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

/** A name, and what is to be said of it in a line. */
export interface GlanceFact { name: string; text: string }

/** What a run says first: what was measured, how far it may be used, one sentence, and a few facts. */
export interface Glance { title: string; mark: string; sentence: string; facts: GlanceFact[]; reservations: GlanceFact[]; more_reservations: number }

export interface Run {
  summary: Summary; status: string; verdict: string; glance: Glance; labels: string[]; spoiled: string[]; sweep: boolean; block: boolean; plan: string;
  analysis: Analysis; stages: Stage[]; series: Series[]; spectra: Spectrum[]; resources: Resource[]; gaps: string[]; end: string | null;
  /** Absent: of no server's resource a ceiling is known. */
  servers?: ServerCourse[];
  /** Null: it never ended in order, or is of several runs. */
  seal: { files: number; bytes: number; xxh3: string } | null;
  /** The run goes on: what is said of it is said so far. Absent in a report. */
  live?: boolean;
  /** Where it is, while it goes on. */
  now?: Now;
}

/** Rates, ops in flight and busy share of the last second on record; latencies and outcomes of the stage so far. Null: not known yet. */
export interface Now {
  phase: string; stage: string; stage_number: number; elapsed_s: number; remaining_s: number | null;
  ops_per_s: number | null; bytes_per_s: number | null; in_flight: number | null; busy_fraction: number | null;
  p50_ns: number | null; p99_ns: number | null; p999_ns: number | null; outcomes: Record<string, number>;
  /** What the figures lack, a sentence each. */
  missing: string[];
  doing: string | null; other_agents: string | null;
}

export interface Group {
  keys: string[]; lines: number; left_out: number; ops_per_s: Estimate | null; bytes_per_s: Estimate | null;
  each_ops_per_s: number[]; p50_ns: number | null; p99_ns: number | null;
}

/** Several runs side by side: what is compared, a sentence, and the key whose values are set beside each other. */
export interface SideBySide { title: string; mark: string; sentence: string; facts: GlanceFact[]; compared: number; values: string[] }

export interface Page { schema: string; made_by: string; title: string | null; columns: string[]; runs: Run[]; by: string[]; groups: Group[]; together: SideBySide | null }

export const SCHEMA = "plimsoll.page/1";

export class FeedError extends Error {}

/** Points of one series from index `at` on (columns hold only these); at 0 it is a new series, or replaces one. */
export type SeriesPart = Series & { at: number };

/** Samples of one resource from index `at` on, of whichever host and role. */
export type ResourcePart = Resource & { at: number };

/** What a newer summary may replace: everything of a run that has no message of its own. */
export type Replaced = Partial<Omit<Run, "series" | "resources" | "end" | "live" | "now">>;

/** The whole state. `feed` names the numbering: it is another where the numbers began anew. */
export interface Hello { kind: "hello"; seq: number; feed: string; page: Page }

export type Append = { seq: number } & (
  | { kind: "points"; run: string; series?: SeriesPart[]; resources?: ResourcePart[] }
  | { kind: "said"; run: string; findings?: Finding[]; claims?: Claim[]; events?: Remark[] }
  | { kind: "summary"; run: string; set: Replaced }
  | { kind: "now"; run: string; now: Now }
  /** A run that is new, or replaced as a whole; what it changes beside the others comes along. */
  | { kind: "run"; run: Run; by?: string[]; groups?: Group[]; together?: SideBySide }
  /** How a run ended; of no run: nothing more will come. */
  | { kind: "end"; run: string | null; end: string }
);

/** Numbered without gaps: an append is one more than what came before it, a hello says which it is the sum of. */
export type Message = Hello | Append;

/** A message as it may come from a newer Plimsoll: only its kind and number are known. */
export interface Unread { kind: string; seq: number }

export function checkPage(value: unknown): Page {
  const page = value as Partial<Page> | null;
  if (page?.schema !== SCHEMA || !Array.isArray(page.runs)) {
    throw new FeedError(`This page reads ${SCHEMA}, and found ${String(page?.schema)}. Make the report again with one version of Plimsoll.`);
  }
  return page as Page;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (e) {
    throw new FeedError(`The data of this report is damaged: ${String(e)}`);
  }
}

/** The hello that a static report carries: its page. */
export const helloOf = (text: string): Hello => ({ kind: "hello", seq: 0, feed: "", page: checkPage(json(text)) });

/** One message of a live feed. What its kind brings is looked at where it is applied. */
export function parse(text: string): Message | Unread {
  const value = json(text) as Partial<Unread> | null;
  if (typeof value?.kind !== "string" || !Number.isSafeInteger(value.seq) || value.seq! < 0) throw new FeedError("A message without kind or number came.");
  return value as Message | Unread;
}

/** A feed hands on each message as it comes. */
export type Feed = (receive: (message: Message | Unread) => void) => void;

export const embedded: Feed = (receive) => {
  const element = document.getElementById("plimsoll-data");
  if (!element?.textContent) throw new FeedError("This report holds no data. Make it with: plimsoll report RUN -o report.html");
  receive(helloOf(element.textContent));
};

/**
 * What a server goes on to send, one message as JSON in the detail of each `plimsoll:message` event. Whoever keeps the
 * connection dispatches them at the document, and sends a hello when `plimsoll:resync` is heard.
 */
export const pushed = (failed: (e: unknown) => void): Feed => (receive) => document.addEventListener("plimsoll:message", (event) => {
  try {
    receive(parse(String((event as CustomEvent<unknown>).detail)));
  } catch (e) {
    failed(e);
  }
});

export const askAgain = (feed: string, seq: number): boolean => document.dispatchEvent(new CustomEvent("plimsoll:resync", { detail: { feed, seq } }));

/** Said to whoever keeps the connection: up to here the page shows what it was sent. */
export const upToHere = (feed: string, seq: number): boolean => document.dispatchEvent(new CustomEvent("plimsoll:shown", { detail: { feed, seq } }));
