//! Simulated clusters with line rates, quotas and drives of `cluster.toml`: what binds is known, and so is what redundancy makes of each byte.

use plimsoll_model::observed::{ReadSubject, ServerQuantity as Q, ServerReading};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::summary::servers::{ServersLimit, ServersSummary, ServersWindow, TrafficUse};
use plimsoll_model::{Cluster, Finding, Level, RunSummary, Scrape};
use plimsoll_stats::judge::CONCURRENCY_BOUND;
use plimsoll_store::{ObservedSource, server_steps};

use super::{findings, limit, resources, traffic};

const S: u64 = 1_000_000_000;
/// 200 Mbit/s.
const LINK: f64 = 25e6;

/// Four nodes of two drives behind shaped links, EC 6+2.
const CLUSTER: &str = "version = 1\nsoftware = \"minio\"\nredundancy = \"ec:6+2\"\n[[node]]\nname = \"s{1...4}\"\ncpus = 0.5\n\
    drive = [{ count = 2, read = \"50MB/s\", write = \"40MB/s\" }]\nnic = [{ rate = \"200mbit\" }]\n";

fn cluster() -> Cluster {
    Cluster::from_toml(CLUSTER).unwrap()
}

/// The same where the exporters' interfaces are named, and nothing is known of the drives.
fn named() -> Cluster {
    let drives = "drive = [{ count = 2, read = \"50MB/s\", write = \"40MB/s\" }]\n";
    let text = CLUSTER.replace(drives, "").replace("{ rate", "{ name = \"veth-s\", rate");
    Cluster::from_toml(&text).unwrap()
}

/// What one node does each second.
#[derive(Clone, Copy, Default)]
struct Node {
    peers_in: f64,
    peers_out: f64,
    clients_in: f64,
    clients_out: f64,
    cpu: f64,
    wrote: f64,
    read: f64,
}

/// Payload that clients write and read, over nodes, by MinIO's arithmetic with a node's own shards first.
fn minio(wrote: f64, read: f64) -> Node {
    let s = cluster().spread(None).unwrap();
    let between = (wrote * s.put().between + read * s.get().between_least) / 4.0;
    Node {
        peers_in: between,
        peers_out: between,
        clients_in: wrote / 4.0,
        clients_out: read / 4.0,
        cpu: 0.2,
        wrote: wrote * s.put().drives / 4.0,
        read: read / 4.0,
    }
}

fn reading(quantity: Q, label: &str, value: f64) -> ServerReading {
    ServerReading { quantity, label: label.into(), value }
}

/// MinIO's servers alone, as they tell of themselves: no exporter is in their name spaces.
fn servers(nodes: &[Node]) -> ObservedSource {
    let subject = |(i, n): (usize, &Node), t: f64| ReadSubject {
        host: format!("s{}", i + 1),
        daemon: format!("minio@s{}:9000", i + 1),
        readings: vec![
            reading(Q::ProcessCpuS, "", t * n.cpu),
            reading(Q::ProcessWriteBytes, "", t * n.wrote),
            reading(Q::ProcessReadBytes, "", t * n.read),
            reading(Q::InternodeSentBytes, "", t * n.peers_out),
            reading(Q::InternodeReceivedBytes, "", t * n.peers_in),
            reading(Q::SentBytes, "", t * n.clients_out),
            reading(Q::ReceivedBytes, "", t * n.clients_in),
        ],
    };
    let scrape = |n: u64| {
        let t = n as f64 * 5.0;
        let subjects = nodes.iter().enumerate().map(|x| subject(x, t)).collect();
        Scrape { at_ns: n * 5 * S, subjects, ..Scrape::default() }
    };
    ObservedSource { observes: "minio s1".into(), every: 1, scrapes: (0..13).map(scrape).collect() }
}

/// An exporter in the name space of each node: the drives that it shows are the machine's, whichever it is asked in.
fn exporters(nodes: &[Node], drive: &str) -> Vec<ObservedSource> {
    let all_wrote: f64 = nodes.iter().map(|n| n.wrote).sum();
    let all_read: f64 = nodes.iter().map(|n| n.read).sum();
    let of = |(i, n): (usize, &Node)| {
        let scrape = |k: u64| {
            let t = k as f64 * 5.0;
            let readings = vec![
                reading(Q::BootUnixS, "", 1.7e9),
                reading(Q::NicRxBytes, "veth-s", t * (n.peers_in + n.clients_in)),
                reading(Q::NicTxBytes, "veth-s", t * (n.peers_out + n.clients_out)),
                // A shaper is no part of what it says.
                reading(Q::NicSpeedBytesPerS, "veth-s", 1.25e9),
                reading(Q::DiskBusyS, drive, t * 0.3),
                reading(Q::DiskQueueS, drive, t * 0.3),
                reading(Q::DiskWriteBytes, drive, t * all_wrote),
                reading(Q::DiskReadBytes, drive, t * all_read),
            ];
            let subject = ReadSubject { host: format!("s{}", i + 1), daemon: String::new(), readings };
            Scrape { at_ns: k * 5 * S, subjects: vec![subject], ..Scrape::default() }
        };
        ObservedSource {
            observes: format!("node s{}", i + 1),
            every: 1,
            scrapes: (0..13).map(scrape).collect(),
        }
    };
    nodes.iter().enumerate().map(of).collect()
}

fn limit_of(
    sources: &[ObservedSource],
    cluster: Option<&Cluster>,
    not_observed: &[&str],
) -> Option<ServersLimit> {
    let seen =
        resources::of_window(&server_steps(sources, 0, 60 * S), &resources::with_nics(sources), cluster);
    let not_observed: Vec<String> = not_observed.iter().map(|s| (*s).to_owned()).collect();
    limit::of_window(&seen, false, &not_observed)
}

fn traffic_of(sources: &[ObservedSource], cluster: &Cluster, read: f64, wrote: f64) -> Vec<TrafficUse> {
    traffic::parts(&server_steps(sources, 0, 60 * S), Some(cluster), cluster.spread(None), (read, wrote))
}

#[test]
fn the_network_binds_puts_where_they_come_in_and_gets_where_they_go_out() {
    let c = cluster();
    // 400 Mbit/s of PUT and 480 of GET fill the links.
    let put = limit_of(&[servers(&[minio(50e6, 0.0); 4])], Some(&c), &[]).unwrap();
    assert_eq!((put.verdict.as_str(), put.resource.as_str(), put.of), ("one", "network in", 4));
    assert!((put.share - 1.0).abs() < 0.01 && (put.ceiling - LINK).abs() < 1.0, "{put:?}");
    for part in ["4 of 4", "100 % of 200Mbit/s", "Nothing else that was observed was: next is"] {
        assert!(put.text.contains(part), "{part}: {}", put.text);
    }
    let get = limit_of(&[servers(&[minio(0.0, 60e6); 4])], Some(&c), &[]).unwrap();
    assert_eq!((get.verdict.as_str(), get.resource.as_str()), ("one", "network out"));
    // By exporters on shaped interfaces, whatever speed these claim.
    let put = limit_of(&exporters(&[minio(50e6, 0.0); 4], "vda"), Some(&named()), &[]).unwrap();
    assert_eq!((put.verdict.as_str(), put.resource.as_str()), ("one", "network in"), "{}", put.text);
    // Nobody knows of the shaper: as full as that nothing is.
    let blind = limit_of(&exporters(&[minio(50e6, 0.0); 4], "vda"), None, &["host s4"]).unwrap();
    assert_eq!(blind.verdict, "none");
    assert!(blind.text.contains("None of") && blind.next.contains("host s4"), "{blind:?}");
}

#[test]
fn one_slow_link_and_one_quota_are_named_by_host() {
    let c = cluster();
    let mut nodes = [minio(20e6, 0.0); 4];
    nodes[2].peers_in += 16e6;
    let slow = limit_of(&[servers(&nodes)], Some(&c), &["the servers' drives"]).unwrap();
    assert_eq!((slow.verdict.as_str(), slow.resource.as_str()), ("one", "network in"));
    assert!(
        slow.text.contains("minio@s3:9000 of s3, in: 1 of 4")
            && slow.text.contains("Not observed: the servers' drives"),
        "{}",
        slow.text
    );
    let mut nodes = [minio(20e6, 0.0); 4];
    nodes.iter_mut().for_each(|n| n.cpu = 0.49);
    let cpu = limit_of(&[servers(&nodes)], Some(&c), &[]).unwrap();
    assert_eq!((cpu.verdict.as_str(), cpu.resource.as_str()), ("one", "cpu"));
    assert!(cpu.text.contains("98 % of 0.50 cores"), "{}", cpu.text);
}

/// A page of a host with a quota: one CPU, which counts less time than passes.
fn of_quota(quota: f64, used: f64, waits: f64) -> ObservedSource {
    let scrape = |n: u64| {
        let t = n as f64 * 5.0;
        let readings = vec![
            reading(Q::CpuUserS, "0", t * used),
            reading(Q::CpuIdleS, "0", t * (quota - used)),
            reading(Q::PsiCpuS, "", t * waits),
        ];
        let subject = ReadSubject { host: "s1".into(), daemon: String::new(), readings };
        Scrape { at_ns: n * 5 * S, subjects: vec![subject], ..Scrape::default() }
    };
    ObservedSource { observes: "node s1".into(), every: 1, scrapes: (0..13).map(scrape).collect() }
}

#[test]
fn a_quota_below_one_core_is_no_cpu() {
    let of = |quota: f64, used: f64, cluster: Option<&Cluster>| {
        let sources = [of_quota(quota, used, 0.5)];
        let all = resources::of_window(
            &server_steps(&sources, 0, 60 * S),
            &resources::with_nics(&sources),
            cluster,
        );
        assert_eq!(all.len(), 1);
        all.into_iter().next().unwrap().used
    };
    let third = of(0.3, 0.29, None);
    assert!((third.ceiling.unwrap() - 0.3).abs() < 1e-9 && (third.reached - 0.29).abs() < 1e-9, "{third:?}");
    assert!((third.share.unwrap() - 0.29 / 0.3).abs() < 1e-9 && third.verdict == "at its ceiling");
    // The file says the same: nothing is counted twice.
    let said = Cluster::from_toml(&CLUSTER.replace("cpus = 0.5", "cpus = 0.3")).unwrap();
    assert_eq!(of(0.3, 0.29, Some(&said)), third);
    // A whole CPU, read a little late, is one.
    let whole = of(0.98, 0.5, None);
    assert_eq!((whole.ceiling, whole.verdict.as_str()), (Some(1.0), "below its ceiling"));
}

/// An exporter that was read once has no step, and what MinIO counts of the interface (0.14 % of it) stood in its place.
#[test]
fn what_a_server_counts_is_no_stand_in_for_an_exporter_that_was_read_too_rarely() {
    let c = named();
    let nodes = [minio(50e6, 0.0); 4];
    let mut once = exporters(&nodes, "nvme0n1");
    once[0].scrapes.truncate(1);
    let all: Vec<ObservedSource> = [servers(&nodes)].into_iter().chain(once).collect();
    let seen = resources::of_window(&server_steps(&all, 0, 60 * S), &resources::with_nics(&all), Some(&c));
    let of =
        |host: &str| seen.iter().filter(|r| r.used.host == host && r.used.resource == "network in").count();
    assert_eq!((of("s1"), of("s2")), (0, 1), "{seen:?}");
    let alone = [servers(&nodes)];
    let seen =
        resources::of_window(&server_steps(&alone, 0, 60 * S), &resources::with_nics(&alone), Some(&c));
    assert_eq!(seen.iter().filter(|r| r.used.resource == "network in").count(), 4);
}

/// A file that gives a line a tenth of its speed: three times what it says went over it, and no word was said of that.
#[test]
fn a_line_that_carries_more_than_the_file_says_has_the_speed_that_it_tells_both_ways() {
    let c = named();
    let node = minio(150e6, 0.0);
    let all = exporters(&[node; 4], "nvme0n1");
    let seen = resources::of_window(&server_steps(&all, 0, 60 * S), &resources::with_nics(&all), Some(&c));
    for way in ["network in", "network out"] {
        let line = &seen.iter().find(|r| r.used.resource == way).unwrap().used;
        assert_eq!((line.ceiling, line.said), (Some(1.25e9), Some(LINK)), "{line:?}");
    }
    let said = said_of_parts(&all, Some(&c));
    // All four, and both ways of each, by one sentence.
    let of_lines: Vec<&str> =
        said.iter().filter(|(name, _)| name == "slower_part").map(|(_, text)| text.as_str()).collect();
    assert_eq!(of_lines.len(), 1, "{said:?}");
    assert!(of_lines[0].contains("gives more than was thought"), "{said:?}");
    assert!(of_lines[0].contains("The same of veth-s of s2, veth-s of s3"), "{said:?}");
    // Who tells no speed: the file or the count is wrong, and that is said.
    let mut quiet = all;
    for s in quiet.iter_mut().flat_map(|s| &mut s.scrapes).flat_map(|s| &mut s.subjects) {
        s.readings.retain(|r| r.quantity != Q::NicSpeedBytesPerS);
    }
    let said = said_of_parts(&quiet, Some(&c));
    assert!(
        said.iter().any(|(name, text)| name == "more_than_said" && text.contains("one of both is wrong")),
        "{said:?}"
    );
}

/// Readings are off by the way to them: 101 % of a line is all of it.
#[test]
fn nothing_has_a_little_more_than_all() {
    let c = named();
    let share = |by: f64| {
        let node = minio(50e6 * by, 0.0);
        let all = exporters(&[node; 4], "nvme0n1");
        let seen =
            resources::of_window(&server_steps(&all, 0, 60 * S), &resources::with_nics(&all), Some(&c));
        seen.iter()
            .filter(|r| r.used.resource == "network in")
            .filter_map(|r| r.used.share)
            .fold(0.0, f64::max)
    };
    assert_eq!(share(1.01), 1.0);
    assert!((share(0.99) - 0.99).abs() < 1e-6 && share(1.1) > 1.09);
}

/// A drive that wrote three times what the file says that it gives: one of both is wrong.
#[test]
fn nothing_has_more_than_all() {
    let c = cluster();
    let node = Node { wrote: 120e6, read: 22e6, ..minio(20e6, 0.0) };
    let mut sources = exporters(&[node], "nvme0n1");
    sources.truncate(1);
    let all =
        resources::of_window(&server_steps(&sources, 0, 60 * S), &resources::with_nics(&sources), Some(&c));
    let drive = all.iter().find(|r| r.used.resource == "drive").unwrap();
    assert_eq!((drive.used.verdict.as_str(), drive.used.share), ("above what it is said to give", None));
    assert!(
        !drive.at_ceiling() && resources::candidates(&all, false).iter().all(|o| !o.what.contains("nvme0n1")),
        "{all:?}"
    );
}

#[test]
fn drives_bind_by_what_they_were_measured_to_give() {
    let c = cluster();
    // A drive of its own for each node, at its rate while it is busy a third of the time, as an SSD is.
    let node = Node { wrote: 20e6, read: 22e6, ..minio(20e6, 0.0) };
    let of_one = |wrote: f64, read: f64| {
        let mut sources = exporters(&[Node { wrote, read, ..node }], "nvme0n1");
        sources.truncate(1);
        limit_of(&sources, Some(&c), &[]).unwrap()
    };
    // Half of its time for 20 of 40 MB/s written, and 44 % for 22 of 50 read.
    let full = of_one(20e6, 22e6);
    assert_eq!((full.verdict.as_str(), full.resource.as_str()), ("one", "drive"), "{}", full.text);
    assert!((full.share - 0.94).abs() < 0.005 && full.text.contains("MB/s"), "{full:?}");
    assert_eq!(of_one(20e6, 2e6).verdict, "none");
}

/// What a drive of its own does at each of four nodes: part of the time busy, requests at once, requests a second and their bytes.
fn drives(of: [(f64, f64, f64, f64); 4]) -> Vec<ObservedSource> {
    let source = |(i, (busy, queue, requests, bytes)): (usize, (f64, f64, f64, f64))| {
        let scrape = |n: u64| {
            let t = n as f64 * 5.0;
            let readings = vec![
                reading(Q::DiskBusyS, "nvme0n1", t * busy),
                reading(Q::DiskQueueS, "nvme0n1", t * queue),
                reading(Q::DiskReads, "nvme0n1", 0.0),
                reading(Q::DiskWrites, "nvme0n1", t * requests),
                reading(Q::DiskReadBytes, "nvme0n1", 0.0),
                reading(Q::DiskWriteBytes, "nvme0n1", t * requests * bytes),
            ];
            let subject = ReadSubject { host: format!("s{}", i + 1), daemon: String::new(), readings };
            Scrape { at_ns: n * 5 * S, subjects: vec![subject], ..Scrape::default() }
        };
        let scrapes = (0..13).map(scrape).collect();
        ObservedSource { observes: format!("node s{}", i + 1), every: 1, scrapes }
    };
    of.into_iter().enumerate().map(source).collect()
}

/// Findings on the parts, by name and text.
fn said_of_parts(sources: &[ObservedSource], cluster: Option<&Cluster>) -> Vec<(String, String)> {
    let seen =
        resources::of_window(&server_steps(sources, 0, 60 * S), &resources::with_nics(sources), cluster);
    let window =
        ServersWindow { resources: seen.into_iter().map(|s| s.used).collect(), ..ServersWindow::default() };
    let servers = ServersSummary { windows: vec![window], ..ServersSummary::default() };
    findings::of_windows(&servers, &|_| false).into_iter().map(|f| (f.name, f.text)).collect()
}

#[test]
fn a_drive_that_is_slower_than_its_peers_is_named_whatever_the_file_says_that_it_gives() {
    let c = cluster();
    // 4 MB/s of 40 at each: the second is full with them, its requests wait a second, those of the others 20 ms.
    let good = (0.16, 0.2, 10.0, 4e5);
    let slow = drives([good, (1.0, 10.0, 10.0, 4e5), good, good]);
    for cluster in [Some(&c), None] {
        let found = limit_of(&slow, cluster, &[]).unwrap();
        assert_eq!((found.verdict.as_str(), found.resource.as_str()), ("one", "drive"), "{}", found.text);
        assert_eq!((found.full, found.of), (1, 4));
        assert!(found.text.contains("nvme0n1 of s2: 1 of 4, busy 100 % of the time"), "{}", found.text);
        assert_eq!(found.in_short(), "the servers' drive at its ceiling (1 of 4: busy 100 % of the time)");
        let said = said_of_parts(&slow, cluster);
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0].0, "slower_part");
        assert!(
            said[0].1.contains(
                "a request took 1,000 ms, and at half of the others with the same work 20.0 ms or less"
            ),
            "{said:?}"
        );
        assert_eq!(
            said[0].1.contains("by cluster.toml it would give 40.0 MB/s"),
            cluster.is_some(),
            "{said:?}"
        );
    }
    let quiet = |of: [(f64, f64, f64, f64); 4]| {
        let all = drives(of);
        (
            limit_of(&all, Some(&c), &[]).unwrap().verdict,
            said_of_parts(&all, Some(&c)).iter().any(|(name, _)| name == "slower_part"),
        )
    };
    // As busy, and no request waits: it has one at a time, as an SSD that gives much more.
    assert_eq!(quiet([good, (1.0, 1.0, 10.0, 4e5), good, good]), ("none".into(), false));
    // As busy and waited for as all of them, as SSDs are with small requests: none is slower.
    assert_eq!(quiet([(1.0, 10.0, 1000.0, 4e3); 4]), ("none".into(), false));
    // It does more, and drives that hardly do anything are no peers: neither makes it slower than they are.
    let (hot, cool) = ((1.0, 10.0, 40.0, 4e5), (0.3, 0.3, 12.0, 4e5));
    assert!(!quiet([cool, hot, cool, cool]).1);
    let boot = (0.01, 0.01, 0.5, 8e3);
    assert_eq!(quiet([boot, (1.0, 10.0, 1000.0, 8e3), boot, boot]), ("none".into(), false));
    // At its ceiling by bytes it gives what it can.
    assert_eq!(
        quiet([(0.9, 5.0, 95.0, 4e5), (1.0, 19.0, 95.0, 4e5), (0.9, 5.0, 95.0, 4e5), (0.9, 5.0, 95.0, 4e5)]),
        ("one".into(), false)
    );
    // Its requests are longer, too: it has other work.
    assert_eq!(quiet([good, (1.0, 10.0, 10.0, 2e6), good, good]), ("none".into(), false));
}

#[test]
fn a_link_that_is_at_a_lower_speed_than_the_file_has_is_named() {
    let c = named();
    let told = |speed: f64, third: f64| {
        let mut nodes = [minio(3e6, 0.0); 4];
        nodes[2].peers_in = third;
        nodes[2].clients_in = 0.0;
        let mut all = exporters(&nodes, "vda");
        for scrape in &mut all[2].scrapes {
            let readings = scrape.subjects.iter_mut().flat_map(|s| &mut s.readings);
            readings.filter(|r| r.quantity == Q::NicSpeedBytesPerS).for_each(|r| r.value = speed);
        }
        all
    };
    // Negotiated down to 30 Mbit/s, and at it.
    let slow = told(3.75e6, 3.66e6);
    let found = limit_of(&slow, Some(&c), &[]).unwrap();
    assert_eq!((found.verdict.as_str(), found.resource.as_str()), ("one", "network in"), "{}", found.text);
    assert!(found.text.contains("veth-s of s3, in: 1 of 4, 98 % of 30Mbit/s"), "{}", found.text);
    let said = said_of_parts(&slow, Some(&c));
    let one = said.iter().find(|(name, _)| name == "slower_part").unwrap_or_else(|| panic!("{said:?}"));
    assert!(
        one.1.contains("a speed of 30Mbit/s") && one.1.contains("by cluster.toml it has 200Mbit/s"),
        "{one:?}"
    );
    // At a speed that it is above for half of the time, though not in the mean, it is not.
    let mut wild = told(3.75e6, 3.66e6);
    for (n, scrape) in wild[2].scrapes.iter_mut().enumerate() {
        let readings = scrape.subjects.iter_mut().flat_map(|s| &mut s.readings);
        let bytes = |n: usize| (0..n).map(|k| if k % 2 == 0 { 3.45e6 } else { 4.2e6 }).sum::<f64>() * 5.0;
        readings.filter(|r| r.quantity == Q::NicRxBytes).for_each(|r| r.value = bytes(n));
    }
    assert_eq!(limit_of(&wild, Some(&c), &[]).unwrap().verdict, "none");
    // Half of it proves nothing, and twice that it is no speed of this line.
    for third in [1.9e6, 7.5e6] {
        let all = told(3.75e6, third);
        assert_eq!(limit_of(&all, Some(&c), &[]).unwrap().verdict, "none", "{third}");
        assert!(said_of_parts(&all, Some(&c)).iter().all(|(name, _)| name != "slower_part"), "{third}");
    }
}

#[test]
fn two_at_once_and_none() {
    let c = cluster();
    let mut nodes = [minio(50e6, 0.0); 4];
    nodes.iter_mut().for_each(|n| n.cpu = 0.49);
    let two = limit_of(&[servers(&nodes)], Some(&c), &[]).unwrap();
    assert_eq!((two.verdict.as_str(), two.resource.as_str(), two.at_ceiling.len()), ("several", "", 2));
    assert!(two.text.contains("Two of") && two.text.contains("cannot be told"), "{}", two.text);
    let none = limit_of(&[servers(&[minio(20e6, 0.0); 4])], Some(&c), &[]).unwrap();
    assert_eq!((none.verdict.as_str(), none.at_ceiling.len()), ("none", 0));
    assert!(none.next.contains("locks") && none.next.contains("double the concurrency"), "{none:?}");
    assert_eq!(limit_of(&[servers(&[minio(50e6, 0.0); 4])], None, &[]), None, "no ceiling is known");
}

#[test]
fn each_byte_is_amplified_as_the_arithmetic_has_it() {
    let c = cluster();
    let of = |all: &[TrafficUse], what: &str| all.iter().find(|t| t.what == what).cloned().unwrap();
    let near =
        |a: Option<f64>, b: f64| assert!(a.is_some_and(|a| (a / b - 1.0).abs() < 0.01), "{a:?} is not {b}");
    let put = traffic_of(&[servers(&[minio(50e6, 0.0); 4])], &c, 0.0, 50e6);
    let written = of(&put, "written to drives");
    near(written.per_byte, 8.0 / 6.0);
    assert_eq!(
        (written.per_byte.map(|v| (v * 100.0).round()), written.counted_by.as_str()),
        (Some(133.0), "daemons")
    );
    near(of(&put, "between servers").per_byte, 1.0);
    near(of(&put, "between servers").expected, 1.0);
    let get = of(&traffic_of(&[servers(&[minio(0.0, 60e6); 4])], &c, 60e6, 0.0), "between servers");
    near(get.per_byte, 4.0 / 6.0);
    assert_eq!((get.expected, get.counted_by.as_str()), (Some(0.75), "servers' own counters"));
    near(get.expected_least, 4.0 / 6.0);
    // MinIO's count is without the shards of large objects: where no interface stands beside it, and neither does the arithmetic, nothing is said.
    let sources = [servers(&[minio(50e6, 0.0); 4])];
    let steps = server_steps(&sources, 0, 60 * S);
    let alone = traffic::parts(&steps, None, None, (0.0, 50e6));
    assert!(alone.iter().all(|t| t.what != "between servers" && t.what != "with clients"), "{alone:?}");
    // Four exporters on one machine show one set of drives: counted once, and by no node.
    let all = traffic_of(&exporters(&[minio(50e6, 0.0); 4], "vda"), &named(), 0.0, 50e6);
    let written = of(&all, "written to drives");
    assert_eq!(written.per_byte, None);
    near(Some(written.per_s), 50e6 * 8.0 / 6.0);
    // And so is what stands beside the clients' bytes, by which caches are told.
    let sources = exporters(&[minio(50e6, 0.0); 4], "vda");
    near(traffic::on_drives(&server_steps(&sources, 0, 60 * S), Q::DiskWriteBytes), 50e6 * 8.0 / 6.0);
    // Of interfaces: what goes out and is no payload of a GET.
    let between = of(&all, "between servers");
    near(between.per_byte, 1.0);
    assert_eq!(between.counted_by, "interfaces, less payload");
}

#[test]
fn servers_that_do_not_count_what_they_send_each_other_are_held_against_their_interfaces() {
    let c = named();
    let nodes = [minio(50e6, 0.0); 4];
    let with = |part: f64, wrote: f64, nodes: &[Node]| {
        let uncounted: Vec<Node> = nodes
            .iter()
            .map(|n| Node { peers_out: n.peers_out * part, peers_in: n.peers_in * part, ..*n })
            .collect();
        let mut sources = exporters(nodes, "vda");
        sources.push(servers(&uncounted));
        let all = traffic_of(&sources, &c, 50e6 - wrote, wrote);
        let of = |what: &str| all.iter().find(|t| t.what == what).cloned().unwrap();
        (of("between servers"), of("with clients"))
    };
    let (between, clients) = with(0.001, 50e6, &nodes);
    assert!((between.per_byte.unwrap() - 1.0).abs() < 0.01, "{between:?}");
    assert_eq!(between.counted_by, "interfaces, less payload");
    assert!((clients.per_byte.unwrap() - 1.0).abs() < 0.01, "{clients:?}");
    // What others read is theirs, and not between servers.
    let mut others = nodes;
    others.iter_mut().for_each(|n| n.clients_out = 10e6);
    assert!((with(0.001, 50e6, &others).0.per_byte.unwrap() - 1.0).abs() < 0.01);
    // Who counts all of it is believed: heads of frames are no part of it.
    assert_eq!(with(0.95, 50e6, &nodes).0.counted_by, "servers' own counters");
}

#[test]
fn more_in_flight_is_no_next_step_where_all_links_are_full() {
    let c = cluster();
    let left = |nodes: &[Node]| {
        let sources = [servers(nodes)];
        let seen = resources::of_window(
            &server_steps(&sources, 0, 60 * S),
            &resources::with_nics(&sources),
            Some(&c),
        );
        let limit = limit::of_window(&seen, false, &[]);
        let window = ServersWindow {
            resources: seen.into_iter().map(|s| s.used).collect(),
            limit,
            ..ServersWindow::default()
        };
        let observed = ServersSummary { windows: vec![window], ..ServersSummary::default() };
        let mut s = RunSummary { servers: Some(observed), ..RunSummary::default() };
        s.findings.push(Finding::new("F02", CONCURRENCY_BOUND, Level::Info, "Try more."));
        findings::drop_what_a_ceiling_explains(&mut s);
        s.findings.len()
    };
    assert_eq!(left(&[minio(50e6, 0.0); 4]), 0);
    // One slow link of four, or none that is full: more in flight may find the others.
    let mut one = [minio(20e6, 0.0); 4];
    one[2].peers_in += 16e6;
    assert_eq!((left(&one), left(&[minio(20e6, 0.0); 4])), (1, 1));
}

#[test]
fn of_a_rate_that_was_offered_and_met_there_is_nothing_to_look_for() {
    let c = cluster();
    let said = |offered: Option<f64>| {
        let limit = limit_of(&[servers(&[minio(20e6, 0.0); 4])], Some(&c), &[]);
        let window = ServersWindow { limit, ..ServersWindow::default() };
        let observed = ServersSummary { windows: vec![window], ..ServersSummary::default() };
        let line = WorkloadSummary {
            outcomes: [("ok".to_owned(), 500)].into(),
            window_s: 10.0,
            offered_per_s: offered,
            ..WorkloadSummary::default()
        };
        let findings = findings::of_limits(&observed);
        let mut s =
            RunSummary { servers: Some(observed), findings, workloads: vec![line], ..RunSummary::default() };
        findings::drop_the_next_step_of_a_met_rate(&mut s);
        s.findings.remove(0).text
    };
    assert!(
        said(None).contains("double the concurrency") && said(Some(80.0)).contains("double the concurrency")
    );
    let met = said(Some(50.0));
    assert!(met.ends_with("). The rate that was offered was met."), "{met}");
    assert!(!met.contains("concurrency"), "{met}");
}

#[test]
fn bytes_of_others_are_what_is_not_ours() {
    let mut nodes = [minio(20e6, 0.0); 4];
    nodes[0].clients_out = 7e6;
    let sources = [servers(&nodes)];
    let steps = server_steps(&sources, 0, 60 * S);
    assert!((traffic::of_others(&steps, 20e6).unwrap() - 7e6).abs() < 1e3);
    let none = server_steps(&[], 0, 60 * S);
    assert_eq!(traffic::of_others(&none, 20e6), None);
}
