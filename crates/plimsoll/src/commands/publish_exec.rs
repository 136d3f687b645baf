//! What `plimsoll publish` does.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_campaign::{CampaignFile, read_campaign};
use plimsoll_model::count::counted;
use plimsoll_model::text::{clean, keep_secret};
use plimsoll_model::units::about_size;
use plimsoll_publish::site::{self, SiteError, SiteFile};
use plimsoll_publish::{
    HAS_CHARTS, Publication, PublishError, PublishOptions, publication, publication_of_runs,
};

use super::campaign_place;
use super::plan_file::read_text;
use super::publish::PublishCommand;
use super::publish_images::images;
use super::several;
use crate::fault::{Exit, Fault};
use crate::{output, runs_dir};

impl From<PublishError> for Fault {
    fn from(e: PublishError) -> Self {
        Fault::input(clean(&e.to_string()), e.remedy())
    }
}

impl From<SiteError> for Fault {
    fn from(e: SiteError) -> Self {
        Fault::input(e.to_string(), e.remedy())
    }
}

/// Keys that may be in the environment: wherever they stand, they do not leave.
const KEYS: [&str; 3] = ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"];

pub fn publish(c: &PublishCommand) -> Result<Exit, Fault> {
    for key in KEYS {
        std::env::var(key).iter().for_each(|value| keep_secret(value));
    }
    // Before runs are read and hashed for nothing.
    site::check(&c.output)?;
    let p = put_together(c)?;
    let mut files = p.files()?;
    let drawn = if c.images { Some(images(&files)) } else { None };
    if let Some(Ok(images)) = &drawn {
        files.extend(images.iter().cloned());
    }
    site::write(&c.output, &files, &p.copies())?;
    for run in p.runs.iter().filter(|r| r.gap.is_some()) {
        let why = run.gap.as_deref().unwrap_or_default();
        output::tell(format_args!(
            "plimsoll: run {} cannot be read, and has no hash: {}",
            clean(&run.run),
            clean(why)
        ));
    }
    if !HAS_CHARTS {
        output::tell(
            "plimsoll: this program was built without its web page: the publication has tables, and no charts",
        );
    }
    if let Some(Err(why)) = &drawn {
        output::tell(format_args!(
            "plimsoll: no image files: {why}; the pages draw their charts, and save them as SVG and PNG"
        ));
    }
    output::print(&told(c, &p, &files))?;
    Ok(Exit::Valid)
}

/// Of a campaign by its file, else of runs.
fn put_together(c: &PublishCommand) -> Result<Publication, Fault> {
    let exit_of = |s: &plimsoll_model::RunSummary| plimsoll_judge::exit_code(s, false);
    let options = PublishOptions {
        title: c.title.clone(),
        redact: c.redact.iter().map(|kind| (*kind).into()).collect(),
        with_runs: c.with_runs,
    };
    let is_file = |name: &String| Path::new(name).is_file() || name.ends_with(".toml");
    match c.what.as_slice() {
        [one] if is_file(one) => {
            let path = Path::new(one);
            let text = read_text(path, "the campaign")?;
            let beside = path.parent().unwrap_or(Path::new("."));
            let name = CampaignFile::from_toml(&text)?.name;
            let runs = campaign_place::runs_of(c.runs_dir.as_ref(), path, &name);
            let campaign = read_campaign(&text, beside, &runs_dir::root(runs.as_deref()), exit_of)?;
            Ok(publication(&campaign, &text, beside, &options)?)
        }
        names => {
            if let Some(file) = names.iter().find(|n| is_file(n)) {
                return Err(Fault::input(
                    format!("'{file}' is a file, and is given beside others"),
                    "Publish one campaign's file alone, or runs: their ids, directories or labels.",
                ));
            }
            let mut dirs = Vec::new();
            for name in names {
                dirs.extend(several::of_name(name, c.runs_dir.as_deref())?);
            }
            several::distinct(&dirs)?;
            Ok(publication_of_runs(&dirs, &options, exit_of)?)
        }
    }
}

/// What is there now, in a few lines.
fn told(c: &PublishCommand, p: &Publication, files: &[SiteFile]) -> String {
    let count = |folder: &str, end: &str| {
        files.iter().filter(|f| f.path.starts_with(folder) && f.path.ends_with(end)).count()
    };
    let pages = files.iter().filter(|f| f.path.ends_with(".html"));
    let largest = pages.clone().map(|f| f.content.len()).max().unwrap_or_default();
    let mut out = format!("{}\n", c.output.join("index.html").display());
    let _ = writeln!(out, "  {}", p.answer.lead);
    let _ = writeln!(
        out,
        "  {} (the largest {}), {}, {}{}",
        counted(pages.count(), "page"),
        about_size(largest as u64),
        counted(count("tables/", ".csv"), "table"),
        counted(if HAS_CHARTS { p.charts.count() } else { 0 }, "chart"),
        match count("images/", "") {
            0 => String::new(),
            n => format!(", {}", counted(n, "image")),
        }
    );
    let (with, all) = p.answer.cells;
    let runs = if p.has_runs { "with their directories" } else { "by their hashes" };
    let _ = writeln!(
        out,
        "  {}, {} void or missing; {}, {runs}",
        counted(all, "cell"),
        all - with,
        counted(p.runs.len(), "run")
    );
    let _ = match p.redacted.as_str() {
        "" => writeln!(
            out,
            "  nothing left out: hosts, endpoints, buckets and addresses are as they were (--redact)"
        ),
        names => writeln!(out, "  left out of all files: {names}"),
    };
    out
}
