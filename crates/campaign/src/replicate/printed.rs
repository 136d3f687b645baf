//! Rates as a source prints them. Their digits are kept: they say how far the number may have been rounded, and that is all that a
//! printed number says of its own uncertainty.

use plimsoll_model::Estimate;

/// A number that is called about may be off by as much as its zeros, but not by more than this share, and by the other at least.
const ABOUT: (f64, f64) = (0.01, 0.05);

/// Op/s: `469.9`, `2,462.2/s`, `≈6,000 IOPS`, `2.7-3.2`.
pub(crate) fn printed_ops(text: &str) -> Option<Estimate> {
    let (number, unit) = split(text);
    let is_known = ["", "/s", "op/s", "ops/s", "iops", "objects/s"].contains(&unit.to_lowercase().as_str());
    is_known.then(|| range(number)).flatten()
}

/// Payload, with its unit: `1.8MiB/s`, `98 MB/s`.
pub(crate) fn printed_bytes(text: &str) -> Option<Estimate> {
    let (number, unit) = split(text);
    let scale = match unit {
        "B/s" => 1.0,
        "KB/s" | "kB/s" => 1e3,
        "KiB/s" => 1024.0,
        "MB/s" => 1e6,
        "MiB/s" => 1_048_576.0,
        "GB/s" => 1e9,
        "GiB/s" => 1_073_741_824.0,
        _ => return None,
    };
    range(number).map(|e| e.scaled(scale))
}

/// The number with what stands before it, and the unit behind it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.rfind(|c: char| c.is_ascii_digit()).map_or(0, |at| at + 1);
    (text[..end].trim(), text[end..].trim())
}

fn range(text: &str) -> Option<Estimate> {
    if let Some((from, to)) = text.split_once(['-', '\u{2013}']) {
        let (from, to) = (one(from.trim())?, one(to.trim())?);
        return (from.value < to.value).then(|| Estimate {
            value: f64::midpoint(from.value, to.value),
            low: from.low,
            high: to.high,
            n_eff: f64::INFINITY,
        });
    }
    one(text)
}

fn one(text: &str) -> Option<Estimate> {
    let bare = text.trim_start_matches(['~', '\u{2248}']).trim_start();
    let is_about = bare.len() < text.len();
    let (whole, decimals) = bare.split_once('.').map_or((bare, None), |(w, d)| (w, Some(d)));
    let digits = grouped(whole)?;
    if decimals.is_some_and(|d| d.is_empty() || !d.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let value: f64 = format!("{digits}.{}", decimals.unwrap_or("0")).parse().ok()?;
    if !(value > 0.0 && value.is_finite()) {
        return None;
    }
    let mut half = 0.5 * 10f64.powi(-(decimals.map_or(0, str::len) as i32));
    if is_about {
        let zeros = if decimals.is_some() { 0 } else { digits.len() - digits.trim_end_matches('0').len() };
        let by_zeros = 0.5 * 10f64.powi(zeros as i32);
        half = half.max(by_zeros.min(ABOUT.1 * value)).max(ABOUT.0 * value);
    }
    // Rounding is no spread: there is nothing to count.
    Some(Estimate::symmetric(value, half, f64::INFINITY))
}

/// Digits; commas stand between groups of three, or nowhere.
fn grouped(text: &str) -> Option<String> {
    let groups: Vec<&str> = text.split(',').collect();
    let is_digits = |g: &&str| !g.is_empty() && g.bytes().all(|b| b.is_ascii_digit());
    let fits = groups.len() == 1 || (groups[0].len() <= 3 && groups[1..].iter().all(|g| g.len() == 3));
    // More would not be a rate that anything has.
    let all = groups.concat();
    (fits && groups.iter().all(is_digits) && all.len() <= 15).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs()
    }

    #[test]
    fn the_digits_say_how_far_a_number_was_rounded() {
        for (text, value, low, high) in [
            ("469.9", 469.9, 469.85, 469.95),
            ("2,462.2/s", 2462.2, 2462.15, 2462.25),
            ("\u{2248}10,000", 10_000.0, 9_500.0, 10_500.0),
            ("\u{2248}750 IOPS", 750.0, 742.5, 757.5),
            ("~95", 95.0, 94.05, 95.95),
            ("2.7-3.2", 2.95, 2.65, 3.25),
            ("162", 162.0, 161.5, 162.5),
        ] {
            let e = printed_ops(text).unwrap_or_else(|| panic!("{text}"));
            assert!(near(e.value, value) && near(e.low, low) && near(e.high, high), "{text}: {e:?}");
        }
        let b = printed_bytes("1.8MiB/s").unwrap();
        assert!(near(b.value, 1.8 * 1_048_576.0) && near(b.high, 1.85 * 1_048_576.0));
        assert!(near(printed_bytes("98 MB/s").unwrap().value, 98e6));
    }

    #[test]
    fn what_is_no_rate_is_none() {
        for text in [
            "",
            "fast",
            "12,34",
            "1.2.3",
            "0",
            "-4",
            "4-3",
            "1e9",
            "4 KB",
            "9999999999999999",
            "4\u{20ac}",
            "\u{2248}",
        ] {
            assert_eq!(printed_ops(text), None, "{text}");
        }
        for text in ["1.8", "1.8 MiB", "MB/s", "\u{2248}MB/s", "1 Mb/s"] {
            assert_eq!(printed_bytes(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_much(text in ".{0,40}") {
            for e in [printed_ops(&text), printed_bytes(&text)].into_iter().flatten() {
                assert!(e.low <= e.value && e.value <= e.high && e.value > 0.0);
            }
        }
    }
}
