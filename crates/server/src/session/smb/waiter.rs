//! A LOCK that waits for others' locks, between the tables of locks and its operation.

use crate::sync::{Arc, Mutex, lock};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// The end of a wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// The lock is held.
    Granted,
    /// The client or an operator cancelled the request, or the server stops.
    Cancelled,
    /// The open was closed, or the volume is gone.
    Over,
}

#[derive(Default)]
struct Slot {
    ended: Option<Waited>,
    waker: Option<Waker>,
}

/// The token of the wait in the tables. Dropped there without a grant, it ends the wait.
pub(crate) struct SmbWaiter(Arc<Mutex<Slot>>);

/// The operation's end of the wait.
pub(super) struct Wait(Arc<Mutex<Slot>>);

/// A wait, and its token for the tables.
pub(super) fn wait() -> (Wait, SmbWaiter) {
    let slot = Arc::<Mutex<Slot>>::default();
    (Wait(Arc::clone(&slot)), SmbWaiter(slot))
}

impl SmbWaiter {
    /// Tells the operation that it has the lock.
    pub(crate) fn granted(self) {
        self.end(Waited::Granted);
    }

    /// Ends the wait as a CANCEL of the client does.
    pub(crate) fn cancelled(self) {
        self.end(Waited::Cancelled);
    }

    fn end(&self, how: Waited) {
        let mut slot = lock(&self.0);
        if slot.ended.is_none() {
            slot.ended = Some(how);
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
    }
}

impl Drop for SmbWaiter {
    fn drop(&mut self) {
        self.end(Waited::Over);
    }
}

impl Future for Wait {
    type Output = Waited;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Waited> {
        let mut slot = lock(&self.0);
        match slot.ended {
            Some(how) => Poll::Ready(how),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
