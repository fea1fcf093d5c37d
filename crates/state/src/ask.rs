//! What is asked of the table, and what comes of it later.

use crate::file::File;
use crate::owner::Owner;
use crate::range::{Mode, Range};

/// A lock to take, to test or to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// On which file.
    pub file: File,
    /// For whom.
    pub owner: Owner,
    /// Which bytes.
    pub range: Range,
    /// How.
    pub mode: Mode,
}

/// What became of a lock that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// It is held.
    Granted,
    /// It waits, and a [`Grant`] will tell when it is held.
    Waits,
}

/// Names a grant until it is known what its client makes of it. Never used twice by one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantId(pub u64);

/// A lock that was waited for and is now held. Its client is to be told, and then the table:
/// [`Table::taken`](crate::Table::taken) or [`Table::refused`](crate::Table::refused).
#[derive(Debug)]
#[must_use = "the client waits to be told"]
pub struct Grant<W> {
    /// To tell the table what became of it.
    pub id: GrantId,
    /// What was asked for, to the byte, also where the lock has grown together with others.
    pub ask: Ask,
    /// What the caller gave when the request began to wait.
    pub waiter: W,
}
