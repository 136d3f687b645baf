//! What fio says of one direction (reads, writes) of a job.

use std::collections::BTreeMap;

use plimsoll_model::{Histogram, Series};

use super::plat;

/// A latency distribution as fio reports it; nanoseconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Latency {
    /// How many.
    pub n: u64,
    /// 0: there was none.
    pub min: u64,
    /// 0: there was none.
    pub max: u64,
    /// 0: there was none.
    pub mean: f64,
    /// 0: there was none.
    pub stddev: f64,
    /// Counts by number of fio's bin.
    bins: BTreeMap<u64, u64>,
}

impl Latency {
    /// As it is: nothing is taken off.
    pub fn of(h: &Histogram) -> Self {
        Self::shifted(h, 0.0)
    }

    /// The distribution of `h` with each value lower by `by_ns`.
    ///
    /// Completion latency is total less submission. Of each op only both distributions are kept, so the mean
    /// is exact, and the shape is that of the total (submission is a small part of it).
    pub fn shifted(h: &Histogram, by_ns: f64) -> Self {
        if h.is_empty() {
            return Self::default();
        }
        // An op that took less than twice the mean submission was itself submitted faster: half of it is left.
        let lower = |v: u64| (v as f64 - by_ns.min(v as f64 / 2.0)).max(1.0).round() as u64;
        let mut bins = BTreeMap::new();
        for (low, high, n) in h.buckets() {
            *bins.entry(plat::index(lower(low + (high - low) / 2))).or_insert(0) += n;
        }
        Self {
            n: h.count(),
            min: lower(h.min()),
            max: lower(h.max()),
            mean: (h.mean() - by_ns).max(0.0),
            stddev: h.stdev(),
            bins,
        }
    }

    /// (middle of the bin in nanoseconds, count), ascending.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.iter().map(|(i, n)| (plat::value(*i), *n))
    }

    /// The value of the first bin by which `percent` of all have been seen: fio's rule.
    pub fn percentile(&self, percent: f64) -> u64 {
        let mut seen = 0;
        for (i, n) in &self.bins {
            seen += n;
            if seen as f64 >= percent / 100.0 * self.n as f64 {
                return plat::value(*i);
            }
        }
        self.max
    }

    /// Count of latencies in `[from, to)` nanoseconds, by the middle of their bin.
    pub fn between(&self, from: u64, to: u64) -> u64 {
        self.bins().filter(|(v, _)| (from..to).contains(v)).map(|(_, n)| n).sum()
    }
}

/// Mean and spread of samples over time: of rates.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub stddev: f64,
    pub samples: u64,
}

impl Spread {
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(0.0, f64::max),
            mean,
            stddev: if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 },
            samples: values.len() as u64,
        }
    }
}

/// Reads, or writes, of a job or group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Direction {
    /// Payload of ops that ended well.
    pub io_bytes: u64,
    /// Ops that ended well.
    pub total_ios: u64,
    /// Failed or cut short: in no rate.
    pub failed_ios: u64,
    /// Ended well with fewer bytes than were asked for.
    pub short_ios: u64,
    /// Of the longest of its jobs, for rates.
    pub runtime_ms: u64,
    /// Submission: until the ring has taken it.
    pub slat: Latency,
    /// Completion: from there on.
    pub clat: Latency,
    /// Both together.
    pub lat: Latency,
    /// Bytes and ops per second, of steps of half a second; all clones added up.
    pub byte_rates: Vec<f64>,
    /// As `byte_rates` are, in ops.
    pub op_rates: Vec<f64>,
}

impl Direction {
    /// Of the merged series of all clones.
    pub fn of(series: &Series, runtime_ms: u64) -> Self {
        // fio's total counts from the submission: our service time, which is the response in a closed loop.
        let total = series.service.as_ref().unwrap_or(&series.response);
        let slat = series.submission.as_ref().map(Latency::of).unwrap_or_default();
        Self {
            io_bytes: series.counts.bytes_ok,
            total_ios: series.ok(),
            failed_ios: series.failed(),
            short_ios: series.counts.outcomes[plimsoll_model::Outcome::ShortBody.index()],
            runtime_ms: if series.ok() > 0 { runtime_ms.max(1) } else { 0 },
            clat: Latency::shifted(total, slat.mean),
            lat: Latency::of(total),
            slat,
            byte_rates: Vec::new(),
            op_rates: Vec::new(),
        }
    }

    /// 0 without run time.
    pub fn bytes_per_s(&self) -> f64 {
        per_second(self.io_bytes, self.runtime_ms)
    }

    /// Ops per second; 0 without run time.
    pub fn iops(&self) -> f64 {
        per_second(self.total_ios, self.runtime_ms)
    }

    /// KiB/s over time.
    pub fn bandwidth(&self) -> Spread {
        let kib: Vec<f64> = self.byte_rates.iter().map(|b| b / 1024.0).collect();
        Spread::of(&kib)
    }
}

fn per_second(n: u64, ms: u64) -> f64 {
    if ms == 0 { 0.0 } else { n as f64 * 1000.0 / ms as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_by_fio_s_rule() {
        let mut h = Histogram::new();
        (1..=100).for_each(|i| h.record(i));
        let l = Latency::of(&h);
        assert_eq!((l.percentile(50.0), l.percentile(99.0), l.percentile(100.0)), (50, 99, 100));
        assert_eq!((l.n, l.between(1, 11)), (100, 10));
        assert_eq!(Latency::default().percentile(50.0), 0);
    }

    #[test]
    fn completion_is_total_less_submission() {
        let mut h = Histogram::new();
        (0..1000).for_each(|i| h.record(100_000 + i * 100));
        let (total, completion) = (Latency::of(&h), Latency::shifted(&h, 10_000.0));
        assert!((total.mean - completion.mean - 10_000.0).abs() < 1e-6);
        assert_eq!(completion.n, 1000);
        let d = total.percentile(50.0) as f64 - completion.percentile(50.0) as f64;
        assert!((d - 10_000.0).abs() < 2500.0, "{d}");
    }

    #[test]
    fn spread_of_samples() {
        let s = Spread::of(&[1.0, 2.0, 3.0]);
        assert_eq!((s.min, s.max, s.mean, s.stddev, s.samples), (1.0, 3.0, 2.0, 1.0, 3));
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
