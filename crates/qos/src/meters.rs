//! All that a volume's requests are charged to: bytes, and operations where its contract counts
//! them. The tightest binds: a request goes when every meter lets it, and is charged to all of
//! them.
//!
//! # What it guarantees
//!
//! Each [`Meter`] keeps its own rule on the fast path, whatever the others do, so where nobody
//! waited no window gets more than any of them permits.
//!
//! While somebody waits, one meter may hold up the other: 1 MiB at 4 MiB/s is paid for in 250 ms,
//! and nothing goes in them, though operations would be allowed. Time in which somebody waited
//! isn't idle time. So while somebody waits, and operations are counted, a meter may lag by 50 ms
//! and, until 50 ms after *the other* has refused anybody, by the longest time for which either did
//! since the queue was last empty. A request goes when all is paid for that went before it, so that
//! is at most the time that the slower meter takes for one largest request. A client with one
//! request at a time empties the queue with each, and what it was held up for is for the next ones:
//! so the same holds on the fast path, and for the next who waits, for 50 ms after the queue has
//! run empty.
//!
//! Let `r` be a meter's rate, `L` its largest request, and `T` the longest time in which any of the
//! meters pays for one request. By the argument of [`meter`](crate::meter) at most `r · (b − a) + r
//! · (50 ms + T) + L` go in any window `(a, b]`, and where the other meter never binds what it is
//! without that: at most `r · (b − a) + r · 50 ms + L`. Where both meters bind by turns at least
//! one is used up, as long as what one holds up is not more than that in a row; see
//! [`Queue`](crate::Queue) for the order.
//!
//! # Credits
//!
//! Operations that come in bursts are charged twice: to a meter of the rate of bursts, and to one
//! of the base rate that saves up unused operations, as far as credits may be saved. So credits are
//! earned while less than the base rate is used, and one is spent for each operation beyond it; if
//! there are none left, the base rate binds.
//!
//! # What it costs
//!
//! A volume whose contract counts no operations pays for one atomic word, as it did before there
//! was anything else to charge: whether there is more stands in the cache line of that word.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use weir_core::Mono;

use crate::limits::{Burst, Limits};
use crate::meter::{CATCH_UP_NANOS, Meter, NEVER, RateSlice};
use crate::rate::{BytesPerSecond, Iops};

/// The charge of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Payload, in bytes.
    pub bytes: u64,
    /// READs and WRITEs are one operation each, and others where the model counts them; what is
    /// free counts none.
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

    /// The cost where operations are not counted.
    #[must_use]
    pub const fn uncounted(self) -> Self {
        Self { operations: 0, ..self }
    }
}

/// The resource that a request takes more of, by the time that the contract has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Bytes, or as much of either.
    Bytes = 0,
    /// Operations.
    Operations = 1,
}

/// The part of the contract that a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    /// The bytes.
    pub(crate) bytes: u64,
    /// The resource that the request takes more of.
    pub(crate) kind: Kind,
}

/// The most that one operation weighs, in bytes: as shares are sums of weights, they stay exact for
/// longer than any server runs, whatever the limits are.
const OPERATION_WEIGHT_MAX: u64 = 1 << 24;

/// The meters of one volume, shared by all threads.
pub struct Meters {
    bytes: Meter,
    /// Charged only while the other says that it has company. A meter counts units; here an
    /// operation is one.
    operations: Meter,
    /// Charged only while that says that it has company.
    credits: Meter,
    held: Held,
}

/// The lag that meters may have behind their 50 ms: the time that one has held up the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lag {
    /// The longest time for which either refused anybody, in nanoseconds.
    pub(crate) longest: u64,
    /// Time until which each meter refused the last request, in nanoseconds.
    bytes_until: u64,
    operations_until: u64,
}

impl Lag {
    /// No lag.
    pub(crate) const ZERO: Self = Self { longest: 0, bytes_until: 0, operations_until: 0 };

    /// Notes a refusal at `now`.
    pub(crate) fn refused(&mut self, refusal: Refusal, now: Mono) {
        let Refusal { until, by } = refusal;
        if until == NEVER {
            return;
        }
        self.longest = self.longest.max(until.0.saturating_sub(now.0));
        match by {
            Kind::Bytes => self.bytes_until = until.0,
            Kind::Operations => self.operations_until = until.0,
        }
    }

    /// Both together.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            longest: self.longest.max(other.longest),
            bytes_until: self.bytes_until.max(other.bytes_until),
            operations_until: self.operations_until.max(other.operations_until),
        }
    }

    /// The lag of the meter of bytes: none unless the other has just held it up.
    pub(crate) fn of_bytes(self, now: Mono) -> u64 {
        self.after(self.operations_until, now)
    }

    /// The lag of the meter of operations.
    pub(crate) fn of_operations(self, now: Mono) -> u64 {
        self.after(self.bytes_until, now)
    }

    fn after(self, until: u64, now: Mono) -> u64 {
        if now.0 <= until.saturating_add(CATCH_UP_NANOS) { self.longest } else { 0 }
    }
}

/// The refusal of the waiter whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Time to ask again.
    pub(crate) until: Mono,
    /// The meter that refused.
    pub(crate) by: Kind,
}

/// For how long one meter held up the other when somebody last waited, and until when that counts:
/// a moment after the queue has run empty those who waited are about to ask again.
#[derive(Debug, Default)]
struct Held {
    longest: AtomicU64,
    bytes_until: AtomicU64,
    operations_until: AtomicU64,
    until: AtomicU64,
}

/// The meter of credits starts as if it had been idle for so long, so that it can start full: 11
/// days, where an hour at full speed is what is ever saved up, and that in 2.4 hours.
const IDLE_NANOS: u64 = 1_000_000_000_000_000;

impl Meters {
    /// Meters that start with their full catch-up credit, and with full credits for bursts.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let meters = Self {
            bytes: Meter::new(RateSlice::owned(limits.rate)),
            operations: Meter::new(operations(limits.iops)),
            credits: Meter::new(credits(limits.burst)),
            held: Held::default(),
        };
        meters.bytes.set_company(limits.iops.is_some());
        meters.operations.set_company(limits.burst.is_some());
        meters
    }

    /// Admits a request and charges it, if nobody waits and all limits allow it now. Says what it
    /// was charged, which is what may be [refunded](Self::refund): no operations where they are not
    /// counted. On `None` nothing is charged: put the request into the volume's
    /// [`Queue`](crate::Queue).
    ///
    /// Any number of threads may call at once; together they never get more than one would.
    #[must_use]
    pub fn try_take(&self, cost: Cost, now: Mono) -> Option<Cost> {
        if !self.bytes.has_company() {
            return self.bytes.try_take(cost.bytes, now).then(|| cost.uncounted());
        }
        let held = self.held(now);
        if !self.bytes.try_take_held(cost.bytes, now, held.of_bytes(now)) {
            return None;
        }
        let rest = self.take_operations(cost.operations, now, held.of_operations(now));
        if rest.is_err() {
            self.bytes.take_back(cost.bytes, now);
        }
        rest.is_ok().then_some(cost)
    }

    /// Like [`try_take`](Self::try_take) for a volume that shares the `budget` of its pool: that
    /// has to let the request go too, and is charged it.
    #[must_use]
    pub fn try_take_with(&self, budget: &Self, cost: Cost, now: Mono) -> Option<Cost> {
        let charged = self.try_take(cost, now)?;
        if budget.try_take(cost, now).is_some() {
            return Some(charged);
        }
        self.refund(Cost { bytes: 0, ..charged }, now, now);
        self.bytes.take_back(charged.bytes, now);
        None
    }

    /// Like [`try_take`](Self::try_take) for the waiter whose turn it is, when meters may `lag` by
    /// so much.
    pub(crate) fn take_waiting(&self, cost: Cost, now: Mono, lag: Lag) -> Result<Cost, Refusal> {
        let by = |by| move |until| Refusal { until, by };
        if !self.bytes.has_company() {
            let taken = self.bytes.take_waiting(cost.bytes, now, 0);
            return taken.map(|()| cost.uncounted()).map_err(by(Kind::Bytes));
        }
        self.bytes.take_waiting(cost.bytes, now, lag.of_bytes(now)).map_err(by(Kind::Bytes))?;
        let rest = self.take_operations(cost.operations, now, lag.of_operations(now));
        if rest.is_err() {
            // Newcomers are refused anyway while somebody waits.
            self.bytes.refund(cost.bytes, now, now);
        }
        rest.map(|()| cost).map_err(by(Kind::Operations))
    }

    /// Charges the operations of a request that was charged its bytes; on refusal says when to ask
    /// again.
    fn take_operations(&self, operations: u64, now: Mono, held_nanos: u64) -> Result<(), Mono> {
        self.operations.take_waiting(operations, now, held_nanos)?;
        if !self.operations.has_company() {
            return Ok(());
        }
        self.credits.take_waiting(operations, idled(now), 0).map_err(|again| {
            self.operations.refund(operations, now, now);
            match again {
                NEVER => NEVER,
                again => Mono(again.0.saturating_sub(IDLE_NANOS)),
            }
        })
    }

    /// The lag that meters had before the queue last ran empty, for 50 ms after that; none where
    /// bytes alone are limited.
    pub(crate) fn held(&self, now: Mono) -> Lag {
        let Held { longest, bytes_until, operations_until, until } = &self.held;
        if !self.bytes.has_company() || now.0 >= until.load(Ordering::Acquire) {
            return Lag::ZERO;
        }
        Lag {
            longest: longest.load(Ordering::Relaxed),
            bytes_until: bytes_until.load(Ordering::Relaxed),
            operations_until: operations_until.load(Ordering::Relaxed),
        }
    }

    /// The queue ran empty, and meters could `lag` by so much since it last was.
    pub(crate) fn keep_held(&self, lag: Lag, now: Mono) {
        if lag != Lag::ZERO && self.bytes.has_company() {
            self.held.longest.store(lag.longest, Ordering::Relaxed);
            self.held.bytes_until.store(lag.bytes_until, Ordering::Relaxed);
            self.held.operations_until.store(lag.operations_until, Ordering::Relaxed);
            self.held.until.store(now.0.saturating_add(CATCH_UP_NANOS), Ordering::Release);
        }
    }

    /// Whether a newcomer was charged and got it back since this was last asked: whoever was
    /// refused meanwhile may go sooner than it was told. The queue asks this too, when the newcomer
    /// is put into it.
    #[must_use]
    pub fn took_back(&self) -> bool {
        self.bytes.took_back()
    }

    /// Gives back at `now` what a request was charged at `charged_at`, as
    /// [`try_take`](Self::try_take) or the queue said, and did not use: the bytes that it didn't
    /// move, and the operation if it failed. See [`Meter::refund`].
    pub fn refund(&self, cost: Cost, charged_at: Mono, now: Mono) {
        if cost.bytes > 0 {
            self.bytes.refund(cost.bytes, charged_at, now);
        }
        if cost.operations > 0 {
            self.operations.refund(cost.operations, charged_at, now);
            if self.operations.has_company() {
                self.credits.refund(cost.operations, idled(charged_at), idled(now));
            }
        }
    }

    /// Bytes let through by `now` that the limit has not yielded yet, never much more than one
    /// request.
    #[must_use]
    pub fn owed_bytes(&self, now: Mono) -> u64 {
        self.bytes.owed(now)
    }

    /// The credits that are left for bursts; none where operations don't come in bursts.
    #[must_use]
    pub fn credits(&self, now: Mono) -> Option<u64> {
        self.operations.has_company().then(|| self.credits.saved(idled(now)))
    }

    /// Sets the credits that are left, as they were when they were last kept. To be called before
    /// anybody is let through, or what was owed then is forgotten.
    pub fn set_credits(&self, credits: u64, now: Mono) {
        self.credits.save(credits, idled(now));
    }

    /// Puts other limits in force: the next decision is made by them. What is owed stays owed in
    /// bytes and operations, and credits stay credits, as far as the new limits keep so many; where
    /// operations come in bursts from now on, credits are full; see [`Meter::set_slice`].
    /// Operations that were not counted until now owe nothing.
    ///
    /// Tell the queue ([`reweigh`](crate::Queue::reweigh)) and ask it again afterwards.
    pub fn set(&self, limits: Limits, now: Mono) {
        // The lag was as long as the old limits took.
        self.held.until.store(0, Ordering::Release);
        if limits.iops.is_some() {
            self.operations.set_slice(operations(limits.iops), now);
        }
        if let Some(burst) = limits.burst {
            self.credits.set_slice(credits(limits.burst), idled(now));
            if !self.operations.has_company() {
                self.set_credits(burst.credits, now);
            }
        }
        self.operations.set_company(limits.burst.is_some());
        self.bytes.set_company(limits.iops.is_some());
        self.bytes.set_slice(RateSlice::owned(limits.rate), now);
    }

    /// Whether these are at `now` as new ones with the same limits would be.
    pub(crate) fn is_settled(&self, now: Mono) -> bool {
        let held = self.held.until.load(Ordering::Relaxed) > now.0;
        let counted = self.counts_operations();
        !held && self.bytes.is_settled(now) && (!counted || self.operations.is_settled(now))
    }

    /// Whether every operation is one of the contract's, also those that read and write nothing:
    /// where there are bursts, as Azure Files counts them.
    #[must_use]
    pub fn counts_metadata(&self) -> bool {
        self.bytes.has_company() && self.operations.has_company()
    }

    /// Whether operations are counted, so that also one that moves no byte has to ask.
    #[must_use]
    pub fn counts_operations(&self) -> bool {
        self.bytes.has_company()
    }

    /// Whether these are the limits of a volume that shares the budget of its pool, so that
    /// [`try_take_with`](Self::try_take_with) is to be asked.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.bytes.is_shared()
    }

    /// Says whether the volume shares the budget of its pool.
    pub fn set_shared(&self, shared: bool) {
        self.bytes.set_shared(shared);
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

    /// The part of the contract that a request takes: the bytes that it moves or, if that is more,
    /// the rate's yield in the time that its operations take. Shares are fair by this, so they are
    /// fair in operations where those bind, and in bytes where these do.
    pub(crate) fn weight(&self, cost: Cost) -> Weight {
        let part = self.per_operation().saturating_mul(cost.operations);
        match part > cost.bytes {
            true => Weight { bytes: part, kind: Kind::Operations },
            false => Weight { bytes: cost.bytes, kind: Kind::Bytes },
        }
    }

    /// The least weight of one operation, in bytes.
    pub(crate) fn per_operation(&self) -> u64 {
        match self.bytes.has_company() {
            true => self.bytes.yields(self.lasting().takes(1)).min(OPERATION_WEIGHT_MAX),
            false => 0,
        }
    }

    /// The meter of the operations that may be done for good: of the base rate, unless a ceiling is
    /// lower.
    fn lasting(&self) -> &Meter {
        let base_binds = || self.credits.takes(1) > self.operations.takes(1);
        match self.operations.has_company() && base_binds() {
            true => &self.credits,
            false => &self.operations,
        }
    }

    /// The resource of which more is left at present, if two limits bind.
    pub(crate) fn ample(&self) -> Kind {
        match self.bytes.is_ahead_of(&self.operations) {
            true => Kind::Operations,
            false => Kind::Bytes,
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

/// The slice of a meter of credits. It saves the 50 ms of every meter beside them.
fn credits(burst: Option<Burst>) -> RateSlice {
    let Some(Burst { base, credits }) = burst else {
        return RateSlice::owned(BytesPerSecond::ZERO);
    };
    let nanos = (u128::from(credits) * 1_000_000_000).div_ceil(u128::from(base.0).max(1));
    let saved_nanos = u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(CATCH_UP_NANOS);
    RateSlice { saved_nanos, ..RateSlice::owned(BytesPerSecond(base.0)) }
}

/// The clock of the meter of credits.
fn idled(now: Mono) -> Mono {
    Mono(now.0.saturating_add(IDLE_NANOS))
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
        let refusal = Refusal { until: at(950), by: Kind::Operations };
        assert_eq!(meters.take_waiting(Cost::of(1), at(5), Lag::ZERO), Err(refusal));
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
            meters.take_waiting(Cost::of(1), SECOND, Lag::ZERO).map_err(|refusal| refusal.until),
            Err(Mono(SECOND.0 + 19 * MILLI / 2))
        );
    }

    #[test]
    fn a_request_weighs_what_it_takes_of_the_contract() {
        let weigh = |meters: &Meters, cost| {
            let Weight { bytes, kind } = meters.weight(cost);
            (bytes, kind)
        };
        let meters = Meters::new(limits(16_000, 4));
        let weights = [0, 3_999, 4_000, 4_001].map(|bytes| weigh(&meters, Cost::of(bytes)));
        let few = (4_000, Kind::Operations);
        assert_eq!(weights, [few, few, (4_000, Kind::Bytes), (4_001, Kind::Bytes)]);
        assert_eq!(weigh(&meters, Cost::ZERO), (0, Kind::Bytes));
        assert_eq!(weigh(&Meters::new(limits(16_000, 0)), Cost::of(1)), (1, Kind::Bytes));
        // Absurd limits don't make sums of weights overflow.
        let absurd = Meters::new(limits(u64::MAX, 1));
        assert_eq!(weigh(&absurd, Cost::of(1)), (16 << 20, Kind::Operations));
        assert_eq!(weigh(&absurd, Cost::of(32 << 20)), (32 << 20, Kind::Bytes));
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
        let in_a_row = |lag| {
            let (meters, now) = (Meters::new(limits(1000, 100)), at(10_000));
            (0..100).take_while(|_| meters.take_waiting(Cost::of(0), now, lag).is_ok()).count()
        };
        let mut lag = Lag::ZERO;
        assert_eq!(in_a_row(lag), 6, "50 ms and one");
        let refused = |by, milli| Refusal { until: at(milli), by };
        lag.refused(refused(Kind::Operations, 10_000), at(9_800));
        assert_eq!(in_a_row(lag), 6, "what it refuses itself is no time lost");
        let mut earlier = lag;
        earlier.refused(refused(Kind::Bytes, 9_949), at(9_948));
        assert_eq!(in_a_row(earlier), 6, "that was long ago");
        lag.refused(refused(Kind::Bytes, 9_950), at(9_949));
        assert_eq!(in_a_row(lag), 26, "250 ms and one");
        // Bytes alone have their 50 ms, whatever waited.
        let meters = Meters::new(limits(1000, 0));
        assert_eq!(meters.take_waiting(Cost::of(50), at(10_000), lag).map(|_| ()), Ok(()));
        assert_eq!(meters.take_waiting(Cost::of(1), at(10_000), lag).map(|_| ()), Ok(()));
        assert!(meters.take_waiting(Cost::of(1), at(10_000), lag).is_err());
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
