//! The unit in which a volume's data is counted, and how much of a file is data: what the kernel's
//! `SEEK_DATA` and `SEEK_HOLE` tell, which is exact also for data that was never written back.

use crate::error::fs_error;
use rustix::fd::BorrowedFd;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use weir_core::FsResult;

/// 4 KiB, or the file system's block where that is larger: holes come in whole blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit(u64);

const UNIT_BYTES_MIN: u64 = 4096;

impl Unit {
    /// The unit on a file system whose blocks have `block_bytes`, a power of two.
    pub(super) fn on_blocks_of(block_bytes: u64) -> Self {
        Self(block_bytes.max(UNIT_BYTES_MIN).next_power_of_two())
    }

    /// `bytes`, rounded up to whole units.
    pub(super) fn up(self, bytes: u64) -> u64 {
        self.down(bytes.saturating_add(self.0 - 1))
    }

    /// `bytes`, rounded down to whole units.
    pub(super) fn down(self, bytes: u64) -> u64 {
        bytes & !(self.0 - 1)
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
            at = stop.max(at + self.0);
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
    }
}
