//! A test from its first order to its record: stage after stage, on hosts that are reached in whatever way.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use plimsoll_model::count::counted;
use plimsoll_model::net::{NET_FORMAT, NetAsked, NetHost, NetRecord, NetStage, StreamsTried};
use plimsoll_model::{Finding, Level};

use crate::conclude::conclude;
use crate::error::NetError;
use crate::host::now_ns;
use crate::judge::{self, Measured};
use crate::pattern::{NetPattern, PlannedStage, part_of_cap, stages};
use crate::secret::NetKey;
use crate::wire::{DialOrder, LaneOrder, MOST_STREAMS, NetAnswer, NetOrder, NodeRecord, RunOrder, SLICE_NS};

/// Streams that are tried, one after the other.
const TRIED: [u16; 5] = [1, 2, 4, 8, 16];
/// More streams have to bring so much more.
const LEAST_GAIN: f64 = 0.02;
/// Each of these is measured so long, after so long.
const TRY_WARMUP: Duration = Duration::from_millis(500);
/// See [`TRY_WARMUP`].
const TRY: Duration = Duration::from_millis(1500);
/// Between the order and the start, in which the idle round trips are taken; and for each lane more.
const AHEAD_NS: u64 = 1_000_000_000;
/// See [`AHEAD_NS`].
const AHEAD_EACH_NS: u64 = 2_000_000;

/// The hosts of a test, however they are reached.
pub trait NetHosts {
    /// In order of their numbers.
    fn names(&self) -> Vec<String>;
    /// Orders something of some of them, at the same time, and waits for all.
    fn ask(&mut self, orders: Vec<(usize, NetOrder)>) -> Result<Vec<(usize, NetAnswer)>, NetError>;
    /// What a host's monotonic clock is ahead of this machine's.
    fn ahead_ns(&self, host: usize) -> i128;
    /// Which of two opens the connections.
    fn dialler(&self, from: usize, to: usize) -> usize;
    /// Where the one who opens them reaches the one who waits, on a port of its own where it has one.
    fn places(&self, dialler: usize, waiter: usize, port: Option<u16>) -> (Vec<IpAddr>, u16);
    /// A person ended it.
    fn is_interrupted(&self) -> bool;
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct NetWish {
    /// In the order in which they are done.
    pub patterns: Vec<NetPattern>,
    /// Of each lane; absent: found.
    pub streams: Option<u16>,
    /// Of each stage: before what counts.
    pub warmup: Duration,
    /// And what counts.
    pub measured: Duration,
    /// No host sends or receives more.
    pub max_gbps: Option<f64>,
    /// Of what is drawn.
    pub seed: u64,
    /// Who stores, of the hosts; the others generate load.
    pub servers: Vec<usize>,
    /// How the hosts were marked, by host.
    pub labels: Vec<Vec<(String, String)>>,
}

/// Shorter than this no rate can be told from few slices.
pub const SHORTEST: Duration = Duration::from_secs(1);

impl NetWish {
    /// In words, what cannot be.
    pub fn check(&self) -> Result<(), NetError> {
        if self.measured < SHORTEST || self.measured > Duration::from_secs(3000) {
            return Err(NetError::input("--duration is between 1s and 50min", "10s is usual"));
        }
        if self.streams.is_some_and(|n| n == 0 || n > MOST_STREAMS) {
            return Err(NetError::input(
                format!("--streams is between 1 and {MOST_STREAMS}"),
                "Or leave it out: auto",
            ));
        }
        if self.max_gbps.is_some_and(|x| !(x.is_finite() && x > 0.0)) {
            return Err(NetError::input("--max-gbps is a number above 0", "For example --max-gbps 2.5"));
        }
        Ok(())
    }

    fn planned(&self, names: &[String]) -> Vec<PlannedStage> {
        self.patterns.iter().flat_map(|p| stages(*p, names, &self.servers, self.seed)).collect()
    }

    /// How long it takes, about: the stages, and between them.
    fn length(&self, stages: usize) -> Duration {
        let found = if self.streams.is_none() {
            (TRY_WARMUP + TRY + Duration::from_millis(1500)) * 3
        } else {
            Duration::ZERO
        };
        (self.warmup + self.measured + Duration::from_millis(1500)) * stages as u32 + found
    }
}

/// Says beforehand what the test will load, and how long.
fn announce(wish: &NetWish, hosts: &[NetHost], planned: &[PlannedStage]) -> String {
    let most_lanes = planned.iter().map(|s| s.lanes.len()).max().unwrap_or(0);
    let line = |h: &NetHost| h.interfaces.iter().filter_map(|i| i.speed_mbit_per_s).max();
    let senders =
        |s: &PlannedStage| s.lanes.iter().map(|l| l.0).collect::<std::collections::BTreeSet<_>>().len();
    let most_senders = planned.iter().map(senders).max().unwrap_or(0);
    let peak = match wish.max_gbps {
        Some(cap) => format!(
            "up to {:.3} Gbit/s (no host sends or receives more than {cap} Gbit/s)",
            cap * most_senders as f64
        ),
        None => {
            let speeds: Option<Vec<u64>> = hosts.iter().map(line).collect();
            match speeds {
                Some(speeds) => {
                    let mut speeds = speeds;
                    speeds.sort_unstable_by(|a, b| b.cmp(a));
                    let sum: u64 = speeds.iter().take(most_senders).sum();
                    format!(
                        "up to {:.1} Gbit/s, the speed of the links of {most_senders} senders",
                        sum as f64 / 1e3
                    )
                }
                None => {
                    "as much as the network carries (link speeds are not known; --max-gbps bounds it)".into()
                }
            }
        }
    };
    format!(
        "{}, {} of {:.0} s, about {:.0} s in all; peak load: {peak}, in {most_lanes} lane{} at the same time",
        counted(hosts.len(), "host"),
        counted(planned.len(), "stage"),
        wish.measured.as_secs_f64(),
        wish.length(planned.len()).as_secs_f64(),
        if most_lanes == 1 { "" } else { "s" }
    )
}

/// A whole test. An error where nothing was measured; else a record, with what went wrong among its findings.
pub fn conduct(
    hosts: &mut dyn NetHosts,
    wish: &NetWish,
    mut record: NetRecord,
    tell: &mut dyn FnMut(String),
) -> Result<NetRecord, NetError> {
    wish.check()?;
    let names = hosts.names();
    let planned = wish.planned(&names);
    if planned.is_empty() {
        return Err(NetError::input(
            format!("{} cannot make these patterns", counted(names.len(), "host")),
            "in, out and all-to-all need three hosts, bisection four, storage and east-west agents with --role server",
        ));
    }
    record.format = NET_FORMAT.into();
    record.hosts = describe(hosts, wish)?;
    tell(announce(wish, &record.hosts, &planned));
    let mut streams = wish.streams.unwrap_or(1);
    let came = (|| {
        if wish.streams.is_none() {
            (streams, record.streams_tried) = find_streams(hosts, wish, planned[0].lanes[0], tell)?;
        }
        let mut first_ns = None;
        for (number, stage) in planned.iter().enumerate() {
            tell(format!("{} of {}: {}", number + 1, planned.len(), stage.title));
            let measured = once(hosts, stage, streams, (wish.warmup, wish.measured), wish.max_gbps)?;
            let mut judged = judge::stage(stage, &measured, &record.hosts, wish.max_gbps);
            judged.started_s = Some((measured.at_ns - *first_ns.get_or_insert(measured.at_ns)) as f64 / 1e9);
            record.stages.push(judged);
        }
        Ok(())
    })();
    record.asked = NetAsked {
        patterns: wish.patterns.iter().map(|p| p.name().to_owned()).collect(),
        streams,
        streams_found: wish.streams.is_none(),
        warmup_s: wish.warmup.as_secs_f64(),
        measured_s: wish.measured.as_secs_f64(),
        max_gbps: wish.max_gbps,
        seed: wish.seed,
        asked_by: record.asked.asked_by,
    };
    match came {
        Err(e) if record.stages.is_empty() => return Err(e),
        Err(NetError::Interrupted) => record.interrupted = true,
        Err(e) => {
            let text = format!(
                "The test ended before its time, after {} of {} stages: {e}",
                record.stages.len(),
                planned.len()
            );
            record.findings.push(Finding::new("N01", "ended_early", Level::Invalid, text));
        }
        Ok(()) => {}
    }
    conclude(&mut record);
    Ok(record)
}

fn describe(hosts: &mut dyn NetHosts, wish: &NetWish) -> Result<Vec<NetHost>, NetError> {
    let names = hosts.names();
    let answers = hosts.ask((0..names.len()).map(|i| (i, NetOrder::Describe)).collect())?;
    let mut out: Vec<NetHost> =
        names.iter().map(|name| NetHost { name: name.clone(), ..NetHost::default() }).collect();
    for (number, answer) in answers {
        match answer {
            NetAnswer::Described { host, .. } => {
                out[number] = NetHost { name: names[number].clone(), ..*host }
            }
            other => return Err(unlike(&names[number], other)),
        }
    }
    for (number, host) in out.iter_mut().enumerate() {
        host.labels = wish.labels.get(number).cloned().unwrap_or_default();
        host.role = if wish.servers.is_empty() {
            String::new()
        } else {
            (if wish.servers.contains(&number) { "server" } else { "client" }).into()
        };
    }
    Ok(out)
}

/// What a host answered instead of what was asked.
fn unlike(name: &str, answer: NetAnswer) -> NetError {
    match answer {
        NetAnswer::Refused { problem, remedy } => NetError::input(format!("{name}: {problem}"), remedy),
        _ => NetError::input(
            format!("{name} answers something else than what was asked"),
            "Use the same version on all machines",
        ),
    }
}

/// Twice as many streams, until they bring no more.
fn find_streams(
    hosts: &mut dyn NetHosts,
    wish: &NetWish,
    lane: (usize, usize),
    tell: &mut dyn FnMut(String),
) -> Result<(u16, Vec<StreamsTried>), NetError> {
    let names = hosts.names();
    tell(format!("streams: tried from {} to {}", names[lane.0], names[lane.1]));
    let stage = PlannedStage { pattern: "streams", title: String::new(), lanes: vec![lane] };
    let mut tried: Vec<StreamsTried> = Vec::new();
    for streams in TRIED {
        let measured = once(hosts, &stage, streams, (TRY_WARMUP, TRY), wish.max_gbps)?;
        let bytes_per_s = judge::plain_rate(&measured);
        let before = tried.last().copied();
        tried.push(StreamsTried { streams, bytes_per_s });
        if let Some(before) = before.filter(|b| bytes_per_s < b.bytes_per_s * (1.0 + LEAST_GAIN)) {
            return Ok((before.streams, tried));
        }
    }
    Ok((TRIED[TRIED.len() - 1], tried))
}

/// One stage: opened, connected, run, and closed.
fn once(
    hosts: &mut dyn NetHosts,
    stage: &PlannedStage,
    streams: u16,
    (warmup, measured): (Duration, Duration),
    max_gbps: Option<f64>,
) -> Result<Measured, NetError> {
    let came = open_and_run(hosts, stage, streams, (whole_slices(warmup), whole_slices(measured)), max_gbps);
    if came.is_ok() {
        let all = 0..hosts.names().len();
        let busy = all.filter(|h| stage.lanes.iter().any(|(a, b)| a == h || b == h));
        hosts.ask(busy.map(|h| (h, NetOrder::Close)).collect())?;
    }
    came
}

fn whole_slices(time: Duration) -> u64 {
    (time.as_nanos() as u64 / SLICE_NS).max(1) * SLICE_NS
}

/// What a lane may send, so that neither end has more than the cap over all its lanes of that direction.
fn most_of_lane(stage: &PlannedStage, lane: (usize, usize), max_gbps: Option<f64>) -> Option<u64> {
    max_gbps.map(|cap| (part_of_cap(&stage.lanes, lane, cap) * 1e9 / 8.0) as u64)
}

fn open_and_run(
    hosts: &mut dyn NetHosts,
    stage: &PlannedStage,
    streams: u16,
    (warmup_ns, measured_ns): (u64, u64),
    max_gbps: Option<f64>,
) -> Result<Measured, NetError> {
    let names = hosts.names();
    let mut opens: BTreeMap<usize, Vec<LaneOrder>> = BTreeMap::new();
    for (number, (from, to)) in stage.lanes.iter().enumerate() {
        let key = NetKey::random();
        let dialler = hosts.dialler(*from, *to);
        let most = most_of_lane(stage, (*from, *to), max_gbps);
        for host in [*from, *to] {
            opens.entry(host).or_default().push(LaneOrder {
                lane: number as u32,
                key: key.clone(),
                streams,
                sends: host == *from,
                dials: host == dialler,
                most_bytes_per_s: most,
            });
        }
    }
    let everyone: Vec<usize> = opens.keys().copied().collect();
    let answers = hosts.ask(opens.into_iter().map(|(h, lanes)| (h, NetOrder::Open { lanes })).collect())?;
    let mut ports = BTreeMap::new();
    for (host, answer) in answers {
        match answer {
            NetAnswer::Opened { port } => ports.insert(host, port),
            other => return Err(unlike(&names[host], other)),
        };
    }
    let mut dials: BTreeMap<usize, Vec<DialOrder>> = BTreeMap::new();
    for (number, (from, to)) in stage.lanes.iter().enumerate() {
        let dialler = hosts.dialler(*from, *to);
        let waiter = if dialler == *from { *to } else { *from };
        let (addresses, port) = hosts.places(dialler, waiter, ports.get(&waiter).copied().flatten());
        dials.entry(dialler).or_default().push(DialOrder { lane: number as u32, addresses, port });
    }
    for (host, answer) in
        hosts.ask(dials.into_iter().map(|(h, lanes)| (h, NetOrder::Dial { lanes })).collect())?
    {
        if answer != NetAnswer::Well {
            return Err(unlike(&names[host], answer));
        }
    }
    if hosts.is_interrupted() {
        return Err(NetError::Interrupted);
    }
    let at_ns = now_ns() + AHEAD_NS + AHEAD_EACH_NS * stage.lanes.len() as u64;
    let order = |host: usize| {
        let at_ns = u64::try_from(i128::from(at_ns) + hosts.ahead_ns(host)).unwrap_or(0);
        NetOrder::Run(RunOrder { at_ns, warmup_ns, measured_ns })
    };
    let orders = everyone.iter().map(|h| (*h, order(*h))).collect();
    let mut nodes: BTreeMap<usize, NodeRecord> = BTreeMap::new();
    for (host, answer) in hosts.ask(orders)? {
        match answer {
            NetAnswer::Ran(record) => nodes.insert(host, *record),
            other => return Err(unlike(&names[host], other)),
        };
    }
    if hosts.is_interrupted() {
        return Err(NetError::Interrupted);
    }
    Ok(Measured { lanes: stage.lanes.clone(), nodes, at_ns, warmup_ns, measured_ns, streams })
}

/// An empty record, of what is known before.
pub fn new_record(id: String, version: &str, commit: &str, made_at: String) -> NetRecord {
    NetRecord {
        format: NET_FORMAT.into(),
        id,
        plimsoll_version: version.into(),
        commit: commit.into(),
        made_at,
        asked: NetAsked::default(),
        hosts: Vec::new(),
        streams_tried: Vec::new(),
        stages: Vec::<NetStage>::new(),
        findings: Vec::new(),
        sentences: Vec::new(),
        valid: false,
        interrupted: false,
    }
}
