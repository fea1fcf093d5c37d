//! CREATE (MS-SMB2 §3.3.5.9, MS-FSA §2.1.5.1): opens what is there, or makes it.
//!
//! [`request`] checks a request as far as that goes without looking at any file, [`existing`] opens
//! and empties, [`new`] makes. No caching is ever granted: oplock and lease requests are answered
//! as none. Opens are not durable, there are no snapshots and no extended attributes.
//!
//! A CREATE that fails has changed nothing: the file is reserved before anything is destroyed, and
//! what was made is removed again. If its future is dropped half-way, the end of the session ends
//! the reservation.
//!
//! A file that is renamed over SMB while it is opened is looked for anew. One that is renamed while
//! it is made keeps the name in its open by which it was made.

mod contexts;
mod existing;
mod new;
mod request;
#[cfg(test)]
mod tests;

use super::close::end;
use super::info::file_info;
use super::walk::{At, Walked, walk};
use super::{Context, Done, Failure, Outcome};
use crate::host::{Host, ObjectOf};
use crate::limits::CREATE_TRIES_MAX;
use crate::open::{FileMode, Open, OpenState, Place};
use crate::wire::{
    AccessMask, CreateAction, CreateDisposition, CreateRequest, CreateResponse,
    CreateResponseFlags, FileId, OplockLevel, Status,
};
use alloc::vec::Vec;
use request::Ask;
use weir_core::{Attr, Details, FileKind, FsError, Store};
use weir_state::{OpenId, Refused};

pub(super) async fn create<H: Host>(cx: &Context<'_, H>, out: &mut Vec<u8>) -> Outcome {
    let request = CreateRequest::decode(cx.message)?;
    let ask = Ask::of(&request)?;
    let mut tries = 1_u32;
    let opened = loop {
        match attempt(cx.host, &ask).await {
            Ok(opened) => break opened,
            Err(Stop::Again(_)) if tries < CREATE_TRIES_MAX => tries = tries.saturating_add(1),
            Err(Stop::Again(status)) => return Err(status.into()),
            Err(Stop::Failed(failure)) => return Err(failure),
        }
    };
    Ok(respond(cx.host, &ask, &opened, out))
}

/// Why an attempt came to its end.
enum Stop {
    /// Somebody else made or removed the file meanwhile. The status is for the case that this does
    /// not end.
    Again(Status),
    /// The request fails.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Failed(status.into())
    }
}

impl From<FsError> for Stop {
    fn from(error: FsError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self::Failed(refused.into())
    }
}

/// A CREATE that succeeded.
struct Opened<H: Host> {
    open: H::Open,
    action: CreateAction,
    attr: Attr,
    details: Details,
    /// The most access of the user, if it was asked for.
    maximal: Option<AccessMask>,
}

async fn attempt<H: Host>(host: &H, ask: &Ask) -> Result<Opened<H>, Stop> {
    let renames = host.renames();
    match walk(host, &ask.path, ask.last()).await? {
        Walked::Found(found) if ask.disposition == CreateDisposition::Create => {
            let pending = host.is_delete_pending(&host.store().key(&found.object)).await;
            let taken = Status::OBJECT_NAME_COLLISION;
            Err(if pending { Status::DELETE_PENDING } else { taken }.into())
        }
        Walked::Found(found) => existing::open(host, ask, found, renames).await,
        Walked::Missing(missing) => match ask.disposition {
            CreateDisposition::Open | CreateDisposition::Overwrite => {
                Err(Status::OBJECT_NAME_NOT_FOUND.into())
            }
            _ => new::make(host, ask, missing).await,
        },
    }
}

/// The parts of an open that is about to be kept.
struct Reserved<O> {
    object: O,
    kind: FileKind,
    granted: AccessMask,
    place: Option<Place<O>>,
    path: Vec<u8>,
    shared: OpenId,
}

impl<O> From<At<O>> for Place<O> {
    fn from(at: At<O>) -> Self {
        Self { dir: at.dir, name: at.name }
    }
}

/// Keeps the open in the session; ends the reservation if there is no room for it.
async fn keep<H: Host>(
    host: &H,
    ask: &Ask,
    reserved: Reserved<ObjectOf<H>>,
) -> Result<H::Open, Status> {
    let Reserved { object, kind, granted, place, path, shared } = reserved;
    let open = Open {
        id: FileId::default(),
        tree: host.tree(),
        object: object.clone(),
        key: host.store().key(&object),
        kind,
        granted,
        options: ask.options,
        mode: FileMode::of(ask.options),
        shared,
    };
    let state = OpenState::new(place.clone(), path.into());
    if let Some(open) = host.keep(open, state) {
        return Ok(open);
    }
    end(host, shared, &object, || place.clone()).await;
    Err(Status::INSUFFICIENT_RESOURCES)
}

fn respond<H: Host>(host: &H, ask: &Ask, opened: &Opened<H>, out: &mut Vec<u8>) -> Done {
    let Opened { open, action, attr, details, maximal } = opened;
    let mut flags = CreateResponseFlags::empty();
    let plain = matches!(attr.kind, FileKind::Regular | FileKind::Directory);
    flags.set(CreateResponseFlags::REPARSE_POINT, !plain);
    let info = (&file_info(attr, details, false)).into();
    let (oplock, action, file) = (OplockLevel::NONE, *action, open.id);
    let contexts = ask.contexts.answers(host, attr, *maximal);
    CreateResponse { oplock, flags, action, info, file }.encode(contexts, out);
    Done::on(file)
}
