//! The meters of one volume: bytes, and operations where its contract counts them. The tightest
//! limit binds: a request goes when every meter admits it, and is charged to all of them.
//!
//! # What it guarantees
//!
//! On the fast path each [`Meter`] keeps its own rule independent of the others, so while no
//! request waits, no window gets more than any meter permits.
//!
//! While requests are queued, one limit may block the queue although the other would admit a
//! request: 1 MiB at 4 MiB/s is paid for in 250 ms. Such delays must not count as idle time of the
//! other meter. So if both limits are set, the lag of each meter is extended from 50 ms to the
//! longest delay that either has imposed (`two_limits.rs`). A request goes when
//! all charges before it are paid for, so a delay is at most the time that the slower meter takes
//! for one largest request.
//!
//! Let `r` be a meter's rate, `L` its largest request, and `T` the longest time in which any of the
//! meters pays for one request. By the argument of [`meter`](crate::meter) at most `r · (b − a) + r
//! · (50 ms + T) + L` go in any window `(a, b]`, and `r · (b − a) + r · 50 ms + L` where the other
//! meter never binds. If both limits bind alternately, at least one is used up, as long as no delay
//! exceeds the extension; see [`Queue`](crate::Queue) for the order.
//!
//! # Credits
//!
//! Operations with bursts are charged twice: to a meter of the burst rate, and to one of the base
//! rate that saves unused operations up to the maximum of credits. So credits are earned while less
//! than the base rate is used, and each operation above it spends one; without credits, the base
//! rate binds.
//!
//! # What it costs
//!
//! A volume whose contract counts no operations pays for one atomic word: the flags that tell
//! whether there is more to charge are in the cache line of that word.

use core::fmt;

use weir_core::Mono;

use crate::limits::{Burst, Limits};
use crate::meter::{CATCH_UP_NANOS, Meter, RateSlice};
use crate::rate::{BytesPerSecond, Iops};
use crate::sync::{AtomicU8, Ordering};
use crate::two_limits::{CatchUp, Refusal, Resource, TwoLimits, Weight};

/// The charge of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Payload, in bytes.
    pub bytes: u64,
    /// A READ or WRITE is one operation, and others are where the model counts them; a free request
    /// is none.
    pub operations: u64,
}

impl Cost {
    /// No charge.
    pub const ZERO: Self = Self { bytes: 0, operations: 0 };

    /// One operation that moves `bytes`.
    #[must_use]
    pub const fn of(bytes: u64) -> Self {
        Self { bytes, operations: 1 }
    }

    /// The cost where operations are not counted.
    #[must_use]
    pub const fn uncounted(self) -> Self {
        Self { operations: 0, ..self }
    }
}

/// The most that one operation weighs, in bytes: as shares are sums of weights, they stay exact for
/// longer than any server runs, whatever the limits are.
const OPERATION_WEIGHT_MAX: u64 = 1 << 24;

/// The meters of one volume, shared by all threads.
pub struct Meters {
    bytes: Meter<Flags>,
    /// A meter counts units; here an operation is one. Charged only if operations are counted.
    operations: Meter,
    /// Charged only if operations come in bursts.
    credits: Meter,
    two_limits: TwoLimits,
}

/// Facts about a volume that an admission reads. They are kept beside its meter of bytes, whose
/// cache line is loaded anyway.
#[derive(Debug, Default)]
struct Flags(AtomicU8);

impl Flags {
    /// Operations are limited too.
    const COUNTS_OPERATIONS: u8 = 1;
    /// The operations come in bursts, as long as there are credits.
    const BURSTS: u8 = 2;
    /// The volume shares the budget of its pool.
    const SHARED: u8 = 4;
    /// A charge was taken back: a request that was refused meanwhile may be admitted earlier than
    /// it was told.
    const TOOK_BACK: u8 = 8;

    fn has(&self, flag: u8) -> bool {
        self.0.load(Ordering::Relaxed) & flag != 0
    }

    fn set(&self, flag: u8, on: bool) {
        match on {
            true => self.0.fetch_or(flag, Ordering::Release),
            false => self.0.fetch_and(!flag, Ordering::Release),
        };
    }
}

impl Meters {
    /// Meters that start with their full catch-up credit, and with full credits for bursts.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let meters = Self {
            bytes: Meter::beside(RateSlice::owned(limits.rate), Flags::default()),
            operations: Meter::new(operations(limits.iops)),
            credits: Meter::new(credits(limits.burst)),
            two_limits: TwoLimits::default(),
        };
        meters.flag(Flags::COUNTS_OPERATIONS, limits.iops.is_some());
        meters.flag(Flags::BURSTS, limits.burst.is_some());
        meters
    }

    /// Admits a request and charges it, if no request waits and all limits allow it now. Returns
    /// the charge, which is the most that may be [refunded](Self::refund): no operations where they
    /// are not counted. On `None` nothing is charged: put the request into the volume's
    /// [`Queue`](crate::Queue).
    ///
    /// Any number of threads may call at once; together they never get more than one would.
    #[must_use]
    pub fn try_take(&self, cost: Cost, now: Mono) -> Option<Cost> {
        if !self.counts_operations() {
            return self.bytes.try_take(cost.bytes, now).then(|| cost.uncounted());
        }
        let catch_up = self.catch_up(now);
        if !self.bytes.try_take_held(cost.bytes, now, catch_up.bytes) {
            return None;
        }
        let rest = self.take_operations(cost.operations, now, catch_up.operations);
        if rest.is_err() {
            self.take_back(cost.bytes, now);
        }
        rest.is_ok().then_some(cost)
    }

    /// Like [`try_take`](Self::try_take) for a volume that shares the `budget` of its pool, which
    /// must admit the request too and is charged as well.
    #[must_use]
    pub fn try_take_with(&self, budget: &Self, cost: Cost, now: Mono) -> Option<Cost> {
        let charged = self.try_take(cost, now)?;
        if budget.try_take(cost, now).is_some() {
            return Some(charged);
        }
        self.refund(Cost { bytes: 0, ..charged }, now, now);
        self.take_back(charged.bytes, now);
        None
    }

    /// Like [`try_take`](Self::try_take) for the waiting request whose turn it is.
    ///
    /// # Errors
    /// The time to retry, and the meter that refused.
    pub(crate) fn take_waiting(&self, cost: Cost, now: Mono) -> Result<Cost, Refusal> {
        if !self.counts_operations() {
            let taken = self.bytes.take_waiting(cost.bytes, now, 0);
            let refused = |until| Refusal { until, by: Resource::Bytes };
            return taken.map(|()| cost.uncounted()).map_err(refused);
        }
        let catch_up = self.catch_up(now);
        let taken = self.bytes.take_waiting(cost.bytes, now, catch_up.bytes);
        let taken = taken.map_err(|until| Refusal { until, by: Resource::Bytes }).and_then(|()| {
            self.take_operations(cost.operations, now, catch_up.operations).map_err(|until| {
                // The fast path is closed, so no other thread was refused meanwhile.
                self.bytes.refund(cost.bytes, now, now);
                Refusal { until, by: Resource::Operations }
            })
        });
        if let Err(refusal) = taken {
            self.two_limits.refused(refusal, now);
        }
        taken.map(|()| cost)
    }

    /// Charges the operations of a request whose bytes were charged; a refusal names the time to
    /// retry.
    fn take_operations(&self, operations: u64, now: Mono, held_nanos: u64) -> Result<(), Mono> {
        self.operations.take_waiting(operations, now, held_nanos)?;
        if !self.flags().has(Flags::BURSTS) {
            return Ok(());
        }
        let taken = self.credits.take_waiting(operations, now, 0);
        taken.inspect_err(|_| self.operations.refund(operations, now, now))
    }

    /// The extension of each meter's lag beyond its 50 ms at `now`; none if only bytes are limited.
    pub(crate) fn catch_up(&self, now: Mono) -> CatchUp {
        match self.counts_operations() {
            true => self.two_limits.catch_up(now),
            false => CatchUp::default(),
        }
    }

    /// The resource that the next waiting request should take more of, if two limits bind
    /// alternately: the less used one.
    pub(crate) fn preferred(&self, now: Mono) -> Option<Resource> {
        let alternate = self.counts_operations() && self.two_limits.must_alternate(now);
        alternate.then(|| match self.bytes.is_ahead_of(&self.operations) {
            true => Resource::Operations,
            false => Resource::Bytes,
        })
    }

    /// Refunds a charge of bytes that was made at `now` on the fast path, and notes that for
    /// [`took_back`](Self::took_back).
    fn take_back(&self, bytes: u64, now: Mono) {
        self.bytes.refund(bytes, now, now);
        self.flag(Flags::TOOK_BACK, true);
    }

    /// Whether a charge was taken back since the last call: a request that was refused meanwhile
    /// may be admitted earlier than it was told. A push to the queue checks this too.
    #[must_use]
    pub fn took_back(&self) -> bool {
        let took_back = self.flags().has(Flags::TOOK_BACK);
        took_back
            && self.flags().0.fetch_and(!Flags::TOOK_BACK, Ordering::AcqRel) & Flags::TOOK_BACK != 0
    }

    /// Refunds at `now` the unused part of a charge that [`try_take`](Self::try_take) or the queue
    /// made at `charged_at`: the bytes that the request didn't transfer, and the operation if it
    /// failed. See [`Meter::refund`].
    pub fn refund(&self, cost: Cost, charged_at: Mono, now: Mono) {
        if cost.bytes > 0 {
            self.bytes.refund(cost.bytes, charged_at, now);
        }
        if cost.operations > 0 {
            self.operations.refund(cost.operations, charged_at, now);
            if self.flags().has(Flags::BURSTS) {
                self.credits.refund(cost.operations, charged_at, now);
            }
        }
    }

    /// Bytes admitted by `now` that the limit has not yielded yet, never much more than one
    /// request.
    #[must_use]
    pub fn owed_bytes(&self, now: Mono) -> u64 {
        self.bytes.owed(now)
    }

    /// The remaining credits for bursts; none if operations don't come in bursts.
    #[must_use]
    pub fn credits(&self, now: Mono) -> Option<u64> {
        self.flags().has(Flags::BURSTS).then(|| self.credits.saved(now))
    }

    /// Restores saved credits. Call this before the first request is admitted, because it forgets
    /// all debts.
    pub fn set_credits(&self, credits: u64, now: Mono) {
        self.credits.save(credits, now);
    }

    /// Puts other limits in force for the next decision. Debts remain in bytes and operations, and
    /// credits remain up to the new maximum; if operations come in bursts from now on, credits are
    /// full; see [`Meter::set_slice`]. Operations that were not counted before owe nothing.
    ///
    /// [Reweigh](crate::Queue::reweigh) and poll the queue afterwards.
    pub fn set(&self, limits: Limits, now: Mono) {
        // These delays are those of the old limits.
        self.two_limits.clear();
        if limits.iops.is_some() {
            self.operations.set_slice(operations(limits.iops), now);
        }
        if let Some(burst) = limits.burst {
            self.credits.set_slice(credits(limits.burst), now);
            if !self.flags().has(Flags::BURSTS) {
                self.set_credits(burst.credits, now);
            }
        }
        self.flag(Flags::BURSTS, limits.burst.is_some());
        self.flag(Flags::COUNTS_OPERATIONS, limits.iops.is_some());
        self.bytes.set_slice(RateSlice::owned(limits.rate), now);
    }

    /// Whether these meters are at `now` like new ones with the same limits.
    pub(crate) fn is_settled(&self, now: Mono) -> bool {
        let bytes = self.bytes.is_settled(now);
        let operations = || self.operations.is_settled(now) && !self.two_limits.is_in_force(now);
        bytes && (!self.counts_operations() || operations())
    }

    /// Whether every operation counts, also those that neither read nor write: where there are
    /// bursts, as Azure Files counts them.
    #[must_use]
    pub fn counts_metadata(&self) -> bool {
        self.counts_operations() && self.flags().has(Flags::BURSTS)
    }

    /// Whether operations are counted, so that a request without bytes needs admission too.
    #[must_use]
    pub fn counts_operations(&self) -> bool {
        self.flags().has(Flags::COUNTS_OPERATIONS)
    }

    /// Whether the volume shares the budget of its pool, so that its requests are admitted by
    /// [`try_take_with`](Self::try_take_with).
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.flags().has(Flags::SHARED)
    }

    /// Sets whether the volume shares the budget of its pool.
    pub fn set_shared(&self, shared: bool) {
        self.flag(Flags::SHARED, shared);
    }

    fn flags(&self) -> &Flags {
        self.bytes.neighbour()
    }

    fn flag(&self, flag: u8, on: bool) {
        self.flags().set(flag, on);
    }

    /// Whether a request waits, so that a limit holds the volume back at present.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.bytes.is_waiting()
    }

    /// Closes (`true`) or opens the fast path. The queue does it, under its caller's mutex.
    pub(crate) fn set_waiting(&self, waiting: bool) {
        self.bytes.set_waiting(waiting);
    }

    /// The part of the contract that a request takes: its bytes or, if that is more, the rate's
    /// yield in the time that its operations take. Shares are fair by weight, so they are fair in
    /// operations where operations bind, and in bytes where bytes bind.
    pub(crate) fn weight(&self, cost: Cost) -> Weight {
        let part = self.per_operation().saturating_mul(cost.operations);
        match part > cost.bytes {
            true => Weight { bytes: part, resource: Resource::Operations },
            false => Weight::of(cost.bytes),
        }
    }

    /// The least weight of one operation, in bytes.
    pub(crate) fn per_operation(&self) -> u64 {
        match self.counts_operations() {
            true => self.bytes.yields(self.lasting().takes(1)).min(OPERATION_WEIGHT_MAX),
            false => 0,
        }
    }

    /// The meter of the operations that are permitted permanently: that of the base rate, unless a
    /// ceiling is lower.
    fn lasting(&self) -> &Meter {
        let base_binds = || self.credits.takes(1) > self.operations.takes(1);
        match self.flags().has(Flags::BURSTS) && base_binds() {
            true => &self.credits,
            false => &self.operations,
        }
    }

    /// The rate's yield in `nanos`, in bytes.
    pub(crate) fn yields(&self, nanos: u64) -> u64 {
        self.bytes.yields(nanos)
    }

    /// Time that the rate takes for `bytes`, in nanoseconds.
    pub(crate) fn takes(&self, bytes: u64) -> u64 {
        self.bytes.takes(bytes)
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = self.counts_operations().then_some(&self.operations);
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

/// The slice of a meter of credits. It saves the 50 ms of every meter beside them.
fn credits(burst: Option<Burst>) -> RateSlice {
    let Some(Burst { base, credits }) = burst else {
        return RateSlice::owned(BytesPerSecond::ZERO);
    };
    let nanos = (u128::from(credits) * 1_000_000_000).div_ceil(u128::from(base.0).max(1));
    let saved_nanos = u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(CATCH_UP_NANOS);
    RateSlice { saved_nanos, ..RateSlice::owned(BytesPerSecond(base.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;
    const SECOND: Mono = Mono(1_000_000_000);

    fn limits(rate: u64, iops: u64) -> Limits {
        Limits { iops: (iops > 0).then_some(Iops(iops)), ..Limits::of(BytesPerSecond(rate)) }
    }

    fn at(milli: u64) -> Mono {
        Mono(SECOND.0 + milli * MILLI)
    }

    /// Requests of `bytes` that go at once, of 1,000.
    fn at_once(meters: &Meters, bytes: u64, now: Mono) -> u64 {
        (0..1000).map(|_| u64::from(meters.try_take(Cost::of(bytes), now).is_some())).sum()
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
        assert!(meters.try_take(Cost::of(10), SECOND).is_some());
        for _ in 0..100 {
            assert!(meters.try_take(Cost::of(10), SECOND).is_none(), "one operation a second");
        }
        assert_eq!(meters.bytes.take_waiting(30, SECOND, 0), Ok(()), "10 of the 50 are used");
        let refusal = Refusal { until: at(950), by: Resource::Operations };
        assert_eq!(meters.take_waiting(Cost::of(1), at(5)), Err(refusal));
        assert_eq!(
            meters.bytes.take_waiting(20, at(5), 0),
            Ok(()),
            "10 of 50 were left, and 5 came"
        );
    }

    #[test]
    fn a_request_without_bytes_is_an_operation_all_the_same() {
        let meters = Meters::new(limits(1_000, 100));
        assert_eq!(at_once(&meters, 0, SECOND), 6);
        assert!(meters.try_take(Cost::ZERO, at(100)).is_some());
        assert_eq!(at_once(&meters, 0, at(100)), 6, "what is free cost nothing");
    }

    #[test]
    fn a_failed_operation_is_given_back_whole_and_a_short_one_in_bytes() {
        let meters = Meters::new(limits(1_000, 1));
        assert!(meters.try_take(Cost::of(500), SECOND).is_some());
        meters.refund(Cost::of(500), SECOND, SECOND);
        assert!(meters.try_take(Cost::of(500), SECOND).is_some());
        meters.refund(Cost { bytes: 500, operations: 0 }, SECOND, SECOND);
        assert!(meters.try_take(Cost::of(1), at(900)).is_none(), "it was an operation");
        assert_eq!(meters.bytes.take_waiting(1, at(900), 0), Ok(()), "its bytes came back");
    }

    #[test]
    fn a_change_is_in_force_for_the_next_decision() {
        let meters = Meters::new(limits(1_000_000, 1));
        assert!(meters.try_take(Cost::of(1), SECOND).is_some());
        assert!(meters.try_take(Cost::of(1), SECOND).is_none());
        meters.set(limits(1_000_000, 0), SECOND);
        assert_eq!(at_once(&meters, 1, SECOND), 1000);
        assert!(!meters.counts_operations());
        meters.set(limits(1_000_000, 100), SECOND);
        assert!(at_once(&meters, 1, SECOND) <= 6);
        // A charge at one operation a second is paid for at 100 of them.
        let meters = Meters::new(limits(1_000_000, 1));
        assert!(meters.try_take(Cost::of(1), SECOND).is_some());
        meters.set(limits(1_000_000, 100), SECOND);
        assert_eq!(
            meters.take_waiting(Cost::of(1), SECOND).map_err(|refusal| refusal.until),
            Err(Mono(SECOND.0 + 19 * MILLI / 2))
        );
    }

    #[test]
    fn a_request_weighs_what_it_takes_of_the_contract() {
        let weigh = |meters: &Meters, cost| {
            let Weight { bytes, resource } = meters.weight(cost);
            (bytes, resource)
        };
        let meters = Meters::new(limits(16_000, 4));
        let weights = [0, 3_999, 4_000, 4_001].map(|bytes| weigh(&meters, Cost::of(bytes)));
        let few = (4_000, Resource::Operations);
        assert_eq!(weights, [few, few, (4_000, Resource::Bytes), (4_001, Resource::Bytes)]);
        assert_eq!(weigh(&meters, Cost::ZERO), (0, Resource::Bytes));
        assert_eq!(weigh(&Meters::new(limits(16_000, 0)), Cost::of(1)), (1, Resource::Bytes));
        // Absurd limits don't make sums of weights overflow.
        let absurd = Meters::new(limits(u64::MAX, 1));
        assert_eq!(weigh(&absurd, Cost::of(1)), (16 << 20, Resource::Operations));
        assert_eq!(weigh(&absurd, Cost::of(32 << 20)), (32 << 20, Resource::Bytes));
    }

    #[test]
    fn what_was_not_charged_is_not_given_back() {
        let meters = Meters::new(limits(1_000_000, 0));
        let charged = meters.try_take(Cost::of(1), SECOND).unwrap();
        assert_eq!(charged, Cost { bytes: 1, operations: 0 });
        meters.set(limits(1_000_000, 1), SECOND);
        assert!(meters.try_take(Cost::of(1), SECOND).is_some());
        meters.refund(charged, SECOND, SECOND);
        assert!(meters.try_take(Cost::of(1), at(900)).is_none(), "one operation a second");
        // A charge made while operations were counted goes back to them also later on.
        let meters = Meters::new(limits(1_000_000, 1));
        let charged = meters.try_take(Cost::of(1), SECOND).unwrap();
        meters.set(limits(1_000_000, 0), SECOND);
        meters.refund(charged, SECOND, SECOND);
        meters.set(limits(1_000_000, 1), SECOND);
        assert!(meters.try_take(Cost::of(1), SECOND).is_some());
    }

    #[test]
    fn a_meter_lags_by_what_another_held_it_up() {
        let refused = |by, until, delay| (Refusal { until: at(until), by }, at(until - delay));
        let after = |refusals: &[(Refusal, Mono)], limits| {
            let meters = Meters::new(limits);
            refusals.iter().for_each(|(refusal, now)| meters.two_limits.refused(*refusal, *now));
            meters
        };
        let in_a_row = |refusals: &[_]| {
            let (meters, now) = (after(refusals, limits(1000, 100)), at(10_000));
            (0..100).take_while(|_| meters.take_waiting(Cost::of(0), now).is_ok()).count()
        };
        assert_eq!(in_a_row(&[]), 6, "50 ms and one");
        let by_operations = refused(Resource::Operations, 10_000, 200);
        assert_eq!(in_a_row(&[by_operations]), 6, "a meter's own delays are no time lost");
        let earlier = refused(Resource::Bytes, 9_949, 1);
        assert_eq!(in_a_row(&[by_operations, earlier]), 6, "that was long ago");
        let recent = refused(Resource::Bytes, 9_950, 1);
        assert_eq!(in_a_row(&[by_operations, recent]), 26, "250 ms and one");
        let separate = refused(Resource::Bytes, 9_000, 800);
        assert_eq!(in_a_row(&[separate, recent]), 6, "1 ms and 50 ms, and one");
        // Without a limit on operations bytes have their 50 ms, whatever was refused.
        let meters = after(&[by_operations, recent], limits(1000, 0));
        assert_eq!(meters.take_waiting(Cost::of(50), at(10_000)).map(|_| ()), Ok(()));
        assert_eq!(meters.take_waiting(Cost::of(1), at(10_000)).map(|_| ()), Ok(()));
        assert!(meters.take_waiting(Cost::of(1), at(10_000)).is_err());
    }

    #[test]
    fn whoever_was_refused_by_a_charge_that_was_taken_back_is_to_ask_again() {
        let meters = Meters::new(limits(1_000, 1));
        assert!(meters.try_take(Cost::of(1), SECOND).is_some());
        assert!(!meters.took_back());
        assert!(meters.try_take(Cost::of(1), SECOND).is_none());
        assert!(meters.took_back() && !meters.took_back());
    }

    fn bursting(base: u64, burst: u64, credits: u64) -> Limits {
        let burst_of = Burst { base: Iops(base), credits };
        Limits { burst: Some(burst_of), ..limits(1 << 40, burst) }
    }

    /// Operations that go within `seconds` when one is asked for each 0.1 ms.
    fn within(meters: &Meters, from: u64, seconds: u64) -> u64 {
        let tries =
            (from * 10_000..(from + seconds) * 10_000).map(|try_| SECOND.0 + try_ * 100_000);
        tries.map(|now| u64::from(meters.try_take(Cost::of(1), Mono(now)).is_some())).sum()
    }

    #[test]
    fn bursts_last_as_long_as_there_are_credits() {
        let meters = Meters::new(bursting(100, 1000, 3600));
        assert_eq!(meters.credits(SECOND), Some(3600));
        // 900 beyond the base in each second: 3,600 credits last 4 s.
        let first = within(&meters, 0, 4);
        assert!(first.abs_diff(4000) <= 51, "{first}");
        assert!(meters.credits(at(4000)).unwrap() <= 50);
        let then = within(&meters, 4, 10);
        assert!(then.abs_diff(1000) <= 51, "{then}");
        // Earned while idle, and never more than the most.
        let earned = meters.credits(at(24_000)).unwrap();
        assert!(earned.abs_diff(1000) <= 6, "{earned}");
        assert_eq!(meters.credits(at(1_000_000)), Some(3600));
    }

    #[test]
    fn credits_are_kept_set_and_changed_as_operations() {
        let meters = Meters::new(bursting(100, 1000, 3600));
        meters.set_credits(7, SECOND);
        assert_eq!(meters.credits(SECOND), Some(7));
        meters.set_credits(5000, SECOND);
        assert_eq!(meters.credits(SECOND), Some(3600), "no more than the most");
        meters.set(bursting(200, 1000, 1000), SECOND);
        assert_eq!(meters.credits(SECOND), Some(1000));
        meters.set_credits(300, SECOND);
        meters.set(bursting(50, 1000, 7000), SECOND);
        assert!(meters.credits(SECOND).unwrap().abs_diff(300) <= 8);
        meters.set(limits(1 << 40, 100), SECOND);
        assert_eq!(meters.credits(SECOND), None);
        meters.set(bursting(50, 1000, 7000), SECOND);
        assert_eq!(meters.credits(SECOND), Some(7000), "full at birth");
    }

    #[test]
    fn a_failed_operation_gives_its_credit_back() {
        let meters = Meters::new(bursting(1, 1000, 10));
        let charged = meters.try_take(Cost::of(1), SECOND).unwrap();
        assert_eq!(meters.credits(SECOND), Some(9));
        meters.refund(charged, SECOND, SECOND);
        assert_eq!(meters.credits(SECOND), Some(10));
    }
}
