//! Refusals about users, groups and shares.

use super::{Fault, Thing};
use crate::limits::{GROUPS_OF_USER_MAX, NAME_CHARS_MAX, SHARE_RULES_MAX};
use std::path::PathBuf;
use std::sync::Arc;

/// Why a change of users, groups or shares was refused.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// An invalid name of a user or group.
    #[error(
        "{name:?} is not a valid name for a user or group: use 1 to {NAME_CHARS_MAX} characters, without control characters, without any of \"/\\[]:;|=,+*?<>@, without blanks at either end, and not ending in a dot"
    )]
    BadAccountName {
        /// The name, cut to a length fit to print.
        name: String,
    },
    /// A user or a group already has the name, regardless of case.
    #[error(
        "{thing} {taken:?} already exists: users and groups share their names, and case does not count"
    )]
    AccountExists {
        /// The kind of the existing account.
        thing: Thing,
        /// The existing account's name.
        taken: String,
    },
    /// An id that nobody may have.
    #[error(
        "{what} {id} cannot be assigned: {}",
        if *.id == 0 { "root has no access over SMB" } else { "it means \"no id\" to the kernel" }
    )]
    BadId {
        /// The kind of the id: `uid` or `gid`.
        what: &'static str,
        /// The id.
        id: u32,
    },
    /// Another user or group has the id.
    #[error("{what} {id} belongs to {thing} {name:?}: each {thing} needs a {what} of its own")]
    IdTaken {
        /// The kind of the id: `uid` or `gid`.
        what: &'static str,
        /// The id.
        id: u32,
        /// The kind of its owner.
        thing: Thing,
        /// The name of its owner.
        name: String,
    },
    /// The user is in the group already.
    #[error("user {user:?} is already in group {group:?}")]
    MemberExists {
        /// The user.
        user: String,
        /// The group.
        group: String,
    },
    /// The user is not in the group.
    #[error("user {user:?} is not in group {group:?}")]
    NoSuchMember {
        /// The user.
        user: String,
        /// The group.
        group: String,
    },
    /// The user would be in too many groups.
    #[error("a user can be in at most {GROUPS_OF_USER_MAX} groups")]
    TooManyGroups,
    /// A share rule names the user or group that was to be deleted.
    #[error(
        "{thing} {name:?} is named in the share rules of volume {volume:?}: remove these rules first (`weir share list {volume}`, then `weir share remove {volume} --network NETWORK {} {name:?}` for each)",
        if *.thing == Thing::Group { "--group" } else { "--user" }
    )]
    AccountInUse {
        /// The kind of the account.
        thing: Thing,
        /// The account.
        name: String,
        /// A volume with such a rule.
        volume: String,
    },
    /// A volume without any protocol.
    #[error("a volume needs at least one protocol: use nfs, smb or both")]
    NoProtocol,
    /// Another share has the name, regardless of case.
    #[error(
        "the share of volume {volume:?} would have the name of that of volume {other:?}: case does not count in names of shares"
    )]
    ShareNameTaken {
        /// The volume.
        volume: String,
        /// The volume that has the share.
        other: String,
    },
    /// The name of the volume cannot be that of a share.
    #[error(
        "volume {volume:?} cannot be served over SMB: its name is reserved by the protocol; create a volume with another name"
    )]
    ShareNameReserved {
        /// The volume.
        volume: String,
    },
    /// Too many share rules.
    #[error("a volume can have at most {SHARE_RULES_MAX} share rules")]
    TooManyShareRules,
    /// Two share rules for the same network and the same users.
    #[error(
        "volume {volume:?} already has a share rule for {rule}: remove it first, or replace all rules"
    )]
    ShareRuleExists {
        /// The volume.
        volume: String,
        /// The network and the users of the rule.
        rule: String,
    },
    /// No share rule for that network and these users.
    #[error("volume {volume:?} has no share rule for {rule}")]
    NoSuchShareRule {
        /// The volume.
        volume: String,
        /// The network and the users of the rule.
        rule: String,
    },
    /// The key that seals passwords is damaged.
    #[error(
        "{} is not a key of this version of Weir: restore it from a copy and restart the server, or remove it, restart the server, and set the passwords of all users again",
        path.display()
    )]
    BadSmbKey {
        /// The file.
        path: PathBuf,
    },
    /// The key that seals passwords cannot be read.
    #[error(
        "{} cannot be read: {source}; check the file and its disk, and restart the server",
        path.display()
    )]
    SmbKeyUnreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Arc<std::io::Error>,
    },
}

impl IdentityError {
    /// The code for programs, which never changes.
    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::BadAccountName { .. } => "bad_name",
            Self::AccountExists { .. } => "name_taken",
            Self::BadId { .. } => "bad_id",
            Self::IdTaken { .. } => "id_taken",
            Self::MemberExists { .. } => "member_exists",
            Self::NoSuchMember { .. } => "no_such_member",
            Self::TooManyGroups | Self::TooManyShareRules => "too_many",
            Self::AccountInUse { .. } => "account_in_use",
            Self::NoProtocol => "no_protocol",
            Self::ShareNameTaken { .. } => "share_name_taken",
            Self::ShareNameReserved { .. } => "share_name_reserved",
            Self::ShareRuleExists { .. } => "share_rule_exists",
            Self::NoSuchShareRule { .. } => "no_such_share_rule",
            Self::BadSmbKey { .. } => "bad_smb_key",
            Self::SmbKeyUnreadable { .. } => "smb_key_unreadable",
        }
    }

    /// The cause of the error.
    pub(super) const fn fault(&self) -> Fault {
        match self {
            Self::BadAccountName { .. }
            | Self::BadId { .. }
            | Self::TooManyGroups
            | Self::TooManyShareRules
            | Self::NoProtocol => Fault::Invalid,
            Self::NoSuchMember { .. } | Self::NoSuchShareRule { .. } => Fault::NotFound,
            Self::AccountExists { .. }
            | Self::IdTaken { .. }
            | Self::MemberExists { .. }
            | Self::AccountInUse { .. }
            | Self::ShareNameTaken { .. }
            | Self::ShareNameReserved { .. }
            | Self::ShareRuleExists { .. } => Fault::Conflict,
            Self::BadSmbKey { .. } | Self::SmbKeyUnreadable { .. } => Fault::Internal,
        }
    }
}
