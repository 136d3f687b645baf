//! How figures of a source stand to each other, as it prints them, beside how ours do: scaling efficiency, and one layout over another.

use plimsoll_model::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compared::{ComparedFigure, ComparedFigures, ratio};
use super::published::printed_rate;
use super::side::{SideCell, find};
use crate::check::{CampaignError, wrong};

/// A rate of one subject over that of another, of the same workload, as a source has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedRatio {
    /// As the campaign calls it.
    pub subject: String,
    /// The subject that it stands over.
    pub over: String,
    /// As the campaign's table calls it.
    pub workload: String,
    /// As of a figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// As it is printed: the ratio (`1.18` for 18 % more), or, with `over_value`, the rate of the subject: `113GiB/s`.
    pub value: String,
    /// The rate of the other, in the same unit: `39GiB/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_value: Option<String>,
    /// How many times as much of whatever is scaled the subject has there: the ratio is divided by it, and is an efficiency. Default: 1.
    #[serde(default = "once")]
    pub times: f64,
    /// The same here.
    #[serde(default = "once")]
    pub our_times: f64,
    /// In what the two sides are not alike, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

fn once() -> f64 {
    1.0
}

impl PublishedRatio {
    /// As the source has it, with the rounding of its digits.
    fn published(&self) -> Option<Estimate> {
        let value = printed_rate(&self.value)?;
        let whole = match &self.over_value {
            None => value,
            Some(over) => ratio(value, printed_rate(over).filter(|o| o.value > 0.0)?),
        };
        Some(whole.scaled(1.0 / self.times))
    }

    pub(crate) fn check(&self, place: &str) -> Result<(), CampaignError> {
        let is_times = [self.times, self.our_times].iter().all(|t| *t > 0.0 && t.is_finite());
        if self.published().is_none_or(|e| e.value <= 0.0) || !is_times || self.subject == self.over {
            return Err(wrong(
                place,
                "it is no ratio of two subjects",
                "Write subject, over, workload, and value = \"1.18\", or value = \"113GiB/s\" with over_value = \"39GiB/s\"; times above 0.",
            ));
        }
        Ok(())
    }
}

/// A line for each, and what is said of them once.
pub(crate) fn ratios(all: &[PublishedRatio], ours: &[SideCell]) -> (Vec<ComparedFigures>, Vec<String>) {
    let mut notes: Vec<String> = Vec::new();
    for r in all {
        let note = r.note.as_ref().map(|n| format!("{} over {}: {n}", r.subject, r.over));
        notes.extend(note.filter(|n| !notes.contains(n)));
    }
    (all.iter().map(|r| one(r, ours)).collect(), notes)
}

fn one(r: &PublishedRatio, ours: &[SideCell]) -> ComparedFigures {
    let of = |subject: &str| find(ours, subject, &r.workload, r.op.as_deref());
    let (own, other) = (of(&r.subject), of(&r.over));
    let line = own.map_or_else(|| r.op.clone().unwrap_or_default(), |o| o.line.clone());
    let mut c = ComparedFigures::bare(ComparedFigure::PublishedRatio, &r.subject, &r.workload, &line);
    c.size_bytes = own.map(|o| o.size_bytes).filter(|n| *n > 0);
    c.over = Some(match (r.times, r.our_times) {
        (1.0, 1.0) => r.over.clone(),
        (there, here) => format!("{} x {here} (there x {there})", r.over),
    });
    c.published = r.published();
    let both = own.zip(other).and_then(|(a, b)| Some(ratio(a.rate()?, b.rate()?)));
    c.ours = both.map(|e| e.scaled(1.0 / r.our_times));
    let lacks = |cell: Option<&SideCell>, name: &str| match cell {
        None => Some(format!("{name}: no cell of this campaign")),
        Some(o) => o.lacks.as_ref().map(|l| format!("{name}: {l}")),
    };
    c.why = lacks(own, &r.subject).or_else(|| lacks(other, &r.over));
    c.judge([own, other].into_iter().flatten().any(|o| o.is_one_run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Promised;
    use crate::replicate::compared::ReplicaVerdict;

    fn cell(subject: &str, rate: f64, half: f64) -> SideCell {
        SideCell {
            subject: subject.into(),
            workload: "GET 4MiB".into(),
            line: "GET/get".into(),
            op: "get".into(),
            size_bytes: 4 << 20,
            promised: Promised::default(),
            ops: Some(Estimate::symmetric(rate, half, 3.0)),
            bytes: None,
            is_one_run: false,
            lacks: None,
        }
    }

    fn of(text: &str) -> PublishedRatio {
        toml::from_str(text).unwrap()
    }

    const SCALING: &str = "subject = \"4 nodes\"\nover = \"1 node\"\nworkload = \"GET 4MiB\"\nvalue = \"113GiB/s\"\n\
                           over_value = \"39GiB/s\"\ntimes = 3\nour_times = 4\nnote = \"12 over 4 nodes there\"\n";

    /// 113 / 39 / 3 = 0.966 there; 200 / 100 / 4 = 0.5 here.
    #[test]
    fn an_efficiency_is_held_against_one_of_other_numbers_of_nodes() {
        let r = of(SCALING);
        r.check("ratio").unwrap();
        let ours = [cell("4 nodes", 200.0, 2.0), cell("1 node", 100.0, 1.0)];
        let (lines, notes) = ratios(&[r.clone(), r], &ours);
        let c = &lines[0];
        assert!((c.published.unwrap().value - 113.0 / 39.0 / 3.0).abs() < 1e-9, "{c:?}");
        assert!((c.ours.unwrap().value - 0.5).abs() < 1e-9 && c.verdict == ReplicaVerdict::Lower, "{c:?}");
        assert_eq!(c.over.as_deref(), Some("1 node x 4 (there x 3)"));
        assert_eq!(notes, ["4 nodes over 1 node: 12 over 4 nodes there"]);
    }

    #[test]
    fn a_printed_percentage_is_a_ratio_and_what_is_missing_is_said() {
        let r = of("subject = \"1 + 1\"\nover = \"2 + 2\"\nworkload = \"GET 4MiB\"\nvalue = \"1.22\"\n");
        r.check("ratio").unwrap();
        let ours = [cell("1 + 1", 122.0, 1.0), cell("2 + 2", 100.0, 1.0)];
        let (lines, _) = ratios(std::slice::from_ref(&r), &ours);
        assert_eq!(lines[0].verdict, ReplicaVerdict::NoDifferenceSeen, "{:?}", lines[0]);
        let void = SideCell { ops: None, lacks: Some("void V04".into()), ..cell("2 + 2", 1.0, 0.1) };
        let (lines, _) = ratios(&[r], &[cell("1 + 1", 122.0, 1.0), void]);
        assert_eq!(lines[0].verdict, ReplicaVerdict::OnlyPublished);
        assert_eq!(lines[0].why.as_deref(), Some("2 + 2: void V04"));
    }

    #[test]
    fn what_is_no_ratio_is_refused() {
        for (from, to) in
            [("113GiB/s", "fast"), ("39GiB/s", "0GiB/s"), ("times = 3", "times = 0"), ("1 node", "4 nodes")]
        {
            let r = of(&SCALING.replacen(from, to, 1));
            assert!(r.check("ratio").is_err(), "{to}");
        }
    }
}
