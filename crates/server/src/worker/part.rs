//! Permits for operations within a request that is carried out: the elements of a compound or of a
//! chain, in any volume, each of which is charged to its own contract.
//!
//! An operation asks by [`Permits::ask`] and awaits the [`Permit`]. If the gate does not let it
//! pass at once, the worker parks the [`Part`] like a request, with the same bounds. If its
//! connection closes meanwhile, the operation gets [`NoPermit`].

use crate::engine::{Asked, Permit, ServedVolume};
use crate::sync::{Arc, Mutex, lock};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
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

/// The parts that wait for their worker to park them.
pub(crate) type Unparked = Rc<RefCell<Vec<Part>>>;

/// The way of one request's operations to their permits.
#[derive(Clone)]
pub(crate) struct Permits {
    pub(super) connection: ConnId,
    pub(super) client: ClientKey,
    pub(super) unparked: Unparked,
}

impl Permits {
    /// The way of a request of `client` on `connection`, whose worker parks its parts.
    pub(crate) fn new(connection: ConnId, client: ClientKey, unparked: &Unparked) -> Self {
        Self { connection, client, unparked: Rc::clone(unparked) }
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
            let (worker, volume) = (self.connection.worker, Arc::clone(volume));
            let mut permit = Permit::new(worker, volume, asked, charged, now);
            permit.begin(asked.cost, now);
            return Ok(permit);
        }
        let slot = Arc::<Slot>::default();
        let Self { connection, client, .. } = *self;
        let (volume, answer) = (Arc::clone(volume), Answer(Arc::clone(&slot)));
        self.unparked.borrow_mut().push(Part { connection, client, volume, asked, file, answer });
        Wait(slot).await
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

    /// The permit of an operation that nobody waits for any more.
    pub(super) fn permit(self, charged: Charged, charged_at: Mono) -> Permit {
        Permit::new(self.connection.worker, self.volume, self.asked, charged, charged_at)
    }

    /// Tells the operation that there is no room for it at its gate.
    pub(super) fn refused(self) {
        lock(&self.answer.0).give(Err(NoPermit::Busy));
    }

    /// Gives the operation its permit: its gate `charged` it at `charged_at`, after it had waited
    /// since `since`.
    pub(super) fn admitted(self, charged: Charged, charged_at: Mono, since: Mono, now: Mono) {
        let Self { connection, volume, asked, answer, .. } = self;
        let mut permit = Permit::new(connection.worker, volume, asked, charged, charged_at);
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
    answered: bool,
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

/// The operation's end of its wait. A permit that comes after the wait was dropped returns its
/// charge.
struct Wait(Arc<Slot>);

impl Future for Wait {
    type Output = Result<Permit, NoPermit>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waiting = lock(&self.0);
        match waiting.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                waiting.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
