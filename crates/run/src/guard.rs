//! Guards of a run while it goes on: what sources say and what slices hold goes to the judges in `stats`, and whoever runs stages asks whether
//! one of them wants the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_judge::{GUARD_REACHED, server_resources};
use plimsoll_model::observed::{ReadSubject, ServerQuantity as Q};
use plimsoll_model::plan::{ServerGuard, Stage};
use plimsoll_model::{Cluster, Finding, Interval, Level, Plan, Scrape};
use plimsoll_stats::guard::{Guards, HostShare, Tripped};
use plimsoll_store::ObservedSource;

use crate::error::RunError;

/// Readings that are nearer to each other are one, as they are for whoever judges the run later.
const LEAST_STEP_NS: u64 = 200_000_000;

/// All guards of a run; clones are the same ones.
#[derive(Debug, Clone, Default)]
pub struct RunGuard(Arc<Mutex<GuardState>>);

#[derive(Debug, Default)]
struct GuardState {
    guards: Guards,
    cluster: Option<Box<Cluster>>,
    /// The last reading of each host, by source.
    last: BTreeMap<(usize, String), (u64, Vec<ReadSubject>)>,
    tripped: Option<Tripped>,
}

impl RunGuard {
    /// Those of a plan.
    pub fn of(plan: &Plan) -> Self {
        let guards = Guards::new(plan.guards());
        let state = GuardState { guards, cluster: plan.options.cluster.clone(), ..GuardState::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// What one of them saw, once it did; it stays.
    pub fn tripped(&self) -> Option<Tripped> {
        self.lock().tripped.clone()
    }

    /// What a source said.
    pub fn scrape(&self, source: usize, scrape: &Scrape) {
        self.lock().scrape(source, scrape);
    }

    /// A stage begins.
    pub fn begin_stage(&self) {
        self.lock().guards.begin_stage();
    }

    /// A slice of a stage.
    pub fn slice(&self, stage: &Stage, slice: &Interval, from_ns: u64, to_ns: u64) {
        let mut s = self.lock();
        if s.guards.is_empty() || s.tripped.is_some() {
            return;
        }
        s.tripped = s.guards.slice(stage, slice, from_ns, to_ns);
    }

    /// A guard of which no source tells anything would guard nothing: then the load does not begin. Asked once all sources had their first
    /// word.
    pub fn can_see(&self) -> Result<(), RunError> {
        let s = self.lock();
        match s.guards.blind().next() {
            None => Ok(()),
            Some(guard) => Err(RunError::input(
                format!("--abort-if '{guard}': none of the sources that answered tells of that"),
                "Observe the hosts (--observe 'node=http://s{1...4}:9100'), or leave the guard out",
            )),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, GuardState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GuardState {
    fn scrape(&mut self, source: usize, scrape: &Scrape) {
        if self.guards.is_empty() || scrape.gap.is_some() {
            return;
        }
        self.first_sight(scrape);
        let mut by_host: BTreeMap<&str, Vec<&ReadSubject>> = BTreeMap::new();
        for s in scrape.subjects.iter().filter(|s| !s.host.is_empty()) {
            by_host.entry(s.host.as_str()).or_default().push(s);
        }
        for (host, subjects) in by_host {
            let subjects: Vec<ReadSubject> = subjects.into_iter().cloned().collect();
            let key = (source, host.to_owned());
            let apart_ns = LEAST_STEP_NS.max(scrape.resolution_ns);
            if let Some((at_ns, before)) = self.last.get(&key) {
                if scrape.at_ns < at_ns.saturating_add(apart_ns) {
                    continue;
                }
                let (from_ns, before) = (*at_ns, before.clone());
                let shares = self.shares(host, (from_ns, before), (scrape.at_ns, subjects.clone()));
                let found = self.guards.shares(from_ns, scrape.at_ns, &shares);
                self.tripped = self.tripped.take().or(found);
            }
            self.last.insert(key, (scrape.at_ns, subjects));
        }
    }

    /// What a host tells of at all: counters are there before they can be subtracted. Of what a quota allows only the cluster file tells.
    fn first_sight(&mut self, scrape: &Scrape) {
        for s in scrape.subjects.iter().filter(|s| !s.host.is_empty()) {
            let node = self.cluster.as_ref().and_then(|c| c.node_of(&s.host));
            let (quota, line) =
                (node.is_some_and(|n| n.cpus.is_some()), node.is_some_and(|n| n.only_nic().is_some()));
            for r in &s.readings {
                let what = match r.quantity {
                    Q::CpuIdleS => ServerGuard::Cpu,
                    Q::ProcessCpuS if quota => ServerGuard::Cpu,
                    Q::NicSpeedBytesPerS if r.value > 0.0 => ServerGuard::Network,
                    Q::NicTxBytes if node.is_some_and(|n| n.nic(&r.label).is_some()) => ServerGuard::Network,
                    Q::NicTxBytes | Q::InternodeSentBytes if line => ServerGuard::Network,
                    Q::DiskBusyS => ServerGuard::Drive,
                    Q::MemoryAvailableBytes => ServerGuard::Memory,
                    _ => continue,
                };
                self.guards.sees(what);
            }
        }
    }

    /// As whoever judges the run later sees them.
    fn shares(
        &self,
        host: &str,
        (from_ns, before): (u64, Vec<ReadSubject>),
        (to_ns, after): (u64, Vec<ReadSubject>),
    ) -> Vec<HostShare> {
        let memory = memory_used(&after);
        let of = |at_ns, subjects| Scrape { at_ns, subjects, ..Scrape::default() };
        let source = ObservedSource {
            every: 1,
            scrapes: vec![of(from_ns, before), of(to_ns, after)],
            ..ObservedSource::default()
        };
        let of_kind = |kind: &str| match kind {
            "cpu" => Some(ServerGuard::Cpu),
            "network in" | "network out" => Some(ServerGuard::Network),
            "drive" => Some(ServerGuard::Drive),
            _ => None,
        };
        let used = server_resources(&[source], self.cluster.as_deref()).into_iter();
        let share = used.filter_map(|r| {
            let (what, share) = (of_kind(&r.resource)?, r.share?);
            Some(HostShare { host: r.host, what, device: r.device, share })
        });
        let memory = memory.map(|share| HostShare {
            host: host.to_owned(),
            what: ServerGuard::Memory,
            device: String::new(),
            share,
        });
        share.chain(memory).collect()
    }
}

fn memory_used(subjects: &[ReadSubject]) -> Option<f64> {
    let readings = || subjects.iter().filter(|s| s.daemon.is_empty()).flat_map(|s| &s.readings);
    let of = |q| readings().find(|r| r.quantity == q).map(|r| r.value);
    let total = of(Q::MemoryTotalBytes).filter(|t| *t > 0.0)?;
    Some(1.0 - of(Q::MemoryAvailableBytes)? / total)
}

/// Said of a run that a guard ended.
pub(crate) fn reached(tripped: &Tripped) -> Finding {
    let text = format!("The run was stopped by {}. The figures are of the time until then.", tripped.words());
    Finding::new("F29", GUARD_REACHED, Level::Qualified, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::observed::ServerReading;

    const S: u64 = 1_000_000_000;

    fn guard(text: &str) -> RunGuard {
        let state = GuardState { guards: Guards::new(vec![text.parse().unwrap()]), ..GuardState::default() };
        RunGuard(Arc::new(Mutex::new(state)))
    }

    /// A host of one CPU that was busy for so long by then.
    fn scrape(at_s: f64, busy_s: f64) -> Scrape {
        let r = |quantity, label: &str, value| ServerReading { quantity, label: label.into(), value };
        let readings = vec![
            r(Q::CpuUserS, "0", busy_s),
            r(Q::CpuIdleS, "0", at_s - busy_s),
            r(Q::MemoryTotalBytes, "", 100.0),
            r(Q::MemoryAvailableBytes, "", 30.0),
        ];
        let subject = ReadSubject { host: "s1".into(), daemon: String::new(), readings };
        Scrape { at_ns: (at_s * S as f64) as u64, subjects: vec![subject], ..Scrape::default() }
    }

    #[test]
    fn a_busy_host_ends_the_run_once_it_was_so_for_long_enough() {
        let g = guard("server.cpu > 90 % for 10s");
        assert!(g.can_see().is_err());
        g.scrape(0, &scrape(1.0, 0.5));
        assert!(g.can_see().is_ok());
        g.scrape(0, &scrape(6.0, 5.4));
        g.scrape(0, &Scrape { at_ns: 8 * S, gap: Some("no answer".into()), ..Scrape::default() });
        assert_eq!(g.tripped(), None);
        g.scrape(0, &scrape(11.0, 10.2));
        let t = g.tripped().unwrap();
        assert_eq!((t.since_s, t.at_s), (1.0, 11.0));
        let f = reached(&t);
        assert!(
            f.text.contains("stopped by --abort-if 'server.cpu > 90 % for 10s': cpu of s1 was at 96 % last"),
            "{}",
            f.text
        );
    }

    #[test]
    fn memory_and_what_nobody_tells_of() {
        let g = guard("server.memory > 60 %");
        g.scrape(0, &scrape(1.0, 0.5));
        g.scrape(0, &scrape(6.0, 0.6));
        assert!(g.tripped().unwrap().what.contains("memory of s1 was at 70 %"));
        let g = guard("server.network > 60 %");
        g.scrape(0, &scrape(1.0, 0.5));
        let e = g.can_see().unwrap_err().to_string();
        assert!(e.contains("none of the sources") && e.contains("--observe"), "{e}");
    }
}
