//! Runs of several agents, written as each of them writes its own part, and judged: what is wrong with one is found and named, and
//! a run of one agent is judged as it always was.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_judge::{judge, windows_of};
use plimsoll_model::interval::{ClientCounts, SeriesShape};
use plimsoll_model::plan::{AgentLoss, Pacing, Stage};
use plimsoll_model::sample::Role;
use plimsoll_model::{
    AgentClock, AgentHost, Analysis, Environment, Finding, HostFacts, Interval, Level, OpKind, Outcome, Plan,
    RunSummary, Sample, Series, SeriesId,
};
use plimsoll_store::mark::{LoadTimes, StageReport};
use plimsoll_store::{EnvFile, LoadOptions, Mark, RunDir, StreamWriter, rundir::ENV_FORMAT};

const GRID_NS: u64 = 100_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Of a stage: the end of its warm-up, and its end.
const WARM: u64 = 20;
const SLICES: u64 = 320;
const WORKERS: u32 = 2;
const SLOTS: u32 = 16;
const CORES: u64 = 4;

const PLAN: &str = r#"
version = 1
name = "fleet"
[targets.s3]
kind = "s3"
endpoints = ["http://10.0.0.9:9000"]
bucket = "bench"
[[stage]]
warmup = "2s"
[[stage.workload]]
name = "get"
mix = { get = 1 }
size = "4KiB"
concurrency = 16
stop = { duration = "30s" }
"#;

/// An agent, and what it does.
#[derive(Clone)]
struct Script {
    name: String,
    host: String,
    /// Ops that end in each slice.
    ops: u64,
    /// Share of their time in which its workers do not wait.
    busy: f64,
    /// Of one core, what its process uses; its machine does nothing else.
    cpu: f64,
    /// What its machine sends, of 10 Gbit/s.
    nic: f64,
    /// What its machine's counters have counted before the run.
    boot: u64,
    /// Slices that it records; fewer than all: it is lost.
    slices: u64,
    grid_ns: u64,
    workers: u32,
    /// Slices `[from, to)` in which it stands still.
    stopped: (u64, u64),
    /// It begins and ends so much later than it was told.
    late_ns: u64,
    /// Ops of a slice that it sends late, where they have times of their own.
    late_ops: u64,
}

fn script(n: u64) -> Script {
    Script {
        name: format!("lg-{n}"),
        host: format!("node{n}"),
        ops: 100,
        busy: 0.05,
        cpu: 0.2,
        nic: 0.01,
        boot: n * 86_400 * SECOND_NS,
        slices: SLICES,
        grid_ns: GRID_NS,
        workers: WORKERS,
        stopped: (0, 0),
        late_ns: 0,
        late_ops: 0,
    }
}

fn fleet(agents: u64) -> Vec<Script> {
    (1..=agents).map(script).collect()
}

impl Script {
    fn is_stopped(&self, slice: u64) -> bool {
        (self.stopped.0..self.stopped.1).contains(&slice)
    }

    fn host_entry(&self, number: u32) -> AgentHost {
        AgentHost {
            agent: self.name.clone(),
            number,
            machine: HostFacts {
                host: self.host.clone(),
                cpu_count: CORES as u32,
                nics: [("eth0".to_owned(), Some(10_000))].into(),
                ..HostFacts::default()
            },
            clock: (number > 0).then_some(AgentClock { offset_ns: -7, bound_ns: 3, ..AgentClock::default() }),
        }
    }

    fn intervals(&self, run: &RunDir) {
        let mut w = run.create_intervals(&self.name, self.grid_ns).unwrap();
        for (number, spec) in (0..).zip(run.plan().unwrap().stages) {
            self.stage(&mut w, number, spec);
        }
        w.finish().unwrap();
    }

    fn stage(&self, w: &mut StreamWriter, stage: u32, spec: Stage) {
        let from = u64::from(stage) * SLICES;
        let is_paced = spec.workloads[0].pacing != Pacing::Closed;
        let (spec, at_ns) = (Box::new(spec), from * self.grid_ns);
        let start = Mark::StageStart {
            stage,
            at_ns,
            spec,
            endpoints: vec![vec!["http://10.0.0.9:9000".into()]],
            workers: self.workers,
            ring: "epoll".into(),
            slots: if self.workers > 0 { SLOTS } else { 0 },
        };
        w.mark(&start).unwrap();
        let id = SeriesId { stage, workload: 0, kind: OpKind::Get };
        let mut slice = Interval::empty(0);
        slice.series.push(Series::new(id, SeriesShape::default()));
        for i in (0..self.slices).filter(|i| !self.is_stopped(*i)) {
            if i == WARM {
                w.mark(&Mark::WarmupEnd { stage, at_ns: (from + WARM) * self.grid_ns }).unwrap();
            }
            slice.reset(from + i);
            // A worker that stood still hands over one slice for all of the time.
            let lasted = if self.is_stopped(i + 1) { 1 + self.stopped.1 - self.stopped.0 } else { 1 };
            self.fill(&mut slice, i, lasted);
            slice.client.late_ops = if is_paced { self.late_ops } else { 0 };
            w.interval(stage, &slice).unwrap();
        }
        if self.slices == SLICES {
            let at_ns = (from + SLICES) * self.grid_ns;
            w.mark(&Mark::StopRequested { stage, at_ns, reason: "duration".into() }).unwrap();
            let began_ns = from * self.grid_ns + self.late_ns;
            let times = LoadTimes { began_ns, finished_ns: at_ns + self.late_ns };
            let report = Box::new(StageReport { times: Some(times), ..StageReport::default() });
            w.mark(&Mark::StageReport { stage, at_ns, report }).unwrap();
            w.mark(&Mark::StageEnd { stage, at_ns }).unwrap();
        }
    }

    fn fill(&self, slice: &mut Interval, i: u64, lasted: u64) {
        let ops = self.ops + i % 3;
        let in_flight_ns = u64::from(SLOTS) * lasted * self.grid_ns;
        let s = &mut slice.series[0];
        for n in 0..ops {
            // No two take the same time, and all of them take what was in flight.
            s.response.record(in_flight_ns / ops / 4 * (1 + n % 7));
        }
        (s.counts.started, s.counts.outcomes[Outcome::Ok.index()]) = (ops, ops);
        (s.counts.bytes_ok, s.counts.bytes_moved) = (ops * 4096, ops * 4096);
        s.counts.in_system_ns = u128::from(in_flight_ns);
        let alive_ns = u64::from(self.workers) * lasted * self.grid_ns;
        slice.client = ClientCounts {
            workers: self.workers,
            alive_ns,
            waited_ns: (alive_ns as f64 * (1.0 - self.busy)) as u64,
            cpu_ns: (self.grid_ns as f64 * self.cpu) as u64,
            in_flight_ns: u128::from(in_flight_ns),
            ..ClientCounts::default()
        };
    }

    fn samples(&self, run: &RunDir) {
        let mut w = run.create_samples(&self.host).unwrap();
        for s in (0..=SLICES / 10 + 1).filter(|s| !self.is_stopped(s * 10)) {
            let used = self.boot + (s as f64 * self.cpu * 1e9) as u64;
            let busy = [used / CORES, 0, 0, 0, 0, CORES * self.boot + s * SECOND_NS - used / CORES];
            let sent = self.boot + (s as f64 * self.nic * 1.25e9) as u64;
            let sample = Sample {
                host: self.host.clone(),
                role: Role::Client,
                at_ns: s * SECOND_NS,
                cpus: vec![busy; CORES as usize],
                process_cpu_ns: used,
                process_rss_bytes: 50 << 20,
                process_usage: Default::default(),
                memory_available_bytes: 1 << 30,
                process_io: Default::default(),
                nics: BTreeMap::from([("eth0".into(), [0, sent, 0])]),
                tcp_out: self.boot + s * 1000,
                tcp_retransmits: self.boot,
                disks: BTreeMap::new(),
                psi_ns: [0; 3],
                cpu_quotas: Vec::new(),
            };
            w.sample(&sample).unwrap();
        }
        w.finish().unwrap();
    }
}

/// A run with a table of `listed`, of which `there` left something.
fn write(dir: &Path, listed: &[Script], there: &[Script]) -> RunDir {
    write_plan(dir, PLAN, listed, there)
}

fn write_plan(dir: &Path, plan: &str, listed: &[Script], there: &[Script]) -> RunDir {
    let run = RunDir::create(dir).unwrap();
    run.write_plan(&Plan::from_toml(plan).unwrap()).unwrap();
    let agents = listed.iter().enumerate().map(|(i, a)| a.host_entry(i as u32)).collect();
    let environment = Environment { machine: there[0].host_entry(0).machine, agents, ..Default::default() };
    let env = EnvFile {
        format: ENV_FORMAT.into(),
        id: "fleet".into(),
        environment,
        rerun: "plimsoll run fleet.toml".into(),
        clock_offsets_ns: BTreeMap::new(),
    };
    run.write_env(&env).unwrap();
    for a in there {
        a.intervals(&run);
        a.samples(&run);
    }
    run.seal("done").unwrap();
    run
}

fn judged(run: &RunDir) -> (RunSummary, Analysis) {
    let data = run.load(&LoadOptions::default()).unwrap();
    let windows = windows_of(&data);
    let totals = run.totals(&windows.measured, windows.measured.len()).unwrap();
    let whole = run.totals(&windows.whole, 0).unwrap();
    judge(&data, &totals, &whole, &run.altered_files().unwrap())
}

fn of(agents: &[Script]) -> (RunSummary, Analysis) {
    let dir = tempfile::tempdir().unwrap();
    judged(&write(dir.path(), agents, agents))
}

/// Codes and agents of what is wrong or qualified.
fn wrong(s: &RunSummary) -> Vec<(&str, Option<&str>)> {
    let told = s.findings.iter().filter(|f| f.level > Level::Info);
    told.map(|f| (f.code.as_str(), f.agent.as_deref())).collect()
}

fn finding<'a>(s: &'a RunSummary, code: &str) -> &'a Finding {
    s.findings.iter().find(|f| f.code == code).unwrap_or_else(|| panic!("no {code}: {:?}", s.findings))
}

#[test]
fn a_sound_fleet_is_one_result_with_a_table_of_agents() {
    for n in [2, 8] {
        let (s, _) = of(&fleet(n));
        assert_eq!((s.valid, wrong(&s)), (true, vec![]), "{:?}", s.findings);
        let rate = s.workloads[0].ops_per_s.unwrap().value;
        assert!((rate / (1010.0 * n as f64) - 1.0).abs() < 0.001, "{rate}");
        let client = &s.workloads[0].client;
        assert!((client.busy_fraction - 0.05).abs() < 1e-6 && client.steal == 0.0);
        // What each machine used adds up; how full they were is their mean.
        assert!((client.cpu_s - 0.2 * 30.0 * n as f64).abs() < 1e-3, "{client:?}");
        assert!((client.system_cpu - 0.05).abs() < 1e-3, "{client:?}");
        assert_eq!(client.rss_bytes, n * (50 << 20));
        assert_eq!(s.agents.len() as u64, n);
        for (a, at) in s.agents.iter().zip(1..) {
            assert_eq!((a.agent.clone(), a.host.clone()), (format!("lg-{at}"), format!("node{at}")));
            assert!(
                (a.ops_per_s - 1010.0).abs() < 1.0
                    && a.bytes_per_s == Some(4096.0 * a.ops_per_s)
                    && (a.share - 1.0 / n as f64).abs() < 1e-6,
                "{a:?}"
            );
            assert!((a.busy_fraction - 0.05).abs() < 1e-6 && a.p50_ns < a.p99_ns, "{a:?}");
            // The first is beside its conductor.
            let clock = if at == 1 { (None, None) } else { (Some(-7), Some(3)) };
            assert_eq!((a.clock_offset_ns, a.clock_bound_ns), clock);
        }
    }
}

#[test]
fn one_full_agent_of_eight_is_found_and_named() {
    let mut agents = fleet(8);
    agents[2].busy = 0.97;
    let (s, analysis) = of(&agents);
    assert_eq!((s.valid, wrong(&s)), (false, vec![("V07", Some("lg-3"))]));
    let f = finding(&s, "V07");
    assert!(f.text.starts_with("agent lg-3: Client-bound: the workers were busy 97.0 %"), "{}", f.text);
    assert!((s.agents[2].busy_fraction - 0.97).abs() < 1e-6 && s.workloads[0].client.busy_fraction > 0.96);
    let suspect = &analysis.bottlenecks[0];
    assert_eq!(suspect.candidate, "client processor (worker threads of lg-3)");
    // And so is a full interface.
    agents[2].busy = 0.05;
    agents[6].nic = 0.97;
    let (s, analysis) = of(&agents);
    assert_eq!(wrong(&s), [("V07", Some("lg-7"))]);
    assert!(finding(&s, "V07").text.contains("network interface ran at 97.0 %"));
    assert_eq!(analysis.bottlenecks[0].candidate, "client network interface (eth0 of node7)");
}

#[test]
fn a_straggler_is_told_with_its_likely_cause() {
    let mut agents = fleet(8);
    agents[4].ops = 50;
    let (s, _) = of(&agents);
    assert_eq!((s.valid, wrong(&s)), (true, vec![("Q14", Some("lg-5"))]));
    let f = finding(&s, "Q14");
    assert!(f.text.contains("agent lg-5: 50.5 % of the median; the cause is not known. "), "{}", f.text);
    agents[4].nic = 0.95;
    let (s, _) = of(&agents);
    assert_eq!(wrong(&s), [("V07", Some("lg-5")), ("Q14", Some("lg-5"))]);
    let text = &finding(&s, "Q14").text;
    assert!(
        text.contains("likely cause: its network interface ran at 95.0 % of its speed (V07 client_bound)."),
        "{text}"
    );
    // From four fifths of the median on it is none.
    let mut agents = fleet(8);
    agents[4].ops = 81;
    let (s, _) = of(&agents);
    assert_eq!((s.valid, wrong(&s)), (true, vec![]), "{:?}", s.findings);
    agents[4].ops = 79;
    assert_eq!(wrong(&of(&agents).0), [("Q14", Some("lg-5"))]);
}

#[test]
fn a_lost_agent_makes_the_stage_invalid_from_when_on_it_was_lost() {
    let mut agents = fleet(3);
    agents[1].slices = 150;
    let (s, _) = of(&agents);
    assert!(!s.valid && wrong(&s).contains(&("V24", Some("lg-2"))), "{:?}", s.findings);
    assert!(wrong(&s).iter().all(|f| f.0 != "Q14"), "what it did is not compared: {:?}", s.findings);
    let f = finding(&s, "V24");
    assert_eq!((f.name.as_str(), f.measured.map(|m| (m * 1000.0).round())), ("agent_lost", Some(567.0)));
    assert!(
        f.text.contains("15.0 s after the load began, 17.0 s before the end of the measured window"),
        "{}",
        f.text
    );
    // One that never came: the table knows of it.
    let dir = tempfile::tempdir().unwrap();
    let (s, _) = judged(&write(dir.path(), &fleet(3), &fleet(2)));
    assert_eq!((s.valid, wrong(&s)), (false, vec![("V24", None)]));
    assert!(finding(&s, "V24").text.contains("Of 3 agents, 1 left no record (lg-3)"));
}

#[test]
fn the_table_of_agents_has_their_starts_ends_and_machines() {
    let mut agents = fleet(3);
    (agents[2].late_ns, agents[2].nic) = (40_000_000, 0.5);
    agents[1].slices = 150;
    let (s, _) = of(&agents);
    let of = |n: usize| {
        let a = &s.agents[n];
        (a.start_skew_ns, a.first_op_s, a.last_op_s)
    };
    assert_eq!(of(0), (Some(0), Some(0.1), Some(32.0)));
    assert_eq!(of(1), (None, Some(0.1), None), "of one that left no end nothing is known of it");
    assert_eq!(of(2), (Some(40_000_000), Some(0.1), Some(32.04)));
    let near = |x: Option<f64>, want: f64| (x.unwrap() - want).abs() < 0.01;
    assert!(near(s.agents[0].cpu_fraction, 0.05) && near(s.agents[2].nic_fraction, 0.5), "{:?}", s.agents);
    // A warm-up of 2 s was on.
    let f = finding(&s, "Q15");
    assert_eq!((f.level, f.agent.as_deref()), (Level::Info, Some("lg-3")));
}

/// The same run, judged by what its plan says of losses.
#[test]
fn a_loss_is_judged_by_what_the_plan_says_of_it() {
    let mut agents = fleet(3);
    agents[1].slices = 150;
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &agents, &agents);
    let mut plan = Plan::from_toml(PLAN).unwrap();
    plan.options.on_agent_loss = AgentLoss::Continue;
    run.unseal().unwrap();
    run.write_plan(&plan).unwrap();
    run.seal("done").unwrap();
    let (s, _) = judged(&run);
    assert!(s.valid && s.answered && s.workloads[0].valid, "{:?}", s.findings);
    assert_eq!((finding(&s, "V24").level, s.workloads[0].window_s), (Level::Qualified, 13.0));
    assert_eq!(s.workloads[0].horizon_s, 15.0);
    // 130 slices of three.
    assert!((s.workloads[0].outcomes["ok"] as f64 / (130.0 * 3.0 * 101.0) - 1.0).abs() < 0.01);
    assert!(s.verdict.contains("Agent lg-2 was lost"), "{}", s.verdict);
}

/// A killed run ends where its record does, and its files do not end in the same slice.
#[test]
fn agents_of_a_killed_run_are_not_lost() {
    let mut agents = fleet(2);
    (agents[0].slices, agents[1].slices) = (200, 190);
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &agents, &agents);
    run.unseal().unwrap();
    let (s, _) = judged(&run);
    assert!(s.findings.iter().all(|f| f.code != "V24"), "{:?}", s.findings);
    agents[1].slices = 100;
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &agents, &agents);
    run.unseal().unwrap();
    assert_eq!(finding(&judged(&run).0, "V24").agent.as_deref(), Some("lg-2"));
    // A slice that is longer than a frame is a frame by itself.
    for (behind, lost) in [(1, false), (2, false), (3, true)] {
        let mut agents = fleet(2);
        agents.iter_mut().for_each(|a| (a.grid_ns, a.slices) = (5 * SECOND_NS, 40));
        agents[1].slices -= behind;
        let dir = tempfile::tempdir().unwrap();
        let run = write(dir.path(), &agents, &agents);
        run.unseal().unwrap();
        let (s, _) = judged(&run);
        assert_eq!(s.findings.iter().any(|f| f.code == "V24"), lost, "{behind}: {:?}", s.findings);
    }
}

/// The start of a stage is recorded of all agents, also of those that it has no work for.
#[test]
fn an_agent_without_work_is_not_lost() {
    let mut agents = fleet(3);
    (agents[2].workers, agents[2].slices) = (0, 0);
    let (s, _) = of(&agents);
    assert!(s.findings.iter().all(|f| f.code != "V24"), "{:?}", s.findings);
    agents[2].workers = WORKERS;
    assert_eq!(finding(&of(&agents).0, "V24").agent.as_deref(), Some("lg-3"));
}

/// One machine was booted a year ago, the other just now; a difference across them would be a year of CPU time.
#[test]
fn counters_of_two_machines_are_never_mixed() {
    let mut agents = fleet(2);
    (agents[0].boot, agents[1].boot) = (365 * 86_400 * SECOND_NS, 0);
    let (s, analysis) = of(&agents);
    assert_eq!((s.valid, wrong(&s)), (true, vec![]), "{:?}", s.findings);
    let client = &s.workloads[0].client;
    assert!((client.cpu_s - 12.0).abs() < 1e-3 && (client.system_cpu - 0.05).abs() < 1e-3, "{client:?}");
    assert!(analysis.bottlenecks.iter().all(|b| b.verdict == "clear"), "{:?}", analysis.bottlenecks);
    // Two agents on one machine: its counters are looked at once.
    agents[1] = Script { host: agents[0].host.clone(), ..agents[1].clone() };
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &agents, &agents[..1]);
    agents[1].intervals(&run);
    run.seal("done").unwrap();
    let (s, _) = judged(&run);
    // And the process that was sampled is one of the two: what they used is what their workers counted.
    assert!((s.workloads[0].client.cpu_s - 12.0).abs() < 1e-3, "{:?}", s.workloads[0].client);
    assert_eq!((s.agents[1].host.as_str(), wrong(&s)), ("node1", vec![]));
}

/// The sampled process is that of the first agent of a machine. Each agent's CPU is its own, and what the other used is no other work.
#[test]
fn of_agents_on_one_machine_each_has_its_own_cpu() {
    let mut agents = fleet(3);
    (agents[0].cpu, agents[1].cpu) = (0.4, 1.2);
    agents[1].host = agents[0].host.clone();
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &agents, &agents[..1]);
    agents[1].intervals(&run);
    agents[2].intervals(&run);
    agents[2].samples(&run);
    run.seal("done").unwrap();
    let (s, _) = judged(&run);
    // Shares of four cores.
    let cpu: Vec<f64> = s.agents.iter().map(|a| a.cpu_fraction.unwrap()).collect();
    assert!(cpu.iter().zip([0.1, 0.3, 0.05]).all(|(a, b)| (a - b).abs() < 1e-3), "{cpu:?}");
    // All of them, and not the first twice.
    assert!((s.workloads[0].client.cpu_s - 30.0 * 1.8).abs() < 0.1, "{:?}", s.workloads[0].client);
}

/// Two stages, of which the second began without the agent that was lost in the first.
#[test]
fn the_table_of_agents_is_of_the_stages_that_had_all_of_them() {
    let mut agents = fleet(3);
    agents[1].slices = 150;
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &agents, &agents);
    let data = run.load(&LoadOptions::default()).unwrap();
    let windows = windows_of(&data);
    let totals = run.totals(&windows.measured, windows.measured.len()).unwrap();
    let whole = run.totals(&windows.whole, 0).unwrap();
    // As the second stage is recorded: of the same times, and one agent has nothing of it.
    let (mut two, mut of_two) = (data.clone(), totals.clone());
    let mut after = two.stages[0].clone();
    after.index = 1;
    let lost = &mut after.agents[1];
    (lost.lost_ns, lost.last_ns) = (Some(after.start_ns), None);
    after.agents[1].workers = WORKERS;
    two.stages.push(after);
    let mut rest = totals[0].clone();
    rest.window.stage = 1;
    rest.agents.retain(|a| a.agent != 1);
    of_two.push(rest);
    let (s, _) = judge(&two, &of_two, &whole, &[]);
    let told = s.findings.iter().find(|f| f.name == "agents_of_some_stages").unwrap();
    assert!(told.text.contains("is of 1 of 2 stages (1)"), "{}", told.text);
    assert!(s.agents.iter().all(|a| (a.share - 1.0 / 3.0).abs() < 0.01), "{:?}", s.agents);
}

#[test]
fn one_agent_that_stood_still_is_named_and_the_storage_is_not() {
    let mut agents = fleet(2);
    agents[1].stopped = (100, 140);
    let (s, _) = of(&agents);
    let f = finding(&s, "V22");
    assert_eq!((f.name.as_str(), f.agent.as_deref()), ("client_stopped", Some("lg-2")));
    assert!(f.text.contains("was stopped for 4.0 s, from 10.0 to 14.0 s"), "{}", f.text);
    assert!(s.findings.iter().all(|f| f.code != "F60"), "{:?}", s.findings);
}

#[test]
fn an_agent_that_nobody_told_of_counts_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &[], &fleet(2));
    let (s, _) = judged(&run);
    assert_eq!(wrong(&s), [("F17", None)], "{:?}", s.findings);
    assert!(finding(&s, "F17").text.contains("2 that left a record (lg-1, lg-2)"), "{:?}", s.findings);
    assert_eq!((s.agents.len(), s.agents[0].host.as_str()), (2, ""));
}

#[test]
fn what_an_agent_has_two_files_of_is_no_sum() {
    let dir = tempfile::tempdir().unwrap();
    let agents = fleet(3);
    let run = write(dir.path(), &agents, &agents);
    let files = run.interval_files().unwrap();
    std::fs::copy(&files[0], files[0].with_file_name("copy.zst")).unwrap();
    let (s, _) = judged(&run);
    let told = finding(&s, "F17");
    assert!(told.name == "doubled_agents" && told.level == Level::Invalid, "{:?}", s.findings);
}

/// With a table of one or without: nobody is named, and there is no table in the result.
#[test]
fn a_run_of_one_agent_is_judged_as_it_always_was() {
    let mut alone = fleet(1);
    alone[0].busy = 0.97;
    let dir = tempfile::tempdir().unwrap();
    let (mut with, analysis) = judged(&write(dir.path(), &alone, &alone));
    let (without, same) = judged(&write(dir.path(), &[], &alone));
    with.environment.agents.clear();
    assert_eq!((&with, &analysis), (&without, &same));
    assert_eq!(wrong(&without), [("V07", None)]);
    assert!(finding(&without, "V07").text.starts_with("Client-bound: the workers were busy 97.0 %"));
    assert_eq!(analysis.bottlenecks[0].candidate, "client processor (worker threads)");
    let json = serde_json::to_string(&(&without, &analysis)).unwrap();
    assert!(!json.contains("\"agent"), "{json}");
}

/// As of a job file with a job that keeps ops in flight, and after it one with a rate: only that one can send late.
#[test]
fn ops_that_are_sent_late_void_the_paced_job_alone() {
    let stage = PLAN.split_once("[[stage]]").unwrap().1;
    let paced = stage.replace("\"get\"", "\"paced\"");
    let plan = format!("{PLAN}\n[[stage]]{paced}pacing = {{ constant = \"1000/s\" }}\n");
    for agents in [1, 2] {
        let mut there = fleet(agents);
        // 3 % of the paced job's, and less than 1.6 % of all.
        there[0].late_ops = 3;
        let dir = tempfile::tempdir().unwrap();
        let (s, _) = judged(&write_plan(dir.path(), &plan, &there, &there));
        let late: Vec<_> = s.findings.iter().filter(|f| f.code == "V06").collect();
        assert!(late.len() == 1 && late[0].workload.as_deref() == Some("paced/get"), "{:?}", s.findings);
        let valid: Vec<_> = s.workloads.iter().map(|w| (w.label(), w.valid)).collect();
        assert_eq!(valid, [("get".to_owned(), true), ("paced/get".to_owned(), false)]);
    }
}
