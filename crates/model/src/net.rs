//! What the network between hosts carries: the record of a network test (`plimsoll net`), which later results can be held against.

use serde::{Deserialize, Serialize};

mod ceiling;

pub use ceiling::{CeilingRate, NetCeiling, NoCeiling};

use crate::estimate::Estimate;
use crate::finding::Finding;

/// Of the record; of another format it is not read.
pub const NET_FORMAT: &str = "plimsoll.net/1";
/// Bytes of an Ethernet frame's head, as a NIC and a shaper count it.
pub const FRAME_HEAD_BYTES: u32 = 14;
/// What a frame takes on the wire beyond that: check sum (4), preamble (8) and gap (12).
pub const FRAME_REST_BYTES: u32 = 24;
/// Of TCP's and IP's heads.
const TCP_HEAD_BYTES: u32 = 20;
const TIMESTAMP_BYTES: u32 = 12;

/// What the kernel knows of a connection; what an older one does not tell is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpFacts {
    /// Each segment carries timestamps (12 bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_timestamps: Option<bool>,
    /// The rate of delivery was bound by what the sender gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_is_app_limited: Option<bool>,
    /// Most payload of a segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u32>,
    /// Largest packet that the path takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_mtu_bytes: Option<u32>,
    /// Smoothed round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u32>,
    /// And how it varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_variation_us: Option<u32>,
    /// The least so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt_us: Option<u32>,
    /// Segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<u32>,
    /// Segments that were sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_retransmits: Option<u32>,
    /// Rate at which it is paced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_bytes_per_s: Option<u64>,
    /// Acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acked_bytes: Option<u64>,
    /// Received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// Segments sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments_out: Option<u32>,
    /// Rate of delivery that was seen last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_bytes_per_s: Option<u64>,
    /// Time with something to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_us: Option<u64>,
    /// Of that: bound by the receiver's window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_limited_us: Option<u64>,
    /// Of that: bound by the send buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer_limited_us: Option<u64>,
    /// Sent, what was sent again included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_bytes: Option<u64>,
}

/// How payload lies in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Framing {
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// The frame that carries it, with its Ethernet head, as a NIC and a shaper count it.
    pub frame_bytes: u32,
    /// The same with check sum, preamble and gap: its time on an Ethernet wire.
    pub wire_bytes: u32,
}

impl Framing {
    /// Of full segments. `is_v6`: the address that is used is one of IPv6.
    pub fn of(mss_bytes: u32, has_timestamps: bool, is_v6: bool) -> Self {
        let ip = if is_v6 { 40 } else { 20 };
        let options = if has_timestamps { TIMESTAMP_BYTES } else { 0 };
        let frame_bytes = mss_bytes + TCP_HEAD_BYTES + options + ip + FRAME_HEAD_BYTES;
        Self { mss_bytes, frame_bytes, wire_bytes: frame_bytes + FRAME_REST_BYTES }
    }

    /// Part of a frame that is payload: 1448/1514 for an MTU of 1500 with timestamps.
    pub fn payload_share(&self) -> f64 {
        f64::from(self.mss_bytes) / f64::from(self.frame_bytes)
    }

    /// Part of the time on an Ethernet wire that is payload: 1448/1538 there.
    pub fn line_share(&self) -> f64 {
        f64::from(self.mss_bytes) / f64::from(self.wire_bytes)
    }

    /// `1448/1514 = 95.6 %`.
    pub fn formula(&self) -> String {
        format!("{}/{} = {:.1} %", self.mss_bytes, self.frame_bytes, 100.0 * self.payload_share())
    }
}

/// The whole record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetRecord {
    /// [`NET_FORMAT`].
    pub format: String,
    /// Name of the record.
    pub id: String,
    /// Of the program that conducted.
    pub plimsoll_version: String,
    /// That it was built from; empty: not known.
    #[serde(default)]
    pub commit: String,
    /// Wall-clock time of the start, RFC 3339.
    pub made_at: String,
    /// What was asked for.
    pub asked: NetAsked,
    /// All that took part, in order of their names; a lane names them by place.
    pub hosts: Vec<NetHost>,
    /// Before the stages, where the number of streams was found: that number and the rates that led to it.
    #[serde(default)]
    pub streams_tried: Vec<StreamsTried>,
    /// What was done, in its order.
    pub stages: Vec<NetStage>,
    /// What is to be known beside the figures, and what takes away from them.
    pub findings: Vec<Finding>,
    /// In words: what the network carries.
    pub sentences: Vec<String>,
    /// Nothing takes away all of it.
    pub valid: bool,
    /// It was ended before its time.
    #[serde(default)]
    pub interrupted: bool,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NetAsked {
    /// By name.
    pub patterns: Vec<String>,
    /// Streams of each lane.
    pub streams: u16,
    /// They were found, not given.
    #[serde(default)]
    pub streams_found: bool,
    /// Of each stage, before what counts.
    pub warmup_s: f64,
    /// Of each stage: what counts.
    pub measured_s: f64,
    /// No host sends or receives more, Gbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gbps: Option<f64>,
    /// By which halves were drawn.
    #[serde(default)]
    pub seed: u64,
    /// Place of the host that asked for it, where that is one of the two of the test (`--to`); of a fleet nobody among them asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<usize>,
}

/// A number of streams that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StreamsTried {
    /// How many.
    pub streams: u16,
    /// What they carried together.
    pub bytes_per_s: f64,
}

/// A host that took part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NetHost {
    /// No other host of the record has it.
    pub name: String,
    /// The machine's own name.
    pub host: String,
    /// Client or server: who generates load, or who stores.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// What it was marked with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    /// Of the running kernel.
    pub kernel: String,
    /// CPUs that it may use.
    pub cores: u32,
    /// Two of one machine share it.
    pub boot_id: String,
    /// Limits of the kernel's buffers: least, standard, most.
    pub receive_buffer: String,
    /// The same of sending.
    pub send_buffer: String,
    /// Interfaces with addresses.
    pub interfaces: Vec<NetInterface>,
}

/// An interface of a host, and one address of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NetInterface {
    /// As the kernel calls it.
    pub name: String,
    /// One address; an interface with several is there several times.
    pub address: String,
    /// Largest packet.
    pub mtu_bytes: u32,
    /// As its driver says; absent where it knows none (veth, loopback, many virtual ones).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_mbit_per_s: Option<u64>,
    /// Segmentation (`tso`) and merging (`gro`) by the NIC or the kernel, as far as it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tso: Option<bool>,
    /// See [`Self::tso`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro: Option<bool>,
}

/// Some lanes at the same time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NetStage {
    /// The pattern that it belongs to.
    pub pattern: String,
    /// In words: `a to b`.
    pub title: String,
    /// All lanes together; absent with the reason in `why`.
    pub bytes_per_s: Option<Estimate>,
    /// Why there is no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// One direction from one host to another each.
    pub lanes: Vec<NetLane>,
    /// What each host did meanwhile.
    pub hosts: Vec<HostLoad>,
    /// When it began, seconds since the test's first stage did; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_s: Option<f64>,
    /// All lanes together in the two halves of the window, bytes per second; absent where one has no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halves: Option<[Estimate; 2]>,
    /// Rates that fell within the window and stayed there: of all lanes, else of what single hosts sent or took in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub falls: Vec<NetFall>,
}

/// A step down of a rate that stayed to the end of the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NetFall {
    /// Place of the host in the record's hosts; absent: of all lanes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<usize>,
    /// Of what that host sent; else of what it took in.
    #[serde(default)]
    pub sends: bool,
    /// Seconds since the stage's start, warm-up included.
    pub at_s: f64,
    /// The mean of the window until then, bytes per second.
    pub before_bytes_per_s: f64,
    /// And from then to its end.
    pub after_bytes_per_s: f64,
    /// How long that was, seconds.
    pub lasts_s: f64,
}

/// One direction from one host to another, all its streams together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NetLane {
    /// Place of the sender in the record's hosts.
    pub from: usize,
    /// And of the receiver.
    pub to: usize,
    /// How many streams.
    pub streams: u16,
    /// Payload that arrived, of the window that counts; absent with the reason in `why`.
    pub bytes_per_s: Option<Estimate>,
    /// Why there is no rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The rate in the two halves of the window; absent where one has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halves: Option<[Estimate; 2]>,
    /// Addresses.
    pub from_address: String,
    /// See `from_address`.
    pub to_address: String,
    /// Interfaces, where the addresses tell.
    pub from_interface: String,
    /// See `from_interface`.
    pub to_interface: String,
    /// How its payload lies in frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framing: Option<Framing>,
    /// Largest packet of the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_mtu_bytes: Option<u32>,
    /// Of the sender.
    pub congestion_control: String,
    /// Part of the bytes sent that were sent again, of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_share: Option<f64>,
    /// Parts of the time with something to send: bound by the receiver's window, by the send buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_limited_share: Option<f64>,
    /// See `receiver_limited_share`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer_limited_share: Option<f64>,
    /// Part of the window in which the streams had something to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// CPU time of the busiest thread of ours that sent it, over the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_thread: Option<f64>,
    /// The same of those that received it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_thread: Option<f64>,
    /// Round trips of small messages beside the data, before the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<RoundTrips>,
    /// And under it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loaded: Option<RoundTrips>,
    /// What bound it, in words, with the evidence; several where the data names several.
    pub limited_by: Vec<NetLimit>,
    /// Bytes that arrived, by stream, in slices of 100 ms from the start on, warm-up included.
    pub slices: Vec<Vec<u64>>,
    /// By stream: what the sender's kernel knew, each second: time since the start in seconds, and that.
    pub tcp: Vec<Vec<(f64, TcpFacts)>>,
}

/// Of small messages there and back, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// How many.
    pub count: u64,
    /// Half took no longer.
    pub p50_us: u32,
    /// And 99 of 100.
    pub p99_us: u32,
    /// The longest.
    pub max_us: u32,
    /// Of these: not answered when the watch ended, so that they took at least what is counted.
    #[serde(default)]
    pub unanswered: u64,
    /// More than these, which were not kept.
    #[serde(default)]
    pub left_out: u64,
}

/// What bound a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetLimit {
    /// As a word: `receiver_window`, `send_buffer`, `loss`, `link`, `cap`, `sender_cpu`, `receiver_cpu`, `path`, `inconclusive`.
    pub kind: String,
    /// A sentence with what was seen.
    pub text: String,
}

/// What a host did in a stage, of the window that counts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostLoad {
    /// Place of the host in the record's hosts.
    pub host: usize,
    /// All that it sent and received of this test's payload, bytes per second.
    pub out_bytes_per_s: Option<Estimate>,
    /// See `out_bytes_per_s`.
    pub in_bytes_per_s: Option<Estimate>,
    /// CPU seconds of our process for each GiB that it sent and received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_gib: Option<f64>,
    /// The whole machine's, interrupts included, for each GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_cpu_s_per_gib: Option<f64>,
    /// Part of the time that the busiest core was busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busiest_core: Option<f64>,
    /// Of one core at most: the kernel's work on packets and the like (softirq).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busiest_softirq: Option<f64>,
    /// Of one core, of those that were full the one with the most softirq, else that with the most: part of the time that it was busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_core_busy: Option<f64>,
    /// The same core's softirq.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_core_softirq: Option<f64>,
    /// Cores that our process used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_cores: Option<f64>,
    /// Part of the CPU time that the hypervisor took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stolen_share: Option<f64>,
    /// Packets that the kernel dropped before they were looked at, and how often it had to stop looking.
    pub softnet_dropped: u64,
    /// See `softnet_dropped`.
    pub softnet_squeezed: u64,
    /// Counters of its interfaces over the window.
    pub interfaces: Vec<InterfaceLoad>,
}

/// Counters of an interface over a window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceLoad {
    /// As the kernel calls it.
    pub name: String,
    /// Frames' bytes, per second.
    pub received_bytes_per_s: f64,
    /// See `received_bytes_per_s`.
    pub sent_bytes_per_s: f64,
    /// Packets lost there.
    pub dropped: u64,
    /// Damaged ones.
    pub errors: u64,
}

impl NetRecord {
    /// The host's name, or a question mark where a record names one that is not there.
    pub fn name_of(&self, host: usize) -> &str {
        self.hosts.get(host).map_or("?", |h| h.name.as_str())
    }

    /// How many disjoint pairs were measured at the same time, in one direction each: 1 where each was alone.
    pub fn pairs_at_once(&self) -> usize {
        self.stages.iter().filter(|s| s.pattern == "pairs").map(|s| s.lanes.len()).max().unwrap_or(0)
    }

    /// What a host carried at most: out and in, of all stages.
    pub fn most_of(&self, host: usize) -> (Option<Estimate>, Option<Estimate>) {
        let loads = || self.stages.iter().flat_map(|s| &s.hosts).filter(|l| l.host == host);
        let most = |rates: &mut dyn Iterator<Item = Estimate>| {
            rates.reduce(|a, b| if b.value > a.value { b } else { a })
        };
        (
            most(&mut loads().filter_map(|l| l.out_bytes_per_s)),
            most(&mut loads().filter_map(|l| l.in_bytes_per_s)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_counted_as_they_are() {
        let plain = Framing::of(1448, true, false);
        assert_eq!((plain.frame_bytes, plain.wire_bytes), (1514, 1538));
        assert_eq!(plain.formula(), "1448/1514 = 95.6 %");
        assert!((plain.line_share() - 0.9415).abs() < 1e-4);
        assert_eq!(Framing::of(1460, false, false).frame_bytes, 1514);
        assert_eq!(Framing::of(1428, true, true).frame_bytes, 1514);
        assert!((Framing::of(8948, true, false).line_share() - 0.990).abs() < 1e-3);
    }
}
