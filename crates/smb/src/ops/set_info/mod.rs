//! SET_INFO (MS-SMB2 §3.3.5.21): changes of a file's times, attributes, size, names, deletion and
//! security descriptor. There are no extended attributes, quotas of users, or settings of a volume.
//!
//! Through an open for write-through a change of size or name is on stable storage before it is
//! answered. Not here: the forms of the information classes.

mod basic;
mod disposition;
mod names;
mod security;
mod size;
mod target;
#[cfg(test)]
mod tests;

use super::info::{FULL_EA, granted};
use super::stable::{stabilize, write_through};
use super::{Context, Done, Failure, Outcome};
use crate::fscc::{self, InfoError};
use crate::host::Host;
use crate::open::Open;
use crate::wire::{AccessMask, CreateOptions, InfoType, SetInfoRequest, SetInfoResponse, Status};
use alloc::vec::Vec;

/// FileFsControlInformation and FileFsObjectIdInformation, which other file systems can set.
const VOLUME_CLASSES: [u8; 2] = [6, 8];

impl From<InfoError> for Failure {
    fn from(error: InfoError) -> Self {
        match error {
            InfoError::Length => Status::INFO_LENGTH_MISMATCH,
            InfoError::Value => Status::INVALID_PARAMETER,
        }
        .into()
    }
}

pub(super) async fn set_info<H: Host>(cx: &Context<'_, H>, out: &mut Vec<u8>) -> Outcome {
    let request = SetInfoRequest::decode(cx.message)?;
    let open = cx.open(request.file)?;
    let info = request.info.bytes;
    match request.info_type {
        InfoType::FILE => of_file(cx.host, &open, request.class, info).await?,
        InfoType::SECURITY => security::set(cx.host, &open, request.security, info).await?,
        InfoType::FILESYSTEM if !VOLUME_CLASSES.contains(&request.class) => {
            return Err(Status::INVALID_INFO_CLASS.into());
        }
        InfoType::FILESYSTEM | InfoType::QUOTA => return Err(Status::NOT_SUPPORTED.into()),
        _ => return Err(Status::INVALID_PARAMETER.into()),
    }
    SetInfoResponse.encode(out);
    Ok(Done::on(open.id))
}

async fn of_file<H: Host>(
    host: &H,
    open: &H::Open,
    class: u8,
    bytes: &[u8],
) -> Result<(), Failure> {
    let Some(info) = fscc::SetInfo::decode(class, bytes)? else {
        return Err(without(open, class).into());
    };
    match info {
        fscc::SetInfo::Basic(set) => basic::set(host, open, &set).await?,
        fscc::SetInfo::Disposition(flags) => return disposition::set(host, open, flags).await,
        fscc::SetInfo::Position(position) => {
            host.with(open, |state| state.position = position);
            return Ok(());
        }
        fscc::SetInfo::Mode(mode) => return set_mode(host, open, mode).await,
        // Only a client with a privilege over the whole volume may show what was there before.
        fscc::SetInfo::ValidDataLength(_) => {
            granted(open, AccessMask::WRITE_DATA)?;
            return Err(Status::PRIVILEGE_NOT_HELD.into());
        }
        fscc::SetInfo::EndOfFile(bytes) => size::set_end(host, open, bytes).await?,
        fscc::SetInfo::Allocation(bytes) => size::allocate(host, open, bytes).await?,
        fscc::SetInfo::Rename(target) => names::rename(host, open, &target).await?,
        fscc::SetInfo::Link(target) => names::link(host, open, &target).await?,
    }
    Ok(write_through(host, open).await?)
}

/// The status of a class that cannot be set.
fn without<O>(open: &Open<O>, class: u8) -> Status {
    match class {
        FULL_EA => granted(open, AccessMask::WRITE_EA).err().unwrap_or(Status::EAS_NOT_SUPPORTED),
        _ => Status::INVALID_INFO_CLASS,
    }
}

/// Sets the mode (MS-FSA §2.1.5.15.7): write-through, which WRITE and other changes heed from then
/// on, and sequential access, which is only shown again. The rest of the mode stays as it was
/// opened. Windows leaves write-through as it is where a file is opened without intermediate
/// buffering; here the page cache is between such opens and the disk as well.
async fn set_mode<H: Host>(host: &H, open: &H::Open, mode: u32) -> Result<(), Failure> {
    let settable = CreateOptions::WRITE_THROUGH | CreateOptions::SEQUENTIAL_ONLY;
    let mode = CreateOptions::from_bits_retain(mode);
    if !settable.contains(mode) {
        return Err(Status::INVALID_PARAMETER.into());
    }
    // As after a CREATE for write-through, later writes need no name to be made stable.
    if mode.contains(CreateOptions::WRITE_THROUGH) && !open.is_write_through() {
        stabilize(host, open).await?;
    }
    open.mode.set(open.mode.get().difference(settable) | mode);
    Ok(())
}
