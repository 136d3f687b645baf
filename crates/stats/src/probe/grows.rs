//! A limit that grows while it is asked (S3 splits a prefix, a function is given more instances): what passes beside refusals rises from
//! one look to the next, and never falls back. No rate of it is one to configure, as long as it grows.

use super::Probe;
use super::cause::REFUSED;
use crate::laws::{LoadRecord, LoadSlice};
use crate::math;

/// What was seen of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Ops per second that passed beside refusals, at first and at last.
    pub first_per_s: f64,
    /// See `first_per_s`.
    pub last_per_s: f64,
    /// Of load that was refused, between the two, seconds.
    pub seconds: f64,
    /// For so long it has not grown, seconds of such load.
    pub same_s: f64,
}

/// What passes is looked at over so long, once a load has used up what it finds (tokens of a rest); seconds.
const LEVEL_S: f64 = 5.0;
const BEGIN_S: f64 = 2.0;
/// Fewer looks are a start. (A choice: half a minute of refusals.)
const LEAST_LEVELS: usize = 5;
/// It has grown by so much, from the first third of the looks to the last; and falls by no more than this from the highest before.
const GROWN: f64 = 1.3;
const BACK: f64 = 0.92;
/// Looks that differ by less are of one level.
const SAME: f64 = 0.08;

impl Probe {
    /// The limit grows as long as it is asked: what there is now is not what there will be.
    pub(super) fn is_growing(&self) -> bool {
        growth(&self.record).is_some()
    }
}

/// `None`: it does not grow, or was not refused for long enough to tell.
pub(super) fn growth(record: &LoadRecord) -> Option<Growth> {
    let levels: Vec<f64> = record.loads().flat_map(levels_of).collect();
    if levels.len() < LEAST_LEVELS {
        return None;
    }
    let third = levels.len() / 3;
    let (first, last) =
        (math::median(&levels[..third.max(1)]), math::median(&levels[levels.len() - third.max(1)..]));
    let mut most = 0.0f64;
    let rises = levels.iter().all(|level| {
        most = most.max(*level);
        *level > 0.0 && *level >= BACK * most
    });
    let same = levels.iter().rev().take_while(|l| (*l / last - 1.0).abs() <= SAME).count();
    (rises && last >= GROWN * first).then_some(Growth {
        first_per_s: first,
        last_per_s: last,
        seconds: levels.len() as f64 * LEVEL_S,
        same_s: same as f64 * LEVEL_S,
    })
}

/// Ops per second of each [`LEVEL_S`] of a load in which something was refused all the time.
fn levels_of(load: &[LoadSlice]) -> Vec<f64> {
    // Of what came at a rate no more passed than that.
    let Some(first) = load.first().filter(|s| !s.is_open) else { return Vec::new() };
    let slices = |s: f64| ((s / first.dt_s).round() as usize).max(1);
    let sum = |of: &[LoadSlice], f: fn(&LoadSlice) -> f64| of.iter().map(f).sum::<f64>();
    let is_refused = |second: &[LoadSlice]| {
        let refused = sum(second, |s| s.refused);
        refused > 0.0 && refused >= REFUSED * sum(second, LoadSlice::decided)
    };
    let scored = |s: &[LoadSlice]| s.iter().all(|s| s.scored);
    load.get(slices(BEGIN_S)..)
        .unwrap_or_default()
        .chunks_exact(slices(LEVEL_S))
        .filter(|look| scored(look) && look.chunks(slices(1.0)).all(is_refused))
        .map(|look| sum(look, |s| s.passed) / (look.len() as f64 * first.dt_s))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::RecordedLoad;
    use crate::simulate::RatesSeen;

    fn record(passed: &[f64], asked: f64) -> LoadRecord {
        let mut out = LoadRecord::default();
        let seen = RatesSeen {
            dt_s: 0.5,
            ops_per_s: passed.to_vec(),
            rejected_per_s: passed.iter().map(|p| (asked - p).max(0.0)).collect(),
            ..RatesSeen::default()
        };
        let load = RecordedLoad { continues: false, scored: true, offered_per_s: None, in_flight: 16 };
        out.add(&seen, passed.len() as f64 * 0.5, load);
        out
    }

    #[test]
    fn levels_that_rise_grow_and_nothing_else_does() {
        let steps: Vec<f64> = [50.0, 100.0, 200.0].into_iter().flat_map(|r| vec![r; 40]).collect();
        let g = growth(&record(&steps, 1000.0)).unwrap();
        assert_eq!((g.first_per_s, g.last_per_s), (50.0, 200.0));
        assert!((50.0..=60.0).contains(&g.seconds) && (10.0..=20.0).contains(&g.same_s), "{g:?}");
        let ramp: Vec<f64> = (0..120).map(|i| 100.0 + f64::from(i)).collect();
        assert!(growth(&record(&ramp, 1000.0)).is_some());
        // One level; a burst before it; a ban that opens now and then; and one that was refused for too short a time.
        assert_eq!(growth(&record(&[100.0; 120], 1000.0)), None);
        let burst: Vec<f64> = (0..120).map(|i| if i < 20 { 300.0 } else { 100.0 }).collect();
        assert_eq!(growth(&record(&burst, 1000.0)), None);
        let ban: Vec<f64> = (0..120).map(|i| if i % 40 < 20 { 0.0 } else { 5.0 * f64::from(i) }).collect();
        assert_eq!(growth(&record(&ban, 1000.0)), None);
        assert_eq!(growth(&record(&steps[30..60], 1000.0)), None);
        // What is not refused shows the storage.
        assert_eq!(growth(&record(&steps, 40.0)), None);
        assert_eq!(growth(&LoadRecord::default()), None);
    }
}
