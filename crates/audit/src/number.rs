//! Numbers as people print them: `1,234.5`, `1.234,5`, `~391K`, `\u{2248}10,000`, `2.7-3.2`, with spaces of any width, and a unit behind them.

use crate::AuditError;
use crate::table::CellPlace;

/// What stands for a number that is not there.
const MISSING: &[&str] = &[
    "", "-", "\u{2013}", "\u{2014}", "n/a", "na", "none", "null", "nan", "?", "tbd", "tba", "\u{2026}", "...",
];

/// A number that is called about or approximate may be off by as much as its zeros, but not by more than this share.
const MOST_APPROXIMATE: f64 = 0.05;
/// And by this share whatever its digits say.
const LEAST_APPROXIMATE: f64 = 0.01;

/// A number as printed; what its last digit is worth depends on its column ([`PrintedNumber::bounds`]).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PrintedNumber {
    /// The cell.
    pub text: String,
    pub value: f64,
    /// One of the last digit.
    step: f64,
    /// Digits before the point, where there is none behind it.
    whole_digits: usize,
    /// Digits that count, zeros at the end of a whole number left out.
    pub digits: usize,
    is_about: bool,
    /// Of a range, or of `a \u{b1} b`.
    range: Option<(f64, f64)>,
    /// What stands behind it, or the currency before it.
    pub unit: String,
    /// Whether a sign stands before it.
    pub is_signed: bool,
}

impl PrintedNumber {
    /// What it may have been before it was rounded, in a column whose numbers have at most so many digits that count.
    pub fn bounds(&self, column_digits: usize) -> (f64, f64) {
        if let Some(range) = self.range {
            return range;
        }
        let mut half = self.step / 2.0;
        if self.whole_digits > column_digits && column_digits > 0 {
            half = self.step * 10_f64.powi((self.whole_digits - column_digits) as i32) / 2.0;
        }
        if self.is_about {
            let zeros = self.whole_digits.saturating_sub(self.digits);
            let by_zeros = self.step * 10_f64.powi(zeros as i32) / 2.0;
            half = half
                .max(by_zeros.min(MOST_APPROXIMATE * self.value.abs()))
                .max(LEAST_APPROXIMATE * self.value.abs());
        }
        (self.value - half, self.value + half)
    }

    /// Digits without any zeros at either end.
    pub fn bare_digits(&self) -> usize {
        let all = format!("{:.0}", (self.value / self.step).abs());
        all.trim_matches('0').len()
    }

    pub fn is_range(&self) -> bool {
        self.range.is_some()
    }

    /// By itself, without a column.
    pub fn own_bounds(&self) -> (f64, f64) {
        self.bounds(self.whole_digits)
    }

    /// Two neighbouring digits exchanged: what the number may have been before somebody typed it.
    pub fn transpositions(&self) -> Vec<f64> {
        let digits: Vec<char> = format!("{:.0}", (self.value / self.step).abs()).chars().collect();
        let swapped = |i: usize| {
            let mut d = digits.clone();
            d.swap(i - 1, i);
            d.iter().collect::<String>().parse::<f64>().ok().map(|v| v * self.step)
        };
        (1..digits.len()).filter(|i| digits[i - 1] != digits[*i]).filter_map(swapped).collect()
    }
}

/// Digits that count in a column: the most that a number of it has. One number that has more than the others, where those end in zeros, was
/// rounded otherwise (it may be of another column), and says nothing of them.
pub(crate) fn column_digits<'a>(numbers: impl Iterator<Item = &'a PrintedNumber>) -> usize {
    let numbers: Vec<&PrintedNumber> = numbers.collect();
    let odd = |most: usize| numbers.iter().filter(|n| n.digits >= most).count();
    let zeros = |of: usize| numbers.iter().filter(|n| n.digits <= of && n.whole_digits > of).count();
    let mut most = numbers.iter().map(|n| n.digits).max().unwrap_or(0);
    while let Some(next) = numbers.iter().map(|n| n.digits).filter(|d| *d < most).max() {
        if odd(most) > (numbers.len() / 4).max(1) || zeros(next) < 2 * odd(most) {
            break;
        }
        most = next;
    }
    most
}

/// Which mark stands before the decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Point,
    Comma,
}

fn is_space(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '\u{2009}' | '\u{202f}' | '\u{a0}' | '\u{2007}' | '\u{2002}' | '\u{2003}' | '\'' | '\u{2019}'
        )
}

/// Whether nothing was measured, by its cell.
pub(crate) fn is_missing(cell: &str) -> bool {
    MISSING.contains(&cell.trim().to_lowercase().as_str())
}

/// The digits and marks of the first number in a text, without spaces between groups of three; and what follows.
fn split(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut end = 0;
    let all: Vec<(usize, char)> = text.char_indices().collect();
    for (i, (at, c)) in all.iter().enumerate() {
        let groups_on = || {
            let next: String = all[i + 1..].iter().map(|(_, c)| *c).take(4).collect();
            let digits = next.chars().take_while(char::is_ascii_digit).count();
            digits == 3 && out.ends_with(|c: char| c.is_ascii_digit())
        };
        if c.is_ascii_digit()
            || (matches!(c, '.' | ',') && all.get(i + 1).is_some_and(|(_, n)| n.is_ascii_digit()))
        {
            out.push(*c);
            end = at + c.len_utf8();
        } else if is_space(*c) && groups_on() {
            end = at + c.len_utf8();
        } else {
            break;
        }
    }
    (out.starts_with(|c: char| c.is_ascii_digit() || c == '.')).then(|| (out, &text[end..]))
}

/// What the numbers in a cell say of the mark; none: they could be either.
pub(crate) fn evidence(cell: &str) -> Option<Mark> {
    let cell = cell.trim_start_matches(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, rest) = split(cell)?;
    let own = of_digits(&digits);
    // The other end of a range.
    own.or_else(|| {
        let rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        (!rest.is_empty()).then(|| split(rest)).flatten().and_then(|(d, _)| of_digits(&d))
    })
}

fn of_digits(digits: &str) -> Option<Mark> {
    let mark = |c: char| if c == ',' { Mark::Comma } else { Mark::Point };
    let other = |m: Mark| if m == Mark::Comma { Mark::Point } else { Mark::Comma };
    let marks: Vec<(usize, char)> = digits.char_indices().filter(|(_, c)| !c.is_ascii_digit()).collect();
    let (at, last) = *marks.last()?;
    if marks.iter().any(|(_, c)| *c != last) {
        return Some(mark(last));
    }
    if marks.len() > 1 {
        return Some(other(mark(last)));
    }
    let (before, after) = (&digits[..at], &digits[at + 1..]);
    let is_decimal = after.len() != 3 || before.len() > 3 || before.is_empty() || before.starts_with('0');
    is_decimal.then(|| mark(last))
}

/// `e3` behind digits, as spreadsheets write it.
fn exponent(rest: &str) -> (i32, &str) {
    let Some(text) = rest.strip_prefix(['e', 'E']) else { return (0, rest) };
    let digits = text.trim_start_matches(['+', '-']);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let all = text.len() - digits.len() + end;
    match text[..all].parse::<i32>() {
        Ok(power) if (1..=2).contains(&end) => (power, &text[all..]),
        _ => (0, rest),
    }
}

/// A cell without the marks of footnotes behind it.
fn without_notes(cell: &str) -> &str {
    let superscript = [
        '\u{b9}', '\u{b2}', '\u{b3}', '\u{2074}', '\u{2075}', '\u{2076}', '\u{2077}', '\u{2078}', '\u{2079}',
    ];
    let mut text = cell.trim_end();
    loop {
        let before = text.len();
        text = text.trim_end_matches(['*', '\u{2020}', '\u{2021}', '\u{a7}']).trim_end_matches(superscript);
        if let Some((start, note)) = text.strip_suffix(']').and_then(|t| t.rsplit_once('['))
            && note.len() <= 3
            && note.chars().all(|c| c.is_ascii_alphanumeric())
        {
            text = start;
        }
        text = text.trim_end();
        if text.len() == before {
            return text;
        }
    }
}

/// What is added and taken away: `\u{b1} 5`, `(+/- 2 %)`, and the unit that stands before or behind it.
fn tolerance(n: &mut PrintedNumber, rest: &str, mark: Mark) -> Option<Option<String>> {
    let found = ["\u{b1}", "+/-"].into_iter().find_map(|sign| rest.split_once(sign));
    let Some((before, after)) = found else { return Some(None) };
    let (before, is_open) = match before.trim_end().strip_suffix('(') {
        Some(b) => (b.trim_end(), true),
        None => (before.trim_end(), false),
    };
    let (by, behind) = one(after.trim_start(), mark)?;
    let behind = behind.trim();
    let behind = if is_open { behind.strip_suffix(')')?.trim_end() } else { behind };
    let (half, behind) = match behind.strip_prefix('%') {
        Some(unit) => (n.value * by.value / 100.0, unit.trim_start()),
        None => (by.value, behind),
    };
    n.range = Some((n.value - half, n.value + half));
    Some(Some(if before.is_empty() { behind.to_owned() } else { before.to_owned() }))
}

/// Reads one number at the beginning of a text.
fn one(text: &str, mark: Mark) -> Option<(PrintedNumber, &str)> {
    let (digits, rest) = split(text)?;
    let (decimal, group) = if mark == Mark::Comma { (',', '.') } else { ('.', ',') };
    let plain: String = digits.chars().filter(|c| *c != group).collect();
    let plain = plain.replacen(decimal, ".", 1);
    let (power, rest) = exponent(rest);
    let value: f64 = plain.parse::<f64>().ok()? * 10_f64.powi(power);
    let (whole, part) = plain.split_once('.').unwrap_or((&plain, ""));
    let whole_digits = if part.is_empty() { whole.trim_start_matches('0').len() } else { 0 };
    let all = format!("{whole}{part}");
    let counted = all.trim_start_matches('0');
    let counted = if part.is_empty() { counted.trim_end_matches('0') } else { counted };
    let number = PrintedNumber {
        text: String::new(),
        value,
        step: 10_f64.powi(power - part.len() as i32),
        whole_digits,
        digits: counted.len(),
        is_about: false,
        range: None,
        unit: String::new(),
        is_signed: false,
    };
    Some((number, rest))
}

/// What joins the ends of a range.
const RANGES: &[&str] = &["-", "\u{2013}", "\u{2014}", "\u{2026}", "...", "..", "to ", "bis "];

impl PrintedNumber {
    /// Reads a cell; none where there is no number, or more than one that is no range.
    pub fn parse(cell: &str, mark: Mark) -> Option<Self> {
        let mut text = without_notes(cell.trim());
        let mut is_about = false;
        for word in
            ["about ", "approx. ", "approx ", "ca. ", "circa ", "~", "\u{2248}", "\u{223c}", "\u{2243}"]
        {
            if let Some(rest) = text.strip_prefix(word) {
                (text, is_about) = (rest.trim_start(), true);
            }
        }
        let (mut sign, mut is_signed) = (1.0, false);
        for (word, s) in [("+", 1.0), ("-", -1.0), ("\u{2212}", -1.0)] {
            if let Some(rest) = text.strip_prefix(word) {
                (text, sign, is_signed) = (rest.trim_start(), s, true);
                break;
            }
        }
        let currency = ["$", "\u{20ac}", "USD "].into_iter().find(|c| text.starts_with(c));
        let text = currency.map_or(text, |c| text[c.len()..].trim_start());
        let (mut n, rest) = one(text, mark)?;
        let rest = rest.trim_start();
        let mut unit = rest;
        let unit_of_tolerance = tolerance(&mut n, rest, mark)?;
        if let Some(own) = &unit_of_tolerance {
            unit = own;
        } else if let Some(more) = RANGES.iter().find_map(|r| rest.strip_prefix(r)) {
            let (to, behind) = one(more.trim_start(), mark)?;
            let (low, high) = (n.value - n.step / 2.0, to.value + to.step / 2.0);
            n.range = Some((low, high));
            n.value = f64::midpoint(n.value, to.value);
            unit = behind;
        }
        n.unit = currency.map_or(unit.trim(), str::trim).to_owned();
        if unit.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        (n.text, n.is_about, n.is_signed, n.value) =
            (cell.trim().to_owned(), is_about, is_signed, sign * n.value);
        if sign < 0.0 {
            n.range = n.range.map(|(a, b)| (-b, -a));
        }
        Some(n)
    }

    /// The same times a factor that its suffix stands for.
    pub fn times(mut self, factor: f64) -> Self {
        self.value *= factor;
        self.step *= factor;
        self.range = self.range.map(|(a, b)| (a * factor, b * factor));
        self
    }
}

/// One mark for a table, none where nothing tells (`1.234`); cells that contradict each other are bad input, not a guess.
pub(crate) fn mark_of<'a>(
    cells: impl Iterator<Item = (CellPlace, &'a str)>,
) -> Result<Option<Mark>, AuditError> {
    let mut seen: [Option<(CellPlace, &str)>; 2] = [None, None];
    for (place, cell) in cells {
        if let Some(mark) = evidence(cell) {
            seen[usize::from(mark == Mark::Comma)].get_or_insert((place, cell));
        }
    }
    match (&seen[0], &seen[1]) {
        (Some((_, point)), Some((place, comma))) => Err(AuditError::new(
            place.to_string(),
            format!("'{comma}' has a comma before its decimals, and '{point}' in the same table a point"),
            "Correct one of them, or say which it is in the map: decimal = \",\".",
        )),
        (None, Some(_)) => Ok(Some(Mark::Comma)),
        (Some(_), None) => Ok(Some(Mark::Point)),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cell: &str) -> (f64, (f64, f64), String) {
        let n = PrintedNumber::parse(cell, evidence(cell).unwrap_or(Mark::Point))
            .unwrap_or_else(|| panic!("{cell}"));
        (n.value, n.own_bounds(), n.unit)
    }

    #[test]
    fn numbers_are_read_as_they_are_printed() {
        for (cell, value, low, high, unit) in [
            ("469.9", 469.9, 469.85, 469.95, ""),
            ("2,462.2", 2462.2, 2462.15, 2462.25, ""),
            ("10,000", 10000.0, 9999.5, 10000.5, ""),
            ("1.234,5 MB/s", 1234.5, 1234.45, 1234.55, "MB/s"),
            ("0,532", 0.532, 0.5315, 0.5325, ""),
            ("1.234.567", 1_234_567.0, 1_234_566.5, 1_234_567.5, ""),
            ("12\u{2009}345", 12345.0, 12344.5, 12345.5, ""),
            ("12\u{a0}345,6", 12345.6, 12345.55, 12345.65, ""),
            ("12 345 ms", 12345.0, 12344.5, 12345.5, "ms"),
            ("1'234", 1234.0, 1233.5, 1234.5, ""),
            ("~391K", 391.0, 387.09, 394.91, "K"),
            ("\u{2248}10,000", 10000.0, 9500.0, 10500.0, ""),
            ("\u{2248}750", 750.0, 742.5, 757.5, ""),
            ("2.7-3.2", 2.95, 2.65, 3.25, ""),
            ("320 \u{2013} 420 ms", 370.0, 319.5, 420.5, "ms"),
            ("3,459 \u{b1} 5 op/s", 3459.0, 3454.0, 3464.0, "op/s"),
            ("3,459 op/s \u{b1} 5", 3459.0, 3454.0, 3464.0, "op/s"),
            ("200 \u{b1} 2 %", 200.0, 196.0, 204.0, ""),
            ("200 MB/s (\u{b1}2%)", 200.0, 196.0, 204.0, "MB/s"),
            ("1.25e3", 1250.0, 1245.0, 1255.0, ""),
            ("5E-1 ms", 0.5, 0.45, 0.55, "ms"),
            ("8,850*", 8850.0, 8849.5, 8850.5, ""),
            ("8,850 MB/s\u{b9}", 8850.0, 8849.5, 8850.5, "MB/s"),
            ("34.6 [2]", 34.6, 34.55, 34.65, ""),
            ("+37%", 37.0, 36.5, 37.5, "%"),
            ("\u{2212}27 %", -27.0, -27.5, -26.5, "%"),
            ("$1,425.60", 1425.6, 1425.595, 1425.605, "$"),
            ("4 KB", 4.0, 3.5, 4.5, "KB"),
        ] {
            let (v, (l, h), u) = read(cell);
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * b.abs().max(1.0);
            assert!(near(v, value) && near(l, low) && near(h, high), "{cell}: {v} {l} {h}");
            assert_eq!(u, unit, "{cell}");
        }
        for cell in ["fast", "", "1 and 2", "p99 4", "1-2-3"] {
            assert_eq!(PrintedNumber::parse(cell, Mark::Point), None, "{cell}");
        }
    }

    #[test]
    fn zeros_count_as_digits_only_where_others_of_the_column_have_as_many() {
        let n = PrintedNumber::parse("12300", Mark::Point).unwrap();
        assert_eq!(n.bounds(3), (12250.0, 12350.0));
        assert_eq!(n.bounds(5), (12299.5, 12300.5));
    }

    #[test]
    fn one_number_of_more_digits_does_not_make_the_zeros_of_the_others_count() {
        let digits = |cells: &[&str]| {
            let all: Vec<_> = cells.iter().map(|c| PrintedNumber::parse(c, Mark::Point).unwrap()).collect();
            column_digits(all.iter())
        };
        assert_eq!(digits(&["22,000", "15,000", "6,900", "8,200", "1,098.3"]), 2);
        assert_eq!(digits(&["27516", "1111", "28562", "14284"]), 5);
        assert_eq!(digits(&["22,000", "15,123", "6,912", "8,265"]), 5);
        assert_eq!(digits(&["5000", "400"]), 1);
        assert_eq!(digits(&[]), 0);
    }

    #[test]
    fn a_table_has_one_mark() {
        let at = |line| CellPlace { line, column: "IOPS".into() };
        let mark = |cells: &[&'static str]| mark_of(cells.iter().enumerate().map(|(i, c)| (at(i), *c)));
        assert_eq!(mark(&["1,234", "5.67"]), Ok(Some(Mark::Point)));
        // Each of them could be either: the rest of the table says it.
        assert_eq!(mark(&["1,234", "5.678"]), Ok(None));
        assert_eq!(mark(&["1.234", "5,6"]), Ok(Some(Mark::Comma)));
        let e = mark(&["1.5", "5,6"]).unwrap_err();
        assert!(e.to_string().contains("line 1") && e.problem.contains("'5,6'"), "{e}");
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_much(cell in ".{0,40}") {
            let _ = evidence(&cell);
            for mark in [Mark::Point, Mark::Comma] {
                if let Some(n) = PrintedNumber::parse(&cell, mark) {
                    let (low, high) = n.own_bounds();
                    assert!(low <= high && n.transpositions().len() < 400);
                }
            }
        }
    }
}
