//! How large a bucket is, and whether what was seen is one at all.

use plimsoll_model::Estimate;

use super::cause;
use super::outcome::{BRIEF, Capacity};
use super::{DrainEvidence, DrainKind, Steadiness, Track};
use crate::math;
use crate::student;

/// Seconds of the rate, per square root of a second: what the work of a limiter strays from a constant rate that varies by 2 % over
/// 5 s. A cache that is full gives a storage's own speed, with what is emptied meanwhile, and strays by twice as much and more.
const STRAYS: f64 = 0.1;
/// So many times that is far, in a look of so many times the seconds.
const FAR: f64 = 2.0;
const MUCH_LONGER: f64 = 2.0;

/// Beside the spread of its cycles, a short burst is known no better than this: the first seconds of a drain are coarse against such a
/// bucket (simulated).
pub(super) const COARSE: f64 = 0.04;

/// Whether a plateau is a limiter's. A cache that fills, and empties when it is left alone, has its burst again after rest as a bucket
/// has; but what it falls to is the speed of a storage, and nobody holds it. Who refuses is a limiter; where nothing tells, it may be one.
fn is_limiters(t: &Track) -> bool {
    let looks = || t.drains.iter().filter(|d| d.kind != DrainKind::Unsteady).filter_map(|d| d.steadiness);
    let longest_s = looks().map(|s| s.seconds).fold(0.0, f64::max);
    // What is even for a while was so by chance, where a look that was much longer strayed ever further, of any kind, since it shows no
    // rate. Ops that end together (QEMU lets 24 of 256 KiB go at once, every 1.6 s) are far from their rate by turns, and come back.
    let far = |s: &Steadiness| {
        s.growth.is_finite() && !s.comes_back() && s.wander_s > FAR * STRAYS * s.seconds.sqrt()
    };
    let strayed = t.drains.iter().filter_map(|d| d.steadiness).filter(far);
    let strayed_s = strayed.map(|s| s.seconds).fold(0.0, f64::max);
    let held = |s: Steadiness| {
        if strayed_s >= MUCH_LONGER * s.seconds {
            return false;
        }
        // By chance some seconds are even: a brief look tells less.
        let brief = s.seconds < BRIEF * longest_s;
        let strays = if brief { 0.5 * STRAYS } else { STRAYS };
        s.is_held_exactly() && (!brief || s.comes_back()) || s.wander_s <= strays * s.seconds.sqrt()
    };
    looks().next().is_none() || looks().any(|s| s.refused >= cause::REFUSED || held(s))
}

/// A burst came back after rest, and what it falls to is a storage's own speed: a cache, or a bucket on a busy machine.
pub(super) fn is_cache(t: &Track) -> bool {
    let bursts = t.drains.iter().filter(|d| matches!(d.kind, DrainKind::Cliff | DrainKind::Micro)).count();
    bursts > 1 && !is_limiters(t)
}

pub(super) fn capacity(t: &Track) -> Capacity {
    if !is_limiters(t) {
        return Capacity::NoneSeen;
    }
    if let Some(m) = &t.micro {
        if !m.is_real(t.rate.unwrap_or(f64::INFINITY)) {
            return Capacity::NoneSeen;
        }
        let hw = m.half_width().hypot(COARSE * m.capacity);
        return Capacity::Measured(Estimate::symmetric(m.capacity, hw, m.cycles as f64));
    }
    let seen: Vec<&DrainEvidence> = t.drains.iter().filter(|d| d.recovered.is_some()).collect();
    if seen.iter().all(|d| matches!(d.kind, DrainKind::Flat | DrainKind::Unsteady)) {
        return Capacity::NoneSeen;
    }
    // A short burst that was seen once, at the start, is the storage's own beginning as likely as a bucket.
    let once = seen.iter().filter(|d| d.kind == DrainKind::Micro).count() == 1;
    if once && seen.iter().all(|d| d.kind != DrainKind::Cliff) {
        return Capacity::NoneSeen;
    }
    let most = t.most_recovered();
    if !came_back(t, most) {
        return Capacity::NoneSeen;
    }
    // How full it was before the first drain is not known.
    let rested = seen.iter().any(|d| d.is_saturated() && d.recovered > Some(0.93 * most));
    let full: Vec<&DrainEvidence> = seen
        .iter()
        .filter(|d| d.recovered > Some(0.93 * most) && (d.idle_s.is_some() || !rested))
        .copied()
        .collect();
    if !seen.iter().any(|d| d.is_saturated() && d.recovered > Some(0.9 * most)) {
        // Of what may be nothing nothing follows.
        let least = least(t, most);
        return if least > 0.0 { Capacity::AtLeast(least) } else { Capacity::NoneSeen };
    }
    let values: Vec<f64> = full.iter().filter_map(|d| d.recovered).collect();
    let own = full.iter().map(|d| d.recovered_half_width).fold(f64::INFINITY, f64::min);
    let n = values.len() as f64;
    let between =
        if values.len() >= 2 { student::t95(n - 1.0) * math::stdev(&values, 1) / n.sqrt() } else { own };
    let e = Estimate::symmetric(math::mean(&values), own.max(between.min(2.0 * own)), n);
    if e.low > 0.0 { Capacity::Measured(e) } else { Capacity::NoneSeen }
}

/// Tokens that the bucket surely held. A plateau that other load on the machine kept low makes the excess over it too large: what
/// counts is the excess over the highest rate that any drain was granted for long, less what one is not sure of.
fn least(t: &Track, most: f64) -> f64 {
    let finite = |w: f64| if w.is_finite() { w } else { 0.0 };
    let seen = || t.drains.iter().filter(|d| d.recovered.is_some());
    let highest = seen().map(|d| d.rate + finite(d.rate_half_width)).fold(0.0, f64::max);
    let sure = |d: &DrainEvidence| {
        let burst_s = d.cliff_s.unwrap_or(0.0);
        d.recovered.unwrap_or(0.0) - finite(d.recovered_half_width) - (highest - d.rate).max(0.0) * burst_s
    };
    seen().map(sure).fold(0.0, f64::max).min(most)
}

/// A bucket that has rested for long enough has its burst again: where drains after such a rest mostly have none, what was seen
/// was the storage's own. So it is of one burst that nobody was refused after, where there was no other look, or one that wandered.
fn came_back(t: &Track, most: f64) -> bool {
    let bursts = t.drains.iter().filter(|d| d.recovered >= Some(0.3 * most)).count();
    let refused = t.drains.iter().filter_map(|d| d.steadiness).any(|s| s.refused >= cause::REFUSED);
    let alone = t.drains.len() == 1 || t.drains.iter().any(|d| d.kind == DrainKind::Unsteady);
    if bursts < 2 && !refused && alone {
        return false;
    }
    let rested: Vec<&DrainEvidence> =
        t.drains.iter().filter(|d| d.recovered.is_some() && d.would_fill >= Some(0.5 * most)).collect();
    let with = rested.iter().filter(|d| d.recovered >= Some(0.3 * most)).count();
    with >= rested.len() - with
}

#[cfg(test)]
mod tests {
    use super::super::drain::Before;
    use super::super::plateau::Plateau;
    use super::super::{Resource, Track};
    use super::*;
    use crate::rng::Rng;

    fn drain(burst_s: usize, idle_s: Option<f64>) -> DrainEvidence {
        let x: Vec<f64> = [300.0].repeat(5 * burst_s).into_iter().chain([100.0].repeat(150)).collect();
        let before = Before { first: idle_s.is_none(), rate: idle_s.map(|_| 100.0), refuted: false };
        DrainEvidence {
            idle_s,
            rest_s: idle_s.unwrap_or(0.0),
            length_s: x.len() as f64 * 0.2,
            ..DrainEvidence::of(&x, 0.2, before)
        }
    }

    fn seen(drains: &[DrainEvidence]) -> Capacity {
        let mut t = Track { rate: Some(100.0), drains: drains.to_vec(), ..Track::default() };
        t.decide(100.0);
        capacity(&t)
    }

    #[test]
    fn a_burst_that_does_not_come_back_is_no_bucket() {
        let first = drain(6, None);
        assert_eq!(first.kind, DrainKind::Cliff);
        // 1,200 tokens, which 15 s of rest bring back.
        let again = |idle_s| drain(6, Some(idle_s));
        let none = |idle_s| drain(0, Some(idle_s));
        assert!(matches!(seen(&[first.clone(), again(15.0)]), Capacity::AtLeast(_) | Capacity::Measured(_)));
        assert_eq!(seen(&[first.clone(), none(15.0)]), Capacity::NoneSeen);
        assert_eq!(seen(&[first.clone(), again(15.0), none(15.0), none(20.0)]), Capacity::NoneSeen);
        // Rests too short to bring back half of it say nothing.
        assert!(matches!(seen(&[first.clone(), none(5.0), none(5.0)]), Capacity::AtLeast(_)));
        assert!(matches!(
            seen(&[first, again(15.0), none(15.0)]),
            Capacity::AtLeast(_) | Capacity::Measured(_)
        ));
    }

    /// A cache that fills has its burst again after each rest; what it falls to wanders as a storage does, and a bucket's rate does not.
    #[test]
    fn a_burst_before_a_plateau_that_nobody_holds_is_no_bucket() {
        let mut g = Rng::new(7);
        let mut seen_with = |strays: f64| {
            let mut away = 0.0;
            let mut one = |idle_s: Option<f64>| {
                let mut d = drain(6, idle_s);
                d.x = [300.0].repeat(30).into_iter().chain([100.0].repeat(150)).collect();
                for v in &mut d.x {
                    away += 0.04 * (strays * g.normal() * 3.5 - away);
                    *v *= 1.0 + away;
                }
                let seen = Plateau {
                    ok: d.x.clone(),
                    refused: vec![0.0; d.x.len()],
                    latency_s: vec![0.01; d.x.len()],
                    x: d.x.clone(),
                };
                d.judge_plateau(&seen, 0.2, Resource::Ops);
                d
            };
            let drains = [one(None), one(Some(15.0)), one(Some(15.0))];
            let t = Track { rate: Some(100.0), drains: drains.to_vec(), ..Track::default() };
            (seen(&drains), is_cache(&t))
        };
        let (bucket, cache) = seen_with(0.01);
        assert!(matches!(bucket, Capacity::AtLeast(_) | Capacity::Measured(_)) && !cache, "{bucket:?}");
        assert_eq!(seen_with(0.6), (Capacity::NoneSeen, true));
    }

    /// QEMU lets 12 MB at once: ops of 256 KiB end 24 together, every 1.6 s, while small ones are let through one by one.
    #[test]
    fn ops_that_end_together_are_no_rate_that_strays() {
        let judged = |d: DrainEvidence, x: Vec<f64>, latency_s: f64, of: Resource| {
            let n = x.len();
            let mut d = DrainEvidence { x: x.clone(), ..d };
            let seen = Plateau { ok: x.clone(), refused: vec![0.0; n], latency_s: vec![latency_s; n], x };
            d.judge_plateau(&seen, 0.2, of);
            d
        };
        let large = (0..175).map(|i| if i % 8 == 0 { 128.0 } else { 0.0 }).collect();
        let blank = DrainEvidence { kind: DrainKind::Flat, ..drain(0, None) };
        let together = judged(blank, large, 0.24, Resource::Bytes);
        let small = |i: usize| 980.0 - 4.0 * (i % 3) as f64;
        let even = judged(drain(0, Some(20.0)), (0..75).map(small).collect(), 0.0246, Resource::Ops);
        let s = (together.steadiness.unwrap(), even.steadiness.unwrap());
        assert!(
            s.0.wander_s > FAR * STRAYS * s.0.seconds.sqrt() && s.0.seconds >= MUCH_LONGER * s.1.seconds,
            "{s:?}"
        );
        let t = Track { rate: Some(976.0), drains: vec![together, even], ..Track::default() };
        assert!(is_limiters(&t), "{s:?}");
    }
}
