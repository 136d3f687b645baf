//! Limiters that keep a rate by delay: Swift's rate limit, a shaper with jitter.

use crate::rng::Rng;

use super::{LawAnswer, LawRequest, ProductLaw};

/// Swift's `ratelimit`: a running time in memcache, to which each request adds its part of a second. Who is idle for longer than the
/// buffer starts anew; who would sleep for longer than the most is refused (498), and adds nothing. Times are of a clock of a
/// millisecond.
#[derive(Debug, Clone)]
pub struct SwiftRatelimit {
    /// Requests per second.
    pub rate_per_s: f64,
    /// `rate_buffer_seconds`: 5.
    pub buffer_s: f64,
    /// `max_sleep_time_seconds`: 60.
    pub most_sleep_s: f64,
    running_s: f64,
}

impl SwiftRatelimit {
    /// Nobody has come yet.
    pub fn new(rate_per_s: f64, buffer_s: f64, most_sleep_s: f64) -> Self {
        Self { rate_per_s, buffer_s, most_sleep_s, running_s: 0.0 }
    }
}

impl ProductLaw for SwiftRatelimit {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        let now = (r.at_s * 1e3).round() / 1e3;
        let each = 1.0 / self.rate_per_s;
        if now - self.running_s > self.buffer_s {
            self.running_s = now + each;
            return LawAnswer::At(r.at_s);
        }
        let running = self.running_s + each;
        let sleep = running - now - each;
        if sleep > self.most_sleep_s {
            return LawAnswer::RefusedAt(r.at_s);
        }
        self.running_s = running;
        LawAnswer::At(r.at_s + if sleep > each { sleep } else { 0.0 })
    }
}

/// A shaper: each request leaves no sooner than its part of a second after the one before, give or take a part; a queue without end.
#[derive(Debug, Clone)]
pub struct JitteringShaper {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Coefficient of variation of the distance.
    pub jitter: f64,
    /// Requests that pass at once after a pause.
    pub burst: f64,
    rng: Rng,
    next_s: f64,
}

impl JitteringShaper {
    /// At rest.
    pub fn new(seed: u64, rate_per_s: f64, jitter: f64, burst: f64) -> Self {
        Self { rate_per_s, jitter, burst, rng: Rng::new(seed ^ 0x9a9e), next_s: 0.0 }
    }
}

impl ProductLaw for JitteringShaper {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        let earliest = r.at_s - self.burst / self.rate_per_s;
        let at = self.next_s.max(earliest);
        let each = (1.0 + self.jitter * self.rng.normal()).max(0.0) / self.rate_per_s;
        self.next_s = at + each;
        LawAnswer::At(at.max(r.at_s))
    }
}
