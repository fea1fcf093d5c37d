//! The waiting requests of one volume, and their order. Plain data: the caller holds the lock, the
//! clock and the timer, and bounds the number of parked requests (see [`Queue::parked_cost`]).
//!
//! # The order
//!
//! Fair shares of the contract over clients, within a client over its connections, first come first
//! served within a connection. A share is counted in bytes; a request of fewer bytes than the
//! contract has for each operation counts as many as that ([`Meters`]). So competing clients get
//! max–min fair shares whatever their request sizes and depths, and forty connections of one client
//! count as one client.
//!
//! Both levels are fair queues by virtual time rather than deficit round robin. To find a turn in
//! O(1), a deficit round needs a quantum as large as the largest request, and a client whose few
//! small requests are all served within one turn leaves the round and loses the rest of it: with
//! sixteen 4 KiB requests in flight beside a peer's 256 KiB writes it gets a fifth of the volume
//! instead of half. Here it is back in time for its share.
//!
//! # A turn
//!
//! In its turn a connection is served its waiting requests up to the rate's yield in `TURN_NANOS`,
//! at most `TURN_BYTES` or `TURN_REQUESTS` and at least one request. Their replies then leave in
//! one system call and wake the client once, where turns of one request would send as many packets
//! to as many clients. A client with few waiting requests has short turns, which go before the long
//! turns of others as long as it has not been served as much as they have. So it neither waits for
//! all long turns nor loses its share to them. The services of two clients that both wait differ by
//! at most one turn of each.
//!
//! If two limits bind alternately, [`Meters`] name a preferred resource, and requests that take
//! more of it go first, as long as no client falls behind by more than one turn.
//!
//! # Connections that can't take a reply
//!
//! A request is charged when it goes, so it must not go before it can be executed. If the caller
//! reports that a connection has no room for the reply ([`Departure::Stalled`]), nothing is
//! charged, and all requests of the connection leave the competition until the caller
//! [resumes](Queue::resume) it. They neither close the fast path nor keep others waiting, and the
//! connection saves up no share meanwhile.
//!
//! # Cost
//!
//! O(log clients + log connections) for each request pushed or released, whatever keys a peer has;
//! a request that is cancelled moves those of its connection. An empty queue has no memory.
//!
//! # Assertions
//!
//! `debug_assert!` checks that every request that leaves was counted, that stalled requests are
//! part of the waiting ones, that a change of weights loses none, that no connection has requests
//! when the count is zero, and that the fast path opens only when no client is ready.

use alloc::collections::{BTreeMap, VecDeque};
use core::ops::RangeInclusive;

use slab::Slab;
use weir_core::Mono;

use crate::fair_queue::{FairQueue, Place};
use crate::meters::{Cost, Meters};
use crate::two_limits::{Refusal, Resource, Weight};

/// Duration of a turn, in nanoseconds: 2 ms.
pub(crate) const TURN_NANOS: u64 = 2_000_000;

/// The most bytes of a turn, unless it is a single request: eight requests of 8 KiB.
pub(crate) const TURN_BYTES: u64 = 64 << 10;

/// The most requests of a turn.
const TURN_REQUESTS: usize = 16;

/// Least pause between two polls, in nanoseconds: 1 ms, or the time of [`PAUSE_BYTES`]. Requests
/// that become due meanwhile go together.
const PAUSE_NANOS: u64 = 1_000_000;

/// See [`PAUSE_NANOS`]. A client beside others gets its whole share only if it has more in flight
/// than the rate pays for in its round trip and this pause.
const PAUSE_BYTES: u64 = 32 << 10;

/// The earliest moment of the next poll, after one at `now`.
pub(crate) fn pause(meters: &Meters, now: Mono) -> Mono {
    let pause = meters.takes(PAUSE_BYTES).min(PAUSE_NANOS);
    Mono(now.0.saturating_add(pause))
}

/// The fate of the first waiting request, where a volume shares the budget of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The request went, and the next one moves `next` bytes, if any waits.
    Went {
        /// The bytes that it moves.
        bytes: u64,
        /// The bytes of the next request.
        next: Option<u64>,
    },
    /// Nothing waits.
    Nothing,
    /// The volume's own limits hold the request back until then.
    Held(Mono),
    /// The budget holds it back until then.
    Wait(Mono),
}

/// The outcome of serving a queue once.
pub(crate) enum Served {
    /// A request of that many bytes went.
    Went(u64),
    /// No request waits that could go.
    Nothing,
    /// The volume's own limits hold the next request back until then.
    Held(Mono),
    /// The budget of the pool holds it back until then.
    Wait(Mono),
}

/// The fate of a request whose turn came and that was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure<T> {
    /// The request went.
    Went,
    /// Another limit holds the request back, in a queue of its own
    /// ([`FileLimiter`](crate::FileLimiter)). Its charge is refunded, and it keeps its turn for
    /// [later](Queue::push_in_order).
    Throttled,
    /// The request's connection has no room for the reply. Its charge is refunded, and all requests
    /// of the connection wait until that is [resumed](Queue::resume).
    Stalled(T),
}

/// The place of a request among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The request's place among those of its connection.
    pub serial: u64,
    /// The position of its client and its connection.
    pub standing: Standing,
}

/// The position of a request's client and connection in the order of a queue that the request
/// enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The request is new. An idle client or connection starts at the clock.
    New,
    /// The request had its turn here before and was [throttled](Departure::Throttled). A client or
    /// connection that was idle since then keeps its position.
    Kept,
    /// The request is to go next. Client and connection are charged from their real positions.
    First,
    /// The request was taken out and did not go. Its charge to client and connection is undone.
    Unserved,
}

impl Standing {
    /// Whether a client or connection with other waiting requests moves too.
    const fn moves(self) -> bool {
        matches!(self, Self::First | Self::Unserved)
    }
}

/// The identity among which shares are fair: the source address of an NFSv3 client (an IPv4 address
/// in its mapped form), or another protocol's identity of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientKey(pub u128);

/// A request that enters a queue; `T` is the caller's token for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    /// The client, among which the shares are fair.
    pub client: ClientKey,
    /// The client's connection.
    pub connection: u64,
    /// The charge of the request.
    pub cost: Cost,
    /// The request.
    pub token: T,
}

/// The waiting requests of one volume; `T` is the caller's token for a parked request.
///
/// Use one queue with one set of [`Meters`]: while a request waits here, they refuse new ones, so
/// no request is overtaken. All calls that take the meters are made under one mutex of the caller.
#[derive(Debug)]
pub struct Queue<T> {
    connections: Slab<Connection<T>>,
    clients: Slab<Client>,
    /// Connection first, so that all of one connection are neighbours.
    by_connection: BTreeMap<(u64, ClientKey), usize>,
    by_client: BTreeMap<ClientKey, usize>,
    /// The turns of the clients.
    turns: FairQueue,
    len: usize,
    /// The number of waiting requests on stalled connections.
    stalled: usize,
    parked_cost: u64,
    /// The least weight of one waiting operation, in bytes.
    per_operation: u64,
}

/// The requests of one client on one connection.
#[derive(Debug)]
struct Connection<T> {
    id: u64,
    client: usize,
    place: Place,
    /// The connection has no room for replies: its requests do not compete.
    stalled: bool,
    waiters: VecDeque<Waiter<T>>,
}

#[derive(Debug)]
struct Waiter<T> {
    cost: Cost,
    /// The weight by which shares are fair.
    weight: Weight,
    /// The request's place among those of the connection.
    serial: u64,
    token: T,
}

#[derive(Debug)]
struct Client {
    key: ClientKey,
    place: Place,
    /// The turns of its connections.
    turns: FairQueue,
    /// The number of the client's stalled connections.
    stalled: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Queue<T> {
    /// A queue without waiting requests.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            connections: Slab::new(),
            clients: Slab::new(),
            by_connection: BTreeMap::new(),
            by_client: BTreeMap::new(),
            turns: FairQueue::new(),
            len: 0,
            stalled: 0,
            parked_cost: 0,
            per_operation: 0,
        }
    }

    /// Parks a request that `meters` refused and closes the fast path. True if the queue must be
    /// [polled](Self::poll), as soon as all requests that arrived together are parked. There are
    /// three reasons. The request is the first to wait, so no time to poll is known, and the meters
    /// may have admitted it again before the fast path was closed. Or it is next because its client
    /// has less than its share. Or a new request was charged and refunded meanwhile, so that the
    /// time to poll is too late.
    pub fn push(
        &mut self,
        meters: &Meters,
        client: ClientKey,
        connection: u64,
        cost: Cost,
        token: T,
    ) -> bool {
        let order = Order { serial: u64::MAX, standing: Standing::New };
        self.push_in_order(meters, Entry { client, connection, cost, token }, order)
    }

    /// Parks a request that has a place in an order: before the requests of its connection that
    /// have a higher serial, with the positions of client and connection given by its [`Standing`].
    /// The answer is that of [`push`](Self::push).
    pub fn push_in_order(&mut self, meters: &Meters, entry: Entry<T>, order: Order) -> bool {
        let Entry { client, connection, cost, token } = entry;
        let Order { serial, standing } = order;
        let new_client =
            !matches!(standing, Standing::New) && !self.by_client.contains_key(&client);
        let new = !matches!(standing, Standing::New)
            && !self.by_connection.contains_key(&(connection, client));
        if self.is_empty() {
            self.per_operation = meters.per_operation();
        }
        let at = self.connection(client, connection);
        let connection = &mut self.connections[at];
        match connection.stalled {
            true => self.stalled += 1,
            false => meters.set_waiting(true),
        }
        let weight = meters.weight(cost);
        let waiters = &mut connection.waiters;
        let alone = waiters.is_empty();
        let waiter = Waiter { cost, weight, serial, token };
        if waiters.back().is_none_or(|last| last.serial <= serial) {
            waiters.push_back(waiter);
        } else {
            // Usually near the front: few requests of a connection are throttled.
            waiters.insert(waiters.partition_point(|other| other.serial <= serial), waiter);
        }
        // A stalled connection has no position until it is resumed.
        let stands = (alone || standing.moves()) && !connection.stalled;
        if stands {
            let turn = waiters.front().map_or(weight, |first| first.weight);
            let client = &mut self.clients[connection.client];
            let stand = |turns: &mut FairQueue, from, new| match standing {
                Standing::New => turns.join(from, turn),
                Standing::Kept => turns.rejoin(from, turn, new),
                Standing::First => turns.rejoin_first(from, turn, new),
                Standing::Unserved => turns.unserve(from, weight.bytes, turn),
            };
            if standing.moves() || !client.turns.is_ready() {
                client.place = stand(&mut self.turns, client.place, new_client);
            }
            connection.place = stand(&mut client.turns, connection.place, new);
        }
        self.len += 1;
        self.parked_cost = self.parked_cost.saturating_add(cost.bytes);
        let is_first = stands && self.first(None).is_some_and(|(first, _)| first == at);
        meters.took_back() || is_first
    }

    /// The request that is next: its connection, its serial and its token.
    pub(crate) fn peek(&self, meters: &Meters, now: Mono) -> Option<(usize, u64, &T)> {
        let (at, _) = self.first(meters.preferred(now))?;
        let first = self.connections[at].waiters.front()?;
        Some((at, first.serial, &first.token))
    }

    /// Takes out the first request of the connection that [`peek`](Self::peek) named. It is charged
    /// to its client's share, but not to `meters`: the caller does that, or puts it back as
    /// [`Standing::Unserved`].
    pub(crate) fn take(&mut self, at: usize, meters: &Meters) -> Option<(T, Cost)> {
        let cost = self.connections.get(at)?.waiters.front()?.cost;
        let mut taken = None;
        self.pop(at, meters, |token| {
            taken = Some(token);
            Departure::Went
        });
        if self.is_empty() {
            self.drained(meters);
        }
        taken.map(|token| (token, cost))
    }

    /// Undoes the charge to a client and its connection for a request that was [taken](Self::take)
    /// and does not go. They save up no share by it. No connection of this queue may be stalled,
    /// and none is in the queue of a file.
    pub(crate) fn give_back(
        &mut self,
        meters: &Meters,
        client: ClientKey,
        connection: u64,
        cost: Cost,
    ) {
        let Some(&client_at) = self.by_client.get(&client) else { return };
        let (client_now, bytes) = (&mut self.clients[client_at], meters.weight(cost).bytes);
        if let Some(&at) = self.by_connection.get(&(connection, client)) {
            let connection = &mut self.connections[at];
            let turn = connection.waiters.front().map(|first| first.weight);
            connection.place = client_now.turns.give_back(connection.place, bytes, turn);
        }
        let next = client_now.turns.first(None).and_then(|at| self.connections[at].waiters.front());
        let turn = next.map(|first| first.weight);
        client_now.place = self.turns.give_back(client_now.place, bytes, turn);
    }

    /// Weighs the waiting requests anew after `meters` got other limits. If their weights change,
    /// all clients start level again, because their shares so far were counted in the old weights.
    pub fn reweigh(&mut self, meters: &Meters) {
        if meters.per_operation() == self.per_operation {
            return;
        }
        let old = core::mem::take(self);
        let mut connections = old.connections;
        for ((id, client), at) in old.by_connection {
            let Some(connection) = connections.try_remove(at) else { continue };
            for Waiter { cost, serial, token, .. } in connection.waiters {
                let order = Order { serial, standing: Standing::New };
                self.push_in_order(meters, Entry { client, connection: id, cost, token }, order);
            }
            if connection.stalled
                && let Some(&at) = self.by_connection.get(&(id, client))
            {
                self.stall(at);
            }
        }
        debug_assert_eq!((self.len, self.stalled), (old.len, old.stalled), "no request is lost");
        if self.ready() == 0 {
            self.drained(meters);
        }
    }

    /// Resumes a connection that has room for replies again: its requests compete. True if it was
    /// stalled: [`poll`](Self::poll) the queue.
    pub fn resume(&mut self, meters: &Meters, connection: u64) -> bool {
        let mut resumed = false;
        for (_, &at) in self.by_connection.range(clients_of(connection)) {
            let connection = &mut self.connections[at];
            let Some(first) = connection.waiters.front().filter(|_| connection.stalled) else {
                continue;
            };
            let (weight, client) = (first.weight, &mut self.clients[connection.client]);
            connection.stalled = false;
            client.stalled -= 1;
            self.stalled -= connection.waiters.len();
            if !client.turns.is_ready() {
                client.place = self.turns.join(client.place, weight);
            }
            connection.place = client.turns.join(connection.place, weight);
            meters.set_waiting(true);
            resumed = true;
        }
        resumed
    }

    /// Whether a client's connection is stalled.
    #[must_use]
    pub fn is_stalled(&self, client: ClientKey, connection: u64) -> bool {
        let at = self.by_connection.get(&(connection, client));
        at.is_some_and(|&at| self.connections[at].stalled)
    }

    /// Calls `change` with each stalled request of a connection.
    pub(crate) fn for_each_stalled(&mut self, connection: u64, change: &mut impl FnMut(&mut T)) {
        for (_, &at) in self.by_connection.range(clients_of(connection)) {
            let connection = &mut self.connections[at];
            if connection.stalled {
                connection.waiters.iter_mut().for_each(|waiter| change(&mut waiter.token));
            }
        }
    }

    /// Calls `change` with each waiting request.
    pub(crate) fn for_each(&mut self, change: &mut impl FnMut(&mut T)) {
        for (_, connection) in &mut self.connections {
            connection.waiters.iter_mut().for_each(|waiter| change(&mut waiter.token));
        }
    }

    /// All waiting requests, those of a connection in their order.
    pub(crate) fn into_waiters(self) -> impl Iterator<Item = T> {
        let connections = self.connections.into_iter();
        connections.flat_map(|(_, connection)| connection.waiters).map(|waiter| waiter.token)
    }

    /// Hands all requests that may go at `now` to `release`, in order, each charged to `meters` and
    /// with its charge, and returns the time of the next poll: `None` if no request waits any more,
    /// [`NEVER`](crate::NEVER) if only a new slice can help.
    ///
    /// `release` returns the request's fate.
    ///
    /// The time is no promise. Poll again also after a change of rate, a refund or a cancellation;
    /// polling too early is harmless, and up to 50 ms too late is made up for.
    pub fn poll(
        &mut self,
        meters: &Meters,
        now: Mono,
        release: &mut impl FnMut(T, Cost) -> Departure<T>,
    ) -> Option<Mono> {
        loop {
            match self.serve(meters, None, now, release) {
                Served::Went(_) => {}
                Served::Nothing => return None,
                Served::Held(until) | Served::Wait(until) => return Some(until),
            }
        }
    }

    /// Hands the next request to `release`, charged to `meters` and to the `budget` of the pool
    /// that the volume shares, if both admit it at `now`. [`Shares`](crate::Shares) decides when.
    /// Requests that don't go are treated as in [`poll`](Self::poll).
    pub fn step(
        &mut self,
        meters: &Meters,
        budget: &Meters,
        now: Mono,
        release: &mut impl FnMut(T, Cost) -> Departure<T>,
    ) -> Step {
        match self.serve(meters, Some(budget), now, release) {
            Served::Went(bytes) => Step::Went { bytes, next: self.next(meters, now) },
            Served::Nothing => Step::Nothing,
            Served::Held(until) => Step::Held(until),
            Served::Wait(until) => Step::Wait(until),
        }
    }

    /// The bytes of the next request. If there is none, this opens the fast path.
    pub(crate) fn next(&mut self, meters: &Meters, now: Mono) -> Option<u64> {
        let next = self.first(meters.preferred(now)).map(|(_, next)| next.bytes);
        if next.is_none() {
            self.drained(meters);
        }
        next
    }

    /// Hands requests to `release` until one goes.
    pub(crate) fn serve(
        &mut self,
        meters: &Meters,
        budget: Option<&Meters>,
        now: Mono,
        release: &mut impl FnMut(T, Cost) -> Departure<T>,
    ) -> Served {
        while let Some((at, cost)) = self.first(meters.preferred(now)) {
            let charged = match meters.take_waiting(cost, now) {
                Ok(charged) => charged,
                Err(Refusal { until, .. }) => return Served::Held(until.max(pause(meters, now))),
            };
            let shared = match budget.map(|budget| budget.take_waiting(cost, now)).transpose() {
                Ok(shared) => shared,
                Err(Refusal { until, .. }) => {
                    meters.refund(charged, now, now);
                    return Served::Wait(until);
                }
            };
            if self.pop(at, meters, |token| release(token, charged)) {
                return Served::Went(cost.bytes);
            }
            meters.refund(charged, now, now);
            if let Some((budget, shared)) = budget.zip(shared) {
                budget.refund(shared, now, now);
            }
        }
        self.drained(meters);
        Served::Nothing
    }

    /// Takes out all requests that wait on `connection`, of any client, and hands them to
    /// `cancelled`. None of them was charged, so there is nothing to refund.
    pub fn cancel_connection(
        &mut self,
        meters: &Meters,
        connection: u64,
        cancelled: &mut impl FnMut(T),
    ) {
        while let Some((_, &at)) = self.by_connection.range(clients_of(connection)).next() {
            self.abandon(at, cancelled);
        }
        if self.ready() == 0 {
            self.drained(meters);
        }
    }

    /// Takes out the request with that [serial](Order) of a client's connection, if it waits here.
    /// It was not charged, so there is nothing to refund.
    pub(crate) fn cancel(
        &mut self,
        meters: &Meters,
        client: ClientKey,
        connection: u64,
        serial: u64,
    ) -> Option<T> {
        let at = *self.by_connection.get(&(connection, client))?;
        let waiters = &self.connections[at].waiters;
        let number = waiters.binary_search_by_key(&serial, |waiter| waiter.serial).ok()?;
        let cancelled = self.take_out(at, number);
        if self.ready() == 0 {
            self.drained(meters);
        }
        cancelled
    }

    /// Removes a connection of a client, and hands its requests to `cancelled`.
    fn abandon(&mut self, at: usize, cancelled: &mut impl FnMut(T)) {
        let was_next = self.is_next(at);
        let Connection { client: client_at, place, stalled, waiters, .. } =
            self.remove_connection(at);
        let client = &mut self.clients[client_at];
        if stalled {
            client.stalled -= 1;
            self.stalled -= waiters.len();
        }
        client.turns.leave(place);
        if was_next || stalled && !client.turns.is_ready() {
            self.stand_anew(client_at);
        }
        for waiter in waiters {
            self.uncount(waiter.cost);
            cancelled(waiter.token);
        }
    }

    /// Takes out one of the requests of a connection, which keeps its position.
    fn take_out(&mut self, at: usize, number: usize) -> Option<T> {
        let was_next = self.is_next(at);
        let connection = &mut self.connections[at];
        let Waiter { cost, token, .. } = connection.waiters.remove(number)?;
        let client_at = connection.client;
        let client = &mut self.clients[client_at];
        let next = connection.waiters.front().map(|first| first.weight);
        let was_stalled = connection.stalled;
        if was_stalled {
            self.stalled -= 1;
            if next.is_none() {
                connection.stalled = false;
                client.stalled -= 1;
                connection.place = client.turns.pause(connection.place);
            }
        } else if number == 0 {
            let idle = client.turns.pause(connection.place);
            connection.place = match next {
                Some(weight) => client.turns.rejoin(idle, weight, false),
                None => idle,
            };
        }
        if was_next && number == 0 || was_stalled && next.is_none() && !client.turns.is_ready() {
            self.stand_anew(client_at);
        }
        self.uncount(cost);
        Some(token)
    }

    /// Whether the next request of a client is the first of the connection.
    fn is_next(&self, at: usize) -> bool {
        let client = &self.clients[self.connections[at].client];
        client.turns.first(None) == Some(at)
    }

    /// Gives a client, whose next request was taken out, the turn of the request after it. It keeps
    /// its position.
    fn stand_anew(&mut self, client_at: usize) {
        let client = &mut self.clients[client_at];
        let next = client.turns.first(None).and_then(|at| self.connections[at].waiters.front());
        client.place = match next.map(|first| first.weight) {
            Some(turn) => {
                let idle = self.turns.pause(client.place);
                self.turns.rejoin(idle, turn, false)
            }
            None if client.stalled > 0 => self.turns.stall(client.place),
            None => self.turns.pause(client.place),
        };
    }

    /// The number of waiting requests that could go if their limits admitted them: without those of
    /// stalled connections.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.len - self.stalled
    }

    /// The number of waiting requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes that the waiting requests will be charged.
    #[must_use]
    pub fn parked_cost(&self) -> u64 {
        self.parked_cost
    }

    /// The connection whose turn it is, with regard to the `preferred` resource, and the cost of
    /// its first request.
    fn first(&self, preferred: Option<Resource>) -> Option<(usize, Cost)> {
        let client = &self.clients[self.turns.first(preferred)?];
        let at = client.turns.first(preferred)?;
        Some((at, self.connections[at].waiters.front()?.cost))
    }

    /// Hands the first request of the connection whose turn it is to `release`. True if it went; a
    /// request that doesn't go uses up nothing of the turn.
    fn pop(&mut self, at: usize, meters: &Meters, release: impl FnOnce(T) -> Departure<T>) -> bool {
        let connection = &mut self.connections[at];
        let Some(Waiter { cost, weight, serial, token }) = connection.waiters.pop_front() else {
            return false;
        };
        let went = match release(token) {
            Departure::Went => true,
            Departure::Throttled => false,
            Departure::Stalled(token) => {
                connection.waiters.push_front(Waiter { cost, weight, serial, token });
                self.stall(at);
                return false;
            }
        };
        let served = if went { weight.bytes } else { 0 };
        let next = connection.waiters.front().map(|waiter| waiter.weight);
        let client_at = connection.client;
        let client = &mut self.clients[client_at];
        let own = || turn_of(&connection.waiters, meters);
        connection.place = client.turns.serve(connection.place, served, next, own);
        let next = client.turns.first(None).map(|at| &self.connections[at].waiters);
        let after = next.and_then(|waiters| waiters.front()).map(|waiter| waiter.weight);
        let own = || next.map_or(0, |waiters| turn_of(waiters, meters));
        client.place = self.turns.serve(client.place, served, after, own);
        if after.is_none() && client.stalled > 0 {
            client.place = self.turns.stall(client.place);
        }
        self.uncount(cost);
        self.forget_settled(client_at);
        went
    }

    /// Takes the requests of a connection out of the competition until it is resumed.
    fn stall(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let client = &mut self.clients[connection.client];
        connection.stalled = true;
        client.stalled += 1;
        self.stalled += connection.waiters.len();
        connection.place = client.turns.stall(connection.place);
        if !client.turns.is_ready() {
            client.place = self.turns.stall(client.place);
        }
    }

    /// Removes idle clients and connections that would be treated no differently as new ones, after
    /// `client` was served.
    fn forget_settled(&mut self, client: usize) {
        while let Some(at) = self.clients[client].turns.forget() {
            self.remove_connection(at);
        }
        while let Some(at) = self.turns.forget() {
            let Client { key, turns, .. } = self.clients.remove(at);
            self.by_client.remove(&key);
            for connection in turns.idle() {
                let Connection { id, .. } = self.connections.remove(connection);
                self.by_connection.remove(&(id, key));
            }
        }
    }

    fn remove_connection(&mut self, at: usize) -> Connection<T> {
        let connection = self.connections.remove(at);
        self.by_connection.remove(&(connection.id, self.clients[connection.client].key));
        connection
    }

    /// The index of a client's connection, which is created if it is new.
    fn connection(&mut self, key: ClientKey, id: u64) -> usize {
        if let Some(&at) = self.by_connection.get(&(id, key)) {
            return at;
        }
        let client = self.client(key);
        let entry = self.connections.vacant_entry();
        let at = entry.key();
        let place = self.clients[client].turns.enter(at);
        let waiters = VecDeque::new();
        entry.insert(Connection { id, client, place, stalled: false, waiters });
        self.by_connection.insert((id, key), at);
        at
    }

    /// The index of a client, which is created if it is new.
    fn client(&mut self, key: ClientKey) -> usize {
        *self.by_client.entry(key).or_insert_with(|| {
            let entry = self.clients.vacant_entry();
            let at = entry.key();
            let place = self.turns.enter(at);
            entry.insert(Client { key, place, turns: FairQueue::new(), stalled: 0 });
            at
        })
    }

    fn uncount(&mut self, cost: Cost) {
        debug_assert!(self.len > self.stalled, "a request that leaves was counted, and is ready");
        self.len -= 1;
        self.parked_cost = self.parked_cost.saturating_sub(cost.bytes);
    }

    /// Opens the fast path when no request is ready, and frees all memory if none waits.
    fn drained(&mut self, meters: &Meters) {
        debug_assert!(self.ready() == 0 && !self.turns.is_ready(), "the fast path overtakes none");
        meters.set_waiting(false);
        if self.is_empty() {
            debug_assert!(
                self.connections.iter().all(|(_, connection)| connection.waiters.is_empty()),
                "the count matches the entries"
            );
            *self = Self::new();
        }
    }
}

/// The keys of all clients with requests on one connection.
fn clients_of(connection: u64) -> RangeInclusive<(u64, ClientKey)> {
    (connection, ClientKey(u128::MIN))..=(connection, ClientKey(u128::MAX))
}

/// The bytes of the next turn of a connection: at least its first request.
fn turn_of<T>(waiters: &VecDeque<Waiter<T>>, meters: &Meters) -> u64 {
    let most = meters.yields(TURN_NANOS).min(TURN_BYTES);
    let mut bytes = 0_u64;
    for waiter in waiters.iter().take(TURN_REQUESTS) {
        let with = bytes.saturating_add(waiter.weight.bytes.max(1));
        if bytes > 0 && with > most {
            break;
        }
        bytes = with;
    }
    bytes
}

#[cfg(test)]
mod tests;
