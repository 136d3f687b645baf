//! A publication and a campaign of ours side by side: published, ours, and the difference with its interval. Pure.

mod cliff;
mod compare;
mod compared;
mod cost;
mod keys;
mod limits;
mod printed;
mod published;
mod ratios;
mod side;

#[cfg(test)]
mod tests;

pub use compared::{ComparedFigure, ComparedFigures, REPLICATE_SCHEMA, ReplicaVerdict, Replication};
pub use keys::borrowed_keys;
pub use published::{
    Published, PublishedCliff, PublishedCost, PublishedFigure, PublishedLimit, PublishedSubject,
};
pub use ratios::PublishedRatio;

use plimsoll_model::Estimate;

use crate::cells::CampaignCell;
use crate::result::{CampaignResult, RESULT_SCHEMA};
use crate::state::CampaignState;

/// What ours is held against.
#[derive(Debug, Clone, PartialEq)]
pub enum PublishedAs {
    /// Figures as they are printed.
    Figures(Box<Published>),
    /// The result of a campaign, by whoever measured it.
    Campaign(Box<CampaignResult>),
}

/// The result of a campaign, out of its JSON.
pub fn published_result(json: &str) -> Result<CampaignResult, String> {
    let value: serde_json::Value = serde_json::from_str(json).map_err(|e| format!("it is not JSON: {e}"))?;
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(RESULT_SCHEMA) => {}
        Some(other) => {
            return Err(format!("its schema is '{other}', and this program reads '{RESULT_SCHEMA}'"));
        }
        None => return Err(format!("it has no schema; this program reads '{RESULT_SCHEMA}'")),
    }
    let result: CampaignResult =
        serde_json::from_value(value).map_err(|e| format!("it is no result of a campaign: {e}"))?;
    for row in &result.rows {
        let rates = [&row.ops_per_s, &row.bytes_per_s];
        if rates.into_iter().flatten().any(|e| !is_rate(e)) {
            return Err(format!(
                "{}, {}: its rate is none, or not within its interval",
                row.subject, row.workload
            ));
        }
    }
    Ok(result)
}

/// Whatever measured it: within its interval, and of this world.
fn is_rate(e: &Estimate) -> bool {
    (0.0..MOST_OF_RATE).contains(&e.value) && e.low <= e.value && e.value <= e.high
}

/// Op/s or bytes a second.
const MOST_OF_RATE: f64 = 1e15;

/// Everything that can be held against each other. `is_same_hardware`: somebody says that it was measured on what is measured here.
pub fn replication(
    published: &PublishedAs,
    ours: &CampaignResult,
    (cells, state): (&[CampaignCell], &CampaignState),
    is_same_hardware: bool,
) -> Replication {
    let our_cells = side::of_result(ours);
    let theirs = match published {
        PublishedAs::Figures(p) => side::of_published(p, &our_cells, cells),
        PublishedAs::Campaign(result) => side::of_result(result),
    };
    let pairs = compare::Pairs::of(&theirs, &our_cells);
    let mut comparisons = pairs.cells(is_same_hardware);
    comparisons.extend(pairs.subjects_over_each_other());
    comparisons.extend(pairs.writes_over_reads());
    comparisons.extend(pairs.knees());
    comparisons.extend(pairs.of_largest());
    let mut notes = Vec::new();
    let (source, url, hardware) = match published {
        PublishedAs::Figures(p) => {
            let (falls, moments) = cliff::cliffs(p, &cliff::series(cells, state));
            comparisons.extend(falls);
            comparisons.extend(limits::limits(p, ours));
            let (lines, alike) = ratios::ratios(&p.ratios, &our_cells);
            comparisons.extend(lines);
            notes.extend(alike);
            let (months, reckoned) = cost::costs(p, &our_cells);
            comparisons.extend(months);
            notes.extend(moments);
            notes.extend(reckoned);
            notes.push("the source gives no intervals: of its figures only the rounding of the printed digits is in the difference".into());
            (p.source.clone(), p.url.clone(), p.hardware.clone())
        }
        PublishedAs::Campaign(r) => (format!("campaign {}", r.name), None, None),
    };
    if ours.to_go > 0 {
        notes.push(format!("{} of our runs are to go: figures may still change", ours.to_go));
    }
    Replication {
        schema: REPLICATE_SCHEMA.into(),
        name: ours.name.clone(),
        source,
        url,
        hardware,
        is_same_hardware,
        comparisons,
        notes,
    }
}
