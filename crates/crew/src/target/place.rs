//! Where workers run.

use plimsoll_model::plan::RunOptions;

/// CPUs that this process may use.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// The CPU that a plan gives to the worker of this number, if it gives any.
pub fn cpu_of(options: &RunOptions, worker: u16) -> Option<u32> {
    let cpus = &options.cpus;
    (!cpus.is_empty()).then(|| cpus[usize::from(worker) % cpus.len()])
}
