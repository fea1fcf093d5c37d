//! The messages that other threads send to a worker.

use super::io::Token;
use super::{Released, Silent, VolumeGate};
use crate::admission::Eviction;
use crate::session::Session;
use crate::sync::{Arc, mpsc};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A message to a worker. Connections are named by their tokens.
pub(crate) enum Message {
    /// Serve this new connection.
    Connection(TcpStream, SocketAddr, Session),
    /// The task in this slot can make progress.
    Wake(usize),
    /// The preparation of a request in this slot can make progress.
    Prepared(usize),
    /// This request may go now. Boxed: the other messages are small.
    Released(Box<Released>),
    /// The contract of this gate's volume or the budget of its pool changed, or a charge was
    /// returned outside its worker: poll the gate.
    Poll(Arc<VolumeGate>),
    /// A connection that stopped reading because of a volume's bound may go on.
    Resume(u64),
    /// Send this record on this connection: the reply to a call that another connection of the
    /// client had sent too, or a call of the server's own.
    Send(u64, Vec<u8>),
    /// Close one connection of this origin, if there is one that is idle.
    Evict(Arc<Eviction>),
    /// End the generation of data operations, and drop this once all that began have ended.
    Barrier(Token),
    /// Drop this, as a sign of life.
    RollCall(mpsc::Sender<()>),
    /// Finish what is in flight and leave, at the latest after this long.
    Drain(Duration),
    /// Make these connections silent (`Socket::silence`), and no others.
    Silence(Arc<Silent>),
}
