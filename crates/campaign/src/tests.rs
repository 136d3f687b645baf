//! Whole campaigns with a simulated carrier: order, stop rule, hooks, budgets, and kills at any point.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_model::Estimate;
use proptest::prelude::*;

use crate::cells::{CampaignCell, expand};
use crate::drive::CampaignEnd;
use crate::figures::{CellFigure, CellRun};
use crate::file::CampaignFile;
use crate::ledger::{HookTime, LEDGER_FORMAT, LedgerEntry, RunSpent, UnderWay, entries};
use crate::outside::{Outside, file, session, text, whole};
use crate::result::{IntervalOf, result};
use crate::state::CampaignState;
use crate::{FileDifference, forecast, template};

#[test]
fn every_order_has_each_cell_once_in_each_block() {
    for order in ["random", "by-subject", "abba", "as-written"] {
        let f = file(order, "{ at_least = 4 }");
        let cells = expand(&f).unwrap();
        assert_eq!(cells.len(), 6);
        for b in 0..4 {
            let mut block = crate::order::block(&cells, f.order, f.seed, b);
            block.sort_unstable();
            assert_eq!(block, [0, 1, 2, 3, 4, 5], "{order}");
        }
    }
}

#[test]
fn pairs_turn_round() {
    let f = file("abba", "{ at_least = 2 }");
    let cells = expand(&f).unwrap();
    let subjects = |b| -> Vec<String> {
        crate::order::block(&cells, f.order, f.seed, b)
            .into_iter()
            .map(|i| cells[i].subject.clone())
            .collect()
    };
    assert_eq!(subjects(0), ["a", "b", "a", "b", "a", "b"]);
    assert_eq!(subjects(1), ["b", "a", "b", "a", "b", "a"]);
    let workloads = |b| -> Vec<String> {
        crate::order::block(&cells, f.order, f.seed, b)
            .into_iter()
            .map(|i| cells[i].workload.clone())
            .collect()
    };
    assert_eq!(workloads(0), workloads(1));
}

#[test]
fn blocks_differ_and_the_seed_repeats_them() {
    let f = file("random", "{ at_least = 4 }");
    let cells = expand(&f).unwrap();
    let order = |seed, b| crate::order::block(&cells, f.order, seed, b);
    assert_eq!(order(1, 0), order(1, 0));
    let all: std::collections::BTreeSet<Vec<usize>> = (0..20).map(|b| order(1, b)).collect();
    assert!(all.len() > 10, "{}", all.len());
}

#[test]
fn what_is_narrow_ends_early_and_what_is_wide_goes_on() {
    let f = file("random", "{ at_least = 3, at_most = 9, until_wide = 0.03 }");
    let (_, narrow) = whole(&f, 0.1);
    assert!(narrow.cells.iter().all(|c| c.runs.len() == 3));
    let (_, wide) = whole(&f, 8.0);
    assert!(wide.cells.iter().all(|c| c.runs.len() == 9));
}

#[test]
fn commands_are_run_when_the_subject_changes_and_after_the_last() {
    let (outside, _) = whole(&file("by-subject", "{ at_least = 2 }"), 0.0);
    let log = outside.borrow().log.clone();
    let hooks: Vec<&String> = log.iter().filter(|l| l.ends_with("before") || l.ends_with("after")).collect();
    assert!(hooks.chunks(2).all(|pair| pair[0] == "a before" && pair[1] == "a after"), "{log:?}");
    // Nothing of b is measured while a is switched on.
    let mut is_on = false;
    for line in &log {
        match line.as_str() {
            "a before" => is_on = true,
            "a after" => is_on = false,
            cell => assert_eq!(cell.starts_with("a/"), is_on, "{log:?}"),
        }
    }
}

#[test]
fn a_subject_that_fails_is_left_alone_and_the_others_are_measured() {
    let f = file("random", "{ at_least = 2 }");
    let outside = Rc::new(RefCell::new(Outside { failing: vec!["b/".into()], ..Outside::default() }));
    let (end, state) = session(&f, &outside);
    let CampaignEnd::Stuck(why) = end.unwrap() else { panic!("it should be stuck") };
    assert_eq!(why.into_iter().collect::<Vec<_>>(), [("b".to_owned(), "no such storage".to_owned())]);
    assert_eq!(state.to_go(), 6);
    assert_eq!(
        outside.borrow().begun.iter().filter(|(k, _)| k.starts_with("b/")).map(|(_, n)| n).sum::<u32>(),
        2
    );
    // When it is back, the rest is measured.
    outside.borrow_mut().failing.clear();
    assert_eq!(session(&f, &outside).0.unwrap(), CampaignEnd::Complete);
}

#[test]
fn a_command_that_fails_keeps_its_subject_from_being_measured() {
    let f = file("random", "{ at_least = 1 }");
    let outside = Rc::new(RefCell::new(Outside { failing: vec!["on a".into()], ..Outside::default() }));
    let (end, state) = session(&f, &outside);
    let CampaignEnd::Stuck(why) = end.unwrap() else { panic!("it should be stuck") };
    assert!(why["a"].contains("'on a' failed"), "{why:?}");
    assert_eq!(state.to_go(), 3);
    assert!(!outside.borrow().begun.keys().any(|k| k.starts_with("a/")));
    // What half of it did is undone.
    assert!(outside.borrow().log.contains(&"a after".to_owned()));
}

#[test]
fn a_command_that_leaves_something_in_the_way_ends_the_session() {
    let f = file("as-written", "{ at_least = 1 }");
    let outside = Rc::new(RefCell::new(Outside { failing: vec!["off a".into()], ..Outside::default() }));
    let (end, _) = session(&f, &outside);
    assert!(matches!(end.unwrap(), CampaignEnd::Hopeless(why) if why.contains("'off a' failed")));
    assert!(!outside.borrow().begun.keys().any(|k| k.starts_with("b/")));
    outside.borrow_mut().failing.clear();
    assert_eq!(session(&f, &outside).0.unwrap(), CampaignEnd::Complete);
}

/// Killed in its runs again and again, it ends where its budget does: what a run that does not count took is spent, too.
#[test]
fn a_budget_holds_what_killed_runs_took() {
    for budget in ["time = \"50s\"", "bytes = \"2500B\"", "requests = 2500"] {
        let text = text("as-written", "{ at_least = 1 }", &format!("budget = {{ {budget} }}"));
        let f =
            CampaignFile::from_toml(&text.replace("before = [\"on a\"]\nafter = [\"off a\"]\n", "")).unwrap();
        let cut = RunSpent { took_s: 20.0, bytes: 1000, requests: 1000, ..RunSpent::default() };
        let outside = Rc::new(RefCell::new(Outside { cut, ..Outside::default() }));
        for n in 1.. {
            {
                // Taken up, perhaps the line of the run before, the line of this one, and killed in it.
                let mut o = outside.borrow_mut();
                (o.kill_in, o.is_dead) = (Some(3), false);
            }
            if let (Ok(end), state) = session(&f, &outside) {
                assert!(
                    matches!(&end, CampaignEnd::Budget(what) if budget.starts_with(&what[..4])),
                    "{end:?}"
                );
                assert!((2..=4).contains(&state.dropped) && state.done_runs() == 0, "{budget}: {state:?}");
                break;
            }
            assert!(n < 10, "{budget}: it is never used up");
        }
    }
}

/// Of runs that could not be measured, too, by the clock: their record may have nothing.
#[test]
fn a_budget_holds_what_failed_runs_took() {
    let f = CampaignFile::from_toml(&text("as-written", "{ at_least = 1 }", "budget = { time = \"1h\" }"))
        .unwrap();
    let failing = vec!["a/".into(), "b/".into()];
    let outside = Rc::new(RefCell::new(Outside { failing, failing_s: 600, ..Outside::default() }));
    let (_, state) = session(&f, &outside);
    // Two of each subject; and two commands, of a second each.
    assert_eq!(state.spent.time_s, 4.0 * 600.0 + 2.0);
    let (end, state) = session(&f, &outside);
    assert!(matches!(end.unwrap(), CampaignEnd::Budget(_)));
    assert!(state.spent.time_s <= 3600.0 + 600.0, "{:?}", state.spent);
}

/// What is promised of reads and of writes by itself bounds them, each and mixed.
#[test]
fn a_promise_of_reads_or_writes_alone_says_what_a_run_takes() {
    let ops = |mix: &str, promised: &str| {
        let text = format!(
            "version = 1\nname = \"t\"\n[[subject]]\nname = \"a\"\npromised = {{ {promised} }}\n\
             target = {{ kind = \"block\", path = \"/tmp/disk\", size = \"1GiB\" }}\n\
             [[workload]]\nname = \"w\"\nmix = {{ {mix} }}\nsizes = [\"1MiB\"]\nduration = \"10s\"\nwarmup = \"0s\"\n"
        );
        let f = CampaignFile::from_toml(&text).unwrap();
        forecast::next_run(&f, &expand(&f).unwrap()[0], &[]).requests.map(|n| n.round())
    };
    let both = "read_bytes_per_s = \"100MiB/s\", write_bytes_per_s = \"20MiB/s\"";
    assert_eq!(ops("read = 1", both), Some(1000.0));
    assert_eq!(ops("write = 1", both), Some(200.0));
    // Of four ops one is written: 80 a second, of which 20 MiB are; 60 MiB are read, which is less than is promised.
    assert_eq!(ops("read = 3, write = 1", both), Some(800.0));
    assert_eq!(ops("write = 1", "read_bytes_per_s = \"100MiB/s\""), None);
    assert_eq!(ops("write = 1", "read_bytes_per_s = \"100MiB/s\", bytes_per_s = \"50MiB/s\""), Some(500.0));
    assert_eq!(ops("read = 1", "bytes_per_s = \"50MiB/s\", ops_per_s = \"10/s\""), Some(100.0));
}

/// Killed in any of the commands: what comes after the subject is due, and all of it.
#[test]
fn what_comes_after_a_subject_is_due_wherever_a_kill_comes() {
    let text =
        text("as-written", "{ at_least = 1 }", "").replace("[\"off a\"]", "[\"off a\", \"off a too\"]");
    let f = CampaignFile::from_toml(&text).unwrap();
    let cells = expand(&f).unwrap();
    let mut killed_in = [0; 3];
    for n in 0.. {
        let outside = Rc::new(RefCell::new(Outside { kill_in: Some(n), ..Outside::default() }));
        if session(&f, &outside).0.is_ok() {
            break;
        }
        let o = outside.borrow();
        let hooks = o.log.iter().filter(|l| l.starts_with("a ")).count();
        if hooks == 0 || o.log.iter().any(|l| l.starts_with("b/")) {
            continue;
        }
        killed_in[hooks - 1] += 1;
        let whole = String::from_utf8_lossy(&o.ledger).into_owned();
        let known = entries(&whole).unwrap();
        let is_closed = known.iter().any(|e| matches!(e, LedgerEntry::Hook { when: HookTime::After, .. }));
        let state = CampaignState::of(&f, &cells, &known);
        assert_eq!(state.open_subject.is_some(), !is_closed, "step {n}: {:?}", o.log);
        assert!(!is_closed || hooks == 3, "step {n}: {:?}", o.log);
    }
    assert!(killed_in.iter().all(|n| *n > 0), "{killed_in:?}");
}

#[test]
fn no_run_is_begun_that_goes_beyond_the_budget() {
    let f =
        CampaignFile::from_toml(&text("random", "{ at_least = 9 }", "budget = { time = \"200s\" }")).unwrap();
    let outside = Rc::new(RefCell::new(Outside::default()));
    let (end, state) = session(&f, &outside);
    assert_eq!(end.unwrap(), CampaignEnd::Budget("time: 200s".into()));
    // Commands of the last subject come on top.
    assert!(state.spent.time_s <= 204.0 && state.spent.time_s > 180.0, "{:?}", state.spent);
}

/// Commands are part of what a run takes: those before it leave it less, and those after it are due when it has ended.
#[test]
fn a_budget_of_time_holds_what_commands_take() {
    let of = |budget: &str| {
        let budget = format!("budget = {{ time = \"{budget}\" }}");
        CampaignFile::from_toml(&text("as-written", "{ at_least = 9 }", &budget)).unwrap()
    };
    // What comes before leaves no time for a run of 10 s: none is begun.
    let outside = Rc::new(RefCell::new(Outside { hook_s: 150, ..Outside::default() }));
    let (end, state) = session(&of("155s"), &outside);
    assert_eq!(end.unwrap(), CampaignEnd::Budget("time: 155s".into()));
    assert!(outside.borrow().begun.is_empty() && state.spent.time_s == 300.0, "{:?}", state.spent);
    // A block takes 2 x 30 s of commands and 6 x 12 s of runs. Two fit; of a third not even the first run with its commands does.
    let outside = Rc::new(RefCell::new(Outside { hook_s: 30, ..Outside::default() }));
    let (end, state) = session(&of("300s"), &outside);
    assert_eq!(end.unwrap(), CampaignEnd::Budget("time: 5m".into()));
    assert_eq!((state.spent.time_s, state.done_runs()), (264.0, 12));
    // The next session knows it from the ledger, and switches nothing on in vain.
    let log = outside.borrow().log.len();
    assert!(matches!(session(&of("300s"), &outside).0.unwrap(), CampaignEnd::Budget(_)));
    assert_eq!(outside.borrow().log.len(), log);
}

#[test]
fn a_budget_for_less_than_one_of_each_is_told() {
    let f =
        CampaignFile::from_toml(&text("random", "{ at_least = 1 }", "budget = { time = \"60s\" }")).unwrap();
    let cells = expand(&f).unwrap();
    let state = CampaignState::new(&f, &cells);
    let once = forecast::one_each(&f, &cells, &state);
    assert_eq!(once.time_s, 72.0);
    assert_eq!(forecast::beyond(&f, &state.spent, &once), Some("time: 1m".into()));
}

#[test]
fn the_interval_between_instances_is_the_one_in_the_table() {
    let text = r#"
version = 1
name = "t"
repeat = { at_least = 2 }
[[subject]]
name = "s"
[[subject.instance]]
name = "1"
target = { kind = "null" }
[[subject.instance]]
name = "2"
target = { kind = "null" }
[[workload]]
name = "put"
mix = { put = 1 }
"#;
    let f = CampaignFile::from_toml(text).unwrap();
    let cells = expand(&f).unwrap();
    let mut state = CampaignState::new(&f, &cells);
    for (cell, values) in cells.iter().zip([[100.0, 102.0], [110.0, 112.0]]) {
        for (i, value) in values.into_iter().enumerate() {
            let figure = CellFigure {
                line: "put/put".into(),
                valid: true,
                ops_per_s: Some(Estimate::symmetric(value, 0.1, 30.0)),
                ..CellFigure::default()
            };
            let run =
                CellRun { repeat: i as u32, answered: true, figures: vec![figure], ..CellRun::default() };
            state.apply(&LedgerEntry::Done {
                cell: cell.key.clone(),
                hash: cell.hash.clone(),
                run: Box::new(run),
                at: String::new(),
            });
        }
    }
    let rows = result(&f, &cells, &state).rows;
    assert_eq!(rows.len(), 1);
    let (row, e) = (&rows[0], rows[0].ops_per_s.unwrap());
    assert_eq!((row.interval_of, row.instances, row.to_go), (Some(IntervalOf::Instances), 2, 0));
    // Means 101 and 111: 106 ± 12.706 x 7.071 / sqrt 2.
    assert!((e.value - 106.0).abs() < 1e-9 && (e.half_width() - 63.53).abs() < 0.01, "{e:?}");
    assert!((row.sd_within.unwrap() - 2f64.sqrt()).abs() < 1e-9);
    assert!((row.sd_between.unwrap() - 7.0711).abs() < 1e-3);
}

#[test]
fn void_runs_are_in_no_figure() {
    let f = file("random", "{ at_least = 2 }");
    let cells = expand(&f).unwrap();
    let mut state = CampaignState::new(&f, &cells);
    let run = CellRun {
        run: "r".into(),
        void: vec!["V07".into()],
        figures: vec![CellFigure { ops_per_s: Some(Estimate::exact(1e9)), ..CellFigure::default() }],
        ..CellRun::default()
    };
    let (cell, hash) = (cells[0].key.clone(), cells[0].hash.clone());
    state.apply(&LedgerEntry::Done { cell, hash, run: Box::new(run), at: String::new() });
    let row = &result(&f, &cells, &state).rows[0];
    assert_eq!((row.ops_per_s, row.runs.len(), row.void.len(), row.to_go), (None, 0, 1, 1));
}

/// Every line of these ends with what to do, and names the place.
#[test]
fn mistakes_are_told_with_place_and_remedy() {
    let sound = text("random", "{ at_least = 2 }", "");
    for (from, to, place, problem) in [
        ("version = 1", "version = 9", "version", "not a campaign version"),
        ("name = \"t\"", "name = \"../t\"", "name", "cannot name a directory"),
        ("at_least = 2", "at_lest = 2", "line 5", "unknown field `at_lest`"),
        ("at_least = 2", "at_least = 0", "repeat", "between 1 and"),
        ("at_least = 2", "at_least = 2, until_wide = 0.03", "repeat", "at_least = 3"),
        ("name = \"b\"", "name = \"a\"", "subject 'a'", "two of this name"),
        ("duration = \"10s\"", "duraton = \"10s\"", "line 20", "unknown field `duraton`"),
        ("mix = { get = 1 }", "mix = {}", "workload 'get'", "has no mix"),
        ("mix = { get = 1 }", "mix = { get = 1 }\nof_promised = 1.0", "workload 'get'", "what 'a' promises"),
        (
            "mix = { get = 1 }",
            "only = { x = \"y\" }\nmix = { get = 1 }\nlimits = { budget = \"1m\" }\nspeedtest = { budget = \"1m\" }",
            "workload 'get'",
            "exclude",
        ),
        (
            "target = { kind = \"null\" }",
            "target = { kind = \"null\" }\nruns = [\"r\"]",
            "subject 'a'",
            "one of",
        ),
        ("on a", "FILL-IN", "line 9", "FILL-IN still stands here"),
        (
            "order = \"random\"",
            "options = { trace = \"/tmp/x\" }",
            "options.trace",
            "every run after the first",
        ),
        (
            "sizes = [\"4KiB\", \"1MiB\"]",
            "sizes = [\"4KiB\", \"4096\"]",
            "workload 'put'",
            "two of its cells",
        ),
    ] {
        let bad = sound.replacen(from, to, 1);
        assert_ne!(bad, sound, "{from}");
        let e = CampaignFile::from_toml(&bad).unwrap_err();
        assert!(
            e.place.contains(place) && e.problem.contains(problem) && !e.remedy.is_empty(),
            "{to}: {e:?}"
        );
    }
}

#[test]
fn an_edit_is_named() {
    let old_text = text("random", "{ at_least = 2 }", "");
    let new_text =
        old_text.replace("\"1MiB\"", "\"8MiB\"").replacen("duration = \"10s\"", "duration = \"20s\"", 1);
    let (old, new) =
        (CampaignFile::from_toml(&old_text).unwrap(), CampaignFile::from_toml(&new_text).unwrap());
    let hashes = expand(&old).unwrap().into_iter().map(|c| (c.key, c.hash)).collect();
    let d = FileDifference::of(&hashes, &expand(&new).unwrap()).with_places(&old, &new);
    assert_eq!(d.changed, ["a//put 4KiB", "b//put 4KiB"]);
    assert_eq!((d.new.len(), d.gone.len()), (2, 2));
    assert!(d.lines().iter().any(|l| l == "workload 'put'.duration: '20s' was '10s'"), "{:?}", d.lines());
    // What says the same in other words is no edit.
    let same = CampaignFile::from_toml(&format!("# a comment\n{old_text}")).unwrap();
    assert!(FileDifference::of(&hashes, &expand(&same).unwrap()).with_places(&old, &same).is_empty());
}

#[test]
fn an_entry_torn_in_the_middle_is_damage_unless_a_session_follows() {
    let line = |e: &LedgerEntry| serde_json::to_string(e).unwrap() + "\n";
    let begun = line(&LedgerEntry::Begun {
        format: LEDGER_FORMAT.into(),
        name: "t".into(),
        fresh: 1,
        at: String::new(),
    });
    let opened = line(&LedgerEntry::Opened {
        version: "0".into(),
        budget_cost: None,
        fleet: Vec::new(),
        at: String::new(),
    });
    let ended = line(&LedgerEntry::Ended { how: "complete".into(), at: String::new() });
    assert_eq!(entries(&format!("{begun}{opened}{{\"ent")).unwrap().len(), 2);
    assert_eq!(entries(&format!("{begun}{opened}{{\"ent\n{opened}")).unwrap().len(), 3);
    assert_eq!(entries(&format!("{begun}{opened}{{\"ent\n{{\"en\n{opened}")).unwrap().len(), 3);
    assert_eq!(entries(&format!("{begun}{opened}{{\"ent\n{ended}")).unwrap_err().0, 3);
    assert!(entries(&begun.replace("ledger/1", "ledger/9")).unwrap_err().1.contains("not a format"));
    assert!(entries(&ended).is_err());
}

/// A ledger may be anybody's: what it names is made, or cleaned up, beside the runs and nowhere else.
#[test]
fn a_run_outside_the_directory_of_runs_is_damage() {
    let begun =
        LedgerEntry::Begun { format: LEDGER_FORMAT.into(), name: "t".into(), fresh: 1, at: String::new() };
    let line = |e: &LedgerEntry| serde_json::to_string(e).unwrap() + "\n";
    let read = |run: &str| {
        let under = UnderWay {
            cell: "a//put".into(),
            hash: String::new(),
            repeat: 0,
            run: run.into(),
            ..UnderWay::default()
        };
        entries(&(line(&begun) + &line(&LedgerEntry::Under(under))))
    };
    assert_eq!(read("20261123-120000-0a1b").unwrap().len(), 2);
    for run in ["../other/20261123-120000-0a1b", "/tmp/20261123-120000-0a1b", "", ".", "..", "a b", "x\n"] {
        let (at, problem) = read(run).unwrap_err();
        assert!(at == 2 && problem.contains("names no run"), "{run}: {problem}");
    }
}

/// A directory that has the name of a run under way is this campaign's only if its plan says so.
#[test]
fn a_run_is_known_by_the_labels_of_its_plan() {
    let f = file("random", "{ at_least = 2 }");
    let cell = &expand(&f).unwrap()[0];
    let under = UnderWay {
        cell: cell.key.clone(),
        hash: cell.hash.clone(),
        repeat: 1,
        run: "20261123-120000-0a1b".into(),
        ..UnderWay::default()
    };
    let labels = cell.plan(1, 0).unwrap().labels;
    assert!(under.is_of(&labels, "t"));
    assert!(!under.is_of(&labels, "u") && !under.is_of(&BTreeMap::new(), "t"));
    assert!(!under.is_of(&cell.plan(0, 0).unwrap().labels, "t"), "another repeat");
    for other in &expand(&f).unwrap()[1..] {
        assert!(!under.is_of(&other.plan(1, 0).unwrap().labels, "t"), "{}", other.key);
    }
    assert!(!UnderWay { cell: "nonsense".into(), ..under }.is_of(&labels, "t"));
}

/// What is small in the file and large once for each cell is refused before any cell is made.
#[test]
fn what_every_cell_would_repeat_is_bounded() {
    let depths: Vec<String> = (1..=4900).map(|n| n.to_string()).collect();
    let sound = text("random", "{ at_least = 2 }", "").replacen(
        "mix = { get = 1 }",
        &format!("mix = {{ get = 1 }}\nconcurrency = [{}]", depths.join(", ")),
        1,
    );
    assert_eq!(expand(&CampaignFile::from_toml(&sound).unwrap()).unwrap().len(), 2 * 4902);
    let large = "x".repeat(100_000);
    for more in
        [format!("labels = {{ note = \"{large}\" }}"), format!("options = {{ mark_at = [\"{large}\"] }}")]
    {
        let e = CampaignFile::from_toml(&sound.replacen("order = \"random\"", &more, 1)).unwrap_err();
        assert!(e.problem.contains("for each of") && !e.remedy.is_empty(), "{e}");
    }
    let e = CampaignFile::from_toml(&sound.replacen("\"on a\"", &format!("\"{large}\""), 1)).unwrap_err();
    assert!(e.problem.contains("for each of"), "{e}");
    let e = CampaignFile::from_toml(&format!("{sound}# {}", large.repeat(42))).unwrap_err();
    assert!(e.problem.contains("longer than 4 MiB"), "{e}");
    let many: String =
        (0..3000).map(|n| format!("[[workload]]\nname = \"w{n}\"\nmix = {{ put = 1 }}\n")).collect();
    let e = CampaignFile::from_toml(&format!("{sound}{many}")).unwrap_err();
    assert!(e.problem.contains("more than"), "{e}");
}

/// Templates say what is to be filled in, and hold when it is.
#[test]
fn templates_hold_once_they_are_filled_in() {
    for (name, _, others, own) in crate::TEMPLATES {
        let e = CampaignFile::from_toml(others).unwrap_err();
        assert!(e.place.starts_with("line") && e.problem.contains("FILL-IN"), "{name}: {e}");
        let place =
            if name.contains("disk") || name.contains("block") { "/mnt/x" } else { "http://127.0.0.1:9000" };
        let filled = others.replace("bucket = \"FILL-IN\"", "bucket = \"bench\"").replace("FILL-IN", place);
        CampaignFile::from_toml(&filled).unwrap_or_else(|e| panic!("{name}: {e}"));
        CampaignFile::from_toml(own).unwrap_or_else(|e| panic!("{name}, embedded: {e}"));
        assert_eq!(template(name, true), Some(own));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Killed at any points (in a run, between its end and its line, in the middle of a line) and taken up each time: each cell was
    /// measured exactly as often as was asked, no run counts twice, and a kill costs one run at the most.
    #[test]
    fn killed_anywhere_nothing_is_lost_and_one_run_at_most_is_made_again(
        kills in proptest::collection::vec(0u32..40, 0..12),
        order in prop::sample::select(vec!["random", "by-subject", "abba", "as-written"]),
        is_adaptive: bool,
    ) {
        let repeat = if is_adaptive { "{ at_least = 3, at_most = 5, until_wide = 0.02 }" } else { "{ at_least = 3 }" };
        let f = file(order, repeat);
        let outside = Rc::new(RefCell::new(Outside { spread: 1.5, ..Outside::default() }));
        let mut killed = 0;
        let mut plan = kills.into_iter();
        let state = loop {
            let kill_in = plan.next();
            { let mut o = outside.borrow_mut(); o.kill_in = kill_in; o.is_dead = false; }
            match session(&f, &outside) {
                (Ok(end), state) => { prop_assert_eq!(end, CampaignEnd::Complete); break state; }
                (Err(_), _) => killed += 1,
            }
        };
        let (_, undisturbed) = whole(&f, 1.5);
        for ((cell, one), other) in expand(&f).unwrap().iter().zip(&state.cells).zip(&undisturbed.cells) {
            prop_assert_eq!(one.runs.len(), other.runs.len());
            prop_assert_eq!(one.runs.len() as u32, one.wanted);
            let mut names: Vec<&str> = one.runs.iter().map(|r| r.run.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(names.len(), one.runs.len());
            let repeats: Vec<u32> = one.runs.iter().map(|r| r.repeat).collect();
            prop_assert_eq!(repeats, (0..one.wanted).collect::<Vec<_>>(), "{}", &cell.key);
        }
        let o = outside.borrow();
        let (made, counted) = (o.begun.values().sum::<u32>(), state.done_runs());
        prop_assert!(made - counted <= killed, "{} made, {} count, {} kills", made, counted, killed);
    }
}

#[test]
fn a_subject_has_servers_of_its_own_and_the_files_guards_hold_for_each() {
    let subject = |name: &str, more: &str| {
        format!(
            "[[subject]]\nname = \"{name}\"\n{more}[subject.target]\nkind = \"s3\"\nendpoints = [\"http://h:9000\"]\nbucket = \"b\"\n"
        )
    };
    let ec = |data: u32, parity: u32| {
        format!(
            "cluster = {{ version = 1, software = \"minio\", redundancy = \"ec:{data}+{parity}\", node = [{{ name = \"s{{1...4}}\" }}] }}\n\
             observe = [{{ make = \"node\", url = \"http://s{{1...4}}:9100\" }}]\nabort_if = [\"server.cpu > 90 % for 30s\"]\n"
        )
    };
    let text = |first: &str| {
        format!(
            "version = 1\nname = \"c\"\n[options]\nabort_if = [\"put.p99 > 5s\"]\n{}{}[[workload]]\nname = \"w\"\nmix = {{ put = 1 }}\n",
            subject("EC 2", first),
            subject("plain", "")
        )
    };
    let f = CampaignFile::from_toml(&text(&ec(6, 2))).unwrap();
    let cells = expand(&f).unwrap();
    let options: Vec<_> = cells.iter().map(CampaignCell::options).collect();
    assert_eq!(options[0].abort_if, ["put.p99 > 5s", "server.cpu > 90 % for 30s"]);
    assert_eq!((options[0].observe.len(), options[0].cluster.as_ref().unwrap().node_count()), (1, 4));
    assert_eq!((&cells[0].labels["ec"], &cells[0].labels["nodes"]), (&"6+2".to_owned(), &"4".to_owned()));
    assert_eq!(
        (options[1].abort_if.len(), options[1].observe.len(), options[1].cluster.is_none()),
        (1, 0, true)
    );
    assert!(!cells[1].labels.contains_key("ec"));
    // Another redundancy is another thing that is measured, and of that subject alone.
    let other = expand(&CampaignFile::from_toml(&text(&ec(5, 3))).unwrap()).unwrap();
    assert!(other[0].hash != cells[0].hash && other[1].hash == cells[1].hash);
    // What is wrong is said before anything is begun.
    let blind = text("abort_if = [\"server.cpu > 90 %\"]\n");
    let said = CampaignFile::from_toml(&blind).unwrap_err().to_string();
    assert!(said.contains("no server is observed"), "{said}");
    let shards = CampaignFile::from_toml(&text(&ec(6, 2).replace("ec:6+2", "6+2"))).unwrap_err().to_string();
    assert!(shards.contains("is no redundancy"), "{shards}");
}
