//! Information classes of the entries of a directory (MS-FSCC §2.4), as a list that ends where the
//! next entry would not fit.

use super::file::times;
use super::info::{FileInfo, whole_clusters};
use crate::le::{align, length, patch, put};
use crate::names::to_wire;
use alloc::vec::Vec;

/// An information class of a directory's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirectoryClass {
    /// FileDirectoryInformation.
    Directory,
    /// FileFullDirectoryInformation.
    Full,
    /// FileBothDirectoryInformation.
    Both,
    /// FileNamesInformation: names alone.
    Names,
    /// FileIdBothDirectoryInformation.
    IdBoth,
    /// FileIdFullDirectoryInformation.
    IdFull,
    /// FileIdExtdDirectoryInformation.
    IdExtd,
    /// FileId64ExtdDirectoryInformation.
    Id64Extd,
    /// FileId64ExtdBothDirectoryInformation.
    Id64ExtdBoth,
    /// FileIdAllExtdDirectoryInformation.
    IdAllExtd,
    /// FileIdAllExtdBothDirectoryInformation.
    IdAllExtdBoth,
}

/// A short name's length, a reserved byte and room for twelve characters.
const NO_SHORT_NAME: [u8; 26] = [0; 26];

impl DirectoryClass {
    /// The class of this number, if it is one of them.
    #[must_use]
    pub const fn from_wire(class: u8) -> Option<Self> {
        Some(match class {
            1 => Self::Directory,
            2 => Self::Full,
            3 => Self::Both,
            12 => Self::Names,
            37 => Self::IdBoth,
            38 => Self::IdFull,
            60 => Self::IdExtd,
            78 => Self::Id64Extd,
            79 => Self::Id64ExtdBoth,
            80 => Self::IdAllExtd,
            81 => Self::IdAllExtdBoth,
            _ => return None,
        })
    }

    /// The bytes of an entry before its name. A client that leaves room for fewer gets
    /// STATUS_INFO_LENGTH_MISMATCH.
    #[must_use]
    pub const fn fixed_bytes(self) -> usize {
        match self {
            Self::Names => 12,
            Self::Directory => 64,
            Self::Full => 68,
            Self::IdFull | Self::Id64Extd => 80,
            Self::IdExtd => 88,
            Self::Both => 94,
            Self::IdAllExtd => 96,
            Self::IdBoth => 104,
            Self::Id64ExtdBoth => 106,
            Self::IdAllExtdBoth => 122,
        }
    }

    /// Does an entry show more than its name?
    #[must_use]
    pub const fn shows_attributes(self) -> bool {
        !matches!(self, Self::Names)
    }

    /// Appends one entry; gives the place of the length of its name, which is filled in later.
    fn encode(self, file: &FileInfo, out: &mut Vec<u8>) -> usize {
        // The offset of the next entry, and an index without a meaning.
        put!(out; 0u32, 0u32);
        if self.shows_attributes() {
            times(file, out);
            put!(out; file.size, whole_clusters(file.allocated), file.attributes.shown().bits());
        }
        let length_at = out.len();
        put!(out; 0u32);
        // Where there is a reparse point, its kind is in the place of the extended attributes.
        let ea_or_tag = if file.reparse_tag == 0 { file.ea_size } else { file.reparse_tag };
        match self {
            Self::Directory | Self::Names => {}
            Self::Full => put!(out; ea_or_tag),
            Self::IdFull => put!(out; ea_or_tag, 0u32, file.index),
            Self::IdExtd => put!(out; file.ea_size, file.reparse_tag, file.index, 0u64),
            Self::Id64Extd => put!(out; file.ea_size, file.reparse_tag, file.index),
            Self::Id64ExtdBoth => {
                put!(out; file.ea_size, file.reparse_tag, file.index);
                out.extend_from_slice(&NO_SHORT_NAME);
            }
            // The number of 128 bits is the one of 64, with zeros in front.
            Self::IdAllExtd => {
                put!(out; file.ea_size, file.reparse_tag, file.index, file.index, 0u64);
            }
            Self::IdAllExtdBoth => {
                put!(out; file.ea_size, file.reparse_tag, file.index, file.index, 0u64);
                out.extend_from_slice(&NO_SHORT_NAME);
            }
            Self::Both => {
                put!(out; ea_or_tag);
                out.extend_from_slice(&NO_SHORT_NAME);
            }
            Self::IdBoth => {
                put!(out; ea_or_tag);
                out.extend_from_slice(&NO_SHORT_NAME);
                put!(out; 0u16, file.index);
            }
        }
        length_at
    }
}

/// A list of entries that grows at the end of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Listing {
    class: DirectoryClass,
    start: usize,
    max: usize,
    last: Option<usize>,
}

impl Listing {
    /// An empty list of at most `max` bytes, which begins at the present end of `out`.
    #[must_use]
    pub fn new(class: DirectoryClass, max: usize, out: &[u8]) -> Self {
        Self { class, start: out.len(), max, last: None }
    }

    /// Has no entry been appended?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Appends an entry with the name `name` of the store to `out`, to which nothing else has been
    /// appended since, and is `true`; or leaves `out` as it was, if the entry does not fit.
    #[must_use]
    pub fn push(&mut self, file: &FileInfo, name: &[u8], out: &mut Vec<u8>) -> bool {
        let before = out.len();
        align(out, self.start, 8);
        let entry = out.len();
        let length_at = self.class.encode(file, out);
        let name_start = out.len();
        to_wire(name, out);
        if out.len().saturating_sub(self.start) > self.max {
            out.truncate(before);
            return false;
        }
        let name_bytes = length::<u32>(out.len().saturating_sub(name_start));
        patch(out, length_at, &name_bytes.to_le_bytes());
        if let Some(last) = self.last.replace(entry) {
            patch(out, last, &length::<u32>(entry.saturating_sub(last)).to_le_bytes());
        }
        true
    }
}
