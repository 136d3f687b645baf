//! Files that a user names for a result (`--html`, `-o`, `--output`): an old report of ours, or an empty file, is overwritten;
//! anything else that is there is not, whatever name, link or second name leads to it. Looked at before a run, so that nothing is measured
//! in vain, and again when it is written.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use plimsoll_setup::safety::marker::{Maker, maker_at};
use plimsoll_setup::safety::place::{may_write_in, remove_made};
use plimsoll_setup::safety::{content, judge};
use plimsoll_store::rundir;

use crate::fault::Fault;

/// Whether a result may be written there; nothing is made or changed.
pub fn check(file: &Path) -> Result<(), Fault> {
    let problem = match fs::metadata(file) {
        Ok(meta) if meta.is_file() => theirs(file),
        Ok(meta) => no_place(&meta).map(str::to_owned),
        Err(e) if e.kind() == io::ErrorKind::NotFound => no_directory(file),
        Err(e) => Some(e.to_string()),
    };
    problem.map_or(Ok(()), |p| Err(cannot(file, &p)))
}

/// What is overwritten is looked at first; what it held is cut only once it is open.
pub fn write(file: &Path, content: &[u8]) -> Result<(), Fault> {
    check(file)?;
    let new = begin_new(file);
    let made = new.is_some();
    let open = new.map_or_else(|| take(file), Ok)?;
    fill(file, open, made, |f| f.write_all(content))
}

/// A file of which nothing was there before: of what is there nothing is overwritten, not even what we wrote, for it may have been edited.
pub fn write_new(file: &Path, content: &[u8]) -> Result<(), Fault> {
    let open = File::options().write(true).create_new(true).mode(0o666).open(file);
    fill(file, open.map_err(|e| cannot(file, &e.to_string()))?, true, |f| f.write_all(content))
}

/// A part of a result is none, and what was not there before (`made`) is not left.
fn fill(
    file: &Path,
    mut open: File,
    made: bool,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), Fault> {
    content(&mut open).map_err(|e| {
        let gone = made && remove_made(file, &open).is_ok();
        let said = if gone { "; the partial output was removed" } else { "" };
        cannot(file, &format!("{e}{said}"))
    })
}

/// A file that was not there; `None` where something is, or where none can be made.
fn begin_new(file: &Path) -> Option<File> {
    File::options().write(true).create_new(true).mode(0o666).open(file).ok()
}

/// Opens a file that was looked at, and empties it.
fn take(file: &Path) -> Result<File, Fault> {
    let open = || -> io::Result<File> {
        let mut how = File::options();
        let how = how.write(true).create(true).truncate(false).mode(0o666);
        // A pipe that nobody reads any more is told, and not waited for.
        let open = how.custom_flags(libc::O_NONBLOCK).open(file)?;
        let meta = open.metadata()?;
        // What has its name now may be another thing than what was looked at.
        if let Some(problem) = no_place(&meta) {
            return Err(io::Error::other(problem));
        }
        // Once more, and without that flag: it is written to at the pace of its reader.
        if !meta.is_file() {
            return File::options().write(true).open(format!("/proc/self/fd/{}", open.as_raw_fd()));
        }
        empty(&open)?;
        Ok(open)
    };
    open().map_err(|e| cannot(file, &e.to_string()))
}

/// Empties what is open, once it was looked at through that: between the first look and the opening its name may have passed to
/// another file.
fn empty(open: &File) -> io::Result<()> {
    if open.metadata()?.len() > 0
        && let Some(problem) = theirs(Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd())))
    {
        return Err(io::Error::other(problem));
    }
    open.set_len(0)
}

pub fn cannot(file: &Path, problem: &str) -> Fault {
    Fault::input(
        format!("{} cannot be written: {problem}", file.display()),
        "Name another file for the result.",
    )
}

/// Terminals and /dev/null take a result as files do, and so does a pipe that this process was given (/dev/stdout, `>(...)` of a shell). One that only
/// has a name may never get a reader.
fn no_place(meta: &fs::Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    if kind.is_fifo() && !is_ours(meta) {
        Some("it is a named pipe, and a result does not wait for a reader")
    } else if kind.is_dir() {
        Some("it is a directory")
    } else if kind.is_block_device() {
        Some("it is a block device, and writing would destroy its data")
    } else {
        None
    }
}

/// Whether it is open in this process.
fn is_ours(meta: &fs::Metadata) -> bool {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    open.filter_map(|e| fs::metadata(e.path()).ok()).any(|m| (m.dev(), m.ino()) == (meta.dev(), meta.ino()))
}

/// Why a file that is there is not overwritten.
fn theirs(file: &Path) -> Option<String> {
    if rundir::is_file_of_a_run(file) {
        return Some("it is a file of a run".into());
    }
    if let Maker::Run(_) = maker_at(file) {
        return Some("it contains data that a run wrote".into());
    }
    let open = match File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(file) {
        Ok(open) => open,
        Err(e) => return Some(e.to_string()),
    };
    let size = open.metadata().map_or(0, |m| m.len());
    let held = content::signatures(&open, size).unwrap_or_default();
    if !held.is_empty() {
        return Some(format!("it contains {}", judge::names(&held)));
    }
    match is_result(&open) {
        Ok(true) => None,
        Ok(false) => Some(NOT_OURS.into()),
        Err(e) => Some(e.to_string()),
    }
}

const NOT_OURS: &str = "it exists and is not a result that plimsoll wrote";

/// How much of a file is looked through for what tells of its maker: pages with the data of several runs are larger, and
/// carry it at their beginning.
const LOOKED_AT: usize = 4 << 20;

/// Whether a file is empty or carries what results of ours begin with: a page, a document in a form of fio's (its `normal` form
/// names no program), a certificate of a test server, points for InfluxDB, a summary in Markdown. Reads from the beginning, wherever the handle stands.
fn is_result(file: &File) -> io::Result<bool> {
    let mut head = vec![0; LOOKED_AT];
    let mut length = 0;
    loop {
        match file.read_at(&mut head[length..], length as u64)? {
            0 => break,
            n => length += n,
        }
    }
    head.truncate(length);
    let holds = |what: &str| head.windows(what.len()).any(|w| w == what.as_bytes());
    let begins = |what: &str| head.starts_with(what.as_bytes());
    Ok(head.is_empty()
        || begins("<!doctype html>")
            && (holds("<meta name=\"generator\" content=\"plimsoll ") || holds("id=\"plimsoll-data\""))
        || begins("{") && holds("\"fio version\" : \"plimsoll-")
        || begins("3;plimsoll-")
        || begins("# made by plimsoll\n")
        || begins(plimsoll_report::export::MARKDOWN_MARK))
}

fn no_directory(file: &Path) -> Option<String> {
    let dir = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !dir.is_dir() {
        return Some(format!("there is no directory {}", dir.display()));
    }
    may_write_in(dir).err().map(|e| format!("{}: {e}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(file: &Path) -> String {
        let before = fs::read(file).ok();
        let told = write(file, b"x").unwrap_err().to_string();
        assert_eq!(fs::read(file).ok(), before);
        told
    }

    #[test]
    fn of_a_file_that_could_not_be_written_whole_no_part_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cluster.toml");
        let full = |f: &mut File| {
            f.write_all(b"version = 1")?;
            Err(io::Error::from_raw_os_error(libc::ENOSPC))
        };
        let open = File::create_new(&file).unwrap();
        let e = fill(&file, open, true, full).unwrap_err().to_string();
        assert!(e.contains("the partial output was removed") && !file.exists(), "{e}");
        fs::write(&file, "theirs").unwrap();
        let e = fill(&file, File::create(&file).unwrap(), false, full).unwrap_err().to_string();
        assert!(!e.contains("removed") && file.exists(), "{e}");
        assert!(write_new(&file, b"x").is_err());
    }

    #[test]
    fn an_old_report_is_overwritten_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let page = "<!doctype html>\n<html>\n<head>\n<meta name=\"generator\" content=\"plimsoll 0\">\n a longer report";
        fs::write(at("old.html"), page).unwrap();
        fs::write(at("empty.html"), "").unwrap();
        write(&at("empty.html"), b"").unwrap();
        for theirs in [
            "a letter",
            "<!doctype html>\n<html>a page of theirs",
            "{\"fio version\" : \"fio-3.33\"}",
            "-----BEGIN",
        ] {
            fs::write(at("theirs"), theirs).unwrap();
            for name in ["link", "second"] {
                let _ = fs::remove_file(at(name));
            }
            std::os::unix::fs::symlink(at("theirs"), at("link")).unwrap();
            fs::hard_link(at("theirs"), at("second")).unwrap();
            for name in ["theirs", "link", "second"] {
                assert!(refused(&at(name)).contains("not a result that plimsoll wrote"), "{name}: {theirs}");
            }
        }
        write(&at("old.html"), b"new").unwrap();
        write(&at("new.html"), b"new").unwrap();
        assert_eq!(
            (fs::read(at("old.html")).unwrap(), fs::read(at("new.html")).unwrap()),
            (b"new".into(), b"new".into())
        );
        write(Path::new("/dev/null"), b"new").unwrap();
        assert!(refused(dir.path()).contains("is a directory"));
        let pipe = at("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        // Without a look at what it holds, which would wait as well.
        for told in [check(&pipe), write(&pipe, b"x")] {
            assert!(told.unwrap_err().to_string().contains("named pipe"));
        }
        assert!(refused(&at("no/new.html")).contains("there is no directory"));
        fs::write(at("disk"), [&b"XFSB"[..], &[0; 4092]].concat()).unwrap();
        assert!(refused(&at("disk")).contains("xfs"));
        // Another file took the name after it was looked at.
        let open = File::options().write(true).open(at("disk")).unwrap();
        assert!(empty(&open).unwrap_err().to_string().contains("xfs"));
        assert_eq!(fs::metadata(at("disk")).unwrap().len(), 4096);
        for d in ["run", "run/intervals"] {
            fs::create_dir(at(d)).unwrap();
        }
        for f in ["run/plan.toml", "run/journal", "run/intervals/local.zst"] {
            fs::write(at(f), "of a run").unwrap();
            assert!(
                f == "run/plan.toml" && at(f).exists() || refused(&at(f)).contains("file of a run"),
                "{f}"
            );
        }
        assert!(refused(&at("run/plan.toml")).contains("file of a run"));
        write(&at("run/report.html"), b"beside them").unwrap();
    }
}
