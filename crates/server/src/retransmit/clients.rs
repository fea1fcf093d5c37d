//! The clients that are connected, and those that were a short while ago.

use super::claim::Caller;
use super::key::Prints;
use crate::limits::{ANSWERS_KEPT, DEPARTED_MAX};
use crate::sync::{Arc, AtomicUsize, Mutex, lock};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use weir_core::Mono;
use weir_qos::ClientKey;

struct Known {
    caller: Arc<Caller>,
    connections: usize,
    /// When its last connection closed, if it has none.
    left: Option<Mono>,
}

#[derive(Default)]
struct Table {
    known: HashMap<ClientKey, Known>,
    /// Clients without connections of which something is remembered, longest gone first. Some
    /// have come back since.
    departed: VecDeque<(Mono, ClientKey)>,
}

/// Clients are told apart by address: IPv4 as its IPv6-mapped form.
pub(crate) fn client_at(peer: IpAddr) -> ClientKey {
    let v6 = match peer.to_canonical() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    ClientKey(u128::from(v6))
}

/// All clients by address.
pub(crate) struct Clients {
    table: Mutex<Table>,
    prints: Prints,
    answers: Arc<AtomicUsize>,
}

impl Clients {
    /// None yet; `seed` is a number that peers can't know.
    pub(crate) fn new(seed: u64) -> Self {
        Self { table: Mutex::default(), prints: Prints::new(seed), answers: Arc::default() }
    }

    /// A connection of `client` begins.
    pub(crate) fn enter(&self, client: ClientKey, now: Mono) -> Arc<Caller> {
        let mut table = lock(&self.table);
        table.forget_departed(now);
        let known = table.known.entry(client).or_insert_with(|| Known {
            caller: Arc::new(Caller::new(self.prints, Arc::clone(&self.answers))),
            connections: 0,
            left: None,
        });
        known.connections += 1;
        known.left = None;
        Arc::clone(&known.caller)
    }

    /// A connection of `client` ended.
    pub(crate) fn leave(&self, client: ClientKey, now: Mono) {
        let mut table = lock(&self.table);
        let Some(known) = table.known.get_mut(&client) else { return };
        known.connections -= 1;
        if known.connections > 0 {
            return;
        }
        if known.caller.is_empty() {
            table.known.remove(&client);
            return;
        }
        known.left = Some(now);
        table.departed.push_back((now, client));
        table.forget_departed(now);
    }
}

impl Table {
    fn forget_departed(&mut self, now: Mono) {
        while let Some((left, client)) = self.departed.front()
            && (self.departed.len() > DEPARTED_MAX || now.since(*left) > ANSWERS_KEPT)
        {
            if self.known.get(client).is_some_and(|known| known.left == Some(*left)) {
                self.known.remove(client);
            }
            self.departed.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_the_same_across_its_connections_and_nobody_once_it_left() {
        let clients = Clients::new(1);
        let (now, client) = (Mono::ZERO, ClientKey(5));
        let first = clients.enter(client, now);
        assert!(Arc::ptr_eq(&first, &clients.enter(client, now)));
        assert!(!Arc::ptr_eq(&first, &clients.enter(ClientKey(6), now)));
        clients.leave(client, now);
        assert!(Arc::ptr_eq(&first, &clients.enter(client, now)));
        clients.leave(client, now);
        clients.leave(client, now);
        assert!(!lock(&clients.table).known.contains_key(&client));
    }
}
