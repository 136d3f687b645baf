//! Chores of the project that are not part of the product: `cargo run -p xtask -- COMMAND`.

mod audits;
mod docs;
mod schema;
mod validate;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo run --release -p xtask -- COMMAND

  schema [--check]
           write the JSON schemas of plan, run summary and analysis to schema/, or compare them
  docs [--check]
           write the reference pages under docs/reference/, or compare them
  validate [--quick] [--only NAMES] [--tuning] [--threads N]
           judge the methods on simulated systems whose truth is known (METHODOLOGY.md)
  audits [--tables N] [--seed S] [--held-out] [--show]
           plant faults in tables of measured rows, and count how many the audit finds (METHODOLOGY.md)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("docs") => docs::main(&args[1..]),
        Some("schema") => schema::main(&args[1..]),
        Some("audits") => audits::main(&args[1..]),
        Some("validate") => validate::main(&args[1..]),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
