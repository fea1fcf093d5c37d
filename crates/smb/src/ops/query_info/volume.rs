//! Information classes of a volume (MS-SMB2 §3.3.5.20.2, MS-FSA §2.1.5.13).

use super::{cut, fits};
use crate::fscc::{FsAttributes, VolumeClass, VolumeInfo};
use crate::host::Host;
use crate::ops::Failure;
use crate::ops::info::volume_id;
use crate::wire::Status;
use alloc::vec::Vec;
use weir_core::Store;
use weir_core::store::FsStat;

/// The kind of file system. Clients derive abilities from this name.
const KIND: &str = "NTFS";

const ABILITIES: FsAttributes = FsAttributes::CASE_PRESERVED_NAMES
    .union(FsAttributes::UNICODE_ON_DISK)
    .union(FsAttributes::PERSISTENT_ACLS)
    .union(FsAttributes::SPARSE_FILES)
    .union(FsAttributes::REPARSE_POINTS)
    .union(FsAttributes::HARD_LINKS);

/// Appends the information of class `class`, at most `max` bytes.
pub(super) async fn query<H: Host>(
    host: &H,
    class: u8,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<Status, Failure> {
    let class = VolumeClass::from_wire(class).ok_or(Status::INVALID_INFO_CLASS)?;
    fits(least_bytes(class), max)?;
    let share = host.share();
    let FsStat { total_bytes, free_bytes, available_bytes, .. } = host.store().fs_stat().await?;
    let serial = share.volume.0;
    let (object_id, created) = volume_id(host).await?;
    let info = VolumeInfo {
        created: created.into(),
        serial,
        label: &share.name,
        kind: KIND,
        attributes: ABILITIES,
        object_id,
        total: total_bytes,
        available: available_bytes,
        free: free_bytes,
    };
    let start = out.len();
    class.encode(&info, out);
    Ok(cut(start, max, out))
}

/// The least room that clients must leave; see the classes of files.
const fn least_bytes(class: VolumeClass) -> usize {
    match class {
        VolumeClass::Volume => 24,
        VolumeClass::Attribute => 16,
        _ => class.fixed_bytes(),
    }
}
