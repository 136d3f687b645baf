//! A figure with its bounds and what it is of; sums, products and ratios of such.

use crate::number::{Mark, PrintedNumber, evidence};
use crate::unit::{Dimension, NamedUnit, multiple, parse_unit};

/// What may have been meant by something printed, in bytes, seconds, money or whole numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantity {
    pub low: f64,
    pub value: f64,
    pub high: f64,
    pub dimension: Dimension,
}

impl Quantity {
    pub fn exact(value: f64, dimension: Dimension) -> Self {
        Self { low: value, value, high: value, dimension }
    }

    /// Something printed, with its unit; the unit is given back for messages.
    pub fn printed(text: &str) -> Option<(Self, NamedUnit)> {
        let number = PrintedNumber::parse(text, evidence(text).unwrap_or(Mark::Point))?;
        let own = number.unit.clone();
        let plain = || NamedUnit {
            name: String::new(),
            scale: 1.0,
            dimension: Dimension::ONE,
            base: crate::unit::Base::None,
            power: 0,
        };
        let (number, unit) = if own.is_empty() {
            (number, plain())
        } else if let Some(unit) = parse_unit(&own) {
            (number, unit)
        } else {
            let (factor, rest) = multiple(&own)?;
            let unit = if rest.is_empty() { plain() } else { parse_unit(rest)? };
            (number.times(factor), NamedUnit { name: rest.to_owned(), ..unit })
        };
        let (low, high) = number.own_bounds();
        let by = |v: f64| v * unit.scale;
        let quantity =
            Self { low: by(low), value: by(number.value), high: by(high), dimension: unit.dimension };
        Some((quantity, unit))
    }

    fn of(bounds: [f64; 4], value: f64, dimension: Dimension) -> Option<Self> {
        let low = bounds.into_iter().fold(f64::INFINITY, f64::min);
        let high = bounds.into_iter().fold(f64::NEG_INFINITY, f64::max);
        (value.is_finite() && low.is_finite() && high.is_finite()).then_some(Self {
            low,
            value,
            high,
            dimension,
        })
    }

    pub fn times(self, o: Self) -> Option<Self> {
        let all = [self.low * o.low, self.low * o.high, self.high * o.low, self.high * o.high];
        Self::of(all, self.value * o.value, powers(self.dimension, o.dimension, 1)?)
    }

    /// None by what may be zero.
    pub fn over(self, o: Self) -> Option<Self> {
        if o.low <= 0.0 && o.high >= 0.0 {
            return None;
        }
        let all = [self.low / o.low, self.low / o.high, self.high / o.low, self.high / o.high];
        Self::of(all, self.value / o.value, powers(self.dimension, o.dimension, -1)?)
    }

    /// None of unlike things.
    pub fn plus(self, o: Self, sign: f64) -> Option<Self> {
        let (a, b) = (sign * o.low, sign * o.high);
        let same = self.dimension == o.dimension;
        let all = [self.low + a, self.low + b, self.high + a, self.high + b];
        Self::of(all, self.value + sign * o.value, self.dimension).filter(|_| same)
    }

    /// Whether both may be the same.
    pub fn meets(self, o: Self) -> bool {
        let slack = 1e-9 * self.value.abs().max(o.value.abs());
        self.low <= o.high + slack && o.low <= self.high + slack
    }
}

fn powers(a: Dimension, b: Dimension, sign: i8) -> Option<Dimension> {
    let mut out = [0; 3];
    for (i, power) in out.iter_mut().enumerate() {
        *power = a.0[i].checked_add(b.0[i].checked_mul(sign)?)?;
    }
    Some(Dimension(out))
}
