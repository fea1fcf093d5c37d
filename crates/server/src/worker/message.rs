//! What other threads tell a worker.

use super::{Released, VolumeGate};
use crate::admission::Shed;
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
    /// The contract of this gate's volume changed, or a worker began its queue: ask the gate again.
    Pump(Arc<VolumeGate>),
    /// A connection that stopped reading because of a volume's bound may go on.
    Resume(u64),
    /// Send this reply on this connection, which sent a call again that another connection of its
    /// client had sent.
    Reply(u64, Vec<u8>),
    /// Close one connection of this origin, if there is one that is idle.
    Shed(Arc<Shed>),
    /// Drop this, as a sign of life.
    RollCall(mpsc::Sender<()>),
    /// Finish what is in flight and leave, at the latest after this long.
    Drain(Duration),
}
