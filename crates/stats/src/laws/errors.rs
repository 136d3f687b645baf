//! How far a law is off, held against a record: what it lets through at the times at which attempts came, as it would have ended, beside
//! what ended, second by second.

use std::ops::ControlFlow;

use super::replay::{Parameters, ReplayStep};
use super::{LoadRecord, RivalLaw};
use crate::{math, rate};

/// Errors are counted over so long, seconds: finer than that, when an answer came back hides when it was decided.
pub(super) const BIN_S: f64 = 1.0;
/// No law is right by less than this: an op that a slice has in the next one, and a share of what passes.
const LEAST_ERROR_OPS: f64 = 0.6;
const LEAST_ERROR_SHARE: f64 = 0.005;
/// Where in a slice it begins to refuse is not seen: so large a part of it.
const EDGE: f64 = 0.5;
/// Noise of the storage's speed over a second.
const STORAGE_MARGIN: f64 = 1.05;
/// Less than this share of what comes is next to nothing.
pub(super) const SHUT: f64 = 0.02;

/// One law and the error with which it explains the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct LawCandidate {
    pub law: RivalLaw,
    pub p: Parameters,
    /// Ops per second with refusals.
    pub error: f64,
}

/// Which bin a step is scored in, and whether it begins a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepPlace {
    bin: Option<u32>,
    begins: bool,
    /// See [`LoadSlice::in_flight`].
    in_flight: f64,
}

/// The record as steps: slices that follow each other, in one bin, with as many attempts, are one.
pub(super) fn steps_of(record: &LoadRecord) -> (Vec<ReplayStep>, Vec<StepPlace>) {
    let (mut steps, mut places) = (Vec::<ReplayStep>::new(), Vec::<StepPlace>::new());
    let mut bins = 0;
    for load in record.loads() {
        let (mut room_s, mut begins) = (0.0, true);
        for s in load {
            let opens = room_s < 0.5 * s.dt_s;
            if opens {
                room_s = BIN_S;
                bins += u32::from(s.scored);
            }
            room_s -= s.dt_s;
            let bin = s.scored.then(|| bins - 1);
            let per_s = s.asked / s.dt_s;
            let alike = |last: &ReplayStep| {
                let near = (last.asked / last.dt_s - per_s).abs() <= ALIKE * per_s.max(1.0);
                near && (s.at_s - last.end_s()).abs() < 1e-6
            };
            let same_bin = places.last().is_some_and(|p| p.bin == bin);
            match steps.last_mut().filter(|last| !opens && !begins && same_bin && alike(last)) {
                Some(last) => {
                    last.dt_s += s.dt_s;
                    last.asked += s.asked;
                }
                None => {
                    steps.push(ReplayStep { at_s: s.at_s, dt_s: s.dt_s, asked: s.asked });
                    places.push(StepPlace { bin, begins, in_flight: s.in_flight });
                }
            }
            begins = false;
        }
    }
    (steps, places)
}

/// Attempts of two slices that differ by less, as a share, come as evenly as can be told.
const ALIKE: f64 = 0.2;

/// What was seen in each bin, and how it is replayed.
pub(super) struct LawErrors<'a> {
    pub record: &'a LoadRecord,
    steps: Vec<ReplayStep>,
    places: Vec<StepPlace>,
    seen: Vec<f64>,
    /// What may be seen a bin earlier or later, ops: where it begins to refuse, or opens again, within a slice.
    edges: Vec<f64>,
    /// Bins in which something was refused.
    pub refusing: usize,
    /// The least error that any law makes.
    pub floor: f64,
    /// Most that ends in a second, ops: what a limiter lets through at once ends as the storage gets it done.
    storage_per_s: f64,
}

impl<'a> LawErrors<'a> {
    pub fn of(record: &'a LoadRecord) -> Self {
        let (mut seen, mut refused, mut edges) = (Vec::new(), Vec::new(), Vec::<f64>::new());
        for load in record.loads() {
            let mut room_s = 0.0;
            // Seconds in which nothing passed of what came; until something was refused at all.
            let mut shut_s = 0.0;
            let mut open = true;
            for s in load {
                if room_s < 0.5 * s.dt_s {
                    room_s = BIN_S;
                    if s.scored {
                        seen.push(0.0);
                        refused.push(0.0);
                        edges.push(0.0);
                    }
                }
                room_s -= s.dt_s;
                let is_shut = s.passed <= SHUT * s.decided();
                let edge = (open && s.refused > 0.0) || (!is_shut && shut_s >= BIN_S);
                open &= s.refused <= 0.0;
                shut_s = if is_shut { shut_s + s.dt_s } else { 0.0 };
                if let (true, Some(last)) = (s.scored && edge, edges.last_mut()) {
                    *last = last.max(EDGE * s.asked);
                }
                if let (true, Some(seen), Some(all)) = (s.scored, seen.last_mut(), refused.last_mut()) {
                    *seen += s.passed;
                    *all += s.refused;
                }
            }
        }
        let refusing: Vec<f64> =
            seen.iter().zip(&refused).filter(|(_, r)| **r > 0.0).map(|(s, _)| *s).collect();
        let floor = LEAST_ERROR_OPS + LEAST_ERROR_SHARE * math::mean(&refusing);
        let (steps, places) = steps_of(record);
        Self {
            record,
            steps,
            places,
            seen,
            edges,
            refusing: refusing.len(),
            floor,
            storage_per_s: STORAGE_MARGIN * record.most_per_s(),
        }
    }

    /// Sum of the errors over all seconds, for each with refusals: who foresees a refusal where there was none is as wrong.
    pub fn error(&self, law: RivalLaw, p: &Parameters) -> f64 {
        self.error_until(law, p, f64::INFINITY)
    }

    /// The same where it is less than `most`. What is not is left as soon as that is seen: most of what a search tries is far off.
    pub fn error_below(&self, law: RivalLaw, p: &Parameters, most: f64) -> Option<f64> {
        Some(self.error_until(law, p, most)).filter(|error| *error < most)
    }

    /// All of it, or the part with which it comes to `most`.
    fn error_until(&self, law: RivalLaw, p: &Parameters, most: f64) -> f64 {
        let (mut sum, refusing) = (0.0, self.refusing as f64);
        self.replay(law, p, |bin, ends| {
            sum += self.error_in(bin, ends);
            if sum / refusing >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        sum / refusing
    }

    fn error_in(&self, bin: usize, ends: f64) -> f64 {
        ((self.seen[bin] - ends).abs() - self.edges[bin]).max(0.0)
    }

    /// What ends in each bin, one after the other, for as long as `each` goes on.
    fn replay(&self, law: RivalLaw, p: &Parameters, mut each: impl FnMut(usize, f64) -> ControlFlow<()>) {
        let (mut waiting, mut in_flight) = (0.0, 0.0);
        // The bin that is being filled, and what ended in it.
        let (mut filled, mut sum) = (None::<u32>, 0.0);
        law.replay(p, &self.steps, |i, passes| {
            let (place, step) = (&self.places[i], &self.steps[i]);
            if place.begins {
                (waiting, in_flight) = (0.0, place.in_flight);
            }
            let Some(bin) = place.bin else { return ControlFlow::Continue(()) };
            if let Some(full) = filled.filter(|b| *b != bin) {
                each(full as usize, sum)?;
                sum = 0.0;
            }
            filled = Some(bin);
            // What is in flight of a closed loop ends when nothing more is let through.
            let refuses = passes < 0.5 * step.asked;
            let kept = if refuses { 0.0 } else { in_flight };
            let ends = (waiting + passes - kept).clamp(0.0, self.storage_per_s * step.dt_s);
            waiting += passes - ends;
            if refuses {
                in_flight = 0.0;
            }
            sum += ends;
            ControlFlow::Continue(())
        });
        if let Some(last) = filled {
            let _ = each(last as usize, sum);
        }
    }

    /// That each load was refused from a time of its own on, and had a rate of its own then. A time at which something changes counts for
    /// three parameters (Zhang and Siegmund 2007).
    pub fn null(&self) -> (f64, usize) {
        let (mut sum, mut k) = (0.0, 0);
        for load in self.record.loads() {
            let refused_from = load.iter().position(|s| s.scored && s.refused > 0.0).unwrap_or(load.len());
            let Some(first) = load.get(refused_from) else { continue };
            let passed: Vec<f64> =
                load[refused_from..].iter().filter(|s| s.scored).map(|s| s.passed).collect();
            let bin = ((BIN_S / first.dt_s).round() as usize).max(1);
            let means = math::bin_means(&passed, bin);
            if means.is_empty() {
                continue;
            }
            let middle = math::median(&means);
            sum += bin as f64 * means.iter().map(|m| (m - middle).abs()).sum::<f64>();
            k += 4;
        }
        (sum / self.refusing as f64, k)
    }

    /// Of errors that follow each other, one tells little more than the other.
    pub fn independent(&self, best: &LawCandidate) -> f64 {
        let mut errors = self.seen.clone();
        self.replay(best.law, &best.p, |bin, ends| {
            errors[bin] -= ends;
            ControlFlow::Continue(())
        });
        let r = rate::lag1(&errors).clamp(0.0, 0.9);
        (self.refusing as f64 * (1.0 - r) / (1.0 + r)).max(2.0)
    }
}
