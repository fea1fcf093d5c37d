//! FileEndOfFileInformation and FileAllocationInformation (MS-FSA §2.1.5.15.4, §2.1.5.15.1).
//!
//! A change of size is a write of the bytes that it cuts off or adds, and heeds locks as such.
//! Space is never allocated ahead: the quota of the volume is checked when data is written.

use crate::host::Host;
use crate::ops::Failure;
use crate::ops::info::granted;
use crate::wire::{AccessMask, Status};
use weir_core::Store;
use weir_state::{Mode, Range};

/// Cuts the file to `size` bytes, or grows it with a hole.
pub(super) async fn set_end<H: Host>(host: &H, open: &H::Open, size: u64) -> Result<(), Failure> {
    writable::<H>(open)?;
    let now = host.store().attr(&open.object).await?.size;
    resize(host, open, now, size).await
}

/// Cuts the file to `size` bytes if it is larger. Nothing is allocated ahead, but more than the
/// volume can hold is refused.
pub(super) async fn allocate<H: Host>(host: &H, open: &H::Open, size: u64) -> Result<(), Failure> {
    writable::<H>(open)?;
    if size > host.store().fs_stat().await?.total_bytes {
        return Err(Status::DISK_FULL.into());
    }
    let now = host.store().attr(&open.object).await?.size;
    resize(host, open, now, size.min(now)).await
}

fn writable<H: Host>(open: &H::Open) -> Result<(), Failure> {
    granted(open, AccessMask::WRITE_DATA)?;
    if open.is_directory() { Err(Status::INVALID_PARAMETER.into()) } else { Ok(()) }
}

async fn resize<H: Host>(host: &H, open: &H::Open, now: u64, size: u64) -> Result<(), Failure> {
    if now == size {
        return Ok(());
    }
    let range = Range::new(now.min(size), now.abs_diff(size));
    let io = host.begin_io(open, range, Mode::Exclusive).await?;
    let done = host.store().set_size(&open.object, size).await;
    drop(io);
    done?;
    Ok(())
}
