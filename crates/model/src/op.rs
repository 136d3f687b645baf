//! One operation on storage, as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of work an op is. Object kinds first, then block and file kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    /// Writes a whole object with one request.
    Put,
    /// Reads a whole object.
    Get,
    /// Ranged GET.
    GetRange,
    /// HEAD.
    Stat,
    /// One page of a listing under a prefix.
    List,
    /// Removes one object.
    Delete,
    /// Multi-object delete (one POST, many keys).
    DeleteBatch,
    /// The server copies an object; its bytes do not travel.
    Copy,
    /// A whole multipart upload: initiate, parts, complete. One op; its parts are `UploadPart`.
    Multipart,
    /// One part of a multipart upload. A `multipart` op consists of them; they have a line of their own.
    UploadPart,
    /// Of a device or file.
    Read,
    /// To a device or file.
    Write,
    /// fsync or fdatasync.
    Fsync,
    /// Discards blocks, or punches a hole into a file.
    Trim,
    /// Does nothing: measures the loop itself.
    Null,
}

impl OpKind {
    /// Object kinds first, then block and file kinds.
    pub const ALL: [OpKind; 15] = [
        Self::Put,
        Self::Get,
        Self::GetRange,
        Self::Stat,
        Self::List,
        Self::Delete,
        Self::DeleteBatch,
        Self::Copy,
        Self::Multipart,
        Self::UploadPart,
        Self::Read,
        Self::Write,
        Self::Fsync,
        Self::Trim,
        Self::Null,
    ];

    /// The name used in plans, tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::GetRange => "get-range",
            Self::Stat => "stat",
            Self::List => "list",
            Self::Delete => "delete",
            Self::DeleteBatch => "delete-batch",
            Self::Copy => "copy",
            Self::Multipart => "multipart",
            Self::UploadPart => "upload-part",
            Self::Read => "read",
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::Trim => "trim",
            Self::Null => "null",
        }
    }

    /// Kebab case, as plans have it: `get-range`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }

    /// Ops of devices and files; the others but [`Self::Null`] are of objects.
    pub fn is_block(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Fsync | Self::Trim)
    }

    /// Whether it works on objects that have to be there before it.
    pub fn reads_objects(self) -> bool {
        matches!(self, Self::Get | Self::GetRange | Self::Stat | Self::List | Self::Copy)
    }

    /// Whether its bytes are a measure of its work (a stat moves none that count).
    pub fn moves_bytes(self) -> bool {
        matches!(
            self,
            Self::Put
                | Self::Get
                | Self::GetRange
                | Self::Copy
                | Self::Multipart
                | Self::UploadPart
                | Self::Read
                | Self::Write
        )
    }
}

impl std::fmt::Display for OpKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// One op: `key` names the object or file (an index, not a string), `offset` and `length` the bytes in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// What is done.
    pub kind: OpKind,
    /// Index of the object or file; the target makes its name.
    pub key: u64,
    /// Bytes from its beginning.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}
