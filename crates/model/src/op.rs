//! One operation on storage, as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of work an op is. Object kinds first, then block and file kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    Put,
    Get,
    /// Ranged GET.
    GetRange,
    /// HEAD.
    Stat,
    List,
    Delete,
    /// Multi-object delete (one POST, many keys).
    DeleteBatch,
    Copy,
    /// A whole multipart upload: initiate, parts, complete. One op; its parts are `UploadPart`.
    Multipart,
    UploadPart,
    Read,
    Write,
    Fsync,
    Trim,
    /// Does nothing: measures the loop itself.
    Null,
}

impl OpKind {
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

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
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
    pub kind: OpKind,
    pub key: u64,
    pub offset: u64,
    pub length: u64,
}
