//! Whether a contract is kept: from what a volume's counters say at two moments to a verdict with
//! its reason.
//!
//! A [`Reading`] is what the counters show at one moment, a [`Course`] what happened between two;
//! courses add up to longer ones. [`Course::judge`] is the rule, and a [`Tally`] counts what it
//! said of many.
//!
//! # The rule
//!
//! Everything is compared in *contract time*: how long the contract takes to yield what was
//! delivered, by the tightest of its limits. Over a stretch of time `T`, with an allowance of 1 %
//! of it (5 % below 10 s) and one largest request:
//!
//! 1. The gate let more through than the limits yield in `T`: **broken** (gate).
//! 2. The contract time delivered is `T`: **kept**.
//! 3. Requests waited at the gate for longer than the contract time delivered: **broken**, by the
//!    gate if it let less through than the limits yield in that time, otherwise by what requests
//!    spent most time in behind it. Not counted is the contract time of charges that were given
//!    back, since clients asked for more than there was or went away, and time in which requests
//!    waited for their client to take replies.
//! 4. Requests were under way behind the gate. Had a store served them that takes
//!    [`REFERENCE_NANOS`] for each and moves data at [`REFERENCE_SPEED`] times the limit, while the
//!    clients paused as they did, the same work would have taken less time, `T'`. If the contract
//!    yields less than that work in `T'`, the limit would have been reached: **broken**, by what
//!    requests spent most time in.
//! 5. Otherwise the clients asked for less: **not demanded**.
//!
//! The fourth is Little's law with pauses: those that are under way come back for more when they
//! are done. Only the time in which something is under way shrinks with a quicker store.
//!
//! If a volume may have more than it is promised (a shared pool beyond its floor, a burst beyond
//! its base), the time in which it waited counts as delivered as far as the certain part was:
//! others had the rest, or its credits are gone. Too much is more than it may have at all.
//! The largest request that the third step allows for then counts by the certain part.
//!
//! Not here: a clock, counting, and the retention of results.

use core::ops::AddAssign;

use weir_core::Mono;

use crate::limits::Limits;
use crate::meters::Cost;
use crate::rate::{BytesPerSecond, Iops};

/// Time of a READ, WRITE or COMMIT, beside the transfer, in a store that carries its contract.
pub const REFERENCE_NANOS: u64 = 1_000_000;

/// Speed at which such a store moves data, as a multiple of the limit. At once the limit, one
/// request at a time could never reach it.
pub const REFERENCE_SPEED: u64 = 2;

const SECOND: u64 = 1_000_000_000;

/// The counters of one volume at a moment. All but `largest_bytes` and `owed_bytes` only grow, and
/// may wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The moment.
    pub at: Mono,
    /// READs and WRITEs that came to the gate, as much as they may move.
    pub offered: Cost,
    /// READs and WRITEs that the gate let through, by the same measure.
    pub passed: Cost,
    /// The refunds of that: bytes not moved, operations that failed.
    pub returned: Cost,
    /// READs and WRITEs that were carried out, and what they moved.
    pub delivered: Cost,
    /// READs, WRITEs and COMMITs that were answered, well or not.
    pub requests: u64,
    /// The limits' yield since the beginning. Operations only count while they are limited.
    pub due: Cost,
    /// The uncertain part of that: see [`uncertain`].
    pub lent: Cost,
    /// Nanoseconds in which operations were limited.
    pub counted_nanos: u64,
    /// Nanoseconds in which somebody waited at the gate.
    pub asked_nanos: u64,
    /// Nanoseconds that requests waited there, summed.
    pub wait_nanos: u64,
    /// Nanoseconds in which something was under way behind the gate, for the busiest worker.
    pub busy_nanos: u64,
    /// Nanoseconds from the gate to the end of the operation, summed, with those under way.
    pub inside_nanos: u64,
    /// Of these, those from the store's word that it is done until the worker heard it, which was
    /// busy with something else.
    pub late_nanos: u64,
    /// Nanoseconds before these, from the arrival or from the gate until the worker came to it.
    pub queued_nanos: u64,
    /// Nanoseconds that replies waited for the socket, and that requests waited because their
    /// client took no replies, summed.
    pub unsent_nanos: u64,
    /// The largest request of the last second or two, in bytes.
    pub largest_bytes: u64,
    /// Bytes that the gate has let through and the limits have not yielded yet.
    pub owed_bytes: u64,
}

impl Reading {
    /// The counters at `at` of a volume with these entitlements all the while, to which no request
    /// had come by then.
    #[must_use]
    pub fn unused(&self, Entitled { limits, lent }: Entitled, at: Mono) -> Self {
        let nanos = nanos_between(at, self.at);
        let less = |sum: Cost, of: Limits| Cost {
            bytes: sum.bytes.wrapping_sub(yields(of.rate.0, nanos)),
            operations: sum
                .operations
                .wrapping_sub(yields(of.iops.map_or(0, |iops| iops.0), nanos)),
        };
        let counted = if limits.iops.is_some() { nanos } else { 0 };
        let counted_nanos = self.counted_nanos.wrapping_sub(counted);
        let (due, lent) = (less(self.due, limits), less(self.lent, lent));
        Self { at, due, lent, counted_nanos, ..Self::default() }
    }
}

/// The limits of a volume, and their uncertain part: see [`uncertain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entitled {
    /// All of it.
    pub limits: Limits,
    /// The part that others may have instead.
    pub lent: Limits,
}

impl From<Limits> for Entitled {
    /// A volume that is entitled to all of it for certain.
    fn from(limits: Limits) -> Self {
        Self { limits, lent: Limits::of(BytesPerSecond::ZERO) }
    }
}

/// The yield of `per_second` in `nanos`.
#[must_use]
pub fn yields(per_second: u64, nanos: u64) -> u64 {
    narrow(u128::from(per_second) * u128::from(nanos) / u128::from(SECOND))
}

/// The part of `limits` that a volume may have and is not promised: beyond the `floor` that it has
/// in a shared pool, and beyond the base of a burst.
#[must_use]
pub fn uncertain(limits: Limits, floor: Option<BytesPerSecond>) -> Limits {
    let rate = floor.map_or(0, |floor| limits.rate.0.saturating_sub(floor.0));
    let base = limits.burst.map(|burst| burst.base);
    let beyond = |iops: Iops| iops.0.saturating_sub(base.map_or(iops.0, |base| base.0));
    Limits {
        rate: BytesPerSecond(rate),
        iops: limits.iops.map(|iops| Iops(beyond(iops))),
        burst: None,
    }
}

/// The events of a volume in a stretch of time. Times of requests are summed over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// Length of the stretch, in nanoseconds.
    pub nanos: u64,
    /// READs and WRITEs that came, as much as they may move.
    pub offered: Cost,
    /// The part of them that was carried out.
    pub delivered: Cost,
    /// The limits' yield in this time, through all their changes.
    pub due: Cost,
    /// READs, WRITEs and COMMITs answered.
    pub requests: u64,
    /// The contract time of what was delivered.
    pub used_nanos: u64,
    /// The contract time of what the gate let through.
    pub passed_nanos: u64,
    /// The time that what is certain of the contract takes to yield what was delivered; all of the
    /// time where nothing is certain.
    pub used_certain_nanos: u64,
    /// The same of what the gate let through.
    pub passed_certain_nanos: u64,
    /// Contract time of the bytes and operations let through, by all that the volume may have,
    /// promised or not.
    pub let_through_nanos: u64,
    /// Contract time of the bytes and operations that the gate let through and the requests did not
    /// move.
    pub returned_nanos: u64,
    /// The time that a reference store takes for what was answered.
    pub reference_nanos: u64,
    /// Time in which somebody waited at the gate.
    pub asked_nanos: u64,
    /// Time in which something was under way behind it.
    pub busy_nanos: u64,
    /// Time of requests at the gate.
    pub wait_nanos: u64,
    /// Time of requests in the store.
    pub store_nanos: u64,
    /// Time until the socket took the reply, or the client took earlier ones.
    pub network_nanos: u64,
    /// Time in which a worker was busy with other requests.
    pub processing_nanos: u64,
    /// The contract time of the largest request.
    pub largest_nanos: u64,
    /// The same by what is certain of the contract, if anything is.
    pub largest_certain_nanos: u64,
}

impl Course {
    /// The course between two readings of the same volume.
    #[must_use]
    pub fn between(before: &Reading, after: &Reading) -> Self {
        let grown = |get: fn(&Reading) -> u64| get(after).wrapping_sub(get(before));
        let cost = |get: fn(&Reading) -> Cost| Cost {
            bytes: get(after).bytes.wrapping_sub(get(before).bytes),
            operations: get(after).operations.wrapping_sub(get(before).operations),
        };
        let nanos = nanos_between(before.at, after.at);
        let (due, delivered) = (cost(|r| r.due), cost(|r| r.delivered));
        let (passed, returned) = (cost(|r| r.passed), cost(|r| r.returned));
        let passed = Cost {
            bytes: passed.bytes.saturating_sub(returned.bytes),
            operations: passed.operations.saturating_sub(returned.operations),
        };
        let requests = grown(|r| r.requests);
        // While operations were limited for a part of the time alone, bytes decide for all of it.
        let counted = grown(|r| r.counted_nanos) >= nanos;
        let contract_time = |cost: Cost| {
            let by_bytes = part(nanos, cost.bytes, due.bytes);
            let by_operations = part(nanos, cost.operations, due.operations);
            if counted { by_bytes.max(by_operations) } else { by_bytes }
        };
        // By what is certain alone; where that is nothing, nothing can be missing.
        let lent = cost(|r| r.lent);
        let certain_time = |cost: Cost| {
            if lent == Cost::ZERO {
                return contract_time(cost);
            }
            let by = |of: u64, due: u64, lent: u64| match due.saturating_sub(lent) {
                0 => nanos,
                sure => part(nanos, of, sure),
            };
            let by_bytes = by(cost.bytes, due.bytes, lent.bytes);
            let by_operations = by(cost.operations, due.operations, lent.operations);
            if counted { by_bytes.max(by_operations) } else { by_bytes }
        };
        let asked_nanos = grown(|r| r.asked_nanos);
        // The certain part counts for the time in which requests waited, whoever had the rest.
        let fulfilled = |cost: Cost| contract_time(cost).max(certain_time(cost).min(asked_nanos));
        let late = grown(|r| r.late_nanos);
        // A request that went just before is paid for in this time.
        let earlier = before.largest_bytes.max(before.owed_bytes);
        let largest = Cost::of(after.largest_bytes.max(earlier));
        let transfer = part(nanos, delivered.bytes, due.bytes) / REFERENCE_SPEED;
        Self {
            nanos,
            offered: cost(|r| r.offered),
            delivered,
            due,
            requests,
            used_nanos: fulfilled(delivered),
            passed_nanos: fulfilled(passed),
            used_certain_nanos: certain_time(delivered),
            passed_certain_nanos: certain_time(passed),
            let_through_nanos: contract_time(passed),
            returned_nanos: contract_time(returned),
            reference_nanos: requests.saturating_mul(REFERENCE_NANOS).saturating_add(transfer),
            asked_nanos,
            busy_nanos: grown(|r| r.busy_nanos),
            wait_nanos: grown(|r| r.wait_nanos),
            store_nanos: grown(|r| r.inside_nanos).saturating_sub(late),
            network_nanos: grown(|r| r.unsent_nanos),
            processing_nanos: grown(|r| r.queued_nanos).saturating_add(late),
            largest_nanos: contract_time(largest),
            largest_certain_nanos: certain_time(largest),
        }
    }

    /// Did nothing come, and was nothing under way?
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.offered == Cost::ZERO
            && self.requests == 0
            && self.asked_nanos == 0
            && self.busy_nanos == 0
    }

    /// The allowance for missing or additional service, in contract time: 1 % over 10 s and more, 5
    /// % over less, and one largest request.
    #[must_use]
    pub fn allowance(&self) -> u64 {
        // A stretch of 10 s that was looked at a moment too early is one all the same.
        let part = if self.nanos >= 9 * SECOND { self.nanos / 100 } else { self.nanos / 20 };
        part.saturating_add(self.largest_nanos)
    }

    /// The time that the same work would have taken in a reference store, the clients pausing as
    /// they did: never more than it took.
    #[must_use]
    pub fn counterfactual_nanos(&self) -> u64 {
        let work = self
            .store_nanos
            .saturating_add(self.network_nanos)
            .saturating_add(self.processing_nanos);
        if work <= self.reference_nanos {
            return self.nanos;
        }
        let busy = self.busy_nanos.saturating_sub(self.asked_nanos).min(self.nanos);
        self.nanos - (busy - part(busy, self.reference_nanos, work))
    }

    /// The contract time of what was delivered, by all that the volume may have. Unlike
    /// `used_nanos` it has no time in it in which others had what the volume is not promised.
    fn delivered_nanos(&self) -> u64 {
        let by = |of: u64, due: u64| if due == 0 { 0 } else { part(self.nanos, of, due) };
        by(self.delivered.bytes, self.due.bytes)
            .max(by(self.delivered.operations, self.due.operations))
    }

    /// The time in which requests waited for others that used the contract. Where requests waited
    /// for charges that came to nothing, since clients asked for more than there was or went away,
    /// the clients used the time.
    #[must_use]
    pub fn waited_nanos(&self) -> u64 {
        self.asked_nanos.saturating_sub(self.returned_nanos)
    }

    /// The rule of this [module](self).
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let allowed = self.allowance();
        // The certain part of a contract yields whole requests too, and takes longer for one.
        let longer = self.largest_certain_nanos.saturating_sub(self.largest_nanos);
        let held_back_allowed = allowed.saturating_add(longer);
        let (reason, cause) = if self.nanos == 0 || self.due.bytes == 0 {
            (Reason::NothingCame, None)
        } else if self.let_through_nanos > self.nanos.saturating_add(allowed)
            && self.delivered_nanos() > self.nanos.saturating_add(allowed)
        {
            (Reason::TooMuch, Some(Cause::Gate))
        } else if self.used_nanos.saturating_add(allowed) >= self.nanos {
            (Reason::Delivered, None)
        } else if self.used_nanos.saturating_add(held_back_allowed) < self.waited_nanos() {
            let passed = self.passed_nanos.saturating_add(held_back_allowed) >= self.waited_nanos();
            (Reason::HeldBack, Some(if passed { self.slowest() } else { Cause::Gate }))
        } else if self.busy_nanos > 0 && self.used_nanos >= self.counterfactual_nanos() {
            (Reason::WouldHave, Some(self.slowest()))
        } else if self.is_idle() {
            (Reason::NothingCame, None)
        } else {
            (Reason::LessAsked, None)
        };
        let verdict = match (reason, cause) {
            (_, Some(cause)) => Verdict::Broken(cause),
            (Reason::Delivered, None) => Verdict::Kept,
            _ => Verdict::NotDemanded,
        };
        Judgement { verdict, reason }
    }

    /// The place behind the gate in which requests spent most time.
    fn slowest(&self) -> Cause {
        let most = self.store_nanos.max(self.network_nanos).max(self.processing_nanos);
        match most {
            most if most == self.store_nanos => Cause::Store,
            most if most == self.network_nanos => Cause::Network,
            _ => Cause::Processing,
        }
    }
}

impl AddAssign for Course {
    fn add_assign(&mut self, other: Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        let add_cost = |sum: &mut Cost, more: Cost| {
            sum.bytes = sum.bytes.saturating_add(more.bytes);
            sum.operations = sum.operations.saturating_add(more.operations);
        };
        add(&mut self.nanos, other.nanos);
        add_cost(&mut self.offered, other.offered);
        add_cost(&mut self.delivered, other.delivered);
        add_cost(&mut self.due, other.due);
        add(&mut self.requests, other.requests);
        add(&mut self.used_nanos, other.used_nanos);
        add(&mut self.passed_nanos, other.passed_nanos);
        add(&mut self.used_certain_nanos, other.used_certain_nanos);
        add(&mut self.passed_certain_nanos, other.passed_certain_nanos);
        add(&mut self.let_through_nanos, other.let_through_nanos);
        add(&mut self.returned_nanos, other.returned_nanos);
        add(&mut self.reference_nanos, other.reference_nanos);
        add(&mut self.asked_nanos, other.asked_nanos);
        add(&mut self.busy_nanos, other.busy_nanos);
        add(&mut self.wait_nanos, other.wait_nanos);
        add(&mut self.store_nanos, other.store_nanos);
        add(&mut self.network_nanos, other.network_nanos);
        add(&mut self.processing_nanos, other.processing_nanos);
        // A second yields whole requests only: what is certain is compared over all of the time.
        self.used_nanos = self.used_nanos.max(self.used_certain_nanos.min(self.asked_nanos));
        self.passed_nanos = self.passed_nanos.max(self.passed_certain_nanos.min(self.asked_nanos));
        self.largest_nanos = self.largest_nanos.max(other.largest_nanos);
        self.largest_certain_nanos = self.largest_certain_nanos.max(other.largest_certain_nanos);
    }
}

/// The verdict on a contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// The contract was demanded and delivered.
    Kept,
    /// The clients asked for less.
    #[default]
    NotDemanded,
    /// The contract was demanded and not delivered, or more was delivered.
    Broken(Cause),
}

/// The cause by which a contract was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The gate: it let too much or too little through.
    Gate,
    /// The disk, the file system, or what makes them slow.
    Store,
    /// Replies that the client, or the way to it, did not take.
    Network,
    /// Too little processor time for the server's workers.
    Processing,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 4] = [Self::Gate, Self::Store, Self::Network, Self::Processing];
}

/// The condition of the rule that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The gate let more through than the limits yield.
    TooMuch,
    /// The limits' yield was delivered.
    Delivered,
    /// A request waited while the contract had room.
    HeldBack,
    /// The requests under way would have reached the limit in a reference store.
    WouldHave,
    /// Nothing came.
    NothingCame,
    /// The requests that came would not have reached the limit.
    LessAsked,
}

/// A verdict and which condition led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The condition.
    pub reason: Reason,
}

/// The verdicts on many stretches, of about 10 s each, and the total error of those in which the
/// contract was demanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Stretches in which it was kept.
    pub kept: u64,
    /// The stretches in which the contract was not demanded.
    pub not_demanded: u64,
    /// Broken, by each of [`Cause::ALL`].
    pub broken: [u64; 4],
    /// The length of those in which it was demanded: kept or broken.
    pub demanded_nanos: u64,
    /// The contract time delivered in them.
    pub used_nanos: u64,
}

impl Tally {
    /// Counts a judged stretch.
    pub fn count(&mut self, course: &Course, verdict: Verdict) {
        match verdict {
            Verdict::Kept => self.kept += 1,
            Verdict::NotDemanded => {
                self.not_demanded += 1;
                return;
            }
            Verdict::Broken(cause) => self.broken[cause as usize] += 1,
        }
        self.demanded_nanos = self.demanded_nanos.saturating_add(course.nanos);
        self.used_nanos = self.used_nanos.saturating_add(course.used_nanos);
    }

    /// The verdict over all: broken if it was in any stretch, by what broke it most often;
    /// otherwise kept if it was demanded in any.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let most = Cause::ALL.into_iter().rev().max_by_key(|cause| self.broken[*cause as usize]);
        match most {
            Some(cause) if self.broken[cause as usize] > 0 => Verdict::Broken(cause),
            _ if self.kept > 0 => Verdict::Kept,
            _ => Verdict::NotDemanded,
        }
    }

    /// Stretches in which it was broken, by whatever.
    #[must_use]
    pub fn broken_in_all(&self) -> u64 {
        self.broken.iter().sum()
    }

    /// The error of the delivered service while the contract was demanded, as a part of the due:
    /// −0.02 is 2 % too little. Nothing if it never was demanded.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a part is read to a few digits")]
    pub fn error(&self) -> Option<f64> {
        let demanded = self.demanded_nanos as f64;
        (self.demanded_nanos > 0).then(|| self.used_nanos as f64 / demanded - 1.0)
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.kept += other.kept;
        self.not_demanded += other.not_demanded;
        for (sum, more) in self.broken.iter_mut().zip(other.broken) {
            *sum += more;
        }
        self.demanded_nanos = self.demanded_nanos.saturating_add(other.demanded_nanos);
        self.used_nanos = self.used_nanos.saturating_add(other.used_nanos);
    }
}

fn nanos_between(from: Mono, to: Mono) -> u64 {
    to.0.saturating_sub(from.0)
}

/// `whole` × `of` / `all`; nothing where there is nothing at all to be a part of.
fn part(whole: u64, of: u64, all: u64) -> u64 {
    match all {
        0 => 0,
        all => narrow(u128::from(whole) * u128::from(of) / u128::from(all)),
    }
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
