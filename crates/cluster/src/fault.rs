//! What is made worse while it runs, and good again: `drive:2`, `link:3=20mbit`, `node:1=down`, `node:1=good`.

use std::fmt;
use std::str::FromStr;

use plimsoll_model::units::{BytesRate, LinkRate};

const FORM: &str = "write drive:N, link:N or node:N, with =down (or nothing), =good, or a rate: link:3=20mbit, drive:2=5MB/s";

/// What becomes of one thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Becomes<R> {
    /// As it was at the start.
    Good,
    /// Of no use: a drive answers with errors, a link carries nothing, a node's server is gone.
    Down,
    /// Slower, or faster.
    Rate(R),
}

/// One thing, numbered from 1, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BoxFault {
    /// Drives are numbered node by node.
    Drive(u32, Becomes<BytesRate>),
    /// Of the node of this number, both ways.
    Link(u32, Becomes<LinkRate>),
    /// Its server.
    Node(u32, Becomes<std::convert::Infallible>),
}

impl FromStr for BoxFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (thing, becomes) = text.trim().split_once('=').unwrap_or((text.trim(), "down"));
        let (kind, number) = thing.split_once(':').ok_or_else(|| format!("'{text}' has no ':': {FORM}"))?;
        let number = number.parse::<u32>().ok().filter(|n| *n > 0);
        let number = number.ok_or_else(|| format!("'{text}' has no number from 1 behind ':': {FORM}"))?;
        match kind {
            "drive" => {
                Ok(Self::Drive(number, becomes_of(becomes, |t| t.parse().map_err(|e| format!("{e}")))?))
            }
            "link" => Ok(Self::Link(number, becomes_of(becomes, |t| t.parse().map_err(|e| format!("{e}")))?)),
            "node" => {
                let neither = |_: &str| Err(format!("'{text}': a node is down or good: {FORM}"));
                Ok(Self::Node(number, becomes_of(becomes, neither)?))
            }
            _ => Err(format!("'{text}' is of no drive, link or node: {FORM}")),
        }
    }
}

fn becomes_of<R>(text: &str, rate: impl Fn(&str) -> Result<R, String>) -> Result<Becomes<R>, String> {
    match text {
        "good" => Ok(Becomes::Good),
        "down" => Ok(Becomes::Down),
        other => rate(other).map(Becomes::Rate),
    }
}

impl fmt::Display for BoxFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drive(n, b) => write!(f, "drive {n} is {}", words(b)),
            Self::Link(n, b) => write!(f, "link {n} is {}", words(b)),
            Self::Node(n, Becomes::Down) => write!(f, "node {n} is down"),
            Self::Node(n, _) => write!(f, "node {n} is as it was"),
        }
    }
}

fn words<R: fmt::Display>(becomes: &Becomes<R>) -> String {
    match becomes {
        Becomes::Good => "as it was".into(),
        Becomes::Down => "down".into(),
        Becomes::Rate(r) => format!("at {r}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_and_a_wrong_one_tells_the_form() {
        let of = |t: &str| t.parse::<BoxFault>();
        assert_eq!(of("drive:2"), Ok(BoxFault::Drive(2, Becomes::Down)));
        assert_eq!(of("drive:2=5MB/s"), Ok(BoxFault::Drive(2, Becomes::Rate(BytesRate(5e6)))));
        assert_eq!(of("link:3=20mbit"), Ok(BoxFault::Link(3, Becomes::Rate(LinkRate(2e7)))));
        assert_eq!(of("node:1=good"), Ok(BoxFault::Node(1, Becomes::Good)));
        assert_eq!(of("link:3=20mbit").unwrap().to_string(), "link 3 is at 20mbit");
        for not in ["", "drive", "drive:", "drive:0", "drive:x", "disk:1", "node:1=20mbit", "link:1=5MB/s"] {
            assert!(!of(not).unwrap_err().is_empty(), "{not}");
        }
        assert!(of("disk:1").unwrap_err().contains("link:3=20mbit"));
    }
}
