//! What a run costs: a table of its lines, and each figure with its arithmetic.

use std::fmt::Write as _;

use plimsoll_model::cost::{CostFigure, CostSummary};
use plimsoll_model::units::significant;
use plimsoll_model::{Estimate, RunSummary};

use crate::number;
use crate::table::{Table, escape_markdown, wrap};
use crate::terminal::Style;

/// Figures that each line of results has, with the head of their column.
const BY_LINE: [(&str, &str); 3] = [
    ("per_1000_ops_per_s", ">a month per 1,000"),
    ("per_mib_per_s", ">a month per MiB/s"),
    ("month_at_rate", ">a month at this rate"),
];

/// An amount of money: to the cent, or three digits of what is less than one.
pub fn money(x: f64) -> String {
    if !x.is_finite() {
        return "unbounded".into();
    }
    if x == 0.0 || x.abs() >= 1.0 { number::cents(x) } else { significant(x, 3) }
}

/// `142.56 (129.60 to 155.52)`; without an interval where it is exact.
fn amount(e: &Estimate) -> String {
    let (value, low, high) = (money(e.value), money(e.low), money(e.high));
    if low == value && high == value { value } else { format!("{value} ({low} to {high})") }
}

/// A row for each line of results that has a figure; no rows: there are none.
pub(crate) fn table(c: &CostSummary) -> Table {
    let heads: Vec<&str> = std::iter::once("line").chain(BY_LINE.iter().map(|(_, head)| *head)).collect();
    let mut t = Table::new(&format!("Cost in {}", c.currency), 1, &heads);
    let mut lines: Vec<&str> = Vec::new();
    for line in c.figures.iter().filter_map(|f| f.workload.as_deref()) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    for line in lines {
        let of = |name: &str| {
            let f = c.figures.iter().find(|f| f.name == name && f.workload.as_deref() == Some(line));
            f.map_or(String::new(), |f| amount(&f.amount))
        };
        t.push(std::iter::once(line.to_owned()).chain(BY_LINE.iter().map(|(name, _)| of(name))).collect());
    }
    t.without_empty_columns()
}

/// What stands beside the table: the figures of the run as a whole, where prices are from, and what cannot be said.
pub(crate) fn notes(c: &CostSummary, all: bool) -> Vec<String> {
    let figure = |f: &CostFigure| {
        let what = match (f.name.as_str(), &f.workload) {
            ("month", _) => "A month of it".to_owned(),
            ("per_usable_tib", _) => "A month of a usable TiB".into(),
            ("run", _) => "The load of this run".into(),
            ("month_at_rate", Some(line)) => format!("{line}, a month at this rate"),
            (_, Some(line)) => line.clone(),
            (name, None) => name.replace('_', " "),
        };
        format!("{what}: {} {} ({})", amount(&f.amount), f.unit, f.formula)
    };
    let shown = c.figures.iter().filter(|f| all || f.workload.is_none());
    let mut out: Vec<String> = shown.map(figure).collect();
    let file = match c.sha256.get(..12) {
        Some(start) => format!("; price file SHA-256 {start}..."),
        None => String::new(),
    };
    out.push(format!(
        "Prices of {}, {}, {}, as given: {}{file}. A month has {} h. Prices are taken as exact; intervals are of the measured rate.",
        c.subject,
        c.region,
        c.date,
        c.source,
        c.month_s / 3600.0
    ));
    if !c.counted.is_empty() {
        out.push(format!(
            "Of requests: {}. An op that is in none of them is not paid for.",
            c.counted.join("; ")
        ));
    }
    if c.figures.iter().any(|f| f.name == "run") {
        out.push(
            "The load of this run is what its ops sent, warm-up included; data made ready before it and removed after it is not in it."
                .into(),
        );
    }
    out.extend(c.open.iter().map(|why| format!("Not known: {why}.")));
    out
}

/// The section of a report, and what `plimsoll cost` prints. `all`: the arithmetic of each line, too.
pub fn cost_terminal(c: &CostSummary, all: bool, style: Style) -> String {
    let t = table(c);
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.bold(&t.title));
    if !t.rows.is_empty() {
        out.push_str(&t.plain(style.width));
    }
    for note in notes(c, all) {
        out.push_str(&wrap(&note, style.width, "", "  "));
    }
    out
}

/// The same as Markdown.
pub fn cost_markdown(c: &CostSummary, all: bool) -> String {
    let t = table(c);
    let mut out = format!("### {}\n\n", t.title);
    if !t.rows.is_empty() {
        let _ = writeln!(out, "{}", t.markdown());
    }
    for note in notes(c, all) {
        let _ = writeln!(out, "- {}", escape_markdown(&note));
    }
    out
}

/// All figures as CSV: name, line, unit, amount with its interval, arithmetic.
pub fn cost_csv(c: &CostSummary) -> String {
    let mut out = String::from("name,line,unit,amount,low,high,formula,subject,region,date,source\n");
    let number = |x: f64| if x.is_finite() { x.to_string() } else { String::new() };
    for f in &c.figures {
        let a = &f.amount;
        let cells = [
            f.name.clone(),
            f.workload.clone().unwrap_or_default(),
            f.unit.clone(),
            number(a.value),
            number(a.low),
            number(a.high),
            f.formula.clone(),
            c.subject.clone(),
            c.region.clone(),
            c.date.clone(),
            c.source.clone(),
        ];
        let quoted: Vec<String> = cells.iter().map(|t| format!("\"{}\"", t.replace('"', "\"\""))).collect();
        out.push_str(&(quoted.join(",") + "\n"));
    }
    out
}

/// What stands at a glance: the month at the rate, else the month, and the run's own load.
pub(crate) fn in_a_line(s: &RunSummary) -> Option<String> {
    let c = s.cost.as_ref()?;
    let one = |name: &str| {
        let mut all = c.figures.iter().filter(|f| f.name == name);
        all.next().filter(|_| all.next().is_none())
    };
    let mut said: Vec<String> = Vec::new();
    let named = [("month_at_rate", " at this rate"), ("month", "")];
    said.extend(named.iter().find_map(|(name, when)| {
        let f = one(name)?;
        Some(format!("{} {}{when}", amount(&f.amount), f.unit))
    }));
    said.extend(one("run").map(|f| format!("this load {} {}", amount(&f.amount), f.unit)));
    if said.is_empty() {
        return None;
    }
    Some(format!("{} (prices of {}, {})", said.join("; "), c.subject, c.date))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> CostSummary {
        let rate = Estimate { value: 142.56, low: 129.6, high: 155.52, n_eff: 20.0 };
        CostSummary {
            currency: "USD".into(),
            subject: "disk".into(),
            date: "2018-07-01".into(),
            region: "here".into(),
            source: "a | page".into(),
            sha256: "0123456789abcdef".into(),
            month_s: 2_592_000.0,
            figures: vec![
                CostFigure {
                    name: "month_at_rate".into(),
                    workload: Some("w/read".into()),
                    unit: "USD/month".into(),
                    amount: rate,
                    formula: "1100 op/s x 2592000 s".into(),
                },
                CostFigure {
                    name: "run".into(),
                    workload: None,
                    unit: "USD".into(),
                    amount: Estimate::exact(0.000_512),
                    formula: "1 / 2".into(),
                },
            ],
            counted: vec!["transactions counts read, write, fsync".into()],
            open: vec!["why".into()],
        }
    }

    #[test]
    fn figures_have_interval_unit_arithmetic_date_and_source() {
        // Wherever its lines end.
        let told = |all| -> String {
            cost_terminal(&seen(), all, Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let text = told(false);
        for part in [
            "Cost in USD",
            "142.56 (129.60 to 155.52)",
            "The load of this run: 0.000512 USD (1 / 2)",
            "Prices of disk, here, 2018-07-01, as given: a | page",
            "A month has 720 h",
            "Of requests: transactions counts read, write, fsync. An op that is in none",
            "Not known: why.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // The arithmetic of a line is for who asks.
        assert!(!text.contains("2592000"));
        assert!(told(true).contains("1100 op/s x 2592000 s"), "{}", told(true));
        // No cell of a table: a bar is a bar there.
        assert!(cost_markdown(&seen(), false).contains("as given: a | page"));
        assert!(cost_csv(&seen()).contains("\"142.56\",\"129.6\",\"155.52\""));
    }

    #[test]
    fn a_rate_without_an_end_is_not_a_number() {
        let e = Estimate { value: 5.0, low: 0.0, high: f64::INFINITY, n_eff: 1.0 };
        assert_eq!(amount(&e), "5.00 (0.00 to unbounded)");
    }
}
