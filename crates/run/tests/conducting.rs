//! Conducting a crew: simulated agents on the virtual clock, with a network between them and their conductor that delays, loses, doubles
//! and cuts. What reaches the record must not depend on any of it.

#[path = "support/plans.rs"]
mod plans;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plans::{PLAN, bit_exact};
use plimsoll_crew::{Partition, SimNetwork};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Event, Plan};
use plimsoll_run::{CrewChoice, Finished, Options, RunError, execute};
use plimsoll_store::{LoadOptions, Mark, Record, RunData, RunDir, StreamReader};
use support::{options, run};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

struct Conducted {
    finished: Result<Finished, RunError>,
    events: Vec<Event>,
}

impl Conducted {
    fn finished(&self) -> &Finished {
        self.finished.as_ref().unwrap()
    }

    fn data(&self) -> RunData {
        RunDir::open(&self.finished().path).unwrap().load(&LoadOptions::default()).unwrap()
    }

    /// The bytes of each agent's record.
    fn records(&self) -> BTreeMap<String, Vec<u8>> {
        let dir = self.finished().path.join("intervals");
        let files = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap());
        files.map(|f| (f.file_name().into_string().unwrap(), std::fs::read(f.path()).unwrap())).collect()
    }

    fn ok(&self) -> u64 {
        self.data().stages[0].series.values().flatten().map(|p| p.counts.ok()).sum()
    }

    fn messages(&self) -> Vec<&str> {
        let text = |e: &'_ Event| matches!(e, Event::Message(_));
        let messages = self.events.iter().filter(|e| text(e));
        messages.map(|e| if let Event::Message(t) = e { t.as_str() } else { "" }).collect()
    }
}

fn conduct(root: &Path, plan: &str, network: SimNetwork) -> Conducted {
    let options = Options { crew: CrewChoice::Simulated(network), ..options(root) };
    let mut events = Vec::new();
    let finished = execute(&Plan::from_toml(plan).unwrap(), &options, |e| events.push(e));
    Conducted { finished, events }
}

fn agents(agents: u32) -> SimNetwork {
    SimNetwork { agents, delay_ns: (MS, 3 * MS), ..SimNetwork::default() }
}

#[test]
fn one_simulated_agent_next_door_is_this_process() {
    let dir = tempfile::tempdir().unwrap();
    for plan in &bit_exact() {
        let local = run(dir.path(), plan);
        let crew = conduct(dir.path(), plan, SimNetwork::default());
        let bytes = std::fs::read(local.path.join("intervals/local.zst")).unwrap();
        assert!(crew.records() == BTreeMap::from([("local.zst".to_owned(), bytes)]), "records differ");
        assert_eq!(crew.finished().summary.workloads, local.summary.workloads);
        assert_eq!(crew.finished().summary.verdict, local.summary.verdict);
    }
}

#[test]
fn agents_share_a_stage_and_each_has_its_record() {
    let dir = tempfile::tempdir().unwrap();
    let one = conduct(dir.path(), PLAN, agents(1));
    for n in [2, 3, 8] {
        let many = conduct(dir.path(), PLAN, agents(n));
        assert_eq!(many.records().len(), n as usize);
        assert_eq!(many.data().stages[0].workers, n);
        let (a, b) = (one.ok() as f64, many.ok() as f64);
        assert!((a / b - 1.0).abs() < 0.01, "{n} agents did {b} ops, one {a}");
        let s = &many.finished().summary;
        assert!(s.valid && s.agents.len() == n as usize, "{:?} {:?}", s.findings, s.agents);
        let rate = s.workloads[0].ops_per_s.unwrap();
        assert!((rate.value / 1200.0 - 1.0).abs() < 0.02, "{rate:?}");
    }
}

/// Of agents with a worker each: one with several hands over parts of a slice when it is further behind than the live merge waits.
#[test]
fn the_record_does_not_depend_on_the_network() {
    let dir = tempfile::tempdir().unwrap();
    let quiet = conduct(dir.path(), PLAN, agents(3)).records();
    let bad = [
        SimNetwork { delay_ns: (MS, 900 * MS), ..agents(3) },
        SimNetwork { loss: 0.3, ..agents(3) },
        SimNetwork { duplicates: 0.5, delay_ns: (0, 300 * MS), ..agents(3) },
        SimNetwork {
            loss: 0.2,
            duplicates: 0.2,
            delay_ns: (0, 500 * MS),
            partitions: vec![
                Partition { agent: 1, from_ns: 2 * S, to_ns: 5 * S },
                Partition { agent: 2, from_ns: 5 * S, to_ns: 8 * S },
            ],
            ..agents(3)
        },
        // From the warm-up on, for longer than the live merge waits.
        SimNetwork { partitions: vec![Partition { agent: 1, from_ns: 300 * MS, to_ns: 4 * S }], ..agents(3) },
    ];
    for network in bad {
        for seed in 0..4 {
            let network = SimNetwork { seed, ..network.clone() };
            let told = format!("{network:?}");
            assert!(conduct(dir.path(), PLAN, network).records() == quiet, "{told}");
        }
    }
}

/// Of three agents, only the first has a part of the narrow workload. Memory of slices is used again, and what one agent's held is none of
/// another's.
#[test]
fn an_agents_record_has_the_workloads_that_it_runs_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let narrow = "[[stage.workload]]\nname = \"narrow\"\nmix = { put = 1 }\nconcurrency = 1\n\
        stop = { duration = \"5s\" }\n[[stage.workload]]\nname = \"w\"";
    let plan = PLAN.replace("[[stage.workload]]\nname = \"w\"", narrow);
    let quiet = conduct(dir.path(), &plan, agents(3));
    for (agent, has) in [("agent-0", vec![0, 1]), ("agent-1", vec![1]), ("agent-2", vec![1])] {
        assert_eq!(workloads_of(&quiet, agent), has.into_iter().collect(), "{agent}");
    }
    let quiet = quiet.records();
    for seed in 0..4 {
        let late = SimNetwork { seed, delay_ns: (MS, 900 * MS), ..agents(3) };
        assert!(conduct(dir.path(), &plan, late).records() == quiet, "{seed}");
    }
}

/// Workloads that have a series, be it an empty one, in one agent's record.
fn workloads_of(run: &Conducted, agent: &str) -> BTreeSet<u16> {
    let path = run.finished().path.join(format!("intervals/{agent}.zst"));
    let mut reader = StreamReader::open(&path).unwrap();
    let mut out = BTreeSet::new();
    while let Some(record) = reader.next().unwrap() {
        if let Record::Interval { interval, .. } = record {
            out.extend(interval.series.iter().map(|s| s.id.workload));
        }
    }
    out
}

/// An op in twenty seconds: who has nothing to hand over is not lost.
#[test]
fn an_idle_agent_is_not_a_lost_one() {
    let dir = tempfile::tempdir().unwrap();
    let slow = PLAN
        .replace("concurrency = 24", "concurrency = 24\npacing = { constant = \"0.05/s\" }")
        .replace("duration = \"5s\"", "duration = \"200s\"");
    for network in [SimNetwork { agents: 3, ..SimNetwork::default() }, agents(3)] {
        let run = conduct(dir.path(), &slow, network);
        assert!(run.messages().iter().all(|t| !t.contains("lost")), "{:?}", run.messages());
        assert_eq!(run.ok(), conduct(dir.path(), &slow, SimNetwork::default()).ok());
    }
}

#[test]
fn the_same_network_gives_the_same_again() {
    let dir = tempfile::tempdir().unwrap();
    let network =
        SimNetwork { loss: 0.1, delay_ns: (0, 50 * MS), ahead_ns: vec![3_000_000, -1_000_000], ..agents(4) };
    let endless = PLAN.replace("duration = \"5s\"", "ops = 4000");
    let (a, b) = (conduct(dir.path(), &endless, network.clone()), conduct(dir.path(), &endless, network));
    assert!(a.records() == b.records());
    assert_eq!(a.finished().summary.workloads, b.finished().summary.workloads);
    // The warm-up's ops are among them.
    assert_eq!(a.ok(), 4000);
}

/// Successes per slice in one agent's record.
fn slices_of(run: &Conducted, agent: &str) -> BTreeMap<u64, u64> {
    let path = run.finished().path.join(format!("intervals/{agent}.zst"));
    let mut reader = StreamReader::open(&path).unwrap();
    let mut out = BTreeMap::new();
    while let Some(record) = reader.next().unwrap() {
        if let Record::Interval { interval, .. } = record {
            out.insert(interval.index, interval.series.iter().map(|s| s.ok()).sum());
        }
    }
    out
}

/// The storage stands still from 3.0 to 3.3 s of its own time: an agent whose clock is ahead of it has that in its record later.
#[test]
fn an_agent_whose_clock_is_off_keeps_its_own_time() {
    let dir = tempfile::tempdir().unwrap();
    let stalls = PLAN.replace("spread = 0.3", "stall_every = \"3s\"\nstall_for = \"300ms\"");
    let off = conduct(dir.path(), &stalls, SimNetwork { ahead_ns: vec![0, 400_000_000], ..agents(2) });
    let still = |agent: &str, from: u64| {
        (from..from + 2).all(|i| slices_of(&off, agent).get(&i).is_none_or(|n| *n == 0))
    };
    assert!(still("agent-0", 31) && !still("agent-0", 35), "{:?}", slices_of(&off, "agent-0"));
    assert!(still("agent-1", 35) && !still("agent-1", 31), "{:?}", slices_of(&off, "agent-1"));
}

#[test]
fn an_agent_that_is_cut_off_is_lost_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let cut = Partition { agent: 1, from_ns: 3 * S, to_ns: u64::MAX };
    let network = SimNetwork { partitions: vec![cut], patience_ns: S, ..agents(3) };
    let run = conduct(dir.path(), PLAN, network);
    let lost = run.messages();
    assert!(lost.iter().any(|t| t.starts_with("agent agent-1 is lost")), "{lost:?}");
    let data = run.data();
    let marks: Vec<_> = data.marks.iter().filter(|m| matches!(m, Mark::AgentLost { .. })).collect();
    let [Mark::AgentLost { stage: 0, at_ns, agent }] = marks[..] else { panic!("{marks:?}") };
    assert!(agent == "agent-1" && (2800 * MS..=3 * S).contains(at_ns), "{at_ns}");
    let s = &run.finished().summary;
    let lost: Vec<_> = s.findings.iter().filter(|f| f.name == "agent_lost").collect();
    assert!(lost.len() == 1 && lost[0].agent.as_deref() == Some("agent-1"), "{:?}", s.findings);
    assert!(!s.valid && run.finished().exit_code == 3, "{}", s.verdict);
    // Each of the others did what it would have done anyway.
    let quiet = conduct(dir.path(), PLAN, agents(3)).records();
    let (mut records, gone) = (run.records(), "agent-1.zst");
    assert!(records.remove(gone).unwrap().len() < quiet[gone].len());
    assert!(records.len() == 2 && records["agent-2.zst"].len() > quiet["agent-2.zst"].len() * 9 / 10);
    // Twelve seconds of silence would do: nothing runs on for ever.
    assert!(data.stages[0].end_ns.unwrap() < 12 * S);
}

/// Three agents of which one is cut off 12 s after the start, in a stage of 21 s; `loss`: what is to become of the run.
fn cut_in_the_middle(root: &Path, loss: &str, plan: &str) -> Conducted {
    let plan = plan.replace("duration = \"5s\"", "duration = \"20s\"");
    let plan = plan.replace("[targets.s]", &format!("[options]\non_agent_loss = \"{loss}\"\n[targets.s]"));
    let cut = Partition { agent: 1, from_ns: 12 * S, to_ns: u64::MAX };
    conduct(root, &plan, SimNetwork { partitions: vec![cut], patience_ns: 2 * S, ..agents(3) })
}

/// What a loss is told as: the verdict, the finding, the line and the exit code.
fn told(run: &Conducted) -> String {
    let f = run.finished();
    let s = &f.summary;
    let lost = s.findings.iter().filter(|f| ["agent_lost", "ended_by_loss"].contains(&f.name.as_str()));
    let lost: Vec<String> = lost.map(|f| format!("{:?} {}: {}", f.level, f.code, f.text)).collect();
    let line = |w: &WorkloadSummary| {
        format!("{}: valid {}, {} s, {:?} op/s", w.label(), w.valid, w.window_s, w.ops_per_s.map(|e| e.value))
    };
    let lines: Vec<String> = s.workloads.iter().map(line).collect();
    format!("{}\n\n{}\n\n{}\nexit code {}", s.verdict, lost.join("\n"), lines.join("\n"), f.exit_code)
}

#[test]
fn a_loss_is_judged_as_was_asked_and_at_any_time_again() {
    let dir = tempfile::tempdir().unwrap();
    for loss in ["invalid", "continue", "stop"] {
        let run = cut_in_the_middle(dir.path(), loss, PLAN);
        let messages = run.messages();
        let lost = messages.iter().find(|t| t.starts_with("agent agent-1 is lost")).unwrap();
        insta::assert_snapshot!(loss, format!("{lost}\n\n{}", told(&run)));
        let again = plimsoll_run::judged_by_record(&RunDir::open(&run.finished().path).unwrap()).unwrap();
        assert_eq!(&again, &run.finished().summary);
    }
}

#[test]
fn figures_of_a_run_that_lost_an_agent_are_those_of_the_time_in_which_all_were_there() {
    let dir = tempfile::tempdir().unwrap();
    let whole = cut_in_the_middle(dir.path(), "continue", PLAN);
    let data = whole.data();
    let window = data.stages[0].window(data.grid_ns).unwrap();
    assert_eq!((window.from, window.to), (10, data.stages[0].agents[1].lost_ns.unwrap() / data.grid_ns));
    assert!((115..=120).contains(&window.to), "{window:?}");
    let of =
        |agent: &str| slices_of(&whole, agent).range(window.from..window.to).map(|(_, n)| n).sum::<u64>();
    let ok: u64 = (0..3).map(|n| of(&format!("agent-{n}"))).sum();
    let line = &whole.finished().summary.workloads[0];
    assert_eq!((line.outcomes["ok"], line.valid), (ok, true));
    // And those of the same time of a run that lost nobody, but for what the two that are left find of the storage's draws.
    let quiet = conduct(dir.path(), &PLAN.replace("duration = \"5s\"", "duration = \"20s\""), agents(3));
    let of_all =
        |agent: &str| slices_of(&quiet, agent).range(window.from..window.to).map(|(_, n)| n).sum::<u64>();
    assert_eq!(ok, (0..3).map(|n| of_all(&format!("agent-{n}"))).sum::<u64>());
}

/// The load is not moved to others: of a later stage there is no time in which all were there.
#[test]
fn a_stage_after_the_loss_is_void_and_the_one_before_stands() {
    let dir = tempfile::tempdir().unwrap();
    let stage = &PLAN[PLAN.find("[[stage]]").unwrap()..];
    let two = format!("{PLAN}{}", stage.replace("name = \"w\"", "name = \"after\""));
    let run = cut_in_the_middle(dir.path(), "continue", &two);
    let lines: Vec<_> = run.finished().summary.workloads.iter().map(|w| (w.name.as_str(), w.valid)).collect();
    assert_eq!(lines, [("w", true), ("after", false)], "{}", told(&run));
    assert_eq!(run.finished().exit_code, 3);
    // Whoever wants no such stage says so.
    let run = cut_in_the_middle(dir.path(), "stop", &two);
    assert_eq!((run.data().stages.len(), run.data().end.as_deref()), (1, Some("agent lost")));
    // The loss is noticed 2 s later, and the load ends then.
    assert!(run.data().stages[0].stop_ns.unwrap() < 15 * S, "{:?}", run.data().stages[0].stop_ns);
}

#[test]
fn a_search_that_lost_an_agent_is_void_however_a_loss_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let template = PLAN.replace("[[stage]]", "[controller]\nkind = \"saturation\"\n[controller.template]");
    let searched = template
        .replace("[[stage.workload]]", "[[controller.template.workload]]")
        .replace("spread = 0.3", "servers = 6")
        .replace("concurrency = 24\n", "");
    let run = cut_in_the_middle(dir.path(), "continue", &searched);
    let lost: Vec<_> = run.finished().summary.findings.iter().filter(|f| f.name == "agent_lost").collect();
    assert!(
        !lost.is_empty() && lost.iter().all(|f| f.level == plimsoll_model::Level::Invalid),
        "{}",
        told(&run)
    );
    assert!(!run.finished().summary.valid);
}

/// A stage of 21 s whose agents are cut off, each at its own time.
fn cut_off_at(root: &Path, loss: &str, plan: &str, from_ns: &[u64]) -> Conducted {
    let plan = plan.replace("duration = \"5s\"", "duration = \"20s\"");
    let plan = plan.replace("[targets.s]", &format!("[options]\non_agent_loss = \"{loss}\"\n[targets.s]"));
    let partitions = (0..)
        .zip(from_ns)
        .map(|(agent, from_ns)| Partition { agent, from_ns: *from_ns, to_ns: u64::MAX })
        .collect();
    let network = SimNetwork { partitions, patience_ns: S / 2, ..agents(from_ns.len() as u32) };
    conduct(root, &plan, network)
}

#[test]
fn a_stage_that_lost_all_of_its_agents_is_void_however_a_loss_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    // The only one; all at once; one after the other; all in the warm-up.
    let cases: [&[u64]; 4] = [&[12 * S], &[12 * S, 12 * S], &[9 * S, 12 * S], &[S / 2, S / 2]];
    for (loss, at) in ["invalid", "continue", "stop"].into_iter().flat_map(|l| cases.map(|c| (l, c))) {
        let run = cut_off_at(dir.path(), loss, PLAN, at);
        let (f, told) = (run.finished(), format!("{loss} {at:?}: {}", told(&run)));
        assert!(!f.summary.valid && f.exit_code == 3, "{told}");
        assert_eq!(run.data().end.as_deref(), Some("agent lost"), "{told}");
        if loss == "stop" && at[0] < at[at.len() - 1] {
            continue;
        }
        let all = f.summary.findings.iter().find(|f| f.code == "V24" && f.agent.is_none());
        let all = all.unwrap_or_else(|| panic!("{told}"));
        assert_eq!((all.name.as_str(), all.level), ("agent_lost", plimsoll_model::Level::Invalid));
        let end_s = if at[0] < S { "0." } else { "12.0" };
        assert!(all.text.contains(&format!("its record ends {end_s}")), "{told}");
        assert!(all.text.contains("the load was to last 21.0 s"), "{told}");
        assert!(f.summary.findings.iter().all(|f| f.name != "no_window"), "{told}");
    }
}

/// What a loss is held against is the end that was planned, where nobody was left to see it.
#[test]
fn of_agents_that_were_lost_one_after_the_other_each_misses_what_was_planned() {
    let dir = tempfile::tempdir().unwrap();
    let run = cut_off_at(dir.path(), "continue", PLAN, &[9 * S, 12 * S]);
    let of = |agent: &str| {
        let f = run.finished().summary.findings.iter().find(|f| f.agent.as_deref() == Some(agent));
        f.unwrap_or_else(|| panic!("{}", told(&run)))
    };
    assert!(of("agent-0").text.contains("12.0 s before the end of the measured window"), "{}", told(&run));
    assert!(of("agent-1").text.contains("9.0 s before the end of the measured window"), "{}", told(&run));
    assert!(["agent-0", "agent-1"].iter().all(|a| of(a).level == plimsoll_model::Level::Invalid));
}

/// Agents that are lost are lost to all of the run: with nobody left there is no next stage.
#[test]
fn a_run_ends_with_the_loss_of_its_last_agent() {
    let dir = tempfile::tempdir().unwrap();
    let stage = &PLAN[PLAN.find("[[stage]]").unwrap()..];
    let two = format!("{PLAN}{}", stage.replace("name = \"w\"", "name = \"after\""));
    let run = cut_off_at(dir.path(), "invalid", &two, &[12 * S, 12 * S]);
    assert_eq!(run.messages().iter().filter(|t| t.contains("is lost")).count(), 2, "{:?}", run.messages());
    assert!(run.messages().iter().any(|t| t.ends_with("it was the last, and the run ends")));
    assert_eq!((run.data().stages.len(), run.data().end.as_deref()), (1, Some("agent lost")));
    assert!(told(&run).contains("The run ended with the loss of its last agent"), "{}", told(&run));
}

#[test]
fn without_its_conductor_an_agent_stops() {
    let dir = tempfile::tempdir().unwrap();
    let all = (0..2).map(|agent| Partition { agent, from_ns: 2 * S, to_ns: u64::MAX }).collect();
    let network = SimNetwork { partitions: all, patience_ns: S, ..agents(2) };
    let endless = PLAN.replace("duration = \"5s\"", "duration = \"10h\"");
    let run = conduct(dir.path(), &endless, network);
    assert_eq!(run.messages().iter().filter(|t| t.contains("is lost")).count(), 2, "{:?}", run.messages());
}

#[test]
fn a_controllers_stop_reaches_all_agents() {
    let dir = tempfile::tempdir().unwrap();
    let limited = r#"
version = 1
seed = 3
[targets.s]
kind = "sim"
base = "2ms"
[targets.s.ops]
sustained_per_s = 400.0
burst_per_s = 2000.0
capacity = 3000.0
[controller]
kind = "limits"
budget = "5m"
[controller.template]
[[controller.template.workload]]
name = "w"
mix = { get = 1 }
concurrency = 32
"#;
    let found = |network: SimNetwork| {
        let run = conduct(dir.path(), limited, network);
        let limits = &run.finished().summary.limits;
        limits[0].ops_per_s.as_ref().and_then(|o| o.sustained).map(|e| e.value)
    };
    for network in [agents(1), SimNetwork { loss: 0.05, delay_ns: (MS, 40 * MS), ..agents(8) }] {
        let rate = found(network).unwrap();
        assert!((rate / 400.0 - 1.0).abs() < 0.02, "{rate}");
    }
}
