//! A run directory into one file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use plimsoll_store::RunDir;
use tar::{EntryType, Header};

use crate::manifest::{self, MANIFEST, PLIM_FORMAT, PackedFile, PlimManifest, RESULTS, STREAMS};
use crate::{PlimError, unpack};

/// zstd's default: what is large in a run is compressed already.
const LEVEL: i32 = 3;

/// Writes the run into `out`, and says what was written; ends with an error as soon as `stop` says so. Refused while the run is going on, and where its raw data is not what was sealed:
/// nobody is to be handed that as a record. A run that was killed is packed as far as it was recorded, without
/// a result: no seal says whose that is, and it is made again from the record.
pub fn pack(run: &RunDir, out: impl Write, stop: &dyn Fn() -> bool) -> Result<PlimManifest, PlimError> {
    let id = run.id();
    if !manifest::is_id(&id) {
        return Err(PlimError::new(
            format!("'{}' is no name that a packed run can have", manifest::shown(&id)),
            "Rename the directory: letters, digits, '-', '_' and '.', at most 100 of them",
        ));
    }
    if run.is_running() {
        return Err(PlimError::new(
            format!("run {id} is still in progress"),
            "Wait until it ends, or stop it",
        ));
    }
    let altered = run
        .altered_files()
        .map_err(|e| PlimError::new(e.to_string(), "Show the run with: plimsoll runs show"))?;
    if !altered.is_empty() {
        return Err(PlimError::new(
            format!("run {id} is not what was recorded: {} changed since it was sealed", altered.join(", ")),
            "`plimsoll runs show` says what is left of it; a packed run is one that nobody changed",
        ));
    }
    let mut files = names(run.path())?;
    if !files.iter().any(|name| name == "seal.json") {
        files.retain(|name| !RESULTS.contains(&name.as_str()));
    }
    let hashed = |name: &String| {
        let from = Stoppable { from: opened(&run.path().join(name))?, stop };
        Ok((name.clone(), hashed(from, name)?))
    };
    let manifest = PlimManifest {
        format: PLIM_FORMAT.into(),
        id,
        files: files.iter().map(hashed).collect::<Result<BTreeMap<_, _>, PlimError>>()?,
    };
    manifest.check(unpack::MOST_BYTES)?;
    written(run.path(), &manifest, out, stop).map_err(|e| PlimError::io("write the packed run", &e))?;
    Ok(manifest)
}

/// The files of the run, by the names that they have in it.
fn names(dir: &Path) -> Result<Vec<String>, PlimError> {
    let mut names = Vec::new();
    for below in ["", STREAMS[0], STREAMS[1]] {
        let entries = match std::fs::read_dir(dir.join(below)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound && !below.is_empty() => continue,
            Err(e) => return Err(PlimError::io("read the run", &e)),
        };
        for entry in entries {
            let name = entry.map_err(|e| PlimError::io("read the run", &e))?.file_name();
            let name = name.to_string_lossy();
            let path = if below.is_empty() { name.into_owned() } else { format!("{below}/{name}") };
            if manifest::is_of_a_run(&path) {
                names.push(path);
            }
        }
    }
    Ok(names)
}

/// A regular file; what its name leads to elsewhere is not handed out.
fn opened(path: &Path) -> Result<File, PlimError> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let told = |e: io::Error| PlimError::io(&format!("read {}", path.display()), &e);
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path).map_err(told)?;
    if !file.metadata().map_err(told)?.is_file() {
        return Err(told(io::Error::other("it is not a regular file")));
    }
    Ok(file)
}

fn hashed(file: impl Read, name: &str) -> Result<PackedFile, PlimError> {
    let mut hash = HashingReader::new(file);
    io::copy(&mut hash, &mut io::sink()).map_err(|e| PlimError::io(&format!("read {name}"), &e))?;
    Ok(hash.finish())
}

fn written(dir: &Path, manifest: &PlimManifest, out: impl Write, stop: &dyn Fn() -> bool) -> io::Result<()> {
    let mut tar = tar::Builder::new(zstd::Encoder::new(out, LEVEL)?);
    let text = serde_json::to_vec_pretty(manifest).map_err(io::Error::other)?;
    tar.append(&header(manifest, MANIFEST, text.len() as u64)?, &text[..])?;
    for (name, file) in &manifest.files {
        let open = opened(&dir.join(name)).map_err(|e| io::Error::other(e.problem))?;
        let mut read = HashingReader::new(Stoppable { from: open.take(file.bytes), stop });
        tar.append(&header(manifest, name, file.bytes)?, &mut read)?;
        if read.finish() != *file {
            return Err(io::Error::other(format!("{name} changed while it was packed")));
        }
    }
    tar.into_inner()?.finish()?.flush()
}

/// The same for every machine and hour: two packs of one run are the same bytes.
fn header(manifest: &PlimManifest, name: &str, bytes: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(format!("{}/{name}", manifest.id))?;
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_cksum();
    Ok(header)
}

/// Reads until somebody wants no more.
pub(crate) struct Stoppable<'a, R> {
    pub from: R,
    pub stop: &'a dyn Fn() -> bool,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if (self.stop)() {
            return Err(io::Error::other("stopped"));
        }
        self.from.read(buf)
    }
}

/// Hashes and counts what is read through it.
pub(crate) struct HashingReader<R> {
    from: R,
    hasher: xxhash_rust::xxh3::Xxh3Default,
    bytes: u64,
}

impl<R: Read> HashingReader<R> {
    pub fn new(from: R) -> Self {
        Self { from, hasher: xxhash_rust::xxh3::Xxh3Default::new(), bytes: 0 }
    }

    pub fn finish(&self) -> PackedFile {
        PackedFile { bytes: self.bytes, xxh3: format!("{:032x}", self.hasher.digest128()) }
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buf)?;
        self.hasher.update(&buf[..n]);
        self.bytes += n as u64;
        Ok(n)
    }
}
