//! Limits on bytes and on operations that bind alternately, because large requests wait together
//! with small ones: without the rules of this module, both limits would be used only in part. Only
//! [`Meters`](crate::Meters) apply these rules; queues pass a [`Weight`] and a preferred
//! [`Resource`] on to their [`Turns`] without knowing what they mean.
//!
//! # Catch-up
//!
//! A meter must not count time in which the other limit blocked the queue as idle time. So each
//! meter may lag by more than its 50 ms: by the longest delay that either limit has imposed on a
//! waiting request. A meter's extension is in force until 50 ms after the delay imposed by the
//! *other* limit ends: a client with one request at a time empties the queue with each request, and
//! its next request arrives only then. Delays separated by more than 50 ms do not add up.
//!
//! # Order
//!
//! If one request takes more than 50 ms of either limit, many such requests in a row would block
//! the other limit for longer than its extension. Then the queue prefers the request that takes
//! more of the less used resource, as long as no client falls behind by more than one turn. Large
//! and small requests therefore alternate, whichever clients sent them.

use alloc::collections::BTreeSet;

use weir_core::Mono;

use crate::meter::{CATCH_UP_NANOS, NEVER};
use crate::sync::{AtomicU64, Ordering};

/// The resource that a request takes more of, by the time in which the contract yields it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resource {
    /// Bytes, or both alike.
    Bytes = 0,
    /// Operations.
    Operations = 1,
}

/// The part of the contract that a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    /// The part in bytes.
    pub(crate) bytes: u64,
    /// The resource that the request takes more of.
    pub(crate) resource: Resource,
}

impl Weight {
    /// The weight of a request of which only bytes count.
    pub(crate) const fn of(bytes: u64) -> Self {
        Self { bytes, resource: Resource::Bytes }
    }
}

/// The refusal of a waiting request whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The time to retry.
    pub(crate) until: Mono,
    /// The resource whose meter refused.
    pub(crate) by: Resource,
}

/// The extension of each meter's lag beyond its 50 ms, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CatchUp {
    /// The extension for bytes.
    pub(crate) bytes: u64,
    /// The extension for operations.
    pub(crate) operations: u64,
}

/// The delays that two limits have imposed on waiting requests. Written under the mutex of the
/// queue, and read by every admission.
#[derive(Debug, Default)]
pub(crate) struct TwoLimits {
    /// The longest delay by either limit, in nanoseconds.
    longest: AtomicU64,
    /// The time until which the last delay by each limit counts, in nanoseconds; indexed by
    /// [`Resource`].
    counts_until: [AtomicU64; 2],
}

impl TwoLimits {
    /// Notes that a waiting request was refused at `now`.
    pub(crate) fn refused(&self, Refusal { until, by }: Refusal, now: Mono) {
        if until == NEVER {
            return;
        }
        let before = if self.is_in_force(now) { self.longest.load(Ordering::Relaxed) } else { 0 };
        let delay = until.0.saturating_sub(now.0);
        self.longest.store(before.max(delay), Ordering::Relaxed);
        let counts_until = until.0.saturating_add(CATCH_UP_NANOS);
        self.counts_until[by as usize].store(counts_until, Ordering::Release);
    }

    /// Forgets all delays, because the limits changed.
    pub(crate) fn clear(&self) {
        self.counts_until.iter().for_each(|until| until.store(0, Ordering::Release));
        self.longest.store(0, Ordering::Relaxed);
    }

    /// The extension of each meter's lag at `now`.
    pub(crate) fn catch_up(&self, now: Mono) -> CatchUp {
        let after = |other| match self.counts(other, now) {
            true => self.longest.load(Ordering::Relaxed),
            false => 0,
        };
        CatchUp { bytes: after(Resource::Operations), operations: after(Resource::Bytes) }
    }

    /// Whether an extension may be in force at `now`.
    pub(crate) fn is_in_force(&self, now: Mono) -> bool {
        self.counts(Resource::Bytes, now) || self.counts(Resource::Operations, now)
    }

    /// Whether delays are so long that large and small requests have to alternate.
    pub(crate) fn must_alternate(&self, now: Mono) -> bool {
        self.longest.load(Ordering::Relaxed) > CATCH_UP_NANOS && self.is_in_force(now)
    }

    /// Whether the last delay by that limit still counts.
    fn counts(&self, by: Resource, now: Mono) -> bool {
        now.0 <= self.counts_until[by as usize].load(Ordering::Acquire)
    }
}

/// A turn of a party in a [fair queue](crate::fair_queue). Equal ends go in the order in which the
/// turns began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    pub(crate) end: u64,
    pub(crate) serial: u64,
    pub(crate) party: usize,
    pub(crate) start: u64,
    /// The resource that the party's next request takes more of.
    pub(crate) resource: Resource,
}

/// The turns of a fair queue in the order of their ends.
#[derive(Debug)]
pub(crate) struct Turns {
    by_resource: [BTreeSet<Turn>; 2],
}

impl Turns {
    /// No turns.
    pub(crate) const fn new() -> Self {
        Self { by_resource: [BTreeSet::new(), BTreeSet::new()] }
    }

    /// Adds a turn.
    pub(crate) fn insert(&mut self, turn: Turn) {
        self.by_resource[turn.resource as usize].insert(turn);
    }

    /// Removes a turn, if it is there.
    pub(crate) fn remove(&mut self, turn: &Turn) {
        self.by_resource[turn.resource as usize].remove(turn);
    }

    /// The turn that ends first; one for the `preferred` resource, if that begins before the first
    /// one ends.
    pub(crate) fn first(&self, preferred: Option<Resource>) -> Option<&Turn> {
        let next = self.by_resource.iter().filter_map(BTreeSet::first).min()?;
        let other = preferred.and_then(|resource| self.by_resource[resource as usize].first());
        Some(other.filter(|turn| turn.start < next.end).unwrap_or(next))
    }

    /// The turns for one resource.
    #[cfg(test)]
    pub(crate) fn of(&self, resource: Resource) -> impl Iterator<Item = &Turn> {
        self.by_resource[resource as usize].iter()
    }

    /// The number of turns.
    pub(crate) fn len(&self) -> usize {
        self.by_resource.iter().map(BTreeSet::len).sum()
    }
}
