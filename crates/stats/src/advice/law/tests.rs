//! What a user reads, law by law.

use super::super::{Known, advice};
use super::*;
use crate::probe::scope::Dimension;

fn known(law: LimitLaw) -> Known {
    Known { law, ops_per_s: Some(100.0), surely: [Some(0.98), None], ..Known::default() }
}

fn said(k: &Known) -> String {
    advice(k).join("\n")
}

#[test]
fn requests_in_flight_are_no_rate() {
    let law = |sure| LimitLaw::InFlight { passes: 13, sure };
    let k = Known { law: law(true), ..Known::default() };
    assert_eq!(
        said(&k),
        "To keep to 13 requests in flight with one client: s5cmd --numworkers 13, rclone --transfers 13, warp --concurrent 13.\n\
         Load generators: vegeta -max-workers=13, wrk2 -t1 -c13, k6 vus: 13.\n\
         The limit is on how many requests there are at once: a rate limit does not keep to it.\n\
         Parts of one object are requests, too: s5cmd cp --concurrency 1 and rclone --s3-upload-concurrency 1 send one at a time."
    );
    // Whatever rate was seen beside it.
    assert_eq!(said(&Known { ops_per_s: Some(60.0), ..k }), said(&k));
    let four = advice(&Known { clients: 4, ..k });
    assert_eq!(
        four[0],
        "To keep to 13 requests in flight with 4 clients: s5cmd --numworkers 3, rclone --transfers 3, warp --concurrent 3 on each."
    );
    assert_eq!(four[1], "Load generators, on each: vegeta -max-workers=3, wrk2 -t1 -c3, k6 vus: 3.");
    let unsure = advice(&Known { law: law(false), ..k });
    assert_eq!(
        unsure[2],
        "Nothing is refused with as many in flight, whether their number is the limit or the rate that they reach."
    );
    let block = advice(&Known { is_block: true, clients: 2, ..k });
    assert_eq!(
        block[0],
        "To keep to 13 requests in flight with 2 clients: fio --iodepth=6 (over all jobs) on each."
    );
    assert_eq!(block.len(), 2);
}

#[test]
fn a_bucket_is_stayed_below_and_its_burst_is_said() {
    let tokens = |least, is_bound, full_again_s| Some(BurstTokens { least, is_bound, full_again_s });
    let k = known(LimitLaw::Bucket(Amounts {
        ops: tokens(4000.7, false, Some(40.0)),
        bytes: tokens(25e6, true, None),
    }));
    assert_eq!(
        said(&k),
        "To stay below the limit with one client: warp --rps-limit 98, rclone --tpslimit 98.\n\
         Load generators: vegeta -rate=98/1s, wrk2 -R98, k6 rate: 98, timeUnit: '1s'.\n\
         A burst of 4,000 ops passes beside that after a rest of 40.0 s (rclone --tpslimit-burst 4000).\n\
         A burst of at least 25.0 MB passes beside that after a rest."
    );
    let two = advice(&Known { clients: 2, ..k });
    assert!(two[2].ends_with("(rclone --tpslimit-burst 2000 on each)."), "{two:?}");
}

#[test]
fn a_window_is_a_count_per_period_and_even_spacing() {
    let quota = |period_s, units| Some(WindowQuota { period_s, units });
    let ops = |period_s, units| LimitLaw::Window(Amounts { ops: quota(period_s, units), bytes: None });
    let k = known(ops(60.0, 6000.4));
    assert_eq!(
        said(&k),
        "A quota of 6,000 requests per 60 s: at most 6,000 at once, and then nothing until the next window. Spread the load evenly \
         (100 op/s): what comes at once is refused or waits.\n\
         To stay below the limit with one client: warp --rps-limit 98, rclone --tpslimit 98.\n\
         Load generators: vegeta -rate=98/1s, wrk2 -R98, k6 rate: 98, timeUnit: '1s'."
    );
    // Nothing is known beside the window: its own count, less one.
    let alone = Known { law: ops(10.0, 100.0), untried: true, ..Known::default() };
    assert_eq!(
        said(&alone),
        "A quota of 100 requests per 10 s: at most 100 at once, and then nothing until the next window. Spread the load evenly (10 \
         op/s): what comes at once is refused or waits.\n\
         To stay below it with one client (one request fewer per window): warp --rps-limit 9.9, rclone --tpslimit 9.9.\n\
         Load generators: vegeta -rate=99/10s, wrk2 -R9, k6 rate: 99, timeUnit: '10s'."
    );
    // No figure is rounded up, and no rate to 0 or 1.
    let slow = said(&Known { law: ops(60.0, 20.9), ..alone });
    assert!(
        slow.contains("20 requests per 60 s: at most 20 at once") && slow.contains("-rate=19/1m, k6"),
        "{slow}"
    );
    let single = Known { law: ops(10.0, 1.2), ..alone };
    assert_eq!(advice(&single).len(), 1, "{}", said(&single));
    let block = Known { is_block: true, ..alone };
    assert!(advice(&block).len() == 1 && said(&block).contains("100 ops per 10 s"), "{}", said(&block));
    let k = known(LimitLaw::Window(Amounts { ops: None, bytes: quota(1.0, 50e6) }));
    assert!(said(&k).starts_with("A quota of 50.0 MB per 1 s: at most 50.0 MB at once"), "{}", said(&k));
}

#[test]
fn of_a_limit_per_connection_more_connections_get_more() {
    let k = Known {
        each: Some(Dimension::Connection),
        connections: Some(16),
        ops_per_s: Some(800.0),
        ..Known::default()
    };
    assert_eq!(
        said(&k),
        "Each connection has the limit for itself (16 of them had 800.0 op/s, 50.0 each): open more of them, and do not put more on \
         each. More workers are more connections (s5cmd --numworkers, rclone --transfers, warp --concurrent)."
    );
    assert!(!said(&Known { connections: None, ..k }).contains("rps-limit"));
    for (each, word) in [
        (Dimension::Prefix, "Each prefix has"),
        (Dimension::Bucket, "Each bucket has"),
        (Dimension::Key, "Each access key has"),
        (Dimension::Client, "Each client machine has"),
    ] {
        let all = advice(&Known { each: Some(each), ..k });
        assert!(all[0].contains("--rps-limit 800") && all[2].starts_with(word), "{all:?}");
    }
}

/// 9.4 op/s of a fight, where 60 pass for ever.
#[test]
fn who_is_banned_for_an_excess_is_told_what_it_costs() {
    let law = |holds, calm_s| LimitLaw::Insisting { pushed_per_s: 9.4, holds, shut_s: 30.2, calm_s };
    let k = Known { held_for_s: Some(60.0), ..known(law(Some((100.0, 60.0)), Some(45.0))) };
    assert_eq!(
        said(&k),
        "To stay below the rate held for 60.0 s (a burst that lasts longer is not excluded) with one client: warp --rps-limit 98, \
         rclone --tpslimit 98.\n\
         Load generators: vegeta -rate=98/1s, wrk2 -R98, k6 rate: 98, timeUnit: '1s'.\n\
         An excess costs: a load that goes on when it is refused gets 9.40 op/s, with nothing at all for up to 30.2 s at a time.\n\
         After a refusal, pause: after 45.0 s without load, the higher rate passed again."
    );
    // Whatever has no interval was offered as it is; and what held for too short a time is no rate to set.
    let bare = Known { law: law(Some((60.0, 50.0)), None), ..Known::default() };
    assert!(advice(&bare)[0].starts_with("To stay below the rate held for 50.0 s"), "{}", said(&bare));
    assert!(advice(&bare)[0].contains("--rps-limit 60,"), "{}", said(&bare));
    let short = Known { law: law(None, None), ..Known::default() };
    assert!(advice(&short).len() == 1 && !said(&short).contains("rps-limit"), "{}", said(&short));
    let steady = LimitLaw::Insisting { pushed_per_s: 40.0, holds: None, shut_s: 0.4, calm_s: None };
    assert_eq!(
        said(&Known { law: steady, ..Known::default() }),
        "An excess costs: a load that goes on when it is refused gets 40.0 op/s."
    );
}

#[test]
fn refusals_that_cost_tokens_lower_what_passes() {
    let k = Known { law: LimitLaw::CostsTokens { holds: Some((70.0, 45.0)) }, ..Known::default() };
    assert_eq!(
        said(&k),
        "To stay below the rate held for 45.0 s (a burst that lasts longer is not excluded) with one client: warp --rps-limit 70, \
         rclone --tpslimit 70.\n\
         Load generators: vegeta -rate=70/1s, wrk2 -R70, k6 rate: 70, timeUnit: '1s'.\n\
         Refused requests cost tokens: any excess lowers what passes, down to almost nothing, until the load pauses."
    );
}

#[test]
fn a_limit_that_moves_is_no_constant() {
    let k = Known { law: LimitLaw::Moving(Some((43.7, 112.0))), ..Known::default() };
    assert_eq!(
        said(&k),
        "There is no constant rate to configure: what gets through is not constant (it moved between 44 and 110 op/s). Use a client \
         that slows down when it is refused (AWS_RETRY_MODE=adaptive, rclone).\n\
         For a tool that cannot, use the low end, which was not tried by itself: warp --rps-limit 43, rclone --tpslimit 43.\n\
         Load generators: vegeta -rate=43/1s, wrk2 -R43, k6 rate: 43, timeUnit: '1s'."
    );
    let bare = advice(&Known { law: LimitLaw::Moving(None), ..k });
    assert!(bare.len() == 1 && bare[0].contains("is not constant. Use"), "{bare:?}");
    // Where it is next to nothing, the limiter was shut for a part of the time: no rate holds, however low.
    for low in [0.2, 1.2, 20.0] {
        assert_eq!(advice(&Known { law: LimitLaw::Moving(Some((low, 90.0))), ..k }).len(), 1, "{low}");
    }
    // And who looked for no limit has tried no rate.
    let untried = advice(&Known { untried: true, ..k });
    assert_eq!(
        untried[1..],
        ["Which rate passes without refusals was not tried here: plimsoll limits tries it."]
    );
}

#[test]
fn a_limit_that_grows_is_driven_on() {
    let k = known(LimitLaw::Growing { last_per_s: 400.0, last_s: 75.0, drive_s: 600.0 });
    assert_eq!(
        said(&k),
        "There is no sustained limit to configure yet: the last level (400 op/s) was seen for 75.0 s. Put load on it for 10 min in \
         all (plimsoll watch --duration 600s), to see whether it lasts."
    );
}

#[test]
fn what_is_refused_at_any_rate_is_retried() {
    let k = Known { law: LimitLaw::Share(0.334), ..Known::default() };
    assert_eq!(
        said(&k),
        "Have the client retry (AWS_MAX_ATTEMPTS, rclone --low-level-retries, s5cmd --retry-count): 33 % of the attempts are refused \
         at any rate, so neither a rate limit nor fewer in flight helps."
    );
}

#[test]
fn where_nothing_is_known_nothing_is_advised() {
    for law in [LimitLaw::Unknown, LimitLaw::Rate, LimitLaw::Bucket(Amounts { ops: None, bytes: None })] {
        assert_eq!(advice(&Known { law, ..Known::default() }), Vec::<String>::new(), "{law:?}");
    }
    assert_eq!(advice(&known(LimitLaw::Unknown)), Vec::<String>::new());
}

#[test]
fn ops_of_unlike_costs_have_rates_of_their_own() {
    assert_eq!(
        unlike_costs(&[("get", 500.0), ("put", 100.0)]).as_deref(),
        Some(
            "Set a rate for each op, since they use up unlike amounts of one limit: alone, GET 500 op/s, PUT 100 op/s; of a mix, the \
             shares of these rates come to 1 at the most."
        )
    );
    assert_eq!(unlike_costs(&[("get", 500.0), ("put", 480.0)]), None);
    assert_eq!(unlike_costs(&[("get", 500.0)]), None);
    assert_eq!(unlike_costs(&[("get", 500.0), ("put", f64::NAN)]), None);
}
