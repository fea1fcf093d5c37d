//! Finding limits: the highest rate with p99 under a target, the knee of the latency curve, and how
//! far more connections, jobs or requests in flight help.
//!
//! The deciders ([`rate`], [`scale`], [`knee`]) are pure: they are told what came of a probe and
//! say what to probe next, or what they have learnt. `drive` has the probes applied, each as a step
//! whose figures are kept.

mod drive;
pub mod knee;
pub mod rate;
pub mod scale;

pub use drive::{Question, Varied, search};

/// The result of one probe.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Probe {
    /// Operations a second that were answered.
    pub iops: f64,
    /// 99th percentile of the latency, in milliseconds.
    pub p99_ms: f64,
    /// Mean latency, in milliseconds.
    pub mean_ms: f64,
    /// Was the generator itself the limit?
    pub saturated: bool,
}
