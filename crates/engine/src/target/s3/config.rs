//! What all workers of one S3 target share: endpoints with their addresses, credentials, TLS, and how objects look.
//! Made once before the stage; names are resolved and certificates read here, never on the hot path.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use plimsoll_model::plan::{Addressing, OnThrottle, PayloadSigning, S3Target};
use plimsoll_s3::head::{HeadOptions, Heads};
use plimsoll_s3::{CrcKind, Endpoint};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use super::content::ObjectContent;
use super::keys::KeyNames;
use super::renewal::{HeadRecipe, LiveKeys};
use super::tls;

/// What a target is made of.
#[derive(Debug, Clone)]
pub struct Setup {
    /// At least one; connections go over them in turn.
    pub endpoints: Vec<Endpoint>,
    /// Servers that redirects may lead to.
    pub redirects: Vec<Endpoint>,
    /// What requests are signed with.
    pub keys_in_use: LiveKeys,
    /// What they are signed for.
    pub region: String,
    /// As the plan has it.
    pub target: S3Target,
    /// From numbers to keys.
    pub keys: KeyNames,
    /// What is written and what is expected to be read.
    pub content: Arc<ObjectContent>,
    /// Parts, listings, batches.
    pub object: ClientOptions,
}

/// Options of the ops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// Bytes of each part but the last.
    pub part_bytes: u64,
    /// Parts of one upload in flight; connections per slot when multipart is in the mix.
    pub part_concurrency: u32,
    /// The mix has multipart ops.
    pub multipart: bool,
    /// The largest multipart object, bytes.
    pub max_multipart_bytes: u64,
    /// 0: the server's own.
    pub list_max_keys: u32,
    /// `None`: listings go through all levels.
    pub list_delimiter: Option<String>,
    /// Keys of one batch delete: the op's key and those that follow it.
    pub delete_batch: u32,
    /// The copy that op n makes is object `copy_first + n`.
    pub copy_first: u64,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            part_bytes: 8 << 20,
            part_concurrency: 1,
            multipart: false,
            max_multipart_bytes: 0,
            list_max_keys: 1000,
            list_delimiter: None,
            delete_batch: 1,
            copy_first: 1 << 48,
        }
    }
}

/// One endpoint, ready to connect to.
#[derive(Debug, Clone)]
pub struct ResolvedEndpoint {
    /// Scheme, host and port.
    pub endpoint: Endpoint,
    /// All addresses of the name; connections go over them in turn.
    pub addresses: Vec<SocketAddr>,
    /// `None`: plain HTTP.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// The S3 target of a stage.
#[derive(Debug, Clone)]
pub struct Config {
    /// Resolved once, before the first op.
    pub servers: Vec<ResolvedEndpoint>,
    /// Where redirects may lead beside those.
    pub redirects: Vec<ResolvedEndpoint>,
    /// What requests are signed with.
    pub keys_in_use: LiveKeys,
    /// What they are signed for.
    pub region: String,
    /// What the heads of all requests have in common.
    pub heads: HeadOptions,
    /// From numbers to keys.
    pub keys: KeyNames,
    /// What is written, and what is expected to be read.
    pub content: Arc<ObjectContent>,
    /// Parts, listings, batches.
    pub object: ClientOptions,
    /// How bodies are signed.
    pub signing: PayloadSigning,
    /// Whether a throttled answer keeps its slot back.
    pub on_throttle: OnThrottle,
    /// From an attempt's submission; then its connection is given up.
    pub timeout_ns: u64,
    /// Of uploads; `None`: none is sent.
    pub checksum: Option<CrcKind>,
}

/// The most parts of one upload (AWS).
pub const MAX_PARTS: u64 = 10_000;

impl Config {
    /// Resolves names, reads certificates, checks headers. The error is a sentence with the remedy.
    pub fn new(setup: Setup) -> Result<Self, String> {
        let Setup { endpoints, redirects, keys_in_use, region, target, keys, content, object } = setup;
        if endpoints.is_empty() {
            return Err("no endpoint: give one with --endpoint".into());
        }
        let virtual_host = target.addressing == Addressing::VirtualHost;
        let tls_config = if endpoints.iter().chain(&redirects).any(|e| e.tls) {
            Some(tls::client_config(&target.tls)?)
        } else {
            None
        };
        let ready = |list: Vec<Endpoint>| -> Result<Vec<ResolvedEndpoint>, String> {
            list.into_iter().map(|e| server(e, &target.bucket, virtual_host, tls_config.as_ref())).collect()
        };
        let (servers, redirects) = (ready(endpoints)?, ready(redirects)?);
        if object.multipart && object.max_multipart_bytes.div_ceil(object.part_bytes.max(1)) > MAX_PARTS {
            return Err(format!(
                "an object of {} bytes in parts of {} has more than {MAX_PARTS} parts: use larger parts (--part-size)",
                object.max_multipart_bytes, object.part_bytes
            ));
        }
        let checksum = CrcKind::of(target.checksum);
        let heads = HeadOptions {
            bucket: target.bucket.clone(),
            virtual_host,
            put_headers: target.put_headers.into_iter().collect(),
            checksum,
            close: !target.keep_alive,
            expect_continue: target.expect_continue,
        };
        // Bad headers are told now, not by the first worker.
        let keys_now = keys_in_use.get();
        Heads::new(&servers[0].endpoint, (*keys_now).clone(), &region, &heads).map_err(|e| e.to_string())?;
        let timeout_ns = u64::try_from(target.timeout.0.as_nanos()).unwrap_or(u64::MAX);
        Ok(Self {
            servers,
            redirects,
            keys_in_use,
            region,
            heads,
            keys,
            content,
            object,
            signing: target.signing,
            on_throttle: target.on_throttle,
            timeout_ns,
            checksum,
        })
    }
}

impl Config {
    /// Of the heads of one worker: for its endpoints, then for those that redirects may lead to.
    pub(super) fn head_recipe(&self) -> HeadRecipe {
        let all = self.servers.iter().chain(&self.redirects).map(|s| s.endpoint.clone());
        HeadRecipe { endpoints: all.collect(), region: self.region.clone(), options: self.heads.clone() }
    }
}

/// All addresses of a name. Names under `localhost` are this machine, also where the resolver does not know that
/// (RFC 6761, 6.3): `bucket.localhost` is what virtual-host addressing makes of a server on this machine.
pub(crate) fn addresses_of(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    match (host, port).to_socket_addrs() {
        Ok(all) => Ok(all.collect()),
        Err(_) if host.ends_with(".localhost") => {
            Ok(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()])
        }
        Err(e) => Err(e),
    }
}

fn server(
    endpoint: Endpoint,
    bucket: &str,
    virtual_host: bool,
    config: Option<&Arc<ClientConfig>>,
) -> Result<ResolvedEndpoint, String> {
    if virtual_host && endpoint.is_ip() {
        return Err(format!(
            "virtual-host addressing needs a host name, but {endpoint} is an IP address: use path addressing"
        ));
    }
    let bucket = virtual_host.then_some(bucket);
    let host = bucket.map_or_else(|| endpoint.host.clone(), |b| format!("{b}.{}", endpoint.host));
    let addresses = addresses_of(&host, endpoint.port).map_err(|e| {
        format!("cannot find the host '{host}' of {endpoint}: {e}. Check the name, or the network.")
    })?;
    if addresses.is_empty() {
        return Err(format!("the host '{host}' of {endpoint} has no address"));
    }
    let tls = match config.filter(|_| endpoint.tls) {
        Some(c) => Some((c.clone(), tls::server_name(&endpoint.host, bucket)?)),
        None => None,
    };
    Ok(ResolvedEndpoint { endpoint, addresses, tls })
}
