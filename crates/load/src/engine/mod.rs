//! Applying load: preparation, the run with its workers, verification and clean-up, the same for
//! every engine.
//!
//! An engine brings the files (`nfs`, `path`) and one closure per worker thread; this module
//! starts them, watches them, and makes one result of their notes.

mod check;
mod collect;
mod content;
mod drive;
mod foreign;
mod halt;
mod job;
mod limits;
mod net;
mod nfs;
mod path;
mod reach;
mod received;
mod record;
mod schedule;
mod share;
mod smb;
mod step;
mod usage;

use crate::control::Control;
use crate::error::BenchError;
use crate::payload::Payload;
use crate::stats::result::{RunResult, VerifyResult};
use crate::stats::{Notes, Recorder};
use crate::target::Target;
use crate::verify::Checker;
use crate::workload::{Layout, Workload};
use halt::{Halt, Halted};
use job::Common;
use schedule::Schedule;
use share::FileSpec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use usage::Usage;
use weir_core::rng::mix;
use weir_core::units::Bytes;

pub use check::{check_sources, check_step};
pub use collect::{Phase, Window};
pub use foreign::Foreign;
pub use limits::{Limit, Limits};
pub use net::Waits;
pub use nfs::{FollowUp, Session, limits as nfs_limits, mount, room, status_name};
pub use path::{mounted_connections, room as path_room};
pub use record::{Record, StepRecord};
pub use smb::{SmbReplies, SmbReply, SmbSession, SmbTop, smb_outcome};
pub use step::{PreparedStep, prepare_step};

/// Longest time that the part that made the directory waits for the others to clear their files
/// away.
const PARTS_PATIENCE: Duration = Duration::from_secs(10);
const PARTS_LOOK: Duration = Duration::from_millis(50);

/// A run that can start at once: connected, permissions checked, files laid out.
///
/// Dropping it without running leaves the files behind; [`Prepared::discard`] removes them.
pub struct Prepared {
    target: Target,
    plan: Plan,
    backend: Backend,
}

/// The state that all workers of a run share.
#[derive(Clone)]
pub struct Plan {
    /// The load.
    pub workload: Arc<Workload>,
    /// The bytes that it writes.
    pub payload: Arc<Payload>,
    /// The files, by number.
    files: Arc<[FileSpec]>,
    /// The directory stays when the step is over.
    keep_directory: bool,
    common: Common,
    /// Tells the blocks of this step from those of others.
    pub run: u64,
}

enum Backend {
    Nfs(nfs::Files),
    Smb(smb::Files),
    Path(path::Files),
}

/// One worker, ready to go.
type Worker = Box<dyn FnOnce(Schedule, Halt, Recorder) -> WorkerOutcome + Send>;

/// The outcome of one worker.
struct WorkerOutcome {
    notes: Notes,
    usage: Usage,
    /// Time at which it stopped sending.
    ended_ns: u64,
    lost: u64,
    unanswered: u64,
    /// The load was ended before the jobs of the worker were done.
    stopped: bool,
    /// The result of comparing in passing.
    verify: Option<VerifyResult>,
    /// The fault that ended it before its time.
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

/// Prepares like [`prepare`]; tells `progress` how much of how much is laid out, in bytes, or in
/// files where nothing is written, and gives up when `control` is told to stop.
///
/// # Errors
/// The errors of [`prepare`].
pub fn prepare_with(
    target: &Target,
    workload: &Workload,
    control: &Control,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Prepared, BenchError> {
    let targets = target.clone().into();
    let step = prepare_step(&targets, std::slice::from_ref(workload), control, progress)?;
    step.into_only().ok_or(BenchError::Worker)
}

/// The observer of the laying out, and the control that may stop it.
struct Layingout<'a> {
    control: &'a Control,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl Layingout<'_> {
    /// Tells how far it is, in bytes that are written, or in files where nothing is; fails if it
    /// was stopped.
    fn at(&mut self, done: u64, total: u64) -> Result<(), BenchError> {
        (self.progress)(done, total);
        if self.control.stopped() {
            return Err(BenchError::Workload("stopped while laying out the files".to_owned()));
        }
        Ok(())
    }
}

/// Refuses files that would fill the target: that harms everybody who uses it. `room` asks for the
/// bytes that may still be written, `None` if nobody knows.
///
/// # Errors
/// [`BenchError::Workload`] says how much is missing; and the errors of `room`.
pub fn check_room(
    workload: &Workload,
    room: impl FnOnce() -> Result<Option<u64>, BenchError>,
) -> Result<(), BenchError> {
    if !matches!(workload.layout, Layout::Written { .. }) || !workload.needs_files() {
        return Ok(());
    }
    let wanted = workload.size_needed().saturating_mul(u64::from(workload.files));
    match room()? {
        Some(room) if room < wanted => Err(BenchError::Workload(format!(
            "the files need {}, but the target has only {} free: use fewer or smaller files \
             (--files, --size), or make room",
            Bytes(wanted),
            Bytes(room)
        ))),
        _ => Ok(()),
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
        self.run_from(Instant::now(), control, observe)
    }

    fn run_from(
        self,
        start: Instant,
        control: &Control,
        observe: impl FnMut(&Window),
    ) -> Result<RunResult, BenchError> {
        let name = self.plan.workload.name.clone();
        let mut step = PreparedStep::from(self);
        let record = step.run(start, control, observe);
        let finished = step.finish();
        let record = record?;
        finished?;
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
        self.spawn_from(Instant::now(), control, observe)
    }

    /// Runs like [`Prepared::spawn`], with the load beginning at `start`, which may lie ahead. The
    /// times in the results of loads with the same start can be compared with each other.
    ///
    /// # Errors
    /// The errors of [`Prepared::spawn`].
    pub fn spawn_from(
        self,
        start: Instant,
        control: Control,
        observe: impl FnMut(&Window) + Send + 'static,
    ) -> Result<RunHandle, BenchError> {
        let own = control.clone();
        let thread = Builder::new()
            .name("bench-run".to_owned())
            .spawn(move || self.run_from(start, &own, observe))
            .map_err(|source| BenchError::Local { what: "starting a thread", source })?;
        Ok(RunHandle { control, thread })
    }

    /// Removes what the preparation made, without a run.
    ///
    /// # Errors
    /// [`BenchError`] if the target can't be reached or refuses.
    pub fn discard(self) -> Result<(), BenchError> {
        PreparedStep::from(self).finish()
    }

    /// Looks up the files that others laid out.
    fn attach(&mut self) -> Result<(), BenchError> {
        match &mut self.backend {
            Backend::Nfs(files) => files.attach(&self.plan),
            Backend::Smb(files) => files.attach(&self.plan),
            Backend::Path(files) => files.attach(&self.plan),
        }
    }

    fn workers(&self) -> Result<Vec<Worker>, BenchError> {
        match &self.backend {
            Backend::Nfs(files) => files.workers(&self.plan),
            Backend::Smb(files) => files.workers(&self.plan),
            Backend::Path(files) => files.workers(&self.plan),
        }
    }

    /// Completes the load before its files are read back. `halted` is the reason if the load was
    /// ended before its time.
    fn settle(&self, record: &mut Record, halted: Option<Halted>) {
        if self.plan.workload.end_sync && self.plan.workload.writes() {
            self.sync(record);
        }
        match &self.backend {
            Backend::Nfs(files) => {
                // The load can't have seen a restart after its last reply.
                let ask = record.connections.lost > 0 || self.plan.workload.verify.is_some();
                for (what, count) in files.lost_writes(&self.plan, ask) {
                    record.fail_often(what, count);
                }
            }
            // SMB has no write verifier: a server that ends a connection may have restarted.
            Backend::Smb(_) if halted == Some(Halted::Broken) => {
                if let Some(ledger) = &self.plan.common.ledger {
                    ledger.expose();
                }
            }
            Backend::Smb(_) | Backend::Path(_) => {}
        }
    }

    fn sync(&self, record: &mut Record) {
        let synced = match &self.backend {
            Backend::Nfs(files) => files.sync(&self.plan),
            Backend::Smb(files) => files.sync(&self.plan),
            Backend::Path(files) => files.sync(&self.plan),
        };
        if let Err(error) = synced {
            record.add_failure("sync", &error);
        }
    }

    /// Reads back what was written, if that was asked for, and notes what it finds.
    fn check(&self, record: &mut Record, control: &Control) {
        let (Some(scope), Some(ledger)) = (self.plan.workload.verify, &self.plan.common.ledger)
        else {
            return;
        };
        let own = |number: &u32| {
            let is_free = || ledger.file(*number).is_some_and(crate::verify::FileLedger::take);
            self.plan.workload.uses(*number) && is_free()
        };
        let files: Vec<u32> = (0..ledger.files()).filter(own).collect();
        let blocks = crate::verify::choose(ledger, &files, scope);
        let plan = &self.plan;
        let mut checker = Checker::new(&plan.payload, ledger, plan.run, blocks.len() as u64);
        let outcome = match &self.backend {
            // A login alone may take as long as somebody who stops a run waits for.
            _ if control.stopped() => Ok(()),
            Backend::Nfs(files) => files.verify(&mut checker, blocks, control),
            Backend::Smb(files) => files.verify(plan, &mut checker, &blocks, control),
            Backend::Path(files) => files.verify(plan, &mut checker, blocks, control),
        };
        record.add_verify(checker.finish());
        match outcome {
            // A stop is no failure of the target.
            Ok(()) | Err(BenchError::Stopped { .. }) => {}
            Err(error) => record.add_failure("verification", &error),
        }
    }

    /// Removes the files that the preparation made, and what jobs left.
    fn remove_files(&self) -> Result<(), BenchError> {
        let left = self.plan.common.leftovers.take();
        match &self.backend {
            Backend::Nfs(files) => files.remove_files(&self.plan, &left),
            Backend::Smb(files) => files.remove_files(&self.plan, &left),
            Backend::Path(files) => files.remove_files(&left),
        }
    }

    /// Removes the directory, if the preparation made it and it need not stay. Other processes may
    /// have files in it for a while if the load is one of several parts.
    fn remove_directory(&self) -> Result<(), BenchError> {
        let keep = self.plan.keep_directory;
        match &self.backend {
            Backend::Nfs(files) => files.remove_directory(&self.plan, keep),
            Backend::Smb(files) => files.remove_directory(&self.plan, keep),
            Backend::Path(files) => files.remove_directory(&self.plan, keep),
        }
    }
}

impl Backend {
    fn client_names(&self, workload: &Workload) -> Vec<String> {
        match self {
            Self::Nfs(files) => files.client_names(),
            Self::Smb(files) => files.client_names(),
            Self::Path(files) => files.client_names(workload),
        }
    }

    /// The number of connections to each address.
    fn addresses(&self, workload: &Workload) -> BTreeMap<String, u64> {
        match self {
            Self::Nfs(files) => files.addresses(workload),
            Self::Smb(files) => files.addresses(workload),
            Self::Path(_) => BTreeMap::new(),
        }
    }
}

/// Tries `remove` for as long as the directory is not empty and files may still go from it by
/// themselves. `remove` says whether it is not empty.
fn remove_patiently(
    may_empty_itself: bool,
    mut remove: impl FnMut() -> Result<bool, BenchError>,
) -> Result<bool, BenchError> {
    let patience = Instant::now() + PARTS_PATIENCE;
    loop {
        let occupied = remove()?;
        if !occupied || !may_empty_itself || Instant::now() >= patience {
            return Ok(occupied);
        }
        std::thread::sleep(PARTS_LOOK);
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
    /// The errors of [`Prepared::run`].
    pub fn wait(self) -> Result<RunResult, BenchError> {
        self.thread.join().map_err(|_| BenchError::Worker)?
    }
}
