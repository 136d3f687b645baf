//! Advice that follows from a run's figures, for those who will use the storage.

use plimsoll_model::{Analysis, RunSummary};
use plimsoll_stats::advice::{self, Known};

/// Sentences, most useful first; none where nothing follows.
pub fn of_run(s: &RunSummary, a: &Analysis) -> Vec<String> {
    let mut out = Vec::new();
    for l in &s.limits {
        let sustained = |b: &Option<plimsoll_model::summary::BucketSummary>| {
            b.as_ref().and_then(|b| b.sustained).map(|e| e.value)
        };
        out.extend(advice::advice(&Known {
            ops_per_s: sustained(&l.ops_per_s),
            bytes_per_s: sustained(&l.bytes_per_s),
            size_bytes: size_of(s, &l.op_class),
            latency_s: unloaded_s(s, &l.op_class),
            clients: 1,
            ..Known::default()
        }));
    }
    for m in &a.size_models {
        out.extend(advice::advice(&Known {
            ops_per_s: m.ops_per_s.map(|e| e.value),
            bytes_per_s: m.bytes_per_s.map(|e| e.value),
            ..Known::default()
        }));
    }
    out.extend(a.saturations.iter().flat_map(searched));
    // Two limits of one bucket give the same sentence twice.
    let mut said: Vec<String> = Vec::new();
    out.retain(|t| {
        !said.contains(t) && {
            said.push(t.clone());
            true
        }
    });
    out
}

/// What the search for the best concurrency says to those who set one.
fn searched(found: &plimsoll_model::analysis::Saturation) -> Vec<String> {
    let usable = ["saturated", "latency ceiling"].contains(&found.verdict.as_str());
    let Some(c95) = found.c95.filter(|_| usable).map(|e| e.value as u32) else { return Vec::new() };
    let tools = match found.op_class.as_str() {
        "read" | "write" => format!("fio iodepth times numjobs of {c95}"),
        _ => format!("s5cmd --numworkers {c95}, rclone --transfers {c95}, warp --concurrent {c95}"),
    };
    let mut out = vec![format!("{c95} in flight are enough ({tools}): more only wait longer.")];
    let power = |p: &&plimsoll_model::analysis::SaturationPoint| {
        p.p50_ns.map_or(0.0, |ns| p.ops_per_s.value / (ns.max(1) as f64))
    };
    let gentle = found.points.iter().max_by(|a, b| power(a).total_cmp(&power(b)));
    if let Some(g) = gentle.filter(|g| g.concurrency < c95 && g.p50_ns.is_some()) {
        out.push(format!(
            "Where latency counts more than rate, {} in flight give the most for their time: {} op/s at a median of {}.",
            g.concurrency,
            plimsoll_model::units::significant(g.ops_per_s.value, 3),
            plimsoll_model::units::format_latency_ns(g.p50_ns.unwrap_or(0) as f64)
        ));
    }
    out
}

/// Size of the ops that are meant: of the only line of this op, if there is one size.
fn size_of(s: &RunSummary, op: &str) -> Option<f64> {
    let mut sizes: Vec<u64> =
        s.workloads.iter().filter(|w| w.op == op && w.size_bytes > 0).map(|w| w.size_bytes).collect();
    sizes.dedup();
    match sizes[..] {
        [one] => Some(one as f64),
        _ => None,
    }
}

/// The least median service time seen: near to what one op takes with nothing in its way.
fn unloaded_s(s: &RunSummary, op: &str) -> Option<f64> {
    let p50 = |w: &plimsoll_model::summary::WorkloadSummary| {
        w.latency_ns.service.as_ref().or(w.latency_ns.response.as_ref()).and_then(|l| l.p50)
    };
    s.workloads.iter().filter(|w| w.op == op).filter_map(p50).min().map(|ns| ns as f64 / 1e9)
}
