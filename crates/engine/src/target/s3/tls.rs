//! TLS settings, from the plan's words to rustls: whom to trust, who we are, which version.

use std::fmt;
use std::sync::Arc;

use plimsoll_model::plan::TlsSpec;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

/// Builds the configuration that all connections of a target share. The error says which file or setting is at fault.
pub fn client_config(spec: &TlsSpec) -> Result<Arc<ClientConfig>, String> {
    keep_heap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let versions: &[&SupportedProtocolVersion] = match spec.version.as_deref() {
        None => rustls::ALL_VERSIONS,
        Some("1.2") => &[&rustls::version::TLS12],
        Some("1.3") => &[&rustls::version::TLS13],
        Some(v) => return Err(format!("TLS version '{v}': write 1.2 or 1.3")),
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(|e| format!("TLS: {e}"))?;
    let builder = if spec.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
    } else {
        builder.with_root_certificates(roots(spec.ca_file.as_deref())?)
    };
    let mut config = match (&spec.client_cert, &spec.client_key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(cert), Some(key)) => {
            let chain = certificates(cert)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|e| format!("client key {key}: {e}; it must be a PEM file with a private key"))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|e| format!("client certificate {cert} does not match its key: {e}"))?
        }
        _ => return Err("a client certificate needs both --client-cert and --client-key".into()),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Has the C library keep memory that was freed. rustls allocates each record, and glibc would give the top of the heap
/// back to the system whenever a window of records has gone out, only to fault it in again for the next one: a fifth
/// of the CPU time of a 1 MiB PUT.
fn keep_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes plain numbers and may be called at any time. The second call restores what the first
    // ends: that large pieces of memory come to be taken from the heap, too.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
    }
}

fn roots(ca_file: Option<&str>) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    if let Some(path) = ca_file {
        for cert in certificates(path)? {
            store.add(cert).map_err(|e| format!("CA file {path}: {e}"))?;
        }
        return Ok(store);
    }
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map(|e| format!(" ({e})")).unwrap_or_default();
        return Err(format!(
            "this system has no CA certificates{why}: install ca-certificates, or give a file with --ca-file"
        ));
    }
    Ok(store)
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let bad = |e| format!("certificate file {path}: {e}; it must be a PEM file");
    let list: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(bad)?.collect::<Result<_, _>>().map_err(bad)?;
    if list.is_empty() { Err(format!("certificate file {path} contains no certificate")) } else { Ok(list) }
}

/// The name that the certificate must carry: the host, with the bucket in front for virtual hosts.
pub fn server_name(host: &str, bucket: Option<&str>) -> Result<ServerName<'static>, String> {
    let name = bucket.map_or_else(|| host.to_owned(), |b| format!("{b}.{host}"));
    ServerName::try_from(name.clone())
        .map_err(|_| format!("'{name}' is not a name that a certificate can have"))
}

/// `--insecure`: any certificate will do. Signatures of the handshake are still checked, so that the connection
/// itself is sound.
struct AcceptAny(Arc<CryptoProvider>);

impl fmt::Debug for AcceptAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AcceptAny")
    }
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
