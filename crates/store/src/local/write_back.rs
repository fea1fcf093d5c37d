//! The writeback of one file; when it is due is [`crate::writeback`]'s.

use super::inode::Inode;
use crate::sync::{AcqRel, Acquire, Arc, Release, now};
use crate::sys::start_writeback;
use crate::writeback::{Dirty, Writeback};
use rustix::fd::AsFd;
use rustix::fs::fstat;
use std::thread::sleep;
use std::time::Duration;

/// A file is written back in pieces, of which it has so many at most: a sparse file can have a
/// length of petabytes.
const PIECE_BYTES_MIN: u64 = 4 * 1024 * 1024;
const PIECES_MAX: u64 = 1024;
/// After each piece the thread sleeps for so many times as long as the piece took: early writeback
/// takes at most a sixteenth of a processor, and of the time of a disk that is slow.
const REST: u32 = 15;
/// A piece in which nothing was dirty takes less, and needs no sleep.
const CLEAN: Duration = Duration::from_micros(50);

impl Inode {
    /// Lists the file for writeback, unless it is listed. Called after each write.
    #[inline]
    pub(super) fn list_for(self: &Arc<Self>, writeback: &Writeback) {
        if !self.dirty.load(Acquire) && !self.dirty.swap(true, AcqRel) {
            let own = Arc::downgrade(self);
            if !writeback.list(own) {
                self.dirty.store(false, Release);
            }
        }
    }
}

impl Dirty for Inode {
    fn write_back(&self) {
        // First: what is written from now on may be written behind the pieces that are done.
        self.dirty.store(false, Release);
        let Ok(status) = fstat(&self.fd) else { return };
        if status.st_nlink == 0 {
            return;
        }
        let length = u64::try_from(status.st_size).unwrap_or(0);
        let piece = PIECE_BYTES_MIN.max(length.div_ceil(PIECES_MAX));
        let mut offset = 0;
        while offset < length {
            let began = now();
            if let Err(errno) = start_writeback(self.as_fd(), offset, piece) {
                let (errno, fileid) = (errno.raw_os_error(), self.fileid);
                tracing::debug!(errno, fileid, "early writeback failed; the kernel tries again");
                return;
            }
            offset += piece;
            let took = now().since(began);
            if took > CLEAN {
                sleep(took * REST);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Relaxed;
    use crate::{Descriptors, Durability, LocalStore, Options, Pool, prepare_process};
    use weir_core::store::{CreateHow, Stability};
    use weir_core::testing::block_on;
    use weir_core::{Credentials, Name, SetAttr, Store};

    #[test]
    fn a_written_file_is_listed_once_and_again_after_its_writeback() {
        prepare_process().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            quota_bytes: 1 << 30,
            namespace_durability: Durability::Process,
            metadata_cache: true,
            cached_objects_max: 16,
            descriptors: Descriptors::new(1024),
            pool: Pool::new(2).unwrap(),
        };
        let store = LocalStore::open(&directory.path().join("volume"), &options).unwrap();
        let (root, how) = (store.root(), CreateHow::Guarded(SetAttr::default()));
        let name = Name::new(b"file").unwrap();
        let made = block_on(store.create(&root, name, &how, &Credentials::ROOT)).unwrap();
        let (file, writeback) = (made.object, options.pool.writeback());
        let write = |offset| {
            let data = vec![1; 100].into();
            block_on(store.write(&file, offset, data, Stability::Unstable.into())).unwrap();
        };
        assert_eq!((file.dirty.load(Relaxed), writeback.files()), (false, 0));
        write(0);
        write(1 << 40);
        assert_eq!((file.dirty.load(Relaxed), writeback.files()), (true, 1));
        file.write_back();
        assert!(!file.dirty.load(Relaxed));
        write(0);
        assert_eq!(
            (file.dirty.load(Relaxed), writeback.files()),
            (true, 2),
            "the first is due still"
        );
    }
}
