//! The tables of a publication: in the form that such tables are published in, each also as Markdown and CSV.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_campaign::{BurstFigures, CampaignResult, CampaignRow, IntervalOf};
use plimsoll_model::Estimate;
use plimsoll_model::count::{are, counted};
use plimsoll_model::text::clean;
use plimsoll_model::units::format_latency_ns;
use plimsoll_report::number;
use plimsoll_report::table::Table;

use crate::axis_tables::by_axis;
use crate::gather::{PublishedRun, proved};
use crate::promise::promises;
use crate::served::served;

/// A table, and what of its rows is to be known.
#[derive(Debug, Clone)]
pub struct SiteTable {
    /// Name of its files.
    pub slug: String,
    /// With heads.
    pub table: Table,
    /// Of each row: the row of the results whose runs its numbers come from.
    pub of: Vec<Option<usize>>,
    /// Of each row: it has no figure that may be quoted.
    pub void: Vec<bool>,
    /// What is said under it.
    pub notes: Vec<String>,
}

impl SiteTable {
    pub(crate) fn new(slug: &str, table: Table) -> Self {
        let n = table.rows.len();
        Self { slug: slug.to_owned(), table, of: vec![None; n], void: vec![false; n], notes: Vec::new() }
    }
}

/// Why a row has no figure: `void V04`, `missing`.
pub fn missing(r: &CampaignRow) -> Option<String> {
    r.missing("missing")
}

/// What an interval is of, in a word.
pub fn interval_of(of: Option<IntervalOf>) -> &'static str {
    match of {
        Some(IntervalOf::Instances) => "instances",
        Some(IntervalOf::Runs) => "runs",
        Some(IntervalOf::Rounds) => "rounds of one run",
        Some(IntervalOf::OneRun) => "one run",
        None => "",
    }
}

/// What binds, as tables have it.
pub fn bound(word: &str) -> &str {
    match word {
        "none" => "not found",
        "undetermined" => "not known",
        "bytes" => "throughput",
        other => other,
    }
}

pub fn mib(e: &Estimate) -> Estimate {
    e.scaled(1.0 / number::MIB)
}

pub(crate) fn text(s: &str) -> String {
    clean(s).into_owned()
}

/// All tables that have a row.
pub fn tables(result: &CampaignResult, runs: &[PublishedRun]) -> Vec<SiteTable> {
    let mut all = vec![results(result)];
    all.extend(by_size(result));
    all.extend(by_axis(result));
    all.push(promised(result));
    all.push(served(result));
    all.push(limits(result, runs));
    all.push(costs(result, runs));
    all.push(without_figures(result, runs));
    all.push(machines(runs));
    all.retain(|t| !t.table.rows.is_empty());
    all
}

fn results(result: &CampaignResult) -> SiteTable {
    let columns = [
        "subject",
        "workload",
        "op",
        ">op/s",
        ">MiB/s",
        ">promised",
        ">difference",
        ">p50",
        ">p99",
        ">refused",
        "limited by",
        ">valid runs",
        "interval of",
        "remark",
    ];
    let mut table = Table::new("Results", 2, &columns);
    let latency = |ns: Option<u64>| ns.map(|n| format_latency_ns(n as f64)).unwrap_or_default();
    for r in &result.rows {
        let all = r.runs.len() + r.void.len();
        let runs = if all == r.runs.len() { all.to_string() } else { format!("{} of {all}", r.runs.len()) };
        let own = crate::promise::of_row(r);
        let mut remark = Vec::new();
        remark
            .extend(r.held_for_s.map(|s| format!("held for {}, as long as it was seen", number::seconds(s))));
        remark.extend((r.to_go > 0).then(|| format!("{} to go", counted(r.to_go, "run"))));
        remark.extend(
            r.wider_than_asked.map(|w| format!("interval {} wide, wider than asked", number::percent(w))),
        );
        remark.extend(
            (!r.void.is_empty() && r.rate().is_some()).then(|| format!("void runs: {}", r.codes().join(" "))),
        );
        remark.extend(match r.remarks.len() {
            0 => None,
            n => Some(format!("{} began without rest", counted(n, "run"))),
        });
        remark.extend((!r.tools.is_empty()).then(|| format!("measured by {}", r.tools.join(", "))));
        let cells = [
            r.subject.clone(),
            r.workload.clone(),
            r.line_name().to_owned(),
            missing(r).unwrap_or_else(|| number::estimate_or_missing(r.ops_per_s.as_ref())),
            r.bytes_per_s.as_ref().map(|b| number::estimate(&mib(b))).unwrap_or_default(),
            own.as_ref().map(|p| p.promised.clone()).unwrap_or_default(),
            own.as_ref().map(|p| p.difference()).unwrap_or_default(),
            latency(r.p50_ns),
            latency(r.p99_ns),
            number::refused(r.refused, r.refused_ops),
            r.bound.as_deref().map(bound).unwrap_or_default().to_owned(),
            runs,
            interval_of(r.interval_of).to_owned(),
            remark.join("; "),
        ];
        table.push(cells.map(|c| text(&c)).to_vec());
    }
    let mut out = SiteTable::new("results", table.without_empty_columns());
    out.of = (0..result.rows.len()).map(Some).collect();
    out.void = result.rows.iter().map(|r| r.rate().is_none()).collect();
    out.notes = notes(result);
    out
}

fn notes(result: &CampaignResult) -> Vec<String> {
    let mut out = vec![
        "Figures are means with their 95 % interval; failed and refused ops are in none. \"void\" and its codes: no run of the cell may be quoted; \"missing\": none was made.".to_owned(),
    ];
    if result.rows.iter().any(|r| r.interval_of == Some(IntervalOf::OneRun)) {
        out.push("Interval of one run: another run may differ by more than it says.".into());
    }
    if result.rows.iter().any(|r| r.interval_of == Some(IntervalOf::Rounds)) {
        out.push("Interval of rounds of one run: measured in succession, on the same place.".into());
    }
    if result.rows.iter().any(|r| crate::promise::of_row(r).is_some()) {
        out.push("Difference to what is promised: of the op/s where op/s bind or are all that is promised, of the throughput where it binds; with the interval of what was measured.".into());
    }
    if result.to_go > 0 {
        out.push(format!(
            "{} {} to go: figures may still change.",
            counted(result.to_go, "run"),
            are(result.to_go)
        ));
    }
    out
}

/// More subjects than a table has room for stand in the results alone.
const MOST_SUBJECTS: usize = 12;

/// Op by size, a column for each subject: where there are several sizes or several subjects.
fn by_size(result: &CampaignResult) -> Vec<SiteTable> {
    let mut subjects: Vec<&str> = Vec::new();
    result.rows.iter().for_each(|r| {
        if !subjects.contains(&r.subject.as_str()) {
            subjects.push(&r.subject);
        }
    });
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for r in &result.rows {
        let key = (r.workload.as_str(), r.line_name());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if subjects.len() < 2 || subjects.len() > MOST_SUBJECTS || keys.len() < 2 {
        return Vec::new();
    }
    let heads = |unit: &str| -> Vec<String> {
        let own = subjects.iter().map(|s| format!(">{}, {unit}", text(s)));
        ["workload".to_owned(), "op".to_owned()].into_iter().chain(own).collect()
    };
    let make = |slug, title: &str, unit: &str, of: &dyn Fn(&CampaignRow) -> Option<Estimate>| {
        let heads = heads(unit);
        let mut table = Table::new(title, 2, &heads.iter().map(String::as_str).collect::<Vec<_>>());
        for (workload, line) in &keys {
            let cell = |subject: &&str| {
                let row = result
                    .rows
                    .iter()
                    .find(|r| r.subject == **subject && r.workload == *workload && r.line_name() == *line);
                match row {
                    None => String::new(),
                    Some(r) => of(r).map(|e| number::estimate(&e)).or_else(|| missing(r)).unwrap_or_default(),
                }
            };
            let mut cells = vec![text(workload), text(line)];
            cells.extend(subjects.iter().map(|s| text(&cell(s))));
            table.push(cells);
        }
        SiteTable::new(slug, table)
    };
    let mut out = vec![make("rate-by-subject", "Op/s, subject by subject", "op/s", &|r| r.ops_per_s)];
    if result.rows.iter().any(|r| r.bytes_per_s.is_some()) {
        let throughput = |r: &CampaignRow| r.bytes_per_s.as_ref().map(mib);
        out.push(make("throughput-by-subject", "MiB/s, subject by subject", "MiB/s", &throughput));
    }
    out
}

fn promised(result: &CampaignResult) -> SiteTable {
    let columns = ["subject", "what", ">promised", ">most measured", ">difference", "workload", "verdict"];
    let mut table = Table::new("Promised and measured", 2, &columns);
    let mut of = Vec::new();
    for p in promises(result) {
        table.push(
            [
                p.subject.clone(),
                p.what.to_owned(),
                p.promised.clone(),
                p.measured_text(),
                p.difference(),
                p.workload.clone(),
                p.verdict().to_owned(),
            ]
            .map(|c| text(&c))
            .to_vec(),
        );
        of.push(p.row);
    }
    let mut out = SiteTable::new("promised", table);
    out.of = of;
    out.notes = vec!["The most that any workload of the campaign had is held against the promise. \"Not reached\" says that no workload here did; it may be one that no limit of the subject held.".into()];
    out
}

/// Limits that runs proved, by subject and op: the run that knew most of each.
pub fn proved_limits<'a>(
    result: &'a CampaignResult,
    runs: &'a [PublishedRun],
) -> Vec<(usize, &'a CampaignRow, &'a plimsoll_model::summary::LimitSummary)> {
    let by_name: BTreeMap<&str, &PublishedRun> = runs.iter().map(|r| (r.run.as_str(), r)).collect();
    let mut out: Vec<(usize, &CampaignRow, &plimsoll_model::summary::LimitSummary)> = Vec::new();
    for (i, row) in result.rows.iter().enumerate() {
        for run in row.runs.iter().filter_map(|r| by_name.get(r.as_str())) {
            let of_op = run.limits.iter().filter(|l| l.op_class == row.op);
            let known = |l: &&plimsoll_model::summary::LimitSummary| {
                proved(l.ops_per_s.as_ref()).is_some() || proved(l.bytes_per_s.as_ref()).is_some()
            };
            for l in of_op.filter(known) {
                let both = |l: &plimsoll_model::summary::LimitSummary| {
                    [&l.ops_per_s, &l.bytes_per_s]
                        .into_iter()
                        .filter(|b| proved(b.as_ref()).is_some())
                        .count()
                };
                match out.iter_mut().find(|(_, r, _)| {
                    r.subject == row.subject && r.workload == row.workload && r.op == row.op
                }) {
                    Some(seen) if both(l) > both(seen.2) => *seen = (i, row, l),
                    Some(_) => {}
                    None => out.push((i, row, l)),
                }
            }
        }
    }
    out
}

fn limits(result: &CampaignResult, runs: &[PublishedRun]) -> SiteTable {
    let columns = [
        "subject",
        "workload",
        "op",
        ">op/s",
        ">burst, op/s",
        ">MiB/s",
        ">burst, MiB/s",
        ">burst lasts",
        ">full again after",
        ">knee",
        "binds",
        ">seen for",
    ];
    let mut table = Table::new("Limits that were proved", 3, &columns);
    let mut of = Vec::new();
    for (i, row, l) in proved_limits(result, runs) {
        let burst = |b: &Option<plimsoll_model::summary::BucketSummary>| {
            b.as_ref().filter(|b| b.proved).and_then(|b| b.burst)
        };
        let show = |e: Option<Estimate>| e.map(|e| number::estimate(&e)).unwrap_or_default();
        let horizon =
            [&l.ops_per_s, &l.bytes_per_s].into_iter().flatten().filter_map(|b| b.horizon_s).reduce(f64::max);
        let cells = [
            row.subject.clone(),
            row.workload.clone(),
            l.op_class.clone(),
            show(proved(l.ops_per_s.as_ref())),
            show(burst(&l.ops_per_s)),
            show(proved(l.bytes_per_s.as_ref()).as_ref().map(mib)),
            show(burst(&l.bytes_per_s).as_ref().map(mib)),
            of_burst(row, |b| b.lasts_s),
            of_burst(row, |b| b.full_again_s),
            l.knee_bytes.as_ref().map(number::size_estimate).unwrap_or_default(),
            bound(&l.binding).to_owned(),
            horizon.map(number::seconds).unwrap_or_default(),
        ];
        table.push(cells.map(|c| text(&c)).to_vec());
        of.push(Some(i));
    }
    let mut out = SiteTable::new("limits", table.without_empty_columns());
    out.of = of;
    out.notes = vec![
        "Rates and knees are each of one run, with the interval within it: the rate that a limiter held. Longer bursts than it was seen for are not excluded.".into(),
        "How long a burst lasts at its rate, from a full bucket, and the rest until it is full again: over all valid runs, of ops and of payload.".into(),
    ];
    out
}

/// Seconds over all runs of a row, of ops and of payload.
fn of_burst(row: &CampaignRow, of: fn(&BurstFigures) -> Option<Estimate>) -> String {
    let Some(l) = &row.limit else { return String::new() };
    let one = |(b, unit): (&Option<BurstFigures>, &str)| {
        let e = of(b.as_ref()?)?;
        // A bound is an interval without an upper end.
        let seconds = if e.high >= f64::MAX {
            format!("at least {}", number::seconds(e.value))
        } else {
            format!("{} s", number::estimate(&e))
        };
        Some(format!("{seconds} ({unit})"))
    };
    let all: Vec<String> = [(&l.ops, "ops"), (&l.bytes, "payload")].into_iter().filter_map(one).collect();
    all.join("; ")
}

/// What a figure of cost is, in words.
pub fn cost_name(name: &str) -> String {
    name.replace('_', " ")
}

/// The figures of the first valid run of a row that was given prices.
pub fn costs_of<'a>(
    row: &CampaignRow,
    runs: &'a [PublishedRun],
) -> Option<&'a plimsoll_model::cost::CostSummary> {
    row.runs.iter().find_map(|name| runs.iter().find(|r| r.run == *name)?.cost.as_ref())
}

fn costs(result: &CampaignResult, runs: &[PublishedRun]) -> SiteTable {
    let columns = ["subject", "workload", "what", ">amount", "unit", "how", "prices of"];
    let mut table = Table::new("Costs", 3, &columns);
    let mut of = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, row) in result.rows.iter().enumerate() {
        if !seen.insert((&row.subject, &row.workload)) {
            continue;
        }
        let Some(cost) = costs_of(row, runs) else { continue };
        for f in &cost.figures {
            let cells = [
                row.subject.clone(),
                row.workload.clone(),
                cost_name(&f.name),
                number::estimate(&f.amount),
                f.unit.clone(),
                f.formula.clone(),
                format!("{} {}", cost.date, cost.region).trim().to_owned(),
            ];
            table.push(cells.map(|c| text(&c)).to_vec());
            of.push(Some(i));
        }
    }
    let mut out = SiteTable::new("costs", table);
    out.of = of;
    out.notes =
        vec!["Of one valid run each, by the price file that it was given; no price is built in.".into()];
    out
}

fn without_figures(result: &CampaignResult, runs: &[PublishedRun]) -> SiteTable {
    let mut table = Table::new("Void and missing", 2, &["subject", "workload", "what", "why"]);
    let mut of = Vec::new();
    let by_name: BTreeMap<&str, &PublishedRun> = runs.iter().map(|r| (r.run.as_str(), r)).collect();
    for (i, r) in result.rows.iter().enumerate() {
        let what = match (missing(r), r.void.len()) {
            (Some(what), _) => what,
            (None, 0) if r.to_go == 0 => continue,
            (None, 0) => format!("{} to go", counted(r.to_go, "run")),
            (None, n) => format!("{n} of {} void", counted(n + r.runs.len(), "run")),
        };
        let words = r.void.iter().filter_map(|v| by_name.get(v.run.as_str())).flat_map(|run| &run.void);
        let words: BTreeSet<String> = words.map(|(code, why)| format!("{code}: {why}")).collect();
        let mut why: Vec<String> = words.into_iter().take(3).collect();
        // 7: what was read is not what was written; that is no code of a finding that voids.
        if why.is_empty() && r.void.iter().any(|v| v.exit == 7) {
            why.push("the storage gave back other data than it was given".into());
        }
        let key = |k: &&String| {
            k.starts_with(&format!("{}/", r.subject)) && k.ends_with(&format!("/{}", r.workload))
        };
        why.extend(result.failed.iter().filter(|(k, _)| key(k)).map(|(_, w)| w.clone()));
        if why.is_empty() && !r.codes().is_empty() {
            why.push(r.codes().join(" "));
        }
        table.push([r.subject.clone(), r.workload.clone(), what, why.join(" ")].map(|c| text(&c)).to_vec());
        of.push(Some(i));
    }
    let mut out = SiteTable::new("void-and-missing", table);
    out.void = result
        .rows
        .iter()
        .enumerate()
        .filter(|(i, _)| of.contains(&Some(*i)))
        .map(|(_, r)| r.rate().is_none())
        .collect();
    out.of = of;
    out
}

fn machines(runs: &[PublishedRun]) -> SiteTable {
    let columns = [
        "machine",
        "agent",
        "CPU",
        ">cores",
        ">memory, GiB",
        "kernel",
        "provider",
        "type",
        "measured with",
        ">runs",
        "what answered",
    ];
    let mut table = Table::new("Machines", 2, &columns);
    let mut counted: BTreeMap<[String; 10], usize> = BTreeMap::new();
    for run in runs {
        for (agent, m) in &run.machines {
            let cores = m
                .cpu_quota_cores
                .map_or(m.cpu_count.to_string(), |q| format!("{} (at most {q} used)", m.cpu_count));
            let memory = m.memory_limit_bytes.unwrap_or(m.memory_bytes) as f64 / number::MIB / 1024.0;
            let id = |name: &str| m.identity.get(name).cloned().unwrap_or_default();
            let key = [
                m.host.clone(),
                agent.clone(),
                m.cpu_model.clone(),
                cores,
                number::tenth(memory),
                m.kernel.clone(),
                id("provider"),
                id("instance_type"),
                run.version.clone(),
                run.servers.join(", "),
            ];
            *counted.entry(key.map(|c| text(&c))).or_default() += 1;
        }
    }
    for (key, n) in counted {
        let [host, agent, cpu, cores, memory, kernel, provider, kind, version, servers] = key;
        table.push(vec![
            host,
            agent,
            cpu,
            cores,
            memory,
            kernel,
            provider,
            kind,
            version,
            n.to_string(),
            servers,
        ]);
    }
    SiteTable::new("machines", table.without_empty_columns())
}
