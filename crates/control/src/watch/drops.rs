//! Drops that are told while they are there: the rate is below half of what it was, or nothing succeeds. What levels they make is told
//! later, when two looks at the whole series have seen them.

use std::collections::VecDeque;

use plimsoll_model::{Finding, Level};
use plimsoll_stats::{math, words};

/// Seconds in a row that are below before a drop is told, and as many that have to be back up; at low rates so many that ops are expected
/// in them for chance to leave no doubt.
const SEEN_S: usize = 5;
const LEAST_OPS: f64 = 20.0;
const LONGEST_SEEN_S: usize = 30;
/// Seconds before it that say what the rate was, and how many of them there have to be.
const BEFORE_S: usize = 60;
const LEAST_BEFORE_S: usize = 20;
/// Below this part of it the rate has dropped; above the other on the mean, and half way between them in each second, it is back. (Choices:
/// storage that wanders stays between.)
const DROPPED: f64 = 0.5;
const BACK: f64 = 0.8;
const BACK_EACH: f64 = 0.65;
/// So many are told one by one.
const MOST_TOLD: usize = 10;

/// What is known of one second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Second {
    pub ok: f64,
    pub refused: f64,
    pub failed: f64,
}

/// A drop, with the sums over its seconds.
#[derive(Debug, Clone, Copy)]
struct Dropped {
    at_s: usize,
    seconds: usize,
    before: f64,
    sum: Second,
    ended: bool,
}

impl Dropped {
    fn rate(&self) -> f64 {
        self.sum.ok / self.seconds.max(1) as f64
    }

    /// `80.1 ops/s, 60 % of attempts refused; 200 ops/s before`.
    fn words(&self) -> String {
        let attempts = self.sum.ok + self.sum.refused + self.sum.failed;
        let share = |of: &str, n: f64| {
            (n > 0.01 * attempts).then(|| format!(", {} of attempts {of}", words::share(n / attempts)))
        };
        let why = [share("refused", self.sum.refused), share("failed", self.sum.failed)];
        let what = match self.rate() {
            0.0 => "nothing succeeded".to_owned(),
            rate => format!("{} ops/s", shown(rate)),
        };
        format!(
            "{what}{}; {} ops/s before",
            why.into_iter().flatten().collect::<String>(),
            shown(self.before)
        )
    }
}

fn shown(x: f64) -> String {
    words::about(x, 3)
}

#[derive(Debug, Default)]
pub(super) struct Drops {
    /// The last ones, and how many there were in all.
    seconds: VecDeque<Second>,
    all: usize,
    now: Option<Dropped>,
    /// Those that are over, the first ones of them.
    over: Vec<Dropped>,
    told: usize,
}

impl Drops {
    /// What is to be told after this second, and which second it is about.
    pub fn add(&mut self, second: Second) -> Option<(f64, String)> {
        self.seconds.push_back(second);
        self.all += 1;
        if self.seconds.len() > LONGEST_SEEN_S + BEFORE_S {
            self.seconds.pop_front();
        }
        if self.now.is_some() { self.is_over(second) } else { self.begins() }
    }

    /// How many of the last seconds fulfil it, one after the other.
    fn last(&self, of: impl Fn(&Second) -> bool) -> usize {
        self.seconds.iter().rev().take_while(|s| of(s)).count()
    }

    /// Seconds that have to be so at such a rate. `None`: it is too low.
    fn needed(rate: f64) -> Option<usize> {
        let n = ((LEAST_OPS / rate.max(f64::MIN_POSITIVE)).ceil() as usize).max(SEEN_S);
        (n <= LONGEST_SEEN_S).then_some(n)
    }

    fn begins(&mut self) -> Option<(f64, String)> {
        // What the rate was is seen before the seconds that are low, of which there are no more than are needed.
        let low = |before: f64| self.last(|s| s.ok < DROPPED * before);
        let at = |n: usize| {
            let from = self.seconds.len().checked_sub(n)?;
            let earlier: Vec<f64> =
                self.seconds.iter().take(from).rev().take(BEFORE_S).map(|s| s.ok).collect();
            (earlier.len() >= LEAST_BEFORE_S).then(|| math::median(&earlier))
        };
        let needed = at(SEEN_S).and_then(Self::needed)?;
        let before = at(needed)?;
        let n = low(before);
        if before <= 0.0 || n < needed.max(Self::needed(before)?) {
            return None;
        }
        let mut d = Dropped { at_s: self.all - n, seconds: 0, before, sum: Second::default(), ended: false };
        self.seconds.iter().rev().take(n).for_each(|s| d.add(*s));
        self.told += 1;
        let text = match self.told {
            told if told <= MOST_TOLD => format!("drop at {} s: for {n} s {}", d.at_s, d.words()),
            told if told == MOST_TOLD + 1 => {
                "drops come again and again: no more of them are told one by one".to_owned()
            }
            _ => String::new(),
        };
        let about_s = d.at_s as f64;
        self.now = Some(d);
        (!text.is_empty()).then_some((about_s, text))
    }

    fn is_over(&mut self, second: Second) -> Option<(f64, String)> {
        let d = self.now.as_mut()?;
        d.add(second);
        let before = d.before;
        let up = self.last(|s| s.ok >= BACK_EACH * before);
        let needed = Self::needed(before)?;
        let mean = self.seconds.iter().rev().take(up).map(|s| s.ok).sum::<f64>() / up.max(1) as f64;
        if up < needed || mean < BACK * before {
            return None;
        }
        let mut d = self.now.take()?;
        // The seconds that are up again are none of it.
        self.seconds.iter().rev().take(up).for_each(|s| d.take_back(*s));
        d.ended = true;
        let text =
            format!("the drop at {} s was over {} s later: {} ops/s again", d.at_s, d.seconds, shown(mean));
        let about_s = (d.at_s + d.seconds) as f64;
        if self.over.len() < MOST_TOLD {
            self.over.push(d);
        }
        (self.told <= MOST_TOLD).then_some((about_s, text))
    }

    /// All of them, for the result.
    pub fn finding(&self) -> Option<Finding> {
        let all = || self.over.iter().chain(&self.now);
        let first = all().next()?;
        let one = |d: &Dropped| {
            let end = if d.ended { "" } else { ", to the end" };
            format!("at {} s for {} s{end}: {}", d.at_s, d.seconds, d.words())
        };
        let text = match self.told {
            1 => format!("The rate dropped {}.", one(first)),
            n => {
                let some: Vec<String> = all().take(3).map(one).collect();
                let more =
                    if n > some.len() { format!("; and {} more", n - some.len()) } else { String::new() };
                format!("The rate dropped {n} times: {}{more}.", some.join("; "))
            }
        };
        let mut f = Finding::new("F27", RATE_DROPPED, Level::Qualified, text);
        f.measured = Some(first.rate() / first.before);
        f.threshold = Some(DROPPED);
        f.evidence = all().map(|d| (format!("drop at {} s", d.at_s), format!("{} s", d.seconds))).collect();
        Some(f)
    }
}

/// Name of the finding of a rate that was below half for a while.
pub const RATE_DROPPED: &str = "rate_dropped";

impl Dropped {
    fn add(&mut self, s: Second) {
        self.seconds += 1;
        self.sum = Second {
            ok: self.sum.ok + s.ok,
            refused: self.sum.refused + s.refused,
            failed: self.sum.failed + s.failed,
        };
    }

    fn take_back(&mut self, s: Second) {
        self.seconds -= 1;
        self.sum = Second {
            ok: (self.sum.ok - s.ok).max(0.0),
            refused: (self.sum.refused - s.refused).max(0.0),
            failed: (self.sum.failed - s.failed).max(0.0),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(seconds: impl Iterator<Item = Second>) -> (Vec<(usize, String)>, Drops) {
        let mut d = Drops::default();
        let out = seconds.enumerate().filter_map(|(i, s)| Some((i, d.add(s)?.1))).collect();
        (out, d)
    }

    fn ok(ok: f64) -> Second {
        Second { ok, ..Second::default() }
    }

    #[test]
    fn a_drop_is_told_while_it_is_there_and_when_it_is_over() {
        let all = (0..200).map(|i| match i {
            60..110 => Second { ok: 80.0, refused: 20.0, failed: 0.0 },
            _ => ok(200.0),
        });
        let (told, drops) = told(all);
        let texts: Vec<&str> = told.iter().map(|(_, t)| t.as_str()).collect();
        assert_eq!(told.iter().map(|t| t.0).collect::<Vec<_>>(), [64, 114], "{texts:?}");
        // Its own rate, and not one that has what was before in it.
        assert!(texts[0].starts_with("drop at 60 s: for 5 s 80"), "{texts:?}");
        assert!(texts[0].contains("20 % of attempts refused; 200"), "{texts:?}");
        assert!(texts[1].starts_with("the drop at 60 s was over 50 s later: 200"), "{texts:?}");
        let f = drops.finding().unwrap();
        assert!(f.text.starts_with("The rate dropped at 60 s for 50 s: 80"), "{}", f.text);
    }

    #[test]
    fn nothing_at_all_is_said_as_that_and_little_is_no_drop() {
        let (stops, drops) = told((0..100).map(|i| ok(if i < 50 { 300.0 } else { 0.0 })));
        assert_eq!(stops.len(), 1);
        assert!(stops[0].1.starts_with("drop at 50 s: for 5 s nothing succeeded; 300"), "{stops:?}");
        assert!(drops.finding().unwrap().text.contains("for 50 s, to the end"));
        // A rate of an op a second, one that wanders, and one that is down for two seconds.
        for quiet in [
            told((0..300).map(|i| ok(f64::from(u8::from(i % 3 == 0))))),
            told((0..300).map(|i| ok(100.0 + 30.0 * (i as f64 / 20.0).sin()))),
            told((0..100).map(|i| ok(if (50..52).contains(&i) { 0.0 } else { 300.0 }))),
        ] {
            assert!(quiet.0.is_empty() && quiet.1.finding().is_none(), "{:?}", quiet.0);
        }
    }

    #[test]
    fn what_comes_again_and_again_is_not_told_for_hours() {
        let (told, drops) = told((0..36_000).map(|i| ok(if i / 30 % 3 == 2 { 10.0 } else { 500.0 })));
        assert!(told.len() <= 2 * MOST_TOLD + 2, "{}", told.len());
        assert!(told.last().unwrap().1.contains("again and again"), "{told:?}");
        assert!(drops.finding().unwrap().text.contains("and 397 more"), "{:?}", drops.finding());
    }
}
