//! The parameters with which a law explains a record best.

use super::RivalLaw;
use super::errors::{LawCandidate, LawErrors};
use super::guess::Guess;
use super::replay::{PERIOD, PHASE, Parameters};
use crate::rng::Rng;

/// Steps of the search, as shares of a parameter: its first and its last.
const FIRST_STEP: f64 = 0.25;
const LAST_STEP: f64 = 0.002;
/// Nothing is larger, or smaller than its inverse.
const MOST: f64 = 1e9;
/// Replays of one search; starts with each period or time from which one goes on, and places from which it is searched once more.
pub(super) const REPLAYS: usize = 300;
const KEPT: usize = 2;
const SEARCHED: usize = 3;

/// Starts with one period, or one time: the best of them, the best first, each with its place among all starts.
struct StartGroup {
    group: u64,
    best: Vec<(usize, LawCandidate)>,
}

impl StartGroup {
    fn try_one(&mut self, judge: &LawErrors<'_>, law: RivalLaw, place: usize, p: Parameters) {
        let most = if self.best.len() < KEPT { f64::INFINITY } else { self.best[KEPT - 1].1.error };
        let Some(error) = judge.error_below(law, &p, most) else { return };
        let at = self.best.partition_point(|(_, b)| b.error <= error);
        self.best.insert(at, (place, LawCandidate { law, p, error }));
        self.best.truncate(KEPT);
    }
}

/// The best of a law with each period, or each time that it has; the best of all at the front.
pub(super) fn fitted(judge: &LawErrors<'_>, law: RivalLaw, guess: &Guess) -> Vec<LawCandidate> {
    // Most starts are far off, and are left at once; the rest has to be looked at to be told apart.
    let mut groups: Vec<StartGroup> = Vec::new();
    for (place, p) in guess.starts(law, judge.record).into_iter().enumerate() {
        let group = law.group(&p).to_bits();
        let at = match groups.iter().position(|g| g.group == group) {
            Some(i) => i,
            None => {
                groups.push(StartGroup { group, best: Vec::new() });
                groups.len() - 1
            }
        };
        groups[at].try_one(judge, law, place, p);
    }
    let mut kept: Vec<(usize, LawCandidate)> = groups.into_iter().flat_map(|g| g.best).collect();
    kept.sort_by(|(i, a), (j, b)| a.error.total_cmp(&b.error).then(i.cmp(j)));
    let mut kept: Vec<LawCandidate> = kept.into_iter().map(|(_, c)| c).collect();
    kept.iter_mut().for_each(|c| *c = searched(judge, *c, 0, REPLAYS / 4));
    kept.sort_by(|a, b| a.error.total_cmp(&b.error));
    for c in kept.iter_mut().take(SEARCHED) {
        *c = searched(judge, *c, 0, REPLAYS);
        *c = searched_at_random(judge, *c, REPLAYS);
    }
    kept.sort_by(|a, b| a.error.total_cmp(&b.error));
    // Two that came to the same place are one.
    kept.dedup_by(|a, b| a.p.iter().zip(&b.p).all(|(a, b)| (a / b - 1.0).abs() < 1e-3));
    kept
}

/// On from where no step of one parameter helps: steps of all of them, in directions by chance, longer after one that helped and shorter
/// after one that did not ((1+1) evolution strategy with the one-fifth rule, Rechenberg 1973).
fn searched_at_random(judge: &LawErrors<'_>, mut at: LawCandidate, replays: usize) -> LawCandidate {
    let mut g = Rng::new(replays as u64);
    let mut step = 0.1f64;
    for _ in 0..replays {
        let mut p = at.p;
        for i in (0..at.law.parameters()).filter(|i| !is_period(at.law, *i)) {
            shift(at.law, &mut p, i, step * g.normal());
        }
        if let Some(error) = judge.error_below(at.law, &p, at.error) {
            (at.p, at.error) = (p, error);
            step = (step * 1.5).min(0.3);
        } else {
            step = (step * 0.9).max(1e-4);
        }
    }
    at
}

/// From a start to a place around which nothing is better: one parameter after the other, and as far again where that helped, in steps
/// that become smaller (Hooke and Jeeves 1961). What a law does has edges, and no derivatives. Parameters before `from` are kept.
pub(super) fn searched(
    judge: &LawErrors<'_>,
    mut at: LawCandidate,
    from: usize,
    replays: usize,
) -> LawCandidate {
    let (law, n) = (at.law, at.law.parameters());
    at.error = judge.error(at.law, &at.p);
    let mut step = FIRST_STEP;
    let mut left = replays;
    while step > LAST_STEP && left > 0 {
        let before = at;
        for i in (from..n).filter(|i| !is_period(law, *i)) {
            let moved = [step, -step].into_iter().find_map(|by| {
                left = left.saturating_sub(1);
                let mut p = at.p;
                shift(at.law, &mut p, i, by);
                judge.error_below(at.law, &p, at.error).map(|error| LawCandidate { p, error, ..at })
            });
            at = moved.unwrap_or(at);
        }
        if at.error >= before.error {
            step *= 0.4;
            continue;
        }
        // Along a valley: amounts and rates make up for each other.
        while left > 0 {
            left -= 1;
            let mut p = at.p;
            for i in (from..n).filter(|i| !is_period(law, *i)) {
                let by =
                    if is_phase(at.law, i) { at.p[i] - before.p[i] } else { (at.p[i] / before.p[i]).ln() };
                shift(at.law, &mut p, i, by);
            }
            let Some(error) = judge.error_below(at.law, &p, at.error) else { break };
            (at.p, at.error) = (p, error);
        }
    }
    at
}

fn is_phase(law: RivalLaw, i: usize) -> bool {
    i == PHASE && law.has_phase()
}

/// It is one of [`PERIODS_S`], and not searched for between them.
fn is_period(law: RivalLaw, i: usize) -> bool {
    i == PERIOD && law.has_phase()
}

fn shift(law: RivalLaw, p: &mut Parameters, i: usize, by: f64) {
    p[i] = match is_phase(law, i) {
        true => (p[i] + by).rem_euclid(1.0),
        false => (p[i] * by.exp()).clamp(1.0 / MOST, MOST),
    };
}
