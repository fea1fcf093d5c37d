//! READ: from the page cache on the worker, from the disk in the pool.

use super::LocalStore;
use super::inode::Inode;
use crate::error::fs_error;
use crate::sync::Arc;
use crate::sys::read_cached;
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};
use weir_core::store::ReadDone;
use weir_core::{Attr, FsError, FsResult};

/// A read under way: what was asked for, within the file, and how much is there.
struct Reading {
    offset: u64,
    /// Bytes wanted in all, within the file's size.
    want: usize,
    got: usize,
    out: Vec<u8>,
    attr: Attr,
}

impl LocalStore {
    #[inline]
    pub(super) async fn read(
        &self,
        inode: &Arc<Inode>,
        offset: u64,
        count: u32,
        out: Vec<u8>,
    ) -> FsResult<ReadDone> {
        inode.need_file(false)?;
        let attr = inode.attr()?;
        let left = usize::try_from(attr.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let want = left.min(usize::try_from(count).unwrap_or(usize::MAX));
        let mut reading = Reading { offset, want, got: 0, out, attr };
        if want == 0 {
            return reading.done();
        }
        match read_cached(inode.fd(), &mut reading.out, want, offset) {
            Ok(got) => reading.got = got,
            // Not cached, or the file system doesn't know the flag.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR) => {}
            Err(other) => return Err(fs_error(other)),
        }
        if reading.got == want {
            return reading.done();
        }
        self.read_from_disk(inode, reading).await
    }

    /// Kept apart, so that the future of a cached read stays small.
    async fn read_from_disk(&self, inode: &Arc<Inode>, reading: Reading) -> FsResult<ReadDone> {
        let inode = Arc::clone(inode);
        Box::pin(self.pooled(move |_| reading.finish(&inode))).await
    }
}

impl Reading {
    fn finish(mut self, inode: &Inode) -> FsResult<ReadDone> {
        // `read_cached` has reserved room for all of it, and more may follow in the buffer, so the
        // rest is read into a buffer of its exact size.
        let mut rest = Vec::with_capacity(self.want - self.got);
        while self.got < self.want {
            let at = self.offset + u64::try_from(self.got).map_err(|_| FsError::Invalid)?;
            match pread(&inode.fd, spare_capacity(&mut rest), at) {
                // The file was cut short meanwhile.
                Ok(0) => {
                    self.attr = inode.attr()?;
                    break;
                }
                Ok(more) => self.got += more,
                Err(Errno::INTR) => {}
                Err(other) => return Err(fs_error(other)),
            }
        }
        self.out.extend_from_slice(&rest);
        self.done()
    }

    #[inline]
    fn done(self) -> FsResult<ReadDone> {
        let count = u32::try_from(self.got).map_err(|_| FsError::Invalid)?;
        let end = self.offset.saturating_add(u64::from(count));
        Ok(ReadDone { out: self.out, count, eof: end >= self.attr.size, attr: self.attr })
    }
}
