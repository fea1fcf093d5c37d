//! Decoding replies (RFC 5531 §9, `reply_body`).

use super::call::RemoteCall;
use crate::limits::AUTH_BYTES_MAX;
use crate::rpc::{AcceptError, AuthStat, MSG_REPLY, RejectReason};
use crate::xdr::{Decode, Reader, XdrError};

/// A reply whose header is understood. The results are still bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The number of the call it answers.
    pub xid: u32,
    /// The results, or why there are none.
    pub body: Result<&'a [u8], Refused>,
}

/// Why the server did not carry the call out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The call was denied.
    #[error("the server denied the call: {0}")]
    Denied(RejectReason),
    /// The call was accepted and then failed.
    #[error("the server did not execute the call: {0}")]
    Failed(AcceptError),
}

/// Why a reply holds no results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The server did not carry the call out.
    #[error("call refused")]
    Refused(#[source] Refused),
    /// The results are not what the procedure answers.
    #[error("malformed results")]
    Malformed(#[source] XdrError),
}

impl<'a> Reply<'a> {
    /// Reads the header of the reply in `record`.
    ///
    /// # Errors
    /// [`XdrError`] if the record is no reply.
    #[inline]
    pub fn parse(record: &'a [u8]) -> Result<Self, XdrError> {
        let mut input = Reader::new(record);
        let xid = input.u32()?;
        match input.u32()? {
            MSG_REPLY => {}
            value => return Err(XdrError::BadDiscriminant { what: "msg_type of a reply", value }),
        }
        let body = match input.u32()? {
            0 => {
                let _flavor = input.u32()?;
                input.opaque("verifier", AUTH_BYTES_MAX)?;
                accepted(&mut input)?.map_err(Refused::Failed).map(|()| input.rest())
            }
            1 => Err(Refused::Denied(denied(&mut input)?)),
            value => return Err(XdrError::BadDiscriminant { what: "reply_stat", value }),
        };
        Ok(Self { xid, body })
    }

    /// The results of the call, whose arguments were an `A`.
    ///
    /// # Errors
    /// [`CallError`] if there are none or they are malformed.
    #[inline]
    pub fn results<A: RemoteCall>(&self) -> Result<A::Results<'a>, CallError> {
        let body = self.body.map_err(CallError::Refused)?;
        A::Results::decode(&mut Reader::new(body)).map_err(CallError::Malformed)
    }
}

#[inline]
fn accepted(input: &mut Reader<'_>) -> Result<Result<(), AcceptError>, XdrError> {
    Ok(Err(match input.u32()? {
        0 => return Ok(Ok(())),
        1 => AcceptError::ProgramUnavailable,
        2 => AcceptError::ProgramMismatch { low: input.u32()?, high: input.u32()? },
        3 => AcceptError::ProcedureUnavailable,
        4 => AcceptError::GarbageArgs,
        5 => AcceptError::SystemError,
        value => return Err(XdrError::BadDiscriminant { what: "accept_stat", value }),
    }))
}

fn denied(input: &mut Reader<'_>) -> Result<RejectReason, XdrError> {
    match input.u32()? {
        0 => {
            let (_low, _high) = (input.u32()?, input.u32()?);
            Ok(RejectReason::RpcMismatch)
        }
        1 => input.u32().map(AuthStat).map(RejectReason::AuthError),
        value => Err(XdrError::BadDiscriminant { what: "reject_stat", value }),
    }
}
