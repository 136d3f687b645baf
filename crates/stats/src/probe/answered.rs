//! What came of the questions that a probe asked, as findings: each law with what it means for who lives with it.

use plimsoll_model::units::significant;
use plimsoll_model::{Finding, Level};

use super::questions::Penalty;
use super::summary::{COSTS_TOKENS, LARGE_ODDS, PENALTY};
use super::{HeldBack, ProbeOutcome};
use crate::laws::RIVALS;
use crate::words;

/// Name of the finding of what a load gets that holds back; and what it says where some rate passed.
pub const HELD_BACK: &str = "limit_held_back";
/// See [`HELD_BACK`].
pub const PASSED_FOR: &str = " passed for ";

impl ProbeOutcome {
    pub(super) fn at_once(&self) -> Option<Finding> {
        let a = self.answers.at_once?;
        let seen =
            format!("With {} in flight nothing is refused; with {} ops are refused", a.passes, a.refused);
        let text = if a.sure {
            format!(
                "The limit is on requests in flight (about {}), not on a rate. {seen}, small and large ones alike. \
                 The rate that gets through is what the storage does at that concurrency.",
                a.passes
            )
        } else {
            format!("{seen}. The limit is on requests in flight, or on a rate that this many reach.")
        };
        Some(
            Finding::new("F66", "limit_at_once", Level::Info, text)
                .measured(f64::from(a.passes), f64::from(a.refused)),
        )
    }

    pub(super) fn same_share(&self) -> Option<Finding> {
        let s = self.answers.same_share?;
        let [least, most] = s.attempts_per_s.map(|x| words::about(x, 2));
        let text = format!(
            "About {} of the attempts are refused at any rate, of {least}/s as of {most}/s: that is no limit on a rate, nor on requests \
             in flight. One of several servers may refuse all that it is sent: look at their logs.",
            words::share(s.share)
        );
        Some(Finding::new("F69", "refused_at_any_rate", Level::Info, text).measured(s.share, 0.0))
    }

    pub(super) fn grows(&self) -> Option<Finding> {
        let g = self.grows?;
        let n = |x: f64| words::about(x, 3);
        let text = format!(
            "What passes beside refusals grows while it is asked for: from {} op/s to {} op/s in {} of requests of which some were refused \
             all the time. Either the limit grows, or it is one on requests in flight before storage that gets faster (a cache that \
             warms). No sustained limit is known yet: drive it on, and measure what it comes to.",
            n(g.first_per_s),
            n(g.last_per_s),
            words::span(g.seconds)
        );
        Some(Finding::new("F36", "limit_grows", Level::Info, text).measured(g.last_per_s, g.first_per_s))
    }

    pub(super) fn of_connections(&self) -> Option<Finding> {
        let e = self.per_connection()?;
        let text = format!(
            "Each connection gets {}, whatever the size of its ops and however many there are: a limit of each connection, or \
             what one stream can do on this way. Use more connections, or parallel parts of an object.",
            words::bytes_rate(&e)
        );
        Some(Finding::new("F39", "limit_per_connection", Level::Info, text).measured(e.value, 0.0))
    }

    pub(super) fn pace_of_connections(&self) -> Option<Finding> {
        let (per_s, few, many) = self.pace_of_each()?;
        let text = format!(
            "Each op took {}, with {few} in flight as with {many}: a limiter that gives each connection {} op/s looks like that, and so does a way \
             or a storage that takes as long for each; rates do not tell which. More connections bring more.",
            plimsoll_model::units::format_latency_ns(1e9 / per_s),
            words::about(per_s, 3)
        );
        Some(Finding::new("F39", "pace_per_connection", Level::Info, text).measured(per_s, 0.0))
    }

    pub(super) fn enough_in_flight(&self) -> Option<Finding> {
        let s = self.answers.served?;
        let n = |x: f64| words::about(x, 3);
        let (few, many) = (s.ops.value.ceil(), 2.0 * s.ops.value.ceil());
        let text = format!(
            "About {} in flight are enough: one at a time comes to {} op/s, and {} in flight to {} op/s; what is more in flight waits. A \
             limit on requests in service that lets the others wait does that, and storage that works on so many side by side, or on one \
             after the other at the end of a long way; which of them, rates do not tell. For the full rate keep {few} to {many} in \
             flight: more of them wait longer, and bring nothing.",
            n(s.ops.value),
            n(s.alone_per_s),
            self.ops.concurrency,
            n(s.per_s),
        );
        Some(Finding::new("F65", "enough_in_flight", Level::Info, text).measured(s.ops.value, 0.0))
    }

    pub(super) fn penalty(&self) -> Option<Finding> {
        let text = match self.answers.penalty? {
            Penalty::Free => {
                "Refused requests cost no tokens: when offered twice the limit, the storage still serves the limit."
                    .to_owned()
            }
            Penalty::CostsTokens(e) if e.low > 0.0 => format!(
                "Refused requests cost tokens: a client that keeps sending when refused gets almost nothing. At {} \
                 op/s nothing is refused{}.",
                significant(e.low, 3),
                match self.answers.by_law {
                    // What bounds it then is a law, and no trial.
                    Some(_) => String::new(),
                    None if e.high.is_finite() => {
                        format!("; at {} op/s, requests are refused", significant(e.high, 3))
                    }
                    None => "; no higher rate was reached".into(),
                }
            ),
            Penalty::CostsTokens(e) => format!(
                "Refused requests cost tokens: a client that keeps sending when refused gets almost nothing{}.",
                if e.high.is_finite() {
                    format!("; at {} op/s, requests are refused", significant(e.high, 3))
                } else {
                    String::new()
                }
            ),
        };
        let mut f = Finding::new("F41", PENALTY, Level::Info, text);
        if matches!(self.answers.penalty, Some(Penalty::CostsTokens(_))) {
            f.evidence.push((COSTS_TOKENS[0].into(), COSTS_TOKENS[1].into()));
        }
        Some(f)
    }

    /// What a load gets that does not insist.
    pub(super) fn held_back(&self) -> Option<Finding> {
        let n = |x: f64| words::about(x, 3);
        let text = match self.answers.held_back? {
            HeldBack::Same { passes, refused, rested } => format!(
                "The rate is the same for a load that holds back: at {} op/s nothing is refused, at {} op/s requests are{}.",
                n(passes),
                n(refused),
                if rested { ", and after a rest as well once the tokens are used up" } else { "" }
            ),
            HeldBack::More { rate, pushed, seconds, .. } if self.ops.known().is_some() => format!(
                "Insisting costs: a load that is refused gets {} op/s, and one that holds back more: {} op/s{PASSED_FOR}{} \
                 without a refusal{}. Configure a rate, not a concurrency.",
                n(pushed),
                n(rate.value),
                words::span(seconds),
                if rate.high.is_finite() {
                    format!("; at {} op/s, requests are refused", n(rate.high))
                } else {
                    "; no higher rate was reached".into()
                }
            ),
            HeldBack::More { pushed, .. } => format!(
                "Insisting costs: a load that is refused gets {} op/s, and one that holds back gets more. How much of it holds \
                 was not determined.",
                n(pushed)
            ),
            HeldBack::Less { offered } => format!(
                "No rate that holds was found: what passes beside refusals moves, or is refused when it is offered by itself \
                 ({} op/s were). This limiter's law is none that is known here.",
                n(offered)
            ),
        };
        Some(Finding::new("F67", HELD_BACK, Level::Info, text))
    }

    /// The law that won, what else was looked at, and what of it was tried.
    pub(super) fn by_law(&self) -> Option<Finding> {
        let other = self.answers.at_once.is_some() || self.answers.same_share.is_some();
        let l = self.answers.by_law.filter(|_| !other)?;
        let n = |x: f64| words::about(x, 3);
        let (low, high) = l.fit.rate_bounds;
        let shut = l.fit.shut_s.map_or(String::new(), |s| format!(", a while of {}", words::span(s)));
        let period = l.fit.period_s.map_or(String::new(), |s| format!(", a period of {}", words::span(s)));
        let next = l.next.map_or(String::new(), |(law, behind)| match l.sure {
            true => {
                let odds = words::about(behind.clamp(0.0, LARGE_ODDS).exp(), 1);
                format!("; the next is {} (odds of 1 to {odds})", law.words())
            }
            false => format!("; {} explains it hardly worse, with the same rate", law.words()),
        });
        let insisting = match l.fit.law.punishes() {
            true => " Insisting costs: configure a rate, not a concurrency.",
            false => "",
        };
        let tried = match l.seconds > 0.0 {
            true => format!(
                "{} op/s{PASSED_FOR}{} without a refusal; at {} op/s, requests are refused.",
                n(l.offered),
                words::span(l.seconds),
                n(l.refused)
            ),
            false => "Whether the rate holds was not tried: its law foretold what the last trial came to, and a larger --budget \
                      would try it."
                .to_owned(),
        };
        let text = format!(
            "{tried} Of {} laws that were fitted to all attempts, {} explains best what passed: {} to {} \
             op/s{period}{shut}{next}.{insisting}",
            self.contest.as_ref().map_or(RIVALS.len(), |c| c.fits.len()),
            l.fit.law.words(),
            n(low),
            n(high),
        );
        let mut f = Finding::new("F67", HELD_BACK, Level::Info, text).measured(l.offered, l.fit.rate_per_s);
        f.evidence.push(("independent seconds with refusals".into(), format!("{:.0}", l.n_eff)));
        f.evidence.push(("error of the law".into(), format!("{} op/s", significant(l.fit.error_ops, 2))));
        Some(f)
    }
}
