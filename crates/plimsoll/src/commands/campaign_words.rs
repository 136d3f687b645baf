//! What is said of a campaign: before it begins, run by run, and at its end.

use std::fmt::Write as _;

use plimsoll_campaign::forecast::{self, Forecast};
use plimsoll_campaign::{
    CampaignCell, CampaignResult, CampaignRow, CampaignState, Campaigned, CellFigure, CellOrder, CellRun,
    IntervalOf,
};
use plimsoll_model::text::clean;
use plimsoll_model::units::{about_size, format_latency_ns};
use plimsoll_report::Style;
use plimsoll_report::number;
use plimsoll_report::table::Table;

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
            "each {} times or more, until its interval is {:.3} % wide, at most {} times, {}",
            r.at_least,
            wide * 100.0,
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
    let all = forecast::to_go(&c.file, &c.cells, &c.state);
    let _ = writeln!(out, "  {} runs to go: {}", c.state.to_go(), amounts(&all));
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
    if one.time_s > 0.0 { format!("  ({} a run at least)", span(one.time_s)) } else { String::new() }
}

fn title(cell: &CampaignCell) -> String {
    let of = if cell.instance.is_empty() { String::new() } else { format!(" {}", cell.instance) };
    format!("{}{of}, {}", cell.subject, cell.workload)
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
    format!("{} at least, {load}", span(f.time_s))
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
    let rate = number::estimate_or_missing(f.ops_per_s.as_ref());
    let bytes = f.bytes_per_s.map(|b| format!(", {} MiB/s", number::estimate(&b.scaled(1.0 / number::MIB))));
    let refused =
        if f.refused > 0.0 { format!(", {} refused", number::percent(f.refused)) } else { String::new() };
    format!("{name}{rate} op/s{}{refused}", bytes.unwrap_or_default())
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
        let _ = writeln!(out, "  to go: {}", amounts(&forecast::to_go(&c.file, &c.cells, state)));
    }
    let s = state.spent;
    let asked = format!("{} of payload, {} ops", about_size(s.bytes), number::count(s.requests));
    let _ = writeln!(out, "  spent: {}, about {asked}", span(s.time_s));
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
    ];
    let mut table = Table::new(&clean(&result.name), 2, &columns);
    for r in &result.rows {
        table.push(row(r).map(|cell| clean(&cell).into_owned()).to_vec());
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

fn row(r: &CampaignRow) -> [String; 12] {
    let latency = |ns: Option<u64>| ns.map(|n| format_latency_ns(n as f64)).unwrap_or_default();
    let rate = match (&r.ops_per_s, r.void.is_empty()) {
        (Some(e), _) => number::estimate(e),
        (None, false) => {
            let mut codes: Vec<&str> = r.void.iter().flat_map(|v| &v.codes).map(String::as_str).collect();
            codes.sort_unstable();
            codes.dedup();
            format!("void {}", codes.join(" "))
        }
        (None, true) => number::MISSING.into(),
    };
    let mib = |e: &plimsoll_model::Estimate| number::estimate(&e.scaled(1.0 / number::MIB));
    let promised = match (r.promised.ops_per_s, r.promised.bytes_per_s) {
        (None, None) => String::new(),
        (Some(o), None) => o.to_string(),
        (None, Some(b)) => b.to_string(),
        (Some(o), Some(b)) => format!("{o}, {b}"),
    };
    let all = r.runs.len() + r.void.len();
    let runs = match (r.void.len(), r.to_go) {
        (0, 0) => all.to_string(),
        (0, n) => format!("{all} of {}", all + n as usize),
        (v, 0) => format!("{all}, {v} void"),
        (v, n) => format!("{all} of {}, {v} void", all + n as usize),
    };
    let of = match (r.ops_per_s.is_some(), r.interval_of) {
        (false, _) => String::new(),
        (true, IntervalOf::Instances) => format!("{} instances", r.instances),
        (true, IntervalOf::Runs) => "over runs".into(),
        (true, IntervalOf::OneRun) => "within one run".into(),
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
    let has = |of: IntervalOf| result.rows.iter().any(|r| r.ops_per_s.is_some() && r.interval_of == of);
    if has(IntervalOf::OneRun) {
        out.push("within one run: another run may differ by more than the interval says".to_owned());
    }
    for r in &result.rows {
        if let (Some(within), Some(between), Some(e)) = (r.sd_within, r.sd_between, &r.ops_per_s) {
            let share = |sd: f64| number::percent(sd / e.value.abs());
            out.push(format!(
                "{}, {}: runs on one instance differ by {} (standard deviation), instances by {}",
                clean(&r.subject),
                clean(&r.workload),
                share(within),
                share(between)
            ));
        }
    }
    if result.to_go > 0 {
        out.push(format!("{} runs are to go: figures may still change", result.to_go));
    }
    for (cell, why) in &result.failed {
        out.push(format!("not measured: {}: {}", clean(cell), clean(why)));
    }
    out
}
