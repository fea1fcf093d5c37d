//! The list of all locks and waiting lock requests. Its order is total and stable: a reader can
//! resume after any entry, even if that entry or others were removed or added. Not here: the text
//! for owners, which belongs to the protocols.

use crate::file::File;
use crate::file_locks::FileLocks;
use crate::owner::Owner;
use crate::place::{ListedLock, LockPlace, LockSpot};
use crate::range::Range;
use crate::table::Table;
use crate::tables::Tables;
use core::ops::Bound;
use weir_core::{ObjectKey, VolumeId};

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
