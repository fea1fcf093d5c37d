//! Understanding a reply from its front.

use super::status;
use super::verifiers::Verifier;
use crate::engine::job::Request;
use crate::engine::net::{Data, Outcome};
use crate::workload::Stability;
use weir_nfs::client::{RemoteCall, Reply};
use weir_nfs::v3::wire::{CommitOk, CreateArgs, Fattr3, ReadArgs, Res, Status, WccData, WriteOk};
use weir_nfs::xdr::{Decode, Reader, XdrError};

/// The xid of the reply that begins with `head`.
#[inline]
pub(super) fn xid(head: &[u8]) -> Option<u32> {
    head.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// The outcome in the reply that begins with `head`, and is so many bytes long, to `request`, which
/// asked for `stability` if it writes; and the write verifier of a successful WRITE or COMMIT.
#[inline]
pub(super) fn outcome(
    (head, record_bytes): (&[u8], usize),
    request: &Request,
    stability: Stability,
) -> Result<(Outcome, Option<Verifier>), XdrError> {
    let body = match Reply::parse(head)?.body {
        Ok(body) => body,
        Err(refused) => return Ok((Outcome::Failed(refused.to_string()), None)),
    };
    if matches!(request, Request::Null) {
        return Ok((Outcome::Done(0), None));
    }
    let mut input = Reader::new(body);
    let status = Status::decode(&mut input)?;
    if status == Status::NOENT {
        return Ok((Outcome::Absent("NFS3ERR_NOENT"), None));
    }
    if !status.is_ok() {
        return Ok((Outcome::Failed(status::name(status)), None));
    }
    match request {
        Request::Read { bytes, .. } => {
            let behind = record_bytes.saturating_sub(head.len());
            Ok((read(&mut input, *bytes, behind)?, None))
        }
        Request::Write { bytes, .. } | Request::Fill { bytes, .. } => {
            write(&mut input, *bytes, stability)
        }
        Request::Commit { .. } => {
            let CommitOk { file_wcc: WccData { .. }, verifier } = CommitOk::decode(&mut input)?;
            Ok((Outcome::Done(0), Some(verifier)))
        }
        _ => Ok((Outcome::Done(0), None)),
    }
}

/// RFC 1813 §3.3.6, up to the data. `behind` bytes of the record are not in `input`.
fn read(input: &mut Reader<'_>, wanted: u32, behind: usize) -> Result<Outcome, XdrError> {
    if input.bool()? {
        input.bytes(Fattr3::BYTES)?;
    }
    let count = input.u32()?;
    let eof = input.bool()?;
    let brought = input.u32()?;
    let room = usize::try_from(brought).unwrap_or(usize::MAX).saturating_sub(input.rest().len());
    if brought != count || room > behind {
        return Ok(Outcome::Failed("a READ reply without the data that it announces".to_owned()));
    }
    if eof && count < wanted {
        return Ok(Outcome::ended(count, wanted));
    }
    Ok(Outcome::moved("read", count, wanted))
}

/// The data in `record`, the whole reply to `request`. `None` if it is no successful read.
pub(super) fn read_data<'a>(
    record: &'a [u8],
    request: &Request,
) -> Result<Option<Data<'a>>, XdrError> {
    let Request::Read { bytes, .. } = *request else { return Ok(None) };
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    let Ok(body) = Reply::parse(record)?.body else { return Ok(None) };
    match <ReadArgs<'_> as RemoteCall>::Results::decode(&mut Reader::new(body))? {
        Res::Ok(ok) if ok.eof || ok.data.len() >= wanted => Ok(Some(Data::Last(ok.data))),
        Res::Ok(ok) => Ok(Some(Data::Part(ok.data))),
        Res::Fail(..) => Ok(None),
    }
}

/// RFC 1813 §3.3.7.
fn write(
    input: &mut Reader<'_>,
    wanted: u32,
    stability: Stability,
) -> Result<(Outcome, Option<Verifier>), XdrError> {
    let WriteOk { file_wcc: WccData { .. }, count, committed, verifier } = WriteOk::decode(input)?;
    let outcome = if (committed as u32) < super::calls::stable_how(stability) as u32 {
        Outcome::Failed("write less stable than requested".to_owned())
    } else {
        Outcome::moved("write", count, wanted)
    };
    Ok((outcome, Some(verifier)))
}

/// The handle of what a successful CREATE made, if the server gives it (RFC 1813 §3.3.8).
pub(super) fn created(record: &[u8]) -> Result<Option<Box<[u8]>>, XdrError> {
    let Ok(body) = Reply::parse(record)?.body else { return Ok(None) };
    match <CreateArgs<'_> as RemoteCall>::Results::decode(&mut Reader::new(body))? {
        Res::Ok(ok) => Ok(ok.object.map(|handle| handle.0.into())),
        Res::Fail(..) => Ok(None),
    }
}
