//! From the files of a run to what they hold, in bounded memory: records become points, and neighbouring points are merged where
//! there are too many.

use std::collections::BTreeMap;

use plimsoll_model::Sample;
use plimsoll_model::interval::{ClientCounts, EndpointCounts};

use super::{LoadOptions, Point, RunData, StageData, Totals, Window};
use crate::StoreError;
use crate::codec::{SparseInterval, SparseSeries};
use crate::frame::Damage;
use crate::mark::{Mark, StageReport};
use crate::merge::MergedReader;
use crate::rundir::RunDir;
use crate::stream::{Record, StreamReader};
use crate::unknown::{Skipped, Unknown};

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
            EndpointCounts::merge_all(&mut points[at], &s.endpoints);
        }
        for s in &sum.series {
            if let Some(p) = data.series.get_mut(&s.id).and_then(|points| points.get_mut(at)) {
                p.add(&Point::from(s));
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
