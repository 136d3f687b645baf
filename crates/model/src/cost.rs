//! Prices as their user writes them, what a run is told of them, and figures in money. The arithmetic is in `crates/cost`.
//!
//! Money is decimal throughout: 0.1 has no exact binary form, and sums of what has none drift.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use rust_decimal::{Decimal, RoundingStrategy};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{BytesRate, Size, Span};
use crate::{Estimate, OpKind};

mod check;
use check::{check_all, wrong};

/// The version of the price file's format that this program reads.
pub const PRICES_VERSION: u32 = 1;

/// The most of an amount that is read: what is multiplied from it stays far inside of what a decimal holds.
const MOST: i64 = 1_000_000_000;
/// Digits behind the point of a price. Prices per byte are written per GB.
const MOST_DIGITS: u32 = 12;

/// An exact amount, not negative. Written as a number (`0.0005`) or as a text (`"0.0005"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Price(pub Decimal);

impl FromStr for Price {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let form = || format!("'{s}' is not a price: write a number such as 0.0005");
        let value = Decimal::from_str_exact(s.trim()).map_err(|_| form())?.normalize();
        if value.is_sign_negative() && !value.is_zero() {
            return Err(format!("'{s}' is negative: write what is paid, 0 where it is free"));
        }
        if value > Decimal::from(MOST) || value.scale() > MOST_DIGITS {
            return Err(format!(
                "'{s}' is out of range: write at most {MOST}, with at most {MOST_DIGITS} digits behind the point"
            ));
        }
        Ok(Self(value))
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.normalize().to_string())
    }
}

impl Serialize for Price {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a price: a number such as 0.0005")]
        enum Written {
            Whole(i64),
            // Its shortest text is what was written, of up to 15 digits.
            Broken(f64),
            Text(String),
        }
        let text = match Written::deserialize(d)? {
            Written::Whole(n) => n.to_string(),
            Written::Broken(n) => n.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Price {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Price".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "An exact amount, not negative: a number such as 0.0005, or the same as a text.",
            "type": ["number", "string"]
        })
    }
}

/// An amount with its currency: `20USD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Money {
    /// How much.
    pub amount: Price,
    /// Three capital letters.
    pub currency: String,
}

impl Money {
    /// Of an amount that was reckoned: rounded up to the digits that an amount has, and no more than the most that is read.
    pub fn of(amount: Decimal, currency: &str) -> Self {
        let amount = amount.round_dp_with_strategy(MOST_DIGITS, RoundingStrategy::AwayFromZero);
        let amount = amount.clamp(Decimal::ZERO, Decimal::from(MOST)).normalize();
        Self { amount: Price(amount), currency: currency.to_owned() }
    }
}

impl FromStr for Money {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let t = s.trim();
        let at = t.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(t.len());
        let (amount, currency) = (t[..at].trim(), t[at..].trim());
        let form =
            || format!("'{s}' is not an amount of money: write a number and its currency, for example 20USD");
        if amount.is_empty() || !is_currency(currency) {
            return Err(form());
        }
        Ok(Self { amount: amount.parse().map_err(|_| form())?, currency: currency.into() })
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} {}", self.amount, self.currency))
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("{}{}", self.amount, self.currency))
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Money {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Money".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "An amount with its currency: `20USD`.",
            "type": "string",
            "pattern": "^[0-9.]+ ?[A-Z]{3}$"
        })
    }
}

fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase())
}

/// `prices.toml`: what somebody pays for what, each subject with the date, region and source of its prices. An unknown key is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceFile {
    /// Format version: 1.
    pub version: u32,
    /// Of all amounts: three capital letters.
    pub currency: String,
    /// Length of a billed month: `730h`, `30d`.
    pub month: Span,
    /// What is paid for, by name.
    pub subjects: BTreeMap<String, PriceSubject>,
}

/// The prices of one subject: a disk, a bucket, a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceSubject {
    /// Day on which the prices were true: `2018-07-01`.
    pub date: String,
    /// Region of the provider that they are of.
    pub region: String,
    /// Where they were read: an address, a contract.
    pub source: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Bytes that are paid for: provisioned, or stored where only that is billed. Copies and parity included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Bytes that are paid for, for each byte that can be used: 3 of three copies, 1.5 of four data and two parity. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundancy: Option<Price>,
    /// A month of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityPrice>,
    /// A month of operations a second, as provisioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<IopsPrice>,
    /// A month of bytes a second, as provisioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<ThroughputPrice>,
    /// Requests, or transactions, by class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestPrice>,
    /// Bytes that leave the storage: of get and get-range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<TransferPrice>,
    /// Bytes that come to it: of put and upload-part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<TransferPrice>,
    /// Bytes that are read, whoever reads them: of get and get-range, beside egress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrieval: Option<TransferPrice>,
    /// Machines, of servers and of clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstancePrice>,
}

/// A month of bytes: `price` for each `per`, or steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapacityPrice {
    /// Of each `per`, a month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// `1GB` or `1GiB`: they differ by 7 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<Size>,
    /// What is begun is paid in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub round_up: bool,
    /// In place of `price` and `per`: each size that is sold. What lies between two is billed as the larger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<CapacityStep>,
}

/// A size that is sold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapacityStep {
    /// Sizes up to it are billed as it.
    pub up_to: Size,
    /// Of all of it, a month.
    pub price: Price,
}

/// A month of provisioned operations a second, above those that are included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IopsPrice {
    /// As bought.
    pub provisioned: u32,
    /// Of them so many cost nothing. Default: 0.
    #[serde(default)]
    pub included: u32,
    /// Of each one above, a month.
    pub price: Price,
}

/// A month of provisioned bytes a second, above those that are included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThroughputPrice {
    /// As bought: `250MiB/s`.
    pub provisioned: BytesRate,
    /// Of them so many cost nothing. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub included: Option<BytesRate>,
    /// Of each `per` above, a month.
    pub price: Price,
    /// `1MiB/s` or `1MB/s`.
    pub per: BytesRate,
}

/// Requests of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestPrice {
    /// Its name, as the provider has it: `A`, `transactions`.
    pub class: String,
    /// Ops of plimsoll that are of it. A `multipart` is two requests (begin and complete) beside its parts (`upload-part`).
    pub ops: Vec<OpKind>,
    /// Of each `per`.
    pub price: Price,
    /// 1000, 10000.
    pub per: u32,
    /// An op of more bytes than this counts once for each begun unit: `256KiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Size>,
    /// So many a month cost nothing. The cost of a run does not rely on it: they may be used up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub included: u64,
    /// What is begun of `per` is paid in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub round_up: bool,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Bytes that travel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferPrice {
    /// Of each `per`.
    pub price: Price,
    /// `1GB` or `1GiB`.
    pub per: Size,
    /// So much a month costs nothing. The cost of a run does not rely on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub included: Option<Size>,
}

/// Machines that are paid by the hour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstancePrice {
    /// As the provider names it.
    pub name: String,
    /// How many of them.
    pub count: u32,
    /// Of one, an hour.
    pub price: Price,
    /// A begun hour is paid in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub round_up: bool,
}

/// What a run is told of prices. Figures of money are in its result, and `budget` ends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostOptions {
    /// Of all amounts.
    pub currency: String,
    /// Length of a billed month.
    pub month: Span,
    /// SHA-256 of the file that the prices are from, in hex.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// Which of the subjects; absent where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The run is refused where its bound is above it, and ended where what was sent comes to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Money>,
    /// What is paid for, by name.
    pub subjects: BTreeMap<String, PriceSubject>,
}

/// What is wrong with prices: where, what, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceProblem {
    /// `subjects.gp3.capacity`
    pub place: String,
    /// Without a full stop.
    pub problem: String,
    /// A sentence.
    pub remedy: String,
}

impl CostOptions {
    /// The prices of `file`; with a name, of that subject alone, where the file has it.
    pub fn of(file: &PriceFile, sha256: &str, subject: Option<&str>, budget: Option<Money>) -> Self {
        let mut subjects = file.subjects.clone();
        if let Some(one) = subject.filter(|name| subjects.contains_key(*name)) {
            subjects.retain(|name, _| name == one);
        }
        Self {
            currency: file.currency.clone(),
            month: file.month,
            sha256: sha256.to_owned(),
            subject: subject.map(str::to_owned),
            budget,
            subjects,
        }
    }

    /// The subject that is paid for: the named one, or the only one.
    pub fn chosen(&self) -> Result<(&str, &PriceSubject), PriceProblem> {
        let names = || self.subjects.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let found = match &self.subject {
            Some(name) => self.subjects.get_key_value(name),
            None if self.subjects.len() == 1 => self.subjects.first_key_value(),
            None => {
                return Err(wrong(
                    "subject",
                    format!("the prices are of {} subjects, and none was chosen", self.subjects.len()),
                    format!("Choose with --subject, one of: {}.", names()),
                ));
            }
        };
        let name = self.subject.as_deref().unwrap_or_default();
        found.map(|(name, s)| (name.as_str(), s)).ok_or_else(|| {
            wrong(
                "subject",
                format!("the prices have no '{name}'"),
                format!("Choose with --subject, one of: {}.", names()),
            )
        })
    }

    /// What the types cannot say.
    pub fn check(&self) -> Result<(), PriceProblem> {
        check_all(&self.currency, self.month, &self.subjects)?;
        self.chosen()?;
        match &self.budget {
            Some(b) if b.currency != self.currency => Err(wrong(
                "budget",
                format!("the budget is in {}, the prices are in {}", b.currency, self.currency),
                format!("Give the budget in {}: no rate of exchange is known here.", self.currency),
            )),
            _ => Ok(()),
        }
    }
}

/// What a run says of money. Amounts are numbers in [`Self::currency`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CostSummary {
    /// Of all amounts.
    pub currency: String,
    /// Name of what is paid for.
    pub subject: String,
    /// Day on which the prices were true.
    pub date: String,
    /// Region that they are of.
    pub region: String,
    /// Where they were read.
    pub source: String,
    /// SHA-256 of the price file, in hex; empty: the prices were written in the plan.
    pub sha256: String,
    /// Length of a billed month, seconds.
    pub month_s: f64,
    /// Which ops each class of requests counts, in words; of no class, no request is paid for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<String>,
    /// Each with its arithmetic.
    pub figures: Vec<CostFigure>,
    /// What cannot be said, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
}

/// One figure in money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostFigure {
    /// `month`, `per_usable_tib`, `per_1000_ops_per_s`, `per_mib_per_s`, `month_at_rate` or `run`.
    pub name: String,
    /// Line of results that its rate is of; absent: it needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// `USD/month`
    pub unit: String,
    /// Its interval is that of the measured rate; prices are taken as exact.
    pub amount: Estimate,
    /// The arithmetic, with all numbers that go in.
    pub formula: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_exactly_what_was_written() {
        #[derive(Deserialize)]
        struct P {
            p: Price,
        }
        let read = |t: &str| toml::from_str::<P>(&format!("p = {t}")).map(|p| p.p.to_string());
        for (text, exact) in [("0.0005", "0.0005"), ("\"0.10\"", "0.1"), ("3", "3"), ("0.023", "0.023")] {
            assert_eq!(read(text).unwrap(), exact);
        }
        for bad in ["-1", "\"ten\"", "1e12", "nan", "true", "0.0000000000001"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn money_has_a_currency() {
        let m: Money = "20USD".parse().unwrap();
        assert_eq!((m.amount.to_string().as_str(), m.currency.as_str()), ("20", "USD"));
        assert_eq!("0.50 EUR".parse::<Money>().unwrap().to_string(), "0.5 EUR");
        let third = Money::of(Decimal::ONE / Decimal::from(3), "USD");
        assert_eq!(third.to_string(), "0.333333333334 USD");
        assert_eq!(Money::of(Decimal::MAX, "USD").to_string(), "1000000000 USD");
        for bad in ["20", "USD", "$20", "20usd", "20 US", "-1USD", ""] {
            assert!(bad.parse::<Money>().is_err(), "{bad}");
        }
    }
}
