//! Open files: what each open does with its file and lets others do, and what is left to be done
//! when it is closed. Not here: names, rights, and anything else that a protocol keeps of an open.

use crate::error::Refused;
use crate::file::File;
use crate::owner::{Client, OpenId, Owner};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;
use weir_core::{ObjectKey, VolumeId};

bitflags::bitflags! {
    /// The uses of a file about which opens must agree.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Sharing: u8 {
        /// Read or execute its data.
        const READ = 1;
        /// Write its data or append to it.
        const WRITE = 2;
        /// Delete or rename it.
        const DELETE = 4;
    }
}

/// An open's use of its file. An open whose access is empty, because it is for attributes only,
/// conflicts with no other open, whatever either of them shares (MS-FSA §2.1.5.1.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpenMode {
    /// The access that was granted.
    pub access: Sharing,
    /// The access that others may have meanwhile.
    pub share: Sharing,
}

impl OpenMode {
    /// The access that others may not have meanwhile.
    pub(crate) fn denied(self) -> Sharing {
        if self.access.is_empty() { Sharing::empty() } else { self.share.complement() }
    }
}

/// An open as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// Its number.
    pub id: OpenId,
    /// The file.
    pub file: File,
    /// The client that opened it.
    pub client: Client,
    /// Its use of the file.
    pub mode: OpenMode,
    /// Whether the file is to be deleted because this open is closed.
    pub delete_on_close: bool,
}

/// The end of an open.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a file may have to be deleted, and requests may have to be answered"]
pub struct Closed<W> {
    /// The open.
    pub open: OpenId,
    /// Its file.
    pub file: File,
    /// Whether it was the file's last open.
    pub last: bool,
    /// If the file must be deleted now: the request to do so. It is the caller's to carry out.
    pub delete: Option<DeleteRequest>,
    /// Whether the file is to be deleted with its last open, at the request of this open.
    pub leaves_delete: bool,
    /// The tokens of its requests that waited for locks. They are over, without a lock.
    pub waiters: Vec<W>,
}

/// The reason for which a file is deleted: a client set it to be, by an open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteRequest {
    /// The open that had the right to delete the file. It may be closed by now.
    pub open: OpenId,
    /// The client of that open.
    pub client: Client,
}

/// An open in memory. There can be very many, so it is small: client and key are shared.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) client: Client,
    pub(crate) object: Arc<ObjectKey>,
    pub(crate) volume: VolumeId,
    pub(crate) mode: OpenMode,
    pub(crate) delete_on_close: bool,
}

const _: () = assert!(size_of::<Open>() <= 24);

impl Open {
    pub(crate) fn file(&self) -> File {
        File { volume: self.volume, object: *self.object }
    }

    /// The owner of this open's locks.
    pub(crate) fn owner(&self, id: OpenId) -> Owner {
        Owner::of_open(self.client.clone(), id)
    }

    fn listed(&self, id: OpenId) -> OpenFile {
        let Self { client, mode, delete_on_close, .. } = self;
        let (client, delete_on_close) = (client.clone(), *delete_on_close);
        OpenFile { id, file: self.file(), client, mode: *mode, delete_on_close }
    }
}

/// The opens of all volumes.
#[derive(Debug, Default)]
pub(crate) struct Opens {
    by_id: BTreeMap<OpenId, Open>,
}

impl Opens {
    pub(crate) fn insert(&mut self, id: OpenId, open: Open) {
        self.by_id.insert(id, open);
    }

    pub(crate) fn remove(&mut self, id: OpenId) -> Option<Open> {
        self.by_id.remove(&id)
    }

    /// The open with this number.
    ///
    /// # Errors
    /// [`Refused::Closed`].
    pub(crate) fn get(&self, id: OpenId) -> Result<&Open, Refused> {
        self.by_id.get(&id).ok_or(Refused::Closed)
    }

    /// Has the file deleted because this open is closed, or not.
    ///
    /// # Errors
    /// [`Refused::Closed`].
    pub(crate) fn set_delete_on_close(&mut self, id: OpenId, delete: bool) -> Result<(), Refused> {
        self.by_id.get_mut(&id).ok_or(Refused::Closed)?.delete_on_close = delete;
        Ok(())
    }

    /// The opens after `after`, in order.
    pub(crate) fn after(&self, after: OpenId) -> impl Iterator<Item = OpenFile> {
        let after = (Bound::Excluded(after), Bound::Unbounded);
        self.by_id.range(after).map(|(id, open)| open.listed(*id))
    }
}
