//! READ, WRITE, COMMIT, and the calls that change the size of a file or make holes in it.
//!
//! With libcephfs's object cache, UNSTABLE data lies in the memory of this gateway: it is lost with
//! the process, which the write verifier of the next one tells clients.

use super::error::{fs_error, of_object};
use super::object::CephObject;
use super::rules::{SET_GID, SET_UID, without_privileges};
use super::volume::Volume;
use weir_ceph::{Statx, set};
use weir_core::attr::Change;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::store::{Allocated, ReadDone, Stability, WriteDone, WriteHow};
use weir_core::{Attr, FsError, FsResult, SetAttr};

pub(super) fn read(
    volume: &Volume,
    object: &CephObject,
    offset: u64,
    count: u32,
    mut out: Vec<u8>,
) -> FsResult<ReadDone> {
    object.need_file()?;
    let mut got = 0usize;
    if count > 0 && offset <= FILE_BYTES_MAX {
        let file = object.reader().map_err(of_object)?;
        let wanted = usize::try_from(count).map_err(|_| FsError::Invalid)?;
        while got < wanted {
            let at = offset.saturating_add(got as u64);
            let more = volume.mount().read(&file, at, wanted - got, &mut out);
            match more.map_err(of_object)? {
                0 => break,
                more => got += more,
            }
        }
    }
    let attr = volume.attr(object)?;
    let count = u32::try_from(got).map_err(|_| FsError::Io)?;
    let eof = offset.saturating_add(u64::from(count)) >= attr.size;
    Ok(ReadDone { out, count, eof, attr })
}

pub(super) fn write(
    volume: &Volume,
    object: &CephObject,
    (offset, data): (u64, &[u8]),
    how: WriteHow,
) -> FsResult<WriteDone> {
    let change = object.begin();
    let (before, written) = place(volume, object, offset, data)?;
    if written > 0 {
        strip(volume, object, &before)?;
    }
    if how.stability > Stability::Unstable {
        object.sync()?;
    }
    let change = match how.gives_change {
        true => change.end(before, volume.attr(object)?),
        false => Change::default(),
    };
    let count = u32::try_from(written).map_err(|_| FsError::Invalid)?;
    Ok(WriteDone { count, committed: how.stability, change })
}

/// Writes `data`, and gives the attributes before that and the bytes written. Within its size a
/// file is written by many at once; whoever makes it larger is alone, so that the growth is counted
/// once.
fn place(
    volume: &Volume,
    object: &CephObject,
    offset: u64,
    data: &[u8],
) -> FsResult<(Attr, usize)> {
    let end = offset.saturating_add(data.len() as u64);
    {
        let _shared = object.sizes.read();
        let before = volume.attr(object)?;
        if data.is_empty() {
            return Ok((before, 0));
        }
        if end <= before.size {
            return Ok((before, put(volume, object, offset, data)?));
        }
    }
    let _alone = object.sizes.write();
    let before = volume.attr(object)?;
    if object.is_gone() {
        // Its data is not counted any more.
        return Ok((before, put(volume, object, offset, data)?));
    }
    let growth = volume.usage.reserve(end.saturating_sub(before.size))?;
    let written = put(volume, object, offset, data)?;
    growth.keep(offset.saturating_add(written as u64).saturating_sub(before.size));
    Ok((before, written))
}

/// Writes all of `data`, or what there is room for.
fn put(volume: &Volume, object: &CephObject, offset: u64, data: &[u8]) -> FsResult<usize> {
    let file = object.writer().map_err(of_object)?;
    object.note_unstable();
    let mut written = 0;
    while let Some(rest) = data.get(written..).filter(|rest| !rest.is_empty()) {
        let at = offset.saturating_add(written as u64);
        match volume.mount().write(&file, at, rest) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(_) if written > 0 => break,
            Err(errno) => return Err(of_object(errno)),
        }
    }
    Ok(written)
}

/// Gives a file that was written to the mode without set-id bits. The library takes both away,
/// also the one that means something else without the right to execute.
fn strip(volume: &Volume, object: &CephObject, before: &Attr) -> FsResult<()> {
    if before.mode & (SET_UID | SET_GID) == 0 {
        return Ok(());
    }
    set_mode(volume, object, without_privileges(before.mode))
}

/// Sets the mode as the superuser, if it is another.
pub(super) fn set_mode(volume: &Volume, object: &CephObject, mode: u32) -> FsResult<()> {
    if volume.attr(object)?.mode == mode {
        return Ok(());
    }
    let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
    let (values, mask) = super::attrs::to_set(&set);
    volume.mount().setattr(object.inode(), values, mask, None).map_err(of_object)
}

pub(super) fn commit(volume: &Volume, object: &CephObject) -> FsResult<Change> {
    object.need_file()?;
    let change = object.begin();
    let before = volume.attr(object)?;
    object.sync()?;
    Ok(change.end(before, volume.attr(object)?))
}

/// Sets the size of a file, as the superuser: the right to was decided before. Set-id bits are the
/// caller's business.
pub(super) fn resize(volume: &Volume, object: &CephObject, size: u64) -> FsResult<()> {
    if size > FILE_BYTES_MAX {
        return Err(FsError::TooLarge);
    }
    let _alone = object.sizes.write();
    let before = volume.attr(object)?;
    let counted = !object.is_gone();
    let more = if counted { size.saturating_sub(before.size) } else { 0 };
    let growth = volume.usage.reserve(more)?;
    object.note_unstable();
    let values = Statx { size, ..Statx::default() };
    volume.mount().setattr(object.inode(), values, set::SIZE, None).map_err(of_object)?;
    growth.keep(more);
    if counted {
        volume.usage.shrink(before.size.saturating_sub(size));
    }
    Ok(())
}

pub(super) fn set_size(volume: &Volume, object: &CephObject, size: u64) -> FsResult<Change> {
    object.need_file()?;
    let change = object.begin();
    let before = volume.attr(object)?;
    resize(volume, object, size)?;
    strip(volume, object, &before)?;
    Ok(change.end(before, volume.attr(object)?))
}

pub(super) fn zero_range(
    volume: &Volume,
    object: &CephObject,
    from: u64,
    to: u64,
) -> FsResult<Change> {
    object.need_file()?;
    let change = object.begin();
    let _alone = object.sizes.write();
    let before = volume.attr(object)?;
    let to = to.min(before.size);
    if from < to {
        let file = object.writer().map_err(of_object)?;
        object.note_unstable();
        volume.mount().punch(&file, from, to - from).map_err(fs_error)?;
        strip(volume, object, &before)?;
    }
    Ok(change.end(before, volume.attr(object)?))
}

/// CephFS does not tell where a file has holes: all of it counts as data.
pub(super) fn allocated_ranges(
    volume: &Volume,
    object: &CephObject,
    (from, to): (u64, u64),
    ranges_max: usize,
) -> FsResult<Allocated> {
    object.need_file()?;
    let to = to.min(volume.attr(object)?.size);
    if from >= to {
        return Ok(Allocated::default());
    }
    if ranges_max == 0 {
        return Ok(Allocated { ranges: Vec::new(), more: true });
    }
    Ok(Allocated { ranges: std::iter::once(from..to).collect(), more: false })
}
