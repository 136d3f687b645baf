//! TLS towards the one certificate that the token names: by its hash, not by a name or an authority. So the broker can be reached
//! under any address, through tunnels and forwarded ports, and nobody else can pass for it.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::BusError;
use crate::token::Pin;

/// What the handshake fails with where the certificate is another one.
pub const ANOTHER: &str = "not the certificate of this fleet";

/// Trusts one certificate, and only who has its private key.
#[derive(Debug)]
struct Pinned {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

/// A client's configuration that trusts that one certificate.
pub fn client_config(pin: Pin) -> Result<ClientConfig, BusError> {
    trusting(pin, |pinned| Arc::new(pinned))
}

/// Trusts whoever shows a certificate of this hash: as its own, or as that of the authority that signed its own for this host.
#[derive(Debug)]
struct Shown(Pinned);

/// A client's configuration that trusts that one certificate, and those that it signed.
pub fn authority_config(pin: Pin) -> Result<ClientConfig, BusError> {
    trusting(pin, |pinned| Arc::new(Shown(pinned)))
}

fn trusting(
    pin: Pin,
    verifier: impl FnOnce(Pinned) -> Arc<dyn ServerCertVerifier>,
) -> Result<ClientConfig, BusError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = verifier(Pinned { pin, provider: provider.clone() });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| BusError::refused(format!("TLS cannot be set up: {e}"), "Report this"))?;
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

impl ServerCertVerifier for Shown {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if Pin::of(certificate) == self.0.pin {
            return Ok(ServerCertVerified::assertion());
        }
        let Some(authority) = others.iter().find(|c| Pin::of(c) == self.0.pin) else {
            return Err(Error::General(ANOTHER.to_owned()));
        };
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let standard = WebPkiServerVerifier::builder_with_provider(roots.into(), self.0.provider.clone());
        let standard = standard.build().map_err(|e| Error::General(e.to_string()))?;
        standard.verify_server_cert(certificate, others, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if Pin::of(certificate) == self.pin {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General(ANOTHER.to_owned()))
        }
    }

    // These two prove that the other side holds the private key of the pinned certificate, which anybody may copy.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
