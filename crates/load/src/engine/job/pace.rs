//! The times at which requests leave: due times of a limited rate, and pauses. All of it is
//! arithmetic on times in nanoseconds since the start of the load.

use crate::workload::{Pacing, Rate, Think, Workload};
use weir_core::rng::{Rng, mix};

const SECOND_NS: f64 = 1e9;

/// The due times of one job.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// The next due time, or the last one if they are drawn.
    at_ns: f64,
    /// Distance of two operations, or what a byte adds to it.
    gap_ns: f64,
    by_bytes: bool,
    drawn: Option<Rng>,
}

impl Pace {
    /// Of job `index`, from `begin_ns` on; `None` if the rate is not limited. Each job has the
    /// same part of the rate; jobs with even distances are set off against each other evenly.
    #[expect(clippy::cast_precision_loss, reason = "times below 2^52 ns")]
    pub(super) fn new(workload: &Workload, index: u32, begin_ns: u64) -> Option<Self> {
        let (rate, by_bytes) = match workload.rate {
            Rate::Operations(rate) => (rate, false),
            Rate::Bytes(rate) => (rate, true),
            Rate::Unlimited | Rate::Share { .. } => return None,
        };
        let jobs = f64::from(workload.jobs);
        let gap_ns = SECOND_NS * jobs / rate;
        let first = if by_bytes { f64::from(workload.block_bytes) } else { 1.0 };
        let (offset, drawn) = match workload.pacing {
            Pacing::Even => (gap_ns * first * f64::from(index) / jobs, None),
            Pacing::Poisson => {
                let seed = mix(workload.seed ^ mix(u64::from(index) | 1 << 40));
                (0.0, Some(Rng::new(seed)))
            }
        };
        Some(Self { at_ns: begin_ns as f64 + offset, gap_ns, by_bytes, drawn })
    }

    /// The due time of the next operation, which moves `bytes`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times are positive, and what exceeds 584 years is cut off"
    )]
    pub(super) fn due(&mut self, bytes: u32) -> u64 {
        let gap = if self.by_bytes { self.gap_ns * f64::from(bytes) } else { self.gap_ns };
        if let Some(rng) = &mut self.drawn {
            self.at_ns += gap * -(1.0 - rng.unit()).ln();
            return self.at_ns as u64;
        }
        let due = self.at_ns;
        self.at_ns += gap;
        due as u64
    }
}

/// The pauses of one job.
#[derive(Clone, Debug)]
pub(super) struct Pause {
    pause_ns: u64,
    every: u32,
    /// Sent since the last pause.
    sent: u32,
    /// Of these, without an answer.
    open: u32,
    until_ns: Option<u64>,
}

/// May a request leave?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    Now,
    At(u64),
    /// After an answer that is not there yet.
    Held,
}

impl Pause {
    /// The pauses of `think`.
    pub(super) const fn new(think: Think) -> Self {
        let pause_ns = think.us.saturating_mul(1000);
        Self { pause_ns, every: think.every, sent: 0, open: 0, until_ns: None }
    }

    /// May a request leave at `now_ns`?
    pub(super) fn ask(&mut self, now_ns: u64) -> Leave {
        if self.sent < self.every {
            return Leave::Now;
        }
        match self.until_ns {
            None => Leave::Held,
            Some(until_ns) if now_ns < until_ns => Leave::At(until_ns),
            Some(_) => {
                (self.sent, self.until_ns) = (0, None);
                Leave::Now
            }
        }
    }

    /// One leaves.
    pub(super) const fn sent(&mut self) {
        self.sent += 1;
        self.open += 1;
    }

    /// Takes back the request that was about to leave.
    pub(super) const fn unsent(&mut self) {
        self.sent = self.sent.saturating_sub(1);
        self.open = self.open.saturating_sub(1);
    }

    /// One was answered at `now_ns`. `true` if the pause begins with it.
    pub(super) fn answered(&mut self, now_ns: u64) -> bool {
        self.open = self.open.saturating_sub(1);
        let begins = self.open == 0 && self.sent >= self.every;
        if begins {
            self.until_ns = Some(now_ns.saturating_add(self.pause_ns));
        }
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paced(rate: Rate, pacing: Pacing, jobs: u32) -> Workload {
        Workload { rate, pacing, jobs, ..Workload::default() }
    }

    fn dues(workload: &Workload, index: u32, bytes: &[u32]) -> Vec<u64> {
        let mut pace = Pace::new(workload, index, 1000).unwrap();
        bytes.iter().map(|bytes| pace.due(*bytes)).collect()
    }

    #[test]
    fn jobs_share_the_rate_and_are_set_off_against_each_other() {
        let workload = paced(Rate::Operations(1000.0), Pacing::Even, 4);
        assert_eq!(dues(&workload, 0, &[0; 3]), [1000, 4_001_000, 8_001_000]);
        assert_eq!(dues(&workload, 3, &[0; 2]), [3_001_000, 7_001_000]);
    }

    #[test]
    fn a_rate_in_bytes_waits_longer_after_large_requests() {
        let workload = paced(Rate::Bytes(4096.0 * 1000.0), Pacing::Even, 1);
        let seen = dues(&workload, 0, &[4096, 8192, 4096, 4096]);
        assert_eq!(seen, [1000, 1_001_000, 3_001_000, 4_001_000]);
    }

    #[test]
    fn poisson_distances_have_the_mean_and_the_spread_of_their_kind() {
        let workload = paced(Rate::Operations(1000.0), Pacing::Poisson, 2);
        let seen = dues(&workload, 1, &[0; 20_000]);
        let gaps: Vec<f64> = seen.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 2e6 - 1.0).abs() < 0.03, "{mean}");
        assert!((variance.sqrt() / 2e6 - 1.0).abs() < 0.05, "{variance}");
        assert_ne!(seen, dues(&workload, 0, &[0; 20_000]));
    }

    #[test]
    fn a_pause_begins_when_everything_before_it_is_answered() {
        let mut pause = Pause::new(Think { us: 5, every: 2 });
        assert_eq!(pause.ask(0), Leave::Now);
        pause.sent();
        assert_eq!(pause.ask(0), Leave::Now);
        pause.sent();
        assert_eq!(pause.ask(0), Leave::Held);
        assert!(!pause.answered(100));
        assert_eq!(pause.ask(100), Leave::Held);
        assert!(pause.answered(200));
        assert_eq!(pause.ask(200), Leave::At(5200));
        assert_eq!(pause.ask(5200), Leave::Now);
        pause.sent();
        assert_eq!(pause.ask(5200), Leave::Now);
    }
}
