//! Who sends to whom, and what at the same time. Pure: patterns and hosts to stages.

use std::str::FromStr;

/// What is asked of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetPattern {
    /// Each host with each other one, in rounds of disjoint pairs: a direction at a time, then both at once.
    Pairs,
    /// To each host from all others at once, one after the other: what it takes in.
    In,
    /// From each host to all others.
    Out,
    /// Each to each at once.
    AllToAll,
    /// Half of the hosts with the other half, each with one, both directions at once; halves drawn several times.
    Bisection,
    /// From all clients to all servers, and back: as writes and reads go.
    Storage,
    /// Among the servers, each to each: as replicas go.
    EastWest,
}

impl NetPattern {
    /// All of them, in the order in which they are done.
    pub const ALL: [Self; 7] =
        [Self::Pairs, Self::In, Self::Out, Self::AllToAll, Self::Bisection, Self::Storage, Self::EastWest];

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::In => "in",
            Self::Out => "out",
            Self::AllToAll => "all-to-all",
            Self::Bisection => "bisection",
            Self::Storage => "storage",
            Self::EastWest => "east-west",
        }
    }
}

impl FromStr for NetPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|p| p.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|p| p.name()).collect();
            format!("'{text}' is no pattern; there are {}", names.join(", "))
        })
    }
}

/// Lanes that are measured together: sender and receiver of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStage {
    /// What it belongs to: a pattern's name, or a part of one (`pairs-together`, `to-servers`).
    pub pattern: &'static str,
    /// In words.
    pub title: String,
    /// From, and to.
    pub lanes: Vec<(usize, usize)>,
}

/// What a cap on each host leaves a lane, in the cap's unit: no end has more than the cap over all its lanes of that direction.
pub fn part_of_cap(lanes: &[(usize, usize)], lane: (usize, usize), cap: f64) -> f64 {
    let out = lanes.iter().filter(|l| l.0 == lane.0).count();
    let into = lanes.iter().filter(|l| l.1 == lane.1).count();
    cap / out.max(into).max(1) as f64
}

/// How often halves are drawn.
pub const HALVES: usize = 5;

/// The stages of a pattern. `servers`: who stores, of all hosts; a pattern that these hosts cannot make has none.
pub fn stages(pattern: NetPattern, names: &[String], servers: &[usize], seed: u64) -> Vec<PlannedStage> {
    let all: Vec<usize> = (0..names.len()).collect();
    let others = |host: usize| all.iter().copied().filter(move |h| *h != host);
    let one = |pattern, title: String, lanes| PlannedStage { pattern, title, lanes };
    match pattern {
        NetPattern::Pairs => pairs(names),
        NetPattern::In | NetPattern::Out if all.len() < 3 => Vec::new(),
        NetPattern::In => all
            .iter()
            .map(|to| {
                one("in", format!("all to {}", names[*to]), others(*to).map(|from| (from, *to)).collect())
            })
            .collect(),
        NetPattern::Out => all
            .iter()
            .map(|from| {
                one("out", format!("{} to all", names[*from]), others(*from).map(|to| (*from, to)).collect())
            })
            .collect(),
        NetPattern::AllToAll if all.len() < 3 => Vec::new(),
        NetPattern::AllToAll => vec![one("all-to-all", "each to each".into(), each_to_each(&all))],
        NetPattern::Bisection => bisections(names, seed),
        NetPattern::Storage => storage(&all, servers),
        NetPattern::EastWest if servers.len() < 2 => Vec::new(),
        NetPattern::EastWest => vec![one("east-west", "servers, each to each".into(), each_to_each(servers))],
    }
}

fn each_to_each(hosts: &[usize]) -> Vec<(usize, usize)> {
    let of = |from: &usize| {
        hosts.iter().filter(move |to| *to != from).map(move |to| (*from, *to)).collect::<Vec<_>>()
    };
    hosts.iter().flat_map(of).collect()
}

fn storage(all: &[usize], servers: &[usize]) -> Vec<PlannedStage> {
    let clients: Vec<usize> = all.iter().copied().filter(|h| !servers.contains(h)).collect();
    if clients.is_empty() || servers.is_empty() {
        return Vec::new();
    }
    let to: Vec<_> = clients.iter().flat_map(|c| servers.iter().map(move |s| (*c, *s))).collect();
    let back = to.iter().map(|(c, s)| (*s, *c)).collect();
    vec![
        PlannedStage { pattern: "to-servers", title: "clients to servers".into(), lanes: to },
        PlannedStage { pattern: "from-servers", title: "servers to clients".into(), lanes: back },
    ]
}

/// The rounds of a tournament (the circle method): in each one every host meets one other at the most, in all of them each other once.
fn rounds(hosts: usize) -> Vec<Vec<(usize, usize)>> {
    let seats = hosts + hosts % 2;
    let place = |round: usize, seat: usize| if seat == 0 { 0 } else { (seat - 1 + round) % (seats - 1) + 1 };
    let round = |round: usize| {
        let meet = (0..seats / 2).map(|i| (place(round, i), place(round, seats - 1 - i)));
        meet.filter(|(a, b)| *a < hosts && *b < hosts).map(|(a, b)| (a.min(b), a.max(b))).collect()
    };
    (0..seats.saturating_sub(1)).map(round).collect()
}

fn pairs(names: &[String]) -> Vec<PlannedStage> {
    let rounds = rounds(names.len());
    let n = rounds.len();
    let mut out = Vec::new();
    for (i, forward) in rounds.into_iter().enumerate() {
        let backward: Vec<_> = forward.iter().map(|(a, b)| (*b, *a)).collect();
        let both: Vec<_> = forward.iter().chain(&backward).copied().collect();
        // What such a pair carried is not what it carries alone: others are on the network meanwhile.
        let pairs = forward.len();
        let round =
            |words: &str| format!("round {} of {n}, {pairs} disjoint pairs at the same time, {words}", i + 1);
        let title = |lanes: &[(usize, usize)], words: &str| match lanes {
            [(a, b)] => format!("{} to {}", names[*a], names[*b]),
            _ => round(words),
        };
        let together = match &forward[..] {
            [(a, b)] => format!("{} and {}, both ways at once", names[*a], names[*b]),
            _ => round("both ways at once"),
        };
        out.push(PlannedStage { pattern: "pairs", title: title(&forward, "one way"), lanes: forward });
        out.push(PlannedStage {
            pattern: "pairs",
            title: title(&backward, "the other way"),
            lanes: backward,
        });
        out.push(PlannedStage { pattern: "pairs-together", title: together, lanes: both });
    }
    out
}

fn bisections(names: &[String], seed: u64) -> Vec<PlannedStage> {
    let n = names.len();
    if n < 4 {
        return Vec::new();
    }
    let mut state = seed;
    let mut next = move || {
        // SplitMix64: the halves are those of the seed, on any machine.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..HALVES)
        .map(|draw| {
            let mut order: Vec<usize> = (0..n).collect();
            for i in (1..n).rev() {
                order.swap(i, (next() % (i as u64 + 1)) as usize);
            }
            let half = n / 2;
            let across = (0..half).map(|i| (order[i], order[half + i]));
            let lanes = across.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
            PlannedStage {
                pattern: "bisection",
                title: format!("halves, draw {} of {HALVES}", draw + 1),
                lanes,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("h{i}")).collect()
    }

    #[test]
    fn each_pair_meets_once_each_way_and_no_host_twice_in_a_round() {
        for n in 2..10 {
            let all = stages(NetPattern::Pairs, &names(n), &[], 1);
            let apart: Vec<_> = all.iter().filter(|s| s.pattern == "pairs").collect();
            let lanes: Vec<_> = apart.iter().flat_map(|s| s.lanes.clone()).collect();
            let set: BTreeSet<_> = lanes.iter().copied().collect();
            assert_eq!((lanes.len(), set.len()), (n * (n - 1), n * (n - 1)), "{n}");
            for stage in apart {
                let hosts: Vec<_> = stage.lanes.iter().flat_map(|(a, b)| [*a, *b]).collect();
                assert_eq!(hosts.len(), hosts.iter().collect::<BTreeSet<_>>().len());
            }
        }
        let two = stages(NetPattern::Pairs, &names(2), &[], 1);
        let titles: Vec<_> = two.iter().map(|s| s.title.as_str()).collect();
        assert_eq!(titles, ["h0 to h1", "h1 to h0", "h0 and h1, both ways at once"]);
    }

    #[test]
    fn a_round_says_how_many_pairs_are_at_the_same_time() {
        let titles =
            |n| stages(NetPattern::Pairs, &names(n), &[], 1).into_iter().map(|s| s.title).collect::<Vec<_>>();
        assert_eq!(
            titles(4)[..3],
            [
                "round 1 of 3, 2 disjoint pairs at the same time, one way",
                "round 1 of 3, 2 disjoint pairs at the same time, the other way",
                "round 1 of 3, 2 disjoint pairs at the same time, both ways at once"
            ]
        );
        assert_eq!(titles(3)[0], "h1 to h2");
    }

    #[test]
    fn the_other_patterns_are_what_their_names_say() {
        let four = names(4);
        let all = stages(NetPattern::AllToAll, &four, &[], 1);
        assert_eq!(all[0].lanes.len(), 12);
        let into = stages(NetPattern::In, &four, &[], 1);
        assert!(into.len() == 4 && into[2].lanes == [(0, 2), (1, 2), (3, 2)]);
        let halves = stages(NetPattern::Bisection, &names(5), &[], 7);
        assert_eq!(halves.len(), HALVES);
        for stage in &halves {
            assert_eq!(stage.lanes.len(), 4);
            assert_eq!(stage.lanes.iter().map(|(a, _)| *a).collect::<BTreeSet<_>>().len(), 4);
        }
        assert_eq!(halves, stages(NetPattern::Bisection, &names(5), &[], 7), "the seed's");
        assert_ne!(halves, stages(NetPattern::Bisection, &names(5), &[], 8));
        let storage = stages(NetPattern::Storage, &four, &[2, 3], 1);
        assert_eq!(storage[0].lanes, [(0, 2), (0, 3), (1, 2), (1, 3)]);
        assert_eq!(stages(NetPattern::EastWest, &four, &[2, 3], 1)[0].lanes, [(2, 3), (3, 2)]);
        for few in [
            NetPattern::In,
            NetPattern::Out,
            NetPattern::AllToAll,
            NetPattern::Bisection,
            NetPattern::Storage,
            NetPattern::EastWest,
        ] {
            assert!(stages(few, &names(2), &[], 1).is_empty(), "{few:?}");
        }
        assert!("ring".parse::<NetPattern>().unwrap_err().contains("all-to-all"));
    }
}
