//! What fio says of one direction of a job: reads, writes or trims.

use std::collections::BTreeMap;

use plimsoll_model::summary::LatencySummary;
use serde::Deserialize;

use crate::line::latency;

/// In which units a version writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Units {
    /// 2.x: KiB, KiB/s, microseconds.
    Two,
    /// 3.x: bytes, B/s, nanoseconds.
    Three,
}

/// `read`, `write` and `trim` of a job.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Direction {
    io_bytes: u64,
    bw: f64,
    bw_bytes: Option<f64>,
    pub iops: f64,
    runtime: f64,
    total_ios: Option<u64>,
    slat_ns: Option<Times>,
    clat_ns: Option<Times>,
    lat_ns: Option<Times>,
    slat: Option<Times>,
    clat: Option<Times>,
    lat: Option<Times>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Times {
    min: f64,
    max: f64,
    mean: f64,
    #[serde(rename = "N")]
    n: Option<u64>,
    percentile: BTreeMap<String, f64>,
    bins: BTreeMap<String, u64>,
}

/// Latencies of a line.
pub(super) struct LineTimes {
    pub response: Option<LatencySummary>,
    pub submission: Option<LatencySummary>,
    pub note: Option<String>,
}

impl Direction {
    pub fn is_used(&self) -> bool {
        self.runtime > 0.0 && (self.io_bytes > 0 || self.iops > 0.0)
    }

    pub fn has_bins(&self) -> bool {
        let all = [&self.clat_ns, &self.lat_ns, &self.clat, &self.lat];
        all.into_iter().flatten().any(|t| !t.bins.is_empty())
    }

    pub fn seconds(&self) -> f64 {
        self.runtime / 1000.0
    }

    pub fn bytes(&self, units: Units) -> u64 {
        match units {
            Units::Two => self.io_bytes.saturating_mul(1024),
            Units::Three => self.io_bytes,
        }
    }

    pub fn bytes_per_s(&self, units: Units) -> f64 {
        match (units, self.bw_bytes) {
            (Units::Three, Some(bytes)) => bytes,
            _ => self.bw * 1024.0,
        }
    }

    /// Where an old file does not count them: rate times time.
    pub fn ops(&self, _units: Units) -> u64 {
        self.total_ios.unwrap_or((self.iops * self.seconds()).round().max(0.0) as u64)
    }

    /// Of its ops.
    pub fn mean_size(&self, units: Units) -> u64 {
        self.bytes(units).checked_div(self.ops(units)).unwrap_or(0)
    }

    /// The times that the percentiles are of: completion as a rule, all of it with `lat_percentiles=1`.
    pub fn times(&self, units: Units) -> LineTimes {
        let (scale, slat, clat, lat) = match units {
            Units::Two => (1000.0, &self.slat, &self.clat, &self.lat),
            Units::Three => (1.0, &self.slat_ns, &self.clat_ns, &self.lat_ns),
        };
        let ops = self.ops(units);
        let of = |t: &Option<Times>| t.as_ref().and_then(|t| t.summary(ops, scale));
        let knows = |t: &Option<Times>| {
            t.as_ref().is_some_and(|t| t.percentile.values().any(|v| *v > 0.0) || !t.bins.is_empty())
        };
        let is_whole = knows(lat) || !knows(clat) && of(clat).is_none();
        let mean = lat.as_ref().map(|t| t.mean * scale / 1000.0);
        let note = match (is_whole, mean) {
            (false, Some(us)) if us > 0.0 => Some(format!(
                "times are fio's clat, from the end of submission; with submission (lat) the mean is {us:.2} us"
            )),
            (false, _) => Some("times are fio's clat, from the end of submission".to_owned()),
            (true, _) => None,
        };
        let response = if is_whole { of(lat) } else { of(clat) };
        LineTimes { note: note.filter(|_| response.is_some()), response, submission: of(slat) }
    }
}

impl Times {
    /// `scale`: nanoseconds in one of its units.
    fn summary(&self, ops: u64, scale: f64) -> Option<LatencySummary> {
        let count = self.n.unwrap_or(ops);
        let printed: Vec<(f64, f64)> = self
            .percentile
            .iter()
            .filter_map(|(share, v)| Some((share.parse::<f64>().ok()?, *v)))
            .filter(|(share, _)| *share > 0.0)
            .collect();
        let bins = self.buckets();
        let at = |q: f64| {
            let known = printed.iter().find(|(share, _)| (share - 100.0 * q).abs() < 1e-4);
            known.map(|(_, v)| v * scale).or_else(|| Some(quantile(&bins, q)? * scale))
        };
        latency(count, self.mean * scale, (self.min * scale, self.max * scale), at)
    }

    /// (value, how often) of json+, ascending.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let mut all: Vec<(f64, u64)> =
            self.bins.iter().filter_map(|(v, n)| Some((v.parse().ok()?, *n))).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all
    }
}

fn quantile(bins: &[(f64, u64)], q: f64) -> Option<f64> {
    let all: u64 = bins.iter().map(|b| b.1).fold(0, u64::saturating_add);
    let wanted = ((all as f64 * q).ceil() as u64).max(1);
    let mut seen = 0u64;
    bins.iter()
        .find(|(_, n)| {
            seen = seen.saturating_add(*n);
            seen >= wanted
        })
        .map(|(v, _)| *v)
}
