//! All keys of a fleet, made before it is up: where its agents are given the token first, as in a Kubernetes manifest.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};

use super::certificate::Certificate;
use crate::key::random;
use crate::token::{Pin, Secret, Token, Trust};
use crate::{BusError, Identity};

/// Whoever has it is the fleet: it belongs into files of mode 0600 and into secrets only.
#[derive(Clone, Serialize, Deserialize)]
pub struct KeySet {
    version: u32,
    /// The conductor's private key.
    pub(super) conductor: String,
    /// The token's secret.
    pub(super) secret: [u8; 32],
    certificate: String,
    certificate_key: String,
}

impl std::fmt::Debug for KeySet {
    /// It is shown to nobody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeySet")
    }
}

impl KeySet {
    /// New keys for a fleet of this name.
    pub fn make(fleet: &str) -> Result<Self, BusError> {
        let made = Certificate::make(fleet)?;
        Ok(Self {
            version: 1,
            conductor: Identity::random().seed().to_owned(),
            secret: random()?,
            certificate: made.pem,
            certificate_key: made.key_pem,
        })
    }

    /// As text, for [`Self::parse`].
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are always JSON")
    }

    /// What [`Self::text`] wrote.
    pub fn parse(text: &str) -> Result<Self, BusError> {
        let set = serde_json::from_str::<Self>(text).ok().filter(|s| s.version == 1);
        set.ok_or_else(|| {
            BusError::refused(
                "this is no set of a fleet's keys",
                "Take the one that `plimsoll fleet manifest` made",
            )
        })
    }

    /// The token with which machines join a fleet of these keys, at these addresses.
    pub fn token(&self, fleet: &str, addresses: Vec<String>, expires_s: u64) -> Result<Token, BusError> {
        Ok(Token {
            fleet: fleet.to_owned(),
            addresses,
            trust: Trust::Own(self.certificate()?.pin),
            conductor: Identity::from_seed(&self.conductor)?.public(),
            secret: Secret(self.secret),
            expires_s,
        })
    }

    pub(super) fn certificate(&self) -> Result<Certificate, BusError> {
        let der = CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(|e| {
            BusError::refused(format!("the certificate among the keys cannot be read: {e}"), "Make new ones")
        })?;
        Ok(Certificate {
            pem: self.certificate.clone(),
            key_pem: self.certificate_key.clone(),
            pin: Pin::of(&der),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_back_and_make_the_same_token() {
        let set = KeySet::make("demo").unwrap();
        let again = KeySet::parse(&set.text()).unwrap();
        let token = |set: &KeySet| set.token("demo", vec!["h:4222".into()], 5).unwrap();
        assert_eq!(token(&set), token(&again));
        assert_ne!(token(&set), token(&KeySet::make("demo").unwrap()));
        assert!(KeySet::parse("{}").is_err() && !format!("{set:?}").contains(&set.conductor));
    }
}
