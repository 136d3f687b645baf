//! The folder of a site: written beside its place and put there in one step, so that whoever looks finds the old one or the new one.
//! What is there and not ours is never touched.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use plimsoll_model::text::printable;
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use crate::gather::sha256;

/// By this a site is known again: every file of it, with its hash.
pub const SITE_MARK: &str = ".plimsoll-site.json";
const SITE_FORMAT: &str = "plimsoll.site/1";
/// In its mark while it is being written.
const STAGE_FORMAT: &str = "plimsoll.site-stage/1";
/// Bytes; of a thousand runs with their directories it is one.
const MOST_OF_MARK: u64 = 64 << 20;

/// A file of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteFile {
    /// From the site's directory; slashes between parts.
    pub path: String,
    /// What is in it.
    pub content: Vec<u8>,
}

impl SiteFile {
    /// Of text, without characters that obey nobody.
    pub fn new(path: &str, text: String) -> Self {
        Self { path: path.to_owned(), content: printable(&text, false).into_owned().into_bytes() }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    format: String,
    /// By path, the SHA-256.
    files: BTreeMap<String, String>,
}

/// Why a site is not written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message has all fields in it")]
pub enum SiteError {
    #[error("{}: {problem}", path.display())]
    Theirs { path: PathBuf, problem: String },
    #[error("{}: {problem}", path.display())]
    Io { path: PathBuf, problem: io::Error },
    #[error("{}: it is the directory that you are in, or one above it", .0.display())]
    Here(PathBuf),
    #[error("{}: its file system cannot exchange two directories in one step", .0.display())]
    NoExchange(PathBuf),
    #[error("another plimsoll publishes to {} just now", .0.display())]
    Busy(PathBuf),
}

impl SiteError {
    /// What to do, as a sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Theirs { .. } => {
                "Name a directory that is new or empty, or move away what is not of the last publication."
            }
            Self::Io { .. } => {
                "Check the path, its permissions and the free space, or name another directory with -o."
            }
            Self::Here(_) => {
                "The folder is replaced as a whole, and you would be left in the old one, which is gone: go elsewhere, and name it from there with -o."
            }
            Self::NoExchange(_) => {
                "Name a new directory with -o, or move the old publication away: nothing of it was changed."
            }
            Self::Busy(_) => "Wait until it ends, or name another directory with -o.",
        }
    }
}

fn io_at(path: &Path) -> impl Fn(io::Error) -> SiteError + '_ {
    |problem| SiteError::Io { path: path.to_owned(), problem }
}

fn theirs(path: &Path, problem: &str) -> SiteError {
    SiteError::Theirs { path: path.to_owned(), problem: problem.into() }
}

/// What is at the place of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    New,
    Empty,
    Ours,
}

/// Whether a site may be written there; nothing is made or changed.
pub fn check(dir: &Path) -> Result<(), SiteError> {
    let dir = real(dir)?;
    is_elsewhere(&dir)?;
    place(&dir).map(drop)
}

/// Whoever stands in a directory that is replaced stands in one that is no more.
fn is_elsewhere(dir: &Path) -> Result<(), SiteError> {
    match std::env::current_dir().and_then(fs::canonicalize) {
        Ok(here) if here.starts_with(dir) => Err(SiteError::Here(dir.to_owned())),
        _ => Ok(()),
    }
}

/// The directory itself, where a link leads to it.
fn real(dir: &Path) -> Result<PathBuf, SiteError> {
    match fs::canonicalize(dir) {
        Ok(path) => Ok(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if fs::symlink_metadata(dir).is_ok() {
                return Err(theirs(dir, "it is a link that leads nowhere"));
            }
            let (Some(name), parent) = (dir.file_name(), dir.parent().unwrap_or(Path::new("."))) else {
                return Err(theirs(dir, "it does not name a directory"));
            };
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            let parent = fs::canonicalize(parent).map_err(io_at(parent))?;
            Ok(parent.join(name))
        }
        Err(e) => Err(io_at(dir)(e)),
    }
}

fn place(dir: &Path) -> Result<Place, SiteError> {
    let meta = match fs::metadata(dir) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Place::New),
        Err(e) => return Err(io_at(dir)(e)),
    };
    if !meta.is_dir() {
        return Err(theirs(dir, "it is there, and is no directory"));
    }
    let held = held(dir)?;
    if held.is_empty() {
        return Ok(Place::Empty);
    }
    let mark = mark_of(dir).ok_or_else(|| theirs(dir, "it is not empty, and no site that plimsoll wrote"))?;
    for path in &held {
        if path == SITE_MARK {
            continue;
        }
        let file = dir.join(path);
        let Some(hash) = mark.files.get(path) else {
            return Err(theirs(&file, "it is not of the site that plimsoll wrote there"));
        };
        if fs::symlink_metadata(&file).is_ok_and(|m| !m.is_file())
            || sha256(&fs::read(&file).map_err(io_at(&file))?) != *hash
        {
            return Err(theirs(&file, "it was changed since plimsoll wrote it"));
        }
    }
    Ok(Place::Ours)
}

/// The mark of a site. One that names a file outside it was not written here.
fn mark_of(dir: &Path) -> Option<Mark> {
    let is_below = |path: &String| Path::new(path).components().all(|c| matches!(c, Component::Normal(_)));
    marked(dir, SITE_FORMAT).filter(|m| m.files.keys().all(is_below))
}

/// Of this format. Neither a link nor a pipe is one.
fn marked(dir: &Path, format: &str) -> Option<Mark> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(dir.join(SITE_MARK)).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(MOST_OF_MARK).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok().filter(|m: &Mark| m.format == format)
}

/// All that is below it but directories, by path; links as themselves. Of a directory without anything in it its own path.
fn held(dir: &Path) -> Result<Vec<String>, SiteError> {
    let mut out = Vec::new();
    let mut open = vec![(dir.to_owned(), String::new())];
    while let Some((path, at)) = open.pop() {
        let mut is_empty = true;
        for entry in fs::read_dir(&path).map_err(io_at(&path))? {
            let entry = entry.map_err(io_at(&path))?;
            is_empty = false;
            let name = format!("{at}{}", entry.file_name().to_string_lossy());
            if entry.file_type().map_err(io_at(&path))?.is_dir() {
                open.push((entry.path(), name + "/"));
            } else {
                out.push(name);
            }
        }
        if is_empty && !at.is_empty() {
            out.push(at.trim_end_matches('/').to_owned());
        }
    }
    out.sort();
    Ok(out)
}

/// Writes the site; `copies`: directories that go into `runs/` as they are.
pub fn write(dir: &Path, files: &[SiteFile], copies: &[(String, PathBuf)]) -> Result<(), SiteError> {
    write_by(dir, files, copies, &|from, to, flags| Ok(renameat_with(CWD, from, CWD, to, flags)?))
}

/// How one directory comes in the place of another.
type Rename<'a> = &'a dyn Fn(&Path, &Path, RenameFlags) -> io::Result<()>;

fn write_by(
    dir: &Path,
    files: &[SiteFile],
    copies: &[(String, PathBuf)],
    rename: Rename<'_>,
) -> Result<(), SiteError> {
    let dir = real(dir)?;
    is_elsewhere(&dir)?;
    let found = place(&dir)?;
    let stage = Stage::begin(&dir)?;
    let filled = stage
        .fill(files, copies)
        .and_then(|()| stage.as_open_as(&dir, found))
        .and_then(|()| put_in_place(&stage.path, &dir, found, rename));
    if filled.is_err() || found != Place::New {
        // By now it is the old one that is there; whatever came into it since it was looked at stays.
        stage.remove();
    }
    filled
}

fn put_in_place(from: &Path, dir: &Path, found: Place, rename: Rename<'_>) -> Result<(), SiteError> {
    let flags = if found == Place::New { RenameFlags::NOREPLACE } else { RenameFlags::EXCHANGE };
    if found != Place::New {
        // What came meanwhile is not ours to move.
        place(dir)?;
    }
    match rename(from, dir, flags) {
        // Of network and foreign file systems some know the plain call alone. That one takes the place of a directory only where it is
        // empty, so nothing of anybody is lost by it.
        Err(e) if is_unknown(&e) && found == Place::Ours => Err(SiteError::NoExchange(dir.to_owned())),
        Err(e) if is_unknown(&e) => fs::rename(from, dir).map_err(io_at(dir)),
        done => done.map_err(io_at(dir)),
    }
}

fn is_unknown(e: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP].iter().any(|n| e.raw_os_error() == Some(n.raw_os_error()))
}

/// A directory beside the site's own, on the same file system; its mark is locked while it is written.
struct Stage {
    path: PathBuf,
    _lock: File,
}

impl Stage {
    fn begin(dir: &Path) -> Result<Self, SiteError> {
        let name = dir.file_name().ok_or_else(|| theirs(dir, "it does not name a directory"))?;
        let path = dir.with_file_name(format!(".{}.plimsoll-publish", name.to_string_lossy()));
        if fs::symlink_metadata(&path).is_ok() {
            Self::clear(&path, dir)?;
        }
        fs::create_dir(&path).map_err(io_at(&path))?;
        let mark = path.join(SITE_MARK);
        let text = format!("{{\"format\":\"{STAGE_FORMAT}\",\"files\":{{}}}}\n");
        let begun = File::create_new(&mark).map_err(io_at(&mark)).and_then(|mut lock| {
            lock.try_lock().map_err(|_| SiteError::Busy(dir.to_owned()))?;
            lock.write_all(text.as_bytes()).map_err(io_at(&mark))?;
            Ok(lock)
        });
        match begun {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(e) => {
                // The disk is full, say: both were made just now.
                let _ = fs::remove_file(&mark);
                let _ = fs::remove_dir(&path);
                Err(e)
            }
        }
    }

    /// Whoever may read what is there may read what comes in its place, and nobody else.
    fn as_open_as(&self, dir: &Path, found: Place) -> Result<(), SiteError> {
        if found == Place::New {
            return Ok(());
        }
        let before = fs::metadata(dir).map_err(io_at(dir))?;
        let own = fs::metadata(&self.path).map_err(io_at(&self.path))?;
        if own.gid() != before.gid() || own.uid() != before.uid() {
            std::os::unix::fs::chown(&self.path, Some(before.uid()), Some(before.gid()))
                .map_err(io_at(&self.path))?;
        }
        fs::set_permissions(&self.path, before.permissions()).map_err(io_at(&self.path))
    }

    /// What a killed one left: a stage of ours, whose writer is gone; or the old site, in which everything is as it was written.
    fn clear(path: &Path, dir: &Path) -> Result<(), SiteError> {
        let in_the_way = || theirs(path, "it is in the way, and plimsoll did not make it");
        let mark = path.join(SITE_MARK);
        let is_file = |m: fs::Metadata| m.is_file();
        if !fs::symlink_metadata(path).is_ok_and(|m| m.is_dir()) {
            return Err(in_the_way());
        }
        let held = held(path)?;
        let is_bare = held.is_empty()
            || held == [SITE_MARK] && fs::symlink_metadata(&mark).is_ok_and(|m| m.is_file() && m.len() == 0);
        let is_stage = marked(path, STAGE_FORMAT).is_some();
        if !is_bare && !is_stage && mark_of(path).is_none() {
            return Err(in_the_way());
        }
        if fs::symlink_metadata(&mark).is_ok_and(is_file)
            && let Ok(lock) = File::open(&mark)
        {
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(SiteError::Busy(dir.to_owned())),
                Err(TryLockError::Error(e)) => return Err(io_at(path)(e)),
            }
        }
        if is_stage {
            return fs::remove_dir_all(path).map_err(io_at(path));
        }
        if is_bare {
            let _ = fs::remove_file(&mark);
            return fs::remove_dir(path).map_err(io_at(path));
        }
        place(path)?;
        remove_site(path);
        if path.exists() { Err(in_the_way()) } else { Ok(()) }
    }

    fn fill(&self, files: &[SiteFile], copies: &[(String, PathBuf)]) -> Result<(), SiteError> {
        let mut hashes = BTreeMap::new();
        for f in files {
            self.put(&f.path, &f.content)?;
            hashes.insert(f.path.clone(), sha256(&f.content));
        }
        for (name, from) in copies {
            for path in held(from)? {
                let source = from.join(&path);
                if fs::symlink_metadata(&source).is_ok_and(|m| !m.is_file()) {
                    continue;
                }
                let content = fs::read(&source).map_err(io_at(&source))?;
                let to = format!("runs/{name}/{path}");
                self.put(&to, &content)?;
                hashes.insert(to, sha256(&content));
            }
        }
        let mark = Mark { format: SITE_FORMAT.into(), files: hashes };
        let text = serde_json::to_vec_pretty(&mark).map_err(|e| io_at(&self.path)(e.into()))?;
        // Beside, then in its place: the lock stays on what it was taken on until then.
        let (new, own) = (self.path.join(format!("{SITE_MARK}.new")), self.path.join(SITE_MARK));
        let mut file = File::create_new(&new).map_err(io_at(&new))?;
        file.write_all(&text).map_err(io_at(&new))?;
        fs::rename(&new, &own).map_err(io_at(&own))
    }

    fn put(&self, path: &str, content: &[u8]) -> Result<(), SiteError> {
        let to = self.path.join(path);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(io_at(parent))?;
        }
        let mut file = File::create_new(&to).map_err(io_at(&to))?;
        file.write_all(content).map_err(io_at(&to))
    }

    fn remove(&self) {
        if marked(&self.path, STAGE_FORMAT).is_some() {
            // It never came to be a site: all in it was just made here.
            let _ = fs::remove_dir_all(&self.path);
        } else {
            remove_site(&self.path);
        }
    }
}

/// Only files that are there, that its mark names, and that are as they were written; then the directories that are empty by then.
fn remove_site(path: &Path) {
    let Some(mark) = mark_of(path) else {
        let _ = fs::remove_dir(path);
        return;
    };
    let mut left = false;
    for name in held(path).unwrap_or_default().iter().filter(|n| *n != SITE_MARK) {
        let file = path.join(name);
        let is_as_written = |hash: &String| {
            fs::symlink_metadata(&file).is_ok_and(|m| m.is_file())
                && fs::read(&file).is_ok_and(|content| sha256(&content) == *hash)
        };
        if mark.files.get(name).is_some_and(is_as_written) {
            let _ = fs::remove_file(&file);
        } else {
            left = true;
        }
    }
    if !left {
        let _ = fs::remove_file(path.join(SITE_MARK));
    }
    remove_empty(path);
}

fn remove_empty(dir: &Path) {
    if let Ok(entries) = fs::read_dir(dir) {
        for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            remove_empty(&entry.path());
        }
    }
    let _ = fs::remove_dir(dir);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(text: &str) -> Vec<SiteFile> {
        vec![SiteFile::new("index.html", text.into()), SiteFile::new("tables/a.csv", "a\r\n".into())]
    }

    #[test]
    fn a_site_is_replaced_whole_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("site");
        write(&at, &site("one"), &[]).unwrap();
        write(&at, &site("two")[..1], &[]).unwrap();
        assert_eq!(fs::read_to_string(at.join("index.html")).unwrap(), "two");
        assert!(!at.join("tables").exists());
        // Nothing is left beside it.
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let refused = |part: &str| {
            let told = write(&at, &site("three"), &[]).unwrap_err().to_string();
            assert!(told.contains(part), "{told}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        };
        fs::write(at.join("CNAME"), "example.org").unwrap();
        refused("CNAME: it is not of the site");
        fs::remove_file(at.join("CNAME")).unwrap();
        fs::write(at.join("index.html"), "two, and more").unwrap();
        refused("index.html: it was changed");
        fs::remove_file(at.join(SITE_MARK)).unwrap();
        refused("not empty, and no site");
        assert_eq!(fs::read_to_string(at.join("index.html")).unwrap(), "two, and more");
    }

    #[test]
    fn a_mark_that_names_what_is_elsewhere_removes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("site");
        let theirs = dir.path().join("theirs");
        fs::write(&theirs, "precious").unwrap();
        for name in [theirs.to_str().unwrap(), "../theirs", "tables/../../theirs"] {
            write(&at, &site("one"), &[]).unwrap();
            let mark = fs::read_to_string(at.join(SITE_MARK)).unwrap();
            let more = format!("\"files\": {{ \"{name}\": \"{}\",", sha256(b"precious"));
            fs::write(at.join(SITE_MARK), mark.replacen("\"files\": {", &more, 1)).unwrap();
            let told = write(&at, &site("two"), &[]).unwrap_err().to_string();
            assert!(told.contains("no site that plimsoll wrote"), "{told}");
            assert_eq!(fs::read_to_string(&theirs).unwrap(), "precious");
            fs::remove_dir_all(&at).unwrap();
        }
    }

    #[test]
    fn a_copy_of_a_site_with_something_of_somebody_is_not_what_a_killed_one_left() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("site");
        let way = dir.path().join(".site.plimsoll-publish");
        write(&at, &site("one"), &[]).unwrap();
        fs::rename(&at, &way).unwrap();
        fs::write(way.join("mine.txt"), "mine").unwrap();
        assert!(write(&at, &site("two"), &[]).unwrap_err().to_string().contains("mine.txt"));
        assert_eq!(fs::read_to_string(way.join("mine.txt")).unwrap(), "mine");
        fs::remove_file(way.join("mine.txt")).unwrap();
        write(&at, &site("two"), &[]).unwrap();
        assert!(!way.exists());
        // The disk was full in the moment in which it began.
        fs::create_dir(&way).unwrap();
        fs::write(way.join(SITE_MARK), "").unwrap();
        write(&at, &site("three"), &[]).unwrap();
        assert!(!way.exists());
    }

    #[test]
    fn where_two_directories_cannot_be_exchanged_an_old_site_stays_and_a_new_one_is_put_there() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("site");
        let plain = |from: &Path, to: &Path, flags: RenameFlags| match flags {
            RenameFlags::EXCHANGE | RenameFlags::NOREPLACE => Err(rustix::io::Errno::INVAL.into()),
            _ => fs::rename(from, to),
        };
        write_by(&at, &site("one"), &[], &plain).unwrap();
        let refused = write_by(&at, &site("two"), &[], &plain).unwrap_err();
        assert!(
            refused.to_string().contains("cannot exchange") && refused.remedy().contains("new directory")
        );
        assert_eq!(fs::read_to_string(at.join("index.html")).unwrap(), "one");
        // An empty one is no loss; one that is not empty by then is refused by the call itself.
        let empty = dir.path().join("empty");
        fs::create_dir(&empty).unwrap();
        write_by(&empty, &site("three"), &[], &plain).unwrap();
        assert_eq!(fs::read_to_string(empty.join("index.html")).unwrap(), "three");
        let late = dir.path().join("late");
        let comes = |from: &Path, to: &Path, flags: RenameFlags| {
            fs::create_dir(to)?;
            fs::write(to.join("mine"), "")?;
            plain(from, to, flags)
        };
        assert!(write_by(&late, &site("four"), &[], &comes).is_err());
        assert_eq!(fs::read_dir(&late).unwrap().count(), 1);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is left beside them");
    }

    #[test]
    fn nobody_is_left_in_a_directory_that_is_gone() {
        let here = std::env::current_dir().unwrap();
        for dir in [here.as_path(), here.parent().unwrap(), Path::new("."), Path::new("..")] {
            assert!(matches!(check(dir), Err(SiteError::Here(_))), "{}", dir.display());
            assert!(matches!(write(dir, &site("x"), &[]), Err(SiteError::Here(_))), "{}", dir.display());
        }
    }

    #[test]
    fn who_may_not_read_the_old_one_may_not_read_the_new_one() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("site");
        write(&at, &site("one"), &[]).unwrap();
        fs::set_permissions(&at, fs::Permissions::from_mode(0o700)).unwrap();
        write(&at, &site("two"), &[]).unwrap();
        assert_eq!(fs::metadata(&at).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn what_is_no_place_for_a_site_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "").unwrap();
        assert!(check(&at("file")).unwrap_err().to_string().contains("no directory"));
        assert!(check(&at("no/site")).is_err());
        std::os::unix::fs::symlink(at("gone"), at("link")).unwrap();
        assert!(check(&at("link")).unwrap_err().to_string().contains("leads nowhere"));
        fs::create_dir(at("empty")).unwrap();
        write(&at("empty"), &site("x"), &[]).unwrap();
        // A link to a site is followed, and stays a link.
        std::os::unix::fs::symlink(at("empty"), at("to")).unwrap();
        write(&at("to"), &site("y"), &[]).unwrap();
        assert_eq!(fs::read_to_string(at("empty/index.html")).unwrap(), "y");
        assert!(fs::symlink_metadata(at("to")).unwrap().is_symlink());
    }

    #[test]
    fn what_a_killed_one_left_goes_and_a_stranger_in_the_way_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (at, beside) = (dir.path().join("site"), dir.path().join(".site.plimsoll-publish"));
        let killed = Stage::begin(&at).unwrap();
        killed.put("index.html", b"half").unwrap();
        assert!(matches!(write(&at, &site("x"), &[]), Err(SiteError::Busy(_))));
        drop(killed);
        write(&at, &site("x"), &[]).unwrap();
        assert!(!beside.exists());
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("mine"), "").unwrap();
        assert!(write(&at, &site("y"), &[]).unwrap_err().to_string().contains("did not make it"));
        assert!(beside.join("mine").exists());
    }
}
