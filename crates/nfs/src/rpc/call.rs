//! The header of a call (RFC 5531 §9, `call_body`).

use super::auth::{AUTH_NONE, AUTH_SYS, AuthSys, Credential};
use super::reply::{AuthStat, RejectReason, Rejection};
use super::{MSG_CALL, RPC_VERSION};
use crate::limits::AUTH_BYTES_MAX;
use crate::xdr::{Decode, Reader, XdrError};
use weir_core::Shared;

/// A call whose header is understood. The arguments are still bytes.
#[derive(Clone, Debug)]
pub struct Call {
    /// The number that ties the reply to the call.
    pub xid: u32,
    /// The program called.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The procedure in it.
    pub procedure: u32,
    /// Who calls.
    pub credential: Credential,
    /// The arguments, within the record they came in.
    pub args: Shared,
}

/// Why a record is not a call to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no call at all, or its header ends early: whoever sends this is not to be talked to.
    /// Close the connection.
    Drop,
    /// It is a call, and this is the answer to it ([`super::reply::reject`]).
    Reply(Rejection),
}

impl Call {
    /// Reads the header of the call in `record`.
    ///
    /// # Errors
    /// [`Refusal::Reply`] for another RPC version (RPC_MISMATCH), a malformed AUTH_NONE or
    /// AUTH_SYS credential (AUTH_BADCRED) or a verifier that does not belong to it (AUTH_BADVERF);
    /// [`Refusal::Drop`] for anything else that is no call.
    #[inline]
    pub fn parse(record: Shared) -> Result<Self, Refusal> {
        let mut input = Reader::new(&record);
        let xid = input.u32()?;
        if input.u32()? != MSG_CALL {
            return Err(Refusal::Drop);
        }
        let refuse = |reason| Refusal::Reply(Rejection { xid, reason });
        if input.u32()? != RPC_VERSION {
            return Err(refuse(RejectReason::RpcMismatch));
        }
        let (program, version, procedure) = (input.u32()?, input.u32()?, input.u32()?);
        let credential =
            credential(&mut input)?.map_err(|stat| refuse(RejectReason::AuthError(stat)))?;
        verifier(&mut input, &credential)?.map_err(|stat| refuse(RejectReason::AuthError(stat)))?;
        let args = record.len().saturating_sub(input.rest().len());
        Ok(Self { xid, program, version, procedure, credential, args: record.skip(args) })
    }
}

/// A header that ends early says nothing that could be answered.
impl From<XdrError> for Refusal {
    fn from(_: XdrError) -> Self {
        Self::Drop
    }
}

/// The flavor and body of an `opaque_auth` (RFC 5531 §8.2), or `refused` if the body is oversize.
#[inline]
fn opaque_auth<'a>(
    input: &mut Reader<'a>,
    refused: AuthStat,
) -> Result<Result<(u32, &'a [u8]), AuthStat>, XdrError> {
    let flavor = input.u32()?;
    match input.opaque("opaque_auth", AUTH_BYTES_MAX) {
        Ok(body) => Ok(Ok((flavor, body))),
        Err(XdrError::TooLong { .. }) => Ok(Err(refused)),
        Err(error) => Err(error),
    }
}

#[inline]
fn credential(input: &mut Reader<'_>) -> Result<Result<Credential, AuthStat>, XdrError> {
    let (flavor, body) = match opaque_auth(input, AuthStat::BADCRED)? {
        Ok(auth) => auth,
        Err(stat) => return Ok(Err(stat)),
    };
    let mut body = Reader::new(body);
    Ok(match flavor {
        AUTH_NONE => body.finish().map(|()| Credential::None),
        AUTH_SYS => AuthSys::decode(&mut body).map(Credential::Sys),
        other => Ok(Credential::Other(other)),
    }
    .map_err(|_| AuthStat::BADCRED))
}

/// The verifier of AUTH_NONE and AUTH_SYS is AUTH_NONE and empty (RFC 5531 §8.2, appendix A).
#[inline]
fn verifier(
    input: &mut Reader<'_>,
    credential: &Credential,
) -> Result<Result<(), AuthStat>, XdrError> {
    let (flavor, body) = match opaque_auth(input, AuthStat::BADVERF)? {
        Ok(auth) => auth,
        Err(stat) => return Ok(Err(stat)),
    };
    let ours = flavor == AUTH_NONE && body.is_empty();
    let fits = ours || matches!(credential, Credential::Other(_));
    Ok(if fits { Ok(()) } else { Err(AuthStat::BADVERF) })
}
