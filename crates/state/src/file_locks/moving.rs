//! One file of a volume that moves.

use super::FileLocks;
use crate::accounts::Claim;
use crate::amounts::Use;
use crate::ask::{Ask, Grant};
use crate::books::Books;
use crate::error::Limit;
use crate::file::File;
use crate::moving::{MovingLock, MovingShare, MovingWait, VolumeLocks};
use crate::queue::Waiter;
use crate::range::Range;
use alloc::vec::Vec;
use core::ops::Bound;

impl<W> FileLocks<W> {
    /// Moves the waits of owners with names into `moving`, and copies their locks and shares.
    pub(crate) fn hand_over(
        &mut self,
        file: &File,
        moving: &mut VolumeLocks<W>,
        books: &mut Books,
    ) {
        let object = file.object;
        let held = self.ranges.after(Bound::Unbounded);
        moving.locks.extend(held.map(|(owner, range, mode)| MovingLock {
            object,
            owner: owner.clone(),
            range,
            mode,
        }));
        let shares = self.shares.all();
        moving.shares.extend(shares.map(|(owner, share)| MovingShare {
            object,
            owner: owner.clone(),
            share,
        }));
        let named = self.queue.iter().filter(|(_, waiter)| waiter.owner.open().is_none());
        let named: Vec<u64> = named.map(|(number, _)| number).collect();
        for number in named {
            let Some(Waiter { owner, range, mode, token }) = self.leave(file, number, books) else {
                continue;
            };
            let lock = MovingLock { object, owner, range, mode };
            moving.waits.push(MovingWait { lock, waiter: token });
        }
    }

    /// Puts a request that waited elsewhere at the end of the queue.
    pub(crate) fn queue_up(&mut self, ask: &Ask, token: W, books: &mut Books) -> Result<(), Limit> {
        let one = Use { waiters: 1, ..Use::default() };
        self.check(&ask.file, &ask.owner, &one, Claim::Old, books)?;
        self.enqueue(ask, token, books);
        Ok(())
    }

    /// Grants whatever is free.
    pub(crate) fn wake_all(&mut self, file: &File, books: &mut Books, grants: &mut Vec<Grant<W>>) {
        self.wake(file, Range::ALL, books, grants);
    }
}
