//! The interface of the store that the gateways of a cluster share: the part of etcd's interface
//! (version 3) that the catalogue uses. Calls block, and end by themselves after a time that the
//! store chooses.

use std::time::Duration;

use crate::error::{CatalogError, ClusterError};

/// Most operations, and most guards, of one transaction. etcd carries out 128 by default
/// (`--max-txn-ops`); one is the store's own.
pub const OPERATIONS_MAX: usize = 127;
/// Most bytes of keys and values in one transaction. etcd refuses requests above 1.5 MiB
/// (`--max-request-bytes`); the rest is for its framing.
pub const TRANSACTION_BYTES_MAX: usize = 1_400_000;

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key. A key that is not UTF-8 has replacement characters, and is refused as a foreign
    /// one.
    pub key: String,
    /// The value.
    pub value: Vec<u8>,
    /// The revision of the store at which it was last written.
    pub revision: u64,
}

/// The pairs under a prefix at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The revision of the store at that moment.
    pub revision: u64,
    /// The pairs, by key.
    pub pairs: Vec<Pair>,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The key was last written at this revision; 0: it does not exist.
    At {
        /// The key.
        key: String,
        /// The revision.
        revision: u64,
    },
    /// The key exists without a break since this revision.
    Since {
        /// The key.
        key: String,
        /// The revision.
        revision: u64,
    },
    /// The key exists, and has this value.
    Is {
        /// The key.
        key: String,
        /// The value.
        value: Vec<u8>,
    },
}

/// A part of a transaction. No two parts of one name the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writes the key.
    Put {
        /// The key.
        key: String,
        /// The value.
        value: Vec<u8>,
    },
    /// Deletes the key, if it exists.
    Delete {
        /// The key.
        key: String,
    },
}

impl Operation {
    /// The bytes that it takes of a transaction.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Put { key, value } => key.len() + value.len(),
            Self::Delete { key } => key.len(),
        }
    }
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It was carried out, at this revision.
    At(u64),
    /// A guard did not hold, so nothing was done.
    Refused,
}

/// The write or deletion of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key, as in [`Pair`].
    pub key: String,
    /// The value; `None` if the key was deleted.
    pub value: Option<Vec<u8>>,
    /// The revision; all events of one transaction have the same.
    pub revision: u64,
}

/// The events under a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The revision up to which the events are complete.
    pub revision: u64,
    /// The events, in the order of their revisions.
    pub events: Vec<Event>,
}

/// Why the store has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store was not reached, or refused before it did anything: nothing was done.
    #[error("{0}")]
    Unavailable(String),
    /// The answer was lost: a transaction may have been carried out, or may still be.
    #[error("{0}")]
    Unknown(String),
    /// The events after that revision are no longer known.
    #[error("the history of the store was compacted")]
    Compacted,
}

impl From<StoreError> for CatalogError {
    fn from(error: StoreError) -> Self {
        ClusterError::Unreachable { what: error.to_string() }.into()
    }
}

/// The store that the gateways of a cluster share.
pub trait ClusterStore: Send + Sync {
    /// The pair of this key, not older than the call.
    ///
    /// # Errors
    /// `Unavailable`, `Unknown`.
    fn get(&self, key: &str) -> Result<Option<Pair>, StoreError>;

    /// All pairs whose key begins with `prefix`, at one revision, not older than the call.
    ///
    /// # Errors
    /// `Unavailable`, `Unknown`.
    fn range(&self, prefix: &str) -> Result<Listing, StoreError>;

    /// Carries out all of `operations`, or nothing if a guard does not hold.
    ///
    /// # Errors
    /// `Unavailable`, `Unknown`.
    fn commit(&self, guards: &[Guard], operations: &[Operation]) -> Result<Decision, StoreError>;

    /// The events under `prefix` after the revision `after`, complete at least up to the moment of
    /// the call.
    ///
    /// # Errors
    /// `Compacted`, `Unavailable`, `Unknown`.
    fn changes(&self, prefix: &str, after: u64) -> Result<Changes, StoreError>;

    /// Waits until there are events under `prefix` after the revision `after`, for at most
    /// `within`. It may end early.
    fn wait(&self, prefix: &str, after: u64, within: Duration);
}
