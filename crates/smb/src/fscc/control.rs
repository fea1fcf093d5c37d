//! Payloads of file system controls (MS-FSCC §2.3, MS-SMB2 §2.2.31, §2.2.32).

use super::info::InfoError;
use super::limits::{COPY_BYTES_MAX, COPY_CHUNK_BYTES_MAX, COPY_CHUNKS_MAX};
use super::set::size;
use crate::le::{Reader, Truncated, put};
use alloc::vec::Vec;

/// A range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes. Offset and length are at most the largest signed number together.
    pub length: u64,
}

/// Reads FSCTL_SET_ZERO_DATA (MS-FSCC §2.3).
///
/// # Errors
/// [`InfoError`]; both mean STATUS_INVALID_PARAMETER here.
pub fn zero_data(bytes: &[u8]) -> Result<Range, InfoError> {
    let mut input = Reader::new(bytes);
    let (offset, end) = (size(&mut input)?, size(&mut input)?);
    let length = end.checked_sub(offset).ok_or(InfoError::Value)?;
    Ok(Range { offset, length })
}

/// Reads FSCTL_SET_SPARSE (MS-FSCC §2.3): whether the file is to be sparse.
#[must_use]
pub fn set_sparse(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|flag| *flag != 0)
}

/// Reads the question of FSCTL_QUERY_ALLOCATED_RANGES (MS-FSCC §2.3).
///
/// # Errors
/// [`InfoError`]; both mean STATUS_INVALID_PARAMETER here.
pub fn query_ranges(bytes: &[u8]) -> Result<Range, InfoError> {
    let mut input = Reader::new(bytes);
    let (offset, length) = (size(&mut input)?, size(&mut input)?);
    let end = offset.checked_add(length).filter(|end| i64::try_from(*end).is_ok());
    end.map(|_| Range { offset, length }).ok_or(InfoError::Value)
}

/// Bytes of one range in the answer.
pub const RANGE_BYTES: usize = 16;

/// Appends the answer to FSCTL_QUERY_ALLOCATED_RANGES to `out`, as many of `ranges` as fit `max`
/// bytes; `false` if not all do (STATUS_BUFFER_OVERFLOW, or STATUS_BUFFER_TOO_SMALL where none
/// does).
#[must_use]
pub fn encode_ranges(
    ranges: impl IntoIterator<Item = Range>,
    max: usize,
    out: &mut Vec<u8>,
) -> bool {
    let mut room = max / RANGE_BYTES;
    for range in ranges {
        let Some(left) = room.checked_sub(1) else { return false };
        room = left;
        put!(out; range.offset, range.length);
    }
    true
}

/// The key by which the source of a server-side copy is known (MS-SMB2 §2.2.32.3).
pub type ResumeKey = [u8; 24];

/// Bytes of the answer to FSCTL_SRV_REQUEST_RESUME_KEY.
pub const RESUME_KEY_BYTES: usize = 32;

/// Appends the answer to FSCTL_SRV_REQUEST_RESUME_KEY (MS-SMB2 §2.2.32.3): key, no context, and
/// the padding that clients expect.
pub fn encode_resume_key(key: &ResumeKey, out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    put!(out; 0u32, 0u32);
}

/// Bytes of the answer to FSCTL_CREATE_OR_GET_OBJECT_ID.
pub const OBJECT_ID_BYTES: usize = 64;

/// Appends the answer to FSCTL_CREATE_OR_GET_OBJECT_ID (MS-FSCC §2.1.3.1): identifiers of the
/// file, of the volume and file it was made as, and of no domain.
pub fn encode_object_id(object: &[u8; 16], volume: &[u8; 16], out: &mut Vec<u8>) {
    for id in [object, volume, object, &[0; 16]] {
        out.extend_from_slice(id);
    }
}

/// One part of a server-side copy (MS-SMB2 §2.2.31.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The first byte in the source.
    pub source: u64,
    /// The first byte in the target.
    pub target: u64,
    /// The number of bytes; not 0.
    pub length: u32,
}

/// A server-side copy (MS-SMB2 §2.2.31.1), within its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyChunks<'a> {
    /// The key of the source.
    pub key: ResumeKey,
    chunks: &'a [[u8; CHUNK_BYTES]],
}

const CHUNK_BYTES: usize = 24;

/// Why a server-side copy is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The buffer is shorter than its chunks: STATUS_INVALID_PARAMETER.
    #[error("the copy is shorter than it says")]
    Short,
    /// Chunks are empty, too large or too many: STATUS_INVALID_PARAMETER, with
    /// [`CopyResult::BOUNDS`] as the reply.
    #[error("the copy is beyond its bounds")]
    Bounds,
}

impl From<Truncated> for CopyError {
    fn from(_: Truncated) -> Self {
        Self::Short
    }
}

impl<'a> CopyChunks<'a> {
    /// Reads FSCTL_SRV_COPYCHUNK or FSCTL_SRV_COPYCHUNK_WRITE.
    ///
    /// # Errors
    /// [`CopyError`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, CopyError> {
        let mut input = Reader::new(bytes);
        let key = input.array()?;
        let (count, _reserved) = (input.u32()?, input.u32()?);
        if count > COPY_CHUNKS_MAX {
            return Err(CopyError::Bounds);
        }
        let count = usize::try_from(count).map_err(|_| CopyError::Bounds)?;
        let (chunks, _rest) = input.rest().as_chunks();
        let chunks = chunks.get(..count).ok_or(CopyError::Short)?;
        let copy = Self { key, chunks };
        let fits = |chunk: &Chunk| (1..=COPY_CHUNK_BYTES_MAX).contains(&chunk.length);
        let total = copy.chunks().map(|chunk| u64::from(chunk.length)).fold(0, u64::saturating_add);
        if total > u64::from(COPY_BYTES_MAX) || !copy.chunks().all(|chunk| fits(&chunk)) {
            return Err(CopyError::Bounds);
        }
        Ok(copy)
    }

    /// The parts, in their order.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> + use<'a> {
        self.chunks.iter().filter_map(|chunk| Chunk::decode(chunk).ok())
    }
}

impl Chunk {
    fn decode(bytes: &[u8; CHUNK_BYTES]) -> Result<Self, Truncated> {
        let mut input = Reader::new(bytes);
        Ok(Self { source: input.u64()?, target: input.u64()?, length: input.u32()? })
    }
}

/// The result of a server-side copy, or its bounds (MS-SMB2 §2.2.32.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyResult {
    /// Chunks copied; as a bound, the most chunks.
    pub chunks: u32,
    /// Bytes copied of a chunk that could not be copied whole; as a bound, the most bytes of a
    /// chunk.
    pub chunk_bytes: u32,
    /// Bytes copied; as a bound, the most bytes.
    pub bytes: u32,
}

impl CopyResult {
    /// The bounds.
    pub const BOUNDS: Self =
        Self { chunks: COPY_CHUNKS_MAX, chunk_bytes: COPY_CHUNK_BYTES_MAX, bytes: COPY_BYTES_MAX };

    /// Appends the result to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put!(out; self.chunks, self.chunk_bytes, self.bytes);
    }
}
