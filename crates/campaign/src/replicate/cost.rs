//! What a source says that a month costs at a rate: its own arithmetic made again, and the same at the rate that was measured here.

use std::collections::BTreeMap;

use plimsoll_cost::{RunSeen, summary};
use plimsoll_model::Estimate;
use plimsoll_model::cost::CostFigure;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::units::significant;

use super::compared::{ComparedFigure, ComparedFigures, ratio};
use super::printed::printed_ops;
use super::published::{Published, PublishedCost};
use super::side::{SideCell, find};

/// A line for each, and a note where the printed amount is not what its own prices and rate come to.
pub(crate) fn costs(published: &Published, ours: &[SideCell]) -> (Vec<ComparedFigures>, Vec<String>) {
    let all: Vec<_> = published.costs.iter().filter_map(|c| one(c, ours)).collect();
    let notes = all.iter().filter_map(|(_, note)| note.clone()).collect();
    (all.into_iter().map(|(line, _)| line).collect(), notes)
}

fn one(c: &PublishedCost, ours: &[SideCell]) -> Option<(ComparedFigures, Option<String>)> {
    let cell = find(ours, &c.subject, &c.workload, c.op.as_deref());
    let of = cell.map_or_else(|| c.op.clone().unwrap_or_default(), |o| o.line.clone());
    let mut line = ComparedFigures::bare(ComparedFigure::MonthAtRate, &c.subject, &c.workload, &of);
    let size = cell.map_or(0, |o| o.size_bytes);
    let printed = printed_ops(&c.month)?;
    let reckoned = month_at(c, printed_ops(&c.at_ops_per_s)?, size)?;
    let (amount, currency) = (reckoned.amount, &c.prices.currency);
    line.published = Some(amount);
    let is_off = printed.low > amount.high || printed.high < amount.low;
    let own = format!("{} {currency}", significant(amount.value, 5));
    line.published_word = Some(if is_off { format!("{own} (printed: {})", c.month) } else { own.clone() });
    line.why = cell.and_then(|o| o.lacks.clone());
    // A rate that is scaled here costs as much as the whole of it would there.
    let rate = cell.and_then(SideCell::rate).map(|r| r.scaled(1.0 / c.rate_scale));
    line.ours = rate.and_then(|r| month_at(c, r, size)).map(|f| f.amount);
    let note = is_off.then(|| {
        format!(
            "{}, a month at {} op/s: {} {currency} is printed, and its own prices and rate come to {own}, of which the printed amount is \
             {} times ({})",
            c.subject,
            c.at_ops_per_s,
            c.month,
            significant(ratio(printed, amount).value, 3),
            reckoned.formula
        )
    });
    Some((line.judge(cell.is_none_or(|o| o.is_one_run)), note))
}

/// What these prices ask for a month of ops at this rate, as `plimsoll cost` reckons it.
fn month_at(c: &PublishedCost, rate: Estimate, size_bytes: u64) -> Option<CostFigure> {
    let (_, prices) = c.prices.chosen().ok()?;
    // Ops of one class cost the same.
    let op = prices.requests.first()?.ops.first()?;
    let line = WorkloadSummary {
        name: c.workload.clone(),
        op: op.name().into(),
        valid: true,
        size_bytes,
        size: size_bytes.into(),
        ops_per_s: Some(rate),
        bytes_per_s: Some(rate.scaled(size_bytes as f64)),
        ..WorkloadSummary::default()
    };
    let seen = RunSeen { workloads: &[line], sent: Vec::new(), seconds: 0.0, syncs: BTreeMap::new() };
    summary(&c.prices, &seen).ok()?.figures.into_iter().find(|f| f.name == "month_at_rate")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Promised;
    use crate::replicate::compared::ReplicaVerdict;

    /// "( $0.0005 / 10000 IO operations ) x ( 1100 IO operations / 1 second ) x ... = $1,425.60".
    const AZURE: &str = r#"
source = "Disks"
[[cost]]
subject = "azure"
workload = "ten"
op = "iops/total"
month = "1,425.60"
at_ops_per_s = "1,100"
rate_scale = 4
[cost.prices]
currency = "USD"
month = "30d"
[cost.prices.subjects.standard]
date = "2018-07-01"
region = "southeastasia"
source = "the article"
requests = [{ class = "transactions", ops = ["read", "write"], price = 0.0005, per = 10000 }]
"#;

    fn measured(ops: Estimate) -> SideCell {
        SideCell {
            subject: "azure".into(),
            workload: "ten".into(),
            line: "iops/total".into(),
            op: "total".into(),
            size_bytes: 512,
            promised: Promised::default(),
            ops: Some(ops),
            bytes: None,
            is_one_run: false,
            lacks: None,
        }
    }

    #[test]
    fn a_printed_month_is_reckoned_again_and_ours_beside_it() {
        let published = Published::from_toml(AZURE).unwrap();
        let (lines, notes) = costs(&published, &[measured(Estimate::symmetric(4424.0, 60.0, 10.0))]);
        let [line] = &lines[..] else { panic!("{lines:?}") };
        // 3600 x 24 x 30 = 2,592,000 s; x 1,100/s / 10,000 x 0.0005 USD = 142.56 USD.
        assert!((line.published.unwrap().value - 142.56).abs() < 1e-9, "{line:?}");
        assert_eq!(line.published_word.as_deref(), Some("142.56 USD (printed: 1,425.60)"));
        // A quarter of 4,424 is 1,106: 143.3376 USD.
        assert!((line.ours.unwrap().value - 143.3376).abs() < 1e-9, "{line:?}");
        assert_eq!(line.verdict, ReplicaVerdict::NoDifferenceSeen, "{line:?}");
        assert!(notes[0].contains("10.0 times") && notes[0].contains("2592000 s"), "{notes:?}");
        // One that is right needs no word.
        let right = Published::from_toml(&AZURE.replace("1,425.60", "142.56")).unwrap();
        let (lines, notes) = costs(&right, &[]);
        assert_eq!((lines[0].published_word.as_deref(), notes.len()), (Some("142.56 USD"), 0));
        assert_eq!(lines[0].verdict, ReplicaVerdict::OnlyPublished);
    }

    #[test]
    fn what_cannot_be_reckoned_is_told_with_its_place() {
        for (from, to) in [
            ("\"1,425.60\"", "\"a lot\""),
            ("\"1,100\"", "\"fast\""),
            ("rate_scale = 4", "rate_scale = 0"),
            (
                "requests = [{ class = \"transactions\", ops = [\"read\", \"write\"], price = 0.0005, per = 10000 }]",
                "",
            ),
        ] {
            assert!(AZURE.contains(from));
            let e = Published::from_toml(&AZURE.replace(from, to)).unwrap_err().to_string();
            assert!(e.contains("published cost 1 (azure, ten)"), "{e}");
        }
    }
}
