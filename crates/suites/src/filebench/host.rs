//! What the plan of the file benchmark depends on: memory, cores, space, and what can be done about the cache.

use std::path::Path;

use plimsoll_model::plan::{ClientBounds, EmbeddedDisk};
use plimsoll_run::RunError;
use plimsoll_run::sample::ControlGroups;
use plimsoll_setup::block::{alignment_of, drop_cache, free_bytes};
use plimsoll_setup::safety::probe::Probe;

/// How reads are kept from being answered by the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMode {
    /// The files' pages are dropped, and that works here.
    Dropped,
    /// Dropping does not work; direct I/O does.
    Direct,
    /// Neither works.
    Cached,
}

impl CacheMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Direct => "direct",
            Self::Cached => "cached",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// What the page cache can have: the machine's memory, or what the control groups give of it.
    pub memory_bytes: u64,
    /// It is the control groups' limit that counts.
    pub is_memory_limited: bool,
    pub cpus: u32,
    /// `None` where the file system does not say.
    pub free_bytes: Option<u64>,
    pub cache: CacheMode,
    /// Alignment that direct I/O needs here; `None` or 0: it is refused.
    pub direct_alignment: Option<u64>,
}

impl Host {
    /// Looks at this machine and directory; writes to a small file in it, that has no name.
    pub fn of(directory: &Path) -> Result<Self, RunError> {
        let probe = Probe::make(directory).map_err(|e| {
            RunError::input(
                format!("{}: cannot be written to: {e}", directory.display()),
                "Name an existing, writable directory",
            )
        })?;
        let alignment = alignment_of(&probe.path()).ok().map(|a| a.bytes);
        Ok(Self {
            free_bytes: free_bytes(directory),
            cache: cache_mode(&probe.path(), alignment),
            direct_alignment: alignment,
            ..Self::of_machine()
        })
    }
}

impl Host {
    /// This machine, with a disk that is yet to be made: what is written in its directory can be dropped from the cache, as root.
    pub fn of_machine() -> Self {
        let info = rustix::system::sysinfo();
        let machine_bytes = info.totalram as u64 * u64::from(info.mem_unit);
        let limit_bytes = ControlGroups::of_self().memory_limit_bytes().filter(|b| *b < machine_bytes);
        Self {
            memory_bytes: limit_bytes.unwrap_or(machine_bytes),
            is_memory_limited: limit_bytes.is_some(),
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            free_bytes: None,
            cache: CacheMode::Dropped,
            direct_alignment: None,
        }
    }

    /// The same with an embedded disk; its file system takes some of it.
    pub fn on_embedded(self, disk: &EmbeddedDisk) -> Self {
        Self { free_bytes: Some(disk.size.0 / 10 * 9), cache: CacheMode::Dropped, ..self }
    }

    /// The same for a run that is bounded: its page cache is within its memory.
    pub fn within(mut self, client: Option<&ClientBounds>) -> Self {
        let Some(client) = client else { return self };
        if let Some(memory) = client.memory.filter(|m| m.0 < self.memory_bytes) {
            self.memory_bytes = memory.0;
            self.is_memory_limited = true;
        }
        if !client.cpus.is_empty() {
            self.cpus = self.cpus.min(client.cpus.len() as u32);
        }
        self
    }
}

fn cache_mode(path: &Path, alignment: Option<u64>) -> CacheMode {
    let dropped = match drop_cache(path) {
        Ok(d) => match d.pages_left {
            Some(left) => left == 0,
            // The kernel does not tell: believe it where we could drop everything.
            None => rustix::process::geteuid().is_root(),
        },
        Err(_) => false,
    };
    match (dropped, alignment) {
        (true, _) => CacheMode::Dropped,
        (false, Some(a)) if a > 0 => CacheMode::Direct,
        _ => CacheMode::Cached,
    }
}
