//! Connections that the server closes again and again: each op then pays for a new one, which is a property of the server
//! (or of a proxy before it) that the figures show and no figure names.

use plimsoll_model::plan::TargetSpec;
use plimsoll_model::{Finding, Level, Outcome, Plan};
use plimsoll_store::Totals;

/// From this share of ops on that needed a new connection.
const OFTEN: f64 = 0.5;
/// Ends of an op that cost its connection.
const CLOSING: [Outcome; 5] =
    [Outcome::Timeout, Outcome::Reset, Outcome::ShortBody, Outcome::Protocol, Outcome::NoConnection];
/// Fewer ops say nothing: each slot's first connection is a new one.
const LEAST_OPS: u64 = 100;

/// Said where keep-alive was asked for and not granted.
pub fn finding(plan: &Plan, totals: &[Totals]) -> Option<Finding> {
    let keeps = |t: &TargetSpec| !matches!(t, TargetSpec::S3(s3) if !s3.keep_alive);
    if !plan.targets.values().all(keeps) {
        return None;
    }
    let count = |of: &dyn Fn(&plimsoll_model::Series) -> u64| -> u64 {
        totals.iter().flat_map(|t| &t.series).map(of).sum()
    };
    let ops = count(&|s| s.counts.outcomes.iter().sum());
    // After these the client itself closes: what would come next on the connection is not known, or there is none.
    let by_client = count(&|s| CLOSING.iter().map(|o| s.counts.outcomes[o.index()]).sum());
    let opened = totals.iter().map(|t| t.client.reconnects).sum::<u64>().saturating_sub(by_client);
    let share = opened as f64 / ops.max(1) as f64;
    (ops >= LEAST_OPS && share >= OFTEN).then(|| {
        let text = format!(
            "The server closes its connections: {opened} new connections were needed for {ops} requests, and their \
             cost is part of every figure here. Other clients see the same unless the server or proxy is configured \
             for keep-alive."
        );
        Finding::new("F05", "connections_closed", Level::Info, text).measured(share, OFTEN)
    })
}
