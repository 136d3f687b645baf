//! What a record says, in sentences.

use plimsoll_model::Estimate;
use plimsoll_model::net::{NetLane, NetRecord, NetStage};

/// `0.382 Gbit/s +-0.1 %`.
pub fn gbit(e: &Estimate) -> String {
    let value = e.value * 8e-9;
    let digits = if value >= 10.0 {
        1
    } else if value >= 1.0 {
        2
    } else {
        3
    };
    let width = e.relative_half_width();
    // An interval whose ends are at the limit of what is shown is still one.
    if width.is_finite() {
        format!("{value:.digits$} Gbit/s \u{b1}{:.1} %", 100.0 * width)
    } else {
        format!("{value:.digits$} Gbit/s")
    }
}

/// Of a lane: what it carried, of what, and what bound it.
pub fn lane(record: &NetRecord, lane: &NetLane) -> String {
    let (from, to) = (record.name_of(lane.from), record.name_of(lane.to));
    let Some(e) = &lane.bytes_per_s else {
        return format!("{from} to {to}: no rate: {}.", lane.why.as_deref().unwrap_or("not known"));
    };
    let wire = lane.framing.map_or(String::new(), |f| {
        format!(
            ", {:.3} Gbit/s with headers (payload is {})",
            e.value * 8e-9 / f.payload_share(),
            f.formula()
        )
    });
    let speed = record
        .hosts
        .get(lane.from)
        .and_then(|h| h.interfaces.iter().find(|i| i.name == lane.from_interface)?.speed_mbit_per_s);
    let line = speed.zip(lane.framing).map_or(String::new(), |(s, f)| {
        format!(
            ", {:.0} % of the link's {s} Mbit/s after framing",
            100.0 * e.value * 8e-6 / f.line_share() / s as f64
        )
    });
    let bound: Vec<&str> = lane.limited_by.iter().map(|l| l.text.as_str()).collect();
    let bound = if bound.is_empty() { String::new() } else { format!(" Limited by: {}.", bound.join("; ")) };
    format!("{from} to {to}: {} payload{wire}{line}.{bound}", gbit(e))
}

/// Stages of a pattern that have a rate.
fn of<'a>(record: &'a NetRecord, pattern: &'a str) -> impl Iterator<Item = (&'a NetStage, Estimate)> + 'a {
    record.stages.iter().filter(move |s| s.pattern == pattern).filter_map(|s| Some((s, s.bytes_per_s?)))
}

/// The record in sentences, what matters most first.
pub fn sentences(record: &NetRecord) -> Vec<String> {
    let mut out = Vec::new();
    let mut pairs: Vec<&NetLane> =
        record.stages.iter().filter(|s| s.pattern == "pairs").flat_map(|s| &s.lanes).collect();
    if record.hosts.len() == 2 {
        out.extend(pairs.iter().map(|l| lane(record, l)));
        out.extend(of(record, "pairs-together").map(|(s, e)| {
            let each: Vec<String> = s
                .lanes
                .iter()
                .filter_map(|l| {
                    Some(format!(
                        "{} to {} {}",
                        record.name_of(l.from),
                        record.name_of(l.to),
                        gbit(&l.bytes_per_s?)
                    ))
                })
                .collect();
            format!("Both ways at once: {} ({}).", gbit(&e), each.join(", "))
        }));
    } else {
        pairs.retain(|l| l.bytes_per_s.is_some());
        let rate = |l: &NetLane| l.bytes_per_s.map_or(0.0, |e| e.value);
        pairs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        if let (Some(worst), Some(best)) = (pairs.first(), pairs.last()) {
            let median = rate(pairs[pairs.len() / 2]) * 8e-9;
            let at_once = match record.pairs_at_once() {
                0 | 1 => String::new(),
                n => format!(", {n} disjoint pairs at the same time"),
            };
            out.push(format!(
                "Pairs{at_once}: median {median:.3} Gbit/s, worst {}, best {}.",
                named(record, worst),
                named(record, best)
            ));
            let slow: Vec<String> = pairs
                .iter()
                .filter(|l| l.bytes_per_s.is_some_and(|e| e.high * 8e-9 < 0.8 * median))
                .take(5)
                .map(|l| named(record, l))
                .collect();
            if !slow.is_empty() {
                out.push(format!("Below 80 % of the median: {}.", slow.join(", ")));
            }
            out.push(format!("The worst pair: {}", lane(record, worst)));
        }
        for (pattern, words) in [("in", "takes in"), ("out", "gives out")] {
            let mut each: Vec<_> = of(record, pattern).collect();
            each.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
            if let (Some(least), Some(most)) = (each.first(), each.last()) {
                out.push(format!(
                    "A host {words} {} at least ({}), {} at most ({}).",
                    gbit(&least.1),
                    least.0.title,
                    gbit(&most.1),
                    most.0.title
                ));
            }
        }
    }
    out.extend(of(record, "all-to-all").map(|(_, e)| format!("Each to each at once: {} in all.", gbit(&e))));
    let halves: Vec<Estimate> = of(record, "bisection").map(|(_, e)| e).collect();
    if let Some(least) = halves.iter().copied().reduce(|a, b| if b.value < a.value { b } else { a }) {
        let mean = halves.iter().map(|e| e.value).sum::<f64>() / halves.len() as f64 * 8e-9;
        out.push(format!(
            "Bisection, both directions, of {} draws: {} at least, {mean:.3} Gbit/s in the mean.",
            halves.len(),
            gbit(&least)
        ));
    }
    for (pattern, words) in [
        ("to-servers", "Clients to servers"),
        ("from-servers", "Servers to clients"),
        ("east-west", "Among the servers, each to each"),
    ] {
        out.extend(of(record, pattern).map(|(_, e)| format!("{words}: {} in all.", gbit(&e))));
    }
    out
}

fn named(record: &NetRecord, l: &NetLane) -> String {
    let rate = l.bytes_per_s.map_or_else(|| "no rate".into(), |e| gbit(&e));
    format!("{} to {} with {rate}", record.name_of(l.from), record.name_of(l.to))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::net::NetHost;

    use super::*;

    #[test]
    fn pairs_that_were_at_the_same_time_are_told_as_that() {
        let mut record = crate::new_record("net-1".into(), "1", "", String::new());
        record.hosts = ["a", "b", "c", "d"].map(|n| NetHost { name: n.into(), ..NetHost::default() }).into();
        let lane = |from, to| NetLane {
            from,
            to,
            bytes_per_s: Some(Estimate::symmetric(125e6, 1e6, 9.0)),
            ..NetLane::default()
        };
        let lanes = vec![lane(0, 1), lane(2, 3)];
        let stage = |lanes: &[NetLane]| NetStage {
            pattern: "pairs".into(),
            title: String::new(),
            bytes_per_s: None,
            why: None,
            lanes: lanes.to_vec(),
            ..NetStage::default()
        };
        record.stages = vec![stage(&lanes)];
        let said = &sentences(&record)[0];
        assert!(said.starts_with("Pairs, 2 disjoint pairs at the same time: median 1.000 Gbit/s"), "{said}");
        record.stages = lanes.iter().map(|l| stage(std::slice::from_ref(l))).collect();
        assert!(sentences(&record)[0].starts_with("Pairs: median"));
    }

    /// 0 to 65 Gbit/s says neither that a lane is slow nor that it is fast.
    #[test]
    fn a_pair_that_is_hardly_known_is_not_called_slow() {
        let mut record = crate::new_record("net-1".into(), "1", "", String::new());
        record.hosts = ["a", "b", "c"].map(|n| NetHost { name: n.into(), ..NetHost::default() }).into();
        let stage = |to, rate: f64, half: f64| NetStage {
            pattern: "pairs".into(),
            title: format!("a to {to}"),
            lanes: vec![NetLane {
                from: 0,
                to,
                bytes_per_s: Some(Estimate::symmetric(rate, half, 9.0)),
                ..NetLane::default()
            }],
            ..NetStage::default()
        };
        record.stages = vec![stage(1, 60e6, 80e6), stage(2, 125e6, 1e6)];
        record.stages.push(stage(2, 125e6, 1e6));
        crate::conclude::conclude(&mut record);
        assert!(!record.sentences.iter().any(|s| s.contains("Below 80 %")), "{:?}", record.sentences);
        let f = record.findings.iter().find(|f| f.code == "N11").unwrap();
        assert!(f.level == plimsoll_model::Level::Qualified && f.text.contains("a to b"), "{f:?}");
        record.stages[0] = stage(1, 60e6, 20e6);
        record.findings.clear();
        crate::conclude::conclude(&mut record);
        assert!(record.valid && record.sentences.iter().any(|s| s.contains("of the median: a to b")));
    }
}
