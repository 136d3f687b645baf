//! Reading a campaign file: syntax and unknown keys (with their line), places that are still to be filled in, then what no syntax can
//! say. Each error has a place and a remedy.

use std::collections::BTreeSet;

use plimsoll_model::plan::{Pacing, PlanError, TargetSpec};

use crate::axes;
use crate::cells::{self, CampaignCell};
use crate::file::{CAMPAIGN_VERSION, CampaignFile, CampaignLoad, CellOrder, FileOfLoad, Subject};
use crate::schedule::TimesOfDay;

/// What templates have where only the user knows what belongs there.
pub const FILL_IN: &str = "FILL-IN";

/// More runs of a cell than this are a mistake, too.
const MOST_REPEATS: u32 = 1_000;

/// Each has a file of its own.
const MOST_THREADS: u32 = 4_096;

/// A longer file is none that somebody wrote.
const MOST_TEXT: usize = 4 << 20;
/// Of subjects, of workloads, of instances of one subject.
const MOST_NAMES: usize = 2_000;

/// Why a campaign file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct CampaignError {
    /// Line, or table and key.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
    /// What to do, as a sentence.
    pub remedy: String,
}

pub(crate) fn wrong(
    place: impl Into<String>,
    problem: impl Into<String>,
    remedy: impl Into<String>,
) -> CampaignError {
    CampaignError { place: place.into(), problem: problem.into(), remedy: remedy.into() }
}

impl CampaignFile {
    /// Parses and checks, the plans of all cells included.
    pub fn from_toml(text: &str) -> Result<Self, CampaignError> {
        if text.len() > MOST_TEXT {
            return Err(wrong("the campaign", "its file is longer than 4 MiB", "Split the campaign."));
        }
        // Before anything else: a place to be filled in breaks rules that whoever has not come to it yet cannot know.
        filled_in(text)?;
        let mut file: Self = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|at| text[..at.start.min(text.len())].matches('\n').count() + 1);
            let place = line.map_or_else(|| "the campaign".to_owned(), |n| format!("line {n}"));
            let shown = e.to_string();
            let said = if e.message().is_empty() { shown.trim_end() } else { e.message() };
            wrong(place, said, "Correct the line; `plimsoll campaign new` writes files to start from.")
        })?;
        axes::resolve(&mut file)?;
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), CampaignError> {
        if self.version != CAMPAIGN_VERSION {
            return Err(wrong(
                "version",
                format!("{} is not a campaign version that this program supports", self.version),
                format!("Write version = {CAMPAIGN_VERSION}, or use a newer plimsoll."),
            ));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if self.name.is_empty()
            || self.name.len() > 100
            || !self.name.chars().all(is_plain)
            || self.name.starts_with('.')
        {
            return Err(wrong(
                "name",
                format!("'{}' cannot name a directory", self.name),
                "Use letters, digits, - and _ (100 at most): the ledger's directory has this name.",
            ));
        }
        if self.options.trace.is_some() {
            return Err(wrong(
                "options.trace",
                "one file of requests is no place for every run of a campaign: every run after the first would find it there",
                "Leave it out. To trace one cell, write it into a copy of the plan.toml in the directory of its run, and `plimsoll run` that.",
            ));
        }
        if self.prices.is_some() && self.options.cost.is_some() {
            return Err(wrong(
                "options.cost",
                "there are prices in it, and in the file that `prices` names",
                "Leave one of them out: with `prices` each subject has its own.",
            ));
        }
        self.check_repeats()?;
        TimesOfDay::of(self)?;
        self.published.as_ref().map_or(Ok(()), |p| p.check())?;
        distinct("subject", self.subjects.iter().map(|s| s.name.as_str()))?;
        distinct("workload", self.workloads.iter().map(|w| w.name.as_str()))?;
        self.subjects.iter().try_for_each(check_subject)?;
        self.workloads.iter().try_for_each(check_load)?;
        if self.order == CellOrder::Abba && self.measured().count() != 2 {
            return Err(wrong(
                "order",
                format!("abba is of two subjects, and {} are measured here", self.measured().count()),
                "Leave two, or write order = \"random\".",
            ));
        }
        let cells = cells::expand(self)?;
        if cells.is_empty() {
            return Err(wrong("workload", "no workload is for any subject", "Correct the labels in `only`."));
        }
        cells.iter().try_for_each(check_cell)
    }

    /// Subjects that are measured here.
    pub fn measured(&self) -> impl Iterator<Item = &Subject> {
        self.subjects.iter().filter(|s| !s.is_brought())
    }

    fn check_repeats(&self) -> Result<(), CampaignError> {
        let r = self.repeat;
        if r.at_least == 0 || r.at_least > MOST_REPEATS || r.at_most > MOST_REPEATS {
            return Err(wrong(
                "repeat",
                format!("at_least and at_most are between 1 and {MOST_REPEATS}"),
                "Leave them out for 3 and 10.",
            ));
        }
        let Some(wide) = r.until_wide else { return Ok(()) };
        if !(wide > 0.0 && wide < 1.0) {
            return Err(wrong("repeat.until_wide", format!("{wide} is no width"), "Write 0.03 for 3 %."));
        }
        if r.at_least < 3 || r.at_most < r.at_least {
            return Err(wrong(
                "repeat",
                "until_wide takes at_least = 3 or more, from whose spread it is decided, and at_most no less than that",
                "Write for example { at_least = 3, at_most = 10, until_wide = 0.03 }.",
            ));
        }
        Ok(())
    }
}

/// Places of a template that only the user can fill in, with their lines.
fn filled_in(text: &str) -> Result<(), CampaignError> {
    let open: Vec<String> = text
        .lines()
        .enumerate()
        .filter(|(_, l)| l.find(FILL_IN).is_some_and(|at| !is_comment(&l[..at])))
        .map(|(i, _)| (i + 1).to_string())
        .collect();
    match &open[..] {
        [] => Ok(()),
        [one] => Err(wrong(format!("line {one}"), format!("{FILL_IN} still stands here"), FILL_REMEDY)),
        many => Err(wrong(
            format!("lines {}", many.join(", ")),
            format!("{FILL_IN} still stands there"),
            FILL_REMEDY,
        )),
    }
}

const FILL_REMEDY: &str = "Write what is yours in its place; the comment above it says what.";

/// Whether a comment has begun by the end of this part of a line.
fn is_comment(before: &str) -> bool {
    let mut quoted = false;
    before.chars().any(|c| {
        quoted ^= c == '"';
        c == '#' && !quoted
    })
}

fn distinct<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), CampaignError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() || name.len() > 200 || name.contains(['/', '\n', '\r']) {
            return Err(wrong(
                format!("{what} '{name}'"),
                "its name is empty, too long, or has a / in it",
                "Choose another name.",
            ));
        }
        if !seen.insert(name) {
            return Err(wrong(
                format!("{what} '{name}'"),
                "there are two of this name",
                "Names tell them apart: choose another for one of them.",
            ));
        }
        if seen.len() > MOST_NAMES {
            return Err(wrong(what, format!("there are more than {MOST_NAMES}"), "Split the campaign."));
        }
    }
    if seen.is_empty() {
        return Err(wrong(what, "there is none", format!("Add a table [[{what}]].")));
    }
    Ok(())
}

fn check_subject(s: &Subject) -> Result<(), CampaignError> {
    let place = format!("subject '{}'", s.name);
    let ways =
        usize::from(s.target.is_some()) + usize::from(!s.instances.is_empty()) + usize::from(s.is_brought());
    if ways != 1 {
        return Err(wrong(
            place,
            "it needs one of: a target, instances, or runs that were brought along",
            "Write target = { kind = ... }, or [[subject.instance]] tables, or runs = [\"DIR\", ...].",
        ));
    }
    if !s.instances.is_empty() {
        distinct("instance", s.instances.iter().map(|i| i.name.as_str()))
            .map_err(|e| wrong(format!("{place}, {}", e.place), e.problem, e.remedy))?;
    }
    if s.is_brought() && !(s.before.is_empty() && s.after.is_empty()) {
        return Err(wrong(place, "it has hooks, and is not measured here", "Leave out before and after."));
    }
    if s.hook_limit.0.is_zero() {
        return Err(wrong(place, "hook_limit is zero", "Write for example hook_limit = \"60s\"."));
    }
    Ok(())
}

fn check_load(w: &CampaignLoad) -> Result<(), CampaignError> {
    let place = format!("workload '{}'", w.name);
    let ways = [w.limits.is_some(), w.speedtest.is_some(), w.watch.is_some(), w.file.is_some()];
    if ways.iter().filter(|is| **is).count() > 1 {
        return Err(wrong(
            place,
            "limits, speedtest, watch and file exclude each other",
            "Make a workload of each.",
        ));
    }
    if w.watch.is_some() && w.duration.is_some() {
        return Err(wrong(
            place,
            "a watch has a duration of its own",
            "Leave out duration beside `watch = { duration = ... }`.",
        ));
    }
    if let Some(file) = &w.file {
        check_threads(&place, file)?;
        let plain = w.mix.is_empty() && w.sizes.is_empty() && w.concurrency.is_empty() && w.jobs.is_none();
        let plain = plain
            && w.duration.is_none()
            && w.object.is_none()
            && w.block.is_none()
            && w.of_promised.is_none();
        return if plain && w.pacing == Pacing::Closed {
            Ok(())
        } else {
            Err(wrong(
                place,
                "the file benchmark has ops, sizes and lengths of its own",
                "Leave out mix, sizes, concurrency, jobs, pacing, duration and options beside `file`.",
            ))
        };
    }
    if w.mix.is_empty() {
        return Err(wrong(place, "it has no mix", "Write for example mix = { put = 1 }."));
    }
    if let Some(share) = w.of_promised {
        if w.pacing != Pacing::Closed {
            return Err(wrong(place, "of_promised and pacing exclude each other", "Leave one of them out."));
        }
        if !(share > 0.0 && share <= 100.0) {
            return Err(wrong(
                place,
                format!("of_promised = {share} is no share"),
                "Write 1.05 for 5 % more than is promised.",
            ));
        }
    }
    Ok(())
}

fn check_threads(place: &str, file: &FileOfLoad) -> Result<(), CampaignError> {
    let counts = file.thread_counts();
    if counts.is_empty() || counts.iter().any(|n| n.fixed().is_some_and(|n| n == 0 || n > MOST_THREADS)) {
        return Err(wrong(
            place,
            format!("file.threads are between 1 and {MOST_THREADS}"),
            "Write for example threads = [1, 2, 4, \"cores\"].",
        ));
    }
    if file.cycles == 0 || file.cycles > MOST_REPEATS {
        return Err(wrong(
            place,
            format!("file.cycles are between 1 and {MOST_REPEATS}"),
            "Leave it out for 1.",
        ));
    }
    Ok(())
}

/// The plan of each cell holds by the rules of plans.
fn check_cell(cell: &CampaignCell) -> Result<(), CampaignError> {
    let place = format!("subject '{}', workload '{}'", cell.subject, cell.workload);
    if let cells::CellWork::Files(_) = cell.work {
        return match &cell.target {
            Some(TargetSpec::Files(_)) | None => Ok(()),
            Some(_) => Err(wrong(
                place,
                "the file benchmark needs a directory",
                "Write target = { kind = \"files\", directory = \"/mnt/data\", file_size = \"1GiB\" }, or keep it off this subject with `only`.",
            )),
        };
    }
    let Some(plan) = cell.plan(0, 0) else { return Ok(()) };
    plan.validate().map_err(|e| match e {
        PlanError::Syntax(m) => wrong(place, m, "Correct it."),
        PlanError::Invalid { place: at, problem, remedy } => {
            wrong(format!("{place} ({at})"), problem, remedy)
        }
    })
}
