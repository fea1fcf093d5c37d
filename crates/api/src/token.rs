//! Tokens of the API: who may speak to a server over TCP, and what for.

use crate::words::Role;
use serde::{Deserialize, Serialize};

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Token {
    /// Its name, by which the audit log calls whoever has it.
    pub name: String,
    /// What it is good for.
    pub role: Role,
    /// When it was made: RFC 3339, UTC.
    pub created: String,
    /// From when on it is good for nothing: RFC 3339, UTC; never if not said.
    #[serde(default)]
    pub expires: Option<String>,
}

/// A token to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Its name.
    pub name: String,
    /// What it is to be good for.
    pub role: Role,
    /// When it is to end: RFC 3339, UTC, such as `2027-01-31T00:00:00Z`; never if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A token that was just made: the one answer that has its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MadeToken {
    /// What it is.
    pub token: Token,
    /// What to send as `Authorization: Bearer SECRET`. The server keeps only its hash.
    pub secret: String,
}

/// Without the secret, so that no log can have it.
impl std::fmt::Debug for MadeToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeToken").field("token", &self.token).finish_non_exhaustive()
    }
}
