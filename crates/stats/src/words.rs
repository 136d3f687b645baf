//! Numbers as people read them: digits that the interval supports, rates with their unit, spans of time.

use plimsoll_model::Estimate;
use plimsoll_model::units::significant;

/// `1,004 ± 6`, or `160 (80 to 290)` where the sides differ: the half width to two digits at most, the value to the same place. Just the value when it is exact.
pub fn plus_minus(e: &Estimate) -> String {
    let hw = e.half_width();
    if !e.value.is_finite() {
        return "n/a".into();
    }
    if hw.is_finite() && is_boundless(e) {
        return format!("{} (interval unknown)", significant(e.value, 3));
    }
    // One that is but the rounding of its arithmetic is none.
    if !(hw.is_finite() && hw > 1e-9 * e.value.abs()) {
        return significant(e.value, 4);
    }
    // One digit of the half width, two when the first is a 1 or 2.
    let step_of = |width: f64| {
        let first = 10f64.powf(width.log10().floor());
        if width / first < 3.0 { first / 10.0 } else { first }
    };
    // However wide the interval is, the value keeps two digits: with one, the same rate is another one in each unit.
    let two_digits =
        if e.value == 0.0 { f64::INFINITY } else { 10f64.powf(e.value.abs().log10().floor() - 1.0) };
    let decimals = |step: f64| (-step.log10().floor()).max(0.0) as i32;
    let (below, above) = (e.value - e.low, e.high - e.value);
    if below.min(above) > 0.0 && below.max(above) > 1.5 * below.min(above) {
        // As sharp as its shorter side.
        let step = step_of(below.min(above)).min(two_digits);
        let at = |x: f64| fixed(to_step(x, step), decimals(step));
        return format!("{} ({} to {})", at(e.value), at(e.low), at(e.high));
    }
    let step = step_of(hw);
    // A half width that is whole but for the last bit stays as it is.
    let hw = (hw / step - 1e-9).ceil() * step;
    let of_value = step.min(two_digits);
    let value = to_step(e.value, of_value);
    format!("{} ± {}", fixed(value, decimals(of_value)), fixed(hw, decimals(step)))
}

/// An interval that reaches a thousand times beyond the value says nothing, and its digits fill a line. (A choice.)
pub fn is_boundless(e: &Estimate) -> bool {
    const BEYOND: f64 = 1e3;
    e.value != 0.0 && (e.high - e.value).max(e.value - e.low) > BEYOND * e.value.abs()
}

/// Rounded to a power of ten, as the tables of a report round: 40.15 to 0.1 is 40.2, though 40.15 / 0.1 is below 401.5.
fn to_step(x: f64, step: f64) -> f64 {
    let places = -step.log10().round() as i32;
    let scale = 10f64.powi(places.abs());
    if places > 0 { (x * scale).round() / scale } else { (x / scale).round() * scale }
}

/// With this many decimals, and thousands separated.
pub fn fixed(x: f64, decimals: i32) -> String {
    let text = format!("{:.*}", decimals.max(0) as usize, x.abs());
    let (whole, rest) =
        text.split_once('.').map_or((text.as_str(), String::new()), |(w, r)| (w, format!(".{r}")));
    let mut out = String::from(if x < 0.0 { "-" } else { "" });
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out + &rest
}

/// Rounded to this many significant digits, thousands separated: for bounds that claim no more.
pub fn about(x: f64, digits: i32) -> String {
    if !x.is_finite() || x == 0.0 {
        return significant(x, digits);
    }
    let step = 10f64.powi(x.abs().log10().floor() as i32 + 1 - digits);
    significant((x / step).round() * step, digits)
}

/// A share, 0 to 1, to two digits: `2.0 %`, `99.85 %`. What is not all is never rounded to all, nor what is something to nothing.
pub fn share(x: f64) -> String {
    const DIGITS: usize = 4;
    if !(0.99..1.0).contains(&x) {
        return format!("{} %", significant(100.0 * x, 2));
    }
    // So many digits as tell it from all.
    let decimals = (1.0 - (100.0 * (1.0 - x)).log10().floor()).clamp(0.0, DIGITS as f64) as usize;
    match format!("{:.decimals$} %", 100.0 * x) {
        all if all.starts_with("100") => format!("over 99.{} %", "9".repeat(DIGITS)),
        text => text,
    }
}

/// Operations per second.
pub fn ops_rate(e: &Estimate) -> String {
    format!("{} op/s", plus_minus(e))
}

/// Bytes per second in decimal units that suit the value.
pub fn bytes_rate(e: &Estimate) -> String {
    let (unit, f) = bytes_unit(e.value);
    format!("{} {unit}/s", plus_minus(&e.scaled(1.0 / f)))
}

/// A number of bytes in decimal units.
pub fn bytes(e: &Estimate) -> String {
    let (unit, f) = bytes_unit(e.value);
    format!("{} {unit}", plus_minus(&e.scaled(1.0 / f)))
}

/// Largest decimal unit that leaves a number of one or more.
pub fn bytes_unit(x: f64) -> (&'static str, f64) {
    [("GB", 1e9), ("MB", 1e6), ("KB", 1e3)].into_iter().find(|(_, f)| x.abs() >= *f).unwrap_or(("B", 1.0))
}

/// `45 s`, `4 min`, `2 h`.
pub fn span(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "an unlimited time".into();
    }
    if seconds < 120.0 {
        format!("{} s", significant(seconds, if seconds < 10.0 { 2 } else { 3 }))
    } else if seconds < 7200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_interval() {
        for (value, hw, want) in [
            (1004.3, 5.2, "1,004 ± 6"),
            (1004.3, 14.2, "1,004 ± 15"),
            (60_012.0, 991.0, "60,000 ± 1,000"),
            (0.012_34, 0.000_5, "0.0123 ± 0.0005"),
            (210.4, 3.7, "210 ± 4"),
            // One rate in three units.
            (35_793.0, 35_600.0, "36,000 ± 40,000"),
            (146.61, 145.8, "150 ± 150"),
            (139.82, 139.1, "140 ± 140"),
            (99.4, 30.2, "99 ± 40"),
            (0.21, 3.0, "0.21 ± 3"),
            (40.15, 0.31, "40.2 ± 0.4"),
            (800.0, 0.0, "800.0"),
            (800.0, f64::INFINITY, "800.0"),
        ] {
            assert_eq!(plus_minus(&Estimate::symmetric(value, hw, 9.0)), want);
        }
        let lopsided = |value: f64, low: f64, high: f64| {
            plus_minus(&Estimate { low, high, ..Estimate::symmetric(value, 1.0, 3.0) })
        };
        assert_eq!(lopsided(156.0, 84.0, 286.0), "160 (80 to 290)");
        assert_eq!(lopsided(0.4, 0.1, 1.4), "0.40 (0.10 to 1.40)");
        assert_eq!(lopsided(400.0, 40.0, 4100.0), "400 (40 to 4,100)");
        assert_eq!(plus_minus(&Estimate::exact(f64::NAN)), "n/a");
        assert_eq!(lopsided(8.0, 1e-117, 1e118), "8.00 (interval unknown)");
        assert_eq!((about(602_400.0, 2), about(0.0123, 2)), ("600,000".into(), "0.012".into()));
    }

    #[test]
    fn what_is_not_all_is_not_said_to_be_all() {
        let cases = [
            (0.0, "0 %"),
            (1e-7, "0.000010 %"),
            (0.02, "2.0 %"),
            (0.314, "31 %"),
            (0.98, "98 %"),
            (0.9985, "99.85 %"),
            (0.9996, "99.960 %"),
            (1.0 - 1e-9, "over 99.9999 %"),
            (1.0, "100 %"),
        ];
        for (x, want) in cases {
            assert_eq!(share(x), want, "{x}");
        }
    }

    #[test]
    fn units() {
        assert_eq!(bytes_rate(&Estimate::symmetric(210e6, 4e6, 5.0)), "210 ± 4 MB/s");
        assert_eq!(bytes(&Estimate::exact(1500.0)), "1.500 KB");
        assert_eq!(
            (span(1.5), span(45.0), span(240.0), span(10_800.0)),
            ("1.5 s".into(), "45.0 s".into(), "4 min".into(), "3.0 h".into())
        );
    }
}
