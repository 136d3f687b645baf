//! Limiters under which an excess costs more than the excess: varnish's vsthrottle with a block, a rule that blocks for a while
//! (as CDNs have), a fair use that lowers the rate; and S3, whose prefixes grow while they are asked.

use super::buckets::Tokens;
use super::{LawAnswer, LawRequest, ProductLaw};

/// `vsthrottle.is_denied(key, limit, period, block)`: a bucket of `limit` that fills in `period`; who finds it empty is denied for
/// `block`, whatever comes meanwhile; 429.
#[derive(Debug, Clone)]
pub struct VarnishThrottle {
    limit: f64,
    period_s: f64,
    block_s: f64,
    tokens: f64,
    used_s: f64,
    blocked_until_s: f64,
}

impl VarnishThrottle {
    /// Full.
    pub fn new(limit: f64, period_s: f64, block_s: f64) -> Self {
        Self { limit, period_s, block_s, tokens: limit, used_s: 0.0, blocked_until_s: 0.0 }
    }
}

impl ProductLaw for VarnishThrottle {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        if r.at_s < self.blocked_until_s {
            return LawAnswer::RefusedAt(r.at_s);
        }
        self.tokens = self.limit.min(self.tokens + (r.at_s - self.used_s) / self.period_s * self.limit);
        self.used_s = r.at_s;
        if self.tokens < 1.0 {
            self.blocked_until_s = r.at_s + self.block_s;
            return LawAnswer::RefusedAt(r.at_s);
        }
        self.tokens -= 1.0;
        LawAnswer::At(r.at_s)
    }
}

/// A rule of a CDN: more than so many in a period of the clock, and all is blocked for the mitigation's time.
#[derive(Debug, Clone)]
pub struct CdnRule {
    quota: f64,
    period_s: f64,
    mitigation_s: f64,
    period: f64,
    count: f64,
    blocked_until_s: f64,
}

impl CdnRule {
    /// Nobody has come yet.
    pub fn new(quota: f64, period_s: f64, mitigation_s: f64) -> Self {
        Self { quota, period_s, mitigation_s, period: f64::NEG_INFINITY, count: 0.0, blocked_until_s: 0.0 }
    }
}

impl ProductLaw for CdnRule {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        if r.at_s < self.blocked_until_s {
            return LawAnswer::RefusedAt(r.at_s);
        }
        let period = (r.at_s / self.period_s).floor();
        if period != self.period {
            (self.period, self.count) = (period, 0.0);
        }
        self.count += 1.0;
        if self.count > self.quota {
            self.blocked_until_s = r.at_s + self.mitigation_s;
            return LawAnswer::RefusedAt(r.at_s);
        }
        LawAnswer::At(r.at_s)
    }
}

/// Fair use: a bucket of the full rate; once it was found empty, one of the lower rate, until nothing was refused for a while; 429.
#[derive(Debug, Clone)]
pub struct FairUse {
    /// Before an excess.
    pub full: Tokens,
    /// After it.
    pub low: Tokens,
    /// Without a refusal, until the full rate is back.
    pub calm_s: f64,
    refused_s: f64,
    low_now: bool,
}

impl FairUse {
    /// Before any excess.
    pub fn new(full: Tokens, low: Tokens, calm_s: f64) -> Self {
        Self { full, low, calm_s, refused_s: 0.0, low_now: false }
    }
}

impl ProductLaw for FairUse {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        if self.low_now && r.at_s - self.refused_s > self.calm_s {
            self.low_now = false;
        }
        let tokens = if self.low_now { &mut self.low } else { &mut self.full };
        if tokens.take(r.at_s) {
            return LawAnswer::At(r.at_s);
        }
        self.low_now = true;
        self.refused_s = r.at_s;
        LawAnswer::RefusedAt(r.at_s)
    }
}

/// A prefix of S3: so many requests a second and partition, with a second's burst; a prefix that was pushed for long enough is split,
/// and has twice as many; 503.
#[derive(Debug, Clone)]
pub struct S3Prefix {
    rate_per_s: f64,
    split_after_s: f64,
    most_splits: u32,
    tokens: Tokens,
    pushed_since_s: Option<f64>,
    refused_s: f64,
    splits: u32,
}

impl S3Prefix {
    /// One partition.
    pub fn new(rate_per_s: f64, split_after_s: f64, most_splits: u32) -> Self {
        Self {
            rate_per_s,
            split_after_s,
            most_splits,
            tokens: Tokens::new(rate_per_s, rate_per_s),
            pushed_since_s: None,
            refused_s: 0.0,
            splits: 0,
        }
    }
}

impl ProductLaw for S3Prefix {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        if self.tokens.take(r.at_s) {
            return LawAnswer::At(r.at_s);
        }
        // A pause in the refusals begins anew.
        if r.at_s - self.refused_s > 10.0 {
            self.pushed_since_s = None;
        }
        self.refused_s = r.at_s;
        let since = *self.pushed_since_s.get_or_insert(r.at_s);
        if r.at_s - since > self.split_after_s && self.splits < self.most_splits {
            self.splits += 1;
            self.pushed_since_s = None;
            let rate = self.rate_per_s * 2f64.powi(self.splits as i32);
            self.tokens = Tokens::new(rate, rate);
        }
        LawAnswer::RefusedAt(r.at_s)
    }
}
