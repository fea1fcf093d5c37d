//! The open connections of clients, by their tokens: their addresses and protocols, which
//! [`Uses`](crate::Uses) does not know. Changed when a connection is opened or closed, and read by
//! the control plane; no request reads it.

use crate::ConnId;
use crate::sync::{Mutex, lock};
use std::collections::HashMap;
use std::net::IpAddr;

/// The client's end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address, in its IPv4 form where it has one.
    pub address: IpAddr,
    /// The protocol: `nfs` or `smb`.
    pub protocol: &'static str,
}

/// All open connections that workers own.
#[derive(Default)]
pub struct Connections(Mutex<HashMap<u64, Peer>>);

impl Connections {
    /// A worker owns a connection from now on.
    pub fn opened(&self, id: ConnId, peer: Peer) {
        lock(&self.0).insert(id.token, peer);
    }

    /// A worker's connection is closed.
    pub fn closed(&self, id: ConnId) {
        lock(&self.0).remove(&id.token);
    }

    /// The open connections among `tokens`, each with its peer, and with the value beside its
    /// token.
    pub fn open_of<T>(&self, tokens: impl Iterator<Item = (u64, T)>) -> Vec<(Peer, T)> {
        let open = lock(&self.0);
        tokens.filter_map(|(token, with)| Some((*open.get(&token)?, with))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn only_open_connections_are_found() {
        let connections = Connections::default();
        let [one, other] = [1, 2].map(|token| ConnId { worker: 0, token });
        let peer = Peer { address: Ipv4Addr::LOCALHOST.into(), protocol: "nfs" };
        connections.opened(one, peer);
        connections.opened(other, Peer { protocol: "smb", ..peer });
        connections.closed(other);
        let found = connections.open_of([(1, 'a'), (2, 'b'), (3, 'c')].into_iter());
        assert_eq!(found, [(peer, 'a')]);
    }
}
