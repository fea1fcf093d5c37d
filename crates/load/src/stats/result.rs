//! The result of a run, in the shape that is written as JSON. Fields are added, never renamed;
//! a change that would mislead an old reader raises [`RESULT_VERSION`].

use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the JSON schema.
pub const RESULT_VERSION: u32 = 1;

/// Everything that came of one run. Times are seconds since the load started (warm-up included).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`RESULT_VERSION`].
    pub version: u32,
    /// The workload's name.
    pub name: String,
    /// The measured target, as the user wrote it.
    pub target: String,
    /// The load as it was applied.
    pub workload: Workload,
    /// Start of the load, in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// The part that the figures below are about; warm-up and drain lie outside.
    pub measured: Interval,
    /// All operations together.
    pub total: OpResult,
    /// By kind: `read`, `write`, `commit`, `null`, `getattr`, `access`, `lookup`, `create`,
    /// `remove`, `setattr`, `mkdir`, `rmdir`, `read-file`, `write-file`. Kinds that did not occur
    /// are left out.
    pub by_operation: BTreeMap<String, OpResult>,
    /// One for each job, in order.
    pub jobs: Vec<JobResult>,
    /// Failed operations by status, over the whole run, and what else failed, in words: lost
    /// connections, `verification: …`, `clean-up: …`.
    pub errors: BTreeMap<String, u64>,
    /// The fate of the connections.
    pub connections: Connections,
    /// The number of connections to each address of the server; none of a path.
    #[serde(default)]
    pub addresses: BTreeMap<String, u64>,
    /// Completions per second.
    pub series_1s: Vec<Point>,
    /// Completions per 100 ms.
    pub series_100ms: Vec<Point>,
    /// Completions per 10 ms, from the first; empty in runs over ten minutes.
    pub series_10ms: Vec<Point>,
    /// The marks that outsiders noted during the run.
    pub marks: Vec<Mark>,
    /// The generator's own use.
    pub generator: Generator,
    /// The use of the server's process, where its id was given. The engine does not fill it in: it
    /// can't know the process behind a socket.
    #[serde(default)]
    pub server: Option<ServerCpu>,
    /// The result of reading back, where that was asked for.
    pub verify: Option<VerifyResult>,
    /// Was the run, verification included, ended before its time, by the user or by a lost
    /// connection?
    pub interrupted: bool,
}

impl RunResult {
    /// Operations that failed, whatever the status.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Did everything asked for succeed: no failed operation, no lost connection, no mismatch and
    /// no block left unread?
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let verified = |verify: &VerifyResult| verify.mismatches == 0 && verify.unread == 0;
        self.error_count() == 0
            && self.connections.lost == 0
            && self.verify.as_ref().is_none_or(verified)
    }

    /// Mean throughput in MiB/s between two times, from the 10 ms series (or the 100 ms one
    /// where that is absent). Both times are rounded to the series' step.
    #[must_use]
    pub fn mibps_between(&self, from_s: f64, to_s: f64) -> f64 {
        let (series, step_s) = if self.series_10ms.is_empty() {
            (&self.series_100ms, 0.1)
        } else {
            (&self.series_10ms, 0.01)
        };
        let bytes: u64 = series
            .iter()
            .filter(|point| point.at_s + step_s / 2.0 >= from_s && point.at_s + step_s / 2.0 < to_s)
            .map(|point| point.bytes)
            .sum();
        mibps(bytes, to_s - from_s)
    }
}

/// Bytes over seconds in MiB/s; zero over no time.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "rates need no more than 52 bits")]
pub fn mibps(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 / seconds / 1_048_576.0 } else { 0.0 }
}

/// A span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Start of the interval (s).
    pub from_s: f64,
    /// End of the interval (s).
    pub to_s: f64,
}

impl Interval {
    /// Length of the interval, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// The operations of one kind in the measured interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpResult {
    /// Completed operations, failed ones left out.
    pub operations: u64,
    /// Payload bytes moved.
    pub bytes: u64,
    /// Operations per second.
    pub iops: f64,
    /// Payload in MiB/s.
    pub mibps: f64,
    /// From the moment the request was queued for sending to the end of its reply.
    pub latency_ms: Latency,
}

/// A latency distribution in milliseconds; all zero where nothing completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Least.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// 5th percentile.
    pub p5: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    #[serde(default)]
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// 99.99th percentile; zero in results that were written before it was taken.
    #[serde(default)]
    pub p99_99: f64,
    /// Greatest.
    pub max: f64,
}

/// The results of one job in the measured interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// The job's number, from 0.
    pub job: u32,
    /// The source address of its client; empty on a path.
    pub client: String,
    /// Completed operations.
    pub operations: u64,
    /// Payload bytes moved.
    pub bytes: u64,
    /// The job's part of all operations, 0 to 1.
    pub share: f64,
    /// The largest number of requests in flight with which the job kept its latency, where it had
    /// one to keep; 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_depth: Option<u32>,
}

/// The fate of the connections, and of the requests on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Opened for the load.
    pub opened: u64,
    /// Lost before the load was done. They are not opened again: the load ends, and the result says
    /// so.
    pub lost: u64,
    /// Requests still without an answer when the drain time was over.
    pub unanswered: u64,
    /// Operations over the whole run, on a path too, of which the target moved only a part of the
    /// bytes at first, so that the rest was requested in turn (RFC 1813 §3.3.6 and §3.3.7). Each
    /// counts once, with its latency from its first request.
    #[serde(default)]
    pub continued: u64,
}

/// Completions in one step of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Beginning of the step.
    pub at_s: f64,
    /// Operations completed in it.
    pub operations: u64,
    /// Payload bytes of these.
    pub bytes: u64,
}

/// Something that happened outside during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Time of the mark (s).
    pub at_s: f64,
    /// The event.
    pub label: String,
}

/// The load generator's own use in the measured interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// Processor time of its worker threads, in seconds.
    pub cpu_s: f64,
    /// The generator's processor time per completed operation, in microseconds.
    pub cpu_us_per_op: f64,
    /// Share of the time that the busiest worker did not wait for the server, 0 to 100.
    pub busiest_thread_percent: f64,
    /// The generator was the limit: the busiest worker at 95 % or more, or, on a path, where each
    /// request has a thread of its own, all processors of this machine, at least half of them by
    /// the generator. The figures say what it can do, not what the target can.
    pub saturated: bool,
    /// Share of the time that the processors of this machine were busy, with whatever, in the
    /// measured interval; the busiest machine's of several. 0 to 100; 0 if that is not known.
    #[serde(default)]
    pub machine_busy_percent: f64,
    /// Number of processors of that machine; 0 if it is not known.
    #[serde(default)]
    pub machine_processors: u32,
}

/// The use of the server's process while it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCpu {
    /// Processors kept busy, all threads together: 1.0 is one processor.
    pub processors: f64,
    /// Processor time per completed operation, in microseconds; 0 if none completed.
    pub cpu_us_per_op: f64,
}

/// The result of reading back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyResult {
    /// Blocks read back after the run and compared.
    pub checked: u64,
    /// Blocks that the load itself read, and that were compared in passing.
    #[serde(default)]
    pub in_passing: u64,
    /// Blocks whose content is open: their last write was never answered, or a read met a write.
    pub uncertain: u64,
    /// Blocks that were to be read back and were not, because the run was stopped, or could not
    /// reach the target any more.
    #[serde(default)]
    pub unread: u64,
    /// Blocks that did not hold what was written, in passing or afterwards.
    pub mismatches: u64,
    /// The mismatches that were found in passing.
    #[serde(default)]
    pub in_passing_mismatches: u64,
    /// Each of them in words, one that was found several times once; at most 10,000.
    pub details: Vec<String>,
}

/// Details shown to people; the results have more.
const TOLD_MAX: usize = 20;

impl VerifyResult {
    /// Adds what another process found; at most `details_max` mismatches are told in words.
    pub fn merge(&mut self, other: Self, details_max: usize) {
        self.checked += other.checked;
        self.in_passing += other.in_passing;
        self.in_passing_mismatches += other.in_passing_mismatches;
        self.uncertain += other.uncertain;
        self.unread += other.unread;
        self.mismatches += other.mismatches;
        for detail in other.details {
            if self.details.len() < details_max && !self.details.contains(&detail) {
                self.details.push(detail);
            }
        }
    }

    /// The first of the details, for people; the last line says how many more there are.
    pub fn told(&self) -> Vec<String> {
        let mut told: Vec<String> = self.details.iter().take(TOLD_MAX).cloned().collect();
        if let Some(more @ 1..) = self.details.len().checked_sub(TOLD_MAX) {
            told.push(format!("and {more} more, all of them in the JSON results"));
        }
        told
    }
}
