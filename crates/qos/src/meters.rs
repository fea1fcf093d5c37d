//! All that a volume's requests are charged to: bytes, and operations where its contract counts them.
//! The tightest binds: a request goes when every meter lets it, and is charged to all of them.
//!
//! # What it guarantees
//!
//! Each [`Meter`] keeps its own rule, whatever the others do, so no window gets more than any of
//! them permits. While somebody waits, the tightest loses nothing: the others, which yield more than
//! is asked of them, stand at most their 50 ms behind and so never hold it up. Where two bind by turns,
//! because sizes change from one moment to the next, what one of them yields while the other
//! binds is lost beyond its 50 ms, as it is in the services that have both limits.
//!
//! # What it costs
//!
//! A volume whose contract counts no operations pays for one atomic word, as it did before there was
//! anything else to charge: whether there is more stands in the cache line of that word.

use core::fmt;

use weir_core::Mono;

use crate::contract::Limits;
use crate::meter::{Meter, RateSlice};
use crate::rate::{BytesPerSecond, Iops};

/// What a request is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Payload, in bytes.
    pub bytes: u64,
    /// READs and WRITEs are one operation each; what is free counts none.
    pub operations: u64,
}

impl Cost {
    /// Nothing at all.
    pub const ZERO: Self = Self { bytes: 0, operations: 0 };

    /// One operation that moves `bytes`.
    #[must_use]
    pub const fn of(bytes: u64) -> Self {
        Self { bytes, operations: 1 }
    }
}

/// The meters of one volume, shared by all threads.
pub struct Meters {
    bytes: Meter,
    /// Charged only while the other says that it has company. A meter counts units; here an
    /// operation is one.
    operations: Meter,
}

impl Meters {
    /// Meters that start with their full catch-up credit.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let meters = Self {
            bytes: Meter::new(RateSlice::owned(limits.rate)),
            operations: Meter::new(operations(limits.iops)),
        };
        meters.bytes.set_company(limits.iops.is_some());
        meters
    }

    /// Admits a request and charges it, if nobody waits and all limits allow it now. On `false`
    /// nothing is charged: put the request into the volume's [`Queue`](crate::Queue).
    ///
    /// Any number of threads may call at once; together they never get more than one would.
    #[must_use]
    pub fn try_take(&self, cost: Cost, now: Mono) -> bool {
        self.bytes.try_take(cost.bytes, now)
            && (!self.bytes.has_company() || self.take_rest(cost, now).is_ok())
    }

    /// Like [`try_take`](Self::try_take) for the waiter whose turn it is; on refusal says when to
    /// ask again.
    pub(crate) fn take_waiting(&self, cost: Cost, now: Mono) -> Result<(), Mono> {
        self.bytes.take_waiting(cost.bytes, now)?;
        match self.bytes.has_company() {
            true => self.take_rest(cost, now),
            false => Ok(()),
        }
    }

    /// Charges the operations of a request that was charged its bytes, or takes those back.
    fn take_rest(&self, cost: Cost, now: Mono) -> Result<(), Mono> {
        self.operations.take_waiting(cost.operations, now).inspect_err(|_| {
            self.bytes.refund(cost.bytes);
        })
    }

    /// Gives back what a request was charged and did not use: the bytes that it didn't move, and the
    /// operation if it failed. See [`Meter::refund`].
    pub fn refund(&self, cost: Cost) {
        if cost.bytes > 0 {
            self.bytes.refund(cost.bytes);
        }
        if cost.operations > 0 && self.bytes.has_company() {
            self.operations.refund(cost.operations);
        }
    }

    /// Puts other limits in force: the next decision is made by them. What is owed stays owed in
    /// bytes and operations; see [`Meter::set_slice`]. Operations that were not counted until now owe
    /// nothing.
    ///
    /// Ask the queue again afterwards.
    pub fn set(&self, limits: Limits, now: Mono) {
        if limits.iops.is_some() {
            self.operations.set_slice(operations(limits.iops), now);
        }
        self.bytes.set_company(limits.iops.is_some());
        self.bytes.set_slice(RateSlice::owned(limits.rate), now);
    }

    /// Whether operations are counted, so that also one that moves no byte has to ask.
    #[must_use]
    pub fn counts_operations(&self) -> bool {
        self.bytes.has_company()
    }

    /// Whether somebody waits, so that a limit is what holds the volume back at this moment.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.bytes.is_waiting()
    }

    /// Closes (`true`) or opens the fast path. The queue does it, under its caller's mutex.
    pub(crate) fn set_waiting(&self, waiting: bool) {
        self.bytes.set_waiting(waiting);
    }

    /// What a request takes of the contract, in bytes: those that it moves or, if that is more, what the
    /// rate yields in the time that its operations take. Shares are fair by this, so they are
    /// fair in operations where those bind, and in bytes where these do.
    pub(crate) fn weight(&self, cost: Cost) -> u64 {
        match self.bytes.has_company() {
            true => cost.bytes.max(self.bytes.yields(self.operations.takes(cost.operations))),
            false => cost.bytes,
        }
    }

    /// What the rate yields in `nanos`, in bytes.
    pub(crate) fn yields(&self, nanos: u64) -> u64 {
        self.bytes.yields(nanos)
    }

    /// How long the rate takes for `bytes`, in nanoseconds.
    pub(crate) fn takes(&self, bytes: u64) -> u64 {
        self.bytes.takes(bytes)
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = self.bytes.has_company().then_some(&self.operations);
        f.debug_struct("Meters")
            .field("bytes", &self.bytes)
            .field("operations", &operations)
            .finish()
    }
}

/// The slice of a meter of operations.
fn operations(iops: Option<Iops>) -> RateSlice {
    RateSlice::owned(BytesPerSecond(iops.map_or(0, |iops| iops.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;
    const SECOND: Mono = Mono(1_000_000_000);

    fn limits(rate: u64, iops: u64) -> Limits {
        Limits { rate: BytesPerSecond(rate), iops: (iops > 0).then_some(Iops(iops)) }
    }

    fn at(milli: u64) -> Mono {
        Mono(SECOND.0 + milli * MILLI)
    }

    /// Requests of `bytes` that go at once, of 1,000.
    fn at_once(meters: &Meters, bytes: u64, now: Mono) -> u64 {
        (0..1000).map(|_| u64::from(meters.try_take(Cost::of(bytes), now))).sum()
    }

    #[test]
    fn the_tightest_limit_binds() {
        // 50 ms of either and the one that passes the mark.
        assert_eq!(at_once(&Meters::new(limits(1_000_000, 100)), 1, SECOND), 6);
        assert_eq!(at_once(&Meters::new(limits(1_000_000, 100)), 10_000, SECOND), 6);
        assert_eq!(at_once(&Meters::new(limits(1_000_000, 100)), 25_000, SECOND), 3);
        assert_eq!(at_once(&Meters::new(limits(1_000_000, 0)), 1, SECOND), 1000);
    }

    #[test]
    fn what_one_meter_refuses_is_charged_to_none() {
        let meters = Meters::new(limits(1_000, 1));
        assert!(meters.try_take(Cost::of(10), SECOND));
        for _ in 0..100 {
            assert!(!meters.try_take(Cost::of(10), SECOND), "one operation a second");
        }
        assert_eq!(meters.bytes.take_waiting(30, SECOND), Ok(()), "10 of the 50 are used");
        assert_eq!(meters.take_waiting(Cost::of(1), at(5)), Err(at(950)));
        assert_eq!(meters.bytes.take_waiting(20, at(5)), Ok(()), "10 of 50 were left, and 5 came");
    }

    #[test]
    fn a_request_without_bytes_is_an_operation_all_the_same() {
        let meters = Meters::new(limits(1_000, 100));
        assert_eq!(at_once(&meters, 0, SECOND), 6);
        assert!(meters.try_take(Cost::ZERO, at(100)));
        assert_eq!(at_once(&meters, 0, at(100)), 6, "what is free cost nothing");
    }

    #[test]
    fn a_failed_operation_is_given_back_whole_and_a_short_one_in_bytes() {
        let meters = Meters::new(limits(1_000, 1));
        assert!(meters.try_take(Cost::of(500), SECOND));
        meters.refund(Cost::of(500));
        assert!(meters.try_take(Cost::of(500), SECOND));
        meters.refund(Cost { bytes: 500, operations: 0 });
        assert!(!meters.try_take(Cost::of(1), at(900)), "it was an operation");
        assert_eq!(meters.bytes.take_waiting(1, at(900)), Ok(()), "its bytes came back");
    }

    #[test]
    fn a_change_is_in_force_for_the_next_decision() {
        let meters = Meters::new(limits(1_000_000, 1));
        assert!(meters.try_take(Cost::of(1), SECOND));
        assert!(!meters.try_take(Cost::of(1), SECOND));
        meters.set(limits(1_000_000, 0), SECOND);
        assert_eq!(at_once(&meters, 1, SECOND), 1000);
        assert!(!meters.counts_operations());
        meters.set(limits(1_000_000, 100), SECOND);
        assert!(at_once(&meters, 1, SECOND) <= 6);
        // What was taken at one operation a second is paid for at 100 of them.
        let meters = Meters::new(limits(1_000_000, 1));
        assert!(meters.try_take(Cost::of(1), SECOND));
        meters.set(limits(1_000_000, 100), SECOND);
        assert_eq!(meters.take_waiting(Cost::of(1), SECOND), Err(Mono(SECOND.0 + 19 * MILLI / 2)));
    }

    #[test]
    fn a_request_weighs_what_it_takes_of_the_contract() {
        let meters = Meters::new(limits(16_000, 4));
        let weights = [0, 1, 4_000, 4_001].map(|bytes| meters.weight(Cost::of(bytes)));
        assert_eq!(weights, [4_000, 4_000, 4_000, 4_001]);
        assert_eq!(meters.weight(Cost::ZERO), 0);
        assert_eq!(Meters::new(limits(16_000, 0)).weight(Cost::of(1)), 1);
    }
}
