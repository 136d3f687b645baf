//! Latencies of a line: all its ops merged, and how exactly each percentile is known from how its stretches of time differ.

use plimsoll_model::summary::{Latencies, LatencySummary, PercentileIntervals};
use plimsoll_model::{Estimate, Histogram, OpKind, Series};
use plimsoll_stats::percentile::{self, Block};
use plimsoll_store::{SparseHistogram, SparseSeries};

use super::part::Part;

/// Picks one clock of a series, whole and in a stretch.
struct Clock {
    whole: fn(&Series) -> Option<&Histogram>,
    part: fn(&SparseSeries) -> Option<&SparseHistogram>,
}

const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Of one kind of op, or of all; `series`: those of all the parts.
pub fn of_parts(parts: &[Part<'_>], kind: Option<OpKind>, series: &[&Series]) -> Latencies {
    let of = |clock: Clock| {
        let mut sum: Option<Histogram> = None;
        for h in series.iter().filter_map(|s| (clock.whole)(s)) {
            sum.get_or_insert_with(Histogram::new).merge(h);
        }
        let all = sum?;
        let mut summary = LatencySummary::of(&all)?;
        summary.intervals = intervals((parts, kind), &summary, &all, clock.part);
        Some(summary)
    };
    Latencies {
        response: of(Clock { whole: |s| Some(&s.response), part: |s| Some(&s.response) }),
        // In a closed loop response is service, and is recorded once.
        service: of(Clock {
            whole: |s| Some(s.service.as_ref().unwrap_or(&s.response)),
            part: |s| Some(s.service.as_ref().unwrap_or(&s.response)),
        }),
        ttfb: of(Clock { whole: |s| s.first_byte.as_ref(), part: |s| s.first_byte.as_ref() }),
        submission: of(Clock { whole: |s| s.submission.as_ref(), part: |s| s.submission.as_ref() }),
    }
}

fn intervals(
    (parts, kind): (&[Part<'_>], Option<OpKind>),
    l: &LatencySummary,
    all: &Histogram,
    part: fn(&SparseSeries) -> Option<&SparseHistogram>,
) -> PercentileIntervals {
    let told = [l.p50, l.p90, l.p99, l.p999];
    let counted = |q: f64| {
        let at = all.quantile(q);
        let runs = parts.iter().map(|p| {
            p.blocks(kind).map(|series| {
                let mut b = Block::default();
                for h in series.into_iter().filter_map(part) {
                    for (low, n) in h.buckets() {
                        b.ops += *n as f64;
                        b.beyond += if *low > at { *n as f64 } else { 0.0 };
                    }
                }
                b
            })
        });
        (q, runs.map(Iterator::collect).collect::<Vec<Vec<Block>>>())
    };
    let shares = percentile::all_shares(QUANTILES.map(counted));
    let buckets: Vec<(u64, u64, u64)> = all.buckets().collect();
    let beyond = |share: f64| {
        let bucket = bucket_beyond(&buckets, share * all.count() as f64);
        (bucket.0 as f64, bucket.1.min(all.max()) as f64)
    };
    let one =
        |i: usize| -> Option<Estimate> { Some(percentile::interval(told[i]? as f64, &shares[i]?, beyond)) };
    PercentileIntervals { p50: one(0), p90: one(1), p99: one(2), p999: one(3) }
}

/// Lowest and highest value of the bucket beyond which so many ops lie.
fn bucket_beyond(buckets: &[(u64, u64, u64)], ops: f64) -> (u64, u64) {
    let mut above = 0.0;
    for (low, high, n) in buckets.iter().rev() {
        above += *n as f64;
        if above > ops {
            return (*low, *high);
        }
    }
    buckets.first().map_or((0, 0), |b| (b.0, b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_beyond_is_found_in_its_bucket() {
        let buckets = [(1, 1, 50), (10, 11, 40), (100, 103, 10)];
        assert_eq!(bucket_beyond(&buckets, 5.0), (100, 103));
        assert_eq!(bucket_beyond(&buckets, 10.0), (10, 11));
        assert_eq!(bucket_beyond(&buckets, 60.0), (1, 1));
        assert_eq!(bucket_beyond(&buckets, 1000.0), (1, 1));
        assert_eq!(bucket_beyond(&[], 1.0), (0, 0));
    }
}
