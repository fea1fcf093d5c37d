//! All who wait for one volume: for its limits, in its [`Queue`], or for their files, in [`Files`]
//! where those have a ceiling. Plain data, like both. Not here: any rule but which of the two comes
//! first; see [`files`](crate::files).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use weir_core::Mono;

use crate::files::{FileCharge, Files, Requeued, Turn};
use crate::limits::Ceiling;
use crate::meters::{Cost, Meters};
use crate::queue::{ClientKey, Departure, Order, Queue, Standing, Step};

/// A request's demand. `K` names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asks<K> {
    /// The client, among which the shares are fair.
    pub client: ClientKey,
    /// The client's connection.
    pub connection: u64,
    /// The request's charge.
    pub cost: Cost,
    /// The file that it reads or writes, if it does.
    pub file: Option<K>,
    /// Bytes of memory that it takes while it waits.
    pub pinned: u64,
}

/// The charge of a request that went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged<K> {
    /// The charge of its volume.
    pub volume: Cost,
    /// The charge of its file, if that has a ceiling.
    pub file: Option<FileCharge<K>>,
}

/// The waiters of one volume; `T` is the caller's token for a parked request. Use one with one set
/// of [`Meters`], and make all calls under one mutex.
#[derive(Debug)]
pub struct Line<K, T> {
    queue: Queue<Waiter<K, T>>,
    /// Boxed, as few volumes have such ceilings.
    files: Option<Box<Files<K, Waiter<K, T>>>>,
    aside: Aside,
    /// The serial of the next request.
    serial: u64,
    /// Connections stalled since the last poll of the queue.
    stalled: Vec<u64>,
}

/// The requests that wait for files.
#[derive(Debug, Default)]
struct Aside {
    /// The number of requests on each connection.
    connections: BTreeMap<u64, usize>,
    /// The memory that they take.
    pinned: u64,
    /// A connection has none any more since [`Line::cleared`] was asked.
    cleared: bool,
}

impl Aside {
    fn add<K>(&mut self, asks: &Asks<K>) {
        *self.connections.entry(asks.connection).or_default() += 1;
        self.pinned = self.pinned.saturating_add(asks.pinned);
    }

    fn remove<K>(&mut self, asks: &Asks<K>) {
        self.pinned = self.pinned.saturating_sub(asks.pinned);
        if let Some(count) = self.connections.get_mut(&asks.connection) {
            *count -= 1;
            if *count == 0 {
                self.connections.remove(&asks.connection);
                self.cleared = true;
            }
        }
    }
}

#[derive(Debug)]
struct Waiter<K, T> {
    asks: Asks<K>,
    /// The file's note on the request, if it was [requeued](Files::poll).
    requeued: Option<Requeued<K>>,
    /// The request's place in the order of arrival.
    serial: u64,
    token: T,
}

impl<K: Copy, T> Waiter<K, T> {
    /// The question to the file at the request's turn; `None` for a request without a file.
    fn turn(&self) -> Option<Turn<K>> {
        let Asks { client, connection, cost, file, .. } = self.asks;
        let (serial, requeued) = (self.serial, self.requeued);
        file.map(|file| Turn { file, client, connection, cost, serial, requeued })
    }
}

impl<K> Default for Charged<K> {
    /// Nothing at all.
    fn default() -> Self {
        Self { volume: Cost::ZERO, file: None }
    }
}

impl<K, T> Default for Line<K, T> {
    fn default() -> Self {
        let (aside, stalled) = (Aside::default(), Vec::new());
        Self { queue: Queue::new(), files: None, aside, serial: 0, stalled }
    }
}

impl<K: Ord + Copy, T> Line<K, T> {
    /// A line without waiting requests, and without a ceiling of files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The ceiling of each file, if there is one.
    #[must_use]
    pub fn ceiling(&self) -> Option<Ceiling> {
        self.files.as_ref().map(|files| files.ceiling())
    }

    /// Puts another ceiling of files in force for the next decision, or none. Ask afterwards.
    pub fn set_ceiling(&mut self, ceiling: Option<Ceiling>, meters: &Meters, now: Mono) {
        match (ceiling, &mut self.files) {
            (Some(ceiling), Some(files)) => files.set(ceiling, now),
            (Some(ceiling), None) => self.files = Some(Box::new(Files::new(ceiling))),
            (None, _) => {
                let Some(files) = self.files.take() else { return };
                self.aside = Aside { cleared: true, ..Aside::default() };
                // No file knows these requests any more, nor will one that gets a ceiling later.
                self.queue.for_each(&mut |waiter| waiter.requeued = None);
                for waiter in files.open() {
                    wait(&mut self.queue, meters, waiter);
                }
            }
        }
    }

    /// Lets a request go at once if its file does and `pass`, which is to charge its volume, does
    /// too. On `None` nothing is charged: [let it wait](Self::push).
    #[must_use]
    pub fn try_pass(
        &mut self,
        file: K,
        cost: Cost,
        now: Mono,
        pass: impl FnOnce() -> Option<Cost>,
    ) -> Option<Charged<K>> {
        let Some(files) = &mut self.files else {
            return pass().map(|volume| Charged { volume, file: None });
        };
        let charge = files.try_take(file, cost, now)?;
        let volume = pass();
        if volume.is_none() {
            files.refund(charge, now);
        }
        volume.map(|volume| Charged { volume, file: Some(charge) })
    }

    /// Lets a request wait. True if the line has to be asked, as [`Queue::push`] has it.
    pub fn push(&mut self, meters: &Meters, asks: Asks<K>, token: T) -> bool {
        self.serial += 1;
        wait(&mut self.queue, meters, Waiter { asks, requeued: None, serial: self.serial, token })
    }

    /// See [`Queue::poll`]. `release` gives a request back whose connection has no room for the
    /// reply: nothing is charged, and all requests of the connection wait until it is
    /// [resumed](Self::resume).
    pub fn poll(
        &mut self,
        meters: &Meters,
        now: Mono,
        release: &mut impl FnMut(T, Charged<K>) -> Option<T>,
    ) -> Option<Mono> {
        loop {
            self.requeue(meters, now);
            let (files, aside) = (&mut self.files, &mut self.aside);
            let stalled = &mut self.stalled;
            let next = self.queue.poll(meters, now, &mut |waiter, charged| {
                let aside = files.as_deref_mut().zip(Some(&mut *aside));
                leave(aside, stalled, waiter, charged, now, release)
            });
            self.forget_turns(now);
            let filed = self.files.as_ref().and_then(|files| files.next());
            if filed.is_none_or(|at| at > now) {
                return [next, filed].into_iter().flatten().min();
            }
        }
    }

    /// See [`Queue::step`]. Who waits for a file alone is held until that is to be asked.
    pub fn step(
        &mut self,
        meters: &Meters,
        budget: &Meters,
        now: Mono,
        release: &mut impl FnMut(T, Charged<K>) -> Option<T>,
    ) -> Step {
        loop {
            self.requeue(meters, now);
            let (files, aside) = (&mut self.files, &mut self.aside);
            let stalled = &mut self.stalled;
            let step = self.queue.step(meters, budget, now, &mut |waiter, charged| {
                let aside = files.as_deref_mut().zip(Some(&mut *aside));
                leave(aside, stalled, waiter, charged, now, release)
            });
            self.forget_turns(now);
            return match (step, self.files.as_ref().and_then(|files| files.next())) {
                (Step::Nothing, Some(at)) if at <= now => continue,
                (Step::Nothing, Some(at)) => Step::Held(at),
                (Step::Went { bytes, next: None }, Some(_)) => Step::Went { bytes, next: Some(0) },
                (step, _) => step,
            };
        }
    }

    /// See [`Queue::resume`].
    pub fn resume(&mut self, meters: &Meters, connection: u64) -> bool {
        self.queue.resume(meters, connection)
    }

    /// See [`Queue::reweigh`].
    pub fn reweigh(&mut self, meters: &Meters) {
        self.queue.reweigh(meters);
    }

    /// Gives back what a file was charged. True if somebody waits for it who may go sooner now: ask
    /// the line.
    pub fn refund(&mut self, charge: FileCharge<K>, now: Mono) -> bool {
        self.files.as_mut().is_some_and(|files| files.refund(charge, now))
    }

    /// Takes out everything that waits on `connection` and hands it to `cancelled`. Nothing of it
    /// was charged. Ask the line afterwards.
    pub fn cancel_connection(
        &mut self,
        meters: &Meters,
        connection: u64,
        now: Mono,
        cancelled: &mut impl FnMut(T),
    ) {
        let files = &mut self.files;
        self.queue.cancel_connection(meters, connection, &mut |waiter: Waiter<K, T>| {
            if let Some((files, turn)) = files.as_mut().zip(waiter.turn()) {
                files.withdraw(turn, now);
            }
            cancelled(waiter.token);
        });
        let aside = &mut self.aside;
        if let Some(files) = files {
            files.cancel_connection(connection, &mut |waiter| {
                aside.remove(&waiter.asks);
                cancelled(waiter.token);
            });
        }
    }

    /// Forgets the files that owe nothing.
    pub fn forget(&mut self, now: Mono) {
        if let Some(files) = &mut self.files {
            files.forget(now);
        }
    }

    /// The number of waiting requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len() + self.files.as_ref().map_or(0, |files| files.len())
    }

    /// Whether none does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of requests that wait for the volume's own limits, or for their turn: neither for
    /// a file nor for room on their connection.
    #[must_use]
    pub fn len_of_volume(&self) -> usize {
        self.queue.ready()
    }

    /// The number of requests that wait until their connection [has room](Self::resume).
    #[must_use]
    pub fn stalled(&self) -> usize {
        self.queue.len() - self.queue.ready()
    }

    /// Bytes of memory that those take who wait for files.
    #[must_use]
    pub fn pinned_aside(&self) -> u64 {
        self.aside.pinned
    }

    /// Whether any on `connection` waits for a file.
    #[must_use]
    pub fn is_aside(&self, connection: u64) -> bool {
        self.aside.connections.contains_key(&connection)
    }

    /// Whether a connection has none waiting for files any more, since this was last asked.
    pub fn cleared(&mut self) -> bool {
        core::mem::take(&mut self.aside.cleared)
    }

    /// Puts the requests that their files requeue into the queue of the volume.
    fn requeue(&mut self, meters: &Meters, now: Mono) {
        let Some(files) = &mut self.files else { return };
        let mut without_room = Vec::new();
        files.poll(now, &mut |waiter, requeued| {
            self.aside.remove(&waiter.asks);
            let mut waiter = Waiter { requeued: Some(requeued), ..waiter };
            if self.queue.is_stalled(waiter.asks.client, waiter.asks.connection) {
                without_room.extend(waiter.turn());
                waiter.requeued = None;
            }
            wait(&mut self.queue, meters, waiter);
        });
        for turn in without_room {
            files.withdraw(turn, now);
        }
    }

    /// Requeued requests whose connections were stalled have no turn before those are resumed, and
    /// are newcomers then: their files go on with others.
    fn forget_turns(&mut self, now: Mono) {
        for connection in self.stalled.drain(..) {
            let Some(files) = &mut self.files else { continue };
            self.queue.for_each_stalled(connection, &mut |waiter| {
                if let Some(turn) = waiter.turn() {
                    files.withdraw(turn, now);
                }
                waiter.requeued = None;
            });
        }
    }
}

/// Lets a request wait for its turn, before those of its connection that came later. True if the
/// queue has to be asked.
fn wait<K: Copy, T>(
    queue: &mut Queue<Waiter<K, T>>,
    meters: &Meters,
    waiter: Waiter<K, T>,
) -> bool {
    let Asks { client, connection, cost, .. } = waiter.asks;
    let standing = match waiter.requeued {
        None => Standing::New,
        Some(Requeued { reserved: false, .. }) => Standing::Kept,
        Some(Requeued { reserved: true, .. }) => Standing::First,
    };
    let order = Order { serial: waiter.serial, standing };
    queue.push_in_order(meters, client, connection, cost, waiter, order)
}

/// The files that requests may have to wait for, and who does.
type FilesAside<'a, K, T> = (&'a mut Files<K, Waiter<K, T>>, &'a mut Aside);

/// Lets a request that was charged to its volume go, if its file and its connection let it too.
fn leave<K: Ord + Copy, T>(
    files: Option<FilesAside<'_, K, T>>,
    stalled: &mut Vec<u64>,
    waiter: Waiter<K, T>,
    volume: Cost,
    now: Mono,
    release: &mut impl FnMut(T, Charged<K>) -> Option<T>,
) -> Departure<Waiter<K, T>> {
    let (asks, turn) = (waiter.asks, waiter.turn());
    let mut go = |waiter: Waiter<K, T>, file| {
        let Some(token) = release(waiter.token, Charged { volume, file }) else {
            return Departure::Went;
        };
        stalled.push(asks.connection);
        Departure::Stalled(Waiter { token, ..waiter })
    };
    let Some(((files, aside), turn)) = files.zip(turn) else { return go(waiter, None) };
    let waiter = Waiter { requeued: None, ..waiter };
    let Some((waiter, charge)) = files.turn(turn, waiter, now) else {
        aside.add(&asks);
        return Departure::SetAside;
    };
    let departure = go(waiter, Some(charge));
    if let Departure::Stalled(_) = departure {
        files.give_back(turn, charge, now);
    }
    departure
}

#[cfg(test)]
mod tests;
