//! What `plimsoll campaign` does.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_campaign::ledger::{LEDGER_FORMAT, file_entry, now, text_hash};
use plimsoll_campaign::{
    CampaignEnd, CampaignError, CampaignFile, CampaignLedger, CampaignResult, CampaignSession, CampaignState,
    Campaigned, FileDifference, LedgerEntry, LedgerError, LedgerSink as _, ReadError, end_left_hook,
    forecast, note_shown, read_campaign, template, unseen_dangers,
};
use plimsoll_model::count::{are, counted};
use plimsoll_model::credentials::{shown_command, toml_without_credentials};
use plimsoll_model::text::{LEFT_OUT, clean};

use super::campaign::{
    AxisTable, CampaignArgs, CampaignCommand, CampaignForm, NewCampaignArgs, ResumeCampaignArgs,
    RunCampaignArgs, StatusCampaignArgs,
};
use super::campaign_carrier::Carrier;
use super::campaign_disk;
use super::campaign_money as money;
use super::campaign_place;
use super::campaign_table::{has_axis, table};
use super::campaign_words as words;
use super::plan_file::read_text;
use crate::fault::{Exit, Fault};
use crate::{fleet_use, live, output, runs_dir, signals};

impl From<CampaignError> for Fault {
    fn from(e: CampaignError) -> Self {
        Fault::input(clean(&format!("{}: {}", e.place, e.problem)), e.remedy)
    }
}

impl From<LedgerError> for Fault {
    fn from(e: LedgerError) -> Self {
        Fault::input(e.to_string(), e.remedy())
    }
}

impl From<ReadError> for Fault {
    fn from(e: ReadError) -> Self {
        match e {
            ReadError::File(e) => e.into(),
            ReadError::Ledger(e) => e.into(),
            ReadError::Store(e) => e.into(),
        }
    }
}

pub fn campaign(c: &CampaignCommand) -> Result<Exit, Fault> {
    match c {
        CampaignCommand::New(a) => new(a),
        CampaignCommand::Run(a) => run(a),
        CampaignCommand::Status(a) => status(a),
        CampaignCommand::Resume(a) => resume(a),
    }
}

fn new(a: &NewCampaignArgs) -> Result<Exit, Fault> {
    let text = template(&a.template, a.embedded).expect("clap knows the templates");
    let Some(file) = &a.output else { return output::print(text).map(|()| Exit::Valid) };
    let cannot = |e: std::io::Error| {
        let remedy = "Choose another file: one that is there is never overwritten.";
        Fault::input(format!("{} cannot be written: {e}", file.display()), remedy)
    };
    let mut made = std::fs::File::create_new(file).map_err(cannot)?;
    made.write_all(text.as_bytes()).map_err(cannot)?;
    let next = match text
        .lines()
        .filter(|l| !l.starts_with('#') && l.contains(plimsoll_campaign::FILL_IN))
        .count()
    {
        0 => String::new(),
        n => format!("{n} lines say {}: write there what is yours; ", plimsoll_campaign::FILL_IN),
    };
    let name = file.display();
    output::tell(format_args!("plimsoll: {next}then: plimsoll campaign run {name} --dry-run"));
    Ok(Exit::Valid)
}

/// The file with the flags laid over it, and all that is known of it.
fn read(file: &Path, a: Option<&CampaignArgs>, form: &CampaignForm) -> Result<(String, Campaigned), Fault> {
    let text = read_text(file, "the campaign")?;
    let mut c = read_from(&text, file, a, form)?;
    money::lay_over(&mut c, a, file.parent().unwrap_or(Path::new(".")))?;
    Ok((text, c))
}

/// The same of a text that is, or will be, in that file; without what it costs.
pub(super) fn read_from(
    text: &str,
    file: &Path,
    a: Option<&CampaignArgs>,
    form: &CampaignForm,
) -> Result<Campaigned, Fault> {
    let beside = file.parent().unwrap_or(Path::new("."));
    let exit_of = |s: &plimsoll_model::RunSummary| plimsoll_judge::exit_code(s, false);
    let mut c = read_campaign(text, beside, &runs_dir::root(form.runs_dir.as_deref()), exit_of)?;
    if let Some(budget) = a.and_then(|a| a.budget) {
        c.file.budget.time = Some(budget);
    }
    if let Some(wait) = a.and_then(|a| a.wait_for_rest) {
        c.file.rest.wait = Some(wait);
    }
    campaign_disk::say_least(&mut c.cells);
    for run in &c.strangers {
        output::tell(format_args!(
            "plimsoll: run {} fits no cell of its subject, and is left out",
            clean(run)
        ));
    }
    Ok(c)
}

/// An axis that the campaign does not have is told before anything is measured.
fn known_axis(c: &Campaigned, axis: &AxisTable) -> Result<(), Fault> {
    let Some(by) = &axis.by else { return Ok(()) };
    has_axis(&c.result(), by).map_err(|has| {
        let what = format!("--by {}: the campaign has no such axis", clean(by));
        Fault::input(what, format!("Name one: {}.", clean(&has)))
    })
}

fn run(a: &RunCampaignArgs) -> Result<Exit, Fault> {
    let (text, c) = read(&a.file, Some(&a.with), &a.with.form)?;
    known_axis(&c, &a.axis)?;
    if !a.dry_run && c.dir.is_begun() {
        return Err(already(&c, &a.file));
    }
    tell_plan(&c, a.dry_run, &a.with)?;
    if a.dry_run {
        possible(&c)?;
        return Ok(Exit::Valid);
    }
    allowed(&c.file, &a.with)?;
    possible(&c)?;
    begin(&c, &text, &a.file, (&a.with, &a.axis), false)
}

fn resume(a: &ResumeCampaignArgs) -> Result<Exit, Fault> {
    let a = &ResumeCampaignArgs {
        with: CampaignArgs { form: found(&a.file, &a.with.form)?, ..a.with.clone() },
        ..a.clone()
    };
    let (text, c) = read(&a.file, Some(&a.with), &a.with.form)?;
    known_axis(&c, &a.axis)?;
    if !c.dir.is_begun() {
        let remedy = format!("Begin it with: plimsoll campaign run {}", a.file.display());
        return Err(Fault::input(format!("campaign '{}' was not begun here", c.file.name), remedy));
    }
    over_the_fleet_before(&c, a.here)?;
    taken_up(&c, &text, a.accept_changes, &a.with)?;
    begin(&c, &text, &a.file, (&a.with, &a.axis), true)
}

/// A command that only goes on goes on with the fleet that the one before it was given.
pub(super) fn over_the_fleet_before(c: &Campaigned, is_here: bool) -> Result<(), Fault> {
    if is_here {
        return match fleet_use::name() {
            None => Ok(()),
            Some(name) => Err(Fault::input(
                format!("--here is this machine alone, and fleet '{name}' is named"),
                "Give one of them (PLIMSOLL_FLEET names a fleet, too).",
            )),
        };
    }
    if let Some(name) = fleet_use::go_on_with(c.fleet_before()) {
        output::tell(format_args!(
            "plimsoll: over fleet '{}', as before (--here: on this machine alone)",
            clean(&name)
        ));
    }
    Ok(())
}

/// The form with the directory of runs in which the campaign of a file was begun, where no other is given.
fn found(file: &Path, form: &CampaignForm) -> Result<CampaignForm, Fault> {
    let name = CampaignFile::from_toml(&read_text(file, "the campaign")?)?.name;
    Ok(CampaignForm {
        runs_dir: campaign_place::runs_of(form.runs_dir.as_ref(), file, &name),
        ..form.clone()
    })
}

/// What stands between a campaign that was begun and its next run: an edited file, and what nobody has seen of it.
pub(super) fn taken_up(
    c: &Campaigned,
    text: &str,
    accept_changes: bool,
    a: &CampaignArgs,
) -> Result<(), Fault> {
    let changes = changes(c, text);
    let unseen = unseen_dangers(&c.dir, &c.entries, &c.file);
    if !changes.is_empty() {
        let lines = changes.lines().join("\n    ");
        let what =
            format!("the file is not as it was when the campaign was begun:\n    {}", clean_lines(&lines));
        if !accept_changes {
            show_unseen(c, &unseen)?;
            return Err(Fault::input(
                what,
                "Put it back; or go on with --accept-changes: cells that are as they were keep their runs, the others are measured again.",
            ));
        }
        // However quiet it is to be: what is taken otherwise than before is said.
        output::tell(format_args!("plimsoll: {what}"));
    }
    tell_plan(c, false, a)?;
    allowed(&c.file, a)?;
    if !unseen.is_empty() {
        show_unseen(c, &unseen)?;
        return Err(Fault::input(
            "the file's commands, or devices whose data would be destroyed, are not those that were allowed before (shown above)",
            "Look at them; if they are what you want, give the same command again.",
        ));
    }
    possible(c)
}

/// What --allow-hooks was not said of is shown before it is run or destroyed, and by the next command it is known to have been.
fn show_unseen(c: &Campaigned, unseen: &[String]) -> Result<(), Fault> {
    if unseen.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = unseen.iter().map(|d| format!("    {}\n", clean(&shown_command(d)))).collect();
    output::tell_whole(&format!("plimsoll: taken only with --allow-hooks:\n{}", lines.concat()));
    Ok(note_shown(&c.dir, unseen)?)
}

/// Line ends are ours.
fn clean_lines(text: &str) -> String {
    text.lines().map(|l| clean(l).into_owned()).collect::<Vec<_>>().join("\n")
}

fn status(a: &StatusCampaignArgs) -> Result<Exit, Fault> {
    let (text, c) = read(&a.file, None, &found(&a.file, &a.form)?)?;
    known_axis(&c, &a.axis)?;
    if !a.form.json && !a.form.markdown {
        for line in changes(&c, &text).lines() {
            output::tell(format_args!("plimsoll: the file was edited: {}", clean(&line)));
        }
        output::print(&words::status(&c))?;
    }
    show(&c.result(), &a.form, &a.axis)?;
    Ok(Exit::Valid)
}

fn already(c: &Campaigned, file: &Path) -> Fault {
    let name = &c.file.name;
    let what = format!("campaign '{name}' was begun here before ({})", c.dir.path().display());
    let remedy = match c.state.to_go() {
        0 => "It is complete: `plimsoll campaign status` shows it. To measure it again, give it another name in the file.".to_owned(),
        n => format!(
            "{} {} to go: plimsoll campaign resume {}. To begin anew, give it another name in the file.",
            counted(n, "run"),
            are(n),
            file.display()
        ),
    };
    Fault::input(what, remedy)
}

/// What the file says otherwise than when it was taken last.
fn changes(c: &Campaigned, text: &str) -> FileDifference {
    let taken = c.entries.iter().rev().find_map(|e| match e {
        LedgerEntry::File { hash, cells, .. } => Some((hash, cells)),
        _ => None,
    });
    let Some((hash, cells)) = taken else { return FileDifference::default() };
    if *hash == text_hash(text) {
        return FileDifference::default();
    }
    let difference = FileDifference::of(cells, &c.cells);
    // Both without their secrets, as the copy is kept.
    let text = &toml_without_credentials(text);
    let old = c.dir.copy_of(&c.entries).map(|copy| toml_without_credentials(&copy));
    match old.and_then(|copy| CampaignFile::from_toml(&copy).ok()) {
        Some(old) => {
            CampaignFile::from_toml(text).map_or(difference.clone(), |new| difference.with_places(&old, &new))
        }
        None => difference,
    }
}

/// What will be done, before it is.
pub(super) fn tell_plan(c: &Campaigned, is_dry: bool, a: &CampaignArgs) -> Result<(), Fault> {
    let text = words::plan(c);
    if is_dry {
        return output::print(&text);
    }
    // What is refused below is shown, however quiet it is to be.
    if !a.form.quiet || (!a.allow_hooks && !c.file.dangers().is_empty()) {
        output::tell_whole(&text);
    }
    Ok(())
}

/// Commands and devices are taken only where somebody has seen them and says so.
pub(super) fn allowed(file: &CampaignFile, a: &CampaignArgs) -> Result<(), Fault> {
    if file.dangers().iter().any(|d| d.contains(LEFT_OUT)) {
        return Err(Fault::input(
            "secrets were left out of the file's commands when it was published (shown above)",
            "Write yours into a copy of the file, as variables of the environment ($NAME), and give that.",
        ));
    }
    if a.allow_hooks || file.dangers().is_empty() {
        return Ok(());
    }
    Err(Fault::input(
        "the file has commands that would be run, or devices whose data would be destroyed (shown above)",
        "Look at them; if they are what you want, add --allow-hooks.",
    ))
}

/// A budget that is too small for every cell once is said before anything is measured.
pub(super) fn possible(c: &Campaigned) -> Result<(), Fault> {
    money::can_be_paid(c)?;
    let lacking = forecast::unbounded(&c.file, &c.cells, &c.state);
    if let Some(cell) = lacking.first() {
        return Err(Fault::input(
            format!(
                "budget: bytes and requests cannot be bounded, because nobody knows what a run of {} takes (the first: {})",
                counted(lacking.len(), "cell"),
                clean(&cell.key)
            ),
            "Write what the subject promises (promised = { ops_per_s = ..., bytes_per_s = ... }), give the workload a pacing, or bound the time instead.",
        ));
    }
    let once = forecast::one_each(&c.file, &c.cells, &c.state);
    match forecast::beyond(&c.file, &c.state.spent, &once) {
        Some(what) if c.state.to_go() > 0 => Err(Fault::input(
            format!(
                "the budget ({what}) is too small to measure each cell once: that takes {}",
                words::amounts(&once)
            ),
            "Raise it, or leave out cells.",
        )),
        _ => Ok(()),
    }
}

fn begin(
    c: &Campaigned,
    text: &str,
    path: &Path,
    (a, axis): (&CampaignArgs, &AxisTable),
    is_resumed: bool,
) -> Result<Exit, Fault> {
    let (end, state) = measure(c, text, path, a, is_resumed)?;
    let result = plimsoll_campaign::result(&c.file, &c.cells, &state);
    show(&result, &a.form, axis)?;
    ended(&end, &result, path)
}

/// A session: what is to go is measured, until it ends or something ends it.
pub(super) fn measure(
    c: &Campaigned,
    text: &str,
    path: &Path,
    a: &CampaignArgs,
    is_resumed: bool,
) -> Result<(CampaignEnd, CampaignState), Fault> {
    let mut ledger = c.dir.take()?;
    // Another process may have had it between the first look and now.
    let entries = c.dir.read()?;
    if !is_resumed && !entries.is_empty() {
        return Err(already(c, path));
    }
    let left = end_left_hook(&c.dir.hook_note(), &c.file.name).map_err(|e| {
        Fault::input(
            clean(&e),
            "End it, then give the same command again: two of them would run side by side.",
        )
    })?;
    if let Some(said) = left {
        output::tell(format_args!("plimsoll: {}", clean(&said)));
    }
    // One that is not up is told before anything is begun.
    fleet_use::fleet()?;
    live::begin(a.form.runs_dir.as_deref())?;
    note_opening(&mut ledger, c, text, &entries)?;
    campaign_place::remember(path, &c.file.name, &c.runs);
    let mut state = CampaignState::of(&c.file, &c.cells, &c.dir.read()?);
    for (i, cell) in c.cells.iter().enumerate().filter(|(_, cell)| cell.target.is_none()) {
        debug_assert_eq!(cell.key, c.cells[i].key);
        state.bring(i, c.state.cells[i].runs.clone());
    }
    signals::install(signals::ProcessRole::Run);
    let carrier = Carrier::new(c, path, text, &a.form);
    let session = CampaignSession::new(&c.file, &c.cells, state, ledger, carrier);
    let mut session = session.with_prices(c.prices.as_ref());
    let end = session.run().map_err(|e| {
        let mut fault = Fault::from(e);
        fault.remedy += " What was measured until then is kept.";
        fault
    })?;
    Ok((end, session.state))
}

/// The first lines of a session in the ledger: who took it up, and the file as it holds from now on.
fn note_opening(
    ledger: &mut CampaignLedger,
    c: &Campaigned,
    text: &str,
    entries: &[LedgerEntry],
) -> Result<(), LedgerError> {
    let at = now();
    if entries.is_empty() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let fresh = (now.as_nanos() as u64) % 1_000_000_000;
        let begun = LedgerEntry::Begun {
            format: LEDGER_FORMAT.into(),
            name: c.file.name.clone(),
            fresh,
            at: at.clone(),
        };
        ledger.append(&begun)?;
    }
    let budget_cost = c.budget_beside.clone();
    let version = env!("CARGO_PKG_VERSION").into();
    let fleet = fleet_use::words();
    ledger.append(&LedgerEntry::Opened { version, budget_cost, fleet, at: at.clone() })?;
    let known = entries.iter().rev().find_map(|e| match e {
        LedgerEntry::File { hash, .. } => Some(hash.clone()),
        _ => None,
    });
    if known.as_deref() != Some(&text_hash(text)) {
        // The copy first: an entry without its text could not say what was edited later.
        ledger.keep_copy(text)?;
        ledger.append(&file_entry(text, &c.cells, at))?;
    }
    Ok(())
}

fn show(result: &CampaignResult, form: &CampaignForm, axis: &AxisTable) -> Result<(), Fault> {
    if form.json {
        let json = serde_json::to_string_pretty(result).expect("plain data is always JSON");
        return output::print(&(json + "\n"));
    }
    output::print(&table(result, axis.by.as_deref(), form.markdown))
}

/// How the session ended: the exit code, and what to do about what is missing.
pub(super) fn ended(end: &CampaignEnd, result: &CampaignResult, path: &Path) -> Result<Exit, Fault> {
    let again = format!("plimsoll campaign resume {}", path.display());
    let fault = |what: String, remedy: String, exit: Exit| Err(Fault { what, remedy, exit });
    match end {
        CampaignEnd::Complete => {}
        CampaignEnd::Interrupted => {
            let what = format!("interrupted: {} {} to go", counted(result.to_go, "run"), are(result.to_go));
            return fault(what, format!("Go on with: {again}"), Exit::Interrupted);
        }
        CampaignEnd::Budget(what) => {
            let what = format!(
                "the budget is used up ({what}); {} {} to go",
                counted(result.to_go, "run"),
                are(result.to_go)
            );
            return fault(
                what,
                format!(
                    "Go on with a larger one: {again} --budget TIME or --budget-cost MONEY, or edit the file."
                ),
                Exit::Undetermined,
            );
        }
        CampaignEnd::Stuck(why) => {
            let measured = result.rows.iter().any(|r| !r.runs.is_empty() || !r.void.is_empty());
            let exit = if measured { Exit::Undetermined } else { Exit::Input };
            return fault(
                stuck(why),
                format!("What was measured is kept. When that is put right: {again}"),
                exit,
            );
        }
        CampaignEnd::Hopeless(why) => {
            return fault(
                clean(why).into_owned(),
                format!("What was measured is kept. When that is put right: {again}"),
                Exit::Input,
            );
        }
    }
    let damaged = result.rows.iter().flat_map(|r| &r.void).any(|v| v.exit == Exit::Damaged as u8);
    let without = result.rows.iter().filter(|r| r.ops_per_s.is_none() && r.bytes_per_s.is_none()).count();
    Ok(match () {
        () if damaged => Exit::Damaged,
        () if without > 0 => Exit::Invalid,
        () => Exit::Valid,
    })
}

fn stuck(why: &BTreeMap<String, String>) -> String {
    let lines: Vec<String> =
        why.iter().map(|(what, why)| clean(&format!("{what}: {why}")).into_owned()).collect();
    format!("not measured:\n    {}", lines.join("\n    "))
}
