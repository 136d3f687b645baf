//! A judged run to the program's exit code.

use plimsoll_model::analysis::Saturation;
use plimsoll_model::claim::figure;
use plimsoll_model::summary::{BucketSummary, LimitSummary, WorkloadSummary};
use plimsoll_model::{Finding, Level, OpKind, Outcome, RunSummary};

use super::exit;

/// Lines whose interval carries no figure, and of which nothing else says so: totals of mixes, which no check looks at by
/// themselves.
pub fn no_figure(lines: &[WorkloadSummary], findings: &[Finding]) -> Vec<Finding> {
    let refused = |w: &WorkloadSummary| {
        let rate = w.ops_per_s.filter(|e| w.repeats <= 1 && e.value > 0.0)?;
        let why = figure(rate, Some(w.attempts_per_s)).err()?;
        let said = |f: &Finding| f.level == Level::Invalid && f.workload.as_ref() == Some(&w.label());
        if findings.iter().any(said) {
            return None;
        }
        let text = format!("No rate: {}.", why.0);
        Some(Finding::new("V04", "no_rate", Level::Invalid, text).on(w.label()))
    };
    lines.iter().filter_map(refused).collect()
}

/// Of a probe that found out nothing: its question is open. A longer one may answer it.
/// `passed`: a rate held without a refusal, whose interval is too wide to quote it. `changed`: that the rate changed meanwhile, as the probe says
/// it. `away`: that the storage was, at its end, and what to do about that.
pub fn limits_open(
    probed: &[LimitSummary],
    passed: bool,
    changed: Option<&str>,
    away: Option<&str>,
) -> Option<Finding> {
    let proved = |b: &Option<BucketSummary>| b.as_ref().is_some_and(|b| b.proved);
    let unproved = |l: &LimitSummary| !proved(&l.ops_per_s) && !proved(&l.bytes_per_s);
    let open = |l: &LimitSummary| l.binding == "undetermined" && unproved(l);
    // It refuses, and of no rate is known that it passes.
    let known = |b: &Option<BucketSummary>| b.as_ref().is_some_and(|b| b.sustained.is_some());
    let no_rate = |l: &LimitSummary| {
        ["ops", "bytes", "both"].contains(&l.binding.as_str())
            && unproved(l)
            && !known(&l.ops_per_s)
            && !known(&l.bytes_per_s)
    };
    if probed.is_empty() || !probed.iter().all(|l| open(l) || no_rate(l)) {
        return None;
    }
    let no_rate = probed.iter().any(no_rate);
    let name = if no_rate { NOTHING_PASSES } else { LIMITS_OPEN };
    // Of a storage that answers nothing a longer probe knows no more.
    let text = match away {
        Some(away) => away,
        None if !no_rate => {
            "The probe did not find out which limit binds: give it more time (--budget), on a machine with less other work."
        }
        None if changed.is_some() => changed.unwrap_or_default(),
        None if passed => {
            "A rate passed without a refusal (F67), and how much more does is not known: give the probe more time (--budget)."
        }
        None => {
            "The storage refuses, and which rate it lets through for good was not found: give the probe more time (--budget), or a \
             load that it accepts."
        }
    };
    Some(Finding::new("F57", name, Level::Info, text))
}

/// Why a probe found too little: it ended since nothing was answered (`silent`), or the storage was out at its end.
pub fn away(silent: bool, out: bool) -> Option<&'static str> {
    if silent {
        return Some(
            "The probe ended because nothing was answered any more (F59), and what limits the storage was not found: find out why it \
             answers nothing, and probe it again.",
        );
    }
    out.then_some(
        "The storage went out while it was probed (F60), and what it lets through was not found: probe it again.",
    )
}

const LIMITS_OPEN: &str = "limits_open";

/// Of a storage that refuses whatever was tried.
const NOTHING_PASSES: &str = "nothing_passes";

/// Name of the finding of a run that its budget of money ended.
pub const COST_BUDGET_REACHED: &str = "cost_budget_reached";

/// Name of the finding of a run that a guard ended (`--abort-if`).
pub const GUARD_REACHED: &str = "stopped_by_guard";

/// In order: interrupted, damaged data, stopped by its budget of money or a guard, what was asked for is not answered (a promise on void lines included), a promise broken,
/// undetermined, something left behind, answered. Lines may be void in an answered run: `status` is `partly` then.
pub fn exit_code(summary: &RunSummary, interrupted: bool) -> u8 {
    let broken = summary.expectations.iter().any(|e| e.met == Some(false));
    let open = summary.expectations.iter().any(|e| e.met.is_none())
        || summary
            .findings
            .iter()
            .any(|f| [Saturation::BUDGET_TOO_SHORT, LIMITS_OPEN, NOTHING_PASSES].contains(&f.name.as_str()))
        // Of a network's test, and of some imported ones, the rate is one of bytes.
        || summary.workloads.iter().all(|w| w.ops_per_s.is_none() && w.bytes_per_s.is_none());
    match () {
        () if interrupted => exit::INTERRUPTED,
        () if is_damaged(summary) => exit::DAMAGED,
        () if is_stopped(summary) => exit::STOPPED,
        () if !summary.answered || summary.expectations.iter().any(|e| e.void) => exit::INVALID,
        () if broken => exit::NOT_MET,
        () if open => exit::UNDETERMINED,
        () if summary.findings.iter().any(|f| f.code == "F14") => exit::LEFT_BEHIND,
        () => exit::VALID,
    }
}

/// By a guard: its budget of money, or what it was not to do to others.
fn is_stopped(summary: &RunSummary) -> bool {
    summary.findings.iter().any(|f| [COST_BUDGET_REACHED, GUARD_REACHED].contains(&f.name.as_str()))
}

/// The storage gave back other data than it was given: found by a stamp (V02; what another seed wrote is no damage), or by
/// the checksum of what was read.
fn is_damaged(summary: &RunSummary) -> bool {
    let wrong = |f: &Finding| f.code == "V02" && f.name == "payload_mismatch";
    let altered = |w: &WorkloadSummary| {
        matches!(OpKind::parse(&w.op), Some(OpKind::Get | OpKind::GetRange))
            && w.outcomes.get(Outcome::ChecksumMismatch.name()).is_some_and(|n| *n > 0)
    };
    summary.findings.iter().any(wrong) || summary.workloads.iter().any(altered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Level;
    use plimsoll_model::summary::Expectation;

    fn summary(valid: bool, met: &[Option<bool>]) -> RunSummary {
        let expectation = |m: &Option<bool>| Expectation {
            text: "x".into(),
            met: *m,
            void: false,
            measured: None,
            reason: String::new(),
        };
        RunSummary {
            answered: valid,
            expectations: met.iter().map(expectation).collect(),
            ..RunSummary::default()
        }
    }

    /// All was refused, and the answer was VALID with exit code 0.
    #[test]
    fn a_limit_that_lets_nothing_through_is_no_answer() {
        use plimsoll_model::Estimate;
        let limit = |sustained: Option<f64>, proved| LimitSummary {
            target: "s3".into(),
            op_class: "put".into(),
            scope: "unknown".into(),
            ops_per_s: Some(BucketSummary {
                sustained: sustained.map(|v| Estimate::symmetric(v, 0.1 * v, 9.0)),
                proved,
                ..BucketSummary::default()
            }),
            bytes_per_s: None,
            knee_bytes: None,
            binding: "ops".into(),
            refused: Some(1.0),
            evidence: Vec::new(),
        };
        let name = |l| limits_open(&[l], false, None, None).map(|f| f.name);
        assert_eq!(name(limit(None, false)).as_deref(), Some(NOTHING_PASSES));
        assert_eq!((name(limit(Some(60.0), true)), name(limit(Some(60.0), false))), (None, None));
        let open = LimitSummary { binding: "undetermined".into(), ..limit(None, false) };
        assert_eq!(name(open.clone()).as_deref(), Some(LIMITS_OPEN));
        // A longer probe of servers that answer nothing is no remedy, whatever was open.
        for (silent, out, code) in [(true, false, "F59"), (true, true, "F59"), (false, true, "F60")] {
            for limit in [open.clone(), limit(None, false)] {
                let text = limits_open(&[limit], false, None, away(silent, out)).unwrap().text;
                assert!(text.contains(code) && !text.contains("--budget"), "{text}");
            }
        }
        let mut s = RunSummary { answered: true, workloads: vec![line()], ..RunSummary::default() };
        s.findings.extend(limits_open(&[limit(None, false)], false, None, None));
        assert_eq!(exit_code(&s, false), exit::UNDETERMINED);
    }

    fn line() -> WorkloadSummary {
        serde_json::from_str(
            r#"{"name":"w","op":"get","size_bytes":1,"size":"1","concurrency":1,"window_s":1,"horizon_s":1,"warmup_s":0,"tail_s":0,
            "repeats":1,"ops_per_s":{"value":1,"low":1,"high":1,"n_eff":1},"bytes_per_s":null,"attempts_per_s":1,"latency_ns":{},
            "outcomes":{"ok":1},"littles_law":null,"client":{"busy_fraction":0,"cpu_s":0,"cpu_s_per_gib":null,"rss_bytes":0,
            "system_cpu":0,"steal":0,"reconnects":0,"late_ops":0},"per_endpoint":[],"notes":[]}"#,
        )
        .unwrap()
    }

    #[test]
    fn damage_and_what_was_left_have_codes_of_their_own() {
        let found = |code: &str, name: &str| Finding::new(code, name, Level::Qualified, "x");
        let mut s = summary(true, &[Some(true)]);
        s.workloads.push(line());
        assert_eq!(exit_code(&s, false), exit::VALID);
        s.findings.push(found("F14", "left_behind"));
        assert_eq!(exit_code(&s, false), exit::LEFT_BEHIND);
        s.answered = false;
        assert_eq!(exit_code(&s, false), exit::INVALID, "the answer comes before what was left");
        s.findings.push(found("V02", "another_seed"));
        assert_eq!(exit_code(&s, false), exit::INVALID);
        s.findings.push(found("F28", COST_BUDGET_REACHED));
        assert_eq!(
            exit_code(&s, false),
            exit::STOPPED,
            "that it was stopped comes before what is left of the answer"
        );
        s.findings.retain(|f| f.code != "F28");
        s.findings.push(found("F29", GUARD_REACHED));
        assert_eq!(exit_code(&s, false), exit::STOPPED);
        s.findings.push(found("V02", "payload_mismatch"));
        assert_eq!(exit_code(&s, false), exit::DAMAGED);
        assert_eq!(exit_code(&s, true), exit::INTERRUPTED);
        s.findings.clear();
        s.workloads[0].outcomes.insert("checksum_mismatch".into(), 1);
        assert_eq!(exit_code(&s, false), exit::DAMAGED);
    }

    #[test]
    fn a_probe_that_found_nothing_out_is_undetermined() {
        let limit = |binding: &str, proved: bool| LimitSummary {
            target: "s3".into(),
            op_class: "get".into(),
            scope: "unknown".into(),
            ops_per_s: Some(BucketSummary { proved, ..BucketSummary::default() }),
            bytes_per_s: None,
            knee_bytes: None,
            binding: binding.into(),
            refused: None,
            evidence: Vec::new(),
        };
        let code = |limits: &[LimitSummary]| {
            let mut s = summary(true, &[]);
            s.workloads.push(line());
            s.findings.extend(limits_open(limits, false, None, None));
            exit_code(&s, false)
        };
        assert_eq!(code(&[limit("undetermined", false)]), exit::UNDETERMINED);
        assert_eq!(code(&[limit("undetermined", true)]), exit::VALID, "a cap was proved, whichever binds");
        assert_eq!(code(&[limit("undetermined", false), limit("ops", true)]), exit::VALID);
        assert_eq!(code(&[limit("none", false)]), exit::VALID, "that there is none is an answer");
        assert_eq!(code(&[]), exit::VALID, "nobody asked");
    }

    /// What iperf3 measured has no ops: a rate of bytes is an answer.
    #[test]
    fn a_rate_of_bytes_alone_is_an_answer() {
        let mut s = summary(true, &[]);
        s.workloads.push(line());
        s.workloads[0].ops_per_s = None;
        assert_eq!(exit_code(&s, false), exit::UNDETERMINED);
        s.workloads[0].bytes_per_s = line().ops_per_s;
        assert_eq!(exit_code(&s, false), exit::VALID);
    }

    #[test]
    fn the_worst_news_decides() {
        assert_eq!(exit_code(&summary(false, &[Some(false)]), true), exit::INTERRUPTED);
        assert_eq!(exit_code(&summary(false, &[Some(false)]), false), exit::INVALID);
        assert_eq!(exit_code(&summary(true, &[Some(true), Some(false), None]), false), exit::NOT_MET);
        assert_eq!(exit_code(&summary(true, &[None]), false), exit::UNDETERMINED);
        assert_eq!(
            exit_code(&summary(true, &[Some(true)]), false),
            exit::UNDETERMINED,
            "nothing was measured"
        );
        // A promise that was held against void lines has no answer, in a run that has one otherwise.
        let mut s = summary(true, &[Some(true), None]);
        s.expectations[1].void = true;
        assert_eq!(exit_code(&s, false), exit::INVALID);
    }
}
