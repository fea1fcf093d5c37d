//! The monotonic clock of the process. Not here: the time of day.

use rustix::time::{ClockId, clock_gettime};
use weir_core::{Clock, Mono};

/// The machine's monotonic clock, counted from its start.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    /// The kernel's time at the start, in nanoseconds.
    origin: u64,
}

impl SystemClock {
    /// A clock that reads zero now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: nanoseconds() }
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Mono {
        Mono(nanoseconds().saturating_sub(self.origin))
    }
}

/// The kernel's monotonic time. `std::time::Instant` costs a quarter more, which counts for a
/// worker that reads the clock for each READ and WRITE.
#[inline]
fn nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
