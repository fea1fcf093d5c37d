//! Whether work that writes may run on the worker or must go to the pool. Arithmetic on a
//! timestamp: nothing here waits or reads a clock.
//!
//! A write into the page cache takes 2 µs and hardly ever blocks, so handing it to another thread
//! costs more than the write. But beside an fsync, or when the kernel throttles writers, the same
//! call can take 5–150 ms, and a worker that waits for it stalls every volume it serves. What
//! makes one volume's write wait makes every other's on the same file system wait, so they share
//! one experience, or each of them would stall the worker once to learn it. So:
//!
//! - while anything is being synced on the file system, and for 100 ms after, writes are pooled;
//! - after a write that took longer than 1 ms, writes are pooled until 64 in a row, over at least
//!   1 s, were quick.
//!
//! On a busy machine a write also takes long when the scheduler gives the processor to somebody
//! else meanwhile, or the hypervisor to another guest, and the pool would only make that worse: a
//! write in which the thread did not go to sleep is quick. Learning whether it did costs a system
//! call before each write, so it is watched only for pooled writes, and for 100 ms after a slow
//! write of which it isn't known ([`Pace::watches`]).

use crate::sync::{AcqRel, Acquire, AtomicU32, AtomicU64, Relaxed};
use std::time::Duration;
use weir_core::Mono;

/// A write that takes longer than this is slow.
const QUICK: Duration = Duration::from_millis(1);
/// Time after a sync in which writes stay in the pool.
const CALM_AFTER_SYNC: Duration = Duration::from_millis(100);
/// Quick writes in a row, and the time they must span, before writes return to the worker.
const QUICK_RUN: u32 = 64;
const QUICK_SPAN: Duration = Duration::from_secs(1);
/// Time for which sleeps are watched after a slow write for which they weren't.
const SUSPICION: Duration = Duration::from_millis(100);
/// "Never": no slow write is being lived down, no sync was seen.
const NEVER: u64 = 0;

/// Syncs on one file system.
#[derive(Debug, Default)]
struct Syncs {
    running: AtomicU32,
    /// End of the last sync, in nanoseconds plus one.
    ended: AtomicU64,
}

impl Syncs {
    fn began(&self) {
        self.running.fetch_add(1, AcqRel);
    }

    fn ended(&self, now: Mono) {
        self.ended.fetch_max(now.0 + 1, AcqRel);
        self.running.fetch_sub(1, AcqRel);
    }

    fn disturb(&self, now: Mono) -> bool {
        let ended = self.ended.load(Acquire);
        self.running.load(Acquire) > 0
            || (ended != NEVER && now.since(Mono(ended - 1)) < CALM_AFTER_SYNC)
    }
}

/// One file system's recent experience with writes, shared by all volumes on it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    syncs: Syncs,
    /// Start of the present run of quick pooled writes, in nanoseconds plus one.
    pooled_since: AtomicU64,
    quick: AtomicU32,
    /// End of suspicion, in nanoseconds.
    suspects_until: AtomicU64,
}

impl Pace {
    /// May the next write run on the worker?
    pub(crate) fn inline(&self, now: Mono) -> bool {
        self.pooled_since.load(Relaxed) == NEVER && !self.syncs.disturb(now)
    }

    /// A sync begins.
    pub(crate) fn sync_began(&self) {
        self.syncs.began();
    }

    /// A sync that had begun ended at `now`.
    pub(crate) fn sync_ended(&self, now: Mono) {
        self.syncs.ended(now);
    }

    /// Should it be watched whether a write that begins now goes to sleep?
    pub(crate) fn watches(&self, now: Mono) -> bool {
        self.pooled_since.load(Relaxed) != NEVER || now.0 < self.suspects_until.load(Relaxed)
    }

    /// A write that began at `began` has ended at `now`, wherever it ran. `slept` tells whether its
    /// thread went to sleep in it, if that was watched; it is asked for slow writes only.
    pub(crate) fn wrote(&self, began: Mono, now: Mono, slept: impl FnOnce() -> Option<bool>) {
        if now.since(began) > QUICK {
            match slept() {
                Some(true) => {
                    self.quick.store(0, Relaxed);
                    self.pooled_since.store(now.0 + 1, Relaxed);
                    return;
                }
                Some(false) => {}
                None => self.suspects_until.store((now + SUSPICION).0, Relaxed),
            }
        }
        let since = self.pooled_since.load(Relaxed);
        if since == NEVER {
            return;
        }
        let quick = self.quick.fetch_add(1, Relaxed) + 1;
        if quick >= QUICK_RUN && now.since(Mono(since - 1)) >= QUICK_SPAN {
            self.pooled_since.store(NEVER, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_sync_sends_writes_to_the_pool_until_100_ms_after_it() {
        let pace = Pace::default();
        assert!(pace.inline(Mono::ZERO));
        pace.sync_began();
        pace.sync_began();
        assert!(!pace.inline(Mono::ZERO));
        pace.sync_ended(Mono::from_millis(10));
        assert!(!pace.inline(Mono::from_millis(500)), "one is still running");
        pace.sync_ended(Mono::from_millis(1000));
        assert!(!pace.inline(Mono::from_millis(1099)));
        assert!(pace.inline(Mono::from_millis(1100)));
    }

    #[test]
    fn a_sync_that_ended_at_the_origin_of_the_clock_counts() {
        let pace = Pace::default();
        pace.sync_began();
        pace.sync_ended(Mono::ZERO);
        assert!(!pace.inline(Mono::from_millis(99)));
    }

    #[test]
    fn a_slow_write_is_lived_down_by_64_quick_ones_over_a_second() {
        let pace = Pace::default();
        let slow_end = Mono::ZERO + MS + Duration::from_nanos(1);
        pace.wrote(Mono::ZERO, slow_end, || Some(true));
        for _ in 0..200 {
            pace.wrote(slow_end, slow_end + MS, || None);
        }
        assert!(!pace.inline(slow_end + MS), "many, but within a moment");
        let later = slow_end + Duration::from_secs(1);
        pace.wrote(later, later, || None);
        assert!(pace.inline(later));
    }

    #[test]
    fn few_quick_writes_over_a_long_time_are_not_enough_and_a_slow_one_starts_over() {
        let pace = Pace::default();
        pace.wrote(Mono::ZERO, Mono::from_secs(1), || Some(true));
        let quick = |second| {
            let at = Mono::from_secs(second);
            pace.wrote(at, at, || None);
        };
        (2..65).for_each(quick);
        assert!(!pace.inline(Mono::from_secs(65)), "63 of them");
        pace.wrote(Mono::from_secs(65), Mono::from_secs(66), || Some(true));
        quick(67);
        assert!(!pace.inline(Mono::from_secs(68)), "the run began again");
    }

    #[test]
    fn exactly_one_millisecond_is_quick() {
        let pace = Pace::default();
        pace.wrote(Mono::ZERO, Mono::ZERO + MS, || Some(true));
        assert!(pace.inline(Mono::ZERO + MS));
    }

    #[test]
    fn a_slow_write_of_which_nothing_is_known_raises_suspicion_only() {
        let pace = Pace::default();
        assert!(!pace.watches(Mono::ZERO));
        let end = Mono::from_millis(5);
        pace.wrote(Mono::ZERO, end, || None);
        assert!(pace.inline(end) && pace.watches(end));
        pace.wrote(end, Mono::from_millis(10), || Some(false));
        assert!(pace.inline(end), "its processor was taken away, that was all");
        assert!(!pace.watches(Mono::from_millis(105)));
        pace.wrote(end, Mono::from_millis(20), || Some(true));
        assert!(!pace.inline(Mono::from_millis(20)));
        assert!(pace.watches(Mono::from_secs(100)), "as long as writes are pooled");
    }
}
