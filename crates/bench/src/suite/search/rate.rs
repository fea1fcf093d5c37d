//! The highest rate with p99 under a target.
//!
//! First the load is applied without a rate: that tells what the target can do at all. Then rates
//! are doubled from a sixteenth of it on until one misses the target, or halved until one meets it,
//! and the bracket between the last that met it and the first that missed it is halved until it is
//! under 5 %. A rate meets the target if its p99 is under it and at least 95 % of the rate was
//! answered. A verdict near the target is asked for again; two that differ mean that the boundary
//! lies within the noise there, and more probes would tell nothing.

use super::Probe;

/// The bracket at which the search ends, as a part of its upper end.
const TOLERANCE: f64 = 0.05;
/// Part of a rate that has to be answered.
const KEPT_UP: f64 = 0.95;
/// Largest factor between a p99 and the target at which the verdict is asked for again.
const NEAR: f64 = 1.25;
/// The first rate, as a part of what is answered without one.
const FIRST: f64 = 1.0 / 16.0;
/// The lowest that is tried.
const LOWEST: f64 = 1.0 / 1024.0;

/// The next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Apply the load without a rate.
    Unlimited,
    /// Apply it at so many operations a second.
    Rate(f64),
    /// Nothing: this is known.
    Done(SearchResult),
}

/// The answer of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchResult {
    /// Rates up to `met` meet the target, and `missed` misses it.
    Between {
        /// Operations a second.
        met: f64,
        /// Operations a second.
        missed: f64,
        /// Verdicts at `missed` differed: the boundary lies within the noise.
        noisy: bool,
        /// The generator was the limit at `missed`: the target may do more.
        saturated: bool,
    },
    /// The load without a rate meets the target: with so many requests in flight there is no limit
    /// to be found. So many operations a second were answered.
    Everything(f64),
    /// Not even so many operations a second meet it.
    Nothing(f64),
}

/// Decides which rate to try.
#[derive(Clone, Debug)]
pub struct RateSearch {
    target_ms: f64,
    unlimited: Option<f64>,
    /// The highest rate that met the target.
    met: Option<f64>,
    /// The lowest that missed it, and whether the generator was the limit then.
    missed: Option<(f64, bool)>,
    /// A rate whose first verdict was near the target, and that verdict.
    again: Option<(f64, bool)>,
    answer: Option<SearchResult>,
}

impl RateSearch {
    /// A search for the highest rate with p99 under `target_ms`.
    #[must_use]
    pub const fn new(target_ms: f64) -> Self {
        Self { target_ms, unlimited: None, met: None, missed: None, again: None, answer: None }
    }

    /// The next action.
    #[must_use]
    pub fn next(&self) -> Next {
        if let Some(answer) = self.answer {
            return Next::Done(answer);
        }
        let Some(unlimited) = self.unlimited else { return Next::Unlimited };
        if let Some((rate, _)) = self.again {
            return Next::Rate(rate);
        }
        match (self.met, self.missed) {
            (None, None) => Next::Rate((unlimited * FIRST).max(1.0)),
            (None, Some((missed, _))) => Next::Rate(missed / 2.0),
            (Some(met), None) => Next::Rate(met * 2.0),
            (Some(met), Some((missed, _))) => Next::Rate(f64::midpoint(met, missed)),
        }
    }

    /// Takes the result of the load without a rate.
    pub fn unlimited(&mut self, probe: &Probe) {
        self.unlimited = Some(probe.iops);
        if probe.iops <= 0.0 {
            self.answer = Some(SearchResult::Nothing(0.0));
        } else if probe.p99_ms <= self.target_ms {
            self.answer = Some(SearchResult::Everything(probe.iops));
        }
    }

    /// Takes the result of `rate`.
    pub fn rate(&mut self, rate: f64, probe: &Probe) {
        let kept_up = probe.iops >= rate * KEPT_UP;
        let met = kept_up && probe.p99_ms <= self.target_ms;
        let near = probe.p99_ms <= self.target_ms * NEAR && probe.p99_ms >= self.target_ms / NEAR;
        match self.again.take() {
            None if near && kept_up => self.again = Some((rate, met)),
            Some((_, first)) if first != met => self.noise(rate, probe.saturated),
            None | Some(_) => self.judged(rate, met, probe.saturated),
        }
    }

    /// Two probes of one rate differ.
    fn noise(&mut self, rate: f64, saturated: bool) {
        match self.met {
            Some(met) => {
                let missed = rate;
                self.answer = Some(SearchResult::Between { met, missed, noisy: true, saturated });
            }
            // Nothing is certain to meet it yet, so go on below.
            None => self.judged(rate, false, saturated),
        }
    }

    fn judged(&mut self, rate: f64, met: bool, saturated: bool) {
        if met {
            self.met = Some(rate);
        } else {
            self.missed = Some((rate, saturated));
        }
        let lowest = (self.unlimited.unwrap_or(0.0) * LOWEST).max(1.0);
        self.answer = match (self.met, self.missed) {
            (Some(met), Some((missed, saturated))) if missed - met <= missed * TOLERANCE => {
                Some(SearchResult::Between { met, missed, noisy: false, saturated })
            }
            (None, Some((missed, _))) if missed <= lowest => Some(SearchResult::Nothing(missed)),
            _ => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::rng::Rng;

    /// One server after M/M/1: the time in it is exponential with mean 1/(capacity - rate). Closed
    /// loops of `depth` answer at its capacity. `noise` is the part by which percentiles vary.
    struct Server {
        capacity: f64,
        depth: f64,
        noise: f64,
        rng: Rng,
        probes: usize,
    }

    impl Server {
        fn new(capacity: f64, noise: f64) -> Self {
            Self { capacity, depth: 64.0, noise, rng: Rng::new(7), probes: 0 }
        }

        fn jitter(&mut self) -> f64 {
            let step = f64::from(u32::try_from(self.rng.below(2001)).unwrap());
            1.0 + self.noise * (step / 1000.0 - 1.0)
        }

        fn closed(&mut self) -> Probe {
            self.probes += 1;
            let mean_ms = self.depth / self.capacity * 1e3;
            Probe {
                iops: self.capacity,
                mean_ms,
                p99_ms: mean_ms * 1.5 * self.jitter(),
                saturated: false,
            }
        }

        fn open(&mut self, rate: f64) -> Probe {
            self.probes += 1;
            if rate >= self.capacity {
                let ms = 60_000.0;
                return Probe { iops: self.capacity, mean_ms: ms, p99_ms: ms, saturated: false };
            }
            let mean_ms = 1e3 / (self.capacity - rate);
            let p99_ms = mean_ms * 100.0_f64.ln() * self.jitter();
            Probe { iops: rate, mean_ms, p99_ms, saturated: false }
        }

        /// The rate at which p99 is `ms`.
        fn limit(&self, ms: f64) -> f64 {
            self.capacity - 100.0_f64.ln() * 1e3 / ms
        }

        fn search(&mut self, target_ms: f64) -> SearchResult {
            let mut search = RateSearch::new(target_ms);
            loop {
                match search.next() {
                    Next::Unlimited => search.unlimited(&self.closed()),
                    Next::Rate(rate) => search.rate(rate, &self.open(rate)),
                    Next::Done(answer) => return answer,
                }
                assert!(self.probes < 60, "it must end");
            }
        }
    }

    #[test]
    fn the_limit_of_a_quiet_server_is_found_within_the_tolerance() {
        for target_ms in [0.3, 0.5, 1.0, 2.0] {
            let mut server = Server::new(40_000.0, 0.0);
            let limit = server.limit(target_ms);
            let SearchResult::Between { met, missed, noisy, .. } = server.search(target_ms) else {
                panic!("no limit")
            };
            assert!(met <= limit && limit <= missed, "{met} {limit} {missed}");
            assert!(missed - met <= missed * TOLERANCE && !noisy);
            assert!(server.probes < 20, "{} probes", server.probes);
        }
    }

    #[test]
    fn noise_ends_the_search_early_and_is_said() {
        let mut said = 0;
        for seed in 0..20 {
            let mut server = Server::new(40_000.0, 0.2);
            server.rng = Rng::new(seed);
            let limit = server.limit(1.0);
            match server.search(1.0) {
                SearchResult::Between { met, missed, noisy, .. } => {
                    said += u32::from(noisy);
                    // A fifth more or less of p99 is at most 4 % of the rate here.
                    assert!(met <= limit * 1.05, "{met} {limit} {missed}");
                    assert!(missed >= limit * 0.9, "{met} {limit} {missed}");
                }
                other => panic!("{other:?}"),
            }
            assert!(server.probes < 20);
        }
        assert!(said > 0, "verdicts near the target differ at times");
    }

    #[test]
    fn a_target_that_can_t_be_met_ends_at_the_lowest_rate() {
        // Even an idle server takes 4.6 ms for its slowest hundredth.
        let mut server = Server::new(1000.0, 0.0);
        let SearchResult::Nothing(lowest) = server.search(2.0) else { panic!("met") };
        assert!((0.5..=1.0).contains(&lowest), "{lowest}");
        assert!(server.probes < 20);
    }

    #[test]
    fn a_target_that_is_met_without_any_rate_has_no_limit_to_be_found() {
        let mut server = Server::new(40_000.0, 0.0);
        assert_eq!(server.search(100.0), SearchResult::Everything(40_000.0));
        assert_eq!(server.probes, 1);
    }

    #[test]
    fn nothing_answered_is_nothing_met() {
        let mut search = RateSearch::new(1.0);
        search.unlimited(&Probe::default());
        assert_eq!(search.next(), Next::Done(SearchResult::Nothing(0.0)));
    }

    #[test]
    fn a_rate_that_is_not_kept_up_with_misses_whatever_its_latency() {
        let mut search = RateSearch::new(1.0);
        search.unlimited(&Probe { iops: 1600.0, p99_ms: 9.0, mean_ms: 9.0, saturated: false });
        assert_eq!(search.next(), Next::Rate(100.0));
        search.rate(100.0, &Probe { iops: 50.0, p99_ms: 0.1, mean_ms: 0.1, saturated: true });
        assert_eq!(search.next(), Next::Rate(50.0));
    }
}
