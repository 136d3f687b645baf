//! TLS for the servers: a certificate from files, or one made on the spot with a CA that clients can be told to trust.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the server's certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsSource {
    /// PEM files: the chain, and its private key.
    Files { cert: PathBuf, key: PathBuf },
    /// A new certificate for these names and addresses, from a new CA whose certificate is written to `ca_out`.
    SelfSigned { names: Vec<String>, ca_out: PathBuf },
}

/// TLS of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    pub source: TlsSource,
    /// Only clients with a certificate of this CA (PEM file) are let in.
    pub client_ca: Option<PathBuf>,
}

impl TlsOptions {
    /// A certificate for localhost, whose CA is written to `ca_out`.
    pub fn self_signed(ca_out: PathBuf) -> TlsOptions {
        let names = ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec();
        TlsOptions { source: TlsSource::SelfSigned { names, ca_out }, client_ca: None }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{file}: {why}; it has to be a PEM file with {what}")]
    File { file: String, what: &'static str, why: String },
    #[error("cannot write {file}: {why}")]
    Write { file: String, why: String },
    #[error("certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("TLS: {0}")]
    Rustls(#[from] rustls::Error),
    #[error("client CA: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The configuration for rustls: TLS 1.2 and 1.3, the aws-lc provider, HTTP/1.1.
pub fn server_config(options: &TlsOptions) -> Result<Arc<ServerConfig>, TlsError> {
    let (chain, key) = match &options.source {
        TlsSource::Files { cert, key } => (certificates(cert)?, private_key(key)?),
        TlsSource::SelfSigned { names, ca_out } => self_signed(names, ca_out)?,
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match &options.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for cert in certificates(file)? {
                roots.add(cert)?;
            }
            builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?,
            )
        }
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn file_error(file: &Path, what: &'static str, why: impl ToString) -> TlsError {
    TlsError::File { file: file.display().to_string(), what, why: why.to_string() }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const WHAT: &str = "one or more certificates";
    let all = CertificateDer::pem_file_iter(file).map_err(|e| file_error(file, WHAT, e))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|e| file_error(file, WHAT, e))?;
    if all.is_empty() { Err(file_error(file, WHAT, "there is none")) } else { Ok(all) }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(file).map_err(|e| file_error(file, "a private key", e))
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate for these names from a new CA, as PEM files for a server that is not ours: (certificate, private key, CA).
pub fn write_self_signed(names: &[String], [cert_out, key_out, ca_out]: [&Path; 3]) -> Result<(), TlsError> {
    let (chain, key) = made(names, ca_out)?;
    write_own(cert_out, &chain.pem(), 0o644)?;
    write_own(key_out, &key.serialize_pem(), 0o600)
}

/// A file that was not there.
fn write_own(path: &Path, pem: &str, mode: u32) -> Result<(), TlsError> {
    use std::io::Write as _;
    let file =
        std::os::unix::fs::OpenOptionsExt::mode(std::fs::File::options().write(true).create_new(true), mode)
            .open(path);
    file.and_then(|mut f| f.write_all(pem.as_bytes()))
        .map_err(|e| TlsError::Write { file: path.display().to_string(), why: e.to_string() })
}

fn self_signed(names: &[String], ca_out: &Path) -> Result<Identity, TlsError> {
    let (cert, key) = made(names, ca_out)?;
    Ok((vec![cert.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into())))
}

/// Signed by a new CA, whose certificate is written.
fn made(names: &[String], ca_out: &Path) -> Result<(rcgen::Certificate, KeyPair), TlsError> {
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::new(Vec::<String>::new())?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "Plimsoll test CA");
    ca.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let ca_cert = ca.self_signed(&ca_key)?;
    // By its first line it is known again, and may be overwritten.
    std::fs::write(ca_out, format!("# made by plimsoll\n{}", ca_cert.pem()))
        .map_err(|e| TlsError::Write { file: ca_out.display().to_string(), why: e.to_string() })?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name.push(DnType::CommonName, "plimsoll target");
    let cert = params.signed_by(&key, &Issuer::new(ca, ca_key))?;
    Ok((cert, key))
}
