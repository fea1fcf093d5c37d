//! The opens of a volume's files, and their locks.

use super::Table;
use crate::accounts::Claim;
use crate::amounts::Use;
use crate::ask::{Grant, GrantId, OpenLocked};
use crate::books::Books;
use crate::error::{Conflict, Limit, NotLocked, Refused, Scope};
use crate::file::File;
use crate::limits::{QUICK_LOCKS_MAX, QUICK_WAITERS_MAX};
use crate::open::{Closed, DeleteRequest, Open, OpenMode, Opens, Sharing};
use crate::opened::{Left, conflicts_with};
use crate::owner::{Client, OpenId, Owner};
use crate::presence::Presence;
use crate::range::{Io, Mode};
use crate::span::Span;
use alloc::vec::Vec;
use weir_core::ObjectKey;

impl<W> Table<W> {
    /// Does any request of an open about its locks, or to close it, take only a short time?
    pub(crate) fn is_quick_open(&self, object: &ObjectKey, owner: &Owner, books: &Books) -> bool {
        let Some(locks) = self.file(object) else { return true };
        let moves_few = locks.waiters_and_grants() == 0 || locks.ranges_held() <= QUICK_LOCKS_MAX;
        moves_few
            && locks.waiters_and_grants() <= QUICK_WAITERS_MAX
            && books.accounts.locks_of(owner) <= QUICK_LOCKS_MAX
    }

    pub(crate) fn open_file(
        &mut self,
        object: &ObjectKey,
        client: &Client,
        mode: OpenMode,
        delete_on_close: bool,
        books: &mut Books,
    ) -> Result<OpenId, Refused> {
        if self.opened.delete(object).is_some() {
            return Err(Refused::DeletePending);
        }
        let shares = self.files.get(object).map(|locks| locks.shares());
        if self.opened.uses(object, &books.opens).conflict(mode)
            || shares.is_some_and(|shares| conflicts_with(shares, mode))
        {
            return Err(Refused::Sharing);
        }
        self.check_open(object, client, books).map_err(Refused::Full)?;
        let before = self.presence_if_watched(object, books);
        let client = books.accounts.known_client(client);
        let (id, volume) = (OpenId(books.number()), self.volume);
        let object = self.opened.add(object, id, mode, &books.opens);
        books.accounts.add_open(&client, volume, id);
        let open = Open { client, object, volume, mode, delete_on_close };
        let object = *open.object;
        books.opens.insert(id, open);
        self.tell_change(&object, before, books);
        Ok(id)
    }

    /// May `client` have one open more on a file?
    fn check_open(&self, object: &ObjectKey, client: &Client, books: &Books) -> Result<(), Limit> {
        let one = Use { opens: 1, ..Use::default() };
        let used = Use { opens: self.opened.len(object), ..Use::default() };
        match used.passes(&one, &books.limits.file) {
            Some(counted) => Err(Limit { counted, scope: Scope::File }),
            None => {
                let Books { accounts, limits, .. } = books;
                accounts.check_client(client, self.volume, one, Claim::New, limits)
            }
        }
    }

    /// The request to delete the file of this open now that it is about to be closed; `None` if
    /// the file has other opens, or stays. Nobody opens the file from then on until the open is
    /// closed.
    pub(crate) fn delete_due(&mut self, id: OpenId, books: &Books) -> Option<DeleteRequest> {
        let open = books.opens.get(id).ok()?;
        if self.opened.len(&open.object) > 1 {
            return None;
        }
        if let Some(earlier) = self.opened.delete(&open.object) {
            return Some(earlier.clone());
        }
        let request = DeleteRequest { open: id, client: open.client.clone() };
        open.delete_on_close.then(|| {
            self.opened.set_delete(&open.object, Some(request.clone()), &books.opens);
            request
        })
    }

    /// Closes an open, which is on a file of this volume.
    pub(crate) fn close_file(
        &mut self,
        id: OpenId,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Option<Closed<W>> {
        let open = books.opens.get(id).ok()?;
        let (file, owner) = (open.file(), open.owner(id));
        let waiters = self.release_open(&file, &owner, books, grants);
        let before = self.presence_if_watched(&file.object, books);
        let Open { client, mode, delete_on_close, .. } = books.opens.remove(id)?;
        let left = self.opened.remove(&file.object, id, mode);
        books.accounts.sub_open(&client, file.volume, id);
        let own = delete_on_close.then_some(DeleteRequest { open: id, client });
        let (last, delete) = match left {
            Left::None(earlier) => (true, earlier.or(own)),
            Left::Some => {
                if own.is_some() && self.opened.delete(&file.object).is_none() {
                    self.opened.set_delete(&file.object, own, &books.opens);
                }
                (false, None)
            }
        };
        let later = self.opened.delete(&file.object);
        let leaves_delete = later.is_some_and(|request| request.open == id);
        self.tell_change(&file.object, before, books);
        Some(Closed { open: id, file, last, delete, leaves_delete, waiters })
    }

    /// Gives up all locks of an open; gives the tokens of its requests that waited.
    pub(crate) fn release_open(
        &mut self,
        file: &File,
        owner: &Owner,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Vec<W> {
        match books.accounts.has_owner(owner) {
            true => self.release(file, Some(owner), &|other| other == owner, books, grants),
            false => Vec::new(),
        }
    }

    /// Has a file deleted when its last open is closed, or no longer so.
    pub(crate) fn set_delete(
        &mut self,
        object: &ObjectKey,
        request: Option<DeleteRequest>,
        opens: &Opens,
    ) {
        self.opened.set_delete(object, request, opens);
    }

    pub(crate) fn is_delete_pending(&self, object: &ObjectKey) -> bool {
        self.opened.delete(object).is_some()
    }

    /// The number of opens of a file.
    pub(crate) fn opens_on(&self, object: &ObjectKey) -> usize {
        self.opened.len(object)
    }

    /// The opens of a file after the open `after`, in order.
    pub(crate) fn opens_at(
        &self,
        object: &ObjectKey,
        after: OpenId,
    ) -> impl Iterator<Item = OpenId> {
        self.opened.of(object, after)
    }

    /// The access that the opens of a file do not let others have.
    pub(crate) fn denied(&self, object: &ObjectKey, opens: &Opens) -> Sharing {
        self.opened.uses(object, opens).denied()
    }

    /// Forgets all opens.
    pub(super) fn forget_opens(&mut self, books: &mut Books) {
        for id in self.opened.all().collect::<Vec<_>>() {
            let Ok(open) = books.opens.get(id) else { continue };
            let (object, mode) = (*open.object, open.mode);
            let before = self.presence_if_watched(&object, books);
            self.opened.remove(&object, id, mode);
            if let Some(open) = books.opens.remove(id) {
                books.accounts.sub_open(&open.client, self.volume, id);
            }
            self.tell_change(&object, before, books);
        }
    }

    pub(super) fn presence_of_opens(&self, object: &ObjectKey, opens: &Opens) -> Presence {
        let mut presence = Presence::empty();
        if self.opened.len(object) > 0 {
            presence |= Presence::OPENS;
            let denied = self.denied(object, opens).intersects(Sharing::READ | Sharing::WRITE);
            presence.set(Presence::DENIALS, denied);
        }
        presence
    }

    pub(crate) fn lock_open(
        &mut self,
        file: &File,
        owner: &Owner,
        lock: (Span, Mode),
        wait: Option<W>,
        books: &mut Books,
    ) -> Result<OpenLocked, Refused> {
        self.change(&file.object, books, |locks, books| {
            locks.lock_open(file, owner, lock, wait, books)
        })
    }

    pub(crate) fn lock_all(
        &mut self,
        file: &File,
        owner: &Owner,
        locks: &[(Span, Mode)],
        books: &mut Books,
    ) -> Result<(), Refused> {
        self.change(&file.object, books, |own, books| own.lock_all(file, owner, locks, books))
    }

    pub(crate) fn unlock_open(
        &mut self,
        file: &File,
        owner: &Owner,
        span: Span,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<(), NotLocked> {
        self.change(&file.object, books, |locks, books| {
            locks.unlock_open(file, owner, span, books, grants)
        })
    }

    pub(crate) fn cancel_open(
        &mut self,
        file: &File,
        open: OpenId,
        wait: GrantId,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Option<W> {
        self.change(&file.object, books, |locks, books| {
            locks.cancel_open(file, open, wait.0, books, grants)
        })
    }

    /// May the bytes of `span` be used like this, by an open or by somebody who has none?
    pub(crate) fn io(
        &self,
        object: &ObjectKey,
        open: Option<OpenId>,
        span: Span,
        io: Io,
        opens: &Opens,
    ) -> Result<(), Conflict> {
        let Some(range) = span.range().filter(|_| span.length() > 0) else { return Ok(()) };
        let kind = match io {
            Io::Read => Sharing::READ,
            Io::Write => Sharing::WRITE,
        };
        if open.is_none() && self.denied(object, opens).contains(kind) {
            return Err(Conflict::Denied);
        }
        self.file(object).map_or(Ok(()), |locks| locks.io(open, range, io))
    }
}
