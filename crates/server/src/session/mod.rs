//! Sessions: the protocol of a connection, between its bytes and the requests of its worker.
//!
//! A session cuts received bytes into records ([`Session::next`]) and says what the worker is to do
//! with each of them ([`Session::begin`]). A [`Request`] carries its
//! [`Job`], the part of it that only the protocol understands, and leaves [`Unanswered`] behind
//! while it is carried out. Another protocol is one more variant of these enums.
//!
//! Not here: sockets, buffers and bounds, which are the connection's; the contract, which is the
//! gate's; the order of work, which is the worker's.

pub(crate) mod rpc;
pub(crate) mod smb;
#[cfg(test)]
mod toy;

pub(crate) use rpc::{NfsView, PeerExports, RpcJob, nfs_view, remember_calls};

use crate::engine::{Engine, ServedVolume, View};
use crate::sync::Arc;
use crate::worker::{Buffers, Cancellable, IoGenerations, Permits, Request, ToGates};
use rpc::{FrameError, NlmWaiter, RecentCredentials, RpcSession, RpcUnanswered};
use smb::{SmbError, SmbJob, SmbSession, SmbUnanswered, SmbWaiter};
use std::future::Future;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};
use weir_core::{Mono, ObjectKey, OpClass, Shared};
use weir_gate::ConnId;
use weir_locks::LockDoor;
use weir_qos::Cost;
use weir_state::Grant;

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// ONC RPC with record marking (RFC 5531 §11).
    Rpc,
    /// SMB over TCP (MS-SMB2 §2.1).
    Smb,
    /// The protocol for tests.
    #[cfg(test)]
    Toy,
}

/// The protocol's state of one connection.
pub(crate) enum Session {
    /// NFS, NFSACL, MOUNT, NLM, NSM and rpcbind.
    Rpc(RpcSession),
    /// SMB 3.1.1. Boxed, because most connections are of RPC.
    Smb(Box<SmbSession>),
    #[cfg(test)]
    Toy(toy::ToySession),
}

/// The next step of cutting received bytes into records.
#[derive(Debug)]
pub(crate) enum Frame {
    /// No whole record is there; a record of `total` bytes has begun, if that is known.
    NeedMore { total: Option<usize> },
    /// The session has copied a part of a record.
    Part { consumed: usize },
    /// A whole record lies at this place of the bytes.
    Whole { at: Range<usize>, consumed: usize },
    /// The last part of a record, which is copied together.
    Assembled { record: Vec<u8>, consumed: usize },
}

/// The peer broke the protocol beyond what an error reply can say: close the connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error(transparent)]
    Record(#[from] FrameError),
    #[error("not an RPC call")]
    NotACall,
    #[error(transparent)]
    Smb(#[from] SmbError),
    #[cfg(test)]
    #[error("the line is too long")]
    LongLine,
    #[error("cannot read the addresses of the connection")]
    Disconnected,
}

/// The state that the sessions of one worker share.
#[derive(Default)]
pub(crate) struct Common {
    rpc: RecentCredentials,
}

/// The view that a session has of its connection and worker.
pub(crate) struct Cx<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) view: &'a mut View,
    pub(crate) buffers: &'a mut Buffers,
    pub(crate) common: &'a mut Common,
    pub(crate) connection: ConnId,
    pub(crate) socket: &'a TcpStream,
    pub(crate) to_gates: &'a ToGates,
    /// Data operations under way on the worker.
    pub(crate) io: &'a IoGenerations,
    /// Bytes of the connection's requests that wait at gates.
    pub(crate) parked: u64,
    /// The peer's address, in its IPv4 form where it has one.
    pub(crate) peer: IpAddr,
    pub(crate) now: Mono,
    /// Time at which the record was received.
    pub(crate) arrived: Mono,
}

/// The work that a record makes for its worker.
pub(crate) enum Begun {
    /// Nothing: the record is dropped.
    Nothing,
    /// This reply is to be sent.
    Reply(Vec<u8>),
    /// The reply is to be sent once it is there, as [`Prepared::Reply`]; `holds` bytes are held
    /// until then. The session bounds how many replies are awaited. The record counts as so many
    /// `requests` in the turn of its connection.
    Await { reply: Preparation, holds: usize, requests: usize },
    /// This request is to go through the gate of its volume.
    Request(Request),
    /// Something has to be found out before the request can be admitted.
    Prepare(Preparation),
}

/// The preparation of a request.
pub(crate) type Preparation = Pin<Box<dyn Future<Output = Prepared>>>;

/// The end of a preparation.
pub(crate) enum Prepared {
    /// The request may go through the gate of its volume.
    Admit(Request),
    /// The request is refused with this reply.
    Refuse(Request, Vec<u8>),
    /// This reply is to be sent: the record was no request of a volume.
    Reply(Vec<u8>),
    /// Nothing is to be sent.
    Nothing,
    /// The answer cannot be sent: the connection is closed.
    Broken,
}

/// The surroundings of an operation that starts.
pub(crate) struct Start<'a> {
    pub(crate) volume: &'a Arc<ServedVolume>,
    pub(crate) class: OpClass,
    /// An empty buffer for the reply.
    pub(crate) reply: Vec<u8>,
    /// Data operations under way on the worker.
    pub(crate) io: &'a IoGenerations,
    /// The way to permits for further operations of the same request.
    pub(crate) permits: &'a dyn Fn() -> Permits,
}

/// The result of an operation.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The complete reply, with its framing. `None`: it cannot be sent, and the connection is
    /// closed.
    pub(crate) reply: Option<Vec<u8>>,
    /// Payload that a READ or WRITE moved, in bytes. A READ may have read some from the store and
    /// fail nevertheless.
    pub(crate) moved: u64,
    pub(crate) ok: bool,
}

/// An operation that is carried out.
pub(crate) enum Operation {
    Rpc(Pin<Box<dyn Future<Output = rpc::Served>>>),
    Smb(Pin<Box<dyn Future<Output = Outcome>>>),
    #[cfg(test)]
    Toy(Pin<Box<dyn Future<Output = Outcome>>>),
}

impl Future for Operation {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        match self.get_mut() {
            Self::Rpc(served) => served.as_mut().poll(cx).map(Outcome::from),
            Self::Smb(outcome) => outcome.as_mut().poll(cx),
            #[cfg(test)]
            Self::Toy(outcome) => outcome.as_mut().poll(cx),
        }
    }
}

/// The part of a request that only its protocol understands.
pub(crate) enum Job {
    /// Boxed, so that a request is small: it is moved at each step of its way.
    Rpc(Box<RpcJob>),
    Smb(Box<SmbJob>),
    #[cfg(test)]
    Toy(toy::ToyJob),
}

/// The part of a request that is left while its operation is carried out.
pub(crate) enum Unanswered {
    Rpc(RpcUnanswered),
    Smb(SmbUnanswered),
    #[cfg(test)]
    Toy(toy::ToyUnanswered),
}

/// The locks of all volumes, for all protocols.
pub(crate) type Locks = LockDoor<Waiter>;

/// A request that waits for a lock, with the way to tell its client.
pub(crate) enum Waiter {
    /// The lock thread calls the client back.
    Nlm(NlmWaiter),
    /// The operation that waits goes on.
    Smb(SmbWaiter),
    /// A call to the client goes out on its connection.
    #[cfg(test)]
    Toy(toy::ToyWaiter),
}

impl Waiter {
    /// Ends the wait of a request that was removed from the tables, as a CANCEL of its client does.
    pub(crate) fn cancelled(self) {
        match self {
            // NLM has no message for this: a client that still waits sends its request again.
            Self::Nlm(waiter) => drop(waiter),
            Self::Smb(waiter) => waiter.cancelled(),
            #[cfg(test)]
            Self::Toy(waiter) => drop(waiter),
        }
    }
}

/// Informs the clients that got these locks, each by its own protocol. Not to be called while the
/// tables are locked.
pub(crate) fn deliver(grants: Vec<Grant<Waiter>>) {
    for Grant { id, ask, waiter } in grants {
        match waiter {
            Waiter::Nlm(waiter) => waiter.granted(id, &ask),
            Waiter::Smb(waiter) => waiter.granted(),
            #[cfg(test)]
            Waiter::Toy(waiter) => waiter.granted(id),
        }
    }
}

impl Session {
    /// The session of a new connection from `peer`, which came to a listener of `protocol`.
    pub(crate) fn new(protocol: Protocol, engine: &Engine, peer: SocketAddr) -> Self {
        match protocol {
            Protocol::Rpc => Self::Rpc(RpcSession::new(engine, peer.ip())),
            Protocol::Smb => Self::Smb(Box::new(SmbSession::new(&engine.smb))),
            #[cfg(test)]
            Protocol::Toy => Self::Toy(toy::ToySession::new(peer.ip())),
        }
    }

    /// The name of its protocol, for people: `nfs` or `smb`.
    pub(crate) fn protocol(&self) -> &'static str {
        match self {
            Self::Rpc(_) => "nfs",
            Self::Smb(_) => "smb",
            #[cfg(test)]
            Self::Toy(_) => "toy",
        }
    }

    /// The RPC session of a connection from `peer` without a server.
    #[cfg(test)]
    pub(crate) fn for_test(peer: IpAddr) -> Self {
        Self::Rpc(RpcSession::for_test(peer))
    }

    /// The next step with `bytes`, of which the frames before consumed all in front.
    ///
    /// # Errors
    /// [`ProtocolError`] if the peer broke a bound.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Result<Frame, ProtocolError> {
        match self {
            Self::Rpc(session) => session.next(bytes),
            Self::Smb(_) => SmbSession::next(bytes),
            #[cfg(test)]
            Self::Toy(_) => toy::ToySession::next(bytes),
        }
    }

    /// Bytes of memory that hold copied parts of a record.
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::Rpc(session) => session.held(),
            Self::Smb(_) => 0,
            #[cfg(test)]
            Self::Toy(_) => 0,
        }
    }

    /// Begins the work that `record` asks for.
    ///
    /// # Errors
    /// [`ProtocolError`] if no reply can say what is wrong.
    #[inline]
    pub(crate) fn begin(&mut self, cx: Cx<'_>, record: Shared) -> Result<Begun, ProtocolError> {
        match self {
            Self::Rpc(session) => session.begin(cx, record),
            Self::Smb(session) => session.begin(cx, &record),
            #[cfg(test)]
            Self::Toy(session) => Ok(session.begin(cx, &record)),
        }
    }

    /// Notes that `request` has to wait at its gate. False if the request is to be dropped, because
    /// the same is under way.
    pub(crate) fn waits(&mut self, request: &mut Request, now: Mono) -> bool {
        let (class, connection) = (request.class, request.connection);
        match (self, &mut request.job) {
            (Self::Rpc(session), Job::Rpc(job)) => session.waits(job, class, connection),
            (Self::Smb(session), Job::Smb(job)) => {
                session.waits(job, now);
                true
            }
            _ => true,
        }
    }

    /// Notes that an operation has to wait for the disk.
    pub(crate) fn under_way(&mut self, rest: &mut Unanswered, connection: ConnId, now: Mono) {
        match (self, rest) {
            (Self::Rpc(session), Unanswered::Rpc(rest)) => session.under_way(rest, connection),
            (Self::Smb(session), Unanswered::Smb(rest)) => session.under_way(rest, now),
            _ => {}
        }
    }

    /// Does the client lose anything with the connection, although no request is under way?
    pub(crate) fn holds_state(&self) -> bool {
        match self {
            Self::Rpc(_) => false,
            Self::Smb(session) => session.holds_state(),
            #[cfg(test)]
            Self::Toy(_) => false,
        }
    }

    /// The server stops: ends the waits for other clients, now and from now on.
    pub(crate) fn drain(&mut self) {
        match self {
            Self::Rpc(_) => {}
            Self::Smb(session) => session.drain(),
            #[cfg(test)]
            Self::Toy(_) => {}
        }
    }

    /// A request is answered, or will be at once.
    pub(crate) fn ended(&mut self, rest: &Unanswered) {
        if let (Self::Smb(session), Unanswered::Smb(rest)) = (self, rest) {
            session.ended(rest);
        }
    }

    /// Time at which the session wants to [act](Self::ring) although its client sends nothing.
    pub(crate) fn alarm(&self) -> Option<Mono> {
        match self {
            Self::Rpc(_) => None,
            Self::Smb(session) => session.alarm(),
            #[cfg(test)]
            Self::Toy(_) => None,
        }
    }

    /// The records that the session sends because its alarm is due. `None`: they cannot be sent,
    /// and the connection is closed.
    pub(crate) fn ring(&mut self, now: Mono) -> Option<Vec<Vec<u8>>> {
        match self {
            Self::Rpc(_) => Some(Vec::new()),
            Self::Smb(session) => session.ring(now),
            #[cfg(test)]
            Self::Toy(_) => Some(Vec::new()),
        }
    }

    /// The connection is gone. The client `took_all` replies if it closed in an orderly way. Gives
    /// what is left to be done for it.
    pub(crate) fn close(
        self,
        engine: &Engine,
        view: &mut View,
        connection: ConnId,
        took_all: bool,
    ) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
        match self {
            Self::Rpc(session) => {
                session.close(engine, view, connection, took_all);
                None
            }
            Self::Smb(session) => session.close(),
            #[cfg(test)]
            Self::Toy(session) => {
                session.close(engine, connection);
                None
            }
        }
    }
}

impl Job {
    /// May the operation begin? False if the request is to be dropped, because the same was carried
    /// out meanwhile.
    #[inline]
    pub(crate) fn begin(&mut self) -> bool {
        match self {
            Self::Rpc(job) => job.begin(),
            Self::Smb(job) => job.begin(),
            #[cfg(test)]
            Self::Toy(_) => true,
        }
    }

    /// The wait of the job at its gate, if its client may cancel it.
    pub(crate) fn cancellable(&self) -> Option<Arc<dyn Cancellable>> {
        match self {
            Self::Rpc(_) => None,
            Self::Smb(job) => Some(job.cancellable()),
            #[cfg(test)]
            Self::Toy(_) => None,
        }
    }

    /// The file that the operation reads or writes, by its class.
    pub(crate) fn file(&self, class: OpClass) -> Option<&ObjectKey> {
        match self {
            Self::Rpc(job) => job.file(class),
            Self::Smb(job) => job.file(),
            #[cfg(test)]
            Self::Toy(job) => job.file(),
        }
    }

    /// May the operation wait for other clients, or for permits of its own parts?
    pub(crate) fn waits_for_others(&self) -> bool {
        match self {
            Self::Rpc(_) => false,
            Self::Smb(job) => job.waits_for_others(),
            #[cfg(test)]
            Self::Toy(_) => false,
        }
    }

    /// Copies what lies in the receive buffer.
    pub(crate) fn detach(&mut self) {
        match self {
            Self::Rpc(job) => job.detach(),
            Self::Smb(job) => job.detach(),
            #[cfg(test)]
            Self::Toy(_) => {}
        }
    }

    /// Bytes of memory that the waiting job keeps.
    pub(crate) fn pinned(&self) -> usize {
        match self {
            Self::Rpc(job) => job.pinned(),
            Self::Smb(job) => job.pinned(),
            #[cfg(test)]
            Self::Toy(_) => 0,
        }
    }

    /// Room to make for the reply at once, in bytes.
    pub(crate) fn reply_room(&self, class: OpClass, cost: Cost) -> usize {
        match self {
            Self::Rpc(_) => rpc::reply_room(class, cost),
            Self::Smb(job) => job.reply_room(),
            #[cfg(test)]
            Self::Toy(_) => 0,
        }
    }

    /// The most bytes of memory that the operation may hold.
    pub(crate) fn held_bytes(&self, class: OpClass, cost: Cost) -> usize {
        match self {
            Self::Rpc(job) => job.held_bytes(class, cost),
            Self::Smb(job) => job.held_bytes(),
            #[cfg(test)]
            Self::Toy(job) => job.held_bytes(),
        }
    }

    /// The operation, and what is left of the job meanwhile.
    #[inline]
    pub(crate) fn start(self, start: Start<'_>) -> (Operation, Unanswered) {
        match self {
            Self::Rpc(job) => {
                let (operation, rest) = job.start(start);
                (operation, Unanswered::Rpc(rest))
            }
            Self::Smb(job) => {
                let (operation, rest) = job.start(start);
                (operation, Unanswered::Smb(rest))
            }
            #[cfg(test)]
            Self::Toy(job) => (job.start(&start), Unanswered::Toy(toy::ToyUnanswered)),
        }
    }

    /// The reply to a request that is not carried out because the server has no room for it: the
    /// client is to send it again later. `None`: it cannot be sent, and the connection is closed.
    pub(crate) fn busy(&self) -> Option<Vec<u8>> {
        match self {
            Self::Rpc(job) => Some(job.busy()),
            Self::Smb(job) => job.busy(),
            #[cfg(test)]
            Self::Toy(_) => Some(b"error busy\n".to_vec()),
        }
    }

    /// The request is answered without having been carried out.
    pub(crate) fn refused(self) -> Unanswered {
        match self {
            Self::Rpc(job) => Unanswered::Rpc(job.refused()),
            Self::Smb(job) => Unanswered::Smb(job.refused()),
            #[cfg(test)]
            Self::Toy(_) => Unanswered::Toy(toy::ToyUnanswered),
        }
    }
}

impl Unanswered {
    /// Is the request a data operation from its beginning to its end, as far as locks wait for it?
    /// An operation of SMB says so itself for its parts, because it can wait for others to end.
    pub(crate) fn enters_as_a_whole(&self) -> bool {
        match self {
            Self::Rpc(_) => true,
            Self::Smb(_) => false,
            #[cfg(test)]
            Self::Toy(_) => true,
        }
    }

    /// The request, which came on `connection`, is answered by `reply`. Gives the other connections
    /// that want the reply too.
    pub(crate) fn answered(
        self,
        volume: &ServedVolume,
        connection: ConnId,
        reply: &[u8],
        now: Mono,
    ) -> Vec<ConnId> {
        match self {
            Self::Rpc(rest) => rest.answered(volume.id, connection, reply, now),
            Self::Smb(_) => Vec::new(),
            #[cfg(test)]
            Self::Toy(_) => Vec::new(),
        }
    }
}
