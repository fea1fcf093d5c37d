//! RENAME, within a directory or between two.

use super::attrs::Mutation;
use super::calls::{NameChange, Place};
use super::commit::Extent;
use super::growth::Departure;
use super::inode::Inode;
use super::lookup::OwnName;
use super::names::Changes;
use super::volume::{Step, Stop, Volume, Waiting};
use super::{Durability, LocalStore};
use crate::creds::as_caller;
use crate::error::fs_error;
use crate::sync::Arc;
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use weir_core::attr::Change;
use weir_core::store::Replace;
use weir_core::{CallId, Credentials, FileKind, FsError, FsResult, Name};

/// One side of a rename.
#[derive(Clone, Copy)]
struct Side<'a> {
    dir: &'a Inode,
    name: Name<'a>,
}

/// The conditions of a rename.
#[derive(Clone)]
pub(super) struct Conditions {
    /// The object that the old name must lead to; without one, any.
    this: Option<Arc<Inode>>,
    replace: Replace,
}

impl Conditions {
    /// None, as in NFS.
    pub(super) const NONE: Self = Self { this: None, replace: Replace::Yes };

    pub(super) fn this(object: &Arc<Inode>, replace: Replace) -> Self {
        Self { this: Some(Arc::clone(object)), replace }
    }
}

impl LocalStore {
    pub(super) async fn rename(
        &self,
        (from_dir, from): (&Arc<Inode>, Name<'_>),
        (to_dir, to): (&Arc<Inode>, Name<'_>),
        conditions: Conditions,
        cred: &Credentials,
    ) -> FsResult<(Change, Change)> {
        let sides = (Side { dir: from_dir, name: from }, Side { dir: to_dir, name: to });
        self.foresee_renamed((from_dir, from), sides).await?;
        let call = self.1;
        let by = (cred, call.as_ref());
        let now = |volume: &Volume, w| rename(volume, sides, &conditions, by, w);
        let changes = match self.inline_in_turn(from_dir, now) {
            Some(done) => done,
            None => {
                let dirs = (Arc::clone(from_dir), Arc::clone(to_dir));
                let (from, to, cred) = (OwnName::from(from), OwnName::from(to), cred.clone());
                self.pooled_change_in_turn(from_dir, move |volume, waiting| {
                    let from = Side { dir: &dirs.0, name: from.get()? };
                    let to = Side { dir: &dirs.1, name: to.get()? };
                    rename(volume, (from, to), &conditions, (&cred, call.as_ref()), waiting)
                })
                .await
            }
        };
        let changes = self.ended(changes)?;
        if self.2 == Durability::Power {
            // The new name first: with either alone on stable storage nothing is lost.
            self.settle(to_dir, Extent::All).await?;
            if from_dir.serial != to_dir.serial {
                self.settle(from_dir, Extent::All).await?;
            }
            self.settled();
        }
        Ok(changes)
    }

    /// Foresees that an object is renamed, if there is one.
    async fn foresee_renamed(
        &self,
        (dir, name): (&Arc<Inode>, Name<'_>),
        (from, to): (Side<'_>, Side<'_>),
    ) -> FsResult<()> {
        if !self.foresees() || name.is_special() {
            return Ok(());
        }
        let Ok((object, _)) = self.lookup(dir, name).await else { return Ok(()) };
        self.foresee(Some(renaming(from, to, &object))).await
    }
}

/// The record of a rename.
fn renaming<'a>(from: Side<'a>, to: Side<'a>, object: &Inode) -> NameChange<'a> {
    let place = |side: Side<'a>| Place { dir: side.dir.key, name: side.name.as_bytes() };
    NameChange::Rename { from: place(from), to: place(to), object: object.key }
}

fn rename_error(errno: Errno) -> FsError {
    match errno {
        // XFS's word for a directory in the way that is not empty; POSIX allows both.
        Errno::EXIST => FsError::NotEmpty,
        other => fs_error(other),
    }
}

fn mend_both(volume: &Volume, from: Side<'_>, to: Side<'_>, waiting: Waiting) -> Step<()> {
    volume.mend_named(from.dir, from.name, waiting)?;
    volume.mend_named(to.dir, to.name, waiting)
}

/// The object that loses its name, if there is one.
fn target(
    volume: &Volume,
    (to, lock): (Side<'_>, &Changes),
    waiting: Waiting,
) -> Step<Option<Arc<Inode>>> {
    let target = match volume.locked_lookup((to.dir, lock), to.name, waiting) {
        Ok(target) => target,
        Err(Stop::Failed(FsError::NotFound)) => return Ok(None),
        Err(other) => return Err(other),
    };
    target.freed_inline(waiting)?;
    volume.mend(&target, waiting)?;
    Ok(Some(target))
}

/// The object that gets another name.
fn source(
    volume: &Volume,
    ((from, lock), to): ((Side<'_>, &Changes), Side<'_>),
    conditions: &Conditions,
    cred: &Credentials,
    waiting: Waiting,
) -> Step<Arc<Inode>> {
    let source = match volume.locked_lookup((from.dir, lock), from.name, waiting) {
        // Whether the caller may know that is the kernel's to say.
        Err(Stop::Failed(FsError::NotFound)) if conditions.this.is_none() => {
            rename_entry(from, to, Replace::Yes, cred)?;
            return Err(FsError::Io.into());
        }
        found => found?,
    };
    // No name changes while the directories are locked.
    match &conditions.this {
        Some(this) if this.serial != source.serial => Err(FsError::NotFound.into()),
        _ => Ok(source),
    }
}

/// Renames the directory entry, under the caller's identity. That there is nothing to replace was
/// seen before, so a file system that can't make sure of it is asked without.
fn rename_entry(
    from: Side<'_>,
    to: Side<'_>,
    replace: Replace,
    cred: &Credentials,
) -> FsResult<()> {
    let (old, new) = (from.name.as_bytes(), to.name.as_bytes());
    let rename = |flags| renameat_with(&from.dir.fd, old, &to.dir.fd, new, flags);
    let all = RenameFlags::empty();
    let done = as_caller(cred, |_| match replace {
        Replace::Yes => rename(all),
        Replace::No => match rename(RenameFlags::NOREPLACE) {
            Err(Errno::INVAL) => rename(all),
            done => done,
        },
    })?;
    done.map_err(|errno| match (errno, replace) {
        (Errno::EXIST, Replace::No) => FsError::Exists,
        (errno, _) => rename_error(errno),
    })
}

/// Accounts for the name that the target has lost, and closes it if that was its last.
fn end_target(
    volume: &Volume,
    (target, mutation): (&Arc<Inode>, Mutation<'_>),
    departure: Option<Departure<'_>>,
    is_source: bool,
) -> FsResult<()> {
    let nlink = target.end(mutation)?.after.map_or(0, |attr| attr.nlink);
    if let Some(departure) = departure {
        departure.left(nlink);
    }
    if (target.kind == FileKind::Directory || nlink == 0) && !is_source {
        volume.bury(target);
    }
    Ok(())
}

fn rename(
    volume: &Volume,
    (from, to): (Side<'_>, Side<'_>),
    conditions: &Conditions,
    (cred, call): (&Credentials, Option<&CallId>),
    waiting: Waiting,
) -> Step<(Change, Change)> {
    let one = from.dir.serial == to.dir.serial;
    // Two directories are locked in the order of their serial numbers, so that opposite renames
    // can't wait for each other.
    let (first, second) =
        if from.dir.serial <= to.dir.serial { (from.dir, to.dir) } else { (to.dir, from.dir) };
    mend_both(volume, from, to, waiting)?;
    let mut first_lock = volume.lock_names(first, waiting)?;
    let mut second_lock = if one { None } else { Some(volume.lock_names(second, waiting)?) };
    if from.name.is_special() || to.name.is_special() {
        return Err(FsError::Invalid.into());
    }
    let lock_of = |dir: &Inode| match &second_lock {
        Some(second) if dir.serial != first.serial => second,
        _ => &first_lock,
    };
    let source = source(volume, ((from, lock_of(from.dir)), to), conditions, cred, waiting)?;
    let target = target(volume, (to, lock_of(to.dir)), waiting)?;
    let onto_itself = one && from.name == to.name;
    if target.is_some() && conditions.replace == Replace::No && !onto_itself {
        return Err(FsError::Exists.into());
    }
    volume.mend(&source, waiting)?;
    let books = volume.usage.books();
    volume.moving(&books, &source, waiting)?;
    let departure = match &target {
        Some(target) => volume.departing(&books, target, waiting)?,
        None => None,
    };
    volume.intend(call, &renaming(from, to, &source), waiting)?;
    let from_mutation = from.dir.begin();
    let to_mutation = (!one).then(|| to.dir.begin());
    let source_mutation = source.begin();
    let target_mutation = target.as_deref().map(Inode::begin);
    let replace = if onto_itself { Replace::Yes } else { conditions.replace };
    rename_entry(from, to, replace, cred).inspect_err(|_| volume.calls.void(call))?;
    volume.calls.acted(call, None);
    let same_object = target.as_ref().is_some_and(|target| target.serial == source.serial);
    let from_first = first.serial == from.dir.serial;
    let (from_lock, to_lock) = match &mut second_lock {
        None => (&mut first_lock, None),
        Some(second) if from_first => (&mut first_lock, Some(second)),
        Some(second) => (second, Some(&mut first_lock)),
    };
    // Two names of one object: the kernel leaves both.
    if !same_object {
        volume.names.forget(from.dir, from.name, from_lock);
        volume.names.replace(to.dir, to.name, &source, to_lock.unwrap_or(from_lock));
    }
    source.end(source_mutation)?;
    if let (Some(target), Some(mutation)) = (&target, target_mutation) {
        end_target(volume, (target, mutation), departure, same_object)?;
    }
    let from_change = from.dir.end(from_mutation)?;
    let to_change = match to_mutation {
        Some(mutation) => to.dir.end(mutation)?,
        None => from_change,
    };
    Ok((from_change, to_change))
}
