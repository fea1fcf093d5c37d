//! The demands of one worker's operations and sessions on gates: to park a part of a request, or to
//! take out a request that is cancelled. The worker carries them out in its round, because it alone
//! has the connections of the requests.

use super::part::Part;
use crate::engine::ServedVolume;
use crate::sync::Arc;
use std::cell::RefCell;
use std::rc::Rc;
use weir_gate::{ConnId, RequestId};

/// The demands that the worker has not carried out yet.
#[derive(Clone, Default)]
pub(crate) struct ToGates(Rc<RefCell<Asked>>);

#[derive(Default)]
pub(super) struct Asked {
    /// Operations within requests that are to be parked.
    pub(super) parts: Vec<Part>,
    /// Requests and parts that are cancelled.
    pub(super) cancelled: Vec<AtGate>,
}

/// A request, or a part of one, that waits at the gate of a volume.
pub(crate) struct AtGate {
    pub(super) volume: Arc<ServedVolume>,
    pub(super) connection: ConnId,
    pub(super) id: RequestId,
}

/// A request, or a part of one, that may be cancelled while it waits at a gate.
pub(crate) trait Cancellable {
    /// Notes its place at its gate, for [`ToGates::cancel`].
    fn parked(&self, at: AtGate);
}

impl ToGates {
    /// Has a part parked.
    pub(super) fn park(&self, part: Part) {
        self.0.borrow_mut().parts.push(part);
    }

    /// Has a request or a part taken out of its gate, unless it was released.
    pub(crate) fn cancel(&self, at: AtGate) {
        self.0.borrow_mut().cancelled.push(at);
    }

    /// Is there no demand?
    pub(super) fn is_empty(&self) -> bool {
        let Asked { parts, cancelled } = &*self.0.borrow();
        parts.is_empty() && cancelled.is_empty()
    }

    /// Takes all demands.
    pub(super) fn take(&self) -> Asked {
        self.0.take()
    }
}
