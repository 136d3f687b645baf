//! What was seen of each host and daemon between two readings of it: differences of counters, and gauges at their ends.

use std::collections::BTreeMap;

use plimsoll_model::observed::{ReadSubject, ServerQuantity};

use super::samples::ObservedSource;

/// Readings that are nearer to each other than this are one: their difference would be of the scrape's own time.
const LEAST_STEP_NS: u64 = 200_000_000;

/// What a subject said at one time.
type Values<'a> = BTreeMap<(ServerQuantity, &'a str), f64>;

/// Between two readings of one subject.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStep<'a> {
    /// The first reading, nanoseconds since the run's start.
    pub from_ns: u64,
    /// The second.
    pub to_ns: u64,
    before: Values<'a>,
    after: Values<'a>,
}

impl<'a> ServerStep<'a> {
    /// Its length.
    pub fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }

    /// What a counter grew by. `None`: it was not read twice, or fell (some of the kernel's do, by a little).
    pub fn delta(&self, quantity: ServerQuantity, label: &'a str) -> Option<f64> {
        let grown = self.after.get(&(quantity, label))? - self.before.get(&(quantity, label))?;
        (grown >= 0.0).then_some(grown)
    }

    /// The same of all labels of a quantity, in their order.
    pub fn deltas(&self, quantity: ServerQuantity) -> impl Iterator<Item = (&'a str, f64)> {
        self.labels(quantity).filter_map(move |(label, _)| Some((label, self.delta(quantity, label)?)))
    }

    /// The sum over all labels. `None`: there is none.
    pub fn total(&self, quantity: ServerQuantity) -> Option<f64> {
        self.deltas(quantity).map(|(_, v)| v).reduce(|a, b| a + b)
    }

    /// A gauge at the end.
    pub fn gauge(&self, quantity: ServerQuantity, label: &'a str) -> Option<f64> {
        self.after.get(&(quantity, label)).copied()
    }

    /// The higher one of a gauge's values at both ends.
    pub fn most_of_gauge(&self, quantity: ServerQuantity, label: &'a str) -> Option<f64> {
        let both = [&self.before, &self.after].map(|v| v.get(&(quantity, label)).copied());
        both.into_iter().flatten().reduce(f64::max)
    }

    /// Labels of a quantity with their values at the end.
    pub fn labels(&self, quantity: ServerQuantity) -> impl Iterator<Item = (&'a str, f64)> {
        self.after
            .range((quantity, "")..)
            .take_while(move |((q, _), _)| *q == quantity)
            .map(|((_, l), v)| (*l, *v))
    }
}

/// One host, daemon or cluster over a stretch of time.
#[derive(Debug, Clone, PartialEq)]
pub struct SubjectSteps<'a> {
    /// Empty: the cluster as a whole.
    pub host: &'a str,
    /// Empty: the host itself.
    pub daemon: &'a str,
    /// In order of time, without those in which it was restarted.
    pub steps: Vec<ServerStep<'a>>,
    /// Times between which it was restarted: its counters fell.
    pub restarts: Vec<(u64, u64)>,
    /// How old its counters may be at a reading.
    pub age_ns: u64,
}

/// All that was seen between two times, by host and daemon. A reading tells of what was before it, back to the reading before, and as
/// far as its source's counters are old: only what lies wholly inside is taken. What two sources say of one subject is counted once.
pub fn server_steps(sources: &[ObservedSource], from_ns: u64, to_ns: u64) -> Vec<SubjectSteps<'_>> {
    let mut all: BTreeMap<(&str, &str), SubjectSteps<'_>> = BTreeMap::new();
    for source in sources {
        for (key, found) in of_source(source, from_ns, to_ns) {
            match all.get(&key) {
                Some(other) if other.steps.len() >= found.steps.len() => {}
                _ => {
                    all.insert(key, found);
                }
            }
        }
    }
    all.into_values().collect()
}

fn of_source(source: &ObservedSource, from_ns: u64, to_ns: u64) -> BTreeMap<(&str, &str), SubjectSteps<'_>> {
    let mut all: BTreeMap<(&str, &str), SubjectSteps<'_>> = BTreeMap::new();
    let mut last: BTreeMap<(&str, &str), (u64, Values<'_>)> = BTreeMap::new();
    for scrape in source.scrapes.iter().filter(|s| s.gap.is_none()) {
        if scrape.at_ns > to_ns || scrape.at_ns < from_ns.saturating_add(scrape.resolution_ns) {
            continue;
        }
        let apart_ns = LEAST_STEP_NS.max(scrape.resolution_ns);
        for subject in &scrape.subjects {
            let key = (subject.host.as_str(), subject.daemon.as_str());
            let values = values(subject);
            let Some((at_ns, before)) = last.get(&key) else {
                last.insert(key, (scrape.at_ns, values));
                continue;
            };
            if scrape.at_ns < at_ns.saturating_add(apart_ns) {
                continue;
            }
            let of = all.entry(key).or_insert_with(|| SubjectSteps {
                host: key.0,
                daemon: key.1,
                steps: Vec::new(),
                restarts: Vec::new(),
                age_ns: 0,
            });
            of.age_ns = of.age_ns.max(scrape.resolution_ns);
            if restarted(before, &values) {
                of.restarts.push((*at_ns, scrape.at_ns));
            } else {
                let (from_ns, before, after) = (*at_ns, before.clone(), values.clone());
                of.steps.push(ServerStep { from_ns, to_ns: scrape.at_ns, before, after });
            }
            last.insert(key, (scrape.at_ns, values));
        }
    }
    all
}

fn values(subject: &ReadSubject) -> Values<'_> {
    subject.readings.iter().map(|r| ((r.quantity, r.label.as_str()), r.value)).collect()
}

/// A counter fell. Idle, waiting and stolen time of a CPU are none: Linux corrects them, backwards, too.
fn restarted(before: &Values<'_>, after: &Values<'_>) -> bool {
    use ServerQuantity::{CpuIdleS, CpuIowaitS, CpuStealS};
    let falls = |(key, v): (&(ServerQuantity, &str), &f64)| {
        key.0.is_counter()
            && !matches!(key.0, CpuIdleS | CpuIowaitS | CpuStealS)
            && before.get(key).is_some_and(|b| v < b)
    };
    after.iter().any(falls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ServerQuantity::{CpuIdleS, NicTxBytes};
    use plimsoll_model::Scrape;
    use plimsoll_model::observed::ServerReading;

    fn source(resolution_s: u64, points: &[(u64, f64, f64)]) -> ObservedSource {
        let scrape = |(at_s, tx, idle): &(u64, f64, f64)| {
            let reading =
                |quantity, label: &str, value| ServerReading { quantity, label: label.into(), value };
            let readings = vec![reading(NicTxBytes, "eth0", *tx), reading(CpuIdleS, "0", *idle)];
            Scrape {
                at_ns: at_s * 1_000_000_000,
                resolution_ns: resolution_s * 1_000_000_000,
                subjects: vec![ReadSubject { host: "s1".into(), daemon: String::new(), readings }],
                ..Scrape::default()
            }
        };
        ObservedSource { observes: "node s1".into(), every: 1, scrapes: points.iter().map(scrape).collect() }
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn only_what_lies_inside_is_counted_and_a_gap_loses_nothing() {
        let mut s =
            source(0, &[(0, 0.0, 0.0), (5, 50.0, 4.0), (10, 100.0, 8.0), (20, 200.0, 9.0), (25, 999.0, 9.0)]);
        let gap = Scrape { at_ns: 15 * S, gap: Some("no answer".into()), ..Scrape::default() };
        s.scrapes.insert(3, gap);
        let sources = [s];
        let all = server_steps(&sources, 3 * S, 22 * S);
        assert_eq!(all[0].steps.len(), 2);
        let rate: Vec<f64> =
            all[0].steps.iter().map(|s| s.total(NicTxBytes).unwrap() / s.seconds()).collect();
        assert_eq!(rate, [10.0, 10.0]);
        assert_eq!(all[0].steps[1].seconds(), 10.0);
        assert!(server_steps(&sources, 6 * S, 12 * S).is_empty(), "one reading is no difference");
    }

    #[test]
    fn an_old_counter_tells_of_nothing_before_its_age() {
        // Read each 5 s, made each 15 s: neighbours may be the same values.
        let s = [source(
            15,
            &[
                (0, 0.0, 0.0),
                (5, 0.0, 0.0),
                (10, 0.0, 0.0),
                (15, 150.0, 0.0),
                (20, 150.0, 0.0),
                (30, 300.0, 0.0),
            ],
        )];
        let all = server_steps(&s, 0, 60 * S);
        let steps: Vec<(u64, u64)> = all[0].steps.iter().map(|s| (s.from_ns / S, s.to_ns / S)).collect();
        assert_eq!((steps, all[0].age_ns), (vec![(15, 30)], 15 * S));
        assert!(server_steps(&s, 6 * S, 30 * S).is_empty(), "at 20 s it may tell of 5 s");
    }

    #[test]
    fn a_counter_that_falls_is_a_restart_and_idle_time_may_fall_a_little() {
        let s = [source(0, &[(0, 100.0, 9.0), (5, 150.0, 8.9), (10, 7.0, 9.5), (15, 17.0, 9.9)])];
        let all = server_steps(&s, 0, 60 * S);
        assert_eq!(all[0].restarts, [(5 * S, 10 * S)]);
        let steps = &all[0].steps;
        assert_eq!(steps.len(), 2);
        assert_eq!((steps[0].delta(CpuIdleS, "0"), steps[1].delta(NicTxBytes, "eth0")), (None, Some(10.0)));
    }

    #[test]
    fn what_two_sources_say_of_one_host_counts_once() {
        let many = source(0, &[(0, 0.0, 0.0), (5, 1.0, 0.0), (10, 2.0, 0.0)]);
        let few = source(0, &[(0, 0.0, 0.0), (10, 2.0, 0.0)]);
        let sources = [few, many];
        let all = server_steps(&sources, 0, 60 * S);
        assert_eq!((all.len(), all[0].steps.len()), (1, 2));
    }
}
