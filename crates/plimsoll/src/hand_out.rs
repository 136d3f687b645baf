//! Results for other programs: looked at before a run, so that nothing is measured in vain, and written after it.

use plimsoll_model::count::counted;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_report::RunReport;
use plimsoll_report::export::{self, INFLUX_MARK};
use plimsoll_setup::influx::{INFLUX_TOKEN, InfluxUrl};
use plimsoll_store::{LoadOptions, RunDir};

use crate::args::HandOutArgs;
use crate::fault::Fault;
use crate::{out_file, output};

/// Names the file to which a job of GitHub Actions adds what its page shows.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Whether all of it can be written; nothing is made or changed.
pub fn check(args: &HandOutArgs) -> Result<(), Fault> {
    match args.influx.as_deref() {
        Some(url) if is_url(url) => {
            let url = InfluxUrl::parse(url)?;
            args.influx_ca_file.as_deref().map_or(Ok(()), |ca| url.check_ca_file(ca))?;
        }
        Some(_) if args.influx_ca_file.is_some() => {
            return Err(Fault::input(
                "--influx-ca-file is for an address, and --influx names a file",
                "Leave it out, or give --influx an https:// address.",
            ));
        }
        Some(file) => out_file::check(Path::new(file))?,
        None => {}
    }
    [&args.bmf, &args.summary_md].into_iter().flatten().try_for_each(|file| out_file::check(file))?;
    if args.step_summary {
        step_summary()?;
    }
    Ok(())
}

/// Whether there is anything to be written.
pub fn is_asked(args: &HandOutArgs) -> bool {
    args.influx.is_some() || args.bmf.is_some() || args.summary_md.is_some() || args.step_summary
}

/// Writes what was asked for of these runs.
pub fn write(dirs: &[RunDir], reports: &[RunReport], args: &HandOutArgs) -> Result<(), Fault> {
    check(args)?;
    if let Some(place) = &args.influx {
        influx(dirs, reports, place, args.influx_ca_file.as_deref())?;
    }
    if let Some(file) = &args.bmf {
        let made = export::bmf(reports);
        made.left_out
            .iter()
            .for_each(|why| output::tell(format_args!("plimsoll: not in {}: {why}", file.display())));
        out_file::write(file, made.json.as_bytes())?;
    }
    if args.summary_md.is_some() || args.step_summary {
        markdown(&export::summary_markdown(reports), args)?;
    }
    Ok(())
}

/// Of what is no run (a comparison) there is a summary in words.
pub fn write_text(text: &str, args: &HandOutArgs) -> Result<(), Fault> {
    check(args)?;
    refuse_figures(args)?;
    if args.summary_md.is_some() || args.step_summary {
        markdown(&format!("{}{text}", export::MARKDOWN_MARK), args)?;
    }
    Ok(())
}

/// Points and metrics are of runs.
pub fn refuse_figures(args: &HandOutArgs) -> Result<(), Fault> {
    let asked = [("--influx", args.influx.is_some()), ("--bmf", args.bmf.is_some())];
    match asked.iter().find(|(_, asked)| *asked) {
        Some((flag, _)) => Err(Fault::input(
            format!("{flag} is for the figures of runs, and this command has none of its own"),
            format!("Write those of a run: plimsoll report RUN {flag} ..."),
        )),
        None => Ok(()),
    }
}

fn markdown(text: &str, args: &HandOutArgs) -> Result<(), Fault> {
    if let Some(file) = &args.summary_md {
        out_file::write(file, text.as_bytes())?;
    }
    if args.step_summary {
        let file = step_summary()?;
        let add = || File::options().append(true).create(true).open(&file)?.write_all(text.as_bytes());
        add().map_err(|e| out_file::cannot(&file, &e.to_string()))?;
    }
    Ok(())
}

/// What is there is added to, and never replaced: other steps of the job write to it, too.
fn step_summary() -> Result<PathBuf, Fault> {
    let Some(file) = std::env::var_os(STEP_SUMMARY).filter(|f| !f.is_empty()).map(PathBuf::from) else {
        return Err(Fault::input(
            format!("--step-summary: {STEP_SUMMARY} is not set, so there is no page to add to"),
            "Use it in a job of GitHub Actions; elsewhere write a file with --summary-md FILE.",
        ));
    };
    match std::fs::metadata(&file) {
        Ok(meta) if !meta.is_file() => Err(out_file::cannot(&file, "it is no regular file")),
        _ => Ok(file),
    }
}

fn is_url(place: &str) -> bool {
    place.contains("://")
}

fn influx(dirs: &[RunDir], reports: &[RunReport], place: &str, ca_file: Option<&str>) -> Result<(), Fault> {
    let mut points = String::new();
    for (dir, report) in dirs.iter().zip(reports) {
        points.push_str(&points_of(dir, report)?);
    }
    if !is_url(place) {
        return out_file::write(Path::new(place), format!("{INFLUX_MARK}{points}").as_bytes());
    }
    let token = std::env::var(INFLUX_TOKEN).ok().filter(|t| !t.is_empty());
    let written = InfluxUrl::parse(place)?.post(&points, token.as_deref(), ca_file)?;
    output::tell(format_args!("plimsoll: {} written to InfluxDB", counted(written, "point")));
    Ok(())
}

/// Without a time of the wall clock a point has no place in a database of times.
pub fn points_of(dir: &RunDir, report: &RunReport) -> Result<String, Fault> {
    let started = &report.summary.environment.started_at;
    let started_ns =
        started.parse::<jiff::Timestamp>().ok().and_then(|t| i64::try_from(t.as_nanosecond()).ok());
    let Some(started_ns) = started_ns else {
        return Err(Fault::input(
            format!("run {} does not say when it began, and points need a time", report.summary.id),
            "Leave it out; imported figures often have no time.",
        ));
    };
    let data = report.series.as_ref().map(|_| dir.load(&LoadOptions::default())).transpose()?;
    let buckets = export::line_buckets(dir, report)?;
    Ok(export::influx(report, data.as_ref(), &buckets, started_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_said_before_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("theirs.md");
        std::fs::write(&theirs, "a letter").unwrap();
        let ours = dir.path().join("ours.md");
        std::fs::write(&ours, export::MARKDOWN_MARK).unwrap();
        let told = |args: HandOutArgs| check(&args).map_err(|f| f.to_string());
        assert!(told(HandOutArgs { summary_md: Some(ours), ..Default::default() }).is_ok());
        let refused = [
            HandOutArgs { summary_md: Some(theirs.clone()), ..Default::default() },
            HandOutArgs { bmf: Some(theirs.clone()), ..Default::default() },
            HandOutArgs { influx: Some(theirs.display().to_string()), ..Default::default() },
            HandOutArgs { influx: Some("http://h:8086/write?db=x&p=geheim".into()), ..Default::default() },
        ];
        for args in refused {
            let why = told(args.clone()).unwrap_err();
            assert!(why.contains("fix: ") && !why.contains("geheim"), "{args:?}: {why}");
        }
        assert_eq!(std::fs::read_to_string(theirs).unwrap(), "a letter");
    }
}
