//! Runs in which the client's machine had no idle processor.

use super::StepRun;
use std::fmt;
use weir_load::stats::result::RunResult;

/// From this share of the time on, the processors of a machine were busy throughout.
const BUSY_PERCENT: f64 = 98.0;

/// The processors of a client's machine that were all busy, and their users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineBusy {
    /// Share of the time, 98 to 100.
    pub percent: f64,
    /// Number of processors; 0 if it is not known.
    processors: u32,
    /// Processors that the load generator kept busy, in all workers together.
    generator: f64,
    /// Processors that the server kept busy, where its process was watched.
    server: Option<f64>,
    /// Several workers applied the load.
    several: bool,
}

impl MachineBusy {
    /// The processors of the busiest client's machine in `run`, if all were busy although the load
    /// generator was not the limit: something else on that machine was, or all of it together.
    #[must_use]
    pub fn of(run: &RunResult) -> Option<Self> {
        let generator = &run.generator;
        let is_busy = generator.machine_busy_percent >= BUSY_PERCENT;
        let seconds = run.measured.seconds();
        (is_busy && !generator.saturated).then(|| Self {
            percent: generator.machine_busy_percent,
            processors: generator.machine_processors,
            generator: if seconds > 0.0 { generator.cpu_s / seconds } else { 0.0 },
            server: run.server.map(|server| server.processors),
            several: false,
        })
    }

    /// In a sentence without its full stop. `shared`: the server is on this machine.
    #[must_use]
    pub fn words(&self, shared: bool) -> String {
        let generator = if self.several { " in all workers" } else { "" };
        let server = self.server.map(|server| format!(", the server {server:.2}"));
        let shared =
            if shared { ", server and load generator share this machine's processors" } else { "" };
        format!(
            "the processors of the client's machine were busy ({self}; the load generator used \
             {:.2}{generator}{}){shared}: rates are a lower bound, latencies an upper one",
            self.generator,
            server.unwrap_or_default()
        )
    }
}

/// The busy processors of how many, or the share of the time.
impl fmt::Display for MachineBusy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processors {
            0 => write!(f, "{:.0} %", self.percent),
            all => write!(f, "{:.2} of {all}", self.percent / 100.0 * f64::from(all)),
        }
    }
}

impl StepRun {
    /// As [`MachineBusy::of`], of all loads together.
    #[must_use]
    pub fn machine_busy(&self) -> Option<MachineBusy> {
        let several = self.workers.len() > 1;
        MachineBusy::of(&self.total).map(|busy| MachineBusy { several, ..busy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::result;
    use weir_load::stats::result::{Generator, ServerCpu};

    fn run(machine_busy_percent: f64, saturated: bool) -> RunResult {
        let generator = Generator {
            cpu_s: 3.5,
            machine_busy_percent,
            machine_processors: 2,
            saturated,
            ..Generator::default()
        };
        RunResult { generator, ..result(1000.0, 1.0) }
    }

    #[test]
    fn a_machine_without_a_free_processor_is_busy_unless_the_generator_was_the_limit() {
        assert!(MachineBusy::of(&run(98.0, false)).is_some());
        assert_eq!(MachineBusy::of(&run(97.9, false)), None);
        assert_eq!(MachineBusy::of(&run(100.0, true)), None);
    }

    #[test]
    fn the_processors_are_told_with_their_users_as_far_as_they_are_known() {
        let mut run = run(99.0, false);
        let told = MachineBusy::of(&run).unwrap().words(false);
        assert_eq!(
            told,
            "the processors of the client's machine were busy (1.98 of 2; the load generator used \
             0.35): rates are a lower bound, latencies an upper one"
        );
        run.server = Some(ServerCpu { processors: 1.204, cpu_us_per_op: 1.0 });
        run.generator.machine_processors = 0;
        let told = MachineBusy::of(&run).unwrap().words(true);
        assert!(told.contains("(99 %; the load generator used 0.35, the server 1.20), server and"));
        assert!(told.contains("share this machine's processors: rates"), "{told}");
    }
}
