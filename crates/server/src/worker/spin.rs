//! Whether a worker polls for the next request before it sleeps. Arithmetic on timestamps: nothing
//! here waits or reads a clock.
//!
//! A client that sends one request at a time waits in each round trip until its worker was woken,
//! which takes longer than to carry most requests out. A worker that still polls when the request
//! comes answers at once. Polling takes processor time, so a worker does it only after many lulls
//! in a row that a poll would have outlasted, and not for long. Each poll in vain means that more
//! such lulls must come before the next one: the processor time lost is bounded by a part of what
//! the requests took, and a server without requests sleeps.
//!
//! Clients that keep several requests in flight send them in batches and wait for none of them, so
//! only rounds count in which every connection that had anything sent one request, and nothing is
//! under way.

use std::time::Duration;

/// The longest poll: about twice the time in which a client on the same machine or in the same rack
/// answers a reply with its next request.
pub(super) const POLL_MAX: Duration = Duration::from_micros(50);
/// A poll whose thread was kept from the processor this long between two looks is over: others
/// want the processor.
pub(super) const POLL_GAP_MAX: Duration = Duration::from_micros(20);
/// Short lulls in a row before a worker polls, at first and after many polls in vain.
const RUN_MIN: u32 = 32;
const RUN_MAX: u32 = 8192;
/// Polls that succeed before half as many lulls are wanted again.
const REGAIN: u32 = 1024;

/// What one worker has seen of lulls between requests.
#[derive(Debug)]
pub(super) struct Spin {
    /// Short lulls in a row.
    run: u32,
    /// How many of them are wanted before a poll.
    wanted: u32,
    /// Polls in a row that succeeded.
    successes: u32,
}

impl Spin {
    /// Nothing seen yet.
    pub(super) const fn new() -> Self {
        Self { run: 0, wanted: RUN_MIN, successes: 0 }
    }

    /// Is the next request likely to come within [`POLL_MAX`]?
    pub(super) const fn polls(&self) -> bool {
        self.run >= self.wanted
    }

    /// A lull has ended, in which the worker polled at first if [`polls`](Self::polls) said so.
    pub(super) fn lull(&mut self, length: Duration) {
        let polled = self.polls();
        if length <= POLL_MAX {
            self.run = self.run.saturating_add(1);
            self.successes += u32::from(polled);
            if self.successes >= REGAIN {
                self.successes = 0;
                self.wanted = (self.wanted / 2).max(RUN_MIN);
            }
            return;
        }
        self.run = 0;
        if polled {
            self.successes = 0;
            self.wanted = (self.wanted * 2).min(RUN_MAX);
        }
    }

    /// Requests came in another way than one by one.
    pub(super) fn batch(&mut self) {
        self.run = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHORT: Duration = POLL_MAX;
    const LONG: Duration = POLL_MAX.saturating_add(Duration::from_nanos(1));

    fn after(lulls: u32) -> Spin {
        let mut spin = Spin::new();
        (0..lulls).for_each(|_| spin.lull(SHORT));
        spin
    }

    #[test]
    fn polls_after_a_run_of_short_lulls_and_sleeps_after_a_long_one() {
        assert!(!after(RUN_MIN - 1).polls());
        let mut spin = after(RUN_MIN);
        assert!(spin.polls());
        spin.lull(LONG);
        assert!(!spin.polls());
    }

    #[test]
    fn a_batch_ends_the_run_and_costs_no_trust() {
        let mut spin = after(RUN_MIN + 7);
        spin.batch();
        assert!(!spin.polls());
        (0..RUN_MIN).for_each(|_| spin.lull(SHORT));
        assert!(spin.polls());
    }

    #[test]
    fn each_poll_in_vain_doubles_what_is_wanted_and_success_regains_it() {
        let mut spin = Spin::new();
        for wanted in [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 8192] {
            assert_eq!(spin.wanted, wanted);
            (0..wanted).for_each(|_| spin.lull(SHORT));
            assert!(spin.polls());
            spin.lull(LONG);
        }
        (0..RUN_MAX + REGAIN).for_each(|_| spin.lull(SHORT));
        assert_eq!(spin.wanted, RUN_MAX / 2);
    }

    proptest! {
        /// Whatever comes, at most one request in `RUN_MIN` came after a poll in vain.
        #[test]
        fn polls_in_vain_are_few(runs in proptest::collection::vec(0u32..300, 0..200)) {
            let (mut spin, mut vain, mut requests) = (Spin::new(), 0, 0);
            for run in runs {
                (0..run).for_each(|_| spin.lull(SHORT));
                vain += u32::from(spin.polls());
                spin.lull(LONG);
                requests += run + 1;
            }
            prop_assert!(vain * RUN_MIN <= requests);
        }
    }
}
