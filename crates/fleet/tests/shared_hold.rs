//! An image that agents share is locked by one of them for all. When that one is lost, another has the lock before the run goes on, or the
//! run ends.

mod support;

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use plimsoll_bus::Weather;
use plimsoll_fleet::Bounds;
use plimsoll_model::Event;
use plimsoll_store::RunDir;
use rustix::fs::{FlockOperation, flock};
use support::{FleetHere, Ran};

const DEADMAN: Duration = Duration::from_millis(2500);

fn plan(image: &Path, duration: &str) -> String {
    let image = image.display();
    format!(
        r#"
version = 1
[options]
shared = true
on_agent_loss = "continue"
[targets.t]
kind = "block"
path = "{image}"
destroy_data = "{image}"
buffered = true
layout = false
invalidate = false
[[stage]]
warmup = "0s"
[[stage.workload]]
name = "w"
mix = {{ write = 1 }}
size = "4KiB"
jobs = 3
concurrency = 1
pacing = {{ constant = "60/s" }}
stop = {{ duration = "{duration}" }}
"#
    )
}

fn image(fleet: &FleetHere) -> std::path::PathBuf {
    let path = fleet.root().join("image");
    File::create(&path).unwrap().set_len(16 << 20).unwrap();
    path
}

fn three() -> FleetHere {
    let fleet = FleetHere::new(Weather::default()).patience(DEADMAN);
    let bounds = Bounds { dirs: vec![fleet.root().to_owned()], ..Bounds::default() };
    ["a", "b", "c"].into_iter().fold(fleet, |f, name| f.agent_within(name, bounds.clone()))
}

/// Cuts off the agent that holds the image, once there is load.
fn cut_off(fleet: &FleetHere, event: &Event) {
    if matches!(event, Event::Live(_)) {
        fleet.bus("a").cut();
    }
}

/// Whether another run would be refused.
fn is_locked(image: &Path) -> bool {
    flock(File::open(image).unwrap(), FlockOperation::NonBlockingLockExclusive).is_err()
}

fn said(ran: &Ran, text: &str) -> bool {
    ran.messages().iter().any(|t| t.contains(text))
}

#[test]
fn what_a_lost_agent_held_another_one_holds_before_the_run_goes_on() {
    let fleet = three();
    let image = image(&fleet);
    let mut taken_over = None;
    let ran = fleet.run_and(&plan(&image, "12s"), |fleet, event| {
        cut_off(fleet, event);
        if matches!(event, Event::Message(text) if text.contains("from now on, in place of a")) {
            taken_over = Some(is_locked(&image));
        }
    });
    assert_eq!(taken_over, Some(true), "{:?}", ran.messages());
    let finished = ran.finished();
    assert!(finished.summary.findings.iter().all(|f| f.name != "failed"), "{:?}", finished.summary.findings);
    assert_eq!(RunDir::open(&finished.path).unwrap().sealed().unwrap().unwrap().end, "done");
    assert!(!is_locked(&image), "it is let go of at the end");
}

/// One run whose image somebody waits for. `None`: an agent that looks for the lock now and then came before who waits for it, as the
/// kernel allows: it wakes a waiter, who has to take it then.
fn run_that_somebody_waits_for() -> Option<Ran> {
    let fleet = three();
    let image = image(&fleet);
    let theirs = File::open(&image).unwrap();
    let waits = std::cell::RefCell::new(None);
    let ran = fleet.run_and(&plan(&image, "20s"), |fleet, event| {
        cut_off(fleet, event);
        if matches!(event, Event::Live(_)) && waits.borrow().is_none() {
            let theirs = theirs.try_clone().unwrap();
            let waiting = std::thread::spawn(move || flock(&theirs, FlockOperation::LockExclusive));
            *waits.borrow_mut() = Some(waiting);
        }
    });
    // At the end at the latest: nobody of the run holds it then.
    waits.take().unwrap().join().unwrap().unwrap();
    (!said(&ran, "from now on, in place of a")).then_some(ran)
}

#[test]
fn a_run_ends_whose_image_is_somebody_elses_by_now() {
    let ran = (0..8).find_map(|_| run_that_somebody_waits_for()).expect("who waits has the lock in the end");
    assert!(
        said(&ran, "is held by nobody who is left: agent a, which held it, is lost"),
        "{:?}",
        ran.messages()
    );
    let finished = ran.finished();
    let failed: Vec<_> = finished.summary.findings.iter().filter(|f| f.name == "failed").collect();
    assert!(
        failed.len() == 1 && failed[0].text.contains("is held by nobody"),
        "{:?}",
        finished.summary.findings
    );
    assert_eq!(finished.exit_code, 3);
}
