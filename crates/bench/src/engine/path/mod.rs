//! The path engine: system calls on files of a mounted directory, one thread for each request in
//! flight.

mod buffer;
mod worker;

use super::job::{Job, file_name};
use super::{Layingout, Plan, Worker};
use crate::control::Control;
use crate::error::BenchError;
use crate::verify::Checker;
use crate::workload::{Layout, Operation, Stability};
use buffer::AlignedBuffer;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Most threads: jobs times depth.
const THREADS_MAX: u64 = 4096;

/// The files of a run.
pub(super) struct Files {
    directory: PathBuf,
    created_directory: bool,
    created: Vec<PathBuf>,
}

impl Files {
    /// Makes the directory and the files, as the layout says.
    pub(super) fn prepare(
        root: &Path,
        plan: &Plan,
        layout: &mut Layingout<'_>,
    ) -> Result<Self, BenchError> {
        let workload = &plan.workload;
        if workload.operation == Operation::Null {
            let message = "a path has no NULL operation; measure it on an nfs:// target";
            return Err(BenchError::Workload(message.to_owned()));
        }
        let threads = u64::from(workload.jobs) * u64::from(workload.depth);
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
        let mut files = Self { directory, created_directory, created: Vec::new() };
        match files.lay_out(plan, layout) {
            Ok(()) => Ok(files),
            Err(error) => {
                // The first failure is the one to tell.
                drop(files.clean_up());
                Err(error)
            }
        }
    }

    fn lay_out(&mut self, plan: &Plan, layout: &mut Layingout<'_>) -> Result<(), BenchError> {
        let workload = &plan.workload;
        if !workload.needs_files() {
            return Ok(());
        }
        let size = if workload.operation.moves_data() { workload.file_bytes } else { 0 };
        let total = size * u64::from(workload.files);
        for number in 0..workload.files {
            let path = self.path(number);
            if workload.layout == Layout::Existing {
                check_existing(&path, size)?;
                continue;
            }
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)
                .map_err(|source| at(&path, source))?;
            self.created.push(path.clone());
            let before = u64::from(number) * size;
            match workload.layout {
                Layout::Written { block_bytes } => {
                    write_through(&file, size, block_bytes, plan, |done| {
                        layout.at(before + done, total)
                    })
                    .map_err(|error| error.or_at(&path))?;
                }
                Layout::Existing | Layout::Sparse => {
                    file.set_len(size).map_err(|source| at(&path, source))?;
                }
            }
        }
        Ok(())
    }

    /// One closure for each request in flight.
    pub(super) fn workers(&self, plan: &Plan) -> Result<Vec<Worker>, BenchError> {
        let workload = &plan.workload;
        let files = Arc::new(self.open(plan)?);
        let mut workers: Vec<Worker> = Vec::new();
        for index in 0..workload.jobs {
            let job = Job::new(workload, index, plan.run, plan.ledger.clone());
            let job = Arc::new(Mutex::new(job));
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

    fn open(&self, plan: &Plan) -> Result<worker::OpenFiles, BenchError> {
        let workload = &plan.workload;
        let mut flags = OFlags::empty();
        if workload.direct {
            flags |= OFlags::DIRECT;
        }
        match workload.stability {
            Stability::Unstable => {}
            Stability::DataSync => flags |= OFlags::DSYNC,
            Stability::FileSync => flags |= OFlags::SYNC,
        }
        let mut files = Vec::new();
        let count = if workload.needs_files() { workload.files } else { 0 };
        for number in 0..count {
            let path = self.path(number);
            let file = OpenOptions::new()
                .read(true)
                .write(workload.operation.writes())
                .custom_flags(flags.bits().cast_signed())
                .open(&path)
                .map_err(|source| at(&path, source))?;
            files.push((path, file));
        }
        Ok(worker::OpenFiles { directory: self.directory.clone(), files })
    }

    /// Reads `blocks` back and has them compared, until all are or the run is stopped.
    pub(super) fn verify(
        &self,
        plan: &Plan,
        checker: &mut Checker<'_>,
        blocks: Vec<(u32, u64)>,
        control: &Control,
    ) -> Result<(), BenchError> {
        let files = self.open(plan)?;
        let mut buffer = AlignedBuffer::new(usize::try_from(checker.block_bytes()).unwrap_or(0));
        for (number, block) in blocks {
            if control.stopped() {
                break;
            }
            let Some((_, file)) = files.get(number) else { continue };
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

    /// Removes what the preparation made.
    pub(super) fn clean_up(&self) -> Result<(), BenchError> {
        for path in &self.created {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at(path, error));
                }
                _ => {}
            }
        }
        if self.created_directory {
            std::fs::remove_dir(&self.directory).map_err(|source| at(&self.directory, source))?;
        }
        Ok(())
    }

    fn path(&self, number: u32) -> PathBuf {
        self.directory.join(file_name(number))
    }
}

fn check_existing(path: &Path, size: u64) -> Result<(), BenchError> {
    let found = std::fs::metadata(path).map_err(|source| at(path, source))?.len();
    if found >= size {
        return Ok(());
    }
    Err(BenchError::Workload(format!(
        "{} holds {found} bytes and {size} are wanted: run once with --keep and that size, or \
         leave --reuse out",
        path.display()
    )))
}

/// Either kind of failure while laying out.
enum LayoutError {
    Io(io::Error),
    Stopped(BenchError),
}

impl LayoutError {
    fn or_at(self, path: &Path) -> BenchError {
        match self {
            Self::Io(source) => at(path, source),
            Self::Stopped(error) => error,
        }
    }
}

fn write_through(
    file: &File,
    size: u64,
    block_bytes: u32,
    plan: &Plan,
    mut progress: impl FnMut(u64) -> Result<(), BenchError>,
) -> Result<(), LayoutError> {
    let mut offset = 0;
    while offset < size {
        let len = u64::from(block_bytes).min(size - offset);
        let data = plan.payload.plain(offset / 4096, usize::try_from(len).unwrap_or(0));
        file.write_all_at(data, offset).map_err(LayoutError::Io)?;
        offset += len;
        progress(offset).map_err(LayoutError::Stopped)?;
    }
    Ok(())
}

/// Reads until the buffer is full or the file ends.
fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..)
        && !rest.is_empty()
    {
        match file.read_at(rest, offset + filled as u64)? {
            0 => break,
            len => filled += len,
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
        io::ErrorKind::NotFound => "; name an existing directory, or leave --reuse out",
        io::ErrorKind::NotADirectory => "; name a directory",
        _ => "",
    };
    BenchError::Path { path: path.to_owned(), source, hint }
}
