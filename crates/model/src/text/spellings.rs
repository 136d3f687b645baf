//! The spellings in which a server may repeat what it was sent: percent-encoded as a part of a URL, escaped as JSON has it, in base64.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::{LEAST_SECRET, LEFT_OUT};

/// A secret in the spellings that are looked for as they are; escapes are read instead ([`without_escaped`]).
pub(super) fn of(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned()];
    if secret.contains(' ') {
        // As a form sends it.
        all.push(secret.replace(' ', "+"));
    }
    for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
        all.push(engine.encode(secret));
        // In something longer, as USER:PASSWORD is, a third of its bytes may go before. Digits that it shares with its neighbours are
        // left away.
        for before in 0..3 {
            let bytes = [&[0; 2][..before], secret.as_bytes()].concat();
            let digits = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
            all.push(engine.encode(&bytes)[digits].to_owned());
        }
    }
    all
}

/// Where a secret begins that goes on beyond the end of the text.
pub(super) fn cut_off(text: &str, secret: &str) -> Option<usize> {
    let begin = (LEAST_SECRET..secret.len()).find_map(|n| secret.get(..n))?;
    text.match_indices(begin).map(|(at, _)| at).find(|at| secret.starts_with(&text[*at..]))
}

/// The text without the secrets that are in it behind escapes; `None`: there are none.
pub(super) fn without_escaped(text: &str, secrets: &[String]) -> Option<String> {
    let (plain, from) = unescaped(text)?;
    let end = plain.trim_end_matches('\u{2026}');
    // An escape may be cut off, too: `%2`, `\u00`.
    let short = end.rfind(['%', '\\']).filter(|at| end.len() - at < 6).map_or(end, |at| &end[..at]);
    let mut gone: Vec<Range<usize>> = Vec::new();
    for secret in secrets {
        gone.extend(plain.match_indices(secret.as_str()).map(|(at, found)| at..at + found.len()));
        let cut = [end, short].into_iter().find_map(|text| cut_off(text, secret));
        gone.extend(cut.map(|at| at..plain.len()));
    }
    if gone.is_empty() {
        return None;
    }
    gone.sort_by_key(|at| at.start);
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for at in gone {
        if at.start >= done {
            out.push_str(&text[from[done]..from[at.start]]);
            out.push_str(LEFT_OUT);
        }
        done = done.max(at.end);
    }
    out.push_str(&text[from[done]..]);
    Some(out)
}

/// The text as it reads without its escapes, and for each byte of it, and its end, where it comes from. `None`: it has no escapes.
fn unescaped(text: &str) -> Option<(String, Vec<usize>)> {
    if !text.contains(['%', '\\']) {
        return None;
    }
    let (mut plain, mut from) = (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let (read, length) = escape(&text[at..]).unwrap_or((c, c.len_utf8()));
        plain.push(read);
        from.resize(plain.len(), at);
        at += length;
    }
    from.push(text.len());
    Some((plain, from))
}

/// The ASCII character that an escape at the beginning of a text stands for, and the bytes of the escape.
fn escape(text: &str) -> Option<(char, usize)> {
    let hex = |digits: Range<usize>| {
        let digits = text.get(digits).filter(|d| d.bytes().all(|c| c.is_ascii_hexdigit()))?;
        u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii).map(char::from)
    };
    match text.as_bytes() {
        [b'%', ..] => Some((hex(1..3)?, 3)),
        [b'\\', b'x', ..] => Some((hex(2..4)?, 4)),
        [b'\\', b'u', b'0', b'0', ..] => Some((hex(4..6)?, 6)),
        [b'\\', c @ (b'/' | b'"' | b'\\'), ..] => Some((char::from(*c), 2)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{keep_secret, said};
    use super::*;

    /// A secret with all that its spellings change; its parts tell what is left of it.
    const SECRET: &str = "spelt/in+many=ways?>of~~it/Wx9";

    fn percent(secret: &str, bare: &str, upper: bool) -> String {
        let one = |c: char| match c {
            c if c.is_ascii_alphanumeric() || bare.contains(c) => c.to_string(),
            c if upper => format!("%{:02X}", c as u32),
            c => format!("%{:02x}", c as u32),
        };
        secret.chars().map(one).collect()
    }

    #[test]
    fn a_secret_is_left_out_in_each_of_its_spellings() {
        keep_secret(SECRET);
        assert_ne!(STANDARD_NO_PAD.encode(SECRET), URL_SAFE_NO_PAD.encode(SECRET));
        let padded = base64::engine::general_purpose::STANDARD.encode(SECRET);
        for spelt in [
            percent(SECRET, "", true),
            percent(SECRET, "", false),
            percent(SECRET, "/~", true),
            percent(SECRET, "=+?/", false),
            SECRET.replace('/', "\\/"),
            SECRET.replace('/', "\\u002f").replace('+', "\\u002B"),
            SECRET.replace('=', "\\x3d"),
            STANDARD_NO_PAD.encode(SECRET),
            URL_SAFE_NO_PAD.encode(SECRET),
            percent(&STANDARD_NO_PAD.encode(SECRET), "", true),
        ] {
            let told = said(&format!("bad token '{spelt}', 100 % of it\\n"));
            assert_eq!(told, format!("bad token '{LEFT_OUT}', 100 % of it\\n"), "{spelt}");
            // Cut off by who sent it.
            let at = spelt.len() - 9;
            let told = said(&format!("100 % of {}", &spelt[..at]));
            assert_eq!(told, format!("100 % of {LEFT_OUT}"), "{}", &spelt[..at]);
        }
        assert_eq!(said(&format!("token {padded}")).trim_end_matches('='), format!("token {LEFT_OUT}"));
        for before in ["u:", "me:", "you:"] {
            let told = said(&STANDARD_NO_PAD.encode(format!("{before}{SECRET}:x")));
            assert!(told.contains(LEFT_OUT) && told.len() < LEFT_OUT.len() + 12, "{told}");
        }
    }

    #[test]
    fn a_secret_with_spaces_is_known_as_a_form_sends_it() {
        keep_secret("a pass phrase/of four");
        assert_eq!(said("pw=a+pass+phrase%2Fof+four&x=1"), format!("pw={LEFT_OUT}&x=1"));
        assert_eq!(said("pw=a%20pass%20phrase%2fof%20four&x=1"), format!("pw={LEFT_OUT}&x=1"));
    }

    #[test]
    fn other_escapes_stay_as_they_are() {
        for text in ["100 %", "%", "%zz%2", "\\", "\\u00e4 \\u12 \\/ %C3%A4 ä%2Fß", "%25%2F"] {
            assert_eq!(without_escaped(text, &[SECRET.to_owned()]), None, "{text}");
            assert!(unescaped(text).is_some_and(|(plain, from)| plain.len() + 1 == from.len()));
        }
    }
}
