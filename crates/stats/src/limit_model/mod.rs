//! (e) Which cap binds at which size and concurrency: ops/s, bytes/s, or latency.
//!
//! `X(s, c) = (O^-p + (W/s)^-p + (c/(L0 + s/v))^-p)^(-1/p)`, fitted on the logarithm with soft-L1 loss. O: ops/s, W: bytes/s,
//! L0: unloaded latency, v: bandwidth of one stream. The exponent is a finding of its own: p >= 5 means limiters that do not know
//! of each other (policy), p near 1 one resource with a cost per op and per byte (a processor, a disk).
//! Intervals: wild bootstrap over cells with p redrawn from the values that fit as well, widened by Student's t for the few cells
//! that carry a parameter. A parameter that too few cells carry is a bound, never a value.

mod campaign;
mod model;
mod plain;
pub mod table;

use plimsoll_model::{Estimate, Verdict};

pub use campaign::{Campaign, Pilot, sizes_around};
pub use model::{EXPONENTS, Theta};
use model::{Fit, fit};
pub use plain::{Plain, plain};

use crate::math;
use crate::rng::Rng;
use crate::student;

/// One cell: a size, a concurrency, and the rates of its runs (ops per second).
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCell {
    /// Of one op.
    pub size_bytes: f64,
    /// Ops in flight.
    pub concurrency: f64,
    /// One for each repeat.
    pub ops_per_s: Vec<f64>,
}

impl MeasuredCell {
    /// Whether the model can use it: everything is a positive number.
    pub fn is_usable(&self) -> bool {
        let ok = |v: &f64| v.is_finite() && *v > 0.0;
        ok(&self.size_bytes)
            && ok(&self.concurrency)
            && !self.ops_per_s.is_empty()
            && self.ops_per_s.iter().all(ok)
    }
}

/// What limits a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellBinding {
    /// The cap on operations.
    Ops,
    /// The cap on bytes.
    Bytes,
    /// What is in flight, over the unloaded latency: no limiter is reached.
    Latency,
    /// Two terms within 10 % of each other.
    Mixed,
}

impl CellBinding {
    /// As data has it: `ops`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ops => "ops",
            Self::Bytes => "bytes",
            Self::Latency => "latency",
            Self::Mixed => "mixed",
        }
    }
}

/// A cap as far as the cells show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FittedCap {
    /// The cells bound it from both sides.
    Value(Estimate),
    /// No cell, or too few, ran into it: it is at least this.
    AtLeast(f64),
}

impl FittedCap {
    /// Absent where there is only a bound.
    pub fn value(&self) -> Option<Estimate> {
        match self {
            Self::Value(e) => Some(*e),
            Self::AtLeast(_) => None,
        }
    }
}

/// What limits one cell, by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct CellLimit {
    /// The term that gives the least rate.
    pub binding: CellBinding,
    /// Terms that bind: one, or the two of a mixed cell.
    pub binds: [Option<CellBinding>; 2],
    /// Room until the next limit: 0.15 is 15 %.
    pub room: f64,
    /// By the model.
    pub predicted_ops_per_s: f64,
    /// Measured over predicted, as a logarithm.
    pub residual: f64,
}

/// Two caps, latency and bandwidth of a stream, fitted to cells of many sizes and concurrencies.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitModel {
    /// Ops per second.
    pub ops_cap: FittedCap,
    /// Bytes per second.
    pub bytes_cap: FittedCap,
    /// Unloaded latency, seconds, and bandwidth of one stream, bytes per second, where known.
    pub latency_s: Option<f64>,
    /// Absent: no cell says.
    pub stream_bytes_per_s: Option<f64>,
    /// `W / O`: below it ops bind, above it bytes. Only when both caps are known.
    pub knee_bytes: Option<Estimate>,
    /// How sharply the terms turn into each other: the larger, the more as if only the least of them counted.
    pub exponent: f64,
    /// Least and largest exponent that fit as well.
    pub exponents: (f64, f64),
    /// In the order in which they were handed in.
    pub cells: Vec<CellLimit>,
    /// p-value of the misfit beyond the runs' own noise; `None` without repeats.
    pub misfit_p: Option<f64>,
    /// Index of the cell with the largest residual.
    pub worst_cell: usize,
    /// The parameters themselves, for predictions.
    pub theta: Theta,
}

impl LimitModel {
    /// Rate predicted at another size and concurrency.
    pub fn predict(&self, size_bytes: f64, concurrency: f64) -> f64 {
        self.theta.log_rate(size_bytes, concurrency, self.exponent).exp()
    }

    /// What the exponent says about the limiter.
    pub fn reading(&self) -> &'static str {
        match self.exponents {
            (low, _) if low >= POLICY => "two independent limiters (a policy)",
            (_, high) if high <= SHARED => {
                "one resource with a cost per op and per byte (typical of a CPU or a disk, not of a policy)"
            }
            _ => "the data cannot tell a policy from one shared resource",
        }
    }
}

/// Bootstrap samples; the seed is fixed, so that the same cells give the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitModelOptions {
    /// How many; more make the intervals steadier, not narrower.
    pub bootstrap: usize,
    /// Of the resampling.
    pub seed: u64,
}

impl Default for LimitModelOptions {
    fn default() -> Self {
        Self { bootstrap: 200, seed: 0 }
    }
}

/// Two limits within this of each other, as a logarithm, bind together; beyond the second one binds clearly (validated: the binding
/// cap is named right in 44,466 of 44,467 clear cells).
const MIXED: f64 = 0.10;
const CLEAR: f64 = 0.15;
/// Exponents from which on two limiters are told, and up to which one shared resource is (validated: right in 96 to 100 % of campaigns).
const POLICY: f64 = 5.0;
const SHARED: f64 = 2.0;
/// Parameters of a fit, the exponent included.
const PARAMETERS: usize = 5;
/// Cells that the fit needs at the least: one more than it has parameters.
const LEAST_CELLS: usize = PARAMETERS + 1;
/// Cost within which an exponent fits as well: half of chi-squared with one degree of freedom at 95 %.
const AS_GOOD: f64 = 1.92;
/// Noise that is assumed of a cell without repeats (guess), and the least that any is credited with: 0.5 % is what clocks and
/// start-up cost (guess). Logarithms.
const ASSUMED_NOISE: f64 = 0.03;
const LEAST_NOISE: f64 = 0.005;
/// A cell tells of the bandwidth of a stream when that takes this part of the time without bytes (guess).
const STREAMING: f64 = 0.3;
/// A parameter is known when so many cells carry it and the ends of its interval are less than a factor apart (validated:
/// coverage of knee and caps).
const CARRIED_BY: usize = 3;
const KNOWN_WITHIN: f64 = 2.0;
/// Quantiles of the bootstrap for 95 %, the normal distribution's, which Student's t widens, and that factor without a degree of
/// freedom: t with one is 12.7, over 1.96.
const TAILS: (f64, f64) = (0.025, 0.975);
const NORMAL_95: f64 = 1.96;
const WIDEST: f64 = 6.5;
/// No logarithm of a rate or a time is beyond this.
const MOST_LOG: f64 = 60.0;

/// Fits the model. Cells without a positive rate are left out; six usable cells of two sizes are the least.
pub fn analyse(cells: &[MeasuredCell], o: LimitModelOptions) -> Verdict<LimitModel> {
    let data = match Data::of(cells) {
        Ok(d) => d,
        Err(why) => return Verdict::Inconclusive(why),
    };
    let n = data.y.len();
    let infl = (n as f64 / (n.max(LEAST_CELLS) - PARAMETERS) as f64).sqrt();
    let first = fit(&data.s, &data.c, &data.y, data.se, &EXPONENTS, None);
    let res = residuals(&data, &first);
    // Misfit counts as noise.
    let sigma = data.se.max(math::mad_sd_about_zero(&res) * infl);
    let best = fit(&data.s, &data.c, &data.y, sigma, &EXPONENTS, None);
    let res = residuals(&data, &best);
    let near: Vec<f64> =
        best.by_exponent.iter().filter(|(_, c)| *c < best.cost + AS_GOOD + 1e-9).map(|(p, _)| *p).collect();
    let draws = bootstrap(&data, &best, &res, sigma, infl, &near, o);
    Verdict::Known(report(&data, &best, &res, &near, &draws))
}

/// Usable cells, as logarithms.
struct Data {
    s: Vec<f64>,
    c: Vec<f64>,
    y: Vec<f64>,
    /// Pooled standard error of a cell's mean logarithm.
    se: f64,
    repeated: bool,
}

impl Data {
    fn of(cells: &[MeasuredCell]) -> Result<Self, String> {
        let good: Vec<&MeasuredCell> = cells.iter().filter(|c| c.is_usable()).collect();
        let s: Vec<f64> = good.iter().map(|c| c.size_bytes).collect();
        let sizes = s.iter().any(|v| *v != s[0]);
        if good.len() < LEAST_CELLS || !sizes {
            return Err(format!(
                "{} cells with a rate are too few for a limit model: it needs {LEAST_CELLS}, of at least two sizes \
                 (add --sizes or --concurrencies, or use --sizes auto)",
                good.len()
            ));
        }
        let logs: Vec<Vec<f64>> = good.iter().map(|c| c.ops_per_s.iter().map(|v| v.ln()).collect()).collect();
        let v: Vec<f64> = logs.iter().filter(|l| l.len() > 1).map(|l| math::variance(l, 1)).collect();
        let pooled = if v.is_empty() { ASSUMED_NOISE } else { math::mean(&v).sqrt() };
        let k = logs.iter().map(Vec::len).sum::<usize>() as f64 / logs.len() as f64;
        Ok(Self {
            c: good.iter().map(|c| c.concurrency).collect(),
            y: logs.iter().map(|l| math::mean(l)).collect(),
            se: (pooled / k.sqrt()).max(LEAST_NOISE),
            repeated: !v.is_empty(),
            s,
        })
    }
}

fn residuals(d: &Data, f: &Fit) -> Vec<f64> {
    (0..d.y.len()).map(|i| d.y[i] - f.theta.log_rate(d.s[i], d.c[i], f.exponent)).collect()
}

/// Wild bootstrap: residuals keep their cell and change their sign.
fn bootstrap(
    d: &Data,
    best: &Fit,
    res: &[f64],
    sigma: f64,
    infl: f64,
    near: &[f64],
    o: LimitModelOptions,
) -> Vec<Theta> {
    let mut rng = Rng::new(o.seed);
    let hat: Vec<f64> = d.y.iter().zip(res).map(|(y, r)| y - r).collect();
    (0..o.bootstrap)
        .map(|_| {
            let y: Vec<f64> = hat
                .iter()
                .zip(res)
                .map(|(h, r)| h + infl * r * if rng.uniform() < 0.5 { 1.0 } else { -1.0 })
                .collect();
            let other = near[rng.below(near.len())];
            fit(&d.s, &d.c, &y, sigma, &[best.exponent, other], Some(best.theta)).theta
        })
        .collect()
}

fn report(d: &Data, best: &Fit, res: &[f64], near: &[f64], draws: &[Theta]) -> LimitModel {
    let th = best.theta;
    let limits: Vec<CellLimit> =
        (0..d.y.len()).map(|i| cell_limit(&th, d.s[i], d.c[i], best.exponent, res[i])).collect();
    let carried = |b: CellBinding, also: &dyn Fn(usize) -> bool| {
        (0..limits.len())
            .filter(|&i| limits[i].binds[0] == Some(b) && limits[i].room > CLEAR.exp() - 1.0 && also(i))
            .count()
    };
    let any = |_: usize| true;
    let (m_ops, m_bytes, m_lat) = (
        carried(CellBinding::Ops, &any),
        carried(CellBinding::Bytes, &any),
        carried(CellBinding::Latency, &any),
    );
    let m_stream = carried(CellBinding::Latency, &|i| d.s[i] / th.stream() > STREAMING * th.latency());
    let logs = |pick: fn(&Theta) -> f64| draws.iter().map(pick).collect::<Vec<f64>>();
    let (ops_draws, bytes_draws) = (logs(|t| t.0[0]), logs(|t| t.0[1]));
    let ops = interval(th.0[0], &ops_draws, df(m_ops), m_ops);
    let bytes = interval(th.0[1], &bytes_draws, df(m_bytes), m_bytes);
    let known = |m: usize, e: &Estimate| m >= CARRIED_BY && e.high / e.low < KNOWN_WITHIN;
    let most = |f: &dyn Fn(usize) -> f64| (0..d.y.len()).map(f).fold(0.0, f64::max);
    let both = known(m_ops, &ops) && known(m_bytes, &bytes);
    let knee_df = joint_df(&[(&ops_draws, df(m_ops)), (&bytes_draws, df(m_bytes))]);
    let knee = interval(th.0[1] - th.0[0], &logs(|t| t.0[1] - t.0[0]), knee_df, m_ops.min(m_bytes));
    let latency = interval(th.0[2], &logs(|t| t.0[2]), df(m_lat), m_lat);
    let stream = interval(th.0[3], &logs(|t| t.0[3]), df(m_stream), m_stream);
    let chi: f64 = res.iter().map(|r| (r / d.se).powi(2)).sum();
    let df = d.y.len() as f64 - PARAMETERS as f64;
    let worst = (0..res.len()).max_by(|&i, &j| res[i].abs().total_cmp(&res[j].abs())).unwrap_or(0);
    LimitModel {
        ops_cap: if known(m_ops, &ops) {
            FittedCap::Value(ops)
        } else {
            FittedCap::AtLeast(most(&|i| d.y[i].exp()))
        },
        bytes_cap: if known(m_bytes, &bytes) {
            FittedCap::Value(bytes)
        } else {
            FittedCap::AtLeast(most(&|i| d.y[i].exp() * d.s[i]))
        },
        latency_s: known(m_lat, &latency).then_some(latency.value),
        stream_bytes_per_s: known(m_stream, &stream).then_some(stream.value),
        knee_bytes: both.then_some(knee),
        exponent: best.exponent,
        exponents: (
            near.iter().copied().fold(f64::INFINITY, f64::min),
            near.iter().copied().fold(0.0, f64::max),
        ),
        cells: limits,
        misfit_p: (d.repeated && df > 0.0).then(|| student::chi_squared_tail(chi, df)),
        worst_cell: worst,
        theta: th,
    }
}

fn cell_limit(th: &Theta, s: f64, c: f64, p: f64, residual: f64) -> CellLimit {
    let mut terms: Vec<(f64, CellBinding)> = th
        .terms(s, c)
        .into_iter()
        .zip([CellBinding::Ops, CellBinding::Bytes, CellBinding::Latency])
        .collect();
    terms.sort_by(|a, b| a.0.total_cmp(&b.0));
    let margin = terms[1].0 - terms[0].0;
    let mixed = margin < MIXED;
    CellLimit {
        binding: if mixed { CellBinding::Mixed } else { terms[0].1 },
        binds: [Some(terms[0].1), mixed.then_some(terms[1].1)],
        room: margin.exp() - 1.0,
        predicted_ops_per_s: th.log_rate(s, c, p).exp(),
        residual,
    }
}

/// Degrees of freedom of a parameter that `m` cells carry.
fn df(m: usize) -> f64 {
    m as f64 - 1.0
}

/// Degrees of freedom of a difference of parameters (Satterthwaite 1946): those of its uncertain side where one dominates, and
/// nearly the sum where both are alike. The lesser of the two would make it wider than it is on both sides.
fn joint_df(sides: &[(&[f64], f64)]) -> f64 {
    let v: Vec<(f64, f64)> = sides.iter().map(|(x, df)| (math::variance(x, 1), *df)).collect();
    let least = v.iter().map(|(_, df)| *df).fold(f64::INFINITY, f64::min);
    let (sum, parts) = v.iter().fold((0.0, 0.0), |(s, p), (v, df)| (s + v, p + v * v / df.max(1e-9)));
    if least < 1.0 || !(parts > 0.0 && parts.is_finite()) { least } else { sum * sum / parts }
}

/// Percentiles of the bootstrap around the fit, widened by Student's t for the few cells that carry it.
fn interval(at: f64, draws: &[f64], df: f64, m: usize) -> Estimate {
    let mut v: Vec<f64> = draws.iter().map(|x| x.clamp(-MOST_LOG, MOST_LOG)).collect();
    v.sort_unstable_by(f64::total_cmp);
    let widen = if df >= 1.0 { student::t95(df) / NORMAL_95 } else { WIDEST };
    let low = at - widen * (at - math::quantile_sorted(&v, TAILS.0)).max(LEAST_NOISE);
    let high = at + widen * (math::quantile_sorted(&v, TAILS.1) - at).max(LEAST_NOISE);
    Estimate { value: at.exp(), low: low.exp(), high: high.exp(), n_eff: m as f64 }
}

#[cfg(test)]
mod tests;
