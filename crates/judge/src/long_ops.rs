//! Rates of closed loops whose ops last longer than the slices of their series: of objects by the bytes on the wire, else by how long ops took
//! ([`plimsoll_stats::progress`]).

use plimsoll_model::plan::Pacing;
use plimsoll_model::{OpKind, Outcome, Series, SeriesCounts};
use plimsoll_stats::progress::{self, EndedWork};
use plimsoll_stats::{math, rate};
use plimsoll_store::RunData;

use super::line::is_taken_whole;
use super::part::Part;

/// Ops are long from this time on, where slices are shorter still. Guess: as long as a slice that levels are judged by.
const LONG_NS: u64 = 1_000_000_000;
/// How many times the mean op a stretch has to last for its rate to be told so. Guess: what began before it is then a small part.
const LEAST_TIMES: f64 = 2.0;
/// Part of the bytes on the wire that may be for nothing. Guess: less than any interval.
const WASTED: f64 = 0.001;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedWork {
    Ops,
    Bytes,
}

impl CountedWork {
    pub fn of(self, counts: &SeriesCounts) -> u64 {
        match self {
            Self::Ops => counts.ok(),
            Self::Bytes => counts.bytes_ok,
        }
    }

    pub fn of_all(self, series: &[&Series]) -> u64 {
        series.iter().map(|s| self.of(&s.counts)).sum()
    }
}

/// What was done between two times.
pub struct LongOps {
    /// In each step, where it was done: until what was then in flight had ended under the whole load.
    pub per_step: Vec<f64>,
    /// Half width of the interval of its mean, as a part of it, and how many independent values are behind it. `None`: too few ended.
    pub half_width: Option<(f64, f64)>,
}

impl LongOps {
    fn of_series(per_step: Vec<f64>, step_ns: u64) -> Option<Self> {
        let e = *rate::estimate(&per_step, step_ns as f64 / 1e9).known()?;
        let half_width = (e.value > 0.0).then(|| ((e.high - e.value) / e.value, e.n_eff));
        Some(Self { per_step, half_width })
    }

    pub fn per_s(&self, step_ns: u64) -> f64 {
        math::mean(&self.per_step) / (step_ns as f64 / 1e9)
    }
}

/// Of a part whose ops are long. `None`: its ops are short, or how long they were does not tell what was done (an open loop, refusals,
/// ops that were cancelled), or too few of them follow one another.
pub fn done(
    part: &Part<'_>,
    kind: Option<OpKind>,
    work: CountedWork,
    data: &RunData,
    (from_ns, to_ns): (u64, u64),
) -> Option<LongOps> {
    let closed = part.specs(kind).iter().all(|w| matches!(w.pacing, Pacing::Closed));
    if !closed || is_taken_whole(data) {
        return None;
    }
    let longer_than_ns = data.step_ns.max(LONG_NS);
    // Of the window: most loads are looked at no further.
    mean_s(part.series(kind).iter().map(|s| &s.counts), longer_than_ns)?;
    let counts = part.counts(kind, data.step_ns, 0, u64::MAX);
    let mean_s = mean_s(&counts, longer_than_ns)?;
    let at = |step: u64| (step.saturating_sub(part.stage.first_point) as usize).min(counts.len());
    let window = at(from_ns.div_ceil(data.step_ns))..at(to_ns / data.step_ns);
    if let Some(per_step) = moved(&counts, work, kind) {
        return LongOps::of_series(per_step.get(window)?.to_vec(), data.step_ns);
    }
    if counts.iter().any(|c| cancelled(c) > 0) {
        return None;
    }
    let stop_ns = part.stage.stop_ns.unwrap_or(part.stage.last_ns);
    let known_ns = (progress::known_until(stop_ns as f64 / 1e9, mean_s) * 1e9).max(0.0) as u64;
    let until_ns = to_ns.min(known_ns);
    if (until_ns.saturating_sub(from_ns) as f64) < LEAST_TIMES * mean_s * 1e9 {
        return None;
    }
    let ended = |c: &SeriesCounts| EndedWork {
        ops: c.ok(),
        work: work.of(c) as f64,
        took_s: c.in_system_ns as f64 / 1e9,
    };
    let ended: Vec<EndedWork> = counts.iter().map(ended).collect();
    let done = progress::spread(&ended, data.step_ns as f64 / 1e9);
    Some(LongOps {
        per_step: done.get(window.start..at(until_ns / data.step_ns))?.to_vec(),
        half_width: progress::half_width(ended.get(window)?),
    })
}

/// Work of each step by the bytes that went over the wire in it, where these are told as they go and all of them were for ops that ended well:
/// then nothing has to be taken for even.
fn moved(counts: &[SeriesCounts], work: CountedWork, kind: Option<OpKind>) -> Option<Vec<f64>> {
    if kind.is_none_or(OpKind::is_block) {
        return None;
    }
    let sum = |f: &dyn Fn(&SeriesCounts) -> u64| counts.iter().map(f).sum::<u64>() as f64;
    let (moved, ok, ops) = (sum(&|c| c.bytes_moved), sum(&|c| c.bytes_ok), sum(&SeriesCounts::ok));
    // What was in flight when somebody ended the load moved as it should until then, each less than a whole one.
    let in_flight = sum(&cancelled) / ops * ok;
    // Whoever tells of bytes when an op ends (a log of another tool) has them there.
    let at_ends = counts.iter().all(|c| c.bytes_moved == c.bytes_ok);
    if at_ends || ok <= 0.0 || moved < ok * (1.0 - WASTED) || moved > (ok + in_flight) * (1.0 + WASTED) {
        return None;
    }
    let each = match work {
        CountedWork::Bytes => 1.0,
        CountedWork::Ops => ops / ok,
    };
    Some(counts.iter().map(|c| c.bytes_moved as f64 * each).collect())
}

fn cancelled(c: &SeriesCounts) -> u64 {
    c.outcomes[Outcome::Cancelled.index()]
}

/// How long ops take, where that is long enough and tells what was done.
fn mean_s<'a>(counts: impl IntoIterator<Item = &'a SeriesCounts>, longer_than_ns: u64) -> Option<f64> {
    let mut sum = SeriesCounts::default();
    counts.into_iter().for_each(|c| sum.merge(c));
    if sum.ok() == 0 || sum.throttled() > 0 {
        return None;
    }
    let mean_ns = sum.in_system_ns as f64 / sum.ok() as f64;
    (mean_ns >= longer_than_ns as f64).then_some(mean_ns / 1e9)
}
