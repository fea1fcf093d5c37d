//! Tokens of the API: access to a server over TCP.

use crate::words::Role;
use serde::{Deserialize, Serialize};

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Token {
    /// Name; the audit log identifies callers by it.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Creation time: RFC 3339, UTC.
    pub created: String,
    /// Expiry time: RFC 3339, UTC; absent if the token does not expire.
    #[serde(default)]
    pub expires: Option<String>,
}

/// A token to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Name.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Expiry time: RFC 3339, UTC, such as `2027-01-31T00:00:00Z`. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A newly created token: the only response that contains its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MadeToken {
    /// The token.
    pub token: Token,
    /// Secret, sent as `Authorization: Bearer SECRET`. The server stores only its hash.
    pub secret: String,
}

/// Omits the secret, so that it cannot appear in a log.
impl std::fmt::Debug for MadeToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeToken").field("token", &self.token).finish_non_exhaustive()
    }
}
