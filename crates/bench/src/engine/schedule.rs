//! When a run warms up, measures and ends, as every worker sees it.

use crate::workload::Workload;
use std::time::{Duration, Instant};

/// The times of a run, in nanoseconds since the load started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    start: Instant,
    /// The measured interval begins.
    pub(crate) measure_ns: u64,
    /// The measured interval ends and no request is sent any more; `u64::MAX` for a run that
    /// ends by a count.
    pub(crate) end_ns: u64,
    /// How long to wait after the end for what is in flight.
    pub(crate) drain_ns: u64,
}

impl Schedule {
    /// The schedule of `workload` if its load starts at `start`.
    pub(crate) fn starting_at(start: Instant, workload: &Workload) -> Self {
        let measure_ns = nanos(workload.warmup());
        let length = workload.measured_time();
        Self {
            start,
            measure_ns,
            end_ns: length.map_or(u64::MAX, |length| measure_ns.saturating_add(nanos(length))),
            drain_ns: nanos(Duration::from_secs_f64(workload.drain_s)),
        }
    }

    /// The present, in nanoseconds since the load started.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        nanos(self.start.elapsed())
    }
}

/// A duration in whole nanoseconds; what exceeds 584 years is cut off.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
