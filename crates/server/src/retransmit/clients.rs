//! All known clients: the connected ones, and those whose replies are remembered; and the bound on
//! the replies remembered of all of them together.
//!
//! The replies remembered of one client are bounded in `table.rs`, those of all clients here. At
//! the bound on all, the client that has the most loses one, so a stranger makes the server forget
//! the stranger's own replies. Clients without a connection need no bound: each has a reply in
//! memory, or a request underway.

use super::claim::Caller;
use super::key::Prints;
use crate::limits::ANSWERS_MAX;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use weir_core::fair::Holdings;
use weir_core::{CallId, Mono, VolumeId};
use weir_qos::ClientKey;

/// Clients examined at each event: more than one event can add, so that the backlog shrinks.
const LOOKS: usize = 2;

struct Known {
    caller: Arc<Caller>,
    connections: usize,
    /// The client stands in [`Table::leaving`].
    leaving: bool,
    /// Expiry of its oldest answer, under which it stands in [`Table::due`].
    due: Option<Mono>,
}

#[derive(Default)]
struct Table {
    known: HashMap<ClientKey, Known>,
    answers: Holdings,
    /// Clients by the expiry of their oldest answer, or an earlier time.
    due: BTreeSet<(Mono, ClientKey)>,
    /// Clients to be forgotten once they have no connection, no answer and nothing underway.
    leaving: VecDeque<ClientKey>,
}

/// Clients are told apart by address: IPv4 as its IPv6-mapped form.
pub(crate) fn client_at(peer: IpAddr) -> ClientKey {
    let v6 = match peer.to_canonical() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    ClientKey(u128::from(v6))
}

/// The clients, as they themselves see them. The lock of a client's calls is taken before the one
/// of this table, never after.
pub(super) struct Register {
    table: Mutex<Table>,
    answers_max: usize,
    /// The table has more answers than its bound. Read without the lock.
    full: AtomicBool,
}

/// All clients by address.
pub(crate) struct Clients {
    register: Arc<Register>,
    prints: Prints,
}

impl Clients {
    /// None yet; `seed` is a number that peers can't know.
    pub(crate) fn new(seed: u64) -> Self {
        Self::bounded(seed, ANSWERS_MAX)
    }

    fn bounded(seed: u64, answers_max: usize) -> Self {
        let (table, full) = (Mutex::default(), AtomicBool::new(false));
        let register = Arc::new(Register { table, answers_max, full });
        Self { register, prints: Prints::new(seed) }
    }

    /// A connection of `client` begins.
    pub(crate) fn enter(&self, client: ClientKey, now: Mono) -> Arc<Caller> {
        self.register.forget_old(now);
        let mut table = lock(&self.register.table);
        let known = table.known.entry(client).or_insert_with(|| {
            let register = Arc::downgrade(&self.register);
            Known {
                caller: Arc::new(Caller::new(self.prints, client, register)),
                connections: 0,
                leaving: false,
                due: None,
            }
        });
        known.connections += 1;
        let caller = Arc::clone(&known.caller);
        table.forget_gone();
        caller
    }

    /// Remembers the reply to a call of `volume` that an earlier process has carried out.
    pub(crate) fn remember(&self, call: &CallId, volume: VolumeId, reply: &[u8], now: Mono) {
        let client = ClientKey(call.client);
        let caller = self.enter(client, now);
        caller.remember(call, volume, reply, now);
        drop(caller);
        self.register.make_room(now);
        self.leave(client, now);
    }

    /// A connection of `client` ended.
    pub(crate) fn leave(&self, client: ClientKey, now: Mono) {
        self.register.forget_old(now);
        let mut table = lock(&self.register.table);
        if let Some(known) = table.known.get_mut(&client) {
            known.connections = known.connections.saturating_sub(1);
        }
        table.may_be_gone(client);
        table.forget_gone();
    }
}

impl Register {
    /// Notes that `client`, whose calls are locked, has this number of answers now, the oldest
    /// until `due`.
    pub(super) fn holds(&self, client: ClientKey, answers: usize, due: Option<Mono>) {
        let mut table = lock(&self.table);
        table.answers.set(client.0, answers);
        self.full.store(table.answers.total() > self.answers_max, Ordering::Relaxed);
        table.set_due(client, due);
        if answers == 0 {
            table.may_be_gone(client);
            table.forget_gone();
        }
    }

    /// Makes clients forget answers until the bound holds. The caller holds no lock.
    pub(super) fn make_room(&self, now: Mono) {
        while self.full.load(Ordering::Relaxed) {
            self.forget_old(now);
            let table = lock(&self.table);
            let greediest = table.answers.greediest().filter(|_| {
                // Another thread may have made room meanwhile.
                table.answers.total() > self.answers_max
            });
            let known = greediest.and_then(|client| table.known.get(&ClientKey(client)));
            let Some(caller) = known.map(|known| Arc::clone(&known.caller)) else { return };
            drop(table);
            caller.give_way();
        }
    }

    /// Makes some clients forget their expired answers. The caller holds no lock.
    fn forget_old(&self, now: Mono) {
        for _ in 0..LOOKS {
            let table = lock(&self.table);
            let Some((due, client)) = table.due.first().copied() else { return };
            if due >= now {
                return;
            }
            let known = table.known.get(&client);
            let Some(caller) = known.map(|known| Arc::clone(&known.caller)) else { return };
            drop(table);
            caller.forget_old(now);
        }
    }
}

impl Table {
    fn set_due(&mut self, client: ClientKey, due: Option<Mono>) {
        let Some(known) = self.known.get_mut(&client).filter(|known| known.due != due) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut known.due, due) {
            self.due.remove(&(before, client));
        }
        if let Some(due) = due {
            self.due.insert((due, client));
        }
    }

    /// Queues `client` for a check whether it can be forgotten.
    fn may_be_gone(&mut self, client: ClientKey) {
        if let Some(known) = self.known.get_mut(&client)
            && known.connections == 0
            && !std::mem::replace(&mut known.leaving, true)
        {
            self.leaving.push_back(client);
        }
    }

    /// Forgets some clients without connection, answers and requests.
    fn forget_gone(&mut self) {
        for _ in 0..LOOKS {
            let Some(client) = self.leaving.pop_front() else { return };
            let held = self.answers.of(client.0);
            let Some(known) = self.known.get_mut(&client) else { continue };
            known.leaving = false;
            if known.connections > 0 || held > 0 {
                continue;
            }
            // Requests underway hold a reference to the caller.
            if Arc::strong_count(&known.caller) > 1 {
                known.leaving = true;
                self.leaving.push_back(client);
                continue;
            }
            self.set_due(client, None);
            self.known.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests;
