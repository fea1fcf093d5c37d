//! Opening what exists, and emptying it if asked to (MS-FSA §2.1.5.1.2).

use super::request::Ask;
use super::{Opened, Reserved, Stop, keep};
use crate::host::Host;
use crate::host::ObjectOf;
use crate::ops::access::{self, WRITES};
use crate::ops::close::{end, finish};
use crate::ops::error::status;
use crate::ops::stable::write_through;
use crate::ops::walk::{Found, Walked, walk};
use crate::wire::{
    AccessMask, CreateAction, CreateDisposition, CreateOptions, FileAttributes, Status,
};
use weir_core::{Attr, Credentials, Details, DosAttributes, FileKind, FsError, SetDetails, Store};
use weir_state::{Mode, OpenMode};

/// Opens an object that was found after this number of renames.
pub(super) async fn open<H: Host>(
    host: &H,
    ask: &Ask,
    found: Found<ObjectOf<H>>,
    renames: u64,
) -> Result<Opened<H>, Stop> {
    right_kind(ask, found.attr.kind)?;
    let store = host.store();
    let (attr, details) = store.details(&found.object).await.map_err(gone)?;
    let most = access::maximal(host, &found.object, &attr, found.at.as_ref()).await?;
    if ask.deletes() && found.at.is_none() {
        return Err(Status::CANNOT_DELETE.into());
    }
    let (granted, used) = decide(ask, &attr, &details, most)?;
    let key = store.key(&found.object);
    let mode = OpenMode { access: access::sharing(used), share: ask.share };
    let shared = host.reserve(&key, mode).await?;
    let (object, place) = (found.object, found.at.map(Into::into));
    // The last open of a file that was to be deleted may have been closed since it was found.
    match store.attr(&object).await {
        Ok(attr) if attr.nlink > 0 => {}
        Ok(_) | Err(_) => {
            end(host, shared, &object, || place.clone()).await;
            return Err(Stop::Again(Status::OBJECT_NAME_NOT_FOUND));
        }
    }
    let path = found.path;
    let reserved = Reserved { object, kind: attr.kind, granted, place, path, shared };
    let open = keep(host, ask, reserved).await?;
    // A rename that was applied before the open was kept did not reach it.
    let completed = if host.renames() == renames || leads_to(host, ask, &open).await {
        complete(host, ask, &open, (attr, details)).await.map_err(Stop::from)
    } else {
        Err(Stop::Again(Status::OBJECT_NAME_NOT_FOUND))
    };
    match completed {
        Ok((action, attr, details)) => {
            let maximal = ask.contexts.asks_maximal().then_some(most);
            Ok(Opened { open, action, attr, details, maximal })
        }
        Err(error) => {
            if let Some(open) = host.take(open.id) {
                finish(host, &open).await;
            }
            Err(error)
        }
    }
}

/// Does the path of the request lead to the object of `open`, by the name and path of the open?
async fn leads_to<H: Host>(host: &H, ask: &Ask, open: &H::Open) -> bool {
    match walk(host, &ask.path, ask.last()).await {
        Ok(Walked::Found(found)) => {
            let same_path = host.with(open, |state| state.path() == found.path);
            same_path && host.store().key(&found.object) == open.key
        }
        Ok(Walked::Missing(_)) | Err(_) => false,
    }
}

/// The error of a file that was removed since it was found.
fn gone(error: FsError) -> Stop {
    match error {
        FsError::Stale | FsError::NotFound => Stop::Again(Status::OBJECT_NAME_NOT_FOUND),
        error => error.into(),
    }
}

/// Is an object of this kind one that is asked for?
fn right_kind(ask: &Ask, kind: FileKind) -> Result<(), Status> {
    let itself = ask.options.contains(CreateOptions::OPEN_REPARSE_POINT);
    match kind {
        FileKind::Directory if ask.options.contains(CreateOptions::NON_DIRECTORY_FILE) => {
            Err(Status::FILE_IS_A_DIRECTORY)
        }
        FileKind::Directory if ask.overwrites() => Err(Status::OBJECT_NAME_COLLISION),
        FileKind::Directory => Ok(()),
        _ if ask.wants_directory() => Err(Status::NOT_A_DIRECTORY),
        FileKind::Regular => Ok(()),
        // Links, pipes, sockets and devices can be looked at and removed.
        _ if itself && !ask.overwrites() => Ok(()),
        _ => Err(Status::IO_REPARSE_TAG_NOT_HANDLED),
    }
}

/// The access that is granted, and the one that counts for other opens: to empty a file is to write
/// it, whatever the open is for afterwards.
fn decide(
    ask: &Ask,
    attr: &Attr,
    details: &Details,
    most: AccessMask,
) -> Result<(AccessMask, AccessMask), Status> {
    let read_only = attr.kind == FileKind::Regular && details.dos.contains(DosAttributes::READONLY);
    let most = if read_only { most.difference(WRITES) } else { most };
    let mut needed = AccessMask::empty();
    if ask.overwrites() {
        needed = AccessMask::WRITE_DATA;
        keeps_hidden(ask.attributes, details.dos)?;
    }
    let granted = ask.desired.grant(most, needed)?;
    if ask.deletes() && read_only {
        return Err(Status::CANNOT_DELETE);
    }
    Ok((granted, granted | needed))
}

/// A hidden or system file is emptied only if the request has the same attribute (MS-FSA
/// §2.1.5.1.2).
fn keeps_hidden(asked: FileAttributes, dos: DosAttributes) -> Result<(), Status> {
    let pairs = [
        (DosAttributes::HIDDEN, FileAttributes::HIDDEN),
        (DosAttributes::SYSTEM, FileAttributes::SYSTEM),
    ];
    let lost = pairs.into_iter().any(|(has, says)| dos.contains(has) && !asked.contains(says));
    if lost { Err(Status::ACCESS_DENIED) } else { Ok(()) }
}

/// Empties the file if asked to, and has it deleted on close if asked to.
async fn complete<H: Host>(
    host: &H,
    ask: &Ask,
    open: &H::Open,
    (mut attr, mut details): (Attr, Details),
) -> Result<(CreateAction, Attr, Details), Status> {
    let mut action = CreateAction::OPENED;
    if ask.overwrites() {
        ask.contexts.check_allocation(host).await?;
        let superseded = ask.disposition == CreateDisposition::Supersede;
        let sparse = if superseded { DosAttributes::empty() } else { DosAttributes::SPARSE };
        let dos = ask.dos(attr.kind) | details.dos.intersection(sparse);
        (attr, details) = empty(host, open, dos).await?;
        action = if superseded { CreateAction::SUPERSEDED } else { CreateAction::OVERWRITTEN };
    }
    if ask.deletes() {
        let set = host.set_delete_on_close(open.shared, true).await;
        set.map_err(|_| Status::FILE_CLOSED)?;
    }
    write_through(host, open).await.map_err(status)?;
    Ok((action, attr, details))
}

/// Empties a file, which then has these attributes. Locks on its bytes do not conflict with that.
/// The data goes last: a request that fails leaves it as it was.
async fn empty<H: Host>(
    host: &H,
    open: &H::Open,
    dos: DosAttributes,
) -> Result<(Attr, Details), Status> {
    let (store, object) = (host.store(), &open.object);
    let _io = host.begin_io(open, None, Mode::Exclusive).await?;
    let (mut attr, mut details) = store.details(object).await.map_err(status)?;
    if details.dos != dos {
        // The right to was decided with the open.
        let set = SetDetails { dos: Some(dos), ..SetDetails::default() };
        (attr, details) =
            store.set_details(object, &set, &Credentials::ROOT).await.map_err(status)?;
    }
    let change = store.set_size(object, 0).await.map_err(status)?;
    Ok((change.after.unwrap_or(Attr { size: 0, ..attr }), details))
}
