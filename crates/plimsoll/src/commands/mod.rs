//! The command line, a file per family of commands.

pub mod block;
pub mod calibrate;
pub mod drive;
pub mod file;
pub mod fio;
pub mod object;
pub mod plan_file;
pub mod probe;
pub mod runs;
pub mod target;
