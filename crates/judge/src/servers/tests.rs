//! Simulated clusters of which the truth is known: each kind of ceiling, its twin that is as busy and does not bind, none, two at once,
//! and the binding one unobserved.

use std::collections::BTreeMap;

use plimsoll_model::observed::{ReadSubject, ServerQuantity as Q, ServerReading};
use plimsoll_model::{Cluster, Finding, Level, Scrape};
use plimsoll_stats::attribution::{Candidate, attribute};
use plimsoll_store::{ObservedSource, server_steps};

use super::limit;
use super::resources::{self, SeenResource};

/// A host of which each resource is used to a share of its ceiling.
#[derive(Clone, Copy)]
struct Host {
    cpu: f64,
    /// Part of the time in which tasks wait for a CPU.
    cpu_waits: f64,
    rx: f64,
    tx: f64,
    drive: f64,
    /// Requests at the drive while it is busy.
    queue: f64,
    /// The interface says its speed.
    speed: bool,
}

const IDLE: Host = Host { cpu: 0.2, cpu_waits: 0.0, rx: 0.1, tx: 0.1, drive: 0.2, queue: 1.0, speed: true };
const SPEED: f64 = 1.25e9;
const S: u64 = 1_000_000_000;

/// What exporters on these hosts say each 5 s for a minute.
fn sources(hosts: &[Host]) -> Vec<ObservedSource> {
    let of = |(i, h): (usize, &Host)| {
        let scrape = |n: u64| {
            let t = n as f64 * 5.0;
            let r = |quantity, label: &str, value| ServerReading { quantity, label: label.into(), value };
            let mut readings = Vec::new();
            for cpu in ["0", "1", "2", "3"] {
                readings.push(r(Q::CpuUserS, cpu, t * h.cpu));
                readings.push(r(Q::CpuIdleS, cpu, t * (1.0 - h.cpu)));
            }
            readings.push(r(Q::PsiCpuS, "", t * h.cpu_waits));
            readings.push(r(Q::NicRxBytes, "eth0", t * h.rx * SPEED));
            readings.push(r(Q::NicTxBytes, "eth0", t * h.tx * SPEED));
            readings.push(r(Q::NicTxBytes, "veth12", t * SPEED));
            readings.push(r(Q::NicSpeedBytesPerS, "eth0", if h.speed { SPEED } else { -1.0 }));
            for drive in ["nvme0n1", "dm-0"] {
                readings.push(r(Q::DiskBusyS, drive, t * h.drive));
                readings.push(r(Q::DiskQueueS, drive, t * h.drive * h.queue));
            }
            let subject = ReadSubject { host: format!("s{}", i + 1), daemon: String::new(), readings };
            Scrape { at_ns: n * 5 * S, subjects: vec![subject], ..Scrape::default() }
        };
        ObservedSource {
            observes: format!("node s{}", i + 1),
            every: 1,
            scrapes: (0..13).map(scrape).collect(),
        }
    };
    hosts.iter().enumerate().map(of).collect()
}

/// What is suspected, by candidate, and the words.
fn suspects(hosts: &[Host]) -> Vec<(Candidate, String)> {
    let sources = sources(hosts);
    let seen: Vec<SeenResource> =
        resources::of_window(&server_steps(&sources, 0, 60 * S), &resources::with_nics(&sources), None);
    attribute(&resources::candidates(&seen, false))
        .suspects
        .into_iter()
        .map(|s| (s.candidate, s.what))
        .collect()
}

fn verdicts(hosts: &[Host]) -> BTreeMap<(String, String), String> {
    let sources = sources(hosts);
    let seen =
        resources::of_window(&server_steps(&sources, 0, 60 * S), &resources::with_nics(&sources), None);
    seen.into_iter().map(|s| ((s.used.resource, s.used.host), s.used.verdict)).collect()
}

#[test]
fn each_ceiling_is_named_by_host_and_device() {
    let with = |change: &dyn Fn(&mut Host)| {
        let mut hosts = [IDLE; 4];
        change(&mut hosts[2]);
        suspects(&hosts)
    };
    assert_eq!(with(&|h| (h.cpu, h.cpu_waits) = (0.97, 0.4)), [(Candidate::ServerCpu, "s3: 1 of 4".into())]);
    assert_eq!(with(&|h| h.tx = 0.95), [(Candidate::ServerNic, "eth0 of s3, out: 1 of 4".into())]);
    assert_eq!(with(&|h| h.rx = 0.95), [(Candidate::ServerNic, "eth0 of s3, in: 1 of 4".into())]);
    assert_eq!(
        with(&|h| (h.drive, h.queue) = (0.99, 8.0)),
        [(Candidate::ServerDisk, "nvme0n1 of s3: 1 of 4".into())]
    );
}

#[test]
fn what_was_seen_for_a_part_of_the_time_is_not_said_of_all_of_it() {
    let of = |answers: usize| {
        let mut all = sources(&[IDLE, IDLE, Host { rx: 0.97, ..IDLE }, IDLE]);
        for scrape in all[2].scrapes.iter_mut().skip(answers) {
            (scrape.gap, scrape.subjects) = (Some("no answer".into()), Vec::new());
        }
        let seen = resources::of_window(&server_steps(&all, 0, 60 * S), &resources::with_nics(&all), None);
        let suspects = attribute(&resources::candidates(&seen, false)).suspects.len();
        let full = seen.iter().find(|s| s.used.host == "s3" && s.used.resource == "network in").unwrap();
        (limit::of_window(&seen, false, &[]).unwrap(), suspects, full.used.verdict.clone())
    };
    let (limit, suspects, _) = of(9);
    assert_eq!((limit.verdict.as_str(), suspects), ("one", 1), "{}", limit.text);
    // Full for the 10 s in which it answered: of the other 50 s nobody knows.
    let (limit, suspects, verdict) = of(3);
    assert_eq!((limit.verdict.as_str(), suspects), ("none", 0), "{}", limit.text);
    assert_eq!(verdict, "seen for 10 s of 60 s");
    assert!(!limit.text.contains("eth0 of s3"), "{}", limit.text);
}

#[test]
fn a_line_made_slower_meanwhile_has_no_ceiling_and_what_was_used_of_each_speed_is_told() {
    let mut all = sources(&[IDLE, IDLE, Host { tx: 0.02, ..IDLE }, IDLE]);
    // From 20 s on a tenth of its speed, and at it.
    let mut received = 0.0;
    for (n, scrape) in all[2].scrapes.iter_mut().enumerate() {
        let slow = n >= 4;
        received += 5.0 * SPEED * if slow { 0.097 } else { 0.3 };
        for r in scrape.subjects.iter_mut().flat_map(|s| &mut s.readings) {
            match r.quantity {
                Q::NicRxBytes => r.value = received,
                Q::NicSpeedBytesPerS if slow => r.value = SPEED / 10.0,
                _ => {}
            }
        }
    }
    let line = Cluster::from_toml("version = 1\nsoftware = \"minio\"\n[[node]]\nname = \"s{1...4}\"\n[[node.nic]]\nname = \"eth0\"\nrate = \"10Gbit/s\"\n").unwrap();
    for cluster in [None, Some(&line)] {
        let seen = resources::of_window(&server_steps(&all, 0, 60 * S), &resources::with_nics(&all), cluster);
        let of = |way: &str| seen.iter().find(|s| s.used.host == "s3" && s.used.resource == way).unwrap();
        let changed = &of("network in").used;
        assert_eq!(
            (changed.verdict.as_str(), changed.share, changed.ceiling),
            ("its speed changed", None, None)
        );
        // Of the others nothing was full.
        assert_eq!(limit::of_window(&seen, false, &[]).unwrap().verdict, "none");
    }
    // Ten a second before it, and so many then.
    let findings = |then: f64| {
        let ended = |from: u64, to: u64| (to - from) as f64 / 1e9 * if from < 15 * S { 10.0 } else { then };
        super::lines::findings(&super::lines::changes(&all), &all, &[(0, 60 * S)], ended)
    };
    let [f] = &findings(2.0)[..] else { panic!() };
    assert!(
        f.text.contains("told a speed of 10Gbit/s until 15.0 s, and of 1Gbit/s from 20.0 s on"),
        "{}",
        f.text
    );
    let ends = "At 1Gbit/s it was used to 97 % in and 20 % out. Before it 150 ops succeeded in 15.0 s (10.0/s), then 80 ops succeeded in 40.0 s \
                (2.00/s).";
    assert!(f.text.ends_with(ends), "{}", f.text);
    let wide = || Finding {
        measured: Some(0.4),
        ..Finding::new("Q03", "wide_interval", Level::Qualified, "find out")
    };
    let mut all = vec![wide()];
    super::lines::explain(&mut all);
    assert_eq!(all[0].text, "find out", "no line changed");
    let mut same = vec![wide(), findings(10.0)[0].clone()];
    super::lines::explain(&mut same);
    assert_eq!(same[0].text, "find out", "and the rate was the same");
    all.push(f.clone());
    super::lines::explain(&mut all);
    assert!(all[0].text.contains("±40.0 %") && all[0].text.contains("F77 has"), "{}", all[0].text);
}

#[test]
fn the_twin_that_is_as_busy_and_not_waited_for_is_no_suspect() {
    let drive = Host { drive: 0.99, queue: 1.0, ..IDLE };
    let cpu = Host { cpu: 0.97, cpu_waits: 0.01, ..IDLE };
    assert!(suspects(&[drive; 4]).is_empty() && suspects(&[cpu; 4]).is_empty());
    let all = verdicts(&[drive, cpu, IDLE, IDLE]);
    let of = |resource: &str, host: &str| all[&(resource.to_owned(), host.to_owned())].as_str();
    assert_eq!(of("drive", "s1"), "busy, nothing waited for it");
    assert_eq!(of("cpu", "s2"), "busy, nothing waited for it");
    assert_eq!((of("drive", "s3"), of("network in", "s1")), ("below its ceiling", "below its ceiling"));
}

#[test]
fn none_two_at_once_and_the_binding_one_unobserved() {
    assert!(suspects(&[IDLE; 4]).is_empty());
    let both = Host { tx: 0.96, drive: 0.98, queue: 16.0, ..IDLE };
    let two = suspects(&[both; 4]);
    assert_eq!(two.iter().map(|s| s.0).collect::<Vec<_>>(), [Candidate::ServerDisk, Candidate::ServerNic]);
    assert_eq!(two[1].1, "eth0 of s1 and 3 more, out: 4 of 4");
    // The network is full, and its interfaces do not say what they can.
    let unknown = Host { tx: 0.99, speed: false, ..IDLE };
    assert!(suspects(&[unknown; 4]).is_empty());
    assert_eq!(verdicts(&[unknown])[&("network out".to_owned(), "s1".to_owned())], "ceiling not known");
}

#[test]
fn virtual_devices_do_not_count_twice() {
    let sources = sources(&[IDLE]);
    let seen =
        resources::of_window(&server_steps(&sources, 0, 60 * S), &resources::with_nics(&sources), None);
    let names: Vec<String> = seen.iter().map(|s| s.used.name()).collect();
    assert_eq!(names, ["s1", "eth0 of s1", "eth0 of s1", "nvme0n1 of s1"]);
    assert!((seen[0].used.reached - 0.8).abs() < 1e-9 && seen[0].used.ceiling == Some(4.0));
    assert!((seen[1].used.share.unwrap() - 0.1).abs() < 1e-9);
}

/// Servers on this machine: its processors are full, and whose work that is is not known.
#[test]
fn full_processors_that_the_client_shares_are_told_and_not_called_below() {
    let cpu = Host { cpu: 0.99, cpu_waits: 0.6, drive: 0.65, ..IDLE };
    let of = |host: Host, here: bool| {
        let sources = sources(&[host]);
        let seen =
            resources::of_window(&server_steps(&sources, 0, 60 * S), &resources::with_nics(&sources), None);
        limit::of_window(&seen, here, &[]).unwrap()
    };
    let here = of(cpu, true);
    assert_eq!((here.verdict.as_str(), here.at_ceiling.len()), ("none", 1));
    assert!(here.at_ceiling[0].starts_with("cpu shared with the client: s1"), "{here:?}");
    assert!(
        here.text.starts_with("The processors that the servers share with the client were at"),
        "{}",
        here.text
    );
    assert!(here.text.contains("the drive nvme0n1 of s1 (busy 65 % of the time)"), "{}", here.text);
    assert_eq!(of(cpu, false).resource, "cpu");
    // A drive that is full beside them is named, and they are, too.
    let both = of(Host { drive: 0.99, queue: 8.0, ..cpu }, true);
    assert!(
        both.resource == "drive" && both.text.contains("So were the processors that the servers share"),
        "{}",
        both.text
    );
    // Where they are not full nothing of it is said.
    assert!(of(IDLE, true).text.starts_with("None of"));
}
