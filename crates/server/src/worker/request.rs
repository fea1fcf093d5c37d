//! A request between its arrival and its reply, as plain data.

use super::holder::{LookingUp, UnderWay};
use crate::conn_id::ConnId;
use crate::engine::{ServedVolume, Stages};
use crate::gate::{Charged, FileCharge, Queued};
use crate::session::{Job, Unanswered};
use crate::sync::Arc;
use weir_core::{Mono, ObjectKey, OpClass};
use weir_qos::{ClientKey, Cost};

/// An operation on a volume, which may start as soon as the gate of the volume lets it.
pub(crate) struct Request {
    /// The connection that gets its reply.
    pub(crate) connection: ConnId,
    /// The client, by which shares are fair.
    pub(crate) client: ClientKey,
    pub(crate) volume: Arc<ServedVolume>,
    pub(crate) class: OpClass,
    /// The charge to the contract: the most bytes that the operation can move, and itself if it is
    /// a READ or WRITE. Once the request may go, the actual charge.
    pub(crate) cost: Cost,
    /// Once it may go, what the file was charged that it reads or writes, if that has a ceiling.
    pub(crate) file: Option<Box<FileCharge>>,
    pub(crate) arrived: Mono,
    /// Time of the charge, at which the gate let the request go.
    pub(crate) passed: Mono,
    /// The part of the request that only its protocol understands.
    pub(crate) job: Job,
}

impl Request {
    /// The request's charge.
    pub(crate) fn charged(&self) -> Charged {
        Charged { volume: self.cost, file: self.file.as_deref().copied() }
    }

    /// Room to make for the reply at once, in bytes.
    pub(super) fn reply_room(&self) -> usize {
        self.job.reply_room(self.class, self.cost)
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
        self.job.file(self.class)
    }

    fn charge(&mut self, charged: Charged, now: Mono) {
        self.cost = charged.volume;
        self.file = charged.file.map(Box::new);
        self.passed = now;
    }

    fn detach(&mut self) {
        self.job.detach();
    }

    fn pinned(&self) -> usize {
        self.job.pinned()
    }

    fn held_bytes(&self) -> usize {
        self.job.held_bytes(self.class, self.cost)
    }
}

/// The connection of a request that is prepared.
pub(crate) struct Preparing {
    pub(super) connection: ConnId,
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
    pub(crate) rest: Unanswered,
    /// The operation's part of the connection's held bytes.
    pub(crate) reserved: usize,
    /// The origin's count of this operation, if it waits for the disk.
    pub(crate) under_way: Option<UnderWay>,
}
