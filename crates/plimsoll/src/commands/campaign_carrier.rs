//! What a campaign has done by others: its cells by runs, its subjects' commands by a shell, and a word for whoever watches.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use plimsoll_campaign::ledger::text_hash;
use plimsoll_campaign::{
    CampaignCarrier, CampaignCell, CampaignTold, Campaigned, CellEnd, CellRun, CellWork, FileCell, HookFiles,
    HookOf, HookTime, LeftRun, Rested, RunSpent, RunTerms, Subject, UnderWay, asked, run_hook,
};
use plimsoll_model::Plan;
use plimsoll_model::credentials::shown_command;
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::text::clean;
use plimsoll_run::{Finished, Options, RunError};
use plimsoll_store::rundir::COST_BUDGET;
use plimsoll_store::{LoadOptions, RunData, RunDir, StoreError};
use plimsoll_suites::filebench::{self, FileBenchOptions, Host, Original};

use super::campaign::CampaignForm;
use super::campaign_rest::await_rest;
use super::campaign_words as words;
use super::runs_exec;
use crate::args::OutputArgs;
use crate::fault::{Exit, Fault};
use crate::progress::Progress;
use crate::{fleet_use, measure, output, runs_dir, signals};

/// Below this a run could not be recorded to its end.
const LEAST_FREE: u64 = 64 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Carrier {
    name: String,
    file: PathBuf,
    hash: String,
    is_edit_told: bool,
    hooks_log: PathBuf,
    hook_note: PathBuf,
    hook_limits: Vec<(String, Duration)>,
    out: OutputArgs,
    root: PathBuf,
}

impl Carrier {
    pub fn new(c: &Campaigned, file: &Path, text: &str, form: &CampaignForm) -> Self {
        let out = OutputArgs { quiet: form.quiet, runs_dir: form.runs_dir.clone(), ..OutputArgs::default() };
        Self {
            name: c.file.name.clone(),
            file: file.to_owned(),
            hash: text_hash(text),
            is_edit_told: false,
            hooks_log: c.dir.hooks_log(),
            hook_note: c.dir.hook_note(),
            hook_limits: c.file.subjects.iter().map(|s| (s.name.clone(), s.hook_limit.0)).collect(),
            root: runs_dir::root(out.runs_dir.as_deref()),
            out,
        }
    }

    fn say(&self, text: &str) {
        if !self.out.quiet {
            output::tell(format_args!("plimsoll: {text}"));
        }
    }

    /// The plan of a run; that of the file benchmark is made where its directory is.
    fn plan(&self, cell: &CampaignCell, under: &UnderWay, terms: &RunTerms) -> Result<Plan, Fault> {
        let mut plan = match &cell.work {
            CellWork::Files(f) => file_plan(cell, f, under.repeat, terms.fresh)?,
            CellWork::Stage(_) | CellWork::Controller(_) | CellWork::Elsewhere => cell
                .plan(under.repeat, terms.fresh)
                .ok_or_else(|| Fault::bug("a cell without a target was begun"))?,
        };
        plan.labels.extend(terms.labels.clone());
        if terms.cost.is_some() {
            plan.options.cost.clone_from(&terms.cost);
        }
        Ok(plan)
    }

    fn run(
        &self,
        cell: &CampaignCell,
        under: &UnderWay,
        terms: &RunTerms,
    ) -> Result<Result<Finished, RunError>, Fault> {
        let plan = self.plan(cell, under, terms)?;
        let options = Options {
            run_dir: Some(self.root.join(&under.run)),
            ..measure::options(
                &self.out,
                format!("plimsoll run {}/plan.toml", self.root.join(&under.run).display()),
            )?
        };
        let plan = fleet_use::for_each(fleet_use::with_losses(&plan))?;
        let progress = Progress::new(self.out.quiet);
        let finished = plimsoll_run::execute(&plan, &options, |event| progress.show(&event));
        progress.finish();
        Ok(finished)
    }

    /// What the record of a run that does not count has of it; none: nothing was begun.
    fn spent_on(&self, under: &UnderWay) -> Option<RunSpent> {
        let dir = RunDir::open(&self.root.join(&under.run)).ok()?;
        // A name is no proof.
        dir.plan().ok().filter(|plan| under.is_of(&plan.labels, &self.name))?;
        let took_s = lived_s(&dir, under);
        let Ok(data) = dir.load(&LoadOptions::step(1_000_000_000)) else {
            return Some(RunSpent { took_s, ..RunSpent::default() });
        };
        let (bytes, requests) = if is_virtual(&data.plan) { (0, 0) } else { asked(&data) };
        let took_s = took_s.max(last_ns(&data) as f64 / 1e9);
        Some(RunSpent { took_s, bytes, requests, cost: plimsoll_run::money_spent(&data) })
    }

    /// Out of a run directory: what it says, and what it asked of the storage.
    fn read(&self, dir: &RunDir, repeat: u32, exit: Option<u8>) -> Result<CellRun, StoreError> {
        let summary = dir.summary()?;
        let exit = exit.unwrap_or_else(|| plimsoll_judge::exit_code(&summary, false));
        let data = dir.load(&LoadOptions::step(1_000_000_000))?;
        let (bytes, requests) = if is_virtual(&data.plan) { (0, 0) } else { asked(&data) };
        Ok(CellRun {
            took_s: last_ns(&data) as f64 / 1e9,
            bytes,
            requests,
            cost: plimsoll_run::money_spent(&data),
            ..CellRun::of_summary(&summary, repeat, exit).with_falls(&summary, &dir.analysis()?)
        })
    }

    fn ended(&self, under: &UnderWay, finished: &Finished, took: Duration) -> CellEnd {
        if finished.exit_code == 130 {
            return CellEnd::Interrupted;
        }
        let dir = RunDir::open(&finished.path);
        match dir.and_then(|dir| self.read(&dir, under.repeat, Some(finished.exit_code))) {
            Ok(run) => CellEnd::Measured(Box::new(CellRun {
                run: finished.id.clone(),
                took_s: took.as_secs_f64(),
                left: finished.left.clone(),
                ..run
            })),
            Err(e) if e.is_no_space() => CellEnd::Hopeless(Fault::from(e).to_string()),
            Err(e) => CellEnd::Failed(one_line(&Fault::from(e))),
        }
    }

    /// What a run that was cut left goes, as far as that can be done.
    fn clean_up(&self, dir: &RunDir) -> Result<Vec<String>, Fault> {
        let progress = Progress::new(self.out.quiet);
        let left = runs_exec::removed(dir, &[], &progress);
        progress.finish();
        left
    }
}

/// On the virtual clock nothing is asked of a storage.
fn is_virtual(plan: &Plan) -> bool {
    plan.targets.values().all(|t| matches!(t, TargetSpec::Sim(_)))
}

/// When the last stage ended, or was last heard of.
fn last_ns(data: &RunData) -> u64 {
    data.stages.iter().map(|s| s.end_ns.unwrap_or(s.last_ns)).max().unwrap_or(0)
}

/// How long a run was at work, by the last change of its records: what prepares data is in no stage. Its journal and what is made of it
/// later are touched by whoever cleans up.
fn lived_s(dir: &RunDir, under: &UnderWay) -> f64 {
    let changed = |path: PathBuf| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    let in_folder = |name: &str| std::fs::read_dir(dir.path().join(name)).into_iter().flatten().flatten();
    let records = ["intervals", "samples"].into_iter().flat_map(in_folder).map(|e| e.path());
    let single = ["plan.toml", "env.json"].map(|name| dir.path().join(name));
    let last = records.chain(single).filter_map(changed).filter_map(|at| Timestamp::try_from(at).ok()).max();
    let begun = under.at.parse::<Timestamp>().ok();
    last.zip(begun).map_or(0.0, |(last, begun)| last.duration_since(begun).as_secs_f64().max(0.0))
}

/// Of those who end a run in the same way (exit code 8) only its budget of money is the campaign's.
fn ended_by_budget(finished: &Finished) -> bool {
    let sealed = || RunDir::open(&finished.path)?.sealed();
    finished.exit_code == Exit::Stopped as u8 && sealed().ok().flatten().is_some_and(|s| s.end == COST_BUDGET)
}

fn file_plan(cell: &CampaignCell, f: &FileCell, repeat: u32, fresh: u64) -> Result<Plan, Fault> {
    let directory = PathBuf::from(&f.directory);
    let client = cell.options().client.as_ref();
    let host = match &f.embedded {
        Some(disk) => Host::of_machine().on_embedded(disk),
        None => Host::of(&directory)?,
    };
    let host = host.within(client);
    let threads = f.threads.unwrap_or(host.cpus).max(1);
    let options = FileBenchOptions {
        directory,
        embedded: f.embedded.as_deref().cloned(),
        runs: f.cycles,
        size_bytes: Some(f.bytes_of(threads)),
        threads: Some(threads),
        iops_duration: f.iops_duration.0,
        original: Original::default(),
        seed: cell.run_seed(repeat, fresh),
    };
    let mut plan = filebench::plan(&options, &host)?.plan;
    plan.name = Some(cell.title());
    plan.options.client = client.cloned();
    // What the benchmark says of itself (what became of the cache) stands before what the file says.
    for (name, value) in cell.run_labels(repeat) {
        plan.labels.entry(name).or_insert(value);
    }
    plan.validate()?;
    Ok(plan)
}

/// A fault in a line, with its remedy.
fn one_line(fault: &Fault) -> String {
    let text = if fault.remedy.is_empty() {
        fault.what.clone()
    } else {
        format!("{}. {}", fault.what, fault.remedy)
    };
    clean(&text).into_owned()
}

impl CampaignCarrier for Carrier {
    fn new_run(&mut self) -> String {
        loop {
            let id = plimsoll_store::rundir::new_id();
            if !self.root.join(&id).exists() {
                return id;
            }
        }
    }

    fn measure(&mut self, cell: &CampaignCell, under: &UnderWay, terms: &RunTerms) -> CellEnd {
        if let Some(free) = plimsoll_setup::block::free_bytes(&self.root).filter(|free| *free < LEAST_FREE) {
            return CellEnd::Hopeless(format!(
                "{} has only {} MiB free, too little to record a run: free some space",
                self.root.display(),
                free >> 20
            ));
        }
        let began = Instant::now();
        let has_budget = terms.cost.as_ref().is_some_and(|c| c.budget.is_some());
        match self.run(cell, under, terms) {
            Ok(Ok(finished)) if has_budget && ended_by_budget(&finished) => CellEnd::OverBudget,
            Ok(Ok(finished)) => self.ended(under, &finished, began.elapsed()),
            Ok(Err(RunError::Interrupted)) => CellEnd::Interrupted,
            Ok(Err(RunError::Store(e))) if e.is_no_space() => CellEnd::Hopeless(one_line(&Fault::from(e))),
            Ok(Err(e)) => CellEnd::Failed(one_line(&Fault::from(e))),
            Err(_) if self.is_interrupted() => CellEnd::Interrupted,
            Err(fault) => CellEnd::Failed(one_line(&fault)),
        }
    }

    fn spent(&mut self, under: &UnderWay) -> RunSpent {
        self.spent_on(under).unwrap_or_default()
    }

    fn look_at(&mut self, _: Option<&CampaignCell>, under: &UnderWay) -> LeftRun {
        let path = self.root.join(&under.run);
        let Ok(dir) = RunDir::open(&path) else { return LeftRun::Cut("it had not begun".into()) };
        // A name is no proof: nothing of another run counts here, or is cleaned up.
        match dir.plan() {
            Ok(plan) if under.is_of(&plan.labels, &self.name) => {}
            Ok(_) => {
                return LeftRun::Cut("the run of that name is of something else, and was not touched".into());
            }
            // Killed before its plan was written it had made nothing.
            Err(_) => return LeftRun::Cut("it has no plan that can be read, and was not touched".into()),
        }
        let is_done = dir.sealed().ok().flatten().is_some_and(|s| s.end == "done");
        if is_done
            && (dir.summary_is_there() || plimsoll_run::analyze(&dir).is_ok())
            && let Ok(run) = self.read(&dir, under.repeat, None)
        {
            let run = CellRun { took_s: run.took_s.max(lived_s(&dir, under)), ..run };
            return LeftRun::Whole(Box::new(run));
        }
        match self.clean_up(&dir) {
            Ok(left) if left.is_empty() => LeftRun::Cut("what it had made is removed".into()),
            Ok(left) => LeftRun::Cut(format!(
                "left behind: {}; `plimsoll cleanup {}` tries again",
                left.join("; "),
                under.run
            )),
            Err(e) => LeftRun::Cut(format!(
                "not cleaned up: {}; `plimsoll cleanup {}` tries again",
                one_line(&e),
                under.run
            )),
        }
    }

    fn hook(&mut self, subject: &Subject, when: HookTime, command: &str) -> (f64, Option<String>) {
        let limit = self
            .hook_limits
            .iter()
            .find(|(n, _)| *n == subject.name)
            .map_or(Duration::from_secs(60), |l| l.1);
        let of = HookOf { campaign: &self.name, subject: &subject.name, when: when.name() };
        let began = Instant::now();
        // What comes after a subject is done even where somebody wants an end, unless they want it a second time.
        let is_before = when == HookTime::Before;
        let is_ended = || (is_before && signals::was_asked_to_stop()) || signals::was_told_not_to_wait();
        let files = HookFiles { log: &self.hooks_log, note: &self.hook_note };
        let done = run_hook(command, of, limit, files, is_ended);
        (began.elapsed().as_secs_f64(), done.err().map(|p| clean(&p).into_owned()))
    }

    fn rest(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_interrupted() && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
        }
    }

    fn await_rest(&mut self, cell: &CampaignCell, limit: Duration) -> Rested {
        let tell = |text: &str| output::tell(format_args!("plimsoll: {}", clean(text)));
        let sleep = |time| {
            self.rest(time);
            !self.is_interrupted()
        };
        let rested = await_rest(cell, limit, sleep, tell);
        let waited = format!("waited {:.0} s for rest", rested.took_s);
        match &rested.unrest[..] {
            [] if self.is_interrupted() => {}
            [] => self.say(&waited),
            unrest => output::tell(format_args!(
                "plimsoll: {waited}, in vain: {}; the run begins all the same, and its record says so",
                clean(&unrest.join("; "))
            )),
        }
        rested
    }

    fn is_interrupted(&self) -> bool {
        signals::was_asked_to_stop()
    }

    fn is_waiting_over(&self) -> bool {
        signals::was_told_not_to_wait()
    }

    fn wait_until(&mut self, due: Timestamp) {
        // By the wall clock, and not for so long: a machine that slept, or was set, is there all the same.
        while !self.is_interrupted() && self.now() < due {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn edited(&mut self) -> Option<String> {
        if self.is_edit_told {
            return None;
        }
        let is_same = std::fs::read_to_string(&self.file).is_ok_and(|text| text_hash(&text) == self.hash);
        self.is_edit_told = !is_same;
        self.is_edit_told.then(|| {
            format!(
                "{} was edited or is gone: this session goes on with the file as it was; `plimsoll campaign status` names what is different",
                self.file.display()
            )
        })
    }

    fn tell(&mut self, told: &CampaignTold<'_>) {
        match told {
            CampaignTold::Begins(cell, repeat, state) => self.say(&words::begins(cell, *repeat, state)),
            CampaignTold::Ended(cell, run, state) => {
                self.say(&words::ended_run(cell, run, state));
                if !run.left.is_empty() {
                    output::tell(format_args!("plimsoll: left behind: {}", clean(&run.left.join("; "))));
                }
            }
            CampaignTold::Failed(what, why) => {
                output::tell(format_args!("plimsoll: {} {}", clean(what), clean(why)))
            }
            CampaignTold::Hook(subject, when, command) => {
                self.say(&format!(
                    "{}, {}: {}",
                    clean(&subject.name),
                    when.name(),
                    clean(&shown_command(command))
                ));
            }
            CampaignTold::Said(text) => output::tell(format_args!("plimsoll: {}", clean(text))),
        }
    }
}
