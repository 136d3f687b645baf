//! Whether the cluster was at rest beside our load: healing, scrubbing, recovery, a drive or daemon that is down, a scanner.

use std::collections::BTreeMap;

use plimsoll_model::observed::{ServerQuantity as Q, ServerReading};
use plimsoll_model::{Finding, Level, Scrape};
use plimsoll_store::RunData;

use super::SeenWindow;
use super::counts::Moved;

/// Recovery that moves more than this part of what clients move voids the result: it competes for the same drives and network.
/// (A choice: half of what makes a wide interval.)
const RECOVERY_VOIDS: f64 = 0.10;

/// States of placement groups that are work in the background, or lack of redundancy, by Ceph's names.
const BUSY_STATES: [&str; 11] = [
    "degraded",
    "undersized",
    "backfilling",
    "backfill_wait",
    "recovering",
    "recovery_wait",
    "remapped",
    "peering",
    "snaptrim",
    "scrubbing",
    "deep",
];

/// Work in the background that ends by itself, as one answer of a source has it: healing, recovery, scrubbing. In words, one each.
pub fn background_work(scrape: &Scrape) -> Vec<String> {
    let passes = |r: &&ServerReading| {
        matches!(r.quantity, Q::DrivesHealing | Q::PlacementGroups)
            || (r.quantity == Q::ObjectsNotInPlace && r.label != "unfound")
    };
    let readings = scrape.subjects.iter().flat_map(|s| &s.readings).filter(passes);
    readings.filter_map(unrest).map(|(words, value)| words.replace("{}", &number(value))).collect()
}

/// One finding for the run, with what was seen of it; another for a scanner that looks at objects.
pub fn findings(data: &RunData, windows: &[SeenWindow<'_>]) -> Vec<Finding> {
    let mut seen: BTreeMap<String, f64> = BTreeMap::new();
    for scrape in in_windows(data, windows) {
        for (words, value) in scrape.subjects.iter().flat_map(|s| &s.readings).filter_map(unrest) {
            let most = seen.entry(words).or_insert(value);
            *most = most.max(value);
        }
    }
    let share = recovery_share(data, windows);
    let mut out = Vec::new();
    if !seen.is_empty() {
        let level = if share.is_some_and(|s| s > RECOVERY_VOIDS) { Level::Invalid } else { Level::Qualified };
        let list: Vec<String> =
            seen.iter().map(|(words, most)| words.replace("{}", &number(*most))).collect();
        let recovery = share.map_or(String::new(), |s| {
            format!(" Recovery moved {:.1} % of what the clients moved.", 100.0 * s)
        });
        let text = format!(
            "The cluster was not at rest during the measurement: {}.{recovery} Wait until it is, and measure again.",
            list.join(", ")
        );
        let mut f = Finding::new("F71", "not_at_rest", level, text);
        (f.measured, f.threshold) = (share, share.map(|_| RECOVERY_VOIDS));
        out.push(f);
    }
    out.extend(scanner(windows));
    out
}

/// A reading that tells of unrest, in words with `{}` for its value.
pub fn unrest(r: &ServerReading) -> Option<(String, f64)> {
    let some = |words: &str| (r.value > 0.0).then(|| (words.to_owned(), r.value));
    match r.quantity {
        Q::DrivesHealing => some("{} drive(s) healing"),
        Q::DrivesOffline => some("{} drive(s) offline"),
        Q::NodesOffline => some("{} server(s) offline"),
        Q::OsdUp => (r.value == 0.0).then(|| (format!("{} down", r.label), 1.0)),
        Q::PlacementGroups if BUSY_STATES.contains(&r.label.as_str()) => some(&format!(
            "{{}} placement group(s) {}",
            r.label.replace("deep", "scrubbing deep").replace('_', " ")
        )),
        Q::ObjectsNotInPlace => some(&format!("{{}} object(s) {}", r.label)),
        Q::HealthStatus if r.label.is_empty() && r.value >= 2.0 => Some(("health in error".into(), 2.0)),
        Q::HealthStatus if r.label.is_empty() => some("health with warnings"),
        Q::HealthStatus => some(&r.label),
        _ => None,
    }
}

pub fn number(v: f64) -> String {
    format!("{v:.0}")
}

fn in_windows<'a>(data: &'a RunData, windows: &'a [SeenWindow<'_>]) -> impl Iterator<Item = &'a Scrape> {
    let inside = |at: u64| windows.iter().any(|w| (w.from_ns..=w.to_ns).contains(&at));
    data.observed.iter().flat_map(|s| &s.scrapes).filter(move |s| inside(s.at_ns))
}

/// Bytes of recovery by those of the clients. `None`: nobody says so, or none recovers.
fn recovery_share(data: &RunData, windows: &[SeenWindow<'_>]) -> Option<f64> {
    let sums: Vec<f64> = in_windows(data, windows)
        .filter_map(|s| {
            let rates =
                s.subjects.iter().flat_map(|s| &s.readings).filter(|r| r.quantity == Q::RecoveringBytesPerS);
            rates.map(|r| r.value).reduce(|a, b| a + b)
        })
        .collect();
    let mean = sums.iter().sum::<f64>() / sums.len().max(1) as f64;
    let moved =
        windows.iter().map(|w| (Moved::between(data, w.stage, w.from_ns, w.to_ns), w.to_ns - w.from_ns));
    let (bytes, ns) = moved.fold((0.0, 0u64), |(b, n), (m, t)| (b + m.read + m.written, n + t));
    let clients = bytes / (ns as f64 / 1e9).max(f64::MIN_POSITIVE);
    (mean > 0.0 && clients > 0.0).then(|| mean / clients)
}

/// A scanner reads what clients wrote, at a low priority: told, and no reservation.
fn scanner(windows: &[SeenWindow<'_>]) -> Option<Finding> {
    let steps = || windows.iter().flat_map(|w| &w.subjects).flat_map(|s| &s.steps);
    let objects: f64 = steps().filter_map(|s| s.total(Q::ScannedObjects)).sum();
    (objects > 0.0).then(|| {
        let text =
            format!("The servers' scanner looked at {} objects during the measurement.", number(objects));
        let mut f = Finding::new("F79", "scanner_ran", Level::Info, text);
        f.measured = Some(objects);
        f
    })
}
