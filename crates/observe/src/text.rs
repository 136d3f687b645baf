//! The Prometheus text format (0.0.4) and OpenMetrics: lines to series. Only series that somebody wants are kept.

use plimsoll_model::text::{clean, said};

/// Bytes of a page that are read. Measured: node_exporter with all collectors 60 KB, a MinIO node 40 KB; a gateway with series for each
/// of thousands of buckets some MB.
pub const MOST_PAGE_BYTES: usize = 16 << 20;
/// Series that are kept of one page.
pub const MOST_SERIES: usize = 50_000;
/// Labels of one series.
const MOST_LABELS: usize = 64;
/// Characters of a label's value that are kept.
const MOST_LABEL_CHARS: usize = 200;

/// One series of a page, with its value now.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSeries {
    /// The metric's name.
    pub name: String,
    /// Names and values, in the page's order; values are clean.
    pub labels: Vec<(String, String)>,
    /// Finite.
    pub value: f64,
    /// When the source made it, seconds since 1970, where it says so.
    pub made_s: Option<f64>,
}

impl MetricSeries {
    /// The value of a label; empty where there is none.
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }
}

/// What a page holds of what was wanted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MetricsPage {
    /// In the page's order.
    pub series: Vec<MetricSeries>,
    /// Wanted, and beyond what is kept.
    pub left_out: u64,
    /// Lines that are no series.
    pub malformed: u64,
}

/// Why a text is no metrics page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotMetrics {
    /// Nothing is on it.
    #[error("the page is empty")]
    Empty,
    /// No line of it is a series.
    #[error("it is no metrics page: it begins with '{0}'")]
    Other(String),
    /// There are series, and none that is known of such a source.
    #[error("none of its metrics is known for {0}")]
    NothingKnown(&'static str),
    /// An answer of another shape than the interface has.
    #[error("the answer is not as documented: {0}")]
    Answer(String),
}

/// Reads a page. `wanted`: by a metric's name.
pub fn parse(text: &str, wanted: impl Fn(&str) -> bool) -> Result<MetricsPage, NotMetrics> {
    let mut page = MetricsPage::default();
    let (mut good, mut open_metrics) = (false, false);
    for line in text.lines() {
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() {
            continue;
        }
        if let Some(comment) = line.strip_prefix('#') {
            let comment = comment.trim_start();
            open_metrics |= comment == "EOF";
            good |= ["HELP ", "TYPE ", "UNIT "].iter().any(|w| comment.starts_with(w));
            continue;
        }
        match series(line, &wanted) {
            None => page.malformed += 1,
            Some(Found::Unwanted) => good = true,
            Some(Found::Wanted(_)) if page.series.len() >= MOST_SERIES => page.left_out += 1,
            Some(Found::Wanted(s)) => {
                good = true;
                page.series.push(s);
            }
        }
    }
    // The older format stamps in milliseconds, OpenMetrics, which ends with a mark, in seconds.
    if !open_metrics {
        page.series.iter_mut().filter_map(|s| s.made_s.as_mut()).for_each(|t| *t /= 1000.0);
    }
    match (good, text.trim()) {
        (true, _) => Ok(page),
        (false, "") => Err(NotMetrics::Empty),
        (false, other) => Err(NotMetrics::Other(said(&other.chars().take(60).collect::<String>()))),
    }
}

enum Found {
    Wanted(MetricSeries),
    /// Or without a number that can be used.
    Unwanted,
}

/// `name{label="value",...} value [time] [# exemplar]`, or `{"name",label="value"} value`.
fn series(line: &str, wanted: &impl Fn(&str) -> bool) -> Option<Found> {
    let end = line.find(|c: char| c == '{' || c.is_ascii_whitespace()).unwrap_or(line.len());
    let (mut name, mut rest) = (line[..end].to_owned(), &line[end..]);
    if !name.is_empty() && !is_name(&name) {
        return None;
    }
    // What nobody wants is not looked at further; a name in quotes is inside of the braces.
    if !name.is_empty() && !wanted(&name) {
        return Some(Found::Unwanted);
    }
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = label_set(inside, &mut name, &mut labels)?;
    }
    if name.is_empty() {
        return None;
    }
    let mut fields = rest.split_ascii_whitespace();
    let value: f64 = fields.next()?.parse().ok()?;
    let made_s = fields.next().filter(|f| !f.starts_with('#')).and_then(|f| f.parse::<f64>().ok());
    if !value.is_finite() || !wanted(&name) {
        return Some(Found::Unwanted);
    }
    Some(Found::Wanted(MetricSeries { name, labels, value, made_s: made_s.filter(|t| t.is_finite()) }))
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// What follows the opening brace; gives what follows the closing one.
fn label_set<'a>(mut at: &'a str, name: &mut String, labels: &mut Vec<(String, String)>) -> Option<&'a str> {
    loop {
        at = at.trim_start_matches([' ', '\t', ',']);
        if let Some(rest) = at.strip_prefix('}') {
            return Some(rest);
        }
        let (label, rest) = match at.strip_prefix('"') {
            Some(inside) => quoted(inside)?,
            None => {
                let end = at.find(['=', ' ', '\t', ',', '}'])?;
                (at[..end].to_owned(), &at[end..])
            }
        };
        let rest = rest.trim_start_matches([' ', '\t']);
        let Some(value) = rest.strip_prefix('=') else {
            // In quotes and alone: the metric's own name.
            if name.is_empty() && at.starts_with('"') {
                *name = label;
                at = rest;
                continue;
            }
            return None;
        };
        let (value, rest) = quoted(value.trim_start_matches([' ', '\t']).strip_prefix('"')?)?;
        if labels.len() < MOST_LABELS {
            labels.push((cut(&label), cut(&value)));
        }
        at = rest;
    }
}

/// What follows an opening quote, up to the closing one.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => return Some((out, &text[i + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => out.push('\n'),
                c @ ('\\' | '"') => out.push(c),
                c => out.extend(['\\', c]),
            },
            c => out.push(c),
        }
    }
    None
}

/// Clean, and not too long.
fn cut(text: &str) -> String {
    clean(&text.chars().take(MOST_LABEL_CHARS).collect::<String>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> MetricsPage {
        parse(text, |_| true).unwrap()
    }

    #[test]
    fn both_formats_with_times_and_exemplars() {
        let page = all(
            "# HELP a_total Things\n# TYPE a_total counter\na_total{x=\"1\",y=\"q\\\"\\\\\\n\",} 5e3 1700000000500\r\n\
             b 1 # {trace=\"x\"} 0.5\n\nc NaN\nd{e=\"f\"} +Inf\n",
        );
        assert_eq!(page.series.len(), 2);
        let a = &page.series[0];
        assert_eq!((a.value, a.made_s, a.label("x")), (5000.0, Some(1_700_000_000.5), "1"));
        assert_eq!(a.label("y"), "q\"\\\\n", "a line end in a label is made visible");
        assert_eq!((page.series[1].made_s, page.malformed), (None, 0));
        let open = all("# TYPE a counter\na_total 3 1700000000.5\n{\"a.b\", \"l.x\"=\"v\"} 7\n# EOF\n");
        assert_eq!(open.series[0].made_s, Some(1_700_000_000.5));
        assert_eq!((open.series[1].name.as_str(), open.series[1].label("l.x")), ("a.b", "v"));
    }

    #[test]
    fn what_is_no_page_is_told_and_what_is_no_line_is_passed_over() {
        assert_eq!(parse(" \n", |_| true), Err(NotMetrics::Empty));
        let html = parse("<!DOCTYPE html>\n<title>\u{1b}[31mx</title>", |_| true).unwrap_err().to_string();
        assert!(html.contains("it begins with '<!DOCTYPE html>") && !html.contains('\u{1b}'), "{html}");
        let page = all("a 1\na{x=\"1} 2\nb{} \n9x 3\nc{x} 4\nd 0x10\n");
        assert_eq!((page.series.len(), page.malformed), (1, 5));
    }

    #[test]
    fn hostile_labels_and_long_pages_are_bounded() {
        let long = "v".repeat(10_000);
        let page = all(&format!("a{{x=\"\\u001b]0;\u{1b}[2J{long}\"}} 1\n"));
        let x = page.series[0].label("x").to_owned();
        assert!(x.len() < 2 * MOST_LABEL_CHARS && !x.contains('\u{1b}'), "{x}");
        let many: String = (0..MOST_SERIES + 7).map(|i| format!("a{{n=\"{i}\"}} 1\n")).collect();
        let page = all(&many);
        assert_eq!((page.series.len(), page.left_out), (MOST_SERIES, 7));
        let labels: String = (0..500).map(|i| format!("l{i}=\"x\",")).collect();
        assert_eq!(all(&format!("a{{{labels}}} 1")).series[0].labels.len(), MOST_LABELS);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,300}") {
            let _ = parse(&text, |_| true);
        }

        #[test]
        fn what_is_written_is_read(value in -1e15..1e15f64, label in "[a-z\"\\\\ ,={}]{0,20}", other in any::<bool>()) {
            let escaped = label.replace('\\', "\\\\").replace('"', "\\\"");
            let text = format!("m{{l=\"{escaped}\"{}}} {value}\n", if other { ",k=\"}\"" } else { "" });
            let page = parse(&text, |_| true).unwrap();
            prop_assert_eq!(page.series[0].label("l"), &label);
            prop_assert_eq!(page.series[0].value, value);
        }
    }
}
