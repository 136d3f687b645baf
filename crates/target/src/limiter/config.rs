//! Tiers and limit files: TOML, the same format for those that come with Plimsoll and for a user's own.

use super::OpClass;
use super::bucket::MICRO;
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

/// Tiers that come with Plimsoll: (name, file).
const BUILTIN: [(&str, &str); 11] = [
    ("vultr-standard", include_str!("../../tiers/vultr-standard.toml")),
    ("vultr-premium", include_str!("../../tiers/vultr-premium.toml")),
    ("vultr-performance", include_str!("../../tiers/vultr-performance.toml")),
    ("vultr-accelerated", include_str!("../../tiers/vultr-accelerated.toml")),
    ("vultr-hdd", include_str!("../../tiers/vultr-hdd.toml")),
    ("vultr-nvme", include_str!("../../tiers/vultr-nvme.toml")),
    ("gce-standard-20", include_str!("../../tiers/gce-standard-20.toml")),
    ("gce-standard-256", include_str!("../../tiers/gce-standard-256.toml")),
    ("aws-io1-1000", include_str!("../../tiers/aws-io1-1000.toml")),
    ("azure-standard-20", include_str!("../../tiers/azure-standard-20.toml")),
    ("azure-premium-256", include_str!("../../tiers/azure-premium-256.toml")),
];

/// A tier or limits file that cannot be used: where, what, and what to do.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LimitsError {
    #[error("there is no tier {name:?}; the tiers are: {known}")]
    UnknownTier { name: String, known: String },
    #[error("{file}: {text}")]
    Syntax { file: String, text: String },
    #[error("{file}, line {line}: {text}")]
    Value { file: String, line: usize, text: String },
    #[error("{file}: {text}")]
    Read { file: String, text: String },
}

/// What a set of limits is for.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum TierKind {
    /// In front of the embedded S3 server or the canned one.
    Object,
    /// For the QEMU storage daemon.
    Block,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Ops,
    Bytes,
}

/// Whose requests share one bucket.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    #[default]
    Server,
    AccessKey,
    Bucket,
    /// The client's address.
    Client,
    Connection,
}

/// What happens to a request for which there are no tokens.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LimitAnswer {
    #[serde(rename = "429")]
    TooManyRequests,
    #[serde(rename = "503")]
    SlowDown,
    /// It waits for its tokens, however long.
    Delay,
    /// It waits, while no more than `queue_length` do; others are answered 503.
    Queue,
}

/// Tokens, in millionths. In a file: a number, or a text such as "600 MiB" or "100 MB".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(pub u64);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number, or a text such as \"600 MiB\" or \"100 MB\"")]
        enum Raw {
            Int(i64),
            Float(f64),
            Text(String),
        }
        let micro = match Raw::deserialize(d)? {
            Raw::Int(n) => u64::try_from(n).ok().and_then(|n| n.checked_mul(MICRO)),
            Raw::Float(f) => from_f64(f),
            Raw::Text(t) => parse_amount(&t),
        };
        micro.map(Amount).ok_or_else(|| {
            de::Error::custom(
                "not an amount: write a number from 0 to 1e13, or a text such as \"600 MiB\" or \"100 MB\"",
            )
        })
    }
}

fn from_f64(f: f64) -> Option<u64> {
    (0.0..1e13).contains(&f).then(|| (f * MICRO as f64).round() as u64)
}

fn parse_amount(text: &str) -> Option<u64> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit: f64 = match text[at..].trim_end_matches("/s") {
        "" | "B" => 1.0,
        "KB" => 1e3,
        "KiB" => 1024.0,
        "MB" => 1e6,
        "MiB" => 1_048_576.0,
        "GB" => 1e9,
        "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    from_f64(text[..at].trim().parse::<f64>().ok()? * unit)
}

/// One limit of a file.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LimitSpec {
    /// Name in messages and counts; the unit when absent.
    pub name: Option<String>,
    pub unit: Unit,
    /// Sustained rate: ops, or bytes, per second.
    pub rate_per_s: Amount,
    /// Fastest rate while the bucket has tokens; without it, a burst is as fast as the client.
    pub burst_per_s: Option<Amount>,
    /// Tokens of a full bucket. Default: a tenth of a second of the rate.
    pub capacity: Option<Amount>,
    /// Instead of `capacity`: how long a burst at `burst_per_s` lasts from a full bucket.
    pub burst_for_s: Option<f64>,
    /// Share of the capacity that is there at the start, 0 to 1. Default 1.
    pub initial_fill: Option<f64>,
    #[serde(default)]
    pub scope: Scope,
    /// Default: "429" for ops, "delay" for bytes.
    pub answer: Option<LimitAnswer>,
    /// Most requests that wait, with `answer = "queue"`. Default 100.
    pub queue_length: Option<usize>,
    /// What Retry-After says. Default: the time until a token is there, rounded up to a second.
    pub retry_after_s: Option<u64>,
    /// A refused request costs what a served one does.
    #[serde(default)]
    pub rejects_cost_tokens: bool,
    /// A fixed window of this length in place of a bucket.
    pub fixed_window_ms: Option<u64>,
    /// Operations that are charged; all of them when absent.
    pub charges: Option<Vec<OpClass>>,
    /// Bytes limits: which directions are charged: "in", "out". Both when absent.
    pub directions: Option<Vec<Direction>>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From client to server: PUT bodies.
    In,
    /// From server to client: GET bodies.
    Out,
}

/// Time that a request takes beside all limits: base + bytes * per_mib, times a log-normal factor of mean 1.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LatencySpec {
    /// Microseconds of a request without a body.
    pub base_us: f64,
    /// Microseconds more for each MiB of body.
    #[serde(default)]
    pub per_mib_us: f64,
    /// Standard deviation of the logarithm: 0 is a constant, 0.3 an ordinary spread.
    #[serde(default)]
    pub spread: f64,
    #[serde(default)]
    pub seed: u64,
    /// Bases of single operations, in microseconds: `{ put = 12000 }`.
    #[serde(default)]
    pub base_us_of: std::collections::BTreeMap<OpClass, f64>,
}

/// Credit of a disk: while some is left all its limits are those of bursts (`burst_per_s`), then they are `rate_per_s`, all at the same
/// time. What is done costs the time that it takes at burst rates.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CreditSpec {
    /// Of service at burst rates that a full credit is good for.
    pub seconds: f64,
    /// Seconds of it that come in each second, whatever is done: more than a disk that is out of credit spends, and it never slows down
    /// for long. Default 0.
    #[serde(default)]
    pub earned_per_s: f64,
}

impl CreditSpec {
    fn check(self, limits: &[Spanned<LimitSpec>]) -> Result<(), String> {
        if !(self.seconds > 0.0 && self.seconds <= 1e7) {
            return Err("seconds of credit are above 0 and at most 10,000,000".into());
        }
        if !(0.0..1.0).contains(&self.earned_per_s) {
            return Err(
                "earned_per_s is from 0 to below 1: a second of burst cannot come in each second".into()
            );
        }
        let own = |l: &LimitSpec| l.capacity.is_some() || l.burst_for_s.is_some() || l.initial_fill.is_some();
        if limits.iter().any(|l| own(l.get_ref()) || l.get_ref().fixed_window_ms.is_some()) {
            return Err("with credit a limit has no bucket of its own: remove capacity, burst_for_s, initial_fill and fixed_window_ms".into());
        }
        Ok(())
    }
}

/// A file of limits, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitSet {
    pub name: String,
    pub kind: TierKind,
    pub description: String,
    /// Where the figures come from.
    pub source: String,
    pub limits: Vec<LimitSpec>,
    pub latency: Option<LatencySpec>,
    /// Of disks.
    pub credit: Option<CreditSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    kind: TierKind,
    #[serde(default)]
    description: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    limit: Vec<Spanned<LimitSpec>>,
    latency: Option<Spanned<LatencySpec>>,
    credit: Option<Spanned<CreditSpec>>,
}

impl LimitSet {
    /// Names of the tiers that come with Plimsoll.
    pub fn tier_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|t| t.0)
    }

    /// One of those tiers.
    pub fn tier(name: &str) -> Result<LimitSet, LimitsError> {
        match BUILTIN.iter().find(|t| t.0 == name) {
            Some((name, text)) => LimitSet::parse(text, &format!("tier {name}")),
            None => {
                let known = LimitSet::tier_names().collect::<Vec<_>>().join(", ");
                Err(LimitsError::UnknownTier { name: name.to_owned(), known })
            }
        }
    }

    /// A file of the user.
    pub fn read(path: &std::path::Path) -> Result<LimitSet, LimitsError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => LimitSet::parse(&text, &file),
            Err(e) => Err(LimitsError::Read { file, text: e.to_string() }),
        }
    }

    /// `file` is the name for messages.
    pub fn parse(text: &str, file: &str) -> Result<LimitSet, LimitsError> {
        let raw: File = toml::from_str(text).map_err(|e| LimitsError::Syntax {
            file: file.to_owned(),
            text: e.to_string().trim_end().to_owned(),
        })?;
        let line_error = |span: std::ops::Range<usize>, why: String| LimitsError::Value {
            file: file.to_owned(),
            line: 1 + text[..span.start.min(text.len())].matches('\n').count(),
            text: why,
        };
        for l in &raw.limit {
            l.get_ref().check(raw.kind).map_err(|e| line_error(l.span(), e))?;
        }
        if let Some(l) = &raw.latency {
            l.get_ref().check().map_err(|e| line_error(l.span(), e))?;
        }
        if let Some(credit) = &raw.credit {
            let fits = if raw.kind == TierKind::Block {
                credit.get_ref().check(&raw.limit)
            } else {
                Err("credit is of disks: kind = \"block\"".into())
            };
            fits.map_err(|e| line_error(credit.span(), e))?;
        }
        if raw.limit.is_empty() && raw.latency.is_none() {
            return Err(line_error(
                0..0,
                "no [[limit]] and no [latency]: nothing would be limited; add one".into(),
            ));
        }
        Ok(LimitSet {
            name: raw.name,
            kind: raw.kind,
            description: raw.description,
            source: raw.source,
            limits: raw.limit.into_iter().map(Spanned::into_inner).collect(),
            latency: raw.latency.map(Spanned::into_inner),
            credit: raw.credit.map(Spanned::into_inner),
        })
    }

    /// The same tier at another size: rates and capacities times `factor` (0 to 1,000), times of bursts unchanged.
    pub fn scaled(mut self, factor: f64) -> Result<LimitSet, LimitsError> {
        if !(factor > 0.0 && factor <= 1_000.0) {
            let text =
                format!("scale {factor} is not above 0 and at most 1,000; write --scale 0.1 for a tenth");
            return Err(LimitsError::Read { file: self.name, text });
        }
        let ppm = (factor * 1e6).round() as u128;
        let scale =
            |a: &mut Amount| a.0 = u64::try_from(u128::from(a.0) * ppm / 1_000_000).unwrap_or(u64::MAX);
        for l in &mut self.limits {
            scale(&mut l.rate_per_s);
            l.burst_per_s.as_mut().map(scale);
            l.capacity.as_mut().map(scale);
        }
        Ok(self)
    }

    /// The same tier with bursts that last `factor` times as long, and fill up again in as much of the time. Rates are as they were, and
    /// so is what has no burst.
    pub fn with_bursts(mut self, factor: f64) -> Result<LimitSet, LimitsError> {
        if !(factor > 0.0 && factor <= 1_000.0) {
            let text = format!(
                "burst scale {factor} is not above 0 and at most 1,000; write --burst-scale 0.1 for a tenth"
            );
            return Err(LimitsError::Read { file: self.name, text });
        }
        for l in self.limits.iter_mut().filter(|l| l.burst_per_s.is_some()) {
            match (&mut l.burst_for_s, &mut l.capacity) {
                (Some(time), _) => *time *= factor,
                (None, Some(capacity)) => capacity.0 = (capacity.0 as f64 * factor).round() as u64,
                (None, None) => {}
            }
        }
        Ok(self)
    }
}

impl LimitSpec {
    fn check(&self, kind: TierKind) -> Result<(), String> {
        let rate = self.rate_per_s.0;
        if rate == 0 {
            return Err("rate_per_s is 0: nothing would ever be served; write a rate above 0".into());
        }
        if self.burst_per_s.is_some_and(|b| b.0 < rate) {
            return Err("burst_per_s is below rate_per_s: a burst is the faster of the two".into());
        }
        if self.capacity.is_some() && self.burst_for_s.is_some() {
            return Err("capacity and burst_for_s define the same thing: keep one".into());
        }
        if let Some(t) = self.burst_for_s {
            if self.burst_per_s.is_none() {
                return Err("burst_for_s needs burst_per_s".into());
            }
            if !(t > 0.0 && t <= 86_400.0) {
                return Err("burst_for_s is not above 0 and at most 86,400 (a day)".into());
            }
        }
        if self.initial_fill.is_some_and(|f| !(0.0..=1.0).contains(&f)) {
            return Err("initial_fill is a share from 0 to 1".into());
        }
        if self.fixed_window_ms == Some(0) {
            return Err("fixed_window_ms is 0: write a length above 0, 1000 for a second".into());
        }
        if self.fixed_window_ms.is_some() && (self.burst_per_s.is_some() || self.capacity.is_some()) {
            return Err("a fixed window has no burst and no capacity: remove them, or fixed_window_ms".into());
        }
        if kind == TierKind::Block
            && (self.answer.is_some() || self.scope != Scope::Server || self.charges.is_some())
        {
            return Err(
                "block limits delay, per volume, whatever the operation: remove answer, scope and charges"
                    .into(),
            );
        }
        if self.answer() != LimitAnswer::Delay
            && self.answer() != LimitAnswer::Queue
            && self.capacity_micro() < MICRO
        {
            return Err(
                "a bucket of less than one token refuses everything: raise capacity, or answer = \"delay\""
                    .into(),
            );
        }
        Ok(())
    }

    pub fn answer(&self) -> LimitAnswer {
        self.answer.unwrap_or(match self.unit {
            Unit::Ops => LimitAnswer::TooManyRequests,
            Unit::Bytes => LimitAnswer::Delay,
        })
    }

    /// Tokens of a full bucket, in millionths.
    pub fn capacity_micro(&self) -> u64 {
        if let Some(window) = self.fixed_window_ms {
            return u64::try_from(u128::from(self.rate_per_s.0) * u128::from(window) / 1_000)
                .unwrap_or(u64::MAX);
        }
        match (self.capacity, self.burst_for_s, self.burst_per_s) {
            (Some(c), ..) => c.0,
            // A burst at p drains what the refill r does not replace: B = (p - r) * T.
            (None, Some(t), Some(p)) => ((p.0 - self.rate_per_s.0) as f64 * t).round() as u64,
            _ => (self.rate_per_s.0 / 10).max(MICRO),
        }
    }
}

impl LatencySpec {
    fn check(&self) -> Result<(), String> {
        let times = self.base_us_of.values().copied().chain([self.base_us, self.per_mib_us]);
        for t in times {
            if !(0.0..=60e6).contains(&t) {
                return Err("a latency is from 0 to 60,000,000 us (a minute)".into());
            }
        }
        if !(0.0..=3.0).contains(&self.spread) {
            return Err("spread is from 0 to 3".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiers_say_what_was_published() {
        let of = |name: &str| {
            let t = LimitSet::tier(name).unwrap();
            let rate = |u| t.limits.iter().find(|l| l.unit == u).unwrap().rate_per_s.0 / MICRO;
            (rate(Unit::Ops), rate(Unit::Bytes))
        };
        assert_eq!(of("vultr-standard"), (800, 600 << 20));
        assert_eq!(of("vultr-premium"), (1_000, 800 << 20));
        assert_eq!(of("vultr-performance"), (4_000, 1_000 << 20));
        assert_eq!(of("vultr-accelerated"), (10_000, 5_000 << 20));
        assert_eq!(of("vultr-hdd"), (500, 100_000_000));
        assert_eq!(of("vultr-nvme"), (10_000, 400_000_000));
        let hdd = LimitSet::tier("vultr-hdd").unwrap();
        assert_eq!(hdd.limits[0].capacity_micro(), 15_000 * MICRO);
        let short = hdd.scaled(0.2).unwrap().with_bursts(0.05).unwrap();
        assert_eq!(
            (short.limits[0].rate_per_s.0, short.limits[0].capacity_micro()),
            (100 * MICRO, 150 * MICRO)
        );
        assert!(short.with_bursts(0.0).unwrap_err().to_string().contains("--burst-scale 0.1"));
        let tenth = LimitSet::tier("vultr-standard").unwrap().scaled(0.1).unwrap();
        assert_eq!(tenth.clone().with_bursts(0.1).unwrap(), tenth, "what has no burst stays as it is");
        assert_eq!(tenth.limits[0].rate_per_s.0, 80 * MICRO);
    }

    #[test]
    fn a_bad_file_is_told_with_line_and_remedy() {
        let e = |text: &str| LimitSet::parse(text, "my.toml").unwrap_err().to_string();
        let head = "name = \"x\"\nkind = \"object\"\n\n[[limit]]\nunit = \"ops\"\n";
        let got = e(&format!("{head}rate_per_s = 0\n"));
        assert!(got.starts_with("my.toml, line 4: rate_per_s is 0") && got.contains("write a rate"), "{got}");
        let got = e(&format!("{head}rate_per_s = 10\nbrust_per_s = 3\n"));
        assert!(
            got.contains("line 7") && got.contains("brust_per_s") && got.contains("burst_per_s"),
            "{got}"
        );
        let got = e(&format!("{head}rate_per_s = \"10 parsecs\"\n"));
        assert!(got.contains("line 6") && got.contains("600 MiB"), "{got}");
        let got = e(&format!("{head}rate_per_s = 10\nburst_per_s = 5\n"));
        assert!(got.contains("burst_per_s is below"), "{got}");
        assert!(LimitSet::tier("vultr-gold").unwrap_err().to_string().contains("vultr-standard"));
        assert!(e("name = \"x\"\nkind = \"object\"\n").contains("nothing would be limited"));
    }

    #[test]
    fn amounts_know_their_units() {
        assert_eq!(parse_amount("600 MiB"), Some((600 << 20) * MICRO));
        assert_eq!(parse_amount("100MB/s"), Some(100_000_000 * MICRO));
        assert_eq!(parse_amount("1.5 KB"), Some(1_500 * MICRO));
        assert_eq!(parse_amount("-1"), None);
        assert_eq!(parse_amount("3 miles"), None);
    }
}
