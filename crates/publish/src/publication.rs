//! What is published: put together from a campaign and its runs, without the names that stay in the house.

use std::path::{Path, PathBuf};

use plimsoll_campaign::ledger::now;
use plimsoll_campaign::{CampaignError, CampaignFile, CampaignResult, Campaigned, CellOrder};
use plimsoll_model::count::counted;
use plimsoll_model::text::clean;
use plimsoll_report::number;

use crate::answer::{CampaignAnswer, answer};
use crate::chart::{ChartData, charts};
use crate::gather::{PublishedRun, dir_of, gather};
use crate::page::{MOST_OF_PAGE, pages};
use crate::redact::{RedactKind, Redactor};
use crate::search::{NoCopy, no_copy};
use crate::sheet;
use crate::site::SiteFile;
use crate::tables::{SiteTable, tables};

/// How it is to be published.
#[derive(Debug, Clone, Default)]
pub struct PublishOptions {
    /// In place of the campaign's name.
    pub title: Option<String>,
    /// What must not leave the house.
    pub redact: Vec<RedactKind>,
    /// Copies of the run directories go along.
    pub with_runs: bool,
}

/// Why it cannot be.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message has all fields in it")]
pub enum PublishError {
    #[error("campaign '{0}' has no run yet")]
    Nothing(String),
    #[error("with what was asked to be left out, the campaign's file cannot be read any more ({})", .0.problem)]
    Unreadable(CampaignError),
    #[error("run {run}: {problem}")]
    Run { run: String, problem: String },
    #[error("page {0} would have {1} bytes")]
    TooLarge(String, usize),
    #[error("{0}")]
    Copies(String),
    #[error("{}{}: what looks like a key, a password or a token would go along", file.display(), line.map_or(String::new(), |n| format!(" line {n}")))]
    Secret { file: PathBuf, line: Option<usize> },
    #[error("{} cannot be looked through for secrets: {why}", file.display())]
    Unseen { file: PathBuf, why: String },
}

impl PublishError {
    /// What to do, as a sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Nothing(_) => "Measure it first: plimsoll campaign run FILE".into(),
            Self::Unreadable(_) => {
                "A bucket or machine has the name of a word of the file itself: leave that kind out of --redact, or rename it."
                    .into()
            }
            Self::Run { .. } => "Publish runs that ended; `plimsoll runs list` says which did.".into(),
            Self::TooLarge(..) => "Publish fewer cells, or shorten names and labels.".into(),
            Self::Copies(_) => {
                "Leave out --with-runs: their hashes are published in any case. Or leave out --redact.".into()
            }
            Self::Unseen { .. } => "Leave out --with-runs (their hashes are published in any case), or that run.".into(),
            Self::Secret { .. } => {
                "Run directories go along as they are, and nothing can be left out of them: leave out --with-runs (their hashes are published in any case), or the runs that have it."
                    .into()
            }
        }
    }
}

/// All of it.
#[derive(Debug)]
pub struct Publication {
    /// Of the pages.
    pub title: String,
    /// Of the file.
    pub question: Option<String>,
    /// Comes first.
    pub answer: CampaignAnswer,
    /// What the campaign came to.
    pub result: CampaignResult,
    /// In order of time.
    pub runs: Vec<PublishedRun>,
    /// With rows.
    pub tables: Vec<SiteTable>,
    /// Drawn by the page.
    pub charts: ChartData,
    /// Name and what.
    pub method: Vec<(String, String)>,
    /// To measure it again.
    pub commands: Vec<String>,
    /// Files by which it was measured: the campaign's, or the plans of runs. Path and text.
    pub sources: Vec<(String, String)>,
    /// RFC 3339.
    pub made_at: String,
    /// Of the program.
    pub version: String,
    /// Kinds and numbers of names that were replaced; empty: none was asked for.
    pub redacted: String,
    /// Run directories go along.
    pub has_runs: bool,
}

/// Puts it together. `text`: of the campaign's file; `beside`: where paths in it begin.
pub fn publication(
    c: &Campaigned,
    text: &str,
    beside: &Path,
    options: &PublishOptions,
) -> Result<Publication, PublishError> {
    refuse_copies(options)?;
    if c.state.cells.iter().all(|s| s.runs.is_empty()) {
        return Err(PublishError::Nothing(c.file.name.clone()));
    }
    let mut redactor = Redactor::new(&options.redact);
    redactor.know_servers(&c.file.options.observe, c.file.options.cluster.as_deref());
    for s in &c.file.subjects {
        s.targets().for_each(|t| redactor.know_target(t));
        redactor.know_servers(&s.observe, s.cluster.as_deref());
    }
    let runs = gather(c, &|name| dir_of(c, beside, name), &mut redactor);
    refuse_secrets(&runs, options)?;
    let campaign = campaign_text(c, text, &mut redactor)?;
    let commands = vec![
        "plimsoll campaign run campaign.toml --dry-run".into(),
        "plimsoll campaign run campaign.toml".into(),
    ];
    let sources = SourceFiles { files: vec![("campaign.toml".into(), campaign)], commands };
    Ok(put_together(c, runs, sources, method, redactor, options))
}

/// Of a run directory nothing can be left out.
pub(crate) fn refuse_copies(options: &PublishOptions) -> Result<(), PublishError> {
    if options.with_runs && !options.redact.is_empty() {
        let why = "run directories go along as they are: nothing can be left out of them";
        return Err(PublishError::Copies(why.into()));
    }
    Ok(())
}

/// A secret in a copy would leave with it.
pub(crate) fn refuse_secrets(runs: &[PublishedRun], options: &PublishOptions) -> Result<(), PublishError> {
    let mut dirs = runs.iter().filter(|_| options.with_runs).filter_map(|r| r.dir.as_ref());
    match dirs.find_map(|dir| no_copy(dir)) {
        None => Ok(()),
        Some(NoCopy::Credential { file, line }) => Err(PublishError::Secret { file, line }),
        Some(NoCopy::Unknown { file, why }) => Err(PublishError::Unseen { file, why }),
    }
}

/// Files by which something was measured, and how they are used.
pub(crate) struct SourceFiles {
    /// Path and text, redacted.
    pub files: Vec<(String, String)>,
    pub commands: Vec<String>,
}

/// What is said of how it was measured.
pub(crate) type MethodOf = fn(&Campaigned, &[PublishedRun], &CampaignResult) -> Vec<(String, String)>;

pub(crate) fn put_together(
    c: &Campaigned,
    mut runs: Vec<PublishedRun>,
    sources: SourceFiles,
    method: MethodOf,
    mut redactor: Redactor,
    options: &PublishOptions,
) -> Publication {
    // Names are known only now: from here on nothing has them.
    let mut result = c.result();
    runs.iter_mut().for_each(|r| r.redact(&mut redactor));
    redact_result(&mut result, &mut redactor);
    let title = options.title.clone().unwrap_or_else(|| result.name.clone());
    let title = clean(&redactor.text(&title)).into_owned();
    let mut method = method(c, &runs, &result);
    method.iter_mut().for_each(|(_, what)| redactor.apply(what));
    let redacted: Vec<String> = redactor.counts().map(|(kind, n)| format!("{n} {kind}")).collect();
    Publication {
        title,
        question: result.question.as_deref().map(|q| clean(q).into_owned()),
        answer: answer(&result),
        tables: tables(&result, &runs),
        charts: charts(&result, &runs),
        result,
        runs,
        method,
        commands: sources.commands,
        sources: sources.files,
        made_at: now(),
        version: env!("CARGO_PKG_VERSION").into(),
        redacted: redacted.join(", "),
        has_runs: options.with_runs,
    }
}

/// As it was measured: the copy in the ledger, where the campaign was run here; comments and all.
fn campaign_text(c: &Campaigned, text: &str, redactor: &mut Redactor) -> Result<String, PublishError> {
    let measured = c.dir.copy().filter(|_| c.dir.is_begun()).unwrap_or_else(|| text.to_owned());
    let out = redactor.toml(&measured);
    CampaignFile::from_toml(&out).map_err(PublishError::Unreadable)?;
    Ok(out)
}

fn redact_result(result: &mut CampaignResult, r: &mut Redactor) {
    r.apply(&mut result.name);
    result.question.iter_mut().for_each(|q| r.apply(q));
    let failed = std::mem::take(&mut result.failed);
    result.failed = failed.into_iter().map(|(k, v)| (r.text(&k), r.text(&v))).collect();
    for row in &mut result.rows {
        for text in [&mut row.subject, &mut row.workload, &mut row.line] {
            r.apply(text);
        }
        row.labels = r.labels(std::mem::take(&mut row.labels));
        for s in row.servers.iter_mut() {
            s.not_observed.iter_mut().for_each(|t| r.apply(t));
            s.daemons.iter_mut().for_each(|d| r.apply(&mut d.kind));
        }
        row.axes.iter_mut().for_each(|(name, value)| *value = r.value(name, value));
        for (run, fall) in &mut row.falls {
            r.apply(run);
            r.apply(&mut fall.line);
        }
        row.tools.iter_mut().for_each(|t| r.apply(t));
        row.runs.iter_mut().for_each(|t| r.apply(t));
        row.void.iter_mut().for_each(|v| r.apply(&mut v.run));
    }
}

fn method(c: &Campaigned, runs: &[PublishedRun], result: &CampaignResult) -> Vec<(String, String)> {
    let f = &c.file;
    let mut out = Vec::new();
    let mut say = |name: &str, what: String| out.push((name.to_owned(), clean(&what).into_owned()));
    measured_when(runs).into_iter().for_each(|when| say("Measured", when));
    let void: usize = c.state.cells.iter().flat_map(|s| &s.runs).filter(|r| !r.answered).count();
    let all = c.state.done_runs();
    say("Runs", format!("{all}, of these {void} void; {} to go", c.state.to_go()));
    let r = f.repeat;
    say(
        "Repeats",
        match r.until_wide {
            Some(w) => format!(
                "each cell {} times or more, until its interval is {} wide, at most {} times",
                r.at_least,
                number::percent(w),
                r.at_most
            ),
            None => format!("each cell {} times", r.at_least),
        },
    );
    let order = match f.order {
        CellOrder::Random => "random, in blocks of one run of each cell",
        CellOrder::BySubject => "subject by subject in random order",
        CellOrder::Abba => "in pairs: A B, B A",
        CellOrder::AsWritten => "as the file has it",
    };
    say("Order", order.into());
    say("Rest between cells", f.rest.to_string());
    if let Some(times) = f.times_of_day() {
        say("Times of day", times.words());
    }
    say("Seed", f.seed.to_string());
    let hooks = f.subjects.iter().filter(|s| !s.before.is_empty() || !s.after.is_empty()).count();
    if hooks > 0 {
        let (have, their) = if hooks == 1 { ("has", "its") } else { ("have", "their") };
        let of = counted(hooks, "subject");
        let text = format!("{of} {have} commands that run before or after {their} cells: see campaign.toml");
        say("Commands", text);
    }
    let brought: Vec<&str> = f.subjects.iter().filter(|s| s.is_brought()).map(|s| s.name.as_str()).collect();
    if !brought.is_empty() {
        say("Brought along", format!("runs of {} were made elsewhere", brought.join(", ")));
    }
    let gone = runs.iter().filter(|r| r.gap.is_some()).count();
    if gone > 0 {
        say(
            "Runs that could not be read",
            format!("{gone}: their figures are as the campaign's ledger has them"),
        );
    }
    let without = result.rows.iter().filter(|r| r.rate().is_none()).count();
    say("Void or missing cells", without.to_string());
    say("Failed ops", "are counted, and never part of a rate".into());
    out
}

/// From the first run to the last.
pub(crate) fn measured_when(runs: &[PublishedRun]) -> Option<String> {
    let first = runs.iter().map(|r| &r.started_at).find(|t| !t.is_empty())?;
    let day = |t: &str| t.get(..16).unwrap_or(t).replace('T', " ");
    let (first, last) = (day(first), day(&runs.last()?.started_at));
    Some(if first == last { format!("{first} (UTC)") } else { format!("{first} to {last} (UTC)") })
}

impl Publication {
    /// Every file of the site, but copies of runs.
    pub fn files(&self) -> Result<Vec<SiteFile>, PublishError> {
        let mut out: Vec<SiteFile> = Vec::new();
        for (name, text) in pages(self) {
            if text.len() > MOST_OF_PAGE {
                return Err(PublishError::TooLarge(name, text.len()));
            }
            out.push(SiteFile::new(&name, text));
        }
        for t in &self.tables {
            let notes: String = t
                .notes
                .iter()
                .map(|n| format!("\n{}\n", plimsoll_report::table::escape_markdown(n)))
                .collect();
            let title = plimsoll_report::table::escape_markdown(&t.table.title);
            out.push(SiteFile::new(
                &format!("tables/{}.md", t.slug),
                format!("## {title}\n\n{}{notes}", t.table.markdown()),
            ));
            let sheet = match t.slug.as_str() {
                "results" => sheet::of_results(&self.result),
                crate::served::SLUG => crate::served::of_servers(&self.result),
                _ => sheet::of_table(&t.table),
            };
            out.push(SiteFile::new(&format!("tables/{}.csv", t.slug), sheet));
        }
        for (name, text) in self.charts.sheets() {
            out.push(SiteFile::new(&format!("charts/{name}.csv"), text));
        }
        let json = serde_json::to_string_pretty(&self.result).unwrap_or_default() + "\n";
        out.push(SiteFile::new("data/result.json", json));
        out.push(SiteFile::new("data/runs.sha256", self.manifest()));
        out.extend(self.sources.iter().map(|(path, text)| SiteFile::new(path, text.clone())));
        Ok(out)
    }

    /// As `sha256sum` prints it; beside the runs, `sha256sum -c` checks them.
    fn manifest(&self) -> String {
        let line =
            |run: &str, f: &crate::gather::HashedFile| format!("{}  {}/{}\n", f.sha256, run, clean(&f.path));
        let name = |r: &PublishedRun| if self.has_runs { r.copied_as.clone() } else { r.run.clone() };
        self.runs.iter().flat_map(|r| r.files.iter().map(move |f| line(&clean(&name(r)), f))).collect()
    }

    /// Directories that go along, by the name that they have in the site.
    pub fn copies(&self) -> Vec<(String, PathBuf)> {
        let of = |r: &PublishedRun| Some((r.copied_as.clone(), r.dir.clone()?));
        if self.has_runs { self.runs.iter().filter_map(of).collect() } else { Vec::new() }
    }

    /// Cells that are void or missing.
    pub fn without_figures(&self) -> usize {
        self.result.rows.iter().filter(|r| r.rate().is_none()).count()
    }
}
