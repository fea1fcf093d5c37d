//! Calls on open files.

use super::{Called, FileRef, InodeRef, Mount};
use crate::sync::Arc;
use rustix::io::Errno;
use std::ptr::null_mut;

impl Mount {
    /// Opens a regular file, as the superuser: the right to was decided before.
    ///
    /// # Errors
    /// The library's.
    pub fn open(self: &Arc<Self>, inode: &InodeRef, writes: bool) -> Called<FileRef> {
        let inode = self.own(inode)?;
        let flags = if writes { libc::O_RDWR } else { libc::O_RDONLY };
        let mut raw = null_mut();
        // SAFETY: mount, inode and identity are valid, and `raw` is valid to write to.
        let opened = unsafe {
            (self.functions.ceph_ll_open)(
                self.raw.as_ptr(),
                inode,
                flags,
                &raw mut raw,
                self.perm(None),
            )
        };
        self.done(opened)?;
        self.file(raw)
    }

    /// Appends up to `count` bytes from `offset` on to `out`. Gives how many; 0 at the end.
    ///
    /// # Errors
    /// The library's.
    pub fn read(
        &self,
        file: &FileRef,
        offset: u64,
        count: usize,
        out: &mut Vec<u8>,
    ) -> Called<usize> {
        let file = self.own_file(file)?;
        let offset = i64::try_from(offset).map_err(|_| Errno::INVAL)?;
        out.reserve(count);
        let start = out.len();
        let spare = out.spare_capacity_mut();
        let room = count.min(spare.len());
        // SAFETY: mount and file are valid, and the library writes at most `room` bytes to memory
        // that `out` owns and that nothing else refers to.
        let got = unsafe {
            (self.functions.ceph_ll_read)(
                self.raw.as_ptr(),
                file,
                offset,
                room as u64,
                spare.as_mut_ptr().cast(),
            )
        };
        let got = usize::try_from(self.done(got)?).map_err(|_| Errno::IO)?.min(room);
        // SAFETY: the library has initialised `got` bytes after `start`, within the capacity.
        unsafe { out.set_len(start + got) };
        Ok(got)
    }

    /// Writes from the front of `data`. Gives how many bytes were.
    ///
    /// # Errors
    /// The library's.
    pub fn write(&self, file: &FileRef, offset: u64, data: &[u8]) -> Called<usize> {
        let file = self.own_file(file)?;
        let offset = i64::try_from(offset).map_err(|_| Errno::FBIG)?;
        // SAFETY: mount and file are valid, and the library reads as many bytes as `data` has.
        let put = unsafe {
            (self.functions.ceph_ll_write)(
                self.raw.as_ptr(),
                file,
                offset,
                data.len() as u64,
                data.as_ptr().cast(),
            )
        };
        usize::try_from(self.done(put)?).map_err(|_| Errno::IO)
    }

    /// Waits until what was written to a file is stable, and tells an earlier failure of that.
    ///
    /// # Errors
    /// The library's.
    pub fn fsync(&self, file: &FileRef) -> Called<()> {
        let file = self.own_file(file)?;
        // SAFETY: mount and file are valid.
        let synced = unsafe { (self.functions.ceph_ll_fsync)(self.raw.as_ptr(), file, 0) };
        self.done(synced).map(drop)
    }

    /// Makes a hole, and keeps the size.
    ///
    /// # Errors
    /// The library's.
    pub fn punch(&self, file: &FileRef, offset: u64, length: u64) -> Called<()> {
        let file = self.own_file(file)?;
        let number = |number| i64::try_from(number).map_err(|_| Errno::FBIG);
        let (offset, length) = (number(offset)?, number(length)?);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: mount and file are valid.
        let done = unsafe {
            (self.functions.ceph_ll_fallocate)(self.raw.as_ptr(), file, mode, offset, length)
        };
        self.done(done).map(drop)
    }
}
