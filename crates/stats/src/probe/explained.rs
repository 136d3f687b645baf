//! Rates that passed for a while because less was asked for before, as a law explains that was found meanwhile.

use plimsoll_model::Estimate;

use super::by_law::FORETOLD;
use super::questions::Penalty;
use super::{HeldBack, Probe};
use crate::laws::{self, LawContest};

impl Probe {
    /// The law that explains all that was seen comes to less than this rate, which passed for no longer than that law remembers: as much may have
    /// passed as was not asked for before.
    fn is_explained(&self, rate: Estimate, seconds: f64) -> bool {
        let found = self.questions.contest.as_ref().filter(|c| c.ahead_of_none >= laws::WON);
        let won = found.and_then(LawContest::winner);
        won.is_some_and(|w| rate.value > FORETOLD * w.rate_bounds.1 && seconds < w.memory_s())
    }

    /// A rate that was found by itself is none where a law explains why it passed for as long as it did.
    pub(super) fn forget_what_is_explained(&mut self) {
        let a = self.questions.answers;
        if let (Some(Penalty::CostsTokens(rate)), Some(seconds)) = (a.penalty, a.free_s)
            && self.is_explained(rate, seconds)
        {
            (self.questions.answers.penalty, self.questions.answers.free_s) = (None, None);
        }
        if let Some(HeldBack::More { rate, seconds, .. }) = a.held_back
            && self.is_explained(rate, seconds)
        {
            self.questions.answers.held_back = None;
        }
    }
}
