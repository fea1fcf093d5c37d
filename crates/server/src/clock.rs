//! The only place of the data plane that reads a clock.

use std::time::Instant;
use weir_core::{Clock, Mono};

/// The machine's monotonic clock, counted from the start of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock that reads zero now.
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Mono {
        Mono(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
