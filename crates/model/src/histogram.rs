//! Latency histograms: HDR's buckets (nanoseconds, three digits, 1 ns to 1 h), saturating, mergeable.
//!
//! A histogram remembers between which buckets it has counted. Merging and clearing keep to these: a worker's slice goes round ten
//! times a second, and the latencies of a workload lie in a few pages of the 66 that its counts could take. Going over all of them
//! would make each page resident, and cost a core where there are hundreds of workers.

/// The longest latency that is told apart: one hour. Longer ones count as one hour.
pub const MAX_NS: u64 = 3_600_000_000_000;
/// Three digits: values below 2048 each have a bucket; above, each octave has 1024.
const SUB_BITS: u32 = 11;
const HALF: usize = 1 << (SUB_BITS - 1);
/// Enough for one hour, which is below 2^42 ns.
const BUCKETS: usize = (42 - SUB_BITS as usize + 2) * HALF;
/// The most values that one histogram counts: quantiles are fractions of it, which are exact up to here. At a million
/// values a second it takes 285 years; only a damaged file says more.
const MAX_COUNT: u64 = 1 << 53;

/// Memory of one histogram whose values lie everywhere.
pub const BYTES: u64 = (BUCKETS * 8) as u64;

/// A histogram of nanoseconds. All have one layout, so that any two merge without loss.
pub struct Histogram {
    counts: Box<[u64]>,
    /// Outside of these buckets all counts are zero; empty: `first > last`.
    first: usize,
    last: usize,
    count: u64,
    /// Exact sum of the values, for the mean (bucket midpoints would bias it).
    sum_ns: u128,
}

/// What a series asks of its histograms: there are forms of them outside of this crate.
pub trait MergeHistogram: Clone {
    /// Adds another. Associative and commutative; counts saturate.
    fn merge(&mut self, other: &Self);
}

impl MergeHistogram for Histogram {
    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for Histogram {
    fn clone(&self) -> Self {
        let mut twin = Self::new();
        twin.merge(self);
        // Of one that is empty, too.
        twin.sum_ns = self.sum_ns;
        twin
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        (self.count, self.sum_ns, self.first, self.last)
            == (other.count, other.sum_ns, other.first, other.last)
            && self.seen() == other.seen()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Histogram({} values, p50 {} ns, max {} ns)", self.count(), self.quantile(0.5), self.max())
    }
}

/// The bucket of a value.
#[inline]
fn bucket_of(ns: u64) -> usize {
    let octave = 64 - SUB_BITS - (ns | ((1 << SUB_BITS) - 1)).leading_zeros();
    ((octave as usize) << (SUB_BITS - 1)) + (ns >> octave) as usize
}

/// The lowest and the highest value of a bucket.
fn bounds_of(bucket: usize) -> (u64, u64) {
    let octave = (bucket >> (SUB_BITS - 1)).saturating_sub(1);
    let low = ((bucket - octave * HALF) as u64) << octave;
    (low, low + (1 << octave) - 1)
}

impl Histogram {
    /// Allocates everything it will ever need (270 KB of address space, of which pages become memory as values fall in them).
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS].into_boxed_slice(), first: BUCKETS, last: 0, count: 0, sum_ns: 0 }
    }

    /// Records one value. Never allocates, never fails: values saturate at one hour.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let ns = ns.min(MAX_NS);
        self.add(bucket_of(ns), 1);
        self.sum_ns = self.sum_ns.saturating_add(u128::from(ns));
    }

    #[inline]
    fn add(&mut self, bucket: usize, count: u64) {
        self.counts[bucket] = self.counts[bucket].saturating_add(count);
        self.first = self.first.min(bucket);
        self.last = self.last.max(bucket);
        self.count = self.count.saturating_add(count);
    }

    /// Adds `count` values of one bucket at once (from a sparse form); their exact sum comes by [`Self::add_sum_ns`].
    pub fn add_bucket(&mut self, value_ns: u64, count: u64) {
        // A file can say what no run counts.
        let count = count.min(MAX_COUNT.saturating_sub(self.count()));
        if count > 0 {
            self.add(bucket_of(value_ns.min(MAX_NS)), count);
        }
    }

    /// Adds to the exact sum of the values; goes with [`Self::add_bucket`].
    pub fn add_sum_ns(&mut self, sum_ns: u128) {
        self.sum_ns = self.sum_ns.saturating_add(sum_ns);
    }

    /// As if all of the other's values had been recorded here.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.count().saturating_add(other.count()) <= MAX_COUNT {
            let mine = &mut self.counts[other.first..=other.last];
            mine.iter_mut().zip(other.seen()).for_each(|(a, b)| *a += b);
            self.first = self.first.min(other.first);
            self.last = self.last.max(other.last);
            self.count += other.count;
        } else {
            other.buckets().for_each(|(low, _, n)| self.add_bucket(low, n));
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Costs what was in use, not all buckets.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.counts[self.first..=self.last].fill(0);
            (self.first, self.last, self.count) = (BUCKETS, 0, 0);
        }
        self.sum_ns = 0;
    }

    /// The counts between the first and the last that is not zero.
    fn seen(&self) -> &[u64] {
        if self.is_empty() { &[] } else { &self.counts[self.first..=self.last] }
    }

    /// Values recorded; saturating.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Exact mean in nanoseconds; zero when empty.
    pub fn mean(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.sum_ns as f64 / self.count() as f64 }
    }

    /// Exact, unlike what is read off the buckets.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Value at quantile `q` (0 to 1), within the histogram's three digits: the highest of its bucket (at 0, the lowest); zero when
    /// empty.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((q.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let mut below = 0u64;
        for (low, high, n) in self.buckets() {
            below = below.saturating_add(n);
            if below >= rank {
                return if q == 0.0 { low } else { high };
            }
        }
        0
    }

    /// Upper bound of the last bucket in use; 0 when empty.
    pub fn max(&self) -> u64 {
        if self.is_empty() { 0 } else { bounds_of(self.last).1 }
    }

    /// Lower bound of the first bucket in use; 0 when empty.
    pub fn min(&self) -> u64 {
        if self.is_empty() { 0 } else { bounds_of(self.first).0 }
    }

    /// Standard deviation from bucket midpoints, nanoseconds.
    pub fn stdev(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let total = self.count as f64;
        let middle = |low: u64, high: u64| (low + (high - low).div_ceil(2)) as f64;
        let mean: f64 = self.buckets().map(|(low, high, n)| middle(low, high) * n as f64 / total).sum();
        let squares: f64 = self.buckets().map(|(l, h, n)| (middle(l, h) - mean).powi(2) * n as f64).sum();
        (squares / total).sqrt()
    }

    /// Non-empty buckets as (lowest value, highest value, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let counted = self.seen().iter().enumerate().filter(|(_, n)| **n > 0);
        counted.map(|(i, n)| {
            let (low, high) = bounds_of(self.first + i);
            (low, high, *n)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram as Hdr;
    use proptest::prelude::*;

    proptest! {
        /// What the reference says of the same values; clearing and merging leave nothing of what was there before.
        #[test]
        fn it_is_hdr(
            values in proptest::collection::vec((0u32..42).prop_flat_map(|b| 0..=(1u64 << b).min(MAX_NS)), 1..200),
            others in proptest::collection::vec(any::<u64>(), 0..20),
            qs in proptest::collection::vec(0.0f64..=1.0, 8),
        ) {
            let mut reference = Hdr::<u64>::new_with_bounds(1, MAX_NS, 3).unwrap();
            values.iter().for_each(|v| reference.saturating_record(*v));
            let (mut h, mut half) = (Histogram::new(), Histogram::new());
            others.iter().for_each(|v| h.record(*v));
            h.clear();
            prop_assert_eq!(&h, &Histogram::new());
            values.iter().enumerate().for_each(|(i, v)| if i % 2 == 0 { h.record(*v) } else { half.record(*v) });
            h.merge(&half);
            prop_assert_eq!((h.count(), h.min(), h.max()), (reference.len(), reference.min(), reference.max()));
            for q in qs.into_iter().chain([0.0, 0.5, 0.99, 1.0]) {
                prop_assert_eq!(h.quantile(q), reference.value_at_quantile(q), "{}", q);
            }
            prop_assert!((h.stdev() - reference.stdev()).abs() <= 1e-9 * reference.stdev().max(1.0));
            let theirs: Vec<_> = reference
                .iter_recorded()
                .map(|v| (reference.lowest_equivalent(v.value_iterated_to()), v.value_iterated_to(), v.count_at_value()))
                .collect();
            prop_assert_eq!(h.buckets().collect::<Vec<_>>(), theirs);
            prop_assert_eq!(h.sum_ns(), values.iter().map(|v| u128::from(*v)).sum::<u128>());
            prop_assert_eq!(h.clone(), h);
        }
    }

    #[test]
    fn values_saturate() {
        let mut h = Histogram::new();
        for v in [0, 1, 999, 1_000_000, 12_345_678, MAX_NS, u64::MAX] {
            h.record(v);
        }
        assert_eq!((h.count(), h.min()), (7, 0));
        assert!(h.max() >= MAX_NS && h.max() - MAX_NS < MAX_NS / 1000, "{}", h.max());
    }

    #[test]
    fn full_buckets_saturate() {
        let mut h = Histogram::new();
        h.add_bucket(1_000, u64::MAX);
        h.add_bucket(2_000_000, u64::MAX);
        h.add_sum_ns(u128::MAX);
        let twin = h.clone();
        h.merge(&twin);
        assert_eq!((h.count(), h.sum_ns(), h.quantile(1.0)), (MAX_COUNT, u128::MAX, h.max()));
        assert!(h.stdev().is_finite());
    }

    #[test]
    fn mean_is_exact() {
        let mut h = Histogram::new();
        h.record(1_000_003);
        h.record(3_000_005);
        assert_eq!(h.mean(), 2_000_004.0);
    }

    /// Pages of this process that hold something.
    fn resident_bytes() -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    #[test]
    fn what_holds_few_values_takes_few_pages() {
        let before = resident_bytes();
        let mut all: Vec<Histogram> = (0..400).map(|_| Histogram::new()).collect();
        for _ in 0..3 {
            for h in &mut all {
                (0..100).for_each(|i| h.record(80_000 + i * 500));
            }
            let mut sum = Histogram::new();
            all.iter().for_each(|h| sum.merge(h));
            assert_eq!(sum.count(), 40_000);
            all.iter_mut().for_each(Histogram::clear);
        }
        let each = (resident_bytes().saturating_sub(before)) / 400;
        assert!(each < BYTES / 4, "{each} bytes of each are resident");
    }
}
