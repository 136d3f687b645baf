//! What is said of a campaign: before it begins, run by run, and at its end.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use plimsoll_campaign::forecast::{self, Forecast};
use plimsoll_campaign::{
    CampaignCell, CampaignResult, CampaignRow, CampaignState, Campaigned, CellFigure, CellOrder, CellRun,
    IntervalOf, OURS,
};
use plimsoll_model::Estimate;
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::text::clean;
use plimsoll_model::units::{about_size, format_latency_ns};
use plimsoll_report::Style;
use plimsoll_report::number;
use plimsoll_report::table::Table;
use plimsoll_stats::words;

/// Cells named in full before the first; of more only how many there are.
const SHOWN: usize = 40;

/// What will be done: cells, repeats, order, what it takes, and what nobody takes from a file unseen.
pub fn plan(c: &Campaigned) -> String {
    let measured: Vec<&CampaignCell> = c.cells.iter().filter(|cell| cell.target.is_some()).collect();
    let mut out = format!("campaign {}: {} cells, ", c.file.name, measured.len());
    let r = c.file.repeat;
    let _ = match r.until_wide {
        Some(wide) => writeln!(
            out,
            "each {} times or more, until {} is {} wide, at most {} times, {}",
            r.at_least,
            // That between instances takes more instances, and not more runs.
            if measured.iter().any(|cell| !cell.instance.is_empty()) {
                "the interval over the runs of each instance"
            } else {
                "the interval over its runs"
            },
            percent(wide),
            r.at_most,
            order(c.file.order)
        ),
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
        let _ = writeln!(out, "  {}: {} runs that were brought along", clean(&s.name), s.runs.len());
    }
    let dangers = c.file.dangers();
    if !dangers.is_empty() {
        let _ = writeln!(out, "  taken only with --allow-hooks:");
        dangers.iter().for_each(|d| {
            let _ = writeln!(out, "    {}", clean(d));
        });
    }
    let _ = writeln!(out, "  {} runs to go: {}", c.state.to_go(), takes(c));
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
    match one.time_s {
        s if s <= 0.0 => String::new(),
        s if s < 1.0 => "  (less than 1 s a run)".into(),
        s => format!("  ({} a run at least)", span(s)),
    }
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
fn percent(share: f64) -> String {
    // Percents of a written number have an end that a binary fraction lacks.
    format!("{} %", (share * 1e7).round() / 1e5)
}

/// How far it is, in a paragraph above the table.
pub fn status(c: &Campaigned) -> String {
    let (state, to_go) = (&c.state, c.state.to_go());
    let mut out = format!("campaign {}: {} runs done, {to_go} to go", c.file.name, state.done_runs());
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
    let s = state.spent;
    let asked = format!("{} of payload, {} ops", about_size(s.bytes), number::count(s.requests));
    let spent = if s.time_s > 0.0 && s.time_s < 1.0 { "less than 1 s".into() } else { span(s.time_s) };
    let _ = writeln!(out, "  spent: {spent}, about {asked}");
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

/// Subjects by workloads, and under it what is to be known of the figures.
pub fn table(result: &CampaignResult, is_markdown: bool) -> String {
    let columns = [
        "subject",
        "workload",
        "op",
        ">op/s",
        ">MiB/s",
        ">promised",
        ">p50",
        ">p99",
        ">refused",
        "limited by",
        ">runs",
        "interval",
        "measured by",
    ];
    let mut table = Table::new(&clean(&result.name), 2, &columns);
    let is_by_tool = result.rows.iter().any(|r| !r.tools.is_empty());
    for r in &result.rows {
        table.push(row(r, is_by_tool).map(|cell| clean(&cell).into_owned()).to_vec());
    }
    let table = table.without_empty_columns();
    let notes = notes(result);
    if is_markdown {
        let notes: Vec<String> = notes.iter().map(|n| format!("- {n}\n")).collect();
        return format!("{}\n{}", table.markdown(), notes.concat());
    }
    let width = Style::for_stdout().width;
    let notes: Vec<String> =
        notes.iter().map(|n| plimsoll_report::table::wrap(n, width, "  ", "    ") + "\n").collect();
    format!("{}\n{}", table.plain(width), notes.concat())
}

/// A row of the table has a rate: of ops, or of payload alone.
fn has_rate(r: &CampaignRow) -> bool {
    r.ops_per_s.is_some() || r.bytes_per_s.is_some()
}

fn row(r: &CampaignRow, is_by_tool: bool) -> [String; 13] {
    let latency = |ns: Option<u64>| ns.map(|n| format_latency_ns(n as f64)).unwrap_or_default();
    let rate = match (&r.ops_per_s, r.void.is_empty() || has_rate(r)) {
        (Some(e), _) => number::estimate(e),
        (None, false) => {
            let mut codes: Vec<&str> = r.void.iter().flat_map(|v| &v.codes).map(String::as_str).collect();
            codes.sort_unstable();
            codes.dedup();
            format!("void {}", codes.join(" ")).trim_end().to_owned()
        }
        (None, true) => number::MISSING.into(),
    };
    let mib = |e: &Estimate| number::estimate(&e.scaled(1.0 / number::MIB));
    let promised = match (r.promised.ops_per_s, r.promised.bytes_per_s) {
        (None, None) => String::new(),
        (Some(o), None) => o.to_string(),
        (None, Some(b)) => b.to_string(),
        (Some(o), Some(b)) => format!("{o}, {b}"),
    };
    let promised = if r.may_be_burst() { format!("{promised} (burst?)") } else { promised };
    let all = r.runs.len() + r.void.len();
    let runs = match (r.void.len(), r.to_go) {
        (0, 0) => all.to_string(),
        (0, n) => format!("{all} of {}", all + n as usize),
        (v, 0) => format!("{all}, {v} void"),
        (v, n) => format!("{all} of {}, {v} void", all + n as usize),
    };
    let of = match r.interval_of {
        None if has_rate(r) => "none".into(),
        None => String::new(),
        Some(IntervalOf::Instances) => format!("{} instances", r.instances),
        Some(IntervalOf::Runs) => "over runs".into(),
        Some(IntervalOf::OneRun) => "within one run".into(),
    };
    let by = match &r.tools[..] {
        _ if !is_by_tool || (r.runs.is_empty() && r.void.is_empty()) => String::new(),
        [] => OURS.into(),
        tools => tools.join(", "),
    };
    [
        r.subject.clone(),
        r.workload.clone(),
        line_name(&r.line, &r.op),
        rate,
        r.bytes_per_s.as_ref().map(mib).unwrap_or_default(),
        promised,
        latency(r.p50_ns),
        latency(r.p99_ns),
        if r.refused > 0.0 { number::percent(r.refused) } else { String::new() },
        r.bound.as_deref().map(bound).unwrap_or_default().into(),
        runs,
        of,
        by,
    ]
}

/// The op; with what the figure is of it, where it is not simply its rate.
fn line_name(line: &str, op: &str) -> String {
    let is_more = [" best", " limit", " sustained"].iter().any(|end| line.ends_with(end));
    if is_more { line.to_owned() } else { op.to_owned() }
}

/// As a sweep's table has it.
fn bound(word: &str) -> &str {
    match word {
        "none" => "not found",
        "undetermined" => "not known",
        other => other,
    }
}

/// What a reader of the table has to know.
fn notes(result: &CampaignResult) -> Vec<String> {
    let mut out = Vec::new();
    if result.rows.iter().any(|r| r.interval_of == Some(IntervalOf::OneRun)) {
        out.push("within one run: another run may differ by more than the interval says".to_owned());
    }
    out.extend(tools(result));
    if result.rows.iter().any(CampaignRow::may_be_burst) {
        out.push(
            "burst?: above what is promised to be kept up, as long as it was measured; whether it lasts these runs do not say (`limits` of a \
             workload finds out)"
                .to_owned(),
        );
    }
    if result.rows.iter().any(|r| r.instances > 1) {
        out.push("p50 and p99 are of one instance: where there are several, `plimsoll runs show` has those of each run".into());
    }
    for r in &result.rows {
        let lead = format!("{}, {}", clean(&r.subject), clean(&r.workload));
        out.extend(of_row(r, result.until_wide).into_iter().map(|note| format!("{lead}: {note}")));
    }
    if result.to_go > 0 {
        out.push(format!("{} runs are to go: figures may still change", result.to_go));
    }
    for (cell, why) in &result.failed {
        out.push(format!("not measured: {}: {}", clean(cell), clean(why)));
    }
    out
}

fn of_row(r: &CampaignRow, asked: Option<f64>) -> Vec<String> {
    let mut out = Vec::new();
    let main = r.ops_per_s.as_ref().or(r.bytes_per_s.as_ref());
    if let (Some(within), Some(between), Some(e)) = (r.sd_within, r.sd_between, main) {
        let share = |sd: f64| number::percent(sd / e.value.abs());
        out.push(format!(
            "runs on one instance differ by {} (standard deviation), instances by {}",
            share(within),
            share(between)
        ));
    }
    let line = clean(&line_name(&r.line, &r.op)).into_owned();
    if let (Some(wide), Some(asked)) = (r.wider_than_asked, asked) {
        out.push(match r.interval_of {
            Some(IntervalOf::Instances) => format!(
                "{line}: the interval between instances is {} wide; the {} that were asked for are of the runs of each instance",
                number::percent(wide),
                percent(asked)
            ),
            _ => format!(
                "{line}: the interval is {} wide after {} valid runs, where {} were asked for",
                number::percent(wide),
                r.runs.len(),
                percent(asked)
            ),
        });
    }
    if let Some(s) = r.held_for_s.filter(|_| has_rate(r)) {
        let held = words::span(s);
        out.push(format!(
            "{line}: held for {held}, as long as it was seen; a burst that lasts longer is not excluded"
        ));
    }
    if r.ops_runs > 0 && r.bytes_runs > 0 && r.ops_runs != r.bytes_runs {
        let (ops, bytes) = (r.ops_runs, r.bytes_runs);
        out.push(format!(
            "{line}: op/s are of {ops} runs, MiB/s of {bytes}: the others have none that is proved"
        ));
    }
    out
}

/// Other tools than this program measured, some or all.
fn tools(result: &CampaignResult) -> Option<String> {
    let rows = || result.rows.iter().filter(|r| !r.runs.is_empty() || !r.void.is_empty());
    let of = |r: &CampaignRow| if r.tools.is_empty() { vec![OURS.to_owned()] } else { r.tools.clone() };
    let all: BTreeSet<String> = rows().flat_map(of).collect();
    (all.len() > 1).then(|| {
        let all: Vec<String> = all.iter().map(|t| clean(t).into_owned()).collect();
        format!(
            "measured by different tools ({}): a difference may be theirs, in what they count and time as well as in what they cost",
            all.join(", ")
        )
    })
}
