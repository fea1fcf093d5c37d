//! Requests to the tables, and their later results.

use crate::file::File;
use crate::owner::Owner;
use crate::range::{Mode, Range};

/// A lock to take, to test or to wait for.
///
/// The owner is one with a name. An open asks by [`Tables::lock_open`](crate::Tables::lock_open),
/// and is the owner only in a [`Grant`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The file.
    pub file: File,
    /// The owner that asks.
    pub owner: Owner,
    /// The range of bytes.
    pub range: Range,
    /// The mode of the lock.
    pub mode: Mode,
}

/// The result of a lock request that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The lock is held.
    Granted,
    /// The request waits, and a [`Grant`] will tell when the lock is held.
    Waits,
}

/// The result of an open's lock request that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenLocked {
    /// The lock is held.
    Granted,
    /// The request waits. A [`Grant`] of this number will tell when the lock is held.
    Waits(GrantId),
}

/// Names a grant until it is known what its client makes of it. Never used twice, on whatever
/// volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantId(pub u64);

/// A lock that was waited for and is now held. Its client is to be told, and then the tables:
/// [`Tables::taken`](crate::Tables::taken) or [`Tables::refused`](crate::Tables::refused). A grant
/// to an open is settled from the beginning, because a lock that is not wanted is unlocked: there
/// the tables need not be told.
#[derive(Debug)]
#[must_use = "the client waits to be told"]
pub struct Grant<W> {
    /// The grant's number, by which the caller tells the tables its fate.
    pub id: GrantId,
    /// The request, to the byte, also where the lock has grown together with others.
    pub ask: Ask,
    /// The value that the caller gave when the request began to wait.
    pub waiter: W,
}
