//! The signal that ends the threads which wait for sockets.

use crate::sync::Arc;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Ends the acceptor and the lock thread, which watch it.
#[derive(Clone)]
pub(crate) struct Stop {
    event: Arc<OwnedFd>,
}

impl Stop {
    /// A stop that was not asked for yet.
    ///
    /// # Errors
    /// The kernel gives no eventfd.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { event: Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?) })
    }

    /// Ends them: they return soon, and their sockets close.
    pub(crate) fn stop(&self) {
        let _full = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
