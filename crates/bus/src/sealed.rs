//! What only one machine may read: sealed to a key that it made for this, by the standard for that (HPKE, RFC 9180: X25519,
//! HKDF-SHA-256, AES-256-GCM). Neither the broker nor another agent can open it, and nobody can send it on to be used elsewhere:
//! it opens for the occasion that it was sealed for, and for no other.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::aws_lc_rs::hpke::DH_KEM_X25519_HKDF_SHA256_AES_256 as SUITE;
use rustls::crypto::hpke::{EncapsulatedSecret, Hpke, HpkePrivateKey, HpkePublicKey};

use crate::BusError;
use crate::token::Secret;

const INFO: &[u8] = b"plimsoll sealed 1";
/// Of a public key, and of what comes before the sealed text.
const KEY_BYTES: usize = 32;

/// To which something can be sealed; its private half is in this process only.
pub struct SealingKey {
    public: HpkePublicKey,
    private: HpkePrivateKey,
}

impl std::fmt::Debug for SealingKey {
    /// The private half is shown to nobody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SealingKey").field(&self.public()).finish()
    }
}

impl SealingKey {
    /// A new one.
    pub fn random() -> Result<Self, BusError> {
        let none = |_| BusError::refused("no key can be made to seal secrets to", "Try again");
        let (public, private) = SUITE.generate_key_pair().map_err(none)?;
        Ok(Self { public, private })
    }

    /// The public half, as text.
    pub fn public(&self) -> String {
        STANDARD.encode(&self.public.0)
    }

    /// What was sealed to this key for this occasion; `None`: it was not, or was changed on its way.
    pub fn open(&self, sealed: &str, occasion: &str) -> Option<Vec<u8>> {
        let bytes = STANDARD.decode(sealed).ok()?;
        let (key, text) = bytes.split_at_checked(KEY_BYTES)?;
        SUITE.open(&EncapsulatedSecret(key.to_vec()), INFO, occasion.as_bytes(), text, &self.private).ok()
    }
}

/// Seals to the holder of a public key, for one occasion (which is no secret). `None`: that is no key.
pub fn seal(public: &str, occasion: &str, secret: &[u8]) -> Option<String> {
    let key = STANDARD.decode(public).ok().filter(|k| k.len() == KEY_BYTES)?;
    let (from, text) = SUITE.seal(INFO, occasion.as_bytes(), secret, &HpkePublicKey(key)).ok()?;
    Some(STANDARD.encode([from.0, text].concat()))
}

/// Shows that a process of an agent, with its key, holds the token: on a broker of somebody else's, anybody may speak under its name.
pub fn voucher(secret: &Secret, agent: &str, process: &str, public: &str) -> String {
    STANDARD.encode(hmac::sign(&prover(secret), &vouched(agent, process, public)))
}

/// Whether a [`voucher`] is one.
pub fn is_vouched(secret: &Secret, agent: &str, process: &str, public: &str, voucher: &str) -> bool {
    let tag = STANDARD.decode(voucher).unwrap_or_default();
    hmac::verify(&prover(secret), &vouched(agent, process, public), &tag).is_ok()
}

fn prover(secret: &Secret) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &secret.0)
}

/// Names, words and keys have no zero bytes in them, so that no two of these are alike.
fn vouched(agent: &str, process: &str, public: &str) -> Vec<u8> {
    ["plimsoll voucher 1", agent, process, public].join("\0").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_it_was_sealed_to_opens_it_and_only_for_its_occasion() {
        let (one, two) = (SealingKey::random().unwrap(), SealingKey::random().unwrap());
        let sealed = seal(&one.public(), "run r1", b"hunter2").unwrap();
        assert_eq!(one.open(&sealed, "run r1").unwrap(), b"hunter2");
        assert_eq!(one.open(&sealed, "run r2"), None);
        assert_eq!(two.open(&sealed, "run r1"), None);
        assert_ne!(sealed, seal(&one.public(), "run r1", b"hunter2").unwrap(), "each is sealed anew");
        for place in [0, KEY_BYTES, KEY_BYTES + 10] {
            let mut bytes = STANDARD.decode(&sealed).unwrap();
            bytes[place] ^= 1;
            assert_eq!(one.open(&STANDARD.encode(bytes), "run r1"), None, "{place}");
        }
        assert!(!format!("{one:?}").contains(&STANDARD.encode(one.private.secret_bytes())));
    }

    #[test]
    fn what_is_no_key_and_nothing_sealed_is_neither() {
        let key = SealingKey::random().unwrap();
        for bad in ["", "?", "AAAA", &STANDARD.encode([0; 31]), &STANDARD.encode([0; 33])] {
            assert_eq!(seal(bad, "", b"x"), None, "{bad}");
            assert_eq!(key.open(bad, ""), None, "{bad}");
        }
    }

    #[test]
    fn a_voucher_is_of_one_token_one_agent_one_process_and_one_key() {
        let secret = Secret([5; 32]);
        let made = voucher(&secret, "lg-1", "p", "key");
        assert!(is_vouched(&secret, "lg-1", "p", "key", &made));
        assert!(!is_vouched(&Secret([6; 32]), "lg-1", "p", "key", &made));
        for (agent, process, key) in [("lg-2", "p", "key"), ("lg-1", "q", "key"), ("lg-1", "p", "k")] {
            assert!(!is_vouched(&secret, agent, process, key, &made));
        }
        assert!(!is_vouched(&secret, "lg-1", "p", "key", ""));
    }
}
