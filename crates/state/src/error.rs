//! The reasons for which a request was not granted.

use crate::owner::Owner;
use crate::range::{Mode, Range};

/// The holder of a lock that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The holder.
    pub owner: Owner,
    /// The bytes: one of the owner's locks, whole.
    pub range: Range,
    /// The mode of the lock.
    pub mode: Mode,
}

/// Why a lock, a share or an open was not given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Another owner holds a conflicting lock.
    #[error("held by {:?}", .0.owner)]
    Held(Holder),
    /// Another owner's share denies it, or has what this one would deny.
    #[error("denied by a share reservation")]
    Shared,
    /// It conflicts with an open, or an open conflicts with a share: one has an access that the
    /// other denies.
    #[error("a sharing violation")]
    Sharing,
    /// The file is to be deleted when its last open is closed, and nobody may open it meanwhile.
    #[error("the file is about to be deleted")]
    DeletePending,
    /// The open is closed.
    #[error("the open is closed")]
    Closed,
    /// The grace period is on: those from before the restart come first. Ask again later.
    #[error("in the grace period")]
    Grace,
    /// A reclaim outside the grace period, or from a client that held nothing before the restart.
    #[error("nothing to reclaim")]
    NoReclaim,
    /// The request would wait for itself.
    #[error("waiting would cause a deadlock")]
    Deadlock,
    /// The volume is not served, or not any longer.
    #[error("the volume is not served")]
    NoVolume,
    /// A bound is reached.
    #[error("{0}")]
    Full(Limit),
}

/// A bound that is reached ([`Limits`](crate::Limits)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("too many {counted:?} of one {scope:?}")]
pub struct Limit {
    /// The resource of which there would be too much.
    pub counted: Counted,
    /// The scope of the bound.
    pub scope: Scope,
}

/// The bounded resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Clients that hold or wait for anything.
    Clients,
    /// Held ranges.
    Locks,
    /// Requests that wait.
    Waiters,
    /// Share reservations.
    Shares,
    /// Opens.
    Opens,
    /// Bytes in the names of owners.
    OwnerBytes,
}

/// The scope of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One file.
    File,
    /// One client.
    Client,
    /// All clients of one origin.
    Origin,
    /// One volume.
    Volume,
    /// The whole server.
    Server,
}

/// The open has no lock of exactly this range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the range is not locked")]
pub struct NotLocked;

/// Why bytes may not be read or written now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Conflict {
    /// It conflicts with a lock of some of the bytes.
    #[error("the range is locked")]
    Locked,
    /// An open does not let others do it.
    #[error("denied by an open")]
    Denied,
}
