//! All agents of a run, as each of them is told: packed once, and the same for all. As plain text the roll of a thousand would be a hundred
//! megabytes, told to each of a thousand.

use std::io::Read;

use plimsoll_lower::Agent;
use serde::{Deserialize, Serialize};

use super::order::Seat;

/// Names of many machines are much alike: more effort gains nothing.
const LEVEL: i32 = 3;
/// No roll is longer: who says so is not believed. (A choice: a hundred bytes for each of half a million agents.)
const LONGEST: u64 = 64 << 20;

/// In order of the agents' numbers: JSON of [`Seat`]s, zstd, hex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PackedRoll(String);

impl PackedRoll {
    /// Of these agents.
    pub fn of(roll: &[Agent]) -> Self {
        let seats: Vec<Seat> = roll.iter().map(Seat::from).collect();
        let plain = serde_json::to_vec(&seats).expect("plain data is always JSON");
        let packed = zstd::bulk::compress(&plain, LEVEL).expect("what is in memory can be compressed");
        Self(packed.iter().map(|b| format!("{b:02x}")).collect())
    }

    /// The agents; `None`: it is no roll.
    pub fn open(&self) -> Option<Vec<Agent>> {
        let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        };
        let packed: Vec<u8> = self.0.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?;
        let mut plain = Vec::new();
        let mut unpacked = zstd::stream::read::Decoder::new(&packed[..]).ok()?.take(LONGEST + 1);
        unpacked.read_to_end(&mut plain).ok()?;
        if plain.len() as u64 > LONGEST {
            return None;
        }
        let seats: Vec<Seat> = serde_json::from_slice(&plain).ok()?;
        Some(seats.into_iter().map(Agent::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(n: u32) -> Vec<Agent> {
        let one = |n: u32| Agent {
            name: format!("lg-{n}"),
            host: format!("node{n}.example.net"),
            cores: n % 7,
            beside: (0..n % 3).map(|t| format!("t{t}")).collect(),
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn a_roll_comes_back_and_a_thousand_are_few_bytes() {
        for n in [0, 1, 1000] {
            let packed = PackedRoll::of(&agents(n));
            let said = serde_json::to_string(&packed).unwrap();
            assert_eq!(serde_json::from_str::<PackedRoll>(&said).unwrap().open().unwrap(), agents(n));
            assert!(said.len() < 20_000, "{} bytes", said.len());
        }
    }

    #[test]
    fn what_is_no_roll_is_none() {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let bomb = zstd::bulk::compress(&vec![b' '; LONGEST as usize + 1], 3).unwrap();
        let texts = ["".into(), "0".into(), "zz".into(), "00ff".into(), "\u{e4}".into(), hex(&bomb)];
        texts.into_iter().for_each(|text: String| assert_eq!(PackedRoll(text).open(), None));
    }
}
