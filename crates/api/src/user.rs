//! Users and groups: the identities of SMB sessions.

use crate::words::PasswordState;
use serde::{Deserialize, Serialize};

/// A user, who can log in over SMB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct User {
    /// Relative identifier, the last part of the SID; never reused after a delete.
    pub rid: u32,
    /// Name, unique among users and groups; case does not count.
    pub name: String,
    /// Security identifier (SID), by which Windows clients know the user.
    pub sid: String,
    /// User ID on files.
    pub uid: u32,
    /// Group ID of the primary group.
    pub gid: u32,
    /// Names of the groups that the user was added to. The primary group is not among them.
    pub groups: Vec<String>,
    /// Whether the user may log in.
    pub enabled: bool,
    /// State of the password.
    pub password: PasswordState,
    /// Etag of the user, for `If-Match` (in quotes there). It changes with every field above.
    #[serde(default)]
    pub etag: String,
}

/// A user to create. The user has no password and cannot log in before one is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Name: 1 to 64 characters, as account names in Windows.
    pub name: String,
    /// User ID on files, not 0; no other user may have it.
    pub uid: u32,
    /// Group ID of the primary group. Default: the user ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Names of groups that the user is added to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Whether the user may log in. Default: true.
    #[serde(default = "yes")]
    pub enabled: bool,
}

const fn yes() -> bool {
    true
}

/// A change of a user; absent fields are not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UserChange {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Group ID of the primary group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Names of all groups that the user is in beside the primary group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// Whether the user may log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// A password to set.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// Password: 1 to 256 characters. The server stores only its NT hash, encrypted.
    pub password: String,
}

/// Omits the password, so that it cannot appear in a log.
impl std::fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewPassword").finish_non_exhaustive()
    }
}

/// A group of users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Group {
    /// Relative identifier, the last part of the SID; never reused after a delete.
    pub rid: u32,
    /// Name, unique among users and groups; case does not count.
    pub name: String,
    /// Security identifier (SID), by which Windows clients know the group.
    pub sid: String,
    /// Group ID on files.
    pub gid: u32,
    /// Names of the users that were added. Users whose primary group it is are not among them.
    pub members: Vec<String>,
    /// Etag of the group, for `If-Match` (in quotes there). It changes with every field above.
    #[serde(default)]
    pub etag: String,
}

/// A group to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewGroup {
    /// Name: 1 to 64 characters, as account names in Windows.
    pub name: String,
    /// Group ID on files; no other group may have it.
    pub gid: u32,
}

/// A user to add to a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Name of the user.
    pub user: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_in_no_debug_text() {
        let new = NewPassword { password: "hunter2".into() };
        assert!(!format!("{new:?}").contains("hunter2"));
    }
}
