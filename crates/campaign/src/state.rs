//! How far a campaign is: the ledger's entries, applied one after the other. A session that goes on and one that was never killed come
//! to the same, because both apply the same entries.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plimsoll_model::cost::Money;

use crate::cells::CampaignCell;
use crate::figures::CellRun;
use crate::file::{CampaignFile, Repeats};
use crate::ledger::{HookTime, LedgerEntry, RunSpent, UnderWay};
use crate::money::MoneySpent;
use crate::order;
use crate::result::rates;
use crate::schedule::{RunDue, RunTime, TimesOfDay};
use crate::stop;

/// What was spent, over all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CampaignSpent {
    /// At work, seconds: runs, hooks and rests.
    pub time_s: f64,
    /// Payload.
    pub bytes: u64,
    /// Ops.
    pub requests: u64,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CellState {
    /// Runs that count, in order; void ones included.
    pub runs: Vec<CellRun>,
    /// Why it could not be measured when it was tried last.
    pub failed: Option<String>,
    /// Runs that it takes, void ones included, as far as is known by now. 0: it is not measured here.
    pub wanted: u32,
}

impl CellState {
    /// Runs that are still to come.
    pub fn to_go(&self) -> u32 {
        self.wanted.saturating_sub(self.runs.len() as u32)
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignState {
    /// In the order of the cells that they are of.
    pub cells: Vec<CellState>,
    /// Begun, and not ended: of a campaign that nobody works on it was killed.
    pub under_way: Option<UnderWay>,
    /// The subject whose `before` was run, and whose `after` was not.
    pub open_subject: Option<String>,
    /// Over all sessions.
    pub spent: CampaignSpent,
    /// The same in money: of runs that failed or were cut short, too.
    pub money: MoneySpent,
    /// Runs of cells that the file has otherwise by now, or no longer.
    pub set_aside: u32,
    /// Runs that were begun and do not count.
    pub dropped: u32,
    /// Drawn when the campaign was begun.
    pub fresh: u64,
    /// Of the file's text as it was taken last.
    pub file_hash: String,
    /// When the campaign was begun.
    pub begun_at: Option<Timestamp>,
    /// The time of day that each block had last.
    pub times: BTreeMap<u32, RunTime>,
    begun: u32,
    repeats: Repeats,
    /// Place and hash of each cell, by its key.
    keys: BTreeMap<String, (usize, String)>,
    rest_s: f64,
    /// What commands took, by subject.
    commands: BTreeMap<String, CommandTimes>,
}

/// Of a subject's commands, the last time that they were run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct CommandTimes {
    before_s: f64,
    after_s: f64,
}

impl CampaignState {
    /// Nothing was done yet.
    pub fn new(file: &CampaignFile, cells: &[CampaignCell]) -> Self {
        let fresh = |c: &CampaignCell| CellState {
            wanted: if c.target.is_some() { file.repeat.at_least } else { 0 },
            ..CellState::default()
        };
        Self {
            cells: cells.iter().map(fresh).collect(),
            under_way: None,
            open_subject: None,
            spent: CampaignSpent::default(),
            money: MoneySpent::default(),
            set_aside: 0,
            dropped: 0,
            fresh: 0,
            file_hash: String::new(),
            begun_at: None,
            times: BTreeMap::new(),
            begun: 0,
            repeats: file.repeat,
            keys: cells.iter().enumerate().map(|(i, c)| (c.key.clone(), (i, c.hash.clone()))).collect(),
            rest_s: file.rest.pause.0.as_secs_f64(),
            commands: BTreeMap::new(),
        }
    }

    /// After all of these entries.
    pub fn of(file: &CampaignFile, cells: &[CampaignCell], entries: &[LedgerEntry]) -> Self {
        let mut state = Self::new(file, cells);
        entries.iter().for_each(|e| state.apply(e));
        state
    }

    /// One more entry.
    pub fn apply(&mut self, entry: &LedgerEntry) {
        match entry {
            LedgerEntry::Begun { fresh, at, .. } => {
                self.fresh = *fresh;
                self.begun_at = at.parse().ok();
            }
            LedgerEntry::File { hash, .. } => self.file_hash.clone_from(hash),
            LedgerEntry::Under(under) => {
                if self.begun > 0 {
                    self.spent.time_s += self.rest_s;
                }
                self.spent.time_s += under.waited_s;
                self.begun += 1;
                if let Some(time) = &under.time {
                    self.times.insert(under.repeat, time.clone());
                }
                self.under_way = Some(under.clone());
            }
            LedgerEntry::Done { cell, hash, run, .. } => {
                self.under_way = None;
                self.spent.time_s += run.took_s;
                self.spent.bytes += run.bytes;
                self.spent.requests += run.requests;
                self.money.unpriced += u32::from(run.cost.is_none());
                self.paid(run.cost.as_ref());
                match self.keys.get(cell).filter(|(_, own)| own == hash).map(|(i, _)| *i) {
                    Some(i) => self.done(i, run),
                    None => self.set_aside += 1,
                }
            }
            LedgerEntry::Dropped { spent, .. } => {
                self.under_way = None;
                self.dropped += 1;
                self.taken(spent);
            }
            LedgerEntry::Failed { cell, problem, spent, .. } => {
                self.under_way = None;
                self.taken(spent);
                if let Some((i, _)) = self.keys.get(cell) {
                    self.cells[*i].failed = Some(problem.clone());
                }
            }
            LedgerEntry::Hook { subject, when, took_s, .. } => {
                self.spent.time_s += took_s;
                let known = self.commands.entry(subject.clone()).or_default();
                match when {
                    // Begun without a command yet: what counts is the last time that it was switched on.
                    HookTime::Before if *took_s == 0.0 => known.before_s = 0.0,
                    HookTime::Before => known.before_s += took_s,
                    HookTime::After => known.after_s = *took_s,
                }
                // A command that failed may have done half of its work: what is after it is due all the same.
                self.open_subject = (*when == HookTime::Before).then(|| subject.clone());
            }
            LedgerEntry::Opened { .. } | LedgerEntry::Ended { .. } => {}
        }
    }

    /// Seconds of the commands that a run of `subject` takes until all is switched off again, as they were the last time; of those that
    /// were never run nobody knows. `on`: whose commands before were run in this session.
    pub fn commands_s(&self, subject: &str, on: Option<&str>) -> f64 {
        let of = |name: &str| self.commands.get(name).copied().unwrap_or_default();
        let own = of(subject);
        if on == Some(subject) {
            return own.after_s;
        }
        let open = self.open_subject.as_deref().filter(|open| *open != subject);
        open.map_or(0.0, |open| of(open).after_s) + own.before_s + own.after_s
    }

    /// By a run that does not count.
    fn taken(&mut self, by: &RunSpent) {
        self.spent.time_s += by.took_s;
        self.spent.bytes = self.spent.bytes.saturating_add(by.bytes);
        self.spent.requests = self.spent.requests.saturating_add(by.requests);
        self.paid(by.cost.as_ref());
    }

    fn paid(&mut self, money: Option<&Money>) {
        money.into_iter().for_each(|m| self.money.add(m));
    }

    fn done(&mut self, i: usize, run: &CellRun) {
        let cell = &mut self.cells[i];
        cell.failed = None;
        cell.runs.push(run.clone());
        cell.wanted = stop::wanted(&self.repeats, &rates(&cell.runs), cell.runs.len() as u32);
    }

    /// With the runs of one time of day alone.
    pub(crate) fn of_time(&self, time: &str) -> Self {
        let mut out = self.clone();
        out.cells.iter_mut().for_each(|c| c.runs.retain(|r| r.time.as_deref() == Some(time)));
        out
    }

    /// Runs of a subject that were brought along are its cells'.
    pub fn bring(&mut self, i: usize, runs: Vec<CellRun>) {
        self.cells[i].runs = runs;
    }

    /// Runs that are still to come, as far as is known by now.
    pub fn to_go(&self) -> u32 {
        self.cells.iter().map(CellState::to_go).sum()
    }

    /// Runs that count.
    pub fn done_runs(&self) -> u32 {
        self.cells.iter().filter(|c| c.wanted > 0).map(|c| c.runs.len() as u32).sum()
    }

    /// When a run of a block is due; `None`: the file has no times of day.
    pub fn due(&self, times: Option<&TimesOfDay>, block: u32, now: Timestamp) -> Option<RunDue> {
        Some(times?.due(block, &self.times, self.begun_at.unwrap_or(now), now))
    }

    /// Which cell is next, and which repeat of it; `skip` is left out. All that were measured less often than another come first.
    pub fn next(
        &self,
        file: &CampaignFile,
        cells: &[CampaignCell],
        skip: impl Fn(&CampaignCell) -> bool,
    ) -> Option<(usize, u32)> {
        let is_due = |i: &usize| self.cells[*i].to_go() > 0 && !skip(&cells[*i]);
        let block = (0..cells.len()).filter(is_due).map(|i| self.cells[i].runs.len() as u32).min()?;
        let order = order::block(cells, file.order, file.seed, block);
        let i = order.into_iter().find(|i| is_due(i) && self.cells[*i].runs.len() as u32 == block)?;
        Some((i, block))
    }
}
