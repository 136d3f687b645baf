//! A bucket as whoever conducts asks it: from this machine, or by errands that another one runs, where this one does not reach it.

use std::fmt::Debug;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use plimsoll_engine::target::s3::LiveKeys;
use plimsoll_model::plan::S3Target;
use plimsoll_s3::xml::ListPage;
use plimsoll_s3::{Credentials, Endpoint};

use super::access::{self, Access};
use super::admin::AdminStore;
use crate::error::SetupError;
use crate::interrupt::Interrupt;
use crate::objects::{ObjectStore, StoreFault};

/// A server that does not take a connection within so long does not count as reached. (A choice: five round trips around the world, and
/// one SYN that was lost.)
const CONNECT: Duration = Duration::from_secs(3);

/// One bucket at one endpoint, with what is asked of it beside an [`ObjectStore`]'s calls.
pub trait Bucket: ObjectStore + Debug {
    /// `Server` header, as far as it was seen.
    fn server(&self) -> Option<String>;
    /// Whether the bucket is there; `tell` gets what is to be known of the way to it.
    fn reach(&self, tell: &mut dyn FnMut(String)) -> Result<bool, StoreFault>;
    /// A page of a listing with sizes and classes; `from`: the token of the page before.
    fn list_objects(&self, prefix: &str, from: Option<&str>) -> Result<ListPage, StoreFault>;
    /// What of encryption and storage class the server does not say of our marker.
    fn unconfirmed(&self, target: &S3Target, prefix: &str) -> Vec<String>;
}

/// Those who reach storage for a machine that does not. What they do there is held to the rules that hold here
/// ([`crate::objects::Guarded`]).
pub trait Errands: Debug {
    /// The bucket of a target at one of its endpoints. `region`: what requests are signed for; empty: what they have for it.
    fn bucket(&self, target: &str, endpoints: &[String], region: &str, endpoint: usize) -> Box<dyn Bucket>;
    /// Who did something by now, by name.
    fn done_by(&self) -> Vec<String>;
}

/// Who asks the storage beside the load: for markers, listings and cleaning up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClaimBy {
    /// The conductor, and where it does not reach the storage an agent.
    #[default]
    Auto,
    /// The conductor only.
    Conductor,
    /// An agent, also where the conductor could.
    Agents,
}

/// How the endpoints of a target are asked.
#[derive(Debug)]
pub(super) enum Way {
    Here,
    /// And why, in words.
    ByErrands(Box<dyn Errands>, String),
}

impl Way {
    /// One of the endpoints.
    pub(super) fn bucket(
        &self,
        access: &Access,
        target: &str,
        endpoint: usize,
    ) -> Result<Box<dyn Bucket>, SetupError> {
        let of = |e: &Endpoint| AdminStore::of(access, e);
        match self {
            Self::Here => match access.endpoints.get(endpoint) {
                Some(e) => Ok(Box::new(of(e)?)),
                None => Err(SetupError::Bug(format!("target '{target}' has no endpoint {endpoint}"))),
            },
            Self::ByErrands(errands, _) => {
                let names: Vec<String> = access.endpoints.iter().map(ToString::to_string).collect();
                Ok(errands.bucket(target, &names, &access.region, endpoint))
            }
        }
    }
}

/// Which of both ways leads to a target. A machine without keys, name or route for it does not reach it.
pub(super) fn way(
    target: &S3Target,
    by: ClaimBy,
    errands: Option<Box<dyn Errands>>,
    interrupt: &Interrupt,
) -> Result<Way, SetupError> {
    let Some(errands) = errands else { return Ok(Way::Here) };
    match by {
        ClaimBy::Conductor => Ok(Way::Here),
        ClaimBy::Agents => Ok(Way::ByErrands(errands, "as --claim-by asks".into())),
        ClaimBy::Auto => Ok(match why_not_reached(target, interrupt)? {
            None => Way::Here,
            Some(why) => Way::ByErrands(errands, format!("because this machine does not reach it ({why})")),
        }),
    }
}

/// Where the endpoints are, for whoever has no keys and asks nothing himself. No secret is in it.
pub(super) fn without_keys(target: &S3Target) -> Result<Access, SetupError> {
    let endpoints = access::endpoints_without_keys(target)?;
    let redirects = access::parse_endpoints(&target.redirects_to)?;
    let nobody = Credentials { access_key: String::new(), secret_key: String::new(), session_token: None };
    let region = target.region.clone().unwrap_or_default();
    let (keys, held) = (LiveKeys::from(nobody), None);
    Ok(Access { endpoints, redirects, keys, held, region, target: target.clone() })
}

/// Why this machine cannot ask a target, in words; none: it can try.
fn why_not_reached(target: &S3Target, interrupt: &Interrupt) -> Result<Option<String>, SetupError> {
    // What is wrong with the address is wrong everywhere.
    let endpoints = access::endpoints_without_keys(target)?;
    let target = target.clone();
    interrupt.unless_ended(move || {
        if let Err(SetupError::Input { problem, .. }) = access::access(&target, None) {
            return Ok(Some(problem));
        }
        Ok(endpoints.iter().find_map(no_connection))
    })
}

/// Refuses endpoints that take no connection from this machine, by name, before there is any load.
pub(super) fn all_answer(endpoints: &[Endpoint], interrupt: &Interrupt) -> Result<(), SetupError> {
    let endpoints = endpoints.to_vec();
    match interrupt.unless_ended(move || Ok(endpoints.iter().find_map(no_connection)))? {
        None => Ok(()),
        Some(why) => Err(SetupError::input(
            format!("it does not reach the storage: {why}"),
            "Check the address, and the way to it from that machine, or leave the agent out (--agents label=value)",
        )),
    }
}

/// Why an endpoint takes no connection from here.
fn no_connection(endpoint: &Endpoint) -> Option<String> {
    let told = |e: std::io::Error| Some(format!("{endpoint}: {e}"));
    let addresses = match (endpoint.host.as_str(), endpoint.port).to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(e) => return told(e),
    };
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(_) => return None,
            Err(e) => last = Some(e),
        }
    }
    last.map_or_else(|| Some(format!("{endpoint}: no address")), told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_port_that_nobody_listens_at_is_not_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let endpoint = Endpoint::parse(&url).unwrap();
        assert_eq!(no_connection(&endpoint), None);
        drop(listener);
        assert!(no_connection(&endpoint).unwrap().starts_with(&url));
        let unknown = Endpoint::parse("http://no-such-host.invalid:9000").unwrap();
        assert!(no_connection(&unknown).unwrap().contains("no-such-host.invalid"));
    }
}
