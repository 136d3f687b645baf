//! What an audit says.

use serde::Serialize;

/// Something that does not fit: what is printed, what would, and why that may be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditRemark {
    /// Heading of the table; empty where it has none, or for a claim.
    pub table: String,
    /// In the file, from 1; none: of the table as a whole, or of a claim.
    pub line: Option<usize>,
    /// The labels of the row, the name of the claim, or what is spoken of as a whole.
    pub row: String,
    /// Which rule: `bytes`, `base`, `unit`, `little`, `caps`, `knee`, `monotone`, `order`, `repeated`, `nodes`, `percent`, `traffic`,
    /// `threads`, `burst`, `cliff`, `claim`.
    pub rule: &'static str,
    /// What stands there.
    pub printed: String,
    /// What the rest makes of it.
    pub expected: String,
    /// What would explain it; empty where nothing known does.
    pub explanation: String,
}

/// How often a rule could be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RuleTally {
    /// The rule.
    pub rule: &'static str,
    /// Rows, pairs or claims that it was applied to.
    pub checked: usize,
}

/// The outcome of an audit.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct AuditReport {
    /// Tables that were read.
    pub tables: usize,
    /// Their rows.
    pub rows: usize,
    /// What was applied, and to how much.
    pub checks: Vec<RuleTally>,
    /// What does not fit.
    pub remarks: Vec<AuditRemark>,
    /// What was assumed, and what could not be checked.
    pub notes: Vec<String>,
}

impl AuditReport {
    pub(crate) fn checked(&mut self, rule: &'static str, count: usize) {
        match self.checks.iter_mut().find(|c| c.rule == rule) {
            Some(c) => c.checked += count,
            None if count > 0 => self.checks.push(RuleTally { rule, checked: count }),
            None => {}
        }
    }
}

/// A number for people: four digits that count.
pub(crate) fn short(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return if value == 0.0 { "0".into() } else { "?".into() };
    }
    if value.abs() >= 1e15 {
        return format!("{value:.3e}");
    }
    let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    let (whole, part) = text.split_once('.').map_or((text.as_str(), ""), |(w, p)| (w, p));
    let digits = whole.trim_start_matches('-');
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    if part.is_empty() { out } else { format!("{out}.{part}") }
}

/// How far the printed is from the expected, signed.
pub(crate) fn percent_off(printed: f64, expected: f64) -> String {
    let off = 100.0 * (printed / expected - 1.0);
    if off.abs() < 0.1 {
        return format!("{off:+.2} %");
    }
    if off.abs() >= 1000.0 { format!("x {}", short(printed / expected)) } else { format!("{off:+.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (v, text) in [
            (142.56, "142.6"),
            (1_425.6, "1,426"),
            (0.000_779, "0.000779"),
            (2.0, "2"),
            (12_345_678.0, "12,345,678"),
            (-0.5, "-0.5"),
            (3.906e55, "3.906e55"),
        ] {
            assert_eq!(short(v), text);
        }
        assert_eq!(percent_off(2.1, 2.341), "-10.3 %");
    }
}
