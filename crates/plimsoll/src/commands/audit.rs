//! `plimsoll audit`: what is inconsistent in a table that somebody else published.

use plimsoll_model::count::counted;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_audit::{AuditError, AuditFacts, AuditReport, PrintedTable};
use serde::Serialize;

use crate::fault::{Exit, Fault};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  plimsoll audit results.csv
  plimsoll audit post.md --map post.toml
  plimsoll audit claims.toml --json

The file is CSV or Markdown (all of its tables). Numbers may have thousands
separators, decimal commas, ~ or ranges; units stand in the header or in cells.
The map says what a table does not, and lists claims of the text:

  decimal = \",\"                         # only where the table cannot tell
  [columns]                             # roles and units by name of column
  \"Speed\" = { role = \"throughput\", unit = \"MB/s\" }
  \"Clients\" = { role = \"concurrency\" }
  [given]                               # what holds for every row
  concurrency = 16                      # [16, 64] if the text says both
  size = \"64 KiB\"
  nodes = 12
  [[cap]]                               # a published limit
  when = { Tier = \"Standard\" }          # table = \"...\" is a heading
  ops = \"800 /s\"
  throughput = \"600 MiB/s\"
  knee = \"786 KB\"                       # as published
  [[claim]]                             # a figure of the text
  says = \"391K GET of 64 KiB are 24.4 GB/s\"
  formula = \"'391K IOPS' * 64 KiB\"      # quoted: as printed, rounded
  printed = \"24.4 GB/s\"
  is = \"equal\"                          # or \"at most\", \"at least\"

{ROW: COLUMN} in a formula is a cell, rank{ROW: COLUMN} its place in the column,
1 for the least. [[traffic]], [[burst]] and [[cliff]]: see METHODOLOGY.md.

Exit codes: 0 nothing to remark; 4 remarks; 2 the input cannot be read, or
nothing in it can be checked.";

/// A table of more is no table that somebody published.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct AuditCommand {
    /// Table: .csv or .md; or .toml, for claims alone
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What the columns are, what holds for all rows, and claims (TOML)
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl From<AuditError> for Fault {
    fn from(e: AuditError) -> Self {
        Fault::input(e.to_string(), e.remedy)
    }
}

pub fn audit(c: &AuditCommand) -> Result<Exit, Fault> {
    let kind = Kind::of(&c.file)?;
    if kind == Kind::Claims && c.map.is_some() {
        return Err(Fault::input(
            format!("--map: {} is a map itself", c.file.display()),
            "Give the table first, and the map with --map.",
        ));
    }
    let text = read(&c.file)?;
    let named = |e: AuditError, file: &Path| Fault::input(format!("{}: {e}", file.display()), e.remedy);
    let tables: Vec<PrintedTable> = match kind {
        Kind::Csv => plimsoll_audit::read_csv(&text),
        Kind::Markdown => plimsoll_audit::read_markdown(&text),
        Kind::Claims => Ok(Vec::new()),
    }
    .map_err(|e| named(e, &c.file))?;
    let (map, facts) = match (kind, &c.map) {
        (Kind::Claims, _) => (Some(&c.file), text),
        (_, Some(map)) => (Some(map), read(map)?),
        _ => (None, String::new()),
    };
    let facts = AuditFacts::from_toml(&facts).map_err(|e| named(e, map.unwrap_or(&c.file)))?;
    let report = plimsoll_audit::audit(&tables, &facts).map_err(|e| named(e, &c.file))?;
    let said = if c.json { json(&c.file, &facts, &report)? } else { words(&c.file, &report) };
    output::print(&said)?;
    Ok(if report.remarks.is_empty() { Exit::Valid } else { Exit::ExpectationMissed })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Csv,
    Markdown,
    Claims,
}

impl Kind {
    fn of(file: &Path) -> Result<Self, Fault> {
        let end = file.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        match end.as_str() {
            "csv" | "tsv" | "txt" => Ok(Self::Csv),
            "md" | "markdown" => Ok(Self::Markdown),
            "toml" => Ok(Self::Claims),
            _ => Err(Fault::input(
                format!("{}: neither .csv, .md nor .toml", file.display()),
                "Save the table as CSV or Markdown, with that ending.",
            )),
        }
    }
}

fn read(file: &Path) -> Result<String, Fault> {
    let cannot =
        |why: String, remedy: &str| Fault::input(format!("{} cannot be read: {why}", file.display()), remedy);
    let mut bytes = Vec::new();
    let open = File::open(file).and_then(|f| f.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    open.map_err(|e| cannot(e.to_string(), "Name a file that is there."))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(cannot(
            format!("it is larger than {} MiB", MOST_BYTES >> 20),
            "Give the table that was published.",
        ));
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let line = e.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
        cannot(format!("line {line} is not UTF-8"), "Save it as UTF-8.")
    })
}

/// `--json`.
#[derive(Serialize)]
struct AuditDocument<'a> {
    schema: &'static str,
    file: String,
    source: Option<String>,
    #[serde(flatten)]
    report: &'a AuditReport,
}

fn json(file: &Path, facts: &AuditFacts, report: &AuditReport) -> Result<String, Fault> {
    let source = facts.source.as_ref().map(|s| format!("{} {}", s.title, s.url).trim().to_owned());
    let document =
        AuditDocument { schema: "plimsoll.audit/1", file: file.display().to_string(), source, report };
    serde_json::to_string_pretty(&document)
        .map(|t| t + "\n")
        .map_err(|e| Fault::bug(format!("the audit cannot be written: {e}")))
}

fn words(file: &Path, report: &AuditReport) -> String {
    let remarks = match report.remarks.len() {
        0 => "nothing to remark".to_owned(),
        n => counted(n, "remark"),
    };
    let mut out = format!(
        "{}: {}, {}: {remarks}\n",
        file.display(),
        counted(report.tables, "table"),
        counted(report.rows, "row")
    );
    for r in &report.remarks {
        let line = r.line.map(|l| format!("line {l}: ")).unwrap_or_default();
        out += &format!(
            "\n  {line}{} [{}]\n    printed   {}\n    expected  {}\n",
            r.row, r.rule, r.printed, r.expected
        );
        if !r.explanation.is_empty() {
            out += &format!("    perhaps   {}\n", r.explanation);
        }
    }
    let checks: Vec<String> =
        report.checks.iter().filter(|c| c.checked > 0).map(|c| format!("{} {}", c.rule, c.checked)).collect();
    out += &format!("\n  checked   {}\n", checks.join(", "));
    for note in &report.notes {
        out += &format!("  note      {note}\n");
    }
    out
}
