//! The name that a rename or a link gives to an object: the directory, and whether what has the
//! name now may make room.
//!
//! The directory is asked for as Windows opens it, to add to it and sharing it for all but
//! deletion: an open with the right to delete it, or one that does not let others write it, is in
//! the way (SHARING_VIOLATION).

use crate::fscc;
use crate::host::{Host, ObjectOf};
use crate::names::Path;
use crate::open::Open;
use crate::ops::Failure;
use crate::ops::access::allowed;
use crate::ops::walk::{At, Missing, walk_parent};
use crate::wire::{AccessMask, Status};
use alloc::boxed::Box;
use alloc::vec::Vec;
use weir_core::store::Folded;
use weir_core::{Access, Attr, DosAttributes, FileKind, FsError, Name, ObjectKey, Store};
use weir_state::{OpenId, OpenMode, Refused, Sharing};

/// The place for a name, and the object that has it.
pub(super) struct Destination<O> {
    /// The directory.
    pub(super) dir: O,
    /// The name, as the client spells it.
    pub(super) name: Box<[u8]>,
    /// The path with that name.
    pub(super) path: Vec<u8>,
    /// The object of that name, which may differ from it in case.
    pub(super) taken: Option<Taken<O>>,
}

/// An object that has a name already.
pub(super) struct Taken<O> {
    pub(super) object: O,
    pub(super) key: ObjectKey,
    /// The name as the directory has it.
    pub(super) name: Box<[u8]>,
    attr: Attr,
}

impl<O: Clone> Destination<O> {
    /// The destination that `target` names, for the object that is open.
    ///
    /// # Errors
    /// [`Status::OBJECT_NAME_INVALID`] and others for a path that none can have,
    /// [`Status::OBJECT_PATH_NOT_FOUND`], [`Status::SHARING_VIOLATION`],
    /// [`Status::ACCESS_DENIED`] where the share is read-only or the user may not add to the
    /// directory.
    pub(super) async fn of<H: Host>(
        host: &H,
        open: &Open<ObjectOf<H>>,
        target: &fscc::Target<'_>,
    ) -> Result<Self, Failure>
    where
        H::Store: Store<Object = O>,
    {
        if !host.share().maximal.contains(AccessMask::ADD_FILE) {
            return Err(Status::ACCESS_DENIED.into());
        }
        let path = Path::parse(target.name)?;
        if path.names_directory() && !open.is_directory() {
            return Err(Status::OBJECT_NAME_INVALID.into());
        }
        let parent = walk_parent(host, &path).await?.ok_or(Status::OBJECT_NAME_INVALID)?;
        let Missing { at: At { dir, attr, name }, path } = parent;
        let (store, cred) = (host.store(), &host.user().credentials);
        let change = Access::WRITE | Access::EXECUTE;
        if !allowed(store, &dir, &attr, cred, change).await? {
            return Err(Status::ACCESS_DENIED.into());
        }
        free_to_change(host, &store.key(&dir)).await?;
        let taken = match store.lookup_folded(&dir, Name::new(&name)?).await {
            Ok(Folded { name, object, attr }) => {
                Some(Taken { key: store.key(&object), object, name, attr })
            }
            Err(FsError::NotFound) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { dir, name, path, taken })
    }

    /// The path of `name` in the same directory.
    pub(super) fn path_of(&self, name: &[u8]) -> Vec<u8> {
        let parent = self.path.strip_suffix(&*self.name).unwrap_or_default();
        [parent, name].concat()
    }
}

/// Fails if an open of the directory is in the way of new names.
async fn free_to_change<H: Host>(host: &H, dir: &ObjectKey) -> Result<(), Failure> {
    let mode = OpenMode { access: Sharing::WRITE, share: Sharing::READ | Sharing::WRITE };
    let held = host.reserve(dir, mode).await?;
    // While the reservation stands, no client can open the directory with the right to delete it.
    host.close(held).await;
    Ok(())
}

impl<O> Taken<O> {
    /// Reserves this object, which is not the one that is open, so that it can make room for it
    /// (MS-FSA §2.1.5.15.11). The request must allow the replacement, the object must be a file
    /// that is not read-only, and no client may have it open, or with `posix` none that does not
    /// share deletion. Until the caller closes the open that this returns, no client can open the
    /// object without sharing deletion.
    ///
    /// # Errors
    /// [`Status::OBJECT_NAME_COLLISION`], [`Status::ACCESS_DENIED`].
    pub(super) async fn reserve<H: Host>(
        &self,
        host: &H,
        target: &fscc::Target<'_>,
    ) -> Result<OpenId, Failure>
    where
        H::Store: Store<Object = O>,
    {
        if !target.replace {
            return Err(Status::OBJECT_NAME_COLLISION.into());
        }
        let (_, details) = host.store().details(&self.object).await?;
        let directory = self.attr.kind == FileKind::Directory;
        if directory || details.dos.contains(DosAttributes::READONLY) {
            return Err(Status::ACCESS_DENIED.into());
        }
        let share = if target.posix { Sharing::all() } else { Sharing::empty() };
        let mode = OpenMode { access: Sharing::DELETE, share };
        let held = match host.reserve(&self.key, mode).await {
            Ok(held) => held,
            Err(Refused::Sharing | Refused::DeletePending) => {
                return Err(Status::ACCESS_DENIED.into());
            }
            Err(refused) => return Err(refused.into()),
        };
        // Opens that neither read nor write conflict with none.
        if !target.posix && host.opens_on(&self.key).await > 1 {
            host.close(held).await;
            return Err(Status::ACCESS_DENIED.into());
        }
        Ok(held)
    }
}
