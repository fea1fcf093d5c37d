//! The locks and waiting requests of one file by their places in the list of all locks, to release
//! single ones. Not here: the list.

use super::FileLocks;
use crate::amounts::Use;
use crate::ask::Grant;
use crate::books::Books;
use crate::file::File;
use crate::place::{ListedLock, LockPlace, LockSpot, ReleasedLock};
use crate::range::Range;
use alloc::vec::Vec;

impl<W> FileLocks<W> {
    /// Releases the lock in this place, or ends the wait of the request there.
    pub(crate) fn release_at(
        &mut self,
        file: &File,
        spot: &LockSpot,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Option<ReleasedLock<W>> {
        let lock = self.listed_at(*file, spot)?;
        let mut waiter = None;
        let freed = match spot {
            LockSpot::Named(owner, first) => {
                let (range, _) = self.ranges.beginning(owner, *first)?;
                let plan = self.ranges.plan(owner, range, None);
                self.change(file, owner, &plan, books);
                self.settle_within(owner, range, books);
                Some(range)
            }
            LockSpot::Open(owner, span, mode) => {
                let locks = self.exact.remove_every(owner, *span, *mode);
                books.accounts.sub(owner, file, &Use { locks, ..Use::default() });
                span.range()
            }
            LockSpot::Waiting(number) => {
                let left = self.leave(file, *number, books)?;
                waiter = Some(left.token);
                Some(left.range)
            }
        };
        if let Some(freed) = freed {
            self.wake(file, freed, books, grants);
        }
        Some(ReleasedLock { lock, waiter })
    }

    /// The lock or the waiting request in this place.
    fn listed_at(&self, file: File, spot: &LockSpot) -> Option<ListedLock> {
        let of_range = |range: Range| (range.first(), range.length());
        let (owner, (offset, length), mode) = match spot {
            LockSpot::Named(owner, first) => {
                let (range, mode) = self.ranges.beginning(owner, *first)?;
                (owner, of_range(range), mode)
            }
            LockSpot::Open(owner, span, mode) => {
                self.exact.has(owner, *span, *mode).then_some(())?;
                (owner, (span.offset(), Some(span.length())), *mode)
            }
            LockSpot::Waiting(number) => {
                let waiter = self.queue.get(*number)?;
                (&waiter.owner, of_range(waiter.range), waiter.mode)
            }
        };
        let (place, owner) = (LockPlace { file, spot: spot.clone() }, owner.clone());
        Some(ListedLock { place, owner, offset, length, mode })
    }
}
