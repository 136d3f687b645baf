//! Advice that follows from the figures and from the limiter's law, in the units of the tools that people use.
//!
//! Concurrency by Little's law; object size from the knee; settings of the tools that move objects (warp, rclone, s5cmd) and, in a
//! line of their own, of those that generate HTTP load (vegeta, wrk2, k6). What is advised of a rate is what holds without refusals;
//! where the law is not one of a rate, no rate is advised.

mod law;
mod tools;

pub use law::{Amounts, BurstTokens, LimitLaw, WindowQuota, unlike_costs};

use plimsoll_model::Estimate;
use plimsoll_model::summary::{BucketSummary, LimitSummary};
use plimsoll_model::units::significant;

use crate::probe::scope::Dimension;
use crate::words;
use tools::KeptRate;

/// Ops in flight over those of Little's law, for times that spread (guess).
const SPARE: f64 = 1.2;
/// More in flight is no advice that a tool would take (guess).
const MOST_IN_FLIGHT: f64 = 1e6;
/// Share of the limit at which latency is still that of the storage (guess: a queue at 80 % is short).
const BELOW: f64 = 0.8;
/// What is meant is limited by ops where their limit is within this of the rate that both limits allow (guess: rounding).
const SAME: f64 = 1.05;

/// A rate whose lower end is less than this of it is not known: half of it would be given away, or what is refused be advised. (A choice.)
const SURE: f64 = 0.5;

/// What is known of a tier as it is used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Known {
    /// Sustained limits, where there are any.
    pub ops_per_s: Option<f64>,
    /// Likewise of bytes.
    pub bytes_per_s: Option<f64>,
    /// The limit on operations is not known at the size that is meant: what the one on bytes allows may be out of reach.
    pub ops_open: bool,
    /// Size of the ops that are meant.
    pub size_bytes: Option<f64>,
    /// Time of one op at low load, seconds.
    pub latency_s: Option<f64>,
    /// Client machines that share the limit.
    pub clients: u32,
    /// A block device: advice in fio's words.
    pub is_block: bool,
    /// What is too much is refused, not delayed.
    pub refuses: bool,
    /// No burst was seen to end: the rates were held for so long, seconds, and may be those of a burst. Absent: they last.
    pub held_for_s: Option<f64>,
    /// Lower ends of the intervals of both limits, on operations and on bytes, as shares of them: who is to stay below is told this. Absent:
    /// they are exact.
    pub surely: [Option<f64>; 2],
    /// How the limiter limits.
    pub law: LimitLaw,
    /// It was seen in a load that looked for no limit: nothing was tried to find a rate that passes.
    pub untried: bool,
    /// What has the limit each for itself: more of it get more. Absent: it is not known, or nothing has.
    pub each: Option<Dimension>,
    /// Connections that had `ops_per_s` together, where each has the limit for itself.
    pub connections: Option<u32>,
}

impl Known {
    /// With the rates of a limit. A speed that was seen is no limit to stay below.
    pub fn with_limit(self, l: &LimitSummary) -> Self {
        let cap = |b: &Option<BucketSummary>| b.as_ref().filter(|b| b.proved).and_then(|b| b.sustained);
        let caps = [cap(&l.ops_per_s), cap(&l.bytes_per_s)];
        let [ops_per_s, bytes_per_s] = caps.map(|cap| cap.map(|e| e.value));
        Self { ops_per_s, bytes_per_s, surely: surely(caps), held_for_s: l.held_for_s(), ..self }
    }

    /// Ops per second that both limits allow at the size that is meant.
    pub fn reachable_ops_per_s(&self) -> Option<f64> {
        self.reachable([1.0; 2])
    }

    /// The same of these shares of the limits.
    fn reachable(&self, [of_ops, of_bytes]: [f64; 2]) -> Option<f64> {
        if self.ops_open {
            return None;
        }
        let by_ops = self.ops_per_s.map(|r| r * of_ops);
        let by_bytes = self.bytes_per_s.zip(self.size_bytes).filter(|(_, s)| *s > 0.0);
        match (by_ops, by_bytes.map(|(w, s)| w * of_bytes / s)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// What of it is below both limits, whatever is true within their intervals. `None`: they are not known well enough to say.
    fn sure_ops_per_s(&self) -> Option<f64> {
        let all = self.reachable_ops_per_s()?;
        self.reachable(self.surely.map(|s| s.unwrap_or(1.0))).filter(|sure| *sure >= SURE * all)
    }
}

/// Ops in flight that reach `rate` when each takes `latency_s`, with some to spare for spread ([`SPARE`]).
pub fn in_flight(rate_per_s: f64, latency_s: f64) -> u32 {
    (SPARE * rate_per_s * latency_s).ceil().clamp(1.0, MOST_IN_FLIGHT) as u32
}

/// The lower ends of intervals, as shares of their values: [`Known::surely`]. Nothing is sure of what may be nothing.
pub fn surely(caps: [Option<Estimate>; 2]) -> [Option<f64>; 2] {
    let share = |e: Estimate| if e.low > 0.0 { (e.low / e.value).min(1.0) } else { 0.0 };
    caps.map(|cap| cap.filter(|e| e.value > 0.0).map(share))
}

/// Sentences, most useful first; none where nothing follows.
pub fn advice(k: &Known) -> Vec<String> {
    law::advice(k)
}

/// What sets so many requests in flight: in the words of tools that move objects, and of those that generate HTTP load.
pub fn in_flight_of_tools(n: u32) -> [String; 2] {
    let k = Known { clients: 1, ..Known::default() };
    [k.tools_in_flight(f64::from(n)), tools::generators_in_flight(f64::from(n), false)]
}

impl Known {
    fn share_each(&self) -> f64 {
        f64::from(self.clients.max(1))
    }

    fn who(&self) -> String {
        match self.clients {
            0 | 1 => "one client".into(),
            n => format!("{n} clients"),
        }
    }

    /// Behind a figure that is each client's.
    fn on_each(&self) -> &'static str {
        if self.clients > 1 { " on each" } else { "" }
    }

    /// So many in flight, as tools have it: over all of a client's files and jobs.
    fn tools_in_flight(&self, each: f64) -> String {
        if self.is_block {
            return format!("fio --iodepth={each:.0} (over all jobs)");
        }
        format!("s5cmd --numworkers {each:.0}, rclone --transfers {each:.0}, warp --concurrent {each:.0}")
    }
}

/// What follows from a rate that is kept.
fn of_rates(k: &Known) -> Vec<String> {
    let mut out = Vec::new();
    if let (Some(ops), Some(bytes)) = (k.ops_per_s, k.bytes_per_s) {
        let knee = bytes / ops;
        let (unit, f) = words::bytes_unit(knee);
        out.push(format!(
            "Prefer {} of {} {unit} or larger: smaller ones hit {} op/s before they reach {} MB/s.",
            if k.is_block { "I/O" } else { "objects" },
            significant(knee / f, 3),
            significant(ops, 4),
            significant(bytes / 1e6, 4)
        ));
    }
    let Some(rate) = k.reachable_ops_per_s().filter(|r| r.is_finite() && *r > 0.0) else { return out };
    let Some(sure) = k.sure_ops_per_s() else { return out };
    if k.each == Some(Dimension::Connection) {
        out.extend(more_connections(k));
        return out;
    }
    if let Some(latency) = k.latency_s.filter(|l| l.is_finite() && *l > 0.0) {
        let c = in_flight(rate, latency);
        let each = (f64::from(c) / k.share_each()).ceil();
        out.push(format!(
            "{} enough ({} op/s times {}, by Little's law): more would only queue.",
            if c == 1 { "1 request in flight is".to_owned() } else { format!("{c} requests in flight are") },
            significant(rate, 4),
            plimsoll_model::units::format_latency_ns(latency * 1e9)
        ));
        out.push(format!("With {}: {}.", k.who(), k.tools_in_flight(each)));
    }
    if k.is_block {
        let below = (BELOW * rate / k.share_each()).floor();
        if below >= 1.0 {
            out.push(format!("To measure latency below the limit: fio --rate_iops={below:.0}."));
        }
        return out;
    }
    out.extend(stay_below(k, sure));
    out.extend(k.each.and_then(more_of));
    if k.refuses && k.ops_per_s.is_some_and(|o| o <= SAME * rate) {
        out.push(
            "Excess requests are refused: a tool without a rate limit of its own spends its time on retries, which \
             its figures hide."
                .into(),
        );
    }
    out
}

/// `sure`: operations per second that are below the limits.
fn stay_below(k: &Known, sure: f64) -> Vec<String> {
    let limit = match k.held_for_s {
        Some(s) => {
            format!("the rate held for {} (a burst that lasts longer is not excluded)", words::span(s))
        }
        None => "the limit".into(),
    };
    keep(k, &format!("To stay below {limit} with {}", k.who()), sure)
}

/// A rate of all clients in the settings of tools; nothing where there is none. `what_for`: the reader's aim, which the first line
/// begins with.
fn keep(k: &Known, what_for: &str, per_s: f64) -> Vec<String> {
    let Some(kept) = KeptRate::of(per_s / k.share_each()) else { return Vec::new() };
    vec![format!("{what_for}: {}{}.", kept.s3_tools(), k.on_each()), kept.generators(k.clients > 1)]
}

/// Each connection has the limit: a rate for all of them would be that of as many as were measured.
fn more_connections(k: &Known) -> Vec<String> {
    let each = k.ops_per_s.zip(k.connections.filter(|n| *n > 0)).map(|(r, n)| {
        format!(" ({n} of them had {} op/s, {} each)", significant(r, 4), words::about(r / f64::from(n), 3))
    });
    vec![format!(
        "Each connection has the limit for itself{}: open more of them, and do not put more on each. {}.",
        each.unwrap_or_default(),
        if k.is_block {
            "With fio, more jobs (--numjobs)"
        } else {
            "More workers are more connections (s5cmd --numworkers, rclone --transfers, warp --concurrent)"
        }
    )]
}

/// What gets more of a limit that this has for itself.
fn more_of(each: Dimension) -> Option<String> {
    let text = match each {
        // Said in place of a rate.
        Dimension::Connection => return None,
        Dimension::Prefix => "Each prefix has the limit for itself: objects under several prefixes get more.",
        Dimension::Bucket => "Each bucket has the limit for itself: objects in several buckets get more.",
        Dimension::Key => {
            "Each access key has the limit for itself: clients with keys of their own get more."
        }
        Dimension::Client => "Each client machine has the limit for itself: several machines get more.",
    };
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_of_1000_ops_and_800_mib() {
        let k = Known {
            ops_per_s: Some(1000.0),
            bytes_per_s: Some(800.0 * 1048576.0),
            size_bytes: Some(4096.0),
            latency_s: Some(0.020),
            clients: 8,
            ..Known::default()
        };
        let a = advice(&k);
        assert!(a[0].starts_with("Prefer objects of 839 KB"), "{a:?}");
        assert!(a[1].starts_with("24 requests in flight"), "{a:?}");
        assert!(a[2].contains("--numworkers 3") && a[3].contains("--rps-limit 125"), "{a:?}");
        // Above the knee the bytes limit sets the ops.
        let big = Known { size_bytes: Some(8_388_608.0), ..k };
        assert_eq!(big.reachable_ops_per_s(), Some(100.0));
    }

    /// Of 79 ± 7 a client may be refused from 72 on.
    #[test]
    fn who_is_to_stay_below_is_told_the_lower_end() {
        let k = Known { ops_per_s: Some(79.0), surely: [Some(0.92), None], ..Known::default() };
        assert!(advice(&k)[0].contains("--rps-limit 72, rclone --tpslimit 72"), "{:?}", advice(&k));
    }

    /// Of 10 with an interval down to 1, the lower end would give away what passes, and the value itself may be refused.
    #[test]
    fn a_rate_that_is_hardly_known_is_none_to_set() {
        let ten = |low: f64| Some(Estimate { value: 10.0, low, high: 19.0, n_eff: 3.0 });
        let known = |low: f64| Known {
            ops_per_s: Some(10.0),
            surely: surely([ten(low), None]),
            latency_s: Some(0.01),
            ..Known::default()
        };
        let said = |low: f64| advice(&known(low));
        assert!(said(9.0).iter().any(|a| a.contains("--rps-limit 9,")), "{:?}", said(9.0));
        for low in [1.0, 0.0, -40.0, f64::NEG_INFINITY] {
            assert_eq!(said(low), Vec::<String>::new(), "{low}");
        }
        // A limit on bytes that small ops are far from takes nothing from what is known of theirs.
        let small = Known {
            bytes_per_s: Some(50e6),
            size_bytes: Some(4096.0),
            surely: [Some(0.9), Some(0.1)],
            ..known(9.0)
        };
        assert!(advice(&small).iter().any(|a| a.contains("--rps-limit 9,")), "{:?}", advice(&small));
        let large = Known { size_bytes: Some(5e6), ..small };
        assert!(advice(&large).iter().all(|a| !a.contains("--rps-limit")), "{:?}", advice(&large));
    }

    #[test]
    fn less_than_one_per_second_is_not_rounded_up() {
        let k = Known { ops_per_s: Some(2.7), clients: 4, ..Known::default() };
        assert_eq!(
            advice(&k),
            [
                "To stay below the limit with 4 clients: warp --rps-limit 0.666, rclone --tpslimit 0.666 on each.",
                "Load generators, on each: vegeta -rate=40/1m, k6 rate: 40, timeUnit: '1m'."
            ]
        );
        assert_eq!(advice(&Known { is_block: true, ..k }), Vec::<String>::new());
    }

    #[test]
    fn a_rate_that_may_be_a_burst_is_said_to_be_one_that_was_held() {
        let k = Known { ops_per_s: Some(750.0), held_for_s: Some(20.0), ..Known::default() };
        let a = advice(&k);
        assert!(
            a[0].starts_with("To stay below the rate held for 20.0 s (a burst that lasts longer"),
            "{a:?}"
        );
        assert!(advice(&Known { held_for_s: None, ..k })[0].starts_with("To stay below the limit"));
    }

    #[test]
    fn what_is_open_is_no_advice() {
        let k = Known {
            bytes_per_s: Some(500e6),
            size_bytes: Some(4096.0),
            latency_s: Some(0.001),
            ..Known::default()
        };
        assert!(advice(&k).iter().any(|a| a.contains("--rps-limit 122070")));
        assert_eq!(advice(&Known { ops_open: true, ..k }), Vec::<String>::new());
    }

    #[test]
    fn nothing_known_is_no_advice() {
        assert!(advice(&Known::default()).is_empty());
        assert!(advice(&Known { ops_per_s: Some(f64::NAN), ..Known::default() }).is_empty());
    }
}
