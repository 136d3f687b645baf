//! Which of the stored runs are meant: flags of `runs list` and `runs export`.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use plimsoll_index::{IndexedRun, RunFilter, RunIndex, RunStanding};
use plimsoll_model::OpKind;
use plimsoll_model::units::parse_duration;

use crate::fault::Fault;
use crate::{output, runs_dir};

const FILTER: &str = "Which runs";

#[derive(Debug, Clone, Args)]
pub struct FilterArgs {
    /// Only runs with this label; may be repeated, and all must hold
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label, help_heading = FILTER)]
    pub labels: Vec<(String, String)>,
    /// Only runs with a line of this op: get, put, read, write, total, ...
    #[arg(long, value_name = "OP,...", value_delimiter = ',', value_parser = op, help_heading = FILTER)]
    pub op: Vec<String>,
    /// Only runs whose target has this in its name, kind, endpoint, bucket or path
    #[arg(long, value_name = "TEXT", help_heading = FILTER)]
    pub target: Vec<String>,
    /// Only runs that stand so: valid, partly, invalid, running, killed or unjudged
    #[arg(long, value_name = "HOW,...", value_delimiter = ',', help_heading = FILTER)]
    pub validity: Vec<RunStanding>,
    /// Only runs begun so long ago at most, or since a day or time (UTC, as in the list): 7d, 2026-11-01, 2026-11-01T08:00
    #[arg(long, value_name = "WHEN", value_parser = moment, help_heading = FILTER)]
    pub since: Option<Timestamp>,
    /// Only runs begun before that
    #[arg(long, value_name = "WHEN", value_parser = moment, help_heading = FILTER)]
    pub until: Option<Timestamp>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

impl FilterArgs {
    pub fn filter(&self) -> RunFilter {
        RunFilter {
            labels: self.labels.clone(),
            ops: self.op.clone(),
            targets: self.target.clone(),
            standings: self.validity.clone(),
            since_us: self.since.map(Timestamp::as_microsecond),
            until_us: self.until.map(Timestamp::as_microsecond),
        }
    }

    pub fn is_all(&self) -> bool {
        self.filter() == RunFilter::default()
    }

    /// The runs that are meant, oldest first.
    pub fn runs(&self) -> Result<Vec<IndexedRun>, Fault> {
        found(&runs_dir::root(self.runs_dir.as_deref()), &self.filter())
    }
}

/// Runs by the index, which is brought up to date before.
pub fn found(root: &Path, filter: &RunFilter) -> Result<Vec<IndexedRun>, Fault> {
    let broken = |e: plimsoll_index::IndexError| {
        Fault::input(
            e.to_string(),
            "Check path, permissions and free space; the index is made anew from the runs.",
        )
    };
    let mut index = RunIndex::open(root).map_err(broken)?;
    index.refresh().map_err(broken)?;
    if let Some(note) = index.note() {
        output::tell(format_args!("plimsoll: every run was read anew: the index {note}"));
    }
    index.runs(filter).map_err(broken)
}

fn label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
    let (name, value) = pair.ok_or("a label is written name=value, for example tier=standard")?;
    Ok((name.trim().into(), value.trim().into()))
}

fn op(text: &str) -> Result<String, String> {
    let known = || OpKind::ALL.iter().map(|k| k.name()).collect::<Vec<_>>().join(", ");
    match OpKind::parse(text) {
        None if text != "total" => Err(format!("that is no op; there are total, {}", known())),
        _ => Ok(text.to_owned()),
    }
}

/// A span back from now, a day (its beginning), or a time. Both are UTC where they say nothing else: so are the times of a list, and those
/// of the page's filter.
fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(back) = parse_duration(text) {
        return Timestamp::now().checked_sub(back).map_err(|e| e.to_string());
    }
    let utc = |at: jiff::civil::DateTime| at.to_zoned(jiff::tz::TimeZone::UTC).map(|z| z.timestamp());
    text.parse::<Timestamp>().or_else(|_| text.parse::<jiff::civil::DateTime>().and_then(utc)).map_err(|_| {
        "write how long ago (7d, 12h), a day (2026-11-01) or a time (2026-11-01T08:00)".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_span_back_a_day_or_a_time() {
        let week = Timestamp::now().as_second() - moment("7d").unwrap().as_second();
        assert!((7 * 86_400 - 5..=7 * 86_400 + 5).contains(&week), "{week}");
        assert_eq!(moment("2026-11-01T08:00:00Z").unwrap().to_string(), "2026-11-01T08:00:00Z");
        // As the list dates its runs, wherever the machine is.
        assert_eq!(moment("2026-11-01").unwrap().to_string(), "2026-11-01T00:00:00Z");
        assert!(moment("2026-11-01").unwrap() < moment("2026-11-01T08:00").unwrap());
        for bad in ["yesterday", "7", "", "2026-13-01"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
        assert!(op("get").is_ok() && op("total").is_ok() && op("gett").is_err());
        assert!(label("tier=").is_ok() && label("=x").is_err() && label("x").is_err());
    }
}
