//! The gate of one volume: where requests wait for their contract.
//!
//! The arithmetic is `weir-qos`'s: [`Meters`] on the fast path, [`Queue`] for those that wait. This
//! module adds what they must not have: a lock, memory bounds, and the list of connections that
//! stopped reading. It never sleeps; workers ask again when told to. Volumes that share a budget are asked
//! together, by the [`PoolGate`] of their pool.

mod shared;

pub(crate) use shared::PoolGate;

use crate::engine::ServedVolume;
use crate::limits::{
    PARKED_OPERATION_BYTES, PARKED_OVERHEAD, PARKED_SECONDS, PARKED_VOLUME_MAX, PARKED_VOLUME_MIN,
};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::worker::Request;
use arc_swap::ArcSwapOption;
use weir_core::{Mono, VolumeId};
use weir_qos::{Cost, Iops, Limits, Meters, Queue, Share, Shares, Step};

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
    queue: Queue<Ticket>,
    stopped: Vec<Stopped>,
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
    parked_max: AtomicU64,
    /// The worker that asks again; meaningful while somebody waits.
    pumper: AtomicUsize,
    /// When it is going to: the earliest timer that was set and has not fired.
    armed: AtomicU64,
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
            waiting: Mutex::new(Waiting { limits, queue: Queue::new(), stopped: Vec::new() }),
            parked: AtomicU64::new(0),
            parked_max: AtomicU64::new(parked_max(limits)),
            pumper: AtomicUsize::new(0),
            armed: AtomicU64::new(u64::MAX),
            total,
        }
    }

    /// The limits in force.
    pub(crate) fn limits(&self) -> Limits {
        lock(&self.waiting).limits
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
        lock(&self.waiting).queue.len()
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
            self.meters.set(limits, now);
            waiting.queue.reweigh(&self.meters);
            waiting.limits = limits;
            self.parked_max.store(parked_max(limits), Ordering::Relaxed);
            if let Some((pool, shares)) = pool {
                // It may have been held back by the old ones.
                shares.pause(&pool.budget, self.id.0);
                if !waiting.queue.is_empty() {
                    shares.wake(&pool.budget, self.id.0);
                }
            }
        });
    }

    /// Has the volume, whose gate this is, share the budget of a pool from now on, or of none. Pump those
    /// that it shares with afterwards, and the volume itself if this says that it left a pool. Called by one at
    /// a time.
    pub(crate) fn set_share(
        &self,
        with: Option<(&Arc<PoolGate>, Share)>,
        volume: &Arc<ServedVolume>,
    ) -> bool {
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
            if !waiting.queue.is_empty() {
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

    /// May a request of `cost` go now? Only while nobody waits; then says what it was charged. What
    /// moves no byte goes at once where operations are not counted.
    pub(crate) fn try_pass(&self, cost: Cost, now: Mono) -> Option<Cost> {
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
    pub(crate) fn refund(&self, cost: Cost) -> bool {
        if cost == Cost::ZERO {
            return false;
        }
        self.meters.refund(cost);
        if !self.meters.is_shared() {
            return self.meters.is_waiting();
        }
        let pool = self.pool.load();
        let pool_waits = pool.as_ref().is_some_and(|pool| {
            pool.budget.refund(cost.uncounted());
            pool.budget.is_waiting()
        });
        pool_waits || self.meters.is_waiting()
    }

    /// Lets `request` wait its turn.
    pub(crate) fn park(&self, mut request: Request, now: Mono) -> Parked {
        request.detach();
        let pinned = (request.pinned() + PARKED_OVERHEAD) as u64;
        let (client, connection, cost) = (request.client, request.connection, request.cost);
        let worker = request.worker;
        self.account(pinned);
        let ticket = Ticket { request, since: now, pinned };
        self.locked(|pool, waiting| {
            let mut ask = waiting.queue.push(&self.meters, client, connection, cost, ticket);
            if let Some((pool, shares)) = pool {
                ask |= shares.wake(&pool.budget, self.id.0);
                if ask {
                    pool.pumper.store(worker, Ordering::Relaxed);
                }
            }
            if ask {
                self.pumper.store(worker, Ordering::Relaxed);
            }
            let full = self.is_full();
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
        let release = &mut |mut ticket: Ticket, charged| {
            freed += ticket.pinned;
            ticket.request.cost = charged;
            released.push(ticket);
        };
        let step = waiting.queue.step(&self.meters, budget, now, release);
        self.unaccount(freed);
        self.resume(&mut waiting, resumed);
        step
    }

    /// Forgets the waiting requests of a connection that is gone.
    pub(crate) fn cancel(&self, connection: u64, resumed: &mut Vec<Stopped>) {
        self.locked(|pool, waiting| {
            waiting.stopped.retain(|stopped| stopped.connection != connection);
            let mut freed = 0;
            waiting.queue.cancel_connection(&self.meters, connection, &mut |ticket: Ticket| {
                freed += ticket.pinned;
            });
            self.unaccount(freed);
            if let Some((pool, shares)) = pool.filter(|_| waiting.queue.is_empty()) {
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
        let next = waiting.queue.poll(&self.meters, now, &mut |mut ticket: Ticket, charged| {
            freed += ticket.pinned;
            ticket.request.cost = charged;
            released.push(ticket);
        });
        self.unaccount(freed);
        next
    }

    /// Connections go on once a quarter of the bound is free, so that they do not flutter.
    fn resume(&self, waiting: &mut Waiting, resumed: &mut Vec<Stopped>) {
        let low = self.parked() <= self.parked_max.load(Ordering::Relaxed) / 4 * 3;
        let total_low = self.total.bytes() <= self.total.max / 4 * 3;
        if !waiting.stopped.is_empty() && (low && total_low || waiting.queue.is_empty()) {
            resumed.append(&mut waiting.stopped);
        }
    }

    fn is_full(&self) -> bool {
        self.parked() > self.parked_max.load(Ordering::Relaxed)
            || self.total.bytes() > self.total.max
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
    use weir_qos::BytesPerSecond;

    #[test]
    fn what_may_be_parked_follows_the_tightest_limit() {
        let limits = |mib, iops| Limits { iops, ..Limits::of(BytesPerSecond::from_mib(mib)) };
        let mib = |mib, iops: Option<u64>| parked_max(limits(mib, iops.map(Iops))) >> 20;
        assert_eq!([mib(1, None), mib(2, None), mib(1000, None)], [20, 40, 64]);
        assert_eq!([mib(1000, Some(16)), mib(1000, Some(32)), mib(1000, Some(1))], [20, 40, 16]);
        assert_eq!([mib(1, Some(1_000_000)), mib(0, Some(7))], [20, 16]);
    }
}
