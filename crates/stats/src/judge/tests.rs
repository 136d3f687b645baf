//! A good stage is valid, each defect is named, and no input panics or gives NaN.

use plimsoll_model::interval::{Series, SeriesShape};
use plimsoll_model::{Histogram, Outcome};
use proptest::prelude::*;

use super::*;
use crate::rng::Rng;

fn good(seed: u64) -> StageSeen {
    let mut rng = Rng::new(seed);
    let n = 280;
    let mut h = Histogram::new();
    for _ in 0..22_400 {
        h.record((rng.normal() * 0.5).exp().mul_add(1e7, 1e7) as u64);
    }
    let ok: Vec<f64> = (0..n).map(|_| (80.0 + 4.0 * rng.normal()).round()).collect();
    let in_flight: Vec<f64> = ok.iter().map(|k| k * 0.2).collect();
    let law = Sums {
        window_s: 28.0,
        in_flight_op_s: in_flight.iter().sum::<f64>() * 0.1,
        in_system_s: ok.iter().map(|k| k * 0.02).sum(),
        ended: ok.iter().sum(),
        ..Sums::default()
    };
    let response = LatencySummary::of(&h);
    let w = WorkloadSeen {
        name: "get".into(),
        op: Some(OpKind::Get),
        size_bytes: 4096,
        concurrency: 16,
        bytes_ok: ok.iter().map(|k| k * 4096.0).collect(),
        bytes_moved: ok.iter().map(|k| k * 4096.0).collect(),
        throttled: vec![0.0; n],
        failed: vec![0.0; n],
        started: ok.clone(),
        response,
        ok,
        ..WorkloadSeen::default()
    };
    let client = ClientSeen { busy: vec![0.2; n], in_flight, ..ClientSeen::default() };
    StageSeen {
        dt_s: 0.1,
        workloads: vec![w],
        clients: vec![client],
        law: Some(law),
        horizon_s: 30.0,
        max_error_rate: 0.001,
        ..StageSeen::default()
    }
}

fn names(s: &StageSeen) -> Vec<String> {
    judge(s).findings.into_iter().map(|f| f.name).collect()
}

#[test]
fn a_good_stage_is_valid() {
    let j = judge(&good(1));
    assert!(j.is_valid(), "{:?}", j.findings);
    let e = *j.workloads[0].ops_per_s.known().unwrap();
    assert!(e.contains(800.0) && e.relative_half_width() < 0.02, "{e:?}");
    assert!((j.workloads[0].bytes_per_s.known().unwrap().value / (e.value * 4096.0) - 1.0).abs() < 1e-9);
    assert!(j.littles_law.unwrap().error < 0.01);
    assert_eq!(judge(&good(1)), judge(&good(1)));
}

/// A depth is each job's: 4 jobs of 4 are 16 in flight, and four times as many are a depth of 16.
#[test]
fn the_option_to_try_is_said_in_its_own_meaning() {
    let text = |option: Option<&'static str>, jobs: u32| {
        let mut s = good(1);
        let mut even = Histogram::new();
        (0..1000).for_each(|_| even.record(20_000_000));
        s.workloads[0] = WorkloadSeen { response: LatencySummary::of(&even), jobs, ..s.workloads[0].clone() };
        s.in_flight_option = option;
        judge(&s).findings.into_iter().find(|f| f.name == "concurrency_bound").unwrap().text
    };
    assert!(text(None, 1).contains("Try --concurrency 64: "), "{}", text(None, 1));
    let depth = text(Some("--iodepth"), 4);
    assert!(depth.contains("Try --iodepth 16 (64 in flight over 4 jobs): "), "{depth}");
    let job = text(Some("--set iodepth="), 4);
    assert!(job.contains("Try --set iodepth=16 (64 in flight over 4 jobs): "), "{job}");
}

/// Two jobs that take from each other in long turns: neither has a rate, and together they have one.
#[test]
fn of_jobs_together_the_sum_has_to_be_known() {
    let mut s = good(1);
    let turns = |phase: usize| -> Vec<f64> {
        (0..280).map(|i| f64::from(u8::from((i / 140) % 2 == phase)) * 80.0).collect()
    };
    let job =
        |name: &str, phase| WorkloadSeen { name: name.into(), ok: turns(phase), ..s.workloads[0].clone() };
    s.workloads = vec![job("a", 0), job("b", 1)];
    let widths = |s: &StageSeen| {
        let of_width = |f: &Finding| ["no_rate", "wide_interval"].contains(&f.name.as_str());
        judge(s).findings.into_iter().filter(of_width).filter_map(|f| f.workload).collect::<Vec<_>>()
    };
    assert!(widths(&s).contains(&"a/get".to_owned()) && widths(&s).contains(&"b/get".to_owned()));
    s.sums = vec![SumSeen { op: OpKind::Get, name: "together".into(), rate: None }];
    assert_eq!(widths(&s), [""; 0]);
    // And is called unknown where it is.
    s.workloads[1].ok = turns(0);
    assert!(!widths(&s).is_empty() && widths(&s).iter().all(|w| w == "together/get"), "{:?}", widths(&s));
}

/// The width that is judged is that of the interval that is printed, and there is one thing to do about it.
#[test]
fn one_figure_has_one_remedy() {
    let of_width = |s: &StageSeen| {
        let named = |f: &Finding| ["no_rate", "wide_interval"].contains(&f.name.as_str());
        judge(s).findings.into_iter().filter(named).collect::<Vec<_>>()
    };
    let mut s = good(3);
    assert_eq!(of_width(&s), []);
    s.workloads[0].rate = Some(Estimate::symmetric(800.0, 160.0, 20.0));
    let found = of_width(&s);
    assert_eq!((found.len(), found[0].measured), (1, Some(0.2)), "{found:?}");
    assert!(
        found[0].text.contains("±20.0 % (at most 10 %") && found[0].text.contains("4.0 times"),
        "{found:?}"
    );
    s.workloads[0].rate = Some(Estimate::symmetric(800.0, 720.0, 2.0));
    let found = of_width(&s);
    assert_eq!((found.len(), found[0].name.as_str()), (1, "no_rate"), "{found:?}");
    assert_eq!(judge(&s).workloads[0].ops_per_s.known(), s.workloads[0].rate.as_ref());
}

#[test]
fn defects_are_named() {
    let mut s = good(2);
    s.clients[0].busy.fill(0.97);
    assert!(names(&s).contains(&"client_bound".into()));
    s.client_is_subject = true;
    assert!(!names(&s).contains(&"client_bound".into()));

    let mut s = good(2);
    s.law.as_mut().unwrap().in_system_s *= 0.5;
    assert!(names(&s).contains(&"littles_law".into()));

    let mut s = good(2);
    s.workloads[0].failed.fill(1.0);
    assert!(names(&s).contains(&"error_rate".into()));

    let mut s = good(2);
    s.workloads[0].throttled.fill(5.0);
    let j = judge(&s);
    assert!(j.is_valid() && j.findings.iter().any(|f| f.name == "throttled"));

    let mut s = good(2);
    s.goal_s = Some(3600.0);
    assert!(names(&s).contains(&"horizon".into()));

    let mut s = good(2);
    s.workloads[0].offered_per_s = Some(1000.0);
    assert!(names(&s).contains(&"offered_rate_missed".into()));
}

/// Once a limiter is proved of which a load that goes on gets nothing, "or storage that is down" is untrue.
#[test]
fn what_refused_all_of_a_load_is_said_as_far_as_it_is_known() {
    let mut s = good(2);
    let w = &mut s.workloads[0];
    w.throttled = std::mem::replace(&mut w.ok, vec![0.0; 280]);
    let text = |s: &StageSeen| judge(s).findings.into_iter().find(|f| f.code == "F01").unwrap().text;
    assert!(text(&s).contains("this may be a limiter or storage that is down"), "{}", text(&s));
    s.limiter_known = true;
    assert!(
        text(&s).contains("the limiter lets nothing through from a load that does not back off"),
        "{}",
        text(&s)
    );
}

/// A load that backs off is told beside its refusals; a rate that was offered and not sent for that is the limiter's doing.
#[test]
fn a_load_that_held_back_says_so() {
    let mut s = good(2);
    s.workloads[0].throttled = vec![8.0; 280];
    let of = |s: &StageSeen, code: &str| judge(s).findings.into_iter().find(|f| f.code == code);
    let text = |s: &StageSeen| of(s, "F01").unwrap().text;
    assert!(text(&s).ends_with("a rate limiter is active."), "{}", text(&s));
    s.held_back = 0.87;
    assert!(
        text(&s).contains("held back after refused attempts, for 87.0 % of the time of its slots"),
        "{}",
        text(&s)
    );
    s.workloads[0].offered_per_s = Some(3000.0);
    let f = of(&s, "V05").unwrap();
    assert_eq!((f.name.as_str(), f.level), ("held_back", Level::Qualified), "{}", f.text);
    // Slots that were taken by slow ops are something else.
    s.held_back = 0.2;
    let f = of(&s, "V05").unwrap();
    assert_eq!((f.name.as_str(), f.level), ("offered_rate_missed", Level::Invalid), "{}", f.text);
}

/// A busy machine, and a limiter that refuses 49 of 50 attempts of a client that others leave little CPU to: while it refuses
/// without a pause, what passes is the limiter's rate, however little CPU the client has.
#[test]
fn a_limiter_that_refuses_all_the_time_sets_the_rate_of_a_starved_client() {
    let starved = |refused: &dyn Fn(usize) -> f64| {
        let mut s = good(2);
        let n = s.workloads[0].ok.len();
        s.workloads[0].throttled = (0..n).map(refused).collect();
        let alone = ClientSeen {
            busy: vec![0.40; n],
            turns: vec![Turns { alive_s: 0.1, wait_s: 0.0483, turns: 16.0 }; n],
            workers: 1.0,
            others_cpu: Some(0.7),
            own_cpu: Some(0.2),
            ..s.clients[0].clone()
        };
        s.clients = vec![alone];
        s
    };
    let v07 = |s: &StageSeen| {
        let found = judge(s).findings.into_iter().find(|f| f.code == "V07");
        found.map(|f| (f.name, f.level, f.text))
    };
    for loopback in [false, true] {
        let s = StageSeen { loopback, ..starved(&|_| 3920.0) };
        let (name, level, text) = v07(&s).unwrap();
        assert_eq!((name.as_str(), level), ("busy_with_refusals", Level::Qualified), "{text}");
        assert!(text.contains("The rate is what the limiter let through"), "{text}");
        assert!(judge(&s).is_valid(), "{:?}", judge(&s).findings);
    }
    // Seconds without a refusal: then it offered less than the limiter lets through.
    let (name, level, _) = v07(&starved(&|i| if (i / 10) % 2 == 0 { 7840.0 } else { 0.0 })).unwrap();
    assert_eq!((name.as_str(), level), ("cpu_taken", Level::Invalid));
    assert_eq!(v07(&starved(&|_| 10.0)).unwrap().1, Level::Invalid, "few are refused");
    // So with a client that is full.
    let full = |refused: &dyn Fn(usize) -> f64| {
        let mut s = starved(refused);
        (s.clients[0].turns, s.clients[0].busy) = (Vec::new(), vec![0.97; s.clients[0].busy.len()]);
        s
    };
    assert_eq!(v07(&full(&|_| 3920.0)).unwrap().0, "busy_with_refusals");
    assert_eq!(v07(&full(&|i| if (i / 10) % 2 == 0 { 7840.0 } else { 0.0 })).unwrap().0, "client_bound");
    let mut s = starved(&|_| 3920.0);
    s.clients[0].quota = Some(QuotaUse { cores: 0.1, throttled: 0.98, used: 0.99 });
    let (name, level, _) = v07(&s).unwrap();
    assert_eq!(
        (name.as_str(), level),
        ("cpu_quota", Level::Invalid),
        "a client that is stopped for tens of milliseconds at a time misses what a limiter without a burst would have let through"
    );
}

/// Our own server is other work on this machine, too.
#[test]
fn storage_on_this_machine_is_named_among_what_takes_the_cpu() {
    let mut s = good(2);
    let n = s.clients[0].busy.len();
    s.clients[0].busy = vec![0.40; n];
    s.clients[0].turns = vec![Turns { alive_s: 0.1, wait_s: 0.0483, turns: 16.0 }; n];
    (s.clients[0].workers, s.clients[0].others_cpu, s.clients[0].own_cpu) = (1.0, Some(0.7), Some(0.2));
    let text = |s: &StageSeen| judge(s).findings.into_iter().find(|f| f.name == "cpu_taken").unwrap().text;
    assert!(!text(&s).contains("the storage itself"), "{}", text(&s));
    s.loopback = true;
    assert!(text(&s).contains("(including the storage itself)"), "{}", text(&s));
}

/// A good stage of so many agents, each with an eighth of its time busy.
fn fleet(agents: u32) -> StageSeen {
    let mut s = good(2);
    let alone = s.clients.remove(0);
    let of = |n: u32| ClientSeen {
        agent: format!("lg-{n}"),
        busy: vec![0.12; alone.busy.len()],
        workers: 2.0,
        started: 10_000.0,
        ok: 10_000.0 + f64::from(n),
        share_of_work: 16,
        ..ClientSeen::default()
    };
    s.clients = (1..=agents).map(of).collect();
    s
}

fn of_agents(s: &StageSeen) -> Vec<(String, Option<String>)> {
    let found = judge(s).findings;
    assert!(found.iter().all(|f| f.agent.is_none() || f.text.starts_with("agent lg-")), "{found:?}");
    found.into_iter().filter(|f| f.agent.is_some()).map(|f| (f.code, f.agent)).collect()
}

fn said(code: &str, agent: &str) -> (String, Option<String>) {
    (code.into(), Some(agent.into()))
}

/// The sum of eight is 23 % busy; one of them is full.
#[test]
fn one_full_agent_of_eight_is_found() {
    let mut s = fleet(8);
    assert_eq!(of_agents(&s), []);
    s.clients[2].busy.fill(0.97);
    assert_eq!(of_agents(&s), [said("V07", "lg-3")]);
    let j = judge(&s);
    let f = j.findings.iter().find(|f| f.code == "V07").unwrap();
    assert!(f.text.starts_with("agent lg-3: Client-bound: the workers were busy 97.0 %"), "{}", f.text);
    assert!(!j.is_valid() && (j.busy_fraction.unwrap() - 0.97).abs() < 1e-9);
    assert_eq!(
        (j.facts.len(), j.facts[1].client_busy),
        (10, None),
        "a workload, the stage, and eight agents"
    );
    // The same of its interface, of its quota, of its late ops, of its stolen time.
    type Harm = (&'static str, fn(&mut ClientSeen));
    let harms: [Harm; 4] = [
        ("V07", |c| c.nic_share = Some(0.97)),
        ("V07", |c| c.quota = Some(QuotaUse { cores: 1.0, throttled: 0.9, used: 0.9 })),
        ("V06", |c| c.late_ops = 900.0),
        ("V22", |c| c.steal = Some(0.2)),
    ];
    for (code, harm) in harms {
        let mut s = fleet(8);
        s.workloads[0].offered_per_s = Some(800.0);
        harm(&mut s.clients[5]);
        assert_eq!(of_agents(&s), [said(code, "lg-6")]);
    }
}

#[test]
fn an_agent_that_is_alone_is_not_named() {
    let mut s = fleet(1);
    s.clients[0].busy.fill(0.97);
    assert_eq!(of_agents(&s), []);
    let mut alone = good(2);
    alone.clients[0].busy.fill(0.97);
    assert_eq!(judge(&s).findings, judge(&alone).findings);
}

#[test]
fn an_agent_that_does_less_than_its_like_is_told_with_its_cause() {
    let text = |s: &StageSeen| judge(s).findings.into_iter().find(|f| f.code == "Q14").unwrap().text;
    let mut s = fleet(8);
    s.clients[3].ok = 5_000.0;
    assert_eq!(of_agents(&s), [said("Q14", "lg-4")]);
    assert!(
        text(&s).contains(
            "agent lg-4: 50.0 % of the median; the cause is not known. It did 5000 ops in the measured window"
        ),
        "{}",
        text(&s)
    );
    assert!(judge(&s).is_valid());
    s.clients[3].nic_share = Some(0.99);
    assert_eq!(of_agents(&s), [said("V07", "lg-4"), said("Q14", "lg-4")]);
    let said_so = "likely cause: its network interface ran at 99.0 % of its speed (V07 client_bound). It did";
    assert!(text(&s).contains(said_so), "{}", text(&s));
    s.clients[3].busy.fill(0.97);
    assert!(
        text(&s).contains("likely cause: its workers were busy 97.0 % of their time (V07"),
        "{}",
        text(&s)
    );
    // From four fifths of the median on it is none.
    let mut s = fleet(8);
    s.clients[3].ok = 8_110.0;
    assert_eq!(of_agents(&s), []);
    s.clients[3].ok = 7_900.0;
    assert_eq!(of_agents(&s), [said("Q14", "lg-4")]);
    // One that had half of the work is none; nor is one of two that differ by chance.
    let mut s = fleet(8);
    (s.clients[3].ok, s.clients[3].share_of_work) = (5_000.0, 8);
    assert_eq!(of_agents(&s), []);
    s.clients.iter_mut().for_each(|c| c.ok = 20.0);
    s.clients[3].share_of_work = 16;
    s.clients[3].ok = 12.0;
    assert_eq!(of_agents(&s), []);
}

/// The likely cause is one of the findings on that agent, by the rules of these: nothing is named that they do not find.
#[test]
fn the_cause_of_a_straggler_is_what_is_found_of_that_agent() {
    let told = |nic: f64, wait_s: f64, throttled: f64, steal: f64| {
        let mut s = fleet(8);
        let c = &mut s.clients[3];
        (c.ok, c.nic_share, c.steal) = (5_000.0, Some(nic), Some(steal));
        c.quota = Some(QuotaUse { cores: 1.0, throttled, used: 0.3 });
        c.turns = vec![Turns { alive_s: 0.1, wait_s, turns: 16.0 }; c.busy.len()];
        (c.workers, c.others_cpu, c.own_cpu) = (1.0, Some(0.7), Some(0.2));
        let found = judge(&s).findings;
        let text = found.iter().find(|f| f.code == "Q14").unwrap().text.clone();
        let others = found.into_iter().filter(|f| f.agent.is_some() && f.code != "Q14");
        let named: Vec<String> = others.map(|f| format!("({} {}).", f.code, f.name)).collect();
        (named, text)
    };
    // Other work took a part of the CPU, or the quota ran out now and then, but it is the interface that is full.
    for (wait_s, throttled) in [(0.02, 0.0), (0.0, 0.05)] {
        let (named, text) = told(0.95, wait_s, throttled, 0.0);
        assert_eq!(named, ["(V07 client_bound)."]);
        assert!(text.contains(&named[0]), "{text}");
    }
    let (named, text) = told(0.1, 0.02, 0.0, 0.2);
    assert_eq!(named, ["(V07 cpu_taken).", "(V22 steal)."]);
    assert!(
        text.contains("likely cause: other processes on its machine took its CPU (V07 cpu_taken)."),
        "{text}"
    );
    // A wait that the quota explains in part is below what is told; stolen time is told from beyond 5 % on.
    for (wait_s, throttled, steal) in [(0.0055, 0.009, 0.0), (0.0, 0.0, 0.05)] {
        let (named, text) = told(0.1, wait_s, throttled, steal);
        assert!(named.is_empty() && text.contains("the cause is not known"), "{named:?} {text}");
    }
    // Lag that only the highest percentiles have is no cause of what was not done.
    let mut s = fleet(8);
    s.workloads[0].offered_per_s = Some(800.0);
    let c = &mut s.clients[3];
    (c.ok, c.late_ops) = (5_000.0, 900.0);
    c.turns = vec![Turns { alive_s: 0.1, wait_s: 0.0004, turns: 16.0 }; c.busy.len()];
    (c.workers, c.others_cpu, c.own_cpu) = (1.0, Some(0.7), Some(0.2));
    let found = judge(&s).findings;
    assert!(found.iter().any(|f| f.code == "V07" && f.level == Level::Info), "{found:?}");
    let text = &found.iter().find(|f| f.code == "Q14").unwrap().text;
    assert!(text.contains("likely cause: it sent ops late (V06 schedule_lag)."), "{text}");
}

/// Beyond what its clock may be off by, and 10 ms more.
#[test]
fn an_agent_that_began_late_is_named_and_qualified_where_the_warm_up_was_over() {
    let late = |skew_s: f64| {
        let mut s = fleet(3);
        s.clients[1].start = Some(AgentStart { skew_s, bound_s: 0.002, warmup_s: 0.5 });
        judge(&s).findings.into_iter().find(|f| f.code == "Q15")
    };
    assert_eq!((late(0.0), late(-0.3), late(0.0119)), (None, None, None));
    let f = late(0.013).unwrap();
    assert_eq!((f.level, f.agent.as_deref()), (Level::Info, Some("lg-2")));
    assert_eq!((f.measured, f.threshold), (Some(0.013), Some(0.012)));
    let f = late(0.75).unwrap();
    assert_eq!(f.level, Level::Qualified);
    assert!(f.text.contains("750.0 ms later") && f.text.contains("had begun 250 ms before"), "{}", f.text);
}

/// A loss that may be: its figures stand, with that said beside them.
#[test]
fn a_loss_that_is_taken_qualifies() {
    let mut s = fleet(3);
    let lost = AgentLost {
        at_s: 12.4,
        missing_s: 17.6,
        share: 0.63,
        damaged: false,
        shared_s: Some(10.4),
        stands: true,
        all: false,
    };
    s.clients[1].lost = Some(lost);
    let f = judge(&s).findings.remove(0);
    assert_eq!((f.code.as_str(), f.level), ("V24", Level::Qualified));
    assert!(
        f.text.contains("figures are of the 10.4 s of the window in which all agents were there"),
        "{}",
        f.text
    );
    s.clients[1].lost = Some(AgentLost { stands: false, ..lost });
    let f = judge(&s).findings.remove(0);
    assert!(f.level == Level::Invalid && f.text.contains("--on-agent-loss continue"), "{}", f.text);
    // Where nobody is left, continue is no remedy.
    s.clients[1].lost = Some(AgentLost { all: true, ..lost });
    let f = judge(&s).findings.remove(0);
    assert!(
        f.level == Level::Invalid && f.text.ends_with("window. All others were lost, too."),
        "{}",
        f.text
    );
}

/// What an agent did that was lost is not compared, and holds nobody else to it.
#[test]
fn a_lost_agent_makes_the_stage_invalid_and_is_no_straggler() {
    let mut s = fleet(3);
    s.clients[1].ok = 100.0;
    s.clients[1].lost = Some(AgentLost {
        at_s: 12.4,
        missing_s: 17.6,
        share: 0.63,
        damaged: true,
        shared_s: None,
        stands: false,
        all: false,
    });
    assert_eq!(of_agents(&s), [said("V24", "lg-2")]);
    let f = judge(&s).findings.remove(0);
    assert_eq!((f.level, f.measured), (Level::Invalid, Some(0.63)));
    assert!(
        f.text.contains("12.4 s after the load began (its file is damaged), 17.6 s before"),
        "{}",
        f.text
    );
}

#[test]
fn of_many_with_the_same_fault_the_worst_are_named() {
    let mut s = fleet(100);
    s.clients.iter_mut().enumerate().for_each(|(i, c)| c.busy.fill(0.86 + 0.001 * i as f64));
    let found: Vec<Finding> = judge(&s).findings.into_iter().filter(|f| f.code == "V07").collect();
    assert_eq!((found.len(), found[0].agent.as_deref()), (8, Some("lg-100")));
    assert_eq!(found[0].evidence, [("more agents with the same finding".to_owned(), "92".to_owned())]);
}

#[test]
fn a_rate_set_by_the_concurrency_is_called_so() {
    let mut s = good(3);
    let mut h = Histogram::new();
    (0..1000).for_each(|i| h.record(20_000_000 + i * 1000));
    s.workloads[0].response = LatencySummary::of(&h);
    let j = judge(&s);
    let f = j.findings.iter().find(|f| f.name == "concurrency_bound").unwrap();
    assert!(f.text.contains("--concurrency 64"), "{}", f.text);
}

#[test]
fn empty_and_all_error_stages_have_a_reason() {
    for n in [0, 1, 2, 50] {
        let mut s = good(4);
        let w = &mut s.workloads[0];
        for v in [&mut w.ok, &mut w.bytes_ok, &mut w.started, &mut w.throttled] {
            *v = vec![0.0; n];
        }
        w.failed = vec![7.0; n];
        w.response = None;
        s.clients = vec![ClientSeen::default()];
        let j = judge(&s);
        assert!(!j.is_valid() && !j.findings.is_empty(), "{n}");
    }
    assert!(judge(&StageSeen::default()).workloads.is_empty());
}

#[test]
fn intervals_become_series() {
    let id = SeriesId { stage: 0, workload: 0, kind: OpKind::Get };
    let mut series = Series::new(id, SeriesShape::default());
    series.counts.started = 9;
    series.counts.outcomes[Outcome::Ok.index()] = 7;
    series.counts.outcomes[Outcome::Http429.index()] = 2;
    series.counts.bytes_ok = 7 * 4096;
    series.counts.in_system_ns = 9_000_000_000;
    let mut a = Interval::empty(0);
    a.series.push(series);
    a.client.alive_ns = 200_000_000;
    a.client.waited_ns = 150_000_000;
    a.client.in_flight_ns = 400_000_000;
    let all = [a, Interval::empty(1)];
    let w = WorkloadSeen::from_intervals("get", id, &all);
    assert_eq!((w.ok.clone(), w.throttled.clone()), (vec![7.0, 0.0], vec![2.0, 0.0]));
    let c = ClientSeen::from_intervals(&all, 0.1);
    assert_eq!((c.busy, c.in_flight), (vec![0.25, 0.0], vec![4.0, 0.0]));
}

proptest! {
    #[test]
    fn any_series_has_a_verdict(ok in proptest::collection::vec(0.0f64..1e7, 0..60), fail in 0.0f64..10.0, flight in 0.0f64..1e4) {
        let n = ok.len();
        let w = WorkloadSeen { name: "x".into(), failed: vec![fail; n], bytes_ok: ok.clone(), ok, ..WorkloadSeen::default() };
        let client = ClientSeen { in_flight: vec![flight; n], busy: vec![0.1; n], ..ClientSeen::default() };
        let s = StageSeen { dt_s: 0.1, workloads: vec![w], clients: vec![client], horizon_s: 5.0, ..StageSeen::default() };
        for f in judge(&s).findings {
            prop_assert!(f.measured.is_none_or(f64::is_finite), "{:?}", f);
            prop_assert!(!f.text.contains("NaN"), "{}", f.text);
        }
    }
}
