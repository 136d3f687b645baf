//! Text from outside (servers, object names, devices, the runs of others) and what it may do to whoever reads it.
//!
//! A terminal obeys control characters, a page reorders text at the wish of bidirectional ones, and a line end forges a line of
//! ours. They are made visible where such text comes in ([`clean`]), and kept from going out in any case ([`printable`]).

use std::borrow::Cow;

/// Characters of one message of a server that are kept: enough for any sentence, and no page of it.
pub const MOST_SAID: usize = 600;

/// Whether a character does something else than being seen: controls (C0, DEL, C1), line and paragraph ends, marks and
/// overrides of direction, invisible ones, tags.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with each harmful character written out: `\u{1b}`, `\n`.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push(' '),
            c if is_harmful(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// What a server says, for a message: clean, and of bounded length.
pub fn said(text: &str) -> String {
    let cut = text.char_indices().nth(MOST_SAID);
    let short = cut.map_or(text, |(at, _)| &text[..at]);
    let mut out = clean(short.trim()).into_owned();
    if cut.is_some() {
        out.push('\u{2026}');
    }
    out
}

/// Last filter before a terminal or file: all harmful characters but line ends and tabs become U+FFFD. `styled`: our own
/// colours (`ESC [ digits m`) pass.
pub fn printable(text: &str, styled: bool) -> Cow<'_, str> {
    let stays = |c: char| !is_harmful(c) || matches!(c, '\n' | '\t');
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let style = if styled { style_length(rest) } else { 0 };
        let length = if style > 0 { style } else { c.len_utf8() };
        match style > 0 || stays(c) {
            true => out.push_str(&rest[..length]),
            // A carriage return before a line end is a row's end in CSV.
            false if rest.starts_with("\r\n") => out.push('\r'),
            false => out.push('\u{fffd}'),
        }
        rest = &rest[length..];
    }
    Cow::Owned(out)
}

/// Bytes of a colour at the beginning of a text.
fn style_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let digits = rest.bytes().take_while(|c| c.is_ascii_digit() || *c == b';').count();
    if rest.as_bytes().get(digits) == Some(&b'm') { digits + 3 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        for (text, shown) in [
            ("plain \u{e4}\u{4e2d}", "plain \u{e4}\u{4e2d}"),
            ("\u{1b}[2J\u{1b}]0;owned\u{7}", "\\u{1b}[2J\\u{1b}]0;owned\\u{7}"),
            ("a\nVALID\r", "a\\nVALID\\r"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("gpj.\u{202e}exe", "gpj.\\u{202e}exe"),
            ("\u{2066}x\u{2069}\u{feff}\u{2028}", "\\u{2066}x\\u{2069}\\u{feff}\\u{2028}"),
            ("a\tb\u{7f}", "a b\\u{7f}"),
        ] {
            assert_eq!(clean(text), shown);
            assert!(!clean(text).contains(is_harmful));
        }
    }

    #[test]
    fn a_page_of_words_becomes_a_sentence() {
        let long = "\u{1b}".repeat(100_000);
        assert!(said(&long).len() < 10 * MOST_SAID && said(&long).ends_with('\u{2026}'));
        assert_eq!(said("  short \n"), "short");
    }

    #[test]
    fn only_our_own_colours_pass() {
        let text = "\u{1b}[1;31mred\u{1b}[0m\n\u{1b}[2J\u{9b}x\u{202e}";
        assert_eq!(printable(text, true), "\u{1b}[1;31mred\u{1b}[0m\n\u{fffd}[2J\u{fffd}x\u{fffd}");
        assert_eq!(printable("\u{1b}[1mx", false), "\u{fffd}[1mx");
        assert_eq!(printable("a,b\r\nc\rd", false), "a,b\r\nc\u{fffd}d");
    }
}
