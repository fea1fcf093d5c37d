//! The resources used by the server process during a measurement.

use super::CliError;
use std::time::Duration;
use weir_load::engine::{Phase, Window};
use weir_load::stats::cpu;
use weir_load::stats::result::{RunResult, ServerCpu};

/// Samples a process at the beginning and the end of the measured interval, to the nearest window.
pub(crate) struct ServerSampler {
    pid: u32,
    first: Option<Sample>,
    last: Option<Sample>,
}

#[derive(Clone, Copy)]
struct Sample {
    at_s: f64,
    cpu: Duration,
}

impl ServerSampler {
    /// A sampler of process `pid`, which must exist.
    pub(crate) fn new(pid: u32) -> Result<Self, CliError> {
        cpu::process(pid).map_err(|source| CliError::Server { pid, source })?;
        Ok(Self { pid, first: None, last: None })
    }

    /// Samples if the window is in the measured interval. If the process has ended, the last sample
    /// is kept.
    pub(crate) fn window(&mut self, window: &Window) {
        if window.phase == Phase::Measure
            && let Ok(cpu) = cpu::process(self.pid)
        {
            self.add(Sample { at_s: window.at_s, cpu });
        }
    }

    fn add(&mut self, sample: Sample) {
        self.first.get_or_insert(sample);
        self.last = Some(sample);
    }

    /// The figures; `None` if the run was too short for two samples.
    pub(crate) fn finish(&self, result: &RunResult) -> Option<ServerCpu> {
        let (first, last) = (self.first?, self.last?);
        let seconds = last.at_s - first.at_s;
        if seconds <= 0.0 {
            return None;
        }
        let processors = last.cpu.saturating_sub(first.cpu).as_secs_f64() / seconds;
        Some(ServerCpu { processors, cpu_us_per_op: per_operation(processors, result.total.iops) })
    }
}

/// Microseconds per operation; 0 if none completed, since results hold only finite numbers.
fn per_operation(processors: f64, iops: f64) -> f64 {
    if iops > 0.0 { processors / iops * 1e6 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_which_nothing_completed_has_figures_that_can_be_written() {
        assert!((per_operation(0.5, 50_000.0) - 10.0).abs() < 1e-9);
        assert!(per_operation(0.5, 0.0).abs() < f64::EPSILON);
    }
}
