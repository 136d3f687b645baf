//! Refusals that are answered late, before anybody held back.
//!
//! Who waits for a refusal does not ask meanwhile: so many in flight come back at once, find what has come together since, and wait again. What
//! passes then is as even as the wait is, and is no rate of the limiter's (a bucket of 20 tokens at 20/s, whose refusals take two seconds, gives
//! sixteen such clients exactly 10/s).

use super::cause::{self, Cause};
use super::outcome::Open;
use super::{ProbeOutcome, Resource};
use crate::words;

/// From this budget on, seconds, a probe holds back right after its first drain ([`super::hold::KEEPS_S`]), and has time for a rest.
const ENOUGH_S: f64 = 240.0;

impl ProbeOutcome {
    /// No rate is told of what clients come to that are kept waiting, unless one was found that passes by itself.
    pub(super) fn forget_what_waited(&mut self) {
        let Some(late_s) = self.refused_after_s else { return };
        let answers = &self.answers;
        let by_itself = answers.by_law.is_some() || answers.held_back.is_some() || answers.penalty.is_some();
        let is_other = answers.at_once.is_some() || answers.same_share.is_some() || self.grows.is_some();
        if by_itself || is_other || self.ops.refused() < cause::REFUSED {
            return;
        }
        self.kept_waiting = true;
        self.forget_rates();
        self.bytes.open.clear();
        let text = format!(
            "refusals are answered {} late, and who waits for them asks for less: what passes beside them is not the limiter's \
             rate; there was no time to hold back, as there is with a --budget of {ENOUGH_S:.0}s or more",
            words::span(late_s)
        );
        self.ops.open = vec![Open { text, more_s: None }];
    }

    /// What says that a limiter was seen, for a sentence.
    pub(super) fn shows(&self, r: Resource) -> &'static str {
        let found = if r == Resource::Ops { &self.ops } else { &self.bytes };
        match self.cause_of(r) {
            // The rate that a load gets which holds back was found by itself; of who is kept waiting none is known.
            Cause::Refusing if self.is_proved(r) || self.kept_waiting => "refusals",
            Cause::Bucket if found.drains.iter().all(|d| d.idle_s.is_none()) => {
                "refusals after a burst, which was seen once"
            }
            cause => cause.words(),
        }
    }
}
