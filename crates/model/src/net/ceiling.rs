//! What a network test says as a ceiling of later results, and when it may not.

use super::{NetLane, NetRecord, NetStage};
use crate::finding::Level;

const FROM_SERVERS: &str = "from-servers";
const TO_SERVERS: &str = "to-servers";
/// So many hosts are named.
const NAMED: usize = 8;

/// What a record says as a ceiling: payload, as seen from those that generate load.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NetCeiling {
    /// Towards them.
    pub read: Option<CeilingRate>,
    /// Away from them.
    pub write: Option<CeilingRate>,
}

/// The rate of a stage of the record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CeilingRate {
    /// Of payload.
    pub bytes_per_s: f64,
    /// Place of the stage in the record.
    pub stage: usize,
}

/// Why a record is no ceiling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCeiling {
    /// In words.
    pub why: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl NetRecord {
    fn most(&self, of: impl Fn(&NetStage) -> Option<f64>) -> Option<CeilingRate> {
        let rate = |(stage, s): (usize, &NetStage)| Some(CeilingRate { bytes_per_s: of(s)?, stage });
        let each = self.stages.iter().enumerate().filter_map(rate);
        each.reduce(|a, b| if b.bytes_per_s > a.bytes_per_s { b } else { a })
    }

    /// What later results are held against: between clients and servers where that was measured; of two machines of which one asked, each
    /// direction alone, as seen from that one; else what the hosts carried together at most.
    pub fn ceiling(&self) -> NetCeiling {
        let stage = |pattern: &str| self.most(|s| (s.pattern == pattern).then_some(s.bytes_per_s?.value));
        if self.stages.iter().any(|s| s.pattern == FROM_SERVERS || s.pattern == TO_SERVERS) {
            // What servers do among themselves, or clients, is no bound of what goes between them.
            return NetCeiling { read: stage(FROM_SERVERS), write: stage(TO_SERVERS) };
        }
        if let (2, Some(asker)) = (self.hosts.len(), self.asked.asked_by) {
            let alone = |is: &dyn Fn(&NetLane) -> bool| {
                self.most(|s| match &s.lanes[..] {
                    [one] if is(one) => one.bytes_per_s.map(|e| e.value),
                    _ => None,
                })
            };
            return NetCeiling { read: alone(&|l| l.to == asker), write: alone(&|l| l.from == asker) };
        }
        let all = self.most(|s| Some(s.bytes_per_s?.value));
        NetCeiling { read: all, write: all }
    }

    /// The same, where it may be used: nothing but the network bound it.
    pub fn usable_ceiling(&self) -> Result<NetCeiling, NoCeiling> {
        const AGAIN: &str = "Run `plimsoll net` again.";
        let none = |why: String, remedy| Err(NoCeiling { why, remedy });
        if self.interrupted {
            return none(
                "the network test was interrupted, and what it did not measure may be more".into(),
                AGAIN,
            );
        }
        let spoilt = self.findings.iter().find(|f| f.level == Level::Invalid);
        if let Some(f) = spoilt {
            return none(format!("the network test is not valid: {} {}", f.code, f.text), AGAIN);
        }
        let ceiling = self.ceiling();
        if !self.valid || ceiling == NetCeiling::default() {
            return none("the network test has no rate that may be used".into(), AGAIN);
        }
        let used =
            [ceiling.read, ceiling.write].into_iter().flatten().filter_map(|r| self.stages.get(r.stage));
        for stage in used {
            if let Some((why, remedy)) = stage.lanes.iter().find_map(|l| self.not_the_network(l)) {
                return none(format!("{}: {why}: the network may carry more", stage.title), remedy);
            }
        }
        Ok(ceiling)
    }

    /// What bound a lane, where that is not the network; and what to do about it.
    fn not_the_network(&self, lane: &NetLane) -> Option<(String, &'static str)> {
        let between = format!("{} to {}", self.name_of(lane.from), self.name_of(lane.to));
        let boot = |host: usize| self.hosts.get(host).map_or("", |h| h.boot_id.as_str());
        if !boot(lane.from).is_empty() && boot(lane.from) == boot(lane.to) {
            let why = format!("{between} is within one machine (N08), which is no network");
            return Some((why, "Run `plimsoll net` between machines."));
        }
        let of = |kind: &str| lane.limited_by.iter().find(|l| l.kind == kind);
        if let Some(cap) = of("cap") {
            let why = format!("{between} was limited by {}", cap.text);
            return Some((why, "Run `plimsoll net` again without --max-gbps, or with a greater one."));
        }
        let cpu = of("sender_cpu").or_else(|| of("receiver_cpu"))?;
        let why = format!("{between} was limited by {} (N06)", cpu.text);
        Some((why, "Run `plimsoll net` again on machines with more CPU, or that do nothing else."))
    }

    /// Places of the hosts of a stage.
    fn hosts_of(&self, stage: usize) -> Vec<usize> {
        let lanes = self.stages.get(stage).map_or(&[][..], |s| &s.lanes);
        let mut all: Vec<usize> = lanes.iter().flat_map(|l| [l.from, l.to]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Between which hosts, and in what pattern: `a, b, c (from-servers)`.
    pub fn between(&self, rate: CeilingRate) -> String {
        let hosts = self.hosts_of(rate.stage);
        let mut names: Vec<&str> = hosts.iter().take(NAMED).map(|h| self.name_of(*h)).collect();
        let more = format!("{} more", hosts.len().saturating_sub(NAMED));
        names.extend((hosts.len() > NAMED).then_some(more.as_str()));
        let pattern = self.stages.get(rate.stage).map_or("?", |s| s.pattern.as_str());
        format!("{} ({pattern})", names.join(", "))
    }

    /// The machines' own names of what a ceiling was measured between.
    pub fn machines(&self, ceiling: &NetCeiling) -> Vec<String> {
        let stages = [ceiling.read, ceiling.write].into_iter().flatten().map(|r| r.stage);
        let hosts = stages.flat_map(|s| self.hosts_of(s)).filter_map(|h| self.hosts.get(h));
        let mut all: Vec<String> = hosts.map(|h| h.host.clone()).filter(|h| !h.is_empty()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimate;
    use crate::net::{NET_FORMAT, NetAsked, NetHost, NetLimit};

    fn stage(pattern: &str, lanes: &[(usize, usize)], rate: Option<f64>) -> NetStage {
        let bytes_per_s = rate.map(|r| Estimate::symmetric(r, 1.0, 9.0));
        let lane =
            |(from, to): &(usize, usize)| NetLane { from: *from, to: *to, bytes_per_s, ..NetLane::default() };
        NetStage {
            pattern: pattern.into(),
            title: pattern.into(),
            bytes_per_s,
            why: None,
            lanes: lanes.iter().map(lane).collect(),
            ..NetStage::default()
        }
    }

    fn record(hosts: &[&str], stages: Vec<NetStage>) -> NetRecord {
        let host = |n: &&str| NetHost {
            name: (*n).into(),
            host: format!("{n}.example"),
            boot_id: (*n).into(),
            ..NetHost::default()
        };
        NetRecord {
            format: NET_FORMAT.into(),
            id: "net-1".into(),
            plimsoll_version: "1".into(),
            commit: String::new(),
            made_at: String::new(),
            asked: NetAsked::default(),
            hosts: hosts.iter().map(host).collect(),
            streams_tried: Vec::new(),
            stages,
            findings: Vec::new(),
            sentences: Vec::new(),
            valid: true,
            interrupted: false,
        }
    }

    fn two() -> NetRecord {
        let stages = vec![
            stage("pairs", &[(0, 1)], Some(10.0)),
            stage("pairs", &[(1, 0)], Some(30.0)),
            stage("pairs-together", &[(0, 1), (1, 0)], Some(35.0)),
        ];
        record(&["a", "b"], stages)
    }

    fn rates(c: &NetCeiling) -> (Option<f64>, Option<f64>) {
        (c.read.map(|r| r.bytes_per_s), c.write.map(|r| r.bytes_per_s))
    }

    #[test]
    fn of_two_machines_each_direction_is_one_only_where_one_of_them_asked() {
        let mut two = two();
        assert_eq!(rates(&two.ceiling()), (Some(35.0), Some(35.0)), "of a fleet nobody among them asked");
        two.asked.asked_by = Some(0);
        assert_eq!(rates(&two.ceiling()), (Some(30.0), Some(10.0)));
        assert_eq!(two.between(two.ceiling().read.unwrap()), "a, b (pairs)");
        assert_eq!(two.machines(&two.ceiling()), ["a.example", "b.example"]);
    }

    #[test]
    fn what_servers_do_among_themselves_bounds_no_client() {
        let stages = vec![
            stage("from-servers", &[(1, 0), (2, 0)], Some(20.0)),
            stage("to-servers", &[(0, 1), (0, 2)], None),
            stage("east-west", &[(1, 2), (2, 1)], Some(90.0)),
        ];
        let one = record(&["a", "b", "c"], stages);
        assert_eq!(rates(&one.ceiling()), (Some(20.0), None));
    }

    #[test]
    fn what_was_not_bound_by_the_network_is_no_ceiling() {
        assert!(two().usable_ceiling().is_ok());
        let why = |change: &dyn Fn(&mut NetRecord)| {
            let mut r = two();
            change(&mut r);
            r.usable_ceiling().unwrap_err().why
        };
        let limited = |kind: &str, text: &str| {
            let limit = NetLimit { kind: kind.into(), text: text.into() };
            why(&move |r| r.stages[2].lanes[1].limited_by = vec![limit.clone()])
        };
        assert!(limited("cap", "--max-gbps 1").contains("b to a was limited by --max-gbps 1"));
        assert!(limited("receiver_cpu", "the CPU of a").contains("N06"));
        assert!(why(&|r| r.interrupted = true).contains("interrupted"));
        assert!(why(&|r| r.hosts[1].boot_id = "a".into()).contains("one machine (N08)"));
        assert!(why(&|r| r.valid = false).contains("no rate"));
        // What bound another stage does not matter.
        let mut other = two();
        other.stages[0].lanes[0].limited_by = vec![NetLimit { kind: "cap".into(), text: String::new() }];
        assert!(other.usable_ceiling().is_ok());
    }

    #[test]
    fn many_hosts_are_not_all_named() {
        let names: Vec<String> = (0..10).map(|i| format!("h{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let lanes: Vec<(usize, usize)> = (1..10).map(|i| (0, i)).collect();
        let many = record(&names, vec![stage("out", &lanes, Some(1.0))]);
        let c = many.ceiling();
        assert_eq!(many.between(c.read.unwrap()), "h0, h1, h2, h3, h4, h5, h6, h7, 2 more (out)");
        assert_eq!(many.machines(&c).len(), 10);
    }
}
