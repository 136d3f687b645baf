//! The binary: reads the command line, does what it says, and turns the end into an exit code.

mod args;
mod ceiling;
mod cli;
mod commands;
mod defaults;
mod detach;
mod dispatch;
mod dry_run;
mod fault;
mod fleet_use;
mod guessed;
mod hand_out;
mod launch;
mod measure;
mod out_file;
mod output;
mod plim;
mod progress;
mod rerun;
mod runs_dir;
mod signals;
mod status;
mod values;

#[cfg(test)]
mod help_tests;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = guessed::parse();
    signals::keep_file_size_errors();
    let exit = dispatch::dispatch(&cli, &args::ArgsContext::of_process()).unwrap_or_else(|fault| {
        output::tell(&fault);
        fault.exit
    });
    plim::forget();
    detach::over(exit as u8);
    exit.into()
}
