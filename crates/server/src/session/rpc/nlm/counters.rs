//! The lock manager's counters for the metrics: written by all threads, read by anyone.

use crate::sync::{AtomicU64, Ordering};
use weir_control::plane::LockTotals;
use weir_nfs::nlm::{Procedure, Status};

/// Counters of the lock manager.
#[derive(Debug, Default)]
pub(super) struct LockCounters {
    pub(super) hosts_refused: AtomicU64,
    granted: AtomicU64,
    refused: AtomicU64,
    pub(super) called_back: AtomicU64,
    pub(super) unheard: AtomicU64,
}

impl LockCounters {
    /// All of them.
    pub(super) fn read(&self) -> LockTotals {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        LockTotals {
            hosts_refused: get(&self.hosts_refused),
            granted: get(&self.granted),
            refused: get(&self.refused),
            called_back: get(&self.called_back),
            unheard: get(&self.unheard),
            ..LockTotals::default()
        }
    }

    /// Counts a call that was carried out, if it asked for a lock.
    pub(super) fn served(&self, procedure: Procedure, status: Status) {
        if matches!(procedure, Procedure::Lock | Procedure::LockMsg | Procedure::NmLock) {
            match status {
                Status::GRANTED => count(&self.granted),
                Status::BLOCKED => {}
                _ => count(&self.refused),
            }
        }
    }
}

/// Adds one.
pub(super) fn count(cell: &AtomicU64) {
    cell.fetch_add(1, Ordering::Relaxed);
}
