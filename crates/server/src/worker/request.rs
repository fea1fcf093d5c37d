//! An NFS operation between its arrival and its reply, as plain data.

use super::holder::{LookingUp, UnderWay};
use crate::conn_id::ConnId;
use crate::engine::{ServedVolume, Stages};
use crate::gate::{Charged, FileCharge, Queued};
use crate::retransmit::Claim;
use crate::sync::Arc;
use weir_catalog::ExportRule;
use weir_core::{FileHandle, Mono, ObjectKey, OpClass, Rights};
use weir_nfs::PROGRAM_NFSACL;
use weir_nfs::rpc::Call;
use weir_nfs::v3::wire::Procedure;
use weir_qos::{ClientKey, Cost};

/// Largest reply to READDIR or READDIRPLUS, in bytes: the preferred size that FSINFO tells, and
/// its header.
const LISTING_BYTES_MAX: usize = (64 << 10) + 256;

/// Largest reply of NFSACL, in bytes: two lists of the most entries, and what stands around them.
const LISTS_BYTES_MAX: usize = 2 * weir_nfs::limits::ACL_ENTRIES_MAX * 12 + 256;

/// An operation that is routed and may go as soon as the gate lets it.
pub(crate) struct Request {
    /// The connection that gets its reply.
    pub(crate) connection: ConnId,
    /// The client, by which shares are fair.
    pub(crate) client: ClientKey,
    pub(crate) volume: Arc<ServedVolume>,
    pub(crate) rights: Rights,
    pub(crate) handle: FileHandle,
    pub(crate) call: Call,
    pub(crate) class: OpClass,
    /// The charge to the contract: the most bytes that the operation can move, and itself if it is
    /// a READ or WRITE. Once the request may go, the actual charge.
    pub(crate) cost: Cost,
    /// Once it may go, what the file was charged that it reads or writes, if that has a ceiling.
    pub(crate) file: Option<Box<FileCharge>>,
    pub(crate) arrived: Mono,
    /// Time of the charge, at which the gate let the request go.
    pub(crate) passed: Mono,
    /// The request's place among its client's calls, if it has one.
    pub(crate) claim: Option<Claim>,
}

impl Request {
    /// The request's charge.
    pub(crate) fn charged(&self) -> Charged {
        Charged { volume: self.cost, file: self.file.as_deref().copied() }
    }

    /// Room to make for the reply at once, in bytes.
    pub(crate) fn reply_room(&self) -> usize {
        match self.class {
            OpClass::Read => usize::try_from(self.cost.bytes).unwrap_or(0) + 256,
            OpClass::Null | OpClass::Metadata | OpClass::Write | OpClass::Commit => 256,
        }
    }
}

impl Queued for Request {
    fn client(&self) -> ClientKey {
        self.client
    }

    fn connection(&self) -> ConnId {
        self.connection
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn file(&self) -> Option<&ObjectKey> {
        matches!(self.class, OpClass::Read | OpClass::Write).then_some(&self.handle.key)
    }

    fn charge(&mut self, charged: Charged, now: Mono) {
        self.cost = charged.volume;
        self.file = charged.file.map(Box::new);
        self.passed = now;
    }

    fn detach(&mut self) {
        let args = std::mem::replace(&mut self.call.args, weir_core::Shared::from(Vec::new()));
        self.call.args = args.detach();
    }

    fn pinned(&self) -> usize {
        self.call.args.pinned()
    }

    /// A READ or a listing holds its reply, any request its arguments, of which a WRITE that waits
    /// for the disk has a second copy.
    fn held_bytes(&self) -> usize {
        let reply = if self.call.program == PROGRAM_NFSACL {
            LISTS_BYTES_MAX
        } else {
            match Procedure::of(self.call.procedure) {
                Some(Procedure::Readdir | Procedure::Readdirplus) => LISTING_BYTES_MAX,
                _ => self.reply_room(),
            }
        };
        reply + self.call.args.len()
    }
}

/// A request whose caller's groups are looked up.
pub(crate) struct Asking {
    /// The request, with the rights of the groups that the client sent.
    pub(super) request: Request,
    /// The rule for the caller's rights, once its groups are known.
    pub(super) rule: ExportRule,
    pub(super) _counted: LookingUp,
}

/// The state of an operation while its future runs.
pub(crate) struct Pending {
    pub(crate) connection: ConnId,
    pub(crate) volume: Arc<ServedVolume>,
    pub(crate) class: OpClass,
    pub(crate) cost: Cost,
    pub(crate) file: Option<Box<FileCharge>>,
    /// Time of the charge.
    pub(crate) charged_at: Mono,
    pub(crate) stages: Stages,
    pub(crate) claim: Option<Claim>,
    /// The operation's part of the connection's held bytes.
    pub(crate) reserved: usize,
    /// The origin's count of this operation, if it waits for the disk.
    pub(crate) under_way: Option<UnderWay>,
}
