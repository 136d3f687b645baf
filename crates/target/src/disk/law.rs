//! When a disk answers: rates by operations and by bytes of each direction, as buckets of their own or as two speeds with one credit.
//! Takes the time as an argument, and never looks at a clock.

use crate::limiter::{CreditSpec, Direction, Law, LimitSet, LimitSpec, MICRO, Unit, law_of};

const S: f64 = 1e9;

/// All limits of a disk.
#[derive(Debug, Clone)]
pub struct DiskLaw {
    limits: Vec<DiskLimit>,
    credit: Option<Credit>,
}

/// One of them.
#[derive(Debug, Clone)]
struct DiskLimit {
    spec: LimitSpec,
    /// Without credit.
    law: Law,
    /// With credit: until then it is at work on what came before.
    busy_until_ns: u64,
}

/// Time at burst rates that is left.
#[derive(Debug, Clone)]
struct Credit {
    spec: CreditSpec,
    left_ns: f64,
    at_ns: u64,
}

impl Credit {
    fn earn(&mut self, now_ns: u64) {
        let since = now_ns.saturating_sub(self.at_ns) as f64;
        self.left_ns = (self.left_ns + since * self.spec.earned_per_s).min(self.spec.seconds * S);
        self.at_ns = self.at_ns.max(now_ns);
    }
}

impl DiskLaw {
    /// `credit_s`: what is left of the credit when it begins; absent: all of it.
    pub fn new(set: &LimitSet, credit_s: Option<f64>, now_ns: u64) -> Self {
        let limit = |spec: &LimitSpec| DiskLimit {
            spec: spec.clone(),
            law: law_of(spec, now_ns),
            busy_until_ns: now_ns,
        };
        let credit = set.credit.map(|spec| Credit {
            spec,
            left_ns: credit_s.unwrap_or(spec.seconds).min(spec.seconds) * S,
            at_ns: now_ns,
        });
        Self { limits: set.limits.iter().map(limit).collect(), credit }
    }

    /// Takes on a read or write of so many bytes; the answer is when it is done.
    pub fn book(&mut self, now_ns: u64, direction: Direction, bytes: u64) -> u64 {
        match &mut self.credit {
            None => {
                let mine = self.limits.iter_mut().filter_map(|l| Some((l.tokens(direction, bytes)?, l)));
                mine.map(|(n, l)| l.law.book(now_ns, n)).max().unwrap_or(now_ns)
            }
            Some(credit) => {
                credit.earn(now_ns);
                let fast_ns = |l: &DiskLimit, n: u64| {
                    n as f64 / l.spec.burst_per_s.unwrap_or(l.spec.rate_per_s).0 as f64 * S
                };
                let mine = self.limits.iter().filter_map(|l| Some(fast_ns(l, l.tokens(direction, bytes)?)));
                let cost_ns = mine.fold(0.0, f64::max);
                // What has just come in is no credit for an op that costs more: a disk that ran out stays slow while it is used.
                let is_fast = credit.left_ns >= cost_ns;
                credit.left_ns = (credit.left_ns - cost_ns).max(0.0);
                let mut due_ns = now_ns;
                for l in &mut self.limits {
                    let Some(n) = l.tokens(direction, bytes) else { continue };
                    let slow_ns = n as f64 / l.spec.rate_per_s.0 as f64 * S;
                    let takes_ns = if is_fast { fast_ns(l, n) } else { slow_ns };
                    l.busy_until_ns = l.busy_until_ns.max(now_ns) + takes_ns as u64;
                    due_ns = due_ns.max(l.busy_until_ns);
                }
                due_ns
            }
        }
    }

    /// Seconds at burst rates that are left, where there is such a thing.
    pub fn credit_s(&self) -> Option<f64> {
        self.credit.as_ref().map(|c| c.left_ns / S)
    }
}

/// What a benchmark of files does to a disk, again and again: writes so many bytes, reads them, and makes small requests for some time.
#[derive(Debug, Clone, Copy)]
pub struct DiskRounds {
    /// How often.
    pub rounds: u32,
    /// Written, and read.
    pub bytes: u64,
    /// Of the small requests.
    pub small_s: f64,
    /// A cache in front has what was written.
    pub is_cached: bool,
}

impl DiskRounds {
    /// Seconds that they take where nothing but the disk takes any: at the least.
    pub fn takes_s(&self, set: &LimitSet, credit_s: Option<f64>) -> f64 {
        const SMALL: u64 = 4096;
        /// Requests of a phase that are reckoned one by one.
        const MOST: u64 = 1000;
        let large = self.bytes.div_ceil(MOST).max(1 << 20);
        // Without credit they leave nothing behind that others would feel.
        let small_count = set.credit.is_some() && f64::from(self.rounds) * self.small_s < 1e4;
        let mut law = DiskLaw::new(set, credit_s, 0);
        let mut now = 0;
        for _ in 0..self.rounds {
            for direction in [Direction::In, Direction::Out] {
                if direction == Direction::Out && self.is_cached {
                    continue;
                }
                for _ in 0..self.bytes.div_ceil(large) {
                    now = law.book(now, direction, large);
                }
            }
            let end = now + (self.small_s * S) as u64;
            while small_count && now < end && !self.is_cached {
                // One that is answered at once would never end.
                now = law.book(now, Direction::Out, SMALL).max(now + 1_000);
            }
            now = now.max(end);
        }
        now as f64 / S
    }
}

impl DiskLimit {
    /// What this costs here, in millionths; `None`: nothing.
    fn tokens(&self, direction: Direction, bytes: u64) -> Option<u64> {
        match self.spec.unit {
            Unit::Ops => Some(MICRO),
            Unit::Bytes if self.spec.directions.as_ref().is_none_or(|d| d.contains(&direction)) => {
                Some(bytes.saturating_mul(MICRO))
            }
            Unit::Bytes => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(credit_s: f64) -> DiskLaw {
        DiskLaw::new(&LimitSet::tier("gce-standard-20").unwrap(), Some(credit_s), 0)
    }

    /// Ops, one after the other, from `from_ns` for `s` seconds; gives how many, and the time of the last.
    fn drive(law: &mut DiskLaw, from_ns: u64, s: u64, (direction, bytes): (Direction, u64)) -> (u64, u64) {
        let (mut now, mut n) = (from_ns, 0);
        while now < from_ns + s * 1_000_000_000 {
            now = law.book(now, direction, bytes);
            n += 1;
        }
        (n, now)
    }

    #[test]
    fn all_limits_fall_at_once_when_the_credit_is_out() {
        let mut law = disk(30.0);
        let (n, now) = drive(&mut law, 0, 20, (Direction::Out, 4096));
        assert!((5990..=6001).contains(&n), "{n}");
        // 98 MB/s in requests of 1 MiB: 93.5 of them a second.
        let (n, now) = drive(&mut law, now, 5, (Direction::Out, 1 << 20));
        assert!((466..=469).contains(&n), "{n}");
        assert!((law.credit_s().unwrap() - 5.0).abs() < 0.6, "{:?}", law.credit_s());
        // Five and a half seconds of writes are left, then 13 MB/s.
        let (_, now) = drive(&mut law, now, 6, (Direction::In, 1 << 20));
        let (n, now) = drive(&mut law, now, 10, (Direction::In, 1 << 20));
        assert!((123..=127).contains(&n), "{n}");
        let (n, now) = drive(&mut law, now, 10, (Direction::Out, 1 << 20));
        assert!((57..=62).contains(&n), "{n}");
        let (n, now) = drive(&mut law, now, 10, (Direction::Out, 4096));
        assert!((800..=806).contains(&n), "{n}");
        // 100 s of rest earn two.
        let (n, _) = drive(&mut law, now + 100_000_000_000, 2, (Direction::Out, 4096));
        assert!((590..=606).contains(&n), "{n}");
    }

    #[test]
    fn rounds_take_what_the_disk_takes_for_them() {
        let set = LimitSet::tier("gce-standard-20").unwrap().scaled(4.0).unwrap();
        let ten = DiskRounds { rounds: 10, bytes: 1 << 30, small_s: 5.0, is_cached: false };
        // 1,073.7 MB: 1.99 s of writes at 540 MB/s, 2.74 s of reads at 392 MB/s, 5 s: ten times.
        let all = ten.takes_s(&set, None);
        assert!((96.0..99.0).contains(&all), "{all}");
        // Four of 9.73 s and a write of 1.99 s; 0.6 s of the credit are left, and 0.02 of each of 42 s came in. Then the fifth reads at 24 MB/s,
        // and five more take 20.65 s to write and 44.74 s to read.
        let some = ten.takes_s(&set, Some(41.5));
        let fast = 0.6 + 0.02 * 42.0;
        let fifth = 1.99 + fast + (1073.7 - fast * 392.0) / 24.0 + 5.0;
        let told = 4.0 * 9.73 + fifth + 5.0 * (20.65 + 44.74 + 5.0);
        assert!((some / told - 1.0).abs() < 0.01, "{some}, {told}");
        let cached = DiskRounds { is_cached: true, ..ten };
        let azure = LimitSet::tier("azure-standard-20").unwrap().scaled(4.0).unwrap();
        let s = cached.takes_s(&azure, None);
        assert!((144.0..148.0).contains(&s), "{s}");
    }

    #[test]
    fn without_credit_each_limit_has_its_bucket() {
        let mut law = DiskLaw::new(&LimitSet::tier("azure-premium-256").unwrap(), None, 0);
        let (n, now) = drive(&mut law, 0, 10, (Direction::Out, 512));
        // A tenth of a second of the rate was in the bucket.
        assert!((11_000..=11_120).contains(&n), "{n}");
        let (n, now) = drive(&mut law, now, 10, (Direction::Out, 1 << 20));
        assert!((855..=870).contains(&n), "{n}");
        let (n, _) = drive(&mut law, now, 10, (Direction::In, 1 << 20));
        assert!((1005..=1025).contains(&n), "{n}");
        assert_eq!(law.credit_s(), None);
    }
}
