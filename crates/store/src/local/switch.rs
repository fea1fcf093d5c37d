//! The switch of a volume's metadata cache: whether names, attributes and details are kept in
//! memory.
//!
//! Its *epoch* grows with each turn of the switch. A fact in a cache belongs to the epoch in which
//! the kernel was asked for it, which is before it is stored, and is believed in no other: while
//! the cache is off, others may change the files. The objects themselves are held open either way:
//! there is one of each at any time.

use crate::sync::{AcqRel, Acquire, Arc, AtomicU64, Release};

/// Whether the metadata cache of a volume is on.
#[derive(Debug)]
pub(super) struct CacheSwitch(AtomicU64);

/// The time from one turn of a switch to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Epoch(u64);

impl Epoch {
    /// Is the cache on in it?
    #[inline]
    pub(super) fn is_on(self) -> bool {
        !self.0.is_multiple_of(2)
    }
}

/// A fact that is known of an object, in one epoch or in none.
#[derive(Debug, Default)]
pub(super) struct KnownIn(AtomicU64);

impl KnownIn {
    /// Known since `epoch`, if the cache is on in it.
    pub(super) fn since(epoch: Epoch) -> Self {
        Self(AtomicU64::new(if epoch.is_on() { epoch.0 } else { 0 }))
    }

    /// Is it known in `epoch`?
    #[inline]
    pub(super) fn holds_in(&self, epoch: Epoch) -> bool {
        epoch.is_on() && self.0.load(Acquire) == epoch.0
    }

    /// It may no longer be so.
    pub(super) fn forget(&self) {
        self.0.store(0, Release);
    }

    /// Says that it is known in `epoch`. Was it known in it before?
    pub(super) fn hold_in(&self, epoch: Epoch) -> bool {
        self.0.swap(epoch.0, AcqRel) == epoch.0
    }
}

impl CacheSwitch {
    pub(super) fn new(on: bool) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(on.into())))
    }

    /// The present epoch.
    #[inline]
    pub(super) fn epoch(&self) -> Epoch {
        Epoch(self.0.load(Acquire))
    }

    /// Is the cache on?
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.epoch().is_on()
    }

    /// Turns the cache on or off. False if it was that already.
    pub(super) fn set(&self, on: bool) -> bool {
        let next = |epoch| (Epoch(epoch).is_on() != on).then_some(epoch + 1);
        self.0.fetch_update(AcqRel, Acquire, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_begins_an_epoch() {
        let switch = CacheSwitch::new(true);
        let first = switch.epoch();
        assert!(switch.is_on() && !switch.set(true));
        assert_eq!(switch.epoch(), first);
        assert!(switch.set(false) && !switch.is_on() && !switch.set(false));
        assert!(switch.set(true) && switch.is_on());
        assert_ne!(switch.epoch(), first, "what was kept before is not believed");
    }

    #[test]
    fn a_fact_holds_in_its_epoch_alone() {
        let switch = CacheSwitch::new(true);
        let first = switch.epoch();
        let fact = KnownIn::since(first);
        assert!(fact.holds_in(first) && fact.hold_in(first));
        switch.set(false);
        let off = switch.epoch();
        assert!(!fact.holds_in(off) && !KnownIn::since(off).holds_in(off));
        switch.set(true);
        assert!(!fact.holds_in(switch.epoch()) && !fact.hold_in(switch.epoch()));
        fact.forget();
        assert!(!fact.holds_in(switch.epoch()) && !fact.holds_in(first));
    }
}
