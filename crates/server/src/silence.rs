//! How the rest of a gateway has connections end in silence with the process. Not here: the sockets,
//! which their workers have.

use crate::engine::Engine;
use crate::sync::Arc;
use crate::worker::Silent;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Marks connections of a server.
#[derive(Clone)]
pub struct Silencer {
    engine: Arc<Engine>,
    priority: u32,
}

impl Silencer {
    pub(crate) const fn new(engine: Arc<Engine>, priority: u32) -> Self {
        Self { engine, priority }
    }

    /// Marks these connections, by the address and port of the server: if the process ends, they end
    /// in silence. Those that the server ends itself are not marked any more then.
    pub fn mark(&self, connections: BTreeMap<SocketAddr, BTreeSet<SocketAddr>>) {
        self.engine.mark(Silent { connections, priority: self.priority });
    }
}
