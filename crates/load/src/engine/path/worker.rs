//! One thread of the path engine: one request at a time.

use super::buffer::AlignedBuffer;
use super::transfer::{self, Moved};
use super::turn::{Shared, is_over, sleep_until};
use crate::engine::halt::Halt;
use crate::engine::job::{After, Answer, Op, Request, created_name, directory_name};
use crate::engine::schedule::{Schedule, nanos};
use crate::engine::usage::UsageMeter;
use crate::engine::{Plan, WorkerOutcome};
use crate::stats::{Recorder, Span};
use crate::verify::{Checker, Ledger};
use rustix::fs::{Access, access};
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Modes that a change of mode sets in turn.
const MODES: [u32; 2] = [0o600, 0o644];

/// The files of a run, open; those that this process has no use for are not.
pub(super) struct OpenFiles {
    pub(super) directory: PathBuf,
    pub(super) files: Vec<(PathBuf, Option<File>)>,
}

impl OpenFiles {
    pub(super) fn get(&self, number: u32) -> Option<&(PathBuf, Option<File>)> {
        self.files.get(usize::try_from(number).ok()?)
    }

    fn path(&self, number: u32) -> io::Result<&PathBuf> {
        let found = self.get(number).map(|(path, _)| path);
        found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn file(&self, number: u32) -> io::Result<&File> {
        let found = self.get(number).and_then(|(_, file)| file.as_ref());
        found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

/// One request in flight of one job.
pub(super) struct PathWorker {
    plan: Plan,
    job: Arc<Shared>,
    index: u32,
    files: Arc<OpenFiles>,
    buffer: AlignedBuffer,
    turn: u64,
}

/// The environment of a thread.
struct Run<'a> {
    schedule: Schedule,
    halt: &'a Halt,
    recorder: Recorder,
    meter: UsageMeter,
    checker: Option<(&'a Ledger, Checker<'a>)>,
    delay_ns: u64,
}

impl PathWorker {
    pub(super) fn new(plan: Plan, job: Arc<Shared>, index: u32, files: Arc<OpenFiles>) -> Self {
        let longest = usize::try_from(plan.workload.request_bytes_max()).unwrap_or(0);
        Self { plan, job, index, files, buffer: AlignedBuffer::new(longest), turn: 0 }
    }

    /// Applies the load until it is over.
    pub(super) fn run(
        mut self,
        schedule: Schedule,
        halt: &Halt,
        recorder: Recorder,
    ) -> WorkerOutcome {
        let plan = self.plan.clone();
        let ledger = plan.common.ledger.as_deref().filter(|_| plan.workload.verify_reads);
        let mut run = Run {
            schedule,
            halt,
            recorder,
            meter: UsageMeter::new(schedule.measure_ns, schedule.end_ns),
            checker: ledger
                .map(|ledger| (ledger, Checker::new(&plan.payload, ledger, plan.run, 0))),
            delay_ns: self.delay_ns(),
        };
        let workload = &plan.workload;
        let regulated = workload.think.is_some()
            || workload.min_rate.is_some()
            || workload.latency_target.is_some();
        loop {
            let now_ns = schedule.now_ns();
            run.meter.tick(now_ns);
            run.recorder.tick(now_ns);
            let Some((op, queued_ns)) = self.job.next(&schedule, halt) else { break };
            let (queued_ns, bytes) = match self.carry_out(op, queued_ns, &mut run) {
                Some((queued_ns, bytes)) => (Some(queued_ns), bytes),
                None => (None, 0),
            };
            let answer = Answer { now_ns: schedule.now_ns(), queued_ns, bytes };
            if regulated && let Some(why) = self.job.freed(&answer) {
                run.recorder.fail(&why);
            }
        }
        let ended_ns = schedule.now_ns().min(schedule.stop_ns);
        let stopped = halt.halted().is_some() && !self.job.job().is_done();
        if let Some(depth) = self.job.job().kept_depth() {
            run.recorder.keep(usize::try_from(self.index).unwrap_or(usize::MAX), depth);
        }
        run.recorder.close(ended_ns);
        let mut usage = run.meter.finish(ended_ns);
        // The time that the thread does not compute it waits.
        usage.waited_ns = usage.span_ns.saturating_sub(nanos(usage.cpu));
        WorkerOutcome {
            notes: run.recorder.finish(),
            usage,
            ended_ns,
            lost: 0,
            unanswered: 0,
            stopped,
            verify: run.checker.map(|(_, checker)| checker.finish()),
            fault: None,
        }
    }

    /// The added distance of the client that the job belongs to.
    fn delay_ns(&self) -> u64 {
        let workload = &self.plan.workload;
        let client = usize::try_from(self.index % workload.clients.max(1)).unwrap_or(0);
        let delays = &workload.client_delays_us;
        let place = client.checked_rem(delays.len());
        place.and_then(|place| delays.get(place)).map_or(0, |us| us.saturating_mul(1000))
    }

    /// An operation and everything that belongs to it, request after request. When the last that
    /// is complete was due, and its bytes; `None` if one failed or was dropped.
    fn carry_out(
        &mut self,
        first: Op,
        mut queued_ns: u64,
        run: &mut Run<'_>,
    ) -> Option<(u64, u64)> {
        let job_number = usize::try_from(self.index).unwrap_or(usize::MAX);
        let (mut op, mut moved, mut continued) = (first, 0, false);
        loop {
            let away = run.schedule.now_ns().saturating_add(run.delay_ns);
            if run.delay_ns > 0 && !sleep_until(away, &run.schedule, run.halt) {
                return self.drop_op(&op);
            }
            let outcome = self.perform(&op.request, run);
            let done_ns = run.schedule.now_ns();
            match outcome {
                Ok(part) => {
                    moved += part.bytes as u64;
                    if part.is_continued() && !continued {
                        continued = true;
                        run.recorder.continues();
                    }
                }
                Err(error) => {
                    run.recorder.fail(&words(&error, self.plan.workload.direct));
                    let absent = error.kind() == io::ErrorKind::NotFound;
                    self.job.job().failed(&op, absent);
                    return None;
                }
            }
            let after = if op.leaves_no_trace() { After::Whole } else { self.job.job().after(&op) };
            let over = is_over(done_ns, &run.schedule, run.halt);
            if !matches!(after, After::Part(_)) {
                let span = Span { queued_ns, done_ns };
                run.recorder.complete(op.kind, job_number, span, moved);
            }
            op = match after {
                After::Whole => return Some((queued_ns, moved)),
                After::Part(next) | After::Then(next, _) if over => return self.drop_op(&next),
                After::Part(next) => next,
                After::Then(next, due) => {
                    (moved, continued) = (0, false);
                    queued_ns = due.unwrap_or(done_ns);
                    if !sleep_until(queued_ns, &run.schedule, run.halt) {
                        return self.drop_op(&next);
                    }
                    next
                }
            };
        }
    }

    /// `op` is not sent any more.
    fn drop_op(&self, op: &Op) -> Option<(u64, u64)> {
        self.job.job().dropped(op);
        None
    }

    fn perform(&mut self, request: &Request, run: &mut Run<'_>) -> io::Result<Moved> {
        match *request {
            Request::Read { file, offset, bytes } => return self.read(file, offset, bytes, run),
            Request::Write { file, offset, bytes, generation } => {
                return self.write(file, offset, bytes, generation);
            }
            Request::Fill { serial, offset, bytes } => return self.fill(serial, offset, bytes),
            Request::Commit { file, .. } => self.files.file(file)?.sync_data()?,
            Request::Null => {}
            Request::Getattr { file } => {
                self.files.file(file)?.metadata()?;
            }
            Request::Access { file } => access(self.files.path(file)?, Access::READ_OK)?,
            Request::Lookup { file } => {
                std::fs::symlink_metadata(self.files.path(file)?)?;
            }
            Request::Setattr { file } => {
                self.turn += 1;
                let [odd, even] = MODES;
                let mode = if self.turn.is_multiple_of(2) { even } else { odd };
                let permissions = Permissions::from_mode(mode);
                std::fs::set_permissions(self.files.path(file)?, permissions)?;
            }
            Request::Create { serial } => {
                let path = self.created_path(serial);
                drop(OpenOptions::new().write(true).create_new(true).open(path)?);
            }
            Request::Remove { serial } => std::fs::remove_file(self.created_path(serial))?,
            Request::Unlink { file } => std::fs::remove_file(self.files.path(file)?)?,
            Request::Mkdir { serial } => std::fs::create_dir(self.directory_path(serial))?,
            Request::Rmdir { serial } => std::fs::remove_dir(self.directory_path(serial))?,
        }
        Ok(Moved::default())
    }

    fn created_path(&self, serial: u64) -> PathBuf {
        self.files.directory.join(created_name(self.index, serial))
    }

    fn directory_path(&self, serial: u64) -> PathBuf {
        self.files.directory.join(directory_name(self.index, serial))
    }

    fn read(
        &mut self,
        number: u32,
        offset: u64,
        bytes: u32,
        run: &mut Run<'_>,
    ) -> io::Result<Moved> {
        let file = self.files.file(number)?;
        let seen =
            run.checker.as_ref().map(|(ledger, _)| ledger.look(number, ledger.block(offset)));
        let buffer = front(&mut self.buffer, bytes);
        let moved = transfer::read(file, buffer, offset)?;
        if let (Some((ledger, checker)), Some(seen)) = (&mut run.checker, seen) {
            let found = buffer.get(..moved.bytes).unwrap_or(&[]);
            checker.compare_in_passing(number, ledger.block(offset), seen, found);
        }
        if moved.bytes < buffer.len() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        Ok(moved)
    }

    fn write(
        &mut self,
        number: u32,
        offset: u64,
        bytes: u32,
        generation: u32,
    ) -> io::Result<Moved> {
        let file = self.files.file(number)?;
        let plan = &self.plan;
        self.turn += 1;
        let buffer = front(&mut self.buffer, bytes);
        if generation > 0 {
            plan.stretch(number, offset, bytes, generation).copy_to(buffer, &plan.payload);
        } else {
            buffer.copy_from_slice(plan.payload.plain(self.turn, buffer.len()));
        }
        transfer::write(file, buffer, offset)
    }

    fn fill(&mut self, serial: u64, offset: u64, bytes: u32) -> io::Result<Moved> {
        let path = self.created_path(serial);
        let buffer = front(&mut self.buffer, bytes);
        buffer.copy_from_slice(self.plan.payload.plain(self.turn, buffer.len()));
        let file = OpenOptions::new().write(true).open(path)?;
        transfer::write(&file, buffer, offset)
    }
}

fn front(buffer: &mut AlignedBuffer, bytes: u32) -> &mut [u8] {
    let len = usize::try_from(bytes).unwrap_or(0);
    buffer.bytes_mut().get_mut(..len).unwrap_or(&mut [])
}

/// The failure as it is counted.
fn words(error: &io::Error, direct: bool) -> String {
    if direct && error.kind() == io::ErrorKind::InvalidInput {
        return "invalid argument: direct I/O may require a larger alignment of sizes and offsets"
            .to_owned();
    }
    error.kind().to_string()
}
