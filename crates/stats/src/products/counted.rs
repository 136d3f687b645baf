//! Limiters that count requests in a time: haproxy's stick tables, Envoy's global limit, AWS WAF's rate-based rule.

use std::collections::VecDeque;

use super::{LawAnswer, LawRequest, ProductLaw};

/// What haproxy does with who is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OverQuota {
    /// `deny`: at once.
    Deny,
    /// `tarpit`: after so long.
    Tarpit(f64),
    /// Noted in the table's `gpc0`, and refused as long as the entry lives: until it was not touched for so long.
    Noted(f64),
    /// Denied at once, and not counted: what counts is `gpc0_rate(period) ge quota` of what was let through.
    Spared,
}

/// `http_req_rate(period) gt quota` of a stick table: requests are counted as they come, refused ones too. The sliding count is the
/// present period's and, of the one before, the part that a sliding period still covers.
#[derive(Debug, Clone)]
pub struct HaproxyTable {
    period_s: f64,
    quota: f64,
    over: OverQuota,
    began_s: f64,
    current: f64,
    previous: f64,
    noted: bool,
    touched_s: f64,
}

impl HaproxyTable {
    /// Nobody has come yet.
    pub fn new(period_s: f64, quota: f64, over: OverQuota) -> Self {
        Self {
            period_s,
            quota,
            over,
            began_s: 0.0,
            current: 0.0,
            previous: 0.0,
            noted: false,
            touched_s: f64::NEG_INFINITY,
        }
    }

    /// Of the last period, as far as both counters tell.
    fn count(&self, t: f64) -> f64 {
        let left = 1.0 - (t - self.began_s) / self.period_s;
        self.current + self.previous * left
    }

    fn rotate(&mut self, t: f64) {
        let periods = ((t - self.began_s) / self.period_s).floor();
        if periods >= 1.0 {
            self.previous = if periods < 2.0 { self.current } else { 0.0 };
            self.current = 0.0;
            self.began_s += periods * self.period_s;
        }
    }
}

impl ProductLaw for HaproxyTable {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        let t = r.at_s;
        if let OverQuota::Noted(expire_s) = self.over {
            // An entry that expired is gone with its counters.
            if t - self.touched_s > expire_s {
                (self.noted, self.current, self.previous, self.began_s) = (false, 0.0, 0.0, t);
            }
            self.touched_s = t;
        }
        self.rotate(t);
        if self.over == OverQuota::Spared {
            if self.count(t) >= self.quota {
                return LawAnswer::RefusedAt(t);
            }
            self.current += 1.0;
            return LawAnswer::At(t);
        }
        self.current += 1.0;
        let over = self.count(t) > self.quota;
        self.noted |= over && matches!(self.over, OverQuota::Noted(_));
        match self.over {
            OverQuota::Tarpit(s) if over => LawAnswer::RefusedAt(t + s),
            _ if over || self.noted => LawAnswer::RefusedAt(t),
            _ => LawAnswer::At(t),
        }
    }
}

/// Envoy's global limit, with its counting service: so many in each second, minute or hour of the clock; 429 for the rest of it.
#[derive(Debug, Clone)]
pub struct EnvoyGlobal {
    /// 1, 60 or 3600.
    pub unit_s: f64,
    /// In each.
    pub quota: f64,
    /// Where the clock's unit began when the system's time was 0.
    pub phase_s: f64,
    unit: f64,
    count: f64,
}

impl EnvoyGlobal {
    /// Nobody has come yet.
    pub fn new(unit_s: f64, quota: f64, phase_s: f64) -> Self {
        Self { unit_s, quota, phase_s, unit: f64::NEG_INFINITY, count: 0.0 }
    }
}

impl ProductLaw for EnvoyGlobal {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        let unit = ((r.at_s + self.phase_s) / self.unit_s).floor();
        if unit != self.unit {
            (self.unit, self.count) = (unit, 0.0);
        }
        self.count += 1.0;
        if self.count > self.quota { LawAnswer::RefusedAt(r.at_s) } else { LawAnswer::At(r.at_s) }
    }
}

/// AWS WAF's rate-based rule: requests of the last minutes are counted, refused ones too, and looked at once in a while; between two
/// looks who was over is blocked.
#[derive(Debug, Clone)]
pub struct WafRule {
    window_s: f64,
    quota: f64,
    look_s: f64,
    looked: f64,
    blocked: bool,
    seconds: VecDeque<(f64, f64)>,
    count: f64,
}

impl WafRule {
    /// Nobody has come yet.
    pub fn new(window_s: f64, quota: f64, look_s: f64) -> Self {
        Self { window_s, quota, look_s, looked: 0.0, blocked: false, seconds: VecDeque::new(), count: 0.0 }
    }
}

impl ProductLaw for WafRule {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        let second = r.at_s.floor();
        let look = (r.at_s / self.look_s).floor();
        if look > self.looked {
            self.looked = look;
            let from = look * self.look_s - self.window_s;
            while self.seconds.front().is_some_and(|s| s.0 < from) {
                self.count -= self.seconds.pop_front().map_or(0.0, |s| s.1);
            }
            self.blocked = self.count > self.quota;
        }
        match self.seconds.back_mut() {
            Some(s) if s.0 == second => s.1 += 1.0,
            _ => self.seconds.push_back((second, 1.0)),
        }
        self.count += 1.0;
        if self.blocked { LawAnswer::RefusedAt(r.at_s) } else { LawAnswer::At(r.at_s) }
    }
}
