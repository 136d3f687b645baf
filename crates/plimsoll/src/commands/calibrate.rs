//! `plimsoll calibrate`: what this machine can drive at most, against targets that cost nothing.

use std::collections::BTreeMap;

use clap::Args;
use plimsoll_fleet::Fleet;
use plimsoll_model::text::clean;
use plimsoll_model::units::Span;
use plimsoll_report::Style;
use plimsoll_report::table::Table;
use plimsoll_run::ceiling::Calibration;

use crate::args::OutputArgs;
use crate::fault::{Exit, Fault};
use crate::progress::Progress;
use crate::{fleet_use, measure, output, signals};

pub const EXAMPLES: &str = "\
Examples:
  plimsoll calibrate
  plimsoll calibrate --duration 2s --json
  plimsoll calibrate --fleet

The ceilings are stored, and later runs on this machine are checked against them: a result near the ceiling \
is limited by the client, not by the storage. With --fleet the machines of the agents are calibrated, each by one \
of its agents, and keep their own.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct CalibrateCommand {
    /// Length of each measurement
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub duration: Span,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Measures, keeps, and shows the ceilings.
pub fn calibrate(c: &CalibrateCommand) -> Result<Exit, Fault> {
    signals::install(signals::ProcessRole::Run);
    let progress = Progress::new(c.output.quiet);
    if let Some(fleet) = fleet_use::fleet()? {
        return of_fleet(c, &fleet, &progress);
    }
    let options = measure::options(&c.output, "plimsoll calibrate".into())?;
    let made = plimsoll_suites::calibrate(&options, c.duration.0, |e| progress.show(&e));
    progress.finish();
    let made = made?;
    for name in &made.wide {
        output::tell(format_args!(
            "plimsoll: the interval of '{name}' stayed too wide, so it is not used to check runs. Calibrate again on \
             a quiet machine, or with a longer --duration"
        ));
    }
    if let Some(cores) = made.cpu_quota_cores {
        output::tell(format_args!(
            "plimsoll: the control group of this process has a CPU quota of {cores} cores. These ceilings hold for \
             runs under the same quota; for the ceilings of the machine, calibrate without a quota"
        ));
    }
    // What cannot be used is not told as a ceiling.
    let exit = if made.wide.is_empty() { Exit::Valid } else { Exit::Undetermined };
    if c.output.json {
        let json = serde_json::to_string_pretty(&made).expect("a calibration is plain data");
        return told(output::print(&(json + "\n")), exit);
    }
    let mut table =
        Table::new("Ceiling of one thread on this machine", 1, &["what", ">op/s", ">time per op"]);
    for (name, e) in &made.ops_per_s {
        let time = plimsoll_model::units::format_latency_ns(1e9 / e.value.max(f64::MIN_POSITIVE));
        let shown = if made.wide.contains(name) { format!("{name} (too wide)") } else { name.clone() };
        table.push(vec![shown, plimsoll_report::number::estimate(e), time]);
    }
    let text = if c.output.markdown { table.markdown() } else { table.plain(Style::for_stdout().width) };
    told(output::print(&text), exit)
}

/// The ceilings of the agents' machines: measured and kept there, shown here.
fn of_fleet(c: &CalibrateCommand, fleet: &Fleet, progress: &Progress) -> Result<Exit, Fault> {
    let made = fleet.calibrate(c.duration.0, &signals::interrupt(), &mut |e| progress.show(&e));
    progress.finish();
    let made = made?;
    let exit = if made.iter().all(|(_, m)| m.wide.is_empty()) { Exit::Valid } else { Exit::Undetermined };
    if c.output.json {
        let all: BTreeMap<&str, &Calibration> = made.iter().map(|(name, m)| (name.as_str(), m)).collect();
        let json = serde_json::to_string_pretty(&all).expect("a calibration is plain data");
        return told(output::print(&(json + "\n")), exit);
    }
    let mut table =
        Table::new("Ceiling of one thread, by agent", 2, &["agent", "what", ">op/s", ">time per op"]);
    for (agent, m) in &made {
        for (name, e) in &m.ops_per_s {
            let time = plimsoll_model::units::format_latency_ns(1e9 / e.value.max(f64::MIN_POSITIVE));
            let shown = if m.wide.contains(name) { format!("{name} (too wide)") } else { name.clone() };
            let row = [agent.clone(), shown, plimsoll_report::number::estimate(e), time];
            table.push(row.map(|cell| clean(&cell).into_owned()).to_vec());
        }
    }
    let text = if c.output.markdown { table.markdown() } else { table.plain(Style::for_stdout().width) };
    told(output::print(&text), exit)
}

/// The ceilings are kept, shown or not.
fn told(shown: Result<(), Fault>, exit: Exit) -> Result<Exit, Fault> {
    shown.map(|()| exit).map_err(|e| Fault { exit: Exit::LeftBehind, ..e })
}
