//! What a stage does to each file or device: the wishes of all its workloads, merged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_model::OpKind;
use plimsoll_model::plan::{Plan, Stage, TargetSpec, Workload};

use super::layout::object_of;
use super::names::paths_of_job;
use super::range::{range_of, range_unit};
use super::room::known_size;
use crate::error::SetupError;

/// What a stage does to one file or device.
#[derive(Debug, Clone)]
pub(super) struct Need {
    pub path: PathBuf,
    pub workload: String,
    /// Number of the file in stamps.
    pub object: u64,
    pub offset: u64,
    /// `None`: all of it.
    pub length: Option<u64>,
    pub reads: bool,
    pub writes: bool,
    pub buffered: bool,
    pub layout: bool,
    pub invalidate: bool,
    pub fresh: bool,
    pub verify: bool,
    /// In use by others, perhaps, and only read: it is not locked.
    pub existing: bool,
    pub held_by: HeldBy,
    /// A set of files may have a directory of its own made for it.
    pub own_directory: bool,
    pub destroy_data: Option<String>,
    /// Block sizes and alignments that direct I/O must allow.
    pub units: Vec<(&'static str, u64)>,
    pub data: plimsoll_model::plan::DataSpec,
    pub seed: u64,
}

/// Who keeps others away from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldBy {
    /// This run alone works on it, from here.
    Us,
    /// Others of the run work on it, too: we do for them.
    UsForAll,
    /// One of them does, for us.
    Another,
}

/// Merges what the workloads of a stage do to each path.
pub(super) fn needs_of(
    plan: &Plan,
    stage: &Stage,
    among: &Among,
    data_seed: &dyn Fn(&Workload) -> u64,
) -> Result<Vec<Need>, SetupError> {
    let mut needs: BTreeMap<PathBuf, Need> = BTreeMap::new();
    for w in &stage.workloads {
        let (name, target) = plan.target_of(w)?;
        if !target.is_on_files() {
            continue;
        }
        let jobs = w.jobs.unwrap_or(1);
        // A device or file is all jobs', and a set of files is each job's own.
        let mine = match (among.seat, target) {
            (Some((seat, agents)), TargetSpec::Files(_)) => jobs_of(seat, agents, jobs),
            _ => 0..jobs,
        };
        for job in mine {
            let paths = paths_of_job(name, target, job);
            for (i, path) in paths.iter().enumerate() {
                let mut need = need(data_seed(w), w, target, path, object_of(&paths[0], i));
                if let (Some(seat), Some(holds)) = (among.seat, among.shared.get(name)) {
                    need.in_range(seat, w);
                    need.held_by = if *holds { HeldBy::UsForAll } else { HeldBy::Another };
                }
                match needs.get_mut(path) {
                    None => drop(needs.insert(path.clone(), need)),
                    Some(known) => known.merge(need),
                }
            }
        }
    }
    Ok(needs.into_values().collect())
}

/// Which of several agents this one is.
#[derive(Debug, Default)]
pub(super) struct Among {
    /// Its number, and how many share the jobs of each workload. Absent: all are its own.
    pub seat: Option<(u32, u32)>,
    /// Targets that all of them have: each works in a range of its own. True: this agent holds it, for its machine.
    pub shared: BTreeMap<String, bool>,
}

/// The numbers of an agent's jobs, as they are divided (`plimsoll_lower::parts`): one after the other, the larger parts first.
fn jobs_of(seat: u32, agents: u32, jobs: u32) -> std::ops::Range<u32> {
    let (each, left) = (jobs / agents.max(1), jobs % agents.max(1));
    let first = seat * each + seat.min(left);
    first..first + each + u32::from(seat < left)
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
            b.layout && !b.existing,
            b.invalidate && !b.existing,
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
        existing: matches!(target, TargetSpec::Block(b) if b.existing),
        held_by: HeldBy::Us,
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
    /// Only what lies in this agent's range.
    fn in_range(&mut self, (seat, agents): (u32, u32), w: &Workload) {
        let whole = self.length.or_else(|| known_size(&self.path).map(|n| n.saturating_sub(self.offset)));
        let (at, length) = range_of(seat, agents, whole.unwrap_or(0), range_unit(w));
        self.offset += at;
        self.length = Some(length);
    }

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
        self.existing &= other.existing;
        self.units.extend(other.units);
        self.destroy_data = self.destroy_data.take().or(other.destroy_data);
    }
}
