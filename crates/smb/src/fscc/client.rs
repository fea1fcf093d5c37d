//! The client's side: information classes that a query answered, and those and the controls that a
//! request sets. For load generators and tests.

use super::NtTime;
use super::control::{Chunk, CopyResult, Range, ResumeKey};
use super::directory::DirectoryClass;
use super::file::FileClass;
use super::info::{FileInfo, InfoError, OpenInfo};
use super::set::{Disposition, SetBasic, SetInfo, Target};
use crate::le::{Reader, length, put};
use crate::wire::{AccessMask, FileAttributes};
use alloc::vec::Vec;

/// Reads the answer to a query of class [`FileClass::Basic`], [`FileClass::Standard`],
/// [`FileClass::NetworkOpen`] or [`FileClass::All`]; values that the class doesn't have are 0.
/// Nothing for another class.
///
/// # Errors
/// [`InfoError::Length`].
pub fn decode_file<'a>(
    class: FileClass,
    bytes: &'a [u8],
) -> Result<Option<(FileInfo, OpenInfo<'a>)>, InfoError> {
    let mut input = Reader::new(bytes);
    let (mut file, mut open) = (FileInfo::default(), OpenInfo::default());
    match class {
        FileClass::Basic => basic(&mut file, &mut input)?,
        FileClass::Standard => standard(&mut file, &mut input)?,
        FileClass::NetworkOpen => {
            times(&mut file, &mut input)?;
            (file.allocated, file.size) = (input.u64()?, input.u64()?);
            file.attributes = FileAttributes::from_bits_retain(input.u32()?);
            input.u32()?;
        }
        FileClass::All => {
            basic(&mut file, &mut input)?;
            standard(&mut file, &mut input)?;
            (file.index, file.ea_size) = (input.u64()?, input.u32()?);
            open.access = AccessMask::from_bits_retain(input.u32()?);
            (open.position, open.mode) = (input.u64()?, input.u32()?);
            let (_alignment, name) = (input.u32()?, input.u32()?);
            let name = input.bytes_u32(name)?;
            open.name = name.strip_prefix(&[b'\\', 0]).unwrap_or(name);
        }
        _ => return Ok(None),
    }
    Ok(Some((file, open)))
}

fn times(file: &mut FileInfo, input: &mut Reader<'_>) -> Result<(), InfoError> {
    for time in [&mut file.created, &mut file.accessed, &mut file.written, &mut file.changed] {
        *time = NtTime(input.array().map(i64::from_le_bytes)?);
    }
    Ok(())
}

fn basic(file: &mut FileInfo, input: &mut Reader<'_>) -> Result<(), InfoError> {
    times(file, input)?;
    file.attributes = FileAttributes::from_bits_retain(input.u32()?);
    input.u32()?;
    Ok(())
}

fn standard(file: &mut FileInfo, input: &mut Reader<'_>) -> Result<(), InfoError> {
    (file.allocated, file.size, file.links) = (input.u64()?, input.u64()?, input.u32()?);
    (file.delete_pending, file.directory) = (input.u8()? != 0, input.u8()? != 0);
    input.u16()?;
    Ok(())
}

fn extended(file: &mut FileInfo, input: &mut Reader<'_>) -> Result<(), InfoError> {
    (file.ea_size, file.reparse_tag, file.index) = (input.u32()?, input.u32()?, input.u64()?);
    Ok(())
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// The file; values that the class doesn't have are 0.
    pub file: FileInfo,
    /// The name, in UTF-16, little-endian.
    pub name: &'a [u8],
}

/// The entries of a directory that a query answered. Ends after the first error.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryEntries<'a> {
    class: DirectoryClass,
    rest: Option<&'a [u8]>,
}

impl<'a> DirectoryEntries<'a> {
    /// The entries in `bytes`.
    #[must_use]
    pub const fn new(class: DirectoryClass, bytes: &'a [u8]) -> Self {
        Self { class, rest: if bytes.is_empty() { None } else { Some(bytes) } }
    }

    fn entry(&mut self, bytes: &'a [u8]) -> Result<DirectoryEntry<'a>, InfoError> {
        let mut input = Reader::new(bytes);
        let (next, _index) = (input.u32()?, input.u32()?);
        let mut file = FileInfo::default();
        if self.class.shows_attributes() {
            times(&mut file, &mut input)?;
            (file.size, file.allocated) = (input.u64()?, input.u64()?);
            file.attributes = FileAttributes::from_bits_retain(input.u32()?);
            file.directory = file.attributes.contains(FileAttributes::DIRECTORY);
        }
        let length = input.u32()?;
        match self.class {
            DirectoryClass::Directory | DirectoryClass::Names => {}
            DirectoryClass::Full => file.ea_size = input.u32()?,
            DirectoryClass::IdFull => {
                (file.ea_size, _, file.index) = (input.u32()?, input.u32()?, input.u64()?);
            }
            DirectoryClass::IdExtd => {
                (file.ea_size, file.reparse_tag) = (input.u32()?, input.u32()?);
                (file.index, _) = (input.u64()?, input.u64()?);
            }
            DirectoryClass::Id64Extd => extended(&mut file, &mut input)?,
            DirectoryClass::Id64ExtdBoth => {
                extended(&mut file, &mut input)?;
                input.array::<26>()?;
            }
            DirectoryClass::IdAllExtd => {
                extended(&mut file, &mut input)?;
                input.array::<16>()?;
            }
            DirectoryClass::IdAllExtdBoth => {
                extended(&mut file, &mut input)?;
                input.array::<42>()?;
            }
            DirectoryClass::Both => {
                (file.ea_size, _) = (input.u32()?, input.array::<26>()?);
            }
            DirectoryClass::IdBoth => {
                (file.ea_size, _, file.index) = (input.u32()?, input.array::<28>()?, input.u64()?);
            }
        }
        let name = input.bytes_u32(length)?;
        if next != 0 {
            let next = usize::try_from(next).map_err(|_| InfoError::Length)?;
            let after = bytes.len().saturating_sub(input.rest().len());
            let rest = bytes.get(next..).filter(|_| next >= after).ok_or(InfoError::Length)?;
            self.rest = Some(rest);
        }
        Ok(DirectoryEntry { file, name })
    }
}

impl<'a> Iterator for DirectoryEntries<'a> {
    type Item = Result<DirectoryEntry<'a>, InfoError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.rest.take()?;
        Some(self.entry(bytes))
    }
}

impl SetInfo<'_> {
    /// The number of the class that [`SetInfo::encode`] writes.
    #[must_use]
    pub fn class(&self) -> u8 {
        match self {
            Self::Basic(_) => 4,
            Self::Rename(target) if target.posix => 65,
            Self::Rename(_) => 10,
            Self::Link(_) => 11,
            Self::Disposition(flags) if Disposition::DELETE.contains(*flags) => 13,
            Self::Disposition(_) => 64,
            Self::Position(_) => 14,
            Self::Mode(_) => 16,
            Self::Allocation(_) => 19,
            Self::EndOfFile(_) => 20,
            Self::ValidDataLength(_) => 39,
        }
    }

    /// Appends the information to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Basic(basic) => basic.encode(out),
            Self::Rename(target) | Self::Link(target) => target.encode(out),
            Self::Disposition(flags) if self.class() == 13 => {
                put!(out; u8::from(!flags.is_empty()));
            }
            Self::Disposition(flags) => put!(out; flags.bits()),
            Self::Mode(mode) => put!(out; *mode),
            Self::Position(size)
            | Self::Allocation(size)
            | Self::EndOfFile(size)
            | Self::ValidDataLength(size) => put!(out; *size),
        }
    }
}

impl SetBasic {
    fn encode(&self, out: &mut Vec<u8>) {
        for time in [self.created, self.accessed, self.written, self.changed] {
            put!(out; time.to_wire());
        }
        put!(out; self.attributes.unwrap_or_default().bits(), 0u32);
    }
}

impl Target<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let flags = u64::from(self.replace) | u64::from(self.posix) << 1;
        put!(out; flags, 0u64, length::<u32>(self.name.len()));
        out.extend_from_slice(self.name);
    }
}

/// Appends FSCTL_SET_ZERO_DATA.
pub fn encode_zero_data(range: Range, out: &mut Vec<u8>) {
    put!(out; range.offset, range.offset.saturating_add(range.length));
}

/// Appends a range: the question of FSCTL_QUERY_ALLOCATED_RANGES.
pub fn encode_range(range: Range, out: &mut Vec<u8>) {
    put!(out; range.offset, range.length);
}

/// The ranges that FSCTL_QUERY_ALLOCATED_RANGES answered.
pub fn decode_ranges(bytes: &[u8]) -> impl Iterator<Item = Range> + '_ {
    let (pairs, _rest) = bytes.as_chunks::<16>();
    pairs.iter().filter_map(|pair| {
        let mut input = Reader::new(pair);
        Some(Range { offset: input.u64().ok()?, length: input.u64().ok()? })
    })
}

/// Reads the answer to FSCTL_SRV_REQUEST_RESUME_KEY.
///
/// # Errors
/// [`InfoError::Length`].
pub fn decode_resume_key(bytes: &[u8]) -> Result<ResumeKey, InfoError> {
    Ok(Reader::new(bytes).array()?)
}

/// Appends FSCTL_SRV_COPYCHUNK.
pub fn encode_copy(key: &ResumeKey, chunks: &[Chunk], out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    put!(out; length::<u32>(chunks.len()), 0u32);
    for chunk in chunks {
        put!(out; chunk.source, chunk.target, chunk.length, 0u32);
    }
}

impl CopyResult {
    /// Reads the answer to FSCTL_SRV_COPYCHUNK.
    ///
    /// # Errors
    /// [`InfoError::Length`].
    pub fn decode(bytes: &[u8]) -> Result<Self, InfoError> {
        let mut input = Reader::new(bytes);
        Ok(Self { chunks: input.u32()?, chunk_bytes: input.u32()?, bytes: input.u32()? })
    }
}
