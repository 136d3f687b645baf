//! A run that goes on, read again and again: each look takes only what its files have grown by.
//!
//! Reading ten minutes of 64 agents from their beginning takes seconds, and a page that is to be live asks for it each second. What is kept of it is
//! what `RunDir::load` and `RunDir::totals` would make of the files, in bounded memory: points for each resolution that was asked
//! for, and what all agents did together in short cells of time, from which windows are put together. Cells are slices as long as the run is short;
//! later windows of a run that goes on are those of whole cells, and of what has ended there are the files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use super::agents::Roll;
use super::load::{Loader, Span, sources};
use super::samples::{SampleFile, gathered, has_file};
use super::{AgentTotals, LoadOptions, RunData, Totals, Window};
use crate::StoreError;
use crate::codec::SparseInterval;
use crate::frame::Damage;
use crate::merge::MergedReader;
use crate::rundir::RunDir;
use crate::stream::{Record, StreamPosition, StreamReader};
use crate::unknown::Skipped;

/// Where runs are read from: their directory, or what was read of it before.
pub trait RunRecords {
    /// As [`RunDir::load`].
    fn load(&self, options: &LoadOptions) -> Result<RunData, StoreError>;

    /// As [`RunDir::totals`].
    fn totals(&self, windows: &[Window], by_agent: usize) -> Result<Vec<Totals>, StoreError>;
}

impl RunRecords for RunDir {
    fn load(&self, options: &LoadOptions) -> Result<RunData, StoreError> {
        self.load(options)
    }

    fn totals(&self, windows: &[Window], by_agent: usize) -> Result<Vec<Totals>, StoreError> {
        self.totals(windows, by_agent)
    }
}

/// Cells of all stages together: one of a busy load has some 20 KB. With more of them, two become one.
const MOST_CELLS: usize = 2048;
/// An agent's slices come as frames, of a second each, from wherever it is. Slices are taken in their order when all agents have told of them, or
/// when the first is so far ahead (a choice: a page that is a few seconds late is better than one that waits for an agent that is lost).
const AHEAD_NS: u64 = 5_000_000_000;

/// As much is read at once and put in order: more than files grow by between two looks.
const AT_ONCE: u64 = 16 << 20;
/// How often the files have grown without points of a resolution being asked for, until they are not kept any more.
const UNASKED: u32 = 8;

/// What was read of a run, as far as it has come. It is taken further when points are asked for that were asked for before: all that is asked between is
/// of one time.
#[derive(Debug)]
pub struct GrowingRun {
    dir: RunDir,
    at_once: u64,
    seen: RefCell<Option<Seen>>,
    wanted: RefCell<Wanted>,
}

/// What has to be kept when the files are read.
#[derive(Debug, Clone, Default)]
struct Wanted {
    /// How points were asked for, and how often the files have grown since.
    options: Vec<(LoadOptions, u32)>,
    /// Windows of which each agent's part was asked for begin there, by stage; those that still grow.
    by_agent_from: BTreeMap<u32, u64>,
    /// Of so many windows each agent's part was asked for.
    by_agent: usize,
}

#[derive(Debug)]
struct Seen {
    files: Vec<PathBuf>,
    positions: Vec<StreamPosition>,
    damage: Vec<Damage>,
    roll: Roll,
    with_times: bool,
    span: Span,
    /// End of the newest slice of each file.
    newest: Vec<u64>,
    points: Vec<Points>,
    /// Slices that are ahead of what other agents have told, in their order.
    ahead: Vec<(usize, u32, SparseInterval)>,
    cells: Cells,
    samples: Vec<SamplesSeen>,
    /// Totals of windows that have ended, with each agent's part, as they were read from the files.
    ended: Vec<Totals>,
}

/// Slice, stage and file, in which order slices are taken.
type SliceTurn = (u64, u32, usize);

/// Points of one resolution, and the samples beside them.
#[derive(Debug)]
struct Points {
    asked: LoadOptions,
    loader: Loader,
}

#[derive(Debug)]
struct SamplesSeen {
    path: PathBuf,
    position: StreamPosition,
    damage: Option<Damage>,
    /// One for each of [`Wanted::options`].
    kept: Vec<SampleFile>,
}

/// What all agents did together, by stage and time.
#[derive(Debug)]
struct Cells {
    /// Slices in each.
    width: u64,
    of_stage: BTreeMap<u32, StageCells>,
    number: usize,
}

#[derive(Debug, Default)]
struct StageCells {
    cells: BTreeMap<u64, SparseInterval>,
    /// Its newest slice.
    newest: u64,
    agents_from: Option<u64>,
    agents: BTreeMap<usize, AgentTotals>,
}

impl GrowingRun {
    /// Nothing is read yet.
    pub fn new(dir: RunDir) -> Self {
        Self { dir, at_once: AT_ONCE, seen: RefCell::new(None), wanted: RefCell::default() }
    }

    /// Files that have grown by more bytes than this are read side by side, one record of each in memory.
    pub fn reading_at_once(self, bytes: u64) -> Self {
        Self { at_once: bytes, ..self }
    }

    /// Its directory.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Each time that the files are read because of points that were asked for again.
    fn forget_what_nobody_asks_for(&self) {
        let (mut seen, mut wanted) = (self.seen.borrow_mut(), self.wanted.borrow_mut());
        wanted.options.iter_mut().for_each(|(_, unasked)| *unasked += 1);
        while let Some(at) = wanted.options.iter().position(|(_, unasked)| *unasked > UNASKED) {
            wanted.options.remove(at);
            if let Some(s) = seen.as_mut().filter(|s| at < s.points.len()) {
                s.points.remove(at);
                s.samples.iter_mut().for_each(|f| drop(f.kept.remove(at)));
            }
        }
    }

    /// Takes what the files have grown by; from their beginning where something is wanted that was not kept.
    fn grow(&self) -> Result<(), StoreError> {
        let files = self.dir.interval_files()?;
        let mut seen = self.seen.borrow_mut();
        let wanted = self.wanted.borrow();
        let is_same = |s: &Seen| s.files == files && s.points.len() == wanted.options.len();
        if let Some(s) = seen.as_mut().filter(|s| is_same(s)) {
            s.go_on(&self.dir, self.at_once)?;
            if s.fits() {
                return Ok(());
            }
        }
        *seen = None;
        let mut coarser = vec![1; wanted.options.len()];
        // One point of each series is too many only of a run that is none of ours: `RunDir::load` says so.
        for _ in 0..32 {
            let s = Seen::from_the_beginning(self, &files, &wanted, &coarser)?;
            let too_many: Vec<bool> = s.points.iter().map(|p| p.loader.too_many).collect();
            if !too_many.contains(&true) {
                *seen = Some(s);
                return Ok(());
            }
            coarser.iter_mut().zip(too_many).filter(|(_, is)| *is).for_each(|(c, _)| *c *= 4);
        }
        self.dir.load(&LoadOptions::default()).map(drop)
    }
}

impl RunRecords for GrowingRun {
    fn load(&self, options: &LoadOptions) -> Result<RunData, StoreError> {
        // Those that were asked for since the files were last read.
        let mut asked: Vec<LoadOptions> = Vec::new();
        let is_due = {
            let mut wanted = self.wanted.borrow_mut();
            match wanted.options.iter_mut().find(|(o, _)| o == options) {
                Some((_, unasked)) => std::mem::take(unasked) == 0,
                None => {
                    asked.extend(wanted.options.iter().filter(|(_, unasked)| *unasked == 0).map(|(o, _)| *o));
                    wanted.options.push((*options, 0));
                    true
                }
            }
        };
        if is_due || self.seen.borrow().is_none() {
            asked.push(*options);
            self.forget_what_nobody_asks_for();
            self.grow()?;
            let mut wanted = self.wanted.borrow_mut();
            wanted
                .options
                .iter_mut()
                .filter(|(o, _)| asked.contains(o))
                .for_each(|(_, unasked)| *unasked = 0);
        }
        let seen = self.seen.borrow();
        let Some(seen) = seen.as_ref() else { return self.dir.load(options) };
        let Some(at) = seen.points.iter().position(|p| p.asked == *options) else {
            return self.dir.load(options);
        };
        let mut loader = seen.points[at].loader.clone();
        loader.close_all();
        let mut skipped = Skipped::default();
        let kept = seen.samples.iter().filter_map(|s| s.kept.get(at).cloned());
        let told = gathered(kept, &mut skipped);
        let of_samples = seen.samples.iter().filter_map(|s| s.damage.clone());
        let damage = seen.damage.iter().cloned().chain(of_samples).collect();
        self.dir.assembled(self.dir.env()?, loader, told, (damage, skipped))
    }

    fn totals(&self, windows: &[Window], by_agent: usize) -> Result<Vec<Totals>, StoreError> {
        if self.seen.borrow().is_none() {
            self.grow()?;
        }
        let by_agent = self
            .seen
            .borrow()
            .as_ref()
            .filter(|s| s.roll.is_several())
            .map_or(0, |_| by_agent.min(windows.len()));
        let from: BTreeMap<u32, u64> = match self.seen.borrow().as_ref() {
            Some(s) => windows[..by_agent]
                .iter()
                .filter(|w| s.cells.is_growing(w))
                .map(|w| (w.stage, w.from))
                .collect(),
            None => return self.dir.totals(windows, by_agent),
        };
        let is_counted =
            |s: &Seen| from.iter().all(|(stage, from)| s.cells.agents_from(*stage) == Some(*from));
        if !self.seen.borrow().as_ref().is_some_and(is_counted) {
            let wanted = Wanted { by_agent_from: from, by_agent, ..self.wanted.borrow().clone() };
            self.wanted.replace(wanted);
            self.seen.replace(None);
            self.grow()?;
        }
        let mut seen = self.seen.borrow_mut();
        let Some(seen) = seen.as_mut() else { return self.dir.totals(windows, by_agent) };
        let mut out: Vec<Option<Totals>> =
            windows.iter().enumerate().map(|(i, w)| seen.totals(w, i < by_agent)).collect();
        // Of what has ended each agent's part is read from the files, once.
        let missing: Vec<usize> = (0..windows.len()).filter(|i| out[*i].is_none()).collect();
        if !missing.is_empty() {
            let asked: Vec<Window> = missing.iter().map(|i| windows[*i]).collect();
            for (i, totals) in missing.iter().zip(self.dir.totals(&asked, asked.len())?) {
                seen.ended.retain(|t| t.window.stage != totals.window.stage);
                seen.ended.push(totals.clone());
                out[*i] = Some(totals);
            }
        }
        Ok(out.into_iter().flatten().collect())
    }
}

impl Seen {
    fn from_the_beginning(
        run: &GrowingRun,
        files: &[PathBuf],
        wanted: &Wanted,
        coarser: &[u64],
    ) -> Result<Self, StoreError> {
        let dir = &run.dir;
        let readers = dir.interval_readers()?;
        let names = sources(&readers);
        let positions = readers.iter().map(StreamReader::position).collect();
        let env = dir.env()?;
        let roll = Roll::call(&env.environment, &names);
        // Where it ends is not known yet, and so nothing is held against its end.
        let so_far = dir.span(readers)?;
        let span = Span { last: u64::MAX, ..so_far };
        let newest = vec![0; files.len()];
        let cells = Cells { width: 1, of_stage: BTreeMap::new(), number: 0 };
        let mut new = Self {
            files: files.to_vec(),
            positions,
            damage: Vec::new(),
            with_times: roll.keeps_times(wanted.by_agent),
            roll,
            span,
            newest,
            points: Vec::new(),
            ahead: Vec::new(),
            cells,
            samples: Vec::new(),
            ended: Vec::new(),
        };
        for (stage, from) in &wanted.by_agent_from {
            new.cells.of_stage.entry(*stage).or_default().agents_from = Some(*from);
        }
        let slices = so_far.last.saturating_sub(span.first).saturating_add(1);
        for ((asked, _), coarser) in wanted.options.iter().zip(coarser) {
            let per_point = per_point(asked, span.grid_ns, slices).saturating_mul(*coarser);
            let loader = Loader::new(span, per_point, new.roll.clone());
            new.points.push(Points { asked: *asked, loader });
        }
        new.go_on(dir, run.at_once)?;
        Ok(new)
    }

    /// Whether points are still as many as were asked for.
    fn fits(&self) -> bool {
        let newest = self.newest.iter().copied().max().unwrap_or(0);
        let slices = newest.saturating_sub(self.span.first);
        let fits = |p: &Points| {
            !p.loader.too_many && p.loader.per_point() >= per_point(&p.asked, self.span.grid_ns, slices)
        };
        self.points.iter().all(fits)
    }

    fn go_on(&mut self, dir: &RunDir, at_once: u64) -> Result<(), StoreError> {
        self.grow_samples(dir)?;
        let bytes = |(path, at): (&PathBuf, &StreamPosition)| {
            std::fs::metadata(path).map_or(0, |m| m.len().saturating_sub(at.bytes()))
        };
        let grown: u64 = self.files.iter().zip(&self.positions).map(bytes).sum();
        if grown > at_once { self.read_side_by_side() } else { self.read_at_once() }
    }

    fn readers(&self) -> Result<Vec<StreamReader>, StoreError> {
        self.files.iter().zip(&self.positions).map(|(path, at)| StreamReader::open_at(path, at)).collect()
    }

    /// Little of each file.
    fn read_at_once(&mut self) -> Result<(), StoreError> {
        let mut readers = self.readers()?;
        // In the order in which they would come side by side: what is no slice right behind the one before it in its own file.
        let key = |file: usize, stage: u32, i: &SparseInterval| Some((i.index, stage, file));
        let ahead = std::mem::take(&mut self.ahead).into_iter();
        let mut records: Vec<(Option<SliceTurn>, usize, Record)> = ahead
            .map(|(file, stage, interval)| {
                (key(file, stage, &interval), file, Record::Interval { stage, interval })
            })
            .collect();
        for (file, reader) in readers.iter_mut().enumerate() {
            let mut last = None;
            while let Some(record) = reader.next()? {
                if let Record::Interval { stage, interval } = &record {
                    self.newest[file] = self.newest[file].max(interval.index.saturating_add(1));
                    last = key(file, *stage, interval);
                }
                records.push((last, file, record));
            }
        }
        records.sort_by_key(|(key, _, _)| *key);
        let told = self.told();
        for (_, file, record) in records {
            match record {
                Record::Interval { stage, interval } => self.take(file, stage, interval, told),
                other => self.take_other(file, &other),
            }
        }
        self.positions = readers.iter().map(StreamReader::position).collect();
        self.damage = readers.iter().filter_map(|r| r.damage().cloned()).collect();
        Ok(())
    }

    /// Much of each file, of which one record is held at a time. It is read twice: first for how far each has come.
    fn read_side_by_side(&mut self) -> Result<(), StoreError> {
        let readers = self.readers()?;
        for (newest, mut reader) in self.newest.iter_mut().zip(readers) {
            while let Some((_, index)) = reader.next_index()? {
                *newest = (*newest).max(index.saturating_add(1));
            }
        }
        let told = self.told();
        let mut reader = MergedReader::new(self.readers()?);
        let mut waiting = std::mem::take(&mut self.ahead).into_iter().peekable();
        while let Some((file, record)) = reader.next()? {
            let Record::Interval { stage, interval } = record else {
                self.take_other(file, &record);
                continue;
            };
            let is_before = |w: &(usize, u32, SparseInterval)| (w.2.index, w.1) <= (interval.index, stage);
            while let Some((file, stage, before)) = waiting.next_if(is_before) {
                self.take(file, stage, before, told);
            }
            self.take(file, stage, interval, told);
        }
        for (file, stage, interval) in waiting {
            self.take(file, stage, interval, told);
        }
        self.ahead.sort_by_key(|(file, stage, i)| (i.index, *stage, *file));
        self.positions = reader.positions();
        self.damage = reader.damage().map(|(_, d)| d.clone()).collect();
        Ok(())
    }

    /// Up to which slice all agents have told; of one that says nothing any more nothing is waited for.
    fn told(&self) -> u64 {
        let first = self.newest.iter().copied().max().unwrap_or(0);
        let least = first.saturating_sub(AHEAD_NS / self.span.grid_ns.max(1));
        self.newest.iter().copied().filter(|n| *n > least).min().unwrap_or(first)
    }

    /// What is no slice: its time is its own.
    fn take_other(&mut self, file: usize, record: &Record) {
        self.points.iter_mut().for_each(|p| p.loader.take(file, record.clone()));
    }

    fn take(&mut self, file: usize, stage: u32, interval: SparseInterval, told: u64) {
        if interval.index >= told {
            return self.ahead.push((file, stage, interval));
        }
        let agent = self.roll.agent_of(file);
        self.ended.retain(|t| t.window.stage != stage || interval.index >= t.window.to);
        self.cells.add(stage, &interval, self.roll.is_several().then_some(agent), self.with_times);
        self.points.iter_mut().for_each(|p| p.loader.interval(agent, stage, &interval));
    }

    fn grow_samples(&mut self, dir: &RunDir) -> Result<(), StoreError> {
        let files = dir.sample_files()?;
        if !self.samples.iter().map(|s| &s.path).eq(&files) {
            self.samples.clear();
            for path in &files {
                let reader = StreamReader::open(path)?;
                let kept = (0..self.points.len()).map(|i| {
                    let before = self.samples.iter().filter_map(|s| s.kept.get(i));
                    let is_again = has_file(before, &reader.header().source);
                    SampleFile::new(reader.header(), is_again, self.points[i].asked.max_samples, files.len())
                });
                let kept = kept.collect();
                self.samples.push(SamplesSeen {
                    path: path.clone(),
                    position: reader.position(),
                    damage: None,
                    kept,
                });
                self.samples.last_mut().map_or(Ok(()), SamplesSeen::go_on)?;
            }
            return Ok(());
        }
        self.samples.iter_mut().try_for_each(SamplesSeen::go_on)
    }

    /// `None`: it has ended, and is to be read from the files.
    fn totals(&mut self, window: &Window, with_agents: bool) -> Option<Totals> {
        if with_agents && !self.cells.is_growing(window) {
            return self.ended.iter().find(|t| t.window == *window).cloned();
        }
        Some(self.cells.totals(window, with_agents))
    }
}

/// Slices in a point: as `RunDir::load` has it, but for a run that grows only doubled.
fn per_point(asked: &LoadOptions, grid_ns: u64, slices: u64) -> u64 {
    let mut per_point = asked.step_ns.unwrap_or(grid_ns).div_ceil(grid_ns).max(1);
    let least = slices.div_ceil(asked.max_points.max(1));
    while per_point < least {
        per_point = per_point.saturating_mul(2);
    }
    per_point
}

impl SamplesSeen {
    fn go_on(&mut self) -> Result<(), StoreError> {
        let mut reader = StreamReader::open_at(&self.path, &self.position)?;
        while let Some(record) = reader.next()? {
            self.kept.iter_mut().for_each(|k| k.take(record.clone()));
        }
        self.position = reader.position();
        self.damage = reader.damage().cloned();
        Ok(())
    }
}

impl Cells {
    fn add(&mut self, stage: u32, interval: &SparseInterval, agent: Option<usize>, with_times: bool) {
        let of = self.of_stage.entry(stage).or_default();
        of.newest = of.newest.max(interval.index);
        let number = &mut self.number;
        let cell = of.cells.entry(interval.index / self.width).or_insert_with(|| {
            *number += 1;
            SparseInterval::empty(0)
        });
        cell.merge(interval);
        if let Some(agent) = agent.filter(|_| of.agents_from.is_some_and(|from| interval.index >= from)) {
            of.agents.entry(agent).or_insert_with(|| AgentTotals::new(agent)).add(interval, with_times);
        }
        if self.number > MOST_CELLS {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        self.number = 0;
        for of in self.of_stage.values_mut() {
            let mut wider: BTreeMap<u64, SparseInterval> = BTreeMap::new();
            for (k, cell) in std::mem::take(&mut of.cells) {
                match wider.get_mut(&(k / 2)) {
                    Some(all) => all.merge(&cell),
                    None => drop(wider.insert(k / 2, cell)),
                }
            }
            self.number += wider.len();
            of.cells = wider;
        }
    }

    /// From which slice on each agent's part of a stage is counted.
    fn agents_from(&self, stage: u32) -> Option<u64> {
        self.of_stage.get(&stage)?.agents_from
    }

    /// Whether all that its stage does from now on is in the window.
    fn is_growing(&self, w: &Window) -> bool {
        self.of_stage.get(&w.stage).is_none_or(|of| w.to > of.newest)
    }

    fn totals(&self, w: &Window, with_agents: bool) -> Totals {
        let mut blocks = vec![SparseInterval::empty(0); w.blocks()];
        let of = self.of_stage.get(&w.stage);
        for (k, cell) in of.into_iter().flat_map(|of| of.cells.range(w.from.div_ceil(self.width)..)) {
            let slice = k.saturating_mul(self.width);
            if slice >= w.to {
                break;
            }
            blocks[w.block_of(slice)].merge(cell);
        }
        let agents =
            of.filter(|_| with_agents).map_or_else(Vec::new, |of| of.agents.values().cloned().collect());
        Totals::of_blocks(*w, blocks, agents)
    }
}
