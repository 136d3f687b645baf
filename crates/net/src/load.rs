//! What a stage took of each host: processor, and what went through its interfaces. Pure.

use plimsoll_model::net::{HostLoad, InterfaceLoad};

use crate::host::HostCounters;
use crate::judge::{Measured, estimate};
use crate::limit::{CORE_FULL, MOSTLY};
use crate::wire::NodeRecord;

const GIB: f64 = (1u64 << 30) as f64;

/// What each host did.
pub(crate) fn host_loads(measured: &Measured) -> Vec<HostLoad> {
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
