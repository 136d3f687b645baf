//! How many threads serve a workload on one machine, and what they are numbered.

/// One thread keeps this many in flight with ease: each thread costs a core, and slots cost nothing.
const SLOTS_PER_THREAD: u32 = 16;

/// Threads for an object workload: as asked for, else one for each 16 in flight, and no more than there are
/// cores. With the storage on this same machine half of the cores are left to it.
pub fn threads_for(asked: Option<u32>, concurrency: u32, cores: u32, storage_is_here: bool) -> u32 {
    let free = if storage_is_here { (cores / 2).max(1) } else { cores.max(1) };
    let wanted = asked.unwrap_or_else(|| concurrency.div_ceil(SLOTS_PER_THREAD).min(free));
    wanted.clamp(1, concurrency.max(1))
}

/// Number of the `n`-th worker of a workload in its stage. Plans are checked so that it fits (`plan::bounds`).
pub fn worker_number(first: u16, n: u32) -> u16 {
    let number = u32::from(first).checked_add(n).and_then(|all| u16::try_from(all).ok());
    number.expect("the jobs of a stage are bounded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_follow_cores_and_concurrency() {
        assert_eq!(threads_for(None, 1, 8, false), 1);
        assert_eq!(threads_for(None, 16, 8, false), 1);
        assert_eq!(threads_for(None, 64, 8, false), 4);
        assert_eq!(threads_for(None, 1000, 8, false), 8);
        assert_eq!(threads_for(None, 1000, 8, true), 4);
        assert_eq!(threads_for(None, 64, 1, true), 1);
        assert_eq!(threads_for(Some(3), 64, 1, true), 3);
        assert_eq!(threads_for(Some(9), 4, 8, false), 4, "a thread without a slot does nothing");
    }
}
