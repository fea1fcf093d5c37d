//! The lock manager's counters for the metrics: written by its thread, read by anyone.

use crate::plane::LockTotals;
use crate::sync::{AtomicU64, Ordering};

/// Gauges and counters of the lock manager.
#[derive(Debug, Default)]
pub(crate) struct LockCounters {
    pub(crate) held: AtomicU64,
    pub(crate) waiting: AtomicU64,
    pub(crate) hosts: AtomicU64,
    pub(crate) hosts_refused: AtomicU64,
    pub(crate) grace: AtomicU64,
    pub(crate) granted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) called_back: AtomicU64,
    pub(crate) unheard: AtomicU64,
}

impl LockCounters {
    /// All of them.
    pub(crate) fn read(&self) -> LockTotals {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        LockTotals {
            served: true,
            held: get(&self.held),
            waiting: get(&self.waiting),
            hosts: get(&self.hosts),
            hosts_refused: get(&self.hosts_refused),
            grace: get(&self.grace) != 0,
            granted: get(&self.granted),
            refused: get(&self.refused),
            called_back: get(&self.called_back),
            unheard: get(&self.unheard),
        }
    }
}

/// Adds one.
pub(crate) fn count(cell: &AtomicU64) {
    cell.fetch_add(1, Ordering::Relaxed);
}

/// Sets a gauge.
pub(crate) fn gauge(cell: &AtomicU64, value: usize) {
    cell.store(value as u64, Ordering::Relaxed);
}
