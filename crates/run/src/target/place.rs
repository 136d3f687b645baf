//! Where workers run, and where in the run they belong.

use plimsoll_model::plan::RunOptions;

/// Where in the run a worker belongs.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub stage: u32,
    pub workload: u16,
    pub warmup_ns: u64,
}

pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

pub fn cpu_of(options: &RunOptions, worker: u16) -> Option<u32> {
    let cpus = &options.cpus;
    (!cpus.is_empty()).then(|| cpus[usize::from(worker) % cpus.len()])
}
