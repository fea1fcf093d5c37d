//! The POSIX rules of who may change names and attributes, and what a change does to the mode.

use super::node::Node;
use crate::attr::{FileKind, SetAttr, SetTime};
use crate::cred::Credentials;
use crate::error::{FsError, FsResult};
use crate::limits::FILE_BYTES_MAX;
use crate::permission::Access;

pub(super) const SETUID: u32 = 0o4000;
pub(super) const SETGID: u32 = 0o2000;
const STICKY: u32 = 0o1000;
const GROUP_EXECUTE: u32 = 0o010;
pub(super) const MODE_BITS: u32 = 0o7777;

/// May `cred` look names up in this directory?
pub(super) fn may_search(dir: &Node, cred: &Credentials) -> FsResult<()> {
    need(dir.allows(cred, Access::EXECUTE), FsError::AccessDenied)
}

/// May `cred` add names to this directory?
pub(super) fn may_add(dir: &Node, cred: &Credentials) -> FsResult<()> {
    let wanted = Access::WRITE | Access::EXECUTE;
    need(dir.allows(cred, wanted), FsError::AccessDenied)
}

/// May `cred` take the name of `victim` out of this directory? In a sticky one only the owner of
/// either may.
pub(super) fn may_take_out(dir: &Node, victim: &Node, cred: &Credentials) -> FsResult<()> {
    may_add(dir, cred)?;
    let free = dir.mode & STICKY == 0 || cred.is_root();
    need(free || cred.uid == dir.uid || cred.uid == victim.uid, FsError::NotPermitted)
}

/// May `cred` make all of the changes `set` to the object `node`?
pub(super) fn may_set(node: &Node, set: &SetAttr, cred: &Credentials) -> FsResult<()> {
    let owner = cred.is_root() || cred.uid == node.uid;
    if set.mode.is_some() {
        need(owner, FsError::NotPermitted)?;
    }
    if let Some(uid) = set.uid {
        need(cred.is_root() || (owner && uid == node.uid), FsError::NotPermitted)?;
    }
    if let Some(gid) = set.gid {
        let own_group = owner && (gid == node.gid || cred.in_group(gid));
        need(cred.is_root() || own_group, FsError::NotPermitted)?;
    }
    if let Some(size) = set.size {
        let attr = node.attr(0);
        match attr.kind {
            FileKind::Regular => {}
            FileKind::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid),
        }
        let may = cred.uid == attr.uid || node.allows(cred, Access::WRITE);
        need(may, FsError::AccessDenied)?;
        need(size <= FILE_BYTES_MAX, FsError::TooLarge)?;
    }
    match (set.atime, set.mtime) {
        (SetTime::Keep, SetTime::Keep) => Ok(()),
        // The rule of `utimensat`: a caller who may write may touch, but not choose, nor set one
        // time alone.
        (SetTime::ServerNow, SetTime::ServerNow) => {
            need(owner || node.allows(cred, Access::WRITE), FsError::AccessDenied)
        }
        _ => need(owner, FsError::NotPermitted),
    }
}

/// May `cred` change the lists of this object?
pub(super) fn may_set_acl(node: &Node, cred: &Credentials) -> FsResult<()> {
    need(cred.is_root() || cred.uid == node.uid, FsError::NotPermitted)
}

/// May `cred` change the details of this object?
pub(super) fn may_set_details(node: &Node, cred: &Credentials) -> FsResult<()> {
    let may = cred.uid == node.uid || node.allows(cred, Access::WRITE);
    need(may, FsError::AccessDenied)
}

/// The mode that a file has after its data or its owner changed: setuid is gone, and so is setgid
/// where it means running as the group.
pub(super) fn without_privileges(mode: u32) -> u32 {
    let setgid = if mode & GROUP_EXECUTE == 0 { 0 } else { SETGID };
    mode & !(SETUID | setgid)
}

/// The mode that a file of this mode and group has after `cred` changed its owner: as after a
/// change of data, and setgid is gone also where `cred` is none of the group it had
/// (`setattr_should_drop_sgid` of Linux).
pub(super) fn chowned(mode: u32, gid: u32, cred: &Credentials) -> u32 {
    let member = cred.is_root() || cred.in_group(gid);
    without_privileges(mode) & if member { !0 } else { !SETGID }
}

/// The mode that `cred` gets when asking for `mode` by chmod on an object of group `gid`.
pub(super) fn chmod(mode: u32, gid: u32, cred: &Credentials) -> u32 {
    let keeps_setgid = cred.is_root() || cred.in_group(gid);
    mode & MODE_BITS & if keeps_setgid { !0 } else { !SETGID }
}

/// Group and mode of an object `cred` makes in `dir`, asking for `mode`: a setgid directory hands
/// its group on, and to directories the bit as well.
pub(super) fn inherit(dir: &Node, mode: u32, directory: bool, cred: &Credentials) -> (u32, u32) {
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
