//! The list of all locks and waiting lock requests. Its order is total and stable: a reader can
//! resume after any entry, even if that entry or others were removed or added. Not here: the text
//! for owners, which belongs to the protocols.

use crate::file::File;
use crate::file_locks::FileLocks;
use crate::owner::Owner;
use crate::range::{Mode, Range};
use crate::span::Span;
use crate::table::Table;
use crate::tables::Tables;
use core::ops::Bound;
use weir_core::{ObjectKey, VolumeId};

/// The place of a lock in the list of all locks; the order is the list's. No two have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockPlace {
    /// The file.
    pub file: File,
    /// The place among the locks of the file.
    pub spot: LockSpot,
}

/// The place of a lock in the list of one file's locks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockSpot {
    /// The range of a named owner that begins at this byte.
    Named(Owner, u64),
    /// The lock of an open, with its range and mode, however many times it is held.
    Open(Owner, Span, Mode),
    /// The request that waits as this number.
    Waiting(u64),
}

/// A lock, or a request that waits for one, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedLock {
    /// Its place.
    pub place: LockPlace,
    /// Its owner.
    pub owner: Owner,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes; `None` if the range of a named owner reaches to the end of the file.
    pub length: Option<u64>,
    /// Its mode.
    pub mode: Mode,
}

impl<W> Tables<W> {
    /// The locks and waiting requests after `after`, or all, in order.
    pub fn locks(&self, after: Option<&LockPlace>) -> impl Iterator<Item = ListedLock> {
        let first = after.map_or(VolumeId(0), |place| place.file.volume);
        self.volumes().range(first..).flat_map(move |(volume, table)| {
            table.listed(*volume, after.filter(|place| place.file.volume == *volume))
        })
    }
}

impl<W> Table<W> {
    fn listed(
        &self,
        volume: VolumeId,
        after: Option<&LockPlace>,
    ) -> impl Iterator<Item = ListedLock> {
        let first: Bound<ObjectKey> =
            after.map_or(Bound::Unbounded, |place| Bound::Included(place.file.object));
        self.files().range((first, Bound::Unbounded)).flat_map(move |(object, locks)| {
            let same = after.filter(|place| place.file.object == *object);
            let file = File { volume, object: *object };
            locks.listed(file, same.map(|place| &place.spot))
        })
    }
}

impl<W> FileLocks<W> {
    fn listed(&self, file: File, after: Option<&LockSpot>) -> impl Iterator<Item = ListedLock> {
        let (named, open, waiting) = match after {
            None => (Some(Bound::Unbounded), Some(Bound::Unbounded), 0),
            Some(LockSpot::Named(owner, first)) => {
                (Some(Bound::Excluded((owner.clone(), *first))), Some(Bound::Unbounded), 0)
            }
            Some(LockSpot::Open(owner, span, mode)) => {
                (None, Some(Bound::Excluded((owner.clone(), *span, *mode))), 0)
            }
            Some(LockSpot::Waiting(number)) => (None, None, *number),
        };
        let entry = move |spot, owner: &Owner, (offset, length), mode| {
            let (place, owner) = (LockPlace { file, spot }, owner.clone());
            ListedLock { place, owner, offset, length, mode }
        };
        let of_range = |range: Range| (range.first(), range.length());
        let named = named.into_iter().flat_map(|after| self.ranges().after(after));
        let named = named.map(move |(owner, range, mode)| {
            let spot = LockSpot::Named(owner.clone(), range.first());
            entry(spot, owner, of_range(range), mode)
        });
        let open = open.into_iter().flat_map(|after| self.exact().after(after));
        let open = open.map(move |(owner, span, mode)| {
            let spot = LockSpot::Open(owner.clone(), *span, *mode);
            entry(spot, owner, (span.offset(), Some(span.length())), *mode)
        });
        let waiting = self.queue().all_after(waiting).map(move |(number, waiter)| {
            let range = of_range(waiter.range);
            entry(LockSpot::Waiting(number), &waiter.owner, range, waiter.mode)
        });
        named.chain(open).chain(waiting)
    }
}
