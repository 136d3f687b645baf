//! What is known of a limit beside its rate: the knee between ops and payload, the burst above it, how long that lasts, and how long it
//! takes until it is full again.

use plimsoll_model::Estimate;
use plimsoll_model::summary::{BucketSummary, LimitSummary};
use serde::{Deserialize, Serialize};

use crate::figures::{CellFigure, CellRun};
use crate::file::Repeats;
use crate::spread;

/// Of one line.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitFigures {
    /// Size below which operations bind, and above which bytes bind. Null: not both limits were proved.
    pub knee_bytes: Option<Estimate>,
    /// Above the cap on operations. Null: none was seen to end.
    pub ops: Option<BurstFigures>,
    /// Above the cap on payload.
    pub bytes: Option<BurstFigures>,
}

/// A burst above a limit that was proved. An end of an interval that is not bounded is null: what was seen is the least.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BurstFigures {
    /// The rate while it lasts.
    pub per_s: Option<Estimate>,
    /// Seconds that it lasts at that rate, from a full bucket: its tokens run out at that rate less the refill.
    pub lasts_s: Option<Estimate>,
    /// Tokens (ops or bytes) that come back per second of rest.
    pub refill_per_s: Option<Estimate>,
    /// Seconds of rest until it is full again.
    pub full_again_s: Option<Estimate>,
}

impl LimitFigures {
    /// Of what a run proved; `None`: nothing beside the rates.
    pub(crate) fn of(l: &LimitSummary) -> Option<Self> {
        let burst = |b: &Option<BucketSummary>| b.as_ref().filter(|b| b.proved).and_then(of_bucket);
        // A knee between two rates is one of limits only where both are.
        let both = [&l.ops_per_s, &l.bytes_per_s].iter().all(|b| b.as_ref().is_some_and(|b| b.proved));
        let all = Self {
            knee_bytes: l.knee_bytes.filter(|_| both),
            ops: burst(&l.ops_per_s),
            bytes: burst(&l.bytes_per_s),
        };
        (all != Self::default()).then_some(all)
    }
}

fn of_bucket(b: &BucketSummary) -> Option<BurstFigures> {
    b.burst.or(b.capacity)?;
    Some(BurstFigures {
        per_s: b.burst,
        lasts_s: lasts(b),
        refill_per_s: b.refill,
        full_again_s: b.full_again_s,
    })
}

/// Of a bucket whose size was measured, or has a lower bound.
fn lasts(b: &BucketSummary) -> Option<Estimate> {
    let (tokens, fast, slow) = (b.capacity?, b.burst?, b.sustained?);
    let above = fast.value - slow.value;
    let (least, most) = (fast.low - slow.high, fast.high - slow.low);
    if above <= 0.0 {
        return None;
    }
    let high = if least > 0.0 && is_bounded(&tokens) { tokens.high / least } else { f64::INFINITY };
    let low = if most > 0.0 { tokens.low.max(0.0) / most } else { 0.0 };
    Some(Estimate { value: tokens.value / above, low, high, n_eff: tokens.n_eff.min(fast.n_eff) })
}

fn is_bounded(e: &Estimate) -> bool {
    e.high < f64::MAX
}

type Valid<'a> = [Vec<(&'a CellRun, &'a CellFigure)>];

/// What the valid runs of a row say together: a list for each instance.
pub(crate) fn together(repeats: &Repeats, valid: &Valid<'_>) -> Option<LimitFigures> {
    let of = |pick: &dyn Fn(&LimitFigures) -> Option<Estimate>| {
        let series: Vec<Vec<Estimate>> =
            valid.iter().map(|v| v.iter().filter_map(|(_, f)| pick(f.limit.as_ref()?)).collect()).collect();
        over(repeats, &series)
    };
    let burst = |pick: fn(&LimitFigures) -> Option<BurstFigures>| {
        let all = BurstFigures {
            per_s: of(&|l| pick(l)?.per_s),
            lasts_s: of(&|l| pick(l)?.lasts_s),
            refill_per_s: of(&|l| pick(l)?.refill_per_s),
            full_again_s: of(&|l| pick(l)?.full_again_s),
        };
        (all != BurstFigures::default()).then_some(all)
    };
    let all =
        LimitFigures { knee_bytes: of(&|l| l.knee_bytes), ops: burst(|l| l.ops), bytes: burst(|l| l.bytes) };
    (all != LimitFigures::default()).then_some(all)
}

/// The mean of bounds is no bound: of several the least that all of them say.
fn over(repeats: &Repeats, series: &[Vec<Estimate>]) -> Option<Estimate> {
    let all = || series.iter().flatten();
    if all().all(is_bounded) {
        return spread::together(repeats, series);
    }
    let least = all().map(|e| if is_bounded(e) { e.low } else { e.value }).reduce(f64::min)?;
    Some(Estimate { value: least, low: least, high: f64::INFINITY, n_eff: all().count() as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(capacity: Estimate) -> BucketSummary {
        BucketSummary {
            sustained: Some(Estimate::symmetric(500.0, 5.0, 20.0)),
            burst: Some(Estimate::symmetric(750.0, 5.0, 20.0)),
            capacity: Some(capacity),
            refill: Some(Estimate::symmetric(500.0, 5.0, 20.0)),
            full_again_s: Some(Estimate::symmetric(30.0, 1.0, 20.0)),
            proved: true,
            horizon_s: Some(90.0),
        }
    }

    #[test]
    fn a_burst_lasts_as_long_as_its_tokens_do() {
        let e = lasts(&bucket(Estimate::symmetric(15_000.0, 300.0, 4.0))).unwrap();
        // 15,000 tokens, of which 250 a second are used up beyond what comes in: 14,700 / 260 to 15,300 / 240.
        assert_eq!(e.value, 60.0);
        assert!((e.low - 56.54).abs() < 0.01 && (e.high - 63.75).abs() < 0.01, "{e:?}");
        let bound = Estimate { value: 15_000.0, low: 15_000.0, high: f64::INFINITY, n_eff: 1.0 };
        let e = lasts(&bucket(bound)).unwrap();
        assert!(e.value == 60.0 && e.high.is_infinite(), "{e:?}");
        let flat = BucketSummary { burst: Some(Estimate::exact(400.0)), ..bucket(bound) };
        assert_eq!(lasts(&flat), None);
    }

    #[test]
    fn bounds_stay_bounds_over_runs() {
        let runs = [50.0, 60.0, 70.0].map(|v| Estimate::symmetric(v, 1.0, 9.0)).to_vec();
        let mean = over(&Repeats::default(), std::slice::from_ref(&runs)).unwrap();
        assert!(mean.value == 60.0 && mean.high.is_finite());
        let mut open = runs;
        open.push(Estimate { value: 40.0, low: 40.0, high: f64::INFINITY, n_eff: 1.0 });
        let least = over(&Repeats::default(), &[open]).unwrap();
        assert!(least.value == 40.0 && least.high.is_infinite(), "{least:?}");
        assert_eq!(over(&Repeats::default(), &[Vec::new()]), None);
    }

    #[test]
    fn what_was_not_proved_is_no_limit() {
        let mut l = LimitSummary {
            target: "t".into(),
            op_class: "get".into(),
            scope: "unknown".into(),
            ops_per_s: Some(bucket(Estimate::symmetric(15_000.0, 300.0, 4.0))),
            bytes_per_s: Some(BucketSummary { proved: false, ..bucket(Estimate::exact(1e9)) }),
            knee_bytes: Some(Estimate::exact(2e5)),
            binding: "ops".into(),
            refused: None,
            evidence: Vec::new(),
        };
        let of = LimitFigures::of(&l).unwrap();
        assert!(of.ops.is_some() && of.bytes.is_none() && of.knee_bytes.is_none(), "{of:?}");
        l.ops_per_s.as_mut().unwrap().proved = false;
        assert_eq!(LimitFigures::of(&l), None);
    }
}
