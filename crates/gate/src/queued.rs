//! The requests of a gate, as far as the gate knows them.

use crate::conn_id::ConnId;
use weir_core::ObjectKey;
use weir_qos::{ClientKey, Cost};

/// A request that can wait for the contract of its volume.
pub trait Queued {
    /// The client, among which the shares are fair.
    fn client(&self) -> ClientKey;

    /// The connection that gets the reply.
    fn connection(&self) -> ConnId;

    /// The most that the request can use of the volume's contract.
    fn cost(&self) -> Cost;

    /// The file that the request reads or writes, if it does.
    fn file(&self) -> Option<&ObjectKey>;

    /// Makes the request independent of the receive buffer, which is then free for other requests:
    /// a request that waits for its contract can afford the copy.
    fn detach(&mut self);

    /// Bytes of memory that the waiting request keeps.
    fn pinned(&self) -> usize;

    /// The most bytes of memory that the request may hold while it is carried out.
    fn held_bytes(&self) -> usize;
}
