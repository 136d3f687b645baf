//! (b) Is it a limiter? Evidence for each downward step, and a verdict that claims no more than the evidence.
//!
//! Explicit refusals or a cliff that returns after an idle time prove a throttle; a sharp, clear step with a flat rate, latencies
//! that follow the queue's law and nothing saturated makes one likely; a sharp step alone leaves the cause open (a cache that
//! filled has the same shape). Gradual declines, periodic dips and quotas of a fixed window are told apart.

use crate::bucket::TierFit;
use crate::math;
use crate::segment::Excursion;
use crate::silence::{self, quota};

/// What is known beside the rate. All series are on the rate's slices; empty ones are unknown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThrottleContext {
    /// 429 and 503 SlowDown, and all attempts, per second.
    pub refused_per_s: Vec<f64>,
    /// All attempts, refused ones among them.
    pub attempts_per_s: Vec<f64>,
    /// Mean latency, seconds.
    pub latency_s: Vec<f64>,
    /// Ops in flight of a closed loop.
    pub concurrency: Option<f64>,
    /// Whether any resource was at its threshold after the step.
    pub saturated: Option<bool>,
    /// Excess tokens of an earlier drain of the same bucket after an idle time that fills it.
    pub earlier_capacity: Option<f64>,
    /// A straight line explains the series better than steps.
    pub line_fits_better: bool,
    /// Everything was refused for the rest of each of these, seconds from one to the next: what falls within one is no step.
    pub window_s: Option<f64>,
}

/// Whether a fall of the rate is a limiter's, as far as one run can say.
#[derive(Debug, Clone, PartialEq)]
pub enum ThrottleVerdict {
    /// Refusals, or tokens that came back, beside the shape of a limiter.
    Proved,
    /// The shape is a limiter's; a cause beside it is not excluded.
    Likely,
    /// A cliff: limiter, or a cache that filled, or something else.
    CauseOpen,
    /// No step: it falls all along.
    GradualDecline,
    /// Regular dips: flushes, garbage collection, compaction. Seconds between them.
    PeriodicDips(f64),
    /// So many units in each window of so many seconds.
    FixedWindow {
        /// From the begin of one window to that of the next.
        period_s: f64,
        /// Allowed in each.
        units: f64,
    },
    /// Attempts were refused, this share of them, and the rate follows no law that is known here: a limiter, of whatever law.
    Refusing(f64),
    /// Nothing was seen up to this horizon, seconds.
    NoneSeen(f64),
}

impl ThrottleVerdict {
    /// For a person: `throttle likely`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Proved => "throttle proved",
            Self::Likely => "throttle likely",
            Self::CauseOpen => "cliff, cause open",
            Self::GradualDecline => "gradual decline",
            Self::PeriodicDips(_) => "periodic dips",
            Self::FixedWindow { .. } => "fixed-window quota",
            Self::Refusing(_) => "limiter of unknown law",
            Self::NoneSeen(_) => "none seen",
        }
    }
}

/// One test on one step.
#[derive(Debug, Clone, PartialEq)]
pub struct ThrottleTest {
    /// E1 to E7.
    pub code: &'static str,
    /// What it looked at, for a table.
    pub test: &'static str,
    /// `None`: not known.
    pub passed: Option<bool>,
    /// What was seen, with its unit.
    pub measured: String,
}

/// All tests of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepEvidence {
    /// Seconds from the start of the series.
    pub at_s: f64,
    /// Units per second before it.
    pub from: f64,
    /// Units per second after it.
    pub to: f64,
    /// In the order of their codes.
    pub evidence: Vec<ThrottleTest>,
    /// Of this step alone.
    pub verdict: ThrottleVerdict,
    /// Share of the attempts before it that were refused, without the step's own width; `None`: not known.
    pub refused_before: Option<f64>,
}

impl Throttle {
    /// What came before the rate fell was refused, too: that was no burst of a bucket, which refuses nothing while it has tokens.
    pub fn fell_from_a_limit(&self) -> bool {
        self.steps.first().and_then(|s| s.refused_before).is_some_and(|share| share >= REFUSED)
    }
}

/// What a series says of limiters.
#[derive(Debug, Clone, PartialEq)]
pub struct Throttle {
    /// The strongest that any step, or the whole series, shows.
    pub verdict: ThrottleVerdict,
    /// Downward steps only.
    pub steps: Vec<StepEvidence>,
}

/// Seconds that a sharp step takes at most (guess: slices are of a second, and a cliff falls within one).
const SHARP_S: f64 = 2.0;
/// Share of attempts from which on a limiter is at work (guess; a few of many thousand are a server's hiccup).
pub const REFUSED: f64 = 0.01;

/// A closed loop on a storage that serves all of its ops alike keeps in step, and ends all that is in flight at once, time after time. Slices of time see one such
/// end or a few of them as a burst, of so many times what is in flight.
const MOST_IN_STEP: f64 = 4.0;
/// How far a burst may be from that: an op that fell on the other side of an edge, or this part.
const OFF_STEP: f64 = 0.08;

/// Bursts of so many ops are no more than a closed loop in step makes, and nothing was refused. (A quota that delays, of just so many ops, looks the same.)
fn in_step(c: &ThrottleContext, burst: f64) -> bool {
    let is_of = |slots: f64| {
        let times = (burst / slots).round();
        let off = (burst - times * slots).abs();
        (1.0..=MOST_IN_STEP).contains(&times) && off <= f64::max(1.0, OFF_STEP * times * slots)
    };
    refused_share(c).unwrap_or(0.0) <= 0.0 && c.concurrency.is_some_and(is_of)
}

/// Judges a series (units per second per slice of `dt` seconds) with its bucket fit.
pub fn judge(x: &[f64], dt: f64, fit: &TierFit, context: &ThrottleContext) -> Throttle {
    let steps: Vec<StepEvidence> = fit
        .levels
        .windows(2)
        .enumerate()
        .filter(|(_, w)| w[0].rate > w[1].rate && context.window_s.is_none())
        .map(|(i, w)| {
            step(x, dt, fit, i, (w[0].start_s, w[0].end_s, w[1].end_s), (w[0].rate, w[1].rate), context)
        })
        .collect();
    let rank = |v: &ThrottleVerdict| match v {
        ThrottleVerdict::Proved => 3,
        ThrottleVerdict::Likely => 2,
        ThrottleVerdict::CauseOpen => 1,
        _ => 0,
    };
    let strongest = steps.iter().map(|s| &s.verdict).max_by_key(|v| rank(v)).filter(|v| rank(v) > 0).cloned();
    let verdict = strongest.unwrap_or_else(|| {
        let known = context.window_s.and_then(|window_s| silence::alike(x, dt, window_s));
        let seen = || {
            let more = |n: f64| n > silence::ONE_BY_ONE && !in_step(context, n);
            quota(x, dt, &context.refused_per_s).filter(|(_, n)| more(*n))
        };
        if let Some((period_s, units)) = known.or_else(seen) {
            return ThrottleVerdict::FixedWindow { period_s, units };
        }
        // Who refuses is a limiter: dips and slopes beside refusals are its doing, or that of a load that backs off.
        if let Some(share) = refused_share(context).filter(|s| *s >= REFUSED) {
            return ThrottleVerdict::Refusing(share);
        }
        if let Some(gap) = periodic(&fit.events) {
            return ThrottleVerdict::PeriodicDips(gap);
        }
        if context.line_fits_better || fit.drift < -0.10 {
            return ThrottleVerdict::GradualDecline;
        }
        ThrottleVerdict::NoneSeen(x.len() as f64 * dt)
    });
    Throttle { verdict, steps }
}

fn step(
    x: &[f64],
    dt: f64,
    fit: &TierFit,
    i: usize,
    (start, at, end): (f64, f64, f64),
    (a, b): (f64, f64),
    c: &ThrottleContext,
) -> StepEvidence {
    let slice = |from: f64, to: f64| {
        (((from / dt).round() as usize).min(x.len()), ((to / dt).round() as usize).min(x.len()))
    };
    let (before, after) = (slice(start, at), slice(at, end));
    let e1 = refusals(c, (before.0, before.1.saturating_sub(sharp_slices(dt)).max(before.0)), after);
    let width = transition(x, before, after, a, b) as f64 * dt;
    let sharp = width <= sharp_slices(dt) as f64 * dt;
    let sigma = fit.steps.get(i).map_or(0.0, |s| s.over_wander);
    let (cv_before, cv_after) = (cv5(&x[before.0..before.1], dt), cv5(&x[after.0..after.1], dt));
    let flat = cv_after <= (0.03f64).max(cv_before / 2.0);
    let queue = queue_law(c, before, after, b);
    let again = fit.tiers.get(i).zip(c.earlier_capacity).map(|(t, e)| (t.capacity / e - 1.0).abs());
    let evidence = vec![
        ThrottleTest {
            code: "E1",
            test: "refusals begin at the step (429, 503 SlowDown: 1 % after it, under 0.1 % before)",
            passed: e1.map(|(p, q)| q >= REFUSED && p < 0.001),
            measured: e1.map_or("not known".into(), |(p, q)| {
                format!("{:.2} % before, {:.2} % after", 100.0 * p, 100.0 * q)
            }),
        },
        ThrottleTest {
            code: "E2",
            test: "the step is sharp (2 s or two slices)",
            passed: Some(sharp),
            measured: format!("{width:.1} s"),
        },
        ThrottleTest {
            code: "E3",
            test: "the step is clear (4 times the slow variation)",
            passed: Some(sigma >= 4.0),
            measured: format!("{sigma:.1} times"),
        },
        ThrottleTest {
            code: "E4",
            test: "the rate is flat after it (3 %, or half of the spread before)",
            passed: Some(flat),
            measured: format!("{:.1} % after, {:.1} % before", 100.0 * cv_after, 100.0 * cv_before),
        },
        ThrottleTest {
            code: "E5",
            test: "latency is explained by the queue (in flight / rate, within 10 %)",
            passed: queue.map(|e| e <= 0.10),
            measured: queue.map_or("not known".into(), |e| format!("{:.1} % off", 100.0 * e)),
        },
        ThrottleTest {
            code: "E6",
            test: "no resource is saturated after it",
            passed: c.saturated.map(|s| !s),
            measured: c
                .saturated
                .map_or("not known".into(), |s| if s { "one is".into() } else { "none".into() }),
        },
        ThrottleTest {
            code: "E7",
            test: "after an idle time the burst returns with the same excess (10 %)",
            passed: again.map(|d| d <= 0.10),
            measured: again.map_or("not tried".into(), |d| format!("{:.1} % apart", 100.0 * d)),
        },
    ];
    let yes = |i: usize| evidence[i].passed == Some(true);
    let verdict = if (yes(0) || yes(6)) && yes(1) && yes(2) {
        ThrottleVerdict::Proved
    } else if yes(1)
        && yes(2)
        && evidence[5].passed != Some(false)
        && [3, 4, 5].into_iter().filter(|&i| yes(i)).count() >= 2
    {
        ThrottleVerdict::Likely
    } else if yes(1) && yes(2) {
        ThrottleVerdict::CauseOpen
    } else {
        ThrottleVerdict::GradualDecline
    };
    StepEvidence { at_s: at, from: a, to: b, evidence, verdict, refused_before: e1.map(|(p, _)| p) }
}

/// How many slices a sharp step may take. Those before its edge are on neither side of it: refusals that begin within the
/// slice of the cliff are cheap, and a fraction of a second of them outnumbers the ops of the slice.
fn sharp_slices(dt: f64) -> usize {
    ((SHARP_S / dt).round() as usize).max(2)
}

/// Shares of refused attempts before and after.
fn refusals(c: &ThrottleContext, before: (usize, usize), after: (usize, usize)) -> Option<(f64, f64)> {
    let share = |(i, j): (usize, usize)| {
        let n: f64 = c.attempts_per_s.get(i..j)?.iter().sum();
        let r: f64 = c.refused_per_s.get(i..j)?.iter().sum();
        (n > 0.0).then(|| r / n)
    };
    Some((share(before)?, share(after)?))
}

/// Of the whole series; `None` where nothing was attempted, or it is not known.
fn refused_share(c: &ThrottleContext) -> Option<f64> {
    let attempts: f64 = c.attempts_per_s.iter().sum();
    let share = c.refused_per_s.iter().sum::<f64>() / attempts;
    (attempts > 0.0 && share.is_finite()).then_some(share)
}

/// Slices from the last near the upper level (90 %) to the first near the lower one (10 %).
fn transition(x: &[f64], before: (usize, usize), after: (usize, usize), a: f64, b: f64) -> usize {
    let (high, low) = (b + 0.9 * (a - b), b + 0.1 * (a - b));
    let edge = before.1;
    let from = (before.0..edge).rev().take(60).find(|&i| x[i] >= high).map_or(edge, |i| i + 1);
    // Noise may keep the rate above 10 %: then the level itself is near enough.
    let to = (edge..after.1).take(60).find(|&i| x[i] <= low).unwrap_or(edge + 60);
    to.saturating_sub(from)
}

/// Coefficient of variation of means over 5 s.
fn cv5(x: &[f64], dt: f64) -> f64 {
    let m = math::bin_means(x, ((5.0 / dt).round() as usize).max(1));
    let mean = math::mean(&m);
    if mean > 0.0 { math::stdev(&m, 1) / mean } else { 0.0 }
}

/// Relative difference of the latency after the step from in flight over rate, if latency rose with it.
fn queue_law(c: &ThrottleContext, before: (usize, usize), after: (usize, usize), rate: f64) -> Option<f64> {
    let l = math::mean(c.latency_s.get(after.0..after.1).filter(|v| !v.is_empty())?);
    let l0 = math::mean(c.latency_s.get(before.0..before.1).filter(|v| !v.is_empty())?);
    let law = c.concurrency? / rate.max(1e-12);
    Some(if l > l0 { (l / law - 1.0).abs() } else { 1.0 })
}

/// Mean gap between dips that come regularly (four or more, gaps within 30 %).
fn periodic(events: &[Excursion]) -> Option<f64> {
    let dips: Vec<f64> = events.iter().filter(|e| e.change < 0.0).map(|e| e.start_s).collect();
    if dips.len() < 4 {
        return None;
    }
    let gaps: Vec<f64> = dips.windows(2).map(|w| w[1] - w[0]).collect();
    let m = math::mean(&gaps);
    (m > 0.0 && math::stdev(&gaps, 1) / m < 0.3).then_some(m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{FitOptions, fit};
    use crate::rng::Rng;

    fn cliff(n: usize, at: usize) -> Vec<f64> {
        let mut g = Rng::new(1);
        (0..n).map(|i| if i < at { 3000.0 * (1.0 + 0.03 * g.normal()) } else { 1000.0 }).collect()
    }

    fn verdict(x: &[f64], dt: f64, c: &ThrottleContext) -> Throttle {
        judge(x, dt, &fit(x, dt, &FitOptions::default()), c)
    }

    /// Four uploads at once end together: 11 or 12 in each three times of theirs.
    #[test]
    fn what_a_closed_loop_ends_in_step_is_no_quota() {
        let of = |slots: Option<f64>, refused: f64| ThrottleContext {
            concurrency: slots,
            refused_per_s: vec![refused],
            attempts_per_s: vec![10.0],
            ..ThrottleContext::default()
        };
        for burst in [4.0, 11.0, 12.0, 16.0] {
            assert!(in_step(&of(Some(4.0), 0.0), burst), "{burst}");
        }
        assert!(
            !in_step(&of(Some(4.0), 0.0), 20.0),
            "slices of time as long as five of them are too coarse to tell"
        );
        assert!(!in_step(&of(Some(64.0), 0.0), 150.0), "what is in flight does not make such bursts");
        assert!(!in_step(&of(None, 0.0), 11.0), "an open loop is in no step");
        assert!(!in_step(&of(Some(4.0), 1.0), 11.0), "something was refused");
        // 36 ops in three tenths of each second, at 15 and at 18 in flight.
        let x: Vec<f64> = (0..600).map(|i| if i % 10 < 3 { 120.0 } else { 0.0 }).collect();
        let is_quota = |slots: f64| {
            let c = ThrottleContext { concurrency: Some(slots), ..ThrottleContext::default() };
            matches!(verdict(&x, 0.1, &c).verdict, ThrottleVerdict::FixedWindow { .. })
        };
        assert!(is_quota(15.0) && !is_quota(18.0));
    }

    #[test]
    fn refusals_prove_it() {
        let x = cliff(120, 40);
        let open = verdict(&x, 1.0, &ThrottleContext::default());
        assert_eq!(open.verdict, ThrottleVerdict::CauseOpen, "{open:?}");
        let refused = (0..120).map(|i| if i < 40 { 0.0 } else { 900.0 }).collect();
        let attempts = x.iter().map(|v| v + 900.0).collect();
        let c = ThrottleContext {
            refused_per_s: refused,
            attempts_per_s: attempts,
            ..ThrottleContext::default()
        };
        let seen = verdict(&x, 1.0, &c);
        assert!(seen.verdict == ThrottleVerdict::Proved && !seen.fell_from_a_limit(), "{seen:?}");
        assert!(!open.fell_from_a_limit());
    }

    /// A limiter of 3000/s that became one of 1000/s: refused before as after, there were no tokens to use up.
    #[test]
    fn a_limit_that_became_lower_is_no_bucket() {
        let x = cliff(120, 40);
        let c = ThrottleContext {
            refused_per_s: vec![900.0; 120],
            attempts_per_s: x.iter().map(|v| v + 900.0).collect(),
            ..ThrottleContext::default()
        };
        let seen = verdict(&x, 1.0, &c);
        assert!(seen.verdict == ThrottleVerdict::CauseOpen && seen.fell_from_a_limit(), "{seen:?}");
    }

    #[test]
    fn refusals_in_the_slice_of_the_cliff_are_not_before_it() {
        // Refused at once, a client tries 20,000 times a second: the cliff at 39.5 s leaves 10,000 of them in its slice.
        let mut x = cliff(120, 40);
        x[39] = 0.5 * x[39] + 500.0;
        let refused: Vec<f64> =
            (0..120).map(|i| [0.0, 10_000.0, 20_000.0][usize::from(i >= 39) + usize::from(i > 39)]).collect();
        let attempts = x.iter().zip(&refused).map(|(v, r)| v + r).collect();
        let c = ThrottleContext {
            refused_per_s: refused,
            attempts_per_s: attempts,
            ..ThrottleContext::default()
        };
        let seen = verdict(&x, 1.0, &c);
        assert_eq!(seen.verdict, ThrottleVerdict::Proved, "{seen:?}");
        // Refusals long before the step are not its own.
        let early = c.refused_per_s.iter().enumerate().map(|(i, r)| if i < 30 { 30.0 } else { *r }).collect();
        let c = ThrottleContext { refused_per_s: early, ..c };
        assert_eq!(verdict(&x, 1.0, &c).verdict, ThrottleVerdict::CauseOpen);
    }

    #[test]
    fn queueing_makes_it_likely_and_repetition_proves_it() {
        let x = cliff(120, 40);
        let latency_s = x.iter().map(|v| 64.0 / v).collect();
        let c = ThrottleContext {
            latency_s,
            concurrency: Some(64.0),
            saturated: Some(false),
            ..ThrottleContext::default()
        };
        let likely = verdict(&x, 1.0, &c);
        assert_eq!(likely.verdict, ThrottleVerdict::Likely, "{likely:?}");
        // A full machine makes such a step, too.
        let full = ThrottleContext { saturated: Some(true), ..c.clone() };
        assert_eq!(verdict(&x, 1.0, &full).verdict, ThrottleVerdict::CauseOpen);
        let c = ThrottleContext { earlier_capacity: Some(80_500.0), ..c };
        assert_eq!(verdict(&x, 1.0, &c).verdict, ThrottleVerdict::Proved);
    }

    /// A rate that is not constant, beside refusals: a sawtooth, a slope, noise, levels that grow. Whichever law it is, it is a limiter's.
    #[test]
    fn refusals_beside_a_rate_that_is_not_constant_are_a_limiters() {
        let mut g = Rng::new(7);
        let shapes: [(&str, Vec<f64>); 4] = [
            ("sawtooth", (0..300).map(|i| if i % 40 > 35 { 300.0 } else { 1000.0 }).collect()),
            ("slope", (0..300).map(|i| 1000.0 - 2.0 * f64::from(i)).collect()),
            ("noise", (0..300).map(|_| 1000.0 * (1.0 + 0.5 * g.normal()).max(0.1)).collect()),
            ("grows", (0..300).map(|i| 100.0 * 2f64.powi(i / 75)).collect()),
        ];
        for (name, x) in shapes {
            for share in [0.02, 0.5, 0.99] {
                let refused_per_s: Vec<f64> = x.iter().map(|v| v * share / (1.0 - share)).collect();
                let attempts_per_s = x.iter().zip(&refused_per_s).map(|(a, b)| a + b).collect();
                let c = ThrottleContext { refused_per_s, attempts_per_s, ..ThrottleContext::default() };
                let seen = verdict(&x, 1.0, &c).verdict;
                let said = matches!(seen, ThrottleVerdict::Refusing(s) if (s - share).abs() < 1e-6)
                    || seen == ThrottleVerdict::CauseOpen;
                assert!(said, "{name} {share}: {seen:?}");
            }
            // Without any it is what its shape is.
            let seen = verdict(&x, 1.0, &ThrottleContext::default()).verdict;
            assert!(!matches!(seen, ThrottleVerdict::Refusing(_)), "{name}: {seen:?}");
        }
    }

    #[test]
    fn other_shapes_are_called_what_they_are() {
        let mut g = Rng::new(2);
        let flat: Vec<f64> = (0..300).map(|_| 1000.0 * (1.0 + 0.02 * g.normal())).collect();
        assert_eq!(
            verdict(&flat, 1.0, &ThrottleContext::default()).verdict,
            ThrottleVerdict::NoneSeen(300.0)
        );
        let dips: Vec<f64> =
            flat.iter().enumerate().map(|(i, v)| if i % 40 > 35 { v * 0.3 } else { *v }).collect();
        let v = verdict(&dips, 1.0, &ThrottleContext::default()).verdict;
        assert!(matches!(v, ThrottleVerdict::PeriodicDips(p) if (p - 40.0).abs() < 3.0), "{v:?}");
        // 300 ops in each second, used up in the first 0.3 s of it.
        let quota: Vec<f64> = (0..600).map(|i| if i % 10 < 3 { 1000.0 } else { 0.0 }).collect();
        let v = verdict(&quota, 0.1, &ThrottleContext::default()).verdict;
        assert!(
            matches!(v, ThrottleVerdict::FixedWindow { period_s, units } if (period_s - 1.0).abs() < 1e-9 && (units - 300.0).abs() < 1.0),
            "{v:?}"
        );
        let c = ThrottleContext { line_fits_better: true, ..ThrottleContext::default() };
        assert_eq!(verdict(&flat, 1.0, &c).verdict, ThrottleVerdict::GradualDecline);
        assert_eq!(verdict(&[], 1.0, &ThrottleContext::default()).verdict, ThrottleVerdict::NoneSeen(0.0));
    }
}
