//! Hosts as they are written on a command line: `user@node{1...8}`, several after commas.

use std::collections::BTreeSet;

use plimsoll_bus::subjects::LONGEST_NAME;

/// More are a typing error, and not a fleet.
const MOST: usize = 10_000;

/// All of them, each once, in their order; in words what cannot be read.
pub fn expand(patterns: &[String]) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for one in patterns.iter().flat_map(|p| p.split(',')).map(str::trim).filter(|p| !p.is_empty()) {
        numbered(one, &mut all)?;
        if all.len() > MOST {
            return Err(format!("'{one}' makes more than {MOST} hosts"));
        }
    }
    let mut seen = BTreeSet::new();
    match all.iter().find(|h| !is_host(h) || !seen.insert(h.as_str())) {
        Some(h) if !is_host(h) => Err(format!("'{h}' is no host")),
        Some(h) => Err(format!("'{h}' is named twice")),
        None => Ok(all),
    }
}

/// What ssh would take for a flag, and what a shell would read otherwise, is no host.
fn is_host(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.@:/[]%".contains(c);
    !text.starts_with('-') && text.chars().all(fits) && !name_of(text).is_empty()
}

/// Braces with a range of numbers, one after the other.
fn numbered(pattern: &str, all: &mut Vec<String>) -> Result<(), String> {
    let wrong = || format!("'{pattern}': a range is written {{1...8}}");
    let Some((before, rest)) = pattern.split_once('{') else {
        all.push(pattern.to_owned());
        return Ok(());
    };
    let (range, after) = rest.split_once('}').ok_or_else(wrong)?;
    let (first, last) = range.split_once("...").ok_or_else(wrong)?;
    let width = if first.starts_with('0') { first.len() } else { 0 };
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let (low, high) = (number(first)?, number(last)?);
    if low > high || (high - low) as usize >= MOST {
        return Err(wrong());
    }
    (low..=high).try_for_each(|n| numbered(&format!("{before}{n:0width$}{after}"), all))
}

/// The host alone, without user, scheme and port.
fn name_of(host: &str) -> &str {
    let host = host.strip_prefix("ssh://").unwrap_or(host);
    let host = host.rsplit_once('@').map_or(host, |(_, h)| h).trim_end_matches('/');
    if let Some((v6, _)) = host.strip_prefix('[').and_then(|h| h.split_once(']')) {
        return v6;
    }
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') && port.chars().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    }
}

/// A name for the agent of each host, no two alike: the first part of the host's, or all of it where that is taken.
pub fn agent_names(hosts: &[String]) -> Vec<String> {
    let fitting = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let mut taken = BTreeSet::new();
    let mut one = |host: &String| {
        let name = name_of(host);
        let is_number = name.chars().all(|c| c.is_ascii_digit() || ".:[]".contains(c));
        let short = if is_number { name } else { name.split('.').next().unwrap_or(name) };
        let clean = |text: &str| {
            let text: String = text.chars().map(fitting).take(LONGEST_NAME - 6).collect();
            let text = text.trim_matches('-').to_owned();
            if text.is_empty() { "agent".to_owned() } else { text }
        };
        let numbered = (2..).map(|n| format!("{}-{n}", clean(short)));
        let free = [clean(short), clean(name)].into_iter().chain(numbered).find(|n| !taken.contains(n));
        let free = free.unwrap_or_default();
        taken.insert(free.clone());
        free
    };
    hosts.iter().map(&mut one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(patterns: &[&str]) -> Result<Vec<String>, String> {
        expand(&patterns.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn ranges_and_lists_are_all_their_hosts() {
        assert_eq!(
            of(&["me@n{1...3},x", "ssh://y:22"]).unwrap(),
            ["me@n1", "me@n2", "me@n3", "x", "ssh://y:22"]
        );
        assert_eq!(of(&["r{1...2}n{08...10}"]).unwrap().join(" "), "r1n08 r1n09 r1n10 r2n08 r2n09 r2n10");
    }

    #[test]
    fn what_is_no_host_is_told() {
        for bad in [
            "n{1..3}",
            "n{3...1}",
            "n{1...3",
            "n{a...b}",
            "-oProxyCommand=x",
            "a;b",
            "a b",
            "me@",
            "n{0...4000000000}",
        ] {
            assert!(of(&[bad]).is_err(), "{bad}");
        }
        assert!(of(&["a,b", "a"]).unwrap_err().contains("twice"));
    }

    #[test]
    fn each_agent_has_a_name_of_its_own() {
        let hosts = of(&["me@node1.lab", "node1.other", "node1", "10.0.0.7", "ssh://me@[::1]:2222"]).unwrap();
        let names = agent_names(&hosts);
        assert_eq!(names, ["node1", "node1-other", "node1-2", "10-0-0-7", "1"]);
        names.iter().for_each(|n| plimsoll_bus::subjects::check_name("agent", n).unwrap());
    }
}
