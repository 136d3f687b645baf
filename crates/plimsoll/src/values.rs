//! Values as people write them on the command line, read into the nouns of the plan.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use plimsoll_model::OpKind;
use plimsoll_model::credentials::{credentials_in, is_credential};
use plimsoll_model::plan::{KeyDist, Pacing, SizeDist, is_secret_header, suite};
use plimsoll_model::units::{BytesRate, OpsRate, Size, Span};
use serde::de::DeserializeOwned;
use serde::de::value::{Error as ValueError, StrDeserializer};

/// One of the names of an enum of the plan; `--help` lists them, and serde reads them.
pub fn named<T>(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names)
        .try_map(|s| T::deserialize(StrDeserializer::<ValueError>::new(&s)).map_err(|e| e.to_string()))
}

/// `4KiB`, `1KiB..64KiB`, `4KiB=3,1MiB=1`, or `lognormal:MEDIAN:SIGMA:MAX`.
pub fn size_dist(s: &str) -> Result<SizeDist, String> {
    let size = |t: &str| t.trim().parse::<Size>().map_err(|e| e.to_string());
    if let Some(rest) = s.strip_prefix("lognormal:") {
        let parts: Vec<&str> = rest.split(':').collect();
        let [median, sigma, max] = parts[..] else {
            return Err(
                "a log-normal is written lognormal:MEDIAN:SIGMA:MAX, for example lognormal:64KiB:1.2:16MiB"
                    .into(),
            );
        };
        let sigma = sigma.parse().map_err(|_| {
            format!("'{sigma}' is not a sigma (of the natural log): write a number such as 1.2")
        })?;
        return Ok(SizeDist::LogNormal { median: size(median)?, sigma, max: size(max)? });
    }
    if let Some((min, max)) = s.split_once("..") {
        let (min, max) = (size(min)?, size(max)?);
        if min.0 > max.0 {
            return Err(format!("the range {min}..{max} is reversed: write {max}..{min}"));
        }
        return Ok(SizeDist::Uniform { min, max });
    }
    if s.contains('=') {
        return weighted(s, |t| size(t)).map(SizeDist::Weighted);
    }
    if s.contains(',') {
        return Err(
            "a list of sizes needs weights here, for example 4KiB=3,1MiB=1 (to sweep over sizes, use --sizes)"
                .into(),
        );
    }
    Ok(SizeDist::Fixed(size(s)?))
}

fn weighted<T>(s: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<(T, u32)>, String> {
    s.split(',')
        .map(|part| {
            let (what, weight) =
                part.split_once('=').ok_or_else(|| format!("'{part}' has no weight: write {part}=1"))?;
            let weight = weight.trim().trim_end_matches('%').parse().map_err(|_| {
                format!("'{weight}' is not a weight: write a whole number, for example {what}=3")
            })?;
            Ok((read(what.trim())?, weight))
        })
        .collect()
}

/// `30s=node 3 off`, kept as it is written.
pub fn mark_at(s: &str) -> Result<String, String> {
    plimsoll_model::plan::planned_mark(s).map(|_| s.to_owned())
}

/// `uniform`, `sequential`, `zipf:1.1`, `pareto:0.9`.
pub fn key_dist(s: &str) -> Result<KeyDist, String> {
    let number = |t: &str, example: &str| {
        t.parse::<f64>()
            .ok()
            .filter(|v| v.is_finite() && *v > 0.0)
            .ok_or_else(|| format!("'{t}' is not an exponent above 0: write {example}"))
    };
    match s.split_once(':') {
        None if s == "uniform" => Ok(KeyDist::Uniform),
        None if s == "sequential" => Ok(KeyDist::Sequential),
        Some(("zipf", t)) => number(t, "zipf:1.1").map(KeyDist::Zipf),
        Some(("pareto", t)) => number(t, "pareto:0.9").map(KeyDist::Pareto),
        _ => Err("write uniform, sequential, zipf:EXPONENT (for example zipf:1.1) or pareto:INDEX".into()),
    }
}

/// Ops by weight: `get=45,stat=30,put=15,delete=10`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix(pub BTreeMap<OpKind, u32>);

impl FromStr for Mix {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let mut mix = BTreeMap::new();
        for (kind, weight) in weighted(s, op_kind)? {
            if mix.insert(kind, weight).is_some() {
                return Err(format!("{kind} is given twice: add up its weights"));
            }
        }
        if mix.values().all(|w| *w == 0) {
            return Err("all weights are 0: give at least one op a weight".into());
        }
        Ok(Self(mix))
    }
}

/// An object op by its name.
pub fn op_kind(s: &str) -> Result<OpKind, String> {
    const OBJECT: [OpKind; 9] = [
        OpKind::Put,
        OpKind::Get,
        OpKind::GetRange,
        OpKind::Stat,
        OpKind::List,
        OpKind::Delete,
        OpKind::DeleteBatch,
        OpKind::Copy,
        OpKind::Multipart,
    ];
    let s = s.trim();
    OBJECT
        .into_iter()
        .find(|k| k.name() == s)
        .ok_or_else(|| format!("'{s}' is not an op: choose from {}", OBJECT.map(OpKind::name).join(", ")))
}

/// A rate to hold in open loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OfferedRate {
    Ops(OpsRate),
    Bytes(BytesRate),
    Ramp(OpsRate, OpsRate),
}

impl FromStr for OfferedRate {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        if let Some((from, to)) = s.split_once("..") {
            let ops = |t: &str| t.trim().parse::<OpsRate>().map_err(|e| e.to_string());
            return Ok(Self::Ramp(ops(from)?, ops(to)?));
        }
        if let Ok(ops) = s.parse() {
            return Ok(Self::Ops(ops));
        }
        s.parse().map(Self::Bytes).map_err(|_| {
            format!(
                "'{s}' is not a rate: write 800/s (operations), 600MiB/s (bytes), or 100/s..800/s (a ramp)"
            )
        })
    }
}

/// When ops arrive in open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Arrivals {
    /// At even distances.
    #[default]
    Constant,
    /// At random, as from many independent users.
    Poisson,
}

/// Rate, arrivals and the length of a ramp, as one pacing. No rate: closed loop.
pub fn pacing(
    rate: Option<OfferedRate>,
    arrivals: Arrivals,
    ramp_over: Option<Span>,
) -> Result<Pacing, String> {
    match (rate, arrivals) {
        (None, Arrivals::Poisson) => {
            Err("--arrivals poisson needs a rate: add --rate, for example --rate 800/s".into())
        }
        (None, Arrivals::Constant) => Ok(Pacing::Closed),
        (Some(OfferedRate::Ops(r)), Arrivals::Constant) => Ok(Pacing::Constant(r)),
        (Some(OfferedRate::Ops(r)), Arrivals::Poisson) => Ok(Pacing::Poisson(r)),
        (Some(_), Arrivals::Poisson) => {
            Err("--arrivals poisson needs a rate of operations, not bytes: write --rate 800/s".into())
        }
        (Some(OfferedRate::Bytes(r)), Arrivals::Constant) => Ok(Pacing::Bytes(r)),
        (Some(OfferedRate::Ramp(from, to)), Arrivals::Constant) => {
            let over =
                ramp_over.ok_or("a ramp needs a duration: add --ramp-over, for example --ramp-over 30s")?;
            Ok(Pacing::Ramp { from, to, over })
        }
    }
}

/// A size with its unit, or a number of GiB without one (as GoBonnieGo's `-size`).
pub fn size_or_gib(s: &str) -> Result<Size, String> {
    match s.trim().parse::<f64>() {
        Ok(gib) if gib > 0.0 && gib < 1e9 => Ok(Size((gib * f64::from(1u32 << 30)).round() as u64)),
        Ok(_) => Err("a size above 0 is needed: for example 0.25 (GiB), or 256MiB".into()),
        Err(_) => s.parse::<Size>().map_err(|e| e.to_string()),
    }
}

/// A size of a sweep, or `auto`: `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellSize(pub Option<Size>);

pub fn cell_size(s: &str) -> Result<CellSize, String> {
    if s.trim() == "auto" {
        return Ok(CellSize(None));
    }
    s.parse::<Size>().map(|s| CellSize(Some(s))).map_err(|e| e.to_string())
}

/// `0.1%` or `0.001`.
pub fn share(s: &str) -> Result<f64, String> {
    let (text, factor) = s.trim().strip_suffix('%').map_or((s.trim(), 1.0), |t| (t.trim(), 0.01));
    text.parse::<f64>()
        .map(|v| v * factor)
        .ok()
        .filter(|v| (0.0..=1.0).contains(v))
        .ok_or_else(|| format!("'{s}' is not a share: write 0.1% or 0.001, between 0 and 1"))
}

/// `80%` or `0.8` of a limit; up to twice, to see what overload does.
pub fn fraction(s: &str) -> Result<f64, String> {
    let (text, factor) = s.trim().strip_suffix('%').map_or((s.trim(), 1.0), |t| (t.trim(), 0.01));
    text.parse::<f64>().map(|v| v * factor).ok().filter(|v| *v > 0.0 && *v <= 2.0).ok_or_else(|| {
        format!("'{s}' is not a fraction of a limit: write 80% or 0.8, above 0 and up to 200%")
    })
}

/// `replica3,ec`.
pub fn two_names(s: &str) -> Result<(String, String), String> {
    match s.split_once(',') {
        Some((a, b)) if !a.trim().is_empty() && !b.trim().is_empty() => {
            Ok((a.trim().into(), b.trim().into()))
        }
        _ => Err(format!("'{s}' is not two names: write for example replica3,ec")),
    }
}

/// `tier=standard`.
pub fn label(s: &str) -> Result<(String, String), String> {
    match s.split_once('=') {
        Some((_, v)) if is_our_secret(v.trim(), |name| std::env::var(name).ok()) => {
            Err("that is a secret from the environment, but labels are stored and shown".into())
        }
        // By these a run of `file` or `drive` is known again.
        Some((k, _)) if k.trim() == suite::LABEL || k.trim().starts_with("drive.failed.") => {
            Err(format!("the label '{}' is reserved for plimsoll; choose another name", k.trim()))
        }
        Some((k, v)) if !k.trim().is_empty() => Ok((k.trim().into(), v.trim().into())),
        _ => Err("a label is written name=value, for example tier=standard".into()),
    }
}

/// Whether a value of a flag is, or holds, what looks like a key, a password or a token, as it is written in a command, in a file of
/// defaults, in a label (`token=...`), in a header or before a host (`user:password@host`).
pub fn holds_credential(text: &str) -> bool {
    let named = |between: char, is: fn(&str, &str) -> bool| {
        text.split_once(between).is_some_and(|(name, value)| is(name.trim(), value.trim()))
    };
    let is_header =
        |name: &str, value: &str| is_secret_header(name) && !value.is_empty() && !value.starts_with("//");
    let before_host = text.rsplit_once('@').is_some_and(|(before, host)| {
        let user = before.rsplit(['/', '=', ',', ' ']).next().unwrap_or_default();
        !host.is_empty()
            && user.split_once(':').is_some_and(|(name, word)| !name.is_empty() && !word.is_empty())
    });
    !credentials_in(text).is_empty() || named('=', is_credential) || named(':', is_header) || before_host
}

/// Secrets that are in use just now.
const SECRETS: [&str; 3] = ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"];

/// A shorter one may be a word that a path or a name has in it by chance. (A choice: AWS's have 40 characters.)
const LONG_SECRET: usize = 16;
/// A shorter one may be any word at all.
const SHORT_SECRET: usize = 8;

/// Whether a word of the command line is a secret that is in use just now, or holds it.
pub fn tells_our_secret(word: &str, env: impl Fn(&str) -> Option<String>) -> bool {
    let tells = |secret: String| {
        secret.len() >= LONG_SECRET && word.contains(&secret)
            || secret.len() >= SHORT_SECRET && word.split(['=', ',', ':', ' ']).any(|part| part == secret)
    };
    SECRETS.into_iter().filter_map(env).any(tells)
}

/// Whether a text holds a secret that is in use just now.
fn is_our_secret(text: &str, env: impl Fn(&str) -> Option<String>) -> bool {
    SECRETS
        .into_iter()
        .filter_map(env)
        .any(|secret| !secret.is_empty() && (text == secret || secret.len() >= 8 && text.contains(&secret)))
}

/// `x-amz-meta-owner: me`.
pub fn header(s: &str) -> Result<(String, String), String> {
    let (k, v) = s.split_once(':').ok_or("a header is written 'Name: value'")?;
    let (k, v) = (k.trim().to_ascii_lowercase(), v.trim());
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if k.is_empty() || !k.chars().all(token) || v.chars().any(|c| c.is_control()) {
        return Err("that is not a header: write 'Name: value', in ASCII".into());
    }
    // Those that carry secrets are refused with the plan: an error of this parser would be shown with the value.
    if ["host", "content-length", "x-amz-date"].contains(&k.as_str()) {
        return Err(format!("{k} is set by plimsoll itself: remove it"));
    }
    Ok((k, v.to_owned()))
}

/// CPUs to pin workers to: `0-3,6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus(pub Vec<u32>);

impl FromStr for Cpus {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let bad = || format!("'{s}' is not a list of CPUs: write 0-3,6");
        let one = |t: &str| t.trim().parse::<u32>().ok().filter(|n| *n < 4096).ok_or_else(bad);
        let mut cpus = Vec::new();
        for part in s.split(',') {
            match part.split_once('-') {
                None => cpus.push(one(part)?),
                Some((a, b)) => {
                    let (a, b) = (one(a)?, one(b)?);
                    if a > b {
                        return Err(bad());
                    }
                    cpus.extend(a..=b);
                }
            }
        }
        Ok(Self(cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_every_form() {
        assert_eq!(size_dist("4KiB"), Ok(SizeDist::Fixed(Size(4096))));
        assert_eq!(size_dist("1KB..4KB"), Ok(SizeDist::Uniform { min: Size(1000), max: Size(4000) }));
        assert_eq!(
            size_dist("4KiB=3,1MiB=1"),
            Ok(SizeDist::Weighted(vec![(Size(4096), 3), (Size(1 << 20), 1)]))
        );
        assert_eq!(
            size_dist("lognormal:64KiB:1.2:16MiB"),
            Ok(SizeDist::LogNormal { median: Size(65536), sigma: 1.2, max: Size(16 << 20) })
        );
        for bad in ["4k", "4KiB,8KiB", "8KiB..4KiB", "lognormal:4KiB", "4KiB=x", ""] {
            assert!(size_dist(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn mixes_name_object_ops_once() {
        let mix: Mix = "get=45,stat=30,put=15,delete=10".parse().unwrap();
        assert_eq!(mix.0[&OpKind::Get], 45);
        assert_eq!(mix.0.len(), 4);
        for bad in ["get", "get=1,get=2", "read=1", "get=0", "get=-1"] {
            assert!(bad.parse::<Mix>().is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_tell_ops_from_bytes() {
        assert_eq!("800/s".parse(), Ok(OfferedRate::Ops(OpsRate(800.0))));
        assert_eq!("600MiB/s".parse(), Ok(OfferedRate::Bytes(BytesRate(629_145_600.0))));
        assert_eq!("10/s..20/s".parse(), Ok(OfferedRate::Ramp(OpsRate(10.0), OpsRate(20.0))));
        assert!("fast".parse::<OfferedRate>().is_err());
        assert!(pacing(None, Arrivals::Poisson, None).is_err());
        assert!(
            pacing(Some(OfferedRate::Ramp(OpsRate(1.0), OpsRate(2.0))), Arrivals::Constant, None).is_err()
        );
    }

    #[test]
    fn shares_labels_headers_cpus() {
        assert_eq!(share("0.1%"), Ok(0.001));
        assert_eq!(share("0.5"), Ok(0.5));
        assert!(share("150%").is_err());
        assert_eq!(label("tier=a=b"), Ok(("tier".into(), "a=b".into())));
        assert!(label("=x").is_err());
        let env = |name: &str| (name == "AWS_SECRET_ACCESS_KEY").then(|| "abcdefgh".to_owned());
        assert!(
            is_our_secret("abcdefgh", env) && is_our_secret("x-abcdefgh", env) && !is_our_secret("abc", env)
        );
        assert!(header("Host: x").is_err());
        assert_eq!(header("X-Amz-Meta-A: b"), Ok(("x-amz-meta-a".into(), "b".into())));
        assert_eq!("0-2,5".parse(), Ok(Cpus(vec![0, 1, 2, 5])));
        assert!("3-1".parse::<Cpus>().is_err());
    }
}
