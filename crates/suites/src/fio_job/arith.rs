//! fio's arithmetic in parentheses: `size=(4*1k+512)`. Suffixes bind to the number before them.

use super::suffix::{byte_multiplier, time_multiplier_us};

/// Value of an expression in parentheses. Sizes in bytes; times in microseconds when `time` is true
/// (a bare number in a time expression stays bare: the caller knows its unit).
pub fn evaluate(text: &str, kb_base: u64, time: bool) -> Result<f64, String> {
    let mut p = Parser { rest: text, kb_base, time };
    let v = p.sum()?;
    p.space();
    if !p.rest.is_empty() {
        return Err(format!("'{}' is left over in '{text}'", p.rest));
    }
    if !v.is_finite() {
        return Err(format!("'{text}' has no finite value"));
    }
    Ok(v)
}

struct Parser<'a> {
    rest: &'a str,
    kb_base: u64,
    time: bool,
}

impl Parser<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, c: char) -> bool {
        self.space();
        match self.rest.strip_prefix(c) {
            Some(r) => {
                self.rest = r;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut v = self.product()?;
        loop {
            if self.eat('+') {
                v += self.product()?;
            } else if self.eat('-') {
                v -= self.product()?;
            } else {
                return Ok(v);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut v = self.power()?;
        loop {
            if self.eat('*') {
                v *= self.power()?;
            } else if self.eat('/') {
                v /= self.power()?;
            } else if self.eat('%') {
                v %= self.power()?;
            } else {
                return Ok(v);
            }
        }
    }

    fn power(&mut self) -> Result<f64, String> {
        let base = self.atom()?;
        if self.eat('^') { Ok(base.powf(self.power()?)) } else { Ok(base) }
    }

    fn atom(&mut self) -> Result<f64, String> {
        if self.eat('-') {
            return Ok(-self.atom()?);
        }
        let inner = if self.eat('(') {
            let v = self.sum()?;
            if !self.eat(')') {
                return Err("a closing parenthesis is missing".into());
            }
            v
        } else {
            self.space();
            let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            self.rest = rest;
            digits.parse::<f64>().map_err(|_| format!("a number is missing before '{rest}'"))?
        };
        let end = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (suffix, rest) = self.rest.split_at(end);
        if suffix.is_empty() {
            return Ok(inner);
        }
        self.rest = rest;
        let factor = if self.time {
            time_multiplier_us(suffix).map(|us| us as f64)
        } else {
            byte_multiplier(suffix, self.kb_base).map(|b| b as f64)
        };
        factor.map(|f| inner * f).ok_or_else(|| format!("'{suffix}' is not a unit"))
    }
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    #[test]
    fn precedence_parentheses_and_suffixes() {
        assert_eq!(evaluate("(4*1k+512)", 1024, false), Ok(4608.0));
        assert_eq!(evaluate("((1+2)*3)", 1024, false), Ok(9.0));
        assert_eq!(evaluate("(2^3^2)", 1024, false), Ok(512.0));
        assert_eq!(evaluate("(1.5g/2)", 1000, false), Ok(750_000_000.0));
        assert_eq!(evaluate("(1m+30s)", 1024, true), Ok(90_000_000.0));
        assert_eq!(evaluate("(-2+5)", 1024, false), Ok(3.0));
    }

    #[test]
    fn bad_expressions_say_why() {
        for bad in ["(1+", "(1+2", "()", "(1x)", "(1)2", "(1/0)"] {
            assert!(evaluate(bad, 1024, false).is_err(), "{bad}");
        }
    }
}
