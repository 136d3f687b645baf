//! What whoever conducts a test orders of a host, and what that answers. The same over a fleet's bus and between two machines.

use std::net::IpAddr;

use plimsoll_model::net::{NetHost, TcpFacts};
use serde::{Deserialize, Serialize};

use crate::host::HostCounters;
use crate::secret::NetKey;

/// Step of the slices.
pub const SLICE_NS: u64 = 100_000_000;
/// Streams of a lane, and lanes of a stage at one host: more than any host needs, and few enough to be held.
pub const MOST_STREAMS: u16 = 64;
/// See [`MOST_STREAMS`].
pub const MOST_LANES: usize = 4096;
/// Addresses of one host that are tried: the likeliest ones come first.
pub const MOST_ADDRESSES: usize = 16;
/// Of a stage.
pub const LONGEST_NS: u64 = 3600 * 1_000_000_000;

/// Done one after the other, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetOrder {
    /// Says what it is, and what its clock shows.
    Describe,
    /// Its lanes of the next stage; those that it does not dial are waited for on a port that is open until they are there.
    Open {
        /// All of them.
        lanes: Vec<LaneOrder>,
    },
    /// Connects its lanes that it dials.
    Dial {
        /// Where to.
        lanes: Vec<DialOrder>,
    },
    /// Sends and receives from a time on, and tells what came of it.
    Run(RunOrder),
    /// Lets go of all connections.
    Close,
}

/// A direction between two hosts, as one of them is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneOrder {
    /// Its number in the stage.
    pub lane: u32,
    /// Both ends have it, for this stage.
    pub key: NetKey,
    /// How many connections.
    pub streams: u16,
    /// This host sends; else it receives.
    pub sends: bool,
    /// This host opens the connections; else it waits for them.
    pub dials: bool,
    /// Most that its streams send together.
    pub most_bytes_per_s: Option<u64>,
}

/// Where a lane's other end is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DialOrder {
    /// Its number in the stage.
    pub lane: u32,
    /// Tried one after the other; no more than [`MOST_ADDRESSES`].
    pub addresses: Vec<IpAddr>,
    /// Of the other end.
    pub port: u16,
}

/// A stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOrder {
    /// On the host's monotonic clock.
    pub at_ns: u64,
    /// Before what counts.
    pub warmup_ns: u64,
    /// What counts.
    pub measured_ns: u64,
}

/// What came of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetAnswer {
    /// Of [`NetOrder::Describe`].
    Described {
        /// What it is.
        host: Box<NetHost>,
        /// Its monotonic clock.
        now_ns: u64,
    },
    /// Of [`NetOrder::Open`]: where it waits; nowhere, where it dials all.
    Opened {
        /// Of all its addresses.
        port: Option<u16>,
    },
    /// Done.
    Well,
    /// Of [`NetOrder::Run`].
    Ran(Box<NodeRecord>),
    /// It did not do it.
    Refused {
        /// Why.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
}

/// What a host saw of a stage.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeRecord {
    /// By connection.
    pub streams: Vec<StreamTold>,
    /// Of the lanes that it sends on.
    pub pings: Vec<PingRecord>,
    /// When the window began.
    pub before: HostCounters,
    /// And when it ended.
    pub after: HostCounters,
    /// It began so much later than it was to.
    pub late_ns: u64,
    /// It was ended before its time.
    pub interrupted: bool,
}

/// One connection's data.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamTold {
    /// Of which lane.
    pub lane: u32,
    /// Of that lane's streams.
    pub stream: u16,
    /// This host sent.
    pub sends: bool,
    /// Bytes in each slice since the start: what arrived; of a sender, what its kernel took.
    pub slices: Vec<u64>,
    /// What its kernel knew, each second: nanoseconds since the start, and that.
    pub tcp: Vec<(u64, TcpFacts)>,
    /// It ended before its time: when since the start, and why.
    pub ended: Option<(u64, String)>,
    /// Of this end.
    pub local: String,
    /// Of the other one.
    pub peer: String,
    /// Of this end.
    pub congestion_control: String,
    /// CPU time over the window of the thread that served it, and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_share: Option<f64>,
}

/// Round trips of small messages of a lane, microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PingRecord {
    /// Of which lane.
    pub lane: u32,
    /// Before the load.
    pub idle_us: Vec<u32>,
    /// In the window; those included that were to be asked while an answer was waited for.
    pub loaded_us: Vec<u32>,
    /// Of the loaded ones: how many had no answer when the watch ended.
    pub unanswered: u64,
    /// How many more there were than are kept: before the load, and in the window.
    pub left_out: [u64; 2],
}
