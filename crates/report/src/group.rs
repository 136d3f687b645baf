//! Several runs side by side: lines grouped by what they have in common (`--by size,op,label:tier`).

use std::str::FromStr;

use plimsoll_model::Estimate;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::units::parse_size;
use plimsoll_stats::validity::is_line_valid;
use serde::{Deserialize, Serialize};

use crate::run::{ReportError, RunReport};

/// In place of the value of a label that a run does not have.
pub(crate) const NO_LABEL: &str = "(none)";

/// What lines have to share to be in one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupKey {
    /// Bytes of an op.
    Size,
    /// Its kind.
    Op,
    /// Ops in flight.
    Concurrency,
    /// Its name in the plan.
    Workload,
    /// The run itself.
    Run,
    /// The value that the run's label of this name has.
    Label(String),
}

impl FromStr for GroupKey {
    type Err = ReportError;

    fn from_str(s: &str) -> Result<Self, ReportError> {
        Ok(match s.trim() {
            "size" => Self::Size,
            "op" => Self::Op,
            "concurrency" => Self::Concurrency,
            "workload" => Self::Workload,
            "run" => Self::Run,
            other => match other.strip_prefix("label:") {
                Some(name) if !name.is_empty() => Self::Label(name.into()),
                _ => return Err(ReportError::Group(other.into())),
            },
        })
    }
}

impl GroupKey {
    /// Head of the column.
    pub fn name(&self) -> String {
        match self {
            Self::Size => "Size".into(),
            Self::Op => "Operation".into(),
            Self::Concurrency => "In flight".into(),
            Self::Workload => "Workload".into(),
            Self::Run => "Run".into(),
            Self::Label(l) => l.clone(),
        }
    }

    pub(crate) fn of(&self, run: &RunReport, w: &WorkloadSummary, decimal: bool) -> Part {
        match self {
            Self::Size => Part::number(w.size_bytes, crate::number::size_among(w.size_bytes, decimal)),
            // The read half of a mix is no run of reads.
            Self::Op if w.load.is_empty() || w.load == w.op => Part::text(&w.op),
            Self::Op => Part::text(&format!("{} ({})", w.op, w.load)),
            Self::Concurrency => Part::number(u64::from(w.concurrency), w.concurrency.to_string()),
            Self::Workload => Part::text(&w.name),
            Self::Run => Part::text(&run.summary.id),
            Self::Label(l) => Part::label(run.summary.labels.get(l).map_or(NO_LABEL, String::as_str)),
        }
    }
}

/// Sorts by number first, so that 64 KB comes after 4 KB.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    /// Thousandths.
    number: u64,
    pub text: String,
}

impl Part {
    fn number(number: u64, text: String) -> Self {
        Self { number: number.saturating_mul(1000), text }
    }

    fn text(text: &str) -> Self {
        Self { number: 0, text: text.into() }
    }

    /// 4 nodes come before 12, 0.5 before 1.5, and 64KiB before 1MiB.
    pub fn label(text: &str) -> Self {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let sized = parse_size(text).ok().map(|bytes| bytes.saturating_mul(1000));
        let number = sized.or_else(|| text[..digits].parse::<f64>().ok().map(|x| (x * 1e3) as u64));
        Self { number: number.unwrap_or(0), text: text.into() }
    }
}

/// Lines of one or several runs that share their keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Values of the keys, in the order that was asked for.
    pub keys: Vec<String>,
    /// Lines in the mean.
    pub lines: usize,
    /// Invalid lines: shown as a number, in no mean.
    pub left_out: usize,
    /// Of one line its own; of several the geometric mean with Student's interval over lines.
    pub ops_per_s: Option<Estimate>,
    /// Likewise, of bytes.
    pub bytes_per_s: Option<Estimate>,
    /// Each line's rate, in the order of the runs.
    pub each_ops_per_s: Vec<f64>,
    /// Median over lines of the response percentiles, nanoseconds.
    pub p50_ns: Option<u64>,
    /// Likewise, the 99th.
    pub p99_ns: Option<u64>,
}

/// Groups the lines of all runs, sorted by their keys.
pub fn groups(runs: &[RunReport], by: &[GroupKey]) -> Vec<Group> {
    let mut found: std::collections::BTreeMap<Vec<Part>, Vec<(&RunReport, &WorkloadSummary)>> =
        std::collections::BTreeMap::new();
    let sizes = runs.iter().flat_map(|r| &r.summary.workloads).map(|w| w.size_bytes);
    let decimal = crate::number::is_decimal(sizes);
    for run in runs {
        for w in &run.summary.workloads {
            found.entry(by.iter().map(|k| k.of(run, w, decimal)).collect()).or_default().push((run, w));
        }
    }
    found.into_iter().map(|(keys, members)| group(keys, &members)).collect()
}

fn group(keys: Vec<Part>, members: &[(&RunReport, &WorkloadSummary)]) -> Group {
    let valid: Vec<&WorkloadSummary> =
        members.iter().filter(|(r, w)| is_line_valid(&r.summary, w)).map(|(_, w)| *w).collect();
    let ops: Vec<Estimate> = valid.iter().filter_map(|w| w.ops_per_s).collect();
    let bytes: Vec<Estimate> = valid.iter().filter_map(|w| w.bytes_per_s).collect();
    let percentile = |pick: fn(&plimsoll_model::summary::LatencySummary) -> Option<u64>| {
        median(valid.iter().filter_map(|w| pick(w.latency_ns.response.as_ref()?)).collect())
    };
    Group {
        keys: keys.into_iter().map(|p| p.text).collect(),
        lines: valid.len(),
        left_out: members.len() - valid.len(),
        ops_per_s: mean(&ops),
        bytes_per_s: mean(&bytes),
        each_ops_per_s: ops.iter().map(|e| e.value).collect(),
        p50_ns: percentile(|l| l.p50),
        p99_ns: percentile(|l| l.p99),
    }
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    (!values.is_empty()).then(|| values[values.len() / 2].midpoint(values[(values.len() - 1) / 2]))
}

/// Several lines as one figure. Runs are the unit: Student's t on the logarithms of their rates; of one line its own interval.
pub fn mean(each: &[Estimate]) -> Option<Estimate> {
    match each {
        [] => None,
        [one] => Some(*one),
        many if many.iter().any(|e| e.value <= 0.0) => {
            // A rate of zero has no logarithm; the plain mean with the range is all that can be said.
            let values = many.iter().map(|e| e.value);
            let sum: f64 = values.clone().sum();
            let (low, high) =
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            Some(Estimate { value: sum / many.len() as f64, low, high, n_eff: many.len() as f64 })
        }
        many => {
            let n = many.len() as f64;
            let logs: Vec<f64> = many.iter().map(|e| e.value.ln()).collect();
            let mean = logs.iter().sum::<f64>() / n;
            let var = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let half = plimsoll_stats::student::t95(n - 1.0) * (var / n).sqrt();
            Some(Estimate {
                value: mean.exp(),
                low: (mean - half).exp(),
                high: (mean + half).exp(),
                n_eff: n,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::sweep as summary;

    fn runs() -> Vec<RunReport> {
        let tiers = ["standard", "premium", "premium"];
        let run = |(i, tier): (usize, &&str)| {
            let mut s = summary();
            s.id = format!("run-{i}");
            s.labels.insert("tier".into(), (*tier).into());
            for w in &mut s.workloads {
                w.ops_per_s = w.ops_per_s.map(|e| e.scaled(1.0 + i as f64));
            }
            RunReport::of(s)
        };
        tiers.iter().enumerate().map(run).collect()
    }

    #[test]
    fn runs_of_a_group_are_averaged_and_sizes_sort_as_numbers() {
        let by: Vec<GroupKey> = ["size", "op", "label:tier"].iter().map(|s| s.parse().unwrap()).collect();
        let all = groups(&runs(), &by);
        assert_eq!(all[0].keys, ["4 KB", "get", "premium"]);
        assert_eq!(all[0].lines, 2);
        let one =
            runs()[0].summary.workloads.iter().find(|w| w.op == "get").unwrap().ops_per_s.unwrap().value;
        let mean = all[0].ops_per_s.unwrap();
        assert!((mean.value / (one * 6f64.sqrt()) - 1.0).abs() < 1e-9);
        assert!(mean.low < one * 2.0 && mean.high > one * 3.0);
        assert_eq!(all.last().unwrap().keys[0], "10 MB");
    }

    #[test]
    fn labels_that_are_numbers_sort_as_numbers() {
        for (given, wanted) in [
            (["12", "4", "8"], ["4", "8", "12"]),
            (["1MiB", "64KiB", "4KiB"], ["4KiB", "64KiB", "1MiB"]),
            (["12 nodes", "4 nodes", "none"], ["none", "4 nodes", "12 nodes"]),
            (["10.0 TB", "0.5 TB", "1.5 TB"], ["0.5 TB", "1.5 TB", "10.0 TB"]),
            ([".5.5", "x", "2"], [".5.5", "x", "2"]),
        ] {
            let mut runs = runs();
            for (r, label) in runs.iter_mut().zip(given) {
                r.summary.labels.insert("nodes".into(), label.into());
            }
            let all = groups(&runs, &["label:nodes".parse().unwrap()]);
            assert_eq!(all.iter().map(|g| g.keys[0].as_str()).collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn the_read_half_of_a_mix_is_no_run_of_reads() {
        let mut runs = runs();
        for (r, load) in runs.iter_mut().zip(["randread", "randrw", "randrw"]) {
            for w in &mut r.summary.workloads {
                w.op = "read".into();
                w.load = load.into();
            }
        }
        let all = groups(&runs, &[GroupKey::Op]);
        let keys: Vec<&str> = all.iter().map(|g| g.keys[0].as_str()).collect();
        assert_eq!(keys, ["read (randread)", "read (randrw)"]);
    }

    #[test]
    fn invalid_runs_are_in_no_mean_and_unknown_keys_are_refused() {
        let mut runs = runs();
        runs[2].summary.status = plimsoll_model::RunStatus::None;
        let all = groups(&runs, &[GroupKey::Label("tier".into())]);
        assert!(all.iter().any(|g| g.keys[0] == "premium" && g.left_out > 0 && g.left_out == g.lines));
        let error = "colour".parse::<GroupKey>().unwrap_err().to_string();
        assert!(error.contains("label:NAME"), "{error}");
    }
}
