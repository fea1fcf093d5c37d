//! The only place of the data plane that reads a clock.

use rustix::time::{ClockId, clock_gettime};
#[cfg(all(test, feature = "schedules"))]
pub(crate) use standing::SystemClock;
use std::time::{SystemTime, UNIX_EPOCH};
#[cfg(not(all(test, feature = "schedules")))]
pub(crate) use weir_control::SystemClock;
use weir_core::{Mono, Timestamp};

/// The time since the machine's start, with the time for which it was suspended: the clock that all
/// processes of a gateway's machine share.
pub(crate) fn since_boot() -> Mono {
    let time = clock_gettime(ClockId::Boottime);
    Mono(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// Seconds since 1970, for replies that carry the time of day.
pub(crate) fn seconds_since_1970() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// The time of day, for attributes and for the clients of SMB.
pub(crate) fn time_of_day() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let secs = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Timestamp { secs, nanos: since.subsec_nanos() }
}

/// The clock of tests that explore schedules, and move time themselves.
#[cfg(all(test, feature = "schedules"))]
mod standing {
    use weir_core::{Clock, Mono};

    /// A clock that can stand still.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct SystemClock {
        running: weir_control::SystemClock,
        /// The time at which the clock stands still.
        pub(crate) stands_at: Option<Mono>,
    }

    impl SystemClock {
        /// A clock that reads zero now, and runs.
        pub(crate) fn start() -> Self {
            Self { running: weir_control::SystemClock::start(), stands_at: None }
        }
    }

    impl Clock for SystemClock {
        fn now(&self) -> Mono {
            self.stands_at.unwrap_or_else(|| self.running.now())
        }
    }
}
