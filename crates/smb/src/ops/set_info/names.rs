//! FileRenameInformation, FileRenameInformationEx and FileLinkInformation (MS-FSA §2.1.5.15.11,
//! §2.1.5.15.6).
//!
//! The right to take the old name away was decided when the file was opened; whether the user may
//! add the new one is decided now, by the store and the user's own identity, which must also allow
//! for both directories as POSIX has it. What is replaced is replaced in one step.
//!
//! The opens of the object in all sessions that were made by the old name have the new one from
//! then on: they show its path, and delete by it. The names of the object are locked from before
//! the rename until it is applied to the opens: no other rename of the object is applied before it,
//! and the last close of an open deletes by the name that the rename gives. A directory below which
//! anything is open in any session is not renamed (MS-FSA §2.1.5.15.11), so that no open below
//! shows a path that is not its own. Samba looks at the opens of the same connection alone, unless
//! `strict rename` is set, because it has to read a database of all opens.
//!
//! Other protocols rename whatever is open. Its opens keep the old name and path, and nothing is
//! deleted by a name that leads to another object by then.

use super::target::{Destination, Taken};
use crate::fscc::Target;
use crate::host::{Host, ObjectOf};
use crate::open::{Place, Renamed};
use crate::ops::Failure;
use crate::ops::info::granted;
use crate::wire::{AccessMask, Status};
use weir_core::store::Replace;
use weir_core::{Name, Store};

/// Gives the object that is open another name instead of the one it was opened by. Through an open
/// for write-through, the end of the old name is stable then; the new name is the caller's concern.
pub(super) async fn rename<H: Host>(
    host: &H,
    open: &H::Open,
    target: &Target<'_>,
) -> Result<(), Failure> {
    granted(open, AccessMask::DELETE)?;
    let names = host.lock_names(&open.key).await;
    // The top directory has no name.
    let place = host.with(open, |state| state.place.clone());
    let from = place.ok_or(Status::INVALID_PARAMETER)?;
    rename_from(host, open, target, &from).await?;
    drop(names);
    if open.is_write_through() {
        host.store().stabilize(&from.dir).await?;
    }
    Ok(())
}

async fn rename_from<H: Host>(
    host: &H,
    open: &H::Open,
    target: &Target<'_>,
    from: &Place<ObjectOf<H>>,
) -> Result<(), Failure> {
    if host.is_delete_pending(&open.key).await {
        return Err(Status::ACCESS_DENIED.into());
    }
    let to = Destination::of(host, open, target).await?;
    if open.is_directory() {
        let path = host.with(open, |state| state.path().to_vec());
        if host.any_open_below(&path).await {
            return Err(Status::ACCESS_DENIED.into());
        }
    }
    let same_dir = host.store().key(&to.dir) == host.store().key(&from.dir);
    match &to.taken {
        Some(own) if own.key == open.key && same_dir && own.name == from.name => {}
        Some(taken) => return replace(host, open, target, (from, &to, taken)).await,
        None => {}
    }
    move_to(host, open, from, &to.dir, &to.name, Replace::No).await?;
    apply(host, open, from, (&to, &to.name)).await;
    Ok(())
}

type Names<'a, O> = (&'a Place<O>, &'a Destination<O>, &'a Taken<O>);

/// Renames to a name that is taken. Where the name as the directory has it differs in case from the
/// one that was asked for, that comes in a second step.
async fn replace<H: Host>(
    host: &H,
    open: &H::Open,
    target: &Target<'_>,
    (from, to, taken): Names<'_, ObjectOf<H>>,
) -> Result<(), Failure> {
    let cred = &host.user().credentials;
    if open.is_directory() {
        let status =
            if target.replace { Status::ACCESS_DENIED } else { Status::OBJECT_NAME_COLLISION };
        return Err(status.into());
    }
    if taken.key != open.key {
        let held = taken.reserve(host, target).await?;
        let moved = move_to(host, open, from, &to.dir, &taken.name, Replace::Yes).await;
        host.close(held).await;
        moved?;
    } else if target.replace {
        // Another name of the same object: a rename would leave both.
        let name = Name::new(&taken.name)?;
        host.store().remove_this(&to.dir, name, &taken.object, cred).await?;
        move_to(host, open, from, &to.dir, &taken.name, Replace::Yes).await?;
    } else {
        return Err(Status::OBJECT_NAME_COLLISION.into());
    }
    // Also if the second step fails, the opens have the name by which the file is found.
    apply(host, open, from, (to, &taken.name)).await;
    if taken.name != to.name {
        let there = Place { dir: to.dir.clone(), name: taken.name.clone() };
        move_to(host, open, &there, &to.dir, &to.name, Replace::No).await?;
        apply(host, open, &there, (to, &to.name)).await;
    }
    Ok(())
}

async fn move_to<H: Host>(
    host: &H,
    open: &H::Open,
    from: &Place<ObjectOf<H>>,
    dir: &ObjectOf<H>,
    name: &[u8],
    replace: Replace,
) -> Result<(), Failure> {
    let (from, to) = ((&from.dir, Name::new(&from.name)?), (dir, Name::new(name)?));
    let cred = &host.user().credentials;
    host.store().rename_this(&open.object, from, to, replace, cred).await?;
    Ok(())
}

/// Gives the opens of the object by the old name the new one, `name` in the directory of `to`: they
/// are to be deleted by it.
async fn apply<H: Host>(
    host: &H,
    open: &H::Open,
    from: &Place<ObjectOf<H>>,
    (to, name): (&Destination<ObjectOf<H>>, &[u8]),
) {
    let place = Place { dir: to.dir.clone(), name: name.into() };
    host.apply_rename(open, Renamed { from, to: &place, path: &to.path_of(name) }).await;
}

/// Gives the object that is open one more name.
pub(super) async fn link<H: Host>(
    host: &H,
    open: &H::Open,
    target: &Target<'_>,
) -> Result<(), Failure> {
    if open.is_directory() {
        return Err(Status::FILE_IS_A_DIRECTORY.into());
    }
    if host.is_delete_pending(&open.key).await {
        return Err(Status::ACCESS_DENIED.into());
    }
    let to = Destination::of(host, open, target).await?;
    let (store, cred) = (host.store(), &host.user().credentials);
    match &to.taken {
        Some(own) if own.key == open.key && target.replace => return Ok(()),
        Some(taken) => {
            let held = taken.reserve(host, target).await?;
            let name = Name::new(&taken.name)?;
            let removed = store.remove_this(&to.dir, name, &taken.object, cred).await;
            host.close(held).await;
            removed?;
        }
        None => {}
    }
    store.link(&open.object, &to.dir, Name::new(&to.name)?, cred).await?;
    if open.is_write_through() {
        store.stabilize(&to.dir).await?;
    }
    Ok(())
}
