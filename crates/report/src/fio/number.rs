//! Numbers as fio's normal output writes them.

/// A number in at most `width` characters with a letter for its thousands: `33.5k`, `131Mi`, `4096`.
pub fn short(value: f64, width: usize, binary: bool, unit: &str) -> String {
    const LETTERS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let base = if binary { 1024.0 } else { 1000.0 };
    let mut v = value.max(0.0);
    let mut i = 0;
    while v.round() >= 10f64.powi(width as i32) && i + 1 < LETTERS.len() {
        v /= base;
        i += 1;
    }
    let letter = match (LETTERS[i], binary) {
        ("", _) => String::new(),
        // Binary prefixes begin with a capital K.
        ("k", true) => "Ki".into(),
        (l, true) => format!("{l}i"),
        (l, false) => l.to_owned(),
    };
    let digits = if i == 0 { format!("{v:.0}") } else { fit(v, width) };
    format!("{digits}{letter}{unit}")
}

/// As many decimals as the width leaves after the point.
fn fit(v: f64, width: usize) -> String {
    let int = format!("{:.0}", v.trunc()).len();
    let decimals = width.saturating_sub(int + 1);
    format!("{v:.decimals$}")
}

/// `131MiB`.
pub fn binary_bytes(v: f64) -> String {
    short(v, 4, true, "B")
}

/// `137MB`.
pub fn decimal_bytes(v: f64) -> String {
    short(v, 4, false, "B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_fio_writes_them() {
        assert_eq!(short(33450.27, 4, false, ""), "33.5k");
        assert_eq!(short(300.0, 4, false, ""), "300");
        assert_eq!(binary_bytes(137_012_325.0), "131MiB");
        assert_eq!(decimal_bytes(137_012_325.0), "137MB");
        assert_eq!(binary_bytes(58_265_139.0), "55.6MiB");
        assert_eq!(binary_bytes(1_290_938_018.0), "1231MiB");
        assert_eq!(binary_bytes(65536.0), "64.0KiB");
        assert_eq!(binary_bytes(4096.0), "4096B");
        assert_eq!(short(6_111_628.0, 6, false, ""), "6111.6k");
    }
}
