//! Latency histograms: HDR, nanoseconds, three digits, 1 ns to 1 h, saturating, mergeable.

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// The longest latency that is told apart: one hour. Longer ones count as one hour.
pub const MAX_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;
/// The most values that one histogram counts: quantiles are fractions of it, which are exact up to here. At a million
/// values a second it takes 285 years; only a damaged file says more.
const MAX_COUNT: u64 = 1 << 53;

/// Memory of one histogram, about.
pub const BYTES: u64 = 270 << 10;

/// A histogram of nanoseconds. All have one layout, so that any two merge without loss.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    inner: Hdr<u64>,
    /// Exact sum of the values, for the mean (bucket midpoints would bias it).
    sum_ns: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Histogram({} values, p50 {} ns, max {} ns)", self.count(), self.quantile(0.5), self.max())
    }
}

impl Histogram {
    /// Allocates everything it will ever need (about 270 KB).
    pub fn new() -> Self {
        let inner = Hdr::new_with_bounds(1, MAX_NS, DIGITS).expect("constant bounds are valid");
        Self { inner, sum_ns: 0 }
    }

    /// Records one value. Never allocates, never fails: values saturate at one hour.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.inner.saturating_record(ns);
        self.sum_ns = self.sum_ns.saturating_add(u128::from(ns.min(MAX_NS)));
    }

    /// Adds `count` values of one bucket at once (from a sparse form); their exact sum comes by [`Self::add_sum_ns`].
    pub fn add_bucket(&mut self, value_ns: u64, count: u64) {
        // A file can say what no run counts.
        let count = count.min(MAX_COUNT.saturating_sub(self.count()));
        if count > 0 {
            self.inner.saturating_record_n(value_ns, count);
        }
    }

    /// Adds to the exact sum of the values; goes with [`Self::add_bucket`].
    pub fn add_sum_ns(&mut self, sum_ns: u128) {
        self.sum_ns = self.sum_ns.saturating_add(sum_ns);
    }

    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.count().saturating_add(other.count()) <= MAX_COUNT {
            self.inner.add(&other.inner).expect("all histograms have one layout");
        } else {
            other.buckets().for_each(|(low, _, n)| self.add_bucket(low, n));
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.inner.reset();
        }
        self.sum_ns = 0;
    }

    pub fn count(&self) -> u64 {
        self.inner.len()
    }

    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Exact mean in nanoseconds; zero when empty.
    pub fn mean(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.sum_ns as f64 / self.count() as f64 }
    }

    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Value at quantile `q` (0 to 1), within the histogram's three digits; zero when empty.
    pub fn quantile(&self, q: f64) -> u64 {
        if self.is_empty() { 0 } else { self.inner.value_at_quantile(q).min(self.max()) }
    }

    pub fn max(&self) -> u64 {
        if self.is_empty() { 0 } else { self.inner.max() }
    }

    pub fn min(&self) -> u64 {
        if self.is_empty() { 0 } else { self.inner.min() }
    }

    /// Standard deviation from bucket midpoints, nanoseconds.
    pub fn stdev(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.inner.stdev() }
    }

    /// Non-empty buckets as (lowest value, highest value, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.inner.iter_recorded().map(|v| {
            let high = v.value_iterated_to();
            (self.inner.lowest_equivalent(high), high, v.count_at_value())
        })
    }

    /// Sparse bytes: HDR's V2 encoding after the exact sum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.sum_ns.to_le_bytes().to_vec();
        V2Serializer::new().serialize(&self.inner, &mut out).expect("writing to memory does not fail");
        out
    }

    /// Reads what [`Self::to_bytes`] wrote; `None` when it is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (sum, mut rest) = bytes.split_first_chunk::<16>()?;
        let read: Hdr<u64> = Deserializer::new().deserialize(&mut rest).ok()?;
        let mut h = Self::new();
        read.iter_recorded().for_each(|v| h.add_bucket(v.value_iterated_to(), v.count_at_value()));
        h.sum_ns = u128::from_le_bytes(*sum);
        Some(h)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_saturation() {
        let mut h = Histogram::new();
        for v in [0, 1, 999, 1_000_000, 12_345_678, MAX_NS, u64::MAX] {
            h.record(v);
        }
        assert_eq!(h.count(), 7);
        assert_eq!(Histogram::from_bytes(&h.to_bytes()).unwrap(), h);
        assert!(Histogram::from_bytes(&h.to_bytes()[..20]).is_none());
    }

    #[test]
    fn full_buckets_saturate() {
        let mut h = Histogram::new();
        h.add_bucket(1_000, u64::MAX);
        h.add_bucket(2_000_000, u64::MAX);
        h.add_sum_ns(u128::MAX);
        let twin = h.clone();
        h.merge(&twin);
        assert_eq!(Histogram::from_bytes(&h.to_bytes()).unwrap(), h);
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
}
