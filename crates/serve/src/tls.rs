//! TLS for whoever listens beyond this machine: a certificate made anew at each start, known by its fingerprint, which is printed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use axum::serve::Listener;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, channel};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::server::ServeError;

/// A handshake takes a second round trip and little else.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes that are under way at once.
const HANDSHAKES: usize = 64;

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

/// Connections whose handshake is done. Who does not finish one holds up nobody.
pub struct TlsListener {
    ready: Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    at: SocketAddr,
}

impl TlsListener {
    /// Takes what comes, in tasks of the runtime that it is called in.
    pub fn new(mut tcp: TcpListener, at: SocketAddr, config: Arc<ServerConfig>) -> Self {
        let (done, ready) = channel(HANDSHAKES);
        let acceptor = TlsAcceptor::from(config);
        let room = Arc::new(tokio::sync::Semaphore::new(HANDSHAKES));
        tokio::spawn(async move {
            loop {
                let (stream, peer) = Listener::accept(&mut tcp).await;
                let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
                let (acceptor, done) = (acceptor.clone(), done.clone());
                tokio::spawn(async move {
                    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                        let _ = done.send((stream, peer)).await;
                    }
                    drop(permit);
                });
            }
        });
        Self { ready, at }
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(next) => next,
            // Whoever accepts lives as long as the runtime.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        Ok(self.at)
    }
}
