//! Messages from other threads to one that serves sockets: a queue, and an eventfd that ends the
//! thread's sleep. Not here: what the messages say.
//!
//! The queue is bounded by its senders. A worker has one message for each waiting request, each
//! pending task or preparation, each accepted connection, each connection that may be read again,
//! each change of a contract or returned charge, each other connection that wants a reply and each
//! connection to be closed for another, and one roll call at a time.

use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The queue of a thread. The thread and all that send to it share it.
pub(crate) struct Inbox<M> {
    /// `None` once the thread has left.
    queue: Mutex<Option<Vec<M>>>,
    signalled: AtomicBool,
    event: OwnedFd,
}

impl<M> Inbox<M> {
    /// An empty inbox.
    ///
    /// # Errors
    /// The kernel gives no eventfd.
    pub(crate) fn new() -> std::io::Result<Arc<Self>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (queue, signalled) = (Mutex::new(Some(Vec::new())), AtomicBool::new(false));
        Ok(Arc::new(Self { queue, signalled, event }))
    }

    /// Queues `message` and ends the thread's sleep. Drops it if the thread has left.
    pub(crate) fn post(&self, message: M) {
        match &mut *lock(&self.queue) {
            Some(queue) => queue.push(message),
            None => return,
        }
        if !self.signalled.swap(true, Ordering::AcqRel) {
            // An eventfd refuses only where its counter is full, and then it is readable already.
            let _full = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// Takes everything queued into `into` (which should be empty). The thread calls this whenever
    /// the eventfd is readable.
    pub(crate) fn take(&self, into: &mut Vec<M>) {
        let mut counter = [0; 8];
        let _empty = rustix::io::read(&self.event, &mut counter);
        // Cleared before the queue is taken: what is posted after the swap signals again.
        self.signalled.store(false, Ordering::Release);
        if let Some(queue) = &mut *lock(&self.queue) {
            std::mem::swap(queue, into);
        }
    }

    /// The thread leaves: drops everything queued, and what is posted from now on.
    pub(crate) fn close(&self) {
        let left = lock(&self.queue).take();
        drop(left);
    }
}

impl<M> AsFd for Inbox<M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_arrives_once_and_in_order() {
        let inbox = Inbox::new().unwrap();
        let mut got = Vec::new();
        for round in 0..3 {
            inbox.post(round);
            inbox.post(round + 10);
            inbox.take(&mut got);
            assert_eq!(std::mem::take(&mut got), [round, round + 10]);
        }
    }

    #[test]
    fn messages_to_a_thread_that_has_left_are_dropped() {
        let inbox = Inbox::new().unwrap();
        let message = Arc::new(());
        inbox.post(Arc::clone(&message));
        inbox.close();
        inbox.post(Arc::clone(&message));
        assert_eq!(Arc::strong_count(&message), 1);
        let mut got = Vec::new();
        inbox.take(&mut got);
        assert!(got.is_empty());
    }
}
