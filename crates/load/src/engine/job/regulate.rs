//! Limits of a job apart from its rate and its pauses: its part of the activity of several loads,
//! for which it waits, and a rate below which it ends.

use crate::workload::{Flow, MinRate};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SECOND_NS: u64 = 1_000_000_000;
/// Time after the start of a load in which no minimum is asked for, and that between two looks.
const SETTLING_NS: u64 = 2 * SECOND_NS;
const CYCLE_NS: u64 = SECOND_NS;
/// Time after which a job that is ahead of its part looks again.
const AHEAD_NS: u64 = 100_000;

/// The activity of the jobs of one group.
#[derive(Default)]
pub(crate) struct FlowGroup {
    /// Requests of all of them, and the weights of those that have not ended.
    requests: AtomicU64,
    weights: AtomicU64,
}

/// A job's part of the activity of its group.
pub(super) struct Part {
    group: Arc<FlowGroup>,
    weight: u64,
    sleep_ns: u64,
    requests: u64,
    is_member: bool,
}

impl Part {
    /// Of a job of a load with `flow`, which begins at `begin_ns`. Jobs that begin with their step
    /// are waited for from the start on, the others from their first request on.
    pub(super) fn new(flow: Flow, group: Arc<FlowGroup>, begin_ns: u64) -> Self {
        let sleep_ns = match flow.sleep_us {
            0 => AHEAD_NS,
            us => us.saturating_mul(1000),
        };
        let weight = u64::from(flow.weight);
        let mut part = Self { group, weight, sleep_ns, requests: 0, is_member: false };
        if begin_ns == 0 {
            part.join();
        }
        part
    }

    fn join(&mut self) {
        if !std::mem::replace(&mut self.is_member, true) {
            self.group.weights.fetch_add(self.weight, Ordering::Relaxed);
        }
    }

    /// The time at which a job looks again that is ahead of its part at `now_ns`.
    pub(super) fn held_until(&mut self, now_ns: u64) -> Option<u64> {
        self.join();
        let all = u128::from(self.group.requests.load(Ordering::Relaxed));
        let weights = u128::from(self.group.weights.load(Ordering::Relaxed));
        let ahead = u128::from(self.requests) * weights > u128::from(self.weight) * all;
        ahead.then(|| now_ns.saturating_add(self.sleep_ns))
    }

    /// A request leaves.
    pub(super) fn sent(&mut self) {
        self.requests += 1;
        self.group.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// The job has ended: the others need not wait for it.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.is_member) {
            self.group.weights.fetch_sub(self.weight, Ordering::Relaxed);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The rate of a job against its minimum.
pub(super) struct Floor {
    min: MinRate,
    from_ns: u64,
    /// The last look, and operations or bytes since.
    looked_ns: Option<u64>,
    done: u64,
    complaint: Option<String>,
}

impl Floor {
    /// Of a job of a load that begins at `begin_ns`.
    pub(super) const fn new(min: MinRate, begin_ns: u64) -> Self {
        let from_ns = begin_ns.saturating_add(SETTLING_NS);
        Self { min, from_ns, looked_ns: None, done: 0, complaint: None }
    }

    /// An operation that moved `bytes` was answered at `now_ns`. `false` if the rate is too low.
    #[expect(clippy::cast_precision_loss, reason = "counts of a second or so")]
    pub(super) fn answered(&mut self, now_ns: u64, bytes: u64) -> bool {
        self.done += match self.min {
            MinRate::Operations(_) => 1,
            MinRate::Bytes(_) => bytes,
        };
        if now_ns < self.from_ns {
            return true;
        }
        let Some(looked_ns) = self.looked_ns else {
            (self.looked_ns, self.done) = (Some(now_ns), 0);
            return true;
        };
        let spent_ns = now_ns.saturating_sub(looked_ns);
        if spent_ns < CYCLE_NS {
            return true;
        }
        let rate = self.done as f64 * SECOND_NS as f64 / spent_ns as f64;
        (self.looked_ns, self.done) = (Some(now_ns), 0);
        let (min, unit) = match self.min {
            MinRate::Operations(min) => (min, "operations"),
            MinRate::Bytes(min) => (min, "bytes"),
        };
        if rate < min {
            self.complaint = Some(format!("a job fell below its minimum of {min} {unit}/s"));
        }
        rate >= min
    }

    /// Why the job was ended, once.
    pub(super) const fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(group: &Arc<FlowGroup>, weight: u32) -> Part {
        Part::new(Flow { group: 0, weight, sleep_us: 0 }, Arc::clone(group), 0)
    }

    /// Requests of each of `parts` after `turns` turns in which each may send one.
    fn requests(parts: &mut [Part], turns: usize) -> Vec<u64> {
        for _ in 0..turns {
            for part in parts.iter_mut() {
                if part.held_until(0).is_none() {
                    part.sent();
                }
            }
        }
        parts.iter().map(|part| part.requests).collect()
    }

    #[test]
    fn requests_are_in_the_proportion_of_the_weights() {
        let group = Arc::default();
        let mut parts = [part(&group, 8), part(&group, 1), part(&group, 3)];
        let found = requests(&mut parts, 8000);
        for (found, wanted) in found.iter().zip([8000_u64, 1000, 3000]) {
            assert!(found.abs_diff(wanted) <= 12, "{found} for {wanted}");
        }
    }

    #[test]
    fn a_job_that_is_ahead_waits_until_the_others_have_caught_up_or_ended() {
        let group = Arc::default();
        let (mut one, mut other) = (part(&group, 1), part(&group, 1));
        assert_eq!(one.held_until(5), None);
        one.sent();
        // The other one has not begun.
        assert_eq!(one.held_until(5), Some(5 + AHEAD_NS));
        other.sent();
        assert_eq!(one.held_until(5), None);
        one.sent();
        assert!(one.held_until(5).is_some());
        drop(other);
        assert_eq!(one.held_until(5), None, "nobody else is left");
    }

    #[test]
    fn a_job_that_begins_later_is_not_waited_for_before() {
        let group = Arc::default();
        let flow = Flow { group: 0, weight: 1, sleep_us: 0 };
        let (mut one, mut late) = (part(&group, 1), Part::new(flow, Arc::clone(&group), 9));
        for _ in 0..5 {
            assert_eq!(one.held_until(5), None);
            one.sent();
        }
        assert_eq!(late.held_until(9), None);
        assert!(one.held_until(9).is_some());
    }

    #[test]
    fn a_rate_below_the_minimum_is_told_once() {
        let mut floor = Floor::new(MinRate::Bytes(1000.0), 0);
        assert!(floor.answered(SECOND_NS, 1), "it settles");
        assert!(floor.answered(2 * SECOND_NS, 1), "the first look");
        assert!(floor.answered(2 * SECOND_NS + 1, 600));
        assert!(floor.answered(3 * SECOND_NS, 400));
        assert_eq!(floor.complaint(), None);
        assert!(!floor.answered(4 * SECOND_NS + 1, 1000), "a little more than a second");
        assert!(floor.complaint().unwrap().contains("minimum of 1000 bytes/s"));
        assert_eq!(floor.complaint(), None);
    }

    #[test]
    fn operations_count_whatever_they_move() {
        let mut floor = Floor::new(MinRate::Operations(2.0), 0);
        floor.answered(2 * SECOND_NS, 0);
        floor.answered(2 * SECOND_NS + 5, 0);
        assert!(floor.answered(3 * SECOND_NS, 0));
        assert!(!floor.answered(4 * SECOND_NS, 1 << 30));
    }
}
