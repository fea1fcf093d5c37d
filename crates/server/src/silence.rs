//! How the rest of a gateway has connections end in silence with the process. Not here: the
//! sockets, which their workers have.

use crate::engine::Engine;
use crate::sync::Arc;
use crate::worker::Silent;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Has connections of a server end in silence.
#[derive(Clone)]
pub struct Silencer {
    engine: Arc<Engine>,
    priority: u32,
}

impl Silencer {
    pub(crate) const fn new(engine: Arc<Engine>, priority: u32) -> Self {
        Self { engine, priority }
    }

    /// Has these connections, by the address and port of the server, end in silence if the process
    /// does, and no others. Clients of those that the server ends itself are told.
    pub fn silence(&self, connections: BTreeMap<SocketAddr, BTreeSet<SocketAddr>>) {
        self.engine.silence(Silent { connections, priority: self.priority });
    }
}
