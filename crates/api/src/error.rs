//! The one shape of every answer that is no success.

use serde::{Deserialize, Serialize};

/// Why a request was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct ApiError {
    /// A word for programs, which never changes.
    pub code: String,
    /// For people: the rule broken and what would be allowed.
    pub message: String,
    /// What would be allowed, where that is a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Allowed>,
}

impl ApiError {
    /// An error without a range.
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), allowed: None }
    }
}

/// The bounds within which a refused request would have been granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Allowed {
    /// The field at fault.
    pub field: String,
    /// The least allowed, if there is a least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The most allowed, if there is a most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}
