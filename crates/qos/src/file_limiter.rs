//! The file limiter: each file of a volume has a ceiling, independent of the volume's own limits.
//! Plain data, like [`Queue`]: the caller holds the lock and the clock.
//!
//! # The rule
//!
//! A READ or WRITE is charged to its file as it is to its volume, and goes when both admit it. Each
//! file has [`Meters`] of its own, so their guarantees hold for every file.
//!
//! # The order
//!
//! The [queue](Queue) of the volume decides when a request has its turn, and the file decides which
//! of its requests goes first. A file has a fair queue of its own, over clients and their
//! connections. As long as that queue is empty and the file admits it, a request goes at its turn.
//! Otherwise it is *throttled*: it enters the queue of its file, and the volume goes on with the
//! next request. So a file at its ceiling delays no request for another file.
//!
//! When the file has capacity again, the first request of its queue is *requeued*: it waits for its
//! turn at the volume again, before all later requests of its connection and with the position that
//! its client had. Requests are requeued at the rate of the ceiling. A requeued request is charged
//! to the file when it goes, so that a file saves up nothing while its volume holds it back.
//!
//! A *newcomer*, which has its first turn at the volume, goes before the throttled requests of the
//! same file only if the queue of the file puts it first. So requests that happen to be in the
//! volume's queue when the file has capacity don't overtake those in the file's queue.
//!
//! A requeued request may still be refused by its file, if another request had its turn earlier.
//! Then it gets back its place in the file's queue, and the file is *reserved* for it the next
//! time: it is requeued as the next request of the volume, and until it had its turn no newcomer of
//! the file goes, and only other refused requests are requeued. So later requests never overtake it
//! again.
//!
//! A requeued request that can't go for another reason, because it is cancelled or its connection
//! is [stalled](crate::queue::Departure::Stalled), counts as one that was never requeued: the file
//! goes on with the others. A request of a stalled connection is a newcomer when that is resumed.
//!
//! # What it costs
//!
//! O(log files) for each request. A file is remembered until its meters are like new ones, 50 ms
//! after all charges are paid for, and forgotten when others need the room or by
//! [`forget`](FileLimiter::forget). At most [`FILES_MAX`] are remembered: the files beyond share
//! one ceiling until there is room. With small requests at 1 MiB/s for each file that takes 300,000
//! files a second, with requests that the ceiling pays for in a second some 16,000.
//!
//! # Assertions
//!
//! `debug_assert!` checks that the number of throttled requests matches the files' queues, that a
//! file is due exactly at the time in its own record, and that no more requests are reserved for
//! than are requeued.

use alloc::collections::{BTreeMap, BTreeSet};

use weir_core::Mono;

use crate::limits::{Ceiling, Limits};
use crate::meter::CATCH_UP_NANOS;
use crate::meters::{Cost, Meters};
use crate::queue::{ClientKey, Entry, Order, Queue, Standing, pause};
use crate::rate::BytesPerSecond;
use crate::two_limits::{CatchUp, Refusal, Resource};

/// The most files of one volume that are remembered at once.
pub const FILES_MAX: usize = 16_384;

/// With fewer than this nothing is forgotten to make room.
const FILES_FEW: usize = 64;

/// The files of one volume that have unpaid charges, and their throttled requests. `K` names a
/// file, `T` is the caller's token for a parked request.
#[derive(Debug)]
pub struct FileLimiter<K, T> {
    ceiling: Ceiling,
    /// The files by name; the files without room of their own are one entry, without a name.
    files: BTreeMap<Option<K>, File<T>>,
    /// The files with throttled requests, by the time of the next poll.
    due: BTreeSet<(Mono, Option<K>)>,
    /// The number of files at which to forget settled ones, and the earliest time of that.
    room: usize,
    forget_at: Mono,
    /// The number of throttled requests.
    throttled: usize,
}

#[derive(Debug)]
struct File<T> {
    meters: Meters,
    queue: Queue<Throttled<T>>,
    /// The time of the next poll, which may [requeue](FileLimiter::poll) a request.
    due: Option<Mono>,
    /// The number of requeued requests that have not had their turn since.
    requeued: usize,
    /// The number of requeued requests for which the file is reserved.
    reserved: usize,
    pace: Pace,
}

/// A request in the queue of its file.
#[derive(Debug)]
struct Throttled<T> {
    token: T,
    /// The request was requeued before, and its file refused it at its turn.
    refused: bool,
}

/// The times until which all requests that a file requeued are paid for at its ceiling, in
/// nanoseconds, independent of when those requests go. Without a pace, one request that waits for
/// its turn at the volume would keep the others from being requeued, or a file could requeue any
/// number of requests before any of them has had its turn.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    bytes: u64,
    operations: u64,
}

impl Pace {
    /// The pace of a file that refused a request and has requeued none.
    const fn after(Refusal { until, by }: Refusal) -> Self {
        match by {
            Resource::Bytes => Self { bytes: until.0, operations: 0 },
            Resource::Operations => Self { bytes: 0, operations: until.0 },
        }
    }

    /// The time at which the next request may be requeued.
    fn until(self) -> Mono {
        Mono(self.bytes.max(self.operations))
    }

    fn charge(&mut self, ceiling: Ceiling, cost: Cost, catch_up: CatchUp, now: Mono) {
        let (bytes, operations) = takes(ceiling, cost);
        let from =
            |at: u64, more| at.max(now.0.saturating_sub(CATCH_UP_NANOS.saturating_add(more)));
        self.bytes = from(self.bytes, catch_up.bytes).saturating_add(bytes);
        self.operations = from(self.operations, catch_up.operations).saturating_add(operations);
    }

    fn give_back(&mut self, ceiling: Ceiling, cost: Cost) {
        let (bytes, operations) = takes(ceiling, cost);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.operations = self.operations.saturating_sub(operations);
    }
}

/// The time in nanoseconds in which a ceiling yields a request's bytes, and its operations.
fn takes(ceiling: Ceiling, cost: Cost) -> (u64, u64) {
    let nanos = |units: u64, rate: u64| {
        let nanos = u128::from(units) * 1_000_000_000 / u128::from(rate.max(1));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    };
    let bytes = ceiling.rate.map_or(0, |rate| nanos(cost.bytes, rate.0));
    let operations = ceiling.iops.map_or(0, |iops| nanos(cost.operations, iops.0));
    (bytes, operations)
}

/// A request whose turn at its volume has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<K> {
    /// The file that it reads or writes.
    pub file: K,
    /// The client, among which the shares are fair.
    pub client: ClientKey,
    /// The client's connection.
    pub connection: u64,
    /// The charge to the file.
    pub cost: Cost,
    /// The request's place among those of its connection.
    pub serial: u64,
    /// The file's note on the request, if it was requeued.
    pub requeued: Option<Requeued<K>>,
}

/// The file's note on a request that it let back into the queue of its volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requeued<K> {
    /// The file's name; `None` for files without room of their own.
    file: Option<K>,
    /// Whether the file is reserved for the request, which then has the next turn.
    pub reserved: bool,
}

/// The charge of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCharge<K> {
    /// The file's name; `None` for files without room of their own.
    file: Option<K>,
    cost: Cost,
    /// Time of the charge.
    at: Mono,
}

impl<K: Copy> FileCharge<K> {
    /// The part of the charge to refund when the request transferred `moved` bytes, or failed.
    #[must_use]
    pub fn unused(&self, moved: u64, failed: bool) -> Option<Self> {
        let Cost { bytes, operations } = self.cost;
        let operations = if failed { operations } else { 0 };
        let cost = Cost { bytes: bytes.saturating_sub(moved), operations };
        (cost != Cost::ZERO).then_some(Self { cost, ..*self })
    }
}

impl<K: Ord + Copy, T> FileLimiter<K, T> {
    /// A limiter without charges.
    #[must_use]
    pub fn new(ceiling: Ceiling) -> Self {
        Self {
            ceiling,
            files: BTreeMap::new(),
            due: BTreeSet::new(),
            room: FILES_FEW,
            forget_at: Mono(0),
            throttled: 0,
        }
    }

    /// The ceiling of each file.
    #[must_use]
    pub fn ceiling(&self) -> Ceiling {
        self.ceiling
    }

    /// Puts another ceiling in force for the next decision; see [`Meters::set`].
    /// [Poll](Self::poll) afterwards.
    pub fn set(&mut self, ceiling: Ceiling, now: Mono) {
        self.ceiling = ceiling;
        for (name, file) in &mut self.files {
            file.meters.set(limits(ceiling), now);
            file.pace = Pace::default();
            file.queue.reweigh(&file.meters);
            file.poll_at(&mut self.due, *name, now);
        }
    }

    /// Charges a request to its file if the file admits it now and has no throttled requests.
    #[must_use]
    pub fn try_take(&mut self, name: K, cost: Cost, now: Mono) -> Option<FileCharge<K>> {
        let name = self.name(name, now);
        let file = entry(&mut self.files, name, self.ceiling);
        let cost = file.meters.try_take(cost, now)?;
        Some(FileCharge { file: name, cost, at: now })
    }

    /// Decides about a request whose turn at its volume has come: `Some` with the file's charge if
    /// it goes. Otherwise it is throttled, until [`poll`](Self::poll) requeues it.
    #[must_use]
    pub fn turn(&mut self, turn: Turn<K>, token: T, now: Mono) -> Option<(T, FileCharge<K>)> {
        let name = match turn.requeued {
            Some(requeued) => requeued.file,
            None => self.name(turn.file, now),
        };
        let file = entry(&mut self.files, name, self.ceiling);
        let (cost, throttled) = (turn.cost, Throttled { token, refused: turn.requeued.is_some() });
        let decided = match turn.requeued {
            Some(requeued) => {
                file.had_turn(&requeued);
                file.meters.take_waiting(cost, now).map_err(|refusal| {
                    file.pace.give_back(self.ceiling, cost);
                    (refusal.until, Standing::Unserved)
                })
            }
            None if file.is_contended() => Err((now, Standing::New)),
            None => file.meters.take_waiting(cost, now).map_err(|refusal| {
                file.pace = Pace::after(refusal);
                (refusal.until, Standing::New)
            }),
        };
        let gone = match decided {
            Ok(cost) => Some((throttled.token, cost)),
            Err((until, standing)) => {
                let Turn { client, connection, serial, .. } = turn;
                let entry = Entry { client, connection, cost, token: throttled };
                let order = Order { serial, standing };
                let first = file.queue.push_in_order(&file.meters, entry, order);
                self.throttled += 1;
                if first || file.due.is_none() {
                    file.poll_at(&mut self.due, name, until);
                }
                let gone = file.pass(turn.serial, cost, self.ceiling, now);
                self.throttled -= usize::from(gone.is_some());
                gone
            }
        };
        if file.queue.is_empty() {
            due(&mut self.due, name, file, None);
        } else if turn.requeued.is_some_and(|turn| turn.reserved || file.requeued == 0) {
            file.poll_at(&mut self.due, name, now);
        }
        gone.map(|(token, cost)| (token, FileCharge { file: name, cost, at: now }))
    }

    /// Refunds a charge. True if the file has throttled requests, which may go earlier now:
    /// [poll](Self::poll).
    pub fn refund(&mut self, charge: FileCharge<K>, now: Mono) -> bool {
        let Some(file) = self.files.get_mut(&charge.file) else { return false };
        file.meters.refund(charge.cost, charge.at, now);
        file.pace.give_back(self.ceiling, charge.cost);
        file.poll_at(&mut self.due, charge.file, now)
    }

    /// Hands the requests that are requeued at `now` to `release`. They wait for their
    /// [turn](Self::turn) at the volume as [`Standing::Kept`] or, if the file is reserved for them,
    /// as [`Standing::First`]. [`withdraw`](Self::withdraw) a request that is to have no turn.
    pub fn poll(&mut self, now: Mono, release: &mut impl FnMut(T, Requeued<K>)) {
        while let Some(&(_, name)) = self.due.first().filter(|(at, _)| *at <= now) {
            let Some(file) = self.files.get_mut(&name) else { return };
            let again = loop {
                match file.requeue(self.ceiling, now) {
                    Ok(Throttled { token, refused }) => {
                        self.throttled -= 1;
                        release(token, Requeued { file: name, reserved: refused });
                    }
                    Err(again) => break again,
                }
            };
            // A file is never polled twice at one time.
            let soonest = pause(&file.meters, now).max(Mono(now.0.saturating_add(1)));
            due(&mut self.due, name, file, again.map(|at| at.max(soonest)));
        }
    }

    /// Undoes the turn of a request that [does not go](crate::queue::Departure::Stalled): refunds
    /// its file's charge, and undoes its client's charge in the order of the file.
    pub fn give_back(&mut self, turn: Turn<K>, charge: FileCharge<K>, now: Mono) {
        if let Some(file) = self.files.get_mut(&charge.file) {
            file.queue.give_back(&file.meters, turn.client, turn.connection, turn.cost);
        }
        self.refund(charge, now);
    }

    /// Reports that a requeued request has no turn, because it is cancelled or its connection is
    /// stalled. It counts as never requeued: its file goes on with others and is no longer reserved
    /// for it.
    pub fn withdraw(&mut self, turn: Turn<K>, now: Mono) {
        let Some(requeued) = turn.requeued else { return };
        let Some(file) = self.files.get_mut(&requeued.file) else { return };
        file.had_turn(&requeued);
        file.pace.give_back(self.ceiling, turn.cost);
        file.queue.give_back(&file.meters, turn.client, turn.connection, turn.cost);
        file.poll_at(&mut self.due, requeued.file, now);
    }

    /// The number of requeued requests of each file, and the number for which it is reserved;
    /// without files that have none.
    #[cfg(test)]
    pub(crate) fn requeued(&self) -> impl Iterator<Item = (Option<K>, (usize, usize))> {
        let counts = self.files.iter().map(|(name, file)| (*name, (file.requeued, file.reserved)));
        counts.filter(|(_, counts)| *counts != (0, 0))
    }

    /// The time of the next poll: `None` if no request is throttled.
    #[must_use]
    pub fn next(&self) -> Option<Mono> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Takes out the throttled requests of `connection`, and hands them to `cancelled`. None of
    /// them was charged.
    pub fn cancel_connection(&mut self, connection: u64, cancelled: &mut impl FnMut(T)) {
        let count = &mut self.throttled;
        let mut cancelled = |throttled: Throttled<T>| {
            *count -= 1;
            cancelled(throttled.token);
        };
        for (name, file) in self.files.iter_mut().filter(|(_, file)| !file.queue.is_empty()) {
            file.queue.cancel_connection(&file.meters, connection, &mut cancelled);
            if file.queue.is_empty() {
                due(&mut self.due, *name, file, None);
            }
        }
        debug_assert_eq!(self.throttled, self.queued(), "the count matches the queues");
    }

    /// Takes out the throttled request with that serial of a client's connection, if it waits for
    /// the file `name`. It was not charged.
    pub(crate) fn cancel(
        &mut self,
        name: K,
        client: ClientKey,
        connection: u64,
        serial: u64,
        now: Mono,
    ) -> Option<T> {
        // Its file may be one of those without room of their own.
        for name in [Some(name), None] {
            let Some(file) = self.files.get_mut(&name) else { continue };
            let cancelled = file.queue.cancel(&file.meters, client, connection, serial);
            let Some(Throttled { token, .. }) = cancelled else { continue };
            self.throttled -= 1;
            if file.queue.is_empty() {
                due(&mut self.due, name, file, None);
            } else {
                file.poll_at(&mut self.due, name, now);
            }
            return Some(token);
        }
        None
    }

    /// All throttled requests, because files have no ceiling any more.
    pub fn into_throttled(self) -> impl Iterator<Item = T> {
        let files = self.files.into_values();
        files.flat_map(|file| file.queue.into_waiters()).map(|throttled| throttled.token)
    }

    /// The number of requests in the queues of all files.
    fn queued(&self) -> usize {
        self.files.values().map(|file| file.queue.len()).sum()
    }

    /// The number of throttled requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.throttled
    }

    /// Whether no request is throttled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.throttled == 0
    }

    /// The number of files that are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.files.len()
    }

    /// Forgets the files without unpaid charges.
    pub fn forget(&mut self, now: Mono) {
        self.files.retain(|_, file| file.is_contended() || !file.meters.is_settled(now));
        self.room = self.files.len().saturating_mul(2).clamp(FILES_FEW, FILES_MAX);
        self.forget_at = Mono(now.0.saturating_add(CATCH_UP_NANOS));
    }

    /// The name by which a file is remembered.
    fn name(&mut self, name: K, now: Mono) -> Option<K> {
        if self.files.contains_key(&Some(name)) {
            return Some(name);
        }
        if self.files.len() >= self.room && (self.room < FILES_MAX || now >= self.forget_at) {
            self.forget(now);
        }
        (self.files.len() < FILES_MAX).then_some(name)
    }
}

/// The file of that name, which is created if it is new.
fn entry<K: Ord, T>(
    files: &mut BTreeMap<Option<K>, File<T>>,
    name: Option<K>,
    ceiling: Ceiling,
) -> &mut File<T> {
    files.entry(name).or_insert_with(|| File {
        meters: Meters::new(limits(ceiling)),
        queue: Queue::new(),
        due: None,
        requeued: 0,
        reserved: 0,
        pace: Pace::default(),
    })
}

impl<T> File<T> {
    /// Whether other requests for the file are throttled or requeued.
    fn is_contended(&self) -> bool {
        self.requeued > 0 || !self.queue.is_empty()
    }

    /// Takes the first request out of the queue if it is to be requeued now; otherwise returns the
    /// time of the next poll, unless the turn of a requeued request causes that.
    fn requeue(&mut self, ceiling: Ceiling, now: Mono) -> Result<Throttled<T>, Option<Mono>> {
        if self.queue.is_empty() {
            return Err(None);
        }
        // A free request goes when any would.
        let open = self.meters.take_waiting(Cost::ZERO, now);
        open.map_err(|refusal| Some(refusal.until))?;
        if self.pace.until() > now {
            return Err(Some(self.pace.until()));
        }
        let Some((first, _, throttled)) = self.queue.peek(&self.meters, now) else {
            return Err(None);
        };
        if self.reserved > 0 && !throttled.refused {
            return Err(None);
        }
        let throttled = self.take(first, ceiling, now).ok_or(None)?;
        self.requeued += 1;
        self.reserved += usize::from(throttled.refused);
        debug_assert!(self.reserved <= self.requeued, "a reserved request is requeued");
        Ok(throttled)
    }

    /// Admits the request with that serial, whose turn at the volume has come, if it is the first
    /// of the queue and the file is not reserved for another one. Returns its charge.
    fn pass(&mut self, serial: u64, cost: Cost, ceiling: Ceiling, now: Mono) -> Option<(T, Cost)> {
        let (first, its, _) = self.queue.peek(&self.meters, now)?;
        if self.reserved > 0 || its != serial {
            return None;
        }
        let charged = self.meters.take_waiting(cost, now).ok()?;
        self.take(first, ceiling, now).map(|throttled| (throttled.token, charged))
    }

    /// Takes the [first](Queue::peek) request out of the queue, and charges the pace for it.
    fn take(&mut self, first: usize, ceiling: Ceiling, now: Mono) -> Option<Throttled<T>> {
        let catch_up = self.meters.catch_up(now);
        let (throttled, cost) = self.queue.take(first, &self.meters)?;
        self.pace.charge(ceiling, cost, catch_up, now);
        Some(throttled)
    }

    /// Counts out a requeued request that had its turn at the volume, or lost it.
    fn had_turn<K>(&mut self, requeued: &Requeued<K>) {
        debug_assert!(self.requeued > 0, "a requeued request was counted");
        self.requeued = self.requeued.saturating_sub(1);
        self.reserved = self.reserved.saturating_sub(usize::from(requeued.reserved));
    }

    /// Sets `at` as the time of the file's next poll, if it has throttled requests; returns whether
    /// it has.
    fn poll_at<K: Ord + Copy>(
        &mut self,
        all: &mut BTreeSet<(Mono, Option<K>)>,
        name: Option<K>,
        at: Mono,
    ) -> bool {
        let asks = !self.queue.is_empty();
        if asks {
            due(all, name, self, Some(at));
        }
        asks
    }
}

/// Changes the time of a file's next poll.
fn due<K: Ord + Copy, T>(
    all: &mut BTreeSet<(Mono, Option<K>)>,
    name: Option<K>,
    file: &mut File<T>,
    at: Option<Mono>,
) {
    if let Some(at) = core::mem::replace(&mut file.due, at) {
        let was_due = all.remove(&(at, name));
        debug_assert!(was_due, "a file is due at the time in its record");
    }
    if let Some(at) = at {
        all.insert((at, name));
    }
}

/// The limits of each file.
fn limits(ceiling: Ceiling) -> Limits {
    Limits::of(BytesPerSecond(u64::MAX)).under(ceiling)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::rate::Iops;

    const MILLI: u64 = 1_000_000;

    fn at(milli: u64) -> Mono {
        Mono(1_000_000_000 + milli * MILLI)
    }

    /// 100 operations a second for each file.
    fn files() -> FileLimiter<u64, char> {
        FileLimiter::new(Ceiling { rate: None, iops: Some(Iops(100)) })
    }

    /// A newcomer, the token's number among the requests of its connection.
    fn newcomer(name: u64, client: u128, token: char) -> Turn<u64> {
        let (serial, client) = (u64::from(token), ClientKey(client));
        let cost = Cost::of(1);
        Turn { file: name, client, connection: 1, cost, serial, requeued: None }
    }

    /// Parks a newcomer.
    fn hold(files: &mut FileLimiter<u64, char>, name: u64, token: char, now: Mono) {
        assert_eq!(files.turn(newcomer(name, 1, token), token, now), None);
    }

    fn requeued(files: &mut FileLimiter<u64, char>, now: Mono) -> Vec<(char, Requeued<u64>)> {
        let mut requeued = Vec::new();
        files.poll(now, &mut |token, by| requeued.push((token, by)));
        requeued
    }

    /// Whether a requeued request goes at its turn.
    fn goes(
        files: &mut FileLimiter<u64, char>,
        (token, by): (char, Requeued<u64>),
        now: Mono,
    ) -> bool {
        let turn = Turn { requeued: Some(by), ..newcomer(u64::MAX, 1, token) };
        files.turn(turn, token, now).is_some()
    }

    /// The requests that are requeued now and go at once.
    fn polled(files: &mut FileLimiter<u64, char>, now: Mono) -> Vec<char> {
        let requeued = requeued(files, now);
        requeued.iter().for_each(|one| assert!(goes(files, *one, now), "{one:?}"));
        requeued.into_iter().map(|(token, _)| token).collect()
    }

    /// Requests that go at once.
    fn at_once(files: &mut FileLimiter<u64, char>, name: u64, now: Mono) -> usize {
        (0..100).take_while(|_| files.try_take(name, Cost::of(1), now).is_some()).count()
    }

    #[test]
    fn each_file_has_the_ceiling_to_itself() {
        let mut files = files();
        assert_eq!([1, 2, 1].map(|name| at_once(&mut files, name, at(0))), [6, 6, 0]);
        assert_eq!(at_once(&mut files, 1, at(9)), 0, "60 ms were taken, 50 were there");
        assert_eq!(at_once(&mut files, 1, at(20)), 2);
    }

    #[test]
    fn who_waits_for_a_file_goes_when_that_lets_it_and_nobody_overtakes() {
        let mut files = files();
        at_once(&mut files, 1, at(0));
        hold(&mut files, 1, 'a', at(0));
        hold(&mut files, 1, 'b', at(0));
        assert_eq!((files.len(), files.next()), (2, Some(at(10))));
        assert_eq!(polled(&mut files, at(0)), []);
        assert_eq!(at_once(&mut files, 1, at(10)), 0, "somebody waits");
        assert_eq!(polled(&mut files, at(10)), ['a']);
        assert_eq!(polled(&mut files, at(20)), ['b']);
        assert!(files.is_empty() && files.next().is_none());
    }

    #[test]
    fn what_is_given_back_lets_the_next_go_sooner() {
        let mut files = files();
        let charge = files.try_take(1, Cost::of(5), at(0)).unwrap();
        assert_eq!(charge.unused(5, false), None, "all was moved");
        let failed = charge.unused(0, true).unwrap();
        assert!(!files.refund(failed, at(0)), "nobody waits");
        at_once(&mut files, 1, at(0));
        hold(&mut files, 1, 'a', at(0));
        assert_eq!(polled(&mut files, at(0)), []);
        assert!(files.refund(failed, at(1)));
        assert_eq!(polled(&mut files, at(1)), ['a']);
    }

    #[test]
    fn a_change_is_in_force_for_the_next_decision_and_none_frees_all() {
        let mut files = files();
        at_once(&mut files, 1, at(0));
        "abc".chars().for_each(|token| hold(&mut files, 1, token, at(0)));
        polled(&mut files, at(0));
        files.set(Ceiling { rate: None, iops: Some(Iops(10_000)) }, at(0));
        assert_eq!(polled(&mut files, at(1)), ['a', 'b', 'c']);
        files.set(Ceiling { rate: None, iops: Some(Iops(1)) }, at(1));
        at_once(&mut files, 1, at(1));
        "defgh".chars().for_each(|token| hold(&mut files, 1, token, at(1)));
        assert_eq!(Vec::from_iter(files.into_throttled()), ['d', 'e', 'f', 'g', 'h']);
    }

    #[test]
    fn requests_are_requeued_at_the_rate_of_the_ceiling_and_charged_when_they_go() {
        let mut files = files();
        at_once(&mut files, 1, at(0));
        "abcdefg".chars().for_each(|token| hold(&mut files, 1, token, at(0)));
        let mut back = requeued(&mut files, at(30));
        assert_eq!(Vec::from_iter(back.iter().map(|(token, _)| *token)), ['a', 'b', 'c']);
        assert_eq!((files.next(), files.len()), (Some(at(40)), 4));
        back.extend(requeued(&mut files, at(40)));
        assert_eq!((back.len(), files.next()), (4, Some(at(50))));
        // The volume held the requests back for a second: they have 50 ms and one request, like any
        // other.
        back.extend(requeued(&mut files, at(1000)));
        assert_eq!(back.len(), 7);
        let went = back.iter().take_while(|one| goes(&mut files, **one, at(1000))).count();
        assert_eq!((went, files.len()), (6, 1));
        assert_eq!(requeued(&mut files, at(1000)), []);
        assert_eq!(files.next(), Some(at(1010)));
        assert_eq!(polled(&mut files, at(1010)), ['g']);
    }

    #[test]
    fn a_newcomer_goes_before_waiting_requests_only_where_its_file_puts_it_first() {
        let mut files = files();
        at_once(&mut files, 1, at(0));
        hold(&mut files, 1, 'a', at(0));
        hold(&mut files, 1, 'b', at(0));
        // The file would allow one more request.
        hold(&mut files, 1, 'c', at(10));
        let back = requeued(&mut files, at(10));
        assert_eq!(back.len(), 1);
        hold(&mut files, 1, 'd', at(10));
        // The client has used none of the file's time yet.
        let other = files.turn(newcomer(1, 2, 'e'), 'e', at(10));
        assert_eq!(other.map(|(token, _)| token), Some('e'));
        assert!(!goes(&mut files, back[0], at(10)), "the other was first");
        assert_eq!(polled(&mut files, at(20)), ['a']);
        assert_eq!(polled(&mut files, at(30)), ['b']);
    }

    #[test]
    fn a_file_is_reserved_for_a_request_that_it_refused_after_it_was_requeued() {
        let mut files = files();
        at_once(&mut files, 1, at(0));
        hold(&mut files, 1, 'a', at(0));
        let large = Cost { bytes: 1, operations: 5 };
        let second = Turn { cost: large, ..newcomer(1, 2, 'b') };
        assert_eq!(files.turn(second, 'b', at(0)), None);
        let first = requeued(&mut files, at(10));
        assert!(!first[0].1.reserved);
        let by = requeued(&mut files, at(20))[0].1;
        assert!(files.turn(Turn { requeued: Some(by), ..second }, 'b', at(20)).is_some());
        assert!(!goes(&mut files, first[0], at(20)), "50 ms are charged");
        hold(&mut files, 1, 'c', at(30));
        let again = requeued(&mut files, at(60));
        assert_eq!(again.len(), 1, "none but the one that was refused");
        assert!(again[0].0 == 'a' && again[0].1.reserved);
        assert_eq!(files.turn(newcomer(1, 3, 'd'), 'd', at(80)), None, "a newcomer");
        assert_eq!((requeued(&mut files, at(90)), files.next()), (Vec::new(), None));
        // A cancelled request and one that goes both leave the turn to the others.
        files.withdraw(Turn { requeued: Some(again[0].1), ..newcomer(1, 1, 'a') }, at(90));
        assert_eq!(polled(&mut files, at(90)).len(), 2);
    }

    #[test]
    fn what_waits_on_a_connection_that_is_gone_is_forgotten() {
        let mut files = files();
        at_once(&mut files, 1, at(0));
        hold(&mut files, 1, 'a', at(0));
        assert_eq!(files.turn(Turn { connection: 2, ..newcomer(1, 1, 'b') }, 'b', at(0)), None);
        at_once(&mut files, 2, at(0));
        hold(&mut files, 2, 'c', at(0));
        let mut gone = Vec::new();
        files.cancel_connection(1, &mut |token| gone.push(token));
        assert_eq!((gone, files.len()), (Vec::from(['a', 'c']), 1));
        assert_eq!(polled(&mut files, at(10)), ['b']);
    }

    #[test]
    fn files_that_owe_nothing_are_forgotten() {
        let mut files = files();
        for name in 0..1000 {
            assert!(files.try_take(name, Cost::of(1), at(name)).is_some());
        }
        assert!(files.remembered() <= 3 * FILES_FEW, "{}", files.remembered());
        at_once(&mut files, 7, at(1000));
        hold(&mut files, 7, 'a', at(1000));
        files.forget(at(1100));
        assert_eq!(files.remembered(), 1, "somebody waits");
        polled(&mut files, at(1100));
        files.forget(at(1160));
        assert_eq!(files.remembered(), 0);
    }

    #[test]
    fn files_beyond_the_most_share_one_ceiling() {
        let mut files = files();
        let all = FILES_MAX as u64;
        for name in 0..all {
            at_once(&mut files, name, at(0));
        }
        assert_eq!(files.remembered(), FILES_MAX);
        let beyond = [all, all + 1].map(|name| at_once(&mut files, name, at(0)));
        assert_eq!(beyond, [6, 0]);
        hold(&mut files, all + 2, 'a', at(0));
        assert_eq!(polled(&mut files, at(10)), ['a']);
        assert_eq!(files.remembered(), FILES_MAX + 1);
        // There is room again once some owe nothing.
        assert_eq!(at_once(&mut files, all, at(200)), 6);
        assert!(files.remembered() <= 3, "{}", files.remembered());
    }
}
