//! Percent-encoding as SigV4 wants it: once, upper-case hex, only RFC 3986's unreserved characters left bare.
//!
//! S3 is the exception to the general SigV4 rule: paths are encoded once and never normalised, so that
//! `..`, `.` and `//` in a key stay as they are.

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// For each byte: 1 = bare in queries and paths, 2 = bare in paths only (the slash), 0 = encoded.
static CLASS: [u8; 256] = {
    let mut t = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let c = i as u8;
        if c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'_' | b'~') {
            t[i] = 1;
        } else if c == b'/' {
            t[i] = 2;
        }
        i += 1;
    }
    t
};

/// Appends `raw` as a canonical path: slashes stay.
pub fn encode_path(raw: &[u8], out: &mut Vec<u8>) {
    encode(raw, 1 | 2, out);
}

/// Appends `raw` as the name or value of a query parameter: slashes are encoded too.
pub fn encode_query(raw: &[u8], out: &mut Vec<u8>) {
    encode(raw, 1, out);
}

fn encode(raw: &[u8], bare: u8, out: &mut Vec<u8>) {
    let mut rest = raw;
    while !rest.is_empty() {
        // Keys are nearly always plain: copy the longest plain run at once.
        let plain = rest.iter().position(|&c| CLASS[c as usize] & bare == 0).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..plain]);
        let Some(&c) = rest.get(plain) else { break };
        out.extend_from_slice(&[b'%', HEX[(c >> 4) as usize], HEX[(c & 15) as usize]]);
        rest = &rest[plain + 1..];
    }
}

/// Undoes percent-encoding; `None` when an escape is broken or the result is not UTF-8. `+` stays a plus,
/// unless `plus_is_space` (S3's `encoding-type=url` answers write a space as a plus).
pub fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'%' => {
                let hex = bytes.get(i + 1..i + 3)?;
                let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
                out.push(digit(hex[0])? << 4 | digit(hex[1])?);
                i += 3;
            }
            b'+' if plus_is_space => {
                out.push(b' ');
                i += 1;
            }
            c => {
                out.push(c);
                i += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

/// Appends `n` in decimal.
pub fn push_decimal(n: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut n = n;
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Lower-case hex of 32 bytes.
pub fn hex32(bytes: &[u8; 32]) -> [u8; 64] {
    const LOWER: &[u8; 16] = b"0123456789abcdef";
    let mut out = [0u8; 64];
    for (pair, b) in out.chunks_exact_mut(2).zip(bytes) {
        pair[0] = LOWER[(b >> 4) as usize];
        pair[1] = LOWER[(b & 15) as usize];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(raw: &str) -> String {
        let mut v = Vec::new();
        encode_path(raw.as_bytes(), &mut v);
        String::from_utf8(v).unwrap()
    }

    #[test]
    fn keys_of_all_kinds() {
        assert_eq!(path("a b+c%d"), "a%20b%2Bc%25d");
        assert_eq!(path("ünï/日"), "%C3%BCn%C3%AF/%E6%97%A5");
        assert_eq!(path("../a//b/./c"), "../a//b/./c");
        assert_eq!(path("test$file.text"), "test%24file.text");
        let mut v = Vec::new();
        encode_query(b"a/b=&", &mut v);
        assert_eq!(v, b"a%2Fb%3D%26");
    }

    #[test]
    fn broken_escapes_are_refused() {
        assert_eq!(decode("a%2", false), None);
        assert_eq!(decode("a%zz", false), None);
        assert_eq!(decode("%ff", false), None);
        assert_eq!(decode("a+b", true).as_deref(), Some("a b"));
        assert_eq!(decode("a+b", false).as_deref(), Some("a+b"));
    }

    proptest! {
        #[test]
        fn encoding_is_reversible_and_plain(s in any::<String>()) {
            let p = path(&s);
            prop_assert!(p.bytes().all(|c| c == b'%' || CLASS[c as usize] != 0));
            let back = decode(&p, false);
            prop_assert_eq!(back.as_deref(), Some(s.as_str()));
        }

        #[test]
        fn decimals(n in any::<u64>()) {
            let mut v = Vec::new();
            push_decimal(n, &mut v);
            prop_assert_eq!(String::from_utf8(v).unwrap(), n.to_string());
        }
    }
}
