//! SETATTR, and setting attributes of what was just made.

use super::Durability;
use super::LocalStore;
use super::commit::Extent;
use super::inode::{Inode, Reach};
use super::volume::{Step, Stop, Volume, Waiting};
use super::write::strip_set_id;
use crate::creds::as_caller;
use crate::error::fs_error;
use crate::sync::Arc;
use crate::sys::own_descriptors;
use rustix::fd::AsRawFd;
use rustix::fs::{
    AtFlags, Gid, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, chmodat, chownat, fchmod,
    utimensat,
};
use weir_core::attr::{Change, SetTime};
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::{Attr, Credentials, FileKind, FsError, FsResult, SetAttr, Timestamp};

/// Cutting more than this off a file may take long, so it is done in the pool.
pub(super) const CUT_INLINE_MAX: u64 = 1 << 20;

impl LocalStore {
    pub(super) async fn set_attr(
        &self,
        inode: &Arc<Inode>,
        set: &SetAttr,
        guard: Option<Timestamp>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        let inline = self.inline(|v, w| set_attr(v, inode, set, guard, cred, w));
        let change = match inline {
            Some(done) => done?,
            None => {
                let (inode, set, cred) = (Arc::clone(inode), *set, cred.clone());
                self.pooled_change(move |v, w| set_attr(v, &inode, &set, guard, &cred, w)).await?
            }
        };
        if self.2 == Durability::Power {
            self.settle(inode, Extent::All).await?;
        }
        Ok(change)
    }
}

fn set_attr(
    volume: &Volume,
    inode: &Inode,
    set: &SetAttr,
    guard: Option<Timestamp>,
    cred: &Credentials,
    waiting: Waiting,
) -> Step<Change> {
    let mut mutation = inode.begin();
    let found = mutation.found(&inode.fd)?;
    if guard.is_some_and(|guard| guard != found.ctime) {
        inode.end(mutation)?;
        return Err(FsError::NotSync.into());
    }
    if set.size.is_some_and(|size| size.saturating_add(CUT_INLINE_MAX) < found.size) {
        waiting.or_stop()?;
    }
    if set.mode.is_some() && found.has_acl {
        mutation.changes_acl();
    }
    apply(volume, inode, set, &found, cred, waiting)?;
    Ok(inode.end(mutation)?)
}

/// Sets attributes of an object that was just made. There is nothing to cut, so it waits for
/// nothing.
pub(super) fn set_made(
    volume: &Volume,
    inode: &Inode,
    set: &SetAttr,
    cred: &Credentials,
) -> FsResult<()> {
    if *set == SetAttr::default() {
        return Ok(());
    }
    let mut mutation = inode.begin();
    let found = mutation.found(&inode.fd)?;
    apply(volume, inode, set, &found, cred, Waiting::Allowed).map_err(Stop::error)?;
    inode.end(mutation).map(drop)
}

/// Refuses what would be refused half-way, so that a SETATTR is done whole or not at all. The
/// kernel decides again, attribute by attribute.
fn check(inode: &Inode, set: &SetAttr, found: &Attr, cred: &Credentials) -> FsResult<()> {
    if set.size.is_some() {
        match found.kind {
            FileKind::Regular if inode.may_change(found, cred)? => {}
            FileKind::Regular => return Err(FsError::AccessDenied),
            FileKind::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid),
        }
    }
    let owner = cred.is_root() || cred.uid == found.uid;
    let owners_only = set.mode.is_some()
        || set.uid.is_some()
        || set.gid.is_some()
        || [set.atime, set.mtime].iter().any(|time| matches!(time, SetTime::To(_)));
    let gives_away = set.uid.is_some_and(|uid| uid != found.uid)
        || set.gid.is_some_and(|gid| gid != found.gid && !cred.in_group(gid));
    if (owners_only && !owner) || (gives_away && !cred.is_root()) {
        return Err(FsError::NotPermitted);
    }
    Ok(())
}

/// Sets attributes as `cred`, size first: it is the likeliest to fail. The caller has begun a
/// change of `inode` and found it with `found`.
pub(super) fn apply(
    volume: &Volume,
    inode: &Inode,
    set: &SetAttr,
    found: &Attr,
    cred: &Credentials,
    waiting: Waiting,
) -> Step<()> {
    check(inode, set, found, cred)?;
    let times = set.atime != SetTime::Keep || set.mtime != SetTime::Keep;
    if times && !volume.usage.is_known() {
        // Its lock may be held by who mends it, and nothing is done yet.
        waiting.or_stop()?;
    }
    if let Some(size) = set.size {
        set_size(volume, inode, size, found, cred, waiting)?;
    }
    if set.uid.is_some() || set.gid.is_some() {
        set_owner(inode, set.uid, set.gid, cred)?;
    }
    if let Some(mode) = set.mode {
        set_mode(inode, mode, cred)?;
    }
    if times {
        set_times(volume, inode, (set.atime, set.mtime), cred)?;
    }
    Ok(())
}

/// Our descriptor may always change the size, so the right to is decided here, as for WRITE.
pub(super) fn set_size(
    volume: &Volume,
    inode: &Inode,
    size: u64,
    found: &Attr,
    cred: &Credentials,
    waiting: Waiting,
) -> Step<()> {
    inode.need_file(true)?;
    if !inode.may_change(found, cred)? {
        return Err(FsError::AccessDenied.into());
    }
    if size > FILE_BYTES_MAX {
        return Err(FsError::TooLarge.into());
    }
    volume.resize(inode, size, waiting)?;
    if !cred.is_root() {
        strip_set_id(inode, found.mode)?;
    }
    Ok(())
}

fn set_owner(
    inode: &Inode,
    uid: Option<u32>,
    gid: Option<u32>,
    cred: &Credentials,
) -> FsResult<()> {
    // The kernel takes this number for "leave it".
    if uid == Some(u32::MAX) || gid == Some(u32::MAX) {
        return Err(FsError::Invalid);
    }
    let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
    as_caller(cred, |_| chownat(&inode.fd, c"", uid, gid, AtFlags::EMPTY_PATH))?.map_err(fs_error)
}

fn set_mode(inode: &Inode, mode: u32, cred: &Credentials) -> FsResult<()> {
    // A symbolic link has no mode of its own on Linux; clients set one all the same.
    if inode.kind == FileKind::Symlink {
        return Ok(());
    }
    let mode = Mode::from_raw_mode(mode & 0o7777);
    if inode.reach == Reach::Path {
        let (descriptors, number) = (own_descriptors()?, inode.fd.as_raw_fd().to_string());
        let change = || chmodat(descriptors, number.as_str(), mode, AtFlags::empty());
        return as_caller(cred, |_| change())?.map_err(fs_error);
    }
    as_caller(cred, |_| fchmod(&inode.fd, mode))?.map_err(fs_error)
}

fn set_times(
    volume: &Volume,
    inode: &Inode,
    (atime, mtime): (SetTime, SetTime),
    cred: &Credentials,
) -> FsResult<()> {
    // A concurrent mend of the file would restore the old time (see [`super::mend`]). Once the
    // usage is known, there is none.
    let _shape = (!volume.usage.is_known()).then(|| inode.shape.read());
    let times = Timestamps { last_access: timespec(atime), last_modification: timespec(mtime) };
    let flags = AtFlags::EMPTY_PATH;
    as_caller(cred, |_| utimensat(&inode.fd, c"", &times, flags))?.map_err(fs_error)
}

fn timespec(time: SetTime) -> Timespec {
    match time {
        SetTime::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        SetTime::ServerNow => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        SetTime::To(Timestamp { secs, nanos }) => {
            Timespec { tv_sec: secs, tv_nsec: i64::from(nanos.min(999_999_999)) }
        }
    }
}
