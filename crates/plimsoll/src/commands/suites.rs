//! `fio`, `file` and `drive`: plans made from other tools' words, with results in other tools' forms.

use std::path::PathBuf;

use plimsoll_model::plan::ClientBounds;
use plimsoll_model::{Finding, Level};
use plimsoll_report::Style;
use plimsoll_report::fio::{self as fio_report, Ceiling, FileBench, Format, Judged};
use plimsoll_run::Finished;
use plimsoll_store::{RunDir, journal};
use plimsoll_suites::drives::{self, DriveOptions};
use plimsoll_suites::filebench::{self, FileBenchOptions, Host, Original};
use plimsoll_suites::fio_job::{self, FioError, FioOptions, ParseOptions};

use super::drive::DriveCommand;
use super::file::FileCommand;
use super::fio::FioCommand;
use super::runs_exec::kept_words;
use crate::args::{ArgsContext, OutputArgs};
use crate::fault::{Exit, Fault, sentence};
use crate::progress::Progress;
use crate::status::{Documents, StatusWriter};
use crate::{measure, output};

impl From<FioError> for Fault {
    fn from(e: FioError) -> Self {
        let place = if e.line == 0 { e.file } else { format!("{}:{}", e.file, e.line) };
        Fault::input(format!("{place}: {}", e.problem), sentence(&e.remedy))
    }
}

pub fn fio(c: &FioCommand) -> Result<Exit, Fault> {
    let made = fio_job::plan(&FioOptions {
        files: vec![c.job.clone()],
        parse: ParseOptions {
            set: c.set.iter().map(|(k, v)| format!("{k}={v}")).collect(),
            ignore_unknown: c.ignore_unknown,
            sections: c.sections.clone(),
        },
        destroy_data: c.destroy_data.clone(),
    })?;
    for line in &made.ignored {
        output::tell(format_args!("plimsoll: ignored: {line}"));
    }
    for note in &made.notes {
        output::tell(format_args!("plimsoll: {note}"));
    }
    let mut plan = made.plan;
    c.run.lay_over(&mut plan)?;
    if c.run.dry_run {
        return measure::show_plan(&plan);
    }
    let formats = (c.output_format != "plimsoll")
        .then(|| Format::list(&c.output_format))
        .transpose()
        .map_err(|e| Fault::input(e, "Or write plimsoll for its own format."))?;
    let out = &c.run.output;
    let progress = match c.status_interval {
        // In its own form the status is a line; fio's forms are documents.
        Some(every) if formats.is_none() => Progress::lines_every(every.0),
        _ => Progress::new(out.quiet || c.eta == "never"),
    };
    let Some(formats) = formats else {
        if c.output.is_some() {
            return Err(Fault::input(
                "--output is for fio's formats, but none is requested",
                "Add --output-format json+ (or json, or normal); plimsoll's own report goes to --html FILE.",
            ));
        }
        let finished = measure::run(&plan, out, &progress)?;
        tell_kept(&finished, out)?;
        return measure::show(&finished, out);
    };
    let documents = Documents::new(formats, c.output.clone())?;
    let status = c.status_interval.map(|t| StatusWriter::start(t.0, documents.clone(), progress.directory()));
    let finished = measure::run(&plan, out, &progress);
    drop(status);
    let finished = finished?;
    tell_kept(&finished, out)?;
    let report = fio_report::read(&RunDir::open(&finished.path)?)?;
    tell_void(report.judged.as_ref());
    measure::shown_as(&finished, out, documents.write(&fio_report::render(&report, &documents.formats)))
}

/// Readers of other tools' forms pass over what is ours in them: what makes figures void is told beside them.
fn tell_void(judged: Option<&Judged>) {
    for line in judged.map(Judged::invalid).unwrap_or_default() {
        output::tell(format_args!("plimsoll: {line}"));
    }
}

/// fio leaves its files, and so does a job file run here.
fn tell_kept(finished: &Finished, out: &OutputArgs) -> Result<(), Fault> {
    let dir = RunDir::open(&finished.path)?;
    let kept = journal::kept(&dir.journal_path())?;
    if !out.quiet && !kept.is_empty() {
        output::tell(format_args!("plimsoll: {}", kept_words(&dir, &kept)));
    }
    Ok(())
}

pub fn file(c: &FileCommand, context: &ArgsContext) -> Result<Exit, Fault> {
    let directory = directory(c.dir.as_ref().or(c.directory.as_ref()))?;
    let client = c.memory.map(|m| ClientBounds { memory: Some(m), ..ClientBounds::default() });
    let mut made = filebench::plan(
        &FileBenchOptions {
            runs: c.runs,
            size_bytes: c.size.map(|s| s.0),
            threads: c.threads,
            iops_duration: c.iops_duration.0,
            original: Original::from_names(&c.original)?,
            seed: c.seed.unwrap_or(context.fresh_seed),
            directory: directory.clone(),
            embedded: None,
        },
        &Host::of(&directory)?.within(client.as_ref()),
    )?;
    made.plan.options.client = client;
    c.about.lay_over(&mut made.plan)?;
    made.plan.validate()?;
    if !c.output.quiet {
        made.notes.iter().for_each(|n| output::tell(format_args!("plimsoll: {n}")));
    }
    if c.dry_run {
        return measure::show_plan(&made.plan);
    }
    let finished = measure::run(&made.plan, &c.output, &Progress::new(c.output.quiet))?;
    let bench = fio_report::file_bench(&RunDir::open(&finished.path)?)?;
    if c.format == "gobonniego" {
        tell_void(bench.judged.as_ref());
        return measure::show_as(&finished, &c.output, &bench.gobonniego());
    }
    show_bench(&finished, &c.output, &bench)
}

/// The benchmark in twelve lines, or with all there is of it.
pub fn show_bench(finished: &Finished, out: &OutputArgs, bench: &FileBench) -> Result<Exit, Fault> {
    if out.json || out.csv || out.markdown {
        return measure::show(finished, out);
    }
    if out.verbose {
        measure::reported(finished, output::print(&format!("{}\n", bench.table())))?;
        return measure::show(finished, out);
    }
    let report = plimsoll_report::read(&RunDir::open(&finished.path)?, 1)?;
    measure::show_as(finished, out, &bench.short(&report, Style::for_stdout()))
}

pub fn drive(c: &DriveCommand, context: &ArgsContext) -> Result<Exit, Fault> {
    let options = DriveOptions {
        directories: c.dirs.clone(),
        block_bytes: c.blocksize.0,
        file_bytes: c.filesize.0,
        streams: c.ioperdrive,
        serial: c.serial,
        write_only: c.write_only,
        seed: c.seed.unwrap_or(context.fresh_seed),
    };
    let mut made = drives::plan(&options, drives::look_at)?;
    for said in drives::sharing(&options.directories) {
        output::tell(format_args!("plimsoll: {said}"));
    }
    c.about.lay_over(&mut made.plan)?;
    made.plan.validate()?;
    if c.dry_run {
        return measure::show_plan(&made.plan);
    }
    let finished = measure::run(&made.plan, &c.output, &Progress::new(c.output.quiet))?;
    let dir = RunDir::open(&finished.path)?;
    let report = plimsoll_report::read(&dir, 1)?;
    let findings = of_work_that_was_given(report.summary.findings.clone());
    let ceiling = Ceiling { said: findings.clone(), ..fio_report::ceiling(&dir)? };
    if c.output.json {
        measure::show_as(&finished, &c.output, &ceiling.json())?;
    } else if c.output.csv || c.output.markdown {
        measure::show(&finished, &c.output)?;
    } else if c.output.verbose {
        measure::reported(&finished, output::print(&whole(&ceiling, &findings)))?;
        measure::show(&finished, &c.output)?;
    } else {
        measure::show_as(&finished, &c.output, &ceiling.short(&report, Style::for_stdout()))?;
    }
    // A drive that failed is in no total, so that the result does not hold for all that was asked.
    let spoiled = !ceiling.failed().is_empty() || findings.iter().any(|f| f.level == Level::Invalid);
    let promise = |met: Option<bool>| ceiling.expectations.iter().any(|e| e.met == met);
    let of_run = Exit::of_code(finished.exit_code);
    Ok(match of_run {
        // The run's own answers are of rates with an interval, which a given amount of work has not.
        Exit::Valid | Exit::Invalid | Exit::ExpectationMissed | Exit::Undetermined | Exit::LeftBehind => {
            match () {
                () if spoiled => Exit::Invalid,
                () if promise(Some(false)) => Exit::ExpectationMissed,
                () if promise(None) => Exit::Undetermined,
                () if of_run == Exit::LeftBehind => of_run,
                () => Exit::Valid,
            }
        }
        other => other,
    })
}

/// dperf's tables and dd's lines, the promises, and what is to be said of it all.
fn whole(ceiling: &Ceiling, findings: &[Finding]) -> String {
    let mut text = ceiling.table();
    text.extend(ceiling.dd().map(|lines| format!("\n{lines}")));
    text.push('\n');
    if !ceiling.expectations.is_empty() {
        text.push_str(&ceiling.expectations(Style::for_stdout().width));
        text.push('\n');
    }
    plimsoll_report::findings(&mut text, findings, Style::for_stdout());
    text
}

/// What is to be said of a given amount of work over the time that it took. There is no interval in that, so that what
/// makes one impossible (V04, Q03, ...) makes nothing of it invalid; that the rate was uneven is still said.
fn of_work_that_was_given(findings: Vec<Finding>) -> Vec<Finding> {
    let of_an_interval = ["V04", "V13", "V14", "V21", "Q01", "Q02", "Q03"];
    let mut out: Vec<Finding> = Vec::new();
    for mut f in findings {
        let told = f.level != Level::Info && !of_an_interval.contains(&f.code.as_str());
        if f.name == "no_rate" && !out.iter().any(|o| o.name == "uneven") {
            f.name = "uneven".into();
            f.level = Level::Qualified;
            f.text =
                "The rate was uneven, or the run was too short to tell, so another run may give a different \
                      result. Use a larger --filesize."
                    .into();
            out.push(f);
        } else if told {
            out.push(f);
        }
    }
    out
}

/// An existing directory: a missing one is a mistyped one.
fn directory(given: Option<&PathBuf>) -> Result<PathBuf, Fault> {
    let dir = given.ok_or_else(|| Fault::input("no directory to measure", "Name one: plimsoll file DIR."))?;
    if dir.is_dir() {
        return Ok(dir.clone());
    }
    Err(Fault::input(format!("{} is not a directory", dir.display()), "Name an existing directory."))
}
