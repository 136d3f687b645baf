//! Whether what is refused is a rate at all, or how many requests there are at once (nginx's `limit_conn`, a pool of workers).
//!
//! A limiter of a rate that refuses holds that rate exactly; one that counts requests in flight lets through whatever the storage
//! does with so many, which wanders as storage does. Where much is refused and no rate is held, fewer are put in flight, until
//! nothing is refused. A limit on requests at once lies at the same number for small and for large ops, though their rates
//! differ in ops and in bytes; a limit on a rate does not.
//!
//! Where the same share is refused however few are sent, it is neither: a broken server of several, or an error that looks like a limit.

use super::ladder::{Look, look};
use super::{DrainKind, Probe, ProbeAction, Resource, State, cause};
use crate::math;
use crate::simulate::RatesSeen;

/// What was found of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtOnce {
    /// So many in flight, and nothing was refused; so many, and it was.
    pub passes: u32,
    /// The fewest with which some were refused.
    pub refused: u32,
    /// Small and large ops showed the same. Without, it may as well be a limit on a rate.
    pub sure: bool,
}

/// The same share of attempts is refused at rates far apart: no limit on a rate, nor on requests at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SameShare {
    /// Of the attempts.
    pub share: f64,
    /// Attempts per second of the least and of the greatest load of which it was refused.
    pub attempts_per_s: [f64; 2],
}

/// Seconds of a step: as a rung of the ladder.
const STEP_S: f64 = 2.0;
/// With what ends after it is told to, a step takes so long (guess).
const WHOLE_S: f64 = 2.5;
/// The number is looked for until it is known within so large a part of it.
const PART: u32 = 8;
/// Large ops are refused at this much more than where small ones are, at the latest: part of the number, and room for its own error.
const ABOVE: f64 = 1.25;
/// Rates that differ by less are the same (as the cap that small and large ops both meet).
const APART: f64 = 0.1;
/// Less of the rate that passes beside refusals is less than what is allowed: the number says nothing then (guess).
const AS_MUCH: f64 = 0.95;

/// Loads that are so many times apart tell a share that is always refused from the excess over a rate (of which the lesser one has
/// none), and are as many steps at the least. (A choice: three halvings.)
const TIMES_APART: f64 = 4.0;
const STEPS_APART: usize = 2;
/// Shares that differ by less are the same: by this part of them, or by so many standard errors.
const SAME_SHARE: f64 = 0.25;
const ERRORS_APART: f64 = 3.0;
/// Fewer refusals in a step than these are a share of anything: a limiter that remembers the load before refuses some, too.
const FEWEST_REFUSED: f64 = 15.0;

/// The search for the number.
#[derive(Debug, Clone)]
pub(super) struct Search {
    of: Resource,
    pub concurrency: u32,
    /// Most in flight of which nothing was refused, with their ops per second; fewest of which some was.
    low: Option<(u32, f64)>,
    high: u32,
    /// Ops per second that passed beside refusals.
    beside_per_s: f64,
    now: Option<Look>,
    /// Of the full load, and of each step that was refused: share, and attempts per second.
    shares: Vec<(f64, f64)>,
}

/// A refused share, with the attempts per second that it is of. `passed_per_s`: more than nothing.
fn with_attempts(share: f64, passed_per_s: f64) -> (f64, f64) {
    (share, passed_per_s / (1.0 - share))
}

impl Search {
    fn next(&self) -> Option<u32> {
        let low = self.low.map_or(0, |l| l.0);
        (self.high - low > (self.high / PART).max(1)).then(|| low + (self.high - low) / 2)
    }

    /// Of small ops alone: nothing is refused of as much as passes beside refusals.
    fn unsure(&self) -> Option<AtOnce> {
        let (passes, per_s) = self.low?;
        let as_much = per_s >= AS_MUCH * self.beside_per_s;
        as_much.then_some(AtOnce { passes, refused: self.high, sure: false })
    }

    /// Whether however few were sent as large a part of them was refused: of one at a time, too.
    fn same_share(&self) -> Option<SameShare> {
        if self.low.is_some() || self.shares.len() <= STEPS_APART {
            return None;
        }
        let attempts = || self.shares.iter().map(|(_, per_s)| *per_s);
        let (least, most) = (attempts().fold(f64::INFINITY, f64::min), attempts().fold(0.0, f64::max));
        let n = |per_s: f64| (per_s * STEP_S).max(1.0);
        let share =
            self.shares.iter().map(|(s, per_s)| s * n(*per_s)).sum::<f64>() / attempts().map(n).sum::<f64>();
        let alike = |(s, per_s): &(f64, f64)| {
            if s * n(*per_s) < FEWEST_REFUSED {
                return false;
            }
            let error = (share * (1.0 - share) / n(*per_s)).sqrt();
            (s - share).abs() <= (SAME_SHARE * share).max(ERRORS_APART * error)
        };
        // All of it refused is a ban, or a server that is down: no share.
        let is_part = share < 1.0 - SAME_SHARE && least > 0.0 && most >= TIMES_APART * least;
        (is_part && self.shares.iter().all(alike))
            .then_some(SameShare { share, attempts_per_s: [least, most] })
    }
}

impl Probe {
    /// Asked once, as soon as a drain was refused much and held no rate.
    pub(super) fn ask_at_once(&mut self) -> Option<ProbeAction> {
        if !self.options.questions || self.questions.at_once_asked || self.left_s() < WHOLE_S {
            return None;
        }
        let wanders = |d: &super::DrainEvidence| {
            let flat = matches!(d.kind, DrainKind::Flat | DrainKind::Unsteady) && d.window.is_none();
            let unheld = d.steadiness.is_some_and(|s| s.refused >= cause::REFUSED && !s.is_held_exactly());
            flat && d.rate > 0.0 && unheld
        };
        if !self.tracks.iter().flat_map(|t| &t.drains).any(wanders) {
            return None;
        }
        let small = self.tracks[Resource::Ops as usize].drains.first()?;
        let beside_per_s = math::mean(&small.x[small.x.len() / 3..]);
        let high = small.concurrency;
        self.questions.at_once_asked = true;
        // What grows while it is asked is no number yet; and clients that are kept waiting are fewer than are in flight.
        if self.is_growing() || self.record.refused_after_s().is_some() {
            return None;
        }
        let share = small.steadiness.map_or(0.0, |s| s.refused);
        if share < cause::REFUSED || beside_per_s <= 0.0 {
            return None;
        }
        let shares = vec![with_attempts(share, beside_per_s)];
        let s =
            Search { of: Resource::Ops, concurrency: high, low: None, high, beside_per_s, now: None, shares };
        let concurrency = s.next()?;
        Some(self.at_once(Search { concurrency, ..s }))
    }

    fn at_once(&mut self, s: Search) -> ProbeAction {
        let (of, concurrency) = (s.of, s.concurrency);
        self.state = State::AtOnce(s);
        ProbeAction::Load {
            size_bytes: match of {
                Resource::Ops => self.options.small_bytes,
                Resource::Bytes => self.large_bytes,
            },
            concurrency,
            duration_s: STEP_S,
            dt_s: self.options.dt_s,
            continues: false,
            offered_per_s: None,
        }
    }

    pub(super) fn at_once_seen(&mut self, mut s: Search, seen: Option<&RatesSeen>) -> ProbeAction {
        // Ops pass, or are refused, whatever their size.
        s.now = seen.map(|seen| look(seen, Resource::Ops));
        self.state = State::AtOnceEnd(s);
        ProbeAction::Stop
    }

    pub(super) fn at_once_next(&mut self, mut s: Search) -> ProbeAction {
        self.rest_begins();
        let Some(now) = s.now.take().filter(|l| l.rate > 0.0) else { return self.at_once_is(s.unsure()) };
        let refused = now.refused >= cause::REFUSED;
        if s.of == Resource::Bytes {
            return self.at_once_of_large(&s, now.rate, refused);
        }
        match refused {
            true => {
                s.high = s.concurrency;
                s.shares.push(with_attempts(now.refused, now.rate));
            }
            false => s.low = Some((s.concurrency, now.rate)),
        }
        let fits = self.left_s() >= WHOLE_S;
        match (s.next(), s.low) {
            (Some(concurrency), _) if fits => self.at_once(Search { concurrency, ..s }),
            // Large ops with so many.
            (None, Some((passes, _))) if fits && self.options.moves_bytes => {
                self.at_once(Search { of: Resource::Bytes, concurrency: passes, ..s })
            }
            (None, None) => match s.same_share() {
                None => self.at_once_is(s.unsure()),
                found => {
                    self.questions.answers.same_share = found;
                    self.finish()
                }
            },
            _ => self.at_once_is(s.unsure()),
        }
    }

    fn at_once_of_large(&mut self, s: &Search, per_s: f64, refused: bool) -> ProbeAction {
        let Some((passes, small_per_s)) = s.low else { return self.at_once_is(None) };
        let more = (ABOVE * f64::from(s.high)).ceil() as u32;
        match (s.concurrency == passes, refused) {
            // Large ops with as many are refused, or are not with more: another limit.
            (true, true) | (false, false) => self.at_once_is(None),
            (true, false) => {
                let same = |a: f64, b: f64| (a / b - 1.0).abs() <= APART;
                let bytes = (small_per_s * self.options.small_bytes as f64, per_s * self.large_bytes as f64);
                if same(per_s, small_per_s) || same(bytes.1, bytes.0) || self.left_s() < WHOLE_S {
                    return self.at_once_is(s.unsure());
                }
                self.at_once(Search { concurrency: more, ..s.clone() })
            }
            (false, true) => self.at_once_is(Some(AtOnce { passes, refused: s.high, sure: true })),
        }
    }

    fn at_once_is(&mut self, found: Option<AtOnce>) -> ProbeAction {
        // No rate is limited, as far as can be known: there is nothing to drain. Where large ops were of no help, a rate may be: it is
        // what holding back finds, or does not.
        let unsure = found.filter(|a| !a.sure && self.options.moves_bytes);
        self.questions.maybe_at_once = unsure;
        self.questions.answers.at_once = found.filter(|_| unsure.is_none());
        // Where small ops were refused at a rate that is held, a storage that moves large ones unevenly makes nothing of that unclear.
        let held = |d: &super::DrainEvidence| {
            d.steadiness.is_some_and(|s| s.refused >= cause::REFUSED && s.is_held_exactly())
        };
        let is_held = self.tracks[Resource::Ops as usize].drains.iter().any(held);
        self.questions.answers.is_unclear = self.questions.answers.at_once.is_none() && !is_held;
        if self.questions.answers.at_once.is_some() { self.finish() } else { self.choose() }
    }
}
