//! Claims are recomputed by formulas: `'391K IOPS' * '2 ms'`, `{pd-ssd 20 GiB: IOPS} / {pd-standard 20 GiB: IOPS}`.
//!
//! What stands in quotes is as printed, and its rounding counts; a bare number is exact. Braces name a cell of the tables by the labels of
//! its row and its column; `rank{...}` is its place in the column, 1 for the least.

use crate::quantity::Quantity;
use crate::unit::{Dimension, parse_unit};

/// Formulas of more are none that a person reads.
const DEEPEST: usize = 64;

/// Where a formula finds cells of tables: labels of the row, name of the column, and whether its rank is asked for.
pub(crate) type Lookup<'a> = dyn Fn(&str, &str, bool) -> Result<Quantity, String> + 'a;

/// The value of a formula.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn evaluate(formula: &str, cells: &Lookup<'_>) -> Result<Quantity, String> {
    let mut reader = FormulaReader { text: formula, at: 0, deep: 0, cells };
    let value = reader.sum()?;
    reader.skip();
    if reader.rest().is_empty() { Ok(value) } else { Err(format!("'{}' is not understood", reader.rest())) }
}

struct FormulaReader<'a> {
    text: &'a str,
    at: usize,
    deep: usize,
    cells: &'a Lookup<'a>,
}

impl<'a> FormulaReader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, words: &[&str]) -> bool {
        self.skip();
        let found = words.iter().find(|w| self.rest().starts_with(**w));
        self.at += found.map_or(0, |w| w.len());
        found.is_some()
    }

    fn sum(&mut self) -> Result<Quantity, String> {
        let mut value = self.product()?;
        loop {
            let sign = if self.take(&["+"]) {
                1.0
            } else if self.take(&["-", "\u{2212}"]) {
                -1.0
            } else {
                return Ok(value);
            };
            let other = self.product()?;
            value = value.plus(other, sign).ok_or_else(|| {
                format!("{} and {} cannot be added", value.dimension.words(), other.dimension.words())
            })?;
        }
    }

    fn product(&mut self) -> Result<Quantity, String> {
        let mut value = self.factor()?;
        loop {
            let result = if self.take(&["*", "\u{d7}"]) {
                let other = self.factor()?;
                value.times(other)
            } else if self.take(&["/", "\u{f7}"]) {
                let other = self.factor()?;
                value.over(other)
            } else {
                return Ok(value);
            };
            value = result.ok_or("a product is too large, or something is divided by what may be zero")?;
        }
    }

    fn factor(&mut self) -> Result<Quantity, String> {
        self.deep += 1;
        if self.deep > DEEPEST {
            return Err("it is nested too deeply".into());
        }
        let value = self.inner();
        self.deep -= 1;
        value
    }

    fn inner(&mut self) -> Result<Quantity, String> {
        if self.take(&["("]) {
            let value = self.sum()?;
            return if self.take(&[")"]) { Ok(value) } else { Err("a ) is missing".into()) };
        }
        if self.take(&["-", "\u{2212}"]) {
            let zero = self.factor()?;
            return zero.times(Quantity::exact(-1.0, Dimension::ONE)).ok_or_else(|| "too large".into());
        }
        if self.take(&["'"]) {
            let text = self.until('\'')?;
            return Quantity::printed(text)
                .map(|(q, _)| q)
                .ok_or_else(|| format!("'{text}' is no number with a unit"));
        }
        let is_rank = self.take(&["rank{"]);
        if is_rank || self.take(&["{"]) {
            let text = self.until('}')?;
            let (row, column) =
                text.rsplit_once(':').ok_or_else(|| format!("{{{text}}} should be {{row: column}}"))?;
            return (self.cells)(row.trim(), column.trim(), is_rank);
        }
        self.number()
    }

    fn until(&mut self, end: char) -> Result<&'a str, String> {
        let text = self.rest();
        let length = text.find(end).ok_or_else(|| format!("a {end} is missing"))?;
        self.at += length + end.len_utf8();
        Ok(&text[..length])
    }

    /// An exact number: digits with a point, and a unit that may stand behind it.
    fn number(&mut self) -> Result<Quantity, String> {
        let text = self.rest();
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
        let digits = text[..end].replace('_', "");
        let value: f64 = digits.parse().map_err(|_| {
            format!("a number is missing before '{}'", text.chars().take(20).collect::<String>())
        })?;
        self.at += end;
        let rest = self.rest();
        let behind = rest.trim_start();
        let word =
            behind.find(|c: char| !(c.is_alphanumeric() || c == '%' || c == '$')).unwrap_or(behind.len());
        let with_s = behind[word..].starts_with("/s")
            && !behind[word + 2..].starts_with(|c: char| c.is_alphanumeric());
        let unit_text = if with_s { &behind[..word + 2] } else { &behind[..word] };
        if unit_text.is_empty() {
            return Ok(Quantity::exact(value, Dimension::ONE));
        }
        let unit = parse_unit(unit_text).ok_or_else(|| format!("'{unit_text}' is no unit"))?;
        self.at += rest.len() - behind.len() + unit_text.len();
        Ok(Quantity::exact(value * unit.scale, unit.dimension))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(formula: &str) -> Result<(f64, f64, f64), String> {
        let cells = |row: &str, column: &str, rank: bool| match (row, column, rank) {
            ("a b", "IOPS", false) => Ok(Quantity::exact(5.0, Dimension::PER_S)),
            ("a b", "IOPS", true) => Ok(Quantity::exact(3.0, Dimension::ONE)),
            _ => Err(format!("there is no {row}")),
        };
        evaluate(formula, &cells).map(|q| (q.low, q.value, q.high))
    }

    #[test]
    fn formulas_are_computed_with_the_rounding_of_what_is_quoted() {
        assert_eq!(value("2 + 3 * (4 - 1)"), Ok((11.0, 11.0, 11.0)));
        assert_eq!(value("'4' * 2"), Ok((7.0, 8.0, 9.0)));
        assert_eq!(value("10 / '4'").unwrap().1, 2.5);
        assert_eq!(value("{a b: IOPS} * 2"), Ok((10.0, 10.0, 10.0)));
        assert_eq!(value("rank{a b: IOPS}"), Ok((3.0, 3.0, 3.0)));
        assert_eq!(value("64 KiB / 65536 bytes"), Ok((1.0, 1.0, 1.0)));
        assert_eq!(value("100 Gbit/s / 12.5 GB/s"), Ok((1.0, 1.0, 1.0)));
        let cost = value("0.0005 / 10000 * 1100 * 3600 * 24 * 30").unwrap().1;
        assert!((cost - 142.56).abs() < 1e-9);
    }

    #[test]
    fn what_is_wrong_with_a_formula_is_said() {
        for (formula, word) in [
            ("", "missing"),
            ("2 +", "missing"),
            ("(2", ")"),
            ("2 ms + 3 KiB", "cannot be added"),
            ("1 / '0'", "zero"),
            ("{nobody: IOPS}", "nobody"),
            ("{a b}", "row: column"),
            ("'fast'", "no number"),
            ("3 widgets", "no unit"),
            ("1 2", "no unit"),
            ("1 )", "not understood"),
        ] {
            let e = value(formula).unwrap_err();
            assert!(e.contains(word), "{formula}: {e}");
        }
        assert!(value(&"(".repeat(10_000)).unwrap_err().contains("deeply"));
    }
}
