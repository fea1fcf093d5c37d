//! The path engine: system calls on files of a mounted directory, one thread for each request in
//! flight.

mod buffer;
mod layout;
mod turn;
mod worker;

use super::job::{Job, Made};
use super::share::{FileSpec, Role};
use super::{Layingout, Plan, Worker, check_room};
use crate::control::Control;
use crate::error::BenchError;
use crate::verify::Checker;
use crate::workload::{Operation, Stability, Workload};
use buffer::AlignedBuffer;
use rustix::fs::{Advice, OFlags, fadvise};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use turn::Shared;

pub use layout::room;

/// Most threads: jobs times depth.
const THREADS_MAX: u64 = 4096;

/// The files of a run.
pub(super) struct Files {
    directory: PathBuf,
    created_directory: bool,
    /// The files that this load made and that need not stay.
    made: Vec<PathBuf>,
}

impl Files {
    /// Makes the directory and the files, as the layout says.
    pub(super) fn prepare(
        root: &Path,
        plan: &Plan,
        progress: &mut Layingout<'_>,
    ) -> Result<Self, BenchError> {
        let workload = &plan.workload;
        if workload.operation == Operation::Null {
            let message = "a path has no NULL operation; measure it on an nfs:// target";
            return Err(BenchError::Workload(message.to_owned()));
        }
        let jobs = (0..workload.jobs).filter(|job| workload.has_job(*job)).count() as u64;
        let threads = jobs * u64::from(workload.depth);
        if threads > THREADS_MAX {
            return Err(BenchError::Workload(format!(
                "a path needs a thread for each request in flight, and {threads} are more than \
                 {THREADS_MAX}: use fewer jobs or less depth"
            )));
        }
        if !std::fs::metadata(root).map_err(|source| at(root, source))?.is_dir() {
            return Err(at(root, io::Error::from(io::ErrorKind::NotADirectory)));
        }
        let directory = root.join(&workload.directory);
        let created_directory = match std::fs::create_dir(&directory) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(at(&directory, error)),
        };
        let mut files = Self { directory, created_directory, made: Vec::new() };
        let left = || room(root).map(Some);
        let fits = if created_directory { check_room(workload, left) } else { Ok(()) };
        match fits.and_then(|()| files.lay_out(plan, progress)) {
            Ok(()) => Ok(files),
            Err(error) => {
                // The first failure is the one to tell.
                drop(files.remove_files(&[]));
                drop(files.remove_directory(plan, false));
                Err(error)
            }
        }
    }

    fn lay_out(&mut self, plan: &Plan, progress: &mut Layingout<'_>) -> Result<(), BenchError> {
        let own = plan.files.iter().filter(|spec| spec.role == Role::Make);
        let total = own.map(|spec| spec.size).sum();
        let mut before = 0;
        for (number, spec) in (0..).zip(plan.files.iter()) {
            let path = self.path(spec);
            match spec.role {
                Role::Make => {
                    if !spec.keep {
                        self.made.push(path.clone());
                    }
                    layout::make(&path, spec, plan, |done| progress.at(before + done, total))?;
                    before += spec.size;
                }
                Role::Existing if plan.workload.uses(number) => layout::check(&path, spec)?,
                Role::Existing | Role::Find => {}
            }
        }
        Ok(())
    }

    /// Checks that the files are there that others made.
    pub(super) fn attach(&self, plan: &Plan) -> Result<(), BenchError> {
        for (number, spec) in (0..).zip(plan.files.iter()) {
            if spec.role == Role::Find && plan.workload.uses(number) {
                layout::check(&self.path(spec), spec)?;
            }
        }
        Ok(())
    }

    /// One closure for each request in flight.
    pub(super) fn workers(&self, plan: &Plan) -> Result<Vec<Worker>, BenchError> {
        let workload = &plan.workload;
        let files = Arc::new(self.open(plan, workload.invalidate)?);
        let mut workers: Vec<Worker> = Vec::new();
        for index in (0..workload.jobs).filter(|job| workload.has_job(*job)) {
            let job = Arc::new(Shared::new(Job::new(workload, index, &plan.common)));
            for _ in 0..workload.depth {
                let worker = worker::PathWorker::new(
                    plan.clone(),
                    Arc::clone(&job),
                    index,
                    Arc::clone(&files),
                );
                workers.push(Box::new(move |schedule, control, recorder| {
                    worker.run(schedule, &control, recorder)
                }));
            }
        }
        Ok(workers)
    }

    /// Opens the files that this process works on, by number; drops them from the page cache if
    /// `invalidate`.
    fn open(&self, plan: &Plan, invalidate: bool) -> Result<worker::OpenFiles, BenchError> {
        let workload = &plan.workload;
        let mut files = Vec::new();
        for (number, spec) in (0..).zip(plan.files.iter()) {
            let path = self.path(spec);
            if !workload.uses(number) {
                files.push((path, None));
                continue;
            }
            let file =
                open(&path, workload).map_err(|source| not_opened(&path, source, workload))?;
            if invalidate {
                drop_cached(&file).map_err(|source| at(&path, source))?;
            }
            files.push((path, Some(file)));
        }
        Ok(worker::OpenFiles { directory: self.directory.clone(), files })
    }

    /// Puts all data of the files that this process works on, on stable storage.
    pub(super) fn sync(&self, plan: &Plan) -> Result<(), BenchError> {
        for (number, spec) in (0..).zip(plan.files.iter()) {
            if plan.workload.uses(number) {
                let path = self.path(spec);
                let synced = File::open(&path).and_then(|file| file.sync_all());
                synced.map_err(|source| at(&path, source))?;
            }
        }
        Ok(())
    }

    /// Reads `blocks` back and has them compared, until all are or the run is stopped. What the
    /// page cache holds is dropped before: it would only show what this machine has written.
    pub(super) fn verify(
        &self,
        plan: &Plan,
        checker: &mut Checker<'_>,
        blocks: Vec<(u32, u64)>,
        control: &Control,
    ) -> Result<(), BenchError> {
        let files = self.open(plan, true)?;
        let mut buffer = AlignedBuffer::new(usize::try_from(checker.block_bytes()).unwrap_or(0));
        for (number, block) in blocks {
            if control.stopped() {
                break;
            }
            let Some((_, Some(file))) = files.get(number) else { continue };
            match read_full(file, buffer.bytes_mut(), checker.offset(block)) {
                Ok(len) => {
                    let bytes = buffer.bytes_mut().get(..len).unwrap_or(&[]);
                    checker.compare(number, block, bytes);
                }
                Err(error) => checker.unreadable(number, block, &error.to_string()),
            }
        }
        Ok(())
    }

    /// Removes the files that the preparation made, and what jobs left.
    pub(super) fn remove_files(&self, left: &[Made]) -> Result<(), BenchError> {
        for path in &self.made {
            gone(std::fs::remove_file(path)).map_err(|source| at(path, source))?;
        }
        for made in left {
            let path = self.directory.join(made.name());
            let removed = match made.directory {
                true => std::fs::remove_dir(&path),
                false => std::fs::remove_file(&path),
            };
            gone(removed).map_err(|source| at(&path, source))?;
        }
        Ok(())
    }

    /// Removes the directory if the preparation made it and it need not stay.
    pub(super) fn remove_directory(&self, plan: &Plan, keep: bool) -> Result<(), BenchError> {
        if keep || !self.created_directory {
            return Ok(());
        }
        let refused = |source| at(&self.directory, source);
        let occupied = super::remove_patiently(plan.workload.part.is_some(), || {
            match gone(std::fs::remove_dir(&self.directory)) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(true),
                other => other.map(|()| false).map_err(refused),
            }
        })?;
        if occupied {
            return Err(refused(io::Error::from(io::ErrorKind::DirectoryNotEmpty)));
        }
        Ok(())
    }

    fn path(&self, spec: &FileSpec) -> PathBuf {
        self.directory.join(&spec.name)
    }
}

/// Ignores that a file is gone, because it need not be removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn open(path: &Path, workload: &Workload) -> io::Result<File> {
    let mut flags = OFlags::empty();
    if workload.direct {
        flags |= OFlags::DIRECT;
    }
    match workload.stability {
        Stability::Unstable => {}
        Stability::DataSync => flags |= OFlags::DSYNC,
        Stability::FileSync => flags |= OFlags::SYNC,
    }
    OpenOptions::new()
        .read(true)
        .write(workload.writes())
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// Drops what the page cache holds of `file`, which it can only once it is written out.
fn drop_cached(file: &File) -> io::Result<()> {
    file.sync_data()?;
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

fn not_opened(path: &Path, source: io::Error, workload: &Workload) -> BenchError {
    if workload.direct && source.kind() == io::ErrorKind::InvalidInput {
        let hint = "; this file system does not support direct I/O: omit --direct";
        return BenchError::Path { path: path.to_owned(), source, hint };
    }
    at(path, source)
}

/// Reads until the buffer is full or the file ends.
fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..)
        && !rest.is_empty()
    {
        match file.read_at(rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(len) => filled += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn at(path: &Path, source: io::Error) -> BenchError {
    let hint = match source.kind() {
        io::ErrorKind::PermissionDenied => "; run as a user that may write there",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; choose a smaller --size or fewer --files"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; the file system is read-only: measure reads with --reuse, or mount it for writing"
        }
        io::ErrorKind::NotFound => "; name an existing directory, or omit --reuse",
        io::ErrorKind::NotADirectory => "; name a directory",
        _ => "",
    };
    BenchError::Path { path: path.to_owned(), source, hint }
}
