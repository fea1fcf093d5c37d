//! REMOVE and RMDIR.

use super::calls::{NameChange, Place};
use super::commit::Extent;
use super::inode::Inode;
use super::lookup::OwnName;
use super::names::Changes;
use super::set_attr::CUT_INLINE_MAX;
use super::volume::{Step, Stop, Volume, Waiting};
use super::{Durability, LocalStore};
use crate::creds::{as_caller, as_root};
use crate::error::fs_error;
use crate::sync::Arc;
use rustix::fs::{AtFlags, unlinkat};
use weir_core::attr::Change;
use weir_core::{CallId, Credentials, FileKind, FsError, FsResult, Name};

/// The object that a name must lead to, to be removed.
#[derive(Clone)]
pub(super) enum Victim {
    Directory,
    Other,
    /// This object, whichever kind it is of.
    This(Arc<Inode>),
}

impl Victim {
    fn is_directory(&self) -> bool {
        match self {
            Self::Directory => true,
            Self::Other => false,
            Self::This(object) => object.kind == FileKind::Directory,
        }
    }

    /// Can the name be removed at all?
    fn check(&self, name: Name<'_>) -> FsResult<()> {
        Err(match self {
            Self::Other if name.is_special() => FsError::IsDirectory,
            Self::Directory if name.is_dot() => FsError::Invalid,
            Self::Directory if name.is_dot_dot() => FsError::Exists,
            Self::This(_) if name.is_special() => FsError::Invalid,
            _ => return Ok(()),
        })
    }
}

impl LocalStore {
    pub(super) async fn remove(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
        victim: Victim,
        cred: &Credentials,
    ) -> FsResult<Change> {
        self.foresee_removed(dir, name).await?;
        let call = self.1;
        let by = (cred, call.as_ref());
        let change = match self
            .inline_in_turn(dir, |volume, w| remove(volume, (dir, name), &victim, by, w))
        {
            Some(done) => done,
            None => {
                let (own, name, cred) = (Arc::clone(dir), OwnName::from(name), cred.clone());
                self.pooled_change_in_turn(dir, move |volume, waiting| {
                    let by = (&cred, call.as_ref());
                    remove(volume, (&own, name.get()?), &victim, by, waiting)
                })
                .await
            }
        };
        let change = self.ended(change)?;
        if self.2 == Durability::Power {
            self.settle(dir, Extent::All).await?;
            self.settled();
        }
        Ok(change)
    }

    /// Foresees that a name is removed, if there is such a name.
    async fn foresee_removed(&self, dir: &Arc<Inode>, name: Name<'_>) -> FsResult<()> {
        if !self.foresees() || name.is_special() {
            return Ok(());
        }
        let Ok((object, _)) = self.lookup(dir, name).await else { return Ok(()) };
        let change = removal(dir, name, &object)?;
        self.foresee(Some(change)).await
    }
}

/// The record of the removal of a name.
fn removal<'a>(dir: &Inode, name: Name<'a>, object: &Inode) -> FsResult<NameChange<'a>> {
    let last = object.kind == FileKind::Directory || object.attr()?.nlink == 1;
    let at = Place { dir: dir.key, name: name.as_bytes() };
    Ok(NameChange::Remove { at, object: object.key, last })
}

fn remove(
    volume: &Volume,
    (dir, name): (&Inode, Name<'_>),
    victim: &Victim,
    (cred, call): (&Credentials, Option<&CallId>),
    waiting: Waiting,
) -> Step<Change> {
    volume.mend_named(dir, name, waiting)?;
    let mut lock = volume.lock_names(dir, waiting)?;
    victim.check(name)?;
    let unlink = || {
        let flags = if victim.is_directory() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        as_caller(cred, |_| unlinkat(&dir.fd, name.as_bytes(), flags))?.map_err(fs_error)
    };
    let target = match volume.locked_lookup((dir, &lock), name, waiting) {
        // Whether the caller may know that is the kernel's to say.
        Err(Stop::Failed(FsError::NotFound)) if !matches!(victim, Victim::This(_)) => {
            unlink()?;
            return Err(FsError::Io.into());
        }
        found => found?,
    };
    // No name changes while the directory is locked.
    if let Victim::This(object) = victim
        && object.serial != target.serial
    {
        return Err(FsError::NotFound.into());
    }
    target.freed_inline(waiting)?;
    volume.mend(&target, waiting)?;
    let books = volume.usage.books();
    let departure = volume.departing(&books, &target, waiting)?;
    volume.intend(call, &removal(dir, name, &target)?, waiting)?;
    let (dir_mutation, mutation) = (dir.begin(), target.begin());
    unlink().inspect_err(|_| volume.calls.void(call))?;
    volume.calls.acted(call, None);
    volume.names.forget(dir, name, &mut lock);
    let nlink = target.end(mutation)?.after.map_or(0, |attr| attr.nlink);
    if let Some(departure) = departure {
        departure.left(nlink);
    }
    if victim.is_directory() || nlink == 0 {
        volume.bury(&target);
    }
    Ok(dir.end(dir_mutation)?)
}

impl Inode {
    /// Stops what may not wait before it lets go of a large file's last name: the last close takes
    /// as long as freeing the blocks.
    pub(super) fn freed_inline(&self, waiting: Waiting) -> Step<()> {
        if waiting == Waiting::Allowed {
            return Ok(());
        }
        let attr = self.attr()?;
        if attr.nlink == 1 && attr.used > CUT_INLINE_MAX { waiting.or_stop() } else { Ok(()) }
    }
}

impl Volume {
    /// Takes back an object that was just made, as root; the caller holds the directory's lock.
    pub(super) fn unmake(&self, dir: &Inode, name: Name<'_>, made: &Inode, lock: &mut Changes) {
        self.names.forget(dir, name, lock);
        if take_back(dir, name, made.kind == FileKind::Directory) {
            self.bury(made);
        }
    }
}

/// Takes back a name that was just made and that nobody knows yet, as root; the caller holds the
/// directory's lock. Is it gone?
pub(super) fn take_back(dir: &Inode, name: Name<'_>, directory: bool) -> bool {
    let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    let done = as_root(|_| unlinkat(&dir.fd, name.as_bytes(), flags)) == Ok(Ok(()));
    if !done {
        // It has a name that nobody told it of.
        if let Some(folded) = dir.folded() {
            folded.invalidate();
        }
        tracing::warn!(?name, "rollback of an incomplete create failed");
    }
    done
}
