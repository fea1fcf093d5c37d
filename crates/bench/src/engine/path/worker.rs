//! One thread of the path engine: one request at a time.

use super::buffer::AlignedBuffer;
use crate::control::Control;
use crate::engine::job::{Job, Request};
use crate::engine::schedule::Schedule;
use crate::engine::usage::UsageMeter;
use crate::engine::{Outcome, Plan};
use crate::payload::BlockName;
use crate::stats::{Recorder, Span};
use crate::verify::{STAMP_BYTES, stamp};
use rustix::fs::{Access, access};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The files of a run, open.
pub(super) struct OpenFiles {
    pub(super) directory: PathBuf,
    pub(super) files: Vec<(PathBuf, File)>,
}

impl OpenFiles {
    pub(super) fn get(&self, number: u32) -> Option<&(PathBuf, File)> {
        self.files.get(usize::try_from(number).ok()?)
    }

    fn expect(&self, number: u32) -> io::Result<&(PathBuf, File)> {
        self.get(number).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

/// One request in flight of one job.
pub(super) struct PathWorker {
    plan: Plan,
    job: Arc<Mutex<Job>>,
    index: u32,
    files: Arc<OpenFiles>,
    buffer: AlignedBuffer,
    turn: u64,
}

impl PathWorker {
    pub(super) fn new(plan: Plan, job: Arc<Mutex<Job>>, index: u32, files: Arc<OpenFiles>) -> Self {
        let buffer = AlignedBuffer::new(usize::try_from(plan.workload.block_bytes).unwrap_or(0));
        Self { plan, job, index, files, buffer, turn: 0 }
    }

    /// Applies the load until it is over.
    pub(super) fn run(
        mut self,
        schedule: Schedule,
        control: &Control,
        mut recorder: Recorder,
    ) -> Outcome {
        let mut meter = UsageMeter::new(schedule.measure_ns);
        let job_number = usize::try_from(self.index).unwrap_or(usize::MAX);
        let mut previous = None;
        let mut queued_ns = schedule.now_ns();
        loop {
            meter.tick(queued_ns);
            recorder.tick(queued_ns);
            let ending = queued_ns >= schedule.end_ns || control.stopped();
            let next = {
                let mut job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
                job.next(previous.as_ref(), ending)
            };
            let Some(request) = next else { break };
            let outcome = self.perform(&request);
            let done_ns = schedule.now_ns();
            match outcome {
                Ok(bytes) => {
                    self.settle(&request);
                    let span = Span { queued_ns, done_ns };
                    recorder.complete(request.kind(), job_number, span, bytes);
                    previous = Some(request);
                }
                Err(error) => {
                    recorder.fail(&error.kind().to_string());
                    previous = None;
                }
            }
            queued_ns = done_ns;
        }
        let ended_ns = queued_ns.min(schedule.end_ns);
        recorder.close(ended_ns);
        let mut usage = meter.finish(ended_ns);
        // What the thread does not compute it waits for.
        usage.waited_ns = usage.span_ns.saturating_sub(super::super::schedule::nanos(usage.cpu));
        Outcome { notes: recorder.finish(), usage, ended_ns, lost: 0, unanswered: 0, fault: None }
    }

    fn settle(&self, request: &Request) {
        if let (Request::Write { file, block, .. }, Some(ledger)) = (request, &self.plan.ledger) {
            ledger.done(*file, *block);
        }
    }

    fn perform(&mut self, request: &Request) -> io::Result<u64> {
        match *request {
            Request::Read { file, block } => self.read(file, block),
            Request::Write { file, block, generation } => self.write(file, block, generation),
            Request::Commit { file } => self.files.expect(file)?.1.sync_data().map(|()| 0),
            Request::Null => Ok(0),
            Request::Getattr { file } => self.files.expect(file)?.1.metadata().map(|_| 0),
            Request::Access { file } => {
                access(&self.files.expect(file)?.0, Access::READ_OK)?;
                Ok(0)
            }
            Request::Lookup { file } => {
                std::fs::symlink_metadata(&self.files.expect(file)?.0).map(|_| 0)
            }
            Request::Create { serial } => OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(self.created_path(serial))
                .map(|_| 0),
            Request::Remove { serial } => {
                std::fs::remove_file(self.created_path(serial)).map(|()| 0)
            }
        }
    }

    fn created_path(&self, serial: u64) -> PathBuf {
        self.files.directory.join(crate::engine::job::created_name(self.index, serial))
    }

    fn read(&mut self, file: u32, block: u64) -> io::Result<u64> {
        let offset = block * u64::from(self.plan.workload.block_bytes);
        let file = &self.files.expect(file)?.1;
        let buffer = self.buffer.bytes_mut();
        let len = file.read_at(buffer, offset)?;
        if len < buffer.len() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        Ok(len as u64)
    }

    fn write(&mut self, number: u32, block: u64, generation: u32) -> io::Result<u64> {
        let offset = block * u64::from(self.plan.workload.block_bytes);
        let file = &self.files.expect(number)?.1;
        self.turn += 1;
        let buffer = self.buffer.bytes_mut();
        if generation > 0 {
            let name = BlockName { run: self.plan.run, file: number, offset, generation };
            if let Some((head, body)) = buffer.split_at_mut_checked(STAMP_BYTES) {
                head.copy_from_slice(&stamp(name));
                body.copy_from_slice(self.plan.payload.body(name, body.len()));
            }
        } else {
            buffer.copy_from_slice(self.plan.payload.plain(self.turn, buffer.len()));
        }
        let len = file.write_at(buffer, offset)?;
        if len < buffer.len() {
            return Err(io::Error::from(io::ErrorKind::WriteZero));
        }
        Ok(len as u64)
    }
}
