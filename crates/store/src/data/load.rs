//! From the files of a run to what they hold, in bounded memory: records become points, and neighbouring points are merged where
//! there are too many. growing.rs does the same of a run that goes on, without reading twice.

use std::collections::BTreeMap;

use plimsoll_model::interval::{ClientCounts, EndpointCounts};
use plimsoll_model::plan::ControllerSpec;
use plimsoll_model::{Plan, Series};

use super::agents::Roll;
use super::{
    AgentTotals, HostSamples, LoadOptions, ObservedSource, Point, RunAgent, RunData, StageData, Totals,
    Window, samples,
};
use crate::StoreError;
use crate::codec::{SparseInterval, SparseSeries};
use crate::frame::Damage;
use crate::mark::{Mark, StageReport};
use crate::merge::MergedReader;
use crate::rundir::{EnvFile, RunDir};
use crate::stream::{Record, StreamReader};
use crate::unknown::{Skipped, Unknown};

impl RunDir {
    /// Loads the run in bounded memory. A killed or damaged run loads up to what is readable; see [`RunData::damage`].
    pub fn load(&self, options: &LoadOptions) -> Result<RunData, StoreError> {
        let env = self.env()?;
        let readers = self.interval_readers()?;
        let roll = Roll::call(&env.environment, &sources(&readers));
        let span = self.span(readers)?;
        let grid_ns = span.grid_ns;
        let asked = options.step_ns.unwrap_or(grid_ns).div_ceil(grid_ns).max(1);
        let slices = (span.last - span.first).saturating_add(1);
        let mut per_point = asked.max(slices.div_ceil(options.max_points.max(1)));
        let (loader, mut damage) = loop {
            match self.load_stages(Loader::new(span, per_point, roll.clone()))? {
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
        let mut skipped = Skipped::default();
        let told = self.load_samples(options.max_samples, &mut damage, &mut skipped)?;
        self.assembled(env, loader, told, (damage, skipped))
    }

    /// A run of what its files hold.
    pub(super) fn assembled(
        &self,
        env: EnvFile,
        loader: Loader,
        (hosts, observed): (Vec<HostSamples>, Vec<ObservedSource>),
        (damage, more_skipped): (Vec<Damage>, Skipped),
    ) -> Result<RunData, StoreError> {
        let plan = self.plan()?;
        let (grid_ns, per_point) = (loader.span.grid_ns, loader.per_point);
        let (mut stages, marks, mut skipped, mut agents) = loader.finish();
        skipped.merge(more_skipped);
        stages.iter_mut().for_each(|s| s.planned_ns = planned_ns(&plan, s));
        samples::assign(&mut agents, &hosts);
        let end = self.sealed()?.map(|s| s.end);
        Ok(RunData {
            id: env.id,
            plan,
            environment: env.environment,
            rerun: env.rerun,
            grid_ns,
            step_ns: per_point.saturating_mul(grid_ns),
            stages,
            marks,
            remarks: self.remarks()?,
            agents,
            hosts,
            observed,
            damage,
            skipped,
            running: end.is_none() && self.is_running(),
            end,
            imported: self.imported()?,
        })
    }

    /// One pass over the interval files; ended early where the loader holds too much.
    fn load_stages(&self, mut loader: Loader) -> Result<(Loader, Vec<Damage>), StoreError> {
        let mut reader = MergedReader::new(self.interval_readers()?);
        while !loader.too_many
            && let Some((file, record)) = reader.next()?
        {
            loader.take(file, record);
        }
        loader.close_all();
        for (file, _) in reader.damage() {
            loader.roll.note_damage(file);
        }
        let damage = reader.damage().map(|(_, d)| d.clone()).collect();
        Ok((loader, damage))
    }

    /// Merges windows, in one pass over the files: exact histograms whatever the length of the run. Of the first `by_agent` windows
    /// what each of several agents did is kept beside it.
    pub fn totals(&self, windows: &[Window], by_agent: usize) -> Result<Vec<Totals>, StoreError> {
        let mut sums: Vec<Vec<SparseInterval>> =
            windows.iter().map(|w| vec![SparseInterval::empty(0); w.blocks()]).collect();
        // One that cannot be read is told by whoever loads the run.
        let environment = self.env().map(|e| e.environment).unwrap_or_default();
        let readers = self.interval_readers()?;
        let roll = Roll::call(&environment, &sources(&readers));
        let by_agent = if roll.is_several() { by_agent.min(windows.len()) } else { 0 };
        let with_times = roll.keeps_times(by_agent);
        let mut agents: Vec<BTreeMap<usize, AgentTotals>> = vec![BTreeMap::new(); windows.len()];
        let mut reader = MergedReader::new(readers);
        while let Some((file, record)) = reader.next()? {
            let Record::Interval { stage, interval } = record else { continue };
            let agent = roll.agent_of(file);
            for (i, ((w, sum), agents)) in windows.iter().zip(&mut sums).zip(&mut agents).enumerate() {
                if w.stage == stage && (w.from..w.to).contains(&interval.index) {
                    sum[w.block_of(interval.index)].merge(&interval);
                    if i < by_agent {
                        let of = agents.entry(agent).or_insert_with(|| AgentTotals::new(agent));
                        of.add(&interval, with_times);
                    }
                }
            }
        }
        let agents = agents.into_iter().map(|a| a.into_values().collect());
        let all = windows.iter().zip(sums).zip(agents);
        Ok(all.map(|((w, blocks), agents)| Totals::of_blocks(*w, blocks, agents)).collect())
    }

    /// First and last slice, without decoding the rest.
    pub(super) fn span(&self, readers: Vec<StreamReader>) -> Result<Span, StoreError> {
        let (mut first, mut last, mut grid_ns) = (u64::MAX, 0, None);
        for mut reader in readers {
            let own_ns = reader.header().grid_ns;
            let others_ns = *grid_ns.get_or_insert(own_ns);
            if others_ns != own_ns {
                return Err(StoreError::Content {
                    path: self.path().to_owned(),
                    problem: format!("its files of intervals have grids of {others_ns} ns and {own_ns} ns"),
                });
            }
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
}

impl Totals {
    /// Of what its stretches hold.
    pub(super) fn of_blocks(window: Window, blocks: Vec<SparseInterval>, agents: Vec<AgentTotals>) -> Self {
        let mut all = SparseInterval::empty(0);
        blocks.iter().for_each(|b| all.merge(b));
        Self {
            window,
            client: all.client,
            series: all.series.iter().map(Series::to_form).collect(),
            agents,
            blocks: blocks.into_iter().map(|b| b.series).collect(),
        }
    }
}

/// The agent that each interval file names.
pub(super) fn sources(readers: &[StreamReader]) -> Vec<String> {
    readers.iter().map(|r| r.header().source.clone()).collect()
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub first: u64,
    pub last: u64,
    pub grid_ns: u64,
}

/// Builds stages from records in order, holding one open point per stage.
#[derive(Debug, Clone)]
pub(super) struct Loader {
    span: Span,
    per_point: u64,
    roll: Roll,
    stages: BTreeMap<u32, StageData>,
    open: BTreeMap<u32, OpenPoint>,
    marks: Vec<Mark>,
    skipped: Skipped,
    /// Points of series and clients that are held, and those of single agents in quarters.
    cells: u64,
    /// There are more than [`MAX_CELLS`]: the step has to grow.
    pub too_many: bool,
}

/// Points of all series together that are held at most: about 300 MB.
const MAX_CELLS: u64 = 1 << 20;
/// A point of one agent's counts has this part of the bytes of a series' point.
const AGENT_CELLS_IN_ONE: u64 = 4;

/// The point of a stage that slices are being added to.
#[derive(Debug, Clone)]
struct OpenPoint {
    point: u64,
    sum: SparseInterval,
    /// Of several agents, each one's workers.
    clients: BTreeMap<usize, ClientCounts>,
}

impl OpenPoint {
    fn add_client(&mut self, agent: Option<usize>, client: &ClientCounts) {
        if let Some(agent) = agent {
            self.clients.entry(agent).or_default().merge(client);
        }
    }
}

impl Loader {
    pub(super) fn new(span: Span, per_point: u64, roll: Roll) -> Self {
        Self {
            span,
            per_point,
            roll,
            stages: BTreeMap::new(),
            open: BTreeMap::new(),
            marks: Vec::new(),
            skipped: Skipped::default(),
            cells: 0,
            too_many: false,
        }
    }

    /// The next record of a file.
    pub(super) fn take(&mut self, file: usize, record: Record) {
        let agent = self.roll.agent_of(file);
        match record {
            Record::Mark(mark) => {
                self.mark(agent, &mark);
                self.marks.push(mark);
            }
            Record::Interval { stage, interval } => self.interval(agent, stage, &interval),
            Record::Sample(_) | Record::Scrape(_) => {}
            Record::Unknown(unknown) => self.skipped.add(unknown),
        }
    }

    fn mark(&mut self, agent: usize, mark: &Mark) {
        if let Mark::StageStart { stage, at_ns, spec, endpoints, workers, ring, slots } = mark {
            // Agents each write the mark. Of what holds for all of them the first one counts; the load begins with the earliest, and
            // workers add up.
            // Nothing was counted before the first slice of all: no points are made for it.
            let first_point =
                (at_ns / self.span.grid_ns).clamp(self.span.first, self.span.last) / self.per_point;
            let data = self.stages.entry(*stage).or_insert_with(|| StageData {
                index: *stage,
                spec: (**spec).clone(),
                endpoints: endpoints.clone(),
                workers: 0,
                ring: ring.clone(),
                start_ns: *at_ns,
                warmup_end_ns: None,
                stop_ns: None,
                stop_reason: None,
                planned_ns: None,
                end_ns: None,
                void: None,
                report: StageReport::default(),
                last_ns: *at_ns,
                first_point,
                series: BTreeMap::new(),
                endpoint_series: BTreeMap::new(),
                client: Vec::new(),
                agents: Vec::new(),
                cut: None,
            });
            if *at_ns < data.start_ns && data.client.is_empty() {
                data.start_ns = *at_ns;
                data.first_point = first_point;
            }
            data.workers = data.workers.saturating_add(*workers);
            let own = data.agent_mut(agent);
            own.workers = own.workers.saturating_add(*workers);
            own.slots = own.slots.saturating_add(*slots);
            own.start_ns.get_or_insert(*at_ns);
            return;
        }
        if let Mark::AgentLost { stage, at_ns, agent } = mark {
            if let (Some(data), Some(lost)) = (self.stages.get_mut(stage), self.roll.number_of(agent)) {
                let own = data.agent_mut(lost);
                own.lost_ns = Some(own.lost_ns.map_or(*at_ns, |earlier| earlier.min(*at_ns)));
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
        if let Mark::StageEnd { .. } = mark {
            let own = data.agent_mut(agent);
            own.end_ns = own.end_ns.max(Some(*at_ns));
        }
        if let Mark::StageReport { report, .. } = mark {
            let own = data.agent_mut(agent);
            own.times = own.times.or(report.times);
        }
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

    /// A slice of an agent.
    pub(super) fn interval(&mut self, agent: usize, stage: u32, interval: &SparseInterval) {
        // Intervals of a stage whose start was lost carry no meaning.
        let Some(data) = self.stages.get_mut(&stage) else {
            self.skipped.add(Unknown::of_counts("slice", "of a stage without its start"));
            return;
        };
        let workloads = data.spec.workloads.len();
        let is_ours = |s: &SparseSeries| s.id.stage == stage && usize::from(s.id.workload) < workloads;
        if !interval.series.iter().all(is_ours) {
            self.skipped.add(Unknown::of_counts("series", "of a workload that its stage has not"));
            let mut ours = interval.clone();
            ours.series.retain(is_ours);
            return self.interval(agent, stage, &ours);
        }
        let end_ns = interval.index.saturating_add(1).saturating_mul(self.span.grid_ns);
        data.last_ns = data.last_ns.max(end_ns);
        let own = data.agent_mut(agent);
        own.last_ns = own.last_ns.max(Some(end_ns));
        if own.first_done_ns.is_none_or(|first| end_ns < first)
            && interval.series.iter().any(|s| s.counts.outcomes.iter().any(|n| *n > 0))
        {
            own.first_done_ns = Some(end_ns);
        }
        let of_agent = self.roll.is_several().then_some(agent);
        let point = interval.index / self.per_point;
        match self.open.get_mut(&stage) {
            Some(open) if open.point == point => {
                open.add_client(of_agent, &interval.client);
                open.sum.merge(interval);
            }
            _ => {
                self.close(stage);
                let mut open = OpenPoint { point, sum: interval.clone(), clients: BTreeMap::new() };
                open.add_client(of_agent, &interval.client);
                self.open.insert(stage, open);
            }
        }
    }

    /// Turns the open point of a stage into a point of each series; gaps become empty points.
    fn close(&mut self, stage: u32) {
        let Some(OpenPoint { point, sum, clients }) = self.open.remove(&stage) else { return };
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
        self.cells = self.cells.saturating_add(grown_agents(data, &clients, at + 1));
        if self.cells > MAX_CELLS {
            self.too_many = true;
            return;
        }
        data.client.resize(length, ClientCounts::default());
        data.client[at].merge(&sum.client);
        for (agent, counts) in &clients {
            let own = &mut data.agent_mut(*agent).client;
            own.resize(own.len().max(at + 1), ClientCounts::default());
            own[at].merge(counts);
        }
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

    /// No more is added to open points.
    pub(super) fn close_all(&mut self) {
        let open: Vec<u32> = self.open.keys().copied().collect();
        open.into_iter().for_each(|stage| self.close(stage));
    }

    /// Slices in a point.
    pub(super) fn per_point(&self) -> u64 {
        self.per_point
    }

    fn finish(self) -> (Vec<StageData>, Vec<Mark>, Skipped, Vec<RunAgent>) {
        (self.stages.into_values().collect(), self.marks, self.skipped, self.roll.agents)
    }
}

/// When a stage's load was to end, where that is a time: counted from the end of the warm-up that it had.
fn planned_ns(plan: &Plan, stage: &StageData) -> Option<u64> {
    if let Some(ControllerSpec::Limits { .. }) = plan.controller {
        return None;
    }
    let lasts = stage.spec.workloads.iter().map(|w| w.stop.lasts().map(|span| span.as_ns()));
    let longest_ns = lasts.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
    let warm_ns = stage.warmup_end_ns.unwrap_or(stage.start_ns.saturating_add(stage.spec.warmup.as_ns()));
    Some(warm_ns.saturating_add(longest_ns))
}

/// Cells that the agents' own counts take up more when they reach to the `length`-th point.
fn grown_agents(data: &StageData, clients: &BTreeMap<usize, ClientCounts>, length: usize) -> u64 {
    let had = |agent: &usize| {
        data.agents.binary_search_by_key(agent, |a| a.agent).map_or(0, |i| data.agents[i].client.len())
    };
    let grown: usize = clients.keys().map(|agent| length.saturating_sub(had(agent))).sum();
    (grown as u64).div_ceil(AGENT_CELLS_IN_ONE)
}
