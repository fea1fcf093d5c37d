//! The attributes of files (MS-FSCC §2.6), and the values of a file that CREATE and CLOSE return.
//! Not here: the information classes.

use super::WireError;
use super::codec::{Cursor, Field, bits};
use alloc::vec::Vec;

bits! {
    /// The attributes of a file, `FILE_ATTRIBUTE_*` (MS-FSCC §2.6).
    pub struct FileAttributes: u32 {
        /// The file may not be written or deleted.
        const READONLY = 0x0000_0001;
        /// Ordinary listings leave the file out.
        const HIDDEN = 0x0000_0002;
        /// The file belongs to the operating system.
        const SYSTEM = 0x0000_0004;
        /// The object is a directory.
        const DIRECTORY = 0x0000_0010;
        /// The file has changed since it was archived.
        const ARCHIVE = 0x0000_0020;
        /// The file has no other attribute; valid only alone.
        const NORMAL = 0x0000_0080;
        /// The file is temporary.
        const TEMPORARY = 0x0000_0100;
        /// The file may have ranges without storage.
        const SPARSE_FILE = 0x0000_0200;
        /// The object has a reparse point, such as a symbolic link.
        const REPARSE_POINT = 0x0000_0400;
        /// The file system compresses the file.
        const COMPRESSED = 0x0000_0800;
        /// The data is on other storage.
        const OFFLINE = 0x0000_1000;
        /// The index of contents leaves the file out.
        const NOT_CONTENT_INDEXED = 0x0000_2000;
        /// The file system encrypts the file.
        const ENCRYPTED = 0x0000_4000;
        /// The data has checksums.
        const INTEGRITY_STREAM = 0x0000_8000;
        /// Integrity scans leave the data out.
        const NO_SCRUB_DATA = 0x0002_0000;
        /// Part of the file is on other storage; an open may fetch it.
        const RECALL_ON_OPEN = 0x0004_0000;
        /// The file is to be kept on local storage.
        const PINNED = 0x0008_0000;
        /// The file is to be kept on other storage.
        const UNPINNED = 0x0010_0000;
        /// Part of the file is on other storage; a read may fetch it.
        const RECALL_ON_DATA_ACCESS = 0x0040_0000;
    }
}

impl FileAttributes {
    /// The form for a reply: [`FileAttributes::NORMAL`] if no other is set, and only then
    /// (MS-FSCC §2.6).
    #[must_use]
    pub const fn shown(self) -> Self {
        let others = self.difference(Self::NORMAL);
        if others.is_empty() { Self::NORMAL } else { others }
    }
}

/// The values of a file that CREATE and CLOSE return (MS-SMB2 §2.2.14, §2.2.16): those of
/// FileNetworkOpenInformation (MS-FSCC §2.4.29). Times are in units of 100 ns since 1601-01-01
/// (`FILETIME`), zero where unknown; sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkOpenInfo {
    /// The time at which the file was made.
    pub creation_time: u64,
    /// The time of the last read of the data.
    pub last_access_time: u64,
    /// The time of the last write of the data.
    pub last_write_time: u64,
    /// The time of the last change of data or attributes.
    pub change_time: u64,
    /// Storage allocated.
    pub allocation_size: u64,
    /// The file's size.
    pub end_of_file: u64,
    /// The attributes.
    pub attributes: FileAttributes,
}

impl Field for NetworkOpenInfo {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_is_shown_alone() {
        assert_eq!(FileAttributes::empty().shown(), FileAttributes::NORMAL);
        let both = FileAttributes::NORMAL | FileAttributes::HIDDEN;
        assert_eq!(both.shown(), FileAttributes::HIDDEN);
    }
}
