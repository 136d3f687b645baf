//! Guards of a run while it goes on: what sources say and what slices hold goes to the judges in `stats`, and whoever runs stages asks whether
//! one of them wants the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_judge::{GUARD_REACHED, server_resources};
use plimsoll_model::observed::{ReadSubject, ServerQuantity as Q};
use plimsoll_model::plan::{AbortGuard, ServerGuard, Stage};
use plimsoll_model::{Cluster, Finding, Interval, Level, Plan, Scrape};
use plimsoll_stats::guard::{Guards, HostShare, Tripped};
use plimsoll_store::ObservedSource;

use crate::error::RunError;

/// Readings that are nearer to each other are one, as they are for whoever judges the run later.
const LEAST_STEP_NS: u64 = 200_000_000;

/// What a counter is taken to grow by where nothing was read twice yet: any growth shows of which resources shares can be made.
const ANY_GROWTH: f64 = 1.0;
const ANY_STEP_NS: u64 = 1_000_000_000;

/// All guards of a run; clones are the same ones.
#[derive(Debug, Clone, Default)]
pub struct RunGuard(Arc<GuardParts>);

#[derive(Debug, Default)]
struct GuardParts {
    cluster: Option<Box<Cluster>>,
    /// Whether one of them is of a server: otherwise what sources say is of no interest.
    asks_servers: bool,
    /// Sources' threads wait for each other here, and never does the thread that takes slices.
    readings: Mutex<LastReadings>,
    /// Held for as long as a comparison takes: slices pass here.
    state: Mutex<GuardState>,
}

/// The last reading of each host, by source.
type LastReadings = BTreeMap<(usize, String), (u64, Vec<ReadSubject>)>;

#[derive(Debug, Default)]
struct GuardState {
    guards: Guards,
    tripped: Option<Tripped>,
}

/// What one answer comes to.
#[derive(Debug, Default, PartialEq)]
struct GuardReading {
    /// What is told of at all.
    seen: Vec<ServerGuard>,
    /// Between two readings of a host.
    steps: Vec<(u64, u64, Vec<HostShare>)>,
}

impl RunGuard {
    /// Those of a plan.
    pub fn of(plan: &Plan) -> Self {
        Self::with(plan.guards(), plan.options.cluster.clone())
    }

    fn with(guards: Vec<AbortGuard>, cluster: Option<Box<Cluster>>) -> Self {
        let guards = Guards::new(guards);
        let asks_servers = guards.blind().next().is_some();
        let state = Mutex::new(GuardState { guards, tripped: None });
        Self(Arc::new(GuardParts { cluster, asks_servers, readings: Mutex::default(), state }))
    }

    /// What one of them saw, once it did; it stays.
    pub fn tripped(&self) -> Option<Tripped> {
        self.lock().tripped.clone()
    }

    /// What a source said. Of no interest once a guard saw what it was to see.
    pub fn scrape(&self, source: usize, scrape: &Scrape) {
        if !self.0.asks_servers || scrape.gap.is_some() || self.lock().tripped.is_some() {
            return;
        }
        let GuardReading { seen, steps } = self.0.read(source, scrape);
        let mut s = self.lock();
        seen.into_iter().for_each(|what| s.guards.sees(what));
        for (from_ns, to_ns, shares) in steps {
            let found = s.guards.shares(from_ns, to_ns, &shares);
            s.tripped = s.tripped.take().or(found);
        }
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
                format!(
                    "--abort-if '{guard}': none of the sources that answered tells of that, or of the most that it can give"
                ),
                "Observe the hosts (--observe 'node=http://s{1...4}:9100'), say what lines carry (--cluster), or leave the guard out",
            )),
        }
    }

    fn lock(&self) -> MutexGuard<'_, GuardState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GuardParts {
    /// Reads an answer, without the guards.
    fn read(&self, source: usize, scrape: &Scrape) -> GuardReading {
        let mut by_host: BTreeMap<&str, Vec<ReadSubject>> = BTreeMap::new();
        for s in scrape.subjects.iter().filter(|s| !s.host.is_empty()) {
            by_host.entry(s.host.as_str()).or_default().push(s.clone());
        }
        let mut out = GuardReading::default();
        for (host, subjects) in by_host {
            let key = (source, host.to_owned());
            let apart_ns = LEAST_STEP_NS.max(scrape.resolution_ns);
            let mut last = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
            match last.get(&key) {
                // Counters are there before they can be subtracted.
                None => {
                    last.insert(key, (scrape.at_ns, subjects.clone()));
                    drop(last);
                    out.seen.extend(self.told_of(host, subjects));
                }
                Some((at_ns, _)) if scrape.at_ns < at_ns.saturating_add(apart_ns) => {}
                Some(_) => {
                    let Some((from_ns, before)) = last.insert(key, (scrape.at_ns, subjects.clone())) else {
                        continue;
                    };
                    drop(last);
                    let shares = self.shares(host, (from_ns, before), (scrape.at_ns, subjects));
                    out.seen.extend(shares.iter().map(|s| s.what));
                    out.steps.push((from_ns, scrape.at_ns, shares));
                }
            }
        }
        out
    }

    /// What of a host shares can be made, by its first reading: those that are made where everything grows. So a loopback, a device of
    /// others' parts, and a line of which nobody knows what it carries are told of by nobody.
    fn told_of(&self, host: &str, before: Vec<ReadSubject>) -> Vec<ServerGuard> {
        let mut after = before.clone();
        for r in after.iter_mut().flat_map(|s| &mut s.readings).filter(|r| r.quantity.is_counter()) {
            r.value += ANY_GROWTH;
        }
        self.shares(host, (0, before), (ANY_STEP_NS, after)).into_iter().map(|s| s.what).collect()
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
        RunGuard::with(vec![text.parse().unwrap()], None)
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

    /// A host with these counters and gauges.
    fn said(at_s: u64, readings: &[(Q, &str, f64)]) -> Scrape {
        let readings = readings.iter().map(|(quantity, label, value)| ServerReading {
            quantity: *quantity,
            label: (*label).into(),
            value: *value,
        });
        let subject = ReadSubject { host: "s1".into(), daemon: String::new(), readings: readings.collect() };
        Scrape { at_ns: at_s * S, subjects: vec![subject], ..Scrape::default() }
    }

    #[test]
    fn what_is_no_interface_or_drive_of_its_own_guards_nothing() {
        let blind = |guard_text: &str, readings: &[(Q, &str, f64)]| {
            let g = guard(guard_text);
            g.scrape(0, &said(1, readings));
            g.can_see().is_err()
        };
        let line = |name| {
            [(Q::NicTxBytes, name, 0.0), (Q::NicRxBytes, name, 0.0), (Q::NicSpeedBytesPerS, name, 1e9)]
        };
        assert!(blind("server.network > 60 %", &line("veth12")), "its bytes count where they go out");
        assert!(
            blind("server.network > 60 %", &[(Q::NicSpeedBytesPerS, "eth0", 1e9)]),
            "nobody counts its bytes"
        );
        assert!(!blind("server.network > 60 %", &line("eth0")));
        let drive = |name| [(Q::DiskBusyS, name, 0.0)];
        assert!(
            blind("server.drive > 60 %", &drive("dm-0")) && blind("server.drive > 60 %", &drive("loop3"))
        );
        assert!(!blind("server.drive > 60 %", &drive("sda")));
        // What the cluster file describes is one, whatever it is called; a drive that it has rates of is told of by its bytes.
        let text = "version = 1\nsoftware = \"minio\"\n[[node]]\nname = \"s1\"\ndrive = [{ read = \"1GB/s\", write = \"1GB/s\" }]\n\
            nic = [{ name = \"veth12\", rate = \"1gbit\" }]\n";
        let described = |guard_text: &str, readings: &[(Q, &str, f64)]| {
            let cluster = Cluster::from_toml(text).unwrap();
            let g = RunGuard::with(vec![guard_text.parse().unwrap()], Some(Box::new(cluster)));
            g.scrape(0, &said(1, readings));
            g.can_see().is_ok()
        };
        assert!(described("server.network > 60 %", &[(Q::NicTxBytes, "veth12", 0.0)]));
        assert!(!described("server.drive > 60 %", &drive("sda")));
        let bytes =
            [(Q::DiskBusyS, "sda", 0.0), (Q::DiskReadBytes, "sda", 0.0), (Q::DiskWriteBytes, "sda", 0.0)];
        assert!(described("server.drive > 60 %", &bytes));
    }

    #[test]
    fn slices_do_not_wait_for_what_sources_say_and_after_the_end_nothing_is_read() {
        let g = guard("server.cpu > 90 %");
        let held = g.lock();
        assert_eq!(g.0.read(0, &scrape(1.0, 0.5)).seen, [ServerGuard::Cpu, ServerGuard::Memory]);
        assert_eq!(g.0.read(0, &scrape(6.0, 5.4)).steps.len(), 1);
        drop(held);
        g.scrape(0, &scrape(11.0, 10.2));
        assert!(g.tripped().is_some());
        g.scrape(1, &scrape(16.0, 10.2));
        assert_eq!(g.0.readings.lock().unwrap().len(), 1, "the second source was not read");
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
