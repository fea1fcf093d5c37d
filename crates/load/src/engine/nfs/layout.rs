//! Making and removing the directory of a run, and writing its files.

use super::ahead::{Answered, FollowUp};
use super::calls::Handles;
use super::session::Session;
use super::status::{hint, name};
use crate::control::Control;
use crate::engine::share::{FileSpec, Role};
use crate::engine::{Layingout, Limit, Limits, Plan, content};
use crate::error::BenchError;
use weir_nfs::client::padding;
use weir_nfs::v3::wire::{
    CommitArgs, CommitOk, DirOpArgs3, FileHandle3, FsInfoArgs, FsStatArgs, GetattrArgs, LookupArgs,
    MkdirArgs, Res, RmdirArgs, Sattr3, StableHow, Status, WriteArgs, WriteHead,
};

/// Progress is told at least this often, in bytes.
const PROGRESS_BYTES: u64 = 8 << 20;

type Handle = Box<[u8]>;

/// The server's limits (FSINFO, RFC 1813 §3.3.19).
///
/// # Errors
/// [`BenchError`] if it can't be asked.
pub fn limits(session: &mut Session, root: &[u8]) -> Result<Limits, BenchError> {
    let args = FsInfoArgs { root: FileHandle3(root) };
    session.call(&args, |result| match result {
        Res::Ok(ok) => Ok(Limits {
            read: Limit::new("rtmax", u64::from(ok.rtmax)),
            write: Limit::new("wtmax", u64::from(ok.wtmax)),
            file: Limit::new("maxfilesize", ok.maxfilesize),
        }),
        Res::Fail(status, _) => Err(refused("asking for the export's limits", status)),
    })?
}

/// Bytes that the caller may still write (FSSTAT); `None` if the server does not tell.
pub fn room(session: &mut Session, root: &[u8]) -> Result<Option<u64>, BenchError> {
    let args = FsStatArgs { root: FileHandle3(root) };
    session.call(&args, |result| match result {
        // A file system of no size is one of which the server knows nothing.
        Res::Ok(ok) if ok.total_bytes > 0 => Some(ok.available_bytes),
        _ => None,
    })
}

/// Asks for the attributes of the directory (GETATTR).
pub(super) fn attributes(session: &mut Session, directory: &[u8]) -> Result<(), BenchError> {
    let args = GetattrArgs { object: FileHandle3(directory) };
    match session.call(&args, |result| result.status())? {
        Status::OK => Ok(()),
        status => Err(refused("asking for the directory's attributes", status)),
    }
}

/// Finds or makes the directory; says whether it was made.
pub(super) fn directory(
    session: &mut Session,
    root: &[u8],
    wanted: &str,
) -> Result<(Handle, bool), BenchError> {
    match lookup(session, root, wanted)? {
        Ok(handle) => return Ok((handle, false)),
        Err(Status::NOENT) => {}
        Err(status) => return Err(refused(&format!("looking {wanted} up"), status)),
    }
    let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::NONE };
    let args = MkdirArgs { location: entry(root, wanted), attributes };
    let made = session.call(&args, |result| match result {
        Res::Ok(ok) => Ok(ok.object.map(|handle| handle.0.into())),
        Res::Fail(status, _) => Err(status),
    })?;
    match made {
        Ok(made) => Ok((given_or_found(session, root, wanted, made)?, true)),
        // Another process was faster.
        Err(Status::EXIST) => Ok((given_or_found(session, root, wanted, None)?, false)),
        Err(status) => Err(refused(&format!("making the directory {wanted}"), status)),
    }
}

fn lookup(
    session: &mut Session,
    directory: &[u8],
    wanted: &str,
) -> Result<Result<Handle, Status>, BenchError> {
    let args = LookupArgs { what: entry(directory, wanted) };
    session.call(&args, |result| match result {
        Res::Ok(ok) => Ok(ok.object.0.into()),
        Res::Fail(status, _) => Err(status),
    })
}

/// A server need not give the handle of what it made (RFC 1813 §3.3.8).
fn given_or_found(
    session: &mut Session,
    directory: &[u8],
    wanted: &str,
    given: Option<Handle>,
) -> Result<Handle, BenchError> {
    if let Some(handle) = given {
        return Ok(handle);
    }
    lookup(session, directory, wanted)?
        .map_err(|status| refused(&format!("looking {wanted} up"), status))
}

/// The next action on file `index`.
enum Next {
    Write { index: usize, offset: u64, len: u32 },
    Commit { index: usize },
}

/// Writes all files of this load, in order and from front to back but for a window of writes ahead,
/// and commits each once all of it is written.
pub(super) fn write(
    session: &mut Session,
    handles: &Handles,
    plan: &Plan,
    block_bytes: u32,
    progress: &mut Layingout<'_>,
) -> Result<(), BenchError> {
    let own = || plan.files.iter().enumerate().filter(|(_, spec)| spec.role == Role::Make);
    let total = own().map(|(_, spec)| spec.size).sum();
    let block_bytes = block_bytes.max(1);
    let in_blocks = |spec: &FileSpec| spec.size.div_ceil(u64::from(block_bytes));
    let mut left: Vec<u64> = plan.files.iter().map(in_blocks).collect();
    let (mut done, mut told, mut verifier) = (0, 0, None);
    let control = progress.control;
    let writes = own().flat_map(|(index, spec)| blocks(index, spec.size, block_bytes));
    session.ahead(
        control,
        writes,
        |session, next| queue(session, handles, plan, next),
        |next, answer| match next {
            Next::Write { index, offset, len } => {
                let (count, shown) = written(&answer, len, name_of(plan, index))?;
                is_same(&mut verifier, shown)?;
                done += u64::from(count);
                if done - told >= PROGRESS_BYTES || done == total {
                    told = done;
                    progress.at(done, total)?;
                }
                if count < len {
                    let (offset, len) = (offset + u64::from(count), len - count);
                    return Ok(FollowUp::More(Next::Write { index, offset, len }));
                }
                let Some(left) = left.get_mut(index) else { return Ok(FollowUp::Done) };
                *left = left.saturating_sub(1);
                Ok(if *left == 0 { FollowUp::More(Next::Commit { index }) } else { FollowUp::Done })
            }
            Next::Commit { index } => {
                let shown = committed(&answer.results::<CommitArgs<'_>>()?, name_of(plan, index))?;
                is_same(&mut verifier, shown)?;
                Ok(FollowUp::Done)
            }
        },
    )?;
    progress.at(done, total)
}

/// The writes that fill a file.
fn blocks(index: usize, size: u64, block_bytes: u32) -> impl Iterator<Item = Next> {
    let block = u64::from(block_bytes);
    (0..size.div_ceil(block)).map(move |number| {
        let offset = number * block;
        let len = u32::try_from(block.min(size - offset)).unwrap_or(block_bytes);
        Next::Write { index, offset, len }
    })
}

fn name_of(plan: &Plan, index: usize) -> &str {
    plan.files.get(index).map_or("", |spec| &spec.name)
}

fn queue(session: &mut Session, handles: &Handles, plan: &Plan, next: &Next) -> u32 {
    match *next {
        Next::Write { index, offset, len } => {
            let file = handles.at(index);
            let head =
                WriteHead { file, offset, count: len, stable: StableHow::Unstable, data_len: len };
            session.queue(|caller, out, xid| {
                caller.write_head(out, xid, &head);
                let start = out.len();
                out.resize(start + usize::try_from(len).unwrap_or(0), 0);
                if let (Some(spec), Some(data)) = (plan.files.get(index), out.get_mut(start..)) {
                    content::fill(plan, spec, offset, data);
                }
                out.extend_from_slice(padding(len));
            })
        }
        Next::Commit { index } => {
            let args = CommitArgs { file: handles.at(index), offset: 0, count: 0 };
            session.queue(|caller, out, xid| caller.call(out, xid, &args))
        }
    }
}

/// The bytes that a WRITE of `len` bytes wrote, of which a server may leave some
/// (RFC 1813 §3.3.7), and its write verifier.
fn written(answer: &Answered<'_>, len: u32, wanted: &str) -> Result<(u32, [u8; 8]), BenchError> {
    match answer.results::<WriteArgs<'_>>()? {
        Res::Ok(ok) if (1..=len).contains(&ok.count) => Ok((ok.count, ok.verifier)),
        Res::Ok(ok) => {
            let detail = format!("{} of {len} bytes written while laying out", ok.count);
            Err(answer.protocol(detail))
        }
        Res::Fail(status, _) => Err(refused(&format!("laying out {wanted}"), status)),
    }
}

/// The files that this process works on, by their place in the list.
pub(super) fn used(plan: &Plan) -> impl DoubleEndedIterator<Item = usize> {
    (0..plan.files.len())
        .filter(|index| u32::try_from(*index).is_ok_and(|number| plan.workload.uses(number)))
}

/// Has the server put all data of `files` on stable storage; `see` gets its write verifiers.
pub(super) fn commit(
    session: &mut Session,
    handles: &Handles,
    plan: &Plan,
    files: &[usize],
    see: &mut dyn FnMut([u8; 8]),
) -> Result<(), BenchError> {
    session.ahead(
        &Control::new(),
        files.iter().map(|index| Next::Commit { index: *index }),
        |session, next| queue(session, handles, plan, next),
        |next, answer| {
            let (Next::Write { index, .. } | Next::Commit { index }) = next;
            see(committed(&answer.results::<CommitArgs<'_>>()?, name_of(plan, index))?);
            Ok(FollowUp::Done)
        },
    )
}

/// The write verifier of a COMMIT.
fn committed<F>(result: &Res<CommitOk, F>, wanted: &str) -> Result<[u8; 8], BenchError> {
    match result {
        Res::Ok(ok) => Ok(ok.verifier),
        Res::Fail(status, _) => Err(refused(&format!("committing {wanted}"), *status)),
    }
}

/// Checks that the server showed one write verifier for all of the layout: with another one it may
/// have lost what was written before.
fn is_same(known: &mut Option<[u8; 8]>, verifier: [u8; 8]) -> Result<(), BenchError> {
    if *known.get_or_insert(verifier) == verifier {
        return Ok(());
    }
    Err(BenchError::Workload(
        "the server restarted while the files were laid out (its write verifier changed), and may \
         have lost data: start again"
            .to_owned(),
    ))
}

/// Removes the directory `wanted`, if it is there; `true` if it can't be because it is not empty.
pub(super) fn remove_directory(
    session: &mut Session,
    parent: &[u8],
    wanted: &str,
) -> Result<bool, BenchError> {
    let args = RmdirArgs { object: entry(parent, wanted) };
    match session.call(&args, |result| result.status())? {
        Status::OK | Status::NOENT => Ok(false),
        Status::NOTEMPTY => Ok(true),
        status => Err(not_removed(wanted, status)),
    }
}

/// The directory `wanted` could not be removed.
pub(super) fn not_removed(wanted: &str, status: Status) -> BenchError {
    refused(&format!("removing the directory {wanted}"), status)
}

pub(super) fn entry<'a>(dir: &'a [u8], wanted: &'a str) -> DirOpArgs3<'a> {
    DirOpArgs3 { dir: FileHandle3(dir), name: wanted.as_bytes() }
}

pub(super) fn refused(action: &str, status: Status) -> BenchError {
    BenchError::Refused { action: action.to_owned(), status: name(status), hint: hint(status) }
}
