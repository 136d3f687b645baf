//! How full processors, interfaces and drives of the observed hosts were, step by step.
//!
//! A resource is at its ceiling where it was so in half of the time, and nothing contradicts that something waited for it: a drive that
//! is always busy with one request at a time may have much more to give, and so has a processor for which no task waited.
//!
//! What a line carries, a quota allows or a drive was measured to give is known from `cluster.toml` where it says so: an exporter does not
//! know of a shaper in front of its interface.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::Cluster;
use plimsoll_model::cluster::ClusterNode;
use plimsoll_model::observed::{FASTEST_LINE, NO_CEILING, ServerQuantity as Q, is_drive, is_nic};
use plimsoll_model::summary::servers::ResourceUse;
use plimsoll_stats::attribution::{Candidate, Observed};
use plimsoll_stats::math::median;
use plimsoll_store::{ObservedSource, ServerStep, SubjectSteps};

/// Kinds as the summary names them, and in words.
pub const KINDS: [(&str, &str); 4] = [
    ("cpu", "the servers' processors"),
    ("network in", "the servers' network interfaces, in"),
    ("network out", "the servers' network interfaces, out"),
    ("drive", "the servers' drives"),
];
const CPU: usize = 0;
const NET_IN: usize = 1;
const NET_OUT: usize = 2;
const DRIVE: usize = 3;

/// Share of the time above the threshold from which on a resource is at its ceiling: as for the client's (stats/attribution).
pub const HALF: f64 = 0.5;
/// Share of the time in which a task waited for a CPU, from which on processors were waited for. Guess: on an idle host it is below 1 %.
const CPU_WAITED: f64 = 0.05;
/// Requests at a drive, its own queue included, from which on others waited: one at a time is never one too many.
const DRIVE_WAITED: f64 = 1.5;
/// A quota below this part of the CPUs that a host shows is one.
const QUOTA: f64 = 0.99;

/// CPUs that count less than this part of the time that passes are a part of what they look like. (Readings are off by the way to them, and idle time
/// by a tick: measured below 2 % over 5 s.)
const COUNTED: f64 = 0.95;

/// How far above all a share may seem to be: readings are off by the way to them (measured below 2 % over 5 s), and a shaper lets a bucket through at
/// once. It is all then.
const OFF_BY_READING: f64 = 0.02;

/// How far above the speed that an interface tells its rate may be for it to be believed: bursts of a shaper, and readings that are off in time.
const OF_ITS_SPEED: f64 = 1.05;
/// Part of the time in which it may be above that all the same.
const ABOVE_ITS_SPEED: f64 = 0.05;
/// How many times as long as at half of its peers a request takes at a drive that is slower than they are. A guess; queues of drives that are alike were
/// within a third of each other in a cluster in a box.
const SLOWER: f64 = 2.0;
/// Peers do the same work: bytes a second and bytes of a request that are no further apart. A drive that does more has a reason to be fuller, and one that
/// hardly does anything tells nothing of what is usual.
const SAME_WORK: f64 = 2.0;
/// Fewer drives to compare with tell nothing of what is usual.
const LEAST_PEERS: usize = 2;
/// Drives that are compared with their peers, those whose requests take longest: each is held against all others.
const MOST_COMPARED: usize = 64;

/// Verdict on what used much more than it is said to have.
pub const BEYOND: &str = "above what it is said to give";
/// Verdict on an interface whose speed changed while it was looked at.
pub const CHANGED: &str = "its speed changed";

/// Who says what a ceiling is, where it is not the exporter.
const OF_CLUSTER: &str = "cluster.toml";

/// What a drive did in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
struct DriveWork {
    /// Mean time of a request, its queue included.
    request_s: f64,
    request_bytes: f64,
    bytes_per_s: f64,
}

impl DriveWork {
    fn is_as(&self, other: &Self) -> bool {
        let near = |a: f64, b: f64| a <= SAME_WORK * b && b <= SAME_WORK * a;
        near(self.bytes_per_s, other.bytes_per_s) && near(self.request_bytes, other.request_bytes)
    }
}

/// A resource in a window, with its share at each step: (seconds, share).
#[derive(Debug, Clone, PartialEq)]
pub struct SeenResource {
    pub used: ResourceUse,
    pub steps: Vec<(f64, f64)>,
    /// Seconds in which it was seen, where that is less than half of those in which anything was: what it was at the rest of the time nobody knows.
    pub scarce_s: Option<f64>,
    /// What a drive did, where it tells.
    work: Option<DriveWork>,
    /// A drive that is held against bytes, by the time with a request in flight.
    by_time: Option<Box<SeenResource>>,
}

impl SeenResource {
    pub fn candidate(&self) -> Candidate {
        match (self.used.resource.as_str(), self.used.unit.as_str()) {
            ("cpu", _) => Candidate::ServerCpu,
            ("drive", "B/s") => Candidate::ServerDiskRate,
            ("drive", _) => Candidate::ServerDisk,
            _ => Candidate::ServerNic,
        }
    }

    pub fn at_ceiling(&self) -> bool {
        self.used.time_above.is_some_and(|t| t >= HALF)
            && self.used.waited_for != Some(false)
            && self.scarce_s.is_none()
    }
}

/// Hosts of whose interfaces an exporter told at any time: where it was read too rarely, what a server counts of them is a part, and no stand-in.
pub fn with_nics(sources: &[ObservedSource]) -> BTreeSet<&str> {
    let told = sources.iter().flat_map(|s| &s.scrapes).flat_map(|s| &s.subjects);
    told.filter(|s| s.daemon.is_empty() && s.readings.iter().any(|r| r.quantity == Q::NicRxBytes))
        .map(|s| s.host.as_str())
        .collect()
}

/// All resources of hosts, and of daemons those that only they tell of. `exported`: hosts as of [`with_nics`].
pub fn of_window(
    subjects: &[SubjectSteps<'_>],
    exported: &BTreeSet<&str>,
    cluster: Option<&Cluster>,
) -> Vec<SeenResource> {
    let mut by_host: BTreeMap<&str, Vec<&SubjectSteps<'_>>> = BTreeMap::new();
    for s in subjects.iter().filter(|s| !s.host.is_empty()) {
        by_host.entry(s.host).or_default().push(s);
    }
    let all_s = seen_s(subjects);
    let of_host = |(host, subjects): (&str, Vec<&SubjectSteps<'_>>)| {
        let node = cluster.and_then(|c| c.node_of(host));
        let mut all = AllMeasured::default();
        let steps = || {
            let of_host = subjects.iter().filter(|s| s.daemon.is_empty()).flat_map(|s| &s.steps);
            of_host.filter(|step| step.seconds() > 0.0)
        };
        let cores = counted_cores(steps());
        for step in steps() {
            all.cpu(step, cores);
            all.nics(step, node);
            all.drives(step, node);
        }
        let daemons: Vec<&SubjectSteps<'_>> = subjects.into_iter().filter(|s| !s.daemon.is_empty()).collect();
        if let Some(node) = node {
            all.of_quota(&daemons, node);
            if !exported.contains(host) {
                all.nic_of_daemons(&daemons, node);
            }
        }
        all.seen(host, all_s)
    };
    let mut all: Vec<SeenResource> = by_host.into_iter().flat_map(of_host).collect();
    full_by_their_time(&mut all);
    all
}

/// From the first reading of anybody to the last.
fn seen_s(subjects: &[SubjectSteps<'_>]) -> f64 {
    let steps = || subjects.iter().flat_map(|s| &s.steps);
    let (from, to) = (steps().map(|s| s.from_ns).min(), steps().map(|s| s.to_ns).max());
    from.zip(to).map_or(0.0, |(from, to)| to.saturating_sub(from) as f64 / 1e9)
}

/// Drives that give less than `cluster.toml` says, and are full all the same. That a drive is busy all the time proves little of an SSD; it does where
/// requests wait, and take much longer than at drives with the same work.
fn full_by_their_time(all: &mut [SeenResource]) {
    let works: Vec<(usize, DriveWork)> =
        all.iter().enumerate().filter_map(|(i, s)| Some((i, s.work?))).collect();
    // What is at its ceiling by bytes gives what it can: slower than that it is not.
    let is_full = |s: &SeenResource| match &s.by_time {
        Some(by_time) => !s.at_ceiling() && s.used.share.is_some() && by_time.at_ceiling(),
        None => s.at_ceiling(),
    };
    let mut full: Vec<(usize, DriveWork)> =
        works.iter().copied().filter(|(i, _)| is_full(&all[*i])).collect();
    full.sort_by(|a, b| b.1.request_s.total_cmp(&a.1.request_s));
    full.truncate(MOST_COMPARED);
    for (at, work) in full {
        let peers = works.iter().filter(|(i, other)| *i != at && work.is_as(other));
        let times: Vec<f64> = peers.map(|(_, w)| w.request_s).collect();
        let usual_s = median(&times);
        if times.len() < LEAST_PEERS || work.request_s < SLOWER * usual_s {
            continue;
        }
        let s = &mut all[at];
        let said = s.used.ceiling;
        if let Some(by_time) = s.by_time.take() {
            *s = *by_time;
            s.used.said = said;
        }
        s.used.peers_request_s = Some(usual_s);
    }
}

/// All CPU time of a step: used, and idle.
fn cpu_time(step: &ServerStep<'_>) -> Option<(f64, f64)> {
    let sum = |of: &[Q]| of.iter().filter_map(|q| step.total(*q)).sum::<f64>();
    // What a hypervisor gave to others cannot be used either.
    let used = sum(&[Q::CpuUserS, Q::CpuSystemS, Q::CpuIrqS, Q::CpuStealS]);
    let all_s = used + sum(&[Q::CpuIdleS, Q::CpuIowaitS]);
    (all_s > 0.0).then_some((used, all_s))
}

/// Cores of a host: its CPUs; where these count less time than passes (of a quota, as a container's own page has it), what they count. `None`: it
/// does not tell.
fn counted_cores<'a>(steps: impl Iterator<Item = &'a ServerStep<'a>>) -> Option<f64> {
    let (mut counted_s, mut seconds, mut cpus) = (0.0, 0.0, 0.0);
    for step in steps {
        let Some((_, all_s)) = cpu_time(step) else { continue };
        counted_s += all_s;
        seconds += step.seconds();
        cpus = f64::max(cpus, step.labels(Q::CpuIdleS).count() as f64);
    }
    let counted = counted_s / seconds;
    (seconds > 0.0).then_some(if counted < COUNTED * cpus { counted } else { cpus })
}

/// Its length in seconds, the use a second, and its share where the step has a ceiling of its own.
type MeasuredStep = (f64, f64, Option<f64>);

/// What was measured of one resource: (seconds, reached, share of the ceiling), its ceiling, and where it can be told whether it was
/// waited for.
#[derive(Default)]
struct Measured {
    steps: Vec<MeasuredStep>,
    ceiling: Option<f64>,
    unit: &'static str,
    ceiling_of: &'static str,
    waited: Vec<(f64, bool)>,
    /// What an interface tells of its speed, beside a line rate of `cluster.toml`; and of each step the higher of what it told at both ends.
    told: Option<f64>,
    told_each: Vec<Option<f64>>,
    /// Of a drive: time of all requests, their queue included, their number, and their bytes.
    requests: (f64, f64, f64),
    /// Of a drive that is held against bytes.
    by_time: Option<Box<Measured>>,
}

impl Measured {
    /// A step of so many seconds, at a ceiling that is the same throughout.
    fn add(&mut self, seconds: f64, reached: f64) {
        self.steps.push((seconds, reached, None));
    }

    /// A step of a drive, as a share of the time with a request in flight.
    fn add_busy(&mut self, seconds: f64, busy_s: f64, waited: Option<bool>) {
        self.unit = "busy";
        self.add(seconds, (busy_s / seconds).min(1.0));
        self.ceiling = Some(1.0);
        self.waited.extend(waited.map(|w| (seconds, w)));
    }

    /// A line of `cluster.toml` that is at the lower speed which its own interface tells is as fast as that: it was negotiated down, or changed since. What an
    /// interface tells without being at it is not believed: virtual ones tell fancies.
    fn at_the_speed_it_tells(&self) -> Option<f64> {
        let told = self.told.filter(|t| self.ceiling.is_some_and(|c| *t < c))?;
        let seconds: f64 = self.steps.iter().map(|(s, ..)| s).sum();
        let bytes: f64 = self.steps.iter().map(|(s, r, _)| s * r).sum();
        let threshold = Candidate::ServerNic.threshold();
        let above =
            |most: f64| self.steps.iter().filter(|(_, r, _)| *r >= most * told).map(|(s, ..)| s).sum::<f64>();
        let is_at_it = above(threshold) >= HALF * seconds
            && above(OF_ITS_SPEED) <= ABOVE_ITS_SPEED * seconds
            && bytes <= OF_ITS_SPEED * told * seconds;
        (is_at_it && seconds > 0.0).then_some(told)
    }

    /// A line of `cluster.toml` that carried much more than that, and no more than its own interface tells: the file is wrong.
    fn beyond_the_file(&self) -> Option<f64> {
        let (told, said) = self.told.zip(self.ceiling.filter(|_| self.ceiling_of == OF_CLUSTER))?;
        let seconds: f64 = self.steps.iter().map(|(s, ..)| s).sum();
        let per_s = self.steps.iter().map(|(s, r, _)| s * r).sum::<f64>() / seconds.max(f64::MIN_POSITIVE);
        (told > said && per_s > NO_CEILING * said && per_s <= OF_ITS_SPEED * told).then_some(told)
    }

    /// An interface whose speed changed while it was looked at: of the whole time it has no ceiling, and `lines.rs` says of each of its speeds what was used.
    fn has_changed(&self) -> bool {
        let mut told = self.told_each.iter().flatten();
        told.next().is_some_and(|first| told.any(|t| t != first))
    }
}

/// Of one host, by kind and device.
#[derive(Default)]
struct AllMeasured<'a>(BTreeMap<(usize, &'a str), Measured>);

impl<'a> AllMeasured<'a> {
    fn of(&mut self, kind: usize, device: &'a str, unit: &'static str) -> &mut Measured {
        let m = self.0.entry((kind, device)).or_default();
        m.unit = unit;
        m
    }

    fn cpu(&mut self, step: &ServerStep<'a>, cores: Option<f64>) {
        let Some(((used, all_s), cpus)) = cpu_time(step).zip(cores) else { return };
        let m = self.of(CPU, "", "cores");
        // Of the time that the CPUs counted themselves: a reading's own time is off by the way to it.
        m.add(step.seconds(), used / all_s * cpus);
        m.ceiling = Some(cpus);
        let waited = step.delta(Q::PsiCpuS, "").map(|s| s / step.seconds() >= CPU_WAITED);
        m.waited.extend(waited.map(|w| (step.seconds(), w)));
    }

    /// An interface that the cluster file names is one, whatever its name looks like.
    fn nics(&mut self, step: &ServerStep<'a>, node: Option<&ClusterNode>) {
        for (kind, quantity) in [(NET_IN, Q::NicRxBytes), (NET_OUT, Q::NicTxBytes)] {
            // Once for all of them: a host may show thousands.
            let one = step.labels(quantity).filter(|(n, _)| is_nic(n)).take(2).count() == 1;
            let only = |nic: &str| {
                node.and_then(ClusterNode::only_nic).filter(|n| n.name.is_none() && one && is_nic(nic))
            };
            for (nic, bytes) in step.deltas(quantity).filter(|(_, b)| *b <= FASTEST_LINE * step.seconds()) {
                let described = node.and_then(|n| n.nic(nic)).or_else(|| only(nic));
                if !is_nic(nic) && described.is_none() {
                    continue;
                }
                let known = described.and_then(|n| if kind == NET_IN { n.most_in() } else { n.most_out() });
                // A virtual interface says -1, or 0.
                let speed = step.gauge(Q::NicSpeedBytesPerS, nic).filter(|s| *s > 0.0);
                let m = self.of(kind, nic, "B/s");
                m.add(step.seconds(), bytes / step.seconds());
                m.ceiling_of = if known.is_some() { OF_CLUSTER } else { "" };
                m.ceiling = known.or(speed).or(m.ceiling);
                m.told = speed.or(m.told);
                m.told_each.push(step.most_of_gauge(Q::NicSpeedBytesPerS, nic).filter(|s| *s > 0.0));
            }
        }
    }

    /// By bytes where it is known what the drive gives, else by the time with a request in flight.
    fn drives(&mut self, step: &ServerStep<'a>, node: Option<&ClusterNode>) {
        for (device, busy) in step.deltas(Q::DiskBusyS).filter(|(d, _)| is_drive(d)) {
            let seconds = step.seconds();
            let per_s = |q| step.delta(q, device).map(|b| b / seconds);
            let bytes = per_s(Q::DiskReadBytes).zip(per_s(Q::DiskWriteBytes));
            let known = node.and_then(|n| n.drive(device)).map(|d| (d.read, d.write));
            let queue_s = step.delta(Q::DiskQueueS, device);
            let waited = queue_s.map(|q| q / seconds >= DRIVE_WAITED);
            let number = step.delta(Q::DiskReads, device).zip(step.delta(Q::DiskWrites, device));
            let requests =
                queue_s.zip(number).zip(bytes).map(|((queue_s, (reads, writes)), (read, written))| {
                    (queue_s, reads + writes, (read + written) * seconds)
                });
            let most = known.and_then(|(read, write)| read.zip(write));
            if most.is_some() && bytes.is_none() {
                continue;
            }
            let unit = if most.is_some() { "B/s" } else { "busy" };
            let m = self.of(DRIVE, device, unit);
            if let Some((queue_s, number, bytes)) = requests {
                m.requests = (m.requests.0 + queue_s, m.requests.1 + number, m.requests.2 + bytes);
            }
            let Some((most_read, most_write)) = most else {
                m.add_busy(seconds, busy, waited);
                continue;
            };
            m.by_time.get_or_insert_default().add_busy(seconds, busy, waited);
            if let Some((read, write)) = bytes {
                // At the mix of that step: all time for reads would give the one, all time for writes the other.
                m.steps.push((seconds, read + write, Some(read / most_read.0 + write / most_write.0)));
                m.ceiling_of = OF_CLUSTER;
            }
        }
    }

    /// Daemons that may use less than what the host shows, or of whose host nobody tells.
    fn of_quota(&mut self, daemons: &[&SubjectSteps<'a>], node: &ClusterNode) {
        let shown = self.0.get(&(CPU, "")).and_then(|m| m.ceiling);
        let Some(quota) = node.cpus.filter(|q| shown.is_none_or(|all| *q < QUOTA * all)) else { return };
        for d in daemons.iter().filter(|d| !d.daemon.ends_with("exporter")) {
            for step in d.steps.iter().filter(|s| s.seconds() > 0.0) {
                let Some(used) = step.delta(Q::ProcessCpuS, "") else { continue };
                let m = self.of(CPU, d.daemon, "cores");
                m.add(step.seconds(), used / step.seconds());
                (m.ceiling, m.ceiling_of) = (Some(quota), OF_CLUSTER);
            }
        }
    }

    /// What the servers count themselves, where no exporter tells of an interface: payload and heads of requests, without those of frames.
    fn nic_of_daemons(&mut self, daemons: &[&SubjectSteps<'a>], node: &ClusterNode) {
        let Some(nic) = node.only_nic().filter(|_| !self.0.keys().any(|(kind, _)| *kind == NET_IN)) else {
            return;
        };
        let both = [
            (NET_IN, Q::InternodeReceivedBytes, Q::ReceivedBytes, nic.most_in()),
            (NET_OUT, Q::InternodeSentBytes, Q::SentBytes, nic.most_out()),
        ];
        for (kind, peers, clients, most) in both {
            for d in daemons {
                for step in d.steps.iter().filter(|s| s.seconds() > 0.0) {
                    let (Some(peers), Some(clients)) = (step.total(peers), step.total(clients)) else {
                        continue;
                    };
                    let m = self.of(kind, d.daemon, "B/s");
                    m.add(step.seconds(), (peers + clients) / step.seconds());
                    (m.ceiling, m.ceiling_of) = (most, OF_CLUSTER);
                }
            }
        }
    }

    /// `all_s`: seconds in which anything was seen.
    fn seen(self, host: &str, all_s: f64) -> Vec<SeenResource> {
        // What one way shows of the line's speed is so of the other.
        let mut speeds: BTreeMap<&str, f64> = BTreeMap::new();
        for ((kind, device), m) in &self.0 {
            let told =
                [NET_IN, NET_OUT].contains(kind).then(|| m.at_the_speed_it_tells().or(m.beyond_the_file()));
            speeds.extend(told.flatten().map(|speed| (*device, speed)));
        }
        let speed = |kind: usize, device: &str| {
            speeds.get(device).copied().filter(|_| [NET_IN, NET_OUT].contains(&kind))
        };
        let of = |((kind, device), m): ((usize, &str), Measured)| {
            seen((host, KINDS[kind].0, device), &m, speed(kind, device), all_s)
        };
        self.0.into_iter().map(of).collect()
    }
}

/// `speed`: what the line was seen to have, whatever the file says.
fn seen(
    (host, resource, device): (&str, &str, &str),
    m: &Measured,
    speed: Option<f64>,
    all_s: f64,
) -> SeenResource {
    let changed = m.has_changed();
    let told = speed.filter(|_| !changed);
    let (most, ceiling_of) = match told {
        Some(_) => (told, ""),
        None if changed => (None, ""),
        None => (m.ceiling, m.ceiling_of),
    };
    let seconds: f64 = m.steps.iter().map(|(s, ..)| s).sum();
    let mean = |of: &dyn Fn(&MeasuredStep) -> Option<f64>| {
        let sum: Option<f64> = m.steps.iter().map(|x| Some(x.0 * of(x)?)).sum();
        sum.map(|s| s / seconds.max(f64::MIN_POSITIVE))
    };
    let reached = mean(&|x| Some(x.1)).unwrap_or(0.0);
    let share_of = |x: &MeasuredStep| x.2.or_else(|| Some(x.1 / most?));
    let share = mean(&share_of);
    // Of a mix the ceiling is what this mix would give.
    let ceiling = most.or_else(|| share.filter(|s| *s > 0.0).map(|s| reached / s));
    // Nothing has more than all: then the ceiling, or the count, is wrong, and nothing follows from either.
    let beyond = share.is_some_and(|s| s > NO_CEILING || !s.is_finite());
    let share = share.filter(|_| !beyond).map(|s| if s <= 1.0 + OFF_BY_READING { s.min(1.0) } else { s });
    let steps: Vec<(f64, f64)> =
        m.steps.iter().filter(|_| !beyond).filter_map(|x| Some((x.0, share_of(x)?))).collect();
    let (queue_s, number, bytes) = m.requests;
    let work = (number > 0.0).then(|| DriveWork {
        request_s: queue_s / number,
        request_bytes: bytes / number,
        bytes_per_s: bytes / seconds.max(f64::MIN_POSITIVE),
    });
    let used = ResourceUse {
        resource: resource.into(),
        host: host.into(),
        device: device.into(),
        reached,
        ceiling,
        unit: m.unit.into(),
        ceiling_of: ceiling_of.into(),
        share,
        request_s: work.map(|w| w.request_s),
        said: told.and(m.ceiling),
        ..ResourceUse::default()
    };
    let by_time = m.by_time.as_deref().map(|t| {
        let mut s = seen((host, resource, device), t, None, all_s);
        (s.used.request_s, s.work) = (used.request_s, work);
        Box::new(s)
    });
    let scarce_s = (seconds < HALF * all_s).then_some(seconds);
    let mut seen = SeenResource { used, steps, scarce_s, work, by_time };
    let threshold = seen.candidate().threshold();
    let above: f64 = seen.steps.iter().filter(|(_, v)| *v >= threshold).map(|(s, _)| s).sum();
    let waited: f64 = m.waited.iter().filter(|(_, w)| *w).map(|(s, _)| s).sum();
    let looked: f64 = m.waited.iter().map(|(s, _)| s).sum();
    seen.used.threshold = threshold;
    seen.used.time_above = seen.used.share.map(|_| above / seconds.max(f64::MIN_POSITIVE));
    seen.used.waited_for = (looked > 0.0).then_some(waited / looked >= HALF);
    let scarce = scarce_s.map(|s| format!("seen for {s:.0} s of {all_s:.0} s"));
    let verdict = match (seen.used.time_above, seen.at_ceiling()) {
        (None, _) if changed => CHANGED,
        (None, _) if beyond => BEYOND,
        (None, _) => "ceiling not known",
        (_, true) => "at its ceiling",
        (Some(t), false) if t >= HALF => "busy, nothing waited for it",
        _ => "below its ceiling",
    };
    seen.used.verdict = scarce.unwrap_or_else(|| verdict.into());
    seen
}

/// On this machine its processors are a candidate already, shared with the client; a quota of a server's own is not.
pub fn is_shared(s: &SeenResource, here: bool) -> bool {
    here && s.used.resource == "cpu" && s.used.device.is_empty()
}

/// Of each kind those at their ceiling by name, or the fullest. What is busy and not waited for is no candidate.
pub fn candidates(all: &[SeenResource], here: bool) -> Vec<Observed> {
    let mut out = Vec::new();
    for (kind, _) in KINDS {
        let of_kind: Vec<&SeenResource> = all
            .iter()
            .filter(|s| s.used.resource == kind && !s.steps.is_empty() && !is_shared(s, here))
            .filter(|s| s.at_ceiling() || s.scarce_s.is_none() && s.used.time_above.is_some_and(|t| t < HALF))
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
            what: in_words(kind, &full, fullest, different(&of_kind)),
            samples: fullest.steps.iter().map(|(_, share)| *share).collect(),
        });
    }
    out
}

/// Of several windows each is one.
pub fn different(of_kind: &[&SeenResource]) -> usize {
    of_kind.iter().map(|s| (&s.used.host, &s.used.device)).collect::<BTreeSet<_>>().len()
}

/// `, in` of an interface's kind; nothing of others.
pub fn way(kind: &str) -> String {
    kind.strip_prefix("network").map_or(String::new(), |way| format!(",{way}"))
}

/// `eth0 of s1, out: 1 of 4`.
pub fn in_words(kind: &str, full: &[&SeenResource], fullest: &SeenResource, all: usize) -> String {
    let way = way(kind);
    let mut names: Vec<String> = full.iter().map(|s| s.used.name()).collect();
    names.sort();
    names.dedup();
    match names.len() {
        0 => format!("{}{way}", fullest.used.name()),
        1 if all > 1 => format!("{}{way}: 1 of {all}", names[0]),
        1 => format!("{}{way}", names[0]),
        n if n <= 3 => format!("{}{way}: {n} of {all}", names.join(" and ")),
        n => format!("{} and {} more{way}: {n} of {all}", names[0], n - 1),
    }
}
