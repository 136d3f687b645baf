//! The prototypes that the methods were validated with are the oracle: fixture by fixture within 1 %.
//!
//! Where this crate reports a better interval (its half widths cover more often), only the prototype's own half width
//! is compared: `batch_half_width`, and capacities within their interval.

use plimsoll_stats::bucket::{FitOptions, FitVerdict, fit, min_bucket};
use plimsoll_stats::math::{line, mean};
use plimsoll_stats::segment::{SegmentOptions, batch_interval, noise, segment};
use plimsoll_stats::steady::steady;
use serde_json::Value;

fn fixtures() -> Vec<Value> {
    serde_json::from_str(include_str!("fixtures/oracle.json")).expect("the fixtures are JSON")
}

fn series(f: &Value) -> (Vec<f64>, f64) {
    let x = f["x"].as_array().expect("a series").iter().map(|v| v.as_f64().expect("a number")).collect();
    (x, f["dt"].as_f64().expect("a slice"))
}

#[track_caller]
fn close(what: &str, name: &Value, got: f64, want: f64) {
    let scale = want.abs().max(1e-9);
    assert!((got - want).abs() <= 0.01 * scale, "{name}: {what} is {got}, the oracle has {want}");
}

#[test]
fn segmentation() {
    for f in fixtures() {
        let (x, dt) = series(&f);
        let s = segment(&x, dt, &SegmentOptions::default());
        let want: Vec<(usize, usize)> = f["pieces"]
            .as_array()
            .expect("pieces")
            .iter()
            .map(|p| (p[0].as_u64().expect("start") as usize, p[1].as_u64().expect("end") as usize))
            .collect();
        assert_eq!(s.pieces, want, "{}", f["name"]);
        assert_eq!(s.events.len() as u64, f["events"].as_u64().expect("events"), "{}", f["name"]);
        close("noise", &f["name"], noise(&x).0, f["noise"].as_f64().expect("noise"));
    }
}

#[test]
fn bucket_fit() {
    for f in fixtures() {
        let (x, dt) = series(&f);
        let o =
            FitOptions { in_flight: f["in_flight"].as_f64().expect("in flight"), ..FitOptions::default() };
        let got = fit(&x, dt, &o);
        let n = &f["name"];
        assert_eq!(got.verdict.name(), f["fit"].as_str().expect("verdict"), "{n}");
        if matches!(got.verdict, FitVerdict::Unsteady(_)) {
            // No rate is claimed for these.
            continue;
        }
        close("sustained", n, got.sustained, f["sustained"].as_f64().expect("sustained"));
        if let Some(burst) = f["burst"].as_f64() {
            close("burst", n, got.burst, burst);
        }
        let tiers = f["tiers"].as_array().expect("tiers");
        assert_eq!(got.tiers.len(), tiers.len(), "{n}");
        if matches!(got.verdict, FitVerdict::Undetermined(_)) {
            // Nor any capacity here: a decline has no line to read it from, and we leave out a second less after its steps.
            continue;
        }
        for (t, w) in got.tiers.iter().zip(tiers) {
            close("rate", n, t.rate, w[0].as_f64().expect("rate"));
            close("capacity", n, t.capacity, w[1].as_f64().expect("capacity"));
            close("cliff", n, t.cliff_s, w[3].as_f64().expect("cliff"));
        }
        let r = f["min_bucket_at"].as_f64().expect("rate");
        close("min_bucket", n, min_bucket(&x, dt, r), f["min_bucket"].as_f64().expect("min_bucket"));
    }
}

#[test]
fn steady_window() {
    for f in fixtures() {
        let (x, dt) = series(&f);
        let got = steady(&x, dt);
        let n = &f["name"];
        assert_eq!(got.verdict.name(), f["steady"].as_str().expect("verdict"), "{n}: {:?}", got.verdict);
        if let Some(mean) = f["mean"].as_f64() {
            close("mean", n, got.mean.expect("a mean").value, mean);
            close(
                "half width",
                n,
                got.batch_half_width.expect("a width"),
                f["batch_hw"].as_f64().expect("hw"),
            );
            close("excursion", n, got.excursion.expect("one"), f["excursion"].as_f64().expect("excursion"));
            let w = got.window.expect("a window");
            close("window", n, w.0 + 1.0, f["window"][0].as_f64().expect("start") + 1.0);
        }
        if let Some(slope) = f["slope"].as_f64() {
            close("slope", n, got.slope.expect("a slope").change, slope);
        }
    }
}

/// Series on which warp's autoterm and fio's steadystate stop before the cliff: we see both levels.
#[test]
fn traps_do_not_fool_us() {
    let traps: Vec<Value> = fixtures()
        .into_iter()
        .filter(|f| f["name"].as_str().is_some_and(|n| n.starts_with("trap")))
        .collect();
    assert!(traps.len() >= 5);
    let mut fooled_fio = 0;
    for f in traps {
        let (x, dt) = series(&f);
        let fitted = fit(&x, dt, &FitOptions::default());
        assert!(fitted.verdict.is_limiter(), "{}: {:?}", f["name"], fitted.verdict);
        assert!((fitted.sustained / 1000.0 - 1.0).abs() < 0.02, "{}: {}", f["name"], fitted.sustained);
        let s = steady(&x, dt).mean.expect("a steady window after the cliff");
        assert!((s.value / 1000.0 - 1.0).abs() < 0.02, "{}: {s:?}", f["name"]);
        // They are traps: both rules stop before the cliff (seven segments of a second within 7.5 % of the last after 15 s; a slope
        // of less than 0.3 % a second over 30 s after a ramp of 10 s).
        let cliff = fitted.tiers[0].cliff_s as usize;
        let warp =
            (16..=x.len()).find(|&t| x[t - 7..t].iter().all(|v| (v - x[t - 1]).abs() <= 0.075 * x[t - 1]));
        assert!(warp.is_some_and(|t| t < cliff), "{}: {warp:?}", f["name"]);
        let slope = |y: &[f64]| line(y).0 / mean(y);
        let fio = (40..=x.len()).find(|&t| slope(&x[t - 30..t]).abs() < 0.003);
        fooled_fio += usize::from(fio.is_some_and(|t| t < cliff));
        // Cut before the cliff, the honest answer is a bound, never a limit.
        let before = (fitted.tiers[0].cliff_s * 0.8) as usize;
        let early = fit(&x[..before], dt, &FitOptions::default());
        assert!(early.tiers.is_empty() && early.not_excluded(1000.0) > 0.0, "{}", f["name"]);
    }
    assert!(fooled_fio >= 4, "{fooled_fio}");
}

#[test]
fn batch_intervals_of_short_series() {
    assert!(batch_interval(&[1.0, 2.0], 1.0, 10.0).1.is_infinite());
    assert_eq!(batch_interval(&[5.0; 60], 1.0, 10.0), (5.0, 0.0));
}
