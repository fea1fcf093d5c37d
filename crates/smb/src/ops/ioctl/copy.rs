//! FSCTL_SRV_REQUEST_RESUME_KEY, FSCTL_SRV_COPYCHUNK and FSCTL_SRV_COPYCHUNK_WRITE (MS-SMB2
//! §3.3.5.15.5, §3.3.5.15.6): copies that do not go through the client.
//!
//! Each chunk is a READ and a WRITE: under locks as they are, and with permits of their own from
//! the volume's contract. It is read whole before it is written, so that chunks of one file may
//! overlap. The key of a source is its id, which nobody but the session can use.

use crate::fscc::{
    Chunk, CopyChunks, CopyError, CopyResult, RESUME_KEY_BYTES, ResumeKey, encode_resume_key,
};
use crate::host::{Host, Permit};
use crate::le::Reader;
use crate::open::Open;
use crate::ops::Failure;
use crate::ops::access::WRITES;
use crate::ops::error::status;
use crate::wire::{AccessMask, FileId, Status};
use alloc::vec::Vec;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::store::Stability;
use weir_core::{FileKind, OpClass, Shared, Store};
use weir_state::{Mode, Range};

/// Bytes of the result of a copy.
const RESULT_BYTES: usize = 12;

/// Appends the key by which a copy names its source.
pub(super) fn resume_key<O>(
    open: &Open<O>,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<Status, Failure> {
    if max < RESUME_KEY_BYTES {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let id = open.id;
    let mut key = ResumeKey::default();
    let (persistent, rest) = key.split_at_mut(8);
    persistent.copy_from_slice(&id.persistent.to_le_bytes());
    if let Some(volatile) = rest.get_mut(..8) {
        volatile.copy_from_slice(&id.volatile.to_le_bytes());
    }
    encode_resume_key(&key, out);
    Ok(Status::SUCCESS)
}

/// The source that a key names.
fn source<H: Host>(host: &H, key: &ResumeKey) -> Option<H::Open> {
    let mut key = Reader::new(key);
    let (persistent, volatile) = (key.u64().ok()?, key.u64().ok()?);
    host.find_source(FileId { persistent, volatile })
}

/// Copies, and appends the result. Beyond the bounds of a copy these are the result, and the status
/// is INVALID_PARAMETER; where a chunk fails, its status comes with the result of those before it.
pub(super) async fn copy<H: Host>(
    host: &H,
    (target, readable): (&H::Open, bool),
    input: &[u8],
    max: usize,
    out: &mut Vec<u8>,
) -> Result<Status, Failure> {
    if max < RESULT_BYTES {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let copy = match CopyChunks::decode(input) {
        Ok(copy) => copy,
        Err(CopyError::Short) => return Err(Status::INVALID_PARAMETER.into()),
        Err(CopyError::Bounds) => {
            CopyResult::BOUNDS.encode(out);
            return Ok(Status::INVALID_PARAMETER);
        }
    };
    let source = source(host, &copy.key).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
    may_copy::<H>(&source, target, readable)?;
    let mut result = CopyResult { chunks: 0, chunk_bytes: 0, bytes: 0 };
    let mut ended = Status::SUCCESS;
    for chunk in copy.chunks() {
        match one(host, &source, target, chunk).await {
            Ok(written) if written == chunk.length => {
                result.chunks = result.chunks.saturating_add(1);
                result.bytes = result.bytes.saturating_add(written);
            }
            Ok(written) => {
                result.chunk_bytes = written;
                result.bytes = result.bytes.saturating_add(written);
                ended = Status::DISK_FULL;
                break;
            }
            Err(status) => {
                ended = status;
                break;
            }
        }
    }
    result.encode(out);
    Ok(ended)
}

/// The access that both opens must have. Who may run a file may read it.
fn may_copy<H: Host>(source: &H::Open, target: &H::Open, readable: bool) -> Result<(), Status> {
    if source.kind != FileKind::Regular || target.kind != FileKind::Regular {
        return Err(Status::INVALID_DEVICE_REQUEST);
    }
    let reads = AccessMask::READ_DATA | AccessMask::EXECUTE;
    let unreadable = readable && !target.granted.contains(AccessMask::READ_DATA);
    if !source.granted.intersects(reads) || !target.granted.intersects(WRITES) || unreadable {
        return Err(Status::ACCESS_DENIED);
    }
    Ok(())
}

/// Copies one chunk; gives the bytes written.
async fn one<H: Host>(
    host: &H,
    source: &H::Open,
    target: &H::Open,
    chunk: Chunk,
) -> Result<u32, Status> {
    let length = u64::from(chunk.length);
    let within = |offset: u64| offset.checked_add(length).filter(|end| *end <= FILE_BYTES_MAX);
    within(chunk.source).ok_or(Status::INVALID_VIEW_SIZE)?;
    within(chunk.target).ok_or(Status::INVALID_PARAMETER)?;
    let data = read(host, source, chunk).await?;
    if data.len() < chunk.length as usize {
        return Err(Status::INVALID_VIEW_SIZE);
    }
    write(host, target, chunk, data).await
}

async fn read<H: Host>(host: &H, source: &H::Open, chunk: Chunk) -> Result<Vec<u8>, Status> {
    let permit = host.admit(&source.key, OpClass::Read, chunk.length).await?;
    let range = Range::new(chunk.source, chunk.length.into());
    let io = host.begin_io(source, range, Mode::Shared).await?;
    let store = host.store();
    let read = store.read(&source.object, chunk.source, chunk.length, Vec::new()).await;
    drop(io);
    permit.end(read.as_ref().map_or(0, |read| read.count.into()), read.is_ok());
    read.map(|read| read.out).map_err(status)
}

async fn write<H: Host>(
    host: &H,
    target: &H::Open,
    chunk: Chunk,
    data: Vec<u8>,
) -> Result<u32, Status> {
    let permit = host.admit(&target.key, OpClass::Write, chunk.length).await?;
    let range = Range::new(chunk.target, chunk.length.into());
    let io = host.begin_io(target, range, Mode::Exclusive).await?;
    let stability =
        if target.is_write_through() { Stability::FileSync } else { Stability::Unstable };
    let store = host.store();
    let data = Shared::from(data);
    let written = store.write(&target.object, chunk.target, data, stability).await;
    drop(io);
    permit.end(written.as_ref().map_or(0, |done| done.count.into()), written.is_ok());
    written.map(|done| done.count).map_err(status)
}
