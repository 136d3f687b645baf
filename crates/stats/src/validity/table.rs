//! Every check as a row of the validity table: what it looked at, whether or not it found something.
//!
//! A reader of a result has to see which checks passed and which could not be made, not only what was wrong.

use plimsoll_model::analysis::Check;
use plimsoll_model::{Finding, Level};

use super::{Durability, Facts, invalid::percent};
use crate::words;

/// What one check measures in the facts, as text, with a number by which the worst of several is chosen.
type Seen = fn(&Facts) -> Option<(f64, String)>;

struct Row {
    code: &'static str,
    name: &'static str,
    threshold: &'static str,
    /// What has to be known for it.
    needs: &'static str,
    seen: Seen,
}

fn share(x: Option<f64>) -> Option<(f64, String)> {
    x.filter(|v| v.is_finite()).map(|v| (v, percent(v)))
}

fn count(n: Option<f64>, what: &str) -> Option<(f64, String)> {
    n.map(|n| (n, format!("{n:.0} {what}")))
}

fn either(flag: Option<bool>, yes: &str, no: &str) -> Option<(f64, String)> {
    flag.map(|f| (f64::from(u8::from(f)), if f { yes } else { no }.to_owned()))
}

/// Codes, names, thresholds and readings, in the order of the checks.
const ROWS: &[Row] = &[
    Row {
        code: "V01",
        name: "failed ops",
        threshold: "at most 0.1 %, or --max-error-rate",
        needs: "ops",
        seen: |f| {
            let (all, failed) = (f.attempts?, f.failed?);
            if all > 0.0 { share(Some(failed / all)) } else { None }
        },
    },
    Row {
        code: "V02",
        name: "wrong payload",
        threshold: "none",
        needs: "--verify",
        seen: |f| count(f.verify_mismatches.map(|n| n as f64), "blocks"),
    },
    Row {
        code: "V03",
        name: "bytes sent and acknowledged",
        threshold: "within 0.1 %",
        needs: "the server's own count",
        seen: |f| {
            let (a, b) = (f.bytes_sent?, f.bytes_acknowledged?);
            share(Some((a - b).abs() / a.max(b).max(1.0)))
        },
    },
    Row {
        code: "V04",
        name: "steady window",
        threshold: "one level, no drift",
        needs: "a load of 20 s or more",
        seen: |f| match f.steady.as_ref()? {
            super::SteadyFact::Undetermined(_) => None,
            s => Some((f64::from(u8::from(*s != super::SteadyFact::Steady)), steady_name(s).to_owned())),
        },
    },
    Row {
        code: "V05",
        name: "offered rate achieved",
        threshold: "at least 95 %",
        needs: "an open loop (--rate)",
        seen: |f| {
            let (offered, achieved) = (f.offered_per_s?, f.achieved_per_s?);
            // The least share is the worst.
            (offered > 0.0).then(|| (-achieved / offered, percent(achieved / offered)))
        },
    },
    Row {
        code: "V06",
        name: "ops sent late by the client",
        threshold: "at most 1 %",
        needs: "an open loop (--rate)",
        seen: |f| share(f.late_share),
    },
    Row {
        code: "V07",
        name: "client busy",
        threshold: "below 85 % (workers, including CPU time that others took from them, and a CPU quota), 90 % (a \
                    core, the calibrated ceiling), 92 % (network)",
        needs: "samples of this machine",
        seen: |f| {
            let taken = f.cpu_wait.map_or(0.0, |w| w.share * w.for_others.unwrap_or(1.0));
            let workers = f.client_busy.map(|b| (b + taken).min(1.0));
            let quota = f.cpu_quota.map(|q| q.used.max(q.throttled));
            let known = [workers, f.client_core, f.client_nic, f.ceiling_share, quota];
            share(known.into_iter().flatten().reduce(f64::max))
        },
    },
    Row {
        code: "V08",
        name: "working set against memory",
        threshold: "5 x client's, 2 x server's",
        needs: "reads, and the memory of whatever caches them",
        seen: |f| {
            let ram = f.server_ram_bytes.or(f.client_ram_bytes).filter(|r| *r > 0.0)?;
            let set = f.working_set_bytes.filter(|_| f.reads)?;
            Some((-set / ram, format!("{:.2} x", set / ram)))
        },
    },
    Row {
        code: "V09",
        name: "payload cannot be compressed or deduplicated",
        threshold: "7.9 bit/byte, no duplicates, no reads of unwritten blocks",
        needs: "data that plimsoll wrote",
        seen: |f| f.entropy_bits_per_byte.map(|e| (-e, format!("{e:.2} bit/byte"))),
    },
    Row {
        code: "V10",
        name: "drivers together",
        threshold: "one slice apart",
        needs: "several drivers",
        seen: |f| f.start_skew_s.map(|s| (s, format!("{s:.3} s"))),
    },
    Row {
        code: "V11",
        name: "drivers end together",
        threshold: "one slice apart",
        needs: "several drivers",
        seen: |f| f.ended_early_s.map(|s| (s, format!("{s:.3} s"))),
    },
    Row {
        code: "V12",
        name: "durability",
        threshold: "what is claimed",
        needs: "a claim",
        seen: |f| f.durability_claimed.map(|_| (0.0, durability_name(f.durability).to_owned())),
    },
    Row {
        code: "V13",
        name: "Little's law",
        threshold: "2 % reported, 5 % invalid",
        needs: "ops that ended in the window",
        seen: |f| share(f.littles_law.map(|l| l.error)),
    },
    Row {
        code: "V14",
        name: "level changes in the window",
        threshold: "none",
        needs: "a load of 20 s or more",
        seen: |f| count(f.level_changes.map(|n| n as f64), "changes"),
    },
    Row {
        code: "V15",
        name: "trend over repeats",
        threshold: "Spearman 0.7 at p < 0.05",
        needs: "five repeats",
        seen: |f| {
            if f.repeats.len() < 5 || !crate::math::is_series(&f.repeats) {
                return None;
            }
            let order: Vec<f64> = (0..f.repeats.len()).map(|i| i as f64).collect();
            let rho = crate::math::spearman(&order, &f.repeats);
            rho.is_finite().then(|| (rho.abs(), format!("{rho:.2}")))
        },
    },
    Row {
        code: "V16",
        name: "same configuration except for the factor",
        threshold: "no other difference",
        needs: "runs to compare",
        seen: |_| None,
    },
    Row {
        code: "V17",
        name: "fill and preconditioning",
        threshold: "1 to 80 % full; raw flash written twice",
        needs: "the state of the storage",
        seen: |f| share(f.fill),
    },
    Row {
        code: "V18",
        name: "background work",
        threshold: "none",
        needs: "the state of the storage",
        seen: |_| None,
    },
    Row {
        code: "V19",
        name: "one limiter state",
        threshold: "all cells drained, or all full",
        needs: "cells, or a search",
        seen: |f| either(f.mixed_limiter_states, "mixed", "one"),
    },
    Row {
        code: "V20",
        name: "retries counted as successes",
        threshold: "none",
        needs: "retries",
        seen: |f| count(f.retried_as_success.map(|n| n as f64), "ops"),
    },
    Row {
        code: "V21",
        name: "ops beyond the highest percentile",
        threshold: "10",
        needs: "ops",
        seen: |f| f.tail_samples.map(|n| (-n, words::about(n, 2))),
    },
    Row {
        code: "V22",
        name: "CPU time taken by the hypervisor",
        threshold: "at most 5 %; less than 25 % if workers wait",
        needs: "samples of this machine",
        seen: |f| share(f.steal),
    },
    Row {
        code: "V23",
        name: "raw data unchanged since the run",
        threshold: "the same hash",
        needs: "a run that ended",
        seen: |f| either(f.sealed_hash_matches, "the same", "another"),
    },
    Row {
        code: "Q01",
        name: "horizon",
        threshold: "the goal (--goal)",
        needs: "a goal (--goal)",
        seen: |f| f.goal_s.and(f.horizon_s).map(|s| (-s, words::span(s))),
    },
    Row {
        code: "Q02",
        name: "repeats",
        threshold: "3",
        needs: "a sweep",
        seen: |f| f.repeats_expected.then(|| (-(f.repeats.len() as f64), f.repeats.len().to_string())),
    },
    Row {
        code: "Q03",
        name: "half width of the interval",
        threshold: "at most 10 %",
        needs: "a rate",
        seen: |f| share(f.relative_half_width),
    },
    Row {
        code: "Q04",
        name: "misfit of the limit model",
        threshold: "p of 1 % or more",
        needs: "a sweep with repeats",
        seen: |f| f.misfit_p.map(|p| (-p, percent(p))),
    },
    Row {
        code: "Q05",
        name: "client hosts",
        threshold: "2",
        needs: "a limit's scope in question",
        seen: |f| count(f.client_hosts.map(f64::from), "hosts").map(|(n, t)| (-n, t)),
    },
    Row {
        code: "Q06",
        name: "fill of the bucket at the start",
        threshold: "known",
        needs: "a bucket",
        seen: |f| either(f.initial_fill_unknown, "not known", "known"),
    },
    Row {
        code: "Q07",
        name: "transport as in production",
        threshold: "no difference",
        needs: "a statement of production use",
        seen: |_| None,
    },
    Row {
        code: "Q08",
        name: "load of other tenants",
        threshold: "known",
        needs: "a statement",
        seen: |f| either(f.shared_infrastructure, "not known", "none"),
    },
    Row {
        code: "Q09",
        name: "client and storage on separate machines",
        threshold: "two machines",
        needs: "the location of the storage",
        seen: |f| either(f.loopback, "one machine", "two machines"),
    },
    Row {
        code: "Q10",
        name: "cold start excluded",
        threshold: "left out",
        needs: "a warm-up",
        seen: |f| either(f.cold_start_included, "in the window", "left out"),
    },
];

fn steady_name(s: &super::SteadyFact) -> &'static str {
    use super::SteadyFact as S;
    match s {
        S::Steady => "steady",
        S::Undetermined(_) => "undetermined",
        S::Drifting => "drifting",
        S::Unstable => "unstable",
        S::Throttled => "throttled",
    }
}

fn durability_name(d: Option<Durability>) -> &'static str {
    match d {
        None => "not known",
        Some(Durability::Volatile) => "in memory",
        Some(Durability::OneDevice) => "on one device",
        Some(Durability::Quorum) => "on a quorum",
    }
}

/// A row for every check: what went wrong first, then what passed, then what could not be tested.
pub fn table(facts: &[Facts], findings: &[Finding]) -> Vec<Check> {
    let mut rows: Vec<Check> = ROWS.iter().map(|r| row(r, facts, findings)).collect();
    let rank = |c: &Check| ["fail", "note", "pass"].iter().position(|r| *r == c.result).unwrap_or(3);
    rows.sort_by_key(rank);
    rows
}

fn row(r: &Row, facts: &[Facts], findings: &[Finding]) -> Check {
    let worst = facts.iter().filter_map(r.seen).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, text)| text);
    // What the series shows over time is told by findings of its own: a cliff, a drift, a quota.
    let told_by = |f: &Finding| match r.code {
        "V04" => ["F30", "F32", "F33"].contains(&f.code.as_str()),
        "V14" => f.code == "F30",
        // An interval that carries no figure is told as that.
        "Q03" => f.name == "no_rate" && f.measured.is_some(),
        "V07" => f.name == "client_limited",
        _ => false,
    };
    let mine = || findings.iter().filter(|f| (f.code == r.code || told_by(f)) && f.level != Level::Info);
    let failed = mine().find(|f| f.level == Level::Invalid).or_else(|| mine().next());
    let result = match failed.map(|f| f.level) {
        Some(Level::Invalid) => "fail",
        Some(_) => "note",
        None if worst.is_some() => "pass",
        None => "not tested",
    };
    let remedy = match failed {
        // The finding says it in full; its last sentence is what to do.
        Some(f) => last_sentence(&f.text).to_owned(),
        None if worst.is_none() => format!("needs {}", r.needs),
        None => String::new(),
    };
    let measured = match failed {
        Some(f) => worst.or_else(|| f.measured.map(|m| words::about(m, 3))).unwrap_or_else(|| "found".into()),
        None => worst.unwrap_or_default(),
    };
    Check {
        code: r.code.into(),
        name: r.name.into(),
        result: result.into(),
        measured,
        threshold: r.threshold.into(),
        remedy,
    }
}

fn last_sentence(text: &str) -> &str {
    let body = text.trim_end().trim_end_matches('.');
    body.rfind(". ").map_or(text, |at| text[at + 2..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validity;

    #[test]
    fn every_check_has_a_row_and_every_row_a_check() {
        let rows: Vec<&str> = ROWS.iter().map(|r| r.code).collect();
        assert_eq!(rows, validity::codes().collect::<Vec<_>>());
    }

    #[test]
    fn what_is_wrong_comes_first_and_what_is_unknown_last() {
        let facts = Facts {
            attempts: Some(1000.0),
            failed: Some(20.0),
            client_busy: Some(0.2),
            steal: Some(0.01),
            loopback: Some(true),
            ..Facts::default()
        };
        let findings = validity::check_all(&facts);
        let t = table(std::slice::from_ref(&facts), &findings);
        assert_eq!(t.len(), ROWS.len());
        assert_eq!(
            (t[0].code.as_str(), t[0].result.as_str(), t[0].measured.as_str()),
            ("V01", "fail", "2.0 %")
        );
        assert!(t[0].remedy.starts_with("Find the cause"), "{}", t[0].remedy);
        assert_eq!((t[1].code.as_str(), t[1].result.as_str()), ("Q09", "note"));
        assert_eq!((t[2].code.as_str(), t[2].measured.as_str()), ("V07", "20.0 %"));
        let last = t.last().unwrap();
        assert!(last.result == "not tested" && last.remedy.starts_with("needs"), "{last:?}");
    }

    #[test]
    fn of_several_the_worst_is_shown() {
        let of = |busy, achieved| Facts {
            client_busy: Some(busy),
            offered_per_s: Some(100.0),
            achieved_per_s: Some(achieved),
            ..Facts::default()
        };
        let t = table(&[of(0.1, 99.0), of(0.5, 97.0), of(0.3, 98.0)], &[]);
        let row = |code: &str| t.iter().find(|c| c.code == code).unwrap().measured.clone();
        assert_eq!((row("V07"), row("V05")), ("50.0 %".into(), "97.0 %".into()));
    }
}
