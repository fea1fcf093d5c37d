//! Calls on inodes. Not here: changes of names, and the data of files.

use super::{Called, InodeRef, Mount, Perm};
use crate::ffi::{NO_SNAPSHOT, STATX_ALL, SnapInode, Statx};
use crate::sync::Arc;
use rustix::io::Errno;
use std::ffi::{CStr, c_int};
use std::ptr::null_mut;

impl Mount {
    /// The directory that is mounted.
    ///
    /// # Errors
    /// The library's.
    pub fn top(self: &Arc<Self>) -> Called<InodeRef> {
        Ok(InodeRef { mount: Arc::clone(self), raw: self.raw_top()? })
    }

    /// The object with this inode number.
    ///
    /// # Errors
    /// The library's.
    pub fn by_number(self: &Arc<Self>, ino: u64) -> Called<InodeRef> {
        let (mut raw, live) = (null_mut(), SnapInode { ino, snapshot: NO_SNAPSHOT });
        // SAFETY: the mount is valid, and `raw` is valid to write to.
        let found =
            unsafe { (self.functions.ceph_ll_lookup_vino)(self.raw.as_ptr(), live, &raw mut raw) };
        self.done(found)?;
        self.inode(raw)
    }

    /// The object of this name, and its attributes.
    ///
    /// # Errors
    /// The library's.
    pub fn lookup(self: &Arc<Self>, dir: &InodeRef, name: &CStr) -> Called<(InodeRef, Statx)> {
        let dir = self.own(dir)?;
        let (mut raw, mut found) = (null_mut(), Statx::default());
        // SAFETY: mount, directory and identity are valid, the name is a C string, and the rest is
        // valid to write to.
        let done = unsafe {
            (self.functions.ceph_ll_lookup)(
                self.raw.as_ptr(),
                dir,
                name.as_ptr(),
                &raw mut raw,
                &raw mut found,
                STATX_ALL,
                0,
                self.perm(None),
            )
        };
        self.done(done)?;
        Ok((self.inode(raw)?, found))
    }

    /// The attributes.
    ///
    /// # Errors
    /// `STALE` or `NOENT` for an object that is gone; the library's.
    pub fn getattr(&self, inode: &InodeRef) -> Called<Statx> {
        let inode = self.own(inode)?;
        let mut found = Statx::default();
        // SAFETY: mount, inode and identity are valid, and `found` has the form that was checked.
        let done = unsafe {
            (self.functions.ceph_ll_getattr)(
                self.raw.as_ptr(),
                inode,
                &raw mut found,
                STATX_ALL,
                0,
                self.perm(None),
            )
        };
        self.done(done)?;
        Ok(found)
    }

    /// Sets the attributes that `mask` names.
    ///
    /// # Errors
    /// The library's.
    pub fn setattr(
        &self,
        inode: &InodeRef,
        mut set: Statx,
        mask: c_int,
        perm: Option<&Perm>,
    ) -> Called<()> {
        let inode = self.own(inode)?;
        // SAFETY: mount, inode and identity are valid, and so is `set`.
        let done = unsafe {
            (self.functions.ceph_ll_setattr)(
                self.raw.as_ptr(),
                inode,
                &raw mut set,
                mask,
                self.perm(perm),
            )
        };
        self.done(done).map(drop)
    }

    /// Waits until data and attributes of an object, and the names in a directory, are stable.
    ///
    /// # Errors
    /// The library's.
    pub fn sync_inode(&self, inode: &InodeRef) -> Called<()> {
        let inode = self.own(inode)?;
        // SAFETY: mount and inode are valid.
        let synced = unsafe { (self.functions.ceph_ll_sync_inode)(self.raw.as_ptr(), inode, 0) };
        self.done(synced).map(drop)
    }

    /// Reads an extended attribute into `room`. Gives its length, also where `room` is empty.
    ///
    /// # Errors
    /// The library's.
    pub fn getxattr(&self, inode: &InodeRef, name: &CStr, room: &mut [u8]) -> Called<usize> {
        let inode = self.own(inode)?;
        // SAFETY: mount, inode and identity are valid, the name is a C string, and the library
        // writes at most as many bytes as `room` has.
        let got = unsafe {
            (self.functions.ceph_ll_getxattr)(
                self.raw.as_ptr(),
                inode,
                name.as_ptr(),
                room.as_mut_ptr().cast(),
                room.len(),
                self.perm(None),
            )
        };
        usize::try_from(self.done(got)?).map_err(|_| Errno::IO)
    }

    /// Sets an extended attribute, or removes it.
    ///
    /// # Errors
    /// The library's.
    pub fn setxattr(
        &self,
        inode: &InodeRef,
        name: &CStr,
        value: Option<&[u8]>,
        perm: Option<&Perm>,
    ) -> Called<()> {
        let inode = self.own(inode)?;
        let (mount, inode, perm) = (self.raw.as_ptr(), inode, self.perm(perm));
        let done = match value {
            // SAFETY: mount, inode and identity are valid, the name is a C string, and the library
            // reads as many bytes as `value` has.
            Some(value) => unsafe {
                (self.functions.ceph_ll_setxattr)(
                    mount,
                    inode,
                    name.as_ptr(),
                    value.as_ptr().cast(),
                    value.len(),
                    0,
                    perm,
                )
            },
            // SAFETY: as above.
            None => unsafe {
                (self.functions.ceph_ll_removexattr)(mount, inode, name.as_ptr(), perm)
            },
        };
        match self.done(done) {
            Err(Errno::NODATA) if value.is_none() => Ok(()),
            done => done.map(drop),
        }
    }

    /// Waits until this client has the newest map of OSDs. Blocks until the monitors answer.
    ///
    /// The library offers no call for that alone. It does it before it sets the data pool of a
    /// directory to one that it does not know, in case that is a new one. There is no pool of this
    /// name, so nothing is set.
    ///
    /// # Errors
    /// The library's.
    pub(crate) fn fetch_map(self: &Arc<Self>) -> Called<()> {
        let top = self.top()?;
        match self.setxattr(&top, c"ceph.dir.layout.pool", Some(b".weir-no-such-pool"), None) {
            // There is no such pool, or the user may not set one.
            Err(Errno::INVAL | Errno::NOENT | Errno::PERM | Errno::ACCESS) => Ok(()),
            done => done,
        }
    }

    /// Bytes that the data pool of this directory has room for.
    ///
    /// # Errors
    /// The library's.
    pub fn available_bytes(&self, inode: &InodeRef) -> Called<u64> {
        let inode = self.own(inode)?;
        // SAFETY: all of `statvfs` is integers, for which zeroes are valid.
        let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: mount and inode are valid, and `found` is valid to write to.
        let done =
            unsafe { (self.functions.ceph_ll_statfs)(self.raw.as_ptr(), inode, &raw mut found) };
        self.done(done)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// The target of a symbolic link, cut to the length of `room`.
    ///
    /// # Errors
    /// The library's.
    pub fn readlink(&self, inode: &InodeRef, room: &mut [u8]) -> Called<usize> {
        let inode = self.own(inode)?;
        // SAFETY: mount, inode and identity are valid, and the library writes at most as many bytes
        // as `room` has.
        let got = unsafe {
            (self.functions.ceph_ll_readlink)(
                self.raw.as_ptr(),
                inode,
                room.as_mut_ptr().cast(),
                room.len(),
                self.perm(None),
            )
        };
        usize::try_from(self.done(got)?).map_err(|_| Errno::IO)
    }
}
