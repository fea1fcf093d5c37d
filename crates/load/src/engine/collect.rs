//! Watching the workers while they run.

use super::schedule::{Schedule, nanos};
use crate::stats::{WindowReport, histogram};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Time between two windows shown.
const WINDOW: Duration = Duration::from_millis(100);

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Load is applied but not measured yet.
    Warmup,
    /// The measured interval.
    Measure,
    /// Load is still applied, and not measured any more.
    Cooldown,
    /// No more requests are sent; the last ones are waited for.
    Drain,
}

/// The operations completed in the 100 ms (or a little more) before `at_s`, all workers together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// End of the window, in seconds since the load started.
    pub at_s: f64,
    /// Length of the window, in seconds.
    pub seconds: f64,
    /// The run's phase at its end.
    pub phase: Phase,
    /// Operations that succeeded.
    pub operations: u64,
    /// The operations' payload, in bytes.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// 99th percentile of the latency; zero if nothing completed.
    pub p99_ms: f64,
    /// Greatest latency; zero if nothing completed.
    pub max_ms: f64,
    /// Seconds until sending ends; `None` for a run that ends by a count.
    pub left_s: Option<f64>,
}

/// Gathers the workers' reports into windows.
pub(super) struct Watcher {
    schedule: Schedule,
    shown_ns: u64,
    operations: u64,
    bytes: u64,
    errors: u64,
    latency: hdrhistogram::Histogram<u32>,
}

impl Watcher {
    pub(super) fn new(schedule: Schedule) -> Self {
        Self { schedule, shown_ns: 0, operations: 0, bytes: 0, errors: 0, latency: histogram(2) }
    }

    /// Shows windows until the last worker is done.
    pub(super) fn watch(
        mut self,
        reports: &Receiver<WindowReport>,
        observe: &mut dyn FnMut(&Window),
    ) {
        let step_ns = nanos(WINDOW);
        loop {
            let due_ns = self.shown_ns + step_ns;
            let wait = Duration::from_nanos(due_ns.saturating_sub(self.schedule.now_ns()));
            match reports.recv_timeout(wait) {
                Ok(report) => self.add(&report),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.schedule.now_ns() >= due_ns {
                observe(&self.take());
            }
        }
    }

    fn add(&mut self, report: &WindowReport) {
        self.operations += report.operations;
        self.bytes += report.bytes;
        self.errors += report.errors;
        // Both have the same constant bounds, so the addition can't fail.
        let _ = self.latency.add(&report.latency);
    }

    #[expect(clippy::cast_precision_loss, reason = "latencies and window lengths are small")]
    fn take(&mut self) -> Window {
        let now_ns = self.schedule.now_ns();
        let stop_ns = self.schedule.stop_ns;
        let window = Window {
            at_s: seconds(now_ns),
            seconds: seconds(now_ns - self.shown_ns),
            phase: match now_ns {
                now if now < self.schedule.measure_ns => Phase::Warmup,
                now if now < self.schedule.end_ns => Phase::Measure,
                now if now < stop_ns => Phase::Cooldown,
                _ => Phase::Drain,
            },
            operations: std::mem::take(&mut self.operations),
            bytes: std::mem::take(&mut self.bytes),
            errors: std::mem::take(&mut self.errors),
            p99_ms: self.latency.value_at_quantile(0.99) as f64 / 1e6,
            max_ms: self.latency.max() as f64 / 1e6,
            left_s: (stop_ns != u64::MAX).then(|| seconds(stop_ns.saturating_sub(now_ns))),
        };
        self.latency.reset();
        self.shown_ns = now_ns;
        window
    }
}

#[expect(clippy::cast_precision_loss, reason = "runs last far less than 2^52 ns")]
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
