//! From a run directory to what fio reports: jobs, or groups of jobs, with their directions.

use std::collections::BTreeMap;

use plimsoll_model::plan::{
    FIO_READS, FIO_WRITES, FioJob, KeyDist, Pacing, RingChoice, SizeDist, TargetSpec, Workload,
};
use plimsoll_model::{OpKind, Plan, Sample, Series, SeriesId};
use plimsoll_store::{HostSamples, LoadOptions, RunData, RunDir, StageData, StoreError, Totals, Window};

use super::cpu::{self, Cpu};
use super::direction::{Direction, Latency};
use super::judged::Judged;

/// fio averages its rates over half a second.
const STEP_NS: u64 = 500_000_000;

/// One entry of fio's `jobs`.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Of its section in the job file.
    pub name: String,
    /// Number of its reporting group, from 0.
    pub group: u32,
    /// Jobs merged into this entry.
    pub jobs: u32,
    /// EIO (5) where an op failed, as fio would say it; 0 where none did.
    pub error: u32,
    /// Whole seconds, at least 1.
    pub elapsed_s: u64,
    /// As written in the job's section; empty values are flags and are left out.
    pub options: BTreeMap<String, String>,
    /// Those of `percentile_list`, or fio's own: 0 to 100.
    pub percentiles: Vec<f64>,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Of fsync and fdatasync.
    pub sync: Latency,
    /// Run time of all jobs, milliseconds, added up.
    pub runtime_ms: u64,
    /// Of this process; zero for a job that has not run.
    pub cpu: Cpu,
    /// Ops in flight per job when one is submitted: the depth in a closed loop, the mean otherwise.
    pub depth: f64,
    /// Ops per system call.
    pub batch: f64,
    /// Most in flight per job.
    pub max_depth: u32,
    /// For the line that stands before the result.
    pub description: Description,
    /// What fio has no field for, in words.
    pub notes: Vec<String>,
}

/// For the line that fio prints before it starts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Description {
    pub rw: String,
    pub read_sizes: (u64, u64),
    pub write_sizes: (u64, u64),
    pub engine: String,
}

/// Counters of one disk over the run, as fio's `disk_util`.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    pub name: String,
    pub read_ios: u64,
    pub write_ios: u64,
    pub read_merges: u64,
    pub write_merges: u64,
    pub read_ticks_ms: u64,
    pub write_ticks_ms: u64,
    pub in_queue_ms: u64,
    pub util_percent: f64,
}

/// What fio's output is made of, in whatever form.
#[derive(Debug, Clone, PartialEq)]
pub struct FioReport {
    /// In the place of fio's own; says that it is ours.
    pub version: String,
    /// Milliseconds since 1970 at which the run ended.
    pub timestamp_ms: i64,
    /// The same as fio prints it.
    pub time: String,
    /// From the job file's `[global]`.
    pub global_options: BTreeMap<String, String>,
    /// In the order of the file.
    pub jobs: Vec<Job>,
    /// Below the files that were used, as far as they are known.
    pub disks: Vec<Disk>,
    /// Absent while the run goes on.
    pub judged: Option<Judged>,
}

/// Reads a whole run.
pub fn read(dir: &RunDir) -> Result<FioReport, StoreError> {
    read_until(dir, None)
}

/// Reads a run up to a time since its start, nanoseconds: for `--status-interval`, also while it goes on.
pub fn read_until(dir: &RunDir, until_ns: Option<u64>) -> Result<FioReport, StoreError> {
    let data = dir.load(&LoadOptions::step(STEP_NS))?;
    let spans: Vec<Span> = data.stages.iter().filter_map(|s| Span::of(s, data.grid_ns, until_ns)).collect();
    let windows: Vec<Window> = spans.iter().map(|s| s.window).collect();
    let totals = dir.totals(&windows, 0)?;
    let mut jobs: Vec<Job> = Vec::new();
    for (span, total) in spans.iter().zip(&totals) {
        let stage = data.stages.iter().find(|s| s.index == span.window.stage).expect("made from the stages");
        jobs.extend(stage_jobs(&data, stage, span, total));
    }
    merge_verify(&mut jobs);
    let elapsed_s = jobs.iter().map(|j| j.elapsed_s).max().unwrap_or(1);
    // Of what has not begun to be measured by then, there are zeros.
    let waiting =
        data.plan.stages.iter().zip(0u32..).filter(|(_, i)| spans.iter().all(|s| s.window.stage != *i));
    jobs.extend(waiting.flat_map(|(s, _)| waiting_jobs(&data, s, elapsed_s)));
    let end_ns = spans.iter().map(|s| s.to_ns).max().unwrap_or(0);
    let timestamp_ms = start_ms(&data) + (end_ns / 1_000_000) as i64;
    Ok(FioReport {
        version: format!("plimsoll-{} (output of fio-3.33)", data.environment.plimsoll_version),
        timestamp_ms,
        time: ctime(timestamp_ms),
        global_options: global_options(&data.plan),
        jobs,
        disks: disks(&data, until_ns),
        judged: Judged::read(dir).filter(|_| until_ns.is_none()),
    })
}

/// What of a stage is reported.
struct Span {
    window: Window,
    from_ns: u64,
    to_ns: u64,
}

impl Span {
    /// With a warm-up: the measured window, whole slices. Without: all of it, as fio counts every I/O.
    fn of(stage: &StageData, grid_ns: u64, until_ns: Option<u64>) -> Option<Self> {
        let limit = until_ns.unwrap_or(u64::MAX);
        let end = stage.end_ns.unwrap_or(stage.last_ns).min(limit);
        let span = if stage.spec.warmup.0.is_zero() {
            let to = end.max(stage.last_ns.min(limit)).div_ceil(grid_ns);
            let window = Window { stage: stage.index, from: stage.start_ns / grid_ns, to };
            Self { window, from_ns: stage.start_ns, to_ns: end }
        } else {
            let mut window = stage.window(grid_ns)?;
            window.to = window.to.min(limit / grid_ns);
            Self { window, from_ns: window.from * grid_ns, to_ns: window.to * grid_ns }
        };
        (span.window.from < span.window.to).then_some(span)
    }
}

/// The entries of one stage: a workload each, or merged where the group asks for it.
fn stage_jobs(data: &RunData, stage: &StageData, span: &Span, total: &Totals) -> Vec<Job> {
    let all_jobs: u32 = stage.spec.workloads.iter().map(|w| w.jobs.unwrap_or(1)).sum();
    let mut groups: Vec<(FioJob, Vec<usize>)> = Vec::new();
    for (i, w) in stage.spec.workloads.iter().enumerate() {
        let fio = w.block.as_ref().and_then(|b| b.fio.clone()).unwrap_or_else(|| described(w, stage));
        match groups.last_mut() {
            Some((f, members)) if f.group_reporting && fio.group_reporting && f.group == fio.group => {
                members.push(i);
            }
            // The other half of the same job.
            Some((_, members)) if is_second_half(stage, i) => members.push(i),
            _ => groups.push((fio, vec![i])),
        }
    }
    let make = |(fio, members): (FioJob, Vec<usize>)| {
        let whole = members.iter().filter(|i| !is_second_half(stage, **i));
        let jobs: u32 = whole.map(|i| stage.spec.workloads[*i].jobs.unwrap_or(1)).sum();
        let first = &stage.spec.workloads[members[0]];
        let series = |kind| merged(data, stage, span, total, &members, kind);
        let (read, write) = (series(OpKind::Read), series(OpKind::Write));
        let sync = members
            .iter()
            .filter_map(|i| total.get(id(stage, *i, OpKind::Fsync)))
            .fold(None::<Series>, add)
            .map(|s| Latency::of(&s.response))
            .unwrap_or_default();
        let failed = read.failed_ios + write.failed_ios;
        let longest = read.runtime_ms.max(write.runtime_ms);
        let in_system: u128 = members
            .iter()
            .flat_map(|i| [OpKind::Read, OpKind::Write].map(|k| total.get(id(stage, *i, k))))
            .flatten()
            .map(|s| s.counts.in_system_ns)
            .sum();
        let job_ns = longest as f64 * 1e6 * f64::from(jobs);
        // fio counts the depth when an op is submitted: in a closed loop all the others are there then.
        let closed = members.iter().all(|i| stage.spec.workloads[*i].pacing == Pacing::Closed);
        let mean_depth = if job_ns > 0.0 { in_system as f64 / job_ns } else { 0.0 };
        let report = &stage.report;
        Job {
            name: fio.job.clone(),
            group: fio.group,
            jobs,
            // fio's error is an errno; EIO stands for what failed here.
            error: if failed > 0 { 5 } else { 0 },
            elapsed_s: span.to_ns.div_ceil(1_000_000_000).max(1),
            options: fio.options.clone(),
            percentiles: fio.percentiles.clone(),
            runtime_ms: longest * u64::from(jobs),
            cpu: cpu::of(
                data.clients(),
                &total.client,
                span.from_ns,
                span.to_ns,
                f64::from(jobs) / f64::from(all_jobs.max(1)),
            ),
            depth: if closed && mean_depth > 0.0 { f64::from(first.concurrency) } else { mean_depth },
            batch: if report.ring_calls > 0 { report.ops as f64 / report.ring_calls as f64 } else { 1.0 },
            max_depth: first.concurrency,
            description: describe(data, first, &stage.ring),
            notes: fio.notes.iter().chain(report.failures.iter().map(|f| &f.2)).cloned().collect(),
            read,
            write,
            sync,
        }
    };
    groups.into_iter().map(make).collect()
}

/// Whether the workload is the writes of the job whose reads are the workload before it.
fn is_second_half(stage: &StageData, workload: usize) -> bool {
    let name = |i: usize, end: &str| stage.spec.workloads.get(i).and_then(|w| w.name.strip_suffix(end));
    let Some(reads) = workload.checked_sub(1) else { return false };
    name(workload, FIO_WRITES).is_some_and(|writes| name(reads, FIO_READS) == Some(writes))
}

/// Jobs that have not begun: fio lists them with zeros. A verify pass is part of its job, not one of its own.
fn waiting_jobs(data: &RunData, stage: &plimsoll_model::plan::Stage, elapsed_s: u64) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    let is_pass = |w: &Workload| w.verify && w.name.ends_with(" (verify)") || w.name.ends_with(FIO_WRITES);
    for w in stage.workloads.iter().filter(|w| !is_pass(w)) {
        let Some(fio) = w.block.as_ref().and_then(|b| b.fio.clone()) else { continue };
        let more = w.jobs.unwrap_or(1);
        match jobs.last_mut() {
            Some(j) if fio.group_reporting && j.group == fio.group => j.jobs += more,
            _ => jobs.push(Job {
                name: fio.job,
                group: fio.group,
                jobs: more,
                error: 0,
                elapsed_s,
                options: fio.options,
                percentiles: fio.percentiles,
                read: Direction::default(),
                write: Direction::default(),
                sync: Latency::default(),
                runtime_ms: 0,
                cpu: Cpu::default(),
                depth: 0.0,
                batch: 1.0,
                max_depth: w.concurrency,
                description: describe(data, w, ""),
                notes: fio.notes,
            }),
        }
    }
    jobs
}

fn id(stage: &StageData, workload: usize, kind: OpKind) -> SeriesId {
    SeriesId { stage: stage.index, workload: workload as u16, kind }
}

fn add(sum: Option<Series>, s: &Series) -> Option<Series> {
    Some(match sum {
        None => s.clone(),
        Some(mut sum) => {
            // Series of other workloads have other ids; what is wanted here is their sum.
            let mut s = s.clone();
            s.id = sum.id;
            sum.merge(&s);
            sum
        }
    })
}

fn merged(
    data: &RunData,
    stage: &StageData,
    span: &Span,
    total: &Totals,
    members: &[usize],
    kind: OpKind,
) -> Direction {
    let parts = members.iter().filter_map(|i| total.get(id(stage, *i, kind)));
    let Some(sum) = parts.fold(None, add) else { return Direction::default() };
    let ids: Vec<SeriesId> = members.iter().map(|i| id(stage, *i, kind)).collect();
    let mut d = Direction::of(&sum, runtime_ms(data, stage, span, &ids));
    let seconds = data.step_ns as f64 / 1e9;
    for c in stage.counts(ids, data.step_ns, span.from_ns, span.to_ns) {
        d.byte_rates.push(c.bytes_ok as f64 / seconds);
        d.op_rates.push(c.ok() as f64 / seconds);
    }
    if d.byte_rates.is_empty() && d.runtime_ms > 0 {
        // Shorter than a step: the whole is its only sample.
        d.byte_rates.push(d.bytes_per_s());
        d.op_rates.push(d.iops());
    }
    d
}

/// From the start to the last activity of these series. A workload that ended long before its stage is cut at the
/// step in which it was last active; else the stage's own end is exact.
fn runtime_ms(data: &RunData, stage: &StageData, span: &Span, ids: &[SeriesId]) -> u64 {
    let step = data.step_ns;
    let last_active = ids
        .iter()
        .filter_map(|i| stage.series.get(i))
        .filter_map(|points| points.iter().rposition(|p| p.counts.outcomes.iter().any(|n| *n > 0)))
        .map(|at| (stage.first_point + at as u64 + 1) * step)
        .max()
        .unwrap_or(span.to_ns);
    (last_active.min(span.to_ns).saturating_sub(span.from_ns) as f64 / 1e6).round() as u64
}

/// fio counts the reads of a verify pass among the job's own; they follow as a stage of their own here.
fn merge_verify(jobs: &mut Vec<Job>) {
    let mut i = 1;
    while i < jobs.len() {
        let pass = jobs[i].read.total_ios > 0 && jobs[i].write.total_ios == 0;
        let owner = (0..i).rev().find(|o| {
            jobs[*o].name == jobs[i].name
                && jobs[*o].group == jobs[i].group
                && jobs[*o].options == jobs[i].options
        });
        match owner {
            Some(o) if pass && jobs[o].read.total_ios == 0 && jobs[o].write.total_ios > 0 => {
                let v = jobs.remove(i);
                jobs[o].runtime_ms += v.runtime_ms;
                jobs[o].elapsed_s = jobs[o].elapsed_s.max(v.elapsed_s);
                jobs[o].error = jobs[o].error.max(v.error);
                jobs[o].notes.extend(v.notes);
                jobs[o].read = v.read;
            }
            _ => i += 1,
        }
    }
}

/// A workload that comes from no fio job, in fio's words.
fn described(w: &Workload, stage: &StageData) -> FioJob {
    let bs = |s: &SizeDist| {
        let (a, b) = bounds(s);
        if a == b { a.to_string() } else { format!("{a}-{b}") }
    };
    let options = [
        ("rw", pattern(w)),
        ("bs", bs(&w.size)),
        ("iodepth", w.concurrency.to_string()),
        ("numjobs", w.jobs.unwrap_or(1).to_string()),
        ("ioengine", stage.ring.clone()),
    ];
    FioJob {
        job: w.name.clone(),
        group: stage.index,
        options: options.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
        ..FioJob::default()
    }
}

fn pattern(w: &Workload) -> String {
    let random = if w.keys == KeyDist::Sequential { "" } else { "rand" };
    let kind = match (w.mix.get(&OpKind::Read), w.mix.get(&OpKind::Write)) {
        (Some(_), Some(_)) => "rw",
        (None, Some(_)) => "write",
        _ => "read",
    };
    format!("{random}{kind}")
}

fn bounds(s: &SizeDist) -> (u64, u64) {
    match s {
        SizeDist::Fixed(s) => (s.0, s.0),
        SizeDist::Uniform { min, max } => (min.0, max.0),
        SizeDist::Weighted(l) => {
            let sizes = || l.iter().filter(|(_, w)| *w > 0).map(|(s, _)| s.0);
            (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
        }
        SizeDist::LogNormal { median, max, .. } => (median.0.min(max.0), max.0),
    }
}

fn describe(data: &RunData, w: &Workload, used: &str) -> Description {
    let write = w.block.as_ref().and_then(|b| b.write_size.as_ref()).unwrap_or(&w.size);
    let ring = w.block.as_ref().and_then(|b| b.ring).unwrap_or(data.plan.options.ring);
    Description {
        rw: pattern(w),
        read_sizes: bounds(&w.size),
        write_sizes: bounds(write),
        engine: if ring == RingChoice::Auto { used.to_owned() } else { ring.name().to_owned() },
    }
}

fn global_options(plan: &Plan) -> BTreeMap<String, String> {
    let workloads = plan.stages.iter().flat_map(|s| &s.workloads);
    let mut out: BTreeMap<String, String> = workloads
        .filter_map(|w| w.block.as_ref()?.fio.as_ref())
        .map(|f| f.global_options.clone())
        .next()
        .unwrap_or_default();
    if out.is_empty() {
        for t in plan.targets.values() {
            if let TargetSpec::Block(b) = t {
                out.insert("filename".into(), b.path.clone());
                out.insert("direct".into(), u8::from(!b.buffered).to_string());
            }
        }
    }
    out
}

/// Of several machines each disk has its machine before its name: their counters are apart.
fn disks(data: &RunData, until_ns: Option<u64>) -> Vec<Disk> {
    let begin = data.stages.iter().map(|s| s.start_ns).min().unwrap_or(0);
    let several = data.clients().nth(1).is_some();
    let of_host = |h: &HostSamples| {
        let mut all = disks_of(&h.samples, begin, until_ns.unwrap_or(u64::MAX));
        all.iter_mut().filter(|_| several).for_each(|d| d.name = format!("{}:{}", h.host, d.name));
        all
    };
    data.clients().flat_map(of_host).collect()
}

/// One machine's disks between two of its samples.
fn disks_of(samples: &[Sample], begin: u64, limit: u64) -> Vec<Disk> {
    let first = samples.iter().rev().find(|s| s.at_ns <= begin).or(samples.first());
    let last = samples.iter().rev().find(|s| s.at_ns <= limit);
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let wall_ns = last.at_ns.saturating_sub(first.at_ns);
    let of = |(name, b): (&String, &plimsoll_model::sample::DiskCounters)| {
        let a = first.disks.get(name)?;
        Some(Disk {
            name: name.clone(),
            read_ios: b.reads.saturating_sub(a.reads),
            write_ios: b.writes.saturating_sub(a.writes),
            read_merges: b.reads_merged.saturating_sub(a.reads_merged),
            write_merges: b.writes_merged.saturating_sub(a.writes_merged),
            read_ticks_ms: b.read_ns.saturating_sub(a.read_ns) / 1_000_000,
            write_ticks_ms: b.write_ns.saturating_sub(a.write_ns) / 1_000_000,
            in_queue_ms: b.queue_ns.saturating_sub(a.queue_ns) / 1_000_000,
            util_percent: if wall_ns == 0 {
                0.0
            } else {
                (100.0 * b.busy_ns.saturating_sub(a.busy_ns) as f64 / wall_ns as f64).min(100.0)
            },
        })
    };
    last.disks.iter().filter_map(of).collect()
}

fn start_ms(data: &RunData) -> i64 {
    data.environment.started_at.parse::<jiff::Timestamp>().map_or(0, |t| t.as_millisecond())
}

/// `Sat Nov 21 04:53:30 2026`, in UTC: a report must not depend on where it is read.
fn ctime(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|t| t.strftime("%a %b %e %H:%M:%S %Y").to_string())
        .unwrap_or_default()
}
