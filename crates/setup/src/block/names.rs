//! Which files a target means, and the number that stands for each in stamps.

use std::path::{Path, PathBuf};

use plimsoll_model::plan::TargetSpec;

/// Files of job `job`: the file or device (or several) of a block target, or the job's own share of a file set.
pub fn paths_of_job(name: &str, target: &TargetSpec, job: u32) -> Vec<PathBuf> {
    match target {
        TargetSpec::Block(b) => std::iter::once(&b.path).chain(&b.also).map(PathBuf::from).collect(),
        TargetSpec::Files(f) => {
            let stem = f.stem.as_deref().unwrap_or(name);
            (0..f.files).map(|i| Path::new(&f.directory).join(format!("{stem}.{job}.{i}"))).collect()
        }
        _ => Vec::new(),
    }
}

/// Number of the first file in stamps. It follows from the path alone, so that another run can verify. FNV-1a; the low
/// 20 bits are left to the index of the file.
pub fn first_object(path: &Path) -> u64 {
    use std::os::unix::ffi::OsStrExt;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut h = 0xcbf2_9ce4_8422_2325u64;
    for b in absolute.as_os_str().as_bytes() {
        h = (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    h & !0xf_ffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::plan::FilesTarget;
    use plimsoll_model::units::Size;

    #[test]
    fn targets_with_one_stem_share_their_files() {
        let t = |stem: Option<&str>| {
            TargetSpec::Files(FilesTarget {
                directory: "/d".into(),
                stem: stem.map(str::to_owned),
                files: 2,
                file_size: Size(1),
                buffered: true,
                layout: false,
                invalidate: true,
                embedded: None,
            })
        };
        assert_eq!(paths_of_job("a", &t(None), 3), [Path::new("/d/a.3.0"), Path::new("/d/a.3.1")]);
        assert_eq!(paths_of_job("a", &t(Some("x")), 0), paths_of_job("b", &t(Some("x")), 0));
    }

    #[test]
    fn each_path_has_a_number_of_its_own() {
        assert_ne!(first_object(Path::new("/a")), first_object(Path::new("/b")));
        assert_eq!(first_object(Path::new("/a/./b")), first_object(Path::new("/a/b")));
        assert_eq!(first_object(Path::new("/a")) & 0xf_ffff, 0);
    }
}
