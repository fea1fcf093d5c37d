//! The length of a regular file, and the part of it that is data and counts for the volume's usage.
//!
//! The shape is right because every change of it goes through Weir and holds the file's lock for
//! writing. A write that lies within a file without holes changes nothing of it: it holds the lock
//! for reading, so that nobody cuts the file meanwhile, and costs no system call more.

use super::attrs::stat;
use super::inode::Inode;
use super::units::Unit;
use super::volume::{Step, Stop, Volume, Waiting};
use crate::creds::as_root;
use crate::error::fs_error;
use crate::sync::{ReadGuard, WriteGuard};
use rustix::fd::BorrowedFd;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, ftruncate, seek};
use rustix::io::Errno;
use weir_core::{Attr, FsResult};

/// The holes of a file longer than this are looked for in the pool: there may be many.
const SCAN_INLINE_MAX: u64 = 64 << 20;

/// A regular file's length and data. Other objects have none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Has the kernel been asked yet?
    pub(super) known: bool,
    /// Has the file a name? Without one it counts for nothing.
    pub(super) linked: bool,
    pub(super) size: u64,
    /// Bytes of the units that hold data.
    pub(super) data: u64,
    /// Has the file surely no hole, not even in a unit that holds data too? Asked only where blocks
    /// are smaller than units.
    pub(super) solid: bool,
}

/// Room between the end of a file and what is about to be put behind it.
#[derive(Clone, Copy)]
pub(super) struct Gap {
    start: u64,
    end: u64,
    /// The bytes of data in it: its first unit, or nothing.
    data: u64,
}

impl Shape {
    /// Of an object that was there already; the kernel is asked when it matters.
    pub(super) const UNKNOWN: Self =
        Self { known: false, linked: true, size: 0, data: 0, solid: false };
    /// Of a file that was just made.
    pub(super) const EMPTY: Self =
        Self { known: true, linked: true, size: 0, data: 0, solid: true };

    /// The bytes that the file counts for.
    pub(super) fn counts(&self) -> u64 {
        if self.linked { self.data } else { 0 }
    }

    /// Is all up to `end` data?
    #[inline]
    pub(super) fn covers(&self, unit: Unit, end: u64) -> bool {
        self.known && end <= self.size && self.data == unit.up(self.size)
    }

    /// Asks the kernel. Stops what may not wait before a scan that may take long.
    pub(super) fn load(&mut self, fd: BorrowedFd<'_>, unit: Unit, waiting: Waiting) -> Step<()> {
        let Attr { size, used, nlink, .. } = stat(fd)?;
        let (data, solid) = match seek(fd, SeekFrom::Hole(0)) {
            _ if size == 0 => (0, true),
            Ok(hole) if hole >= size => (unit.up(size), true),
            Ok(_) => {
                if size > SCAN_INLINE_MAX {
                    waiting.or_stop()?;
                }
                (unit.data(fd, 0, size)?, false)
            }
            // Open by path only.
            Err(Errno::BADF) => (estimate(unit, size, used), false),
            Err(errno) => return Err(fs_error(errno).into()),
        };
        // Whoever found the file by a name may have been overtaken by the removal of that name.
        *self = Self { known: true, linked: nlink > 0, size, data, solid };
        Ok(())
    }

    /// Bytes of the units that `start..end` touches which hold no data yet.
    pub(super) fn missing(
        &self,
        fd: BorrowedFd<'_>,
        unit: Unit,
        (start, end): (u64, u64),
    ) -> FsResult<u64> {
        let (start, end) = (unit.down(start), unit.up(end));
        let inside = end.min(unit.up(self.size));
        let has = if start >= inside {
            0
        } else if self.covers(unit, self.size) {
            inside - start
        } else {
            unit.data(fd, start, inside)?
        };
        Ok((end - start).saturating_sub(has))
    }

    /// Bytes of the unit that `end` lies in the middle of, if it holds data. Where blocks are as
    /// large as units, and in a file without holes, nothing is asked: of the unit that a file is
    /// cut in, what stays is data if the unit was.
    pub(super) fn doubtful(&self, fd: BorrowedFd<'_>, unit: Unit, end: u64) -> FsResult<u64> {
        if self.solid || !unit.has_smaller_blocks() || end == unit.down(end) {
            return Ok(0);
        }
        unit.data(fd, end, end)
    }

    /// Prepares for putting the end of the file at or data behind `to`, which lies behind the end.
    ///
    /// XFS keeps blocks in reserve behind the end of a file. Those that came to lie inside would
    /// be read as zeros and from then on be told for data, so they are given back first: cutting a
    /// file to its own size does that.
    pub(super) fn gap(&self, fd: BorrowedFd<'_>, unit: Unit, to: u64) -> FsResult<Option<Gap>> {
        let (start, end) = (unit.down(self.size), to);
        if end <= start {
            return Ok(None);
        }
        let tail = unit.up(self.size);
        if end > tail {
            as_root(|_| ftruncate(fd, self.size))?.map_err(fs_error)?;
        }
        let dense = self.covers(unit, self.size);
        let data = if dense { tail - start } else { unit.data(fd, start, self.size)? };
        Ok(Some(Gap { start, end, data }))
    }
}

impl Gap {
    /// Makes a hole again of what became data although nobody wrote it, now that it lies within
    /// the file: btrfs does that to a last unit that was a hole and not whole.
    pub(super) fn keep(self, fd: BorrowedFd<'_>, unit: Unit) -> FsResult<()> {
        if unit.data(fd, self.start, self.end)? <= self.data {
            return Ok(());
        }
        let start = self.start + self.data;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(fd, hole, start, self.end - start).map_err(fs_error)
    }
}

impl Volume {
    /// The shape, to be looked at; nobody changes it meanwhile.
    ///
    /// A thread that mends a file holds its shape for as long as the disk needs (see
    /// [`super::mend`]). So until the usage is known, a caller that may not wait gets the shape
    /// only if it is free.
    #[inline]
    pub(super) fn shape<'a>(
        &self,
        inode: &'a Inode,
        waiting: Waiting,
    ) -> Step<ReadGuard<'a, Shape>> {
        if waiting == Waiting::Allowed || self.usage.is_known() {
            return Ok(inode.shape.read());
        }
        inode.shape.try_read().ok_or(Stop::WouldWait)
    }

    /// The shape, to be changed; nobody else changes it or writes to the file meanwhile. Waits for
    /// writes under way, as the kernel would for its own lock of the file.
    pub(super) fn shape_to_change<'a>(
        &self,
        inode: &'a Inode,
        waiting: Waiting,
    ) -> Step<WriteGuard<'a, Shape>> {
        let mut shape = if waiting == Waiting::Allowed || self.usage.is_known() {
            inode.shape.write()
        } else {
            inode.shape.try_write().ok_or(Stop::WouldWait)?
        };
        if !shape.known {
            shape.load(inode.fd(), self.unit, waiting)?;
        }
        Ok(shape)
    }
}

/// The data of a file with `size` bytes and so many bytes of blocks, in which the server may not
/// look for holes: it runs without privilege and may not read the file.
pub(super) fn estimate(unit: Unit, size: u64, block_bytes: u64) -> u64 {
    unit.up(size).min(unit.up(block_bytes))
}
