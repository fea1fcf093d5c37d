//! The neutral values behind the information classes, and the errors of those that come in.

use super::NtTime;
use crate::le::Truncated;
use crate::wire::{AccessMask, FileAttributes};

/// Bytes of a cluster, the unit that allocation is shown in.
pub const CLUSTER_BYTES: u64 = 4096;

/// `bytes` rounded up to whole clusters, at most the largest signed number, as sizes on the wire
/// are signed.
#[must_use]
pub fn whole_clusters(bytes: u64) -> u64 {
    const MOST: u64 = (i64::MAX as u64) / CLUSTER_BYTES * CLUSTER_BYTES;
    bytes.checked_next_multiple_of(CLUSTER_BYTES).map_or(MOST, |whole| whole.min(MOST))
}

/// A file or directory, as information classes show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileInfo {
    /// Time of creation.
    pub created: NtTime,
    /// Last access.
    pub accessed: NtTime,
    /// Last change of the data.
    pub written: NtTime,
    /// Last change of data or attributes.
    pub changed: NtTime,
    /// The attributes; shown as [`FileAttributes::shown`] says.
    pub attributes: FileAttributes,
    /// Size of the data, in bytes; of a directory 0.
    pub size: u64,
    /// Space allocated, in bytes; shown as [`whole_clusters`].
    pub allocated: u64,
    /// Number of names, without those that are to be deleted.
    pub links: u32,
    /// Is the file to be deleted when it is closed?
    pub delete_pending: bool,
    /// Is it a directory?
    pub directory: bool,
    /// Unique within the volume (the inode number).
    pub index: u64,
    /// Bytes of extended attributes.
    pub ea_size: u32,
    /// The kind of reparse point (MS-FSCC §2.1.2.1), for a file with
    /// [`FileAttributes::REPARSE_POINT`]; else 0.
    pub reparse_tag: u32,
}

/// An open, as far as information classes show it beside its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenInfo<'a> {
    /// The access mask granted (MS-SMB2 §2.2.13.1).
    pub access: AccessMask,
    /// The position set last, in bytes.
    pub position: u64,
    /// The mode (MS-FSCC, FileModeInformation).
    pub mode: u32,
    /// The path from the root of the share, in UTF-16, little-endian. FileAllInformation shows it
    /// with a separator in front.
    pub name: &'a [u8],
    /// The serial number of the volume.
    pub volume: u64,
}

/// Why an information class or control that came in is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InfoError {
    /// The buffer is smaller than the structure: STATUS_INFO_LENGTH_MISMATCH.
    #[error("the buffer is shorter than its information class")]
    Length,
    /// A value is not allowed: STATUS_INVALID_PARAMETER.
    #[error("a value of the information class is not allowed")]
    Value,
}

impl From<Truncated> for InfoError {
    fn from(_: Truncated) -> Self {
        Self::Length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocation_is_whole_clusters_and_never_negative() {
        for (bytes, whole) in [(0, 0), (1, 4096), (4096, 4096), (4097, 8192)] {
            assert_eq!(whole_clusters(bytes), whole);
        }
        for bytes in [i64::MAX as u64, u64::MAX] {
            assert_eq!(whole_clusters(bytes), i64::MAX as u64 - 4095);
        }
    }
}
