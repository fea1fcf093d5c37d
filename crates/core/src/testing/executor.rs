//! Runs one future to its end on the calling thread.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls `future` until it is ready, sleeping between wake-ups. It drives no timers and no I/O.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::poll_fn;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the wake is to come from another thread")]
    fn waits_for_a_wake_from_another_thread() {
        let mut polls = 0;
        let woken = block_on(poll_fn(|context| {
            polls += 1;
            if polls == 3 {
                return Poll::Ready("done");
            }
            let waker = context.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        }));
        assert_eq!((woken, polls), ("done", 3));
    }
}
