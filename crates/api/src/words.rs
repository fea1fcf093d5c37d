//! Closed sets of words: each is spelt the same in JSON, on the command line and in tables.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A word that is none of those a field knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is no {field}: use {}", known.join(", "))]
pub struct UnknownWord {
    /// What the word stands for.
    pub field: &'static str,
    /// The word.
    pub word: String,
    /// The words there are.
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
            /// The word.
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
    /// How the volumes of a pool get their limits.
    #[derive(Default)]
    Qos, "QoS model",
    /// From their quotas.
    #[default]
    Auto = "auto",
    /// Each is given its own.
    Manual = "manual",
    /// The same, out of a throughput that the pool buys apart from its size.
    Flexible = "flexible",
    /// The same, out of a throughput and IOPS that the pool buys apart from its size.
    Custom = "custom",
    /// All share the pool's, by what each wants.
    Shared = "shared",
    /// From their quotas, with credits for bursts.
    ProvisionedV1 = "provisioned-v1",
    /// Each provisions its own, with credits for bursts.
    ProvisionedV2 = "provisioned-v2"
}

words! {
    /// May clients write?
    Access, "access",
    /// No.
    ReadOnly = "ro",
    /// Yes.
    ReadWrite = "rw"
}

words! {
    /// Whose identity is replaced by the anonymous one.
    Squash, "squash",
    /// Nobody's.
    None = "none",
    /// The superuser's.
    Root = "root",
    /// Everybody's.
    All = "all"
}

words! {
    /// What became of a contract.
    #[derive(Default)]
    Verdict, "verdict",
    /// It was demanded and delivered.
    Kept = "kept",
    /// The clients asked for less.
    #[default]
    NotDemanded = "not-demanded",
    /// It was demanded and not delivered, or more was.
    Broken = "broken"
}

words! {
    /// What a contract was broken by.
    Cause, "cause",
    /// The gate let too much or too little through.
    Gate = "gate",
    /// The disk, the file system, or what makes them slow.
    Store = "store",
    /// Replies that the client, or the way to it, did not take.
    Network = "network",
    /// Too little processor time for the server.
    Processing = "processing"
}

words! {
    /// What whoever has a token may do; each may do all that the one before it may.
    #[derive(PartialOrd, Ord)]
    Role, "role",
    /// Look.
    Viewer = "viewer",
    /// Change levels, pools, volumes and export rules.
    Operator = "operator",
    /// Everything, tokens, backups and the audit log too.
    Admin = "admin"
}

words! {
    /// What a record of the audit log tells.
    AuditEvent, "event",
    /// A change was made.
    Change = "change",
    /// A change that somebody had the right to ask for was refused, or failed.
    Refused = "refused",
    /// Somebody without the right asked for something.
    Denied = "denied",
    /// Secrets were given out: a backup of the catalogue.
    Secret = "secret",
    /// The catalogue has changed since the record before, and there is no record of it.
    Gap = "gap"
}

words! {
    /// What is done about a change that commits hardware to more than may be.
    Policy, "policy",
    /// It is refused, unless whoever asks says that it is meant.
    Refuse = "refuse",
    /// It is made, and said.
    Warn = "warn",
    /// It is made.
    Off = "off"
}

words! {
    /// How an operation stands.
    OperationState, "state",
    /// It is under way.
    Running = "running",
    /// It came to its end.
    Done = "done",
    /// It will not: its volume is no longer served.
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
            "\"gold\" is no QoS model: use auto, manual, flexible, custom, shared, provisioned-v1, provisioned-v2"
        );
    }
}
