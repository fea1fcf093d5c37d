//! REMOVE, RMDIR and RENAME.

use super::create::{Place, searched};
use super::error::fs_error;
use super::names::lock_both;
use super::object::CephObject;
use super::replace;
use super::volume::{Volume, c_name};
use crate::sync::Arc;
use rustix::io::Errno;
use weir_core::attr::Change;
use weir_core::store::Replace;
use weir_core::{Access, Attr, Credentials, FileKind, FsError, FsResult, Name};

/// An object that was found under a name, and its attributes.
type Found = (Arc<CephObject>, Attr);

/// The object that a removal takes away.
#[derive(Clone, Debug)]
pub(super) enum Victim {
    /// A directory.
    Directory,
    /// Anything but a directory.
    Other,
    /// This object alone.
    This(Arc<CephObject>),
}

/// The conditions of a rename.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    /// The object that the old name must lead to; without one, any.
    pub(super) this: Option<Arc<CephObject>>,
    pub(super) replace: Replace,
}

pub(super) fn remove(
    volume: &Volume,
    (dir, name): Place<'_>,
    victim: &Victim,
    cred: &Credentials,
) -> FsResult<Change> {
    dir.need_directory()?;
    let _name = volume.names.lock(dir, name);
    let change = dir.begin();
    let before = match victim {
        Victim::This(_) => {
            let attr = volume.attr(dir)?;
            if name.is_special() {
                return Err(FsError::Invalid);
            }
            attr
        }
        _ => searched(volume, dir, cred)?,
    };
    let special = |name: Name<'_>| match victim {
        Victim::Directory if name.is_dot() => FsError::Invalid,
        Victim::Directory => FsError::Exists,
        _ => FsError::IsDirectory,
    };
    if name.is_special() {
        return Err(special(name));
    }
    let (found, attr) = volume.child(dir, name)?.ok_or(FsError::NotFound)?;
    if let Victim::This(this) = victim {
        if this.ino != found.ino {
            return Err(FsError::NotFound);
        }
        volume.may_search((dir, &before), cred)?;
    }
    volume.may_take_out((dir, &before), &attr, cred)?;
    let directory = attr.kind == FileKind::Directory;
    match victim {
        Victim::Directory if !directory => return Err(FsError::NotDirectory),
        Victim::Other if directory => return Err(FsError::IsDirectory),
        _ => {}
    }
    let perm = volume.mount().identity(cred).map_err(fs_error)?;
    let own_change = found.begin();
    // Nobody changes its size until it is known whether it is gone.
    let _size = found.sizes.write();
    let size = volume.attr(&found)?;
    volume
        .mount()
        .remove(dir.inode(), &c_name(name.as_bytes())?, directory, &perm)
        .map_err(fs_error)?;
    left(volume, &found, &size)?;
    drop(own_change);
    let after = volume.attr(dir)?;
    Ok(change.end(before, after))
}

/// An object, which had the attributes `before`, has lost a name. If it was the last, its data is
/// gone. The caller holds the lock of its size, so it has got no other name meanwhile. The library
/// gave up its capability for the count of names with the removal and would have to ask for it.
fn left(volume: &Volume, object: &CephObject, before: &Attr) -> FsResult<()> {
    if object.kind == FileKind::Directory {
        // A directory has one name.
        object.bury();
        return Ok(());
    }
    if before.nlink > 1 && volume.attr_or_gone(object, before)?.nlink > 0 {
        return Ok(());
    }
    debug_assert!(!has_name(volume, object, before), "a file is taken for removed");
    object.bury();
    if object.kind == FileKind::Regular {
        volume.usage.shrink(before.size);
    }
    Ok(())
}

/// Does the metadata server know a name of the object? Not if it can't be asked.
fn has_name(volume: &Volume, object: &CephObject, before: &Attr) -> bool {
    volume.attr_or_gone(object, before).is_ok_and(|after| after.nlink > 0)
}

pub(super) fn rename(
    volume: &Volume,
    from: Place<'_>,
    to: Place<'_>,
    conditions: &Conditions,
    cred: &Credentials,
) -> FsResult<(Change, Change)> {
    let one = from.0.ino == to.0.ino;
    from.0.need_directory()?;
    to.0.need_directory()?;
    let _names = lock_both(from.0, to.0);
    let changes = (from.0.begin(), (!one).then(|| to.0.begin()));
    let before = befores(volume, (from.0, to.0), conditions, cred)?;
    if from.1.is_special() || to.1.is_special() {
        return Err(FsError::Invalid);
    }
    let source = volume.child(from.0, from.1)?.ok_or(FsError::NotFound)?;
    if conditions.this.as_ref().is_some_and(|this| this.ino != source.0.ino) {
        return Err(FsError::NotFound);
    }
    let target = volume.child(to.0, to.1)?;
    let onto_itself = one && from.1 == to.1;
    if target.is_some() && conditions.replace == Replace::No && !onto_itself {
        return Err(FsError::Exists);
    }
    if conditions.this.is_some() {
        volume.may_search((from.0, &before.0), cred)?;
        volume.may_search((to.0, &before.1), cred)?;
    }
    may_nest(volume, (from.0, &source.0), (to.0, target.as_ref().map(|(object, _)| object)))?;
    // Two names of one object: both stay.
    let same = target.as_ref().is_some_and(|(object, _)| object.ino == source.0.ino);
    if !same {
        let target_attr = target.as_ref().map(|(_, attr)| attr);
        may_rename(volume, (from.0, &before.0, &source), (to.0, &before.1, target_attr), cred)?;
        move_entry(volume, (from, to), (&source, target.as_ref()), cred)?;
    }
    let from_after = volume.attr(from.0)?;
    let to_after = if one { from_after } else { volume.attr(to.0)? };
    let from_change = changes.0.end(before.0, from_after);
    let to_change = match changes.1 {
        Some(change) => change.end(before.1, to_after),
        None => from_change,
    };
    Ok((from_change, to_change))
}

/// The attributes of both directories before a rename. Whether `cred` may search them is asked
/// first only where the names are the caller's own.
fn befores(
    volume: &Volume,
    dirs: (&CephObject, &CephObject),
    conditions: &Conditions,
    cred: &Credentials,
) -> FsResult<(Attr, Attr)> {
    if conditions.this.is_some() {
        return Ok((volume.attr(dirs.0)?, volume.attr(dirs.1)?));
    }
    Ok((searched(volume, dirs.0, cred)?, searched(volume, dirs.1, cred)?))
}

/// Renames the entry, and accounts for the name that the target has lost.
fn move_entry(
    volume: &Volume,
    (from, to): (Place<'_>, Place<'_>),
    (source, target): (&Found, Option<&Found>),
    cred: &Credentials,
) -> FsResult<()> {
    let source_change = source.0.begin();
    let target_change = target.map(|(object, _)| object.begin());
    let target_size = target.map(|(object, _)| object.sizes.write());
    let target_attr = target.map(|(object, _)| volume.attr(object)).transpose()?;
    if target_attr.as_ref().is_some_and(replace::keeps_names) {
        replace::rename(volume, (from, to), cred)?;
    } else {
        let perm = volume.mount().identity(cred).map_err(fs_error)?;
        let (old, new) = (c_name(from.1.as_bytes())?, c_name(to.1.as_bytes())?);
        let renamed = volume.mount().rename((from.0.inode(), &old), (to.0.inode(), &new), &perm);
        renamed.map_err(|errno| match errno {
            // For a directory in the way that is not empty POSIX allows both.
            Errno::EXIST => FsError::NotEmpty,
            other => fs_error(other),
        })?;
    }
    if let (Some((object, _)), Some(before)) = (target, &target_attr) {
        left(volume, object, before)?;
    }
    drop((source_change, target_change, target_size));
    Ok(())
}

/// Neither end of a rename may be above the other; said before anything else about them, also where
/// the caller could change neither (Linux, `lock_rename`).
fn may_nest(
    volume: &Volume,
    (from_dir, source): (&Arc<CephObject>, &Arc<CephObject>),
    (to_dir, target): (&Arc<CephObject>, Option<&Arc<CephObject>>),
) -> FsResult<()> {
    if from_dir.ino == to_dir.ino {
        return Ok(());
    }
    if source.kind == FileKind::Directory && is_within(volume, to_dir, source)? {
        return Err(FsError::Invalid);
    }
    match target {
        Some(target)
            if target.kind == FileKind::Directory && is_within(volume, from_dir, target)? =>
        {
            Err(FsError::NotEmpty)
        }
        _ => Ok(()),
    }
}

/// Is `dir` the directory `top` or anywhere below it?
fn is_within(volume: &Volume, dir: &Arc<CephObject>, top: &CephObject) -> FsResult<bool> {
    let parent = Name::new(b"..")?;
    let mut at = Arc::clone(dir);
    while at.ino != top.ino && at.ino != volume.root.ino {
        let (above, _) = volume.child(&at, parent)?.ok_or(FsError::Stale)?;
        if above.ino == at.ino {
            break;
        }
        at = above;
    }
    Ok(at.ino == top.ino)
}

/// The order is that of Linux (`vfs_rename`): the old name, the new one, the directory that moves,
/// and what only the file system knows last.
fn may_rename(
    volume: &Volume,
    (from_dir, from_attr, source): (&Arc<CephObject>, &Attr, &Found),
    (to_dir, to_attr, target): (&Arc<CephObject>, &Attr, Option<&Attr>),
    cred: &Credentials,
) -> FsResult<()> {
    let is_directory = source.1.kind == FileKind::Directory;
    volume.may_take_out((from_dir, from_attr), &source.1, cred)?;
    match target {
        None => volume.may_add((to_dir, to_attr), cred)?,
        Some(target) => {
            volume.may_take_out((to_dir, to_attr), target, cred)?;
            match (is_directory, target.kind == FileKind::Directory) {
                (true, false) => return Err(FsError::NotDirectory),
                (false, true) => return Err(FsError::IsDirectory),
                (true, true) | (false, false) => {}
            }
        }
    }
    // The directory's `..` changes, so the directory itself must be writable.
    let moves = is_directory && from_dir.ino != to_dir.ino;
    if moves && !volume.allows((&source.0, &source.1), cred, Access::WRITE)? {
        return Err(FsError::AccessDenied);
    }
    Ok(())
}
