//! The broker's certificate: made for one fleet, known by its hash. No authority signs it, and no name or date in it counts.

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};

use super::home::Home;
use crate::BusError;
use crate::token::Pin;

/// Both halves, and by what it is known.
#[derive(Debug)]
pub struct Certificate {
    pub pem: String,
    pub key_pem: String,
    pub pin: Pin,
}

impl Certificate {
    /// With a new key.
    pub fn make(fleet: &str) -> Result<Self, BusError> {
        let failed =
            |e: rcgen::Error| BusError::refused(format!("no certificate can be made: {e}"), "Report this");
        let key = KeyPair::generate().map_err(failed)?;
        // A name is required by the format; clients look at the hash.
        let mut params = CertificateParams::new(vec!["plimsoll-fleet".to_owned()]).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, format!("plimsoll fleet {fleet}"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok(Self { pem: certificate.pem(), key_pem: key.serialize_pem(), pin: Pin::of(certificate.der()) })
    }

    /// Leaves both in the state directory.
    pub fn leave_in(&self, home: &Home) -> Result<Pin, BusError> {
        home.write("certificate.key", &self.key_pem)?;
        home.write("certificate.pem", &self.pem)?;
        Ok(self.pin)
    }
}
