//! A call of NFS or NFSACL on an object: the RPC part of a request, until its reply.

use super::super::{Operation, Outcome, Start};
use super::{NfsView, mandatory};
use crate::engine::ServedVolume;
use crate::sync::Arc;
use weir_core::{FileHandle, Mono, ObjectKey, OpClass, Rights, Shared, VolumeId};
use weir_drc::{CallKey, DrcEntry, Fingerprints, Waiters};
use weir_gate::ConnId;
use weir_nfs::rpc::{AcceptError, Call, reply};
use weir_nfs::v3::wire::{Procedure, Status};
use weir_nfs::v3::{self, Served, Uses};
use weir_nfs::{PROGRAM_NFSACL, acl};
use weir_qos::Cost;
use weir_store::StoreControl;

/// Largest reply to READDIR or READDIRPLUS, in bytes: the preferred size that FSINFO tells, and
/// its header.
const LISTING_BYTES_MAX: usize = (64 << 10) + 256;

/// Largest reply of NFSACL, in bytes: two lists of the most entries, and what stands around them.
const LISTS_BYTES_MAX: usize = 2 * weir_nfs::limits::ACL_ENTRIES_MAX * 12 + 256;

/// A call on an object, routed and with the caller's rights.
pub(crate) struct RpcJob {
    /// The volume that the call is for.
    pub(crate) nfs: Arc<NfsView>,
    pub(crate) rights: Rights,
    pub(crate) handle: FileHandle,
    pub(crate) call: Call,
    /// The call's entry in the duplicate request cache, if it has one.
    pub(crate) entry: Option<DrcEntry>,
    /// The fingerprints of the client's calls.
    pub(crate) fingerprints: Fingerprints,
}

/// The entry of a call in the duplicate request cache while the call is executed.
pub(crate) struct RpcUnanswered {
    pub(super) entry: Option<DrcEntry>,
    /// The key of a WRITE without an entry, which gets one if it waits for the disk.
    pub(super) write_without_entry: Option<CallKey>,
}

/// Room to make for the reply at once, in bytes.
pub(crate) fn reply_room(class: OpClass, cost: Cost) -> usize {
    match class {
        OpClass::Read => usize::try_from(cost.bytes).unwrap_or(0) + 256,
        OpClass::Null | OpClass::Metadata | OpClass::Write | OpClass::Commit => 256,
    }
}

impl RpcJob {
    /// False if another connection of the client sent the call too, and its turn came first.
    pub(in super::super) fn begin(&mut self) -> bool {
        self.entry.as_mut().is_none_or(DrcEntry::begin)
    }

    pub(in super::super) fn file(&self, class: OpClass) -> Option<&ObjectKey> {
        matches!(class, OpClass::Read | OpClass::Write).then_some(&self.handle.key)
    }

    pub(in super::super) fn detach(&mut self) {
        let args = std::mem::replace(&mut self.call.args, Shared::from(Vec::new()));
        self.call.args = args.detach();
    }

    pub(in super::super) fn pinned(&self) -> usize {
        self.call.args.pinned()
    }

    /// A READ or a listing holds its reply, any call its arguments, of which a WRITE that waits for
    /// the disk has a second copy.
    pub(in super::super) fn held_bytes(&self, class: OpClass, cost: Cost) -> usize {
        let reply = if self.call.program == PROGRAM_NFSACL {
            LISTS_BYTES_MAX
        } else {
            match Procedure::of(self.call.procedure) {
                Some(Procedure::Readdir | Procedure::Readdirplus) => LISTING_BYTES_MAX,
                _ => reply_room(class, cost),
            }
        };
        reply + self.call.args.len()
    }

    pub(in super::super) fn start(
        self: Box<Self>,
        Start { volume, class, reply, .. }: Start<'_>,
    ) -> (Operation, RpcUnanswered) {
        let Self { nfs, rights, handle, call, entry, fingerprints } = *self;
        let write = class == OpClass::Write && entry.is_none();
        let write_without_entry = write.then(|| fingerprints.of_data(&call));
        // The store keeps a non-idempotent call on record with its change.
        let nfs = match entry.as_ref().and_then(DrcEntry::on_record) {
            Some(call) => Arc::new(nfs.with_store(volume.store.for_call(call))),
            None => nfs,
        };
        let free = |uses: Uses<'_>| mandatory::is_free(volume, &handle.key, &uses);
        let (store, xid) = (&volume.store, call.xid);
        let panicked = move || system_error(xid);
        let operation = Operation::Rpc(match call.program {
            PROGRAM_NFSACL => {
                store.carry_out(acl::serve(nfs, rights, handle, call, reply), panicked)
            }
            _ if volume.filters.without_open.is_unused() || Uses::of(&call).is_none_or(free) => {
                store.carry_out(v3::serve(nfs, rights, handle, call, reply), panicked)
            }
            _ => {
                let volume = Arc::clone(volume);
                store.carry_out(checked(volume, nfs, rights, handle, call, reply), panicked)
            }
        });
        (operation, RpcUnanswered { entry, write_without_entry })
    }

    pub(in super::super) fn busy(&self) -> Vec<u8> {
        refuse(&self.call, Status::JUKEBOX, Vec::with_capacity(256))
    }

    pub(in super::super) fn refused(self) -> RpcUnanswered {
        RpcUnanswered { entry: self.entry, write_without_entry: None }
    }
}

impl RpcUnanswered {
    /// Caches the reply, if the call is not idempotent. Returns the other connections that get it.
    pub(in super::super) fn answered(
        self,
        volume: VolumeId,
        connection: ConnId,
        reply: &[u8],
        now: Mono,
    ) -> Vec<ConnId> {
        let waiters = self.entry.and_then(|entry| entry.answered(volume, reply, now));
        let others =
            |waiters: Waiters| waiters.iter().filter(|waiter| *waiter != connection).collect();
        waiters.map_or_else(Vec::new, others)
    }
}

impl From<Served> for Outcome {
    fn from(Served { reply, moved, status }: Served) -> Self {
        Self { reply: Some(reply), moved, ok: status == Status::OK }
    }
}

/// Carries out a call that uses data, unless it conflicts with a lock or a deny mode.
async fn checked(
    volume: Arc<ServedVolume>,
    nfs: Arc<NfsView>,
    rights: Rights,
    handle: FileHandle,
    call: Call,
    reply: Vec<u8>,
) -> Served {
    if let Some(uses) = Uses::of(&call)
        && mandatory::conflicts(&volume, &handle.key, &uses).await
    {
        let reply = refuse(&call, Status::JUKEBOX, reply);
        return Served { reply, moved: 0, status: Status::JUKEBOX };
    }
    v3::serve(nfs, rights, handle, call, reply).await
}

/// The reply to call `xid`, which panicked on a thread of the pool. Only in a build that unwinds:
/// in a release the process ends.
fn system_error(xid: u32) -> Served {
    let reply = reply::error(Vec::new(), xid, AcceptError::SystemError);
    Served { reply, moved: 0, status: Status::SERVERFAULT }
}

/// The reply to a call that is refused before it is carried out.
pub(super) fn refuse(call: &Call, status: Status, reply: Vec<u8>) -> Vec<u8> {
    match call.program {
        PROGRAM_NFSACL => acl::refuse(call, status, reply),
        _ => v3::refuse(call, status, reply),
    }
}
