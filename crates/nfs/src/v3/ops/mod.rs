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

pub(super) use self::access::access;
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

use super::wire::{Fattr3, FileHandle3, Res, Status, WccData};
use crate::view::VolumeView;
use crate::xdr::{Encode, Writer};
use alloc::boxed::Box;
use core::future::Future;
use core::pin::Pin;
use core::task::Poll;
use weir_core::access::asks_acl;
use weir_core::attr::Change;
use weir_core::{
    Acl, AclKind, Attr, FileHandle, FileKind, FsError, FsResult, Rights, Shared, SnapshotId, Store,
};

/// The environment of every operation, besides its arguments.
pub(crate) struct Context<'a, S> {
    /// The volume the call is for.
    pub(crate) volume: &'a VolumeView<S>,
    /// The caller's rights.
    pub(crate) rights: &'a Rights,
    /// The first handle among the arguments, proved.
    pub(crate) handle: &'a FileHandle,
    /// The arguments as they came in.
    pub(crate) args: &'a Shared,
    /// The number of the call.
    pub(crate) xid: u32,
}

/// The outcome of an operation, besides the written reply.
pub(crate) struct Outcome {
    /// The status written.
    pub(crate) status: Status,
    /// Payload moved, in bytes.
    pub(crate) moved: u64,
}

impl From<Status> for Outcome {
    #[inline]
    fn from(status: Status) -> Self {
        Self { status, moved: 0 }
    }
}

/// A decision that is made already, nearly always, or that waits for an access list. Smaller than
/// the state of an async function, which would keep what it was called with. The future is a type
/// parameter, because an operation has to be `Send` where the futures of the store are.
enum Decision<F, T, E> {
    Made(Option<Result<T, E>>),
    ByList(Pin<Box<F>>),
}

impl<F, T, E> Future for Decision<F, T, E>
where
    F: Future<Output = Result<T, E>>,
    T: Unpin,
    E: Unpin,
{
    type Output = Result<T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut core::task::Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Made(decided) => decided.take().map_or(Poll::Pending, Poll::Ready),
            Self::ByList(waiting) => waiting.as_mut().poll(cx),
        }
    }
}

/// Why an operation on an object is refused before it starts, and the object's attributes as far
/// as they are known.
struct Refused {
    status: Status,
    attributes: Option<Fattr3>,
}

impl From<FsError> for Refused {
    fn from(error: FsError) -> Self {
        Self { status: error.into(), attributes: None }
    }
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
    pub(crate) async fn subject(&self) -> FsResult<(S::Object, Attr)> {
        let object = self.resolve().await?;
        let attr = self.volume.store.attr(&object).await?;
        Ok((object, attr))
    }

    /// The object of the call's first handle, if `permit` finds its attributes right. They are not
    /// kept: a call that waits for data is smaller without them.
    #[inline]
    async fn permitted(
        &self,
        permit: impl FnOnce(&Attr, Option<&Acl>) -> Result<(), Status>,
    ) -> Result<S::Object, Refused> {
        let object;
        let decision = {
            let attr;
            (object, attr) = self.subject().await?;
            self.decide(&object, &attr, |attr, acl| {
                let attributes = || Some(self.fattr(attr));
                permit(attr, acl).map_err(|status| Refused { status, attributes: attributes() })
            })
        };
        decision.await?;
        Ok(object)
    }

    /// Decides about an object by its attributes, and by its access list where that is needed for
    /// this caller: only then the store is asked for it.
    #[inline]
    fn decide<'f, T, E: From<FsError>, B: FnOnce(&Attr, Option<&Acl>) -> Result<T, E>>(
        &'f self,
        object: &'f S::Object,
        attr: &Attr,
        by: B,
    ) -> Decision<impl Future<Output = Result<T, E>> + use<'f, S, T, E, B>, T, E> {
        if !asks_acl(attr, &self.rights.cred) {
            return Decision::Made(Some(by(attr, None)));
        }
        Decision::ByList(Box::pin(async move {
            let (attr, acl) = self.volume.store.acl(object, AclKind::Access).await?;
            by(&attr, acl.as_ref())
        }))
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
    pub(crate) fn may_change(&self) -> Result<(), Status> {
        if self.rights.read_only { Err(Status::ROFS) } else { Ok(()) }
    }

    /// The attributes for the wire.
    #[inline]
    pub(crate) fn fattr(&self, attr: &Attr) -> Fattr3 {
        Fattr3::new(attr, self.volume.fsid)
    }

    /// The change for the wire.
    #[inline]
    fn wcc(&self, change: &Change) -> WccData {
        WccData::new(change, self.volume.fsid)
    }

    /// The attributes after a failure, for clients to correct their caches by.
    pub(crate) async fn fattr_after(&self, object: &S::Object) -> Option<Fattr3> {
        self.volume.store.attr(object).await.ok().map(|attr| self.fattr(&attr))
    }

    /// The attributes after a change, without those before it.
    async fn wcc_after(&self, object: &S::Object) -> WccData {
        WccData { before: None, after: self.fattr_after(object).await }
    }
}

/// Writes a result and gives its status.
#[inline]
pub(crate) fn answer<O: Encode, F: Encode>(out: &mut Writer, result: &Res<O, F>) -> Outcome {
    result.encode(out);
    result.status().into()
}

/// Writes a failure and what comes with it.
#[cold]
pub(crate) fn fail(out: &mut Writer, status: impl Into<Status>, with: impl Encode) -> Outcome {
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
