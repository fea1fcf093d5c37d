//! All known clients, those with a connection and those with cached replies, and the bound on the
//! cached replies of all clients.
//!
//! The replies of one client are bounded in `table.rs`. At the bound on all clients, the client
//! with the most replies loses one: a hostile client makes the server evict its own replies. The
//! number of clients without a connection needs no bound: each has a cached reply or a request in
//! progress.

use crate::answered::Answered;
use crate::entry::DrcClient;
use crate::key::{CallKey, Fingerprints};
use crate::limits::{CACHED_REPLIES_KEPT, CACHED_REPLIES_MAX};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use weir_core::fair::Holdings;
use weir_core::{CallId, Mono, VolumeId};
use weir_qos::ClientKey;

/// Clients examined at each event: more than one event can add, so that the backlog shrinks.
const LOOKS: usize = 2;

struct Known {
    calls: Arc<DrcClient>,
    connections: usize,
    /// The client is in [`Table::leaving`].
    leaving: bool,
    /// The expiry of its oldest reply, its key in [`Table::due`].
    due: Option<Mono>,
}

#[derive(Default)]
struct Table {
    known: HashMap<ClientKey, Known>,
    replies: Holdings,
    /// Clients by the expiry of their oldest reply, or an earlier time.
    due: BTreeSet<(Mono, ClientKey)>,
    /// Clients to be forgotten once they have no connection, no reply and no request in progress.
    leaving: VecDeque<ClientKey>,
}

/// Clients are told apart by address: IPv4 as its IPv6-mapped form.
pub fn client_at(peer: IpAddr) -> ClientKey {
    let v6 = match peer.to_canonical() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    ClientKey(u128::from(v6))
}

/// The part of the clients that each client refers to. The lock of a client's calls is taken before
/// the one of this table, never after.
pub(super) struct Register {
    table: Mutex<Table>,
    replies_max: usize,
    /// The table has more replies than its bound. Read without the lock.
    full: AtomicBool,
}

/// All clients by address.
pub struct Clients {
    register: Arc<Register>,
    fingerprints: Fingerprints,
}

impl Clients {
    /// No clients. `seed` is a number that peers cannot know.
    pub fn new(seed: u64) -> Self {
        Self::bounded(seed, CACHED_REPLIES_MAX)
    }

    fn bounded(seed: u64, replies_max: usize) -> Self {
        let (table, full) = (Mutex::default(), AtomicBool::new(false));
        let register = Arc::new(Register { table, replies_max, full });
        Self { register, fingerprints: Fingerprints::new(seed) }
    }

    /// A connection of `client` begins.
    pub fn enter(&self, client: ClientKey, now: Mono) -> Arc<DrcClient> {
        self.register.forget_old(now);
        let mut table = lock(&self.register.table);
        let known = table.known.entry(client).or_insert_with(|| {
            let register = Arc::downgrade(&self.register);
            Known {
                calls: Arc::new(DrcClient::new(self.fingerprints, client, register)),
                connections: 0,
                leaving: false,
                due: None,
            }
        });
        known.connections += 1;
        let calls = Arc::clone(&known.calls);
        table.forget_gone();
        calls
    }

    /// Caches the reply to a call of `volume` that an earlier process has executed.
    pub fn remember(&self, call: &CallId, volume: VolumeId, reply: &[u8], now: Mono) {
        let (client, key) = (ClientKey(call.client), CallKey::of_record(call));
        self.enter_reply(client, (key, volume), (reply, now + CACHED_REPLIES_KEPT), now);
    }

    /// Takes the replies to calls of these volumes out, which move to another server: for each
    /// client the oldest first. Expired ones are left out.
    pub fn hand_over(&self, volumes: &BTreeSet<VolumeId>, now: Mono) -> Vec<(VolumeId, Answered)> {
        let table = lock(&self.register.table);
        let all = table.known.iter();
        let all: Vec<_> = all.map(|(client, known)| (*client, Arc::clone(&known.calls))).collect();
        // The lock of a client's calls is taken before the one of the table.
        drop(table);
        let taken = all.iter().flat_map(|(client, calls)| {
            let taken = calls.take(volumes, now).into_iter();
            taken.map(|(volume, key, reply)| (volume, Answered::new(*client, key, reply)))
        });
        taken.collect()
    }

    /// Caches the replies to calls of `volume` that another server has executed and handed over,
    /// for the rest of their time: they give way before those that are younger. Expired ones are
    /// left out.
    pub fn take_up(&self, volume: VolumeId, answered: &[Answered], now: Mono) {
        for one in answered {
            let (client, key) = one.call();
            if let Some(left) = CACHED_REPLIES_KEPT.checked_sub(one.age) {
                self.enter_reply(client, (key, volume), (&one.reply, now + left), now);
            }
        }
    }

    /// Caches a reply until a time, which another process has sent to `client`. The client may not
    /// be connected.
    fn enter_reply(
        &self,
        client: ClientKey,
        call: (CallKey, VolumeId),
        reply: (&[u8], Mono),
        now: Mono,
    ) {
        let calls = self.enter(client, now);
        calls.remember(call, reply, now);
        drop(calls);
        self.register.make_room(now);
        self.leave(client, now);
    }

    /// A connection of `client` ended.
    pub fn leave(&self, client: ClientKey, now: Mono) {
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
    /// Notes that `client`, whose calls are locked, has so many replies now, the oldest until
    /// `due`.
    pub(super) fn holds(&self, client: ClientKey, replies: usize, due: Option<Mono>) {
        let mut table = lock(&self.table);
        table.replies.set(client.0, replies);
        self.full.store(table.replies.total() > self.replies_max, Ordering::Relaxed);
        table.set_due(client, due);
        if replies == 0 {
            table.may_be_gone(client);
            table.forget_gone();
        }
    }

    /// Evicts replies until the bound holds. The caller holds no lock.
    pub(super) fn make_room(&self, now: Mono) {
        while self.full.load(Ordering::Relaxed) {
            self.forget_old(now);
            let table = lock(&self.table);
            let greediest = table.replies.greediest().filter(|_| {
                // Another thread may have made room meanwhile.
                table.replies.total() > self.replies_max
            });
            let known = greediest.and_then(|client| table.known.get(&ClientKey(client)));
            let Some(calls) = known.map(|known| Arc::clone(&known.calls)) else {
                return;
            };
            drop(table);
            calls.evict_oldest();
        }
    }

    /// Evicts the expired replies of some clients. The caller holds no lock.
    fn forget_old(&self, now: Mono) {
        for _ in 0..LOOKS {
            let table = lock(&self.table);
            let Some((due, client)) = table.due.first().copied() else { return };
            if due >= now {
                return;
            }
            let known = table.known.get(&client);
            let Some(calls) = known.map(|known| Arc::clone(&known.calls)) else {
                return;
            };
            drop(table);
            calls.forget_old(now);
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

    /// Forgets some clients without connection, replies and requests.
    fn forget_gone(&mut self) {
        for _ in 0..LOOKS {
            let Some(client) = self.leaving.pop_front() else { return };
            let held = self.replies.of(client.0);
            let Some(known) = self.known.get_mut(&client) else { continue };
            known.leaving = false;
            if known.connections > 0 || held > 0 {
                continue;
            }
            // Requests in progress hold a reference.
            if Arc::strong_count(&known.calls) > 1 {
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
