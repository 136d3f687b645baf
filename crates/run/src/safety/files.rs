//! Files that a run writes: created, never overwritten, unless they are ours or the user names them.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::judge::{Refusal, names};
use super::{claim, facts, marker};

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

/// Makes sure that a regular file may be used. Creates and marks it when it is not there and the run writes.
///
/// The caller writes the file's name into the journal before it calls this with `writes`.
pub fn prepare_file(
    path: &Path,
    writes: bool,
    destroy_data: Option<&str>,
    run: &str,
) -> Result<FileFate, Refusal> {
    let shown = path.display().to_string();
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if writes {
                create(path, &shown, run)
            } else {
                Err(missing(&shown))
            }
        }
        Err(e) => Err(Refusal::new(&shown, format!("cannot be looked at: {e}"), "Check the path")),
        Ok(_) if !writes => Ok(if marker::is_ours(path) { FileFate::Ours } else { FileFate::Foreign }),
        Ok(_) => may_write(path, &shown, destroy_data),
    }
}

fn missing(shown: &str) -> Refusal {
    Refusal::new(
        shown,
        "there is no such file",
        "Name an existing file, or give a size (--size 1GiB) so that it is laid out",
    )
}

fn create(path: &Path, shown: &str, run: &str) -> Result<FileFate, Refusal> {
    let made = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path);
    made.and_then(|_| marker::mark(path, run)).map(|()| FileFate::Created).map_err(|e| {
        Refusal::new(
            shown,
            format!("cannot be created: {e}"),
            "Choose a directory that exists and is writable",
        )
    })
}

fn may_write(path: &Path, shown: &str, destroy_data: Option<&str>) -> Result<FileFate, Refusal> {
    let meta = fs::metadata(path)
        .map_err(|e| Refusal::new(shown, format!("cannot be looked at: {e}"), "Check the path"))?;
    if !meta.is_file() {
        return Err(Refusal::new(
            shown,
            "is neither a regular file nor a block device",
            "Name a file or a block device",
        ));
    }
    if let Some(what) = facts::file_uses(path).first() {
        return Err(Refusal::new(
            shown,
            format!("the file {what}"),
            "A file in use is never written to; choose another, or free it",
        ));
    }
    if marker::is_ours(path) {
        return Ok(FileFate::Ours);
    }
    if destroy_data.is_some_and(|word| same_file(Path::new(word), path)) {
        return Ok(FileFate::Foreign);
    }
    let content = match claim::read_signatures(path, meta.len()) {
        Ok(list) if !list.is_empty() => format!("; it holds {}", names(&list)),
        _ => String::new(),
    };
    Err(Refusal::new(
        shown,
        format!("the file exists and was not made by plimsoll{content}"),
        format!("Choose a new name, or destroy its data with --destroy-data={shown}"),
    ))
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_created_once_and_then_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new");
        assert!(prepare_file(&path, false, None, "r").unwrap_err().problem.contains("no such file"));
        assert_eq!(prepare_file(&path, true, None, "r"), Ok(FileFate::Created));
        assert_eq!(prepare_file(&path, true, None, "r"), Ok(FileFate::Ours));
        assert_eq!(prepare_file(&path, false, None, "r"), Ok(FileFate::Ours));
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        let mut image = vec![0u8; 4096];
        image[..4].copy_from_slice(b"XFSB");
        fs::write(&path, &image).unwrap();
        let e = prepare_file(&path, true, None, "r").unwrap_err().to_string();
        assert!(e.contains("not made by plimsoll") && e.contains("xfs"), "{e}");
        let other = dir.path().join("other");
        fs::write(&other, b"").unwrap();
        let named = other.display().to_string();
        assert!(prepare_file(&path, true, Some(&named), "r").is_err());
        let named = path.display().to_string();
        assert_eq!(prepare_file(&path, true, Some(&named), "r"), Ok(FileFate::Foreign));
        assert_eq!(prepare_file(&path, false, None, "r"), Ok(FileFate::Foreign));
        assert_eq!(fs::read(&path).unwrap(), image);
    }

    #[test]
    fn a_dangling_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("nowhere"), &link).unwrap();
        assert!(prepare_file(&link, true, None, "r").is_err());
        assert!(prepare_file(dir.path(), true, None, "r").is_err());
    }
}
