//! The requests that wait for one volume, and their order. Plain data: the caller holds the lock,
//! the clock and the timer, and bounds what may be parked (see [`Queue::parked_cost`]).
//!
//! # The order
//!
//! Fair shares of the contract over clients, within a client over its connections, first come first
//! served within a connection. A share is counted in bytes; a request of fewer bytes than the
//! contract has for each operation counts as many as that ([`Meters`]). Competing clients so get
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
//! In its turn a connection is served what it has waiting, as far as the rate pays for it in
//! `TURN_NANOS`, at most `TURN_BYTES` or `TURN_REQUESTS` and at least one request. Their replies
//! then leave in one system call and wake the client once, where turns of one request send as many
//! packets to as many clients. A client that has little waiting has short turns, and they go before
//! the long ones of others as long as it has not had as much as they. So it neither waits for all
//! of those to be over nor loses its share to them. What two clients that both wait have been
//! served differs by at most one turn of each.
//!
//! If bytes and operations are limited, and one request takes more than 50 ms of either, many such
//! requests in a row would hold up the other limit for longer than it can make up for ([`Meters`]).
//! So the next to go is then a request that takes more of the ampler resource, among those that may
//! go without another losing more than that one turn: large requests and small ones go alternately,
//! whichever clients sent them.
//!
//! # Connections that can't take a reply
//!
//! A request is charged when it goes, so it must not go before it can be carried out. Where the
//! caller says that a connection has no room for the reply ([`Departure::Stalled`]), nothing is
//! charged, and all requests of the connection leave the competition until the caller
//! [resumes](Queue::resume) it. They neither close the fast path nor keep others waiting, and the
//! connection saves up no share meanwhile.
//!
//! # Cost
//!
//! O(log clients + log connections) for each request pushed, released or cancelled, over those
//! that wait; no keys of a peer's choice can make it worse. A queue that has run empty holds no
//! memory.

use alloc::collections::{BTreeMap, VecDeque};
use core::ops::RangeInclusive;

use slab::Slab;
use weir_core::Mono;

use crate::meter::CATCH_UP_NANOS;
use crate::meters::{Cost, Kind, Lag, Meters, Refusal, Weight};
use crate::round::{Place, Round};

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
/// than the rate pays for in its round trip and this.
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
    /// The volume's own limits hold it back until then.
    Held(Mono),
    /// The budget does, until then.
    Wait(Mono),
}

/// The fate of a request whose turn came and that was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure<T> {
    /// The request went.
    Went,
    /// Another limit holds the request back ([`Files`](crate::Files)), where it waits. Its charge
    /// is given back, and it keeps its turn for [later](Queue::push_in_order).
    SetAside,
    /// The request's connection has no room for the reply. Its charge is given back, and all
    /// requests of the connection wait until that is [resumed](Queue::resume).
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

/// The position of a request's client and connection in the rounds of a queue that the request
/// enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The request is new. A client or connection that had nothing waiting starts at the clock.
    New,
    /// The request had its turn here before and was [set aside](Queue::poll). A client or
    /// connection that had nothing waiting since then stands where it did.
    Kept,
    /// The request is to go next. Client and connection are charged where they really stand.
    First,
    /// The request was taken out and did not go. Client and connection get back what they were
    /// charged for it.
    Unserved,
}

impl Standing {
    /// Whether a client or connection moves that has other requests waiting.
    const fn moves(self) -> bool {
        matches!(self, Self::First | Self::Unserved)
    }
}

/// The identity among which shares are fair: the source address of an NFSv3 client (an IPv4 address
/// in its mapped form), or another protocol's identity of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientKey(pub u128);

/// The waiters of one volume; `T` is the caller's token for a parked request.
///
/// Use one queue with one set of [`Meters`]: while anybody waits here, they refuse newcomers, so
/// nobody is overtaken. All calls that take the meters are made under the caller's one mutex.
#[derive(Debug)]
pub struct Queue<T> {
    connections: Slab<Connection<T>>,
    clients: Slab<Client>,
    /// Connection first, so that all of one connection are neighbours.
    by_connection: BTreeMap<(u64, ClientKey), usize>,
    by_client: BTreeMap<ClientKey, usize>,
    round: Round,
    len: usize,
    /// The number of waiting requests on stalled connections.
    stalled: usize,
    parked_cost: u64,
    /// For how long the first was refused by either meter since nobody waited, or for 50 ms after
    /// that what it was then ([`Meters::held`]).
    lag: Lag,
    /// The least weight of one waiting operation, in bytes.
    per_operation: u64,
}

/// The requests of one client on one connection.
#[derive(Debug)]
struct Connection<T> {
    id: u64,
    client: usize,
    place: Place,
    /// The connection has no room for replies: its requests take no part in the competition.
    stalled: bool,
    waiters: VecDeque<Waiter<T>>,
}

#[derive(Debug)]
struct Waiter<T> {
    cost: Cost,
    /// The part of the contract that the request takes, by which shares are fair.
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
    round: Round,
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
            round: Round::new(),
            len: 0,
            stalled: 0,
            parked_cost: 0,
            lag: Lag::ZERO,
            per_operation: 0,
        }
    }

    /// Parks a request that `meters` refused and closes the fast path. True if the queue has to be
    /// asked: [`poll`](Self::poll) as soon as all is parked that came with it. Then nobody goes
    /// before it, and either it is the first to wait, the meter may have been free again before the
    /// path was closed, and nobody has asked yet when to come back; or its client has less than its
    /// share, and need not wait until the others are asked about. Or a newcomer was charged for a
    /// moment what it got back, and the others were told to come back too late.
    pub fn push(
        &mut self,
        meters: &Meters,
        client: ClientKey,
        connection: u64,
        cost: Cost,
        token: T,
    ) -> bool {
        let order = Order { serial: u64::MAX, standing: Standing::New };
        self.push_in_order(meters, client, connection, cost, token, order)
    }

    /// Parks a request that has a place in an order: before the requests of its connection that
    /// have a higher serial, and with its client and connection where its [`Standing`] puts them.
    /// The answer is that of [`push`](Self::push).
    pub fn push_in_order(
        &mut self,
        meters: &Meters,
        client: ClientKey,
        connection: u64,
        cost: Cost,
        token: T,
        Order { serial, standing }: Order,
    ) -> bool {
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
            // Near the front, as a rule: few are set aside and those behind them not.
            waiters.insert(waiters.partition_point(|other| other.serial <= serial), waiter);
        }
        // A stalled connection stands nowhere until it is resumed.
        let stands = (alone || standing.moves()) && !connection.stalled;
        if stands {
            let turn = waiters.front().map_or(weight, |first| first.weight);
            let client = &mut self.clients[connection.client];
            let stand = |round: &mut Round, from, new| match standing {
                Standing::New => round.join(from, turn),
                Standing::Kept => round.rejoin(from, turn, new),
                Standing::First => round.rejoin_first(from, turn, new),
                Standing::Unserved => round.unserve(from, weight.bytes, turn),
            };
            if standing.moves() || !client.round.is_ready() {
                client.place = stand(&mut self.round, client.place, new_client);
            }
            connection.place = stand(&mut client.round, connection.place, new);
        }
        self.len += 1;
        self.parked_cost = self.parked_cost.saturating_add(cost.bytes);
        let is_first = stands && self.first(None).is_some_and(|(first, _)| first == at);
        meters.took_back() || is_first
    }

    /// The request that is to go next: its connection, its serial and its token.
    pub(crate) fn peek(&self, meters: &Meters) -> Option<(usize, u64, &T)> {
        let (at, _) = self.next(meters)?;
        let first = self.connections[at].waiters.front()?;
        Some((at, first.serial, &first.token))
    }

    /// Takes out the first request of the connection that [`peek`](Self::peek) named. It is charged
    /// to its client's share, but not to `meters`: the caller does that, or puts it back as
    /// [`Standing::Unserved`].
    pub(crate) fn take(&mut self, at: usize, meters: &Meters, now: Mono) -> Option<(T, Cost)> {
        let turn = meters.yields(TURN_NANOS).min(TURN_BYTES);
        let cost = self.connections.get(at)?.waiters.front()?.cost;
        let mut taken = None;
        self.pop(at, turn, |token| {
            taken = Some(token);
            Departure::Went
        });
        if self.is_empty() {
            meters.keep_held(self.lag(meters, now), now);
            self.drained(meters);
        }
        taken.map(|token| (token, cost))
    }

    /// Gives a client and its connection back what they were charged for a request that was
    /// [taken](Self::take) and does not go. They save up no share by it. No connection of this
    /// queue may be stalled, and none is in the queue of a file.
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
            connection.place = client_now.round.give_back(connection.place, bytes, turn);
        }
        let next = client_now.round.first(None).and_then(|at| self.connections[at].waiters.front());
        let turn = next.map(|first| first.weight);
        client_now.place = self.round.give_back(client_now.place, bytes, turn);
    }

    /// The lag that `meters` may have because one of them held up the other.
    pub(crate) fn lag(&self, meters: &Meters, now: Mono) -> Lag {
        self.lag.with(meters.held(now))
    }

    /// To be called when `meters` got other limits: weighs the waiting requests by those. If that
    /// makes a difference all clients stand level again, as shares so far were counted in what
    /// requests weighed then.
    pub fn reweigh(&mut self, meters: &Meters) {
        self.lag = Lag::ZERO;
        if meters.per_operation() == self.per_operation {
            return;
        }
        let old = core::mem::take(self);
        let mut connections = old.connections;
        for ((id, client), at) in old.by_connection {
            let Some(connection) = connections.try_remove(at) else { continue };
            for Waiter { cost, serial, token, .. } in connection.waiters {
                let order = Order { serial, standing: Standing::New };
                self.push_in_order(meters, client, id, cost, token, order);
            }
            if connection.stalled
                && let Some(&at) = self.by_connection.get(&(id, client))
            {
                self.stall(at);
            }
        }
        if self.ready() == 0 {
            self.drained(meters);
        }
    }

    /// A connection has room for replies again: its requests take part in the competition. True if
    /// it was stalled: [`poll`](Self::poll).
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
            if !client.round.is_ready() {
                client.place = self.round.join(client.place, weight);
            }
            connection.place = client.round.join(connection.place, weight);
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

    /// All that wait, those of a connection in their order.
    pub(crate) fn into_waiters(self) -> impl Iterator<Item = T> {
        let connections = self.connections.into_iter();
        connections.flat_map(|(_, connection)| connection.waiters).map(|waiter| waiter.token)
    }

    /// Charges `meters` for a request whose turn came elsewhere, whatever waits here.
    /// [`Cost::ZERO`] asks whether they would let any request go.
    ///
    /// # Errors
    /// The meters refuse the request until then.
    pub(crate) fn take_turn(
        &mut self,
        meters: &Meters,
        cost: Cost,
        now: Mono,
    ) -> Result<Cost, Refusal> {
        let taken = meters.take_waiting(cost, now, self.lag(meters, now));
        if let Some(refusal) = taken.err().filter(|_| !self.is_empty()) {
            self.lag.refused(refusal, now);
        }
        taken
    }

    /// Hands all requests that may go at `now` to `release`, in order, each charged to `meters` and
    /// with what it was charged, and says when to ask again: `None` if nobody waits any more,
    /// [`NEVER`](crate::NEVER) if only a new slice can help.
    ///
    /// `release` returns the request's fate.
    ///
    /// The moment is no promise. Ask again also after a change of rate, a refund or a cancel; to
    /// ask too early is harmless, and up to 50 ms too late is made up for.
    pub fn poll(
        &mut self,
        meters: &Meters,
        now: Mono,
        release: &mut impl FnMut(T, Cost) -> Departure<T>,
    ) -> Option<Mono> {
        let turn = meters.yields(TURN_NANOS).min(TURN_BYTES);
        self.lag = self.lag.with(meters.held(now));
        while let Some((at, cost)) = self.next(meters) {
            let charged = match meters.take_waiting(cost, now, self.lag) {
                Ok(charged) => charged,
                Err(refusal) => return Some(self.refused(meters, now, refusal)),
            };
            if !self.pop(at, turn, |token| release(token, charged)) {
                meters.refund(charged, now, now);
            }
        }
        meters.keep_held(self.lag, now);
        self.drained(meters);
        None
    }

    /// Hands the request that is to go next to `release`, charged to `meters` and to the `budget`
    /// of the pool that the volume shares, if both let it go at `now`. [`Shares`](crate::Shares)
    /// says when. What [`poll`](Self::poll) says of requests that don't go holds here too.
    pub fn step(
        &mut self,
        meters: &Meters,
        budget: &Meters,
        now: Mono,
        release: &mut impl FnMut(T, Cost) -> Departure<T>,
    ) -> Step {
        let turn = meters.yields(TURN_NANOS).min(TURN_BYTES);
        self.lag = self.lag.with(meters.held(now));
        while let Some((at, cost)) = self.next(meters) {
            let charged = match meters.take_waiting(cost, now, self.lag) {
                Ok(charged) => charged,
                Err(refusal) => return Step::Held(self.refused(meters, now, refusal)),
            };
            let shared = match budget.take_waiting(cost, now, Lag::ZERO) {
                Ok(shared) => shared,
                Err(refusal) => {
                    meters.refund(charged, now, now);
                    return Step::Wait(refusal.until);
                }
            };
            if self.pop(at, turn, |token| release(token, charged)) {
                let next = self.next(meters).map(|(_, next)| next.bytes);
                if next.is_none() {
                    meters.keep_held(self.lag, now);
                    self.drained(meters);
                }
                return Step::Went { bytes: cost.bytes, next };
            }
            meters.refund(charged, now, now);
            budget.refund(shared, now, now);
        }
        meters.keep_held(self.lag, now);
        self.drained(meters);
        Step::Nothing
    }

    /// The first was refused; when to ask again.
    fn refused(&mut self, meters: &Meters, now: Mono, refusal: Refusal) -> Mono {
        self.lag.refused(refusal, now);
        refusal.until.max(pause(meters, now))
    }

    /// Takes out everything that waits on `connection`, whichever client it belongs to, and hands
    /// it to `cancelled`. Nothing of it was charged, so there is nothing to refund.
    pub fn cancel_connection(
        &mut self,
        meters: &Meters,
        connection: u64,
        cancelled: &mut impl FnMut(T),
    ) {
        while let Some((_, &at)) = self.by_connection.range(clients_of(connection)).next() {
            let Connection { client, place, stalled, waiters, .. } = self.remove_connection(at);
            let client = &mut self.clients[client];
            let was_ready = client.round.is_ready();
            if stalled {
                client.stalled -= 1;
                self.stalled -= waiters.len();
            }
            client.round.leave(place);
            if !client.round.is_ready() && (was_ready || stalled) {
                client.place = match client.stalled {
                    0 => self.round.pause(client.place),
                    _ => self.round.stall(client.place),
                };
            }
            for waiter in waiters {
                self.uncount(waiter.cost);
                cancelled(waiter.token);
            }
        }
        if self.ready() == 0 {
            self.drained(meters);
        }
    }

    /// The number of requests that wait and could go if their limits let them: without those of
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

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes that the waiting requests will be charged.
    #[must_use]
    pub fn parked_cost(&self) -> u64 {
        self.parked_cost
    }

    /// The connection whose request is to go next, and the cost of that.
    fn next(&self, meters: &Meters) -> Option<(usize, Cost)> {
        let by_turns = self.lag.longest > CATCH_UP_NANOS && meters.counts_operations();
        self.first(by_turns.then(|| meters.ample()))
    }

    /// The connection whose turn it is, of the `wanted` kind if that may go, and the cost of its
    /// first request.
    fn first(&self, wanted: Option<Kind>) -> Option<(usize, Cost)> {
        let client = &self.clients[self.round.first(wanted)?];
        let at = client.round.first(wanted)?;
        Some((at, self.connections[at].waiters.front()?.cost))
    }

    /// Hands the first request of the connection whose turn it is to `release`. True if it went.
    /// Turns are of `turn` bytes, and a request that doesn't go takes nothing of them.
    fn pop(&mut self, at: usize, turn: u64, release: impl FnOnce(T) -> Departure<T>) -> bool {
        let connection = &mut self.connections[at];
        let Some(Waiter { cost, weight, serial, token }) = connection.waiters.pop_front() else {
            return false;
        };
        let went = match release(token) {
            Departure::Went => true,
            Departure::SetAside => false,
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
        let own = || turn_of(&connection.waiters, turn);
        connection.place = client.round.serve(connection.place, served, next, own);
        let next = client.round.first(None).map(|at| &self.connections[at].waiters);
        let after = next.and_then(|waiters| waiters.front()).map(|waiter| waiter.weight);
        let own = || next.map_or(0, |waiters| turn_of(waiters, turn));
        client.place = self.round.serve(client.place, served, after, own);
        if after.is_none() && client.stalled > 0 {
            client.place = self.round.stall(client.place);
        }
        self.uncount(cost);
        self.forget_settled(client_at);
        went
    }

    /// Takes the requests of a connection out of the competition.
    fn stall(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let client = &mut self.clients[connection.client];
        connection.stalled = true;
        client.stalled += 1;
        self.stalled += connection.waiters.len();
        connection.place = client.round.stall(connection.place);
        if !client.round.is_ready() {
            client.place = self.round.stall(client.place);
        }
    }

    /// Removes whoever has nothing waiting and would be treated no differently as a newcomer,
    /// after `client` was served.
    fn forget_settled(&mut self, client: usize) {
        while let Some(at) = self.clients[client].round.forget() {
            self.remove_connection(at);
        }
        while let Some(at) = self.round.forget() {
            let Client { key, round, .. } = self.clients.remove(at);
            self.by_client.remove(&key);
            for connection in round.idle() {
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

    /// The place of a client's connection, made if it is new.
    fn connection(&mut self, key: ClientKey, id: u64) -> usize {
        if let Some(&at) = self.by_connection.get(&(id, key)) {
            return at;
        }
        let client = self.client(key);
        let entry = self.connections.vacant_entry();
        let at = entry.key();
        let place = self.clients[client].round.enter(at);
        let waiters = VecDeque::new();
        entry.insert(Connection { id, client, place, stalled: false, waiters });
        self.by_connection.insert((id, key), at);
        at
    }

    /// The place of a client, made if it is new.
    fn client(&mut self, key: ClientKey) -> usize {
        *self.by_client.entry(key).or_insert_with(|| {
            let entry = self.clients.vacant_entry();
            let at = entry.key();
            let place = self.round.enter(at);
            entry.insert(Client { key, place, round: Round::new(), stalled: 0 });
            at
        })
    }

    fn uncount(&mut self, cost: Cost) {
        self.len -= 1;
        self.parked_cost = self.parked_cost.saturating_sub(cost.bytes);
    }

    /// Opens the fast path, and frees all memory if no request waits.
    fn drained(&mut self, meters: &Meters) {
        meters.set_waiting(false);
        self.lag = Lag::ZERO;
        if self.is_empty() {
            *self = Self::new();
        }
    }
}

/// The keys of all clients with requests on one connection.
fn clients_of(connection: u64) -> RangeInclusive<(u64, ClientKey)> {
    (connection, ClientKey(u128::MIN))..=(connection, ClientKey(u128::MAX))
}

/// The bytes of the next turn of a connection, at most `most` unless its first request is more.
fn turn_of<T>(waiters: &VecDeque<Waiter<T>>, most: u64) -> u64 {
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
