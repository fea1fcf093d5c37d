//! The audit log: one record for each change, and for each attempt at one that was refused.

use crate::words::{AuditEvent, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditRecord {
    /// The version of its form.
    pub version: u32,
    /// When it was written, which is before the answer was sent: RFC 3339, UTC, to the millisecond.
    pub time: String,
    /// What happened.
    pub event: AuditEvent,
    /// Who asked: the name of a token, or `socket`; nobody known if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The role in which they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The user of the process at the other end of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The address that they asked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The path with its query, cut to 2,048 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The route that the path is one of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The body of the request; of one over 16 KiB, or that is no JSON, only `{"bytes": LENGTH}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// The HTTP status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The code of the error, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The generation of the catalogue after it.
    pub generation: u64,
    /// How many refused attempts before this one have no record, because they came too fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<u64>,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A part of the audit log, oldest record first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditPage {
    /// The records.
    pub items: Vec<AuditRecord>,
    /// Where to go on (`after`), now or later.
    pub next: String,
    /// Is there more right now? Also a page without records may have more behind it.
    pub more: bool,
}
