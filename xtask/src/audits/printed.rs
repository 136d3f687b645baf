//! How people print numbers: rounded at random, with the separators, units and marks of the places where tables are from.

/// A small generator of numbers (splitmix64): the same tables for the same seed, whatever else changes.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n` - 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.between(0.0, 1.0) < p
    }

    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Separators of a table as a whole.
#[derive(Debug, Clone, Copy)]
pub struct Locale {
    pub decimal: char,
    pub thousands: &'static str,
}

impl Locale {
    pub fn draw(dice: &mut Dice) -> Self {
        *dice.pick(&[
            Self { decimal: '.', thousands: "" },
            Self { decimal: '.', thousands: "," },
            Self { decimal: '.', thousands: "," },
            Self { decimal: '.', thousands: "\u{2009}" },
            Self { decimal: ',', thousands: "." },
            Self { decimal: ',', thousands: "\u{a0}" },
        ])
    }
}

/// How the numbers of one column are rounded.
#[derive(Debug, Clone, Copy)]
pub enum Rounding {
    Significant(i32),
    Decimals(i32),
}

impl Rounding {
    pub fn draw(dice: &mut Dice, values: &[f64]) -> Self {
        let least = values.iter().copied().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        if dice.chance(0.4) {
            return Self::Significant(2 + dice.below(4) as i32);
        }
        // Two digits are left of the least: people do not print a column of zeros.
        let needed = (1 - least.log10().floor() as i32).max(0);
        Self::Decimals(needed.max(dice.below(3) as i32))
    }

    /// The power of ten of the last digit of `value`.
    fn last(self, value: f64) -> i32 {
        match self {
            Self::Significant(n) if value > 0.0 => value.log10().floor() as i32 - n + 1,
            Self::Significant(n) => 1 - n,
            Self::Decimals(d) => -d,
        }
    }
}

/// A number as it stands in a cell, in the unit of its column.
#[derive(Debug, Clone)]
pub struct Number {
    /// What the digits say.
    pub value: f64,
    /// Half of the last digit that counts.
    pub half: f64,
    /// The power of ten of the last digit.
    pub last: i32,
}

impl Number {
    pub fn of(value: f64, rounding: Rounding) -> Self {
        let last = rounding.last(value);
        let step = 10_f64.powi(last);
        Self { value: (value / step).round() * step, half: step / 2.0, last }
    }

    /// Nominal: a size, a count.
    pub fn exact(value: f64) -> Self {
        Self { value, half: 0.0, last: 0 }
    }

    pub fn low(&self) -> f64 {
        self.value - self.half
    }

    pub fn high(&self) -> f64 {
        self.value + self.half
    }

    pub fn text(&self, locale: Locale) -> String {
        let plain = format!("{:.*}", (-self.last).max(0) as usize, self.value);
        let (whole, part) = plain.split_once('.').unwrap_or((&plain, ""));
        let mut out = String::new();
        for (i, c) in whole.chars().enumerate() {
            if i > 0 && (whole.len() - i) % 3 == 0 {
                out.push_str(locale.thousands);
            }
            out.push(c);
        }
        if !part.is_empty() {
            out.push(locale.decimal);
            out.push_str(part);
        }
        out
    }

    /// Two neighbouring digits that differ, exchanged; none where there are no two.
    pub fn transposed(&self, dice: &mut Dice) -> Option<Self> {
        let step = 10_f64.powi(self.last);
        let digits: Vec<char> = format!("{:.0}", self.value / step).chars().collect();
        let places: Vec<usize> = (1..digits.len())
            .filter(|i| digits[i - 1] != digits[*i] && (*i > 1 || digits[*i] != '0'))
            .collect();
        if places.is_empty() {
            return None;
        }
        let at = *dice.pick(&places);
        let mut digits = digits;
        digits.swap(at - 1, at);
        let value: f64 = digits.into_iter().collect::<String>().parse().ok()?;
        Some(Self { value: value * step, ..*self })
    }
}
