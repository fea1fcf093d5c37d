//! Information classes of file systems (MS-FSCC §2.5).

use super::NtTime;
use super::info::CLUSTER_BYTES;
use crate::le::{length, patch, put};
use crate::utf16::put_utf16;
use alloc::vec::Vec;

bitflags::bitflags! {
    /// Abilities of a file system (MS-FSCC §2.5.1, FileSystemAttributes).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FsAttributes: u32 {
        /// Names are looked up by case. Not so where they only keep it.
        const CASE_SENSITIVE_SEARCH = 0x0000_0001;
        /// Names keep their case.
        const CASE_PRESERVED_NAMES = 0x0000_0002;
        /// Names are in Unicode.
        const UNICODE_ON_DISK = 0x0000_0004;
        /// Access control lists are kept and decide.
        const PERSISTENT_ACLS = 0x0000_0008;
        /// Files may have ranges without storage.
        const SPARSE_FILES = 0x0000_0040;
        /// Files have reparse points.
        const REPARSE_POINTS = 0x0000_0080;
        /// Files have identifiers of 16 bytes.
        const OBJECT_IDS = 0x0001_0000;
        /// Files have streams beside their data.
        const NAMED_STREAMS = 0x0004_0000;
        /// Nothing can be changed.
        const READ_ONLY_VOLUME = 0x0008_0000;
        /// Files may have several names.
        const HARD_LINKS = 0x0040_0000;
        /// Files can be opened by their number.
        const OPEN_BY_FILE_ID = 0x0100_0000;
    }
}

/// A file system, as information classes show it. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeInfo<'a> {
    /// Time of creation.
    pub created: NtTime,
    /// The serial number.
    pub serial: u32,
    /// The label.
    pub label: &'a str,
    /// The name of the kind of file system. Some programs ask for abilities only where it is
    /// `NTFS`.
    pub kind: &'a str,
    /// The abilities.
    pub attributes: FsAttributes,
    /// An identifier of the volume.
    pub object_id: [u8; 16],
    /// Size of the file system.
    pub total: u64,
    /// Space free for the caller.
    pub available: u64,
    /// Space free.
    pub free: u64,
}

/// An information class of a file system that a query may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VolumeClass {
    /// FileFsVolumeInformation: label and serial number.
    Volume,
    /// FileFsSizeInformation: sizes.
    Size,
    /// FileFsDeviceInformation: a disk.
    Device,
    /// FileFsAttributeInformation: abilities.
    Attribute,
    /// FileFsControlInformation: quotas, which are none.
    Control,
    /// FileFsFullSizeInformation: sizes, also for the caller.
    FullSize,
    /// FileFsObjectIdInformation: the identifier.
    ObjectId,
    /// FileFsSectorSizeInformation: sizes of sectors.
    SectorSize,
}

/// Bytes of a sector, as shown.
const SECTOR_BYTES: u32 = 512;
/// Sectors of a cluster.
const CLUSTER_SECTORS: u32 = 8;
const _: () = assert!(CLUSTER_SECTORS as u64 * SECTOR_BYTES as u64 == CLUSTER_BYTES);
/// FILE_DEVICE_DISK.
const DISK: u32 = 7;
/// FILE_DEVICE_IS_MOUNTED.
const MOUNTED: u32 = 0x20;
/// Neither a limit nor a threshold of quotas.
const NO_QUOTA: u64 = u64::MAX;
/// SSINFO_FLAGS_ALIGNED_DEVICE, SSINFO_FLAGS_PARTITION_ALIGNED_ON_DEVICE.
const ALIGNED: u32 = 3;

impl VolumeClass {
    /// The class of this number, if it is one of them.
    #[must_use]
    pub const fn from_wire(class: u8) -> Option<Self> {
        Some(match class {
            1 => Self::Volume,
            3 => Self::Size,
            4 => Self::Device,
            5 => Self::Attribute,
            6 => Self::Control,
            7 => Self::FullSize,
            8 => Self::ObjectId,
            11 => Self::SectorSize,
            _ => return None,
        })
    }

    /// The bytes without a name, as [`FileClass::fixed_bytes`](super::FileClass::fixed_bytes).
    #[must_use]
    pub const fn fixed_bytes(self) -> usize {
        match self {
            Self::Volume => 18,
            Self::Size => 24,
            Self::Device => 8,
            Self::Attribute => 12,
            Self::Control => 48,
            Self::FullSize => 32,
            Self::ObjectId => 64,
            Self::SectorSize => 28,
        }
    }

    /// Appends the information to `out`.
    pub fn encode(self, volume: &VolumeInfo<'_>, out: &mut Vec<u8>) {
        let clusters = |bytes: u64| bytes / CLUSTER_BYTES;
        let (total, available) = (clusters(volume.total), clusters(volume.available));
        match self {
            Self::Volume => {
                put!(out; volume.created.0, volume.serial);
                let length_at = out.len();
                // The length of the label; supports objects; reserved.
                put!(out; 0u32, 0u8, 0u8);
                text(volume.label, length_at, out);
            }
            Self::Size => put!(out; total, available, CLUSTER_SECTORS, SECTOR_BYTES),
            Self::Device => put!(out; DISK, MOUNTED),
            Self::Attribute => {
                put!(out; volume.attributes.bits(), length::<u32>(crate::names::NAME_UNITS_MAX));
                let length_at = out.len();
                put!(out; 0u32);
                text(volume.kind, length_at, out);
            }
            Self::Control => put!(out; 0u64, 0u64, 0u64, NO_QUOTA, NO_QUOTA, 0u32, 0u32),
            Self::FullSize => {
                let free = clusters(volume.free);
                put!(out; total, available, free, CLUSTER_SECTORS, SECTOR_BYTES);
            }
            Self::ObjectId => {
                out.extend_from_slice(&volume.object_id);
                out.extend_from_slice(&[0; 48]);
            }
            Self::SectorSize => {
                let cluster = CLUSTER_SECTORS.saturating_mul(SECTOR_BYTES);
                put!(out; SECTOR_BYTES, cluster, cluster, cluster, ALIGNED, 0u32, 0u32);
            }
        }
    }
}

/// Appends `text` as UTF-16, and puts its length in bytes at `length_at`.
fn text(text: &str, length_at: usize, out: &mut Vec<u8>) {
    let start = out.len();
    put_utf16(out, text);
    let bytes = length::<u32>(out.len().saturating_sub(start));
    patch(out, length_at, &bytes.to_le_bytes());
}
