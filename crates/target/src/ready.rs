//! The line that a server process prints when it is ready, for whoever started it.

use serde::Serialize;
use std::path::PathBuf;

/// One JSON object on one line of stdout: `{"kind":"s3","address":"127.0.0.1:40001",...}`.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Ready {
    /// `s3`, `canned` or `block`.
    pub kind: &'static str,
    /// Host and port; empty for a block target.
    pub address: String,
    /// URL for clients; empty for a block target.
    pub endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// CA certificate that clients have to trust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Block target: the file to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Block target: its limits, in the words of who keeps them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    pub pid: u32,
}

impl Ready {
    /// The line, without its end.
    pub fn line(&self) -> String {
        // Strings and numbers only: this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}
