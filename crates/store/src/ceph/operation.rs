//! Operations that ask the store several times, in one job of the pool. Without this each question
//! would be a job: two threads would be woken for each.
//!
//! Not here: the content of an operation, which may be any future. While it waits for anything but
//! the store, it holds no thread of the pool.

use super::volume::Volume;
use crate::sync::Arc;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use weir_core::FsResult;

thread_local! {
    /// Does this thread, which is one of the pool, poll an operation?
    static POLLS: Cell<bool> = const { Cell::new(false) };
}

/// An operation after its first poll.
enum Polled<F: Future> {
    Done(F::Output),
    /// It waits for something besides the store.
    Waits(Pin<Box<F>>),
}

/// Marks this thread while it polls an operation.
struct Polling;

impl Polling {
    fn begin() -> Self {
        POLLS.set(true);
        Self
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        POLLS.set(false);
    }
}

/// May a call of the library block this thread?
pub(super) fn may_block() -> bool {
    POLLS.get()
}

/// Polls `operation` on a thread of the pool once. If it waits for something else after that, the
/// caller polls it on.
///
/// # Errors
/// `Io` if it panicked there.
pub(super) async fn carry_out<F>(volume: Arc<Volume>, operation: F) -> FsResult<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut operation = Box::pin(operation);
    let polled = volume.lane.run(move || {
        let _polling = Polling::begin();
        // This waker wakes nobody: the caller polls a pending operation again at once.
        let polled = operation.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        Ok(match polled {
            Poll::Ready(output) => Polled::Done(output),
            Poll::Pending => Polled::Waits(operation),
        })
    });
    match polled.await? {
        Polled::Done(output) => Ok(output),
        Polled::Waits(rest) => Ok(rest.await),
    }
}
