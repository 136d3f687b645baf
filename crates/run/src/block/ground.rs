//! Makes the targets of a stage ready, remembers what it made, and removes it at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_engine::written::Written;
use plimsoll_model::plan::{Plan, Stage, TargetSpec, Workload};
use plimsoll_model::units::format_size;
use plimsoll_model::{Finding, OpKind};
use plimsoll_store::{Journal, Thing};

use super::align::{alignment_of, check_alignment};
use super::cache;
use super::layout::{LayoutJob, object_of, sample_content, unwritten_bytes};
use super::names::paths_of_job;
use super::record;
use crate::RunError;
use crate::safety::{self, FileFate, Permit, Refusal, marker, reads};

impl From<Refusal> for RunError {
    fn from(r: Refusal) -> Self {
        Self::input(format!("{}: {}", r.path, r.problem), r.remedy)
    }
}

/// Writes the regions that a stage needs; given by whoever owns the engine.
pub type LayoutRunner<'a> = dyn FnMut(&[LayoutJob]) -> Result<(), RunError> + 'a;

/// The targets of one run.
#[derive(Debug, Default)]
pub struct Ground {
    run: String,
    permits: BTreeMap<PathBuf, Permit>,
    /// Files that this run made, with their numbers in the journal: the end of the run removes what the journal lists.
    made: BTreeMap<PathBuf, u64>,
    /// Files that this run wrote in full.
    full: BTreeSet<PathBuf>,
    /// Where the records of what was written last are kept.
    records: PathBuf,
    /// Those of the stage that was made ready.
    written: BTreeMap<PathBuf, Arc<Written>>,
}

/// What a stage does to one file or device.
#[derive(Debug, Clone)]
struct Need {
    path: PathBuf,
    workload: String,
    /// Number of the file in stamps.
    object: u64,
    offset: u64,
    /// `None`: all of it.
    length: Option<u64>,
    reads: bool,
    writes: bool,
    buffered: bool,
    layout: bool,
    invalidate: bool,
    fresh: bool,
    verify: bool,
    /// A set of files may have a directory of its own made for it.
    own_directory: bool,
    destroy_data: Option<String>,
    /// Block sizes and alignments that direct I/O must allow.
    units: Vec<(&'static str, u64)>,
    data: plimsoll_model::plan::DataSpec,
    seed: u64,
}

impl Ground {
    /// `run` is the id of the run; files are marked with it. `runs` is the directory that holds the runs.
    pub fn new(run: &str, runs: &Path) -> Self {
        Self { run: run.into(), records: runs.join(record::DIRECTORY), ..Self::default() }
    }

    /// Makes everything ready that the block and file workloads of `stage` use. Other workloads are passed over.
    ///
    /// `data_seed` is the seed of the stamps of a workload's blocks; `layout` writes what has to be there.
    pub fn prepare(
        &mut self,
        plan: &Plan,
        stage: &Stage,
        data_seed: &dyn Fn(&Workload) -> u64,
        journal: &mut Journal,
        layout: &mut LayoutRunner<'_>,
    ) -> Result<Vec<Finding>, RunError> {
        let needs = needs_of(plan, stage, data_seed)?;
        let mut jobs = Vec::new();
        for need in &needs {
            if let Some(job) = self.make_ready(need, journal)? {
                jobs.push(job);
            }
        }
        check_space(&jobs, &needs)?;
        let laid_out: BTreeSet<PathBuf> = jobs.iter().map(|j| j.path.clone()).collect();
        if !jobs.is_empty() {
            layout(&jobs)?;
            self.full.extend(jobs.into_iter().map(|j| j.path));
        }
        let mut findings = Vec::new();
        self.written.clear();
        for need in &needs {
            self.check(need, &mut findings)?;
            let keep = (plan.options.keep, journal as &mut Journal);
            findings.extend(self.record(need, laid_out.contains(&need.path), keep)?);
        }
        Ok(findings)
    }

    /// The records of what was written last to these files, if all of them have one in this stage.
    pub fn written(&self, paths: &[PathBuf]) -> Vec<Arc<Written>> {
        paths.iter().map(|p| self.written.get(p).cloned()).collect::<Option<_>>().unwrap_or_default()
    }

    /// Opens the record that a verifying workload keeps or is held against; what is written without one ends it.
    fn record(
        &mut self,
        need: &Need,
        laid_out: bool,
        (keep, journal): (bool, &mut Journal),
    ) -> Result<Option<Finding>, RunError> {
        let place = record::place_of(&self.records, &need.path);
        if laid_out || need.writes && !need.verify {
            record::forget(&place)?;
        }
        if !need.verify {
            return Ok(None);
        }
        let size = known_size(&need.path).unwrap_or(0);
        let length = need.length.unwrap_or_else(|| size.saturating_sub(need.offset));
        let unit = record::unit_of(need.units.iter().map(|u| u.1).chain([need.offset]));
        let written = match unit {
            Some(unit) if need.writes => {
                if self.made.contains_key(&need.path) && !keep && !place.exists() {
                    journal.creating(Thing::Tree { path: place.clone() })?;
                }
                Some(record::begin(&place, &need.path, need.seed, (need.offset, length), unit)?)
            }
            // What is laid out is as new as can be.
            _ if laid_out => return Ok(None),
            _ => record::look(&place, &need.path, need.seed)?,
        };
        match written {
            None => Ok(Some(record::missing(&need.workload, &need.path))),
            Some(written) => {
                self.written.insert(need.path.clone(), Arc::new(written));
                Ok(None)
            }
        }
    }

    /// Refuses now what a later stage would be refused, before anything has run: devices are claimed, files that
    /// are there are looked at, nothing is made.
    pub fn check_all(&mut self, plan: &Plan) -> Result<(), RunError> {
        for stage in &plan.stages {
            for need in needs_of(plan, stage, &|_| 0)? {
                if safety::DeviceInfo::of(&need.path).is_ok() {
                    self.hold(&need)?;
                    self.fits_device(&need)?;
                } else if need.path.symlink_metadata().is_ok() {
                    safety::prepare_file(&need.path, need.writes, need.destroy_data.as_deref(), &self.run)?;
                } else {
                    missing_directory(&need)?;
                }
            }
        }
        Ok(())
    }

    /// Gives the devices back.
    pub fn release(&mut self) {
        self.permits.clear();
    }

    /// Claims a device; a claim for reading becomes one for writing when a stage writes.
    fn hold(&mut self, need: &Need) -> Result<(), RunError> {
        let enough = self.permits.get(&need.path).is_some_and(|p| p.may_write() || !need.writes);
        if !enough {
            self.permits.remove(&need.path);
            let permit = safety::permit(&need.path, need.writes, need.destroy_data.as_deref())?;
            self.permits.insert(need.path.clone(), permit);
        }
        Ok(())
    }

    /// Devices whose content was, or may be, destroyed.
    pub fn permits(&self) -> impl Iterator<Item = &Permit> {
        self.permits.values()
    }

    /// Permission, and the file itself. Returns what has to be laid out.
    fn make_ready(&mut self, need: &Need, journal: &mut Journal) -> Result<Option<LayoutJob>, RunError> {
        if safety::DeviceInfo::of(&need.path).is_ok() {
            // A device is never laid out: only the workloads themselves write to it.
            self.hold(need)?;
            return self.fits_device(need).map(|()| None);
        }
        if need.path.is_dir() {
            return Err(RunError::input(
                format!("{} is a directory", need.path.display()),
                "Name a file in it, with --size, or measure the directory with `plimsoll file`",
            ));
        }
        if need.fresh && self.made.contains_key(&need.path) {
            remove(&need.path)?;
            self.full.remove(&need.path);
            if let Some(id) = self.made.remove(&need.path) {
                journal.removed(id)?;
            }
        }
        let exists = need.path.symlink_metadata().is_ok();
        let ours = exists && marker::is_ours(&need.path);
        // Without a file, a read needs one to be made; theirs is read as it is.
        let lay_out = need.layout && need.reads && (!exists || ours) && !self.is_full(need);
        let fate = self.file(need, need.writes || lay_out, journal)?;
        let Some(length) = need.length else { return Ok(None) };
        if need.writes || lay_out {
            extend(&need.path, need.offset + length, !need.own_directory && !need.fresh)?;
        }
        if !lay_out || fate == FileFate::Foreign {
            return Ok(None);
        }
        Ok(Some(LayoutJob {
            path: need.path.clone(),
            object: need.object,
            offset: need.offset,
            length,
            buffered: need.buffered || alignment_of(&need.path)?.bytes == 0,
            data: need.data,
            seed: need.seed,
        }))
    }

    fn is_full(&self, need: &Need) -> bool {
        self.full.contains(&need.path)
            || need.length.is_none_or(|l| unwritten_bytes(&need.path, need.offset, l).is_ok_and(|n| n == 0))
    }

    fn fits_device(&self, need: &Need) -> Result<(), RunError> {
        let have = known_size(&need.path).unwrap_or(0);
        let end = need.offset + need.length.unwrap_or(0);
        if end > have {
            return Err(RunError::input(
                format!(
                    "{}: the region ends at {}, the device at {}",
                    need.path.display(),
                    format_size(end),
                    format_size(have)
                ),
                "Lower the size or the offset",
            ));
        }
        Ok(())
    }

    /// Creates the file if need be, with its entry in the journal first.
    fn file(&mut self, need: &Need, writes: bool, journal: &mut Journal) -> Result<FileFate, RunError> {
        let new = need.path.symlink_metadata().is_err();
        let mut entry = None;
        if new && writes {
            if need.length.is_none() {
                return Err(RunError::input(
                    format!("{} does not exist, and there is no size", need.path.display()),
                    "Give a size, for example --size 1GiB, so that it is laid out",
                ));
            }
            if in_device_tree(&need.path) {
                return Err(RunError::input(
                    format!("{}: there is no such device", need.path.display()),
                    "See lsblk for those that there are. A file here would lie in memory",
                ));
            }
            self.directory(need, journal)?;
            entry = Some(journal.creating(Thing::File { path: need.path.clone() })?);
        }
        let made = safety::prepare_file(&need.path, writes, need.destroy_data.as_deref(), &self.run);
        if let (Err(_), Some(id)) = (&made, entry) {
            journal.removed(id)?;
        }
        let fate = made?;
        if let Some(id) = entry {
            self.made.insert(need.path.clone(), id);
        }
        Ok(fate)
    }

    /// Makes the directory that a set of files is to have for itself. Any other that is missing is a mistyped one.
    fn directory(&self, need: &Need, journal: &mut Journal) -> Result<(), RunError> {
        let Some(dir) = missing_directory(need)? else { return Ok(()) };
        let id = journal.creating(Thing::Directory { path: dir.to_owned() })?;
        if let Err(e) = fs::create_dir(dir) {
            journal.removed(id)?;
            return Err(RunError::input(
                format!("{} cannot be made: {e}", dir.display()),
                "Choose a directory that you may write to",
            ));
        }
        Ok(())
    }

    /// Direct I/O, holes and cache, now that the data is there.
    fn check(&mut self, need: &Need, findings: &mut Vec<Finding>) -> Result<(), RunError> {
        let shown = need.path.display().to_string();
        if !need.buffered {
            let mut units = need.units.clone();
            units.push(("the offset of the region", need.offset));
            check_alignment(&need.path, alignment_of(&need.path)?, &units)?;
            open_direct(&need.path, need.writes)?;
        }
        let size = known_size(&need.path).unwrap_or(0);
        let length = need.length.unwrap_or_else(|| size.saturating_sub(need.offset));
        if need.reads && !need.writes {
            if self.permits.contains_key(&need.path) {
                if let Ok(s) = sample_content(&need.path, need.offset, length, need.seed)
                    && s.is_suspect()
                {
                    findings.push(reads::hollow_device(&need.workload, &shown, s.blocks, s.zeros, s.repeats));
                }
            } else if let Ok(n) = unwritten_bytes(&need.path, need.offset, length)
                && n > 0
            {
                findings.push(reads::unwritten(&need.workload, &shown, n, length));
            }
        }
        if lies_in_memory(&need.path) {
            findings.push(reads::in_memory(&need.workload, &shown));
        }
        if need.invalidate && need.reads {
            // What stays in the cache shows in the kernel's counts after the stage.
            let _ = cache::drop_cache(&need.path);
        }
        Ok(())
    }
}

/// The directory of the file, if it is missing and may be made.
fn missing_directory(need: &Need) -> Result<Option<&Path>, RunError> {
    let present = |p: &Path| p.as_os_str().is_empty() || p.exists();
    let Some(dir) = need.path.parent().filter(|p| !present(p)) else { return Ok(None) };
    let above = dir.parent().is_none_or(present);
    if need.own_directory && above {
        return Ok(Some(dir));
    }
    let missing = dir.ancestors().take_while(|p| !present(p)).last().unwrap_or(dir);
    Err(RunError::input(
        format!("{}: there is no directory {}", need.path.display(), missing.display()),
        format!(
            "Make it first (mkdir -p {}), or correct the path",
            if need.own_directory { dir.parent().unwrap_or(dir) } else { dir }.display()
        ),
    ))
}

/// Merges what the workloads of a stage do to each path.
fn needs_of(plan: &Plan, stage: &Stage, data_seed: &dyn Fn(&Workload) -> u64) -> Result<Vec<Need>, RunError> {
    let mut needs: BTreeMap<PathBuf, Need> = BTreeMap::new();
    for w in &stage.workloads {
        let (name, target) = plan.target_of(w)?;
        if !matches!(target, TargetSpec::Block(_) | TargetSpec::Files(_)) {
            continue;
        }
        for job in 0..w.jobs.unwrap_or(1) {
            let paths = paths_of_job(name, target, job);
            for (i, path) in paths.iter().enumerate() {
                let need = need(data_seed(w), w, target, path, object_of(&paths[0], i));
                match needs.get_mut(path) {
                    None => drop(needs.insert(path.clone(), need)),
                    Some(known) => known.merge(need),
                }
            }
        }
    }
    Ok(needs.into_values().collect())
}

fn need(seed: u64, w: &Workload, target: &TargetSpec, path: &Path, object: u64) -> Need {
    let options = w.block.clone().unwrap_or_default();
    let does = |kind| w.mix.get(&kind).is_some_and(|n| *n > 0);
    let mut units = sizes(&w.size);
    units.extend(options.write_size.iter().flat_map(sizes));
    units.extend(options.offset_align.map(|a| ("an alignment", a.0)));
    let (offset, length, buffered, layout, invalidate, destroy_data) = match target {
        TargetSpec::Block(b) => (
            b.offset.map_or(0, |o| o.0),
            b.size.map(|s| s.0),
            b.buffered,
            b.layout,
            b.invalidate,
            b.destroy_data.clone(),
        ),
        TargetSpec::Files(f) => (0, Some(f.file_size.0), f.buffered, f.layout, f.invalidate, None),
        _ => (0, None, true, false, false, None),
    };
    Need {
        path: path.to_owned(),
        workload: w.name.clone(),
        object,
        offset,
        length,
        reads: does(OpKind::Read),
        writes: does(OpKind::Write) || does(OpKind::Trim),
        buffered,
        layout,
        invalidate,
        fresh: options.fresh,
        verify: w.verify,
        own_directory: matches!(target, TargetSpec::Files(_)),
        destroy_data,
        units,
        data: w.data,
        seed,
    }
}

fn sizes(d: &plimsoll_model::plan::SizeDist) -> Vec<(&'static str, u64)> {
    use plimsoll_model::plan::SizeDist;
    const WHAT: &str = "a block";
    match d {
        SizeDist::Fixed(s) => vec![(WHAT, s.0)],
        SizeDist::Uniform { min, max } => vec![(WHAT, min.0), (WHAT, max.0 / min.0.max(1) * min.0.max(1))],
        SizeDist::Weighted(l) => l.iter().filter(|(_, w)| *w > 0).map(|(s, _)| (WHAT, s.0)).collect(),
        // Any size may come: nothing but buffered I/O allows that.
        SizeDist::LogNormal { .. } => vec![(WHAT, 1)],
    }
}

impl Need {
    fn merge(&mut self, other: Self) {
        let end = |n: &Self| n.length.map(|l| n.offset + l);
        let last = match (end(self), end(&other)) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
        self.offset = self.offset.min(other.offset);
        self.length = last.map(|l| l - self.offset);
        // A record that knows of some of the writes only would call the others lost.
        self.verify = match (self.writes, other.writes) {
            (true, true) => self.verify && other.verify,
            (true, false) => self.verify,
            (false, true) => other.verify,
            (false, false) => self.verify || other.verify,
        };
        self.reads |= other.reads;
        self.writes |= other.writes;
        self.buffered &= other.buffered;
        self.layout |= other.layout;
        self.invalidate |= other.invalidate;
        self.fresh |= other.fresh;
        self.units.extend(other.units);
        self.destroy_data = self.destroy_data.take().or(other.destroy_data);
    }
}

/// Bytes of a device or file that is there.
pub fn known_size(path: &Path) -> Option<u64> {
    safety::device::size_bytes(path).or_else(|| fs::metadata(path).ok().map(|m| m.len()))
}

/// In the tree of device nodes, where a new file would lie in memory: a mistyped device, not a place for a file. Shared
/// memory below it is one.
fn in_device_tree(path: &Path) -> bool {
    path.parent().is_some_and(|p| p.starts_with("/dev") && !p.starts_with("/dev/shm"))
}

fn remove(path: &Path) -> Result<(), RunError> {
    marker::remove(path).map_err(|e| {
        RunError::input(format!("{} cannot be removed: {e}", path.display()), "Remove it by hand")
    })
}

/// Makes the file as long as this. `allocate`: its space is reserved at once, as fio's `fallocate=native` does, so that a
/// random write is one to a block of the file's own, and not the file system's search for one. What is written in
/// order to a new file (the suites) has that search in its figure, as those that it is compared with do.
fn extend(path: &Path, end: u64, allocate: bool) -> Result<(), RunError> {
    use rustix::fs::{FallocateFlags, fallocate};
    let grow = || {
        let file = File::options().write(true).open(path)?;
        let have = file.metadata()?.len();
        if have >= end {
            return Ok(());
        }
        if !allocate {
            return file.set_len(end);
        }
        match fallocate(&file, FallocateFlags::empty(), have, end - have) {
            // Not every file system can; the file is then a hole up to its end.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => file.set_len(end),
            result => Ok(result?),
        }
    };
    grow().map_err(|e: std::io::Error| {
        if e.raw_os_error() == Some(libc::ENOSPC) {
            let have = fs::metadata(path).map_or(0, |m| std::os::unix::fs::MetadataExt::blocks(&m) * 512);
            return too_full(path, end.saturating_sub(have), free_bytes(path).unwrap_or(0));
        }
        RunError::input(
            format!("{} cannot grow to {}: {e}", path.display(), format_size(end)),
            "Choose a smaller size, or a file system that allows such files",
        )
    })
}

fn open_direct(path: &Path, writes: bool) -> Result<(), RunError> {
    let opened =
        File::options().read(true).write(writes).custom_flags(libc::O_DIRECT | libc::O_CLOEXEC).open(path);
    opened.map(drop).map_err(|e| match e.raw_os_error() {
        Some(libc::EINVAL) => RunError::input(
            format!("{}: the file system refuses direct I/O", path.display()),
            "Use --buffered (direct=0), and mind that the page cache is then part of what is measured",
        ),
        _ => RunError::input(format!("{} cannot be opened: {e}", path.display()), "Check its permissions"),
    })
}

/// Files that will be written must have room: a benchmark that fills a file system hurts whoever else is on it.
fn check_space(jobs: &[LayoutJob], needs: &[Need]) -> Result<(), RunError> {
    use std::os::unix::fs::MetadataExt;
    let laid_out = |p: &Path| jobs.iter().any(|j| j.path == p);
    let mut wanted: BTreeMap<u64, (u64, PathBuf)> = BTreeMap::new();
    for need in needs.iter().filter(|n| n.writes || laid_out(&n.path)) {
        let Ok(meta) = fs::metadata(&need.path) else { continue };
        if !meta.is_file() {
            continue;
        }
        let more = (need.offset + need.length.unwrap_or(0)).saturating_sub(meta.blocks() * 512);
        wanted.entry(meta.dev()).or_insert((0, need.path.clone())).0 += more;
    }
    for (bytes, path) in wanted.into_values() {
        let free = free_bytes(&path);
        if free.is_some_and(|f| bytes > f) {
            return Err(too_full(&path, bytes, free.unwrap_or(0)));
        }
    }
    Ok(())
}

fn too_full(path: &Path, needed: u64, free: u64) -> RunError {
    RunError::input(
        format!("{}: {} are needed, {} are free", path.display(), format_size(needed), format_size(free)),
        "Free some space, or choose a smaller size",
    )
}

/// tmpfs and ramfs: the page cache is the file, and direct I/O is no more than a word there.
fn lies_in_memory(path: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let is_file = fs::metadata(path).is_ok_and(|m| m.is_file());
    is_file && rustix::fs::statfs(path).is_ok_and(|s| [TMPFS, RAMFS].contains(&(s.f_type as u64)))
}

/// Bytes that this user may still write to the file system of `path` (which must exist).
pub fn free_bytes(path: &Path) -> Option<u64> {
    rustix::fs::statvfs(path).ok().map(|s| s.f_bavail.saturating_mul(s.f_frsize))
}

#[cfg(test)]
#[path = "ground_tests.rs"]
mod tests;
