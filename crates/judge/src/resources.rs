//! Samples of one host, cut to a window: how busy the machine was, and with what.

use std::collections::BTreeMap;

use plimsoll_model::Sample;
use plimsoll_model::sample::CpuQuota;
use plimsoll_stats::validity::QuotaUse;

/// Shares are 0 to 1. `None`: no two samples touch the window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Resources {
    /// CPU time of this process, seconds.
    pub process_cpu_s: Option<f64>,
    pub rss_bytes: u64,
    /// Share of the machine's CPU time that was used, and that was stolen.
    pub system_cpu: Option<f64>,
    pub steal: Option<f64>,
    /// The most of one core that this process can have used: what its threads used in all, and the interrupts there.
    pub busiest_core: Option<f64>,
    /// Shares of the machine's CPU time that other processes and the kernel, and this process, used.
    pub others_cpu: Option<f64>,
    pub own_cpu: Option<f64>,
    /// Share of the fastest interface's speed, of those whose speed is known.
    pub nic_share: Option<f64>,
    /// The CPU quota that stopped this process most; absent: it has none.
    pub quota: Option<QuotaUse>,
}

impl Resources {
    /// Over `[from_ns, to_ns)`; between samples, counters are taken to grow evenly. All of them are of one host.
    pub fn of(samples: &[Sample], nics: &BTreeMap<String, Option<u64>>, from_ns: u64, to_ns: u64) -> Self {
        Self::seen(samples, nics, (from_ns, to_ns), Some)
    }

    /// Of one of several agents on a machine: the samples hold the counters of the machine, and of one agent's process, whose ever that is.
    /// `own_cpu_s`: CPU time that this agent's workers counted in the window. What others used is not known: most of it may be that of the
    /// agents beside it.
    pub fn beside_others(
        samples: &[Sample],
        nics: &BTreeMap<String, Option<u64>>,
        (from_ns, to_ns): (u64, u64),
        own_cpu_s: Option<f64>,
    ) -> Self {
        let seen = Self::seen(samples, nics, (from_ns, to_ns), |_| own_cpu_s);
        Self { others_cpu: None, quota: None, ..seen }
    }

    /// `own`: what of a process's sampled CPU time over the window is looked at.
    fn seen(
        samples: &[Sample],
        nics: &BTreeMap<String, Option<u64>>,
        (from_ns, to_ns): (u64, u64),
        own: impl Fn(f64) -> Option<f64>,
    ) -> Self {
        debug_assert!(
            samples.windows(2).all(|w| w[0].host == w[1].host),
            "counters of two hosts do not subtract"
        );
        let Some((a, b)) = around(samples, from_ns, to_ns) else { return Self::default() };
        let inside = samples.iter().filter(|s| (a.at_ns..=b.at_ns).contains(&s.at_ns));
        let seconds = (b.at_ns - a.at_ns) as f64 / 1e9;
        // Samples lie up to a second outside the window: counts are scaled to the window's length.
        let scale = (to_ns.saturating_sub(from_ns)) as f64 / 1e9 / seconds;
        let cores: Vec<[f64; 4]> =
            a.cpus.iter().zip(&b.cpus).filter_map(|(a, b)| core_shares(a, b)).collect();
        let mean = |i: usize| {
            (!cores.is_empty()).then(|| cores.iter().map(|c| c[i]).sum::<f64>() / cores.len() as f64)
        };
        let sampled_s = b.process_cpu_ns.saturating_sub(a.process_cpu_ns) as f64 / 1e9;
        let process_cpu_s = own(sampled_s * scale);
        let own_cores = process_cpu_s.map(|s| s / scale / seconds);
        let own_cpu = own_cores.filter(|_| !cores.is_empty()).map(|own| (own / cores.len() as f64).min(1.0));
        let most_of = |core: &[f64; 4]| Some(core[0].min(own_cores? + core[3]));
        Self {
            process_cpu_s,
            rss_bytes: inside.map(|s| s.process_rss_bytes).max().unwrap_or(0),
            system_cpu: mean(0),
            steal: mean(1),
            busiest_core: cores.iter().filter_map(most_of).reduce(f64::max),
            others_cpu: mean(0).zip(own_cpu).map(|(used, own)| (used - own).max(0.0)),
            own_cpu,
            nic_share: nic_share(a, b, nics, seconds),
            quota: own_cores.and_then(|own| quota(a, b, own, seconds)),
        }
    }
}

/// The last sample at or before the window and the first at or after its end; the outermost ones inside, where there are none.
fn around(samples: &[Sample], from_ns: u64, to_ns: u64) -> Option<(&Sample, &Sample)> {
    let first = samples.iter().rfind(|s| s.at_ns <= from_ns).or_else(|| samples.first())?;
    let last = samples.iter().find(|s| s.at_ns >= to_ns).or_else(|| samples.last())?;
    (last.at_ns > first.at_ns).then_some((first, last))
}

/// [used, stolen, idle, interrupts] shares of one CPU between two samples.
fn core_shares(a: &[u64; 6], b: &[u64; 6]) -> Option<[f64; 4]> {
    let d: Vec<f64> = a.iter().zip(b).map(|(a, b)| b.saturating_sub(*a) as f64).collect();
    let total: f64 = d.iter().sum();
    // Order: user, system, iowait, irq, steal, idle. Waiting for I/O is idle time of the CPU.
    (total > 0.0).then(|| [(d[0] + d[1] + d[3]) / total, d[4] / total, (d[2] + d[5]) / total, d[3] / total])
}

/// Of several nested quotas the one that stopped it most, else the tightest.
fn quota(a: &Sample, b: &Sample, own_cores: f64, seconds: f64) -> Option<QuotaUse> {
    let used = |end: &CpuQuota| {
        let start = a.cpu_quotas.iter().find(|q| q.group == end.group)?;
        let periods = seconds * 1e9 / end.period_ns.max(1) as f64;
        let throttled = end.throttled_periods.saturating_sub(start.throttled_periods) as f64;
        Some(QuotaUse {
            cores: end.cores,
            throttled: (throttled / periods).min(1.0),
            used: own_cores / end.cores,
        })
    };
    let worse =
        |x: &QuotaUse, y: &QuotaUse| x.throttled.total_cmp(&y.throttled).then(y.cores.total_cmp(&x.cores));
    b.cpu_quotas.iter().filter_map(used).max_by(worse)
}

fn nic_share(a: &Sample, b: &Sample, speeds: &BTreeMap<String, Option<u64>>, seconds: f64) -> Option<f64> {
    let share = |(name, mbit): (&String, &Option<u64>)| {
        let (a, b) = (a.nics.get(name)?, b.nics.get(name)?);
        let moved = b[0].saturating_sub(a[0]).max(b[1].saturating_sub(a[1])) as f64;
        let mbit = (*mbit)? as f64;
        (mbit > 0.0).then(|| moved * 8.0 / 1e6 / seconds / mbit)
    };
    speeds.iter().filter_map(share).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::sample::Role;

    fn sample(at_s: u64, user: u64, idle: u64, steal: u64, cpu_s: u64, rx: u64) -> Sample {
        Sample {
            host: "h".into(),
            role: Role::Client,
            at_ns: at_s * 1_000_000_000,
            cpus: vec![[user, 0, 0, 0, steal, idle], [0, 0, 0, 0, 0, user + idle + steal]],
            process_cpu_ns: cpu_s * 1_000_000_000,
            process_rss_bytes: 1 << 20,
            process_usage: Default::default(),
            memory_available_bytes: 1 << 30,
            process_io: Default::default(),
            nics: [("eth0".to_owned(), [rx, 0, 0])].into(),
            tcp_out: 0,
            tcp_retransmits: 0,
            disks: Default::default(),
            psi_ns: [0; 3],
            cpu_quotas: Vec::new(),
        }
    }

    #[test]
    fn shares_of_a_window() {
        let samples = [sample(0, 0, 0, 0, 0, 0), sample(10, 800, 100, 100, 5, 1_250_000_000)];
        let nics = [("eth0".to_owned(), Some(10_000)), ("lo".to_owned(), None)].into();
        let r = Resources::of(&samples, &nics, 2_000_000_000, 4_000_000_000);
        assert_eq!(r.process_cpu_s, Some(1.0));
        // 0.8 of the core was used, 0.5 by this process: the rest is other work's.
        assert_eq!((r.busiest_core, r.own_cpu), (Some(0.5), Some(0.25)));
        assert!((r.others_cpu.unwrap() - 0.15).abs() < 1e-9);
        assert_eq!((r.system_cpu, r.steal), (Some(0.4), Some(0.05)));
        assert_eq!(r.nic_share, Some(0.1));
    }

    #[test]
    fn of_nested_quotas_the_one_that_stopped_it_counts() {
        let quota = |group: &str, cores, throttled_periods| CpuQuota {
            group: group.into(),
            cores,
            period_ns: 100_000_000,
            throttled_periods,
            throttled_ns: 0,
        };
        let mut samples = [sample(0, 0, 0, 0, 0, 0), sample(10, 800, 100, 0, 1, 0)];
        samples[0].cpu_quotas = vec![quota("/a/b", 0.5, 7), quota("/a", 0.1, 1000)];
        samples[1].cpu_quotas = vec![quota("/a/b", 0.5, 7), quota("/a", 0.1, 1098)];
        let r = Resources::of(&samples, &BTreeMap::new(), 0, 10_000_000_000).quota.unwrap();
        assert_eq!((r.cores, r.throttled, r.used), (0.1, 0.98, 1.0));
        samples[1].cpu_quotas.clear();
        assert_eq!(Resources::of(&samples, &BTreeMap::new(), 0, 10_000_000_000).quota, None);
    }

    #[test]
    fn too_few_samples_are_unknown() {
        assert_eq!(Resources::of(&[], &BTreeMap::new(), 0, 10), Resources::default());
        let one = [sample(1, 1, 1, 0, 1, 1)];
        assert_eq!(Resources::of(&one, &BTreeMap::new(), 0, 10), Resources::default());
    }
}
