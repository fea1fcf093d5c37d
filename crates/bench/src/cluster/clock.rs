//! Clocks that disagree: how far a worker's is off the coordinator's, found as NTP finds it
//! (RFC 5905 §8), and a start that all share.
//!
//! A clock counts nanoseconds from an instant of its own, and nobody sets it. An exchange of a
//! probe gives four readings; half the round trip bounds the error, whatever the network did. The
//! probe with the least round trip is the best. Everything but [`Clock`] is arithmetic.

use std::time::{Duration, Instant};

/// A monotonic clock. Clones agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
    offset_ns: u64,
}

impl Clock {
    /// Counts from now.
    #[must_use]
    pub fn new() -> Self {
        Self::ahead(0)
    }

    /// Shows `offset_ns` now, as that of a machine that has been up for so long.
    #[must_use]
    pub fn ahead(offset_ns: u64) -> Self {
        Self { base: Instant::now(), offset_ns }
    }

    /// The clock's time now.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.at_ns(Instant::now())
    }

    /// The clock's time at `instant`.
    #[must_use]
    pub fn at_ns(&self, instant: Instant) -> u64 {
        let passed = instant.saturating_duration_since(self.base).as_nanos();
        self.offset_ns.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// The instant at which the clock shows `ns`; its own start for earlier times.
    #[must_use]
    pub fn instant(&self, ns: u64) -> Instant {
        let passed = Duration::from_nanos(ns.saturating_sub(self.offset_ns));
        self.base.checked_add(passed).unwrap_or(self.base)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// The four times of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Time at which the probe left, by the coordinator's clock.
    pub sent_ns: u64,
    /// Time at which the probe came, by the worker's clock.
    pub received_ns: u64,
    /// The answer left, by the worker's.
    pub answered_ns: u64,
    /// The answer came, by the coordinator's.
    pub arrived_ns: u64,
}

/// The offset of a worker's clock by one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The worker's clock less the coordinator's.
    pub offset_ns: i128,
    /// Time that the two messages took together.
    pub round_trip_ns: u64,
    /// Time of the probe, by the coordinator's clock.
    pub at_ns: u64,
}

impl Exchange {
    /// The probe's reading; `None` if no clock can have shown these times.
    #[must_use]
    pub fn reading(&self) -> Option<Reading> {
        let whole = self.arrived_ns.checked_sub(self.sent_ns)?;
        let within = self.answered_ns.checked_sub(self.received_ns)?;
        let round_trip_ns = whole.checked_sub(within)?;
        let there = i128::from(self.received_ns) - i128::from(self.sent_ns);
        let back = i128::from(self.answered_ns) - i128::from(self.arrived_ns);
        let offset_ns = (there + back) / 2;
        Some(Reading { offset_ns, round_trip_ns, at_ns: self.sent_ns + whole / 2 })
    }
}

impl Reading {
    /// The largest error of the offset.
    #[must_use]
    pub const fn uncertainty_ns(&self) -> u64 {
        self.round_trip_ns.div_ceil(2)
    }

    /// The worker's time when the coordinator's clock shows `ns`.
    #[must_use]
    pub fn theirs(&self, ns: u64) -> u64 {
        let theirs = i128::from(ns) + self.offset_ns;
        u64::try_from(theirs.max(0)).unwrap_or(u64::MAX)
    }

    /// The offset in milliseconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "told to people")]
    pub fn offset_ms(&self) -> f64 {
        self.offset_ns as f64 / 1e6
    }

    /// The uncertainty in milliseconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "told to people")]
    pub fn uncertainty_ms(&self) -> f64 {
        self.uncertainty_ns() as f64 / 1e6
    }

    /// By how many milliseconds the clocks have certainly moved against each other since
    /// `earlier`; zero where the uncertainties explain it.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "told to people")]
    pub fn drift_ms(&self, earlier: &Self) -> f64 {
        let moved = (self.offset_ns - earlier.offset_ns).unsigned_abs();
        let unsure = u128::from(self.uncertainty_ns()) + u128::from(earlier.uncertainty_ns());
        moved.saturating_sub(unsure) as f64 / 1e6
    }
}

/// The best of several: that with the least round trip.
#[must_use]
pub(crate) fn best(readings: &[Reading]) -> Option<Reading> {
    readings.iter().min_by_key(|reading| reading.round_trip_ns).copied()
}

/// Time from the announcement of the common start to the start, in nanoseconds: half a second and
/// four times the longest of the `readings`' round trips.
#[must_use]
pub(crate) fn lead_ns(readings: &[Reading]) -> u64 {
    let longest = readings.iter().map(|reading| reading.round_trip_ns).max().unwrap_or(0);
    500_000_000_u64.saturating_add(longest.saturating_mul(4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::rng::Rng;

    const HOUR_NS: u64 = 3_600_000_000_000;

    /// A worker's clock in virtual time.
    struct Skewed {
        offset_ns: i128,
        drift_ppm: i128,
    }

    impl Skewed {
        fn shows(&self, true_ns: u64) -> u64 {
            let true_ns = i128::from(true_ns);
            u64::try_from(true_ns + self.offset_ns + true_ns * self.drift_ppm / 1_000_000).unwrap()
        }

        /// A probe sent at `sent_ns` that takes these times there, on the machine, and back.
        fn probe(&self, sent_ns: u64, there: u64, within: u64, back: u64) -> Reading {
            let (received, answered) = (sent_ns + there, sent_ns + there + within);
            let exchange = Exchange {
                sent_ns,
                received_ns: self.shows(received),
                answered_ns: self.shows(answered),
                arrived_ns: answered + back,
            };
            exchange.reading().unwrap()
        }
    }

    #[test]
    fn equal_ways_give_the_offset_exactly_whichever_clock_is_hours_ahead() {
        for offset_ns in [0, 1, 5 * i128::from(HOUR_NS), -5 * i128::from(HOUR_NS)] {
            let clock = Skewed { offset_ns, drift_ppm: 0 };
            let reading = clock.probe(6 * HOUR_NS, 250_000, 40_000, 250_000);
            assert_eq!((reading.offset_ns, reading.round_trip_ns), (offset_ns, 500_000));
            assert_eq!(reading.theirs(7 * HOUR_NS), clock.shows(7 * HOUR_NS));
        }
    }

    #[test]
    fn however_uneven_the_ways_the_error_is_within_the_uncertainty() {
        let mut rng = Rng::new(7);
        for _ in 0..10_000 {
            let clock = Skewed {
                offset_ns: i128::from(rng.below(10 * HOUR_NS)) - i128::from(5 * HOUR_NS),
                drift_ppm: 0,
            };
            let reading = clock.probe(
                6 * HOUR_NS + rng.below(HOUR_NS),
                rng.below(200_000_000),
                rng.below(5_000_000),
                rng.below(200_000_000),
            );
            let error = (reading.offset_ns - clock.offset_ns).unsigned_abs();
            assert!(error <= u128::from(reading.uncertainty_ns()), "{error} {reading:?}");
        }
    }

    #[test]
    fn the_probe_with_the_least_round_trip_is_taken() {
        let clock = Skewed { offset_ns: 123_456_789, drift_ppm: 0 };
        let slow_there = clock.probe(HOUR_NS, 90_000_000, 0, 100_000);
        let quick = clock.probe(HOUR_NS, 120_000, 0, 100_000);
        let slow_back = clock.probe(HOUR_NS, 100_000, 0, 50_000_000);
        let best = best(&[slow_there, quick, slow_back]).unwrap();
        assert_eq!(best, quick);
        assert!((best.offset_ns - 123_456_789).unsigned_abs() <= 10_000);
        assert_eq!(super::best(&[]), None);
    }

    #[test]
    fn with_drift_all_workers_still_begin_together() {
        // 200 ppm is far worse than quartz; probes are at most seconds old when the start comes.
        let mut rng = Rng::new(1);
        let begin_ns = 2 * HOUR_NS;
        for drift_ppm in [-200, -50, 0, 50, 200] {
            let offset_ns = i128::from(rng.below(HOUR_NS));
            let clock = Skewed { offset_ns, drift_ppm };
            let reading = clock.probe(begin_ns - 2_000_000_000, 300_000, 20_000, 500_000);
            let wanted = reading.theirs(begin_ns);
            // The true time at which the worker's clock shows that decides.
            let error = i128::from(wanted) - i128::from(clock.shows(begin_ns));
            let by_drift = 2_000_000_000 * drift_ppm.abs() / 1_000_000;
            let bound = i128::from(reading.uncertainty_ns()) + by_drift + 1000;
            assert!(error.abs() <= bound, "{error} is over {bound}");
        }
    }

    #[test]
    fn drift_is_told_only_where_it_is_certain() {
        let clock = Skewed { offset_ns: 0, drift_ppm: 100 };
        let before = clock.probe(1_000, 100_000, 0, 100_000);
        let after = clock.probe(HOUR_NS, 100_000, 0, 100_000);
        assert!((after.drift_ms(&before) - 359.8).abs() < 0.1, "{}", after.drift_ms(&before));
        let soon = clock.probe(1_000_000, 150_000, 0, 100_000);
        assert_eq!(soon.drift_ms(&before), 0.0);
    }

    #[test]
    fn times_that_no_clock_can_have_shown_give_no_reading() {
        let good = Exchange { sent_ns: 10, received_ns: 5, answered_ns: 6, arrived_ns: 20 };
        good.reading().unwrap();
        for wrong in [
            Exchange { arrived_ns: 9, ..good },
            Exchange { answered_ns: 4, ..good },
            Exchange { answered_ns: 500, ..good },
            Exchange { received_ns: 0, answered_ns: u64::MAX, ..good },
        ] {
            assert_eq!(wrong.reading(), None, "{wrong:?}");
        }
        let far = Exchange { received_ns: u64::MAX, answered_ns: u64::MAX, ..good };
        assert_eq!(far.reading().unwrap().theirs(u64::MAX), u64::MAX);
    }

    #[test]
    fn the_start_is_announced_early_enough_for_the_slowest() {
        let reading = |round_trip_ns| Reading { offset_ns: 0, round_trip_ns, at_ns: 0 };
        assert_eq!(lead_ns(&[]), 500_000_000);
        assert_eq!(lead_ns(&[reading(1_000_000), reading(300_000_000)]), 1_700_000_000);
    }

    #[test]
    fn a_clock_and_its_instants_agree() {
        let clock = Clock::ahead(HOUR_NS);
        let instant = clock.instant(HOUR_NS + 5_000);
        assert_eq!(clock.at_ns(instant), HOUR_NS + 5_000);
        assert_eq!(clock.instant(3), clock.instant(HOUR_NS));
    }
}
