//! The worker that polls a gate, and its timer.

use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use weir_core::Mono;

/// The next poll of a gate, or of the gate of a pool.
pub(super) struct Poller {
    /// The worker that owns the timer; meaningful while requests wait.
    owner: AtomicUsize,
    /// The time of the next poll: that of the earliest timer that was set and has not fired.
    armed: AtomicU64,
}

impl Default for Poller {
    fn default() -> Self {
        Self { owner: AtomicUsize::new(0), armed: AtomicU64::new(u64::MAX) }
    }
}

impl Poller {
    pub(super) fn owner(&self) -> usize {
        self.owner.load(Ordering::Relaxed)
    }

    pub(super) fn set_owner(&self, worker: usize) {
        self.owner.store(worker, Ordering::Relaxed);
    }

    /// Whether a timer for `at` has to be set, because no earlier one is.
    pub(super) fn arm(&self, at: Mono) -> bool {
        self.armed.fetch_min(at.0, Ordering::Relaxed) > at.0
    }

    /// Notes that the timer for `at` fired. Only the earliest counts; a later one that was
    /// overtaken fires for nothing.
    pub(super) fn fired(&self, at: Mono) {
        let fired =
            self.armed.compare_exchange(at.0, u64::MAX, Ordering::Relaxed, Ordering::Relaxed);
        let _overtaken = fired.is_err();
    }

    /// Forgets the timer.
    pub(super) fn disarm(&self) {
        self.armed.store(u64::MAX, Ordering::Relaxed);
    }
}
