//! Information classes of an open file that a query answers (MS-FSCC §2.4).

use super::info::{FileInfo, OpenInfo, whole_clusters};
use crate::le::{length, put};
use crate::utf16::put_utf16;
use alloc::vec::Vec;

/// An information class of a file that a query may ask for. Missing are those that answer nothing
/// here: FileAlternateNameInformation, as there are no short names
/// (STATUS_OBJECT_NAME_NOT_FOUND), and FileFullEaInformation, as there are no extended attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileClass {
    /// FileBasicInformation: times and attributes.
    Basic,
    /// FileStandardInformation: sizes, links, deletion.
    Standard,
    /// FileInternalInformation: the number of the file.
    Internal,
    /// FileEaInformation: the size of extended attributes.
    Ea,
    /// FileAccessInformation: the access granted.
    Access,
    /// FilePositionInformation: the position.
    Position,
    /// FileModeInformation: the mode.
    Mode,
    /// FileAlignmentInformation: the alignment of buffers, which is none.
    Alignment,
    /// FileAllInformation: all of the above, and the name.
    All,
    /// FileStreamInformation: the streams; the data of a file is the only one.
    Stream,
    /// FileCompressionInformation: always none.
    Compression,
    /// FileNetworkOpenInformation: times, sizes and attributes.
    NetworkOpen,
    /// FileAttributeTagInformation: attributes and the kind of reparse point.
    AttributeTag,
    /// FileNormalizedNameInformation: the name.
    NormalizedName,
    /// FileIdInformation: the numbers of volume and file.
    Id,
}

/// The name of the one stream of a file.
const DATA_STREAM: &str = "::$DATA";

impl FileClass {
    /// The class of this number, if it is one of them.
    #[must_use]
    pub const fn from_wire(class: u8) -> Option<Self> {
        Some(match class {
            4 => Self::Basic,
            5 => Self::Standard,
            6 => Self::Internal,
            7 => Self::Ea,
            8 => Self::Access,
            14 => Self::Position,
            16 => Self::Mode,
            17 => Self::Alignment,
            18 => Self::All,
            22 => Self::Stream,
            28 => Self::Compression,
            34 => Self::NetworkOpen,
            35 => Self::AttributeTag,
            48 => Self::NormalizedName,
            59 => Self::Id,
            _ => return None,
        })
    }

    /// The bytes without a name. A client that leaves room for fewer gets
    /// STATUS_INFO_LENGTH_MISMATCH; one that leaves room for fewer than there are with the name
    /// gets as many and STATUS_BUFFER_OVERFLOW.
    #[must_use]
    pub const fn fixed_bytes(self) -> usize {
        match self {
            Self::Basic => 40,
            Self::Standard | Self::Stream | Self::Id => 24,
            Self::Internal | Self::Position | Self::AttributeTag => 8,
            Self::Ea | Self::Access | Self::Mode | Self::Alignment | Self::NormalizedName => 4,
            Self::All => 100,
            Self::Compression => 16,
            Self::NetworkOpen => 56,
        }
    }

    /// Appends the information to `out`. Of a directory there are no streams, and so nothing is
    /// appended for [`FileClass::Stream`].
    pub fn encode(self, file: &FileInfo, open: &OpenInfo<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Basic => basic(file, out),
            Self::Standard => standard(file, out),
            Self::Internal => put!(out; file.index),
            Self::Ea => put!(out; file.ea_size),
            Self::Access => put!(out; open.access.bits()),
            Self::Position => put!(out; open.position),
            Self::Mode => put!(out; open.mode),
            Self::Alignment => put!(out; 0u32),
            Self::All => all(file, open, out),
            Self::Stream if file.directory => {}
            Self::Stream => stream(file, out),
            // Format NONE, shifts and reserved bytes.
            Self::Compression => put!(out; file.size, 0u64),
            Self::NetworkOpen => {
                times(file, out);
                let attributes = file.attributes.shown().bits();
                put!(out; whole_clusters(file.allocated), file.size, attributes, 0u32);
            }
            Self::AttributeTag => put!(out; file.attributes.shown().bits(), file.reparse_tag),
            Self::NormalizedName => {
                put!(out; length::<u32>(open.name.len()));
                out.extend_from_slice(open.name);
            }
            Self::Id => put!(out; open.volume, file.index, 0u64),
        }
    }
}

/// Creation, access, write, change.
pub(super) fn times(file: &FileInfo, out: &mut Vec<u8>) {
    put!(out; file.created.0, file.accessed.0, file.written.0, file.changed.0);
}

fn basic(file: &FileInfo, out: &mut Vec<u8>) {
    times(file, out);
    put!(out; file.attributes.shown().bits(), 0u32);
}

fn standard(file: &FileInfo, out: &mut Vec<u8>) {
    let flags = [u8::from(file.delete_pending), u8::from(file.directory)];
    put!(out; whole_clusters(file.allocated), file.size, file.links, flags[0], flags[1], 0u16);
}

fn all(file: &FileInfo, open: &OpenInfo<'_>, out: &mut Vec<u8>) {
    basic(file, out);
    standard(file, out);
    put!(out; file.index, file.ea_size, open.access.bits(), open.position, open.mode, 0u32);
    put!(out; length::<u32>(open.name.len().saturating_add(2)), u16::from(b'\\'));
    out.extend_from_slice(open.name);
}

fn stream(file: &FileInfo, out: &mut Vec<u8>) {
    let name_bytes = length::<u32>(DATA_STREAM.len().saturating_mul(2));
    put!(out; 0u32, name_bytes, file.size, whole_clusters(file.allocated));
    put_utf16(out, DATA_STREAM);
}
