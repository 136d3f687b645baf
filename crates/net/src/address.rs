//! Which addresses a test may use, and which this host has.

use std::ffi::CStr;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use plimsoll_model::net::NetInterface;

/// A network, `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    bits: u8,
}

/// Which addresses may be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AllowedNetworks {
    /// Those that no router of the internet forwards: a test floods a path, and whoever pays for one says so.
    #[default]
    Private,
    /// These only.
    Named(Vec<Network>),
    /// None: this host takes part in no test.
    Nothing,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is neither an address nor a network such as 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let base: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most { Err(wrong()) } else { Ok(Self { base: base.to_canonical(), bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

impl Network {
    /// Whether an address is of it.
    pub fn has(&self, address: IpAddr) -> bool {
        match (self.base, address.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(a)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                base.to_bits() & mask == a.to_bits() & mask
            }
            (IpAddr::V6(base), IpAddr::V6(a)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                base.to_bits() & mask == a.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl AllowedNetworks {
    /// Of what a person named: nothing, `none`, or networks.
    pub fn of(named: &[String]) -> Result<Self, String> {
        match named {
            [] => Ok(Self::Private),
            [one] if one == "none" => Ok(Self::Nothing),
            more if more.iter().any(|n| n == "none") => Err("'none' stands alone".into()),
            more => more.iter().map(|n| n.parse()).collect::<Result<_, _>>().map(Self::Named),
        }
    }

    /// In words, why an address may not be used.
    pub fn refuses(&self, address: IpAddr) -> Option<String> {
        match self {
            Self::Private if is_private(address) => None,
            Self::Private => Some(format!(
                "{address} is a public address, and a network test loads all that lies on the way to it"
            )),
            Self::Named(networks) if networks.iter().any(|n| n.has(address)) => None,
            Self::Named(_) => Some(format!("{address} is in none of the networks that were allowed")),
            Self::Nothing => Some("network tests are not allowed here".into()),
        }
    }
}

/// Of this machine, of a private network, of a link, or of a provider's own (100.64.0.0/10).
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(a) => {
            a.is_loopback()
                || a.is_private()
                || a.is_link_local()
                || (a.octets()[0] == 100 && a.octets()[1] & 0xc0 == 64)
        }
        IpAddr::V6(a) => a.is_loopback() || a.is_unique_local() || a.is_unicast_link_local(),
    }
}

/// The addresses of this host that others could reach, each with its interface; of the loopback, its own. Link-local ones of IPv6
/// need a scope that no other host knows, and are left out.
pub fn interfaces() -> Vec<NetInterface> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `first` is written by the call, and freed below where it succeeded.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut at = first;
    while !at.is_null() {
        // SAFETY: a list that getifaddrs gave; each entry's name is a string that ends.
        let (entry, name) = unsafe { (&*at, CStr::from_ptr((*at).ifa_name)) };
        at = entry.ifa_next;
        let is_up = entry.ifa_flags & libc::IFF_UP as libc::c_uint != 0;
        if let Some(address) = address_of(entry.ifa_addr).filter(|a| is_up && !is_scoped(*a)) {
            out.push(crate::host::interface(&name.to_string_lossy(), address));
        }
    }
    // SAFETY: what getifaddrs gave, once.
    unsafe { libc::freeifaddrs(first) };
    out
}

fn is_scoped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(a) if a.is_unicast_link_local())
}

fn address_of(raw: *const libc::sockaddr) -> Option<IpAddr> {
    if raw.is_null() {
        return None;
    }
    // SAFETY: the family says which of the structures it is.
    unsafe {
        match libc::c_int::from((*raw).sa_family) {
            libc::AF_INET => {
                let v4 = &*raw.cast::<libc::sockaddr_in>();
                Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = &*raw.cast::<libc::sockaddr_in6>();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

/// The interface that has an address.
pub fn interface_of(all: &[NetInterface], address: SocketAddr) -> Option<&NetInterface> {
    let own = address.ip().to_canonical();
    all.iter().find(|i| i.address.parse() == Ok(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_have_to_be_named() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for private in [
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "127.0.0.1",
            "169.254.1.1",
            "100.64.0.1",
            "fd00::1",
            "::1",
            "::ffff:10.0.0.1",
        ] {
            assert_eq!(AllowedNetworks::Private.refuses(ip(private)), None, "{private}");
        }
        for public in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2001:db8::1", "::ffff:8.8.8.8"] {
            let why = AllowedNetworks::Private.refuses(ip(public)).unwrap();
            assert!(why.contains("public address"), "{why}");
        }
        let named = AllowedNetworks::of(&["203.0.113.0/24".into(), "2001:db8::/32".into()]).unwrap();
        assert_eq!(named.refuses(ip("203.0.113.9")), None);
        assert_eq!(named.refuses(ip("2001:db8:1::9")), None);
        assert!(named.refuses(ip("203.0.114.9")).is_some() && named.refuses(ip("10.0.0.1")).is_some());
        assert!(AllowedNetworks::of(&["none".into()]).unwrap().refuses(ip("10.0.0.1")).is_some());
        for bad in
            [vec!["none".to_owned(), "10.0.0.1".into()], vec!["10.0.0.0/33".into()], vec!["ten".into()]]
        {
            assert!(AllowedNetworks::of(&bad).is_err(), "{bad:?}");
        }
        assert!("0.0.0.0/0".parse::<Network>().unwrap().has(ip("8.8.8.8")));
    }

    #[test]
    fn this_host_has_a_loopback() {
        let all = interfaces();
        let lo = interface_of(&all, "127.0.0.1:9".parse().unwrap()).unwrap();
        assert_eq!((lo.name.as_str(), lo.speed_mbit_per_s), ("lo", None));
    }
}
