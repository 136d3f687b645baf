//! Buckets beside stalls: the tokens of a stall come back at the burst's rate, and belong where they were earned.

use plimsoll_stats::bucket::{FitOptions, FitVerdict, fit};

fn series(parts: &[(usize, f64)]) -> Vec<f64> {
    parts.iter().flat_map(|&(n, v)| std::iter::repeat_n(v, n)).collect()
}

/// A stall just before the cliff looks like the cliff; the burst that follows it is no plateau.
#[test]
fn a_stall_before_the_cliff() {
    for (stall_s, again_s) in [(2, 3), (3, 2), (4, 2), (5, 2)] {
        let x = series(&[(20, 1000.0), (stall_s, 260.0), (again_s, 1000.0), (40, 200.0)]);
        let f = fit(&x, 1.0, &FitOptions::default());
        assert_eq!(f.verdict, FitVerdict::Bucket, "{f:?}");
        let t = f.tiers[0];
        let capacity = (20 + again_s) as f64 * 800.0 + stall_s as f64 * 60.0;
        assert!((t.rate - 200.0).abs() < 1e-9 && (t.capacity - capacity).abs() < 1e-6, "{t:?}");
        assert_eq!(t.cliff_s, (20 + stall_s + again_s) as f64);
    }
}

/// A stall just after the cliff banks tokens; once they are spent, rate and capacity are what they were.
#[test]
fn a_stall_after_the_cliff() {
    let x = series(&[(20, 1000.0), (3, 200.0), (2, 80.0), (1, 440.0), (40, 200.0)]);
    let f = fit(&x, 1.0, &FitOptions::default());
    assert_eq!(f.verdict, FitVerdict::Bucket, "{f:?}");
    let t = f.tiers[0];
    assert!((t.rate - 200.0).abs() < 1e-9 && (t.capacity - 16_000.0).abs() < 1e-6, "{t:?}");
}

/// Ops that end together leave slices empty, and few large ones do: neither hides the cliff, whatever the slice.
#[test]
fn empty_slices_hide_no_cliff() {
    for dt in [0.1, 0.2, 0.5] {
        let waves = (0..1200).map(|i| [200.0, 0.0, 100.0][i % 3]);
        let x: Vec<f64> = std::iter::repeat_n(300.0, 300).chain(waves).collect();
        let f = fit(&x, dt, &FitOptions::default());
        assert_eq!(f.verdict, FitVerdict::Bucket, "{f:?}");
        let (t, capacity) = (f.tiers[0], 200.0 * 300.0 * dt);
        assert!((t.rate - 100.0).abs() < 0.5 && (t.capacity / capacity - 1.0).abs() < 0.01, "{t:?}");
        assert!((f.burst - 300.0).abs() < 1.0 && (t.cliff_s - 300.0 * dt).abs() < 1.0, "{f:?}");
    }
}

/// A stall early in a burst whose rate wanders: the short levels around it are the burst's, however far apart they are beside
/// a cliff that is much higher.
#[test]
fn a_stall_in_a_burst_that_wanders() {
    for (first, again) in
        [((52, 4700.0), (28, 5400.0)), ((60, 4700.0), (10, 5400.0)), ((40, 6000.0), (30, 5200.0))]
    {
        let x = series(&[first, (3, 1600.0), again, (90, 770.0)]);
        let f = fit(&x, 1.0, &FitOptions::default());
        assert_eq!(f.verdict, FitVerdict::Bucket, "{:?}", f.levels);
        let (t, end) = (f.tiers[0], (first.0 + 3 + again.0) as f64);
        let work = first.0 as f64 * first.1 + 3.0 * 1600.0 + again.0 as f64 * again.1;
        assert!((t.cliff_s - end).abs() <= 1.0 && (t.rate - 770.0).abs() < 1e-9, "{t:?}");
        assert!((t.capacity / (work - 770.0 * end) - 1.0).abs() < 0.01, "{t:?}");
    }
}

/// An outage at the end is a drop of any height, and makes no two levels one.
#[test]
fn an_outage_joins_no_levels() {
    let x = series(&[(60, 4000.0), (3, 1000.0), (60, 2000.0), (30, 0.0)]);
    let f = fit(&x, 1.0, &FitOptions::default());
    assert!(f.levels.len() >= 2 && f.levels[0].end_s < 70.0, "{:?}", f.levels);
}
