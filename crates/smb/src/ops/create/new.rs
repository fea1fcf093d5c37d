//! Making a file or directory (MS-FSA §2.1.5.1.1). The store decides whether the user may.

use super::contexts::{Contexts, adds};
use super::request::Ask;
use super::{Opened, Reserved, Stop, keep};
use crate::host::{Host, ObjectOf};
use crate::open::Place;
use crate::ops::access;
use crate::ops::descriptor;
use crate::ops::error::status;
use crate::ops::stable::write_through;
use crate::ops::walk::{At, Missing};
use crate::security::Dacl;
use crate::wire::{AccessMask, CreateAction, CreateOptions, FileAttributes, Status};
use weir_core::store::{CreateHow, MakeKind};
use weir_core::{
    AclKind, Attr, Credentials, Details, DosAttributes, FileKind, FsError, Name, SetAttr,
    SetDetails, Store,
};
use weir_state::{OpenMode, Sharing};

/// Rights that a new object does not give to group and others, as umask has it. In a directory with
/// a default list that list decides.
const UMASK: u32 = 0o022;

pub(super) async fn make<H: Host>(
    host: &H,
    ask: &Ask,
    missing: Missing<ObjectOf<H>>,
) -> Result<Opened<H>, Stop> {
    let directory = ask.options.contains(CreateOptions::DIRECTORY_FILE);
    let kind = if directory { FileKind::Directory } else { FileKind::Regular };
    let Missing { at, path } = missing;
    if !host.share().maximal.contains(adds(kind)) {
        return Err(Status::ACCESS_DENIED.into());
    }
    may_be(ask, kind)?;
    // As open(2) has it, the open that makes an object has all that it asks for, whatever the mode.
    let granted = ask
        .desired
        .grant(AccessMask::FILE_ALL_ACCESS & host.share().maximal, AccessMask::empty())?;
    if kind == FileKind::Regular {
        ask.contexts.check_allocation(host).await?;
    }
    let object = add(host, &at, kind, &ask.contexts).await?;
    let key = host.store().key(&object);
    let mode = OpenMode { access: access::sharing(granted), share: ask.share };
    let shared = match host.reserve(&key, mode).await {
        Ok(shared) => shared,
        Err(refused) => {
            undo(host, &at, &object).await;
            return Err(refused.into());
        }
    };
    let place = Some(Place { dir: at.dir.clone(), name: at.name.clone() });
    let reserved = Reserved { object: object.clone(), kind, granted, place, path, shared };
    let open = match keep(host, ask, reserved).await {
        Ok(open) => open,
        Err(error) => {
            undo(host, &at, &object).await;
            return Err(error.into());
        }
    };
    match furnish(host, ask, &open, &at).await {
        Ok(opened) => Ok(opened),
        Err(error) => {
            if let Some(open) = host.take(open.id) {
                host.close(open.shared).await;
            }
            undo(host, &at, &object).await;
            Err(error.into())
        }
    }
}

/// Can there be such an object?
fn may_be(ask: &Ask, kind: FileKind) -> Result<(), Status> {
    if kind != FileKind::Directory && ask.path.names_directory() {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    // Files are never encrypted here, and a client must not believe that its file is.
    if ask.attributes.contains(FileAttributes::ENCRYPTED) {
        return Err(Status::ACCESS_DENIED);
    }
    let read_only = ask.dos(kind).contains(DosAttributes::READONLY);
    if ask.deletes() && read_only && kind == FileKind::Regular {
        return Err(Status::CANNOT_DELETE);
    }
    Ok(())
}

/// Adds the object to its directory. If it is to get an access list of the client's, it is for its
/// owner alone until it has that: access is decided once, when a file is opened.
async fn add<H: Host>(
    host: &H,
    at: &At<ObjectOf<H>>,
    kind: FileKind,
    contexts: &Contexts,
) -> Result<ObjectOf<H>, Stop> {
    let (store, cred) = (host.store(), &host.user().credentials);
    let name = Name::new(&at.name)?;
    let directory = kind == FileKind::Directory;
    let (_, default) = store.acl(&at.dir, AclKind::Default).await.map_err(lost)?;
    let umask = if default.is_some() { 0 } else { UMASK };
    let listed = contexts.descriptor.as_ref().is_some_and(|wanted| wanted.dacl != Dacl::Absent);
    let hidden = if listed { 0o077 } else { 0 };
    let mode = if directory { 0o777 } else { 0o666 } & !umask & !hidden;
    let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
    let made = if directory {
        store.make(&at.dir, name, &MakeKind::Directory, &set, cred).await
    } else {
        store.create(&at.dir, name, &CreateHow::Guarded(set), cred).await
    };
    Ok(made.map_err(lost)?.object)
}

/// Somebody was faster with the name, or has removed the directory.
fn lost(error: FsError) -> Stop {
    match error {
        FsError::Exists => Stop::Again(Status::OBJECT_NAME_COLLISION),
        FsError::Stale | FsError::NotFound | FsError::NotDirectory => {
            Stop::Again(Status::OBJECT_PATH_NOT_FOUND)
        }
        error => error.into(),
    }
}

/// Gives a new object the attributes and the descriptor that are asked for, and has it deleted on
/// close if asked to.
async fn furnish<H: Host>(
    host: &H,
    ask: &Ask,
    open: &H::Open,
    at: &At<ObjectOf<H>>,
) -> Result<Opened<H>, Status> {
    let object = &open.object;
    if let Some(wanted) = &ask.contexts.descriptor {
        descriptor::set(host, object, wanted, &host.user().credentials).await?;
    }
    let (attr, details) = attributes(host, ask, open).await?;
    let maximal = match ask.contexts.asks_maximal() {
        true => Some(access::maximal(host, object, &attr, Some(at)).await?),
        false => None,
    };
    if ask.deletes() {
        let set = host.set_delete_on_close(open.shared, true).await;
        set.map_err(|_| Status::FILE_CLOSED)?;
    }
    write_through(host, open).await.map_err(status)?;
    let (open, action) = (open.clone(), CreateAction::CREATED);
    Ok(Opened { open, action, attr, details, maximal })
}

async fn attributes<H: Host>(
    host: &H,
    ask: &Ask,
    open: &H::Open,
) -> Result<(Attr, Details), Status> {
    let (store, dos) = (host.store(), ask.dos(open.kind));
    let (attr, details) = store.details(&open.object).await.map_err(status)?;
    if details.dos == dos {
        return Ok((attr, details));
    }
    let set = SetDetails { dos: Some(dos), ..SetDetails::default() };
    store.set_details(&open.object, &set, &Credentials::ROOT).await.map_err(status)
}

/// Removes an object that this request made before it failed, unless another client has opened it.
async fn undo<H: Host>(host: &H, at: &At<ObjectOf<H>>, object: &ObjectOf<H>) {
    let store = host.store();
    let alone = OpenMode { access: Sharing::DELETE, share: Sharing::empty() };
    let Ok(held) = host.reserve(&store.key(object), alone).await else { return };
    if let Ok(name) = Name::new(&at.name) {
        let _ = store.remove_this(&at.dir, name, object, &Credentials::ROOT).await;
    }
    host.close(held).await;
}
