//! What a limiter was asked, and what it let through, from the first load to the last.

use crate::simulate::RatesSeen;

/// A slice of time under load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadSlice {
    /// Of its begin, on the clock of the observations, seconds.
    pub at_s: f64,
    /// Its length, seconds.
    pub dt_s: f64,
    /// Ops that ended well.
    pub passed: f64,
    /// Attempts that were refused.
    pub refused: f64,
    /// Whether a law is held against it: ops of another size may have met another limit, and only use up tokens of this one.
    pub scored: bool,
}

impl LoadSlice {
    /// What came to the limiter.
    pub fn attempts(&self) -> f64 {
        self.passed + self.refused
    }
}

/// All of it, in order. Between two slices that do not touch there was no load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadRecord {
    slices: Vec<LoadSlice>,
    /// Where each load begins.
    loads: Vec<usize>,
    /// The last load is not known yet to have begun later than it was asked for.
    fresh: bool,
}

impl LoadRecord {
    /// A load, or more of the last one, that ended at `end_s`.
    pub fn add(&mut self, seen: &RatesSeen, end_s: f64, continues: bool, scored: bool) {
        let dt_s = seen.dt_s;
        if !continues || self.loads.is_empty() {
            self.loads.push(self.slices.len());
            self.fresh = true;
        }
        let began_s = end_s - dt_s * seen.ops_per_s.len() as f64;
        // What was in flight when the last one ended belongs to it.
        let from_s = self.slices.last().map_or(began_s, |s| began_s.max(s.at_s + s.dt_s));
        for (i, ok) in seen.ops_per_s.iter().enumerate() {
            let refused = seen.rejected_per_s.get(i).copied().unwrap_or(0.0);
            self.slices.push(LoadSlice {
                at_s: from_s + i as f64 * dt_s,
                dt_s,
                passed: ok * dt_s,
                refused: refused * dt_s,
                scored,
            });
        }
    }

    /// The last load began at `at_s`, later than it was asked for: making it ready takes time.
    pub fn began(&mut self, at_s: f64) {
        if !std::mem::take(&mut self.fresh) {
            return;
        }
        let Some(&from) = self.loads.last() else { return };
        let late_s = self.slices.get(from).map_or(0.0, |s| (at_s - s.at_s).max(0.0));
        self.slices[from..].iter_mut().for_each(|s| s.at_s += late_s);
    }

    /// When the last load ended, seconds.
    pub fn end_s(&self) -> f64 {
        self.slices.last().map_or(0.0, |s| s.at_s + s.dt_s)
    }

    /// Each, in order.
    pub fn slices(&self) -> &[LoadSlice] {
        &self.slices
    }

    /// The slices of each load.
    pub fn loads(&self) -> impl Iterator<Item = &[LoadSlice]> {
        let ends = self.loads.iter().skip(1).copied().chain([self.slices.len()]);
        self.loads.iter().zip(ends).map(|(from, to)| &self.slices[*from..to])
    }

    /// Attempts that were refused, of those that laws are held against.
    pub fn refused(&self) -> f64 {
        self.slices.iter().filter(|s| s.scored).map(|s| s.refused).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(n: usize, ok: f64, refused: f64) -> RatesSeen {
        RatesSeen {
            dt_s: 0.5,
            ops_per_s: vec![ok; n],
            rejected_per_s: vec![refused; n],
            ..RatesSeen::default()
        }
    }

    #[test]
    fn loads_are_kept_apart_and_slices_never_overlap() {
        let mut r = LoadRecord::default();
        r.add(&seen(4, 10.0, 0.0), 12.0, false, true);
        // It goes on, and its clock was read a little early.
        r.add(&seen(4, 10.0, 2.0), 13.9, true, true);
        r.add(&seen(2, 4.0, 6.0), 20.0, false, false);
        let loads: Vec<usize> = r.loads().map(<[LoadSlice]>::len).collect();
        assert_eq!(loads, [8, 2]);
        assert_eq!((r.slices()[0].at_s, r.slices()[4].at_s, r.slices()[8].at_s), (10.0, 12.0, 19.0));
        assert!(r.slices().windows(2).all(|w| w[1].at_s >= w[0].at_s + w[0].dt_s - 1e-9));
        assert_eq!((r.refused(), r.slices()[8].attempts()), (4.0, 5.0));
        assert_eq!(LoadRecord::default().loads().count(), 0);
        // It had to be made ready; that is told once of a load, and never makes it earlier.
        r.began(19.5);
        r.began(25.0);
        assert_eq!((r.slices()[8].at_s, r.slices()[9].at_s, r.slices()[7].at_s), (19.5, 20.0, 13.5));
        assert_eq!(r.end_s(), 20.5);
    }
}
