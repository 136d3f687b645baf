//! Guards while a run goes on: readings and slices go in, and out comes the guard that ends it. Without clocks: each value has its time.

use std::collections::BTreeMap;

use plimsoll_model::plan::{AbortGuard, GuardQuantile, GuardSubject, ServerGuard, Stage};
use plimsoll_model::{Histogram, Interval};

/// Responses are looked at over so long at a time.
const SECOND_NS: u64 = 1_000_000_000;
/// Fewer ops than this have no 99th percentile: then the longest counts.
const FEW: u64 = 2;

/// A guard that held for as long as it had to.
#[derive(Debug, Clone, PartialEq)]
pub struct Tripped {
    /// As it was written.
    pub guard: String,
    /// Who, and at what value last, in words.
    pub what: String,
    /// Since when it was above, seconds since the run's start.
    pub since_s: f64,
    /// Until when it was seen to be.
    pub at_s: f64,
}

impl Tripped {
    /// For a person, without a stop.
    pub fn words(&self) -> String {
        format!(
            "--abort-if '{}': {}, from {:.1} s to {:.1} s",
            self.guard, self.what, self.since_s, self.at_s
        )
    }
}

/// A host's resource between two readings.
#[derive(Debug, Clone, PartialEq)]
pub struct HostShare {
    /// Whose.
    pub host: String,
    /// What.
    pub what: ServerGuard,
    /// Which interface or drive; empty: all of it.
    pub device: String,
    /// 0 to 1.
    pub share: f64,
}

/// All guards of a run.
#[derive(Debug, Default)]
pub struct Guards {
    guards: Vec<AbortGuard>,
    /// Since when each is above, by guard and host, nanoseconds.
    since: BTreeMap<(usize, String), u64>,
    /// Responses of the second that goes on, by guard.
    second: BTreeMap<usize, Second>,
    /// The servers' resources that were seen at all.
    seen: Vec<ServerGuard>,
}

#[derive(Debug)]
struct Second {
    from_ns: u64,
    responses: Histogram,
    started: u64,
    ended: u64,
}

impl Guards {
    /// None: nothing is guarded.
    pub fn new(guards: Vec<AbortGuard>) -> Self {
        Self { guards, ..Self::default() }
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.guards.is_empty()
    }

    /// Guards of servers of which nothing was seen so far.
    pub fn blind(&self) -> impl Iterator<Item = &AbortGuard> {
        self.guards
            .iter()
            .filter(|g| matches!(g.subject, GuardSubject::Server(what) if !self.seen.contains(&what)))
    }

    /// That a host tells of this.
    pub fn sees(&mut self, what: ServerGuard) {
        if !self.seen.contains(&what) {
            self.seen.push(what);
        }
    }

    /// What one host's resources were between two readings.
    pub fn shares(&mut self, from_ns: u64, to_ns: u64, shares: &[HostShare]) -> Option<Tripped> {
        let mut tripped = None;
        for i in 0..self.guards.len() {
            let GuardSubject::Server(what) = self.guards[i].subject else { continue };
            let hosts: Vec<&str> =
                shares.iter().filter(|s| s.what == what).map(|s| s.host.as_str()).collect();
            for host in hosts {
                let of_host = shares.iter().filter(|s| s.what == what && s.host == host);
                let Some(most) = of_host.max_by(|a, b| a.share.total_cmp(&b.share)) else { continue };
                let name = if most.device.is_empty() {
                    host.to_owned()
                } else {
                    format!("{} of {host}", most.device)
                };
                let words = format!("{} of {name} was at {:.0} % last", what.name(), 100.0 * most.share);
                let found = self.step(i, host, most.share, (from_ns, to_ns), words);
                tripped = tripped.or(found);
            }
        }
        tripped
    }

    /// One value of a guard between two times.
    fn step(
        &mut self,
        guard: usize,
        of: &str,
        value: f64,
        (from_ns, to_ns): (u64, u64),
        what: String,
    ) -> Option<Tripped> {
        let g = &self.guards[guard];
        let key = (guard, of.to_owned());
        if value <= g.above {
            self.since.remove(&key);
            return None;
        }
        let since_ns = *self.since.entry(key).or_insert(from_ns);
        (to_ns.saturating_sub(since_ns) >= g.held.as_nanos() as u64).then(|| Tripped {
            guard: g.text.clone(),
            what,
            since_s: since_ns as f64 / 1e9,
            at_s: to_ns as f64 / 1e9,
        })
    }

    /// A new stage: what was seen of the last one's responses is not of this one.
    pub fn begin_stage(&mut self) {
        self.second.clear();
        let guards = &self.guards;
        self.since.retain(|(i, _), _| matches!(guards[*i].subject, GuardSubject::Server(_)));
    }

    /// A slice of a stage. What a second has is judged when it is over; one in which ops wait and none ends is above any limit that is
    /// shorter than it.
    pub fn slice(&mut self, stage: &Stage, slice: &Interval, from_ns: u64, to_ns: u64) -> Option<Tripped> {
        let mut tripped = None;
        for i in 0..self.guards.len() {
            let GuardSubject::Response(name, which) = self.guards[i].subject.clone() else { continue };
            let second = self.second.entry(i).or_insert_with(|| Second {
                from_ns,
                responses: Histogram::new(),
                started: 0,
                ended: 0,
            });
            for s in &slice.series {
                let w = stage.workloads.get(usize::from(s.id.workload));
                if w.is_some_and(|w| w.name == name) || s.id.kind.name() == name {
                    second.responses.merge(&s.response);
                    second.started += s.counts.started;
                    second.ended += s.counts.ok() + s.counts.failed() + s.counts.throttled();
                }
            }
            if to_ns.saturating_sub(second.from_ns) < SECOND_NS {
                continue;
            }
            let (begun_ns, waiting) = (second.from_ns, second.started > second.ended);
            let response = value_of(&second.responses, which);
            // An older one waits on.
            (second.from_ns, second.started, second.ended) =
                (to_ns, second.started.saturating_sub(second.ended), 0);
            second.responses.clear();
            let silent = waiting.then_some((to_ns - begun_ns) as f64);
            let Some(value) = response.or(silent) else { continue };
            let words = format!(
                "the {} of {name} was {} last",
                words_of(which),
                plimsoll_model::units::format_latency_ns(value)
            );
            let found = self.step(i, "", value, (begun_ns, to_ns), words);
            tripped = tripped.or(found);
        }
        tripped
    }
}

fn value_of(h: &Histogram, which: GuardQuantile) -> Option<f64> {
    if h.is_empty() {
        return None;
    }
    Some(match which {
        GuardQuantile::Mean => h.mean(),
        GuardQuantile::Max => h.max() as f64,
        GuardQuantile::Quantile(_) if h.count() < FEW => h.max() as f64,
        GuardQuantile::Quantile(q) => h.quantile(f64::from(q) / 10_000.0) as f64,
    })
}

fn words_of(which: GuardQuantile) -> String {
    match which {
        GuardQuantile::Mean => "mean response".into(),
        GuardQuantile::Max => "longest response".into(),
        GuardQuantile::Quantile(q) => format!("p{} response", f64::from(q) / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::interval::{SeriesId, SeriesShape};
    use plimsoll_model::{OpKind, Outcome, Plan, Series};

    const S: u64 = 1_000_000_000;

    fn guards(texts: &[&str]) -> Guards {
        Guards::new(texts.iter().map(|t| t.parse().unwrap()).collect())
    }

    fn cpu(host: &str, share: f64) -> HostShare {
        HostShare { host: host.into(), what: ServerGuard::Cpu, device: String::new(), share }
    }

    #[test]
    fn a_host_has_to_be_above_for_so_long_without_a_pause() {
        let mut g = guards(&["server.cpu > 90 % for 15s"]);
        let step = |g: &mut Guards, at: u64, shares: &[HostShare]| g.shares((at - 5) * S, at * S, shares);
        assert_eq!(step(&mut g, 5, &[cpu("s1", 0.95), cpu("s2", 0.99)]), None);
        assert_eq!(step(&mut g, 10, &[cpu("s1", 0.95), cpu("s2", 0.5)]), None);
        assert_eq!(g.blind().count(), 1);
        let t = step(&mut g, 15, &[cpu("s1", 0.97), cpu("s2", 0.99)]).unwrap();
        assert_eq!((t.since_s, t.at_s), (0.0, 15.0));
        assert_eq!(
            t.words(),
            "--abort-if 'server.cpu > 90 % for 15s': cpu of s1 was at 97 % last, from 0.0 s to 15.0 s"
        );
        g.sees(ServerGuard::Cpu);
        assert_eq!(g.blind().count(), 0);
        // Exactly at it is not above it.
        assert_eq!(guards(&["server.cpu > 90 %"]).shares(0, S, &[cpu("s1", 0.9)]), None);
        assert!(guards(&["server.cpu > 90 %"]).shares(0, S, &[cpu("s1", 0.91)]).is_some());
    }

    fn stage() -> Stage {
        let text = "version = 1\n[targets.t]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"other\"\nmix = { null = 1 }\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\n";
        Plan::from_toml(text).unwrap().stages.remove(0)
    }

    /// A slice of a second in which each of these ended after so long, and others began and wait.
    fn slice(workload: u16, responses_ms: &[u64], waiting: u64) -> Interval {
        let mut s = Series::new(SeriesId { stage: 0, workload, kind: OpKind::Null }, SeriesShape::default());
        for ms in responses_ms {
            s.response.record(ms * 1_000_000);
            s.counts.outcomes[Outcome::Ok.index()] += 1;
        }
        s.counts.started = responses_ms.len() as u64 + waiting;
        let mut i = Interval::empty(0);
        i.series.push(s);
        i
    }

    #[test]
    fn responses_of_one_workload_second_by_second() {
        let stage = stage();
        let mut g = guards(&["other.p99 > 50ms"]);
        // The load itself may be as slow as it likes.
        assert_eq!(g.slice(&stage, &slice(1, &[900; 100], 0), 0, S), None);
        let mut mostly = vec![10; 989];
        mostly.extend([80; 11]);
        let t = g.slice(&stage, &slice(0, &mostly, 0), S, 2 * S).unwrap();
        assert!(t.what.contains("p99 response of other was 8"), "{}", t.what);
        let mut g = guards(&["other.p99 > 50ms", "null.max > 2s"]);
        let few = vec![10; 989];
        assert_eq!(g.slice(&stage, &slice(0, &few, 0), 0, S), None);
    }

    #[test]
    fn nothing_that_ends_is_too_long_and_nothing_that_waits_is_no_value() {
        let stage = stage();
        let mut g = guards(&["other.p99 > 50ms for 2s"]);
        assert_eq!(g.slice(&stage, &slice(0, &[], 0), 0, S), None);
        assert_eq!(g.slice(&stage, &slice(0, &[], 4), S, 2 * S), None);
        assert!(g.slice(&stage, &slice(0, &[], 0), 2 * S, 3 * S).is_some(), "they wait on");
        g.begin_stage();
        assert_eq!(g.slice(&stage, &slice(0, &[], 0), 3 * S, 4 * S), None);
    }
}
