//! Makes the targets of a stage ready, remembers what it made, and removes it at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_engine::written::Written;
use plimsoll_model::Finding;
use plimsoll_model::plan::{ControllerSpec, Plan, Stage, Workload};
use plimsoll_model::units::format_size;
use plimsoll_store::{Journal, Thing};

use super::align::{alignment_of, check_alignment};
use super::holds::Holds;
use super::layout::{LayoutJob, sample_content, unwritten_bytes};
use super::need::{Among, Need, needs_of};
use super::room::{
    check_room, check_space, extend, in_device_tree, known_size, lies_in_memory, missing_directory,
    open_direct,
};
use super::standby::SharedHold;
use super::{cache, record};
use crate::error::SetupError;
use crate::safety::marker::{self, Maker};
use crate::safety::{FileFate, reads, trees};

/// Writes the regions that a stage needs; given by whoever owns the engine, and failing in that one's way.
pub type LayoutRunner<'a, E> = dyn FnMut(&[LayoutJob]) -> Result<(), E> + 'a;

/// The targets of one run.
#[derive(Debug, Default)]
pub struct Ground {
    /// The run's mark.
    run: String,
    holds: Holds,
    /// Files that this run made, with their numbers in the journal: the end of the run removes what the journal lists.
    made: BTreeMap<PathBuf, u64>,
    /// Files that this run wrote in full.
    full: BTreeSet<PathBuf>,
    /// Where the records of what was written last are kept.
    records: PathBuf,
    /// Those of the stage that was made ready.
    written: BTreeMap<PathBuf, Arc<Written>>,
    /// Of sets of files only those of this agent's jobs are made, and of what is shared only its range is touched.
    among: Among,
}

impl Ground {
    /// `run` is the run's mark; what is made carries it. `runs` is the directory that holds the runs.
    pub fn new(run: &str, runs: &Path) -> Self {
        Self { run: run.into(), records: runs.join(record::DIRECTORY), ..Self::default() }
    }

    /// From now on one of `agents` that share the jobs of each workload, the one of this number.
    pub fn take_seat(&mut self, seat: u32, agents: u32) {
        self.among.seat = Some((seat, agents));
    }

    /// Targets that all agents have, and work on in a range each. True: this one holds it, for all agents of its machine.
    pub fn shares(&mut self, targets: BTreeMap<String, bool>) {
        self.among.shared = targets;
    }

    /// What of them is held here at present.
    pub fn shared_hold(&self) -> Arc<SharedHold> {
        self.holds.shared()
    }

    /// Whether all agents have this target.
    pub fn is_shared(&self, target: &str) -> bool {
        self.among.shared.contains_key(target)
    }

    /// Makes everything ready that the block and file workloads of `stage` use. Other workloads are passed over.
    ///
    /// `data_seed` is the seed of the stamps of a workload's blocks; `layout` writes what has to be there.
    pub fn prepare<E: From<SetupError>>(
        &mut self,
        plan: &Plan,
        stage: &Stage,
        data_seed: &dyn Fn(&Workload) -> u64,
        journal: &mut Journal,
        layout: &mut LayoutRunner<'_, E>,
    ) -> Result<Vec<Finding>, E> {
        let needs = needs_of(plan, stage, &self.among, data_seed)?;
        let mut jobs = Vec::new();
        for need in &needs {
            if let Some(job) = self.make_ready(need, journal)? {
                jobs.push(job);
            }
            self.holds.share(need);
        }
        check_space(&jobs, &needs, &self.holds)?;
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

    /// Paths that lead to what was judged under these.
    pub fn through(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        paths.iter().map(|p| self.holds.through(p)).collect()
    }

    /// Opens the record that a verifying workload keeps or is held against; what is written without one ends it.
    fn record(
        &mut self,
        need: &Need,
        laid_out: bool,
        (keep, journal): (bool, &mut Journal),
    ) -> Result<Option<Finding>, SetupError> {
        let place = record::place_of(&self.records, &need.path);
        if laid_out || need.writes && !need.verify {
            record::forget(&place)?;
        }
        if !need.verify {
            return Ok(None);
        }
        let through = self.holds.through(&need.path);
        let size = known_size(&through).unwrap_or(0);
        let length = need.length.unwrap_or_else(|| size.saturating_sub(need.offset));
        let unit = record::unit_of(need.units.iter().map(|u| u.1).chain([need.offset]));
        let written = match unit {
            Some(unit) if need.writes => {
                let goes = self.made.contains_key(&need.path) && !keep && !place.exists();
                if goes {
                    journal.creating(Thing::Tree { path: absolute(&place)? })?;
                }
                let run = goes.then_some(self.run.as_str());
                record::make(&place, &need.path, run)?;
                Some(record::begin(&place, (&need.path, &through), need.seed, (need.offset, length), unit)?)
            }
            // What is laid out is as new as can be.
            _ if laid_out => return Ok(None),
            _ => record::look(&place, &through, need.seed)?,
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
    pub fn check_all(&mut self, plan: &Plan) -> Result<(), SetupError> {
        let templates = plan.controller.iter().flat_map(ControllerSpec::templates);
        for stage in plan.stages.iter().chain(templates) {
            let needs = needs_of(plan, stage, &self.among, &|_| 0)?;
            for need in &needs {
                if self.holds.is_device(&need.path) {
                    self.holds.device(need)?;
                    self.fits(need, "device")?;
                    continue;
                }
                self.holds.directory(need)?;
                if need.path.symlink_metadata().is_err() {
                    missing_directory(need)?;
                } else if !need.path.is_dir() {
                    self.holds.file(need, need.writes, &self.run)?;
                }
            }
            check_room(&needs)?;
        }
        Ok(())
    }

    /// Gives back what is held.
    pub fn release(&mut self) {
        self.holds.clear();
    }

    /// Permission, and the file itself. Returns what has to be laid out.
    fn make_ready(&mut self, need: &Need, journal: &mut Journal) -> Result<Option<LayoutJob>, SetupError> {
        if self.holds.is_device(&need.path) {
            // A device is never laid out: only the workloads themselves write to it.
            self.holds.device(need)?;
            return self.fits(need, "device").map(|()| None);
        }
        if need.path.is_dir() {
            return Err(SetupError::input(
                format!("{} is a directory", need.path.display()),
                "Name a file in it and give --size, or measure the directory with `plimsoll file`",
            ));
        }
        if need.fresh {
            self.remove_made(need, journal)?;
        }
        let exists = need.path.symlink_metadata().is_ok();
        let ours = exists && matches!(marker::maker_at(&need.path), Maker::Run(_));
        // Without a file, a read needs one to be made; theirs is read as it is.
        let lay_out = need.layout && need.reads && (!exists || ours) && !self.is_full(need);
        let fate = self.file(need, need.writes || lay_out, journal)?;
        let Some(length) = need.length else { return Ok(None) };
        if need.writes || lay_out {
            let allocate = !need.own_directory && !need.fresh;
            extend(&need.path, &self.holds.through(&need.path), need.offset + length, allocate)?;
        }
        if !need.writes && !lay_out {
            self.fits(need, "file")?;
        }
        if !lay_out || fate == FileFate::Foreign {
            return Ok(None);
        }
        let through = self.holds.through(&need.path);
        Ok(Some(LayoutJob {
            buffered: need.buffered || alignment_of(&through)?.bytes == 0,
            path: need.path.clone(),
            through,
            object: need.object,
            offset: need.offset,
            length,
            data: need.data,
            seed: need.seed,
        }))
    }

    /// A file that is to be made anew, and that this run made before.
    fn remove_made(&mut self, need: &Need, journal: &mut Journal) -> Result<(), SetupError> {
        let Some(id) = self.made.get(&need.path).copied() else { return Ok(()) };
        self.holds.forget(&need.path);
        marker::remove(&need.path, &self.run, marker::Content::Ours).map_err(|e| {
            SetupError::input(format!("{} cannot be removed: {e}", need.path.display()), "Remove it by hand")
        })?;
        self.full.remove(&need.path);
        self.made.remove(&need.path);
        Ok(journal.removed(id)?)
    }

    fn is_full(&self, need: &Need) -> bool {
        let through = self.holds.through(&need.path);
        self.full.contains(&need.path)
            || need.length.is_none_or(|l| unwritten_bytes(&through, need.offset, l).is_ok_and(|n| n == 0))
    }

    /// What is only read, and a device, has to be there as far as the region goes.
    fn fits(&self, need: &Need, what: &str) -> Result<(), SetupError> {
        let have = known_size(&self.holds.through(&need.path)).unwrap_or(0);
        let end = need.offset + need.length.unwrap_or(0);
        if end > have {
            return Err(SetupError::input(
                format!(
                    "{}: the region ends at {}, the {what} at {}",
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
    fn file(&mut self, need: &Need, writes: bool, journal: &mut Journal) -> Result<FileFate, SetupError> {
        let new = need.path.symlink_metadata().is_err();
        let mut entry = None;
        if new && writes {
            if need.length.is_none() {
                return Err(SetupError::input(
                    format!("{} does not exist, and no size is given", need.path.display()),
                    "Give a size, for example --size 1GiB, to create it",
                ));
            }
            if in_device_tree(&need.path) {
                return Err(SetupError::input(
                    format!("{}: no such device", need.path.display()),
                    "lsblk lists the devices. A file created here would be in memory",
                ));
            }
            self.directory(need, journal)?;
            entry = Some(journal.creating(Thing::File { path: absolute(&need.path)? })?);
        }
        self.holds.directory(need)?;
        let made = self.holds.file(need, writes, &self.run);
        if let (Err(_), Some(id)) = (&made, entry)
            && need.path.symlink_metadata().is_err()
        {
            journal.removed(id)?;
        }
        let fate = made?;
        if let Some(id) = entry {
            self.made.insert(need.path.clone(), id);
        }
        Ok(fate)
    }

    /// Makes the directory that a set of files is to have for itself. Any other that is missing is a mistyped one.
    fn directory(&self, need: &Need, journal: &mut Journal) -> Result<(), SetupError> {
        let Some(dir) = missing_directory(need)? else { return Ok(()) };
        let id = journal.creating(Thing::Directory { path: absolute(dir)? })?;
        if let Err(e) = trees::make(dir, 0o777, &self.run) {
            if dir.symlink_metadata().is_err() {
                journal.removed(id)?;
            }
            return Err(SetupError::input(
                format!("{} cannot be created: {e}", dir.display()),
                "Choose a writable directory",
            ));
        }
        Ok(())
    }

    /// Direct I/O, holes and cache, now that the data is there.
    fn check(&mut self, need: &Need, findings: &mut Vec<Finding>) -> Result<(), SetupError> {
        let shown = need.path.display().to_string();
        let through = self.holds.through(&need.path);
        if !need.buffered {
            let mut units = need.units.clone();
            units.push(("the offset of the region", need.offset));
            check_alignment(&need.path, alignment_of(&through)?, &units)?;
            open_direct(&need.path, &through, need.writes)?;
        }
        let size = known_size(&through).unwrap_or(0);
        let length = need.length.unwrap_or_else(|| size.saturating_sub(need.offset));
        if need.reads && !need.writes {
            if self.holds.has_device(&need.path) {
                if let Ok(s) = sample_content(&through, need.offset, length, need.seed)
                    && s.is_suspect()
                {
                    findings.push(reads::hollow_device(&need.workload, &shown, s.blocks, s.zeros, s.repeats));
                }
            } else if let Ok(n) = unwritten_bytes(&through, need.offset, length)
                && n > 0
            {
                findings.push(reads::unwritten(&need.workload, &shown, n, length));
            }
        }
        if lies_in_memory(&through) {
            findings.push(reads::in_memory(&need.workload, &shown));
        }
        if need.invalidate && need.reads {
            // What stays in the cache shows in the kernel's counts after the stage.
            let _ = cache::drop_cache(&through);
        }
        Ok(())
    }
}

/// A journal is read from anywhere.
fn absolute(path: &Path) -> Result<PathBuf, SetupError> {
    std::path::absolute(path)
        .map_err(|e| SetupError::input(format!("{}: {e}", path.display()), "Give an absolute path"))
}

#[cfg(test)]
#[path = "ground_tests.rs"]
mod tests;
