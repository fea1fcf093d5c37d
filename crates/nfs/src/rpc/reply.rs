//! Replies (RFC 5531 §9, `reply_body`), each a complete record with its mark in front.
//!
//! The vectors handed in are pooled buffers: their content is dropped, their capacity is used.

use super::auth::AUTH_NONE;
use super::{LAST_FRAGMENT, MSG_REPLY, RPC_VERSION};
use crate::xdr::Writer;
use alloc::vec::Vec;
use core::fmt;

/// Room made for a reply at once, in bytes: enough for every reply without payload.
const RESERVE_BYTES: usize = 512;

const MARK_BYTES: usize = 4;
const MSG_ACCEPTED: u32 = 0;
const MSG_DENIED: u32 = 1;
const REJECT_RPC_MISMATCH: u32 = 0;
const REJECT_AUTH_ERROR: u32 = 1;
const ACCEPT_SUCCESS: u32 = 0;

/// Why an accepted call was not carried out (RFC 5531 §9, `accept_stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// PROG_UNAVAIL: no such program here.
    #[error("PROG_UNAVAIL: it does not serve this program")]
    ProgramUnavailable,
    /// PROG_MISMATCH: the program is here, but not in that version.
    #[error("PROG_MISMATCH: it serves versions {low} to {high} of this program")]
    ProgramMismatch {
        /// Lowest version spoken.
        low: u32,
        /// Highest version spoken.
        high: u32,
    },
    /// PROC_UNAVAIL: the program has no such procedure.
    #[error("PROC_UNAVAIL: its program does not have this procedure")]
    ProcedureUnavailable,
    /// GARBAGE_ARGS: the arguments can't be decoded.
    #[error("GARBAGE_ARGS: it cannot decode the arguments")]
    GarbageArgs,
    /// SYSTEM_ERR: the server is out of memory or the like.
    #[error("SYSTEM_ERR: it is out of memory, or the like")]
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

impl fmt::Display for AuthStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::BADCRED => "AUTH_BADCRED: the credential is malformed",
            Self::REJECTEDCRED => "AUTH_REJECTEDCRED: the client must begin a new session",
            Self::BADVERF => "AUTH_BADVERF: the verifier is malformed",
            Self::REJECTEDVERF => "AUTH_REJECTEDVERF: the verifier expired",
            Self::TOOWEAK => "AUTH_TOOWEAK: the credential is not enough",
            Self(value) => return write!(f, "auth_stat {value}"),
        })
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectReason {
    /// RPC_MISMATCH: only version 2 is spoken.
    #[error("RPC_MISMATCH: it does not speak version 2 of RPC")]
    RpcMismatch,
    /// AUTH_ERROR: the caller's identity was not accepted.
    #[error("{0}")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Refused, Reply};
    use crate::v3::wire::samples::{hex, packed};
    use crate::xdr::XdrError;
    use nfs3_types::rpc as theirs;

    fn their_reply(body: theirs::reply_body<'static>) -> Vec<u8> {
        let message = packed(&theirs::rpc_msg { xid: 7, body: theirs::msg_body::REPLY(body) });
        let mark = theirs::fragment_header::new(u32::try_from(message.len()).unwrap(), true);
        [packed(&mark), message].concat()
    }

    fn their_accepted(reply_data: theirs::accept_stat_data) -> Vec<u8> {
        let verf = theirs::opaque_auth::default();
        their_reply(theirs::reply_body::MSG_ACCEPTED(theirs::accepted_reply { verf, reply_data }))
    }

    #[test]
    fn success_has_its_mark_patched_and_the_results_behind_it() {
        let mut out = begin(b"left from before".to_vec(), 7);
        out.u32(0x0a0b_0c0d);
        let reply = finish(out);
        let head = "8000001c 00000007 00000001 00000000 00000000 00000000 00000000";
        assert_eq!(reply, hex(&[head, "0a0b0c0d"]));
        assert_eq!(finish(begin(Vec::new(), 7)), their_accepted(theirs::accept_stat_data::SUCCESS));
        let read = Reply { xid: 7, body: Ok(&[10, 11, 12, 13][..]) };
        assert_eq!(Reply::parse(&reply[4..]), Ok(read));
    }

    #[test]
    fn every_failure_is_as_another_crate_writes_it_and_reads_back() {
        use theirs::accept_stat_data as data;
        let mismatch = AcceptError::ProgramMismatch { low: 3, high: 4 };
        for (ours, other) in [
            (AcceptError::ProgramUnavailable, data::PROG_UNAVAIL),
            (mismatch, data::PROG_MISMATCH { low: 3, high: 4 }),
            (AcceptError::ProcedureUnavailable, data::PROC_UNAVAIL),
            (AcceptError::GarbageArgs, data::GARBAGE_ARGS),
            (AcceptError::SystemError, data::SYSTEM_ERR),
        ] {
            let reply = error(Vec::new(), 7, ours);
            assert_eq!(reply, their_accepted(other));
            assert_eq!(
                Reply::parse(&reply[4..]),
                Ok(Reply { xid: 7, body: Err(Refused::Failed(ours)) })
            );
        }
    }

    #[test]
    fn every_rejection_is_as_another_crate_writes_it_and_reads_back() {
        use theirs::{auth_stat, rejected_reply};
        let auth = RejectReason::AuthError;
        for (reason, other) in [
            (RejectReason::RpcMismatch, rejected_reply::RPC_MISMATCH { low: 2, high: 2 }),
            (auth(AuthStat::BADCRED), rejected_reply::AUTH_ERROR(auth_stat::AUTH_BADCRED)),
            (
                auth(AuthStat::REJECTEDCRED),
                rejected_reply::AUTH_ERROR(auth_stat::AUTH_REJECTEDCRED),
            ),
            (auth(AuthStat::BADVERF), rejected_reply::AUTH_ERROR(auth_stat::AUTH_BADVERF)),
            (
                auth(AuthStat::REJECTEDVERF),
                rejected_reply::AUTH_ERROR(auth_stat::AUTH_REJECTEDVERF),
            ),
            (auth(AuthStat::TOOWEAK), rejected_reply::AUTH_ERROR(auth_stat::AUTH_TOOWEAK)),
        ] {
            let reply = reject(b"left from before".to_vec(), &Rejection { xid: 7, reason });
            assert_eq!(reply, their_reply(theirs::reply_body::MSG_DENIED(other)));
            let read = Reply { xid: 7, body: Err(Refused::Denied(reason)) };
            assert_eq!(Reply::parse(&reply[4..]), Ok(read));
        }
    }

    #[test]
    fn what_is_no_reply_is_named() {
        let bad = |what, value| Err(XdrError::BadDiscriminant { what, value });
        let parse = |digits: &str| Reply::parse(&hex(&[digits])).map(|reply| reply.xid);
        assert_eq!(parse("00000007 00000000"), bad("msg_type of a reply", 0));
        assert_eq!(parse("00000007 00000001 00000002"), bad("reply_stat", 2));
        assert_eq!(
            parse("00000007 00000001 00000000 00000000 00000000 00000006"),
            bad("accept_stat", 6)
        );
        assert_eq!(parse("00000007 00000001 00000001 00000002"), bad("reject_stat", 2));
        let long = "00000007 00000001 00000000 00000000 00000191";
        let error = XdrError::TooLong { what: "verifier", len: 401, max: 400 };
        assert_eq!(parse(long), Err(error));
        let whole = error_reply();
        for end in 0..whole.len() {
            assert!(Reply::parse(&whole[..end]).is_err(), "cut to {end} bytes");
        }
    }

    fn error_reply() -> Vec<u8> {
        error(Vec::new(), 7, AcceptError::ProgramMismatch { low: 3, high: 4 }).split_off(4)
    }
}
