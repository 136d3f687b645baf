//! What is said of a whole test: findings, sentences, and whether it holds. Pure.

use plimsoll_model::net::{NetFall, NetRecord, NetStage};
use plimsoll_model::{Finding, Level};
use plimsoll_stats::fall;

use crate::judge::{SLICE_S, sum};

/// Of all CPU time; beyond it what was measured is the hypervisor's. As in the validity checks of other runs.
const STOLEN: f64 = 0.10;
/// Half of an interval as a part of its rate, beyond which a rate is hardly known. (A choice: two lanes of which one has half as much again
/// can still be told apart.)
const WIDE: f64 = 0.25;

/// What is said of the whole: findings, sentences, and whether it holds.
pub fn conclude(record: &mut NetRecord) {
    let mut findings = std::mem::take(&mut record.findings);
    for stage in &record.stages {
        if let Some(why) = &stage.why {
            findings.push(Finding::new("N02", "no_rate", Level::Invalid, format!("{}: {why}.", stage.title)));
        }
        for load in &stage.hosts {
            let name = record.name_of(load.host);
            if let Some(stolen) = load.stolen_share.filter(|s| *s > STOLEN) {
                let text = format!(
                    "{}: the hypervisor took {:.0} % of the CPU time of {name}: the network may carry more.",
                    stage.title,
                    100.0 * stolen
                );
                findings
                    .push(Finding::new("N03", "cpu_stolen", Level::Qualified, text).measured(stolen, STOLEN));
            }
            if load.softnet_dropped > 0 {
                let text = format!(
                    "{}: {name} dropped {} packets before it looked at them (softnet): net.core.netdev_max_backlog is too small, or a core is full.",
                    stage.title, load.softnet_dropped
                );
                findings.push(Finding::new("N04", "softnet_dropped", Level::Qualified, text));
            }
            let errors: u64 = load.interfaces.iter().map(|i| i.errors).sum();
            if errors > 0 {
                let text = format!(
                    "{}: the interfaces of {name} counted {errors} errors: look at cables and optics.",
                    stage.title
                );
                findings.push(Finding::new("N05", "interface_errors", Level::Qualified, text));
            }
        }
        let cpu_bound =
            stage.lanes.iter().filter(|l| l.limited_by.iter().any(|x| x.kind.ends_with("_cpu"))).count();
        if cpu_bound > 0 {
            let text = format!(
                "{}: {cpu_bound} of {} lanes were bound by a CPU: the network may carry more.",
                stage.title,
                stage.lanes.len()
            );
            findings.push(Finding::new("N06", "cpu_bound", Level::Qualified, text));
        }
        let cut = stage.lanes.iter().filter_map(|l| {
            let left_out = l.idle.map_or(0, |r| r.left_out) + l.loaded.map_or(0, |r| r.left_out);
            (left_out > 0).then_some((l, left_out))
        });
        for (lane, left_out) in cut {
            let text = format!(
                "{}: of the round trips of {} to {} the first {} are kept; {left_out} later ones are not in the figures.",
                stage.title,
                record.name_of(lane.from),
                record.name_of(lane.to),
                crate::ping::KEPT
            );
            findings.push(Finding::new("N09", "round_trips_cut", Level::Info, text));
        }
        // A rate that moved has a wide interval, which says no more than that.
        let moved = unsteady(record, stage);
        findings.extend(if moved.is_empty() { wide(record, stage).into_iter().collect() } else { moved });
    }
    let boots: Vec<&str> = record.hosts.iter().map(|h| h.boot_id.as_str()).collect();
    let shared = (1..boots.len()).find(|i| !boots[*i].is_empty() && boots[..*i].contains(&boots[*i]));
    if let Some(i) = shared {
        let text = format!(
            "{} is on the same machine as another host of this test: what lies between them is that machine, not a network.",
            record.name_of(i)
        );
        findings.push(Finding::new("N08", "same_machine", Level::Qualified, text));
    }
    record.findings = findings;
    record.valid = !record.stages.is_empty() && record.findings.iter().all(|f| f.level != Level::Invalid);
    // What was not done may have shown another rate: nothing is held against a part of a test.
    record.valid &= !record.interrupted;
    record.sentences = crate::words::sentences(record);
}

/// Lanes whose rate is hardly known: too short a time, or a machine that others use.
fn wide(record: &NetRecord, stage: &NetStage) -> Option<Finding> {
    let widths = stage.lanes.iter().filter_map(|l| Some((l, l.bytes_per_s?.relative_half_width())));
    let wide: Vec<_> = widths.filter(|(_, w)| *w > WIDE).collect();
    let (worst, width) = wide.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let text = format!(
        "{}: the rate of {} of {} lanes is known to no better than \u{b1}{:.0} % ({} to {}: \u{b1}{:.0} %): measure for longer \
         (--duration), on machines that nobody else uses.",
        stage.title,
        wide.len(),
        stage.lanes.len(),
        100.0 * WIDE,
        record.name_of(worst.from),
        record.name_of(worst.to),
        100.0 * width
    );
    Some(Finding::new("N11", "hardly_known", Level::Qualified, text).measured(*width, WIDE))
}

/// A rate that fell and stayed down, with its time; else one that moved all the same.
fn unsteady(record: &NetRecord, stage: &NetStage) -> Vec<Finding> {
    let told = |f: &NetFall| {
        let what = match (f.host.map(|h| record.name_of(h)), f.sends) {
            (None, _) => "the rate".to_owned(),
            (Some(host), true) => format!("what {host} sent"),
            (Some(host), false) => format!("what {host} took in"),
        };
        let into_test =
            stage.started_s.map_or(String::new(), |s| format!(" ({:.1} s into the test)", s + f.at_s));
        let text = format!(
            "{}: {what} fell from {:.3} to {:.3} Gbit/s {:.1} s after the stage's start{into_test}, and stayed there for the {:.1} s that \
             were left, as where a cloud's NIC has spent its credits, or others came to the path: what it carries for long is the \
             lower one.",
            stage.title,
            f.before_bytes_per_s * 8e-9,
            f.after_bytes_per_s * 8e-9,
            f.at_s,
            f.lasts_s
        );
        let kept = f.after_bytes_per_s / f.before_bytes_per_s;
        Finding::new("N10", "fell_and_stayed", Level::Qualified, text).measured(kept, 1.0 - fall::LEAST)
    };
    if !stage.falls.is_empty() {
        return stage.falls.iter().map(told).collect();
    }
    let moved = plimsoll_stats::steady::moves(&totals(stage, record.asked.warmup_s), SLICE_S);
    let told = |(how, by): (&str, f64)| {
        let text = format!(
            "{}: the rate {how} by {:.0} % within the window: credits of a cloud's NIC, or others on the path.",
            stage.title,
            100.0 * by.abs()
        );
        Finding::new("N07", "not_steady", Level::Qualified, text)
    };
    moved.map(told).into_iter().collect()
}

/// All lanes of a stage together, slice by slice, of the window.
fn totals(stage: &NetStage, warmup_s: f64) -> Vec<f64> {
    let from = (warmup_s / SLICE_S).round() as usize;
    let streams = stage.lanes.iter().flat_map(|l| &l.slices);
    let of = |s: &Vec<u64>| s.iter().skip(from).map(|b| *b as f64).collect::<Vec<_>>();
    sum(streams.map(of))
}
