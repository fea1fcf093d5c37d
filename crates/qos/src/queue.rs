//! Those who wait for one volume, and whose turn it is. Plain data: the caller holds the lock,
//! the clock and the timer, and bounds what may be parked (see [`Queue::parked_cost`]).
//!
//! # The order
//!
//! Deficit round robin over clients by bytes, within a client deficit round robin over its
//! connections, first come first served within a connection. So competing clients get max–min
//! fair shares of the bytes whatever their request sizes, and forty connections of one client
//! count as one client.
//!
//! The quantum of a turn is the smallest power of two that covers the largest request waiting. It
//! can't be less if a turn is to be found in O(1), and more would make the service of small
//! requests come in bursts. A client with nothing left waiting loses what its turn had left, so
//! nobody can save up; a newcomer goes to the back of the round.
//!
//! # Cost
//!
//! Releasing is O(1) and allocates nothing. Pushing looks its connection up in an ordered map:
//! O(log connections waiting), and no keys of a peer's choice can make it worse. Cancelling costs
//! that much for each request cancelled. A queue that has run empty gives back its memory.

mod deficit;

use alloc::collections::BTreeMap;

use slab::Slab;
use weir_core::Mono;

use self::deficit::{Deficit, Sizes};
use crate::list::{Link, List, Node};
use crate::meter::Meter;

/// Whom fairness is between: the source address of an NFSv3 client (an IPv4 address in its mapped
/// form), or another protocol's identity of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientKey(pub u128);

/// Room for this many waiters is kept when the queue runs empty; beyond it memory is given back.
const KEPT_WAITERS: usize = 64;

/// The waiters of one volume; `T` is the caller's token for a parked request.
///
/// Use one queue with one [`Meter`]: while anybody waits here, that meter refuses newcomers, so
/// nobody is overtaken. All calls that take the meter are made under the caller's one mutex.
#[derive(Debug)]
pub struct Queue<T> {
    waiters: Slab<Waiter<T>>,
    connections: Slab<Connection>,
    clients: Slab<Client>,
    /// Connection first, so that all of one connection are neighbours.
    by_connection: BTreeMap<(u64, ClientKey), usize>,
    by_client: BTreeMap<ClientKey, usize>,
    /// The clients that wait; the turn is the first one's.
    round: List,
    sizes: Sizes,
    parked_cost: u64,
}

#[derive(Debug)]
struct Waiter<T> {
    cost: u64,
    token: T,
    link: Link,
}

/// The waiting requests of one client on one connection; it exists while there are any.
#[derive(Debug)]
struct Connection {
    id: u64,
    client: usize,
    waiters: List,
    deficit: Deficit,
    link: Link,
}

/// A client's waiting connections; it exists while there are any.
#[derive(Debug)]
struct Client {
    key: ClientKey,
    connections: List,
    deficit: Deficit,
    link: Link,
}

impl<T> Node for Waiter<T> {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Node for Connection {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Node for Client {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Queue<T> {
    /// Nobody waits.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            waiters: Slab::new(),
            connections: Slab::new(),
            clients: Slab::new(),
            by_connection: BTreeMap::new(),
            by_client: BTreeMap::new(),
            round: List::EMPTY,
            sizes: Sizes::NONE,
            parked_cost: 0,
        }
    }

    /// Parks a request that `meter` refused and closes the fast path. Call [`poll`](Self::poll)
    /// next, because the meter may have been free again before the fast path was closed.
    pub fn push(&mut self, meter: &Meter, client: ClientKey, connection: u64, cost: u64, token: T) {
        if self.is_empty() {
            meter.set_waiting(true);
        }
        let at = self.connection(client, connection);
        let waiter = self.waiters.insert(Waiter { cost, token, link: Link::LOOSE });
        self.connections[at].waiters.push_back(&mut self.waiters, waiter);
        self.sizes.add(cost);
        self.parked_cost = self.parked_cost.saturating_add(cost);
    }

    /// Hands all requests that may go at `now` to `release`, in order, each charged to `meter`,
    /// and says when to ask again: `None` if nobody waits any more,
    /// [`NEVER`](crate::meter::NEVER) if only a new slice can help.
    ///
    /// The moment is no promise. Ask again also after a change of rate, a refund or a cancel; to
    /// ask too early is harmless, and up to 50 ms too late is made up for.
    pub fn poll(&mut self, meter: &Meter, now: Mono, release: &mut impl FnMut(T)) -> Option<Mono> {
        while let Some((connection, cost)) = self.turn() {
            if let Err(at) = meter.take_waiting(cost, now) {
                return Some(at);
            }
            self.spend(connection, cost);
            if let Some(token) = self.pop(connection) {
                release(token);
            }
        }
        self.drained(meter);
        None
    }

    /// Takes out everything that waits on `connection`, whichever client it belongs to, and hands
    /// it to `cancelled`. Nothing of it was charged, so there is nothing to refund.
    pub fn cancel_connection(
        &mut self,
        meter: &Meter,
        connection: u64,
        cancelled: &mut impl FnMut(T),
    ) {
        let every_client = (connection, ClientKey(u128::MIN))..=(connection, ClientKey(u128::MAX));
        while let Some((_, &at)) = self.by_connection.range(every_client.clone()).next()
            && let Some(token) = self.pop(at)
        {
            cancelled(token);
        }
        if self.is_empty() {
            self.drained(meter);
        }
    }

    /// How many requests wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// The bytes that the waiting requests will be charged.
    #[must_use]
    pub fn parked_cost(&self) -> u64 {
        self.parked_cost
    }

    /// Whose turn it is: the connection and the cost of its first request. Asking twice gives
    /// the same answer. At most one connection and one client are passed over on the way, because
    /// a turn that begins now covers every request that waits.
    fn turn(&mut self) -> Option<(usize, u64)> {
        let quantum = self.sizes.quantum();
        loop {
            let client = &mut self.clients[self.round.front()?];
            let at = client.connections.front()?;
            let connection = &mut self.connections[at];
            let cost = self.waiters[connection.waiters.front()?].cost;
            if !connection.deficit.covers(cost, quantum) {
                connection.deficit.end_turn();
                client.connections.rotate(&mut self.connections);
            } else if client.deficit.covers(cost, quantum) {
                return Some((at, cost));
            } else {
                client.deficit.end_turn();
                self.round.rotate(&mut self.clients);
            }
        }
    }

    /// Takes `cost` off the turn of a connection and its client.
    fn spend(&mut self, at: usize, cost: u64) {
        let connection = &mut self.connections[at];
        connection.deficit.spend(cost);
        self.clients[connection.client].deficit.spend(cost);
    }

    /// Takes the first request of a connection. The connection, and then the client, goes when
    /// it has nothing left, and with it what was left of its turn.
    fn pop(&mut self, at: usize) -> Option<T> {
        let connection = &mut self.connections[at];
        let client_at = connection.client;
        let client = &mut self.clients[client_at];
        let first = connection.waiters.front()?;
        connection.waiters.unlink(&mut self.waiters, first);
        let waiter = self.waiters.remove(first);
        self.sizes.remove(waiter.cost);
        self.parked_cost = self.parked_cost.saturating_sub(waiter.cost);
        if connection.waiters.is_empty() {
            self.by_connection.remove(&(connection.id, client.key));
            client.connections.unlink(&mut self.connections, at);
            self.connections.remove(at);
        }
        if client.connections.is_empty() {
            self.by_client.remove(&client.key);
            self.round.unlink(&mut self.clients, client_at);
            self.clients.remove(client_at);
        }
        Some(waiter.token)
    }

    /// The place of `connection`, made at the back of its client's round if it is new.
    fn connection(&mut self, key: ClientKey, id: u64) -> usize {
        if let Some(&at) = self.by_connection.get(&(id, key)) {
            return at;
        }
        let client = self.client(key);
        let at = self.connections.insert(Connection {
            id,
            client,
            waiters: List::EMPTY,
            deficit: Deficit::NONE,
            link: Link::LOOSE,
        });
        self.by_connection.insert((id, key), at);
        self.clients[client].connections.push_back(&mut self.connections, at);
        at
    }

    /// The place of the client, made at the back of the round if it is new.
    fn client(&mut self, key: ClientKey) -> usize {
        *self.by_client.entry(key).or_insert_with(|| {
            let at = self.clients.insert(Client {
                key,
                connections: List::EMPTY,
                deficit: Deficit::NONE,
                link: Link::LOOSE,
            });
            self.round.push_back(&mut self.clients, at);
            at
        })
    }

    /// Opens the fast path and gives memory back.
    fn drained(&mut self, meter: &Meter) {
        meter.set_waiting(false);
        if self.waiters.capacity() > KEPT_WAITERS {
            *self = Self::new();
        }
    }
}

#[cfg(test)]
mod tests;
