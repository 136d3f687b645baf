//! Units as people write them: 1000 or 1024, bytes or bits, and of what they are.

/// Powers of bytes, seconds and money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Dimension(pub [i8; 3]);

impl Dimension {
    pub const ONE: Self = Self([0, 0, 0]);
    pub const BYTES: Self = Self([1, 0, 0]);
    pub const BYTES_PER_S: Self = Self([1, -1, 0]);
    pub const SECONDS: Self = Self([0, 1, 0]);
    pub const PER_S: Self = Self([0, -1, 0]);
    pub const MONEY: Self = Self([0, 0, 1]);

    /// For messages.
    pub fn words(self) -> &'static str {
        match self {
            Self::ONE => "a plain number",
            Self::BYTES => "a size",
            Self::BYTES_PER_S => "bytes a second",
            Self::SECONDS => "a time",
            Self::PER_S => "operations a second",
            Self::MONEY => "money",
            _ => "of mixed units",
        }
    }
}

/// What the letters before the B mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// KB, MB: powers of 1000.
    Decimal,
    /// KiB, MiB: powers of 1024.
    Binary,
    /// K, M without B: some mean this, some that.
    Either,
    /// No prefix.
    None,
}

/// A unit with what one of it is in bytes, seconds or whole numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedUnit {
    pub name: String,
    pub scale: f64,
    pub dimension: Dimension,
    pub base: Base,
    /// Power of 1000 or 1024 of the prefix.
    pub power: i32,
}

impl NamedUnit {
    fn plain(name: &str, scale: f64, dimension: Dimension) -> Self {
        Self { name: name.to_owned(), scale, dimension, base: Base::None, power: 0 }
    }

    /// The same prefix in the other base; none where there is no prefix.
    pub fn in_other_base(&self) -> Option<f64> {
        let ratio = 1.024_f64.powi(self.power);
        match self.base {
            Base::Decimal => Some(self.scale * ratio),
            Base::Binary | Base::Either => Some(self.scale / ratio),
            Base::None => None,
        }
    }

    /// The name of the same prefix in the other base.
    pub fn other_name(&self) -> String {
        match self.base {
            Base::Binary => self.name.replacen('i', "", 1),
            Base::Decimal => {
                let mut name = self.name.clone();
                name.insert(1, 'i');
                name.replacen('k', "K", 1)
            }
            _ => self.name.clone(),
        }
    }
}

const TIMES: &[(&str, f64)] = &[
    ("ns", 1e-9),
    ("nsec", 1e-9),
    ("us", 1e-6),
    ("\u{b5}s", 1e-6),
    ("\u{3bc}s", 1e-6),
    ("usec", 1e-6),
    ("microseconds", 1e-6),
    ("ms", 1e-3),
    ("msec", 1e-3),
    ("milliseconds", 1e-3),
    ("s", 1.0),
    ("sec", 1.0),
    ("seconds", 1.0),
    ("min", 60.0),
    ("minutes", 60.0),
    ("h", 3600.0),
    ("hours", 3600.0),
    ("d", 86400.0),
    ("days", 86400.0),
];

/// Words for operations: with `/s` behind them they are a rate.
const COUNTED: &[&str] = &[
    "op",
    "ops",
    "objects",
    "object",
    "objs",
    "obj",
    "requests",
    "request",
    "reqs",
    "req",
    "operations",
    "ios",
    "transactions",
    "files",
    "reads",
    "writes",
    "io",
];

/// `/s`, however it is written.
fn per_second(text: &str) -> Option<&str> {
    ["/second", "/sec", "/s", " per second", " a second", "s/s", "ps"]
        .into_iter()
        .filter(|e| *e != "s/s")
        .find_map(|end| text.strip_suffix(end).map(str::trim_end))
}

fn sized(word: &str) -> Option<NamedUnit> {
    let (prefix, bits) = match word {
        "B" | "byte" | "bytes" | "Bytes" => ("", false),
        "bit" | "bits" | "b" => ("", true),
        _ => {
            let lower = word.to_ascii_lowercase();
            let bit_word = ["bits", "bit"].iter().find_map(|e| lower.strip_suffix(e).map(str::len));
            let byte_word = ["bytes", "byte"].iter().find_map(|e| lower.strip_suffix(e).map(str::len));
            match (bit_word, byte_word) {
                (Some(n), _) => (&word[..n], true),
                (_, Some(n)) => (&word[..n], false),
                // A small b is a bit, but all small letters are no letter at all.
                _ if word.ends_with('B') => (&word[..word.len() - 1], false),
                _ if word.ends_with('b') => (&word[..word.len() - 1], word.chars().next()?.is_uppercase()),
                _ => return None,
            }
        }
    };
    let (power, base) = prefix_of(prefix)?;
    let factor = if base == Base::Binary { 1024_f64 } else { 1000.0 }.powi(power);
    let scale = if bits { factor / 8.0 } else { factor };
    Some(NamedUnit { name: word.to_owned(), scale, dimension: Dimension::BYTES, base, power })
}

fn prefix_of(prefix: &str) -> Option<(i32, Base)> {
    let lower = prefix.trim().to_ascii_lowercase();
    let (letter, base) = match lower.strip_suffix('i') {
        Some(l) => (l.to_owned(), Base::Binary),
        None => (lower, Base::Decimal),
    };
    let long = ["kilo", "mega", "giga", "tera", "peta"].iter().position(|w| *w == letter);
    let short = ["k", "m", "g", "t", "p"].iter().position(|w| *w == letter);
    match long.or(short) {
        Some(i) => Some((i as i32 + 1, base)),
        None if letter.is_empty() && base == Base::Decimal => Some((0, Base::None)),
        None => None,
    }
}

/// `K`, `M` alone: a multiple of what the column counts.
pub(crate) fn multiple(text: &str) -> Option<(f64, &str)> {
    let mut chars = text.chars();
    let factor = match chars.next()? {
        'K' | 'k' => 1e3,
        'M' => 1e6,
        'G' => 1e9,
        _ => return None,
    };
    let rest = chars.as_str();
    let rest_is_word = rest.starts_with(|c: char| c.is_alphanumeric());
    (!rest_is_word).then(|| (factor, rest.trim()))
}

/// The unit that a text is the whole of.
pub(crate) fn parse_unit(text: &str) -> Option<NamedUnit> {
    let text = text.trim().trim_end_matches('.');
    let named = |mut unit: NamedUnit| {
        unit.name = text.to_owned();
        unit
    };
    if matches!(text, "%" | "percent") {
        return Some(NamedUnit::plain(text, 0.01, Dimension::ONE));
    }
    if matches!(text, "x" | "\u{d7}" | "times") {
        return Some(NamedUnit::plain(text, 1.0, Dimension::ONE));
    }
    if matches!(text, "$" | "USD" | "EUR" | "\u{20ac}") {
        return Some(NamedUnit::plain(text, 1.0, Dimension::MONEY));
    }
    if let Some((_, scale)) = TIMES.iter().find(|(n, _)| *n == text) {
        return Some(NamedUnit::plain(text, *scale, Dimension::SECONDS));
    }
    let lower = text.to_lowercase();
    if matches!(lower.as_str(), "iops" | "rps" | "qps" | "tps" | "/s" | "/sec" | "per second") {
        return Some(NamedUnit::plain(text, 1.0, Dimension::PER_S));
    }
    if COUNTED.contains(&lower.as_str()) {
        return Some(NamedUnit::plain(text, 1.0, Dimension::ONE));
    }
    if let Some((factor, rest)) = multiple(text).filter(|(_, rest)| !rest.is_empty()) {
        let unit = parse_unit(rest).filter(|u| u.dimension == Dimension::PER_S)?;
        return Some(named(NamedUnit { scale: factor, ..unit }));
    }
    if let Some(what) = per_second(text) {
        if COUNTED.contains(&what.to_lowercase().as_str()) {
            return Some(NamedUnit::plain(text, 1.0, Dimension::PER_S));
        }
        // A small b before ps is a bit, whatever the letter before it.
        let bits = text.strip_suffix("bps").map(|prefix| format!("{prefix}bit"));
        let of = sized(bits.as_deref().unwrap_or(what))?;
        return Some(named(NamedUnit { dimension: Dimension::BYTES_PER_S, ..of }));
    }
    sized(text)
}

/// A unit, and what one of it is.
pub(crate) type Scale = (&'static str, f64);

/// What a printed rate may have been meant as, the likelier first.
pub(crate) const RATES: &[Scale] = &[
    ("MB/s", 1e6),
    ("MiB/s", 1_048_576.0),
    ("GB/s", 1e9),
    ("GiB/s", 1_073_741_824.0),
    ("KB/s", 1e3),
    ("KiB/s", 1024.0),
    ("B/s", 1.0),
    ("Mbit/s", 1.25e5),
    ("Gbit/s", 1.25e8),
    ("kbit/s", 125.0),
    ("Mibit/s", 131_072.0),
    ("Gibit/s", 134_217_728.0),
    ("MiB/s divided by 1,000", 1_048_576_000.0),
    ("MB/s divided by 1,024", 1.024e9),
    ("KiB/s divided by 1,000", 1_024_000.0),
];

/// What a printed time may have been meant as.
pub(crate) const SPANS: &[Scale] = &[("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("ns", 1e-9)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_what_people_mean_by_them() {
        for (text, scale, dimension) in [
            ("MB/s", 1e6, Dimension::BYTES_PER_S),
            ("MiB/s", 1_048_576.0, Dimension::BYTES_PER_S),
            ("MiB/sec", 1_048_576.0, Dimension::BYTES_PER_S),
            ("Mb/s", 1.25e5, Dimension::BYTES_PER_S),
            ("mb/s", 1e6, Dimension::BYTES_PER_S),
            ("Gbps", 1.25e8, Dimension::BYTES_PER_S),
            ("GBps", 1e9, Dimension::BYTES_PER_S),
            ("kBps", 1e3, Dimension::BYTES_PER_S),
            ("Gbit/s", 1.25e8, Dimension::BYTES_PER_S),
            ("MB per second", 1e6, Dimension::BYTES_PER_S),
            ("KB", 1e3, Dimension::BYTES),
            ("kiB", 1024.0, Dimension::BYTES),
            ("bytes", 1.0, Dimension::BYTES),
            ("TiB", 1024_f64.powi(4), Dimension::BYTES),
            ("ms", 1e-3, Dimension::SECONDS),
            ("\u{b5}s", 1e-6, Dimension::SECONDS),
            ("IOPS", 1.0, Dimension::PER_S),
            ("K IOPS", 1e3, Dimension::PER_S),
            ("objs/s", 1.0, Dimension::PER_S),
            ("ops per second", 1.0, Dimension::PER_S),
            ("%", 0.01, Dimension::ONE),
            ("$", 1.0, Dimension::MONEY),
        ] {
            let unit = parse_unit(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((unit.scale, unit.dimension), (scale, dimension), "{text}");
        }
        for text in ["", "fast", "ob", "widgets/s", "i", "X B"] {
            assert_eq!(parse_unit(text), None, "{text}");
        }
    }

    #[test]
    fn the_other_base_has_the_other_name() {
        let other = |t: &str| parse_unit(t).map(|u| (u.other_name(), u.in_other_base()));
        assert_eq!(other("MB/s"), Some(("MiB/s".into(), Some(1_048_576.0))));
        assert_eq!(other("KiB"), Some(("KB".into(), Some(1000.0))));
        assert_eq!(other("kB"), Some(("KiB".into(), Some(1024.0))));
        assert_eq!(other("ms"), Some(("ms".into(), None)));
    }
}
