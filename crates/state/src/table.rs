//! The table of one volume: everything that is locked, reserved and waited for on its files.

use crate::accounts::Claim;
use crate::ask::{Ask, Grant, GrantId, Locked};
use crate::books::Books;
use crate::error::{Limit, Refused};
use crate::file::File;
use crate::file_locks::FileLocks;
use crate::limits::{QUICK_LOCKS_MAX, QUICK_WAITERS_MAX};
use crate::owner::Owner;
use crate::range::Range;
use crate::share::Share;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use weir_core::{ObjectKey, VolumeId};

#[derive(Debug)]
pub(crate) struct Table<W> {
    volume: VolumeId,
    files: BTreeMap<ObjectKey, FileLocks<W>>,
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
        Self { volume, files: BTreeMap::new() }
    }

    pub(crate) fn file(&self, object: &ObjectKey) -> Option<&FileLocks<W>> {
        self.files.get(object)
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
        let locks = self.files.entry(ask.file.object).or_default();
        let (holder, waiting) = (locks.holder(ask), locks.waiting(ask));
        let behind = may_wait && locks.must_queue(ask, waiting, &books.accounts);
        let done = match holder {
            Some(holder) if !may_wait => Err(Refused::Held(holder)),
            None if !behind => {
                let taken = locks.take(ask, waiting, claim, books, grants);
                taken.map(|_| Attempt::Granted).map_err(Refused::Full)
            }
            _ => Ok(Attempt::MustWait(waiting)),
        };
        self.tidy(&ask.file.object);
        done
    }

    /// Has the request wait, or gives it the new token if it waits as number `waiting` already.
    pub(crate) fn wait(
        &mut self,
        ask: &Ask,
        waiting: Option<u64>,
        token: W,
        books: &mut Books,
    ) -> Result<Locked, Limit> {
        let locks = self.files.entry(ask.file.object).or_default();
        let done = locks.wait(ask, waiting, token, books);
        self.tidy(&ask.file.object);
        done
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
        let Some(locks) = self.files.get_mut(&file.object) else { return Ok(()) };
        let done = locks.unlock(file, owner, range, books, grants);
        self.tidy(&file.object);
        done
    }

    pub(crate) fn cancel(
        &mut self,
        ask: &Ask,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> bool {
        let Some(locks) = self.files.get_mut(&ask.file.object) else { return false };
        let done = locks.cancel(ask, books, grants);
        self.tidy(&ask.file.object);
        done
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
        if let Some(locks) = self.files.get_mut(&file.object) {
            locks.take_back(file, owner, grant, books, grants);
        }
        self.tidy(&file.object);
    }

    pub(crate) fn share(
        &mut self,
        file: &File,
        owner: &Owner,
        share: Share,
        claim: Claim,
        books: &mut Books,
    ) -> Result<(), Refused> {
        let locks = self.files.entry(file.object).or_default();
        let done = locks.share(file, owner, share, claim, books);
        self.tidy(&file.object);
        done
    }

    pub(crate) fn unshare(&mut self, file: &File, owner: &Owner, books: &mut Books) {
        if let Some(locks) = self.files.get_mut(&file.object) {
            locks.unshare(file, owner, books);
            self.tidy(&file.object);
        }
    }

    /// Takes everything on `file` from the owners from `first` on, as far as they are `meant`.
    pub(crate) fn release(
        &mut self,
        file: &File,
        first: Option<&Owner>,
        meant: &dyn Fn(&Owner) -> bool,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) {
        if let Some(locks) = self.files.get_mut(&file.object) {
            locks.release(file, first, meant, books, grants);
            self.tidy(&file.object);
        }
    }

    /// Takes everything on all files from everybody.
    pub(crate) fn release_all(&mut self, books: &mut Books) {
        let objects: Vec<ObjectKey> = self.files.keys().copied().collect();
        for object in objects {
            let file = File { volume: self.volume, object };
            // All waiters leave before anything is freed, so nothing is granted.
            self.release(&file, None, &|_| true, books, &mut Vec::new());
        }
    }

    /// Forgets a file on which nothing is left.
    fn tidy(&mut self, object: &ObjectKey) {
        if self.files.get(object).is_some_and(FileLocks::is_empty) {
            self.files.remove(object);
        }
    }
}
