//! What bound a lane, with what was seen. Pure.

use plimsoll_model::net::{HostLoad, NetHost, NetLane, NetLimit};

use crate::pattern::part_of_cap;

/// From this part of the time on a core, or a thread, has nothing left. Guess: interrupts are not all counted.
pub const CORE_FULL: f64 = 0.9;
/// From this part on one that is below does not explain a rate. Guess.
const CORE_FREE: f64 = 0.8;
/// From this part of the busy time on a window or a buffer is what bound it: more than half of the time nothing else did. Of a core's time:
/// from here on most of it went to packets.
pub const MOSTLY: f64 = 0.5;
/// From this part of the link's speed after framing on the link is full. Guess: shapers and clocks differ by a few parts of 1,000.
const LINK_FULL: f64 = 0.95;
/// The same of a cap that was given.
const CAP_REACHED: f64 = 0.95;
/// Of sent bytes; beyond it loss is worth a word.
const LOSSY: f64 = 0.001;
/// Streams that have something to send for a smaller part of the time are held up by their own program.
const BUSY: f64 = 0.9;

/// All of a stage that a lane of it is judged by.
#[derive(Debug, Clone, Copy)]
pub struct BesideLane<'a> {
    /// All lanes, this one among them.
    pub lanes: &'a [NetLane],
    /// By host.
    pub loads: &'a [HostLoad],
    /// A lane names them by place.
    pub hosts: &'a [NetHost],
    /// Most that a host sends, and receives.
    pub max_gbps: Option<f64>,
}

/// One end of a lane.
#[derive(Debug, Clone, Copy)]
enum End {
    From,
    To,
}

impl End {
    fn of(self, lane: &NetLane) -> (usize, &str) {
        match self {
            Self::From => (lane.from, &lane.from_interface),
            Self::To => (lane.to, &lane.to_interface),
        }
    }
}

fn limit(kind: &str, text: String) -> NetLimit {
    NetLimit { kind: kind.into(), text }
}

impl BesideLane<'_> {
    fn name(&self, host: usize) -> &str {
        self.hosts.get(host).map_or("?", |h| h.name.as_str())
    }

    fn load(&self, host: usize) -> Option<&HostLoad> {
        self.loads.iter().find(|l| l.host == host)
    }

    fn busiest_core(&self, host: usize) -> f64 {
        self.load(host).and_then(|l| l.busiest_core).unwrap_or(0.0)
    }

    /// Two agents of one machine share its interfaces.
    fn is_one_machine(&self, a: usize, b: usize) -> bool {
        let boot = |host: usize| self.hosts.get(host).map_or("", |h| h.boot_id.as_str());
        a == b || !boot(a).is_empty() && boot(a) == boot(b)
    }

    fn cap(&self, lane: &NetLane, rate: f64) -> Option<NetLimit> {
        let cap = self.max_gbps?;
        let all: Vec<(usize, usize)> = self.lanes.iter().map(|l| (l.from, l.to)).collect();
        let (used, part) = (rate * 8e-9, part_of_cap(&all, (lane.from, lane.to), cap));
        (used >= part * CAP_REACHED).then(|| {
            limit(
                "cap",
                format!(
                    "--max-gbps {cap}: {used:.3} of the {part:.3} Gbit/s that it leaves this lane were used"
                ),
            )
        })
    }

    /// The interface at one end, where what all lanes have through it fills it.
    fn link(&self, lane: &NetLane, end: End) -> Option<NetLimit> {
        let (host, interface) = end.of(lane);
        let speed = self.hosts.get(host)?.interfaces.iter().find(|i| i.name == interface)?.speed_mbit_per_s?;
        let through = |l: &&NetLane| {
            let (other, its) = end.of(l);
            its == interface && self.is_one_machine(host, other)
        };
        let on_the_wire = |l: &NetLane| Some(l.bytes_per_s?.value * 8e-6 / l.framing?.line_share());
        let used = self.lanes.iter().filter(through).filter_map(on_the_wire).sum::<f64>() / speed as f64;
        let way = match end {
            End::From => "out of",
            End::To => "into",
        };
        (used >= LINK_FULL).then(|| {
            limit(
                "link",
                format!(
                    "the link {way} {} ({interface}, {speed} Mbit/s): {:.0} % of it after framing",
                    self.name(host),
                    100.0 * used
                ),
            )
        })
    }

    /// A thread of ours that had no time left, or one core that was full and mostly of packets. A core that others keep full is neither.
    fn cpu(&self, lane: &NetLane, end: End) -> Option<NetLimit> {
        let host = end.of(lane).0;
        let (kind, what, thread) = match end {
            End::From => ("sender_cpu", "sends", lane.sender_thread),
            End::To => ("receiver_cpu", "receives", lane.receiver_thread),
        };
        let core = self.load(host).and_then(|l| l.packet_core_busy.zip(l.packet_core_softirq));
        let of_thread = thread
            .filter(|t| *t >= CORE_FULL)
            .map(|t| format!("the busiest thread of this test took {:.0} % of a core", 100.0 * t));
        let of_core =
            core.filter(|(busy, softirq)| *busy >= CORE_FULL && *softirq >= MOSTLY).map(|(busy, softirq)| {
                format!(
                    "one core was busy {:.0} % of the time, with the kernel's work on packets {:.0} %",
                    100.0 * busy,
                    100.0 * softirq
                )
            });
        let evidence: Vec<String> = of_thread.into_iter().chain(of_core).collect();
        (!evidence.is_empty()).then(|| {
            limit(kind, format!("the CPU of {}, which {what}: {}", self.name(host), evidence.join("; ")))
        })
    }
}

/// What bound a lane, with what was seen.
pub fn limits(lane: &NetLane, seen: &BesideLane<'_>) -> Vec<NetLimit> {
    let Some(rate) = lane.bytes_per_s.map(|e| e.value) else { return Vec::new() };
    let ends = [End::From, End::To];
    let mut found: Vec<NetLimit> = seen.cap(lane, rate).into_iter().collect();
    found.extend(ends.iter().filter_map(|end| seen.link(lane, *end)));
    found.extend(ends.iter().filter_map(|end| seen.cpu(lane, *end)));
    let buffer = |host: usize, of: fn(&NetHost) -> &str| seen.hosts.get(host).map_or("", of);
    if let Some(share) = lane.receiver_limited_share.filter(|s| *s >= MOSTLY) {
        found.push(limit(
            "receiver_window",
            format!(
                "the receive window of {}: {:.0} % of the busy time (net.ipv4.tcp_rmem: {})",
                seen.name(lane.to),
                100.0 * share,
                buffer(lane.to, |h| &h.receive_buffer)
            ),
        ));
    }
    if let Some(share) = lane.send_buffer_limited_share.filter(|s| *s >= MOSTLY) {
        found.push(limit(
            "send_buffer",
            format!(
                "the send buffer of {}: {:.0} % of the busy time (net.ipv4.tcp_wmem: {})",
                seen.name(lane.from),
                100.0 * share,
                buffer(lane.from, |h| &h.send_buffer)
            ),
        ));
    }
    if found.is_empty() {
        found.push(path_or_nothing(lane, seen.busiest_core(lane.from).max(seen.busiest_core(lane.to))));
    }
    found
}

/// Where neither hosts nor windows explain a rate: the path, if the data says so.
fn path_or_nothing(lane: &NetLane, core: f64) -> NetLimit {
    let waits = lane.idle.zip(lane.loaded).map(|(idle, loaded)| {
        format!(
            "; the round trip of small messages is {} us without load, and {} us under it (median)",
            idle.p50_us, loaded.p50_us
        )
    });
    let lost =
        lane.retransmitted_share.map_or(String::new(), |s| format!("; {:.2} % were sent again", 100.0 * s));
    let evidence = format!("{}{lost}", waits.unwrap_or_default());
    match lane.busy_share {
        Some(busy) if busy >= BUSY && core < CORE_FREE => {
            let lossy = lane.retransmitted_share.is_some_and(|s| s > LOSSY);
            let (kind, what) = if lossy {
                ("loss", "loss on the path")
            } else {
                ("path", "the path (a link, shaper or switch on it)")
            };
            limit(
                kind,
                format!(
                    "{what}: data waited to be sent {:.0} % of the time, and neither window, buffer nor CPU (busiest core {:.0} %) held it back{evidence}",
                    100.0 * busy,
                    100.0 * core
                ),
            )
        }
        Some(busy) => limit(
            "inconclusive",
            format!(
                "not clear: data waited to be sent {:.0} % of the time, and the busiest core was busy {:.0} %, with other work or with this{evidence}",
                100.0 * busy,
                100.0 * core
            ),
        ),
        None => limit(
            "inconclusive",
            format!("not clear: this kernel does not tell why a connection waits{evidence}"),
        ),
    }
}
