//! The two date forms of the protocol: `20130524T000000Z` for signatures, and HTTP's `Date` for clock skew.

/// Days since 1970-01-01 of a civil date (proleptic Gregorian; H. Hinnant, "chrono-compatible date algorithms").
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let month_index = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_index + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = (doy - (153 * mp + 2) / 5 + 1) as u32;
    let month = if mp < 10 { mp + 3 } else { mp - 9 } as u32;
    (yoe + era * 400 + i64::from(month <= 2), month, day)
}

fn put_digits(out: &mut [u8], mut n: u64) {
    for d in out.iter_mut().rev() {
        *d = b'0' + (n % 10) as u8;
        n /= 10;
    }
}

/// `YYYYMMDDTHHMMSSZ` of a Unix time in seconds (years 1970 to 9999).
pub fn amz_date(unix_s: u64) -> [u8; 16] {
    let (year, month, day) = civil_from_days((unix_s / 86_400) as i64);
    let second_of_day = unix_s % 86_400;
    let mut out = *b"00000000T000000Z";
    put_digits(&mut out[0..4], year as u64);
    put_digits(&mut out[4..6], u64::from(month));
    put_digits(&mut out[6..8], u64::from(day));
    put_digits(&mut out[9..11], second_of_day / 3600);
    put_digits(&mut out[11..13], second_of_day / 60 % 60);
    put_digits(&mut out[13..15], second_of_day % 60);
    out
}

const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Unix seconds of an IMF-fixdate (`Sun, 06 Nov 1994 08:49:37 GMT`, RFC 9110 section 5.6.7), the only form that
/// servers may write today; `None` for anything else.
pub fn parse_http_date(text: &[u8]) -> Option<u64> {
    let t: &[u8; 29] = text.trim_ascii().try_into().ok()?;
    let number = |a: usize, b: usize| -> Option<u64> {
        t[a..b].iter().try_fold(0u64, |n, c| c.is_ascii_digit().then(|| n * 10 + u64::from(c - b'0')))
    };
    if &t[25..] != b" GMT" || t[19] != b':' || t[22] != b':' {
        return None;
    }
    let month = MONTHS.iter().position(|m| *m == &t[8..11])? as u32 + 1;
    let (day, year) = (number(5, 7)?, number(12, 16)?);
    let (h, m, s) = (number(17, 19)?, number(20, 22)?, number(23, 25)?);
    if !(1..=31).contains(&day) || year < 1970 || h > 23 || m > 59 || s > 60 {
        return None;
    }
    let days = days_from_civil(year as i64, month, day as u32) as u64;
    Some(days * 86_400 + h * 3600 + m * 60 + s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates() {
        assert_eq!(&amz_date(1_369_353_600), b"20130524T000000Z");
        assert_eq!(&amz_date(951_827_696), b"20000229T123456Z");
        assert_eq!(parse_http_date(b"Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        for bad in [
            "",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, xx Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(bad.as_bytes()), None);
        }
    }

    proptest! {
        #[test]
        fn civil_round_trip(days in -100_000i64..3_000_000) {
            let (y, m, d) = civil_from_days(days);
            prop_assert_eq!(days_from_civil(y, m, d), days);
        }
    }
}
