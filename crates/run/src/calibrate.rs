//! This machine's own ceiling as a load generator: against a target that does nothing, and against the canned server
//! in a process of its own. Kept in the user's state directory, and joined to later runs.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_model::plan::PLAN_VERSION;
use plimsoll_model::units::{Size, Span};
use plimsoll_model::{Estimate, OpKind, Plan};
use plimsoll_store::RunDir;
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::event::Event;
use crate::execute::{Options, execute};

pub const CEILING_FORMAT: &str = "plimsoll.ceiling/1";

/// Sizes that are measured against the canned server; costs in between follow a line.
const SIZES: [u64; 2] = [4096, 1 << 20];

/// A ceiling whose interval is wider than this to either side is none to hold a result against: a run counts as limited
/// by the client from 90 % of it on.
const WIDE: f64 = 0.1;
/// Each is measured so often at most, each time twice as long, until it is narrow enough.
const ATTEMPTS: u32 = 3;

/// The file in the state directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub format: String,
    pub host: String,
    pub cpu_model: String,
    pub cpu_count: u32,
    /// CPU quota of the control group that it was measured in, in cores; absent: none. It is part of the ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota_cores: Option<f64>,
    pub plimsoll_version: String,
    pub commit: String,
    pub made_at: String,
    /// Of one thread, ops per second: `null`, `get 4096`, `put 1048576`, ...
    pub ops_per_s: BTreeMap<String, Estimate>,
    /// Those that stayed too wide: shown, and not held against any run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wide: Vec<String>,
}

/// Where it is kept: `$XDG_STATE_HOME/plimsoll` or `~/.local/state/plimsoll`.
fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|h| h.join(".local/state")))?;
    Some(state.join("plimsoll").join("ceiling.json"))
}

/// The ceilings of this machine; empty when it was not calibrated, or has changed since.
pub fn ceiling() -> BTreeMap<String, f64> {
    let read = || -> Option<Calibration> { serde_json::from_slice(&std::fs::read(path()?).ok()?).ok() };
    let Some(c) = read() else { return BTreeMap::new() };
    let here = crate::environment::machine();
    let same = (c.cpu_model, c.cpu_count, c.cpu_quota_cores)
        == (here.cpu_model, here.cpu_count, here.cpu_quota_cores);
    if c.format != CEILING_FORMAT || !same {
        return BTreeMap::new();
    }
    c.ops_per_s
        .into_iter()
        .filter(|(name, _)| !c.wide.contains(name))
        .map(|(name, e)| (name, e.value))
        .collect()
}

/// Measures until the interval is narrow enough, each time twice as long. Gives the narrowest, and whether it will do.
fn narrow(mut measure: impl FnMut(u32) -> Result<Estimate, RunError>) -> Result<(Estimate, bool), RunError> {
    let mut best: Option<Estimate> = None;
    for attempt in 0..ATTEMPTS {
        let e = measure(attempt)?;
        let narrower = |b: Estimate| e.relative_half_width() < b.relative_half_width();
        let kept = best.filter(|b| !narrower(*b)).unwrap_or(e);
        if kept.relative_half_width() <= WIDE {
            return Ok((kept, true));
        }
        best = Some(kept);
    }
    best.map(|e| (e, false)).ok_or_else(|| RunError::Bug("no attempt was made".into()))
}

/// Shorter than this no rate can be told from few slices of 100 ms.
pub const SHORTEST: Duration = Duration::from_millis(500);

/// Measures the ceilings, `duration` each, and keeps them.
pub fn calibrate(
    options: &Options,
    duration: Duration,
    mut events: impl FnMut(Event),
) -> Result<Calibration, RunError> {
    if duration < SHORTEST {
        return Err(RunError::input(
            format!("{} is too short to measure a ceiling in", Span(duration)),
            format!("Give --duration {} or more; 2s is usual", Span(SHORTEST)),
        ));
    }
    let mut ops_per_s = BTreeMap::new();
    let mut wide = Vec::new();
    let new_root = !options.root.exists();
    let options = Options { run_dir: None, ceiling: BTreeMap::new(), ..options.clone() };
    let mut cases = vec![("null".to_owned(), OpKind::Null, 0)];
    for kind in [OpKind::Get, OpKind::Put] {
        cases.extend(SIZES.iter().map(|size| (format!("{kind} {size}"), kind, *size)));
    }
    let result = cases.into_iter().try_for_each(|(name, kind, size)| {
        let (estimate, narrow) = narrow(|attempt| {
            let again = if attempt > 0 { " again, and longer: the interval was too wide" } else { "" };
            events(Event::Message(format!("measuring {name}{again}")));
            once(&options, (kind, size, duration * (1 << attempt)), &mut events)
        })?;
        if !narrow {
            wide.push(name.clone());
        }
        ops_per_s.insert(name, estimate);
        if options.interrupt.is_requested() { Err(RunError::Interrupted) } else { Ok(()) }
    });
    if new_root {
        // With anything in it, it stays.
        let _ = std::fs::remove_dir(&options.root);
    }
    result?;
    let here = crate::environment::machine();
    let calibration = Calibration {
        format: CEILING_FORMAT.into(),
        host: here.host,
        cpu_model: here.cpu_model,
        cpu_count: here.cpu_count,
        cpu_quota_cores: here.cpu_quota_cores,
        plimsoll_version: env!("CARGO_PKG_VERSION").into(),
        commit: options.commit.clone(),
        made_at: jiff::Timestamp::now().to_string(),
        ops_per_s,
        wide,
    };
    keep(&calibration)?;
    Ok(calibration)
}

/// One measurement of one case.
fn once(
    options: &Options,
    (kind, size, duration): (OpKind, u64, Duration),
    events: &mut dyn FnMut(Event),
) -> Result<Estimate, RunError> {
    let text = if kind == OpKind::Null { null_plan(duration) } else { canned_plan(kind, size, duration) };
    let plan = Plan::from_toml(&text).map_err(|e| RunError::Bug(format!("calibration plan: {e}")))?;
    let finished = execute(&plan, options, &mut *events)?;
    // The run itself is of no further use. One that cannot be removed, or was killed, is a run like any other: it is listed,
    // and can be removed by name.
    let _ = RunDir::open(&finished.path).and_then(RunDir::remove);
    let line = finished.summary.workloads.first().and_then(|w| w.ops_per_s);
    line.filter(|e| e.value > 0.0).ok_or_else(|| {
        RunError::input(format!("'{kind}' gave no rate"), "Run it again on a quiet machine, or longer")
    })
}

fn keep(c: &Calibration) -> Result<(), RunError> {
    let Some(path) = path() else {
        return Err(RunError::input(
            "there is no home directory to keep the ceiling in",
            "Set XDG_STATE_HOME",
        ));
    };
    let write = || -> std::io::Result<()> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        replace(&path, &serde_json::to_vec_pretty(c)?)
    };
    write().map_err(|e| {
        RunError::input(
            format!("cannot keep the ceiling in {}: {e}", path.display()),
            "Set XDG_STATE_HOME to a directory that can be written",
        )
    })
}

/// Puts a record in the place of an older one, as a whole, and of nothing else.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Ok(old) = std::fs::read(path) {
        let form = |v: serde_json::Value| v["format"].as_str().map(|f| f.starts_with("plimsoll.ceiling/"));
        if serde_json::from_slice(&old).ok().and_then(form) != Some(true) {
            return Err(std::io::Error::other("what is there is no record of a ceiling: move it away"));
        }
    }
    let mut random = [0u8; 8];
    rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())?;
    let new = path.with_extension(format!("{:016x}.new", u64::from_le_bytes(random)));
    let write = || {
        std::fs::File::create_new(&new)?.write_all(content)?;
        std::fs::rename(&new, path)
    };
    write().inspect_err(|_| {
        // Half of it is of no use.
        let _ = std::fs::remove_file(&new);
    })
}

fn null_plan(duration: Duration) -> String {
    format!(
        "version = {PLAN_VERSION}\nname = \"calibrate null\"\n[options]\nthreads = 1\n[targets.null]\nkind = \"null\"\n\
         [[stage]]\nwarmup = \"500ms\"\n[[stage.workload]]\nname = \"null\"\nmix = {{ null = 1 }}\nconcurrency = 16\n\
         stop = {{ duration = \"{}\" }}\n",
        Span(duration)
    )
}

fn canned_plan(kind: OpKind, size: u64, duration: Duration) -> String {
    format!(
        "version = {PLAN_VERSION}\nname = \"calibrate {kind}\"\n[options]\nthreads = 1\n[targets.canned]\nkind = \"s3\"\n\
         endpoints = [\"{}\"]\nbucket = \"bucket\"\n[[stage]]\nwarmup = \"500ms\"\n[[stage.workload]]\n\
         name = \"{kind}\"\nmix = {{ {kind} = 1 }}\nsize = \"{}\"\nconcurrency = 16\nstop = {{ duration = \"{}\" }}\n",
        crate::target::CANNED,
        Size(size),
        Span(duration)
    )
}

/// What one thread of this machine can do at most with ops of this size, from the measured ones: the time of an op is a
/// fixed part and one that grows with its bytes.
pub fn ceiling_for(ceiling: &BTreeMap<String, f64>, kind: OpKind, size_bytes: u64) -> Option<f64> {
    let kind = match kind {
        OpKind::Get | OpKind::GetRange => OpKind::Get,
        OpKind::Put | OpKind::UploadPart => OpKind::Put,
        OpKind::Null => return ceiling.get("null").copied(),
        // Small exchanges both ways: as cheap as a small GET.
        OpKind::Stat | OpKind::Delete | OpKind::List | OpKind::DeleteBatch | OpKind::Copy => {
            return ceiling.get(&format!("get {}", SIZES[0])).copied();
        }
        OpKind::Multipart | OpKind::Read | OpKind::Write | OpKind::Fsync | OpKind::Trim => return None,
    };
    let time = |size: u64| ceiling.get(&format!("{kind} {size}")).filter(|r| **r > 0.0).map(|r| 1.0 / r);
    let [small, large] = SIZES;
    let (t_small, t_large) = (time(small)?, time(large)?);
    let per_byte = ((t_large - t_small) / (large - small) as f64).max(0.0);
    let t = (t_small + per_byte * (size_bytes as f64 - small as f64)).max(t_small * 0.5);
    Some(1.0 / t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_plans() {
        for plan in [
            null_plan(Duration::from_secs(2)),
            canned_plan(OpKind::Put, 1 << 20, Duration::from_millis(1500)),
        ] {
            Plan::from_toml(&plan).unwrap();
        }
    }

    #[test]
    fn what_stays_wide_is_marked() {
        let of = |half: f64| Estimate::symmetric(100.0, half, 10.0);
        let widths = |list: &'static [f64]| move |i: u32| Ok(of(list[i as usize]));
        assert_eq!(narrow(widths(&[5.0])).unwrap(), (of(5.0), true), "once is enough");
        assert_eq!(narrow(widths(&[50.0, 9.0])).unwrap(), (of(9.0), true));
        assert_eq!(narrow(widths(&[50.0, 20.0, 30.0])).unwrap(), (of(20.0), false));
        assert!(narrow(|_| Err(RunError::Interrupted)).is_err());
    }

    #[test]
    fn between_the_sizes_time_grows_with_bytes() {
        let c: BTreeMap<String, f64> =
            [("get 4096".to_owned(), 50_000.0), ("get 1048576".to_owned(), 4000.0)].into();
        assert!((ceiling_for(&c, OpKind::Get, 4096).unwrap() - 50_000.0).abs() < 0.01);
        assert!((ceiling_for(&c, OpKind::Get, 1 << 20).unwrap() - 4000.0).abs() < 1.0);
        let middle = ceiling_for(&c, OpKind::Get, 512 << 10).unwrap();
        assert!((7000.0..8500.0).contains(&middle), "{middle}");
        assert!(ceiling_for(&c, OpKind::Put, 4096).is_none());
    }
}
