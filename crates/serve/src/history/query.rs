//! What a page asks of the history: the query of an address, bounded and understood before anything is looked at.

use axum::http::Uri;
use plimsoll_index::{RunFilter, RunStanding};

/// Longer queries are nobody's who clicked.
const MOST_BYTES: usize = 8192;
/// Values of one name.
const MOST_VALUES: usize = 40;

/// Why a query is refused: where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadQuery(pub String);

/// One figure of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HistoryFigure {
    #[default]
    OpsPerS,
    BytesPerS,
    P50,
    P99,
}

impl HistoryFigure {
    const ALL: [(&'static str, Self); 4] = [
        ("ops_per_s", Self::OpsPerS),
        ("bytes_per_s", Self::BytesPerS),
        ("p50_ns", Self::P50),
        ("p99_ns", Self::P99),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, f)| *f == self).map_or("", |(name, _)| name)
    }
}

/// What lines of a pivot have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryKey {
    Op,
    Size,
    Concurrency,
    Label(String),
}

/// All that an address can ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    pub filter: RunFilter,
    pub skip: usize,
    pub figure: HistoryFigure,
    pub rows: Option<HistoryKey>,
    pub columns: Option<HistoryKey>,
    /// Runs of both sides of a comparison.
    pub a: Vec<String>,
    pub b: Vec<String>,
    /// The line of a trend, as the answer before named it.
    pub line: Option<String>,
}

impl HistoryQuery {
    pub fn of(uri: &Uri) -> Result<Self, BadQuery> {
        Self::parse(uri.query().unwrap_or_default())
    }

    pub fn parse(text: &str) -> Result<Self, BadQuery> {
        if text.len() > MOST_BYTES {
            return Err(BadQuery(format!(
                "The query has {} bytes; {MOST_BYTES} are the most. Leave conditions out.",
                text.len()
            )));
        }
        let mut q = Self::default();
        for pair in text.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            // A form that was left empty asks for nothing.
            if !value.is_empty() {
                q.take(&name, value)?;
            }
        }
        Ok(q)
    }

    fn take(&mut self, name: &str, value: String) -> Result<(), BadQuery> {
        let bad = |what: &str| Err(BadQuery(format!("{name}: {what}.")));
        let f = &mut self.filter;
        let many =
            [f.labels.len(), f.ops.len(), f.targets.len(), f.standings.len(), self.a.len(), self.b.len()];
        if many.into_iter().any(|n| n >= MOST_VALUES) {
            return bad("more than 40 values; leave some out");
        }
        match name {
            "label" => match value.split_once('=').filter(|(n, _)| !n.is_empty()) {
                Some((n, v)) => f.labels.push((n.into(), v.into())),
                None => return bad("a label is written NAME=VALUE"),
            },
            "op" => f.ops.push(value),
            "target" => f.targets.push(value),
            "validity" => match value.parse::<RunStanding>() {
                Ok(standing) => f.standings.push(standing),
                Err(why) => return bad(&why),
            },
            "since" => f.since_us = Some(moment(&value).or_else(|()| bad(A_DAY).map(|()| 0))?),
            "until" => f.until_us = Some(moment(&value).or_else(|()| bad(A_DAY).map(|()| 0))?),
            "skip" => match value.parse() {
                Ok(n) => self.skip = n,
                Err(_) => return bad("a number of runs is wanted"),
            },
            "figure" => match HistoryFigure::ALL.iter().find(|(n, _)| *n == value) {
                Some((_, figure)) => self.figure = *figure,
                None => return bad("write one of ops_per_s, bytes_per_s, p50_ns, p99_ns"),
            },
            "rows" | "columns" => {
                let key = match value.as_str() {
                    "op" => HistoryKey::Op,
                    "size" => HistoryKey::Size,
                    "concurrency" => HistoryKey::Concurrency,
                    other => match other.strip_prefix("label:").filter(|n| !n.is_empty()) {
                        Some(label) => HistoryKey::Label(label.into()),
                        None => return bad("write op, size, concurrency or label:NAME"),
                    },
                };
                *(if name == "rows" { &mut self.rows } else { &mut self.columns }) = Some(key);
            }
            "a" => self.a.push(value),
            "b" => self.b.push(value),
            "line" => self.line = Some(value),
            // What only the page itself knows: which view is shown.
            "view" => {}
            _ => {
                return Err(BadQuery(format!(
                    "There is no condition called {}.",
                    plimsoll_model::text::clean(name)
                )));
            }
        }
        Ok(())
    }
}

const A_DAY: &str = "write a day (2026-11-01) or a time with its zone (2026-11-01T08:00:00Z)";

/// A day begins in UTC, as the times of the list are.
fn moment(text: &str) -> Result<i64, ()> {
    let utc = |d: jiff::civil::Date| d.to_zoned(jiff::tz::TimeZone::UTC).map(|z| z.timestamp());
    let at = text.parse::<jiff::Timestamp>().or_else(|_| text.parse::<jiff::civil::Date>().and_then(utc));
    at.map(jiff::Timestamp::as_microsecond).map_err(|_| ())
}

/// As browsers write queries: `+` is a space, `%XX` a byte of UTF-8.
fn decoded(text: &str) -> Result<String, BadQuery> {
    let bad = || BadQuery("The query is damaged: a % without its two digits, or no UTF-8.".into());
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(b) = bytes.next() {
        out.push(match b {
            b'+' => b' ',
            b'%' => {
                let mut digit = || bytes.next().and_then(|d| char::from(d).to_digit(16)).ok_or_else(bad);
                (digit()? * 16 + digit()?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(out).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_understood_as_browsers_write_it() {
        let q = HistoryQuery::parse("label=tier%3Dst%C3%A4ndard+x&op=get&op=put&validity=valid&since=2026-11-01&until=2026-11-02T00:00:00Z&target=&skip=100&rows=label:tier&columns=op&figure=p99_ns&a=r1&b=r2&view=pivot").unwrap();
        assert_eq!(q.filter.labels, [("tier".to_owned(), "ständard x".to_owned())]);
        assert_eq!((q.filter.ops.len(), q.filter.targets.len(), q.skip), (2, 0, 100));
        assert_eq!(q.filter.until_us.unwrap() - q.filter.since_us.unwrap(), 86_400_000_000);
        assert_eq!((q.rows, q.columns), (Some(HistoryKey::Label("tier".into())), Some(HistoryKey::Op)));
        assert_eq!((q.figure, q.a, q.b), (HistoryFigure::P99, vec!["r1".to_owned()], vec!["r2".to_owned()]));
        assert_eq!(HistoryQuery::parse("").unwrap(), HistoryQuery::default());
    }

    #[test]
    fn what_is_wrong_is_said_and_what_is_too_much_is_refused() {
        for (text, says) in [
            ("label=x", "NAME=VALUE"),
            ("validity=good", "valid, partly"),
            ("since=yesterday", "2026-11-01"),
            ("figure=mean", "p99_ns"),
            ("rows=colour", "label:NAME"),
            ("skip=-1", "number"),
            ("lable=a", "no condition called lable"),
            ("op=%zz", "damaged"),
            ("op=%ff", "damaged"),
        ] {
            let BadQuery(said) = HistoryQuery::parse(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
        assert!(HistoryQuery::parse(&"op=get&".repeat(41)).is_err());
        assert!(HistoryQuery::parse(&format!("op={}", "x".repeat(9000))).is_err());
    }
}
