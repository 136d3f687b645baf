//! The file benchmark: write, read, IOPS, as GoBonnieGo does them, corrected where the original misleads.
//!
//! [`plan`] makes a plan of three stages a run; the report reads it back by the names given here.

mod cycles;
mod host;
mod original;
mod phases;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_model::plan::{
    BlockOptions, Cell, DataSpec, EmbeddedDisk, FilesTarget, KeyDist, PLAN_VERSION, Plan, RingChoice,
    RunOptions, SizeDist, Stage, Stop, TargetSpec, Workload, suite,
};
use plimsoll_model::units::{Size, Span, about_size, format_size};
use plimsoll_run::RunError;

pub use cycles::CycleLines;
pub use host::{CacheMode, Host};
pub use original::Original;
pub use phases::{BLOCK_BYTES, STAGES};

/// Block size of the IOPS phase, bytes.
pub const IOPS_BLOCK_BYTES: u64 = 512;
/// Space that stays free beside the files.
const HEADROOM: f64 = 1.02;

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct FileBenchOptions {
    pub directory: PathBuf,
    /// The directory is on a disk that is made for the run.
    pub embedded: Option<EmbeddedDisk>,
    pub runs: u32,
    /// Of all files together; absent: twice the memory.
    pub size_bytes: Option<u64>,
    /// Files, each with a thread; absent: one per core.
    pub threads: Option<u32>,
    pub iops_duration: Duration,
    pub original: Original,
    pub seed: u64,
}

/// The plan, and what is to be said about it before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct FileBenchPlan {
    pub plan: Plan,
    /// Each correction, and each place where the original's way was asked for: one sentence each.
    pub notes: Vec<String>,
}

/// Makes the plan for this machine.
pub fn plan(o: &FileBenchOptions, host: &Host) -> Result<FileBenchPlan, RunError> {
    let threads = o.threads.unwrap_or(host.cpus).max(1);
    let total = o.size_bytes.unwrap_or(2 * host.memory_bytes);
    let each = total / u64::from(threads) / BLOCK_BYTES * BLOCK_BYTES;
    if each == 0 {
        return Err(RunError::input(
            format!("{} over {threads} files is less than one 64 KiB block each", format_size(total)),
            "Give a larger --size, or fewer --threads",
        ));
    }
    let needed = (each * u64::from(threads)) as f64 * HEADROOM;
    if host.free_bytes.is_some_and(|free| needed > free as f64) {
        return Err(RunError::input(
            format!(
                "{}: {} are needed, {} are free",
                o.directory.display(),
                about_size(needed as u64),
                about_size(host.free_bytes.unwrap_or(0))
            ),
            "Free some space, or give a smaller --size (below twice the memory, part of the results comes from the \
             cache)",
        ));
    }
    let mode = cache_mode(o.original, host);
    let shape = Shape { options: o, threads, each, mode, alignment: host.direct_alignment };
    let stages = (0..o.runs.max(1)).flat_map(|run| shape.stages(run)).collect();
    let plan = Plan {
        version: PLAN_VERSION,
        name: Some(title(&o.directory, threads)),
        seed: o.seed,
        // The job is synchronous: one call at a time per thread.
        options: RunOptions { ring: RingChoice::Psync, ..RunOptions::default() },
        labels: BTreeMap::from([
            (suite::LABEL.into(), suite::FILE.into()),
            ("corrections".into(), o.original.corrected().join(",")),
            ("cache".into(), mode.name().into()),
        ]),
        expect: Vec::new(),
        targets: shape.targets(),
        stages,
        controller: None,
    };
    plan.validate()?;
    Ok(FileBenchPlan { plan, notes: notes(o, host, mode, each * u64::from(threads)) })
}

/// What is measured, in words: the title of its report.
fn title(directory: &Path, threads: u32) -> String {
    let s = if threads == 1 { "" } else { "s" };
    format!("File benchmark of {}, {threads} thread{s}", directory.display())
}

/// How the cache is kept out of the read figures.
fn cache_mode(original: Original, host: &Host) -> CacheMode {
    match host.cache {
        CacheMode::Dropped => CacheMode::Dropped,
        _ if original.cache => CacheMode::Cached,
        CacheMode::Direct if host.direct_alignment.is_none_or(|a| a == 0) => CacheMode::Cached,
        mode => mode,
    }
}

fn notes(o: &FileBenchOptions, host: &Host, mode: CacheMode, total: u64) -> Vec<String> {
    let mut out = o.original.notes();
    out.push(match mode {
        CacheMode::Dropped => "cache: the files are dropped from the page cache before the read and IOPS phases.".into(),
        CacheMode::Direct if host.direct_alignment.is_some_and(|a| a <= IOPS_BLOCK_BYTES) => {
            "cache: it cannot be dropped here, so the read and IOPS phases use direct I/O.".into()
        }
        CacheMode::Direct => "cache: it cannot be dropped here, so the read phase uses direct I/O; 512-byte blocks \
                              are too small for that, so the IOPS figure includes the cache."
            .into(),
        CacheMode::Cached => {
            "cache: it cannot be dropped here, and direct I/O is not supported: the read and IOPS figures include \
             the cache."
                .into()
        }
    });
    let whose = if host.is_memory_limited { "the memory limit of its control group" } else { "the memory" };
    // Nobody who names no size expects a hundred gigabytes.
    if o.size_bytes.is_none() {
        out.push(format!(
            "size: each run writes {}, twice {whose}, and reads it again (--size SIZE: another).",
            about_size(total)
        ));
    } else if total < 2 * host.memory_bytes {
        out.push(format!(
            "size: {} is less than twice {whose} ({}); part of it may be in the cache.",
            format_size(total),
            about_size(2 * host.memory_bytes)
        ));
    }
    out
}

struct Shape<'a> {
    options: &'a FileBenchOptions,
    threads: u32,
    each: u64,
    mode: CacheMode,
    /// What direct I/O asks for on this directory.
    alignment: Option<u64>,
}

impl Shape<'_> {
    fn targets(&self) -> BTreeMap<String, TargetSpec> {
        let files = |buffered| {
            TargetSpec::Files(FilesTarget {
                directory: self.options.directory.join("plimsoll-file").display().to_string(),
                stem: Some("bench".into()),
                files: 1,
                file_size: Size(self.each),
                buffered,
                layout: false,
                invalidate: self.mode == CacheMode::Dropped,
                embedded: self.options.embedded.clone().map(Box::new),
            })
        };
        let mut out = BTreeMap::from([("files".to_owned(), files(true))]);
        if self.mode == CacheMode::Direct {
            out.insert("files-direct".into(), files(false));
        }
        out
    }

    fn stages(&self, run: u32) -> Vec<Stage> {
        let original = self.options.original;
        let write = self.workload(0, OpKind::Write, |w| {
            w.stop = Stop { loops: Some(1), ..Stop::default() };
            w.data = DataSpec { dedupable: if original.unique { 1.0 } else { 0.0 }, ..DataSpec::default() };
            w.block =
                Some(BlockOptions { end_fsync: !original.fsync, fresh: true, ..BlockOptions::default() });
        });
        let read = self.workload(1, OpKind::Read, |w| {
            w.target = Some(self.reading(BLOCK_BYTES));
            w.stop = Stop { loops: Some(1), ..Stop::default() };
        });
        let iops = self.workload(2, OpKind::Read, |w| {
            w.target = Some(self.reading(IOPS_BLOCK_BYTES));
            w.mix = BTreeMap::from([(OpKind::Read, 9), (OpKind::Write, 1)]);
            w.size = SizeDist::Fixed(Size(IOPS_BLOCK_BYTES));
            w.keys = KeyDist::Uniform;
            w.stop = Stop { duration: Some(Span(self.options.iops_duration)), ..Stop::default() };
            w.data = DataSpec { dedupable: if original.fresh { 1.0 } else { 0.0 }, ..DataSpec::default() };
            w.block = Some(BlockOptions {
                norandommap: true,
                offset_align: original.aligned.then_some(Size(1)),
                ..BlockOptions::default()
            });
        });
        [write, read, iops]
            .into_iter()
            .zip(STAGES)
            .enumerate()
            .map(|(i, (w, name))| Stage {
                name: Some(name.into()),
                warmup: Span(Duration::ZERO),
                workloads: vec![w],
                cell: Some(Cell { index: i as u32, repeat: run }),
            })
            .collect()
    }

    /// The target for reads of this block size: direct only where its alignment allows.
    fn reading(&self, block: u64) -> String {
        let original = self.options.original;
        let unaligned = block == IOPS_BLOCK_BYTES && original.aligned;
        let direct = self.mode == CacheMode::Direct && !unaligned && self.allows(block);
        if direct { "files-direct".into() } else { "files".into() }
    }

    fn allows(&self, block: u64) -> bool {
        self.alignment.is_some_and(|a| a > 0 && block.is_multiple_of(a))
    }

    fn workload(&self, stage: usize, kind: OpKind, change: impl FnOnce(&mut Workload)) -> Workload {
        let mut w = Workload {
            name: STAGES[stage].into(),
            target: Some("files".into()),
            mix: BTreeMap::from([(kind, 1)]),
            size: SizeDist::Fixed(Size(BLOCK_BYTES)),
            keys: KeyDist::Sequential,
            concurrency: 1,
            jobs: Some(self.threads),
            pacing: Default::default(),
            stop: Stop::default(),
            verify: false,
            data: DataSpec::default(),
            object: None,
            block: None,
            machines: None,
        };
        change(&mut w);
        w
    }
}

#[cfg(test)]
mod tests;
