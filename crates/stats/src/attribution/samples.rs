//! From cumulative counters to shares: what each pair of samples says of processors, interfaces and disks.

use std::collections::BTreeMap;

use plimsoll_model::Sample;
use plimsoll_model::observed::BOX_LINK;

use super::{Candidate, Observed};

/// Shares over time, between neighbouring samples of one host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shares {
    /// The most of a core that the client can have had (interrupts and steal there included), all cores, and steal: 0 to 1.
    pub busiest_core: Vec<f64>,
    /// 0 to 1.
    pub all_cores: Vec<f64>,
    /// 0 to 1: what the hypervisor gave to others.
    pub steal: Vec<f64>,
    /// Cores used by the measuring process.
    pub process_cores: Vec<f64>,
    /// Share of the periods in which a CPU quota of the client's control groups ran out; empty: there is none.
    pub quota: Vec<f64>,
    /// Interface to share of its speed; only where the speed is known.
    pub nics: BTreeMap<String, Vec<f64>>,
    /// Disk to share of time busy.
    pub disks: BTreeMap<String, Vec<f64>>,
    /// Segments sent again, of all sent.
    pub retransmits: Vec<f64>,
    /// The most that the measuring process had in memory.
    pub rss_bytes: u64,
}

/// Reads samples in order of time. `nic_bits_per_s` holds the speeds that are known.
pub fn shares(samples: &[Sample], nic_bits_per_s: &BTreeMap<String, f64>) -> Shares {
    let mut out = Shares::default();
    for w in samples.windows(2) {
        let (a, b) = (&w[0], &w[1]);
        let dt_ns = b.at_ns.saturating_sub(a.at_ns) as f64;
        if dt_ns <= 0.0 {
            continue;
        }
        cpu(&mut out, a, b, dt_ns);
        let stopped = b.cpu_quotas.iter().filter_map(|q| {
            let before = a.cpu_quotas.iter().find(|p| p.group == q.group)?;
            let stopped = q.throttled_periods.saturating_sub(before.throttled_periods) as f64;
            Some((stopped * q.period_ns as f64 / dt_ns).min(1.0))
        });
        out.quota.extend(stopped.reduce(f64::max));
        // The links of a cluster in a box are its nodes', and no interface of the client's.
        let own = |name: &str| !name.starts_with(BOX_LINK);
        for (name, speed) in nic_bits_per_s.iter().filter(|(n, s)| **s > 0.0 && own(n)) {
            if let (Some(x), Some(y)) = (a.nics.get(name), b.nics.get(name)) {
                // Both directions have the whole speed: the fuller one counts.
                let bytes = y[0].saturating_sub(x[0]).max(y[1].saturating_sub(x[1])) as f64;
                out.nics.entry(name.clone()).or_default().push(bytes * 8e9 / dt_ns / speed);
            }
        }
        for (name, y) in &b.disks {
            if let Some(x) = a.disks.get(name) {
                let busy = y.busy_ns.saturating_sub(x.busy_ns) as f64 / dt_ns;
                out.disks.entry(name.clone()).or_default().push(busy.min(1.0));
            }
        }
        let sent = b.tcp_out.saturating_sub(a.tcp_out) as f64;
        if sent > 0.0 {
            out.retransmits.push(b.tcp_retransmits.saturating_sub(a.tcp_retransmits) as f64 / sent);
        }
    }
    out.rss_bytes = samples.iter().map(|s| s.process_rss_bytes).max().unwrap_or(0);
    out
}

fn cpu(out: &mut Shares, a: &Sample, b: &Sample, dt_ns: f64) {
    let own = b.process_cpu_ns.saturating_sub(a.process_cpu_ns) as f64 / dt_ns;
    out.process_cores.push(own);
    let (mut most, mut busy_sum, mut all_sum, mut steal_sum) = (0.0f64, 0.0, 0.0, 0.0);
    for (x, y) in a.cpus.iter().zip(&b.cpus) {
        let d: Vec<f64> = x.iter().zip(y).map(|(p, q)| q.saturating_sub(*p) as f64).collect();
        let all: f64 = d.iter().sum();
        // user, system, irq and steal are busy; iowait and idle are not.
        let busy = d[0] + d[1] + d[3] + d[4];
        if all > 0.0 {
            // What other processes used of a core is not the client's: it can have had no more than it used in all.
            most = most.max((busy / all).min(own + (d[3] + d[4]) / all));
        }
        busy_sum += busy;
        all_sum += all;
        steal_sum += d[4];
    }
    if all_sum > 0.0 {
        out.busiest_core.push(most);
        out.all_cores.push(busy_sum / all_sum);
        out.steal.push(steal_sum / all_sum);
    }
}

impl Shares {
    /// As candidates of a client host; a disk here is the device under test.
    pub fn of_client(&self) -> Vec<Observed> {
        let mut out = Vec::new();
        let mut add = |candidate, what: &str, v: &[f64]| {
            if !v.is_empty() {
                out.push(Observed { candidate, what: what.to_owned(), samples: v.to_vec() });
            }
        };
        add(Candidate::ClientCpu, "busiest core", &self.busiest_core);
        add(Candidate::ClientQuota, "periods in which it ran out", &self.quota);
        for (name, v) in &self.nics {
            add(Candidate::ClientNic, name, v);
        }
        add(Candidate::NetworkPath, "retransmits", &self.retransmits);
        for (name, v) in &self.disks {
            add(Candidate::ServerDisk, name, v);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::sample::{DiskCounters, ProcessIo, Role};

    fn sample(at_s: u64, busy_s: u64, tx: u64) -> Sample {
        let s = 1_000_000_000;
        Sample {
            host: "c".into(),
            role: Role::Client,
            at_ns: at_s * s,
            cpus: vec![[busy_s * s, 0, 0, 0, 0, (at_s - busy_s) * s], [0, 0, 0, 0, 0, at_s * s]],
            process_cpu_ns: busy_s * s,
            process_rss_bytes: 1000,
            memory_available_bytes: 0,
            process_io: ProcessIo::default(),
            process_usage: Default::default(),
            nics: BTreeMap::from([("eth0".into(), [0, tx, 0]), ("pl-box-1".into(), [0, tx, 0])]),
            tcp_out: at_s * 1000,
            tcp_retransmits: at_s * 10,
            disks: BTreeMap::from([(
                "vda".into(),
                DiskCounters { busy_ns: at_s * s / 2, ..DiskCounters::default() },
            )]),
            psi_ns: [0; 3],
            cpu_quotas: Vec::new(),
        }
    }

    #[test]
    fn counters_become_shares() {
        let speeds = ["eth0", "eth1", "pl-box-1"].map(|n| (n.to_owned(), 1e9)).into();
        let s = shares(&[sample(1, 0, 0), sample(2, 1, 62_500_000), sample(2, 1, 0)], &speeds);
        assert_eq!((s.busiest_core.clone(), s.all_cores.clone()), (vec![1.0], vec![0.5]));
        assert_eq!((s.nics["eth0"].clone(), s.disks["vda"].clone()), (vec![0.5], vec![0.5]));
        assert_eq!((s.retransmits.clone(), s.process_cores.clone()), (vec![0.01], vec![1.0]));
        assert!(shares(&[], &speeds).busiest_core.is_empty());
        let kinds: Vec<Candidate> = s.of_client().iter().map(|o| o.candidate).collect();
        assert_eq!(
            kinds,
            [Candidate::ClientCpu, Candidate::ClientNic, Candidate::NetworkPath, Candidate::ServerDisk]
        );
    }
}
