//! What a machine needs to join a fleet, as one line of text: where the broker is, by what it is known, whose orders count, and a
//! secret that opens the door until it expires. One token serves all machines.

use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::BusError;
use crate::key::{public_from_raw, public_to_raw};
use crate::subjects::check_name;

/// How each token begins, so that it is known when it is seen.
pub const PREFIX: &str = "plimsoll-join-";
/// Of what follows the prefix; another one is another format. The second one is of a broker that was there before.
const VERSION: u8 = 1;
const VERSION_OTHERS: u8 = 2;
const CHECK_BYTES: usize = 4;
/// A token names at most so many addresses: a machine has few, and the line has to be copied.
pub const MOST_ADDRESSES: usize = 16;

/// SHA-256 of the broker's certificate, which was made for this fleet: only who has its key is the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin(pub [u8; 32]);

impl Pin {
    /// Of a certificate in its binary form.
    pub fn of(certificate: &[u8]) -> Self {
        Self(sha256(certificate))
    }
}

/// By what a broker is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Its own certificate, which was made for this fleet: the broker is the fleet's.
    Own(Pin),
    /// A certificate that it shows, its own or its authority's, of which this is the hash. The broker is somebody else's, as it is below.
    Shown(Pin),
    /// The authorities that each machine trusts anyway.
    System,
    /// Nothing: no encryption.
    Plain,
}

impl Trust {
    /// The broker is the fleet's own, which lets in whoever has the token.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }
}

/// Opens the door to newcomers.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl std::fmt::Debug for Secret {
    /// It is shown to nobody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// What is in a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The fleet's name.
    pub fleet: String,
    /// Where the broker can be tried, `host:port`, the likeliest first.
    pub addresses: Vec<String>,
    /// By what it is known.
    pub trust: Trust,
    /// The public key of the conductor: orders that it did not sign count for nothing.
    pub conductor: String,
    /// With which one enrols.
    pub secret: Secret,
    /// Until when, in seconds since 1970.
    pub expires_s: u64,
}

impl Token {
    /// The line of text.
    pub fn text(&self) -> Result<String, BusError> {
        let mut bytes = vec![if self.trust.is_own() { VERSION } else { VERSION_OTHERS }];
        bytes.extend(self.expires_s.to_be_bytes());
        match &self.trust {
            Trust::Own(pin) => bytes.extend(pin.0),
            Trust::Shown(pin) => {
                bytes.push(1);
                bytes.extend(pin.0);
            }
            Trust::System => bytes.push(2),
            Trust::Plain => bytes.push(3),
        }
        bytes.extend(public_to_raw(&self.conductor)?);
        bytes.extend(self.secret.0);
        put_text(&mut bytes, &self.fleet);
        for address in self.addresses.iter().take(MOST_ADDRESSES) {
            put_text(&mut bytes, address);
        }
        let check = sha256(&bytes);
        bytes.extend(&check[..CHECK_BYTES]);
        Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Reads the line. Whether it has expired is another question ([`Self::check_time`]).
    pub fn parse(text: &str) -> Result<Self, BusError> {
        let Some(encoded) = text.trim().strip_prefix(PREFIX) else {
            return Err(wrong(&format!("it does not begin with {PREFIX}")));
        };
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| damaged())?;
        let (bytes, check) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or_else(damaged)?;
        if sha256(bytes)[..CHECK_BYTES] != *check {
            return Err(damaged());
        }
        match bytes.split_first() {
            Some((&version @ (VERSION | VERSION_OTHERS), rest)) => {
                Self::read(&mut Reader(rest), version == VERSION).ok_or_else(damaged)
            }
            _ => Err(BusError::refused(
                "this token was made by another version of plimsoll",
                "Use the same version on all machines",
            )),
        }
    }

    /// What the checksum covered. `None`: it ends too early, or holds what no token of ours does.
    fn read(from: &mut Reader<'_>, is_own: bool) -> Option<Self> {
        let expires_s = u64::from_be_bytes(from.array()?);
        let trust = if is_own {
            Trust::Own(Pin(from.array()?))
        } else {
            match from.array::<1>()? {
                [1] => Trust::Shown(Pin(from.array()?)),
                [2] => Trust::System,
                [3] => Trust::Plain,
                _ => return None,
            }
        };
        let conductor = public_from_raw(from.array()?);
        let secret = Secret(from.array()?);
        let fleet = from.text()?;
        check_name("fleet", &fleet).ok()?;
        let mut addresses = Vec::new();
        while !from.0.is_empty() {
            addresses.push(from.text()?);
        }
        let count = addresses.len();
        (1..=MOST_ADDRESSES).contains(&count).then_some(Self {
            fleet,
            addresses,
            trust,
            conductor,
            secret,
            expires_s,
        })
    }

    /// Refuses an expired token, by this machine's clock.
    pub fn check_time(&self, now: SystemTime) -> Result<(), BusError> {
        let now_s = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        if now_s < self.expires_s {
            return Ok(());
        }
        let ago = in_words(Duration::from_secs(now_s - self.expires_s));
        Err(BusError::refused(
            format!("the token of fleet {} expired {ago} ago, by this machine's clock", self.fleet),
            format!("Make a new one with `plimsoll fleet token --name {}`", self.fleet),
        ))
    }
}

fn wrong(why: &str) -> BusError {
    BusError::refused(format!("this is no token of a fleet: {why}"), "`plimsoll fleet up` prints one")
}

fn damaged() -> BusError {
    BusError::refused(
        "the token was cut or changed on its way",
        "Copy the whole line, from plimsoll-join- on",
    )
}

/// A duration to the unit that counts.
pub fn in_words(time: Duration) -> String {
    match time.as_secs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", (s + 30) / 60),
        s @ 7_200..172_800 => format!("{} h", (s + 1_800) / 3_600),
        s => format!("{} days", (s + 43_200) / 86_400),
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}

/// Texts here are names and addresses: 255 bytes hold them (a host's name has 253 at most).
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let part = &text.as_bytes()[..text.len().min(255)];
    bytes.push(part.len() as u8);
    bytes.extend(part);
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn text(&mut self) -> Option<String> {
        let [length] = self.array()?;
        let (text, rest) = self.0.split_at_checked(usize::from(length))?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Identity;

    fn token() -> Token {
        Token {
            fleet: "demo".into(),
            addresses: vec!["10.0.0.7:4222".into(), "127.0.0.1:4222".into()],
            trust: Trust::Own(Pin([7; 32])),
            conductor: Identity::random().public(),
            secret: Secret([9; 32]),
            expires_s: 2_000_000_000,
        }
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn it_comes_back_as_it_was() {
        let token = token();
        let text = token.text().unwrap();
        assert!(text.len() < 260, "a line that can be copied: {}", text.len());
        assert_eq!(Token::parse(&format!("  {text}\n")).unwrap(), token);
        for trust in [Trust::Shown(Pin([8; 32])), Trust::System, Trust::Plain] {
            let other = Token { trust, ..token.clone() };
            assert_eq!(Token::parse(&other.text().unwrap()).unwrap(), other);
        }
    }

    #[test]
    fn a_cut_or_changed_one_is_told_from_a_wrong_one() {
        let text = token().text().unwrap();
        for cut in PREFIX.len()..text.len() {
            let e = Token::parse(&text[..cut]).unwrap_err().to_string();
            assert!(e.contains("cut or changed"), "{e}");
        }
        let changed = text.replacen('A', "B", 1);
        assert!(changed == text || Token::parse(&changed).unwrap_err().to_string().contains("changed"));
        let e = Token::parse("hunter2").unwrap_err().to_string();
        assert!(e.contains("no token of a fleet"), "{e}");
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = vec![VERSION_OTHERS + 1, 1, 2, 3];
        bytes.extend(&sha256(&bytes.clone())[..CHECK_BYTES]);
        let e = Token::parse(&format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))).unwrap_err().to_string();
        assert!(e.contains("another version of plimsoll"), "{e}");
    }

    #[test]
    fn an_expired_one_says_since_when() {
        let token = token();
        token.check_time(at(token.expires_s - 1)).unwrap();
        let e = token.check_time(at(token.expires_s + 7_300)).unwrap_err().to_string();
        assert!(e.contains("expired 2 h ago") && e.contains("fleet token --name demo"), "{e}");
    }

    #[test]
    fn times_are_told_to_the_nearest_unit() {
        let told = [119, 121, 3_599, 43_199, 172_800].map(|s| in_words(Duration::from_secs(s)));
        assert_eq!(told, ["119 s", "2 min", "60 min", "12 h", "2 days"]);
    }

    #[test]
    fn the_secret_is_not_shown() {
        assert!(!format!("{:?}", token()).contains("9, 9"));
    }

    proptest! {
        #[test]
        fn nothing_that_is_read_panics(
            text in ".{0,300}",
            version in VERSION..=VERSION_OTHERS,
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let _ = Token::parse(&text);
            let mut bytes = [&[version][..], &bytes].concat();
            bytes.extend(&sha256(&bytes.clone())[..CHECK_BYTES]);
            if let Ok(token) = Token::parse(&format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))) {
                prop_assert_eq!(Token::parse(&token.text().unwrap()).unwrap(), token);
            }
        }
    }
}
