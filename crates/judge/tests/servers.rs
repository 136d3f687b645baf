//! Runs against simulated clusters of which the truth is known: what drives read of what clients read, what else the servers did, how many
//! requests they had, and what these cost them. Each is told, and its twin, in which the same would be wrong to say, is not.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_judge::{judge, windows_of};
use plimsoll_model::interval::{ClientCounts, SeriesShape};
use plimsoll_model::observed::{ReadSubject, ServerQuantity as Q, ServerReading};
use plimsoll_model::summary::servers::{DaemonUse, ServersSummary, ServersWindow};
use plimsoll_model::{
    Cluster, Environment, Finding, Interval, Level, OpKind, Outcome, Plan, RunSummary, Scrape, Series,
    SeriesId,
};
use plimsoll_store::mark::{LoadTimes, StageReport};
use plimsoll_store::{EnvFile, LoadOptions, Mark, RunDir, rundir::ENV_FORMAT};

const S: u64 = 1_000_000_000;
const GRID_NS: u64 = 100_000_000;
const WARM: u64 = 20;
const SLICES: u64 = 420;
const SLOTS: u32 = 16;
const NODES: usize = 4;
const MIB: f64 = (1u64 << 20) as f64;
/// Objects of 1 MiB that are read, and written, in a slice.
const GETS: u64 = 20;
const PUTS: u64 = 10;

const PLAN: &str = r#"
version = 1
name = "cluster"
[targets.s3]
kind = "s3"
endpoints = ["http://s{1...4}:9000"]
bucket = "bench"
[[stage]]
warmup = "2s"
[[stage.workload]]
name = "mixed"
mix = { get = 2, put = 1 }
size = "1MiB"
concurrency = 16
stop = { duration = "40s" }
"#;

/// What the servers do beside our load. Of each second: our GETs and PUTs, and this.
#[derive(Clone, Copy)]
struct Truth {
    /// Part of what clients read that comes from drives.
    from_drives: f64,
    /// GETs of others a second, by all servers together.
    others: f64,
    /// Bytes of each of these.
    others_bytes: f64,
    /// Nodes that somebody looks at.
    seen: usize,
    /// Seconds between which a drive heals.
    heals: (f64, f64),
    /// Bytes a second that recovery moves.
    recovers: f64,
    /// Objects that a scanner looks at, a second.
    scans: f64,
    /// CPU seconds that servers take for a GiB of payload, and resident memory of the largest.
    cpu_s_per_gib: f64,
    rss_bytes: f64,
    /// Seconds that its counters are old at the most.
    resolution_s: u64,
    /// They are made anew at multiples of this alone; 0: for each answer.
    made_every_s: u64,
    /// Nobody answers.
    silent: bool,
    /// The last server is read so many times, and no more.
    last_read: usize,
}

const REST: Truth = Truth {
    from_drives: 1.0,
    others: 0.0,
    others_bytes: 0.0,
    seen: NODES,
    heals: (0.0, 0.0),
    recovers: 0.0,
    scans: 0.0,
    cpu_s_per_gib: 2.0,
    rss_bytes: 3e8,
    resolution_s: 0,
    made_every_s: 0,
    silent: false,
    last_read: usize::MAX,
};

impl Truth {
    /// All that was counted until then, of one node. All nodes do the same.
    fn scrape(&self, at_s: f64) -> Scrape {
        if self.silent {
            let gap = Some("no answer within 4 s".to_owned());
            return Scrape { at_ns: (at_s * 1e9) as u64, gap, ..Scrape::default() };
        }
        let r = |quantity, label: &str, value| ServerReading { quantity, label: label.into(), value };
        let (gets, puts) = (GETS as f64 * 10.0, PUTS as f64 * 10.0);
        let made_s = match self.made_every_s as f64 {
            0.0 => at_s,
            every => (at_s / every).floor() * every,
        };
        let each = made_s / NODES as f64;
        let payload = (gets + puts) * MIB;
        let mut subjects: Vec<ReadSubject> = Vec::new();
        for n in 1..=self.seen {
            let rss = if n == 1 { self.rss_bytes } else { self.rss_bytes / 2.0 };
            let minio = vec![
                r(Q::Requests, "GetObject", each * (gets + self.others)),
                r(Q::Requests, "PutObject", each * puts),
                r(Q::SentBytes, "", each * (gets * MIB + self.others * self.others_bytes)),
                r(Q::ReceivedBytes, "", each * puts * MIB),
                r(Q::ProcessCpuS, "", each * payload / (1024.0 * MIB) * self.cpu_s_per_gib),
                r(Q::ProcessRssBytes, "", rss),
                r(Q::ScannedObjects, "", each * self.scans),
            ];
            let host = format!("s{n}");
            subjects.push(ReadSubject {
                host: host.clone(),
                daemon: format!("minio@{host}:9000"),
                readings: minio,
            });
            let node = vec![
                r(Q::DiskReadBytes, "nvme0n1", each * gets * MIB * self.from_drives),
                r(Q::DiskWriteBytes, "nvme0n1", each * puts * MIB * 4.0 / 3.0),
            ];
            subjects.push(ReadSubject { host, daemon: String::new(), readings: node });
        }
        let heals = (self.heals.0..self.heals.1).contains(&at_s);
        let cluster = vec![
            r(Q::DrivesHealing, "0", if heals { 1.0 } else { 0.0 }),
            r(Q::RecoveringBytesPerS, "1", if heals { self.recovers } else { 0.0 }),
        ];
        subjects.push(ReadSubject { host: String::new(), daemon: String::new(), readings: cluster });
        Scrape {
            at_ns: (at_s * 1e9) as u64,
            resolution_ns: self.resolution_s * S,
            subjects,
            ..Scrape::default()
        }
    }

    fn write(&self, dir: &Path) -> RunDir {
        let run = RunDir::create(dir).unwrap();
        run.write_plan(&Plan::from_toml(PLAN).unwrap()).unwrap();
        let env = EnvFile {
            format: ENV_FORMAT.into(),
            id: "cluster".into(),
            environment: Environment::default(),
            rerun: "plimsoll run cluster.toml".into(),
            clock_offsets_ns: BTreeMap::new(),
        };
        run.write_env(&env).unwrap();
        load(&run);
        let mut w = run.open_observed(0, "minio s1").unwrap();
        for (i, s) in (0..=SLICES / 10).step_by(4).enumerate() {
            let mut scrape = self.scrape(s as f64 + 0.5);
            if i >= self.last_read {
                let last = format!("s{}", self.seen);
                scrape.subjects.retain(|s| s.host != last);
            }
            w.scrape(&scrape).unwrap();
        }
        w.finish().unwrap();
        run.seal("done").unwrap();
        run
    }

    fn judged(&self) -> RunSummary {
        self.judged_with(None)
    }

    /// With what its file says of its nodes.
    fn judged_with(&self, cluster: Option<Cluster>) -> RunSummary {
        let dir = tempfile::tempdir().unwrap();
        let run = self.write(dir.path());
        let mut data = run.load(&LoadOptions::default()).unwrap();
        data.plan.options.cluster = cluster.map(Box::new);
        let windows = windows_of(&data);
        let totals = run.totals(&windows.measured, windows.measured.len()).unwrap();
        let whole = run.totals(&windows.whole, 0).unwrap();
        judge(&data, &totals, &whole, &run.altered_files().unwrap()).0
    }
}

/// What clients do: the same in each slice.
fn load(run: &RunDir) {
    let mut w = run.create_intervals("local", GRID_NS).unwrap();
    let spec = Box::new(Plan::from_toml(PLAN).unwrap().stages.remove(0));
    let (stage, at_ns) = (0, 0);
    let endpoints = vec![(1..=NODES).map(|n| format!("http://s{n}:9000")).collect()];
    let start =
        Mark::StageStart { stage, at_ns, spec, endpoints, workers: 2, ring: "epoll".into(), slots: SLOTS };
    w.mark(&start).unwrap();
    let mut slice = Interval::empty(0);
    let kinds = [(OpKind::Get, GETS), (OpKind::Put, PUTS)];
    for (kind, _) in kinds {
        slice.series.push(Series::new(SeriesId { stage, workload: 0, kind }, SeriesShape::default()));
    }
    let in_flight_ns = u64::from(SLOTS) * GRID_NS;
    for i in 0..SLICES {
        if i == WARM {
            w.mark(&Mark::WarmupEnd { stage, at_ns: WARM * GRID_NS }).unwrap();
        }
        slice.reset(i);
        for (s, (_, ops)) in slice.series.iter_mut().zip(kinds) {
            for n in 0..ops {
                // Half of them a little shorter, half a little longer: what was in flight is what they took.
                s.response.record(in_flight_ns / (GETS + PUTS) / 10 * (9 + 2 * (n % 2)));
            }
            (s.counts.started, s.counts.outcomes[Outcome::Ok.index()]) = (ops, ops);
            (s.counts.bytes_ok, s.counts.bytes_moved) = (ops << 20, ops << 20);
            s.counts.in_system_ns = u128::from(in_flight_ns * ops / (GETS + PUTS));
        }
        slice.client = ClientCounts {
            workers: 2,
            alive_ns: 2 * GRID_NS,
            waited_ns: 2 * GRID_NS * 9 / 10,
            cpu_ns: GRID_NS / 10,
            in_flight_ns: u128::from(in_flight_ns),
            ..ClientCounts::default()
        };
        w.interval(stage, &slice).unwrap();
    }
    let at_ns = SLICES * GRID_NS;
    w.mark(&Mark::StopRequested { stage, at_ns, reason: "duration".into() }).unwrap();
    let times = LoadTimes { began_ns: 0, finished_ns: at_ns };
    let report = Box::new(StageReport { times: Some(times), ..StageReport::default() });
    w.mark(&Mark::StageReport { stage, at_ns, report }).unwrap();
    w.mark(&Mark::StageEnd { stage, at_ns }).unwrap();
    w.finish().unwrap();
}

fn found<'a>(s: &'a RunSummary, code: &str) -> Option<&'a Finding> {
    s.findings.iter().find(|f| f.code == code)
}

fn servers(s: &RunSummary) -> &ServersSummary {
    s.servers.as_ref().expect("servers were observed")
}

fn window(s: &RunSummary) -> &ServersWindow {
    let [one] = &servers(s).windows[..] else { panic!("{:?}", servers(s).windows) };
    one
}

fn near(a: f64, b: f64) {
    assert!((a / b - 1.0).abs() < 0.01, "{a} is not {b}");
}

/// Neither cache, nor unrest, nor others: nothing of it is said, and the figures are those of the truth.
#[test]
fn a_cluster_at_rest_is_told_as_one() {
    let s = REST.judged();
    for code in ["F71", "F72", "F73", "F79", "F97"] {
        assert_eq!(found(&s, code), None);
    }
    let w = window(&s);
    near(w.clients_read_per_s, 200.0 * MIB);
    near(w.drives_read_per_s.unwrap(), 200.0 * MIB);
    near(w.drives_wrote_per_s.unwrap(), 100.0 * MIB * 4.0 / 3.0);
    assert!(servers(&s).background.is_empty());
    assert!(servers(&s).not_observed.iter().any(|n| n.contains("processors")), "no exporter tells of them");
}

#[test]
fn where_nobody_answers_more_time_is_no_remedy() {
    let s = Truth { silent: true, ..REST }.judged();
    let text = &found(&s, "F78").unwrap().text;
    assert!(text.contains("No observed source answered") && !text.contains("longer"), "{text}");
}

/// A name in the file that is not the one at which a host is observed was a host of nobody, and nothing said so.
#[test]
fn hosts_that_the_file_does_not_have_are_named() {
    let file = |nodes: &str| {
        let text = format!("version = 1\nsoftware = \"minio\"\n[[node]]\nname = \"{nodes}\"\n");
        Some(Cluster::from_toml(&text).unwrap())
    };
    let said = |nodes: &str| {
        let s = REST.judged_with(file(nodes));
        let f = s.findings.iter().find(|f| f.name == "not_described");
        f.map(|f| (f.code.clone(), f.level, f.text.clone()))
    };
    assert_eq!(said("s{1...4}"), None);
    let (code, level, text) = said("s{1...3}").unwrap();
    assert_eq!((code.as_str(), level), ("F78", Level::Info));
    assert!(text.starts_with("Observed and not in cluster.toml: s4."), "{text}");
    let (_, level, text) = said("node{1...4}").unwrap();
    assert_eq!(level, Level::Qualified);
    assert!(text.contains("No observed host (s1, s2, s3") && text.contains("which has node1"), "{text}");
}

#[test]
fn reads_from_caches_are_told_from_half_of_the_bytes_on() {
    let s = Truth { from_drives: 0.1, ..REST }.judged();
    let f = found(&s, "F73").unwrap();
    near(f.measured.unwrap(), 0.1);
    assert_eq!((f.level, f.threshold), (Level::Info, Some(0.5)));
    assert!(f.text.contains("10 % of that"), "{}", f.text);
    // The twin: the drives read a little less than the clients, as with checks and readahead off.
    assert_eq!(found(&Truth { from_drives: 0.6, ..REST }.judged(), "F73"), None);
    // Of three hosts nobody tells what their drives read: the sentence does not lay it to caches alone.
    let one = Truth { seen: 1, ..REST }.judged();
    let f = found(&one, "F73").unwrap();
    assert!(f.text.contains("or from hosts that were not observed"), "{}", f.text);
    assert!(servers(&one).not_observed.iter().any(|n| n == "host s4"));
}

#[test]
fn unrest_qualifies_in_the_window_alone_and_voids_where_it_moves_a_tenth() {
    let s = Truth { heals: (12.0, 24.0), ..REST }.judged();
    let f = found(&s, "F71").unwrap();
    assert!(f.level == Level::Qualified && f.text.contains("1 drive(s) healing"), "{}", f.text);
    let [span] = &servers(&s).background[..] else { panic!("{:?}", servers(&s).background) };
    // Read each 4 s: told of from 12.5 to 24.5.
    assert_eq!(
        (span.what.as_str(), span.start_s, span.end_s, span.in_window),
        ("1 drive(s) healing", 12.5, 24.5, true)
    );
    // 5 % and 20 % of the 300 MiB/s of the clients, in a third of the time and throughout.
    let moves = |share: f64, heals| Truth { heals, recovers: share * 300.0 * MIB, ..REST }.judged();
    assert_eq!(found(&moves(0.05, (0.0, 99.0)), "F71").unwrap().level, Level::Qualified);
    let void = moves(0.2, (0.0, 99.0));
    assert!(found(&void, "F71").unwrap().level == Level::Invalid && !void.valid);
    near(found(&void, "F71").unwrap().measured.unwrap(), 0.2);
    // The twin: it was over before the window began.
    let before = Truth { heals: (0.0, 1.0), ..REST }.judged();
    assert_eq!(found(&before, "F71"), None);
    let [span] = &servers(&before).background[..] else { panic!("{:?}", servers(&before).background) };
    assert!(!span.in_window, "nobody saw it there: {span:?}");
    // A scanner is told, and stands against nothing.
    let rest = REST.judged();
    let scans = Truth { scans: 50.0, ..REST }.judged();
    assert_eq!(found(&scans, "F79").map(|f| f.level), Some(Level::Info));
    let codes =
        |s: &RunSummary| s.findings.iter().map(|f| f.code.clone()).filter(|c| c != "F79").collect::<Vec<_>>();
    assert_eq!((scans.valid, codes(&scans)), (rest.valid, codes(&rest)));
    assert!(servers(&scans).background[0].what.starts_with("scanner looked at"));
}

#[test]
fn requests_that_are_not_ours_are_told_from_a_twentieth_on() {
    let with = |others: f64| Truth { others, others_bytes: MIB, ..REST }.judged();
    let s = with(40.0);
    let f = found(&s, "F72").unwrap();
    assert_eq!((f.name.as_str(), f.level), ("load_of_others", Level::Qualified));
    near(f.measured.unwrap(), 0.2);
    let bytes = found(&s, "F97").unwrap();
    near(bytes.measured.unwrap(), 40.0 / 300.0);
    // The twin: health checks and listings are fewer.
    let few = with(4.0);
    assert_eq!((found(&few, "F72"), found(&few, "F97")), (None, None));
    // Small requests of others move no bytes to speak of: they are told by their number alone.
    let small = Truth { others: 40.0, others_bytes: 1000.0, ..REST }.judged();
    assert!(found(&small, "F72").is_some() && found(&small, "F97").is_none());
    // One of four was read once, and what it counted is missing: no request is one that nobody counted.
    assert_eq!(found(&Truth { last_read: 1, ..REST }.judged(), "F72"), None);
    // Of four servers three are looked at.
    let f = Truth { seen: 3, ..REST }.judged();
    let f = found(&f, "F72").unwrap();
    assert_eq!(f.name, "requests_not_counted");
    near(f.measured.unwrap(), -0.25);
}

#[test]
fn what_a_gibibyte_and_an_op_cost_the_servers() {
    let of = |truth: Truth| -> DaemonUse {
        let s = truth.judged();
        let [minio] = &window(&s).daemons[..] else { panic!("{:?}", window(&s).daemons) };
        minio.clone()
    };
    let d = of(REST);
    assert_eq!((d.kind.as_str(), d.daemons, d.rss_bytes), ("minio", 4, Some(3e8)));
    near(d.cpu_s_per_gib.unwrap(), 2.0);
    // 300 ops of a MiB a second.
    near(d.cpu_s_per_op.unwrap(), 2.0 / 1024.0);
    near(d.cores, 2.0 * 300.0 / 1024.0);
    // Twice the time for a byte is twice the cost, and the memory is that of the largest.
    let d = of(Truth { cpu_s_per_gib: 4.0, rss_bytes: 9e8, ..REST });
    near(d.cpu_s_per_gib.unwrap(), 4.0);
    assert_eq!(d.rss_bytes, Some(9e8));
    // Of counters that are 5 s old the same: only what lies inside of the window counts.
    near(of(Truth { resolution_s: 5, ..REST }).cpu_s_per_gib.unwrap(), 2.0);
}

/// Of counters that are made each 7 s two readings in 24 s may be 28 s apart: that is nobody's load.
#[test]
fn old_counters_are_no_load_of_others_and_hide_none_that_is_larger() {
    let old = |every: u64, others: f64| {
        let t = Truth { resolution_s: every, made_every_s: every, others, others_bytes: MIB, ..REST };
        t.judged()
    };
    for every in [7, 10, 15] {
        let s = old(every, 0.0);
        assert!(!window(&s).requests.is_empty());
        assert_eq!((found(&s, "F72"), found(&s, "F97")), (None, None), "{every}");
    }
    let s = old(7, 400.0);
    assert_eq!(found(&s, "F72").unwrap().name, "load_of_others");
    assert!(found(&s, "F97").is_some());
}
