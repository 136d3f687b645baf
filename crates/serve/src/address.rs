//! Where a server listens: this machine alone, unless it is told otherwise.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// An address and a port; port 0 is any that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl ListenAddress {
    /// Of this machine alone.
    pub const fn loopback(port: u16) -> Self {
        Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    /// Whether nobody else reaches it.
    pub fn is_loopback(&self) -> bool {
        self.0.ip().is_loopback()
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    /// `PORT`, `ADDRESS` or `ADDRESS:PORT`. Names are not looked up: which address one stands for may change.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.replace("localhost", "127.0.0.1");
        if let Ok(port) = text.parse::<u16>() {
            return Ok(Self::loopback(port));
        }
        let bare = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let whole = text.parse::<SocketAddr>();
        bare.map(|ip| Self(SocketAddr::new(ip, 0)))
            .or(whole.map(Self))
            .map_err(|_| "write PORT, ADDRESS or ADDRESS:PORT, for example 127.0.0.1:9741".to_owned())
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        let of = |t: &str| t.parse::<ListenAddress>().map(|a| a.to_string());
        assert_eq!(of("9741").unwrap(), "127.0.0.1:9741");
        assert_eq!(of("localhost:1").unwrap(), "127.0.0.1:1");
        assert_eq!(of("0.0.0.0").unwrap(), "0.0.0.0:0");
        assert_eq!(of("[::1]:80").unwrap(), "[::1]:80");
        assert_eq!(of("::").unwrap(), "[::]:0");
        assert!(of("bench.example:80").unwrap_err().contains("ADDRESS:PORT"));
        assert!(!"0.0.0.0".parse::<ListenAddress>().unwrap().is_loopback());
    }
}
