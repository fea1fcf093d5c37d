//! Whether a worker polls for the next request before it sleeps. Arithmetic on durations: nothing
//! here waits or reads a clock.
//!
//! A client that sends one request at a time waits in each round trip for its worker to be woken,
//! which takes longer than most requests take to be served. A worker that polls while the request
//! arrives answers at once. Polling costs processor time, so it is paid for with credit: each short
//! pause between requests earns one, and a long one takes the price of a poll away. A worker polls
//! while it has that price. A poll without result doubles the price; results in a row halve it.
//! So polls without result are at most one for each `PRICE_MIN` requests, and a server without
//! requests sleeps.
//!
//! Single long pauses among short ones, as on a busy machine, don't end the polling. Where most
//! pauses are long, the price soon exceeds what short ones earn in a row.
//!
//! If several requests are in flight, on one connection or on several, a poll would only make
//! batches smaller and each request dearer. So a round counts only if the connection of the round
//! before had one request, and if nothing is under way after it.

use std::time::Duration;

/// The longest poll: about twice the time from a reply to the next request of a client on the same
/// machine, where waking a thread on another processor of a virtual machine takes tens of
/// microseconds.
pub const POLL_MAX: Duration = Duration::from_micros(100);
/// A poll ends when the thread was off the processor this long between two looks: other threads
/// want the processor.
pub const POLL_GAP_MAX: Duration = Duration::from_micros(20);
/// A pause in which the worker slept at once is short up to this: it includes the time to wake.
const SLEEP_MAX: Duration = Duration::from_micros(200);
/// Short pauses that pay for a poll: at first, and after many polls without result.
const PRICE_MIN: u32 = 16;
const PRICE_MAX: u32 = 1024;
/// The most credit: pays for nine polls without result, one after the other.
const CREDIT_MAX: u32 = 4 * PRICE_MAX;
/// Polls with a result in a row that halve the price.
const REGAIN: u32 = 16;

/// One worker's record of the pauses between requests.
#[derive(Debug)]
pub struct Spin {
    credit: u32,
    price: u32,
    /// Polls in a row that had a result.
    results: u32,
}

impl Default for Spin {
    /// The record before the first pause.
    fn default() -> Self {
        Self { credit: 0, price: PRICE_MIN, results: 0 }
    }
}

impl Spin {
    /// Is the next request likely to come within [`POLL_MAX`]?
    #[inline]
    pub const fn polls(&self) -> bool {
        self.credit >= self.price
    }

    /// A pause between requests has ended. The worker polled at its begin if
    /// [`polls`](Self::polls) said so.
    #[inline]
    pub fn pause_ended(&mut self, length: Duration) {
        let polled = self.polls();
        if length <= if polled { POLL_MAX } else { SLEEP_MAX } {
            self.credit = (self.credit + 1).min(CREDIT_MAX);
            self.results += u32::from(polled);
            if self.results >= REGAIN {
                self.results = 0;
                self.price = (self.price / 2).max(PRICE_MIN);
            }
            return;
        }
        self.credit = self.credit.saturating_sub(self.price);
        if polled {
            self.results = 0;
            self.price = (self.price * 2).min(PRICE_MAX);
        }
    }

    /// Notes that requests came in another way than one by one from one connection.
    #[inline]
    pub fn interrupt(&mut self) {
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHORT: Duration = POLL_MAX;
    const LONG: Duration = SLEEP_MAX.saturating_add(Duration::from_nanos(1));

    fn after(pauses: u32) -> Spin {
        let mut spin = Spin::default();
        (0..pauses).for_each(|_| spin.pause_ended(SHORT));
        spin
    }

    #[test]
    fn polls_after_some_short_pauses_and_sleeps_after_a_long_one() {
        assert!(!Spin::default().polls());
        assert!(!after(PRICE_MIN - 1).polls());
        let mut spin = after(PRICE_MIN);
        assert!(spin.polls());
        spin.pause_ended(LONG);
        assert!(!spin.polls());
    }

    #[test]
    fn single_long_pauses_among_short_ones_do_not_end_the_polling() {
        let mut spin = after(20 * PRICE_MIN);
        for _ in 0..1000 {
            spin.pause_ended(LONG);
            (0..4 * PRICE_MIN).for_each(|_| spin.pause_ended(SHORT));
            assert!(spin.polls());
        }
    }

    #[test]
    fn where_pauses_end_after_few_the_worker_stops_polling() {
        let mut spin = Spin::default();
        let mut polls = 0;
        for _ in 0..1000 {
            (0..PRICE_MIN).for_each(|_| spin.pause_ended(SHORT));
            polls += u32::from(spin.polls());
            spin.pause_ended(LONG);
        }
        assert_eq!(polls, 1);
    }

    #[test]
    fn a_poll_is_shorter_than_a_sleep_that_counts_as_short() {
        let mut spin = Spin::default();
        let between = POLL_MAX + Duration::from_nanos(1);
        (0..PRICE_MIN).for_each(|_| spin.pause_ended(between));
        assert!(spin.polls());
        spin.pause_ended(between);
        assert!(!spin.polls());
    }

    #[test]
    fn an_interruption_takes_the_credit_and_is_no_poll_without_result() {
        let mut spin = after(PRICE_MIN + 7);
        spin.interrupt();
        assert!(!spin.polls());
        (0..PRICE_MIN).for_each(|_| spin.pause_ended(SHORT));
        assert!(spin.polls());
    }

    #[test]
    fn the_price_doubles_up_to_its_bound_and_results_halve_it() {
        let mut spin = Spin::default();
        for price in [16, 32, 64, 128, 256, 512, 1024, 1024] {
            assert_eq!(spin.price, price);
            while !spin.polls() {
                spin.pause_ended(SHORT);
            }
            spin.pause_ended(LONG);
        }
        while !spin.polls() {
            spin.pause_ended(SHORT);
        }
        (0..REGAIN).for_each(|_| spin.pause_ended(SHORT));
        assert_eq!(spin.price, PRICE_MAX / 2);
    }

    #[test]
    fn a_server_that_becomes_idle_after_much_traffic_polls_a_few_times_at_most() {
        let mut spin = after(1_000_000);
        let mut polls = 0;
        for _ in 0..1000 {
            polls += u32::from(spin.polls());
            spin.pause_ended(LONG);
        }
        assert_eq!(polls, 9);
    }

    proptest! {
        /// At most one request in `PRICE_MIN` comes after a poll without result, whatever the
        /// pauses.
        #[test]
        fn polls_without_result_are_few(runs in proptest::collection::vec(0u32..300, 0..200)) {
            let (mut spin, mut without, mut requests) = (Spin::default(), 0, 0);
            for run in runs {
                (0..run).for_each(|_| spin.pause_ended(SHORT));
                without += u32::from(spin.polls());
                spin.pause_ended(LONG);
                requests += run + 1;
            }
            prop_assert!(without * PRICE_MIN <= requests);
        }
    }
}
