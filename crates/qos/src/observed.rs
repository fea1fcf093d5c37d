//! The record of one volume's gate, by which its contract is [judged](crate::verdict): what the
//! limits yielded, what waited, and for how long. Plain data, like [`Queue`](crate::Queue): the
//! caller holds the lock and the clock. Not here: operations behind the gate, and the verdict.

use weir_core::Mono;

use crate::limits::Limits;
use crate::meters::Cost;
use crate::rate::BytesPerSecond;
use crate::verdict::{Entitled, Reading, uncertain, yields};
use crate::wait_queue::WaitQueue;

/// The limits of a volume, and the events at its gate since it was made.
#[derive(Debug)]
pub struct Observed {
    limits: Limits,
    /// The rate that the volume has for certain, if it shares the rest of its limit.
    floor: Option<BytesPerSecond>,
    /// Time up to which the sums over time hold.
    at: Mono,
    asked_nanos: u64,
    wait_nanos: u64,
    /// Nanoseconds that requests waited because their clients did not take earlier replies, summed.
    stalled_nanos: u64,
    /// READs and WRITEs that began to wait, and those that were released.
    queued: Cost,
    released: Cost,
    /// The sums over the limits in force, as of the last change of them.
    settled: Yield,
    since: Mono,
}

/// The limits' yield since the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Yield {
    due: Cost,
    /// The part of it that others may have instead.
    lent: Cost,
    /// Nanoseconds in which operations were limited.
    counted_nanos: u64,
}

impl Observed {
    /// The record of a gate with these limits that nobody has used.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            floor: None,
            at: Mono::ZERO,
            asked_nanos: 0,
            wait_nanos: 0,
            stalled_nanos: 0,
            queued: Cost::ZERO,
            released: Cost::ZERO,
            settled: Yield::default(),
            since: Mono::ZERO,
        }
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The limits in force, and their uncertain part.
    #[must_use]
    pub fn entitled(&self) -> Entitled {
        Entitled { limits: self.limits, lent: uncertain(self.limits, self.floor) }
    }

    /// Notes that other limits are in force from `now` on.
    pub fn set_limits(&mut self, limits: Limits, now: Mono) {
        self.settle(now);
        self.limits = limits;
    }

    /// Notes the rate that the volume has for certain from `now` on, if it shares the rest of its
    /// limit.
    pub fn set_floor(&mut self, floor: Option<BytesPerSecond>, now: Mono) {
        if self.floor != floor {
            self.settle(now);
            self.floor = floor;
        }
    }

    /// Brings the sums over time up to `now`, in which the requests in `waiting` waited. A
    /// throttled request demands nothing of the volume.
    pub fn until<K: Ord + Copy, T>(&mut self, now: Mono, waiting: &WaitQueue<K, T>) {
        let nanos = now.0.saturating_sub(self.at.0);
        if waiting.len_of_volume() > 0 {
            self.asked_nanos = self.asked_nanos.wrapping_add(nanos);
        }
        let stalled = waiting.stalled() as u64;
        let waited = nanos.wrapping_mul(waiting.len() as u64 - stalled);
        self.wait_nanos = self.wait_nanos.wrapping_add(waited);
        self.stalled_nanos = self.stalled_nanos.wrapping_add(nanos.wrapping_mul(stalled));
        self.at = self.at.max(now);
    }

    /// Counts a request that begins to wait.
    pub fn queued(&mut self, cost: Cost) {
        self.queued = wrapping_sum(self.queued, cost);
    }

    /// Counts a request that waited and is released.
    pub fn released(&mut self, cost: Cost) {
        self.released = wrapping_sum(self.released, cost);
    }

    /// Adds all that was seen by the time of the reading to it. Call [`until`](Self::until) first.
    pub fn add_to(&self, reading: &mut Reading) {
        let Yield { due, lent, counted_nanos } = self.yielded(reading.at);
        (reading.due, reading.lent, reading.counted_nanos) = (due, lent, counted_nanos);
        (reading.asked_nanos, reading.wait_nanos) = (self.asked_nanos, self.wait_nanos);
        reading.unsent_nanos = reading.unsent_nanos.wrapping_add(self.stalled_nanos);
        reading.offered = wrapping_sum(reading.offered, self.queued);
        reading.passed = wrapping_sum(reading.passed, self.released);
    }

    fn settle(&mut self, now: Mono) {
        (self.settled, self.since) = (self.yielded(now), now);
    }

    fn yielded(&self, now: Mono) -> Yield {
        let nanos = now.0.saturating_sub(self.since.0);
        let sum = |before: Cost, limits: Limits| {
            let iops = limits.iops.map_or(0, |iops| iops.0);
            let more =
                Cost { bytes: yields(limits.rate.0, nanos), operations: yields(iops, nanos) };
            wrapping_sum(before, more)
        };
        let Entitled { limits, lent } = self.entitled();
        let counted = if limits.iops.is_some() { nanos } else { 0 };
        Yield {
            due: sum(self.settled.due, limits),
            lent: sum(self.settled.lent, lent),
            counted_nanos: self.settled.counted_nanos.wrapping_add(counted),
        }
    }
}

/// Sums that only grow may wrap.
fn wrapping_sum(sum: Cost, more: Cost) -> Cost {
    Cost {
        bytes: sum.bytes.wrapping_add(more.bytes),
        operations: sum.operations.wrapping_add(more.operations),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meters::Meters;
    use crate::queue::ClientKey;
    use crate::rate::Iops;
    use crate::wait_queue::Demand;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Mono {
        Mono(seconds * SECOND)
    }

    fn reading(observed: &Observed, seconds: u64) -> Reading {
        let mut reading = Reading { at: at(seconds), ..Reading::default() };
        observed.add_to(&mut reading);
        reading
    }

    #[test]
    fn each_limit_yields_for_as_long_as_it_was_in_force() {
        let mut observed = Observed::new(Limits::of(BytesPerSecond(100)));
        observed
            .set_limits(Limits { iops: Some(Iops(10)), ..Limits::of(BytesPerSecond(50)) }, at(2));
        observed.set_floor(Some(BytesPerSecond(20)), at(4));
        let after = reading(&observed, 5);
        assert_eq!(after.due, Cost { bytes: 200 + 150, operations: 30 });
        assert_eq!(
            (after.lent, after.counted_nanos),
            (Cost { bytes: 30, operations: 0 }, 3 * SECOND)
        );
        observed.set_floor(None, at(5));
        assert_eq!(reading(&observed, 6).lent, Cost { bytes: 30, operations: 0 });
    }

    #[test]
    fn the_time_of_waiting_requests_is_summed_and_the_time_in_which_any_waits_counts_once() {
        let limits = Limits::of(BytesPerSecond(100));
        let (mut observed, meters) = (Observed::new(limits), Meters::new(limits));
        let mut line: WaitQueue<u8, ()> = WaitQueue::new();
        observed.until(at(1), &line);
        let cost = Cost::of(70);
        for connection in [1, 2] {
            let client = ClientKey(1);
            line.push(&meters, Demand { client, connection, cost, file: None, pinned: 1 }, ());
            observed.queued(cost);
        }
        observed.until(at(3), &line);
        observed.released(cost);
        let seen = reading(&observed, 3);
        assert_eq!((seen.asked_nanos, seen.wait_nanos), (2 * SECOND, 4 * SECOND));
        assert_eq!((seen.offered, seen.passed), (Cost { bytes: 140, operations: 2 }, cost));
    }
}
