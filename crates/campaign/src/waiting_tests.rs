//! What a session waits for: a time of day, and a machine at rest.

use std::cell::RefCell;
use std::rc::Rc;

use jiff::Timestamp;

use crate::cells::expand;
use crate::drive::CampaignEnd;
use crate::file::CampaignFile;
use crate::outside::{Outside, session, text};
use crate::result::result;

/// Two blocks of six runs: the first at 14:00, the second at 02:00 of the next day; nothing is switched on in between.
#[test]
fn blocks_are_measured_at_their_times_of_day_and_whoever_ends_the_wait_loses_nothing() {
    let head = "times = [\"02:00\", \"14:00\"]\ntime_zone = \"UTC\"";
    let f = CampaignFile::from_toml(&text("by-subject", "{ at_least = 2 }", head)).unwrap();
    let noon: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
    let outside = Rc::new(RefCell::new(Outside {
        clock_s: noon.as_second(),
        interrupt_waits: true,
        ..Outside::default()
    }));
    for _ in 0..2 {
        let (end, state) = session(&f, &outside);
        assert_eq!((end.unwrap(), state.done_runs()), (CampaignEnd::Interrupted, 0));
        let mut o = outside.borrow_mut();
        o.is_interrupted = false;
        assert_eq!(o.log, ["waits until 2026-11-24T14:00:00Z"]);
        o.log.clear();
    }
    outside.borrow_mut().interrupt_waits = false;
    let (end, state) = session(&f, &outside);
    assert_eq!(end.unwrap(), CampaignEnd::Complete);
    let log = outside.borrow().log.clone();
    assert_eq!(log[0], "waits until 2026-11-24T14:00:00Z");
    let second = log.iter().position(|l| l == "waits until 2026-11-25T02:00:00Z").unwrap();
    let ran = |log: &[String]| log.iter().filter(|l| l.contains("//")).count();
    assert_eq!((ran(&log[..second]), ran(&log[second..])), (6, 6), "{log:?}");
    let on = |word: &str| log[..second].iter().filter(|l| *l == word).count();
    assert_eq!((on("a before"), on("a after")), (1, 1), "it is switched off while it is waited: {log:?}");
    let times = |repeat: u32| -> Vec<&str> {
        let runs = state.cells.iter().flat_map(|c| &c.runs).filter(|r| r.repeat == repeat);
        runs.filter_map(|r| r.time.as_deref()).collect()
    };
    assert_eq!((times(0), times(1)), (vec!["14:00"; 6], vec!["02:00"; 6]));
    assert!(state.spent.time_s < 200.0, "waiting is no work: {:?}", state.spent);
    // Told apart by it.
    let all = result(&f, &expand(&f).unwrap(), &state);
    assert_eq!(crate::axes_of(&all), ["size", "time"]);
    let table = crate::pivot(&all, "time").unwrap();
    assert_eq!((table.values.len(), table.rows.len()), (2, 6));
    assert!(table.rows.iter().all(|r| r.cells.iter().flatten().count() == 2), "{table:?}");
    assert!(all.rows.iter().all(|r| r.runs.len() == 2) && all.by_time.iter().all(|r| r.runs.len() == 1));
}

#[test]
fn the_machine_is_waited_for_and_a_run_that_began_without_rest_says_so() {
    let head = "rest = { pause = \"1s\", wait = \"30s\" }";
    let f = CampaignFile::from_toml(&text("as-written", "{ at_least = 1 }", head)).unwrap();
    let outside = Rc::new(RefCell::new(Outside { unrest: vec!["sda is busy".into()], ..Outside::default() }));
    let (end, state) = session(&f, &outside);
    assert_eq!(end.unwrap(), CampaignEnd::Complete);
    let log = &outside.borrow().log;
    // After the subject's commands, which may be what moves the machine.
    assert_eq!(log[..3], ["a before", "waits 30 s at most", "a//put 4KiB 0"], "{log:?}");
    // Six runs of 12 s and 7 s of waiting, five pauses, and two commands.
    assert_eq!(state.spent.time_s, 6.0 * 19.0 + 5.0 + 2.0);
    let all = result(&f, &expand(&f).unwrap(), &state);
    assert!(all.rows.iter().all(|r| r.remarks.len() == 1), "{:?}", all.rows);
    assert!(all.rows[0].remarks[0].1.contains("30s") && all.rows[0].remarks[0].1.contains("sda is busy"));
}

/// A pause, a command or a wait for rest may take longer than what was left of the time of day: no run is of a time that has passed.
#[test]
fn no_run_is_of_a_time_that_passed_while_something_was_waited_for() {
    for (what, rest) in [
        ("pause", "pause = \"40m\""),
        ("command", "pause = \"0s\""),
        ("rest", "pause = \"0s\", wait = \"5h\""),
    ] {
        let head = format!("times = [\"02:00\", \"14:00\"]\ntime_zone = \"UTC\"\nrest = {{ {rest} }}");
        let f = CampaignFile::from_toml(&text("by-subject", "{ at_least = 1 }", &head)).unwrap();
        let begun: Timestamp = "2026-11-24T13:59:00Z".parse().unwrap();
        let mut o = Outside { clock_s: begun.as_second(), ..Outside::default() };
        match what {
            "pause" => o.pause_s = 3 * 3600,
            "command" => o.hook_s = 11 * 3600,
            _ => o.unrest_s = 5 * 3600,
        }
        let outside = Rc::new(RefCell::new(o));
        let (end, state) = session(&f, &outside);
        assert_eq!(end.unwrap(), CampaignEnd::Complete, "{what}");
        assert_eq!(state.done_runs(), 6);
        let ledger = String::from_utf8(outside.borrow().ledger.clone()).unwrap();
        for under in crate::ledger::entries(&ledger).unwrap() {
            let crate::ledger::LedgerEntry::Under(under) = under else { continue };
            let at: Timestamp = under.at.parse().unwrap();
            let time = under.time.unwrap();
            let hour = (at.as_second() / 3600) % 24;
            assert_eq!(time.of == "14:00", !(2..14).contains(&hour), "{what}: {} at {at}", time.of);
        }
    }
}

/// Asked a second time, it waits for no command: what comes after a subject is due when it is taken up again.
#[test]
fn a_command_that_was_not_waited_for_is_due_again() {
    let f = CampaignFile::from_toml(&text("as-written", "{ at_least = 1 }", "")).unwrap();
    let outside = Rc::new(RefCell::new(Outside {
        failing: vec!["off a".into()],
        is_waiting_over: true,
        ..Outside::default()
    }));
    let (end, state) = session(&f, &outside);
    assert!(matches!(end.unwrap(), CampaignEnd::Hopeless(_)));
    assert_eq!(state.open_subject.as_deref(), Some("a"));
    {
        let mut o = outside.borrow_mut();
        (o.is_waiting_over, o.failing) = (false, Vec::new());
        o.log.clear();
    }
    let (end, _) = session(&f, &outside);
    assert_eq!(end.unwrap(), CampaignEnd::Complete);
    let log = outside.borrow().log.clone();
    assert!(log.contains(&"a after".to_owned()), "{log:?}");
}
