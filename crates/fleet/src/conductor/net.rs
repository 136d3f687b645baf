//! Agents as the hosts of a network test.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plimsoll_crew::CrewError;
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_model::Event;
use plimsoll_model::net::NetHost;
use plimsoll_net::wire::{MOST_ADDRESSES, NetAnswer, NetOrder};
use plimsoll_net::{NetError, NetHosts};
use plimsoll_setup::{Interrupt, SetupError};

use super::ask::{Barrier, Came};
use super::link::OpenLink;
use super::recruit::{Chosen, Fleet};
use super::roll_call::Present;
use crate::wire::order::Assignment;
use crate::wire::tell::WorkDone;

/// Agents that were hired for a network test. Dropped, they are let go.
#[derive(Debug)]
pub struct FleetNet {
    open: OpenLink,
    chosen: Vec<Present>,
    interrupt: Interrupt,
    /// As they described themselves.
    described: BTreeMap<usize, NetHost>,
}

impl Fleet {
    /// Hires agents for a network test: clients and servers alike. `tell` is told what happens, a sentence each.
    pub fn net(
        &self,
        run: &str,
        interrupt: &Interrupt,
        tell: &mut dyn FnMut(String),
    ) -> Result<FleetNet, CrewError> {
        let Chosen { agents: chosen, silent } = self.chosen_of(|_| true)?;
        if let Some(who) = silent {
            tell(format!("{who}; they have no part in this test"));
        }
        if chosen.len() < 2 {
            return Err(CrewError::input(
                format!("there is one agent only, {}, and no network between it and itself", chosen[0].name),
                "Let another machine join: `plimsoll fleet token` prints the token for it",
            ));
        }
        let mut events = |event: Event| {
            if let Event::Doing(text) | Event::Message(text) = event {
                tell(text);
            }
        };
        let open = self.hire(&chosen, run, "", interrupt, &mut events)?;
        Ok(FleetNet { open, chosen, interrupt: interrupt.clone(), described: BTreeMap::new() })
    }
}

impl FleetNet {
    /// Those that store.
    pub fn servers(&self) -> Vec<usize> {
        (0..self.chosen.len()).filter(|i| self.chosen[*i].is_server()).collect()
    }

    /// How each was marked.
    pub fn labels(&self) -> Vec<Vec<(String, String)>> {
        let of = |p: &Present| p.labels().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        self.chosen.iter().map(of).collect()
    }
}

impl NetHosts for FleetNet {
    fn names(&self) -> Vec<String> {
        self.chosen.iter().map(|p| p.name.clone()).collect()
    }

    fn ask(&mut self, orders: Vec<(usize, NetOrder)>) -> Result<Vec<(usize, NetAnswer)>, NetError> {
        let jobs = orders.into_iter().map(|(host, order)| (host, Assignment::Net(Box::new(order)))).collect();
        // Who takes long runs a stage, which was told before.
        let mut quiet = |_: Event| {};
        let came = self.open.link.ask(jobs, Barrier::new("network test", &self.interrupt, &mut quiet));
        let came = came.map_err(|e| match e {
            CrewError::Setup(SetupError::Interrupted) => NetError::Interrupted,
            CrewError::Setup(SetupError::Input { problem, remedy }) => NetError::input(problem, remedy),
            other => NetError::input(other.to_string(), ""),
        })?;
        let mut out = Vec::new();
        for (host, came) in came {
            let name = || self.chosen[host].name.clone();
            match came {
                Came::Answer(Ok(WorkDone::Net(answer))) => out.push((host, *answer)),
                Came::Answer(Ok(_)) => {
                    return Err(NetError::input(
                        format!("agent {} answers something else", name()),
                        "Use the same version",
                    ));
                }
                Came::Answer(Err(r)) => {
                    return Err(NetError::input(format!("agent {}: {}", name(), r.problem), r.remedy));
                }
                Came::Lost(why) => return Err(NetError::Lost { host: format!("agent {}", name()), why }),
            }
        }
        for (host, answer) in &out {
            if let NetAnswer::Described { host: described, .. } = answer {
                self.described.insert(*host, (**described).clone());
            }
        }
        Ok(out)
    }

    fn ahead_ns(&self, host: usize) -> i128 {
        let clock = self.open.link.lock().agents[host].fit.at(monotonic_ns());
        i128::from(clock.map_or(0, |c| c.offset_ns))
    }

    fn dialler(&self, from: usize, _to: usize) -> usize {
        from
    }

    fn places(&self, dialler: usize, waiter: usize, port: Option<u16>) -> (Vec<IpAddr>, u16) {
        let of = |host: usize| self.described.get(&host);
        (of(dialler).zip(of(waiter)).map_or_else(Vec::new, |(d, w)| addresses(d, w)), port.unwrap_or(0))
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_requested()
    }
}

/// What a host tells of itself may be anything: of more interfaces than any has nothing is read.
const INTERFACES: usize = 1024;

fn all_of(host: &NetHost) -> Vec<IpAddr> {
    host.interfaces.iter().take(INTERFACES).filter_map(|i| i.address.parse().ok()).collect()
}

/// Bits that two addresses have in common from the left; of different families none.
fn in_common(a: IpAddr, b: IpAddr) -> u32 {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => 0,
    }
}

/// Where a host is likely to be reached by another, the likeliest first: what is closest to an address of the other. An address that both
/// have (a bridge for containers) is none of the other host, unless the two are one machine. So many as are tried.
fn addresses(dialler: &NetHost, waiter: &NetHost) -> Vec<IpAddr> {
    let own = all_of(dialler);
    let is_one = !dialler.boot_id.is_empty() && dialler.boot_id == waiter.boot_id;
    let theirs = all_of(waiter);
    let mut out: Vec<IpAddr> =
        theirs.iter().copied().filter(|a| !a.is_loopback() && !own.contains(a)).collect();
    out.sort_by_key(|a| {
        std::cmp::Reverse(own.iter().filter(|o| !o.is_loopback()).map(|o| in_common(*o, *a)).max())
    });
    if is_one {
        // Two agents of one machine have its addresses in common; of these any will do.
        out.extend(theirs.into_iter().filter(|a| own.contains(a) && a.is_ipv4()));
    }
    out.truncate(MOST_ADDRESSES);
    out
}

#[cfg(test)]
mod tests {
    use plimsoll_model::net::NetInterface;

    use super::*;

    fn host(boot_id: &str, addresses: &[&str]) -> NetHost {
        let interface = |a: &&str| NetInterface { address: (*a).to_owned(), ..NetInterface::default() };
        NetHost {
            boot_id: boot_id.into(),
            interfaces: addresses.iter().map(interface).collect(),
            ..NetHost::default()
        }
    }

    #[test]
    fn the_closest_address_is_tried_first_and_ones_own_never() {
        let a = host("1", &["127.0.0.1", "172.17.0.1", "192.168.5.9", "10.0.0.1"]);
        let b = host("2", &["127.0.0.1", "172.17.0.1", "203.0.113.5", "10.0.0.2", "192.168.7.1"]);
        let text: Vec<String> = addresses(&a, &b).iter().map(ToString::to_string).collect();
        assert_eq!(text, ["10.0.0.2", "192.168.7.1", "203.0.113.5"]);
        let same = addresses(&a, &host("1", &["127.0.0.1", "10.0.0.1"]));
        assert_eq!(same, [IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 1])]);
        assert!(addresses(&a, &host("2", &["127.0.0.1"])).is_empty());
    }

    #[test]
    fn of_a_host_that_tells_of_thousands_the_likeliest_few_are_tried() {
        let many: Vec<String> = (0..4000).map(|n| format!("10.9.{}.{}", n / 250, n % 250)).collect();
        let mut told: Vec<&str> = vec!["10.0.0.2"];
        told.extend(many.iter().map(String::as_str));
        let tried = addresses(&host("1", &["10.0.0.1"]), &host("2", &told));
        assert_eq!((tried.len(), tried[0]), (MOST_ADDRESSES, IpAddr::from([10, 0, 0, 2])));
    }
}
