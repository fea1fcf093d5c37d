//! Stable storage: the part of FLUSH and of opens for write-through that all commands share.
//!
//! Changes of names are answered when they would survive the end of the server's process. A power
//! cut may undo those that no FLUSH followed.

use crate::host::Host;
use weir_core::{FileKind, FsResult, Store};

/// Makes an open's data and attributes, the entries of a directory, and the name by which it was
/// opened safe from a power cut.
pub(super) async fn stabilize<H: Host>(host: &H, open: &H::Open) -> FsResult<()> {
    // Nothing else has data, and not all of it can be synced by itself.
    if matches!(open.kind, FileKind::Regular | FileKind::Directory) {
        host.store().stabilize(&open.object).await?;
    }
    let dir = host.with(open, |state| state.place.as_ref().map(|place| place.dir.clone()));
    match dir {
        Some(dir) => host.store().stabilize(&dir).await,
        None => Ok(()),
    }
}

/// The same, for opens for write-through alone.
pub(super) async fn write_through<H: Host>(host: &H, open: &H::Open) -> FsResult<()> {
    if open.is_write_through() { stabilize(host, open).await } else { Ok(()) }
}
