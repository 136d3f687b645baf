//! What agents kept of their own, and what a run lacks of it: agents were lost, or their conductor was. It is fetched, held slice by slice
//! against what is recorded, and the record has the union of both.

mod merge;

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_crew::FromAgent;
use plimsoll_engine::{StopCause, WorkerEnd};
use plimsoll_lower as lower;
use plimsoll_model::plan::Stage;
use plimsoll_model::{Event, RunSummary};
use plimsoll_setup::Interrupt;
use plimsoll_store::stream::Header;
use plimsoll_store::{LoadOptions, Mark, Record, RunDir, StageData, StoreError, StreamReader};

use crate::analyze::analyze;
use crate::error::RunError;
use crate::options::Recruit;
use crate::stage::report;
use merge::{Fetching, Merged};

/// Why a stage ended whose conductor was lost.
pub(crate) const KILLED: &str = "killed";

/// Stages of which an agent's record in the run has no end.
#[derive(Debug, Clone, PartialEq)]
pub struct Lacking {
    /// By its name in the run.
    pub agent: String,
    /// In the roll.
    pub number: u32,
    /// Of its machine in the run, from one start to the next.
    pub boot_id: String,
    /// In order.
    pub stages: BTreeMap<u32, LackingStage>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct LackingStage {
    /// Frames and hash of what was fetched before: the same is not fetched again.
    pub had: Option<(u64, String)>,
    /// Workers that the agent had.
    workers: u32,
    start_ns: u64,
    spec: Box<Stage>,
    /// It was lost while the stage ran.
    lost: bool,
    warm: bool,
}

/// What an agent kept of a stage.
#[derive(Debug)]
pub struct StageFetched {
    /// Its number in the run.
    pub stage: u32,
    /// Frames of its own record.
    pub frames: u64,
    /// XXH3-64 of their content.
    pub hash: String,
    /// How its workers ended; absent: its record ends before that.
    pub ends: Option<Vec<WorkerEnd>>,
}

/// What came of asking an agent.
#[derive(Debug)]
pub struct AgentFetched {
    /// In the roll.
    pub number: u32,
    /// Whether its machine has been started again since the run: what had not reached its disk is lost. `None`: not known.
    pub went_down: Option<bool>,
    /// What came whole, or why nothing did, in words and without a full stop.
    pub result: Result<Vec<StageFetched>, String>,
}

/// Asks agents for what they kept.
#[allow(missing_debug_implementations, reason = "it is made of what is called")]
pub struct Ask<'a> {
    /// The run.
    pub run: &'a str,
    /// Of whom, and what.
    pub lacking: &'a [Lacking],
    /// An agent that still works for the run is waited for until it is done; without this, for some seconds.
    pub patient: bool,
    /// Ends the waiting.
    pub interrupt: &'a Interrupt,
    /// Told of what goes on.
    pub tell: &'a mut dyn FnMut(Event),
    /// Takes what comes, in order within a stage: agent's number, stage, output. An error ends that agent's part.
    pub take: &'a mut dyn FnMut(u32, u32, FromAgent) -> Result<(), String>,
}

/// What a collection did for one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCollected {
    /// Its name in the run.
    pub agent: String,
    /// Slices that the record did not have, or not as whole.
    pub slices: u64,
    /// Ops in them that it did not have.
    pub ops: u64,
    /// From its last slice on, nothing of a stage is known: in words. Empty: all is there.
    pub missing: String,
}

/// What a collection came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// Of whom something lacked.
    pub agents: Vec<AgentCollected>,
    /// The judgement after it.
    pub summary: RunSummary,
}

/// Fetches what a run lacks from agents that are there, puts it into the record, seals the run and judges it. Once more changes nothing.
pub fn collect(
    path: &Path,
    recruit: &dyn Recruit,
    interrupt: &Interrupt,
    mut tell: impl FnMut(Event),
) -> Result<Collected, RunError> {
    let run = RunDir::open(path)?;
    let agents = {
        // Nobody else works on it meanwhile.
        let _held = run.journal()?;
        let end = run.sealed()?.map(|s| s.end);
        as_sealed(&run)?;
        let came = fetch_into(&run, recruit, interrupt, true, &mut tell);
        // Something was put into it, even if it was not one slice: and it has the end that it had.
        if run.sealed()?.is_none() {
            let end = end.map_or_else(|| end_of(&run), Ok)?;
            run.seal(&end)?;
        }
        came?
    };
    Ok(Collected { agents, summary: analyze(&run)? })
}

/// A seal is renewed only over what it was put on: a record that is damaged, or was changed since, stays as it is, and so does what shows it.
pub(crate) fn as_sealed(run: &RunDir) -> Result<(), RunError> {
    let altered = if run.sealed()?.is_some() { run.altered_files()? } else { Vec::new() };
    if altered.is_empty() {
        return Ok(());
    }
    Err(RunError::input(
        format!("{} changed after the run was sealed, so nothing is added to it", altered.join(", ")),
        "Bring the run back from a copy, or look at it with: plimsoll runs show",
    ))
}

/// How a run ended that was never sealed: all that was planned may have been done.
fn end_of(run: &RunDir) -> Result<String, RunError> {
    let data = run.load(&LoadOptions::step(1_000_000_000))?;
    let is_complete = |s: &StageData| s.void.is_none() && s.end_ns.is_some();
    let planned = plimsoll_control::of_plan(&data.plan)?.total();
    let done = data.stages.iter().filter(|s| is_complete(s)).count() as u32;
    let all = planned == Some(done) && data.stages.iter().all(|s| is_complete(s) || s.void.is_some());
    Ok(if all { "done" } else { "interrupted" }.to_owned())
}

/// The same for a run that goes on afterwards, or ends now: its seal is opened where something came.
pub fn fetch_into(
    run: &RunDir,
    recruit: &dyn Recruit,
    interrupt: &Interrupt,
    patient: bool,
    tell: &mut dyn FnMut(Event),
) -> Result<Vec<AgentCollected>, RunError> {
    let lacking = lacking(run)?;
    if lacking.is_empty() {
        return Ok(Vec::new());
    }
    let mut fetching: BTreeMap<u32, Fetching> = BTreeMap::new();
    for l in &lacking {
        fetching.insert(l.number, Fetching::new(run, l)?);
    }
    let latest = latest_slice(run)?;
    let mut take = |number: u32, stage: u32, came: FromAgent| {
        let Some(f) = fetching.get_mut(&number) else { return Ok(()) };
        f.take(stage, came, latest).map_err(|e| e.to_string())
    };
    let ask =
        Ask { run: &run.id(), lacking: &lacking, patient, interrupt, tell: &mut *tell, take: &mut take };
    let mut came = recruit.fetch_kept(ask)?;
    let mut all: Vec<Answered<'_>> = Vec::new();
    for l in &lacking {
        let its = came.iter().position(|c| c.number == l.number).map(|at| came.swap_remove(at));
        let none =
            || AgentFetched { number: l.number, went_down: None, result: Err("it is not there".into()) };
        let f = fetching.remove(&l.number).expect("one for each who lacks something");
        all.push((l, f, its.unwrap_or_else(none)));
    }
    put(run, all)
}

/// Who lacked something, what came of it slice by slice, and what came whole, or why nothing did.
type Answered<'a> = (&'a Lacking, Fetching, AgentFetched);

/// A slice beyond this one has not been yet: the run's start and the wall clock say so, with a day for clocks that were set.
fn latest_slice(run: &RunDir) -> Result<u64, RunError> {
    let env = run.env()?;
    let began = env.environment.started_at.parse::<jiff::Timestamp>().unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let since = jiff::Timestamp::now().duration_since(began).as_secs().max(0) as u64 + 86_400;
    let grid_ns = run.plan()?.options.grid.as_ns().max(1);
    Ok(since.saturating_mul(1_000_000_000) / grid_ns)
}

/// Agents whose records in the run lack the end of a stage that they had work in.
fn lacking(run: &RunDir) -> Result<Vec<Lacking>, RunError> {
    let env = run.env()?;
    let mut all: Vec<Lacking> = Vec::new();
    let mut lost: Vec<(u32, String)> = Vec::new();
    for host in &env.environment.agents {
        let path = run.intervals_path(&host.agent);
        // Killed before it was made: there is nothing to add to.
        if !path.is_file() {
            continue;
        }
        let mut stages = BTreeMap::new();
        let mut reader = StreamReader::open(&path)?;
        while let Some(mark) = next_mark(&mut reader)? {
            match mark {
                Mark::StageStart { stage, at_ns, spec, workers: workers @ 1.., .. } => {
                    let new =
                        LackingStage { had: None, workers, start_ns: at_ns, spec, lost: false, warm: false };
                    stages.insert(stage, new);
                }
                Mark::StageEnd { stage, .. } => drop(stages.remove(&stage)),
                Mark::WarmupEnd { stage, .. } => {
                    stages.entry(stage).and_modify(|s| s.warm = true);
                }
                Mark::Delivered { stage, whole: true, .. } => drop(stages.remove(&stage)),
                Mark::Delivered { stage, frames, hash, .. } => {
                    stages.entry(stage).and_modify(|s| s.had = Some((frames, hash)));
                }
                Mark::AgentLost { stage, agent, .. } => lost.push((stage, agent)),
                _ => {}
            }
        }
        if !stages.is_empty() {
            let boot_id = host.machine.boot_id.clone();
            all.push(Lacking { agent: host.agent.clone(), number: host.number, boot_id, stages });
        }
    }
    for (stage, agent) in lost {
        let of = all.iter_mut().find(|l| l.agent == agent).and_then(|l| l.stages.get_mut(&stage));
        of.into_iter().for_each(|s| s.lost = true);
    }
    Ok(all)
}

fn next_mark(reader: &mut StreamReader) -> Result<Option<Mark>, StoreError> {
    while let Some(record) = reader.next()? {
        if let Record::Mark(mark) = record {
            return Ok(Some(mark));
        }
    }
    Ok(None)
}

/// Whether its workers did all that was planned, and were not ended by anybody.
fn ended_as_planned(ends: &[WorkerEnd], of: &LackingStage) -> bool {
    let planned = |e: &WorkerEnd| matches!(e.cause, StopCause::Deadline | StopCause::Ops | StopCause::Bytes);
    !of.lost && ends.len() as u64 == u64::from(of.workers) && ends.iter().all(planned)
}

/// Puts what came into the records, and the marks that it allows.
fn put(run: &RunDir, all: Vec<Answered<'_>>) -> Result<Vec<AgentCollected>, RunError> {
    let mut merged: Vec<(&Lacking, Merged, Vec<StageFetched>)> = Vec::new();
    let mut told = Vec::new();
    for (of, fetching, AgentFetched { went_down, result, .. }) in all {
        let (stages, why) = match result {
            Ok(stages) => (stages, String::new()),
            Err(why) => (Vec::new(), why),
        };
        let kept: Vec<u32> = stages.iter().map(|s| s.stage).collect();
        let merged_now = fetching.finish(&kept)?;
        told.push((of, (why, went_down), merged_now.slices(), merged_now.ops()));
        merged.push((of, merged_now, stages));
    }
    let cut = cut_off(run, &merged)?;
    for ((of, merged, stages), (_, (_, went_down), ..)) in merged.iter().zip(&told) {
        if stages.iter().any(|s| {
            of.stages.get(&s.stage).is_some_and(|l| l.had.as_ref() != Some(&(s.frames, s.hash.clone())))
        }) {
            run.unseal()?;
            let marks =
                stages.iter().map(|s| (s.stage, marks_of(of, s, (merged, *went_down), &cut))).collect();
            merged.write(run, &of.agent, &marks)?;
        }
    }
    let mut collected = Vec::new();
    for ((of, why, slices, ops), (_, merged, stages)) in told.into_iter().zip(&merged) {
        merged.clear();
        let missing = missing_of(of, (&why.0, why.1), stages, merged);
        collected.push(AgentCollected { agent: of.agent.clone(), slices, ops, missing });
    }
    Ok(collected)
}

/// What is not there, in words.
fn missing_of(
    of: &Lacking,
    (why, went_down): (&str, Option<bool>),
    stages: &[StageFetched],
    merged: &Merged,
) -> String {
    let is_known_down = went_down == Some(true);
    let or_down = if went_down.is_none() { ", or its machine went down" } else { "" };
    let mut all = Vec::new();
    for (stage, lacking) in &of.stages {
        let came = stages.iter().find(|s| s.stage == *stage);
        if came.is_some_and(|s| s.ends.is_some()) {
            continue;
        }
        let until_s = merged.until_ns(*stage).saturating_sub(lacking.start_ns) as f64 / 1e9;
        let after = format!("stage {} after {until_s:.1} s of load", stage + 1);
        all.push(match came {
            Some(_) if is_known_down => format!(
                "{after} (its own record ends there: its machine went down, and has been started again since; what had not reached \
                 its disk is lost, and how much that is nobody knows)"
            ),
            // A frame of the own record is cut after half a second at the most, and a slice is a tenth.
            Some(_) => format!("{after} (its own record ends there: it was killed, or its disk was full{or_down}; of a killed one at most 1 s)"),
            None if why.is_empty() && is_known_down => {
                format!("{after} (nothing of it had reached its disk when its machine went down)")
            }
            None if is_known_down => format!("{after} ({why}; its machine went down, and has been started again since)"),
            None if why.is_empty() => format!("{after} (it kept nothing of it)"),
            None => format!("{after} ({why})"),
        });
    }
    all.join("; ")
}

/// Until when all agents of a stage were there that its conductor lost: by stage.
fn cut_off(
    run: &RunDir,
    merged: &[(&Lacking, Merged, Vec<StageFetched>)],
) -> Result<BTreeMap<u32, Cut>, RunError> {
    let mut cuts: BTreeMap<u32, Cut> = BTreeMap::new();
    let data = run.load(&LoadOptions::step(1_000_000_000));
    // A run of which nothing was recorded yet has no stages to look at.
    let known = data.map(|d| d.stages).unwrap_or_default();
    for (of, merged, stages) in merged {
        for (stage, lacking) in &of.stages {
            let is_over = known.iter().any(|s| s.index == *stage && (s.end_ns.is_some() || s.void.is_some()));
            if lacking.lost || is_over {
                continue;
            }
            let ends = stages.iter().find(|s| s.stage == *stage).and_then(|s| s.ends.as_ref());
            let new = Cut { until_ns: u64::MAX, stop_ns: u64::MAX, end_ns: 0, as_planned: true };
            let cut = cuts.entry(*stage).or_insert(new);
            cut.until_ns = cut.until_ns.min(merged.until_ns(*stage));
            cut.as_planned &= ends.is_some_and(|e| ended_as_planned(e, lacking));
            for e in ends.into_iter().flatten() {
                cut.stop_ns = cut.stop_ns.min(e.stopped_ns);
                cut.end_ns = cut.end_ns.max(e.finished_ns);
            }
        }
    }
    Ok(cuts)
}

/// How a stage ended whose conductor was lost.
#[derive(Debug)]
struct Cut {
    /// All agents were there until then.
    until_ns: u64,
    /// The first worker took no more ops.
    stop_ns: u64,
    end_ns: u64,
    /// All of them did what was planned: the stage is complete.
    as_planned: bool,
}

fn marks_of(
    of: &Lacking,
    came: &StageFetched,
    (merged, went_down): (&Merged, Option<bool>),
    cuts: &BTreeMap<u32, Cut>,
) -> Vec<Mark> {
    let stage = came.stage;
    let Some(lacking) = of.stages.get(&stage) else { return Vec::new() };
    let until_ns = merged.until_ns(stage);
    let mut marks = Vec::new();
    let warm_ns = lacking.start_ns.saturating_add(lower::warmup_ns(&lacking.spec));
    if !lacking.warm && until_ns > warm_ns {
        marks.push(Mark::WarmupEnd { stage, at_ns: warm_ns });
    }
    let cut = cuts.get(&stage);
    if let Some(cut) = cut {
        let (at_ns, reason) = match &came.ends {
            Some(ends) if cut.as_planned => (cut.stop_ns, report::stop_of(ends, None).1),
            // What agents did while they drained is no part of it.
            _ => (cut.until_ns.min(cut.stop_ns), KILLED.to_owned()),
        };
        marks.push(Mark::StopRequested { stage, at_ns, reason });
    }
    if let Some(ends) = &came.ends {
        let ends: Vec<&WorkerEnd> = ends.iter().collect();
        let report = Box::new(report::of(&ends, lacking.spec.workloads.len()));
        marks.push(Mark::StageReport { stage, at_ns: until_ns, report });
    }
    marks.push(Mark::Delivered {
        stage,
        at_ns: merged.had_until_ns(stage).max(lacking.start_ns),
        until_ns,
        agent: of.agent.clone(),
        slices: merged.slices_of(stage),
        frames: came.frames,
        hash: came.hash.clone(),
        whole: came.ends.is_some(),
        went_down,
    });
    if let Some(cut) = cut.filter(|c| c.as_planned) {
        marks.push(Mark::StageEnd { stage, at_ns: cut.end_ns });
    }
    marks
}

fn header_of(path: &Path) -> Result<Header, StoreError> {
    Ok(StreamReader::open(path)?.header().clone())
}
