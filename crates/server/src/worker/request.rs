//! An NFS operation between its arrival and its reply, as plain data.

use crate::engine::ServedVolume;
use crate::sync::Arc;
use weir_core::{FileHandle, Mono};
use weir_nfs::rpc::Call;
use weir_nfs::v3::{Class, Rights};
use weir_qos::ClientKey;

/// An operation that is routed and may go as soon as the gate lets it.
pub(crate) struct Request {
    /// The worker that owns the connection.
    pub(crate) worker: usize,
    /// The connection's token there.
    pub(crate) connection: u64,
    /// Who counts as one client.
    pub(crate) client: ClientKey,
    pub(crate) volume: Arc<ServedVolume>,
    pub(crate) rights: Rights,
    pub(crate) handle: FileHandle,
    pub(crate) call: Call,
    pub(crate) class: Class,
    /// Bytes charged to the contract: the most the operation can move.
    pub(crate) cost: u64,
    pub(crate) arrived: Mono,
}

impl Request {
    /// Makes the request independent of the receive buffer, which is then free for what comes next:
    /// a request that waits for its contract can well afford the copy.
    pub(crate) fn detach(&mut self) {
        let args = std::mem::replace(&mut self.call.args, weir_core::Shared::from(Vec::new()));
        self.call.args = args.detach();
    }

    /// Bytes of memory it keeps alive.
    pub(crate) fn pinned(&self) -> usize {
        self.call.args.pinned()
    }

    /// Bytes to expect of the reply.
    pub(crate) fn reply_bytes(&self) -> usize {
        match self.class {
            Class::Read => usize::try_from(self.cost).unwrap_or(0) + 256,
            Class::Null | Class::Metadata | Class::Write | Class::Commit => 256,
        }
    }
}

/// What is remembered of an operation while its future runs.
pub(crate) struct Pending {
    pub(crate) connection: u64,
    pub(crate) volume: Arc<ServedVolume>,
    pub(crate) class: Class,
    pub(crate) cost: u64,
    pub(crate) arrived: Mono,
    /// What the connection's reply bytes hold for it.
    pub(crate) reserved: usize,
}
