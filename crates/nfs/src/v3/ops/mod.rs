//! The procedures of NFSv3, one file each, named as RFC 1813 names them.
//!
//! An operation resolves the call's handle, decides access where the store does not
//! ([`weir_core::access`]), asks the store, and writes status and result. It knows no socket, no
//! export rule and no contract.

mod access;
mod commit;
mod create;
mod fsinfo;
mod fsstat;
mod getattr;
mod link;
mod lookup;
mod made;
mod mkdir;
mod mknod;
mod name;
mod pathconf;
mod read;
mod readdir;
mod readdirplus;
mod readlink;
mod remove;
mod rename;
mod rmdir;
mod setattr;
mod symlink;
mod write;

pub(super) use access::access;
pub(super) use commit::commit;
pub(super) use create::create;
pub(super) use fsinfo::fsinfo;
pub(super) use fsstat::fsstat;
pub(super) use getattr::getattr;
pub(super) use link::link;
pub(super) use lookup::lookup;
pub(super) use mkdir::mkdir;
pub(super) use mknod::mknod;
pub(super) use pathconf::pathconf;
pub(super) use read::read;
pub(super) use readdir::readdir;
pub(super) use readdirplus::readdirplus;
pub(super) use readlink::readlink;
pub(super) use remove::remove;
pub(super) use rename::rename;
pub(super) use rmdir::rmdir;
pub(super) use setattr::setattr;
pub(super) use symlink::symlink;
pub(super) use write::write;

use super::serve::{Rights, Volume};
use super::wire::{Fattr3, FileHandle3, Res, Status, WccData};
use crate::xdr::{Encode, Writer};
use weir_core::attr::Change;
use weir_core::{Attr, FileHandle, FileKind, FsError, FsResult, Shared, SnapshotId, Store};

/// What every operation is given besides its arguments.
pub(super) struct Context<'a, S> {
    /// The volume the call is for.
    pub(super) volume: &'a Volume<S>,
    /// Who calls.
    pub(super) rights: &'a Rights,
    /// The first handle among the arguments, proved.
    pub(super) handle: &'a FileHandle,
    /// The arguments as they came in.
    pub(super) args: &'a Shared,
    /// The number of the call.
    pub(super) xid: u32,
}

/// What an operation came to, besides what it wrote.
pub(super) struct Outcome {
    /// The status written.
    pub(super) status: Status,
    /// Payload moved, in bytes.
    pub(super) moved: u64,
}

impl From<Status> for Outcome {
    #[inline]
    fn from(status: Status) -> Self {
        Self { status, moved: 0 }
    }
}

/// Why an operation on an object is refused before it starts, and the object's attributes as far
/// as they are known.
struct Refused {
    status: Status,
    attributes: Option<Fattr3>,
}

impl<S: Store> Context<'_, S> {
    /// The object of the call's first handle.
    #[inline]
    async fn resolve(&self) -> FsResult<S::Object> {
        if self.handle.snapshot != SnapshotId::LIVE {
            return Err(FsError::Stale);
        }
        self.volume.store.resolve(&self.handle.key).await
    }

    /// The object of the call's first handle, and its attributes.
    #[inline]
    async fn subject(&self) -> FsResult<(S::Object, Attr)> {
        let object = self.resolve().await?;
        let attr = self.volume.store.attr(&object).await?;
        Ok((object, attr))
    }

    /// The object of the call's first handle, if `permit` finds its attributes right. They are not
    /// kept: a call that waits for data is smaller without them.
    #[inline]
    async fn permitted(
        &self,
        permit: impl FnOnce(&Attr) -> Result<(), Status>,
    ) -> Result<S::Object, Refused> {
        match self.subject().await {
            Ok((object, attr)) => match permit(&attr) {
                Ok(()) => Ok(object),
                Err(status) => Err(Refused { status, attributes: Some(self.fattr(&attr)) }),
            },
            Err(error) => Err(Refused { status: error.into(), attributes: None }),
        }
    }

    /// The object of a second handle, which must be of the same volume (RFC 1813 §3.3.14, §3.3.15:
    /// NFS3ERR_XDEV).
    async fn second(&self, handle: FileHandle3<'_>) -> Result<S::Object, Status> {
        let handle = self.volume.keys.open(handle.0)?;
        if handle.volume != self.handle.volume || handle.snapshot != self.handle.snapshot {
            return Err(Status::XDEV);
        }
        Ok(self.volume.store.resolve(&handle.key).await?)
    }

    /// Refuses changes on a read-only export.
    fn may_change(&self) -> Result<(), Status> {
        if self.rights.read_only { Err(Status::ROFS) } else { Ok(()) }
    }

    /// The attributes for the wire.
    #[inline]
    fn fattr(&self, attr: &Attr) -> Fattr3 {
        Fattr3::new(attr, self.volume.fsid)
    }

    /// The change for the wire.
    #[inline]
    fn wcc(&self, change: &Change) -> WccData {
        WccData::new(change, self.volume.fsid)
    }

    /// The attributes after a failure, for clients to correct their caches by.
    async fn fattr_after(&self, object: &S::Object) -> Option<Fattr3> {
        self.volume.store.attr(object).await.ok().map(|attr| self.fattr(&attr))
    }

    /// The same as a change without a beginning.
    async fn wcc_after(&self, object: &S::Object) -> WccData {
        WccData { before: None, after: self.fattr_after(object).await }
    }
}

/// Writes a result and gives its status.
#[inline]
fn answer<O: Encode, F: Encode>(out: &mut Writer, result: &Res<O, F>) -> Outcome {
    result.encode(out);
    result.status().into()
}

/// Writes a failure and what comes with it.
#[cold]
fn fail(out: &mut Writer, status: impl Into<Status>, with: impl Encode) -> Outcome {
    answer(out, &Res::<(), _>::Fail(status.into(), with))
}

/// Refuses anything but a regular file: data is in those alone.
#[inline]
fn regular(attr: &Attr) -> Result<(), Status> {
    match attr.kind {
        FileKind::Regular => Ok(()),
        FileKind::Directory => Err(Status::ISDIR),
        _ => Err(Status::INVAL),
    }
}

/// Refuses anything but a directory.
#[inline]
fn directory(attr: &Attr) -> Result<(), Status> {
    if attr.kind == FileKind::Directory { Ok(()) } else { Err(Status::NOTDIR) }
}
