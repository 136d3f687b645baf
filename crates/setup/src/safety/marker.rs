//! The mark on files that Plimsoll made: a user extended attribute, or a sidecar file where there are none.
//!
//! `2 DEVICE INODE BORN MARK`: it speaks for one file. A copy carries the attribute along (`cp -a`), and is not that file.
//! MARK is the run's ([`plimsoll_store::Journal::mark`]).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, XattrFlags};

use super::place::{FileId, PlaceInDir};
use super::{content, facts, judge};

const ATTRIBUTE: &str = "user.plimsoll";
const SIDECAR: &str = ".plimsoll";

/// What a file says about who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Maker {
    /// A run with this mark.
    Run(String),
    /// A mark is on it that speaks for another file: it is a copy of one of ours.
    Copied,
    /// Plimsoll, before marks said which file they are for.
    Unproved,
    /// Nobody that we know of.
    Unknown,
}

impl Maker {
    /// Why it is not taken for ours.
    pub fn doubt(&self) -> &'static str {
        match self {
            Self::Run(_) => "it belongs to another run",
            Self::Copied => {
                "its mark names another file (it is a copy, or its file system has a new device number)"
            }
            Self::Unproved => "its mark is from an older version and does not say which file it belongs to",
            Self::Unknown => "it does not carry plimsoll's mark",
        }
    }
}

/// Who made the file at a path; links are followed. [`Maker::Unknown`] where it cannot be told.
pub fn maker_at(path: &Path) -> Maker {
    // A link is the name that a user gave; the file that it leads to is what is judged.
    let Ok(real) = std::fs::canonicalize(path) else { return Maker::Unknown };
    let Ok(Some(place)) = PlaceInDir::of(&real) else { return Maker::Unknown };
    match place.open(OFlags::empty()) {
        Ok(Some(file)) => maker(&file, &place),
        _ => Maker::Unknown,
    }
}

/// Who made a file that is open; `place` is where its sidecar would be.
pub fn maker(file: &File, place: &PlaceInDir) -> Maker {
    let mut value = [0u8; 512];
    match rustix::fs::fgetxattr(file, ATTRIBUTE, &mut value) {
        Ok(n) => told(file, &value[..n]),
        Err(_) => match sidecar_text(file, place) {
            Ok(Some(text)) => text.strip_prefix(b"plimsoll ").map_or(Maker::Unknown, |t| told(file, t)),
            _ => Maker::Unknown,
        },
    }
}

/// What a mark says of this file.
fn told(file: &File, text: &[u8]) -> Maker {
    let Ok(text) = std::str::from_utf8(text) else { return Maker::Unknown };
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words[..] {
        ["2", device, inode, born, mark] => {
            let said = [device, inode, born].join(" ");
            match FileId::of(file) {
                Ok(id) if id.to_string() == said => Maker::Run(mark.to_owned()),
                _ => Maker::Copied,
            }
        }
        ["1", ..] => Maker::Unproved,
        _ => Maker::Unknown,
    }
}

/// Marks a file that we have just created; `run` is the run's mark. Synced by the caller's layout.
pub fn mark(file: &File, place: &PlaceInDir, run: &str) -> io::Result<()> {
    let text = format!("2 {} {run}", FileId::of(file)?);
    match rustix::fs::fsetxattr(file, ATTRIBUTE, text.as_bytes(), XattrFlags::CREATE) {
        Ok(()) => Ok(()),
        // No user attributes on this file system (older tmpfs, some FUSE and network ones).
        Err(_) => write_sidecar(place, &text),
    }
}

/// Whether what a file holds is looked at before it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The run that made it has it in its hands until now.
    Ours,
    /// Others had it in theirs since: a file system in it is theirs.
    Unknown,
}

/// Removes a file that the run with this mark made, and its sidecar. One that is not there is fine; any other stays, and
/// the reason is given.
pub fn remove(path: &Path, run: &str, content: Content) -> Result<(), String> {
    let told = |e: io::Error| e.to_string();
    let Some(place) = PlaceInDir::of(path).map_err(told)? else { return Ok(()) };
    let Some(file) = place.open(OFlags::empty()).map_err(told)? else {
        return remove_orphan(&place, run).map_err(told);
    };
    let meta = file.metadata().map_err(told)?;
    if !meta.is_file() {
        return Err("it is not a regular file".into());
    }
    match maker(&file, &place) {
        Maker::Run(mark) if mark == run => {}
        other => return Err(other.doubt().into()),
    }
    if let Some(what) = facts::file_uses(&file).first() {
        return Err(format!("it {what}"));
    }
    if content == Content::Unknown {
        let held = content::signatures(&file, meta.len()).map_err(told)?;
        if !held.is_empty() {
            return Err(format!("it holds {}", judge::names(&held)));
        }
    }
    let sidecar = place.open_as(&sidecar_name(&place), OFlags::RDONLY).map_err(told)?;
    let sidecar = sidecar.filter(sidecar_is_ours);
    place.unlink(&file, AtFlags::empty()).map_err(told)?;
    match sidecar {
        Some(s) => place.unlink_as(&sidecar_name(&place), &s, AtFlags::empty()).map_err(told),
        None => Ok(()),
    }
}

/// The sidecar of a file that is gone already.
fn remove_orphan(place: &PlaceInDir, run: &str) -> io::Result<()> {
    let name = sidecar_name(place);
    let Some(sidecar) = place.open_as(&name, OFlags::RDONLY)?.filter(sidecar_is_ours) else { return Ok(()) };
    let mut text = String::new();
    sidecar.try_clone()?.rewind()?;
    Read::by_ref(&mut &sidecar).take(512).read_to_string(&mut text)?;
    if text.trim_end().ends_with(&format!(" {run}")) {
        place.unlink_as(&name, &sidecar, AtFlags::empty())?;
    }
    Ok(())
}

/// Name of the sidecar of a file.
fn sidecar_name(place: &PlaceInDir) -> OsString {
    let mut name = place.name.clone();
    name.push(SIDECAR);
    name
}

/// Made new: a file under its name that is not one of our sidecars is somebody's, and in the way.
fn write_sidecar(place: &PlaceInDir, text: &str) -> io::Result<()> {
    let name = sidecar_name(place);
    let in_the_way =
        || io::Error::other(format!("{} is in the way and is not a plimsoll mark", name.to_string_lossy()));
    if let Some(old) = place.open_as(&name, OFlags::RDONLY).map_err(|_| in_the_way())? {
        // Left by a file of ours that somebody removed.
        if !sidecar_is_ours(&old) {
            return Err(in_the_way());
        }
        place.unlink_as(&name, &old, AtFlags::empty())?;
    }
    let made = place.open_as(&name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
    let mut file = made.ok_or_else(|| io::Error::other("its directory no longer exists"))?;
    file.write_all(format!("plimsoll {text}\n").as_bytes())?;
    file.sync_all()
}

/// What the sidecar of a file says: in a directory that all may write to, only one of the file's owner counts.
fn sidecar_text(file: &File, place: &PlaceInDir) -> io::Result<Option<Vec<u8>>> {
    let Some(mut sidecar) = place.open_as(&sidecar_name(place), OFlags::RDONLY)? else { return Ok(None) };
    let meta = sidecar.metadata()?;
    if !meta.is_file() || meta.nlink() != 1 || meta.uid() != file.metadata()?.uid() {
        return Ok(None);
    }
    let mut text = Vec::new();
    Read::by_ref(&mut sidecar).take(512).read_to_end(&mut text)?;
    Ok(Some(text))
}

/// Whether this is a sidecar at all, of whichever file: short, plain, and of our form.
fn sidecar_is_ours(file: &File) -> bool {
    let mut text = Vec::new();
    let plain = file.metadata().is_ok_and(|m| m.is_file() && m.nlink() == 1 && m.len() < 512);
    let read = plain && Read::take(file, 512).read_to_end(&mut text).is_ok();
    let text = std::str::from_utf8(&text).unwrap_or_default();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let numbers = |w: &[&str]| w.iter().all(|n| n.parse::<u64>().is_ok());
    read && match words[..] {
        ["plimsoll", "2", a, b, c, _] => numbers(&[a, b, c]),
        ["plimsoll", "1", inode, _] => numbers(&[inode]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    const RUN: &str = "run-1.0123456789abcdef0123456789abcdef";

    fn file(dir: &Path, name: &str, content: &[u8]) -> (std::path::PathBuf, File, PlaceInDir) {
        let path = dir.join(name);
        fs::write(&path, content).unwrap();
        let place = PlaceInDir::of(&path).unwrap().unwrap();
        let file = place.open(OFlags::empty()).unwrap().unwrap();
        (path, file, place)
    }

    #[test]
    fn a_marked_file_is_its_runs_and_goes_with_it_alone() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (path, f, place) = file(dir.path(), "f", b"x");
        assert_eq!(maker(&f, &place), Maker::Unknown);
        assert!(remove(&path, RUN, Content::Unknown).unwrap_err().contains("does not carry"));
        mark(&f, &place, RUN).unwrap();
        assert_eq!(maker_at(&path), Maker::Run(RUN.into()));
        assert!(remove(&path, "run-2.0", Content::Unknown).unwrap_err().contains("another run"));
        remove(&path, RUN, Content::Unknown).unwrap();
        assert!(!path.exists());
        remove(&path, RUN, Content::Unknown).unwrap();
        remove(&dir.path().join("no/such"), RUN, Content::Unknown).unwrap();
    }

    #[test]
    fn a_copy_is_not_ours_though_it_has_the_attribute() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (path, f, place) = file(dir.path(), "f", b"x");
        mark(&f, &place, RUN).unwrap();
        let (copy, back) = (dir.path().join("copy"), dir.path().join("back"));
        assert!(Command::new("cp").arg("-a").args([&path, &copy]).status().unwrap().success());
        assert_ne!(maker_at(&copy), Maker::Run(RUN.into()));
        // In the place of the first, which often has its number, too.
        drop(f);
        remove(&path, RUN, Content::Unknown).unwrap();
        assert!(Command::new("cp").arg("-a").args([&copy, &back]).status().unwrap().success());
        fs::rename(&back, &path).unwrap();
        assert_ne!(maker_at(&path), Maker::Run(RUN.into()));
        assert!(remove(&path, RUN, Content::Unknown).is_err() && path.exists());
    }

    #[test]
    fn what_got_a_file_system_since_is_somebodys() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (path, f, place) = file(dir.path(), "f", &[0; 4096]);
        mark(&f, &place, RUN).unwrap();
        let image: Vec<u8> = b"XFSB".iter().copied().chain([7; 4092]).collect();
        fs::write(&path, &image).unwrap();
        assert!(remove(&path, RUN, Content::Unknown).unwrap_err().contains("xfs"));
        assert_eq!(fs::read(&path).unwrap(), image);
    }

    #[test]
    fn a_sidecar_is_made_new_and_speaks_for_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let (path, f, place) = file(dir.path(), "f", b"x");
        let text = format!("2 {} {RUN}", FileId::of(&f).unwrap());
        let sidecar = dir.path().join("f.plimsoll");
        for way in ["file", "link"] {
            let theirs = dir.path().join("theirs");
            fs::write(&theirs, b"precious").unwrap();
            match way {
                "file" => fs::rename(&theirs, &sidecar).unwrap(),
                _ => std::os::unix::fs::symlink(&theirs, &sidecar).unwrap(),
            }
            assert!(write_sidecar(&place, &text).unwrap_err().to_string().contains("in the way"), "{way}");
            assert_eq!(fs::read(&sidecar).unwrap(), b"precious");
            fs::remove_file(&sidecar).unwrap();
        }
        write_sidecar(&place, &text).unwrap();
        write_sidecar(&place, &text).unwrap();
        assert_eq!(maker(&f, &place), Maker::Run(RUN.into()));
        let gone = dir.path().join("gone");
        fs::copy(&sidecar, dir.path().join("gone.plimsoll")).unwrap();
        remove(&gone, "run-2.0", Content::Unknown).unwrap();
        assert!(dir.path().join("gone.plimsoll").exists());
        remove(&gone, RUN, Content::Unknown).unwrap();
        assert!(!dir.path().join("gone.plimsoll").exists());
        // Another file takes the name.
        let (other, _, _) = file(dir.path(), "g", b"precious");
        fs::rename(&other, &path).unwrap();
        assert_eq!(maker_at(&path), Maker::Copied);
    }

    #[test]
    fn a_mark_of_an_older_version_proves_nothing() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (path, f, _) = file(dir.path(), "f", b"x");
        if rustix::fs::fsetxattr(&f, ATTRIBUTE, b"1 run-1", XattrFlags::empty()).is_ok() {
            assert_eq!(maker_at(&path), Maker::Unproved);
            assert!(remove(&path, "run-1", Content::Unknown).unwrap_err().contains("older version"));
        }
    }
}
