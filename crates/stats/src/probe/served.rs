//! How many ops in flight are enough where nothing is refused: before a limit on requests in service that lets the others wait (MinIO's
//! `requests_max`), a storage that does so many side by side, or one after the other at the end of a long way. Rates do not tell which of
//! them it is, and the cure is the same: so many in flight, and no limit on a rate.
//!
//! By Little's law: what any number comes to, times what an op takes that waits for none, are in service or on the way at a time.

use plimsoll_model::Estimate;

use super::plateau::Plateau;
use super::questions::{Question, Trial};
use super::{Probe, ProbeOutcome, Resource, cause};
use crate::rate::Mean;

/// Ops in service or on the way at a time, all others waiting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServedAtOnce {
    /// So many.
    pub ops: Estimate,
    /// Ops per second with one in flight, and with any number.
    pub alone_per_s: f64,
    /// See `alone_per_s`.
    pub per_s: f64,
}

/// One in flight for so long, seconds; longer where an op takes long, since so many are a mean.
const ALONE_S: f64 = 4.0;
const LONGEST_S: f64 = 12.0;
const LEAST_OPS: f64 = 60.0;
/// The load's start.
const START_S: f64 = 1.0;
/// Of all that were in flight at most so large a part was served: with more of them the rate may grow yet.
const PART: f64 = 0.8;
/// Storage that does one after the other has enough of one.
const LEAST: f64 = 1.5;
/// A number that is not known within this is none to configure.
const KNOWN: f64 = 0.125;

impl Probe {
    /// Asked where nobody refuses and no rate is held.
    pub(super) fn ask_served(&mut self, known: &ProbeOutcome) -> Option<Trial> {
        if std::mem::replace(&mut self.questions.served_asked, true) {
            return None;
        }
        let ops = &known.ops;
        let rate = ops.known()?;
        let free = ops.refused() < cause::REFUSED
            && !known.is_limited(Resource::Ops)
            && !known.is_limited(Resource::Bytes);
        if !free || ops.concurrency < 2 || known.per_connection().is_some() {
            return None;
        }
        // As many as were in flight, one after the other, at the longest.
        let enough_s = LEAST_OPS * f64::from(ops.concurrency) / rate.value + START_S;
        let length_s = enough_s.clamp(ALONE_S, LONGEST_S);
        (length_s < self.left_s()).then(|| Trial {
            question: Question::Alone { rate },
            size_bytes: self.options.small_bytes,
            concurrency: 1,
            offered_per_s: None,
            length_s,
            rest_s: 0.0,
            again: 0,
            seen: Plateau::default(),
        })
    }

    /// Of a trial with one in flight.
    pub(super) fn served(&mut self, rate: Estimate, t: &Trial) {
        let from = ((START_S / self.options.dt_s).round() as usize).min(t.seen.ok.len());
        let alone = Mean::of(&t.seen.ok[from..]);
        let most = self.tracks[Resource::Ops as usize].concurrency.unwrap_or(self.options.concurrency);
        self.questions.answers.served = served(rate, &alone, most);
    }
}

/// `rate`: what any number comes to, of at most so many in flight.
fn served(rate: Estimate, alone: &Mean, most: u32) -> Option<ServedAtOnce> {
    let n = rate.value / alone.value;
    let half = alone.half_width / alone.value;
    let off = rate.relative_half_width().hypot(half);
    let told = (LEAST..=PART * f64::from(most)).contains(&n) && off <= KNOWN;
    told.then_some(ServedAtOnce {
        ops: Estimate::symmetric(n, n * off, 1.0),
        alone_per_s: alone.value,
        per_s: rate.value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_served_is_so_many_times_what_one_comes_to() {
        let exact = Estimate::exact;
        let alone = |per_s: f64| Mean::of(&(0..40).map(|i| per_s + f64::from(i % 3)).collect::<Vec<f64>>());
        let found = served(exact(700.0), &alone(99.0), 32).unwrap();
        assert!((found.ops.value - 7.0).abs() < 0.1 && found.ops.contains(7.0), "{found:?}");
        // Two of two were served, or 31 of 32: more may be; and one after the other is nobody's limit.
        assert_eq!(served(exact(200.0), &alone(99.0), 2), None);
        assert_eq!(served(exact(3100.0), &alone(99.0), 32), None);
        assert_eq!(served(exact(110.0), &alone(99.0), 32), None);
        // Two ops in all tell nothing, nor does one that is not there.
        assert_eq!(served(exact(700.0), &Mean::of(&[0.0, 300.0, 0.0, 0.0]), 32), None);
        assert_eq!(served(exact(700.0), &Mean::of(&[]), 32), None);
        assert_eq!(served(exact(700.0), &Mean::of(&[0.0; 20]), 32), None);
    }
}
