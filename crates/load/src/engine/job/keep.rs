//! The number of requests in flight with which a job keeps a latency.

use super::request::Answer;
use crate::workload::LatencyTarget;

/// Windows in a row that have to keep the latency before more is tried again.
const CALM_WINDOWS: u32 = 3;

/// The state of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    /// The largest number known to keep the latency, and the smallest known not to.
    Open { kept: u32, missed: Option<u32> },
    /// The largest number that keeps it is found; so many windows in a row kept it since.
    Settled { kept: u32, calm: u32 },
}

/// The requests in flight of one job.
#[derive(Clone, Debug)]
pub(super) struct Keeper {
    target: LatencyTarget,
    most: u32,
    /// The number that is tried, or kept.
    depth: u32,
    search: Search,
    /// Requests in flight.
    open: u32,
    /// Begin of the window; its requests, and those that kept the latency.
    window_ns: u64,
    requests: u64,
    in_time: u64,
}

/// The consequence of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    /// The job has found what it looked for, or that there is nothing.
    End,
}

impl Keeper {
    /// Of a job that may have `most` requests in flight, from `begin_ns` on.
    pub(super) const fn new(target: LatencyTarget, most: u32, begin_ns: u64) -> Self {
        Self {
            target,
            most,
            depth: 1,
            search: Search::Open { kept: 0, missed: None },
            open: 0,
            window_ns: begin_ns,
            requests: 0,
            in_time: 0,
        }
    }

    /// May a request leave?
    pub(super) const fn may_send(&self) -> bool {
        self.open < self.depth
    }

    /// One leaves.
    pub(super) const fn sent(&mut self) {
        self.open += 1;
    }

    /// The largest number of requests in flight that kept the latency; 0 if none did.
    pub(super) const fn kept(&self) -> u32 {
        match self.search {
            Search::Open { kept, .. } | Search::Settled { kept, .. } => kept,
        }
    }

    /// One was answered, or failed.
    pub(super) fn answered(&mut self, answer: &Answer) -> Then {
        self.open = self.open.saturating_sub(1);
        // A request sent before the window had another number of requests beside it.
        if let Some(queued_ns) = answer.queued_ns
            && queued_ns >= self.window_ns
        {
            self.requests += 1;
            let latency_ns = answer.now_ns.saturating_sub(queued_ns);
            self.in_time += u64::from(latency_ns <= self.target.us.saturating_mul(1000));
        }
        let window_ns = self.target.window_us.saturating_mul(1000);
        if self.requests == 0 || answer.now_ns.saturating_sub(self.window_ns) < window_ns {
            return Then::GoOn;
        }
        #[expect(clippy::cast_precision_loss, reason = "requests of one window")]
        let percent = self.in_time as f64 * 100.0 / self.requests as f64;
        (self.window_ns, self.requests, self.in_time) = (answer.now_ns, 0, 0);
        self.turn(percent >= self.target.percent)
    }

    /// A window is over, in which the latency was `kept` or not.
    fn turn(&mut self, good: bool) -> Then {
        let (kept, missed) = match (self.search, good) {
            (Search::Open { missed, .. }, true) => (self.depth, missed),
            (Search::Open { kept, .. }, false) => (kept, Some(self.depth)),
            (Search::Settled { kept, calm }, true) if calm < CALM_WINDOWS => {
                self.search = Search::Settled { kept, calm: calm + 1 };
                return Then::GoOn;
            }
            (Search::Settled { .. }, true) => (self.depth, None),
            (Search::Settled { kept, .. }, false) => (kept / 2, Some(self.depth)),
        };
        let found = match missed {
            None => kept >= self.most,
            Some(missed) => missed - kept <= 1,
        };
        if found {
            self.search = Search::Settled { kept, calm: 0 };
            self.depth = kept.max(1);
            return if self.target.goes_on { Then::GoOn } else { Then::End };
        }
        let was_settled = matches!(self.search, Search::Settled { .. });
        self.search = Search::Open { kept, missed };
        self.depth = match missed {
            None if was_settled => (kept + 1).min(self.most),
            None => kept.saturating_mul(2).clamp(1, self.most),
            Some(missed) => u32::midpoint(kept, missed).max(1),
        };
        Then::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(percent: f64, goes_on: bool) -> LatencyTarget {
        LatencyTarget { us: 1000, window_us: 10_000, percent, goes_on }
    }

    /// Answers requests whose latency in microseconds follows from their number in flight, until
    /// the job ends or `windows` are over; gives the numbers that were tried.
    fn tried(
        keeper: &mut Keeper,
        windows: usize,
        latency: impl Fn(u32) -> u64,
    ) -> (Vec<u32>, Then) {
        let (mut now_ns, mut seen) = (0, Vec::new());
        for _ in 0..windows {
            seen.push(keeper.depth);
            let depth = keeper.depth;
            let until_ns = keeper.window_ns + 10_000_000;
            while now_ns < until_ns {
                while keeper.may_send() {
                    keeper.sent();
                }
                let queued_ns = now_ns;
                now_ns += latency(depth) * 1000;
                for _ in 0..depth {
                    let answer = Answer { now_ns, queued_ns: Some(queued_ns), bytes: 0 };
                    if keeper.answered(&answer) == Then::End {
                        return (seen, Then::End);
                    }
                }
            }
        }
        (seen, Then::GoOn)
    }

    #[test]
    fn the_largest_number_that_keeps_the_latency_is_found_by_halving() {
        for limit in 1..=40 {
            let mut keeper = Keeper::new(target(100.0, false), 32, 0);
            let (seen, then) =
                tried(&mut keeper, 100, |depth| if depth > limit { 1001 } else { 900 });
            assert_eq!((keeper.kept(), then), (limit.min(32), Then::End), "{seen:?}");
            assert!(seen.len() <= 12, "{seen:?}");
        }
        let mut none = Keeper::new(target(100.0, false), 32, 0);
        assert_eq!(tried(&mut none, 100, |_| 2000), (vec![1], Then::End));
        assert_eq!(none.kept(), 0);
    }

    #[test]
    fn a_part_of_the_requests_may_be_late() {
        let answer = |keeper: &mut Keeper, number: u64, us: u64| {
            keeper.sent();
            let now_ns = number * 101_000 + us * 1000;
            keeper.answered(&Answer { now_ns, queued_ns: Some(number * 101_000), bytes: 0 })
        };
        for (percent, kept) in [(90.0, 1), (91.0, 0)] {
            let mut keeper = Keeper::new(target(percent, false), 1, 0);
            let mut then = Then::GoOn;
            for number in 1..=110 {
                let us = if number % 10 == 0 { 5000 } else { 1 };
                then = answer(&mut keeper, number, us);
                if then == Then::End {
                    break;
                }
            }
            assert_eq!((then, keeper.kept()), (Then::End, kept), "{percent}");
        }
    }

    #[test]
    fn a_job_that_goes_on_follows_the_target() {
        let mut keeper = Keeper::new(target(100.0, true), 32, 0);
        let (_, then) = tried(&mut keeper, 30, |depth| if depth > 20 { 1001 } else { 900 });
        assert_eq!(then, Then::GoOn);
        assert!((18..=20).contains(&keeper.kept()), "{keeper:?}");
        let start = keeper.window_ns;
        let mut slower = Keeper { window_ns: 0, ..keeper };
        assert!(start > 0);
        tried(&mut slower, 60, |depth| if depth > 5 { 1001 } else { 900 });
        assert!((3..=5).contains(&slower.kept()), "{slower:?}");
    }
}
