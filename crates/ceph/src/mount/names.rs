//! Calls that change names.

use super::{Called, FileRef, InodeRef, Mount, Perm};
use crate::ffi::Statx;
use crate::sync::Arc;
use std::ffi::CStr;
use std::ptr::null_mut;

/// The objects that [`Mount::make`] makes.
#[derive(Clone, Copy, Debug)]
pub enum New<'a> {
    /// A directory.
    Directory,
    /// A symbolic link with this target.
    Symlink(&'a CStr),
    /// A device, pipe or socket: the kind bits of the mode, and the number of the device as kernels
    /// encode it.
    Special(u32, u64),
}

impl Mount {
    /// Makes a file that is not there, and opens it for reading and writing.
    ///
    /// # Errors
    /// The library's.
    pub fn create(
        self: &Arc<Self>,
        dir: &InodeRef,
        name: &CStr,
        mode: u32,
        perm: &Perm,
    ) -> Called<(InodeRef, FileRef)> {
        let dir = self.own(dir)?;
        let (mut raw, mut file, mut found) = (null_mut(), null_mut(), Statx::default());
        // SAFETY: mount, directory and identity are valid, the name is a C string, and the rest is
        // valid to write to.
        let done = unsafe {
            (self.functions.ceph_ll_create)(
                self.raw.as_ptr(),
                dir,
                name.as_ptr(),
                mode,
                libc::O_CREAT | libc::O_EXCL | libc::O_RDWR,
                &raw mut raw,
                &raw mut file,
                &raw mut found,
                0,
                0,
                self.perm(Some(perm)),
            )
        };
        self.done(done)?;
        Ok((self.inode(raw)?, self.file(file)?))
    }

    /// Makes another object.
    ///
    /// # Errors
    /// The library's.
    pub fn make(
        self: &Arc<Self>,
        dir: &InodeRef,
        name: &CStr,
        (new, mode): (New<'_>, u32),
        perm: &Perm,
    ) -> Called<InodeRef> {
        let dir = self.own(dir)?;
        let (mut raw, mut found) = (null_mut(), Statx::default());
        let (out, attr) = (&raw mut raw, &raw mut found);
        let (mount, dir, perm) = (self.raw.as_ptr(), dir, self.perm(Some(perm)));
        let (name, functions) = (name.as_ptr(), self.functions);
        // SAFETY: mount, directory and identity are valid, the strings are C strings, and the rest
        // is valid to write to.
        let done = unsafe {
            match new {
                New::Directory => {
                    (functions.ceph_ll_mkdir)(mount, dir, name, mode, out, attr, 0, 0, perm)
                }
                New::Symlink(target) => {
                    let target = target.as_ptr();
                    (functions.ceph_ll_symlink)(mount, dir, name, target, out, attr, 0, 0, perm)
                }
                New::Special(kind, number) => {
                    let mode = kind | mode;
                    (functions.ceph_ll_mknod)(mount, dir, name, mode, number, out, attr, 0, 0, perm)
                }
            }
        };
        self.done(done)?;
        self.inode(raw)
    }

    /// Gives an object one more name.
    ///
    /// # Errors
    /// The library's.
    pub fn link(&self, inode: &InodeRef, dir: &InodeRef, name: &CStr, perm: &Perm) -> Called<()> {
        let inode = self.own(inode)?;
        let dir = self.own(dir)?;
        let (inode, dir) = (inode, dir);
        // SAFETY: mount, inodes and identity are valid, and the name is a C string.
        let done = unsafe {
            (self.functions.ceph_ll_link)(
                self.raw.as_ptr(),
                inode,
                dir,
                name.as_ptr(),
                self.perm(Some(perm)),
            )
        };
        self.done(done).map(drop)
    }

    /// Renames, and replaces what has the new name.
    ///
    /// # Errors
    /// The library's.
    pub fn rename(
        &self,
        (from_dir, from): (&InodeRef, &CStr),
        (to_dir, to): (&InodeRef, &CStr),
        perm: &Perm,
    ) -> Called<()> {
        let from_dir = self.own(from_dir)?;
        let to_dir = self.own(to_dir)?;
        // SAFETY: mount, directories and identity are valid, and the names are C strings.
        let done = unsafe {
            (self.functions.ceph_ll_rename)(
                self.raw.as_ptr(),
                from_dir,
                from.as_ptr(),
                to_dir,
                to.as_ptr(),
                self.perm(Some(perm)),
            )
        };
        self.done(done).map(drop)
    }

    /// Removes a name: that of an empty directory, or of anything else.
    ///
    /// # Errors
    /// The library's.
    pub fn remove(&self, dir: &InodeRef, name: &CStr, directory: bool, perm: &Perm) -> Called<()> {
        let dir = self.own(dir)?;
        let functions = self.functions;
        let remove = if directory { functions.ceph_ll_rmdir } else { functions.ceph_ll_unlink };
        // SAFETY: mount, directory and identity are valid, and the name is a C string.
        let done = unsafe { remove(self.raw.as_ptr(), dir, name.as_ptr(), self.perm(Some(perm))) };
        self.done(done).map(drop)
    }
}
