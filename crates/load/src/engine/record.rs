//! The records of loads before figures are made of them: the form in which processes send them to
//! each other. Records of the same load add up; percentiles are taken afterwards, from all of them.

use crate::error::BenchError;
use crate::stats::Notes;
use crate::stats::result::{
    Connections, Generator, Interval, JobResult, Mark, OpResult, RESULT_VERSION, RunResult,
    VerifyResult,
};
use crate::verify::DETAILS_MAX;
use crate::workload::{Length, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::WorkerOutcome;
use super::collect::seconds;

/// A worker that waits for the target less than the rest of this is the limit itself.
const SATURATED_PERCENT: f64 = 95.0;
/// Share of the processors of a busy machine from which on the generator is the limit by itself.
const OWN_SHARE: f64 = 0.5;
/// The record of one load in one process, or in several together. Times count from the start of the
/// load, which all processes share.
#[derive(Clone, Serialize, Deserialize)]
pub struct Record {
    pub(super) target: String,
    /// The load as it was applied.
    pub workload: Workload,
    pub(super) clients: Vec<String>,
    pub(super) started_unix_s: f64,
    pub(super) measure_ns: u64,
    /// Planned end; the greatest number for an end by count.
    pub(super) planned_ns: u64,
    pub(super) ended_ns: u64,
    pub(super) notes: Notes,
    pub(super) connections: Connections,
    /// Connections to each address.
    #[serde(default)]
    pub(super) addresses: BTreeMap<String, u64>,
    pub(super) generator: Generator,
    /// Faults that ended workers before their time, and failures after the load, in words.
    pub(super) faults: BTreeMap<String, u64>,
    /// Did a fault, or a stop, end the load itself before its time?
    pub(super) broken: bool,
    pub(super) marks: Vec<Mark>,
    pub(super) verify: Option<VerifyResult>,
}

impl Record {
    /// Takes in what a worker brought home.
    pub(super) fn add(&mut self, outcome: WorkerOutcome) {
        self.connections.lost += outcome.lost;
        self.connections.unanswered += outcome.unanswered;
        self.generator.cpu_s += outcome.usage.cpu.as_secs_f64();
        self.generator.busiest_thread_percent =
            self.generator.busiest_thread_percent.max(outcome.usage.busy_percent());
        if let Some(fault) = outcome.fault {
            self.broken = true;
            *self.faults.entry(fault.in_full()).or_default() += 1;
        }
        // A job may end by itself before the planned end; a stop after that end interrupts nothing.
        self.broken |= outcome.stopped && outcome.ended_ns < self.planned_ns;
        self.ended_ns = self.ended_ns.max(outcome.ended_ns);
        self.notes.merge(outcome.notes);
        if let Some(verify) = outcome.verify {
            self.add_verify(verify);
        }
    }

    /// Adds what a comparison found.
    pub(super) fn add_verify(&mut self, found: VerifyResult) {
        self.verify.get_or_insert_default().merge(found, DETAILS_MAX);
    }

    /// Notes that `what`, which follows the load, failed.
    pub(super) fn add_failure(&mut self, what: &str, error: &BenchError) {
        *self.faults.entry(format!("{what}: {}", error.in_full())).or_default() += 1;
    }

    /// Notes that a process which had a part in the load was lost: its figures are incomplete.
    pub fn lose(&mut self, what: String) {
        *self.faults.entry(what).or_default() += 1;
        self.broken = true;
    }

    /// Notes that something that follows the load failed.
    pub fn fail(&mut self, what: String) {
        *self.faults.entry(what).or_default() += 1;
    }

    /// Notes something that happened `count` times.
    pub(super) fn fail_often(&mut self, what: String, count: u64) {
        *self.faults.entry(what).or_default() += count;
    }

    /// Makes records of parts one of the whole: when it began by the clock of who asked for it,
    /// and what was noted there meanwhile.
    pub fn settle(&mut self, started_unix_s: f64, marks: Vec<Mark>) {
        self.workload.part = None;
        self.started_unix_s = started_unix_s;
        self.marks.extend(marks);
    }

    /// Adds what another process noted about the same load.
    pub fn merge(&mut self, other: Self) {
        self.started_unix_s = self.started_unix_s.min(other.started_unix_s);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.connections.opened += other.connections.opened;
        self.connections.lost += other.connections.lost;
        self.connections.unanswered += other.connections.unanswered;
        self.generator.cpu_s += other.generator.cpu_s;
        self.generator.busiest_thread_percent =
            self.generator.busiest_thread_percent.max(other.generator.busiest_thread_percent);
        for (what, count) in other.faults {
            *self.faults.entry(what).or_default() += count;
        }
        self.broken |= other.broken;
        self.marks.extend(other.marks);
        self.notes.merge(other.notes);
        if other.generator.machine_busy_percent > self.generator.machine_busy_percent {
            self.generator.machine_busy_percent = other.generator.machine_busy_percent;
            self.generator.machine_processors = other.generator.machine_processors;
        }
        for (address, count) in other.addresses {
            *self.addresses.entry(address).or_default() += count;
        }
        if let Some(verify) = other.verify {
            self.add_verify(verify);
        }
    }

    /// Operations completed in the measured interval, and their payload.
    #[must_use]
    pub fn measured(&self) -> (u64, u64) {
        let jobs = &self.notes.jobs;
        (jobs.iter().map(|job| job.operations).sum(), jobs.iter().map(|job| job.bytes).sum())
    }

    /// Processor time of the worker threads in the measured interval, in seconds.
    #[must_use]
    pub const fn cpu_s(&self) -> f64 {
        self.generator.cpu_s
    }

    /// The figures.
    #[must_use]
    pub fn result(self) -> RunResult {
        let measured = self.interval();
        let total = self.notes.total(measured.seconds());
        let on_path = self.addresses.is_empty().then(|| measured.seconds());
        let generator = completed(self.generator, &total, on_path);
        let interrupted = self.interrupted();
        let jobs = self.jobs(total.operations);
        let mut errors = self.notes.errors.clone();
        for (status, count) in &self.faults {
            *errors.entry(status.clone()).or_default() += count;
        }
        RunResult {
            version: RESULT_VERSION,
            name: self.workload.name.clone(),
            jobs,
            target: self.target,
            workload: self.workload,
            started_unix_s: self.started_unix_s,
            measured,
            total,
            by_operation: self.notes.by_operation(measured.seconds()),
            errors,
            connections: Connections { continued: self.notes.continued, ..self.connections },
            addresses: self.addresses,
            series_1s: self.notes.series.points_1s(),
            series_100ms: self.notes.series.points_100ms(),
            series_10ms: self.notes.series.points_10ms(),
            marks: self.marks,
            generator,
            server: None,
            verify: self.verify,
            interrupted,
        }
    }

    fn interrupted(&self) -> bool {
        self.connections.lost > 0
            || self.broken
            || self.verify.as_ref().is_some_and(|verify| verify.unread > 0)
    }

    /// A run by time is measured from the warm-up's end to its own; one by count until the last
    /// completion.
    fn interval(&self) -> Interval {
        let to_ns = match self.workload.length {
            Length::Seconds(_) => self.ended_ns.min(self.planned_ns),
            // An operation answered after the end is not counted, so its time is not either.
            Length::Operations(_) | Length::Bytes { .. } => {
                self.notes.last_done_ns.min(self.ended_ns).min(self.planned_ns)
            }
        };
        Interval { from_s: seconds(self.measure_ns), to_s: seconds(to_ns.max(self.measure_ns)) }
    }

    fn jobs(&self, operations: u64) -> Vec<JobResult> {
        let result = |(index, count): (usize, &crate::stats::JobCount)| JobResult {
            job: u32::try_from(index).unwrap_or(u32::MAX),
            client: match self.clients.len() {
                0 => String::new(),
                clients => self.clients.get(index % clients).cloned().unwrap_or_default(),
            },
            operations: count.operations,
            bytes: count.bytes,
            share: share(count.operations, operations),
            kept_depth: count.kept_depth,
        };
        self.notes.jobs.iter().enumerate().map(result).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "shares need no more than 52 bits")]
fn share(operations: u64, all: u64) -> f64 {
    operations as f64 / all.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 52 bits")]
fn completed(generator: Generator, total: &OpResult, on_path: Option<f64>) -> Generator {
    // On a path each request in flight has a thread, so that none is ever busy by itself: the
    // generator is the limit if all processors are busy, and mostly with it.
    let machine = on_path.is_some_and(|seconds| {
        let own = generator.cpu_s / (seconds * f64::from(generator.machine_processors.max(1)));
        generator.machine_busy_percent >= SATURATED_PERCENT && own >= OWN_SHARE
    });
    Generator {
        cpu_us_per_op: generator.cpu_s * 1e6 / total.operations.max(1) as f64,
        saturated: machine || generator.busiest_thread_percent >= SATURATED_PERCENT,
        ..generator
    }
}

/// The records of the loads of one step.
#[derive(Clone, Serialize, Deserialize)]
pub struct StepRecord {
    /// In the order of the step's loads.
    pub loads: Vec<Record>,
}

impl StepRecord {
    /// Adds what another process noted about the same step.
    pub fn merge(&mut self, other: Self) {
        for (own, other) in self.loads.iter_mut().zip(other.loads) {
            own.merge(other);
        }
    }

    /// Operations completed in the measured intervals, and their payload.
    #[must_use]
    pub fn measured(&self) -> (u64, u64) {
        let each = self.loads.iter().map(Record::measured);
        each.fold((0, 0), |sum, load| (sum.0 + load.0, sum.1 + load.1))
    }

    /// The figures of each target, all its loads together, under the name of the target; none if
    /// all loads are on one.
    #[must_use]
    pub fn by_target(&self) -> Vec<RunResult> {
        let mut targets: BTreeMap<&str, Vec<Record>> = BTreeMap::new();
        for load in &self.loads {
            targets.entry(&load.workload.target).or_default().push(load.clone());
        }
        if targets.len() < 2 {
            return Vec::new();
        }
        let together = |(name, loads)| Some(Self { loads }.results(name)?.0);
        targets.into_iter().filter_map(together).collect()
    }

    /// The figures of all loads together under the name `name`, and of each where there are
    /// several. Rates of loads whose measured intervals differ are those of each interval, added.
    #[must_use]
    pub fn results(self, name: &str) -> Option<(RunResult, Vec<RunResult>)> {
        let mut targets: Vec<String> = self.loads.iter().map(|load| load.target.clone()).collect();
        targets.sort_unstable();
        targets.dedup();
        if self.loads.len() == 1 {
            let mut only = self.loads.into_iter().next()?.result();
            name.clone_into(&mut only.name);
            return Some((only, Vec::new()));
        }
        let mut together: Option<Record> = None;
        let mut each = Vec::with_capacity(self.loads.len());
        for record in self.loads {
            each.push(record.clone().result());
            match &mut together {
                None => together = Some(record),
                Some(sum) => sum.join(record),
            }
        }
        let mut total = together?.result();
        name.clone_into(&mut total.name);
        total.target = targets.join(", ");
        total.interrupted = each.iter().any(|run| run.interrupted);
        total.jobs = each.iter().flat_map(|run| run.jobs.iter().cloned()).collect();
        for (number, job) in (0..).zip(&mut total.jobs) {
            job.job = number;
            job.share = share(job.operations, total.total.operations);
        }
        total.total.iops = each.iter().map(|run| run.total.iops).sum();
        total.total.mibps = each.iter().map(|run| run.total.mibps).sum();
        for (kind, all) in &mut total.by_operation {
            let of = |run: &RunResult| run.by_operation.get(kind).copied().unwrap_or_default();
            all.iops = each.iter().map(|run| of(run).iops).sum();
            all.mibps = each.iter().map(|run| of(run).mibps).sum();
        }
        Some((total, each))
    }
}

impl Record {
    /// Adds another load of the same step: its jobs follow the own ones.
    fn join(&mut self, mut other: Self) {
        let mut jobs = std::mem::take(&mut self.notes.jobs);
        jobs.append(&mut other.notes.jobs);
        self.measure_ns = self.measure_ns.min(other.measure_ns);
        self.planned_ns = self.planned_ns.max(other.planned_ns);
        self.merge(other);
        self.notes.jobs = jobs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_path_the_generator_is_the_limit_where_it_keeps_the_processors_busy() {
        let saturated = |cpu_s: f64, machine_busy_percent: f64, on_path: Option<f64>| {
            let machine_processors = 2;
            let generator = Generator {
                cpu_s,
                machine_busy_percent,
                machine_processors,
                ..Generator::default()
            };
            completed(generator, &OpResult::default(), on_path).saturated
        };
        assert!(saturated(11.0, 99.0, Some(10.0)));
        assert!(!saturated(0.8, 100.0, Some(10.0)), "others keep them busy");
        assert!(!saturated(11.0, 60.0, Some(10.0)), "there is an idle one");
        assert!(!saturated(11.0, 99.0, None), "on a connection its thread tells");
    }
}
