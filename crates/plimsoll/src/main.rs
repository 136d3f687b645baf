//! The binary: reads the command line, does what it says, and turns the end into an exit code.

mod args;
mod ceiling;
mod cli;
mod commands;
mod dispatch;
mod dry_run;
mod fault;
mod fleet_use;
mod guessed;
mod launch;
mod measure;
mod out_file;
mod output;
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
    match dispatch::dispatch(&cli, &args::ArgsContext::of_process()) {
        Ok(exit) => exit.into(),
        Err(fault) => {
            output::tell(&fault);
            fault.exit.into()
        }
    }
}
