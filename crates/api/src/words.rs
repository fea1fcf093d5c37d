//! Enumerations with fixed names, spelt the same in JSON, on the command line and in tables.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a valid {field}: use {}", known.join(", "))]
pub struct UnknownWord {
    /// The name of the enumeration.
    pub field: &'static str,
    /// The unknown name.
    pub word: String,
    /// The known names.
    pub known: &'static [&'static str],
}

macro_rules! words {
    ($(#[$doc:meta])* $type:ident, $field:literal, $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub enum $type {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+
        }

        impl $type {
            /// The name.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }

        impl FromStr for $type {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord {
                        field: $field,
                        word: word.chars().take(64).collect(),
                        known: &[$($word),+],
                    }),
                }
            }
        }
    };
}

words! {
    /// State of a gateway.
    GatewayState, "state of a gateway",
    /// It serves, or can.
    Live = "live",
    /// It serves no more addresses than those that are still to move away.
    Draining = "draining",
    /// It is drained: all its addresses have moved away.
    Drained = "drained",
    /// It is a member of the cluster, but does not renew its lease.
    Silent = "silent",
    /// It has ended, and its addresses are being taken over.
    Ending = "ending",
    /// It has ended.
    Ended = "ended",
    /// It was added to the cluster, and was not started yet.
    New = "new"
}

words! {
    /// The gateways of a cluster that an answer is for.
    Gateways, "gateways",
    /// The gateway that is asked.
    This = "this",
    /// All of them.
    All = "all"
}

words! {
    /// Contract model: how the volumes of a pool get their limits.
    #[derive(Default)]
    Qos, "contract model",
    /// Limits follow from quotas.
    #[default]
    Auto = "auto",
    /// Throughput is set per volume.
    Manual = "manual",
    /// Throughput is set per volume, from a throughput that the pool purchases separately from its
    /// size.
    Flexible = "flexible",
    /// Throughput and IOPS are set per volume, from amounts that the pool purchases separately from
    /// its size.
    Custom = "custom",
    /// All volumes share the pool's throughput, according to demand.
    Shared = "shared",
    /// Limits follow from quotas, with burst credits.
    ProvisionedV1 = "provisioned-v1",
    /// Throughput and IOPS are provisioned per volume, with burst credits.
    ProvisionedV2 = "provisioned-v2"
}

words! {
    /// Access of clients.
    Access, "access",
    /// Read only.
    ReadOnly = "ro",
    /// Read and write.
    ReadWrite = "rw"
}

words! {
    /// Users mapped to the anonymous user.
    Squash, "squash",
    /// No users.
    None = "none",
    /// The superuser.
    Root = "root",
    /// All users.
    All = "all"
}

words! {
    /// Protocol by which clients reach a volume.
    Protocol, "protocol",
    /// NFS.
    Nfs = "nfs",
    /// SMB.
    Smb = "smb"
}

words! {
    /// Kind of a load: what limits it, or would make it faster, beside the contract.
    LoadKind, "kind of load",
    /// At least half of the operations are on names and attributes.
    MetadataHeavy = "metadata-heavy",
    /// One connection has at least 90 % of the operations.
    OneConnection = "one-connection",
    /// One file has at least 80 % of the READs and WRITEs.
    OneFile = "one-file",
    /// READs and WRITEs are small on average.
    SmallRequests = "small-requests"
}

words! {
    /// Use of a file about which opens must agree.
    FileUse, "use",
    /// Read or execute its data.
    Read = "read",
    /// Write its data.
    Write = "write",
    /// Delete or rename it.
    Delete = "delete"
}

words! {
    /// Mode of a byte-range lock.
    LockMode, "lock mode",
    /// Together with other shared locks.
    Shared = "shared",
    /// Alone.
    Exclusive = "exclusive"
}

words! {
    /// Access of users to a share.
    ShareAccess, "access",
    /// No access: the connection is refused.
    None = "none",
    /// Read only.
    ReadOnly = "ro",
    /// Read and write.
    ReadWrite = "rw"
}

words! {
    /// State of a user's password.
    PasswordState, "password state",
    /// No password was set: the user cannot log in.
    None = "none",
    /// A password was set.
    Set = "set",
    /// A password was set, but the key in the data directory does not decrypt it: it must be set
    /// again before the user can log in.
    Unreadable = "unreadable"
}

words! {
    /// Verdict about a contract.
    #[derive(Default)]
    Verdict, "verdict",
    /// The contract was demanded and delivered.
    Kept = "kept",
    /// The clients requested less than the contract.
    #[default]
    NotDemanded = "not-demanded",
    /// The contract was demanded and not delivered, or more was delivered.
    Broken = "broken"
}

words! {
    /// Cause of a broken contract.
    Cause, "cause",
    /// The gate admitted too much or too little.
    Gate = "gate",
    /// The disk or the file system was too slow.
    Store = "store",
    /// The client or the network did not accept replies fast enough.
    Network = "network",
    /// The server had too little CPU time.
    Processing = "processing"
}

words! {
    /// Permissions of a token; each role includes the permissions of the previous one.
    #[derive(PartialOrd, Ord)]
    Role, "role",
    /// Read objects and metrics.
    Viewer = "viewer",
    /// Change levels, pools, volumes, export rules and share rules.
    Operator = "operator",
    /// Everything, including users, groups, tokens, backups and the audit log.
    Admin = "admin"
}

words! {
    /// Type of an audit record.
    AuditEvent, "event",
    /// A change was made.
    Change = "change",
    /// A change by an authorized caller was refused, or failed.
    Refused = "refused",
    /// The caller was not authorized.
    Denied = "denied",
    /// Secrets were handed out: a backup of the catalogue.
    Secret = "secret",
    /// A user logged in over SMB.
    Login = "login",
    /// A login over SMB was refused.
    LoginRefused = "login-refused",
    /// A user logged off over SMB.
    Logoff = "logoff",
    /// The catalogue changed since the previous record, and no record of the change exists.
    Gap = "gap"
}

words! {
    /// Action when a change would commit more than the capacity allows.
    Policy, "policy",
    /// Refuse the change, unless the caller requests overcommit.
    Refuse = "refuse",
    /// Make the change, with a warning.
    Warn = "warn",
    /// Make the change.
    Off = "off"
}

words! {
    /// State of an operation.
    OperationState, "state",
    /// The operation is running.
    Running = "running",
    /// The operation is complete.
    Done = "done",
    /// The operation will not complete: its volume is no longer served.
    Gone = "gone"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_text_spell_a_word_alike() {
        for squash in [Squash::None, Squash::Root, Squash::All] {
            assert_eq!(serde_json::to_string(&squash).unwrap(), format!("\"{squash}\""));
            assert_eq!(squash.to_string().parse(), Ok(squash));
        }
        let error = "gold".parse::<Qos>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"gold\" is not a valid contract model: use auto, manual, flexible, custom, shared, provisioned-v1, provisioned-v2"
        );
    }
}
