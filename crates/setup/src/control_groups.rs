//! What the control groups of this process allow it: CPU quotas and how often they stopped it, and memory. Version 1 and 2.
//!
//! A group gives no more than the groups above it: each level that can be seen counts. In a container the levels above its own
//! root cannot be seen.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use plimsoll_model::sample::CpuQuota;

/// Version 1 writes "no limit" as the largest multiple of a page; nothing real comes near.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// The directories of this process' control groups, its own first, up to the root that can be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlGroups {
    cpu: Levels,
    memory: Levels,
    cpuset: Levels,
}

/// What a group can bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupController {
    /// CPU time.
    Cpu,
    /// Memory and page cache.
    Memory,
    /// Which CPUs.
    Cpuset,
}

/// One controller's levels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Levels {
    directories: Vec<PathBuf>,
    version_2: bool,
}

/// A mounted hierarchy, from a line of mountinfo.
struct Mount {
    /// The group that is mounted.
    root: PathBuf,
    place: PathBuf,
    version_2: bool,
    /// Controllers of version 1.
    controllers: Vec<String>,
}

impl ControlGroups {
    /// As /proc says; none where it cannot be read.
    pub fn of_self() -> Self {
        Self::read(Path::new("/proc/self"), Path::new("/"))
    }

    /// `process`: a directory with `cgroup` and `mountinfo`; `top`: what the paths in it begin at.
    pub fn read(process: &Path, top: &Path) -> Self {
        let text = |name: &str| read_to_string(process.join(name)).unwrap_or_default();
        let mounts: Vec<Mount> = text("mountinfo").lines().filter_map(mount).collect();
        let groups = text("cgroup");
        let of = |controller| levels(controller, &groups, &mounts, top);
        Self { cpu: of("cpu"), memory: of("memory"), cpuset: of("cpuset") }
    }

    /// The directories of a controller, the process' own group first, and whether they are of version 2.
    pub fn levels_of(&self, controller: GroupController) -> (&[PathBuf], bool) {
        let levels = match controller {
            GroupController::Cpu => &self.cpu,
            GroupController::Memory => &self.memory,
            GroupController::Cpuset => &self.cpuset,
        };
        (&levels.directories, levels.version_2)
    }

    /// The quotas that hold now, with their counters. Groups without one are left out.
    pub fn cpu_quotas(&self) -> Vec<CpuQuota> {
        self.cpu.directories.iter().filter_map(|d| cpu_quota(d, self.cpu.version_2)).collect()
    }

    /// The least that any level gives; `None`: no limit.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        let name = if self.memory.version_2 { "memory.max" } else { "memory.limit_in_bytes" };
        let limit = |d: &PathBuf| read_to_string(d.join(name)).ok()?.trim().parse::<u64>().ok();
        self.memory.directories.iter().filter_map(limit).filter(|b| *b < NO_LIMIT_BYTES).min()
    }
}

/// `36 35 98:0 ROOT PLACE OPTIONS [TAGS...] - TYPE SOURCE SUPER_OPTIONS`
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split_ascii_whitespace();
    let kind = after.next()?;
    let options = after.nth(1).unwrap_or("");
    let version_2 = kind == "cgroup2";
    if !version_2 && kind != "cgroup" {
        return None;
    }
    let mut fields = before.split_ascii_whitespace().skip(3);
    let root = unescaped(fields.next()?);
    let place = unescaped(fields.next()?);
    Some(Mount { root, place, version_2, controllers: options.split(',').map(str::to_owned).collect() })
}

/// The kernel writes a space in a path as `\040`.
fn unescaped(path: &str) -> PathBuf {
    PathBuf::from(path.replace("\\040", " ").replace("\\134", "\\"))
}

/// A controller of version 1 is in no hierarchy of version 2.
fn levels(controller: &str, groups: &str, mounts: &[Mount], top: &Path) -> Levels {
    // `4:cpu,cpuacct:/path`, or `0::/path` for version 2.
    let rows: Vec<(&str, &str)> = groups
        .lines()
        .filter_map(|l| {
            let mut parts = l.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?))
        })
        .collect();
    let first = rows.iter().find(|(names, _)| names.split(',').any(|n| n == controller));
    let found = match first {
        Some((_, path)) => {
            mounts.iter().find(|m| m.controllers.iter().any(|c| c == controller)).zip(Some(*path))
        }
        None => {
            let path = rows.iter().find(|(names, _)| names.is_empty()).map(|(_, path)| *path);
            mounts.iter().find(|m| m.version_2).zip(path)
        }
    };
    let Some((mount, path)) = found else { return Levels::default() };
    // Where the mounted part does not hold the group (a namespace of groups), the mount's root is the nearest that is seen.
    let below = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let base = top.join(mount.place.strip_prefix("/").unwrap_or(&mount.place));
    let inside = |p: &Path| p.components().all(|c| matches!(c, std::path::Component::Normal(_)));
    let own = if inside(below) { base.join(below) } else { base.clone() };
    let directories = own.ancestors().take_while(|d| d.starts_with(&base)).map(Path::to_owned).collect();
    Levels { directories, version_2: mount.version_2 }
}

fn cpu_quota(directory: &Path, version_2: bool) -> Option<CpuQuota> {
    let text = |name: &str| read_to_string(directory.join(name)).ok();
    let (quota_us, period_us) = if version_2 {
        let text = text("cpu.max")?;
        let mut fields = text.split_ascii_whitespace();
        // `max`: none.
        (fields.next()?.parse::<f64>().ok()?, fields.next()?.parse::<f64>().ok()?)
    } else {
        let number = |name: &str| text(name)?.trim().parse::<f64>().ok();
        // -1: none.
        (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
    };
    if !(quota_us > 0.0 && period_us > 0.0) {
        return None;
    }
    let stat = text("cpu.stat").unwrap_or_default();
    let counter = |name: &str| {
        let row = stat.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        row.and_then(|v| v.trim().parse::<u64>().ok())
    };
    let throttled_ns = match counter("throttled_usec") {
        Some(us) => us.saturating_mul(1000),
        None => counter("throttled_time").unwrap_or(0),
    };
    Some(CpuQuota {
        group: directory.display().to_string(),
        cores: quota_us / period_us,
        period_ns: (period_us * 1000.0) as u64,
        throttled_periods: counter("nr_throttled").unwrap_or(0),
        throttled_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recorded tree: what /proc/PID and the hierarchies held.
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, ControlGroups) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let groups = ControlGroups::read(&dir.path().join("proc"), dir.path());
        (dir, groups)
    }

    const V1_MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const V2_MOUNTS: &str =
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";

    #[test]
    fn version_1_nested() {
        let (_dir, groups) = tree(&[
            ("proc/mountinfo", V1_MOUNTS),
            ("proc/cgroup", "4:memory:/job/step\n1:cpu,cpuacct:/job/step\n0::/\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "10000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.stat",
                "nr_periods 310\nnr_throttled 301\nthrottled_time 27123456789\nnr_bursts 0\nburst_time 0\n",
            ),
            ("sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "314572800\n"),
            ("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let quotas = groups.cpu_quotas();
        let [q] = &quotas[..] else { panic!("{quotas:?}") };
        assert!(q.group.ends_with("/cpu,cpuacct/job"), "{}", q.group);
        assert_eq!((q.cores, q.period_ns), (0.1, 100_000_000));
        assert_eq!((q.throttled_periods, q.throttled_ns), (301, 27_123_456_789));
        assert_eq!(groups.memory_limit_bytes(), Some(300 << 20));
    }

    #[test]
    fn version_2_as_systemd_and_kubernetes_leave_it() {
        let (_dir, groups) = tree(&[
            ("proc/mountinfo", V2_MOUNTS),
            ("proc/cgroup", "0::/kubepods.slice/pod7.slice/box.scope\n"),
            ("sys/fs/cgroup/kubepods.slice/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/kubepods.slice/memory.max", "max\n"),
            ("sys/fs/cgroup/kubepods.slice/pod7.slice/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/kubepods.slice/pod7.slice/memory.max", "629145600\n"),
            ("sys/fs/cgroup/kubepods.slice/pod7.slice/box.scope/cpu.max", "10000 50000\n"),
            (
                "sys/fs/cgroup/kubepods.slice/pod7.slice/box.scope/cpu.stat",
                "usage_usec 77\nuser_usec 50\nsystem_usec 27\nnr_periods 40\nnr_throttled 38\nthrottled_usec 1234567\n\
                 nr_bursts 0\nburst_usec 0\n",
            ),
            ("sys/fs/cgroup/kubepods.slice/pod7.slice/box.scope/memory.max", "1073741824\n"),
        ]);
        let quotas = groups.cpu_quotas();
        assert_eq!(quotas.iter().map(|q| q.cores).collect::<Vec<_>>(), [0.2, 1.5]);
        assert_eq!((quotas[0].throttled_periods, quotas[0].throttled_ns), (38, 1_234_567_000));
        assert_eq!(quotas[0].period_ns, 50_000_000);
        assert_eq!(groups.memory_limit_bytes(), Some(600 << 20), "the pod gives less than the box asks for");
    }

    #[test]
    fn inside_a_container_its_root_is_what_is_seen() {
        // Version 1 without a namespace of groups: the mount's root is the container's own group.
        let mounts = "50 40 0:29 /docker/abc /sys/fs/cgroup/memory ro master:11 - cgroup cgroup rw,memory\n";
        let (_dir, groups) = tree(&[
            ("proc/mountinfo", mounts),
            ("proc/cgroup", "4:memory:/docker/abc\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "314572800\n"),
        ]);
        assert_eq!(groups.memory_limit_bytes(), Some(300 << 20));
        // Version 2 with one, and a process that was moved out of its root.
        let (_dir, groups) = tree(&[
            ("proc/mountinfo", V2_MOUNTS),
            ("proc/cgroup", "0::/../other\n"),
            ("sys/fs/cgroup/memory.max", "314572800\n"),
            ("sys/fs/cgroup/cpu.max", "max\n"),
        ]);
        assert_eq!(groups.memory_limit_bytes(), Some(300 << 20));
        assert!(groups.cpu_quotas().is_empty());
    }

    #[test]
    fn without_groups_there_is_no_limit() {
        let (_dir, groups) = tree(&[("proc/mountinfo", "garbage\n"), ("proc/cgroup", "1\n:\n")]);
        assert_eq!((groups.memory_limit_bytes(), groups.cpu_quotas().len()), (None, 0));
        assert_eq!(tree(&[]).1, ControlGroups::default());
    }
}
