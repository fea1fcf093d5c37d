//! Watching the workers while they run, and making one result of what they bring home.

use super::Outcome;
use super::schedule::{Schedule, nanos};
use crate::stats::result::{
    Connections, Generator, Interval, JobResult, Mark, RESULT_VERSION, RunResult, VerifyResult,
};
use crate::stats::{Notes, WindowReport, histogram};
use crate::workload::{Length, Workload};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often a window is shown.
const WINDOW: Duration = Duration::from_millis(100);
/// A worker that waits for the target less than the rest of this is the limit itself.
const SATURATED_PERCENT: f64 = 95.0;

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Load is applied but not measured yet.
    Warmup,
    /// The measured interval.
    Measure,
    /// No more requests are sent; the last ones are waited for.
    Drain,
}

/// What completed in the 100 ms (or a little more) before `at_s`, all workers together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Its end, in seconds since the load started.
    pub at_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Where the run is at its end.
    pub phase: Phase,
    /// Operations that succeeded.
    pub operations: u64,
    /// Their payload.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// 99th percentile of the latency; zero if nothing completed.
    pub p99_ms: f64,
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
        let end_ns = self.schedule.end_ns;
        let window = Window {
            at_s: seconds(now_ns),
            seconds: seconds(now_ns - self.shown_ns),
            phase: match now_ns {
                now if now < self.schedule.measure_ns => Phase::Warmup,
                now if now < end_ns => Phase::Measure,
                _ => Phase::Drain,
            },
            operations: std::mem::take(&mut self.operations),
            bytes: std::mem::take(&mut self.bytes),
            errors: std::mem::take(&mut self.errors),
            p99_ms: self.latency.value_at_quantile(0.99) as f64 / 1e6,
            left_s: (end_ns != u64::MAX).then(|| seconds(end_ns.saturating_sub(now_ns))),
        };
        self.latency.reset();
        self.shown_ns = now_ns;
        window
    }
}

#[expect(clippy::cast_precision_loss, reason = "runs last far less than 2^52 ns")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Everything about a run but the workers' notes.
pub(super) struct Collected {
    pub(super) target: String,
    pub(super) workload: Workload,
    pub(super) clients: Vec<String>,
    pub(super) started_unix_s: f64,
    pub(super) schedule: Schedule,
    pub(super) opened: u64,
    pub(super) marks: Vec<Mark>,
    pub(super) verify: Option<VerifyResult>,
}

impl Collected {
    /// The result, with the workers' notes.
    pub(super) fn into_result(self, outcomes: Vec<Outcome>) -> RunResult {
        let mut totals = Notes::default();
        let mut connections = Connections { opened: self.opened, ..Connections::default() };
        let mut generator = Generator::default();
        let mut faults = BTreeMap::<String, u64>::new();
        let mut ended_ns = 0;
        for outcome in outcomes {
            connections.lost += outcome.lost;
            connections.unanswered += outcome.unanswered;
            generator.cpu_s += outcome.usage.cpu.as_secs_f64();
            generator.busiest_thread_percent =
                generator.busiest_thread_percent.max(outcome.usage.busy_percent());
            if let Some(fault) = outcome.fault {
                *faults.entry(fault.in_full()).or_default() += 1;
            }
            ended_ns = ended_ns.max(outcome.ended_ns);
            totals.merge(outcome.notes);
        }
        let measured = self.interval(ended_ns, totals.last_done_ns);
        let total = totals.total(measured.seconds());
        complete_generator(&mut generator, total.operations);
        let planned_ns = self.schedule.end_ns;
        let interrupted = connections.lost > 0
            || !faults.is_empty()
            || (planned_ns != u64::MAX && ended_ns < planned_ns)
            || self.verify.as_ref().is_some_and(|verify| verify.unread > 0);
        for (status, count) in faults {
            *totals.errors.entry(status).or_default() += count;
        }
        RunResult {
            version: RESULT_VERSION,
            name: self.workload.name.clone(),
            jobs: self.jobs(&totals, total.operations),
            target: self.target,
            workload: self.workload,
            started_unix_s: self.started_unix_s,
            measured,
            total,
            by_operation: totals.by_operation(measured.seconds()),
            errors: totals.errors,
            connections,
            series_1s: totals.series.points_1s(),
            series_100ms: totals.series.points_100ms(),
            series_10ms: totals.series.points_10ms(),
            marks: self.marks,
            generator,
            server: None,
            verify: self.verify,
            interrupted,
        }
    }

    /// A run by time is measured from the warm-up's end to its own; one by count until the last
    /// completion.
    fn interval(&self, ended_ns: u64, last_done_ns: u64) -> Interval {
        let from_ns = self.schedule.measure_ns;
        let to_ns = match self.workload.length {
            Length::Seconds(_) => ended_ns.min(self.schedule.end_ns),
            Length::Operations(_) => last_done_ns,
        };
        Interval { from_s: seconds(from_ns), to_s: seconds(to_ns.max(from_ns)) }
    }

    #[expect(clippy::cast_precision_loss, reason = "shares need no more than 52 bits")]
    fn jobs(&self, totals: &Notes, operations: u64) -> Vec<JobResult> {
        let result = |(index, count): (usize, &crate::stats::JobCount)| JobResult {
            job: u32::try_from(index).unwrap_or(u32::MAX),
            client: match self.clients.len() {
                0 => String::new(),
                clients => self.clients.get(index % clients).cloned().unwrap_or_default(),
            },
            operations: count.operations,
            bytes: count.bytes,
            share: count.operations as f64 / operations.max(1) as f64,
        };
        totals.jobs.iter().enumerate().map(result).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 52 bits")]
fn complete_generator(generator: &mut Generator, operations: u64) {
    generator.cpu_us_per_op = generator.cpu_s * 1e6 / operations.max(1) as f64;
    generator.saturated = generator.busiest_thread_percent >= SATURATED_PERCENT;
}
