//! Making, finding, writing and removing the files of a run, many compounds ahead.

use super::requests::{self, Names, OpenClose};
use super::session::{Replies, Session, outcome};
use super::status::{is_absent, refused};
use crate::control::Control;
use crate::engine::share::{FileSpec, Role};
use crate::engine::{Layingout, Plan, content};
use crate::error::BenchError;
use crate::workload::Layout;
use weir_smb::fscc::SetInfo;
use weir_smb::wire::{
    AccessMask, CreateAction, CreateDisposition, CreateOptions, FileId, InfoType, Status,
};
use weir_smb_client::{Data, Request, Write};

/// Progress is told at least this often, in bytes.
const PROGRESS_BYTES: u64 = 8 << 20;
/// Files that are open at the same time while they are laid out.
const OPEN_FILES: usize = 64;
/// The number of FileEndOfFileInformation (MS-FSCC §2.4).
const END_OF_FILE: u8 = 20;
/// The number of FileFsFullSizeInformation (MS-FSCC §2.5), and its length.
const FULL_SIZE: u8 = 7;
const FULL_SIZE_BYTES: u32 = 32;

const CLOSE: Request<'static> = Request::Close(FileId::PREVIOUS);

/// A file, by its place in the list of all.
#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) index: usize,
    pub(super) spec: &'a FileSpec,
}

/// All files with their numbers.
pub(super) fn all(plan: &Plan) -> impl Iterator<Item = (File<'_>, u32)> {
    let numbered = plan.files.iter().enumerate().zip(0..);
    numbered.map(|((index, spec), number)| (File { index, spec }, number))
}

/// Finds or makes the directory `path`; says whether it was made.
pub(super) fn directory(session: &mut Session, path: &str) -> Result<bool, BenchError> {
    let name = weir_smb::utf16::to_utf16(path);
    let access = AccessMask::READ_ATTRIBUTES;
    let options = CreateOptions::DIRECTORY_FILE;
    let open = requests::open(&name, access, CreateDisposition::OpenIf, options);
    let replies = session.call(&[open, CLOSE])?;
    match (outcome(&replies), replies.first()) {
        (Status::SUCCESS, Some(reply)) => {
            let created = reply.created().map_err(|error| session.wrong(error))?;
            Ok(created.action == CreateAction::CREATED)
        }
        (status, _) => Err(refused(&format!("making the directory {path}"), status)),
    }
}

/// Bytes that the user may still write, in the directory `path`.
pub(super) fn room(session: &mut Session, path: &str) -> Result<Option<u64>, BenchError> {
    let name = weir_smb::utf16::to_utf16(path);
    let access = AccessMask::READ_ATTRIBUTES;
    let open = requests::open(&name, access, CreateDisposition::Open, CreateOptions::empty());
    let query = Request::QueryInfo {
        file: FileId::PREVIOUS,
        info_type: InfoType::FILESYSTEM,
        class: FULL_SIZE,
        max_output: FULL_SIZE_BYTES,
    };
    let replies = session.call(&[open, query, CLOSE])?;
    let (Status::SUCCESS, Some(reply)) = (outcome(&replies), replies.get(1)) else {
        return Ok(None);
    };
    let answer = reply.output().map_err(|error| session.wrong(error))?;
    Ok(free_bytes(answer))
}

/// The units that the caller may have, times the sectors of one, times the bytes of one.
fn free_bytes(answer: &[u8]) -> Option<u64> {
    let available = u64::from_le_bytes(*answer.get(8..)?.first_chunk()?);
    let sectors = u32::from_le_bytes(*answer.get(24..)?.first_chunk()?);
    let bytes = u32::from_le_bytes(*answer.get(28..)?.first_chunk()?);
    Some(available.saturating_mul(u64::from(sectors)).saturating_mul(u64::from(bytes)))
}

/// Makes the files that this process has to make, and checks those that are there and that it uses.
/// The names of those that need not stay are added to `made`: of all if `all_are_ours`, since
/// nothing else is in the directory; otherwise once the server says that it made the file.
pub(super) fn make(
    session: &mut Session,
    plan: &Plan,
    names: &mut Names,
    (made, all_are_ours): (&mut Vec<String>, bool),
    progress: &mut Layingout<'_>,
) -> Result<(), BenchError> {
    let own = || plan.files.iter().filter(|spec| spec.role == Role::Make);
    if all_are_ours {
        made.extend(own().filter(|spec| !spec.keep).map(|spec| spec.name.clone()));
    }
    let is_written = matches!(plan.workload.layout, Layout::Written { .. });
    let total = own().count() as u64;
    let mut ready = 0;
    let size = |spec: &FileSpec| match plan.workload.layout {
        Layout::Sparse if spec.size > 0 => Some(spec.size),
        _ => None,
    };
    let control = progress.control;
    let wanted = all(plan).filter(|(file, _)| file.spec.role == Role::Make);
    session.ahead(
        control,
        wanted,
        |session, token, (file, _)| {
            let access = AccessMask::WRITE_DATA | AccessMask::READ_ATTRIBUTES;
            let options = CreateOptions::NON_DIRECTORY_FILE;
            let name = names.of(&file.spec.name);
            // A file that is to be written starts empty, so that its old layout is gone.
            let open = requests::open(name, access, CreateDisposition::OverwriteIf, options);
            match size(file.spec) {
                None => session.queue(token, &[open, CLOSE]),
                Some(size) => {
                    let mut info = Vec::new();
                    SetInfo::EndOfFile(size).encode(&mut info);
                    let file = FileId::PREVIOUS;
                    let resize = Request::SetInfo { file, class: END_OF_FILE, info: &info };
                    session.queue(token, &[open, resize, CLOSE])
                }
            }
        },
        |(file, _), replies| {
            let is_there = replies.first().is_some_and(|reply| !reply.status.is_error());
            if is_there && !all_are_ours && !file.spec.keep {
                made.push(file.spec.name.clone());
            }
            match outcome(&replies) {
                Status::SUCCESS => {}
                status => return Err(refused(&format!("creating {}", file.spec.name), status)),
            }
            ready += 1;
            if !is_written {
                progress.at(ready, total)?;
            }
            Ok(None)
        },
    )?;
    // The work may have been stopped between two answers.
    progress.at(if is_written { 0 } else { ready }, total)?;
    let existing = all(plan)
        .filter(|(file, number)| file.spec.role == Role::Existing && plan.workload.uses(*number));
    check(session, names, existing.map(|(file, _)| file))
}

/// Checks that files are there and large enough.
pub(super) fn check<'a>(
    session: &mut Session,
    names: &mut Names,
    files: impl Iterator<Item = File<'a>>,
) -> Result<(), BenchError> {
    let mut malformed = None;
    session.ahead(
        &Control::new(),
        files,
        |session, token, file| session.queue(token, &requests::look_up(names.of(&file.spec.name))),
        |file, replies| {
            let name = &file.spec.name;
            match (outcome(&replies), replies.first().map(super::session::Reply::created)) {
                (Status::SUCCESS, Some(Ok(created))) => {
                    large_enough(file.spec, created.info.end_of_file)?;
                }
                (Status::SUCCESS, Some(Err(error))) => malformed = Some(error),
                (status, _) => return Err(refused(&format!("looking {name} up"), status)),
            }
            Ok(None)
        },
    )?;
    malformed.map_or(Ok(()), |error| Err(session.wrong(error)))
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

/// Opens `files` for `access`. Gives the opens by ascending number of the file.
pub(super) fn open<'a>(
    session: &mut Session,
    names: &mut Names,
    files: impl Iterator<Item = (File<'a>, u32)>,
    access: AccessMask,
) -> Result<Vec<(u32, FileId)>, BenchError> {
    let mut opens = Vec::new();
    let mut malformed = None;
    session.ahead(
        &Control::new(),
        files,
        |session, token, (file, _)| {
            session.queue(token, &[requests::open_file(names.of(&file.spec.name), access)])
        },
        |(file, number), replies| {
            match (outcome(&replies), replies.first().map(super::session::Reply::created)) {
                (Status::SUCCESS, Some(Ok(created))) => opens.push((number, created.file)),
                (Status::SUCCESS, Some(Err(error))) => malformed = Some(error),
                (status, _) => {
                    return Err(refused(&format!("opening {}", file.spec.name), status));
                }
            }
            Ok(None)
        },
    )?;
    if let Some(error) = malformed {
        return Err(session.wrong(error));
    }
    opens.sort_unstable_by_key(|(number, _)| *number);
    Ok(opens)
}

/// A part of a file that is to be written.
struct Block {
    index: usize,
    open: FileId,
    offset: u64,
    len: u32,
}

/// Writes all files of this load, in order and from front to back but for a window of writes ahead,
/// and makes each stable once all of it is written.
pub(super) fn write(
    session: &mut Session,
    names: &mut Names,
    plan: &Plan,
    block_bytes: u32,
    progress: &mut Layingout<'_>,
) -> Result<(), BenchError> {
    let own: Vec<(File<'_>, u32)> =
        all(plan).filter(|(file, _)| file.spec.role == Role::Make && file.spec.size > 0).collect();
    let total = own.iter().map(|(file, _)| file.spec.size).sum();
    let (mut done, mut told) = (0, 0);
    let block_bytes = session.limits().longest_write(block_bytes);
    for some in own.chunks(OPEN_FILES) {
        let opens = open(session, names, some.iter().copied(), AccessMask::WRITE_DATA)?;
        let blocks = some.iter().zip(&opens).flat_map(|((file, _), (_, open))| {
            blocks((file.index, *open), file.spec.size, block_bytes)
        });
        let mut data = Vec::new();
        let control = progress.control;
        session.ahead(
            control,
            blocks,
            |session, token, block| {
                data.resize(usize::try_from(block.len).unwrap_or(0), 0);
                if let Some(spec) = plan.files.get(block.index) {
                    content::fill(plan, spec, block.offset, &mut data);
                }
                let data = Data { here: [&data, &[]], behind: 0 };
                let (file, offset) = (block.open, block.offset);
                session
                    .queue(token, &[Request::Write(Write { file, offset, through: false, data })])
            },
            |block, replies| {
                let count = written(plan, &block, &replies)?;
                done += u64::from(count);
                if done - told >= PROGRESS_BYTES || done == total {
                    told = done;
                    progress.at(done, total)?;
                }
                let (offset, len) = (block.offset + u64::from(count), block.len - count);
                Ok((len > 0).then_some(Block { offset, len, ..block }))
            },
        )?;
        progress.at(done, total)?;
        stable(session, opens.iter().map(|(_, open)| *open))?;
    }
    progress.at(done, total)
}

fn blocks(
    (index, open): (usize, FileId),
    size: u64,
    block_bytes: u32,
) -> impl Iterator<Item = Block> {
    let block = u64::from(block_bytes);
    (0..size.div_ceil(block)).map(move |number| {
        let offset = number * block;
        let len = u32::try_from(block.min(size - offset)).unwrap_or(block_bytes);
        Block { index, open, offset, len }
    })
}

/// The bytes that a WRITE wrote: some of the block, or all.
fn written(plan: &Plan, block: &Block, replies: &Replies) -> Result<u32, BenchError> {
    let name = plan.files.get(block.index).map_or("", |spec| &spec.name);
    match (outcome(replies), replies.first().map(super::session::Reply::written)) {
        (Status::SUCCESS, Some(Ok(count))) if (1..=block.len).contains(&count) => Ok(count),
        (Status::SUCCESS, _) => Err(BenchError::Workload(format!(
            "the server wrote none of {} bytes while {name} was laid out",
            block.len
        ))),
        (status, _) => Err(refused(&format!("laying out {name}"), status)),
    }
}

/// Makes the data of opens stable, and closes them.
fn stable(session: &mut Session, opens: impl Iterator<Item = FileId>) -> Result<(), BenchError> {
    session.ahead(
        &Control::new(),
        opens,
        |session, token, open| {
            session.queue(token, &[Request::Flush(*open), Request::Close(FileId::PREVIOUS)])
        },
        |_, replies| match outcome(&replies) {
            Status::SUCCESS => Ok(None),
            status => Err(refused("making the files stable", status)),
        },
    )
}

/// Has the server put all data of the files that this process uses on stable storage.
pub(super) fn sync(
    session: &mut Session,
    names: &mut Names,
    plan: &Plan,
) -> Result<(), BenchError> {
    let used: Vec<_> = all(plan).filter(|(_, number)| plan.workload.uses(*number)).collect();
    for some in used.chunks(OPEN_FILES) {
        let opens = open(session, names, some.iter().copied(), AccessMask::WRITE_DATA)?;
        stable(session, opens.iter().map(|(_, open)| *open))?;
    }
    Ok(())
}

/// Removes files, and directories where it says true; what is not there is removed already. What
/// the server refuses does not keep the rest: the first refusal is told at the end.
pub(super) fn remove(
    session: &mut Session,
    names: &mut Names,
    wanted: impl Iterator<Item = (String, bool)>,
) -> Result<(), BenchError> {
    let mut refusal = None;
    session.ahead(
        &Control::new(),
        wanted,
        |session, token, (name, is_directory)| {
            let compound: OpenClose<'_> = requests::remove(names.of(name), *is_directory);
            session.queue(token, &compound)
        },
        |(name, _), replies| {
            let status = outcome(&replies);
            if status != Status::SUCCESS && !is_absent(status) {
                refusal.get_or_insert_with(|| refused(&format!("removing {name}"), status));
            }
            Ok(None)
        },
    )?;
    refusal.map_or(Ok(()), Err)
}

/// Removes the directory `path`, if it is there; `true` if it can't be because it is not empty.
pub(super) fn remove_directory(session: &mut Session, path: &str) -> Result<bool, BenchError> {
    let name = weir_smb::utf16::to_utf16(path);
    let options = CreateOptions::DIRECTORY_FILE;
    let open = requests::open(&name, AccessMask::DELETE, CreateDisposition::Open, options);
    // Servers differ in when a directory that is not empty is told: by this request, all tell.
    let info = [1];
    let delete = Request::SetInfo { file: FileId::PREVIOUS, class: DISPOSITION, info: &info };
    match outcome(&session.call(&[open, delete, CLOSE])?) {
        Status::SUCCESS => Ok(false),
        Status::DIRECTORY_NOT_EMPTY => Ok(true),
        status if is_absent(status) => Ok(false),
        status => Err(refused(&format!("removing the directory {path}"), status)),
    }
}

/// The number of FileDispositionInformation (MS-FSCC §2.4).
const DISPOSITION: u8 = 13;
