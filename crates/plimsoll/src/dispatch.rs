//! From a parsed command to what does it.

use plimsoll_model::Plan;

use crate::args::{Context, OutputArgs};
use crate::cli::{Cli, Command};
use crate::commands;
use crate::dry_run;
use crate::fault::{Exit, Fault};

pub fn dispatch(cli: &Cli, context: &Context) -> Result<Exit, Fault> {
    match &cli.command {
        Command::Object(c) => planned(c.plan(context)?, c.run_args().dry_run, &c.run_args().output),
        Command::Block(c) => planned(c.plan(context)?, c.run.dry_run, &c.run.output),
        Command::Limits(c) => planned(c.plan(context)?, c.run_args().dry_run, &c.run_args().output),
        Command::Speedtest(c) => planned(c.plan(context)?, c.run_args().dry_run, &c.run_args().output),
        Command::Run(c) => planned(c.plan(&c.read()?, context)?, c.dry_run, &c.output),
        Command::Report(c) => commands::runs_exec::report(c),
        Command::Runs(c) => commands::runs_exec::runs(c),
        Command::Compare(c) => commands::compare_exec::compare(c),
        Command::Scale(c) => commands::compare_exec::scale(c),
        Command::Target(c) => commands::target_exec::target(c),
        _ => Err(Fault::bug("not wired")),
    }
}

fn planned(plan: Plan, dry: bool, _output: &OutputArgs) -> Result<Exit, Fault> {
    if dry {
        print!("{}", dry_run::text(&plan));
        return Ok(Exit::Valid);
    }
    Err(Fault::bug("not wired"))
}
