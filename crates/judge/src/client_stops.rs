//! When the client itself stood still (stopped, suspended, a virtual machine that was paused): what came then says nothing of
//! the storage.

use plimsoll_model::interval::ClientCounts;
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::{Finding, Level};
use plimsoll_stats::client_time::{self, HandedOver};
use plimsoll_stats::outage::SHORTEST_S;
use plimsoll_stats::probe::only_chooses_load;
use plimsoll_stats::words;
use plimsoll_store::{RunAgent, RunData, StageAgent, StageData};

use super::line::Line;

/// Of the load's time; more of it makes the stage's rates those of an outage, or of a client that stood still (the width that an
/// interval may have, Q03).
pub const MOST_OF_THE_LOAD: f64 = 0.1;

/// The sampler's period, seconds (`sample/thread.rs`).
const SAMPLE_EVERY_S: f64 = 1.0;

/// One step of what the workers handed over.
pub fn handed_over(c: &ClientCounts) -> HandedOver {
    HandedOver {
        slices: c.workers,
        alive_s: c.alive_ns as f64 / 1e9,
        in_flight_op_s: c.in_flight_ns as f64 / 1e9,
    }
}

/// What the plan allows in flight at once.
pub fn most_in_flight(stage: &StageData) -> f64 {
    stage.spec.workloads.iter().map(|w| f64::from(w.in_flight())).sum()
}

/// Steps `[from, to)` in which an agent stood still: no worker of it ran, and neither did the sampler of its machine. A worker that
/// waits for sockets never waits longer than to the grid's edge; one that reads and writes files may be held up by them, so that there
/// the sampler has to bear witness.
fn client_stops(
    data: &RunData,
    stage: &StageData,
    agent: &RunAgent,
    silent: &[bool],
    start_s: f64,
    dt_s: f64,
) -> Vec<(usize, usize)> {
    let targets: Vec<&TargetSpec> =
        stage.spec.workloads.iter().filter_map(|w| data.plan.target_of(w).ok()).map(|(_, t)| t).collect();
    if targets.iter().any(|t| matches!(t, TargetSpec::Sim(_))) {
        return Vec::new();
    }
    let sockets = targets.iter().all(|t| matches!(t, TargetSpec::S3(_)));
    let host = data.samples_of(agent);
    let samples: Vec<f64> = host.iter().flat_map(|h| &h.samples).map(|s| s.at_ns as f64 / 1e9).collect();
    let every_s = SAMPLE_EVERY_S * host.map_or(1.0, |h| h.every as f64);
    let stood_still = |s: &(usize, usize)| {
        let (from_s, to_s) = (start_s + s.0 as f64 * dt_s, start_s + s.1 as f64 * dt_s);
        to_s - from_s >= SHORTEST_S - 1e-9
            && client_time::sampler_stood_still(&samples, every_s, from_s, to_s).unwrap_or(sockets)
    };
    client_time::silences(silent).into_iter().filter(stood_still).collect()
}

/// When one agent stood still.
struct AgentStops<'a> {
    /// As findings name it.
    name: Option<&'a str>,
    /// Steps that it has counts of.
    steps: usize,
    stops: Vec<(usize, usize)>,
}

/// Those of each agent, from `from_ns` to `to_ns`.
fn of_agents<'a>(
    data: &'a RunData,
    stage: &StageData,
    (from_ns, to_ns): (u64, u64),
    start_s: f64,
    dt_s: f64,
) -> Vec<AgentStops<'a>> {
    let of = |own: &StageAgent| {
        let agent = data.agents.get(own.agent)?;
        let points = stage.agent_points(own, data.step_ns, from_ns, to_ns);
        let handed: Vec<HandedOver> = points.iter().map(handed_over).collect();
        let silent = client_time::spread(&handed, own.workers, most_in_flight(stage), dt_s).silent;
        Some(AgentStops {
            name: data.name_of(agent),
            steps: silent.len(),
            stops: client_stops(data, stage, agent, &silent, start_s, dt_s),
        })
    };
    stage.agents.iter().filter_map(of).collect()
}

/// Steps in which of all agents that were there not one ran: while one stands still the others go on asking, and none of the storage's
/// is what all of them missed.
pub fn all_stopped(
    data: &RunData,
    stage: &StageData,
    span_ns: (u64, u64),
    start_s: f64,
    dt_s: f64,
) -> Vec<(usize, usize)> {
    let each = of_agents(data, stage, span_ns, start_s, dt_s);
    let steps = each.iter().map(|a| a.steps).max().unwrap_or(0);
    let mut running = vec![0u32; steps];
    for a in &each {
        running[..a.steps].iter_mut().for_each(|n| *n += 1);
        a.stops.iter().for_each(|s| running[s.0..s.1].iter_mut().for_each(|n| *n -= 1));
    }
    client_time::silences(&running.iter().map(|n| *n == 0).collect::<Vec<_>>())
}

/// When one agent stood still, as (from, to) in seconds since the load began.
struct StopsInLoad<'a> {
    name: Option<&'a str>,
    stops: Vec<(f64, f64)>,
}

/// Agents of one stage that are named: those that stood still for longest.
const MOST_NAMED: usize = 8;

/// The agents of one stage that stood still.
fn of_stage<'a>(data: &'a RunData, stage: &StageData) -> Vec<StopsInLoad<'a>> {
    let dt_s = data.step_ns as f64 / 1e9;
    let (from_ns, to_ns) = (stage.start_ns, stage.stop_ns.unwrap_or(stage.last_ns));
    let start_s = from_ns.div_ceil(data.step_ns) as f64 * dt_s;
    let since = start_s - from_ns as f64 / 1e9;
    let seconds = |s: &(usize, usize)| (since + s.0 as f64 * dt_s, since + s.1 as f64 * dt_s);
    let mut stopped = of_agents(data, stage, (from_ns, to_ns), start_s, dt_s);
    stopped.retain(|a| !a.stops.is_empty());
    stopped.sort_by_key(|a| std::cmp::Reverse(a.stops.iter().map(|s| s.1 - s.0).sum::<usize>()));
    stopped.truncate(MOST_NAMED);
    let of = |a: AgentStops<'a>| StopsInLoad { name: a.name, stops: a.stops.iter().map(seconds).collect() };
    stopped.into_iter().map(of).collect()
}

/// What stood still, and in what.
struct Stopped<'a> {
    /// Of several agents, which one.
    agent: Option<&'a str>,
    /// The line, where the run has lines of other stages, too.
    step: Option<&'a str>,
    stops: &'a [(f64, f64)],
    load_s: f64,
    rests: Rests,
}

/// Whether an answer rests on a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rests {
    ThisOne,
    /// A search made it again: on that one.
    MadeAgain,
    /// It chose the load of those it rests on.
    OnlyChose,
}

impl Rests {
    fn words(self) -> &'static str {
        match self {
            Self::ThisOne => "Measure again.",
            Self::MadeAgain => "This step was made again.",
            Self::OnlyChose => "This step only chose the load of those after it.",
        }
    }
}

/// Says so, of each stage that it was in: what is wrong with one step is wrong with that one.
pub fn findings(data: &RunData, lines: &[Line<'_>], searched: bool) -> Vec<Finding> {
    let stages = || data.stages.iter().filter(|s| s.void.is_none());
    let all: Vec<(&StageData, Vec<StopsInLoad<'_>>)> = stages().map(|s| (s, of_stage(data, s))).collect();
    let mut out = Vec::new();
    let each = all.iter().flat_map(|(stage, agents)| agents.iter().map(move |a| (*stage, a)));
    for (stage, StopsInLoad { name: agent, stops }) in each {
        let agent = *agent;
        let load_s = stage.stop_ns.unwrap_or(stage.last_ns).saturating_sub(stage.start_ns) as f64 / 1e9;
        let sound = |(other, stopped): &(&StageData, Vec<StopsInLoad<'_>>)| {
            other.index > stage.index
                && other.spec.name.is_some()
                && other.spec.name == stage.spec.name
                && stopped.is_empty()
        };
        let chooses = stage.spec.name.as_deref().is_some_and(only_chooses_load);
        let rests = match searched {
            true if all.iter().any(sound) => Rests::MadeAgain,
            true if chooses => Rests::OnlyChose,
            _ => Rests::ThisOne,
        };
        let several = lines.iter().any(|l| l.parts.iter().any(|p| p.stage.index != stage.index));
        let mine = lines.iter().filter(|l| l.is_in(stage.index));
        let labels: Vec<String> = mine.filter(|_| several).map(Line::label).collect();
        let told = |step: Option<&str>| Stopped { agent, step, stops, load_s, rests }.finding();
        if labels.is_empty() {
            // One that has no line, among others, spoils none of them.
            let f = told(None);
            out.push(if several { Finding { level: Level::Qualified, ..f } } else { f });
        }
        out.extend(labels.iter().map(|l| told(Some(l)).on(l.clone())));
    }
    out
}

impl Stopped<'_> {
    fn finding(&self) -> Finding {
        let longest =
            self.stops.iter().copied().fold((0.0, 0.0), |a, b| if b.1 - b.0 > a.1 - a.0 { b } else { a });
        let share = self.stops.iter().map(|s| s.1 - s.0).sum::<f64>() / self.load_s.max(f64::MIN_POSITIVE);
        let spoils = share > MOST_OF_THE_LOAD && self.rests == Rests::ThisOne;
        let level = if spoils { Level::Invalid } else { Level::Qualified };
        let more = match self.stops.len() {
            1 => String::new(),
            n => format!(" ({n} times in total; this is the longest)"),
        };
        let text = format!(
            "{} client itself was stopped for {}, from {} to {} s into the load{more}: neither its workers nor its \
             sampler ran (it was stopped or suspended, or its virtual machine was paused). What the storage did \
             during that time is not known, and it was added to the latency of the ops in flight. {}",
            self.step.map_or("The".to_owned(), |s| format!("In {s} the")),
            words::span(longest.1 - longest.0),
            words::fixed(longest.0, 1),
            words::fixed(longest.1, 1),
            self.rests.words()
        );
        let mut f = Finding::new("V22", "client_stopped", level, text).measured(share, MOST_OF_THE_LOAD);
        let step = self.step.unwrap_or("load");
        let said = |s: &(f64, f64)| {
            (step.to_owned(), format!("{} to {} s", words::fixed(s.0, 1), words::fixed(s.1, 1)))
        };
        f.evidence = self.stops.iter().take(8).map(said).collect();
        f.of_agent(self.agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The step is named; one that was made again spoils nothing.
    #[test]
    fn a_stop_is_told_of_its_step() {
        let stops = [(0.5, 1.0), (6.0, 7.2)];
        let told =
            |step, load_s, rests| Stopped { agent: None, step, stops: &stops, load_s, rests }.finding();
        let f = told(Some("rung 16/get"), 8.0, Rests::ThisOne);
        assert!(
            f.text.starts_with("In rung 16/get the client itself was stopped for 1.2 s, from 6.0 to 7.2 s"),
            "{}",
            f.text
        );
        assert!(f.text.contains("2 times in total") && f.level == Level::Invalid, "{f:?}");
        assert_eq!(told(None, 30.0, Rests::ThisOne).level, Level::Qualified);
        assert!(told(None, 30.0, Rests::ThisOne).text.starts_with("The client itself was stopped for 1.2 s"));
        let again = told(Some("trial/get"), 8.0, Rests::MadeAgain);
        assert!(
            again.level == Level::Qualified && again.text.ends_with("This step was made again."),
            "{again:?}"
        );
        // The pilot chose a size: nothing that is told rests on it.
        let pilot = told(Some("pilot/get"), 2.0, Rests::OnlyChose);
        assert!(pilot.level == Level::Qualified && pilot.text.ends_with("of those after it."), "{pilot:?}");
        assert!(only_chooses_load("pilot: finding the size with the highest throughput (2)"));
        assert!(only_chooses_load("finding how many small ops in flight saturate it: 16"));
        assert!(!only_chooses_load("finding how many requests at once get through: 8"));
    }
}
