//! Inodes, open files and identities of libcephfs as owned values, which are given back when they
//! are dropped.

use super::{Called, Mount, value};
use crate::ffi::{CephFs, RawFile, RawInode, RawPerm};
use crate::sync::Arc;
use rustix::io::Errno;
use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};
use weir_core::Credentials;

/// An inode of a [`Mount`], which the library keeps in memory until this is dropped. Dropping
/// blocks.
#[derive(Debug)]
pub struct InodeRef {
    pub(super) mount: Arc<Mount>,
    pub(super) raw: NonNull<RawInode>,
}

// SAFETY: libcephfs may be called from any thread, and its inodes belong to the mount's lock.
unsafe impl Send for InodeRef {}
// SAFETY: as above.
unsafe impl Sync for InodeRef {}

impl Drop for InodeRef {
    fn drop(&mut self) {
        // SAFETY: mount and inode are valid, and the inode is not used again.
        unsafe { (self.mount.functions.ceph_ll_put)(self.mount.raw.as_ptr(), self.raw.as_ptr()) };
    }
}

/// A file of a [`Mount`] that is open. It is closed when dropped, which blocks.
#[derive(Debug)]
pub struct FileRef {
    pub(super) mount: Arc<Mount>,
    pub(super) raw: NonNull<RawFile>,
}

// SAFETY: libcephfs may be called from any thread, and its files belong to the mount's lock.
unsafe impl Send for FileRef {}
// SAFETY: as above.
unsafe impl Sync for FileRef {}

impl Drop for FileRef {
    fn drop(&mut self) {
        // SAFETY: mount and file are valid, and the file is not used again.
        let closed = unsafe {
            (self.mount.functions.ceph_ll_close)(self.mount.raw.as_ptr(), self.raw.as_ptr())
        };
        if let Err(error) = value(closed) {
            tracing::debug!(%error, "a file on Ceph was closed with an error");
        }
    }
}

/// A caller's identity as the library takes it.
#[derive(Debug)]
pub struct Perm {
    functions: &'static CephFs,
    pub(super) raw: NonNull<RawPerm>,
    /// The library keeps a pointer to them.
    _groups: Box<[u32]>,
}

impl Perm {
    pub(super) fn new(functions: &'static CephFs, cred: &Credentials) -> Called<Self> {
        // To the library this number is whoever runs the process.
        if cred.uid == u32::MAX || cred.gid == u32::MAX {
            return Err(Errno::ACCESS);
        }
        let mut groups: Box<[u32]> = cred.groups().as_slice().into();
        let count = c_int::try_from(groups.len()).map_err(|_| Errno::INVAL)?;
        let list = if groups.is_empty() { null_mut() } else { groups.as_mut_ptr() };
        // SAFETY: there are `count` groups at `list`, which stay there as long as the identity.
        let raw = unsafe { (functions.ceph_userperm_new)(cred.uid, cred.gid, count, list) };
        let raw = NonNull::new(raw).ok_or(Errno::NOMEM)?;
        Ok(Self { functions, raw, _groups: groups })
    }
}

impl Drop for Perm {
    fn drop(&mut self) {
        // SAFETY: the identity is valid and not used again.
        unsafe { (self.functions.ceph_userperm_destroy)(self.raw.as_ptr()) };
    }
}
