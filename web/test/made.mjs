// Pages made by hand for tests of what is drawn: the least data that each picture needs, put into the built page.
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const about = (value, half = value * 0.05) => ({ value, low: value - half, high: value + half, n_eff: 9 });

export const workload = (name, op, size_bytes, rate, more = {}) => ({
  name, op, valid: true, size_bytes, concurrency: 8, window_s: 5, horizon_s: 6, warmup_s: 1, tail_s: 0, repeats: 1, ops_per_s: about(rate), bytes_per_s: about(rate * size_bytes), attempts_per_s: rate,
  latency_ns: { response: { count: 9, mean: 2e6, min: 1e6, max: 9e6, p50: 2e6, p90: 3e6, p99: null, p999: null, p9999: null }, service: null, ttfb: null, submission: null },
  outcomes: { ok: 99 }, littles_law: null, client: { busy_fraction: 0.1, cpu_s: 1, cpu_s_per_gib: null, rss_bytes: 0, system_cpu: 0.1, steal: 0, reconnects: 0, late_ops: 0 }, per_endpoint: [], notes: [], ...more,
});

const NOTHING = { holds: [], outages: [], remarks: [], buckets: [], size_models: [], saturations: [], scalings: [], comparisons: [], load_points: [], bottlenecks: [], checks: [], advice: [] };

export const run = (id, workloads, more = {}) => ({
  summary: { schema: "plimsoll.run/2", id, valid: true, status: "valid", answered: true, verdict: "VALID. Said.", claims: [], findings: [], workloads, limits: [], expectations: [], labels: more.named ?? {}, rerun: "plimsoll again",
    environment: { plimsoll_version: "", commit: "", kernel: "", host: "", cpu_model: "", cpu_count: 1, memory_bytes: 0, nics: {}, boot_id: "", started_at: "", ring: "", seed: 1, servers: {}, notes: {}, ceiling: {}, devices: {} } },
  status: "VALID", verdict: "VALID. Said.", glance: { title: id, mark: "VALID", sentence: "Said.", facts: [], reservations: [], more_reservations: 0 },
  labels: workloads.map((w) => w.name), spoiled: workloads.map((w) => (w.valid ? "" : "[INVALID V04]")), sweep: false, block: false, plan: "",
  stages: [], series: [], spectra: [], resources: [], gaps: [], end: null, seal: null, ...more, analysis: { ...NOTHING, ...more.analysis },
});

export const page = (runs, more = {}) => ({ schema: "plimsoll.page/1", made_by: "0", title: null, columns: [], runs, by: [], groups: [], together: null, ...more });

/** A stage from `from` to `to` with its warm-up, and a series of one line of it. */
export const stage = (from, to, warm = 2, more = {}) => ({ index: 0, name: "load", start_s: from, end_s: to, window: warm === null ? null : [from + warm, to], repeat: 0, void: null, ...more });
export const series = (line, label, from, rates, more = {}) => ({
  line, label, op: label, stage: 0, start_s: from, step_s: 0.5, offered_per_s: null, ops_per_s: rates, bytes_per_s: [], bytes_of_ok: false, p50_ns: [], p90_ns: [], p99_ns: [], p999_ns: [], max_ns: [], ttfb_p50_ns: [], outcomes_per_s: {}, ...more,
});
export const hold = (line, from, to, value, half, more = {}) => ({ line, unit: "ops", verdict: "undetermined", reason: "", levels: [{ start_s: from, end_s: to, per_s: about(value, half) }], cliffs: [], events: [], horizon_s: to - from, ...more });

/** Where a run is, `s` seconds after its load began. */
export const now = (s, more = {}) => ({
  phase: s <= 2 ? "warm-up" : "measuring", stage: "load", stage_number: 1, elapsed_s: s, remaining_s: 60 - s, ops_per_s: 2000 + 37 * s, bytes_per_s: 128e6, in_flight: 7.96, busy_fraction: 0.065,
  p50_ns: 2.4e6, p99_ns: 9.9e6, p999_ns: s > 4 ? 45e6 : null, outcomes: { ok: 2000 * s }, missing: [], doing: null, other_agents: null, ...more,
});

const REST = { name: "Q09", text: "Client and storage run on the same machine: they compete for CPU and memory, and there is no network between them" };
/** What is said of a run that goes on, when it would be valid and when it would not: as of a run on a machine that others use, too. */
export function soFar(kind, s) {
  const usable = kind === "valid";
  const w = workload("put", "put", 65536, 2000, { valid: usable, ops_per_s: about(2000, usable ? 500 : 1520) });
  const sentence = usable ? `2,000 ± 500 op/s of 64KiB PUT, 130 ± 40 MB/s, seen for ${s}.0 s` : "The confidence interval is as wide as the rate itself, so there is no usable rate. Run longer, or find out what disturbs it";
  const facts = [["rate", "2,000 ± 500 op/s   8 in flight"], ["throughput", "130 ± 40 MiB/s   130 MB/s"], ["response", "p50 2.85 ms   p99 25.5 ms   max 122 ms"], ["ops", `${2000 * s} ok   0 refused   0 failed`], ["limited by", "possibly this machine's processor (client, storage and everything else that ran), 98.5 % (threshold 85.0 %)"]].map(([name, text]) => ({ name, text }));
  const mark = usable ? "VALID (2 notes)" : "INVALID V04";
  return {
    status: usable ? mark : `[${mark}]`, verdict: `${mark}. ${sentence}.`, labels: ["put 64 KiB"], spoiled: [usable ? "" : "[INVALID V04]"],
    glance: { title: "64KiB PUT, 8 in flight", mark, sentence, facts: usable ? facts : facts.slice(3), reservations: usable ? [{ name: "Q03", text: "The confidence interval is ±24.3 % (at most 10 % is acceptable)" }, REST] : [REST], more_reservations: 0 },
    workloads: [w], answered: usable, findings: usable ? [] : [{ code: "V04", name: "no_rate", level: "invalid", text: `${sentence}.`, measured: 0.76, threshold: 0.6, workload: "put" }],
  };
}

/** Several runs of one op, told apart by a label. */
export function sideBySide(by, keys, values) {
  const groups = keys.map((k, i) => ({ keys: k, lines: 3, left_out: 0, ops_per_s: about(10 * (i + 1), 0.2), bytes_per_s: null, each_ops_per_s: [10 * (i + 1), 10 * (i + 1) + 0.1, 10 * (i + 1) - 0.1], p50_ns: 1e6, p99_ns: null }));
  return page(keys.map((_, i) => run(`run-${i}`, [workload("put", "put", 4096, 10 * (i + 1))])), { by, groups, together: { title: "t", mark: "VALID", sentence: "s", facts: [], compared: by.length - 1, values } });
}

const figure = (name, line, unit, low, value, high, formula) => ({ name, ...(line ? { workload: line } : {}), unit, amount: { value, low, high, n_eff: low === high ? null : 9 }, formula });
/** As a summary has it; the source is as somebody may write it. */
export const COST = {
  currency: "USD", subject: "disk", date: "2018-07-01", region: "southeastasia", source: "An <b>article</b>, section 4.1", sha256: "0123456789abcdef", month_s: 2_592_000, counted: ["transactions counts read, write, fsync"],
  figures: [
    figure("month", null, "USD/month", 7.68, 7.68, 7.68, "capacity: 256 GiB x 0.03 USD = 7.68 USD"),
    figure("per_1000_ops_per_s", "w/write", "USD/month per 1,000 IOPS", 6.4, 6.98, 7.68, "7.68 USD / (1100 op/s / 1000)"),
    figure("month_at_rate", "w/write", "USD/month", 129.6, 142.56, 155.52, "1100 op/s x 2592000 s; transactions: 2851200000 requests / 10000 x 0.0005 USD"),
    figure("month_at_rate", "w/read", "USD/month", 9, 10, 11, "80 op/s x 2592000 s"),
    figure("run", null, "USD", 0.000512, 0.000512, 0.000512, "10240 / 10000 x 0.0005 USD"),
  ],
};

const ratio = (value, low, high) => ({ value, low, high, n_eff: 3 });
const compared = (measure, unit, r, more = {}) => ({
  name: `get 64 KiB, 8 in flight: ${measure}`, unit, measure, op: "get", size_bytes: 65536, concurrency: 8, outcome: "undetermined", a_name: "before", b_name: "after", a: [1, 2, 3], b: [2, 3, 4], paired: true,
  ratio: r, detectable: 0.5, verdict: "undetermined", ...more,
});
export const UNDETERMINED = [
  compared("rate", "op/s", ratio(1.435, 0.351, 5.873)), compared("mean response", "ns", ratio(0.697, 0.169, 2.87)), compared("p99 response", "ns", ratio(0.876, 0.077, 10.02)),
];

export const SCALING = {
  name: "get 64 KiB, 8 in flight", unit: "ops/s", verdict: "from 2 to 4 nodes, the rate grew 1.49 times, **75 %** of linear.", predictions: [],
  points: [{ nodes: 2, per_s: { value: 439, low: -1976, high: 2854, n_eff: 2 }, efficiency: about(1, 0) }, { nodes: 4, per_s: { value: 593, low: -186, high: 1373, n_eff: 2 }, efficiency: { value: 0.75, low: 0.006, high: 98, n_eff: 2 } }],
};

const resource = (name, host, device, share, more = {}) => ({
  resource: name, host, device, reached: share * 25e6, ceiling: 25e6, unit: "B/s", ceiling_of: "cluster.toml", share, time_above: share > 0.9 ? 1 : 0, threshold: 0.9, waited_for: null, verdict: share > 0.9 ? "at its ceiling" : "below its ceiling", ...more,
});
const traffic = (what, per_s, per_byte, expected) => ({ what, per_s, per_byte, expected, expected_least: null, counted_by: "drives" });
/** Four servers with links of 200 Mbit/s, of which clients write as much as the links let in, while a drive heals. */
export const SERVERS = {
  windows: [{
    stage: 0, start_s: 3, end_s: 18, clients_read_per_s: 0, clients_wrote_per_s: 50e6,
    resources: [...["s1", "s2", "s3", "s4"].map((h) => resource("network in", h, "eth0", 0.96)), resource("cpu", "s1", "", 0.31, { unit: "cores", reached: 1.24, ceiling: 4 }), resource("network out", "s2", "eth0", null, { share: null, time_above: null, ceiling: null, verdict: "ceiling not known" })],
    traffic: [traffic("written to drives", 66.7e6, 1.334, 1.333), traffic("between servers", 50e6, 1, 1)],
    limit: { verdict: "one", at_ceiling: [], resource: "network in", share: 0.96, of: 4, ceiling: 25e6, unit: "B/s", text: "Said." },
  }],
  not_observed: ["the servers' drives", "host s5"],
  pools: [{ name: "data", redundancy: "ec:2+2", stored_bytes: 2 ** 30, used_bytes: 2.2 * 2 ** 30, per_byte: 2.2, expected: 2 }, { name: ".mgr", redundancy: "replica:3", stored_bytes: 2e5, used_bytes: 1.8e6, per_byte: null, expected: 3 }],
  background: [{ what: "1 drive(s) healing", start_s: 8, end_s: 13, in_window: true }],
};
const times = [5, 10, 15, 20];
export const COURSES = ["s1", "s2", "s3", "s4"].flatMap((host) => [
  { resource: "network in", host, device: "eth0", ceiling: "200Mbit/s", t: times, percent: [94, 97, 96, 40] }, { resource: "cpu", host, device: "", ceiling: "4.0 cores", t: times, percent: [30, 31, null, 12] }]);

/** The page as the program makes it. */
export const html = (data) => readFileSync(join(import.meta.dirname, "../dist/report.html"), "utf8")
  .replace("<!--PLIMSOLL_DATA-->", () => `<script type="application/json" id="plimsoll-data">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script>`);

/** In the page: texts of charts that reach out of their drawing or lie on one another, and a page that scrolls sideways. */
export function unreadable() {
  const bad = [];
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > room) bad.push(`the page is ${document.documentElement.scrollWidth} wide, of ${room}`);
  for (const svg of document.querySelectorAll(".drawing svg")) {
    const chart = svg.closest("figure.chart")?.querySelector("h3, h4")?.textContent;
    const box = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([t, r]) => t.trim() && r.width > 0);
    texts.forEach(([t, r], i) => {
      if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1) bad.push(`${chart}: '${t}' is cut off`);
      for (const [u, q] of texts.slice(i + 1)) {
        const [w, h] = [Math.min(r.right, q.right) - Math.max(r.left, q.left), Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top)];
        if (w > 2 && h > 3) bad.push(`${chart}: '${t}' lies on '${u}'`);
      }
    });
  }
  return bad;
}
