//! Making and removing the directory and the files of a run.

use super::calls::Handles;
use super::session::{Session, malformed};
use super::status::{hint, name};
use crate::engine::share::{FileSpec, Role};
use crate::engine::{Layingout, Plan, content};
use crate::error::BenchError;
use crate::workload::{Layout, Workload};
use std::collections::VecDeque;
use weir_nfs::client::padding;
use weir_nfs::v3::wire::{
    CommitArgs, CreateArgs, CreateHow3, DirOpArgs3, Fattr3, FileHandle3, FsInfoArgs, LookupArgs,
    MkdirArgs, RemoveArgs, Res, RmdirArgs, Sattr3, SetattrArgs, StableHow, Status, WriteArgs,
    WriteHead,
};

/// Writes sent ahead while laying out.
const WINDOW: usize = 32;
/// Progress is told at least this often, in bytes.
const PROGRESS_BYTES: u64 = 8 << 20;

type Handle = Box<[u8]>;

/// The largest requests the server takes, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    read_bytes_max: u32,
    pub(super) write_bytes_max: u32,
}

impl Limits {
    /// Refuses blocks that the server would cut short.
    pub(super) fn check(&self, workload: &Workload) -> Result<(), BenchError> {
        let checks = [
            (workload.reads(), "reads", &workload.read_sizes, self.read_bytes_max),
            (workload.writes(), "writes", &workload.write_sizes, self.write_bytes_max),
        ];
        for (wanted, what, sizes, most) in checks {
            let largest = sizes.iter().map(|share| share.bytes).max();
            let largest = largest.unwrap_or(workload.block_bytes);
            if wanted && largest > most {
                return Err(BenchError::Workload(format!(
                    "the server takes {what} of at most {most} bytes, and the block size is \
                     {largest}"
                )));
            }
        }
        Ok(())
    }
}

/// Asks the server for its limits (FSINFO).
pub(super) fn limits(session: &mut Session, root: &[u8]) -> Result<Limits, BenchError> {
    let args = FsInfoArgs { root: FileHandle3(root) };
    session.call(&args, |result| match result {
        Res::Ok(ok) => Ok(Limits { read_bytes_max: ok.rtmax, write_bytes_max: ok.wtmax }),
        Res::Fail(status, _) => Err(refused("asking for the export's limits", status)),
    })?
}

/// Finds or makes the directory; says whether it was made.
pub(super) fn directory(
    session: &mut Session,
    root: &[u8],
    wanted: &str,
) -> Result<(Handle, bool), BenchError> {
    match lookup(session, root, wanted)? {
        Ok((handle, _)) => return Ok((handle, false)),
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

/// Makes one empty file.
pub(super) fn file(
    session: &mut Session,
    directory: &[u8],
    spec: &FileSpec,
) -> Result<Handle, BenchError> {
    let wanted = &spec.name;
    // A file that is to be written starts empty, so that its old layout is gone.
    let attributes = Sattr3 { mode: Some(0o644), size: Some(0), ..Sattr3::NONE };
    let how = CreateHow3::Unchecked(attributes);
    let made =
        session.call(&CreateArgs { location: entry(directory, wanted), how }, |result| {
            match result {
                Res::Ok(ok) => Ok(ok.object.map(|handle| handle.0.into())),
                Res::Fail(status, _) => Err(refused(&format!("creating {wanted}"), status)),
            }
        })??;
    given_or_found(session, directory, wanted, made)
}

/// Gives the file its size, if the layout wants it as a hole. What is to be written comes later.
pub(super) fn extend(
    session: &mut Session,
    handle: &[u8],
    spec: &FileSpec,
    layout: Layout,
) -> Result<(), BenchError> {
    let (wanted, size) = (&spec.name, spec.size);
    if layout != Layout::Sparse || size == 0 {
        return Ok(());
    }
    let args = SetattrArgs {
        object: FileHandle3(handle),
        new_attributes: Sattr3 { size: Some(size), ..Sattr3::NONE },
        guard: None,
    };
    session.call(&args, |result| match result {
        Res::Ok(_) => Ok(()),
        Res::Fail(status, _) => Err(refused(&format!("setting the size of {wanted}"), status)),
    })?
}

/// Finds one file that is there already, and has its size.
pub(super) fn existing(
    session: &mut Session,
    directory: &[u8],
    spec: &FileSpec,
) -> Result<Handle, BenchError> {
    let (wanted, size) = (&spec.name, spec.size);
    let (handle, attributes) = lookup(session, directory, wanted)?
        .map_err(|status| refused(&format!("looking {wanted} up"), status))?;
    let found = attributes.map_or(size, |attributes| attributes.size);
    if found >= size {
        return Ok(handle);
    }
    Err(BenchError::Workload(format!(
        "{wanted} holds {found} bytes and {size} are wanted: run once with --keep and that size, \
         or leave --reuse out"
    )))
}

type Found = Result<(Handle, Option<Fattr3>), Status>;

fn lookup(session: &mut Session, directory: &[u8], wanted: &str) -> Result<Found, BenchError> {
    let args = LookupArgs { what: entry(directory, wanted) };
    session.call(&args, |result| match result {
        Res::Ok(ok) => Ok((ok.object.0.into(), ok.attributes)),
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
        .map(|(handle, _)| handle)
        .map_err(|status| refused(&format!("looking {wanted} up"), status))
}

/// Writes all files of this load from front to back and commits each.
pub(super) fn write(
    session: &mut Session,
    handles: &Handles,
    plan: &Plan,
    block_bytes: u32,
    progress: &mut Layingout<'_>,
) -> Result<(), BenchError> {
    let own = || (0..).zip(plan.files.iter()).filter(|(_, spec)| spec.role == Role::Make);
    let total = own().map(|(_, spec)| spec.size).sum();
    let mut before = 0;
    for (number, spec) in own() {
        let size = spec.size;
        let mut pending = VecDeque::with_capacity(WINDOW);
        let (mut offset, mut told) = (0, 0);
        while offset < size || !pending.is_empty() {
            while offset < size && pending.len() < WINDOW {
                let most = u64::from(block_bytes).min(size - offset);
                let len = u32::try_from(most).unwrap_or(block_bytes);
                let xid = queue_write(session, handles.file(number), (plan, spec), offset, len);
                pending.push_back((xid, len));
                offset += u64::from(len);
            }
            await_write(session, &mut pending, &spec.name)?;
            if offset - told >= PROGRESS_BYTES || offset == size {
                told = offset;
                progress.at(before + offset, total)?;
            }
        }
        before += size;
        commit(session, handles.file(number), &spec.name)?;
    }
    Ok(())
}

fn queue_write(
    session: &mut Session,
    file: FileHandle3<'_>,
    (plan, spec): (&Plan, &FileSpec),
    offset: u64,
    len: u32,
) -> u32 {
    let head = WriteHead { file, offset, count: len, stable: StableHow::Unstable, data_len: len };
    session.queue(|caller, out, xid| {
        caller.write_head(out, xid, &head);
        let start = out.len();
        out.resize(start + usize::try_from(len).unwrap_or(0), 0);
        content::fill(plan, spec, offset, out.get_mut(start..).unwrap_or(&mut []));
        out.extend_from_slice(padding(len));
    })
}

fn await_write(
    session: &mut Session,
    pending: &mut VecDeque<(u32, u32)>,
    wanted: &str,
) -> Result<(), BenchError> {
    let address = session.address();
    let (xid, written) = session.answer(|reply| {
        let result =
            reply.results::<WriteArgs<'_>>().map_err(|error| malformed(address, &error))?;
        match result {
            Res::Ok(ok) => Ok((reply.xid, ok.count)),
            Res::Fail(status, _) => Err(refused(&format!("laying out {wanted}"), status)),
        }
    })?;
    // Replies may come in any order.
    let position = pending.iter().position(|(sent, _)| *sent == xid);
    let Some((_, len)) = position.and_then(|position| pending.remove(position)) else {
        let detail = format!("a reply to nothing that was asked (xid {xid:#010x})");
        return Err(BenchError::Protocol { address, detail });
    };
    if written != len {
        let detail = format!("{written} of {len} bytes written while laying out");
        return Err(BenchError::Protocol { address, detail });
    }
    Ok(())
}

/// Has the server put all data of a file on stable storage.
pub(super) fn commit(
    session: &mut Session,
    file: FileHandle3<'_>,
    wanted: &str,
) -> Result<(), BenchError> {
    session.call(&CommitArgs { file, offset: 0, count: 0 }, |result| match result {
        Res::Ok(_) => Ok(()),
        Res::Fail(status, _) => Err(refused(&format!("committing {wanted}"), status)),
    })?
}

/// Removes the file `wanted`, if it is there.
pub(super) fn remove(
    session: &mut Session,
    directory: &[u8],
    wanted: &str,
) -> Result<(), BenchError> {
    let args = RemoveArgs { object: entry(directory, wanted) };
    let status = session.call(&args, |result| result.status())?;
    if matches!(status, Status::OK | Status::NOENT) {
        return Ok(());
    }
    Err(refused(&format!("removing {wanted}"), status))
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

fn entry<'a>(dir: &'a [u8], wanted: &'a str) -> DirOpArgs3<'a> {
    DirOpArgs3 { dir: FileHandle3(dir), name: wanted.as_bytes() }
}

fn refused(action: &str, status: Status) -> BenchError {
    BenchError::Refused { action: action.to_owned(), status: name(status), hint: hint(status) }
}
