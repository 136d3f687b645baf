//! What a probe advises: of its one limit by the limit's law; of kinds with limits of their own each by itself; and of ops that use up
//! unlike amounts of one limit, that each has a rate.

use plimsoll_model::summary::LimitSummary;
use plimsoll_stats::advice::{Known, LimitLaw, advice, unlike_costs};

/// `by_kind`: limits of their own. `costs`: what each op comes to alone, of one limit that they share.
pub fn of(known: &Known, by_kind: &[LimitSummary], costs: &[(&str, f64)]) -> Vec<String> {
    if by_kind.is_empty() {
        return advice(known).into_iter().chain(unlike_costs(costs)).collect();
    }
    // What all come to together is no limit on any of them.
    let of_kind = |l: &LimitSummary| {
        let own = Known {
            refuses: l.refused.is_some_and(|r| r >= LimitSummary::REFUSES),
            law: LimitLaw::Rate,
            latency_s: None,
            ops_open: false,
            ..*known
        }
        .with_limit(l);
        let op = l.op_class.to_uppercase();
        advice(&own).into_iter().map(move |text| format!("{op}: {text}"))
    };
    by_kind.iter().flat_map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Estimate;
    use plimsoll_model::summary::BucketSummary;

    use super::*;

    fn kind(op: &str, per_s: f64, proved: bool) -> LimitSummary {
        LimitSummary {
            target: "s".into(),
            op_class: op.into(),
            scope: "unknown".into(),
            ops_per_s: Some(BucketSummary {
                sustained: Some(Estimate::symmetric(per_s, 1.0, 9.0)),
                proved,
                horizon_s: Some(13.0),
                ..BucketSummary::default()
            }),
            bytes_per_s: None,
            knee_bytes: None,
            binding: "ops".into(),
            refused: Some(0.0),
            evidence: vec![],
        }
    }

    #[test]
    fn kinds_with_limits_of_their_own_have_rates_of_their_own() {
        let known = Known { ops_per_s: Some(200.0), clients: 1, ..Known::default() };
        let said = of(
            &known,
            &[kind("get", 310.0, true), kind("put", 131.0, true), kind("stat", 900.0, false)],
            &[],
        );
        assert_eq!(
            said,
            [
                "GET: To stay below the rate held for 13.0 s (a burst that lasts longer is not excluded) with one client: warp \
                 --rps-limit 309, rclone --tpslimit 309.",
                "GET: Load generators: vegeta -rate=309/1s, wrk2 -R309, k6 rate: 309, timeUnit: '1s'.",
                "PUT: To stay below the rate held for 13.0 s (a burst that lasts longer is not excluded) with one client: warp \
                 --rps-limit 130, rclone --tpslimit 130.",
                "PUT: Load generators: vegeta -rate=130/1s, wrk2 -R130, k6 rate: 130, timeUnit: '1s'."
            ]
        );
    }

    #[test]
    fn one_limit_of_unlike_costs_has_a_rate_for_each() {
        let known = Known { ops_per_s: Some(200.0), clients: 1, ..Known::default() };
        let said = of(&known, &[], &[("get", 500.0), ("put", 100.0)]);
        assert!(said.len() == 3 && said[0].starts_with("To stay below"), "{said:?}");
        assert!(said[2].contains("alone, GET 500 op/s, PUT 100 op/s"), "{said:?}");
    }
}
