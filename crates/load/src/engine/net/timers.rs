//! The slots that wait to send later, by their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A slot of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SlotId {
    pub(super) conn: usize,
    pub(super) slot: usize,
}

/// Times in nanoseconds since the start, each with a slot. There is never more than one for a
/// slot, so that their number is bounded by the depth.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(u64, SlotId)>>);

impl Timers {
    /// Comes back to `place` at `at_ns`.
    pub(super) fn set(&mut self, at_ns: u64, place: SlotId) {
        self.0.push(Reverse((at_ns, place)));
    }

    /// The first slot whose time has come at `now_ns`.
    #[inline]
    pub(super) fn take(&mut self, now_ns: u64) -> Option<SlotId> {
        let Reverse((at_ns, _)) = self.0.peek()?;
        if *at_ns > now_ns {
            return None;
        }
        self.0.pop().map(|Reverse((_, place))| place)
    }

    /// The next time.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_up_in_the_order_of_their_times_and_none_before() {
        let mut timers = Timers::default();
        let place = |slot| SlotId { conn: 0, slot };
        for (at, slot) in [(30, 1), (10, 2), (20, 3)] {
            timers.set(at, place(slot));
        }
        assert_eq!(timers.take(9), None);
        assert_eq!(timers.next_ns(), Some(10));
        assert_eq!(
            [timers.take(25), timers.take(25), timers.take(25)],
            [Some(place(2)), Some(place(3)), None]
        );
        timers.clear();
        assert!(timers.is_empty());
    }
}
