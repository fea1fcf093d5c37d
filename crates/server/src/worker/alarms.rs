//! The times at which sessions want to act although their clients send nothing. Not here: what they
//! do then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_core::Mono;

/// The alarms of a worker's connections, at most one of each.
#[derive(Default)]
pub(super) struct Alarms(BinaryHeap<Reverse<(Mono, u64)>>);

impl Alarms {
    /// Sets an alarm of the connection `token`.
    pub(super) fn set(&mut self, at: Mono, token: u64) {
        self.0.push(Reverse((at, token)));
    }

    /// Time of the next alarm.
    pub(super) fn next(&self) -> Option<Mono> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// A connection whose alarm is due.
    pub(super) fn due(&mut self, now: Mono) -> Option<u64> {
        self.next().filter(|at| *at <= now)?;
        self.0.pop().map(|Reverse((_, token))| token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_due_in_the_order_of_their_times() {
        let mut alarms = Alarms::default();
        let [first, second, third] = [1, 2, 3].map(Mono::from_secs);
        alarms.set(second, 7);
        alarms.set(third, 9);
        alarms.set(first, 8);
        assert_eq!(alarms.next(), Some(first));
        assert_eq!(alarms.due(Mono::ZERO), None);
        assert_eq!([(); 3].map(|()| alarms.due(second)), [Some(8), Some(7), None]);
        assert_eq!(alarms.due(third), Some(9));
        assert_eq!(alarms.next(), None);
    }
}
