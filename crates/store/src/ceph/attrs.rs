//! Attributes as libcephfs gives and takes them, and as the rest of Weir knows them.

use crate::acl_format::{self, BYTES_MAX};
use crate::sync::time_of_day;
use rustix::io::Errno;
use std::ffi::CStr;
use weir_ceph::{Called, InodeRef, Mount, Perm, STATX_ALL, Statx, Time, set as bits};
use weir_core::attr::SetTime;
use weir_core::{
    Acl, AclKind, Attr, DeviceNumber, FileKind, FsError, FsResult, SetAttr, Timestamp,
};

/// Enough for a list of 127 entries; longer ones are read again with as much as there can be.
const FIRST_BYTES: usize = 1024;
/// The mode bits that say the kind.
const MODE_BITS: u32 = 0o7777;

/// The attributes in `found`.
///
/// # Errors
/// `Io` if some are missing or make no sense.
pub(super) fn attr(found: &Statx, has_acl: bool) -> FsResult<Attr> {
    if found.mask & STATX_ALL != STATX_ALL {
        return Err(FsError::Io);
    }
    let mode = u32::from(found.mode);
    let kind = kind(mode).ok_or(FsError::Io)?;
    let special = matches!(kind, FileKind::BlockDevice | FileKind::CharDevice);
    Ok(Attr {
        kind,
        mode: mode & MODE_BITS,
        has_acl,
        nlink: found.nlink,
        uid: found.uid,
        gid: found.gid,
        size: found.size,
        used: found.blocks.saturating_mul(512),
        rdev: if special { device(found.rdev) } else { DeviceNumber::default() },
        fileid: found.ino,
        atime: timestamp(found.atime),
        mtime: timestamp(found.mtime),
        ctime: timestamp(found.ctime),
    })
}

fn kind(mode: u32) -> Option<FileKind> {
    Some(match mode & libc::S_IFMT {
        libc::S_IFREG => FileKind::Regular,
        libc::S_IFDIR => FileKind::Directory,
        libc::S_IFLNK => FileKind::Symlink,
        libc::S_IFBLK => FileKind::BlockDevice,
        libc::S_IFCHR => FileKind::CharDevice,
        libc::S_IFIFO => FileKind::Fifo,
        libc::S_IFSOCK => FileKind::Socket,
        _ => return None,
    })
}

pub(super) fn timestamp(time: Time) -> Timestamp {
    let nanos = u32::try_from(time.nanos).unwrap_or(0).min(999_999_999);
    Timestamp { secs: time.secs, nanos }
}

/// A time as CephFS can keep it: seconds since 1970 in 32 bits without a sign. Earlier and later
/// ones become the first and the last.
fn kept_time(time: Timestamp) -> Time {
    let secs = time.secs.clamp(0, u32::MAX.into());
    let nanos = if secs == time.secs { i64::from(time.nanos.min(999_999_999)) } else { 0 };
    Time { secs, nanos }
}

/// The number of a device in the 32 bits in which Linux passes it to file systems
/// (`new_encode_dev`), so that kernel clients see the same device.
pub(super) fn device_bits(device: DeviceNumber) -> u64 {
    let (major, minor) = (u64::from(device.major), u64::from(device.minor));
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & 0xf_ff00) << 12
}

fn device(bits: u64) -> DeviceNumber {
    let part = |bits: u64| u32::try_from(bits).unwrap_or(0);
    DeviceNumber {
        major: part((bits >> 8) & 0xfff),
        minor: part((bits & 0xff) | ((bits >> 12) & 0xf_ff00)),
    }
}

/// Mode, owner, group and times of `set` for the library; its size is set apart.
pub(super) fn to_set(set: &SetAttr) -> (Statx, i32) {
    let (mut values, mut mask) = (Statx::default(), 0);
    if let Some(mode) = set.mode {
        values.mode = u16::try_from(mode & MODE_BITS).unwrap_or(0);
        mask |= bits::MODE;
    }
    if let Some(uid) = set.uid {
        values.uid = uid;
        mask |= bits::UID;
    }
    if let Some(gid) = set.gid {
        values.gid = gid;
        mask |= bits::GID;
    }
    let now = time_of_day();
    for (how, time, bit, now_bit) in [
        (set.atime, &mut values.atime, bits::ATIME, bits::ATIME_NOW),
        (set.mtime, &mut values.mtime, bits::MTIME, bits::MTIME_NOW),
    ] {
        match how {
            SetTime::Keep => {}
            SetTime::ServerNow => (*time, mask) = (kept_time(now), mask | bit | now_bit),
            SetTime::To(then) => (*time, mask) = (kept_time(then), mask | bit),
        }
    }
    (values, mask)
}

const fn name(kind: AclKind) -> &'static CStr {
    match kind {
        AclKind::Access => c"system.posix_acl_access",
        AclKind::Default => c"system.posix_acl_default",
    }
}

/// Has the object an access list? The library knows, where it has the capability.
pub(super) fn has_acl(mount: &Mount, inode: &InodeRef, found: &Statx) -> Called<bool> {
    if kind(found.mode.into()) == Some(FileKind::Symlink) {
        return Ok(false);
    }
    match mount.getxattr(inode, name(AclKind::Access), &mut []) {
        Ok(length) => Ok(length > 0),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// A list of an object that is no symbolic link.
pub(super) fn read_acl(mount: &Mount, inode: &InodeRef, kind: AclKind) -> FsResult<Option<Acl>> {
    let mut room = [0; FIRST_BYTES];
    let mut more = Vec::new();
    let bytes = match mount.getxattr(inode, name(kind), &mut room) {
        Ok(length) => room.get(..length),
        Err(Errno::RANGE) => {
            more.resize(BYTES_MAX, 0);
            let length =
                mount.getxattr(inode, name(kind), &mut more).map_err(super::error::of_object)?;
            more.get(..length)
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(None),
        Err(errno) => return Err(super::error::of_object(errno)),
    };
    match bytes {
        None => Err(FsError::Io),
        Some([]) => Ok(None),
        Some(bytes) => acl_format::read(bytes)
            .map(Some)
            .inspect_err(|_| tracing::warn!(?kind, "a list that can't be read")),
    }
}

/// Sets a list of an object, or removes it.
pub(super) fn write_acl(
    mount: &Mount,
    inode: &InodeRef,
    kind: AclKind,
    acl: Option<&Acl>,
    perm: &Perm,
) -> Called<()> {
    let bytes = acl.map(acl_format::write);
    mount.setxattr(inode, name(kind), bytes.as_deref(), Some(perm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive() {
        for (major, minor) in [(0, 0), (240, 300), (0xfff, 0xf_ffff), (8, 1)] {
            let number = DeviceNumber { major, minor };
            assert_eq!(device(device_bits(number)), number);
            assert!(u32::try_from(device_bits(number)).is_ok());
        }
        assert_eq!(device_bits(DeviceNumber { major: 8, minor: 1 }), 0x801, "as Linux has it");
    }

    #[test]
    fn times_that_ceph_cannot_keep_become_the_nearest() {
        let of = |secs| kept_time(Timestamp { secs, nanos: 7 });
        assert_eq!(of(5), Time { secs: 5, nanos: 7 });
        assert_eq!(of(-5), Time { secs: 0, nanos: 0 });
        assert_eq!(of(1 << 40), Time { secs: u32::MAX.into(), nanos: 0 });
    }

    #[test]
    fn attributes_that_are_not_whole_are_refused() {
        let mode = u16::try_from(libc::S_IFREG | 0o640).unwrap();
        let found = Statx { mask: STATX_ALL, mode, ino: 9, nlink: 1, size: 5, ..Statx::default() };
        let attr_of = |found| attr(&found, false).map(|attr| (attr.kind, attr.mode, attr.size));
        assert_eq!(attr_of(found), Ok((FileKind::Regular, 0o640, 5)));
        assert_eq!(attr_of(Statx { mask: STATX_ALL ^ 1, ..found }), Err(FsError::Io));
        assert_eq!(attr_of(Statx { mode: 0o640, ..found }), Err(FsError::Io));
    }
}
