//! Under what addresses other machines may reach this one. A token names several, the likeliest first: which one leads here, only the
//! other machine can find out.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// More would make the token long, and the search for the right one, too.
const MOST: usize = 8;

/// What a broker that listens on `listen` can be reached under.
pub fn of_this_machine(listen: SocketAddr) -> Vec<String> {
    if !listen.ip().is_unspecified() {
        return vec![listen.ip().to_string()];
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let v6 = if listen.is_ipv6() { in_if_inet6(&read("/proc/net/if_inet6")) } else { BTreeSet::new() };
    let mut hosts: Vec<String> = towards_others().into_iter().map(|ip| ip.to_string()).collect();
    hosts.extend(in_fib_trie(&read("/proc/net/fib_trie")).iter().map(ToString::to_string));
    hosts.extend(v6.iter().map(ToString::to_string));
    hosts.push(rustix::system::uname().nodename().to_string_lossy().into_owned());
    let mut seen = BTreeSet::new();
    hosts.retain(|h| !h.is_empty() && seen.insert(h.clone()));
    hosts.truncate(MOST - 1);
    // For agents on this machine, where it has no network.
    hosts.push(Ipv4Addr::LOCALHOST.to_string());
    hosts
}

/// The address from which this machine would speak to the world: nothing is sent for this question.
fn towards_others() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address for documentation, which nobody has (RFC 5737).
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified() && !ip.is_loopback()).then_some(ip)
}

/// This machine's own addresses in the kernel's table of routes: what stands above a line `/32 host LOCAL`.
fn in_fib_trie(text: &str) -> BTreeSet<Ipv4Addr> {
    let mut found = BTreeSet::new();
    let mut last = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(last.filter(|ip| !ip.is_loopback() && !ip.is_link_local()));
        }
    }
    found
}

/// Global addresses (scope 00) among the interfaces'.
fn in_if_inet6(text: &str) -> BTreeSet<Ipv6Addr> {
    let global = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let bits = u128::from_str_radix(fields.first()?, 16).ok()?;
        (fields.get(3) == Some(&"00")).then(|| Ipv6Addr::from(bits))
    };
    text.lines().filter_map(global).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIE: &str = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.1.0.0/16 2 0 2
        |-- 10.1.0.0
           /16 link UNICAST
        |-- 10.1.0.7
           /32 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 169.254.3.4
        /32 host LOCAL
     |-- 10.1.255.255
        /32 link BROADCAST
";

    #[test]
    fn the_kernel_is_asked_for_its_addresses() {
        let found: Vec<_> = in_fib_trie(TRIE).into_iter().collect();
        assert_eq!(found, [Ipv4Addr::new(10, 1, 0, 7)]);
        let v6 = "20010db8000000000000000000000007 02 40 00 80     eth0\n\
                  fe800000000000000000000000000001 02 40 20 80     eth0\n\
                  00000000000000000000000000000001 01 80 10 80       lo\nx\n";
        let found: Vec<_> = in_if_inet6(v6).into_iter().map(|ip| ip.to_string()).collect();
        assert_eq!(found, ["2001:db8::7"]);
    }

    #[test]
    fn who_listens_on_one_address_is_reached_there_only() {
        assert_eq!(of_this_machine("10.1.0.7:4222".parse().unwrap()), ["10.1.0.7"]);
        let all = of_this_machine("0.0.0.0:0".parse().unwrap());
        assert_eq!(all.last().map(String::as_str), Some("127.0.0.1"));
        assert!(all.len() <= MOST);
    }
}
