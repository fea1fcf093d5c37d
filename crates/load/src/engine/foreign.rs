//! Records of loads that another program applied: its counts and distributions in the form of our
//! own, so that they merge and are reported alike.

use super::Record;
use crate::stats::result::{Connections, Generator, Mark};
use crate::stats::{JobCount, Notes, OpKind};
use crate::workload::Workload;
use std::collections::BTreeMap;

/// Another program's record of a load.
pub struct Foreign {
    /// The measured target, as the user wrote it.
    pub target: String,
    /// The load.
    pub workload: Workload,
    /// Start of the load, in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// Start of the measured interval, in nanoseconds since then.
    pub measure_ns: u64,
    /// End of the load, in nanoseconds since its start.
    pub ended_ns: u64,
    /// The load was ended before its time.
    pub stopped: bool,
    /// Processor time in seconds.
    pub cpu_s: f64,
    /// Share of the time that the busiest of its processes computed, 0 to 100.
    pub busiest_percent: f64,
    /// The faults, in words.
    pub faults: BTreeMap<String, u64>,
    notes: Notes,
}

impl Foreign {
    /// Of `workload` on `target`; nothing noted yet.
    pub fn new(target: String, workload: Workload) -> Self {
        let mut notes = Notes::default();
        notes.jobs.resize(usize::try_from(workload.jobs).unwrap_or(0), JobCount::default());
        Self {
            target,
            workload,
            started_unix_s: 0.0,
            measure_ns: 0,
            ended_ns: 0,
            stopped: false,
            cpu_s: 0.0,
            busiest_percent: 0.0,
            faults: BTreeMap::new(),
            notes,
        }
    }

    /// Adds what `job` did of one kind: its bytes, and how many operations took how many
    /// nanoseconds.
    pub fn add(
        &mut self,
        kind: OpKind,
        job: usize,
        bytes: u64,
        latencies: impl Iterator<Item = (u64, u64)>,
    ) {
        let operations = self.notes.gather(kind, bytes, latencies);
        if let Some(count) = self.notes.jobs.get_mut(job) {
            count.operations += operations;
            count.bytes += bytes;
        }
    }

    /// Adds completions that another program noted as a rate, evenly over the time from `from_ns`
    /// until `to_ns`.
    pub fn add_span(&mut self, from_ns: u64, to_ns: u64, operations: u64, bytes: u64) {
        self.notes.series.add_span(from_ns, to_ns, operations, bytes);
    }

    /// The record.
    pub fn record(mut self, marks: Vec<Mark>) -> Record {
        self.notes.last_done_ns = self.ended_ns;
        Record {
            target: self.target,
            workload: self.workload,
            clients: Vec::new(),
            addresses: BTreeMap::new(),
            started_unix_s: self.started_unix_s,
            measure_ns: self.measure_ns,
            planned_ns: self.ended_ns,
            ended_ns: self.ended_ns,
            notes: self.notes,
            connections: Connections::default(),
            generator: Generator {
                cpu_s: self.cpu_s,
                busiest_thread_percent: self.busiest_percent,
                ..Generator::default()
            },
            broken: self.stopped || !self.faults.is_empty(),
            faults: self.faults,
            marks,
            verify: None,
        }
    }
}
