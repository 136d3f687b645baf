//! The certificate of a cluster whose servers speak TLS, and whoever trusts it.

use std::fs::DirBuilder;
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_setup::SetupError;
use plimsoll_target::tls::write_self_signed;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};

/// Where MinIO looks for its certificate, for all nodes of a cluster.
pub fn certificates_of(dir: &Path) -> PathBuf {
    dir.join("certs")
}

/// The CA of a cluster's certificate.
#[derive(Debug)]
pub struct ClusterTrust {
    /// PEM.
    pub ca_file: PathBuf,
    config: Arc<ClientConfig>,
}

impl ClusterTrust {
    /// Makes one certificate for all nodes, in the cluster's new directory: as MinIO wants it, with its CA among those that servers trust.
    pub fn make(dir: &Path, addresses: Vec<String>) -> Result<Self, SetupError> {
        let certs = certificates_of(dir);
        let ca_file = certs.join("CAs/ca.crt");
        let cannot =
            |e: String| SetupError::input(format!("no certificate can be made: {e}"), "Leave --tls out");
        let mut new = DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(new.recursive(true), 0o700);
        new.create(certs.join("CAs")).map_err(|e| cannot(e.to_string()))?;
        let files = [&certs.join("public.crt"), &certs.join("private.key"), &ca_file];
        write_self_signed(&addresses, files.map(PathBuf::as_path)).map_err(|e| cannot(e.to_string()))?;
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(&ca_file).map_err(|e| cannot(e.to_string()))?;
        roots.add(ca).map_err(|e| cannot(e.to_string()))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| cannot(e.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { ca_file, config: Arc::new(config) })
    }

    /// A connection to a node, over TLS.
    pub fn over(
        &self,
        stream: TcpStream,
        address: &str,
    ) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let name = ServerName::try_from(address.to_owned()).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(&self.config), name).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }
}
