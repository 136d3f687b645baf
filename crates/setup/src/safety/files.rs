//! Files that a run writes: created, never overwritten, unless they are ours or the user names them. What was judged is held
//! open, and is what is used: a path is looked up once.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, OFlags};

use super::judge::{TargetRefusal, names};
use super::marker::Maker;
use super::place::PlaceInDir;
use super::{content, facts, held, marker};

/// What was found, or made, at the path of a file target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFate {
    /// It was not there: made, empty, and marked as ours.
    Created,
    /// A file of an earlier run of ours.
    Ours,
    /// Somebody else's: only read, or written because `--destroy-data` names it.
    Foreign,
}

/// A file that may be used, open.
#[derive(Debug)]
pub struct HeldFile {
    /// Locked, and what the engine opens by /proc/self/fd.
    pub file: File,
    /// Decides whether it is removed at the end.
    pub fate: FileFate,
    /// Whether it was judged for writing.
    pub writes: bool,
}

/// Makes sure that a regular file may be used. Creates and marks it when it is not there and the run writes.
///
/// The caller writes the file's name into the journal before it calls this with `writes`. `run` is the run's mark.
pub fn prepare_file(
    path: &Path,
    writes: bool,
    destroy_data: Option<&str>,
    run: &str,
) -> Result<HeldFile, TargetRefusal> {
    let shown = path.display().to_string();
    // No pipe is waited for, and nothing is made or cut.
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let (file, fate) = match File::options().read(true).custom_flags(flags).open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if let Ok(to) = fs::read_link(path) {
                return Err(dangling(&shown, &to));
            }
            // A slip in a device's name would fill the memory: what is made there is a file in it.
            if names_a_device(path) {
                return Err(TargetRefusal::new(
                    &shown,
                    "no such device",
                    "Name a device that is there: lsblk lists them",
                ));
            }
            if !writes {
                return Err(missing(&shown));
            }
            (create(path, &shown, run)?, FileFate::Created)
        }
        Err(e) => {
            return Err(TargetRefusal::new(
                &shown,
                format!("cannot be opened: {e}"),
                "Check the path, and who may read it",
            ));
        }
        Ok(file) if !writes => {
            // A pipe without a writer is waited for by whoever opens it next, for ever.
            if !looked_at(&file, &shown)?.is_file() {
                return Err(no_storage(&shown));
            }
            let ours = matches!(held::maker(&file), Maker::Run(_));
            (file, if ours { FileFate::Ours } else { FileFate::Foreign })
        }
        Ok(file) => {
            let fate = may_write(&file, &shown, destroy_data)?;
            (file, fate)
        }
    };
    Ok(HeldFile { file, fate, writes })
}

fn looked_at(file: &File, shown: &str) -> Result<fs::Metadata, TargetRefusal> {
    file.metadata()
        .map_err(|e| TargetRefusal::new(shown, format!("cannot be examined: {e}"), "Check the path"))
}

/// Refuses what a path leads to if it is there and neither a file nor a device. Asked by name: opening some things does something (a pipe
/// waits for its writer, a tape goes back to its start).
pub fn refuse_no_storage(path: &Path) -> Result<(), TargetRefusal> {
    match fs::metadata(path).map(|m| m.file_type()) {
        Ok(kind) if !kind.is_file() && !kind.is_block_device() => {
            Err(no_storage(&path.display().to_string()))
        }
        _ => Ok(()),
    }
}

fn no_storage(shown: &str) -> TargetRefusal {
    TargetRefusal::new(shown, "is neither a regular file nor a block device", "Name a file or a block device")
}

fn names_a_device(path: &Path) -> bool {
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

fn missing(shown: &str) -> TargetRefusal {
    TargetRefusal::new(
        shown,
        "no such file",
        "Name an existing file, or give a size (--size 1GiB) to create it",
    )
}

/// A link is never followed to make something: who may write where it is chooses where it leads.
fn dangling(shown: &str, to: &Path) -> TargetRefusal {
    TargetRefusal::new(
        shown,
        format!("is a symbolic link to {}, which is not there", to.display()),
        "Name the file itself, which is created then, or remove the link: none is followed to create a file",
    )
}

fn create(path: &Path, shown: &str, run: &str) -> Result<File, TargetRefusal> {
    let make = || -> std::io::Result<File> {
        let gone = || std::io::Error::other("its directory no longer exists");
        let place = PlaceInDir::of(path)?.ok_or_else(gone)?;
        let made = place.open_as(&place.name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        let file = made.ok_or_else(gone)?;
        if let Err(e) = marker::mark(&file, &place, run) {
            // Made a moment ago, empty, and of no use without a mark.
            let _ = place.unlink(&file, AtFlags::empty());
            return Err(e);
        }
        Ok(file)
    };
    make().map_err(|e| {
        TargetRefusal::new(
            shown,
            format!("cannot be created: {e}"),
            "Choose a directory that exists and is writable",
        )
    })
}

fn may_write(file: &File, shown: &str, destroy_data: Option<&str>) -> Result<FileFate, TargetRefusal> {
    let meta = looked_at(file, shown)?;
    if !meta.is_file() {
        return Err(no_storage(shown));
    }
    if let Some(what) = facts::file_uses(file).first() {
        return Err(TargetRefusal::new(
            shown,
            format!("the file {what}"),
            "A file in use is never written to; choose another, or release it",
        ));
    }
    if destroy_data.is_some_and(|word| is_named_by(&meta, word)) {
        return Ok(FileFate::Foreign);
    }
    let content = match content::signatures(file, meta.len()) {
        Ok(list) if list.is_empty() => None,
        Ok(list) => Some(format!("it holds {}", names(&list))),
        Err(e) => Some(format!("its content cannot be read: {e}")),
    };
    let problem = match (held::maker(file), content) {
        (Maker::Run(_), None) if meta.nlink() == 1 => return Ok(FileFate::Ours),
        (Maker::Run(_), None) => {
            format!("the file was created by plimsoll, but now has {} names (hard links)", meta.nlink())
        }
        // What somebody put into it since then is his.
        (Maker::Run(_), Some(content)) => format!("the file was created by plimsoll, but now {content}"),
        (Maker::Unknown, content) => {
            let content = content.map_or_else(String::new, |c| format!("; {c}"));
            format!("the file exists and was not created by plimsoll{content}")
        }
        (other, content) => {
            let content = content.map_or_else(String::new, |c| format!("; {c}"));
            format!("the file exists, and {}{content}", other.doubt())
        }
    };
    Err(TargetRefusal::new(
        shown,
        problem,
        format!("Choose a new name, or destroy its data with --destroy-data={shown}"),
    ))
}

/// Whether a path leads to just this file.
fn is_named_by(meta: &fs::Metadata, word: &str) -> bool {
    fs::metadata(word).is_ok_and(|m| (m.dev(), m.ino()) == (meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "r.0123456789abcdef0123456789abcdef";

    fn fate(path: &Path, writes: bool, destroy: Option<&str>) -> Result<FileFate, TargetRefusal> {
        prepare_file(path, writes, destroy, RUN).map(|h| h.fate)
    }

    #[test]
    fn files_are_created_once_and_then_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new");
        assert!(fate(&path, false, None).unwrap_err().problem.contains("no such file"));
        assert_eq!(fate(&path, true, None), Ok(FileFate::Created));
        assert_eq!(fate(&path, true, None), Ok(FileFate::Ours));
        assert_eq!(fate(&path, false, None), Ok(FileFate::Ours));
    }

    #[test]
    fn no_file_is_made_where_devices_are() {
        let path = Path::new("/dev/plimsoll-no-such-device");
        for writes in [false, true] {
            assert_eq!(fate(path, writes, None).unwrap_err().problem, "no such device");
        }
        assert!(!path.exists());
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        let mut image = vec![0u8; 4096];
        image[..4].copy_from_slice(b"XFSB");
        fs::write(&path, &image).unwrap();
        let e = fate(&path, true, None).unwrap_err().to_string();
        assert!(e.contains("not created by plimsoll") && e.contains("xfs"), "{e}");
        let other = dir.path().join("other");
        fs::write(&other, b"").unwrap();
        let named = other.display().to_string();
        assert!(fate(&path, true, Some(&named)).is_err());
        let named = path.display().to_string();
        assert_eq!(fate(&path, true, Some(&named)), Ok(FileFate::Foreign));
        assert_eq!(fate(&path, false, None), Ok(FileFate::Foreign));
        assert_eq!(fs::read(&path).unwrap(), image);
    }

    #[test]
    fn ours_with_a_file_system_or_a_second_name_is_somebodys_now() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kept");
        assert_eq!(fate(&path, true, None), Ok(FileFate::Created));
        let second = dir.path().join("second");
        fs::hard_link(&path, &second).unwrap();
        assert!(fate(&path, true, None).unwrap_err().problem.contains("2 names"));
        fs::remove_file(&second).unwrap();
        let mut image = vec![0u8; 4096];
        image[..4].copy_from_slice(b"XFSB");
        fs::write(&path, &image).unwrap();
        let told = fate(&path, true, None).unwrap_err();
        assert!(told.problem.contains("created by plimsoll, but now it holds xfs"), "{told}");
        assert_eq!(fate(&path, true, Some(&path.display().to_string())), Ok(FileFate::Foreign));
    }

    #[test]
    fn a_pipe_is_refused_and_never_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        for writes in [false, true] {
            let told = fate(&path, writes, None).unwrap_err();
            assert!(told.problem.contains("neither a regular file"), "{told}");
        }
    }

    #[test]
    fn a_dangling_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("nowhere"), &link).unwrap();
        for writes in [false, true] {
            let told = fate(&link, writes, None).unwrap_err();
            assert!(
                told.problem.contains("a symbolic link to") && told.problem.contains("nowhere"),
                "{told}"
            );
            assert!(told.remedy.contains("Name the file itself"), "{told}");
        }
        assert!(!dir.path().join("nowhere").exists());
        assert!(fate(dir.path(), true, None).is_err());
    }
}
