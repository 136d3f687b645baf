//! The probe before limiters of real products (`crate::products`), which it was not written for.

use super::tests::{as_the_tool_does, said};
use super::*;
use crate::advice::LimitLaw;
use crate::laws::RivalLaw;
use crate::products::buckets::Tokens;
use crate::products::chassis::Product;
use crate::products::storage::ProductStorage;
use crate::products::{LawAnswer, LawRequest, ProductLaw};
use crate::simulate::drive;
use crate::simulate::events::{Backoff, Events};

fn of_product(name: &str, seed: u64, budget_s: f64) -> (ProbeOutcome, crate::products::ProductTruth) {
    let index = crate::products::draw::PRODUCTS.iter().position(|(n, _)| *n == name).unwrap();
    let (mut system, truth) = crate::products::draw::product(index, seed);
    (drive::probe(&mut system, as_the_tool_does(budget_s)), truth)
}

/// A fair use that lowers the rate of who insists: a fight yields a fifth to three fifths of what passes for ever without a refusal.
/// The rate of the fight is not told as the limit.
#[test]
fn a_rate_that_only_a_fight_yields_is_not_quoted() {
    let mut told_of = 0;
    for seed in [3, 4, 5] {
        let (o, truth) = of_product("fair use", seed, 600.0);
        if o.limit_of_ops().is_none() {
            // Nor is any other: what is known lies on both sides of what holds.
            let e = o.ops.sustained.unwrap_or_else(|| panic!("{}", said(&o)));
            assert!(e.contains(truth.holds_per_s.unwrap()), "{e:?} {}", said(&o));
            continue;
        }
        told_of += 1;
        match (o.answers.by_law, o.answers.held_back) {
            (Some(law), _) => assert_eq!(law.fit.law, RivalLaw::Slower, "{law:?}"),
            (None, Some(HeldBack::More { .. })) => {}
            (None, _) => panic!("{:?} {}", o.answers, said(&o)),
        }
        let holds = truth.holds_per_s.unwrap();
        let pushed = o.ops.passed_per_s();
        assert!(pushed < 0.7 * holds, "{pushed} of {holds}");
        let told = o.limit_of_ops().unwrap_or_else(|| panic!("{}", said(&o)));
        assert!((told / holds - 1.0).abs() < 0.05, "{told} of {holds}: {}", said(&o));
        assert!(!o.ops.is_bucket() && said(&o).contains("Insisting costs"), "{}", said(&o));
        let law = o.law();
        assert!(
            matches!(law, LimitLaw::Insisting { holds: Some((r, s)), .. } if r <= 1.03 * holds && s >= 45.0),
            "{law:?}"
        );
        assert!(o.elapsed_s <= 1.05 * 600.0, "{}", o.elapsed_s);
    }
    assert!(told_of >= 2, "{told_of} of 3");
    // Less time: the rate, or both ends and none.
    for seed in 3..9 {
        let (o, truth) = of_product("fair use", seed, 200.0);
        let holds = truth.holds_per_s.unwrap();
        let known = o.ops.known().filter(|_| o.limit_of_ops().is_some());
        assert!(known.is_none_or(|e| e.contains(holds)), "{seed}: {holds} {known:?} {}", said(&o));
    }
}

#[test]
fn a_bucket_is_the_same_for_who_holds_back() {
    for name in ["AWS API Gateway", "nginx limit_req nodelay"] {
        let (o, truth) = of_product(name, 3, 300.0);
        let holds = truth.holds_per_s.unwrap();
        let Some(HeldBack::Same { passes, refused, rested }) = o.answers.held_back else {
            panic!("{name} {:?} {}", o.answers, said(&o))
        };
        assert!(passes < holds && holds < refused, "{passes} {holds} {refused}");
        assert!(o.is_held(Resource::Ops) && (o.limit_of_ops().unwrap() / holds - 1.0).abs() < 0.01);
        assert!(matches!(o.law(), LimitLaw::Bucket(_) | LimitLaw::Rate), "{name} {:?}", o.law());
        assert_eq!(said(&o).contains("after a rest as well"), rested, "{}", said(&o));
        // A bucket of 10 s of its rate and more lasts for too long after the time that others had.
        assert!(rested || name.starts_with("AWS"), "{name} {}", said(&o));
    }
}

/// A sliding count of what is let through lets a period's quota through at once after a rest, and nothing for as long: the mean of that was told
/// as the rate of a bucket (27 of 178.5 op/s), beside what had passed by itself, or no rate at all.
#[test]
fn what_passes_by_itself_is_not_more_than_the_rate_that_is_told() {
    let mut known = 0;
    for seed in [1_091_000_001, 1_091_000_005, 1_091_000_010, 1_091_000_026, 1_091_000_032] {
        let (o, truth) = of_product("haproxy spared", seed, 240.0);
        let holds = truth.holds_per_s.unwrap();
        let told = o.ops.known();
        assert!(told.is_none_or(|e| e.contains(holds)), "{seed}: {holds} {told:?} {}", said(&o));
        known += u32::from(told.is_some());
        // Large ops are refused with the small ones.
        assert!(!o.is_limited(Resource::Bytes), "{seed} {}", said(&o));
    }
    assert!(known >= 4, "{known} of 5");
}

/// So many requests a second of each connection, which waits for its turn: the rate follows the connections, and each op takes as long. Storage
/// whose ops take as long does the same, and both are named.
#[test]
fn a_pace_of_each_connection_is_told_beside_what_looks_like_it() {
    for seed in 0..6 {
        let (o, truth) = of_product("none: wanders", seed, 240.0);
        assert!(truth.holds_per_s.is_none() && o.pace_of_each().is_none(), "{seed} {}", said(&o));
    }
    let (o, _) = of_product("nginx limit_rate", 3, 240.0);
    assert!(o.per_connection().is_none() || o.pace_of_each().is_none(), "one of both");
}

/// A limit that grows while it is asked, or that comes to no rest: no rate of it is one to configure.
#[test]
fn a_limit_that_moves_while_it_refuses_is_no_rate() {
    for (name, seed) in [("Lambda concurrency", 3), ("CDN rule", 3), ("varnish vsthrottle block", 3)] {
        let (o, truth) = of_product(name, seed, 240.0);
        let told = o.limit_of_ops();
        let within = o.ops.known().zip(truth.holds_per_s).is_some_and(|(e, h)| e.contains(h));
        assert!(told.is_none() || within, "{name}: {told:?} {}", said(&o));
        assert!(o.answers.at_once.is_some() || o.is_limited(Resource::Ops), "{name}: {}", said(&o));
        // What is not told is not advised either.
        let advised = matches!(o.law(), LimitLaw::Rate | LimitLaw::Bucket(_) | LimitLaw::Window(_));
        assert!(!advised || told.is_some(), "{name}: {:?} {}", o.law(), said(&o));
    }
}

/// Two seconds of a faster start after a look that wandered: whatever it is, it was seen once.
#[test]
fn a_burst_seen_once_beside_a_look_that_wandered_is_no_bucket() {
    for seed in 0..8 {
        let (o, _) = of_product("none: fills", seed, 240.0);
        assert!(
            !o.bytes.is_bucket() || o.bytes.drains.iter().filter(|d| d.recovered > Some(0.0)).count() > 1,
            "{}",
            said(&o)
        );
    }
}

/// A cache that fills has its burst again after each rest; the speed that it falls to is the storage's, and nobody holds that.
#[test]
fn a_cache_that_fills_is_no_bucket() {
    let mut told = 0;
    for seed in 1_089_000_010..1_089_000_030 {
        let (o, _) = of_product("none: fills", seed, 240.0);
        if !said(&o).contains("a cache that fills") {
            continue;
        }
        told += 1;
        assert!(!o.is_limited(Resource::Bytes) && !o.is_limited(Resource::Ops), "{seed}: {}", said(&o));
        assert!(o.bytes.drains.len() > 1, "{seed}: {}", said(&o));
    }
    assert!(told >= 2, "{told}");
}

/// Ten seconds that are even by chance, after a minute that was not.
#[test]
fn a_short_even_look_is_no_limit_beside_a_long_one_that_wanders() {
    for (name, seed) in [
        ("none: stalls", 1_088_000_035),
        ("MinIO requests_max", 1_076_000_001),
        ("MinIO requests_max", 1_076_000_032),
    ] {
        let (o, _) = of_product(name, seed, 240.0);
        assert!(!o.is_limited(Resource::Ops), "{name}: {}", said(&o));
    }
}

/// One of three servers refuses all that it is sent: 387 op/s were "proved", of a storage without any limit.
#[test]
fn the_same_share_refused_at_any_rate_is_no_limit() {
    for (seed, broken) in [(1, 0.3), (2, 0.33), (3, 0.1), (4, 0.5)] {
        let mut s = Events::new(seed, &[], 1);
        (s.ops_cap, s.bytes_cap, s.base_s, s.broken) = (20_000.0, 500e6, 0.010, broken);
        s.backoff = Backoff::Constant(0.0);
        let o = drive::probe(&mut s, ProbeOptions { concurrency: 8, ..as_the_tool_does(60.0 * seed as f64) });
        assert!(
            !o.is_proved(Resource::Ops) && !o.is_proved(Resource::Bytes),
            "{:?} {}",
            o.evidence(),
            said(&o)
        );
        assert_eq!(o.binding(), "share", "{seed}: {:?} {}", o.evidence(), said(&o));
        let found = o.answers.same_share.unwrap();
        assert!((found.share / broken - 1.0).abs() < 0.2, "{found:?}");
        assert!(said(&o).contains("refused at any rate"), "{}", said(&o));
        assert!(matches!(o.law(), LimitLaw::Share(s) if s == found.share), "{:?}", o.law());
    }
}

/// Each law by its product: where one is told, it is that one, and what is quoted holds; and some are told.
#[test]
fn laws_that_are_no_buckets_are_told_by_name() {
    use RivalLaw::{Ban, CalendarBan, CountsRefused};
    for (name, law) in
        [("varnish vsthrottle block", Ban), ("CDN rule", CalendarBan), ("haproxy deny", CountsRefused)]
    {
        let mut told = 0;
        for seed in 1_083_000_000..1_083_000_008 {
            let (o, truth) = of_product(name, seed, 600.0);
            assert!(o.elapsed_s <= 1.05 * 600.0, "{name}: {}", o.elapsed_s);
            let Some(won) = o.answers.by_law.filter(|w| w.fit.law == law) else { continue };
            // What was refused far above what held bounds no rate.
            let Some(rate) = o.limit_of_ops() else { continue };
            told += 1;
            let holds = truth.holds_per_s.unwrap();
            assert!((rate / holds - 1.0).abs() < 0.03, "{name}: {rate} of {holds}: {}", said(&o));
            // As much as tokens of a rest may pass for a while.
            assert!(won.offered < 1.03 * holds && holds < won.refused, "{name}: {won:?}");
            assert!(!o.ops.is_bucket() && o.is_proved(Resource::Ops) && !o.is_held(Resource::Ops), "{name}");
        }
        assert!(told >= 2, "{name}: {told} of 8");
    }
}

/// 16 ops of 1 MiB are a quarter of an hour of a pool that restores 20 KB a second.
#[test]
fn a_slow_limit_on_bytes_keeps_the_budget() {
    for seed in 0..6 {
        let (o, truth) = of_product("squid delay pool", seed, 240.0);
        assert!(o.elapsed_s <= 1.05 * 240.0, "{seed}: {} {truth:?}", o.elapsed_s);
    }
}

/// A rule that counts over two minutes lets twice its rate through for one, after two without a request: that is no rate that holds.
#[test]
fn what_a_long_rest_brought_is_no_rate() {
    for seed in [1_074_000_005, 1_074_000_009] {
        let (o, truth) = of_product("AWS WAF rule", seed, 600.0);
        let holds = truth.holds_per_s.unwrap();
        let told = o.ops.known().filter(|_| o.limit_of_ops().is_some());
        assert!(told.is_none_or(|e| e.contains(holds)), "{seed}: {holds} {told:?} {}", said(&o));
    }
}

/// No more are served at once than the limit lets in; fewer, where the storage behind it does not work on as many.
#[test]
fn those_who_wait_for_a_place_are_told_from_those_who_have_one() {
    let mut near = 0;
    for seed in 3..9 {
        let (o, truth) = of_product("MinIO requests_max", seed, 240.0);
        let most = truth.in_service.unwrap();
        assert!(!o.is_limited(Resource::Ops) && !o.is_limited(Resource::Bytes), "{seed}: {}", said(&o));
        let Some(s) = o.answers.served else { continue };
        assert!(s.ops.low <= 1.05 * most, "{seed}: {most} {s:?}");
        near += usize::from((s.ops.value / most - 1.0).abs() < 0.125);
        assert!(said(&o).contains("in flight are enough"), "{seed}: {}", said(&o));
    }
    assert!(near >= 2, "{near}");
    // Whoever limits each connection has no such number.
    for seed in 3..6 {
        let (o, _) = of_product("nginx limit_rate", seed, 240.0);
        assert_eq!(o.answers.served, None, "{seed}: {}", said(&o));
    }
}

/// A token bucket that keeps who is refused waiting.
#[derive(Debug)]
struct LateBucket {
    tokens: Tokens,
    late_s: f64,
}

impl ProductLaw for LateBucket {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        match self.tokens.take(r.at_s) {
            true => LawAnswer::At(r.at_s),
            false => LawAnswer::RefusedAt(r.at_s + self.late_s),
        }
    }
}

fn of_bucket(rate: f64, tokens: f64, late_s: f64, budget_s: f64) -> ProbeOutcome {
    let law = LateBucket { tokens: Tokens::new(rate, tokens), late_s };
    let storage = ProductStorage::new(3, 4000.0, 600e6, 0.002);
    let mut system = Product::new(3, Box::new(law), storage);
    drive::probe(&mut system, as_the_tool_does(budget_s))
}

/// 16 clients that wait two seconds for each refusal come back together, to the 20 tokens of a bucket of 20/s: exactly 10/s pass.
#[test]
fn what_passes_beside_clients_that_wait_is_no_rate() {
    for (rate, late_s) in [(20.0, 2.0), (40.0, 3.0), (30.0, 3.0), (20.0, 0.5)] {
        for budget_s in [60.0, 90.0, 120.0] {
            let o = of_bucket(rate, rate, late_s, budget_s);
            let told = o.limit_of_ops();
            assert!(
                told.is_none_or(|t| (t / rate - 1.0).abs() < 0.03),
                "{rate} {late_s} {budget_s}: {}",
                said(&o)
            );
            assert!(o.is_limited(Resource::Ops) && o.limit_of_bytes().is_none(), "{}", said(&o));
            assert!(
                told.is_some() || o.kept_waiting && said(&o).contains("who waits for them asks for less")
            );
        }
    }
}

/// One drain, and no rest: nothing came back after one.
#[test]
fn a_burst_that_was_seen_once_is_not_told_to_come_back() {
    let mut seen_once = 0;
    for budget_s in [60.0, 70.0, 80.0, 90.0, 100.0, 110.0, 120.0] {
        let o = of_bucket(20.0, 40_000.0, 0.0, budget_s);
        let rested = o.ops.drains.iter().any(|d| d.idle_s.is_some());
        assert!(rested || !said(&o).contains("comes back after rest"), "{budget_s}: {}", said(&o));
        seen_once += usize::from(o.ops.is_bucket() && !rested && said(&o).contains("was seen once"));
    }
    assert!(seen_once > 0);
}
