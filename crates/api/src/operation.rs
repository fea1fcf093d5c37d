//! Operations that outlast the request that began them.

use crate::words::OperationState;
use serde::{Deserialize, Serialize};

/// An operation that was begun since the server started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Operation {
    /// Never used again while the server runs.
    pub id: u64,
    /// What is done; `rescan`: a volume's usage is counted anew.
    pub kind: String,
    /// The name of the volume that it is done to, as it was when it was begun.
    pub volume: String,
    /// How it stands.
    pub state: OperationState,
    /// When it was begun: RFC 3339, UTC.
    pub begun: String,
    /// Files with data that were counted so far, or in all.
    pub files: u64,
    /// Their data, bytes.
    pub bytes: u64,
    /// The usage as it was kept before, bytes; when it is done and no later one has been completed.
    #[serde(default)]
    pub before_bytes: Option<u64>,
    /// Directories and files that could not be read, and were left out; likewise.
    #[serde(default)]
    pub left_out: Option<u64>,
}
