//! `check`: looks for what can be read, reads a little of it, and says in one line how it stands to the baseline.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use plimsoll_model::plan::{Plan, TargetSpec};
use plimsoll_model::units::Span;
use plimsoll_run::Finished;
use plimsoll_setup::SetupError;
use plimsoll_setup::objects::{self, FoundObjects, StoreFault, WantedObjects};
use plimsoll_setup::s3::{Bucket as _, admin_for};
use plimsoll_setup::safety::refuse_no_storage;
use plimsoll_stats::check::{
    CheckFacts, CheckReason, CheckVerdict, CheckWord, LEAST_OPS, OPS_FOR_P99, check, not_carried,
};

use super::check::CheckCommand;
use super::check_baseline::Baseline;
use super::check_words::{CheckReport, duration, place_of};
use crate::args::{ArgsContext, OutputArgs};
use crate::fault::{Exit, Fault};
use crate::progress::Progress;
use crate::{measure, output, signals};

/// Whoever asks whether the storage answers does not wait for minutes: of each attempt of the first listing.
const FIRST_ANSWER: Span = Span(std::time::Duration::from_secs(5));

pub fn run(c: &CheckCommand, context: &ArgsContext) -> Result<Exit, Fault> {
    signals::install(signals::ProcessRole::Run);
    let baseline = Baseline::find(c)?;
    let mut plan = baseline.plan(c, context.fresh_seed)?;
    plan.validate()?;
    let place = place_of(&plan);
    let report = |rate, judged| CheckReport::new(c, &baseline, &place, rate, judged);
    let (mean_bytes, sizes) = match first_look(&plan)? {
        Look::Away(why) => return told(c, &report(None, failing_at_once(why)), Exit::ExpectationMissed),
        Look::There { mean_bytes, sizes } => (mean_bytes, sizes),
    };
    let rate = baseline.rate(mean_bytes);
    if let Some(why) = not_carried(&baseline.line) {
        return told(c, &report(Some(rate), unknown(why.into())), Exit::Undetermined);
    }
    if let Some(why) = too_few(&baseline, c, rate) {
        return told(c, &report(Some(rate), unknown(why)), Exit::Undetermined);
    }
    baseline.paced(&mut plan, rate);
    notes(c, &baseline, rate);
    let out = OutputArgs { quiet: c.quiet, runs_dir: c.runs_dir.clone(), ..OutputArgs::default() };
    let finished = measure::run(&plan, &out, &Progress::new(c.quiet))?;
    let Some(line) = finished.summary.workloads.iter().find(|w| !w.is_total()) else {
        let judged = unknown("nothing was measured".into());
        return told(c, &report(Some(rate), judged).of_run(&finished), ended(&finished, Exit::Undetermined));
    };
    let judged = check(&CheckFacts {
        now: line,
        findings: &finished.summary.findings,
        baseline: &baseline.line,
        max_error_rate: plan.options.max_error_rate,
    });
    let exit = ended(&finished, exit_of(&judged));
    let report = report(Some(rate), judged).measured(line, sizes).of_run(&finished);
    told(c, &report, exit)
}

fn told(c: &CheckCommand, report: &CheckReport<'_>, exit: Exit) -> Result<Exit, Fault> {
    output::print(&if c.json { report.json(exit) } else { report.line() + "\n" })?;
    Ok(exit)
}

fn exit_of(judged: &CheckVerdict) -> Exit {
    match judged.verdict {
        CheckWord::Ok => Exit::Valid,
        CheckWord::Slower | CheckWord::Failing => Exit::ExpectationMissed,
        CheckWord::Unknown if judged.is_void() => Exit::Invalid,
        CheckWord::Unknown => Exit::Undetermined,
    }
}

/// What came to the run itself goes before what it says of the storage.
fn ended(finished: &Finished, exit: Exit) -> Exit {
    match Exit::of_code(finished.exit_code) {
        own @ (Exit::Interrupted | Exit::Damaged) => own,
        _ => exit,
    }
}

fn failing_at_once(why: String) -> CheckVerdict {
    CheckVerdict { verdict: CheckWord::Failing, ..unknown(why) }
}

fn unknown(why: String) -> CheckVerdict {
    CheckVerdict {
        verdict: CheckWord::Unknown,
        reason: CheckReason::Open(why),
        times: Vec::new(),
        attempts: 0,
        failed: 0,
        throttled: 0,
        gone: 0,
    }
}

/// Before any load: a check that cannot answer is not made.
fn too_few(baseline: &Baseline, c: &CheckCommand, rate: f64) -> Option<String> {
    let ops = rate * c.time.0.as_secs_f64();
    if ops >= LEAST_OPS {
        return None;
    }
    let share = plimsoll_report::number::percent(baseline.max_load);
    let needed = baseline.max_load * LEAST_OPS / ops;
    let more = match (needed * 100.0).ceil() / 100.0 {
        load if load <= 1.0 => format!(", or --max-load {:.0}%", load * 100.0),
        _ => String::new(),
    };
    Some(format!(
        "{share} of the baseline's load is {} op/s: {ops:.0} ops in {}, and a 90th percentile takes {LEAST_OPS}; --for {}{more} would do",
        plimsoll_model::units::significant(rate, 3),
        c.time,
        duration(LEAST_OPS / rate),
    ))
}

/// What the verdict cannot say, for a person who looks on.
fn notes(c: &CheckCommand, baseline: &Baseline, rate: f64) {
    if c.quiet {
        return;
    }
    if !baseline.is_same_load(rate) {
        output::tell(format_args!(
            "plimsoll: the baseline was under a higher load: that nothing is slower than it says nothing of that load. A later \
             `plimsoll check --against last` compares with this check at the same load"
        ));
    }
    if rate * c.time.0.as_secs_f64() < OPS_FOR_P99 {
        output::tell(format_args!(
            "plimsoll: the 90th percentile is compared; a 99th takes {OPS_FOR_P99} ops: --for {}",
            duration(OPS_FOR_P99 / rate)
        ));
    }
}

/// What is there to be read.
enum Look {
    /// It does not answer: that is the verdict.
    Away(String),
    There {
        /// Of an op; absent: its bytes do not count.
        mean_bytes: Option<f64>,
        /// Of objects of other sizes than the baseline's, for a person.
        sizes: Option<String>,
    },
}

fn first_look(plan: &Plan) -> Result<Look, Fault> {
    let w = &plan.stages[0].workloads[0];
    match plan.target_of(w)?.1 {
        TargetSpec::S3(s3) => {
            let mut target = s3.clone();
            target.timeout = Span(target.timeout.0.min(FIRST_ANSWER.0));
            let interrupt = signals::interrupt();
            let admin = admin_for(&target, &interrupt)?;
            objects::ObjectStore::give_up_when(&admin, interrupt.asked_flag().into());
            let wanted = WantedObjects::of(w).ok_or_else(|| Fault::bug("a check that prepares objects"))?;
            let found = match objects::find_existing(&wanted, |from| admin.list_objects(&wanted.prefix, from))
            {
                Err(_) if interrupt.is_requested() => return Err(SetupError::Interrupted.into()),
                Err(StoreFault::Away(told)) => return Ok(Look::Away(told.what)),
                Err(e) => return Err(objects::listing_error(&s3.bucket, &wanted.prefix, &e).into()),
                Ok(found) if found.count() == 0 => {
                    return Err(objects::none_found(&wanted, &s3.bucket, &found).into());
                }
                Ok(found) => found,
            };
            match admin.may_read(&found.keys[0]) {
                Err(StoreFault::Away(told)) => Ok(Look::Away(told.what)),
                Err(e) => Err(Fault::input(
                    format!("these credentials may list bucket '{}', and not read it: {e}", s3.bucket),
                    e.remedy().unwrap_or("Give credentials that may read (s3:GetObject)."),
                )),
                Ok(()) => Ok(of_objects(w, &wanted, &found)),
            }
        }
        TargetSpec::Block(b) => {
            let paths = std::iter::once(&b.path).chain(&b.also).map(PathBuf::from);
            for path in paths {
                let shown = path.display();
                refuse_no_storage(&path).map_err(SetupError::from)?;
                match File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path) {
                    Ok(_) => {}
                    Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
                        return Err(Fault::input(
                            format!("{shown} cannot be opened: {e}"),
                            "Check the path, and who may read it.",
                        ));
                    }
                    Err(e) => return Ok(Look::Away(format!("{shown} cannot be opened: {e}"))),
                }
            }
            Ok(Look::There { mean_bytes: Some(w.size.mean_bytes() as f64), sizes: None })
        }
        _ => Err(Fault::bug("a check of what holds no data")),
    }
}

fn of_objects(w: &plimsoll_model::plan::Workload, wanted: &WantedObjects, found: &FoundObjects) -> Look {
    let range = w.object.as_ref().and_then(|o| o.range).map_or(64 << 10, |r| r.0);
    let mean_bytes = if wanted.near_bytes.is_some() {
        Some(found.mean_bytes())
    } else {
        w.mix.contains_key(&plimsoll_model::OpKind::GetRange).then_some(range as f64)
    };
    let sizes = (wanted.near_bytes.is_some() && !found.near).then(|| found.sizes_said());
    Look::There { mean_bytes, sizes }
}
