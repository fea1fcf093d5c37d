//! The gates of volumes: a gate admits requests under its volume's contract, and parks those that
//! must wait.
//!
//! The arithmetic is in `weir-qos`: [`Meters`] on the fast path, [`WaitQueue`] for waiting
//! requests. This crate adds a lock, memory bounds, and the list of connections that stopped
//! reading. It never sleeps: workers poll it when their timers fire. Volumes that share a budget
//! are polled together, by the [`PoolGate`] of their pool.
//!
//! Beside them are the counts of a volume's use by connections ([`Uses`]), and the open connections
//! ([`Connections`]).
//!
//! Not here: requests, of which a gate knows what [`Queued`] tells, and workers.
#![forbid(unsafe_code)]

mod conn_id;
mod connections;
pub mod limits;
mod memory;
mod poller;
mod queued;
mod room;
mod shared;
mod sync;
#[cfg(test)]
mod tests;
mod uses;

pub use conn_id::ConnId;
pub use connections::{Connections, Peer};
pub use memory::{ParkedTotal, Stopped};
pub use queued::Queued;
pub use room::Room;
pub use shared::PoolGate;
pub use uses::{FileMark, Use, Uses};

use crate::limits::{
    PARKED_CLIENT_MIN, PARKED_OPERATION_BYTES, PARKED_OVERHEAD, PARKED_SECONDS, PARKED_VOLUME_MAX,
    PARKED_VOLUME_MIN,
};
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, lock};
use arc_swap::ArcSwapOption;
use memory::Pinned;
use poller::Poller;
use shared::Member;
use weir_core::{Mono, ObjectKey, OpClass, VolumeId};
use weir_qos::verdict::{Entitled, Reading};
use weir_qos::{
    Ceiling, ClientKey, Cost, Demand, Iops, Limits, Meters, Observed, Share, Step, WaitQueue,
};

/// The charge of a request, by its volume and its file.
pub type Charged = weir_qos::Charged<ObjectKey>;

/// The identity of a waiting request.
pub type RequestId = weir_qos::RequestId<ObjectKey>;

/// The charge of a file.
pub type FileCharge = weir_qos::FileCharge<ObjectKey>;

/// A waiting request, and the memory that it pins.
pub struct Ticket<T> {
    /// The request, detached from its receive buffer.
    pub request: T,
    /// Time at which the request began to wait.
    pub since: Mono,
    /// Bytes of memory it is accounted for.
    pub pinned: u64,
    /// Bytes that the started request will hold; the gate reserves room for them before it releases
    /// the request.
    pub holds: usize,
    /// The room of its connection for replies; `None` for a part of a request that has its room.
    room: Option<Arc<Room>>,
}

/// A request that the gate released, and its charge.
pub struct Released<T> {
    /// The request.
    pub ticket: Ticket<T>,
    /// Its charge.
    pub charged: Charged,
    /// Time of the charge.
    pub charged_at: Mono,
}

/// The result of parking a request.
pub struct Parked {
    /// The request is the first in the queue, or goes before all others: poll the gate once all
    /// requests that arrived together are parked.
    pub must_poll: bool,
    /// Bytes of memory that the request is accounted for.
    pub pinned: u64,
    /// The request, by which it can be [cancelled](Gate::cancel_one).
    pub id: RequestId,
    /// A bound on parked memory is reached: the connection must stop reading.
    pub full: bool,
}

struct Waiting<T> {
    queue: WaitQueue<ObjectKey, Ticket<T>>,
    pinned: Pinned,
    stopped: Vec<Stopped>,
    observed: Observed,
}

/// The requests that are released, and the memory that they free.
struct Releases<'a, T> {
    observed: &'a mut Observed,
    pinned: &'a mut Pinned,
    pinned_max: u64,
    freed: u64,
    released: &'a mut Vec<Released<T>>,
    now: Mono,
}

impl<T: Queued> Releases<'_, T> {
    /// Releases a request with its charge, if its connection has room for the reply; otherwise
    /// returns it.
    fn release(&mut self, ticket: Ticket<T>, charged: Charged) -> Option<Ticket<T>> {
        if ticket.room.as_ref().is_some_and(|room| !room.take(ticket.holds)) {
            return Some(ticket);
        }
        self.observed.released(ticket.request.cost());
        self.freed += ticket.pinned;
        self.pinned.remove(ticket.request.client(), ticket.pinned, self.pinned_max);
        self.released.push(Released { ticket, charged, charged_at: self.now });
        None
    }
}

/// The gate of one volume.
pub struct Gate<T> {
    meters: Meters,
    waiting: Mutex<Waiting<T>>,
    parked: AtomicU64,
    parked_max: AtomicU64,
    /// Unused while the volume shares the budget of a pool, which has a poller of its own.
    poller: Poller,
    /// Whether its files have a ceiling; kept here to be read without the lock.
    limits_files: AtomicBool,
    total: Arc<ParkedTotal>,
    id: VolumeId,
    /// The pool whose budget the volume shares, if any. Changed only under the lock of the gate;
    /// the lock of the pool is taken before that.
    pool: ArcSwapOption<PoolGate<T>>,
    /// The time at which the volume joined the pool.
    joined: AtomicU64,
}

impl<T: Queued> Gate<T> {
    /// The gate of the volume `id` with these limits.
    pub fn new(id: VolumeId, limits: Limits, total: Arc<ParkedTotal>) -> Self {
        Self {
            id,
            pool: ArcSwapOption::empty(),
            joined: AtomicU64::new(0),
            meters: Meters::new(limits),
            waiting: Mutex::new(Waiting {
                queue: WaitQueue::new(),
                pinned: Pinned::default(),
                stopped: Vec::new(),
                observed: Observed::new(limits),
            }),
            parked: AtomicU64::new(0),
            parked_max: AtomicU64::new(parked_max(limits)),
            poller: Poller::default(),
            limits_files: AtomicBool::new(false),
            total,
        }
    }

    /// The volume.
    #[must_use]
    pub fn id(&self) -> VolumeId {
        self.id
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        lock(&self.waiting).observed.limits()
    }

    /// The limits of the volume, and their guaranteed part.
    pub fn entitled(&self) -> Entitled {
        lock(&self.waiting).observed.entitled()
    }

    /// The remaining credits for bursts, if there are bursts.
    pub fn credits(&self, now: Mono) -> Option<u64> {
        self.meters.credits(now)
    }

    /// Restores the credits that an earlier server saved.
    pub fn set_credits(&self, credits: u64, now: Mono) {
        self.meters.set_credits(credits, now);
    }

    /// Bytes of memory that waiting requests pin.
    pub fn parked(&self) -> u64 {
        self.parked.load(Ordering::Relaxed)
    }

    /// The number of waiting requests.
    pub fn waiting(&self) -> usize {
        lock(&self.waiting).queue.len()
    }

    /// Adds the gate's counters at the time of `reading` to it.
    pub fn read(&self, reading: &mut Reading) {
        let mut waiting = lock(&self.waiting);
        let now = reading.at;
        let Waiting { queue, observed, .. } = &mut *waiting;
        observed.until(now, queue);
        queue.forget(now);
        observed.add_to(reading);
        reading.owed_bytes = self.meters.owed_bytes(now);
    }

    /// The worker that owns the timer of the gate, and is notified of changes of the contract.
    pub fn timer_worker(&self) -> usize {
        self.with_poller(Poller::owner)
    }

    /// Whether a timer for `at` has to be set: not if an earlier one is.
    ///
    /// Under the lock: noted at a pool that the volume leaves meanwhile, or at the volume while it
    /// joins one, the timer would never fire there, and no later one would be set.
    pub fn arm(&self, at: Mono) -> bool {
        self.locked(|member, _| member.poller().unwrap_or(&self.poller).arm(at))
    }

    /// Notes that the timer for `at` fired.
    pub fn fired(&self, at: Mono) {
        self.with_poller(|poller| poller.fired(at));
    }

    /// The poller of the pool, or that of a lone volume.
    fn with_poller<R>(&self, work: impl FnOnce(&Poller) -> R) -> R {
        match &*self.pool.load() {
            Some(pool) => work(&pool.poller),
            None => work(&self.poller),
        }
    }

    /// Puts other limits in force for the next decision.
    pub fn set_limits(&self, limits: Limits, now: Mono) {
        // Under the lock, so that no poll applies half of the change.
        self.locked(|member, waiting| {
            waiting.observed.set_limits(limits, now);
            self.meters.set(limits, now);
            waiting.queue.reweigh(&self.meters);
            self.parked_max.store(parked_max(limits), Ordering::Relaxed);
            member.renew(&waiting.queue);
        });
    }

    /// The ceiling of each file, if there is one.
    pub fn file_ceiling(&self) -> Option<Ceiling> {
        lock(&self.waiting).queue.ceiling()
    }

    /// Puts another ceiling of files in force for the next decision, or none. Poll it afterwards.
    pub fn set_file_ceiling(&self, ceiling: Option<Ceiling>, now: Mono) {
        self.locked(|member, waiting| {
            waiting.queue.set_ceiling(ceiling, &self.meters, now);
            self.limits_files.store(ceiling.is_some(), Ordering::Relaxed);
            member.renew(&waiting.queue);
        });
    }

    /// Makes the volume share the budget of a pool from now on, or of none. Poll the pool
    /// afterwards, and the volume itself if the result is true, which means that it left a pool.
    /// Called by one thread at a time.
    pub fn set_share(
        self: &Arc<Self>,
        with: Option<(&Arc<PoolGate<T>>, Share)>,
        now: Mono,
    ) -> bool {
        let floor = with.map(|(_, share)| share.floor);
        lock(&self.waiting).observed.set_floor(floor, now);
        let old = self.pool.load_full();
        if let (Some(old), Some((new, share))) = (&old, with)
            && Arc::ptr_eq(old, new)
        {
            old.change(self.id, share);
            return false;
        }
        let left = old.is_some();
        if let Some(old) = old {
            let mut sharing = lock(&old.sharing);
            sharing.remove(&old.budget, self.id);
            let _waiting = lock(&self.waiting);
            self.pool.store(None);
            self.meters.set_shared(false);
            // A timer that was set for the pool may find the volume outside of it.
            old.poller.disarm();
        }
        if let Some((new, share)) = with {
            let mut sharing = lock(&new.sharing);
            sharing.add(self.id, share, self);
            let waiting = lock(&self.waiting);
            self.joined.store(now.0, Ordering::Relaxed);
            self.pool.store(Some(Arc::clone(new)));
            self.meters.set_shared(true);
            self.poller.disarm();
            if !waiting.queue.is_empty() {
                sharing.shares.wake(&new.budget, self.id.0);
            }
        }
        left
    }

    /// Does `work` on the waiting requests, and on the volume's membership in a pool.
    fn locked<R>(&self, work: impl FnOnce(Member<'_, T>, &mut Waiting<T>) -> R) -> R {
        loop {
            let pool = self.pool.load_full();
            let mut sharing = pool.as_ref().map(|pool| lock(&pool.sharing));
            let mut waiting = lock(&self.waiting);
            let now = self.pool.load();
            if now.as_ref().map(Arc::as_ptr) == pool.as_ref().map(Arc::as_ptr) {
                let shares = sharing.as_mut().map(|sharing| &mut sharing.shares);
                return work(Member::new(self.id, pool.as_deref().zip(shares)), &mut waiting);
            }
        }
    }

    /// The most that an operation of `class` which moves up to `bytes` can use of the limits, in
    /// whatever protocol. Operations other than READ, WRITE and COMMIT are charged where every
    /// operation counts.
    #[inline]
    pub fn cost(&self, class: OpClass, bytes: u64) -> Cost {
        match class {
            OpClass::Read | OpClass::Write => Cost::of(bytes),
            OpClass::Metadata if self.meters.counts_metadata() => Cost::of(0),
            OpClass::Null | OpClass::Metadata | OpClass::Commit => Cost::ZERO,
        }
    }

    /// Admits a request of `cost` that reads or writes `file`, if it names one, and returns its
    /// charge; `None` if the limits are reached or other requests wait.
    pub fn try_pass(&self, cost: Cost, file: Option<&ObjectKey>, now: Mono) -> Option<Charged> {
        let limited = self.limits_files.load(Ordering::Relaxed);
        let Some(file) = file.filter(|_| limited) else {
            return self.pass(cost, now).map(|volume| Charged { volume, file: None });
        };
        lock(&self.waiting).queue.try_pass(*file, cost, now, || self.pass(cost, now))
    }

    /// Charges the limits of the volume. A request without bytes is free if operations are not
    /// counted.
    fn pass(&self, cost: Cost, now: Mono) -> Option<Cost> {
        if cost.bytes == 0 && !self.meters.counts_operations() {
            return Some(Cost::ZERO);
        }
        if !self.meters.is_shared() {
            return self.meters.try_take(cost, now);
        }
        match &*self.pool.load() {
            Some(pool) => self.meters.try_take_with(&pool.budget, cost, now),
            None => self.meters.try_take(cost, now),
        }
    }

    /// Refunds the unused part of a charge that was made at `charged_at`. True if requests wait,
    /// which may go earlier now: poll the gate.
    pub fn refund(&self, unused: Charged, charged_at: Mono, now: Mono) -> bool {
        let of_file = unused.file.is_some_and(|charge| self.refund_file(charge, now));
        self.refund_volume(unused.volume, charged_at, now) || of_file
    }

    fn refund_file(&self, charge: FileCharge, now: Mono) -> bool {
        self.locked(|mut member, waiting| {
            let waits = waiting.queue.refund(charge, now);
            if waits {
                member.again();
            }
            waits
        })
    }

    fn refund_volume(&self, cost: Cost, charged_at: Mono, now: Mono) -> bool {
        if cost == Cost::ZERO {
            return false;
        }
        self.meters.refund(cost, charged_at, now);
        let waits = self.meters.is_waiting();
        if !self.meters.is_shared() {
            return waits;
        }
        let pool = self.pool.load();
        let pool_waits = pool.as_ref().is_some_and(|pool| {
            // A charge made before the volume joined the pool is not the pool's.
            if charged_at.0 > self.joined.load(Ordering::Relaxed) {
                pool.budget.refund(cost.uncounted(), charged_at, now);
            }
            if waits {
                pool.again(self.id);
            }
            pool.budget.is_waiting()
        });
        pool_waits || waits
    }

    /// Whether a refused request, which is not parked, was charged for a moment, so that requests
    /// that were refused meanwhile may go earlier than they were told: poll the gate.
    pub fn took_back(&self) -> bool {
        let took_back = self.meters.took_back();
        if let Some(pool) = self.pool.load().as_ref().filter(|_| took_back) {
            pool.again(self.id);
        }
        took_back
    }

    /// Parks `request` until its turn, and until there is `room` for its reply, unless it has that.
    ///
    /// # Errors
    /// Gives the request back if the requests of all volumes hold all the memory they may.
    pub fn park(&self, mut request: T, room: Option<Arc<Room>>, now: Mono) -> Result<Parked, T> {
        request.detach();
        let pinned = (request.pinned() + PARKED_OVERHEAD) as u64;
        if !self.total.try_add(pinned) {
            return Err(request);
        }
        self.parked.fetch_add(pinned, Ordering::Relaxed);
        let (client, from, cost) = (request.client(), request.connection(), request.cost());
        let file = request.file().copied();
        // A part goes on although requests of its connection wait for room: it has its room.
        let connection = if room.is_some() { from.token } else { parts_of(from.token) };
        let demand = Demand { client, connection, cost, file, pinned };
        let holds = request.held_bytes();
        let ticket = Ticket { request, since: now, pinned, holds, room };
        Ok(self.locked(|mut member, waiting| {
            waiting.observed.until(now, &waiting.queue);
            waiting.observed.queued(cost);
            waiting.pinned.add(client, pinned);
            let mut must_poll = waiting.queue.push(&self.meters, demand, ticket);
            let id = waiting.queue.last_id(&demand);
            if must_poll {
                member.again();
            }
            must_poll |= member.wake();
            if must_poll {
                self.set_owner(&member, from.worker);
            }
            let full = self.is_full_for(client, connection, waiting);
            if full {
                waiting.stopped.push(Stopped { connection: from, client });
            }
            Parked { must_poll, full, pinned, id }
        }))
    }

    fn set_owner(&self, member: &Member<'_, T>, worker: usize) {
        member.poller().unwrap_or(&self.poller).set_owner(worker);
    }

    /// Resumes a connection that has room for replies again. True if its requests were stalled:
    /// poll the gate.
    pub fn resume_connection(&self, connection: ConnId, now: Mono) -> bool {
        self.locked(|mut member, waiting| {
            waiting.observed.until(now, &waiting.queue);
            let resumed = waiting.queue.resume(&self.meters, connection.token);
            if resumed {
                member.again();
                member.wake();
                self.set_owner(&member, connection.worker);
            }
            resumed
        })
    }

    /// Releases all requests that may go now, including those of other volumes with which this one
    /// shares a budget; returns the time of the next poll, if requests still wait.
    pub fn poll(
        &self,
        now: Mono,
        released: &mut Vec<Released<T>>,
        resumed: &mut Vec<Stopped>,
    ) -> Option<Mono> {
        let own = self.locked(|member, waiting| {
            member.is_lone().then(|| {
                let next = self.release(waiting, now, released);
                self.resume(waiting, resumed);
                next
            })
        });
        let pool = self.pool.load_full();
        own.unwrap_or_else(|| pool.and_then(|pool| pool.poll(now, released, resumed)))
    }

    /// Releases the next request, if this volume and the `budget` of its pool admit it.
    fn step(
        &self,
        budget: &Meters,
        now: Mono,
        released: &mut Vec<Released<T>>,
        resumed: &mut Vec<Stopped>,
    ) -> Step {
        let mut waiting = lock(&self.waiting);
        let (queue, mut releases) = self.releases(&mut waiting, now, released);
        let release = &mut |ticket, charged| releases.release(ticket, charged);
        let step = queue.step(&self.meters, budget, now, release);
        self.unaccount(releases.freed);
        self.resume(&mut waiting, resumed);
        step
    }

    /// Splits the waiting requests into their queue and the state that a release changes.
    fn releases<'a>(
        &self,
        waiting: &'a mut Waiting<T>,
        now: Mono,
        released: &'a mut Vec<Released<T>>,
    ) -> (&'a mut WaitQueue<ObjectKey, Ticket<T>>, Releases<'a, T>) {
        let Waiting { queue, observed, pinned, .. } = waiting;
        observed.until(now, queue);
        let pinned_max = self.parked_max.load(Ordering::Relaxed);
        (queue, Releases { observed, pinned, pinned_max, freed: 0, released, now })
    }

    /// Cancels the waiting requests of a connection that is closed.
    pub fn cancel(&self, connection: ConnId, now: Mono, resumed: &mut Vec<Stopped>) {
        self.locked(|mut member, waiting| {
            waiting.observed.until(now, &waiting.queue);
            waiting.stopped.retain(|stopped| stopped.connection != connection);
            let (mut freed, max) = (0, self.parked_max.load(Ordering::Relaxed));
            let pinned = &mut waiting.pinned;
            let tokens = [connection.token, parts_of(connection.token)];
            for token in tokens {
                waiting.queue.cancel(&self.meters, token, now, &mut |ticket: Ticket<T>| {
                    freed += ticket.pinned;
                    pinned.remove(ticket.request.client(), ticket.pinned, max);
                });
            }
            self.unaccount(freed);
            if waiting.queue.is_empty() {
                member.pause();
            }
            self.resume(waiting, resumed);
        });
    }

    /// Takes out one waiting request, because its client has cancelled it, and frees its memory;
    /// `None` if it was released. Poll the gate afterwards: another request may go sooner.
    pub fn cancel_one(
        &self,
        id: RequestId,
        now: Mono,
        resumed: &mut Vec<Stopped>,
    ) -> Option<Ticket<T>> {
        self.locked(|mut member, waiting| {
            waiting.observed.until(now, &waiting.queue);
            let ticket = waiting.queue.cancel_one(&self.meters, id, now)?;
            let max = self.parked_max.load(Ordering::Relaxed);
            waiting.pinned.remove(ticket.request.client(), ticket.pinned, max);
            self.unaccount(ticket.pinned);
            if waiting.queue.is_empty() {
                member.pause();
            } else {
                member.again();
            }
            self.resume(waiting, resumed);
            Some(ticket)
        })
    }

    fn release(
        &self,
        waiting: &mut Waiting<T>,
        now: Mono,
        released: &mut Vec<Released<T>>,
    ) -> Option<Mono> {
        let (queue, mut releases) = self.releases(waiting, now, released);
        let release = &mut |ticket, charged| releases.release(ticket, charged);
        let next = queue.poll(&self.meters, now, release);
        self.unaccount(releases.freed);
        next
    }

    /// Resumes stopped connections once a quarter of the bound is free, of the volume's or of their
    /// client's part, so that they do not flutter. A connection that was stopped because of
    /// throttled requests also resumes once it has none of these.
    fn resume(&self, waiting: &mut Waiting<T>, resumed: &mut Vec<Stopped>) {
        let Waiting { queue, stopped, pinned, .. } = waiting;
        let fell = queue.cleared() | std::mem::take(&mut pinned.fell);
        if stopped.is_empty() {
            return;
        }
        let max = self.parked_max.load(Ordering::Relaxed);
        let throttled = queue.throttled_bytes();
        let total_low = self.total.bytes() <= self.total.full() / 4 * 3;
        let low = self.parked().saturating_sub(throttled) <= max / 4 * 3 && total_low;
        let throttled_low = throttled <= max / 4 * 3;
        if queue.is_empty() || low && throttled_low {
            return resumed.append(stopped);
        }
        if low || fell {
            let most = if total_low { pinned.part(max) } else { PARKED_CLIENT_MIN } / 4 * 3;
            resumed.extend(stopped.extract_if(.., |one| {
                (low || pinned.of(one.client) <= most)
                    && (throttled_low || !queue.is_throttled(one.connection.token))
            }));
        }
    }

    /// Whether a connection of a client must stop reading because of the memory of waiting
    /// requests.
    ///
    /// Requests that wait for the volume drain at its rate, so their bound stops the connections of
    /// clients with an equal part of the memory or more, and never those of a client with less.
    /// Throttled requests drain at the rate of their files, so they have a bound of their own,
    /// which stops only connections with throttled requests.
    fn is_full_for(&self, client: ClientKey, connection: u64, waiting: &Waiting<T>) -> bool {
        let Waiting { queue, pinned, .. } = waiting;
        let max = self.parked_max.load(Ordering::Relaxed);
        let (own, throttled) = (pinned.of(client), queue.throttled_bytes());
        let of_volume = self.parked().saturating_sub(throttled) > max && own >= pinned.part(max);
        let of_all = || {
            self.total.bytes() > self.total.full() && own >= PARKED_CLIENT_MIN.min(pinned.part(max))
        };
        of_volume || of_all() || throttled > max && queue.is_throttled(connection)
    }

    fn unaccount(&self, pinned: u64) {
        if pinned > 0 {
            self.parked.fetch_sub(pinned, Ordering::Relaxed);
            self.total.remove(pinned);
        }
    }
}

/// The connection under which the parts of requests of a connection queue: its own name with a bit
/// that no slot of a connection has.
const fn parts_of(token: u64) -> u64 {
    token | 1 << 31
}

/// The bound on parked memory: 20 s of the tightest limit, within 16 and 64 MiB.
fn parked_max(limits: Limits) -> u64 {
    let operations = |iops: Iops| iops.0.saturating_mul(PARKED_OPERATION_BYTES);
    let rate = limits.iops.map_or(limits.rate.0, |iops| operations(iops).min(limits.rate.0));
    rate.saturating_mul(PARKED_SECONDS).clamp(PARKED_VOLUME_MIN, PARKED_VOLUME_MAX)
}
