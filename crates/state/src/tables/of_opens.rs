//! The operations on opens and their locks.

use super::Tables;
use crate::ask::{Grant, GrantId, OpenLocked};
use crate::error::{Conflict, NotLocked, Refused};
use crate::file::File;
use crate::open::{Closed, DeleteRequest, OpenFile, OpenMode, Sharing};
use crate::owner::{Client, OpenId, Owner};
use crate::range::{Io, Mode};
use crate::span::Span;
use crate::table::Table;
use alloc::vec::Vec;
use weir_core::Mono;

/// # Opens
///
/// An open belongs to a client until it is closed. Opens of one file agree about its use
/// (MS-FSA §2.1.5.1.2.2), and with the shares of other protocols: whoever comes later is refused.
///
/// The grace period does not delay opens. A client that may reclaim a share then may find an open
/// that conflicts with it, and loses the share; the alternative would be to refuse all opens for
/// data, since any of them can conflict with some share. Locks of opens are refused in the grace
/// period ([`Refused::Grace`]), as those of others are.
impl<W> Tables<W> {
    /// Opens `file` for `client`. With `delete_on_close`, the file is to be deleted when this open
    /// is closed.
    ///
    /// # Errors
    /// [`Refused::DeletePending`], [`Refused::Sharing`], [`Refused::Full`], [`Refused::NoVolume`].
    pub fn open_file(
        &mut self,
        file: &File,
        client: &Client,
        mode: OpenMode,
        delete_on_close: bool,
    ) -> Result<OpenId, Refused> {
        let table = self.volumes.get_mut(&file.volume).ok_or(Refused::NoVolume)?;
        table.open_file(&file.object, client, mode, delete_on_close, &mut self.books)
    }

    /// The request to delete the file of `open` now that it is about to be closed; `None` if the
    /// file has other opens, or stays. Nobody opens the file from then on until the open is closed
    /// ([`Self::close_file`]). The caller deletes the file first: so nobody writes data to a file
    /// that is about to go.
    pub fn delete_due(&mut self, open: OpenId) -> Option<DeleteRequest> {
        let Self { volumes, books } = self;
        let table = volumes.get_mut(&books.opens.get(open).ok()?.volume)?;
        table.delete_due(open, books)
    }

    /// Closes an open, with its locks and waits; `None` if it is closed already. If it was opened
    /// to delete its file on close, nobody may open that file from now on (MS-FSA §2.1.5.5). If it
    /// was the last one of a file that is to be deleted, that is due now.
    pub fn close_file(&mut self, open: OpenId, grants: &mut Vec<Grant<W>>) -> Option<Closed<W>> {
        let Self { volumes, books } = self;
        let table = volumes.get_mut(&books.opens.get(open).ok()?.volume)?;
        table.close_file(open, books, grants)
    }

    /// Has the file of `open` set to be deleted when this open is closed, or not
    /// (MS-FSA §2.1.5.15.4). Until then others may open it.
    ///
    /// # Errors
    /// [`Refused::Closed`].
    pub fn set_delete_on_close(&mut self, open: OpenId, delete: bool) -> Result<(), Refused> {
        self.books.opens.set_delete_on_close(open, delete)
    }

    /// Has the file of `open` deleted when its last open is closed, and new ones refused until
    /// then; or takes that back (MS-FSA §2.1.5.15.3). The close of an open that was opened with
    /// `delete_on_close` deletes the file all the same. Rights and whether a directory is empty are
    /// the caller's to check.
    ///
    /// # Errors
    /// [`Refused::Closed`].
    pub fn set_delete_pending(&mut self, open: OpenId, pending: bool) -> Result<(), Refused> {
        let Self { volumes, books } = self;
        let opened = books.opens.get(open)?;
        let request = || DeleteRequest { open, client: opened.client.clone() };
        if let Some(table) = volumes.get_mut(&opened.volume) {
            table.set_delete(&opened.object, pending.then(request), &books.opens);
        }
        Ok(())
    }

    /// Is `file` to be deleted when its last open is closed?
    #[must_use]
    pub fn is_delete_pending(&self, file: &File) -> bool {
        self.table_of(file).is_some_and(|table| table.is_delete_pending(&file.object))
    }

    /// The number of opens of `file`, by all clients.
    #[must_use]
    pub fn opens_on(&self, file: &File) -> usize {
        self.table_of(file).map_or(0, |table| table.opens_on(&file.object))
    }

    /// The opens of `file` after the open `after`, in order, with their clients. [`OpenId`] 0 is
    /// before all.
    pub fn opens_at(&self, file: &File, after: OpenId) -> impl Iterator<Item = (OpenId, &Client)> {
        let table = self.table_of(file);
        let opens = table.into_iter().flat_map(move |table| table.opens_at(&file.object, after));
        opens.filter_map(|id| Some((id, &self.books.opens.get(id).ok()?.client)))
    }

    /// The access to `file` that its opens do not let others have. [`Sharing::DELETE`] is among it
    /// if the file may not be deleted or renamed by others.
    #[must_use]
    pub fn denied(&self, file: &File) -> Sharing {
        let table = self.table_of(file);
        table.map_or(Sharing::empty(), |table| table.denied(&file.object, &self.books.opens))
    }

    /// Locks `span` for an open (MS-FSA §2.1.5.8). With `wait`, the request waits while another
    /// lock conflicts with it, also a lock of the same open. Each request waits by itself, until it
    /// is granted or cancelled ([`Self::cancel_open`]) or the open is closed.
    ///
    /// # Errors
    /// [`Refused::Held`] without `wait`, [`Refused::Closed`], [`Refused::Grace`],
    /// [`Refused::Full`].
    pub fn lock_open(
        &mut self,
        now: Mono,
        open: OpenId,
        span: Span,
        mode: Mode,
        wait: Option<W>,
    ) -> Result<OpenLocked, Refused> {
        let (file, owner) = self.admit_lock(now, open)?;
        let table = self.volumes.get_mut(&file.volume).ok_or(Refused::NoVolume)?;
        table.lock_open(&file, &owner, (span, mode), wait, &mut self.books)
    }

    /// Takes all of these locks for an open at once, or none (MS-SMB2 §3.3.5.14.2).
    ///
    /// # Errors
    /// As [`Self::lock_open`] without `wait`.
    pub fn lock_all(
        &mut self,
        now: Mono,
        open: OpenId,
        locks: &[(Span, Mode)],
    ) -> Result<(), Refused> {
        let (file, owner) = self.admit_lock(now, open)?;
        let table = self.volumes.get_mut(&file.volume).ok_or(Refused::NoVolume)?;
        table.lock_all(&file, &owner, locks, &mut self.books)
    }

    /// Gives up one of an open's locks on exactly `span`, an exclusive one before shared ones
    /// (MS-FSA §2.1.5.9).
    ///
    /// # Errors
    /// [`NotLocked`], also if the open is closed.
    pub fn unlock_open(
        &mut self,
        open: OpenId,
        span: Span,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<(), NotLocked> {
        let (file, owner) = self.locker(open).map_err(|_| NotLocked)?;
        let table = self.volumes.get_mut(&file.volume).ok_or(NotLocked)?;
        table.unlock_open(&file, &owner, span, &mut self.books, grants)
    }

    /// Ends a wait of an open and gives its token; `None` if it does not wait, or not any more.
    pub fn cancel_open(
        &mut self,
        open: OpenId,
        wait: GrantId,
        grants: &mut Vec<Grant<W>>,
    ) -> Option<W> {
        let file = self.books.opens.get(open).ok()?.file();
        let table = self.volumes.get_mut(&file.volume)?;
        table.cancel_open(&file, open, wait, &mut self.books, grants)
    }

    /// Does any request of `open` about its locks, or to close it, take only a short time, whatever
    /// others hold?
    #[must_use]
    pub fn is_quick_open(&self, open: OpenId) -> bool {
        let Ok((file, owner)) = self.locker(open) else { return true };
        let table = self.table_of(&file);
        table.is_none_or(|table| table.is_quick_open(&file.object, &owner, &self.books))
    }

    /// Gives up all locks of an open, and gives the tokens of its requests that waited: the part of
    /// its [close](Self::close_file) that may take long.
    pub fn release_open(&mut self, open: OpenId, grants: &mut Vec<Grant<W>>) -> Vec<W> {
        let Ok((file, owner)) = self.locker(open) else { return Vec::new() };
        let Some(table) = self.volumes.get_mut(&file.volume) else { return Vec::new() };
        table.release_open(&file, &owner, &mut self.books, grants)
    }

    /// May the bytes of `span` be used like this? With `open`, the use conflicts with the locks of
    /// others, of whatever protocol; writing conflicts with shared locks of `open` itself too
    /// (MS-FSA §2.1.4.10). Without an open, which is how NFS clients use files, it conflicts with
    /// locks of opens, and with opens that do not share that use. A use of no bytes conflicts with
    /// nothing.
    ///
    /// # Errors
    /// [`Conflict::Locked`], and without an open [`Conflict::Denied`].
    pub fn io(
        &self,
        file: &File,
        open: Option<OpenId>,
        span: Span,
        io: Io,
    ) -> Result<(), Conflict> {
        let table = self.table_of(file);
        table.map_or(Ok(()), |table| table.io(&file.object, open, span, io, &self.books.opens))
    }

    /// The opens of all clients after the open `after`, in order. [`OpenId`] 0 is before all.
    pub fn opens(&self, after: OpenId) -> impl Iterator<Item = OpenFile> {
        self.books.opens.after(after)
    }

    /// The opens of `client` after the open `after`, in order.
    pub fn opens_of(&self, client: &Client, after: OpenId) -> impl Iterator<Item = OpenId> {
        self.books.accounts.opens_of(client, after)
    }

    /// The locks of `open`, in the order of their offsets, with the number of times that each is
    /// held.
    #[must_use]
    pub fn locks_of(&self, open: OpenId) -> Vec<(Span, Mode, usize)> {
        let Ok((file, owner)) = self.locker(open) else { return Vec::new() };
        let locks = self.table_of(&file).and_then(|table| table.file(&file.object));
        locks.map_or_else(Vec::new, |locks| locks.exact().of(&owner).collect())
    }

    fn table_of(&self, file: &File) -> Option<&Table<W>> {
        self.volumes.get(&file.volume)
    }

    /// The file of an open, and the owner of its locks.
    fn locker(&self, id: OpenId) -> Result<(File, Owner), Refused> {
        let open = self.books.opens.get(id)?;
        Ok((open.file(), open.owner(id)))
    }

    fn admit_lock(&self, now: Mono, open: OpenId) -> Result<(File, Owner), Refused> {
        let (file, owner) = self.locker(open)?;
        self.admits(now, file.volume, owner.client(), false)?;
        Ok((file, self.books.accounts.known(&owner)))
    }
}
