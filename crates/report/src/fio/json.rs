//! fio's json and json+. Keys stand in fio's order; keys that fio does not have are under `plimsoll`.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::collect::{Disk, FioReport, Job};
use super::direction::{Direction, Latency};

/// fio's percentiles unless `percentile_list` says otherwise.
pub const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Upper ends of fio's latency classes, and the length of their unit in nanoseconds.
const NS_CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
const MS_CLASSES: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// The whole report; `plus` adds the bins.
pub fn json(report: &FioReport, plus: bool) -> String {
    let jobs: Vec<Value> = report.jobs.iter().map(|j| job(j, plus)).collect();
    let disks: Vec<Value> = report.disks.iter().map(disk).collect();
    let options = report.global_options.iter().filter(|(_, v)| !v.is_empty());
    let mut all = vec![
        ("fio version", text(&report.version)),
        ("timestamp", Value::Int(report.timestamp_ms / 1000)),
        ("timestamp_ms", Value::Int(report.timestamp_ms)),
        ("time", text(&report.time)),
        ("global options", Value::Object(options.map(|(k, v)| (k.clone(), text(v))).collect())),
        ("jobs", Value::List(jobs)),
        ("disk_util", Value::List(disks)),
    ];
    if let Some(judged) = &report.judged {
        all.push(("plimsoll", Value::Ours(serde_json::to_value(judged).expect("plain data is always JSON"))));
    }
    let all = Value::Object(all.into_iter().map(|(k, v)| (k.to_owned(), v)).collect());
    serde_json::to_string_pretty(&all).expect("plain data is always JSON")
}

/// JSON that keeps its keys in order.
enum Value {
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
    /// Not fio's: as our own documents have it.
    Ours(serde_json::Value),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(v) => s.serialize_i64(*v),
            // Six decimals, as fio prints.
            Self::Float(v) => s.serialize_f64((v * 1e6).round() / 1e6),
            Self::Text(v) => s.serialize_str(v),
            Self::List(v) => s.collect_seq(v),
            Self::Ours(v) => v.serialize(s),
            Self::Object(v) => {
                let mut map = s.serialize_map(Some(v.len()))?;
                for (k, v) in v {
                    map.serialize_entry(k, v)?;
                }
                map.end()
            }
        }
    }
}

fn text(s: &str) -> Value {
    Value::Text(s.to_owned())
}

fn int(v: u64) -> Value {
    Value::Int(i64::try_from(v).unwrap_or(i64::MAX))
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Object(entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

fn job(j: &Job, plus: bool) -> Value {
    let options = j.options.iter().filter(|(_, v)| !v.is_empty());
    let shares = LatencyShares::of(j);
    object([
        ("jobname", text(&j.name)),
        ("groupid", int(u64::from(j.group))),
        ("error", int(u64::from(j.error))),
        ("eta", Value::Int(0)),
        ("elapsed", int(j.elapsed_s)),
        ("job options", Value::Object(options.map(|(k, v)| (k.clone(), text(v))).collect())),
        ("read", direction(&j.read, j, plus)),
        ("write", direction(&j.write, j, plus)),
        ("trim", direction(&Direction::default(), j, plus)),
        ("sync", object([("total_ios", int(j.sync.n)), ("lat_ns", latency(&j.sync, Some(j), false))])),
        ("job_runtime", int(j.runtime_ms)),
        ("usr_cpu", Value::Float(j.cpu.user_percent)),
        ("sys_cpu", Value::Float(j.cpu.system_percent)),
        ("ctx", int(j.cpu.context_switches)),
        ("majf", int(j.cpu.major_faults)),
        ("minf", int(j.cpu.minor_faults)),
        ("iodepth_level", levels(&["1", "2", "4", "8", "16", "32", ">=64"], depth_level(j))),
        ("iodepth_submit", levels(&["0", "4", "8", "16", "32", "64", ">=64"], batch_level(j))),
        ("iodepth_complete", levels(&["0", "4", "8", "16", "32", "64", ">=64"], batch_level(j))),
        ("latency_ns", shares.object(&shares.ns, &NS_CLASSES, None)),
        ("latency_us", shares.object(&shares.us, &NS_CLASSES, None)),
        ("latency_ms", shares.object(&shares.ms, &MS_CLASSES, Some(">=2000"))),
        ("latency_depth", int(u64::from(j.max_depth))),
        ("latency_target", Value::Int(0)),
        ("latency_percentile", Value::Float(100.0)),
        ("latency_window", Value::Int(0)),
        (
            "plimsoll",
            object([
                ("failed_ios", int(j.read.failed_ios + j.write.failed_ios)),
                ("mean_in_flight_per_job", Value::Float(j.depth)),
                ("jobs", int(u64::from(j.jobs))),
                ("clat_ns", text("lat_ns less the mean of slat_ns: each op's own completion is not kept")),
                ("iodepth_level", text("of the mean number in flight")),
                ("notes", Value::List(j.notes.iter().map(|n| text(n)).collect())),
            ]),
        ),
    ])
}

fn direction(d: &Direction, j: &Job, plus: bool) -> Value {
    let (bw, iops) = (d.bandwidth(), super::direction::Spread::of(&d.op_rates));
    let aggregate = d.bytes_per_s() / 1024.0;
    let share = if aggregate > 0.0 { (100.0 * bw.mean / aggregate).min(100.0) } else { 0.0 };
    object([
        ("io_bytes", int(d.io_bytes)),
        ("io_kbytes", int(d.io_bytes >> 10)),
        ("bw_bytes", int(d.bytes_per_s() as u64)),
        ("bw", int(aggregate as u64)),
        ("iops", Value::Float(d.iops())),
        ("runtime", int(d.runtime_ms)),
        ("total_ios", int(d.total_ios)),
        ("short_ios", int(d.short_ios)),
        ("drop_ios", Value::Int(0)),
        ("slat_ns", latency(&d.slat, None, false)),
        ("clat_ns", latency(&d.clat, Some(j), plus)),
        ("lat_ns", latency(&d.lat, None, false)),
        ("bw_min", int(bw.min as u64)),
        ("bw_max", int(bw.max as u64)),
        ("bw_agg", Value::Float(share)),
        ("bw_mean", Value::Float(bw.mean)),
        ("bw_dev", Value::Float(bw.stddev)),
        ("bw_samples", int(bw.samples)),
        ("iops_min", int(iops.min as u64)),
        ("iops_max", int(iops.max as u64)),
        ("iops_mean", Value::Float(iops.mean)),
        ("iops_stddev", Value::Float(iops.stddev)),
        ("iops_samples", int(iops.samples)),
    ])
}

/// With percentiles where `of` says which; an empty distribution has neither percentiles nor bins.
fn latency(l: &Latency, of: Option<&Job>, bins: bool) -> Value {
    let mut entries = vec![
        ("min".to_owned(), int(l.min)),
        ("max".to_owned(), int(l.max)),
        ("mean".to_owned(), Value::Float(l.mean)),
        ("stddev".to_owned(), Value::Float(l.stddev)),
        ("N".to_owned(), int(l.n)),
    ];
    if let (Some(job), true) = (of, l.n > 0) {
        let list = percentiles(job).into_iter().map(|p| (format!("{p:.6}"), int(l.percentile(p))));
        entries.push(("percentile".into(), Value::Object(list.collect())));
    }
    if bins && l.n > 0 {
        let list = l.bins().map(|(v, n)| (v.to_string(), int(n))).collect();
        entries.push(("bins".into(), Value::Object(list)));
    }
    Value::Object(entries)
}

pub fn percentiles(job: &Job) -> Vec<f64> {
    if job.percentiles.is_empty() { PERCENTILES.to_vec() } else { job.percentiles.clone() }
}

fn levels(names: &[&str; 7], at: Option<usize>) -> Value {
    let share = |i| Value::Float(if at == Some(i) { 100.0 } else { 0.0 });
    Value::Object(names.iter().enumerate().map(|(i, n)| ((*n).to_owned(), share(i))).collect())
}

/// Class of the mean depth: 1, 2 to 3, 4 to 7, ... 64 and more.
pub fn depth_level(j: &Job) -> Option<usize> {
    let any = j.read.total_ios + j.write.total_ios > 0;
    any.then(|| {
        let depth = (j.depth.round() as u64).clamp(1, u64::from(j.max_depth.max(1)));
        (depth.ilog2() as usize).min(6)
    })
}

/// Class of the mean number of ops per call: 1 to 4, 5 to 8, ... more than 64.
pub fn batch_level(j: &Job) -> Option<usize> {
    let any = j.read.total_ios + j.write.total_ios > 0;
    any.then(|| {
        let batch = j.batch.ceil().max(1.0) as u64;
        [4u64, 8, 16, 32, 64].iter().position(|top| batch <= *top).map_or(6, |i| i + 1)
    })
}

/// Share of completion latencies (reads and writes) in each class, percent.
pub struct LatencyShares {
    pub ns: Vec<f64>,
    pub us: Vec<f64>,
    pub ms: Vec<f64>,
}

impl LatencyShares {
    pub fn of(j: &Job) -> Self {
        let total = (j.read.clat.n + j.write.clat.n).max(1) as f64;
        let share = |from: u64, to: u64| {
            let n = j.read.clat.between(from, to) + j.write.clat.between(from, to);
            // As fio: what is there at all is at least 0.01.
            if n == 0 { 0.0 } else { (100.0 * n as f64 / total).max(0.01) }
        };
        let classes = |tops: &[u64], unit: u64, first: u64| {
            let mut from = first;
            tops.iter()
                .map(|top| {
                    let s = share(from, top * unit);
                    from = top * unit;
                    s
                })
                .collect::<Vec<f64>>()
        };
        let mut ms = classes(&MS_CLASSES, 1_000_000, 1_000_000);
        ms.push(share(2_000_000_000, u64::MAX));
        Self { ns: classes(&NS_CLASSES, 1, 0), us: classes(&NS_CLASSES, 1000, 1000), ms }
    }

    fn object(&self, shares: &[f64], tops: &[u64], beyond: Option<&str>) -> Value {
        let names = tops.iter().map(u64::to_string).chain(beyond.map(str::to_owned));
        Value::Object(names.zip(shares).map(|(n, s)| (n, Value::Float(*s))).collect())
    }
}

fn disk(d: &Disk) -> Value {
    object([
        ("name", text(&d.name)),
        ("read_ios", int(d.read_ios)),
        ("write_ios", int(d.write_ios)),
        ("read_merges", int(d.read_merges)),
        ("write_merges", int(d.write_merges)),
        ("read_ticks", int(d.read_ticks_ms)),
        ("write_ticks", int(d.write_ticks_ms)),
        ("in_queue", int(d.in_queue_ms)),
        ("util", Value::Float(d.util_percent)),
    ])
}
