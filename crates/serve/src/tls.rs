//! TLS for whoever listens beyond this machine: a certificate made anew at each start, known by its fingerprint, which is printed.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

use crate::server::ServeError;

/// What TLS is spoken with.
pub struct ServeCertificate {
    pub config: Arc<ServerConfig>,
    /// SHA-256 of the certificate, as browsers show it.
    pub fingerprint: String,
}

impl ServeCertificate {
    /// For these names and addresses, signed by itself.
    pub fn make(names: Vec<String>) -> Result<Self, ServeError> {
        let failed = |e: &dyn std::fmt::Display| ServeError::Tls(e.to_string());
        let key = KeyPair::generate().map_err(|e| failed(&e))?;
        let mut params = CertificateParams::new(names).map_err(|e| failed(&e))?;
        params.distinguished_name.push(DnType::CommonName, "plimsoll serve");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.self_signed(&key).map_err(|e| failed(&e))?;
        let der = certificate.der().clone();
        let sum = digest(&SHA256, &der);
        let fingerprint = sum.as_ref().iter().map(|b| format!("{b:02X}")).collect::<Vec<_>>().join(":");
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|e| failed(&e))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|b| b.with_no_client_auth().with_single_cert(vec![der], key))
            .map_err(|e| failed(&e))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), fingerprint })
    }
}
