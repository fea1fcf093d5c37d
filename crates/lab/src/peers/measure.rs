//! One measurement: one workload on one server, and its cost.

use super::cpu::Reading;
use super::plan::{TRIALS, Work};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use weir_load::engine::{Phase, Window, prepare};
use weir_load::workload::{Layout, Length, Operation, Pattern, Stability, Workload};
use weir_load::{Control, Target};

/// Files that the connections share out, and their size.
const FILES: u32 = 4;
const FILE_BYTES: u64 = 128 << 20;
/// The files are laid out by writes of this size, the kindest to the small writes that follow.
const LAYOUT_BYTES: u32 = 4096;
/// The directory of the files.
pub(super) const DIRECTORY: &str = "peers";
/// A generator thread that computed this part of the time was the limit.
const SATURATED: f64 = 0.95;

/// The durations of one measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Times {
    /// Load before the measurement, in seconds.
    pub warmup_s: f64,
    /// The measurement, in seconds.
    pub measured_s: f64,
    /// Rounds; in each the servers take turns.
    pub rounds: u32,
    /// Threads of the generator.
    pub generator_threads: u32,
}

/// The result of one measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Sample {
    /// Processor time of server and kernel workers for an operation, in µs.
    pub(super) server_us: f64,
    /// The part of it that kernel workers took.
    pub(super) kernel_workers_us: f64,
    /// Processor time of the generator for an operation, in µs.
    pub(super) generator_us: f64,
    /// Operations per second.
    pub(super) iops: f64,
    /// Median latency in ms.
    pub(super) p50_ms: f64,
    /// 99th percentile of the latency in ms.
    pub(super) p99_ms: f64,
    /// Was the generator the limit?
    pub(super) generator_saturated: bool,
}

/// The load of a row.
pub(super) fn workload(work: &Work, times: &Times, seed: u64) -> Workload {
    Workload {
        name: work.name.to_owned(),
        operation: work.operation,
        block_bytes: work.block_bytes,
        depth: work.in_flight.depth(),
        jobs: work.in_flight.connections(),
        clients: 1,
        connections: work.in_flight.connections(),
        files: FILES,
        file_bytes: FILE_BYTES,
        stability: Stability::Unstable,
        length: Length::Seconds(times.measured_s),
        warmup_s: times.warmup_s,
        layout: Layout::Existing,
        keep: true,
        directory: DIRECTORY.to_owned(),
        threads: times.generator_threads,
        seed,
        ..Workload::default()
    }
}

/// Lays out the files that all servers then use, by small writes to one of them.
pub(super) fn lay_out(target: &Target, times: &Times) -> Result<()> {
    let files = Workload {
        operation: Operation::Data { pattern: Pattern::Sequential, read_percent: 100 },
        block_bytes: LAYOUT_BYTES,
        length: Length::Operations(u64::from(FILES) * FILE_BYTES / u64::from(LAYOUT_BYTES)),
        layout: Layout::Written { block_bytes: LAYOUT_BYTES },
        ..workload(&TRIALS[0].work(), times, 1)
    };
    let prepared = prepare(target, &files).context("laying out the files")?;
    let result = prepared.run(&Control::new(), |_| {})?;
    ensure!(result.is_clean(), "reading the new files back failed: {:?}", result.errors);
    Ok(())
}

/// Applies `load` to the server with process `pid` and measures both sides.
pub(super) fn measure(
    target: &Target,
    pid: u32,
    load: &Workload,
    control: &Control,
) -> Result<Sample> {
    let prepared = prepare(target, load).with_context(|| format!("preparing {}", load.name))?;
    let mut probe = Probe::new(|| Reading::take(pid));
    let result = prepared.run(control, |window| probe.observe(window))?;
    ensure!(
        result.is_clean() && !result.interrupted,
        "{} on {target}: {:?}, {} connections lost{}",
        load.name,
        result.errors,
        result.connections.lost,
        if result.interrupted { ", interrupted" } else { "" }
    );
    let (first, last, operations) = probe.finish()?;
    let used = last.since(&first);
    let per_operation = |seconds: f64| seconds * 1e6 / operations;
    let busy = result.generator.cpu_s / result.measured.seconds() / f64::from(load.threads);
    Ok(Sample {
        server_us: per_operation(used.process_s + used.kernel_s),
        kernel_workers_us: per_operation(used.kernel_s),
        generator_us: result.generator.cpu_us_per_op,
        iops: result.total.iops,
        p50_ms: result.total.latency_ms.p50,
        p99_ms: result.total.latency_ms.p99,
        generator_saturated: busy >= SATURATED,
    })
}

/// Reads clocks at the first and the last window of the measured part, and counts the operations
/// that completed between them.
#[derive(Debug)]
pub struct Probe<R, F> {
    read: F,
    first: Option<R>,
    last: Option<R>,
    operations: u64,
    failed: Option<anyhow::Error>,
}

impl<R, F: FnMut() -> Result<R>> Probe<R, F> {
    /// A probe that reads the clocks by `read`.
    pub const fn new(read: F) -> Self {
        Self { read, first: None, last: None, operations: 0, failed: None }
    }

    /// To be called with each window of the load.
    pub fn observe(&mut self, window: &Window) {
        if window.phase != Phase::Measure || self.last.is_some() {
            return;
        }
        let ending = window.left_s.is_some_and(|left| left <= 0.15);
        if self.first.is_some() {
            self.operations += window.operations;
        }
        if self.first.is_some() && !ending {
            return;
        }
        match (self.read)() {
            Ok(reading) if self.first.is_none() => self.first = Some(reading),
            Ok(reading) => self.last = Some(reading),
            Err(error) => self.failed = Some(error),
        }
    }

    /// Both readings, and the number of operations between them, which is not 0.
    ///
    /// # Errors
    /// The errors of reading; and one if the run was too short, or nothing completed.
    #[expect(clippy::cast_precision_loss, reason = "operations of seconds")]
    pub fn finish(self) -> Result<(R, R, f64)> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let (first, last) =
            self.first.zip(self.last).context("the run was too short to measure")?;
        ensure!(self.operations > 0, "nothing completed");
        Ok((first, last, self.operations as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { warmup_s: 1.0, measured_s: 3.0, rounds: 5, generator_threads: 1 };

    #[test]
    fn every_workload_is_sound() {
        for trial in &TRIALS {
            workload(&trial.work(), &TIMES, 1).check().unwrap();
        }
    }

    fn window(phase: Phase, left_s: f64, operations: u64) -> Window {
        Window {
            at_s: 0.0,
            seconds: 0.1,
            phase,
            operations,
            bytes: 0,
            errors: 0,
            p99_ms: 0.0,
            max_ms: 0.0,
            left_s: Some(left_s),
        }
    }

    #[test]
    fn only_operations_between_the_two_readings_count() {
        let mut probe = Probe::new(|| Ok(()));
        probe.observe(&window(Phase::Warmup, 3.0, 1000));
        probe.observe(&window(Phase::Measure, 2.9, 500));
        probe.observe(&window(Phase::Measure, 2.8, 7));
        probe.observe(&window(Phase::Measure, 0.1, 8));
        probe.observe(&window(Phase::Measure, 0.0, 9));
        probe.observe(&window(Phase::Drain, 0.0, 10));
        assert_eq!(probe.finish().unwrap().2, 15.0);
    }

    #[test]
    fn a_run_without_a_measured_part_says_so() {
        let mut probe = Probe::new(|| Ok(()));
        probe.observe(&window(Phase::Drain, 0.0, 10));
        assert!(probe.finish().unwrap_err().to_string().contains("too short"));
    }
}
