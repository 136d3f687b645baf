//! One system of each product, with figures drawn from a seed in the ranges that its users set.

use super::at_once::{EnvoyAdaptive, FixedSlots, LambdaConcurrency, NginxConnectionRate};
use super::buckets::{
    ApiGateway, EnvoyLocal, NginxRequests, QemuThrottle, RadosGateway, SquidPool, TakesFirst, Tokens,
};
use super::chassis::Product;
use super::counted::{EnvoyGlobal, HaproxyTable, OverQuota, WafRule};
use super::delays::{JitteringShaper, SwiftRatelimit};
use super::penalties::{CdnRule, FairUse, S3Prefix, VarnishThrottle};
use super::storage::{ProductStorage, StorageMood};
use super::{LawAnswer, LawFamily, LawRequest, ProductLaw, ProductTruth, ServiceSlots};
use crate::rng::Rng;

/// Lets all pass.
#[derive(Debug, Clone, Copy)]
struct NoLimiter;

impl ProductLaw for NoLimiter {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        LawAnswer::At(r.at_s)
    }
}

/// Draws a law, its truth, and the storage's speed as a multiple of the rate that holds.
type Draw = fn(&mut Rng, u64) -> (Box<dyn ProductLaw>, ProductTruth);

fn truth(name: &'static str, family: LawFamily, holds_per_s: Option<f64>) -> ProductTruth {
    ProductTruth { name, family, holds_per_s, in_service: None, connection_bytes_per_s: None }
}

/// Requests per second that somebody allows.
fn rate(g: &mut Rng) -> f64 {
    g.log_between(20.0, 300.0)
}

/// All products, in the order of README.md.
pub const PRODUCTS: &[(&str, Draw)] = &[
    ("AWS API Gateway", |g, _| {
        let r = rate(g);
        let account = r * g.between(1.5, 4.0);
        let buckets = vec![Tokens::new(r, r * g.log_between(0.2, 10.0)), Tokens::new(account, account * 2.0)];
        (Box::new(ApiGateway { buckets }), truth("AWS API Gateway", LawFamily::Bucket, Some(r)))
    }),
    ("RGW rate limit", |g, _| {
        let r = rate(g);
        let ops = Tokens::new(r, r * 60.0);
        (Box::new(RadosGateway { ops, bytes: None }), truth("RGW rate limit", LawFamily::Bucket, Some(r)))
    }),
    ("Envoy local", |g, _| {
        let (r, interval) = (rate(g), g.log_between(0.1, 2.0));
        let fill = (r * interval).round().max(1.0);
        let law = EnvoyLocal::new(fill * g.between(1.0, 10.0).floor(), fill, interval);
        (Box::new(law), truth("Envoy local", LawFamily::Bucket, Some(fill / interval)))
    }),
    ("nginx limit_req nodelay", |g, _| {
        let r = rate(g).round();
        let burst = (r * g.log_between(0.2, 5.0)).round();
        let law = NginxRequests::new(r, burst, true);
        (Box::new(law), truth("nginx limit_req nodelay", LawFamily::Bucket, Some(r)))
    }),
    ("nginx limit_req", |g, _| {
        let r = rate(g).round();
        // More than all clients of the probe: nobody is refused, each waits.
        let law = NginxRequests::new(r, 1000.0, false);
        (Box::new(law), truth("nginx limit_req", LawFamily::KeepsRate, Some(r)))
    }),
    ("QEMU throttle", |g, _| {
        let r = rate(g);
        let law = QemuThrottle::new(r, 0.0, 1.0, f64::INFINITY);
        (Box::new(law), truth("QEMU throttle", LawFamily::KeepsRate, Some(r)))
    }),
    ("QEMU throttle with bursts", |g, _| {
        let r = rate(g);
        let law = QemuThrottle::new(r, r * g.between(2.0, 3.0), g.between(3.0, 30.0).round(), f64::INFINITY);
        (Box::new(law), truth("QEMU throttle with bursts", LawFamily::Bucket, Some(r)))
    }),
    ("squid delay pool", |g, _| {
        let r = rate(g);
        // In requests of the probe's small size: 4,096 bytes.
        let law = SquidPool::new(r * 4096.0, r * 4096.0 * g.log_between(2.0, 20.0));
        (Box::new(law), truth("squid delay pool", LawFamily::Bucket, Some(r)))
    }),
    ("home-made, refusals cost", |g, _| {
        let r = rate(g);
        let tokens = Tokens::new(r, r * g.log_between(0.5, 5.0));
        let law = TakesFirst { tokens, refusal: g.between(0.1, 0.5), floor: -r * g.between(0.5, 2.0) };
        (Box::new(law), truth("home-made, refusals cost", LawFamily::RefusalsCount, Some(r)))
    }),
    ("haproxy deny", |g, _| {
        let (r, period) = (rate(g), [1.0, 10.0, 10.0, 30.0][g.below(4)]);
        let quota = (r * period).round();
        let law = HaproxyTable::new(period, quota, OverQuota::Deny);
        (Box::new(law), truth("haproxy deny", LawFamily::RefusalsCount, Some(quota / period)))
    }),
    ("haproxy tarpit", |g, _| {
        let (r, period) = (rate(g), [1.0, 10.0][g.below(2)]);
        let quota = (r * period).round();
        let law = HaproxyTable::new(period, quota, OverQuota::Tarpit(g.between(0.5, 3.0)));
        (Box::new(law), truth("haproxy tarpit", LawFamily::RefusalsCount, Some(quota / period)))
    }),
    ("haproxy gpc0", |g, _| {
        let (r, period) = (rate(g), [1.0, 10.0][g.below(2)]);
        let quota = (r * period).round();
        let law = HaproxyTable::new(period, quota, OverQuota::Noted(g.between(5.0, 20.0).round()));
        (Box::new(law), truth("haproxy gpc0", LawFamily::Ban, Some(quota / period)))
    }),
    ("Envoy global, second", |g, _| {
        let r = rate(g).round();
        let law = EnvoyGlobal::new(1.0, r, g.uniform());
        (Box::new(law), truth("Envoy global, second", LawFamily::Calendar, Some(r)))
    }),
    ("Envoy global, minute", |g, _| {
        let quota = (rate(g) * 60.0).round();
        let law = EnvoyGlobal::new(60.0, quota, g.between(0.0, 60.0));
        (Box::new(law), truth("Envoy global, minute", LawFamily::Calendar, Some(quota / 60.0)))
    }),
    ("AWS WAF rule", |g, _| {
        let (r, window) = (rate(g), [60.0, 120.0][g.below(2)]);
        let quota = (r * window).round();
        let law = WafRule::new(window, quota, g.between(5.0, 15.0).round());
        (Box::new(law), truth("AWS WAF rule", LawFamily::RefusalsCount, Some(quota / window)))
    }),
    ("nginx limit_conn", |g, _| {
        let most = g.between(3.0, 24.0) as usize;
        let law = FixedSlots(ServiceSlots { most, queue: 0, deadline_s: 0.0 });
        (Box::new(law), slots("nginx limit_conn", most))
    }),
    ("MinIO requests_max", |g, _| {
        let most = g.between(3.0, 24.0) as usize;
        let law = FixedSlots(ServiceSlots { most, queue: usize::MAX, deadline_s: 10.0 });
        (Box::new(law), slots("MinIO requests_max", most))
    }),
    ("Envoy circuit breaker", |g, _| {
        let (most, queue) = (g.between(3.0, 24.0) as usize, g.between(1.0, 8.0) as usize);
        let law = FixedSlots(ServiceSlots { most, queue, deadline_s: 60.0 });
        // Nobody is refused with so many in flight: in service, or waiting.
        (Box::new(law), slots("Envoy circuit breaker", most + queue))
    }),
    ("Envoy adaptive", |g, _| {
        (
            Box::new(EnvoyAdaptive::new(g.between(15.0, 60.0))),
            truth("Envoy adaptive", LawFamily::Adaptive, None),
        )
    }),
    ("Lambda concurrency", |g, _| {
        let law = LambdaConcurrency::new(g.between(3.0, 6.0), g.between(1.0, 2.0).round(), 1000.0);
        (Box::new(law), truth("Lambda concurrency", LawFamily::Grows, None))
    }),
    ("nginx limit_rate", |g, _| {
        let rate = g.log_between(20e3, 100e3);
        let truth = truth("nginx limit_rate", LawFamily::PerConnection, None);
        let truth = ProductTruth { connection_bytes_per_s: Some(rate), ..truth };
        (Box::new(NginxConnectionRate(rate)), truth)
    }),
    ("Swift ratelimit", |g, _| {
        let r = rate(g);
        let law = SwiftRatelimit::new(r, 5.0, 60.0);
        (Box::new(law), truth("Swift ratelimit", LawFamily::KeepsRate, Some(r)))
    }),
    ("shaper with jitter", |g, seed| {
        let r = rate(g);
        let law = JitteringShaper::new(seed, r, g.between(0.02, 0.3), 1.0);
        (Box::new(law), truth("shaper with jitter", LawFamily::KeepsRate, Some(r)))
    }),
    ("varnish vsthrottle block", |g, _| {
        let (r, period) = (rate(g), g.between(1.0, 10.0).round());
        let law = VarnishThrottle::new((r * period).round(), period, g.between(5.0, 30.0).round());
        let holds = (r * period).round() / period;
        (Box::new(law), truth("varnish vsthrottle block", LawFamily::Ban, Some(holds)))
    }),
    ("CDN rule", |g, _| {
        let (r, period) = (rate(g), 10.0);
        let quota = (r * period).round();
        let law = CdnRule::new(quota, period, g.between(10.0, 30.0).round());
        (Box::new(law), truth("CDN rule", LawFamily::Ban, Some(quota / period)))
    }),
    ("fair use", |g, _| {
        let r = rate(g);
        let low = r * g.between(0.2, 0.6);
        let law = FairUse::new(Tokens::new(r, r * 2.0), Tokens::new(low, low), g.between(5.0, 15.0));
        (Box::new(law), truth("fair use", LawFamily::Hysteresis, Some(r)))
    }),
    ("S3 prefix", |g, _| {
        let law = S3Prefix::new(rate(g).min(100.0), g.between(15.0, 40.0), 3);
        (Box::new(law), truth("S3 prefix", LawFamily::Grows, None))
    }),
    ("none: wanders", |_, _| (Box::new(NoLimiter), truth("none: wanders", LawFamily::Free, None))),
    ("none: stalls", |_, _| (Box::new(NoLimiter), truth("none: stalls", LawFamily::Free, None))),
    ("none: fills", |_, _| (Box::new(NoLimiter), truth("none: fills", LawFamily::Free, None))),
    ("none: busy machine", |_, _| (Box::new(NoLimiter), truth("none: busy machine", LawFamily::Free, None))),
    // The last, so that the others keep their seeds.
    ("haproxy spared", |g, _| {
        let (r, period) = (g.log_between(5.0, 300.0), [1.0, 10.0, 10.0, 30.0][g.below(4)]);
        let quota = (r * period).round();
        let law = HaproxyTable::new(period, quota, OverQuota::Spared);
        (Box::new(law), truth("haproxy spared", LawFamily::Sliding, Some(quota / period)))
    }),
];

fn slots(name: &'static str, most: usize) -> ProductTruth {
    ProductTruth { in_service: Some(most as f64), ..truth(name, LawFamily::InService, None) }
}

fn mood(name: &str, g: &mut Rng) -> StorageMood {
    match name {
        "none: stalls" => {
            StorageMood::Stalls { every_s: g.log_between(10.0, 120.0), length_s: g.log_between(0.5, 5.0) }
        }
        "none: fills" => {
            StorageMood::Fills { bytes: g.log_between(20e6, 2e9), slow_share: g.between(0.15, 0.6) }
        }
        "none: busy machine" => {
            StorageMood::Neighbour { share: g.between(0.4, 0.8), period_s: g.log_between(2.0, 30.0) }
        }
        _ => StorageMood::Calm,
    }
}

/// The system of this product and seed, and what is true of it.
pub fn product(index: usize, seed: u64) -> (Product, ProductTruth) {
    let (name, draw) = PRODUCTS[index];
    let mut g = Rng::new(seed);
    let (law, truth) = draw(&mut g, seed);
    // The storage itself could do more: of what a law holds, or of anything.
    let ops_cap = match truth.holds_per_s {
        Some(r) => r * g.log_between(2.0, 8.0),
        None => g.log_between(500.0, 3000.0),
    };
    let mut storage =
        ProductStorage::new(seed, ops_cap, g.log_between(30e6, 300e6), g.log_between(0.002, 0.02));
    storage.cv = g.between(0.005, 0.04);
    storage.tau_s = g.log_between(1.0, 8.0);
    storage.spread = g.between(0.1, 0.5);
    storage.mood = mood(name, &mut g);
    (Product::new(seed, law, storage), truth)
}
