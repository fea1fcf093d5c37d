//! Authentication: SPNEGO (RFC 4178) and NTLMv2 (MS-NLMP), both sides as plain data.
//!
//! Not here: the directory of users (a lookup is an argument), the protection against guessing
//! (the caller counts refusals), sessions. Nothing but NTLMv2 is accepted: no LM, no NTLMv1, no
//! anonymous user and no guest.
//!
//! Tokens are hostile: each length and offset is checked against the token, and a login that is
//! not finished keeps no more than the bounds of [`limits`](crate::limits).

mod acceptor;
mod der;
mod hash;
#[cfg(any(test, feature = "client"))]
mod initiator;
pub mod ntlm;
mod reason;
mod spnego;
mod text;

pub use acceptor::{Acceptor, Login, Next};
pub use hash::NtHash;
#[cfg(any(test, feature = "client"))]
pub use hash::nt_hash;
#[cfg(any(test, feature = "client"))]
pub use initiator::{Initiator, InitiatorError, Proven};
pub use reason::{Account, Reason, Refused};
pub use spnego::hint;
