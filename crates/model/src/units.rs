//! Sizes, durations and rates as people write them. KB is 1000 bytes, KiB is 1024, and both mean it.

use std::fmt;
use std::time::Duration;

/// What is wrong with a written quantity, and how to write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    /// As it was written.
    pub input: String,
    /// The general form, with an example: it completes "is not".
    pub expected: &'static str,
    /// What was probably meant, where that can be told; said in place of the general form.
    pub meant: Option<String>,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.meant {
            Some(meant) => write!(f, "'{}' {meant}", self.input),
            None => write!(f, "'{}' is not {}", self.input, self.expected),
        }
    }
}

impl std::error::Error for UnitError {}

const SIZE_FORM: &str = "a size: write a number with B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024), for example 4KiB";
const DURATION_FORM: &str =
    "a duration: write a number with ns, us, ms, s, m, h or d, for example 90s or 1h30m";
const OPS_FORM: &str = "a rate of operations: write a number, or a number with /s or /m, for example 800/s";
const LINE_RATE_FORM: &str = "a line rate: write a number with kbit/s, Mbit/s, Gbit/s or Tbit/s, for example 25Gbit/s, or bytes such as 12.5GB/s";
const BYTES_RATE_FORM: &str = "a rate of bytes: write a size with /s, for example 600MiB/s";

const LINK_RATE_FORM: &str =
    "the rate of a link: write bits a second from 100kbit to 100gbit, for example 200mbit";

/// Bits a second of a link: below it a mebibyte takes a minute, above it no kernel shapes.
const LINK_RATES: (f64, f64) = (1e5, 1e11);

/// The most bytes or nanoseconds that are read: sums of two still fit in 64 bits.
const MOST: u128 = (u64::MAX / 2) as u128;

fn err(input: &str, expected: &'static str) -> UnitError {
    UnitError { input: input.to_owned(), expected, meant: None }
}

/// Units of sizes, the largest first.
const BINARY: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
const DECIMAL: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];

/// `4k` is 4,000 bytes to one program and 4,096 to the next: both are offered, and none is guessed.
fn both_units(number: &str, letter: char) -> Option<String> {
    let power = "kmgt".find(letter.to_ascii_lowercase())? as u32 + 1;
    let letter = letter.to_ascii_uppercase();
    let form = |unit: String, factor: u128| {
        let (bytes, exact) = scaled(number, factor)?;
        let shown = if exact { format!(" ({} bytes)", significant(bytes as f64, 1)) } else { String::new() };
        Some(format!("{number}{unit}{shown}"))
    };
    let binary = form(format!("{letter}iB"), 1 << (10 * power))?;
    let decimal = form(format!("{letter}B"), 1000u128.pow(power))?;
    Some(format!("is ambiguous: {binary} or {decimal}?"))
}

/// A size must be whole bytes: the next smaller unit has one nearby.
fn whole_bytes(number: &str, factor: u64) -> Option<String> {
    let (bytes, exact) = scaled(number, u128::from(factor))?;
    // Powers of 1024 beside powers of 1024.
    let kin = if factor.is_power_of_two() { BINARY } else { DECIMAL };
    let (unit, f) =
        kin.into_iter().chain([("B", 1)]).find(|(_, f)| *f < factor && bytes >= u128::from(*f))?;
    (!exact)
        .then(|| format!("is not a whole number of bytes: write for example {}{unit}", bytes / u128::from(f)))
}

fn split_number(s: &str) -> (&str, &str) {
    let end = s.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(s.len());
    s.split_at(end)
}

fn number(s: &str) -> Option<f64> {
    s.replace('_', "").parse().ok().filter(|v: &f64| v.is_finite())
}

/// `number` times `factor`, in whole units and whether that is exact: a written size or duration means every digit
/// of it, and a floating-point number keeps only the first 15.
fn scaled(number: &str, factor: u128) -> Option<(u128, bool)> {
    let digits = number.replace('_', "");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let parse = |s: &str| if s.is_empty() { Some(0u128) } else { s.parse::<u128>().ok() };
    let fraction = fraction.trim_end_matches('0');
    // 10^18 times the largest factor (a day in ns) fits in 128 bits; more digits than that say nothing of storage.
    if fraction.len() > 18 {
        return None;
    }
    let power = 10u128.pow(fraction.len() as u32);
    let parts = parse(fraction)?.checked_mul(factor)?;
    let units = parse(whole)?.checked_mul(factor)?.checked_add(parts / power)?;
    Some((units, parts.is_multiple_of(power)))
}

/// Bytes from a written size. A bare number is bytes; `k`, `m`, `g` alone are refused as ambiguous.
pub fn parse_size(s: &str) -> Result<u64, UnitError> {
    let t = s.trim();
    let (num, unit) = split_number(t);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1000u64.pow(2),
        "gb" => 1000u64.pow(3),
        "tb" => 1000u64.pow(4),
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        other => {
            let mut letters = other.trim_end_matches('i').chars();
            let meant = letters.next().filter(|_| letters.next().is_none()).and_then(|c| both_units(num, c));
            return Err(UnitError { meant, ..err(s, SIZE_FORM) });
        }
    };
    match scaled(num, u128::from(factor)) {
        Some((bytes, true)) if bytes <= MOST => Ok(bytes as u64),
        Some((bytes, false)) if bytes <= MOST => {
            Err(UnitError { meant: whole_bytes(num, factor), ..err(s, SIZE_FORM) })
        }
        _ => Err(err(s, SIZE_FORM)),
    }
}

/// The shortest exact way to write a size, binary or decimal: 4KiB, 512KB (which is 500KiB, too), 1MB; else bytes.
pub fn format_size(bytes: u64) -> String {
    let in_units = |units: [(&str, u64); 4]| {
        let (unit, factor) = units.into_iter().find(|(_, f)| bytes > 0 && bytes.is_multiple_of(*f))?;
        Some(format!("{}{unit}", bytes / factor))
    };
    let shortest = [BINARY, DECIMAL].into_iter().filter_map(in_units).min_by_key(String::len);
    shortest.unwrap_or_else(|| format!("{bytes}B"))
}

/// A size that nobody chose, for people: `322 MiB`, `1.00 GiB`; three digits, in the largest binary unit that it fills.
pub fn about_size(bytes: u64) -> String {
    match BINARY.into_iter().find(|(_, f)| bytes >= *f) {
        Some((unit, f)) => format!("{} {unit}", significant(bytes as f64 / f as f64, 3)),
        None => format!("{bytes} B"),
    }
}

/// A duration such as `30s`, `1h30m`, `250ms`. A bare number is refused.
pub fn parse_duration(s: &str) -> Result<Duration, UnitError> {
    let mut rest = s.trim();
    if rest.is_empty() {
        return Err(err(s, DURATION_FORM));
    }
    if rest.starts_with(|c: char| c.is_ascii_digit()) && number(rest).is_some() {
        let meant = Some(format!("has no unit: {rest}s, {rest}m or {rest}ms?"));
        return Err(UnitError { meant, ..err(s, DURATION_FORM) });
    }
    let mut total_ns = 0u128;
    while !rest.is_empty() {
        let (num, tail) = split_number(rest);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, next) = tail.split_at(unit_end);
        let unit_ns = match unit.trim() {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return Err(err(s, DURATION_FORM)),
        };
        // What is less than a nanosecond is dropped: no clock of ours has it.
        let (ns, _) = scaled(num, unit_ns).ok_or_else(|| err(s, DURATION_FORM))?;
        total_ns = total_ns.checked_add(ns).filter(|t| *t <= MOST).ok_or_else(|| err(s, DURATION_FORM))?;
        rest = next;
    }
    Ok(Duration::from_nanos(total_ns as u64))
}

/// A duration written back exactly, in the largest unit that divides it, in the form that is read.
pub fn format_duration(d: Duration) -> String {
    let ns = d.as_nanos();
    for (unit, f) in [
        ("d", 86_400_000_000_000u128),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ] {
        if ns != 0 && ns.is_multiple_of(f) {
            return format!("{}{unit}", ns / f);
        }
    }
    if ns == 0 { "0s".into() } else { format!("{ns}ns") }
}

/// Operations per second from `800/s`, `800`, `48000/m`.
pub fn parse_ops_rate(s: &str) -> Result<f64, UnitError> {
    let t = s.trim();
    let (num, unit) = split_number(t);
    let value = number(num).filter(|v| *v > 0.0).ok_or_else(|| err(s, OPS_FORM))?;
    match unit.trim() {
        "" | "/s" => Ok(value),
        "/m" => Ok(value / 60.0),
        _ => Err(err(s, OPS_FORM)),
    }
}

/// Bytes per second from `600MiB/s`.
pub fn parse_bytes_rate(s: &str) -> Result<f64, UnitError> {
    let size = s.trim().strip_suffix("/s").ok_or_else(|| err(s, BYTES_RATE_FORM))?;
    match parse_size(size) {
        Ok(b) if b > 0 => Ok(b as f64),
        _ => Err(err(s, BYTES_RATE_FORM)),
    }
}

/// Units of bits, the largest first: powers of 1000, as makers of networks count.
const BITS: [(&str, f64); 5] = [("Tbit", 1e12), ("Gbit", 1e9), ("Mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

/// Those that a link's rate is written in, from kbit to Gbit.
const OF_LINKS: std::ops::RangeInclusive<f64> = 1e3..=1e9;

/// Bits in a unit, in letters of any size.
fn bits_in(unit: &str) -> Option<f64> {
    BITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, f)| *f)
}

/// Bytes per second from `25Gbit/s`, `200mbit`, `10Gbps`, or `1.25GB/s`.
pub fn parse_line_rate(s: &str) -> Result<f64, UnitError> {
    let t = s.trim();
    let (num, unit) = split_number(t);
    let unit = unit.trim().to_ascii_lowercase();
    let bits = unit.strip_suffix("/s").unwrap_or(&unit);
    let bits = bits.strip_suffix("bps").map_or(bits.to_owned(), |power| format!("{power}bit"));
    match bits_in(&bits).map(|f| f / 8.0) {
        Some(factor) => {
            number(num).filter(|v| *v > 0.0).map(|v| v * factor).ok_or_else(|| err(s, LINE_RATE_FORM))
        }
        None => parse_bytes_rate(s).map_err(|_| err(s, LINE_RATE_FORM)),
    }
}

/// In bits, as networks are sold: `25Gbit/s`. Reads back as the same.
pub fn format_line_rate(bytes_per_s: f64) -> String {
    let bits = bytes_per_s * 8.0;
    let (unit, f) = BITS.into_iter().find(|(_, f)| bits >= *f).unwrap_or(BITS[4]);
    format!("{}{unit}/s", bits / f)
}

/// Bits per second of a link from `200mbit`, as `tc` writes it; `200Mbit/s` is the same.
pub fn parse_link_rate(s: &str) -> Result<f64, UnitError> {
    let (num, unit) = split_number(s.trim());
    let unit = unit.trim().to_ascii_lowercase();
    let factor = bits_in(unit.strip_suffix("/s").unwrap_or(&unit)).filter(|f| OF_LINKS.contains(f));
    let rate = number(num).zip(factor).map(|(n, f)| n * f);
    rate.filter(|r| (LINK_RATES.0..=LINK_RATES.1).contains(r)).ok_or_else(|| err(s, LINK_RATE_FORM))
}

fn format_link_rate(bits_per_s: f64) -> String {
    let of_links = || BITS.into_iter().filter(|(_, f)| OF_LINKS.contains(f));
    let (unit, factor) =
        of_links().find(|(_, f)| bits_per_s >= *f).or(of_links().next_back()).expect("there are three");
    format!("{}{}", bits_per_s / factor, unit.to_ascii_lowercase())
}

/// A latency for people: three significant digits and a unit.
pub fn format_latency_ns(ns: f64) -> String {
    for (unit, f) in [("s", 1e9), ("ms", 1e6), ("us", 1e3)] {
        if ns >= f {
            return format!("{} {unit}", significant(ns / f, 3));
        }
    }
    format!("{ns:.0} ns")
}

/// `x` with `digits` significant digits and thousands separated by commas.
pub fn significant(x: f64, digits: i32) -> String {
    if !x.is_finite() {
        return "n/a".into();
    }
    if x == 0.0 {
        return "0".into();
    }
    let decimals = (digits - 1 - x.abs().log10().floor() as i32).max(0) as usize;
    let text = format!("{x:.decimals$}");
    let (int, frac) = text.split_once('.').map_or((text.as_str(), ""), |(i, f)| (i, f));
    let (sign, digits) = int.strip_prefix('-').map_or(("", int), |d| ("-", d));
    let mut out = String::from(sign);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    if !frac.is_empty() {
        out.push('.');
        out.push_str(frac);
    }
    out
}

macro_rules! written {
    ($(#[$doc:meta])* $name:ident($inner:ty), $parse:ident, $format:expr, $pattern:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, PartialOrd)]
        pub struct $name(pub $inner);
        impl std::str::FromStr for $name {
            type Err = UnitError;
            fn from_str(s: &str) -> Result<Self, UnitError> {
                $parse(s).map(Self)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text: String = ($format)(self.0);
                f.pad(&text)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl serde::de::Visitor<'_> for V {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("a quantity with its unit such as ", $pattern))
                    }
                    fn visit_str<E: serde::de::Error>(self, s: &str) -> Result<$name, E> {
                        s.parse().map_err(E::custom)
                    }
                    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<$name, E> {
                        self.visit_str(&n.to_string())
                    }
                    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<$name, E> {
                        self.visit_str(&n.to_string())
                    }
                }
                d.deserialize_any(V)
            }
        }
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": ["string", "integer"], "description": concat!("for example ", $pattern) })
            }
        }
    };
}

written!(
    /// A number of bytes, written `4KiB`.
    Size(u64), parse_size, format_size, "4KiB"
);
written!(
    /// A span of time, written `30s`.
    Span(Duration), parse_duration, format_duration, "30s"
);
written!(
    /// Operations per second, written `800/s`.
    OpsRate(f64), parse_ops_rate, |v: f64| format!("{v}/s"), "800/s"
);
written!(
    /// Bytes per second, written `600MiB/s`.
    BytesRate(f64), parse_bytes_rate, |v: f64| format!("{}/s", format_size(v as u64)), "600MiB/s"
);

written!(
    /// What a link carries in bytes per second, written in bits: `25Gbit/s`.
    LineRate(f64), parse_line_rate, format_line_rate, "25Gbit/s"
);
written!(
    /// Bits per second of a link, headers included, written `200mbit`.
    LinkRate(f64), parse_link_rate, format_link_rate, "200mbit"
);

impl Eq for Size {}
impl Eq for Span {}

impl Span {
    /// Plans are bounded: it does not overflow.
    pub fn as_ns(self) -> u64 {
        self.0.as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_links_are_read_as_tc_writes_them() {
        for (text, bits, shown) in
            [("200mbit", 2e8, "200mbit"), ("2.5Gbit/s", 2.5e9, "2.5gbit"), ("500 kbit", 5e5, "500kbit")]
        {
            let rate: LinkRate = text.parse().unwrap();
            assert_eq!((rate.0, rate.to_string()), (bits, shown.to_owned()), "{text}");
        }
        for not in ["200", "200MB/s", "mbit", "-1mbit", "0mbit", "1e300gbit", "10kbit", "1tbit"] {
            assert!(not.parse::<LinkRate>().unwrap_err().to_string().contains("200mbit"), "{not}");
        }
    }

    #[test]
    fn sizes_mean_what_they_say() {
        assert_eq!(parse_size("4KiB"), Ok(4096));
        assert_eq!(parse_size("4KB"), Ok(4000));
        assert_eq!(parse_size("1.5MiB"), Ok(1_572_864));
        assert_eq!(parse_size("512"), Ok(512));
        assert!(parse_size("4k").is_err());
        assert!(parse_size("-1").is_err());
        assert!(parse_size("0.3B").is_err());
        assert_eq!(parse_size("0.1KB"), Ok(100));
        assert_eq!(parse_size("1_024"), Ok(1024));
        for bad in
            ["", ".", "B", "1.2.3KB", "9223372036854775808", "99999999999999999999999999999999999999999TiB"]
        {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn written_forms_read_back() {
        for b in [
            0u64,
            1,
            512,
            4000,
            4096,
            1 << 20,
            10_240_000,
            1_000_000,
            3 << 30,
            12345,
            5_555_555_555_555_555_555,
        ] {
            assert_eq!(parse_size(&format_size(b)), Ok(b), "{b}");
        }
        for shortest in ["4KiB", "512KB", "1MiB", "1MB", "64MB", "1000MiB", "10GiB", "12345B"] {
            assert_eq!(format_size(parse_size(shortest).unwrap()), shortest);
        }
        for s in
            ["30s", "1h30m", "250ms", "5400s", "0s", "17ns", "2d", "5555555555555555555ns", "0.1s", "1.5h"]
        {
            let d = parse_duration(s).unwrap();
            assert_eq!(parse_duration(&format_duration(d)), Ok(d), "{s}");
        }
        assert!(parse_duration("30").is_err());
    }

    #[test]
    fn rates() {
        assert_eq!(parse_ops_rate("800/s"), Ok(800.0));
        assert_eq!(parse_ops_rate("6000/m"), Ok(100.0));
        assert!(parse_ops_rate("0").is_err());
        assert_eq!(parse_bytes_rate("600MiB/s"), Ok(629_145_600.0));
        assert!(parse_bytes_rate("600MiB").is_err());
    }

    #[test]
    fn lines_are_sold_in_bits() {
        for (text, bytes) in [
            ("25Gbit/s", 3.125e9),
            ("200mbit", 25e6),
            ("10Gbps", 1.25e9),
            ("1.25GB/s", 1.25e9),
            ("0.1Tbit/s", 12.5e9),
        ] {
            let read = parse_line_rate(text).unwrap();
            assert_eq!(read, bytes, "{text}");
            assert_eq!(parse_line_rate(&format_line_rate(read)), Ok(read), "{text}");
        }
        assert_eq!(
            (format_line_rate(3.125e9), format_line_rate(12.5e9)),
            ("25Gbit/s".into(), "100Gbit/s".into())
        );
        for bad in ["25G", "25Gbit/m", "0Gbit/s", "-1Gbit/s", "25", "Gbit/s", "1e999Gbit/s"] {
            assert!(parse_line_rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn digits() {
        assert_eq!(significant(1234567.0, 4), "1,234,567");
        assert_eq!(significant(1.23456, 3), "1.23");
        assert_eq!(significant(-1234.5, 5), "-1,234.5");
    }

    #[test]
    fn what_is_not_clear_is_asked_back() {
        let size = |s: &str| parse_size(s).unwrap_err().to_string();
        assert_eq!(size("4k"), "'4k' is ambiguous: 4KiB (4,096 bytes) or 4KB (4,000 bytes)?");
        assert_eq!(size("64M"), "'64M' is ambiguous: 64MiB (67,108,864 bytes) or 64MB (64,000,000 bytes)?");
        assert_eq!(size("4Ki"), "'4Ki' is ambiguous: 4KiB (4,096 bytes) or 4KB (4,000 bytes)?");
        assert_eq!(size("0.05GiB"), "'0.05GiB' is not a whole number of bytes: write for example 51MiB");
        assert!(size("4x").contains("is not a size") && size("k").contains("is not a size"), "{}", size("k"));
        let time = |s: &str| parse_duration(s).unwrap_err().to_string();
        assert_eq!(time("10"), "'10' has no unit: 10s, 10m or 10ms?");
        assert!(time("10x").contains("is not a duration") && time("").contains("is not a duration"));
    }
}
