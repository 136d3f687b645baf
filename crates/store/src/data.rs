//! A run as its readers want it: per stage the series over time in bounded memory, and merged totals of windows.

mod agents;
mod course;
mod growing;
mod load;
mod observed;
mod samples;
mod unrecorded;

use std::collections::BTreeMap;

use plimsoll_model::analysis::Remark;
use plimsoll_model::interval::{ClientCounts, EndpointCounts};
use plimsoll_model::plan::Stage;
use plimsoll_model::{Environment, Plan, Series, SeriesCounts, SeriesId};

pub use agents::{AgentSeries, AgentTotals, RunAgent, StageAgent, StageCut};
pub use growing::{GrowingRun, RunRecords};
pub use observed::{ServerStep, SubjectSteps, server_steps};
pub use samples::{HostSamples, ObservedSource};

use crate::codec::SparseSeries;
use crate::frame::Damage;
use crate::mark::{Mark, StageReport};
use crate::rundir::ImportedLines;
use crate::sparse::SparseHistogram;
use crate::unknown::Skipped;

/// How much detail to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// Length of a point, rounded up to a multiple of the grid. `None`: the grid, or coarser where `max_points` asks for it.
    pub step_ns: Option<u64>,
    /// Bound on points over time; the step grows until it holds.
    pub max_points: u64,
    /// Bound on samples kept, of all hosts together; every n-th is kept so that it holds.
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
    /// Name of the run.
    pub id: String,
    /// As it was asked for; what a controller made of it is in `stages`.
    pub plan: Plan,
    /// Where and with what.
    pub environment: Environment,
    /// The command that repeats it.
    pub rerun: String,
    /// Slice of the stored grid.
    pub grid_ns: u64,
    /// Length of a [`Point`]: a multiple of the grid.
    pub step_ns: u64,
    /// In order of their index.
    pub stages: Vec<StageData>,
    /// In the order of the record.
    pub marks: Vec<Mark>,
    /// What persons noted (`plimsoll mark`).
    pub remarks: Vec<Remark>,
    /// Who took part, in order of their numbers; never empty in a run of ours.
    pub agents: Vec<RunAgent>,
    /// Resources, each host's by themselves.
    pub hosts: Vec<HostSamples>,
    /// What sources said of servers meanwhile.
    pub observed: Vec<ObservedSource>,
    /// Files that could not be read to their end.
    pub damage: Vec<Damage>,
    /// Records of whole frames that this version cannot read.
    pub skipped: Skipped,
    /// How the run ended; `None` when it was killed, or goes on.
    pub end: Option<String>,
    /// Somebody works on it: what it holds is what it came to so far.
    pub running: bool,
    /// Of an imported run: the figures that another tool printed, where its file has no more than these.
    pub imported: Option<ImportedLines>,
}

/// One stage. Times are nanoseconds since the run's start.
#[derive(Debug, Clone, PartialEq)]
pub struct StageData {
    /// In the order in which stages ran, from 0.
    pub index: u32,
    /// As it was run: a controller may have made it up.
    pub spec: Stage,
    /// Per workload: names of its endpoints, as [`Series::endpoints`] has them.
    pub endpoints: Vec<Vec<String>>,
    /// Threads that put load on, of all agents; 0: written before this was kept.
    pub workers: u32,
    /// The ring that the workers use.
    pub ring: String,
    /// Load began.
    pub start_ns: u64,
    /// Of several agents the last to be warm. `None`: it was never reached.
    pub warmup_end_ns: Option<u64>,
    /// No op was started any more; of several agents the first to stop. `None`: cut off before.
    pub stop_ns: Option<u64>,
    /// `duration`, `ops`, `bytes`, `controller`, `interrupted` or `failed`.
    pub stop_reason: Option<String>,
    /// When no more ops were to be started. `None`: it ends by its work, or when a search has seen enough.
    pub planned_ns: Option<u64>,
    /// The last op ended; of several agents the last. `None`: cut off before.
    pub end_ns: Option<u64>,
    /// Why it does not count, if it does not.
    pub void: Option<String>,
    /// Of all agents, merged.
    pub report: StageReport,
    /// End of the last slice that was seen.
    pub last_ns: u64,
    /// Points without gaps: point `i` covers `[first + i, first + i + 1) * step_ns`.
    pub first_point: u64,
    /// Points by series, all of the same number.
    pub series: BTreeMap<SeriesId, Vec<Point>>,
    /// Of series with several endpoints: what each endpoint did, point by point.
    pub endpoint_series: BTreeMap<SeriesId, Vec<Vec<EndpointCounts>>>,
    /// What the workers themselves did, point by point, of all agents together.
    pub client: Vec<ClientCounts>,
    /// What each agent did that has a part in it, in order of [`RunData::agents`].
    pub agents: Vec<StageAgent>,
    /// It ends with the loss of an agent, by [`RunData::while_all_were_there`]. `None`: it is as it was recorded.
    pub cut: Option<StageCut>,
}

/// One series in one step of time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    /// Ops and bytes; exact.
    pub counts: SeriesCounts,
    /// From the intended start.
    pub response: Quantiles,
    /// Zero where it is not recorded apart (a closed loop).
    pub service: Quantiles,
    /// From submission to the first byte; zero where it is not recorded.
    pub first_byte: Quantiles,
}

impl Point {
    /// Adds a part of the same step that came late. Percentiles are those of the part with more ops: this is for charts, and windows are
    /// merged from histograms.
    pub(crate) fn add(&mut self, late: &Self) {
        let ended = |p: &Self| p.counts.outcomes.iter().copied().fold(0, u64::saturating_add);
        if ended(late) > ended(self) {
            (self.response, self.service, self.first_byte) = (late.response, late.service, late.first_byte);
        }
        self.counts.merge(&late.counts);
    }
}

/// Latencies of a point, nanoseconds; all zero when nothing ended in it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quantiles {
    /// Exact.
    pub mean_ns: f64,
    /// Median; as all below to the three digits of a histogram.
    pub p50_ns: u64,
    /// Nine in ten ops took no longer.
    pub p90_ns: u64,
    /// 99 in 100.
    pub p99_ns: u64,
    /// 999 in 1000.
    pub p999_ns: u64,
    /// The longest.
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
            counts: s.counts,
            response: Quantiles::from(&s.response),
            service: optional(&s.service),
            first_byte: optional(&s.first_byte),
        }
    }
}

impl RunData {
    /// Whether there are agents that have to be told apart.
    pub fn is_several(&self) -> bool {
        self.agents.len() > 1
    }

    /// An agent as findings name it; `None` in a run of one agent, where nobody asks which.
    pub fn name_of<'a>(&self, agent: &'a RunAgent) -> Option<&'a str> {
        self.is_several().then_some(agent.host.agent.as_str())
    }
}

impl StageData {
    /// The measured window in whole slices `[from, to)`: from the end of the warm-up to the stop, or to where the first agent was lost. A
    /// stage that is too short to hold a whole slice is taken as it is, with the slices at its edges. `None` when it is empty.
    pub fn window(&self, grid_ns: u64) -> Option<Window> {
        let from = self.warmup_end_ns?.div_ceil(grid_ns);
        let stop_ns = self.stop_ns.unwrap_or(self.last_ns);
        let to = self.all_until_ns(grid_ns).map_or(stop_ns, |at| at.min(stop_ns)) / grid_ns;
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

    /// What several series did together in the points that lie wholly inside `[from_ns, to_ns)`: counts, which can be summed up,
    /// and no percentiles, which cannot.
    pub fn counts(
        &self,
        ids: impl IntoIterator<Item = SeriesId>,
        step_ns: u64,
        from_ns: u64,
        to_ns: u64,
    ) -> Vec<SeriesCounts> {
        let mut sum: Vec<SeriesCounts> = Vec::new();
        for id in ids {
            let points = self.points(id, step_ns, from_ns, to_ns);
            sum.resize(sum.len().max(points.len()), SeriesCounts::default());
            sum.iter_mut().zip(points).for_each(|(a, p)| a.merge(&p.counts));
        }
        sum
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
    /// [`StageData::index`].
    pub stage: u32,
    /// Number of the first slice, counted from the run's start.
    pub from: u64,
    /// Number of the slice after the last.
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

    /// Its length on a grid of this step ([`RunData::grid_ns`]).
    pub fn seconds(&self, grid_ns: u64) -> f64 {
        (self.to - self.from) as f64 * grid_ns as f64 / 1e9
    }
}

/// Everything of a window, merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// What was asked for.
    pub window: Window,
    /// In order of their ids; those with nothing in the window may be absent.
    pub series: Vec<Series>,
    /// What the workers themselves did.
    pub client: ClientCounts,
    /// What each agent did; empty in a run of one agent, and where it was not asked for.
    pub agents: Vec<AgentTotals>,
    /// The same in equal stretches of the window, in order of time: how much they differ tells how exactly percentiles are known.
    pub blocks: Vec<Vec<SparseSeries>>,
}

/// Stretches that a window is cut into, at the most.
const BLOCKS: u64 = 20;

impl Totals {
    /// `None`: nothing of it was in the window.
    pub fn get(&self, id: SeriesId) -> Option<&Series> {
        self.series.iter().find(|s| s.id == id)
    }
}
