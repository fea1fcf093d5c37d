//! Test support of the suite: steps, figures, an executor that follows a script and a place that
//! notes what is made and removed. No time passes in them.

use super::executor::{Applied, Context, Executor};
use super::place::{Claim, Place};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weir_load::engine::{Limits, Phase, Window};
use weir_load::error::BenchError;
use weir_load::workload::{Location, Workload};
use weir_results::WorkerResult;
use weir_results::testing::{Figures, record};
use weir_scenario::scenario::{Chart, Language, Scenario, Step};

/// A step of one small load.
pub(super) fn step(name: &str) -> Step {
    let load = Workload { file_bytes: 1 << 20, ..Workload::default() };
    Step { name: name.to_owned(), loads: vec![load], ..Step::default() }
}

/// A scenario of such steps.
pub(crate) fn scenario(steps: &[&str]) -> Scenario {
    Scenario {
        name: "test".to_owned(),
        title: "A test".to_owned(),
        about: String::new(),
        source: None,
        language: Language::Native,
        chart: Chart::Bars,
        steps: steps.iter().map(|name| step(name)).collect(),
        changes: Vec::new(),
        waiting: None,
        addresses: None,
        target: None,
        text: None,
        hosts: Vec::new(),
    }
}

/// The action of a scripted executor at one application.
pub(super) enum Act {
    /// The executor gives these figures.
    Give(Figures),
    /// The executor can't begin.
    Fail(BenchError),
    /// Somebody interrupts it, and these are its figures until then.
    Interrupt(Figures),
    /// Somebody interrupts the laying out.
    InterruptLayout,
}

/// An executor that follows a script, and notes the loads. After the script it gives 1000 a
/// second.
#[derive(Default)]
pub(super) struct Scripted {
    pub(super) script: VecDeque<Act>,
    pub(super) applied: Vec<Vec<Workload>>,
    pub(super) never_ready: bool,
}

impl Scripted {
    pub(super) fn new(script: Vec<Act>) -> Self {
        Self { script: script.into(), ..Self::default() }
    }

    /// An executor that gives these rates, one application after the other.
    pub(super) fn rates(rates: &[f64]) -> Self {
        Self::new(rates.iter().map(|iops| Act::Give(Figures::new(*iops, 1.0))).collect())
    }
}

impl Executor for Scripted {
    fn name(&self) -> String {
        "a script".to_owned()
    }

    fn apply(
        &mut self,
        loads: &[Workload],
        context: &mut Context<'_>,
    ) -> Result<Applied, BenchError> {
        self.applied.push(loads.to_vec());
        let act = self.script.pop_front();
        let act = act.unwrap_or_else(|| Act::Give(Figures::new(1000.0, 1.0)));
        let figures = match act {
            Act::Fail(error) => return Err(error),
            Act::InterruptLayout => {
                context.control.stop();
                return Err(BenchError::Workload("stopped while laying out".to_owned()));
            }
            Act::Give(figures) => figures,
            Act::Interrupt(figures) => {
                context.control.stop();
                figures
            }
        };
        (context.layout)(1, 1);
        if !self.never_ready {
            (context.ready)();
        }
        (context.observe)(&Window {
            at_s: 0.1,
            seconds: 0.1,
            phase: Phase::Measure,
            operations: 1,
            bytes: 1,
            errors: 0,
            p99_ms: 1.0,
            max_ms: 1.0,
            left_s: Some(1.0),
        });
        let load = loads.first().cloned().unwrap_or_default();
        let record = record(&load, &figures);
        let lost = figures.worker_lost.then(|| WorkerResult {
            name: "w1".to_owned(),
            lost: Some("3.0 s after the start: the connection was closed".to_owned()),
            ..WorkerResult::default()
        });
        Ok(Applied { record, workers: lost.into_iter().collect(), notes: Vec::new() })
    }
}

/// A place in memory.
#[derive(Default)]
pub(super) struct Ground {
    /// Directories that are there.
    pub(super) there: BTreeSet<String>,
    /// Directories in which somebody else has something.
    pub(super) occupied: BTreeSet<String>,
    /// Directories of killed runs, with their processes.
    pub(super) abandoned: BTreeMap<String, u32>,
    /// Directories whose files stay.
    pub(super) released: BTreeSet<String>,
    /// In the order in which they were made and removed.
    pub(super) log: Vec<String>,
    pub(super) gone: bool,
    pub(super) room: Option<u64>,
    /// All targets are on one file system.
    pub(super) one_file_system: bool,
    pub(super) limits: Limits,
}

/// A directory as the log has it: with its target, if that has a name.
fn spot(at: &Location) -> String {
    let Location { target, directory } = at;
    if target.is_empty() { directory.clone() } else { format!("{target}:{directory}") }
}

fn unreachable() -> BenchError {
    BenchError::Mount("the server does not answer".to_owned())
}

impl Place for Ground {
    fn reach(&mut self) -> Result<(), BenchError> {
        if self.gone { Err(unreachable()) } else { Ok(()) }
    }

    fn room(&mut self, _: &str) -> Result<Option<u64>, BenchError> {
        Ok(self.room)
    }

    fn file_system(&mut self, target: &str) -> Result<String, BenchError> {
        Ok(if self.one_file_system { String::new() } else { target.to_owned() })
    }

    fn limits(&mut self, _: &str) -> Result<Limits, BenchError> {
        self.reach()?;
        Ok(self.limits)
    }

    fn claim(&mut self, at: &Location) -> Result<Claim, BenchError> {
        self.reach()?;
        let directory = &spot(at);
        if self.occupied.contains(directory) {
            return Err(BenchError::Workload(format!("{directory} is not empty")));
        }
        self.log.push(format!("+{directory}"));
        let made = self.there.insert(directory.to_owned());
        Ok(Claim { made, abandoned: self.abandoned.remove(directory) })
    }

    fn release(&mut self, at: &Location) -> Result<(), BenchError> {
        self.reach()?;
        self.released.insert(spot(at));
        Ok(())
    }

    fn clear(&mut self, at: &Location, with_directory: bool) -> Result<(), BenchError> {
        self.reach()?;
        let directory = &spot(at);
        self.log.push(format!("-{directory}"));
        if with_directory {
            self.there.remove(directory);
        }
        Ok(())
    }
}
