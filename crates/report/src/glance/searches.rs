//! Searches for the best concurrency at a glance: one, or one for each of several ops.

use plimsoll_model::analysis::Saturation;
use plimsoll_model::claim::{BestConcurrency, Claim, ClaimKind};
use plimsoll_model::units::format_latency_ns;
use plimsoll_model::{OpKind, RunSummary};
use plimsoll_stats::words;

use super::facts::limited_by;
use super::{GlanceFact, fact, first_sentence, kinds, ops_of, sized, upper};
use crate::run::RunReport;

/// What searches found, each op in turn: `PUT 1,200 ± 10 op/s, 1.26 GB/s at 32 in flight; GET undetermined: ...`.
pub(super) fn sentence(r: &RunReport) -> Option<String> {
    let several = r.analysis.saturations.len() > 1;
    let said = |c: &Claim| match &c.kind {
        ClaimKind::BestConcurrency(b) if several => Some(best_of_several(b)),
        ClaimKind::BestConcurrency(b) => Some(best(b)),
        ClaimKind::Undetermined(u) if several => {
            let op = c.subject.as_deref()?;
            let found = r.analysis.saturations.iter().find(|x| x.op_class == op)?;
            let why = match found.budget_needed_s {
                Some(s) => format!("{}; {}", found.verdict, Saturation::would_do(s)),
                None => first_sentence(&u.why),
            };
            Some(format!("{} undetermined: {why}", sized(op, found.size_bytes)))
        }
        _ => None,
    };
    let all: Vec<String> = r.summary.claims.iter().filter_map(said).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn bytes_of(b: &BestConcurrency) -> Option<String> {
    let moves = OpKind::parse(&b.op).is_none_or(OpKind::moves_bytes) && b.size_bytes > 0;
    moves.then(|| words::bytes_rate(&b.ops_per_s.scaled(b.size_bytes as f64)))
}

/// Bytes first: with them sizes compare.
fn best_of_several(b: &BestConcurrency) -> String {
    let bytes = bytes_of(b).map_or(String::new(), |x| format!("{x}, "));
    let end = if b.ended == "saturated" { String::new() } else { format!(" (not its most: {})", b.ended) };
    format!(
        "{} {bytes}{} at {} in flight{end}",
        sized(&b.op, b.size_bytes),
        words::ops_rate(&b.ops_per_s),
        b.concurrency
    )
}

fn best(b: &BestConcurrency) -> String {
    let bytes = bytes_of(b).map_or(String::new(), |x| format!(", {x}"));
    let end = if b.ended == "saturated" {
        "; more in flight does not raise it".to_owned()
    } else {
        format!("; not shown to be the storage's maximum: {}", b.ended)
    };
    format!("{}{bytes} with {} in flight{end}", ops_of(&b.op, b.size_bytes, &b.ops_per_s), b.concurrency)
}

/// What each search found.
pub(super) fn bests(s: &RunSummary) -> impl Iterator<Item = &BestConcurrency> {
    kinds(s).filter_map(|k| if let ClaimKind::BestConcurrency(b) = k { Some(b) } else { None })
}

/// How long it takes there, what was tried, and what limited it.
pub(super) fn facts(r: &RunReport, all: &[&BestConcurrency]) -> Vec<GlanceFact> {
    let mut out = Vec::new();
    let time = |ns: u64| format_latency_ns(ns as f64);
    // Of several there is a table, which has them.
    if let [b] = all
        && r.analysis.saturations.len() < 2
        && let Some(p50) = b.p50_ns
    {
        let p99 = b.p99_ns.map_or(String::new(), |p| format!("   p99 {}", time(p)));
        out.push(fact("response", format!("p50 {}{p99}   with {} in flight", time(p50), b.concurrency)));
    }
    for x in r.analysis.saturations.iter().filter(|x| !x.points.is_empty()) {
        let tried: Vec<String> = x.points.iter().map(|p| p.concurrency.to_string()).collect();
        out.push(fact("tried", format!("{} {} in flight", upper(&x.op_class), tried.join(", "))));
    }
    out.extend(limits(r));
    out
}

/// What limited each search, where the servers' part in it was seen; else what all steps together show, which is of no single one.
fn limits(r: &RunReport) -> Vec<GlanceFact> {
    let searches = &r.analysis.saturations;
    let GlanceFact { name, text } = limited_by(r);
    if searches.len() < 2 {
        return vec![GlanceFact { name, text }];
    }
    let of_one =
        |x: &Saturation| Some(fact(&name, format!("{}: {}", upper(&x.op_class), x.limited_by.as_ref()?)));
    let each: Vec<GlanceFact> = searches.iter().filter_map(of_one).collect();
    if !each.is_empty() {
        return each;
    }
    let named = r
        .analysis
        .bottlenecks
        .iter()
        .any(|b| b.verdict == "proved" || b.verdict == "likely" || b.verdict == "consistent with");
    vec![fact(&name, if named { format!("{text}, in some of all steps") } else { text })]
}

#[cfg(test)]
mod tests {
    use plimsoll_model::analysis::SaturationPoint;
    use plimsoll_model::claim::Undetermined;
    use plimsoll_model::{Estimate, RunStatus};

    use super::*;
    use crate::glance::Glance;
    use crate::terminal::Style;

    fn found(op: &str, rate: f64, concurrency: u32) -> Saturation {
        let ops_per_s = Estimate::symmetric(rate, 0.01 * rate, 9.0);
        let point = |c| SaturationPoint { concurrency: c, ops_per_s, p50_ns: Some(8_000_000), p99_ns: None };
        Saturation {
            op_class: op.into(),
            size_bytes: 1 << 20,
            points: [4, concurrency].map(point).into(),
            c95: Some(Estimate::exact(f64::from(concurrency))),
            plateau_per_s: Some(ops_per_s),
            verdict: "saturated".into(),
            ..Saturation::default()
        }
    }

    fn claim(x: &Saturation) -> Claim {
        let at = &x.points[1];
        let best = BestConcurrency::new(
            (&x.op_class, x.size_bytes),
            at.concurrency,
            at.ops_per_s,
            x.plateau_per_s,
            &x.verdict,
        );
        Claim {
            subject: Some(x.op_class.clone()),
            kind: ClaimKind::BestConcurrency(best.unwrap()),
            text: String::new(),
        }
    }

    fn run(all: Vec<Saturation>, claims: Vec<Claim>) -> RunReport {
        let mut r = RunReport::of(RunSummary {
            id: "20260214-1011".into(),
            answered: true,
            status: RunStatus::Valid,
            claims,
            ..RunSummary::default()
        });
        r.analysis.saturations = all;
        r
    }

    #[test]
    fn each_op_has_its_rate_and_its_load_in_a_line() {
        let all = vec![found("put", 1_200.0, 32), found("get", 3_400.0, 64)];
        let claims = all.iter().map(claim).collect();
        let r = run(all, claims);
        assert_eq!(
            sentence(&r).unwrap(),
            "1MiB PUT 1.258 ± 0.013 GB/s, 1,200 ± 12 op/s at 32 in flight; 1MiB GET 3.57 ± 0.04 GB/s, 3,400 ± 40 op/s at 64 in \
             flight"
        );
        assert_eq!(
            crate::glance::result(&r.summary),
            "1,200 ± 12 op/s of 1MiB PUT, 3,400 ± 40 op/s of 1MiB GET"
        );
        let text = Glance::of(&r).terminal(&r, Style::PLAIN);
        let line = |op: &str| {
            text.lines().find(|l| l.trim_start().starts_with(op)).unwrap_or_else(|| panic!("{text}"))
        };
        assert!(line("PUT").contains("32") && line("GET").contains("64"), "{text}");
        assert_eq!(text.matches("tried").count(), 2, "{text}");
    }

    #[test]
    fn an_op_without_an_answer_says_what_would_do_and_the_other_stands() {
        let mut get = found("get", 3_400.0, 64);
        (get.c95, get.plateau_per_s, get.budget_needed_s) = (None, None, Some(180.0));
        get.verdict = "the budget ended before the rate did".into();
        let put = found("put", 1_200.0, 32);
        let open =
            Undetermined::new("the best concurrency for 1 MiB GET", "the budget ended before the rate did");
        let claims =
            vec![claim(&put), Claim { subject: Some("get".into()), kind: open.into(), text: String::new() }];
        let r = run(vec![put, get], claims);
        let said = sentence(&r).unwrap();
        let end = "; 1MiB GET undetermined: the budget ended before the rate did; --budget 3m would do";
        assert!(said.starts_with("1MiB PUT 1.258") && said.ends_with(end), "{said}");
        let table = crate::limits::searches(&r.analysis).unwrap().plain(120);
        assert!(table.contains("--budget 3m would do") && !table.contains("3,400"), "{table}");
    }

    #[test]
    fn of_a_search_that_is_void_no_figure_is_shown() {
        let mut get = found("get", 3_400.0, 64);
        get.invalid = vec!["V19".into()];
        let put = found("put", 1_200.0, 32);
        let claims = vec![claim(&put)];
        let r = run(vec![put, get], claims);
        let table = crate::limits::searches(&r.analysis).unwrap().plain(120);
        assert!(table.contains("[INVALID V19]") && !table.contains("3,400"), "{table}");
    }
}
