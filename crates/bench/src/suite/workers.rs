//! Steps applied by several worker processes together.

use super::{Applied, Context, Executor};
use crate::cluster::{Clock, Connected, Coordinator, Patience};
use weir_load::error::BenchError;
use weir_load::target::{Target, Targets};
use weir_load::workload::Workload;
use weir_results::Machine;

/// Workers and what they load.
pub struct Workers {
    coordinator: Coordinator,
    targets: Targets,
}

impl Workers {
    /// These workers, on `targets`.
    ///
    /// # Errors
    /// [`BenchError::Local`] if no thread can be started.
    pub fn new(
        targets: impl Into<Targets>,
        connected: Vec<Connected>,
        patience: Patience,
    ) -> Result<Self, BenchError> {
        let coordinator = Coordinator::new(connected, Clock::new(), patience)?;
        Ok(Self { coordinator, targets: targets.into() })
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
        let mut applied = self.coordinator.apply(&self.targets, loads, context)?;
        let workers = u32::try_from(self.coordinator.len()).unwrap_or(u32::MAX);
        let shared = |load: &Workload| shared(self.targets.of(load).ok()?, load, workers);
        applied.notes.extend(loads.iter().filter_map(shared));
        Ok(applied)
    }
}

/// A sentence if clients of a worker share its address.
fn shared(target: &Target, load: &Workload, workers: u32) -> Option<String> {
    let has_sources = match target {
        Target::Nfs(nfs) => !nfs.sources.is_empty(),
        Target::Smb(smb) => !smb.sources.is_empty(),
        Target::Path(_) => return None,
    };
    if has_sources || load.clients <= workers {
        return target.shared_source(if has_sources { load.clients } else { 1 });
    }
    target.shared_source(load.clients)?;
    Some(format!(
        "{} simulated clients share the addresses of {workers} workers: each has its own \
         connections, ports and machine name, but a server that distinguishes clients by address \
         sees fewer of them",
        load.clients
    ))
}
