//! Tables of the limit methods: buckets, size by concurrency, comparison, scaling, load points, bottleneck, checks.

use plimsoll_model::analysis::{Analysis, BucketFit, Saturation, SaturationPoint};
use plimsoll_model::summary::{BucketSummary, LimitSummary, WorkloadSummary};
use plimsoll_model::units::{format_latency_ns, significant};
use plimsoll_model::{Estimate, RunSummary};

use crate::number::{self, MB, MIB};
use crate::table::Table;

/// Every table that has something to say, in the order in which a verdict is read.
pub fn tables(s: &RunSummary, a: &Analysis) -> Vec<Table> {
    let mut out = vec![limits(s, a)];
    out.extend(a.holds.iter().filter(|h| h.verdict == "growing").map(levels));
    out.extend(a.holds.iter().flat_map(|h| &h.cliffs).map(cliff));
    out.extend(a.size_models.iter().map(cells));
    out.extend([differences(a), comparisons(a), servers_of_sides(a)]);
    out.extend(a.scalings.iter().map(scaling));
    out.extend(searches(a));
    out.push(by_endpoint(s, a));
    out.extend(a.saturations.iter().map(saturation));
    out.extend([load_points(a), bottlenecks(a), checks(a)]);
    out.retain(|t| !t.rows.is_empty());
    out
}

/// Sustained, burst, capacity, refill per limiter.
pub fn limits(s: &RunSummary, a: &Analysis) -> Table {
    let heads =
        &["limit", ">sustained", ">burst", ">capacity", ">refill", ">full again", "scope", "binds", "status"];
    let mut t = Table::new("Limits", 1, heads);
    for l in &s.limits {
        for (unit, b) in [("ops", &l.ops_per_s), ("bytes", &l.bytes_per_s)] {
            let Some(b) = b else { continue };
            let fit =
                a.buckets.iter().find(|f| f.unit == unit && f.op_class == l.op_class && f.target == l.target);
            t.push(limit_row(l, unit, b, fit));
        }
    }
    if t.rows.is_empty() {
        for f in &a.buckets {
            let l = LimitSummary {
                target: f.target.clone(),
                op_class: f.op_class.clone(),
                scope: String::new(),
                ops_per_s: None,
                bytes_per_s: None,
                knee_bytes: None,
                binding: String::new(),
                refused: None,
                evidence: Vec::new(),
            };
            let b = BucketSummary {
                sustained: f.sustained_per_s,
                burst: f.burst_per_s,
                capacity: f.capacity,
                refill: f.refill_per_s,
                full_again_s: f.full_again_s,
                ..BucketSummary::default()
            };
            t.push(limit_row(&l, &f.unit, &b, Some(f)));
        }
    }
    t.without_empty_columns()
}

fn limit_row(l: &LimitSummary, unit: &str, b: &BucketSummary, fit: Option<&BucketFit>) -> Vec<String> {
    let (factor, rate, tokens) =
        if unit == "bytes" { (1.0 / MB, "MB/s", "MB") } else { (1.0, "op/s", "ops") };
    let with = |e: &Option<Estimate>, unit: &str| match e {
        None => "undetermined".into(),
        // A bound is an interval without an upper end.
        Some(e) if e.high >= f64::MAX => format!("at least {} {unit}", significant(e.value * factor, 3)),
        Some(e) => format!("{} {unit}", number::estimate(&e.scaled(factor))),
    };
    // From a capacity and a refill that were measured: of a bound it does not follow.
    let full = b.full_again_s.or(fit.filter(|f| f.status == "measured").and_then(|f| f.full_again_s));
    // What no limiter was proved to hold is a speed; what no burst was seen to come before may be that of a longer one.
    let seen = match (b.proved, b.capacity) {
        _ if b.sustained.is_none() => "",
        (true, Some(_)) => "",
        (true, None) => "held ",
        (false, _) => "seen ",
    };
    let status = fit.map_or_else(String::new, |f| f.status.clone());
    vec![
        format!("{} {unit}", l.op_class),
        format!("{seen}{}", with(&b.sustained, rate)),
        with(&b.burst, rate),
        with(&b.capacity, tokens),
        with(&b.refill, rate),
        full.map_or(String::new(), |f| number::seconds(f.value)),
        l.scope.clone(),
        l.binding.clone(),
        status,
    ]
}

/// Of a rate that grew, level after level.
fn levels(h: &plimsoll_model::analysis::Hold) -> Table {
    let title = format!("The rate grew in {} levels", h.levels.len());
    let mut t = Table::new(&title, 1, &["level", ">from", ">to", &format!(">{} per second", h.unit)]);
    for (i, l) in h.levels.iter().enumerate() {
        t.push(vec![
            (i + 1).to_string(),
            number::seconds(l.start_s),
            number::seconds(l.end_s),
            number::estimate(&l.per_s),
        ]);
    }
    t
}

fn cliff(c: &plimsoll_model::analysis::Cliff) -> Table {
    let title = format!(
        "Fall at {}: {} to {} per second; {}",
        number::seconds(c.at_s),
        significant(c.from_per_s, 4),
        significant(c.to_per_s, 4),
        c.verdict
    );
    let mut t = Table::new(&title, 1, &["evidence", "seen", "weight", "what"]);
    for e in &c.evidence {
        let holds = e.holds.map_or("not tested", |h| if h { "yes" } else { "no" });
        t.push(vec![e.code.clone(), holds.into(), e.weight.clone(), e.text.clone()]);
    }
    t
}

fn cells(m: &plimsoll_model::analysis::SizeModel) -> Table {
    let title = format!("{}: rate by size and concurrency, and what limits it", m.op_class);
    let mut t =
        Table::new(&title, 2, &["size", ">in flight", ">op/s", ">MiB/s", "limited by", ">room to next"]);
    let decimal = number::is_decimal(m.cells.iter().map(|c| c.size_bytes));
    for c in &m.cells {
        t.push(vec![
            number::size_among(c.size_bytes, decimal),
            c.concurrency.to_string(),
            number::estimate(&c.ops_per_s),
            number::estimate(&c.ops_per_s.scaled(c.size_bytes as f64 / MIB)),
            c.binding.clone(),
            c.room.map_or(String::new(), |r| number::percent(r - 1.0)),
        ]);
    }
    t.without_empty_columns()
}

/// How much better A is, by size: a row per size and concurrency, a column per op and measure. Positive: A is better.
fn differences(a: &Analysis) -> Table {
    let Some(first) = a.comparisons.first() else { return Table::new("", 1, &[]) };
    let mut columns: Vec<(&str, &str)> = Vec::new();
    let mut rows: Vec<(u64, u32)> = Vec::new();
    for c in &a.comparisons {
        let (column, row) = ((c.op.as_str(), c.measure.as_str()), (c.size_bytes, c.concurrency));
        if !columns.contains(&column) {
            columns.push(column);
        }
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    // Rates first, then latencies, as they are read.
    columns.sort_by_key(|(_, m)| ["rate", "mean response"].iter().position(|x| x == m).unwrap_or(2));
    rows.sort_unstable();
    let title = format!("How much better {} is than {}", first.a_name, first.b_name);
    let short = |m: &str| m.replace("mean response", "mean time").replace("p99 response", "p99 time");
    let named = |(op, measure): &(&str, &str)| format!(">{} {}", op.to_uppercase(), short(measure));
    let mut heads = vec![">size".to_owned(), ">in flight".to_owned()];
    heads.extend(columns.iter().map(named));
    let mut t = Table::new(&title, 2, &heads.iter().map(String::as_str).collect::<Vec<_>>());
    let decimal = number::is_decimal(rows.iter().map(|r| r.0));
    for (size, concurrency) in rows {
        let mut row = vec![number::size_among(size, decimal), concurrency.to_string()];
        for (op, measure) in &columns {
            let cell = a.comparisons.iter().find(|c| {
                (c.op.as_str(), c.measure.as_str()) == (*op, *measure)
                    && (c.size_bytes, c.concurrency) == (size, concurrency)
            });
            row.push(cell.map_or(String::new(), better));
        }
        t.push(row);
    }
    if first.op.is_empty() { Table::new("", 1, &[]) } else { t }
}

fn proved(c: &plimsoll_model::analysis::Comparison) -> bool {
    matches!(c.outcome.as_str(), "faster" | "slower")
}

/// `+18 %`, with a mark where nothing is proved. Of a latency, less is better.
fn better(c: &plimsoll_model::analysis::Comparison) -> String {
    let Some(r) = c.ratio else { return number::MISSING.into() };
    let gain = if c.unit == "ns" { 1.0 - r.value } else { r.value - 1.0 };
    let shown = format!("{:+.1} %", 100.0 * gain);
    if proved(c) { shown } else { format!("({shown})") }
}

fn comparisons(a: &Analysis) -> Table {
    let names = a.comparisons.first().map_or(("A", "B"), |c| (c.a_name.as_str(), c.b_name.as_str()));
    let heads = [format!(">{}", names.0), format!(">{}", names.1)];
    let title = if a.comparisons.iter().any(|c| !proved(c) && !c.op.is_empty()) {
        "Comparison (differences in brackets above are not proved)"
    } else {
        "Comparison"
    };
    let mut t = Table::new(title, 1, &["what", &heads[0], &heads[1], ">ratio", ">could see", "verdict"]);
    for c in &a.comparisons {
        let mean = |v: &[f64]| match v {
            [] => number::MISSING.into(),
            v => {
                let x = (v.iter().map(|x| x.ln()).sum::<f64>() / v.len() as f64).exp();
                if c.unit == "ns" {
                    format_latency_ns(x)
                } else {
                    format!("{} {}", significant(x, 4), c.unit)
                }
            }
        };
        t.push(vec![
            c.name.clone(),
            mean(&c.a),
            mean(&c.b),
            number::estimate_or_missing(c.ratio.as_ref()),
            c.detectable.map_or(String::new(), number::percent),
            c.verdict.clone(),
        ]);
    }
    t
}

/// What the servers used on both sides: less is better.
fn servers_of_sides(a: &Analysis) -> Table {
    let names = a.comparisons.first().map_or(("A", "B"), |c| (c.a_name.as_str(), c.b_name.as_str()));
    let heads = [format!(">{}", names.0), format!(">{}", names.1)];
    let mut t =
        Table::new("What the servers used (less is better)", 1, &["what", &heads[0], &heads[1], ">ratio"]);
    let mean = |v: &[f64], unit: &str| {
        format!("{} {unit}", significant(v.iter().sum::<f64>() / v.len().max(1) as f64, 3))
    };
    for c in &a.server_comparisons {
        t.push(vec![
            c.measure.clone(),
            mean(&c.a, &c.unit),
            mean(&c.b, &c.unit),
            number::estimate_or_missing(c.ratio.as_ref()),
        ]);
    }
    t
}

fn scaling(s: &plimsoll_model::analysis::Scaling) -> Table {
    let title = if s.name.is_empty() { "Scaling".into() } else { format!("Scaling: {}", s.name) };
    // Bytes are counted by the MiB, as everywhere.
    let (factor, unit) = if s.unit == "bytes/s" { (1.0 / MIB, "MiB/s") } else { (1.0, s.unit.as_str()) };
    let rate = format!(">{unit}");
    let per_s = |e: &Estimate| number::estimate(&e.scaled(factor));
    let ceiling = format!(">ceiling {unit}");
    let heads = [">nodes", &rate, ">efficiency", "status", "limited by", &ceiling];
    let mut t = Table::new(&title, 1, &heads);
    let efficiency = |e: &Option<Estimate>| e.map_or(String::new(), |e| number::estimate(&e));
    for p in &s.points {
        t.push(vec![
            p.nodes.to_string(),
            per_s(&p.per_s),
            efficiency(&p.efficiency),
            "measured".into(),
            p.limited_by.clone().unwrap_or_default(),
            p.ceiling_per_s.map_or(String::new(), |c| significant(c * factor, 3)),
        ]);
    }
    for p in &s.predictions {
        let status = if p.speculative { "predicted, speculative" } else { "predicted" };
        let mut row = vec![p.nodes.to_string(), per_s(&p.per_s), efficiency(&p.efficiency), status.into()];
        row.extend([String::new(), String::new()]);
        t.push(row);
    }
    t.without_empty_columns()
}

/// Of several searches the answer of each, a line an op.
pub fn searches(a: &Analysis) -> Option<Table> {
    if a.saturations.len() < 2 {
        return None;
    }
    let heads = &[
        "op",
        "size",
        ">in flight",
        ">op/s",
        ">MiB/s",
        ">of network",
        ">of drives",
        ">p50",
        ">p99",
        "result",
    ];
    let mut t = Table::new("Best concurrency", 2, heads);
    for s in &a.saturations {
        let best = s.c95.and_then(|c| s.points.iter().find(|p| p.concurrency == c.value as u32));
        let void = !s.invalid.is_empty();
        let best = best.filter(|_| !void);
        let moves =
            plimsoll_model::OpKind::parse(&s.op_class).is_none_or(plimsoll_model::OpKind::moves_bytes);
        let bytes = |p: &SaturationPoint| number::estimate(&p.ops_per_s.scaled(s.size_bytes as f64 / MIB));
        let time = |ns: Option<u64>| ns.map_or(String::new(), |ns| format_latency_ns(ns as f64));
        t.push(vec![
            s.op_class.to_uppercase(),
            if moves { number::size(s.size_bytes) } else { "-".into() },
            best.map_or(String::new(), |p| p.concurrency.to_string()),
            best.map_or(number::MISSING.into(), |p| number::estimate(&p.ops_per_s)),
            best.filter(|_| moves).map_or(String::new(), bytes),
            best.map_or(String::new(), |p| part_of(s, "network", p)),
            best.map_or(String::new(), |p| part_of(s, "drive", p)),
            best.map_or(String::new(), |p| time(p.p50_ns)),
            best.map_or(String::new(), |p| time(p.p99_ns)),
            match void {
                true => format!("[INVALID {}]", s.invalid.join(" ")),
                false => s.result(),
            },
        ]);
    }
    Some(t.without_empty_columns())
}

/// Part of what the cluster's network, or its drives, let through; empty where that is not known.
fn part_of(s: &Saturation, resource: &str, p: &SaturationPoint) -> String {
    s.part_of(resource, p.ops_per_s.value).map_or(String::new(), number::percent)
}

/// What each endpoint did where a search found its best: with an endpoint a node, the nodes of a cluster, and how even they were.
fn by_endpoint(s: &RunSummary, a: &Analysis) -> Table {
    let heads = ["op", "endpoint", ">in flight", ">op/s", ">MiB/s", ">mean", ">max", ">failed"];
    let mut t = Table::new("At the best concurrency, by endpoint", 2, &heads);
    for search in a.saturations.iter().filter(|x| x.invalid.is_empty()) {
        let Some(best) = search.c95.map(|c| c.value as u32) else { continue };
        let is_best = |w: &&WorkloadSummary| {
            w.op == search.op_class && w.size_bytes == search.size_bytes && w.concurrency == best && w.valid
        };
        let Some(line) = s.workloads.iter().find(is_best).filter(|w| w.per_endpoint.len() > 1) else {
            continue;
        };
        for e in &line.per_endpoint {
            t.push(vec![
                search.op_class.to_uppercase(),
                e.endpoint.clone(),
                best.to_string(),
                significant(e.ops_per_s, 3),
                significant(e.bytes_per_s / MIB, 3),
                format_latency_ns(e.mean_response_ns),
                format_latency_ns(e.max_response_ns as f64),
                number::count(e.failed),
            ]);
        }
    }
    t
}

fn saturation(s: &Saturation) -> Table {
    let title = format!("Rate by concurrency: {} {}; {}", s.op_class, number::size(s.size_bytes), s.result());
    let heads = &[">in flight", ">op/s", ">MiB/s", ">of network", ">of drives", ">p50", ">p99"];
    let mut t = Table::new(&title, 1, heads);
    for p in &s.points {
        t.push(vec![
            p.concurrency.to_string(),
            number::estimate(&p.ops_per_s),
            number::estimate(&p.ops_per_s.scaled(s.size_bytes as f64 / MIB)),
            part_of(s, "network", p),
            part_of(s, "drive", p),
            p.p50_ns.map_or(String::new(), |ns| format_latency_ns(ns as f64)),
            p.p99_ns.map_or(String::new(), |ns| format_latency_ns(ns as f64)),
        ]);
    }
    t.without_empty_columns()
}

fn load_points(a: &Analysis) -> Table {
    let heads = &[
        "op",
        ">load",
        ">offered/s",
        ">achieved/s",
        ">response p50",
        ">p99",
        ">p99.9",
        ">service p50",
        ">p99",
        "held",
    ];
    let mut t = Table::new("Latency at fractions of the sustained limit", 2, heads);
    for p in &a.load_points {
        let of = |l: &Option<plimsoll_model::summary::LatencySummary>,
                  q: fn(&plimsoll_model::summary::LatencySummary) -> Option<u64>| {
            l.as_ref().and_then(q).map_or(number::MISSING.into(), |n| format_latency_ns(n as f64))
        };
        t.push(vec![
            p.op_class.clone(),
            number::percent(p.fraction),
            significant(p.offered_per_s, 4),
            number::estimate_or_missing(p.achieved_per_s.as_ref()),
            of(&p.response, |l| l.p50),
            of(&p.response, |l| l.p99),
            of(&p.response, |l| l.p999),
            of(&p.service, |l| l.p50),
            of(&p.service, |l| l.p99),
            match (&p.invalid[..], p.sustainable) {
                ([], true) => "yes".into(),
                ([], false) => "NO".into(),
                (codes, _) => format!("[INVALID {}]", codes.join(" ")),
            },
        ]);
    }
    t.without_empty_columns()
}

fn bottlenecks(a: &Analysis) -> Table {
    let next = crate::tables::NEXT_EXPERIMENT;
    let heads = &["candidate", ">measured", ">threshold", ">time above", "verdict", next];
    let mut t = Table::new("What could be the bottleneck", 1, heads);
    for b in &a.bottlenecks {
        t.push(vec![
            b.candidate.clone(),
            b.measured.clone(),
            b.threshold.clone(),
            b.time_fraction.map_or(String::new(), number::percent),
            b.verdict.clone(),
            b.next.clone(),
        ]);
    }
    t.without_empty_columns()
}

fn checks(a: &Analysis) -> Table {
    let mut t =
        Table::new("Validity checks", 1, &["check", "name", "result", ">measured", "threshold", "remedy"]);
    let (untested, tested): (Vec<_>, Vec<_>) = a.checks.iter().partition(|c| c.result == "not tested");
    for c in tested {
        t.push(vec![
            c.code.clone(),
            c.name.clone(),
            c.result.clone(),
            c.measured.clone(),
            c.threshold.clone(),
            c.remedy.clone(),
        ]);
    }
    if !untested.is_empty() && !t.rows.is_empty() {
        let codes: Vec<&str> = untested.iter().map(|c| c.code.as_str()).collect();
        let mut row = vec!["others".to_owned(), codes.join(", "), "not tested".to_owned()];
        row.resize(6, String::new());
        t.push(row);
    }
    t.without_empty_columns()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::analysis::Saturation;
    use plimsoll_model::summary::EndpointSummary;

    use super::*;

    #[test]
    fn the_nodes_of_a_cluster_stand_where_their_search_found_its_best() {
        let endpoint = |n: u32| EndpointSummary {
            endpoint: format!("http://s{n}:9000"),
            ops_per_s: f64::from(n),
            bytes_per_s: f64::from(n) * MIB,
            mean_response_ns: 5e8,
            max_response_ns: 900_000_000,
            ok: 10,
            throttled: 0,
            failed: 0,
        };
        let line = |concurrency: u32, endpoints: u32| WorkloadSummary {
            op: "put".into(),
            size_bytes: 1 << 20,
            concurrency,
            valid: true,
            per_endpoint: (1..=endpoints).map(endpoint).collect(),
            ..WorkloadSummary::default()
        };
        let search = Saturation {
            op_class: "put".into(),
            size_bytes: 1 << 20,
            c95: Some(Estimate::exact(16.0)),
            ..Saturation::default()
        };
        let a = Analysis { saturations: vec![search], ..Analysis::default() };
        let of = |lines| by_endpoint(&RunSummary { workloads: lines, ..RunSummary::default() }, &a);
        let t = of(vec![line(8, 3), line(16, 2)]);
        let rows: Vec<&str> = t.rows.iter().map(|r| r[1].as_str()).collect();
        assert_eq!(
            (rows, t.rows[1][2].as_str(), t.rows[1][4].as_str()),
            (vec!["http://s1:9000", "http://s2:9000"], "16", "2.00")
        );
        assert!(of(vec![line(16, 1)]).rows.is_empty(), "of one endpoint there is nothing to compare");
    }

    #[test]
    fn a_bound_is_told_as_one() {
        let bound = Estimate { value: 90.2e6, low: 90.2e6, high: f64::MAX, n_eff: 1.0 };
        let b = BucketSummary { capacity: Some(bound), ..BucketSummary::default() };
        let l = LimitSummary {
            target: String::new(),
            op_class: "get".into(),
            scope: String::new(),
            ops_per_s: None,
            bytes_per_s: Some(b.clone()),
            knee_bytes: None,
            binding: String::new(),
            refused: None,
            evidence: Vec::new(),
        };
        let row = limit_row(&l, "bytes", &b, None);
        assert_eq!(
            (row[1].as_str(), row[3].as_str(), row[5].as_str()),
            ("undetermined", "at least 90.2 MB", "")
        );
        // A rate that no limiter was proved to hold is a speed; of a bound no time follows.
        let seen = BucketSummary { sustained: Some(Estimate::symmetric(10e6, 1e6, 9.0)), ..b };
        let row = limit_row(&l, "bytes", &seen, None);
        assert_eq!((row[1].as_str(), row[5].as_str()), ("seen 10.0 ± 1.0 MB/s", ""));
    }
}
