//! WRITE: into the page cache, on the worker while the volume's writes are quick (see
//! [`crate::pace`]), otherwise in the pool. `RWF_NOWAIT` would not help: ext4 refuses it for
//! writes, XFS and btrfs answer `EAGAIN` nearly always.

use super::LocalStore;
use super::commit::Extent;
use super::inode::Inode;
use super::usage::{Reservation, UNIT, units};
use super::volume::{Step, Volume};
use crate::creds::as_root;
use crate::error::fs_error;
use crate::sync::Arc;
use rustix::fs::{Mode, SeekFrom, fchmod, seek};
use rustix::io::{Errno, pwrite};
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::store::{Stability, WriteDone};
use weir_core::{Attr, FsError, FsResult, Shared};

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o010;

impl LocalStore {
    #[inline]
    pub(super) async fn write_file(
        &self,
        inode: &Arc<Inode>,
        offset: u64,
        data: Shared,
        stability: Stability,
    ) -> FsResult<WriteDone> {
        inode.need_file(true)?;
        let length = u64::try_from(data.len()).map_err(|_| FsError::TooLarge)?;
        let end = offset.checked_add(length).filter(|&end| end <= FILE_BYTES_MAX);
        let end = end.ok_or(FsError::TooLarge)?;
        if stability == Stability::Unstable
            && let Some(done) = self.inline(|v, _| write_now(v, inode, offset, end, &data))
        {
            return done;
        }
        Box::pin(self.write_in_pool(inode, offset, end, data, stability)).await
    }

    async fn write_in_pool(
        &self,
        inode: &Arc<Inode>,
        offset: u64,
        end: u64,
        data: Shared,
        stability: Stability,
    ) -> FsResult<WriteDone> {
        // It may wait long, and must not pin the buffer it came in for that.
        let (own, data) = (Arc::clone(inode), data.detach());
        let mut done =
            self.pooled_change(move |v, _| write_now(v, &own, offset, end, &data)).await?;
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
    inode: &Inode,
    offset: u64,
    end: u64,
    data: &[u8],
) -> Step<WriteDone> {
    let mut mutation = inode.begin();
    let found = mutation.found(&inode.fd)?;
    let reservation = room_for(volume, inode, &found, offset, end)?;
    let written = if found.mode & (SET_UID | SET_GID) == 0 {
        write_all(inode, offset, data)?
    } else {
        // As root, so that what the kernel strips by itself doesn't depend on whose identity the
        // thread has kept.
        let written = as_root(|_| write_all(inode, offset, data))??;
        if written > 0 {
            strip_set_id(inode, &found)?;
        }
        written
    };
    let change = inode.end(mutation)?;
    drop(reservation);
    let count = u32::try_from(written).map_err(|_| FsError::Invalid)?;
    Ok(WriteDone { count, committed: Stability::Unstable, change })
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

/// Reserves what writing up to `end` may add to the volume's usage: nothing where the file has all
/// its blocks already.
fn room_for<'a>(
    volume: &'a Volume,
    inode: &Inode,
    found: &Attr,
    offset: u64,
    end: u64,
) -> FsResult<Option<Reservation<'a>>> {
    let has = units(found.used).min(units(found.size));
    let would_have = units(found.size.max(end));
    let touched = units(end) - offset / UNIT * UNIT;
    let growth = would_have.saturating_sub(has).min(touched);
    if growth == 0 || offset == end {
        return Ok(None);
    }
    if let Ok(reservation) = volume.usage.reserve(growth) {
        return Ok(Some(reservation));
    }
    // The quota is nearly used up: look closely at what of the range has blocks.
    let precise = holes(inode, found.size, offset / UNIT * UNIT, end)?;
    if precise == 0 {
        return Ok(None);
    }
    volume.usage.reserve(precise).map(Some)
}

/// Bytes of `start..end`, in whole units, that have no data yet.
fn holes(inode: &Inode, size: u64, start: u64, end: u64) -> FsResult<u64> {
    let end = units(end);
    let mut at = start;
    let mut data = 0;
    // Nothing else uses the descriptor's position.
    while at < end.min(size) {
        let begin = match seek(&inode.fd, SeekFrom::Data(at)) {
            Ok(begin) if begin < end => begin / UNIT * UNIT,
            Ok(_) | Err(Errno::NXIO) => break,
            Err(errno) => return Err(fs_error(errno)),
        };
        let hole = seek(&inode.fd, SeekFrom::Hole(begin)).map_err(fs_error)?;
        let stop = units(hole).min(end);
        data += stop.saturating_sub(begin.max(start));
        at = stop.max(at + UNIT);
    }
    Ok((end - start).saturating_sub(data))
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
