//! Long-running operations, which continue after the response to the request that started them.

use crate::words::OperationState;
use serde::{Deserialize, Serialize};

/// An operation started since the server started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Operation {
    /// ID, never reused while the server runs.
    pub id: u64,
    /// Type of the operation; `rescan`: recount of a volume's usage.
    pub kind: String,
    /// Name of the volume at the start of the operation.
    pub volume: String,
    /// State.
    pub state: OperationState,
    /// Start time: RFC 3339, UTC.
    pub begun: String,
    /// Number of files with data counted so far, or in total.
    pub files: u64,
    /// Size of their data, bytes.
    pub bytes: u64,
    /// Usage recorded before the recount, bytes; present when the operation is done and no later
    /// one has been completed.
    #[serde(default)]
    pub before_bytes: Option<u64>,
    /// Number of directories and files that could not be read and were skipped; present under the
    /// same condition.
    #[serde(default)]
    pub left_out: Option<u64>,
}
