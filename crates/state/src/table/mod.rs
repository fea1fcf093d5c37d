//! The table of one volume: everything that is locked, opened, reserved and waited for on its
//! files.

mod moving;
mod of_opens;

use crate::accounts::Claim;
use crate::ask::{Ask, Grant, GrantId, Locked};
use crate::books::Books;
use crate::error::{Limit, Refused};
use crate::file::File;
use crate::file_locks::FileLocks;
use crate::limits::{QUICK_LOCKS_MAX, QUICK_WAITERS_MAX};
use crate::opened::Opened;
use crate::owner::Owner;
use crate::place::{LockPlace, ReleasedLock};
use crate::presence::Presence;
use crate::range::Range;
use crate::share::Share;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use weir_core::{ObjectKey, VolumeId};

#[derive(Debug)]
pub(crate) struct Table<W> {
    volume: VolumeId,
    /// Boxed, because nodes of the map are half empty.
    files: BTreeMap<ObjectKey, Box<FileLocks<W>>>,
    opened: Opened,
}

/// The outcome of an attempt to take a lock.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// The lock is held.
    Granted,
    /// The request has to wait, and waits as this number already.
    MustWait(Option<u64>),
}

impl<W> Table<W> {
    pub(crate) fn new(volume: VolumeId) -> Self {
        Self { volume, files: BTreeMap::new(), opened: Opened::default() }
    }

    pub(crate) fn file(&self, object: &ObjectKey) -> Option<&FileLocks<W>> {
        self.files.get(object).map(Box::as_ref)
    }

    pub(crate) fn files(&self) -> &BTreeMap<ObjectKey, Box<FileLocks<W>>> {
        &self.files
    }

    /// Takes what is asked for, unless somebody else holds it, or `may_wait` and it is somebody
    /// else's turn.
    pub(crate) fn attempt(
        &mut self,
        ask: &Ask,
        may_wait: bool,
        claim: Claim,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<Attempt, Refused> {
        self.change(&ask.file.object, books, |locks, books| {
            let (holder, waiting) = (locks.holder(ask), locks.waiting(ask));
            let behind = may_wait && locks.must_queue(ask, waiting, &books.accounts);
            match holder {
                Some(holder) if !may_wait => Err(Refused::Held(holder)),
                None if !behind => {
                    let taken = locks.take(ask, waiting, claim, books, grants);
                    taken.map(|_| Attempt::Granted).map_err(Refused::Full)
                }
                _ => Ok(Attempt::MustWait(waiting)),
            }
        })
    }

    /// Has the request wait, or gives it the new token if it waits as number `waiting` already.
    pub(crate) fn wait(
        &mut self,
        ask: &Ask,
        waiting: Option<u64>,
        token: W,
        books: &mut Books,
    ) -> Result<Locked, Limit> {
        self.change(&ask.file.object, books, |locks, books| locks.wait(ask, waiting, token, books))
    }

    /// Does any request of this kind for what is asked take only a short time, and no wait?
    pub(crate) fn is_quick(&self, ask: &Ask, may_wait: bool, books: &Books) -> bool {
        let Some(locks) = self.file(&ask.file.object) else { return true };
        let must_wait = || {
            locks.holder(ask).is_some()
                || locks.must_queue(ask, locks.waiting(ask), &books.accounts)
        };
        // A grant moves ranges of its own owner, who may hold many.
        let moves_few = locks.waiters_and_grants() == 0 || locks.ranges_held() <= QUICK_LOCKS_MAX;
        moves_few
            && locks.waiters_and_grants() <= QUICK_WAITERS_MAX
            && books.accounts.locks_of(&ask.owner) <= QUICK_LOCKS_MAX
            && !(may_wait && must_wait())
    }

    pub(crate) fn unlock(
        &mut self,
        file: &File,
        owner: &Owner,
        range: Range,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<(), Limit> {
        self.change(&file.object, books, |locks, books| {
            locks.unlock(file, owner, range, books, grants)
        })
    }

    pub(crate) fn cancel(
        &mut self,
        ask: &Ask,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> bool {
        self.change(&ask.file.object, books, |locks, books| locks.cancel(ask, books, grants))
    }

    /// Releases the lock in this place, or ends the wait of the request there.
    pub(crate) fn release_lock(
        &mut self,
        place: &LockPlace,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Option<ReleasedLock<W>> {
        self.change(&place.file.object, books, |locks, books| {
            locks.release_at(&place.file, &place.spot, books, grants)
        })
    }

    /// The grant stays as it is.
    pub(crate) fn settle(&mut self, object: &ObjectKey, owner: &Owner, grant: GrantId) {
        if let Some(locks) = self.files.get_mut(object) {
            locks.settle(owner, grant);
        }
    }

    pub(crate) fn take_back(
        &mut self,
        file: &File,
        owner: &Owner,
        grant: GrantId,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) {
        self.change(&file.object, books, |locks, books| {
            locks.take_back(file, owner, grant, books, grants);
        });
    }

    pub(crate) fn share(
        &mut self,
        file: &File,
        owner: &Owner,
        share: Share,
        claim: Claim,
        books: &mut Books,
    ) -> Result<(), Refused> {
        if self.opened.uses(&file.object, &books.opens).conflict_share(share) {
            return Err(Refused::Sharing);
        }
        self.change(&file.object, books, |locks, books| {
            locks.share(file, owner, share, claim, books)
        })
    }

    pub(crate) fn unshare(&mut self, file: &File, owner: &Owner, books: &mut Books) {
        self.change(&file.object, books, |locks, books| locks.unshare(file, owner, books));
    }

    /// Takes everything on `file` but opens from the owners from `first` on, as far as they are
    /// `meant`. Gives the tokens of their requests that waited.
    pub(crate) fn release(
        &mut self,
        file: &File,
        first: Option<&Owner>,
        meant: &dyn Fn(&Owner) -> bool,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Vec<W> {
        self.change(&file.object, books, |locks, books| {
            locks.release(file, first, meant, books, grants)
        })
    }

    /// Takes everything on all files from everybody.
    pub(crate) fn release_all(&mut self, books: &mut Books) {
        let objects: Vec<ObjectKey> = self.files.keys().copied().collect();
        for object in objects {
            let file = File { volume: self.volume, object };
            // All waiters leave before anything is freed, so nothing is granted.
            self.release(&file, None, &|_| true, books, &mut Vec::new());
        }
        self.forget_opens(books);
    }

    /// Changes what there is on a file, which is forgotten if that is nothing.
    fn change<R>(
        &mut self,
        object: &ObjectKey,
        books: &mut Books,
        change: impl FnOnce(&mut FileLocks<W>, &mut Books) -> R,
    ) -> R {
        let before = self.presence_if_watched(object, books);
        let done = match self.files.get_mut(object) {
            Some(locks) => {
                let done = change(locks, books);
                if locks.is_empty() {
                    self.files.remove(object);
                }
                done
            }
            None => {
                let mut locks = FileLocks::default();
                let done = change(&mut locks, books);
                if !locks.is_empty() {
                    self.files.insert(*object, Box::new(locks));
                }
                done
            }
        };
        self.tell_change(object, before, books);
        done
    }

    /// The kinds of opens and locks of a file.
    fn presence(&self, object: &ObjectKey, books: &Books) -> Presence {
        let mut presence = self.presence_of_opens(object, &books.opens);
        if let Some(locks) = self.files.get(object) {
            presence.set(Presence::OPEN_LOCKS, locks.exact().len() > 0);
            presence.set(Presence::OWNER_LOCKS, locks.ranges().len() > 0);
        }
        presence
    }

    fn presence_if_watched(&self, object: &ObjectKey, books: &Books) -> Presence {
        match books.watch {
            Some(_) => self.presence(object, books),
            None => Presence::empty(),
        }
    }

    /// Tells the watcher the kinds of opens and locks of a file, if they differ from `before`.
    fn tell_change(&self, object: &ObjectKey, before: Presence, books: &mut Books) {
        let after = self.presence_if_watched(object, books);
        if after != before
            && let Some(watch) = &mut books.watch
        {
            watch.changed(&File { volume: self.volume, object: *object }, before, after);
        }
    }
}
