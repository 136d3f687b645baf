//! Work of ops that last longer than a slice, put where it was done and not where it ended.
//!
//! Eight uploads of 15 s end within a second of each other: counted where they end, the rate of a second is zero, or eight; its mean has
//! an interval as wide as itself, though a closed loop's rate is known from how long its ops take (Little 1961: rate = in flight / time).
//! An op of `d` seconds is taken for `1/d` of an op in each of them. Of a loop that keeps `N` in flight the rate at a time is then
//! the sum of `1/d` over the ops in flight, which is Little's law at that time.
//!
//! Its interval is that of a ratio, work over time in service, by batches of ops in the order in which they ended ([`crate::rate`]): slots
//! that are slow together are neighbours. A series of work as it was done is too much alike from slice to slice to tell: an op is in
//! many of them.

use crate::rate::Mean;

/// Batches at the most, as of a rate.
const BATCHES: u64 = 20;

/// What ended in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EndedWork {
    /// Ops.
    pub ops: u64,
    /// The same, or their bytes.
    pub work: f64,
    /// Time that they took, summed, seconds.
    pub took_s: f64,
}

impl EndedWork {
    /// Of one of them.
    fn mean_s(&self) -> f64 {
        self.took_s / self.ops.max(1) as f64
    }
}

/// Work done in each slice of `dt_s` seconds, by ops that were taken to end in the middle of theirs. What was done before the first
/// slice is left out; what had not ended by the last one is not known: see [`known_until`].
pub fn spread(ended: &[EndedWork], dt_s: f64) -> Vec<f64> {
    let mut done = vec![0.0; ended.len()];
    for (i, e) in ended.iter().enumerate().filter(|(_, e)| e.work > 0.0) {
        let mean_s = e.mean_s();
        if mean_s <= 0.0 {
            done[i] += e.work;
            continue;
        }
        let end = (i as f64 + 0.5) * dt_s;
        let begin = end - mean_s;
        let first = (begin / dt_s).max(0.0) as usize;
        for (j, slice) in done.iter_mut().enumerate().take(i + 1).skip(first) {
            let (from, to) = (j as f64 * dt_s, (j as f64 + 1.0) * dt_s);
            *slice += e.work * (to.min(end) - from.max(begin)).max(0.0) / mean_s;
        }
    }
    done
}

/// Half width of the 95 % interval of the rate, as a part of it, and how many independent batches are behind it. `None`: ops ended in
/// fewer than three slices.
pub fn half_width(ended: &[EndedWork]) -> Option<(f64, f64)> {
    let batches = batches(ended);
    let sum = |f: &dyn Fn(&EndedWork) -> f64| batches.iter().map(f).sum::<f64>();
    let (work, took_s) = (sum(&|e| e.work), sum(&|e| e.took_s));
    if took_s <= 0.0 || work <= 0.0 {
        return None;
    }
    let ratio = work / took_s;
    let residuals: Vec<f64> = batches.iter().map(|e| e.work - ratio * e.took_s).collect();
    let m = Mean::of(&residuals);
    m.half_width.is_finite().then(|| (m.half_width * batches.len() as f64 / work, m.n_eff))
}

/// Of as many ops as make so many of them; what ended in one slice is not told apart.
fn batches(ended: &[EndedWork]) -> Vec<EndedWork> {
    let ops: u64 = ended.iter().map(|e| e.ops).sum();
    let each = ops.div_ceil(BATCHES).max(1);
    let mut out: Vec<EndedWork> = Vec::new();
    let mut open = EndedWork::default();
    for e in ended {
        open = EndedWork { ops: open.ops + e.ops, work: open.work + e.work, took_s: open.took_s + e.took_s };
        if open.ops >= each {
            out.push(std::mem::take(&mut open));
        }
    }
    out
}

/// Until when all that was in flight has ended while the load was whole, where no op began after `stop_s`: those that were left after it
/// had the storage for themselves and were faster than what they are taken for.
pub fn known_until(stop_s: f64, mean_s: f64) -> f64 {
    stop_s - mean_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math;
    use crate::rng::Rng;

    #[test]
    fn work_lies_where_it_was_done() {
        let mut ended = vec![EndedWork::default(); 10];
        ended[7] = EndedWork { ops: 8, work: 8.0, took_s: 32.0 };
        let done = spread(&ended, 1.0);
        assert_eq!(done, [0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 1.0, 0.0, 0.0]);
        // What began before the first slice is not in it.
        assert_eq!(spread(&[EndedWork { ops: 3, work: 3.0, took_s: 9.0 }], 1.0), [0.5]);
        assert_eq!(spread(&[EndedWork { ops: 3, work: 3.0, took_s: 0.0 }], 1.0), [3.0]);
        assert!(spread(&[], 1.0).is_empty());
    }

    #[test]
    fn two_batches_have_no_interval_and_bytes_have_that_of_their_ratio() {
        let slice = |work, took_s| EndedWork { ops: 4, work, took_s };
        assert_eq!(half_width(&[slice(4.0, 8.0); 2]), None);
        assert_eq!(half_width(&[]), None);
        assert_eq!(half_width(&[slice(4.0, 8.0); 3]).unwrap().0, 0.0);
        // Large objects take longer by as much: the rate of bytes is one.
        let sizes = [1.0, 3.0, 2.0, 5.0].map(|x| slice(100.0 * x, 8.0 * x));
        assert!(half_width(&sizes).unwrap().0 < 1e-9);
        assert_eq!(half_width(&[EndedWork::default(); 9]), None);
    }

    /// A closed loop of so many slots: what ended in each second. `common`: by how much all ops of a time are slower or faster together.
    fn closed_loop(
        rng: &mut Rng,
        slots: usize,
        mean_s: f64,
        own: f64,
        common: f64,
        stop_s: f64,
    ) -> Vec<EndedWork> {
        let mut wander = vec![0.0];
        for _ in 0..(stop_s / mean_s * 4.0) as usize + 8 {
            let z: f64 = 0.6 * wander[wander.len() - 1] + 0.8 * rng.normal();
            wander.push(z);
        }
        let mut ends: Vec<(f64, f64)> = Vec::new();
        for _ in 0..slots {
            let mut at = 0.0;
            while at < stop_s {
                let z = common * wander[(at / mean_s * 4.0) as usize] + own * rng.normal();
                let took = mean_s * (z - 0.5 * (common * common + own * own)).exp();
                at += took;
                ends.push((at, took));
            }
        }
        let slices = ends.iter().map(|e| e.0).fold(0.0, f64::max) as usize + 1;
        let mut sums = vec![EndedWork::default(); slices];
        for (at, took) in ends {
            let s = &mut sums[at as usize];
            *s = EndedWork { ops: s.ops + 1, work: s.work + 1.0, took_s: s.took_s + took };
        }
        sums
    }

    /// The truth is a very long run's; the interval of counts where they end covers it too, and is far wider, but where what makes it wide
    /// is common to all ops.
    #[test]
    fn the_interval_covers_and_is_narrower_than_that_of_ends() {
        const ROUNDS: u32 = 300;
        let mut rng = Rng::new(0x9E37_79B9);
        for (slots, mean_s, own, common, stop_s, of_that) in [
            (8, 15.0, 0.05, 0.0, 120.0, 0.1),
            (4, 12.0, 0.2, 0.1, 120.0, 0.6),
            (16, 6.0, 0.3, 0.1, 60.0, 0.7),
            (4, 3.0, 0.1, 0.2, 60.0, 1.2),
            (2, 13.0, 0.1, 0.05, 60.0, 0.5),
        ] {
            let long = closed_loop(&mut rng, slots, mean_s, own, common, 400_000.0);
            let truth = long[1000..400_000].iter().map(|e| e.work).sum::<f64>() / 399_000.0;
            let (mut covered, mut widths, mut of_ends, mut off) = (0, 0.0, 0.0, 0.0);
            for _ in 0..ROUNDS {
                let ended = closed_loop(&mut rng, slots, mean_s, own, common, stop_s);
                let until = known_until(stop_s, mean_s) as usize;
                let value = math::mean(&spread(&ended, 1.0)[..until]);
                let in_time = &ended[..(stop_s as usize).min(ended.len())];
                let (half, _) = half_width(in_time).unwrap();
                covered += u32::from((value - truth).abs() <= half * value);
                widths += half / f64::from(ROUNDS);
                off += (value / truth - 1.0) / f64::from(ROUNDS);
                let counts: Vec<f64> = in_time.iter().map(|e| e.work).collect();
                of_ends += Mean::of(&counts).half_width / truth / f64::from(ROUNDS);
            }
            let share = f64::from(covered) / f64::from(ROUNDS);
            let case = format!(
                "{slots} of {mean_s} s: covers {share:.3}, off {off:.4}, {widths:.3} wide, by ends {of_ends:.3}"
            );
            println!("{case}");
            assert!(share >= 0.90 && off.abs() < 0.015 && widths < of_that * of_ends, "{case}");
        }
    }
}
