//! Several loads that start together: a step of a scenario.

use super::check::check_step;
use super::halt::Halted;
use super::job::{Common, Cursors, FlowGroup};
use super::record::StepRecord;
use super::schedule::nanos;
use super::{Backend, Layingout, Plan, Prepared, drive, nfs, path, reach, run_number, share, smb};
use crate::control::Control;
use crate::engine::Window;
use crate::error::BenchError;
use crate::payload::Payload;
use crate::target::{Target, Targets};
use crate::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_core::rng::mix;

/// Loads that can start at once: connected, permissions checked, files laid out.
///
/// A process that applies all of them calls [`run`](Self::run), and that is all. Where each of
/// several processes takes a part of the loads ([`Workload::part`]), whoever coordinates them
/// leads all through the same stages, and waits for the last before the next:
///
/// 1. [`prepare_step`]: each makes the directory, if it is the first, and its own files.
/// 2. [`attach`](Self::attach): each looks up the files that the others made.
/// 3. [`run`](Self::run), from a start that lies ahead: the load, and reading back.
/// 4. [`finish`](Self::finish), at about the same time: each removes what it made. The one that
///    made the directory removes it, and waits up to ten seconds for the others' files to go.
///
/// Dropping it leaves the files behind.
pub struct PreparedStep {
    loads: Vec<Prepared>,
    attached: bool,
    cleared: bool,
}

/// Connects, checks and lays out what all `loads` need at their targets; as
/// [`prepare_with`](crate::prepare_with). A file that several loads name is made once, with the
/// greatest size that any of them wants.
///
/// # Errors
/// The errors of [`prepare`](crate::prepare); files made before the failure are removed.
pub fn prepare_step(
    targets: &Targets,
    loads: &[Workload],
    control: &Control,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PreparedStep, BenchError> {
    check_step(targets, loads)?;
    let applied = |load: &Workload| Ok(load.applied_to(targets.of(load)?));
    let loads: Vec<Workload> = loads.iter().map(applied).collect::<Result<_, BenchError>>()?;
    let mut step = PreparedStep { loads: Vec::new(), attached: false, cleared: false };
    let (run, payload) = (run_number(), Arc::new(Payload::new()));
    let mut flows: BTreeMap<u32, Arc<FlowGroup>> = BTreeMap::new();
    for (load, files) in loads.iter().zip(share::share(&loads)?) {
        let place = step.loads.len() as u64;
        let plan = Plan {
            workload: Arc::new(load.clone()),
            payload: Arc::clone(&payload),
            files: files.specs.into(),
            keep_directory: files.keep_directory,
            common: Common {
                run: mix(run ^ mix(place)),
                begin_ns: nanos(Duration::from_secs_f64(load.start_delay_s)),
                ledger: files.ledger,
                cursors: Cursors::new(load),
                flow: load.flow.map(|flow| Arc::clone(flows.entry(flow.group).or_default())),
                leftovers: Default::default(),
            },
            run,
        };
        let mut layout = Layingout { control, progress };
        let target = match targets.of(load) {
            Ok(target) => target,
            Err(error) => return Err(step.give_up(error)),
        };
        let backend = match target {
            Target::Nfs(nfs) => nfs::Files::prepare(nfs, &plan, &mut layout).map(Backend::Nfs),
            Target::Smb(target) => {
                smb::Files::prepare(target, &plan, &mut layout).map(Backend::Smb)
            }
            Target::Path(path) => path::Files::prepare(path, &plan, &mut layout).map(Backend::Path),
        };
        match backend {
            Ok(backend) => step.loads.push(Prepared { target: target.clone(), plan, backend }),
            Err(error) => return Err(step.give_up(error)),
        }
    }
    // Nobody else has to be waited for, so that what is missing is told now.
    if !step.is_part()
        && let Err(error) = step.attach()
    {
        return Err(step.give_up(error));
    }
    Ok(step)
}

impl From<Prepared> for PreparedStep {
    /// A step of one load.
    fn from(load: Prepared) -> Self {
        Self { loads: vec![load], attached: false, cleared: false }
    }
}

impl PreparedStep {
    /// Looks up the files that other processes made: all of them must have prepared. A process
    /// that is alone need not call it.
    ///
    /// # Errors
    /// [`BenchError`] if a file is not there, or the target can't be reached. What was made stays
    /// until [`PreparedStep::finish`].
    pub fn attach(&mut self) -> Result<(), BenchError> {
        for load in &mut self.loads {
            load.attach()?;
        }
        self.attached = true;
        Ok(())
    }

    /// Applies all loads from `start` on, which may lie ahead, and waits for the last to end.
    /// `observe` is called for every 100 ms, all loads together. What was written is read back
    /// afterwards, as each workload says; also if the loads ended because a connection was lost,
    /// once the target answers again, which is waited for up to a minute, but not if `control`
    /// stopped the run. A process that is alone then removes the files, as each
    /// workload says; one of several leaves them for [`PreparedStep::finish`].
    ///
    /// # Errors
    /// The errors of [`Prepared::run`].
    pub fn run(
        &mut self,
        start: Instant,
        control: &Control,
        mut observe: impl FnMut(&Window),
    ) -> Result<StepRecord, BenchError> {
        let outcome = self.apply(start, control, &mut observe);
        if self.is_part() {
            return outcome;
        }
        let cleared = self.clear();
        let mut record = outcome?;
        for (failure, record) in cleared.into_iter().zip(&mut record.loads) {
            if let Some(error) = failure {
                record.add_failure("clean-up", &error);
            }
        }
        Ok(record)
    }

    fn apply(
        &mut self,
        start: Instant,
        control: &Control,
        observe: &mut dyn FnMut(&Window),
    ) -> Result<StepRecord, BenchError> {
        if !self.attached {
            self.attach()?;
        }
        let (mut record, halted) = drive::drive(&self.loads, start, control, observe)?;
        if halted == Some(Halted::Broken) {
            reach::await_targets(&self.loads, control);
        }
        for (load, record) in self.loads.iter().zip(&mut record.loads) {
            load.settle(record, halted);
        }
        for (load, record) in self.loads.iter().zip(&mut record.loads) {
            load.check(record, control);
        }
        Ok(record)
    }

    /// Removes what the preparation and the loads made and need not stay, whether there was a run
    /// or not. After the run of a process that is alone there is nothing left to do.
    ///
    /// # Errors
    /// [`BenchError`] if the target can't be reached or refuses; all loads are tried.
    pub fn finish(mut self) -> Result<(), BenchError> {
        if self.cleared {
            return Ok(());
        }
        self.clear().into_iter().flatten().next().map_or(Ok(()), Err)
    }

    /// Ends a step that is given up, like [`PreparedStep::finish`].
    ///
    /// # Errors
    /// The errors of [`PreparedStep::finish`].
    pub fn discard(self) -> Result<(), BenchError> {
        self.finish()
    }

    /// The only load of the step.
    pub(super) fn into_only(mut self) -> Option<Prepared> {
        self.loads.pop()
    }

    /// Does another process apply the rest of the loads?
    fn is_part(&self) -> bool {
        self.loads.iter().any(|load| load.plan.workload.part.is_some())
    }

    /// Removes what was made; the first failure is the one to tell.
    fn give_up(mut self, error: BenchError) -> BenchError {
        drop(self.clear());
        error
    }

    /// Files before directories, because loads share them. Gives what failed, by load.
    fn clear(&mut self) -> Vec<Option<BenchError>> {
        self.cleared = true;
        let mut failures: Vec<Option<BenchError>> =
            self.loads.iter().map(|load| load.remove_files().err()).collect();
        for (load, failure) in self.loads.iter().zip(&mut failures) {
            let removed = load.remove_directory();
            if failure.is_none() {
                *failure = removed.err();
            }
        }
        failures
    }
}
