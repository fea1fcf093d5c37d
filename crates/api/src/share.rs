//! The protocols of a volume and its SMB share.

use crate::words::{Protocol, ShareAccess};
use serde::{Deserialize, Serialize};

/// The protocols of a volume, and the settings of its share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sharing {
    /// Protocols by which clients reach the volume.
    #[serde(default = "nfs")]
    pub protocols: Vec<Protocol>,
    /// Whether SMB clients must encrypt every request.
    #[serde(default)]
    pub smb_encrypt: bool,
    /// Whether the share is omitted from lists of shares.
    #[serde(default)]
    pub smb_hidden: bool,
    /// Access-based enumeration: whether files that a user may not read are omitted from lists.
    #[serde(default)]
    pub smb_abe: bool,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { protocols: nfs(), smb_encrypt: false, smb_hidden: false, smb_abe: false }
    }
}

fn nfs() -> Vec<Protocol> {
    vec![Protocol::Nfs]
}

/// The protocols and the share of a volume to create or to change. An absent field is the default
/// of a new volume, and no change of an existing one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SharingChange {
    /// Protocols by which clients reach the volume, at least one. Default: NFS alone. When SMB is
    /// added and the volume has no share rules, it gets rules that admit every user from the
    /// server's own machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocols: Option<Vec<Protocol>>,
    /// Whether SMB clients must encrypt every request. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smb_encrypt: Option<bool>,
    /// Whether the share is omitted from lists of shares. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smb_hidden: Option<bool>,
    /// Access-based enumeration: whether files that a user may not read are omitted from lists.
    /// Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smb_abe: Option<bool>,
}

/// A share rule: the access of users from one network to the share of a volume. File permissions
/// apply in addition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ShareRule {
    /// Client network such as `10.0.0.0/8` or `fd00::/8`, a single address, or `any`.
    pub network: String,
    /// Name of the user that the rule applies to. Default: every user, unless `group` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Name of the group whose users the rule applies to; not together with `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Access; `none` refuses the connection.
    pub access: ShareAccess,
}

/// All networks, as the network of a rule.
pub const ANY_NETWORK: &str = "any";
