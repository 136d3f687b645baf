//! Whose requests share the limit (`--probe-scope`): one thing at a time is doubled. If the plateau doubles with it, the
//! limit is per that thing; if it stays, the limit is wider than it.

/// What can be doubled, the narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// More connections to the same endpoint.
    Connection,
    /// More key prefixes in the same bucket.
    Prefix,
    /// More buckets.
    Bucket,
    /// More access keys.
    Key,
    /// More client machines.
    Client,
}

impl Dimension {
    /// In order, the narrowest first.
    pub const ALL: [Self; 5] = [Self::Connection, Self::Prefix, Self::Bucket, Self::Key, Self::Client];

    /// As options and data have it: `connection`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Prefix => "prefix",
            Self::Bucket => "bucket",
            Self::Key => "key",
            Self::Client => "client",
        }
    }

    /// The inverse of [`Self::name`].
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.name() == name)
    }

    /// What lets the probe double it.
    pub fn needs(self) -> &'static str {
        match self {
            Self::Connection | Self::Prefix => "",
            Self::Bucket => "--second-bucket NAME",
            Self::Key => "--second-profile NAME",
            Self::Client => "--fleet with agents on two machines or more",
        }
    }
}

/// What the plateau did when one thing was doubled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubling {
    /// The plateau doubles: the limit is per this.
    Doubles,
    /// It stays: the limit is wider.
    Stays,
    /// Neither, by the thresholds of [`Self::of`].
    Undetermined,
}

impl Doubling {
    /// `ratio`: plateau with two of them over that with one. Thresholds as designed: 1.8 to 2.2 doubles, 7 % stays.
    pub fn of(ratio: f64) -> Self {
        match ratio {
            r if (1.8..=2.2).contains(&r) => Self::Doubles,
            r if (r - 1.0).abs() <= 0.07 => Self::Stays,
            _ => Self::Undetermined,
        }
    }

    /// For a sentence: `the limit is per this`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Doubles => "the limit is per this",
            Self::Stays => "the limit is wider",
            Self::Undetermined => "undetermined",
        }
    }
}

/// What was doubled, and the ratio of the plateaus that came of it.
pub type Doubled = (Dimension, f64);

impl Dimension {
    /// What is doubled along with it: a second bucket or key is reached over connections, and under a prefix, of its own. Twice as
    /// many clients keep as many requests in flight, over as many connections, with the same prefix and key.
    fn doubles_too(self) -> &'static [Self] {
        match self {
            Self::Connection | Self::Prefix | Self::Client => &[],
            Self::Bucket | Self::Key => &[Self::Connection, Self::Prefix],
        }
    }
}

/// The scope in one word: the narrowest thing with which the limit doubled, if it surely was that thing and nothing that was
/// doubled along with it; `server` when everything was tried and nothing doubled; `unknown` otherwise.
pub fn scope(seen: &[Doubled]) -> &'static str {
    let is = |d: Dimension, what: Doubling| seen.iter().any(|(x, r)| *x == d && Doubling::of(*r) == what);
    let doubled = Dimension::ALL.into_iter().find(|d| is(*d, Doubling::Doubles));
    if let Some(d) = doubled {
        let surely = d.doubles_too().iter().all(|n| is(*n, Doubling::Stays));
        return if surely { d.name() } else { "unknown" };
    }
    if Dimension::ALL.into_iter().all(|d| is(d, Doubling::Stays)) { "server" } else { "unknown" }
}

/// What remains open, with what would settle it. `cut`: what was asked for and not tried, since the budget ended.
pub fn open(seen: &[Doubled], cut: &[Dimension]) -> Option<String> {
    if scope(seen) != "unknown" {
        return None;
    }
    let not = |wanted: Doubling| -> Vec<&'static str> {
        seen.iter().filter(|(_, r)| Doubling::of(*r) == wanted).map(|(d, _)| d.name()).collect()
    };
    let left: Vec<String> = Dimension::ALL
        .into_iter()
        .filter(|d| !seen.iter().any(|(x, _)| x == d))
        .map(|d| {
            format!(
                "{} ({})",
                d.name(),
                if cut.contains(&d) { "the budget ran out first" } else { d.needs() }
            )
        })
        .collect();
    let excluded = not(Doubling::Stays);
    let mut out = if excluded.is_empty() {
        "The scope of the limit is not known.".to_owned()
    } else {
        format!("The limit is not per {}.", excluded.join(", nor per "))
    };
    let doubled = not(Doubling::Doubles);
    if !doubled.is_empty() {
        out += &format!(
            " The rate doubled with a second {}, but that also doubled connections and prefixes, whose own effect is \
             not clear.",
            doubled.join(" and a second ")
        );
    }
    let unclear = not(Doubling::Undetermined);
    if !unclear.is_empty() {
        out += &format!(
            " Undetermined for {}: the rate neither stayed the same nor doubled.",
            unclear.join(", ")
        );
    }
    if !left.is_empty() {
        out += &format!(" Not tried: {}.", left.join(", "));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_that_doubles_is_the_scope() {
        use Dimension::*;
        assert_eq!(scope(&[(Connection, 1.0), (Prefix, 0.99), (Key, 2.0), (Bucket, 1.01)]), "key");
        assert_eq!(scope(&[(Connection, 1.97), (Key, 2.0)]), "connection");
        assert_eq!(scope(&Dimension::ALL.map(|d| (d, 1.0))), "server");
        assert_eq!(scope(&[(Connection, 1.0)]), "unknown");
        assert_eq!(scope(&[(Connection, f64::NAN)]), "unknown");
        assert_eq!(scope(&[]), "unknown");
    }

    /// A second bucket brings connections of its own: where these were not clear, neither is the bucket.
    #[test]
    fn nothing_is_concluded_by_elimination() {
        use Dimension::*;
        for connection in [1.4, 1.15, f64::NAN, 0.5, 2.4] {
            let seen = [(Connection, connection), (Prefix, 1.0), (Bucket, 2.0)];
            assert_eq!(scope(&seen), "unknown", "{connection}");
            let text = open(&seen, &[]).unwrap();
            assert!(
                text.contains("doubled with a second bucket, but that also doubled connections"),
                "{text}"
            );
            assert!(text.contains("Undetermined for connection"), "{text}");
        }
        assert_eq!(scope(&[(Connection, 1.0), (Bucket, 2.0)]), "unknown", "prefixes were not tried");
        assert_eq!(scope(&[(Connection, 1.0), (Prefix, 1.0), (Bucket, 2.0)]), "bucket");
        assert_eq!(scope(&[(Connection, 1.0), (Prefix, 1.3), (Bucket, 1.0), (Key, 2.0)]), "unknown");
        let all_but_one = Dimension::ALL.map(|d| (d, if d == Key { 1.2 } else { 1.0 }));
        assert_eq!(scope(&all_but_one), "unknown");
    }

    #[test]
    fn what_is_open_is_said_with_its_remedy() {
        use Dimension::*;
        let seen = [(Connection, 1.0), (Prefix, 1.4)];
        let text = open(&seen, &[]).unwrap();
        assert!(text.starts_with("The limit is not per connection. Undetermined for prefix"), "{text}");
        assert!(text.contains("bucket (--second-bucket NAME)") && text.contains("two machines"), "{text}");
        let text = open(&seen, &[Key]).unwrap();
        assert!(
            text.contains("key (the budget ran out first)") && !text.contains("--second-profile"),
            "{text}"
        );
        assert_eq!(open(&[(Connection, 1.0), (Prefix, 1.0), (Key, 2.0)], &[]), None);
        for d in Dimension::ALL {
            assert_eq!(Dimension::parse(d.name()), Some(d));
        }
    }
}
