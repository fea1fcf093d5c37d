//! FSCTL_GET_REPARSE_POINT (MS-FSA §2.1.5.10): the target of a symbolic link that was opened
//! itself, as symbolic link reparse data (MS-FSCC §2.1.2.4).

use crate::host::Host;
use crate::le::put;
use crate::ops::Failure;
use crate::ops::info::wire_path;
use crate::wire::{REPARSE_TAG_SYMLINK, Status};
use alloc::vec::Vec;
use weir_core::limits::SYMLINK_BYTES_MAX;
use weir_core::{FileKind, Store};

/// Bytes of the data before its length counts.
const HEAD_BYTES: usize = 8;
/// Offsets, lengths and flags of the names.
const NAMES_BYTES: u16 = 12;
/// SYMLINK_FLAG_RELATIVE.
const RELATIVE: u32 = 1;

const _: () = assert!(SYMLINK_BYTES_MAX * 4 + (NAMES_BYTES as usize) < u16::MAX as usize);

/// Appends the target. One from the top of a file system on is a place that only the client may
/// know.
pub(super) async fn get<H: Host>(
    host: &H,
    open: &H::Open,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<Status, Failure> {
    if open.kind != FileKind::Symlink {
        return Err(Status::NOT_A_REPARSE_POINT.into());
    }
    if max < HEAD_BYTES {
        return Err(Status::BUFFER_TOO_SMALL.into());
    }
    let target = host.store().read_link(&open.object).await?;
    let flags = if target.starts_with(b"/") { 0 } else { RELATIVE };
    let name = wire_path(&target);
    let bytes = u16::try_from(name.len()).map_err(|_| Status::INSUFFICIENT_RESOURCES)?;
    let length = bytes.saturating_mul(2).saturating_add(NAMES_BYTES);
    let start = out.len();
    put!(out; REPARSE_TAG_SYMLINK, length, 0u16);
    // The name to follow, and the one to show.
    put!(out; 0u16, bytes, bytes, bytes, flags);
    out.extend_from_slice(&name);
    out.extend_from_slice(&name);
    let most = start.saturating_add(max);
    if out.len() > most {
        out.truncate(most);
        return Ok(Status::BUFFER_OVERFLOW);
    }
    Ok(Status::SUCCESS)
}
