//! Removes a run directory: what a run wrote, and only when there is nothing else in it. All is looked at before
//! anything goes, and by handles: a name that is swapped for a link meanwhile leads nowhere else.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, openat, unlinkat};

use plimsoll_model::Plan;

use crate::{StoreError, StreamReader, bounds};

/// Files of a run directory, and what each is called while it is being replaced. The plan is the last to go: until then
/// a removal that was broken off is still a run, and can be removed.
const FILES: &[&str] = &[
    "env.json",
    "imported.json",
    "seal.json",
    "analysis.json",
    "summary.json",
    "remarks",
    "journal",
    ".plimsoll-made",
    "plan.toml",
];
/// What a stream is called while it is written anew, behind its name.
pub(crate) const REPLACED: &str = ".new";
/// And what is fetched for it.
pub(crate) const FETCHED: &str = ".fetched";
/// Directories of streams.
pub(crate) const STREAMS: &[&str] = &["samples", "intervals"];

/// What a name in a run directory stands for.
pub(crate) fn is_ours(name: &str) -> bool {
    let replaced = |f: &str| Path::new(f).with_extension("new").to_str() == Some(name);
    FILES.iter().any(|f| *f == name || replaced(f))
}

/// Removes the run directory at `path`, or nothing.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    let io =
        |doing| move |e: rustix::io::Errno| StoreError::Io { doing, path: path.to_owned(), source: e.into() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| match e {
        rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP => {
            foreign(path, "it is a link; its target is not removed".into())
        }
        e => io("open")(e),
    })?;
    let mut files = Vec::new();
    let mut streams: Vec<(String, OwnedFd, Vec<String>)> = Vec::new();
    for (name, kind) in entries(dir.as_fd()).map_err(io("read"))? {
        if STREAMS.contains(&name.as_str()) && kind == FileType::Directory {
            let sub = openat(&dir, &name, flags, Mode::empty()).map_err(io("open"))?;
            let inside = entries(sub.as_fd()).map_err(io("read"))?;
            let other = |(n, k): &&(String, FileType)| {
                !is_stream_name(n) || *k != FileType::RegularFile || !is_stream(&path.join(&name).join(n))
            };
            if let Some((other, _)) = inside.iter().find(other) {
                return Err(foreign(path, format!("{name}/{other} is not a file of a run")));
            }
            streams.push((name, sub, inside.into_iter().map(|(n, _)| n).collect()));
        } else if is_ours(&name) && kind != FileType::Directory {
            files.push(name);
        } else {
            return Err(foreign(path, format!("{name} is not a file of a run")));
        }
    }
    let rank = |name: &str| FILES.iter().position(|f| *f == name);
    files.sort_by_key(|f| rank(f));
    streams.sort_by_key(|(name, ..)| STREAMS.iter().position(|s| s == name));
    let last = files.pop_if(|f| f == "plan.toml");
    let none = AtFlags::empty();
    for (_, sub, inside) in &streams {
        inside.iter().try_for_each(|n| unlinkat(sub, n, none)).map_err(io("remove a file of"))?;
    }
    files.iter().try_for_each(|f| unlinkat(&dir, f, none)).map_err(io("remove a file of"))?;
    for (name, ..) in &streams {
        unlinkat(&dir, name, AtFlags::REMOVEDIR).map_err(io("remove a directory of"))?;
    }
    last.iter().try_for_each(|f| unlinkat(&dir, f, none)).map_err(io("remove a file of"))?;
    std::fs::remove_dir(path).map_err(StoreError::io("remove", path))
}

/// A stream, or what a kill left of one that was being replaced.
fn is_stream_name(name: &str) -> bool {
    name.ends_with(".zst")
        || name.ends_with(&format!(".zst{REPLACED}"))
        || name.ends_with(&format!(".zst{FETCHED}"))
}

/// Whether a file is a stream of a run, or of an older or newer plimsoll, by what it begins with; a kill may have left less.
fn is_stream(path: &Path) -> bool {
    let mut head = Vec::new();
    let magic = crate::frame::MAGIC.to_le_bytes();
    let read = crate::plain::open(path, File::options().read(true))
        .and_then(|f| f.take(magic.len() as u64).read_to_end(&mut head));
    read.is_ok() && magic.starts_with(&head)
}

/// Why a directory is not known for one that a run made, by what is in it and not by the names of its files.
pub(crate) fn doubt(path: &Path) -> Option<String> {
    let plan = path.join("plan.toml");
    match crate::plain::open(&plan, File::options().read(true)) {
        // Made for a run, and killed before there was a plan: all that is in it is looked at below, as always.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        Err(e) => return Some(format!("its plan.toml cannot be read: {e}")),
        Ok(file) => match plan_in(&file, &plan) {
            Ok(true) => {}
            Ok(false) => return Some("its plan.toml is not a plan".into()),
            Err(e) => return Some(format!("its plan.toml cannot be read: {e}")),
        },
    }
    let has_stream = || {
        STREAMS
            .iter()
            .filter_map(|s| std::fs::read_dir(path.join(s)).ok())
            .flatten()
            .flatten()
            .any(|f| StreamReader::open(&f.path()).is_ok())
    };
    (!crate::Journal::is_one(&path.join("journal")) && !has_stream())
        .then(|| "neither its journal nor its data was written by a run".into())
}

/// Whether a plan is in it.
fn plan_in(file: &File, path: &Path) -> Result<bool, StoreError> {
    let most = bounds::of(path);
    let text = bounds::read(file, path, most)?;
    bounds::check_parts(&text, path, most)?;
    Ok(String::from_utf8(text).is_ok_and(|t| Plan::from_toml(&t).is_ok()))
}

/// The journal's lock, for as long as the run is being removed; `None` where there is no journal.
pub(crate) fn hold(journal: &Path) -> Result<Option<File>, StoreError> {
    let file = match crate::plain::open(journal, File::options().read(true)) {
        // What is no journal of ours holds no run.
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::Other) => {
            return Ok(None);
        }
        file => file.map_err(StoreError::io("open", journal))?,
    };
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| StoreError::Dir {
        path: journal.parent().unwrap_or(journal).to_owned(),
        problem: "the run is still in progress".into(),
        remedy: "Stop it first",
    })?;
    Ok(Some(file))
}

fn foreign(path: &Path, problem: String) -> StoreError {
    StoreError::Dir { path: path.to_owned(), problem, remedy: "Nothing was removed; move it away first" }
}

fn entries(dir: std::os::fd::BorrowedFd<'_>) -> rustix::io::Result<Vec<(String, FileType)>> {
    let mut all = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = match entry.file_name().to_str() {
            Ok(name) => name.to_owned(),
            // No run writes such a name, and this one is none of its names either.
            Err(_) => format!("{} (not UTF-8)", entry.file_name().to_string_lossy()),
        };
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not tell in the listing.
            FileType::Unknown => {
                let stat = rustix::fs::statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        all.push((name, kind));
    }
    Ok(all)
}
