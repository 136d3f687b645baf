//! Redirects: S3 answers 307 when a bucket is served elsewhere for a while.

use std::net::SocketAddr;

use plimsoll_s3::Endpoint;

use super::config::{Config, Server};
use super::machine::{Machine, new_heads};

/// Servers that redirects may add to those of the configuration.
pub(super) const MAX_REDIRECTED: usize = 4;
/// Redirects of one op.
const MAX_HOPS: u8 = 3;

impl Machine {
    /// Follows a 307 or 308 to a server that is known or is given by address; true when the request is to be sent
    /// again. Other redirects stay the op's answer.
    pub(super) fn follow(&mut self, slot: u32, i: usize) -> bool {
        let head = self.lanes[i].parser.head();
        if !matches!(head.status, 307 | 308) || self.slots[slot as usize].hops == MAX_HOPS {
            return false;
        }
        let Some(endpoint) = redirect_endpoint(&head.location.to_string_lossy(), &self.config) else {
            return false;
        };
        let found = self.servers.iter().position(|s| s.endpoint == endpoint);
        let server = match found {
            Some(s) => s,
            None => {
                let Ok(ip) = endpoint.host.parse() else { return false };
                if self.servers.len() == self.servers_per_lane || endpoint.tls {
                    return false;
                }
                let Ok(heads) = new_heads(&self.config, &endpoint) else { return false };
                let addresses = vec![SocketAddr::new(ip, endpoint.port)];
                self.heads.push(heads);
                self.servers.push(Server { endpoint, addresses, tls: None });
                self.servers.len() - 1
            }
        };
        let s = &mut self.slots[slot as usize];
        s.hops += 1;
        s.server = server;
        true
    }
}

/// The endpoint that a `Location` names; with virtual hosts the bucket's name in front is not part of it.
fn redirect_endpoint(location: &str, config: &Config) -> Option<Endpoint> {
    let (scheme, rest) = location.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let mut endpoint = Endpoint::parse(&format!("{scheme}://{authority}")).ok()?;
    if config.heads.virtual_host {
        let bucket = format!("{}.", config.heads.bucket);
        if let Some(host) = endpoint.host.strip_prefix(&bucket) {
            endpoint.host = host.to_owned();
        }
    }
    Some(endpoint)
}
