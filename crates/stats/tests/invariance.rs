//! A verdict belongs to the data: the same for the same series, scaled with it, shifted with it, and not changed by how
//! the work was spread over workers. And no series at all makes a method panic or answer NaN.

use plimsoll_stats::bucket::{FitOptions, fit};
use plimsoll_stats::steady::steady;
use proptest::prelude::*;
use serde_json::Value;

fn fixtures() -> Vec<(String, Vec<f64>, f64)> {
    let all: Vec<Value> =
        serde_json::from_str(include_str!("fixtures/oracle.json")).expect("the fixtures are JSON");
    all.iter()
        .map(|f| {
            let x =
                f["x"].as_array().expect("a series").iter().map(|v| v.as_f64().expect("a number")).collect();
            (f["name"].to_string(), x, f["dt"].as_f64().expect("a slice"))
        })
        .collect()
}

#[test]
fn the_same_series_has_the_same_verdict() {
    for (name, x, dt) in fixtures() {
        assert_eq!(fit(&x, dt, &FitOptions::default()), fit(&x, dt, &FitOptions::default()), "{name}");
        assert_eq!(steady(&x, dt), steady(&x, dt), "{name}");
    }
}

#[test]
fn scaling_scales() {
    for (name, x, dt) in fixtures() {
        for k in [0.125, 4096.0] {
            let y: Vec<f64> = x.iter().map(|v| v * k).collect();
            let (a, b) = (fit(&x, dt, &FitOptions::default()), fit(&y, dt, &FitOptions::default()));
            assert_eq!(a.verdict, b.verdict, "{name}");
            assert!((b.sustained / (a.sustained * k) - 1.0).abs() < 1e-6, "{name}");
            for (s, t) in a.tiers.iter().zip(&b.tiers) {
                assert!((t.capacity - s.capacity * k).abs() < 1e-6 * (s.capacity.abs() * k).max(k), "{name}");
                assert_eq!(s.cliff_s, t.cliff_s, "{name}");
            }
            assert_eq!(steady(&x, dt).verdict.name(), steady(&y, dt).verdict.name(), "{name}");
        }
    }
}

/// Work split over two workers at random, and added again.
#[test]
fn merging_keeps() {
    for (i, (name, x, dt)) in fixtures().into_iter().enumerate() {
        let mut rng = plimsoll_stats::rng::Rng::new(i as u64);
        let one: Vec<f64> = x.iter().map(|v| (v * rng.uniform()).floor()).collect();
        let two: Vec<f64> = x.iter().zip(&one).map(|(v, a)| v - a).collect();
        let sum: Vec<f64> = one.iter().zip(&two).map(|(a, b)| a + b).collect();
        assert_eq!(fit(&sum, dt, &FitOptions::default()), fit(&x, dt, &FitOptions::default()), "{name}");
    }
}

/// Starting to look later moves the cliff by as much, lowers the capacity by what had been used, and leaves the rate.
#[test]
fn shifting_shifts() {
    let mut tried = 0;
    for (name, x, dt) in fixtures() {
        let a = fit(&x, dt, &FitOptions::default());
        let Some(t) =
            a.tiers.first().filter(|t| a.tiers.len() == 1 && a.verdict.is_limiter() && t.cliff_s > 30.0)
        else {
            continue;
        };
        let k = (5.0 / dt) as usize;
        let b = fit(&x[k..], dt, &FitOptions::default());
        assert_eq!(a.verdict, b.verdict, "{name}");
        let s = b.tiers[0];
        assert!((t.cliff_s - 5.0 - s.cliff_s).abs() <= 2.0 + dt, "{name}: {} {}", t.cliff_s, s.cliff_s);
        assert!((s.rate / t.rate - 1.0).abs() < 0.01, "{name}");
        let used: f64 = x[..k].iter().map(|v| (v - t.rate) * dt).sum();
        assert!(
            (t.capacity - used - s.capacity).abs() < 0.03 * t.capacity,
            "{name}: {} {}",
            t.capacity - used,
            s.capacity
        );
        tried += 1;
    }
    assert!(tried >= 10, "{tried}");
}

#[test]
fn poor_series_have_a_reason() {
    let nan = [f64::NAN; 30];
    for x in [&[][..], &[5.0], &[0.0; 100], &nan, &[1.0, 2.0, 3.0], &[f64::INFINITY; 50]] {
        let f = fit(x, 1.0, &FitOptions::default());
        assert!(f.tiers.is_empty() && f.verdict.name() == "undetermined", "{x:?}: {f:?}");
        assert_eq!(steady(x, 1.0).verdict.name(), "undetermined", "{x:?}");
    }
    assert_eq!(steady(&[800.0; 300], 1.0).verdict.name(), "steady");
    assert_eq!(fit(&[800.0; 300], 1.0, &FitOptions::default()).verdict.name(), "no-cliff");
    assert_eq!(steady(&[800.0; 30], 0.0).verdict.name(), "undetermined");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_series_has_a_finite_answer(
        x in proptest::collection::vec(prop_oneof![Just(0.0), 0.0f64..1e6, 500.0f64..600.0], 0..400),
        dt in prop_oneof![Just(0.1), Just(0.25), Just(1.0)],
    ) {
        let f = fit(&x, dt, &FitOptions::default());
        prop_assert!(f.sustained.is_finite() && f.drift.is_finite() && f.burst.is_finite());
        for t in &f.tiers {
            prop_assert!(t.rate.is_finite() && t.capacity.is_finite());
        }
        let s = steady(&x, dt);
        prop_assert!(s.mean.is_none_or(|e| e.value.is_finite() && !e.low.is_nan()));
        prop_assert!(s.slope.is_none_or(|l| !l.change.is_nan()));
    }
}
