//! Understanding a reply from its front.

use super::status;
use crate::engine::job::Request;
use crate::workload::Stability;
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{Fattr3, Status, WccData, WriteOk};
use weir_nfs::xdr::{Decode, Reader, XdrError};

/// What a reply says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The operation succeeded and moved so many bytes.
    Done(u64),
    /// It did not, for the reason in words.
    Failed(String),
}

/// The xid of the reply that begins with `head`.
#[inline]
pub(super) fn xid(head: &[u8]) -> Option<u32> {
    head.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// What the reply that begins with `head` says about `request`, which asked for a block of
/// `block` bytes, written with `stability`.
#[inline]
pub(super) fn outcome(
    head: &[u8],
    request: &Request,
    block: u32,
    stability: Stability,
) -> Result<Outcome, XdrError> {
    let body = match Reply::parse(head)?.body {
        Ok(body) => body,
        Err(refused) => return Ok(Outcome::Failed(refused.to_string())),
    };
    if matches!(request, Request::Null) {
        return Ok(Outcome::Done(0));
    }
    let mut input = Reader::new(body);
    let status = Status::decode(&mut input)?;
    if !status.is_ok() {
        return Ok(Outcome::Failed(status::name(status)));
    }
    match request {
        Request::Read { .. } => read(&mut input, block),
        Request::Write { .. } => write(&mut input, block, stability),
        _ => Ok(Outcome::Done(0)),
    }
}

/// RFC 1813 §3.3.6, up to the data.
fn read(input: &mut Reader<'_>, block: u32) -> Result<Outcome, XdrError> {
    if input.bool()? {
        input.bytes(Fattr3::BYTES)?;
    }
    let count = input.u32()?;
    if count != block {
        return Ok(Outcome::Failed(format!("short read: {count} of {block} bytes")));
    }
    Ok(Outcome::Done(u64::from(count)))
}

/// RFC 1813 §3.3.7.
fn write(input: &mut Reader<'_>, block: u32, stability: Stability) -> Result<Outcome, XdrError> {
    let WriteOk { file_wcc: WccData { .. }, count, committed, .. } = WriteOk::decode(input)?;
    if count != block {
        return Ok(Outcome::Failed(format!("short write: {count} of {block} bytes")));
    }
    if (committed as u32) < super::calls::stable_how(stability) as u32 {
        return Ok(Outcome::Failed("write less stable than asked for".to_owned()));
    }
    Ok(Outcome::Done(u64::from(count)))
}
