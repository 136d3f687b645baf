//! A long run that reports cliffs as they come.

mod drops;

use std::collections::VecDeque;

use plimsoll_model::Finding;
use plimsoll_model::plan::Stage;
use plimsoll_model::units::Span;
use plimsoll_stats::bucket::{self, FitOptions, Tier};
use plimsoll_stats::words;

use super::fixed::Fixed;
use crate::controller::{ControlRemark, ControlStep, Controller, Observation, Slice};
use crate::error::ControlError;
pub use drops::RATE_DROPPED;
use drops::{Drops, Second};

/// Seconds between two looks at the whole series, at first; a look takes time that grows with the series.
const LOOK_EVERY_S: usize = 15;
/// At most so many points are looked at: of hours, sums of several seconds.
const MOST_POINTS: usize = 7200;

/// One long stage; each cliff is told when two looks have seen it.
#[derive(Debug)]
pub struct Watch {
    stages: Fixed,
    slice_s: f64,
    /// Slices of the second that is open, and the rates of the ones before.
    open: Vec<Slice>,
    ops_per_s: Vec<f64>,
    next_look: usize,
    /// Cliffs that were told and stand.
    told: Vec<Told>,
    /// Cliffs of the last look that were not told yet: what two looks see in the same way is.
    seen: Vec<Told>,
    remarks: VecDeque<ControlRemark>,
    drops: Drops,
}

/// The second that these slices make, if they do; then they are taken.
fn whole_second(open: &mut Vec<Slice>, slice_s: f64) -> Option<Second> {
    let length_s = open.len() as f64 * slice_s;
    if length_s < 1.0 - slice_s / 2.0 {
        return None;
    }
    let sum = |of: fn(&Slice) -> u64| open.iter().map(of).sum::<u64>() as f64 / length_s;
    let second = Second { ok: sum(|s| s.ok), refused: sum(|s| s.throttled), failed: sum(|s| s.failed) };
    open.clear();
    Some(second)
}

/// Drops of a load of which all is known: as they were told while it went on.
pub fn drops_of(slices: &[Slice], slice_s: f64) -> Option<Finding> {
    let (mut drops, mut open) = (Drops::default(), Vec::new());
    for slice in slices {
        open.push(*slice);
        if let Some(second) = whole_second(&mut open, slice_s) {
            drops.add(second);
        }
    }
    drops.finding()
}

/// A cliff as it was told.
#[derive(Debug, Clone, Copy)]
struct Told {
    at_s: f64,
    before: f64,
    rate: f64,
}

/// A cliff that is found again may have moved by so much, seconds, or by this share of the time since the start.
const SAME_PLACE_S: f64 = 5.0;
const SAME_PLACE: f64 = 0.02;
/// And its rates by this: the smallest step that makes a level (`bucket`).
const SAME_RATE: f64 = 0.08;

impl Told {
    fn of(t: &Tier) -> Self {
        Self { at_s: t.cliff_s, before: t.before, rate: t.rate }
    }

    fn is_at(&self, t: &Tier) -> bool {
        (self.at_s - t.cliff_s).abs() <= SAME_PLACE_S.max(SAME_PLACE * self.at_s)
    }

    fn still_true(&self, t: &Tier) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= SAME_RATE * a.max(b);
        near(self.before, t.before) && near(self.rate, t.rate)
    }

    fn words(&self) -> String {
        let n = |x: f64| words::about(x, 3);
        format!("{:.0} s: from {} to {} ops/s", self.at_s, n(self.before), n(self.rate))
    }
}

impl Watch {
    /// `grid`: length of the slices that will be shown.
    pub fn new(mut stage: Stage, duration: Span, grid: Span) -> Self {
        for w in &mut stage.workloads {
            w.stop.duration = Some(duration);
        }
        Self {
            stages: Fixed::new(vec![stage]),
            slice_s: grid.0.as_secs_f64(),
            open: Vec::new(),
            ops_per_s: Vec::new(),
            next_look: 2 * LOOK_EVERY_S,
            told: Vec::new(),
            seen: Vec::new(),
            remarks: VecDeque::new(),
            drops: Drops::default(),
        }
    }

    fn look(&mut self) {
        let n = self.ops_per_s.len();
        // Doubling steps keep the cost of all looks together in proportion to the length of the run.
        self.next_look = n + LOOK_EVERY_S.max(n / 20);
        let bin = n.div_ceil(MOST_POINTS).max(1);
        let x: Vec<f64> =
            self.ops_per_s.chunks_exact(bin).map(|c| c.iter().sum::<f64>() / bin as f64).collect();
        let fit = bucket::fit(&x, bin as f64, &FitOptions::default());
        // A step that noise may have made, or that is not over yet, is none that could be told.
        self.tell(if fit.verdict.is_limiter() { &fit.tiers } else { &[] });
    }

    /// New cliffs are told; those that were told and are seen otherwise now, are corrected.
    fn tell(&mut self, tiers: &[Tier]) {
        for old in std::mem::take(&mut self.told) {
            match tiers.iter().find(|t| old.is_at(t)) {
                None => self.say(
                    &old,
                    format!("correction: no cliff at {}: later data does not confirm it", old.words()),
                ),
                Some(t) if !old.still_true(t) => {
                    let now = Told::of(t);
                    self.say(&now, format!("correction: the cliff at {}, from all data so far", now.words()));
                    self.told.push(now);
                }
                Some(_) => self.told.push(old),
            }
        }
        let before = std::mem::take(&mut self.seen);
        for t in tiers {
            if self.told.iter().any(|old| old.is_at(t)) {
                continue;
            }
            let now = Told::of(t);
            // Slow noise makes a step now and then, and the next look does not see it again.
            if !before.iter().any(|old| old.is_at(t) && old.still_true(t)) {
                self.seen.push(now);
            } else {
                let beyond = words::about(t.capacity, 3);
                self.say(
                    &now,
                    format!("cliff at {}, after {beyond} ops in excess of that rate", now.words()),
                );
                self.told.push(now);
            }
        }
    }

    fn say(&mut self, cliff: &Told, text: String) {
        self.remarks.push_back(ControlRemark { text, about_s: Some(cliff.at_s), is_progress: false });
    }
}

impl Controller for Watch {
    fn next(&mut self, seen: &[Observation]) -> ControlStep {
        self.stages.next(seen)
    }

    fn slice(&mut self, slice: &Slice) -> bool {
        self.open.push(*slice);
        if let Some(second) = whole_second(&mut self.open, self.slice_s) {
            self.ops_per_s.push(second.ok);
            if let Some((at_s, text)) = self.drops.add(second) {
                self.remarks.push_back(ControlRemark { text, about_s: Some(at_s), is_progress: false });
            }
            if self.ops_per_s.len() >= self.next_look {
                self.look();
            }
        }
        true
    }

    fn remark(&mut self) -> Option<ControlRemark> {
        self.remarks.pop_front()
    }

    fn total(&self) -> Option<u32> {
        self.stages.total()
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), ControlError> {
        self.stages.resume(completed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Plan;

    const S: std::time::Duration = std::time::Duration::from_secs(1);

    fn stage(stop: &str) -> Stage {
        let text = format!(
            "version = 1\n[targets.n]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = {{ null = 1 }}\n{stop}"
        );
        Plan::from_toml(&text).unwrap().stages.remove(0)
    }

    /// What is told of a series of ops per second, with the second in which it was.
    fn told(per_s: impl Iterator<Item = f64>) -> Vec<(usize, String)> {
        let mut w = Watch::new(stage(""), Span(3600 * S), Span(S / 10));
        let (mut out, mut due) = (Vec::new(), 0.0);
        for (second, x) in per_s.enumerate() {
            for _ in 0..10 {
                due += x / 10.0;
                let ok = due as u64;
                due -= ok as f64;
                assert!(w.slice(&Slice { ok, ..Slice::default() }));
                // Drops are told at once: see drops.rs.
                while let Some(r) = w.remark() {
                    if !r.text.contains("cliff") {
                        continue;
                    }
                    let about_s = r.about_s.expect("a cliff has its place");
                    assert!(r.text.contains(&format!("{about_s:.0} s: from")), "{r:?}");
                    out.push((second, r.text));
                }
            }
        }
        out
    }

    /// However long the template's own loads are: `--for` says how long a watch lasts.
    #[test]
    fn a_watch_lasts_as_long_as_it_is_told() {
        for stop in ["", "stop = { duration = \"30s\" }\n"] {
            let mut w = Watch::new(stage(stop), Span(3600 * S), Span(S / 10));
            let ControlStep::Run(s) = w.next(&[]) else { panic!("{stop}") };
            assert_eq!(s.workloads[0].stop.duration, Some(Span(3600 * S)), "{stop}");
        }
    }

    #[test]
    fn a_cliff_is_told_once_and_soon() {
        // 1,000 ops a second for a minute, then 200.
        let noise = |i: usize| (i * 7919 % 5) as f64 * 10.0;
        let told = told((0..600).map(|i| if i < 60 { 980.0 } else { 180.0 } + noise(i)));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].0 < 120 && told[0].1.contains("cliff at 60 s: from 1,000 to 20"), "{told:?}");
    }

    /// Storage whose rate wanders, stalls, or stops for a while is no cliff; and what was taken for one is taken back.
    #[test]
    fn what_is_told_is_true_or_taken_back() {
        let mut standing = 0;
        for seed in 0..150 {
            let mut g = plimsoll_stats::rng::Rng::new(seed);
            let mut away = 0.0;
            let mut per_s = Vec::new();
            let outage = 100 + g.below(200);
            for i in 0..600 {
                away += 0.15 * (0.08 * g.normal() - away);
                let factor = if (outage..outage + 12).contains(&i) { 0.13 } else { 1.0 };
                per_s.push(900.0 * factor * (1.0f64 + away).max(0.05));
            }
            let told = told(per_s.into_iter());
            let count = |what: &str| told.iter().map(|(_, t)| t.matches(what).count()).sum::<usize>();
            standing += count("cliff at ").saturating_sub(count("correction: "));
        }
        assert!(standing <= 5, "{standing} cliffs stand that were none, of 150 watches");
    }
}
