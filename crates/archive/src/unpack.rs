//! A `.plim` from anybody into a run directory, or nothing at all.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

use plimsoll_store::RunDir;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tar::{Archive, EntryType};

use crate::PlimError;
use crate::manifest::{self, MANIFEST, MOST_MANIFEST_BYTES, PLIM_FORMAT, PlimManifest, RESULTS, STREAMS};
use crate::pack::{HashingReader, Stoppable};
use crate::staging::Staging;

/// A run larger than this is not unpacked: a day of slices of a thousand agents has less.
pub const MOST_BYTES: u64 = 64 << 30;
/// What is large in a run is compressed already, and its documents are ten times smaller packed: whatever grows more was made to.
const MOST_GROWTH: u64 = 100;
/// Small files may grow more: a document of many equal lines.
const SMALL_BYTES: u64 = 64 << 20;
/// 2^23 bytes: more than our own files need of a decoder's memory, and no gigabyte of a hostile one.
const WINDOW_LOG: u32 = 23;
/// Heads and padding of an entry of tar, at the most.
const ENTRY_BYTES: u64 = 2048;

/// A run that was unpacked.
#[derive(Debug)]
pub struct Unpacked {
    /// Under the directory that was named.
    pub run: RunDir,
    /// What was in the file.
    pub manifest: PlimManifest,
}

/// Whether a file begins as a `.plim` does, by its name and its first bytes.
pub fn is_plim(path: &Path) -> bool {
    let mut head = [0; 4];
    path.extension().is_some_and(|e| e == "plim")
        && opened(path).and_then(|mut f| f.read_exact(&mut head)).is_ok()
        && head == 0xfd2f_b528u32.to_le_bytes()
}

/// A regular file; a pipe, which somebody may never write to, is not waited for.
fn opened(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Unpacks `file` into a new directory under `root`, which is named by the run's id. Nothing that is there is overwritten, and where anything
/// is wrong with the file, or `stop` says so meanwhile, nothing is left.
pub fn unpack(file: &Path, root: &Path, stop: &dyn Fn() -> bool) -> Result<Unpacked, PlimError> {
    let told = |e: io::Error| {
        PlimError::new(format!("it cannot be read: {e}"), "Check the path and its permissions")
    };
    let open = opened(file).map_err(told)?;
    let meta = open.metadata().map_err(told)?;
    let most = meta.len().saturating_mul(MOST_GROWTH).clamp(SMALL_BYTES, MOST_BYTES);
    std::fs::create_dir_all(root).map_err(|e| PlimError::io(&format!("make {}", root.display()), &e))?;
    let staging = Staging::begin(root)?;
    let manifest = read_plim(Stoppable { from: open, stop }, most, |manifest| {
        let place = root.join(&manifest.id);
        if place.symlink_metadata().is_ok() {
            return Err(already(&place));
        }
        let dir = staging.path.join(&manifest.id);
        for made in [dir.clone(), dir.join(STREAMS[0]), dir.join(STREAMS[1])] {
            std::fs::create_dir(&made).map_err(|e| PlimError::io("make the run's directory", &e))?;
        }
        Ok(move |name: &str, content: &mut dyn Read| {
            let mut out = File::create_new(dir.join(name))?;
            io::copy(content, &mut out)?;
            out.sync_all()
        })
    })?;
    let run = checked(&staging.path.join(&manifest.id))?;
    let place = root.join(&manifest.id);
    renameat_with(CWD, run.path(), CWD, &place, RenameFlags::NOREPLACE).map_err(|e| match e {
        rustix::io::Errno::EXIST => already(&place),
        e => PlimError::io(&format!("make {}", place.display()), &e.into()),
    })?;
    let run = RunDir::open(&place).map_err(|e| PlimError::bad(e.to_string()))?;
    Ok(Unpacked { run, manifest })
}

fn already(place: &Path) -> PlimError {
    PlimError::new(
        format!("{} is there already", place.display()),
        "Nothing was overwritten. Unpack it elsewhere with --runs-dir DIR, or use the run that is there",
    )
}

/// The run's own seal is older than the file it came in.
fn checked(dir: &Path) -> Result<RunDir, PlimError> {
    let wrong = |e: plimsoll_store::StoreError| {
        PlimError::bad(e.to_string().replace(&format!("{}", dir.display()), "in the file"))
    };
    let run = RunDir::open(dir).map_err(wrong)?;
    run.plan().map_err(wrong)?;
    let altered: Vec<String> =
        [run.altered_files().map_err(wrong)?, run.altered_results().map_err(wrong)?].concat();
    if !altered.is_empty() {
        return Err(PlimError::bad(format!(
            "the run in it is not what was recorded: {} changed since it was sealed",
            altered.join(", ")
        )));
    }
    if run.sealed().map_err(wrong)?.is_none() {
        without_results(dir)?;
    }
    Ok(run)
}

/// No seal vouches for them, and they would be taken for the run's: it is judged by its record.
fn without_results(dir: &Path) -> Result<(), PlimError> {
    for name in RESULTS {
        match std::fs::remove_file(dir.join(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(PlimError::io(&format!("leave out {name}"), &e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads a `.plim` of at most `most_bytes` unpacked to its end. Once its manifest is known and checked `begin` gives what takes the files, by
/// their paths in the run directory; what it was given is to be used only when this returns well.
pub fn read_plim<T>(
    from: impl Read,
    most_bytes: u64,
    begin: impl FnOnce(&PlimManifest) -> Result<T, PlimError>,
) -> Result<PlimManifest, PlimError>
where
    T: FnMut(&str, &mut dyn Read) -> io::Result<()>,
{
    // One frame: what another holds would be taken for more of the tar.
    let mut zstd = zstd::Decoder::new(from).map_err(|e| no_plim(&e))?.single_frame();
    zstd.window_log_max(WINDOW_LOG).map_err(|e| no_plim(&e))?;
    let left = Rc::new(Cell::new(MOST_MANIFEST_BYTES + ENTRY_BYTES));
    let mut tar = Archive::new(Bounded { from: zstd, left: left.clone() });
    // Raw: extensions of tar (long names, sparse files, links) are entries of a kind that is refused.
    let mut entries = tar.entries().map_err(|e| no_plim(&e))?.raw(true);
    let mut first =
        entries.next().ok_or_else(|| no_plim(&io::Error::other("it is empty")))?.map_err(|e| no_plim(&e))?;
    let manifest: PlimManifest = {
        let name = plain_name(&first)?;
        let id = name.strip_suffix(MANIFEST).and_then(|id| id.strip_suffix('/'));
        let id = id.ok_or_else(|| no_plim(&io::Error::other("its first entry is no plim.json")))?.to_owned();
        let mut text = Vec::new();
        first.by_ref().take(MOST_MANIFEST_BYTES).read_to_end(&mut text).map_err(|e| no_plim(&e))?;
        let manifest: PlimManifest = parsed(&text)?;
        if manifest.id != id {
            return Err(PlimError::bad("its plim.json is of another run"));
        }
        manifest
    };
    manifest.check(most_bytes)?;
    let bytes: u64 = manifest.files.values().map(|f| f.bytes).sum();
    left.set(bytes + ENTRY_BYTES * (manifest.files.len() as u64 + 16));
    let mut take = begin(&manifest)?;
    let mut missing: BTreeMap<&str, &manifest::PackedFile> =
        manifest.files.iter().map(|(name, f)| (name.as_str(), f)).collect();
    for entry in entries {
        let mut entry = entry.map_err(|e| broken(&e))?;
        let name = plain_name(&entry)?;
        let inside = name.strip_prefix(&manifest.id).and_then(|n| n.strip_prefix('/')).unwrap_or_default();
        let Some(known) = missing.remove(inside) else {
            return Err(PlimError::bad(format!(
                "'{}' is not in its plim.json, or in it twice",
                manifest::shown(&name)
            )));
        };
        if entry.size() != known.bytes {
            return Err(PlimError::bad(format!(
                "{inside} is {} bytes long and not {}",
                entry.size(),
                known.bytes
            )));
        }
        let mut content = HashingReader::new(&mut entry);
        take(inside, &mut content).map_err(|e| PlimError::io(&format!("unpack {inside}"), &e))?;
        if content.finish() != *known {
            return Err(PlimError::bad(format!("{inside} is not what was packed: its hash is another")));
        }
    }
    if let Some(name) = missing.keys().next() {
        return Err(PlimError::bad(format!("it ends before {name}")));
    }
    nothing_behind(tar.into_inner())?;
    Ok(manifest)
}

/// A tar ends with zeros, and the file with the tar: a second run, or anything else that was put behind, is none of the run that is named. The
/// frame is read to its end, so that one that was cut off there is told, too.
fn nothing_behind<R: Read>(mut tar: Bounded<zstd::Decoder<'_, BufReader<R>>>) -> Result<(), PlimError> {
    let more = || PlimError::bad("something stands behind the run in it");
    let mut rest = Vec::new();
    // Bounded by what the manifest announced, and a few entries.
    tar.read_to_end(&mut rest).map_err(|e| broken(&e))?;
    if rest.iter().any(|b| *b != 0) {
        return Err(more());
    }
    match tar.from.finish().read(&mut [0]).map_err(|e| broken(&e))? {
        0 => Ok(()),
        _ => Err(more()),
    }
}

fn parsed(text: &[u8]) -> Result<PlimManifest, PlimError> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: String,
    }
    let bad = |e: serde_json::Error| PlimError::bad(format!("its plim.json cannot be read: {e}"));
    let head: Head = serde_json::from_slice(text).map_err(bad)?;
    if head.format != PLIM_FORMAT {
        return Err(PlimError::new(
            format!(
                "it has format '{}', and this program reads '{PLIM_FORMAT}'",
                manifest::shown(&head.format)
            ),
            "Use the plimsoll that packed it, or a newer one",
        ));
    }
    serde_json::from_slice(text).map_err(bad)
}

/// The path of a regular file; every other kind of entry (directories, links, devices, extensions) is refused.
fn plain_name<R: Read>(entry: &tar::Entry<'_, R>) -> Result<String, PlimError> {
    let path = entry.path_bytes();
    let name = String::from_utf8_lossy(&path).into_owned();
    match entry.header().entry_type() {
        EntryType::Regular => Ok(name),
        kind => Err(PlimError::bad(format!(
            "'{}' is no regular file, but {kind:?}, and a packed run has nothing else",
            manifest::shown(&name)
        ))),
    }
}

fn no_plim(e: &io::Error) -> PlimError {
    PlimError::bad(format!("it is no packed run: {e}"))
}

fn broken(e: &io::Error) -> PlimError {
    PlimError::bad(format!("it cannot be read to its end: {e}"))
}

/// No more is decompressed than was announced: a file of kilobytes can hold terabytes of nothing.
struct Bounded<R> {
    from: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = self.left.get().min(buf.len() as u64) as usize;
        if most == 0 && !buf.is_empty() {
            return Err(io::Error::other("it holds more than it says"));
        }
        let n = self.from.read(&mut buf[..most])?;
        self.left.set(self.left.get() - n as u64);
        Ok(n)
    }
}
