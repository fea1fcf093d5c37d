//! Share reservations: what an owner does with an open file, and what it lets nobody else do (the
//! deny modes of DOS and OS/2).

use crate::owner::Owner;
use alloc::collections::BTreeMap;
use core::ops::Bound;
use weir_core::Access;

/// One owner's reservation of a file. Only [`Access::READ`] and [`Access::WRITE`] count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The owner's access.
    pub access: Access,
    /// The access that others may not have meanwhile.
    pub deny: Access,
}

/// The reservations of one file.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    by_owner: BTreeMap<Owner, Share>,
    accessed: Tally,
    denied: Tally,
}

impl Shares {
    /// Would another owner's reservation conflict with this one of `owner`?
    pub(crate) fn conflict(&self, owner: &Owner, share: Share) -> bool {
        let own = self.by_owner.get(owner);
        let accessed = self.accessed.without(own.map(|own| own.access));
        let denied = self.denied.without(own.map(|own| own.deny));
        accessed.intersects(share.deny) || denied.intersects(share.access)
    }

    /// The access that some owner has.
    pub(crate) fn accessed(&self) -> Access {
        self.accessed.modes()
    }

    /// The access that some owner lets nobody else have.
    pub(crate) fn denied(&self) -> Access {
        self.denied.modes()
    }

    /// Sets the reservation of `owner`, or takes it away; `true` if there was one before.
    pub(crate) fn set(&mut self, owner: &Owner, share: Option<Share>) -> bool {
        let before = match share {
            Some(share) => {
                self.accessed.add(share.access);
                self.denied.add(share.deny);
                self.by_owner.insert(owner.clone(), share)
            }
            None => self.by_owner.remove(owner),
        };
        if let Some(before) = before {
            self.accessed.remove(before.access);
            self.denied.remove(before.deny);
        }
        before.is_some()
    }

    /// Has `owner` a reservation?
    pub(crate) fn has(&self, owner: &Owner) -> bool {
        self.by_owner.contains_key(owner)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_owner.len()
    }

    /// All reservations, in the order of their owners.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Owner, Share)> {
        self.by_owner.iter().map(|(owner, share)| (owner, *share))
    }

    /// All owners from `from` on, in order.
    pub(crate) fn owners(&self, from: Option<&Owner>) -> impl Iterator<Item = &Owner> {
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        self.by_owner.range((from, Bound::Unbounded)).map(|(owner, _)| owner)
    }
}

/// The number of readers and writers in a set of modes.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    read: usize,
    write: usize,
}

impl Tally {
    fn add(&mut self, mode: Access) {
        self.read += usize::from(mode.contains(Access::READ));
        self.write += usize::from(mode.contains(Access::WRITE));
    }

    fn remove(&mut self, mode: Access) {
        self.read -= usize::from(mode.contains(Access::READ));
        self.write -= usize::from(mode.contains(Access::WRITE));
    }

    fn without(mut self, mode: Option<Access>) -> Self {
        if let Some(mode) = mode {
            self.remove(mode);
        }
        self
    }

    fn modes(self) -> Access {
        let mut modes = Access::empty();
        modes.set(Access::READ, self.read > 0);
        modes.set(Access::WRITE, self.write > 0);
        modes
    }

    fn intersects(self, mode: Access) -> bool {
        self.modes().intersects(mode)
    }
}
