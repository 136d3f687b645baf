//! Removes a run directory: what a run wrote, and only when there is nothing else in it. All is looked at before
//! anything goes, and by handles: a name that is swapped for a link meanwhile leads nowhere else.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, openat, unlinkat};

use crate::StoreError;

/// Files of a run directory, and what each is called while it is being replaced. The plan is the last to go: until then
/// a removal that was broken off is still a run, and can be removed.
const FILES: &[&str] =
    &["env.json", "seal.json", "analysis.json", "summary.json", "remarks", "journal", "plan.toml"];
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
            foreign(path, "it is a link, and what it leads to stays".into())
        }
        e => io("open")(e),
    })?;
    let mut files = Vec::new();
    let mut streams: Vec<(String, OwnedFd, Vec<String>)> = Vec::new();
    for (name, kind) in entries(dir.as_fd()).map_err(io("read"))? {
        if STREAMS.contains(&name.as_str()) && kind == FileType::Directory {
            let sub = openat(&dir, &name, flags, Mode::empty()).map_err(io("open"))?;
            let inside = entries(sub.as_fd()).map_err(io("read"))?;
            let other = |(n, k): &&(String, FileType)| !n.ends_with(".zst") || *k == FileType::Directory;
            if let Some((other, _)) = inside.iter().find(other) {
                return Err(foreign(path, format!("{name}/{other} is no file of a run")));
            }
            streams.push((name, sub, inside.into_iter().map(|(n, _)| n).collect()));
        } else if is_ours(&name) && kind != FileType::Directory {
            files.push(name);
        } else {
            return Err(foreign(path, format!("{name} is no file of a run")));
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
        problem: "the run is still going on".into(),
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
