//! The path engine: system calls on files of a mounted directory, one thread for each request in
//! flight.

mod buffer;
mod layout;
mod mounts;
mod parallel;
mod transfer;
mod turn;
mod worker;

use super::job::{Job, Made};
use super::share::{FileSpec, Role};
use super::{Layingout, Plan, Worker, check_room};
use crate::control::Control;
use crate::error::BenchError;
use crate::target::PathTarget;
use crate::verify::Checker;
use crate::workload::{Operation, Stability, Workload};
use buffer::AlignedBuffer;
use rustix::fs::{Advice, OFlags, fadvise};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use turn::Shared;

pub use layout::room;

/// Most threads: jobs times depth.
const THREADS_MAX: u64 = 4096;

/// Checks that this process can apply `workload` to `target`.
pub(super) fn check(target: &PathTarget, workload: &Workload) -> Result<(), BenchError> {
    if workload.operation == Operation::Null {
        let message = "a path has no NULL operation; measure it on an nfs:// target";
        return Err(BenchError::Workload(message.to_owned()));
    }
    let threads = own_jobs(workload).count() as u64 * u64::from(workload.depth);
    if threads > THREADS_MAX {
        return Err(BenchError::Workload(format!(
            "a path needs a thread for each request in flight, and {threads} are more than \
             {THREADS_MAX}: use fewer jobs or less depth"
        )));
    }
    let clients = clients(workload).len();
    if clients > target.mounts() {
        let mounts = target.mounts();
        return Err(BenchError::Workload(format!(
            "a mount is one client, so {target} cannot have {clients} clients with {mounts} \
             mount{}: give a mount of the same file system for each client (--mounts), use \
             --clients {mounts}, workers on other machines, or an nfs:// or smb:// target",
            if mounts == 1 { "" } else { "s" }
        )));
    }
    let mounts: Vec<mounts::Mount> =
        target.all().take(clients.max(1)).filter_map(mounts::of).collect();
    mounts.iter().try_for_each(|mount| check_connections(mount, workload.connections))?;
    check_apart(&mounts)
}

/// The connections of a mount are chosen when it is mounted.
fn check_connections(mount: &mounts::Mount, wanted: u32) -> Result<(), BenchError> {
    let (point, kind) = (mount.point.display(), &mount.kind);
    match mount.connections {
        // A load that does not set connections has one.
        _ if wanted == 1 => Ok(()),
        Some(there) if there == wanted => Ok(()),
        Some(there) => Err(BenchError::Workload(format!(
            "the load needs {wanted} connections, but the mount at {point} has {there}: mount it \
             with {}={wanted}, or use --connections {there}",
            if kind.starts_with("nfs") { "nconnect" } else { "max_channels" }
        ))),
        None => Err(BenchError::Workload(format!(
            "the load needs {wanted} connections, but the connections of the mount at {point} \
             ({kind}) are unknown or it has none: use --connections 1, or an nfs:// or smb:// \
             target"
        ))),
    }
}

/// The mount points of `target` with their numbers of connections (`nconnect` of NFS, channels of
/// SMB), as far as the kernel shows them.
#[must_use]
pub fn mounted_connections(target: &PathTarget) -> Vec<(PathBuf, u32)> {
    let mounts = target.all().filter_map(mounts::of);
    mounts.filter_map(|mount| Some((mount.point, mount.connections?))).collect()
}

/// Mounts that share a connection are one client to the server.
fn check_apart(mounts: &[mounts::Mount]) -> Result<(), BenchError> {
    let mut taken: BTreeMap<u16, &mounts::Mount> = BTreeMap::new();
    for mount in mounts {
        for port in &mount.ports {
            if let Some(other) = taken.insert(*port, mount) {
                return Err(BenchError::Workload(format!(
                    "the mounts at {} and {} share a connection (local port {port}), so that they \
                     are one client: mount them with nosharetransport, or from other addresses of \
                     the server",
                    other.point.display(),
                    mount.point.display()
                )));
            }
        }
    }
    Ok(())
}

/// The jobs that this process applies.
fn own_jobs(workload: &Workload) -> impl Iterator<Item = u32> {
    (0..workload.jobs).filter(|job| workload.has_job(*job))
}

/// The clients of these jobs.
fn clients(workload: &Workload) -> BTreeSet<u32> {
    own_jobs(workload).map(|job| job % workload.clients.max(1)).collect()
}

/// The files of a run.
pub(super) struct Files {
    target: PathTarget,
    directory: PathBuf,
    created_directory: bool,
    /// The files that this load made and that need not stay.
    made: Vec<PathBuf>,
}

impl Files {
    /// Makes the directory and the files, as the layout says.
    pub(super) fn prepare(
        target: &PathTarget,
        plan: &Plan,
        progress: &mut Layingout<'_>,
    ) -> Result<Self, BenchError> {
        let workload = &plan.workload;
        for root in target.all() {
            if !std::fs::metadata(root).map_err(|source| at(root, source))?.is_dir() {
                return Err(at(root, io::Error::from(io::ErrorKind::NotADirectory)));
            }
        }
        let directory = target.root.join(&workload.directory);
        let created_directory = match std::fs::create_dir(&directory) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(at(&directory, error)),
        };
        let target = target.clone();
        let mut files = Self { target, directory, created_directory, made: Vec::new() };
        let left = || room(&files.target.root).map(Some);
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
        let numbered = || (0..).zip(plan.files.iter());
        let existing = numbered()
            .filter(|(number, spec)| spec.role == Role::Existing && plan.workload.uses(*number));
        for (_, spec) in existing {
            layout::check(&self.path(spec), spec)?;
        }
        let own: Vec<(PathBuf, &FileSpec)> = numbered()
            .filter(|(_, spec)| spec.role == Role::Make)
            .map(|(_, spec)| (self.path(spec), spec))
            .collect();
        let total = own.iter().map(|(_, spec)| spec.size).sum();
        let (mut done, made) = (0, Mutex::new(Vec::new()));
        let outcome = parallel::each(
            &own,
            |(path, spec), reports| {
                if !spec.keep {
                    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                    made.push(path.clone());
                }
                layout::make(path, spec, plan, |more| reports.done(more))
            },
            |more| {
                done += more;
                progress.at(done, total)
            },
        );
        self.made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome
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
        let mut by_mount: BTreeMap<PathBuf, Arc<worker::OpenFiles>> = BTreeMap::new();
        let mut workers: Vec<Worker> = Vec::new();
        let clients: BTreeMap<u32, u32> = clients(workload).into_iter().zip(0..).collect();
        for index in own_jobs(workload) {
            let client = clients.get(&(index % workload.clients.max(1))).copied().unwrap_or(0);
            let directory = self.target.of_client(client).join(&workload.directory);
            let files = match by_mount.get(&directory) {
                Some(files) => Arc::clone(files),
                None => {
                    let files = Arc::new(open_all(&directory, plan, workload.invalidate)?);
                    by_mount.insert(directory, Arc::clone(&files));
                    files
                }
            };
            let job = Arc::new(Shared::new(Job::new(workload, index, &plan.common)));
            for _ in 0..workload.depth {
                let worker = worker::PathWorker::new(
                    plan.clone(),
                    Arc::clone(&job),
                    index,
                    Arc::clone(&files),
                );
                workers.push(Box::new(move |schedule, halt, recorder| {
                    worker.run(schedule, &halt, recorder)
                }));
            }
        }
        Ok(workers)
    }

    /// The mounts of the clients.
    pub(super) fn client_names(&self, workload: &Workload) -> Vec<String> {
        // Workers deal their own mounts to their own clients.
        if self.target.more.is_empty() || workload.part.is_some_and(|part| part.of > 1) {
            return Vec::new();
        }
        let name = |client| self.target.of_client(client).display().to_string();
        (0..workload.clients).map(name).collect()
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
        let files = open_all(&self.directory, plan, true)?;
        let mut buffer = AlignedBuffer::new(usize::try_from(checker.block_bytes()).unwrap_or(0));
        for (number, block) in blocks {
            if control.stopped() {
                break;
            }
            let Some((_, Some(file))) = files.get(number) else { continue };
            match transfer::read(file, buffer.bytes_mut(), checker.offset(block)) {
                Ok(moved) => {
                    let bytes = buffer.bytes_mut().get(..moved.bytes).unwrap_or(&[]);
                    checker.compare(number, block, bytes);
                }
                Err(error) => checker.unreadable(number, block, &error.to_string()),
            }
        }
        Ok(())
    }

    /// Removes the files that the preparation made, and what jobs left.
    pub(super) fn remove_files(&self, left: &[Made]) -> Result<(), BenchError> {
        let remove = |path: &PathBuf, _: &parallel::Reports<'_>| {
            gone(std::fs::remove_file(path)).map_err(|source| at(path, source))
        };
        parallel::each(&self.made, remove, |_| Ok(()))?;
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

/// Opens the files in `directory` that this process works on, by number; drops them from the page
/// cache if `invalidate`.
fn open_all(
    directory: &Path,
    plan: &Plan,
    invalidate: bool,
) -> Result<worker::OpenFiles, BenchError> {
    let workload = &plan.workload;
    let mut files = Vec::new();
    for (number, spec) in (0..).zip(plan.files.iter()) {
        let path = directory.join(&spec.name);
        if !workload.uses(number) {
            files.push((path, None));
            continue;
        }
        let file = open(&path, workload).map_err(|source| not_opened(&path, source, workload))?;
        if invalidate {
            drop_cached(&file).map_err(|source| at(&path, source))?;
        }
        files.push((path, Some(file)));
    }
    Ok(worker::OpenFiles { directory: directory.to_owned(), files })
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
