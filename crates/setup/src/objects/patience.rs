//! Waiting for a server that is away: a run whose server is being restarted must not leave its objects behind.
//!
//! Attempts are repeated with growing pauses until nothing has gone forward for a bounded time.

use std::time::{Duration, Instant};

use plimsoll_model::Event;

use super::store::StoreFault;
use crate::interrupt::RemovalEnd;

/// How long cleaning up waits for a server that is away. Servers restart in seconds; nobody waits for minutes.
pub const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Time, as far as waiting needs it.
pub trait Waiting {
    /// Since some fixed time.
    fn now(&self) -> Duration;
    /// Waits; false: there is no wish to wait any more.
    fn pause(&mut self, time: Duration, why: &StoreFault) -> bool;
}

/// Repeats `work` while it fails for a passing reason. `work` sets its flag when something went forward.
pub fn patiently<T>(
    waiting: &mut dyn Waiting,
    mut work: impl FnMut(&mut bool) -> Result<T, StoreFault>,
) -> Result<T, StoreFault> {
    let mut since = waiting.now();
    let mut next = FIRST_PAUSE;
    loop {
        let mut forward = false;
        let fault = match work(&mut forward) {
            Err(e) if e.may_pass() => e,
            other => return other,
        };
        if forward {
            since = waiting.now();
            next = FIRST_PAUSE;
        }
        let left = (since + PATIENCE).saturating_sub(waiting.now());
        if left.is_zero() || !waiting.pause(next.min(left), &fault) {
            return Err(fault);
        }
        next = (next * 2).min(LONGEST_PAUSE);
    }
}

/// The real clock. Says once why it waits; a first Ctrl-C while it waits ends the waiting.
pub struct PatientClock<'a> {
    begun: Instant,
    end: RemovalEnd,
    told: bool,
    /// Nothing is waited for: it was, in vain.
    in_vain: bool,
    tell: &'a mut dyn FnMut(Event),
}

impl std::fmt::Debug for PatientClock<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PatientClock")
            .field("begun", &self.begun)
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}

impl<'a> PatientClock<'a> {
    /// Its time begins with it.
    pub fn new(end: RemovalEnd, tell: &'a mut dyn FnMut(Event)) -> Self {
        Self { begun: Instant::now(), end, told: false, in_vain: false, tell }
    }

    /// One that does not wait, where another one of the same server did for as long as is waited.
    pub fn after(self, in_vain: bool) -> Self {
        Self { in_vain, ..self }
    }

    /// Whether the server stayed away for as long as is waited for it.
    pub fn is_over(&self) -> bool {
        self.in_vain || self.told && self.begun.elapsed() >= PATIENCE
    }
}

impl Waiting for PatientClock<'_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn pause(&mut self, time: Duration, why: &StoreFault) -> bool {
        if self.end.is_asked() || self.in_vain {
            return false;
        }
        if !std::mem::replace(&mut self.told, true) {
            let text = format!("cleanup is delayed: {why}. Retrying for {} s", PATIENCE.as_secs());
            (self.tell)(Event::Message(text));
        }
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if self.end.is_asked() {
                return false;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A clock that pauses move.
    #[derive(Debug, Default)]
    pub struct Virtual {
        pub now: Duration,
        pub pauses: u32,
    }

    impl Waiting for Virtual {
        fn now(&self) -> Duration {
            self.now
        }
        fn pause(&mut self, time: Duration, _: &StoreFault) -> bool {
            self.now += time;
            self.pauses += 1;
            true
        }
    }

    fn away() -> StoreFault {
        StoreFault::Away("no answer".to_owned().into())
    }

    /// The objects of a bucket and then the bucket itself: a minute each, of a server that was gone.
    #[test]
    fn who_waited_in_vain_does_not_wait_again() {
        let mut tell = |_: Event| panic!("nothing is told");
        let mut clock = PatientClock::new(RemovalEnd::default(), &mut tell).after(true);
        assert!(clock.is_over() && !clock.pause(LONGEST_PAUSE, &away()));
        let mut tell = |_: Event| ();
        let clock = PatientClock::new(RemovalEnd::default(), &mut tell).after(false);
        assert!(!clock.is_over());
    }

    #[test]
    fn it_gives_up_after_a_bounded_time() {
        let mut clock = Virtual::default();
        assert_eq!(patiently(&mut clock, |_| Err::<(), _>(away())), Err(away()));
        assert_eq!(clock.now, PATIENCE);
        assert!((10..40).contains(&clock.pauses), "{}", clock.pauses);
    }

    #[test]
    fn what_does_not_pass_is_not_waited_for() {
        let mut clock = Virtual::default();
        let denied = StoreFault::Denied("no".to_owned().into());
        assert_eq!(patiently(&mut clock, |_| Err::<(), _>(denied.clone())), Err(denied));
        assert_eq!(clock.pauses, 0);
    }

    #[test]
    fn while_something_goes_forward_the_time_begins_anew() {
        let mut clock = Virtual::default();
        let mut times = 0;
        let done = patiently(&mut clock, |forward| {
            times += 1;
            *forward = true;
            if times < 1000 { Err(away()) } else { Ok(times) }
        });
        assert_eq!(done, Ok(1000));
        assert!(clock.now > PATIENCE);
    }
}
