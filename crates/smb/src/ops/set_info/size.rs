//! FileEndOfFileInformation and FileAllocationInformation (MS-FSA §2.1.5.15.4, §2.1.5.15.1).
//!
//! A change of size is a write of the bytes that it cuts off or adds, and heeds locks as such.

use crate::host::Host;
use crate::ops::Failure;
use crate::ops::info::granted;
use crate::ops::space::check_allocation;
use crate::wire::{AccessMask, Status};
use weir_core::Store;
use weir_state::{Mode, Range};

/// Cuts the file to `size` bytes, or grows it with a hole.
pub(super) async fn set_end<H: Host>(host: &H, open: &H::Open, size: u64) -> Result<(), Failure> {
    writable::<H>(open)?;
    resize(host, open, size, |now| now != size).await
}

/// Cuts the file to `size` bytes if it is larger. Nothing is allocated ahead, but more than the
/// volume can hold is refused.
pub(super) async fn allocate<H: Host>(host: &H, open: &H::Open, size: u64) -> Result<(), Failure> {
    writable::<H>(open)?;
    check_allocation(host, size).await?;
    resize(host, open, size, |now| now > size).await
}

fn writable<H: Host>(open: &H::Open) -> Result<(), Failure> {
    granted(open, AccessMask::WRITE_DATA)?;
    if open.is_directory() { Err(Status::INVALID_PARAMETER.into()) } else { Ok(()) }
}

/// Gives the file `size` bytes if that `is_due` for its present size.
async fn resize<H: Host>(
    host: &H,
    open: &H::Open,
    size: u64,
    is_due: impl Fn(u64) -> bool,
) -> Result<(), Failure> {
    let store = host.store();
    let before = store.attr(&open.object).await?.size;
    if !is_due(before) {
        return Ok(());
    }
    let range = Range::new(before.min(size), before.abs_diff(size));
    let mut io = host.begin_io(open, range, Mode::Exclusive).await?;
    let mut now = store.attr(&open.object).await?.size;
    if now != before {
        // Somebody else has changed the size since: any byte may be cut off now.
        io = host.begin_io(open, Some(Range::ALL), Mode::Exclusive).await?;
        now = store.attr(&open.object).await?.size;
    }
    if is_due(now) {
        store.set_size(&open.object, size).await?;
    }
    drop(io);
    Ok(())
}
