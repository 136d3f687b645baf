//! elbencho's `--csvfile` and `--jsonfile`. Both grow with each phase of each run: rows of one command are one run.
//!
//! Figures are those of "last done": all of the work over the time of the slowest thread. With `rwmix` the main columns are the
//! writes, and the reads have columns of their own.

mod phase;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use plimsoll_model::summary::WorkloadSummary;

use self::phase::{ASKED, Phase};

use crate::document::JsonFile;
use crate::error::ImportError;
use crate::line::{latency, line, point, word};
use crate::rows::{RowKind, Rows};
use crate::source::ImportedRun;

/// Phases that are read: a file of a year of tests has fewer.
const MOST_PHASES: usize = 20_000;
/// Phases that a title names.
const IN_TITLE: usize = 4;
/// Of a command line.
const MOST_TEXT: usize = 2000;
const MIB: f64 = 1048576.0;
/// Columns without which a table says nothing.
const NEEDED: [&str; 4] = ["operation", "time ms [last]", "IOPS [last]", "MiB/s [last]"];

pub(crate) fn read_csv(reader: impl Read) -> Result<Vec<ImportedRun>, ImportError> {
    let mut rows = Rows::open(reader, b',')?;
    for needed in NEEDED {
        rows.needed(needed)?;
    }
    let mut columns = asked_of(&rows);
    let (mut runs, mut phases) = (Runs::default(), 0);
    while let Some(kind) = rows.next_or_head(&NEEDED)? {
        // A head again: a later version appended to the file, and its columns may be others.
        if kind == RowKind::Head {
            columns = asked_of(&rows);
            continue;
        }
        phases += 1;
        if phases > MOST_PHASES {
            return Err(ImportError::at(
                rows.place(),
                format!("there are more than {MOST_PHASES} phases"),
                "Split the file.",
            ));
        }
        let fields = columns.iter().map(|(name, at)| (*name, rows.field(*at).to_owned())).collect();
        runs.add(&Phase { fields, exact_bytes: false }, "csv")?;
    }
    Ok(runs.finish())
}

/// Columns that are read, and where they stand.
fn asked_of<R: Read>(rows: &Rows<R>) -> Vec<(&'static str, usize)> {
    ASKED.iter().filter_map(|name| Some((*name, rows.column(name)?))).collect()
}

pub(crate) fn read_json(reader: impl Read) -> Result<Vec<ImportedRun>, ImportError> {
    let (mut runs, mut phases) = (Runs::default(), 0);
    JsonFile::read(reader)?.each(|p: Phase| {
        phases += 1;
        if phases > MOST_PHASES {
            return Err(ImportError::new(
                format!("there are more than {MOST_PHASES} phases"),
                "Split the file.",
            ));
        }
        runs.add(&p, "json")
    })?;
    Ok(runs.finish())
}

/// Phases of one command that follow each other, and do not repeat a phase, are one run.
#[derive(Default)]
struct Runs {
    done: Vec<ImportedRun>,
    open: Option<OpenRun>,
}

/// The run that the next phase may belong to.
struct OpenRun {
    command: String,
    phases: BTreeSet<String>,
    /// The first of them, for its title.
    first: Vec<String>,
    run: ImportedRun,
}

impl OpenRun {
    /// It begins with this phase.
    fn new(p: &Phase, version: &str, command: &str, form: &str) -> Self {
        let said: String =
            super::warp::without_keys(&command.replace('"', "")).chars().take(MOST_TEXT).collect();
        let run = ImportedRun {
            tool_version: word(version),
            form: form.to_owned(),
            started_at: started_at(p.text(&["ISO date", "iso_start_date"])),
            facts: BTreeMap::from([("command of elbencho".to_owned(), said)]),
            ..ImportedRun::default()
        };
        Self { command: command.to_owned(), phases: BTreeSet::new(), first: Vec::new(), run }
    }

    fn finish(self) -> ImportedRun {
        let more = match self.phases.len() - self.first.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        ImportedRun { title: format!("elbencho: {}{more}", self.first.join(", ")), ..self.run }
    }
}

impl Runs {
    fn add(&mut self, p: &Phase, form: &str) -> Result<(), ImportError> {
        let version = p.text(&["version", "config.version"]).trim_start_matches('v');
        if !version.starts_with("3.") {
            let found = format!("elbencho '{}'", word(version));
            return Err(ImportError::version(&found, "those of elbencho 3"));
        }
        let command = p.text(&["command", "config.command"]);
        let name = p.text(&["operation", "phase_type"]);
        let short = word(name);
        let goes_on = self.open.as_ref().is_some_and(|o| o.command == command && !o.phases.contains(&short));
        if !goes_on {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| OpenRun::new(p, version, command, form));
        open.run.lines.extend(lines(p, name));
        if open.first.len() < IN_TITLE {
            open.first.push(short.clone());
        }
        open.phases.insert(short);
        Ok(())
    }

    fn close(&mut self) {
        self.done.extend(self.open.take().map(OpenRun::finish));
    }

    fn finish(mut self) -> Vec<ImportedRun> {
        self.close();
        self.done
    }
}

fn started_at(text: &str) -> String {
    let plain = text.trim();
    let of = plain.parse::<jiff::Timestamp>();
    // "+0200" is no offset of RFC 3339.
    let zoned = || jiff::Timestamp::strptime("%Y-%m-%dT%H:%M:%S%.f%z", plain);
    of.or_else(|_| zoned()).map(|t| t.to_string()).unwrap_or_default()
}

/// The line of a phase, and with rwmix one of its reads.
fn lines(p: &Phase, name: &str) -> Vec<WorkloadSummary> {
    let reads = side(p, name, "rwmix read ", ".rwmix_read");
    let mut main = side(p, name, "", "");
    if let (Some(w), Some(_)) = (&mut main, &reads) {
        w.load = "rw".into();
    }
    let mut out: Vec<WorkloadSummary> = main.into_iter().collect();
    out.extend(reads.map(|mut w| {
        (w.op, w.load) = ("read".into(), "rw".into());
        w
    }));
    out
}

/// `csv` goes before a column's name, and `json` behind the path of a subtree.
fn side(p: &Phase, name: &str, csv: &str, json: &str) -> Option<WorkloadSummary> {
    let find = |column: &str, of_done: &str| {
        p.number(&[&format!("{csv}{column} [last]"), &format!("last_done{json}.{of_done}")])
    };
    let seconds = p.number(&["time ms [last]", "last_done.elapsed_time_ms"])? / 1000.0;
    let (ios, entries) = (find("IOPS", "iops"), find("entries/s", "entries/s"));
    let bytes = match p.exact_bytes {
        true => find("-", "bytes/s"),
        false => find("MiB/s", "-").map(|v| v * MIB),
    };
    // A phase with I/O is counted by its I/O; others (deletion, stat) by their entries.
    let rate = ios.or(entries)?;
    let hosts = p.whole(&["hosts", "config.hosts"]).max(1);
    let threads = p.whole(&["threads", "config.threads"]).max(1);
    let depth = p.whole(&["IO depth", "io depth", "iodepth", "config.io_depth"]).max(1);
    let block = p.number(&["block size", "block size [bytes]", "config.block_size"]).unwrap_or(0.0) as u64;
    let size = if ios.is_some() { block } else { 0 };
    let in_flight = threads.saturating_mul(hosts).saturating_mul(if ios.is_some() { depth } else { 1 });
    let mut w = line(&word(name).to_lowercase(), op(name), size, in_flight, seconds);
    w.load = load(p, name);
    w.ops_per_s = point(rate);
    w.bytes_per_s = bytes.filter(|b| *b > 0.0).and_then(point);
    w.attempts_per_s = rate;
    // Times are whole milliseconds; what was moved is told exactly in JSON, and its I/Os are as many as its rate is of that of bytes.
    let moved =
        find("-", "bytes").zip(bytes).filter(|(_, b)| *b > 0.0).map(|(all, b)| (all * rate / b).round());
    let done = match ios {
        Some(_) => moved,
        None => find("entries", "entries"),
    }
    .unwrap_or(rate * seconds);
    w.outcomes.insert("ok".into(), done as u64);
    let kind = if ios.is_some() { ("IO", "IO") } else { ("Ent", "entries") };
    let time = |what: &str| {
        let us = p.number(&[
            &format!("{csv}{} lat us [{what}]", kind.0),
            &format!("last_done.latency.{}{json}.{what}_us", kind.1),
        ]);
        us.map(|us| us * 1000.0)
    };
    if let (Some(min), Some(avg), Some(max)) = (time("min"), time("avg"), time("max")) {
        w.latency_ns.response = latency(done as u64, avg, (min, max), |_| None);
        w.latency_ns.service.clone_from(&w.latency_ns.response);
    }
    if !p.exact_bytes {
        w.notes.push("elbencho writes whole MiB/s: small rates of bytes are rounded down".into());
    }
    if !is_direct(p) && ios.is_some() {
        w.notes.push("not direct I/O: the page cache may have answered".into());
    }
    Some(w)
}

fn is_direct(p: &Phase) -> bool {
    let said = p.text(&["direct IO", "directIO", "direct", "config.direct_io"]);
    ["1", "true"].contains(&said) || p.text(&["path type", "config.path_type"]).contains("s3")
}

/// elbencho appends to the name of a phase what it does beside it: `RWMIX90` (90 % reads) and `MIX-T2` (two threads that read) are
/// writes with reads among them, `READ+s` a read with a stat of each file.
fn op(phase: &str) -> &'static str {
    let phase = phase.to_lowercase();
    let bare = phase.split('+').next().unwrap_or_default();
    let numbered = |name: &str| {
        bare.strip_prefix(name).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    match bare {
        _ if numbered("rwmix") || numbered("mix-t") => "write",
        "write" => "write",
        "read" => "read",
        "rmfiles" | "rmobjects" | "rmobj" => "delete",
        "stat" | "headobj" | "statobj" => "stat",
        "trim" => "trim",
        _ => "null",
    }
}

fn load(p: &Phase, phase: &str) -> String {
    let random = ["1", "true"].contains(&p.text(&["random", "rand", "config.random_offsets"]));
    match (op(phase), random) {
        ("read", true) => "randread".into(),
        ("write", true) => "randwrite".into(),
        ("null", _) => word(phase).to_lowercase(),
        (op, _) => op.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "ISO date,operation,time ms [last],IOPS [last],MiB/s [last],version,command\n";

    fn rows(phases: impl Iterator<Item = (String, String)>) -> String {
        let row = |(op, command): (String, String)| {
            format!("2026-11-23T10:00:00.123+0000,{op},10000,51200,200,3.1-2,{command}\n")
        };
        HEAD.to_owned() + &phases.map(row).collect::<String>()
    }

    /// Whatever its first column is, and with others than before.
    #[test]
    fn rows_behind_another_head_are_read_by_that() {
        let first = rows([("WRITE".to_owned(), "c".to_owned())].into_iter());
        let second = "operation,hosts,MiB/s [last],IOPS [last],version,command,time ms [last]\nREAD,1,100,25600,3.2-1,c,5000\n";
        let runs = read_csv((first.clone() + HEAD + second).as_bytes()).unwrap();
        let figures: Vec<(&str, f64, f64)> = runs
            .iter()
            .flat_map(|r| &r.lines)
            .map(|w| (w.op.as_str(), w.ops_per_s.unwrap().value, w.bytes_per_s.unwrap().value / MIB))
            .collect();
        assert_eq!(figures, [("write", 51200.0, 200.0), ("read", 25600.0, 100.0)]);
        let cut = read_csv((first + second + "READ,1\n").as_bytes()).unwrap_err();
        assert!(cut.to_string().contains("cut off"), "{cut}");
    }

    #[test]
    fn a_run_of_many_phases_has_a_short_title() {
        let many = rows((0..3000).map(|i| (format!("P{i}"), "c".to_owned())));
        let run = &read_csv(many.as_bytes()).unwrap()[0];
        assert_eq!((run.lines.len(), run.title.as_str()), (3000, "elbencho: P0, P1, P2, P3 and 2996 more"));
        // What is repeated begins the next run, whatever stands between.
        let twice = rows(["A", "B", "A", "C"].map(|op| (op.to_owned(), "c".to_owned())).into_iter());
        let titles: Vec<String> = read_csv(twice.as_bytes()).unwrap().into_iter().map(|r| r.title).collect();
        assert_eq!(titles, ["elbencho: A, B", "elbencho: A, C"]);
    }
}
