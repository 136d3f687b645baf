//! Numbers as people should read them: no more digits than the interval carries.

use plimsoll_model::Estimate;
use plimsoll_model::units::{format_size, significant};

/// 2^20 bytes.
pub const MIB: f64 = 1_048_576.0;
/// 10^6 bytes.
pub const MB: f64 = 1e6;

/// Shown where there is no number; a finding says why.
pub const MISSING: &str = "n/a";

/// `1,004 ± 6`; `205 (190 to 222)` when the interval is lopsided; `800` when the value is exact.
///
/// The half width keeps one significant digit (two when it begins with 1 or 2) and is rounded up; the value ends at
/// the same place. The verdict's sentences follow the same rule (`plimsoll_stats::words`), so that they agree.
pub fn estimate(e: &Estimate) -> String {
    let half = e.half_width();
    if !e.value.is_finite() {
        return MISSING.into();
    }
    if !half.is_finite() || half < 0.0 || plimsoll_stats::words::is_boundless(e) {
        return format!("{} (interval unknown)", significant(e.value, 3));
    }
    if is_exact(e) {
        return exact(e.value);
    }
    let (below, above) = (e.value - e.low, e.high - e.value);
    let decimals = decimals(e);
    if below.max(above) > 1.5 * below.min(above) {
        return format!("{} ({} to {})", at(e.value, decimals), at(e.low, decimals), at(e.high, decimals));
    }
    let of_half = decimals_for(half);
    format!("{} ± {}", at(e.value, decimals), at(up(half, of_half), of_half))
}

/// The same of a difference, which says by its interval whether it is one: where rounding would let that reach zero, it has more digits.
pub fn difference(e: &Estimate) -> String {
    let (text, half, off) = (estimate(e), e.half_width(), e.value.abs());
    if !text.contains('±') || half >= off {
        return text;
    }
    let first = decimals_for(half);
    let shown = (first..first + 4).find(|d| up(half, *d) < up(off, *d)).unwrap_or(first);
    let decimals = decimals(e).max(shown);
    format!("{} ± {}", at(e.value, decimals), at(up(half, shown), shown))
}

/// `1,234.50`: to the cent.
pub fn cents(x: f64) -> String {
    at(x, 2)
}

/// [`MISSING`] where there is none.
pub fn estimate_or_missing(e: Option<&Estimate>) -> String {
    e.map_or_else(|| MISSING.into(), estimate)
}

/// Only the value, with the digits that its interval carries.
pub fn value(e: &Estimate) -> String {
    let half = e.half_width();
    if !is_exact(e) && half > 0.0 && half.is_finite() && e.value.is_finite() {
        at(e.value, decimals(e))
    } else {
        exact(e.value)
    }
}

/// No interval, or one that is but the rounding of its arithmetic.
fn is_exact(e: &Estimate) -> bool {
    e.half_width().abs() <= 1e-9 * e.value.abs()
}

/// A count or a configured limit: whole if it is.
fn exact(x: f64) -> String {
    if x.is_finite() && x.fract() == 0.0 && x.abs() < 1e15 { at(x, 0) } else { significant(x, 4) }
}

/// The value as the tables of seed 000 have it: one decimal, whatever the interval; groups of thousands.
pub fn tenth(x: f64) -> String {
    if x.is_finite() { at(x, 1) } else { MISSING.into() }
}

/// Place of the value's last digit. A lopsided interval is as sharp as its shorter side, and one wider than the
/// value itself still leaves the value two digits: with one, the same rate is another one in each unit.
fn decimals(e: &Estimate) -> i32 {
    let (below, above) = (e.value - e.low, e.high - e.value);
    let lopsided = below.max(above) > 1.5 * below.min(above);
    let sharp = if lopsided && below.min(above) > 0.0 { below.min(above) } else { e.half_width() };
    let second = if e.value == 0.0 { i32::MIN } else { 1 - e.value.abs().log10().floor() as i32 };
    decimals_for(sharp).max(second)
}

/// Place of the last digit: positive for decimals, negative for tens and hundreds.
fn decimals_for(half: f64) -> i32 {
    let exponent = half.log10().floor();
    let leading = half / 10f64.powf(exponent);
    let digits = if leading < 3.0 { 2 } else { 1 };
    digits - 1 - exponent as i32
}

/// Rounded up: an interval is never made narrower than it is. What is whole but for the last bit stays.
fn up(x: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (x * scale - 1e-9).ceil() / scale
}

fn at(x: f64, decimals: i32) -> String {
    let scale = 10f64.powi(decimals);
    let rounded = (x * scale).round() / scale;
    group(&format!("{rounded:.*}", decimals.clamp(0, 9) as usize))
}

fn group(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |r| ("-", r));
    let (int, frac) = rest.split_once('.').map_or((rest, None), |(i, f)| (i, Some(f)));
    let mut out = String::from(sign);
    for (i, c) in int.chars().enumerate() {
        if i > 0 && (int.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    if let Some(f) = frac {
        out.push('.');
        out.push_str(f);
    }
    // A rounded minus zero is zero.
    if out.chars().all(|c| matches!(c, '-' | '0' | '.' | ',')) {
        out.trim_start_matches('-').into()
    } else {
        out
    }
}

/// With a comma between thousands.
pub fn count(n: u64) -> String {
    group(&n.to_string())
}

/// `64 KB`, `4 KiB`: the shortest exact form, with a space.
pub fn size(bytes: u64) -> String {
    let text = format_size(bytes);
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    format!("{} {}", group(&text[..unit]), &text[unit..])
}

/// As [`size`], but in powers of 1000 where that is exact and `decimal` says that its neighbours are written so:
/// 512,000 bytes are 512 KB beside 64 KB, though they are 500 KiB as well.
pub fn size_among(bytes: u64, decimal: bool) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")];
    let unit = UNITS.iter().find(|(f, _)| decimal && bytes > 0 && bytes.is_multiple_of(*f));
    unit.map_or_else(|| size(bytes), |(f, unit)| format!("{} {unit}", count(bytes / f)))
}

/// Whether these sizes are best written in powers of 1000: one of them at least has no binary form.
pub fn is_decimal(sizes: impl IntoIterator<Item = u64>) -> bool {
    sizes.into_iter().any(|s| s >= 1000 && s.is_multiple_of(1000) && !s.is_multiple_of(1024))
}

/// An estimate of a size: `210 KB (195 to 240)`. Decimal, as the verdict's sentences have it.
pub fn size_estimate(e: &Estimate) -> String {
    let (unit, factor) = plimsoll_stats::words::bytes_unit(e.value);
    let text = estimate(&e.scaled(1.0 / factor));
    match text.split_once(" (") {
        Some((v, rest)) => format!("{v} {unit} ({rest}"),
        None => format!("{text} {unit}"),
    }
}

/// In seconds, minutes or hours: what has two or three digits.
pub fn seconds(s: f64) -> String {
    match s {
        s if !s.is_finite() => MISSING.into(),
        s if s >= 5400.0 => format!("{} h", significant(s / 3600.0, 3)),
        s if s >= 300.0 => format!("{} min", significant(s / 60.0, 3)),
        0.0 => "0 s".into(),
        s if s >= 0.1 => format!("{} s", at(s, 1)),
        s => format!("{} s", significant(s, 2)),
    }
}

/// The share of attempts that were refused, and how many these were, where that was counted.
pub fn refused(share: f64, ops: u64) -> String {
    match ops {
        _ if share <= 0.0 => String::new(),
        0 => percent(share),
        n => format!("{} ({})", percent(share), count(n)),
    }
}

/// Of a fraction: 0.05 is 5 %.
pub fn percent(fraction: f64) -> String {
    match fraction * 100.0 {
        p if !p.is_finite() => MISSING.into(),
        0.0 => "0 %".into(),
        p if p.abs() < 0.01 => "<0.01 %".into(),
        p if p.abs() < 10.0 => format!("{} %", significant(p, 2)),
        // What is not all is not rounded to it.
        p if p < 100.0 && p > 99.99 => ">99.99 %".into(),
        p if (99.5..100.0).contains(&p) => format!("{} %", significant(p, 4)),
        p => format!("{p:.0} %"),
    }
}

/// Four significant digits: more than a screen shows.
pub fn round4(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return 0.0;
    }
    let digits = 3 - x.abs().log10().floor() as i32;
    if digits > 0 {
        let scale = 10f64.powi(digits);
        (x * scale).round() / scale
    } else {
        let scale = 10f64.powi(-digits);
        (x / scale).round() * scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_come_from_the_interval() {
        assert_eq!(estimate(&Estimate::symmetric(1004.4, 6.2, 25.0)), "1,004 ± 7");
        assert_eq!(estimate(&Estimate::symmetric(60_123.0, 1_040.0, 5.0)), "60,100 ± 1,100");
        assert_eq!(estimate(&Estimate::symmetric(0.012345, 0.0004, 5.0)), "0.0123 ± 0.0004");
        assert_eq!(estimate(&Estimate::symmetric(99.96, 0.14, 5.0)), "99.96 ± 0.14");
        assert_eq!(estimate(&Estimate::exact(800.0)), "800");
        assert_eq!(
            estimate(&Estimate { value: 205.0, low: 190.0, high: 240.0, n_eff: 9.0 }),
            "205 (190 to 240)"
        );
        assert_eq!(
            estimate(&Estimate { value: 5.0, low: f64::NAN, high: 1.0, n_eff: 1.0 }),
            "5.00 (interval unknown)"
        );
        assert_eq!(estimate(&Estimate::symmetric(-0.2, 3.0, 5.0)), "-0.20 ± 3");
    }

    /// "+4.7 ± 5 points: higher" contradicts itself.
    #[test]
    fn a_difference_that_is_one_is_not_rounded_to_none() {
        assert_eq!(difference(&Estimate::symmetric(4.7, 4.42, 5.0)), "4.7 ± 4.5");
        assert_eq!(difference(&Estimate::symmetric(-4.7, 4.6, 5.0)), "-4.7 ± 4.6");
        assert_eq!(difference(&Estimate::symmetric(2.2, 3.4, 5.0)), "2.2 ± 4");
        assert_eq!(difference(&Estimate::symmetric(41.5, 2.6, 5.0)), "41.5 ± 2.6");
        assert_eq!(difference(&Estimate::exact(5.0)), "5");
    }

    #[test]
    fn a_very_uncertain_value_is_not_nothing() {
        let wide = Estimate { value: 3021.0, low: 588.0, high: 15_401.0, n_eff: 2.0 };
        assert_eq!(estimate(&wide), "3,000 (600 to 15,400)");
        assert_eq!(estimate(&Estimate::symmetric(21.0, 300.0, 2.0)), "21 ± 300");
        // Student's t of two repeats that differ has ends beyond all use: 118 digits were printed of one.
        let two = Estimate { value: 8.0, low: 1e-117, high: 1e118, n_eff: 2.0 };
        assert_eq!(estimate(&two), "8.00 (interval unknown)");
    }

    #[test]
    fn tables_and_sentences_write_the_same() {
        for (value, half) in [
            (1004.3, 5.2),
            (7980.6, 29.4),
            (60_012.0, 991.0),
            (0.01234, 0.0005),
            (510.84, 1.97),
            (99.0, 30.0),
            (35_793.0, 35_600.0),
            (139.82, 139.1),
            (0.21, 3.0),
        ] {
            let e = Estimate::symmetric(value, half, 9.0);
            assert_eq!(estimate(&e), plimsoll_stats::words::plus_minus(&e));
        }
    }

    #[test]
    fn sizes_and_shares() {
        assert_eq!(size(4000), "4 KB");
        assert_eq!(size(1_000_000), "1 MB");
        assert_eq!(size(65_536), "64 KiB");
        assert_eq!(
            (size_among(512_000, false), size_among(512_000, true)),
            ("512 KB".into(), "512 KB".into())
        );
        assert!(is_decimal([4000, 512_000]) && !is_decimal([512_000, 4096]));
        let knee = Estimate { value: 209_900.0, low: 194_600.0, high: 240_000.0, n_eff: 8.0 };
        assert_eq!(size_estimate(&knee), "210 KB (195 to 240)");
        assert_eq!(percent(0.31), "31 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.00001), "<0.01 %");
        assert_eq!(
            (percent(0.994), percent(0.9985), percent(0.99999)),
            ("99 %".into(), "99.85 %".into(), ">99.99 %".into())
        );
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(seconds(28.0), "28.0 s");
        assert_eq!(seconds(1200.0), "20.0 min");
        assert_eq!(tenth(2462.21), "2,462.2");
    }

    proptest! {
        #[test]
        fn never_panics_and_is_never_empty(v in prop::num::f64::ANY, lo in prop::num::f64::ANY, hi in prop::num::f64::ANY) {
            let e = Estimate { value: v, low: lo, high: hi, n_eff: 3.0 };
            prop_assert!(!estimate(&e).is_empty());
            prop_assert!(!value(&e).is_empty());
            prop_assert!(!size_estimate(&e).is_empty());
            prop_assert!(!seconds(v).is_empty());
            prop_assert!(!percent(v).is_empty());
        }

        #[test]
        fn what_is_shown_lies_within_the_interval(v in 1e-3f64..1e9, r in 1e-4f64..0.5) {
            let e = Estimate::symmetric(v, v * r, 10.0);
            let shown: f64 = value(&e).replace(',', "").parse().unwrap();
            prop_assert!((shown - v).abs() <= e.half_width() * 0.5 + 1e-9 * v, "{shown} for {v}");
        }

        #[test]
        fn four_digits_are_close_and_short(x in 1e-9f64..1e15) {
            let r = round4(x);
            prop_assert!((r / x - 1.0).abs() <= 5.1e-4, "{x} became {r}");
        }
    }
}
