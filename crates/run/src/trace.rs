//! `--trace FILE`: one line per request, in the tab-separated form of warp's `.csv.zst`, which other tools read.
//!
//! Columns: idx thread op client_id n_objects bytes endpoint file error start first_byte end duration_ns cat.
//! `start` is the submission, as there; a request that was late in an open loop is told by our own results. `cat` is always 0 (warp
//! tells cached answers by it).
//!
//! What ended in the warm-up, or after a planned end, is left out: lines and figures are then of the same requests.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use plimsoll_model::trace::OpRecord;
use plimsoll_store::StoreError;

const HEADER: &str = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\tfirst_byte\tend\tduration_ns\tcat\n";

/// Names that records hold as numbers.
pub trait Names {
    fn agent(&self, number: u32) -> &str;
    fn endpoint(&self, index: u16) -> &str;
    /// The object's or file's name.
    fn key(&self, record: &OpRecord, out: &mut String);
}

/// Names of one stage's endpoints and objects.
#[derive(Debug, Default)]
pub struct StageNames {
    pub agents: Vec<String>,
    pub endpoints: Vec<String>,
    pub keys: Option<plimsoll_engine::target::s3::keys::KeyNames>,
}

impl Names for StageNames {
    fn agent(&self, number: u32) -> &str {
        self.agents.get(number as usize).expect("a record is of an agent of the roll")
    }

    fn endpoint(&self, index: u16) -> &str {
        self.endpoints.get(usize::from(index)).map_or("", String::as_str)
    }

    fn key(&self, record: &OpRecord, out: &mut String) {
        match &self.keys {
            Some(names) => out.push_str(&names.key(record.key)),
            None => out.push_str(&record.key.to_string()),
        }
    }
}

/// Writes the lines, packed with zstd where the file's name ends in `.zst`.
pub struct TraceWriter {
    out: Out,
    path: PathBuf,
    /// Wall clock at the run's start.
    start: jiff::Timestamp,
    index: u64,
    line: Vec<u8>,
    name: String,
    /// Why nothing more is written. A trace that fails must not end the measurement.
    failed: Option<String>,
}

enum Out {
    Plain(BufWriter<std::fs::File>),
    Packed(Box<zstd::Encoder<'static, BufWriter<std::fs::File>>>),
}

impl std::fmt::Debug for TraceWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceWriter").field("path", &self.path).field("lines", &self.index).finish()
    }
}

impl TraceWriter {
    /// A new file; an existing one is replaced only by the user's own hand.
    pub fn create(path: &Path, start: jiff::Timestamp) -> Result<Self, StoreError> {
        let io = |source| StoreError::Io { doing: "create the trace", path: path.to_owned(), source };
        let file = BufWriter::with_capacity(1 << 20, std::fs::File::create_new(path).map_err(io)?);
        let out = if path.extension().is_some_and(|e| e == "zst") {
            Out::Packed(Box::new(zstd::Encoder::new(file, 3).map_err(io)?))
        } else {
            Out::Plain(file)
        };
        let mut w = Self {
            out,
            path: path.to_owned(),
            start,
            index: 0,
            line: HEADER.as_bytes().to_vec(),
            name: String::new(),
            failed: None,
        };
        w.write().map_err(io)?;
        Ok(w)
    }

    /// Adds a line. After a failure nothing more is written; [`Self::finish`] tells of it.
    pub fn record(&mut self, r: &OpRecord, names: &dyn Names) {
        if self.failed.is_some() {
            return;
        }
        self.name.clear();
        names.key(r, &mut self.name);
        self.line.clear();
        let error = if r.outcome.is_ok() { "" } else { r.outcome.name() };
        let at = |ns: u64| self.start + jiff::SignedDuration::from_nanos(ns as i64);
        let first_byte =
            if r.first_byte_ns == 0 { String::new() } else { format!("{:.9}", at(r.first_byte_ns)) };
        // Writing to memory does not fail.
        let _ = writeln!(
            self.line,
            "{}\t{}\t{}\t{}\t1\t{}\t{}\t{}\t{}\t{:.9}\t{}\t{:.9}\t{}\t0",
            self.index,
            u64::from(r.worker.worker) << 16 | u64::from(r.slot & 0xffff),
            warp_name(r),
            names.agent(r.worker.agent),
            r.bytes,
            names.endpoint(r.endpoint),
            clean(&self.name),
            error,
            at(r.submitted_ns),
            first_byte,
            at(r.done_ns),
            r.done_ns.saturating_sub(r.submitted_ns),
        );
        self.index += 1;
        self.failed = self.write().err().map(|e| e.to_string());
    }

    fn write(&mut self) -> std::io::Result<()> {
        match &mut self.out {
            Out::Plain(w) => w.write_all(&self.line),
            Out::Packed(w) => w.write_all(&self.line),
        }
    }

    /// Ends the file; lines are complete only after this. Gives what went wrong, if anything did.
    pub fn finish(self) -> Option<String> {
        let Self { out, path, failed, .. } = self;
        let ended = match out {
            // What a failed write left in the buffer would be tried again, and fail again.
            Out::Plain(mut w) => w.flush(),
            Out::Packed(w) => w.finish().and_then(|mut w| w.flush()),
        };
        let problem = failed.or_else(|| ended.err().map(|e| e.to_string()))?;
        Some(format!("writing {} failed ({problem})", path.display()))
    }
}

/// A resumed run writes a trace of its own: what the killed one left of it is torn, and is not overwritten.
pub fn path_for(file: &str, resumed: bool, next_stage: u32) -> PathBuf {
    let path = PathBuf::from(file);
    match path.file_name() {
        Some(name) if resumed => {
            path.with_file_name(format!("from-stage-{next_stage}-{}", name.to_string_lossy()))
        }
        _ => path,
    }
}

/// warp's names of ops where it has one.
fn warp_name(r: &OpRecord) -> String {
    use plimsoll_model::OpKind::{GetRange, Multipart, UploadPart};
    match r.kind {
        GetRange => "GET".into(),
        UploadPart => "PUTPART".into(),
        Multipart => "MULTIPART".into(),
        kind => kind.name().to_ascii_uppercase().replace('-', "_"),
    }
}

/// Keys may hold anything; a tab or line end in one must not break the table.
fn clean(name: &str) -> std::borrow::Cow<'_, str> {
    if name.contains(['\t', '\n', '\r', '"']) {
        format!("\"{}\"", name.replace('"', "\"\"").replace(['\n', '\r'], " ")).into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{OpKind, Outcome};

    struct Plain;
    impl Names for Plain {
        fn agent(&self, _: u32) -> &str {
            "local"
        }

        fn endpoint(&self, _: u16) -> &str {
            "http://h:9000"
        }
        fn key(&self, r: &OpRecord, out: &mut String) {
            out.push_str(&format!("p/{}\tx", r.key));
        }
    }

    fn record() -> OpRecord {
        OpRecord {
            series: 0,
            worker: plimsoll_model::WorkerId::here(1),
            slot: 2,
            endpoint: 0,
            kind: OpKind::Get,
            outcome: Outcome::Http503SlowDown,
            key: 7,
            bytes: 4096,
            intended_ns: 0,
            submitted_ns: 1_000_000_000,
            first_byte_ns: 0,
            done_ns: 1_000_000_500,
        }
    }

    #[test]
    fn a_full_disk_ends_the_trace_and_is_told() {
        // /dev/full takes nothing, as a full disk does; `create` makes new files only.
        for packed in [false, true] {
            let file = BufWriter::with_capacity(
                64,
                std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap(),
            );
            let out = if packed {
                Out::Packed(Box::new(zstd::Encoder::new(file, 3).unwrap()))
            } else {
                Out::Plain(file)
            };
            let path = PathBuf::from("/dev/full");
            let start = jiff::Timestamp::UNIX_EPOCH;
            let mut w = TraceWriter {
                out,
                path,
                start,
                index: 0,
                line: Vec::new(),
                name: String::new(),
                failed: None,
            };
            (0..100).for_each(|_| w.record(&record(), &Plain));
            let told = w.finish().unwrap();
            assert!(told.contains("/dev/full") && told.contains("No space left"), "{told}");
        }
    }

    #[test]
    fn lines_are_as_documented() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["t.csv", "t.csv.zst"] {
            let path = dir.path().join(name);
            let mut w = TraceWriter::create(&path, jiff::Timestamp::UNIX_EPOCH).unwrap();
            w.record(&record(), &Plain);
            assert_eq!(w.finish(), None);
            let bytes = std::fs::read(&path).unwrap();
            let text = if name.ends_with("zst") { zstd::decode_all(&bytes[..]).unwrap() } else { bytes };
            assert_eq!(
                String::from_utf8(text).unwrap(),
                format!(
                    "{HEADER}0\t65538\tGET\tlocal\t1\t4096\thttp://h:9000\t\"p/7\tx\"\thttp_503\t\
                     1970-01-01T00:00:01.000000000Z\t\t1970-01-01T00:00:01.000000500Z\t500\t0\n"
                )
            );
            assert!(TraceWriter::create(&path, jiff::Timestamp::UNIX_EPOCH).is_err(), "never overwritten");
        }
    }
}
