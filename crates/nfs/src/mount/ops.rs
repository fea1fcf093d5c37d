//! The six procedures of MOUNT (RFC 1813 §5.2).

use super::VERSION;
use super::wire::{
    Flavors, MntOk, MntRes, MountEntry, MountName, MountPath, MountStatus, PathArgs, Procedure,
};
use crate::limits::RECORD_BYTES_MAX;
use crate::rpc::{AcceptError, Call, reply};
use crate::xdr::{Encode, Writer, decode};
use alloc::vec::Vec;
use weir_core::handle::Sealed;

/// What a client may mount, and the mounts it is told of. The implementation knows the client.
pub trait Exports {
    /// Mounts the export at `path`.
    ///
    /// # Errors
    /// A [`MountStatus`] that is not OK: `NOENT` for an unknown path, `ACCES` where no rule lets
    /// the client in.
    fn mount(&self, path: &[u8]) -> Result<MountGrant, MountStatus>;

    /// Everything that is exported to anybody.
    fn exports(&self) -> Vec<Export>;

    /// The mounts that were not undone, as far as they are known.
    fn mounts(&self) -> Vec<Mount>;

    /// Forgets the client's mount of `path`.
    fn unmount(&self, path: &[u8]);

    /// Forgets all the client's mounts.
    fn unmount_all(&self);
}

/// What a client gets by mounting.
#[derive(Clone, Copy)]
pub struct MountGrant {
    /// The handle of the top directory.
    pub handle: Sealed,
    /// RPC flavors accepted for it, best first.
    pub flavors: Flavors,
}

/// An export, for EXPORT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its path.
    pub path: Vec<u8>,
    /// Who may mount it, as text; empty means everybody.
    pub groups: Vec<Vec<u8>>,
}

/// A mount, for DUMP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The client, as text.
    pub host: Vec<u8>,
    /// What it mounted.
    pub path: Vec<u8>,
}

/// Carries out `call` to the MOUNT program and gives the whole reply, made in the buffer `reply`.
///
/// Another version is PROG_MISMATCH, an unknown procedure PROC_UNAVAIL, and arguments that can't
/// be decoded GARBAGE_ARGS. A list too long for one record is cut short.
#[must_use]
pub fn serve(call: &Call, exports: &dyn Exports, reply: Vec<u8>) -> Vec<u8> {
    if call.version != VERSION {
        let mismatch = AcceptError::ProgramMismatch { low: VERSION, high: VERSION };
        return reply::error(reply, call.xid, mismatch);
    }
    let Some(procedure) = Procedure::of(call.procedure) else {
        return reply::error(reply, call.xid, AcceptError::ProcedureUnavailable);
    };
    let path = match procedure {
        Procedure::Mnt | Procedure::Umnt => match decode::<PathArgs<'_>>(&call.args) {
            Ok(args) => args.path.0,
            Err(_) => return reply::error(reply, call.xid, AcceptError::GarbageArgs),
        },
        _ => &[],
    };
    let mut out = reply::begin(reply, call.xid);
    match procedure {
        Procedure::Null => {}
        Procedure::Mnt => mnt(path, exports, &mut out),
        Procedure::Dump => dump(&exports.mounts(), &mut out),
        Procedure::Umnt => exports.unmount(path),
        Procedure::Umntall => exports.unmount_all(),
        Procedure::Export => export(&exports.exports(), &mut out),
    }
    reply::finish(out)
}

fn mnt(path: &[u8], exports: &dyn Exports, out: &mut Writer) {
    match exports.mount(path) {
        Ok(MountGrant { handle, flavors }) => {
            MntRes::Ok(MntOk { handle: (&handle).into(), flavors }).encode(out);
        }
        Err(status) => MntRes::Fail(status).encode(out),
    }
}

fn dump(mounts: &[Mount], out: &mut Writer) {
    list(mounts, out, |mount, out| {
        MountEntry { host: MountName(&mount.host), directory: MountPath(&mount.path) }.encode(out);
    });
}

fn export(exports: &[Export], out: &mut Writer) {
    list(exports, out, |export, out| {
        MountPath(&export.path).encode(out);
        list(&export.groups, out, |group, out| MountName(group).encode(out));
    });
}

/// Room kept for the ends of nested lists, in bytes.
const TAIL_BYTES: usize = 16;

/// Appends a linked list of `items`, as many as fit into a record.
fn list<T>(items: &[T], out: &mut Writer, encode: impl Fn(&T, &mut Writer)) {
    for item in items {
        let start = out.position();
        out.bool(true);
        encode(item, out);
        if out.position() > RECORD_BYTES_MAX.saturating_sub(TAIL_BYTES) {
            out.truncate(start);
            break;
        }
    }
    out.bool(false);
}
