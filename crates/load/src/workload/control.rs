//! Limits of a load beyond a rate: the activity of other loads, a latency to keep, a minimum.

use serde::{Deserialize, Serialize};

/// A part of the activity of all jobs of one group, whatever their load: their requests are in the
/// proportion of their weights, and a job that is ahead of its part waits for the others. A job
/// that has ended counts no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The group, among the loads of a step.
    pub group: u32,
    /// The weight of each job of this load, at least 1.
    pub weight: u32,
    /// Microseconds after which a job that is ahead looks again; 0: the engine's own time.
    pub sleep_us: u64,
}

/// A latency that each job keeps by adjusting its requests in flight, from 1 to its depth: doubled
/// as long as the latency is kept, then halfway between the largest number that kept it and the
/// smallest that did not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyTarget {
    /// The latency, in microseconds.
    pub us: u64,
    /// Microseconds for which each number of requests in flight is tried, at least.
    pub window_us: u64,
    /// Percent of the requests of a window that keep the latency, over 0 and at most 100.
    pub percent: f64,
    /// Goes on, and adjusts further; otherwise a job ends when it has found the largest number of
    /// requests in flight that keeps the latency.
    pub goes_on: bool,
}

/// A rate under which each job ends, which counts as a failure. It is looked at every second, from
/// two seconds after the start of the load on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MinRate {
    /// Operations per second of one job.
    Operations(f64),
    /// Payload bytes per second of one job.
    Bytes(f64),
}
