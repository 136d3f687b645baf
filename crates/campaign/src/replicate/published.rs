//! What somebody published of the same matrix: figures as they are printed, what was promised there, falls, and the source of it all.

use plimsoll_model::cost::CostOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::printed_knee;
use super::printed::{printed_bytes, printed_ops};
use super::ratios::PublishedRatio;
use crate::check::{CampaignError, wrong};
use crate::file::Promised;

/// Figures that others published, for `plimsoll replicate`. A key of the campaign, or a file of its own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Title and date, or whatever finds it.
    pub source: String,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What it was measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// What is promised of the subjects there: what is measured here may be scaled.
    #[serde(default, rename = "subject", skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<PublishedSubject>,
    /// One for each cell that it has.
    #[serde(default, rename = "figure", skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<PublishedFigure>,
    /// Runs in succession of which the later ones are slower.
    #[serde(default, rename = "cliff", skip_serializing_if = "Vec::is_empty")]
    pub cliffs: Vec<PublishedCliff>,
    /// Bursts, and the size at which one limit gives way to the other.
    #[serde(default, rename = "limit", skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<PublishedLimit>,
    /// What is said to be paid for a month at a rate.
    #[serde(default, rename = "cost", skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<PublishedCost>,
    /// How a subject's rate stands to another's.
    #[serde(default, rename = "ratio", skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<PublishedRatio>,
}

/// What a month costs at a rate, as it is printed, and what it is reckoned from: it is reckoned again, there and for what is measured here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedCost {
    /// As the campaign calls it.
    pub subject: String,
    /// As the campaign's table calls it.
    pub workload: String,
    /// As of a figure: the line whose rate is paid for here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// The amount, as it is printed: `1,425.60`.
    pub month: String,
    /// The rate that it is of, as it is printed: `1,100`.
    pub at_ops_per_s: String,
    /// What is paid: one subject, with prices of requests.
    pub prices: CostOptions,
    /// What is measured here is so many times as fast: its rate is divided by it. Default: 1.
    #[serde(default = "as_long")]
    pub rate_scale: f64,
}

/// What is said of the limits of a subject beside their rates, as it is printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedLimit {
    /// As the campaign calls it.
    pub subject: String,
    /// The campaign's probe for limits.
    pub workload: String,
    /// The size above which the limit on payload binds: `209.7KB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<String>,
    /// The rate of a burst over what can be kept up: `1.5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_over_sustained: Option<String>,
    /// Seconds that a burst lasts: `60`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_lasts_s: Option<String>,
    /// Of that, how much the bursts of what is measured here last. Default: 1.
    #[serde(default = "as_long")]
    pub time_scale: f64,
}

fn as_long() -> f64 {
    1.0
}

/// What is promised of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedSubject {
    /// As the campaign calls it.
    pub name: String,
    /// What its maker says that it does.
    pub promised: Promised,
}

/// A figure as it is printed: its digits are its rounding.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// As the campaign calls it.
    pub subject: String,
    /// As the campaign's table calls it, with its value on each axis that has several: `PUT 4KB`.
    pub workload: String,
    /// The op, or the line, where a run of the workload has several: `read`, `iops/total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// Such as `2,462.2`, `≈6,000` or `2.7-3.2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_per_s: Option<String>,
    /// With its unit: `171.9MiB/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<String>,
}

/// A fall between runs of a cell that follow each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedCliff {
    /// As the campaign calls it.
    pub subject: String,
    /// As the campaign's table calls it.
    pub workload: String,
    /// As of a figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// The last run before the fall, from 1.
    pub after_run: u32,
    /// Op/s, or payload with its unit, before it.
    pub before: String,
    /// The same after it.
    pub then: String,
}

const FORMS: &str = "Write \"469.9\" or \"\u{2248}6,000\" for ops_per_s, and \"1.8MiB/s\" for bytes_per_s.";

impl Published {
    /// From a file of its own.
    pub fn from_toml(text: &str) -> Result<Self, CampaignError> {
        let it: Self = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|at| text[..at.start.min(text.len())].matches('\n').count() + 1);
            let place = line.map_or_else(|| "the published figures".to_owned(), |n| format!("line {n}"));
            wrong(
                place,
                e.message(),
                "Correct the line; schema/campaign.schema.json has the keys, below `published`.",
            )
        })?;
        it.check()?;
        Ok(it)
    }

    /// What no syntax can say.
    pub(crate) fn check(&self) -> Result<(), CampaignError> {
        for (i, f) in self.figures.iter().enumerate() {
            let place = format!("published figure {} ({}, {})", i + 1, f.subject, f.workload);
            if f.ops_per_s.is_none() && f.bytes_per_s.is_none() {
                return Err(wrong(
                    place,
                    "it has no rate",
                    "Give it ops_per_s or bytes_per_s, or leave it out: what a source does not have stays empty.",
                ));
            }
            if let Some(text) = f.ops_per_s.as_ref().filter(|t| printed_ops(t).is_none()) {
                return Err(wrong(place, format!("ops_per_s = '{text}' is no printed rate"), FORMS));
            }
            if let Some(text) = f.bytes_per_s.as_ref().filter(|t| printed_bytes(t).is_none()) {
                return Err(wrong(place, format!("bytes_per_s = '{text}' is no printed rate"), FORMS));
            }
            let same =
                |o: &PublishedFigure| (&o.subject, &o.workload, &o.op) == (&f.subject, &f.workload, &f.op);
            if self.figures[..i].iter().any(same) {
                return Err(wrong(place, "there are two of it", "Leave one of them out."));
            }
        }
        for (i, l) in self.limits.iter().enumerate() {
            let place = format!("published limit {} ({}, {})", i + 1, l.subject, l.workload);
            let numbers = [&l.burst_over_sustained, &l.burst_lasts_s];
            let is_read = numbers.into_iter().flatten().all(|t| printed_ops(t).is_some())
                && l.knee.iter().all(|t| printed_knee(t).is_some());
            let is_scale = l.time_scale > 0.0 && l.time_scale.is_finite();
            if !is_read || !is_scale || (l.knee.is_none() && numbers.iter().all(|n| n.is_none())) {
                return Err(wrong(
                    place,
                    "it has no figure, or one that is no number",
                    "Write knee = \"209.7KB\", burst_over_sustained = \"1.5\", burst_lasts_s = \"60\", time_scale = 0.2.",
                ));
            }
        }
        for (i, r) in self.ratios.iter().enumerate() {
            r.check(&format!("published ratio {} ({} over {}, {})", i + 1, r.subject, r.over, r.workload))?;
        }
        for (i, c) in self.costs.iter().enumerate() {
            let place = format!("published cost {} ({}, {})", i + 1, c.subject, c.workload);
            c.prices.check().map_err(|e| wrong(format!("{place}, {}", e.place), e.problem, e.remedy))?;
            let has_requests =
                c.prices.chosen().is_ok_and(|(_, s)| s.requests.iter().any(|r| !r.ops.is_empty()));
            let numbers = [&c.month, &c.at_ops_per_s].map(|t| printed_ops(t));
            if numbers.iter().any(Option::is_none)
                || !(c.rate_scale > 0.0 && c.rate_scale.is_finite())
                || !has_requests
            {
                return Err(wrong(
                    place,
                    "it has no amount, no rate, or no price of requests",
                    "Write month = \"1,425.60\", at_ops_per_s = \"1,100\", and prices of one subject with requests.",
                ));
            }
        }
        for (i, c) in self.cliffs.iter().enumerate() {
            let place = format!("published cliff {} ({}, {})", i + 1, c.subject, c.workload);
            let (Some(before), Some(then)) = (printed_rate(&c.before), printed_rate(&c.then)) else {
                return Err(wrong(place, "before or then is no printed rate", FORMS));
            };
            if then.value >= before.value {
                return Err(wrong(
                    place,
                    format!("{} to {} is no fall", c.before, c.then),
                    "Write the rate before and after it, in the same unit.",
                ));
            }
        }
        Ok(())
    }
}

/// Op/s, or payload where a unit says so.
pub(crate) fn printed_rate(text: &str) -> Option<plimsoll_model::Estimate> {
    printed_ops(text).or_else(|| printed_bytes(text))
}
