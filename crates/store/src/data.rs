//! A run as its readers want it: per stage the series over time in bounded memory, and merged totals of windows.

use std::collections::BTreeMap;

use plimsoll_model::analysis::Remark;
use plimsoll_model::interval::{ClientCounts, EndpointCounts};
use plimsoll_model::plan::Stage;
use plimsoll_model::{Environment, Outcome, Plan, Sample, Series, SeriesId};

use crate::StoreError;
use crate::codec::{SparseInterval, SparseSeries};
use crate::frame::Damage;
use crate::mark::{Mark, StageReport};
use crate::merge::MergedReader;
use crate::rundir::RunDir;
use crate::sparse::SparseHistogram;
use crate::stream::{Record, StreamReader};
use crate::unknown::{Skipped, Unknown};

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

impl RunDir {
    /// Loads the run in bounded memory. A killed or damaged run loads up to what is readable; see [`RunData::damage`].
    pub fn load(&self, options: &LoadOptions) -> Result<RunData, StoreError> {
        let env = self.env()?;
        let span = self.span()?;
        let grid_ns = span.grid_ns;
        let asked = options.step_ns.unwrap_or(grid_ns).div_ceil(grid_ns).max(1);
        let slices = (span.last - span.first).saturating_add(1);
        let mut per_point = asked.max(slices.div_ceil(options.max_points.max(1)));
        let (loader, mut damage) = loop {
            match self.load_stages(Loader::new(span, per_point))? {
                (loader, damage) if !loader.too_many => break (loader, damage),
                // One point of each series is too many: no run of ours has so many series.
                _ if per_point >= slices => {
                    return Err(StoreError::Content {
                        path: self.path().to_owned(),
                        problem: format!("it has more than {MAX_CELLS} series"),
                    });
                }
                _ => per_point = per_point.saturating_mul(4),
            }
        };
        let (stages, marks, mut skipped) = loader.finish();
        let samples = self.load_samples(options.max_samples, &mut damage, &mut skipped)?;
        Ok(RunData {
            id: env.id,
            plan: self.plan()?,
            environment: env.environment,
            rerun: env.rerun,
            grid_ns,
            step_ns: per_point.saturating_mul(grid_ns),
            stages,
            marks,
            remarks: self.remarks()?,
            samples,
            damage,
            skipped,
            end: self.sealed()?.map(|s| s.end),
        })
    }

    /// One pass over the interval files; ended early where the loader holds too much.
    fn load_stages(&self, mut loader: Loader) -> Result<(Loader, Vec<Damage>), StoreError> {
        let mut reader = MergedReader::new(self.interval_readers()?);
        while !loader.too_many
            && let Some(record) = reader.next()?
        {
            loader.take(record);
        }
        loader.close_all();
        Ok((loader, reader.damage()))
    }

    /// Merges windows, in one pass over the files: exact histograms whatever the length of the run.
    pub fn totals(&self, windows: &[Window]) -> Result<Vec<Totals>, StoreError> {
        let mut sums: Vec<Vec<SparseInterval>> =
            windows.iter().map(|w| vec![SparseInterval::default(); w.blocks()]).collect();
        let mut reader = MergedReader::new(self.interval_readers()?);
        while let Some(record) = reader.next()? {
            let Record::Interval { stage, interval } = record else { continue };
            for (w, sum) in windows.iter().zip(&mut sums) {
                if w.stage == stage && (w.from..w.to).contains(&interval.index) {
                    sum[w.block_of(interval.index)].merge(&interval);
                }
            }
        }
        let finish = |(w, blocks): (&Window, Vec<SparseInterval>)| {
            let mut all = SparseInterval::default();
            blocks.iter().for_each(|b| all.merge(b));
            Totals {
                window: *w,
                client: all.client,
                series: all.series.iter().map(SparseSeries::to_series).collect(),
                blocks: blocks.into_iter().map(|b| b.series).collect(),
            }
        };
        Ok(windows.iter().zip(sums).map(finish).collect())
    }

    /// First and last slice, without decoding the rest.
    fn span(&self) -> Result<Span, StoreError> {
        let (mut first, mut last, mut grid_ns) = (u64::MAX, 0, None);
        for mut reader in self.interval_readers()? {
            grid_ns.get_or_insert(reader.header().grid_ns);
            while let Some((_, index)) = reader.next_index()? {
                first = first.min(index);
                last = last.max(index);
            }
        }
        let grid_ns = grid_ns.ok_or_else(|| StoreError::Dir {
            path: self.path().to_owned(),
            problem: "the run ended before anything was recorded".into(),
            remedy: "Run it again",
        })?;
        Ok(Span { first: first.min(last), last, grid_ns })
    }

    fn load_samples(
        &self,
        max: usize,
        damage: &mut Vec<Damage>,
        skipped: &mut Skipped,
    ) -> Result<Vec<Sample>, StoreError> {
        let mut all = Vec::new();
        for path in self.sample_files()? {
            let mut reader = StreamReader::open(&path)?;
            let mut keep = Thinned::new(max.max(2));
            while let Some(record) = reader.next()? {
                match record {
                    Record::Sample(s) => keep.push(*s),
                    Record::Unknown(u) => skipped.add(u),
                    Record::Interval { .. } | Record::Mark(_) => {}
                }
            }
            damage.extend(reader.damage().cloned());
            all.extend(keep.kept);
        }
        all.sort_by_key(|s| s.at_ns);
        Ok(all)
    }
}

#[derive(Debug, Clone, Copy)]
struct Span {
    first: u64,
    last: u64,
    grid_ns: u64,
}

/// Keeps at most `max` things of a stream of unknown length: every one, then every second, then every fourth.
struct Thinned {
    kept: Vec<Sample>,
    max: usize,
    every: u64,
    seen: u64,
}

impl Thinned {
    fn new(max: usize) -> Self {
        Self { kept: Vec::new(), max, every: 1, seen: 0 }
    }

    fn push(&mut self, s: Sample) {
        if self.seen.is_multiple_of(self.every) {
            if self.kept.len() == self.max {
                let mut i = 0;
                self.kept.retain(|_| {
                    i += 1;
                    i % 2 == 1
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.kept.push(s);
            }
        }
        self.seen += 1;
    }
}

/// Builds stages from records in order, holding one open point per stage.
struct Loader {
    span: Span,
    per_point: u64,
    stages: BTreeMap<u32, StageData>,
    open: BTreeMap<u32, (u64, SparseInterval)>,
    marks: Vec<Mark>,
    skipped: Skipped,
    /// Points of series and clients that are held.
    cells: u64,
    /// There are more than [`MAX_CELLS`]: the step has to grow.
    too_many: bool,
}

/// Points of all series together that are held at most: about 300 MB.
const MAX_CELLS: u64 = 1 << 20;

impl Loader {
    fn new(span: Span, per_point: u64) -> Self {
        Self {
            span,
            per_point,
            stages: BTreeMap::new(),
            open: BTreeMap::new(),
            marks: Vec::new(),
            skipped: Skipped::default(),
            cells: 0,
            too_many: false,
        }
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Mark(mark) => {
                self.mark(&mark);
                self.marks.push(mark);
            }
            Record::Interval { stage, interval } => self.interval(stage, interval),
            Record::Sample(_) => {}
            Record::Unknown(unknown) => self.skipped.add(unknown),
        }
    }

    fn mark(&mut self, mark: &Mark) {
        if let Mark::StageStart { stage, at_ns, spec, endpoints, workers, ring } = mark {
            // Agents each write the mark; the first one counts, and workers add up.
            match self.stages.get_mut(stage) {
                Some(known) => known.workers = known.workers.saturating_add(*workers),
                None => {
                    let data = StageData {
                        index: *stage,
                        spec: (**spec).clone(),
                        endpoints: endpoints.clone(),
                        workers: *workers,
                        ring: ring.clone(),
                        start_ns: *at_ns,
                        warmup_end_ns: None,
                        stop_ns: None,
                        stop_reason: None,
                        end_ns: None,
                        void: None,
                        report: StageReport::default(),
                        last_ns: *at_ns,
                        // Nothing was counted before the first slice of all: no points are made for it.
                        first_point: (at_ns / self.span.grid_ns).clamp(self.span.first, self.span.last)
                            / self.per_point,
                        series: BTreeMap::new(),
                        endpoint_series: BTreeMap::new(),
                        client: Vec::new(),
                    };
                    self.stages.insert(*stage, data);
                }
            }
            return;
        }
        let (Mark::WarmupEnd { stage, at_ns }
        | Mark::StopRequested { stage, at_ns, .. }
        | Mark::StageEnd { stage, at_ns }
        | Mark::StageReport { stage, at_ns, .. }
        | Mark::StageVoid { stage, at_ns, .. }) = mark
        else {
            return;
        };
        let Some(data) = self.stages.get_mut(stage) else { return };
        match mark {
            // Of several agents: the last to be warm, the first to stop, the last to end.
            Mark::WarmupEnd { .. } => data.warmup_end_ns = data.warmup_end_ns.max(Some(*at_ns)),
            Mark::StopRequested { reason, .. } => {
                data.stop_ns = Some(data.stop_ns.unwrap_or(*at_ns).min(*at_ns));
                data.stop_reason.get_or_insert_with(|| reason.clone());
            }
            Mark::StageReport { report, .. } => data.report.merge(report),
            Mark::StageVoid { reason, .. } => data.void = Some(reason.clone()),
            _ => data.end_ns = data.end_ns.max(Some(*at_ns)),
        }
    }

    fn interval(&mut self, stage: u32, mut interval: SparseInterval) {
        // Intervals of a stage whose start was lost carry no meaning.
        let Some(data) = self.stages.get_mut(&stage) else {
            self.skipped.add(Unknown::of_counts("slice", "of a stage without its start"));
            return;
        };
        let workloads = data.spec.workloads.len();
        let series = interval.series.len();
        interval.series.retain(|s| s.id.stage == stage && usize::from(s.id.workload) < workloads);
        if interval.series.len() < series {
            self.skipped.add(Unknown::of_counts("series", "of a workload that its stage has not"));
        }
        let end_ns = interval.index.saturating_add(1).saturating_mul(self.span.grid_ns);
        data.last_ns = data.last_ns.max(end_ns);
        let point = interval.index / self.per_point;
        match self.open.get_mut(&stage) {
            Some((at, sum)) if *at == point => sum.merge(&interval),
            _ => {
                self.close(stage);
                self.open.insert(stage, (point, interval));
            }
        }
    }

    /// Turns the open point of a stage into a point of each series; gaps become empty points.
    fn close(&mut self, stage: u32) {
        let Some((point, sum)) = self.open.remove(&stage) else { return };
        let Some(data) = self.stages.get_mut(&stage) else { return };
        // A slice from before the stage's own start is no slice of it.
        let Some(at) = point.checked_sub(data.first_point).map(|at| at as usize) else {
            self.skipped.add(Unknown::of_counts("slice", "from before its stage"));
            return;
        };
        let new = sum.series.iter().filter(|s| !data.series.contains_key(&s.id)).count();
        let length = data.client.len().max(at + 1);
        let grown = (data.series.len() + new + 1) * length - (data.series.len() + 1) * data.client.len();
        self.cells = self.cells.saturating_add(grown as u64);
        if self.cells > MAX_CELLS {
            self.too_many = true;
            return;
        }
        data.client.resize(length, ClientCounts::default());
        data.client[at].merge(&sum.client);
        for s in &sum.series {
            data.series.entry(s.id).or_default();
        }
        for points in data.series.values_mut() {
            points.resize(length, Point::default());
        }
        for s in sum.series.iter().filter(|s| s.endpoints.len() > 1) {
            let points = data.endpoint_series.entry(s.id).or_default();
            points.resize(points.len().max(at + 1), Vec::new());
            points[at].clone_from(&s.endpoints);
        }
        for s in &sum.series {
            if let Some(p) = data.series.get_mut(&s.id).and_then(|points| points.get_mut(at)) {
                *p = Point::from(s);
            }
        }
    }

    fn close_all(&mut self) {
        let open: Vec<u32> = self.open.keys().copied().collect();
        open.into_iter().for_each(|stage| self.close(stage));
    }

    fn finish(self) -> (Vec<StageData>, Vec<Mark>, Skipped) {
        (self.stages.into_values().collect(), self.marks, self.skipped)
    }
}
