//! A pause of a long search, in which the other requests of the worker go on.

use core::future::poll_fn;
use core::task::Poll;

/// Is ready when it is polled again, and asks for that at once.
pub(super) async fn pause() {
    let mut paused = false;
    poll_fn(|poller| {
        if paused {
            return Poll::Ready(());
        }
        paused = true;
        poller.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
