//! The entries of one response: as many as fit, with what the class shows of each.

use crate::fscc::{DirectoryClass, FileInfo, Listing};
use crate::host::{Host, ObjectOf};
use crate::ops::access::allowed;
use crate::ops::info::file_info;
use alloc::vec::Vec;
use core::ops::ControlFlow;
use weir_core::store::{DirEntry, Want};
use weir_core::{Access, Attr, Details, FsError, FsResult, Store};

/// Entries that one look at the directory gives at most.
const PAGE_ENTRIES_MAX: usize = 1024;

/// Bytes of names that one look at the directory gives at most.
pub(super) const PAGE_NAME_BYTES_MAX: usize = 64 << 10;

/// Bytes that the name of an entry may well have on the wire.
const USUAL_NAME_BYTES: usize = 24;

/// Growing entries at the end of a response.
pub(super) struct Entries<'a, H: Host> {
    host: &'a H,
    class: DirectoryClass,
    list: Listing,
    /// The most bytes of all entries.
    max: usize,
    /// Is one entry enough?
    single: bool,
    /// May the user look at the objects of the directory? If not, there are only names.
    pub(super) searchable: bool,
    out: &'a mut Vec<u8>,
}

impl<'a, H: Host> Entries<'a, H> {
    /// No entries, of at most `max` bytes, after what is in `out`.
    pub(super) fn new(
        host: &'a H,
        class: DirectoryClass,
        (max, single): (usize, bool),
        out: &'a mut Vec<u8>,
    ) -> Self {
        let list = Listing::new(class, max, out);
        Self { host, class, list, max, single, searchable: false, out }
    }

    /// Are there none yet?
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The knowledge of an entry that it takes to append it.
    pub(super) fn want(&self) -> Want {
        if self.class.shows_attributes() {
            Want::Details
        } else if self.hides() {
            Want::Attributes
        } else {
            Want::Names
        }
    }

    /// Entries to read at once, if all of them are wanted.
    pub(super) fn page(&self) -> usize {
        let usual = self.class.fixed_bytes().saturating_add(USUAL_NAME_BYTES);
        let fit = self.max.checked_div(usual).unwrap_or(0);
        if self.single { 1 } else { fit.clamp(1, PAGE_ENTRIES_MAX) }
    }

    /// Entries to read at once, if only some are wanted.
    pub(super) const fn page_of_some() -> usize {
        PAGE_ENTRIES_MAX
    }

    /// May there be entries that are not shown to the user?
    pub(super) fn hides(&self) -> bool {
        self.host.share().access_based_enumeration
    }

    /// Appends an object, under a name that it has in the directory. Breaks when nothing more is to
    /// be appended; `Ok(false)` if not even this has been.
    pub(super) fn object(
        &mut self,
        name: &[u8],
        attr: &Attr,
        details: &Details,
    ) -> ControlFlow<bool> {
        self.push(name, &file_info(attr, details, false))
    }

    fn push(&mut self, name: &[u8], file: &FileInfo) -> ControlFlow<bool> {
        if !self.list.push(file, name, self.out) {
            return ControlFlow::Break(false);
        }
        if self.single { ControlFlow::Break(true) } else { ControlFlow::Continue(()) }
    }

    /// Appends an entry that was read with [`Entries::want`], unless its object was removed
    /// or may not be shown.
    ///
    /// # Errors
    /// The errors of the store.
    pub(super) async fn entry(&mut self, entry: &DirEntry) -> FsResult<ControlFlow<bool>> {
        if self.want() == Want::Names {
            return Ok(self.push(&entry.name, &FileInfo::default()));
        }
        let Some((key, attr)) = &entry.object else { return Ok(ControlFlow::Continue(())) };
        if self.hides() {
            let object = match self.host.store().resolve(key).await {
                Err(FsError::Stale | FsError::NotFound) => return Ok(ControlFlow::Continue(())),
                object => object?,
            };
            if !self.is_seen(&object, attr).await? {
                return Ok(ControlFlow::Continue(()));
            }
        }
        Ok(match (&entry.details, self.class.shows_attributes()) {
            (Some(details), true) if self.searchable => self.object(&entry.name, attr, details),
            (_, true) => ControlFlow::Continue(()),
            (_, false) => self.push(&entry.name, &FileInfo::default()),
        })
    }

    /// Appends an object that was found by its name, unless it is gone or not to be seen.
    ///
    /// # Errors
    /// The errors of the store.
    pub(super) async fn found(
        &mut self,
        name: &[u8],
        object: &ObjectOf<H>,
    ) -> FsResult<ControlFlow<bool>> {
        let (attr, details) = match self.host.store().details(object).await {
            Err(FsError::Stale) => return Ok(ControlFlow::Continue(())),
            known => known?,
        };
        if self.hides() && !self.is_seen(object, &attr).await? {
            return Ok(ControlFlow::Continue(()));
        }
        Ok(match self.class.shows_attributes() {
            true if !self.searchable => ControlFlow::Continue(()),
            _ => self.object(name, &attr, &details),
        })
    }

    /// May the user open it, in a share that hides the other names?
    async fn is_seen(&self, object: &ObjectOf<H>, attr: &Attr) -> FsResult<bool> {
        let cred = &self.host.user().credentials;
        allowed(self.host.store(), object, attr, cred, Access::READ).await
    }
}
