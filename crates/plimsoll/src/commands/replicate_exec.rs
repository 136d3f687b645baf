//! What `plimsoll replicate` does: find the campaign and what was published, measure, compare.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_campaign::{
    CampaignEnd, CampaignFile, Campaigned, FILL_IN, Published, PublishedAs, TEMPLATES, borrowed_keys,
    published_result, replication, template,
};
use plimsoll_model::text::clean;
use plimsoll_publish::site::SITE_MARK;

use super::campaign::{CampaignArgs, CampaignForm};
use super::campaign_exec::{
    allowed, ended, measure, over_the_fleet_before, possible, read_from, taken_up, tell_plan,
};
use super::campaign_money as money;
use super::campaign_place;
use super::plan_file::read_text;
use super::replicate::ReplicateCommand;
use super::replicate_words as words;
use crate::fault::{Exit, Fault};
use crate::output;

/// Where a campaign comes from.
enum Original {
    Template,
    Site(PathBuf),
    File(PathBuf),
}

pub fn replicate(a: &ReplicateCommand) -> Result<Exit, Fault> {
    let (original, text) = original(a)?;
    let file = CampaignFile::from_toml(&text)?;
    if let (Original::Site(_), Some(s)) = (&original, file.subjects.iter().find(|s| s.is_brought())) {
        return Err(Fault::input(
            clean(&format!(
                "subject {}: its runs were made elsewhere, and nothing would be measured",
                s.name
            )),
            "Give it a target of yours in a copy of the site's campaign.toml, and replicate that with --published SITE.",
        ));
    }
    let published = published(a, &original, &file)?;
    let path = match (&original, &a.output) {
        (Original::File(path), None) => path.clone(),
        (_, Some(path)) => path.clone(),
        (_, None) => PathBuf::from(format!("{}.toml", file.name)),
    };
    let form = &a.with.form;
    let form = CampaignForm {
        runs_dir: campaign_place::runs_of(form.runs_dir.as_ref(), &path, &file.name),
        ..form.clone()
    };
    let a = &ReplicateCommand { with: CampaignArgs { form, ..a.with.clone() }, ..a.clone() };
    let c = priced(a, read_from(&text, &path, Some(&a.with), &a.with.form)?, &original, &path)?;
    others(&published, &c)?;
    let (end, state) = if c.dir.is_begun() && c.state.to_go() == 0 && !a.dry_run {
        (CampaignEnd::Complete, c.state.clone())
    } else {
        let keys = if matches!(original, Original::Site(_)) { borrowed_keys(&c.file) } else { Vec::new() };
        let is_begun = c.dir.is_begun() && !a.dry_run;
        if !is_begun {
            tell_plan(&c, a.dry_run, &a.with)?;
        }
        tell_keys(&keys, a)?;
        if a.dry_run {
            possible(&c)?;
            return Ok(Exit::Valid);
        }
        if is_begun {
            over_the_fleet_before(&c, false)?;
            taken_up(&c, &text, false, &a.with)?;
        } else {
            allowed(&c.file, &a.with)?;
            possible(&c)?;
        }
        keep(&path, &text, &original)?;
        measure(&c, &text, &path, &a.with, is_begun)?
    };
    let result = plimsoll_campaign::result(&c.file, &c.cells, &state);
    let compared = replication(&published, &result, (&c.cells, &state), a.same_hardware);
    output::print(&words::replication(&compared, &a.with.form))?;
    ended(&end, &result, &path)
}

/// What it costs is paid by whoever replicates: prices and a budget that came with a site are not theirs.
fn priced(
    a: &ReplicateCommand,
    mut c: Campaigned,
    original: &Original,
    path: &Path,
) -> Result<Campaigned, Fault> {
    if matches!(original, Original::Site(_)) && (c.file.prices.is_some() || c.file.budget.cost.is_some()) {
        (c.file.prices, c.file.budget.cost) = (None, None);
        if a.with.prices.is_none() {
            output::tell(format_args!(
                "plimsoll: the site's prices and its budget of money are left out: give yours with --prices and --budget-cost"
            ));
        }
    }
    money::lay_over(&mut c, Some(&a.with), path.parent().unwrap_or(Path::new(".")))?;
    Ok(c)
}

/// The campaign's text, and where it is from. A template's name comes before a file's of the same: that one is `./NAME`.
fn original(a: &ReplicateCommand) -> Result<(Original, String), Fault> {
    if let Some(text) = template(&a.what, a.embedded) {
        if text.lines().any(|l| !l.trim_start().starts_with('#') && l.contains(FILL_IN)) {
            return Err(Fault::input(
                format!("template {}: only you know the subjects that it is to measure", a.what),
                format!(
                    "Add --embedded for one that runs on this machine; or: plimsoll campaign new {0} -o {0}.toml, fill it in, and plimsoll replicate {0}.toml",
                    a.what
                ),
            ));
        }
        return Ok((Original::Template, text.to_owned()));
    }
    if a.embedded {
        return Err(Fault::input("--embedded: it is of a template", format!("Name one: {}.", names())));
    }
    let path = PathBuf::from(&a.what);
    if path.is_dir() {
        of_single_runs(&path)?;
        let text = text_of_site(&path.join("campaign.toml"), "the site's campaign").map_err(|f| Fault {
            remedy: "Give a folder made by `plimsoll publish`, with campaign.toml in it.".into(),
            ..f
        })?;
        return Ok((Original::Site(path), text));
    }
    if !path.exists() {
        return Err(Fault::input(
            clean(&format!("{}: no such file, folder or template", a.what)),
            format!("Give a campaign's file, a folder made by `plimsoll publish`, or one of {}.", names()),
        ));
    }
    let text = read_text(&path, "the campaign")?;
    // Named by its file, it is a stranger's all the same.
    let beside = path.parent().filter(|p| [SITE_MARK, "data/result.json"].iter().any(|f| p.join(f).exists()));
    Ok((beside.map_or_else(|| Original::File(path.clone()), |site| Original::Site(site.to_owned())), text))
}

/// A site of single runs has their plans, and no campaign that could be held against it.
fn of_single_runs(site: &Path) -> Result<(), Fault> {
    let plans = site.join("plans");
    if site.join("campaign.toml").exists() || !plans.is_dir() {
        return Ok(());
    }
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(&plans).into_iter().flatten().flatten().map(|e| e.path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    all.sort();
    let Some(first) = all.first() else { return Ok(()) };
    let more = match all.len() {
        1 => String::new(),
        n => format!(" ({} more are beside it)", n - 1),
    };
    Err(Fault::input(
        clean(&format!(
            "{}: it was published from single runs, and has no campaign to be measured again",
            site.display()
        )),
        clean(&format!(
            "Its plans can be: look at one with `plimsoll run {0} --dry-run`, measure it with `plimsoll run {0}`{more}. What was published of \
             each is in {1}; two runs that are here are held against each other by `plimsoll compare`.",
            first.display(),
            site.join("index.html").display()
        )),
    ))
}

/// Of a folder by somebody else: a pipe in it would be waited for.
fn text_of_site(path: &Path, what: &str) -> Result<String, Fault> {
    if path.metadata().is_ok_and(|m| !m.is_file()) {
        return Err(Fault::input(
            clean(&format!("{}: it is no plain file", path.display())),
            "Ask who made the folder.",
        ));
    }
    read_text(path, what)
}

fn names() -> String {
    TEMPLATES.map(|t| t.0).join(", ")
}

/// What was published: named, of the site, or in the campaign's file.
fn published(a: &ReplicateCommand, original: &Original, file: &CampaignFile) -> Result<PublishedAs, Fault> {
    match (&a.published, original) {
        (Some(path), _) if path.is_dir() => of_site(path),
        (Some(path), _) => {
            let text = read_text(path, "what was published")?;
            // A file of figures, or a campaign that has them.
            let figures = match Published::from_toml(&text) {
                Ok(p) => Ok(p),
                Err(e) => CampaignFile::from_toml(&text).ok().and_then(|c| c.published).ok_or(e),
            };
            let at = |e: plimsoll_campaign::CampaignError| {
                let mut fault = Fault::from(e);
                fault.what = format!("{}: {}", path.display(), fault.what);
                fault
            };
            figures.map(|p| PublishedAs::Figures(Box::new(p))).map_err(at)
        }
        (None, Original::Site(path)) => of_site(path),
        (None, _) => file.published.clone().map(|p| PublishedAs::Figures(Box::new(p))).ok_or_else(|| {
            Fault::input(
                format!("campaign '{}' names no published figures", file.name),
                "Give them with --published FILE|SITE, or write a table [published] into the file.",
            )
        }),
    }
}

fn of_site(site: &Path) -> Result<PublishedAs, Fault> {
    let at = site.join("data").join("result.json");
    let text = text_of_site(&at, "the site's result").map_err(|f| Fault {
        remedy: "Give a folder made by `plimsoll publish`, with data/result.json in it.".into(),
        ..f
    })?;
    let read = published_result(&text).map_err(|e| {
        Fault::input(
            clean(&format!("{}: {e}", at.display())),
            "Use the plimsoll that made the site, or a newer one.",
        )
    })?;
    Ok(PublishedAs::Campaign(Box::new(read)))
}

/// A site of this very campaign, from these very runs, would be held against itself.
fn others(published: &PublishedAs, c: &Campaigned) -> Result<(), Fault> {
    let PublishedAs::Campaign(theirs) = published else { return Ok(()) };
    let ours: Vec<&String> = c.state.cells.iter().flat_map(|s| &s.runs).map(|r| &r.run).collect();
    match theirs.rows.iter().flat_map(|r| &r.runs).find(|run| ours.contains(run)) {
        None => Ok(()),
        Some(run) => Err(Fault::input(
            clean(&format!(
                "campaign '{}' of {} is what the site was made from (run {run})",
                c.file.name,
                c.runs.display()
            )),
            "Keep the runs of the replication elsewhere: --runs-dir DIR. Or give a copy of the campaign another name.",
        )),
    }
}

/// Keys are lent to a stranger's file only by whoever has seen to whom.
fn tell_keys(keys: &[String], a: &ReplicateCommand) -> Result<(), Fault> {
    if keys.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = keys.iter().map(|k| format!("    {}\n", clean(k))).collect();
    let text = format!("  your credentials would be used, only with --allow-hooks:\n{}", lines.concat());
    if a.dry_run {
        return output::print(&text);
    }
    output::tell_whole(&text);
    if a.with.allow_hooks {
        return Ok(());
    }
    Err(Fault::input(
        "the site's campaign uses credentials of yours (shown above)",
        "Look at them; if they are what you want, add --allow-hooks. Or give a campaign's file of your own, with --published SITE.",
    ))
}

/// The file that is measured, so that it can be looked at, and gone on with. One that is there is never overwritten.
fn keep(path: &Path, text: &str, original: &Original) -> Result<(), Fault> {
    if matches!(original, Original::File(p) if p == path) {
        return Ok(());
    }
    let cannot = |e: std::io::Error| {
        let remedy = "Choose another with -o: one that is there is never overwritten.";
        Fault::input(format!("{} cannot be written: {e}", path.display()), remedy)
    };
    match std::fs::File::create_new(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map_err(cannot),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            if read_text(path, "the campaign")? == text {
                return Ok(());
            }
            Err(Fault::input(
                format!("{} is there, and is another campaign, or this one edited", path.display()),
                format!(
                    "Replicate that one: plimsoll replicate {0}; or choose another name with -o.",
                    path.display()
                ),
            ))
        }
        Err(e) => Err(cannot(e)),
    }
}
