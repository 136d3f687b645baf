//! Keys of tests: who has one may take part, and nobody else gets a byte through.

use std::fmt;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::fill;
use serde::{Deserialize, Serialize};

/// Bytes of a code that proves a key.
pub const CODE: usize = 32;
/// How a key begins as text.
const PREFIX: &str = "plimsoll-net-";

/// A key. It is printed nowhere but by [`Self::text`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NetKey([u8; CODE]);

impl fmt::Debug for NetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NetKey(..)")
    }
}

impl NetKey {
    /// One that nobody else has.
    pub fn random() -> Self {
        Self(random())
    }

    /// For the one who is to take part.
    pub fn text(&self) -> String {
        self.0.iter().fold(PREFIX.to_owned(), |text, b| text + &format!("{b:02x}"))
    }

    /// Of [`Self::text`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let hex = text.trim().strip_prefix(PREFIX).unwrap_or_default();
        let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
        let bytes: Option<Vec<u8>> = digits
            .filter(|d| d.len() == 2 * CODE)
            .map(|d| d.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect());
        let bytes = bytes.and_then(|b| <[u8; CODE]>::try_from(b).ok());
        bytes.map(Self).ok_or_else(|| {
            format!("that is no key of a network test, which is {PREFIX} and {} digits", 2 * CODE)
        })
    }

    /// Proves the key for what `parts` say together.
    pub fn code(&self, parts: &[&[u8]]) -> [u8; CODE] {
        let mut context = hmac::Context::with_key(&self.hmac());
        for part in parts {
            // Lengths are said, too: no two lists of parts are one text.
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        context.sign().as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    /// Whether `code` proves the key for these parts; takes as long for every wrong one.
    pub fn is_proved(&self, parts: &[&[u8]], code: &[u8]) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.code(parts), code).is_ok()
    }

    /// A key of its own, for one session of two that had this one.
    pub fn derived(&self, parts: &[&[u8]]) -> Self {
        Self(self.code(parts))
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

impl From<NetKey> for String {
    fn from(key: NetKey) -> Self {
        key.text()
    }
}

impl TryFrom<String> for NetKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

/// Bytes that nobody can guess.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes).expect("the system's random numbers are there");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_text_and_shows_nowhere_else() {
        let key = NetKey::random();
        assert_eq!(NetKey::parse(&format!(" {}\n", key.text())), Ok(key.clone()));
        assert_eq!(format!("{key:?}"), "NetKey(..)");
        for bad in ["", "plimsoll-net-", "plimsoll-net-zz", &key.text()[1..], &format!("{}0", key.text())] {
            assert!(NetKey::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn parts_are_told_apart() {
        let key = NetKey::random();
        assert_ne!(key.code(&[b"ab", b"c"]), key.code(&[b"a", b"bc"]));
        assert!(key.is_proved(&[b"a"], &key.code(&[b"a"])));
        assert!(!key.is_proved(&[b"a"], &NetKey::random().code(&[b"a"])) && !key.is_proved(&[b"a"], b""));
    }
}
