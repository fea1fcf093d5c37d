//! The thread: waits for calls, datagrams and the time, and gives each to whom it is for.

use super::{LockDoor, Message, Service};
use crate::acceptor::Stop;
use crate::engine::Engine;
use crate::sync::Arc;
use crate::udp::{Datagrams, Incoming};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::time::Duration;
use weir_core::Clock;

/// The lock manager with its sockets.
pub(crate) struct LockThread {
    engine: Arc<Engine>,
    door: Arc<LockDoor>,
    datagrams: Datagrams,
    service: Service,
}

impl LockThread {
    /// Serves what comes by `door` and in `datagrams` by `service`.
    pub(crate) fn new(
        engine: Arc<Engine>,
        door: Arc<LockDoor>,
        datagrams: Datagrams,
        service: Service,
    ) -> Self {
        Self { engine, door, datagrams, service }
    }

    /// Serves until `stop`.
    ///
    /// # Errors
    /// The poll fails, which it does only for want of memory.
    pub(crate) fn run(mut self, stop: &Stop) -> std::io::Result<()> {
        let (mut messages, mut incoming) = (Vec::new(), Vec::new());
        while self.wait(stop)? {
            self.door.inbox.take(&mut messages);
            for message in messages.drain(..) {
                match message {
                    Message::Call(asked) => self.service.ask(asked),
                    Message::Wake(slot) => self.service.woken(slot),
                    Message::VolumeGone(volume) => self.service.volume_gone(volume),
                    Message::RollCall(absent) => drop(absent),
                }
            }
            self.datagrams.receive(&mut incoming);
            for one in incoming.drain(..) {
                match one {
                    Incoming::Call(asked) => self.service.ask(asked),
                    Incoming::Reply { from, record } => self.service.answer(from, &record),
                }
            }
            self.service.tick();
            for datagram in self.service.out.drain(..) {
                self.datagrams.send(&datagram);
            }
        }
        self.service.stop();
        Ok(())
    }

    /// Sleeps until something is to be done; `false` to end.
    fn wait(&self, stop: &Stop) -> std::io::Result<bool> {
        let wait = self.service.next_due().since(self.engine.clock.now());
        // Rounded up, so that it is not too early again and again.
        let wait = Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(0) + 1);
        let timeout = Timespec::try_from(wait).ok();
        let mut watched = vec![PollFd::new(stop, PollFlags::IN)];
        watched.push(PollFd::new(&*self.door.inbox, PollFlags::IN));
        watched.extend(self.datagrams.sockets().map(|socket| PollFd::new(socket, PollFlags::IN)));
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(watched.first().is_none_or(|stop| stop.revents().is_empty()))
    }
}
