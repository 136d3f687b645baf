//! `compare`: two configurations, several runs of each.

use std::collections::BTreeMap;

use plimsoll_judge::alike::{self, Member};
use plimsoll_model::analysis::Comparison;
use plimsoll_model::count::both_counted;
use plimsoll_model::finding::Level;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Analysis, Finding, Verdict};
use plimsoll_stats::compare::{self, Difference};
use plimsoll_stats::validity::{self, Facts};

use super::runs::CompareCommand;
use super::several::{self, JointReport, LineKey};
use super::side;
use crate::fault::{Exit, Fault};

/// Name, unit and reading of each measure that is compared.
type Measure = (&'static str, &'static str, fn(&WorkloadSummary) -> Option<f64>);
const MEASURES: &[Measure] = &[
    ("rate", "op/s", |w| w.ops_per_s.map(|e| e.value)),
    // Of lines that count bytes only: those of a network.
    ("throughput", "B/s", |w| w.bytes_per_s.filter(|_| w.ops_per_s.is_none()).map(|e| e.value)),
    ("mean response", "ns", |w| w.latency_ns.response.as_ref().map(|l| l.mean)),
    ("p99 response", "ns", |w| w.latency_ns.response.as_ref().and_then(|l| l.p99).map(|v| v as f64)),
];

pub fn compare(c: &CompareCommand) -> Result<Exit, Fault> {
    let sides = Sides::read(c)?;
    let mut rows = Vec::new();
    let mut p = Vec::new();
    for line in several::common_lines(sides.a.iter().chain(&sides.b)) {
        for measure in MEASURES {
            let (va, vb) = (values(&sides.a, &line, measure.2), values(&sides.b, &line, measure.2));
            if va.len() == sides.a.len() && vb.len() == sides.b.len() {
                let (row, p_value) = sides.comparison(&line, measure, va, vb);
                rows.push(row);
                p.push(p_value);
            }
        }
    }
    if rows.is_empty() {
        return Err(Fault::input(
            "these runs have no line in common (same op, size and concurrency)",
            "Compare runs of the same workload.",
        ));
    }
    hold_together(&mut rows, &p);
    let decided = rows.iter().any(|r| r.outcome != "undetermined");
    let verdict = sides.verdict(&rows);
    let told = JointReport {
        what: "compare",
        title: format!("{} against {}", sides.a_name, sides.b_name),
        verdict,
        findings: sides.findings(&rows),
        analysis: Analysis {
            comparisons: rows,
            server_comparisons: side::servers(&sides.a, &sides.b, sides.in_turn),
            ..Analysis::default()
        },
        runs: sides.ids(),
        rerun: format!("plimsoll compare {} -- {}", c.a.join(" "), c.b.join(" ")),
    };
    told.print(&c.output, decided)
}

/// Of many comparisons some differ by chance: which hold together (Holm, 5 %).
fn hold_together(rows: &mut [Comparison], p: &[Option<f64>]) {
    let known: Vec<f64> = p.iter().flatten().copied().collect();
    let mut holds = compare::holm(&known).into_iter();
    for (row, p) in rows.iter_mut().zip(p) {
        let held = p.and_then(|_| holds.next());
        row.holds_among_all = held.filter(|_| matches!(row.outcome.as_str(), "faster" | "slower"));
    }
}

/// The runs of both configurations.
struct Sides {
    a: Vec<Member>,
    b: Vec<Member>,
    a_name: String,
    b_name: String,
    /// Run i of A and run i of B were made next to each other, before pair i + 1.
    in_turn: bool,
    /// What is told of runs that are in no mean.
    left_out: Vec<Finding>,
}

impl Sides {
    fn read(c: &CompareCommand) -> Result<Self, Fault> {
        if c.b.is_empty() {
            let (one, two) = c.a.split_at(c.a.len().div_ceil(2));
            let two = if two.is_empty() { "B...".to_owned() } else { two.join(" ") };
            return Err(Fault::input(
                "all runs are on one side, so there is nothing to compare them with",
                format!(
                    "Write `--` between the two sides, for example: plimsoll compare {} -- {two}",
                    one.join(" ")
                ),
            ));
        }
        let (a, b) = (several::read(&c.a, &c.output)?, several::read(&c.b, &c.output)?);
        several::not_of_one_file(a.iter().chain(&b))?;
        let ids = |side: &[Member]| side.iter().map(|m| m.summary.id.clone()).collect::<Vec<_>>();
        if let Some(twice) = ids(&a).into_iter().find(|id| ids(&b).contains(id)) {
            return Err(Fault::input(
                format!("run {twice} is on both sides"),
                "Give the runs of one configuration before `--` and those of the other after it.",
            ));
        }
        let (a_name, b_name) = c.names.clone().unwrap_or_else(|| names(&a, &b));
        let (a, mut left_out) = several::usable(a, &format!(" of {a_name}"))?;
        let (b, of_b) = several::usable(b, &format!(" of {b_name}"))?;
        left_out.extend(of_b);
        let in_turn = made_in_turn(&a, &b);
        Ok(Self { a, b, a_name, b_name, in_turn, left_out })
    }

    fn ids(&self) -> BTreeMap<String, Vec<String>> {
        let ids = |side: &[Member]| side.iter().map(|m| m.summary.id.clone()).collect();
        BTreeMap::from([("a".into(), ids(&self.a)), ("b".into(), ids(&self.b))])
    }

    fn comparison(
        &self,
        line: &LineKey,
        (measure, unit, _): &Measure,
        a: Vec<f64>,
        b: Vec<f64>,
    ) -> (Comparison, Option<f64>) {
        let judged = compare::compare(&a, &b, self.in_turn);
        let p = judged.known().map(|c| c.p);
        let (ratio, detectable, outcome, verdict) = match judged {
            Verdict::Known(c) => {
                let outcome = outcome(&c, unit);
                (Some(c.ratio), Some(c.minimal_detectable), outcome, self.sentence(&c, measure, outcome))
            }
            Verdict::Inconclusive(why) => {
                let why = format!("undetermined: {why}{}", several::points(self.a.iter().chain(&self.b)));
                (None, None, "undetermined", why)
            }
        };
        let comparison = Comparison {
            name: format!("{}: {measure}", several::line_name(line)),
            unit: (*unit).into(),
            measure: (*measure).into(),
            op: line.op.clone(),
            size_bytes: line.size_bytes,
            concurrency: line.concurrency,
            a_name: self.a_name.clone(),
            b_name: self.b_name.clone(),
            a,
            b,
            paired: self.in_turn,
            ratio,
            detectable,
            outcome: outcome.into(),
            holds_among_all: None,
            verdict,
        };
        (comparison, p)
    }

    /// One comparison for a person. Never "equal": only what the interval leaves open, and what would have been seen.
    fn sentence(&self, c: &compare::RunComparison, measure: &str, outcome: &str) -> String {
        let percent = |x: f64| format!("{:.1} %", 100.0 * x.abs());
        let r = &c.ratio;
        let range = format!("95 %: {} to {}", signed_percent(r.low), signed_percent(r.high));
        let word = match (outcome, ["rate", "throughput"].contains(&measure)) {
            ("none seen" | "undetermined", _) => return none_seen(c, &range),
            ("faster", true) => "faster",
            ("slower", true) => "slower",
            ("faster", false) => "lower",
            _ => "higher",
        };
        let mut text = format!("{} is {} {word} ({range})", self.a_name, percent(r.value - 1.0));
        if c.bimodal {
            text.push_str("; the runs fall into more than one group: look at each run");
        }
        text
    }

    /// The first rate decides what is said first; the table has the others.
    fn verdict(&self, rows: &[Comparison]) -> String {
        let (a, b) = (self.a.len(), self.b.len());
        let how = match (self.in_turn, self.left_out.len()) {
            (true, _) => "alternated, compared in pairs".to_owned(),
            (false, 0) => "not alternated".to_owned(),
            (false, n) => format!("compared without pairs ({n} left out as invalid)"),
        };
        let runs = both_counted(a, b, "run");
        let mut out = format!("{} against {}: {runs}, {how}.", self.a_name, self.b_name);
        for r in rows.iter().filter(|r| is_rate(r)).take(3) {
            out += &format!(" {}: **{}**.", r.name, r.verdict);
        }
        let rates = rows.iter().filter(|r| is_rate(r)).count();
        if rates > 3 {
            out += &format!(" {} more in the table.", rates - 3);
        }
        if !self.in_turn && self.left_out.is_empty() {
            out += " Next: alternate the runs (A, B, B, A), so that drift affects both alike.";
        }
        out
    }

    fn findings(&self, rows: &[Comparison]) -> Vec<Finding> {
        let mut out = self.left_out.clone();
        out.extend(several::lines_left_out(self.a.iter().chain(&self.b)));
        out.extend(alike::findings((&self.a, &self.a_name), (&self.b, &self.b_name)));
        for (runs, name) in [(&self.a, &self.a_name), (&self.b, &self.b_name)] {
            for line in several::common_lines(runs.iter()) {
                let facts = Facts {
                    workload: Some(format!("{name}, {}", several::line_name(&line))),
                    repeats: values(runs, &line, |w| w.ops_per_s.map(|e| e.value)),
                    ..Facts::default()
                };
                out.extend(validity::check_all(&facts));
            }
        }
        let tested = rows.len();
        let by_chance = rows.iter().filter(|r| r.holds_among_all == Some(false)).count();
        if by_chance > 0 {
            let text = format!(
                "{by_chance} of the differences may be due to chance: {tested} were tested, and these are not \
                 significant after correction for that (Holm, 5 %). Make more runs."
            );
            out.push(Finding::new("F42", "many_tests", Level::Qualified, text));
        }
        out.sort_by(|a, b| b.level.cmp(&a.level).then(a.code.cmp(&b.code)));
        out
    }
}

fn outcome(c: &compare::RunComparison, unit: &str) -> &'static str {
    match (c.difference, unit) {
        (Difference::NoneSeen, _) if c.minimal_detectable > MOST_DETECTABLE => "undetermined",
        (Difference::NoneSeen, _) => "none seen",
        // Of a latency, less is better.
        (Difference::Greater, "op/s" | "B/s") | (Difference::Less, "ns") => "faster",
        _ => "slower",
    }
}

/// What is said first.
fn is_rate(r: &Comparison) -> bool {
    ["rate", "throughput"].contains(&r.measure.as_str())
}

/// Beyond this a difference "that would have been seen" tells nobody anything: twice as much, or none.
const MOST_DETECTABLE: f64 = 1.0;

/// No difference is proved: what the interval leaves open, and what would have been found.
fn none_seen(c: &compare::RunComparison, range: &str) -> String {
    if c.minimal_detectable > MOST_DETECTABLE {
        return format!("undetermined: the runs of each side differ too much among themselves ({range})");
    }
    format!(
        "no difference proved ({range}); a difference of {:.1} % would have been detected in 8 of 10 such comparisons",
        100.0 * c.minimal_detectable
    )
}

/// `+18.2 %`.
fn signed_percent(ratio: f64) -> String {
    let tenths = (1000.0 * (ratio - 1.0)).round();
    // No negative zero.
    format!("{:+.1} %", if tenths == 0.0 { 0.0 } else { tenths / 10.0 })
}

fn values(runs: &[Member], line: &LineKey, of: fn(&WorkloadSummary) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter_map(|r| of(several::line(&r.summary, line)?)).collect()
}

/// What the sides are called: by a label that tells them apart, else A and B.
fn names(a: &[Member], b: &[Member]) -> (String, String) {
    let of = |side: &[Member], key: &String| -> Option<String> {
        let first = side[0].summary.labels.get(key)?;
        side.iter().all(|m| m.summary.labels.get(key) == Some(first)).then(|| first.clone())
    };
    let keys = a[0].summary.labels.keys();
    keys.filter_map(|k| Some((of(a, k)?, of(b, k)?)))
        .find(|(x, y)| x != y)
        .unwrap_or_else(|| ("A".into(), "B".into()))
}

/// Whether each pair was complete before the next began.
fn made_in_turn(a: &[Member], b: &[Member]) -> bool {
    let starts =
        |side: &[Member]| side.iter().map(|m| m.summary.environment.started_at.clone()).collect::<Vec<_>>();
    compare::made_in_turn(&starts(a), &starts(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{RunStatus, RunSummary};

    fn run(id: &str, status: RunStatus) -> Member {
        let mut findings = Vec::new();
        if status == RunStatus::None {
            findings.push(Finding::new("V04", "no_rate", Level::Invalid, "No rate."));
        }
        let summary = RunSummary { id: id.into(), status, findings, ..RunSummary::default() };
        Member { summary, plan: serde_json::Value::Null }
    }

    #[test]
    fn without_the_two_dashes_it_is_said_where_they_belong() {
        use clap::Parser;
        let cli = crate::cli::Cli::try_parse_from(["plimsoll", "compare", "r1", "r2", "r3"]).unwrap();
        let crate::cli::Command::Compare(c) = &cli.command else { panic!("{cli:?}") };
        let told = compare(c).unwrap_err();
        assert_eq!(told.exit, Exit::Input);
        assert!(told.remedy.contains("plimsoll compare r1 r2 -- r3"), "{told}");
    }

    #[test]
    fn an_invalid_run_is_in_no_mean() {
        let side = ["a1", "a2", "a3"].map(|id| run(id, RunStatus::Valid));
        let (left, told) =
            several::usable(side.into_iter().chain([run("a4", RunStatus::None)]).collect(), " of A").unwrap();
        assert_eq!(left.iter().map(|m| m.summary.id.as_str()).collect::<Vec<_>>(), ["a1", "a2", "a3"]);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].text, "Run a4 of A is invalid (V04) and was left out of every mean.");
        assert_eq!(told[0].level, Level::Qualified);
        // Partly valid ones have lines that count.
        assert!(several::usable(vec![run("p", RunStatus::Partly)], " of A").unwrap().1.is_empty());
        let none = several::usable(vec![run("a4", RunStatus::None)], " of A").err().unwrap();
        assert_eq!(none.exit, Exit::Invalid);
        assert!(none.what.contains("no run of A is usable: a4 (V04)"), "{none}");
    }
}
