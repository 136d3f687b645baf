//! How full processors, interfaces and drives of the observed hosts were, step by step.
//!
//! A resource is at its ceiling where it was so in half of the time, and nothing contradicts that something waited for it: a drive that
//! is always busy with one request at a time may have much more to give, and so has a processor for which no task waited.

use std::collections::BTreeMap;

use plimsoll_model::observed::{ServerQuantity as Q, is_drive, is_nic};
use plimsoll_model::summary::servers::ResourceUse;
use plimsoll_stats::attribution::{Candidate, Observed};
use plimsoll_store::{ServerStep, SubjectSteps};

/// Kinds as the summary names them, and in words.
pub const KINDS: [(&str, &str); 4] = [
    ("cpu", "the servers' processors"),
    ("network in", "the servers' network interfaces, in"),
    ("network out", "the servers' network interfaces, out"),
    ("drive", "the servers' drives"),
];

/// Share of the time above the threshold from which on a resource is at its ceiling: as for the client's (stats/attribution).
pub const HALF: f64 = 0.5;
/// Share of the time in which a task waited for a CPU, from which on processors were waited for. Guess: on an idle host it is below 1 %.
const CPU_WAITED: f64 = 0.05;
/// Requests at a drive, its own queue included, from which on others waited: one at a time is never one too many.
const DRIVE_WAITED: f64 = 1.5;

/// A resource in a window, with its share at each step: (seconds, share).
#[derive(Debug, Clone, PartialEq)]
pub struct SeenResource {
    pub used: ResourceUse,
    pub steps: Vec<(f64, f64)>,
}

impl SeenResource {
    pub fn candidate(&self) -> Candidate {
        match self.used.resource.as_str() {
            "cpu" => Candidate::ServerCpu,
            "drive" => Candidate::ServerDisk,
            _ => Candidate::ServerNic,
        }
    }

    pub fn at_ceiling(&self) -> bool {
        self.used.time_above.is_some_and(|t| t >= HALF) && self.used.waited_for != Some(false)
    }

    /// `eth0 of s1`.
    pub fn name(&self) -> String {
        match self.used.device.as_str() {
            "" => self.used.host.clone(),
            device => format!("{device} of {}", self.used.host),
        }
    }
}

/// All resources of hosts.
pub fn of_window(subjects: &[SubjectSteps<'_>]) -> Vec<SeenResource> {
    let hosts = subjects.iter().filter(|s| s.daemon.is_empty() && !s.host.is_empty());
    hosts.flat_map(of_host).collect()
}

/// What was measured of one resource: (seconds, reached), its ceiling, and where it can be told whether it was waited for.
#[derive(Default)]
struct Measured {
    steps: Vec<(f64, f64)>,
    ceiling: Option<f64>,
    waited: Vec<(f64, bool)>,
}

fn of_host(s: &SubjectSteps<'_>) -> Vec<SeenResource> {
    let mut all: BTreeMap<(usize, &str), Measured> = BTreeMap::new();
    for step in s.steps.iter().filter(|s| s.seconds() > 0.0) {
        cpu(&mut all, step);
        nics(&mut all, step);
        drives(&mut all, step);
    }
    all.into_iter().map(|((kind, device), m)| seen(s.host, KINDS[kind].0, device, &m)).collect()
}

fn cpu<'a>(all: &mut BTreeMap<(usize, &'a str), Measured>, step: &ServerStep<'a>) {
    let sum = |of: &[Q]| of.iter().filter_map(|q| step.total(*q)).sum::<f64>();
    // What a hypervisor gave to others cannot be used either.
    let used = sum(&[Q::CpuUserS, Q::CpuSystemS, Q::CpuIrqS, Q::CpuStealS]);
    let all_s = used + sum(&[Q::CpuIdleS, Q::CpuIowaitS]);
    if all_s <= 0.0 {
        return;
    }
    let cpus = step.labels(Q::CpuIdleS).count() as f64;
    let m = all.entry((0, "")).or_default();
    // Of the time that the CPUs counted themselves: a reading's own time is off by the way to it.
    m.steps.push((step.seconds(), used / all_s * cpus));
    m.ceiling = Some(cpus);
    let waited = step.delta(Q::PsiCpuS, "").map(|s| s / step.seconds() >= CPU_WAITED);
    m.waited.extend(waited.map(|w| (step.seconds(), w)));
}

fn nics<'a>(all: &mut BTreeMap<(usize, &'a str), Measured>, step: &ServerStep<'a>) {
    for (kind, quantity) in [(1, Q::NicRxBytes), (2, Q::NicTxBytes)] {
        for (nic, bytes) in step.deltas(quantity).filter(|(n, _)| is_nic(n)) {
            let m = all.entry((kind, nic)).or_default();
            m.steps.push((step.seconds(), bytes / step.seconds()));
            // A virtual interface says -1, or 0.
            m.ceiling = step.gauge(Q::NicSpeedBytesPerS, nic).filter(|s| *s > 0.0).or(m.ceiling);
        }
    }
}

fn drives<'a>(all: &mut BTreeMap<(usize, &'a str), Measured>, step: &ServerStep<'a>) {
    for (device, busy) in step.deltas(Q::DiskBusyS).filter(|(d, _)| is_drive(d)) {
        let m = all.entry((3, device)).or_default();
        m.steps.push((step.seconds(), (busy / step.seconds()).min(1.0)));
        m.ceiling = Some(1.0);
        let queue = step.delta(Q::DiskQueueS, device).map(|q| q / step.seconds() >= DRIVE_WAITED);
        m.waited.extend(queue.map(|w| (step.seconds(), w)));
    }
}

fn seen(host: &str, resource: &str, device: &str, m: &Measured) -> SeenResource {
    let unit = match resource {
        "cpu" => "cores",
        "drive" => "busy",
        _ => "B/s",
    };
    let seconds: f64 = m.steps.iter().map(|(s, _)| s).sum();
    let reached = m.steps.iter().map(|(s, v)| s * v).sum::<f64>() / seconds.max(f64::MIN_POSITIVE);
    let shares: Vec<(f64, f64)> =
        m.ceiling.map_or_else(Vec::new, |c| m.steps.iter().map(|(s, v)| (*s, v / c)).collect());
    let used = ResourceUse {
        resource: resource.into(),
        host: host.into(),
        device: device.into(),
        reached,
        ceiling: m.ceiling,
        unit: unit.into(),
        share: m.ceiling.map(|c| reached / c),
        ..ResourceUse::default()
    };
    let mut seen = SeenResource { used, steps: shares };
    let threshold = seen.candidate().threshold();
    let above: f64 = seen.steps.iter().filter(|(_, v)| *v >= threshold).map(|(s, _)| s).sum();
    let waited: f64 = m.waited.iter().filter(|(_, w)| *w).map(|(s, _)| s).sum();
    let looked: f64 = m.waited.iter().map(|(s, _)| s).sum();
    seen.used.threshold = threshold;
    seen.used.time_above = m.ceiling.map(|_| above / seconds.max(f64::MIN_POSITIVE));
    seen.used.waited_for = (looked > 0.0).then_some(waited / looked >= HALF);
    seen.used.verdict = match (seen.used.time_above, seen.at_ceiling()) {
        (None, _) => "ceiling not known",
        (_, true) => "at its ceiling",
        (Some(t), false) if t >= HALF => "busy, nothing waited for it",
        _ => "below its ceiling",
    }
    .into();
    seen
}

/// Of each kind those at their ceiling by name, or the fullest. What is busy and not waited for is no candidate.
pub fn candidates(all: &[SeenResource], here: bool) -> Vec<Observed> {
    let mut out = Vec::new();
    for (kind, _) in KINDS {
        // On this machine its processors are a candidate already, shared with the client.
        let of_kind: Vec<&SeenResource> = all
            .iter()
            .filter(|s| s.used.resource == kind && !s.steps.is_empty() && !(here && kind == "cpu"))
            .filter(|s| s.at_ceiling() || s.used.time_above.is_some_and(|t| t < HALF))
            .collect();
        let full: Vec<&SeenResource> = of_kind.iter().copied().filter(|s| s.at_ceiling()).collect();
        let fullest = of_kind.iter().max_by(|a, b| {
            (a.at_ceiling(), a.used.share)
                .partial_cmp(&(b.at_ceiling(), b.used.share))
                .expect("shares are numbers")
        });
        let Some(fullest) = fullest else { continue };
        out.push(Observed {
            candidate: fullest.candidate(),
            what: in_words(kind, &full, fullest, of_kind.len()),
            samples: fullest.steps.iter().map(|(_, share)| *share).collect(),
        });
    }
    out
}

/// `eth0 of s1, out: 1 of 4`.
fn in_words(kind: &str, full: &[&SeenResource], fullest: &SeenResource, all: usize) -> String {
    let way = kind.strip_prefix("network").map_or(String::new(), |way| format!(",{way}"));
    let mut names: Vec<String> = full.iter().map(|s| s.name()).collect();
    names.sort();
    names.dedup();
    match names.len() {
        0 => format!("{}{way}", fullest.name()),
        1 if all > 1 => format!("{}{way}: 1 of {all}", names[0]),
        1 => format!("{}{way}", names[0]),
        n if n <= 3 => format!("{}{way}: {n} of {all}", names.join(" and ")),
        n => format!("{} and {} more{way}: {n} of {all}", names[0], n - 1),
    }
}
