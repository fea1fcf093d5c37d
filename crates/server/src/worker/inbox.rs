//! The way for other threads to talk to a worker: messages in a queue, and an eventfd that ends its
//! sleep.
//!
//! The queue is bounded by what sends to it: one message per waiting request, per pending task,
//! per connection accepted, two per answered request, one per call to the lock manager and per
//! change of a contract, and one roll call at a time.

use crate::admission::Shed;
use crate::engine::ServedVolume;
use crate::gate::Ticket;
use crate::locks::Asked;
use crate::retransmit::Caller;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock, mpsc};
use rustix::event::{EventfdFlags, eventfd};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use weir_core::VolumeId;

/// A message to a worker, or to the lock manager.
pub(crate) enum Message {
    /// Serve this new connection of this client.
    Connection(TcpStream, SocketAddr, Arc<Caller>),
    /// The task in this slot can make progress.
    Wake(usize),
    /// The group lookup in this slot can make progress.
    LookedUp(usize),
    /// This request may go now. Boxed: the other messages are small.
    Released(Box<Ticket>),
    /// This volume's contract changed, or somebody else began its queue: ask its gate again.
    Pump(Arc<ServedVolume>),
    /// A connection that stopped reading because of a volume's bound may go on.
    Resume(u64),
    /// Send this reply on this connection, which asked again for what another connection of its
    /// client had asked.
    Reply(u64, Vec<u8>),
    /// The lock manager's reply to a call on this connection.
    Answer(u64, Vec<u8>),
    /// To the lock manager alone: a call. Boxed: the other messages are small.
    Ask(Box<Asked>),
    /// To the lock manager alone: a volume is gone.
    VolumeGone(VolumeId),
    /// Close one connection of this origin, if there is one that is idle.
    Shed(Arc<Shed>),
    /// Drop this, as a sign of life.
    RollCall(mpsc::Sender<()>),
    /// Finish what is in flight and leave, at the latest after this long.
    Drain(Duration),
}

/// The sending side of a worker's queue; the worker keeps one too.
pub(crate) struct Inbox {
    queue: Mutex<Vec<Message>>,
    signalled: AtomicBool,
    event: OwnedFd,
}

impl Inbox {
    /// An empty inbox.
    ///
    /// # Errors
    /// The kernel gives no eventfd.
    pub(crate) fn new() -> std::io::Result<Arc<Self>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (queue, signalled) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        Ok(Arc::new(Self { queue, signalled, event }))
    }

    /// Queues `message` and ends the worker's sleep.
    pub(crate) fn post(&self, message: Message) {
        lock(&self.queue).push(message);
        if !self.signalled.swap(true, Ordering::AcqRel) {
            // An eventfd refuses only where its counter is full, and then it is readable already.
            let _full = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// Takes everything queued into `into` (which should be empty). The worker calls this whenever
    /// the eventfd is readable.
    pub(crate) fn take(&self, into: &mut Vec<Message>) {
        let mut counter = [0; 8];
        let _empty = rustix::io::read(&self.event, &mut counter);
        // Cleared before the queue is taken: what is posted after the swap signals again.
        self.signalled.store(false, Ordering::Release);
        std::mem::swap(&mut *lock(&self.queue), into);
    }
}

impl AsFd for Inbox {
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
            inbox.post(Message::Wake(round));
            inbox.post(Message::Wake(round + 10));
            inbox.take(&mut got);
            let slots: Vec<_> = got
                .drain(..)
                .map(|m| if let Message::Wake(slot) = m { slot } else { 99 })
                .collect();
            assert_eq!(slots, [round, round + 10]);
        }
    }
}
