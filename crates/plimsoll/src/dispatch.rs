//! From a parsed command to what does it.

use crate::args::ArgsContext;
use crate::cli::{Cli, Command, WatchCommand};
use crate::commands::plan_file::RunCommand;
use crate::commands::{
    agent_exec, audit, calibrate, campaign_exec, check_exec, compare_exec, config, cost, cycle, describe,
    fleet_exec, help, import_exec, mark, net_exec, publish_exec, replicate_exec, runs_exec, scale_exec,
    shell, suites, target_exec,
};
use crate::fault::{Exit, Fault};
use crate::measure::{note_identity, planned, resume};
use crate::{detach, fleet_use};

pub fn dispatch(cli: &Cli, context: &ArgsContext) -> Result<Exit, Fault> {
    fleet_use::note(&cli.fleet, &cli.command)?;
    note_identity(cli.identity);
    if let Some(exit) = detach::part()? {
        return Ok(exit);
    }
    let exit = carry_out(cli, context);
    fleet_use::release();
    exit
}

fn carry_out(cli: &Cli, context: &ArgsContext) -> Result<Exit, Fault> {
    match &cli.command {
        Command::Object(c) => planned(&c.plan(context)?, c.run_args().dry_run, &c.run_args().output),
        Command::Block(c) => planned(&c.plan(context)?, c.run_args().dry_run, &c.run_args().output),
        Command::Limits(c) => planned(&c.plan(context)?, c.run_args().dry_run, &c.run_args().output),
        Command::Speedtest(c) => planned(&c.plan(context)?, c.run_args().dry_run, &c.run_args().output),
        Command::Watch(c) => watch(c, context),
        Command::Run(c) => run(c),
        Command::Fio(c) => suites::fio(c),
        Command::File(c) => suites::file(c, context),
        Command::Drive(c) => suites::drive(c, context),
        Command::Check(c) => check_exec::run(c, context),
        Command::Campaign(c) => campaign_exec::campaign(c),
        Command::Replicate(c) => replicate_exec::replicate(c),
        Command::Calibrate(c) => calibrate::calibrate(c),
        Command::Net(c) => net_exec::net(c),
        Command::Publish(c) => publish_exec::publish(c),
        Command::Report(c) => runs_exec::report(c),
        Command::Import(c) => import_exec::import(c),
        Command::Runs(c) => runs_exec::runs(c),
        Command::Mark(c) => mark::mark(c),
        Command::Cleanup(c) => runs_exec::cleanup(c),
        Command::Analyze(c) => runs_exec::analyze(c),
        Command::Compare(c) => compare_exec::compare(c),
        Command::Cost(c) => cost::cost(c),
        Command::Scale(c) => scale_exec::scale(c),
        Command::Audit(c) => audit::audit(c),
        Command::Describe(c) => describe::describe(c),
        Command::Target(c) => target_exec::target(c),
        Command::Fleet(c) => fleet_exec::fleet(c, cli.fleet.agents.as_ref()),
        Command::Agent(c) => agent_exec::agent(c),
        Command::Config(c) => config::config(c),
        Command::Completions(c) => shell::completions(c),
        Command::Man(c) => shell::man(c),
        Command::Help(c) => help::help(c),
    }
}

fn run(c: &RunCommand) -> Result<Exit, Fault> {
    match &c.resume {
        Some(name) => resume(name, &c.output),
        None => planned(&c.plan(&c.read()?)?, c.dry_run, &c.output),
    }
}

fn watch(c: &WatchCommand, context: &ArgsContext) -> Result<Exit, Fault> {
    match &c.probed {
        Some(p) => planned(&p.plan(context)?, p.run_args().dry_run, &p.run_args().output),
        None => cycle::watch(&c.cycle, context),
    }
}
