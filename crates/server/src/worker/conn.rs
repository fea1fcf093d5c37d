//! One connection: its socket and session, the [`Receiver`] and the [`SendQueue`], and its requests
//! that wait or are in flight.
//!
//! A connection knows records, not their content. The bounds on a connection are compared by its
//! worker.

use super::load::{ConnLoad, OriginLoad};
use super::receive::{Received, Receiver, Taking};
use super::send::SendQueue;
use super::socket::Socket;
use super::tally::Counted;
use crate::session::Session;
use crate::sync::Arc;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::collections::HashMap;
use std::net::{IpAddr, TcpStream};
use std::rc::Rc;
use weir_core::{Mono, VolumeId};
use weir_gate::ConnId;
use weir_gate::Room;

/// One client connection of a worker.
pub(super) struct Conn {
    pub(super) socket: Socket,
    pub(super) peer: IpAddr,
    pub(super) id: ConnId,
    /// The protocol's state of the connection.
    pub(super) session: Session,
    pub(super) receiver: Receiver,
    pub(super) send: SendQueue,
    /// The requests in flight, and the sums of the origin.
    pub(super) load: Rc<ConnLoad>,
    /// Whether gates may release its requests.
    pub(super) room: Arc<Room>,
    pub(super) parked: Parked,
    /// Reading is stopped until this volume's parked memory shrinks.
    pub(super) stopped: Option<VolumeId>,
    /// Time at which bytes were last received.
    pub(super) active: Mono,
    /// Time of the alarm that is set for the session.
    pub(super) alarm: Option<Mono>,
    /// Time of the next attempt to send, after the server had no right to reply.
    pub(super) retry: Option<Mono>,
    /// The events that epoll watches for now.
    pub(super) interest: EventFlags,
    /// The connection is on the worker's list of connections to tidy.
    pub(super) dirty: bool,
    /// A reply cannot be sent, so that the connection has to be closed.
    pub(super) broken: bool,
    /// All requests were answered and the peer was told that no more comes.
    pub(super) half_closed: bool,
}

impl Conn {
    /// A connection that nothing was read from yet.
    pub(super) fn new(
        id: ConnId,
        socket: TcpStream,
        peer: IpAddr,
        session: Session,
        origin: &Rc<OriginLoad>,
        now: Mono,
    ) -> Self {
        Self {
            socket: Socket::new(socket),
            peer,
            id,
            session,
            receiver: Receiver::new(origin),
            send: SendQueue::new(origin),
            load: ConnLoad::new(origin),
            room: Arc::default(),
            parked: Parked { of: HashMap::new(), bytes: origin.count_parked(0) },
            stopped: None,
            active: now,
            alarm: None,
            retry: None,
            interest: EventFlags::IN,
            dirty: false,
            broken: false,
            half_closed: false,
        }
    }

    /// The sums of the connection's origin.
    pub(super) fn origin(&self) -> &Rc<OriginLoad> {
        self.load.origin()
    }

    /// Bytes held by unsent replies and by requests in flight.
    pub(super) fn reply_bytes(&self) -> usize {
        self.send.bytes() + self.load.reserved()
    }

    /// From now on only what the kernel has received already is taken.
    pub(super) fn take_no_more(&mut self) {
        self.receiver.take_no_more(&self.socket);
    }

    /// Receives once: into the window, or to drop it when the server stops.
    pub(super) fn receive(&mut self, buffers: &mut super::Buffers) -> Received {
        if self.receiver.has_all() {
            self.receiver.discard(&self.socket, buffers)
        } else {
            self.receiver.receive(&self.socket, buffers)
        }
    }

    /// Tells the peer that no more comes, once everything that was taken is answered and sent.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) fn end_if_answered(&mut self) -> Result<(), Errno> {
        if self.receiver.has_all() && self.is_idle() && !self.half_closed {
            self.half_closed = true;
            self.socket.end()?;
        }
        Ok(())
    }

    /// Is no request under way on it? A partial record may be here.
    pub(super) fn is_idle(&self) -> bool {
        self.load.in_flight() == 0
            && self.parked.of.is_empty()
            && self.send.is_empty()
            && self.receiver.taking == Taking::All
    }

    /// Did the client close in an orderly way, after it had taken every reply?
    pub(super) fn took_all(&self) -> bool {
        self.receiver.has_ended() && self.is_idle() && matches!(self.socket.take_error(), Ok(None))
    }
}

/// The requests of a connection that wait at gates.
pub(super) struct Parked {
    of: HashMap<VolumeId, usize>,
    /// Bytes of memory that they hold.
    bytes: Counted,
}

impl Parked {
    /// The volumes at whose gates requests wait.
    pub(super) fn volumes(&self) -> impl Iterator<Item = VolumeId> {
        self.of.keys().copied()
    }

    /// Bytes of memory that the requests hold.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.amount() as u64
    }

    /// Does no request wait?
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// A request of `bytes` waits at the gate of `volume`.
    pub(super) fn add(&mut self, volume: VolumeId, bytes: u64) {
        *self.of.entry(volume).or_default() += 1;
        self.bytes.set(self.bytes.amount() + usize::try_from(bytes).unwrap_or(0));
    }

    /// A request of `bytes` waits no more.
    pub(super) fn remove(&mut self, volume: VolumeId, bytes: u64) {
        self.bytes.set(self.bytes.amount() - usize::try_from(bytes).unwrap_or(0));
        if let Some(count) = self.of.get_mut(&volume) {
            *count -= 1;
            if *count == 0 {
                self.of.remove(&volume);
            }
        }
    }
}
