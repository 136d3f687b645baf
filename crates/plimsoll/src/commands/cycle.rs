//! `watch DIR --cycle file`: the file benchmark again and again, in one run, so that a step from one cycle to a later
//! one is found by the same method as a cliff in a series.

use std::time::Duration;

use plimsoll_store::RunDir;
use plimsoll_suites::filebench::{self, CycleLines, FileBenchOptions, Host, Original};

use crate::args::ArgsContext;
use crate::cli::CycleArgs;
use crate::fault::{Exit, Fault};
use crate::progress::Progress;
use crate::{measure, output};

pub fn watch(c: &CycleArgs, context: &ArgsContext) -> Result<Exit, Fault> {
    const REMEDY: &str = "Give a directory: plimsoll watch DIR --cycle file --for 4h";
    let dir = match &c.dir {
        None => return Err(Fault::input("there is no directory to watch", REMEDY)),
        Some(dir) if !dir.exists() => {
            return Err(Fault::input(format!("{} does not exist", dir.display()), REMEDY));
        }
        Some(dir) if !dir.is_dir() => {
            return Err(Fault::input(format!("{} is no directory", dir.display()), REMEDY));
        }
        Some(dir) => dir.clone(),
    };
    // A cycle cannot be shorter than its IOPS phase: this many are never reached, and time ends the run.
    let most = c.watch.duration.0.as_secs_f64() / c.iops_duration.0.as_secs_f64().max(0.1);
    let mut made = filebench::plan(
        &FileBenchOptions {
            embedded: None,
            runs: (most.ceil() as u32).saturating_add(1).min(100_000),
            size_bytes: c.size.map(|s| s.0),
            threads: c.threads,
            iops_duration: c.iops_duration.0,
            original: Original::default(),
            seed: context.fresh_seed,
            directory: dir.clone(),
        },
        &Host::of(&dir)?,
    )?;
    // What the plan says of the benchmark once is said of all its cycles.
    if let Some(name) = &mut made.plan.name {
        name.push_str(", in cycles");
    }
    c.about.lay_over(&mut made.plan)?;
    made.plan.validate()?;
    if !c.output.quiet {
        made.notes.iter().for_each(|n| output::tell(format_args!("plimsoll: {n}")));
    }
    let progress = Progress::new(c.output.quiet);
    let mut lines = CycleLines::default();
    let quiet = c.output.quiet;
    let finished =
        measure::run_and_tell(&made.plan, &c.output, &progress, Some(c.watch.duration.0), |event| {
            lines.see(event, &plimsoll_run::remark::clock_time(Duration::ZERO)).filter(|_| !quiet)
        })?;
    let bench = plimsoll_report::fio::file_bench(&RunDir::open(&finished.path)?)?;
    super::suites::show_bench(&finished, &c.output, &bench)
}
