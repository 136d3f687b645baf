//! Drops that are told while they are there: the rate is below half of what it was, or nothing succeeds. What levels they make is told
//! later, when two looks at the whole series have seen them.

use std::collections::VecDeque;

use plimsoll_stats::{math, words};

/// Seconds that are below before a drop is told, and as many that have to be back up.
const SEEN_S: usize = 10;
/// Seconds before it that say what the rate was, and how many of them there have to be.
const BEFORE_S: usize = 60;
const LEAST_BEFORE_S: usize = 20;
/// Below this part of it the rate has dropped; from the other on it is back. (Choices: storage that wanders stays between.)
const DROPPED: f64 = 0.5;
const BACK: f64 = 0.8;
/// With fewer ops expected in the seconds that are looked at a drop may be chance.
const LEAST_OPS: f64 = 20.0;
/// So many are told one by one.
const MOST_TOLD: usize = 10;

/// What is known of one second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Second {
    pub ok: f64,
    pub refused: f64,
    pub failed: f64,
}

/// A drop that is still there.
#[derive(Debug, Clone, Copy)]
struct Dropped {
    at_s: usize,
    before: f64,
}

#[derive(Debug, Default)]
pub(super) struct Drops {
    /// The last ones, and how many there were in all.
    seconds: VecDeque<Second>,
    all: usize,
    now: Option<Dropped>,
    told: usize,
}

impl Drops {
    /// What is to be told after this second, and which second it is about.
    pub fn add(&mut self, second: Second) -> Option<(f64, String)> {
        self.seconds.push_back(second);
        self.all += 1;
        if self.seconds.len() > SEEN_S + BEFORE_S {
            self.seconds.pop_front();
        }
        let from = self.all.checked_sub(SEEN_S)?;
        let at = self.seconds.len() - SEEN_S;
        let (earlier, last) = self.seconds.make_contiguous().split_at(at);
        let mean = |of: fn(&Second) -> f64| last.iter().map(of).sum::<f64>() / SEEN_S as f64;
        let rate = mean(|s| s.ok);
        let shown = |x: f64| words::about(x, 3);
        if let Some(d) = self.now {
            if rate < BACK * d.before {
                return None;
            }
            self.now = None;
            let took = from - d.at_s;
            let text =
                format!("the drop at {} s was over {took} s later: {} ops/s again", d.at_s, shown(rate));
            return (self.told <= MOST_TOLD).then_some((from as f64, text));
        }
        let before = math::median(&earlier.iter().map(|s| s.ok).collect::<Vec<_>>());
        let is_known = earlier.len() >= LEAST_BEFORE_S && before * SEEN_S as f64 >= LEAST_OPS;
        if !is_known || rate >= DROPPED * before {
            return None;
        }
        // It began where the rate first was below half.
        let began = last.iter().position(|s| s.ok < DROPPED * before).unwrap_or(0);
        self.now = Some(Dropped { at_s: from + began, before });
        self.told += 1;
        let (refused, failed) = (mean(|s| s.refused), mean(|s| s.failed));
        let attempts = rate + refused + failed;
        let share = |of: &str, n: f64| {
            (n > 0.01 * attempts).then(|| format!(", {} of attempts {of}", words::share(n / attempts)))
        };
        let why =
            [share("refused", refused), share("failed", failed)].into_iter().flatten().collect::<String>();
        let what = if rate > 0.0 { format!("{} ops/s", shown(rate)) } else { "nothing succeeds".to_owned() };
        let text = match self.told {
            n if n <= MOST_TOLD => {
                format!(
                    "drop at {} s: {what} for {} s{why}; {} ops/s before",
                    from + began,
                    SEEN_S - began,
                    shown(before)
                )
            }
            n if n == MOST_TOLD + 1 => {
                "drops come again and again: no more of them are told one by one".to_owned()
            }
            _ => return None,
        };
        Some(((from + began) as f64, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(seconds: impl Iterator<Item = Second>) -> Vec<(usize, String)> {
        let mut d = Drops::default();
        seconds.enumerate().filter_map(|(i, s)| Some((i, d.add(s)?.1))).collect()
    }

    fn ok(ok: f64) -> Second {
        Second { ok, ..Second::default() }
    }

    #[test]
    fn a_drop_is_told_while_it_is_there_and_when_it_is_over() {
        let all = (0..200).map(|i| match i {
            60..90 => Second { ok: 100.0, refused: 900.0, failed: 0.0 },
            _ => ok(1000.0),
        });
        let told = told(all);
        let texts: Vec<&str> = told.iter().map(|(_, t)| t.as_str()).collect();
        assert_eq!(told.iter().map(|t| t.0).collect::<Vec<_>>(), [65, 97], "{texts:?}");
        assert!(
            texts[0].starts_with("drop at 60 s: ") && texts[0].contains("1,000 ops/s before"),
            "{texts:?}"
        );
        assert!(texts[0].contains("of attempts refused"), "{texts:?}");
        assert!(texts[1].starts_with("the drop at 60 s was over"), "{texts:?}");
    }

    #[test]
    fn nothing_at_all_is_said_as_that_and_little_is_no_drop() {
        let stops = told((0..100).map(|i| ok(if i < 50 { 300.0 } else { 0.0 })));
        assert_eq!(stops.len(), 1);
        assert!(stops[0].1.contains("drop at 50 s: "), "{stops:?}");
        // A rate of an op a second, one that wanders, and one that is down for two seconds.
        assert!(told((0..300).map(|i| ok(f64::from(u8::from(i % 3 == 0))))).is_empty());
        assert!(told((0..300).map(|i| ok(100.0 + 30.0 * (i as f64 / 20.0).sin()))).is_empty());
        assert!(told((0..100).map(|i| ok(if (50..52).contains(&i) { 0.0 } else { 300.0 }))).is_empty());
    }

    #[test]
    fn what_comes_again_and_again_is_not_told_for_hours() {
        let told = told((0..36_000).map(|i| ok(if i / 30 % 3 == 2 { 10.0 } else { 500.0 })));
        assert!(told.len() <= 2 * MOST_TOLD + 2, "{}", told.len());
        assert!(told.last().unwrap().1.contains("again and again"), "{told:?}");
    }
}
