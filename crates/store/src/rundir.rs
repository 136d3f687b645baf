//! The run directory: its files, its making and removal; seal.rs seals it, list.rs has them listed.
//!
//! ```text
//! plimsoll-runs/20261121-041703-3f9c/
//!   plan.toml  env.json  intervals/AGENT.zst  samples/HOST.zst  journal  seal.json
//!   analysis.json  summary.json        (remade at will)
//! ```

mod imported;
mod list;
mod seal;
mod whole;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_model::{Analysis, Environment, Plan, RunSummary};
use serde::{Deserialize, Serialize};

pub use imported::{IMPORTED_FORMAT, ImportedLines};
pub use list::{RunEntry, RunState, list, newest};
pub use seal::{FileSeal, SEAL_FORMAT, Seal};

use crate::journal::{self, Journal};
use crate::stream::{Header, INTERVALS_FORMAT, SAMPLES_FORMAT, StreamReader, StreamWriter};
use crate::{StoreError, bounds, plain};
use whole::{check_format, read_json, replace, write_json};

/// Of `env.json`.
pub const ENV_FORMAT: &str = "plimsoll.env/1";
/// How a run ended that was not to outlast the loss of an agent ([`crate::RunData::end`]).
pub const AGENT_LOST: &str = "agent lost";
/// How a run ended that its budget of money ended.
pub const COST_BUDGET: &str = "cost budget";
/// How a run ended that a guard ended (`--abort-if`).
pub const GUARD: &str = "guard";
/// Lines that another tool printed, of an imported run.
const IMPORTED: &str = "imported.json";

/// Files that a process has open beside those of a run: more than enough.
const OTHER_FILES: u64 = 128;

/// Where runs go unless told otherwise.
pub const DEFAULT_ROOT: &str = "plimsoll-runs";

/// A run directory, open or sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

/// `env.json`: the environment, and what the tool needs to go on with the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnvFile {
    /// [`ENV_FORMAT`].
    pub format: String,
    /// As in the summary.
    pub id: String,
    /// What the measurement was made on.
    pub environment: Environment,
    /// The command that repeats the run.
    pub rerun: String,
    /// Offsets of the agents' clocks against ours, nanoseconds; empty with one machine.
    #[serde(default)]
    pub clock_offsets_ns: BTreeMap<String, i64>,
}

/// So many files may be open at once in this process, `wanted` if that can be had: the soft limit is ours to raise.
pub fn descriptors_for(wanted: u64) -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let (soft, hard) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    let most = hard.min(wanted);
    if soft >= most {
        return soft;
    }
    let raised = rustix::process::Rlimit { current: Some(most), maximum: limit.maximum };
    if rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).is_ok() { most } else { soft }
}

/// Begins the names of files of scrapes.
const OBSERVED: &str = "observed-";

impl RunDir {
    /// Makes a new run directory under `root`. The id is the local wall clock and a random part.
    pub fn create(root: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(root).map_err(StoreError::io("create", root))?;
        for _ in 0..100 {
            let path = root.join(new_id());
            match std::fs::create_dir(&path) {
                Ok(()) => return Self::furnish(path),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(StoreError::io("create", &path)(e)),
            }
        }
        Err(StoreError::Dir {
            path: root.to_owned(),
            problem: "no free run id was found".into(),
            remedy: "Choose another directory for runs",
        })
    }

    /// Makes `path` itself the run directory; it must not exist, or be empty.
    pub fn create_at(path: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(path).map_err(StoreError::io("create", path))?;
        let mut entries = std::fs::read_dir(path).map_err(StoreError::io("read", path))?;
        if entries.next().is_some() {
            return Err(StoreError::Dir {
                path: path.to_owned(),
                problem: "the directory is not empty".into(),
                remedy: "Choose a new one: a run never overwrites anything",
            });
        }
        Self::furnish(path.to_owned())
    }

    fn furnish(path: PathBuf) -> Result<Self, StoreError> {
        for sub in ["intervals", "samples"] {
            let sub = path.join(sub);
            std::fs::create_dir(&sub).map_err(StoreError::io("create", &sub))?;
        }
        Ok(Self { path })
    }

    /// Opens an existing run directory.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let whole = path.join("plan.toml").is_file() && path.join("intervals").is_dir();
        if !whole && !is_half_made(path) {
            return Err(StoreError::Dir {
                path: path.to_owned(),
                problem: if path.exists() { "this is not a run directory" } else { "no such run" }.into(),
                remedy: "List the runs with: plimsoll runs list",
            });
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Opens a run by path, by id under `root`, by a beginning of its id that no other has, or `last`.
    pub fn find(root: &Path, name: &str) -> Result<Self, StoreError> {
        if name.is_empty() {
            return Err(no_such(root, "the name of the run is empty".into()));
        }
        let direct = Path::new(name);
        if direct.join("plan.toml").is_file() {
            return Self::open(direct);
        }
        let mut hits: Vec<RunDir> = list_dirs(root)?;
        if name == "last" {
            return hits
                .into_iter()
                .rfind(|r| r.path.join("plan.toml").is_file())
                .ok_or_else(|| no_such(root, "there are no runs yet".into()));
        }
        if let Some(whole) = hits.iter().position(|r| r.id() == name) {
            return Ok(hits.swap_remove(whole));
        }
        hits.retain(|r| r.id().starts_with(name));
        match hits.len() {
            1 => Ok(hits.remove(0)),
            0 => Err(no_such(root, format!("there is no run '{name}'"))),
            n => Err(no_such(root, format!("{n} runs begin with '{name}'"))),
        }
    }

    /// Of the directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the directory: of a link to one it is the link's, by which the run is found below its root.
    pub fn id(&self) -> String {
        // `.` and `..` are none.
        self.path.file_name().map_or_else(|| self.real_name(), |n| n.to_string_lossy().into_owned())
    }

    fn real_name(&self) -> String {
        let full = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        full.file_name().map_or_else(|| "run".into(), |n| n.to_string_lossy().into_owned())
    }

    /// Orders runs by their beginning: the second is in the id, and within it the file system tells which was made first.
    fn age(&self) -> (String, Option<std::time::SystemTime>, String) {
        let id = self.real_name();
        let made = self.path.metadata().and_then(|m| m.created()).ok();
        (id.chars().take(SECONDS_IN_ID).collect(), made, id)
    }

    /// In the directory; it need not be there.
    pub fn journal_path(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// Opened to go on with it.
    pub fn journal(&self) -> Result<Journal, StoreError> {
        Journal::open(&self.journal_path())
    }

    /// Replaces `plan.toml` whole: a kill leaves the old or the new one.
    pub fn write_plan(&self, plan: &Plan) -> Result<(), StoreError> {
        replace(&self.path.join("plan.toml"), plan.to_toml().as_bytes())
    }

    /// An error where it is damaged, or not valid by today's rules.
    pub fn plan(&self) -> Result<Plan, StoreError> {
        let path = self.path.join("plan.toml");
        let text = String::from_utf8(plain::read(&path, bounds::of(&path))?)
            .map_err(|e| StoreError::io("read", &path)(std::io::Error::other(e)))?;
        Plan::from_toml(&text).map_err(|e| StoreError::Content { path, problem: e.to_string() })
    }

    /// Replaces `env.json` whole.
    pub fn write_env(&self, env: &EnvFile) -> Result<(), StoreError> {
        write_json(&self.path.join("env.json"), env)
    }

    /// An error where its format is another.
    pub fn env(&self) -> Result<EnvFile, StoreError> {
        let env: EnvFile = read_json(&self.path.join("env.json"))?;
        check_format(&self.path.join("env.json"), &env.format, ENV_FORMAT)?;
        Ok(env)
    }

    /// Replaces `summary.json` whole, and notes its hash in the seal.
    pub fn write_summary(&self, summary: &RunSummary) -> Result<(), StoreError> {
        self.write_result("summary.json", summary)
    }

    /// Whether a process works on it now.
    pub fn is_running(&self) -> bool {
        journal::is_locked(&self.journal_path())
    }

    /// Whether the run was judged.
    pub fn summary_is_there(&self) -> bool {
        self.path.join("summary.json").is_file()
    }

    /// Summaries of the first schema are read, too.
    pub fn summary(&self) -> Result<RunSummary, StoreError> {
        let mut summary = self.summary_as_written()?;
        let altered = self.altered_results()?;
        if !altered.is_empty() {
            summary.distrust(&altered);
        }
        // By this it is found again. The file may be of a directory that was copied or renamed, and say anything.
        summary.id = self.id();
        Ok(summary)
    }

    /// What the run was called when it was measured: a copy of its directory has another name and this one still. Only good to tell
    /// runs apart: the file may say anything.
    pub fn born_as(&self) -> Result<String, StoreError> {
        Ok(self.summary_as_written()?.id)
    }

    fn summary_as_written(&self) -> Result<RunSummary, StoreError> {
        let path = self.path.join("summary.json");
        let summary: RunSummary = read_json(&path)?;
        if summary.schema == plimsoll_model::summary::SCHEMA_1 {
            return Ok(summary.from_schema_1());
        }
        check_format(&path, &summary.schema, plimsoll_model::summary::SCHEMA)?;
        Ok(summary)
    }

    /// Replaces `analysis.json` whole, and notes its hash in the seal.
    pub fn write_analysis(&self, analysis: &Analysis) -> Result<(), StoreError> {
        self.write_result("analysis.json", analysis)
    }

    /// An error where it is not what was written.
    pub fn analysis(&self) -> Result<Analysis, StoreError> {
        let path = self.path.join("analysis.json");
        let analysis: Analysis = read_json(&path)?;
        if self.altered_results()?.iter().any(|n| n == "analysis.json") {
            let problem = "it was changed after it was written; `plimsoll analyze` recreates it".into();
            return Err(StoreError::Content { path, problem });
        }
        check_format(&path, &analysis.schema, plimsoll_model::analysis::SCHEMA)?;
        Ok(analysis)
    }

    /// Starts `intervals/AGENT.zst`. Where the environment has a table of agents, it has this one.
    pub fn create_intervals(&self, agent: &str, grid_ns: u64) -> Result<StreamWriter, StoreError> {
        self.assert_known(agent);
        let header = Header {
            format: INTERVALS_FORMAT.into(),
            source: agent.into(),
            grid_ns,
            observes: String::new(),
        };
        StreamWriter::create(&self.stream_path("intervals", agent), &header)
    }

    /// Goes on after the last good frame: what follows that is cut off.
    pub fn resume_intervals(&self, agent: &str) -> Result<StreamWriter, StoreError> {
        self.assert_known(agent);
        StreamWriter::resume(&self.stream_path("intervals", agent))
    }

    /// What nobody knows to belong to the run is not recorded as if it did.
    fn assert_known(&self, agent: &str) {
        let Ok(env) = self.env() else { return };
        let table = &env.environment.agents;
        assert!(
            table.is_empty() || table.iter().any(|a| a.agent == agent),
            "agent '{agent}' is not in the run's table of agents"
        );
    }

    /// Where an agent's slices and marks are; it need not be there.
    pub fn intervals_path(&self, agent: &str) -> PathBuf {
        self.stream_path("intervals", agent)
    }

    /// Where what is fetched of an agent waits until it is in its record, and the record while it is written anew. What a kill left of
    /// either is removed.
    pub fn merge_paths(&self, agent: &str) -> Result<[PathBuf; 2], StoreError> {
        let own = self.intervals_path(agent);
        let beside = |suffix: &str| {
            let mut name = own.clone().into_os_string();
            name.push(suffix);
            let path = PathBuf::from(name);
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(StoreError::io("remove", &path)(e)),
                _ => Ok(path),
            }
        };
        Ok([beside(crate::removal::FETCHED)?, beside(crate::removal::REPLACED)?])
    }

    /// Starts `samples/HOST.zst`.
    pub fn create_samples(&self, host: &str) -> Result<StreamWriter, StoreError> {
        let (format, source) = (SAMPLES_FORMAT.into(), host.into());
        let header = Header { format, source, grid_ns: 0, observes: String::new() };
        StreamWriter::create(&self.stream_path("samples", host), &header)
    }

    /// Starts the file of a source of servers' metrics, or goes on with it. `observes`: make and address.
    pub fn open_observed(&self, number: usize, observes: &str) -> Result<StreamWriter, StoreError> {
        let source = format!("{OBSERVED}{number}");
        let path = self.stream_path("samples", &source);
        if path.exists() {
            return StreamWriter::resume(&path);
        }
        let (format, observes) = (SAMPLES_FORMAT.into(), observes.to_owned());
        StreamWriter::create(&path, &Header { format, source, grid_ns: 0, observes })
    }

    /// Goes on after the last good frame: what follows that is cut off.
    pub fn resume_samples(&self, host: &str) -> Result<StreamWriter, StoreError> {
        StreamWriter::resume(&self.stream_path("samples", host))
    }

    /// The interval files, in order of their names.
    pub fn interval_files(&self) -> Result<Vec<PathBuf>, StoreError> {
        zst_files(&self.path.join("intervals"))
    }

    /// One for each host, sorted.
    pub fn sample_files(&self) -> Result<Vec<PathBuf>, StoreError> {
        zst_files(&self.path.join("samples"))
    }

    /// Readers of all interval files.
    pub fn interval_readers(&self) -> Result<Vec<StreamReader>, StoreError> {
        let files = self.interval_files()?;
        // A run of a thousand agents has as many files, which are read side by side. Where too few are allowed, opening says so.
        descriptors_for(files.len() as u64 + OTHER_FILES);
        files.iter().map(|p| StreamReader::open(p)).collect()
    }

    fn stream_path(&self, kind: &str, source: &str) -> PathBuf {
        // Host names are outside input: nothing of them may leave the directory.
        let safe: String = source
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
            .collect();
        let safe = safe.trim_start_matches('.');
        self.path.join(kind).join(format!("{}.zst", if safe.is_empty() { "local" } else { safe }))
    }

    /// Removes the run. Refused while it is running, while things that it created wait for cleanup, and where anything that is
    /// not a run's lies in it.
    pub fn remove(self) -> Result<(), StoreError> {
        let refuse =
            |problem: String, remedy| Err(StoreError::Dir { path: self.path.clone(), problem, remedy });
        let _held = crate::removal::hold(&self.journal_path())?;
        let waiting = journal::pending(&self.journal_path())?.len();
        if waiting > 0 {
            return refuse(
                format!("{waiting} thing(s) that the run created still exist"),
                "Remove them first with: plimsoll cleanup RUN",
            );
        }
        if let Some(doubt) = crate::removal::doubt(&self.path) {
            return refuse(
                format!("this is not a run directory: {doubt}"),
                "Nothing was removed; remove it manually if it is yours",
            );
        }
        crate::removal::remove(&self.path)
    }
}

/// Whether a path is that of a file which a run directory holds.
pub fn is_file_of_a_run(path: &Path) -> bool {
    let Ok(real) = std::fs::canonicalize(path) else { return false };
    let is_run = |d: &Path| d.join("plan.toml").is_file() && d.join("intervals").is_dir();
    let name = real.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let Some(dir) = real.parent() else { return false };
    let stream = dir.file_name().is_some_and(|n| crate::removal::STREAMS.iter().any(|s| n == *s));
    is_run(dir) && crate::removal::is_ours(name) || stream && dir.parent().is_some_and(is_run)
}

/// Whether a directory is one that a process made for a run and was killed before there was a plan in it: it has an id for a
/// name, and nothing but a run's in it. So it is listed, and can be removed.
fn is_half_made(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let is_id = name.len() == SECONDS_IN_ID + "-3f9c".len()
        && name.bytes().enumerate().all(|(i, b)| match i {
            8 | SECONDS_IN_ID => b == b'-',
            _ if i > SECONDS_IN_ID => b.is_ascii_hexdigit(),
            _ => b.is_ascii_digit(),
        });
    let known = |name: &str| crate::removal::is_ours(name) || crate::removal::STREAMS.contains(&name);
    let entry =
        |e: std::io::Result<std::fs::DirEntry>| e.is_ok_and(|e| e.file_name().to_str().is_some_and(known));
    is_id
        && path.symlink_metadata().is_ok_and(|m| m.is_dir())
        && std::fs::read_dir(path).is_ok_and(|mut all| all.all(entry))
}

fn no_such(root: &Path, problem: String) -> StoreError {
    StoreError::Dir { path: root.to_owned(), problem, remedy: "List the runs with: plimsoll runs list" }
}

fn list_dirs(root: &Path) -> Result<Vec<RunDir>, StoreError> {
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(StoreError::io("read", root)(e)),
    };
    let mut runs: Vec<RunDir> = entries.filter_map(|e| RunDir::open(&e.ok()?.path()).ok()).collect();
    runs.sort_by_cached_key(RunDir::age);
    Ok(runs)
}

fn zst_files(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut files = Vec::new();
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        // An empty directory does not come along with every copy of a run.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        Err(e) => return Err(StoreError::io("read", dir)(e)),
    };
    for entry in entries {
        let path = entry.map_err(StoreError::io("read", dir))?.path();
        if path.extension().is_some_and(|e| e == "zst") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Characters of an id that are date and time.
const SECONDS_IN_ID: usize = "20261122-053127".len();

/// A name for a run directory that is to be made later: date, time and a random part. Whoever makes it finds out whether it is free.
pub fn new_id() -> String {
    let now = jiff::Zoned::now();
    let mut random = [0u8; 2];
    // Uniqueness comes from create_dir; this only makes a collision rare.
    if rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty()).is_err() {
        random = (now.timestamp().subsec_nanosecond() as u16).to_le_bytes();
    }
    format!("{}-{:02x}{:02x}", now.strftime("%Y%m%d-%H%M%S"), random[0], random[1])
}
