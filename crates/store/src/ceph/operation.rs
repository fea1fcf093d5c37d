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
    /// The address of the volume whose operation this thread of the pool polls; 0 if it polls none.
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// An operation after its first poll.
enum Polled<F: Future> {
    Done(F::Output),
    /// It waits for something besides the store.
    Waits(Pin<Box<F>>),
}

/// Marks this thread while it polls an operation on a volume.
struct Here;

impl Here {
    fn enter(volume: &Arc<Volume>) -> Self {
        HERE.set(Arc::as_ptr(volume).addr());
        Self
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.set(0);
    }
}

/// Is this a thread of the pool that polls an operation on `volume`? Then a call may block.
pub(super) fn is_here(volume: &Arc<Volume>) -> bool {
    HERE.get() == Arc::as_ptr(volume).addr()
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
    let polled_on = Arc::clone(&volume);
    let polled = volume.lane.run(move || {
        let _here = Here::enter(&polled_on);
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
