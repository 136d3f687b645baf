//! Text from outside (servers, object names, devices, the runs of others) and what it may do to whoever reads it.
//!
//! A terminal obeys control characters, a page reorders text at the wish of bidirectional ones, and a line end forges a line of
//! ours. They are made visible where such text comes in ([`clean`]), and kept from going out in any case ([`printable`]).

use std::borrow::Cow;
use std::sync::RwLock;

mod spellings;

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

/// Values that must not be shown, whoever says them: a server may repeat what it was sent.
static SECRETS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Shorter values are words of any text, and are not looked for.
pub(crate) const LEAST_SECRET: usize = 8;

/// From here on this value is left out of all text from outside ([`clean`], [`said`]) in this process, in any spelling that a server
/// is likely to repeat it in: percent-encoded, escaped as in JSON, in base64.
pub fn keep_secret(value: &str) {
    let mut all = SECRETS.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if value.len() >= LEAST_SECRET && !all.iter().any(|s| s == value) {
        all.extend(spellings::of(value));
        // One may be part of another: the whole goes first.
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
    }
}

/// What a signature of a request follows.
const SIGNATURE: &str = "Signature=";

/// What stands where a secret was.
pub const LEFT_OUT: &str = "(secret left out)";

/// The text without the secrets of this process and without signatures of requests. An end of the text that is the beginning of a
/// secret goes, too: it was cut off there.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    let secrets = SECRETS.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    for secret in secrets.iter() {
        if out.contains(secret.as_str()) {
            out = Cow::Owned(out.replace(secret.as_str(), LEFT_OUT));
        }
        if let Some(keep) = spellings::cut_off(out.trim_end_matches('\u{2026}'), secret) {
            out = Cow::Owned(format!("{}{LEFT_OUT}", &out[..keep]));
        }
    }
    if let Some(short) = spellings::without_escaped(&out, &secrets) {
        out = Cow::Owned(short);
    }
    if out.contains(SIGNATURE) {
        let mut parts = out.split(SIGNATURE);
        let mut short = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            short.push_str(SIGNATURE);
            let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            if rest.len() < part.len() {
                short.push_str(LEFT_OUT);
            }
            short.push_str(rest);
        }
        out = Cow::Owned(short);
    }
    out
}

/// The text with each harmful character written out: `\u{1b}`, `\n`; without secrets.
pub fn clean(text: &str) -> Cow<'_, str> {
    match without_secrets(text) {
        Cow::Borrowed(text) => visible(text),
        Cow::Owned(text) => Cow::Owned(visible(&text).into_owned()),
    }
}

fn visible(text: &str) -> Cow<'_, str> {
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
    let text = &*without_secrets(text);
    let cut = text.char_indices().nth(MOST_SAID);
    let short = cut.map_or(text, |(at, _)| &text[..at]);
    let mut out = visible(short.trim()).into_owned();
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

/// What is wrong with a TOML file, with its line and column, and without what stands there: a line may hold a secret in the wrong place.
pub fn toml_problem(text: &str, e: &toml::de::Error) -> String {
    let message = without_strings(e.message());
    let Some(at) = e.span().and_then(|s| text.get(..s.start)) else { return message };
    let line = at.matches('\n').count() + 1;
    let column = at.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("line {line}, column {column}: {message}")
}

/// `invalid type: string "abc", expected u64` without the string.
fn without_strings(message: &str) -> String {
    const BEFORE: &str = "string \"";
    let Some(at) = message.find(BEFORE) else { return message.to_owned() };
    let (head, tail) = message.split_at(at + BEFORE.len() - 2);
    let end = tail.rfind("\", expected").map_or(tail.len(), |i| i + 1);
    format!("{head}{}", &tail[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with a password in the place of a number, or under a key that is none.
    #[test]
    fn a_toml_error_names_the_place_and_shows_no_value() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[expect(dead_code, reason = "read by the parser")]
            count: u64,
        }
        let said = |text: &str| toml_problem(text, &toml::from_str::<File>(text).unwrap_err());
        let wrong = said("# one\ncount = \"hunter2, expected\"\n");
        assert_eq!(wrong, "line 2, column 9: invalid type: string, expected u64");
        let unknown = said("count = 1\npassword = \"hunter2\"\n");
        assert!(unknown.starts_with("line 2, column 1: unknown field `password`"), "{unknown}");
        assert!(!said("count = 1\nx = \"hunter2").contains("hunter2"));
        assert!(!said("count = \"a\\\"hunter2\"").contains("hunter2"));
    }

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
    fn a_secret_that_a_server_repeats_is_left_out() {
        keep_secret("session/token+of=this-test");
        keep_secret("short");
        let echo = "bad header: token=session/token+of=this-test, short, AWS4 Signature=00ffee, x";
        for shown in [said(echo), clean(echo).into_owned()] {
            assert_eq!(
                shown,
                "bad header: token=(secret left out), short, AWS4 Signature=(secret left out), x"
            );
        }
        // Cut off in its middle, by who sent it or by us.
        assert_eq!(said("token=session/token+of"), "token=(secret left out)");
        assert_eq!(said("token=session"), "token=session");
        let long = format!("{}session/token+of=this-test", "x".repeat(MOST_SAID - 10));
        assert!(!said(&long).contains("session/"), "{}", said(&long));
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
