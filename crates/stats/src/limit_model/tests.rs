//! Caps and knee come back from cells that were made with them, and thin data gives bounds or a reason.

use super::*;

fn cells(theta: Theta, p: f64, cv: f64, seed: u64) -> Vec<MeasuredCell> {
    let knee = (theta.0[1] - theta.0[0]).exp();
    let top = ((theta.0[0] + theta.0[2]).exp() * 4.0).max(64.0).round();
    let mut rng = Rng::new(seed);
    let mut out = Vec::new();
    for size in sizes_around(knee) {
        for c in [1.0, (top / 8.0).round().max(4.0), top] {
            let y = theta.log_rate(size as f64, c, p);
            let ops_per_s = (0..3).map(|_| (y + cv * rng.normal()).exp()).collect();
            out.push(MeasuredCell { size_bytes: size as f64, concurrency: c, ops_per_s });
        }
    }
    out
}

fn theta() -> Theta {
    Theta([2000f64.ln(), 400e6f64.ln(), 0.004f64.ln(), 80e6f64.ln()])
}

#[test]
fn independent_limiters() {
    let m = analyse(&cells(theta(), 64.0, 0.02, 1), LimitModelOptions::default());
    let m = m.known().expect("a model");
    let ops = m.ops_cap.value().expect("an ops cap");
    assert!((ops.value / 2000.0 - 1.0).abs() < 0.03 && ops.contains(2000.0), "{ops:?}");
    let knee = m.knee_bytes.expect("a knee");
    assert!((knee.value / 200_000.0 - 1.0).abs() < 0.05 && knee.contains(200_000.0), "{knee:?}");
    assert!(m.exponents.0 >= 5.0 && m.reading().contains("policy"));
    assert_eq!(analyse(&cells(theta(), 64.0, 0.02, 1), LimitModelOptions::default()).known(), Some(m));
    // The top concurrency at the smallest and largest size run into the caps; one at a time, latency does.
    assert_eq!((m.cells[2].binding, m.cells[23].binding), (CellBinding::Ops, CellBinding::Bytes));
    assert_eq!(m.cells[0].binding, CellBinding::Latency);
}

#[test]
fn one_shared_resource() {
    let m = analyse(&cells(theta(), 1.0, 0.01, 2), LimitModelOptions { bootstrap: 60, seed: 0 });
    let m = m.known().expect("a model");
    assert!(m.exponents.1 <= 2.0 && m.reading().contains("one resource"), "{:?}", m.exponents);
}

#[test]
fn caps_that_no_cell_reaches_are_bounds() {
    let mut c = cells(theta(), 64.0, 0.02, 3);
    c.retain(|c| c.concurrency < 2.0);
    let m = analyse(&c, LimitModelOptions { bootstrap: 40, seed: 0 });
    let m = m.known().expect("a model");
    assert!(m.knee_bytes.is_none() && m.ops_cap.value().is_none(), "{m:?}");
}

#[test]
fn thin_or_broken_data_has_a_reason() {
    let one = |n: f64| MeasuredCell { size_bytes: 4096.0, concurrency: 8.0, ops_per_s: vec![n] };
    for cells in [vec![], vec![one(1.0); 20], vec![one(0.0); 20], vec![one(f64::NAN); 20]] {
        assert!(analyse(&cells, LimitModelOptions::default()).known().is_none());
    }
}
