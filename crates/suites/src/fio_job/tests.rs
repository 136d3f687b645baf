use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_model::OpKind;
use plimsoll_model::plan::{KeyDist, Pacing, Plan, RingChoice, SizeDist, TargetSpec, Workload};
use plimsoll_model::units::{BytesRate, OpsRate, Size};
use proptest::prelude::*;

use super::*;

/// The job file of Vultr's article on block storage, as it stands there.
const VULTR: &str = "[FIOJOB]
filename=/mnt/vbs/fio.raw
size=500G
random_generator=lfsr
buffered=0
direct=1
invalidate=0
ioengine=libaio
rw=randwrite
bs=4k
iodepth=4
numjobs=16
runtime=900
loops=1
time_based=1
";

/// A file system of the test's own.
#[derive(Default)]
struct Fake(BTreeMap<PathBuf, PathKind>);

impl PathProbe for Fake {
    fn kind(&self, path: &Path) -> PathKind {
        self.0.get(path).copied().unwrap_or(PathKind::Missing)
    }
}

fn fake(path: &str, kind: PathKind) -> Fake {
    Fake(BTreeMap::from([(path.into(), kind)]))
}

fn jobs_with(text: &str, options: &ParseOptions, env: &Environ) -> Result<Jobs, FioError> {
    read_jobs(&JobFile::parse(text, "t.fio")?, options, env)
}

fn jobs(text: &str) -> Result<Jobs, FioError> {
    jobs_with(text, &ParseOptions::default(), &Environ::default())
}

fn plan_on(text: &str, probe: &Fake) -> Result<Plan, FioError> {
    lower(&jobs(text)?.jobs, &LowerOptions::default(), probe).map(|l| l.plan)
}

fn plan(text: &str) -> Plan {
    plan_on(text, &Fake::default()).unwrap()
}

fn fails(text: &str) -> String {
    match jobs(text).and_then(|j| lower(&j.jobs, &LowerOptions::default(), &Fake::default())) {
        Ok(l) => panic!("accepted: {:?}", l.plan),
        Err(e) => e.to_string(),
    }
}

fn only(p: &Plan) -> &Workload {
    match p.stages.as_slice() {
        [s] if s.workloads.len() == 1 => &s.workloads[0],
        other => panic!("{other:?}"),
    }
}

fn block(p: &Plan, name: &str) -> plimsoll_model::plan::BlockTarget {
    match &p.targets[name] {
        TargetSpec::Block(b) => b.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn several_files_share_the_size_and_take_turns() {
    let l = lower(
        &jobs("[a]\nsize=10m\nbs=64k\nfilename=/t/x:/t/y\\:z:/t/w\n").unwrap().jobs,
        &LowerOptions::default(),
        &Fake::default(),
    );
    let b = block(&l.unwrap().plan, "a");
    assert_eq!((b.path.as_str(), b.also), ("/t/x", vec!["/t/y:z".to_owned(), "/t/w".to_owned()]));
    // Whole blocks: a third of 10 MiB is 53.3 of them.
    assert_eq!(b.size, Some(Size(53 * 65536)));
}

#[test]
fn the_article_s_job_file_is_accepted_as_it_stands() {
    let l = lower(&jobs(VULTR).unwrap().jobs, &LowerOptions::default(), &Fake::default()).unwrap();
    assert_eq!(l.plan.stages.len(), 1);
    let w = &l.plan.stages[0].workloads;
    assert_eq!(w.len(), 16, "each clone is reported by itself");
    assert!(w.iter().all(|w| w.concurrency == 4 && w.keys == KeyDist::Uniform));
    assert_eq!(w[0].mix, BTreeMap::from([(OpKind::Write, 1)]));
    assert_eq!(w[0].stop.duration.unwrap().0.as_secs(), 900);
    assert_eq!(w[0].stop.loops, None, "time_based rules over loops");
    assert_eq!(l.plan.options.ring, RingChoice::Libaio);
    let b = block(&l.plan, "FIOJOB");
    assert_eq!((b.size, b.buffered, b.invalidate), (Some(Size(500 << 30)), false, false));
    assert!(l.notes.iter().any(|n| n.contains("numjobs=16")), "{:?}", l.notes);
    assert_eq!(Plan::from_toml(&l.plan.to_toml()).unwrap(), l.plan);
}

#[test]
fn set_overrides_every_job() {
    let o = ParseOptions { set: vec!["size=64m".into(), "numjobs=4".into()], ..ParseOptions::default() };
    let j = jobs_with(VULTR, &o, &Environ::default()).unwrap();
    let p = lower(&j.jobs, &LowerOptions::default(), &Fake::default()).unwrap().plan;
    assert_eq!(p.stages[0].workloads.len(), 4);
    assert_eq!(block(&p, "FIOJOB").size, Some(Size(64 << 20)));
    let bad = ParseOptions { set: vec!["size".into()], ..ParseOptions::default() };
    assert!(jobs_with(VULTR, &bad, &Environ::default()).unwrap_err().to_string().contains("key=value"));
}

#[test]
fn unknown_keys_are_errors_with_line_and_hint_unless_listed() {
    let text = "[global]\nrw=read\nsize=1m\n[a]\niodeph=4\nzonemode=zbd\n";
    let e = fails(text);
    assert!(e.contains("t.fio:5") && e.contains("Did you mean iodepth"), "{e}");
    let o = ParseOptions { ignore_unknown: true, ..ParseOptions::default() };
    let j = jobs_with(text, &o, &Environ::default()).unwrap();
    assert_eq!(j.ignored, vec!["t.fio:5 iodeph=4", "t.fio:6 zonemode=zbd"]);
}

#[test]
fn bad_files_say_where() {
    for (text, want) in [
        ("rw=read\n", "t.fio:1"),
        ("[a\nrw=read\n", "is not a section"),
        ("[a]\nrw=sideways\nsize=1m", "t.fio:2"),
        ("[a]\nrw=read\nbs=4x\nsize=1m", "t.fio:3: bs=4x"),
        ("[a]\nrw=read\n", "no size"),
        ("[a]\nrw=read\nsize=1m\ntime_based\n", "time_based has no runtime"),
        ("[a]\nsize=1k\nbs=4k\n", "less than a block"),
        ("[a]\nsize=1m\nrate=1m\nrate_iops=5\n", "mutually exclusive"),
        ("[a]\nsize=1m\nrw=randrw\nrate_iops=5,\n", "only one direction"),
        ("[a]\nsize=1m\nbssplit=4k/60:8k/60\n", "more than 100"),
        ("[a]\nsize=1m\nrandom_distribution=zoned:50/50\n", "distribution"),
        ("[a]\nsize=1m\nioengine=rdma\n", "libaio, io_uring, psync"),
        ("[a]\nsize=1m\nfilename=/t/x::/t/y\n", "empty name"),
        ("[a]\nsize=1m\nfilename=/t/x:/t/x\n", "twice"),
        ("[a]\nsize=1m\nfilename=/t/x:/t/y\nnrfiles=3\n", "names 2 files, but nrfiles asks for 3"),
        ("[a]\nsize=50%\n", "unknown size"),
        ("[a]\nsize=1m\nrate_process=poisson\n", "no rate"),
        ("[a]\ninclude nowhere.fio\n", "cannot be read"),
        ("[a]\ninclude /dev/zero\n", "not a regular file"),
        ("[a]\ninclude /dev\n", "not a regular file"),
        ("[a]\nfilename=${NOPE}/x\nsize=1m\n", "no variable 'NOPE'"),
        ("[a]\nsize=99999999999999t\n", "too large"),
        ("[a]\niodepth=0\nsize=1m\n", "not between 1"),
        ("[a]\nverify=sha512\nsize=1m\n", "not supported"),
    ] {
        let e = fails(text);
        assert!(e.contains(want), "{text:?}: {e}");
    }
}

#[test]
fn stonewall_makes_stages_and_the_rest_runs_together() {
    let p = plan(
        "[global]\nsize=1m\nbs=4k\n; a comment\n[a]\nrw=read # at the end\n[b]\nrw=write\n[c]\nstonewall\nrw=randread\n",
    );
    let names: Vec<Vec<&str>> =
        p.stages.iter().map(|s| s.workloads.iter().map(|w| w.name.as_str()).collect()).collect();
    assert_eq!(names, vec![vec!["a", "b"], vec!["c"]]);
    let groups: Vec<u32> = p
        .stages
        .iter()
        .flat_map(|s| &s.workloads)
        .map(|w| w.block.as_ref().unwrap().fio.as_ref().unwrap().group)
        .collect();
    assert_eq!(groups, vec![0, 0, 1]);
    assert_eq!(block(&p, "a").path, "a.0.0", "fio's own file names");
    assert_eq!(p.stages[0].workloads[0].stop.loops, Some(1));
    assert_eq!(p.options.ring, RingChoice::Psync);
    assert!(block(&p, "a").buffered, "fio's default is buffered");
}

#[test]
fn globals_add_up_and_own_keys_win() {
    let p =
        plan("[global]\nsize=1m\nbs=4k\n[a]\nbs=8k\n[global]\ndirect=1\niodepth=4\nioengine=libaio\n[b]\n");
    let w = &p.stages[0].workloads;
    assert_eq!(w[0].size, SizeDist::Fixed(Size(8192)));
    assert_eq!((w[0].concurrency, w[1].concurrency), (1, 4));
    assert_eq!((block(&p, "a").buffered, block(&p, "b").buffered), (true, false));
    // The engines differ, so each workload names its ring.
    assert_eq!(p.options.ring, RingChoice::Auto);
    assert_eq!(w[0].block.as_ref().unwrap().ring, Some(RingChoice::Psync));
}

#[test]
fn clones_are_apart_or_one_as_the_report_asks() {
    let shared = "[a]\nfilename=/t/x\nsize=1m\nnumjobs=3\n";
    assert_eq!(plan(shared).stages[0].workloads.len(), 3);
    let p = plan(&format!("{shared}group_reporting\nrate_iops=10\n"));
    assert_eq!(only(&p).jobs, Some(3));
    assert_eq!(only(&p).pacing, Pacing::Constant(OpsRate(30.0)), "fio's rate is per clone");
    let p = plan("[a]\nsize=1m\nnumjobs=2\ngroup_reporting\ndirectory=/t\n");
    assert_eq!(p.stages[0].workloads.len(), 2, "each has a file of its own");
    assert_eq!(block(&p, "a.1").path, "/t/a.1.0");
}

#[test]
fn sizes_follow_kb_base() {
    let size = |text: &str| only(&plan(&format!("[a]\nsize=1g\n{text}\n"))).size.clone();
    for (text, want) in [
        ("bs=4k", 4096),
        ("bs=4K", 4096),
        ("bs=4kb", 4096),
        ("bs=4ki", 4000),
        ("bs=4KiB", 4000),
        ("bs=1m", 1 << 20),
        ("bs=4k\nkb_base=1000", 4000),
        ("bs=4KiB\nkb_base=1000", 4096),
        ("bs=512b", 512),
        ("bs=0x1000", 4096),
        ("bs=(2*1k)", 2048),
    ] {
        assert_eq!(size(text), SizeDist::Fixed(Size(want)), "{text}");
    }
}

#[test]
fn block_sizes_per_direction() {
    let w = |text: &str| only(&plan(&format!("[a]\nrw=randrw\nsize=1g\n{text}\n"))).clone();
    let a = w("bs=8k,32k");
    assert_eq!(a.size, SizeDist::Fixed(Size(8192)));
    assert_eq!(a.block.unwrap().write_size, Some(SizeDist::Fixed(Size(32768))));
    assert_eq!(w("bs=8k").block.unwrap().write_size, None);
    assert_eq!(w("bs=,8k").size, SizeDist::Fixed(Size(4096)));
    assert_eq!(w("bsrange=4k-1k").size, SizeDist::Uniform { min: Size(1024), max: Size(4096) });
    assert_eq!(
        w("bssplit=4k/10:64k/50:32k/").size,
        SizeDist::Weighted(vec![(Size(4096), 10), (Size(65536), 50), (Size(32768), 40)])
    );
    assert_eq!(
        w("bssplit=4k/30:8k/30").size,
        SizeDist::Weighted(vec![(Size(4096), 30), (Size(8192), 70)]),
        "fio draws the last for what is left"
    );
}

#[test]
fn rates_and_mixes() {
    let w = |text: &str| only(&plan(&format!("[a]\nsize=1g\n{text}\n"))).clone();
    assert_eq!(w("rw=randrw\nrwmixread=70").mix, BTreeMap::from([(OpKind::Read, 70), (OpKind::Write, 30)]));
    assert_eq!(w("rw=randrw\nrwmixwrite=100").mix, BTreeMap::from([(OpKind::Write, 100)]));
    assert_eq!(w("rate=1m").pacing, Pacing::Bytes(BytesRate(1048576.0)));
    assert_eq!(w("rate_iops=100\nrate_process=poisson").pacing, Pacing::Poisson(OpsRate(100.0)));
    let m = w("rw=randrw\nrate_iops=300,100");
    assert_eq!(m.pacing, Pacing::Constant(OpsRate(400.0)));
    assert_eq!(m.mix[&OpKind::Read], 3 * m.mix[&OpKind::Write]);
    assert_eq!(w("rw=write\nrate=,512k\n").pacing, Pacing::Bytes(BytesRate(524288.0)));
}

#[test]
fn a_direction_without_a_rate_is_not_held_by_the_other() {
    let text = "[a]\nsize=1g\nrw=randrw\nbs=4k,64k\niodepth=8\nioengine=libaio\ntime_based\nruntime=9\nfsync=7\nverify=md5\n";
    let halves = |more: &str| plan(&format!("{text}{more}\n")).stages[0].workloads.clone();
    let w = halves("rate=,50m");
    assert_eq!((w[0].name.as_str(), w[1].name.as_str()), ("a (reads)", "a (writes)"));
    assert_eq!(
        (w[0].pacing.clone(), w[1].pacing.clone()),
        (Pacing::Closed, Pacing::Bytes(BytesRate(52428800.0)))
    );
    assert_eq!(
        (w[0].size.clone(), w[1].size.clone()),
        (SizeDist::Fixed(Size(4096)), SizeDist::Fixed(Size(65536)))
    );
    assert_eq!((w[0].mix.len(), w[1].mix.get(&OpKind::Write)), (1, Some(&1)));
    assert_eq!(w.iter().map(|w| w.block.as_ref().unwrap().fsync).collect::<Vec<_>>(), [0, 7]);
    assert_eq!((w[0].target.clone(), w[0].concurrency, w[0].verify), (w[1].target.clone(), 8, true));
    assert!(
        w[0].block
            .as_ref()
            .unwrap()
            .fio
            .as_ref()
            .unwrap()
            .notes
            .iter()
            .any(|n| n.contains("the writes have a rate"))
    );
    let w = halves("rate_iops=1000,\nrate_process=poisson\nnumjobs=2");
    assert_eq!(w.len(), 4);
    assert_eq!(
        (w[2].pacing.clone(), w[3].pacing.clone()),
        (Pacing::Poisson(OpsRate(1000.0)), Pacing::Closed)
    );
    let w = halves("rate=100m,50m");
    assert_eq!(w[0].pacing, Pacing::Bytes(BytesRate(104857600.0)));
    assert_eq!(w[1].pacing, Pacing::Bytes(BytesRate(52428800.0)));
}

#[test]
fn times_have_fio_s_units() {
    let p = plan("[a]\nsize=1m\nruntime=2m\ntime_based\nramp_time=500ms\nstartdelay=3\n");
    assert_eq!(only(&p).stop.duration.unwrap().0.as_secs(), 120);
    assert_eq!(p.stages[0].warmup.0.as_millis(), 500);
    assert_eq!(only(&p).block.as_ref().unwrap().start_delay.unwrap().0.as_secs(), 3);
    let p = plan("[a]\nsize=1m\nnumjobs=8\nstartdelay=1-5\n");
    let delays: Vec<f64> = p.stages[0]
        .workloads
        .iter()
        .map(|w| w.block.as_ref().unwrap().start_delay.unwrap().0.as_secs_f64())
        .collect();
    assert!(delays.iter().all(|d| (1.0..=5.0).contains(d)), "{delays:?}");
    assert!(delays.windows(2).any(|w| w[0] != w[1]));
}

#[test]
fn a_written_job_with_verify_is_read_back() {
    let p =
        plan("[a]\nsize=1m\nrw=randwrite\nverify=crc32c\nrate_iops=100\nfsync=4\n[b]\nstonewall\nsize=1m\n");
    assert_eq!(p.stages.len(), 3);
    let v = &p.stages[1].workloads[0];
    assert!(v.verify && v.pacing == Pacing::Closed && v.stop.loops == Some(1));
    assert_eq!(v.mix, BTreeMap::from([(OpKind::Read, 1)]));
    assert_eq!(v.target, p.stages[0].workloads[0].target);
    assert_eq!(p.stages[0].workloads[0].block.as_ref().unwrap().fsync, 4);
    assert_eq!(plan("[a]\nsize=1m\nrw=write\nverify=md5\ndo_verify=0\n").stages.len(), 1);
}

#[test]
fn targets_follow_what_is_there() {
    let device = fake("/dev/x", PathKind::BlockDevice { size: 1 << 30 });
    let p = plan_on("[a]\nfilename=/dev/x\nrw=randread\noffset=25%\nsize=50%\n", &device).unwrap();
    let b = block(&p, "a");
    assert_eq!((b.offset, b.size), (Some(Size(256 << 20)), Some(Size(512 << 20))));
    assert!(!b.layout, "a device is never laid out for a read");
    assert_eq!(block(&plan_on("[a]\nfilename=/dev/x\n", &device).unwrap(), "a").size, Some(Size(1 << 30)));
    let e = plan_on("[a]\nfilename=/dev/x\nsize=2g\n", &device).unwrap_err().to_string();
    assert!(e.contains("reach to"), "{e}");
    let theirs = fake("f", PathKind::File { size: 1 << 20, ours: false });
    assert!(!block(&plan_on("[a]\nfilename=f\n", &theirs).unwrap(), "a").layout);
    let ours = fake("f", PathKind::File { size: 1 << 20, ours: true });
    assert!(block(&plan_on("[a]\nfilename=f\nsize=2m\n", &ours).unwrap(), "a").layout);
    let dir = fake("f", PathKind::Directory);
    assert!(plan_on("[a]\nfilename=f\nsize=2m\n", &dir).unwrap_err().to_string().contains("is a directory"));
}

#[test]
fn several_files_become_a_file_set() {
    let p = plan("[a]\ndirectory=/t\nnrfiles=8\nsize=8m\nnumjobs=2\nrw=randread\nunlink=1\n");
    let TargetSpec::Files(f) = &p.targets["a"] else { panic!() };
    assert_eq!((f.files, f.file_size, f.directory.as_str()), (8, Size(1 << 20), "/t"));
    assert_eq!(only(&p).jobs, Some(2));
    assert!(!p.options.keep, "unlink=1 removes the files");
}

#[test]
fn synchronous_engines_have_one_in_flight() {
    let l = lower(
        &jobs("[a]\nsize=1m\niodepth=8\nioengine=sync\n").unwrap().jobs,
        &LowerOptions::default(),
        &Fake::default(),
    )
    .unwrap();
    assert_eq!(only(&l.plan).concurrency, 1);
    assert!(l.notes[0].contains("iodepth=8"), "{:?}", l.notes);
}

#[test]
fn variables_and_keywords() {
    let env = Environ::from_pairs([("D".into(), "/data".into())]).with_keyword("$pagesize", "4096");
    let j = jobs_with("[a]\nfilename=${D}/x\nsize=8*$pagesize\n", &ParseOptions::default(), &env).unwrap();
    assert_eq!(j.jobs[0].filename, ["/data/x"]);
    assert_eq!(j.jobs[0].size, Some(BytesOrPercent::Bytes(32768)));
}

#[test]
fn includes_are_read_beside_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    put("defaults.inc", "size=1m\nbs=16k\n");
    put("loop.inc", "include loop.inc\n");
    put("section.inc", "[x]\n");
    put("a.fio", "[global]\ninclude defaults.inc\n[a]\nrw=randread\n");
    let paths = [dir.path().join("a.fio"), dir.path().join("a.fio")];
    let j = read_files(&paths, &ParseOptions::default()).unwrap();
    assert_eq!(j.jobs[0].size, Some(BytesOrPercent::Bytes(1 << 20)));
    assert_eq!(j.jobs.iter().map(|j| j.stonewall).collect::<Vec<_>>(), vec![false, true]);
    for (inc, want) in [("loop.inc", "deep"), ("section.inc", "included file has a section")] {
        put("b.fio", &format!("[a]\ninclude {inc}\n"));
        let e = read_files(&[dir.path().join("b.fio")], &ParseOptions::default()).unwrap_err();
        assert!(e.to_string().contains(want), "{e}");
    }
}

#[test]
fn one_section_can_be_picked() {
    let o = ParseOptions { sections: vec!["b".into()], ..ParseOptions::default() };
    let j = jobs_with("[global]\nsize=1m\n[a]\n[b]\nbs=8k\n", &o, &Environ::default()).unwrap();
    assert_eq!(j.jobs.len(), 1);
    assert_eq!(j.jobs[0].name, "b");
}

proptest! {
    /// Any text either becomes a valid plan or an error; nothing panics.
    #[test]
    fn no_text_breaks_the_parser(lines in proptest::collection::vec(
        ("(rw|bs|size|bssplit|bsrange|iodepth|offset|runtime|rate|filename|zz|percentile_list|startdelay|numjobs)",
         "[ -~]{0,12}|[0-9]{1,20}[kmgtp%]?|[0-9]{1,3}k/[0-9]{1,3}:[0-9]k/"), 0..8)) {
        let mut text = String::from("[a]\nsize=1m\n");
        for (k, v) in lines {
            text.push_str(&format!("{k}={v}\n"));
        }
        if let Ok(j) = jobs(&text) {
            for job in j.jobs.iter().filter(|j| j.numjobs <= 64) {
                if let Ok(l) = lower(std::slice::from_ref(job), &LowerOptions::default(), &Fake::default()) {
                    prop_assert_eq!(Plan::from_toml(&l.plan.to_toml()).unwrap(), l.plan);
                }
            }
        }
    }

    #[test]
    fn arbitrary_bytes_as_text(text in "\\PC{0,200}") {
        let _ = jobs(&text);
    }
}
