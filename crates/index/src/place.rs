//! Where the index of a directory of runs is: in the user's cache, a file for each directory and version of the tables.

use std::path::{Path, PathBuf};

use crate::tables::SCHEMA_VERSION;

/// The file for the runs in `root`. `None`: there is no place for caches here, or no such directory.
pub(crate) fn index_file(root: &Path) -> Option<PathBuf> {
    file_in(&cache_home(|name| std::env::var_os(name).map(PathBuf::from))?, root)
}

/// By the directory's own name: two ways to it are one index. The version is in the name, so that an older and a newer program do not take
/// turns in remaking each other's.
pub(crate) fn file_in(cache: &Path, root: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let real = std::fs::canonicalize(root).ok()?;
    let hash = xxhash_rust::xxh3::xxh3_64(real.as_os_str().as_bytes());
    Some(cache.join("plimsoll").join(format!("runs-v{SCHEMA_VERSION}-{hash:016x}.sqlite")))
}

/// As the XDG base directories have it; relative paths are to be ignored.
fn cache_home(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    var("XDG_CACHE_HOME")
        .and_then(absolute)
        .or_else(|| var("HOME").and_then(absolute).map(|home| home.join(".cache")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_xdg_says() {
        let of = |xdg: Option<&'static str>, home: Option<&'static str>| {
            cache_home(|name| if name == "HOME" { home } else { xdg }.map(PathBuf::from))
        };
        assert_eq!(of(Some("/c"), Some("/h")), Some("/c".into()));
        assert_eq!(of(Some("relative"), Some("/h")), Some("/h/.cache".into()));
        assert_eq!(of(None, None), None);
    }

    #[test]
    fn a_directory_has_one_index_by_whatever_name_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("runs")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("runs"), dir.path().join("link")).unwrap();
        let of = |name: &str| file_in(Path::new("/c"), &dir.path().join(name));
        assert_eq!(of("runs"), of("link"));
        assert_ne!(of("runs"), of("."));
        assert_eq!(of("missing"), None);
    }
}
