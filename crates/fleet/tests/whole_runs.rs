//! Whole runs over a fleet in one process, on a network that loses, doubles and delays. What reaches the record must not depend on it.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_bus::Weather;
use plimsoll_crew::SimNetwork;
use plimsoll_fleet::{Bounds, Choice};
use plimsoll_model::Event;
use plimsoll_run::{CrewChoice, Options, execute};
use support::plans::{PLAN, bit_exact};
use support::{FleetHere, Ran, bad_weather, plan, records};

#[test]
fn one_agent_leaves_the_records_of_this_process() {
    let dir = tempfile::tempdir().unwrap();
    let fleet = FleetHere::new(Weather::default()).agent("local");
    for text in &bit_exact() {
        let local = execute(&plan(text), &support::options(dir.path()), |_| {}).unwrap();
        let far = fleet.run(text).finished();
        assert_eq!(records(&far.path), records(&local.path), "the records differ");
        assert_eq!(far.summary.workloads, local.summary.workloads);
        assert_eq!(far.summary.verdict, local.summary.verdict);
    }
}

/// Simulated agents share one storage, and agents elsewhere simulate one each: the same where it draws nothing and limits nothing.
#[test]
fn agents_that_are_far_leave_the_records_of_simulated_ones() {
    let dir = tempfile::tempdir().unwrap();
    let network = SimNetwork { agents: 3, ..SimNetwork::default() };
    let options = Options { crew: CrewChoice::Simulated(network), ..support::options(dir.path()) };
    let plain = PLAN.replace("spread = 0.3\n", "");
    let simulated = execute(&plan(&plain), &options, |_| {}).unwrap();
    let fleet = (0..3).fold(FleetHere::new(Weather::default()), |f, n| f.agent(&format!("agent-{n}")));
    let far = fleet.run(&plain).finished();
    assert!(records(&far.path) == records(&simulated.path), "the records differ");
}

#[test]
fn the_record_is_what_the_agents_recorded_bit_for_bit_whatever_the_weather() {
    let names = ["lg-1", "lg-2", "lg-3"];
    let fleet = |weather| names.iter().fold(FleetHere::new(weather), |f, name| f.agent(name));
    let quiet = records(&fleet(Weather::default()).run(PLAN).finished().path);
    assert_eq!(quiet.len(), 3);
    for seed in 0..3 {
        let fleet = fleet(bad_weather(seed));
        let finished = fleet.run(PLAN).finished();
        assert!(records(&finished.path) == quiet, "weather {seed}");
        assert!(finished.summary.valid, "{:?}", finished.summary.findings);
        for (number, name) in (0..).zip(names) {
            let own = fleet.own_record(&finished.id, name, number);
            assert_eq!(support::stored(&finished.path, name), own, "{name} in weather {seed}");
            assert!(!own.is_empty());
        }
    }
}

#[test]
fn an_agent_too_many_has_nothing_to_do_and_does_not_disturb() {
    let fleet = FleetHere::new(Weather::default()).agent("a").agent("b").agent("c");
    let narrow = PLAN.replace("concurrency = 24", "concurrency = 2");
    let ran = fleet.run(&narrow);
    let told: Vec<_> =
        ran.messages().into_iter().filter(|t| t.contains("one agent is with nothing to do")).collect();
    assert!(told.len() == 1 && told[0].ends_with(": c"), "{told:?}");
    let finished = ran.finished();
    assert!(finished.summary.valid, "{:?}", finished.summary.findings);
    let slices = |name| support::stored(&finished.path, name).len();
    assert!(slices("a") > 50 && slices("b") > 50 && slices("c") == 0);
}

#[test]
fn a_lost_agent_is_named_and_dated_and_frees_itself() {
    let fleet = FleetHere::new(Weather::default()).agent("a").agent("b").agent("c");
    let fleet = fleet.patience(Duration::from_millis(2500));
    let ran = fleet.run_and(&lasting(), |fleet, event| {
        if matches!(event, Event::Live(_)) {
            fleet.bus("b").cut();
        }
    });
    let lost: Vec<_> = ran.messages().into_iter().filter(|t| t.contains("is lost")).collect();
    assert!(lost.len() == 1 && lost[0].starts_with("agent b is lost"), "{lost:?}");
    let finished = ran.finished();
    let found: Vec<_> = finished.summary.findings.iter().filter(|f| f.name == "agent_lost").collect();
    assert!(found.len() == 1 && found[0].agent.as_deref() == Some("b"), "{:?}", finished.summary.findings);
    assert_eq!(finished.exit_code, 3);
    fleet.bus("b").mend();
    fleet.wait_until_free(3);
}

#[test]
fn without_their_conductor_agents_stop_and_are_free_again() {
    let fleet = FleetHere::new(Weather::default()).agent("a").agent("b");
    let fleet = fleet.patience(Duration::from_millis(2500));
    let ran = fleet.run_and(&endless(), |fleet, event| {
        if matches!(event, Event::Live(_)) {
            fleet.conductor().cut();
        }
    });
    assert_eq!(ran.messages().iter().filter(|t| t.contains("is lost")).count(), 2, "{:?}", ran.messages());
    fleet.conductor().mend();
    fleet.wait_until_free(2);
    let stops = fleet.told().into_iter().filter(|t| t.contains("nothing was heard of the conductor"));
    assert_eq!(stops.count(), 2);
    // They can be hired again.
    assert!(fleet.run(PLAN).finished().summary.valid);
}

#[test]
fn clocks_that_are_off_are_found_out_and_all_begin_together() {
    let fleet = FleetHere::new(Weather::default());
    let ahead = BTreeMap::from([("a", 0), ("b", 3_000_000_007i64), ("c", -2_000_000_011)]);
    let fleet = ahead.iter().fold(fleet, |f, (name, ahead_ns)| f.agent_ahead(name, *ahead_ns));
    let finished = fleet.run(&null(3, "3000/s", "2s")).finished();
    let env = plimsoll_store::RunDir::open(&finished.path).unwrap().env().unwrap();
    assert_eq!(env.environment.agents.len(), 3);
    for host in &env.environment.agents {
        let clock = host.clock.unwrap();
        let truth = ahead[host.agent.as_str()];
        assert!(clock.offset_ns.abs_diff(truth) <= clock.bound_ns, "{}: {clock:?}", host.agent);
        assert_eq!(env.clock_offsets_ns[&host.agent], clock.offset_ns);
    }
    let first = |name: &&str| support::stored(&finished.path, name).first().unwrap().0;
    let firsts: Vec<u64> = ahead.keys().map(first).collect();
    assert!(firsts.iter().all(|f| *f == firsts[0]), "{firsts:?}");
    assert_eq!(finished.summary.agents.len(), 3);
    for a in &finished.summary.agents {
        // Nobody begins before the time, as far as clocks are known; a clock's own seconds are none of the skew.
        let (skew_ns, bound_ns) = (a.start_skew_ns.unwrap(), a.clock_bound_ns.unwrap() as i64);
        assert!((-bound_ns..1_000_000_000).contains(&skew_ns), "{a:?}");
        assert!(a.first_op_s.unwrap() > 0.0 && a.last_op_s.unwrap() > a.first_op_s.unwrap(), "{a:?}");
    }
}

/// Round the world and back: what is measured and when all begin does not depend on how far they are.
#[test]
fn agents_far_away_are_waited_for_and_begin_together() {
    let far = Weather { way: Duration::from_millis(200), ..Weather::default() };
    let fleet = FleetHere::new(far).agent_ahead("a", 0).agent_ahead("b", 5_000_000_000);
    let finished = fleet.run(&null(2, "400/s", "2s")).finished();
    let codes: Vec<&str> = finished.summary.findings.iter().map(|f| f.code.as_str()).collect();
    assert!(finished.summary.agents.len() == 2 && !codes.contains(&"Q15"), "{codes:?}");
    for a in &finished.summary.agents {
        let (skew_ns, bound_ns) = (a.start_skew_ns.unwrap(), a.clock_bound_ns.unwrap() as i64);
        assert!((-bound_ns..1_000_000_000).contains(&skew_ns) && bound_ns > 190_000_000, "{a:?}");
    }
    for (number, name) in (0..).zip(["a", "b"]) {
        let own: u64 = fleet
            .own_record(&finished.id, name, number)
            .iter()
            .map(|(_, i)| i.series.iter().map(|s| s.ok()).sum::<u64>())
            .sum();
        let stored: u64 = support::stored(&finished.path, name)
            .iter()
            .map(|(_, i)| i.series.iter().map(|s| s.ok()).sum::<u64>())
            .sum();
        assert!(own == stored && own > 300, "{name}: {own} and {stored}");
    }
}

/// The run is of the time before, and says so when it is judged again.
#[test]
fn a_loss_that_is_taken_ends_the_window_where_the_agent_was_lost() {
    let fleet =
        FleetHere::new(Weather::default()).agent("a").agent("b").patience(Duration::from_millis(2500));
    let begun = std::cell::Cell::new(None);
    let plan = lasting().replace("[targets.n]", "[options]\non_agent_loss = \"continue\"\n[targets.n]");
    let ran = fleet.run_and(&plan, |fleet, event| {
        if matches!(event, Event::Live(_)) {
            let since = begun.get().unwrap_or_else(std::time::Instant::now);
            begun.set(Some(since));
            if since.elapsed() > Duration::from_secs(2) {
                fleet.bus("b").cut();
            }
        }
    });
    let finished = ran.finished();
    let lost: Vec<_> = finished.summary.findings.iter().filter(|f| f.name == "agent_lost").collect();
    let [lost] = lost[..] else { panic!("{:?}", finished.summary.findings) };
    assert_eq!((lost.level, lost.agent.as_deref()), (plimsoll_model::Level::Qualified, Some("b")));
    let run = plimsoll_store::RunDir::open(&finished.path).unwrap();
    let data = run.load(&Default::default()).unwrap();
    let lost_ns = data.stages[0].agents[1].lost_ns.unwrap();
    let window = data.stages[0].window(data.grid_ns).unwrap();
    assert_eq!(window.to * data.grid_ns, lost_ns);
    let of = |name: &str| -> u64 {
        let slices = support::stored(&finished.path, name).into_iter();
        let inside = slices.filter(|(index, _)| (window.from..window.to).contains(index));
        inside.flat_map(|(_, slice)| slice.series).map(|s| s.ok()).sum()
    };
    assert_eq!(finished.summary.workloads[0].outcomes["ok"], of("a") + of("b"));
    assert_eq!(plimsoll_run::judged_by_record(&run).unwrap(), finished.summary);
}

#[test]
fn a_fleet_too_small_a_busy_agent_and_a_plan_out_of_bounds_are_refused_by_name() {
    let fleet = FleetHere::new(Weather::default()).agent("a").agent_within("b", Bounds::default());
    let fleet = fleet.choice(Choice::Count(3));
    let refused = fleet.run(PLAN).refusal();
    assert!(refused.contains("3 agents are wanted, and 2 are free, of a, b"), "{refused}");
    let fleet = fleet.choice(Choice::All);
    let dir = tempfile::tempdir().unwrap();
    let files = format!(
        "version = 1\n[targets.f]\nkind = \"files\"\ndirectory = \"{}\"\nfile_size = \"1MiB\"\n[[stage]]\n\
         [[stage.workload]]\nname = \"w\"\nmix = {{ read = 1 }}\n",
        dir.path().display()
    );
    let fleet = fleet.choice(Choice::Labelled("name".into(), "b".into()));
    let refused = fleet.run(&files).refusal();
    assert!(refused.contains("agent b: it does not let files be made in"), "{refused}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    fleet.wait_until_free(2);
}

#[test]
fn a_stranger_is_not_obeyed() {
    let fleet = FleetHere::new(Weather::default()).agent("a").patience(Duration::from_secs(1));
    let stranger = fleet.as_stranger();
    let options = Options { crew: CrewChoice::Fleet(stranger), ..support::options(fleet.root()) };
    let refused = execute(&plan(PLAN), &options, |_| {}).unwrap_err().to_string();
    assert!(refused.contains("agent a"), "{refused}");
    assert!(
        fleet.told().iter().any(|t| t.contains("its signature is not the conductor's")),
        "{:?}",
        fleet.told()
    );
    fleet.wait_until_free(1);
}

#[test]
fn an_interrupt_ends_a_run_in_order_and_agents_are_free() {
    let fleet = FleetHere::new(Weather::default()).agent("a").agent("b");
    let ran: Ran = fleet.run_and(&endless(), |fleet, event| {
        if matches!(event, Event::Live(_)) {
            fleet.interrupt();
        }
    });
    assert_eq!(ran.finished().exit_code, 130);
    fleet.wait_until_free(2);
}

/// A load of ops that do nothing, so many in flight, at a rate, for a time.
fn null(concurrency: u32, rate: &str, duration: &str) -> String {
    format!(
        r#"
version = 1
[targets.n]
kind = "null"
[[stage]]
warmup = "0s"
[[stage.workload]]
name = "w"
mix = {{ null = 1 }}
concurrency = {concurrency}
pacing = {{ constant = "{rate}" }}
stop = {{ duration = "{duration}" }}
"#
    )
}

fn lasting() -> String {
    null(3, "300/s", "8s")
}

fn endless() -> String {
    null(2, "300/s", "10h")
}

/// Of two stages, an agent is lost in the first: the second one is run by the others, and says who is missing.
#[test]
fn an_agent_that_was_lost_is_missing_in_later_stages_too() {
    let fleet =
        FleetHere::new(Weather::default()).agent("a").agent("b").patience(Duration::from_millis(2500));
    let one = lasting();
    let stage = &one[one.find("[[stage]]").unwrap()..];
    let ran = fleet.run_and(&format!("{one}{stage}"), |fleet, event| {
        if matches!(event, Event::Live(_)) {
            fleet.bus("b").cut();
        }
    });
    assert_eq!(ran.messages().iter().filter(|t| t.starts_with("agent b is lost")).count(), 2);
    let finished = ran.finished();
    let lost = finished.summary.findings.iter().filter(|f| f.name == "agent_lost");
    assert!(lost.clone().count() >= 1 && !finished.summary.valid, "{:?}", finished.summary.findings);
    let data = plimsoll_store::RunDir::open(&finished.path).unwrap().load(&Default::default()).unwrap();
    for stage in &data.stages {
        let of_b = &stage.agents[1];
        assert!(of_b.workers > 0 && of_b.end_ns.is_none(), "{of_b:?}");
    }
}
