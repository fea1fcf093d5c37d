//! From a call to its reply.

use super::ops;
use super::wire::Procedure;
use crate::rpc::{AcceptError, Call, reply};
use crate::v3::Served;
use crate::v3::ops::{Context, Outcome};
use crate::v3::wire::Status;
use crate::view::VolumeView;
use crate::xdr::{Reader, Writer, XdrError, decode};
use alloc::sync::Arc;
use alloc::vec::Vec;
use weir_core::limits::HANDLE_BYTES_MAX;
use weir_core::{FileHandle, Rights, Store};

/// The file handle that the arguments of `procedure` begin with, still sealed; none for NULL and
/// for numbers that are no procedure, which [`null`] answers.
///
/// # Errors
/// [`XdrError`] if there is none where there must be: to be answered GARBAGE_ARGS.
pub fn handle(procedure: u32, args: &[u8]) -> Result<Option<&[u8]>, XdrError> {
    match Procedure::of(procedure) {
        None | Some(Procedure::Null) => Ok(None),
        Some(_) => Reader::new(args).opaque("file handle", HANDLE_BYTES_MAX).map(Some),
    }
}

/// Is `procedure` not idempotent? See [`Route`](crate::v3::Route).
#[must_use]
pub fn non_idempotent(procedure: u32) -> bool {
    Procedure::of(procedure) == Some(Procedure::Setacl)
}

/// Carries `call` out on `volume`, as [`v3::serve`](crate::v3::serve) does calls of NFSv3.
pub async fn serve<S: Store>(
    volume: Arc<VolumeView<S>>,
    rights: Rights,
    handle: FileHandle,
    call: Call,
    reply: Vec<u8>,
) -> Served {
    let Call { xid, procedure, args, .. } = call;
    let Some(procedure) = Procedure::of(procedure) else {
        let reply = reply::error(reply, xid, AcceptError::ProcedureUnavailable);
        return Served { reply, moved: 0, status: Status::NOTSUPP };
    };
    let mut out = reply::begin(reply, xid);
    let cx = Context { volume: &*volume, rights: &rights, handle: &handle, args: &args, xid };
    match dispatch(&cx, procedure, &mut out).await {
        Ok(Outcome { status, moved }) => Served { reply: reply::finish(out), moved, status },
        Err(_) => {
            let reply = reply::error(out.into_vec(), xid, AcceptError::GarbageArgs);
            Served { reply, moved: 0, status: Status::INVAL }
        }
    }
}

async fn dispatch<S: Store>(
    cx: &Context<'_, S>,
    procedure: Procedure,
    out: &mut Writer,
) -> Result<Outcome, XdrError> {
    let args = &**cx.args;
    Ok(match procedure {
        Procedure::Null => Outcome::from(Status::OK),
        Procedure::Getacl => ops::getacl(cx, decode(args)?, out).await,
        Procedure::Setacl => ops::setacl(cx, decode(args)?, out).await,
    })
}

/// The reply to a call without a file handle.
#[must_use]
pub fn null(call: &Call, reply: Vec<u8>) -> Vec<u8> {
    match Procedure::of(call.procedure) {
        Some(Procedure::Null) => reply::finish(reply::begin(reply, call.xid)),
        None => reply::error(reply, call.xid, AcceptError::ProcedureUnavailable),
        Some(_) => reply::error(reply, call.xid, AcceptError::GarbageArgs),
    }
}

/// The reply of a procedure that fails with `status` before anything is known of the object.
#[must_use]
pub fn refuse(call: &Call, status: Status, reply: Vec<u8>) -> Vec<u8> {
    match Procedure::of(call.procedure) {
        None | Some(Procedure::Null) => null(call, reply),
        Some(Procedure::Getacl | Procedure::Setacl) => {
            let mut out = reply::begin(reply, call.xid);
            out.u32(status.0);
            out.bool(false);
            reply::finish(out)
        }
    }
}
