//! A network test on a terminal and as Markdown: what it says, the lanes, the matrix of pairs, the hosts.

use plimsoll_model::net::{NetLane, NetRecord, RoundTrips};
use plimsoll_model::text::clean;
use plimsoll_model::{Estimate, Level};

use crate::table::Table;
use crate::terminal::Style;

const MISSING: &str = crate::number::MISSING;
/// The matrix names no more hosts on a terminal.
const MOST_IN_MATRIX: usize = 16;
/// So many of the worst lanes are shown of patterns that have more.
const WORST: usize = 12;

/// The same text for people, in one form or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain(usize),
    Markdown,
}

/// For a terminal.
pub fn net_terminal(record: &NetRecord, style: Style) -> String {
    text(record, Form::Plain(style.width))
}

/// As Markdown.
pub fn net_markdown(record: &NetRecord) -> String {
    text(record, Form::Markdown)
}

/// The record itself, for programs.
pub fn net_json(record: &NetRecord) -> String {
    serde_json::to_string_pretty(record).expect("a record is plain data") + "\n"
}

fn text(record: &NetRecord, form: Form) -> String {
    let mut out = String::new();
    let head = format!("Network test {}: {}", record.id, status(record));
    out.push_str(&if form == Form::Markdown { format!("# {head}\n\n") } else { format!("{head}\n\n") });
    for sentence in &record.sentences {
        paragraph(&mut out, form, &clean(sentence));
    }
    for finding in &record.findings {
        let word = match finding.level {
            Level::Info => "note",
            Level::Qualified => "qualified",
            Level::Invalid => "invalid",
        };
        paragraph(&mut out, form, &format!("{word} {}: {}", finding.code, clean(&finding.text)));
    }
    for table in matrix(record).into_iter().chain(tables(record)) {
        match form {
            Form::Plain(width) => out.push_str(&format!("\n{}\n{}", table.title, table.plain(width))),
            Form::Markdown => out.push_str(&format!("\n{}", table.markdown())),
        }
    }
    out.push('\n');
    paragraph(&mut out, form, &how(record));
    out
}

/// All tables but the matrix.
pub fn tables(record: &NetRecord) -> Vec<Table> {
    [stages(record), lanes(record), host_table(record)].into_iter().flatten().collect()
}

fn paragraph(out: &mut String, form: Form, text: &str) {
    let Form::Plain(width) = form else { return out.push_str(&format!("- {text}\n")) };
    let mut at = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if at > 0 && at + 1 + length > width {
            out.push_str("\n  ");
            at = 2;
        } else if at > 0 {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += length;
    }
    out.push('\n');
}

/// In a few words: how it ended.
pub fn status(record: &NetRecord) -> &'static str {
    match (record.interrupted, record.valid) {
        (true, _) => "interrupted",
        (false, true) => "valid",
        (false, false) => "invalid",
    }
}

/// In one line: what came of it.
pub fn net_result(record: &NetRecord) -> String {
    record.sentences.first().cloned().unwrap_or_else(|| "nothing was measured".into())
}

/// How it was measured.
pub fn how(record: &NetRecord) -> String {
    let asked = &record.asked;
    let found = if asked.streams_found {
        let tried: Vec<String> = record
            .streams_tried
            .iter()
            .map(|t| format!("{}: {:.3}", t.streams, t.bytes_per_s * 8e-9))
            .collect();
        format!(" (found; Gbit/s by streams: {})", tried.join(", "))
    } else {
        String::new()
    };
    format!(
        "TCP payload as it arrived, in slices of 100 ms, discarded in the receiver's kernel; {} stream(s) a lane{found}; {} s after \
         {} s of warm-up in each stage; 95 % intervals.",
        asked.streams, asked.measured_s, asked.warmup_s
    )
}

fn gbit(e: Option<&Estimate>) -> String {
    e.map_or_else(|| MISSING.into(), |e| crate::number::estimate(&e.scaled(8e-9)))
}

fn gib(e: Option<&Estimate>) -> String {
    e.map_or_else(|| MISSING.into(), |e| crate::number::value(&e.scaled(1.0 / (1u64 << 30) as f64)))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| MISSING.into(), |s| format!("{:.2} %", 100.0 * s))
}

/// The rate of the second half of a window beside that of the first.
fn moved(halves: Option<&[Estimate; 2]>) -> String {
    match halves {
        Some([first, second]) if first.value > 0.0 => {
            format!("{:+.1} %", 100.0 * (second.value / first.value - 1.0))
        }
        _ => MISSING.into(),
    }
}

fn stages(record: &NetRecord) -> Option<Table> {
    let mut table =
        Table::new("Stages", 2, &["pattern", "stage", ">lanes", ">Gbit/s", ">2nd half", ">GiB/s"]);
    for s in &record.stages {
        let (rate, gib) = (gbit(s.bytes_per_s.as_ref()), gib(s.bytes_per_s.as_ref()));
        table.push(vec![
            s.pattern.clone(),
            clean(&s.title).into_owned(),
            s.lanes.len().to_string(),
            rate,
            moved(s.halves.as_ref()),
            gib,
        ]);
    }
    (record.stages.len() > 1).then_some(table)
}

fn trips(r: Option<&RoundTrips>, of: fn(&RoundTrips) -> u32) -> String {
    r.map_or_else(|| MISSING.into(), |r| format!("{:.2}", f64::from(of(r)) / 1e3))
}

/// How pairs were measured, in words.
pub fn pairs_at_once(record: &NetRecord) -> String {
    match record.pairs_at_once() {
        0 | 1 => "one pair at a time".into(),
        n => format!("{n} disjoint pairs at the same time"),
    }
}

/// The lanes; of more than fit those that carried least, of pairs where these were measured: the title says which.
fn lanes(record: &NetRecord) -> Option<Table> {
    let mut all: Vec<(&str, &NetLane)> =
        record.stages.iter().flat_map(|s| s.lanes.iter().map(|l| (s.pattern.as_str(), l))).collect();
    let mut title = "Lanes".to_owned();
    if all.len() > WORST {
        let rate = |l: &NetLane| l.bytes_per_s.map_or(0.0, |e| e.value);
        all.retain(|(pattern, _)| *pattern == "pairs" || !record.stages.iter().any(|s| s.pattern == "pairs"));
        all.sort_by(|a, b| rate(a.1).total_cmp(&rate(b.1)));
        let of = if all.iter().all(|(pattern, _)| *pattern == "pairs") { " of pairs" } else { "" };
        title = match all.len() {
            n if n > WORST => format!("The {WORST} of {n} lanes{of} that carried least"),
            _ => format!("Lanes{of}"),
        };
        all.truncate(WORST);
    }
    let heads = [
        "from",
        "to",
        "in",
        ">Gbit/s",
        ">2nd half",
        ">MTU",
        ">sent again",
        ">rtt idle ms",
        ">loaded p50",
        ">loaded p99",
        "limited by",
    ];
    let mut table = Table::new(&title, 2, &heads);
    for (pattern, l) in &all {
        let kinds: Vec<&str> = l.limited_by.iter().map(|x| x.kind.as_str()).collect();
        table.push(vec![
            clean(record.name_of(l.from)).into_owned(),
            clean(record.name_of(l.to)).into_owned(),
            (*pattern).to_owned(),
            gbit(l.bytes_per_s.as_ref()),
            moved(l.halves.as_ref()),
            l.path_mtu_bytes.map_or_else(|| MISSING.into(), |m| m.to_string()),
            percent(l.retransmitted_share),
            trips(l.idle.as_ref(), |r| r.p50_us),
            trips(l.loaded.as_ref(), |r| r.p50_us),
            trips(l.loaded.as_ref(), |r| r.p99_us),
            kinds.join(", "),
        ]);
    }
    (!all.is_empty()).then(|| table.without_empty_columns())
}

/// Payload of each pair, from the row's host to the column's, beside as many others as the title says.
fn matrix(record: &NetRecord) -> Option<Table> {
    let n = record.hosts.len();
    if !(3..=MOST_IN_MATRIX).contains(&n) || !record.stages.iter().any(|s| s.pattern == "pairs") {
        return None;
    }
    let names: Vec<String> = record.hosts.iter().map(|h| clean(&h.name).into_owned()).collect();
    let heads: Vec<String> = names.iter().map(|name| format!(">to {name}")).collect();
    let heads: Vec<&str> = std::iter::once("from").chain(heads.iter().map(String::as_str)).collect();
    let title = format!("Pairs, {}, one direction: Gbit/s", pairs_at_once(record));
    let mut table = Table::new(&title, 1, &heads);
    for (from, name) in names.iter().enumerate() {
        let cell = |to: usize| {
            let e = pair(record, from, to).and_then(|l| l.bytes_per_s);
            e.map_or_else(
                || if from == to { String::new() } else { MISSING.into() },
                |e| format!("{:.3}", e.value * 8e-9),
            )
        };
        table.push(std::iter::once(name.clone()).chain((0..n).map(cell)).collect());
    }
    Some(table)
}

/// The lane of a pair in one direction, with [`pairs_at_once`].
pub fn pair(record: &NetRecord, from: usize, to: usize) -> Option<&NetLane> {
    let pairs = record.stages.iter().filter(|s| s.pattern == "pairs").flat_map(|s| &s.lanes);
    pairs.into_iter().find(|l| (l.from, l.to) == (from, to))
}

fn host_table(record: &NetRecord) -> Option<Table> {
    let heads = [
        "host",
        "role",
        ">out Gbit/s",
        ">in Gbit/s",
        "interface",
        ">MTU",
        ">link Mbit/s",
        ">CPU s/GiB",
        ">machine CPU s/GiB",
        ">busiest core",
        ">softnet drops",
        ">NIC drops",
    ];
    let mut table = Table::new("Hosts: the most that each carried, and what it cost", 1, &heads);
    for (number, host) in record.hosts.iter().enumerate() {
        let loads: Vec<_> =
            record.stages.iter().flat_map(|s| &s.hosts).filter(|l| l.host == number).collect();
        let (out, into) = record.most_of(number);
        let used = record.stages.iter().flat_map(|s| &s.lanes).find_map(|l| {
            let name = if l.from == number { &l.from_interface } else { &l.to_interface };
            let is_of = l.from == number || l.to == number;
            host.interfaces.iter().find(|i| is_of && i.name == *name)
        });
        let most = |of: &dyn Fn(&plimsoll_model::net::HostLoad) -> Option<f64>| {
            loads.iter().filter_map(|l| of(l)).reduce(f64::max)
        };
        let figure = |x: Option<f64>| x.map_or_else(|| MISSING.into(), |x| format!("{x:.2}"));
        let drops = |of: &dyn Fn(&plimsoll_model::net::HostLoad) -> u64| {
            loads.iter().map(|l| of(l)).sum::<u64>().to_string()
        };
        table.push(vec![
            clean(&host.name).into_owned(),
            clean(&host.role).into_owned(),
            gbit(out.as_ref()),
            gbit(into.as_ref()),
            used.map_or_else(|| MISSING.into(), |i| clean(&i.name).into_owned()),
            used.map_or_else(|| MISSING.into(), |i| i.mtu_bytes.to_string()),
            used.and_then(|i| i.speed_mbit_per_s).map_or_else(|| "not known".into(), |s| s.to_string()),
            figure(most(&|l| l.cpu_s_per_gib)),
            figure(most(&|l| l.machine_cpu_s_per_gib)),
            percent(most(&|l| l.busiest_core)),
            drops(&|l| l.softnet_dropped),
            drops(&|l| l.interfaces.iter().map(|i| i.dropped).sum()),
        ]);
    }
    (!record.stages.is_empty()).then(|| table.without_empty_columns())
}
