//! Access control lists, which the kernel keeps in two extended attributes. It also hands default
//! lists on to new objects and changes a list with the mode; nothing here does.

use super::Durability;
use super::LocalStore;
use super::commit::Extent;
use super::inode::{Inode, Reach};
use super::volume::Step;
use crate::acl_format::{self, BYTES_MAX};
use crate::creds::{as_caller, as_root};
use crate::error::fs_error;
use crate::sync::Arc;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr, getxattr, removexattr, setxattr};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use weir_core::{Acl, AclKind, Attr, Credentials, FileKind, FsError, FsResult};

/// Enough for a list of 127 entries; longer ones are read again with as much as there can be.
const FIRST_BYTES: usize = 1024;

/// The access to the ACLs of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lists {
    /// A symbolic link has none.
    None,
    /// By its descriptor.
    Descriptor,
    /// It is open by path only, which the kernel's calls for extended attributes don't take: by
    /// way of the process's own descriptors.
    OwnDescriptors,
}

impl Lists {
    pub(super) fn of(kind: FileKind, reach: Reach) -> Self {
        match (kind, reach) {
            (FileKind::Symlink, _) => Self::None,
            (_, Reach::Path) => Self::OwnDescriptors,
            _ => Self::Descriptor,
        }
    }

    /// A list of the object, asked from the kernel, which keeps the lists of open objects in
    /// memory: 0.2 to 0.3 µs.
    pub(super) fn read(self, fd: impl AsFd, kind: AclKind) -> FsResult<Option<Acl>> {
        if self == Self::None {
            return Ok(None);
        }
        let mut room = [MaybeUninit::uninit(); FIRST_BYTES];
        let found = match self.get(fd.as_fd(), kind, &mut room)? {
            Ok(bytes) => acl_format::read(bytes),
            Err(Errno::RANGE) => {
                let mut room = vec![MaybeUninit::uninit(); BYTES_MAX];
                match self.get(fd.as_fd(), kind, &mut room)? {
                    Ok(bytes) => acl_format::read(bytes),
                    Err(errno) => return Err(fs_error(errno)),
                }
            }
            // No list, or a file system without lists.
            Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(None),
            Err(errno) => return Err(fs_error(errno)),
        };
        found.map(Some).inspect_err(|_| tracing::warn!(?kind, "a list that can't be read"))
    }

    fn get<'a>(
        self,
        fd: BorrowedFd<'_>,
        kind: AclKind,
        room: &'a mut [MaybeUninit<u8>],
    ) -> FsResult<Result<&'a [u8], Errno>> {
        let got = match self {
            Self::OwnDescriptors => as_root(|_| getxattr(own_path(fd), name(kind), room))?,
            _ => fgetxattr(fd, name(kind), room),
        };
        Ok(got.map(|(bytes, _)| &*bytes))
    }

    fn set(self, fd: BorrowedFd<'_>, kind: AclKind, acl: Option<&Acl>) -> Result<(), Errno> {
        let flags = XattrFlags::empty();
        let done = match (self, acl) {
            (Self::None, _) => Err(Errno::OPNOTSUPP),
            (Self::OwnDescriptors, Some(acl)) => {
                setxattr(own_path(fd), name(kind), &acl_format::write(acl), flags)
            }
            (Self::OwnDescriptors, None) => removexattr(own_path(fd), name(kind)),
            (Self::Descriptor, Some(acl)) => {
                fsetxattr(fd, name(kind), &acl_format::write(acl), flags)
            }
            (Self::Descriptor, None) => fremovexattr(fd, name(kind)),
        };
        match done {
            Err(Errno::NODATA) if acl.is_none() => Ok(()),
            done => done,
        }
    }
}

const fn name(kind: AclKind) -> &'static std::ffi::CStr {
    match kind {
        AclKind::Access => c"system.posix_acl_access",
        AclKind::Default => c"system.posix_acl_default",
    }
}

/// The path of the object behind a descriptor that is open by path only, for calls that take a
/// path.
pub(super) fn own_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

impl LocalStore {
    pub(super) async fn acl(
        &self,
        inode: &Arc<Inode>,
        kind: AclKind,
    ) -> FsResult<(Attr, Option<Acl>)> {
        let (attr, access) = inode.acl()?;
        Ok(match kind {
            AclKind::Access => (attr, access),
            AclKind::Default if inode.kind == FileKind::Directory => {
                (attr, inode.lists().read(&inode.fd, kind)?)
            }
            AclKind::Default => (attr, None),
        })
    }

    pub(super) async fn set_acl(
        &self,
        inode: &Arc<Inode>,
        kind: AclKind,
        acl: Option<&Acl>,
        cred: &Credentials,
    ) -> FsResult<Attr> {
        let attr = match self.inline(|_, _| set_acl(inode, kind, acl, cred)) {
            Some(done) => done?,
            None => {
                let (inode, acl, cred) = (Arc::clone(inode), acl.cloned(), cred.clone());
                self.pooled_change(move |_, _| set_acl(&inode, kind, acl.as_ref(), &cred)).await?
            }
        };
        if self.2 == Durability::Power {
            self.settle(inode, Extent::All).await?;
        }
        Ok(attr)
    }
}

fn set_acl(inode: &Inode, kind: AclKind, acl: Option<&Acl>, cred: &Credentials) -> Step<Attr> {
    if inode.lists() == Lists::None {
        return Err(FsError::NotSupported.into());
    }
    if kind == AclKind::Default && inode.kind != FileKind::Directory {
        return if acl.is_some() { Err(FsError::AccessDenied.into()) } else { Ok(inode.attr()?) };
    }
    let mut mutation = inode.begin();
    mutation.changes_acl();
    as_caller(cred, |_| inode.lists().set(inode.fd(), kind, acl))?.map_err(fs_error)?;
    Ok(inode.end(mutation)?.after.ok_or(FsError::Io)?)
}
