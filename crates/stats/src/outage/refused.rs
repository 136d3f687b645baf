//! Stretches in which all that was asked for was refused, or the load paused because it had been: throttling, and no outage.

use super::{Gap, LEAST_OPS, OP_TIMES, SHORTEST_S, STRAGGLING_SLICES, Seen, gaps, is_sound, regular};
use crate::math;

/// So many ops should have ended in a stretch that is told, by the lower of the rates before and after: half of those of an outage, as
/// each refusal is an answer, and no chance. (A choice.)
const LEAST_MISSED: f64 = LEAST_OPS / 2.0;

/// Shorter stretches are told as nothing: Retry-After is in whole seconds and mostly one, and what a limiter would have let through while a load
/// paused as it was told nobody knows.
const LONGEST_PAUSE_S: f64 = 2.0;
/// Refusals that are kept waiting are not answered to the instant: a silence before them is so many times as long at the most (a choice).
pub const LATER: f64 = 1.25;
/// A rhythm is the load's where it begins and ends no further from its ends than so many of its periods.
const AT_THE_ENDS: f64 = 2.0;

/// A gap without success: what of it was refused, and what was not.
pub(super) struct Parts {
    pub silent: Vec<Gap>,
    pub refused: Vec<Gap>,
}

/// Which parts of a gap refusals explain. Where failures outnumber them they explain none.
pub(super) fn parts(s: &Seen<'_>, g: Gap) -> Parts {
    let of = |x: &[f64]| x[g.0..g.1].iter().sum::<f64>();
    if of(s.failed) > 0.0 && of(s.failed) >= of(s.throttled) {
        return Parts { silent: vec![g], refused: Vec::new() };
    }
    // Slots that all pause ask nobody: that is what their load does after a refusal.
    let is_refused =
        |i: usize| s.throttled[i] > s.failed[i] || s.failed[i] == 0.0 && s.held_back[i] > s.in_flight[i];
    let mut runs: Vec<(bool, Gap)> = Vec::new();
    for i in g.0..g.1 {
        match runs.last_mut() {
            Some((refused, run)) if *refused == is_refused(i) => run.1 = i + 1,
            _ => runs.push((is_refused(i), (i, i + 1))),
        }
    }
    // Between two refusals an attempt waits for its answer: what is too short for an outage belongs to what lies beside it.
    let shortest_s = SHORTEST_S.max(OP_TIMES * s.op_s);
    let any_refused = runs.iter().any(|(refused, _)| *refused);
    let mut out = Parts { silent: Vec::new(), refused: Vec::new() };
    for (refused, run) in runs {
        let length_s = (run.1 - run.0) as f64 * s.dt_s;
        // So do the refusals that end a silence, where it is no longer than they were kept waiting; they may end with the first that gets through.
        let waits = length_s <= LATER * s.refused_s && s.throttled.get(run.1).is_some_and(|n| *n > 0.0);
        // All slots wait, and nobody asks: neither is the storage silent, nor is known what would have got through.
        if !refused && waits && length_s >= shortest_s - 1e-9 {
            continue;
        }
        let is_theirs = any_refused && length_s < shortest_s - 1e-9;
        let to = if refused || is_theirs { &mut out.refused } else { &mut out.silent };
        match to.last_mut() {
            Some(last) if last.1 == run.0 => last.1 = run.1,
            _ => to.push(run),
        }
    }
    out
}

/// All stretches of a load in which everything was refused.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThrottledTimes {
    /// `[from, to)`, in slices of the series.
    pub stretches: Vec<(usize, usize)>,
    /// Where they come at regular distances: the length of one, and the time from one to the next, seconds.
    pub each_s: Option<(f64, f64)>,
}

/// What a limiter let nothing through in; stretches that are short, or in which hardly any op is missing, are a low rate.
pub fn throttled(s: &Seen<'_>) -> ThrottledTimes {
    // Nothing but refusals from the first to the last is told as what it is (F01).
    if !is_sound(s) || s.ok.iter().all(|v| *v == 0.0) {
        return ThrottledTimes::default();
    }
    let told_of = |g: &Gap| {
        s.throttled[g.0.saturating_sub(1)..(g.1 + 1).min(s.throttled.len())].iter().any(|n| *n > 0.0)
    };
    let refused: Vec<Gap> = gaps(s).into_iter().flat_map(|g| parts(s, g).refused).filter(told_of).collect();
    let long = joined(s, refused);
    // When one began that was there from the start on is not known.
    let whole: Vec<Gap> = long.iter().filter(|g| g.0 > 0).copied().collect();
    let is_throughout = |apart: &f64| {
        let (first, last) = (whole[0].0, whole[whole.len() - 1].1);
        first.max(s.ok.len() - last) as f64 <= AT_THE_ENDS * apart
    };
    if let Some(apart) = regular(&whole).filter(is_throughout) {
        let lengths: Vec<f64> = whole.iter().map(|g| (g.1 - g.0) as f64).collect();
        let each_s = Some((math::median(&lengths) * s.dt_s, apart * s.dt_s));
        return ThrottledTimes { stretches: long, each_s };
    }
    let is_told = |g: &Gap| {
        let length_s = (g.1 - g.0) as f64 * s.dt_s;
        let (before, after) = super::around(s, *g, &[], length_s);
        let rate = before.into_iter().chain(after).reduce(f64::min);
        rate.is_some_and(|r| r * length_s >= LEAST_MISSED)
    };
    ThrottledTimes { stretches: long.into_iter().filter(is_told).collect(), each_s: None }
}

/// Stretches with nothing between them, no success least of all, are one; those that are long enough.
fn joined(s: &Seen<'_>, refused: Vec<Gap>) -> Vec<Gap> {
    let mut out: Vec<Gap> = Vec::new();
    for g in refused {
        match out.last_mut() {
            Some(last)
                if g.0 - last.1 <= STRAGGLING_SLICES && s.ok[last.1..g.0].iter().all(|v| *v == 0.0) =>
            {
                last.1 = g.1;
            }
            _ => out.push(g),
        }
    }
    out.retain(|g| (g.1 - g.0) as f64 * s.dt_s >= LONGEST_PAUSE_S - 1e-9);
    out
}
