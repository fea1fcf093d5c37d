//! The unit in which a volume's data is counted, and how much of a file is data: what the kernel's
//! `SEEK_DATA` and `SEEK_HOLE` tell, which is exact also for data that was never written back.

use crate::error::fs_error;
use rustix::fd::BorrowedFd;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use weir_core::FsResult;

/// 4 KiB, or the file system's block where that is larger. Holes come in whole blocks; where those
/// are smaller, a unit counts as soon as one of its blocks holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    bytes: u64,
    block_bytes: u64,
}

const UNIT_BYTES_MIN: u64 = 4096;

impl Unit {
    /// The unit on a file system whose blocks have `block_bytes`, a power of two.
    pub(super) fn on_blocks_of(block_bytes: u64) -> Self {
        let bytes = block_bytes.max(UNIT_BYTES_MIN).next_power_of_two();
        Self { bytes, block_bytes: block_bytes.max(1).next_power_of_two() }
    }

    /// Can a unit hold data and have holes as well?
    pub(super) fn has_smaller_blocks(self) -> bool {
        self.block_bytes < self.bytes
    }

    /// The end of the block in which what has `bytes` ends.
    pub(super) fn block_end(self, bytes: u64) -> u64 {
        bytes.saturating_add(self.block_bytes - 1) & !(self.block_bytes - 1)
    }

    /// Does a write from `offset` on leave a whole block of a file out that ended at `size`?
    pub(super) fn leaves_a_block(self, size: u64, offset: u64) -> bool {
        self.block_end(size).saturating_add(self.block_bytes) <= offset
    }

    /// `bytes`, rounded up to whole units.
    pub(super) fn up(self, bytes: u64) -> u64 {
        self.down(bytes.saturating_add(self.bytes - 1))
    }

    /// `bytes`, rounded down to whole units.
    pub(super) fn down(self, bytes: u64) -> u64 {
        bytes & !(self.bytes - 1)
    }

    /// Bytes of the units that `start..end` touches which hold data. Two system calls for each
    /// stretch of data.
    pub(super) fn data(self, fd: BorrowedFd<'_>, start: u64, end: u64) -> FsResult<u64> {
        let (mut at, end) = (self.down(start), self.up(end));
        let mut data = 0;
        // Nothing else uses the descriptor's position.
        while at < end {
            let begin = match seek(fd, SeekFrom::Data(at)) {
                Ok(begin) if begin < end => begin,
                Ok(_) | Err(Errno::NXIO) => break,
                Err(errno) => return Err(fs_error(errno)),
            };
            let hole = match seek(fd, SeekFrom::Hole(begin)) {
                Ok(hole) => hole,
                // Cut meanwhile.
                Err(Errno::NXIO) => break,
                Err(errno) => return Err(fs_error(errno)),
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

    #[test]
    fn a_unit_is_4_kib_or_a_larger_block() {
        let unit = Unit::on_blocks_of(1024);
        assert_eq!([0, 1, 4095, 4096, 4097].map(|n| unit.up(n)), [0, 4096, 4096, 4096, 8192]);
        assert_eq!([0, 4095, 4096].map(|n| unit.down(n)), [0, 0, 4096]);
        assert_eq!(unit.up(u64::MAX), u64::MAX - 4095);
        assert_eq!(Unit::on_blocks_of(16 << 10).up(1), 16 << 10);
        let smaller =
            [512, 1024, 4096, 16 << 10].map(|b| Unit::on_blocks_of(b).has_smaller_blocks());
        assert_eq!(smaller, [true, true, false, false]);
    }

    #[test]
    fn a_block_is_left_out_only_by_what_passes_all_of_it() {
        let unit = Unit::on_blocks_of(1024);
        let passed = [(0, 1024), (1, 2048), (1024, 2048), (1025, 4000)];
        assert!(passed.iter().all(|&(from, to)| unit.leaves_a_block(from, to)));
        let kept = [(0, 0), (0, 1023), (1, 1024), (1, 2047), (1025, 3071), (5000, 10)];
        assert!(kept.iter().all(|&(from, to)| !unit.leaves_a_block(from, to)));
    }
}
