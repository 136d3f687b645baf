//! Carries a campaign out, cell by cell. What is touched outside (runs, commands, clocks) is a [`CampaignCarrier`]'s; what is decided
//! is here, and recorded before and after each step.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_model::cost::CostOptions;
use plimsoll_model::credentials::without_credentials;
use plimsoll_model::plan::TargetSpec;

use crate::cells::CampaignCell;
use crate::figures::CellRun;
use crate::file::{CampaignFile, Subject};
use crate::forecast;
use crate::ledger::{HookTime, LedgerEntry, LedgerError, LedgerSink, RunSpent, UnderWay, stamp};
use crate::money::CampaignPrices;
use crate::rest::Rested;
use crate::schedule::{RunDue, RunTime, TIME_AXIS, TimesOfDay};
use crate::state::CampaignState;

/// Attempts of one subject that fail one after the other before it is left alone until the next session.
const MOST_FAILURES: u32 = 2;

/// What came of a run of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum CellEnd {
    /// It ended, and counts; it may be void.
    Measured(Box<CellRun>),
    /// It could not be measured: why, with the remedy. The campaign goes on with others.
    Failed(String),
    /// Somebody ended it: it will be made again.
    Interrupted,
    /// It was ended because what it sent came to what was left of the budget of money; it does not count.
    OverBudget,
    /// Nothing can be measured or recorded any more (no space): why, with the remedy.
    Hopeless(String),
}

/// What a run is told beside its cell.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTerms {
    /// Drawn when the campaign was begun.
    pub fresh: u64,
    /// Labels beside those of the cell.
    pub labels: BTreeMap<String, String>,
    /// Prices of its subject, with what is left of the campaign's budget of money.
    pub cost: Option<CostOptions>,
}

/// What a killed run was found to be.
#[derive(Debug, Clone, PartialEq)]
pub enum LeftRun {
    /// It had ended: only its line in the ledger is missing.
    Whole(Box<CellRun>),
    /// It had not; what it made is taken away as far as that can be done: in words.
    Cut(String),
}

/// Touches what is outside.
pub trait CampaignCarrier {
    /// The name of the next run: no directory has it.
    fn new_run(&mut self) -> String;
    /// Runs a cell, in the run directory of this name.
    fn measure(&mut self, cell: &CampaignCell, under: &UnderWay, terms: &RunTerms) -> CellEnd;
    /// What a run that did not end as it should has taken, by its record. Asked before it is cleaned up.
    fn spent(&mut self, under: &UnderWay) -> RunSpent;
    /// Looks at what a killed session had begun, and cleans it up.
    fn look_at(&mut self, cell: Option<&CampaignCell>, under: &UnderWay) -> LeftRun;
    /// Runs a command of a subject's. Gives seconds, and why it failed.
    fn hook(&mut self, subject: &Subject, when: HookTime, command: &str) -> (f64, Option<String>);
    /// Waits; less where somebody ends it.
    fn rest(&mut self, time: Duration);
    /// Waits until the machine, and what a cell observes, is at rest, so long at most; less where somebody ends it.
    fn await_rest(&mut self, cell: &CampaignCell, limit: Duration) -> Rested;
    /// Somebody wants an end.
    fn is_interrupted(&self) -> bool;
    /// Somebody wants it at once: no command is waited for, either.
    fn is_waiting_over(&self) -> bool;
    /// Waits until the wall clock shows this; less where somebody ends it.
    fn wait_until(&mut self, due: Timestamp);
    /// The wall clock.
    fn now(&self) -> Timestamp;
    /// The file says something else than what was taken: told once, in words.
    fn edited(&mut self) -> Option<String>;
    /// For the person who watches.
    fn tell(&mut self, told: &CampaignTold<'_>);
}

/// What a person who watches is told.
#[derive(Debug)]
pub enum CampaignTold<'a> {
    /// A run begins: of so many, this one.
    Begins(&'a CampaignCell, u32, &'a CampaignState),
    /// It has ended.
    Ended(&'a CampaignCell, &'a CellRun, &'a CampaignState),
    /// It could not be measured.
    Failed(&'a str, &'a str),
    /// A command begins.
    Hook(&'a Subject, HookTime, &'a str),
    /// Anything else.
    Said(String),
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq)]
pub enum CampaignEnd {
    /// Nothing is to go.
    Complete,
    /// Somebody ended it.
    Interrupted,
    /// The next run would go beyond this.
    Budget(String),
    /// What is left could not be measured: by cell or subject, why.
    Stuck(BTreeMap<String, String>),
    /// Nothing can be measured or recorded any more.
    Hopeless(String),
}

impl CampaignEnd {
    fn words(&self) -> String {
        match self {
            Self::Complete => "complete".into(),
            Self::Interrupted => "interrupted".into(),
            Self::Budget(what) => format!("the budget is used up ({what})"),
            Self::Stuck(why) => format!("{} could not be measured", why.len()),
            Self::Hopeless(why) => why.clone(),
        }
    }
}

/// A session of a campaign.
#[derive(Debug)]
pub struct CampaignSession<'a, L, C> {
    /// As it was taken.
    pub file: &'a CampaignFile,
    /// Of the file.
    pub cells: &'a [CampaignCell],
    /// What its subjects cost; `None`: there are no prices.
    pub prices: Option<&'a CampaignPrices>,
    /// So far.
    pub state: CampaignState,
    /// Where it is written.
    pub ledger: L,
    /// Who touches what is outside.
    pub carrier: C,
    /// When its blocks are measured; `None`: one after the other.
    times: Option<TimesOfDay>,
    /// The subject whose `before` was run in this session.
    on: Option<String>,
    /// A command after a subject failed: it is not tried again in this session.
    is_stuck: bool,
}

/// What keeps from measuring in this session.
#[derive(Debug, Default)]
struct Avoided {
    cells: BTreeMap<String, String>,
    subjects: BTreeMap<String, String>,
    in_a_row: BTreeMap<String, u32>,
    hopeless: Option<String>,
    over_budget: Option<String>,
}

impl Avoided {
    fn is_for(&self, cell: &CampaignCell) -> bool {
        self.cells.contains_key(&cell.key) || self.subjects.contains_key(&cell.subject)
    }

    fn all(self) -> BTreeMap<String, String> {
        let mut all = self.subjects;
        for (key, why) in self.cells {
            let of_subject = key.split('/').next().is_some_and(|s| all.contains_key(s));
            if !of_subject {
                all.insert(key, why);
            }
        }
        all
    }
}

impl<'a, L: LedgerSink, C: CampaignCarrier> CampaignSession<'a, L, C> {
    /// One that goes on from `state`.
    pub fn new(
        file: &'a CampaignFile,
        cells: &'a [CampaignCell],
        state: CampaignState,
        ledger: L,
        carrier: C,
    ) -> Self {
        let times = file.times_of_day();
        Self { file, cells, prices: None, state, ledger, carrier, times, on: None, is_stuck: false }
    }

    /// The same with prices.
    pub fn with_prices(self, prices: Option<&'a CampaignPrices>) -> Self {
        Self { prices, ..self }
    }

    /// Goes on until nothing is left, or nothing more can be done. An error: the ledger cannot be written, and nothing is begun
    /// that it does not know.
    pub fn run(&mut self) -> Result<CampaignEnd, LedgerError> {
        self.found()?;
        let mut avoided = Avoided::default();
        let mut is_first = true;
        let end = loop {
            if let Some(why) = avoided.hopeless.take() {
                break CampaignEnd::Hopeless(why);
            }
            if let Some(what) = avoided.over_budget.take() {
                break CampaignEnd::Budget(what);
            }
            if self.carrier.is_interrupted() {
                break CampaignEnd::Interrupted;
            }
            let Some((i, repeat)) = self.state.next(self.file, self.cells, |c| avoided.is_for(c)) else {
                let left = avoided.all();
                break if left.is_empty() { CampaignEnd::Complete } else { CampaignEnd::Stuck(left) };
            };
            if let Some(what) = self.beyond_budget(i) {
                break CampaignEnd::Budget(what);
            }
            if let Some(what) = self.beyond_money(i) {
                break CampaignEnd::Budget(what);
            }
            if let Some(what) = self.carrier.edited() {
                self.carrier.tell(&CampaignTold::Said(what));
            }
            let due = self.state.due(self.times.as_ref(), repeat, self.carrier.now());
            if let Some(RunDue::At(time)) = &due {
                self.wait_for(time, &mut avoided)?;
                // That was rest enough: one more might take it out of its time.
                is_first = true;
                continue;
            }
            if !std::mem::take(&mut is_first) && !self.file.rest.pause.0.is_zero() {
                self.carrier.rest(self.file.rest.pause.0);
                if self.carrier.is_interrupted() {
                    break CampaignEnd::Interrupted;
                }
            }
            if self.switch_to(i, &mut avoided)? {
                // Commands and the rest took what they took: the run has to fit into what they left.
                if let Some(what) = self.beyond_budget(i) {
                    break CampaignEnd::Budget(what);
                }
                self.one(i, repeat, &mut avoided)?;
            }
        };
        self.close(&end)?;
        Ok(end)
    }

    /// Which bound the next run of a cell would go beyond, with the commands that it takes: as long as they took before.
    fn beyond_budget(&self, i: usize) -> Option<String> {
        let cell = &self.cells[i];
        let mut run = forecast::next_run(self.file, cell, &self.state.cells[i].runs);
        run.time_s += self.state.commands_s(&cell.subject, self.on.as_deref());
        forecast::beyond(self.file, &self.state.spent, &run)
    }

    /// Why the next run of a cell does not fit into the budget of money. That the prices know its ops was seen before the session.
    fn beyond_money(&self, i: usize) -> Option<String> {
        let (budget, prices) = (self.file.budget.cost.as_ref()?, self.prices?);
        let run = prices.next_run(self.file, &self.cells[i], &self.state.cells[i].runs).ok().flatten();
        prices.beyond(budget, &self.state.money, run.as_ref())
    }

    fn terms(&self, cell: &CampaignCell, under: &UnderWay) -> RunTerms {
        let cost = self.prices.and_then(|prices| {
            let left = self.file.budget.cost.as_ref().map(|b| prices.left(b, &self.state.money));
            prices.options(&cell.subject, left)
        });
        let time = under.time.as_ref().map(|t| (TIME_AXIS.to_owned(), t.of.clone()));
        RunTerms { fresh: self.state.fresh, labels: time.into_iter().collect(), cost }
    }

    /// Until a time of day comes nothing is switched on, and nothing is in the ledger of it: whoever takes the campaign up reckons the
    /// same from its entries.
    fn wait_for(&mut self, time: &RunTime, avoided: &mut Avoided) -> Result<(), LedgerError> {
        if let Some(problem) = self.leave()? {
            avoided.hopeless = Some(problem);
            return Ok(());
        }
        let shown = self.times.as_ref().map_or_else(String::new, |t| t.shown(time.from));
        self.carrier
            .tell(&CampaignTold::Said(format!("the next runs are due at {shown}: waiting until then")));
        self.carrier.wait_until(time.from);
        Ok(())
    }

    fn note(&mut self, entry: LedgerEntry) -> Result<(), LedgerError> {
        let entry = entry.without_credentials();
        self.ledger.append(&entry)?;
        self.state.apply(&entry);
        Ok(())
    }

    /// What the session before was at when it was killed.
    fn found(&mut self) -> Result<(), LedgerError> {
        let Some(under) = self.state.under_way.clone() else { return Ok(()) };
        let cell = self.cells.iter().find(|c| c.key == under.cell);
        let at = stamp(self.carrier.now());
        let spent = self.carrier.spent(&under);
        match self.carrier.look_at(cell, &under) {
            LeftRun::Whole(run) => {
                let said = format!("run {} of {} had ended: it counts", under.run, under.cell);
                self.carrier.tell(&CampaignTold::Said(said));
                let run = under.begun(*run);
                self.note(LedgerEntry::Done { cell: under.cell, hash: under.hash, run: Box::new(run), at })
            }
            LeftRun::Cut(why) => {
                let said =
                    format!("run {} of {} was cut short, and is made again ({why})", under.run, under.cell);
                self.carrier.tell(&CampaignTold::Said(said));
                self.note(LedgerEntry::Dropped { cell: under.cell, run: under.run, why, spent, at })
            }
        }
    }

    /// From the subject that is switched on to that of the next cell. False: it could not be done.
    fn switch_to(&mut self, i: usize, avoided: &mut Avoided) -> Result<bool, LedgerError> {
        let name = self.cells[i].subject.clone();
        if self.on.as_ref() == Some(&name) {
            return Ok(true);
        }
        if self.state.open_subject.as_ref().is_some_and(|open| *open != name)
            && let Some(problem) = self.leave()?
        {
            avoided.hopeless = Some(problem);
            return Ok(false);
        }
        self.on = Some(name.clone());
        let subject = self.subject(&name);
        if !subject.before.is_empty() || !subject.after.is_empty() {
            // Before the first of them begins: killed in it, what comes after the subject is due all the same.
            self.note_hook(&name, HookTime::Before, 0.0, None)?;
        }
        for command in &subject.before {
            let (took_s, problem) = self.hook(subject, HookTime::Before, command);
            self.note_hook(&name, HookTime::Before, took_s, problem.clone())?;
            if let Some(problem) = problem {
                self.on = None;
                let command = without_credentials(command);
                avoided.subjects.insert(name.clone(), format!("its command '{command}' {problem}"));
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn note_hook(
        &mut self,
        subject: &str,
        when: HookTime,
        took_s: f64,
        problem: Option<String>,
    ) -> Result<(), LedgerError> {
        let (subject, at) = (subject.to_owned(), stamp(self.carrier.now()));
        self.note(LedgerEntry::Hook { subject, when, took_s, problem, at })
    }

    fn subject(&self, name: &str) -> &'a Subject {
        self.file.subject(name).expect("a cell has a subject")
    }

    /// The commands after the subject that is switched on. What one of them that failed left may be in the way of every other subject:
    /// why, with what to do.
    fn leave(&mut self) -> Result<Option<String>, LedgerError> {
        self.on = None;
        let Some(open) = self.state.open_subject.clone() else { return Ok(None) };
        let Some(subject) = self.file.subject(&open) else { return Ok(None) };
        let (mut all_s, mut failed) = (0.0, None);
        for command in &subject.after {
            let (took_s, problem) = self.hook(subject, HookTime::After, command);
            all_s += took_s;
            if let Some(problem) = problem {
                failed = Some((command, problem));
                break;
            }
        }
        let is_cut = failed.is_some() && self.carrier.is_waiting_over();
        // One that somebody did not wait for is due again, as one is that was killed.
        if !subject.after.is_empty() && !is_cut {
            // One entry for all of them: until the last has ended, all are due.
            self.note_hook(&open, HookTime::After, all_s, failed.as_ref().map(|(_, p)| p.clone()))?;
        }
        self.is_stuck |= failed.is_some();
        Ok(failed.map(|(command, problem)| {
            let command = without_credentials(command);
            format!(
                "subject '{open}': its command '{command}' {problem}. What is left of it may be in the way of other subjects: put it \
                 right, then go on with `plimsoll campaign resume`"
            )
        }))
    }

    fn hook(&mut self, subject: &Subject, when: HookTime, command: &str) -> (f64, Option<String>) {
        self.carrier.tell(&CampaignTold::Hook(subject, when, command));
        let (took_s, problem) = self.carrier.hook(subject, when, command);
        if let Some(problem) = &problem {
            let command = without_credentials(command);
            self.carrier.tell(&CampaignTold::Failed(&subject.name, &format!("'{command}' {problem}")));
        }
        (took_s, problem)
    }

    /// The machine is waited for where the file says so, and where a run depends on it; not beyond the time of day that the run is of.
    fn rested(&mut self, cell: &CampaignCell, time: Option<&RunTime>) -> Rested {
        let is_virtual = matches!(cell.target, Some(TargetSpec::Sim(_)));
        let Some(limit) = self.file.rest.wait.filter(|_| !is_virtual) else { return Rested::default() };
        let left_s = self.times.as_ref().zip(time).map_or(i64::MAX, |(times, time)| {
            // A second before it ends it still holds.
            (times.end(time.from).as_second() - self.carrier.now().as_second() - 1).max(0)
        });
        self.carrier.await_rest(cell, limit.0.min(Duration::from_secs(left_s.unsigned_abs())))
    }

    /// The time of day that a run which begins now is of; `Err`: it has passed while something else was waited for.
    fn time_now(&self, repeat: u32) -> Result<Option<RunTime>, ()> {
        match self.state.due(self.times.as_ref(), repeat, self.carrier.now()) {
            None => Ok(None),
            Some(RunDue::Now(time)) => Ok(Some(time)),
            Some(RunDue::At(_)) => Err(()),
        }
    }

    /// One run of a cell, recorded before it begins and when it has ended.
    fn one(&mut self, i: usize, repeat: u32, avoided: &mut Avoided) -> Result<(), LedgerError> {
        let cell = &self.cells[i];
        let Ok(time) = self.time_now(repeat) else { return Ok(()) };
        let rested = self.rested(cell, time.as_ref());
        let Ok(time) = self.time_now(repeat) else { return Ok(()) };
        if self.carrier.is_interrupted() {
            return Ok(());
        }
        let under = UnderWay {
            cell: cell.key.clone(),
            hash: cell.hash.clone(),
            repeat,
            run: self.carrier.new_run(),
            waited_s: rested.took_s,
            remark: self.file.rest.wait.and_then(|limit| rested.remark(limit)),
            time,
            at: stamp(self.carrier.now()),
        };
        self.note(LedgerEntry::Under(under.clone()))?;
        self.carrier.tell(&CampaignTold::Begins(cell, repeat, &self.state));
        let end = self.carrier.measure(cell, &under, &self.terms(cell, &under));
        let at = stamp(self.carrier.now());
        let spent = match end {
            CellEnd::Measured(_) => RunSpent::default(),
            _ => self.spent(&under),
        };
        let dropped = |why: &str| LedgerEntry::Dropped {
            cell: under.cell.clone(),
            run: under.run.clone(),
            why: why.to_owned(),
            spent: spent.clone(),
            at: at.clone(),
        };
        match end {
            CellEnd::Measured(run) => {
                avoided.in_a_row.remove(&cell.subject);
                let run = under.begun(*run);
                let hash = under.hash.clone();
                self.note(LedgerEntry::Done {
                    cell: under.cell.clone(),
                    hash,
                    run: Box::new(run.clone()),
                    at,
                })?;
                self.carrier.tell(&CampaignTold::Ended(cell, &run, &self.state));
            }
            CellEnd::Interrupted => self.note(dropped("interrupted"))?,
            CellEnd::OverBudget => {
                let budget = self.file.budget.cost.as_ref().map_or(String::new(), ToString::to_string);
                let why =
                    format!("cost: {budget}; the run of {} was ended by it, and does not count", cell.key);
                self.note(dropped(&why))?;
                avoided.over_budget = Some(why);
            }
            CellEnd::Hopeless(why) => {
                self.note(dropped(&why))?;
                avoided.hopeless = Some(why);
            }
            CellEnd::Failed(problem) => {
                let problem = without_credentials(&problem).into_owned();
                self.carrier.tell(&CampaignTold::Failed(&cell.key, &problem));
                let (key, why) = (under.cell.clone(), problem.clone());
                self.note(LedgerEntry::Failed { cell: key, problem: why, spent, at })?;
                let failures = avoided.in_a_row.entry(cell.subject.clone()).or_default();
                *failures += 1;
                if *failures >= MOST_FAILURES {
                    avoided.subjects.insert(cell.subject.clone(), problem);
                } else {
                    avoided.cells.insert(cell.key.clone(), problem);
                }
            }
        }
        Ok(())
    }

    /// Of a run of this session: it took what has gone by since it was begun, whatever of that its record has.
    fn spent(&mut self, under: &UnderWay) -> RunSpent {
        let spent = self.carrier.spent(under);
        let since = under
            .at
            .parse::<Timestamp>()
            .map_or(0.0, |at| self.carrier.now().duration_since(at).as_secs_f64());
        RunSpent { took_s: spent.took_s.max(since), ..spent }
    }

    /// What was switched on is switched off, and how it ended is recorded.
    fn close(&mut self, end: &CampaignEnd) -> Result<(), LedgerError> {
        if !self.is_stuck
            && let Some(problem) = self.leave()?
        {
            self.carrier.tell(&CampaignTold::Said(problem));
        }
        let at = stamp(self.carrier.now());
        self.note(LedgerEntry::Ended { how: end.words(), at })
    }
}
