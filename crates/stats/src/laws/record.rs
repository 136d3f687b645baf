//! What a limiter was asked, and what it let through, from the first load to the last.

use crate::math;
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
    /// Attempts that were refused: decided in it, whenever that was answered.
    pub refused: f64,
    /// What was answered in it.
    pub answered: f64,
    /// Attempts that came to the limiter: of an open loop those that were offered, since what is refused late, or ends late, came before.
    pub asked: f64,
    /// Mean time of what ended, seconds; 0: not known.
    pub took_s: f64,
    /// Of those that came to a closed loop's begin, ops that are in flight as long as it lasts.
    pub in_flight: f64,
    /// It came at a rate, whatever became of it.
    pub is_open: bool,
    /// Whether a law is held against it: ops of another size may have met another limit, and only use up tokens of this one.
    pub scored: bool,
}

impl LoadSlice {
    /// What was decided.
    pub fn decided(&self) -> f64 {
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
    refused_late_s: Option<f64>,
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
                answered: (ok + refused) * dt_s,
                asked: (ok + refused) * dt_s,
                took_s: seen.latency_s.get(i).copied().unwrap_or(0.0),
                in_flight: 0.0,
                is_open: load.offered_per_s.is_some(),
                scored: load.scored,
            });
        }
        let Some(&from) = self.loads.last() else { return };
        let most = f64::from(load.in_flight);
        let late_s = self.refused_late_s(from);
        match (late_s, load.offered_per_s) {
            (Some(late_s), _) => self.refused_before(from, late_s, load),
            (None, Some(per_s)) => self.asked(from, per_s, most),
            (None, None) => self.of_closed(from, most),
        }
    }

    /// Refusals are kept waiting: what came back was decided so much earlier, and what was decided in the last of that is not known. As
    /// much came then as before.
    fn refused_before(&mut self, from: usize, late_s: f64, load: RecordedLoad) {
        // An open loop's answers take the time that they waited for a place, too.
        self.refused_late_s = Some(self.refused_late_s.map_or(late_s, |least| least.min(late_s)));
        let slices = &mut self.slices[from..];
        let Some(dt_s) = slices.first().map(|s| s.dt_s) else { return };
        let late = (late_s / dt_s).round() as usize;
        let back: Vec<f64> = slices.iter().map(|s| s.answered - s.passed).collect();
        let known = slices.len().saturating_sub(late);
        for (s, refused) in slices.iter_mut().zip(&back[late.min(back.len())..]) {
            (s.refused, s.scored) = (*refused, load.scored);
            s.asked = s.decided();
        }
        let lately = &slices[known.saturating_sub(late.max(1))..known];
        let came = match load.offered_per_s {
            Some(per_s) => per_s * dt_s,
            None => math::mean(&lately.iter().map(|s| s.asked).collect::<Vec<f64>>()),
        };
        for s in &mut slices[known..] {
            (s.refused, s.scored) = (0.0, false);
            s.asked = came.max(s.passed);
        }
    }

    /// A closed loop begins with as many as are in flight, and asks again for each that ends: what has not ended came, too. Who is refused
    /// pauses before it asks again, and is not in flight meanwhile (Little 1961: as many as end in the time that they take).
    fn of_closed(&mut self, from: usize, most: f64) {
        let load = &mut self.slices[from..];
        let Some(first) = load.first() else { return };
        let (dt_s, n) = (first.dt_s, load.len());
        let begin = &load[..n.min((BEGIN_S / dt_s).ceil() as usize)];
        let sum = |of: fn(&LoadSlice) -> f64| begin.iter().map(of).sum::<f64>();
        let (all, busy_s) = (sum(|s| s.answered), sum(|s| s.took_s * s.answered));
        // Nothing ended, or nobody says what it took.
        let in_flight = match all > 0.0 && busy_s > 0.0 {
            true => (busy_s / (begin.len() as f64 * dt_s)).min(most),
            false => most,
        };
        let ok = sum(|s| s.passed);
        for s in load.iter_mut() {
            (s.asked, s.in_flight) = (s.answered, 0.0);
        }
        load[0].asked += in_flight;
        load[0].in_flight = in_flight * if all > 0.0 { ok / all } else { 1.0 };
    }

    /// What refusals of this load took, seconds, where that is long.
    fn refused_late_s(&self, from: usize) -> Option<f64> {
        let load = &self.slices[from..];
        let sum = |of: fn(&LoadSlice) -> f64| load.iter().map(of).sum::<f64>();
        let (ok, all, busy_s) = (sum(|s| s.passed), sum(|s| s.answered), sum(|s| s.took_s * s.answered));
        // What an op takes is seen where nothing is refused; of large ops that is another time.
        if !load.iter().any(|s| s.scored) && self.refused_late_s.is_none() {
            return None;
        }
        let free = self.slices.iter().filter(|s| s.scored && s.passed > 0.0 && s.answered <= s.passed);
        let op_s = free.map(|s| s.took_s).fold(busy_s / all, f64::min);
        let took_s = (busy_s - op_s * ok) / (all - ok);
        (all > ok && took_s > LATE_S).then_some(took_s)
    }

    /// What was offered came, unless so much less ended of it that the client, or the storage, can't have kept up.
    fn asked(&mut self, from: usize, offered_per_s: f64, in_flight: f64) {
        let load = &mut self.slices[from..];
        let offered: f64 = load.iter().map(|s| offered_per_s * s.dt_s).sum();
        let ended: f64 = load.iter().map(|s| s.answered).sum();
        let kept_up = offered - ended <= KEPT_UP * in_flight;
        for s in load {
            s.asked = if kept_up { offered_per_s * s.dt_s } else { s.answered };
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

    /// The most that passed in a second of a load, ops: what the storage can do, at the least. Where some of a second was refused, it can
    /// do what passed in the fastest slice of it, and larger ops than those that laws are held against pass no faster.
    pub fn most_per_s(&self) -> f64 {
        let most = |load: &[LoadSlice]| {
            let n = load.first().map_or(1, |s| ((1.0 / s.dt_s).round() as usize).max(1));
            let rate = |w: &[LoadSlice]| match w.iter().any(|s| s.answered > s.passed) {
                true => w.iter().map(|s| s.passed / s.dt_s).fold(0.0, f64::max),
                false => w.iter().map(|s| s.passed).sum::<f64>() / w.iter().map(|s| s.dt_s).sum::<f64>(),
            };
            load.windows(n).map(rate).fold(0.0, f64::max)
        };
        self.loads().map(most).fold(0.0, f64::max)
    }

    /// Refusals are kept waiting for so long, at least in one load; seconds.
    pub fn refused_after_s(&self) -> Option<f64> {
        self.refused_late_s
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

    /// 40 of 100 are refused and get to know it 2 s later (a tarpit): they are decided when they were sent.
    #[test]
    fn what_is_refused_late_was_decided_before() {
        for offered_per_s in [Some(100.0), None] {
            let mut late = seen(40, 100.0, 0.0);
            late.latency_s = vec![0.01; 40];
            for i in 0..40 {
                // From the tenth slice on, all is refused.
                late.ops_per_s[i] = if i < 10 { 100.0 } else { 0.0 };
                late.rejected_per_s[i] = if i < 14 { 0.0 } else { 100.0 };
                late.latency_s[i] = if i < 14 { 0.01 } else { 2.0 };
            }
            let mut r = LoadRecord::default();
            let load = RecordedLoad { continues: false, scored: true, offered_per_s, in_flight: 64 };
            // As it comes: what was not known yet is known later.
            let part = |from: usize, to: usize| RatesSeen {
                dt_s: 0.5,
                ops_per_s: late.ops_per_s[from..to].to_vec(),
                rejected_per_s: late.rejected_per_s[from..to].to_vec(),
                latency_s: late.latency_s[from..to].to_vec(),
                ..RatesSeen::default()
            };
            r.add(&part(0, 20), 10.0, load);
            r.add(&part(20, 40), 20.0, RecordedLoad { continues: true, ..load });
            let s = r.slices();
            assert!(s[..10].iter().all(|s| s.passed == 50.0 && s.refused == 0.0 && s.scored), "{s:?}");
            assert!(s[10..36].iter().all(|s| s.refused == 50.0 && s.asked == 50.0 && s.scored), "{s:?}");
            assert!(s[36..].iter().all(|s| !s.scored), "{s:?}");
            assert_eq!(r.refused(), 26.0 * 50.0);
        }
    }

    /// A bucket's tokens pass within a slice, and nothing after them: the storage can do what passed then.
    #[test]
    fn of_a_second_that_was_refused_the_fastest_slice_counts() {
        let mut r = LoadRecord::default();
        let mut tokens = seen(10, 0.0, 500.0);
        tokens.ops_per_s[0] = 60.0;
        r.add(
            &tokens,
            5.0,
            RecordedLoad { continues: false, scored: true, offered_per_s: None, in_flight: 16 },
        );
        assert_eq!(r.most_per_s(), 60.0);
    }
}
