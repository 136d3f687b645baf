//! What agents keep of their own, and how it reaches the run: after a loss, after the end, after a conductor that was killed.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_bus::Weather;
use plimsoll_fleet::Choice;
use plimsoll_model::{Event, Interval};
use plimsoll_run::{Collected, CrewChoice, Options, collect, resume};
use plimsoll_setup::Interrupt;
use plimsoll_store::{Mark, RunDir};
use support::{FleetHere, bad_weather, stored};

const PATIENCE: Duration = Duration::from_millis(2500);

/// A load of ops that do nothing, 100 a second and agent.
fn null(stages: &[&str]) -> String {
    let stage = |duration: &&str| {
        format!(
            "[[stage]]\nwarmup = \"0s\"\n[[stage.workload]]\nname = \"w\"\nmix = {{ null = 1 }}\nconcurrency = 3\n\
             pacing = {{ constant = \"300/s\" }}\nstop = {{ duration = \"{duration}\" }}\n"
        )
    };
    let stages: String = stages.iter().map(stage).collect();
    format!("version = 1\n[targets.n]\nkind = \"null\"\n{stages}")
}

fn three(weather: Weather) -> FleetHere {
    ["a", "b", "c"].iter().fold(FleetHere::new(weather), |f, name| f.agent(name)).patience(PATIENCE)
}

fn collected(fleet: &FleetHere, run: &Path) -> Collected {
    collect(run, fleet.recruit().as_ref(), &Interrupt::default(), |_| {}).unwrap()
}

/// The record of an agent is all that it wrote down itself. What it counted before the start is of its first slice.
#[track_caller]
fn assert_all_of(fleet: &FleetHere, run: &Path, (name, number): (&str, u32)) {
    let dir = RunDir::open(run).unwrap();
    let data = dir.load(&Default::default()).unwrap();
    let first = data.stages.iter().map(|s| (s.index, s.start_ns / data.grid_ns)).collect();
    let (stored, own) = (stored(run, name), fleet.own_records(&dir.id(), name, number, &first));
    let brief = |all: &[(u64, Interval)]| -> Vec<(u64, u32, u64)> {
        let one = |(at, i): &(u64, Interval)| {
            (*at, i.client.workers, i.series.iter().map(|s| s.counts.started).sum())
        };
        all.iter().map(one).collect()
    };
    assert_eq!(brief(&stored), brief(&own), "{name}");
    assert!(stored == own, "{name}");
}

fn names(run: &Path, name: &str) -> Vec<String> {
    let summary = RunDir::open(run).unwrap().summary().unwrap();
    let found = summary.findings.iter().filter(|f| f.name == name);
    let mut names: Vec<String> = found.filter_map(|f| f.agent.clone()).collect();
    names.sort();
    names
}

fn delivered(run: &Path) -> Vec<(String, u64, bool)> {
    let data = RunDir::open(run).unwrap().load(&Default::default()).unwrap();
    let of = |m: &Mark| match m {
        Mark::Delivered { agent, slices, whole, .. } => Some((agent.clone(), *slices, *whole)),
        _ => None,
    };
    data.marks.iter().filter_map(of).collect()
}

#[test]
fn what_a_lost_agent_kept_is_in_the_record_when_it_is_back() {
    let fleet = three(bad_weather(5));
    let mut cut: Option<Instant> = None;
    let ran = fleet.run_and(&null(&["11s"]), |fleet, event| {
        if let (Event::Live(live), None) = (event, cut)
            && live.elapsed > Duration::from_secs(2)
        {
            fleet.bus("b").cut();
            cut = Some(Instant::now());
        }
        if cut.is_some_and(|at| at.elapsed() > Duration::from_secs(4)) {
            fleet.bus("b").mend();
        }
    });
    let messages = ran.messages().join("\n");
    let finished = ran.finished();
    assert!(messages.contains("agent b is lost"), "{messages}");
    assert!(messages.contains("slices of its own record came after it was lost"), "{messages}");
    assert_all_of(&fleet, &finished.path, ("b", 1));
    let all = delivered(&finished.path);
    assert!(all.len() == 1 && all[0].0 == "b" && all[0].1 > 10 && all[0].2, "{all:?}");
    // It is told, and the loss is one all the same.
    assert_eq!(names(&finished.path, "agent_lost"), ["b"]);
    assert_eq!(names(&finished.path, "delivered_late"), ["b"]);
    assert_eq!(finished.exit_code, 3);
    let window = finished.summary.workloads[0].window_s;
    let until = RunDir::open(&finished.path).unwrap().load(&Default::default()).unwrap();
    let b = &until.stages[0].agents[1];
    assert!(b.lost_ns < b.last_ns, "{b:?}");
    assert!(window < 6.0, "figures are of the time in which all were there: {window} s");
    // Nothing is left of the way there, and nothing lacks any more.
    let names: Vec<_> = std::fs::read_dir(finished.path.join("intervals")).unwrap().collect();
    assert_eq!(names.len(), 3);
    assert!(collected(&fleet, &finished.path).agents.is_empty());
}

#[test]
fn what_comes_later_is_collected_and_once_is_enough() {
    let fleet = three(Weather::default());
    let ran = fleet.run_and(&null(&["6s"]), |fleet, event| {
        if matches!(event, Event::Live(_)) {
            fleet.bus("b").cut();
        }
    });
    let finished = ran.finished();
    let before = stored(&finished.path, "b");
    let absent = collected(&fleet, &finished.path);
    assert!(absent.agents[0].missing.contains("it is not there"), "{absent:?}");
    assert_eq!(stored(&finished.path, "b"), before);
    fleet.bus("b").mend();
    fleet.wait_until_free(3);
    let came = collected(&fleet, &finished.path);
    let [b] = &came.agents[..] else { panic!("{came:?}") };
    assert!(b.agent == "b" && b.slices > 10 && b.ops > 50 && b.missing.is_empty(), "{b:?}");
    assert_all_of(&fleet, &finished.path, ("b", 1));
    let run = RunDir::open(&finished.path).unwrap();
    assert_eq!(run.sealed().unwrap().unwrap().end, "done");
    assert!(run.altered_files().unwrap().is_empty());
    let again = collected(&fleet, &finished.path);
    assert!(again.agents.is_empty() && again.summary == came.summary);
}

/// An agent that was killed kept what came of it, and nothing more: its run stays sealed, with the end that it had.
#[test]
fn what_brings_nothing_new_leaves_the_seal() {
    let fleet = three(Weather::default());
    let ran = fleet.run_and(&null(&["8s"]), |fleet, event| {
        if matches!(event, Event::Live(live) if live.elapsed > Duration::from_secs(3)) {
            fleet.bus("b").cut();
        }
    });
    let finished = ran.finished();
    fleet.bus("b").mend();
    fleet.wait_until_free(3);
    let run = RunDir::open(&finished.path).unwrap();
    let own = fleet.root().join(format!("of-agents/agents/{}.b/frames", run.id()));
    let length = own.metadata().unwrap().len();
    std::fs::File::options().write(true).open(&own).unwrap().set_len(length / 5).unwrap();
    let end = run.sealed().unwrap().unwrap().end;
    let came = collected(&fleet, &finished.path);
    assert!(came.agents[0].slices == 0 && came.agents[0].missing.contains("its own record ends"), "{came:?}");
    assert_eq!(run.sealed().unwrap().unwrap().end, end);
    assert!(run.altered_files().unwrap().is_empty());
}

/// The same of one whose machine was started again: how much is lost is not known, and not said to be a second.
#[test]
fn of_a_machine_that_went_down_no_bound_is_told() {
    let fleet = three(Weather::default());
    let mut cut: Option<Instant> = None;
    let ran = fleet.run_and(&null(&["7s"]), |fleet, event| {
        if matches!(event, Event::Live(_)) && cut.is_none() {
            fleet.bus("b").cut();
            cut = Some(Instant::now());
        }
    });
    let finished = ran.finished();
    fleet.bus("b").mend();
    fleet.wait_until_free(3);
    let run = RunDir::open(&finished.path).unwrap();
    let own = fleet.root().join(format!("of-agents/agents/{}.b/frames", run.id()));
    let length = own.metadata().unwrap().len();
    std::fs::File::options().write(true).open(&own).unwrap().set_len(length * 4 / 5).unwrap();
    run.unseal().unwrap();
    let mut env = run.env().unwrap();
    env.environment.agents[1].machine.boot_id = "the start before".into();
    run.write_env(&env).unwrap();
    run.seal("done").unwrap();
    let came = collected(&fleet, &finished.path);
    let [b] = &came.agents[..] else { panic!("{came:?}") };
    assert!(
        b.missing.contains("its machine went down") && !b.missing.contains("at most 1 s"),
        "{}",
        b.missing
    );
    let told: Vec<_> = came.summary.findings.iter().filter(|f| f.name == "delivered_late").collect();
    assert!(told.len() == 1 && told[0].text.contains("machine went down"), "{told:?}");
    assert!(!told[0].text.contains("at most 1 s"), "{}", told[0].text);
}

#[test]
fn nothing_is_added_to_a_record_that_was_changed() {
    let fleet = three(Weather::default());
    let ran = fleet.run_and(&null(&["5s"]), |fleet, event| {
        if matches!(event, Event::Live(_)) {
            fleet.bus("b").cut();
        }
    });
    let finished = ran.finished();
    fleet.bus("b").mend();
    fleet.wait_until_free(3);
    let other = finished.path.join("intervals/c.zst");
    let mut bytes = std::fs::read(&other).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&other, &bytes).unwrap();
    let before = std::fs::read(finished.path.join("intervals/b.zst")).unwrap();
    let refused = collect(&finished.path, fleet.recruit().as_ref(), &Interrupt::default(), |_| {});
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("intervals/c.zst changed after the run was sealed"), "{refused}");
    assert_eq!(std::fs::read(finished.path.join("intervals/b.zst")).unwrap(), before);
    assert_eq!(RunDir::open(&finished.path).unwrap().altered_files().unwrap(), ["intervals/c.zst"]);
}

/// What is left of a run whose conductor was killed: its files as they were at that moment.
fn killed(fleet: &FleetHere, plan: &str, when: impl Fn(&Event, Duration) -> bool) -> PathBuf {
    let begun = Instant::now();
    let (mut from, mut to) = (None::<PathBuf>, None::<PathBuf>);
    let ran = fleet.run_and(plan, |fleet, event| {
        if let Event::Started { path, .. } = event {
            from = Some(path.clone());
        }
        if to.is_none() && when(event, begun.elapsed()) {
            let path = from.clone().unwrap();
            let copy = fleet.root().join("killed").join(path.file_name().unwrap());
            copy_all(&path, &copy);
            fleet.conductor().cut();
            to = Some(copy);
        }
    });
    drop(ran);
    fleet.conductor().mend();
    fleet.wait_until_free(fleet.size());
    to.unwrap()
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &to);
        } else if entry.file_name() != ".plimsoll-made" {
            std::fs::copy(entry.path(), &to).unwrap();
        }
    }
}

fn live_after(seconds: u64) -> impl Fn(&Event, Duration) -> bool {
    move |event, since| matches!(event, Event::Live(_)) && since > Duration::from_secs(seconds)
}

#[test]
fn a_run_whose_conductor_was_killed_is_collected_from_its_agents() {
    let fleet = three(bad_weather(2));
    let run = killed(&fleet, &null(&["10h"]), live_after(5));
    let came = collected(&fleet, &run);
    assert_eq!(came.agents.len(), 3, "{came:?}");
    for (number, a) in (0..).zip(&came.agents) {
        assert!(a.slices > 10 && a.missing.is_empty(), "{a:?}");
        assert_all_of(&fleet, &run, (&a.agent, number));
    }
    let dir = RunDir::open(&run).unwrap();
    assert_eq!(dir.sealed().unwrap().unwrap().end, "interrupted");
    let data = dir.load(&Default::default()).unwrap();
    let stage = &data.stages[0];
    assert_eq!((stage.stop_reason.as_deref(), stage.end_ns), (Some("killed"), None));
    assert!(names(&run, "agent_lost").is_empty());
    assert_eq!(names(&run, "delivered_late"), ["a", "b", "c"]);
    assert!(came.summary.workloads[0].ops_per_s.is_some(), "{:?}", came.summary);
    assert!(collected(&fleet, &run).agents.is_empty());
}

/// Agents that had what they needed end a stage as it was planned, without anybody.
#[test]
fn a_stage_that_was_ended_without_its_conductor_is_complete() {
    let fleet = three(Weather::default()).patience(Duration::from_secs(6));
    let run = killed(&fleet, &null(&["4s"]), live_after(3));
    let came = collected(&fleet, &run);
    assert!(came.agents.iter().all(|a| a.missing.is_empty()), "{came:?}");
    let dir = RunDir::open(&run).unwrap();
    assert_eq!(dir.sealed().unwrap().unwrap().end, "done");
    let data = dir.load(&Default::default()).unwrap();
    assert!(data.stages[0].end_ns.is_some() && data.stages[0].agents.iter().all(|a| a.end_ns.is_some()));
    assert_eq!(data.stages[0].stop_reason.as_deref(), Some("duration"));
    assert!(
        (3.5..4.1).contains(&came.summary.workloads[0].window_s),
        "{}",
        came.summary.workloads[0].window_s
    );
}

#[test]
fn a_run_whose_conductor_was_killed_goes_on_with_the_same_agents() {
    let fleet = three(Weather::default());
    // Long enough that agents which hear nothing stop in the middle of it, also where this machine is slow to tell of its first second.
    let run = killed(
        &fleet,
        &null(&["2s", "9s"]),
        |event, _| matches!(event, Event::Live(live) if live.stage == 1 && live.elapsed > Duration::from_secs(1)),
    );
    let options = |fleet: &FleetHere| {
        let crew = CrewChoice::Fleet(fleet.recruit());
        Options { crew, ..support::options(run.parent().unwrap()) }
    };
    let refused = resume(&run, &support::options(run.parent().unwrap()), |_| {}).unwrap_err().to_string();
    assert!(refused.contains("of 3 agents of a fleet (a, b, c)") && refused.contains("--fleet"), "{refused}");
    let fleet = fleet.choice(Choice::Labelled("name".into(), "a".into()));
    let refused = resume(&run, &options(&fleet), |_| {}).unwrap_err().to_string();
    assert!(refused.contains("b, c took part in it"), "{refused}");
    let fleet = fleet.choice(Choice::All);
    fleet.wait_until_free(3);
    let mut events = Vec::new();
    resume(&run, &options(&fleet), |e| events.push(e)).unwrap();
    // A busy machine may void its figures, and not its record.
    let data = RunDir::open(&run).unwrap().load(&Default::default()).unwrap();
    let stages: Vec<_> =
        data.stages.iter().map(|s| (s.index, s.void.is_some(), s.end_ns.is_some())).collect();
    assert_eq!(stages, [(0, false, true), (1, true, false), (2, false, true)]);
    // What the stage that was cut off did is recorded, too.
    assert_eq!(delivered(&run).len(), 3);
    for (number, name) in (0..).zip(["a", "b", "c"]) {
        assert_all_of(&fleet, &run, (name, number));
    }
}

#[test]
fn nobody_but_its_conductor_is_given_a_record() {
    let fleet = FleetHere::new(Weather::default()).agent("a").patience(PATIENCE);
    let run = killed(&fleet, &null(&["10h"]), live_after(2));
    let refused = collect(&run, fleet.as_stranger().as_ref(), &Interrupt::default(), |_| {});
    // Orders of a stranger are not obeyed, and not answered.
    let came = refused.unwrap();
    assert!(came.agents.iter().all(|a| a.slices == 0 && a.missing.contains("did not answer")), "{came:?}");
    assert!(fleet.told().iter().any(|t| t.contains("its signature is not the conductor's")));
}
