//! Replies (RFC 5531 §9, `reply_body`), each a complete record with its mark in front.
//!
//! The vectors handed in are pooled buffers: their content is dropped, their capacity is used.

use super::auth::AUTH_NONE;
use super::{LAST_FRAGMENT, MSG_REPLY, RPC_VERSION};
use crate::xdr::Writer;
use alloc::vec::Vec;

/// Room made for a reply at once, in bytes: enough for every reply without payload.
const RESERVE_BYTES: usize = 512;

const MARK_BYTES: usize = 4;
const MSG_ACCEPTED: u32 = 0;
const MSG_DENIED: u32 = 1;
const REJECT_RPC_MISMATCH: u32 = 0;
const REJECT_AUTH_ERROR: u32 = 1;
const ACCEPT_SUCCESS: u32 = 0;

/// Why an accepted call was not carried out (RFC 5531 §9, `accept_stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptError {
    /// PROG_UNAVAIL: no such program here.
    ProgramUnavailable,
    /// PROG_MISMATCH: the program is here, but not in that version.
    ProgramMismatch {
        /// Lowest version spoken.
        low: u32,
        /// Highest version spoken.
        high: u32,
    },
    /// PROC_UNAVAIL: the program has no such procedure.
    ProcedureUnavailable,
    /// GARBAGE_ARGS: the arguments can't be decoded.
    GarbageArgs,
    /// SYSTEM_ERR: the server is out of memory or the like.
    SystemError,
}

/// Why a caller's identity was not accepted (RFC 5531 §9, `auth_stat`). Unknown values survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthStat(pub u32);

impl AuthStat {
    /// AUTH_BADCRED: the credential is malformed.
    pub const BADCRED: Self = Self(1);
    /// AUTH_REJECTEDCRED: the client must begin a new session.
    pub const REJECTEDCRED: Self = Self(2);
    /// AUTH_BADVERF: the verifier is malformed.
    pub const BADVERF: Self = Self(3);
    /// AUTH_REJECTEDVERF: the verifier expired or was used before.
    pub const REJECTEDVERF: Self = Self(4);
    /// AUTH_TOOWEAK: refused for security reasons; the flavor is not enough or not spoken.
    pub const TOOWEAK: Self = Self(5);
}

/// A denied call (RFC 5531 §9, `rejected_reply`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The call's number.
    pub xid: u32,
    /// Why it was denied.
    pub reason: RejectReason,
}

/// Why a call was denied (RFC 5531 §9, `reject_stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// RPC_MISMATCH: only version 2 is spoken.
    RpcMismatch,
    /// AUTH_ERROR: the caller's identity was not accepted.
    AuthError(AuthStat),
}

/// Starts the reply to a call that was carried out. The result is to be appended, then
/// [`finish`] called.
#[inline]
#[must_use]
pub fn begin(reply: Vec<u8>, xid: u32) -> Writer {
    accepted(reply, xid, ACCEPT_SUCCESS)
}

/// Ends the reply in `writer`: patches the record mark at its front.
#[inline]
#[must_use]
pub fn finish(mut writer: Writer) -> Vec<u8> {
    let len = writer.position().saturating_sub(MARK_BYTES);
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    writer.patch(0, &(len | LAST_FRAGMENT).to_be_bytes());
    writer.into_vec()
}

/// The whole reply to an accepted call that was not carried out.
#[must_use]
pub fn error(reply: Vec<u8>, xid: u32, error: AcceptError) -> Vec<u8> {
    let (stat, versions) = match error {
        AcceptError::ProgramUnavailable => (1, None),
        AcceptError::ProgramMismatch { low, high } => (2, Some((low, high))),
        AcceptError::ProcedureUnavailable => (3, None),
        AcceptError::GarbageArgs => (4, None),
        AcceptError::SystemError => (5, None),
    };
    let mut out = accepted(reply, xid, stat);
    if let Some((low, high)) = versions {
        out.u32(low);
        out.u32(high);
    }
    finish(out)
}

/// The whole reply to a denied call.
#[must_use]
pub fn reject(mut reply: Vec<u8>, rejection: &Rejection) -> Vec<u8> {
    reply.clear();
    let mut out = Writer::new(reply);
    out.u32(0);
    out.u32(rejection.xid);
    out.u32(MSG_REPLY);
    out.u32(MSG_DENIED);
    match rejection.reason {
        RejectReason::RpcMismatch => {
            out.u32(REJECT_RPC_MISMATCH);
            out.u32(RPC_VERSION);
            out.u32(RPC_VERSION);
        }
        RejectReason::AuthError(stat) => {
            out.u32(REJECT_AUTH_ERROR);
            out.u32(stat.0);
        }
    }
    finish(out)
}

/// Mark, header, AUTH_NONE verifier and `accept_stat`, as one block.
#[inline]
fn accepted(mut reply: Vec<u8>, xid: u32, stat: u32) -> Writer {
    let mut head = [0; 28];
    head[4..8].copy_from_slice(&xid.to_be_bytes());
    head[8..12].copy_from_slice(&MSG_REPLY.to_be_bytes());
    head[12..16].copy_from_slice(&MSG_ACCEPTED.to_be_bytes());
    head[16..20].copy_from_slice(&AUTH_NONE.to_be_bytes());
    head[24..28].copy_from_slice(&stat.to_be_bytes());
    reply.clear();
    reply.reserve(RESERVE_BYTES);
    reply.extend_from_slice(&head);
    Writer::new(reply)
}
