//! QUERY_INFO (MS-SMB2 §3.3.5.20): what a file, its volume or its security descriptor says.
//!
//! Quotas of users are not kept; the volume's own is the size of the file system. Not here: the
//! forms of the information classes.

mod file;
mod security;
mod volume;

#[cfg(test)]
mod tests;

use super::{Context, Done, Failure, Outcome};
use crate::host::Host;
use crate::limits::IO_BYTES_MAX;
use crate::wire::{InfoType, OutputReply, QueryInfoRequest, Status};
use alloc::vec::Vec;

pub(super) async fn query_info<H: Host>(cx: &Context<'_, H>, out: &mut Vec<u8>) -> Outcome {
    let request = QueryInfoRequest::decode(cx.message)?;
    let open = cx.open(request.file)?;
    if request.max_output > IO_BYTES_MAX {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let max =
        (request.max_output as usize).min(cx.response_max.saturating_sub(OutputReply::HEAD_BYTES));
    let reply = OutputReply::begin(out);
    let status = match request.info_type {
        InfoType::FILE => file::query(cx.host, &open, request.class, max, out).await?,
        InfoType::FILESYSTEM => volume::query(cx.host, request.class, max, out).await?,
        InfoType::SECURITY => {
            security::query(cx.host, &open, request.security, max, out).await?;
            Status::SUCCESS
        }
        InfoType::QUOTA => return Err(Status::NOT_SUPPORTED.into()),
        _ => return Err(Status::INVALID_PARAMETER.into()),
    };
    reply.finish(out);
    Ok(Done::on(open.id).with(status))
}

/// Fails if there is no room for the part that all information of a class has.
fn fits(least: usize, max: usize) -> Result<(), Failure> {
    if max < least { Err(Status::INFO_LENGTH_MISMATCH.into()) } else { Ok(()) }
}

/// Cuts what was appended after `start` to `max` bytes.
fn cut(start: usize, max: usize, out: &mut Vec<u8>) -> Status {
    let most = start.saturating_add(max);
    if out.len() <= most {
        return Status::SUCCESS;
    }
    out.truncate(most);
    Status::BUFFER_OVERFLOW
}
