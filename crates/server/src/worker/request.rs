//! A request between its arrival and its reply, as plain data.

use super::io::IoGuard;
use super::load::InFlight;
use super::part::Part;
use super::tally::Counted;
use super::to_gates::Cancellable;
use crate::engine::{Asked, Permit, ServedVolume};
use crate::op_name::OpName;
use crate::session::{Job, Unanswered};
use crate::sync::Arc;
use weir_core::{Mono, ObjectKey, OpClass};
use weir_gate::ConnId;
use weir_gate::{Charged, Queued};
use weir_qos::{ClientKey, Cost};

/// An operation on a volume that is not admitted yet.
pub(crate) struct Request {
    /// The connection that gets its reply.
    pub(crate) connection: ConnId,
    /// The client, by which shares are fair.
    pub(crate) client: ClientKey,
    pub(crate) volume: Arc<ServedVolume>,
    pub(crate) op: OpName,
    pub(crate) class: OpClass,
    /// The most that the operation can use of the contract: bytes that it can move, and itself if
    /// it counts.
    pub(crate) cost: Cost,
    pub(crate) arrived: Mono,
    /// The part of the request that only its protocol understands.
    pub(crate) job: Job,
}

impl Request {
    /// The request with a permit, which its gate `charged` at `charged_at`.
    pub(super) fn admitted(self, charged: Charged, charged_at: Mono) -> Admitted {
        let Self { connection, client, volume, op, class, cost, arrived, job } = self;
        let asked = Asked { op, class, cost, arrived };
        let file = job.file(class);
        let permit = Permit::new(connection, volume, asked, file, charged, charged_at);
        Admitted { connection, client, class, permit, job }
    }
}

/// A request that may be carried out.
pub(super) struct Admitted {
    pub(super) connection: ConnId,
    pub(super) client: ClientKey,
    pub(super) class: OpClass,
    pub(super) permit: Permit,
    pub(super) job: Job,
}

/// An entry of a gate's queue.
pub(crate) enum GateEntry {
    /// A request that has not begun.
    Request(Request),
    /// An operation within a request that is carried out.
    Part(Part),
}

impl From<Request> for GateEntry {
    fn from(request: Request) -> Self {
        Self::Request(request)
    }
}

impl GateEntry {
    /// The volume whose contract the entry waits for.
    pub(super) fn volume(&self) -> &Arc<ServedVolume> {
        match self {
            Self::Request(request) => &request.volume,
            Self::Part(part) => part.volume(),
        }
    }

    /// The entry's wait, if it may be cancelled before its turn.
    pub(super) fn cancellable(&self) -> Option<Arc<dyn Cancellable>> {
        match self {
            Self::Request(request) => request.job.cancellable(),
            Self::Part(part) => Some(part.cancellable()),
        }
    }
}

impl Queued for GateEntry {
    fn client(&self) -> ClientKey {
        match self {
            Self::Request(request) => request.client,
            Self::Part(part) => part.client(),
        }
    }

    fn connection(&self) -> ConnId {
        match self {
            Self::Request(request) => request.connection,
            Self::Part(part) => part.connection(),
        }
    }

    fn cost(&self) -> Cost {
        match self {
            Self::Request(request) => request.cost,
            Self::Part(part) => part.cost(),
        }
    }

    fn file(&self) -> Option<&ObjectKey> {
        match self {
            Self::Request(request) => request.job.file(request.class),
            Self::Part(part) => part.file(),
        }
    }

    fn detach(&mut self) {
        match self {
            Self::Request(request) => request.job.detach(),
            Self::Part(_) => {}
        }
    }

    fn pinned(&self) -> usize {
        match self {
            Self::Request(request) => request.job.pinned(),
            // Its request is in flight, and counted as such.
            Self::Part(_) => 0,
        }
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Request(request) => request.job.held_bytes(request.class, request.cost),
            Self::Part(_) => 0,
        }
    }
}

/// The connection of a request or reply that is prepared.
pub(crate) struct Preparing {
    pub(super) connection: ConnId,
    pub(super) in_flight: InFlight,
    /// The origin's count of look-ups, if this is one.
    pub(super) _lookup: Option<Counted>,
}

/// The state of an operation while its future runs.
pub(crate) struct Pending {
    pub(super) connection: ConnId,
    pub(super) permit: Permit,
    pub(super) rest: Unanswered,
    pub(super) in_flight: InFlight,
    /// The origin's count of this operation, if it waits for the disk.
    pub(super) task: Option<Counted>,
    /// Locks and deny modes are answered once it is done, if it waits.
    pub(super) io: Option<IoGuard>,
    /// Time at which the store last woke the worker for it.
    pub(super) woken: Option<Mono>,
}
