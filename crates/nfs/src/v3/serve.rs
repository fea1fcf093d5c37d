//! From a call to its reply: decodes the arguments, runs the operation, encodes what it says.
//!
//! The futures of rare operations are boxed, so that the state of a call that waits is as small as
//! its common operations need.

use super::ops::{self, Context, Outcome};
use super::wire::{Procedure, Status};
use crate::rpc::{AcceptError, Call, reply};
use crate::view::VolumeView;
use crate::xdr::{Writer, XdrError, decode};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use weir_core::handle::Sealed;
use weir_core::{FileHandle, Rights, Store};

/// A call that was carried out, or refused.
#[derive(Debug)]
pub struct Served {
    /// The complete reply record, with its mark.
    pub reply: Vec<u8>,
    /// Payload really moved by READ or WRITE, in bytes; 0 on failure.
    pub moved: u64,
    /// The status in the reply. Where RPC refuses the call there is none, and this is INVAL for
    /// GARBAGE_ARGS, NOTSUPP for PROC_UNAVAIL and SERVERFAULT for SYSTEM_ERR.
    pub status: Status,
}

/// Carries `call` out on `volume`. `handle` is the first handle among its arguments, proved and
/// found to be this volume's. `reply` is a pooled buffer: its content is dropped, its capacity is
/// used.
///
/// Payload that a WRITE brings stays within the buffer it was received in.
#[inline]
pub fn serve<S: Store>(
    volume: Arc<VolumeView<S>>,
    rights: Rights,
    handle: FileHandle,
    call: Call,
    reply: Vec<u8>,
) -> impl Future<Output = Served> {
    // Only what the operations need is kept while they wait.
    let Call { xid, procedure, args, .. } = call;
    async move {
        let Some(procedure) = Procedure::of(procedure) else {
            let reply = reply::error(reply, xid, AcceptError::ProcedureUnavailable);
            return Served { reply, moved: 0, status: Status::NOTSUPP };
        };
        let mut out = reply::begin(reply, xid);
        let context =
            Context { volume: &*volume, rights: &rights, handle: &handle, args: &args, xid };
        match dispatch(&context, procedure, &mut out).await {
            Ok(Outcome { status, moved }) => Served { reply: reply::finish(out), moved, status },
            Err(_) => {
                let reply = reply::error(out.into_vec(), xid, AcceptError::GarbageArgs);
                Served { reply, moved: 0, status: Status::INVAL }
            }
        }
    }
}

/// Decodes the arguments of `procedure` and runs it; nothing is written if they can't be decoded.
#[inline]
async fn dispatch<S: Store>(
    cx: &Context<'_, S>,
    procedure: Procedure,
    out: &mut Writer,
) -> Result<Outcome, XdrError> {
    let args = &**cx.args;
    Ok(match procedure {
        Procedure::Null => Outcome::from(Status::OK),
        Procedure::Getattr => ops::getattr(cx, &decode(args)?, out).await,
        Procedure::Lookup => ops::lookup(cx, &decode(args)?, out).await,
        Procedure::Access => ops::access(cx, &decode(args)?, out).await,
        Procedure::Read => ops::read(cx, &decode(args)?, out).await,
        Procedure::Write => ops::write(cx, &decode(args)?, out).await,
        Procedure::Setattr => Box::pin(ops::setattr(cx, decode(args)?, out)).await,
        Procedure::Readlink => Box::pin(ops::readlink(cx, decode(args)?, out)).await,
        Procedure::Create => Box::pin(ops::create(cx, decode(args)?, out)).await,
        Procedure::Mkdir => Box::pin(ops::mkdir(cx, decode(args)?, out)).await,
        Procedure::Symlink => Box::pin(ops::symlink(cx, decode(args)?, out)).await,
        Procedure::Mknod => Box::pin(ops::mknod(cx, decode(args)?, out)).await,
        Procedure::Remove => Box::pin(ops::remove(cx, decode(args)?, out)).await,
        Procedure::Rmdir => Box::pin(ops::rmdir(cx, decode(args)?, out)).await,
        Procedure::Rename => Box::pin(ops::rename(cx, decode(args)?, out)).await,
        Procedure::Link => Box::pin(ops::link(cx, decode(args)?, out)).await,
        Procedure::Readdir => Box::pin(ops::readdir(cx, decode(args)?, out)).await,
        Procedure::Readdirplus => Box::pin(ops::readdirplus(cx, decode(args)?, out)).await,
        Procedure::Fsstat => Box::pin(ops::fsstat(cx, decode(args)?, out)).await,
        Procedure::Fsinfo => Box::pin(ops::fsinfo(cx, decode(args)?, out)).await,
        Procedure::Pathconf => Box::pin(ops::pathconf(cx, decode(args)?, out)).await,
        Procedure::Commit => Box::pin(ops::commit(cx, decode(args)?, out)).await,
    })
}

/// The reply to a call without a file handle: NULL succeeds (RFC 1813 §3.3.0), a number beyond
/// COMMIT is PROC_UNAVAIL, and a procedure that needs a handle GARBAGE_ARGS.
#[must_use]
pub fn null(call: &Call, reply: Vec<u8>) -> Vec<u8> {
    match Procedure::of(call.procedure) {
        Some(Procedure::Null) => reply::finish(reply::begin(reply, call.xid)),
        None => reply::error(reply, call.xid, AcceptError::ProcedureUnavailable),
        Some(_) => reply::error(reply, call.xid, AcceptError::GarbageArgs),
    }
}

/// The reply to a call `xid` that changed names with success in an earlier process: without
/// attributes, which RFC 1813 §2.6 leaves optional, and with the handle of the object it `made`.
/// None if `procedure` is not one that changes names.
#[must_use]
pub fn again(procedure: u32, xid: u32, made: Option<&Sealed>, reply: Vec<u8>) -> Option<Vec<u8>> {
    let procedure = Procedure::of(procedure)?;
    let mut out = reply::begin(reply, xid);
    out.u32(Status::OK.0);
    let absent = match procedure {
        Procedure::Create | Procedure::Mkdir | Procedure::Symlink | Procedure::Mknod => {
            out.bool(made.is_some());
            if let Some(handle) = made {
                out.opaque(handle.as_bytes());
            }
            3
        }
        Procedure::Remove | Procedure::Rmdir => 2,
        Procedure::Link => 3,
        Procedure::Rename => 4,
        _ => return None,
    };
    for _ in 0..absent {
        out.bool(false);
    }
    Some(reply::finish(out))
}

/// The reply of any procedure that fails with `status` before it can say anything about
/// attributes: a bad handle, an unknown volume, a caller without rights.
#[must_use]
pub fn refuse(call: &Call, status: Status, reply: Vec<u8>) -> Vec<u8> {
    let Some(procedure) = Procedure::of(call.procedure) else { return null(call, reply) };
    // Attributes that are not given, one word each (RFC 1813 §2.6, `post_op_attr`, `pre_op_attr`).
    let absent = match procedure {
        Procedure::Null => return null(call, reply),
        Procedure::Getattr => 0,
        Procedure::Lookup
        | Procedure::Access
        | Procedure::Readlink
        | Procedure::Read
        | Procedure::Readdir
        | Procedure::Readdirplus
        | Procedure::Fsstat
        | Procedure::Fsinfo
        | Procedure::Pathconf => 1,
        Procedure::Setattr
        | Procedure::Write
        | Procedure::Create
        | Procedure::Mkdir
        | Procedure::Symlink
        | Procedure::Mknod
        | Procedure::Remove
        | Procedure::Rmdir
        | Procedure::Commit => 2,
        Procedure::Link => 3,
        Procedure::Rename => 4,
    };
    let mut out = reply::begin(reply, call.xid);
    out.u32(status.0);
    for _ in 0..absent {
        out.bool(false);
    }
    reply::finish(out)
}
