//! The right to reply: the instant until which replies may leave a gateway.
//!
//! Not here: how long it lasts. A lease ([`lease`](crate::lease)) or the words of all other members
//! ([`words`](crate::words)) say so.

use core::sync::atomic::{AtomicU64, Ordering};
use weir_core::Mono;

/// The instant until which a gateway may reply, on the clock of its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    until: Mono,
}

impl Right {
    /// No reply may leave.
    pub const NONE: Self = Self { until: Mono::ZERO };

    /// The right until the instant `until`.
    #[must_use]
    pub const fn until(until: Mono) -> Self {
        Self { until }
    }

    /// The end of the right.
    #[must_use]
    pub const fn end(self) -> Mono {
        self.until
    }

    /// May a reply leave at `now`?
    #[must_use]
    pub const fn allows(self, now: Mono) -> bool {
        now.0 < self.until.0
    }

    /// The lifetime (`valid_lft`) of the addresses in the kernel, in seconds and rounded down. At 0
    /// the addresses are to be removed.
    ///
    /// The kernel removes an address up to a second late, so the helper process that holds the
    /// addresses also removes them at [`end`](Self::end); the lifetime is there for the case that
    /// both processes are stopped.
    #[must_use]
    pub fn lifetime_seconds(self, now: Mono) -> u32 {
        u32::try_from(self.until.since(now).as_secs()).unwrap_or(u32::MAX)
    }
}

/// The right to reply where all threads that send replies see it.
#[derive(Debug, Default)]
pub struct SharedRight(AtomicU64);

impl SharedRight {
    /// Publishes `right`.
    pub fn set(&self, right: Right) {
        self.0.store(right.until.0, Ordering::Release);
    }

    /// May a reply leave at `now`? To be asked before every send.
    #[must_use]
    pub fn allows(&self, now: Mono) -> bool {
        Right { until: Mono(self.0.load(Ordering::Acquire)) }.allows(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_ends_at_its_instant_and_lifetimes_before() {
        let right = Right::until(Mono::from_millis(2_900));
        assert!(right.allows(Mono::from_millis(2_899)) && !right.allows(Mono::from_millis(2_900)));
        let lifetimes = [0, 900, 901, 1_900, 1_901, 4_000]
            .map(|now| right.lifetime_seconds(Mono::from_millis(now)));
        assert_eq!(lifetimes, [2, 2, 1, 1, 0, 0]);
        assert!(!Right::NONE.allows(Mono::ZERO));
        let shared = SharedRight::default();
        assert!(!shared.allows(Mono::ZERO));
        shared.set(right);
        assert!(shared.allows(Mono::ZERO) && !shared.allows(right.end()));
    }
}
