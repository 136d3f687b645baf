//! (a) steady windows: warm-ups, declines, cliffs, and the rules of warp and fio on the same series.

use plimsoll_stats::math;
use plimsoll_stats::rng::Rng;
use plimsoll_stats::simulate::System;
use plimsoll_stats::simulate::events::ops_bucket;
use plimsoll_stats::steady::{SteadyVerdict, steady};

use super::Settings;
use super::passive::{fluid, load};
use super::score::{COVERAGE, Goal, ScoreRow};

/// First-order autoregression with unit variance and correlation time `tau`, in samples.
pub fn noise(g: &mut Rng, n: usize, tau: f64) -> Vec<f64> {
    let a = (-1.0 / tau).exp();
    let q = (1.0 - a * a).sqrt();
    let mut z = g.normal();
    (0..n)
        .map(|_| {
            z = a * z + q * g.normal();
            z
        })
        .collect()
}

/// Verdict, whether the interval covers, and its relative half width.
fn warm_up(seed: u64) -> (SteadyVerdict, Option<(bool, f64)>) {
    let mut g = Rng::new(seed);
    let (cv, tau) = (g.between(0.01, 0.08), g.log_between(0.5, 10.0));
    let n = g.log_between(120.0, 900.0) as usize;
    let (w, depth) = (g.log_between(2.0, 40.0), g.between(0.0, 0.5));
    let z = noise(&mut g, n, tau);
    let x: Vec<f64> = (0..n)
        .map(|i| (1000.0 * (1.0 + cv * z[i]) * (1.0 - depth * (-(i as f64) / w).exp())).max(0.0))
        .collect();
    let s = steady(&x, 1.0);
    let seen = s
        .mean
        .filter(|_| s.verdict == SteadyVerdict::Steady)
        .map(|e| (e.contains(1000.0), e.relative_half_width()));
    (s.verdict, seen)
}

fn decline(seed: u64, by: f64) -> SteadyVerdict {
    let mut g = Rng::new(seed);
    let n = g.log_between(180.0, 900.0) as usize;
    let (cv, tau) = (g.between(0.01, 0.05), g.log_between(0.5, 5.0));
    let z = noise(&mut g, n, tau);
    let x: Vec<f64> = (0..n).map(|i| 1000.0 * (1.0 + cv * z[i]) * (1.0 - by * i as f64 / n as f64)).collect();
    steady(&x, 1.0).verdict
}

#[derive(Clone)]
struct Cliff {
    warp_early: bool,
    fio_early: bool,
    right: bool,
}

fn cliff(seed: u64) -> Cliff {
    let mut g = Rng::new(seed);
    let (t, ratio, r) = (g.log_between(30.0, 1200.0), g.log_between(1.3, 5.0), 1000.0);
    let mut s = fluid(seed ^ 0xabcd, r * ratio);
    s.buckets = vec![ops_bucket(r, (ratio - 1.0) * r * t)];
    s.cv = g.between(0.01, 0.05);
    s.tau_s = g.log_between(1.0, 6.0);
    let x = s.run(&load((t + 120.0).floor())).ops_per_s;
    let st = steady(&x, 1.0);
    Cliff {
        warp_early: warp(&x).is_some_and(|at| (at as f64) < t),
        fio_early: fio(&x).is_some_and(|at| (at as f64) < t),
        right: st.verdict == SteadyVerdict::Steady
            && st.mean.is_some_and(|e| (e.value / r - 1.0).abs() < 0.05),
    }
}

/// warp's autoterm: after 15 s, seven one-second segments within 7.5 % of the last.
fn warp(x: &[f64]) -> Option<usize> {
    (16..=x.len()).find(|&t| {
        let last = x[t - 1];
        x[t - 7..t - 1].iter().all(|v| (v - last).abs() <= 0.075 * last)
    })
}

/// fio's `ss=bw_slope:0.3%` over 30 s after a ramp of 10 s.
fn fio(x: &[f64]) -> Option<usize> {
    (40..=x.len()).find(|&t| {
        let y = &x[t - 30..t];
        (math::line(y).0 / math::mean(y)).abs() < 0.003
    })
}

pub fn rows(s: &Settings) -> Vec<ScoreRow> {
    let mut out = Vec::new();
    let all = s.each(10, s.systems(2000), warm_up);
    let count = |name: &str| all.iter().filter(|v| v.0.name() == name).count();
    out.push(ScoreRow::share(
        "steady window: stationary after a warm-up, called steady",
        count("steady"),
        all.len(),
        Goal::None,
    ));
    out.push(ScoreRow::shown(
        "– otherwise called",
        ["drifting", "unstable", "undetermined"].map(|n| format!("{n} {}", count(n))).join(", "),
    ));
    let seen: Vec<(bool, f64)> = all.iter().filter_map(|v| v.1).collect();
    out.push(ScoreRow::share(
        "– 95 % interval of the mean covers",
        seen.iter().filter(|v| v.0).count(),
        seen.len(),
        COVERAGE,
    ));
    out.push(ScoreRow::error(
        "– half width of that interval",
        &seen.iter().map(|v| v.1).collect::<Vec<_>>(),
        None,
    ));
    for (i, by) in [0.15, 0.30, 0.60].into_iter().enumerate() {
        let v = s.each(11 + i as u64, s.systems(400), |seed| decline(seed, by));
        let wrong = v.iter().filter(|v| **v == SteadyVerdict::Steady).count();
        let goal = if by > 0.2 { Goal::AtMost(0.0) } else { Goal::AtMost(0.02) };
        out.push(ScoreRow::share(
            format!("steady window: decline of {:.0} % called steady", 100.0 * by),
            wrong,
            v.len(),
            goal,
        ));
    }
    let v = s.each(14, s.systems(300), cliff);
    let n = |f: &dyn Fn(&Cliff) -> bool| v.iter().filter(|c| f(c)).count();
    out.push(ScoreRow::share(
        "a cliff at 30 s to 20 min: warp's autoterm stops before it",
        n(&|c| c.warp_early),
        v.len(),
        Goal::None,
    ));
    out.push(ScoreRow::share(
        "– fio's bw_slope:0.3% stops before it",
        n(&|c| c.fio_early),
        v.len(),
        Goal::None,
    ));
    out.push(ScoreRow::share(
        "– our steady window is the sustained rate within 5 %",
        n(&|c| c.right),
        v.len(),
        Goal::AtLeast(0.99),
    ));
    out
}
