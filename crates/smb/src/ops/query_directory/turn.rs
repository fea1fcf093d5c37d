//! The requests that carry one listing on, one after another: each takes the listing, and gives it
//! back at a new position.

use crate::host::Host;
use crate::open::Scan;
use core::future::poll_fn;
use core::task::Poll;

/// The only request that carries the listing of an open on, until it is dropped.
pub(super) struct Turn<'a, H: Host> {
    host: &'a H,
    open: &'a H::Open,
}

impl<'a, H: Host> Turn<'a, H> {
    /// Waits for the requests before it.
    pub(super) async fn wait(host: &'a H, open: &'a H::Open) -> Self {
        poll_fn(|poller| {
            host.with(open, |state| {
                let listing = state.listing.get_or_insert_default();
                if listing.busy {
                    let waker = poller.waker();
                    if !listing.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
                        listing.waiting.push(waker.clone());
                    }
                    return Poll::Pending;
                }
                listing.busy = true;
                Poll::Ready(())
            })
        })
        .await;
        Self { host, open }
    }

    /// The listing as the request before left it.
    pub(super) fn scan(&self) -> Option<Scan> {
        self.host.with(self.open, |state| state.listing.as_ref()?.scan.clone())
    }

    /// Leaves the listing to the request after this one.
    pub(super) fn keep(&self, scan: Scan) {
        self.host.with(self.open, |state| {
            state.listing.get_or_insert_default().scan = Some(scan);
        });
    }
}

impl<H: Host> Drop for Turn<'_, H> {
    fn drop(&mut self) {
        let waiting = self.host.with(self.open, |state| {
            let listing = state.listing.get_or_insert_default();
            listing.busy = false;
            core::mem::take(&mut listing.waiting)
        });
        // All requests are woken, because the next in turn may have been cancelled.
        waiting.into_iter().for_each(core::task::Waker::wake);
    }
}
