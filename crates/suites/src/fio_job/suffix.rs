//! Suffixes of fio's numbers: sizes and times.
//!
//! fio's suffixes turn with `kb_base`: with 1024 (the default) `k` is 1024 and `ki` is 1000, with
//! 1000 it is the other way round (HOWTO, "Parameter types"). Letters are not case sensitive.

/// Factor of a size suffix (`k`, `kb`, `ki`, `kib`, ..., `p`), `None` when there is no such suffix.
pub fn byte_multiplier(suffix: &str, kb_base: u64) -> Option<u64> {
    let s = suffix.trim().to_ascii_lowercase();
    if s.is_empty() || s == "b" {
        return Some(1);
    }
    let power = match s.as_bytes()[0] {
        b'k' => 1,
        b'm' => 2,
        b'g' => 3,
        b't' => 4,
        b'p' => 5,
        _ => return None,
    };
    let other = if kb_base == 1000 { 1024u64 } else { 1000 };
    let base = match &s[1..] {
        "" | "b" => kb_base,
        "i" | "ib" => other,
        _ => return None,
    };
    base.checked_pow(power)
}

/// Microseconds of a time suffix.
pub fn time_multiplier_us(suffix: &str) -> Option<u64> {
    Some(match suffix.trim().to_ascii_lowercase().as_str() {
        "us" | "usec" => 1,
        "ms" | "msec" => 1000,
        "s" | "sec" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    })
}
