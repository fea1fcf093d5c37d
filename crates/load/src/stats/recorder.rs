//! The notes of one worker while it runs, cheap enough for every operation: no lock, no allocation
//! after the first of its kind.

use super::result::{Latency, OpResult, mibps};
use super::series::Series;
use hdrhistogram::{Counter, Histogram};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

/// Length of a live window, in nanoseconds.
pub(super) const WINDOW_NS: u64 = 100_000_000;
/// Longest latency told apart: two hours.
const LATENCY_NS_MAX: u64 = 7_200_000_000_000;
/// Ways to fail that are counted apart.
const STATUSES_MAX: usize = 100;
const FURTHER_STATUSES: &str = "failures of further kinds";

/// The kinds of operation that are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// COMMIT.
    Commit,
    /// NULL.
    Null,
    /// GETATTR.
    Getattr,
    /// ACCESS.
    Access,
    /// LOOKUP.
    Lookup,
    /// CREATE.
    Create,
    /// REMOVE.
    Remove,
    /// SETATTR.
    Setattr,
    /// MKDIR.
    Mkdir,
    /// RMDIR.
    Rmdir,
    /// A whole file read, in as many requests as it takes.
    ReadFile,
    /// A whole file written.
    WriteFile,
}

impl OpKind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Read,
        Self::Write,
        Self::Commit,
        Self::Null,
        Self::Getattr,
        Self::Access,
        Self::Lookup,
        Self::Create,
        Self::Remove,
        Self::Setattr,
        Self::Mkdir,
        Self::Rmdir,
        Self::ReadFile,
        Self::WriteFile,
    ];

    /// The kind's key in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Commit => "commit",
            Self::Null => "null",
            Self::Getattr => "getattr",
            Self::Access => "access",
            Self::Lookup => "lookup",
            Self::Create => "create",
            Self::Remove => "remove",
            Self::Setattr => "setattr",
            Self::Mkdir => "mkdir",
            Self::Rmdir => "rmdir",
            Self::ReadFile => "read-file",
            Self::WriteFile => "write-file",
        }
    }
}

/// The observations of one worker in one window, for live display.
pub struct WindowReport {
    /// Operations that completed.
    pub operations: u64,
    /// Bytes that they read or wrote.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Their latencies, in nanoseconds.
    pub latency: Histogram<u32>,
}

/// Counts of one job within the measured interval.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct JobCount {
    /// Operations that completed.
    pub operations: u64,
    /// Bytes that they read or wrote.
    pub bytes: u64,
    /// The largest number of requests in flight with which the job kept its latency, where it had
    /// one to keep.
    #[serde(default)]
    pub kept_depth: Option<u32>,
}

#[derive(Clone, Serialize, Deserialize)]
struct KindCount {
    /// Completions in the measured interval.
    operations: u64,
    bytes: u64,
    /// Theirs, and those of operations that were due before its end and completed after it: a
    /// stall over the end would not be seen otherwise.
    #[serde(with = "super::sparse")]
    latency: Histogram<u64>,
}

/// Times of a completed operation, in nanoseconds since the load started.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The moment at which the operation was due.
    pub queued_ns: u64,
    /// The moment at which it completed.
    pub done_ns: u64,
}

/// Takes the notes of one worker while it runs.
pub struct Recorder {
    measured_from_ns: u64,
    measured_to_ns: u64,
    notes: Notes,
    window: WindowReport,
    window_end_ns: u64,
    reports: Sender<WindowReport>,
}

impl Recorder {
    /// Notes about `jobs` jobs; only completions from `measured_from_ns` until `measured_to_ns`
    /// count in rates and shares. Distributions also have the operations that were due before
    /// `measured_to_ns` and completed later.
    pub fn new(
        jobs: usize,
        measured_from_ns: u64,
        measured_to_ns: u64,
        reports: Sender<WindowReport>,
    ) -> Self {
        Self {
            measured_from_ns,
            measured_to_ns,
            notes: Notes { jobs: vec![JobCount::default(); jobs], ..Notes::default() },
            window: WindowReport::empty(),
            window_end_ns: WINDOW_NS,
            reports,
        }
    }

    /// An operation of `job` succeeded and moved `bytes` of payload.
    pub fn complete(&mut self, kind: OpKind, job: usize, span: Span, bytes: u64) {
        let latency = span.done_ns.saturating_sub(span.queued_ns);
        let notes = &mut self.notes;
        notes.last_done_ns = notes.last_done_ns.max(span.done_ns);
        notes.series.add(span.done_ns, bytes);
        self.window.operations += 1;
        self.window.bytes += bytes;
        self.window.latency.saturating_record(latency);
        if span.done_ns < self.measured_from_ns || span.queued_ns >= self.measured_to_ns {
            return;
        }
        let is_in_time = span.done_ns < self.measured_to_ns;
        if let Some(slot) = notes.kinds.get_mut(kind as usize) {
            let count = slot.get_or_insert_with(KindCount::empty);
            count.latency.saturating_record(latency);
            if is_in_time {
                count.operations += 1;
                count.bytes += bytes;
            }
        }
        if is_in_time && let Some(count) = notes.jobs.get_mut(job) {
            count.operations += 1;
            count.bytes += bytes;
        }
    }

    /// `job` kept its latency with so many requests in flight.
    pub fn keep(&mut self, job: usize, depth: u32) {
        if let Some(count) = self.notes.jobs.get_mut(job) {
            count.kept_depth = Some(depth);
        }
    }

    /// The target did only a part of what an operation asked for, for the first time in it: the
    /// rest is asked for in turn.
    pub const fn continues(&mut self) {
        self.notes.continued += 1;
    }

    /// An operation failed with `status`.
    pub fn fail(&mut self, status: &str) {
        self.window.errors += 1;
        self.notes.fail(status, 1);
    }

    /// Hands the current window over if it is past. Called once per turn of the worker's loop.
    pub fn tick(&mut self, now_ns: u64) {
        if now_ns < self.window_end_ns {
            return;
        }
        self.window_end_ns = (now_ns / WINDOW_NS + 1) * WINDOW_NS;
        let report = std::mem::replace(&mut self.window, WindowReport::empty());
        // The receiver only displays; when it is gone there is nobody to show anything to.
        drop(self.reports.send(report));
    }

    /// Due time of the next window, in nanoseconds since the load started.
    pub const fn window_end_ns(&self) -> u64 {
        self.window_end_ns
    }

    /// The notes. With this the worker has nothing more to report, and whoever shows its windows
    /// learns that.
    pub fn finish(self) -> Notes {
        self.notes
    }

    /// Closes the measured interval early, at `now_ns`.
    pub fn close(&mut self, now_ns: u64) {
        self.measured_to_ns = self.measured_to_ns.min(now_ns);
    }
}

impl WindowReport {
    fn empty() -> Self {
        Self { operations: 0, bytes: 0, errors: 0, latency: histogram(2) }
    }
}

impl KindCount {
    fn empty() -> Box<Self> {
        Box::new(Self { operations: 0, bytes: 0, latency: histogram(3) })
    }
}

#[expect(clippy::expect_used, reason = "the bounds are constants that the constructor accepts")]
/// A histogram of latencies, in nanoseconds, of `digits` significant digits.
pub fn histogram<C: Counter>(digits: u8) -> Histogram<C> {
    Histogram::new_with_bounds(128, LATENCY_NS_MAX, digits).expect("constant bounds")
}

/// The notes of one worker, or of several together.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Notes {
    /// By kind, in the order of [`OpKind::ALL`].
    kinds: [Option<Box<KindCount>>; OpKind::ALL.len()],
    /// By job number.
    pub jobs: Vec<JobCount>,
    /// All completions.
    pub series: Series,
    /// Failures by status.
    pub errors: BTreeMap<String, u64>,
    /// Operations of which the target did only a part at first.
    #[serde(default)]
    pub continued: u64,
    /// The last completion.
    pub last_done_ns: u64,
}

impl Notes {
    /// Adds another worker's notes.
    pub fn merge(&mut self, from: Self) {
        for (to, from) in self.kinds.iter_mut().zip(from.kinds) {
            match (to.as_mut(), from) {
                (Some(to), Some(from)) => to.add(&from),
                (None, from) => *to = from,
                (Some(_), None) => {}
            }
        }
        if self.jobs.len() < from.jobs.len() {
            self.jobs.resize(from.jobs.len(), JobCount::default());
        }
        for (to, from) in self.jobs.iter_mut().zip(&from.jobs) {
            to.operations += from.operations;
            to.bytes += from.bytes;
            to.kept_depth = to.kept_depth.max(from.kept_depth);
        }
        self.series.merge(&from.series);
        for (status, count) in from.errors {
            self.fail(&status, count);
        }
        self.continued += from.continued;
        self.last_done_ns = self.last_done_ns.max(from.last_done_ns);
    }

    /// `count` operations failed with `status`. A server that never fails twice in the same way
    /// takes no more memory for it.
    fn fail(&mut self, status: &str, count: u64) {
        if let Some(known) = self.errors.get_mut(status) {
            *known += count;
            return;
        }
        let status = if self.errors.len() < STATUSES_MAX { status } else { FURTHER_STATUSES };
        *self.errors.entry(status.to_owned()).or_default() += count;
    }

    /// Adds what another program noted of one kind: bytes, and pairs of a latency in nanoseconds
    /// and how many operations had it. Returns how many operations these are.
    pub fn gather(
        &mut self,
        kind: OpKind,
        bytes: u64,
        latencies: impl Iterator<Item = (u64, u64)>,
    ) -> u64 {
        let mut operations = 0;
        let Some(slot) = self.kinds.get_mut(kind as usize) else { return operations };
        let mut latencies = latencies.filter(|(_, count)| *count > 0).peekable();
        if latencies.peek().is_none() {
            return operations;
        }
        let count = slot.get_or_insert_with(KindCount::empty);
        count.bytes += bytes;
        for (latency, times) in latencies {
            count.latency.saturating_record_n(latency, times);
            operations += times;
        }
        count.operations += operations;
        operations
    }

    /// Do all counts, added up kind by kind and step by step, stay at `most` or below?
    pub fn sums_stay_under(&self, most: u64) -> bool {
        let jobs = self.jobs.iter().flat_map(|job| [job.operations, job.bytes]);
        let kinds = self.kinds.iter().flatten().flat_map(|kind| [kind.operations, kind.bytes]);
        let counts = jobs.chain(kinds).chain(self.errors.values().copied());
        let counts = counts.chain([self.continued]);
        let small = |sum: Option<u64>| sum.is_some_and(|sum| sum <= most);
        small({ counts }.try_fold(0_u64, u64::checked_add)) && self.series.sums_stay_under(most)
    }

    /// The distribution of each kind that occurred, over `seconds`.
    pub fn by_operation(&self, seconds: f64) -> BTreeMap<String, OpResult> {
        let mut all = BTreeMap::new();
        for (kind, count) in OpKind::ALL.iter().zip(&self.kinds) {
            if let Some(count) = count {
                all.insert(kind.name().to_owned(), count.result(seconds));
            }
        }
        all
    }

    /// All kinds together, over `seconds`.
    pub fn total(&self, seconds: f64) -> OpResult {
        let mut sum = KindCount::empty();
        for count in self.kinds.iter().flatten() {
            sum.add(count);
        }
        sum.result(seconds)
    }
}

impl KindCount {
    fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        // Both have the same constant bounds, so the addition can't fail.
        let _ = self.latency.add(&other.latency);
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
    fn result(&self, seconds: f64) -> OpResult {
        let operations = self.operations;
        OpResult {
            operations,
            bytes: self.bytes,
            iops: if seconds > 0.0 { operations as f64 / seconds } else { 0.0 },
            mibps: mibps(self.bytes, seconds),
            latency_ms: latency(&self.latency),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "two hours in nanoseconds are below 2^52")]
fn latency(histogram: &Histogram<u64>) -> Latency {
    if histogram.is_empty() {
        return Latency::default();
    }
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e6;
    Latency {
        min: histogram.min() as f64 / 1e6,
        mean: histogram.mean() / 1e6,
        p5: at(0.05),
        p50: at(0.50),
        p90: at(0.90),
        p95: at(0.95),
        p99: at(0.99),
        p99_9: at(0.999),
        p99_99: at(0.9999),
        max: histogram.max() as f64 / 1e6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn recorder(from_ns: u64, to_ns: u64) -> Recorder {
        Recorder::new(2, from_ns, to_ns, channel().0)
    }

    fn span(queued_ns: u64, done_ns: u64) -> Span {
        Span { queued_ns, done_ns }
    }

    #[test]
    fn percentiles_of_merged_workers_are_those_of_all_operations() {
        let (mut a, mut b) = (recorder(0, u64::MAX), recorder(0, u64::MAX));
        for ms in 1..=1000_u64 {
            let to = if ms % 2 == 0 { &mut a } else { &mut b };
            to.complete(OpKind::Read, 0, span(0, ms * 1_000_000), 10);
        }
        let mut totals = Notes::default();
        totals.merge(a.finish());
        totals.merge(b.finish());
        let all = totals.total(2.0);
        assert_eq!((all.operations, all.bytes), (1000, 10_000));
        assert!((all.iops - 500.0).abs() < 1e-9);
        let latency = all.latency_ms;
        for (seen, wanted) in [
            (latency.min, 1.0),
            (latency.p5, 50.0),
            (latency.p50, 500.0),
            (latency.mean, 500.5),
            (latency.p90, 900.0),
            (latency.p95, 950.0),
            (latency.p99, 990.0),
            (latency.p99_9, 999.0),
            (latency.p99_99, 1000.0),
            (latency.max, 1000.0),
        ] {
            assert!((seen - wanted).abs() <= wanted * 0.002, "{seen} is not {wanted}");
        }
    }

    #[test]
    fn only_the_measured_interval_counts_in_distributions_but_the_series_has_all() {
        let mut notes = recorder(100, 200);
        for done in [99, 100, 199, 200] {
            notes.complete(OpKind::Write, 1, span(0, done), 1);
        }
        let mut totals = Notes::default();
        totals.merge(notes.finish());
        assert_eq!(totals.total(1.0).operations, 2);
        assert_eq!((totals.jobs[0].operations, totals.jobs[1].operations), (0, 2));
        assert_eq!(totals.series.points_10ms()[0].operations, 4);
        assert_eq!(totals.last_done_ns, 200);
    }

    #[test]
    fn a_stall_over_the_end_is_in_the_distribution_and_not_in_the_rate() {
        let mut notes = recorder(0, 1_000_000_000);
        for ms in 0..99_u64 {
            notes.complete(OpKind::Read, 0, span(ms * 1_000_000, (ms + 1) * 1_000_000), 10);
        }
        // Due in the interval, answered 5 s after its end; the other was due after it.
        notes.complete(OpKind::Read, 0, span(900_000_000, 6_000_000_000), 10);
        notes.complete(OpKind::Read, 0, span(1_000_000_000, 8_000_000_000), 10);
        let total = notes.finish().total(1.0);
        assert_eq!((total.operations, total.bytes), (99, 990));
        assert!((total.latency_ms.max - 5100.0).abs() < 10.0, "{:?}", total.latency_ms);
        assert!(total.latency_ms.p99 < 2.0);
    }

    #[test]
    fn kinds_are_kept_apart_and_failures_counted_by_status() {
        let mut notes = recorder(0, u64::MAX);
        notes.complete(OpKind::Create, 0, span(0, 5_000), 0);
        notes.complete(OpKind::Remove, 0, span(0, 7_000), 0);
        notes.fail("NFS3ERR_IO");
        notes.fail("NFS3ERR_IO");
        let mut totals = Notes::default();
        totals.merge(notes.finish());
        let by = totals.by_operation(1.0);
        assert_eq!(by.keys().collect::<Vec<_>>(), ["create", "remove"]);
        assert_eq!(totals.errors["NFS3ERR_IO"], 2);
    }

    #[test]
    fn a_server_that_fails_in_a_new_way_each_time_takes_no_more_memory() {
        let mut notes = recorder(0, u64::MAX);
        let mut totals = Notes::default();
        for status in 0..5000 {
            notes.fail(&format!("status {status}"));
        }
        totals.merge(notes.finish());
        totals.fail("NFS3ERR_IO", 2);
        assert!(totals.errors.len() <= STATUSES_MAX + 1, "{}", totals.errors.len());
        assert_eq!(totals.errors.values().sum::<u64>(), 5002);
        assert!(totals.errors[FURTHER_STATUSES] >= 4900);
    }

    #[test]
    fn more_operations_than_fit_in_32_bits_keep_their_percentiles() {
        let (mut notes, many) = (Notes::default(), 6_000_000_000_u64);
        let counts = [(1_000_000, many + 10), (2_000_000, many)];
        assert_eq!(notes.gather(OpKind::Read, 0, counts.into_iter()), 2 * many + 10);
        let json = serde_json::to_string(&notes).unwrap();
        let mut all: Notes = serde_json::from_str(&json).unwrap();
        all.merge(notes);
        let total = all.total(1.0);
        assert_eq!(total.operations, 4 * many + 20);
        let latency = total.latency_ms;
        for (seen, wanted) in [(latency.p50, 1.0), (latency.p99, 2.0), (latency.mean, 1.5)] {
            assert!((seen - wanted).abs() <= wanted * 0.002, "{seen} is not {wanted}");
        }
    }

    #[test]
    fn a_window_is_reported_once_it_is_past() {
        let (reports, seen) = channel();
        let mut notes = Recorder::new(1, 0, u64::MAX, reports);
        notes.complete(OpKind::Null, 0, span(0, 50), 3);
        notes.tick(WINDOW_NS - 1);
        assert!(seen.try_recv().is_err());
        notes.tick(WINDOW_NS);
        let report = seen.try_recv().unwrap();
        assert_eq!((report.operations, report.bytes), (1, 3));
        assert_eq!(notes.window_end_ns(), 2 * WINDOW_NS);
    }

    #[test]
    fn nothing_measured_is_all_zero_and_not_a_panic() {
        assert_eq!(Notes::default().total(0.0), OpResult::default());
    }
}
