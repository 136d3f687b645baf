//! When the cluster was not at rest, over the whole run: what is drawn beside the rates, and by which a fall can be laid to it.

use std::collections::BTreeMap;

use plimsoll_model::observed::ServerQuantity as Q;
use plimsoll_model::summary::servers::BackgroundSpan;
use plimsoll_store::{ObservedSource, RunData, server_steps};

use super::SeenWindow;
use super::rest::{number, unrest};

/// More stretches than anybody reads: the first are kept.
const MOST: usize = 100;

/// One kind, over some time, with the most that was seen of it.
#[derive(Debug, Clone, PartialEq)]
struct Stretch {
    words: String,
    from_ns: u64,
    to_ns: u64,
    /// Of the last word of it.
    last_ns: u64,
    most: f64,
}

/// All stretches, in order of time; what several sources tell of at one time is one.
pub fn spans(data: &RunData, windows: &[SeenWindow<'_>]) -> Vec<BackgroundSpan> {
    let inside = |s: &Stretch| windows.iter().any(|w| s.from_ns <= w.to_ns && s.last_ns >= w.from_ns);
    let mut all: Vec<BackgroundSpan> = stretches(&data.observed)
        .iter()
        .map(|s| BackgroundSpan {
            what: s.words.replace("{}", &number(s.most)),
            start_s: s.from_ns as f64 / 1e9,
            end_s: s.to_ns as f64 / 1e9,
            in_window: inside(s),
        })
        .collect();
    all.sort_by(|a, b| a.start_s.total_cmp(&b.start_s).then_with(|| a.what.cmp(&b.what)));
    all.truncate(MOST);
    all
}

fn stretches(sources: &[ObservedSource]) -> Vec<Stretch> {
    let mut all: Vec<Stretch> = sources.iter().flat_map(of_source).collect();
    all.extend(scanned(sources));
    all.sort_by(|a, b| (&a.words, a.from_ns).cmp(&(&b.words, b.from_ns)));
    let mut out: Vec<Stretch> = Vec::new();
    for s in all {
        match out.last_mut().filter(|last| last.words == s.words && s.from_ns <= last.to_ns) {
            Some(last) => {
                (last.to_ns, last.last_ns) = (last.to_ns.max(s.to_ns), last.last_ns.max(s.last_ns));
                last.most = last.most.max(s.most);
            }
            None => out.push(s),
        }
    }
    out
}

/// From the first answer that tells of it to the first that does not. A source that says nothing for a while has not said that it is over.
fn of_source(source: &ObservedSource) -> Vec<Stretch> {
    let mut open: BTreeMap<String, Stretch> = BTreeMap::new();
    let mut out = Vec::new();
    for scrape in source.scrapes.iter().filter(|s| s.gap.is_none()) {
        let mut said: BTreeMap<String, f64> = BTreeMap::new();
        for (words, value) in scrape.subjects.iter().flat_map(|s| &s.readings).filter_map(unrest) {
            let most = said.entry(words).or_insert(value);
            *most = most.max(value);
        }
        let at_ns = scrape.at_ns;
        for (words, value) in &said {
            let new = || Stretch {
                words: words.clone(),
                from_ns: at_ns,
                to_ns: at_ns,
                last_ns: at_ns,
                most: *value,
            };
            let s = open.entry(words.clone()).or_insert_with(new);
            (s.to_ns, s.last_ns, s.most) = (at_ns, at_ns, s.most.max(*value));
        }
        let over: Vec<String> = open.keys().filter(|w| !said.contains_key(*w)).cloned().collect();
        out.extend(over.iter().filter_map(|w| open.remove(w)).map(|s| Stretch { to_ns: at_ns, ..s }));
    }
    out.extend(open.into_values());
    out
}

/// A scanner is told of by what it counts, between two readings; while it goes on, it is one stretch.
fn scanned(sources: &[ObservedSource]) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    for subject in server_steps(sources, 0, u64::MAX) {
        let mut last: Option<Stretch> = None;
        for step in &subject.steps {
            let Some(objects) = step.total(Q::ScannedObjects).filter(|n| *n > 0.0) else { continue };
            match last.as_mut().filter(|s| s.to_ns == step.from_ns) {
                Some(s) => (s.to_ns, s.last_ns, s.most) = (step.to_ns, step.to_ns, s.most + objects),
                None => {
                    let words = "scanner looked at {} object(s)".to_owned();
                    let new = Stretch {
                        words,
                        from_ns: step.from_ns,
                        to_ns: step.to_ns,
                        last_ns: step.to_ns,
                        most: objects,
                    };
                    out.extend(last.replace(new));
                }
            }
        }
        out.extend(last);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Scrape;
    use plimsoll_model::observed::{ReadSubject, ServerReading};

    const S: u64 = 1_000_000_000;

    /// Seconds, and what was said then; `None`: no answer.
    type SaidAt<'a> = (u64, Option<&'a [(Q, f64)]>);

    fn source(points: &[SaidAt<'_>]) -> ObservedSource {
        let scrape = |(at_s, said): &SaidAt<'_>| {
            let reading = |(quantity, value): &(Q, f64)| ServerReading {
                quantity: *quantity,
                label: String::new(),
                value: *value,
            };
            let subject = |said: &[(Q, f64)]| ReadSubject {
                host: "s1".into(),
                daemon: "minio@s1".into(),
                readings: said.iter().map(reading).collect(),
            };
            Scrape {
                at_ns: at_s * S,
                subjects: said.iter().map(|s| subject(s)).collect(),
                gap: said.is_none().then(|| "no answer".into()),
                ..Scrape::default()
            }
        };
        ObservedSource { observes: "minio s1".into(), every: 1, scrapes: points.iter().map(scrape).collect() }
    }

    fn told(sources: &[ObservedSource]) -> Vec<(String, u64, u64, f64)> {
        stretches(sources).into_iter().map(|s| (s.words, s.from_ns / S, s.to_ns / S, s.most)).collect()
    }

    #[test]
    fn healing_lasts_from_the_first_word_of_it_to_the_first_that_it_is_over() {
        let healing: &[(Q, f64)] = &[(Q::DrivesHealing, 2.0)];
        let more: &[(Q, f64)] = &[(Q::DrivesHealing, 3.0)];
        let rest: &[(Q, f64)] = &[(Q::DrivesHealing, 0.0)];
        let one = source(&[
            (0, Some(rest)),
            (5, Some(healing)),
            (10, None),
            (15, Some(more)),
            (20, Some(rest)),
            (25, Some(healing)),
        ]);
        let words = "{} drive(s) healing".to_owned();
        assert_eq!(
            told(std::slice::from_ref(&one)),
            [(words.clone(), 5, 20, 3.0), (words.clone(), 25, 25, 2.0)]
        );
        // Another source saw the same a little later.
        let other = source(&[(7, Some(healing)), (22, Some(rest))]);
        assert_eq!(told(&[one, other]), [(words.clone(), 5, 22, 3.0), (words, 25, 25, 2.0)]);
        assert_eq!(told(&[source(&[(0, Some(rest)), (5, Some(rest))])]), []);
    }

    #[test]
    fn a_scanner_is_seen_by_what_it_counts() {
        let at = |n: f64| vec![(Q::ScannedObjects, n)];
        let (a, b, c) = (at(100.0), at(150.0), at(170.0));
        let s = source(&[(0, Some(&a)), (5, Some(&a)), (10, Some(&b)), (15, Some(&c)), (20, Some(&c))]);
        assert_eq!(told(&[s]), [("scanner looked at {} object(s)".into(), 5, 15, 70.0)]);
    }
}
