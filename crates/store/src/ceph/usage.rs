//! The usage of a volume on CephFS: the sum of the sizes of its files, in bytes, hard links once.
//! CephFS has no map of holes, so a hole counts as data; it keeps the same sum for each directory
//! (`ceph.dir.rbytes`), which lags some seconds behind.
//!
//! Growth is reserved before it happens, so that the quota holds to the byte. Not here: the
//! record of the usage and the recount ([`super::record`]).

use crate::control::{Counted, Counting};
use crate::sync::{AcqRel, Acquire, AtomicBool, AtomicU64, Mutex, Relaxed};
use weir_core::{FsError, FsResult};

/// The usage and the quota.
#[derive(Debug)]
pub(super) struct Usage {
    used: AtomicU64,
    quota: AtomicU64,
    exact: AtomicBool,
    /// Changes of the usage, to see whether there were any.
    changes: AtomicU64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    running: Option<Counting>,
    last: Option<Counted>,
    number: u64,
}

/// Growth that the quota allows. What was not used is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Growth<'a> {
    usage: &'a Usage,
    unused: u64,
}

impl Usage {
    pub(super) fn new(used: u64, exact: bool, quota: u64) -> Self {
        Self {
            used: AtomicU64::new(used),
            quota: AtomicU64::new(quota),
            exact: AtomicBool::new(exact),
            changes: AtomicU64::new(0),
            counts: Mutex::default(),
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Acquire)
    }

    pub(super) fn quota(&self) -> u64 {
        self.quota.load(Relaxed)
    }

    pub(super) fn set_quota(&self, bytes: u64) {
        self.quota.store(bytes, Relaxed);
    }

    pub(super) fn is_exact(&self) -> bool {
        self.exact.load(Acquire)
    }

    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// `QuotaExceeded`.
    pub(super) fn reserve(&self, bytes: u64) -> FsResult<Growth<'_>> {
        if bytes > 0 {
            let quota = self.quota();
            let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= quota);
            self.used.fetch_update(AcqRel, Acquire, more).map_err(|_| FsError::QuotaExceeded)?;
            self.changes.fetch_add(1, Relaxed);
        }
        Ok(Growth { usage: self, unused: bytes })
    }

    /// Gives back `bytes` that are used no longer.
    pub(super) fn shrink(&self, bytes: u64) {
        if bytes > 0 {
            let less = |used: u64| Some(used.saturating_sub(bytes));
            let _former = self.used.fetch_update(AcqRel, Acquire, less);
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// The number of changes so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Acquire)
    }

    pub(super) fn counting(&self) -> Option<Counting> {
        self.counts.lock().running
    }

    pub(super) fn counted(&self) -> Option<Counted> {
        self.counts.lock().last
    }

    /// Begins a recount, unless one is running.
    pub(super) fn begin_count(&self) -> bool {
        let mut counts = self.counts.lock();
        let begins = counts.running.is_none();
        counts.running.get_or_insert_default();
        begins
    }

    /// Ends a recount that found `bytes` in `files` while nothing changed, or found nothing.
    pub(super) fn end_count(&self, found: Option<(u64, u64)>) {
        let mut counts = self.counts.lock();
        counts.running = None;
        let Some((after_bytes, files)) = found else { return };
        let before_bytes = self.used.swap(after_bytes, AcqRel);
        self.exact.store(true, Relaxed);
        counts.number += 1;
        let number = counts.number;
        counts.last = Some(Counted { before_bytes, after_bytes, files, left_out: 0, number });
    }
}

impl Growth<'_> {
    /// So many of the bytes are used.
    pub(super) fn keep(mut self, bytes: u64) {
        self.unused = self.unused.saturating_sub(bytes);
    }
}

impl Drop for Growth<'_> {
    fn drop(&mut self) {
        self.usage.shrink(self.unused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_reserved_and_the_rest_of_it_given_back() {
        let usage = Usage::new(10, true, 100);
        usage.reserve(50).unwrap().keep(20);
        assert_eq!(usage.used(), 30);
        assert_eq!(usage.reserve(71).err(), Some(FsError::QuotaExceeded));
        let rest = usage.reserve(70).unwrap();
        assert_eq!(usage.reserve(1).err(), Some(FsError::QuotaExceeded), "it is taken");
        assert!(usage.reserve(0).is_ok());
        drop(rest);
        usage.shrink(20);
        assert_eq!(usage.used(), 10);
        usage.shrink(40);
        assert_eq!(usage.used(), 0);
        usage.set_quota(1);
        assert_eq!(usage.reserve(u64::MAX).err(), Some(FsError::QuotaExceeded), "no overflow");
    }

    #[test]
    fn one_recount_runs_at_a_time_and_its_result_holds() {
        let usage = Usage::new(10, false, 100);
        assert!(usage.begin_count() && !usage.begin_count());
        usage.end_count(None);
        assert_eq!((usage.used(), usage.is_exact(), usage.counted()), (10, false, None));
        assert!(usage.begin_count());
        usage.end_count(Some((7, 2)));
        assert_eq!((usage.used(), usage.is_exact()), (7, true));
        let counted = usage.counted().unwrap();
        assert_eq!((counted.before_bytes, counted.after_bytes, counted.number), (10, 7, 1));
    }
}
