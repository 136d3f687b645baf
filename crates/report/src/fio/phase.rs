//! One stage as a benchmark of files or drives sees it: bytes and ops from its start to the end of its last op.

use std::collections::BTreeMap;

use plimsoll_model::{OpKind, SeriesId};
use plimsoll_store::{RunData, RunDir, StageData, StoreError, Window};

/// What one workload did in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WorkloadDone {
    pub bytes: u64,
    pub ops: u64,
    pub failed: u64,
    /// In the time in which every workload of the stage ran.
    pub common_bytes: u64,
    /// From the stage's start to the end of the last slice in which it did anything.
    pub active_s: f64,
}

/// A stage, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeStage {
    pub name: String,
    pub repeat: u32,
    /// Since the run's start.
    pub start_s: f64,
    /// To the end of the last op, an fsync at the end included.
    pub seconds: f64,
    /// While no worker had stopped; at most `seconds`.
    pub common_s: f64,
    /// By workload and kind of op (fsync is left out).
    pub work: BTreeMap<(usize, OpKind), WorkloadDone>,
    /// First failures, in words.
    pub failures: Vec<String>,
    /// Why the stage does not count.
    pub void: Option<String>,
}

impl WholeStage {
    /// Sum over workloads and kinds.
    pub fn total(&self) -> WorkloadDone {
        self.work.values().fold(WorkloadDone::default(), |a, w| WorkloadDone {
            bytes: a.bytes + w.bytes,
            ops: a.ops + w.ops,
            failed: a.failed + w.failed,
            common_bytes: a.common_bytes + w.common_bytes,
            active_s: a.active_s.max(w.active_s),
        })
    }
}

/// All stages of a run, with the data that they were read from.
pub fn phases(dir: &RunDir) -> Result<(RunData, Vec<WholeStage>), StoreError> {
    let data = dir.load(&plimsoll_store::LoadOptions::default())?;
    let grid = data.grid_ns;
    let windows: Vec<Window> = data
        .stages
        .iter()
        .flat_map(|s| {
            let from = s.start_ns / grid;
            let end = end_ns(s).max(s.last_ns).div_ceil(grid).max(from + 1);
            // Whole slices before the first worker stopped.
            let common = (s.stop_ns.unwrap_or(end * grid) / grid).clamp(from, end);
            [Window { stage: s.index, from, to: end }, Window { stage: s.index, from, to: common }]
        })
        .collect();
    let totals = dir.totals(&windows, 0)?;
    let phases = data
        .stages
        .iter()
        .zip(totals.chunks(2))
        .map(|(stage, both)| {
            let seconds = end_ns(stage).saturating_sub(stage.start_ns) as f64 / 1e9;
            let common_ns = (both[1].window.to * grid).saturating_sub(stage.start_ns);
            let mut work = BTreeMap::new();
            for series in both[0].series.iter().filter(|s| s.id.kind != OpKind::Fsync) {
                let common = both[1].get(series.id).map_or(0, |s| s.counts.bytes_ok);
                let w = WorkloadDone {
                    bytes: series.counts.bytes_ok,
                    ops: series.ok(),
                    failed: series.failed(),
                    common_bytes: common,
                    active_s: active_s(&data, stage, series.id).min(seconds),
                };
                work.insert((usize::from(series.id.workload), series.id.kind), w);
            }
            WholeStage {
                name: stage.spec.name.clone().unwrap_or_default(),
                repeat: stage.spec.cell.as_ref().map_or(0, |c| c.repeat),
                start_s: stage.start_ns as f64 / 1e9,
                seconds,
                common_s: (common_ns as f64 / 1e9).min(seconds),
                work,
                failures: stage.report.failures.iter().map(|f| f.2.clone()).collect(),
                void: stage.void.clone(),
            }
        })
        .collect();
    Ok((data, phases))
}

fn end_ns(stage: &StageData) -> u64 {
    stage.end_ns.unwrap_or(stage.last_ns)
}

fn active_s(data: &RunData, stage: &StageData, id: SeriesId) -> f64 {
    let last = stage
        .series
        .get(&id)
        .and_then(|points| points.iter().rposition(|p| p.counts.ok() + p.counts.failed() > 0));
    last.map_or(0.0, |i| {
        let end = (stage.first_point + i as u64 + 1) * data.step_ns;
        end.saturating_sub(stage.start_ns) as f64 / 1e9
    })
}
