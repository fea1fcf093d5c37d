//! ONC RPC version 2 over a byte stream (RFC 5531): record marking, calls with their credentials,
//! and replies.
//!
//! The layer does not know which programs exist, and it trusts no length.

pub mod auth;
mod call;
mod frame;
pub mod reply;

pub use auth::{AuthSys, Credential};
pub use call::{Call, RecentCredentials, Refusal};
pub use frame::{Deframer, FrameError, Step};
pub use reply::{AcceptError, AuthStat, RejectReason, Rejection};

/// The version of the RPC protocol (RFC 5531 §9).
pub const RPC_VERSION: u32 = 2;

/// `msg_type` of a call (RFC 5531 §9).
pub(crate) const MSG_CALL: u32 = 0;

/// `msg_type` of a reply (RFC 5531 §9).
pub(crate) const MSG_REPLY: u32 = 1;

/// The bit of a record mark that says "last fragment" (RFC 5531 §11).
pub(crate) const LAST_FRAGMENT: u32 = 1 << 31;
