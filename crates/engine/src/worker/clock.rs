//! What the kernel says of a worker's own thread, once a slice: the CPU time that it had, and how long it was
//! ready to run and had to wait for a CPU.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Cumulative times of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ThreadTimes {
    pub cpu_ns: u64,
    /// Ready to run, on no CPU.
    pub run_wait_ns: u64,
    /// How often it got a CPU.
    pub cpu_turns: u64,
}

/// Reads the times of the thread that made it.
#[derive(Debug)]
pub(crate) enum ThreadClock {
    /// Of a virtual clock: always zero, so that its results are exact.
    Stopped,
    /// `/proc/thread-self/schedstat` (Documentation/scheduler/sched-stats.rst): time on a CPU, time waiting for one,
    /// and turns. Without the file (`CONFIG_SCHED_INFO` off, or no /proc) only CPU time is known.
    Running(Option<File>),
}

impl ThreadClock {
    pub fn of_this_thread() -> Self {
        Self::Running(File::open("/proc/thread-self/schedstat").ok())
    }

    pub fn read(&self) -> ThreadTimes {
        let Self::Running(schedstat) = self else { return ThreadTimes::default() };
        let (run_wait_ns, cpu_turns) = schedstat.as_ref().and_then(waits).unwrap_or_default();
        ThreadTimes { cpu_ns: thread_cpu_ns(), run_wait_ns, cpu_turns }
    }
}

/// No allocation: workers read this while they measure.
fn waits(schedstat: &File) -> Option<(u64, u64)> {
    let mut text = [0u8; 80];
    let n = schedstat.read_at(&mut text, 0).ok()?;
    let mut fields = std::str::from_utf8(&text[..n]).ok()?.split_ascii_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// CPU time of this thread.
fn thread_cpu_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_only_grow_and_a_stopped_clock_stands() {
        let clock = ThreadClock::of_this_thread();
        let a = clock.read();
        std::thread::yield_now();
        let b = clock.read();
        assert!(b.cpu_ns >= a.cpu_ns && b.run_wait_ns >= a.run_wait_ns && b.cpu_turns >= a.cpu_turns);
        assert_eq!(ThreadClock::Stopped.read(), ThreadTimes::default());
        assert_eq!(ThreadClock::Running(None).read().run_wait_ns, 0);
    }
}
