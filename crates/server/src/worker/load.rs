//! The load that peers put on one worker: memory and requests of each connection, of each origin,
//! and of all origins together.
//!
//! The bounds of an origin lie well below those for all together, so that an origin at its bounds
//! leaves room for the others. The load of an origin includes requests in flight whose connections
//! are gone. Not here: the number of connections of an origin, which [`crate::admission`] counts
//! over all workers.

use super::tally::{Counted, Tally};
use crate::admission::Origin;
use crate::limits::{
    GROUP_LOOKUPS_ORIGIN_MAX, LENT_BYTES_ORIGIN_CROWDED, LENT_BYTES_ORIGIN_MAX,
    LENT_BYTES_WORKER_MAX, PARKED_BYTES_ORIGIN_MAX, RECEIVED_BYTES_ORIGIN_MAX,
    RECEIVED_BYTES_WORKER_MAX, RECV_LARGE_BYTES, REPLY_BYTES_MAX, REPLY_BYTES_ORIGIN_CROWDED,
    REPLY_BYTES_ORIGIN_MAX, REPLY_BYTES_WORKER_MAX, TASKS_ORIGIN_MAX,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// The sums over all origins of a worker.
#[derive(Debug, Default)]
pub(super) struct WorkerLoad {
    /// Bytes of unsent replies and of requests in flight.
    replies: Rc<Tally>,
    /// Bytes of receive buffers that requests in flight keep from being used again.
    lent: Rc<Tally>,
    /// Bytes that hold partial records.
    partial: Rc<Tally>,
    /// Bytes that hold received data: partial records, and records that are not taken yet.
    pub(super) received: Rc<Tally>,
}

impl WorkerLoad {
    /// Can it be that an origin holds more replies than it may?
    pub(super) fn may_be_crowded(&self) -> bool {
        self.replies.get() >= REPLY_BYTES_ORIGIN_CROWDED
    }

    /// Do replies and requests in flight of all connections hold more than they may?
    pub(super) fn is_crowded(&self) -> bool {
        self.replies.get() >= REPLY_BYTES_WORKER_MAX
    }

    /// Bytes that hold partial records.
    pub(super) fn partial_bytes(&self) -> usize {
        self.partial.get()
    }
}

/// The sums of one origin.
#[derive(Debug)]
pub(super) struct OriginLoad {
    worker: Rc<WorkerLoad>,
    /// As in [`WorkerLoad`].
    replies: Rc<Tally>,
    lent: Rc<Tally>,
    partial: Rc<Tally>,
    pub(super) received: Rc<Tally>,
    /// Operations that wait for the disk.
    tasks: Rc<Tally>,
    /// Bytes of requests that wait at gates.
    parked: Rc<Tally>,
    /// Requests whose callers' groups are looked up.
    lookups: Rc<Tally>,
    /// Requests taken in a round of the worker, and the number of that round.
    taken: Cell<usize>,
    round: Cell<u64>,
    /// A connection is not read because the origin is at a bound.
    waits: Cell<bool>,
}

impl OriginLoad {
    /// No load yet of an origin on this worker.
    pub(super) fn new(worker: &Rc<WorkerLoad>) -> Rc<Self> {
        Rc::new(Self {
            replies: Tally::within(&worker.replies),
            lent: Tally::within(&worker.lent),
            partial: Tally::within(&worker.partial),
            received: Tally::within(&worker.received),
            worker: Rc::clone(worker),
            tasks: Rc::default(),
            parked: Rc::default(),
            lookups: Rc::default(),
            taken: Cell::new(0),
            round: Cell::new(0),
            waits: Cell::new(false),
        })
    }

    /// The load of an origin on a worker of its own.
    #[cfg(test)]
    pub(super) fn alone() -> Rc<Self> {
        Self::new(&Rc::default())
    }

    /// Counts bytes of unsent replies of a connection.
    pub(super) fn count_replies(&self, bytes: usize) -> Counted {
        Counted::new(&self.replies, bytes)
    }

    /// Counts bytes of receive buffers that requests in flight hold.
    pub(super) fn count_lent(&self, bytes: usize) -> Counted {
        Counted::new(&self.lent, bytes)
    }

    /// Counts bytes that hold a partial record.
    pub(super) fn count_partial(&self, bytes: usize) -> Counted {
        Counted::new(&self.partial, bytes)
    }

    /// Counts bytes that hold received data.
    pub(super) fn count_received(&self, bytes: usize) -> Counted {
        Counted::new(&self.received, bytes)
    }

    /// May `more` bytes hold received data of the origin? One large record always may, so that
    /// other origins cannot use up all of the memory.
    pub(super) fn may_receive(&self, more: usize) -> bool {
        let (own, all) = (self.received.get() + more, self.worker.received.get() + more);
        own <= RECV_LARGE_BYTES
            || own <= RECEIVED_BYTES_ORIGIN_MAX && all <= RECEIVED_BYTES_WORKER_MAX
    }

    /// Counts bytes of requests that wait at gates.
    pub(super) fn count_parked(&self, bytes: usize) -> Counted {
        Counted::new(&self.parked, bytes)
    }

    /// Counts an operation that waits for the disk.
    pub(super) fn count_task(&self) -> Counted {
        Counted::new(&self.tasks, 1)
    }

    /// Counts a request whose caller's groups are looked up.
    pub(super) fn count_lookup(&self) -> Counted {
        Counted::new(&self.lookups, 1)
    }

    /// Bytes of unsent replies and of requests in flight.
    #[cfg(test)]
    pub(super) fn reply_bytes(&self) -> usize {
        self.replies.get()
    }

    /// Bytes that hold partial records.
    pub(super) fn partial_bytes(&self) -> usize {
        self.partial.get()
    }

    /// Requests taken in `round` so far.
    pub(super) fn taken_in(&self, round: u64) -> usize {
        if self.round.get() == round { self.taken.get() } else { 0 }
    }

    /// Counts so many more requests taken in `round`.
    pub(super) fn took_in(&self, round: u64, requests: usize) {
        self.taken.set(self.taken_in(round) + requests);
        self.round.set(round);
    }

    /// Do replies and requests in flight, of the origin or of the worker, hold so much that each
    /// connection gets one at a time?
    pub(super) fn is_crowded(&self) -> bool {
        self.replies.get() >= REPLY_BYTES_ORIGIN_CROWDED || self.worker.is_crowded()
    }

    /// Is a connection of the origin to be closed if its peer accepts no replies?
    pub(super) fn must_accept_replies(&self) -> bool {
        let own = self.replies.get();
        own >= REPLY_BYTES_ORIGIN_CROWDED || self.worker.is_crowded() && own > REPLY_BYTES_MAX
    }

    /// May a connection that has lent buffers lend one more?
    pub(super) fn may_lend(&self) -> bool {
        self.worker.lent.get() < LENT_BYTES_WORKER_MAX
            && self.lent.get() < LENT_BYTES_ORIGIN_CROWDED
    }

    /// May no request of the origin be started?
    pub(super) fn is_full(&self) -> bool {
        self.replies.get() >= REPLY_BYTES_ORIGIN_MAX
            || self.lent.get() >= LENT_BYTES_ORIGIN_MAX
            || self.tasks.get() >= TASKS_ORIGIN_MAX
    }

    /// May no request of the origin be read? Requests that wait at gates may go on.
    pub(super) fn may_not_read(&self) -> bool {
        self.is_full()
            || self.parked.get() >= PARKED_BYTES_ORIGIN_MAX
            || self.lookups.get() >= GROUP_LOOKUPS_ORIGIN_MAX
    }

    /// Is enough free again for connections to go on? The marks lie below the bounds, so that
    /// connections don't stop again at once.
    fn is_relieved(&self) -> bool {
        let below = |tally: &Tally, bound: usize| tally.get() < bound / 4 * 3;
        below(&self.replies, REPLY_BYTES_ORIGIN_MAX)
            && below(&self.lent, LENT_BYTES_ORIGIN_MAX)
            && below(&self.tasks, TASKS_ORIGIN_MAX)
            && below(&self.parked, PARKED_BYTES_ORIGIN_MAX)
            && below(&self.lookups, GROUP_LOOKUPS_ORIGIN_MAX)
    }
}

/// The requests in flight of one connection: admitted, or handed to another thread, and not
/// answered.
#[derive(Debug)]
pub(super) struct ConnLoad {
    origin: Rc<OriginLoad>,
    in_flight: Cell<usize>,
    reserved: Cell<usize>,
}

impl ConnLoad {
    /// The load of a new connection of `origin`.
    pub(super) fn new(origin: &Rc<OriginLoad>) -> Rc<Self> {
        let (in_flight, reserved) = (Cell::new(0), Cell::new(0));
        Rc::new(Self { origin: Rc::clone(origin), in_flight, reserved })
    }

    /// The load of the connection's origin.
    pub(super) fn origin(&self) -> &Rc<OriginLoad> {
        &self.origin
    }

    /// Requests in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Bytes that requests in flight hold or are going to: arguments and replies.
    pub(super) fn reserved(&self) -> usize {
        self.reserved.get()
    }
}

/// A request in flight, and the memory it holds, until it is dropped. It counts for its origin
/// also when its connection is gone.
#[derive(Debug)]
pub(crate) struct InFlight {
    conn: Rc<ConnLoad>,
    bytes: usize,
}

impl InFlight {
    /// Counts a request in flight that holds `bytes`.
    pub(super) fn new(conn: &Rc<ConnLoad>, bytes: usize) -> Self {
        conn.in_flight.set(conn.in_flight.get() + 1);
        conn.reserved.set(conn.reserved.get() + bytes);
        conn.origin.replies.replace(0, bytes);
        Self { conn: Rc::clone(conn), bytes }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.conn.in_flight.set(self.conn.in_flight.get() - 1);
        self.conn.reserved.set(self.conn.reserved.get() - self.bytes);
        self.conn.origin.replies.replace(self.bytes, 0);
    }
}

/// The origins of one worker.
#[derive(Debug, Default)]
pub(super) struct Loads {
    worker: Rc<WorkerLoad>,
    of: HashMap<Origin, Weak<OriginLoad>>,
    /// Number of origins at which those without connections are forgotten.
    room: usize,
    /// The origins whose connections wait for a bound of the origin.
    waiting: Vec<Rc<OriginLoad>>,
}

impl Loads {
    /// The sums over all origins.
    pub(super) fn worker(&self) -> &WorkerLoad {
        &self.worker
    }

    /// The load of `origin`, which is forgotten when no reference is left.
    pub(super) fn of(&mut self, origin: Origin) -> Rc<OriginLoad> {
        if let Some(load) = self.of.get(&origin).and_then(Weak::upgrade) {
            return load;
        }
        if self.of.len() >= self.room {
            self.of.retain(|_, load| load.strong_count() > 0);
            self.room = 2 * self.of.len() + 64;
        }
        let load = OriginLoad::new(&self.worker);
        self.of.insert(origin, Rc::downgrade(&load));
        load
    }

    /// Remembers that a connection waits until its origin is below its bounds.
    pub(super) fn wait(&mut self, load: &Rc<OriginLoad>) {
        if !load.waits.replace(true) {
            self.waiting.push(Rc::clone(load));
        }
    }

    /// An origin whose connections may go on, if there is one.
    pub(super) fn relieved(&mut self) -> Option<Rc<OriginLoad>> {
        let at = self.waiting.iter().position(|load| load.is_relieved())?;
        let load = self.waiting.swap_remove(at);
        load.waits.set(false);
        Some(load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn origin(last: u8) -> Origin {
        Origin::of(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn an_origin_is_summed_over_its_connections_and_forgotten_with_them() {
        let mut loads = Loads::default();
        let (one, same, other) = (loads.of(origin(1)), loads.of(origin(1)), loads.of(origin(2)));
        let replies = one.count_replies(REPLY_BYTES_ORIGIN_CROWDED);
        assert!(same.is_crowded() && !same.is_full() && !other.is_crowded());
        assert!(loads.worker().may_be_crowded() && !loads.worker().is_crowded());
        drop((one, same, replies));
        assert!(!loads.of(origin(1)).is_crowded() && !loads.worker().may_be_crowded());
        let kept: Vec<_> = (0..=255).map(|last| loads.of(origin(last))).collect();
        drop(kept);
        (0..100).for_each(|last| drop(loads.of(origin(last))));
        assert!(loads.of.len() < 1000);
    }

    #[test]
    fn an_operation_counts_until_it_is_dropped_and_then_relieves_its_origin() {
        let mut loads = Loads::default();
        let load = loads.of(origin(1));
        let mut tasks: Vec<_> = (0..TASKS_ORIGIN_MAX).map(|_| load.count_task()).collect();
        assert!(load.is_full() && load.may_not_read());
        loads.wait(&load);
        loads.wait(&load);
        tasks.truncate(TASKS_ORIGIN_MAX / 4 * 3);
        assert!(loads.relieved().is_none(), "not yet far below the bound");
        tasks.pop();
        assert!(loads.relieved().is_some_and(|relieved| Rc::ptr_eq(&relieved, &load)));
        assert!(loads.relieved().is_none(), "once");
    }

    #[test]
    fn requests_at_gates_stop_reading_but_not_the_start_of_requests() {
        let load = OriginLoad::alone();
        let mut parked = load.count_parked(PARKED_BYTES_ORIGIN_MAX);
        assert!(load.may_not_read() && !load.is_full());
        parked.set(PARKED_BYTES_ORIGIN_MAX - 1);
        assert!(!load.may_not_read());
    }

    #[test]
    fn a_request_in_flight_counts_for_its_origin_after_its_connection_is_gone() {
        let origin = OriginLoad::alone();
        let conn = ConnLoad::new(&origin);
        let (one, other) = (InFlight::new(&conn, 100), InFlight::new(&conn, 20));
        assert_eq!((conn.in_flight(), conn.reserved(), origin.reply_bytes()), (2, 120, 120));
        drop(one);
        assert_eq!((conn.in_flight(), conn.reserved(), origin.reply_bytes()), (1, 20, 20));
        drop(conn);
        assert_eq!(origin.reply_bytes(), 20);
        drop(other);
        assert_eq!(origin.reply_bytes(), 0);
    }
}
