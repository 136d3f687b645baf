//! The same exchanges over TLS: both versions, large bodies, client certificates, and who is not trusted.

use std::sync::Arc;

use plimsoll_model::plan::TlsSpec;
use plimsoll_model::{Op, OpKind, Outcome};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::PrivateKeyDer;

use super::server::{Reply, Server, http};
use super::{Case, op};

/// A CA of the test's own, a server that it vouches for, and a client.
struct Pki {
    dir: tempfile::TempDir,
    server: Arc<ServerConfig>,
    strict: Arc<ServerConfig>,
}

fn pki() -> Pki {
    let dir = tempfile::tempdir().unwrap();
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_cert = ca.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let leaf = |names: &[&str]| {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|n| (*n).to_string()).collect();
        let cert = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        (cert, key)
    };
    let (cert, key) = leaf(&["127.0.0.1", "localhost"]);
    let (client, client_key) = leaf(&["client"]);
    std::fs::write(dir.path().join("ca.pem"), ca_cert.pem()).unwrap();
    std::fs::write(dir.path().join("client.pem"), client.pem()).unwrap();
    std::fs::write(dir.path().join("client.key"), client_key.serialize_pem()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = || {
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap()
    };
    let private = || PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let chain = vec![cert.der().clone()];
    let server = builder().with_no_client_auth().with_single_cert(chain.clone(), private()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(ca_cert.der().clone()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    let strict = builder().with_client_cert_verifier(verifier).with_single_cert(chain, private()).unwrap();
    Pki { dir, server: Arc::new(server), strict: Arc::new(strict) }
}

impl Pki {
    fn file(&self, name: &str) -> Option<String> {
        Some(self.dir.path().join(name).display().to_string())
    }

    fn trusting(&self) -> TlsSpec {
        TlsSpec { ca_file: self.file("ca.pem"), ..TlsSpec::default() }
    }
}

/// A session token, a key of encryption, and an answer that asks for both in clear.
#[test]
fn a_redirect_from_tls_to_a_plain_connection_is_never_followed() {
    let pki = pki();
    let plain = Server::start(|_| Reply::Bytes(http("200 OK", "", b"")));
    let location = format!("Location: {}/b/k\r\n", plain.url());
    let server =
        Server::start_with(Some(pki.server.clone()), move |_| Reply::Bytes(http("307 R", &location, b"")));
    for (endpoints, redirects_to) in [
        (vec![server.url()], vec![]),
        (vec![server.url()], vec![plain.url()]),
        (vec![server.url(), plain.url()], vec![]),
    ] {
        let mut case = Case::at(&endpoints);
        case.target.tls = pki.trusting();
        case.target.redirects_to = redirects_to;
        case.target.put_headers = [(
            "x-amz-server-side-encryption-customer-key".to_owned(),
            "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=".to_owned(),
        )]
        .into();
        case.run_both(&[op(OpKind::Put, 1, 1000)], |ran| {
            assert_eq!(ran.outcomes(), [Outcome::Http3xx], "{:?}", ran.log);
            assert!(ran.log.failures[0].2.contains("not followed"), "{:?}", ran.log);
        });
    }
    assert!(plain.requests().is_empty(), "{:?}", plain.requests());
    // Between servers of TLS it is.
    let (to, store) = Server::storing_with(Some(pki.server.clone()));
    let location = format!("Location: {}/b/k\r\n", to.url());
    let from =
        Server::start_with(Some(pki.server.clone()), move |_| Reply::Bytes(http("307 R", &location, b"")));
    let mut case = Case::new(&[&from]);
    case.target.tls = pki.trusting();
    case.target.redirects_to = vec![to.url()];
    case.run_both(&[op(OpKind::Put, 1, 1000)], |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok], "{:?}", ran.log)
    });
    assert_eq!(store.lock().unwrap().len(), 1);
}

const SIZES: [u64; 5] = [0, 1, 4096, 65_537, 3_000_000];

#[test]
fn objects_go_and_come_over_both_versions() {
    let pki = pki();
    for version in ["1.2", "1.3"] {
        let (server, store) = Server::storing_with(Some(pki.server.clone()));
        let mut case = Case::new(&[&server]);
        case.target.tls = TlsSpec { version: Some(version.into()), ..pki.trusting() };
        let puts: Vec<Op> = SIZES.iter().zip(0..).map(|(s, k)| op(OpKind::Put, k, *s)).collect();
        let gets: Vec<Op> = puts.iter().map(|o| Op { kind: OpKind::Get, ..*o }).collect();
        let total: u64 = SIZES.iter().sum();
        case.run_both(&puts, |ran| {
            assert_eq!((ran.outcomes(), ran.moved), (vec![Outcome::Ok; 5], total), "{version} {:?}", ran.log);
            assert_eq!(ran.log.reconnects, 0);
        });
        case.verify = true;
        case.run_both(&gets, |ran| {
            assert_eq!(
                (ran.outcomes(), ran.moved, ran.discarded),
                (vec![Outcome::Ok; 5], total, 0),
                "{:?}",
                ran.log
            );
        });
        assert_eq!(store.lock().unwrap().len(), 5);
    }
}

#[test]
fn who_is_not_trusted_gets_nothing() {
    let pki = pki();
    let (server, store) = Server::storing_with(Some(pki.server.clone()));
    let other = self::pki();
    let mut case = Case::new(&[&server]);
    case.target.tls = other.trusting();
    case.run_both(&[op(OpKind::Put, 1, 10)], |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Protocol]);
        assert!(ran.log.failures[0].2.contains("certificate"), "{:?}", ran.log);
    });
    assert!(store.lock().unwrap().is_empty());
    case.target.tls.insecure = true;
    case.run_both(&[op(OpKind::Put, 1, 10)], |ran| assert_eq!(ran.outcomes(), [Outcome::Ok]));
}

#[test]
fn a_client_certificate_opens_the_door() {
    let pki = pki();
    let (server, _) = Server::storing_with(Some(pki.strict.clone()));
    let mut case = Case::new(&[&server]);
    case.target.tls = pki.trusting();
    case.run_both(&[op(OpKind::Put, 1, 10)], |ran| assert!(!ran.outcomes()[0].is_ok()));
    case.target.tls.client_cert = pki.file("client.pem");
    case.target.tls.client_key = pki.file("client.key");
    case.run_both(&[op(OpKind::Put, 1, 10)], |ran| {
        assert_eq!(ran.outcomes(), [Outcome::Ok], "{:?}", ran.log)
    });
}

#[test]
fn bad_settings_are_named() {
    let pki = pki();
    let config = |t: TlsSpec| crate::target::s3::tls::client_config(&t).map(drop).unwrap_err();
    let spec = || pki.trusting();
    assert!(config(TlsSpec { ca_file: Some("/no/such.pem".into()), ..spec() }).contains("/no/such.pem"));
    assert!(config(TlsSpec { ca_file: pki.file("client.key"), ..spec() }).contains("no certificate"));
    assert!(config(TlsSpec { version: Some("1.1".into()), ..spec() }).contains("1.2 or 1.3"));
    assert!(config(TlsSpec { client_cert: pki.file("client.pem"), ..spec() }).contains("--client-key"));
}
