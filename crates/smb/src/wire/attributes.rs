//! Attributes of files as CREATE and CLOSE give them. Not here: the information classes.

use super::WireError;
use super::codec::{Cursor, Field, bits};
use alloc::vec::Vec;

bits! {
    /// The attributes of a file (MS-FSCC §2.6).
    pub struct FileAttributes: u32 {
        /// The file may not be written.
        const READONLY = 0x0000_0001;
        /// Listings leave the file out.
        const HIDDEN = 0x0000_0002;
        /// The file belongs to the operating system.
        const SYSTEM = 0x0000_0004;
        /// The object is a directory.
        const DIRECTORY = 0x0000_0010;
        /// The file has changed since it was archived.
        const ARCHIVE = 0x0000_0020;
        /// The file has no other attribute.
        const NORMAL = 0x0000_0080;
        /// The file is temporary.
        const TEMPORARY = 0x0000_0100;
        /// The file may have holes.
        const SPARSE_FILE = 0x0000_0200;
        /// The object is a reparse point or a symbolic link.
        const REPARSE_POINT = 0x0000_0400;
        /// The file is compressed.
        const COMPRESSED = 0x0000_0800;
        /// The data is not at hand.
        const OFFLINE = 0x0000_1000;
        /// The file is not indexed.
        const NOT_CONTENT_INDEXED = 0x0000_2000;
        /// The file is encrypted.
        const ENCRYPTED = 0x0000_4000;
        /// The data has checksums.
        const INTEGRITY_STREAM = 0x0000_8000;
        /// Scrubbing leaves the data out.
        const NO_SCRUB_DATA = 0x0002_0000;
    }
}

/// Times, sizes and attributes, as CREATE and CLOSE give them (MS-SMB2 §2.2.14, §2.2.16). Times are
/// in units of 100 ns since 1601-01-01 (`FILETIME`), zero where unknown; sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileInfo {
    /// When the file was made.
    pub creation_time: u64,
    /// When the data was last read.
    pub last_access_time: u64,
    /// When the data was last written.
    pub last_write_time: u64,
    /// When data or attributes last changed.
    pub change_time: u64,
    /// Storage taken.
    pub allocation_size: u64,
    /// The file's size.
    pub end_of_file: u64,
    /// The attributes.
    pub attributes: FileAttributes,
}

impl Field for FileInfo {
    fn get(from: &mut Cursor<'_>) -> Result<Self, WireError> {
        Ok(Self {
            creation_time: from.get()?,
            last_access_time: from.get()?,
            last_write_time: from.get()?,
            change_time: from.get()?,
            allocation_size: from.get()?,
            end_of_file: from.get()?,
            attributes: from.get()?,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.creation_time.put(out);
        self.last_access_time.put(out);
        self.last_write_time.put(out);
        self.change_time.put(out);
        self.allocation_size.put(out);
        self.end_of_file.put(out);
        self.attributes.put(out);
    }
}
