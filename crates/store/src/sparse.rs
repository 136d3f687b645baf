//! A histogram as its non-empty buckets: what lies on disk, and what hours of slices fit into memory as.
//!
//! The dense form has 270 KB; a slice of 100 ms seldom fills more than a few hundred buckets.

use plimsoll_model::Histogram;
use plimsoll_model::histogram::{MAX_NS, MergeHistogram};

use crate::StoreError;
use crate::varint::{Cursor, put_u64, put_u128};

/// Non-empty buckets, ascending, with the exact sum of the values. Loses nothing against [`Histogram`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SparseHistogram {
    sum_ns: u128,
    /// (lowest value of the bucket, count).
    buckets: Vec<(u64, u64)>,
}

impl From<&Histogram> for SparseHistogram {
    fn from(h: &Histogram) -> Self {
        let buckets = h.buckets().map(|(low, _, n)| (low, n)).collect();
        Self { sum_ns: h.sum_ns(), buckets }
    }
}

impl From<&SparseHistogram> for Histogram {
    fn from(h: &SparseHistogram) -> Self {
        h.to_dense()
    }
}

impl MergeHistogram for SparseHistogram {
    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }
}

impl SparseHistogram {
    /// Values recorded; stays at the most that 64 bits hold.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |n, b| n.saturating_add(b.1))
    }

    /// Nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Exact mean in nanoseconds; zero when empty.
    pub fn mean(&self) -> f64 {
        let n = self.count();
        if n == 0 { 0.0 } else { self.sum_ns as f64 / n as f64 }
    }

    /// The highest value of the last bucket, nanoseconds: at most one bucket's width above the largest that was recorded. Zero when
    /// empty.
    pub fn max(&self) -> u64 {
        self.buckets.last().map_or(0, |b| bucket_high(b.0))
    }

    /// The same value as [`Histogram::quantile`] gives; zero when empty.
    pub fn quantile(&self, q: f64) -> u64 {
        let total = self.count();
        let wanted = ((q * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0u64;
        for (low, n) in &self.buckets {
            seen = seen.saturating_add(*n);
            if seen >= wanted {
                return bucket_high(*low);
            }
        }
        0
    }

    /// (lowest value of the bucket, nanoseconds; how often), ascending, without empty ones.
    pub fn buckets(&self) -> &[(u64, u64)] {
        &self.buckets
    }

    /// Adds another. Associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        if other.buckets.is_empty() {
            return;
        }
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
            return;
        }
        // The sum of hours against one slice: nearly all of the slice's buckets are there, and the sum is not made anew for it.
        let missing = self.add_known(&other.buckets);
        if missing.is_empty() {
            return;
        }
        // From the last on, and what lies between two of them in one piece: few are missing of many.
        let (mut end, mut free) = (self.buckets.len(), self.buckets.len() + missing.len());
        self.buckets.resize(free, (0, 0));
        for bucket in missing.into_iter().rev() {
            let at = self.buckets[..end].partition_point(|b| b.0 < bucket.0);
            free -= end - at;
            self.buckets.copy_within(at..end, free);
            free -= 1;
            self.buckets[free] = bucket;
            end = at;
        }
    }

    /// Counts the buckets that are here already; the others, ascending.
    fn add_known(&mut self, other: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut missing = Vec::new();
        let mut from = 0;
        for (low, n) in other {
            // Neighbours in a slice are seldom far apart in the sum: the step doubles until it is past.
            let mut step = 1;
            while self.buckets.get(from + step).is_some_and(|b| b.0 < *low) {
                from += step;
                step *= 2;
            }
            let end = (from + step + 1).min(self.buckets.len());
            match self.buckets[from..end].binary_search_by_key(low, |b| b.0) {
                Ok(i) => {
                    from += i;
                    self.buckets[from].1 = self.buckets[from].1.saturating_add(*n);
                }
                Err(i) => {
                    from = (from + i).min(self.buckets.len() - 1);
                    missing.push((*low, *n));
                }
            }
        }
        missing
    }

    /// Adds it into a dense histogram.
    pub fn add_to(&self, dense: &mut Histogram) {
        for (low, n) in &self.buckets {
            dense.add_bucket(*low, *n);
        }
        dense.add_sum_ns(self.sum_ns);
    }

    /// The same with all buckets, as the judge computes with it.
    pub fn to_dense(&self) -> Histogram {
        let mut h = Histogram::new();
        self.add_to(&mut h);
        h
    }

    /// Sum, number of buckets, then (distance from the last bucket, count) pairs; all LEB128.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u128(out, self.sum_ns);
        put_u64(out, self.buckets.len() as u64);
        let mut last = 0;
        for (low, n) in &self.buckets {
            put_u64(out, low - last);
            put_u64(out, *n);
            last = *low;
        }
    }

    /// Reads what [`Self::encode`] wrote; an error where the buckets are not in order, or not buckets of ours.
    pub fn decode(c: &mut Cursor<'_>) -> Result<Self, StoreError> {
        let sum_ns = c.u128("histogram sum")?;
        let n = c.count("histogram size")?;
        let mut buckets = Vec::with_capacity(n);
        let mut low = 0u64;
        for i in 0..n {
            let step = c.u64("histogram bucket")?;
            let bad = || StoreError::Record("histogram bucket");
            low = low.checked_add(step).filter(|v| *v <= MAX_NS).ok_or_else(bad)?;
            // Only the lowest value of a bucket stands for it: two steps into one bucket would be two of it.
            if (i > 0 && step == 0) || bucket_low(low) != low {
                return Err(bad());
            }
            buckets.push((low, c.u64("histogram count")?));
        }
        Ok(Self { sum_ns, buckets })
    }

    /// Passes over what [`Self::encode`] wrote.
    pub fn pass(c: &mut Cursor<'_>) -> Result<(), StoreError> {
        c.pass("histogram sum")?;
        for _ in 0..c.count("histogram size")? {
            c.pass("histogram bucket")?;
            c.pass("histogram count")?;
        }
        Ok(())
    }
}

/// Three digits: 2048 values are told apart one by one, then each doubling has 1024 buckets.
fn bucket_width_log2(value: u64) -> u32 {
    (64 - value.leading_zeros()).saturating_sub(11)
}

fn bucket_low(value: u64) -> u64 {
    let shift = bucket_width_log2(value);
    (value >> shift) << shift
}

fn bucket_high(value: u64) -> u64 {
    bucket_low(value) + (1 << bucket_width_log2(value)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dense(values: &[u64]) -> Histogram {
        let mut h = Histogram::new();
        values.iter().for_each(|v| h.record(*v));
        h
    }

    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![0u64..5000, 1_000_000u64..3_000_000, any::<u64>()], 0..60)
    }

    #[test]
    fn full_buckets_saturate() {
        let mut bytes = Vec::new();
        SparseHistogram { sum_ns: u128::MAX, buckets: vec![(1, u64::MAX), (5000 / 4 * 4, u64::MAX)] }
            .encode(&mut bytes);
        let mut h = SparseHistogram::decode(&mut Cursor::new(&bytes)).unwrap();
        h.merge(&h.clone());
        assert_eq!((h.count(), h.quantile(0.5), h.to_dense().count()), (u64::MAX, 1, 1 << 53));
        assert!(h.mean().is_finite() && h.to_dense().mean().is_finite());
    }

    #[test]
    fn one_bucket_comes_once() {
        let mut bytes = Vec::new();
        SparseHistogram { sum_ns: 9, buckets: vec![(1 << 20, 1), ((1 << 20) + 1, 1)] }.encode(&mut bytes);
        assert!(SparseHistogram::decode(&mut Cursor::new(&bytes)).is_err());
    }

    proptest! {
        #[test]
        fn loses_nothing(values in latencies()) {
            let h = dense(&values);
            let sparse = SparseHistogram::from(&h);
            let mut bytes = Vec::new();
            sparse.encode(&mut bytes);
            let back = SparseHistogram::decode(&mut Cursor::new(&bytes)).unwrap();
            prop_assert_eq!(&back, &sparse);
            prop_assert_eq!(back.to_dense(), h);
        }

        #[test]
        fn agrees_with_the_dense_form(values in latencies(), q in 0.0f64..=1.0) {
            let h = dense(&values);
            let s = SparseHistogram::from(&h);
            prop_assert_eq!(s.count(), h.count());
            prop_assert_eq!(s.max(), h.max());
            prop_assert_eq!(s.mean(), h.mean());
            prop_assert_eq!(s.quantile(q), h.quantile(q));
        }

        #[test]
        fn merge_is_associative_and_commutative(a in latencies(), b in latencies(), c in latencies()) {
            let [a, b, c] = [a, b, c].map(|v| SparseHistogram::from(&dense(&v)));
            let sum = |x: &SparseHistogram, y: &SparseHistogram| { let mut m = x.clone(); m.merge(y); m };
            prop_assert_eq!(sum(&sum(&a, &b), &c), sum(&a, &sum(&b, &c)));
            prop_assert_eq!(sum(&a, &b), sum(&b, &a));
        }

        #[test]
        fn merge_equals_dense_merge(a in latencies(), b in latencies()) {
            let (ha, hb) = (dense(&a), dense(&b));
            let mut merged = ha.clone();
            merged.merge(&hb);
            let mut s = SparseHistogram::from(&ha);
            s.merge(&SparseHistogram::from(&hb));
            prop_assert_eq!(s.to_dense(), merged);
        }

        #[test]
        fn hostile_bytes_never_panic(bytes: Vec<u8>) {
            if let Ok(h) = SparseHistogram::decode(&mut Cursor::new(&bytes)) {
                let _ = (h.quantile(0.5), h.max(), h.to_dense());
            }
        }
    }
}
