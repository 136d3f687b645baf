//! The command line, a file per family of commands. `*_exec` files do what the others only describe.

pub mod block;
pub mod calibrate;
pub mod compare_exec;
pub mod cycle;
pub mod drive;
pub mod file;
pub mod fio;
pub mod mark;
pub mod object;
pub mod plan_file;
pub mod probe;
pub mod runs;
pub mod runs_exec;
pub mod scale_exec;
mod several;
pub mod suites;
pub mod target;
mod target_block;
pub mod target_exec;
mod target_s3;
