//! Applying load: preparation, the run with its workers, verification and clean-up, the same for
//! every engine.
//!
//! An engine brings the files ([`nfs`], [`path`]) and one closure per worker thread; this module
//! starts them, watches them, and makes one result of their notes.

mod collect;
mod drive;
mod foreign;
mod job;
mod nfs;
mod path;
mod record;
mod schedule;
mod step;
mod usage;

use crate::control::Control;
use crate::error::BenchError;
use crate::payload::Payload;
use crate::rng::mix;
use crate::stats::result::RunResult;
use crate::stats::{Notes, Recorder};
use crate::target::Target;
use crate::verify::{Checker, Ledger};
use crate::workload::Workload;
use schedule::Schedule;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use usage::Usage;

pub use collect::{Phase, Window};
pub(crate) use foreign::Foreign;
pub(crate) use job::file_name;
pub(crate) use nfs::{Session, mount, status_name};
pub use record::{Record, StepRecord};
pub use step::{PreparedStep, prepare_step};

/// A run that can start at once: connected, permissions checked, files laid out.
///
/// Dropping it without running leaves the files behind; [`Prepared::discard`] removes them.
pub struct Prepared {
    target: Target,
    plan: Plan,
    backend: Backend,
}

/// What all workers of a run share.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) workload: Arc<Workload>,
    pub(crate) payload: Arc<Payload>,
    ledger: Option<Arc<Ledger>>,
    /// Tells this run's blocks and names from those of others.
    pub(crate) run: u64,
}

enum Backend {
    Nfs(nfs::Files),
    Path(path::Files),
}

/// One worker, ready to go.
type Worker = Box<dyn FnOnce(Schedule, Control, Recorder) -> Outcome + Send>;

/// What one worker brings home.
struct Outcome {
    notes: Notes,
    usage: Usage,
    /// When it stopped sending.
    ended_ns: u64,
    lost: u64,
    unanswered: u64,
    /// What ended it before its time.
    fault: Option<BenchError>,
}

/// Connects, checks and lays out what `workload` needs at `target`.
///
/// # Errors
/// [`BenchError`] says what to do: a workload that contradicts itself, no connection, no such
/// export, no permission, no space. Files made before the failure are removed.
pub fn prepare(target: &Target, workload: &Workload) -> Result<Prepared, BenchError> {
    prepare_with(target, workload, &Control::new(), &mut |_, _| {})
}

/// As [`prepare`]; tells `progress` how many bytes of how many are laid out, and gives up when
/// `control` is told to stop.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_with(
    target: &Target,
    workload: &Workload,
    control: &Control,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Prepared, BenchError> {
    workload.check()?;
    let ledger = match workload.verify {
        Some(_) => {
            let ledger = Ledger::new(workload.files, workload.blocks());
            Some(Arc::new(ledger.map_err(BenchError::Workload)?))
        }
        None => None,
    };
    let plan = Plan {
        workload: Arc::new(workload.clone()),
        payload: Arc::new(Payload::new()),
        ledger,
        run: run_number(),
    };
    let mut layout = Layingout { control, progress };
    let backend = match target {
        Target::Nfs(nfs) => Backend::Nfs(nfs::Files::prepare(nfs, &plan, &mut layout)?),
        Target::Path(path) => Backend::Path(path::Files::prepare(path, &plan, &mut layout)?),
    };
    Ok(Prepared { target: target.clone(), plan, backend })
}

/// Whom to tell how far the laying out is, and who may stop it.
struct Layingout<'a> {
    control: &'a Control,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl Layingout<'_> {
    /// Tells how far it is; fails if it was stopped.
    fn at(&mut self, done: u64, total: u64) -> Result<(), BenchError> {
        (self.progress)(done, total);
        if self.control.stopped() {
            return Err(BenchError::Workload("stopped while laying out the files".to_owned()));
        }
        Ok(())
    }
}

fn run_number() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    mix(schedule::nanos(time) ^ (u64::from(std::process::id()) << 32))
}

impl Prepared {
    /// Applies the load and waits for the end. `observe` is called for every 100 ms. Files are
    /// verified and removed afterwards, as the workload says.
    ///
    /// # Errors
    /// [`BenchError`] if the load can't begin: the machine can't start the workers, or they can't
    /// connect. What goes wrong from then on is no error but in the result
    /// ([`RunResult::is_clean`]): failed operations, lost connections, a target that verification
    /// or clean-up can't reach.
    pub fn run(
        self,
        control: &Control,
        observe: impl FnMut(&Window),
    ) -> Result<RunResult, BenchError> {
        let name = self.plan.workload.name.clone();
        let record = PreparedStep::from(self).run(Instant::now(), control, observe)?;
        record.results(&name).map(|(total, _)| total).ok_or(BenchError::Worker)
    }

    /// Runs on a thread of its own, so that several loads can be applied at the same time.
    ///
    /// # Errors
    /// [`BenchError::Local`] if no thread can be started.
    pub fn spawn(
        self,
        control: Control,
        observe: impl FnMut(&Window) + Send + 'static,
    ) -> Result<RunHandle, BenchError> {
        let own = control.clone();
        let thread = Builder::new()
            .name("bench-run".to_owned())
            .spawn(move || self.run(&own, observe))
            .map_err(|source| BenchError::Local { what: "starting a thread", source })?;
        Ok(RunHandle { control, thread })
    }

    /// Removes what the preparation made, without a run.
    ///
    /// # Errors
    /// [`BenchError`] if the target can't be reached or refuses.
    pub fn discard(self) -> Result<(), BenchError> {
        self.clean_up()
    }

    fn clean_up(&self) -> Result<(), BenchError> {
        self.backend.clean_up(&self.plan)
    }

    fn workers(&self) -> Result<Vec<Worker>, BenchError> {
        match &self.backend {
            Backend::Nfs(files) => files.workers(&self.plan),
            Backend::Path(files) => files.workers(&self.plan),
        }
    }

    /// Reads back what was written, if that was asked for, and notes what it finds.
    fn check(&self, record: &mut Record, control: &Control) {
        let (Some(scope), Some(ledger)) = (self.plan.workload.verify, &self.plan.ledger) else {
            return;
        };
        let blocks = crate::verify::choose(ledger, scope);
        let mut checker = Checker::new(&self.plan, ledger, blocks.len() as u64);
        let outcome = match &self.backend {
            Backend::Nfs(files) => files.verify(&mut checker, blocks, control),
            Backend::Path(files) => files.verify(&self.plan, &mut checker, blocks, control),
        };
        record.verify = Some(checker.finish());
        if let Err(error) = outcome {
            record.add_failure("verification", &error);
        }
    }
}

impl Backend {
    fn clean_up(&self, plan: &Plan) -> Result<(), BenchError> {
        if plan.workload.keep {
            return Ok(());
        }
        match self {
            Self::Nfs(files) => files.clean_up(plan),
            Self::Path(files) => files.clean_up(),
        }
    }

    fn client_names(&self) -> Vec<String> {
        match self {
            Self::Nfs(files) => files.client_names(),
            Self::Path(_) => Vec::new(),
        }
    }

    fn connections(&self, workload: &Workload) -> u64 {
        match self {
            Self::Nfs(_) => u64::from(workload.clients) * u64::from(workload.connections),
            Self::Path(_) => 0,
        }
    }
}

/// A run on a thread of its own.
pub struct RunHandle {
    control: Control,
    thread: JoinHandle<Result<RunResult, BenchError>>,
}

impl RunHandle {
    /// The hand on it.
    #[must_use]
    pub const fn control(&self) -> &Control {
        &self.control
    }

    /// Has it ended?
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// As [`Prepared::run`].
    pub fn wait(self) -> Result<RunResult, BenchError> {
        self.thread.join().map_err(|_| BenchError::Worker)?
    }
}
