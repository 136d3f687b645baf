//! Any text is jobs or an error, and jobs become a plan that reads back as itself, or an error.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use plimsoll_model::Plan;
use plimsoll_suites::fio_job::{
    Environ, JobFile, LowerOptions, ParseOptions, PathKind, PathProbe, lower, read_jobs,
};

/// No disk is asked: every path is a device of 1 GiB or not there.
struct Paths;

impl PathProbe for Paths {
    fn kind(&self, path: &Path) -> PathKind {
        if path.starts_with("/dev") { PathKind::BlockDevice { size: 1 << 30 } } else { PathKind::Missing }
    }
}

fuzz_target!(|input: (bool, &str)| {
    let (ignore_unknown, text) = input;
    // Includes would make the result depend on this machine's files.
    if text.contains("include") {
        return;
    }
    let options = ParseOptions { ignore_unknown, ..ParseOptions::default() };
    let Ok(file) = JobFile::parse(text, "fuzz.fio") else { return };
    let Ok(jobs) = read_jobs(&file, &options, &Environ::default()) else { return };
    // A job may have thousands of clones: a few are enough.
    if jobs.jobs.iter().map(|j| u64::from(j.numjobs)).sum::<u64>() > 64 {
        return;
    }
    if let Ok(lowered) = lower(&jobs.jobs, &LowerOptions::default(), &Paths) {
        let written = lowered.plan.to_toml();
        let again = Plan::from_toml(&written).expect("a lowered plan must be a plan");
        assert_eq!(again, lowered.plan);
    }
});
