//! Precise waiting for the async server: tokio's timers are a millisecond coarse, which a limiter of 4,000 ops/s would
//! feel. One thread sleeps in nanoseconds and wakes whoever is due.

use crate::clock::now_ns;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use std::cmp::Ordering as Order;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Someone who waits; the earliest is the greatest.
#[derive(Debug)]
struct Due {
    at_ns: u64,
    wake: oneshot::Sender<()>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.at_ns == other.at_ns
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Order> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Due) -> Order {
        other.at_ns.cmp(&self.at_ns)
    }
}

#[derive(Debug)]
struct Inner {
    due: Mutex<BinaryHeap<Due>>,
    wake: OwnedFd,
    stop: AtomicBool,
}

/// A thread that wakes tasks; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Timer {
    inner: Arc<Inner>,
}

impl Timer {
    pub fn start() -> std::io::Result<Timer> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let inner = Arc::new(Inner { due: Mutex::default(), wake, stop: AtomicBool::new(false) });
        let thread = inner.clone();
        std::thread::Builder::new().name("s3-timer".into()).spawn(move || thread.run())?;
        Ok(Timer { inner })
    }

    /// Waits until this monotonic time; returns at once when it is past.
    pub async fn until(&self, at_ns: u64) {
        if at_ns <= now_ns() {
            return;
        }
        let (wake, woken) = oneshot::channel();
        let first = {
            let mut due = self.inner.due.lock().unwrap_or_else(PoisonError::into_inner);
            due.push(Due { at_ns, wake });
            due.peek().is_some_and(|d| d.at_ns == at_ns)
        };
        if first {
            self.inner.ring();
        }
        // The thread ends only with the server; then nobody needs to wait.
        let _ = woken.await;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.inner.stop.store(true, Ordering::Release);
        self.inner.ring();
    }
}

impl Inner {
    fn ring(&self) {
        // Fails only when the counter is full, and then the thread is awake already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn run(&self) {
        // 1 ns is the least slack that can be asked for; the default of 50 us would be added to every wait.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        while !self.stop.load(Ordering::Acquire) {
            let timeout = self.fire().and_then(|ns| Timespec::try_from(Duration::from_nanos(ns)).ok());
            let mut fds = [PollFd::new(&self.wake, PollFlags::IN)];
            // An interrupted wait is a wait that ended early: the loop looks again.
            let _ = poll(&mut fds, timeout.as_ref());
            let mut count = [0u8; 8];
            let _ = rustix::io::read(&self.wake, &mut count);
        }
        self.due.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Wakes all who are due; the answer is the time until the next one.
    fn fire(&self) -> Option<u64> {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let at_ns = due.peek()?.at_ns;
            let now = now_ns();
            if at_ns > now {
                return Some(at_ns - now);
            }
            if let Some(d) = due.pop() {
                // Whoever gave up waiting does not need to know.
                let _ = d.wake.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_wait_wake_in_order_and_never_early() {
        let t = Arc::new(Timer::start().unwrap());
        let start = now_ns();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut all = Vec::new();
        for ms in [9u64, 3, 6, 0] {
            let (t, woken) = (t.clone(), woken.clone());
            all.push(tokio::spawn(async move {
                let at = start + ms * 1_000_000;
                t.until(at).await;
                assert!(now_ns() >= at);
                woken.lock().unwrap().push(ms);
            }));
        }
        for task in all {
            task.await.unwrap();
        }
        assert_eq!(*woken.lock().unwrap(), [0, 3, 6, 9]);
    }
}
