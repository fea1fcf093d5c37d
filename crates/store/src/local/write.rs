//! WRITE: into the page cache, on the worker while the volume's writes are quick (see
//! [`crate::pace`]), otherwise in the pool. `RWF_NOWAIT` would not help: ext4 refuses it for
//! writes, XFS and btrfs answer `EAGAIN` nearly always.

use super::LocalStore;
use super::commit::Extent;
use super::inode::Inode;
use super::volume::{Step, Volume, Waiting};
use crate::creds::as_root;
use crate::error::fs_error;
use crate::sync::Arc;
use rustix::fs::{Mode, fchmod};
use rustix::io::{Errno, pwrite};
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::store::{Stability, WriteDone};
use weir_core::{Attr, FsError, FsResult, Shared};

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
        stability: Stability,
    ) -> FsResult<WriteDone> {
        inode.need_file(true)?;
        let length = u64::try_from(data.len()).map_err(|_| FsError::TooLarge)?;
        if offset.checked_add(length).is_none_or(|end| end > FILE_BYTES_MAX) {
            return Err(FsError::TooLarge);
        }
        let stability = self.possible(inode, stability);
        if stability == Stability::Unstable
            && let Some(done) =
                self.inline(|v, waiting| write_now(v, inode, offset, &data, waiting))
        {
            return done;
        }
        Box::pin(self.write_in_pool(inode, offset, data, stability)).await
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
        stability: Stability,
    ) -> FsResult<WriteDone> {
        // It may wait long, and must not pin the buffer it came in for that.
        let (own, data) = (Arc::clone(inode), data.detach());
        let mut done = self
            .pooled_change_in_turn(inode, move |v, waiting| {
                write_now(v, &own, offset, &data, waiting)
            })
            .await?;
        match stability {
            Stability::Unstable => return Ok(done),
            Stability::DataSync => self.settle(inode, Extent::Data).await?,
            Stability::FileSync => self.settle(inode, Extent::All).await?,
        }
        done.committed = stability;
        Ok(done)
    }
}

fn write_now(
    volume: &Volume,
    inode: &Arc<Inode>,
    offset: u64,
    data: &[u8],
    waiting: Waiting,
) -> Step<WriteDone> {
    let mut mutation = inode.begin();
    let found = mutation.found(&inode.fd)?;
    let end = offset.saturating_add(data.len() as u64);
    let put = || put(inode, &found, offset, data);
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
    let change = inode.end(mutation)?;
    let count = u32::try_from(written).map_err(|_| FsError::Invalid)?;
    Ok(WriteDone { count, committed: Stability::Unstable, change })
}

fn put(inode: &Inode, found: &Attr, offset: u64, data: &[u8]) -> FsResult<usize> {
    if found.mode & (SET_UID | SET_GID) == 0 {
        return write_all(inode, offset, data);
    }
    // As root, so that what the kernel strips by itself doesn't depend on whose identity the
    // thread has kept.
    let written = as_root(|_| write_all(inode, offset, data))??;
    if written > 0 {
        strip_set_id(inode, found)?;
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
pub(super) fn strip_set_id(inode: &Inode, found: &Attr) -> FsResult<()> {
    let group = if found.mode & GROUP_EXECUTE != 0 { SET_GID } else { 0 };
    let strip = found.mode & (SET_UID | group);
    if strip == 0 {
        return Ok(());
    }
    let mode = Mode::from_raw_mode(found.mode & !strip);
    as_root(|_| fchmod(&inode.fd, mode))?.map_err(fs_error)
}
