//! Token buckets as products have them: API gateways (AWS), RGW, Envoy's local limit, nginx's `limit_req nodelay`, QEMU's
//! throttle, squid's delay pools, EBS volumes on an instance.

use super::{LawAnswer, LawRequest, ProductLaw};

/// A bucket that fills evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tokens {
    rate_per_s: f64,
    capacity: f64,
    level: f64,
    at_s: f64,
}

impl Tokens {
    /// Full.
    pub fn new(rate_per_s: f64, capacity: f64) -> Self {
        Self { rate_per_s, capacity, level: capacity, at_s: 0.0 }
    }

    /// Takes one, if there is one.
    pub fn take(&mut self, t: f64) -> bool {
        self.to(t);
        let has = self.level >= 1.0;
        self.level -= f64::from(u8::from(has));
        has
    }

    fn to(&mut self, t: f64) {
        if t > self.at_s {
            self.level = self.capacity.min(self.level + self.rate_per_s * (t - self.at_s));
            self.at_s = t;
        }
    }
}

/// API Gateway of AWS: rate and burst, first of the stage, then of the account; 429. Who is refused by the second has had
/// nothing of the first.
#[derive(Debug, Clone)]
pub struct ApiGateway {
    /// In series.
    pub buckets: Vec<Tokens>,
}

impl ProductLaw for ApiGateway {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        for b in &mut self.buckets {
            b.to(r.at_s);
        }
        if self.buckets.iter().any(|b| b.level < 1.0) {
            return LawAnswer::RefusedAt(r.at_s);
        }
        for b in &mut self.buckets {
            b.level -= 1.0;
        }
        LawAnswer::At(r.at_s)
    }
}

/// RGW's rate limit: so many ops a minute, and bytes a minute that may run into debt by two minutes' worth; 503. A request is let
/// through while there is a token, and bytes are taken after it.
#[derive(Debug, Clone)]
pub struct RadosGateway {
    /// Of ops.
    pub ops: Tokens,
    /// Of bytes, if they are limited.
    pub bytes: Option<Tokens>,
}

impl ProductLaw for RadosGateway {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        self.ops.to(r.at_s);
        if let Some(b) = &mut self.bytes {
            b.to(r.at_s);
        }
        if self.ops.level < 1.0 || self.bytes.is_some_and(|b| b.level <= 0.0) {
            return LawAnswer::RefusedAt(r.at_s);
        }
        self.ops.level -= 1.0;
        if let Some(b) = &mut self.bytes {
            b.level = (b.level - r.size_bytes).max(-2.0 * b.capacity);
        }
        LawAnswer::At(r.at_s)
    }
}

/// Envoy's local rate limit: `tokens_per_fill` each `fill_interval`, at most `max_tokens`; 429.
#[derive(Debug, Clone)]
pub struct EnvoyLocal {
    max: f64,
    per_fill: f64,
    interval_s: f64,
    level: f64,
    fills: f64,
}

impl EnvoyLocal {
    /// Full.
    pub fn new(max: f64, per_fill: f64, interval_s: f64) -> Self {
        Self { max, per_fill, interval_s, level: max, fills: 0.0 }
    }
}

impl ProductLaw for EnvoyLocal {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        let fills = (r.at_s / self.interval_s).floor();
        self.level = self.max.min(self.level + (fills - self.fills) * self.per_fill);
        self.fills = fills;
        if self.level < 1.0 {
            return LawAnswer::RefusedAt(r.at_s);
        }
        self.level -= 1.0;
        LawAnswer::At(r.at_s)
    }
}

/// nginx's `limit_req` with `nodelay`: an excess that leaks at the rate, in thousandths of a request and whole milliseconds; 503
/// beyond the burst, which leaves the excess as it was.
#[derive(Debug, Clone)]
pub struct NginxRequests {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Requests beyond.
    pub burst: f64,
    /// With `nodelay` they pass at once; else each waits until the rate has room for it.
    pub nodelay: bool,
    excess: f64,
    last_ms: f64,
}

impl NginxRequests {
    /// At rest.
    pub fn new(rate_per_s: f64, burst: f64, nodelay: bool) -> Self {
        Self { rate_per_s, burst, nodelay, excess: 0.0, last_ms: f64::NEG_INFINITY }
    }
}

impl ProductLaw for NginxRequests {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        let now_ms = (r.at_s * 1e3).floor();
        let first = self.last_ms == f64::NEG_INFINITY;
        let leaked = if first { f64::INFINITY } else { self.rate_per_s * (now_ms - self.last_ms) / 1e3 };
        let excess = if first { 0.0 } else { (self.excess - leaked + 1.0).max(0.0) };
        if excess > self.burst {
            return LawAnswer::RefusedAt(r.at_s);
        }
        (self.excess, self.last_ms) = (excess, now_ms);
        let wait = if self.nodelay { 0.0 } else { (excess / self.rate_per_s * 1e3).floor() / 1e3 };
        LawAnswer::At(r.at_s + wait)
    }
}

/// QEMU's throttle: a level that leaks at `avg`, with room for `max` times `burst_length` (a tenth of a second of `avg` where there
/// is no `max`), and one that leaks at `max` with room for a tenth of a second of it. What is over waits; nothing is refused.
#[derive(Debug, Clone)]
pub struct QemuThrottle {
    /// Units per second.
    pub avg: f64,
    /// Units per second in a burst; 0: none.
    pub max: f64,
    /// Seconds of it.
    pub burst_length: f64,
    /// An op of more than so many bytes counts as several (`iops-size`); infinite: as one.
    pub op_bytes: f64,
    level: f64,
    burst_level: f64,
    at_s: f64,
    last_s: f64,
}

impl QemuThrottle {
    /// Empty levels.
    pub fn new(avg: f64, max: f64, burst_length: f64, op_bytes: f64) -> Self {
        Self { avg, max, burst_length, op_bytes, level: 0.0, burst_level: 0.0, at_s: 0.0, last_s: 0.0 }
    }

    fn wait_s(&self) -> f64 {
        let room = if self.max > 0.0 { self.max * self.burst_length } else { self.avg / 10.0 };
        let over = |level: f64, room: f64, rate: f64| ((level - room) / rate).max(0.0);
        let mut wait = over(self.level, room, self.avg);
        if self.max > 0.0 && self.burst_length > 1.0 && wait == 0.0 {
            wait = over(self.burst_level, self.max / 10.0, self.max);
        }
        wait
    }
}

impl ProductLaw for QemuThrottle {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        // Requests pass in the order in which they came, each at its time.
        let t = r.at_s.max(self.last_s);
        self.level = (self.level - self.avg * (t - self.at_s)).max(0.0);
        self.burst_level = (self.burst_level - self.max * (t - self.at_s)).max(0.0);
        self.at_s = t;
        let at = t + self.wait_s();
        let units = (r.size_bytes / self.op_bytes).ceil().max(1.0);
        self.level += units;
        self.burst_level += units;
        self.last_s = at;
        LawAnswer::At(at)
    }
}

/// squid's delay pool of class 1: bytes, restored once a second, up to a maximum. What is over waits.
#[derive(Debug, Clone)]
pub struct SquidPool {
    restore: f64,
    max: f64,
    level: f64,
    second: f64,
    last_s: f64,
}

impl SquidPool {
    /// Full.
    pub fn new(restore: f64, max: f64) -> Self {
        Self { restore, max, level: max, second: 0.0, last_s: 0.0 }
    }
}

impl ProductLaw for SquidPool {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        let mut t = r.at_s.max(self.last_s);
        let second = t.floor();
        self.level = self.max.min(self.level + (second - self.second).max(0.0) * self.restore);
        self.second = self.second.max(second);
        self.level -= r.size_bytes;
        if self.level < 0.0 {
            let seconds = (-self.level / self.restore).ceil();
            self.level += seconds * self.restore;
            self.second += seconds;
            t = self.second;
        }
        self.last_s = t;
        LawAnswer::At(t)
    }
}

/// A limiter made at home: it takes a token before it looks whether there is one, so that refusals draw on the bucket, down to a
/// floor; 429.
#[derive(Debug, Clone)]
pub struct TakesFirst {
    /// See there.
    pub tokens: Tokens,
    /// What a refusal costs.
    pub refusal: f64,
    /// The lowest level.
    pub floor: f64,
}

impl ProductLaw for TakesFirst {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        self.tokens.to(r.at_s);
        if self.tokens.level < 1.0 {
            self.tokens.level = (self.tokens.level - self.refusal).max(self.floor);
            return LawAnswer::RefusedAt(r.at_s);
        }
        self.tokens.level -= 1.0;
        LawAnswer::At(r.at_s)
    }
}
