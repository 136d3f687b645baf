//! Advice that follows from a run's figures, for those who will use the storage.

use plimsoll_model::analysis::SizeModel;
use plimsoll_model::summary::{BucketSummary, LimitSummary, WorkloadSummary};
use plimsoll_model::{Analysis, OpKind, Outcome, RunSummary};
use plimsoll_stats::advice::{self, Amounts, BurstTokens, Known, LimitLaw};

/// Sentences, most useful first; none where nothing follows. `of_shapes`: what the series of the lines show of a law.
pub fn of_run(s: &RunSummary, a: &Analysis, of_shapes: Vec<String>) -> Vec<String> {
    let mut out = of_shapes;
    for l in &s.limits {
        let mut known = Known {
            // It was looked at, and is undetermined.
            ops_open: l.ops_per_s.as_ref().is_some_and(|b| b.sustained.is_none()),
            size_bytes: size_of(s, &l.op_class),
            clients: 1,
            is_block: is_block(&l.op_class),
            law: law_of(l),
            ..Known::default()
        }
        .with_limit(l);
        known.latency_s = known.reachable_ops_per_s().and_then(|cap| unloaded_s(s, &l.op_class, cap));
        out.extend(advice::advice(&known));
    }
    for m in &a.size_models {
        out.extend(advice::advice(&of_sizes(m)));
    }
    let several = a.saturations.len() > 1;
    for found in &a.saturations {
        // Of several ops each has its own.
        let of = |text: String| match several {
            true => format!("{}: {text}", found.op_class.to_uppercase()),
            false => text,
        };
        out.extend(searched(found).into_iter().map(of));
    }
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

/// What a passive look shows of a limit: a bucket, at the least so large as what came out of it.
fn law_of(l: &LimitSummary) -> LimitLaw {
    let tokens = |b: &Option<BucketSummary>| {
        let capacity = b.as_ref().filter(|b| b.proved).and_then(|b| b.capacity)?;
        Some(BurstTokens { least: capacity.low, is_bound: true, full_again_s: None })
    };
    let (ops, bytes) = (tokens(&l.ops_per_s), tokens(&l.bytes_per_s));
    if ops.is_none() && bytes.is_none() { LimitLaw::Rate } else { LimitLaw::Bucket(Amounts { ops, bytes }) }
}

/// The caps that a model of sizes found. With one number in flight a level in operations may be latency's: no cap to stay below.
fn of_sizes(m: &SizeModel) -> Known {
    let found = !m.reading.starts_with(SizeModel::UNDETERMINED);
    let caps = [m.ops_per_s.filter(|_| found && m.in_flight.is_none()), m.bytes_per_s.filter(|_| found)];
    Known {
        ops_per_s: caps[0].map(|e| e.value),
        bytes_per_s: caps[1].map(|e| e.value),
        surely: advice::surely(caps),
        is_block: is_block(&m.op_class),
        ..Known::default()
    }
}

fn is_block(op: &str) -> bool {
    OpKind::parse(op).is_some_and(OpKind::is_block)
}

/// A plateau that is less well known than this does not tell which concurrency is enough for it. (A choice.)
const KNOWN_WELL: f64 = 0.15;

/// What the search for the best concurrency says to those who set one.
fn searched(found: &plimsoll_model::analysis::Saturation) -> Vec<String> {
    let stated = found.plateau_per_s.is_some_and(|p| p.relative_half_width() <= KNOWN_WELL);
    let usable = stated && ["saturated", "latency ceiling"].contains(&found.verdict.as_str());
    let Some(c95) = found.c95.filter(|_| usable).map(|e| e.value as u32) else { return Vec::new() };
    let [tools, generators] = match found.op_class.as_str() {
        "read" | "write" => [format!("fio iodepth times numjobs of {c95}"), String::new()],
        _ => advice::in_flight_of_tools(c95),
    };
    let mut out = vec![format!("{c95} in flight are enough ({tools}): more only wait longer.")];
    out.extend(Some(generators).filter(|g| !g.is_empty()));
    let power = |p: &&plimsoll_model::analysis::SaturationPoint| {
        p.p50_ns.map_or(0.0, |ns| p.ops_per_s.value / (ns.max(1) as f64))
    };
    let gentle = found.points.iter().max_by(|a, b| power(a).total_cmp(&power(b)));
    if let Some(g) = gentle.filter(|g| g.concurrency < c95 && g.p50_ns.is_some()) {
        out.push(format!(
            "If latency matters more than rate, {} in flight give the best rate for their latency: {} op/s at a \
             median of {}.",
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

/// A load of less than this share of a limit does not wait for it. (A choice: room for the arrivals of one client to bunch.)
const BELOW: f64 = 0.8;

/// The least median service time of lines that were below the limit, and of which nothing was refused: what a limiter holds up
/// or refuses says nothing of the storage.
fn unloaded_s(s: &RunSummary, op: &str, cap_per_s: f64) -> Option<f64> {
    let below = |w: &&WorkloadSummary| {
        w.op == op && w.attempts_per_s < BELOW * cap_per_s && w.count(Outcome::is_throttled) == 0
    };
    let p50 = |w: &WorkloadSummary| {
        w.latency_ns.service.as_ref().or(w.latency_ns.response.as_ref()).and_then(|l| l.p50)
    };
    s.workloads.iter().filter(below).filter_map(p50).min().map(|ns| ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Estimate;
    use plimsoll_model::analysis::Saturation;
    use plimsoll_model::summary::{Latencies, LatencySummary};

    fn limited(proved: bool, per_s: f64, attempts_per_s: f64) -> RunSummary {
        let mut latency = plimsoll_model::Histogram::new();
        latency.record(2_000_000);
        let line = WorkloadSummary {
            name: "get".into(),
            op: "get".into(),
            size_bytes: 4096,
            attempts_per_s,
            latency_ns: Latencies { response: LatencySummary::of(&latency), ..Latencies::default() },
            ..WorkloadSummary::default()
        };
        let bucket = BucketSummary {
            sustained: Some(Estimate::symmetric(per_s, 1.0, 9.0)),
            proved,
            horizon_s: Some(20.0),
            ..BucketSummary::default()
        };
        let limit = LimitSummary {
            target: "s3".into(),
            op_class: "get".into(),
            scope: "unknown".into(),
            ops_per_s: Some(bucket),
            bytes_per_s: None,
            knee_bytes: None,
            binding: "ops".into(),
            refused: None,
            evidence: Vec::new(),
        };
        RunSummary { workloads: vec![line], limits: vec![limit], ..RunSummary::default() }
    }

    #[test]
    fn no_limit_is_no_advice() {
        assert_eq!(
            of_run(&limited(false, 150.0, 150.0), &Analysis::default(), Vec::new()),
            Vec::<String>::new()
        );
        let said = of_run(&limited(true, 150.0, 150.0), &Analysis::default(), Vec::new());
        assert!(said.len() == 2 && said[0].contains("--rps-limit 149"), "{said:?}");
    }

    /// 1 was advised of a rate between 1 and 299.
    #[test]
    fn a_limit_that_is_hardly_known_is_no_advice() {
        let mut s = limited(true, 150.0, 60.0);
        for half in [149.0, 150.0, 400.0, f64::INFINITY] {
            s.limits[0].ops_per_s.as_mut().unwrap().sustained = Some(Estimate::symmetric(150.0, half, 9.0));
            let said = of_run(&s, &Analysis::default(), Vec::new());
            assert_eq!(said, Vec::<String>::new(), "{half}");
        }
    }

    fn sized(op: &str, in_flight: Option<u32>) -> Analysis {
        let model = SizeModel {
            op_class: op.into(),
            ops_per_s: Some(Estimate::symmetric(734.6, 50.0, 9.0)),
            bytes_per_s: Some(Estimate::symmetric(141.5e6, 8e6, 9.0)),
            in_flight,
            reading: "two independent limiters".into(),
            ..SizeModel::default()
        };
        Analysis { size_models: vec![model], ..Analysis::default() }
    }

    /// Sizes at one number in flight show no cap on operations: it may be latency.
    #[test]
    fn a_level_that_may_be_latency_is_no_limit_to_stay_below() {
        for op in ["read", "get"] {
            assert_eq!(
                of_run(&RunSummary::default(), &sized(op, Some(16)), Vec::new()),
                Vec::<String>::new(),
                "{op}"
            );
        }
        let undetermined = SizeModel {
            reading: "undetermined: 2 cells with a rate are too few".into(),
            ..sized("get", None).size_models[0].clone()
        };
        let a = Analysis { size_models: vec![undetermined], ..Analysis::default() };
        assert_eq!(of_run(&RunSummary::default(), &a, Vec::new()), Vec::<String>::new());
    }

    #[test]
    fn advice_on_a_device_is_in_the_words_of_fio() {
        let said = of_run(&RunSummary::default(), &sized("read", None), Vec::new()).join(" ");
        assert!(said.contains("Prefer I/O of 193 KB"), "{said}");
        assert!(said.contains("fio --rate_iops=") && !said.contains("warp"), "{said}");
        let said = of_run(&RunSummary::default(), &sized("get", None), Vec::new()).join(" ");
        assert!(said.contains("Prefer objects of 193 KB") && said.contains("warp --rps-limit 684"), "{said}");
        // A limit that was watched is one of a device, too.
        let mut s = limited(true, 150.0, 60.0);
        (s.limits[0].op_class, s.workloads[0].op) = ("read".into(), "read".into());
        let said = of_run(&s, &Analysis::default(), Vec::new()).join(" ");
        assert!(said.contains("fio --rate_iops=") && !said.contains("warp"), "{said}");
    }

    /// A proved cap on bytes says nothing of small ops, whose own limit is not known.
    #[test]
    fn what_is_undetermined_is_no_advice() {
        let mut s = limited(true, 150.0, 150.0);
        s.limits[0].bytes_per_s = s.limits[0].ops_per_s.clone();
        s.limits[0].bytes_per_s.as_mut().unwrap().sustained = Some(Estimate::symmetric(500e6, 5e6, 9.0));
        s.limits[0].ops_per_s.as_mut().unwrap().sustained = None;
        assert_eq!(of_run(&s, &Analysis::default(), Vec::new()), Vec::<String>::new());
        // Where small ops meet the cap on bytes, or were not looked at, there is no other limit in the way.
        s.limits[0].ops_per_s = None;
        assert!(of_run(&s, &Analysis::default(), Vec::new()).join(" ").contains("--rps-limit 120849"));
    }

    /// A concurrency is enough for a rate: where no rate can be stated, nothing is enough.
    #[test]
    fn a_search_whose_rate_is_unknown_gives_no_advice() {
        let found = Saturation {
            op_class: "put".into(),
            c95: Some(Estimate::exact(32.0)),
            plateau_per_s: Some(Estimate::symmetric(400.0, 8.0, 9.0)),
            verdict: "saturated".into(),
            ..Default::default()
        };
        let said = searched(&found);
        assert!(said[0].contains("--numworkers 32"), "{said:?}");
        assert_eq!(said[1], "Load generators: vegeta -max-workers=32, wrk2 -t1 -c32, k6 vus: 32.");
        let device = searched(&Saturation { op_class: "write".into(), ..found.clone() });
        assert!(device.len() == 1 && device[0].contains("fio iodepth"), "{device:?}");
        let unknown = Estimate { low: 0.0, high: f64::INFINITY, ..found.plateau_per_s.unwrap() };
        assert_eq!(searched(&Saturation { plateau_per_s: Some(unknown), ..found }), Vec::<String>::new());
    }

    #[test]
    fn ops_in_flight_follow_from_ops_that_wait_for_no_limit() {
        let at = |attempts: f64| {
            of_run(&limited(true, 150.0, attempts), &Analysis::default(), Vec::new()).join(" ")
        };
        assert!(!at(149.0).contains("in flight") && !at(5000.0).contains("in flight"), "{}", at(149.0));
        assert!(at(60.0).contains("1 request in flight is enough (150.0 op/s times 2.00 ms"), "{}", at(60.0));
    }
}
