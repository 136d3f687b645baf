//! Puts this process into control groups of its own for a run, and back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_model::plan::ClientBounds;
use plimsoll_setup::control_groups::{ControlGroups, GroupController};
use plimsoll_setup::group::{self, delegates};
use plimsoll_store::Journal;

use crate::error::CrewError;

const PROCESSES: &str = "cgroup.procs";

/// Groups that this process is in. Dropped, it goes back to where it was.
#[derive(Debug)]
pub(super) struct InGroups {
    groups: Vec<MadeGroup>,
}

/// One of them.
#[derive(Debug)]
struct MadeGroup {
    path: PathBuf,
    /// Where the process was before.
    back: PathBuf,
    /// Its entry in the journal.
    entry: u64,
}

impl InGroups {
    /// Makes what the bounds ask for, notes it, and enters. Half of it is none: what was made is taken down again.
    pub fn enter(bounds: &ClientBounds, journal: &mut Journal) -> Result<Self, CrewError> {
        let mut made = Self { groups: Vec::new() };
        let done = made.make_all(bounds, journal).and_then(|()| {
            made.groups
                .iter()
                .try_for_each(|g| write(&g.path.join(PROCESSES), &std::process::id().to_string()))
        });
        match done {
            Ok(()) => Ok(made),
            Err(e) => {
                made.leave(journal);
                Err(refused(bounds, &e))
            }
        }
    }

    fn make_all(&mut self, bounds: &ClientBounds, journal: &mut Journal) -> io::Result<()> {
        let groups = ControlGroups::of_self();
        let wanted = [
            (GroupController::Memory, "memory", bounds.memory.is_some()),
            (GroupController::Cpu, "cpu", bounds.cores.is_some()),
            (GroupController::Cpuset, "cpuset", !bounds.cpus.is_empty()),
        ];
        let names: Vec<&str> = wanted.iter().filter(|w| w.2).map(|w| w.1).collect();
        for (controller, name, _) in wanted.into_iter().filter(|w| w.2) {
            let (levels, is_v2) = groups.levels_of(controller);
            let above = if is_v2 { levels.iter().find(|d| delegates(d, &names)) } else { levels.first() };
            let (Some(above), Some(own)) = (above, levels.first()) else {
                return Err(io::Error::other(format!("this machine offers no control groups for {name}")));
            };
            let path = group::path_in(above, journal.mark());
            // Of version 2 one group has all controllers.
            if !self.groups.iter().any(|g| g.path == path) {
                let entry = journal.creating(plimsoll_store::Thing::Group { path: path.clone() });
                let entry = entry.map_err(|e| io::Error::other(e.to_string()))?;
                fs::create_dir(&path)
                    .inspect_err(|_| {
                        // It was never there: the entry is struck out, or `cleanup` finds nothing.
                        let _ = journal.removed(entry);
                    })
                    .map_err(|e| at(&path, &e))?;
                self.groups.push(MadeGroup { path: path.clone(), back: own.clone(), entry });
            }
            for (file, value) in settings(controller, bounds, above, is_v2)? {
                write(&path.join(file), &value)?;
            }
        }
        Ok(())
    }

    /// Goes back, and removes the groups. One that stays is in the journal.
    pub fn leave(mut self, journal: &mut Journal) {
        for g in std::mem::take(&mut self.groups) {
            go_back(&g);
            if group::remove(&g.path, journal.mark()).is_ok() {
                // An entry that stays finds nothing.
                let _ = journal.removed(g.entry);
            }
        }
    }
}

impl Drop for InGroups {
    fn drop(&mut self) {
        self.groups.iter().for_each(|g| {
            go_back(g);
            // What stays is in the journal.
            let _ = fs::remove_dir(&g.path);
        });
    }
}

/// Where it was may be gone: then it stays in a group that `cleanup` removes when it has ended.
fn go_back(g: &MadeGroup) {
    let _ = write(&g.back.join(PROCESSES), &std::process::id().to_string());
}

/// What is written into the files of a group. `above`: the group that it is made in.
fn settings(
    controller: GroupController,
    bounds: &ClientBounds,
    above: &Path,
    is_v2: bool,
) -> io::Result<Vec<(&'static str, String)>> {
    Ok(match controller {
        GroupController::Memory => {
            let name = if is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
            bounds.memory.iter().map(|m| (name, m.0.to_string())).collect()
        }
        GroupController::Cpu => bounds.cores.iter().map(|cores| group::cpu_setting(*cores, is_v2)).collect(),
        GroupController::Cpuset => {
            let list = bounds.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let mut out = Vec::new();
            if !is_v2 {
                // Of version 1 a group is of no use before it has both.
                let mems = above.join("cpuset.mems");
                out.push((
                    "cpuset.mems",
                    fs::read_to_string(&mems).map_err(|e| at(&mems, &e))?.trim().to_owned(),
                ));
            }
            out.push(("cpuset.cpus", list));
            out
        }
    })
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    fs::write(path, value).map_err(|e| at(path, &e))
}

fn at(path: &Path, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}

fn refused(bounds: &ClientBounds, e: &io::Error) -> CrewError {
    let remedy = match e.kind() {
        io::ErrorKind::PermissionDenied => {
            "Run it as root; or leave `client` out, and give files twice the memory of the machine"
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::NotFound if !bounds.cpus.is_empty() => {
            "Name CPUs that this machine has: see lscpu"
        }
        _ => "Leave `client` out, or run plimsoll where control groups can be made",
    };
    CrewError::input(format!("no control group with {} can be made: {e}", bounds.words()), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds() -> ClientBounds {
        ClientBounds {
            memory: Some(plimsoll_model::units::Size(512 << 20)),
            cores: Some(0.5),
            cpus: vec![0, 1],
        }
    }

    #[test]
    fn each_version_is_told_in_its_own_words() {
        let above = tempfile::tempdir().unwrap();
        fs::write(above.path().join("cpuset.mems"), "0\n").unwrap();
        let of = |c, v2| settings(c, &bounds(), above.path(), v2).unwrap();
        assert_eq!(of(GroupController::Memory, false), [("memory.limit_in_bytes", "536870912".to_owned())]);
        assert_eq!(of(GroupController::Memory, true), [("memory.max", "536870912".to_owned())]);
        assert_eq!(of(GroupController::Cpu, false), [("cpu.cfs_quota_us", "50000".to_owned())]);
        assert_eq!(of(GroupController::Cpu, true), [("cpu.max", "50000 100000".to_owned())]);
        let cpus = [("cpuset.mems", "0".to_owned()), ("cpuset.cpus", "0,1".to_owned())];
        assert_eq!(of(GroupController::Cpuset, false), cpus);
    }

    #[test]
    fn of_version_2_a_group_is_made_where_its_controllers_are() {
        let top = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(top.path().join("cgroup.subtree_control"), text).unwrap();
        write("cpu memory pids\n");
        assert!(delegates(top.path(), &["memory"]) && delegates(top.path(), &["memory", "cpu"]));
        assert!(!delegates(top.path(), &["memory", "cpuset"]));
    }

    #[test]
    fn a_refusal_names_the_remedy() {
        let e = refused(&bounds(), &io::Error::from(io::ErrorKind::PermissionDenied)).to_string();
        assert!(e.contains("512 MiB of memory") && e.contains("as root"), "{e}");
    }
}
