//! Counts that are looked at once in a while: where the search for such a law begins.
//!
//! At a look, everybody is let in or shut out until the next one, and what decides is counted exactly: all attempts of the period before.
//! So a period, a time between two looks and their phase leave one quota: the one between the counts after which it was open, and those
//! after which it was shut.

use super::LoadRecord;
use super::errors::SHUT;
use super::replay::Parameters;
use crate::math;

/// Periods of counts that are looked at once in a while, and times between two looks, seconds (AWS WAF: one, two, five or ten minutes, and
/// ten seconds or so).
const LOOKED_OVER_S: [f64; 5] = [30.0, 60.0, 120.0, 300.0, 600.0];
const LOOKS_S: [f64; 14] = [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 20.0, 30.0, 60.0];
/// A period has so many looks, at the least (a choice: fewer is a window that begins now and then).
const LEAST_LOOKS: f64 = 3.0;
/// Phases that are tried where none was seen, and those that were seen.
const PHASES: usize = 5;
const MOST_SEEN: usize = 8;
/// So many starts of each period.
const KEPT: usize = 12;

/// All attempts before each time.
struct Came(Vec<(f64, f64)>);

impl Came {
    fn of(record: &LoadRecord) -> Self {
        let mut all = 0.0;
        let mut out = Vec::with_capacity(2 * record.slices().len());
        for s in record.slices() {
            out.push((s.at_s, all));
            all += s.asked;
            out.push((s.at_s + s.dt_s, all));
        }
        Self(out)
    }

    fn before(&self, at_s: f64) -> f64 {
        let i = self.0.partition_point(|c| c.0 <= at_s);
        match (i.checked_sub(1).map(|i| self.0[i]), self.0.get(i)) {
            (Some((from_s, n)), Some((to_s, more))) => n + (more - n) * (at_s - from_s) / (to_s - from_s),
            (Some((_, n)), None) => n,
            (None, _) => 0.0,
        }
    }
}

/// What was let in and shut out after a look at which so many had come.
struct LookSeen {
    count: f64,
    passed: f64,
    refused: f64,
}

/// Parameters from which the search begins: those with which the least is on the wrong side of the quota.
pub(super) fn starts(record: &LoadRecord) -> Vec<Parameters> {
    let Some(began_s) = record.slices().first().map(|s| s.at_s) else { return Vec::new() };
    let (came, seen_s) = (Came::of(record), switches_s(record));
    let mut out = Vec::new();
    for period_s in LOOKED_OVER_S {
        let mut of_period: Vec<(f64, Parameters)> = Vec::new();
        for look_s in LOOKS_S.into_iter().filter(|s| LEAST_LOOKS * s <= period_s) {
            let seen = seen_s.iter().map(|at| (-(at - began_s) / look_s).rem_euclid(1.0));
            for phase in (0..PHASES).map(|i| i as f64 / PHASES as f64).chain(seen) {
                let mut looks = looked(record, &came, began_s, [period_s, phase, look_s]);
                if let Some((wrong, quota)) = divided(&mut looks) {
                    of_period.push((wrong, [quota / period_s, period_s, phase, look_s]));
                }
            }
        }
        of_period.sort_by(|a, b| a.0.total_cmp(&b.0));
        out.extend(of_period.into_iter().take(KEPT).map(|(_, p)| p));
    }
    out
}

/// When it shut, or opened, under a load; evenly over all that was seen.
fn switches_s(record: &LoadRecord) -> Vec<f64> {
    let mut out = Vec::new();
    for load in record.loads() {
        let decided = load.iter().filter(|s| s.scored && s.decided() > 0.0);
        let states: Vec<(f64, bool)> = decided.map(|s| (s.at_s, s.passed <= SHUT * s.decided())).collect();
        out.extend(states.windows(2).filter(|w| w[0].1 != w[1].1).map(|w| w[1].0));
    }
    math::evenly(out, MOST_SEEN)
}

fn looked(
    record: &LoadRecord,
    came: &Came,
    began_s: f64,
    [period_s, phase, look_s]: [f64; 3],
) -> Vec<LookSeen> {
    let mut out: Vec<LookSeen> = Vec::new();
    let mut last = f64::NEG_INFINITY;
    for s in record.slices().iter().filter(|s| s.scored && s.decided() > 0.0) {
        let look = ((s.at_s + 0.5 * s.dt_s - began_s) / look_s + phase).floor();
        if look > last {
            let at_s = began_s + (look - phase) * look_s;
            out.push(LookSeen {
                count: came.before(at_s) - came.before(at_s - period_s),
                passed: 0.0,
                refused: 0.0,
            });
            last = look;
        }
        if let Some(l) = out.last_mut() {
            (l.passed, l.refused) = (l.passed + s.passed, l.refused + s.refused);
        }
    }
    out
}

/// The quota with which the fewest ops are on the wrong side, and how many those are.
fn divided(looks: &mut [LookSeen]) -> Option<(f64, f64)> {
    looks.sort_by(|a, b| a.count.total_cmp(&b.count));
    let mut wrong: f64 = looks.iter().map(|l| l.passed).sum();
    let mut best: Option<(f64, f64)> = None;
    for (i, l) in looks.iter().enumerate() {
        // From here on it is shut.
        wrong += l.refused - l.passed;
        let above = looks.get(i + 1).map_or(1.5 * l.count, |next| next.count);
        let quota = 0.5 * (l.count + above);
        if quota > 0.0 && best.is_none_or(|(least, _)| wrong < least) {
            best = Some((wrong, quota));
        }
    }
    best
}
