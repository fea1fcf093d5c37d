//! The coordinator's knowledge of one worker in one step.

use super::split::jobs_of;
use crate::cluster::clock::{Exchange, Reading};
use crate::cluster::wire::{Assigned, Report};
use std::collections::BTreeMap;
use weir_load::engine::{Phase, Record, Window};
use weir_results::WorkerResult;

/// Readings of a clock that are kept; more than are asked for, since some may come late.
const READINGS_MAX: usize = 64;

/// The progress of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// The worker's clock is being read.
    #[default]
    Probing,
    /// The worker's clock was read.
    Probed,
    /// The worker's files are laid out.
    Prepared,
    /// The worker can start.
    Attached,
    /// The worker's load is over, and its records are here.
    Ended,
    /// The worker has cleared away.
    Finished,
}

/// A worker was lost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loss {
    /// The reason.
    pub(crate) why: String,
    /// Seconds after the start; `None` before it.
    pub(crate) at_s: Option<f64>,
}

/// A worker in a step.
#[derive(Default)]
pub(crate) struct Seat {
    /// The worker's number.
    pub(crate) worker: usize,
    /// The worker's name.
    pub(crate) name: String,
    /// The loads that it takes part in.
    pub(crate) loads: Vec<Assigned>,
    /// The worker's progress.
    pub(crate) progress: Progress,
    /// The readings of its clock.
    pub(crate) readings: Vec<Reading>,
    /// The readings of its clock after the load.
    pub(crate) readings_after: Vec<Reading>,
    /// Bytes laid out, of so many.
    pub(crate) layout: (u64, u64),
    /// The records of its loads, by number.
    pub(crate) records: BTreeMap<u32, Record>,
    /// The operations and bytes that it was seen to complete in the measured interval.
    pub(crate) seen: (u64, u64),
    /// Failures after the load, with the load's number.
    pub(crate) failures: Vec<(u32, String)>,
    /// Milliseconds by which it began late.
    pub(crate) late_ms: u64,
    /// The worker was told to end by somebody else; its measurements may still have come.
    pub(crate) leaving: Option<Loss>,
    /// The worker was lost.
    pub(crate) lost: Option<Loss>,
}

impl Seat {
    /// Takes a report of this step in. Gives a window to show.
    ///
    /// # Errors
    /// Why the worker can't be counted on any more.
    pub(crate) fn take(
        &mut self,
        at_ns: u64,
        at_s: Option<f64>,
        report: Report,
    ) -> Result<Option<Window>, String> {
        match report {
            Report::Pong { sent_ns, received_ns, answered_ns } => {
                let exchange = Exchange { sent_ns, received_ns, answered_ns, arrived_ns: at_ns };
                let reading = exchange.reading().ok_or("its clock readings are implausible")?;
                let readings = match self.progress {
                    Progress::Finished => &mut self.readings_after,
                    _ => &mut self.readings,
                };
                if readings.len() >= READINGS_MAX {
                    return Err("it sent its time without a request".to_owned());
                }
                readings.push(reading);
            }
            Report::Layout { done, total, .. } => self.layout = (done, total),
            Report::Prepared { .. } => self.move_on(Progress::Probed, Progress::Prepared)?,
            Report::Attached { .. } => self.move_on(Progress::Prepared, Progress::Attached)?,
            Report::Window { window, .. } => {
                if window.phase == Phase::Measure {
                    self.seen.0 = self.seen.0.saturating_add(window.operations);
                    self.seen.1 = self.seen.1.saturating_add(window.bytes);
                }
                return Ok(Some(window));
            }
            Report::Record { load, record, .. } => {
                let own = self.loads.iter().find(|assigned| assigned.load == load);
                let own = own.ok_or_else(|| {
                    format!("it reported load {load}, to which it is not assigned")
                })?;
                record.check(own.workload.jobs)?;
                if self.records.insert(load, *record).is_some() {
                    return Err(format!("it reported load {load} twice"));
                }
            }
            Report::Ended { late_ms, .. } => {
                if self.records.len() < self.loads.len() {
                    return Err("it did not report all of its loads".to_owned());
                }
                self.late_ms = late_ms;
                self.move_on(Progress::Attached, Progress::Ended)?;
            }
            Report::Finished { failures, .. } => {
                self.failures = failures;
                self.move_on(Progress::Ended, Progress::Finished)?;
            }
            Report::Failed { why, .. } => return Err(why),
            Report::Leaving { why } => self.leaving = Some(Loss { why, at_s }),
            Report::Refused { .. } | Report::Welcome(_) => {
                return Err("it sent an unexpected greeting".to_owned());
            }
            Report::Alive => {}
        }
        Ok(None)
    }

    fn move_on(&mut self, from: Progress, to: Progress) -> Result<(), String> {
        if self.progress != from {
            return Err(format!("it reported {to:?} while {:?}", self.progress));
        }
        self.progress = to;
        Ok(())
    }

    /// Is it counted on until it has got to `progress`?
    #[must_use]
    pub(crate) fn is_awaited(&self, progress: Progress) -> bool {
        self.lost.is_none() && self.progress < progress
    }

    /// Notes the loss. What had ended before stays as it is.
    pub(crate) fn lose(&mut self, why: String, at_s: Option<f64>) {
        if self.lost.is_some() {
            return;
        }
        if self.progress == Progress::Ended {
            self.failures.push((
                self.loads.first().map_or(0, |assigned| assigned.load),
                format!("clean-up: worker {}: {why}; files may remain", self.name),
            ));
        }
        self.lost = Some(Loss { why, at_s });
    }

    /// Was its part of the load cut short: lost before its end, or told to end?
    #[must_use]
    pub(crate) fn is_short(&self) -> bool {
        self.leaving.is_some() || (self.lost.is_some() && self.progress < Progress::Ended)
    }

    /// The worker's part of the result.
    #[must_use]
    pub(crate) fn result(&self, reading: Option<Reading>) -> WorkerResult {
        let ended = self.progress >= Progress::Ended;
        let records = || self.records.values().filter(|_| ended);
        let sum = |sum: (u64, u64), record: &Record| {
            let (operations, bytes) = record.measured();
            (sum.0 + operations, sum.1 + bytes)
        };
        let (operations, bytes) = if ended { records().fold((0, 0), sum) } else { self.seen };
        WorkerResult {
            name: self.name.clone(),
            operations,
            bytes,
            cpu_s: records().map(Record::cpu_s).sum(),
            clock_offset_ms: reading.map_or(0.0, |reading| reading.offset_ms()),
            clock_uncertainty_ms: reading.map_or(0.0, |reading| reading.uncertainty_ms()),
            lost: self.is_short().then(|| self.story()),
        }
    }

    /// The time and reason of its early end.
    #[must_use]
    pub(crate) fn story(&self) -> String {
        match self.leaving.as_ref().or(self.lost.as_ref()) {
            Some(Loss { why, at_s: Some(at_s) }) => format!("{at_s:.1} s after the start: {why}"),
            Some(Loss { why, at_s: None }) => why.clone(),
            None => String::new(),
        }
    }

    /// The worker's share of the load with this number, 0 to 1.
    #[must_use]
    pub(crate) fn share(&self, load: u32) -> f64 {
        let assigned = self.loads.iter().find(|assigned| assigned.load == load);
        assigned.map_or(0.0, |assigned| {
            let workload = &assigned.workload;
            f64::from(jobs_of(workload)) / f64::from(workload.jobs.max(1))
        })
    }
}
