//! Permits for operations within a request that is carried out: the elements of a compound or of a
//! chain, in any volume, each of which is charged to its own contract.
//!
//! An operation asks by [`Permits::ask`] and awaits the [`Permit`]. If the gate does not let it
//! pass at once, the worker parks the [`Part`] like a request, with the same bounds. If its
//! connection closes meanwhile, the operation gets [`NoPermit`]. An operation that drops its wait
//! takes the part out of the gate.

use super::to_gates::{AtGate, Cancellable, ToGates};
use crate::engine::{Asked, Permit, ServedVolume};
use crate::sync::{Arc, Mutex, lock};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use weir_core::{Clock, Mono, ObjectKey};
use weir_gate::Charged;
use weir_gate::ConnId;
use weir_qos::{ClientKey, Cost};

/// Why an operation gets no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPermit {
    /// The connection of its request closed.
    #[error("the connection closed")]
    Closed,
    /// The requests that wait hold all the memory they may.
    #[error("too many requests wait")]
    Busy,
}

/// The way of one request's operations to their permits.
#[derive(Clone)]
pub(crate) struct Permits {
    pub(super) connection: ConnId,
    pub(super) client: ClientKey,
    pub(super) to_gates: ToGates,
}

impl Permits {
    /// The way of a request of `client` on `connection`, whose worker parks its parts.
    pub(crate) fn new(connection: ConnId, client: ClientKey, to_gates: &ToGates) -> Self {
        Self { connection, client, to_gates: to_gates.clone() }
    }

    /// A permit for what is `asked` of `volume`, which reads or writes `file` if it names one. The
    /// operation has begun when the permit is here.
    ///
    /// # Errors
    /// [`NoPermit`].
    pub(crate) async fn ask(
        &self,
        volume: &Arc<ServedVolume>,
        asked: Asked,
        file: Option<ObjectKey>,
    ) -> Result<Permit, NoPermit> {
        let now = volume.clock().now();
        if let Some(charged) = volume.try_pass(asked.cost, file.as_ref(), now) {
            let (connection, volume, file) = (self.connection, Arc::clone(volume), file.as_ref());
            let mut permit = Permit::new(connection, volume, asked, file, charged, now);
            permit.begin(asked.cost, now);
            return Ok(permit);
        }
        let slot = Arc::<Slot>::default();
        let Self { connection, client, .. } = *self;
        let (volume, answer) = (Arc::clone(volume), Answer(Arc::clone(&slot)));
        self.to_gates.park(Part { connection, client, volume, asked, file, answer });
        Wait { slot, to_gates: self.to_gates.clone() }.await
    }
}

/// An operation within a request, while it waits at a gate.
pub(crate) struct Part {
    connection: ConnId,
    client: ClientKey,
    volume: Arc<ServedVolume>,
    asked: Asked,
    file: Option<ObjectKey>,
    answer: Answer,
}

impl Part {
    pub(super) fn volume(&self) -> &Arc<ServedVolume> {
        &self.volume
    }

    pub(super) fn client(&self) -> ClientKey {
        self.client
    }

    pub(super) fn connection(&self) -> ConnId {
        self.connection
    }

    pub(super) fn cost(&self) -> Cost {
        self.asked.cost
    }

    pub(super) fn file(&self) -> Option<&ObjectKey> {
        self.file.as_ref()
    }

    /// Does the operation still wait for its permit?
    pub(super) fn is_awaited(&self) -> bool {
        !lock(&self.answer.0).answered
    }

    /// The wait, which may be cancelled.
    pub(super) fn cancellable(&self) -> Arc<dyn Cancellable> {
        Arc::clone(&self.answer.0) as Arc<dyn Cancellable>
    }

    /// The permit of an operation that nobody waits for any more.
    pub(super) fn permit(self, charged: Charged, charged_at: Mono) -> Permit {
        let Self { connection, volume, asked, file, .. } = self;
        Permit::new(connection, volume, asked, file.as_ref(), charged, charged_at)
    }

    /// Tells the operation that there is no room for it at its gate.
    pub(super) fn refused(self) {
        lock(&self.answer.0).give(Err(NoPermit::Busy));
    }

    /// Gives the operation its permit: its gate `charged` it at `charged_at`, after it had waited
    /// since `since`.
    pub(super) fn admitted(self, charged: Charged, charged_at: Mono, since: Mono, now: Mono) {
        let Self { connection, volume, asked, file, answer, .. } = self;
        let file = file.as_ref();
        let mut permit = Permit::new(connection, volume, asked, file, charged, charged_at);
        permit.begin_delayed(since, now);
        lock(&answer.0).give(Ok(permit));
    }
}

/// The other end of an operation's wait: it ends when this is dropped.
struct Answer(Arc<Slot>);

impl Drop for Answer {
    fn drop(&mut self) {
        lock(&self.0).give(Err(NoPermit::Closed));
    }
}

type Slot = Mutex<Waiting>;

/// The wait of an operation for its permit.
#[derive(Default)]
struct Waiting {
    answer: Option<Result<Permit, NoPermit>>,
    waker: Option<Waker>,
    /// The answer was given, or nobody waits for one any more.
    answered: bool,
    /// The place of the part at its gate, once it is parked.
    at_gate: Option<AtGate>,
}

impl Cancellable for Slot {
    fn parked(&self, at: AtGate) {
        lock(self).at_gate = Some(at);
    }
}

impl Waiting {
    /// Gives the answer, unless there was one.
    fn give(&mut self, answer: Result<Permit, NoPermit>) {
        if !std::mem::replace(&mut self.answered, true) {
            self.answer = Some(answer);
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }
}

/// The operation's end of its wait. Dropped before the answer, it takes the part out of its gate;
/// a permit that is under way already returns its charge.
struct Wait {
    slot: Arc<Slot>,
    to_gates: ToGates,
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut waiting = lock(&self.slot);
        if !std::mem::replace(&mut waiting.answered, true)
            && let Some(at) = waiting.at_gate.take()
        {
            self.to_gates.cancel(at);
        }
    }
}

impl Future for Wait {
    type Output = Result<Permit, NoPermit>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waiting = lock(&self.slot);
        match waiting.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                waiting.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
