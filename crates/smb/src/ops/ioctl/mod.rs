//! IOCTL (MS-SMB2 §3.3.5.15): the controls of file systems that clients need.
//!
//! | control | answer |
//! |---|---|
//! | sparse, zero data, allocated ranges | [`sparse`] |
//! | resume key, copies | [`copy`] |
//! | target of a symbolic link | [`reparse`] |
//! | compression | none, and none can be set |
//! | object identifiers | the ones that an object has; none can be set |
//! | DFS, network interfaces | refused; see [`without_file`] |
//! | all others, those of pipes among them | INVALID_DEVICE_REQUEST |

mod copy;
mod reparse;
mod sparse;
#[cfg(test)]
mod tests;

use super::info::{self, granted};
use super::{Context, Done, Failure, Outcome};
use crate::fscc::{OBJECT_ID_BYTES, encode_object_id};
use crate::host::{Host, ObjectOf};
use crate::le::{Reader, put};
use crate::limits::IO_BYTES_MAX;
use crate::open::Open;
use crate::wire::{
    AccessMask, Command, ControlCode, FileId, Header, IoctlFlags, IoctlReply, IoctlRequest, Status,
};
use alloc::vec::Vec;
use weir_core::Store;

/// COMPRESSION_FORMAT_NONE.
const NO_COMPRESSION: u16 = 0;

pub(super) async fn ioctl<H: Host>(cx: &Context<'_, H>, out: &mut Vec<u8>) -> Outcome {
    let request = IoctlRequest::decode(cx.message)?;
    if !request.flags.contains(IoctlFlags::IS_FSCTL) {
        return Err(Status::NOT_SUPPORTED.into());
    }
    without_file(&request)?;
    if request.max_input > IO_BYTES_MAX || request.max_output > IO_BYTES_MAX {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let open = cx.open(request.file)?;
    let max =
        (request.max_output as usize).min(cx.response_max.saturating_sub(IoctlReply::HEAD_BYTES));
    let input = request.input.bytes;
    let reply = IoctlReply::begin(out);
    let status = match request.code {
        ControlCode::SET_SPARSE => sparse::set(cx.host, &open, input).await?,
        ControlCode::SET_ZERO_DATA => sparse::zero(cx.host, &open, input).await?,
        ControlCode::QUERY_ALLOCATED_RANGES => {
            sparse::allocated(cx.host, &open, input, max, out).await?
        }
        ControlCode::SRV_REQUEST_RESUME_KEY => copy::resume_key(&open, max, out)?,
        ControlCode::SRV_COPYCHUNK | ControlCode::SRV_COPYCHUNK_WRITE => {
            let readable = request.code == ControlCode::SRV_COPYCHUNK;
            copy::copy(cx.host, (&open, readable), input, max, out).await?
        }
        ControlCode::GET_REPARSE_POINT => reparse::get(cx.host, &open, max, out).await?,
        ControlCode::CREATE_OR_GET_OBJECT_ID => identify(cx.host, &open, max, out).await?,
        ControlCode::GET_COMPRESSION if max < 2 => return Err(Status::BUFFER_TOO_SMALL.into()),
        ControlCode::GET_COMPRESSION => {
            put!(out; NO_COMPRESSION);
            Status::SUCCESS
        }
        ControlCode::SET_COMPRESSION => {
            granted(&open, AccessMask::WRITE_DATA)?;
            match Reader::new(input).u16() {
                Ok(NO_COMPRESSION) => Status::SUCCESS,
                Ok(_) => return Err(Status::NOT_SUPPORTED.into()),
                Err(_) => return Err(Status::INVALID_PARAMETER.into()),
            }
        }
        _ => return Err(Status::INVALID_DEVICE_REQUEST.into()),
    };
    reply.finish(out, request.code, open.id);
    Ok(Done::on(open.id).with(status))
}

/// FSCTL_CREATE_OR_GET_OBJECT_ID (MS-FSA §2.1.5.10.1): every object has an identifier.
async fn identify<H: Host>(
    host: &H,
    open: &Open<ObjectOf<H>>,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<Status, Failure> {
    if max < OBJECT_ID_BYTES {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let object = host.store().attr(&open.object).await?.fileid;
    let (volume, _) = info::volume_id(host).await?;
    encode_object_id(&info::object_id(object, open.key.birth()), &volume, out);
    Ok(Status::SUCCESS)
}

/// Does this request end its connection? FSCTL_VALIDATE_NEGOTIATE_INFO does, since in dialect 3.1.1
/// no client sends it (MS-SMB2 §3.3.5.15.12). `message` begins at its header; asked of every
/// element of a compound before it is run.
#[must_use]
pub fn ends_connection(header: &Header, message: &[u8]) -> bool {
    header.command == Ok(Command::Ioctl)
        && IoctlRequest::decode(message)
            .is_ok_and(|request| request.code == ControlCode::VALIDATE_NEGOTIATE_INFO)
}

/// Refuses the controls that are about the server and not about a file.
///
/// # Errors
/// [`Status::INVALID_PARAMETER`] if they name a file, [`Status::FS_DRIVER_REQUIRED`] for the
/// targets of DFS paths, of which there are none, and [`Status::NOT_SUPPORTED`].
pub(super) fn without_file(request: &IoctlRequest<'_>) -> Result<(), Failure> {
    let status = match request.code {
        ControlCode::DFS_GET_REFERRALS | ControlCode::DFS_GET_REFERRALS_EX => {
            Status::FS_DRIVER_REQUIRED
        }
        ControlCode::QUERY_NETWORK_INTERFACE_INFO | ControlCode::VALIDATE_NEGOTIATE_INFO => {
            Status::NOT_SUPPORTED
        }
        _ => return Ok(()),
    };
    let named = request.file != FileId::PREVIOUS;
    Err(if named { Status::INVALID_PARAMETER } else { status }.into())
}
