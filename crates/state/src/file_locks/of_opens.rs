//! The locks of opens on one file (MS-FSA §2.1.5.8 and §2.1.5.9).

use super::FileLocks;
use crate::accounts::Claim;
use crate::amounts::Use;
use crate::ask::{Ask, Grant, GrantId, OpenLocked};
use crate::books::Books;
use crate::error::{Conflict, NotLocked, Refused};
use crate::file::File;
use crate::owner::{OpenId, Owner};
use crate::range::{Io, Mode, Range};
use crate::span::Span;
use alloc::vec::Vec;

impl<W> FileLocks<W> {
    /// Takes a lock for the open `owner`, or has it wait with the token in `wait`.
    pub(crate) fn lock_open(
        &mut self,
        file: &File,
        owner: &Owner,
        (span, mode): (Span, Mode),
        wait: Option<W>,
        books: &mut Books,
    ) -> Result<OpenLocked, Refused> {
        if let Some(range) = span.range() {
            let ask = Ask { file: *file, owner: owner.clone(), range, mode };
            let holder = self.holder(&ask);
            match (holder, wait) {
                (Some(holder), None) => return Err(Refused::Held(holder)),
                (holder, Some(token))
                    if holder.is_some() || self.must_queue(&ask, None, &books.accounts) =>
                {
                    let one = Use { waiters: 1, ..Use::default() };
                    self.check(file, owner, &one, Claim::New, books).map_err(Refused::Full)?;
                    return Ok(OpenLocked::Waits(GrantId(self.enqueue(&ask, token, books))));
                }
                _ => {}
            }
        }
        self.check(file, owner, &ONE, Claim::New, books).map_err(Refused::Full)?;
        self.add_exact(file, owner, span, mode, books);
        Ok(OpenLocked::Granted)
    }

    /// Takes all of these locks, or none of them.
    pub(crate) fn lock_all(
        &mut self,
        file: &File,
        owner: &Owner,
        locks: &[(Span, Mode)],
        books: &mut Books,
    ) -> Result<(), Refused> {
        for (taken, lock) in locks.iter().enumerate() {
            if let Err(refused) = self.lock_open(file, owner, *lock, None, books) {
                // Nobody has seen those taken, so nobody has been kept waiting by them.
                for (span, mode) in locks.iter().take(taken) {
                    self.remove_exact(file, owner, *span, *mode, books);
                }
                return Err(refused);
            }
        }
        Ok(())
    }

    /// Gives up one lock of the open `owner` on exactly `span`: an exclusive one first.
    pub(crate) fn unlock_open(
        &mut self,
        file: &File,
        owner: &Owner,
        span: Span,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<(), NotLocked> {
        let modes = [Mode::Exclusive, Mode::Shared];
        let mut modes = modes.into_iter();
        if !modes.any(|mode| self.remove_exact(file, owner, span, mode, books)) {
            return Err(NotLocked);
        }
        if let Some(range) = span.range() {
            self.wake(file, range, books, grants);
        }
        Ok(())
    }

    /// Ends a wait of an open; gives its token.
    pub(crate) fn cancel_open(
        &mut self,
        file: &File,
        open: OpenId,
        number: u64,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Option<W> {
        self.queue.get(number).filter(|waiter| waiter.owner.open() == Some(open))?;
        let waiter = self.leave(file, number, books)?;
        self.wake(file, waiter.range, books, grants);
        Some(waiter.token)
    }

    /// Checks a use of `range` against the locks of the file (MS-FSA §2.1.4.10 without locking
    /// intent). Without an open, it conflicts with locks of opens only.
    pub(crate) fn io(&self, open: Option<OpenId>, range: Range, io: Io) -> Result<(), Conflict> {
        let exact = self.exact.exclusive_but(open, range).is_some()
            || (io == Io::Write && self.exact.shared(range).is_some());
        let mode = match io {
            Io::Read => Mode::Shared,
            Io::Write => Mode::Exclusive,
        };
        let owners = || self.ranges.conflict(None, range, mode, &mut |_| true).is_some();
        match exact || (open.is_some() && owners()) {
            true => Err(Conflict::Locked),
            false => Ok(()),
        }
    }

    /// Gives an open what it waits for.
    pub(super) fn grant_exact(
        &mut self,
        number: u64,
        ask: &Ask,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) {
        // Added before it leaves the queue, so that its owner is not forgotten in between.
        self.add_exact(&ask.file, &ask.owner, Span::of(ask.range), ask.mode, books);
        if let Some(waiter) = self.leave(&ask.file, number, books) {
            grants.push(Grant { id: GrantId(number), ask: ask.clone(), waiter: waiter.token });
        }
    }

    fn add_exact(&mut self, file: &File, owner: &Owner, span: Span, mode: Mode, books: &mut Books) {
        self.exact.add(owner, span, mode);
        books.accounts.add(owner, file, &ONE);
    }

    fn remove_exact(
        &mut self,
        file: &File,
        owner: &Owner,
        span: Span,
        mode: Mode,
        books: &mut Books,
    ) -> bool {
        let had = self.exact.remove(owner, span, mode);
        if had {
            books.accounts.sub(owner, file, &ONE);
        }
        had
    }
}

/// One lock.
const ONE: Use = Use { locks: 1, waiters: 0, shares: 0, opens: 0, owner_bytes: 0 };
