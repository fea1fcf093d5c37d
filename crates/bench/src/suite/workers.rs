//! Steps applied by several worker processes together.

use super::{Applied, Context, Executor};
use crate::cluster::{Clock, Connected, Coordinator, Patience};
use crate::results::Machine;
use weir_load::error::BenchError;
use weir_load::target::Target;
use weir_load::workload::Workload;

/// Workers and what they load.
pub struct Workers {
    coordinator: Coordinator,
    target: Target,
}

impl Workers {
    /// These workers, on `target`.
    ///
    /// # Errors
    /// [`BenchError::Local`] if no thread can be started.
    pub fn new(
        target: Target,
        connected: Vec<Connected>,
        patience: Patience,
    ) -> Result<Self, BenchError> {
        let coordinator = Coordinator::new(connected, Clock::new(), patience)?;
        Ok(Self { coordinator, target })
    }

    /// The workers' machines, for the environment of results.
    #[must_use]
    pub fn machines(&self) -> Vec<Machine> {
        self.coordinator.machines()
    }
}

impl Executor for Workers {
    fn name(&self) -> String {
        match self.coordinator.len() {
            1 => "1 worker".to_owned(),
            several => format!("{several} workers"),
        }
    }

    fn apply(
        &mut self,
        loads: &[Workload],
        context: &mut Context<'_>,
    ) -> Result<Applied, BenchError> {
        self.coordinator.apply(&self.target, loads, context)
    }
}
