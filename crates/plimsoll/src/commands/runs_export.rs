//! `runs export`: tables for notebooks and databases, points, metrics. Runs are read one by one: what is written does not wait in memory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use plimsoll_index::IndexedRun;
use plimsoll_report::export::{self, ExportTable, HeadKind, INFLUX_MARK};
use plimsoll_report::{RunReport, cleaned};
use plimsoll_setup::safety::place::remove_made;
use plimsoll_store::{LoadOptions, RunDir};

use super::runs::{ExportForm, ExportRunsArgs, ExportedWhat};
use super::several;
use crate::fault::{Exit, Fault};
use crate::{hand_out, out_file, output, plim, runs_dir};

pub fn export(a: &ExportRunsArgs) -> Result<Exit, Fault> {
    let dirs = dirs(a)?;
    let mut place = Place::open(a.out.as_deref().map(PathBuf::from))?;
    let written = match a.format {
        ExportForm::Csv | ExportForm::Jsonl => tables(a, &dirs, &mut place),
        ExportForm::Bmf => bmf(&dirs, &mut place),
        ExportForm::Influx => influx(&dirs, &mut place),
    };
    let rows = place.close(written)?;
    if let Some(file) = &a.out {
        output::tell(format_args!(
            "plimsoll: {rows} {} of {} run(s) in {}",
            words(a, rows),
            dirs.len(),
            file.display()
        ));
    }
    Ok(Exit::Valid)
}

fn words(a: &ExportRunsArgs, rows: usize) -> String {
    let of = match (a.format, a.what) {
        (ExportForm::Bmf | ExportForm::Influx, _) => "document",
        (_, ExportedWhat::Latency) => "bucket",
        (_, ExportedWhat::Runs) => "row",
        (_, ExportedWhat::Agents) => "agent",
        (_, ExportedWhat::Servers) => "resource",
        (_, ExportedWhat::Lines) => "line",
        (_, ExportedWhat::Slices) => "slice",
    };
    format!("{of}{}", if rows == 1 { "" } else { "s" })
}

/// Those that are named, or else those that the filters leave, oldest first.
fn dirs(a: &ExportRunsArgs) -> Result<Vec<RunDir>, Fault> {
    let root = a.filter.runs_dir.as_deref();
    if a.runs.is_empty() {
        return a.filter.runs()?.iter().map(|r| RunDir::open(&r.entry.path).map_err(Fault::from)).collect();
    }
    if !a.filter.is_all() {
        return Err(Fault::input(
            "runs are named, and filters are given, too",
            "Name the runs, or leave out their names and let the filters find them.",
        ));
    }
    let dirs = a.runs.iter().map(|r| plim::find(root, r)).collect::<Result<Vec<_>, _>>()?;
    several::distinct(&dirs)?;
    Ok(dirs)
}

/// What is known of a run, as of any in the index: a packed one is in none.
fn indexed(dirs: &[RunDir]) -> Vec<IndexedRun> {
    dirs.iter().map(IndexedRun::of).collect()
}

/// Names of all labels that the runs have.
pub fn labels_of(runs: &[IndexedRun]) -> BTreeSet<String> {
    runs.iter().flat_map(|r| r.entry.labels.keys().cloned()).collect()
}

/// A row for each run.
pub fn runs_table(runs: &[IndexedRun], labels: &BTreeSet<String>) -> ExportTable {
    let (text, number, flag) = (HeadKind::Text, HeadKind::Number, HeadKind::Flag);
    let fixed = [
        ("run", text),
        ("name", text),
        ("started_at", text),
        ("standing", text),
        ("answered", flag),
        ("mark", text),
        ("what", text),
        ("result", text),
        ("ops", text),
        ("imported", text),
        ("to_clean_up", number),
        ("stored_bytes", number),
        ("verdict", text),
    ];
    let heads = fixed.map(|(h, k)| (h.to_owned(), k)).into_iter();
    let mut table =
        ExportTable::new(heads.chain(labels.iter().map(|l| (format!("label:{l}"), text))).collect());
    for r in runs {
        let e = &r.entry;
        let mut row = vec![
            e.id.clone(),
            e.name.clone().unwrap_or_default(),
            e.started_at.clone(),
            r.standing.name().into(),
            r.answered.map_or(String::new(), |a| a.to_string()),
            r.mark.clone(),
            r.what.clone(),
            r.result.clone(),
            r.ops.join(" "),
            r.imported.clone().unwrap_or_default(),
            e.cleanup_due.to_string(),
            e.bytes.to_string(),
            e.verdict.clone().unwrap_or_default(),
        ];
        row.extend(labels.iter().map(|l| e.labels.get(l).cloned().unwrap_or_default()));
        table.push(row.iter().map(|c| plimsoll_model::text::clean(c).into_owned()).collect());
    }
    table
}

fn tables(a: &ExportRunsArgs, dirs: &[RunDir], place: &mut Place) -> Result<usize, Fault> {
    let runs = indexed(dirs);
    let labels = labels_of(&runs);
    let mut rows = 0;
    let mut heads = a.format == ExportForm::Csv;
    let mut add = |table: &ExportTable| {
        if std::mem::take(&mut heads) {
            place.write(&table.csv_heads())?;
        }
        rows += table.len();
        place.write(&if a.format == ExportForm::Csv { table.csv_rows() } else { table.json_lines() })
    };
    if dirs.is_empty() || a.what == ExportedWhat::Runs {
        // Of no run at all there are heads, so that whoever reads the file finds its columns.
        let empty = match a.what {
            ExportedWhat::Runs => runs_table(&runs, &labels),
            ExportedWhat::Agents => export::agents_table(&[]),
            ExportedWhat::Servers => export::servers_table(&[]),
            _ => export::lines_table(&[], &labels),
        };
        add(&empty)?;
        return Ok(rows);
    }
    for dir in dirs {
        let Some(table) = table_of(a.what, dir, &labels)? else { continue };
        add(&table)?;
    }
    Ok(rows)
}

/// `None`, with a word about it: the run has nothing of the kind.
fn table_of(
    what: ExportedWhat,
    dir: &RunDir,
    labels: &BTreeSet<String>,
) -> Result<Option<ExportTable>, Fault> {
    let without = |why: &dyn std::fmt::Display| {
        output::tell(format_args!("plimsoll: run {} is left out: {why}", dir.id()));
        Ok(None)
    };
    if let Err(e) = runs_dir::stored_result_judged(dir) {
        return without(&e.what);
    }
    let summary = match dir.summary() {
        Ok(summary) => summary,
        Err(e) => return without(&e),
    };
    match what {
        ExportedWhat::Lines => {
            return Ok(Some(export::lines_table(&[RunReport::of(cleaned(summary))], labels)));
        }
        ExportedWhat::Agents if summary.agents.is_empty() => return without(&"it was driven by one machine"),
        ExportedWhat::Agents => return Ok(Some(export::agents_table(&[RunReport::of(cleaned(summary))]))),
        ExportedWhat::Servers if summary.servers.is_none() => return without(&"no server was observed"),
        ExportedWhat::Servers => return Ok(Some(export::servers_table(&[RunReport::of(cleaned(summary))]))),
        ExportedWhat::Runs | ExportedWhat::Slices | ExportedWhat::Latency => {}
    }
    let report = plimsoll_report::read(dir, 1)?;
    if report.series.is_none() {
        return without(&report.gaps.join(" "));
    }
    if what == ExportedWhat::Latency {
        return Ok(Some(export::buckets_table(dir, &report)?));
    }
    Ok(Some(export::slices_table(&report, &dir.load(&LoadOptions::default())?)))
}

fn reports(dirs: &[RunDir]) -> Result<Vec<RunReport>, Fault> {
    dirs.iter().try_for_each(runs_dir::judged)?;
    Ok(dirs.iter().map(|d| plimsoll_report::read(d, 1)).collect::<Result<_, _>>()?)
}

fn bmf(dirs: &[RunDir], place: &mut Place) -> Result<usize, Fault> {
    let made = export::bmf(&reports(dirs)?);
    made.left_out.iter().for_each(|why| output::tell(format_args!("plimsoll: left out: {why}")));
    place.write(&made.json)?;
    Ok(1)
}

fn influx(dirs: &[RunDir], place: &mut Place) -> Result<usize, Fault> {
    place.write(INFLUX_MARK)?;
    for dir in dirs {
        runs_dir::judged(dir)?;
        place.write(&hand_out::points_of(dir, &plimsoll_report::read(dir, 1)?)?)?;
    }
    Ok(1)
}

/// Where it goes.
enum Place {
    Stdout,
    /// A file that was not there.
    New(PathBuf, File),
}

impl Place {
    fn open(file: Option<PathBuf>) -> Result<Self, Fault> {
        let Some(file) = file else { return Ok(Self::Stdout) };
        let open = File::create_new(&file).map_err(|e| out_file::cannot(&file, &e.to_string()))?;
        Ok(Self::New(file, open))
    }

    fn write(&mut self, text: &str) -> Result<(), Fault> {
        match self {
            Self::Stdout => output::print(text),
            Self::New(path, file) => {
                file.write_all(text.as_bytes()).map_err(|e| out_file::cannot(path, &e.to_string()))
            }
        }
    }

    /// A part of a table is none.
    fn close<T>(self, written: Result<T, Fault>) -> Result<T, Fault> {
        if let (Err(_), Self::New(path, file)) = (&written, &self) {
            let _ = remove_made(path, file);
        }
        written
    }
}
