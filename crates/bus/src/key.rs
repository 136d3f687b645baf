//! Who someone is: an Ed25519 key in the broker's own form (nkey). The broker knows its clients by their public halves; orders are
//! signed with the conductor's.

use nkeys::{KeyPair, KeyPairType};

use crate::BusError;

/// A key pair of one agent, conductor or keeper.
pub struct Identity {
    pair: KeyPair,
    seed: String,
}

impl std::fmt::Debug for Identity {
    /// The private half is shown to nobody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Identity").field(&self.public()).finish()
    }
}

impl Identity {
    /// A new one, from the kernel's randomness.
    pub fn random() -> Self {
        let pair = KeyPair::new_user();
        // A pair that was made with its private half has a seed.
        let seed = pair.seed().expect("a new pair has its private half");
        Self { pair, seed }
    }

    /// The one whose private half was kept as [`Self::seed`].
    pub fn from_seed(seed: &str) -> Result<Self, BusError> {
        let pair = KeyPair::from_seed(seed.trim()).map_err(|e| {
            BusError::refused(format!("a key cannot be read: {e}"), "Start the fleet again to make new keys")
        })?;
        Ok(Self { pair, seed: seed.trim().to_owned() })
    }

    /// The one that these 32 secret bytes make: whoever knows them comes to the same.
    pub fn from_secret(secret: [u8; 32]) -> Result<Self, BusError> {
        let unusable = |_| BusError::refused("no key can be made of the secret", "Start the fleet again");
        let pair = KeyPair::new_from_raw(KeyPairType::User, secret).map_err(unusable)?;
        let seed = pair.seed().map_err(unusable)?;
        Ok(Self { pair, seed })
    }

    /// The private half, as text. It belongs into files of mode 0600 only.
    pub fn seed(&self) -> &str {
        &self.seed
    }

    /// The public half, as text (`U…`).
    pub fn public(&self) -> String {
        self.pair.public_key()
    }

    /// Signs a message: 64 bytes.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        // It fails for public halves alone only.
        self.pair.sign(message).expect("an identity has its private half")
    }
}

/// Whether the holder of `public` signed exactly this.
pub fn signed_by(public: &str, message: &[u8], signature: &[u8]) -> bool {
    KeyPair::from_public_key(public).is_ok_and(|key| key.verify(message, signature).is_ok())
}

/// The 32 bytes of a user's public key.
pub fn public_to_raw(public: &str) -> Result<[u8; 32], BusError> {
    match nkeys::from_public_key(public) {
        Ok((_, raw)) => Ok(raw),
        Err(e) => {
            Err(BusError::refused(format!("{public:?} is no public key: {e}"), "Start the fleet again"))
        }
    }
}

/// A user's public key from its 32 bytes, as the broker writes it: a byte for its kind, the key, a checksum, in base32.
pub fn public_from_raw(raw: [u8; 32]) -> String {
    const USER: u8 = 20 << 3;
    let mut bytes = vec![USER];
    bytes.extend(raw);
    bytes.extend(crc16(&bytes).to_le_bytes());
    base32(&bytes)
}

/// Whether this is the one text of a user's public key: the broker refuses its whole configuration over any other kind of key in it.
pub fn is_user_key(text: &str) -> bool {
    const LENGTH: usize = 56;
    text.len() == LENGTH && public_to_raw(text).is_ok_and(|raw| public_from_raw(raw) == text)
}

/// CRC-16/XMODEM, as nkeys use it.
fn crc16(bytes: &[u8]) -> u16 {
    let step = |crc: u16, _| if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ (u16::from(*byte) << 8), step))
}

/// RFC 4648, without padding: of 35 bytes there is none.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bit = |n: usize| bytes.get(n / 8).is_some_and(|b| b & (0x80 >> (n % 8)) != 0);
    let letter = |n: usize| (n..n + 5).fold(0, |value, n| value * 2 + usize::from(bit(n)));
    (0..bytes.len() * 8).step_by(5).map(|n| char::from(LETTERS[letter(n)])).collect()
}

/// Random bytes from the kernel.
pub fn random<const N: usize>() -> Result<[u8; N], BusError> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| BusError::refused("the kernel gives no randomness", "Try again"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_holder_signs() {
        let (one, two) = (Identity::random(), Identity::random());
        let signature = one.sign(b"go");
        assert!(signed_by(&one.public(), b"go", &signature));
        assert!(!signed_by(&two.public(), b"go", &signature));
        assert!(!signed_by(&one.public(), b"stop", &signature));
        assert!(!signed_by(&one.public(), b"go", &signature[1..]));
        assert!(!signed_by("nobody", b"go", &signature));
    }

    #[test]
    fn a_public_key_travels_as_its_bytes() {
        for _ in 0..20 {
            let public = Identity::random().public();
            assert_eq!(public_from_raw(public_to_raw(&public).unwrap()), public);
        }
        assert!(public_to_raw("UAB").is_err());
    }

    #[test]
    fn other_kinds_of_keys_are_no_users() {
        let user = Identity::random().public();
        assert!(is_user_key(&user));
        for other in [KeyPairType::Account, KeyPairType::Server, KeyPairType::Operator] {
            assert!(!is_user_key(&KeyPair::new(other).public_key()));
        }
        for bad in [
            String::new(),
            "*".into(),
            user.to_lowercase(),
            user[1..].into(),
            user.clone() + "A",
            "é".repeat(28),
        ] {
            assert!(!is_user_key(&bad), "{bad}");
        }
    }

    #[test]
    fn a_secret_makes_the_same_one_anywhere() {
        let keys = [[1; 32], [1; 32], [2; 32]].map(|s| Identity::from_secret(s).unwrap().public());
        assert_eq!(keys[0], keys[1]);
        assert_ne!(keys[0], keys[2]);
    }

    #[test]
    fn a_seed_makes_the_same_one_again() {
        let one = Identity::random();
        let again = Identity::from_seed(one.seed()).unwrap();
        assert_eq!(again.public(), one.public());
        assert!(Identity::from_seed("SUAB").is_err());
        assert!(!format!("{one:?}").contains(one.seed()));
    }
}
