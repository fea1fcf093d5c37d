//! The locks of a volume that moves to another server, as plain data.
//!
//! Owners with names move with their locks, shares and waits, and with what is left of the grace
//! period. Opens do not: they end with the connection of their client. Not here: the operations
//! that take the data out of one server's tables and into another's.

use crate::grace::GraceLeft;
use crate::owner::Owner;
use crate::range::{Mode, Range};
use crate::share::Share;
use alloc::vec::Vec;
use weir_core::ObjectKey;

/// A range that an owner holds on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovingLock {
    /// The file.
    pub object: ObjectKey,
    /// The owner.
    pub owner: Owner,
    /// The bytes.
    pub range: Range,
    /// The mode of the lock.
    pub mode: Mode,
}

/// A reservation of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovingShare {
    /// The file.
    pub object: ObjectKey,
    /// The owner.
    pub owner: Owner,
    /// The reservation.
    pub share: Share,
}

/// A request that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovingWait<W> {
    /// The lock, as if it were held.
    pub lock: MovingLock,
    /// The value by which its client is told.
    pub waiter: W,
}

/// Everything that owners with names have on the files of one volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeLocks<W> {
    /// The locks.
    pub locks: Vec<MovingLock>,
    /// The share reservations.
    pub shares: Vec<MovingShare>,
    /// The waiting requests; those for one file in the order of their arrival.
    pub waits: Vec<MovingWait<W>>,
    /// The rest of the grace period, if there is one.
    pub grace: Option<GraceLeft>,
}

impl<W> Default for VolumeLocks<W> {
    fn default() -> Self {
        Self { locks: Vec::new(), shares: Vec::new(), waits: Vec::new(), grace: None }
    }
}

impl<W> VolumeLocks<W> {
    /// The owners of everything, one for each thing.
    pub fn owners(&self) -> impl Iterator<Item = &Owner> {
        let locks = self.locks.iter().map(|lock| &lock.owner);
        let shares = self.shares.iter().map(|share| &share.owner);
        locks.chain(shares).chain(self.waits.iter().map(|wait| &wait.lock.owner))
    }

    /// Leaves out what belongs to other owners than these.
    pub fn retain(&mut self, mut keep: impl FnMut(&Owner) -> bool) {
        self.locks.retain(|lock| keep(&lock.owner));
        self.shares.retain(|share| keep(&share.owner));
        self.waits.retain(|wait| keep(&wait.lock.owner));
    }

    /// The same with other values for waiting requests; those without one are left out.
    pub fn map_waiters<X>(self, mut map: impl FnMut(W) -> Option<X>) -> VolumeLocks<X> {
        let Self { locks, shares, waits, grace } = self;
        let waits = waits.into_iter();
        let waits = waits
            .filter_map(|MovingWait { lock, waiter }| {
                Some(MovingWait { lock, waiter: map(waiter)? })
            })
            .collect();
        VolumeLocks { locks, shares, waits, grace }
    }
}
