//! The gate of one volume: where requests wait for their contract.
//!
//! The arithmetic is `weir-qos`'s: [`Meters`] on the fast path, [`Queue`] for those that wait. This
//! module adds what they must not have: a lock, memory bounds, and the list of connections that
//! stopped reading. It never sleeps; workers ask again when told to.

use crate::limits::{
    PARKED_OPERATION_BYTES, PARKED_OVERHEAD, PARKED_SECONDS, PARKED_VOLUME_MAX, PARKED_VOLUME_MIN,
};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::worker::Request;
use weir_core::Mono;
use weir_qos::{Cost, Iops, Limits, Meters, Queue};

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
}

impl Gate {
    /// A gate that lets `limits` through.
    pub(crate) fn new(limits: Limits, total: Arc<ParkedTotal>) -> Self {
        Self {
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
        self.pumper.load(Ordering::Relaxed)
    }

    /// Does a timer for `at` have to be set? Not if an earlier one is.
    pub(crate) fn arm(&self, at: Mono) -> bool {
        self.armed.fetch_min(at.0, Ordering::Relaxed) > at.0
    }

    /// The timer for `at` fired.
    pub(crate) fn fired(&self, at: Mono) {
        // Only the earliest counts; a later one that was overtaken fires for nothing.
        let _ = self.armed.compare_exchange(at.0, u64::MAX, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Puts other limits in force for the next decision.
    pub(crate) fn set_limits(&self, limits: Limits, now: Mono) {
        // Under the lock, so that no pump runs with half of the change.
        let mut waiting = lock(&self.waiting);
        self.meters.set(limits, now);
        waiting.queue.reweigh(&self.meters);
        waiting.limits = limits;
        self.parked_max.store(parked_max(limits), Ordering::Relaxed);
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
        self.meters.try_take(cost, now)
    }

    /// Gives back what a request was charged and did not use. True if somebody waits, who may go sooner now: ask
    /// the gate again.
    pub(crate) fn refund(&self, cost: Cost) -> bool {
        if cost == Cost::ZERO {
            return false;
        }
        self.meters.refund(cost);
        self.meters.is_waiting()
    }

    /// Lets `request` wait its turn.
    pub(crate) fn park(&self, mut request: Request, now: Mono) -> Parked {
        request.detach();
        let pinned = (request.pinned() + PARKED_OVERHEAD) as u64;
        let (client, connection, cost) = (request.client, request.connection, request.cost);
        let worker = request.worker;
        let mut waiting = lock(&self.waiting);
        self.account(pinned);
        let ticket = Ticket { request, since: now, pinned };
        let ask = waiting.queue.push(&self.meters, client, connection, cost, ticket);
        if ask {
            self.pumper.store(worker, Ordering::Relaxed);
        }
        let full = self.is_full();
        if full {
            waiting.stopped.push(Stopped { worker, connection });
        }
        Parked { ask, full }
    }

    /// Releases all that may go now; answers when to ask again, if anybody still waits.
    pub(crate) fn pump(
        &self,
        now: Mono,
        released: &mut Vec<Ticket>,
        resumed: &mut Vec<Stopped>,
    ) -> Option<Mono> {
        let mut waiting = lock(&self.waiting);
        let next = self.release(&mut waiting, now, released);
        self.resume(&mut waiting, resumed);
        next
    }

    /// Forgets the waiting requests of a connection that is gone.
    pub(crate) fn cancel(&self, connection: u64, resumed: &mut Vec<Stopped>) {
        let mut waiting = lock(&self.waiting);
        waiting.stopped.retain(|stopped| stopped.connection != connection);
        let mut freed = 0;
        waiting.queue.cancel_connection(&self.meters, connection, &mut |ticket: Ticket| {
            freed += ticket.pinned;
        });
        self.unaccount(freed);
        self.resume(&mut waiting, resumed);
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
