//! The broker's certificate: made for one fleet, known by its hash. No authority signs it, and no name or date in it counts.

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};

use super::home::Home;
use crate::BusError;
use crate::token::Pin;

/// Makes one with a new key, and leaves both in the state directory.
pub fn make(home: &Home) -> Result<Pin, BusError> {
    let failed =
        |e: rcgen::Error| BusError::refused(format!("no certificate can be made: {e}"), "Report this");
    let key = KeyPair::generate().map_err(failed)?;
    // A name is required by the format; clients look at the hash.
    let mut params = CertificateParams::new(vec!["plimsoll-fleet".to_owned()]).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, format!("plimsoll fleet {}", home.fleet()));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.self_signed(&key).map_err(failed)?;
    home.write("certificate.key", &key.serialize_pem())?;
    home.write("certificate.pem", &certificate.pem())?;
    Ok(Pin::of(certificate.der()))
}
