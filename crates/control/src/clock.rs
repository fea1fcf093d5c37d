//! The monotonic clock of the process. Not here: the time of day.

use std::time::Instant;
use weir_core::{Clock, Mono};

/// The machine's monotonic clock, counted from its start.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock that reads zero now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Mono {
        Mono(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
