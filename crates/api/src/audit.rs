//! The audit log: a record for each change, refused attempt at a change, and login over SMB.

use crate::words::{AuditEvent, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One record of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditRecord {
    /// Version of the record format.
    pub version: u32,
    /// Time at which the record was written, for requests before the response was sent: RFC 3339,
    /// UTC, with milliseconds.
    pub time: String,
    /// Type of the event.
    pub event: AuditEvent,
    /// Caller: the name of a token, or `socket`; for logins, the user or the named
    /// account; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Role of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// User ID of the process at the other end of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Address of the caller or client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// HTTP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Path with its query, truncated to 2,048 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Route that the path belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Body of the request; only `{"bytes": LENGTH}` if it is larger than 16 KiB or not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// HTTP status of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Error code, if the response was an error; for refused logins, the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Generation of the catalogue after the request.
    pub generation: u64,
    /// Number of refused attempts before this one without a record, because they came too fast; for
    /// logins, of those of the same kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<u64>,
    /// Additional information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A page of the audit log, oldest record first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditPage {
    /// Records.
    pub items: Vec<AuditRecord>,
    /// Position at which to continue (`after`), now or later.
    pub next: String,
    /// Whether more records exist at present. A page without records can still have more after it.
    pub more: bool,
}
