//! Making and removing the directory and the files of a run.

use super::calls::Handles;
use super::session::{Session, malformed};
use super::status::{hint, name};
use crate::engine::job::file_name;
use crate::engine::{Layingout, Plan};
use crate::error::BenchError;
use crate::payload::Payload;
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
        let operation = workload.operation;
        let checks = [
            (operation.reads(), "reads", self.read_bytes_max),
            (operation.writes(), "writes", self.write_bytes_max),
        ];
        for (wanted, what, most) in checks {
            if wanted && workload.block_bytes > most {
                let block = workload.block_bytes;
                return Err(BenchError::Workload(format!(
                    "the server takes {what} of at most {most} bytes, and the block size is \
                     {block}"
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
        Res::Ok(ok) => Ok((ok.object.map(|handle| handle.0.into()), true)),
        // Another process was faster.
        Res::Fail(Status::EXIST, _) => Ok((None, false)),
        Res::Fail(status, _) => Err(refused(&format!("making the directory {wanted}"), status)),
    })??;
    let (given, made) = made;
    Ok((given_or_found(session, root, wanted, given)?, made))
}

/// Finds or makes one file of `size` bytes. What is to be written comes later.
pub(super) fn file(
    session: &mut Session,
    directory: &[u8],
    wanted: &str,
    plan: &Plan,
    size: u64,
) -> Result<Handle, BenchError> {
    let layout = plan.workload.layout;
    if layout == Layout::Existing {
        return existing(session, directory, wanted, size);
    }
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
    let handle = given_or_found(session, directory, wanted, made)?;
    if layout == Layout::Sparse && size > 0 {
        set_size(session, &handle, wanted, size)?;
    }
    Ok(handle)
}

fn set_size(
    session: &mut Session,
    handle: &[u8],
    wanted: &str,
    size: u64,
) -> Result<(), BenchError> {
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

fn existing(
    session: &mut Session,
    directory: &[u8],
    wanted: &str,
    size: u64,
) -> Result<Handle, BenchError> {
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

/// Writes all files from front to back and commits each.
pub(super) fn write(
    session: &mut Session,
    handles: &Handles,
    plan: &Plan,
    size: u64,
    block_bytes: u32,
    progress: &mut Layingout<'_>,
) -> Result<(), BenchError> {
    let count = plan.workload.files;
    let total = size * u64::from(count);
    for number in 0..count {
        let before = size * u64::from(number);
        let mut pending = VecDeque::with_capacity(WINDOW);
        let (mut offset, mut told) = (0, 0);
        while offset < size || !pending.is_empty() {
            while offset < size && pending.len() < WINDOW {
                let most = u64::from(block_bytes).min(size - offset);
                let len = u32::try_from(most).unwrap_or(block_bytes);
                let xid = queue_write(session, handles.file(number), plan, offset, len);
                pending.push_back((xid, len));
                offset += u64::from(len);
            }
            await_write(session, &mut pending, number)?;
            if offset - told >= PROGRESS_BYTES || offset == size {
                told = offset;
                progress.at(before + offset, total)?;
            }
        }
        commit(session, handles.file(number), number)?;
    }
    Ok(())
}

fn queue_write(
    session: &mut Session,
    file: FileHandle3<'_>,
    plan: &Plan,
    offset: u64,
    len: u32,
) -> u32 {
    let head = WriteHead { file, offset, count: len, stable: StableHow::Unstable, data_len: len };
    let start = Payload::plain_start(offset / 4096);
    let data = plan.payload.slice(start, usize::try_from(len).unwrap_or(0));
    session.queue(|caller, out, xid| {
        caller.write_head(out, xid, &head);
        out.extend_from_slice(data);
        out.extend_from_slice(padding(len));
    })
}

fn await_write(
    session: &mut Session,
    pending: &mut VecDeque<(u32, u32)>,
    number: u32,
) -> Result<(), BenchError> {
    let address = session.address();
    let (xid, written) = session.answer(|reply| {
        let result =
            reply.results::<WriteArgs<'_>>().map_err(|error| malformed(address, &error))?;
        match result {
            Res::Ok(ok) => Ok((reply.xid, ok.count)),
            Res::Fail(status, _) => {
                Err(refused(&format!("laying out {}", file_name(number)), status))
            }
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

fn commit(session: &mut Session, file: FileHandle3<'_>, number: u32) -> Result<(), BenchError> {
    session.call(&CommitArgs { file, offset: 0, count: 0 }, |result| match result {
        Res::Ok(_) => Ok(()),
        Res::Fail(status, _) => Err(refused(&format!("committing {}", file_name(number)), status)),
    })?
}

/// Removes the files, and the directory if this run made it.
pub(super) fn remove(
    session: &mut Session,
    root: &[u8],
    plan: &Plan,
    handles: &Handles,
    with_directory: bool,
) -> Result<(), BenchError> {
    if plan.workload.layout != Layout::Existing {
        for wanted in &handles.names {
            let args = RemoveArgs { object: entry(&handles.directory, wanted) };
            let status = session.call(&args, |result| result.status())?;
            if !matches!(status, Status::OK | Status::NOENT) {
                return Err(refused(&format!("removing {wanted}"), status));
            }
        }
    }
    if with_directory {
        let wanted = &plan.workload.directory;
        let args = RmdirArgs { object: entry(root, wanted) };
        let status = session.call(&args, |result| result.status())?;
        if !status.is_ok() {
            return Err(refused(&format!("removing the directory {wanted}"), status));
        }
    }
    Ok(())
}

fn entry<'a>(dir: &'a [u8], wanted: &'a str) -> DirOpArgs3<'a> {
    DirOpArgs3 { dir: FileHandle3(dir), name: wanted.as_bytes() }
}

fn refused(action: &str, status: Status) -> BenchError {
    BenchError::Refused { action: action.to_owned(), status: name(status), hint: hint(status) }
}
