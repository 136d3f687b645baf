//! Where a server is: reading `http://node{1...4}:9000` into hosts and ports.

use std::fmt;

use plimsoll_model::pattern::expand_ranges;
use plimsoll_model::plan::shown_url;

/// One server: scheme, host and port. Has no path: S3 servers live at the root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// `https`: TLS is spoken.
    pub tls: bool,
    /// Name or address; an IPv6 address is without its brackets.
    pub host: String,
    /// Given, or the scheme's: 80 or 443.
    pub port: u16,
}

/// Why an endpoint cannot be used, and how to write it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "endpoint '{input}': {problem}; write it as http://HOST:PORT or https://HOST:PORT, for example http://127.0.0.1:9000 or http://node{{1...4}}:9000"
)]
pub struct EndpointError {
    /// As it was written.
    pub input: String,
    /// What is wrong with it, in words.
    pub problem: String,
}

impl Endpoint {
    /// Reads one URL without a pattern.
    pub fn parse(url: &str) -> Result<Self, EndpointError> {
        parse(url).map_err(|problem| EndpointError { input: shown_url(url), problem })
    }

    /// Reads a URL in which each `{a...b}` stands for the numbers a to b (with leading zeros kept: `{01...16}`).
    pub fn expand(pattern: &str) -> Result<Vec<Self>, EndpointError> {
        let urls =
            expand_ranges(pattern).map_err(|problem| EndpointError { input: shown_url(pattern), problem })?;
        urls.iter().map(|u| Self::parse(u)).collect()
    }

    /// Whether the host is an IP address, which cannot carry a bucket name in front.
    pub fn is_ip(&self) -> bool {
        self.host.parse::<std::net::IpAddr>().is_ok()
    }

    fn default_port(tls: bool) -> u16 {
        if tls { 443 } else { 80 }
    }

    /// The value of the `Host` header, with `bucket.` in front for virtual-host addressing. The default port is
    /// left out, as clients and therefore signatures do.
    pub fn host_header(&self, bucket: Option<&str>) -> String {
        let mut s = String::new();
        if let Some(b) = bucket {
            s.push_str(b);
            s.push('.');
        }
        if self.host.contains(':') {
            s.push('[');
            s.push_str(&self.host);
            s.push(']');
        } else {
            s.push_str(&self.host);
        }
        if self.port != Self::default_port(self.tls) {
            s.push(':');
            s.push_str(&self.port.to_string());
        }
        s
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.host_header(None))
    }
}

fn parse(url: &str) -> Result<Endpoint, String> {
    let (scheme, rest) = url.split_once("://").ok_or("it does not start with http:// or https://")?;
    let tls = match scheme.to_ascii_lowercase().as_str() {
        "http" => false,
        "https" => true,
        other => return Err(format!("'{other}' is not http or https")),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !path.trim_matches('/').is_empty() {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        return Err(format!("it has a path ('/{path}'), but the bucket is given separately"));
    }
    if authority.contains('@') {
        return Err("it contains a user name; credentials come from the environment or a profile".into());
    }
    if authority.contains(['?', '#']) {
        return Err("it has a query or fragment".into());
    }
    let (host, port) = split_port(authority)?;
    let port = match port {
        None => Endpoint::default_port(tls),
        Some(p) => match p.parse::<u16>() {
            Ok(n) if n > 0 && p.bytes().all(|c| c.is_ascii_digit()) => n,
            _ => return Err(format!("'{p}' is not a port from 1 to 65535")),
        },
    };
    Ok(Endpoint { tls, host, port })
}

fn split_port(authority: &str) -> Result<(String, Option<&str>), String> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or("the '[' of an IPv6 address is not closed")?;
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(format!("'{address}' is not an IPv6 address"));
        }
        return match after.strip_prefix(':') {
            None if after.is_empty() => Ok((address.to_owned(), None)),
            Some(p) => Ok((address.to_owned(), Some(p))),
            None => Err(format!("'{after}' after the address is not a port")),
        };
    }
    let (host, port) = match authority.split_once(':') {
        Some((h, p)) => (h, Some(p)),
        None => (authority, None),
    };
    if port.is_some_and(|p| p.contains(':')) {
        return Err("an IPv6 address needs brackets: http://[::1]:9000".into());
    }
    let ok = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'_');
    if host.is_empty() || !host.bytes().all(ok) {
        return Err(format!("'{host}' is not a host name"));
    }
    Ok((host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn good_ones() {
        let e = Endpoint::parse("http://127.0.0.1:9000").unwrap();
        assert_eq!((e.tls, e.host.as_str(), e.port), (false, "127.0.0.1", 9000));
        assert_eq!(e.to_string(), "http://127.0.0.1:9000");
        let e = Endpoint::parse("https://S3.Example.com/").unwrap();
        assert_eq!((e.tls, e.host.as_str(), e.port), (true, "s3.example.com", 443));
        assert_eq!(e.host_header(Some("b")), "b.s3.example.com");
        let e = Endpoint::parse("http://[::1]:9000").unwrap();
        assert_eq!((e.host.as_str(), e.is_ip()), ("::1", true));
        assert_eq!(e.host_header(None), "[::1]:9000");
        assert_eq!(Endpoint::parse("https://[fe80::1]").unwrap().port, 443);
    }

    #[test]
    fn bad_ones_say_why() {
        for (url, why) in [
            ("127.0.0.1:9000", "does not start with http://"),
            ("ftp://a", "not http or https"),
            ("http://", "not a host name"),
            ("http://a:0", "port"),
            ("http://a:+1", "port"),
            ("http://a:99999", "port"),
            ("http://a/bucket", "path"),
            ("http://u:p@a", "user name"),
            ("http://::1:9000", "brackets"),
            ("http://[::1", "not closed"),
            ("http://[::1]x", "not a port"),
            ("http://a b", "host name"),
        ] {
            let e = Endpoint::parse(url).unwrap_err().to_string();
            assert!(e.contains(why), "{url}: {e}");
        }
        for p in [
            "http://a{1..4}",
            "http://a{4...1}",
            "http://a{1...4",
            "http://a}",
            "http://a{x...y}",
            "http://{1...99999}",
        ] {
            assert!(Endpoint::expand(p).is_err(), "{p}");
        }
    }

    #[test]
    fn ranges_expand_in_order() {
        let all = |p: &str| Endpoint::expand(p).unwrap().iter().map(|e| e.to_string()).collect::<Vec<_>>();
        assert_eq!(all("http://n{1...3}:9000"), ["http://n1:9000", "http://n2:9000", "http://n3:9000"]);
        assert_eq!(all("http://n{09...10}:90{00...01}").len(), 4);
        assert_eq!(all("http://n{09...10}:9000"), ["http://n09:9000", "http://n10:9000"]);
        assert_eq!(all("http://n:9000"), ["http://n:9000"]);
    }

    proptest! {
        #[test]
        fn never_panics(s in "\\PC{0,60}") {
            let _ = Endpoint::expand(&s);
        }
    }
}
