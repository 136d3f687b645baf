//! A run from plan to sealed run directory.

use std::path::{Path, PathBuf};

use plimsoll_control::{ControlStep, Controller};
use plimsoll_judge::exit_code;
use plimsoll_model::count::counted;
use plimsoll_model::plan::ControllerSpec;
use plimsoll_model::{Event, OpKind, Plan, RunSummary};
use plimsoll_setup::{FindErrands, SetupError};
use plimsoll_stats::expect::{Expect, ExpectError};
use plimsoll_store::rundir::ENV_FORMAT;
use plimsoll_store::rundir::{AGENT_LOST, COST_BUDGET, GUARD};
use plimsoll_store::{EnvFile, LoadOptions, RunDir, StageData};

use crate::analyze::analyze;
use crate::error::RunError;
use crate::kept;
use crate::options::{CleanUpCrew, CrewChoice, Options};
use crate::session::Session;

/// A run that came to an end, with a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Name of the run.
    pub id: String,
    /// Its directory, sealed.
    pub path: PathBuf,
    /// As `summary.json` has it.
    pub summary: RunSummary,
    /// 0, 3, 4, 5 or 130; see [`plimsoll_judge::exit`].
    pub exit_code: u8,
    /// Things that the run made and could not remove, in words; `plimsoll cleanup` tries again.
    pub left: Vec<String>,
}

/// Runs a plan to its end. Errors are those before anything was measured, or that void the whole run; what was created
/// is cleaned up all the same.
pub fn execute(plan: &Plan, options: &Options, mut events: impl FnMut(Event)) -> Result<Finished, RunError> {
    check(plan)?;
    let controller = plimsoll_control::of_plan(plan)?;
    let run = match &options.run_dir {
        Some(path) => RunDir::create_at(path)?,
        None => RunDir::create(&options.root)?,
    };
    let begun = room_for(&run).and_then(|()| begin(&run, plan, options, &mut events));
    let session = match begun {
        Ok(session) => session,
        Err(e) => {
            discard(&run);
            return Err(e.unless_ended(options.interrupt.is_requested()));
        }
    };
    drive(session, controller, &run, options, &mut events)
}

/// Goes on with a run that was killed: the stages that were completed are not run again.
pub fn resume(path: &Path, options: &Options, mut events: impl FnMut(Event)) -> Result<Finished, RunError> {
    let run = RunDir::open(path)?;
    let plan = run.plan()?;
    check(&plan)?;
    let sealed = run.sealed()?;
    if sealed.as_ref().is_some_and(|s| s.end == "done") {
        return Err(RunError::input(
            "the run has ended, so there is nothing to resume",
            "Run the plan again",
        ));
    }
    let as_it_was = |_: &RunError| {
        // It did not go on, and is what it was.
        if let (Some(seal), Ok(None)) = (&sealed, run.sealed()) {
            let _ = run.seal(&seal.end);
        }
    };
    if let CrewChoice::Fleet(recruit) = &options.crew {
        kept::as_sealed(&run)?;
        let _held = run.journal()?;
        let came = kept::fetch_into(&run, recruit.as_ref(), &options.interrupt, true, &mut events);
        for a in came.inspect_err(as_it_was)? {
            let text =
                format!("agent {}: {} of its own record, fetched", a.agent, counted(a.slices, "slice"));
            let missing =
                if a.missing.is_empty() { String::new() } else { format!("; missing: {}", a.missing) };
            events(Event::Message(text + &missing));
        }
    }
    // What the killed run left goes first, so that its prefix and servers are not in the way.
    let left = clean_up(&run, options, &mut events).map_err(RunError::from).inspect_err(as_it_was)?;
    if !left.is_empty() {
        events(Event::Message(format!("left behind by the killed run: {}", left.join("; "))));
    }
    let data = run.load(&LoadOptions::step(1_000_000_000))?;
    let is_complete = |s: &&StageData| s.void.is_none() && s.end_ns.is_some();
    let completed: Vec<_> = data.stages.iter().filter(is_complete).map(|s| s.spec.clone()).collect();
    let cut: Vec<u32> = data.stages.iter().filter(|s| !is_complete(s)).map(|s| s.index).collect();
    let mut controller = plimsoll_control::of_plan(&plan)?;
    let planned = controller.total();
    controller.resume(&completed)?;
    run.unseal()?;
    let last_ns = data.stages.iter().map(|s| s.end_ns.unwrap_or(s.last_ns)).max().unwrap_or(0);
    let next_stage = data.stages.iter().map(|s| s.index + 1).max().unwrap_or(0);
    (events)(Event::Started { id: run.id(), path: run.path().to_owned() });
    let session = Session::resume(&run, &plan, options, last_ns, next_stage, (&cut, planned), &mut events);
    let mut session = session.inspect_err(as_it_was)?;
    session.spent_before(&plimsoll_judge::cost_seen(&data, &[]).sent);
    drive(session, controller, &run, options, &mut events)
}

/// By agents where this machine does not reach the storage, as they did what is to be cleaned up.
fn clean_up(
    run: &RunDir,
    options: &Options,
    events: &mut dyn FnMut(Event),
) -> Result<Vec<String>, SetupError> {
    let mut crew: Option<Box<dyn CleanUpCrew>> = None;
    let mut find = |plan: &Plan, mark: &str| {
        if let (CrewChoice::Fleet(recruit), None) = (&options.crew, &crew) {
            crew = recruit.clean_up_crew(&run.id(), plan, &options.interrupt)?;
        }
        Ok(crew.as_ref().map(|c| c.errands(mark)))
    };
    let by = (options.claim_by, &mut find as &mut FindErrands<'_>);
    let left = plimsoll_setup::cleanup_by(run.path(), &[], options.interrupt.clone(), by, events);
    if let Some(crew) = crew {
        crew.let_go();
    }
    left
}

/// What can be said before anything is touched.
pub fn check(plan: &Plan) -> Result<(), RunError> {
    plan.validate()?;
    for text in &plan.expect {
        let expect: Expect = text
            .parse()
            .map_err(|e: ExpectError| RunError::input(e.to_string(), "Correct the expectation"))?;
        can_be_met(plan, &expect)?;
    }
    crate::money::affordable(plan)?;
    let observed = plimsoll_setup::observe::places(plan)?;
    if !observed.is_empty() && crate::virtual_time::lives_by(plan) {
        let problem = "--observe has no meaning with a simulated target: there are no servers";
        return Err(RunError::input(problem, "Leave it out"));
    }
    for stage in &plan.stages {
        crate::virtual_time::lives_by_stage(plan, stage)?;
    }
    Ok(())
}

/// An expectation of an op that the plan does not do would be told as undetermined, after the whole run.
fn can_be_met(plan: &Plan, expect: &Expect) -> Result<(), RunError> {
    let Some(selector) = expect.selector() else { return Ok(()) };
    let mut known: Vec<String> = Vec::new();
    match &plan.controller {
        Some(ControllerSpec::Sweep { ops, .. }) => known.extend(ops.iter().map(|k| k.name().to_owned())),
        Some(c @ ControllerSpec::Saturation { .. }) => {
            let ops = c.templates().flat_map(|t| &t.workloads).flat_map(|w| &w.mix);
            known.extend(ops.filter(|(_, n)| **n > 0).map(|(k, _)| k.name().to_owned()));
        }
        // Searches name their own lines.
        Some(_) => return Ok(()),
        None => {}
    }
    for w in plan.stages.iter().flat_map(|s| &s.workloads) {
        known.push(w.name.clone());
        known.extend(w.mix.iter().filter(|(_, n)| **n > 0).map(|(k, _)| k.name().to_owned()));
    }
    if known.iter().any(|k| k == OpKind::Multipart.name()) {
        known.push(OpKind::UploadPart.name().into());
    }
    known.sort();
    known.dedup();
    // Cells of a sweep, `total` of a mix and `NAME/op` have names of their own: only a bare op can be told to be missing.
    let is_op = OpKind::parse(selector).is_some();
    if !is_op || known.iter().any(|k| k == selector) {
        return Ok(());
    }
    Err(RunError::input(
        format!("'{}': this run has no {selector}, only {}", expect.text, known.join(", ")),
        "Correct the expectation",
    ))
}

fn begin(
    run: &RunDir,
    plan: &Plan,
    options: &Options,
    events: &mut dyn FnMut(Event),
) -> Result<Session, RunError> {
    run.write_plan(plan)?;
    let mut environment = crate::environment::capture(plan, &options.commit);
    environment.machine.ceiling.clone_from(&options.ceiling);
    if options.identity {
        environment.machine.identity = plimsoll_setup::identity::identity();
    }
    let rerun = if options.rerun.is_empty() {
        format!("plimsoll run {}/plan.toml", run.path().display())
    } else {
        options.rerun.clone()
    };
    run.write_env(&EnvFile {
        format: ENV_FORMAT.into(),
        id: run.id(),
        environment,
        rerun,
        clock_offsets_ns: Default::default(),
    })?;
    events(Event::Started { id: run.id(), path: run.path().to_owned() });
    Session::create(run, plan, options, events)
}

/// A run writes about 20 KB a second and workload; with next to nothing free it would end in its middle.
fn room_for(run: &RunDir) -> Result<(), RunError> {
    const LEAST: u64 = 64 << 20;
    let Ok(fs) = rustix::fs::statvfs(run.path()) else { return Ok(()) };
    let free = fs.f_bavail * fs.f_frsize;
    if free >= LEAST {
        return Ok(());
    }
    Err(RunError::input(
        format!("{} has only {} MiB free, too little to record a run", run.path().display(), free >> 20),
        "Free some space, or store runs elsewhere",
    ))
}

/// A run that never began leaves no directory behind, unless something waits in it for cleanup.
fn discard(run: &RunDir) {
    // What cannot be removed stays, and `plimsoll runs list` shows it.
    let _ = run.clone().remove();
}

/// The stages, then the end: cleanup, seal, judgement. The end comes whatever the stages did.
fn drive(
    mut session: Session,
    mut controller: Box<dyn Controller>,
    run: &RunDir,
    options: &Options,
    events: &mut dyn FnMut(Event),
) -> Result<Finished, RunError> {
    let outcome = stages(&mut session, controller.as_mut(), options, events);
    let early = match outcome {
        Ok(Ended::ByLoss) => Some(AGENT_LOST),
        Ok(Ended::ByCost) => Some(COST_BUDGET),
        Ok(Ended::ByGuard) => Some(GUARD),
        _ => None,
    };
    let interrupted = options.interrupt.is_requested();
    let unheld = match &outcome {
        Ok(Ended::Unheld(why)) => Some(why.clone()),
        _ => None,
    };
    let outcome = outcome.map_err(|e| e.unless_ended(interrupted));
    let end = match &outcome {
        _ if unheld.is_some() => unheld.unwrap_or_default(),
        Ok(_) if interrupted => "interrupted".to_owned(),
        Ok(_) => early.unwrap_or("done").to_owned(),
        Err(RunError::Interrupted) => "interrupted".to_owned(),
        Err(e) => format!("failed: {e}"),
    };
    let measured = session.has_data();
    let left = session.close(&end, events)?;
    match outcome {
        Err(e) if !measured || !matches!(e, RunError::Interrupted) => {
            if !measured {
                discard(run);
            }
            return Err(e);
        }
        _ => {}
    }
    let summary = analyze(run)?;
    let exit_code = exit_code(&summary, interrupted);
    Ok(Finished { id: run.id(), path: run.path().to_owned(), summary, exit_code, left })
}

/// How the stages of a run came to their end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ended {
    InOrder,
    /// An agent was lost, and the run was not to outlast that, or it was the last.
    ByLoss,
    /// Nobody kept others away any more from what the load was on, in words.
    Unheld(String),
    /// What was sent came to the budget of money.
    ByCost,
    /// A guard wanted others to be left alone.
    ByGuard,
}

fn stages(
    session: &mut Session,
    controller: &mut dyn Controller,
    options: &Options,
    events: &mut dyn FnMut(Event),
) -> Result<Ended, RunError> {
    let mut seen = Vec::new();
    let begun = std::time::Instant::now();
    while !options.interrupt.is_requested() {
        match controller.next(&seen) {
            ControlStep::Run(stage)
                if stage.cell.as_ref().is_none_or(|c| c.index == 0)
                    && options.stop_after.is_some_and(|t| begun.elapsed() >= t) =>
            {
                break;
            }
            ControlStep::Run(stage) => {
                let end = match session.stage(&stage, controller, events) {
                    // What was measured before is the answer, as far as it goes.
                    Err(e @ RunError::OutOfTime { .. }) if session.has_data() => {
                        events(Event::Message(format!("the search ends here: {e}")));
                        break;
                    }
                    end => end?,
                };
                seen.push(end.observation);
                if let Some(why) = end.unheld {
                    return Ok(Ended::Unheld(why));
                }
                if end.ended_by_loss {
                    return Ok(Ended::ByLoss);
                }
                if end.ended_by_cost && !end.interrupted {
                    return Ok(Ended::ByCost);
                }
                if end.ended_by_guard && !end.interrupted {
                    return Ok(Ended::ByGuard);
                }
                if end.interrupted {
                    break;
                }
            }
            ControlStep::Idle(time) => session.idle(time, events),
            ControlStep::Done => break,
        }
    }
    Ok(Ended::InOrder)
}
