//! (f) saturation search against MinIO's autotune rule, (g) scaling, (h) stopping rules.

use plimsoll_stats::compare::{MIN_RUNS, TARGET_HALF_WIDTH, abba, compare};
use plimsoll_stats::math;
use plimsoll_stats::rng::Rng;
use plimsoll_stats::saturation::{
    SaturationAction, SaturationObservation, SaturationOptions, SaturationSearch,
};
use plimsoll_stats::scale::{self, ScaleSize, scaling};

use super::Settings;
use super::score::{Goal, ScoreRow, percent};

/// Throughput over concurrency: soft, hard, or falling again.
struct Curve {
    half: f64,
    hard: bool,
    beta: f64,
    max: f64,
    c95: f64,
}

impl Curve {
    fn new(g: &mut Rng) -> Self {
        let half = g.log_between(3.0, 120.0);
        let beta = if g.uniform() < 0.3 { g.log_between(1e-7, 2e-5) } else { 0.0 };
        let hard = g.uniform() < 0.5;
        let mut c = Self { half, hard, beta, max: 0.0, c95: 0.0 };
        let grid: Vec<f64> = (0..400).map(|i| 4096f64.powf(f64::from(i) / 399.0)).collect();
        c.max = grid.iter().map(|n| c.at(*n)).fold(0.0, f64::max);
        c.c95 = grid.into_iter().find(|n| c.at(*n) >= 0.95 * c.max).unwrap_or(4096.0);
        c
    }

    fn at(&self, n: f64) -> f64 {
        let x = if self.hard { (n / self.half).min(1.0) } else { n / (n + self.half) };
        x / (1.0 + self.beta * n * n)
    }
}

/// Share of the maximum that the chosen concurrency gives, over-provision, seconds.
type Found = (f64, f64, f64);

fn ours(seed: u64, cv: f64) -> Found {
    let mut g = Rng::new(seed);
    let curve = Curve::new(&mut g);
    let mut s = SaturationSearch::new(SaturationOptions { seed, ..SaturationOptions::default() });
    let (mut last, mut t): (Option<SaturationObservation>, f64) = (None, 0.0);
    while let SaturationAction::Measure { concurrency, ramp_s, measure_s, .. } = s.next(last.as_ref()) {
        t += ramp_s + measure_s;
        let x = 1000.0 * curve.at(f64::from(concurrency)) * (cv * g.normal()).exp();
        last = Some(SaturationObservation {
            ops_per_s: x,
            mean_latency_s: f64::from(concurrency) / x,
            ..SaturationObservation::default()
        });
    }
    let c = f64::from(s.outcome().c95.unwrap_or(1));
    (curve.at(c) / curve.max, c / curve.c95, t)
}

/// MinIO's speedtest: from 32, one and a half times as many, until a step gains less than 2.5 % or loses.
fn minio(seed: u64, cv: f64) -> Found {
    let mut g = Rng::new(seed);
    let curve = Curve::new(&mut g);
    let (mut n, mut best, mut t) = (32u32, 0.0, 0.0);
    loop {
        let x = curve.at(f64::from(n)) * (cv * g.normal()).exp();
        t += 20.0;
        if x < best || (x - best) / x < 0.025 || n >= 4096 {
            let c = f64::from(n);
            return (curve.at(c) / curve.max, c / curve.c95, t);
        }
        best = x;
        n += n.div_ceil(2);
    }
}

pub fn rows(s: &Settings) -> Vec<ScoreRow> {
    let mut out = Vec::new();
    for (i, cv) in [0.01, 0.03, 0.06, 0.10].into_iter().enumerate() {
        for (name, rule) in [("ours", ours as fn(u64, f64) -> Found), ("MinIO's rule", minio)] {
            let all = s.each(70 + i as u64, s.systems(400), |seed| rule(seed, cv));
            let bad = all.iter().filter(|f| f.0 < 0.9).count();
            let of = |f: &dyn Fn(&Found) -> f64| all.iter().map(f).collect::<Vec<f64>>();
            out.push(ScoreRow::shown(
                format!("saturation search, noise {}, {name}: below 90 % of the maximum", percent(cv)),
                format!(
                    "{}; over-provision p90 {:.1}x; median {:.0} s",
                    percent(bad as f64 / all.len() as f64),
                    math::quantile(&of(&|f| f.1), 0.9),
                    math::median(&of(&|f| f.2))
                ),
            ));
        }
    }
    out.extend(scaling_rows(s));
    out.extend(stopping_rows(s));
    out
}

fn scaling_rows(s: &Settings) -> Vec<ScoreRow> {
    let mut out = Vec::new();
    for (i, (nodes, cv)) in
        [(&[4.0, 8.0, 12.0][..], 0.02), (&[4.0, 8.0, 12.0], 0.05), (&[2.0, 4.0, 6.0, 8.0, 12.0], 0.02)]
            .into_iter()
            .enumerate()
    {
        let all = s.each(80 + i as u64, s.systems(200), |seed| {
            let mut g = Rng::new(seed);
            let a = g.between(0.0, 0.08);
            let b = if g.uniform() < 0.5 { 0.0 } else { g.log_between(1e-4, 3e-3) };
            let sizes: Vec<ScaleSize> = nodes
                .iter()
                .map(|&n| ScaleSize {
                    n,
                    runs: (0..5).map(|_| scale::law(n, 1.0, a, b) * (cv * g.normal()).exp()).collect(),
                })
                .collect();
            let at = [1.5, 2.0].map(|f| f * nodes[nodes.len() - 1]);
            let law = scaling(&sizes, &at, 60, seed).law;
            let law = law.known().expect("five runs of three sizes carry a law").clone();
            [0, 1].map(|k| {
                let p = law.predictions[k].rate;
                (p.contains(scale::law(at[k], 1.0, a, b)), p.relative_half_width())
            })
        });
        for (k, at) in ["1.5 x", "2 x"].into_iter().enumerate() {
            let covers = all.iter().filter(|x| x[k].0).count();
            let width: Vec<f64> = all.iter().map(|x| x[k].1).collect();
            let name = format!(
                "scaling from {} sizes, runs differ by {}: prediction at {at} covers",
                nodes.len(),
                percent(cv)
            );
            let mut row = ScoreRow::share(name, covers, all.len(), Goal::AtLeast(0.90));
            row.measured += &format!(", half width p50 {}", percent(math::median(&width)));
            out.push(row);
        }
    }
    out
}

fn stopping_rows(s: &Settings) -> Vec<ScoreRow> {
    let n = s.systems(2000);
    let runs = |seed: u64| {
        let mut g = Rng::new(seed);
        let mut draw = || (0..40).map(|_| (0.03 * g.normal()).exp()).collect::<Vec<f64>>();
        (draw(), draw())
    };
    let width = s.each(90, n, |seed| {
        let (a, b) = runs(seed);
        let at = (MIN_RUNS..40).find(|&k| {
            compare(&a[..k], &b[..k], false).known().is_some_and(|c| c.is_enough(TARGET_HALF_WIDTH))
        });
        let k = at.unwrap_or(40);
        compare(&a[..k], &b[..k], false).known().is_some_and(|c| c.ratio.contains(1.0))
    });
    let significance = s.each(91, n, |seed| {
        let (a, b) = runs(seed);
        (MIN_RUNS..=40)
            .any(|k| compare(&a[..k], &b[..k], false).known().is_some_and(|c| !c.ratio.contains(1.0)))
    });
    let drift = s.each(92, n, |seed| {
        let mut g = Rng::new(seed);
        let phase = g.uniform();
        let y: Vec<f64> = (0..16)
            .map(|i| {
                (0.08 * (std::f64::consts::TAU * (f64::from(i) / 16.0 + phase)).sin() + 0.02 * g.normal())
                    .exp()
            })
            .collect();
        let order = abba(8);
        let pick = |a: bool| (0..16).filter(|&i| order[i] == a).map(|i| y[i]).collect::<Vec<f64>>();
        let covers = |a: &[f64], b: &[f64], paired| {
            compare(a, b, paired).known().is_some_and(|c| c.ratio.contains(1.0))
        };
        (covers(&pick(true), &pick(false), true), covers(&y[..8], &y[8..], false))
    });
    let count = |v: &[bool]| v.iter().filter(|x| **x).count();
    vec![
        ScoreRow::share(
            "comparison, stopped at a half width of 2 %: interval covers",
            count(&width),
            width.len(),
            Goal::Between(0.91, 0.97),
        ),
        ScoreRow::share(
            "– stopped at significance: false differences",
            count(&significance),
            significance.len(),
            Goal::None,
        ),
        ScoreRow::share(
            "comparison under a drift of 8 %, interleaved and paired: interval covers",
            drift.iter().filter(|d| d.0).count(),
            drift.len(),
            Goal::AtLeast(0.93),
        ),
        ScoreRow::share(
            "– one after the other: interval covers",
            drift.iter().filter(|d| d.1).count(),
            drift.len(),
            Goal::None,
        ),
    ]
}
