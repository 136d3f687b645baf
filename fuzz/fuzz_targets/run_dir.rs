//! A whole run directory with anything in its files loads, in bounded memory, up to what is readable: no panic.
//!
//! A good run is made once; each input is a list of edits of its records and files. Records keep good frames and
//! checksums, so that what lies behind those is reached.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use plimsoll_model::interval::SeriesShape;
use plimsoll_model::{Environment, Interval, OpKind, Plan, Series, SeriesId};
use plimsoll_store::frame::{FrameReader, FrameWriter};
use plimsoll_store::varint::{Cursor, put_u64};
use plimsoll_store::{EnvFile, LoadOptions, Mark, RunDir, StageReport};

const PLAN: &str = "version = 1\n[targets.n]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\n";
const GRID_NS: u64 = 100_000_000;
/// Numbers that a JSON number is replaced by.
const NUMBERS: [&str; 8] = [
    "0",
    "1",
    "-1",
    "1e300",
    "4294967295",
    "9007199254740993",
    "18446744073709551615",
    "3000000000000000000",
];

/// Tag and content of a record.
type RawRecord = (u8, Vec<u8>);

struct Template {
    streams: Vec<(&'static str, Vec<RawRecord>)>,
    files: Vec<(&'static str, Vec<u8>)>,
}

/// (file, record, kind of edit, place, bytes)
type Edit = (u8, u8, u8, u16, Vec<u8>);

fn slice(stage: u32, index: u64) -> Interval {
    let id = SeriesId { stage, workload: 0, kind: OpKind::Null };
    let mut s = Series::new(id, SeriesShape { service: true, endpoints: 1, ..SeriesShape::default() });
    for n in 0..20 {
        s.response.record(1_000_000 + n * 7_919 + index);
    }
    (s.counts.started, s.counts.outcomes[0], s.counts.in_system_ns) = (20, 20, 20_000_000);
    Interval { index, series: vec![s], ..Interval::empty(index) }
}

fn good_run(root: &Path) -> RunDir {
    let run = RunDir::create(root).expect("a directory");
    let plan = Plan::from_toml(PLAN).expect("a plan");
    run.write_plan(&plan).expect("written");
    let (id, format) = (run.id(), "plimsoll.env/1".into());
    let environment = Environment::default();
    let rerun = "plimsoll run plan.toml".into();
    run.write_env(&EnvFile { format, id, environment, rerun, clock_offsets_ns: [].into() }).expect("written");
    for agent in ["a", "b"] {
        let mut w = run.create_intervals(agent, GRID_NS).expect("a file");
        for stage in 0..2u32 {
            let first = u64::from(stage) * 8;
            let (at_ns, spec) = (first * GRID_NS, Box::new(plan.stages[0].clone()));
            let ring = String::from("none");
            w.mark(&Mark::StageStart { stage, at_ns, spec, endpoints: vec![], workers: 1, ring, slots: 0 })
                .expect("written");
            w.mark(&Mark::WarmupEnd { stage, at_ns: at_ns + GRID_NS }).expect("written");
            (first..first + 6).for_each(|i| w.interval(stage, &slice(stage, i)).expect("written"));
            let (at_ns, reason) = (at_ns + 5 * GRID_NS, "duration".into());
            w.mark(&Mark::StopRequested { stage, at_ns, reason }).expect("written");
            let report = Box::new(StageReport::default());
            w.mark(&Mark::StageReport { stage, at_ns, report }).expect("written");
            w.mark(&Mark::StageEnd { stage, at_ns: at_ns + GRID_NS }).expect("written");
        }
        w.finish().expect("written");
    }
    run.seal("done").expect("sealed");
    run
}

fn records(path: &Path) -> Vec<RawRecord> {
    let mut out = Vec::new();
    let mut frames = FrameReader::open(path).expect("a file");
    while let Some(frame) = frames.next().expect("no disk error") {
        let mut c = Cursor::new(&frame);
        while !c.is_empty() {
            let tag = c.u8("tag").expect("a record");
            let len = c.count("length").expect("a record");
            out.push((tag, c.bytes(len, "record").expect("a record").to_vec()));
        }
    }
    out
}

fn template() -> &'static Template {
    static MADE: OnceLock<Template> = OnceLock::new();
    MADE.get_or_init(|| {
        let root = PathBuf::from(format!("/dev/shm/plimsoll-fuzz-good-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let run = good_run(&root);
        let streams = ["intervals/a.zst", "intervals/b.zst"].map(|n| (n, records(&run.path().join(n))));
        let whole = |name| (name, std::fs::read(run.path().join(name)).expect("a file"));
        let mut files: Vec<_> = ["plan.toml", "env.json", "seal.json"].map(whole).into();
        files.extend([("journal", Vec::new()), ("summary.json", Vec::new()), ("analysis.json", Vec::new())]);
        let _ = std::fs::remove_dir_all(&root);
        Template { streams: streams.into(), files }
    })
}

/// Replaces the n-th run of digits of a text.
fn renumber(body: &mut Vec<u8>, n: usize, with: &str) {
    let starts: Vec<usize> = (0..body.len())
        .filter(|i| body[*i].is_ascii_digit() && (*i == 0 || !body[i - 1].is_ascii_digit()))
        .collect();
    if let Some(&from) = starts.get(n % starts.len().max(1)) {
        let length = body[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        body.splice(from..from + length, with.bytes());
    }
}

fn edit_bytes(body: &mut Vec<u8>, kind: u8, at: u16, bytes: &[u8]) {
    let from = usize::from(at) % (body.len() + 1);
    match kind % 4 {
        0 => body.iter_mut().skip(from).zip(bytes).for_each(|(b, new)| *b = *new),
        1 => drop(body.splice(from..from, bytes.iter().copied())),
        2 => drop(body.drain(from..(from + bytes.len() + 1).min(body.len()))),
        _ => renumber(body, usize::from(at), NUMBERS[bytes.first().map_or(0, |b| usize::from(b % 8))]),
    }
}

fn edit_records(records: &mut Vec<RawRecord>, (_, which, kind, at, bytes): &Edit) {
    if records.is_empty() {
        return;
    }
    let i = usize::from(*which) % records.len();
    match kind % 8 {
        0..4 => edit_bytes(&mut records[i].1, *kind, *at, bytes),
        4 => records.insert(i, records[i].clone()),
        5 => drop(records.remove(i)),
        6 => records[i].0 = (at % 6) as u8,
        _ => records.insert(i, ((at % 6) as u8, bytes.clone())),
    }
}

fn write(dir: &Path, template: &Template, edits: &[Edit]) {
    let of = |file: usize| {
        let files = template.streams.len() + template.files.len();
        edits.iter().filter(move |e| usize::from(e.0) % files == file)
    };
    for sub in ["intervals", "samples"] {
        std::fs::create_dir_all(dir.join(sub)).expect("a directory");
    }
    for (n, (name, records)) in template.streams.iter().enumerate() {
        let mut records = records.clone();
        of(n).for_each(|e| edit_records(&mut records, e));
        let mut w = FrameWriter::create(&dir.join(name)).expect("a new file");
        for (tag, body) in &records {
            let mut frame = vec![*tag];
            put_u64(&mut frame, body.len() as u64);
            frame.extend_from_slice(body);
            w.append(&frame).expect("a frame");
        }
    }
    for (n, (name, body)) in template.files.iter().enumerate() {
        let mut body = body.clone();
        of(template.streams.len() + n).for_each(|e| edit_bytes(&mut body, e.2, e.3, &e.4));
        if !body.is_empty() {
            std::fs::write(dir.join(name), body).expect("a new file");
        }
    }
}

/// Everything that a reader of runs does before it judges.
fn read(run: &RunDir, options: &LoadOptions) {
    let _ = (run.sealed(), run.altered_files(), run.summary(), run.analysis(), run.is_running());
    let _ = plimsoll_store::journal::pending(&run.journal_path());
    let Ok(data) = run.load(options) else { return };
    let grid_ns = data.grid_ns;
    let mut windows = Vec::new();
    for s in &data.stages {
        windows.extend([s.window(grid_ns), s.extent(grid_ns)].into_iter().flatten().take(2));
        let counts = s.counts(s.series.keys().copied(), data.step_ns, s.start_ns, s.last_ns);
        let _ = counts.iter().fold((0u64, 0u64), |n, c| (n.0 | c.ok(), n.1 | c.failed() | c.throttled()));
        let _ = s.client_points(data.step_ns, s.start_ns, s.last_ns);
        for a in &s.agents {
            let _ = (s.agent_points(a, data.step_ns, s.start_ns, s.last_ns), a.is_lost_before(s.last_ns));
            let _ = data.samples_of(&data.agents[a.agent]);
        }
    }
    windows.truncate(8);
    windows.iter().for_each(|w| assert!(w.seconds(grid_ns).is_finite()));
    for t in run.totals(&windows, windows.len()).unwrap_or_default() {
        t.agents.iter().for_each(|a| assert!(a.agent < data.agents.len()));
    }
}

fuzz_target!(|input: (Vec<Edit>, u8, u8)| {
    let (edits, step, points) = input;
    let root = PathBuf::from(format!("/dev/shm/plimsoll-fuzz-run-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    let dir = root.join("r");
    write(&dir, template(), &edits);
    let step_ns = (step > 0).then_some(u64::from(step) * 30_000_000);
    let options =
        LoadOptions { step_ns, max_points: 1 + u64::from(points) * 300, max_samples: usize::from(points) };
    if let Ok(run) = RunDir::open(&dir) {
        read(&run, &options);
    }
    let _ = plimsoll_store::rundir::list(&root);
    let _ = std::fs::remove_dir_all(&root);
});
