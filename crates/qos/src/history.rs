//! The part of an old charge that a meter may still give back. Not here: the virtual time itself,
//! which belongs to the [meter](crate::meter).
//!
//! # Why a refund needs a history
//!
//! A charge that is given back must leave the meter as if it had never been made, and no better.
//! The catch-up credit of an idle meter is 50 ms; a charge that was held for ten seconds and is
//! then given back did not keep the meter busy, so without it the meter would have been idle, and
//! would have *lost* all but 50 ms of that time. If every refund moved the virtual time back by the
//! whole charge, charges could be collected for as long as one likes and exchanged for admissions
//! in one moment.
//!
//! # The rule
//!
//! Let `S` be the slice's catch-up credit and `W(s, t)` what the meter charged from `s` to `t` and
//! has not given back, in time at its rate. The contract holds in every window that begins at `s`
//! as long as the virtual time `v` satisfies
//!
//! ```text
//! v ≥ s − S + W(s, t)
//! ```
//!
//! Charges keep that by themselves. A refund lowers `v`. It also lowers `W(s, t)` for moments `s`
//! before the charge, so those stay satisfied; but for moments after the charge it does not. So the
//! history keeps, for moments `s` in the past, by how much `v` may still be lowered: the *slack* `v
//! − (s − S + W(s, t))`. Later charges move both sides alike and leave every slack as it is. A
//! refund is limited to the least slack of the moments after its charge, and lowers those.
//!
//! # What is kept
//!
//! Time is divided into buckets of 2^17 ns (131 µs), and a moment is noted when the first charge of
//! a bucket is tried: the start of the bucket. Within a bucket the slack is less than that by no
//! more than the bucket's length, so a refund leaves so much in the buckets after its charge. In
//! the bucket of the charge itself it lowers the slack of the moments after the charge alone, to
//! what it was without the charge, which is also too little by no more than a bucket's length:
//! where the credit was used up to its end, so much is kept back of the refund. A charge that is
//! given back at the same moment is given back whole, since no window begins between the two.
//! Twelve moments are kept; where there are more, two neighbours become one, which has the later
//! moment and the lesser slack. That gives back less than the rule allows and never more. The
//! distances grow with the age, up to 268 ms.

use once_cell::race::OnceBox;
use weir_core::Mono;

use crate::sync::{AtomicU64, Ordering};

/// The exponent of a bucket's length in nanoseconds.
const BUCKET_SHIFT: u32 = 17;

/// Number of moments that are kept.
const MARKS: usize = 12;

/// Moments older than so many buckets (268 ms) are not kept apart from each other.
const OLD: u64 = 1 << 11;

/// A bucket's length in nanoseconds.
pub(crate) const BUCKET_NANOS: u64 = 1 << BUCKET_SHIFT;

/// The bucket of a moment.
pub(crate) const fn bucket_of(now: Mono) -> u64 {
    now.0 >> BUCKET_SHIFT
}

/// Start of a bucket, in nanoseconds.
pub(crate) const fn start_of(bucket: u64) -> u64 {
    bucket << BUCKET_SHIFT
}

/// The start of a bucket, and its slack.
#[derive(Debug, Default)]
struct Mark {
    /// The bucket's number plus one; zero where there is no mark.
    after: AtomicU64,
    /// The slack, in the meter's ticks.
    slack: AtomicU64,
}

impl Mark {
    fn after(&self) -> u64 {
        self.after.load(Ordering::Relaxed)
    }

    fn slack(&self) -> u64 {
        self.slack.load(Ordering::Relaxed)
    }

    fn set(&self, after: u64, slack: u64) {
        self.after.store(after, Ordering::Relaxed);
        self.slack.store(slack, Ordering::Relaxed);
    }
}

/// The moments of one meter. Its cells are atomic because the crate has no `unsafe`; the meter's
/// lock guards them.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The marks from the oldest to the newest; marks without a bucket come last. They are
    /// allocated when the first one is noted: of ten thousand volumes, few are in use, and of the
    /// three meters of a volume, often one.
    marks: OnceBox<[Mark; MARKS]>,
}

impl History {
    /// Notes the start of `bucket`, which is later than all noted buckets.
    pub(crate) fn open(&self, bucket: u64, slack: u64) {
        let marks = self.marks.get_or_init(Default::default);
        let [.., last] = marks;
        let free = if last.after() == 0 {
            marks.iter().find(|mark| mark.after() == 0).unwrap_or(last)
        } else {
            merge(marks, bucket);
            last
        };
        free.set(bucket + 1, slack);
    }

    fn marks(&self) -> impl DoubleEndedIterator<Item = &Mark> {
        self.marks.get().into_iter().flatten()
    }

    /// The newest bucket that was noted.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.marks().rev().find_map(|mark| mark.after().checked_sub(1))
    }

    /// Gives back as much as may be of `ticks`, the charge of a request of `bucket`, and says how
    /// much that is. A bucket is `length` ticks long; `at_once` if no time has passed since the
    /// charge.
    pub(crate) fn refund(&self, bucket: u64, ticks: u64, length: u64, at_once: bool) -> u64 {
        let least = self.later(bucket).map(|mark| mark.slack().saturating_sub(length)).min();
        let ticks = ticks.min(least.unwrap_or(u64::MAX));
        let own = self.marks().find(|mark| mark.after() == bucket + 1 && !at_once);
        let missing = own.map_or(0, |mark| length.saturating_sub(mark.slack()));
        let kept = missing.min(ticks);
        if let Some(own) = own {
            own.slack.store(own.slack() + kept, Ordering::Relaxed);
        }
        for mark in self.later(bucket) {
            mark.slack.store(mark.slack().saturating_sub(ticks - kept), Ordering::Relaxed);
        }
        ticks - kept
    }

    /// Converts all slacks to another rate: every slack keeps its value in bytes.
    pub(crate) fn rescale(&self, scale: impl Fn(u64) -> u64) {
        for mark in self.marks() {
            mark.slack.store(scale(mark.slack()), Ordering::Relaxed);
        }
    }

    /// Forgets all marks, because the virtual time was set anew.
    pub(crate) fn clear(&self) {
        for mark in self.marks() {
            mark.set(0, 0);
        }
    }

    fn later(&self, bucket: u64) -> impl Iterator<Item = &Mark> {
        self.marks().filter(move |mark| mark.after() > bucket + 1)
    }
}

/// Makes room at the end: two neighbours become one, so that distances grow with the age.
fn merge(marks: &[Mark; MARKS], now: u64) {
    let after = marks.each_ref().map(Mark::after);
    let at = if after[1] + OLD < now { 0 } else { closest(&after, now) };
    if let Some([older, newer]) = marks.get(at..at + 2) {
        newer.slack.store(older.slack().min(newer.slack()), Ordering::Relaxed);
    }
    for (to, from) in marks.iter().zip(marks.iter().skip(1)).skip(at) {
        to.set(from.after(), from.slack());
    }
}

/// The first mark of the pair that spans the least time relative to its age. The fractions are
/// compared by products: this runs once in each bucket, and ten divisions would take most of an
/// admission. A span has less than 47 bits, and an age no more than [`OLD`] and two.
fn closest(after: &[u64; MARKS], now: u64) -> usize {
    // One by zero is more than the fraction of any pair, so the first pair always replaces it.
    let (mut closest, mut least, mut age_of_least) = (0, 1, 0);
    for (at, window) in (1..).zip(after.windows(3)) {
        let [before, _, newer] = window else { continue };
        let (span, age) = (newer.saturating_sub(*before), (now + 2).saturating_sub(*newer).max(1));
        if span * age_of_least < least * age {
            (closest, least, age_of_least) = (at, span, age);
        }
    }
    closest
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_charge_is_limited_by_the_moments_after_it() {
        let history = History::default();
        let refund = |bucket, ticks| history.refund(bucket, ticks, 1, false);
        assert_eq!((refund(0, 100), history.newest()), (100, None));
        history.rescale(|_| 1);
        assert!(history.marks.get().is_none(), "nothing is allocated before a moment is noted");
        for (bucket, slack) in [(10, 6), (20, 10), (30, 8)] {
            history.open(bucket, slack);
        }
        assert_eq!(refund(30, 100), 100, "no moment after it");
        assert_eq!(refund(15, 3), 3);
        assert_eq!(refund(19, 1), 1);
        assert_eq!(refund(9, 100), 3, "7 less 4");
        assert_eq!([0, 9, 10, 20].map(|bucket| refund(bucket, 100)), [0, 0, 0, 0]);
        history.clear();
        assert_eq!(refund(0, 100), 100);
    }

    #[test]
    fn a_refund_keeps_back_what_is_missing_to_the_length_of_its_bucket() {
        let history = History::default();
        history.open(10, 30);
        assert_eq!(history.refund(10, 50, 131, true), 50, "at the same moment");
        assert_eq!(history.refund(10, 50, 131, false), 0, "101 are missing");
        assert_eq!(history.refund(10, 60, 131, false), 9, "51 are missing");
        assert_eq!(history.refund(10, 60, 131, false), 60, "nothing is missing any more");
    }

    #[test]
    fn it_reaches_back_however_many_moments_there_were_and_never_allows_more() {
        let history = History::default();
        let slacks: Vec<u64> = (0..100_000_u64).map(|at| 1_000_000 + at * 7919 % 1000).collect();
        for (bucket, slack) in (0..).zip(&slacks) {
            history.open(bucket, *slack);
        }
        for bucket in [0, 1, 50_000, 99_000, 99_990, 99_998] {
            let least = slacks[bucket + 1..].iter().min().unwrap();
            let least_of = history.later(bucket as u64).map(Mark::slack).min().unwrap();
            assert!(least_of <= *least && least_of >= 1_000_000, "{bucket}: {least_of}");
        }
        assert_eq!(history.later(99_999).count(), 0);
        // Old marks and new ones are kept apart.
        let after: Vec<u64> = history.marks().map(Mark::after).collect();
        assert!(after.is_sorted() && after[MARKS - 1] == 100_000, "{after:?}");
        assert!(after[MARKS - 2] >= 99_990 && after[0] <= 98_000, "{after:?}");
    }

    proptest! {
        /// The quotients tell all fractions apart: two that differ do so by more than 2^-23, as
        /// ages are no more than `OLD` and two.
        #[test]
        fn the_closest_pair_is_the_first_of_those_with_the_least_fraction(
            gaps in prop::collection::vec(
                prop_oneof![
                    20 => Just(1), 10 => 1..4_u64, 5 => 1..200_u64,
                    1 => (11..40).prop_map(|shift| 1_u64 << shift),
                ],
                MARKS..300,
            ),
        ) {
            let (history, mut now) = (History::default(), 0);
            for gap in gaps {
                now += gap;
                let marks = history.marks.get().map(|marks| marks.each_ref().map(Mark::after));
                if let Some(after) = marks.filter(|after| after[MARKS - 1] > 0)
                    && after[1] + OLD >= now
                {
                    let fraction = |at: &usize| {
                        let (span, age) = (after[at + 1] - after[at - 1], now + 2 - after[at + 1]);
                        (u128::from(span) << 64) / u128::from(age)
                    };
                    let least = (1..MARKS - 1).min_by_key(fraction).unwrap();
                    prop_assert_eq!(closest(&after, now), least, "{:?} at {}", after, now);
                }
                history.open(now, 0);
            }
        }
    }
}
