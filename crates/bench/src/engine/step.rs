//! Several loads on one target that start together: a step of a scenario.

use super::record::StepRecord;
use super::{Prepared, drive, prepare_with};
use crate::control::Control;
use crate::engine::Window;
use crate::error::BenchError;
use crate::target::Target;
use crate::workload::Workload;
use std::time::Instant;

/// Loads that can start at once: connected, permissions checked, files laid out.
pub struct PreparedStep {
    loads: Vec<Prepared>,
}

/// Connects, checks and lays out what all `loads` need at `target`; as
/// [`prepare_with`](crate::prepare_with).
///
/// # Errors
/// As [`prepare`](crate::prepare); what was made before the failure is removed.
pub fn prepare_step(
    target: &Target,
    loads: &[Workload],
    control: &Control,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PreparedStep, BenchError> {
    let mut step = PreparedStep { loads: Vec::with_capacity(loads.len()) };
    for load in loads {
        match prepare_with(target, load, control, progress) {
            Ok(prepared) => step.loads.push(prepared),
            Err(error) => {
                // The first failure is the one to tell.
                drop(step.discard());
                return Err(error);
            }
        }
    }
    Ok(step)
}

impl From<Prepared> for PreparedStep {
    /// A step of one load.
    fn from(load: Prepared) -> Self {
        Self { loads: vec![load] }
    }
}

impl PreparedStep {
    /// Applies all loads from `start` on, which may lie ahead, and waits for the last to end.
    /// `observe` is called for every 100 ms, all loads together. Files are verified and removed
    /// afterwards, as each workload says.
    ///
    /// # Errors
    /// As [`Prepared::run`].
    pub fn run(
        self,
        start: Instant,
        control: &Control,
        mut observe: impl FnMut(&Window),
    ) -> Result<StepRecord, BenchError> {
        let loaded = drive::drive(&self.loads, start, control, &mut observe);
        let mut record = loaded.inspect_err(|_| {
            for load in &self.loads {
                drop(load.clean_up());
            }
        })?;
        for (load, record) in self.loads.iter().zip(&mut record.loads) {
            load.check(record, control);
        }
        for (load, record) in self.loads.iter().zip(&mut record.loads) {
            if let Err(error) = load.clean_up() {
                record.add_failure("clean-up", &error);
            }
        }
        Ok(record)
    }

    /// Removes what the preparation made, without a run.
    ///
    /// # Errors
    /// [`BenchError`] if the target can't be reached or refuses; all loads are tried.
    pub fn discard(self) -> Result<(), BenchError> {
        let mut outcome = Ok(());
        for load in self.loads {
            let removed = load.discard();
            if outcome.is_ok() {
                outcome = removed;
            }
        }
        outcome
    }
}
