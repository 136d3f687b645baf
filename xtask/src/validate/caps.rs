//! (e) the limit model over sizes and concurrencies.

use plimsoll_stats::limit_model::{Binding, Cell, LimitModel, Options, Theta, analyse, sizes_around};
use plimsoll_stats::rng::Rng;

use super::Settings;
use super::score::{COVERAGE, Goal, Row, hits};

struct Case {
    ops: f64,
    bytes: f64,
    model: LimitModel,
    /// True binding of each cell, where it is clear by 15 %.
    clear: Vec<Option<Binding>>,
}

fn case(seed: u64, p: f64, adaptive: bool) -> Case {
    let mut g = Rng::new(seed);
    let (o, knee) = (g.log_between(300.0, 30_000.0), g.log_between(16e3, 2.1e6));
    let (w, l0) = (o * knee, g.log_between(0.0005, 0.02));
    let v = g.log_between(w / 200.0, w / 5.0);
    let theta = Theta([o.ln(), w.ln(), l0.ln(), v.ln()]);
    let sizes: Vec<f64> = if adaptive {
        sizes_around(knee * (0.3 * g.normal()).exp()).into_iter().map(|s| s as f64).collect()
    } else {
        (0..8).map(|i| 1024.0 * 4f64.powi(i)).collect()
    };
    let top = (o * l0 * 4.0).round().max(64.0);
    let mut conc = vec![1.0, (o * l0 * 0.3).round().max(4.0), top];
    conc.dedup();
    let (between, misfit) = (g.between(0.01, 0.05), g.between(0.0, 0.03));
    let mut cells = Vec::new();
    let mut clear = Vec::new();
    for &c in &conc {
        for &s in &sizes {
            let outlier = if g.uniform() < 0.04 { g.log_between(0.5, 0.8).ln() } else { 0.0 };
            let y = theta.log_rate(s, c, p) + misfit * g.normal() + outlier;
            let ops_per_s = (0..3).map(|_| (y + between * g.normal()).exp()).collect();
            cells.push(Cell { size_bytes: s, concurrency: c, ops_per_s });
            let mut t: Vec<(f64, Binding)> =
                theta.terms(s, c).into_iter().zip([Binding::Ops, Binding::Bytes, Binding::Latency]).collect();
            t.sort_by(|a, b| a.0.total_cmp(&b.0));
            clear.push((t[1].0 - t[0].0 > 0.15).then_some(t[0].1));
        }
    }
    let model = analyse(&cells, Options { bootstrap: 100, seed });
    let model = model.known().expect("24 cells carry a model").clone();
    Case { ops: o, bytes: w, model, clear }
}

pub fn rows(s: &Settings) -> Vec<Row> {
    let mut out = Vec::new();
    let mut part = 60;
    for (name, p, adaptive) in [
        ("sizes around a pilot's knee, independent limiters", 64.0, true),
        ("sizes around a pilot's knee, one shared resource", 1.0, true),
        ("fixed sizes 1 KiB to 16 MiB, independent limiters", 64.0, false),
    ] {
        part += 1;
        let all = s.each(part, s.systems(200), |seed| case(seed, p, adaptive));
        out.extend(table(name, &all, adaptive, p));
    }
    out
}

fn table(name: &str, all: &[Case], goals: bool, p: f64) -> Vec<Row> {
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
        .map(|(seen, truth)| truth.filter(|_| seen.binding != Binding::Mixed).map(|t| seen.binding == t));
    let (right, said) = hits(labels);
    let mut out = vec![
        Row::share(
            format!("limit model, {name}: both caps identified"),
            both,
            all.len(),
            share(Goal::AtLeast(0.74)),
        ),
        Row::error("– knee", &knee, goals.then_some(0.05)),
        Row::error("– ops cap", &ops, None),
        Row::error("– bytes cap", &bytes, None),
        Row::share("– binding cap named right (clear cells)", right, said, share(Goal::AtLeast(0.99))),
    ];
    let (h, n) = hits(all.iter().map(|c| c.model.knee_bytes.map(|k| k.contains(c.bytes / c.ops))));
    out.push(Row::share("– 95 % interval of the knee covers", h, n, share(COVERAGE)));
    let (h, n) = hits(all.iter().map(|c| c.model.ops_cap.value().map(|e| e.contains(c.ops))));
    out.push(Row::share("– 95 % interval of the ops cap covers", h, n, share(COVERAGE)));
    let (h, n) = hits(all.iter().map(|c| c.model.bytes_cap.value().map(|e| e.contains(c.bytes))));
    out.push(Row::share("– 95 % interval of the bytes cap covers", h, n, share(COVERAGE)));
    let (low, high) = if p > 4.0 { (5.0, 64.0) } else { (1.0, 2.0) };
    let (h, n) = hits(all.iter().map(|c| Some((low..=high).contains(&c.model.exponent))));
    out.push(Row::share("– exponent tells policy from shared resource", h, n, Goal::None));
    out
}
