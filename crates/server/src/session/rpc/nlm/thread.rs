//! The lock thread: waits for the messages of workers, for datagrams and for the time, and does
//! what workers may not wait for. What it does is in [`super::service`].

use super::service::Service;
use super::{Life, LockReply, Message, Nlm, lock_call};
use crate::engine::{Engine, View};
use crate::session::rpc::udp::{self, Asked, Datagrams, Incoming, Sockets};
use crate::stop::Stop;
use crate::sync::Arc;
use crate::worker::Tasks;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use weir_core::Clock;

/// The lock manager with its sockets.
pub(crate) struct LockThread {
    engine: Arc<Engine>,
    view: View,
    nlm: Arc<Nlm>,
    datagrams: Datagrams,
    /// Calls in datagrams that wait for something.
    calls: Tasks<LockReply, Sender, Message>,
    service: Service,
}

/// The sender of a call in a datagram.
#[derive(Clone, Copy)]
struct Sender {
    from: SocketAddr,
    local: IpAddr,
    /// The datagram's length, in bytes.
    bytes: usize,
    xid: u32,
}

impl LockThread {
    /// Serves what comes to `nlm` and to `sockets` in this `life`. `seed` is a number that nobody
    /// can guess.
    pub(crate) fn new(
        engine: Arc<Engine>,
        nlm: Arc<Nlm>,
        life: Life,
        sockets: Sockets,
        seed: u32,
    ) -> Self {
        let view = engine.view();
        let calls = Tasks::new(Arc::clone(&nlm.inbox), nlm.clock, Message::Wake);
        let datagrams = Datagrams::new(Arc::clone(&engine), sockets);
        let service = Service::new(Arc::clone(&nlm), life, seed);
        Self { engine, view, nlm, datagrams, calls, service }
    }

    /// Serves until `stop`.
    ///
    /// # Errors
    /// The poll fails, which it does only for want of memory.
    pub(crate) fn run(mut self, stop: &Stop) -> std::io::Result<()> {
        let (mut messages, mut incoming) = (Vec::new(), Vec::new());
        while self.wait(stop)? {
            self.nlm.inbox.take(&mut messages);
            for message in messages.drain(..) {
                match message {
                    Message::Call(asked) => self.service.carry_out(*asked),
                    Message::CallBack(callback) => self.service.call_back(callback),
                    Message::Wake(slot) => {
                        if let Some((reply, sender)) = self.calls.wake(slot) {
                            self.reply(reply, sender);
                        }
                    }
                    Message::RollCall(absent) => {
                        self.view.load();
                        self.datagrams.refresh();
                        drop(absent);
                    }
                    Message::Moved(moved) => self.service.moved(moved),
                }
            }
            self.datagrams.receive(&mut incoming);
            for one in incoming.drain(..) {
                match one {
                    Incoming::Call(asked) => self.begin(asked),
                    Incoming::Reply { from, record } => self.service.answer(from, &record),
                }
            }
            self.service.tick();
            for datagram in self.service.out.drain(..) {
                self.datagrams.send(&datagram);
            }
        }
        self.service.stop();
        // A caller that waits for an answer would wait for ever.
        self.nlm.inbox.close();
        Ok(())
    }

    /// Begins a call that came in a datagram.
    fn begin(&mut self, asked: Asked) {
        let Asked { call, peer, from, bytes } = asked;
        let sender = Sender { from, local: peer.local, bytes, xid: call.xid };
        let reply = lock_call(&self.engine, &self.nlm, self.view.load(), call, peer);
        if let Some((reply, sender)) = self.calls.start(reply, sender, |_| {}) {
            self.reply(reply, sender);
        }
    }

    fn reply(&mut self, reply: Vec<u8>, Sender { from, local, bytes, xid }: Sender) {
        let reply = udp::bounded(reply, bytes, xid);
        self.service.out.extend(udp::datagram(&reply, from, local));
    }

    /// Sleeps until something is to be done; `false` to end.
    fn wait(&self, stop: &Stop) -> std::io::Result<bool> {
        let wait = self.service.next_due().since(self.nlm.clock.now());
        // Rounded up, so that it is not too early again and again.
        let wait = Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(0) + 1);
        let timeout = Timespec::try_from(wait).ok();
        let mut watched = vec![PollFd::new(stop, PollFlags::IN)];
        watched.push(PollFd::new(&*self.nlm.inbox, PollFlags::IN));
        watched.extend(self.datagrams.sockets().map(|socket| PollFd::new(socket, PollFlags::IN)));
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(watched.first().is_none_or(|stop| stop.revents().is_empty()))
    }
}
