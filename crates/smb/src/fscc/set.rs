//! Information classes of an open file that a request sets (MS-FSCC §2.4).

use super::TimeChange;
use super::info::InfoError;
use super::limits::TARGET_BYTES_MAX;
use crate::le::Reader;
use crate::wire::FileAttributes;

/// A change of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetInfo<'a> {
    /// FileBasicInformation.
    Basic(SetBasic),
    /// FileRenameInformation and FileRenameInformationEx.
    Rename(Target<'a>),
    /// FileLinkInformation.
    Link(Target<'a>),
    /// FileDispositionInformation and FileDispositionInformationEx.
    Disposition(Disposition),
    /// FilePositionInformation: the position, in bytes.
    Position(u64),
    /// FileModeInformation.
    Mode(u32),
    /// FileAllocationInformation: the space to allocate, in bytes.
    Allocation(u64),
    /// FileEndOfFileInformation: the size, in bytes.
    EndOfFile(u64),
    /// FileValidDataLengthInformation, in bytes.
    ValidDataLength(u64),
}

/// Times and attributes to set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetBasic {
    /// Time of creation.
    pub created: TimeChange,
    /// Last access.
    pub accessed: TimeChange,
    /// Last change of the data.
    pub written: TimeChange,
    /// Last change of data or attributes.
    pub changed: TimeChange,
    /// All attributes; `None` leaves them unchanged.
    pub attributes: Option<FileAttributes>,
}

/// A name to give to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// May the name be that of a file there is?
    pub replace: bool,
    /// May that file be open (FILE_RENAME_POSIX_SEMANTICS)? It stays open without a name.
    pub posix: bool,
    /// The path from the root of the share, in UTF-16, little-endian.
    pub name: &'a [u8],
}

bitflags::bitflags! {
    /// Deletion on close. Without [`Disposition::DELETE`] it is taken back.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Disposition: u32 {
        /// Delete.
        const DELETE = 0x1;
        /// Take the name away when this open ends, though there are others.
        const POSIX_SEMANTICS = 0x2;
        /// Refuse if the file runs as a program.
        const FORCE_IMAGE_SECTION_CHECK = 0x4;
        /// Set or clear the flag of the open that a CREATE sets, not that of the file.
        const ON_CLOSE = 0x8;
        /// Delete a read-only file as well.
        const IGNORE_READONLY_ATTRIBUTE = 0x10;
    }
}

/// FILE_RENAME_REPLACE_IF_EXISTS.
const REPLACE: u32 = 0x1;
/// FILE_RENAME_POSIX_SEMANTICS.
const POSIX: u32 = 0x2;

impl<'a> SetInfo<'a> {
    /// Reads the information of class `class`; `None` if no such class can be set here. Bytes
    /// after it are ignored.
    ///
    /// # Errors
    /// [`InfoError`].
    pub fn decode(class: u8, bytes: &'a [u8]) -> Result<Option<Self>, InfoError> {
        let mut input = Reader::new(bytes);
        let input = &mut input;
        Ok(Some(match class {
            4 => Self::Basic(SetBasic::decode(input)?),
            10 | 11 => {
                // One byte and seven reserved ones.
                let [replace, ..] = input.array::<8>()?;
                let target = Target::decode(replace != 0, false, input)?;
                if class == 10 { Self::Rename(target) } else { Self::Link(target) }
            }
            13 => match input.u8()? {
                0 => Self::Disposition(Disposition::empty()),
                _ => Self::Disposition(Disposition::DELETE),
            },
            14 => Self::Position(size(input)?),
            16 => Self::Mode(input.u32()?),
            19 => Self::Allocation(size(input)?),
            20 => Self::EndOfFile(size(input)?),
            39 => Self::ValidDataLength(size(input)?),
            64 => {
                let flags = Disposition::from_bits(input.u32()?).ok_or(InfoError::Value)?;
                Self::Disposition(flags)
            }
            65 => {
                let (flags, _reserved) = (input.u32()?, input.u32()?);
                let target = Target::decode(flags & REPLACE != 0, flags & POSIX != 0, input)?;
                Self::Rename(target)
            }
            _ => return Ok(None),
        }))
    }
}

impl SetBasic {
    fn decode(input: &mut Reader<'_>) -> Result<Self, InfoError> {
        let mut times = [0; 4];
        for time in &mut times {
            *time = input.array().map(i64::from_le_bytes)?;
        }
        let attributes = input.u32()?;
        let [created, accessed, written, changed] = times.map(TimeChange::from_wire);
        let (Some(created), Some(accessed)) = (created, accessed) else {
            return Err(InfoError::Value);
        };
        let (Some(written), Some(changed)) = (written, changed) else {
            return Err(InfoError::Value);
        };
        let attributes = (attributes != 0).then_some(FileAttributes::from_bits_retain(attributes));
        Ok(Self { created, accessed, written, changed, attributes })
    }
}

impl<'a> Target<'a> {
    /// Reads the part after the flags.
    fn decode(replace: bool, posix: bool, input: &mut Reader<'a>) -> Result<Self, InfoError> {
        let root = input.u64()?;
        let name = input.u32()?;
        // Relative to an open directory is for callers on the same machine alone.
        if root != 0 {
            return Err(InfoError::Value);
        }
        let name = input.bytes_u32(name).map_err(|_| InfoError::Value)?;
        if name.is_empty() || name.len() > TARGET_BYTES_MAX {
            return Err(InfoError::Value);
        }
        Ok(Self { replace, posix, name })
    }
}

/// A size or offset, which is signed on the wire but never negative.
pub(super) fn size(input: &mut Reader<'_>) -> Result<u64, InfoError> {
    let value = input.array().map(i64::from_le_bytes)?;
    u64::try_from(value).map_err(|_| InfoError::Value)
}
