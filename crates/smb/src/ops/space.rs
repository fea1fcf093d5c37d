//! Storage that clients ask for before they write. Nothing is allocated ahead: the quota of the
//! volume is checked when data is written.

use super::error::status;
use crate::host::Host;
use crate::wire::Status;
use weir_core::Store;

/// Fails for a file of more `bytes` than the volume can hold (MS-FSA §2.1.5.1.1, §2.1.5.15.1).
///
/// # Errors
/// [`Status::DISK_FULL`], and others if the store does not tell its size.
pub(super) async fn check_allocation<H: Host>(host: &H, bytes: u64) -> Result<(), Status> {
    let volume = host.store().fs_stat().await.map_err(status)?;
    if bytes > volume.total_bytes { Err(Status::DISK_FULL) } else { Ok(()) }
}
