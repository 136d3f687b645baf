//! What hosts recorded of a stage -> rates with their intervals, and what bound them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::net::{
    Framing, HostLoad, InterfaceLoad, NetFall, NetHost, NetLane, NetRecord, NetStage, RoundTrips, TcpFacts,
};
use plimsoll_model::{Estimate, Finding, Level, Verdict};
use plimsoll_stats::{fall, rate};

use crate::address::interface_of;
use crate::host::HostCounters;
use crate::limit::{BesideLane, CORE_FULL, MOSTLY, limits};
use crate::node::address;
use crate::pattern::PlannedStage;
use crate::plane::window;
use crate::wire::{NodeRecord, PingRecord, RunOrder, SLICE_NS, StreamTold};

const SLICE_S: f64 = SLICE_NS as f64 / 1e9;
/// Of all CPU time; beyond it what was measured is the hypervisor's. As in the validity checks of other runs.
const STOLEN: f64 = 0.10;
/// Half of an interval as a part of its rate, beyond which a rate is hardly known. (A choice: two lanes of which one has half as much again
/// can still be told apart.)
const WIDE: f64 = 0.25;
const GIB: f64 = (1u64 << 30) as f64;

/// A stage, as its hosts saw it.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// From, and to.
    pub lanes: Vec<(usize, usize)>,
    /// By host.
    pub nodes: BTreeMap<usize, NodeRecord>,
    /// When it began, on the conductor's clock.
    pub at_ns: u64,
    /// Before what counts.
    pub warmup_ns: u64,
    /// What counts.
    pub measured_ns: u64,
    /// Of each lane.
    pub streams: u16,
}

impl Measured {
    fn ends(&self, lane: usize, host: usize, sends: bool) -> Vec<&StreamTold> {
        let of = |s: &&StreamTold| s.lane as usize == lane && s.sends == sends;
        let mut out: Vec<_> =
            self.nodes.get(&host).map(|n| n.streams.iter().filter(of).collect()).unwrap_or_default();
        out.sort_by_key(|s| s.stream);
        out
    }

    /// Places of the slices that count.
    fn window(&self) -> std::ops::Range<usize> {
        let first = self.warmup_ns / SLICE_NS;
        first as usize..(first + self.measured_ns / SLICE_NS) as usize
    }

    /// What arrived on a lane in each slice that counts.
    fn arrived(&self, lane: usize) -> Vec<f64> {
        let streams = self.ends(lane, self.lanes[lane].1, false);
        let at = |i: usize| streams.iter().filter_map(|s| s.slices.get(i)).sum::<u64>() as f64;
        self.window().map(at).collect()
    }

    /// What a host sent in each slice that counts, as it arrived; or what it took in. Empty: nothing was asked of it.
    fn of_host(&self, host: usize, sends: bool) -> Vec<f64> {
        let is_its = |lane: &usize| host == if sends { self.lanes[*lane].0 } else { self.lanes[*lane].1 };
        sum((0..self.lanes.len()).filter(is_its).map(|lane| self.arrived(lane)))
    }

    /// Why a lane has no rate.
    fn void(&self, lane: usize, names: &dyn Fn(usize) -> String) -> Option<String> {
        let (from, to) = self.lanes[lane];
        let both = [(from, true), (to, false)];
        for (host, sends) in both {
            let ends = self.ends(lane, host, sends);
            if ends.len() != usize::from(self.streams) {
                return Some(format!("{} told of {} of {} streams", names(host), ends.len(), self.streams));
            }
            if let Some((at, why)) = ends.iter().find_map(|s| s.ended.clone()) {
                return Some(format!(
                    "a stream ended {:.1} s after the start at {}: {why}",
                    at as f64 / 1e9,
                    names(host)
                ));
            }
            let late_ns = self.nodes.get(&host).map_or(0, |n| n.late_ns);
            if late_ns > self.warmup_ns {
                return Some(format!(
                    "{} began {:.1} s late, after the warm-up",
                    names(host),
                    late_ns as f64 / 1e9
                ));
            }
            if self.nodes.get(&host).is_some_and(|n| n.interrupted) {
                return Some(format!("{} was told to stop", names(host)));
            }
        }
        None
    }
}

/// What arrived per second on all lanes, without an interval: to choose by.
pub fn plain_rate(measured: &Measured) -> f64 {
    let window_s = measured.measured_ns as f64 / 1e9;
    (0..measured.lanes.len()).map(|lane| measured.arrived(lane).iter().sum::<f64>()).sum::<f64>() / window_s
}

/// A rate, or why there is none.
fn estimate(slices: &[f64]) -> (Option<Estimate>, Option<String>) {
    match rate::estimate(slices, SLICE_S) {
        Verdict::Known(e) => (Some(e), None),
        Verdict::Inconclusive(why) => (None, Some(why)),
    }
}

fn sum(of: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    of.reduce(|a, b| a.iter().zip(&b).map(|(x, y)| x + y).collect()).unwrap_or_default()
}

/// All of a stage.
pub fn stage(
    planned: &PlannedStage,
    measured: &Measured,
    hosts: &[NetHost],
    max_gbps: Option<f64>,
) -> NetStage {
    let names = |i: usize| hosts.get(i).map_or_else(|| i.to_string(), |h| h.name.clone());
    let loads = host_loads(measured);
    let mut lanes: Vec<NetLane> =
        (0..measured.lanes.len()).map(|lane| lane_of(measured, lane, hosts, &names)).collect();
    // What goes through a link is known when all lanes are.
    let seen = BesideLane { lanes: &lanes, loads: &loads, hosts, max_gbps };
    let limited: Vec<_> = lanes.iter().map(|lane| limits(lane, &seen)).collect();
    lanes.iter_mut().zip(limited).for_each(|(lane, limits)| lane.limited_by = limits);
    let void: Vec<&str> = lanes.iter().filter_map(|l| l.why.as_deref()).collect();
    let all = sum((0..lanes.len()).map(|lane| measured.arrived(lane)));
    let (bytes_per_s, why) = match void.first() {
        Some(why) => (None, Some(format!("{} of {} lanes have no rate: {why}", void.len(), lanes.len()))),
        None => estimate(&all),
    };
    let halves = bytes_per_s.and_then(|_| halves(&all));
    let falls = if bytes_per_s.is_some() { falls(measured, &all) } else { Vec::new() };
    let (pattern, title) = (planned.pattern.to_owned(), planned.title.clone());
    NetStage { pattern, title, bytes_per_s, why, lanes, hosts: loads, started_s: None, halves, falls }
}

/// Rates of the two halves of a window.
fn halves(slices: &[f64]) -> Option<[Estimate; 2]> {
    let (first, second) = slices.split_at(slices.len() / 2);
    Some([estimate(first).0?, estimate(second).0?])
}

/// Rates that fell and stayed down. Credits are of an interface: where the whole did not fall, what each host sent and took in is looked
/// at; that one lane gives way to another on the same NIC is no fall of anything.
fn falls(measured: &Measured, all: &[f64]) -> Vec<NetFall> {
    let of = |slices: &[f64], host: Option<usize>, sends: bool| {
        let f = fall::lasting_fall(slices, SLICE_S)?;
        Some(NetFall {
            host,
            sends,
            at_s: measured.warmup_ns as f64 / 1e9 + f.at_s,
            before_bytes_per_s: f.before / SLICE_S,
            after_bytes_per_s: f.after / SLICE_S,
            lasts_s: f.lasts_s,
        })
    };
    if let Some(whole) = of(all, None, false) {
        return vec![whole];
    }
    let hosts: BTreeSet<usize> = measured.lanes.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let each = hosts.into_iter().flat_map(|h| [(h, true), (h, false)]);
    each.filter_map(|(h, sends)| of(&measured.of_host(h, sends), Some(h), sends)).collect()
}

fn lane_of(measured: &Measured, lane: usize, hosts: &[NetHost], names: &dyn Fn(usize) -> String) -> NetLane {
    let (from, to) = measured.lanes[lane];
    let (senders, receivers) = (measured.ends(lane, from, true), measured.ends(lane, to, false));
    let order = RunOrder { at_ns: 0, warmup_ns: measured.warmup_ns, measured_ns: measured.measured_ns };
    let arrived = measured.arrived(lane);
    let (bytes_per_s, why) = match measured.void(lane, names) {
        Some(why) => (None, Some(why)),
        None => estimate(&arrived),
    };
    let windows: Vec<(TcpFacts, TcpFacts)> = senders.iter().filter_map(|s| window(&s.tcp, &order)).collect();
    let last = windows.first().map(|w| w.1);
    let own = |s: Option<&&StreamTold>| s.and_then(|s| address(&s.local));
    let (from_at, to_at) = (own(senders.first()), own(receivers.first()));
    let framing = last.and_then(|f| f.mss_bytes).zip(from_at).map(|(mss, at)| {
        Framing::of(mss, last.and_then(|f| f.has_timestamps).unwrap_or(false), at.is_ipv6())
    });
    let interface = |host: usize, at: Option<std::net::SocketAddr>| {
        let found = at.zip(hosts.get(host)).and_then(|(at, h)| interface_of(&h.interfaces, at));
        found.map(|i| i.name.clone()).unwrap_or_default()
    };
    let grown = |field: fn(&TcpFacts) -> Option<u64>| -> Option<f64> {
        let each: Option<Vec<u64>> =
            windows.iter().map(|(a, b)| Some(field(b)?.saturating_sub(field(a)?))).collect();
        each.filter(|e| !e.is_empty()).map(|e| e.iter().sum::<u64>() as f64)
    };
    let share =
        |part: Option<f64>, whole: Option<f64>| part.zip(whole).and_then(|(p, w)| (w > 0.0).then(|| p / w));
    let busy_us = grown(|f| f.busy_us);
    // The facts are taken at the seconds of the window: the last of them is a little before its end.
    let watched_us = senders.iter().map(|s| watched_ns(&s.tcp, &order)).sum::<u64>() as f64 / 1e3;
    let pings = measured.nodes.get(&from).and_then(|n| n.pings.iter().find(|p| p.lane as usize == lane));
    let text = |at: Option<std::net::SocketAddr>| at.map(|a| a.ip().to_string()).unwrap_or_default();
    NetLane {
        from,
        to,
        streams: measured.streams,
        bytes_per_s,
        why,
        halves: bytes_per_s.and_then(|_| halves(&arrived)),
        from_address: text(from_at),
        to_address: text(to_at),
        from_interface: interface(from, from_at),
        to_interface: interface(to, to_at),
        framing,
        path_mtu_bytes: last.and_then(|f| f.path_mtu_bytes),
        congestion_control: senders.first().map(|s| s.congestion_control.clone()).unwrap_or_default(),
        retransmitted_share: share(grown(|f| f.retransmitted_bytes), grown(|f| f.sent_bytes)),
        receiver_limited_share: share(grown(|f| f.receiver_limited_us), busy_us),
        send_buffer_limited_share: share(grown(|f| f.send_buffer_limited_us), busy_us),
        busy_share: share(busy_us, Some(watched_us)).map(|s| s.min(1.0)),
        sender_thread: busiest_thread(&senders),
        receiver_thread: busiest_thread(&receivers),
        idle: pings.and_then(idle),
        loaded: pings.and_then(loaded),
        limited_by: Vec::new(),
        slices: receivers.iter().map(|s| s.slices.clone()).collect(),
        tcp: senders.iter().map(|s| s.tcp.iter().map(|(at, f)| (*at as f64 / 1e9, *f)).collect()).collect(),
    }
}

fn watched_ns(tcp: &[(u64, TcpFacts)], order: &RunOrder) -> u64 {
    let first = tcp.iter().map(|t| t.0).find(|at| *at >= order.warmup_ns);
    first.zip(tcp.last()).map_or(0, |(first, last)| last.0 - first)
}

fn busiest_thread(ends: &[&StreamTold]) -> Option<f64> {
    ends.iter().filter_map(|s| s.thread_share).reduce(f64::max)
}

fn idle(p: &PingRecord) -> Option<RoundTrips> {
    Some(RoundTrips { left_out: p.left_out[0], ..round_trips(&p.idle_us)? })
}

fn loaded(p: &PingRecord) -> Option<RoundTrips> {
    Some(RoundTrips { left_out: p.left_out[1], unanswered: p.unanswered, ..round_trips(&p.loaded_us)? })
}

fn round_trips(us: &[u32]) -> Option<RoundTrips> {
    let mut sorted = us.to_vec();
    sorted.sort_unstable();
    let at = |q: f64| sorted[((sorted.len() as f64 * q).ceil() as usize).clamp(1, sorted.len()) - 1];
    let max_us = *sorted.last()?;
    Some(RoundTrips {
        count: us.len() as u64,
        p50_us: at(0.5),
        p99_us: at(0.99),
        max_us,
        unanswered: 0,
        left_out: 0,
    })
}

/// What each host did.
fn host_loads(measured: &Measured) -> Vec<HostLoad> {
    let of = |(host, node): (&usize, &NodeRecord)| {
        let (out, into) = (measured.of_host(*host, true), measured.of_host(*host, false));
        let gib = (out.iter().sum::<f64>() + into.iter().sum::<f64>()) / GIB;
        let (before, after) = (&node.before, &node.after);
        let cores: Vec<[f64; 4]> = before.cores.iter().zip(&after.cores).map(|(b, a)| grown(b, a)).collect();
        let busy_s = cores.iter().map(|c| c[0]).sum::<f64>() / TICKS_PER_S;
        let all: f64 = cores.iter().map(|c| c[2]).sum();
        let part = |c: &[f64; 4], i: usize| if c[2] > 0.0 { c[i] / c[2] } else { 0.0 };
        let packets = packet_core(cores.iter().map(|c| (part(c, 0), part(c, 3))));
        let window_s = after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        HostLoad {
            host: *host,
            out_bytes_per_s: estimate(&out).0,
            in_bytes_per_s: estimate(&into).0,
            cpu_s_per_gib: (gib > 0.0).then(|| (after.process_s - before.process_s) / gib),
            machine_cpu_s_per_gib: (gib > 0.0).then(|| busy_s / gib),
            busiest_core: cores.iter().map(|c| part(c, 0)).reduce(f64::max),
            busiest_softirq: cores.iter().map(|c| part(c, 3)).reduce(f64::max),
            packet_core_busy: packets.map(|c| c.0),
            packet_core_softirq: packets.map(|c| c.1),
            process_cores: (window_s > 0.0).then(|| (after.process_s - before.process_s) / window_s),
            stolen_share: (all > 0.0).then(|| cores.iter().map(|c| c[1]).sum::<f64>() / all),
            softnet_dropped: after.softnet[0].saturating_sub(before.softnet[0]),
            softnet_squeezed: after.softnet[1].saturating_sub(before.softnet[1]),
            interfaces: interface_loads(before, after),
        }
    };
    measured.nodes.iter().map(of).collect()
}

/// Of cores, each with the part of its time that it was busy and that it spent on packets: the one that may have bound a rate. Both
/// figures are of one core: that another one is full says nothing of it.
fn packet_core(cores: impl Iterator<Item = (f64, f64)>) -> Option<(f64, f64)> {
    let is_full = |c: (f64, f64)| c.0 >= CORE_FULL && c.1 >= MOSTLY;
    let rank = |c: (f64, f64)| (is_full(c), c.1);
    cores.reduce(|a, b| if rank(b) > rank(a) { b } else { a })
}

/// USER_HZ, which is 100 on every platform that we run on.
const TICKS_PER_S: f64 = 100.0;

fn grown(before: &[u64; 4], after: &[u64; 4]) -> [f64; 4] {
    [0, 1, 2, 3].map(|i| after[i].saturating_sub(before[i]) as f64)
}

fn interface_loads(before: &HostCounters, after: &HostCounters) -> Vec<InterfaceLoad> {
    let s = after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
    let one = |(name, a): (&String, &[u64; 4])| {
        let b = before.interfaces.get(name)?;
        let grown = |i: usize| a[i].saturating_sub(b[i]);
        (s > 0.0 && grown(0) + grown(1) > 0).then(|| InterfaceLoad {
            name: name.clone(),
            received_bytes_per_s: grown(0) as f64 / s,
            sent_bytes_per_s: grown(1) as f64 / s,
            dropped: grown(2),
            errors: grown(3),
        })
    };
    after.interfaces.iter().filter_map(one).collect()
}

/// What is said of the whole: findings, sentences, and whether it holds.
pub fn conclude(record: &mut NetRecord) {
    let mut findings = std::mem::take(&mut record.findings);
    for stage in &record.stages {
        if let Some(why) = &stage.why {
            findings.push(Finding::new("N02", "no_rate", Level::Invalid, format!("{}: {why}.", stage.title)));
        }
        for load in &stage.hosts {
            let name = record.name_of(load.host);
            if let Some(stolen) = load.stolen_share.filter(|s| *s > STOLEN) {
                let text = format!(
                    "{}: the hypervisor took {:.0} % of the CPU time of {name}: the network may carry more.",
                    stage.title,
                    100.0 * stolen
                );
                findings
                    .push(Finding::new("N03", "cpu_stolen", Level::Qualified, text).measured(stolen, STOLEN));
            }
            if load.softnet_dropped > 0 {
                let text = format!(
                    "{}: {name} dropped {} packets before it looked at them (softnet): net.core.netdev_max_backlog is too small, or a core is full.",
                    stage.title, load.softnet_dropped
                );
                findings.push(Finding::new("N04", "softnet_dropped", Level::Qualified, text));
            }
            let errors: u64 = load.interfaces.iter().map(|i| i.errors).sum();
            if errors > 0 {
                let text = format!(
                    "{}: the interfaces of {name} counted {errors} errors: look at cables and optics.",
                    stage.title
                );
                findings.push(Finding::new("N05", "interface_errors", Level::Qualified, text));
            }
        }
        findings.extend(wide(record, stage));
        let cpu_bound =
            stage.lanes.iter().filter(|l| l.limited_by.iter().any(|x| x.kind.ends_with("_cpu"))).count();
        if cpu_bound > 0 {
            let text = format!(
                "{}: {cpu_bound} of {} lanes were bound by a CPU: the network may carry more.",
                stage.title,
                stage.lanes.len()
            );
            findings.push(Finding::new("N06", "cpu_bound", Level::Qualified, text));
        }
        let cut = stage.lanes.iter().filter_map(|l| {
            let left_out = l.idle.map_or(0, |r| r.left_out) + l.loaded.map_or(0, |r| r.left_out);
            (left_out > 0).then_some((l, left_out))
        });
        for (lane, left_out) in cut {
            let text = format!(
                "{}: of the round trips of {} to {} the first {} are kept; {left_out} later ones are not in the figures.",
                stage.title,
                record.name_of(lane.from),
                record.name_of(lane.to),
                crate::ping::KEPT
            );
            findings.push(Finding::new("N09", "round_trips_cut", Level::Info, text));
        }
        findings.extend(unsteady(record, stage));
    }
    let boots: Vec<&str> = record.hosts.iter().map(|h| h.boot_id.as_str()).collect();
    let shared = (1..boots.len()).find(|i| !boots[*i].is_empty() && boots[..*i].contains(&boots[*i]));
    if let Some(i) = shared {
        let text = format!(
            "{} is on the same machine as another host of this test: what lies between them is that machine, not a network.",
            record.name_of(i)
        );
        findings.push(Finding::new("N08", "same_machine", Level::Qualified, text));
    }
    record.findings = findings;
    record.valid = !record.stages.is_empty() && record.findings.iter().all(|f| f.level != Level::Invalid);
    // What was not done may have shown another rate: nothing is held against a part of a test.
    record.valid &= !record.interrupted;
    record.sentences = crate::words::sentences(record);
}

/// Lanes whose rate is hardly known: too short a time, or a machine that others use.
fn wide(record: &NetRecord, stage: &NetStage) -> Option<Finding> {
    let widths = stage.lanes.iter().filter_map(|l| Some((l, l.bytes_per_s?.relative_half_width())));
    let wide: Vec<_> = widths.filter(|(_, w)| *w > WIDE).collect();
    let (worst, width) = wide.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let level = if *width >= 1.0 { Level::Invalid } else { Level::Qualified };
    let text = format!(
        "{}: the rate of {} of {} lanes is known to no better than \u{b1}{:.0} % ({} to {}: \u{b1}{:.0} %): measure for longer \
         (--duration), on machines that nobody else uses.",
        stage.title,
        wide.len(),
        stage.lanes.len(),
        100.0 * WIDE,
        record.name_of(worst.from),
        record.name_of(worst.to),
        100.0 * width
    );
    Some(Finding::new("N11", "hardly_known", level, text).measured(*width, WIDE))
}

/// A rate that fell and stayed down, with its time; else one that moved all the same.
fn unsteady(record: &NetRecord, stage: &NetStage) -> Vec<Finding> {
    let told = |f: &NetFall| {
        let what = match (f.host.map(|h| record.name_of(h)), f.sends) {
            (None, _) => "the rate".to_owned(),
            (Some(host), true) => format!("what {host} sent"),
            (Some(host), false) => format!("what {host} took in"),
        };
        let into_test =
            stage.started_s.map_or(String::new(), |s| format!(" ({:.1} s into the test)", s + f.at_s));
        let text = format!(
            "{}: {what} fell from {:.3} to {:.3} Gbit/s {:.1} s after the stage's start{into_test}, and stayed there for the {:.1} s that \
             were left, as where a cloud's NIC has spent its credits, or others came to the path: what it carries for long is the \
             lower one.",
            stage.title,
            f.before_bytes_per_s * 8e-9,
            f.after_bytes_per_s * 8e-9,
            f.at_s,
            f.lasts_s
        );
        let kept = f.after_bytes_per_s / f.before_bytes_per_s;
        Finding::new("N10", "fell_and_stayed", Level::Qualified, text).measured(kept, 1.0 - fall::LEAST)
    };
    if !stage.falls.is_empty() {
        return stage.falls.iter().map(told).collect();
    }
    let moved = plimsoll_stats::steady::moves(&totals(stage, record.asked.warmup_s), SLICE_S);
    let told = |(how, by): (&str, f64)| {
        let text = format!(
            "{}: the rate {how} by {:.0} % within the window: credits of a cloud's NIC, or others on the path.",
            stage.title,
            100.0 * by.abs()
        );
        Finding::new("N07", "not_steady", Level::Qualified, text)
    };
    moved.map(told).into_iter().collect()
}

/// All lanes of a stage together, slice by slice, of the window.
fn totals(stage: &NetStage, warmup_s: f64) -> Vec<f64> {
    let from = (warmup_s / SLICE_S).round() as usize;
    let streams = stage.lanes.iter().flat_map(|l| &l.slices);
    let of = |s: &Vec<u64>| s.iter().skip(from).map(|b| *b as f64).collect::<Vec<_>>();
    sum(streams.map(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(at_s: u64, rwnd: u64, again: u64) -> (u64, TcpFacts) {
        let f = TcpFacts {
            has_timestamps: Some(true),
            mss_bytes: Some(1448),
            busy_us: Some(at_s * 1_000_000),
            receiver_limited_us: Some(at_s * rwnd),
            send_buffer_limited_us: Some(0),
            sent_bytes: Some(at_s * 50_000_000),
            retransmitted_bytes: Some(at_s * again),
            ..TcpFacts::default()
        };
        (at_s * 1_000_000_000, f)
    }

    /// One lane of one stream: 5 MB in each slice, 1 s of warm-up, 3 s measured.
    fn measured(rwnd: u64, again: u64, core: u64) -> Measured {
        let stream = |sends| StreamTold {
            sends,
            slices: vec![5_000_000; 40],
            tcp: if sends { (0..=4).map(|s| facts(s, rwnd, again)).collect() } else { vec![] },
            local: if sends { "10.0.0.1:5" } else { "[::ffff:10.0.0.2]:6" }.into(),
            ..StreamTold::default()
        };
        let after = HostCounters {
            cores: vec![[core, 0, 100, core / 2 + 5]],
            at_ns: 3_000_000_000,
            process_s: 1.0,
            ..HostCounters::default()
        };
        let before = HostCounters { cores: vec![[0; 4]], ..HostCounters::default() };
        let pings =
            vec![PingRecord { idle_us: vec![100; 9], loaded_us: vec![2000; 99], ..PingRecord::default() }];
        let node = |sends| NodeRecord {
            streams: vec![stream(sends)],
            pings: if sends { pings.clone() } else { vec![] },
            before: before.clone(),
            after: after.clone(),
            ..NodeRecord::default()
        };
        Measured {
            lanes: vec![(0, 1)],
            nodes: [(0, node(true)), (1, node(false))].into(),
            at_ns: 0,
            warmup_ns: 1_000_000_000,
            measured_ns: 3_000_000_000,
            streams: 1,
        }
    }

    fn hosts() -> Vec<NetHost> {
        ["a", "b"].map(|n| NetHost { name: n.into(), boot_id: n.into(), ..NetHost::default() }).into()
    }

    fn planned() -> PlannedStage {
        PlannedStage { pattern: "pairs", title: "a to b".into(), lanes: vec![(0, 1)] }
    }

    fn kind(m: &Measured, cap: Option<f64>) -> String {
        stage(&planned(), m, &hosts(), cap).lanes[0].limited_by[0].kind.clone()
    }

    #[test]
    fn a_lane_has_its_rate_its_framing_and_its_round_trips() {
        let stage = stage(&planned(), &measured(0, 50_000, 10), &hosts(), None);
        let lane = &stage.lanes[0];
        let rate = lane.bytes_per_s.unwrap();
        assert_eq!((rate.value, rate.low, rate.high), (50e6, 50e6, 50e6));
        assert_eq!(lane.framing.unwrap().formula(), "1448/1514 = 95.6 %");
        assert_eq!((lane.idle.unwrap().p50_us, lane.loaded.unwrap().p99_us), (100, 2000));
        assert!((lane.retransmitted_share.unwrap() - 0.001).abs() < 1e-9);
        assert_eq!((lane.from_address.as_str(), lane.to_address.as_str()), ("10.0.0.1", "10.0.0.2"));
        assert_eq!(stage.bytes_per_s.unwrap().value, 50e6);
        assert_eq!(stage.hosts[1].in_bytes_per_s.unwrap().value, 50e6);
        assert!(stage.hosts[1].out_bytes_per_s.is_none());
    }

    #[test]
    fn what_bound_it_is_what_the_data_says() {
        assert_eq!(kind(&measured(0, 0, 10), None), "path");
        assert_eq!(kind(&measured(0, 500_000, 10), None), "loss");
        assert_eq!(kind(&measured(700_000, 0, 10), None), "receiver_window");
        assert_eq!(kind(&measured(0, 0, 95), None), "sender_cpu");
        assert_eq!(kind(&measured(0, 0, 85), None), "inconclusive");
        assert_eq!(kind(&measured(0, 0, 10), Some(0.41)), "cap");
        assert_eq!(kind(&measured(0, 0, 10), Some(1.0)), "path");
    }

    /// 3 s of one core for this process, and one more core which another program keeps full.
    fn beside_another() -> Measured {
        let mut m = measured(0, 0, 10);
        for node in m.nodes.values_mut() {
            node.before.cores = vec![[0; 4]; 2];
            node.after.cores = vec![[60, 0, 100, 10], [100, 0, 100, 0]];
            node.after.process_s = 3.0;
        }
        m
    }

    #[test]
    fn a_core_that_others_keep_full_is_not_what_bound_it() {
        assert_eq!(kind(&beside_another(), None), "inconclusive");
        let mut kernel = beside_another();
        kernel.nodes.get_mut(&1).unwrap().after.cores[0] = [95, 0, 100, 60];
        assert_eq!(kind(&kernel, None), "receiver_cpu");
    }

    #[test]
    fn a_full_thread_of_ours_bounds_it_on_whatever_cores_it_ran() {
        let mut m = measured(0, 0, 45);
        m.nodes.get_mut(&1).unwrap().streams[0].thread_share = Some(0.97);
        let stage = stage(&planned(), &m, &hosts(), None);
        let limit = &stage.lanes[0].limited_by[0];
        assert!(limit.kind == "receiver_cpu" && limit.text.contains("97 %"), "{limit:?}");
        assert_eq!(stage.lanes[0].receiver_thread, Some(0.97));
    }

    /// A host of two NICs of 1000 Mbit/s, or two on one machine of one NIC: a lane of 600 Mbit/s from each address.
    fn two_lanes(same_nic: bool) -> Vec<Vec<plimsoll_model::net::NetLimit>> {
        let nic = |name: &str, address: &str| plimsoll_model::net::NetInterface {
            name: name.into(),
            address: address.into(),
            speed_mbit_per_s: Some(1000),
            ..Default::default()
        };
        let second = if same_nic { "eth0" } else { "eth1" };
        let host = |boot: &str, interfaces| NetHost {
            name: boot.into(),
            boot_id: boot.into(),
            interfaces,
            ..NetHost::default()
        };
        let own = vec![nic("eth0", "10.0.0.1"), nic(second, "10.0.1.1")];
        let other = |at: &str| vec![nic("eth0", at)];
        let hosts = [
            host("a", own.clone()),
            host("b", other("10.0.0.2")),
            host("c", other("10.0.1.2")),
            host("a", own),
        ];
        let mut m = measured(0, 0, 10);
        // The second agent of the machine sends the second lane.
        let from = if same_nic { 3 } else { 0 };
        m.lanes = vec![(0, 1), (from, 2)];
        let of = |lane: u32, sends: bool, at: &str, m: &Measured| {
            let mut node = m.nodes[&usize::from(!sends)].clone();
            node.streams[0].lane = lane;
            node.streams[0].local = at.into();
            node.streams[0].slices = vec![7_500_000; 40];
            node
        };
        let (first, second) = (of(0, true, "10.0.0.1:5", &m), of(1, true, "10.0.1.1:5", &m));
        let (b, c) = (of(0, false, "10.0.0.2:6", &m), of(1, false, "10.0.1.2:6", &m));
        m.nodes = [(0, first), (1, b), (2, c)].into();
        if same_nic {
            m.nodes.insert(3, second);
        } else {
            m.nodes.get_mut(&0).unwrap().streams.extend(second.streams);
        }
        let planned = PlannedStage { pattern: "out", title: String::new(), lanes: m.lanes.clone() };
        stage(&planned, &m, &hosts, None).lanes.into_iter().map(|l| l.limited_by).collect()
    }

    #[test]
    fn a_link_is_full_of_what_goes_through_that_interface() {
        for limits in two_lanes(false) {
            assert_eq!(limits[0].kind, "path", "64 % of each of two NICs: {limits:?}");
        }
        for limits in two_lanes(true) {
            assert!(limits[0].kind == "link" && limits[0].text.contains("127 %"), "{limits:?}");
        }
    }

    #[test]
    fn a_lane_at_its_part_of_the_cap_is_capped_whatever_the_others_do() {
        let mut m = measured(0, 0, 10);
        m.lanes = vec![(0, 1), (0, 2)];
        let mut second = m.nodes[&1].clone();
        second.streams[0].lane = 1;
        second.streams[0].slices = vec![1_000_000; 40];
        m.nodes.insert(2, second);
        let sent = StreamTold { lane: 1, ..m.nodes[&0].streams[0].clone() };
        m.nodes.get_mut(&0).unwrap().streams.push(sent);
        let hosts =
            ["a", "b", "c"].map(|n| NetHost { name: n.into(), boot_id: n.into(), ..NetHost::default() });
        let planned = PlannedStage { pattern: "out", title: String::new(), lanes: m.lanes.clone() };
        let kinds = |cap| {
            stage(&planned, &m, &hosts, cap)
                .lanes
                .iter()
                .map(|l| l.limited_by[0].kind.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(kinds(Some(0.82)), ["cap", "path"]);
    }

    /// Two hosts send to a third; the second one's rate falls to a third of it 20 s into the window of 40 s.
    #[test]
    fn credits_that_run_out_are_named_with_host_and_time() {
        let mut m = measured(0, 0, 10);
        m.measured_ns = 40_000_000_000;
        m.lanes = vec![(0, 2), (1, 2)];
        let noise = |i: u64| (i * 2654435761) % 97 * 1000;
        let slices = |lane: u32| {
            (0..410)
                .map(move |i| if lane == 1 && i >= 210 { 1_500_000 + noise(i) } else { 4_500_000 + noise(i) })
        };
        let of = |lane: u32, sends: bool| {
            let mut stream = m.nodes[&usize::from(!sends)].streams[0].clone();
            stream.lane = lane;
            stream.slices = slices(lane).collect();
            stream
        };
        let mut taker = m.nodes[&1].clone();
        taker.streams = vec![of(0, false), of(1, false)];
        let sender = |lane| NodeRecord { streams: vec![of(lane, true)], ..m.nodes[&0].clone() };
        m.nodes = [(0, sender(0)), (1, sender(1)), (2, taker)].into();
        let hosts: Vec<NetHost> = ["a", "b", "c"]
            .map(|n| NetHost { name: n.into(), boot_id: n.into(), ..NetHost::default() })
            .into();
        let planned = PlannedStage { pattern: "in", title: "all to c".into(), lanes: m.lanes.clone() };
        let mut record = crate::new_record("net-1".into(), "1", "", String::new());
        record.asked.warmup_s = 1.0;
        record.hosts = hosts.clone();
        record.stages = vec![stage(&planned, &m, &hosts, None)];
        record.stages[0].started_s = Some(100.0);
        conclude(&mut record);
        let f = record.findings.iter().find(|f| f.code == "N10").unwrap();
        assert!(f.text.contains("the rate fell from 0.72") && f.text.contains(" to 0.48"), "{}", f.text);
        assert!(f.text.contains("Gbit/s 21.") && f.text.contains("(121."), "{}", f.text);
        assert!(record.findings.iter().all(|f| f.code != "N07") && record.valid);
        let [first, second] = record.stages[0].lanes[1].halves.unwrap();
        assert!(second.value < 0.4 * first.value);

        // Where the others fill what it leaves, it is what that one host sent.
        let taken: Vec<u64> =
            slices(0).zip(slices(1)).map(|(a, b)| 9_000_000 + a % 97_000 - b.min(4_500_000)).collect();
        for (host, at) in [(0, 0), (2, 0)] {
            m.nodes.get_mut(&host).unwrap().streams[at].slices = taken.clone();
        }
        let stage = stage(&planned, &m, &hosts, None);
        let [fall] = &stage.falls[..] else { panic!("{:?}", stage.falls) };
        assert!(fall.host == Some(1) && fall.sends && (fall.at_s - 21.0).abs() < 0.6, "{fall:?}");
    }

    #[test]
    fn an_interrupted_test_is_not_valid() {
        let mut record = crate::new_record("net-1".into(), "1", "", String::new());
        record.hosts = hosts();
        record.stages = vec![stage(&planned(), &measured(0, 0, 10), &hosts(), None)];
        conclude(&mut record);
        assert!(record.valid);
        record.interrupted = true;
        conclude(&mut record);
        assert!(!record.valid);
    }

    #[test]
    fn what_ended_early_came_late_or_is_not_told_has_no_rate() {
        let why = |change: &dyn Fn(&mut Measured)| {
            let mut m = measured(0, 0, 10);
            change(&mut m);
            let stage = stage(&planned(), &m, &hosts(), None);
            assert!(stage.bytes_per_s.is_none() && stage.lanes[0].limited_by.is_empty());
            stage.why.unwrap()
        };
        let ended =
            why(&|m| m.nodes.get_mut(&1).unwrap().streams[0].ended = Some((1_500_000_000, "reset".into())));
        assert!(ended.contains("1.5 s after the start at b: reset"), "{ended}");
        assert!(
            why(&|m| m.nodes.get_mut(&0).unwrap().late_ns = 2_000_000_000).contains("a began 2.0 s late")
        );
        assert!(why(&|m| drop(m.nodes.remove(&1))).contains("b told of 0 of 1 streams"));
    }

    #[test]
    fn round_trips_are_ranked() {
        let all: Vec<u32> = (1..=200).rev().collect();
        let r = round_trips(&all).unwrap();
        assert_eq!((r.count, r.p50_us, r.p99_us, r.max_us), (200, 100, 198, 200));
        assert!(round_trips(&[]).is_none());
    }
}
