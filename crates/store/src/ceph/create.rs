//! CREATE, and making directories, links and special files.
//!
//! A file that is to have more than a mode gets the rest after its name: CephFS has no files
//! without one. A gateway that dies in between leaves a file without the verifier of its exclusive
//! create, which the client's second attempt takes for somebody else's.

use super::attrs::{self, device_bits};
use super::error::fs_error;
use super::object::CephObject;
use super::rules::{inherit, owner_may_set};
use super::volume::{Volume, c_name};
use crate::sync::Arc;
use rustix::io::Errno;
use weir_ceph::New;
use weir_core::attr::{Change, DeviceNumber, SetTime};
use weir_core::limits::SYMLINK_BYTES_MAX;
use weir_core::store::{CreateHow, Made, MakeKind};
use weir_core::{Attr, Credentials, FileKind, FsError, FsResult, Name, SetAttr, Timestamp};

/// Permission bits of a symbolic link, which nobody asks for.
const SYMLINK_MODE: u32 = 0o777;
const SPECIAL_BITS: u32 = 0o7000;

/// A directory as it was found, and a name in it.
pub(super) type Place<'a> = (&'a Arc<CephObject>, Name<'a>);

/// The attributes of a directory that `cred` may search.
pub(super) fn searched(volume: &Volume, dir: &CephObject, cred: &Credentials) -> FsResult<Attr> {
    dir.need_directory()?;
    let attr = volume.attr(dir)?;
    if dir.is_gone() {
        return Err(FsError::Stale);
    }
    volume.may_search((dir, &attr), cred)?;
    Ok(attr)
}

pub(super) fn create(
    volume: &Volume,
    (dir, name): Place<'_>,
    how: &CreateHow,
    cred: &Credentials,
) -> FsResult<Made<Arc<CephObject>>> {
    let _name = volume.names.lock(dir, name);
    let change = dir.begin();
    let before = searched(volume, dir, cred)?;
    let (object, attr) = match volume.child(dir, name)? {
        Some(present) => open_existing(volume, present, how, cred)?,
        None => match create_new(volume, (dir, &before, name), how, cred) {
            // Another gateway was first.
            Err(FsError::Exists) => {
                let present = volume.child(dir, name)?.ok_or(FsError::Exists)?;
                open_existing(volume, present, how, cred)?
            }
            made => made?,
        },
    };
    let after = volume.attr(dir)?;
    Ok(Made { object, attr, dir: change.end(before, after) })
}

fn open_existing(
    volume: &Volume,
    (object, attr): (Arc<CephObject>, Attr),
    how: &CreateHow,
    cred: &Credentials,
) -> FsResult<(Arc<CephObject>, Attr)> {
    match how {
        CreateHow::Guarded(_) => Err(FsError::Exists),
        CreateHow::Exclusive(verifier) => {
            let same = attr.kind == FileKind::Regular
                && attr.size == 0
                && (attr.atime, attr.mtime) == stamps(verifier);
            if same { Ok((object, attr)) } else { Err(FsError::Exists) }
        }
        CreateHow::Unchecked(set) => {
            match attr.kind {
                FileKind::Regular => {}
                FileKind::Directory => return Err(FsError::IsDirectory),
                _ => return Err(FsError::Exists),
            }
            // Of an existing file only a size of zero is set (RFC 1813 §3.3.8).
            if set.size != Some(0) {
                return Ok((object, attr));
            }
            let cut = SetAttr { size: Some(0), ..SetAttr::default() };
            let change = volume.set_attr(&object, &cut, None, cred)?;
            let after = change.after.ok_or(FsError::Io)?;
            Ok((object, after))
        }
    }
}

/// The times that keep an exclusive create's verifier: whole seconds that CephFS can hold, so the
/// top bit of each half is left out.
fn stamps(verifier: &[u8; 8]) -> (Timestamp, Timestamp) {
    let [a, b, c, d, e, f, g, h] = *verifier;
    let stamp = |half: [u8; 4]| Timestamp {
        secs: i64::from(u32::from_be_bytes(half) & 0x7fff_ffff),
        nanos: 0,
    };
    (stamp([a, b, c, d]), stamp([e, f, g, h]))
}

/// The mode to make a file with, and the rest that is to be set.
fn split(how: &CreateHow) -> (u32, SetAttr) {
    match how {
        CreateHow::Unchecked(set) | CreateHow::Guarded(set) => {
            (set.mode.unwrap_or(0), SetAttr { mode: None, ..*set })
        }
        CreateHow::Exclusive(verifier) => {
            let (atime, mtime) = stamps(verifier);
            let (atime, mtime) = (SetTime::To(atime), SetTime::To(mtime));
            (0, SetAttr { atime, mtime, ..SetAttr::default() })
        }
    }
}

fn create_new(
    volume: &Volume,
    (dir, found, name): (&Arc<CephObject>, &Attr, Name<'_>),
    how: &CreateHow,
    cred: &Credentials,
) -> FsResult<(Arc<CephObject>, Attr)> {
    let (asked, rest) = split(how);
    let (gid, mode) = may_make((volume, dir, found), FileKind::Regular, (asked, &rest), cred)?;
    let perm = volume.mount().identity(cred).map_err(fs_error)?;
    let name_bytes = c_name(name.as_bytes())?;
    let (inode, file) =
        volume.mount().create(dir.inode(), &name_bytes, mode, &perm).map_err(without_directory)?;
    let (object, attr) = volume.hold_asked(inode)?;
    object.keep_writer(file);
    let done = finish(volume, (&object, attr), (gid, mode), &rest, cred);
    done.map(|attr| (Arc::clone(&object), attr))
        .inspect_err(|_| take_back(volume, dir, name, false))
}

pub(super) fn make(
    volume: &Volume,
    (dir, name): Place<'_>,
    kind: &MakeKind,
    set: &SetAttr,
    cred: &Credentials,
) -> FsResult<Made<Arc<CephObject>>> {
    let _name = volume.names.lock(dir, name);
    let change = dir.begin();
    let before = searched(volume, dir, cred)?;
    if volume.child(dir, name)?.is_some() {
        return Err(FsError::Exists);
    }
    volume.may_add((dir, &before), cred)?;
    let target = match kind {
        MakeKind::Symlink(target) if target.len() > SYMLINK_BYTES_MAX => {
            return Err(FsError::NameTooLong);
        }
        MakeKind::Symlink(target) if target.is_empty() => return Err(FsError::Invalid),
        MakeKind::Symlink(target) => c_name(target)?,
        _ => c"".to_owned(),
    };
    let special = |kind, number: &DeviceNumber| New::Special(kind, device_bits(*number));
    let device = |kind, number| {
        if cred.is_root() { Ok(special(kind, number)) } else { Err(FsError::NotPermitted) }
    };
    let none = DeviceNumber::default();
    let (new, file_kind) = match kind {
        MakeKind::Directory => (New::Directory, FileKind::Directory),
        MakeKind::Symlink(_) => (New::Symlink(&target), FileKind::Symlink),
        MakeKind::Fifo => (special(libc::S_IFIFO, &none), FileKind::Fifo),
        MakeKind::Socket => (special(libc::S_IFSOCK, &none), FileKind::Socket),
        MakeKind::BlockDevice(number) => (device(libc::S_IFBLK, number)?, FileKind::BlockDevice),
        MakeKind::CharDevice(number) => (device(libc::S_IFCHR, number)?, FileKind::CharDevice),
    };
    let symlink = file_kind == FileKind::Symlink;
    let asked = if symlink { SYMLINK_MODE } else { set.mode.unwrap_or(0) };
    let rest = SetAttr { mode: None, ..*set };
    let (gid, mode) = may_make((volume, dir, &before), file_kind, (asked, &rest), cred)?;
    let perm = volume.mount().identity(cred).map_err(fs_error)?;
    let inode = volume
        .mount()
        .make(dir.inode(), &c_name(name.as_bytes())?, (new, mode), &perm)
        .map_err(without_directory)?;
    let (object, attr) = volume.hold_asked(inode)?;
    let directory = file_kind == FileKind::Directory;
    let attr = finish(volume, (&object, attr), (gid, mode), &rest, cred)
        .inspect_err(|_| take_back(volume, dir, name, directory))?;
    let after = volume.attr(dir)?;
    Ok(Made { object, attr, dir: change.end(before, after) })
}

/// May `cred` make an object of this kind in the directory, asking for this mode, and set the rest?
/// Gives its group and mode.
fn may_make(
    (volume, dir, found): (&Volume, &Arc<CephObject>, &Attr),
    kind: FileKind,
    (asked, rest): (u32, &SetAttr),
    cred: &Credentials,
) -> FsResult<(u32, u32)> {
    volume.may_add((dir, found), cred)?;
    let (gid, mode) = inherit(found, asked, kind == FileKind::Directory, cred);
    let size = rest.size.filter(|size| *size > 0);
    let owned = Attr { kind, mode, uid: cred.uid, gid, nlink: 1, size: 0, ..*found };
    // The maker of an object owns it, so the right to write is no question.
    owner_may_set(&owned, &SetAttr { size, ..*rest }, cred)?;
    Ok((gid, mode))
}

/// Gives an object that was just made what the library has not given it.
fn finish(
    volume: &Volume,
    (object, made): (&CephObject, Attr),
    (gid, mode): (u32, u32),
    rest: &SetAttr,
    cred: &Credentials,
) -> FsResult<Attr> {
    let mut attr = made;
    // The permission bits may be those of a list that was inherited, and stay.
    let special = mode & SPECIAL_BITS;
    let wrong_mode = attr.kind != FileKind::Symlink && attr.mode & SPECIAL_BITS != special;
    if attr.gid != gid || wrong_mode {
        let mode = wrong_mode.then_some(attr.mode & !SPECIAL_BITS | special);
        let (values, mask) = attrs::to_set(&SetAttr { mode, gid: Some(gid), ..SetAttr::default() });
        volume.mount().setattr(object.inode(), values, mask, None).map_err(fs_error)?;
        attr = volume.attr(object)?;
    }
    // A size of zero is what it has already.
    let rest = SetAttr { size: rest.size.filter(|size| *size > 0), ..*rest };
    if rest == SetAttr::default() {
        return Ok(attr);
    }
    volume.apply(object, &attr, &rest, cred)
}

/// Takes away the name of an object that could not be made whole.
fn take_back(volume: &Volume, dir: &CephObject, name: Name<'_>, directory: bool) {
    let removed = c_name(name.as_bytes()).and_then(|name| {
        let root = volume.mount().identity(&Credentials::ROOT).map_err(fs_error)?;
        volume.mount().remove(dir.inode(), &name, directory, &root).map_err(fs_error)
    });
    if let Err(error) = removed {
        tracing::warn!(%error, "an object that could not be made whole is left");
    }
}

fn without_directory(errno: Errno) -> FsError {
    match errno {
        // The directory itself is gone.
        Errno::NOENT => FsError::Stale,
        other => fs_error(other),
    }
}

/// Gives an object one more name.
pub(super) fn link(
    volume: &Volume,
    object: &Arc<CephObject>,
    (dir, name): Place<'_>,
    cred: &Credentials,
) -> FsResult<(Attr, Change)> {
    if object.kind == FileKind::Directory {
        return Err(FsError::IsDirectory);
    }
    let _name = volume.names.lock(dir, name);
    let change = dir.begin();
    let own_change = object.begin();
    // A removal of its last name comes before or after.
    let _size = object.sizes.read();
    volume.attr(object)?;
    let before = searched(volume, dir, cred)?;
    if volume.child(dir, name)?.is_some() {
        return Err(FsError::Exists);
    }
    volume.may_add((dir, &before), cred)?;
    let perm = volume.mount().identity(cred).map_err(fs_error)?;
    volume
        .mount()
        .link(object.inode(), dir.inode(), &c_name(name.as_bytes())?, &perm)
        .map_err(without_directory)?;
    let after = volume.attr(object)?;
    drop(own_change);
    let dir_after = volume.attr(dir)?;
    Ok((after, change.end(before, dir_after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verifiers_become_times_that_ceph_keeps() {
        let (first, second) = stamps(&[0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0]);
        assert_eq!((first.secs, second.secs), (0x7fff_ffff, 256));
    }
}
