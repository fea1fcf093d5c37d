//! Durations and bounds of the protocol, with the relations that make it safe. All durations are
//! counted on the monotonic clock of one machine.
//!
//! Two clocks may run at rates that differ by up to 2 % ([`DRIFT_PERCENT`] each); the kernel slews
//! a clock by at most 0.05 %. A clock that stands still while its machine is suspended is beyond
//! the bound, so the driver reads the clock that counts such time (`CLOCK_BOOTTIME`).

use core::time::Duration;

/// The life of a lease in etcd after its renewal.
pub const LEASE: Duration = Duration::from_millis(3_000);

/// A promise binds its giver for this long after the question arrived.
pub const PROMISE: Duration = Duration::from_millis(3_000);

/// A gateway relies on a lease, or on a promise, for this long after it sent the request.
pub const RELIED_ON: Duration = Duration::from_millis(2_900);

/// The rate of a clock differs from real time by at most this.
pub const DRIFT_PERCENT: u32 = 1;

/// The driver calls [`Cluster::step`](crate::Cluster::step) at least this often.
pub const TICK: Duration = Duration::from_millis(200);

/// A gateway renews its lease this often.
pub const RENEW_EVERY: Duration = Duration::from_millis(500);

/// A gateway whose last renewed lease was requested longer ago than this counts as cut from etcd:
/// it asks for promises, and changes nothing.
pub const FRESH: Duration = Duration::from_millis(1_200);

/// A gateway that is cut from etcd asks for promises this often.
pub const ASK_EVERY: Duration = Duration::from_millis(500);

/// A request to etcd without an answer for this long may be carried out or not.
pub const ANSWER_WITHIN: Duration = Duration::from_millis(1_000);

/// A gateway without a lease that has not asked for promises for this long is taken for dead, by a
/// gateway that was awake all the while.
pub const PATIENCE: Duration = Duration::from_millis(1_500);

/// A process between whose steps more time passed was not awake.
pub const AWAKE: Duration = Duration::from_millis(700);

/// A gateway whose right to reply ended longer ago asks in vain: one of the promises is not to be
/// had. Gateways that have etcd give it no more promises.
pub const IN_VAIN: Duration = Duration::from_millis(3_000);

/// Common work that the first live gateway has not done for this long is done by the next one too.
pub const TURN: Duration = Duration::from_millis(1_000);

/// A blocklist that is not in force after this long is requested again.
pub const BLOCKLIST_RETRY: Duration = Duration::from_millis(2_000);

/// A blocklist is renewed this often until the end of the blocklisted life is known. Ceph keeps an
/// entry for an hour.
pub const BLOCKLIST_RENEW: Duration = Duration::from_secs(600);

/// Gateways of a cluster. One more is refused ([`Reason::Full`](crate::Reason::Full)).
pub const GATEWAYS_MAX: usize = 64;

/// Groups of a cluster. One more is refused
/// ([`Refusal::TooManyGroups`](crate::Refusal::TooManyGroups)).
pub const GROUPS_MAX: usize = 4_096;

/// Ended lives of one gateway that are not forgotten yet. Beyond: a new life waits until one is.
pub const FENCES_MAX: usize = 8;

/// Homes that one change writes; etcd allows 128 operations in a transaction.
pub const HOMES_PER_CHANGE: usize = 64;

/// Planned moves that are begun for gateways that drain and have not ended. Beyond: groups stay
/// where they are until a move ends.
pub const MOVES_MAX: usize = 4;

// The slowest clock counts what it relies on; the fastest counts the lease or the promise.
const _: () = assert!(
    RELIED_ON.as_millis() * (100 + DRIFT_PERCENT as u128)
        < LEASE.as_millis() * (100 - DRIFT_PERCENT as u128)
);
const _: () = assert!(LEASE.as_millis() == PROMISE.as_millis());
const _: () = assert!(FRESH.as_millis() > 2 * RENEW_EVERY.as_millis());
// A gateway that is cut from etcd has asked twice before its lease ends.
const _: () = assert!(
    FRESH.as_millis() + TICK.as_millis() + 2 * ASK_EVERY.as_millis() < RELIED_ON.as_millis()
);
const _: () = assert!(PATIENCE.as_millis() > 2 * ASK_EVERY.as_millis() + TICK.as_millis());
const _: () = assert!(AWAKE.as_millis() > 2 * TICK.as_millis());
