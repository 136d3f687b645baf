//! Drives: sequential direct writes, then reads, of each drive alone and then of all together (JBOD), as dperf does.
//!
//! Each drive is a directory; each stream is a file in it with a thread of its own. A drive that cannot be used is left
//! out of the plan and named in it, so that no total hides it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_model::plan::{
    BlockOptions, DataSpec, FilesTarget, KeyDist, PLAN_VERSION, Plan, RingChoice, RunOptions, SizeDist,
    Stage, Stop, TargetSpec, Workload, suite,
};
use plimsoll_model::units::{Size, Span, format_size};
use plimsoll_run::RunError;
use plimsoll_setup::block::{alignment_of, free_bytes};
use plimsoll_setup::safety::probe::Probe;

/// Labels `drive.failed.DIR` hold why a drive was left out.
pub const FAILED_LABEL: &str = "drive.failed.";

/// dperf's flags.
#[derive(Debug, Clone, PartialEq)]
pub struct DriveOptions {
    /// A directory on each drive.
    pub directories: Vec<PathBuf>,
    /// `-b`
    pub block_bytes: u64,
    /// `-f`: of each stream's file.
    pub file_bytes: u64,
    /// `-i`
    pub streams: u32,
    /// Each drive alone only.
    pub serial: bool,
    pub write_only: bool,
    pub seed: u64,
}

impl DriveOptions {
    /// The seed's dd lines: one stream, 16 MiB x 64.
    pub fn like_dd(directory: PathBuf) -> Self {
        Self {
            directories: vec![directory],
            block_bytes: 16 << 20,
            file_bytes: 64 * (16 << 20),
            streams: 1,
            serial: true,
            write_only: false,
            seed: 0,
        }
    }
}

/// What one directory can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriveState {
    /// Alignment of direct I/O; 0: refused.
    pub alignment: u64,
    pub free_bytes: Option<u64>,
}

/// Looks at a directory by writing to a small file in it, that has no name.
pub fn look_at(directory: &Path) -> Result<DriveState, RunError> {
    let cannot = |e: std::io::Error| {
        RunError::input(
            format!("{}: cannot be written to: {e}", directory.display()),
            "Name a writable directory on the drive",
        )
    };
    let probe = Probe::make(directory).map_err(cannot)?;
    Ok(DriveState { alignment: alignment_of(&probe.path())?.bytes, free_bytes: free_bytes(directory) })
}

/// The plan, and the drives that were left out with the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct DrivePlan {
    pub plan: Plan,
    pub failed: Vec<(PathBuf, String)>,
}

/// Makes the plan; `look` tells the state of each directory ([`look_at`]).
pub fn plan(
    o: &DriveOptions,
    look: impl Fn(&Path) -> Result<DriveState, RunError>,
) -> Result<DrivePlan, RunError> {
    if o.block_bytes == 0 || o.streams == 0 || o.file_bytes < o.block_bytes {
        return Err(RunError::input(
            format!(
                "a file of {} is smaller than a block of {}",
                format_size(o.file_bytes),
                format_size(o.block_bytes)
            ),
            "Raise --filesize or lower --blocksize",
        ));
    }
    let mut good: Vec<&PathBuf> = Vec::new();
    let mut failed = Vec::new();
    for (i, d) in o.directories.iter().enumerate() {
        if let Some(same) = o.directories[..i].iter().find(|e| is_same(e, d)) {
            let text = if same == d {
                format!("{} is named twice", d.display())
            } else {
                format!("{} and {} are the same directory", same.display(), d.display())
            };
            return Err(RunError::input(text, "Name each drive once"));
        }
        match look(d).and_then(|state| suits(o, d, &state)) {
            Ok(()) => good.push(d),
            Err(e) => failed.push((d.clone(), e.to_string())),
        }
    }
    if good.is_empty() {
        let reasons: Vec<String> = failed.iter().map(|(_, e)| e.clone()).collect();
        return Err(RunError::input(
            format!("no drive can be used: {}", reasons.join("; ")),
            "Name a directory on each drive that can be written to",
        ));
    }
    let names: Vec<String> = good.iter().map(|d| d.display().to_string()).collect();
    let mut labels = BTreeMap::from([(suite::LABEL.to_owned(), suite::DRIVE.to_owned())]);
    for (d, e) in &failed {
        labels.insert(format!("{FAILED_LABEL}{}", d.display()), e.clone());
    }
    let plan = Plan {
        version: PLAN_VERSION,
        name: Some(title(o, good.len())),
        seed: o.seed,
        options: RunOptions { ring: RingChoice::Psync, ..RunOptions::default() },
        labels,
        expect: Vec::new(),
        targets: names.iter().map(|n| (n.clone(), target(o, n))).collect(),
        stages: stages(o, &names),
        controller: None,
    };
    plan.validate()?;
    Ok(DrivePlan { plan, failed })
}

/// What is measured, in words: the title of its report.
fn title(o: &DriveOptions, drives: usize) -> String {
    let what = if o.write_only { "write" } else { "read and write" };
    format!("Drives: {what}, {drives} drive{}", if drives == 1 { "" } else { "s" })
}

/// Whether two names lead to one directory, through links and dots.
fn is_same(a: &Path, b: &Path) -> bool {
    let id = |p: &Path| std::fs::metadata(p).ok().map(|m| (m.dev(), m.ino()));
    a == b || id(a).is_some_and(|x| Some(x) == id(b))
}

/// Directories of one device: what they do together is no sum over drives. One sentence for each device.
pub fn sharing(directories: &[PathBuf]) -> Vec<String> {
    let mut devices: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for d in directories {
        if let Ok(m) = std::fs::metadata(d) {
            devices.entry(m.dev()).or_default().push(d.display().to_string());
        }
    }
    let shared = devices.into_values().filter(|names| names.len() > 1);
    shared
        .map(|names| {
            format!("{} are on one file system: they are one drive, not {}", names.join(", "), names.len())
        })
        .collect()
}

fn suits(o: &DriveOptions, d: &Path, state: &DriveState) -> Result<(), RunError> {
    let shown = d.display();
    if state.alignment == 0 {
        return Err(RunError::input(
            format!("{shown}: the file system does not support direct I/O"),
            "Measure a file system on the drive itself",
        ));
    }
    if !o.block_bytes.is_multiple_of(state.alignment) {
        return Err(RunError::input(
            format!(
                "{shown}: the block size {} is not a multiple of {}",
                format_size(o.block_bytes),
                format_size(state.alignment)
            ),
            "Choose another --blocksize",
        ));
    }
    let needed = o.file_bytes.saturating_mul(u64::from(o.streams));
    if state.free_bytes.is_some_and(|free| needed > free) {
        return Err(RunError::input(
            format!(
                "{shown}: {} streams of {} need {}, {} are free",
                o.streams,
                format_size(o.file_bytes),
                format_size(needed),
                format_size(state.free_bytes.unwrap_or(0))
            ),
            "Lower --filesize or --ioperdrive",
        ));
    }
    Ok(())
}

fn target(o: &DriveOptions, directory: &str) -> TargetSpec {
    TargetSpec::Files(FilesTarget {
        directory: Path::new(directory).join("plimsoll-drive").display().to_string(),
        stem: Some("stream".into()),
        files: 1,
        file_size: Size(o.file_bytes / o.block_bytes * o.block_bytes),
        buffered: false,
        layout: false,
        invalidate: true,
        embedded: None,
    })
}

/// Each drive alone, then all together (where there are several).
fn stages(o: &DriveOptions, names: &[String]) -> Vec<Stage> {
    let mut out = Vec::new();
    for name in names {
        out.extend(pair(o, &format!("alone {name}"), std::slice::from_ref(name)));
    }
    if names.len() > 1 && !o.serial {
        out.extend(pair(o, "together", names));
    }
    out
}

fn pair(o: &DriveOptions, title: &str, names: &[String]) -> Vec<Stage> {
    let kinds = if o.write_only { &[OpKind::Write][..] } else { &[OpKind::Write, OpKind::Read] };
    kinds
        .iter()
        .map(|kind| Stage {
            name: Some(format!("{title}: {kind}")),
            warmup: Span(Duration::ZERO),
            workloads: names.iter().map(|n| workload(o, n, *kind)).collect(),
            cell: None,
        })
        .collect()
}

fn workload(o: &DriveOptions, name: &str, kind: OpKind) -> Workload {
    let write = kind == OpKind::Write;
    Workload {
        name: format!("{name} {kind}"),
        target: Some(name.to_owned()),
        mix: BTreeMap::from([(kind, 1)]),
        size: SizeDist::Fixed(Size(o.block_bytes)),
        keys: KeyDist::Sequential,
        concurrency: 1,
        jobs: Some(o.streams),
        pacing: Default::default(),
        stop: Stop { loops: Some(1), ..Stop::default() },
        verify: false,
        data: DataSpec::default(),
        object: None,
        // New files each time: writing over old ones is another measurement than dperf's.
        block: Some(BlockOptions { end_fsync: write, fresh: write, ..BlockOptions::default() }),
        machines: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(dirs: &[&str]) -> DriveOptions {
        DriveOptions {
            directories: dirs.iter().map(PathBuf::from).collect(),
            block_bytes: 4 << 20,
            file_bytes: 1 << 30,
            streams: 4,
            serial: false,
            write_only: false,
            seed: 1,
        }
    }

    fn fine(_: &Path) -> Result<DriveState, RunError> {
        Ok(DriveState { alignment: 512, free_bytes: Some(1 << 40) })
    }

    fn titles(p: &DrivePlan) -> Vec<String> {
        p.plan.stages.iter().map(|s| s.name.clone().unwrap()).collect()
    }

    #[test]
    fn each_alone_then_all_together() {
        let p = plan(&options(&["/a", "/b"]), fine).unwrap();
        assert_eq!(
            titles(&p),
            [
                "alone /a: write",
                "alone /a: read",
                "alone /b: write",
                "alone /b: read",
                "together: write",
                "together: read"
            ]
        );
        assert_eq!(p.plan.stages[4].workloads.len(), 2);
        assert_eq!(p.plan.stages[4].workloads[0].jobs, Some(4));
        assert_eq!(titles(&plan(&options(&["/a"]), fine).unwrap()).len(), 2);
        let o = DriveOptions { serial: true, write_only: true, ..options(&["/a", "/b"]) };
        assert_eq!(titles(&plan(&o, fine).unwrap()), ["alone /a: write", "alone /b: write"]);
    }

    #[test]
    fn a_drive_that_fails_is_named_and_the_rest_go_on() {
        let look = |d: &Path| match d.to_str() {
            Some("/bad") => Err(RunError::input("/bad: cannot be written to", "x")),
            Some("/4k") => Ok(DriveState { alignment: 0, free_bytes: None }),
            _ => fine(d),
        };
        let p = plan(&options(&["/a", "/bad", "/4k"]), look).unwrap();
        assert_eq!(p.failed.len(), 2);
        assert_eq!(p.plan.stages.len(), 2);
        assert!(p.plan.labels["drive.failed./bad"].contains("cannot be written"));
        let e = plan(&options(&["/bad"]), look).unwrap_err().to_string();
        assert!(e.contains("no drive can be used"), "{e}");
    }

    #[test]
    fn bad_flags_are_told() {
        let o = DriveOptions { file_bytes: 1, ..options(&["/a"]) };
        assert!(plan(&o, fine).unwrap_err().to_string().contains("smaller than a block"));
        assert!(plan(&options(&["/a", "/a"]), fine).unwrap_err().to_string().contains("twice"));
        // One directory by three names.
        let dir = tempfile::tempdir().unwrap();
        let (a, link) = (dir.path().join("a"), dir.path().join("link"));
        std::fs::create_dir(&a).unwrap();
        std::os::unix::fs::symlink(&a, &link).unwrap();
        for other in [link, a.join("../a")] {
            let names = [a.display().to_string(), other.display().to_string()];
            let told = plan(&options(&[&names[0], &names[1]]), fine).unwrap_err().to_string();
            assert!(told.contains("are the same directory"), "{told}");
        }
        std::fs::create_dir(dir.path().join("b")).unwrap();
        let shared = sharing(&[a, dir.path().join("b"), "/proc".into()]);
        assert!(shared.len() == 1 && shared[0].contains("they are one drive, not 2"), "{shared:?}");
        let full = |_: &Path| Ok(DriveState { alignment: 512, free_bytes: Some(1 << 30) });
        assert!(plan(&options(&["/a"]), full).unwrap_err().to_string().contains("are free"));
    }

    #[test]
    fn dd_is_one_stream_of_64_blocks() {
        let p = plan(&DriveOptions::like_dd("/a".into()), fine).unwrap();
        let w = &p.plan.stages[0].workloads[0];
        assert_eq!((w.size.clone(), w.jobs), (SizeDist::Fixed(Size(16 << 20)), Some(1)));
        let TargetSpec::Files(f) = &p.plan.targets["/a"] else { panic!() };
        assert_eq!(f.file_size.0, 1 << 30);
    }
}
