//! Time as values. Nothing in this crate reads a clock: `now` is always an argument.

use core::ops::{Add, Sub};
use core::time::Duration;

/// A point on a monotonic clock, in nanoseconds since an arbitrary origin (the start of the
/// server, or zero in a test). 2^64 ns is 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mono(pub u64);

impl Mono {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);

    /// The point `secs` whole seconds after the origin.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// The point `millis` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// Time passed since `earlier`; zero if `earlier` is later (a clock that jumped back).
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Mono {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Mono {
    type Output = Self;
    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// The source of `now`, for the few places that must ask more than once.
pub trait Clock {
    /// The present moment.
    fn now(&self) -> Mono;
}

/// A wall-clock time as file systems keep it: seconds since 1970-01-01 UTC (may be negative)
/// and nanoseconds below one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp {
    /// Whole seconds, rounded towards the past.
    pub secs: i64,
    /// Nanoseconds, `0..1_000_000_000`.
    pub nanos: u32,
}
