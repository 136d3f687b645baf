//! What is said of a campaign: before it begins, run by run, and at its end.

use std::fmt::Write as _;

use jiff::Timestamp;
use plimsoll_campaign::forecast::{self, Forecast};
use plimsoll_campaign::{CampaignCell, CampaignState, Campaigned, CellFigure, CellOrder, CellRun, line_name};
use plimsoll_model::Estimate;
use plimsoll_model::count::counted;
use plimsoll_model::credentials::shown_command;
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::text::clean;
use plimsoll_model::units::about_size;
use plimsoll_report::number;
use plimsoll_stats::words;

use super::campaign_money as money;

/// Cells named in full before the first; of more only how many there are.
const SHOWN: usize = 40;

/// What will be done: cells, repeats, order, what it takes, and what nobody takes from a file unseen.
pub fn plan(c: &Campaigned) -> String {
    let measured: Vec<&CampaignCell> = c.cells.iter().filter(|cell| cell.target.is_some()).collect();
    let mut out = format!("campaign {}: {}, ", c.file.name, counted(measured.len(), "cell"));
    let r = c.file.repeat;
    let _ = match r.until_wide {
        Some(wide) => writeln!(
            out,
            "each {} or more, until {} is {} wide, at most {}, {}",
            counted(r.at_least, "time"),
            // That between instances takes more instances, and not more runs.
            if measured.iter().any(|cell| !cell.instance.is_empty()) {
                "the interval over the runs of each instance"
            } else {
                "the interval over its runs"
            },
            percent(wide),
            counted(r.at_most, "time"),
            order(c.file.order)
        ),
        None if r.at_least == 1 => writeln!(out, "each once, {}", order(c.file.order)),
        None => writeln!(out, "each {} times, {}", r.at_least, order(c.file.order)),
    };
    if let Some(question) = &c.file.question {
        let _ = writeln!(out, "  {}", clean(question));
    }
    for cell in measured.iter().take(SHOWN) {
        let _ = writeln!(out, "    {}{}", clean(&title(cell)), of_cell(c, cell));
    }
    if measured.len() > SHOWN {
        let _ = writeln!(out, "    and {} more", measured.len() - SHOWN);
    }
    let brought = c.file.subjects.iter().filter(|s| s.is_brought());
    for s in brought {
        let _ = writeln!(
            out,
            "  {}: {} that {} brought along",
            clean(&s.name),
            counted(s.runs.len(), "run"),
            if s.runs.len() == 1 { "was" } else { "were" }
        );
    }
    let dangers = c.file.dangers();
    if !dangers.is_empty() {
        let _ = writeln!(out, "  taken only with --allow-hooks:");
        dangers.iter().for_each(|d| {
            let _ = writeln!(out, "    {}", clean(&shown_command(d)));
        });
    }
    let _ = writeln!(out, "  {} to go: {}", counted(c.state.to_go(), "run"), takes(c));
    out += &money::plan(c);
    if let Some(times) = c.file.times_of_day() {
        let due = c.next_due(Timestamp::now()).map_or(String::new(), |due| format!("; next {due}"));
        let _ = writeln!(out, "  each block of repeats at one of {}, in turn{due}", times.words());
    }
    if let Some(wait) = c.file.rest.wait {
        let _ = writeln!(
            out,
            "  before each of them at most {wait} are waited, beside that time, until others leave this machine's CPUs and disks alone{}",
            if c.file.options.observe.is_empty() {
                ""
            } else {
                ", and observed servers neither heal nor scrub"
            }
        );
    }
    if let Some(budget) = budget(c) {
        let _ = writeln!(out, "  {budget}");
    }
    out
}

fn order(order: CellOrder) -> &'static str {
    match order {
        CellOrder::Random => "in random order, each block of one run of each",
        CellOrder::BySubject => "subject by subject in random order, each block of one run of each",
        CellOrder::Abba => "in pairs: A B, B A",
        CellOrder::AsWritten => "as written",
    }
}

fn of_cell(c: &Campaigned, cell: &CampaignCell) -> String {
    let Some(i) = c.cells.iter().position(|other| other.key == cell.key) else { return String::new() };
    let one = forecast::next_run(&c.file, cell, &c.state.cells[i].runs);
    // On the virtual clock nothing takes time.
    let time = match one.time_s {
        s if s <= 0.0 => None,
        s if s < 1.0 => Some("less than 1 s".to_owned()),
        s => Some(format!("{} at least", span(s))),
    };
    let cost = money::of_cell(c, cell, &c.state.cells[i]);
    let all: Vec<String> = time.into_iter().chain(cost).collect();
    if all.is_empty() { String::new() } else { format!("  (a run: {})", all.join("; ")) }
}

fn title(cell: &CampaignCell) -> String {
    let of = if cell.instance.is_empty() { String::new() } else { format!(" {}", cell.instance) };
    format!("{}{of}, {}", cell.subject, cell.workload)
}

/// What is to go takes.
fn takes(c: &Campaigned) -> String {
    let is_virtual = |cell: &CampaignCell| matches!(cell.target, Some(TargetSpec::Sim(_)));
    let mut due = c.cells.iter().zip(&c.state.cells).filter(|(_, s)| s.to_go() > 0).peekable();
    if due.peek().is_some() && due.all(|(cell, _)| is_virtual(cell)) {
        return "on the virtual clock: what is simulated takes no time of its own, and asks nothing of a storage".into();
    }
    amounts(&forecast::to_go(&c.file, &c.cells, &c.state))
}

/// Time, bytes and requests, as far as they are known.
pub fn amounts(f: &Forecast) -> String {
    let unknown = "not known before a first run (closed loop, and nothing promised)";
    let bytes = f.bytes.map(|b| format!("about {} of payload", about_size(b as u64)));
    let requests = f.requests.map(|n| format!("about {} ops", number::count(n as u64)));
    let load = match (bytes, requests) {
        (Some(b), Some(n)) => format!("{b}, {n}"),
        (Some(b), None) => format!("{b}, ops {unknown}"),
        (None, Some(n)) => format!("{n}, payload {unknown}"),
        (None, None) => format!("payload and ops {unknown}"),
    };
    format!("{}, {load}", least(f.time_s))
}

/// Of what nothing is known no second is promised.
fn least(s: f64) -> String {
    match s {
        s if s <= 0.0 => "time not known before a first run".into(),
        s if s < 1.0 => "less than 1 s".into(),
        s => format!("{} at least", span(s)),
    }
}

/// Whole seconds, as a person writes them.
fn span(s: f64) -> String {
    let s = s.max(0.0).ceil() as u64;
    match (s / 3600, s / 60 % 60, s % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

fn budget(c: &Campaigned) -> Option<String> {
    let (b, spent) = (&c.file.budget, &c.state.spent);
    let mut parts = Vec::new();
    parts.extend(b.time.map(|t| format!("{} of {t}", span(spent.time_s))));
    parts.extend(b.bytes.map(|m| format!("{} of {m}", about_size(spent.bytes))));
    parts
        .extend(b.requests.map(|n| format!("{} of {} ops", number::count(spent.requests), number::count(n))));
    parts.extend(money::budget(c));
    (!parts.is_empty()).then(|| format!("budget spent: {}", parts.join(", ")))
}

/// A run begins.
pub fn begins(cell: &CampaignCell, repeat: u32, state: &CampaignState) -> String {
    let (done, to_go) = (state.done_runs(), state.to_go());
    clean(&format!("run {} of {}: {}, repeat {}", done + 1, done + to_go, title(cell), repeat + 1))
        .into_owned()
}

/// What came of it, in a line.
pub fn ended_run(cell: &CampaignCell, run: &CellRun, state: &CampaignState) -> String {
    let (done, to_go) = (state.done_runs(), state.to_go());
    let figures: Vec<String> = run.figures.iter().map(|f| figure(f, run.figures.len() > 1)).collect();
    let mark = match (run.answered, run.void.is_empty()) {
        (true, true) => "valid",
        (true, false) => "partly valid",
        (false, _) => "INVALID",
    };
    let codes = if run.void.is_empty() { String::new() } else { format!(" {}", run.void.join(" ")) };
    let text = format!(
        "{done}/{}  {}: {}  {mark}{codes}  {}",
        done + to_go,
        title(cell),
        figures.join("; "),
        run.run
    );
    clean(&text).into_owned()
}

fn figure(f: &CellFigure, is_named: bool) -> String {
    let name = line_name(&f.line, &f.op);
    let name = if is_named || name != f.op { format!("{name} ") } else { String::new() };
    if !f.valid {
        return format!("{name}void");
    }
    let mib = |b: &Estimate| format!("{} MiB/s", number::estimate(&b.scaled(1.0 / number::MIB)));
    let ops = f.ops_per_s.as_ref().map(|e| format!("{} op/s", number::estimate(e)));
    let bytes = f.bytes_per_s.as_ref().map(mib);
    let mut parts: Vec<String> = ops.into_iter().chain(bytes).collect();
    if parts.is_empty() {
        parts.push(format!("{} op/s", number::MISSING));
    }
    parts.extend(f.held_for_s.map(|s| format!("held for {}", words::span(s))));
    parts.extend((f.refused > 0.0).then(|| format!("{} refused", number::percent(f.refused))));
    format!("{name}{}", parts.join(", "))
}

/// As it was asked for: 3 %, and not 3.0 %.
pub fn percent(share: f64) -> String {
    // Percents of a written number have an end that a binary fraction lacks.
    format!("{} %", (share * 1e7).round() / 1e5)
}

/// How far it is, in a paragraph above the table.
pub fn status(c: &Campaigned) -> String {
    let (state, to_go) = (&c.state, c.state.to_go());
    let mut out =
        format!("campaign {}: {} done, {to_go} to go", c.file.name, counted(state.done_runs(), "run"));
    let void = state.cells.iter().flat_map(|s| &s.runs).filter(|r| !r.answered).count();
    if void > 0 {
        let _ = write!(out, ", {void} of those done invalid");
    }
    out.push('\n');
    if let Some(under) = &state.under_way {
        let _ = writeln!(out, "  under way, or killed: {}, run {}", clean(&under.cell), clean(&under.run));
    }
    if to_go > 0 {
        let _ = writeln!(out, "  to go: {}", takes(c));
    }
    out.extend(c.next_due(Timestamp::now()).map(|due| format!("  next due: {due}\n")));
    let s = state.spent;
    let asked = format!("{} of payload, {} ops", about_size(s.bytes), number::count(s.requests));
    let spent = if s.time_s > 0.0 && s.time_s < 1.0 { "less than 1 s".into() } else { span(s.time_s) };
    let paid = money::spent(c).map_or(String::new(), |m| format!(", {m}"));
    let _ = writeln!(out, "  spent: {spent}, about {asked}{paid}");
    out.extend(budget(c).map(|b| format!("  {b}\n")));
    for (n, one, many) in [
        (
            state.set_aside,
            "run is set aside: the file has its cell otherwise by now",
            "runs are set aside: the file has their cells otherwise by now",
        ),
        (state.dropped, "run was cut short, and does not count", "runs were cut short, and do not count"),
    ] {
        if n > 0 {
            let _ = writeln!(out, "  {n} {}", if n == 1 { one } else { many });
        }
    }
    let failed = c.cells.iter().zip(&state.cells).filter_map(|(cell, s)| Some((cell, s.failed.as_ref()?)));
    for (cell, why) in failed {
        let _ = writeln!(out, "  could not be measured: {}: {}", clean(&title(cell)), clean(why));
    }
    out.push('\n');
    out
}
