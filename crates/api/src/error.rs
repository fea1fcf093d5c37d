//! The common format of all error responses.

use serde::{Deserialize, Serialize};

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct ApiError {
    /// Error code for programs; codes never change.
    pub code: String,
    /// Message for people: the violated rule and the allowed values.
    pub message: String,
    /// Allowed range, if there is one.
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

/// The range of values with which a refused request would succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Allowed {
    /// Name of the field.
    pub field: String,
    /// Minimum, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// Maximum, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}
