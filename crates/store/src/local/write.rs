//! WRITE: into the page cache, on the worker while the volume's writes are quick (see
//! [`crate::pace`]), otherwise in the pool. `RWF_NOWAIT` would not help: ext4 refuses it for
//! writes, XFS and btrfs answer `EAGAIN` nearly always.
//!
//! The kernel lets one write into a file at a time. A worker that waits for another one's there may
//! wait for long, because that one has lost its processor, and would learn from it that writes are
//! slow. So a file has a lock for its writes, which a worker tries for some microseconds before it
//! gives the write to the pool. The wait for the lock is no part of the time of the write.

use super::LocalStore;
use super::commit::Extent;
use super::inode::Inode;
use super::volume::{Step, Stop, Volume, Waiting};
use crate::creds::as_root;
use crate::error::fs_error;
use crate::sync::Arc;
use rustix::fs::{Mode, fchmod};
use rustix::io::{Errno, pwrite};
use weir_core::attr::Change;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::store::{Stability, WriteDone, WriteHow};
use weir_core::{FsError, FsResult, Shared};

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o010;

impl LocalStore {
    #[inline]
    pub(super) async fn write(
        &self,
        inode: &Arc<Inode>,
        offset: u64,
        data: Shared,
        how: WriteHow,
    ) -> FsResult<WriteDone> {
        inode.need_file(true)?;
        let length = u64::try_from(data.len()).map_err(|_| FsError::TooLarge)?;
        if offset.checked_add(length).is_none_or(|end| end > FILE_BYTES_MAX) {
            return Err(FsError::TooLarge);
        }
        let how = WriteHow { stability: self.possible(inode, how.stability), ..how };
        if how.stability == Stability::Unstable
            && let Some(done) = self.inline(|v, waiting| {
                let _right = inode.try_writing().ok_or(Stop::WouldWait)?;
                write_now(v, inode, (offset, &data), how, waiting)
            })
        {
            return done;
        }
        Box::pin(self.write_in_pool(inode, offset, data, how)).await
    }

    /// The stability that is possible: without room for more objects with uncommitted data, the
    /// data of this write is synced.
    #[inline]
    fn possible(&self, inode: &Inode, asked: Stability) -> Stability {
        if asked > Stability::Unstable || inode.uncommitted.may_be() {
            return asked;
        }
        self.0.make_room(inode);
        Stability::DataSync
    }

    async fn write_in_pool(
        &self,
        inode: &Arc<Inode>,
        offset: u64,
        data: Shared,
        how: WriteHow,
    ) -> FsResult<WriteDone> {
        // It may wait long, and must not pin the buffer it came in for that.
        let (own, data) = (Arc::clone(inode), data.detach());
        let mut done = self
            .in_turn(inode, move |volume| {
                // The wait for a worker that writes is over before the pace begins to look.
                let _right = own.writing.lock();
                volume.changed(|v, waiting| write_now(v, &own, (offset, &data), how, waiting))
            })
            .await?;
        match how.stability {
            Stability::Unstable => return Ok(done),
            Stability::DataSync => self.settle(inode, Extent::Data).await?,
            Stability::FileSync => self.settle(inode, Extent::All).await?,
        }
        done.committed = how.stability;
        Ok(done)
    }
}

fn write_now(
    volume: &Volume,
    inode: &Arc<Inode>,
    (offset, data): (u64, &[u8]),
    how: WriteHow,
    waiting: Waiting,
) -> Step<WriteDone> {
    let mut mutation = inode.begin_write();
    let mode = match how.gives_change {
        true => mutation.found(&inode.fd)?.mode,
        false => mutation.found_mode(&inode.fd)?,
    };
    let end = offset.saturating_add(data.len() as u64);
    let put = || put(inode, mode, offset, data);
    let shape = volume.shape(inode, waiting)?;
    let written = if data.is_empty() || shape.covers(volume.unit, end) {
        let written = put()?;
        // Held up to here, so that nobody has cut the file meanwhile.
        drop(shape);
        written
    } else {
        drop(shape);
        volume.write_new(inode, (offset, end), put, waiting)?
    };
    inode.uncommitted.note();
    inode.list_for(&volume.writeback);
    let change = if how.gives_change || has_set_id(mode) {
        inode.end(mutation)?
    } else {
        mutation.end_blind();
        Change::default()
    };
    let count = u32::try_from(written).map_err(|_| FsError::Invalid)?;
    Ok(WriteDone { count, committed: Stability::Unstable, change })
}

const fn has_set_id(mode: u32) -> bool {
    mode & (SET_UID | SET_GID) != 0
}

fn put(inode: &Inode, mode: u32, offset: u64, data: &[u8]) -> FsResult<usize> {
    if !has_set_id(mode) {
        return write_all(inode, offset, data);
    }
    // As root, so that what the kernel strips by itself doesn't depend on whose identity the
    // thread has kept.
    let written = as_root(|_| write_all(inode, offset, data))??;
    if written > 0 {
        strip_set_id(inode, mode)?;
    }
    Ok(written)
}

/// Writes all of `data`, or what there is room for.
fn write_all(inode: &Inode, offset: u64, data: &[u8]) -> FsResult<usize> {
    let mut written = 0;
    while let Some(rest) = data.get(written..).filter(|rest| !rest.is_empty()) {
        let at = offset + u64::try_from(written).map_err(|_| FsError::TooLarge)?;
        match pwrite(&inode.fd, rest, at) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(_) if written > 0 => break,
            Err(errno) => return Err(fs_error(errno)),
        }
    }
    Ok(written)
}

/// Takes set-user-id and set-group-id off a file that was written to. The kernel does so for
/// writers without `CAP_FSETID` only, and ours writes as root on behalf of others.
pub(super) fn strip_set_id(inode: &Inode, mode: u32) -> FsResult<()> {
    let group = if mode & GROUP_EXECUTE != 0 { SET_GID } else { 0 };
    let strip = mode & (SET_UID | group);
    if strip == 0 {
        return Ok(());
    }
    let mode = Mode::from_raw_mode(mode & !strip);
    as_root(|_| fchmod(&inode.fd, mode))?.map_err(fs_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Descriptors, Durability, Options, Pool};
    use std::pin::pin;
    use std::task::{Context, Waker};
    use weir_core::store::CreateHow;
    use weir_core::testing::block_on;
    use weir_core::{Credentials, Name, SetAttr, Store};

    #[test]
    fn a_worker_gives_a_write_to_the_pool_while_another_one_into_the_file_takes_long() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            quota_bytes: 1 << 30,
            namespace_durability: Durability::Process,
            metadata_cache: true,
            cached_objects_max: 100,
            descriptors: Descriptors::new(1024),
            pool: Pool::new(2).unwrap(),
        };
        let store = LocalStore::open(&directory.path().join("volume"), &options).unwrap();
        let (root, name) = (store.root(), Name::new(b"f").unwrap());
        let (how, by) = (CreateHow::Unchecked(SetAttr::default()), Credentials::new(0, 0));
        let file = block_on(store.create(&root, name, &how, &by)).unwrap().object;
        let write = || store.write(&file, 0, Shared::from(vec![7; 9]), Stability::Unstable.into());
        let mut cx = Context::from_waker(Waker::noop());
        // The volume was synced a moment ago, so the first writes go to the pool.
        while pin!(write()).poll(&mut cx).is_pending() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let other = file.writing.lock();
        let mut waiting = pin!(write());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        drop(other);
        assert_eq!(block_on(waiting).unwrap().count, 9);
    }
}
