//! The table of a volume that moves.

use super::Table;
use crate::accounts::Claim;
use crate::ask::{Ask, Grant};
use crate::books::Books;
use crate::error::Refused;
use crate::file::File;
use crate::moving::{MovingLock, MovingShare, MovingWait, VolumeLocks};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use weir_core::ObjectKey;

/// Locks, shares and waits of one volume.
type Things<W> = (Vec<MovingLock>, Vec<MovingShare>, Vec<MovingWait<W>>);

impl<W> Table<W> {
    /// Moves what owners with names have into `moving`: their waits leave the table, and the rest
    /// is copied.
    pub(crate) fn hand_over(&mut self, moving: &mut VolumeLocks<W>, books: &mut Books) {
        let objects: Vec<ObjectKey> = self.files().keys().copied().collect();
        for object in objects {
            let file = File { volume: self.volume, object };
            self.change(&object, books, |locks, books| locks.hand_over(&file, moving, books));
        }
    }

    /// Takes up what another server handed over. The caller clears the table after an error.
    pub(crate) fn take_up(
        &mut self,
        (locks, shares, waits): Things<W>,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<(), Refused> {
        for lock in locks {
            let ask = self.known(lock, books);
            // Without a wait, the lock is held or refused.
            let _held = self.attempt(&ask, false, Claim::Old, books, grants)?;
        }
        for MovingShare { object, owner, share } in shares {
            let (file, owner) =
                (File { volume: self.volume, object }, books.accounts.known(&owner));
            self.share(&file, &owner, share, Claim::Old, books)?;
        }
        let mut waited = BTreeSet::new();
        for MovingWait { lock, waiter } in waits {
            let ask = self.known(lock, books);
            let queued = self.change(&ask.file.object, books, |locks, books| {
                locks.queue_up(&ask, waiter, books)
            });
            queued.map_err(Refused::Full)?;
            waited.insert(ask.file);
        }
        for file in waited {
            self.change(&file.object, books, |locks, books| locks.wake_all(&file, books, grants));
        }
        Ok(())
    }

    /// The lock as a request, with the known value of its owner.
    fn known(&self, lock: MovingLock, books: &Books) -> Ask {
        let MovingLock { object, owner, range, mode } = lock;
        let file = File { volume: self.volume, object };
        Ask { file, owner: books.accounts.known(&owner), range, mode }
    }
}
