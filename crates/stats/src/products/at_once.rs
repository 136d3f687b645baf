//! Limiters of requests in service: nginx's `limit_conn`, MinIO's `requests_max`, Envoy's circuit breaker and its adaptive
//! concurrency, Lambda's concurrency that grows while it is asked for; and nginx's `limit_rate`, which is per connection.

use super::{LawAnswer, LawRequest, ProductLaw, ServiceSlots};

/// A fixed number of slots: without a queue (nginx: 503 at once), with one of a length (Envoy's `max_pending_requests`), or with one
/// in which each waits for a time (MinIO: ten seconds, then 503).
#[derive(Debug, Clone, Copy)]
pub struct FixedSlots(pub ServiceSlots);

impl ProductLaw for FixedSlots {
    fn slots(&self) -> Option<ServiceSlots> {
        Some(self.0)
    }
}

/// nginx's `limit_rate`.
#[derive(Debug, Clone, Copy)]
pub struct NginxConnectionRate(pub f64);

impl ProductLaw for NginxConnectionRate {
    fn connection_bytes_per_s(&self) -> Option<f64> {
        Some(self.0)
    }
}

/// Envoy's gradient controller: the limit is multiplied by the least time (and a buffer) over the present time, each interval, with
/// room for its square root; once in a while the limit falls to a few, to look for the least time anew; 503.
#[derive(Debug, Clone)]
pub struct EnvoyAdaptive {
    limit: f64,
    least_s: f64,
    look_every_s: f64,
    looking: bool,
    next_look_s: f64,
    next_update_s: f64,
    times: Vec<f64>,
}

const LOOK_LIMIT: f64 = 3.0;
const LOOK_REQUESTS: usize = 50;
const UPDATE_S: f64 = 0.1;
const BUFFER: f64 = 0.25;

impl EnvoyAdaptive {
    /// Begins by looking for the least time.
    pub fn new(look_every_s: f64) -> Self {
        Self {
            limit: LOOK_LIMIT,
            least_s: 0.0,
            look_every_s,
            looking: true,
            next_look_s: look_every_s,
            next_update_s: UPDATE_S,
            times: Vec::new(),
        }
    }

    fn median(&mut self) -> f64 {
        self.times.sort_by(f64::total_cmp);
        self.times[self.times.len() / 2]
    }
}

impl ProductLaw for EnvoyAdaptive {
    fn slots(&self) -> Option<ServiceSlots> {
        Some(ServiceSlots { most: self.limit as usize, queue: 0, deadline_s: 0.0 })
    }

    fn ended(&mut self, at_s: f64, took_s: f64) {
        self.times.push(took_s);
        if self.looking {
            if self.times.len() >= LOOK_REQUESTS {
                self.least_s = self.median();
                self.times.clear();
                self.looking = false;
                self.next_look_s = at_s + self.look_every_s;
                self.next_update_s = at_s + UPDATE_S;
            }
        } else if at_s >= self.next_look_s {
            (self.looking, self.limit) = (true, LOOK_LIMIT);
            self.times.clear();
        } else if at_s >= self.next_update_s {
            let gradient = (self.least_s * (1.0 + BUFFER) / self.median()).clamp(0.5, 2.0);
            let limit = self.limit * gradient;
            self.limit = (limit + limit.sqrt()).clamp(LOOK_LIMIT, 1000.0);
            self.times.clear();
            self.next_update_s = at_s + UPDATE_S;
        }
    }
}

/// Lambda: a start of so many at once, and as many more each ten seconds in which the limit was met, up to the account's; 429.
#[derive(Debug, Clone)]
pub struct LambdaConcurrency {
    /// Now.
    pub limit: f64,
    /// More, each ten seconds.
    pub step: f64,
    /// The account's.
    pub most: f64,
    next_s: f64,
}

impl LambdaConcurrency {
    /// As it starts.
    pub fn new(limit: f64, step: f64, most: f64) -> Self {
        Self { limit, step, most, next_s: 10.0 }
    }
}

impl ProductLaw for LambdaConcurrency {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        if r.at_s >= self.next_s {
            self.limit = (self.limit + self.step).min(self.most);
            self.next_s = r.at_s + 10.0;
        }
        LawAnswer::At(r.at_s)
    }

    fn slots(&self) -> Option<ServiceSlots> {
        Some(ServiceSlots { most: self.limit as usize, queue: 0, deadline_s: 0.0 })
    }
}
