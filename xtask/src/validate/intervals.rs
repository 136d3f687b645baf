//! Coverage of the 95 % intervals: rates of autocorrelated series, and ratios of runs.

use plimsoll_stats::compare::compare;
use plimsoll_stats::rate::Mean;
use plimsoll_stats::rng::Rng;

use super::Settings;
use super::score::{COVERAGE, Goal, ScoreRow};
use super::steadiness::noise;

pub fn rows(s: &Settings) -> Vec<ScoreRow> {
    let n = s.systems(2000);
    let mut out = Vec::new();
    // Seconds of window at slices of 100 ms, correlation time in seconds.
    let cases = [
        (10.0, 0.02),
        (28.0, 0.1),
        (28.0, 1.0),
        (60.0, 1.0),
        (60.0, 3.0),
        (300.0, 3.0),
        (300.0, 10.0),
        (900.0, 10.0),
    ];
    for (i, (window, tau)) in cases.into_iter().enumerate() {
        let hit = s.each(20 + i as u64, n, |seed| {
            let mut g = Rng::new(seed);
            let x: Vec<f64> = noise(&mut g, (window * 10.0) as usize, tau * 10.0)
                .iter()
                .map(|z| 100.0 * (1.0 + 0.05 * z))
                .collect();
            let m = Mean::of(&x);
            (m.value - 100.0).abs() <= m.half_width
        });
        let h = hit.iter().filter(|h| **h).count();
        out.push(ScoreRow::share(
            format!("rate over {window:.0} s, correlation time {tau} s: interval covers"),
            h,
            hit.len(),
            COVERAGE,
        ));
    }
    // Cheap, and close enough to the edges of what is asked that chance must not decide.
    out.extend(ratios(s, 5 * n));
    out
}

/// Ratios of run means that are truly 1.
fn ratios(s: &Settings, n: u64) -> Vec<ScoreRow> {
    let mut out = Vec::new();
    for (i, (name, k, l)) in [
        ("log-normal", 3, 3),
        ("log-normal", 5, 5),
        ("log-normal", 10, 10),
        ("one run in ten 20 % slow", 5, 5),
        ("two modes", 5, 5),
        ("log-normal, one side spreads three times as much", 3, 3),
        ("log-normal, as many runs as there happen to be", 3, 5),
    ]
    .into_iter()
    .enumerate()
    {
        let hit = s.each(50 + i as u64, n, |seed| {
            let mut g = Rng::new(seed);
            let run = |g: &mut Rng| match name {
                _ if name.starts_with("log-normal") => (0.03 * g.normal()).exp(),
                "two modes" => (0.015 * g.normal()).exp() * if g.uniform() < 0.5 { 0.93 } else { 1.0 },
                _ => (0.02 * g.normal()).exp() * if g.uniform() < 0.1 { 0.8 } else { 1.0 },
            };
            let a: Vec<f64> = (0..k).map(|_| run(&mut g)).collect();
            let wider = if name.contains("three times") { 3.0 } else { 1.0 };
            let b: Vec<f64> = (0..l).map(|_| run(&mut g).powf(wider)).collect();
            compare(&a, &b, false).known().is_some_and(|c| c.ratio.contains(1.0))
        });
        let h = hit.iter().filter(|h| **h).count();
        let goal = if name.starts_with("log-normal") { COVERAGE } else { Goal::AtLeast(0.93) };
        out.push(ScoreRow::share(
            format!("ratio of {k} against {l} runs, {name}: interval covers"),
            h,
            hit.len(),
            goal,
        ));
    }
    out
}
