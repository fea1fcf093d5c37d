//! The POSIX rules of who may change names and attributes, and what a change does to the mode.

use crate::access::{self, Access};
use crate::attr::{Attr, FileKind, SetAttr, SetTime};
use crate::cred::Credentials;
use crate::error::{FsError, FsResult};
use crate::limits::FILE_BYTES_MAX;

pub(super) const SETUID: u32 = 0o4000;
pub(super) const SETGID: u32 = 0o2000;
const STICKY: u32 = 0o1000;
const GROUP_EXECUTE: u32 = 0o010;
pub(super) const MODE_BITS: u32 = 0o7777;

/// May `cred` look names up in this directory?
pub(super) fn may_search(dir: &Attr, cred: &Credentials) -> FsResult<()> {
    need(access::rights(dir, cred).contains(Access::EXECUTE), FsError::AccessDenied)
}

/// May `cred` add names to this directory?
pub(super) fn may_add(dir: &Attr, cred: &Credentials) -> FsResult<()> {
    let wanted = Access::WRITE | Access::EXECUTE;
    need(access::rights(dir, cred).contains(wanted), FsError::AccessDenied)
}

/// May `cred` take the name of `victim` out of this directory? In a sticky one only the owner of
/// either may.
pub(super) fn may_take_out(dir: &Attr, victim: &Attr, cred: &Credentials) -> FsResult<()> {
    may_add(dir, cred)?;
    let free = dir.mode & STICKY == 0 || cred.is_root();
    need(free || cred.uid == dir.uid || cred.uid == victim.uid, FsError::NotPermitted)
}

/// May `cred` make all of the changes `set` to the object `attr`?
pub(super) fn may_set(attr: &Attr, set: &SetAttr, cred: &Credentials) -> FsResult<()> {
    let owner = cred.is_root() || cred.uid == attr.uid;
    if set.mode.is_some() {
        need(owner, FsError::NotPermitted)?;
    }
    if let Some(uid) = set.uid {
        need(cred.is_root() || (owner && uid == attr.uid), FsError::NotPermitted)?;
    }
    if let Some(gid) = set.gid {
        let own_group = owner && (gid == attr.gid || cred.in_group(gid));
        need(cred.is_root() || own_group, FsError::NotPermitted)?;
    }
    if let Some(size) = set.size {
        match attr.kind {
            FileKind::Regular => {}
            FileKind::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid),
        }
        need(access::may_write(attr, cred), FsError::AccessDenied)?;
        need(size <= FILE_BYTES_MAX, FsError::TooLarge)?;
    }
    for time in [set.atime, set.mtime] {
        match time {
            SetTime::Keep => {}
            SetTime::To(_) => need(owner, FsError::NotPermitted)?,
            SetTime::ServerNow => {
                let writer = access::rights(attr, cred).contains(Access::WRITE);
                need(owner || writer, FsError::AccessDenied)?;
            }
        }
    }
    Ok(())
}

/// The mode that a file has after its data or its owner changed: setuid is gone, and so is setgid
/// where it means running as the group.
pub(super) fn without_privileges(mode: u32) -> u32 {
    let setgid = if mode & GROUP_EXECUTE == 0 { 0 } else { SETGID };
    mode & !(SETUID | setgid)
}

/// The mode that `cred` gets when asking for `mode` by chmod on an object of group `gid`.
pub(super) fn chmod(mode: u32, gid: u32, cred: &Credentials) -> u32 {
    let keeps_setgid = cred.is_root() || cred.in_group(gid);
    mode & MODE_BITS & if keeps_setgid { !0 } else { !SETGID }
}

/// Group and mode of an object `cred` makes in `dir`, asking for `mode`: a setgid directory hands
/// its group on, and to directories the bit as well.
pub(super) fn inherit(dir: &Attr, mode: u32, directory: bool, cred: &Credentials) -> (u32, u32) {
    let mode = mode & MODE_BITS;
    if dir.mode & SETGID == 0 {
        return (cred.gid, mode);
    }
    let outsider = !cred.is_root() && !cred.in_group(dir.gid);
    let mode = match (directory, outsider) {
        (true, _) => mode | SETGID,
        (false, true) if mode & GROUP_EXECUTE != 0 => mode & !SETGID,
        (false, _) => mode,
    };
    (dir.gid, mode)
}

fn need(allowed: bool, otherwise: FsError) -> FsResult<()> {
    if allowed { Ok(()) } else { Err(otherwise) }
}
