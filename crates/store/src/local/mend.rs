//! Mending: making holes of the blocks of a file that were allocated and never written.
//!
//! A power cut leaves such blocks inside a file's size, where the kernel had found a place for data
//! and not written it yet. They read as zeros. `SEEK_DATA` calls them a hole until somebody has
//! read them, and data from then on for as long as the kernel remembers that, so what they count
//! for would depend on the moment. A recount after an unclean stop mends each file before it visits
//! it: the walk and the first change, rename or link alike.
//!
//! Nothing is taken away that anybody wrote, whatever the file system's map says: while a file's
//! shape is held to be changed nobody writes to it, and of what the map calls unwritten only that
//! is punched which reads as zeros then, so that it reads the same before and after. The map alone
//! must not decide: it knows nothing of data in memory, and on XFS nothing of what lies ready to
//! take the place of blocks shared with another file. That is why everything is written down
//! first, under the same lock.
//!
//! A file that can't be mended (read-only, immutable, a file system without holes) stays as it is
//! and counts by what `SEEK_DATA` says. The time of modification is kept; the change time moves.

use super::attrs::stat;
use super::inode::{Inode, Reach};
use super::volume::{Step, Volume, Waiting};
use crate::creds::{as_root, switches_identity};
use crate::error::fs_error;
use crate::sync::Relaxed;
use crate::sys::{own_descriptors, unwritten};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    FallocateFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fallocate, fdatasync,
    fgetxattr, futimens, openat,
};
use rustix::io::{Errno, pread};
use std::ops::Range;
use weir_core::{Attr, FileKind, FsError, FsResult, Name, Timestamp};

/// The bytes that are read and punched at once, and the bytes per pass while writers wait. Whole
/// blocks of any file system.
const PIECE_BYTES: usize = 1 << 20;
const PASS_BYTES: u64 = 256 << 20;
/// The rights that a program has by its file. A change of data takes them off.
const CAPABILITY: &str = "security.capability";
const SET_IDS: u32 = 0o6000;

impl Volume {
    /// Mends the file called `name` in `dir`, if there is one: before the directory's lock is taken
    /// for which others would wait meanwhile.
    pub(super) fn mend_named(&self, dir: &Inode, name: Name<'_>, waiting: Waiting) -> Step<()> {
        if self.usage.is_known() || name.is_special() {
            return Ok(());
        }
        waiting.or_stop()?;
        let found = self.names.get(dir, name).map_or_else(|| self.open_name(dir, name), Ok);
        // An error of the name is reported by the operation that uses it.
        found.map_or(Ok(()), |inode| self.mend(&inode, waiting))
    }

    /// Mends a regular file, if the usage is being counted after an unclean stop and nobody has
    /// counted this file yet. To be called before the books are opened: it takes as long as writing
    /// down what is in memory of the file.
    pub(super) fn mend(&self, inode: &Inode, waiting: Waiting) -> Step<()> {
        if self.usage.is_known() || inode.kind != FileKind::Regular || inode.reach != Reach::Full {
            return Ok(());
        }
        if self.shape(inode, waiting)?.known {
            return Ok(());
        }
        waiting.or_stop()?;
        if self.usage.has_counted(inode.fileid) {
            return Ok(());
        }
        let size = stat(inode.fd())?.size;
        if self.must_mend(inode.fd(), size) {
            let done = self.mend_now(inode);
            // The cached attributes are those that clients got: the same, except for the change
            // time.
            inode.attrs.invalidate();
            if let Err(error) = done {
                let fileid = inode.fileid;
                tracing::warn!(%error, fileid, "cannot repair a file after the unclean shutdown");
            }
        }
        Ok(())
    }

    /// Has a file of `size` bytes to be mended before it is counted? A cheap look, which says yes
    /// too where data in memory is about to be written.
    pub(super) fn must_mend(&self, fd: BorrowedFd<'_>, size: u64) -> bool {
        if self.usage.is_known() {
            return false;
        }
        let mut at = Some(0);
        while let Some(from) = at {
            match unwritten(fd, from, size) {
                Ok(found) if !found.ranges.is_empty() => return true,
                Ok(found) => at = found.next,
                // No map: then nothing can be done either.
                Err(_) => return false,
            }
        }
        false
    }

    fn mend_now(&self, inode: &Inode) -> FsResult<()> {
        // A descriptor of its own: the kernel tells each of data that it could not write, once, and
        // it is clients that must be told.
        let (descriptors, number) = (own_descriptors()?, inode.fd.as_raw_fd().to_string());
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let open = |flags| openat(descriptors, number.as_str(), flags, Mode::empty());
        let file = self.with_descriptors(|| super::open::without_atime(flags, open))?;
        // Most of what is in memory goes to the disk while others may still write.
        fdatasync(&file).map_err(fs_error)?;
        let mut at = Some(0);
        while let Some(from) = at.filter(|_| !self.closing.load(Relaxed)) {
            at = self.mend_part(inode, &file, from)?;
        }
        Ok(())
    }

    /// Mends the file from `from` on, for as long as others may be kept waiting. Gives where to go
    /// on.
    fn mend_part(&self, inode: &Inode, file: &OwnedFd, from: u64) -> FsResult<Option<u64>> {
        let shape = inode.shape.write();
        // Somebody has counted it meanwhile.
        if shape.known {
            return Ok(None);
        }
        fdatasync(file).map_err(fs_error)?;
        let found = stat(file)?;
        let map = unwritten(file.as_fd(), from, found.size).map_err(fs_error)?;
        if map.ranges.is_empty() {
            return Ok(map.next);
        }
        let limit = self.unit.up(found.size);
        let done = as_root(|_| {
            may_punch(file, &found)?;
            punch(file, &found, &map.ranges, limit)
        })??;
        drop(shape);
        Ok(done.or(map.next))
    }
}

/// Can all else of the file be kept as it is? Tried before anything is done.
fn may_punch(file: &OwnedFd, found: &Attr) -> FsResult<()> {
    let programs = match fgetxattr(file, CAPABILITY, &mut [0u8; 0]) {
        Ok(_) => true,
        Err(Errno::NODATA | Errno::OPNOTSUPP) => false,
        Err(errno) => return Err(fs_error(errno)),
    };
    // A user other than root loses set-id bits by changing data.
    if programs || (found.mode & SET_IDS != 0 && !switches_identity()) {
        return Err(FsError::NotPermitted);
    }
    keep_times(file, found)
}

/// Sets the time of modification back to what it was.
fn keep_times(file: &OwnedFd, found: &Attr) -> FsResult<()> {
    let Timestamp { secs, nanos } = found.mtime;
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: secs, tv_nsec: i64::from(nanos) },
    };
    futimens(file, &times).map_err(fs_error)
}

/// Makes holes of `ranges` where they hold nothing but zeros, up to `limit`. Gives where to go on
/// if that was enough for now.
///
/// # Errors
/// `Io` where they hold anything else: then the map can't be believed and the rest is left alone.
fn punch(file: &OwnedFd, found: &Attr, ranges: &[Range<u64>], limit: u64) -> FsResult<Option<u64>> {
    let mut buffer = vec![0; PIECE_BYTES];
    let mut left = PASS_BYTES;
    for range in ranges {
        let (mut at, end) = (range.start, range.end.min(limit));
        while at < end {
            if left == 0 {
                return Ok(Some(at));
            }
            let length = (end - at).min(PIECE_BYTES as u64);
            if !is_zeros(file, at, length, &mut buffer)? {
                return Err(FsError::Io);
            }
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let punched = fallocate(file, hole, at, length).map_err(fs_error);
            // At once, because clients may look meanwhile.
            keep_times(file, found)?;
            punched?;
            at += length;
            left = left.saturating_sub(length);
        }
    }
    Ok(None)
}

/// Are there only zeros in `length` bytes from `start` on, or up to the end of the file?
fn is_zeros(file: &OwnedFd, start: u64, length: u64, buffer: &mut [u8]) -> FsResult<bool> {
    let (mut at, end) = (start, start + length);
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let part = buffer.get_mut(..wanted).ok_or(FsError::Io)?;
        let count = match pread(file, &mut *part, at) {
            Ok(0) => break,
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(fs_error(errno)),
        };
        // Sums, which are quick.
        let read = part.get(..count).ok_or(FsError::Io)?;
        if read.chunks(4096).any(|chunk| chunk.iter().fold(0, |sum, byte| sum | byte) != 0) {
            return Ok(false);
        }
        at += count as u64;
    }
    Ok(true)
}
