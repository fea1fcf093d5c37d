//! The executor that applies the loads of a step: this process, several workers, or another
//! program.

use super::mounted;
use std::time::Instant;
use weir_load::control::Control;
use weir_load::engine::{StepRecord, Window, prepare_step};
use weir_load::error::BenchError;
use weir_load::target::Targets;
use weir_load::workload::Workload;
use weir_results::WorkerResult;

/// The environment of a step besides its loads.
pub struct Context<'a> {
    /// The hand that may stop it.
    pub control: &'a Control,
    /// Told how much of how much is laid out, in bytes, or in files where nothing is written.
    pub layout: &'a mut dyn FnMut(u64, u64),
    /// Called once all files are laid out, on all processes, before the load starts: caches are
    /// emptied here. It may take its time.
    pub ready: &'a mut dyn FnMut(),
    /// Told what happened every 100 ms.
    pub observe: &'a mut dyn FnMut(&Window),
}

/// The result of a step.
pub struct Applied {
    /// All processes together.
    pub record: StepRecord,
    /// One for each worker process, if there are several.
    pub workers: Vec<WorkerResult>,
    /// Warnings for the reader, a sentence each.
    pub notes: Vec<String>,
}

/// Applies the loads of one step after the other to their targets.
pub trait Executor {
    /// The executor's name, for reports: "this process", "8 workers", "fio 3.33".
    fn name(&self) -> String;

    /// Lays out what `loads` need, applies them, and clears away what they do not keep.
    ///
    /// # Errors
    /// [`BenchError`] if the load could not begin. What goes wrong from then on is in what it
    /// gives.
    fn apply(
        &mut self,
        loads: &[Workload],
        context: &mut Context<'_>,
    ) -> Result<Applied, BenchError>;
}

/// The engine in this process.
pub struct Local {
    targets: Targets,
}

impl Local {
    /// On `targets`.
    #[must_use]
    pub fn new(targets: impl Into<Targets>) -> Self {
        Self { targets: targets.into() }
    }
}

impl Executor for Local {
    fn name(&self) -> String {
        "this process".to_owned()
    }

    fn apply(
        &mut self,
        loads: &[Workload],
        context: &mut Context<'_>,
    ) -> Result<Applied, BenchError> {
        let mut step = prepare_step(&self.targets, loads, context.control, context.layout)?;
        (context.ready)();
        let record =
            step.run(Instant::now(), context.control, |window| (context.observe)(window))?;
        let shared = |load: &Workload| self.targets.of(load).ok()?.shared_source(load.clients);
        let mut notes: Vec<String> = loads.iter().filter_map(shared).collect();
        notes.extend(mounted::notes(&self.targets, loads));
        Ok(Applied { record, workers: Vec::new(), notes })
    }
}
