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
    /// Attempts that came to the limiter: of an open loop those that were offered, since what is refused late, or ends late, came before.
    pub asked: f64,
    /// Mean time of what ended, seconds; 0: not known.
    pub took_s: f64,
    /// Of those that came to a closed loop's begin, ops that are in flight as long as it lasts.
    pub in_flight: f64,
    /// Whether a law is held against it: ops of another size may have met another limit, and only use up tokens of this one.
    pub scored: bool,
}

impl LoadSlice {
    /// What ended.
    pub fn ended(&self) -> f64 {
        self.passed + self.refused
    }
}

/// The load of which slices are added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordedLoad {
    /// It is the last one, which goes on.
    pub continues: bool,
    /// Laws are held against it.
    pub scored: bool,
    /// Of an open loop, ops per second.
    pub offered_per_s: Option<f64>,
    /// Most ops in flight.
    pub in_flight: u32,
}

/// Of a closed loop's begin, seconds, by which it is told how many are in flight.
const BEGIN_S: f64 = 4.0;
/// Refusals that take so long are kept waiting on purpose, seconds (haproxy's tarpit: ten by default; a guess: no refusal at once does).
const LATE_S: f64 = 0.4;
/// Ops that have not ended, as a multiple of those that may be in flight, up to which all that was offered came.
const KEPT_UP: f64 = 1.5;

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
    pub fn add(&mut self, seen: &RatesSeen, end_s: f64, load: RecordedLoad) {
        let dt_s = seen.dt_s;
        if !load.continues || self.loads.is_empty() {
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
                asked: (ok + refused) * dt_s,
                took_s: seen.latency_s.get(i).copied().unwrap_or(0.0),
                in_flight: 0.0,
                scored: load.scored,
            });
        }
        let Some(&from) = self.loads.last() else { return };
        match load.offered_per_s {
            Some(per_s) => self.asked(from, per_s, f64::from(load.in_flight)),
            None => self.of_closed(from, f64::from(load.in_flight)),
        }
    }

    /// A closed loop begins with as many as are in flight, and asks again for each that ends: what has not ended came, too. Who is refused
    /// pauses before it asks again, and is not in flight meanwhile (Little 1961: as many as end in the time that they take). Where refusals
    /// are kept waiting, when they were asked for is not known well enough to hold a law against it.
    fn of_closed(&mut self, from: usize, most: f64) {
        let late = self.refused_late(from);
        let load = &mut self.slices[from..];
        let Some(first) = load.first() else { return };
        let (dt_s, n) = (first.dt_s, load.len());
        if late {
            load.iter_mut().for_each(|s| s.scored = false);
            return;
        }
        let begin = &load[..n.min((BEGIN_S / dt_s).ceil() as usize)];
        let sum = |of: fn(&LoadSlice) -> f64| begin.iter().map(of).sum::<f64>();
        let (all, busy_s) = (sum(LoadSlice::ended), sum(|s| s.took_s * s.ended()));
        // Nothing ended, or nobody says what it took.
        let in_flight = match all > 0.0 && busy_s > 0.0 {
            true => (busy_s / (begin.len() as f64 * dt_s)).min(most),
            false => most,
        };
        let ok = sum(|s| s.passed);
        for s in load.iter_mut() {
            (s.asked, s.in_flight) = (s.ended(), 0.0);
        }
        load[0].asked += in_flight;
        load[0].in_flight = in_flight * if all > 0.0 { ok / all } else { 1.0 };
    }

    /// Whether refusals of this load took long.
    fn refused_late(&self, from: usize) -> bool {
        let load = &self.slices[from..];
        let sum = |of: fn(&LoadSlice) -> f64| load.iter().map(of).sum::<f64>();
        let (ok, refused, busy_s) = (sum(|s| s.passed), sum(|s| s.refused), sum(|s| s.took_s * s.ended()));
        // What an op takes is seen where nothing is refused.
        let free = self.slices.iter().filter(|s| s.scored && s.refused <= 0.0 && s.passed > 0.0);
        let op_s = free.map(|s| s.took_s).fold(f64::INFINITY, f64::min);
        let took_s = (busy_s - if op_s.is_finite() { op_s * ok } else { 0.0 }) / refused;
        refused > 0.0 && took_s > LATE_S
    }

    /// What was offered came, unless so much less ended of it that the client, or the storage, can't have kept up.
    fn asked(&mut self, from: usize, offered_per_s: f64, in_flight: f64) {
        let load = &mut self.slices[from..];
        let offered: f64 = load.iter().map(|s| offered_per_s * s.dt_s).sum();
        let ended: f64 = load.iter().map(LoadSlice::ended).sum();
        let kept_up = offered - ended <= KEPT_UP * in_flight;
        for s in load {
            s.asked = if kept_up { offered_per_s * s.dt_s } else { s.ended() };
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

    /// The last load stood still for a while: what came then came together, and no law is held against it.
    pub fn stood_still(&mut self) {
        let from = self.loads.last().copied().unwrap_or(0);
        self.slices[from..].iter_mut().for_each(|s| s.scored = false);
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

    /// The most that passed in a second of a load, ops: what the storage can do, at the least.
    pub fn most_per_s(&self) -> f64 {
        let most = |load: &[LoadSlice]| {
            let load: Vec<&LoadSlice> = load.iter().filter(|s| s.scored).collect();
            let n = load.first().map_or(1, |s| ((1.0 / s.dt_s).round() as usize).max(1));
            let mean = |w: &[&LoadSlice]| {
                w.iter().map(|s| s.passed).sum::<f64>() / w.iter().map(|s| s.dt_s).sum::<f64>()
            };
            load.windows(n).map(mean).fold(0.0, f64::max)
        };
        self.loads().map(most).fold(0.0, f64::max)
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
        let load = |continues, scored| RecordedLoad { continues, scored, offered_per_s: None, in_flight: 16 };
        r.add(&seen(4, 10.0, 0.0), 12.0, load(false, true));
        // It goes on, and its clock was read a little early.
        r.add(&seen(4, 10.0, 2.0), 13.9, load(true, true));
        r.add(&seen(2, 4.0, 6.0), 20.0, load(false, false));
        let loads: Vec<usize> = r.loads().map(<[LoadSlice]>::len).collect();
        assert_eq!(loads, [8, 2]);
        assert_eq!((r.slices()[0].at_s, r.slices()[4].at_s, r.slices()[8].at_s), (10.0, 12.0, 19.0));
        assert!(r.slices().windows(2).all(|w| w[1].at_s >= w[0].at_s + w[0].dt_s - 1e-9));
        // 16 began, whatever became of them.
        assert_eq!(
            (r.refused(), r.slices()[8].asked, r.slices()[8].in_flight),
            (4.0, 5.0 + 16.0, 0.4 * 16.0)
        );
        assert_eq!([0, 1, 4].map(|i| r.slices()[i].asked), [5.0 + 16.0, 5.0, 6.0]);
        assert_eq!(LoadRecord::default().loads().count(), 0);
        // It had to be made ready; that is told once of a load, and never makes it earlier.
        r.began(19.5);
        r.began(25.0);
        assert_eq!((r.slices()[8].at_s, r.slices()[9].at_s, r.slices()[7].at_s), (19.5, 20.0, 13.5));
        assert_eq!(r.end_s(), 20.5);
    }

    /// What is refused late came when it was offered; what a client could not send did not come.
    #[test]
    fn of_an_open_loop_what_was_offered_came() {
        let load = RecordedLoad { continues: false, scored: true, offered_per_s: Some(100.0), in_flight: 64 };
        let mut r = LoadRecord::default();
        // Refusals take two seconds: those of the last two are not seen.
        let mut late = seen(20, 60.0, 40.0);
        late.rejected_per_s[..4].fill(0.0);
        r.add(&late, 10.0, load);
        assert!(r.slices().iter().all(|s| s.asked == 50.0), "{:?}", r.slices());
        r.add(&seen(20, 60.0, 0.0), 30.0, RecordedLoad { offered_per_s: Some(200.0), ..load });
        assert!(r.slices()[20..].iter().all(|s| s.asked == 30.0));
        assert_eq!(r.most_per_s(), 60.0);
        assert_eq!(LoadRecord::default().most_per_s(), 0.0);
        r.stood_still();
        assert!(r.slices().iter().take(20).all(|s| s.scored) && r.slices()[20..].iter().all(|s| !s.scored));
        LoadRecord::default().stood_still();
    }
}
