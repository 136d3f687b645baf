//! Waits until the machine is at rest before a cell: CPUs and disks by /proc, as a run's samples have them, and observed servers by what
//! they say of healing and scrubbing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_campaign::{CampaignCell, Rested, wait_for_rest};
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_model::{Plan, Scrape};
use plimsoll_run::sample::{Source, rest};
use plimsoll_setup::observe::{ObserveSetting, Observers, ScrapeSink, places};

/// From one look to the next.
const LOOK: Duration = Duration::from_secs(1);

/// Reasons of each source, by its number, host and daemon: until it says something else.
type Heard = Arc<Mutex<BTreeMap<(usize, String), Vec<String>>>>;

/// `sleep`: sleeps, and gives false where somebody ends the wait. `tell`: what cannot be asked.
pub fn await_rest(
    cell: &CampaignCell,
    limit: Duration,
    mut sleep: impl FnMut(Duration) -> bool,
    tell: impl Fn(&str),
) -> Rested {
    let began = Instant::now();
    let heard = Heard::default();
    let observers = cell.plan(0, 0).and_then(|plan| observe(&plan, &heard, tell));
    let source = Source::new(rest::whole_disks());
    let take = || source.take(began.elapsed().as_nanos() as u64);
    let mut before = take();
    let rested = wait_for_rest(limit, || {
        if !sleep(LOOK) {
            return None;
        }
        let after = take();
        let mut found = rest::unrest(&before, &after);
        before = after;
        let servers = heard.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(servers.values().flatten().cloned());
        Some((began.elapsed().as_secs_f64(), found))
    });
    drop(observers);
    rested
}

/// Asks the servers that the cell observes, until it is dropped. One that says nothing is told, and not waited for.
fn observe(plan: &Plan, heard: &Heard, tell: impl Fn(&str)) -> Option<Observers> {
    // What is wrong with them is told by the run.
    let places = places(plan).ok().filter(|places| !places.is_empty())?;
    let names: Vec<String> = places.iter().map(|p| p.name()).collect();
    let setting = ObserveSetting { every: plan.observe_every(), keys: None, epoch_ns: monotonic_ns() };
    let kept = Arc::clone(heard);
    let sink: ScrapeSink = Arc::new(move |number, scrape| keep(&kept, number, &scrape));
    let observers = Observers::start(places, &setting, &sink).ok()?;
    for (number, why) in observers.first_troubles() {
        tell(&format!("{} is not asked whether it is at rest: {why}", names[number]));
    }
    Some(observers)
}

fn keep(heard: &Heard, number: usize, scrape: &Scrape) {
    let whose = scrape.subjects.first().map_or(String::new(), |s| format!("{} {}", s.host, s.daemon));
    let reasons = plimsoll_judge::background_work(scrape);
    heard.lock().unwrap_or_else(PoisonError::into_inner).insert((number, whose), reasons);
}

#[cfg(test)]
mod tests {
    use plimsoll_model::observed::{ReadSubject, ServerQuantity, ServerReading};

    use super::*;

    #[test]
    fn what_a_source_said_last_is_what_holds() {
        let heard = Heard::default();
        let scrape = |healing: f64| Scrape {
            subjects: vec![ReadSubject {
                host: "s1".into(),
                daemon: String::new(),
                readings: vec![ServerReading {
                    quantity: ServerQuantity::DrivesHealing,
                    label: String::new(),
                    value: healing,
                }],
            }],
            ..Scrape::default()
        };
        let reasons = || heard.lock().unwrap().values().flatten().cloned().collect::<Vec<_>>();
        keep(&heard, 0, &scrape(2.0));
        keep(&heard, 1, &scrape(0.0));
        assert_eq!(reasons(), ["2 drive(s) healing"]);
        keep(&heard, 0, &scrape(0.0));
        assert!(reasons().is_empty());
    }
}
