//! One stage's share of a line of the result.

use plimsoll_model::plan::Workload;
use plimsoll_model::{OpKind, Series, SeriesCounts, SeriesId};
use plimsoll_store::{SparseSeries, StageData, Totals};

use super::asked::offered_per_s;

/// One stage's share of a line.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub stage: &'a StageData,
    /// Of the measured window: rates and latencies.
    pub totals: &'a Totals,
    /// What outcomes are counted over: all that was done, where the stage ended by work.
    pub counted: &'a Totals,
    /// Index of the workload in the stage; the first of them where several are taken together.
    pub workload: u16,
    pub together: bool,
}

impl<'a> Part<'a> {
    pub fn spec(&self) -> &'a Workload {
        &self.stage.spec.workloads[usize::from(self.workload)]
    }

    /// The workloads that the line is of.
    pub fn specs(&self, kind: Option<OpKind>) -> Vec<&'a Workload> {
        if !self.together {
            return vec![self.spec()];
        }
        let has = |w: &&Workload| kind.is_none_or(|k| w.mix.contains_key(&k));
        self.stage.spec.workloads.iter().filter(has).collect()
    }

    /// Most ops in flight.
    pub fn concurrency(&self, kind: Option<OpKind>) -> u32 {
        self.specs(kind).iter().map(|w| w.in_flight()).sum()
    }

    /// Ops a second that open loops offer to the line; none where one of its workloads keeps ops in flight instead.
    pub fn offered_per_s(&self, kind: Option<OpKind>) -> Option<f64> {
        let of = |w: &Workload| -> Option<f64> {
            match kind {
                Some(kind) => offered_per_s(w, kind),
                None => w.mix.keys().map(|k| offered_per_s(w, *k)).sum(),
            }
        };
        self.specs(kind).into_iter().map(of).sum()
    }

    /// What was done between two times, step by step, all series of the line together.
    pub fn counts(&self, kind: Option<OpKind>, step_ns: u64, from_ns: u64, to_ns: u64) -> Vec<SeriesCounts> {
        let ids = self.series(kind).into_iter().map(|s| s.id);
        self.stage.counts(ids, step_ns, from_ns, to_ns)
    }

    /// Series of a line in this part: one, or those of the mix.
    pub fn series(&self, kind: Option<OpKind>) -> Vec<&'a Series> {
        self.series_in(self.totals, kind)
    }

    /// The line's series in each stretch of the window.
    pub fn blocks(&self, kind: Option<OpKind>) -> impl Iterator<Item = Vec<&'a SparseSeries>> + use<'a> {
        let part = *self;
        let wanted = move |s: &&SparseSeries| part.is_mine(s.id, kind);
        part.totals.blocks.iter().map(move |b| b.iter().filter(wanted).collect())
    }

    /// Whether a series belongs to the line.
    pub fn is_mine(&self, id: SeriesId, kind: Option<OpKind>) -> bool {
        let spec = &self.stage.spec.workloads[usize::from(id.workload)];
        let mine = if self.together { spec.mix.contains_key(&id.kind) } else { id.workload == self.workload };
        mine && kind.map_or_else(|| self.spec().mix.contains_key(&id.kind), |k| id.kind == k)
    }

    pub fn series_in(&self, totals: &'a Totals, kind: Option<OpKind>) -> Vec<&'a Series> {
        let wanted = |s: &&Series| self.is_mine(s.id, kind);
        totals.series.iter().filter(wanted).collect()
    }

    /// A window at the edges of a short stage reaches beyond it.
    pub fn window_s(&self, grid_ns: u64) -> f64 {
        let (warm, end) = (self.stage.warmup_end_ns, self.stage.end_ns);
        let stage_s = if end.is_some() { seconds_between(warm, end) } else { f64::INFINITY };
        self.totals.window.seconds(grid_ns).min(stage_s.max(1e-9))
    }

    /// From the start of the stage to the end of its last op, an fsync at the end included.
    pub fn phase_s(&self) -> f64 {
        seconds_between(Some(self.stage.start_ns), Some(self.stage.end_ns.unwrap_or(self.stage.last_ns)))
            .max(1e-9)
    }

    pub fn window_ns(&self, grid_ns: u64) -> (u64, u64) {
        (self.totals.window.from * grid_ns, self.totals.window.to * grid_ns)
    }
}

/// How long load was on, warm-up included.
pub fn horizon_s(stage: &StageData) -> f64 {
    seconds_between(Some(stage.start_ns), Some(stage.stop_ns.unwrap_or(stage.last_ns)))
}

pub fn seconds_between(from: Option<u64>, to: Option<u64>) -> f64 {
    match (from, to) {
        (Some(a), Some(b)) => b.saturating_sub(a) as f64 / 1e9,
        _ => 0.0,
    }
}
