//! A clock that moves only when told.

use crate::time::{Clock, Mono};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

/// A monotonic clock in the hands of a test. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that shows [`Mono::ZERO`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward by `by`.
    pub fn advance(&self, by: Duration) {
        let now = self.now() + by;
        self.set(now);
    }

    /// Shows `now`, also when that is a jump back, which no real monotonic clock makes but which
    /// those who take time as an argument must survive.
    pub fn set(&self, now: Mono) {
        self.nanos.store(now.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Mono {
        Mono(self.nanos.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_only_when_told_and_shares_its_time() {
        let clock = ManualClock::new();
        let twin = clock.clone();
        assert_eq!(twin.now(), Mono::ZERO);
        clock.advance(Duration::from_millis(5));
        assert_eq!(twin.now(), Mono::from_millis(5));
        twin.set(Mono::from_millis(1));
        assert_eq!(clock.now(), Mono::from_millis(1));
    }
}
