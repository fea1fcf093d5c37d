//! The times at which a run warms up, measures and ends, as every worker sees them.

use crate::workload::Workload;
use std::time::{Duration, Instant};

/// The times of a load, in nanoseconds since its step started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    start: Instant,
    /// The first request is sent.
    pub begin_ns: u64,
    /// The measured interval begins.
    pub measure_ns: u64,
    /// The measured interval ends; `u64::MAX` for a run that ends by a count.
    pub end_ns: u64,
    /// No request is sent any more: the end and the cool-down after it.
    pub stop_ns: u64,
    /// Longest wait after the end for operations in flight (ns).
    pub drain_ns: u64,
}

impl Schedule {
    /// The schedule of `workload` in a step that starts at `start`.
    pub(super) fn starting_at(start: Instant, workload: &Workload) -> Self {
        let begin_ns = nanos(Duration::from_secs_f64(workload.start_delay_s));
        let measure_ns = begin_ns.saturating_add(nanos(workload.warmup()));
        let length = workload.measured_time();
        let end_ns = length.map_or(u64::MAX, |length| measure_ns.saturating_add(nanos(length)));
        Self {
            start,
            begin_ns,
            measure_ns,
            end_ns,
            stop_ns: end_ns.saturating_add(nanos(Duration::from_secs_f64(workload.cooldown_s))),
            drain_ns: nanos(Duration::from_secs_f64(workload.drain_s)),
        }
    }

    /// The present, in nanoseconds since the step started.
    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        nanos(self.start.elapsed())
    }
}

/// A duration in whole nanoseconds; what exceeds 584 years is cut off.
#[inline]
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Length;

    #[test]
    fn warm_up_and_measurement_follow_the_start_delay() {
        let length = Length::Seconds(3.0);
        let load = Workload { start_delay_s: 1.0, warmup_s: 2.0, length, ..Workload::default() };
        let schedule = Schedule::starting_at(Instant::now(), &load);
        let second = 1_000_000_000;
        assert_eq!(schedule.begin_ns, second);
        assert_eq!((schedule.measure_ns, schedule.end_ns), (3 * second, 6 * second));
        assert_eq!(schedule.stop_ns, 6 * second);
        let cooled = Workload { cooldown_s: 0.5, ..load.clone() };
        let schedule = Schedule::starting_at(Instant::now(), &cooled);
        assert_eq!((schedule.end_ns, schedule.stop_ns), (6 * second, 6 * second + second / 2));
        let counted = Workload { length: Length::Operations(1), ..load };
        let schedule = Schedule::starting_at(Instant::now(), &counted);
        assert_eq!((schedule.measure_ns, schedule.end_ns), (second, u64::MAX));
    }
}
