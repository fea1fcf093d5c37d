//! Making, finding and removing the files of a run, many calls ahead. Their data comes later
//! ([`super::layout::write`]).

use super::ahead::{Answered, FollowUp};
use super::calls::Handles;
use super::layout::{entry, refused};
use super::session::Session;
use crate::control::Control;
use crate::engine::share::{FileSpec, Role};
use crate::engine::{Layingout, Plan};
use crate::error::BenchError;
use crate::workload::Layout;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, FileHandle3, LookupArgs, RemoveArgs, Res, RmdirArgs, Sattr3,
    SetattrArgs, Status,
};

/// A file of the load.
#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    index: usize,
    spec: &'a FileSpec,
}

/// The next thing to ask about a file.
enum Next<'a> {
    Create(File<'a>),
    /// A server need not give the handle of what it made (RFC 1813 §3.3.8).
    FindMade(File<'a>),
    /// The file has to be there, with its size.
    FindExisting(File<'a>),
    Resize(File<'a>, Box<[u8]>),
}

/// Makes the files that this process has to make, and finds those that are there and that it uses.
/// The names of those that need not stay are added to `made`: of all if `all_are_ours`, since
/// nothing else is in the directory; otherwise once the server says that it made the file, for what
/// it refuses to make may be somebody's.
pub(super) fn make(
    session: &mut Session,
    plan: &Plan,
    handles: &mut Handles,
    (made, all_are_ours): (&mut Vec<String>, bool),
    progress: &mut Layingout<'_>,
) -> Result<(), BenchError> {
    if all_are_ours {
        let own = |spec: &&FileSpec| spec.role == Role::Make && !spec.keep;
        made.extend(plan.files.iter().filter(own).map(|spec| spec.name.clone()));
    }
    let calls = files(plan).filter_map(|(file, number)| match file.spec.role {
        Role::Make => Some(Next::Create(file)),
        Role::Existing if plan.workload.uses(number) => Some(Next::FindExisting(file)),
        Role::Existing | Role::Find => None,
    });
    let directory = handles.directory.clone();
    let far = Far::of(plan);
    let mut fresh = Vec::new();
    let names = if all_are_ours { &mut fresh } else { made };
    let mut making = Making { plan, directory, handles, made: names, progress, far };
    making.all(session, calls)?;
    // The work may have been stopped between two answers.
    making.far.tell(making.progress)
}

/// Finds files that others made.
pub(super) fn find<'a>(
    session: &mut Session,
    plan: &'a Plan,
    wanted: Vec<File<'a>>,
    handles: &mut Handles,
) -> Result<(), BenchError> {
    let calls = wanted.into_iter().map(Next::FindExisting);
    let control = Control::new();
    let mut progress = Layingout { control: &control, progress: &mut |_, _| {} };
    let directory = handles.directory.clone();
    let (made, far) = (&mut Vec::new(), Far::of(plan));
    Making { plan, directory, handles, made, progress: &mut progress, far }.all(session, calls)
}

/// The files that this process uses and does not know yet.
pub(super) fn unknown<'a>(plan: &'a Plan, handles: &Handles) -> Vec<File<'a>> {
    files(plan)
        .filter(|(file, number)| !handles.has(file.index) && plan.workload.uses(*number))
        .map(|(file, _)| file)
        .collect()
}

/// All files with their numbers.
fn files(plan: &Plan) -> impl Iterator<Item = (File<'_>, u32)> {
    let numbered = plan.files.iter().enumerate().zip(0..);
    numbered.map(|((index, spec), number)| (File { index, spec }, number))
}

/// The progress of the work.
struct Far {
    ready: u64,
    /// Files, or bytes if data is to be written into them: then nothing of it is done yet.
    total: u64,
    is_written: bool,
}

impl Far {
    fn of(plan: &Plan) -> Self {
        let is_laid_out = matches!(plan.workload.layout, Layout::Written { .. });
        let own = || plan.files.iter().filter(|spec| spec.role == Role::Make);
        let bytes: u64 = own().map(|spec| spec.size).sum();
        let is_written = is_laid_out && bytes > 0;
        let total = if is_written { bytes } else { own().count() as u64 };
        Self { ready: 0, total, is_written }
    }

    fn tell(&self, progress: &mut Layingout<'_>) -> Result<(), BenchError> {
        let done = if self.is_written { 0 } else { self.ready.min(self.total) };
        progress.at(done, self.total)
    }
}

/// Files on their way.
struct Making<'a, 'b> {
    plan: &'a Plan,
    directory: Box<[u8]>,
    handles: &'a mut Handles,
    made: &'a mut Vec<String>,
    progress: &'a mut Layingout<'b>,
    far: Far,
}

impl<'a> Making<'a, '_> {
    /// Makes `calls` and those that follow from them.
    fn all(
        &mut self,
        session: &mut Session,
        calls: impl Iterator<Item = Next<'a>>,
    ) -> Result<(), BenchError> {
        let (control, directory) = (self.progress.control, self.directory.clone());
        session.ahead(
            control,
            calls,
            |session, next| queue(session, &directory, next),
            |next, answer| self.answered(next, &answer),
        )
    }

    fn answered(
        &mut self,
        next: Next<'a>,
        answer: &Answered<'_>,
    ) -> Result<FollowUp<Next<'a>>, BenchError> {
        match next {
            Next::Create(file) => {
                let handle = created(file.spec, answer)?;
                if !file.spec.keep {
                    self.made.push(file.spec.name.clone());
                }
                match handle {
                    Some(handle) => self.found(file, handle),
                    None => Ok(FollowUp::More(Next::FindMade(file))),
                }
            }
            Next::FindMade(file) => {
                let (handle, _) = looked_up(file.spec, answer)?;
                self.found(file, handle)
            }
            Next::FindExisting(file) => {
                let (handle, size) = looked_up(file.spec, answer)?;
                large_enough(file.spec, size.unwrap_or(file.spec.size))?;
                self.ready(file, handle)
            }
            Next::Resize(file, handle) => {
                resized(file.spec, answer)?;
                self.ready(file, handle)
            }
        }
    }

    /// A file that was made has this handle. It gets its size if the layout wants it as a hole;
    /// what is to be written comes later.
    fn found(
        &mut self,
        file: File<'a>,
        handle: Box<[u8]>,
    ) -> Result<FollowUp<Next<'a>>, BenchError> {
        if self.plan.workload.layout == Layout::Sparse && file.spec.size > 0 {
            return Ok(FollowUp::More(Next::Resize(file, handle)));
        }
        self.ready(file, handle)
    }

    fn ready(
        &mut self,
        file: File<'a>,
        handle: Box<[u8]>,
    ) -> Result<FollowUp<Next<'a>>, BenchError> {
        self.handles.set(file.index, handle);
        self.far.ready += 1;
        self.far.tell(self.progress)?;
        Ok(FollowUp::Done)
    }
}

fn queue(session: &mut Session, directory: &[u8], next: &Next<'_>) -> u32 {
    match next {
        Next::Create(file) => {
            // A file that is to be written starts empty, so that its old layout is gone.
            let attributes = Sattr3 { mode: Some(0o644), size: Some(0), ..Sattr3::NONE };
            let location = entry(directory, &file.spec.name);
            let args = CreateArgs { location, how: CreateHow3::Unchecked(attributes) };
            session.queue(|caller, out, xid| caller.call(out, xid, &args))
        }
        Next::FindMade(file) | Next::FindExisting(file) => {
            let args = LookupArgs { what: entry(directory, &file.spec.name) };
            session.queue(|caller, out, xid| caller.call(out, xid, &args))
        }
        Next::Resize(file, handle) => {
            let args = SetattrArgs {
                object: FileHandle3(handle),
                new_attributes: Sattr3 { size: Some(file.spec.size), ..Sattr3::NONE },
                guard: None,
            };
            session.queue(|caller, out, xid| caller.call(out, xid, &args))
        }
    }
}

/// The handle of what was made, if the server gives it.
fn created(spec: &FileSpec, answer: &Answered<'_>) -> Result<Option<Box<[u8]>>, BenchError> {
    match answer.results::<CreateArgs<'_>>()? {
        Res::Ok(ok) => Ok(ok.object.map(|handle| handle.0.into())),
        Res::Fail(status, _) => Err(refused(&format!("creating {}", spec.name), status)),
    }
}

/// A file's handle, and its size if the server tells it.
fn looked_up(
    spec: &FileSpec,
    answer: &Answered<'_>,
) -> Result<(Box<[u8]>, Option<u64>), BenchError> {
    match answer.results::<LookupArgs<'_>>()? {
        Res::Ok(ok) => Ok((ok.object.0.into(), ok.attributes.map(|attributes| attributes.size))),
        Res::Fail(status, _) => Err(refused(&format!("looking {} up", spec.name), status)),
    }
}

fn resized(spec: &FileSpec, answer: &Answered<'_>) -> Result<(), BenchError> {
    match answer.results::<SetattrArgs<'_>>()? {
        Res::Ok(_) => Ok(()),
        Res::Fail(status, _) => Err(refused(&format!("setting the size of {}", spec.name), status)),
    }
}

fn large_enough(spec: &FileSpec, found: u64) -> Result<(), BenchError> {
    let FileSpec { name, size, .. } = spec;
    if found >= *size {
        return Ok(());
    }
    Err(BenchError::Workload(format!(
        "{name} has {found} bytes, but {size} are required: run once with --keep and that size, or \
         omit --reuse"
    )))
}

/// Removes what `names` says from the directory, true for a directory; what is not there is removed
/// already. What the server refuses does not keep the rest: the first refusal is told at the end.
pub(super) fn remove(
    session: &mut Session,
    directory: &[u8],
    names: impl Iterator<Item = (String, bool)>,
) -> Result<(), BenchError> {
    let mut refusal = None;
    session.ahead(
        &Control::new(),
        names,
        |session, (name, is_directory)| {
            let object = entry(directory, name);
            session.queue(|caller, out, xid| {
                if *is_directory {
                    caller.call(out, xid, &RmdirArgs { object });
                } else {
                    caller.call(out, xid, &RemoveArgs { object });
                }
            })
        },
        |(name, is_directory), answer| {
            let status = if is_directory {
                answer.results::<RmdirArgs<'_>>()?.status()
            } else {
                answer.results::<RemoveArgs<'_>>()?.status()
            };
            if !matches!(status, Status::OK | Status::NOENT) {
                let what = if is_directory { "removing the directory" } else { "removing" };
                refusal.get_or_insert_with(|| refused(&format!("{what} {name}"), status));
            }
            Ok(FollowUp::Done)
        },
    )?;
    refusal.map_or(Ok(()), Err)
}
