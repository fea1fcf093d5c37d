//! The format of a volume's directory on CephFS and the record of its usage, which are extended
//! attributes of it, and the recount after an unclean stop.
//!
//! Below the directory there is `root`, the volume's top. The format is `new` while the volume is
//! made, and then the version.

use super::error::of_object;
use super::volume::Volume;
use crate::sync::{Arc, Relaxed};
use rustix::io::Errno;
use std::ffi::CStr;
use std::time::Duration;
use weir_ceph::{InodeRef, Mount};
use weir_core::{FsError, FsResult};

pub(super) const FORMAT: &CStr = c"user.weir.format";
const USAGE: &CStr = c"user.weir.usage";
const QUOTA: &CStr = c"ceph.quota.max_bytes";
/// The sum of the sizes of all files below a directory, and the number of them.
const BYTES_BELOW: &CStr = c"ceph.dir.rbytes";
const FILES_BELOW: &CStr = c"ceph.dir.rfiles";

/// Longest attribute that is read here.
const VALUE_BYTES_MAX: usize = 256;

/// Time between two looks at the sum that CephFS keeps, and looks that must agree. A metadata
/// server passes sums up every 5 s.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS_ALIKE: u32 = 7;
/// Looks until a volume in which something always changes is given up on, for this time.
const LOOKS_MAX: u32 = 120;

/// An extended attribute as text.
pub(super) fn read(mount: &Mount, inode: &InodeRef, name: &CStr) -> FsResult<Option<String>> {
    let mut room = [0; VALUE_BYTES_MAX];
    match mount.getxattr(inode, name, &mut room) {
        Ok(length) => {
            let bytes = room.get(..length).unwrap_or(&[]);
            Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
        }
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(of_object(errno)),
    }
}

/// The usage on record, if the volume was closed.
pub(super) fn usage(mount: &Mount, directory: &InodeRef) -> FsResult<Option<u64>> {
    let text = read(mount, directory, USAGE)?;
    Ok(text.and_then(|text| text.strip_prefix("1 clean ")?.parse().ok()))
}

/// Records the usage of a volume that is closed, or that there is none of one that is open.
pub(super) fn set_usage(mount: &Mount, directory: &InodeRef, bytes: Option<u64>) -> FsResult<()> {
    let text = bytes.map_or_else(|| "1 open".to_owned(), |bytes| format!("1 clean {bytes}"));
    mount.setxattr(directory, USAGE, Some(text.as_bytes()), None).map_err(of_object)?;
    mount.sync_inode(directory).map_err(of_object)
}

/// The sum of the sizes of all files below `root`, and their number, as CephFS has passed it up.
pub(super) fn below(mount: &Mount, root: &InodeRef) -> FsResult<(u64, u64)> {
    let number = |name| {
        let text = read(mount, root, name)?.ok_or(FsError::Io)?;
        text.trim_end_matches('\0').parse().map_err(|_| FsError::Io)
    };
    Ok((number(BYTES_BELOW)?, number(FILES_BELOW)?))
}

/// Sets the quota of CephFS itself, the backstop: some more than ours, because it is checked by
/// each client alone and late, and must never stop what ours allows.
pub(super) fn set_backstop(mount: &Mount, root: &InodeRef, quota_bytes: u64) -> FsResult<()> {
    let bytes = quota_bytes.saturating_add(quota_bytes / 8).saturating_add(1 << 30);
    let text = bytes.min(i64::MAX as u64).to_string();
    mount.setxattr(root, QUOTA, Some(text.as_bytes()), None).map_err(of_object)
}

/// Begins to take the usage from CephFS in the background. False if that is under way.
pub(super) fn start_count(volume: &Arc<Volume>) -> bool {
    if !volume.usage.begin_count() {
        return false;
    }
    let weak = Arc::downgrade(volume);
    let mut last = None;
    let (mut alike, mut looks) = (0, 0);
    volume.lane.run_long(move || {
        loop {
            // Between two looks nothing keeps the volume.
            let Some(volume) = weak.upgrade() else { return };
            let closing = volume.closing.load(Relaxed);
            let changes = volume.usage.changes();
            let found = volume.mount().sync().map_err(of_object);
            let found = found.and_then(|()| below(volume.mount(), volume.root.inode()));
            let Ok(sum) = found else {
                volume.usage.end_count(None);
                return;
            };
            alike = if last == Some((changes, sum)) { alike + 1 } else { 0 };
            last = Some((changes, sum));
            looks += 1;
            let settled = alike >= LOOKS_ALIKE && volume.usage.changes() == changes;
            if settled || closing || looks >= LOOKS_MAX {
                volume.usage.end_count(settled.then_some(sum));
                return;
            }
            drop(volume);
            std::thread::sleep(LOOK);
        }
    });
    true
}
