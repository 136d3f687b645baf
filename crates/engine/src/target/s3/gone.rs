//! Servers that do not take connections any more: tried again at a pace, not as fast as a refusal comes back (tens of
//! thousands of connects a second, which no storage has done anything to deserve, and which the client's own CPU pays for).
//!
//! A server is gone after a connect that failed at all of its addresses, or after [`RESETS`] connections in a row that broke
//! without an answer. Until its pause is over, ops go to the other endpoints, as a load balancer would have it; with no
//! other left, the slots wait. Nothing here costs an op more than one comparison while all servers are there.

use plimsoll_model::Outcome;

use super::exchange::Ended;

/// Broken connections in a row, without an answer between them, that are no accident: more than a server that drops every
/// second connection gives by chance (guess).
const RESETS: u32 = 8;
/// The first pause, and the longest (guesses: short against an outage, so that its end is seen; long against a refusal).
const FIRST_PAUSE_NS: u64 = 20_000_000;
const LONGEST_PAUSE_NS: u64 = 250_000_000;
/// All slots of a worker try once a pause: with very many of them the pause is longer, for 1,000 connects a second.
const PAUSE_PER_SLOT_NS: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, Default)]
struct State {
    resets: u32,
    pause_ns: u64,
    /// No attempt before this; 0: it is there.
    until_ns: u64,
}

/// The endpoints of the configuration, as they were last seen.
#[derive(Debug)]
pub(super) struct Gone {
    servers: Vec<State>,
    slots: u64,
    /// Servers with a mark of any kind against them: the only thing that is looked at while there is none.
    marked: u32,
}

impl Gone {
    pub fn new(servers: usize, slots: u32) -> Self {
        Self { servers: vec![State::default(); servers], slots: u64::from(slots), marked: 0 }
    }

    /// The endpoint for an op whose turn is `endpoint`'s: itself, or the next one that is not known to be gone.
    #[inline]
    pub fn choose(&self, endpoint: usize, now_ns: u64) -> usize {
        if self.marked == 0 || self.servers[endpoint].until_ns <= now_ns {
            return endpoint;
        }
        let count = self.servers.len();
        let others = (1..count).map(|i| (endpoint + i) % count);
        others.into_iter().find(|s| self.servers[*s].until_ns <= now_ns).unwrap_or(endpoint)
    }

    /// Notes how an exchange with a server ended.
    #[inline]
    pub fn note(&mut self, server: usize, ended: Ended, now_ns: u64) {
        let Some(s) = self.servers.get_mut(server) else { return };
        match ended {
            Ended::Answered if self.marked == 0 => {}
            Ended::Answered => {
                self.marked -= u32::from(s.is_marked());
                *s = State::default();
            }
            Ended::Failed(outcome, _) => {
                let was = s.is_marked();
                s.fail(outcome, now_ns, self.slots);
                self.marked += u32::from(s.is_marked() && !was);
            }
        }
    }

    /// Until when a slot waits whose op failed: 0 while an endpoint is left that may be tried.
    pub fn hold_until_ns(&self, now_ns: u64, n: u64) -> u64 {
        let until_ns = self.servers.iter().map(|s| s.until_ns).min().unwrap_or(0);
        if until_ns <= now_ns {
            return 0;
        }
        // The slots come back over half a pause, not all at once.
        let r = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        until_ns + (until_ns - now_ns) / 2 * r / u64::from(u32::MAX)
    }
}

impl State {
    fn is_marked(&self) -> bool {
        self.resets > 0 || self.until_ns > 0
    }

    fn fail(&mut self, outcome: Outcome, now_ns: u64, slots: u64) {
        match outcome {
            Outcome::Reset => self.resets = self.resets.saturating_add(1),
            Outcome::NoConnection => self.resets = RESETS,
            _ => return,
        }
        // Those that were in flight when the first of them failed belong to the same attempt.
        if self.resets < RESETS || self.until_ns > now_ns {
            return;
        }
        let most_ns = LONGEST_PAUSE_NS.max(slots * PAUSE_PER_SLOT_NS);
        self.pause_ns = (self.pause_ns * 2).clamp(FIRST_PAUSE_NS, most_ns);
        self.until_ns = now_ns + self.pause_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::s3::exchange::Why;

    const MS: u64 = 1_000_000;
    const NOT_THERE: Ended = Ended::Failed(Outcome::NoConnection, Why::Connect(111));
    const BROKEN: Ended = Ended::Failed(Outcome::Reset, Why::Receive(104));

    #[test]
    fn a_server_that_is_gone_is_tried_once_a_pause_and_slot() {
        let mut g = Gone::new(1, 4);
        let (mut now, mut tries) = (0, 0);
        while now < 10_000 * MS {
            assert_eq!(g.choose(0, now), 0);
            for _ in 0..4 {
                g.note(0, NOT_THERE, now);
                tries += 1;
            }
            let until = g.hold_until_ns(now, tries);
            assert!(until > now);
            now = until;
        }
        assert!((100..=200).contains(&tries), "{tries} connects in ten seconds of four slots");
        g.note(0, Ended::Answered, now);
        assert_eq!((g.marked, g.hold_until_ns(now, 1)), (0, 0));
    }

    #[test]
    fn while_one_is_gone_the_others_take_its_share_and_nobody_waits() {
        let mut g = Gone::new(3, 4);
        g.note(1, NOT_THERE, 1000 * MS);
        let at = 1010 * MS;
        assert_eq!([0, 1, 2].map(|e| g.choose(e, at)), [0, 2, 2]);
        assert_eq!(g.hold_until_ns(at, 7), 0);
        // Its turn comes again after the pause.
        assert_eq!(g.choose(1, at + 300 * MS), 1);
        g.note(2, NOT_THERE, at);
        g.note(0, NOT_THERE, at);
        assert!(g.hold_until_ns(at, 7) > at);
    }

    #[test]
    fn single_resets_are_no_pause() {
        let mut g = Gone::new(1, 64);
        for i in 0..1000 {
            g.note(0, BROKEN, i);
            g.note(0, BROKEN, i);
            g.note(0, Ended::Answered, i);
            assert_eq!(g.hold_until_ns(i, i), 0);
        }
        for _ in 0..RESETS {
            g.note(0, BROKEN, MS);
        }
        assert!(g.hold_until_ns(MS, 1) > MS);
        // Answers of another kind are no break.
        let mut g = Gone::new(1, 64);
        for _ in 0..100 {
            g.note(0, Ended::Failed(Outcome::ShortBody, Why::Cancelled), MS);
        }
        assert_eq!((g.marked, g.hold_until_ns(MS, 1)), (0, 0));
    }
}
