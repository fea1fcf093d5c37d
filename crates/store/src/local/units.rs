//! The unit in which a volume's data is counted, and how much of a file is data.
//!
//! On ext4 and XFS that is what the file system's map of the file shows: blocks that are allocated,
//! and those that are to be as soon as what was written goes to disk. The map knows no difference
//! between blocks that were written and those that never were because the power went before;
//! `SEEK_DATA` does, and changes its mind about them once somebody has read them. Elsewhere
//! `SEEK_DATA` and `SEEK_HOLE` are asked: btrfs keeps no such blocks, and its map is slow.

use crate::error::fs_error;
use crate::sys::{Extents, extents};
use rustix::fd::BorrowedFd;
use rustix::fs::{SeekFrom, fstatfs, seek};
use rustix::io::Errno;
use weir_core::FsResult;

/// 4 KiB, or the file system's block where that is larger: holes come in whole blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    bytes: u64,
    source: Source,
}

/// Who is asked what of a file is data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The file system's map of the file (FIEMAP).
    Map,
    /// `lseek` with `SEEK_DATA` and `SEEK_HOLE`.
    Seek,
}

const UNIT_BYTES_MIN: u64 = 4096;

impl Unit {
    /// The unit on the file system of an open object.
    pub(super) fn on_file_system_of(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let found = fstatfs(fd)?;
        let source = match found.f_type {
            libc::EXT4_SUPER_MAGIC | libc::XFS_SUPER_MAGIC => Source::Map,
            _ => Source::Seek,
        };
        let block = u64::try_from(found.f_frsize).unwrap_or(UNIT_BYTES_MIN);
        Ok(Self::on_blocks_of(block, source))
    }

    /// The unit where blocks have `block_bytes`, a power of two.
    fn on_blocks_of(block_bytes: u64, source: Source) -> Self {
        Self { bytes: block_bytes.max(UNIT_BYTES_MIN).next_power_of_two(), source }
    }

    /// `bytes`, rounded up to whole units.
    pub(super) fn up(self, bytes: u64) -> u64 {
        self.down(bytes.saturating_add(self.bytes - 1))
    }

    /// `bytes`, rounded down to whole units.
    pub(super) fn down(self, bytes: u64) -> u64 {
        bytes & !(self.bytes - 1)
    }

    /// Bytes of the units that `start..end` touches which hold data.
    pub(super) fn data(self, fd: BorrowedFd<'_>, start: u64, end: u64) -> FsResult<u64> {
        self.try_data(fd, start, end).map_err(fs_error)
    }

    /// The same, with the kernel's error: `EBADF` for an object that is open by path only.
    pub(super) fn try_data(self, fd: BorrowedFd<'_>, start: u64, end: u64) -> Result<u64, Errno> {
        let (start, end) = (self.down(start), self.up(end));
        match self.source {
            Source::Map => self.mapped(fd, start, end),
            Source::Seek => self.sought(fd, start, end),
        }
    }

    /// One system call for each few dozen stretches of data.
    fn mapped(self, fd: BorrowedFd<'_>, start: u64, end: u64) -> Result<u64, Errno> {
        let (mut at, mut data) = (start, 0);
        while at < end {
            let Extents { found, more } = extents(fd, at, end - at)?;
            for extent in found {
                // A unit with several extents counts once.
                let (begin, stop) = (self.down(extent.start).max(at), self.up(extent.end).min(end));
                data += stop.saturating_sub(begin);
                at = at.max(stop);
            }
            if !more {
                break;
            }
        }
        Ok(data)
    }

    /// Two system calls for each stretch of data.
    fn sought(self, fd: BorrowedFd<'_>, start: u64, end: u64) -> Result<u64, Errno> {
        let (mut at, mut data) = (start, 0);
        // Nothing else uses the descriptor's position.
        while at < end {
            let begin = match seek(fd, SeekFrom::Data(at)) {
                Ok(begin) if begin < end => begin,
                Ok(_) | Err(Errno::NXIO) => break,
                Err(errno) => return Err(errno),
            };
            let hole = match seek(fd, SeekFrom::Hole(begin)) {
                Ok(hole) => hole,
                // Cut meanwhile.
                Err(Errno::NXIO) => break,
                Err(errno) => return Err(errno),
            };
            // A unit with several stretches of data counts once.
            let stop = self.up(hole).min(end);
            data += stop.saturating_sub(self.down(begin).max(at));
            at = stop.max(at + self.bytes);
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use rustix::fs::{FallocateFlags, fallocate};
    use std::collections::BTreeSet;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_unit_is_4_kib_or_a_larger_block() {
        let unit = Unit::on_blocks_of(1024, Source::Map);
        assert_eq!([0, 1, 4095, 4096, 4097].map(|n| unit.up(n)), [0, 4096, 4096, 4096, 8192]);
        assert_eq!([0, 4095, 4096].map(|n| unit.down(n)), [0, 0, 4096]);
        assert_eq!(unit.up(u64::MAX), u64::MAX - 4095);
        assert_eq!(Unit::on_blocks_of(16 << 10, Source::Seek).up(1), 16 << 10);
    }

    /// A file with stretches of data of all lengths, at places where units and blocks meet badly.
    fn striped(file: &File, stretches: u64) -> u64 {
        let (mut at, mut units) = (0, BTreeSet::new());
        for number in 0..stretches {
            let bytes = 1 + number * 911 % 20_000;
            file.write_all_at(&vec![1; usize::try_from(bytes).unwrap()], at).unwrap();
            units.extend(at / 4096..=(at + bytes - 1) / 4096);
            at += bytes + number * 1777 % 40_000;
        }
        units.len() as u64 * 4096
    }

    #[test]
    fn both_ways_of_asking_agree_before_and_after_writing_back() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create(directory.path().join("striped")).unwrap();
        // More than one call of the map shows.
        let written = striped(&file, 400);
        let size = file.metadata().unwrap().len();
        let own = Unit::on_file_system_of(file.as_fd()).unwrap();
        for synced in [false, true] {
            if synced {
                file.sync_all().unwrap();
            }
            for source in [own.source, Source::Seek] {
                let unit = Unit::on_blocks_of(4096, source);
                assert_eq!(unit.data(file.as_fd(), 0, size), Ok(written), "{source:?} {synced}");
                let halves = [(0, 1 << 21), (1 << 21, size)];
                let sum: u64 =
                    halves.map(|(a, b)| unit.data(file.as_fd(), a, b).unwrap()).iter().sum();
                assert_eq!(sum, written, "{source:?} {synced}");
            }
        }
    }

    #[test]
    fn blocks_never_written_count_whether_they_were_read_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create_new(directory.path().join("reserved")).unwrap();
        let unit = Unit::on_file_system_of(file.as_fd()).unwrap();
        if unit.source == Source::Seek {
            return;
        }
        // What a power cut leaves: blocks that are the file's and were never written.
        fallocate(&file, FallocateFlags::empty(), 8192, 16384).unwrap();
        let reader = File::open(directory.path().join("reserved")).unwrap();
        for read in [false, true] {
            if read {
                reader.read_exact_at(&mut [1; 24_576], 0).unwrap();
            }
            assert_eq!(unit.data(file.as_fd(), 0, 24_576), Ok(16_384), "read: {read}");
        }
    }
}
