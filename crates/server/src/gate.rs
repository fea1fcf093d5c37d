//! The gate of one volume: where requests wait for their contract.
//!
//! The arithmetic is `weir-qos`'s: [`Meters`] on the fast path, [`Line`] for those that wait. This
//! module adds what they must not have: a lock, memory bounds, and the list of connections that
//! stopped reading. It never sleeps; workers ask again when told to. Volumes that share a budget are asked
//! together, by the [`PoolGate`] of their pool.

mod shared;

pub(crate) use shared::PoolGate;

use crate::engine::ServedVolume;
use crate::limits::{
    PARKED_OPERATION_BYTES, PARKED_OVERHEAD, PARKED_SECONDS, PARKED_VOLUME_MAX, PARKED_VOLUME_MIN,
};
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::worker::Request;
use arc_swap::ArcSwapOption;
use weir_core::{Mono, ObjectKey, VolumeId};
use weir_qos::verdict::{Entitled, Reading, uncertain, yields};
use weir_qos::{
    Asks, BytesPerSecond, Ceiling, Cost, Iops, Limits, Line, Meters, Share, Shares, Step,
};

/// What a request was charged, by its volume and its file.
pub(crate) type Charged = weir_qos::Charged<ObjectKey>;

/// What a file was charged.
pub(crate) type FileCharge = weir_qos::FileCharge<ObjectKey>;

/// A request that waits, and what it pins.
pub(crate) struct Ticket {
    /// The request, detached from the receive buffer it came in.
    pub(crate) request: Request,
    /// When it began to wait.
    pub(crate) since: Mono,
    /// Bytes of memory it is accounted for.
    pub(crate) pinned: u64,
}

/// What became of a request that had to wait.
pub(crate) struct Parked {
    /// The request was the first in the queue, or goes before all others: ask the gate once
    /// everything is parked that came with it.
    pub(crate) ask: bool,
    /// A bound on parked memory is reached: the connection must stop reading.
    pub(crate) full: bool,
}

struct Waiting {
    /// The limits in force.
    limits: Limits,
    /// The rate that the volume has for certain, if it shares the rest of its limit.
    floor: Option<BytesPerSecond>,
    line: Line<ObjectKey, Ticket>,
    stopped: Vec<Stopped>,
    seen: Seen,
}

/// What the gate saw since it was made, for whoever judges the contract.
#[derive(Default)]
struct Seen {
    /// Up to when the sums over time hold.
    at: Mono,
    asked_nanos: u64,
    wait_nanos: u64,
    /// READs and WRITEs that began to wait, and those that were let go.
    queued: Cost,
    released: Cost,
    /// What the limits yielded until `since`, when they were put in force.
    due: Cost,
    /// The part of it that others may have instead.
    lent: Cost,
    counted_nanos: u64,
    since: Mono,
}

impl Waiting {
    /// Settles what the limits in force have yielded by `now`, because they change.
    fn settle(&mut self, now: Mono) {
        let (due, lent, counted_nanos) = self.due(now);
        let seen = &mut self.seen;
        (seen.due, seen.lent, seen.counted_nanos, seen.since) = (due, lent, counted_nanos, now);
    }

    /// What the limits have yielded by `now`, what of it is not certain, and for how long they counted
    /// operations.
    fn due(&self, now: Mono) -> (Cost, Cost, u64) {
        let seen = &self.seen;
        let nanos = now.0.saturating_sub(seen.since.0);
        let sum = |before: Cost, limits: Limits| {
            let iops = limits.iops.map_or(0, |iops| iops.0);
            Cost {
                bytes: before.bytes.wrapping_add(yields(limits.rate.0, nanos)),
                operations: before.operations.wrapping_add(yields(iops, nanos)),
            }
        };
        let counted = if self.limits.iops.is_some() { nanos } else { 0 };
        (
            sum(seen.due, self.limits),
            sum(seen.lent, uncertain(self.limits, self.floor)),
            seen.counted_nanos.wrapping_add(counted),
        )
    }
}

impl Seen {
    /// Brings the sums over time up to `now`, when so many as are in `line` waited meanwhile. Who waits for a file
    /// asks nothing of the volume.
    fn until(&mut self, now: Mono, line: &Line<ObjectKey, Ticket>) {
        let nanos = now.0.saturating_sub(self.at.0);
        if line.len_of_volume() > 0 {
            self.asked_nanos = self.asked_nanos.wrapping_add(nanos);
        }
        let waited = nanos.wrapping_mul(line.len() as u64);
        self.wait_nanos = self.wait_nanos.wrapping_add(waited);
        self.at = self.at.max(now);
    }

    /// Notes that what waited may go, for what it is charged.
    fn release(&mut self, mut ticket: Ticket, charged: Charged, now: Mono) -> Ticket {
        add(&mut self.released, ticket.request.cost);
        ticket.request.cost = charged.volume;
        ticket.request.file = charged.file.map(Box::new);
        ticket.request.passed = now;
        ticket
    }
}

fn add(sum: &mut Cost, more: Cost) {
    sum.bytes = sum.bytes.wrapping_add(more.bytes);
    sum.operations = sum.operations.wrapping_add(more.operations);
}

/// A connection that stopped reading because of a volume's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// The worker that owns it.
    pub(crate) worker: usize,
    /// Its token there.
    pub(crate) connection: u64,
}

/// Memory pinned by waiting requests, all volumes together.
#[derive(Debug)]
pub(crate) struct ParkedTotal {
    bytes: AtomicU64,
    max: u64,
}

impl ParkedTotal {
    /// Nothing parked; at most `max` bytes.
    pub(crate) fn new(max: u64) -> Self {
        Self { bytes: AtomicU64::new(0), max }
    }

    /// Bytes pinned now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The gate of one volume.
pub(crate) struct Gate {
    meters: Meters,
    waiting: Mutex<Waiting>,
    parked: AtomicU64,
    /// The part of it that waits for files.
    aside: AtomicU64,
    parked_max: AtomicU64,
    /// The worker that asks again; meaningful while somebody waits.
    pumper: AtomicUsize,
    /// When it is going to: the earliest timer that was set and has not fired.
    armed: AtomicU64,
    /// Whether its files have a ceiling; kept here to be read without the lock.
    limits_files: AtomicBool,
    total: Arc<ParkedTotal>,
    id: VolumeId,
    /// Whose budget the volume shares, if any. Changed only under the lock; where that of the pool is
    /// taken too, it is taken first.
    pool: ArcSwapOption<PoolGate>,
}

impl Gate {
    /// The gate of the volume `id` that lets `limits` through.
    pub(crate) fn new(id: VolumeId, limits: Limits, total: Arc<ParkedTotal>) -> Self {
        Self {
            id,
            pool: ArcSwapOption::empty(),
            meters: Meters::new(limits),
            waiting: Mutex::new(Waiting {
                limits,
                floor: None,
                line: Line::new(),
                stopped: Vec::new(),
                seen: Seen::default(),
            }),
            parked: AtomicU64::new(0),
            aside: AtomicU64::new(0),
            parked_max: AtomicU64::new(parked_max(limits)),
            pumper: AtomicUsize::new(0),
            armed: AtomicU64::new(u64::MAX),
            limits_files: AtomicBool::new(false),
            total,
        }
    }

    /// The limits in force.
    pub(crate) fn limits(&self) -> Limits {
        lock(&self.waiting).limits
    }

    /// What the volume may have, and what of it is certain.
    pub(crate) fn entitled(&self) -> Entitled {
        let waiting = lock(&self.waiting);
        Entitled { limits: waiting.limits, lent: uncertain(waiting.limits, waiting.floor) }
    }

    /// The credits for bursts that are left, if there are bursts.
    pub(crate) fn credits(&self, now: Mono) -> Option<u64> {
        self.meters.credits(now)
    }

    /// Goes on with the credits that an earlier server left.
    pub(crate) fn set_credits(&self, credits: u64, now: Mono) {
        self.meters.set_credits(credits, now);
    }

    /// Bytes of memory that waiting requests pin.
    pub(crate) fn parked(&self) -> u64 {
        self.parked.load(Ordering::Relaxed)
    }

    /// Requests waiting now.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.waiting).line.len()
    }

    /// Adds what the gate saw until `reading` was taken to it.
    pub(crate) fn read(&self, reading: &mut Reading) {
        let mut waiting = lock(&self.waiting);
        let now = reading.at;
        let Waiting { line, seen, .. } = &mut *waiting;
        seen.until(now, line);
        // Somebody looks now and then; what files owe nothing need not be remembered.
        line.forget(now);
        (reading.due, reading.lent, reading.counted_nanos) = waiting.due(now);
        let seen = &waiting.seen;
        (reading.asked_nanos, reading.wait_nanos) = (seen.asked_nanos, seen.wait_nanos);
        add(&mut reading.offered, seen.queued);
        add(&mut reading.passed, seen.released);
    }

    /// The worker to tell of a change of contract.
    pub(crate) fn pumper(&self) -> usize {
        match &*self.pool.load() {
            Some(pool) => pool.pumper.load(Ordering::Relaxed),
            None => self.pumper.load(Ordering::Relaxed),
        }
    }

    /// Does a timer for `at` have to be set? Not if an earlier one is.
    pub(crate) fn arm(&self, at: Mono) -> bool {
        let arm = |armed: &AtomicU64| armed.fetch_min(at.0, Ordering::Relaxed) > at.0;
        self.pool.load().as_ref().map_or_else(|| arm(&self.armed), |pool| arm(&pool.armed))
    }

    /// The timer for `at` fired.
    pub(crate) fn fired(&self, at: Mono) {
        // Only the earliest counts; a later one that was overtaken fires for nothing.
        let fired = |armed: &AtomicU64| {
            let _ = armed.compare_exchange(at.0, u64::MAX, Ordering::Relaxed, Ordering::Relaxed);
        };
        self.pool.load().as_ref().map_or_else(|| fired(&self.armed), |pool| fired(&pool.armed));
    }

    /// Puts other limits in force for the next decision.
    pub(crate) fn set_limits(&self, limits: Limits, now: Mono) {
        // Under the lock, so that no pump runs with half of the change.
        self.locked(|pool, waiting| {
            waiting.settle(now);
            self.meters.set(limits, now);
            waiting.line.reweigh(&self.meters);
            waiting.limits = limits;
            self.parked_max.store(parked_max(limits), Ordering::Relaxed);
            self.changed(pool, waiting);
        });
    }

    /// The ceiling of each file, if there is one.
    pub(crate) fn file_ceiling(&self) -> Option<Ceiling> {
        lock(&self.waiting).line.ceiling()
    }

    /// Puts another ceiling of files in force for the next decision, or none. Pump it afterwards.
    pub(crate) fn set_file_ceiling(&self, ceiling: Option<Ceiling>, now: Mono) {
        self.locked(|pool, waiting| {
            waiting.line.set_ceiling(ceiling, &self.meters, now);
            self.limits_files.store(ceiling.is_some(), Ordering::Relaxed);
            self.changed(pool, waiting);
        });
    }

    /// What waits may have been held back by limits that are others now.
    fn changed(&self, pool: Option<(&PoolGate, &mut Shares)>, waiting: &Waiting) {
        let Some((pool, shares)) = pool else { return };
        shares.pause(&pool.budget, self.id.0);
        if !waiting.line.is_empty() {
            shares.wake(&pool.budget, self.id.0);
        }
    }

    /// Has the volume, whose gate this is, share the budget of a pool from now on, or of none. Pump those
    /// that it shares with afterwards, and the volume itself if this says that it left a pool. Called by one at
    /// a time.
    pub(crate) fn set_share(
        &self,
        with: Option<(&Arc<PoolGate>, Share)>,
        volume: &Arc<ServedVolume>,
        now: Mono,
    ) -> bool {
        let floor = with.map(|(_, share)| share.floor);
        {
            let mut waiting = lock(&self.waiting);
            if waiting.floor != floor {
                waiting.settle(now);
                waiting.floor = floor;
            }
        }
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
            // A timer that was set for the pool may find it gone.
            old.armed.store(u64::MAX, Ordering::Relaxed);
        }
        if let Some((new, share)) = with {
            let mut sharing = lock(&new.sharing);
            sharing.add(self.id, share, volume);
            let waiting = lock(&self.waiting);
            self.pool.store(Some(Arc::clone(new)));
            self.meters.set_shared(true);
            self.armed.store(u64::MAX, Ordering::Relaxed);
            if !waiting.line.is_empty() {
                sharing.shares.wake(&new.budget, self.id.0);
            }
        }
        left
    }

    /// Does `work` on what waits, with the pool's order where there is one.
    fn locked<R>(
        &self,
        work: impl FnOnce(Option<(&PoolGate, &mut Shares)>, &mut Waiting) -> R,
    ) -> R {
        loop {
            let pool = self.pool.load_full();
            let mut sharing = pool.as_ref().map(|pool| lock(&pool.sharing));
            let mut waiting = lock(&self.waiting);
            let now = self.pool.load();
            if now.as_ref().map(Arc::as_ptr) == pool.as_ref().map(Arc::as_ptr) {
                let order = sharing.as_mut().map(|sharing| &mut sharing.shares);
                return work(pool.as_deref().zip(order), &mut waiting);
            }
        }
    }

    /// Whether what isn't a READ or WRITE is an operation of the contract too.
    pub(crate) fn counts_metadata(&self) -> bool {
        self.meters.counts_metadata()
    }

    /// May a request of `cost` go now, which reads or writes `file` if it names one? Only while nobody waits; then says
    /// what it was charged.
    pub(crate) fn try_pass(
        &self,
        cost: Cost,
        file: Option<&ObjectKey>,
        now: Mono,
    ) -> Option<Charged> {
        let limited = self.limits_files.load(Ordering::Relaxed);
        let Some(file) = file.filter(|_| limited) else {
            return self.pass(cost, now).map(|volume| Charged { volume, file: None });
        };
        lock(&self.waiting).line.try_pass(*file, cost, now, || self.pass(cost, now))
    }

    /// The same for the limits of the volume. What moves no byte goes at once where operations are not counted.
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

    /// Gives back what a request was charged and did not use. True if somebody waits, who may go sooner now: ask
    /// the gate again.
    pub(crate) fn refund(&self, unused: Charged, now: Mono) -> bool {
        let of_file = unused.file.is_some_and(|charge| self.refund_file(charge, now));
        self.refund_volume(unused.volume) || of_file
    }

    fn refund_file(&self, charge: FileCharge, now: Mono) -> bool {
        let waits = lock(&self.waiting).line.refund(charge, now);
        if waits {
            self.locked(|pool, _| {
                if let Some((pool, shares)) = pool {
                    shares.again(&pool.budget, self.id.0);
                }
            });
        }
        waits
    }

    fn refund_volume(&self, cost: Cost) -> bool {
        if cost == Cost::ZERO {
            return false;
        }
        self.meters.refund(cost);
        if !self.meters.is_shared() {
            return self.meters.is_waiting();
        }
        let pool = self.pool.load();
        let waits = self.meters.is_waiting();
        let pool_waits = pool.as_ref().is_some_and(|pool| {
            pool.budget.refund(cost.uncounted());
            if waits {
                lock(&pool.sharing).shares.again(&pool.budget, self.id.0);
            }
            pool.budget.is_waiting()
        });
        pool_waits || waits
    }

    /// Whether a request, which was refused and doesn't wait, was charged for a moment, so that those who were refused
    /// meanwhile may go sooner than they were told: ask the gate again.
    pub(crate) fn took_back(&self) -> bool {
        let took_back = self.meters.took_back();
        if let Some(pool) = self.pool.load().as_ref().filter(|_| took_back) {
            lock(&pool.sharing).shares.again(&pool.budget, self.id.0);
        }
        took_back
    }

    /// Lets `request` wait its turn.
    pub(crate) fn park(&self, mut request: Request, now: Mono) -> Parked {
        request.detach();
        let pinned = (request.pinned() + PARKED_OVERHEAD) as u64;
        let (client, connection, cost) = (request.client, request.connection, request.cost);
        let (worker, file) = (request.worker, request.reads_or_writes().copied());
        self.account(pinned);
        let asks = Asks { client, connection, cost, file, pinned };
        let ticket = Ticket { request, since: now, pinned };
        self.locked(|pool, waiting| {
            waiting.seen.until(now, &waiting.line);
            add(&mut waiting.seen.queued, cost);
            let mut ask = waiting.line.push(&self.meters, asks, ticket);
            if let Some((pool, shares)) = pool {
                if ask {
                    shares.again(&pool.budget, self.id.0);
                }
                ask |= shares.wake(&pool.budget, self.id.0);
                if ask {
                    pool.pumper.store(worker, Ordering::Relaxed);
                }
            }
            if ask {
                self.pumper.store(worker, Ordering::Relaxed);
            }
            let full = self.is_full() || self.is_full_aside() && waiting.line.is_aside(connection);
            if full {
                waiting.stopped.push(Stopped { worker, connection });
            }
            Parked { ask, full }
        })
    }

    /// Releases all that may go now, of other volumes too where it shares a budget with them; answers when to
    /// ask again, if anybody still waits.
    pub(crate) fn pump(
        &self,
        now: Mono,
        released: &mut Vec<Ticket>,
        resumed: &mut Vec<Stopped>,
    ) -> Option<Mono> {
        let own = self.locked(|pool, waiting| {
            pool.is_none().then(|| {
                let next = self.release(waiting, now, released);
                self.resume(waiting, resumed);
                next
            })
        });
        let pool = self.pool.load_full();
        own.unwrap_or_else(|| pool.and_then(|pool| pool.pump(now, released, resumed)))
    }

    /// Releases what is to go next, if this volume and the `budget` of its pool let it.
    fn step(
        &self,
        budget: &Meters,
        now: Mono,
        released: &mut Vec<Ticket>,
        resumed: &mut Vec<Stopped>,
    ) -> Step {
        let mut waiting = lock(&self.waiting);
        let mut freed = 0;
        let Waiting { line, seen, .. } = &mut *waiting;
        seen.until(now, line);
        let step = line.step(&self.meters, budget, now, &mut |ticket: Ticket, charged| {
            freed += ticket.pinned;
            released.push(seen.release(ticket, charged, now));
        });
        self.unaccount(freed);
        self.resume(&mut waiting, resumed);
        step
    }

    /// Forgets the waiting requests of a connection that is gone.
    pub(crate) fn cancel(&self, connection: u64, now: Mono, resumed: &mut Vec<Stopped>) {
        self.locked(|pool, waiting| {
            waiting.seen.until(now, &waiting.line);
            waiting.stopped.retain(|stopped| stopped.connection != connection);
            let mut freed = 0;
            waiting.line.cancel_connection(&self.meters, connection, now, &mut |ticket| {
                freed += ticket.pinned;
            });
            self.unaccount(freed);
            if let Some((pool, shares)) = pool.filter(|_| waiting.line.is_empty()) {
                shares.pause(&pool.budget, self.id.0);
            }
            self.resume(waiting, resumed);
        });
    }

    fn release(
        &self,
        waiting: &mut Waiting,
        now: Mono,
        released: &mut Vec<Ticket>,
    ) -> Option<Mono> {
        let mut freed = 0;
        let Waiting { line, seen, .. } = waiting;
        seen.until(now, line);
        let next = line.poll(&self.meters, now, &mut |ticket: Ticket, charged| {
            freed += ticket.pinned;
            released.push(seen.release(ticket, charged, now));
        });
        self.unaccount(freed);
        next
    }

    /// Connections go on once a quarter of the bound is free, so that they do not flutter; those that were stopped for what
    /// waits for files also once nothing of theirs does.
    fn resume(&self, waiting: &mut Waiting, resumed: &mut Vec<Stopped>) {
        let Waiting { line, stopped, .. } = waiting;
        self.aside.store(line.pinned_aside(), Ordering::Relaxed);
        let cleared = line.cleared();
        let max = self.parked_max.load(Ordering::Relaxed) / 4 * 3;
        let low = self.parked_for_volume() <= max && self.total.bytes() <= self.total.max / 4 * 3;
        if stopped.is_empty() || !low && !line.is_empty() {
            return;
        }
        if line.pinned_aside() <= max || line.is_empty() {
            resumed.append(stopped);
        } else if cleared {
            resumed.extend(stopped.extract_if(.., |one| !line.is_aside(one.connection)));
        }
    }

    /// What waits for the volume itself drains at its rate, and so stops whoever adds to it.
    fn is_full(&self) -> bool {
        self.parked_for_volume() > self.parked_max.load(Ordering::Relaxed)
            || self.total.bytes() > self.total.max
    }

    /// What waits for files drains as slowly as they, and so has a bound of its own and stops only connections that have a
    /// part in it.
    fn is_full_aside(&self) -> bool {
        self.aside.load(Ordering::Relaxed) > self.parked_max.load(Ordering::Relaxed)
    }

    fn parked_for_volume(&self) -> u64 {
        self.parked().saturating_sub(self.aside.load(Ordering::Relaxed))
    }

    fn account(&self, pinned: u64) {
        self.parked.fetch_add(pinned, Ordering::Relaxed);
        self.total.bytes.fetch_add(pinned, Ordering::Relaxed);
    }

    fn unaccount(&self, pinned: u64) {
        if pinned > 0 {
            self.parked.fetch_sub(pinned, Ordering::Relaxed);
            self.total.bytes.fetch_sub(pinned, Ordering::Relaxed);
        }
    }
}

/// 20 s of the tightest limit, within 16 and 64 MiB.
fn parked_max(limits: Limits) -> u64 {
    let operations = |iops: Iops| iops.0.saturating_mul(PARKED_OPERATION_BYTES);
    let rate = limits.iops.map_or(limits.rate.0, |iops| operations(iops).min(limits.rate.0));
    rate.saturating_mul(PARKED_SECONDS).clamp(PARKED_VOLUME_MIN, PARKED_VOLUME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_qos::{BytesPerSecond, ClientKey, Queue};

    #[test]
    fn what_may_be_parked_follows_the_tightest_limit() {
        let limits = |mib, iops| Limits { iops, ..Limits::of(BytesPerSecond::from_mib(mib)) };
        let mib = |mib, iops: Option<u64>| parked_max(limits(mib, iops.map(Iops))) >> 20;
        assert_eq!([mib(1, None), mib(2, None), mib(1000, None)], [20, 40, 64]);
        assert_eq!([mib(1000, Some(16)), mib(1000, Some(32)), mib(1000, Some(1))], [20, 40, 16]);
        assert_eq!([mib(1, Some(1_000_000)), mib(0, Some(7))], [20, 16]);
    }

    #[test]
    fn what_is_given_back_lets_a_volume_of_a_shared_pool_go_sooner() {
        let (now, rate) = (Mono(1), Limits::of(BytesPerSecond::from_mib(1)));
        let gate = Gate::new(VolumeId(7), rate, Arc::new(ParkedTotal::new(0)));
        let pool = Arc::new(PoolGate::new(rate));
        lock(&pool.sharing).shares.set(7, Share::default());
        gate.meters.set_shared(true);
        gate.pool.store(Some(Arc::clone(&pool)));
        // Something waits, and the volume's own limit holds it back for long.
        Queue::new().push(&gate.meters, ClientKey(1), 1, Cost::of(1), ());
        let asked = |step| {
            let mut asked = 0;
            lock(&pool.sharing).shares.poll(&pool.budget, now, |_| {
                asked += 1;
                step
            });
            asked
        };
        lock(&pool.sharing).shares.wake(&pool.budget, 7);
        assert_eq!(asked(Step::Held(Mono(u64::MAX))), 1);
        assert_eq!(asked(Step::Nothing), 0);
        assert!(gate.refund(Charged { volume: Cost::of(1), file: None }, now));
        assert_eq!(asked(Step::Nothing), 1);
    }

    #[test]
    fn a_request_that_is_refused_and_dropped_says_so_if_it_was_charged() {
        let limits = Limits { iops: Some(Iops(1)), ..Limits::of(BytesPerSecond::from_mib(1)) };
        let gate = Gate::new(VolumeId(7), limits, Arc::new(ParkedTotal::new(0)));
        // Late enough for the meter of bytes to have its catch-up.
        let now = Mono::from_secs(1);
        assert!(gate.try_pass(Cost::of(1), None, now).is_some());
        assert!(!gate.took_back());
        assert!(gate.try_pass(Cost::of(1), None, now).is_none(), "one operation a second");
        assert!(gate.took_back() && !gate.took_back());
    }
}
