//! Values of fio's keys: numbers with its suffixes, times, booleans, lists per direction.

use super::arith;
use super::error::FioError;
use super::suffix::{byte_multiplier, time_multiplier_us};
use super::text::Assignment;

/// Bytes, or a share of the file or device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesOrPercent {
    Bytes(u64),
    Percent(u32),
}

/// A hundred years: what is longer is a mistake, and would overflow nanoseconds.
const MAX_TIME_US: u64 = 100 * 365 * 86_400_000_000;

/// Reads the values of one assignment.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    pub at: &'a Assignment,
    /// The expanded value.
    pub text: &'a str,
    pub kb_base: u64,
}

impl<'a> Reader<'a> {
    pub fn fail<T>(&self, problem: impl std::fmt::Display, remedy: impl Into<String>) -> Result<T, FioError> {
        let problem = problem.to_string();
        // A sentence about the value itself goes on from it.
        let colon = if problem.starts_with("is ") || problem.starts_with("has ") { "" } else { ":" };
        Err(self.at.error(format!("{}={}{colon} {problem}", self.at.key, self.text), remedy))
    }

    /// One size in bytes.
    pub fn size(&self, text: &str) -> Result<u64, FioError> {
        const REMEDY: &str = "Write a number with k, m, g, t (or ki, mi, gi, ti), for example 4k.";
        let t = text.trim();
        if t.starts_with('(') {
            return match arith::evaluate(t, self.kb_base, false) {
                Ok(v) if v >= 0.0 && v < u64::MAX as f64 / 2.0 => Ok(v as u64),
                Ok(_) => self.fail("is negative or too large", REMEDY),
                Err(e) => self.fail(e, REMEDY),
            };
        }
        if let Some(hex) = t.strip_prefix("0x").or_else(|| t.strip_prefix("0X")) {
            return u64::from_str_radix(hex, 16)
                .or_else(|_| self.fail("is not a hexadecimal number", REMEDY));
        }
        let end = t.find(|c: char| !c.is_ascii_digit()).unwrap_or(t.len());
        let (digits, suffix) = t.split_at(end);
        let (Ok(n), Some(f)) = (digits.parse::<u64>(), byte_multiplier(suffix, self.kb_base)) else {
            return self.fail(format!("'{t}' is not a size"), REMEDY);
        };
        match n.checked_mul(f).filter(|b| *b < i64::MAX as u64) {
            Some(b) => Ok(b),
            None => self.fail(format!("'{t}' is too large"), REMEDY),
        }
    }

    /// A size, or a share of the file such as `20%`.
    pub fn amount(&self) -> Result<BytesOrPercent, FioError> {
        match self.text.trim().strip_suffix('%') {
            None => Ok(BytesOrPercent::Bytes(self.size(self.text)?)),
            Some(p) => match p.trim().parse::<u32>() {
                Ok(p) if p <= 100 => Ok(BytesOrPercent::Percent(p)),
                _ => self.fail("is not a share from 0% to 100%", "Write for example 50%."),
            },
        }
    }

    /// Microseconds; a bare number is in `bare_us` microseconds.
    pub fn time_us(&self, text: &str, bare_us: u64) -> Result<u64, FioError> {
        const REMEDY: &str = "Write seconds, or a number with us, ms, s, m, h or d, for example 30s.";
        let t = text.trim();
        if t.starts_with('(') {
            return match arith::evaluate(t, self.kb_base, true) {
                // Suffixes make microseconds; without any the result is in the key's own unit.
                Ok(v) if v >= 0.0 && v * bare_us as f64 <= MAX_TIME_US as f64 => {
                    let suffixed = t.chars().any(|c| c.is_ascii_alphabetic());
                    Ok(if suffixed { v as u64 } else { (v * bare_us as f64) as u64 })
                }
                Ok(_) => self.fail("is negative or too large", REMEDY),
                Err(e) => self.fail(e, REMEDY),
            };
        }
        let end = t.find(|c: char| !c.is_ascii_digit()).unwrap_or(t.len());
        let (digits, suffix) = t.split_at(end);
        let factor = if suffix.trim().is_empty() { Some(bare_us) } else { time_multiplier_us(suffix) };
        let (Ok(n), Some(f)) = (digits.parse::<u64>(), factor) else {
            return self.fail(format!("'{t}' is not a time"), REMEDY);
        };
        match n.checked_mul(f).filter(|us| *us <= MAX_TIME_US) {
            Some(us) => Ok(us),
            None => self.fail(format!("'{t}' is too long"), "Write at most a hundred years."),
        }
    }

    /// A whole number within bounds (fio reads suffixes here as well).
    pub fn int(&self, min: u64, max: u64) -> Result<u64, FioError> {
        let n = self.size(self.text)?;
        if n < min || n > max {
            return self.fail(format!("is not between {min} and {max}"), "Choose a number in between.");
        }
        Ok(n)
    }

    pub fn u32(&self, min: u64) -> Result<u32, FioError> {
        Ok(self.int(min, u64::from(u32::MAX))? as u32)
    }

    /// A flag: alone it is true.
    pub fn flag(&self) -> Result<bool, FioError> {
        match self.text.trim() {
            "" => Ok(true),
            t => match t.parse::<i64>() {
                Ok(n) => Ok(n != 0),
                Err(_) => self.fail("is neither 0 nor 1", "Write 0 or 1."),
            },
        }
    }

    /// `a,b,c` for read, write and trim: what is missing at the end repeats the last, what is
    /// empty in the list stays as it is (`None`).
    pub fn directions<T: Copy>(
        &self,
        read: impl Fn(&Self, &str) -> Result<T, FioError>,
    ) -> Result<[Option<T>; 2], FioError> {
        let parts: Vec<&str> = self.text.split(',').map(str::trim).collect();
        if parts.len() > 3 || parts.iter().all(|p| p.is_empty()) {
            return self.fail(
                "is not a value, or a list for reads, writes and trims",
                "Write one value, or for example 4k,8k.",
            );
        }
        let one = |p: &str| if p.is_empty() { Ok(None) } else { read(self, p).map(Some) };
        let first = one(parts[0])?;
        let second = match parts.get(1) {
            Some(p) => one(p)?,
            None => first,
        };
        if let Some(p) = parts.get(2) {
            one(p)?;
        }
        Ok([first, second])
    }

    /// One of fixed words.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, FioError> {
        let t = self.text.trim();
        match words.iter().find(|(w, _)| *w == t) {
            Some((_, v)) => Ok(*v),
            None => {
                let list: Vec<&str> = words.iter().map(|(w, _)| *w).collect();
                self.fail("is not supported", format!("Supported here: {}.", list.join(", ")))
            }
        }
    }

    /// Numbers separated by colons.
    pub fn float_list(&self, min: f64, max: f64) -> Result<Vec<f64>, FioError> {
        let list: Option<Vec<f64>> = self
            .text
            .split(':')
            .map(|p| p.trim().parse::<f64>().ok().filter(|v| (min..=max).contains(v)))
            .collect();
        match list {
            Some(l) => Ok(l),
            None => self.fail(
                format!("is not a list of numbers from {min} to {max}"),
                "Separate them by colons: 50:95:99.9.",
            ),
        }
    }
}
