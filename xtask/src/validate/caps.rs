//! (e) the limit model over sizes and concurrencies.

use plimsoll_stats::limit_model::{
    Campaign, CellBinding, LimitModel, LimitModelOptions, MeasuredCell, Pilot, Theta, analyse, sizes_around,
};
use plimsoll_stats::math;
use plimsoll_stats::rng::Rng;

use super::Settings;
use super::bound;
use super::score::{COVERAGE, Goal, ScoreRow, hits, percent};

/// How the cells are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cells {
    /// Sizes and concurrencies by the pilot: what we recommend.
    Pilot,
    /// Sizes around a knee that is known to 30 %, and a concurrency that saturates ops of no size.
    FixedTop,
    /// Powers of four from 1 KiB to 16 MiB, at the same concurrencies.
    Fixed,
}

#[derive(Clone)]
struct Case {
    ops: f64,
    bytes: f64,
    model: LimitModel,
    /// True binding of each cell, where it is clear by 15 %.
    clear: Vec<Option<CellBinding>>,
    /// Standard deviation of the logarithm of the knee that no unbiased estimate from these cells can be below.
    bound: Option<f64>,
}

struct Truth {
    theta: Theta,
    p: f64,
    /// Spread of runs, and of cells around the model.
    between: f64,
    misfit: f64,
}

impl Truth {
    fn log_rate(&self, s: f64, c: f64, g: &mut Rng) -> f64 {
        self.theta.log_rate(s, c, self.p) + self.misfit * g.normal()
    }
}

/// One run of each cell of a pilot with ops of 4 KiB and 16 MiB.
fn pilot(truth: &Truth, g: &mut Rng) -> Campaign {
    let mut pilot = Pilot::new(4 << 10, 16 << 20, 4096);
    while let Some((s, c)) = pilot.next() {
        let y = truth.log_rate(s as f64, f64::from(c), g) + truth.between * g.normal();
        pilot.saw(y.exp());
    }
    pilot.campaign().known().expect("rates are positive").clone()
}

/// Concurrencies that do not know how many streams fill the bytes cap.
fn fixed_top(ops: f64, latency_s: f64) -> Vec<u32> {
    let top = (ops * latency_s * 4.0).round().max(64.0);
    let mut conc = vec![1, (ops * latency_s * 0.3).round().max(4.0) as u32, top as u32];
    conc.dedup();
    conc
}

fn case(seed: u64, p: f64, cells: Cells) -> Case {
    let mut g = Rng::new(seed);
    let (o, knee) = (g.log_between(300.0, 30_000.0), g.log_between(16e3, 2.1e6));
    let (w, l0) = (o * knee, g.log_between(0.0005, 0.02));
    let v = g.log_between(w / 200.0, w / 5.0);
    let theta = Theta([o.ln(), w.ln(), l0.ln(), v.ln()]);
    let seen_knee = knee * (0.3 * g.normal()).exp();
    let truth = Truth { theta, p, between: g.between(0.01, 0.05), misfit: g.between(0.0, 0.03) };
    let campaign = match cells {
        Cells::Pilot => pilot(&truth, &mut g),
        Cells::FixedTop => Campaign { sizes_bytes: sizes_around(seen_knee), concurrencies: fixed_top(o, l0) },
        Cells::Fixed => Campaign {
            sizes_bytes: (0..8).map(|i| 1024 << (2 * i)).collect(),
            concurrencies: fixed_top(o, l0),
        },
    };
    let (cells, clear) = measure(&truth, &campaign, &mut g);
    let sd = (truth.between.powi(2) / 3.0 + truth.misfit.powi(2)).sqrt();
    let bound = bound::knee(&theta, p, &cells, sd);
    let model = analyse(&cells, LimitModelOptions { bootstrap: 100, seed });
    let model = model.known().expect("24 cells carry a model").clone();
    Case { ops: o, bytes: w, model, clear, bound }
}

/// Three runs of every cell; one cell in 25 is an outlier, 20 to 50 % low.
fn measure(truth: &Truth, campaign: &Campaign, g: &mut Rng) -> (Vec<MeasuredCell>, Vec<Option<CellBinding>>) {
    let mut cells = Vec::new();
    let mut clear = Vec::new();
    for &c in &campaign.concurrencies {
        for &s in &campaign.sizes_bytes {
            let (s, c) = (s as f64, f64::from(c));
            let outlier = if g.uniform() < 0.04 { g.log_between(0.5, 0.8).ln() } else { 0.0 };
            let y = truth.log_rate(s, c, g) + outlier;
            let ops_per_s = (0..3).map(|_| (y + truth.between * g.normal()).exp()).collect();
            cells.push(MeasuredCell { size_bytes: s, concurrency: c, ops_per_s });
            let mut t: Vec<(f64, CellBinding)> = truth
                .theta
                .terms(s, c)
                .into_iter()
                .zip([CellBinding::Ops, CellBinding::Bytes, CellBinding::Latency])
                .collect();
            t.sort_by(|a, b| a.0.total_cmp(&b.0));
            clear.push((t[1].0 - t[0].0 > 0.15).then_some(t[0].1));
        }
    }
    (cells, clear)
}

pub fn rows(s: &Settings) -> Vec<ScoreRow> {
    let mut out = Vec::new();
    for (part, name, p, cells, n) in [
        (61, "cells by a pilot, independent limiters", 64.0, Cells::Pilot, 2000),
        (62, "cells by a pilot, one shared resource", 1.0, Cells::Pilot, 2000),
        (
            64,
            "sizes around the knee, a concurrency that does not always saturate, one shared resource",
            1.0,
            Cells::FixedTop,
            200,
        ),
        (
            63,
            "fixed sizes 1 KiB to 16 MiB, the same concurrencies, independent limiters",
            64.0,
            Cells::Fixed,
            200,
        ),
    ] {
        let all = s.each(part, s.systems(n), |seed| case(seed, p, cells));
        out.extend(table(name, &all, cells == Cells::Pilot, p));
    }
    out
}

fn table(name: &str, all: &[Case], goals: bool, p: f64) -> Vec<ScoreRow> {
    let share = |g: Goal| if goals { g } else { Goal::None };
    let both = all.iter().filter(|c| c.model.knee_bytes.is_some()).count();
    let knee: Vec<f64> =
        all.iter().filter_map(|c| Some(c.model.knee_bytes?.value / (c.bytes / c.ops) - 1.0)).collect();
    let ops: Vec<f64> =
        all.iter().filter_map(|c| Some(c.model.ops_cap.value()?.value / c.ops - 1.0)).collect();
    let bytes: Vec<f64> =
        all.iter().filter_map(|c| Some(c.model.bytes_cap.value()?.value / c.bytes - 1.0)).collect();
    let labels = all
        .iter()
        .flat_map(|c| c.model.cells.iter().zip(&c.clear))
        .map(|(seen, truth)| truth.filter(|_| seen.binding != CellBinding::Mixed).map(|t| seen.binding == t));
    let (right, said) = hits(labels);
    let mut out = vec![
        ScoreRow::share(
            format!("limit model, {name}: both caps identified"),
            both,
            all.len(),
            share(Goal::AtLeast(0.74)),
        ),
        ScoreRow::error("– knee", &knee, goals.then_some(0.05)),
        least_error(all),
        ScoreRow::error("– ops cap", &ops, None),
        ScoreRow::error("– bytes cap", &bytes, None),
        ScoreRow::share("– binding cap named right (clear cells)", right, said, share(Goal::AtLeast(0.99))),
    ];
    let (h, n) = hits(all.iter().map(|c| c.model.knee_bytes.map(|k| k.contains(c.bytes / c.ops))));
    out.push(ScoreRow::share("– 95 % interval of the knee covers", h, n, share(COVERAGE)));
    let (h, n) = hits(all.iter().map(|c| c.model.ops_cap.value().map(|e| e.contains(c.ops))));
    out.push(ScoreRow::share("– 95 % interval of the ops cap covers", h, n, share(COVERAGE)));
    let (h, n) = hits(all.iter().map(|c| c.model.bytes_cap.value().map(|e| e.contains(c.bytes))));
    out.push(ScoreRow::share("– 95 % interval of the bytes cap covers", h, n, share(COVERAGE)));
    let (low, high) = if p > 4.0 { (5.0, 64.0) } else { (1.0, 2.0) };
    let (h, n) = hits(all.iter().map(|c| Some((low..=high).contains(&c.model.exponent))));
    out.push(ScoreRow::share("– exponent tells policy from shared resource", h, n, Goal::None));
    out
}

/// The errors that an estimate at the bound would have, with normal noise and without outliers.
fn least_error(all: &[Case]) -> ScoreRow {
    let mut g = Rng::new(1);
    let e: Vec<f64> = all.iter().filter_map(|c| c.bound).map(|sd| (sd * g.normal()).exp_m1().abs()).collect();
    ScoreRow::shown(
        "– – the least that these cells allow (Cramér-Rao bound)",
        format!("p50 {}, p90 {}", percent(math::quantile(&e, 0.5)), percent(math::quantile(&e, 0.9))),
    )
}
