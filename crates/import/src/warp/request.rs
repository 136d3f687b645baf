//! One row of warp's table: a request.

use std::io::Read;

use plimsoll_model::plan::bounds::MAX_OBJECT;
use plimsoll_model::{OpKind, Outcome};

use super::fault;
use crate::error::ImportError;
use crate::rows::Rows;

/// Longer than any timeout: an op that took more is a wrong clock, and would need memory for all of its slices.
const MOST_NS: u64 = 3600 * 1_000_000_000;

/// Columns of the versions so far. Others are newer.
const KNOWN: [&str; 15] = [
    "idx",
    "thread",
    "op",
    "client_id",
    "n_objects",
    "bytes",
    "endpoint",
    "file",
    "error",
    "start",
    "first_byte",
    "last_byte",
    "end",
    "duration_ns",
    "cat",
];

/// Where each column is. Those that older versions lack are optional.
#[derive(Debug, Clone, Copy)]
struct Columns {
    thread: usize,
    op: usize,
    objects: usize,
    bytes: usize,
    error: usize,
    start: usize,
    first_byte: usize,
    end: usize,
    duration: usize,
    client: Option<usize>,
    endpoint: Option<usize>,
}

/// Reads requests.
pub(super) struct Requests<R: Read> {
    rows: Rows<R>,
    columns: Columns,
}

/// A request; the texts are of the reader, and gone with the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// `None`: a kind of op that we have not.
    pub kind: Option<OpKind>,
    pub thread: u32,
    /// Nanoseconds since 1970.
    pub start_ns: i64,
    /// By its duration, which is of the monotonic clock.
    pub end_ns: i64,
    /// From its start.
    pub first_byte_ns: Option<u64>,
    pub bytes: u64,
    pub outcome: Outcome,
}

impl Request {
    pub fn duration_ns(&self) -> u64 {
        (self.end_ns - self.start_ns) as u64
    }
}

impl<R: Read> Requests<R> {
    pub fn open(reader: R) -> Result<Self, ImportError> {
        let rows = Rows::open(reader, b'\t')?;
        let columns = Columns {
            thread: rows.needed("thread")?,
            op: rows.needed("op")?,
            objects: rows.needed("n_objects")?,
            bytes: rows.needed("bytes")?,
            error: rows.needed("error")?,
            start: rows.needed("start")?,
            first_byte: rows.needed("first_byte")?,
            end: rows.needed("end")?,
            duration: rows.needed("duration_ns")?,
            client: rows.column("client_id"),
            endpoint: rows.column("endpoint"),
        };
        if let Some(new) = rows.head().iter().find(|h| !KNOWN.contains(&h.as_str())) {
            let found = format!("a warp that writes a column '{new}'");
            return Err(ImportError::version(&found, "the columns of warp 0.3 to 1.6"));
        }
        Ok(Self { rows, columns })
    }

    /// `None` at the end.
    pub fn next(&mut self) -> Result<Option<Request>, ImportError> {
        if !self.rows.next()? {
            return Ok(None);
        }
        let c = self.columns;
        let (start_ns, written_end_ns) = (self.time(c.start, "start")?, self.time(c.end, "end")?);
        let duration_ns = self.number(c.duration, "duration_ns")?;
        if duration_ns > MOST_NS || written_end_ns < start_ns {
            let what =
                if written_end_ns < start_ns { "ends before it starts" } else { "took more than an hour" };
            return Err(
                self.bad(&format!("the request {what}"), "A clock was set while warp ran. Repeat the test.")
            );
        }
        let first_byte_ns = match self.rows.field(c.first_byte) {
            "" => None,
            _ => Some(self.time(c.first_byte, "first_byte")?.saturating_sub(start_ns).max(0) as u64),
        };
        let objects = self.number(c.objects, "n_objects")?;
        let bytes = self.number(c.bytes, "bytes")?;
        if bytes > MAX_OBJECT {
            return Err(self.bad(&format!("an object of {bytes} bytes is larger than any"), REMEDY));
        }
        Ok(Some(Request {
            kind: kind(self.rows.field(c.op), objects),
            thread: self.number(c.thread, "thread")?.min(u64::from(u32::MAX)) as u32,
            start_ns,
            end_ns: start_ns.saturating_add(duration_ns as i64),
            first_byte_ns: first_byte_ns.filter(|ns| *ns <= duration_ns),
            bytes,
            outcome: fault::outcome(self.rows.field(c.error)),
        }))
    }

    /// Of the request that was read last: op, error, endpoint and client as they stand there.
    pub fn op(&self) -> &str {
        self.rows.field(self.columns.op)
    }

    pub fn error(&self) -> &str {
        self.rows.field(self.columns.error)
    }

    pub fn endpoint(&self) -> &str {
        self.columns.endpoint.map_or("", |c| self.rows.field(c))
    }

    pub fn client(&self) -> &str {
        self.columns.client.map_or("", |c| self.rows.field(c))
    }

    /// What warp notes behind the table: its command line.
    pub fn comments(&self) -> Vec<String> {
        self.rows.comments()
    }

    fn number(&self, column: usize, name: &str) -> Result<u64, ImportError> {
        let text = self.rows.field(column);
        text.parse().map_err(|_| self.bad(&format!("{name} is '{}', and no number", short(text)), REMEDY))
    }

    fn time(&self, column: usize, name: &str) -> Result<i64, ImportError> {
        let text = self.rows.field(column);
        let time = text.parse::<jiff::Timestamp>().ok().and_then(|t| i64::try_from(t.as_nanosecond()).ok());
        time.filter(|ns| *ns > 0)
            .ok_or_else(|| self.bad(&format!("{name} is '{}', and no time", short(text)), REMEDY))
    }

    /// An error of the row that was read last.
    pub fn bad(&self, problem: &str, remedy: &str) -> ImportError {
        ImportError::at(self.rows.place(), problem, remedy)
    }
}

const REMEDY: &str = "The file is damaged there, or was changed: import it as warp wrote it.";

fn short(text: &str) -> String {
    plimsoll_model::text::clean(text).chars().take(40).collect()
}

fn kind(op: &str, objects: u64) -> Option<OpKind> {
    Some(match op {
        "PUT" | "POST" => OpKind::Put,
        "GET" => OpKind::Get,
        "STAT" => OpKind::Stat,
        "LIST" => OpKind::List,
        "DELETE" if objects > 1 => OpKind::DeleteBatch,
        "DELETE" => OpKind::Delete,
        "PUTPART" => OpKind::UploadPart,
        "COPY" => OpKind::Copy,
        _ => return None,
    })
}
