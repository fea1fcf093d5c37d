//! All waiting requests of one volume: those that wait for the volume's limits, in its [`Queue`],
//! and those that their files throttle, in a [`FileLimiter`] if files have a ceiling. Plain data,
//! like both. Not here: any rule except the order between the two; see
//! [`file_limiter`](crate::file_limiter).
//!
//! # Assertions
//!
//! `debug_assert!` checks that the throttled requests of all connections are those of the limiter,
//! and that they pin no memory when there are none.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use weir_core::Mono;

use crate::file_limiter::{FileCharge, FileLimiter, Requeued, Turn};
use crate::limits::Ceiling;
use crate::meters::{Cost, Meters};
use crate::queue::{ClientKey, Departure, Entry, Order, Queue, Served, Standing, Step};

/// The demand of a request. `K` names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand<K> {
    /// The client, among which the shares are fair.
    pub client: ClientKey,
    /// The client's connection.
    pub connection: u64,
    /// The request's charge.
    pub cost: Cost,
    /// The file that it reads or writes, if it does.
    pub file: Option<K>,
    /// Bytes of memory that it pins while it waits.
    pub pinned: u64,
}

/// The identity of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId<K> {
    client: ClientKey,
    connection: u64,
    file: Option<K>,
    /// The request's place in the order of arrival.
    serial: u64,
}

/// The charge of a request that went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged<K> {
    /// The charge of its volume.
    pub volume: Cost,
    /// The charge of its file, if that has a ceiling.
    pub file: Option<FileCharge<K>>,
}

/// The waiting requests of one volume; `T` is the caller's token for a parked request. Use one with
/// one set of [`Meters`], and make all calls under one mutex.
#[derive(Debug)]
pub struct WaitQueue<K, T> {
    queue: Queue<Waiter<K, T>>,
    /// Boxed, as few volumes have such ceilings.
    limiter: Option<Box<FileLimiter<K, Waiter<K, T>>>>,
    throttled: Throttled,
    /// The serial of the next request.
    serial: u64,
    /// Connections stalled since the last poll of the queue.
    stalled: Vec<u64>,
}

/// The throttled requests, by connection.
#[derive(Debug, Default)]
struct Throttled {
    /// The number of requests on each connection.
    connections: BTreeMap<u64, usize>,
    /// The memory that they pin.
    pinned: u64,
    /// A connection lost its last throttled request since [`WaitQueue::cleared`] was last called.
    cleared: bool,
}

impl Throttled {
    fn add<K>(&mut self, demand: &Demand<K>) {
        *self.connections.entry(demand.connection).or_default() += 1;
        self.pinned = self.pinned.saturating_add(demand.pinned);
    }

    fn remove<K>(&mut self, demand: &Demand<K>) {
        debug_assert!(self.pinned >= demand.pinned, "a throttled request's memory was counted");
        self.pinned = self.pinned.saturating_sub(demand.pinned);
        if let Some(count) = self.connections.get_mut(&demand.connection) {
            *count -= 1;
            if *count == 0 {
                self.connections.remove(&demand.connection);
                self.cleared = true;
            }
        }
        debug_assert!(!self.connections.is_empty() || self.pinned == 0, "none pin memory");
    }
}

#[derive(Debug)]
struct Waiter<K, T> {
    demand: Demand<K>,
    /// The file's note on the request, if it was [requeued](FileLimiter::poll).
    requeued: Option<Requeued<K>>,
    /// The request's place in the order of arrival.
    serial: u64,
    token: T,
}

impl<K: Copy, T> Waiter<K, T> {
    /// The request's turn at its file; `None` for a request without a file.
    fn turn(&self) -> Option<Turn<K>> {
        let Demand { client, connection, cost, file, .. } = self.demand;
        let (serial, requeued) = (self.serial, self.requeued);
        file.map(|file| Turn { file, client, connection, cost, serial, requeued })
    }
}

impl<K> Default for Charged<K> {
    /// No charge.
    fn default() -> Self {
        Self { volume: Cost::ZERO, file: None }
    }
}

impl<K, T> Default for WaitQueue<K, T> {
    fn default() -> Self {
        let (throttled, stalled) = (Throttled::default(), Vec::new());
        Self { queue: Queue::new(), limiter: None, throttled, serial: 0, stalled }
    }
}

impl<K: Ord + Copy, T> WaitQueue<K, T> {
    /// No waiting requests, and no ceiling of files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The ceiling of each file, if there is one.
    #[must_use]
    pub fn ceiling(&self) -> Option<Ceiling> {
        self.limiter.as_ref().map(|files| files.ceiling())
    }

    /// Puts another ceiling of files in force for the next decision, or none. Poll afterwards.
    pub fn set_ceiling(&mut self, ceiling: Option<Ceiling>, meters: &Meters, now: Mono) {
        match (ceiling, &mut self.limiter) {
            (Some(ceiling), Some(files)) => files.set(ceiling, now),
            (Some(ceiling), None) => self.limiter = Some(Box::new(FileLimiter::new(ceiling))),
            (None, _) => {
                let Some(files) = self.limiter.take() else { return };
                self.throttled = Throttled { cleared: true, ..Throttled::default() };
                // No file knows these requests any more, nor will one that gets a ceiling later.
                self.queue.for_each(&mut |waiter| waiter.requeued = None);
                for waiter in files.into_throttled() {
                    wait(&mut self.queue, meters, waiter);
                }
            }
        }
    }

    /// Admits a request at once if its file does and `pass`, which is to charge its volume, does
    /// too. On `None` nothing is charged: [push](Self::push) the request.
    #[must_use]
    pub fn try_pass(
        &mut self,
        file: K,
        cost: Cost,
        now: Mono,
        pass: impl FnOnce() -> Option<Cost>,
    ) -> Option<Charged<K>> {
        let Some(files) = &mut self.limiter else {
            return pass().map(|volume| Charged { volume, file: None });
        };
        let charge = files.try_take(file, cost, now)?;
        let volume = pass();
        if volume.is_none() {
            files.refund(charge, now);
        }
        volume.map(|volume| Charged { volume, file: Some(charge) })
    }

    /// Parks a request. True if the requests must be polled, as in [`Queue::push`].
    pub fn push(&mut self, meters: &Meters, demand: Demand<K>, token: T) -> bool {
        self.serial += 1;
        wait(&mut self.queue, meters, Waiter { demand, requeued: None, serial: self.serial, token })
    }

    /// The identity of the request that was pushed last, with this demand.
    #[must_use]
    pub fn last_id(&self, demand: &Demand<K>) -> RequestId<K> {
        let Demand { client, connection, file, .. } = *demand;
        RequestId { client, connection, file, serial: self.serial }
    }

    /// See [`Queue::poll`]. `release` returns a request whose connection has no room for the reply:
    /// it is not charged, and all requests of the connection wait until it is
    /// [resumed](Self::resume).
    pub fn poll(
        &mut self,
        meters: &Meters,
        now: Mono,
        release: &mut impl FnMut(T, Charged<K>) -> Option<T>,
    ) -> Option<Mono> {
        loop {
            match self.serve(meters, None, now, release) {
                Served::Went(_) => {}
                Served::Nothing => return None,
                Served::Held(at) | Served::Wait(at) => {
                    let of_files = self.next_of_files();
                    if of_files.is_none_or(|at| at > now) {
                        return [Some(at), of_files].into_iter().flatten().min();
                    }
                }
            }
        }
    }

    /// See [`Queue::step`]. A volume with throttled requests alone is held until the time of its
    /// file limiter's next poll.
    pub fn step(
        &mut self,
        meters: &Meters,
        budget: &Meters,
        now: Mono,
        release: &mut impl FnMut(T, Charged<K>) -> Option<T>,
    ) -> Step {
        match self.serve(meters, Some(budget), now, release) {
            Served::Went(bytes) => {
                let next = self.queue.next(meters, now);
                Step::Went { bytes, next: next.or(self.next_of_files().map(|_| 0)) }
            }
            Served::Nothing => Step::Nothing,
            Served::Held(at) => Step::Held(at),
            Served::Wait(at) => Step::Wait(at),
        }
    }

    /// Requeues the requests that their files admit again, and releases the next request.
    fn serve(
        &mut self,
        meters: &Meters,
        budget: Option<&Meters>,
        now: Mono,
        release: &mut impl FnMut(T, Charged<K>) -> Option<T>,
    ) -> Served {
        loop {
            self.requeue(meters, now);
            let (files, throttled) = (&mut self.limiter, &mut self.throttled);
            let stalled = &mut self.stalled;
            let served = self.queue.serve(meters, budget, now, &mut |waiter, charged| {
                let files = files.as_deref_mut().zip(Some(&mut *throttled));
                depart(files, stalled, waiter, charged, now, release)
            });
            self.forget_turns(now);
            match (served, self.next_of_files()) {
                (Served::Nothing, Some(at)) if at <= now => {}
                (Served::Nothing, Some(at)) => return Served::Held(at),
                (served, _) => return served,
            }
        }
    }

    /// The time of the file limiter's next poll.
    fn next_of_files(&self) -> Option<Mono> {
        let files = self.limiter.as_ref()?;
        debug_assert_eq!(
            self.throttled.connections.values().sum::<usize>(),
            files.len(),
            "the limiter has the throttled requests of all connections"
        );
        files.next()
    }

    /// See [`Queue::resume`].
    pub fn resume(&mut self, meters: &Meters, connection: u64) -> bool {
        self.queue.resume(meters, connection)
    }

    /// See [`Queue::reweigh`].
    pub fn reweigh(&mut self, meters: &Meters) {
        self.queue.reweigh(meters);
    }

    /// Refunds the charge of a file. True if the file has throttled requests, which may go earlier
    /// now: poll.
    pub fn refund(&mut self, charge: FileCharge<K>, now: Mono) -> bool {
        self.limiter.as_mut().is_some_and(|files| files.refund(charge, now))
    }

    /// Takes out all requests of `connection` and hands them to `cancelled`. None of them was
    /// charged. Poll afterwards.
    pub fn cancel(
        &mut self,
        meters: &Meters,
        connection: u64,
        now: Mono,
        cancelled: &mut impl FnMut(T),
    ) {
        let files = &mut self.limiter;
        self.queue.cancel_connection(meters, connection, &mut |waiter: Waiter<K, T>| {
            if let Some((files, turn)) = files.as_mut().zip(waiter.turn()) {
                files.withdraw(turn, now);
            }
            cancelled(waiter.token);
        });
        let throttled = &mut self.throttled;
        if let Some(files) = files {
            files.cancel_connection(connection, &mut |waiter| {
                throttled.remove(&waiter.demand);
                cancelled(waiter.token);
            });
        }
    }

    /// Takes out one request, unless it went. It was not charged. Poll afterwards.
    pub fn cancel_one(&mut self, meters: &Meters, id: RequestId<K>, now: Mono) -> Option<T> {
        let RequestId { client, connection, file, serial } = id;
        if let Some(waiter) = self.queue.cancel(meters, client, connection, serial) {
            if let Some((files, turn)) = self.limiter.as_mut().zip(waiter.turn()) {
                files.withdraw(turn, now);
            }
            return Some(waiter.token);
        }
        let waiter = self.limiter.as_mut()?.cancel(file?, client, connection, serial, now)?;
        self.throttled.remove(&waiter.demand);
        Some(waiter.token)
    }

    /// Forgets the files without unpaid charges.
    pub fn forget(&mut self, now: Mono) {
        if let Some(files) = &mut self.limiter {
            files.forget(now);
        }
    }

    /// The number of waiting requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len() + self.limiter.as_ref().map_or(0, |files| files.len())
    }

    /// Whether no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of requests that wait for the volume's own limits or for their turn: neither
    /// throttled nor on a stalled connection.
    #[must_use]
    pub fn len_of_volume(&self) -> usize {
        self.queue.ready()
    }

    /// The number of requests that wait until their connection is [resumed](Self::resume).
    #[must_use]
    pub fn stalled(&self) -> usize {
        self.queue.len() - self.queue.ready()
    }

    /// Bytes of memory that throttled requests pin.
    #[must_use]
    pub fn throttled_bytes(&self) -> u64 {
        self.throttled.pinned
    }

    /// Whether any request of `connection` is throttled.
    #[must_use]
    pub fn is_throttled(&self, connection: u64) -> bool {
        self.throttled.connections.contains_key(&connection)
    }

    /// Whether a connection lost its last throttled request since the last call.
    pub fn cleared(&mut self) -> bool {
        core::mem::take(&mut self.throttled.cleared)
    }

    /// Puts the requests that their files requeue into the queue of the volume.
    fn requeue(&mut self, meters: &Meters, now: Mono) {
        let Some(files) = &mut self.limiter else { return };
        let mut without_room = Vec::new();
        files.poll(now, &mut |waiter, requeued| {
            self.throttled.remove(&waiter.demand);
            let mut waiter = Waiter { requeued: Some(requeued), ..waiter };
            if self.queue.is_stalled(waiter.demand.client, waiter.demand.connection) {
                without_room.extend(waiter.turn());
                waiter.requeued = None;
            }
            wait(&mut self.queue, meters, waiter);
        });
        for turn in without_room {
            files.withdraw(turn, now);
        }
    }

    /// Withdraws the turns of requeued requests on connections that were stalled. Their files go on
    /// with others, and the requests are newcomers when their connection is resumed.
    fn forget_turns(&mut self, now: Mono) {
        for connection in self.stalled.drain(..) {
            let Some(files) = &mut self.limiter else { continue };
            self.queue.for_each_stalled(connection, &mut |waiter| {
                if let Some(turn) = waiter.turn() {
                    files.withdraw(turn, now);
                }
                waiter.requeued = None;
            });
        }
    }
}

/// Parks a request until its turn, before the later requests of its connection. True if the queue
/// must be polled.
fn wait<K: Copy, T>(
    queue: &mut Queue<Waiter<K, T>>,
    meters: &Meters,
    waiter: Waiter<K, T>,
) -> bool {
    let Demand { client, connection, cost, .. } = waiter.demand;
    let standing = match waiter.requeued {
        None => Standing::New,
        Some(Requeued { reserved: false, .. }) => Standing::Kept,
        Some(Requeued { reserved: true, .. }) => Standing::First,
    };
    let order = Order { serial: waiter.serial, standing };
    queue.push_in_order(meters, Entry { client, connection, cost, token: waiter }, order)
}

/// The file limiter, and its requests by connection.
type Limiting<'a, K, T> = (&'a mut FileLimiter<K, Waiter<K, T>>, &'a mut Throttled);

/// Releases a request that was charged to its volume, if its file and its connection admit it too.
fn depart<K: Ord + Copy, T>(
    files: Option<Limiting<'_, K, T>>,
    stalled: &mut Vec<u64>,
    waiter: Waiter<K, T>,
    volume: Cost,
    now: Mono,
    release: &mut impl FnMut(T, Charged<K>) -> Option<T>,
) -> Departure<Waiter<K, T>> {
    let (demand, turn) = (waiter.demand, waiter.turn());
    let mut go = |waiter: Waiter<K, T>, file| {
        let Some(token) = release(waiter.token, Charged { volume, file }) else {
            return Departure::Went;
        };
        stalled.push(demand.connection);
        Departure::Stalled(Waiter { token, ..waiter })
    };
    let Some(((files, throttled), turn)) = files.zip(turn) else { return go(waiter, None) };
    let waiter = Waiter { requeued: None, ..waiter };
    let Some((waiter, charge)) = files.turn(turn, waiter, now) else {
        throttled.add(&demand);
        return Departure::Throttled;
    };
    let departure = go(waiter, Some(charge));
    if let Departure::Stalled(_) = departure {
        files.give_back(turn, charge, now);
    }
    departure
}

#[cfg(test)]
mod tests;
