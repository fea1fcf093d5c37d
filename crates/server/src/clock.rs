//! The only place of the data plane that reads a clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};
use weir_core::{Clock, Mono};

/// The machine's monotonic clock, counted from the start of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock {
    origin: Instant,
    /// The time at which the clock stands still, in tests that move time themselves.
    #[cfg(all(test, feature = "schedules"))]
    pub(crate) stands_at: Option<Mono>,
}

impl SystemClock {
    /// A clock that reads zero now.
    pub(crate) fn start() -> Self {
        Self {
            origin: Instant::now(),
            #[cfg(all(test, feature = "schedules"))]
            stands_at: None,
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Mono {
        #[cfg(all(test, feature = "schedules"))]
        if let Some(at) = self.stands_at {
            return at;
        }
        Mono(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Seconds since 1970, for what wants the time of day.
pub(crate) fn seconds_since_1970() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}
