//! The law that an outcome shows, for whoever asks what to set: what of the answers decides, and what was counted.

use super::hold::{HOLDS_S, longest_shut_s};
use super::questions::{BurstLaw, Penalty};
use super::{AtOnce, ByLaw, Capacity, Cause, DrainEvidence, Found, HeldBack, ProbeOutcome, Resource, cause};
use crate::advice::{Amounts, BurstTokens, LimitLaw, WindowQuota};
use crate::laws::RivalLaw;
use crate::shape;

/// A load that shows whether a limit goes on growing lasts for so much longer, seconds (a choice: as a steady window has to).
const MORE_S: f64 = 60.0;

impl ProbeOutcome {
    /// The law, and no more of it than was seen.
    pub fn law(&self) -> LimitLaw {
        let answers = &self.answers;
        if let Some(AtOnce { passes, sure, .. }) = answers.at_once {
            return LimitLaw::InFlight { passes, sure };
        }
        if let Some(s) = answers.same_share {
            return LimitLaw::Share(s.share);
        }
        if let Some(g) = self.grows {
            let drive_s = 10.0 * ((g.seconds + g.same_s.max(MORE_S)) / 10.0).ceil();
            return LimitLaw::Growing { last_per_s: g.last_per_s, last_s: g.same_s, drive_s };
        }
        if let Some(Penalty::CostsTokens(e)) = answers.penalty {
            return LimitLaw::CostsTokens {
                holds: answers.free_s.filter(|_| e.low > 0.0).map(|s| (e.low, s)),
            };
        }
        if let Some(law) = answers.by_law.and_then(|l| self.law_that_won(&l)) {
            return law;
        }
        match answers.held_back {
            Some(HeldBack::More { rate, pushed, seconds, calm_s }) => LimitLaw::Insisting {
                pushed_per_s: pushed,
                holds: (seconds >= HOLDS_S).then_some((rate.value, seconds)),
                shut_s: self.ops.shut_s(),
                calm_s,
            },
            Some(HeldBack::Less { .. }) => LimitLaw::Moving(self.ops.range()),
            Some(HeldBack::Same { .. }) | None => self.law_of_rates(),
        }
    }

    /// What has to be set where one of the laws explains what was refused.
    fn law_that_won(&self, won: &ByLaw) -> Option<LimitLaw> {
        let insisting = |shut_s: f64, calm_s: Option<f64>| LimitLaw::Insisting {
            pushed_per_s: self.ops.passed_per_s(),
            holds: Some((won.offered, won.seconds)).filter(|(_, s)| *s > 0.0),
            shut_s,
            calm_s,
        };
        match won.fit.law {
            RivalLaw::Bucket => None,
            RivalLaw::Calendar | RivalLaw::CountsPassed => {
                let period_s = won.fit.period_s?;
                let window = WindowQuota { period_s, units: won.fit.rate_per_s * period_s };
                Some(LimitLaw::Window(Amounts { ops: Some(window), bytes: None }))
            }
            RivalLaw::Ban | RivalLaw::CalendarBan => Some(insisting(won.fit.shut_s.unwrap_or(0.0), None)),
            // How long it has to be calm is not seen before it was: the rest before the trial was enough.
            RivalLaw::UntilCalm | RivalLaw::Slower => Some(insisting(self.ops.shut_s(), Some(won.rest_s))),
            // Not down to almost nothing: that is told as a penalty.
            RivalLaw::CountsRefused | RivalLaw::CountsAtLooks | RivalLaw::TakesFirst => {
                Some(insisting(self.ops.shut_s(), None))
            }
        }
    }

    fn law_of_rates(&self) -> LimitLaw {
        let limited = |r: Resource| self.is_limited(r);
        let of = |r: Resource| if r == Resource::Ops { &self.ops } else { &self.bytes };
        let window = |r: Resource| {
            let (period_s, units) = of(r).window().filter(|_| limited(r))?;
            Some(WindowQuota { period_s, units })
        };
        let windows = Amounts { ops: window(Resource::Ops), bytes: window(Resource::Bytes) };
        if windows.ops.is_some() || windows.bytes.is_some() {
            return LimitLaw::Window(windows);
        }
        let tokens = |r: Resource| {
            // A burst that ends with time is no amount; and of one cap that both loads met, one bucket is told.
            let timed = matches!(self.answers.burst[r as usize], Some((BurstLaw::Timer, _)));
            of(r).tokens().filter(|_| limited(r) && !timed)
        };
        let buckets = Amounts { ops: tokens(Resource::Ops), bytes: tokens(Resource::Bytes) };
        if buckets.ops.is_some() || buckets.bytes.is_some() {
            return LimitLaw::Bucket(buckets);
        }
        match (self.cause_of(Resource::Ops), self.ops.known()) {
            (Cause::Refusing, None) => LimitLaw::Unknown,
            (Cause::Refusing | Cause::Bucket | Cause::Refusals | Cause::Held | Cause::None, _) => {
                LimitLaw::Rate
            }
        }
    }
}

impl Found {
    fn tokens(&self) -> Option<BurstTokens> {
        let full_again_s = || {
            let Capacity::Measured(c) = self.capacity else { return None };
            self.refill.map(|r| c.value / r.value).filter(|s| s.is_finite() && *s > 0.0)
        };
        match self.capacity {
            Capacity::Measured(e) => {
                Some(BurstTokens { least: e.low, is_bound: false, full_again_s: full_again_s() })
            }
            Capacity::AtLeast(v) => Some(BurstTokens { least: v, is_bound: true, full_again_s: None }),
            Capacity::NoneSeen => None,
        }
    }

    /// The longest time in which next to nothing passed in a drain that was refused, seconds.
    fn shut_s(&self) -> f64 {
        let refused =
            self.drains.iter().filter(|d| d.steadiness.is_some_and(|s| s.refused >= cause::REFUSED));
        refused.map(|d| longest_shut_s(&d.x, d.dt_s)).fold(0.0, f64::max)
    }

    /// Least and most that passed over a few seconds where most was refused, units per second.
    fn range(&self) -> Option<(f64, f64)> {
        let share = |d: &&DrainEvidence| d.steadiness.map_or(0.0, |s| s.refused);
        let most = self.drains.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
        shape::range(&most.x[most.x.len() / 3..], most.dt_s)
    }
}
