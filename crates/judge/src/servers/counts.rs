//! What servers counted beside what we did between the same two readings: requests, bytes, processor time.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::observed::ServerQuantity as Q;
use plimsoll_model::summary::servers::{DaemonUse, RequestCount};
use plimsoll_model::{OpKind, SeriesCounts};
use plimsoll_store::{RunData, StageData, SubjectSteps};

use super::SeenWindow;
use super::traffic::rate;

const GIB: f64 = (1u64 << 30) as f64;

/// Names that servers have for an op of ours.
const OPS: [(OpKind, &[&str]); 5] = [
    (OpKind::Get, &["getobject", "get_obj"]),
    (OpKind::Put, &["putobject", "put_obj"]),
    (OpKind::Delete, &["deleteobject", "del_obj"]),
    (OpKind::Stat, &["headobject"]),
    (OpKind::UploadPart, &["putobjectpart"]),
];

/// What clients did in a stretch of time.
#[derive(Debug, Default, Clone, Copy)]
pub struct Moved {
    /// Payload bytes.
    pub read: f64,
    /// Payload bytes.
    pub written: f64,
    /// Ops that succeeded.
    pub ok: f64,
}

impl Moved {
    pub fn between(data: &RunData, stage: &StageData, from_ns: u64, to_ns: u64) -> Self {
        let mut out = Self::default();
        for id in stage.series.keys() {
            let done = done(data, stage, id.kind, Some(id.workload), from_ns, to_ns);
            match id.kind {
                OpKind::Get | OpKind::GetRange | OpKind::Read => out.read += done.bytes_moved as f64,
                OpKind::Put | OpKind::UploadPart | OpKind::Write => out.written += done.bytes_moved as f64,
                _ => {}
            }
            // Of an upload its parts are the bytes, and the whole is the op.
            out.ok += if id.kind == OpKind::UploadPart { 0.0 } else { done.ok() as f64 };
        }
        out
    }
}

fn done(
    data: &RunData,
    stage: &StageData,
    kind: OpKind,
    workload: Option<u16>,
    from_ns: u64,
    to_ns: u64,
) -> SeriesCounts {
    let ids = stage
        .series
        .keys()
        .copied()
        .filter(|id| id.kind == kind && workload.is_none_or(|w| w == id.workload));
    let mut sum = SeriesCounts::default();
    stage.counts(ids, data.step_ns, from_ns, to_ns).iter().for_each(|c| sum.merge(c));
    sum
}

/// Daemons by host and name.
pub type Daemons<'a> = BTreeSet<(&'a str, &'a str)>;

/// Of each op of ours who ever counted requests of it.
pub fn tellers(data: &RunData) -> BTreeMap<&'static str, Daemons<'_>> {
    let mut out: BTreeMap<&'static str, Daemons<'_>> = BTreeMap::new();
    for s in data.observed.iter().flat_map(|s| &s.scrapes).flat_map(|s| &s.subjects) {
        for r in s.readings.iter().filter(|r| r.quantity == Q::Requests) {
            let of = OPS.iter().find(|(_, names)| names.contains(&r.label.to_ascii_lowercase().as_str()));
            if let Some((kind, _)) = of {
                out.entry(kind.name()).or_default().insert((s.host.as_str(), s.daemon.as_str()));
            }
        }
    }
    out
}

/// Requests by op, between the first and last reading of those daemons that name it: of all that ever did.
pub fn requests(
    data: &RunData,
    w: &SeenWindow<'_>,
    tellers: &BTreeMap<&'static str, Daemons<'_>>,
) -> Vec<RequestCount> {
    let mut out = Vec::new();
    for (kind, names) in OPS {
        let is_op = |name: &str| names.contains(&name.to_ascii_lowercase().as_str());
        let (mut servers, mut span): (f64, Option<(u64, u64)>) = (0.0, None);
        let mut counting = BTreeSet::new();
        for s in w.own() {
            for step in &s.steps {
                let counted = step.deltas(Q::Requests).filter(|(op, _)| is_op(op));
                let counted = counted.map(|(_, n)| n).reduce(|a, b| a + b);
                if let Some(n) = counted {
                    servers += n;
                    counting.insert((s.host, s.daemon));
                    let (from, to) = span.unwrap_or((step.from_ns, step.to_ns));
                    span = Some((from.min(step.from_ns), to.max(step.to_ns)));
                }
            }
        }
        let Some((from_ns, to_ns)) = span else { continue };
        // The time in which counters fell is missing in theirs, and not in ours.
        if w.own().iter().any(|s| counting.contains(&(s.host, s.daemon)) && !s.restarts.is_empty()) {
            continue;
        }
        // Of one that was not read twice in this window the count is missing, and with it that of all.
        if tellers.get(kind.name()).is_some_and(|all| all.iter().any(|d| !counting.contains(d))) {
            continue;
        }
        let ours = done(data, w.stage, kind, None, from_ns, to_ns);
        let ours = (ours.ok() + ours.throttled() + ours.failed()) as f64;
        if ours + servers == 0.0 {
            continue;
        }
        // Readings lie between slices: each end is off by a slice at the most, servers' readings are not all of one time, and of counters that were
        // made at some time before the first and last reading the stretch is longer or shorter by as much.
        let per_ns = ours / to_ns.saturating_sub(from_ns).max(1) as f64;
        let apart = ends_apart(w) as f64;
        let in_flight = w.stage.spec.workloads.iter().map(|w| f64::from(w.in_flight())).sum::<f64>();
        let uncertain_by = in_flight + per_ns * (2.0 * data.step_ns as f64 + apart + oldest(w));
        out.push(RequestCount { op: kind.name().into(), servers, ours, uncertain_by });
    }
    out
}

/// How old counts of requests may be at a reading, nanoseconds.
fn oldest(w: &SeenWindow<'_>) -> f64 {
    w.own().iter().filter(|s| counts_requests(s)).map(|s| s.age_ns).max().unwrap_or(0) as f64
}

fn counts_requests(s: &SubjectSteps<'_>) -> bool {
    s.steps.iter().any(|s| s.labels(Q::Requests).next().is_some())
}

/// How far apart subjects' first readings, and last ones, are, in all.
fn ends_apart(w: &SeenWindow<'_>) -> u64 {
    let spread = |pick: &dyn Fn(&SubjectSteps<'_>) -> Option<u64>| {
        let of_servers = w.own().iter().filter(|s| counts_requests(s));
        let times: Vec<u64> = of_servers.filter_map(pick).collect();
        times.iter().max().zip(times.iter().min()).map_or(0, |(a, b)| a - b)
    };
    spread(&|s| Some(s.steps.first()?.from_ns)) + spread(&|s| Some(s.steps.last()?.to_ns))
}

/// Processor time and memory by kind of daemon. What asking costs is none of it: exporters are left out.
pub fn daemons(data: &RunData, w: &SeenWindow<'_>) -> Vec<DaemonUse> {
    #[derive(Default)]
    struct Kind {
        daemons: u64,
        cpu_s: f64,
        seconds: f64,
        moved: f64,
        ok: f64,
        rss: Option<f64>,
    }
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    for s in w.own().iter().filter(|s| !s.daemon.is_empty() && !s.daemon.ends_with("exporter")) {
        let cpu: Vec<(f64, f64)> =
            s.steps.iter().filter_map(|x| Some((x.seconds(), x.delta(Q::ProcessCpuS, "")?))).collect();
        let (Some(first), Some(last), false) = (s.steps.first(), s.steps.last(), cpu.is_empty()) else {
            continue;
        };
        let moved = Moved::between(data, w.stage, first.from_ns, last.to_ns);
        let kind = kinds.entry(kind_of(s.daemon)).or_default();
        kind.daemons += 1;
        kind.cpu_s += cpu.iter().map(|(_, c)| c).sum::<f64>();
        // Daemons are read at about the same times: the mean of theirs is the time of all.
        kind.seconds += cpu.iter().map(|(s, _)| s).sum::<f64>();
        kind.moved += moved.read + moved.written;
        kind.ok += moved.ok;
        let rss = s.steps.iter().filter_map(|x| x.gauge(Q::ProcessRssBytes, "")).reduce(f64::max);
        kind.rss = [kind.rss, rss].into_iter().flatten().reduce(f64::max);
    }
    let used = |(kind, k): (&str, Kind)| {
        let n = k.daemons as f64;
        DaemonUse {
            kind: kind.to_owned(),
            daemons: k.daemons,
            cores: k.cpu_s / (k.seconds / n).max(f64::MIN_POSITIVE),
            cpu_s_per_gib: (k.moved > 0.0).then(|| k.cpu_s / (k.moved / n / GIB)),
            cpu_s_per_op: (k.ok > 0.0).then(|| k.cpu_s / (k.ok / n)),
            rss_bytes: k.rss,
        }
    };
    kinds.into_iter().map(used).collect()
}

/// `osd.3` to `osd`, `minio@s1:9000` to `minio`.
fn kind_of(daemon: &str) -> &str {
    daemon.split(['.', '@']).next().unwrap_or(daemon)
}

/// What servers sent to each other, bytes a second.
pub fn internode(subjects: &[SubjectSteps<'_>]) -> Option<f64> {
    subjects.iter().filter_map(|s| rate(s, |x| x.total(Q::InternodeSentBytes))).reduce(|a, b| a + b)
}
