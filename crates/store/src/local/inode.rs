//! An object held open: its descriptor, key and caches.

use super::acl::Lists;
use super::attrs::{Attrs, Mutation};
use super::commit::SyncGroup;
use super::details::Extras;
use super::names::Changes;
use super::shape::Shape;
use super::switch::KnownIn;
use super::turns::Turns;
use super::uncommitted::Uncommitted;
use crate::descriptors::Share;
use crate::sync::{AtomicBool, Guard, Mutex, OnceLock, Relaxed, RwLock};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::hint::spin_loop;
use weir_core::attr::Change;
use weir_core::{Access, Acl, Attr, Credentials, FileKind, FsError, FsResult, ObjectKey, access};

/// Attempts to get the right to write into a file that another thread writes into. They took 6 µs
/// on an AMD EPYC, where the kernel took 1.5 µs to write 64 KiB within its caches and 8 µs to write
/// 64 KiB of a gigabyte.
const TRIES: u32 = 256;

/// The operations that the descriptor of an object permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Reading and writing (a directory: listing).
    Full,
    /// Reading only: the file system is read-only, or the server may not write the file.
    ReadOnly,
    /// Neither: links, special files, and files that an unprivileged server may not read.
    Path,
}

/// An object of a [`LocalStore`](super::LocalStore), held open. There is one of it for each
/// object at any time, so its caches speak for the object.
#[derive(Debug)]
pub struct Inode {
    /// Never used twice in a process, unlike inode numbers.
    pub(super) serial: u64,
    pub(super) key: ObjectKey,
    pub(super) kind: FileKind,
    pub(super) fileid: u64,
    pub(super) fd: OwnedFd,
    /// Covers `fd`, and is dropped after it.
    pub(super) _share: Share,
    pub(super) reach: Reach,
    pub(super) attrs: Attrs,
    pub(super) shape: RwLock<Shape>,
    /// A directory's entries: held while they change.
    pub(super) names: Mutex<Changes>,
    /// Held while data is written, so that no write waits in the kernel for another.
    pub(super) writing: Mutex<()>,
    pub(super) syncs: SyncGroup,
    pub(super) uncommitted: Uncommitted,
    /// Data was written whose writeback has not begun: the file is listed for it.
    pub(super) dirty: AtomicBool,
    pub(super) turns: Turns,
    /// Properties that most objects need not. Made when they are first needed.
    pub(super) extras: OnceLock<Box<Extras>>,
    /// Made by us, and nobody has set details yet.
    pub(super) plain: KnownIn,
    /// The last name is gone.
    pub(super) gone: AtomicBool,
}

impl AsFd for Inode {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Inode {
    /// The key that finds this object again.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        self.key
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn attr(&self) -> FsResult<Attr> {
        self.attrs.get(&self.fd)
    }

    /// The attributes and the access list that goes with them.
    pub(super) fn acl(&self) -> FsResult<(Attr, Option<Acl>)> {
        self.attrs.with_acl(&self.fd)
    }

    pub(super) fn lists(&self) -> Lists {
        Lists::of(self.kind, self.reach)
    }

    /// May `cred` set the size or the details of this object, which has been found with `found`?
    /// Its owner always may ([`Store::set_attr`](weir_core::Store::set_attr)).
    pub(super) fn may_change(&self, found: &Attr, cred: &Credentials) -> FsResult<bool> {
        if cred.uid == found.uid {
            return Ok(true);
        }
        let acl = if access::asks_acl(found, cred) { self.acl()?.1 } else { None };
        Ok(access::allows(found, acl.as_ref(), cred, Access::WRITE))
    }

    pub(super) fn begin(&self) -> Mutation<'_> {
        self.attrs.begin()
    }

    #[inline]
    pub(super) fn begin_write(&self) -> Mutation<'_> {
        self.attrs.begin_write()
    }

    /// The right to write data, unless somebody else has it for longer than some microseconds.
    #[inline]
    pub(super) fn try_writing(&self) -> Option<Guard<'_, ()>> {
        for _ in 0..TRIES {
            if let Some(right) = self.writing.try_lock() {
                return Some(right);
            }
            spin_loop();
        }
        None
    }

    pub(super) fn end(&self, mutation: Mutation<'_>) -> FsResult<Change> {
        mutation.end(&self.fd)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    pub(super) fn need_directory(&self) -> FsResult<()> {
        if self.kind == FileKind::Directory { Ok(()) } else { Err(FsError::NotDirectory) }
    }

    /// Is this a regular file whose data can be had, and for `writing` changed?
    pub(super) fn need_file(&self, writing: bool) -> FsResult<()> {
        match (self.kind, self.reach) {
            (FileKind::Regular, Reach::Full) => Ok(()),
            (FileKind::Regular, Reach::ReadOnly) if writing => Err(FsError::ReadOnly),
            (FileKind::Regular, Reach::ReadOnly) => Ok(()),
            (FileKind::Regular, Reach::Path) => Err(FsError::AccessDenied),
            (FileKind::Directory, _) => Err(FsError::IsDirectory),
            _ => Err(FsError::WrongKind),
        }
    }
}
