//! The switch of a volume's metadata cache: whether names, attributes and details are kept in
//! memory.
//!
//! Its *epoch* grows with each turn of the switch. What a cache holds belongs to the epoch in which
//! it was stored, so that nothing from before is believed after the switch was off for a while. The
//! objects themselves are held open either way: there is one of each at any time.

use crate::sync::{AcqRel, Acquire, Arc, AtomicU64};

/// Whether the metadata cache of a volume is on.
#[derive(Debug)]
pub(super) struct CacheSwitch(AtomicU64);

/// The time from one turn of a switch to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch(u64);

impl Epoch {
    /// Is the cache on in it?
    #[inline]
    pub(super) fn is_on(self) -> bool {
        !self.0.is_multiple_of(2)
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
}
