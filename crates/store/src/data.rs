//! A run as its readers want it: per stage the series over time in bounded memory, and merged totals of windows.

mod load;

use std::collections::BTreeMap;

use plimsoll_model::analysis::Remark;
use plimsoll_model::interval::{ClientCounts, EndpointCounts};
use plimsoll_model::plan::Stage;
use plimsoll_model::{Environment, Outcome, Plan, Sample, Series, SeriesId};

use crate::codec::SparseSeries;
use crate::frame::Damage;
use crate::mark::{Mark, StageReport};
use crate::sparse::SparseHistogram;
use crate::unknown::Skipped;

/// How much detail to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// Length of a point, rounded up to a multiple of the grid. `None`: the grid, or coarser where `max_points` asks for it.
    pub step_ns: Option<u64>,
    /// Bound on points over time; the step grows until it holds.
    pub max_points: u64,
    /// Bound on samples kept; every n-th is kept so that it holds.
    pub max_samples: usize,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { step_ns: None, max_points: 72_000, max_samples: 100_000 }
    }
}

impl LoadOptions {
    /// Points of (at least) this length.
    pub fn step(step_ns: u64) -> Self {
        Self { step_ns: Some(step_ns), ..Self::default() }
    }
}

/// What a run directory holds.
#[derive(Debug, Clone, PartialEq)]
pub struct RunData {
    pub id: String,
    pub plan: Plan,
    pub environment: Environment,
    pub rerun: String,
    /// Slice of the stored grid.
    pub grid_ns: u64,
    /// Length of a [`Point`]: a multiple of the grid.
    pub step_ns: u64,
    /// In order of their index.
    pub stages: Vec<StageData>,
    pub marks: Vec<Mark>,
    /// What persons noted (`plimsoll mark`).
    pub remarks: Vec<Remark>,
    /// Resources, by time.
    pub samples: Vec<Sample>,
    /// Files that could not be read to their end.
    pub damage: Vec<Damage>,
    /// Records of whole frames that this version cannot read.
    pub skipped: Skipped,
    /// How the run ended; `None` when it was killed.
    pub end: Option<String>,
}

/// One stage. Times are nanoseconds since the run's start.
#[derive(Debug, Clone, PartialEq)]
pub struct StageData {
    pub index: u32,
    pub spec: Stage,
    /// Per workload: names of its endpoints, as [`Series::endpoints`] has them.
    pub endpoints: Vec<Vec<String>>,
    pub workers: u32,
    pub ring: String,
    pub start_ns: u64,
    pub warmup_end_ns: Option<u64>,
    pub stop_ns: Option<u64>,
    pub stop_reason: Option<String>,
    pub end_ns: Option<u64>,
    /// Why it does not count, if it does not.
    pub void: Option<String>,
    pub report: StageReport,
    /// End of the last slice that was seen.
    pub last_ns: u64,
    /// Points without gaps: point `i` covers `[first + i, first + i + 1) * step_ns`.
    pub first_point: u64,
    pub series: BTreeMap<SeriesId, Vec<Point>>,
    /// Of series with several endpoints: what each endpoint did, point by point.
    pub endpoint_series: BTreeMap<SeriesId, Vec<Vec<EndpointCounts>>>,
    pub client: Vec<ClientCounts>,
}

/// One series in one step of time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    pub started: u64,
    pub outcomes: [u64; Outcome::COUNT],
    pub bytes_moved: u64,
    pub bytes_ok: u64,
    pub in_system_ns: u128,
    /// Of ops that ended neither `Ok` nor throttled.
    pub failed_in_system_ns: u128,
    pub response: Quantiles,
    /// Zero where it is not recorded apart (a closed loop).
    pub service: Quantiles,
    pub first_byte: Quantiles,
}

impl Point {
    pub fn ok(&self) -> u64 {
        self.outcomes[Outcome::Ok.index()]
    }

    pub fn throttled(&self) -> u64 {
        self.count(Outcome::is_throttled)
    }

    pub fn failed(&self) -> u64 {
        self.count(Outcome::is_failure)
    }

    /// Adds what can be summed up; percentiles stay as they are.
    pub fn add_counts(&mut self, other: &Self) {
        self.started = self.started.saturating_add(other.started);
        self.outcomes.iter_mut().zip(other.outcomes).for_each(|(a, b)| *a = a.saturating_add(b));
        self.bytes_moved = self.bytes_moved.saturating_add(other.bytes_moved);
        self.bytes_ok = self.bytes_ok.saturating_add(other.bytes_ok);
        self.in_system_ns = self.in_system_ns.saturating_add(other.in_system_ns);
        self.failed_in_system_ns = self.failed_in_system_ns.saturating_add(other.failed_in_system_ns);
    }

    /// Adds a part of the same step that came late. Percentiles are those of the part with more ops: this is for charts, and windows are
    /// merged from histograms.
    pub(crate) fn add(&mut self, late: &Self) {
        let ended = |p: &Self| p.outcomes.iter().copied().fold(0, u64::saturating_add);
        if ended(late) > ended(self) {
            (self.response, self.service, self.first_byte) = (late.response, late.service, late.first_byte);
        }
        self.add_counts(late);
    }

    fn count(&self, pick: impl Fn(Outcome) -> bool) -> u64 {
        let picked = Outcome::ALL.into_iter().filter(|o| pick(*o)).map(|o| self.outcomes[o.index()]);
        picked.fold(0, u64::saturating_add)
    }
}

/// Latencies of a point, nanoseconds; all zero when nothing ended in it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quantiles {
    pub mean_ns: f64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
}

impl From<&SparseHistogram> for Quantiles {
    fn from(h: &SparseHistogram) -> Self {
        Self {
            mean_ns: h.mean(),
            p50_ns: h.quantile(0.5),
            p90_ns: h.quantile(0.9),
            p99_ns: h.quantile(0.99),
            p999_ns: h.quantile(0.999),
            max_ns: h.max(),
        }
    }
}

impl From<&SparseSeries> for Point {
    fn from(s: &SparseSeries) -> Self {
        let optional =
            |h: &Option<SparseHistogram>| h.as_ref().map_or_else(Quantiles::default, Quantiles::from);
        Self {
            started: s.started,
            outcomes: s.outcomes,
            bytes_moved: s.bytes_moved,
            bytes_ok: s.bytes_ok,
            in_system_ns: s.in_system_ns,
            failed_in_system_ns: s.failed_in_system_ns,
            response: Quantiles::from(&s.response),
            service: optional(&s.service),
            first_byte: optional(&s.first_byte),
        }
    }
}

impl StageData {
    /// The measured window in whole slices `[from, to)`: from the end of the warm-up to the stop. A stage that is too
    /// short to hold a whole slice is taken as it is, with the slices at its edges. `None` when it is empty.
    pub fn window(&self, grid_ns: u64) -> Option<Window> {
        let from = self.warmup_end_ns?.div_ceil(grid_ns);
        let to = self.stop_ns.unwrap_or(self.last_ns) / grid_ns;
        if from < to {
            return Some(Window { stage: self.index, from, to });
        }
        self.end_ns.and_then(|_| self.extent(grid_ns))
    }

    /// Every slice in which an op after the warm-up may have ended. A warm-up of its own keeps the slice at its edge out.
    pub fn extent(&self, grid_ns: u64) -> Option<Window> {
        let warm = self.warmup_end_ns?;
        let from = if warm == self.start_ns { warm / grid_ns } else { warm.div_ceil(grid_ns) };
        let to = self.end_ns.unwrap_or(self.last_ns).max(self.last_ns).div_ceil(grid_ns);
        (from < to).then_some(Window { stage: self.index, from, to })
    }

    /// Whether it ended because its ops, bytes or passes were done, not its time.
    pub fn ended_by_work(&self) -> bool {
        matches!(self.stop_reason.as_deref(), Some("ops" | "bytes" | "loops"))
    }

    /// The points that lie wholly inside `[from_ns, to_ns)`.
    pub fn points(&self, id: SeriesId, step_ns: u64, from_ns: u64, to_ns: u64) -> &[Point] {
        let Some(points) = self.series.get(&id) else { return &[] };
        &points[self.range(points.len(), step_ns, from_ns, to_ns)]
    }

    /// What each of several endpoints did in the points that lie wholly inside `[from_ns, to_ns)`.
    pub fn endpoint_points(
        &self,
        id: SeriesId,
        step_ns: u64,
        from_ns: u64,
        to_ns: u64,
    ) -> &[Vec<EndpointCounts>] {
        let Some(points) = self.endpoint_series.get(&id) else { return &[] };
        &points[self.range(points.len(), step_ns, from_ns, to_ns)]
    }

    /// The workers' own counts of the points that lie wholly inside `[from_ns, to_ns)`.
    pub fn client_points(&self, step_ns: u64, from_ns: u64, to_ns: u64) -> &[ClientCounts] {
        &self.client[self.range(self.client.len(), step_ns, from_ns, to_ns)]
    }

    fn range(&self, len: usize, step_ns: u64, from_ns: u64, to_ns: u64) -> std::ops::Range<usize> {
        let clip = |p: u64| (p.saturating_sub(self.first_point) as usize).min(len);
        let (from, to) = (clip(from_ns.div_ceil(step_ns)), clip(to_ns / step_ns));
        from..to.max(from)
    }
}

/// Slices `[from, to)` of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub stage: u32,
    pub from: u64,
    pub to: u64,
}

impl Window {
    /// How many stretches it is cut into: each holds a slice at least.
    fn blocks(&self) -> usize {
        self.to.saturating_sub(self.from).clamp(1, BLOCKS) as usize
    }

    /// The stretch of a slice inside the window.
    fn block_of(&self, slice: u64) -> usize {
        let (at, of) = (u128::from(slice - self.from), u128::from(self.to - self.from));
        (at * self.blocks() as u128 / of) as usize
    }

    pub fn seconds(&self, grid_ns: u64) -> f64 {
        (self.to - self.from) as f64 * grid_ns as f64 / 1e9
    }
}

/// Everything of a window, merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    pub window: Window,
    pub series: Vec<Series>,
    pub client: ClientCounts,
    /// The same in equal stretches of the window, in order of time: how much they differ tells how exactly percentiles are known.
    pub blocks: Vec<Vec<SparseSeries>>,
}

/// Stretches that a window is cut into, at the most.
const BLOCKS: u64 = 20;

impl Totals {
    pub fn get(&self, id: SeriesId) -> Option<&Series> {
        self.series.iter().find(|s| s.id == id)
    }
}
